#!/usr/bin/python3 -B
"""Several nodes of a real Kubernetes, each with its own Durward: a changed Policy reaches all of them, what is taken out of it is
taken away within a second, and a node that is cut off goes on with what it holds, never beyond it, until it is back.

`make kubernetes-test KUBERNETES=FOLDER NODES=3` runs it (DURWARD_KUBERNETES, DURWARD_KUBERNETES_NODES)."""
import collections
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, kubernetes, scene, tap  # noqa: E402
from harness.kubernetes import Pod  # noqa: E402
from harness.kubernetes_node import Node, listening_at  # noqa: E402
from harness.kubernetes_objects import Keepers, binding, change, last_use, manifest, policy  # noqa: E402

NODES = int(os.environ.get("DURWARD_KUBERNETES_NODES", "1"))
AWAY_S = 8      # a node, from all others
REVOKED_S = 1   # bar
RETURNED_S = 3  # bar, from the link's return
# Each path is asked once, over connections that stay; what follows the pod's name is a number. The second is never allowed.
LOAD = """
import http.client, itertools, os, time
me, open_ = os.environ["HOSTNAME"], {}
for n in itertools.count(1):
    for host, path in (("api.github.com", "/repos/acme/%s/%d"), ("api.github.com", "/repos/acme/secret/%s/%d"), ("deps.example.com", "/%s/%d")):
        try:
            c = open_.get(host) or open_.setdefault(host, http.client.HTTPSConnection(host, timeout=3))
            c.request("GET", path % (me, n))
            c.getresponse().read()
        except (OSError, http.client.HTTPException):
            open_.pop(host).close()
    time.sleep(0.02)
"""
KEYED = {"allow": "api.github.com/repos/acme/**", "with": {"bearer": "github"}}
NEVER = {"deny": "api.github.com/repos/acme/secret/**"}
PLAIN = {"allow": scene.PLAIN}


class Machine:
    """A node, its Durward, what brings it its policies, and its pod. node: None is the cluster's own."""

    def __init__(self, t, s, c, node):
        self.c, self.node, self.name = c, node, node.name if node else kubernetes.NODE
        self.d = s.d if node is None else durward.Durward(t, self.name)
        if node:
            self.d.ca, self.d.secrets, self.d.policies, self.d.resolve = s.d.ca, s.d.secrets, s.d.policies, s.d.resolve
            self.d.prefix = node.enter
            for o in (s.github, s.plain):
                o.also(listening_at(node.holder.pid, "127.0.0.1", o.port))
        self.d.extra["node"] = {"namespaces": {}, "unbound": ["kube-system"], "objects": "/run/objects/objects.json"}
        self.keepers = Keepers(t, self.d, c, node)
        self.pod = Pod(c, "bound", "load-" + self.name, nodeName=self.name, container={
            "readinessProbe": None, "env": [{"name": "LOAD", "value": LOAD}],
            "command": ["/bin/sh", "-c", "test -r /etc/durward/env && . /etc/durward/env; exec python3 -c \"$LOAD\""]})

    def begin(self):
        self.d.serve()
        self.keepers.start("node", self.keepers.account("durward-node", "durward-node"), "--node", self.name)

    def came(self, origin, since=0.0):
        """When its pod's requests came, by this process's clock."""
        return [r.time for r in origin.requests if "/load-%s/" % self.name in r.path and r.time > since]

    def wrong(self):
        return self.c.events("bound")[-1500:] + self.keepers.said("node") + self.d.diagnostics()


def goes_on(s, machines, origin, since, seconds=20):
    return tap.wait_for(lambda: all(m.came(origin, since) for m in machines), seconds, 0.02)


def ended(machine, origin, since):
    return last_use(lambda: machine.came(origin, since), since)


def reaches_all(t, s, c, machines):
    began = change(c, "fetcher", NEVER, KEYED, PLAIN)
    if t.ok(goes_on(s, machines, s.plain, began), "a rule that is added counts on all of %d nodes" % len(machines), *[m.wrong() for m in machines]):
        t.diag("what was added was first used after %s s" % ", ".join("%.2f" % (m.came(s.plain, began)[0] - began) for m in machines))


def revoked(t, s, c, machines, rounds=5):
    took = collections.defaultdict(list)
    for _ in range(rounds):
        began = change(c, "fetcher", NEVER, PLAIN)
        for m in machines:
            took[m.name].append(ended(m, s.github, began))
        began = change(c, "fetcher", NEVER, KEYED, PLAIN)
        if not t.ok(goes_on(s, machines, s.github, began), "what is given back counts again", *[m.wrong() for m in machines]):
            return
    worst = {k: max((x if x is not None else 99 for x in v)) for k, v in took.items()}
    t.ok(all(x <= REVOKED_S for x in worst.values()), "what is taken out of a Policy is used for at most %d s on each of %d nodes" % (
        REVOKED_S, len(machines)), str(dict(took)))
    t.diag("revocation, the last use after, worst of %d: %s" % (rounds, ", ".join("%s %.2f s" % x for x in sorted(worst.items()))))


def partitioned(t, s, c, machines):
    away, here = machines[-1], machines[:-1]
    cut = time.time()
    t.cleanup(lambda: away.node.cut(False))
    away.node.cut()
    began = change(c, "fetcher", NEVER, PLAIN)
    late = [ended(m, s.github, began) for m in here]
    t.ok(all(x is not None and x <= REVOKED_S for x in late), "a node is cut off: the others lose at once what is taken away", str(late))
    tap.wait_for(lambda: time.time() - began > AWAY_S, AWAY_S + 1, 0.1)
    t.ok([x for x in away.came(s.github, began) if x > began + AWAY_S - 2], "the one that is cut off goes on with what it holds", away.wrong())
    back = time.time()
    away.node.cut(False)
    took = ended(away, s.github, back)
    t.ok(took is not None and took <= RETURNED_S, "back again, it loses it within %d s" % RETURNED_S, str(took), away.wrong())
    t.diag("cut off for %.0f s; the last use %s s after its return" % (back - cut, "%.2f" % took if took is not None else "more than 15"))
    t.ok(goes_on(s, [away], s.plain, time.time()), "and has what is left", away.wrong())


def accounted(t, s, machines):
    came = collections.Counter((o.names[0], r.path) for o in (s.github, s.plain) for r in o.requests)
    known = collections.Counter((r["authority"].split(":")[0], r["path"]) for m in machines for r in m.d.kinds("admitted"))
    t.ok(sum(came.values()) > 100 and not came - known, "0 of %d requests arrived without their record" % sum(came.values()),
         *list((came - known).items())[:5])
    beyond = [r.path for r in s.github.requests if "/secret/" in r.path or not r.path.startswith("/repos/acme/load-")]
    wrong = scene.one_right(s.github, s.github_credential)
    t.ok(not beyond and not wrong, "0 beyond the policy, and each with the one right credential", *(beyond + wrong)[:5])
    for m in machines:
        mine = {r["path"] for r in m.d.kinds("admitted")}
        t.ok(mine and all("/load-%s/" % m.name in x for x in mine), "%s: its log has its own pod's requests, and no others" % m.name, str(mine)[:300])
        r = m.d.command("audit", "verify", m.d.audit_dir, timeout=120)
        t.eq(r.returncode, 0, "%s: and verifies" % m.name) or t.diag(r.stdout + r.stderr)
    s.d.origins.clear()  # or one log alone would be held against all that came


def test(t):
    kubernetes.needed()
    if NODES < 2:
        raise tap.Skip("DURWARD_KUBERNETES_NODES does not say how many nodes (make kubernetes-test NODES=3)")
    c = kubernetes.Cluster(t)
    nodes = [Node(c, i) for i in range(2, NODES + 1)]
    t.ok(tap.wait_for(lambda: all(n.ready() for n in nodes), 90, 0.3), "%d nodes are ready" % NODES, *[c.log("kubelet-" + n.name) for n in nodes])
    s = scene.Scene(t)
    os.makedirs("/run/durward", 0o700)
    for ns in ("durward-node", "durward", "bound"):
        c.namespace(ns)
    code, said = c.apply(*manifest("node-objects.yaml"))
    t.eq(code, 0, "the API server takes the definitions") or t.diag(said)
    t.ok(tap.wait_for(lambda: c.apply(policy("fetcher", [NEVER, KEYED]), binding("fetchers", "fetcher", "bound"))[0] == 0, 20, 0.3), "a policy and its binding")
    machines = [Machine(t, s, c, n) for n in [None] + nodes]
    began = time.time()
    for m in machines:
        m.begin()
        said = m.pod.create()
        t.ok(said is None, "a pod for %s" % m.name, said)
    if not t.ok(goes_on(s, machines, s.github, began, 90), "the pod of each node asks, with its credential", *[m.wrong() for m in machines]):
        return
    t.part(reaches_all, t, s, c, machines)
    t.part(revoked, t, s, c, machines)
    t.part(partitioned, t, s, c, machines)
    for m in machines:
        t.ok(m.pod.delete(), "%s: its pod ends" % m.name)
        m.d.stop()
    t.part(accounted, t, s, machines)
    s.clean(what="pods of several nodes")


tap.run(test, timeout=240)
