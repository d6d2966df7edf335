"""What a program meets in a sandbox, asked inside, beside the table of SPECIFICATION.md."""
import json
import os

from . import durward

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
    os.mknod("/dev/node", stat.S_IFBLK | 0o600, os.makedev(8, 0))
    os.open("/dev/node", os.O_RDONLY)
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
    got["who answers system calls"] = "the host's kernel" if release == os.uname().release else OWN.get(c.show(box)["backend"], release)
    return got


def listed(backend):
    """{what is asked: what is answered} of that column."""
    with open(os.path.join(durward.TOP, "SPECIFICATION.md")) as f:
        part = f.read().partition(HEADING)[2].partition("\n#")[0]
    lines = [[y.strip() for y in line.strip("| ").split("|")] for line in part.splitlines() if line.startswith("| ")]
    column = lines[0].index(backend)
    return {line[0]: line[column] for line in lines[1:]}


def compare(t, backend, got):
    want = listed(backend)
    for what, answer in got.items():
        t.eq(answer, want.pop(what, None), "%s: %s: %s" % (backend, what, answer))
    t.eq(want, {}, backend + ": and no line more")
