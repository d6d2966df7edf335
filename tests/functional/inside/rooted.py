#!/usr/bin/python3
"""Runs inside, where the root can be written or comes from an image: what there is to be found and
done. Prints one JSON object."""
import ctypes
import errno
import json
import mmap
import os
import resource
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)


def opened(path, flags=os.O_RDONLY):
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
        # what covers a file that nobody is to see can be opened and holds nothing
        st = os.fstat(fd)
        null = stat.S_ISCHR(st.st_mode) and st.st_rdev == os.makedev(1, 3)
        empty = null or flags == os.O_RDONLY and stat.S_ISREG(st.st_mode) and not os.read(fd, 9)
        os.close(fd)
        return "empty" if empty else "ok"
    except OSError as e:
        return errno.errorcode[e.errno]


def tried(fn, *args):
    try:
        fn(*args)
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]


def ending(fn):
    """How a child ends that runs fn: a signal's number (negative) or a status; and if it dumped."""
    pid = os.fork()
    if pid == 0:
        os._exit(fn())
    _, status = os.waitpid(pid, 0)
    return [os.waitstatus_to_exitcode(status), os.WCOREDUMP(status)]


def int80():
    """getpid by the 32-bit entry: mov eax, 20; int 0x80; ret."""
    m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    m.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(m))
    return 1 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0 else 2


def x32():
    return 1 if libc.syscall(ctypes.c_long(0x40000000 + 39)) > 0 else 2


def unknown():
    """Numbers beyond those that anybody knew when the filter was written."""
    seen = set()
    for nr in list(range(470, 700)) + [1 << 20, (1 << 29) + 5, 0x3fffffff]:
        ctypes.set_errno(0)
        r = libc.syscall(ctypes.c_long(nr), 0, 0, 0, 0, 0, 0)
        seen.add("ok" if r >= 0 else errno.errorcode[ctypes.get_errno()])
    return sorted(seen)


def status():
    with open("/proc/self/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def mounts():
    """Those that lack nosuid, and those but devices that lack nodev."""
    bad = []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            words = line.split()
            if "nosuid" not in words[5] or "nodev" not in words[5] and not \
                    words[4].startswith("/dev/"):
                bad.append(words[4] + " " + words[5])
    return bad


def set_uid():
    """A program that is set-uid in the image, or that we would make so."""
    got = {}
    for d in ("/workspace", "/tmp"):
        if os.path.isdir(d):
            path = d + "/suid"
            with open(path, "wb") as f, open("/usr/bin/id", "rb") as g:
                f.write(g.read())
            got["chmod " + d] = tried(os.chmod, path, 0o4755)
            got["mode " + d] = os.stat(path).st_mode & 0o6000
    bits = []
    for base in ("/usr/bin", "/usr/sbin", "/opt"):
        for name in os.listdir(base) if os.path.isdir(base) else ():
            st = os.lstat(os.path.join(base, name))
            if stat.S_ISREG(st.st_mode) and st.st_mode & 0o6000:
                bits.append(name)
    got["found"] = bits
    return got


def main():
    s = status()
    nodes = {d: tried(os.mknod, d + "/node", stat.S_IFCHR | 0o666, os.makedev(1, 1))
             for d in ("/tmp", "/workspace", "/dev") if os.path.isdir(d)}
    limit = tried(resource.setrlimit, resource.RLIMIT_CORE, (0, 0))
    libc.prctl(4, 1, 0, 0, 0)
    os.chdir("/tmp")
    print(json.dumps({
        "uid": os.geteuid(),
        "caps": [s.get(k, "-") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "nnp": str(libc.prctl(39, 0, 0, 0, 0)), "groups": s.get("Groups", "").split(),
        "mounts": mounts(), "suid": set_uid(), "nodes": nodes,
        "devices": sorted(os.listdir("/dev")),
        "device": {p: opened(p, os.O_RDWR) for p in (
            "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/net/tun",
            "/dev/vsock", "/dev/vhost-vsock", "/dev/loop-control", "/dev/sda", "/dev/vda",
            "/dev/kmsg", "/dev/userfaultfd", "/dev/dri/card0", "/dev/snd/timer", "/dev/uinput")},
        "proc": {p: opened(p, f) for p, f in (
            ("/proc/sysrq-trigger", os.O_WRONLY), ("/proc/kcore", os.O_RDONLY),
            ("/proc/kmsg", os.O_RDONLY), ("/proc/sys/kernel/core_pattern", os.O_WRONLY),
            ("/proc/sys/kernel/modprobe", os.O_WRONLY), ("/proc/sys/vm/drop_caches", os.O_WRONLY),
            ("/proc/timer_list", os.O_RDONLY), ("/proc/1/root", os.O_RDONLY),
            ("/proc/1/mem", os.O_RDONLY), ("/proc/1/environ", os.O_RDONLY),
            ("/proc/1/exe", os.O_WRONLY), ("/proc/self/exe", os.O_WRONLY),
            ("/proc/config.gz", os.O_WRONLY), ("/proc/keys", os.O_WRONLY),
            ("/sys/kernel", os.O_RDONLY), ("/sys/fs/cgroup", os.O_RDONLY),
            ("/sys/firmware", os.O_RDONLY))},
        "keys": open("/proc/keys").read() if os.path.exists("/proc/keys") else "",
        "pids": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
        "core": resource.getrlimit(resource.RLIMIT_CORE), "core_set": limit,
        "abort": ending(os.abort), "dumps": [x for x in os.listdir("/tmp") if "core" in x],
        "int80": ending(int80) if os.uname().machine == "x86_64" else None,
        "x32": ending(x32) if os.uname().machine == "x86_64" else None,
        "unknown": unknown(), "env": dict(os.environ),
    }), flush=True)
    sys.stdin.read()


main()
