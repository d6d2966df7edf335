#!/usr/bin/python3 -B
"""Requests that a provider sends on (Vercel's forwardURL): to a listener that is bound to a policy, with
where they were going in five fields and an RS256 token of the provider's. The provider here is the test:
it has the keys, and says on the wire what the vendor's own package reads."""
import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, nginx, scene, tap  # noqa: E402

URL, ISSUER = "https://gate.example.net/in", "https://oidc.vercel.com/acme"


def text64(b):
    return base64.urlsafe_b64encode(b if isinstance(b, bytes) else json.dumps(b).encode()).rstrip(b"=").decode()


class Provider:
    """Who signs, by the openssl command."""

    def __init__(self, t, kid="k1"):
        self.kid = kid
        self.key = t.path("provider-%s.pem" % kid)
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        out = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True,
                             text=True).stdout
        self.n = bytes.fromhex(out.strip().partition("=")[2])

    def jwk(self):
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": text64(self.n), "e": "AQAB"}

    def token(self, head=None, **claims):
        said = {"iss": ISSUER, "aud": URL, "exp": int(time.time()) + 300, "iat": int(time.time()), "team_id": "team_a",
                "project_id": "prj_b", "sandbox_id": "sbx_1", "sandbox_name": "one", **claims}
        said = {k: v for k, v in said.items() if v is not None}
        text = text64(head or {"alg": "RS256", "kid": self.kid, "typ": "JWT"}) + "." + text64(said)
        sig = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True,
                             capture_output=True).stdout
        return text + "." + text64(sig)


def fields(token, host="api.github.com", path="/user", scheme="https", port="443", **other):
    v = {"vercel-forwarded-host": host, "vercel-forwarded-scheme": scheme, "vercel-forwarded-port": port,
         "vercel-forwarded-path": path, "vercel-sandbox-oidc-token": token}
    v.update({k.replace("_", "-"): x for k, x in other.items()})
    return "".join("%s: %s\r\n" % i for i in v.items() if i[1] is not None)


class Way:
    """One connection from the provider to the listener."""

    def __init__(self, address, tls=None, source=""):
        host, port = address.rsplit(":", 1)
        s = socket.create_connection((host, int(port)), 10, (source, 0))
        self.stream = client.Stream(tls.wrap_socket(s, server_hostname=host) if tls else s)

    def ask(self, lines, target="/in/user", method="GET", body=b"", more=""):
        if body:
            more += "Content-Length: %d\r\n" % len(body)
        self.stream.send("%s %s HTTP/1.1\r\nHost: gate.example.net\r\n%s%s\r\n" % (method, target, lines, more))
        if body:
            self.stream.send(body)
        return self.stream.body(self.stream.head(), method)


def good(t, s, p, address):
    way = Way(address)
    r = way.ask(fields(p.token()))
    t.eq((r.status, b"octo" in r.body), (200, True), "what the provider sent on is served, with the key")
    r = way.ask(fields(p.token(sandbox_id="sbx_2"), path="/repos/acme/x/issues"), "/in/repos/acme/x/issues", "POST",
                b'{"title": "sent on"}', "Content-Type: application/json\r\n")
    t.eq((r.status, b"sent on" in r.body), (201, True), "another sandbox's on the same connection, with a body")
    r = way.ask(fields(p.token(aud=[URL, "x"]), host="deps.example.com", path="/a?b=1&c=%2F"), "/in/a?b=1&c=%2F")
    got = s.plain.requests[-1]
    t.eq((r.status, got.target), (200, "/a?b=1&c=%2F"), "its path and query as they were")
    t.ok(not [n for n, _ in got.headers if n.lower().startswith("vercel-")], "without the provider's fields", "%r" % got.headers)
    t.eq(got.get("host"), "deps.example.com", "for the host that it was for")
    r = way.ask(fields(p.token(), host="deps.example.com", path="/a"), "/in/a?q=2")
    t.eq((r.status, s.plain.requests[-1].target), (200, "/a?q=2"), "a query that stands in our URL only")
    r = way.ask(fields(p.token(), path="/gists"), "/in/gists", "POST", b"{}")
    t.eq((r.status, r.code), (403, "denied_by_rule"), "under the policy's rules")
    r = Way(address).ask(fields(p.token(), host="evil.example.com", path="/"))
    t.eq((r.status, r.code), (403, "no_rule"), "and nowhere else")


def bad(t, s, p, address):
    stranger = Provider(t, "k1x")
    stranger.kid = "k1"
    ok = p.token()
    cases = [
        ("no token", fields(None), 403, "token_missing"),
        ("an empty one", fields(""), 403, "token_missing"),
        ("two tokens", fields(ok) + "Vercel-Sandbox-OIDC-Token: x\r\n", 400, "malformed_host"),
        ("another's key", fields(stranger.token()), 403, "token_invalid"),
        ("another key's name", fields(p.token({"alg": "RS256", "kid": "k9"})), 403, "token_invalid"),
        ("no signature", fields(text64({"alg": "none", "kid": "k1"}) + "." + ok.split(".")[1] + "."), 403, "token_invalid"),
        ("a changed one", fields(ok[:-10] + ("A" if ok[-10] != "A" else "B") + ok[-9:]), 403, "token_invalid"),
        ("other claims", fields(".".join([ok.split(".")[0], text64({"iss": ISSUER, "aud": URL}), ok.split(".")[2]])), 403,
         "token_invalid"),
        ("another URL's", fields(p.token(aud="https://other.example.net/in")), 403, "token_invalid"),
        ("another issuer's", fields(p.token(iss="https://oidc.vercel.com/evil")), 403, "token_invalid"),
        ("an old one", fields(p.token(exp=int(time.time()) - 61)), 403, "token_expired"),
        ("one for ever", fields(p.token(exp=None)), 403, "token_invalid"),
        ("another team's", fields(p.token(team_id="team_z")), 403, "token_source"),
        ("another project's", fields(p.token(project_id="prj_z")), 403, "token_source"),
        ("no sandbox", fields(p.token(sandbox_id=None)), 403, "token_invalid"),
        ("no host", fields(ok, host=None), 400, "malformed_host"),
        ("two hosts", fields(ok) + "vercel-forwarded-host: evil.example.com\r\n", 400, "malformed_host"),
        ("a host with a port", fields(ok, host="api.github.com:443"), 400, "malformed_host"),
        ("a port that is none", fields(ok, port="0443"), 400, "malformed_host"),
        ("a scheme that is none", fields(ok, scheme="HTTPS"), 400, "malformed_host"),
        ("a path that is none", fields(ok, path="user"), 400, "bad_target"),
        ("an absolute path", fields(ok, path="https://evil.example.com/"), 400, "bad_target"),
        ("dot segments", fields(ok, path="/repos/acme/../../user"), 400, "path_ambiguous"),
    ]
    before = len(s.github.requests) + len(s.plain.requests)
    for what, lines, status, code in cases:
        r = Way(address).ask(lines)
        t.eq((r.status, r.code), (status, code), "%s: %d %s" % (what, status, code))
    r = Way(address).ask(fields(ok, path="/user?a=1"), "/in/user?a=2")
    t.eq((r.status, r.code), (400, "bad_target"), "two queries: refused")
    r = Way(address).ask(fields(ok, path=None), "https://api.github.com/user")
    t.ok(r.status in (400, 403), "an absolute form: refused", str(r.status))
    w = Way(address)
    w.stream.send("CONNECT api.github.com:443 HTTP/1.1\r\nHost: api.github.com\r\n\r\n")
    t.ok(w.stream.head().status in (400, 403, 405), "it is no proxy: CONNECT is refused")
    w = Way(address)
    w.stream.send(b"\x05\x01\x00")
    try:
        t.ok(not w.stream.exact(2).startswith(b"\x05"), "nor SOCKS")
    except client.Ended:
        t.ok(True, "nor SOCKS")
    t.eq(len(s.github.requests) + len(s.plain.requests), before, "nothing of these reached an origin")


def faults(t, s, p, address):
    """A head that cannot be read is charged to the address that sent it, and to no sandbox that asked
    before on that connection: that one would be read more slowly after a hundred of them."""
    token, paused = p.token(sandbox_id="sbx_3"), 0
    for i in range(240):  # each from an address of its own, which has one fault
        way = Way(address, source="127.0.1.%d" % (i + 1))
        way.ask(fields(token, host="evil.example.com", path="/"), "/in")
        begun = time.monotonic()
        way.stream.send("GET / HTTP/1.1\r\nno field\r\n\r\n")
        way.stream.head()
        paused += time.monotonic() - begun > 0.08
    t.ok(paused < 40, "heads at fault slow down no sandbox that asked before them", "%d of 240" % paused)


def keys(t, s, p, address, path):
    """The provider changes its keys: the file is read again at a reload."""
    new = Provider(t, "k2")
    t.eq(Way(address).ask(fields(new.token())).status, 403, "a key that we do not know yet")
    with open(path, "w") as f:
        f.write("{}")
    r = s.d.command("reload", "--socket", s.d.socket)
    t.ok(r.returncode != 0 and path in r.stderr, "a key set that is none is refused by name", r.stdout + r.stderr)
    t.eq(Way(address).ask(fields(p.token())).status, 200, "and the old one stays")
    with open(path, "w") as f:
        json.dump({"keys": [new.jwk()]}, f)
    t.eq(s.d.command("reload", "--socket", s.d.socket).returncode, 0, "the new set is taken")
    t.ok(tap.wait_for(lambda: Way(address).ask(fields(new.token())).status == 200, 5, 0.1), "its key is good")
    t.eq(Way(address).ask(fields(p.token())).status, 403, "the old one no more")


def main(t):
    s = scene.Scene(t)
    p = Provider(t)
    path = t.write("jwks.json", json.dumps({"keys": [{"kty": "EC", "kid": "x"}, p.jwk()]}))
    about = {"url": URL, "issuer": ISSUER, "team": "team_a", "project": "prj_b", "keys": path}
    address = s.listener(forwarded=about)
    secure = "127.0.0.1:%d" % nginx.free_port()
    s.d.listen.append({"https": secure, "policy": "coder", "forwarded": about})
    s.d.serve()
    t.part(good, t, s, p, address)
    t.part(bad, t, s, p, address)
    r = Way(secure, ssl.create_default_context(cafile=s.ca_file())).ask(fields(p.token()))
    t.eq((r.status, b"octo" in r.body), (200, True), "the same in TLS")
    r = s.d.command("env", "--policy", "coder", "--socket", s.d.socket)
    t.ok(r.returncode != 0 and address not in r.stdout, "no client is told to use it as a proxy", r.stdout)
    who = {x.get("sandbox") for x in s.d.records() if x.get("authority") == "deps.example.com"} - {None}
    t.eq(who, {"vercel:sbx_1"}, "records name the provider's sandbox")
    t.part(faults, t, s, p, address)
    t.part(keys, t, s, p, address, path)
    s.judge([(s.github, s.github_credential), (s.plain, None)], [], "what is sent on")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
