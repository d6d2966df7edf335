#!/usr/bin/python3 -B
"""SOCKS5 on the port that also speaks CONNECT: curl, requests, httpx; with a policy, with a token,
over IPv6, from inside a sandbox; and every way to ask for what is not given: A6 (alphabet), B16 (early
data), names that disagree, other commands and address types."""
import os
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, durward, nginx, scene, shapes, socks, tap  # noqa: E402

PLAIN_HTTP = "clear.example.com"
NOWHERE = "198.51.100.7"  # TEST-NET-2: no host

PYTHON = """
import os, sys
proxy, ca = sys.argv[1:]
import requests, httpx
user, _, rest = proxy.partition("//")[2].partition(":")
short = proxy
if "dwt1." in rest:  # PySocks cannot send 128 bytes or more in one half (it writes the length as UTF-8)
    token, _, where = rest.partition("@")
    short = "socks5h://%s:%s@%s" % (token[:100], token[100:], where)
r = requests.get("https://api.github.com/user", proxies={"https": short}, verify=ca, timeout=10)
print(r.status_code, r.json()["login"])
with httpx.Client(proxy=proxy.replace("socks5h", "socks5"), verify=ca, timeout=10) as c:
    r = c.get("https://api.github.com/user")
    print(r.status_code, r.json()["login"])
"""


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        return True
    except OSError:
        return False


def curl(s, *args, timeout=15):
    r = subprocess.run(["curl", "-sS", "--max-time", "10", "--cacert", s.ca_file()] + list(args),
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=timeout, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    return r.returncode, r.stdout.decode(), r.stderr.decode()


def fetched(t, s, what, *args):
    status, out, err = curl(s, *args)
    return t.ok(status == 0 and '"octo"' in out, what, out, err)


def clients(t, s, where, auth=""):
    """Real clients through one listener; auth is "user:password@" or nothing."""
    kind = "with a token" if auth else "bound to a policy"
    fetched(t, s, "curl --socks5-hostname, " + kind, "--proxy", "socks5h://%s%s" % (auth, where),
            "https://api.github.com/user")
    fetched(t, s, "curl --socks5, which resolves by itself: the name of the handshake counts, " +
            kind, "--proxy", "socks5://%s%s" % (auth, where), "--resolve",
            "api.github.com:443:" + NOWHERE, "https://api.github.com/user")
    status, out, err = curl(s, "--proxy", "socks5h://%s%s" % (auth, where),
                            "http://%s/there" % PLAIN_HTTP)
    t.ok(status == 0 and "/there" in out, "plain HTTP behind SOCKS, " + kind, out, err)
    status, out, err = curl(s, "--proxy", "socks5h://%s%s" % (auth, where),
                            "https://api.github.com/user", "https://api.github.com/user")
    t.eq((status, out.count('"octo"')), (0, 2), "two requests on one connection, " + kind)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if not os.path.exists(python):
        t.skip("requests and httpx over SOCKS", "run tests/functional/clients/setup")
        return
    r = subprocess.run([python, "-c", PYTHON, "socks5h://%s%s" % (auth, where), s.ca_file()],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=40,
                       env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    t.eq(r.stdout.decode().split("\n")[:2], ["200 octo", "200 octo"],
         "requests and httpx over SOCKS, " + kind) or t.diag(r.stderr)


class Watch:
    """Exactly one more denied record with this code, and not a byte at an origin."""

    def __init__(self, t, s, origins):
        self.t, self.s, self.origins = t, s, origins

    def state(self):
        return len(self.s.d.kinds("denied")), [o.bytes_in for o in self.origins], \
            [o.accepted for o in self.origins]

    def one(self, what, code, act):
        t, before = self.t, self.state()
        ok, got = act()
        t.ok(ok, what, "answer: %r" % (got,))
        tap.wait_for(lambda: len(self.s.d.kinds("denied")) > before[0], 3)
        after = self.state()
        fresh = [r.get("code") for r in self.s.d.kinds("denied")[before[0]:]]
        t.eq(fresh, [code], what + ": one denied record")
        t.eq(after[1:], before[1:], what + ": nothing at the origins")


def says(listener, data, want, first=b""):
    """Send data on a fresh connection: exactly this answer, then the end."""
    def act():
        with listener.plain() as st:
            if first:
                st.send(b"\x05\x01\x00")
                st.exact(2)
            st.send(first + data)
            got = st.rest()
            return got == want and st.ended(1), got
    return act


def asks(listener, host, port, want, command=1):
    def act():
        answer, st = listener.enter(host, port, command)
        with st:
            return answer == want and st.ended(), answer
    return act


def refusals(t, s, w, listener):
    no = socks.refused
    for what, code, want, host, port, command in (
            ("a name without a rule is 02", "no_rule", no(2), "evil.example.com", 443, 1),
            ("another port is 02", "no_rule", no(2), "api.github.com", 8443, 1),
            ("port 0 is 02", "malformed_host", no(2), "api.github.com", 0, 1),
            ("an empty name is 02", "malformed_host", no(2), "", 443, 1),
            ("a name of 255 bytes is 02", "malformed_host", no(2), "a" * 255, 443, 1),
            ("an IPv6 address as a name is 02", "malformed_host", no(2), "[::1]", 443, 1),
            ("an IPv4 address in another spelling is 02", "malformed_host", no(2), "127.1", 443, 1),
            ("a name that ends in NUL is 02", "malformed_host", no(2), "api.github.com\0", 443, 1),
            ("a loopback address is 02", "loopback", no(2), ("127.0.0.1",), 443, 1),
            ("mapped into IPv6 too", "loopback", no(2), ("::ffff:127.0.0.1",), 443, 1),
            ("::1 too", "loopback", no(2), ("::1",), 443, 1),
            ("an address and a port that no rule can be about is 02", "no_rule", no(2), (NOWHERE,),
             2222, 1),
            ("a synthetic address that nobody was given is 02", "unknown_name", no(2),
             ("198.18.9.9",), 443, 1),
            ("BIND is 07", "socks_command", no(7), "api.github.com", 443, 2),
            ("UDP ASSOCIATE is 07", "socks_command", no(7), ("0.0.0.0",), 0, 3),
            ("command 0 is 07", "socks_command", no(7), "api.github.com", 443, 0)):
        w.one(what, code, asks(listener, host, port, want, command))
    for what, code, want, data in (
            ("address type 2 is 08", "socks_address_type", no(8), b"\x05\x01\x00\x02aaaa\x01\xbb"),
            ("address type 0 is 08", "socks_address_type", no(8), b"\x05\x01\x00\x00"),
            ("a reserved byte is 01", "bad_socks", no(1), b"\x05\x01\x01\x01\x01\x02\x03\x04\0P"),
            ("version 4 in a request is 01", "bad_socks", no(1), b"\x04\x01\x00\x01")):
        def act(data=data, want=want):
            got, st = listener.greet()
            with st:
                st.send(data)
                got = st.rest()
                return got == want and st.ended(1), got
        w.one(what, code, act)
    w.one("no method is offered: FF", "bad_socks", says(listener, b"\x05\x00", b"\x05\xff"))
    w.one("GSSAPI alone: FF", "socks_method", says(listener, b"\x05\x01\x01", b"\x05\xff"))
    w.one("a password where none is asked for: FF", "socks_method",
          says(listener, b"\x05\x01\x02", b"\x05\xff"))
    w.one("a port 80 that only https names: 403 inside", "no_rule", lambda: inside_plain(listener))


def inside_plain(listener):
    answer, st = listener.enter((NOWHERE,), 80)
    with st:
        r = st.ask("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % NOWHERE)
        return (answer, r.status, r.code) == (socks.GRANTED, 403, "no_rule"), (answer, r.raw)


def early(t, s, w, listener):
    """B16: whoever speaks before he is answered."""
    ask = socks.request("api.github.com")
    w.one("B16 a request behind the greeting: FF", "early_data",
          says(listener, b"\x05\x01\x00" + ask, b"\x05\xff"))

    def behind(extra):
        def act():
            _, st = listener.greet()
            with st:
                st.send(ask + extra)
                got = st.rest()
                return got == socks.refused(1) and st.ended(1), got
        return act
    w.one("B16 a ClientHello behind the request: 01", "early_data",
          behind(b"\x16\x03\x01\x00\x05hello"))
    w.one("B16 an HTTP request behind the request: 01", "early_data",
          behind(b"GET / HTTP/1.1\r\nHost: api.github.com\r\n\r\n"))
    w.one("B16 one byte behind the request: 01", "early_data", behind(b"\0"))
    with listener.plain() as st:  # the benign twin: whole, but a byte at a time
        for b in b"\x05\x01\x00":
            st.send(bytes([b]))
        t.eq(st.exact(2), b"\x05\x00", "a greeting byte by byte is answered")
        for b in ask:
            st.send(bytes([b]))
        t.eq(st.exact(10), socks.GRANTED, "and so is a request")


def alphabet(t, s, origins, listener):
    """A6: each of the 256 values in front of, inside and behind a name."""
    before, seen = len(s.d.kinds("denied")), [o.bytes_in for o in origins]
    wrong, malformed = [], 0
    for v in range(256):
        for name in (bytes([v]) + b"api.example.com", b"api.ex" + bytes([v]) + b"ample.com",
                     b"api.example.com" + bytes([v])):
            answer, st = listener.enter(name)
            st.close()
            if answer != socks.refused(2):
                wrong.append((name, answer))
            malformed += not (chr(v).isascii() and (chr(v).isalnum() or chr(v) in "-_."))
    t.ok(not wrong, "A6 all of 768 names with an odd byte are 02", str(wrong[:3]))
    tap.wait_for(lambda: len(s.d.kinds("denied")) >= before + 768, 5)
    codes = [r.get("code") for r in s.d.kinds("denied")[before:]]
    t.eq(len(codes), 768, "A6 each has one denied record")
    t.ok(set(codes) == {"malformed_host", "no_rule"} and
         malformed <= codes.count("malformed_host") <= malformed + 6,
         "A6 malformed_host for every value outside the alphabet", "%d of %d" % (
             codes.count("malformed_host"), malformed))
    t.eq([o.bytes_in for o in origins], seen, "A6 nothing at the origins")
    answer, st = listener.enter("API.GitHub.com.")
    st.close()
    t.eq(answer, socks.GRANTED, "A8 case and one trailing dot are folded")


def agree(t, s, w, listener):
    """Target, SNI and Host make one authority, or none."""
    ctx = ssl.create_default_context(cafile=listener.cafile)
    ctx.check_hostname = False

    def other_sni(connect, sni):
        def act():
            try:
                listener.tls(sni, sni=sni, context=ctx, connect=connect).close()
                return False, "a handshake"
            except ssl.SSLError as e:
                return "unrecognized name" in str(e).lower().replace("_", " "), e
        return act
    w.one("SNI is another allowed name", "authority_mismatch",
          other_sni("api.github.com", scene.PLAIN))
    w.one("SNI is a name without a rule", "authority_mismatch",
          other_sni("api.github.com", "evil.example.com"))
    w.one("an address, and SNI is a name without a rule", "no_rule",
          other_sni((NOWHERE,), "evil.example.com"))
    w.one("an address, and no SNI: the address has no rule", "no_rule",
          other_sni((NOWHERE,), ""))

    def other_host():
        with listener.tls("api.github.com") as st:
            r = st.ask("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % scene.PLAIN)
            return (r.status, r.code) == (421, "authority_mismatch"), r.raw
    w.one("Host is another name: 421", "authority_mismatch", other_host)

    def connect_inside():
        with listener.tls("api.github.com") as st:
            r = st.ask("CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % ((scene.PLAIN,) * 2))
            return (r.status, r.code) == (405, "connect_inside"), r.raw
    w.one("CONNECT inside is 405", "connect_inside", connect_inside)

    def socks_inside():
        answer, st = listener.enter(PLAIN_HTTP, 80)
        with st:
            st.send(b"\x05\x01\x00")
            st.sock.shutdown(socket.SHUT_WR)
            got = st.rest()
            return b" 400 " in got.split(b"\r\n")[0], got
    w.one("SOCKS inside SOCKS is 400", "bad_request_line", socks_inside)


def tokens(t, s, w, where, token):
    """Where a token is asked for: the password is it, or the user when the password is empty."""
    user, _, good = token.partition(":")
    good = good.encode()
    ca = s.ca_file()
    for what, pair in (("as the password", (b"sandbox", good)), ("with any user", (b"x" * 255, good)),
                       ("with an empty user", (b"", good)), ("as the user", (good, b"")),
                       ("as the user, with a filler", (good, b"x")),
                       ("in two halves", (good[:100], good[100:]))):
        r = socks.Listener(where, ca, token=pair).get("api.github.com", "/user")
        t.eq(r.status, 200, "a token " + what)
    for what, pair in (("a wrong token", (b"sandbox", b"wrong")), ("none", (b"", b"")),
                       ("a cut one", (b"sandbox", good[:-4])),
                       ("one with a byte more", (b"sandbox", good + b"x")),
                       ("one with NUL at its end", (b"sandbox", good + b"\0")),
                       ("one in two halves, changed", (good[:100], good[101:])),
                       ("one as the user beside another password", (good, b"password")),
                       ("one of 255 bytes", (b"sandbox", b"dwt1." + b"A" * 250))):
        def act(pair=pair):
            answer, st = socks.Listener(where, ca, token=pair).enter("api.github.com")
            with st:
                return answer == b"\x01\x01" and st.ended(), answer
        w.one("token: %s is 01 01" % what, "token_invalid", act)
    listener = socks.Listener(where, ca)
    w.one("token: no login is offered: FF", "token_missing", says(listener, b"\x05\x01\x00", b"\x05\xff"))

    def eager():
        got, st = listener.greet(b"\x02")
        with st:
            st.send(socks.login(b"sandbox", good) + socks.request("api.github.com"))
            got += st.rest()
            return got == b"\x05\x02\x01\x01", got
    w.one("B16 token: a request behind the login is 01 01", "early_data", eager)

    def version():
        got, st = listener.greet(b"\x00\x02")
        with st:
            st.send(b"\x05\x01\x00")
            got += st.rest()
            return got == b"\x05\x02\x01\x01", got
    w.one("token: a login of another version is 01 01", "bad_socks", version)


def slow(t, s, w, listener):
    for what, first in (("a greeting", b"\x05"), ("a request", None)):
        def act(first=first):
            if first is None:
                _, st = listener.greet()
                first = b"\x05\x01\x00\x03\x20api"
            else:
                st = listener.plain()
            with st:
                st.send(first)
                return st.rest(6) == b"" and st.ended(1), ""
        w.one("half of %s is closed in time" % what, "timeout", act)


def inside(t):
    """The same port of a local sandbox."""
    s = scene.Scene(t, name="inside")
    box = durward.Sandbox(s.d)
    status, out, err = box.sh("curl -sS --proxy socks5h://gate.durward.internal:3128 "
                              "https://api.github.com/user")
    t.ok(status == 0 and '"octo"' in out, "curl --socks5-hostname inside a sandbox", out, err)
    status, out, err = box.sh("curl -sS --proxy socks5://gate.durward.internal:3128 "
                              "https://api.github.com/user")
    t.ok(status == 0 and '"octo"' in out, "and curl --socks5, by the synthetic address", out, err)
    status, out, err = box.sh("curl -sS --proxy socks5h://gate.durward.internal:3128 "
                              "https://evil.example.com/")
    t.ok(status == 97 and "(2)" in err, "a name without a rule is refused there", str(status), err)
    status, out, err = box.sh("curl -sS --proxy socks5://gate.durward.internal:3128 "
                              "http://gate.durward.internal:3128/")
    t.ok(status == 97 and "(2)" in err, "and so is the gate itself", str(status), err)
    box.close()
    t.eq(len(s.github.requests), 2, "two requests at the origin")
    s.judge([(s.github, s.github_credential)], [out, err], "SOCKS inside")


def main(t):
    s = scene.Scene(t)
    clear = s.add(PLAIN_HTTP, shapes.echo, tls=False)
    s.d.resolve[PLAIN_HTTP + ":80"] = s.d.resolve.pop(PLAIN_HTTP)
    s.rule(allow="http://" + PLAIN_HTTP)
    s.d.limits = {"head_seconds": 2}
    bound = s.listener()
    wants = s.listener(policy=None)
    six = "[::1]:%d" % nginx.free_port() if has_ipv6() else None
    if six:
        s.d.listen.append({"http": six, "policy": "coder"})
    s.d.serve()
    w = Watch(t, s, (s.github, s.openai, s.plain, clear))
    ca = s.ca_file()
    r = s.d.command("env", "--policy", "coder", "--socket", s.d.socket)
    token = r.stdout.split("http://", 1)[1].split("@")[0]
    t.part(clients, t, s, bound)
    t.part(clients, t, s, wants, token + "@")
    if six:
        t.part(clients, t, s, six)
        r = client.Gate(six, ca).get("api.github.com", "/user")
        t.eq(r.status, 200, "CONNECT on an IPv6 listener")
    else:
        t.skip("SOCKS and CONNECT on an IPv6 listener", "this host has no ::1")
    listener = socks.Listener(bound, ca)
    t.part(refusals, t, s, w, listener)
    t.part(early, t, s, w, listener)
    t.part(alphabet, t, s, w.origins, listener)
    t.part(agree, t, s, w, listener)
    t.part(tokens, t, s, w, wants, token)
    t.part(slow, t, s, w, listener)
    entries = {x.get("entry") for x in s.d.kinds("admitted")}
    t.ok("socks5" in entries, "the records say socks5", str(entries))
    logs = b"".join(open(f, "rb").read() for f in s.d.audit_files())
    t.ok(token.partition(":")[2].encode() not in logs, "no token is in the log")
    s.judge([(s.github, s.github_credential), (clear, None)], [], "SOCKS")
    t.eq(s.d.stop(), 0, "the daemon ends well")


def both(t):
    main(t)
    inside(t)


tap.run(both, timeout=120)
