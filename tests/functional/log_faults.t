#!/usr/bin/python3 -B
"""F6, F12: Nothing is lost, and nothing goes out unrecorded, for `written` and for `synced`: a disk that gives
EIO, is full, writes half, does not sync, hangs (a file system of our own, over FUSE); a log directory
that is removed; each role killed under load. Requests are 503 meanwhile, and it recovers by itself."""
import collections
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, durward, scene, tap  # noqa: E402

SOURCE = os.path.join(durward.SUITE, "peers", "faulty_fs.c")
ROLES = ("gate", "injector", "dialer", "logger")
LONG = "x" * 1900  # fills journals sooner
NAMES = {"e": "EIO", "n": "ENOSPC", "s": "half a write, then ENOSPC", "f": "EIO of fsync",
         "h": "a hung disk"}


def compiled(t):
    """The file system's program."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True,
                           text=True)
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or flags.returncode != 0:
        raise tap.Skip("a faulty disk needs root, /dev/fuse and libfuse3-dev")
    program = t.path("faulty_fs")
    r = subprocess.run(["cc", "-O1", "-o", program, SOURCE] + flags.stdout.split(),
                       capture_output=True, text=True)
    if r.returncode != 0:
        raise RuntimeError(r.stderr)
    return program


class Disk:
    def __init__(self, t, program, where, cached):
        self.control = t.path("weather" + os.path.basename(os.path.dirname(where)))
        with open(self.control, "wb") as f:
            f.write(b"o" + bytes(4095))
        self.backing = t.mkdir("backing" + os.path.basename(os.path.dirname(where)), 0o700)
        self.process = t.popen([program, self.backing, where, self.control] +
                               (["cached"] if cached else []), stderr=subprocess.DEVNULL)
        t.cleanup(lambda: subprocess.run(["umount", "-l", where], stderr=subprocess.DEVNULL))
        t.cleanup(lambda: self.be("o"))
        if not tap.wait_for(lambda: os.path.ismount(where), 5):
            raise tap.Skip("FUSE cannot be mounted here")

    def be(self, weather):
        with open(self.control, "r+b") as f:
            f.write(weather.encode())


class Bed:
    """A daemon, its two kinds of origins, and everything that was asked and answered."""

    def __init__(self, t, name, durability):
        self.t, self.s = t, scene.Scene(t, name=name)
        self.d = self.s.d
        self.d.audit["durability"] = durability
        self.n, self.asked, self.lock = 0, [], threading.Lock()
        reply = self.echo()
        self.s.plain.handler = reply
        self.s.github.handler = reply
        address = self.s.listener()
        self.address = address

    def start(self):
        self.d.serve()
        self.gate = self.s.gate(self.address, timeout=6)

    @staticmethod
    def echo():
        def handler(q, c):
            time.sleep(0.002)
            c.reply(q, 200, b"r" * (q.body_len * 3 % 5000))
        return handler

    def ask(self, kind):
        """kind: plain, github, denied. -> status"""
        with self.lock:
            self.n += 1
            n = self.n
        host, path = {"plain": ("deps.example.com", "/w/%d/%s"),
                      "github": ("api.github.com", "/repos/acme/w/%d/%s"),
                      "denied": ("api.github.com", "/gists/%d/%s")}[kind]
        path, body = path % (n, LONG), b"b" * (n * 37 % 3000 + 1)
        row = {"kind": kind, "path": path, "sent": len(body), "status": 0, "got": None}
        try:
            r = self.gate.get(host, path, method="POST", body=body)
            row.update(status=r.status, code=r.code, id=r.id,
                       got=None if r.truncated else len(r.body))
        except (OSError, client.Ended, ValueError):
            pass
        self.asked.append(row)
        return row["status"], row.get("code")

    def at_origins(self):
        return len(self.s.github.requests) + len(self.s.plain.requests)

    def all_refused(self):
        return all(self.ask(k)[0] in (503, 0) for k in ("plain", "github", "denied"))

    def served(self):
        return [self.ask(k)[0] for k in ("plain", "github", "denied")] == [200, 200, 403]

    # ---- what must be true at the end ----

    def account(self, what, killed=False):
        t, d = self.t, self.d

        def closed():
            """All records, once what has begun has ended: the last end is written with its turn."""
            seen = d.records()
            begun = [r["id"] for r in seen if r["kind"] == "admitted"]
            return seen if all(any(e["kind"] in ("completed", "aborted") and e["id"] == i for e in seen)
                               for i in begun) else None
        records = tap.wait_for(closed, 5, 0.2) or d.records()
        begun = {r["id"]: r for r in records if r["kind"] == "admitted"}
        ends = collections.defaultdict(list)
        for r in records:
            if r["kind"] in ("completed", "aborted"):
                ends[r["id"]].append(r)
        t.ok(set(begun) == set(ends) and all(len(x) == 1 for x in ends.values()),
             "%s: each of %d admitted ids has one end" % (what, len(begun)),
             sorted(set(begun) ^ set(ends))[:5])
        by_path = collections.defaultdict(list)
        for r in begun.values():
            by_path[r["path"]].append(r)
        unlogged = [q.path[:40] for o in (self.s.github, self.s.plain) for q in o.requests
                    if not any(r["path"] == q.path and r["time"] <= stamp(q.time)
                               for r in by_path[q.path])]
        t.ok(not unlogged, "%s: each of %d requests at the origins was admitted before" % (
            what, self.at_origins()), unlogged[:5])
        ids = {r["id"] for r in records if r["kind"] == "denied"}
        lost = [a["path"][:40] for a in self.asked if a["status"] == 403 and a["id"] not in ids]
        lost += [a["path"][:40] for a in self.asked if a["status"] == 200 and not by_path[a["path"]]]
        t.ok(not lost, "%s: of %d answers none is without its record" % (
            what, sum(a["status"] in (200, 403) for a in self.asked)), lost[:5])
        self.bytes(what, begun, ends, killed)

    def bytes(self, what, begun, ends, killed):
        t = self.t
        came = {q.path: q.body_len for o in (self.s.github, self.s.plain) for q in o.requests}
        had = {a["path"]: a for a in self.asked}
        completed = unknown = 0
        wrong = []
        for i, r in begun.items():
            for e in ends[i]:
                a = had[r["path"]]
                if e["kind"] == "completed":
                    completed += 1
                    if e.get("bytes_up") != came.get(r["path"]) or e.get("bytes_up") != a["sent"] or (
                            a["status"] == 200 and e.get("bytes_down") != a["got"]):
                        wrong.append((e, came.get(r["path"]), a["sent"], a["got"]))
                elif e.get("code") == "writer_gone":
                    unknown += 1
                    if e.get("bytes") != "unknown" or "bytes_up" in e or "bytes_down" in e:
                        wrong.append(e)
        t.ok(not wrong and completed > 15, "%s: bytes of %d completed ones are the origins' and "
             "the clients'; %d of dead processes say that they are unknown" % (
                 what, completed, unknown), wrong[:3])
        if killed:
            t.ok(unknown > 0, "%s: some died under way" % what)

    def end(self, what):
        self.t.eq(self.d.stop(), 0, what + ": the daemon ends well")
        v = self.d.command("audit", "verify", self.d.audit_dir)
        self.t.ok(v.returncode == 0, what + ": the log verifies", v.stdout, v.stderr)


def stamp(seconds):
    """As records have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%09dZ" % (
        (seconds % 1) * 1e9)


def bad_weather(t, bed, disk, weather, what):
    what = "%s, %s" % (what, NAMES[weather])
    disk.be(weather)
    start = time.monotonic()
    t.ok(tap.wait_for(bed.all_refused, 90, 0.001), what + ": requests become 503")
    took = time.monotonic() - start
    before, seen = bed.at_origins(), len(bed.asked)
    for _ in range(1 if weather == "h" else 3):
        bed.all_refused()
    last = bed.asked[seen:]
    t.ok(all(a["status"] == 503 for a in last) and bed.at_origins() == before,
         what + ": and stay so, nothing reaches an origin",
         [(a["kind"], a["status"], a.get("code")) for a in last if a["status"] != 503],
         "%d at the origins, then %d" % (before, bed.at_origins()))
    disk.be("o")
    start = time.monotonic()
    t.ok(tap.wait_for(bed.served, 20, 0.05), what + ": it recovers")
    t.diag("%s: refused after %.1f s, back %.1f s after the disk" % (
        what, took, time.monotonic() - start))


def disks(t, program, durability, cached, faults):
    what = durability + (", cached" if cached else "")
    bed = Bed(t, "d-%s-%d" % (durability, cached), durability)
    disk = Disk(t, program, bed.d.audit_dir, cached)
    bed.start()
    t.ok(bed.served(), what + ": served")
    for weather in faults:
        bad_weather(t, bed, disk, weather, what)
    for _ in range(8):
        bed.served()
    bed.account(what)
    bed.end(what)


def killed(t, durability):
    """Each role in turn, with requests under way; then its directory is removed."""
    bed = Bed(t, "k-" + durability, durability)
    bed.start()
    stop = threading.Event()

    def work(i):
        while not stop.is_set():
            bed.ask(("plain", "github", "denied")[i % 3])
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(6)]
    slow = lambda q, c: (time.sleep(0.03), c.reply(q, 200, b"r" * (q.body_len * 3 % 5000)))  # noqa: E731
    bed.s.plain.handler = bed.s.github.handler = slow
    [x.start() for x in threads]
    for role in ROLES:
        n = sum(a["status"] == 200 for a in bed.asked)
        tap.wait_for(lambda: sum(a["status"] == 200 for a in bed.asked) > n + 10, 10)
        pids = [p for p, r in bed.d.roles() if r == role]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        n = sum(a["status"] == 200 for a in bed.asked)
        t.ok(pids and tap.wait_for(
            lambda: sum(a["status"] == 200 for a in bed.asked) > n + 10, 10),
            "%s: %s killed, served again" % (durability, role))
    stop.set()
    [x.join(20) for x in threads]
    t.ok(tap.wait_for(bed.served, 5), durability + ": all is well again")
    bed.account(durability + ", killed", True)
    removed(t, bed, durability)


def removed(t, bed, durability):
    """What was in it is gone with it; from then on each answer is recorded, or it is 503."""
    key = t.path("key-" + durability)
    shutil.copy(os.path.join(bed.d.audit_dir, "key.pub"), key)
    shutil.rmtree(bed.d.audit_dir)
    start = time.monotonic()
    seen, before = len(bed.asked), bed.at_origins()
    t.ok(tap.wait_for(bed.served, 20, 0.05), durability + ": with its directory removed it recovers")
    t.diag("after %.1f s, %d at the origins meanwhile" % (time.monotonic() - start,
                                                         bed.at_origins() - before))
    for _ in range(5):
        bed.served()
    asked = bed.asked[seen:]
    paths = collections.Counter(r.get("path") for r in bed.d.records())
    lost = [a["path"][:30] for a in asked if a["status"] in (200, 403) and not paths[a["path"]]]
    t.ok(not lost, "%s: none of %d answers after that is without its record" % (
        durability, sum(a["status"] in (200, 403) for a in asked)), lost)
    sent = [q.path for o in (bed.s.github, bed.s.plain) for q in o.requests][:]
    t.ok(all(paths[p] for p in sent if p in {a["path"] for a in asked}),
         durability + ": and nothing at an origin is")
    t.eq(bed.d.stop(), 0, durability + ": the daemon ends well")
    v = bed.d.command("audit", "verify", bed.d.audit_dir)
    t.ok(v.returncode == 0, durability + ": the new log verifies", v.stdout, v.stderr)
    v = bed.d.command("audit", "verify", "--key", key, bed.d.audit_dir)
    t.ok(v.returncode == 1, durability + ": not with the key of the old one", v.stdout, v.stderr)


def main(t):
    program = compiled(t)
    for durability in ("written", "synced"):
        t.part(disks, t, program, durability, False,
               "ens" + ("f" if durability == "synced" else ""))
        if durability == "written" and durward.sanitized():
            t.skip("written, cached, a hung disk", "to fill a journal takes this build too long")
        else:
            t.part(disks, t, program, durability, True, "h")
        t.part(killed, t, durability)


tap.run(main, timeout=280)
