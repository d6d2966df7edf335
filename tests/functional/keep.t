#!/usr/bin/python3 -B
"""The audit log over time: rotated on SIGHUP, compressed, anchored by a command, one record proven
without the log, and a rollback that only the anchor shows."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402

HOST = "api.github.com"


def lines(path):
    if not path.endswith(".zst"):
        with open(path) as f:
            return f.read().splitlines()
    return subprocess.run(["zstd", "-dc", path], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def logs(d):
    return sorted(p for p in glob.glob(os.path.join(d.audit_dir, "audit-*.jsonl*"))
                  if p.endswith((".jsonl", ".zst")))


def copy_log(d, name):
    to = os.path.join(d.dir, name)
    shutil.copytree(d.audit_dir, to, ignore=shutil.ignore_patterns("journal", "key"))
    return to


def packed(d):
    return sum(p.endswith(".zst") for p in logs(d))


def rotate(d, gate, n):
    """Requests, SIGHUP; then one more file is there compressed."""
    before = packed(d)
    for _ in range(n):
        gate.get(HOST, "/user")
    os.kill(d.daemon.pid, signal.SIGHUP)

    def done():
        gate.get(HOST, "/user")
        return packed(d) > before
    return tap.wait_for(done, 20, 0.2)


def verified(t, d, *args):
    r = d.command("audit", "verify", "--json", *args)
    return r.returncode, json.loads(r.stdout or "{}"), r.stderr


def prove(t, d, old):
    records = [json.loads(x) for x in lines(old)]
    record = next(r for r in records if r["kind"] == "admitted")
    r = d.command("audit", "prove", str(record["seq"]), d.audit_dir)
    proof = os.path.join(d.dir, "proof.json")
    with open(proof, "w") as f:
        f.write(r.stdout)
    t.ok(r.returncode == 0, "audit prove: a proof of one record", r.stderr)
    key = os.path.join(d.audit_dir, "key.pub")
    r = d.command("audit", "verify", "--proof", proof, "--key", key)
    t.ok(r.returncode == 0 and '"id":"%s"' % record["id"] in r.stdout,
         "which holds with nothing but the key", r.stdout, r.stderr)
    with open(proof) as f:
        text = f.read()
    with open(proof, "w") as f:
        f.write(text.replace("/user", "/uses"))
    r = d.command("audit", "verify", "--proof", proof, "--key", key)
    t.ok(r.returncode == 1 and "not the one that was signed" in r.stderr,
         "and not once the record is changed", r.stdout, r.stderr)


def described(t, d):
    """Every line fits the published schema, and the schema names what the program can write."""
    with open(os.path.join(durward.TOP, "doc", "audit-record.schema.json")) as f:
        schema = json.load(f)
    with open(os.path.join(durward.TOP, "audit", "record.c")) as f:
        source = f.read()
    known = set(re.findall(r'\[RF_[A-Z_]+\] = "([a-z_]+)"', source))
    t.ok(known and known <= set(schema["properties"]), "the schema has every field",
         str(known - set(schema["properties"])))
    kinds = set(re.findall(r'\[RECORD_[A-Z_]+\] = "([a-z_]+)"', source))
    t.eq(kinds, set(schema["properties"]["kind"]["enum"]), "and every kind")
    try:
        import jsonschema
    except ImportError:
        t.skip("each line fits the schema", "python3-jsonschema is missing")
        return
    checker = jsonschema.Draft202012Validator(schema)
    bad = [(e.message, x) for p in logs(d) for x in lines(p) for e in
           checker.iter_errors(json.loads(x))]
    t.ok(not bad, "each of the log's lines fits it", str(bad[:3]))


def main(t):
    s = scene.Scene(t)
    d = s.d
    kept = os.path.join(d.dir, "kept")
    d.audit["anchor"] = {"command": ["/bin/sh", "-c", "cat >> %s" % kept]}
    d.audit["rotate"] = {"every": "24h"}
    address = s.listener()
    d.serve()
    gate = s.gate(address)
    t.ok(rotate(d, gate, 5), "SIGHUP: a new file, the old one compressed", str(logs(d)))
    old = logs(d)[0]
    t.eq(json.loads(lines(old)[-1])["kind"], "checkpoint", "which ends with a checkpoint")
    tap.wait_for(lambda: os.path.exists(kept) and os.path.getsize(kept), 20)
    t.eq(lines(kept)[0], lines(old)[-1], "and its copy is with the anchor")
    r = d.command("audit", "query", "--json", "--kind", "admitted", d.audit_dir)
    t.ok(r.stdout.count('"admitted"') >= 6, "audit query reads the compressed file", r.stdout,
         r.stderr)
    prove(t, d, old)
    early = copy_log(d, "early")
    t.ok(rotate(d, gate, 3), "and again")
    tap.wait_for(lambda: len(lines(kept)) >= 2, 20)
    code, v, errors = verified(t, d, "--anchor", kept, d.audit_dir)
    t.ok(code == 0 and v["logs"][0]["anchored"] >= 2, "the log holds what the anchor keeps", v,
         errors)
    code, v, errors = verified(t, d, early)
    t.ok(code == 0, "an older copy with its own head looks good by itself", str(v), errors)
    code, v, errors = verified(t, d, "--anchor", kept, early)
    t.ok(code == 1 and "rolled back" in v["logs"][0]["why"], "but not to the anchor", str(v), errors)
    t.eq(d.stop(), 0, "the daemon ends well")
    described(t, d)
    code, v, errors = verified(t, d, d.audit_dir)
    t.ok(code == 0 and v["logs"][0]["checkpoints"] >= 3, "the whole log verifies", str(v), errors)


tap.run(main)
