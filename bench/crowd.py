"""Many sandboxes of one daemon: so many alive at once, and so many made and deleted (bench/sandbox --alive,
--cycles). Each alive one fetches from an origin on loopback; what the daemon holds is counted before and after."""
import collections
import concurrent.futures
import os
import queue
import resource
import threading
import time

from harness import durward, held, origin, shapes, tap

PSS_BAR_GIB = 3.0
HOST = "bench.example.com"
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
        got["missed"] = [x for x, bad in (("fetched", good != n), ("pss_mib", got["pss_mib"] > PSS_BAR_GIB * 1024))
                         if bad]
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
