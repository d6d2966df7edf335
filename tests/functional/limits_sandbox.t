#!/usr/bin/python3 -B
"""F13: What a sandbox may use: memory, processes, processor time, disk, open files. Each limit is
exceeded; the host is unaffected; what cannot be held here is said. As root and as an ordinary user."""
import os
import re
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import cgroups, durward, person, tap  # noqa: E402

ALL = {"memory": "64MiB", "pids": 64, "cpu": "50%", "disk": "8MiB", "files": 64}

FORKS = """
import os, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        n += 1
except OSError as e:
    print(e.errno, flush=True)
print(n, flush=True)
"""
THREADS = """
import threading, time
n = 0
try:
    while n < 1000:
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        n += 1
except RuntimeError:
    pass
print(n, flush=True)
import os
os._exit(0)
"""
FILES = """
import os
l = []
try:
    while len(l) < 1000:
        l.append(os.open("/dev/null", 0))
except OSError as e:
    print(e.errno, len(l))
"""
SPIN = """
import time, os
end = time.monotonic() + 2
while time.monotonic() < end:
    pass
print(sum(os.times()[:2]))
"""


def run(d, policy, *argv, **kw):
    return d.run(list(argv), flags=("--policy", policy, "--no-bind"), save=False, **kw)


def py(d, policy, script, **kw):
    return run(d, policy, durward.PYTHON, "-c", script, **kw)


def held(r, what):
    """Is the limit held by a control group? What is not is said."""
    return "limit %s" % what not in r.stderr


def memory(t, d):
    r = py(d, "all", "x = bytearray(48 << 20); print(len(x))")
    t.ok(r.stdout == "%d\n" % (48 << 20), "48 MiB of 64 can be had", r.stderr)
    r = py(d, "all", "x = bytearray(100 << 20); print(len(x))")
    t.ok(r.returncode in (1, 137) and "1048" not in r.stdout, "100 MiB of 64 cannot", r.stdout,
         r.stderr)
    script = ("import os\nfor i in range(6):\n  if os.fork() == 0:\n    x = bytearray(30 << 20)\n"
              "    print('got', flush=True)\n    import time; time.sleep(1); os._exit(0)\n"
              "import time; time.sleep(1.5)")
    r = py(d, "all", script)
    if held(r, "memory"):
        t.ok(r.stdout.count("got") < 6, "processes share it", r.stdout)
    else:
        t.has(r.stderr, "limit memory: held for each process by itself", "what is weaker is said")
    r = run(d, "all", "sh", "-c", "head -c 100000000 /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x")
    t.ok(r.stdout.strip().isdigit() and int(r.stdout) <= 8 << 20, "/dev/shm is limited by disk",
         r.stdout, r.stderr)


def processes(t, d):
    for name, script in (("processes", FORKS), ("threads", THREADS)):
        r = py(d, "pids", script)
        n = int((r.stdout.split() or ["-1"])[-1])
        if not held(r, "pids"):
            t.has(r.stderr, "limit pids: not held", "%s: what is not held is said" % name)
            continue
        t.ok(40 < n <= 64, "%s end at 64" % name, r.stdout, r.stderr)
        r = run(d, "pids", "sh", "-c", "echo alive")
        t.eq(r.stdout, "alive\n", "and the next sandbox has its own")
    r = py(d, "none", FORKS)
    n = int((r.stdout.split() or ["-1"])[-1])
    t.ok(n == 1000, "1000 processes are no problem without a limit", r.stdout, r.stderr)


def processor(t, d):
    r = py(d, "all", SPIN)
    if not held(r, "cpu"):
        t.has(r.stderr, "limit cpu: not held", "what is not held is said")
        return
    t.ok(0.3 < float(r.stdout) < 1.5, "2 s of spinning use half of them", r.stdout)


def disk(t, d):
    for where in ("/tmp", "/var/tmp", "$HOME", "/run"):
        r = run(d, "all", "sh", "-c", "head -c 100000000 /dev/zero > %s/x; stat -c %%s %s/x" %
                (where, where))
        t.ok(r.stdout.strip().isdigit() and 1 << 20 < int(r.stdout) <= 8 << 20 and
             "No space" in r.stderr, "%s fills at 8 MiB" % where, r.stdout, r.stderr)
    r = run(d, "all", "sh", "-c", "for f in /tmp/a /var/tmp/a $HOME/a; do head -c 6000000 /dev/zero "
            "> $f; done; stat -c %s /tmp/a /var/tmp/a $HOME/a")
    sizes = [int(x) for x in r.stdout.split()]
    t.ok(len(sizes) == 3 and sum(sizes) <= 8 << 20, "together", r.stdout, r.stderr)
    r = run(d, "free", "sh", "-c", "head -c 100000000 /dev/zero > /workspace/x; stat -c %s "
            "/workspace/x")
    t.ok(r.stdout.strip().isdigit() and int(r.stdout) <= 8 << 20, "a writable root too", r.stdout,
         r.stderr)
    r = run(d, "small", "sh", "-c", "i=0; while true >/tmp/f$i; do i=$((i+1)); done 2>/dev/null; echo $i",
            timeout=60)
    t.ok(r.stdout.strip().isdigit() and 100 < int(r.stdout) <= 4096, "inodes end too", r.stdout,
         r.stderr)


def files(t, d):
    r = py(d, "all", FILES)
    t.ok(r.stdout.startswith("24 ") and 50 < int(r.stdout.split()[1]) < 64, "open files end at 64",
         r.stdout, r.stderr)
    r = py(d, "all", "import resource as r\nprint(r.getrlimit(r.RLIMIT_NOFILE))\n"
           "try:\n  r.setrlimit(r.RLIMIT_NOFILE, (65, 65)); print('raised')\n"
           "except (ValueError, OSError): pass")
    t.eq(r.stdout, "(64, 64)\n", "and cannot be raised")


def configured(t, d):
    for text, hint in (('memory: 1MiB', "at least 16MiB"), ('memory: 512', "put it in quotes"),
                       ('memory: "512"', "as in 512MB"), ('memory: "-1MB"', "as in 512MB"),
                       ('memory: 99999999999999999999GB', "as in 512MB"),
                       ('memory: 9999999999GiB', "at least"), ('cpu: 0%', "share of one processor"),
                       ('cpu: half', "share of one processor"), ('pids: 7', "it must be"),
                       ('files: 31', "it must be"), ('root: rw', "read-only"),
                       ('disk: 1KB', "at least 1MiB"), ('memoy: 64MiB', "did you mean 'memory'"),
                       ('time: 5m', "unknown key")):
        r = d.command("check", "-", stdin=("version: 1\npolicies:\n  p:\n    rules: []\n    sandbox:"
                                           "\n      %s\n" % text).encode())
        t.ok(r.returncode == 1 and ":6: " in r.stdout + r.stderr, "refused: %s" % text,
             r.stdout + r.stderr)
        if hint not in r.stdout + r.stderr:
            t.diag("%s: hint %r is not in %s" % (text, hint, r.stdout + r.stderr))


def all_parts(t):
    d = durward.Durward(t)
    d.env["HOME"] = d.dir + "/home"
    d.policies = {"all": {"rules": [], "sandbox": ALL}, "none": {"rules": []},
                  "pids": {"rules": [], "sandbox": {"pids": 64}},
                  "small": {"rules": [], "sandbox": {"disk": "8MiB"}},
                  "free": {"rules": [], "sandbox": {"disk": "8MiB", "root": "writable"}}}
    d.save()
    before = time.monotonic(), cgroups.every()
    for part in (memory, processes, processor, disk, files, configured):
        t.part(part, t, d)
    tap.wait_for(lambda: not cgroups.left(before[1]), 5)
    t.eq(cgroups.left(before[1]), set(), "no control group is left")


tap.run(lambda t: person.each(t, all_parts), timeout=150)
