"""The build whose calls fail and whose wall clock can be put (tests/faults/shim.c), laid out in scratch beside
the page that says which and where."""
import mmap
import os
import shutil
import struct

from . import durward, tap

PLAN = struct.Struct("6Iq")
CLOCK = struct.Struct("q")
CLOCK_AT = 24


class Plan:
    """The page that the program under test shares with us."""

    def __init__(self, path):
        with open(path, "wb") as f:
            f.write(bytes(4096))
        os.chmod(path, 0o666)
        self.file = open(path, "r+b")
        self.page = mmap.mmap(self.file.fileno(), 4096)

    def arm(self, pid, memory, at):
        """The call number `at` of this process fails: an allocation, else a system call."""
        self.page[:CLOCK_AT] = bytes(CLOCK_AT)
        self.page[4:CLOCK_AT] = struct.pack("5I", memory, not memory, at, 0, 0)
        self.page[:4] = struct.pack("I", pid)

    def disarm(self):
        """-> (calls counted, whether one failed)"""
        self.page[:4] = struct.pack("I", 0)
        _, _, _, _, count, fired, _ = PLAN.unpack(self.page[:PLAN.size])
        return count, fired != 0

    def clock(self, seconds):
        """The wall clock of every process stands so far before the right time (behind: negative)."""
        self.page[CLOCK_AT:CLOCK_AT + CLOCK.size] = CLOCK.pack(seconds)


def stage(t):
    """DURWARD becomes that build -> Plan; Skip where there is none."""
    programs = os.path.join(os.path.dirname(os.environ.get("DURWARD_READINGS", "/nonexistent/x")), "..", "faults")
    if not os.access(os.path.join(programs, "gate"), os.X_OK):
        raise tap.Skip("the build with failing calls is not there (make tests/faults/gate)")
    if durward.sanitized():
        raise tap.Skip("a sanitizer build has its own allocator: the shim is empty")
    staged = os.path.dirname(os.path.dirname(durward.program()))
    for part in ("bin", "libexec"):
        shutil.copytree(os.path.join(staged, part), t.path("program", part))
    folder = t.path("program", "libexec", "durward")
    for name in os.listdir(folder):
        if os.access(os.path.join(programs, name), os.X_OK):
            shutil.copy(os.path.join(programs, name), os.path.join(folder, name))
    os.environ["DURWARD"] = t.path("program", "bin", "durward")
    return Plan(os.path.join(folder, "faults.plan"))
