#!/usr/bin/python3 -B
"""A1, A2, A3: SNI × Host × CONNECT × original destination, four values each, from inside a sandbox:
256 cases through TLS, and 64 in clear (destination × absolute form × Host). Only those in which all
that is said names one allowed host are served; each other one has its answer and its one record."""
import collections
import itertools
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scene, shapes, tap  # noqa: E402

ONE, TWO, EVIL, ADDRESS = ("one.example.com", "two.example.com", "evil.example.com", "203.0.113.9")
CLEAR1, CLEAR2 = "clear1.example.com", "clear2.example.com"
ALLOWED, CLEAR = (ONE, TWO), (CLEAR1, CLEAR2)
GATE = ("gate.durward.internal", 3128)
DESTINATIONS = (GATE, (ONE, 443), (TWO, 443), (ADDRESS, 443))
ALERT = ["alert", "tlsv1_unrecognized_name"]
MISMATCH = ["reply", 421, "authority_mismatch"]


def through_tls(to, connect, sni, host):
    """DESIGN 3, Authority: what comes, and the code of the record (None: served)."""
    if to == GATE and connect is None:
        # a handshake where a head belongs: answered in clear, which the client's TLS cannot read
        return ["alert", "wrong_version_number"], "bad_request_line"
    if to != GATE and connect is not None:  # a head where a handshake belongs
        return ["reply", 405, "connect_inside"], "connect_inside"
    if connect is not None and connect not in ALLOWED:
        return ["reply", 403, "no_rule"], "no_rule"
    name = connect if to == GATE else None if to[0] == ADDRESS else to[0]
    if sni is not None and name is not None and sni != name:
        return ALERT, "authority_mismatch"
    authority = sni or name or ADDRESS
    if authority not in ALLOWED:
        return ALERT, "no_rule"
    return (["reply", 200, None], None) if host == authority else (MISMATCH, MISMATCH[2])


def in_clear(to, form, host):
    if to == GATE:
        if form is None:
            return ["reply", 400, "bad_target"], "bad_target"
        target = form.split("/")[2]
        if target != host:
            return ["reply", 400, "authority_mismatch"], "authority_mismatch"
        served = target in CLEAR
        return (["reply", 200, None], None) if served else (["reply", 403, "no_rule"], "no_rule")
    if form is not None and form.split("/")[2] != to[0]:
        return ["reply", 400, "bad_target"], "bad_target"
    if host != to[0]:
        return MISMATCH, MISMATCH[2]
    return (["reply", 200, None], None) if host in CLEAR else (["reply", 403, "no_rule"], "no_rule")


def cases():
    for to, connect, sni, host in itertools.product(
            DESTINATIONS, (None, ONE, TWO, EVIL), (None, ONE, TWO, EVIL), (ONE, TWO, EVIL, ADDRESS)):
        yield ({"to": to, "connect": connect, "sni": sni, "form": None, "host": host, "tls": True},
               through_tls(to, connect, sni, host))
    forms = [None] + ["http://%s/" % h for h in (CLEAR1, CLEAR2, EVIL)]
    for to, form, host in itertools.product(
            (GATE, (CLEAR1, 80), (CLEAR2, 80), (ADDRESS, 80)), forms, (CLEAR1, CLEAR2, EVIL, ADDRESS)):
        yield ({"to": to, "connect": None, "sni": None, "form": form, "host": host, "tls": False},
               in_clear(to, form, host))


def main(t):
    s = scene.Scene(t)
    origins = {n: s.add(n, shapes.echo) for n in ALLOWED}
    origins.update({n: s.add(n + ":80", shapes.echo, tls=False) for n in CLEAR})
    capture = s.add(EVIL, shapes.echo)
    for n in ALLOWED:
        s.rule(allow=n)
    for n in CLEAR:
        s.rule(allow="http://" + n)
    box = durward.Sandbox(s.d)
    asked = list(cases())
    status, out, err = box.sh("/usr/bin/python3 %s/authority.py" % durward.INSIDE, timeout=100,
                              stdin=json.dumps([a[0] for a in asked]))
    if not t.eq(status, 0, "all were tried"):
        t.diag(err)
        return
    got = json.loads(out)
    served = collections.Counter()
    for what, some in (("SNI x Host x CONNECT x destination", slice(0, 256)),
                       ("destination x absolute form x Host", slice(256, 320))):
        wrong = [(a, want, g) for (a, (want, _)), g in zip(asked[some], got[some]) if g != want]
        good = sum(want[1] is None for _, want in asked[some])
        t.ok(not wrong, "A1 A2 A3 %s: %d served, %d refused, each as it must" % (
            what, good, len(asked[some]) - good), "%d wrong" % len(wrong),
            *["%s: wanted %s, got %s" % w for w in wrong[:8]])
    for a, (want, code) in asked:
        if code is None:
            served[a["host"]] += 1
    t.eq({n: len(o.requests) for n, o in origins.items()}, dict(served),
         "A1 each origin saw its own and no other")
    t.ok(all(q.get("host") == n for n, o in origins.items() for q in o.requests),
         "A1 under its own name")
    t.eq((capture.accepted, capture.bytes_in), (0, 0), "A1 nothing reached a host of no rule")
    box.close()
    want = collections.Counter(code for _, (_, code) in asked if code)
    t.eq(dict(collections.Counter(r["code"] for r in s.d.kinds("denied"))), dict(want),
         "A1 one record for each refused")
    s.judge([(o, None) for o in origins.values()], (), "matrix")


tap.run(main, timeout=150)
