"""Somebody in a role's place: the program of tests/seats, in which a real role of the real system
(its filter, its uid, its descriptors) does what a test says. Rows: what it may not do."""
import errno
import os
import platform
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

from . import durward, tap, wire

CONTROL = 3
# Of what each row waits for at most: where a mutation lets rows through, all of them wait so long.
WAIT_FACTOR = float(os.environ.get("SEAT_WAIT_FACTOR", "1"))
CALLS = {  # name: number on x86_64, on aarch64
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "socket": (41, 198),
    "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept4": (288, 242),
    "sendto": (44, 206), "clone": (56, 220), "execve": (59, 221), "kill": (62, 129),
    "fcntl": (72, 25), "ftruncate": (77, 46), "ptrace": (101, 117), "setuid": (105, 146),
    "mount": (165, 40), "umount2": (166, 39), "openat": (257, 56), "unlinkat": (263, 35),
    "renameat2": (316, 276), "symlinkat": (266, 36), "linkat": (265, 37), "mkdirat": (258, 34),
    "unshare": (272, 97), "setns": (308, 268), "process_vm_readv": (310, 270),
    "memfd_create": (319, 279), "bpf": (321, 280), "io_uring_setup": (425, 425),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "clone3": (435, 435), "mmap": (9, 222),
    "mprotect": (10, 226), "getuid": (102, 174), "pread64": (17, 67), "tgkill": (234, 131),
    "prctl": (157, 167), "keyctl": (250, 219), "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "chroot": (161, 51),
    "fchmodat": (268, 53), "mknodat": (259, 33), "sendmsg": (46, 211), "shmget": (29, 194),
    "inotify_init1": (294, 26), "timer_create": (110, 107), "reboot": (169, 142),
    "socketpair": (53, 199), "init_module": (175, 105), "personality": (135, 92), "getdents64": (217, 61)}
AT_FDCWD = -100


class Ended(Exception):
    """The seat's process is gone."""


def number(call):
    return CALLS[call][platform.machine() == "aarch64"]


class Seats:
    """Set up before the scene: the program under test is ours from here on."""

    def __init__(self, t):
        programs = os.environ.get("DURWARD_SEATS") or os.path.join(os.path.dirname(durward.program()), "../../seats")
        if not os.access(os.path.join(programs, "gate"), os.X_OK):
            raise FileNotFoundError("the programs of tests/seats are missing: %s" % programs)
        stage = tempfile.mkdtemp(prefix="durward-seats-")
        t.cleanup(lambda: shutil.rmtree(stage, ignore_errors=True))
        os.chmod(stage, 0o755)
        for part in ("bin", "libexec"):
            shutil.copytree(os.path.join(os.path.dirname(os.path.dirname(durward.program())), part),
                            os.path.join(stage, part))
        folder = os.path.join(stage, "libexec/durward")
        for name in os.listdir(folder):
            if os.access(os.path.join(programs, name), os.X_OK):
                shutil.copy(os.path.join(programs, name), os.path.join(folder, name))
        self.program, before = os.path.join(stage, "bin/durward"), durward.program()
        os.environ["DURWARD"] = self.program
        t.cleanup(lambda: os.environ.update(DURWARD=before))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(os.path.join(folder, "seat"))
        os.chmod(os.path.join(folder, "seat"), 0o666)
        self.socket.listen(64)
        self.seats, self.changed = [], threading.Condition()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()
        t.cleanup(self.close)

    def _accept(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return  # closed: the test is at its end
            conn.settimeout(20)
            try:
                role, pid = conn.recv(64).decode().split()
            except (OSError, ValueError):
                conn.close()  # ended before it said a word
                continue
            with self.changed:
                self.seats.append(Seat(role, int(pid), conn))
                self.changed.notify_all()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.socket.close()
        for s in self.seats:
            s.conn.close()

    def take(self, role, fits=lambda seat: True, seconds=30):
        """The newest living one of this role that fits, taken."""
        end, ended = time.monotonic() + seconds, []
        while time.monotonic() < end:
            with self.changed:
                here = [s for s in reversed(self.seats) if s.role == role and not s.taken]
            for s in here:
                try:
                    s.take()
                    if fits(s):
                        return s
                    s.go()
                except Ended as e:
                    ended.append(str(e))
                    with self.changed:
                        self.seats.remove(s)
            with self.changed:
                self.changed.wait(0.05)
        raise RuntimeError("no %s to sit in: %s; ended meanwhile: %s" % (role, ", ".join(
            "%s %d%s" % (s.role, s.pid, " taken" if s.taken else "") for s in self.seats[-12:]), ended[-6:]))


class Seat:
    def __init__(self, role, pid, conn):
        self.role, self.pid, self.conn, self.taken = role, pid, conn, False
        self.born = time.monotonic()
        self.told = []  # by the parent meanwhile: (type, fields, descriptors)

    def command(self, data):
        try:
            self.conn.send(data)
            got = self.conn.recv(1 << 18)
        except OSError as e:
            raise Ended("%s %d: %s" % (self.role, self.pid, e))
        if not got:
            raise Ended("%s %d" % (self.role, self.pid))
        return got

    def take(self):
        self.command(b"T")
        self.taken = True

    def go(self):
        self.command(b"G")
        self.taken = False

    def end(self):
        """What was said in its name fits what it knows no more: the parent starts another."""
        self.lives(1.1)
        os.kill(self.pid, signal.SIGKILL)
        if not self.gone():
            raise RuntimeError("the %s does not end" % self.role)

    def lives(self, seconds):
        """Until it has lived for so long."""
        time.sleep(max(0, self.born + seconds - time.monotonic()))

    def asserts(self):
        """An assertion of its own does not hold."""
        self.conn.send(b"A")
        if not self.gone():
            raise RuntimeError("the %s does not end" % self.role)

    def gone(self, seconds=5):
        """The process ends (its control channel was cut off, and it has nobody to listen to)."""
        def over():
            try:
                with open("/proc/%d/stat" % self.pid) as f:
                    return f.read().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                return True
        return tap.wait_for(over, seconds * WAIT_FACTOR)

    def wires(self, kind, policy=None):
        found = []
        for line in self.command(b"L").decode().splitlines()[1:]:
            role, fd, channel, sandbox, name = line.split(" ")
            if role == kind and policy in (None, name[1:-1]):
                found.append(Wire(self, role, int(fd), int(channel), name[1:-1], sandbox[1:-1]))
        return found

    def wire(self, kind, policy=None):
        found = self.wires(kind, policy)
        if not found:
            raise RuntimeError("the %s has no wire to a %s" % (self.role, kind))
        return found[-1]

    def control(self):
        return Wire(self, "parent", CONTROL, 0, "", "")

    # ---- what the process does ----

    def send(self, fd, data, fds=()):
        """-> bytes, or minus an errno"""
        got = self.command(b"W" + struct.pack("=II%dI" % len(fds), fd, len(fds), *fds) + data)
        return struct.unpack("=q", got)[0]

    def says(self, data, fds=()):
        """To the parent, which may end us before we can say that we have."""
        try:
            self.send(CONTROL, data, fds)
        except Ended:
            return

    def many(self, fd, data, count, at):
        return struct.unpack("=q", self.command(b"N" + struct.pack("=III", count, at, fd) + data))[0]

    def receive(self, fd, seconds):
        """-> (result, descriptors, bytes); result 0: the far end has closed."""
        got = self.command(b"R" + struct.pack("=II", fd, int(seconds * 1000)))
        r, n = struct.unpack("=qI", got[:12])
        return r, struct.unpack("=%dI" % n, got[12:12 + 4 * n]), got[12 + 4 * n:]

    def call(self, name, *args):
        """A system call: numbers, bytes, or a bytearray as room that is filled. -> result or -errno"""
        text, rooms = b"", []
        for a in args:
            if isinstance(a, int):
                text += b"i" + struct.pack("=q", a)
            elif isinstance(a, bytearray):
                text += b"o" + struct.pack("=I", len(a))
                rooms.append(a)
            else:
                text += b"b" + struct.pack("=I", len(a)) + a
        got = self.command(b"S" + struct.pack("=II", number(name), len(args)) + text)
        at = 8
        for room in rooms:
            room[:] = got[at:at + len(room)]
            at += len(room)
        return struct.unpack("=q", got[:8])[0]

    def journal(self):
        """Its descriptor of the journal: what appends to a regular file."""
        for fd in range(4, 120):
            mode = self.call("fcntl", fd, 3, 0)
            if mode >= 0 and mode & os.O_APPEND:
                return fd
        raise RuntimeError("the %s has no journal" % self.role)


class Wire:
    def __init__(self, seat, role, fd, channel, policy, sandbox):
        self.seat, self.role, self.fd, self.channel = seat, role, fd, channel
        self.policy, self.sandbox, self.held = policy, sandbox, []

    def send(self, data, fds=()):
        return self.seat.send(self.fd, data, fds)

    def next(self, seconds=2.0):
        """-> (type, fields, descriptors), "ended" or None"""
        if self.held:
            return self.held.pop(0)
        r, fds, data = self.seat.receive(self.fd, seconds)
        if r == -errno.ETIMEDOUT:
            return None
        if r <= 0:
            return "ended"
        self.held = [(kind, fields, fds) for kind, fields in wire.messages(data)]
        return self.held.pop(0)

    def ended(self, seconds=3.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.next(max(0.01, end - time.monotonic()))
            if got == "ended":
                return True
        return False

    def renew(self, seconds=5.0):
        """Says as the role would that this wire ended; -> the one that the parent makes in its place."""
        seat = self.seat
        seat.call("close", self.fd)
        seat.send(CONTROL, wire.message(wire.LOST, wire.u32(self.channel)))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            r, fds, data = seat.receive(CONTROL, 1)
            if r == -errno.ETIMEDOUT:
                continue
            if r <= 0:
                raise Ended("the %s's control channel ended" % seat.role)
            for kind, f in wire.messages(data):
                if kind != wire.PEER:
                    seat.told.append((kind, f, fds))
                    continue
                kind, channel, sandbox, policy = f.u8(), f.u32(), f.text(), f.text()
                if (kind, policy) == (wire.ROLES[self.role], self.policy):
                    return Wire(seat, self.role, fds[0], channel, policy, sandbox)
        raise RuntimeError("no new wire to the %s" % self.role)


def chosen(parts):
    """Of these the ones that the command line names (a mutation's rows need no others); else all."""
    return [p for p in parts if p.__name__ in sys.argv[1:]] or parts


said = set()


# What rows spoil, and what was taken as a role says it: (whose chair and towards whom, kind of message).
spoilt, taken = {}, set()


def kind_of(datagram):
    return int.from_bytes(datagram[:2], "big") if len(datagram) >= 4 else None


def listed(t, name):
    """Of each kind of message that rows spoil a whole one was taken: else a new field would have all of them refused, and
    nobody see it. And tests/adversary/SEATS has each row that was tried; as root each of them was."""
    t.eq(sorted("%s: %s" % (spoilt[k], wire.NAMES.get(k[1], k[1])) for k in set(spoilt) - taken), [],
         "of each kind of message that is spoilt a whole one is taken")
    if sys.argv[1:]:
        return  # parts alone
    with open(os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "SEATS"), encoding="utf-8") as f:
        rows = {line.rstrip("\n")[len(name) + 1:] for line in f if line.startswith(name + " ")}
    t.eq(sorted(said - rows), [], "each row stands in tests/adversary/SEATS")
    if os.geteuid() == 0:
        t.eq(sorted(rows - said), [], "each row of tests/adversary/SEATS was tried")


class Rows:
    """One row a thing tried: counted, named, and after each the neighbour is served."""

    def __init__(self, t, seat, neighbour):
        self.t, self.seat, self.neighbour = t, seat, neighbour

    def row(self, name, good, *diag):
        served = self.neighbour()
        whole = bool(good) and served is True
        said.add("%s: %s" % (self.seat, name))
        self.t.tally(seat_rows=1, seat_passed=int(whole))
        return self.t.ok(whole, "seat %s: %s" % (self.seat, name), *diag,
                         *([] if served is True else ["the neighbour: %r" % (served,)]))

    def refused(self, who, calls):
        """System calls, each of which must come to nothing. calls: [(name, call, args)]"""
        for name, call, args in calls:
            r = who.call(call, *args)
            self.row(name, -r in (errno.EPERM, errno.EACCES, errno.EBADF), "%s: %d" % (call, r))
            if r >= 0 and call in ("clone", "clone3"):
                raise RuntimeError("there are two of them now")


class Talk:
    """Rows on one wire; where one ends it, the next go over the one that the parent makes anew."""

    def __init__(self, bed, rows, wire_, foreign=()):
        """foreign: kinds of messages that are never said there, beside those of rows "message KIND"."""
        self.bed, self.rows, self.wire, self.seat, self.foreign = bed, rows, wire_, wire_.seat, foreign

    def spoils(self, name, datagrams):
        for k in {kind_of(d) for d in datagrams} - {None, *self.foreign}:
            if not name.startswith("message "):
                spoilt.setdefault((self.rows.seat, k), "%s: %s" % (self.rows.seat, name))

    def heal(self):
        self.wire = self.wire.renew()

    def tries(self, name, good, *datagrams, fds=(), seconds=4):
        """good(first answer), which is None when nothing comes."""
        self.spoils(name, datagrams)
        for d in datagrams:
            self.wire.send(d, fds)
        got = self.wire.next(seconds * WAIT_FACTOR)
        self.rows.row(name, good(got), repr(got))
        if got == "ended":
            self.heal()

    def takes(self, name, good, *datagrams, fds=(), seconds=5):
        """The control of rows that spoil such a message. good(answer); None: there is none, and the wire stays."""
        for d in datagrams:
            self.wire.send(d, fds)
        got = self.wire.next(seconds * WAIT_FACTOR if good else 0.5)
        ok = got != "ended" if good is None else got not in ("ended", None) and good(got)
        taken.add((self.rows.seat, kind_of(datagrams[-1])))
        self.bed.t.ok(ok, "%s: %s is taken" % (self.rows.seat, name), repr(got),
                      "" if got in ("ended", None) else repr(got[1].data))
        return got

    def breaks(self, name, *datagrams, fds=()):
        self.spoils(name, datagrams)
        for d in datagrams:
            self.wire.send(d, fds)
        ended = self.wire.ended(4 * WAIT_FACTOR)
        self.rows.row(name, ended, "the wire did not end")
        if ended:
            self.heal()


SOCKADDR_IN = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(9), bytes([127, 0, 0, 1]))


def calls_of_all(may=()):
    """[(name, call, args)] that no confined role has any use for; may: those that this one has."""
    path = b"/etc/passwd\0"
    rows = [
        ("runs a program", "execve", (b"/bin/true\0", 0, 0)),
        ("makes a process", "clone3", (0, 0)),
        ("opens a socket", "socket", (socket.AF_INET, socket.SOCK_STREAM, 0)),
        ("opens a packet socket", "socket", (socket.AF_PACKET, socket.SOCK_RAW, 0)),
        ("opens a netlink socket", "socket", (socket.AF_NETLINK, socket.SOCK_RAW, 12)),
        ("connects what it has", "connect", (CONTROL, SOCKADDR_IN, 16)),
        ("connects by MSG_FASTOPEN", "sendto", (CONTROL, b"x", 1, 0x20000000, SOCKADDR_IN, 16)),
        ("binds what it has", "bind", (CONTROL, SOCKADDR_IN, 16)),
        ("listens", "listen", (CONTROL, 1)),
        ("opens a file", "openat", (AT_FDCWD, path, os.O_RDONLY, 0)),
        ("makes a file", "openat", (AT_FDCWD, b"/tmp/durward-seat\0", os.O_CREAT | os.O_WRONLY, 0o600)),
        ("makes a link", "symlinkat", (path, AT_FDCWD, b"/tmp/durward-seat\0")),
        ("makes a device", "mknodat", (AT_FDCWD, b"/tmp/durward-seat\0", 0o20600, 0x103)),
        ("looks into its parent by ptrace", "ptrace", (16, os.getpid(), 0, 0)),
        ("reads another process", "process_vm_readv", (os.getpid(), b"\0" * 16, 1, b"\0" * 16, 1, 0)),
        ("takes another's descriptor", "pidfd_open", (os.getpid(), 0)),
        ("signals another", "kill", (os.getpid(), 0)),
        ("signals another's thread", "tgkill", (os.getpid(), os.getpid(), 0)),
        ("makes itself root", "setuid", (0,)),
        ("mounts", "mount", (b"none\0", b"/tmp\0", b"tmpfs\0", 0, 0)),
        ("makes a user namespace", "unshare", (0x10000000,)),
        ("enters a namespace", "setns", (CONTROL, 0)),
        ("loads a BPF program", "bpf", (0, 0, 0)),
        ("makes an io_uring", "io_uring_setup", (1, bytes(120))),
        ("makes executable memory", "mmap", (0, 4096, 7, 0x22, -1, 0)),
        ("makes memory executable", "mprotect", (0, 4096, 5)),
        ("asks for a key ring", "keyctl", (0, -3, 0)),
        ("counts events of others", "perf_event_open", (bytes(120), -1, 0, -1, 0)),
        ("handles its own faults", "userfaultfd", (0,)),
        ("opens by handle", "open_by_handle_at", (AT_FDCWD, bytes(16), 0)),
        ("changes a file's mode", "fchmodat", (AT_FDCWD, path, 0o777)),
        ("makes shared memory", "shmget", (0, 4096, 0o1600)),
        ("changes its personality", "personality", (0x0040000,)),
        ("lets others trace it", "prctl", (4, 1, 0, 0, 0)),
    ]
    return [r for r in rows if r[0] not in may]
