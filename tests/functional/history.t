#!/usr/bin/python3 -B
"""The log by the API: records found by their conditions, page by page, however old; a case of them
as one file with the proofs that they stand in the log, which `durward audit verify --case` checks
with the public key alone and which no edit survives. What a code means, and how bad it is."""
import copy
import json
import os
import signal
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, scene, tap  # noqa: E402

REFUSED = 12


def query(a, **conditions):
    return a.ask("GET", "/v1/audit/query?" + urllib.parse.urlencode(conditions, quote_via=urllib.parse.quote))


def refusal(a, path):
    try:
        a.ask("GET", path)
        return 200
    except api.Refused as e:
        return e.status


def traffic(s, gate):
    for i in range(REFUSED):
        gate.get("api.github.com", "/gists/%d" % i)
    for i in range(5):
        gate.get("api.github.com", "/user")
    r, st = gate.connect("elsewhere.example:443")
    st.close()
    s.d.settle()


def found(t, a):
    v = query(a, kind="denied", code="denied_by_rule")
    t.eq((len(v["records"]), v["more"]), (REFUSED, False), "records by kind and code")
    t.eq({r["path"] for r in v["records"]}, {"/gists/%d" % i for i in range(REFUSED)}, "all of them")
    t.eq([r["seq"] for r in v["records"]], sorted(r["seq"] for r in v["records"]), "the oldest first")
    v = query(a, kind="denied", code="denied_by_rule", limit=5)
    t.eq(([r["path"] for r in v["records"]], v["more"]), (["/gists/%d" % i for i in range(7, 12)], True), "the newest, and that there are more")
    seen = [r["seq"] for r in v["records"]]
    while v["more"]:
        v = query(a, kind="denied", code="denied_by_rule", limit=5, until=v["records"][0]["received"])
        seen = [r["seq"] for r in v["records"]] + seen
    t.eq(len(set(seen)), len(seen), "page by page none comes twice")
    t.ok(len(seen) >= REFUSED - 2, "and those of another time all come", str(len(seen)))
    t.eq(len(query(a, text="/gists/7")["records"]), 1, "by a text")
    t.eq({r["kind"] for r in query(a, host="api.github.com", status=200)["records"]}, {"completed"}, "by host and status")
    t.eq(query(a, since="2099-01-01")["records"], [], "nothing is of the future")
    t.eq(query(a, until="2020-01-01")["records"], [], "nor of a past before it")
    v = query(a, policy="coder", method="GET", kind="denied", text="--limit=0")
    t.eq(v["records"], [], "a condition's words are never an option")
    for bad in ("since=yesterdayish", "kind=nonsense", "status=7", "limit=0", "limit=5001", "nothing=1",
                "text=" + "x" * 300, "kind=denied&kind=dns"):
        t.eq(refusal(a, "/v1/audit/query?" + bad), 400, "%s: 400" % bad[:40])


def crowded(t, s, a):
    ends = []

    def one():
        b = api.Api(s.d.socket)
        ends.append(refusal(b, "/v1/audit/query?kind=denied"))
        b.close()
    all_of_them = [threading.Thread(target=one) for _ in range(24)]
    for x in all_of_them:
        x.start()
    for x in all_of_them:
        x.join()
    t.eq(set(ends) - {200, 503}, set(), "24 questions at once are answered or put off")
    t.ok(ends.count(503) > 0 and ends.count(200) >= 4, "some of each", str(ends))
    t.eq(refusal(a, "/v1/audit/query?kind=denied"), 200, "and then there is room again")


def verify(s, case, key, *more):
    path = os.path.join(s.d.dir, "case.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(case, f)
    return s.d.command("audit", "verify", "--case", path, "--key", key, *more)


def cases(t, s, a):
    key = os.path.join(s.d.audit_dir, "key.pub")
    young = a.ask("GET", "/v1/audit/case?kind=denied&code=denied_by_rule")
    if young["unsigned"]:
        r = verify(s, young, key)
        t.ok(r.returncode == 1 and "not proven" in r.stdout, "what no checkpoint covers is said to be unproven", r.stdout, r.stderr)
    before = len(s.d.kinds("checkpoint"))
    s.d.daemon.send_signal(signal.SIGHUP)  # a file ends with a checkpoint
    s.d.wait_records(before + 1, "checkpoint")
    case = a.ask("GET", "/v1/audit/case?kind=denied&code=denied_by_rule")
    t.eq((len(case["records"]), case["unsigned"], case["asked"], case["verified"], "log" in case),
         (REFUSED, [], {"kind": "denied", "code": "denied_by_rule"}, {"records": REFUSED, "unsigned": 0}, False),
         "a case has the records, what was asked, and that it holds; the rest of the log was not read")
    r = verify(s, case, key)
    t.ok(r.returncode == 0 and "good: %d records stand in the log" % REFUSED in r.stdout and "/gists/3" in r.stdout,
         "it is verified with the public key alone", r.stdout, r.stderr)
    v = json.loads(verify(s, case, key, "--json").stdout)
    t.eq(v, {"ok": True, "records": REFUSED, "unsigned": 0}, "as JSON too")

    def edited(what, change):
        other = copy.deepcopy(case)
        change(other)
        r = verify(s, other, key)
        t.ok(r.returncode == 1 and "good" not in r.stdout, what, r.stdout, r.stderr)
    edited("a changed record is found out", lambda c: c["records"][3].update(line=c["records"][3]["line"].replace("/gists/3", "/gists/4")))
    edited("one that is told twice", lambda c: c["records"].insert(1, c["records"][0]))
    edited("two that changed places", lambda c: c["records"].reverse())
    edited("a path of another", lambda c: c["records"][0].update(path=c["records"][1]["path"]))
    edited("a checkpoint that is none", lambda c: c["checkpoints"].__setitem__(0, c["checkpoints"][0].replace('"root":"', '"root":"0', 1)))
    edited("a checkpoint that is not there", lambda c: c["records"][0].update(checkpoint=7))
    edited("an unsigned line that is no record", lambda c: c["unsigned"].append("{}"))
    other = os.path.join(s.d.dir, "other")
    os.mkdir(other)
    stranger = scene.Scene(t, name="e")
    stranger.d.serve()
    r = verify(s, case, os.path.join(stranger.d.audit_dir, "key.pub"))
    t.ok(r.returncode == 1 and "not signed by this key" in r.stderr, "another log's key does not fit", r.stdout, r.stderr)
    stranger.d.stop()
    r = s.d.command("audit", "case", "--code", "denied_by_rule", s.d.audit_dir)
    t.eq(json.loads(r.stdout)["records"], case["records"], "durward audit case says the same")
    r = s.d.command("audit", "case", "--whole", "--code", "denied_by_rule", s.d.audit_dir)
    t.eq(json.loads(r.stdout)["log"]["ok"], True, "with --whole it says how the log was")
    r = s.d.command("audit", "verify", "--case", "/dev/null", "--key", key)
    t.eq(r.returncode, 1, "an empty file is no case")
    t.eq(s.d.command("audit", "verify", "--case", "x").returncode, 2, "without a key it is a usage error")


def codes(t, a):
    v = a.ask("GET", "/v1/codes")
    by = {c["code"]: c for c in v["codes"] if "status" not in c}
    t.eq((by["foreign_credential"]["severity"], by["no_rule"]["severity"], by["denied_by_rule"]["severity"]),
         ("critical", "low", "medium"), "a foreign credential is not a missing rule")
    t.ok(by["no_rule"]["why"] == "no rule of the policy allows it" and by["no_rule"]["way"], "each with what it means")
    t.eq((v["kinds"]["packet"], v["kinds"]["completed"], v["events"]["threshold_kill"]), ("medium", "info", "critical"), "kinds and events have one too")


def main(t):
    s = scene.Scene(t)
    address = s.listener()
    s.d.serve()
    a = api.Api(s.d.socket, timeout=130)
    traffic(s, s.gate(address))
    t.part(found, t, a)
    t.part(crowded, t, s, a)
    t.part(cases, t, s, a)
    t.part(codes, t, a)
    a.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=180)
