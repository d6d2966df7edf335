#!/usr/bin/python3 -B
"""TLS client certificates. The origins are nginx, which verifies them (ssl_verify_client) and says who
came: RSA, P-256, P-384 and Ed25519 keys, TLS 1.2 and 1.3, HTTP/1.1 and HTTP/2. The private key is in
the vault only, and a connection without a certificate is never used for a request with one."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, nginx, scan, scene, tap  # noqa: E402

from harness.ca import EC, ED, P384, RSA  # noqa: E402

# name: key, protocol, listen's more
KINDS = {"rsa13": (RSA, "TLSv1.3", ""), "rsa12": (RSA, "TLSv1.2", ""),
         "ec13": (EC, "TLSv1.3", " http2"), "ec12": (EC, "TLSv1.2", " http2"),
         "p384": (P384, "TLSv1.3", ""), "p384old": (P384, "TLSv1.2", ""),
         "ed13": (ED, "TLSv1.3", "")}
SAY = 'return 200 "$ssl_client_verify $ssl_client_s_dn $ssl_protocol $server_protocol\\n";'

SERVER = """
    server {{
        listen 127.0.0.1:{port} ssl{more};
        server_name {host};
        ssl_certificate {crt};
        ssl_certificate_key {key};
        ssl_protocols {protocol};
        {verify}
        location / {{ {say} }}
    }}
"""
CONF = """
daemon off;
worker_processes 1;
error_log {dir}/error.log warn;
pid {dir}/nginx.pid;
{user}
events {{ worker_connections 256; }}
http {{
    log_format t '$host $status';
    access_log {dir}/access.log t;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    {servers}
}}
"""


class Origins:
    """One nginx, a server a host."""

    def __init__(self, t, d, clients):
        self.t, self.d, self.clients, self.servers = t, d, clients, []
        self.dir = t.mkdir("nginx")
        self.ports = {}

    def add(self, host, protocol="TLSv1.2 TLSv1.3", more="", verify="on", trust=None):
        crt, key = self.d.ca.issue(host)
        self.ports[host] = nginx.free_port()
        self.d.resolve[host] = "127.0.0.1:%d" % self.ports[host]
        asked = "" if verify is None else "ssl_verify_client %s; ssl_client_certificate %s;" % (
            verify, trust or self.clients.pem)
        self.servers.append(SERVER.format(host=host, port=self.ports[host], more=more, crt=crt,
                                          key=key, protocol=protocol, verify=asked, say=SAY))

    def start(self):
        exe = shutil.which("nginx") or "/usr/sbin/nginx"
        if not os.access(exe, os.X_OK):
            raise tap.Skip("nginx is not installed")
        root = os.geteuid() == 0
        conf = self.t.write("nginx/nginx.conf", CONF.format(
            dir=self.dir, servers="".join(self.servers), user="user www-data;" if root else ""))
        if root:
            subprocess.run(["chown", "-R", "www-data", self.dir], check=True)
        self.t.popen([exe, "-c", conf, "-e", self.dir + "/error.log", "-p", self.dir],
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not tap.wait_for(lambda: all(scene.reachable("127.0.0.1:%d" % p)
                                        for p in self.ports.values()), 10, 0.1):
            with open(self.dir + "/error.log") as f:
                raise RuntimeError("nginx does not start: " + f.read())


class Run:
    def __init__(self, t):
        self.t, self.s, self.out = t, scene.Scene(t), []
        self.clients = ca.Authority(t.mkdir("client-ca"), "Client CA")
        self.origins = Origins(t, self.s.d, self.clients)
        for name, (key, protocol, more) in KINDS.items():
            host = name + ".example.com"
            self.declare(name, *self.clients.issue("agent " + name, usage="clientAuth", key=key))
            self.origins.add(host, protocol, more)
            self.s.rule(allow=host, **{"with": {"client_certificate": name}})
        self.origins.add("unasked.example.com", verify=None)
        self.origins.add("optional.example.com", verify="optional")
        self.origins.add("stranger.example.com", trust=self.s.d.ca.pem)
        for host in ("unasked.example.com", "optional.example.com/in/**", "stranger.example.com"):
            self.s.rule(allow=host, **{"with": {"client_certificate": "rsa13"}})
        self.s.rule(allow="optional.example.com/out/**")
        self.declare("mixed", self.path("rsa13", "crt"), self.path("ec13", "key"))
        self.s.rule(allow="optional.example.com/mixed", **{"with": {"client_certificate": "mixed"}})
        self.origins.start()

    def path(self, name, what):
        return os.path.join(self.s.d.dir, "conf", "secret-%s-%s" % (name, what))

    def declare(self, name, crt, key):
        for what, file in (("crt", crt), ("key", key)):
            with open(file) as f:
                text = f.read()
            self.s.d.secret("%s-%s" % (name, what), text)
            if what == "key":
                ca.watch_key(self.s.scanner, name, file)
        self.s.d.secrets[name] = {"client_certificate": {"certificate": name + "-crt",
                                                         "key": name + "-key"}}

    def get(self, host, path="/", more=""):
        status, out, err = self.box.sh("curl -sS -w '\\n%%{http_code}' %s https://%s%s" % (
            more, host, path))
        self.out += [out, err]
        body, _, code = out.rpartition("\n")
        return int(code or 0), body.strip()

    def start(self):
        self.box = durward.Sandbox(self.s.d)


def kinds(t, r):
    for name, (_, protocol, more) in KINDS.items():
        version = "HTTP/2.0" if more else "HTTP/1.1"
        t.eq(r.get(name + ".example.com"),
             (200, "SUCCESS CN=agent %s %s %s" % (name, protocol, version)), "a key of " + name)
    codes = r.box.sh("for i in $(seq 30); do curl -sS -o /dev/null -w '%{http_code} ' "
                     "https://rsa13.example.com/ & done; wait")[1].split()
    t.eq(codes, ["200"] * 30, "30 handshakes at once")


def refused(t, r):
    t.eq(r.get("unasked.example.com")[0], 502, "an origin that asks for none gets no request")
    with open(os.path.join(r.origins.dir, "access.log")) as f:
        text = f.read()
    t.ok("rsa13.example.com 200" in text and "unasked" not in text, "nginx has none of it on record")
    code, body = r.get("stranger.example.com")
    t.ok(code == 400 and "SSL certificate error" in body, "one that trusts others says so",
         str(code), body[:80])
    code, body = r.get("optional.example.com", "/mixed")
    t.ok(code == 503 and "secret_unavailable" in body, "a key of another certificate: 503", body)
    detail = [x.get("detail", "") for x in
              r.s.d.wait_records(1, "denied", code="secret_unavailable")]
    t.ok(any("not that of its first certificate" in x for x in detail), "with the reason", *detail)
    t.eq(r.get("rsa13.example.com", "/", "-H 'Authorization: Bearer mine'")[0], 403,
         "a credential of the client's own")


def apart(t, r):
    """One origin, with and without: neither connections nor sessions are shared."""
    got = [r.get("optional.example.com", "/%s/x" % p)[1].split()[0] for p in ("in", "out") * 6]
    t.eq(got, ["SUCCESS", "NONE"] * 6, "only the rule with the certificate shows it")


def rotated(t, r):
    crt, key = r.clients.issue("agent second", usage="clientAuth", key=RSA)
    ca.watch_key(r.s.scanner, "second", key)
    for what, file in (("key", key), ("crt", crt)):
        shutil.copyfile(file, r.path("rsa13", what))

    def second():
        return r.get("rsa13.example.com") == (200, "SUCCESS CN=agent second TLSv1.3 HTTP/1.1")
    t.ok(tap.wait_for(second, 20, 0.5), "another certificate in the files is shown soon")
    t.eq([second() for _ in range(8)], [True] * 8, "and the old one no more")
    vault = [p for p, role in r.s.d.roles() if role == "vault"]
    os.kill(vault[0], 9)
    t.ok(tap.wait_for(second, 20, 0.5), "and after the vault's death")


def waiting(t, r):
    """The vault stands still: the handshake waits, others go on, and nothing is left of it."""
    r.get("ec13.example.com")
    vault = [p for p, role in r.s.d.roles() if role == "vault"][0]
    r.box.sh("curl -sS https://p384.example.com/")
    os.kill(vault, 19)
    start = time.time()
    got = r.box.sh("for h in p384 p384old; do curl -sS -m 3 -o /dev/null https://$h.example.com/ & "
                   "done; curl -sS -o /dev/null -w '%{http_code}' https://optional.example.com/out/; "
                   "wait")[1]
    took = time.time() - start
    os.kill(vault, 18)
    t.ok(got == "200" and took < 10, "others are served while a signature is awaited",
         got, "%.1f s" % took)
    t.ok(tap.wait_for(lambda: r.get("p384old.example.com")[0] == 200, 20, 0.5),
         "and so is this one when the vault goes on")


def main(t):
    r = Run(t)
    r.start()
    kinds(t, r)
    refused(t, r)
    apart(t, r)
    rotated(t, r)
    waiting(t, r)
    e = r.s.d.command("explain", "-c", r.s.d.conf, "GET", "https://ec13.example.com/").stdout
    t.ok("credential: ec13" in e and "TLS client certificate" in e, "explain says what it is", e)
    if os.geteuid() == 0:
        for pid, role in r.s.d.roles():
            if role != "vault":
                hits, _, _ = scan.scan_process(pid, r.s.scanner, role)
                t.eq(hits, [], "no private key in the memory of: " + role)
    else:
        t.skip("the memory of the roles", "reading it needs root")
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.clean(r.out, "client certificates")


tap.run(main, timeout=180)
