#!/usr/bin/python3 -B
"""kubernetes-sigs/agent-sandbox with its controller as it is: sandboxes, templates, warm pools and claims, whose pods have the gate of their
namespace's policy. What agent-sandbox#818 and #1045 ask, of the objects of agent-sandbox itself.

DURWARD_AGENT_SANDBOX names a folder with its sources, which no registry has; the controller is built there by Go.
`make kubernetes-test KUBERNETES=FOLDER AGENT_SANDBOX=FOLDER` runs it."""
import glob
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, kubernetes, scan, scene, tap  # noqa: E402
from harness.kubernetes import NODE_IP  # noqa: E402
from harness.kubernetes_objects import manifest  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

GET = "curl -sS -m 10 -o /dev/null -w '%%{http_code}' %s 2>/dev/null"
CONTROLLER = ["--extensions", "--enable-webhook=false", "--manage-webhook-certs=false", "--leader-elect=false", "--metrics-bind-address=0",
              "--health-probe-bind-address=0"]


def built(t):
    """The controller's program; it is built before the test leaves the host's network."""
    kubernetes.needed()
    sources = os.environ.get("DURWARD_AGENT_SANDBOX")
    if not sources:
        raise tap.Skip("DURWARD_AGENT_SANDBOX does not say where the sources of kubernetes-sigs/agent-sandbox are")
    if yaml is None or not shutil.which("go"):
        raise tap.Skip("python3-yaml or go is not there")
    program = t.path("agent-sandbox-controller")
    r = subprocess.run(["go", "build", "-o", program, "./cmd/agent-sandbox-controller"], cwd=sources, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if r.returncode:
        raise tap.Skip("the controller is not built: %s" % r.stdout[-500:])
    return sources, program


class Objects:
    """Of agent-sandbox, in the version that is stored."""

    def __init__(self, t, c, sources):
        self.t, self.c, self.versions = t, c, {}
        found = []
        for path in sorted(glob.glob(os.path.join(sources, "k8s/crds/*.yaml"))):
            with open(path) as f:
                found.append(yaml.safe_load(f))
        for x in found:
            x["spec"]["conversion"] = {"strategy": "None"}  # its webhook is of those who have objects of another version
            self.versions[x["spec"]["names"]["kind"]] = "%s/%s" % (x["spec"]["group"], next(v["name"] for v in x["spec"]["versions"] if v["storage"]))
        code, said = c.kubectl("apply", "--server-side", "-f", "-", stdin="---\n".join(yaml.safe_dump(x) for x in found))
        t.eq(code, 0, "the API server takes agent-sandbox's definitions: %s" % ", ".join(sorted(set(self.versions.values())))) or t.diag(said)
        names = [x["metadata"]["name"] for x in found]
        t.ok(tap.wait_for(lambda: all(c.condition(c.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + x)[1], "Established") for x in names), 30, 0.2),
             "and knows them")

    def apply(self, kind, name, **spec):
        one = {"apiVersion": self.versions[kind], "kind": kind, "metadata": {"name": name, "namespace": "agents"}, "spec": spec}
        return tap.wait_for(lambda: (lambda r: r if r[0] == 0 else None)(self.c.apply(one)), 20, 0.3) or self.c.apply(one)

    def delete(self, kind, name):
        self.c.kubectl("delete", "%s.%s" % (kind.lower(), self.versions[kind].split("/")[0]), name, "-n", "agents", "--wait=false")

    def pods(self):
        return [p["metadata"]["name"] for p in self.c.items("/api/v1/namespaces/agents/pods") if "deletionTimestamp" not in p["metadata"]]

    def pod(self, name):
        one = kubernetes.Pod(self.c, "agents", name)
        return one


def template(**more):
    container = {"name": "c", "image": "localhost/agent:1", "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", "exec python3 -m http.server 8080 --directory /usr"],
                 "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
                 "volumeMounts": [{"name": "durward", "mountPath": "/etc/durward", "readOnly": True}]}
    return {"metadata": {"labels": {"app": "agent"}}, "spec": dict({
        "containers": [container], "automountServiceAccountToken": False, "enableServiceLinks": False, "dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "nodeSelector": {"node-restriction.kubernetes.io/durward": "ready"}, "terminationGracePeriodSeconds": 0, "volumes": [{"name": "durward", "emptyDir": {}}]}, **more)}


def status(pod, words):
    return pod.sh(GET % words)[-3:]


def rows(s):
    return {r["labels"]["kubernetes.pod"]: (r["state"], r["policy"]) for r in api.Api(s.d.socket).list()["sandboxes"]}


def held(t, s, pod, what):
    """What 818 and 1045 ask, of this pod."""
    t.eq(rows(s).get(pod.name), ("running", "coder"), "%s: its pod is a sandbox of its namespace's policy" % what)
    t.has(pod.sh("curl -sS -m 10 https://api.github.com/user"), '"login": "octo"', "%s: credentials outside the pod: it is put in" % what)
    t.eq([status(pod, x) for x in ("https://api.github.com/gists", "-X DELETE https://api.github.com/user", "https://api.github.com/repos/acme/secret/x")],
         ["403"] * 3, "%s: path and method" % what)
    t.has(pod.sh("curl -sS -m 5 https://other.example.net/"), "Could not resolve", "%s: names that no rule allows do not resolve" % what)
    t.ok(all(status(pod, "-k -m 3 " + x) in ("403", "000") for x in ("https://%s:6443/version" % NODE_IP, "http://169.254.169.254/latest/", "http://93.184.216.34/")),
         "%s: default deny: API server, metadata and the internet are closed" % what)
    for pid in pod.processes():
        scan.scan_process(pid, s.scanner, "process %d of the pod" % pid)
    t.ok(not s.scanner.hits, "%s: 0 copies of a secret in the pod" % what, *["%s as %s in %s" % h for h in s.scanner.hits])


def sandbox(t, s, c, o):
    began = time.time()
    code, said = o.apply("Sandbox", "one", podTemplate=template())
    t.eq(code, 0, "a Sandbox") or t.diag(said)
    pod = o.pod("one")
    if not t.ok(tap.wait_for(lambda: pod.ready(1), 60, 0.2), "its pod runs", str(o.pods()), c.events("agents"), c.log("agent-sandbox")):
        return
    t.diag("%.1f s after it was made" % (time.time() - began))
    held(t, s, pod, "a Sandbox")
    code, said = c.kubectl("label", "pod", "-n", "agents", "one", "durward-policy=reader", "app=other", "--overwrite")
    t.eq((code, status(pod, "https://api.github.com/user")), (0, "200"), "an identity that cannot be forged: changed labels change nothing")
    o.delete("Sandbox", "one")
    t.ok(tap.wait_for(lambda: "one" not in o.pods() and "one" not in rows(s), 40, 0.2), "it is deleted, and its gate with it")
    code, said = o.apply("Sandbox", "around", podTemplate=template(hostNetwork=True))
    t.eq(code, 0, "a Sandbox that asks for the node's network") or t.diag(said)
    t.ok(tap.wait_for(lambda: "in the node's network there is no gate" in c.log("agent-sandbox", 20000) + str(o.c.items("/apis/%s/namespaces/agents/sandboxes" % o.versions["Sandbox"])), 20, 0.3)
         and "around" not in o.pods(), "gets no pod, and is told why", c.log("agent-sandbox"))
    o.delete("Sandbox", "around")


def pool(t, s, c, o):
    """Pods that wait for a claim have their gate before."""
    t.eq(o.apply("SandboxTemplate", "coder", podTemplate=template())[0], 0, "a SandboxTemplate")
    code, said = o.apply("SandboxWarmPool", "coders", replicas=2, sandboxTemplateRef={"name": "coder"})
    t.eq(code, 0, "a SandboxWarmPool of two") or t.diag(said)
    t.ok(tap.wait_for(lambda: len(o.pods()) == 2 and all(o.pod(x).ready(1) for x in o.pods()) and len(rows(s)) == 2, 60, 0.2), "two pods wait, each with its gate",
         str(o.pods()), str(rows(s)), c.log("agent-sandbox"))
    waiting = set(o.pods())
    began = time.time()
    code, said = o.apply("SandboxClaim", "mine", warmPoolRef={"name": "coders"})
    t.eq(code, 0, "a SandboxClaim") or t.diag(said)
    path = "/apis/%s/namespaces/agents/sandboxclaims/mine" % o.versions["SandboxClaim"]
    got = lambda: ((c.ask("GET", path)[1] or {}).get("status") or {}).get("sandbox", {}).get("name")  # noqa: E731
    name = tap.wait_for(got, 40, 0.05)
    if not t.ok(name, "it is given one", str(c.ask("GET", path)), c.log("agent-sandbox")):
        return
    pod = next((o.pod(x) for x in sorted(waiting & set(o.pods())) if x.startswith(name) or name.startswith(x)), o.pod(name))
    took = time.time() - began
    t.ok(pod.name in waiting, "of those that waited", "%s of %s" % (name, waiting))
    t.eq(status(pod, "https://api.github.com/user"), "200", "which asks with its credential at once")
    t.diag("claimed %.2f s after it was asked for" % took)
    held(t, s, pod, "a claimed one")
    o.delete("SandboxClaim", "mine")
    o.delete("SandboxWarmPool", "coders")
    t.ok(tap.wait_for(lambda: not o.pods() and not rows(s), 60, 0.3), "all of them end, and no gate is left", str(o.pods()), str(rows(s)))


def test(t):
    sources, program = built(t)
    c = kubernetes.Cluster(t)
    s = scene.Scene(t)
    os.makedirs("/run/durward", 0o700)
    s.d.extra["node"] = {"namespaces": {"agents": "coder"}, "unbound": ["kube-system"]}
    s.rules[0]["access"] = "read-only"
    c.namespace("agents")
    c.kubectl("label", "node", kubernetes.NODE, "node-restriction.kubernetes.io/durward=ready")
    code, said = c.apply(*manifest("node-admission.yaml"))
    t.eq(code, 0, "the admission manifest is applied") or t.diag(said)
    o = Objects(t, c, sources)
    s.d.serve()
    asked = "/apis/%s/%s"
    tap.wait_for(lambda: all(c.ask("GET", asked % (v, k.lower() + ("es" if k.endswith("x") else "s")))[0] == 200 for k, v in o.versions.items()), 30, 0.2)
    c.start("agent-sandbox", program, "--kubeconfig=" + c.users["admin"], *CONTROLLER)
    t.part(sandbox, t, s, c, o)
    t.part(pool, t, s, c, o)
    tap.stop(c.running["agent-sandbox"])
    s.clean(what="pods of agent-sandbox")


tap.run(test, timeout=300)
