#!/usr/bin/python3
"""Runs inside a sandbox whose programs may make namespaces, as its root: what an attacker does who has user,
mount, process and network namespaces of his own. Prints one JSON object."""
import ctypes
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import traceback

libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000,
                                                           0x20000000, 0x40000000)
READ_ONLY, REMOUNT, BIND, REC = 1, 32, 4096, 16384


def said(r):
    return "ok" if r >= 0 else errno.errorcode[ctypes.get_errno()]


def tried(fn, *args):
    try:
        fn(*args)
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]


def mount(source, target, kind, flags=0):
    arg = [x.encode() if x else None for x in (source, target, kind)]
    return said(libc.mount(*arg, flags, None))


def in_child(fn):
    """fn() in a process of its own; what it returns, or how that process ended."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        try:
            got = fn()
        except Exception as e:  # noqa: B902
            got = traceback.format_exc() + repr(e)
        os.write(w, json.dumps(got).encode())
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()
    status = os.waitpid(pid, 0)[1]
    return json.loads(text) if text else "ended: %d" % status


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def own(flags):
    """A namespace of root's own, with all that this gives."""
    if libc.unshare(NEWUSER | flags) < 0:
        return said(-1)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", "0 0 1")
    write("/proc/self/gid_map", "0 0 1")
    return "ok"


def kept(path):
    """What is covered or read-only stays so, seen by a mount namespace of our own and a second one in it."""
    got = [said(libc.umount2(path.encode(), 2)), mount(None, path, None, REMOUNT | BIND),
           tried(write, path + "/probe", "x")]
    got.append(mount(path, "/tmp/to", None, BIND | REC))
    if got[-1] == "ok":
        got += [mount(None, "/tmp/to", None, REMOUNT | BIND), tried(write, "/tmp/to/probe", "x")]
        libc.umount2(b"/tmp/to", 2)
    return got


def mounts():
    for d in ("/tmp/p", "/tmp/to"):
        os.makedirs(d, exist_ok=True)
    entered = own(NEWNS | NEWPID)
    # the first child is process 1 of the new namespace, and may see its processes
    return {"entered": entered, "below": in_child(lambda: {
        "/proc": mount("proc", "/tmp/p", "proc"),
        "sysctls": {p: tried(write, "/tmp/p/" + p, "1\n") for p in (
            "sys/net/ipv4/ip_forward", "sys/net/ipv4/ip_unprivileged_port_start",
            "sys/net/ipv4/conf/all/route_localnet", "sys/net/ipv6/conf/all/disable_ipv6",
            "sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/kernel/panic", "sys/vm/drop_caches",
            "sys/vm/overcommit_memory", "sys/fs/file-max", "sys/fs/mount-max", "sys/kernel/sysrq", "sysrq-trigger",
            "sys/fs/aio-max-nr", "irq/default_smp_affinity")},
        "seen": {p: tried(lambda p: open("/tmp/p/" + p, "rb").read(1), p) for p in ("kcore", "kmsg", "timer_list",
                                                                                  "kpagecount", "vmallocinfo")},
        "keys": open("/tmp/p/keys").read() if os.path.exists("/tmp/p/keys") else "",
        "pids": sorted(int(p) for p in os.listdir("/tmp/p") if p.isdigit()),
        "kinds": {k: mount(k, "/mnt", k) for k in ("ext4", "xfs", "btrfs", "vfat", "iso9660", "nfs", "cifs", "debugfs",
                                                   "tracefs", "securityfs", "bpf", "configfs", "pstore", "hugetlbfs")},
    }), "kept": {p: kept(p) for p in ("/proc/sys", "/etc/durward", "/run/durward")}}


def network():
    """A network of our own leads nowhere, and no way leads from it to another."""
    theirs = os.open("/proc/1/ns/net", os.O_RDONLY) if os.access("/proc/1/ns/net", os.R_OK) else -1
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    entered = own(NEWNET)
    s = socket.socket()
    s.settimeout(3)
    return {"entered": entered, "out": tried(s.connect, ("192.0.2.53", 443)),
            "back": said(libc.setns(before, NEWNET)), "process 1": "none" if theirs < 0 else said(libc.setns(theirs, NEWNET)),
            "interfaces": [n for _, n in socket.if_nameindex()],
            "raw": tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
            "packet": tried(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 0),
            "netfilter": tried(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 12)}


def listeners():
    """The sandbox's own network, with all that its root may: the gate's ports, routes, marks."""
    got = {}
    for port in (53, 901, 80):
        s = socket.socket()
        got["bind %d" % port] = tried(s.bind, ("0.0.0.0", port))
    s = socket.socket()
    got["transparent"] = tried(s.setsockopt, socket.IPPROTO_IP, 19, 1)
    got["mark"] = tried(s.setsockopt, socket.SOL_SOCKET, 36, 1)
    for words in (["link", "set", "lo", "down"], ["route", "flush", "table", "all"], ["addr", "add", "10.9.9.9/8", "dev", "lo"]):
        r = subprocess.run(["ip"] + words, capture_output=True, text=True) if os.path.exists("/usr/sbin/ip") or \
            os.path.exists("/usr/bin/ip") else None
        got[" ".join(words)] = "no ip(8)" if r is None else "ok" if r.returncode == 0 else "EPERM" \
            if "not permitted" in r.stderr else r.stderr
    return got


def processes():
    return {p: tried(lambda p: os.close(os.open(p, os.O_RDONLY)), p) for p in (
        "/proc/1/mem", "/proc/1/root", "/proc/1/environ", "/proc/1/ns/mnt", "/proc/1/ns/user", "/proc/1/fd/3")}


def many(flags, most=400):
    """How many namespaces can be had at once: each is kept by a descriptor."""
    held = []
    while len(held) < most:
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(w, b"y" if libc.unshare(flags) == 0 else b"n")
            os.close(w)
            signal.pause()
        os.close(w)
        good = os.read(r, 1) == b"y"
        os.close(r)
        if good:
            held.append((pid, os.open("/proc/%d/ns/uts" % pid, os.O_RDONLY)))
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        if not good:
            break
    return len(held)


def main():
    with open("/proc/self/status") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    print(json.dumps({
        "caps": [status[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], "nnp": status["NoNewPrivs"],
        "mounts": in_child(mounts), "network": in_child(network), "listeners": in_child(listeners),
        "processes": processes(), "many": in_child(lambda: many(NEWUTS)),
        "device": tried(os.mknod, "/tmp/node", 0o60666, os.makedev(8, 0)),
        "host name": tried(socket.sethostname, "x"),
        "chown": tried(os.chown, sys.argv[0], 999, 999),
    }), flush=True)


main()
