#!/usr/bin/python3 -B
"""Code that takes what it can and does not go away (rows G12 to G14 of the catalogue): fork bombs,
memory, files, processes that hide from their parents, and the death of roles. The host goes on, and
nothing is left."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import cgroups, durward, person, tap  # noqa: E402

MARK = "durward-zoo-%d" % os.getpid()

ZOO = r"""
import ctypes, os, signal, sys, time
mark = sys.argv[1]
def stay():
    for s in range(1, 32):
        try: signal.signal(s, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.execv("/usr/bin/python3", ["python3", "-c", "import time,signal\n"
             "for s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n"
             "  except (OSError, ValueError): pass\ntime.sleep(120)", mark])
def twice():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: stay()
        os._exit(0)
def chain():
    for _ in range(20):
        if os.fork() != 0: os._exit(0)
        os.setsid()
    stay()
def renamed():
    ctypes.CDLL(None).prctl(15, b"kworker/0:0", 0, 0, 0)
    stay()
def stopped():
    if os.fork() == 0: stay()
    os.kill(os.getpid(), signal.SIGSTOP)
def reaper():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    twice(); stay()
def pgroup():
    os.setpgid(0, 0); stay()
def respawn():
    while True:
        if os.fork() == 0: stay()
        time.sleep(0.05)
        if len(os.listdir("/proc")) > 300: stay()
kinds = [twice, chain, renamed, stopped, reaper, pgroup, respawn]
for k in kinds:
    if os.fork() == 0: k(); os._exit(0)
time.sleep(0.7)
print("zoo", flush=True)
if len(sys.argv) > 2: time.sleep(60)
"""


def alive():
    """Processes on the host that carry our mark, ours and the CLI's own line excepted."""
    found = []
    for p in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % p, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if p.isdigit() and MARK.encode() in words and b"run" not in words:
            found.append((int(p), words[0]))
    return found


def leftovers():
    mounts = open("/proc/self/mountinfo").read().count("\n")
    return mounts, cgroups.every()


def nothing_left(t, what, before):
    gone = tap.wait_for(lambda: not alive(), 5)
    t.ok(gone, what + ": no process is left", str(alive()))
    t.ok(tap.wait_for(lambda: not cgroups.left(before[1]), 20),
         what + ": no control group is left", str(cgroups.left(before[1])))
    t.eq(leftovers()[0], before[0], what + ": no mount is left on the host")


def start(t, d, *args):
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "p", "--no-bind", "--",
                 durward.PYTHON, "-c", ZOO, MARK] + list(args), cwd=d.work, env=d.env, stdout=-1,
                stderr=open(d.log, "ab"))
    line = p.stdout.readline()
    if line != b"zoo\n":
        t.ok(False, "the zoo is open", repr(line), d.diagnostics())
    return p


def zoo(t, d):
    before = leftovers()
    p = start(t, d)
    p.wait(15)
    nothing_left(t, "G13 the command ended", before)
    for name, sig in (("TERM", signal.SIGTERM), ("KILL", signal.SIGKILL)):
        p = start(t, d, "stay")
        t.ok(len(alive()) >= 7, "G13 %d processes stay" % len(alive()))
        p.send_signal(sig)
        p.wait(15)
        nothing_left(t, "G13 the CLI had %s" % name, before)


def roles(t, d):
    before = leftovers()
    for role in ("controller", "builder", "parent", "gate"):
        p = start(t, d, "stay")
        # the parent is the CLI's child; a gate is replaced, so the sandbox goes on
        pid = [x for x, name in d.roles(p.pid) if name == role]
        if not pid:
            t.ok(False, "G14 there is a %s" % role, str(d.roles(p.pid)))
            continue
        os.kill(pid[0], signal.SIGKILL)
        if role == "gate":
            again = tap.wait_for(lambda: [x for x, name in d.roles(p.pid) if name == "gate" and x != pid[0]], 10)
            t.ok(again and p.poll() is None, "G14 a dead gate ends no sandbox, and another takes its place")
            p.send_signal(signal.SIGTERM)
        p.wait(20)
        # a builder that was killed cannot tidy up; the next one does, but not at once
        tap.wait_for(lambda: not alive(), 5)
        t.eq(alive(), [], "G14 after kill -9 of the %s no process is left" % role)
        t.eq(leftovers()[0], before[0], "G14 nor a mount")
        for group in sorted(cgroups.left(before[1]), key=len, reverse=True):
            with open(os.path.join(group, "cgroup.procs")) as f:
                t.eq(f.read(), "", "G14 nor anybody in a control group")
            os.rmdir(group)


def bombs(t, d):
    before = leftovers()
    start_at = time.monotonic()
    d.command("run", "-c", d.conf, "--policy", "p", "--no-bind", "--", "bash", "-c",
              "b() { b | b & b; }; b & sleep 3", timeout=30)
    answer = time.monotonic()
    t.ok(os.system("true") == 0 and time.monotonic() - answer < 2, "G12 the host still forks")
    t.ok(answer - start_at < 20, "G12 a fork bomb ends with its command",
         "%.1f s" % (answer - start_at))
    running = {}
    for name, script in (
            ("memory", "x = []\nwhile True: x.append(bytearray(1 << 20))"),
            ("pipes", "import os\nl = []\nwhile True: l.append(os.pipe())"),
            ("files", "i = 0\nwhile True:\n  open('/tmp/%d' % i, 'w').write('x' * 4096)\n  i += 1"),
            ("directories", "import os\nwhile True:\n  os.mkdir('d'); os.chdir('d')"),
            ("sockets", "import socket\nl = []\nwhile True: l.append(socket.socketpair())"),
            ("memfd", "import os\nf = os.memfd_create('x')\nwhile True: os.write(f, bytes(1<<20))"),
            ("processor", "import os\nfor i in range(20): os.fork()\nwhile True: pass")):
        running[name] = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "p", "--no-bind", "--",
                                 durward.PYTHON, "-c", script], cwd=d.work, env=d.env, stderr=-3)
    limit, slowest, forks = time.monotonic() + 8, 0, 0
    while any(p.poll() is None for p in running.values()) and time.monotonic() < limit:
        used = time.monotonic()
        forks += os.system("true") == 0
        slowest = max(slowest, time.monotonic() - used)
        time.sleep(0.05)
    t.ok(forks > 10 and slowest < 2, "G12 %s, all at once: the host goes on" % ", ".join(running),
         "%d processes started, the slowest took %.1f s" % (forks, slowest))
    for p in running.values():
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
    for name, p in running.items():
        t.ok(p.wait(15) is not None, "G12 %s: the sandbox ends when told" % name)
    nothing_left(t, "G12", before)


HOARD = r"""
import array, ctypes, os, resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
unread, kept, null = 0, [], os.open("/dev/null", os.O_RDONLY)
fds = array.array("i", [null] * 253)
try:
    while len(kept) < most // 2 - 20:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        kept += [a, b]
        a.setblocking(False)
        try:
            while True:
                a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                unread += 253
        except BlockingIOError:
            pass
except OSError as e:
    print(e.errno, end=" ")
libc, watchers = ctypes.CDLL(None), 0
while libc.inotify_init1(0) >= 0:
    watchers += 1
print(unread, watchers, flush=True)
time.sleep(60)
"""


def hoards(t, d):
    """What the kernel counts by uid: descriptors that lie unread in sockets, and inotify."""
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "q", "--no-bind", "--", durward.PYTHON, "-c",
                 HOARD], cwd=d.work, env=d.env, stdout=-1, stderr=open(d.log, "ab"))
    line = p.stdout.readline().split()
    t.eq(line[:1], [b"109"], "G12 descriptors unread in sockets: as many as the kernel takes (ETOOMANYREFS)") or t.diag(
        repr(line))
    t.ok(0 < int(line[-1]) <= 32, "G12 inotify: no more than a sandbox may have", repr(line))
    for _ in range(3):
        r = d.command("run", "-c", d.conf, "--policy", "q", "--no-bind", "--", "echo", "here", timeout=30)
        t.eq((r.returncode, r.stdout), (0, "here\n"), "G12 meanwhile another sandbox is made, and runs") or t.diag(r.stderr)
    watch = subprocess.run([durward.PYTHON, "-c", "import ctypes; print(ctypes.CDLL(None).inotify_init1(0))"],
                           capture_output=True, text=True, timeout=20)
    t.ok(watch.stdout.strip().isdigit(), "G12 and the host has inotify", watch.stdout + watch.stderr)
    p.send_signal(signal.SIGTERM)
    t.ok(p.wait(15) is not None, "G12 the hoard ends when told")


def all_parts(t):
    d = durward.Durward(t)
    d.policies = {"p": {"rules": [], "sandbox": {"memory": "256MiB", "pids": 200, "cpu": "100%",
                                                 "disk": "64MiB", "files": 256}}, "q": {"rules": []}}
    d.save()
    t.part(bombs, t, d)
    t.part(hoards, t, d)
    t.part(zoo, t, d)
    t.part(roles, t, d)


tap.run(lambda t: person.each(t, all_parts), timeout=240)
