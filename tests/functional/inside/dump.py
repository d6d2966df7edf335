#!/usr/bin/python3
"""Runs inside the sandbox: writes everything that can be read here to stdout, framed, so that the
outside can search it. The secret itself is not in here, and not in any argument.

Frames: u32 length of the name, u64 length of a piece, name, piece; several pieces of one name
follow each other. argv: seconds since 1970 when the secret was made, and what is read of files that were
last changed before the secret existed (they cannot contain it; the outside counts those not read):
"1/1" all, "3/8" every eighth, beginning with the third, "new" up to a budget."""
import os
import stat
import struct
import sys

BIRTH = float(sys.argv[1])
SHARE, OF = (int(n) for n in sys.argv[2].split("/")) if "/" in sys.argv[2] else (0, 0)
OLD_BUDGET_FILES = 3000
OLD_BUDGET_BYTES = 200 << 20
PIECE = 1 << 20
FIRST = 1 << 16  # most files are smaller, and to make room for more takes longer than to read them
NEVER_ENDS = ("/proc/kmsg", "/proc/kcore", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches")

out = os.fdopen(1, "wb", buffering=PIECE)
seen = set()
old = [0, 0, 0]  # read: how many, bytes; not read


def piece(name, data):
    name = name.encode("utf-8", "surrogateescape")
    out.write(struct.pack(">IQ", len(name), len(data)))
    out.write(name)
    out.write(data)


def read_file(path, limit=None):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
    except OSError:
        return 0
    total = 0
    try:
        while limit is None or total < limit:
            asked = PIECE if total else FIRST
            data = os.read(fd, asked)
            if not data:
                break
            piece(path, data)
            total += len(data)
            if limit is None and len(data) < asked:
                break  # a file on a disk ends here; one of /proc says so by itself
    except OSError:
        pass
    finally:
        os.close(fd)
    if total == 0:
        piece(path, b"")
    return total


def visit(path, in_proc):
    try:
        st = os.lstat(path)
    except OSError:
        return
    if stat.S_ISLNK(st.st_mode):
        try:
            piece(path, os.readlink(path).encode("utf-8", "surrogateescape"))
        except OSError:
            pass
        return
    if not stat.S_ISREG(st.st_mode):
        return
    if not in_proc:
        key = (st.st_dev, st.st_ino)
        if key in seen:
            return
        seen.add(key)
        if st.st_ctime < BIRTH - 60:
            whole = (old[0] + old[2] + SHARE) % OF == 0 if OF else \
                old[0] < OLD_BUDGET_FILES and old[1] + st.st_size <= OLD_BUDGET_BYTES
            if not whole:
                old[2] += 1
                return
            old[0] += 1
            old[1] += st.st_size
    read_file(path, 1 << 24 if in_proc else None)


def walk(top):
    for folder, folders, files in os.walk(top, followlinks=False):
        in_proc = folder == "/proc" or folder.startswith("/proc/")
        if in_proc:
            folders[:] = [d for d in folders if d != "task"]
        for name in files:
            path = os.path.join(folder, name)
            base = os.path.basename(path)
            if in_proc and (path in NEVER_ENDS or base in ("mem", "pagemap", "clear_refs")):
                continue
            if base == "trace_pipe":
                continue
            visit(path, in_proc)


def memory(pid):
    """Every readable mapping of one process."""
    try:
        with open("/proc/%s/maps" % pid) as f:
            lines = f.readlines()
        fd = os.open("/proc/%s/mem" % pid, os.O_RDONLY)
    except OSError:
        return
    for line in lines:
        where, rights = line.split()[:2]
        if not rights.startswith("r"):
            continue
        at, end = (int(x, 16) for x in where.split("-"))
        while at < end:
            try:
                data = os.pread(fd, min(PIECE, end - at), at)
            except (OSError, OverflowError):
                break
            if not data:
                break
            piece("/proc/%s/mem" % pid, data)
            at += len(data)
    os.close(fd)


for key, value in os.environb.items():
    piece("env:" + key.decode("utf-8", "replace"), value)
walk("/")
for pid in os.listdir("/proc"):
    if pid.isdigit():
        memory(pid)
piece("count:older-than-the-secret", str(old[2]).encode())
out.flush()
