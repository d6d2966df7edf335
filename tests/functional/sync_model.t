#!/usr/bin/python3 -B
"""Random operations on both trees of a `durward sandbox sync`, each acknowledged by who made it, while the command, the
daemon or neither is killed; every so often all comes to rest. Then both trees are the same, each file is whole, and the
last acknowledged version of each file is there: under its name, or, if both sides changed it, one of them there and the
other kept as a conflict. DURWARD_SYNC_OPS says how many operations (`make sync-model`: 20000), DURWARD_MODEL_SEED
repeats a run."""
import json
import os
import random
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, syncing, tap  # noqa: E402

OPS = int(os.environ.get("DURWARD_SYNC_OPS", "300"))
ROUND = 50 if OPS <= 1000 else 250
NAMES = ["f%d" % i for i in range(12)] + ["d%d/f%d" % (i, k) for i in range(4) for k in range(4)] + ["d0/e/f%d" % i for i in range(3)]

# Does what its input says, one operation a line, and acknowledges each; the same program on both sides.
WORKER = r'''
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
top = sys.argv[1]

def what(v):
    return int(v.rpartition(b"end ")[2]) if v.rpartition(b"end ")[2].strip().isdigit() else -1

def renamed(a, b, flags):
    return libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), flags) == 0

def do(n, op, p, size):
    """-> the number of what it replaced, -1: nothing that is known"""
    body = (("%d " % n) * size)[:size * 8].encode() + b"end %d\n" % n
    q = os.path.join(os.path.dirname(p), "tmp~%d" % n)
    if op == "delete":
        os.rename(p, q)
        was = what(open(q, "rb").read())
        os.unlink(q)
        return was
    os.makedirs(os.path.dirname(p), exist_ok=True)
    if op == "place":
        with open(p, "a+b") as f:
            f.seek(0)
            was = what(f.read())
            f.truncate(0)
            f.write(body[:len(body) // 2]); f.flush(); f.write(body[len(body) // 2:])
        return was
    with open(q, "wb") as f:
        f.write(body)
    while True:
        if renamed(q, p, 2):
            was = what(open(q, "rb").read())
            os.unlink(q)
            return was
        if renamed(q, p, 1):
            return -1

for line in sys.stdin:
    n, op, path, size = json.loads(line)
    try:
        print(n, 1, do(n, op, os.path.join(top, path), size), flush=True)
    except OSError as e:
        print(n, 0, -1, flush=True)
'''


def content(n, size):
    return (("%d " % n) * size)[:size * 8].encode() + b"end %d\n" % n


def told(line):
    """What an operation replaced, by number; -1: nothing. False: it could not be done."""
    words = line.split()
    return int(words[2]) if words[1:2] == [b"1"] else False


class Here:
    def __init__(self, t, top):
        self.top = top
        self.p = t.popen([sys.executable, "-c", WORKER, top], stdin=-1, stdout=-1)

    def do(self, op):
        self.p.stdin.write(json.dumps(op).encode() + b"\n")
        self.p.stdin.flush()
        return told(self.p.stdout.readline())


class Inside:
    """Each call a command of its own, for the daemon is killed now and then; None: nobody knows whether it was done."""

    def __init__(self, c, sid):
        self.c, self.sid = c, sid

    def do(self, op):
        try:
            code, out = self.c.sh(self.sid, "echo '%s' | /usr/bin/python3 /tmp/w.py /workspace"
                                  % json.dumps(op))
            return told(out)
        except (OSError, api.Refused, ValueError):
            self.c.close()
            return None


def trees(top, c, sid):
    keep = lambda rows: {k: v for k, v in rows.items() if ".conflict-" not in k and ".durward-" not in k and "tmp~" not in k}  # noqa: E731
    return keep(syncing.here(top)), keep(syncing.inside(c, sid))


def rest(top, c, sid, seconds=60):
    last = None

    def same():
        nonlocal last
        try:
            last = trees(top, c, sid)
        except (OSError, api.Refused, AssertionError):
            c.close()
            return False
        return last[0] == last[1]
    tap.wait_for(same, seconds, 0.3)
    return last


def one_round(t, r, d, c, sid, top, here, inside, first, s):
    """-> the sync that goes on, or None."""
    written, replaced, unsure = {}, set(), set()
    who = r.choice(("nobody", "sync", "daemon", "sync", "both"))
    at = r.randrange(ROUND)
    for n in range(first, first + ROUND):
        side = r.choice(("here", "inside"))
        path, size = r.choice(NAMES), r.choice((0, 1, 50, 3000))
        op = r.choice(("rename", "rename", "place", "delete"))
        done = (here if side == "here" else inside).do([n, op, path, size])
        if done is None:
            unsure.add(path)
        elif done is not False:
            replaced.add(done)
            if op != "delete":
                written[n] = path
        if n - first == at and who != "nobody":
            if who in ("sync", "both"):
                s.end(signal.SIGKILL)
            if who in ("daemon", "both"):
                os.kill(d.daemon.pid, signal.SIGKILL)
                d.daemon.wait()
                c.close()
                d.serve()
            if who in ("sync", "both"):
                s = syncing.Sync(d, sid, top)
    a, b = rest(top, c, sid)
    what = "%d operations, %s killed" % (first + ROUND, who)
    if not t.ok(a == b, what + ": both trees are the same", *[x for x in sorted(set(a) | set(b)) if a.get(x) != b.get(x)][:5],
                *map(str, s.events[-5:]), str(s.p.poll()), s.err):
        return None
    everything = syncing.here(top)
    torn = [k for k, v in everything.items() if ".durward-" not in k and "tmp~" not in k and not whole(v)]
    there = {v for k, v in everything.items()}
    numbers = {int(v.rpartition(b"end ")[2]) for v in there if v.rpartition(b"end ")[2].strip().isdigit()}
    lost = ["%s: %d" % (path, n) for n, path in written.items() if n not in replaced and n not in numbers and path not in unsure]
    if not t.ok(not torn and not lost, what + ": nothing that was acknowledged is lost or torn", *torn[:4], *lost[:4],
                *[str(e) for e in s.events if any(e.get("path") == x.split(":")[0] for x in lost)][-8:]):
        return None
    for k in everything:
        if ".conflict-" in k:
            os.unlink(os.path.join(top, k))
    return s


def whole(v):
    """As one operation wrote it."""
    n = v.rpartition(b"end ")[2].strip()
    return n.isdigit() and any(v == content(int(n), size) for size in (0, 1, 50, 3000))


def main(t):
    seed = os.environ.get("DURWARD_MODEL_SEED") or "%d" % random.SystemRandom().randrange(1 << 32)
    t.diag("DURWARD_MODEL_SEED=" + seed)
    r = random.Random(seed)
    d = durward.Durward(t, "d")
    d.policy("p", [])
    d.serve()
    c = api.Api(d.socket)
    sid = c.first(policy="p", idle_ttl=0, ttl=86400)
    c.write(sid, "/tmp/w.py", WORKER.encode())
    top = os.path.join(d.dir, "tree")
    os.makedirs(top)
    here, inside = Here(t, top), Inside(c, sid)
    s = syncing.Sync(d, sid, top)
    t.ok(s.ready(), "it is ready", s.err)
    for n in range(0, OPS, ROUND):
        s = one_round(t, r, d, c, sid, top, here, inside, n, s)
        if s is None:
            break
    if s:
        s.end()
    here.p.stdin.close()
    here.p.wait()
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=300 + OPS)
