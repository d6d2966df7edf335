"""What a daemon holds of the host's: processes, descriptors, mounts, network namespaces, control groups, files
of sandboxes, memory. Taken before and after, it shows what was leaked."""
import ctypes
import fcntl
import os
import stat

from . import cgroups, tap

SIOCGSKNS, PIDFD_OPEN, PIDFD_GETFD = 0x894C, 434, 438
_libc = ctypes.CDLL(None, use_errno=True)


def role_of(pid, text):
    if text.startswith("durward: "):
        return text.split()[1]
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return "gone"


def everybody(root):
    """[(pid, role or name)] of the daemon and everything below it."""
    return [(root, "parent")] + [(pid, role_of(pid, text)) for pid, text in tap.descendants(root)]


def _inode(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _sockets_netns(pid, number):
    """The network namespace of another's socket: what keeps it alive when no process is in it."""
    pidfd = _libc.syscall(PIDFD_OPEN, pid, 0)
    if pidfd < 0:
        return None
    got = _libc.syscall(PIDFD_GETFD, pidfd, number, 0)
    os.close(pidfd)
    if got < 0:
        return None
    try:
        ns = fcntl.ioctl(got, SIOCGSKNS)
        inode = os.fstat(ns).st_ino
        os.close(ns)
        return inode
    except OSError:
        return None
    finally:
        os.close(got)


def netns(people):
    """Network namespaces that a process is in, or a descriptor holds."""
    found = set()
    for pid, _ in people:
        found.add(_inode("/proc/%d/ns/net" % pid))
        folder = "/proc/%d/fd" % pid
        try:
            numbers = os.listdir(folder)
        except OSError:
            continue
        for n in numbers:
            try:
                st = os.stat(os.path.join(folder, n))
                name = os.readlink(os.path.join(folder, n))
            except OSError:
                continue
            if stat.S_ISSOCK(st.st_mode):
                found.add(_sockets_netns(pid, int(n)))
            elif name.startswith("net:"):
                found.add(st.st_ino)
    return found - {None}


def descriptors(people):
    """{role: how many}, all processes of a role together."""
    found = {}
    for pid, role in people:
        try:
            found[role] = found.get(role, 0) + len(os.listdir("/proc/%d/fd" % pid))
        except OSError:
            continue
    return found


def _mountinfo(pid):
    """[(device, root, where, what it is)]"""
    try:
        with open("/proc/%s/mountinfo" % pid) as f:
            rows = [line.split() for line in f]
    except OSError:
        return []
    return [(r[2], r[3], r[4], " ".join(r[r.index("-") + 1:][:2])) for r in rows]


def foreign_mounts(folder):
    """What is mounted in our own mount namespace, which others on this host use too, but below the daemon's folder."""
    return {m for m in _mountinfo("self") if not m[2].startswith(folder + "/")}


def mounts(people, folder):
    """["role: where (what)"] of every mount namespace in which one of them is, and of ours below the daemon's folder.
    A copy of one of ours is not theirs: each new mount namespace has them, as many as there are just then."""
    seen, foreign = {_inode("/proc/self/ns/mnt")}, foreign_mounts(folder)
    found = ["host: %s (%s)" % m[2:] for m in _mountinfo("self") if m not in foreign]
    for pid, role in people:
        ns = _inode("/proc/%d/ns/mnt" % pid)
        if ns is None or ns in seen:
            continue
        seen.add(ns)
        found += ["%s: %s (%s)" % ((role,) + m[2:]) for m in _mountinfo(pid) if m not in foreign]
    return sorted(found)


def folders(state):
    """Names below the daemon's state that are a sandbox's or a snapshot's."""
    found = []
    for top in ("sandboxes", "snapshots", "docker", "layers"):
        where = os.path.join(state, top)
        if os.path.isdir(where):
            found += ["%s/%s" % (top, x) for x in os.listdir(where)]
    return sorted(found)


def groups():
    """Control groups of sandboxes."""
    return sorted(os.path.basename(g) for g in cgroups.every())


def anonymous(people):
    """{role: KiB}, of the roles that are there once."""
    found = {}
    for pid, role in people:
        try:
            with open("/proc/%d/status" % pid) as f:
                kib = [int(x.split()[1]) for x in f if x.startswith("RssAnon")]
        except OSError:
            continue
        found[role] = found.get(role, 0) + (kib[0] if kib else 0)
    return found


def pss(people):
    """KiB of all of them together: pages that several share are counted once."""
    n = 0
    for pid, _ in people:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                n += sum(int(x.split()[1]) for x in f if x.startswith("Pss:"))
        except OSError:
            continue
    return n


def all_of(root, state):
    """Everything but memory, comparable with ==."""
    people = everybody(root)
    roles = {}
    for _, role in people:
        roles[role] = roles.get(role, 0) + 1
    return {"processes": roles, "descriptors": descriptors(people), "mounts": mounts(people, os.path.dirname(state)),
            "netns": len(netns(people)), "folders": folders(state)}
