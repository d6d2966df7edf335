"""The walls that a sandbox can have, and what a program meets behind each, asked inside, beside the table of SPECIFICATION.md.

DURWARD_WALLS says which of them a test tries, wholly: `make walls`. Else it tries those that it names itself, and of what an
emulated processor takes long for a sample."""
import json
import os

from . import durward, engine, gvisor, microvm, person, tap

WALLS = ("bwrap", "nested", "docker", "gvisor", "microvm")
# what a container's image has beside busybox
PROGRAMS = ("setsid find du xargs cut yes mkfifo dirname id sed uniq uname groups whoami fold basename awk stat expr which tail "
            "rev netstat").split()
HOSTS = ("setpriv", "lsns", "grep")  # busybox has no --include


def whole():
    return "DURWARD_WALLS" in os.environ


def asked(*usual):
    """Which are tried."""
    names = os.environ.get("DURWARD_WALLS", "").split()
    if set(names) - set(WALLS):
        raise RuntimeError("DURWARD_WALLS: %s; there are %s" % (" ".join(names), " ".join(WALLS)))
    return [w for w in WALLS if w in (names or usual)]


class Walls:
    """What a policy's `sandbox` says for each of them."""

    def __init__(self, t):
        self.t, self.made = t, {}

    def settings(self, wall):
        """A copy; Skip: it cannot be had here."""
        if wall not in self.made:
            self.made[wall] = getattr(self, "_" + wall)()
        if isinstance(self.made[wall], str):
            raise tap.Skip(self.made[wall])
        return dict(self.made[wall])

    def each(self, what, usual):
        """[(wall, its settings)] of those that are asked for; a skip for each that cannot be had."""
        for wall in asked(*usual):
            try:
                yield wall, self.settings(wall)
            except tap.Skip as x:
                self.t.skip("%s: %s" % (wall, what), str(x))

    def image(self, more=()):
        """A root file system as a tar: busybox, curl, the host's programs that ask about namespaces, and its shell: busybox's takes
        its own grep whatever PATH says."""
        hosts = [("usr/bin/" + n, os.path.realpath("/usr/bin/" + n)) for n in HOSTS] + [("bin/sh", os.path.realpath("/bin/sh"))]
        hosts += [(x.lstrip("/"), os.path.realpath(x)) for _, p in list(hosts) for x in engine.libraries(p)]
        return engine.rootfs([("usr/bin/" + n, "../../bin/busybox") for n in PROGRAMS], list(more) + hosts)

    def _bwrap(self):
        return {}

    def _nested(self):
        if os.geteuid() != 0:
            return "needs uids of /etc/subuid for the test's own user"
        try:
            person.own_ids(self.t)
        except tap.Skip as x:
            return str(x)
        return {"nested": True}

    def _gvisor(self):
        return gvisor.needed() or {"backend": "gvisor"}

    def _microvm(self):
        return microvm.needed() or {"backend": "microvm"}

    def _docker(self):
        if engine.needed():
            return engine.needed()
        try:
            e = engine.Engine(self.t)
            e.image("walls:1", self.image(engine.python_files()))
        except tap.Skip as x:
            return str(x)
        return {"backend": "docker", "docker": {"socket": e.socket, "image": "walls:1"}}


INSIDE = r"""
import ctypes, json, os, signal, socket, stat
l = ctypes.CDLL(None, use_errno=True)
def tried(fn, *a):
    try:
        fn(*a)
        return "ok"
    except OSError as e:
        import errno
        return errno.errorcode[e.errno]
def int80():
    code = ctypes.create_string_buffer(b"\xb8\x14\0\0\0\xcd\x80\xc3")
    at = ctypes.addressof(code) & ~4095
    if l.mprotect(ctypes.c_void_p(at), 8192, 7) == 0:
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(code))()
def ending(fn):
    pid = os.fork()
    if pid == 0:
        fn()
        os._exit(0)
    return "killed" if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) < 0 else "not killed"
def namespace():
    if l.unshare(0x10000000) < 0:
        raise OSError(ctypes.get_errno(), "")
def mark():
    socket.socket().setsockopt(socket.SOL_SOCKET, 36, 1)
def node():
    os.mknod("/dev/one-of-a-disk", stat.S_IFBLK | 0o600, os.makedev(8, 0))
    os.open("/dev/one-of-a-disk", os.O_RDONLY)
def setuid():
    os.chmod("/workspace", 0o4755)
print(json.dumps({"release": os.uname().release, "`int 0x80`": ending(int80), "a set-uid bit": tried(setuid),
    "a user namespace": tried(namespace), "a raw socket": tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
    "SO_MARK": tried(mark), "a disk's node, made in /dev and opened": tried(node),
    "the host's kernel's log": tried(open, "/dev/kmsg")}))
"""
HEADING = "### What each wall stops"
OWN = {"gvisor": "gVisor", "microvm": "a kernel of its own"}


def found(c, box, timeout=30):
    c.write(box, "/tmp/walls.py", INSIDE.encode())
    got = json.loads(c.sh(box, "python3 /tmp/walls.py", timeout=timeout)[1])
    release = got.pop("release")
    backend = c.show(box)["backend"]
    if backend == "gvisor":
        got["`int 0x80`"] = "killed, or a call of gVisor's own"  # by its version
    got["who answers system calls"] = "the host's kernel" if release == os.uname().release else OWN.get(backend, release)
    return got


def table():
    """{row: {wall: cell}} of SPECIFICATION.md."""
    with open(os.path.join(durward.TOP, "SPECIFICATION.md")) as f:
        part = f.read().partition(HEADING)[2].partition("\n#")[0]
    lines = [[y.strip() for y in line.strip("| ").split("|")] for line in part.splitlines() if line.startswith("| ")]
    return {line[0]: dict(zip(lines[0][1:], line[1:])) for line in lines[1:]}


def listed(backend):
    """{what is asked: what is answered} of that column; rows of tests have a colon in their names."""
    return {row: cells[backend] for row, cells in table().items() if ": " not in row}


def compare(t, backend, got):
    want = listed(backend)
    for what, answer in got.items():
        t.eq(answer, want.pop(what, None), "%s: %s: %s" % (backend, what, answer))
    t.eq(want, {}, backend + ": and no line more")
