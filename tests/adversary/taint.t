#!/usr/bin/python3 -B
"""C1, C3, C13, C14 by origin: what a request with a credential left at an origin, another one asks for: by
a rule without a credential or with another one, on another port, over http, over HTTP/2, in a WebSocket,
by a name that only a pattern names, after the secret got another value, from another sandbox. No raw
byte of it comes in; what the origin does not get passes as ever."""
import base64
import gzip
import hashlib
import json
import os
import signal
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import api, h2, h2_frames, origin, scan, scene, tap  # noqa: E402
from harness.reflections import each, mark  # noqa: E402

ONE, NEW, FREE = "one.example.com", "new.example.com", "free.example.com"
SIGNED, MESSAGES, AWAITED = "signed.example.com", "mcp.example.com", "awaited.example.com"
WILD, NARROW, DOWN, LOGIN = "a.wild.example.com", "b.wild.example.com", "down.example.com", "login.example.com"
PACKED = gzip.compress(b'{"stored": "so"}')
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Store:
    """Keeps what it is given and gives it back at /…/raw, whoever asks."""

    def __init__(self):
        self.left, self.stream = [], None
        self.go, self.more, self.mirror = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, req, conn):
        path = req.path.rpartition("/")[2]
        if path == "put":
            self.left.append((req.get("authorization") or "").encode() + b" " + req.body)
            conn.reply(req, 200, b"{}")
        elif path == "raw":
            whole = b"\n".join(self.left)
            conn.reply(req, 200, b"<" + whole + b">", [("X-Left", self.left[-1].decode("latin-1"))], "text/plain")
        elif path == "trailer":
            conn.head(200, [("Transfer-Encoding", "chunked")])
            conn.chunk(b"body")
            conn.send(b"0\r\nX-Left: " + self.left[-1] + b"\r\n\r\n")
        elif path == "interim":
            conn.send(b"HTTP/1.1 103 Early Hints\r\nX-Left: " + self.left[-1] + b"\r\n\r\n")
            conn.reply(req, 200, self.left[-1], kind="text/plain")
        elif path == "coded":
            conn.reply(req, 200, gzip.compress(b"".join(self.left) or b"nothing"), [("Content-Encoding", "gzip")])
        elif path == "packed":
            conn.reply(req, 200, PACKED, [("Content-Encoding", "gzip")], "application/json")
        elif path == "packing":
            conn.head(200, [("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")])
            conn.chunk(PACKED[:9])
            self.more.wait(20)
            conn.chunk(PACKED[9:])
            conn.chunk(b"")
        elif path == "part":
            conn.reply(req, 206 if req.get("range") else 200, b"0123456789", [("Content-Range", "bytes 0-9/10")] if req.get("range") else [])
        elif path == "slow":
            conn.head(200, [("Transfer-Encoding", "chunked")])
            conn.chunk(b"begun\n")
            self.go.wait(20)
            for one in self.left[-2:]:
                for i in range(0, len(one), 7):
                    conn.chunk(one[i:i + 7])
                conn.chunk(b"\n")
            conn.chunk(b"")
        elif path == "socket":
            key = base64.b64encode(hashlib.sha1(req.get("Sec-WebSocket-Key").encode() + GUID).digest()).decode()
            conn.head(101, [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", key)])
            conn.send(b"\x82" + bytes([len(self.left[-1])]) + self.left[-1])
            conn.send(b"\x88\x02\x03\xe8")
            conn.close_after = True
        elif path == "mirror":
            conn.head(200, [("Transfer-Encoding", "chunked")])
            conn.chunk(b"begun\n")
            self.mirror.wait(20)
            conn.chunk((req.get("authorization") or "none").encode())
            conn.chunk(b"")
        elif path == "told":
            conn.reply(req, 200, (req.get("authorization") or "none").encode(), kind="text/plain")
        elif path == "turn":
            self.mirror.set()
            conn.reply(req, 200, b"{}")
        elif path == "another":
            self.minted = scan.canary("mi-").decode()
            conn.reply(req, 200, json.dumps({"token": self.minted}))
        elif path == "token":
            conn.reply(req, 200, json.dumps({"token": self.minted}))
        elif path == "minted":
            conn.reply(req, 200, ("again: " + self.minted).encode(), kind="text/plain")
        else:
            conn.reply(req, 200, b"{}")


class NewStore:
    """The same over HTTP/2, in data, a field and trailers."""

    def __init__(self):
        self.left = []

    def __call__(self, peer):
        decoder = h2.hpack.Decoder()
        peer.send(h2_frames.frame(h2_frames.SETTINGS))
        while True:
            kind, flags, stream, payload = peer.read()
            if kind == h2_frames.SETTINGS and not flags & h2_frames.ACK:
                peer.send(h2_frames.frame(h2_frames.SETTINGS, h2_frames.ACK))
            if kind != h2_frames.HEADERS:
                continue
            fields = dict(decoder.decode(payload[5:] if flags & 0x20 else payload))
            body = b"{}"
            if fields[":path"].endswith("/put"):
                self.left.append(fields.get("authorization", "").encode())
            elif fields[":path"].endswith("/raw"):
                body = self.left[-1]
            end = h2_frames.END_HEADERS | h2_frames.END_STREAM
            peer.send(h2_frames.head(stream, 200, [("x-left", body)]) +
                      h2_frames.frame(h2_frames.DATA, 0, stream, body) +
                      h2_frames.frame(h2_frames.HEADERS, end, stream, h2_frames.block(("x-left", body))))


def hidden(body, *values):
    for name, value in values:
        body = body.replace(value, mark(len(value), name))
    return body


def scene_of(t):
    s = scene.Scene(t)
    s.values = {}
    for name in ("alpha", "beta", "gamma", "gone", "login", "late", "signing"):
        s.values[name] = scan.canary(name[:2] + "-")
        s.path = s.d.secret(name, s.values[name]) if name == "alpha" else (s.d.secret(name, s.values[name]), s.path)[1]
        s.scanner.add(name, s.values[name])
    s.d.secrets["minted"] = {"captured": {}}
    s.d.secrets["issued"] = {"captured": {}}
    s.wait = [os.path.join(t.mkdir("wait"), x) for x in ("asked", "go")]
    s.d.secrets["awaited"] = {"command": ["sh", "-c", "touch %s; while [ ! -e %s ]; do sleep 0.05; done; echo %s" % (
        *s.wait, scan.canary("aw-").decode())], "ttl": "0s"}
    s.d.secrets["signer"] = {"hmac_key": {"key": "signing"}}
    s.store = Store()
    s.store.minted = scan.canary("mi-").decode()
    s.scanner.add("minted", s.store.minted.encode())
    s.o = {h: s.add(h, s.store) for h in (ONE, FREE, WILD, NARROW, DOWN, LOGIN, SIGNED, MESSAGES, AWAITED)}
    s.clear = origin.Origin(t, s.d.ca, ONE, s.store, tls=False)
    s.d.resolve[ONE + ":80"] = s.clear.address
    s.d.resolve[ONE + ":8443"] = s.o[ONE].address
    s.new = NewStore()
    s.h2 = h2_frames.FrameOrigin(t, s.d.ca, NEW, s.new)
    s.d.origin(NEW, s.h2)
    signs = {"hmac": {"key": "signer", "text": "{timestamp}", "headers": {"X-Signed": "{signature}"}}}
    rules = [{"allow": SIGNED + "/signed/**", "with": signs}, {"allow": SIGNED + "/late/**", "with": {"bearer": "late"}},
             {"allow": SIGNED + "/issue/**", "with": signs, "capture": {"token": "issued"}},
             {"allow": MESSAGES + "/mcp/**", "with": signs, "mcp": {"tools": ["look"]}},
             {"allow": ONE + "/a/**", "with": {"bearer": "alpha"}},
             {"allow": ONE + "/b/**", "with": {"basic": {"user": "u", "password": "beta"}}},
             {"allow": ONE + "/profile/**", "websocket": True}, {"allow": ONE + "/parts/**", "ranges": True},
             {"allow": "http://" + ONE + "/**"}, {"allow": ONE + ":8443/**"},
             {"allow": NEW + "/a/**", "with": {"bearer": "alpha"}}, {"allow": NEW + "/profile/**"},
             {"allow": ".wild.example.com/a/**", "with": {"bearer": "gamma"}}, {"allow": NARROW + "/open/**"},
             {"allow": DOWN + "/a/**", "with": {"bearer": "gone"}}, {"allow": DOWN + "/open/**"},
             {"allow": LOGIN + "/auth/**", "with": {"bearer": "login"}, "capture": {"token": "minted"}},
             {"allow": AWAITED + "/v1/**", "with": {"bearer": "minted"}}, {"allow": AWAITED + "/other/**", "with": {"bearer": "awaited"}},
             {"allow": LOGIN + "/v1/**", "with": {"bearer": "minted"}}, {"allow": LOGIN + "/open/**"},
             {"allow": FREE + "/**"}]
    s.rules[:0] = rules
    s.env["MINTED"] = "{{placeholder minted}}"
    return s


def from_another_life(t, s, gate):
    """What an origin was left before this injector began, which has had none of it yet."""
    alpha, beta = s.values["alpha"], s.values["beta"]
    s.store.left[:] = [alpha + b" " + beta]
    for what, path in (("the rule of one of them", "/a/raw"), ("a rule without a credential", "/profile/raw")):
        r = gate.get(ONE, path)
        t.eq((r.status, r.body), (200, b"<" + mark(len(alpha), "alpha") + b" " + mark(len(beta), "beta") + b">"),
             "C1 from before this injector: neither comes back by %s" % what)
    s.store.left.clear()


def by_path(t, s, gate):
    """What /a left, every other way of asking shows without it."""
    alpha, beta = s.values["alpha"], s.values["beta"]
    pair = base64.b64encode(b"u:" + beta)
    gate.get(ONE, "/a/put", method="POST", body=b"1")
    gate.get(ONE, "/b/put", method="POST", body=b"2")
    forms = each(alpha, b"\\u%04x") + b" " + alpha.hex().encode() + b" " + base64.b64encode(b"x" + beta)
    s.store.left.append(b"kept " + forms + b" " + alpha + beta)
    left = b"<" + b"\n".join(s.store.left) + b">"
    for what, ask in (("a rule without a credential", lambda: gate.get(ONE, "/profile/raw")),
                      ("a rule with another credential", lambda: gate.get(ONE, "/b/raw")),
                      ("the rule itself", lambda: gate.get(ONE, "/a/raw")),
                      ("another port", lambda: gate.get(ONE, "/x/raw", port=8443)),
                      ("http://", lambda: clear(gate))):
        r = ask()
        whole = r.raw + r.body
        t.ok(r.status == 200 and len(r.body) == len(left) and r.body.startswith(b"<Bearer [REDACTED:alpha]") and
             not any(x in whole for x in (alpha, beta, pair, alpha.hex().encode(), each(alpha, b"\\u%04x"))),
             "C1 by %s: neither secret comes back, in no form, in field or body" % what, r.raw, r.body)
        t.ok(b"[REDACTED:beta]" in r.body, "C1 by %s: the mark says whose it was" % what, r.body)
    s.store.left.append(alpha)
    with gate.tls(ONE) as st:
        r = st.ask("GET /profile/trailer HTTP/1.1\r\nHost: %s\r\nTE: trailers\r\nConnection: TE\r\n\r\n" % ONE)
    t.ok(r.body == b"body" and alpha not in r.raw + r.trailers and b"REDACTED" in r.trailers,
         "C1 in trailers", repr(r.trailers))
    r = gate.get(ONE, "/profile/interim")
    t.ok(r.body == mark(len(alpha), "alpha") and not r.interim, "C1 an interim reply goes nowhere", r.raw)
    done = s.d.wait_records(9, "completed", code="secret_reflected")
    t.eq(len(done), 9, "C1 each is on record: secret_reflected")


def clear(gate):
    with gate.plain() as st:
        return st.ask("GET http://%s/x/raw HTTP/1.1\r\nHost: %s\r\n\r\n" % (ONE, ONE))


def by_version(t, s, gate):
    alpha = s.values["alpha"]
    gate.get(NEW, "/a/put")
    t.eq(s.new.left, [b"Bearer " + alpha], "the HTTP/2 origin has it")
    want = b"Bearer " + mark(len(alpha), "alpha")
    r = gate.get(NEW, "/profile/raw")
    t.eq((r.status, r.body, r.get("x-left")), (200, want, want.decode()), "C1 from HTTP/2 to HTTP/1")
    with h2.H2(gate, NEW) as c:
        a = c.ask("/profile/raw")
        t.eq((a.status, a.body, a.get("x-left"), dict(a.trailers or [])),
             (200, want, want.decode(), {"x-left": want.decode()}), "C1 from HTTP/2 to HTTP/2")
    with h2.H2(gate, ONE) as c:
        a = c.ask("/profile/raw")
        t.ok(a.status == 200 and alpha not in a.body and b"REDACTED:alpha" in a.body,
             "C1 from HTTP/1 to HTTP/2", a.body)


def by_socket(t, s, gate):
    alpha = s.values["alpha"]
    s.store.left.append(alpha)
    with gate.tls(ONE) as st:
        st.send("GET /profile/socket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % ONE)
        r = st.head()
        got, op = b"", 0
        while op != 8:  # fragments of one message, then the close
            op, n = st.exact(2)
            op &= 15
            piece = st.exact(n)
            got += piece if op != 8 else b""
    t.eq((r.status, got), (101, mark(len(alpha), "alpha")), "C1 C20 a message of a WebSocket without a credential")


def by_pattern(t, s, gate):
    gamma = s.values["gamma"]
    gate.get(WILD, "/a/put")
    r = gate.get(NARROW, "/open/raw")
    t.ok(r.status == 200 and gamma not in r.raw + r.body and b"REDACTED:gamma" in r.body,
         "C1 a name that got nothing, below a pattern that sends", r.body)


def what_it_costs(t, s, gate):
    """Codings and ranges, where the host gets a secret and where it gets none."""
    r = gate.get(ONE, "/profile/coded", "Accept-Encoding: gzip\r\n")
    t.eq((r.status, r.code, s.o[ONE].requests[-1].get("accept-encoding")), (502, "cannot_scrub", "identity"),
         "C13 identity is asked for, another coding is 502")
    r = gate.get(FREE, "/coded", "Accept-Encoding: gzip\r\n")
    t.eq((r.status, s.o[FREE].requests[-1].get("accept-encoding")), (200, "gzip"), "C13 benign: elsewhere it passes")
    for host, path, want in ((ONE, "/profile/part", (206, "bytes=0-49161")), (ONE, "/parts/part", (206, "bytes=0-9")),
                             (FREE, "/part", (206, "bytes=0-9"))):
        r = gate.get(host, path, "Range: bytes=0-9\r\n")
        t.eq((r.status, s.o[host].requests[-1].get("range")), want, "C14 Range to %s%s" % (host, path))
    r = gate.get(ONE, "/profile/echo", "Cookie: a=1\r\nAuthorization: Bearer mine\r\n")
    last = s.o[ONE].requests[-1]
    t.eq((r.status, last.get("cookie"), last.get("authorization")), (200, "a=1", "Bearer mine"),
         "the client's own cookies and credentials pass as ever")


def packed(t, s, gate):
    """Objects that lie there as gzip, where there is nothing that one could hold: what signs never leaves the vault, and
    the other secret of that host is not there yet."""
    late = os.path.join(s.d.dir, "conf", "secret-late")
    os.rename(late, late + ".kept")
    r = gate.get(SIGNED, "/signed/packed")
    last = s.o[SIGNED].requests[-1]
    t.eq((r.status, r.get("content-encoding"), r.body, last.get("accept-encoding")), (200, "gzip", PACKED, "identity"),
         "C13 benign: where only a key that signs goes a coded reply comes as it is")
    for host, path, what in ((SIGNED, "/issue/packed", "what is to be captured"), (MESSAGES, "/mcp/packed", "messages of MCP")):
        r = gate.get(host, path)
        t.eq((r.status, r.code), (502, "cannot_scrub"), "C13 %s cannot be read so" % what)
    with gate.tls(SIGNED) as st:
        st.send("GET /signed/packing HTTP/1.1\r\nHost: %s\r\n\r\n" % SIGNED)
        st.head()
        st.until(PACKED[:9] + b"\r\n")
        os.rename(late + ".kept", late)

        def sent():
            gate.get(SIGNED, "/late/see")
            return s.o[SIGNED].requests[-1].get("authorization") == "Bearer " + s.values["late"].decode()
        t.ok(tap.wait_for(sent, 10, 0.2), "that one is there, and is sent")
        s.store.more.set()
        rest = st.rest()
    end = s.d.wait_records(1, "aborted", id=s.d.kinds("admitted", path="/signed/packing")[0]["id"])
    t.eq((rest, [x["code"] for x in end]), (b"", ["cannot_scrub"]), "C13 but not beyond the moment at which the host gets another")
    r = gate.get(SIGNED, "/signed/packed")
    t.eq((r.status, r.code), (502, "cannot_scrub"), "C13 nor later")


def not_to_be_had(t, s, gate):
    os.unlink(os.path.join(s.d.dir, "conf", "secret-gone"))
    before = len(s.o[DOWN].requests)
    r = gate.get(DOWN, "/open/raw")
    t.eq((r.status, r.code, len(s.o[DOWN].requests)), (200, None, before + 1),
         "C11 a secret that was never had takes its host from nobody")


def rotated(t, s, gate):
    """The secret gets another value while a reply is on its way: both are searched for."""
    old, fresh = s.values["alpha"], scan.canary("al-")
    s.scanner.add("fresh", fresh)
    s.store.left[:] = [old]
    with gate.tls(ONE) as st:
        st.send("GET /profile/slow HTTP/1.1\r\nHost: %s\r\n\r\n" % ONE)
        r = st.head()
        st.until(b"begun\n\r\n")
        with open(s.path, "wb") as f:
            f.write(fresh)

        def sent():
            s.o[ONE].requests.clear()
            gate.get(ONE, "/a/see")
            return s.o[ONE].requests[-1].get("authorization") == "Bearer " + fresh.decode()
        t.ok(tap.wait_for(sent, 10, 0.2), "the new value is sent")
        s.store.left.append(fresh)
        s.store.go.set()
        st.body(r)
    t.eq(r.body, mark(len(old), "alpha") + b"\n" + mark(len(fresh), "alpha") + b"\n",
         "C1 the old value and the new one, in a reply that was under way")
    r = gate.get(ONE, "/profile/raw")
    t.ok(old not in r.body and fresh not in r.body, "C1 and in one that was asked for later", r.body)


def outlived(t, s, a, sid):
    """A sandbox takes out so many new values that the one which its request went with is remembered no more."""
    sent = s.store.minted
    got = a.sh(sid, ("curl -sSN https://{0}/v1/mirror -H \"Authorization: Bearer $MINTED\" >/tmp/mirror & "
                     "until grep -q begun /tmp/mirror; do sleep 0.05; done; "
                     "for i in 1 2 3 4 5 6 7; do curl -sS https://{0}/auth/another; done; curl -sS https://{0}/open/turn; "
                     "wait; cat /tmp/mirror").format(LOGIN))[1].decode()
    asked = [q.get("authorization") for q in s.o[LOGIN].requests if q.path.endswith("/mirror")]
    t.eq(asked, ["Bearer " + sent], "a request goes with a captured value (control)")
    t.ok(got.endswith("begun\nBearer " + mark(len(sent), "minted").decode()) and sent not in got,
         "C1 what a request went with is found in its reply, after seven other values", got)


def overtaken(t, s, a, sid):
    """The same before it has left: its host gets another secret, too, which is still awaited."""
    sent, got, more = s.store.minted, [], api.Api(s.d.socket)
    work = threading.Thread(target=lambda: got.append(more.sh(
        sid, "curl -sS https://%s/v1/told -H \"Authorization: Bearer $MINTED\"" % AWAITED)[1].decode()))
    work.start()
    t.ok(tap.wait_for(lambda: os.path.exists(s.wait[0]), 20, 0.05), "a request waits for another secret of its host (control)")
    a.sh(sid, "for i in 1 2 3 4 5 6 7; do curl -sS https://%s/auth/another; done" % LOGIN)
    open(s.wait[1], "w").close()
    work.join()
    more.close()
    t.eq(s.o[AWAITED].requests[-1].get("authorization"), "Bearer " + sent, "it goes with what was there when it asked (control)")
    t.eq(got, ["Bearer " + mark(len(sent), "minted").decode()], "C1 and that is found in its reply")


def captured(t, s):
    """A minted secret comes back by a rule without a credential, to another sandbox, and after a new
    injector came."""
    a, minted, out = api.Api(s.d.socket), s.store.minted.encode(), []
    one, other = (a.create(policy="coder")["id"] for _ in range(2))

    def ask(sid, path):
        got = a.sh(sid, "curl -sS https://%s%s" % (LOGIN, path))
        out.append(got[1])
        return got[1].decode()

    def shown(what):
        for sid, who in ((one, "the sandbox that captured it"), (other, "another one")):
            t.eq(ask(sid, "/open/minted"), "again: " + mark(len(minted), "minted").decode(),
                 "C24 a captured secret, to %s%s" % (who, what))
    t.ok("token" in ask(one, "/auth/token"), "the sandbox gets a placeholder", out[-1])
    shown("")
    outlived(t, s, a, one)
    overtaken(t, s, a, one)
    minted = s.store.minted.encode()
    (pid,) = [r["pid"] for r in a.ask("GET", "/v1/status")["roles"] if r["role"] == "injector"]
    os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: [r for r in a.ask("GET", "/v1/status")["roles"]
                               if r["role"] == "injector" and r["pid"] != pid], 10, 0.1), "a new injector")
    tap.wait_for(lambda: "Durward" not in ask(other, "/open/echo"), 10, 0.2)
    shown(", by a new injector")
    for sid in (one, other):
        a.delete(sid)
    a.close()
    s.clean(out, what="captured")


def main(t):
    h2.needed()
    s = scene_of(t)
    address = s.listener()
    s.d.save()
    said = [s.d.command("explain", "-c", s.d.conf, "GET", "https://%s/profile/x" % h).stdout for h in (ONE, FREE)]
    t.ok("searched:   for alpha, beta" in said[0] and "one part is widened, searched and cut" in said[0] and "searched" not in said[1],
         "explain says what a reply is searched for", *said)
    s.d.serve()
    gate = s.gate(address)
    a = api.Api(s.d.socket)
    told = [a.ask("POST", "/v1/explain", {"method": "GET", "url": "https://%s/profile/x" % h}) for h in (ONE, FREE)]
    t.eq([(x.get("searched_for"), x.get("ranges")) for x in told], [("alpha, beta", False), (None, None)], "and so does the API")
    cli = s.d.command("explain", "-c", s.d.conf, "--json", "GET", "https://%s/profile/x" % ONE).stdout
    t.eq(told[0], json.loads(cli), "in the words of the command")
    for part in (from_another_life, by_path, by_version, by_socket, by_pattern, what_it_costs, packed, not_to_be_had, rotated):
        t.part(part, t, s, gate)
    t.part(captured, t, s)
    s.clean(what="by origin")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
