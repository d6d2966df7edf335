#!/usr/bin/python3 -B
"""`refs` on a git rule, with real git against git http-backend: what may be pushed arrives; another
branch, a delete and a rewritten history are refused in words that git shows. And git-lfs batches."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, scan, scene, tap  # noqa: E402

IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_TERMINAL_PROMPT": "0"}
LFS = "lfs.example.com"
STEPS = (  # what, script, refused with (None: it arrives)
    ("a new branch", "git commit -q --allow-empty -m one; git push origin HEAD:refs/heads/agent/x",
     None),
    ("a fast-forward", "echo a >a; git add a; git commit -q -m two; "
     "git push origin HEAD:refs/heads/agent/x", None),
    ("forty commits, deltified, and a merge",
     "seq 1 3000 >list; git add list; git commit -q -m list; git checkout -q -b side HEAD~1; "
     "git commit -q --allow-empty -m side; git checkout -q -; git merge -q -m merge side; "
     "for i in $(seq 40); do echo $i >>list; git commit -q -a -m \"$(printf 'step %s ' $i $i $i $i "
     "$i $i $i $i)\"; done; git push origin HEAD:refs/heads/agent/x", None),
    ("another branch", "git push origin HEAD:refs/heads/main2", "durward: not allowed: refs/heads/main2"),
    ("a tag", "git tag v1; git push origin v1", "durward: not allowed: refs/tags/v1"),
    ("a deeper name", "git push origin HEAD:refs/heads/agent/x/y", "durward: not allowed"),
    ("a delete", "git push origin :refs/heads/agent/x", "durward: delete of refs/heads/agent/x"),
    ("a rewritten history", "git commit -q --amend -m rewritten; "
     "git push -f origin HEAD:refs/heads/agent/x", "durward: not shown to be a fast-forward"),
    ("back to an older commit", "git push -f origin HEAD~3:refs/heads/agent/x",
     "durward: not shown to be a fast-forward"),
    ("one allowed beside one that is not",
     "git push origin HEAD:refs/heads/agent/ok HEAD:refs/heads/other", "durward: not allowed"),
    ("12 MiB as a new branch", "head -c 12582912 /dev/urandom >big; git add big; "
     "git commit -q -m big; git push origin HEAD:refs/heads/agent/big", None),
    ("12 MiB as an update", "head -c 12582912 /dev/urandom >big; git add big; "
     "git commit -q -m big2; git push origin HEAD:refs/heads/agent/big",
     "durward: too large to show that it is a fast-forward"),
)


def refs(t, server):
    r = subprocess.run(["git", "--git-dir", server.repo, "-c", "safe.directory=*", "for-each-ref"],
                       stdout=subprocess.PIPE, env=nginx.git_env(t))
    return r.stdout.decode()


def pushes(t, s, server, box):
    outputs = []
    box.sh("cd ~; git clone -q https://github.com/acme/repo.git w", env=IDENTITY, timeout=40)
    for what, script, refused in STEPS:
        before = refs(t, server)
        status, out, err = box.sh("set -e; cd ~/w; " + script, env=IDENTITY, timeout=60)
        outputs += [out, err]
        after = refs(t, server)
        if refused is None:
            t.ok(status == 0 and after != before, what + " arrives", out, err)
        else:
            t.ok(status != 0 and refused in err and "rejected" in err and after == before,
                 what + " is refused, and git says why", out, err)
    return outputs


def batch(operation, **more):
    return json.dumps(dict({"operation": operation, "objects": []}, **more)).encode()


def lfs(t, gate, server):
    kind = "Content-Type: application/vnd.git-lfs+json\r\n"
    rows = (("read", "objects/batch", batch("download"), None),
            ("read", "objects/batch", batch("upload"), "lfs"),
            ("read", "objects/batch", b'{"operation":"download","operation":"upload"}',
             "body_ambiguous"),
            ("read", "objects/batch", b'{"operation":"download","Operation":"upload"}', "lfs"),
            ("read", "locks", b"{}", "no_rule"),
            ("write", "objects/batch", batch("download"), None),
            ("write", "objects/batch", batch("upload"), None),
            ("write", "objects/batch", batch("verify"), "lfs"),
            ("write", "locks", b"{}", None),
            ("write", "locks/verify", b"{}", None),
            ("write", "locks/7/unlock", b"{}", None),
            ("write", "locks/7/steal", b"{}", "no_rule"))
    for repo, path, body, code in rows:
        seen = len(server.requests)
        r = gate.get(LFS, "/acme/%s.git/info/lfs/%s" % (repo, path), kind, "POST", body=body)
        t.ok(r.code in ((code, "method") if code == "no_rule" else (code,)) and
             len(server.requests) - seen == (code is None),
             "git-lfs %s %s %s: %s" % (repo, path, body[:30], code or "passes"), str(r.code))


def main(t):
    s = scene.Scene(t)
    password = scan.canary("ghp_")
    s.scanner.add("git", password)
    s.d.secret("git", password)
    server = nginx.GitServer(t, s.d.ca, "github.com", "x-access-token", password.decode())
    s.d.resolve["github.com"] = server.address
    store = s.add(LFS, lambda req, conn: conn.reply(req, 200, b"{}"))
    basic = {"with": {"basic": {"user": "x-access-token", "password": "git"}}}
    s.rule(allow="github.com/acme/repo.git", git="push", refs="refs/heads/agent/*", **basic)
    s.rule(allow=LFS + "/acme/read", git="fetch")
    s.rule(allow=LFS + "/acme/write", git="push")
    box = durward.Sandbox(s.d)
    outputs = pushes(t, s, server, box)
    box.close()
    denied = [r.get("detail") for r in s.d.wait_records(8, "denied", code="ref")]
    t.ok("delete of refs/heads/agent/x" in denied, "a denied record names the reference", str(denied))
    s.clean(outputs, "push")
    address = s.listener()
    s.d.serve()
    lfs(t, s.gate(address), store)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
