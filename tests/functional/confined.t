#!/usr/bin/python3 -B
"""Each role conquered: system calls made from inside the running process, as root's daemon has it and as
an ordinary user's. A table of what the user could do and the role must not; an unconfined process of
the same user (the builder) does all of it. Then what a gate could do to its sandbox's network, and
that the network is closed also when its packet rules are gone."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import conquer, durward, scene, tap  # noqa: E402
from harness.conquer import landlock, said  # noqa: E402

HERE = -100  # AT_FDCWD
USER = 61977
ROLES = ("signer", "vault", "dialer", "gate", "injector", "logger", "controller")
F_SETOWN, F_SETSIG, FIOSETOWN = 8, 10, 0x8901
NFNETLINK, BATCH_BEGIN, BATCH_END, GET_TABLE, DELETE_TABLE = 12, 0x10, 0x11, 10 << 8 | 1, 10 << 8 | 2
CONTROL = 3
REFUSED = ("EPERM", "EACCES")


def opens(path, flags=os.O_RDONLY):
    return lambda c: c("openat", HERE, path.encode() + b"\0", flags, 0o600)


def by_path(d, who):
    """What whoever has the user's files could do by name; `who` is a process of the user's."""
    home = os.path.join(d.dir, "home")
    old, new = (os.path.join(home, x).encode() + b"\0" for x in ("old", "new"))
    key = next(os.path.join(d.ca_dir, x) for x in os.listdir(d.ca_dir) if "key" in x)
    return [
        ("reads a private key of the user's", opens(home + "/.ssh/id_rsa")),
        ("reads a secret's file", opens(d.secrets["github"]["file"])),
        ("reads the CA's key", opens(key)),
        ("reads the configuration", opens(d.conf)),
        ("appends to .bashrc", opens(home + "/.bashrc", os.O_WRONLY | os.O_APPEND)),
        ("empties .bashrc", lambda c: opens(home + "/.bashrc", os.O_WRONLY | os.O_TRUNC)(c)),
        ("makes a file", opens(home + "/made", os.O_WRONLY | os.O_CREAT)),
        ("lists the home directory", opens(home, os.O_RDONLY | os.O_DIRECTORY)),
        ("reads by way of /proc/self/root", opens("/proc/self/root" + home + "/.ssh/id_rsa")),
        ("reads /etc/passwd", opens("/etc/passwd")),
        ("reads another process's memory", opens("/proc/%d/mem" % who)),
        ("reads another process's environment", opens("/proc/%d/environ" % who)),
        ("lists another process's descriptors", opens("/proc/%d/fd" % who, os.O_RDONLY | os.O_DIRECTORY)),
        ("opens a terminal", opens("/dev/ptmx", os.O_RDWR)),
        ("makes a directory", lambda c: c("mkdirat", HERE, home.encode() + b"/folder\0", 0o700)),
        ("renames", lambda c: c("renameat", HERE, old, HERE, new)),
        ("removes", lambda c: c("unlinkat", HERE, home.encode() + b"/victim\0", 0)),
    ]


def by_call(who, dialer):
    """What it could do to others of its uid, or with a socket of its own."""
    rows = [
        ("signals another process", lambda c: c("kill", who, signal.SIGURG)),
        ("signals a thread of another", lambda c: c("tgkill", who, who, signal.SIGURG)),
        ("takes another process by descriptor", lambda c: c("pidfd_open", who, 0)),
        ("reads another's memory by process_vm_readv", lambda c: c("process_vm_readv", who, 0, 0, 0, 0, 0)),
        ("has a descriptor signal another", lambda c: c("fcntl", CONTROL, F_SETOWN, who)),
        ("with any signal", lambda c: c("fcntl", CONTROL, F_SETSIG, signal.SIGKILL)),
        ("the same by ioctl", lambda c: c("ioctl", CONTROL, FIOSETOWN, struct.pack("i", who))),
        ("makes a unix socket", lambda c: c("socket", socket.AF_UNIX, socket.SOCK_STREAM, 0)),
        ("makes one for datagrams", lambda c: c("socket", socket.AF_UNIX, socket.SOCK_DGRAM, 0)),
        ("makes a pair that can be connected elsewhere", lambda c: c("socketpair", socket.AF_UNIX, socket.SOCK_DGRAM, 0,
                                                                     b"\0" * 8)),
        ("makes a socket of netfilter's", lambda c: c("socket", socket.AF_NETLINK, socket.SOCK_RAW, NFNETLINK)),
        ("sets what is not its own of a socket", lambda c: c("setsockopt", CONTROL, socket.SOL_SOCKET, 12, struct.pack("i", 1),
                                                             4)),
    ]
    if not dialer:
        rows.append(("makes a TCP socket", lambda c: c("socket", socket.AF_INET, socket.SOCK_STREAM, 0)))
    return rows


def never(who):
    """The same, not tried by the control, which would be another program, or two."""
    return [
        ("runs a program", lambda c: c("execve", b"/bin/true\0", 0, 0)),
        ("makes a process", lambda c: c("clone", signal.SIGCHLD, 0, 0, 0, 0)),
        ("traces another process", lambda c: c("ptrace", 16, who, 0, 0)),
        ("makes a namespace", lambda c: c("unshare", 0x10000000)),
        ("makes a ring of system calls", lambda c: c("io_uring_setup", 1, 0)),
    ]


def refused(t, c, what, rows):
    """One line of results for a table."""
    done = [(name, said(fn(c))) for name, fn in rows]
    bad = ["%s: %s" % x for x in done if x[1] not in REFUSED]
    t.ok(done and not bad, "%s: %d of %d are refused" % (what, len(done) - len(bad), len(done)), *bad)


def control(t, d, who, role, pid, mode):
    """All of it, by a process that nobody confined."""
    with conquer.Conquered(pid) as c:
        before = c.descriptors()
        bad = ["%s: %s" % (name, said(r)) for name, r in ((name, fn(c)) for name, fn in by_path(d, who) + by_call(who, False))
               if r < 0]
        c("fcntl", CONTROL, F_SETOWN, 0)
        c("fcntl", CONTROL, F_SETSIG, 0)
        tidy(c, before)
    t.ok(not bad, "%s: the %s, which nobody confined, does each of these (control)" % (mode, role), *bad)


def tidy(c, before):
    for n in c.descriptors():
        if n not in before:
            c("close", n)


def keeps(t, c, own, beside, what):
    """A directory of its own, by a descriptor that it has, and the one that it lies in or beside."""
    fd = next(n for n, link in sorted(c.descriptors().items()) if link == own)
    own = "/proc/self/fd/%d" % fd
    made = os.path.join(own, "made").encode() + b"\0"
    got = (c("openat", HERE, made, os.O_RDWR | os.O_CREAT, 0o600),
           c("openat", HERE, own.encode() + b"\0", os.O_RDONLY | os.O_DIRECTORY, 0),
           c("unlinkat", HERE, made, 0) if "logger" in what else c("unlink", made))
    t.ok(min(got) >= 0, "%s: makes, lists and removes in its directory" % what, str([said(x) for x in got]))
    refused(t, c, what + ", beside its directory", [
        ("writes", opens(beside + "/x", os.O_WRONLY | os.O_CREAT)),
        ("reads", opens(beside + "/there")),
        ("steps out of it", opens(own + "/../" + os.path.basename(beside) + "/there")),
        ("steps out of it by descriptor", lambda c: c("openat", fd, b"../" + os.path.basename(beside).encode() + b"/there\0",
                                                     os.O_RDONLY, 0)),
        ("lists", opens(beside, os.O_RDONLY | os.O_DIRECTORY))])


def dials(t, c, what, abi):
    files = [f for f in ("/etc/resolv.conf", "/etc/hosts") if os.path.exists(f)]
    got = [opens(f)(c) for f in files]
    t.ok(min(got + [0]) >= 0, "%s: reads %s" % (what, ", ".join(files)), str(got))
    fd = c("socket", socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0)
    t.ok(fd >= 0, "%s: makes a TCP socket" % what, said(fd))
    rows = [("writes " + f, opens(f, os.O_WRONLY)) for f in files]
    if abi >= 4:
        at = struct.pack("=H2s4s8x", socket.AF_INET, b"\0\0", socket.inet_aton("127.0.0.1"))
        rows.append(("takes a port", lambda c: c("bind", fd, at, len(at))))
    refused(t, c, what + ", the other way", rows)


def each_role(t, d, who, found, mode, abi):
    for pid, role in found:
        if role not in ROLES:
            continue
        what = "%s, %s" % (mode, role)
        opener = role in ("dialer", "logger", "controller")
        with conquer.Conquered(pid) as c:
            before = c.descriptors()
            refused(t, c, what, by_call(who, role == "dialer") + never(who) +
                    (by_path(d, who) if abi or not opener else []))
            if opener and not abi:
                t.skip(what + ": what it reaches by path", "this kernel has no Landlock")
            elif role == "logger":
                keeps(t, c, os.path.dirname(d.audit_files()[0]), os.path.join(d.audit_dir, "beside"), what)
            elif role == "controller" and "daemon" in mode:
                keeps(t, c, os.path.join(d.dir, "state", "controller"), os.path.join(d.dir, "state", "beside"), what)
            elif role == "controller":
                beside = os.path.join(d.dir, "state", "controller")
                fd = next(n for n, link in sorted(before.items()) if link == beside)
                refused(t, c, what + ", in the registry's directory, of which it has no need", [
                    ("writes", lambda c: c("openat", fd, b"x\0", os.O_WRONLY | os.O_CREAT, 0o600)),
                    ("reads", lambda c: c("openat", fd, b"tag.key\0", os.O_RDONLY, 0))])
            elif role == "dialer":
                dials(t, c, what, abi)
            tidy(c, before)


# ---- the network of a sandbox ----

def message(kind, flags, payload, family=0, resource=0):
    body = struct.pack("=BBH", family, 0, socket.htons(resource)) + payload
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body


REMOVAL = (message(BATCH_BEGIN, 1, b"", resource=10) +
           message(DELETE_TABLE, 5, struct.pack("=HH", 12, 1) + b"durward\0", family=1) +
           message(BATCH_END, 1, b"", resource=10))
ASK = """
import socket, sys
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, %d)
s.settimeout(5)
s.send(bytes.fromhex(sys.argv[1]))
data = s.recv(65536)
print("table" if b"durward" in data else "none")
""" % NFNETLINK


def in_network(pid, raw):
    """Root's word to the netfilter of that process's network; -> what it says of our table."""
    r = subprocess.run(["nsenter", "-t", str(pid), "-n", sys.executable, "-c", ASK, raw.hex()],
                       capture_output=True, text=True, timeout=20)
    return r.stdout.strip() or r.stderr


def table(pid):
    return in_network(pid, message(GET_TABLE, 0x301, b"", family=1))


def inside(top):
    own = os.readlink("/proc/self/ns/net")
    for pid, _ in tap.descendants(top):
        try:
            if os.readlink("/proc/%d/ns/net" % pid) != own:
                return pid
        except OSError:
            continue  # it has just ended
    raise RuntimeError("no process in a network of its own")


def gate(t, box, found, mode):
    """Its sockets speak no netlink, and the rules stay."""
    pid = inside(box.process.pid)
    t.eq(table(pid), "table", "%s: the sandbox's network has our packet rules" % mode)
    asked, netlink = 0, []
    for gate_pid in (p for p, role in found if role == "gate"):
        with conquer.Conquered(gate_pid) as c:
            for n in (n for n, link in c.descriptors().items() if link.startswith("socket:")):
                if c("getsockopt", n, socket.SOL_SOCKET, socket.SO_DOMAIN, b"\0" * 4, struct.pack("i", 4)) < 0:
                    continue
                asked += 1
                if struct.unpack("i", c.back(0))[0] != socket.AF_NETLINK:
                    continue
                netlink.append(n)
                c("sendto", n, REMOVAL, len(REMOVAL), socket.MSG_DONTWAIT, 0, 0)
    t.ok(asked > 3 and not netlink, "%s: none of the gate's %d sockets is one of netlink's" % (mode, asked), str(netlink))
    t.eq(table(pid), "table", "%s: and the rules are still there" % mode)


TRY = """
import socket, sys
def tcp(a):
    s = socket.create_connection(a, 2)
    s.close()
def udp(a):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.3)
        s.sendto(b"x", a)
        s.recv(10)
for a in sys.argv[1:]:
    host, _, port = a.rpartition(":")
    for fn in (tcp, udp):
        try:
            fn((host, int(port)))
            print("open", a, fn.__name__)
        except OSError as e:
            print("closed", a, fn.__name__, e)
"""


def without_rules(t, s, box, mode):
    """Root takes them away: what was sent past the gate still goes nowhere."""
    pid = inside(box.process.pid)
    with socket.create_server(("", 0)) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        port = server.getsockname()[1]
        udp.bind(("", port))
        own = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        hosts = ["127.0.0.1", "203.0.113.9", "169.254.169.254"] + [h for h in own if ":" not in h]
        in_network(pid, REMOVAL)
        t.eq(table(pid), "none", "%s: root removes the rules" % mode)
        before = len(s.github.requests)
        _, out, err = box.sh("python3 -c '%s' %s" % (TRY, " ".join("%s:%d" % (h, p) for h in hosts for p in (port, 443))))
        lines = out.splitlines()
        t.ok(len(lines) == 4 * len(hosts) and all(x.startswith("closed ") for x in lines),
             "%s: without them %d ways out are closed" % (mode, len(lines)), out + err)
        box.sh("curl -sm 2 https://api.github.com/user; curl -sm 2 --noproxy '*' https://203.0.113.9/")
        server.settimeout(0.2)
        udp.settimeout(0.2)
        heard = []
        for fn in (server.accept, lambda: udp.recv(10)):
            try:
                heard.append(fn())
            except TimeoutError:
                continue
        t.eq(heard, [], "%s: and this host heard nothing" % mode)
        t.eq(len(s.github.requests), before, "%s: nor an origin" % mode)


# ---- both kinds of user ----

HOLD = ("import ctypes, sys; ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0); print('on', flush=True); "
        "sys.stdin.read()")


def as_user(user):
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]


def reaches(t, user):
    """A build below /root is nobody else's."""
    return subprocess.run(as_user(user) + ["sh", "-c", 'test -x "$0" && test -r "$1" && test -x "$2"', durward.program(),
                                           os.path.join(durward.INSIDE, "agent.py"), t.tmp]).returncode == 0


def prepare(t, s, name, user):
    d = s.d
    for x in (".ssh/id_rsa", ".bashrc", "old", "victim"):
        t.write("%s/home/%s" % (name, x), "the user's\n", 0o600)
    for x in ("audit/beside", "state/beside"):
        os.mkdir(os.path.join(d.dir, x))
        t.write("%s/%s/there" % (name, x), "of another\n", 0o644)
    if not user:
        return
    os.chown(os.path.dirname(d.socket), user, user)
    d.prefix = as_user(user)
    for folder, _, names in os.walk(d.dir):
        for x in [folder] + [os.path.join(folder, n) for n in names]:
            os.chown(x, user, user)


def mode_of(t, name, user):
    mode, abi = ("an ordinary user" if user else "root"), landlock()
    s = scene.Scene(t, name=name)
    s.d.save()
    prepare(t, s, name, user)
    box = durward.Sandbox(s.d)
    t.eq(box.sh("curl -s -o /dev/null -w '%{http_code}' https://api.github.com/user")[1], "200", "%s: a request" % mode)
    who = t.popen(s.d.prefix + [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=s.d.env)
    who.stdout.readline()
    found = s.d.roles(box.process.pid)
    t.ok({r for _, r in found} >= set(ROLES), "%s: every role runs" % mode, str(found))
    each_role(t, s.d, who.pid, found, mode, abi)
    control(t, s.d, who.pid, "builder", next(p for p, r in found if r == "builder"), mode)
    gate(t, box, found, mode)
    t.eq(box.sh("curl -s -o /dev/null -w '%{http_code}' https://api.github.com/user")[1], "200",
         "%s: and all goes on" % mode)
    without_rules(t, s, box, mode)
    box.close()


def daemon_of(t, name, user):
    """The controller of a daemon has files of its own, which one of `durward run` has not."""
    mode = ("an ordinary user's" if user else "root's") + " daemon"
    s = scene.Scene(t, name=name)
    s.listener()
    s.d.save()
    prepare(t, s, name, user)
    s.d.serve(save=False, wait=False)
    if not tap.wait_for(lambda: "parent: ready" in s.d.diagnostics(), 15):
        raise RuntimeError(s.d.diagnostics())
    each_role(t, s.d, s.d.daemon.pid, [x for x in s.d.roles(s.d.daemon.pid) if x[1] == "controller"], mode, landlock())
    t.eq(s.d.stop(), 0, "%s ends well" % mode)


# ---- the resolver's files ----

PRIVATE = 'set -e; mount --bind "$0" /etc; exec "$@"'
NEW = ("in-place.example.com", "replaced.example.com")


def names(t):
    """The dialer holds on to the files it was confined to: what is written into them it reads, and for a
    new one of that name it starts again."""
    s = scene.Scene(t, name="names")
    etc = t.path("etc")
    shutil.copytree("/etc", etc, symlinks=True)
    for x, text in (("resolv.conf", "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n"), ("hosts", "127.0.0.1 localhost\n")):
        path = os.path.join(etc, x)
        if os.path.lexists(path):
            os.unlink(path)
        t.write("etc/" + x, text, 0o644)
    for host in NEW:
        s.rule(allow=host)
    address = s.listener()
    s.d.prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c", PRIVATE, etc]
    s.d.serve()
    g = s.gate(address)
    dialer = lambda: [p for p, r in s.d.roles() if r == "dialer"]  # noqa: E731
    before = dialer()

    def code(host):
        r = g.get(host)
        return r.code

    t.ok(all(code(h) != "blocked_ip" for h in NEW), "names that nobody knows")
    with open(os.path.join(etc, "hosts"), "a") as f:
        f.write("127.0.0.1 %s\n" % NEW[0])
    t.ok(tap.wait_for(lambda: code(NEW[0]) == "blocked_ip", 5), "what is written into /etc/hosts is read")
    t.eq(dialer(), before, "by the same dialer")
    t.write("etc/hosts.new", "127.0.0.1 %s\n" % NEW[1], 0o644)
    os.rename(os.path.join(etc, "hosts.new"), os.path.join(etc, "hosts"))
    t.ok(tap.wait_for(lambda: code(NEW[1]) == "blocked_ip", 10, 0.2), "a file that takes its name is read too")
    if landlock():
        t.ok(dialer() and dialer() != before, "by a dialer that started again", str(dialer()))
        t.has(s.d.diagnostics(), "how this host resolves names has changed", "which says why")


def main(t):
    why = conquer.why_not()
    if why or durward.sanitized():
        t.skip("each role conquered", why or "a sanitizer build widens the filters and has no Landlock")
        return
    t.part(mode_of, t, "root", 0)
    t.part(daemon_of, t, "root-daemon", 0)
    t.part(names, t)
    if not reaches(t, USER):
        t.skip("the same of an ordinary user's roles", "an ordinary user cannot reach this folder: build in another")
        return
    t.part(mode_of, t, "user", USER)
    t.part(daemon_of, t, "user-daemon", USER)


if __name__ == "__main__":
    tap.run(main, "confined", 90)
