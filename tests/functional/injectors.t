#!/usr/bin/python3 -B
"""Two injectors of one policy: each listener has one of them and both serve, with about half of the work each; a
budget and the list of held requests are the policy's, whichever of them asks; one that is killed is missed by its own
listener only; a policy whose secrets can change, or one that would be changed while there are several, has one."""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "functional"), os.path.join(TOP, "bench")]
from harness import api, client, durward, nginx, scan, shapes, tap  # noqa: E402
from harness.origin import Origin  # noqa: E402
from rig import origin  # noqa: E402

HOST, COUNTED, ASKED = "keyed.example.com", "counted.example.com", "asked.example.com"
FILED = "filed.example.com"
BUDGET = 20
SECONDS, CONNECTIONS, PACE = 5, 32, 0.05
HALF = (40, 60)  # % of the processor time
SLOW = 3.0  # s that /slow takes


class Bed:
    def __init__(self, t):
        self.t, self.d = t, durward.Durward(t)
        d, self.key = self.d, scan.canary("key_")
        d.secrets["key"] = {"env": "INJECTORS_KEY"}
        d.secret("filed", "a-secret-of-a-file-0123456789")
        self.slow = 0

        def answer(req, conn):
            if req.path == "/slow":
                self.slow += 1
                time.sleep(SLOW)
            shapes.echo(req, conn)
        self.origins = {h: Origin(t, d.ca, h, answer) for h in (HOST, COUNTED, ASKED, FILED)}
        for h, o in self.origins.items():
            d.origin(h, o)
        self.fast = origin.Origin(t, d.ca)
        d.resolve["%s:%d" % (origin.HOST, self.fast.port)] = "127.0.0.1"
        bearer = {"with": {"bearer": "key"}}
        d.policy("two", [dict({"allow": HOST}, **bearer), dict({"ask": ASKED}, **bearer),
                         dict({"allow": "%s:%d" % (origin.HOST, self.fast.port)}, **bearer),
                         dict({"allow": COUNTED, "budget": {"requests": "%d/h" % BUDGET}}, **bearer)])
        d.policy("file", [{"allow": FILED, "with": {"bearer": "filed"}}])
        d.extra["injectors"] = 2
        self.at = ["127.0.0.1:%d" % nginx.free_port() for _ in range(4)]
        d.listen += [{"http": a, "policy": "two" if i < 2 else "file"} for i, a in enumerate(self.at)]
        d.serve(env={"INJECTORS_KEY": self.key.decode()})
        self.ca = t.path("durward-ca.pem")
        with open(self.ca, "w") as f:
            f.write(d.command("ca", "export", "-c", d.conf).stdout)
        self.gates = [client.Gate(a, self.ca, timeout=20) for a in self.at]
        self.api = api.Api(d.socket, timeout=60)

    def injectors(self):
        """{what it is the injector of: its process}"""
        return {x["sandbox"]: x["pid"] for x in self.status()["roles"] if x["role"] == "injector"}

    def status(self):
        return json.loads(self.d.command("status", "--json", "--socket", self.d.socket).stdout)

    def reload(self):
        self.d.save()
        return self.d.command("reload", "--socket", self.d.socket)


def serving(t, bed):
    t.ok(tap.wait_for(lambda: len(bed.injectors()) == 3, 10), "processes: two and one", str(bed.injectors()))
    t.eq(sorted(bed.injectors()), ["file", "two", "two 2"], "status says whose they are")
    for i, gate in enumerate(bed.gates):
        r = gate.get(HOST if i < 2 else FILED, "/x")
        t.eq(r.status, 200, "listener %d is served" % i)
    want = "Bearer " + bed.key.decode()
    t.eq([q.get("authorization") for q in bed.origins[HOST].requests], [want] * 2, "each with the credential")


def spent(pid):
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0])


def sharing(t, bed):
    load = t.path("load")
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", load, os.path.join(TOP, "bench", "rig", "load.c"), "-lssl",
                    "-lcrypto"], check=True)
    pids = [bed.injectors()[name] for name in ("two", "two 2")]
    before = [spent(p) for p in pids]
    runs = [subprocess.Popen([load, "--to", a, "--connect", "--host", origin.HOST, "--port", str(bed.fast.port), "--path",
                              "/small", "--connections", str(CONNECTIONS), "--seconds", str(SECONDS), "--warmup", "0",
                              "--pace", str(PACE)], stdout=subprocess.PIPE) for a in bed.at[:2]]
    said = [json.loads(r.communicate(timeout=40)[0]) for r in runs]
    used = [spent(p) - b for p, b in zip(pids, before)]
    share = 100.0 * used[0] / sum(used)
    t.eq([x["errors"] for x in said], [0, 0], "sharing: nothing is lost")
    # what each was asked is its load's doing: a busy machine may slow one of them
    due = 100.0 * said[0]["replies"] / (said[0]["replies"] + said[1]["replies"])
    t.ok(HALF[0] <= share + 50 - due <= HALF[1], "sharing: each has about half of the processor time",
         "%.0f %% for %.0f %% of the requests" % (share, due))
    t.diag("%d and %d requests; processor time of the first: %.0f %%" % (said[0]["replies"], said[1]["replies"], share))


def budget(t, bed):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: bed.gates[i % 2].get(COUNTED, "/b").status, range(BUDGET + 10)))
    t.eq((got.count(200), got.count(429)), (BUDGET, 10), "a budget is counted for both together")


def approvals(t, bed):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(bed.gates[i].get, ASKED, "/of%d" % i) for i in range(2)]

        def held():
            return bed.api.ask("GET", "/v1/approvals")["approvals"]
        t.ok(tap.wait_for(lambda: len(held()) == 2, 10), "held requests of both are listed")
        for x in held():
            bed.api.ask("POST", "/v1/approvals/%s/%s" % (x["id"], "allow" if x["url"].endswith("/of0") else "deny"))
        t.eq([j.result(20).status for j in jobs], [200, 403], "and each has its own answer")


def reloads(t, bed):
    rule = {"allow": "more." + HOST, "with": {"bearer": "key"}}
    bed.d.policies["two"]["rules"].append(rule)
    r = bed.reload()
    t.ok(r.returncode != 0 and "several injectors" in r.stderr + r.stdout, "a policy with several is not changed",
         r.stdout, r.stderr)
    bed.d.policies["two"]["rules"].remove(rule)
    bed.d.extra["injectors"] = 3
    r = bed.reload()
    t.ok(r.returncode != 0 and "`injectors` changed" in r.stderr + r.stdout, "nor how many there may be", r.stdout, r.stderr)
    bed.d.extra["injectors"] = 2
    bed.d.policies["file"]["rules"].append({"allow": "more." + FILED, "with": {"bearer": "filed"}})
    r = bed.reload()
    t.eq(r.returncode, 0, "one with one injector is")
    t.eq(sorted(bed.injectors()), ["file", "two", "two 2"], "and there are as many")
    pids = [bed.injectors()[name] for name in ("two", "two 2")]
    before = [spent(p) for p in pids]
    for _ in range(40):
        bed.gates[1].get(HOST, "/x")
    used = [spent(p) - b for p, b in zip(pids, before)]
    t.ok(used[1] > 4 * used[0], "a listener keeps the one that it had", str(used))


def killed(t, bed):
    before = bed.injectors()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(bed.gates[i].get, HOST, "/slow") for i in range(2)]
        t.ok(tap.wait_for(lambda: bed.slow == 2, 10), "killed: a request of each is under way")
        os.kill(before["two 2"], signal.SIGKILL)
        statuses = []
        while not jobs[0].done():
            statuses.append(bed.gates[0].get(HOST, "/x").status)
        ends = []
        for j in jobs:
            try:
                ends.append(j.result(20).status)
            except client.Ended:
                ends.append("cut")
    t.eq(ends[0], 200, "killed: the other's request ends well")
    t.ok(ends[1] != 200, "killed: its own is cut", str(ends[1]))
    t.eq(set(statuses), {200}, "killed: the other listener is served all the time (%d requests)" % len(statuses))
    t.ok(tap.wait_for(lambda: bed.gates[1].get(HOST, "/x").status == 200, 10, 0.1), "killed: its listener is served again")
    after = bed.injectors()
    t.eq((after["two"], after["file"], sorted(after)), (before["two"], before["file"], sorted(before)),
         "killed: only that one is another process")
    t.ok(after["two 2"] != before["two 2"], "killed: which it is")


def main(t):
    bed = Bed(t)
    for part in (serving, sharing, budget, approvals, reloads, killed):
        t.part(part, t, bed)
    bed.api.close()
    t.eq(bed.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90)
