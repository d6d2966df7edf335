#!/usr/bin/python3 -B
"""Shares of the log: a sandbox that floods it with refused requests gets its share and then its rate, waits for
more, and loses no record; its neighbour's requests are all answered and recorded meanwhile. With a credential, and
so in one injector, too. The threshold `log_bytes` ends who goes on. With little room on the disk the one who used most is refused
first. A role that writes what it may not into its journal is ended and another takes its place."""
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BURST, MINUTE, SECONDS = 4000000, 6000000, 6
HELD, KINDS = 1 << 20, {"denied", "admitted", "completed", "aborted"}


def make(t, name="d"):
    """A daemon whose shares are small, and two sandboxes."""
    s = scene.Scene(t, name=name)
    s.d.audit["share"] = {"burst": "%dKB" % (BURST // 1000), "per_minute": "%dKB" % (MINUTE // 1000)}
    return s


def boxes(s, n):
    c = api.Api(s.d.socket, timeout=120)
    try:
        ids = [c.create(policy="coder")["id"] for _ in range(n)]
    except api.Refused as e:
        raise tap.Skip("no sandbox can be made here: %s" % e)
    with open(os.path.join(HERE, "inside", "log_noise.py"), "rb") as f:
        program = f.read()
    for sid in ids:
        c.write(sid, "/tmp/log_noise.py", program)
    return c, ids


def noise(c, sid, what, host, path, seconds=SECONDS):
    out = c.sh(sid, "/usr/bin/python3 /tmp/log_noise.py %s %g %s 443 %s" % (what, seconds, host, path),
               timeout=int(seconds) + 60)
    try:
        return json.loads(out[1])
    except ValueError:
        return {"said": out}


def both(s, ids, flood, steady):
    """Both at once -> what each said."""
    said = {}

    def one(i, args):
        c = api.Api(s.d.socket, timeout=120)
        said[i] = noise(c, ids[i], *args)
        c.close()
    threads = [threading.Thread(target=one, args=x) for x in enumerate((flood, steady))]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    return said[0], said[1]


def written(d, sid):
    """Bytes of the log that are that sandbox's, and its records by kind."""
    n, kinds = 0, {}
    mark = ('"sandbox":"%s"' % sid).encode()
    d.settle()
    for path in d.audit_files():
        with open(path, "rb") as f:
            for line in f:
                if mark in line:
                    n += len(line)
                    kind = json.loads(line)["kind"]
                    kinds[kind] = kinds.get(kind, 0) + 1
    return n, kinds


def judge(t, s, ids, what, flood, steady, code, kind):
    begun, before = time.monotonic(), [written(s.d, i) for i in ids]
    loud, quiet = both(s, ids, flood, steady)
    spent = time.monotonic() - begun
    after = [written(s.d, i) for i in ids]
    bytes_of = [after[i][0] - before[i][0] for i in (0, 1)]
    kinds = [{k: after[i][1].get(k, 0) - before[i][1].get(k, 0) for k in KINDS} for i in (0, 1)]
    t.diag("%s: flood %s, %d bytes; neighbour %s" % (what, loud, bytes_of[0], quiet))
    t.eq({k for k in quiet if k != "slowest"}, {"200"}, what + ": all of the neighbour's requests are answered")
    t.ok(quiet.get("slowest", 9999) < 1500, what + ": and soon", str(quiet))
    t.eq((kinds[1]["admitted"], kinds[1]["completed"]), (quiet.get("200"),) * 2, what + ": and recorded")
    t.ok(bytes_of[0] > BURST / 2, what + ": the flood was one", str(bytes_of))
    t.ok(bytes_of[0] < BURST + MINUTE / 60 * (spent + 1) + 3 * HELD, what + ": it got its share, no more",
         str(bytes_of), "%.1f s" % spent)
    t.ok(loud.get(code, 0) <= kinds[0][kind] <= loud.get(code, 0) + 16, what + ": each that was answered is on record",
         str(kinds[0]))
    t.ok(s.d.records(kind="lifecycle", event="log_share_used"), what + ": the log says that it was slowed")


def corrupt(t, s, ids):
    """A gate's process that writes past its credit, and one that writes garbage, by its own descriptor."""
    for sid, what in zip(ids, ("too much", "garbage")):
        pid, fd = gate_of(s.d, sid)
        if pid is None:
            t.skip(what, "its descriptors cannot be seen here")
            continue
        before = len(s.d.records(event="journal_corrupt"))
        with open("/proc/%d/fd/%s" % (pid, fd), "ab", buffering=0) as f:
            f.write(b"\0\0\0\x20" + b"\xff" * 60 if what == "garbage" else b"\0" * (3 << 20))
        if what == "garbage":  # nobody looks before its next record
            c = api.Api(s.d.socket, timeout=60)
            noise(c, sid, "steady", scene.PLAIN, "/", 0.5)
            c.close()
        t.ok(tap.wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5, 0.02), what + ": its process is ended")
        t.ok(tap.wait_for(lambda: len(s.d.records(event="journal_corrupt")) > before, 5), what + ": it is on record")
        t.ok(tap.wait_for(lambda: gate_of(s.d, sid)[0] not in (None, pid), 10), what + ": another takes its place")
        c = api.Api(s.d.socket, timeout=60)
        t.ok(tap.wait_for(lambda: noise(c, sid, "steady", scene.PLAIN, "/", 0.2).get("200", 0) > 0, 10, 0.2),
             what + ": and serves")
        c.close()
    left = sum(os.stat(os.path.join(s.d.audit_dir, "journal", n)).st_blocks * 512
               for n in os.listdir(os.path.join(s.d.audit_dir, "journal")))
    t.ok(left < 64 << 20, "what they wrote takes no room any more", str(left))


def gate_of(d, sid):
    """-> (pid, descriptor of its journal), or (None, None)."""
    names = set()
    folder = os.path.join(d.audit_dir, "journal")
    for name in os.listdir(folder):
        try:
            with open(os.path.join(folder, name), "rb") as f:
                head = f.read(1024)
        except OSError:
            continue  # it has just been removed
        if head[:8] == b"DURWARD1" and sid.encode() in head[:12 + int.from_bytes(head[8:12], "big")]:
            names.add(name)
    for pid, role in d.roles():
        for fd in descriptors(pid) if role == "gate" else ():
            if os.path.basename(fd[1]) in names:
                return pid, fd[0]
    return None, None


def descriptors(pid):
    try:
        return [(fd, os.readlink("/proc/%d/fd/%s" % (pid, fd))) for fd in os.listdir("/proc/%d/fd" % pid)]
    except OSError:
        return []  # it has ended, or is not ours to look at


def flooding(t):
    s = make(t)
    s.d.serve()
    c, ids = boxes(s, 4)
    judge(t, s, ids[:2], "refused", ("flood", scene.GITHUB, "/gists/1"), ("steady", scene.PLAIN, "/"), "403", "denied")
    judge(t, s, ids[2:], "credentialed", ("flood", scene.GITHUB, "/repos/acme/x"), ("steady", scene.GITHUB, "/user"),
          "404", "admitted")
    corrupt(t, s, ids[2:])
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.eq(s.d.command("audit", "verify", s.d.audit_dir).returncode, 0, "the log verifies")


def ended(t):
    s = make(t, "ended")
    s.d.audit["notify"] = {"when": [{"log_bytes": "2MB", "within": "1m", "then": "kill"}]}
    s.d.serve()
    c, ids = boxes(s, 2)
    loud, quiet = both(s, ids, ("flood", scene.GITHUB, "/gists/1"), ("steady", scene.PLAIN, "/"))
    gone = tap.wait_for(lambda: api.refused(c.show, ids[0]) or c.show(ids[0])["state"] not in ("running", "ready"), 10)
    t.ok(gone, "log_bytes: who writes too much is ended", str(loud))
    t.eq({k for k in quiet if k != "slowest"}, {"200"}, "log_bytes: its neighbour is not")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


def scarce(t):
    if os.geteuid() != 0:
        t.skip("little room on the disk", "mounting a small file system needs root")
        return
    s = make(t, "scarce")
    s.d.audit["share"] = {"burst": "100MB", "per_minute": "2MB"}
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m,mode=0700", "tmpfs", s.d.audit_dir])
    if r.returncode != 0:
        t.skip("little room on the disk", "cannot mount a tmpfs")
        return
    t.cleanup(lambda: subprocess.run(["umount", "-l", s.d.audit_dir]))
    s.d.serve()
    c, ids = boxes(s, 2)
    with open(os.path.join(s.d.audit_dir, "filler"), "wb") as f:
        f.write(b"\xff" * (45 << 20))
    loud, quiet = both(s, ids, ("flood", scene.GITHUB, "/gists/1", 12), ("steady", scene.PLAIN, "/", 12))
    room = os.statvfs(s.d.audit_dir)
    t.diag("flood %s, neighbour %s, %d bytes free" % (loud, quiet, room.f_bavail * room.f_bsize))
    t.eq({k for k in quiet if k != "slowest"}, {"200"}, "little room: who used little is served to the end")
    t.ok(room.f_bavail * room.f_bsize > 1 << 20, "little room: some of it is left")
    t.ok(loud.get("503", 0) > 0, "little room: who used most waits and is refused", str(loud))
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


def main(t):
    t.part(flooding, t)
    t.part(ended, t)
    t.part(scarce, t)


tap.run(main, timeout=240)
