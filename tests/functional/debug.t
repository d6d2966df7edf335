#!/usr/bin/python3 -B
"""`durward debug bundle`: what a bug report needs, and no secret: neither of a store nor written into the
configuration where one may stand (a header that a rule sets, a variable, a URL)."""
import json
import os
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, scan, scene, tap  # noqa: E402

MEMBERS = {"versions.json", "doctor.json", "configuration.json", "health.json", "status.json", "events.json",
           "metrics.txt"}


def main(t):
    s = scene.Scene(t)
    words = {name: scan.canary(b"%s-" % name.encode()).decode() for name in ("header", "variable", "query")}
    for name, word in words.items():
        s.scanner.add(name, word.encode())
    s.rule(allow="headers.example.com", headers={"x-of-ours": words["header"]})
    s.env["A_VARIABLE"] = words["variable"]
    s.d.serve()
    a = api.Api(s.d.socket)
    t.cleanup(a.close)
    box = a.create(policy="coder")["id"]
    a.sh(box, "curl -sS -d '{}' -H 'Content-Type: application/json' 'https://api.openai.com/v1/x?q=%s'" % words["query"])
    file = t.path("report.tar")
    r = s.d.command("debug", "bundle", "-c", s.d.conf, "--socket", s.d.socket, file)
    t.eq((r.returncode, r.stderr), (0, ""), "a bundle is made")
    t.ok(r.stdout.startswith(file + "\n"), "and where is said", r.stdout)
    t.eq(os.stat(file).st_mode & 0o777, 0o600, "for its owner alone")
    with tarfile.open(file) as tar:
        got = {m.name.split("/", 1)[1]: tar.extractfile(m).read() for m in tar.getmembers()}
    t.eq(set(got), MEMBERS, "with its members")
    for name, data in got.items():
        if name.endswith(".json"):
            t.ok(json.loads(data) is not None, "%s is JSON" % name, data[:200])
        s.scanner.search(data, name)
    t.ok(s.scanner.bytes > 3000 and not s.scanner.hits, "%d bytes hold 0 secrets" % s.scanner.bytes, s.scanner.hits)
    c = json.loads(got["configuration.json"])
    rule = [x for x in c["policies"]["coder"]["rules"] if x.get("allow") == "api.openai.com/[...]"]
    t.eq(rule[0]["with"], {"bearer": "openai"}, "a rule is in it, with its secret's name")
    t.ok(set(c["secrets"]) == {"github", "openai"}, "secrets by their names", c["secrets"])
    t.has(json.dumps(c), "[%d bytes]" % len(words["header"]), "what may be a secret is a length")
    t.ok({"gate", "vault", "logger"} <= {x["role"] for x in json.loads(got["status.json"])["roles"]}, "the roles are told")
    t.ok(b"durward_" in got["metrics.txt"], "the metrics are in it")
    t.ok(box.encode() in got["events.json"], "the last events are in it")
    r = s.d.command("debug", "bundle", "-c", s.d.conf, "--socket", s.d.socket, file)
    t.ok(r.returncode == 1 and "is there already" in r.stderr, "nothing is overwritten", r.stderr)
    s.d.stop()
    other = t.path("stopped.tar")
    r = s.d.command("debug", "bundle", "-c", s.d.conf, "--socket", s.d.socket, other)
    with tarfile.open(other) as tar:
        status = tar.extractfile("durward-debug/status.json").read()
    t.ok(r.returncode == 0 and b"no daemon answers" in status, "without a daemon it says so", r.stderr, status)
    t.eq(s.d.command("debug").returncode, 2, "a usage error")


tap.run(main)
