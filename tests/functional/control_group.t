#!/usr/bin/python3 -B
"""What makes a sandbox begins in the sandbox's control group, and all that runs in there stays in it; with version 1 of control
groups and with version 2."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402

MOUNT = "/sys/fs/cgroup"
SECOND = "DURWARD_TEST_CGROUP2"  # set: this is the test over again, where version 2 is mounted


def main(t):
    again = SECOND in os.environ
    if os.geteuid() != 0:
        raise tap.Skip("only root may make control groups on this host")
    d = durward.Durward(t)
    d.policies = {"box": {"rules": [], "sandbox": {"memory": "256MiB", "pids": 100}}}
    d.serve()
    c = api.Api(d.socket)
    sid = c.create()["id"]
    if not any(p.endswith("durward-" + sid) for p, _, _ in os.walk(MOUNT)):
        raise tap.Skip("no control group can be made on this host")
    name = "version 2: " if again else ""
    c.sh(sid, "sleep 300 >/dev/null 2>&1 &")
    kept = [(p, open(os.path.join(p, "cgroup.procs")).read().split()) for p, _, _ in os.walk(MOUNT)
            if p.endswith("durward-" + sid)]
    t.ok(all(len(pids) >= 3 for _, pids in kept), name + "bubblewrap, process 1 and a command are in each group", kept)
    t.ok(len({tuple(sorted(pids)) for _, pids in kept}) == 1, name + "and in each of them alike", kept)
    c.delete(sid)
    t.ok(tap.wait_for(lambda: not any(os.path.exists(p) for p, _ in kept), 10), name + "which end with the sandbox")
    if not again:
        r = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c",
                            'mount -t cgroup2 cgroup2 "$0" && exec "$1" -B "$2"', MOUNT, sys.executable, os.path.abspath(__file__)],
                           env=dict(os.environ, **{SECOND: "1"}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                           timeout=60)
        lines = [x for x in r.stdout.splitlines() if x.startswith(("ok", "not ok")) and "version 2" in x]
        t.ok(r.returncode == 0 and len(lines) == 3 and not any(x.startswith("not ok") for x in lines),
             "the same with version 2", r.stdout)
    d.stop()


tap.run(main, timeout=120)
