#!/usr/bin/python3 -B
"""F12: Each role killed with SIGKILL under load: nothing leaks, service is back within a second, each
admitted id has one end, and the parent's death ends everything (C11)."""
import collections
import itertools
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, durward, scene, tap  # noqa: E402

# make kill ROUNDS=N: so many kills, of a role by chance; else each role once
ROUNDS = int(os.environ["DURWARD_KILL_ROUNDS"]) if "DURWARD_KILL_ROUNDS" in os.environ else None
ROLES = ("gate", "injector", "dialer", "signer", "vault", "logger", "controller", "builder")
AGE = 1.5  # of a role that is killed again


class Load:
    """Threads that ask all the time; every answer is counted, the last ones are kept with their time."""

    def __init__(self, gate, hosts, n=8):
        self.gate, self.hosts = gate, hosts
        self.stop = False
        self.results = collections.deque(maxlen=4096)
        self.counts = collections.Counter()
        self.number = itertools.count()
        self.bad = []
        self.threads = [threading.Thread(target=self._work, args=(i,), daemon=True)
                        for i in range(n)]
        [th.start() for th in self.threads]

    def _work(self, i):
        host, path, word = self.hosts[i % len(self.hosts)]
        while not self.stop:
            status = 0
            try:
                r = self.gate.get(host, path(next(self.number)))
                status = r.status
                if status == 200 and word not in r.body and not r.truncated:
                    self.bad.append((host, r.body[:100]))
            except (OSError, client.Ended, ValueError):
                pass
            self.counts[host, status] += 1
            self.results.append((time.monotonic(), host, status))
            time.sleep(0.005)

    def back(self, since, seconds):
        """Seconds until every host was served once after `since`; None if not in time."""
        end = since + seconds
        while time.monotonic() < end + 0.2:
            first = {}
            for when, host, status in list(self.results):
                if when > since and status == 200:
                    first.setdefault(host, when)
            if len(first) == len({h[0] for h in self.hosts}):
                return max(first.values()) - since
            time.sleep(0.02)
        return None

    def close(self):
        self.stop = True
        [th.join(20) for th in self.threads]


def order():
    """Each role once, or by chance; then none younger than the parent's start wait: what falls at once again and
    again is given up, as it should be."""
    if ROUNDS is None:
        yield from ROLES
        return
    last = dict.fromkeys(ROLES, 0.0)
    for _ in range(ROUNDS):
        ripe = tap.wait_for(lambda: [r for r in ROLES if time.monotonic() - last[r] > AGE], 5)
        role = random.choice(ripe)
        yield role
        last[role] = time.monotonic()


def served(t, s):
    s.d.audit["rotate"] = {"compress": "none"}  # a long run's log has more than one file
    for o in (s.github, s.plain):  # slow enough that a kill finds requests under way
        o.handler = (lambda fn: lambda q, c: (time.sleep(0.03), fn(q, c)))(o.handler)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address, timeout=4)
    hosts = [("api.github.com", lambda n: "/user", b"octo"),
             ("deps.example.com", lambda n: "/x/%d" % n, b"target")]  # each path is asked once
    load = Load(gate, hosts)
    t.ok(load.back(time.monotonic(), 5) is not None, "the load runs")
    within = 3.0 if durward.sanitized() else 1.0
    times = {}
    for role in order():
        pids = [p for p, r in s.d.roles() if r == role]
        if not pids:
            t.ok(role in ("controller", "builder"), "a %s runs" % role)
            continue
        now = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
        spent = load.back(now + 0.02, 6)
        times.setdefault(role, []).append(6 if spent is None else spent)
        t.ok(spent is not None and spent <= within + 0.05, "%s killed: service is back within "
             "%.0f s" % (role, within), "after %s" % spent)
        fresh = tap.wait_for(lambda: [p for p, r in s.d.roles() if r == role and p not in pids], 3)
        t.ok(fresh, "a new %s runs" % role)
        t.ok(s.d.daemon.poll() is None, "the daemon lives")
    load.close()
    t.diag("answers: %s" % dict(load.counts))
    for role, took in sorted(times.items()):
        took.sort()
        t.diag("%s: %d kills, back after %.3f s (median), %.3f s (the longest)" % (
            role, len(took), took[len(took) // 2], took[-1]))
    t.ok(not load.bad, "no 200 with a wrong body", *load.bad[:3])
    others = {c for _, c in load.counts} - {200, 0, 502, 503}
    t.ok(not others, "what was not served is 502, 503 or a closed connection", str(others))
    wrong = scene.one_right(s.github, s.github_credential)
    t.ok(not wrong, "the origin saw exactly one right credential each time", *wrong[:3])
    t.eq(s.d.stop(), 0, "the daemon ends well")


def accounted(t, s):
    d = s.d
    admitted = d.kinds("admitted")
    ids = [r["id"] for r in admitted]
    ends = collections.Counter(r["id"] for r in d.kinds("completed") + d.kinds("aborted"))
    t.eq(len(ids), len(set(ids)), "no id is admitted twice")
    t.ok(set(ids) == set(ends) and max(ends.values()) == 1, "each admitted id has exactly one end",
         "without an end: %s" % sorted(set(ids) - set(ends))[:5],
         "with more: %s" % [i for i, n in ends.items() if n > 1][:5])
    came = collections.Counter((o.names[0], r.path) for o in (s.github, s.plain) for r in o.requests)
    known = collections.Counter((r["authority"].split(":")[0], r["path"]) for r in admitted)
    t.ok(came and not came - known, "no request reached an origin without its record",
         "%d at the origins, %d admitted" % (sum(came.values()), len(ids)), *list((came - known).items())[:5])
    t.diag("%d at the origins, %d admitted, %d aborted" % (
        sum(came.values()), len(ids), len(d.kinds("aborted"))))
    v = d.command("audit", "verify", d.audit_dir)
    t.ok(v.returncode == 0, "the log verifies", v.stdout, v.stderr)
    s.clean((), "kill")


def sandboxed(t):
    """The same for a private daemon: `run` goes on when its roles die."""
    s = scene.Scene(t)
    box = durward.Sandbox(s.d)
    ask = "curl -sS -m 4 -o /dev/null -w '%{http_code}' https://api.github.com/user"
    t.eq(box.sh(ask)[1], "200", "a sandbox is served")
    name = "getent ahosts api.github.com | head -1"
    address = box.sh(name)[1]
    t.ok(address.startswith(("198.1", "fd")), "a name has a synthetic address", address)
    for role in ("gate", "injector", "dialer", "vault", "signer", "logger"):
        pids = [p for p, r in s.d.roles(box.process.pid) if r == role]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        start = time.monotonic()
        got = tap.wait_for(lambda: box.sh(ask)[1] == "200", 5, 0.05)
        t.ok(pids and got, "%s of `run` killed: served again" % role, box.sh(ask))
        t.diag("%s: %.2f s" % (role, time.monotonic() - start))
    t.eq(box.sh(name)[1], address, "names keep their synthetic addresses")
    status, err = box.close()
    t.eq(status, 0, "and it ends well") or t.diag(err)
    accounted(t, s)


def orphaned(t):
    s = scene.Scene(t)
    box = durward.Sandbox(s.d)
    box.sh("sleep 300 >/dev/null 2>&1 & setsid sleep 301 >/dev/null 2>&1 &")
    parents = [p for p, r in s.d.roles(box.process.pid) if r == "parent"]
    os.kill(parents[0] if parents else box.process.pid, signal.SIGKILL)
    gone = tap.wait_for(lambda: not [x for x in tap.descendants() if x[1].startswith("durward: ") or
                                     "sleep 30" in x[1]], 5)
    t.ok(gone, "the parent's death ends every role and the sandbox",
         *["%d %s" % x for x in tap.descendants()])
    tap.stop(box.process)


def main(t):
    s = scene.Scene(t)
    served(t, s)
    accounted(t, s)
    whole = t.tmp  # each further scene has a folder of its own
    for name, fn in (("run", sandboxed), ("orphans", orphaned)):
        t.tmp = t.mkdir(name)
        try:
            fn(t)
        finally:
            t.tmp = whole


tap.run(main, timeout=110 if ROUNDS is None else 120 + 8 * ROUNDS)
