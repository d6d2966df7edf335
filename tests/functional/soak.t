#!/usr/bin/python3 -B
"""F2: Many sandboxes with idle and busy connections for a time, while one of them floods in every way it can: what the
daemon holds does not grow, and the neighbours do not feel it.

make soak DURATION=SECONDS runs it whole (200 sandboxes, 10,000 idle and 1,000 busy connections) with the whole bars;
./runtests a small one with wider ones, for it has few replies to judge by. Floods and quiet
take turns, so that a quantile is compared with its neighbours in time. The control runs beside it all the time: as many neighbours
that ask as often, through nginx (bench/rig/control.py); each flood of a sandbox is followed by the same flood of nginx (of dnsmasq
beside it, where the flood asks for names), and the bar is how the neighbours' p99 under the one compares with that under the other. DURWARD_SOAK_JSON=FILE: the figures as JSON."""
import bisect
import functools
import json
import os
import statistics
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TOP, "bench")]
from harness import api, durward, held, tap  # noqa: E402
from rig import control, origin  # noqa: E402

SECONDS = float(os.environ.get("DURWARD_SOAK", 0))
WHOLE = SECONDS > 0
SANDBOXES = int(os.environ.get("DURWARD_SOAK_SANDBOXES", 200 if WHOLE else 4 if durward.sanitized() else 12))
IDLE, BUSY = (50, 5) if WHOLE else (20, 4)  # connections of each
PACE = 1.0 if WHOLE else 0.1  # seconds between two requests of a busy connection
WINDOW = 5.0 if WHOLE else 0.6  # seconds of a flood, and of the quiet before and after it
REST = 1.0 if WHOLE else 0.2  # between the two; nothing is taken from it
WARM = 2 if WHOLE else 1  # cycles
POOL_IDLE = 5 if WHOLE else 2
HEAP_TRIM = 6  # until what a flood left free has gone back to the host
GROWTH = 0.01 if WHOLE else 0.1
RATIO = 1.2  # of the neighbours' p99 to that of nginx's neighbours under the same flood
LONGEST = 1000.0  # ms; the small one has too few replies for ratios, and is held to this p99 instead
FEW = 0 if WHOLE else 16  # descriptors of a role: idle connections to the origin, of which a busy machine needs more at once
LITTLE = 256 if WHOLE else 1024  # KiB of a role's memory below which nothing is called growth
FAILED = 1 << 63
HOST = origin.HOST
SECRET_HOST = "secret." + HOST
KINDS = os.environ.get("DURWARD_SOAK_FLOODS", "connections,handshakes,new host names,h2 resets,slow reads,log noise,DNS,"
                       "requests").split(",")
ROLES = ("parent", "controller", "builder", "signer", "vault", "dialer", "injector", "logger", "gate")


class Soak:
    def __init__(self, t):
        self.t = t
        self.d = d = durward.Durward(t)
        self.origin = origin.Origin(t, d.ca)
        if WHOLE and not origin.own_share(self.origin.process.pid):
            t.diag("the neighbours' origin has the share of one session among hundreds: handshakes with it may time out")
        self.flooded = origin.Origin(t, d.ca, "flooded")  # what its neighbours' origin bears is not ours to say
        d.secret("bench", origin.SECRET)
        ports = (self.origin.port, self.flooded.port)
        d.resolve = {"%s%s:%d" % (dot, HOST, p): "127.0.0.1" for dot in ("", ".") for p in ports}
        d.limits = {"idle_seconds": 86400, "pool_idle_seconds": POOL_IDLE, "connections": 1024}
        d.audit["rotate"] = {"size": "64MB", "compress": "none"}
        rules = [{"deny": "%s:%d/denied" % (HOST, ports[1])}]
        for p in ports:
            rules += [{"allow": "%s:%d" % (SECRET_HOST, p), "with": {"bearer": "bench"}},
                      {"allow": "%s:%d" % (HOST, p)}, {"allow": ".%s:%d" % (HOST, p)}]
        d.policies["soak"] = {"rules": rules, "sandbox": json.loads(os.environ.get("DURWARD_SOAK_LIMITS", "{}"))}
        d.serve()
        self.api = api.Api(d.socket, timeout=120)
        self.load = t.path("load")
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", self.load, os.path.join(TOP, "bench", "rig", "load.c"),
                        "-lssl", "-lcrypto"], check=True)
        self.control = control.Control(t, self.origin, self.flooded, self.load)
        self.ids, self.floods, self.controls = [], {}, {}

    # ---- sandboxes and what runs in them ----

    def command(self, host, *options, to=None):
        return " ".join(["/tmp/load", "--to", "$(getent ahostsv4 gate.durward.internal | awk '{print $1; exit}'):3128",
                         "--connect", "--host", host, "--port", str((to or self.origin).port), "--path",
                         "/small"] +
                        [str(o) for o in options])

    def populate(self, count):
        with open(self.load, "rb") as f:
            program = f.read()
        with open(os.path.join(HERE, "inside", "flood.py"), "rb") as f:
            flood = f.read()
        for i in range(count):
            sid = self.api.create(policy="soak", idle_ttl=0)["id"]
            self.ids.append(sid)
            self.api.write(sid, "/tmp/load", program, mode="755")
            self.api.write(sid, "/tmp/flood.py", flood)
            host = SECRET_HOST if i % 4 == 3 else HOST
            r = self.api.exec(sid, "mkfifo /tmp/wait; (%s <>/tmp/wait >/tmp/idle 2>&1 &) ; (%s >/tmp/busy 2>&1 &)" % (
                self.command(host, "--idle", "--connections", IDLE, "--seconds", 600),
                self.command(host, "--connections", BUSY, "--pace", PACE, "--trace", "/tmp/trace", "--seconds",
                             86400, "--warmup", 86400)), timeout=60)
            if r["exit_code"] != 0:
                raise RuntimeError("a sandbox's load does not start: %s" % r)

    def resting(self):
        """Idle connections that stand, as the generators say."""
        n = 0
        for sid in self.ids:
            try:
                n += json.loads(self.api.read(sid, "/tmp/idle"))["resting"]
            except (ValueError, api.Refused):
                pass
        return n

    def replies(self):
        """[(when asked, ns it took)] of every sandbox but the one that floods, in order."""
        found = []
        for sid in self.ids[1:]:
            data = self.api.read(sid, "/tmp/trace")
            found += struct.iter_unpack("<QQ", data[:len(data) // 16 * 16])
        return sorted(found)

    # ---- what is held ----

    def holds(self):
        """{what: how much}; of memory the least of some looks, for buffers come and go."""
        looks = []
        for _ in range(5):
            people = [(pid, role) for pid, role in held.everybody(self.d.daemon.pid) if role in ROLES]
            now = {"%s: descriptors" % k: v for k, v in held.descriptors(people).items()}
            now.update({"%s: KiB" % k: v for k, v in held.anonymous(people).items()})
            for _, role in people:
                now["%s: processes" % role] = now.get("%s: processes" % role, 0) + 1
            looks.append(now)
            time.sleep(1 if WHOLE else 0.2)
        return {k: min(x.get(k, 0) for x in looks) for k in looks[0]}

    # ---- floods ----

    def flood(self, what, number):
        port, names = str(self.flooded.port), 100000 * number
        load = functools.partial(self.command, to=self.flooded)
        seconds = ("--seconds", WINDOW, "--warmup", 0)
        inside = "/usr/bin/python3 /tmp/flood.py %s %g %s %s" % ("%s", WINDOW, HOST, port)
        return {"connections": inside % "connections", "h2 resets": inside % "h2", "DNS": inside % "dns",
                "slow reads": inside % "slow" + " /big",
                "handshakes": load(HOST, "--new", "--connections", 32, *seconds),
                "new host names": load(HOST, "--new", "--names", names, "--connections", 16, *seconds),
                "log noise": load(HOST, "--path", "/denied", "--any", "--connections", 32, *seconds),
                "requests": load(SECRET_HOST, "--connections", 64, *seconds)}[what]

    def quiet(self):
        """-> (from, to) in ns of a time without a flood."""
        begun = time.monotonic_ns()
        time.sleep(WINDOW)
        return begun, begun + int(WINDOW * 1e9)

    def turn(self, what, flood, before, rounds):
        """A flood, and quiet again -> that quiet. flood() says what it made."""
        begun = time.monotonic_ns()
        said = flood()
        span = begun, begun + int(WINDOW * 1e9)
        time.sleep(REST)
        after = self.quiet()
        try:
            made = json.loads(said)
            made = made["ended"] if isinstance(made, dict) else made
        except ValueError:
            made = -1
            self.t.diag("%s: %s" % (what, said[:300]))
        rounds.setdefault(what, []).append(({"before": before, "flood": span, "after": after}, made))
        return after

    def cycle(self, number, controlled):
        """Quiet, a flood, quiet, the same flood of nginx, quiet, the next flood, ..., quiet."""
        before = self.quiet()
        for i, what in enumerate(KINDS):
            n = number * len(KINDS) + i
            before = self.turn(what, lambda: self.api.exec(self.ids[0], self.flood(what, n), timeout=int(WINDOW * 3) + 30)
                               ["output"].strip(), before, self.floods)
            if controlled:
                before = self.turn(what, lambda: self.control.flood(what, WINDOW, 100000 * n), before, self.controls)


def quantile(values, q):
    return sorted(values)[int(q * (len(values) - 1))] / 1e6 if values else 0.0


def cut(replies, spans):
    """What was asked for in one of these spans of time."""
    return [ns for a, b in spans for _, ns in replies[bisect.bisect(replies, (a,)):bisect.bisect(replies, (b,))]
            if ns < FAILED]


def judge_control(t, s, replies, theirs):
    """The neighbours' p99 under each flood against that of nginx's neighbours under the same one, round by round."""
    rows, missed = [], []
    for what in s.controls:
        rounds = list(zip(s.floods[what], s.controls[what]))
        ratios = [quantile(cut(replies, [ours["flood"]]), 0.99) / max(quantile(cut(theirs, [its["flood"]]), 0.99), 1e-6)
                  for (ours, _), (its, _) in rounds]
        spans = [its for _, (its, _) in rounds]
        quiet, noisy = cut(theirs, [x for it in spans for x in (it["before"], it["after"])]), cut(theirs, [it["flood"] for it in spans])
        row = {"flood": what, "made": sum(n for _, (_, n) in rounds), "replies": len(noisy), "p99_quiet": quantile(quiet, 0.99),
               "p99": quantile(noisy, 0.99), "p99_durward": quantile(cut(replies, [ours["flood"] for (ours, _), _ in rounds]), 0.99),
               "ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
        rows.append(row)
        if WHOLE and row["ratio"] > RATIO:
            missed.append(what)
    t.diag("beside nginx: p99 of its %d neighbours, each flood through nginx" % s.control.neighbours)
    t.diag("%-15s %9s %8s %8s %8s   %s" % ("flood", "made", "quiet,ms", "flood,ms", "durward", "durward / nginx under the flood"))
    for r in rows:
        t.diag("%-15s %9d %8.2f %8.2f %8.2f   %.2f (%.2f-%.2f)%s" % (
            r["flood"], r["made"], r["p99_quiet"], r["p99"], r["p99_durward"], r["ratio"], r["least"], r["most"],
            "  MISSED" if r["flood"] in missed else ""))
    t.ok(all(r["made"] > 0 and r["replies"] > 0 for r in rows) and len(rows) == len(set(KINDS)),
         "each flood flooded nginx too, and its neighbours went on")
    if WHOLE:
        t.ok(not missed, "neighbours' p99 is at most %.1f times that under the same flood of nginx" % RATIO, *missed)
    return rows, missed


def judge_floods(t, s, replies):
    rows, missed = [], []
    for what in KINDS:
        rounds, ratios = s.floods.get(what, []), []
        for spans, _ in rounds:
            quiet, noisy = cut(replies, [spans["before"], spans["after"]]), cut(replies, [spans["flood"]])
            ratios.append(quantile(noisy, 0.99) / max(quantile(quiet, 0.99), 1e-6))
        quiet = cut(replies, [x for spans, _ in rounds for x in (spans["before"], spans["after"])])
        noisy = cut(replies, [spans["flood"] for spans, _ in rounds])
        ratio = statistics.median(ratios) if ratios else 0
        row = {"flood": what, "rounds": len(rounds), "made": sum(n for _, n in rounds), "quiet_replies": len(quiet),
               "replies": len(noisy), "p50_quiet": quantile(quiet, 0.5), "p50": quantile(noisy, 0.5),
               "p99_quiet": quantile(quiet, 0.99), "p99": quantile(noisy, 0.99), "ratio": ratio,
               "least": min(ratios, default=0), "most": max(ratios, default=0)}
        rows.append(row)
        if not noisy or (not WHOLE and row["p99"] > LONGEST):
            missed.append(what)
    t.diag("%-15s %9s %8s %8s %8s %8s   %s" % ("flood", "made", "p50", "p99", "p50", "p99", "p99 / quiet p99"))
    t.diag("%-15s %9s %17s %17s" % ("", "", "quiet, ms", "flood, ms"))
    for r in rows:
        t.diag("%-15s %9d %8.2f %8.2f %8.2f %8.2f   %.2f (%.2f-%.2f)%s" % (
            r["flood"], r["made"], r["p50_quiet"], r["p99_quiet"], r["p50"], r["p99"], r["ratio"], r["least"],
            r["most"], "  MISSED" if r["flood"] in missed else ""))
    t.ok(all(r["made"] > 0 for r in rows), "each flood flooded")
    t.ok(not missed, "neighbours go on in each flood" if WHOLE else "neighbours' p99 is at most %.0f ms" % LONGEST, *missed)
    return rows, missed


def judge_growth(t, first, last):
    rows, missed = [], []
    for what in sorted(set(first) | set(last)):
        a, b = first.get(what, 0), last.get(what, 0)
        growth = (b - a) / a if a else float(b > 0)
        small = b - a <= (LITTLE if what.endswith("KiB") else FEW if what.endswith("descriptors") else 0)
        if growth > GROWTH and not small:
            missed.append(what)
        rows.append({"what": what, "first": a, "last": b, "growth": growth})
        t.diag("%-26s %10d %10d %+7.2f %%%s" % (what, a, b, 100 * growth, "  MISSED" if what in missed else ""))
    what = "nothing grew by more than %g %%" % (100 * GROWTH)
    if durward.sanitized():
        t.skip(what, "a sanitizer keeps freed memory")
    else:
        t.ok(not missed, what, *missed)
    return rows, missed


def main(t):
    lacks = control.lacks()
    if lacks:
        raise tap.Skip("%s is not installed" % lacks)
    s = Soak(t)
    begun = time.monotonic()
    s.populate(SANDBOXES)
    s.control.populate(SANDBOXES - 1, IDLE, BUSY, PACE)
    t.diag("%d sandboxes made in %.1f s" % (SANDBOXES, time.monotonic() - begun))
    want = IDLE * SANDBOXES
    tap.wait_for(lambda: s.resting() == want, 60, 0.5)
    t.eq(s.resting(), want, "%d idle connections stand" % want)
    for i in range(WARM):  # what a flood needs once is no growth
        s.cycle(i, WHOLE)
    s.floods, s.controls = {}, {}
    time.sleep(POOL_IDLE + HEAP_TRIM)
    first, begun, cycle = s.holds(), time.monotonic(), WARM
    while cycle == WARM or time.monotonic() - begun < SECONDS:
        s.cycle(cycle, True)
        cycle += 1
        now = held.anonymous(held.everybody(s.d.daemon.pid))
        t.diag("%.0f s, KiB: %s" % (time.monotonic() - begun, ", ".join("%s %d" % (r, now[r]) for r in ROLES)))
    time.sleep(POOL_IDLE + HEAP_TRIM)
    last = s.holds()
    replies, theirs = s.replies(), s.control.replies()
    failed = sum(ns >= FAILED for _, ns in replies)
    t.diag("%d replies of the neighbours' %d busy connections, %d failed; %.0f s in %d cycles" % (
        len(replies) - failed, BUSY * (SANDBOXES - 1), failed, time.monotonic() - begun, cycle - WARM))
    t.eq(failed, 0, "no request of a neighbour failed")
    t.eq(s.resting(), want, "the idle connections still stand")
    grown, missed = judge_growth(t, first, last)
    floods, more = judge_floods(t, s, replies)
    t.diag("%d replies of nginx's neighbours, %d failed" % (len(theirs), sum(ns >= FAILED for _, ns in theirs)))
    beside, most = judge_control(t, s, replies, theirs)
    if os.environ.get("DURWARD_SOAK_JSON"):
        with open(os.environ["DURWARD_SOAK_JSON"], "w") as f:
            json.dump({"sandboxes": SANDBOXES, "idle": want, "busy": BUSY * SANDBOXES, "seconds": SECONDS,
                       "growth": grown, "floods": floods, "nginx": beside, "missed": missed + more + most, "failed": failed}, f,
                      indent=1)
    for sid in s.ids:
        s.api.delete(sid)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90 if not WHOLE else 1800 + 2 * SECONDS)
