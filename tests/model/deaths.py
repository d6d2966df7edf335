"""SIGKILL for every process of ours, between two operations and in the middle of one. What may have come of it
is then asked for, and has to be one of what the document lets it be."""
import http.client
import json
import os
import signal
import threading
import time

from harness import api, tap

from . import operations
from .world import BOX, SNAP, Box, Divergence

ROLES = ("controller", "builder", "parent", "gate", "injector", "vault", "signer", "dialer", "logger", "init", "keeper")
SHARED = ROLES[:-2]
BOUND = 40  # seconds until everything is as it should be again
STEADY = ("running", "paused", "stopped")


def age(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            start = int(f.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - start
    except OSError:
        return 0


def of_sandbox(w, text):
    """[(pid, box)] of durward-init or bubblewrap in sandboxes of which everything is known."""
    found = []
    for pid, line in tap.descendants(w.d.daemon.pid):
        if line.startswith(text) or (text == "bwrap" and "/bwrap " in line.split(" --")[0] + " "):
            found.append(pid)
    return found


def box_of(w, pid):
    """Whose it is: its control group or its command line says so."""
    text = ""
    for name in ("cgroup", "cmdline"):
        try:
            with open("/proc/%d/%s" % (pid, name), "rb") as f:
                text += f.read().decode("utf-8", "replace")
        except OSError:
            pass
    return next((b for b in w.boxes.values() if b.id in text and b.id not in w.fading), None)


def known(w, box):
    """Can it be told which processes are this sandbox's?"""
    return any(box_of(w, pid) is box for pid in of_sandbox(w, "/run/durward/init"))


def victims(w, role):
    """[(pid, the sandbox that ends with it or None)]"""
    if role == "parent":
        return [(w.d.daemon.pid, None)]
    if role in ("init", "keeper"):
        text = "/run/durward/init" if role == "init" else "bwrap"
        found = [(pid, box_of(w, pid)) for pid in of_sandbox(w, text)]
        return [(pid, b) for pid, b in found if b and b.state == "running"]
    monitors = {pid for pid, r in w.d.roles(builder(w)) if r == "builder"} if role == "builder" else ()
    return [(pid, None) for pid, r in w.d.roles() if r == role and pid not in monitors]


def builder(w):
    kids = {pid for pid, _ in tap.descendants(w.d.daemon.pid)}
    for pid, r in w.d.roles():
        if r == "builder" and pid in kids:
            with open("/proc/%d/stat" % pid) as f:
                if int(f.read().rpartition(")")[2].split()[1]) == w.d.daemon.pid:
                    return pid
    return w.d.daemon.pid


def steady_row(row):
    return row["state"] in STEADY


def rows(w):
    try:
        return w.c.ask("GET", BOX + "?limit=1000")["sandboxes"]
    except (OSError, api.Refused, ValueError, EOFError, http.client.HTTPException):
        w.c.close()
        return None


def settle(w, role, dead):
    """Until every role is there again, every sandbox is in a state that lasts, and a request gets through."""
    if role == "parent":
        w.d.daemon.wait()
        w.c.close()
        w.d.serve(save=False)
    shared = {"controller", "builder", "vault", "signer", "dialer", "logger"}  # an injector is made when it is needed

    def there():
        roles = w.d.roles()
        return shared <= {r for _, r in roles} and dead not in [p for p, _ in roles]
    w.expect(tap.wait_for(there, BOUND, 0.03), "%s killed: every role is there again" % role, w.d.roles())
    seen = []

    def quiet():
        seen[:] = rows(w) or [None]
        if seen == [None]:
            seen.clear()
            return rows(w) == []
        return all(steady_row(x) or x["id"] in w.fading for x in seen)
    w.expect(tap.wait_for(quiet, BOUND, 0.03), "%s killed: every sandbox is in a state that lasts" % role,
             [(x["id"], x["state"]) for x in seen])


def ended(w, b, role):
    """Its processes are dead: it must say so, soon."""
    if b.state in ("running", "paused"):
        b.state = "stopped"
        w.expect(tap.wait_for(lambda: any(x["id"] == b.id and x["state"] == "stopped" for x in rows(w) or ()), BOUND, 0.03),
                 "%s killed: %s is stopped" % (role, b.id), rows(w))


def answers(w, b):
    try:
        return w.c.exec(b.id, "echo here")["output"].strip() == "here"
    except (OSError, api.Refused, ValueError, EOFError, http.client.HTTPException):
        w.c.close()
        return False


def as_it_is(w, b):
    """What it says of itself, once that agrees with whether it has processes."""
    got = []

    def true():
        got[:] = [x["state"] for x in rows(w) or () if x["id"] == b.id]
        if os.geteuid() != 0:  # no control group says whose a process is
            return got and got[0] in STEADY and (got[0] != "running" or answers(w, b))
        alive = any(box_of(w, pid) is b for pid in of_sandbox(w, "bwrap"))
        return got and got[0] in STEADY and alive == (got[0] != "stopped")
    w.expect(tap.wait_for(true, BOUND, 0.03), "%s says whether it runs" % b.id, got)
    b.state = got[0]


def aftermath(w, role, dead, box, unsure=()):
    """unsure: those that were in the middle of something, which may have been done once more."""
    settle(w, role, dead)
    if role in ("builder", "parent"):
        for b in w.boxes.values():
            if b.id in w.fading:
                b.state = "stopped"
            elif b in unsure:
                as_it_is(w, b)
            else:
                ended(w, b, role)
    elif box:
        ended(w, box, role)
    elif role == "controller":
        for b in w.boxes.values():  # a paused one is thawed to be taken over, and paused again
            w.expect(b.id in w.fading or tap.wait_for(lambda: any(
                x["id"] == b.id and x["state"] == b.state for x in rows(w) or ()), BOUND, 0.03),
                "controller killed: %s is %s again" % (b.id, b.state), rows(w))
    else:
        b = operations.some(w, lambda b: b.policy == "coder" and b.state == "running")
        text = "curl -s -m 5 -o /dev/null -w '%{http_code}' https://api.github.com/user"
        w.expect(b is None or tap.wait_for(lambda: w.c.exec(b.id, text)["output"] == "200", BOUND, 0.1),
                 "%s killed: requests are served again" % role)


def kill(w, role):
    """Between two operations."""
    found = victims(w, role)
    if not found:
        return False
    pid, box = w.r.choice(found)
    if role not in ("init", "keeper"):
        tap.wait_for(lambda: age(pid) > 1.1, 3, 0.05)  # one that dies young, often, is given up
    w.say("SIGKILL %s" % role)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False  # it has ended meanwhile, as a gate does whose last connection went; another time
    aftermath(w, role, pid, box)
    return True


# ---- in the middle of something ----

class Asked(threading.Thread):
    """One request, sent once; .status is None when no answer came."""

    def __init__(self, w, method, target, body):
        super().__init__(daemon=True)
        self.w, self.what, self.status, self.data = w, (method, target, body), None, b""
        self.c = api.Api(w.d.socket, timeout=BOUND)

    def run(self):
        method, target, body = self.what
        try:
            self.c.conn.request(method, target, json.dumps(body) if isinstance(body, dict) else body, {})
            r = self.c.conn.getresponse()
            self.status, self.data = r.status, r.read()
        except (OSError, http.client.HTTPException):
            pass
        self.c.close()


def born(w, marked, made, asked):
    """A creation: there is one like it, or none."""
    found = [x for x in rows(w) if x["labels"] == marked]
    w.expect(len(found) <= 1, "one was asked for", found)
    w.expect(found or asked.status != 201, "it was said to be there", asked.data[:200])
    if found:
        w.expect(steady_row(found[0]), "its state", found[0]["state"])
        b = made(found[0]["id"])
        b.state = found[0]["state"]
        w.add(b, found[0])


def a_create(w):
    if len(w.boxes) >= operations.BOXES_MAX:
        return None
    body, made = operations.creation(w)
    w.serial += 1
    body["labels"] = marked = {"op": str(w.serial)}

    def judge(asked):
        def of(sid):
            b = made(sid)
            b.labels = marked
            return b
        born(w, marked, of, asked)
    return "POST", BOX, body, judge


def a_fork(w):
    b = operations.some(w, lambda b: b.kept)
    if b is None or len(w.boxes) >= operations.BOXES_MAX:
        return None
    w.serial += 1
    marked, tree = {"op": str(w.serial)}, b.tree.copy()
    return "POST", w.at(b.id, "fork"), {"labels": marked}, lambda asked: born(w, marked, lambda sid: Box(
        sid, b.policy, tree, env=b.env, parent=b.id, labels=marked), asked)


def a_delete(w):
    b = operations.some(w)
    if b is None:
        return None

    def judge(asked):
        there = [x for x in rows(w) if x["id"] == b.id]
        w.expect(not there or asked.status != 204, "it was said to be gone", b.id)
        if there:
            w.ask("DELETE", "%s/%s" % (BOX, b.id), want=(204,))
        w.drop(b)
    return "DELETE", "%s/%s" % (BOX, b.id), None, judge


def a_verb(w):
    b = operations.some(w, lambda b: b.kept)
    verb = w.r.choice(("stop", "resume") + (("pause",) if w.freezer else ()))
    if b is None or (verb == "pause" and b.state == "stopped"):
        return None
    may = {b.state, "stopped", {"pause": "paused", "stop": "stopped", "resume": "running"}[verb]}

    def judge(_):
        row = [x for x in rows(w) if x["id"] == b.id]
        w.expect(row and row[0]["state"] in may, "%s after %s" % (b.id, verb), row, may)
        b.state = row[0]["state"]
    return "POST", w.at(b.id, verb), None, judge


def command(w, b, text):
    """-> its output; a sandbox that was killed with its role is not running until it is resumed"""
    end = time.monotonic() + BOUND
    while True:
        try:
            return w.c.exec(b.id, text)["output"]
        except api.Refused as e:
            if e.status != 409 or time.monotonic() > end:
                raise
            time.sleep(0.05)


def a_write(w):
    b = operations.some(w, lambda b: b.kept and b.auto_resume)
    if b is None:
        return None
    p, data = operations.path(w, b), w.r.randbytes(3000)
    old = b.tree.files[p][0] if p in b.tree.files else None
    if not b.tree.copy().write(p, data):
        return None

    def judge(asked):
        sync(w, b)
        _, r = w.json("GET", w.at(b.id, "exec"))
        # parents may have come, and the file with them
        listed = command(w, b, "find . -mindepth 1 -type d").split()
        b.tree.dirs.update(b.tree.top + x[1:] for x in listed if b.tree.top + x[1:] in b.tree.parents(p))
        b.state = "running"
        status, got = w.raw("GET", w.file(b.id, p))
        if status == 404:
            w.expect(old is None and asked.status != 204, "a file that was written", p)
            return
        w.expect(got == old or data.startswith(got), "the bytes of %s: old or new" % p, len(got), asked.status)
        w.expect(got == data or asked.status != 204, "a write that was answered", p, len(got))
        b.tree.write(p, got)
    return "PUT", w.file(b.id, p), data, judge


def sync(w, b):
    """What state the death left it in."""
    row = [x for x in rows(w) if x["id"] == b.id]
    w.expect(row and steady_row(row[0]), "%s is there" % b.id, row)
    b.state = row[0]["state"]


def a_snapshot(w):
    b = operations.some(w, lambda b: b.kept)
    if b is None or len(w.snaps) >= operations.SNAPS_MAX:
        return None
    w.serial += 1
    name, tree = "k%d" % w.serial, b.tree.copy()

    def judge(asked):
        def found():
            got = [x for x in w.c.ask("GET", SNAP)["snapshots"] if x["name"] == name]
            return got if not got or got[0]["state"] == "ready" else None
        w.expect(tap.wait_for(lambda: found() is not None, BOUND, 0.05), "a snapshot is ready or not there", name)
        got = found()
        w.expect(got or asked.status != 201, "it was said to be there", name)
        if got:
            w.snaps[name] = {"sandbox": b.id, "policy": b.policy, "tree": tree}
    return "POST", SNAP, {"sandbox": b.id, "name": name}, judge


def a_restore(w):
    b = operations.some(w, lambda b: b.kept)
    if b is None or not w.snaps:
        return None
    name = w.r.choice(list(w.snaps))
    new = w.snaps[name]["tree"]

    def judge(asked):
        sync(w, b)
        w.json("POST", w.at(b.id, "resume"))  # then both are known, and agree: its files and what it says of them
        b.state = "running"
        shown = w.json("GET", "%s/%s" % (BOX, b.id))[1]["snapshot"]
        w.expect(shown in (b.snapshot, name) and (shown == name or asked.status != 200), "its snapshot", shown, name)
        before, b.snapshot = b.snapshot, shown
        old, b.tree = b.tree, b.tree if shown != name else new.copy()
        try:
            w.compare_files(b)
        except Divergence:  # they are the old ones, all of them, of the same snapshot as asked for
            if before != name or asked.status == 200:
                raise
            b.tree = old
            w.compare_files(b)
    return "POST", w.at(b.id, "restore"), {"snapshot": name}, judge


MIDDLE = (a_create, a_fork, a_delete, a_verb, a_write, a_snapshot, a_restore)


def kill_amid(w, role):
    """While something is under way."""
    found = victims(w, role)
    what = w.r.choice(MIDDLE)
    todo = what(w) if found else None
    if todo is None:
        return False
    method, target, body, judge = todo
    pid, sure = found[0][0], [b for b in w.boxes.values() if b.id not in target]
    tap.wait_for(lambda: age(pid) > 1.1, 3, 0.05)
    wait = w.r.choice((0, 0.001, 0.003, 0.01, 0.03, 0.06))
    w.say("SIGKILL %s %.0f ms into %s" % (role, 1000 * wait, what.__name__))
    asked = Asked(w, method, target, body)
    asked.start()
    asked.join(wait)
    os.kill(pid, signal.SIGKILL)
    asked.join(BOUND + 5)
    w.c.close()
    settle(w, role, pid)
    states = {b: b.state for b in sure}
    judge(asked)
    unsure = [b for b in w.boxes.values() if b not in states]
    if role == "parent":  # it has begun again, with what judge() asked for
        for b in w.boxes.values():
            b.state = "stopped" if b.id in w.fading else b.state
            if b.id not in w.fading:
                as_it_is(w, b)
                w.expect(b in unsure or b.state == "stopped", "the daemon's end stops it", b.id, b.state)
    else:
        aftermath(w, role, 0, None, unsure)
    return True
