#!/usr/bin/python3 -B
"""What a process inside must not find or be able to do: descriptors, keyrings, other socket
families, io_uring, namespaces, ptrace, devices, host processes, host sockets, the terminal of the
caller; and the environment, the files and the processes of the host."""
import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import api, durward, scan, scene, tap, walls  # noqa: E402

MUST_FAIL = ("vsock", "packet", "raw", "alg", "netlink-audit", "mptcp", "udplite", "sctp",
             "io_uring", "keyctl", "add_key", "request_key", "unshare-user", "unshare-net",
             "unshare-mount", "clone-newuser", "clone3-newuser", "setns", "mount", "umount",
             "pivot_root", "bpf", "perf", "userfaultfd", "ptrace-seize", "process_vm_readv",
             "pidfd_getfd", "kexec", "init_module", "open_by_handle", "tiocsti", "mknod", "chroot", "reboot", "quotactl", "acct", "swapon", "sethostname",
             "settimeofday", "ip_transparent", "so_mark", "bind-443", "bind-53", "x32-getpid",
             "write-sysctl", "route-delete", "abstract-socket", "fanotify")
# What a wall lets through, and why that is no way out.
MEANT = {"gvisor": ("ip_transparent", "so_mark"),  # options that it does not know: it takes them and does nothing
         # in namespaces of its own, where they lead to nothing of the host's (tests/functional/nested.t); and ports that the gate
         # does not have: with nf_tables what goes elsewhere is taken before, and without nothing leaves
         "nested": ("bind-443", "unshare-user", "unshare-net", "unshare-mount", "clone-newuser", "setns", "mount", "umount", "pivot_root", "chroot",
                    "sethostname")}
# What counts as refused: not an answer that shows the call was let in and disliked its arguments.
REFUSALS = ("EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ECONNREFUSED",
            "EADDRINUSE", "EROFS", "ENOENT", "ENOTTY", "EIO", "killed")


ROW = {"vsock": "D16", "netlink-audit": "D17", "io_uring": "D18", "bind-443": "D19", "bind-53": "D20",
       "route-delete": "D21", "unshare-net": "D25", "setns": "D26", "ptrace-seize": "D26",
       "process_vm_readv": "D26", "pidfd_getfd": "D26", "abstract-socket": "D14", "packet": "D10",
       "raw": "D10", "alg": "D10", "mptcp": "D10", "udplite": "D10", "sctp": "D10",
       "ip_transparent": "D19", "so_mark": "D19", "tiocsti": "G19", "keyctl": "G20", "add_key": "G20",
       "request_key": "G20", "unshare-user": "G21", "unshare-mount": "G21", "clone-newuser": "G21",
       "clone3-newuser": "G21", "mknod": "G23", "write-sysctl": "G24", "x32-getpid": "G29"}


def host_things(t, s):
    """What a careless sandbox would inherit: a descriptor, sockets, an environment variable."""
    path = t.write("host-file", "host-file-content-0123456789")
    fd = os.open(path, os.O_RDONLY)
    os.set_inheritable(fd, True)
    t.cleanup(lambda: os.close(fd))
    abstract = socket.socket(socket.AF_UNIX)
    name = "durward-test-%d" % os.getpid()
    abstract.bind("\0" + name)
    abstract.listen(1)
    t.cleanup(abstract.close)
    inside = socket.socket(socket.AF_UNIX)
    inside.bind(os.path.join(s.d.work, "host.sock"))
    t.cleanup(inside.close)
    return fd, name


def run_probe(t, s, name, fd):
    d = s.d
    d.save()
    argv = [durward.program(), "run", "-c", d.conf, "--bind", durward.INSIDE + ":" +
            durward.INSIDE + ":ro", "--", durward.PYTHON, durward.INSIDE + "/escape.py", name]
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, cwd=d.work, timeout=50, pass_fds=(fd,),
                       env=dict(d.env, HOST_VARIABLE="host-variable-content-0123456789"))
    try:
        return json.loads(r.stdout)
    except ValueError:
        raise RuntimeError("escape.py: %d %s %s" % (r.returncode, r.stdout, r.stderr))


def judge(t, got, wall):
    where, own, nested = wall + ": ", wall == "gvisor", wall == "nested"
    for probe in [x for x in MUST_FAIL if x not in MEANT.get(wall, ())]:
        answer = got["probes"].get(probe, "missing")
        t.ok(answer in REFUSALS, "%s%s %s is refused" % (where, ROW.get(probe, "G"), probe), answer)
    t.eq(got["fds"], [0, 1, 2], where + "G16 no descriptor but 0, 1, 2")
    t.eq(got["fd_sockets"], [], where + "and none of them a socket or a device of the host")
    if nested:
        t.eq(got["caps"][:4], ["00000000a82435ff"] * 4, where + "G22 capabilities of its own namespace alone")
    else:
        t.eq(got["caps"], ["0000000000000000"] * 4 + ["-" if own else "0000000000000000"], where + "G22 no capability in any set")
    t.eq((got["nnp"], got["seccomp"]), ("1", "2"), where + "no_new_privs and a filter")
    t.ok(got["interfaces"] == ["lo"], where + "D25 no interface but lo", str(got["interfaces"]))
    t.ok(all(p < 100 for p in got["pids"]) and len(got["pids"]) < 8, where + "only its own processes",
         str(got["pids"]))
    t.ok("host-variable-content" not in json.dumps(got), where + "G27 no variable of the host")
    t.eq(got["setuid_gain"], False, where + "G22 a setuid program gains nothing")
    t.ok(set(got["devices"]) <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx",
                                 "console"} | ({"fuse"} if own else set()), where + "only harmless devices", str(got["devices"]))
    t.eq(got["writable_system"], [], where + "no system file can be changed on the host")
    t.ok(got["sys"] in (0, None) or not got["sys_kernel"], where + "no /sys of the host", str(got["sys"]))
    t.eq(got["sockets_visible"], [], where + "D15 no socket of the host can be connected to")
    # the root of an engine is the host's; numbers of another kernel's say nothing
    spaces = ("netns", "userns", "pidns") if wall in ("bwrap", "nested") else ("netns", "pidns")
    t.ok(all(got[n] != os.readlink("/proc/self/ns/" + n[:-2]) for n in spaces),
         where + "D24 its own namespaces: " + ", ".join(spaces))
    t.ok(not os.path.exists("/usr/durward-escape-test"), where + "a write below /usr stays inside")
    t.eq(got["core_limit"], [1, 1], where + "G25 no core dumps, not by a program of the host's either")
    work = scan.Scanner(k=b"host-file-content-0123456789")
    work.search(json.dumps(got), "answer")
    t.ok(not work.hits, where + "the inherited file cannot be read")


def behind(t, s, name, wall, settings):
    """The same in a sandbox of the daemon's, behind another wall."""
    s.d.policies["coder"]["sandbox"] = settings
    s.d.serve(env={"HOST_VARIABLE": "host-variable-content-0123456789"})
    c = api.Api(s.d.socket, timeout=90)
    box = c.create(policy="coder")["id"]
    with open(os.path.join(durward.INSIDE, "escape.py"), "rb") as f:
        c.write(box, "/tmp/escape.py", f.read())
    r = c.exec(box, "python3 /tmp/escape.py " + name, split=True, timeout=90)
    try:
        judge(t, json.loads(r["stdout"]), wall)
    except ValueError:
        t.ok(False, "%s: the probe answers" % wall, r)
    c.delete(box)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


def main(t):
    s = scene.Scene(t)
    fd, name = host_things(t, s)
    for wall, settings in walls.Walls(t).each("what a process must not find", walls.WALLS):
        if wall == "bwrap":
            judge(t, run_probe(t, s, name, fd), wall)
        else:
            t.part(behind, t, s, name, wall, settings)


tap.run(main, timeout=240)
