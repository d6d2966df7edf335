"""A process as whoever conquered it would use it: system calls made from inside it, with its filter,
its Landlock, its uid and its descriptors. Needs root (ptrace) and x86-64."""
import ctypes
import errno
import os
import platform
import struct

from . import durward

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SINGLESTEP, GETREGS, SETREGS, DETACH, SEIZE, INTERRUPT = 9, 12, 13, 17, 0x4206, 0x4207
WALL = 0x40000000
REGS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
        "ds es fs gs").split()
CALLS = {"write": 1, "open": 2, "close": 3, "fstat": 5, "mmap": 9, "ioctl": 16, "sendmsg": 46, "dup2": 33, "socket": 41,
         "connect": 42, "sendto": 44, "bind": 49, "listen": 50, "socketpair": 53, "setsockopt": 54, "getsockopt": 55,
         "clone": 56, "execve": 59, "kill": 62, "fcntl": 72, "truncate": 76, "rename": 82, "mkdir": 83, "unlink": 87,
         "symlink": 88, "ptrace": 101, "prctl": 157, "tgkill": 234, "openat": 257, "mkdirat": 258, "unlinkat": 263,
         "renameat": 264, "process_vm_readv": 310, "bpf": 321, "pidfd_send_signal": 424, "pidfd_open": 434,
         "pidfd_getfd": 438, "setns": 308, "unshare": 272, "io_uring_setup": 425}
SCRATCH = 16 * 1024  # below the stack's end, and below what the x86-64 ABI lets a function use there


def why_not():
    """Why this machine cannot, or None."""
    if platform.machine() != "x86_64":
        return "system calls are made from inside another process on x86-64 only"
    return None if os.geteuid() == 0 else "to sit in another's process needs root"


def _ptrace(request, pid, data=None):
    if LIBC.ptrace(request, pid, None, data) < 0:
        e = ctypes.get_errno()
        raise OSError(e, "ptrace(%d, %d): %s" % (request, pid, os.strerror(e)))


class Conquered:
    """with Conquered(pid) as c: c("openat", AT_FDCWD, b"/etc/passwd\\0", os.O_RDONLY, 0) -> result or -errno.
    Bytes are laid into its stack and their address is passed. It waits meanwhile and then goes on."""

    def __init__(self, pid):
        self.pid = pid

    def _wait(self):
        _, status = os.waitpid(self.pid, WALL)
        if not os.WIFSTOPPED(status):
            raise RuntimeError("process %d ended in our hands (status %x)" % (self.pid, status))

    def _get(self):
        room = ctypes.create_string_buffer(8 * len(REGS))
        _ptrace(GETREGS, self.pid, room)
        return dict(zip(REGS, struct.unpack("<%dQ" % len(REGS), room.raw)))

    def _set(self, regs):
        room = ctypes.create_string_buffer(struct.pack("<%dQ" % len(REGS), *[regs[r] for r in REGS]))
        _ptrace(SETREGS, self.pid, room)

    def _instruction(self):
        """Where in its memory a system call is made."""
        with open("/proc/%d/maps" % self.pid) as f:
            code = [line.split()[0].split("-") for line in f if " r-xp " in line and "/libc" in line]
        for start, end in code:
            self.memory.seek(int(start, 16))
            at = self.memory.read(int(end, 16) - int(start, 16)).find(b"\x0f\x05")
            if at >= 0:
                return int(start, 16) + at
        raise RuntimeError("process %d: no C library in it" % self.pid)

    def __enter__(self):
        _ptrace(SEIZE, self.pid)
        _ptrace(INTERRUPT, self.pid)
        self._wait()
        self.memory = open("/proc/%d/mem" % self.pid, "r+b", buffering=0)
        self.before = self._get()
        self.at = self._instruction()
        return self

    def __exit__(self, *_):
        self._set(self.before)
        self.memory.close()
        _ptrace(DETACH, self.pid)

    def __call__(self, name, *args):
        where = (self.before["rsp"] - SCRATCH) & ~15
        given, self.laid = [], []
        for a in args:
            if isinstance(a, bytes):
                where -= (len(a) + 15) & ~15
                self.memory.seek(where)
                self.memory.write(a)
                self.laid.append((where, len(a)))
                a = where
            given.append(a & (1 << 64) - 1)
        regs = dict(self.before, rip=self.at, rax=CALLS[name], orig_rax=(1 << 64) - 1)
        regs.update(zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), given))
        self._set(regs)
        _ptrace(SINGLESTEP, self.pid)
        self._wait()
        got = self._get()["rax"]
        return got - (1 << 64) if got >= 1 << 63 else got

    def back(self, i):
        """What now lies where the i-th bytes of the last call were."""
        where, n = self.laid[i]
        self.memory.seek(where)
        return self.memory.read(n)

    def descriptors(self):
        """{number: what /proc calls it}"""
        folder = "/proc/%d/fd" % self.pid
        return {int(n): os.readlink(os.path.join(folder, n)) for n in os.listdir(folder)}


def landlock():
    """The kernel's version of it; 0: none, or roles that are not put into it."""
    abi = LIBC.syscall(444, None, ctypes.c_size_t(0), 1)
    return abi if abi > 0 and not durward.sanitized() else 0


def said(result):
    """EPERM, or what came of it."""
    return errno.errorcode.get(-result, str(result)) if result < 0 else str(result)
