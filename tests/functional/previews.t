#!/usr/bin/python3 -B
"""Services and previews: what listens in a sandbox is seen from outside at a name of its own, by who has a link or
token; by no page of another preview, at no other name, and never the API or the console. Each request is on record
as inbound."""
import base64
import hashlib
import http.client
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, h2, scene, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

BASE = "/v1/sandboxes"
FIELD, COOKIE = "Durward-Preview-Token", "durward-preview"
SESSIONS, CALLERS = 128, 256  # proxy/gate/inbound.h, porter.h
GUESSES = 2200  # records that are more than the share of `made_again`
SERVICE = r"""
import base64, hashlib, http.server, json, socketserver, struct, sys
HOST = ""
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def answer(self):
        if self.headers.get("upgrade", "").lower() == "websocket":
            return self.echo()
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        said = b"y" * (4 << 20) if self.path == "/big" else json.dumps({
            "path": self.path, "method": self.command, "sum": hashlib.sha256(body).hexdigest(),
            "headers": [[k.lower(), v] for k, v in self.headers.items()]}).encode()
        self.send_response(500 if self.path == "/sick" else 200)
        if self.path == "/cookies":
            host = self.headers["host"].split(":")[0]
            for c in ("a=1; Path=/", "b=2; Domain=preview.localhost", "c=3; domain=." + host, "d=4; Domain=localhost",
                      "durward-preview=stolen", "e=5; Path=/; Domain = preview.localhost ; Secure"):
                self.send_header("Set-Cookie", c)
            self.send_header("Clear-Site-Data", '"cookies"')
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer
    def echo(self):
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         b"Sec-WebSocket-Accept: " + base64.b64encode(hashlib.sha1(key.encode()).digest()) + b"\r\n\r\n")
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(head[1] & 127)))
            self.wfile.write(bytes([0x81, len(data)]) + data)
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
S(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
"""


class Preview:
    """What the API answered, and asking it."""

    def __init__(self, c, box, service="web", **more):
        self.v = c.ask("POST", BASE + "/%s/previews" % box, dict({"service": service}, **more))
        self.url, self.link, self.token = self.v["url"], self.v["link"], self.v["token"]
        self.host = urllib.parse.urlsplit(self.url).netloc
        self.port = int(self.host.rpartition(":")[2])

    def ask(self, path="/", method="GET", body=None, host=None, token=False, cookie=None, conn=None, **headers):
        """-> (status, headers, bytes, code)"""
        fields = {k.replace("_", "-"): v for k, v in headers.items()}
        fields["Host"] = host or self.host
        if token:
            fields[FIELD] = self.token if token is True else token
        if cookie:
            fields["Cookie"] = cookie
        own = conn or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own.request(method, path, body, fields)
        r = own.getresponse()
        data = r.read()
        if conn is None:
            own.close()
        return r.status, r.headers, data, r.headers.get("X-Proxy-Error", "").rpartition(" ")[2]

    def code(self, *args, **kw):
        r = self.ask(*args, **kw)
        return r[0], r[3]

    def follow(self):
        """The link, as a browser opens it: -> the cookie."""
        r = self.ask("/?" + self.link.partition("?")[2])
        return r[1]["Set-Cookie"].partition(";")[0] if r[0] == 303 else None

    def raw(self, data, n=1 << 16):
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(data)
            got = b""
            try:
                while True:
                    part = s.recv(n)
                    if not part:
                        return got
                    got += part
            except OSError:
                return got


def said(r):
    """What the service saw: its JSON."""
    return json.loads(r[2])


def fields_of(r, name):
    return [v for k, v in said(r)["headers"] if k == name]


def serving(t, c, p, box, port=8000):
    c.sh(box, "cat > service.py <<'E'\n%s\nE\n(python3 service.py %d >/dev/null 2>&1 &)" % (SERVICE, port))
    t.ok(tap.wait_for(lambda: tried(p, token=True)[0] == 200, 15, 0.1), "a service of a sandbox is seen from outside",
         p.ask(token=True))


def links(t, s, c, p):
    query = p.link.partition("?")[2]
    r = p.ask("/app?a=1&%s&b=%%2F" % query)
    cookie = r[1].get("Set-Cookie", "")
    t.eq((r[0], r[1].get("Location"), r[1].get("Referrer-Policy"), r[1].get("Cache-Control")),
         (303, p.url + "app?a=1&b=%2F", "no-referrer", "no-store"), "a link's token is taken out of the address")
    attributes = {x.strip().lower() for x in cookie.split(";")[1:]}
    t.eq((cookie.partition("=")[0], attributes), (COOKIE, {"path=/", "httponly", "samesite=lax"}),
         "for a cookie of this name only, which no script reads")
    mine = cookie.partition(";")[0]
    t.eq(p.code("/?" + query), (401, "preview_login"), "it is good once")
    r = p.ask("/app?" + query, cookie=mine)
    t.eq((r[0], r[1].get("Location"), r[1].get("Set-Cookie")), (303, p.url + "app", None),
         "whoever has the cookie is led from it to the address")
    r = p.ask("/x?y=1", cookie="other=1; %s; more=2" % mine, X_Forwarded_For="1.2.3.4", Forwarded="for=1.2.3.4",
              X_Forwarded_Host="evil.example", X_Real_IP="1.2.3.4", Authorization="Bearer app")
    t.eq((r[0], said(r)["path"], fields_of(r, "cookie"), fields_of(r, "host"), fields_of(r, "authorization")),
         (200, "/x?y=1", ["other=1; more=2"], [p.host], ["Bearer app"]),
         "the service sees its name and the user's own fields, and not the cookie")
    t.eq((fields_of(r, "x-forwarded-for"), fields_of(r, "forwarded"), fields_of(r, "x-real-ip"),
          fields_of(r, "x-forwarded-host"), fields_of(r, "x-forwarded-proto")), ([], [], [], [p.host], ["http"]),
         "what a client says of where it comes from is taken off")
    out = s.d.command("sandbox", "preview", p.host.partition("--")[2].partition(".")[0], "web", "--socket", s.d.socket)
    t.ok(out.stdout.startswith(p.url + "?durward-preview=pl-") and FIELD in out.stderr, "durward sandbox preview", out)
    again = Preview(c, p.v["url"].partition("--")[2].partition(".")[0])
    t.eq((again.ask("/?" + again.link.partition("?")[2], method="HEAD")[0],
          again.code("/?" + again.link.partition("?")[2], Sec_Purpose="prefetch")[0], again.follow() is not None),
         (401, 401, True), "who only looks ahead does not use a link up")
    short = Preview(c, p.v["url"].partition("--")[2].partition(".")[0], ttl=1)
    there = short.follow()
    t.ok(short.ask(cookie=there)[0] == 200, "a cookie of one second")
    t.ok(tap.wait_for(lambda: short.code(cookie=there) == (401, "preview_login"), 5, 0.2), "ends")
    t.ok(tap.wait_for(lambda: short.code(token=True) == (401, "preview_login"), 5, 0.2), "as its token does")
    return mine


def tokens(t, p, other, admin):
    r = p.ask("/t", token=True)
    t.eq((r[0], fields_of(r, FIELD.lower())), (200, []), "a program shows a token in a field, which goes no further")
    for name, token in (("none", False), ("a wrong one", "pt-" + "a" * 26), ("a link's", p.link.partition("=")[2]),
                        ("another sandbox's", other.token), ("another service's", admin.token), ("a long one", "x" * 300),
                        ("an empty one", " ")):
        t.eq(p.code(token=token), (401, "preview_login"), "%s is not let in" % name)
    t.eq(p.code(cookie=COOKIE + "=" + p.token), (401, "preview_login"), "nor is a token in a cookie")
    t.eq(p.raw(b"GET / HTTP/1.1\r\nHost: %s\r\n%s: %s\r\n%s: x\r\n\r\n" % (
        p.host.encode(), FIELD.encode(), p.token.encode(), FIELD.encode())).split(b" ")[1], b"401", "nor are two")
    t.eq(p.code("/?durward-preview=%s&durward-preview=%s" % (p.token, p.token))[0], 401, "nor a parameter twice")


def names(t, s, p, other, mine):
    """Host header games, and what a name that was rebound reaches."""
    domain = "preview.localhost:%d" % p.port
    for host in ("127.0.0.1:%d" % p.port, "localhost:%d" % p.port, domain, "evil.example", "evil.example:%d" % p.port,
                 "web--sb-aaaaaaaaaaaaaaaaaaaaaaaaaa." + domain, "x" + p.host, p.host.replace("web--", "web-"),
                 p.host.replace("web--", "none--"), p.host.replace("web--", "--"), p.host.partition(":")[0],
                 p.host + ".evil.example", p.host.replace(".preview", ".preview.evil"), "a." + p.host):
        t.eq(p.code(host=host, token=True), (404, "preview_unknown"), "%s is nobody's" % host)
    t.eq(p.ask(host=p.host.upper(), token=True)[0], 200, "a name in capitals is the same")
    conn = http.client.HTTPConnection("127.0.0.1", p.port, timeout=10)
    t.eq(p.ask(token=True, conn=conn)[0], 200, "on one connection")
    t.eq(p.code(host=other.host, token=other.token, conn=conn), (421, "authority_mismatch"), "is one name only")
    line = b"GET / HTTP/1.1\r\n"
    auth = b"%s: %s\r\n\r\n" % (FIELD.encode(), p.token.encode())
    own, foreign = b"Host: %s\r\n" % p.host.encode(), b"Host: %s\r\n" % other.host.encode()
    for name, data in (("two hosts", line + own + foreign + auth), ("the same twice", line + own + own + auth),
                       ("a host folded", line + own + b" x: y\r\n" + auth),
                       ("absolute form", b"GET http://%s/ HTTP/1.1\r\n" % p.host.encode() + own + auth),
                       ("another's absolute form", b"GET http://127.0.0.1/ HTTP/1.1\r\n" + own + auth),
                       ("CONNECT", b"CONNECT %s HTTP/1.1\r\n" % p.host.encode() + own + auth),
                       ("no host", line + auth), ("no host in 1.0", b"GET / HTTP/1.0\r\n" + auth),
                       ("framed twice", b"POST / HTTP/1.1\r\n" + own + b"Content-Length: 1\r\n"
                        b"Transfer-Encoding: chunked\r\n" + auth + b"0\r\n\r\n")):
        got = p.raw(data)
        t.ok(got.startswith(b"HTTP/1.1 4") and b"200 OK" not in got, "%s is refused" % name, got[:200])
    console = int(s.console.rpartition(":")[2])
    for path in ("/", "/v1/status", "/login"):
        conn = http.client.HTTPConnection("127.0.0.1", console, timeout=10)
        conn.request("GET", path, headers={"Host": p.host.replace(str(p.port), str(console)), "Cookie": mine})
        got = conn.getresponse().status
        t.ok(got in (401, 403, 421), "the console does not answer to a preview's name: %s" % path, got)
    r = p.ask("/v1/status", token=True)
    t.eq((r[0], said(r)["path"]), (200, "/v1/status"), "at a preview's name the service answers, and no API")


def cross_site(t, p, other, mine):
    """What a browser says of who had it ask, with the cookie that it sends along."""
    own, foreign = p.url[:-1], other.url[:-1]
    for name, kw, want in (
            ("the preview's own page", dict(Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors"), 200),
            ("its user", dict(Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate"), 200),
            ("a program", {}, 200),
            ("its own form", dict(method="POST", body="x", Origin=own, Sec_Fetch_Site="same-origin"), 200),
            ("a link elsewhere", dict(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"), 200),
            ("another preview's picture", dict(Sec_Fetch_Site="same-site", Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="image"), 403),
            ("another preview's script", dict(Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors", Origin=foreign), 403),
            ("another preview's frame", dict(Sec_Fetch_Site="same-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe"), 403),
            ("another preview's form", dict(method="POST", body="x", Origin=foreign, Sec_Fetch_Site="same-site",
                                            Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"), 403),
            ("another site's form, its origin hidden", dict(method="POST", body="x", Origin="null"), 403),
            ("another site's form, without an origin", dict(method="POST", body="x", Sec_Fetch_Site="cross-site",
                                                            Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document"), 403),
            ("an old browser's script of another preview", dict(Origin=foreign), 403),
            ("an origin that only begins so", dict(Origin=own + "0"), 403),
            ("what no browser says", dict(Sec_Fetch_Site="same-planet"), 403)):
        r = p.ask("/c", cookie=mine, **kw)
        t.eq((r[0], r[3] == "preview_cross_site"), (want, want == 403), "asked for by %s" % name)
    t.eq(p.ask(token=True, Sec_Fetch_Site="cross-site", Origin=foreign)[0], 200, "a token is shown on purpose, wherever")
    tossed = COOKIE + "=tossed"
    t.eq([p.ask(cookie=x)[0] for x in (tossed + "; " + mine, mine + "; " + tossed, tossed)], [200, 200, 401],
         "a cookie that another preview tossed keeps nobody out, and lets nobody in")
    theirs = other.follow()
    t.eq((other.ask(cookie=theirs)[0], p.code(cookie=theirs)), (200, (401, "preview_login")),
         "one preview's cookie opens no other")
    r = p.ask("/cookies", cookie=mine)
    t.eq((sorted(x.split("=")[0] for x in r[1].get_all("Set-Cookie")), r[1].get("Clear-Site-Data")), (["a", "c"], None),
         "a service sets no cookie for other previews, none of ours, and clears none of theirs")


def accept_of(key):
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())


def shake(p, mine, origin):
    """A WebSocket -> its socket, the same to read from, and the answer's head."""
    s = socket.create_connection(("127.0.0.1", p.port), 10)
    s.sendall(("GET /ws HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nCookie: %s\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: %s\r\n\r\n" % (
                   p.host, mine, origin)).encode())
    f = s.makefile("rb")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = f.readline()
        if not line:
            break
        head += line
    return s, f, head


def websocket(t, p, mine, other):
    s, f, head = shake(p, mine, p.url[:-1])
    t.ok(head.startswith(b"HTTP/1.1 101") and accept_of("dGhlIHNhbXBsZSBub25jZQ==") in head, "a WebSocket", head)
    for text in (b"hello", b"again"):
        s.sendall(bytes([0x81, 0x80 | len(text)]) + b"abcd" + bytes(b ^ b"abcd"[i % 4] for i, b in enumerate(text)))
        head = f.read(2)
        t.eq(f.read(head[1]), text, "its frames go both ways")
    s.close()
    s, f, head = shake(p, mine, other.url[:-1])
    t.ok(head.startswith(b"HTTP/1.1 403"), "none that another preview's page opens", head)
    s.close()


class Clear(h2.H2):
    """HTTP/2 by prior knowledge, in clear."""

    def __init__(self, host, port):
        self.sock = self.stream = socket.create_connection(("127.0.0.1", port), 10)
        self.host, self.windows, self.timeout = host, True, 10
        self.encoder, self.decoder = h2.hpack.Encoder(), h2.hpack.Decoder()
        self.buf, self.next, self.answers = b"", 1, {}
        self.goaway, self.closed, self.settings, self.pongs = None, False, {}, 0
        self.keep = 8 << 20
        self.send(h2.PREFACE + self.raw(h2.SETTINGS, 0, 0))


def http2(t, p, other):
    h2.needed()
    show = [(FIELD.lower(), p.token)]
    with Clear(p.host, p.port) as c:
        many = [c.get("/%d" % i, scheme="http", extra=show) for i in range(20)]
        got = [c.answer(x) for x in many]
        t.eq([(a.status, json.loads(a.body)["path"]) for a in got], [(200, "/%d" % i) for i in range(20)],
             "HTTP/2: twenty requests on one connection")
        big = c.answer(c.get("/big", scheme="http", extra=show), 20)
        t.eq((big.status, big.length or len(big.body)), (200, 4 << 20), "and 4 MiB")
        t.eq(c.answer(c.get("/", scheme="http")).status, 401, "without a token it is refused")
        t.eq(c.answer(c.get("/", scheme="http", extra=show, authority=other.host)).status, 421,
             "as is another name on the same connection")
        t.eq(c.answer(c.get("/", scheme="ftp", extra=show)).status, 400, "and another scheme")
    with Clear("evil.example", p.port) as c:
        c.get("/", scheme="http", extra=show)
        t.ok(c.ended(), "a name that is nobody's: the connection ends")
    for name, data in (("a frame that never ends", h2.PREFACE + struct.pack("!LBL", 0x00ffff01, 5, 1)[:9] + b"\x41" * 20000),
                       ("no authority", h2.PREFACE + h2.H2.raw(1, 5, 1, b"\x82\x86\x84")),
                       ("a block that cannot be read", h2.PREFACE + h2.H2.raw(1, 5, 1, b"\xff\xff\xff\xff\xff\xff")),
                       ("a name in two frames", h2.PREFACE + h2.H2.raw(1, 1, 1, b"\x82")),
                       ("padding beyond the frame", h2.PREFACE + h2.H2.raw(1, 13, 1, b"\xff\x82")),
                       ("a preface alone that is cut", h2.PREFACE[:20] + b"xxxx\r\n\r\n")):
        t.ok(b"200" not in p.raw(data), "HTTP/2: %s is nobody's" % name)
    t.eq(p.ask(token=True)[0], 200, "and the listener goes on")


def services(t, s, c, box, off):
    got = {x["name"]: x for x in c.ask("GET", BASE + "/%s/services" % box)["services"]}
    t.eq({k: (v["port"], v["health"], v["state"]) for k, v in got.items()},
         {"web": (8000, "tcp", "healthy"), "app": (8000, "/ok?x=1", "healthy"), "sick": (8000, "/sick", "unhealthy"),
          "gone": (8009, "tcp", "closed"), "admin": (8001, "tcp", "closed")}, "services and their health")
    t.ok("status 500" in got["sick"]["detail"] and got["web"]["preview"].startswith("http://web--" + box), "with why", got)
    r = s.d.command("sandbox", "services", box, "--json", "--socket", s.d.socket)
    t.eq({x["name"] for x in json.loads(r.stdout)}, set(got), "by the command line, as JSON")
    r = s.d.command("sandbox", "services", box, "--socket", s.d.socket)
    t.ok("unhealthy" in r.stdout and "closed" in r.stdout, "and as a table", r)
    t.eq(api.refused(c.ask, "POST", BASE + "/%s/previews" % off, {"service": "8000"}), (404, "preview_not_found"),
         "off by default: a policy that does not say so has no previews")
    for service in ("none", "0", "65536", "08", "web--x", "", "WEB", 0, 65536, None, ["web"]):
        got = api.refused(c.ask, "POST", BASE + "/%s/previews" % box, {"service": service})
        t.ok(got in ((404, "preview_not_found"), (400, "bad_request")), "there is no service %r" % (service,), got)
    p = Preview(c, box, 8000)
    t.eq((p.host.partition("--")[0], p.ask(token=True)[0]), ("8000", 200), "any port of it by its number")
    quiet = Preview(c, box, "gone")
    t.eq(quiet.ask(token=True)[0], 502, "nothing listens: 502")


def bounds(t, p, other):
    """One sandbox's connections, and those whose name nobody knows yet."""
    held = []
    head = ("GET / HTTP/1.1\r\nHost: %s\r\nX: " % p.host).encode()
    try:
        for _ in range(SESSIONS + 20):
            s = socket.create_connection(("127.0.0.1", p.port), 5)
            s.sendall(head)
            held.append(s)

        t.ok(tap.wait_for(lambda: len(select.select(held, (), (), 0)[0]) >= 20, 5, 0.05),
             "beyond %d of one sandbox connections end" % SESSIONS)
        t.ok(len(select.select(held, (), (), 0)[0]) <= 22, "and only those")
        t.eq(other.ask(token=True)[0], 200, "another sandbox's preview is seen meanwhile")
    finally:
        for s in held:
            s.close()
    t.ok(tap.wait_for(lambda: seen(p), 10, 0.2), "and its own when they are gone")
    silent = [socket.create_connection(("127.0.0.1", p.port), 5) for _ in range(CALLERS + 40)]
    t.eq(p.ask(token=True)[0], 200, "behind %d that say nothing a name is heard" % len(silent))
    t.ok(tap.wait_for(lambda: len(select.select(silent, (), (), 0)[0]) >= 40, 3, 0.1),
         "who says nothing for longest gives way")
    for s in silent:
        s.close()


def tried(p, **kw):
    """As code(); (0, "") where nobody answers."""
    try:
        return p.code(**kw)
    except (OSError, http.client.HTTPException):
        return 0, ""


def seen(p):
    return tried(p, token=True)[0] == 200


def recorded(t, d, p, mine):
    p.ask("/secret-path?key=1", token=True)
    pair = d.wait_records(1, "admitted", entry="inbound", path="/secret-path")
    t.ok(pair and pair[0]["authority"] == p.host and pair[0]["rule"] == "service web", "each request is on record as inbound", pair)
    t.ok(d.wait_records(1, "completed", status=200), "and its end")
    for code in ("preview_login", "preview_cross_site", "authority_mismatch"):
        t.ok(d.wait_records(1, "denied", code=code, entry="inbound", target="*--" + p.host.partition("--")[2]),
             "refusals are counted for all of a sandbox's services: %s" % code)
    t.ok(d.wait_records(1, "denied", code="preview_unknown"), "and those of names that are nobody's")
    t.ok(d.wait_records(1, "lifecycle", event="preview_opened"), "and who was given one")
    d.settle()
    found = [f for f in d.audit_files() for x in (p.token, mine.partition("=")[2]) if x.encode() in open(f, "rb").read()]
    t.eq(found, [], "no token and no cookie is in the log")


def lasts(t, d, c, box, p, mine):
    def roles(name):
        return [x for x, role in d.roles() if role == name]
    os.kill(roles("controller")[0], signal.SIGKILL)
    t.ok(tap.wait_for(lambda: tried(p, cookie=mine)[0] == 200, 15, 0.2), "a cookie outlives the controller")
    fresh = tap.wait_for(lambda: again(c, box), 10, 0.2)
    t.ok(fresh and seen(fresh), "which lets others in again")
    t.ok(tap.wait_for(lambda: tried(p, token="pt-" + "b" * 26) == (401, "preview_login"), 10, 0.2), "and nobody else")
    for pid in roles("gate"):
        os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: seen(fresh), 15, 0.2), "new gates serve the same tokens")
    t.eq(tried(p, cookie=mine), (401, "preview_login"), "a cookie ends with its gate")
    c.ask("POST", BASE + "/%s/stop" % box)
    t.eq(fresh.ask(token=True)[0], 502, "a request resumes a stopped sandbox, whose service does not run yet")
    t.eq(c.show(box)["state"], "running", "it runs")
    serving(t, c, fresh, box)
    c.delete(box)
    t.eq(fresh.code(token=True), (404, "preview_unknown"), "a deleted one's name is nobody's")


def again(c, box):
    try:
        return Preview(c, box)
    except (OSError, api.Refused, http.client.HTTPException):
        return None


def inside(t, s, c, box, p):
    """A sandbox reaches no preview, its own neither: the listener is one of ours, whatever a rule says."""
    r = c.sh(box, "curl -s -o /dev/null -w '%%{http_code}' --resolve %s:127.0.0.1 -H '%s: %s' http://%s/ ; "
             "curl -s -o /dev/null -w ' %%{http_code}' -x http://durward.internal:3128 -H '%s: %s' http://%s/" % (
                 p.host, FIELD, p.token, p.host, FIELD, p.token, p.host))
    t.ok("200" not in str(r) and "000" in str(r), "a sandbox reaches no preview", r)


def configuration(t, d):
    def refused(controller=None, sandbox=None):
        conf = d.config()
        conf["controller"] = dict(conf["controller"], **(controller or {}))
        conf["policies"]["coder"] = dict(conf["policies"]["coder"], sandbox=sandbox or {})
        r = d.check(json.dumps(conf))
        return r.returncode != 0
    bad = [dict(controller=x) for x in (
        {"preview": "127.0.0.1"}, {"preview": "10.0.0.1:80"}, {"preview": "127.0.0.1:1", "preview_url": "http://example.com"},
        {"preview": "127.0.0.1:1", "preview_url": "http://preview.localhost/"},
        {"preview": "127.0.0.1:1", "preview_url": "https://10.0.0.1"},
        {"preview": "127.0.0.1:1", "preview_url": "https://example.com", "https": "127.0.0.1:2", "name": "example.com"},
        {"preview": "127.0.0.1:1", "preview_url": "https://example.com", "https": "127.0.0.1:2", "name": "api.example.com"})]
    bad += [dict(sandbox={"services": x}) for x in (
        {"Web": 1}, {"1a": 1}, {"a--b": 1}, {"a-": 1}, {"a" * 32: 1}, {"a": 0}, {"a": 65536}, {"a": {}}, {"a": "80"},
        {"a": {"port": 1, "health": "ok"}}, {"a": {"port": 1, "health": "/a b"}}, {"a": {"port": 1, "x": 1}},
        {"a": {"port": 1, "health": "/" + "a" * 127}}, {"s%d" % i: 1 for i in range(17)}, [1])]
    t.eq([x for x in bad if not refused(**x)], [], "what cannot be is refused")
    good = [dict(controller={"preview": "10.0.0.1:80", "preview_url": "https://p.example.com"}),
            dict(controller={"preview": "127.0.0.1:1", "preview_url": "http://x.localhost:99"}),
            dict(controller={"preview": "127.0.0.1:1", "preview_url": "https://p.example.com:8443", "https": "127.0.0.1:2",
                             "name": "example.com"}),
            dict(sandbox={"previews": True, "services": {"a-b1": {"port": 80, "health": "/x?y"}}})]
    t.eq([x for x in good if refused(**x)], [], "what can be is taken")


def flood(p, n, seconds):
    """n requests with wrong tokens, by several connections -> how many were answered."""
    one = ("GET / HTTP/1.1\r\nHost: %s\r\n%s: pt-%s\r\n\r\n" % (p.host, FIELD, "a" * 26)).encode()
    ends, answered = time.monotonic() + seconds, [0] * 8

    def ask(i):
        while answered[i] < n // 8 and time.monotonic() < ends:
            with socket.create_connection(("127.0.0.1", p.port), 10) as s:
                f = s.makefile("rb")
                while answered[i] < n // 8 and time.monotonic() < ends:
                    s.sendall(one)
                    line, length = f.readline(), 0
                    if not line.startswith(b"HTTP/1.1 401"):
                        break
                    answered[i] += 1
                    while line not in (b"\r\n", b""):
                        line = f.readline()
                        length = int(line[15:]) if line[:15].lower() == b"content-length:" else length
                    f.read(length)
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    return sum(answered)


def guessed(t, s, c, box, p):
    """Who guesses writes as good as nothing of the log, and sets off no threshold of the sandbox's."""
    n = flood(p, 3000, 8)
    t.ok(n >= GUESSES, "a flood of guesses", n)
    r = c.sh(box, "curl -s -o /dev/null -w '%%{http_code}' -m 3 https://%s/" % scene.PLAIN)
    t.ok("200" in str(r), "the sandbox has its share of the log to itself", r)
    t.eq((c.show(box)["state"], c.show(box)["denied"]), ("running", []), "nor does a threshold end it; none is its own")
    return n


def counted(t, s, box, n):
    def records():
        return [x for x in s.d.records(kind="denied") if x.get("entry") == "inbound" and box in x["target"]]
    t.ok(tap.wait_for(lambda: sum(x.get("count", 1) for x in records()) == n, 15, 0.5), "each of them is counted",
         n, records())
    t.ok(len(records()) <= 6, "in few records", records())


def looks(p, mine):
    """A WebSocket, a request whose answer has not come, and a connection that waits for its next one."""
    ws, _, head = shake(p, mine, p.url[:-1])
    if not head.startswith(b"HTTP/1.1 101"):
        return None
    idle = http.client.HTTPConnection("127.0.0.1", p.port, timeout=10)
    if p.ask(cookie=mine, conn=idle)[0] != 200:
        return None
    return [ws, idle.sock]


def ended(open_ones):
    """They are closed from the other end."""
    return len(select.select(open_ones, (), (), 0)[0]) == len(open_ones) and all(not gone(s) for s in open_ones)


def gone(s):
    s.setblocking(False)
    try:
        return s.recv(1, socket.MSG_PEEK)
    except ConnectionError:
        return b""
    except BlockingIOError:
        return b"x"


def revoked(t, s, c, box, neighbour):
    p, app, number, port, other = [Preview(c, x, y) for x, y in (
        (box, "web"), (box, "app"), (box, 8000), (box, 9000), (neighbour, "web"))]
    link, mine, theirs, its = Preview(c, box), p.follow(), app.follow(), number.follow()
    seen_by = looks(p, mine) + looks(app, theirs) + looks(number, its)
    others_open = looks(other, other.follow())
    t.eq(len(seen_by), 6, "a WebSocket and a connection of a preview, by two names of the port and by its number")
    c.ask("DELETE", BASE + "/%s/previews/web" % box)
    t.ok(tap.wait_for(lambda: ended(seen_by), 5, 0.05), "revoked: what is open ends, a WebSocket too")
    t.eq([p.code(token=True), p.code(cookie=mine), link.code("/?" + link.link.partition("?")[2])],
         [(401, "preview_login")] * 3, "token, cookie and link are good no more")
    t.eq([app.code(cookie=theirs), app.code(token=True), number.code(cookie=its), number.code(token=True)],
         [(401, "preview_login")] * 4, "nor what was given out for its port by another name or by number")
    t.eq((port.ask(token=True)[0], other.ask(token=True)[0]), (502, 200),
         "another port's are (nothing listens there), and another sandbox's")
    t.eq(select.select(others_open, (), (), 0)[0], [], "and what is open of those stays")
    t.ok(s.d.wait_records(1, "lifecycle", event="preview_revoked", detail="web"), "it is on record")
    t.eq(c.ask("DELETE", BASE + "/%s/previews/web" % box), None, "again is no error")
    again = Preview(c, box)
    t.eq(again.ask(cookie=again.follow())[0], 200, "a new link lets in again")
    r = s.d.command("sandbox", "preview", "--revoke", box, "--socket", s.d.socket)
    t.ok((r.returncode, r.stdout) == (0, ""), "durward sandbox preview --revoke", r)
    t.eq([again.code(token=True)[0], port.code(token=True)[0], other.ask(token=True)[0]], [401, 401, 200], "ends those of all services of the sandbox, and no other's")
    for words in (["--revoke"], [box], ["--revoke", "--ttl", "1m", box], ["--revoke", box, "web", "more"]):
        r = s.d.command("sandbox", "preview", *words, "--socket", s.d.socket)
        t.ok(r.returncode == 2 and r.stdout == "" and "usage: " in r.stderr, "usage: %s" % words, r)
    t.eq([api.refused(c.ask, "DELETE", BASE + x) for x in ("/%s/previews/WEB" % box, "/%s/previews/%s" % (box, "a" * 32),
                                                           "/sb-%s/previews" % ("a" * 26))],
         [(400, "bad_request"), (400, "bad_request"), (404, "sandbox_not_found")], "what cannot be")


def reload(t, s, **sandbox):
    s.d.policies["coder"]["sandbox"] = sandbox
    s.d.save()
    t.eq(s.d.command("reload", "--socket", s.d.socket).returncode, 0, "a reload: %s" % sandbox)


def reloaded(t, s, c, box):
    """web moves to another port, app goes, then all of them."""
    p, app, port = Preview(c, box), Preview(c, box, "app"), Preview(c, box, 8000)
    cookies = [x.follow() for x in (p, app, port)]
    web_open, app_open, port_open = [looks(x, y) for x, y in zip((p, app, port), cookies)]
    reload(t, s, previews=True, services={"web": 8000, "app": 8000, "more": 9000})
    t.eq(select.select(web_open + app_open + port_open, (), (), 0.3)[0], [], "one that adds a name ends nothing")
    reload(t, s, previews=True, services={"web": 8000, "more": 9000})
    t.ok(tap.wait_for(lambda: ended(app_open), 5, 0.05), "a name is gone: what is open of it ends")
    t.eq((app.code(cookie=cookies[1]), app.code(token=True)), ((404, "preview_unknown"),) * 2, "it is nobody's")
    t.eq((select.select(web_open + port_open, (), (), 0)[0], p.ask(cookie=cookies[0])[0]), ([], 200), "the others' stay")
    reload(t, s, previews=True, services={"web": 8001, "app": 8000})
    t.ok(tap.wait_for(lambda: ended(web_open), 5, 0.05), "another port: what is open ends")
    t.eq((p.code(cookie=cookies[0]), p.code(token=True), app.code(token=True), app.code(cookie=cookies[1])),
         ((401, "preview_login"),) * 4, "who was let in to the old one is not let in to the new one, nor to a name that is back")
    fresh = Preview(c, box)
    t.eq((fresh.ask(token=True)[0], port.ask(cookie=cookies[2])[0]), (502, 200), "where nothing listens")
    reload(t, s, previews=False, services={"web": 8000})
    t.ok(tap.wait_for(lambda: ended(port_open), 5, 0.05), "previews are off: all that is open ends")
    t.eq((fresh.code(token=True), port.code(cookie=cookies[2])), ((404, "preview_unknown"),) * 2, "and no name is anybody's")
    reload(t, s, previews=True, services={"web": 8000})
    t.eq([x.code(token=True)[0] for x in (p, fresh, port)] + [port.code(cookie=cookies[2])[0]], [401] * 4,
         "on again: nothing of before is good")
    t.ok(seen(Preview(c, box)), "and new ones are")


def away(t, s, c, box):
    """What was reloaded while no controller was there."""
    p = Preview(c, box)
    mine = p.follow()
    there = looks(p, mine)
    pid = [x for x, role in s.d.roles() if role == "controller"][0]
    os.kill(pid, signal.SIGSTOP)
    s.d.policies["coder"]["sandbox"] = {"previews": True, "services": {"more": 9000}}
    s.d.save()
    s.d.daemon.send_signal(signal.SIGHUP)
    t.eq(select.select(there, (), (), 0.5)[0], [], "a controller that does nothing ends nothing")
    os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: ended(there), 15, 0.1), "the next one says what may be seen now: what is open ends")
    t.ok(tap.wait_for(lambda: tried(p, cookie=mine) == (404, "preview_unknown"), 15, 0.2), "and the cookie is no use")


def others(t):
    """A daemon with a small share of the log, of whose configuration more changes."""
    s = scene.Scene(t, name="o")
    s.d.extra["controller"] = dict(s.d.config()["controller"], preview="127.0.0.1:%d" % free_port())
    s.d.audit["rotate"] = {"compress": "none"}
    s.d.audit["share"] = {"burst": "1100KB", "per_minute": "1100KB"}
    s.d.audit["notify"] = {"when": [{"denied": 200, "within": "1m", "then": "kill"}, {"hosts": 2, "within": "1m", "then": "kill"}]}
    s.d.policies["coder"]["sandbox"] = {"previews": True, "services": {"web": 8000, "app": 8000}}
    s.d.serve()
    c = api.Api(s.d.socket)
    box, neighbour = c.create(policy="coder")["id"], c.create(policy="coder")["id"]
    n = guessed(t, s, c, neighbour, Preview(c, neighbour))
    serving(t, c, Preview(c, box), box)
    serving(t, c, Preview(c, neighbour), neighbour)
    t.part(revoked, t, s, c, box, neighbour)
    t.part(reloaded, t, s, c, box)
    t.part(away, t, s, c, box)
    t.part(counted, t, s, neighbour, n)
    c.close()
    t.eq(s.d.stop(), 0, "that daemon ends well")


def early(t):
    """The controller may speak to a gate before the parent has said what that gate is: in daemons that have just begun, seen in one of
    ten. Who is not heard then has no previews."""
    deaf = []
    for i in range(30):
        d = durward.Durward(t, "early%d" % i)
        d.extra["controller"] = dict(d.config()["controller"], preview="127.0.0.1:%d" % free_port())
        d.policies["coder"] = {"rules": [], "sandbox": {"previews": True, "services": {"web": 8000}}}
        d.serve()
        c = api.Api(d.socket)
        for box in [c.create(policy="coder")["id"] for _ in range(3)]:
            if not tap.wait_for(lambda: tried(Preview(c, box), token=True)[0] != 0, 2, 0.05):  # no service is there yet, and that is said
                deaf.append((i, box))
        c.close()
        d.stop()
    t.eq(deaf, [], "each of three sandboxes of thirty daemons hears what may be seen of it")


def main(t):
    s = scene.Scene(t)
    port, s.console = free_port(), "127.0.0.1:%d" % free_port()
    s.d.extra["controller"] = dict(s.d.config()["controller"], preview="127.0.0.1:%d" % port)
    s.d.listen.append({"console": s.console})
    s.d.policies["off"] = {"rules": s.rules}
    s.rule(allow="http://127.0.0.1:%d" % port)
    s.rule(allow="http://.preview.localhost:%d" % port)
    s.d.policies["coder"]["sandbox"] = {"previews": True, "services": {
        "web": 8000, "app": {"port": 8000, "health": "/ok?x=1"}, "sick": {"port": 8000, "health": "/sick"},
        "gone": {"port": 8009, "health": "tcp"}, "admin": 8001}}
    s.d.serve()
    c = api.Api(s.d.socket)
    box = c.first(policy="coder")
    neighbour, off = c.create(policy="coder")["id"], c.create(policy="off")["id"]
    p, other = Preview(c, box), Preview(c, neighbour)
    serving(t, c, p, box)
    serving(t, c, other, neighbour)
    mine = links(t, s, c, p)
    t.part(tokens, t, p, other, Preview(c, box, "admin"))
    t.part(names, t, s, p, other, mine)
    t.part(cross_site, t, p, other, mine)
    t.part(websocket, t, p, mine, other)
    t.part(http2, t, p, other)
    t.part(services, t, s, c, box, off)
    t.part(inside, t, s, c, box, p)
    t.part(bounds, t, p, other)
    t.part(recorded, t, s.d, p, mine)
    t.part(lasts, t, s.d, c, box, p, mine)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.part(configuration, t, s.d)
    t.part(others, t)
    t.part(early, t)


tap.run(main, timeout=240)
