#!/usr/bin/python3 -B
"""What sandboxes that are virtual machines keep, and what they may take of the host: volumes, snapshots, pauses, stops,
times to live, images, an ordinary user's daemon; files in memory, descriptors and sizes of files, each by exhausting it;
and what is left to who has taken over QEMU. Images, a slow host and the ordinary user by `make walls` alone."""
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, conquer, durward, microvm, person, rootfs, tap, usual, walls  # noqa: E402

BOOT_S = 110
DESCRIPTORS = 1024  # of a process, as this daemon's host has it
MIB = 1 << 20
LIMITS = {"backend": "microvm", "memory": "256MiB", "files": 2 * DESCRIPTORS}


def verb(c, box, what):
    return c.ask("POST", "/v1/sandboxes/%s/%s" % (box, what))


def processes(name):
    return [pid for pid, is_ in microvm.running().items() if is_.startswith(name)]


def bounds(pid):
    """{limit: (soft, hard)}"""
    with open("/proc/%d/limits" % pid) as f:
        return {m[1]: (m[2], m[3]) for m in (re.match(r"Max (.*?)  +(\S+) +(\S+)", line) for line in f) if m}


# ---- descriptors ----

OPENS = """import os, sys
held = []
try:
    while len(held) < 1500: # of the 2048 that this process may have
        held.append(os.open("story", os.O_RDONLY))
except OSError as e:
    print(e.strerror)
print(len(held) > 500)
"""


def walks(t, c, box):
    """More files than the host's server may have descriptors for are looked at one after the other; held open they are refused."""
    server = processes("virtiofsd")
    code, out = c.sh(box, "find /usr/share/doc /usr/lib -maxdepth 2 2>&1 | head -2500 >/tmp/found; wc -l </tmp/found; grep -c 'Too many' /tmp/found", timeout=100)
    found = out.split()
    t.ok(len(found) == 2 and int(found[0]) > 2 * DESCRIPTORS and found[1] == b"0", "more files are looked at than the server has descriptors", out)
    if os.geteuid() == 0:
        t.ok(server and all(bounds(p)["open files"] == (str(DESCRIPTORS),) * 2 for p in server), "whose number is bounded", *map(bounds, server))
    c.write(box, "/workspace/story", b"once")
    c.write(box, "/workspace/opens.py", OPENS.encode())
    t.eq(c.sh(box, "python3 -S opens.py", timeout=100), (0, b"Too many open files\nTrue\n"), "held open they are refused at that bound")
    t.eq(c.sh(box, "cat story; ls /usr/share | wc -l | grep -c .", timeout=100), (0, b"once1\n"), "and then there are some again")
    t.eq(processes("virtiofsd"), server, "the server lives")


# ---- memory ----

def fills(t, c, box):
    """Files in the host's memory and in the machine's have a bound: whoever writes more is told so, and the machine lives."""
    for where in ("/tmp", "/dev/shm"):
        code, out = c.sh(box, "dd if=/dev/zero of=%s/big bs=1M count=300 2>&1; rm -f %s/big" % (where, where), timeout=100)
        t.ok(b"No space" in out, "%s: no space, where nothing was said of disk" % where, code, out[-300:])
        t.eq(c.sh(box, "echo still", timeout=30), (0, b"still\n"), "and the machine lives")
    code, out = c.sh(box, "python3 -S -c \"import os; f=os.memfd_create('x'); [os.write(f, bytes(1<<20)) for i in range(300)]\"", timeout=100)
    t.ok(code not in (0, 124), "a file of a program's own in memory: the program is ended", code, out[-300:])
    t.eq(c.sh(box, "echo still", timeout=30), (0, b"still\n"), "and the machine lives")


# ---- what is kept ----

def lives(t, d, c, box):
    c.sh(box, "echo kept >k; echo x >/opt/there", timeout=30)
    usual.pauses(t, c, box)
    copy = usual.snapshots(t, c, box, "coder", "microvm")
    c.ask("PATCH", "/v1/sandboxes/" + copy, {"ttl": 1})
    t.ok(tap.wait_for(lambda: api.refused(c.show, copy), 15, 0.1), "its time to live ends it")
    c.ask("PATCH", "/v1/sandboxes/" + box, {"soft_ttl": 1})
    t.ok(tap.wait_for(lambda: c.show(box)["state"] == "stopped", 15, 0.1), "its soft time to live stops it")
    c.ask("PATCH", "/v1/sandboxes/" + box, {"soft_ttl": 0})
    t.eq(len(processes("qemu")), 0, "and nothing of it runs")
    d.policies["coder"]["sandbox"] = dict(LIMITS, disk="8MiB")
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "a policy that bounds its files")
    t.eq(c.sh(box, "cat k /opt/there", timeout=30), (0, b"kept\nx\n"), "a command resumes it, and its files are there")
    server = processes("virtiofsd")
    code, out = c.sh(box, "dd if=/dev/zero of=/opt/big bs=1M count=9 2>&1; wc -c </opt/big; truncate -s 9M /opt/other 2>&1", timeout=60)
    t.ok(b"too large" in out and b"%d\n" % (8 * MIB) in out and code != 0, "a file that is kept is no larger than disk", code, out)
    t.eq((processes("virtiofsd"), c.sh(box, "rm /opt/big; cat k", timeout=30)), (server, (0, b"kept\n")), "and the server lives")


def images(t, d, c):
    top = rootfs.make(t.mkdir("image"))
    r = d.command("image", "import", "-c", d.conf, top, "small")
    if not t.ok(r.returncode == 0, "an image", r.stderr):
        return
    box = c.create(policy="coder", image="small")["id"]
    t.eq(c.sh(box, "id -u; ls /usr/bin; cat /etc/passwd | head -1; echo x >/new; cat /new", timeout=30),
         (0, ("0\n%s\nroot:x:0:0:root:/root:/bin/sh\nx\n" % "\n".join(sorted(rootfs.PROGRAMS))).encode()), "a sandbox of an image has its files alone")
    c.delete(box)


# ---- the seat of who has taken over QEMU ----

SPACES = """import ctypes, errno, os, sys
l = ctypes.CDLL(None, use_errno=True)
if l.setns(os.open("/proc/%s/ns/user" % sys.argv[1], os.O_RDONLY), 0) < 0:
    sys.exit("setns: %s" % os.strerror(ctypes.get_errno()))
print(errno.errorcode[ctypes.get_errno()] if l.unshare(0x10000000) < 0 else "made")
"""


def seat(t):
    why = conquer.why_not()
    if why:
        t.skip("a conquered QEMU", why)
        return
    qemu = max(processes("qemu"))
    here = -100
    with conquer.Conquered(qemu) as q:  # what makes processes and namespaces would end its thread: by QEMU's own filter
        tried = {"another process's memory": q("ptrace", conquer.SEIZE, 1, 0, 0), "packet rules": q("socket", 16, 3, 12),
                 "asynchronous calls": q("io_uring_setup", 1, bytes(128)), "a raw socket": q("socket", 2, 3, 1),
                 "a program for the kernel": q("bpf", 0, bytes(128), 128), "a packet socket": q("socket", 17, 3, 0),
                 "the host's files": q("openat", here, b"/etc/passwd\0", 0, 0)}
        allowed = q("openat", here, b"/usr/bin/env\0", 0, 0)
        q("close", allowed)
    for what, got in tried.items():
        t.ok(-got in (errno.EPERM, errno.ENOSYS, errno.ENOENT, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT), "QEMU taken over: %s" % what, conquer.said(got))
    t.ok(allowed >= 0, "and what is no danger is not refused (control)", conquer.said(allowed))
    for name in ("qemu", "virtiofsd"):
        r = subprocess.run([sys.executable, "-c", SPACES, str(max(processes(name)))], capture_output=True, text=True)
        t.eq(r.stdout, "ENOSPC\n", "%s has no namespace of users below its own, whatever its filter" % name) or t.diag(r.stderr)
    t.eq(bounds(qemu)["open files"], ("1024", "1024"), "and a bounded number of descriptors")


# ---- a slow host ----

def slow(t, c):
    """A machine whose processor stands still for longer than other sandboxes may take to start."""
    before, made = set(processes("qemu")), []
    thread = threading.Thread(target=lambda: made.append(c.create(policy="coder")))
    thread.start()
    mine = tap.wait_for(lambda: set(processes("qemu")) - before, 60, 0.02)
    for pid in mine:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(31)  # what it may take is counted in seconds
    for pid in mine:
        os.kill(pid, signal.SIGCONT)
    thread.join(100)
    if t.ok(made and made[0]["state"] == "running", "a start that takes more than half a minute", made):
        c.delete(made[0]["id"])


# ---- an ordinary user ----

def ordinary(t):
    d = durward.Durward(t, "ordinary")
    d.policy("coder", [])
    d.policies["coder"]["sandbox"] = {"backend": "microvm", "memory": "256MiB"}
    d.serve()
    c = api.Api(d.socket, timeout=BOOT_S)
    box = c.create(policy="coder")["id"]
    t.eq(c.sh(box, "echo kept >k; cat k; id -u; touch /opt/x && rm /opt/x && echo wrote", timeout=30), (0, b"kept\n0\nwrote\n"),
         "an ordinary user's daemon makes a virtual machine")
    verb(c, box, "stop")
    t.ok(not microvm.running(), "stopped, nothing of it runs", microvm.running())
    t.eq(c.sh(box, "cat k", timeout=30), (0, b"kept\n"), "and its files are there when it runs again")
    c.delete(box)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


def main(t):
    why = microvm.needed()
    if why:
        raise tap.Skip(why)
    if person.name() in (person.PLAIN, person.MAPPED):
        ordinary(t)
        return
    d = durward.Durward(t)
    d.policy("coder", [])
    d.policies["coder"]["sandbox"] = LIMITS
    d.prefix = ["prlimit", "--nofile=%d:%d" % (DESCRIPTORS, DESCRIPTORS)]
    d.serve()
    c = api.Api(d.socket, timeout=BOOT_S)
    box = usual.volumes(t, c, "coder", "microvm") or c.create(policy="coder")["id"]
    t.part(seat, t)
    t.part(walks, t, c, box)
    t.part(fills, t, c, box)
    t.part(lives, t, d, c, box)
    if walls.whole():
        t.part(images, t, d, c)
        t.part(slow, t, c)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")
    if walls.whole() and os.geteuid() == 0:
        t.part(person.again, t, person.PLAIN)


tap.run(main, timeout=600 if walls.whole() else 300)
