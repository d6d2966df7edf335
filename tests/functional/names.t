#!/usr/bin/python3 -B
"""Names that no rule names, in a local sandbox: one address of their own that says over HTTP why, at once;
other ports of it are reset. A network's own names and those set apart do not exist, and with
`names: nxdomain` none of them does."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

PLACE = ["198.19.255.254", "fd64:7572:7761:7264::1:fffe"]
UNLISTED = ("paste.acme.dev", "sub.api.github.com", "a.b.c.d.acme.io", "PASTE.acme.dev")
APART = ("printer", "printer.local", "x.internal", "1.0.18.198.in-addr.arpa", "x.test", "x.invalid", "x.example",
         "example.com", "x.example.com", "x.localhost", "x.onion", "wpad", "other.durward.internal")
WHY = "Durward denied this request: no rule of the policy allows it"
NXDOMAIN, NOERROR = 3, 0


def asked(box, *names, **more):
    steps = [dict({"do": "dns", "name": x}, **more) for x in names]
    status, out, err = box.sh("%s %s/net.py -" % (durward.PYTHON, durward.INSIDE), stdin=json.dumps(steps))
    if status != 0:
        raise RuntimeError("net.py: %s %s" % (out, err))
    return json.loads(out)


def resolved(t, box):
    for i, kind in enumerate((1, 28)):
        got = asked(box, *UNLISTED, type=kind)
        t.eq([(g.get("rcode"), g.get("answers")) for g in got], [(NOERROR, [PLACE[i]])] * len(UNLISTED),
             "names that no rule names have one address, type %d" % kind)
    got = asked(box, *UNLISTED, type=65)
    t.eq([(g.get("rcode"), g.get("answers")) for g in got], [(NOERROR, [])] * len(UNLISTED), "of other types no data")
    absent(t, box, APART)


def absent(t, box, names):
    for kind in (1, 28, 65):
        got = asked(box, *names, type=kind)
        bad = [x for x, g in zip(names, got) if g.get("rcode") != NXDOMAIN]
        t.ok(not bad, "%d names do not exist, type %d" % (len(names), kind), repr(bad))


def told(t, s, box, outputs):
    for url, more in (("https://paste.acme.dev/x", ""), ("https://paste.acme.dev/x", "--http1.1"), ("http://paste.acme.dev/x", ""),
                      ("https://paste.acme.dev/x", "-6"), ("https://paste.acme.dev/x", "-d zebra"),
                      ("http://paste.acme.dev/x", "-d zebra")):
        before = len(s.d.kinds("denied"))
        status, out, err = box.sh("curl -sS -m 10 -i %s %s -w '%%{time_total}'" % (more, url))
        outputs += [out, err]
        new = s.d.wait_records(before + 1, "denied")[before:]
        t.ok(status == 0 and " 403" in out.split("\n")[0] and WHY in out and float(out.split()[-1]) < 2,
             "%s %s: 403 at once, and why" % (more, url), out, err)
        t.eq([(r["code"], r["authority"], r["path"]) for r in new],
             [("no_rule", "paste.acme.dev", "/x")], "and one record") or t.diag(str(new))
    status, out, err = box.sh("curl -sS -m 10 -H 'Accept: application/json' https://other.acme.dev/v1/x")
    outputs += [out, err]
    t.eq(json.loads(out)["error"]["code"], "no_rule", "as JSON where that is asked for")
    _, out, err = box.sh("%s -B %s/refused.py urllib other.acme.dev" % (durward.PYTHON, durward.INSIDE))
    outputs += [out, err]
    t.has(out, WHY, "Python's urllib says why")
    _, out, err = box.sh("git clone -q https://git.acme.dev/a/b.git ~/b")
    outputs += [out, err]
    t.has(err, "remote: " + WHY, "git says why")


def elsewhere(t, s, box, outputs):
    """The place is no way to a name that has one of its own, and no other port of it is open."""
    for port in (25, 8080, 3128, 53443):
        status, out, err = box.sh("curl -sS -m 5 http://paste.acme.dev:%d/" % port)
        outputs += [out, err]
        t.ok(status in (7, 35, 56, 52) and "Durward" not in out, "port %d is reset" % port, str(status), out, err)
    seen = len(s.github.requests)
    for line in ("-H 'Host: api.github.com' http://paste.acme.dev/user",
                 "--connect-to api.github.com:443:%s:443 https://api.github.com/user" % PLACE[0],
                 "-H 'Host: api.github.com' https://paste.acme.dev/user"):
        status, out, err = box.sh("curl -sS -m 10 -o /dev/null -w '%%{http_code}' %s" % line)
        outputs += [out, err]
        t.ok(out == ("403" if "http:" in line else "421") or (status == 35 and out == "000"), "an allowed name is not served there: " + line, out, err)
    t.eq(len(s.github.requests), seen, "and nothing of it arrived")
    status, out, err = box.sh("curl -sSk -m 10 https://%s/" % PLACE[0])
    outputs += [out, err]
    t.ok(status == 35, "without a name there is no certificate", str(status), out, err)


def main(t):
    s = scene.Scene(t)
    box = durward.Sandbox(s.d)
    outputs = []
    t.part(resolved, t, box)
    t.part(told, t, s, box, outputs)
    t.part(elsewhere, t, s, box, outputs)
    rows = [r for r in s.d.kinds("dns") if r.get("code") == "dns_denied"]
    t.ok(any("paste.acme.dev" in str(r) for r in rows), "the names are in the log", str(rows)[-600:])
    t.eq(s.d.kinds("connection"), [], "nobody was asked for their address")
    outputs.append(box.close()[1])
    s.d.policies["coder"]["names"] = "nxdomain"
    box = durward.Sandbox(s.d)
    t.part(absent, t, box, UNLISTED + APART)
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.clean(outputs, "the names")


tap.run(main)
