#!/usr/bin/python3
"""Runs inside: tries what must not work and lists what can be seen. Prints one JSON object.
argv[1]: name of an abstract socket of the host."""
import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import stat
import struct
import subprocess
import sys
import termios

libc = ctypes.CDLL(None, use_errno=True)
X32 = 0x40000000
probes = {}


def call(name, number, *args):
    """A raw system call: "ok" when it was let through far enough to work."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a
                                              for a in args])
    probes[name] = "ok" if r >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
    return r


def attempt(name, fn):
    try:
        fn()
        probes[name] = "ok"
    except OSError as e:
        probes[name] = errno.errorcode.get(e.errno, str(e))


def in_child(name, fn):
    """Where success would change this process."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        text = "killed"
        try:
            fn()
            text = "ok"
        except OSError as e:
            text = errno.errorcode.get(e.errno, str(e))
        os.write(w, text.encode())
        os._exit(0)
    os.close(w)
    probes[name] = os.read(r, 100).decode() or "killed"
    os.close(r)
    os.waitpid(pid, 0)


def sys_or_raise(number, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a
                                              for a in args])
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r


def sockets():
    for name, args in (("vsock", (40, 1, 0)), ("packet", (17, 3, 0)), ("raw", (2, 3, 1)),
                       ("alg", (38, 5, 0)), ("netlink-audit", (16, 3, 9)), ("mptcp", (2, 1, 262)),
                       ("udplite", (2, 2, 136)), ("sctp", (2, 1, 132))):
        attempt(name, lambda a=args: socket.socket(*a).close())
    s = socket.socket()
    attempt("ip_transparent", lambda: s.setsockopt(0, 19, 1))
    attempt("so_mark", lambda: s.setsockopt(socket.SOL_SOCKET, 36, 1))
    attempt("bind-443", lambda: socket.socket().bind(("0.0.0.0", 443)))
    attempt("bind-53", lambda: socket.socket(2, 2).bind(("8.8.8.8", 53)))
    attempt("abstract-socket", lambda: socket.socket(1).connect("\0" + sys.argv[1]))

    def route():
        n = socket.socket(16, 3, 0)
        body = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 255, 0, 254, 2, 0)
        n.send(struct.pack("IHHII", 16 + len(body), 25, 5, 1, 0) + body)
        code = struct.unpack("i", n.recv(4096)[16:20])[0]
        if code:
            raise OSError(-code, "")
    attempt("route-delete", route)


def calls():
    buf = ctypes.create_string_buffer(256)
    call("io_uring", 425, 4, buf)
    call("keyctl", 250, 0, -3, 0)
    call("add_key", 248, b"user", b"x", b"y", 1, -2)
    call("request_key", 249, b"user", b"x", None, -2)
    for name, flag in (("user", 0x10000000), ("net", 0x40000000), ("mount", 0x00020000)):
        in_child("unshare-" + name, lambda f=flag: sys_or_raise(272, f))
    in_child("clone-newuser", lambda: os._exit(0) if sys_or_raise(56, 0x10000011, 0, 0, 0, 0) == 0
             else None)
    args = struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0)
    in_child("clone3-newuser", lambda: os._exit(0) if sys_or_raise(435, args, len(args)) == 0
             else None)
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    call("setns", 308, own, 0)
    call("mount", 165, b"none", b"/tmp", b"tmpfs", 0, None)
    call("umount", 166, b"/tmp", 2)
    call("pivot_root", 155, b"/tmp", b"/tmp")
    call("bpf", 321, 0, buf, 64)
    call("perf", 298, buf, 0, -1, -1, 0)
    call("userfaultfd", 323, 1)
    call("ptrace-seize", 101, 0x4206, 1, 0, 0)
    call("process_vm_readv", 310, 1, buf, 1, buf, 1, 0)
    call("pidfd_getfd", 438, 0, 0, 0)
    call("kexec", 246, 0, 0, None, 0)
    call("init_module", 175, buf, 0, b"")
    call("open_by_handle", 304, -100, buf, 0)
    call("mknod", 133, b"/tmp/m", 0o20600, 0x103)
    in_child("chroot", lambda: sys_or_raise(161, b"/tmp"))
    call("reboot", 169, 0xfee1dead, 672274793, 0, None)
    call("quotactl", 179, 0, b"", 0, None)
    call("acct", 163, None)
    call("swapon", 167, b"/x", 0)
    call("sethostname", 170, b"x", 1)
    call("settimeofday", 164, buf, None)
    call("fanotify", 300, 0, 0)
    in_child("x32-getpid", lambda: sys_or_raise(X32 + 39))


def terminal():
    def push():
        for fd in (0, 1, 2):
            if os.isatty(fd):
                fcntl.ioctl(fd, termios.TIOCSTI, b"x")
                return
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSTI, b"x")
    in_child("tiocsti", push)


def status():
    with open("/proc/self/status") as f:
        lines = dict(x.split(":\t", 1) for x in f.read().splitlines() if ":\t" in x)
    return lines


def writable():
    found = []
    for path in ("/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_unprivileged_port_start",
                 "/proc/sysrq-trigger", "/sys/kernel/mm/ksm/run", "/proc/1/mem"):
        try:
            os.close(os.open(path, os.O_WRONLY))
            found.append(path)
        except OSError:
            pass
    return found


def visible_sockets():
    """Sockets in the file system that accept a connection."""
    found = []
    for folder, folders, names in os.walk("/", followlinks=False):
        if folder in ("/proc", "/sys", "/usr"):
            folders[:] = []
            continue
        for n in names:
            path = os.path.join(folder, n)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    with socket.socket(socket.AF_UNIX) as s:
                        s.connect(path)
                        found.append(path)
            except OSError:
                pass
    return found


def setuid():
    for program in ("/usr/bin/su", "/usr/bin/passwd", "/bin/mount"):
        try:
            st = os.stat(program)
        except OSError:
            continue
        if not st.st_mode & stat.S_ISUID:
            continue
        before = status()["CapEff"]
        r = subprocess.run(["/usr/bin/env", "-i", program, "--version"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        return before != status()["CapEff"] or r.returncode < 0
    return False


def main():
    fds = sorted(int(x) for x in os.listdir("/proc/self/fd"))
    fds = [f for f in fds if os.path.exists("/proc/self/fd/%d" % f)]
    sockets_of_fds = [os.readlink("/proc/self/fd/%d" % f) for f in (0, 1, 2)
                      if "socket:" in os.readlink("/proc/self/fd/%d" % f)]
    sockets()
    calls()
    terminal()
    attempt("write-sysctl", lambda: os.close(
        os.open("/proc/sys/net/ipv4/ip_unprivileged_port_start", os.O_WRONLY)))
    try:
        with open("/usr/durward-escape-test", "w") as f:
            f.write("x")
    except OSError:
        pass
    st = status()
    out = {
        "probes": probes, "fds": fds, "fd_sockets": sockets_of_fds,
        "caps": [st.get(c, "-").strip() for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "nnp": str(libc.prctl(39, 0, 0, 0, 0)), "seccomp": st["Seccomp"].strip(),
        "interfaces": [n for _, n in socket.if_nameindex()],
        "pids": [int(p) for p in os.listdir("/proc") if p.isdigit()],
        "env": dict(os.environ), "devices": [
            n for n in os.listdir("/dev") if stat.S_ISCHR(os.lstat("/dev/" + n).st_mode) or
            stat.S_ISBLK(os.lstat("/dev/" + n).st_mode)],
        "writable_system": writable(), "setuid_gain": setuid(),
        "sys": len(os.listdir("/sys")) if os.path.isdir("/sys") else None,
        "sys_kernel": os.path.exists("/sys/kernel"),
        "sockets_visible": visible_sockets(),
        "netns": os.readlink("/proc/self/ns/net"), "userns": os.readlink("/proc/self/ns/user"),
        "pidns": os.readlink("/proc/self/ns/pid"),
        "core_limit": list(resource.getrlimit(resource.RLIMIT_CORE)),
    }
    print(json.dumps(out))


main()
