#!/usr/bin/python3 -B
"""Random operations on a volume, each acknowledged by who made it in a sandbox, while sandbox, builder,
controller or the whole daemon are killed: after each death the files are those of a model, up to the last
acknowledged operation at least. Of a write that nobody acknowledged the first pages may be there, or the name
alone, as after any kill in the midst of write(2). Snapshots and restores in between. The count of
what is used is right whenever nobody mounts it. DURWARD_VOLUME_OPS says how many operations (`make
volumes-model`: 20000), DURWARD_MODEL_SEED repeats a run."""
import base64
import hashlib
import json
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402

VOL, SIZE, BLOCK = "/v1/volumes", 64 << 20, 4096
OPS = int(os.environ.get("DURWARD_VOLUME_OPS", "3000"))
PYTHON = "/usr/bin/python3"
ROUND = 500

# Does what stdin says, in order, and acknowledges each.
WORKER = r'''
import json, os, sys, base64
os.chdir("/data")
for line in open("/workspace/ops"):
    n, op, a, b, c = json.loads(line)
    if op == "write":
        fd = os.open(a, os.O_WRONLY | os.O_CREAT, 0o644)
        data = base64.b64decode(c)
        assert os.pwrite(fd, data, b) == len(data)
        os.close(fd)
    elif op == "append":
        fd = os.open(a, os.O_WRONLY | os.O_APPEND)
        data = base64.b64decode(c)
        assert os.write(fd, data) == len(data)
        os.close(fd)
    elif op == "truncate": os.truncate(a, b)
    elif op == "rename": os.rename(a, b)
    elif op == "link": os.link(a, b)
    elif op == "unlink": os.unlink(a)
    elif op == "mkdir": os.mkdir(a)
    elif op == "rmdir": os.rmdir(a)
    elif op == "symlink": os.symlink(b, a)
    os.write(1, b"%d\n" % n)
'''
LOOK = r'''
import hashlib, os
os.chdir("/data")
rows = []
for base, dirs, files in os.walk("."):
    for x in dirs + files:
        p = os.path.join(base, x)[2:]
        if os.path.islink(p): rows.append("%s -> %s" % (p, os.readlink(p)))
        elif os.path.isdir(p): rows.append(p + "/")
        else: rows.append("%s %d %s" % (p, os.stat(p).st_size, hashlib.sha256(open(p, "rb").read()).hexdigest()))
print("\n".join(sorted(rows)))
'''


class Model:
    """Names, and files by number: a file may have several names."""

    def __init__(self):
        self.names, self.files, self.last = {}, {}, 0

    def copy(self):
        m = Model()
        m.names, m.files, m.last = dict(self.names), dict(self.files), self.last
        return m

    def do(self, op, a, b, c):
        if op == "write" and a not in self.names:
            self.last += 1
            self.names[a], self.files[self.last] = ("file", self.last), b""
        if op in ("write", "append", "truncate"):
            n = self.names[a][1]
            was = self.files[n]
            if op == "truncate":
                self.files[n] = was[:b].ljust(b, b"\0")
            else:
                at = len(was) if op == "append" else b
                data = bytes.fromhex(c)
                self.files[n] = was[:at].ljust(at, b"\0") + data + was[at + len(data):]
        elif op == "rename":
            if self.names.get(b) != self.names[a] or self.names[a][0] != "file":
                self.names[b] = self.names.pop(a)
        elif op == "link":
            self.names[b] = self.names[a]
        elif op in ("unlink", "rmdir"):
            del self.names[a]
        elif op == "mkdir":
            self.names[a] = ("dir",)
        elif op == "symlink":
            self.names[a] = ("link", b)

    def begun(self, op, a, b, c):
        """What a kill in the midst of it may leave: a write gives its name first, then whole pages."""
        data = bytes.fromhex(c)
        if op not in ("write", "append"):
            return
        at = len(self.files[self.names[a][1]]) if op == "append" else b
        if op == "write" and a not in self.names:
            m = self.copy()
            m.last += 1
            m.names[a], m.files[m.last] = ("file", m.last), b""
            yield m
        for n in range(BLOCK - at % BLOCK, len(data), BLOCK):
            m = self.copy()
            m.do(op, a, b, data[:n].hex())
            yield m

    def text(self):
        rows = []
        for name, what in self.names.items():
            if what[0] == "dir":
                rows.append(name + "/")
            elif what[0] == "link":
                rows.append("%s -> %s" % (name, what[1]))
            else:
                data = self.files[what[1]]
                rows.append("%s %d %s" % (name, len(data), hashlib.sha256(data).hexdigest()))
        return "\n".join(sorted(rows)) + "\n"

    def used(self):
        kinds = list(self.names.values())
        whole = {w[1] for w in kinds if w[0] == "file"}
        lengths = {n: (len(self.files[n]) + BLOCK - 1) // BLOCK * BLOCK for n in whole}
        links = {n: sum(w == ("file", n) for w in kinds) for n in whole}
        return BLOCK * len(kinds) + BLOCK * sum(w[0] == "link" for w in kinds) + \
            sum(-(-lengths[n] // links[n]) * links[n] for n in whole)


def choose(r, m):
    """An operation that succeeds."""
    files = [n for n, w in m.names.items() if w[0] == "file"]
    dirs = [n for n, w in m.names.items() if w[0] == "dir"]
    empty = [d for d in dirs if not any(n.startswith(d + "/") for n in m.names)]
    fresh = r.choice(["", *[d + "/" for d in dirs]]) + "n%d" % r.randrange(40)
    data = r.randbytes(r.choice((1, 10, 1000, 4096, 60000)))
    free = fresh not in m.names
    kinds = ["write"] * 4 + ["append", "truncate", "rename", "rename", "unlink", "link", "mkdir", "rmdir", "symlink"]
    while True:
        op = r.choice(kinds)
        if op == "write" and (free or m.names[fresh][0] == "file"):
            return op, fresh, r.choice((0, 0, 5, 5000, 70000)), data.hex()
        if op == "append" and files:
            return op, r.choice(files), 0, data.hex()
        if op == "truncate" and files:
            return op, r.choice(files), r.choice((0, 1, 4096, 100000)), ""
        if op == "rename" and files and (free or m.names[fresh][0] != "dir"):
            return op, r.choice(files), fresh, ""
        if op == "link" and files and free:
            return op, r.choice(files), fresh, ""
        if op == "unlink" and files:
            return op, r.choice(files), "", ""
        if op == "mkdir" and free and len(dirs) < 8 and fresh.count("/") < 4:
            return op, fresh, "", ""
        if op == "rmdir" and empty:
            return op, r.choice(empty), "", ""
        if op == "symlink" and free:
            return op, fresh, "to-%d" % r.randrange(9), ""


def worded(n, op):
    return json.dumps([n, op[0], op[1], op[2], base64.b64encode(bytes.fromhex(op[3])).decode()])


def again(c, fn):
    """What is asked while a role is being replaced."""
    end = time.monotonic() + 30
    while True:
        try:
            return fn()
        except (OSError, api.Refused, ValueError, EOFError):
            c.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def mount(c):
    return again(c, lambda: c.create(policy="p", volumes=["v:/data"])["id"])


def acknowledged(frames, until, kill):
    """Reads numbers up to `until`, kills then, and takes what still comes. -> the last one."""
    text, last, dead = b"", -1, False
    try:
        while True:
            kind, data = frames.receive()
            if kind == 3:
                break
            text += data if kind == 1 else b""
            for line in text.split(b"\n")[:-1]:  # at its death it says what it could not do
                last = max(last, int(line)) if line.isdigit() else last
            text = text.rpartition(b"\n")[2]
            if last >= until and not dead:
                dead = True
                kill()
    except (OSError, EOFError):
        pass
    return last, dead


def killer(d, c, sid, who):
    def kill():
        if who == "daemon":
            os.kill(d.daemon.pid, signal.SIGKILL)
            d.daemon.wait()
        elif who == "sandbox":
            k = api.Api(d.socket)
            k.delete(sid)
            k.close()
        else:
            for pid, role in d.roles():
                if role == who:
                    os.kill(pid, signal.SIGKILL)
    return kill


def one_round(t, d, c, r, m, first, who):
    """-> the model as it is then, or None."""
    ops, states = [], [m]
    for n in range(ROUND):
        ops.append(choose(r, states[-1]))
        states.append(states[-1].copy())
        states[-1].do(*ops[-1])
    sid = mount(c)
    again(c, lambda: c.write(sid, "/workspace/worker.py", WORKER.encode()))
    again(c, lambda: c.write(sid, "/workspace/ops", "\n".join(worded(n, op) for n, op in enumerate(ops)).encode()))
    until = r.randrange(ROUND // 2, ROUND)
    frames = c.frames(sid, command=PYTHON + " /workspace/worker.py")
    last, dead = acknowledged(frames, until, killer(d, c, sid, who))
    frames.close()
    c.close()
    if who == "daemon":
        d.serve()
    again(c, lambda: c.list())
    again(c, lambda: c.delete(sid))
    sid = mount(c)  # for writing: once the former process is gone
    got = again(c, lambda: c.sh(sid, PYTHON + " - <<'END'\n" + LOOK + "END"))[1].decode()
    used = again(c, lambda: c.ask("GET", VOL + "/v"))["used"]
    used -= sum(-(-os.stat(base).st_size // BLOCK) * BLOCK
                for base, _, _ in os.walk(os.path.join(d.dir, "state", "volumes", "v", "root")))
    again(c, lambda: c.delete(sid))
    after = [m for k in range(last + 1, ROUND + 1)
             for m in (states[k], *(states[k].begun(*ops[k]) if k < ROUND else ()))]
    fits = [m for m in after if m.text().strip() == got.strip()]
    if not t.ok(dead and fits, "%d operations, %s killed after %d: all that was acknowledged is there, whole" % (
            first + ROUND, who, last + 1)):
        want = states[last + 1].text().splitlines()
        have = got.splitlines()
        t.diag("dead: %s; missing: %s; more: %s" % (dead, [x for x in want if x not in have][:4],
                                                    [x for x in have if x not in want][:4]))
        t.diag("next: %s" % [x[:3] for x in ops[last + 1:last + 3]])
        t.diag(d.diagnostics())
        return None
    if not t.eq(used, fits[0].used(), "and what is used is what is there"):
        return None
    return fits[0]


def main(t):
    seed = os.environ.get("DURWARD_MODEL_SEED") or "%d" % random.SystemRandom().randrange(1 << 32)
    t.diag("DURWARD_MODEL_SEED=" + seed)
    r = random.Random(seed)
    d = durward.Durward(t, "d")
    d.policy("p", [])
    d.serve()
    c = api.Api(d.socket)
    c.ask("POST", VOL, {"name": "v", "policy": "p", "size": SIZE})
    try:
        c.delete(c.create(policy="p", volumes=["v:/data"])["id"])
    except api.Refused as e:
        raise tap.Skip("no volume can be mounted here: %s" % e)
    m, kept = Model(), None
    for n in range(0, OPS, ROUND):
        m = one_round(t, d, c, r, m, n, ("sandbox", "builder", "controller", "daemon")[n // ROUND % 4])
        if m is None:
            break
        if kept is None and r.random() < 0.5:
            again(c, lambda: c.ask("POST", VOL + "/v/snapshot", {"name": "s%d" % n}))
            kept = m, "s%d" % n
        elif kept and r.random() < 0.4:
            again(c, lambda: c.ask("POST", VOL + "/v/restore", {"snapshot": kept[1]}))
            m, kept = kept[0].copy(), None
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=300 + OPS // 4)
