#!/usr/bin/python3 -B
"""kill -9 of whatever runs on a Kubernetes node and in its control plane, by chance, a node that is cut off from its API server, and clocks that jump,
while pods ask all the time: no byte reaches an origin without its record, none beyond the policy or its budget or without the one right credential,
what is taken out of a policy is used for at most a second, and the log verifies afterwards; one that is cut, wherever, does not.

`make kubernetes-kills KUBERNETES=FOLDER KILLS=N` runs it (DURWARD_KUBERNETES, DURWARD_KUBERNETES_KILLS)."""
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, faulty, kubernetes, scene, tap  # noqa: E402
from harness.kubernetes import Pod  # noqa: E402
from harness.kubernetes_objects import Keepers, binding, change, last_use, manifest, policy  # noqa: E402

KILLS = int(os.environ.get("DURWARD_KUBERNETES_KILLS", "24"))
ROLES = ("gate", "injector", "dialer", "signer", "vault", "logger", "controller", "builder")
OTHERS = ("daemon", "keeper", "objects")
CLUSTER = ("containerd", "kubelet", "apiserver", "etcd")
HOUR, START = 3600, 6 * 3600  # the daemon's clock stands so far ahead of ours, so that it can be put back
BUDGET = 30                   # of a daemon's life: a restart begins a new count, as durward.yaml(5) says
EACH = 8                      # kills, and then a revocation
CUTS = 24                     # of the log, each of which is found
REVOKED_S = 1                 # bar
KEYED = {"allow": "api.github.com/repos/acme/**", "with": {"bearer": "github"}}
RULES = [{"allow": scene.PLAIN + "/budget/**", "budget": {"requests": "%d/d" % BUDGET}}, {"allow": "api.github.com/user", "with": {"bearer": "github"}},
         {"deny": "api.github.com/repos/acme/secret/**"}, {"allow": scene.PLAIN}]
# Each path is asked once. What is denied is asked in between. -k: the leaves are valid by the daemon's clock, which is put.
LOAD = """
test -r /etc/durward/env && . /etc/durward/env
n=0
while :; do
    n=$((n + 1))
    curl -ksS -m 4 -o /dev/null https://api.github.com/repos/acme/$HOSTNAME/$n
    curl -ksS -m 4 -o /dev/null https://api.github.com/repos/acme/secret/$n
    curl -ksS -m 4 -o /dev/null -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user/emails
    curl -ksS -m 4 -o /dev/null https://deps.example.com/$HOSTNAME/$n https://deps.example.com/budget/$HOSTNAME/$n
done 2>/dev/null
"""


def named(name):
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/comm" % pid) as f:
                if f.read().strip() == name:
                    yield pid
        except OSError:
            pass


def arrived(s):
    return sum(1 for r in s.github.requests if r.path.startswith("/repos/acme/"))


def goes_on(s, seconds):
    """Whether credentialed requests arrive again."""
    had = arrived(s)
    return bool(tap.wait_for(lambda: arrived(s) > had + 1, seconds, 0.05))


def cut_off(s, c):
    """The node from its API server, for some seconds; what the pods ask goes on."""
    where = ["INPUT", "-p", "tcp", "--dport", "6443", "-j", "DROP"]
    subprocess.run(["iptables", "-I"] + where, check=True)
    try:
        return goes_on(s, 10) and (time.sleep(random.uniform(1, 6)) or goes_on(s, 10))
    finally:
        subprocess.run(["iptables", "-D"] + where, check=True)


def kill(s, c, k, what):
    """-> how many processes that was"""
    if what == "partition":
        if not cut_off(s, c):
            k.stopped.append("cut off from the API server")
        return 1
    if what == "clock":
        k.plan.clock(START + random.randint(-5, 3) * HOUR)
        return 1
    if what in CLUSTER:
        c.kill(what)
        {"containerd": c.start_containerd, "kubelet": c.begin_kubelet, "apiserver": c.start_apiserver, "etcd": c.start_etcd}[what]()
        return 1
    if what == "objects":
        k.node.kill()
        k.node.wait()
        k.begin()
        return 1
    if what == "daemon":
        pids = [s.d.daemon.pid] + [p for p, _ in s.d.roles()]
    else:
        pids = list(named("durward-pod")) if what == "keeper" else [p for p, r in s.d.roles() if r == what]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    if what == "daemon":
        s.d.daemon.wait()
        s.d.serve()
        k.lives += 1
    return len(pids)


class Bringer(Keepers):
    """What brings the cluster's policies to the node; and what has become of it."""

    lives, plan = 1, None

    def __init__(self, *args):
        super().__init__(*args)
        self.stopped, self.revoked, self.marks = [], [], 0

    def reaches(self):
        """Whether what changes comes to the node."""
        self.marks += 1
        mark = "mark%d.example.com" % self.marks
        change(self.c, "loaded", {"allow": mark}, KEYED, *RULES)

        def came():
            with open("/run/objects/objects.json") as f:
                return mark in f.read()
        return tap.wait_for(came, 30, 0.02)

    def begin(self):
        self.node = self.start("node", self.token, "--node", kubernetes.NODE)


def revoke(s, c, k):
    """The rule of the credential goes, and comes back."""
    if not tap.wait_for(c.answers, 60, 0.1):
        return k.stopped.append("the API server")
    if not k.reaches():
        return k.stopped.append("what brings policies")
    began = change(c, "loaded", *RULES)
    came = lambda: [r.time for r in s.github.requests if r.path.startswith("/repos/acme/") and r.time > began]  # noqa: E731
    k.revoked.append(last_use(came, began))
    change(c, "loaded", KEYED, *RULES)
    if not goes_on(s, 20):
        k.stopped.append("after a revocation")


def killed(t, s, c, k):
    counts = collections.Counter()
    for i in range(KILLS):
        what = random.choice(ROLES + OTHERS + CLUSTER + ("partition",) + (("clock",) if k.plan else ()))
        n = kill(s, c, k, what)
        counts[what] += n
        began = time.monotonic()
        if not goes_on(s, 40):
            k.stopped.append("%s (kill %d)" % (what, i))
        if i % EACH == EACH - 1:
            revoke(s, c, k)
        took = time.monotonic() - began
        time.sleep(max(0.0, 1.5 - took))  # what falls again and again within a second is given up, as it should be
    t.ok(not k.stopped, "after each of %d kills requests arrive again, and while the node is cut off they go on" % KILLS, *k.stopped, s.d.diagnostics() if k.stopped else "")
    t.ok(k.revoked and all(x is not None and x <= REVOKED_S for x in k.revoked), "what is taken out of the Policy in between is used for at most %d s" % REVOKED_S, str(k.revoked))
    t.diag("revocation, the last use after: %s s" % ", ".join("%.2f" % (x if x is not None else 99) for x in k.revoked))
    t.diag("killed: %s" % dict(counts))
    t.tally(kills=sum(counts.values()))


def accounted(t, s, k):
    came = collections.Counter((o.names[0], r.path) for o in (s.github, s.plain) for r in o.requests)
    known = collections.Counter((r["authority"].split(":")[0], r["path"]) for r in s.d.kinds("admitted"))
    t.ok(sum(came.values()) > 2 * KILLS, "the load went on: %d requests arrived" % sum(came.values()))
    t.ok(not came - known, "0 bytes reached an origin without their record", *list((came - known).items())[:5])
    beyond = [r.path for r in s.github.requests if r.path.startswith("/repos/acme/secret") or r.path.startswith("/user")]
    spent = sum(r.path.startswith("/budget/") for r in s.plain.requests)
    t.ok(BUDGET <= spent <= BUDGET * k.lives, "0 beyond a budget of %d requests: %d in %d lives of the daemon" % (BUDGET, spent, k.lives))
    wrong = scene.one_right(s.github, s.github_credential)
    t.ok(not beyond and not wrong, "0 beyond the policy, and each with the one right credential", *(beyond + wrong)[:5])
    t.tally(arrived=sum(came.values()), unlogged=sum((came - known).values()))


def verified(t, s):
    r = s.d.command("audit", "verify", s.d.audit_dir, timeout=120)
    t.eq(r.returncode, 0, "the log verifies") or t.diag(r.stdout + r.stderr)
    found, lines = [], s.d.audit_files()
    for i in range(CUTS):
        copy = t.path("cut%d" % i)
        shutil.copytree(s.d.audit_dir, copy)
        path = os.path.join(copy, os.path.relpath(random.choice(lines), s.d.audit_dir))
        with open(path, "r+b") as f:
            data = f.read()
            at, n = random.randrange(len(data) - 1), random.choice((1, 64, 4096))
            f.seek(0)
            f.write(data[:at] + data[at + n:])
            f.truncate()
        if s.d.command("audit", "verify", copy, timeout=120).returncode == 0:
            found.append("%s: %d bytes at %d of %d" % (os.path.basename(path), n, at, len(data)))
        shutil.rmtree(copy)
    t.ok(not found, "and one of which a piece is missing, at any of %d places, does not" % CUTS, *found)


def test(t):
    try:
        plan = faulty.stage(t)
        plan.clock(START)
    except tap.Skip as e:
        plan = t.skip("clocks that jump", str(e))
    c = kubernetes.Cluster(t)
    s = scene.Scene(t)
    os.makedirs("/run/durward", 0o700)
    s.d.extra["node"] = {"namespaces": {}, "unbound": ["kube-system"], "objects": "/run/objects/objects.json"}
    for ns in ("agents", "durward-node", "durward"):
        c.namespace(ns)
    c.apply(*manifest("node-objects.yaml"))
    tap.wait_for(lambda: c.apply(policy("loaded", [KEYED] + RULES, env=s.env), binding("loaded", "loaded", "agents"))[0] == 0, 20, 0.3)
    k = Bringer(t, s.d, c)
    k.plan = plan
    k.token = k.account("durward-node", "durward-node")
    k.begin()
    s.d.serve()
    pods = [Pod(c, "agents", "load%d" % i, container={"readinessProbe": None, "command": ["/bin/sh", "-c", LOAD]}) for i in range(2)]
    for pod in pods:
        pod.create()
    if not t.ok(goes_on(s, 60), "pods ask under load", c.events("agents"), s.d.diagnostics()):
        return
    t.part(killed, t, s, c, k)
    t.ok(tap.wait_for(c.answers, 60, 0.2), "the API server is there")
    for pod in pods:
        pod.delete()
    t.ok(tap.wait_for(lambda: api.Api(s.d.socket).list()["sandboxes"] == [], 60, 0.2), "pods end, and their sandboxes with them")
    s.d.stop()
    t.part(accounted, t, s, k)
    t.part(verified, t, s)
    s.clean(what="pods under kills")


tap.run(test, timeout=180 + 12 * KILLS)
