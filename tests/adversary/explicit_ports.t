#!/usr/bin/python3 -B
"""A1, A2, A3 at the explicit ports of remote sandboxes: CONNECT and SOCKS5, each in clear and in a TLS
port: destination × SNI × Host, four values each, 256 cases. Only those in which all that is said names
one allowed host are served; each other one has its answer, its one record, and 0 bytes at an origin."""
import collections
import itertools
import os
import ssl
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import client, nginx, scene, shapes, socks, tap, tls_port  # noqa: E402

ONE, TWO, EVIL, ADDRESS = ("one.example.com", "two.example.com", "evil.example.com", "203.0.113.9")
ALLOWED = (ONE, TWO)
NOT_ALLOWED = 2  # RFC 1928, 6: connection not allowed by ruleset


def expected(to, sni, host, by_socks):
    """DESIGN 3, Authority: what comes, and the code of the record (None: served)."""
    alert = ("alert", "TLSV1_UNRECOGNIZED_NAME")
    if by_socks and to == ADDRESS:  # as an original destination: an address names nobody, SNI may
        to = sni or ADDRESS
        if to not in ALLOWED:
            return alert, "no_rule"
    if to not in ALLOWED:
        return ("socks", NOT_ALLOWED) if by_socks else ("reply", 403, "no_rule"), "no_rule"
    if sni not in (None, to):
        return alert, "authority_mismatch"
    if host != to:
        return ("reply", 421, "authority_mismatch"), "authority_mismatch"
    return ("reply", 200, None), None


def tried(listener, by_socks, to, sni, host):
    """What came of one connection through this listener."""
    if by_socks:
        answer, s = listener.enter((to,) if to == ADDRESS else to)
        if answer != socks.GRANTED:
            s.close()
            return "socks", answer[1]
    else:
        r, s = listener.connect("%s:443" % to)
        if r.status != 200:
            s.close()
            return "reply", r.status, r.code
    context = ssl.create_default_context(cafile=listener.cafile)
    context.check_hostname = False
    try:
        listener.wrap(s, context, sni)
        r = s.ask("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        return "reply", r.status, r.code
    except ssl.SSLError as e:
        return "alert", e.reason
    finally:
        s.close()


def records(s):
    return collections.Counter(r["code"] for r in s.d.kinds("denied"))


def matrix(t, s, what, listener, by_socks, origins):
    before, seen = records(s), {n: len(o.requests) for n, o in origins.items()}
    wrong, served, codes = [], collections.Counter(), collections.Counter()
    for case in itertools.product((ONE, TWO, EVIL, ADDRESS), (None, ONE, TWO, EVIL), (ONE, TWO, EVIL, ADDRESS)):
        want, code = expected(*case, by_socks)
        try:
            got = tried(listener, by_socks, *case)
        except (client.Ended, OSError) as e:
            got = repr(e)
        if got != want:
            wrong.append("%s: wanted %s, got %s" % (case, want, got))
        if code is None:
            served[case[2]] += 1
        else:
            codes[code] += 1
    t.ok(not wrong, "A1 A2 A3 %s: 64 cases, %d served" % (what, sum(served.values())), *wrong[:8])
    t.eq({n: len(o.requests) - seen[n] for n, o in origins.items()}, dict(served),
         "A1 %s: each origin saw its own and no other" % what)
    t.eq(records(s) - before, codes, "A1 %s: one record for each refused" % what)


def main(t):
    s = scene.Scene(t)
    origins = {n: s.add(n, shapes.echo) for n in ALLOWED}
    capture = s.add(EVIL, shapes.echo)
    for n in ALLOWED:
        s.rule(allow=n)
    clear, secure = s.listener(), "127.0.0.1:%d" % nginx.free_port()
    s.d.listen.append({"https": secure, "policy": "coder"})
    s.d.serve()
    ca = s.ca_file()
    for what, listener, by_socks in (
            ("CONNECT", client.Gate(clear, ca), False),
            ("SOCKS5", socks.Listener(clear, ca), True),
            ("CONNECT in TLS", tls_port.Port(secure, ca, "127.0.0.1"), False),
            ("SOCKS5 in TLS", tls_port.Listener(secure, ca, "127.0.0.1"), True)):
        t.part(matrix, t, s, what, listener, by_socks, origins)
    t.ok(all(q.get("host") == n for n, o in origins.items() for q in o.requests),
         "A1 under its own name")
    t.eq((capture.accepted, capture.bytes_in), (0, 0), "A1 nothing reached a host of no rule")
    s.judge([(o, None) for o in origins.values()], (), "ports")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90)
