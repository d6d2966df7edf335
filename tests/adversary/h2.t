#!/usr/bin/python3 -B
"""HTTP/2 attacks on a gate (rows B17, B28, B29, B30, E15 of the catalogue), frame by frame, within TLS and by prior
knowledge in clear: each is refused with its answer and its record, nothing of it reaches an origin, and its benign
twin passes."""
import os
import socket
import ssl
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness.accepting import accepting  # noqa: E402
from harness import client, durward, h2, h2_clear, memory, scene, shapes, socks, tap  # noqa: E402

HOST, OTHER, OLD, FRESH = "h2.example.com", "other.example.com", "old.example.com", "fresh.example.com"
RSS_MAX = 16 << 10  # KiB a gate may grow under a flood
SPOKEN = {"scheme": "https"}  # http while all is tried in clear
TURNED = {"http": "https", "https": "http"}


def fields(path="/evil", method="GET", scheme="", authority=HOST, extra=()):
    scheme = SPOKEN["scheme"] if scheme == "" else scheme
    got = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)]
    return [f for f in got if f[1] is not None] + list(extra)


def with_extra(*extra):
    return fields(extra=extra)


# name: (fields, status and code of the answer)
HEADS = {
    # pseudo-fields
    "method twice": (with_extra((":method", "POST")), (400, "pseudo_header")),
    "path twice": (with_extra((":path", "/evil2")), (400, "pseudo_header")),
    "authority twice": (with_extra((":authority", OTHER)), (400, "pseudo_header")),
    "scheme twice": (with_extra((":scheme", "https")), (400, "pseudo_header")),
    "no method": (fields(method=None), (400, "pseudo_header")),
    "no path": (fields(path=None), (400, "pseudo_header")),
    "no scheme": (fields(scheme=None), (400, "pseudo_header")),
    "empty path": (fields(path=""), (400, "bad_target")),
    "unknown pseudo-field": (with_extra((":evil", "x")), (400, "pseudo_header")),
    "a reply's pseudo-field": (with_extra((":status", "200")), (400, "pseudo_header")),
    "a pseudo-field behind a field": ([("x", "y")] + fields(), (400, "pseudo_header")),
    ":protocol without being asked": (with_extra((":protocol", "websocket")), (400, "pseudo_header")),
    "no authority, no host": (fields(authority=None), (400, "host")),
    "authority and another host": (with_extra(("host", OTHER)), (400, "authority_mismatch")),
    "authority of another": (fields(authority=OTHER), (421, "authority_mismatch")),
    "authority with another port": (fields(authority=HOST + ":8443"), (421, "authority_mismatch")),
    "only a host, of another": (fields(authority=None, extra=[("host", OTHER)]),
                                (421, "authority_mismatch")),
    "two hosts": (fields(authority=None, extra=[("host", HOST), ("host", HOST)]), (400, "host")),
    "the other scheme": (fields(scheme="http"), (400, "scheme")),
    "authority with a user": (fields(authority="u@" + HOST), (400, "host")),
    "CONNECT": (fields(None, "CONNECT", None, HOST + ":443"), (405, "connect_inside")),
    # the request line that HTTP/1 would have
    "path with a space": (fields("/evil HTTP/1.1"), (400, "bad_target")),
    "path with a line end": (fields("/evil HTTP/1.1\r\nx: y"), (400, "bad_target")),
    "path with a tab": (fields("/ev\til"), (400, "bad_target")),
    "path with #": (fields("/evil#x"), (400, "bad_target")),
    "absolute path": (fields("https://%s/evil" % OTHER), (400, "bad_target")),
    "path without a slash": (fields("evil"), (400, "bad_target")),
    "dot segments": (fields("/a/../evil"), (400, "path_ambiguous")),
    "encoded dot segments": (fields("/a/%2e%2e/evil"), (400, "path_ambiguous")),
    "method with a space": (fields(method="GET /x"), (400, "bad_request_line")),
    "method in lower case": (fields(method="get"), (405, "method")),
    "TRACE": (fields(method="TRACE"), (405, "method")),
    "PRI": (fields(method="PRI"), (405, "method")),
    "asterisk": (fields("*"), (400, "bad_target")),
    # fields
    "upper case": (with_extra(("X-Evil", "y")), (400, "bad_header")),
    "CR in a value": (with_extra(("x", "a\rb")), (400, "bad_header")),
    "LF in a value": (with_extra(("x", "a\nb: c")), (400, "bad_header")),
    "NUL in a value": (with_extra(("x", "a\0b")), (400, "bad_header")),
    "control in a value": (with_extra(("x", "a\x01b")), (400, "bad_header")),
    "CR in a name": (with_extra(("x\r\ny", "z")), (400, "bad_header")),
    "colon in a name": (with_extra(("x:y", "z")), (400, "bad_header")),
    "space in a name": (with_extra(("x y", "z")), (400, "bad_header")),
    "empty name": (with_extra(("", "z")), (400, "bad_header")),
    "connection": (with_extra(("connection", "close")), (400, "bad_header")),
    "keep-alive": (with_extra(("keep-alive", "x")), (400, "bad_header")),
    "proxy-connection": (with_extra(("proxy-connection", "x")), (400, "bad_header")),
    "transfer-encoding": (with_extra(("transfer-encoding", "chunked")), (400, "bad_header")),
    "upgrade": (with_extra(("upgrade", "h2c")), (400, "bad_header")),
    "te gzip": (with_extra(("te", "gzip")), (400, "bad_header")),
    "a name's twin": (with_extra(("content_length", "5")), (400, "bad_header")),
    "expect": (with_extra(("expect", "200-ok")), (417, "expect")),
    # sizes
    "101 fields": (fields(extra=[("x%d" % i, "y") for i in range(101)]), (431, "too_many_headers")),
    "40 KiB of fields": (with_extra(("x", "y" * 40000)), (431, "too_many_headers")),
    "a path of 9,000": (fields("/" + "e" * 9000), (414, "target_too_long")),
}
LENGTHS = {  # name: (declared, body) B29
    "too few bytes": ("10", b"five!"),
    "too many bytes": ("3", b"five!"),
    "some where none were said": ("0", b"five!"),
    "+5": ("+5", b"five!"),
    "0x5": ("0x5", b"five!"),
    "twice": (("5", "5"), b"five!"),
    "two that differ": (("5", "6"), b"five!"),
    "a list": ("5, 5", b"five!"),
    "beyond 64 bits": ("18446744073709551621", b"five!"),
    "negative": ("-1", b"five!"),
}


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
LENIENT = (  # in clear: what it does, its name, what it says at once, the answer
    ("answers each line it cannot read", "lenient.example.com", OK, (502, "upstream_no_h2")),
    ("says nothing", "silent.example.com", b"", (504, "upstream_timeout")),
)


def listening(t, says, got):
    """Reads on whatever comes, as a server of HTTP/1.1 that takes nothing amiss; -> its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    t.cleanup(listener.close)

    def one(sock):
        with sock:
            sock.settimeout(20)
            try:
                for data in iter(lambda: sock.recv(65536), b""):
                    got.append(data)
                    sock.sendall(says)
            except OSError:
                pass
    accepting(listener, one)
    return "127.0.0.1:%d" % listener.getsockname()[1]


class Bench:
    def __init__(self, t):
        self.t = t
        self.s = scene.Scene(t)
        self.origins = {False: self.s.add(HOST, shapes.echo), True: h2_clear.ClearOrigin(t, HOST)}
        self.s.d.origin(HOST + ":80", self.origins[True])
        self.fresh = h2_clear.ClearOrigin(t, FRESH)
        self.s.d.origin(FRESH + ":80", self.fresh)
        self.lenient, self.got = [], {}
        for what, host, says, answer in LENIENT:
            self.got[host] = []
            self.s.d.resolve[host + ":80"] = listening(t, says, self.got[host])
            self.lenient.append((what, host, answer))
        self.old = self.s.add(OLD + ":80", shapes.echo, tls=False)
        for host in (HOST, "http://" + HOST, "http://" + OLD, "http://" + FRESH, *["http://" + x[1] for x in LENIENT]):
            self.s.rule(allow=host)
        self.clear = False
        self.s.d.limits["head_seconds"] = 3
        self.s.d.limits["dial_seconds"] = 4
        self.s.d.limits["idle_seconds"] = 4
        address = self.s.listener()
        self.s.d.serve()
        self.gate = self.s.gate(address)
        self.socks = socks.Listener(address, self.s.ca_file())
        self.benign()

    @property
    def o(self):
        return self.origins[self.clear]

    def connect(self, **kw):
        return h2.H2(self.gate, HOST, clear=80 if self.clear else None, **kw)

    def speak(self, clear):
        self.clear, SPOKEN["scheme"] = clear, "http" if clear else "https"

    def said(self, fields):
        """A row of HEADS, as it is said here."""
        return [(n, TURNED.get(v, v) if n == ":scheme" and self.clear else v) for n, v in fields]

    def denied(self, code=None):
        return self.s.d.kinds("denied", **({"code": code} if code else {}))

    def count(self):
        return len(self.denied())

    def benign(self):
        with self.connect() as c:
            return c.ask("/fine").status == 200

    def gate_kib(self):
        return memory.roles(self.s.d).get("gate", 0)

    def recorded(self, before, n, code=None):
        """Exactly n denied records more (of that code)."""
        tap.wait_for(lambda: self.count() - before >= n, 3)
        new = self.denied()[before:]
        return len(new) == n and (code is None or all(r["code"] == code for r in new)), \
            [r["code"] for r in new]


def heads(t, b):
    for name, (said, want) in HEADS.items():
        before, seen = b.count(), len(b.o.requests)
        with b.connect() as c:
            s = c.open(b.said(said))
            a = c.answer(s, 5)
            right, codes = b.recorded(before, 1, want[1])
            t.ok((a.status, a.code) == want and right and len(b.o.requests) == seen, "B28 " + name,
                 "status %r code %r reset %r goaway %r" % (a.status, a.code, a.reset, c.goaway),
                 "records %r, requests %d" % (codes, len(b.o.requests) - seen))
            if c.ask("/twin").status != 200:
                t.ok(False, "B28 %s: the connection goes on" % name)


def host_alone(t, b):
    with b.connect() as c:
        a = c.answer(c.open(fields("/fine", authority=None, extra=[("host", HOST)])))
        t.eq(a.status, 200, "B28 twin: host without :authority")
        a = c.answer(c.open(fields("/fine", extra=[("host", HOST), ("te", "trailers"),
                                                   ("cookie", "a=1"), ("cookie", "b=2")])))
        t.ok(a.status == 200 and b'["cookie", "a=1; b=2"]' in a.body and (b.clear or b'"te"' not in a.body),
             "B28 twin: both, te: trailers, cookie crumbs", a.body)


def lengths(t, b):
    for name, (said, body) in LENGTHS.items():
        said = said if isinstance(said, tuple) else (said,)
        with b.connect() as c:
            s = c.open(fields("/length", "POST", extra=[("content-length", v) for v in said]), False)
            c.frame(h2.DATA, h2.END_STREAM, s, body)
            a = c.answer(s, 5)
            t.eq((a.status, a.code), (400, "framing"), "B29 content-length: " + name)
    t.eq([r for r in b.o.requests if r.path == "/length"], [], "B29 none of them reaches the origin")
    with b.connect() as c:
        s = c.open(fields("/twin", "POST", extra=[("content-length", "5")]), False)
        c.frame(h2.DATA, h2.END_STREAM, s, b"five!")
        t.ok(b'"length": 5' in c.answer(s).body, "B29 twin: a length that is right")
        s = c.open(fields("/twin", "POST", extra=[("content-length", "0")]), False)
        c.frame(h2.DATA, h2.END_STREAM, s)
        t.ok(b'["content-length", "0"]' in c.answer(s).body, "B29 twin: none, and none came")
        s = c.open(fields("/twin", extra=[("x", " y\t")]))
        t.ok(b'["x", "y"]' in c.answer(s).body, "B28 twin: blanks around a value are taken off, as everybody does")


def trailers(t, b):
    for name, field, want in (("authorization", ("authorization", "Bearer x"), "trailer"),
                              ("host", ("host", OTHER), "trailer"),
                              ("a pseudo-field", (":path", "/evil"), "pseudo_header")):
        with b.connect() as c:
            s = c.open(fields("/trailed", "POST"), False)
            c.frame(h2.DATA, 0, s, b"five!")
            c.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS, s, c.block([field]))
            a = c.answer(s, 5)
            t.ok(a.status == 400 and a.code == want,
                 "B14 over h2: a trailer that is " + name, "%r %r %r" % (a.status, a.code, a.reset))
    t.eq([r for r in b.o.requests if r.path == "/trailed" and r.complete], [],
         "B14 none of them is whole at the origin")


def flood(t, b, name, attack, ends=("h2_flood",), errors=(h2.ENHANCE_YOUR_CALM, None), **more):
    """attack(connection, i) until the gate ends it: GOAWAY, one record of the end (and few of streams),
    bounded memory."""
    before, kib = b.count(), b.gate_kib()
    with b.connect(**more) as c:
        c.until(lambda: c.settings, 5)
        c.setup = None
        started = time.process_time()
        for i in range(4000):
            if not attack(c, i) or c.closed or c.goaway is not None:
                break
            if i % 50 == 49:
                c.until(lambda: c.goaway is not None, 0.002)
        c.until(lambda: c.goaway is not None or c.closed, 5)
        ended = c.ended(5)
        grown = b.gate_kib() - kib
        tap.wait_for(lambda: any(r["code"] in ends for r in b.denied()[before:]), 3)
        codes = [r["code"] for r in b.denied()[before:]]
        t.ok(ended and c.goaway in errors, "B30 %s: the connection ends" % name,
             "ended %r goaway %r after %d" % (ended, c.goaway, i))
        t.ok(codes and codes[-1] in ends and set(codes[:-1]) <= {"h2_malformed"} and len(codes) <= 250,
             "B30 %s: its end is recorded once" % name, "%d %r" % (len(codes), codes[:5]))
        if not durward.sanitized():
            t.ok(grown < RSS_MAX, "B30 %s: memory is bounded" % name, "%d KiB" % grown)
    t.ok(b.benign(), "B30 %s: others are served" % name)
    return time.process_time() - started


def reset_stream(c, i):
    s = c.get("/reset/%d" % i)
    return c.frame(h2.RST_STREAM, 0, s, struct.pack("!L", h2.CANCEL))


def server_reset(c, i):
    """The client makes the gate reset: a window beyond 2^31-1 is a stream error (MadeYouReset)."""
    s = c.get("/reset/%d" % i)
    return c.window(s, 0x7fffffff)


def paid_reset(c, i):
    """The same after bytes that are useful: they pay for frames, not for streams that end badly."""
    s = c.open(fields("/paid", "POST"), False)
    c.send(b"".join(c.raw(h2.DATA, 0, s, b"x") for _ in range(3)))
    return c.window(s, 0x7fffffff)


def continuation(c, i):
    if i == 0:
        c.frame(h2.HEADERS, h2.END_STREAM, 1, c.block(fields()))
    return c.frame(h2.CONTINUATION, 0, 1, b"")


def half_open(c, i):
    if c.setup is None:
        c.setup = c.open(fields("/half", "POST"), False)
    return c.frame(h2.DATA, 0, c.setup, b"")


def bomb(c, i):
    """One field of 4,000 bytes in the table, then a byte for each time it comes again."""
    block = c.block(fields()) + c.encoder.encode([("x", "v" * 4000)])
    return c.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS, 1 + 2 * i, block + b"\xbe" * 12000)


def floods(t, b):
    flood(t, b, "rapid reset", reset_stream)
    # where more than 100 stand open between two looks at what is to be sent, nghttp2 ends it first
    also = {"ends": ("h2_flood", "h2_protocol"), "errors": (h2.ENHANCE_YOUR_CALM, h2.PROTOCOL_ERROR, None)}
    flood(t, b, "resets that the gate is made to send", server_reset, **also)
    flood(t, b, "resets after useful bytes", paid_reset, **also)
    flood(t, b, "CONTINUATION", continuation)
    flood(t, b, "PING", lambda c, i: c.frame(h2.PING, 0, 0, b"pingping"))
    flood(t, b, "SETTINGS", lambda c, i: c.frame(h2.SETTINGS, 0, 0, struct.pack("!HL", 3, i)))
    flood(t, b, "empty SETTINGS", lambda c, i: c.frame(h2.SETTINGS))
    flood(t, b, "PRIORITY", lambda c, i: c.frame(h2.PRIORITY, 0, 1 + 2 * i, struct.pack("!LB", 0, 1)))
    flood(t, b, "empty DATA", half_open)
    flood(t, b, "WINDOW_UPDATE", lambda c, i: c.window(0, 1))
    flood(t, b, "unknown frames", lambda c, i: c.frame(0x42, 0, 0, b"x"))
    flood(t, b, "HPACK bomb", bomb)


def cancelled(t, b):
    """A page that is closed, a client of streams that leaves: 300 calls are cancelled once they have answered."""
    before = b.count()
    with b.connect(windows=False, settings=[(4, 0)]) as c:
        for turn in range(3):
            ids = [c.get("/stream/%d/%d" % (turn, i)) for i in range(100)]
            c.until(lambda: all(c.answers[s].status for s in ids), 10)
            for s in ids:
                c.frame(h2.RST_STREAM, 0, s, struct.pack("!L", h2.CANCEL))
        s = c.get("/next")
        c.until(lambda: c.answers[s].status or c.goaway is not None, 10)
        t.eq((c.answers[s].status, c.goaway), (200, None), "B30 twin: 300 calls are cancelled, and the connection goes on")
    t.eq([r["code"] for r in b.denied()[before:]], [], "B30 twin: and nothing of them is recorded as denied")


def unread(t, b):
    """PINGs whose answers nobody reads: the gate stops reading, and holds nothing much."""
    kib = b.gate_kib()
    ping = h2.H2.raw(h2.PING, 0, 0, b"pingping") * 1000
    with b.connect() as c:
        c.sock.settimeout(1)
        try:
            for _ in range(2000):
                c.sock.sendall(ping)
        except OSError:
            pass
        t.ok(b.benign(), "B30 unread PINGs: others are served")
        if not durward.sanitized():
            grown = b.gate_kib() - kib
            t.ok(grown < RSS_MAX, "B30 unread PINGs: memory is bounded", "%d KiB" % grown)


def stalls(t, b):
    """Window 0: 100 replies that nobody takes are given up in time, within bounded memory."""
    kib = b.gate_kib()
    with b.connect(windows=False, settings=[(4, 0)]) as c:
        ids = [c.get("/stall/%d" % i) for i in range(100)]
        c.until(lambda: all(c.answers[s].status for s in ids), 10)
        grown = b.gate_kib() - kib
        t.eq([c.answers[s].length for s in ids], [0] * 100, "B30 window 0: nothing is sent")
        with b.connect() as d:
            t.eq(d.ask("/beside").status, 200, "B30 window 0: another connection goes on")
        c.until(lambda: all(c.answers[s].over for s in ids), 10)
        t.eq([c.answers[s].reset for s in ids], [h2.CANCEL] * 100, "B30 window 0: reset in time")
        if not durward.sanitized():
            t.ok(grown < RSS_MAX, "B30 window 0: memory is bounded", "%d KiB" % grown)
    with b.connect() as c:
        before = b.count()
        c.until(lambda: c.settings, 5)
        c.frame(h2.HEADERS, h2.END_STREAM, 1, c.block(fields())[:4])
        t.ok(c.ended(8), "B30 half a field block is not waited for")
        right, codes = b.recorded(before, 1, "timeout")
        t.ok(right, "B30 half a field block: one record", codes)


def beyond(t, b):
    """More streams than were allowed are refused one by one, unprocessed; the rest are served."""
    with b.connect(windows=False, settings=[(4, 0)]) as c:
        c.until(lambda: c.settings, 5)
        t.eq(c.settings.get(3), 100, "B30 100 streams are announced")
        ids = [c.get("/many/%d" % i) for i in range(110)]
        c.until(lambda: all(c.answers[s].over or c.answers[s].status for s in ids) or
                c.goaway is not None, 8)
        served = [s for s in ids if c.answers[s].status == 200]
        t.ok(len(served) <= 100, "B30 no more than 100 are served at once", "%d" % len(served))


def confusion(t, b):
    before = b.count()
    ctx = ssl.create_default_context(cafile=b.gate.cafile)
    with b.gate.tls(HOST, alpn=["h2"], context=ctx) as st:
        st.send("GET /evil HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST)
        t.ok(st.ended(5), "E15 h2 chosen, HTTP/1.1 spoken: closed")
    t.ok(b.recorded(before, 1, "h2_protocol")[0], "E15 and recorded")
    before = b.count()
    with b.gate.tls(HOST, alpn=["http/1.1"], context=ssl.create_default_context(
            cafile=b.gate.cafile)) as st:
        r = st.ask(h2.PREFACE)
        t.ok(r.status in (400, 505), "E15 http/1.1 chosen, h2 spoken: refused", str(r.status))
    with b.gate.tls(HOST) as st:
        r = st.ask(h2.PREFACE)
        t.ok(r.status in (400, 505), "B17 h2 by prior knowledge, no ALPN: refused", str(r.status))
    t.ok(b.recorded(before, 2)[0], "B17 and recorded, each")
    ctx = ssl.create_default_context(cafile=b.gate.cafile)
    try:
        b.gate.tls(HOST, alpn=["spdy/3"], context=ctx).close()
        t.ok(False, "E15 another ALPN alone: no handshake")
    except (ssl.SSLError, client.Ended, ConnectionError) as e:
        t.ok("NO_APPLICATION_PROTOCOL" in str(e).upper().replace(" ", "_"), "E15 another ALPN alone: "
             "no_application_protocol", str(e))
    host, port = b.gate.where
    before = b.count()
    with client.Stream(socket.create_connection((host, port), 5)) as st:
        st.send(h2.PREFACE)
        r = st.reply()
        t.ok(r.status in (400, 505), "B17 h2 by prior knowledge to the proxy port: refused", str(r.status))
    t.ok(b.recorded(before, 1)[0], "B17 and recorded")


def opened(b, port=80):
    r, st = b.gate.connect("%s:%d" % (HOST, port))
    if r.status != 200:
        raise RuntimeError("CONNECT: %d" % r.status)
    return st


def said(b, first, pieces=None):
    """These bytes at the beginning of a tunnel in clear, at once or piece by piece; -> what came."""
    with opened(b) as st:
        try:
            for part in pieces or [first]:
                st.send(part)
        except OSError:
            pass
        return st.rest(3)


EMPTY = h2.H2.raw(h2.SETTINGS, 0, 0)
GET = b"GET /evil HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode()


def carried(t, b):
    """Where it is carried: the origin has the same preface, scheme and authority, and no connection is shared."""
    st = opened(b)
    with h2.H2(b.gate, HOST, clear=st, preface=False) as c:
        for i in range(len(h2.PREFACE)):
            c.send(h2.PREFACE[i:i + 1])
        c.send(EMPTY)
        a = c.ask("/byte-by-byte")
        t.ok(a.status == 200 and b'"scheme": "http"' in a.body and ('"authority": "%s"' % HOST).encode() in a.body and
             dict(a.trailers or ()).get("x-sum") == "%d" % len(a.body),
             "B17 the preface byte by byte is carried, trailers too", "%r %r %r" % (a.status, a.body, a.trailers))
    _, st = b.socks.enter(HOST, 80)
    with h2.H2(b.gate, HOST, clear=st) as c:
        t.eq(c.ask("/fine").status, 200, "B17 carried after SOCKS5")
    with h2.H2(b.gate, FRESH, clear=80) as c:
        ids = c.together(["/%d" % i for i in range(50)])
        t.eq([c.answer(s).status for s in ids], [200] * 50, "B17 many at once to an origin that nobody asked before")
        t.eq((b.fresh.accepted, len(b.fresh.first)), (1, 1), "B17 on one connection to it")
    n = len(b.o.first)
    with opened(b) as st:
        r = st.ask("GET /old HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST)
        t.ok(r.status == 502 and len(b.o.first) == n + 1 and b.o.first[n].startswith(b"GET /old"),
             "B17 who speaks HTTP/1.1 to the same host keeps to it, on a connection of its own", str(r.status),
             str(b.o.first[n:]))


def prefaces(t, b):
    """The preface where it has no place, and what is nearly one."""
    t.part(carried, t, b)
    rows = {  # what the tunnel says: (bytes, pieces)
        "one byte too few, then HTTP/1.1": h2.PREFACE[:-1] + GET,
        "one byte that differs, the last": h2.PREFACE[:-1] + b"\r" + EMPTY,
        "one byte that differs, behind the blank line": h2.PREFACE[:18] + b"XX" + h2.PREFACE[20:] + EMPTY,
        "in lower case": h2.PREFACE.lower() + EMPTY,
        "of HTTP/2.1": h2.PREFACE.replace(b"2.0", b"2.1") + EMPTY,
        "behind a blank line": b"\r\n" + h2.PREFACE + EMPTY,
        "with a field": b"PRI * HTTP/2.0\r\nHost: %s\r\n\r\n" % HOST.encode() + EMPTY,
    }
    for what, data in rows.items():
        for pieces in (None, [data[:20], data[20:]]):
            before, seen = b.count(), len(b.o.first)
            got = said(b, data, pieces)
            right, codes = b.recorded(before, 1)
            t.ok(got[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 505") and right and len(b.o.first) == seen,
                 "B17 the preface %s: refused%s" % (what, ", in two pieces" if pieces else ""), repr(got[:80]), str(codes))
    before = b.count()
    with opened(b) as st:
        st.send(h2.PREFACE[:20])
        t.ok(st.ended(8) and b.recorded(before, 1, "timeout")[0], "B17 half a preface is not waited for, and recorded")
    for what, data in (("HTTP/1.1 behind it", h2.PREFACE + GET), ("a ClientHello behind it", h2.PREFACE + b"\x16\x03\x01\x02\0\x01" + bytes(600)),
                       ("it, twice", h2.PREFACE * 2), ("no SETTINGS behind it", h2.PREFACE + h2.H2.raw(h2.PING, 0, 0, b"pingping"))):
        before, seen = b.count(), len(b.o.first)
        got = said(b, data)
        right, codes = b.recorded(before, 1, "h2_protocol")
        t.ok(b"HTTP/1" not in got and right and len(b.o.first) == seen, "B17 %s: the connection ends" % what, repr(got[:80]),
             str(codes))
    for what, host, first in (("after a request", OLD, "GET /old HTTP/1.1\r\nHost: %s\r\n\r\n" % OLD),
                              ("after a POST", OLD, "POST /old HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\nab" % OLD)):
        r, st = b.gate.connect(host + ":80")
        with st:
            before = b.count()
            t.eq(st.ask(first).status, 200, "B17 twin: HTTP/1.1 in clear")
            r = st.ask(h2.PREFACE + EMPTY)
            t.ok((r.status, r.code) == (400, "h2c") and b.recorded(before, 1, "h2c")[0], "B17 the preface %s: 400 h2c" % what,
                 str(r.status))
    with client.Stream(socket.create_connection(b.gate.where, 5)) as st:
        before = b.count()
        r = st.ask(h2.PREFACE + EMPTY)
        t.ok((r.status, r.code) == (400, "h2c") and b.recorded(before, 1, "h2c")[0],
             "B17 to the forward port itself, with frames behind it: 400 h2c", str(r.status))
    with client.Stream(socket.create_connection(b.gate.where, 5)) as st:
        before = b.count()
        st.ask("GET http://%s/old HTTP/1.1\r\nHost: %s\r\n\r\n" % (OLD, OLD))
        r = st.ask(h2.PREFACE + EMPTY)
        t.ok((r.status, r.code) == (400, "h2c") and b.recorded(before, 1, "h2c")[0],
             "B17 there, after a request: 400 h2c", str(r.status))
    t.part(no_http2, t, b)


def no_http2(t, b):
    """An origin in clear that answers in another protocol: 502 at once, with a code of its own."""
    started = time.monotonic()
    with h2.H2(b.gate, OLD, clear=80) as c:
        ids = [c.get("/no-h2/%d" % i) for i in range(5)]
        got = [(c.answer(s).status, c.answers[s].code) for s in ids]
    t.eq(got, [(502, "upstream_no_h2")] * 5, "B17 an origin that speaks HTTP/1.1 only: 502 upstream_no_h2")
    t.ok(time.monotonic() - started < 3, "B17 and none of them hangs")
    t.eq([r.target for r in b.old.requests if "no-h2" in r.target], [], "B17 nothing of them reached it")
    for what, host, answer in b.lenient:
        before = len(b.got[host])
        with h2.H2(b.gate, host, clear=80) as c:
            s = c.open([(n, host if n == ":authority" else v) for n, v in fields("/fine", "POST")], False)
            c.frame(h2.DATA, h2.END_STREAM, s, b"\r\n\r\n" + GET * 20)
            a = c.answer(s, 12)
            t.eq((a.status, a.code), answer, "B17 an origin that %s: %d %s" % ((what,) + answer))
        seen = b"".join(b.got[host][before:])
        t.ok(seen.startswith(h2.PREFACE) and b"evil" not in seen and len(seen) < 100,
             "B17 an origin that %s could read no request in what came" % what, repr(seen[:300]))


def main(t):
    h2.needed()
    b = Bench(t)
    for clear in (False, True):
        b.speak(clear)
        t.ok(b.benign(), "the benign twin" + (", in clear" if clear else ""))
        for part in (heads, host_alone, lengths, trailers, prefaces if clear else confusion, cancelled, floods, unread,
                     stalls, beyond):
            t.part(part, t, b)
        t.ok(b.benign(), "and the gate serves on")
    evil = [r.target for o in list(b.origins.values()) + [b.old, b.fresh] for r in o.requests
            if "evil" in r.target or "evil" in str(r.headers)]
    t.eq(evil, [], "nothing that was refused reached an origin")
    b.s.judge([(o, None) for o in list(b.origins.values()) + [b.old, b.fresh]], (), "h2 attacks", exact=False)


tap.run(main, timeout=300)
