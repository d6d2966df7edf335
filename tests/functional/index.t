#!/usr/bin/python3 -B
"""Indexes of closed audit files: made as files are closed, made anew, and never a difference to what
audit query finds without them."""
import glob
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import scene, tap  # noqa: E402


def closed(s):
    return sorted(glob.glob(os.path.join(s.d.audit_dir, "audit-*.jsonl.zst")))


def indexes(s):
    return sorted(glob.glob(os.path.join(s.d.audit_dir, "audit-*.idx")))


def blocks(s):
    return sorted(glob.glob(os.path.join(s.d.audit_dir, "audit-*.blk")))


def rotate(t, s, n):
    s.d.settle()
    s.d.daemon.send_signal(signal.SIGHUP)
    t.ok(tap.wait_for(lambda: len(closed(s)) == n, 10, 0.05), "%d files are closed" % n)


def query(s, *flags):
    r = s.d.command("audit", "query", "--json", *flags, s.d.audit_dir)
    return r.stdout.splitlines()


def same(t, s, what):
    lines = [json.loads(x) for x in query(s, "--no-index")]
    first = lines[0]["received"]
    found = 0
    for flags in ((), ("--host", "api.github.com"), ("--host", "deps.example.com"),
                  ("--host", ".example.com"), ("--host", "nowhere.example"),
                  ("--policy", "coder"), ("--kind", "denied"), ("--kind", "completed"),
                  ("--code", "denied_by_rule"), ("--status", "200"), ("--role", "injector"),
                  ("--credential", "github"), ("--rule", "deny api.github.com/gists/**"),
                  ("--method", "POST", "--kind", "completed"), ("--text", "GISTS"),
                  ("--host", "deps.example.com", "--status", "200"), ("--since", first),
                  ("--until", first), ("--id", [x for x in lines if x["kind"] == "completed"][0]["id"])):
        a, b = query(s, *flags), query(s, "--no-index", *flags)
        c = query(s, "--limit", "0", *flags)
        if sorted(a) != sorted(c):
            t.eq(a, c, "%s: backwards and forwards: %s" % (what, " ".join(flags)))
        few = query(s, "--limit", "3", *flags)
        if few != a[-3:]:
            t.eq(few, a[-3:], "%s: the newest three: %s" % (what, " ".join(flags)))
        found += len(a)
        if a != b:
            t.eq(a, b, "%s: with and without index: %s" % (what, " ".join(flags)))
    t.ok(found > 50, "%s: 19 queries find the same with and without index: %d lines" % (
        what, found))


def main(t):
    s = scene.Scene(t)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for _ in range(3):
        gate.get("api.github.com", "/user")
    rotate(t, s, 1)
    for _ in range(3):
        gate.get("deps.example.com", "/x", method="POST", body=b"x" * 100)
    rotate(t, s, 2)
    for _ in range(3):
        gate.get("api.github.com", "/gists", method="POST", body=b"{}")
    rotate(t, s, 3)
    gate.get("api.openai.com", "/v1/models")
    s.d.settle()
    # the file that was there when this logger began is no whole one to it
    t.eq(len(indexes(s)), 2, "each file that this daemon began and closed has an index")
    t.ok(tap.wait_for(lambda: len(blocks(s)) == 3, 5, 0.05),
         "each file that it compressed has an index of blocks")
    same(t, s, "two indexes")
    r = s.d.command("audit", "query", "--limit", "2", s.d.audit_dir)
    t.ok(len(r.stdout.splitlines()) == 2 and "newest 2" in r.stderr, "that there are more is said",
         r.stdout, r.stderr)
    r = s.d.command("audit", "index", s.d.audit_dir)
    t.eq((r.returncode, r.stdout, len(indexes(s))), (0, "1 made\n", 3), "audit index makes the rest")
    same(t, s, "all indexes")
    for path in indexes(s) + blocks(s):
        os.remove(path)
    same(t, s, "none")
    r = s.d.command("audit", "index", s.d.audit_dir)
    t.eq((r.stdout, len(indexes(s)), len(blocks(s))), ("3 made\n", 3, 3),
         "all of them anew, of compressed files")
    same(t, s, "made anew")
    with open(indexes(s)[1], "r+b") as f:
        f.seek(5000)
        f.write(b"damage")
    with open(blocks(s)[1], "r+b") as f:
        f.seek(60)
        f.write(b"damage")
    same(t, s, "damaged ones")
    r = s.d.command("audit", "verify", s.d.audit_dir)
    t.eq(r.returncode, 0, "the log verifies beside them") or t.diag(r.stdout + r.stderr)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
