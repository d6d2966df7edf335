"""Many sandboxes of one daemon: so many alive at once, so many made and deleted, so many at rest beside one that asks, and
what ends first when there are more (bench/sandbox --alive, --cycles, --resting, --ceiling). Each alive one fetches
from an origin on loopback; what the daemon holds is counted before and after."""
import collections
import concurrent.futures
import os
import queue
import resource
import statistics
import threading
import time

from harness import ceiling as limits, durward, held, origin, shapes, tap

PSS_BAR_GIB = 3.0
HOST = "bench.example.com"
PSS_LARGE = (2000, 4.0)  # of so many and more, GiB
FEW, MANY = 10, 60  # sandboxes, between which is measured what one takes
ASKED = 1000  # requests of one sandbox, of which the logger's time is taken
LOGGER_BAR = 1.1
WARM = 3  # tenths of the cycles, before what is held is measured: the logger keeps 2 MiB for watchers, for one
GROWTH_KIB = 1024  # of a role's anonymous memory in the other cycles


class Crowd:
    """A daemon with one policy, and an origin that its rule allows."""

    def __init__(self, program):
        os.environ["DURWARD"] = os.path.abspath(program)
        self.test = tap.Test("crowd")
        self.d = durward.Durward(self.test)
        self.d.policy("bench", [{"allow": HOST}])
        self.origin = origin.Origin(self.test, self.d.ca, HOST, shapes.echo)
        self.d.origin(HOST, self.origin)
        self.d.serve()
        self.state = os.path.join(self.d.dir, "state")

    def people(self):
        return held.everybody(self.d.daemon.pid)

    def count(self):
        return held.all_of(self.d.daemon.pid, self.state)

    def close(self):
        self.d.stop()
        self.test.close()


def each(api, path, jobs, work, at_once):
    """work(connection, job) for every job, so many at once, each with a connection of its own; -> results."""
    todo, done = queue.Queue(), []
    for j in jobs:
        todo.put(j)

    def worker():
        c = api(path)
        try:
            while True:
                done.append(work(c, todo.get_nowait()))
        except queue.Empty:
            return
        finally:
            c.close()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for f in [pool.submit(worker) for _ in range(at_once)]:
            f.result()
    return done


def fetch(c, sid):
    r = c.ask("POST", "/v1/sandboxes/%s/exec" % sid, {"timeout": 120, "command":
              "curl -sS -m 100 -o /dev/null -w '%%{http_code}' https://%s/" % HOST})
    return r["output"] if r["exit_code"] == 0 else "curl %d: %s" % (r["exit_code"], r["output"])


def alive(api, program, n, say):
    """n at once: PSS of all that is ours, and each fetches."""
    crowd = Crowd(program)
    try:
        idle = held.pss(crowd.people())
        began = time.monotonic()
        ids = each(api, crowd.d.socket, range(n), lambda c, _: c.ask("POST", "/v1/sandboxes", {})["id"], 2)
        made = time.monotonic() - began
        say("%d made in %.0f s" % (n, made))
        before = held.pss(crowd.people())
        answers = each(api, crowd.d.socket, ids, fetch, 4)
        good = answers.count("200")
        for text in sorted(set(answers) - {"200"})[:5]:
            say("a fetch: " + text)
        people = crowd.people()
        got = {"alive": n, "made_s": round(made, 1), "fetched": good, "idle_mib": round(idle / 1024, 1),
               "pss_made_mib": round(before / 1024, 1), "pss_mib": round(held.pss(people) / 1024, 1),
               "at_origin": len(crowd.origin.requests),
               "descriptors": {k: v for k, v in held.descriptors(people).items()
                               if k in ("parent", "controller", "builder", "dialer", "signer", "logger")},
               "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1]}
        began = time.monotonic()
        each(api, crowd.d.socket, ids, lambda c, sid: c.ask("DELETE", "/v1/sandboxes/" + sid), 2)
        got["deleted_s"] = round(time.monotonic() - began, 1)
        bar = PSS_LARGE[1] if n >= PSS_LARGE[0] else PSS_BAR_GIB
        got["missed"] = [x for x, bad in (("fetched", good != n), ("pss_mib", got["pss_mib"] > bar * 1024)) if bad]
        return got
    finally:
        crowd.close()


def settled(crowd, want=None):
    """What is held when nothing is under way: as wanted, else the same twice and nothing being removed."""
    last, end = None, time.monotonic() + 60
    while time.monotonic() < end:
        now = crowd.count()
        if now == want or (want is None and now == last and not any("/.gone-" in x for x in now["folders"])):
            break
        last = now
        time.sleep(0.5)
    return now


def difference(before, after):
    """Of two lists: what came and what went, each with its sign; of anything else both."""
    if not isinstance(before, list):
        return [before, after]
    came, went = collections.Counter(after), collections.Counter(before)
    return ["+ " + x for x in (came - went).elements()] + ["- " + x for x in (went - came).elements()]


def cycles(api, program, n, say):
    """n times create, exec of `true`, delete."""
    crowd = Crowd(program)
    lock, failures, count = threading.Lock(), [], [0]

    def one(c, _):
        try:
            sid = c.ask("POST", "/v1/sandboxes", {})["id"]
            if c.ask("POST", "/v1/sandboxes/%s/exec" % sid, {"argv": ["true"]})["exit_code"] != 0:
                failures.append("true did not succeed in " + sid)
            c.ask("DELETE", "/v1/sandboxes/" + sid)
        except (OSError, RuntimeError) as e:
            failures.append(str(e))
            c.close()
        with lock:
            count[0] += 1

    def go(some):
        each(api, crowd.d.socket, range(some), one, 2)
    try:
        go(max(20, n * WARM // 10))
        before, memory = settled(crowd), held.anonymous(crowd.people())
        others = held.foreign_mounts(crowd.d.dir)
        samples, began, count[0] = [memory], time.monotonic(), 0
        for _ in range(10 - WARM):
            go(n // 10)
            samples.append(held.anonymous(crowd.people()))
            say("%d cycles, %.0f s: %s" % (count[0] + n * WARM // 10, time.monotonic() - began,
                                           {k: v for k, v in sorted(samples[-1].items()) if v}))
        after = settled(crowd, before)
        grown = {k: v - samples[0].get(k, 0) for k, v in samples[-1].items() if v - samples[0].get(k, 0) > GROWTH_KIB}
        changed = {k: difference(before[k], after[k]) for k in before if before[k] != after[k]}
        for m in sorted(others ^ held.foreign_mounts(crowd.d.dir)):  # of whoever works on this host besides
            say("not ours: %s (%s) was mounted or unmounted" % m[2:])
        return {"cycles": n, "failures": len(failures), "first_failures": failures[:5], "changed": changed,
                "cycle_ms": round((time.monotonic() - began) * 1000 / max(1, count[0]), 1),
                "memory_kib": [samples[0], samples[-1]], "grown_kib": grown,
                "missed": [x for x, bad in (("failures", failures), ("changed", changed), ("grown", grown)) if bad]}
    finally:
        crowd.close()


def ceiling(api, program, n, say):
    """What of this host ends first, and what n sandboxes would take of it."""
    crowd = Crowd(program)
    try:
        points = []
        for more in (FEW, MANY - FEW):
            each(api, crowd.d.socket, range(more), lambda c, _: c.ask("POST", "/v1/sandboxes", {}), 2)
            time.sleep(2)  # the next spare gate is there, and what was freed is given back
            there = sum(p[0] for p in points[-1:]) + more
            points.append((there, limits.taken(crowd.d.daemon.pid, there)))
        found = limits.ends(points[0], points[1], limits.limits())
    finally:
        crowd.close()
    say("%-28s %12s %14s %12s %16s" % ("of this host", "a sandbox", "there are", "enough for", "%d take" % n))
    for e in found:
        say("%-28s %12.1f %14d %12d %16d%s" % (" ".join(e.what).strip() + (", KiB" if e.what[0] == "memory" else ""), e.each,
                                               e.most, e.at, e.needs(n), "" if e.at >= n else "  more than there are"))
    return {"sandboxes": n, "missed": [], "ends": [{"what": " ".join(e.what).strip(), "each": round(e.each, 2), "most": e.most,
                                                    "at": e.at, "needs": round(e.needs(n))} for e in found]}


def _logger_us(crowd):
    spent = 0
    for pid, role in crowd.people():
        if role == "logger":
            with open("/proc/%d/schedstat" % pid) as f:
                spent += int(f.read().split()[0])
    return spent / 1000


def _asked(crowd, c, sid):
    """Microseconds of the logger's for each of ASKED requests on one connection."""
    before = _logger_us(crowd)
    r = c.ask("POST", "/v1/sandboxes/%s/exec" % sid, {"timeout": 120, "command":
              "curl -sS -m 100 -o /dev/null 'https://%s/[1-%d]'" % (HOST, ASKED)})
    if r["exit_code"] != 0:
        raise RuntimeError("curl %d: %s" % (r["exit_code"], r["output"]))
    time.sleep(0.3)  # its last turn
    return (_logger_us(crowd) - before) / ASKED


def resting(api, program, n, say, rounds=7):
    """The logger's processor time a request, beside n sandboxes that rest and beside none, in turn."""
    crowds, ratios, values = [Crowd(program), Crowd(program)], [], []
    try:
        ids = [each(api, crowd.d.socket, range(1 + more), lambda c, _: c.ask("POST", "/v1/sandboxes", {})["id"], 2)[0]
               for crowd, more in zip(crowds, (0, n))]
        calls = [api(crowd.d.socket) for crowd in crowds]
        for number in range(rounds + 1):
            got = [_asked(*x) for x in zip(crowds, calls, ids)]
            if number:  # the first warms up
                values.append(got)
                ratios.append(got[1] / got[0])
        ratio = statistics.median(ratios)
        say("logger, us a request: %.1f alone, %.1f beside %d; ratio %.2f [%.2f-%.2f], bar %.2f" % (
            statistics.median(v[0] for v in values), statistics.median(v[1] for v in values), n, ratio, min(ratios),
            max(ratios), LOGGER_BAR))
        return {"resting": n, "logger_us": values, "ratio": round(ratio, 3), "missed": ["ratio"] * (ratio > LOGGER_BAR)}
    finally:
        for crowd in crowds:
            crowd.close()
