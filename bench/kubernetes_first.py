"""From a pod's creation to its first credentialed byte on a real cluster of one node (bench/kubernetes --first-byte): with a gate and
without one, in turn; and what the node's daemon holds before and after those pods."""
import os
import statistics

from harness import api, held, kubernetes, kubernetes_timed, scene, tap
from rig import verdict

BAR_MS = 10.0
WARM = 5            # rounds, before what is held is looked at
STAY = ("controller", "builder", "vault", "logger", "signer")  # of which there is one; of gates and injectors there are as many as the load wants
GROWTH_FDS = 4      # of each of those
GROWTH_KIB = 1024   # of a role's anonymous memory
NAMESPACES = {"agents": "coder"}


def pod(c, ns, name, **more):
    return kubernetes.Pod(c, ns, name, nodeSelector={"node-restriction.kubernetes.io/durward": "ready"}, **more)


def begin(t):
    c = kubernetes.Cluster(t)
    s = scene.Scene(t)
    os.makedirs("/run/durward", 0o700)
    s.d.extra["node"] = {"namespaces": NAMESPACES, "unbound": ["kube-system", "open"]}
    for name in ("agents", "open"):
        c.namespace(name)
    c.kubectl("label", "node", kubernetes.NODE, "node-restriction.kubernetes.io/durward=ready")
    s.d.serve()
    first = kubernetes.Pod(c, "open", "first", volume=False)  # the bridge and its address come with a first pod
    first.create()
    if not first.ready(60):
        raise RuntimeError("no pod: " + c.events("open"))
    first.delete()
    return c, s


def look(s):
    people = held.everybody(s.d.daemon.pid)
    return held.descriptors(people), held.anonymous(people), {p for p, r in s.d.roles() if r in STAY}


def settled(s):
    """When the last pod's keeper has ended."""
    last = [None]
    tap.wait_for(lambda: api.Api(s.d.socket).list()["sandboxes"] == [], 60, 0.2)

    def still():
        now, before = look(s)[0], last[0]
        last[0] = now
        return now == before
    tap.wait_for(still, 30, 0.5)
    return look(s)


def measure(t, n):
    """-> what is printed as JSON, with `missed`."""
    c, s = begin(t)
    timed = kubernetes_timed.Timed(t, s, c, pod)
    timed.rounds(WARM)
    before = settled(s)
    took = timed.rounds(n)
    after = settled(s)
    if None in took["agents"] + took["open"]:
        return {"missed": ["a pod did not ask: %s %s" % (took, c.events("agents")[-1000:])]}
    bound, unbound = kubernetes_timed.summary(took)
    print("\n".join(kubernetes_timed.text(took)))
    pairs = [(a - b) * 1000 for a, b in zip(took["agents"], took["open"])]
    low, high, sure = verdict.interval(pairs)
    more_ms = statistics.median(pairs)
    print("more, by pairs: median %+.1f ms [%+.1f to %+.1f, %.0f %%] (bar %+.0f)" % (more_ms, low, high, 100 * sure, BAR_MS))
    grown = {k: after[1][k] - before[1][k] for k in STAY if after[1][k] - before[1][k] > GROWTH_KIB}
    more = {k: after[0][k] - before[0][k] for k in STAY if after[0][k] - before[0][k] > GROWTH_FDS}
    found = {"pods": 2 * n, "bound_ms": bound, "unbound_ms": unbound, "more_ms": [round(x, 1) for x in (more_ms, low, high)], "ratio": round(bound / unbound, 3),
             "fds": [before[0], after[0]], "memory_kib": [before[1], after[1]]}
    found["missed"] = [x for x, bad in (("more_ms", more_ms > BAR_MS), ("descriptors %s" % more, more), ("memory %s" % grown, grown),
                                        ("a role has started anew", before[2] != after[2])) if bad]
    return found
