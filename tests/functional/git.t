#!/usr/bin/python3 -B
"""git clone, fetch and push inside a sandbox against git http-backend behind nginx, which wants the
injected Basic credential; and remotes written for ssh."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, scan, scene, tap  # noqa: E402

IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_TERMINAL_PROMPT": "0"}


def work(mode, url):
    return ("set -e; cd ~; rm -rf {m}; git clone -q {u} {m}; cd {m}; cat README; wc -c < big; "
            "head -c 150000 /dev/urandom > new-{m}; git add .; git commit -q -m from-{m}; "
            "git push -q origin HEAD:refs/heads/{m}; git fetch -q; "
            "git rev-parse origin/{m} HEAD").format(m=mode, u=url)


def main(t):
    s = scene.Scene(t)
    password = scan.canary("ghp_")
    s.scanner.add("git", password)
    s.d.secret("git", password)
    server = nginx.GitServer(t, s.d.ca, "github.com", "x-access-token", password.decode())
    s.d.resolve["github.com"] = server.address
    s.rule(allow="github.com/acme/*", git="push",
           **{"with": {"basic": {"user": "x-access-token", "password": "git"}}})
    box = durward.Sandbox(s.d)
    outputs = []
    for mode, proxy, url in (("direct", False, "https://github.com/acme/repo.git"),
                             ("proxied", True, "https://github.com/acme/repo.git"),
                             ("ssh", False, "git@github.com:acme/repo.git"),
                             ("sshurl", True, "ssh://git@github.com/acme/repo.git")):
        status, out, err = box.sh(work(mode, url), proxy=proxy, env=IDENTITY, timeout=40)
        outputs += [out, err]
        lines = out.split("\n")
        t.ok(status == 0 and lines[0] == "hello from the repository" and lines[1] == "300000" and
             len(lines) > 3 and lines[2] == lines[3], "clone, push, fetch: " + mode, out, err)
        r = subprocess.run(["git", "--git-dir", server.repo, "-c", "safe.directory=*", "log", "-1",
                            "--format=%s", mode], stdout=subprocess.PIPE, env=nginx.git_env(t))
        t.eq(r.stdout.decode().strip(), "from-" + mode, "the push arrived: " + mode)
    status, out, err = box.sh("cd ~; git clone -q https://github.com/other/repo.git o",
                              env=IDENTITY)
    outputs += [out, err]
    t.ok(status != 0 and "403" in err, "a repository outside the rule is 403", err)
    scan.scan_sandbox(t, box, s.scanner)
    scan.scan_roles(t, box, s.scanner)
    box.close()
    records = server.records()
    wrong = [r for r in records if r["auth"] != server.basic]
    t.ok(records and not wrong, "the origin saw the right credential in each of its %d requests"
         % len(records), *wrong)
    t.ok(all(r["status"] < 400 for r in records), "and answered none with an error",
         *[str(r) for r in records if r["status"] >= 400])
    origins = [(server, None)]
    if s.github.requests:  # the load of the memory scan
        origins.append((s.github, s.github_credential))
    s.judge(origins, outputs, "git")


tap.run(main)
