#!/usr/bin/python3 -B
"""F5: C1, C13, C16: an origin that sends the credential back, in every form of the table in SPECIFICATION.md, in fields,
bodies, chunks split anywhere and event streams: the reply is 200 and, but for the mark, byte for byte
the origin's. A coded reply is 502. The misses of the table are measured too."""
import base64
import codecs
import gzip
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import scan, scene, tap  # noqa: E402
from harness.reflections import each, field_safe, mark, shapes  # noqa: E402

ECHO, PAIR, SHORT = "echo.example.com", "pair.example.com", "short.example.com"
LONG, OVER = "long.example.com", "over.example.com"
USER = "x-access-token"
CODINGS = ("gzip", "br", "deflate", "zstd", "compress", "identity, gzip", "GZIP", "x-unknown")


class Echo:
    """Answers /WAY/N with the Nth shape."""

    def __init__(self, name, plan):
        self.name, self.plan = name, plan
        self.extra = {}    # path: fn(req, conn)

    def __call__(self, req, conn):
        if req.path in self.extra:
            self.extra[req.path](req, conn)
            return
        _, way, number = req.path.split("/")
        _, before, form, after = self.plan[int(number)]
        body = before + form + after
        if way == "length":
            conn.reply(req, 200, body, kind="text/plain")
        elif way == "field":
            conn.reply(req, 200, b"{}", [("X-Echo", body.decode("latin-1")), ("ETag", '"e"')])
        elif way == "bytes":     # a chunk, and a TLS record, a byte
            conn.head(200, [("Transfer-Encoding", "chunked")])
            for i in range(len(body)):
                conn.chunk(body[i:i + 1])
            conn.chunk(b"")
        elif way == "twice":     # two copies, each split somewhere else
            conn.head(200, [("Transfer-Encoding", "chunked")])
            cut = int(number) * 5 % len(body) or 1
            for part in (body[:cut], body[cut:] + body[:-cut], body[-cut:]):
                if part:
                    conn.chunk(part)
            conn.chunk(b"")
        elif way == "close":
            conn.head(200, [("Connection", "close")])
            conn.send(body)
            conn.close_after = True

    def want(self, number):
        _, before, form, after = self.plan[number]
        return before + mark(len(form), self.name) + after


def ask(st, host, path):
    return st.ask("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host))


def forms(t, s, gate, host, echo):
    count = 0
    with gate.tls(host) as st:
        for i, (name, before, form, after) in enumerate(echo.plan):
            bad, want = [], echo.want(i)
            ways = ["length", "bytes", "twice"]
            if field_safe(before + form + after):
                ways.append("field")
            for way in ways:
                r = ask(st, host, "/%s/%d" % (way, i))
                got = r.get("x-echo", "").encode("latin-1") if way == "field" else r.body
                expected = want + want if way == "twice" else want
                if r.status != 200 or got != expected:
                    bad += ["%s: %d" % (way, r.status), "got  %r" % got, "want %r" % expected]
                count += 1
            t.ok(not bad, "%s: %s is redacted in %s" % (host, name, ", ".join(ways)), *bad)
    r = gate.get(host, "/close/0")
    t.ok(r.status == 200 and r.body == echo.want(0), "%s: a body until close" % host, r.body)
    return count + 1


def events(t, s, gate, echo):
    """Each event is there before the next is sent; the secret is split between two writes."""
    secret, went = s.odd, threading.Event()

    def stream(req, conn):
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        conn.chunk(b"data: {\"n\": 1}\n\n")
        went.wait(10)
        conn.chunk(b"data: " + secret[:11])
        conn.chunk(secret[11:] + b"\n\n")
        conn.chunk(b"")
    echo.extra["/events"] = stream
    with gate.tls(ECHO) as st:
        st.send("GET /events HTTP/1.1\r\nHost: %s\r\n\r\n" % ECHO)
        r = st.head()
        first = b""
        while b"\n\n" not in first:
            size = int(st.until(b"\r\n"), 16)
            first += st.exact(size)
            st.exact(2)
        t.eq(first, b"data: {\"n\": 1}\n\n", "an event passes before the next is sent")
        went.set()
        st.body(r)
        t.eq(r.body, b"data: " + mark(len(secret), "odd") + b"\n\n",
             "a secret split between two events' writes is redacted")


def bulk(t, s, gate, echo):
    """Hits and near hits in more than all windows hold, read slowly."""
    near = s.odd[:-1] + b"!" + s.odd[:20].hex().encode() + b"\n"
    unit = near * 20 + s.odd + b"," + base64.b64encode(s.odd)[:30] + os.urandom(900)
    times = (6 << 20) // len(unit)

    def send(req, conn):
        conn.head(200, [("Content-Length", str(len(unit) * times))])
        for _ in range(times // 64):
            conn.send(unit * 64)
        conn.send(unit * (times % 64))
    echo.extra["/bulk"] = send
    with gate.tls(ECHO) as st:
        st.send("GET /bulk HTTP/1.1\r\nHost: %s\r\n\r\n" % ECHO)
        r = st.head()
        tap.wait_for(lambda: False, 0.5)   # until everything on the way is full
        st.body(r)
    want = unit.replace(s.odd, mark(len(s.odd), "odd")) * times
    t.ok(r.body == want, "6 MiB with %d hits and near hits between, read late, are the origin's "
         "but for the marks" % times, "%d bytes, %d wanted" % (len(r.body), len(want)))
    return times


def longest(t, s, gate, echo):
    """As much is held back as can be, again and again, between the windows of the hop."""
    form = each(s.long, b"\\u%04x")
    unit = form[:-1] + b"?" + form + b"!"
    echo.extra["/long"] = lambda req, conn: conn.reply(req, 200, unit * 40, kind="text/plain")
    r = gate.get(LONG, "/long")
    t.ok(r.status == 200 and r.body == (form[:-1] + b"?" + mark(len(form), "long") + b"!") * 40,
         "a secret of 8192 bytes in its longest form", "%d, %d bytes" % (r.status, len(r.body)))
    r = gate.get(OVER, "/length/0")
    t.ok(r.status == 503 and r.code == "fill", "a secret that is too long to be looked for is not "
         "sent: 503 fill", "%d %r" % (r.status, r.code))


def codings(t, s, gate, echo):
    body = gzip.compress(b"token " + s.odd)
    for i, coding in enumerate(CODINGS):
        path = "/coded%d" % i
        echo.extra[path] = lambda req, conn, c=coding: conn.reply(
            req, 200, body, [("Content-Encoding", c)])
        r = gate.get(ECHO, path)
        t.ok(r.status == 502 and r.code == "cannot_scrub" and body not in r.raw + r.body,
             "Content-Encoding: %s is 502 cannot_scrub" % coding, "%d %r" % (r.status, r.body))
    for i, name in enumerate(("Grpc-Encoding", "Connect-Content-Encoding")):
        echo.extra["/messages%d" % i] = lambda req, conn, n=name: conn.reply(req, 200, body, [(n, "gzip")])
        r = gate.get(ECHO, "/messages%d" % i, "Grpc-Accept-Encoding: gzip\r\n")
        t.ok(r.status == 502 and r.code == "cannot_scrub" and body not in r.raw + r.body,
             name + ": gzip is 502 cannot_scrub", "%d %r" % (r.status, r.body))
    r = gate.get(ECHO, "/coded0", method="HEAD")
    t.eq(r.status, 200, "a coding of no body is no matter")
    aborted = s.d.wait_records(len(CODINGS) + 2, "aborted", code="cannot_scrub")
    t.eq(len(aborted), len(CODINGS) + 2, "and an aborted record with that code each")
    echo.extra["/identity"] = lambda req, conn: conn.reply(
        req, 200, b"plain", [("Content-Encoding", "Identity")])
    r = gate.get(ECHO, "/identity")
    t.ok(r.status == 200 and r.body == b"plain", "identity passes", str(r.status))
    number = s.d.wait_records(1, "admitted", path="/identity")[0]["id"]
    fine = s.d.wait_records(1, "completed", id=number)
    t.eq([(r.get("code"), r.get("count")) for r in fine], [("ok", None)],
         "a reply without a hit is recorded ok")
    t.ok(all(q.get("accept-encoding") == "identity" for q in s.echo.requests),
         "identity is what the origin was asked for")
    t.eq([q.get("grpc-accept-encoding") for q in s.echo.requests if q.path.startswith("/messages")],
         ["identity"] * 2, "and for messages, too")


def misses(t, s, gate, echo):
    """What is not found, as SPECIFICATION.md says: these pass as they are."""
    secret = s.odd
    table = {
        "reversed": secret[::-1],
        "rot13": codecs.encode(secret.decode(), "rot13").encode(),
        "split by the origin": secret[:20] + b"\n" + secret[20:],
        "hex with colons": secret.hex(":").encode(),
        "base64 of base64": base64.b64encode(base64.b64encode(secret)),
        "xor": bytes(b ^ 0x20 for b in secret),
        "decimal codes": b",".join(b"%d" % b for b in secret),
        "base64 in lines": b"\n".join(base64.b64encode(secret)[i:i + 20] for i in range(0, 80, 20)),
    }
    for name, body in table.items():
        echo.extra["/miss"] = lambda req, conn, b=body: conn.reply(req, 200, b, kind="text/plain")
        r = gate.get(ECHO, "/miss")
        t.ok(r.status == 200 and r.body == body, "documented miss: %s passes" % name)
    r = gate.get(SHORT, "/length/0")
    t.ok(r.status == 200 and r.body == b"x" + s.short + b"x",
         "documented: a secret of 15 bytes is not looked for", r.body)


def records(t, s, asked, hits):
    done = tap.wait_for(lambda: (lambda got: got if len(got) >= asked else None)(
        s.d.kinds("completed", code="secret_reflected")), 5, 0.1) or []
    t.eq(len(done), asked, "each reply with a hit has its record: secret_reflected")
    t.eq(sum(int(r.get("count", 0)) for r in done), hits, "and the records count every hit")


def main(t):
    s = scene.Scene(t)
    s.odd = scan.canary("o/+") + b'"\\<&>\'~ z/' + scan.canary("", 6)
    s.pair = scan.canary("p>?/")
    s.short = b"fifteen-bytes-x"
    s.long, s.over = scan.canary("", 8192), scan.canary("", 8193)
    echoes, kept = {}, {}
    for host, name, value, how in (
            (ECHO, "odd", s.odd, {"bearer": "odd"}),
            (PAIR, "pair", s.pair, {"basic": {"user": USER, "password": "pair"}}),
            (SHORT, "short", s.short, {"bearer": "short"}),
            (LONG, "long", s.long, {"bearer": "long"}), (OVER, "over", s.over, {"bearer": "over"})):
        s.d.secret(name, value)
        pair = USER.encode() + b":" + value if host == PAIR else None
        echoes[host] = Echo(name, shapes(value, pair))
        kept[host] = s.add(host, echoes[host])
        s.rule(**{"allow": host, "with": how})
    s.echo = kept[ECHO]
    s.scanner.add("odd", s.odd)
    s.scanner.add("pair", s.pair)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    asked = hits = 0
    for host in (ECHO, PAIR):
        n = forms(t, s, gate, host, echoes[host])
        asked += n
        hits += n + len(echoes[host].plan)     # one way in four holds two copies
    t.ok(len(echoes[ECHO].plan) >= 20, "%d shapes" % len(echoes[PAIR].plan))
    events(t, s, gate, echoes[ECHO])
    hits += 1 + bulk(t, s, gate, echoes[ECHO])
    records(t, s, asked + 2, hits)
    codings(t, s, gate, echoes[ECHO])
    t.ok(kept[ECHO].requests[-1].get("authorization") == "Bearer " + s.odd.decode() and
         kept[PAIR].requests[-1].get("authorization") == "Basic " + base64.b64encode(
             USER.encode() + b":" + s.pair).decode(), "the origins had the right credentials")
    misses(t, s, gate, echoes[ECHO])
    longest(t, s, gate, echoes[LONG])
    t.eq(len(kept[OVER].requests), 0, "and reaches nobody")
    s.clean(what="reflection")
    s.d.check_pairs(t, list(kept.values()) + [1], "reflection")   # one was not sent
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
