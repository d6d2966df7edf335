#!/usr/bin/python3 -B
"""What makes a sandbox begins in the sandbox's control group, and all that runs in there stays in it; with version 1 of control
groups and with version 2, and where clone3 cannot be had."""
import ctypes
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402

MOUNT = "/sys/fs/cgroup"
SECOND = "DURWARD_TEST_CGROUP2"  # set: this is the test over again, where version 2 is mounted
CLONE3, ENOSYS = 435, 38


def without_clone3():
    """From now on it is not there, as some engines' filters have it."""
    def step(code, k, yes=0, no=0):
        return struct.pack("=HBBI", code, yes, no, k)
    steps = step(0x20, 0) + step(0x15, CLONE3, 0, 1) + step(0x06, 0x50000 | ENOSYS) + step(0x06, 0x7fff0000)
    program = ctypes.create_string_buffer(steps, len(steps))
    whole = struct.pack("@HP", 4, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(whole), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def second(t, how):
    r = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c",
                        'mount -t cgroup2 cgroup2 "$0" && exec "$1" -B "$2"', MOUNT, sys.executable, os.path.abspath(__file__)],
                       env=dict(os.environ, **{SECOND: how}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                       timeout=60)
    lines = [x for x in r.stdout.splitlines() if x.startswith(("ok", "not ok")) and "version 2" in x]
    t.ok(r.returncode == 0 and len(lines) == 3 and not any(x.startswith("not ok") for x in lines),
         "the same %s" % how, r.stdout)


def main(t):
    again = SECOND in os.environ
    if os.geteuid() != 0:
        raise tap.Skip("only root may make control groups on this host")
    if os.environ.get(SECOND) == "where clone3 is refused":
        without_clone3()
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
        second(t, "with version 2")
        second(t, "where clone3 is refused")
    d.stop()


tap.run(main, timeout=120)
