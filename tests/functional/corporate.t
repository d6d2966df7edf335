#!/usr/bin/python3 -B
"""Durward behind a proxy of the operator's own network: tinyproxy, an https one, and one that lies."""
import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, origin, proxy, scan, scene, shapes, tap  # noqa: E402

DEEP, CLEAR, BIG = "deep.corp.example", "clear.corp.example", "big.corp.example"
PROXY_NAME = "proxy.corp.example"
SIZE = 16 << 20


def basic(user, password):
    return "Basic " + base64.b64encode(user.encode() + b":" + password).decode()


class Office:
    """A scene whose origins are known to the proxy alone."""

    def __init__(self, t):
        self.t = t
        self.s = s = scene.Scene(t)
        self.password = scan.canary("corp-")
        s.scanner.add("corporate", self.password)
        s.d.secret("corp", self.password)
        s.d.secret("wrong", b"not-the-password")
        credential = ("Authorization", s.github_credential[1])
        self.deep = origin.Origin(t, s.d.ca, DEEP, origin.needs(credential, shapes.echo))
        self.clear = origin.Origin(t, s.d.ca, CLEAR, shapes.echo, tls=False)
        self.big = origin.Origin(t, s.d.ca, BIG, self.bulk)
        self.origins = (self.deep, self.clear, self.big)
        self.address = s.listener()
        for port in (443, self.deep.port):
            s.rule(allow="https://%s:%d/**" % (DEEP, port), **{"with": {"bearer": "github"}})
        s.rule(allow=["http://%s" % CLEAR, "http://%s:%d" % (CLEAR, self.clear.port), BIG,
                      "nowhere.corp.example", "8.8.8.8", "10.1.2.3", "127.0.0.1", "localhost"])
        self.upstream = {}

    @staticmethod
    def bulk(req, conn):
        if req.method == "GET":
            conn.head(200, [("Content-Length", str(SIZE))])
            for _ in range(SIZE >> 16):
                conn.send(bytes(range(256)) * 256)
        else:
            conn.reply(req, 200, {"sha256": req.sha256})

    def start(self, url, user=None, password=None, **more):
        s = self.s
        s.d.stop()
        p = url if user is None else {"url": url, "user": user, "password": password}
        s.d.extra["upstream"] = dict({"ca": [s.d.ca.pem], "resolve": s.d.resolve, "proxy": p}, **more)
        s.d.serve()
        self.gate = s.gate(self.address)

    def get(self, host, path="/x", port=443, **kw):
        return self.gate.get(host, path, port=port, **kw)

    def bytes(self):
        return [o.bytes_in for o in self.origins]

    def connection(self, authority):
        """The newest connection record of this authority."""
        got = tap.wait_for(lambda: [r for r in self.s.d.kinds("connection")
                                    if r.get("authority") == authority], 3)
        return got[-1] if got else {}

    def fails(self, what, host, code, status, detail="", port=443):
        t, before = self.t, self.bytes()
        n = len(self.s.d.kinds("connection"))
        r = self.get(host, port=port)
        t.eq((r.status, r.code), (status, code), what)
        tap.wait_for(lambda: len(self.s.d.kinds("connection")) > n, 3)
        fresh = self.s.d.kinds("connection")[n:]
        t.ok(len(fresh) == 1 and fresh[0].get("code") == code and
             detail in fresh[0].get("detail", ""), what + ": one record of the connection",
             str(fresh))
        t.eq(self.bytes(), before, what + ": nothing at the origins")


def tiny(t, o):
    """A real proxy. It alone knows where the names are: a hosts file that only it sees."""
    if not shutil.which("tinyproxy"):
        t.skip("through tinyproxy", "tinyproxy is not installed")
        return
    port = nginx.free_port()
    hosts = t.write("hosts", "127.0.0.1 %s %s %s\n" % (DEEP, CLEAR, BIG))
    conf = t.write("tinyproxy.conf", "Port %d\nListen 127.0.0.1\nTimeout 30\nMaxClients 50\n"
                   "Allow 127.0.0.1\nBasicAuth durward %s\nConnectPort %d\nConnectPort %d\n"
                   "LogFile \"%s\"\nLogLevel Info\n" % (port, o.password.decode(), o.deep.port,
                                                        o.clear.port, t.path("tinyproxy.log")))
    p = t.popen(["unshare", "--map-root-user", "--mount", "sh", "-c",
                 "mount --bind %s /etc/hosts && exec tinyproxy -d -c %s" % (hosts, conf)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not tap.wait_for(lambda: p.poll() is not None or scene.reachable("127.0.0.1:%d" % port), 5) \
            or p.poll() is not None:
        t.skip("through tinyproxy", "it cannot be started with a hosts file of its own")
        return
    url = "http://127.0.0.1:%d" % port
    o.start(url, "durward", "corp")
    authority = "%s:%d" % (DEEP, o.deep.port)
    for i in range(3):
        t.eq(o.get(DEEP, port=o.deep.port).status, 200, "tinyproxy: request %d, credentialed" % i)
    r = o.connection(authority)
    t.eq((r.get("code"), r.get("via"), r.get("address")),
         ("ok", url, "127.0.0.1:%d" % port), "tinyproxy: the record says through whom")
    with o.gate.plain() as st:
        at = "%s:%d" % (CLEAR, o.clear.port)
        r = st.ask("GET http://%s/there HTTP/1.1\r\nHost: %s\r\n\r\n" % (at, at))
        t.eq(r.status, 200, "tinyproxy: plain HTTP goes by CONNECT as well")
    o.fails("tinyproxy: a port it does not let through is 502", DEEP, "upstream_proxy", 502, "403")
    o.fails("tinyproxy: a name it does not know is 502", "nowhere.corp.example", "upstream_proxy",
            502)
    o.start(url, "durward", "wrong")
    o.fails("tinyproxy: a wrong password is 502", DEEP, "upstream_proxy", 502, "(40",
            port=o.deep.port)
    o.start(url)
    o.fails("tinyproxy: no password is 502", DEEP, "upstream_proxy", 502, "(407)",
            port=o.deep.port)
    wrong = origin.one_right(o.deep, o.s.github_credential)
    t.ok(not wrong, "tinyproxy: no wrong credential at the origin", *wrong)
    t.ok(all(not q.get("proxy-authorization") for q in o.deep.requests + o.clear.requests),
         "tinyproxy: its credential never reaches an origin")


def routes(t, o, office):
    """What goes through, what goes directly, and what goes nowhere."""
    url = "http://127.0.0.1:%d" % office.port
    o.start(url, "durward", "corp", no_proxy=["127.0.0.0/8", "localhost", ".direct.example"])
    t.eq(o.get(DEEP).status, 200, "a name goes through the proxy")
    head = office.heads[-1].decode()
    t.eq(sorted(head.split("\r\n")), sorted([
        "CONNECT %s:443 HTTP/1.1" % DEEP, "Host: %s:443" % DEEP,
        "Proxy-Authorization: " + basic("durward", o.password), "", ""]),
        "which is asked by name, in these words")
    n = office.accepted
    t.eq(o.get(scene.GITHUB, "/user").status, 200, "an entry of upstream.resolve goes directly")
    o.fails("an address of no_proxy goes directly, and the guard is there", "127.0.0.1",
            "blocked_ip", 403, "loopback")
    o.fails("a name of no_proxy is resolved, and the guard is there", "localhost", "blocked_ip", 403,
            "loopback")
    t.ok("via" not in o.connection("localhost"), "the record names no proxy then")
    o.fails("a private address is refused before the proxy hears of it", "10.1.2.3", "blocked_ip",
            403, "private")
    r, st = o.gate.connect("evil.example.com:443")
    st.close()
    t.eq((r.status, r.code), (403, "no_rule"), "the host decision comes first")
    t.eq(office.accepted, n, "none of these reached the proxy")
    o.fails("a public address is asked for as an address", "8.8.8.8", "upstream_proxy", 502, "(403)")
    t.ok(office.heads[-1].startswith(b"CONNECT 8.8.8.8:443 HTTP/1.1\r\n"), "and by that alone")
    d = o.s.d
    with open(d.conf) as f:
        text = f.read()
    d.save(text.replace("127.0.0.0/8", "127.0.0.0/9"))
    r = d.command("reload", "--socket", d.socket)
    t.ok(r.returncode == 1 and "upstream" in r.stderr, "a reload that changes it is refused",
         r.stdout, r.stderr)
    t.eq(o.get(DEEP).status, 200, "and the old one stays")


def in_tls(t, o, hosts):
    """An https proxy: verified for its name, and the bytes go through the dialer in both directions."""
    s = o.s
    good = proxy.Proxy(t, hosts, basic("durward", o.password), s.d.ca.issue("127.0.0.1"))
    o.start("https://127.0.0.1:%d" % good.port, "durward", "corp")
    for _ in range(3):
        t.eq(o.get(DEEP).status, 200, "https proxy: served")
    t.eq(good.accepted, 1, "https proxy: and the connection is kept")
    with o.gate.tls(BIG) as st:
        st.send("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % BIG).head()
        h, got = hashlib.sha256(), 0
        while got < SIZE:
            data = st.exact(min(65536, SIZE - got))
            h.update(data)
            got += len(data)
        t.eq(h.hexdigest(), hashlib.sha256(bytes(range(256)) * (SIZE >> 8)).hexdigest(),
             "https proxy: 16 MiB down, whole")
        body = os.urandom(1 << 20) * (SIZE >> 20)
        r = st.ask(b"POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (
            BIG.encode(), SIZE) + body)
        t.has(r.body.decode(), hashlib.sha256(body).hexdigest(), "https proxy: 16 MiB up, whole")
    with o.gate.plain() as st:
        r = st.ask("GET http://%s/there HTTP/1.1\r\nHost: %s\r\n\r\n" % (CLEAR, CLEAR))
        t.eq(r.status, 200, "https proxy: plain HTTP inside")
    for what, cert in (("of another name", s.d.ca.issue("other.example.com")),
                       ("that has expired", s.d.ca.issue("127.0.0.1", expired=True)),
                       ("that it signed itself", s.d.ca.issue("127.0.0.1", self_signed=True))):
        bad = proxy.Proxy(t, hosts, None, cert)
        o.start("https://127.0.0.1:%d" % bad.port, "durward", "corp")
        o.fails("https proxy: a certificate %s is 502" % what, DEEP, "upstream_proxy", 502, "TLS")
        t.eq(bad.heads, [], "https proxy: and it is told nothing")


def late(seconds):
    def answer(p, sock):
        p.head(sock)
        time.sleep(seconds)
    return answer


def drip(p, sock):
    p.head(sock)
    for byte in b"HTTP/1.1 200 Connection established\r\n\r\n":
        sock.sendall(bytes([byte]))
    sock.recv(1)


def gone(p, sock):
    p.head(sock)


OK = b"HTTP/1.1 200 OK\r\n"
LIES = (
    ("is not HTTP", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "malformed"),
    ("has another version", b"HTTP/2.0 200 OK\r\n\r\n", "malformed"),
    ("has a bare line feed", b"HTTP/1.1 200 OK\n\n", "malformed"),
    ("has a folded line", OK + b"A: b\r\n c\r\n\r\n", "malformed"),
    ("has a field without a colon", OK + b"Colonless\r\n\r\n", "malformed"),
    ("has a NUL", OK + b"A: \0\r\n\r\n", "malformed"),
    ("has two lengths", OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "malformed"),
    ("has a status of two digits", b"HTTP/1.1 20 OK\r\n\r\n", "malformed"),
    ("is 101", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "malformed"),
    ("is 100", b"HTTP/1.1 100 Continue\r\n\r\n", "refuses (100)"),
    ("is a redirect", b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\n\r\n",
     "refuses (302)"),
    ("is 407", b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", "(407)"),
    ("is 503", b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "refuses (503)"),
    ("has a byte behind it", OK + b"\r\nx", "more than its answer"),
    ("is too long", OK + b"A: " + b"x" * 20000 + b"\r\n\r\n", "too long"),
    ("never ends", OK + b"A: b\r\n" * 3000, "too long"),
    ("is nothing", gone, "closed the connection"))


def lies(t, o, office):
    o.start("http://localhost:%d" % office.port)
    office.credential = None
    t.eq(o.get(DEEP).status, 200, "a proxy by name, without a credential")
    t.ok(b"authorization" not in office.heads[-1].lower(), "and it gets none")
    o.s.d.limits = {"dial_seconds": 2}
    o.start("http://localhost:%d" % office.port)
    for what, answer, detail in LIES:
        office.answer = answer
        o.fails("an answer that %s is 502" % what, DEEP, "upstream_proxy", 502, detail)
    office.answer = late(6)
    o.fails("an answer that does not come is 504", DEEP, "timeout", 504, "asking the proxy")
    office.answer = drip
    r = o.get(DEEP)
    t.eq((r.status, r.code), (502, "upstream_tls"), "a tunnel that leads nowhere is 502")
    office.answer = None
    t.eq(o.get(DEEP).status, 200, "after all of which it works")
    o.start("http://127.0.0.1:%d" % nginx.free_port())
    o.fails("a proxy that is not there is 502", DEEP, "upstream_proxy", 502, "refused")
    o.start("http://no-such-proxy.invalid:3128")
    o.fails("a proxy without an address is 502", DEEP, "upstream_proxy", 502)


def vault_gone(t, o, office):
    """A secret that cannot be read is no reason to go without."""
    office.answer, office.credential = None, basic("durward", o.password)
    path = o.s.d.secret("broken", b"x", mode=0o644)
    o.start("http://127.0.0.1:%d" % office.port, "durward", "broken")
    n = len(office.heads)
    o.fails("a password that others can read is 502", DEEP, "upstream_proxy", 502, "cannot be read")
    t.eq(len(office.heads), n, "and the proxy is asked nothing")
    os.unlink(path)
    del o.s.d.secrets["broken"]


def killed(t, o, office):
    """The vault and the dialer are replaced, and asked for the password again."""
    first = len(office.heads)
    o.start("http://127.0.0.1:%d" % office.port, "durward", "corp")
    for role in ("vault", "dialer"):
        t.eq(o.get(DEEP).status, 200, "served before the %s is killed" % role)
        for pid, name in o.s.d.roles():
            if name == role:
                os.kill(pid, signal.SIGKILL)
        seen = []
        t.ok(tap.wait_for(lambda: seen.append(o.get(DEEP).status) or seen[-1] == 200, 6, 0.1),
             "and after it", str(seen))
        t.ok(set(seen) <= {200, 502, 503}, "by refusals only", str(seen))
    wrong = [h for h in office.heads[first:] if b"\r\nProxy-Authorization: Basic " not in h]
    t.ok(not wrong, "the proxy was never asked without the password", *wrong)
    t.eq(o.s.d.stop(), 0, "the daemon ends well")


def over_ipv6(t, o, hosts):
    try:
        six = proxy.Proxy(t, hosts, family=socket.AF_INET6)
    except OSError:
        t.skip("a proxy at ::1", "this host has no ::1")
        return
    o.start("http://[::1]:%d" % six.port)
    t.eq((o.get(DEEP).status, o.connection(DEEP).get("via")),
         (200, "http://[::1]:%d" % six.port), "a proxy at ::1")


def in_run(t, o, office):
    """`durward run` goes the same way, and nobody in it ever has the password."""
    s = o.s
    s.d.stop()
    s.d.extra["upstream"] = {"ca": [s.d.ca.pem], "resolve": s.d.resolve, "proxy": {
        "url": "http://127.0.0.1:%d" % office.port, "user": "durward", "password": "corp"}}
    box = durward.Sandbox(s.d)
    status, out, err = box.sh("curl -sS -o /dev/null -w '%%{http_code}' https://%s/x" % DEEP)
    t.eq((status, out), (0, "200"), "durward run goes through the proxy") or t.diag(err)
    scan.scan_sandbox(t, box, s.scanner)
    scan.scan_roles(t, box, s.scanner)
    box.close()


def load_errors(t, o):
    d = o.s.d
    for upstream, want in (
            ({"proxy": "http://user:pw@proxy:3128"}, "never stands here"),
            ({"proxy": "proxy:3128"}, "is not http://HOST:PORT"),
            ({"proxy": "http://proxy"}, "is not http://HOST:PORT"),
            ({"proxy": "http://proxy:3128/"}, "is not http://HOST:PORT"),
            ({"proxy": "socks5://proxy:1080"}, "is not http://HOST:PORT"),
            ({"proxy": {"url": "http://proxy:1", "user": "x"}}, "go together"),
            ({"proxy": {"url": "http://proxy:1", "user": "x", "password": "nobody"}},
             "no secret 'nobody'"),
            ({"proxy": {"user": "x"}}, "'url' is missing"),
            ({"no_proxy": ["a"]}, "without 'proxy'"),
            ({"proxy": "http://p:1", "no_proxy": ["10.0.0.1/8"]}, "is not a host"),
            ({"proxy": "http://p:1", "no_proxy": ["*.example.com"]}, "is not a host")):
        d.extra["upstream"] = upstream
        r = d.check()
        t.ok(r.returncode == 1 and want in r.stdout + r.stderr and "durward.yaml:" in
             r.stdout + r.stderr, "%s is a load error" % upstream, r.stdout, r.stderr)


def main(t):
    o = Office(t)
    hosts = {DEEP + ":443": o.deep, CLEAR + ":80": o.clear, BIG + ":443": o.big}
    office = proxy.Proxy(t, hosts, basic("durward", o.password))
    t.part(tiny, t, o)
    t.part(routes, t, o, office)
    t.part(in_tls, t, o, hosts)
    t.part(lies, t, o, office)
    t.part(vault_gone, t, o, office)
    t.part(over_ipv6, t, o, hosts)
    t.part(killed, t, o, office)
    wrong = origin.one_right(o.deep, o.s.github_credential)
    t.ok(o.deep.requests and not wrong, "exactly one right credential in each request", *wrong)
    o.s.d.check_pairs(t, [o.deep, o.clear, o.big, o.s.github], "through a proxy", exact=False)
    t.part(in_run, t, o, office)  # its ids are of a log of its own
    o.s.clean(what="through a proxy")
    t.part(load_errors, t, o)


tap.run(main, timeout=120)
