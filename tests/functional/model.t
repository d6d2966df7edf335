#!/usr/bin/python3 -B
"""Random operations of the API against a model that was written from doc/openapi.json alone, with SIGKILLs of
every role, of process 1 and of its keeper in sandboxes, between operations and in the middle of them.

DURWARD_MODEL_OPS says how many (default 500), DURWARD_MODEL_SEED repeats a run: the seed is printed. By
`make model OPERATIONS=100000` there are more of them than in an ordinary run."""
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import api, cgroups, durward, held, scene, tap  # noqa: E402
from model import deaths, document, operations, world  # noqa: E402

OPERATIONS = int(os.environ.get("DURWARD_MODEL_OPS", "500"))
SEED = int(os.environ.get("DURWARD_MODEL_SEED", str(random.SystemRandom().randrange(1 << 31))))


def counts(s):
    """What is held; the injector's and dialer's idle connections to origins are theirs to keep."""
    n = held.all_of(s.d.daemon.pid, os.path.join(s.d.dir, "state"))
    n["descriptors"].pop("injector", None)
    return n


def steady(s):
    seen = []

    def same():
        seen.append(counts(s))
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]
    tap.wait_for(same, 15, 0.2)
    return seen[-1]


def warm(w):
    """What is there once, however many sandboxes there were."""
    for policy in ("coder", "small"):
        box = w.c.create(policy=policy)["id"]
        w.c.sh(box, "curl -s -m 20 https://api.github.com/user")
        w.freezer = api.refused(w.c.ask, "POST", w.at(box, "pause")) is None
        w.c.delete(box)


def deaths_due(r):
    """Which operation is followed by which death: each role once at least, the three that own things more often."""
    plan = list(deaths.ROLES) * max(1, OPERATIONS // 4000)
    amid = ["controller", "controller", "builder", "parent"] * max(1, OPERATIONS // 2500)
    due = [(x, deaths.kill) for x in plan] + [(x, deaths.kill_amid) for x in amid]
    r.shuffle(due)
    step = OPERATIONS / (len(due) + 1)
    return {int(step * (i + 1)): one for i, one in enumerate(due)}


def go(t, w):
    due, waiting, done = deaths_due(w.r), [], {}
    began = said = time.monotonic()
    for i in range(OPERATIONS):
        if i in due:
            waiting.append(due[i])
        for one in list(waiting):
            role, how = one
            if how(w, role):
                waiting.remove(one)
                done[role] = done.get(role, 0) + 1
                if how is deaths.kill_amid:
                    w.compare_all()
        asked = w.asked
        while w.asked == asked:  # those that found nothing to do do not count
            what = operations.pick(w)
            w.say(what.__name__)
            what(w)
        if time.monotonic() - said > 60:
            said = time.monotonic()
            t.diag("%d operations, %d requests, %.0f s" % (i + 1, w.asked, said - began))
    w.compare_all()
    t.diag("%d operations, %d requests, %.0f s; killed: %s" % (OPERATIONS, w.asked, time.monotonic() - began, done))
    named = any(b.state == "running" and deaths.known(w, b) for b in w.boxes.values())
    if not named:
        t.skip("durward-init and bubblewrap killed", "without a control group of its own nothing says whose they are")
    t.ok(not set(deaths.ROLES if named else deaths.SHARED) - set(done), "every role was killed, and more than once where it owns things",
         str(set(deaths.ROLES) - set(done)))


def no_group(t, before):
    """Of killed builders empty control groups stay for a minute; a long run waits for that."""
    def inhabited():
        found = []
        for g in cgroups.left(before):
            try:
                with open(os.path.join(g, "cgroup.procs")) as f:
                    found += [g] if f.read() else []
            except OSError:
                pass
        return found
    t.ok(tap.wait_for(lambda: not inhabited(), 10, 0.2), "no process is in a control group", str(inhabited()))
    if OPERATIONS > 5000:
        t.ok(tap.wait_for(lambda: not cgroups.left(before), 150, 1), "no control group is left", str(cgroups.left(before)))


def log_end(s):
    with open(s.d.log, errors="replace") as f:
        return f.read()[-3000:]


def main(t):
    s = scene.Scene(t)
    s.d.policies["small"] = {"rules": [], "sandbox": {"disk": "16MiB"}}
    s.d.serve()
    t.diag("seed %d: DURWARD_MODEL_SEED=%d DURWARD_MODEL_OPS=%d" % (SEED, SEED, OPERATIONS))
    doc = document.Document(os.path.join(durward.TOP, "doc", "openapi.json"))
    w = world.World(doc, s.d, random.Random(SEED))
    try:
        warm(w)
    except api.Refused as e:
        raise tap.Skip("no sandbox can be made here: %s" % e)
    if not w.freezer:
        t.skip("pausing", "there is no cgroup freezer here that we may use")
    groups, before = cgroups.every(), steady(s)
    try:
        go(t, w)
        t.ok(True, "G15 %d operations: no divergence" % OPERATIONS)
    except world.Divergence as e:
        t.ok(False, "no divergence (seed %d)" % SEED, str(e), "the last operations: " + ", ".join(w.trail),
             log_end(s))
    for row in deaths.rows(w) or ():
        w.c.delete(row["id"])
    for row in w.c.ask("GET", world.SNAP)["snapshots"]:
        w.c.ask("DELETE", "%s/%s" % (world.SNAP, row["name"]))
    warm(w)
    tap.wait_for(lambda: counts(s) == before, 20, 0.3)
    after = counts(s)
    t.ok(after == before, "processes, descriptors, mounts, network namespaces and files are as before",
         *["%s: %r, before %r" % (k, after[k], before[k]) for k in before if after[k] != before[k]])
    t.part(no_group, t, groups)
    s.clean()
    w.c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=100 + OPERATIONS // 10)
