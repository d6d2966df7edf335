#!/usr/bin/python3 -B
"""capture_body: the beginnings of both bodies on record, from the gate and from the injector, over
HTTP/1 and HTTP/2; bounded; a reflected secret is taken out before; nothing for other rules."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import h2, origin, scene, tap  # noqa: E402

KEYED, OPEN, BARE = "keyed.example.com", "open.example.com", "bare.example.com"


def bodies(s, request):
    """{side: bytes} of the request with this id, and the details."""
    pieces = [x for x in s.d.kinds("body") if x["id"] == request]
    found, details = {}, []
    for x in pieces:
        assert x["offset"] == len(found.get(x["code"], b"")), x
        found[x["code"]] = found.get(x["code"], b"") + x["body"].encode("latin-1")
        details += [x["detail"]] if "detail" in x else []
    return found, details


def last(s, path):
    """The id of the admitted request of this path, once it ended."""
    for r in reversed(s.d.wait_records(1, "admitted", path=path)):
        s.d.wait_records(1, "completed", id=r["id"])
        return r["id"]


def plain(t, s, gate):
    sent = bytes(range(256)) * 20
    gate.get(OPEN, "/up", method="POST", body=sent)
    got, details = bodies(s, last(s, "/up"))
    t.eq((got.get("request"), got.get("reply")), (sent[:4000], b"<" + sent[:3999]),
         "the gate: the first 4000 bytes of each, as they are")
    t.eq(details, ["the first 4000 of 5120 bytes", "the first 4000 of 5122 bytes"], "and how many there were")
    gate.get(BARE, "/none", method="POST", body=b"quiet")
    t.eq(bodies(s, last(s, "/none"))[0], {}, "nothing for a rule without")


def keyed(t, s, gate):
    r = gate.get(KEYED, "/echo", method="POST", body=b"what I ask")
    t.ok(r.status == 200 and b"REDACTED" in r.body, "the origin sends the secret back", str(r.body[:80]))
    got, _ = bodies(s, last(s, "/echo"))
    t.eq(got.get("request"), b"what I ask", "the injector: the request as it was sent")
    t.eq(got.get("reply"), r.body, "the reply as the sandbox got it, without the secret")


def over_h2(t, s, gate):
    for host, path in ((OPEN, "/h2"), (KEYED, "/h2k")):
        with h2.H2(gate, host) as c:
            stream = c.open(c.fields(path, "POST"), end=False)
            c.frame(0, 1, stream, b"by h2")
            t.eq(c.answer(stream, 10).status, 200, "HTTP/2 to %s" % host)
        got, _ = bodies(s, last(s, path))
        t.ok(got.get("request") == b"by h2" and got.get("reply"), "is captured as well", str(got))


def main(t):
    s = scene.Scene(t)
    secret = s.github_credential[1]

    def mirror(req, conn):
        conn.reply(req, 200, b"<" + req.body + b">", kind="application/octet-stream")

    def tell(req, conn):
        conn.reply(req, 200, b'{"you":"' + secret.encode() + b'"}')
    for host in (OPEN, BARE):
        s.add(host, mirror)
    s.add(KEYED, origin.needs(s.github_credential, tell))
    s.rule(allow=OPEN, capture_body="4KB")
    s.rule(allow=BARE)
    s.rule(allow=KEYED, capture_body="16KB", **{"with": {"bearer": "github"}})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    plain(t, s, gate)
    keyed(t, s, gate)
    h2.needed()
    over_h2(t, s, gate)
    s.clean()
    r = s.d.command("audit", "verify", s.d.audit_dir)
    t.eq(r.returncode, 0, "the log verifies") or t.diag(r.stdout + r.stderr)
    for text, why in (("capture_body: 17KB", "1KB to 16KB"), ("capture_body: 9", "such as 64MB")):
        r = s.d.check("version: 1\npolicies: { a: { rules: [ { allow: x.com, %s } ] } }\n" % text)
        t.ok(r.returncode == 1 and why in r.stderr + r.stdout, "%s: %s" % (text, why), r.stderr)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
