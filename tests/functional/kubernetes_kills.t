#!/usr/bin/python3 -B
"""kill -9 of whatever runs on a Kubernetes node and in its control plane, by chance, while pods ask all the time: no byte reaches an origin without its
record, none beyond the policy or without the one right credential, and the log verifies afterwards; one that is cut does not.

`make kubernetes-kills KUBERNETES=FOLDER KILLS=N` runs it (DURWARD_KUBERNETES, DURWARD_KUBERNETES_KILLS)."""
import collections
import glob
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, kubernetes, scene, tap  # noqa: E402
from harness.kubernetes import Pod  # noqa: E402
from harness.kubernetes_objects import Keepers, binding, manifest, policy  # noqa: E402

KILLS = int(os.environ.get("DURWARD_KUBERNETES_KILLS", "24"))
ROLES = ("gate", "injector", "dialer", "signer", "vault", "logger", "controller", "builder")
OTHERS = ("daemon", "keeper", "objects")
CLUSTER = ("containerd", "kubelet", "apiserver", "etcd")
RULES = [{"allow": "api.github.com/user", "with": {"bearer": "github"}}, {"allow": "api.github.com/repos/acme/**", "with": {"bearer": "github"}},
         {"deny": "api.github.com/repos/acme/secret/**"}, {"allow": scene.PLAIN}]
# Each path is asked once. What is denied is asked in between.
LOAD = """
test -r /etc/durward/env && . /etc/durward/env
n=0
while :; do
    n=$((n + 1))
    curl -sS -m 4 -o /dev/null https://api.github.com/repos/acme/$HOSTNAME/$n
    curl -sS -m 4 -o /dev/null https://api.github.com/repos/acme/secret/$n
    curl -sS -m 4 -o /dev/null -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user/emails
    curl -sS -m 4 -o /dev/null https://deps.example.com/$HOSTNAME/$n
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


def kill(s, c, k, what):
    """-> how many processes that was"""
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
    return len(pids)


class Bringer(Keepers):
    """What brings the cluster's policies to the node."""

    def begin(self):
        self.node = self.start("node", self.token, "--node", kubernetes.NODE)


def killed(t, s, c, k):
    counts, slow = collections.Counter(), []
    for i in range(KILLS):
        what = random.choice(ROLES + OTHERS + CLUSTER)
        n = kill(s, c, k, what)
        counts[what] += n
        began = time.monotonic()
        if not goes_on(s, 40):
            slow.append("%s (kill %d)" % (what, i))
        took = time.monotonic() - began
        time.sleep(max(0.0, 1.5 - took))  # what falls again and again within a second is given up, as it should be
    t.ok(not slow, "after each of %d kills requests arrive again" % KILLS, *slow, s.d.diagnostics() if slow else "")
    t.diag("killed: %s" % dict(counts))
    t.tally(kills=sum(counts.values()))


def accounted(t, s):
    came = collections.Counter((o.names[0], r.path) for o in (s.github, s.plain) for r in o.requests)
    known = collections.Counter((r["authority"].split(":")[0], r["path"]) for r in s.d.kinds("admitted"))
    t.ok(sum(came.values()) > 2 * KILLS, "the load went on: %d requests arrived" % sum(came.values()))
    t.ok(not came - known, "0 bytes reached an origin without their record", *list((came - known).items())[:5])
    beyond = [r.path for r in s.github.requests if r.path.startswith("/repos/acme/secret") or r.path.startswith("/user")]
    wrong = scene.one_right(s.github, s.github_credential)
    t.ok(not beyond and not wrong, "0 beyond the policy, and each with the one right credential", *(beyond + wrong)[:5])
    t.tally(arrived=sum(came.values()), unlogged=sum((came - known).values()))


def verified(t, s):
    r = s.d.command("audit", "verify", s.d.audit_dir, timeout=120)
    t.eq(r.returncode, 0, "the log verifies") or t.diag(r.stdout + r.stderr)
    copy = t.path("cut")
    shutil.copytree(s.d.audit_dir, copy)
    largest = max((p for p in glob.glob(copy + "/**/*", recursive=True) if os.path.isfile(p) and "audit" in os.path.basename(p)), key=os.path.getsize)
    with open(largest, "r+b") as f:
        data = f.read()
        f.seek(0)
        f.write(data[:len(data) // 3] + data[len(data) // 3 + 4096:])
        f.truncate()
    r = s.d.command("audit", "verify", copy, timeout=120)
    t.ok(r.returncode != 0, "and one of which a piece is missing does not", r.stdout)


def test(t):
    c = kubernetes.Cluster(t)
    s = scene.Scene(t)
    os.makedirs("/run/durward", 0o700)
    s.d.extra["node"] = {"namespaces": {}, "unbound": ["kube-system"], "objects": "/run/objects/objects.json"}
    for ns in ("agents", "durward-node", "durward"):
        c.namespace(ns)
    c.apply(*manifest("node-objects.yaml"))
    tap.wait_for(lambda: c.apply(policy("loaded", RULES, env=s.env), binding("loaded", "loaded", "agents"))[0] == 0, 20, 0.3)
    k = Bringer(t, s.d, c)
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
    t.part(accounted, t, s)
    t.part(verified, t, s)
    s.clean(what="pods under kills")


tap.run(test, timeout=180 + 12 * KILLS)
