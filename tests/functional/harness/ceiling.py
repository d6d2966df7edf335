"""What ends first when there are ever more sandboxes: what each takes of a daemon's host, measured between two numbers of
them, held against the limits of this host."""
import os
import resource

from . import held

FILES_MOST = 65536  # lib/proc.c: what a daemon raises its own limit to, where it may
FILES_KEPT = 64 + 16  # proxy/parent/parent_room.c: for those that run, and on their way to a gate
SANDBOXES = 4096  # controller/sandbox/managed_sandbox.h: of one daemon
NAMESPACES = ("user", "net", "mnt", "pid", "ipc", "uts", "cgroup")
ONE_OF = ("parent", "builder", "controller", "logger", "dialer", "signer", "vault")  # roles that a daemon has once


def number(path):
    """What a file of the kernel's says; None: no such limit here."""
    try:
        with open(path) as f:
            text = f.read().split()[0]
    except (OSError, IndexError):
        return None
    return int(text) if text.isdigit() else None


def _open_files(pid):
    try:
        return len(os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return 0


def taken(root, sandboxes=0):
    """{(what, whose): how much} of a daemon with so many sandboxes and all that is below it. Memory in KiB."""
    people = held.everybody(root)
    got = {("sandboxes of a daemon", ""): sandboxes, ("processes", ""): len(people), ("memory", ""): held.pss(people),
           ("open files of all", ""): sum(_open_files(pid) for pid, _ in people)}
    once = {}
    for pid, role in people:
        once.setdefault(role, []).append(pid)
    for role in ONE_OF:
        if role in once:  # what the builder starts for one sandbox is named as the builder is: the oldest is the role
            got["open files", role] = _open_files(min(once[role]))
    for kind in NAMESPACES:
        found = set()
        for pid, _ in people:
            try:
                found.add(os.stat("/proc/%d/ns/%s" % (pid, kind)).st_ino)
            except OSError:
                continue
        got["namespaces", kind] = len(found)
    return got


def limits(files=None):
    """{(what, whose): how much there is}. files: of a process, where the daemon's limit is not ours."""
    files = min(files or resource.getrlimit(resource.RLIMIT_NOFILE)[1], FILES_MOST)
    numbers = [n for n in (number("/proc/sys/kernel/pid_max"), number("/proc/sys/kernel/threads-max")) if n]
    with open("/proc/meminfo") as f:
        memory = next(int(line.split()[1]) for line in f if line.startswith("MemTotal"))
    found = {("sandboxes of a daemon", ""): SANDBOXES, ("processes", ""): min(numbers), ("memory", ""): memory,
             ("open files of all", ""): number("/proc/sys/fs/file-max")}
    for role in ONE_OF:
        found["open files", role] = files
    for kind in NAMESPACES:
        found["namespaces", kind] = number("/proc/sys/user/max_%s_namespaces" % kind)
    return {what: n for what, n in found.items() if n is not None}


class End:
    """At how many sandboxes one of the limits is reached. none: what is taken without any; each: what one more takes."""

    def __init__(self, what, none, each, most):
        self.what, self.none, self.each, self.most = what, none, each, most
        if what == ("open files", "parent"):  # it lets one in where there is room for another, twice while that is made
            self.at = int((most - FILES_KEPT - 2 * each + 1 - none) // each) + 1
        else:
            self.at = int((most - none) // each)

    def needs(self, n):
        return self.none + self.each * n


def ends(few, many, most):
    """few, many: (how many sandboxes, what was taken()). -> [End], what comes first being first."""
    found = []
    for what, limit in most.items():
        each = (many[1].get(what, 0) - few[1].get(what, 0)) / (many[0] - few[0])
        if each >= 0.05:  # less is chance
            found.append(End(what, few[1][what] - each * few[0], each, limit))
    return sorted(found, key=lambda e: e.at)
