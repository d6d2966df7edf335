#!/usr/bin/python3 -B
"""What the kernel counts once for the whole host, or once for a uid (row G12 of the catalogue): one sandbox takes all of it that
it can get, and meanwhile another sandbox and the host have theirs. As root and as an ordinary user."""
import json
import os
import resource
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import cgroups, durward, person, tap  # noqa: E402

PAGE = resource.getpagesize()

# each defines take(), which takes one piece and keeps it
COMMON = r"""
import ctypes, errno, fcntl, json, os, platform, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
kept = []
def must(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
"""
AIO = r"""
def take():
    context = ctypes.c_ulong(0)
    must(libc.syscall(0 if arm else 206, 1024, ctypes.byref(context)))
    kept.append(context)
"""
TERMINALS = r"""
def take():
    kept.append(os.openpty())
"""
SIGNALS = r"""
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
def take():
    must(libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), ctypes.c_void_p(0)))
"""
QUEUES = r"""
def take():
    name = b"/durward-%d-%d" % (os.getpid(), len(kept))
    kept.append(must(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)))
    must(libc.mq_unlink(name))
"""
PIPES = r"""
def take():
    r, w = os.pipe()
    kept.append((r, w))
    if len(kept) % 2:
        try:
            fcntl.fcntl(w, 1031, 1 << 20)  # F_SETPIPE_SZ
        except PermissionError:
            pass
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, bytes(1 << 16))
    except BlockingIOError:
        pass
"""
HOARD = r"""
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
n, why = 0, 0
try:
    while n < 200000:
        take()
        n += 1
except OSError as e:
    why = e.errno
print(json.dumps([n, errno.errorcode.get(why, why)]), flush=True)
signal.pause()
"""
ONE = "take()\nprint('had')\n"

POSIX_AIO = COMMON + r"""
class Block(ctypes.Structure):  # struct aiocb, of 64 bits
    _fields_ = [("fd", ctypes.c_int), ("op", ctypes.c_int), ("priority", ctypes.c_int), ("buf", ctypes.c_void_p),
                ("n", ctypes.c_size_t), ("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int),
                ("pad", ctypes.c_char * 48), ("own", ctypes.c_char * 32), ("offset", ctypes.c_long),
                ("rest", ctypes.c_char * 32)]
text = ctypes.create_string_buffer(b"durward " * 4096)
b = Block(fd=os.open("/tmp/aio", os.O_RDWR | os.O_CREAT, 0o600), buf=ctypes.addressof(text), n=32768, notify=1)
must(libc.aio_write(ctypes.byref(b)))
while libc.aio_error(ctypes.byref(b)) == errno.EINPROGRESS:
    must(libc.aio_suspend(ctypes.byref(ctypes.pointer(b)), 1, None))
libc.aio_return.restype = ctypes.c_ssize_t
print(libc.aio_return(ctypes.byref(b)), os.stat("/tmp/aio").st_size)
"""

# how much of TCP's memory one sandbox holds: pairs over its own loopback, which nobody reads
BUFFERS = COMMON + r"""
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
listener = socket.create_server(("127.0.0.1", 5555), backlog=100)
end, bytes_in = time.monotonic() + 6, 0
while len(kept) < min(most, 3000) - 40 and time.monotonic() < end:
    a = socket.create_connection(("127.0.0.1", 5555))
    b = listener.accept()[0]
    kept += [a, b]
    a.setblocking(False)
    before = bytes_in
    try:
        while True:
            bytes_in += a.send(bytes(1 << 20))
    except BlockingIOError:
        pass
    if bytes_in - before < 65536 and len(kept) > 600:
        break
print(bytes_in, flush=True)
signal.pause()
"""
TALK = COMMON + r"""
listener = socket.create_server(("127.0.0.1", 5555))
a = socket.create_connection(("127.0.0.1", 5555))
b, n = listener.accept()[0], 0
for _ in range(200):
    a.sendall(bytes(2000))
    got = 0
    while got < 2000:
        got += len(b.recv(2000))
    n += got
print(n)
"""
TRACKED = COMMON + r"""
for i in range(60):
    s = socket.socket()
    s.settimeout(2)
    s.connect(("192.0.2.%d" % (i + 1), 443))  # durward's, which every address is
    kept.append(s)
try:
    print(open("/proc/sys/net/netfilter/nf_conntrack_count").read().strip())
except FileNotFoundError:
    print("none")
"""
MEMORY = {
    "memfd": "f = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))",
    "SysV shm": "libc.shmat.restype = ctypes.c_void_p\n"
                "while True:\n"
                "    at = libc.shmat(must(libc.shmget(0, ctypes.c_size_t(16 << 20), 0o1600)), None, 0)\n"
                "    ctypes.memset(at, 1, 16 << 20)",
    "unix sockets": "resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\n"
                    "while True:\n"
                    "    a, b = socket.socketpair()\n"
                    "    kept += [a, b]\n"
                    "    a.setblocking(False)\n"
                    "    try:\n"
                    "        while True: a.send(bytes(1 << 16))\n"
                    "    except BlockingIOError: pass",
    "epoll": "import select\n"
             "resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\n"
             "fds = [os.eventfd(0) for _ in range(2000)]\n"
             "while True:\n"
             "    e = select.epoll()\n"
             "    kept.append(e)\n"
             "    for f in fds: e.register(f, 1)",
}


def hoard(t, d, script, policy="p"):
    """-> (process, what it printed when it had all that it could get)."""
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", policy, "--no-bind", "--", durward.PYTHON, "-c",
                 script], cwd=d.work, env=d.env, stdout=-1, stderr=open(d.log, "ab"))
    line = p.stdout.readline()
    if not line:
        t.ok(False, "a hoard is taken", d.diagnostics())
        return p, None
    return p, json.loads(line)


def end(t, p, what):
    p.send_signal(signal.SIGTERM)
    t.ok(p.wait(20) is not None, "G12 %s: the hoard ends when told" % what)


def neighbours(t, d, what, script, wants):
    r = d.run([durward.PYTHON, "-c", script], flags=("--policy", "p", "--no-bind"), save=False)
    t.eq((r.returncode, r.stdout), (0, wants), "G12 %s: meanwhile another sandbox has its own" % what) or t.diag(r.stderr)


def host(t, what, script, wants):
    r = subprocess.run([durward.PYTHON, "-c", script], capture_output=True, text=True, timeout=30)
    t.eq((r.returncode, r.stdout), (0, wants), "G12 %s: and so has the host" % what) or t.diag(r.stderr)


def number(path, index=0):
    with open(path) as f:
        return int(f.read().split()[index])


def asynchronous(t, d):
    p, had = hoard(t, d, COMMON + AIO + HOARD)
    t.eq(had, [0, "ENOSYS"], "G12 aio: of fs.aio-max-nr a sandbox has nothing")
    host(t, "aio", COMMON + AIO + ONE, "had\n")
    end(t, p, "aio")
    r = d.run([durward.PYTHON, "-c", POSIX_AIO], flags=("--policy", "p", "--no-bind"), save=False)
    t.eq(r.stdout, "32768 32768\n", "POSIX aio goes on, by threads of the C library") or t.diag(r.stderr)
    if not os.path.exists("/usr/bin/node"):
        t.skip("node reads files without io_uring", "/usr/bin/node is not installed")
        return
    r = d.run(["/usr/bin/node", "-e", "const fs = require('fs').promises; (async () => { await fs.writeFile('/tmp/n', 'x'.repeat(99));"
               "console.log((await fs.readFile('/tmp/n')).length) })()"], flags=("--policy", "p", "--no-bind"), save=False)
    t.eq(r.stdout, "99\n", "node reads files without io_uring, which it would use") or t.diag(r.stderr)


def terminals(t, d):
    p, had = hoard(t, d, COMMON + TERMINALS + HOARD)
    t.eq(had, [32, "ENOSPC"], "G12 terminals: a sandbox has 32 of kernel.pty.max")
    neighbours(t, d, "terminals", COMMON + TERMINALS + ONE, "had\n")
    host(t, "terminals", COMMON + TERMINALS + ONE, "had\n")
    end(t, p, "terminals")


def parts(t, d):
    """Of what is counted by uid, against a limit of who asks."""
    signals = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
    p, had = hoard(t, d, COMMON + SIGNALS + HOARD)
    t.ok(had and 0 < had[0] <= signals // 8 and had[1] == "EAGAIN", "G12 queued signals: an eighth of what the uid may have",
         "%s of %d" % (had, signals))
    neighbours(t, d, "queued signals", COMMON + SIGNALS + ONE, "had\n")
    host(t, "queued signals", COMMON + SIGNALS + ONE, "had\n")
    end(t, p, "queued signals")
    p, had = hoard(t, d, COMMON + QUEUES + HOARD)
    t.ok(had and had[0] >= 1 and had[1] == "EMFILE", "G12 message queues: one at least, and an end", str(had))
    neighbours(t, d, "message queues", COMMON + QUEUES + ONE, "had\n")
    host(t, "message queues", COMMON + QUEUES + ONE, "had\n")
    end(t, p, "message queues")


def pipes(t, d):
    p, had = hoard(t, d, COMMON + PIPES + HOARD)
    t.ok(had and had[0] * 2 > 500, "G12 pipes: as many as open files go", str(had))
    r = d.run(["sh", "-c", "head -c 3000000 /dev/zero | cat | wc -c"], flags=("--policy", "p", "--no-bind"), save=False)
    t.eq(r.stdout.strip(), "3000000", "G12 pipes: another sandbox's are smaller, and work") or t.diag(r.stderr)
    r = subprocess.run("head -c 3000000 /dev/zero | cat | wc -c", shell=True, capture_output=True, text=True, timeout=30)
    t.eq(r.stdout.strip(), "3000000", "G12 pipes: the host's work")
    end(t, p, "pipes")


def groups(t, before):
    """{file of a limit: its number} of what sandboxes made since are held by."""
    found = {}
    for g in cgroups.every() - before:
        for name in ("memory.max", "memory.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"):
            try:
                found[name] = number(os.path.join(g, name))
            except OSError:
                pass
    return found


def buffers(t, d):
    before, used = cgroups.every(), number_of_tcp()
    p, had = hoard(t, d, BUFFERS)
    now, limits = number_of_tcp(), groups(t, before)
    t.diag("TCP's buffers: %d pages of %d, %d before; %s bytes lie unread" % (
        now, number("/proc/sys/net/ipv4/tcp_mem", 2), used, had))
    neighbours(t, d, "TCP's buffers", TALK, "400000\n")
    host(t, "TCP's buffers", TALK.replace("5555", "0", 1).replace('("127.0.0.1", 5555)', "listener.getsockname()"), "400000\n")
    end(t, p, "TCP's buffers")
    what = "G12 TCP's buffers: a sandbox has a quarter of tcp_mem"
    if "memory.kmem.tcp.limit_in_bytes" in limits:
        most = number("/proc/sys/net/ipv4/tcp_mem", 2) // 4
        t.ok(now - used <= most * 1.2, what, "%d pages, of %d" % (now - used, most))
    else:
        t.skip(what, "no control group of version 1 can be made here")
    what = "G12 memory is bounded where no limit is configured"
    whole = os.sysconf("SC_PHYS_PAGES") * PAGE
    limit = limits.get("memory.max", limits.get("memory.limit_in_bytes"))
    if os.geteuid() == 0 or limit:
        t.ok(limit and limit <= whole // 4 * 3, what, "%s of %d" % (limits, whole))
    else:
        t.skip(what, "no control group can be made here")


def number_of_tcp():
    with open("/proc/net/sockstat") as f:
        words = next(line for line in f if line.startswith("TCP:")).split()
    return int(words[words.index("mem") + 1])


def tracked(t, d):
    r = d.run([durward.PYTHON, "-c", TRACKED], flags=("--policy", "p", "--no-bind"), save=False)
    if r.stdout == "none\n":
        t.skip("G12 conntrack: a sandbox's connections have no entry", "this kernel tracks no connections")
    else:
        t.eq(r.stdout, "0\n", "G12 conntrack: a sandbox's connections have no entry") or t.diag(r.stderr)


def memory(t, d):
    r = d.run(["true"], flags=("--policy", "little", "--no-bind"), save=False)
    if "limit memory" in r.stderr:  # they would take the machine's
        t.skip("G12 %s are memory of the sandbox that has them" % ", ".join(MEMORY), "no control group can be made here")
        return
    for name, script in MEMORY.items():
        what = "G12 %s: memory of the sandbox that has it" % name
        begun = time.monotonic()
        r = d.run([durward.PYTHON, "-c", COMMON + script], flags=("--policy", "little", "--no-bind"), save=False, timeout=30)
        t.ok(r.returncode in (1, 137) and time.monotonic() - begun < 20, what, "status %d" % r.returncode, r.stderr)


def all_parts(t):
    d = durward.Durward(t)
    d.policies = {"p": {"rules": []}, "little": {"rules": [], "sandbox": {"memory": "64MiB"}}}
    d.save()
    before = cgroups.every()
    for part in (asynchronous, terminals, parts, pipes, buffers, tracked, memory):
        t.part(part, t, d)
    tap.wait_for(lambda: not cgroups.left(before), 20)
    t.eq(cgroups.left(before), set(), "no control group is left")


tap.run(lambda t: person.each(t, all_parts), timeout=180)
