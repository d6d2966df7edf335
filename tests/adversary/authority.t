#!/usr/bin/python3 -B
"""CONNECT × SNI × Host, four values each: only the combinations in which all three name the same
allowed host are served; everything else is refused and reaches nobody."""
import itertools
import os
import ssl
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import client, scene, shapes, tap  # noqa: E402

NAMES = ("one.example.com", "two.example.com", "evil.example.com", "example.org")
ALLOWED = ("one.example.com", "two.example.com")


def attempt(gate, target, sni, host):
    """-> status or the reason why there was none."""
    ctx = ssl.create_default_context(cafile=gate.cafile)
    ctx.check_hostname = False
    try:
        with gate.tls(target, sni=sni, context=ctx) as st:
            return st.ask("GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)).status
    except (ssl.SSLError, client.Ended, ConnectionError) as e:
        return str(e)


def main(t):
    s = scene.Scene(t)
    origins = {n: s.add(n, shapes.echo) for n in ALLOWED}
    for n in ALLOWED:
        s.rule(allow=n)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    served = refused = 0
    for target, sni, host in itertools.product(NAMES, repeat=3):
        before = {n: len(o.requests) for n, o in origins.items()}
        got = attempt(gate, target, sni, host)
        same = target == sni == host and host in ALLOWED
        arrived = [n for n, o in origins.items() if len(o.requests) != before[n]]
        if same:
            t.ok(got == 200 and arrived == [host], "%s everywhere is served" % host, str(got))
            served += 1
        elif got == 200 or arrived:
            t.ok(False, "CONNECT %s, SNI %s, Host %s is refused" % (target, sni, host), str(got),
                 "arrived at %s" % arrived)
        else:
            refused += 1
    t.eq((served, refused), (2, 62), "2 of 64 combinations are served, 62 refused")
    with gate.tls("one.example.com") as st:
        codes = [st.ask("GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % h).status
                 for h in ("one.example.com", "ONE.example.com.", "one.example.com:443")]
        t.eq(codes, [200, 200, 200], "one host in its three spellings is the same")
    for byte in list(range(0, 0x21)) + list(range(0x7f, 0x100)) + [ord(c) for c in "%@/\\#?,;\"'<>"]:
        r, st = None, None
        try:
            r, st = gate.connect("one.exam%sple.com:443" % chr(byte), host="one.example.com:443")
            status = r.status
        except client.Ended:
            status = 0
        finally:
            if st:
                st.close()
        if status not in (400, 0):
            t.ok(False, "byte 0x%02x in a CONNECT target is 400" % byte, str(status))
            break
    else:
        t.ok(True, "no odd byte passes in a CONNECT target")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
