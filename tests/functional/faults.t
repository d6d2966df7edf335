#!/usr/bin/python3 -B
"""C11 of the catalogue: every allocation and system call of the way of a credential fails once, one at a time: the answer is right
or a refusal, the origin sees exactly one right credential or nothing, nothing of a secret comes back, no
request is without its record, and the next request is served.

The program is a build of its own (tests/faults/durward) with tests/faults/shim.c before the C library.
DURWARD_FAULTS=all tries every point (make faults); else each scenario and role gets a sample."""
import hmac
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, faulty, origin, scan, scene, shapes, tap  # noqa: E402

ROLES = ("gate", "injector", "vault", "dialer", "signer", "logger")
SAMPLE = 12  # points of a role and scenario, when not all are tried
ALLOCATIONS, CALLS = 1, 2


class Faults:
    def __init__(self, t):
        self.t = t
        self.plan = faulty.stage(t)
        self.s = scene.Scene(t)
        self.s.d.limits["pool"] = 0  # each request dials
        self.s.d.secrets["openai"]["ttl"] = "0s"  # and each asks the vault
        self.many = 0
        self.wild = origin.Origin(t, self.s.d.ca, "*.any.example.net", shapes.echo)
        self.s.d.resolve[".any.example.net"] = self.wild.address
        self.s.rule(allow=".any.example.net")
        self.key = scan.canary("hook-")
        self.s.d.secret("hook-key", self.key)
        self.s.d.secrets["hook"] = {"hmac_key": {"key": "hook-key"}}
        self.signed = self.s.add("hooks.example.net", self.check)
        self.s.rule(allow="hooks.example.net", **{"with": {"hmac": {
            "key": "hook", "text": "{timestamp}.{body}", "headers": {"X-Sign": "{timestamp} {signature}"}}}})
        self.unsigned = 0
        self.address = self.s.listener()
        self.s.d.serve()
        self.ca = self.s.ca_file()
        self.points = self.died = self.refused = self.served = 0
        self.wrong = []

    def check(self, request, conn):
        """The origin of signed requests: what is not signed as it must be is counted, and 401."""
        stamp, _, signature = (request.get("x-sign") or " ").partition(" ")
        right = hmac.new(self.key, stamp.encode() + b".{}", "sha256").hexdigest()
        if signature != right:
            self.unsigned += 1
        return shapes.echo(request, conn)

    def pid(self, role, ask):
        """The process of this role that the question goes through; a daemon has a spare gate, too."""
        most, best = -1, None
        for pid in [p for p, r in self.s.d.roles() if r == role]:
            self.plan.arm(pid, True, 0)
            self.once(ask)
            count, _ = self.plan.disarm()
            if count > most:
                most, best = count, pid
        return best

    def gate(self):
        return client.Gate(self.address, self.ca, timeout=3)

    # ---- what is asked; each returns (status, body) ----

    def read(self):
        r = self.gate().get("api.github.com", "/user")
        return r.status, r.body, b"octo"

    def post(self):
        r = self.gate().get("api.openai.com", "/v1/chat/completions", "Content-Type: application/json\r\n", "POST",
                            body=b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
        return r.status, r.body, b"choices"

    def plain(self):
        r = self.gate().get("deps.example.com", "/x")
        return r.status, r.body, b"target"

    def sign(self):
        r = self.gate().get("hooks.example.net", "/x", "", "POST", body=b"{}")
        return r.status, r.body, b"target"

    def named(self):
        """A host of its own each time: a leaf is minted."""
        self.many += 1
        r = self.gate().get("h%d.any.example.net" % self.many, "/x")
        return r.status, r.body, b"target"

    def once(self, ask):
        """-> 'served', 'refused'; what must not be is added to .wrong"""
        try:
            status, body, word = ask()
        except (OSError, client.Ended, ValueError):
            return "refused"
        self.s.scanner.search(body, "an answer")
        if status == 200:
            if word not in body:
                self.wrong.append("a wrong body: %r" % body[:80])
            return "served"
        if status < 400:
            self.wrong.append("status %d: %r" % (status, body[:80]))
        return "refused"

    def well(self, ask):
        """Served again, by whoever is there now."""
        return tap.wait_for(lambda: self.once(ask) == "served", 8, 0.05)

    def point(self, name, ask, role, kind, at):
        """-> (calls counted, whether the point was reached), or None when there is no such role"""
        pid = self.pids.get(role)
        if pid is None or not os.path.exists("/proc/%d" % pid):
            pid = self.pids[role] = self.pid(role, ask)
        if pid is None:
            return None
        self.plan.arm(pid, kind == ALLOCATIONS, at)
        what = self.once(ask)
        count, fired = self.plan.disarm()
        if fired:
            self.points += 1
            self.served += what == "served"
            self.refused += what == "refused"
            alive = os.path.exists("/proc/%d" % pid)
            self.died += not alive
            if not self.well(ask):
                self.wrong.append("%s: %s, %s %d: not served again" % (
                    name, role, "allocation" if kind == ALLOCATIONS else "call", at))
        return count, fired

    def scenario(self, name, ask, every):
        self.well(ask)
        self.pids = {}
        for role in ROLES:
            for kind in (ALLOCATIONS, CALLS):
                counted = self.point(name, ask, role, kind, 0)
                if counted is None:
                    continue
                total = counted[0]
                points = range(1, total + 1) if every else sorted(
                    {1 + i * total // SAMPLE for i in range(SAMPLE)} if total else ())
                before = self.points
                for at in points:
                    self.point(name, ask, role, kind, at)
                self.t.diag("%s: %s: %d %s, %d failed" % (
                    name, role, total, "allocations" if kind == ALLOCATIONS else "calls", self.points - before))


def judge(t, f):
    s = f.s
    t.diag("%d points: %d served all the same, %d refused; a role died at %d" % (
        f.points, f.served, f.refused, f.died))
    t.ok(f.points >= 100, "points were reached", str(f.points))
    t.ok(not f.wrong, "each answer is right or a refusal, and the next one is served", *f.wrong[:8])
    for o, credential in ((s.github, s.github_credential), (s.openai, s.openai_credential)):
        wrong = scene.one_right(o, credential)
        t.ok(o.requests and not wrong, "%s saw exactly one right credential in each of %d requests" % (
            o.names[0], len(o.requests)), *wrong[:3])
    t.ok(f.signed.requests and not f.unsigned, "hooks.example.net saw %d requests, each signed" % len(
        f.signed.requests), str(f.unsigned))
    ids = [r["id"] for r in s.d.kinds("admitted")]
    came = sum(len(o.requests) for o in (s.github, s.openai, s.plain, f.wild, f.signed))
    t.ok(came <= len(ids), "no request reached an origin without its record", "%d came, %d admitted" % (
        came, len(ids)))
    t.eq(s.d.stop(), 0, "the daemon ends well")
    v = s.d.command("audit", "verify", s.d.audit_dir)
    t.ok(v.returncode == 0, "the log verifies", v.stdout, v.stderr)
    s.clean((), "faults")


def main(t):
    every = os.environ.get("DURWARD_FAULTS") == "all"
    f = Faults(t)
    begun = time.monotonic()
    for name, ask in (("read", f.read), ("post", f.post), ("plain", f.plain), ("named", f.named),
                      ("sign", f.sign)):
        f.scenario(name, ask, every)
    t.diag("%.0f s" % (time.monotonic() - begun))
    judge(t, f)


tap.run(main, timeout=3600 if os.environ.get("DURWARD_FAULTS") == "all" else 110)
