#!/usr/bin/python3 -B
"""Durward installed in a real Kubernetes as users install it: by kustomize and by Helm, from the manifests of the tree and an
image of this build. The plugin comes into the node's list and stays there, the node is labelled, policies and pods work,
updates hold, and taking it away leaves the node as it was.

`make kubernetes-test KUBERNETES=FOLDER` runs it; Helm's part needs `helm` in that folder (the Go module helm.sh/helm/v3)."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, engine, kubernetes, scan, scene, tap  # noqa: E402
from harness.kubernetes import LIST, NETWORK, NODE, NODE_IP, Pod  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

DEPLOY = os.path.join(durward.TOP, "deploy/kubernetes")
OWN = os.path.join(os.path.dirname(LIST), "0-durward.conflist")
LEAK = 9999
LABEL = "node-restriction.kubernetes.io/durward"
PLUGIN = "/run/cni/bin/durward-cni"
API = [{"name": "KUBERNETES_SERVICE_HOST", "value": NODE_IP}, {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"}]
STATIC = ("durward-cni", "durward-init")
TRUST = "/var/lib/durward/test-ca.pem"
GET = "curl -sS -m 10 -o /dev/null -w '%%{http_code}' %s 2>/dev/null"
POLICY = {"apiVersion": "durward.internal/v1alpha1", "kind": "Policy", "metadata": {"name": "coder"}, "spec": {
    "env": {"GITHUB_TOKEN": "{{placeholder github}}"}, "rules": [{"allow": "api.github.com/user", "with": {"bearer": "github"}}]}}
BINDING = {"apiVersion": "durward.internal/v1alpha1", "kind": "PolicyBinding", "metadata": {"name": "coders"}, "spec": {
    "policy": "coder", "namespaces": ["agents"]}}


def image(c, *tags):
    """What deploy/container makes, of this build and this machine's libraries."""
    stage = os.path.dirname(os.path.dirname(durward.program()))
    files = [os.path.join(where, x) for where, _, names in os.walk(stage) for x in names if os.sep + "share" + os.sep not in where]
    needed = {p for f in files if open(f, "rb").read(4) == b"\x7fELF" and os.path.basename(f) not in STATIC for p in engine.libraries(f)}
    layer = engine.rootfs(files=[(p.lstrip("/"), os.path.realpath(p)) for p in files + sorted(needed)], links=[
        ("usr/bin/durward", os.path.join(stage, "bin/durward")), ("usr/libexec/durward", os.path.join(stage, "libexec/durward")),
        ("bin/chown", "busybox")])
    for tag in tags:
        c.take(kubernetes.image("localhost/durward:" + tag, layer, ["durward"]))


def configuration(s):
    return {"secrets": {"github": {"kubernetes": {"path": "/run/secrets/durward", "key": "github"}, "kind": "github-pat"}},
            "upstream": {"ca": [TRUST], "resolve": s.d.resolve}}


def overlay(t, s, tag):
    """As the how-to has it: the image, the configuration, the folders of this node; and the API server, for want of a kube-proxy."""
    where = t.mkdir("overlay")
    with open(os.path.join(DEPLOY, "node-config.yaml")) as f:
        config = yaml.safe_load(f)
    config.update(configuration(s))
    config["node"]["unbound"].append("open")
    t.write("overlay/durward.yaml", json.dumps(config))
    env = [{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": API}]
    folders = [{"op": "replace", "path": "/spec/template/spec/volumes/%d/hostPath/path" % i, "value": "/run/cni/" + x} for i, x in volumes()]
    objects = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [os.path.relpath(DEPLOY, where)],
               "images": [{"name": "durward", "newName": "localhost/durward", "newTag": tag}],
               "configMapGenerator": [{"name": "durward-config", "namespace": ns, "behavior": "replace", "files": ["durward.yaml"]} for ns in (
                   "durward", "durward-node")],
               "patches": [{"target": {"kind": "DaemonSet"}, "patch": json.dumps(folders + [
                   {"op": "add", "path": "/spec/template/spec/containers/1/env/-", "value": x} for x in API] + [
                   {"op": "add", "path": "/spec/template/spec/containers/2/env", "value": API}])},
                   {"target": {"kind": "Deployment"}, "patch": json.dumps(env)},
                   {"target": {"kind": "ValidatingAdmissionPolicyBinding", "name": "durward-pod.*s$"}, "patch": json.dumps([
                       {"op": "add", "path": "/spec/matchResources/namespaceSelector/matchExpressions/0/values/-", "value": "open"}])}]}
    objects["patches"][-1]["target"]["name"] = "durward-pod(s|-changes|-secrets)"
    t.write("overlay/kustomization.yaml", json.dumps(objects))
    return where


def volumes():
    with open(os.path.join(DEPLOY, "node-install.yaml")) as f:
        node = [x for x in yaml.safe_load_all(f) if x["kind"] == "DaemonSet"][0]
    for i, v in enumerate(node["spec"]["template"]["spec"]["volumes"]):
        if v["name"] in ("bin", "lists"):
            yield i, {"bin": "bin", "lists": "net.d"}[v["name"]]


def listed():
    """What the runtime uses, the first by name."""
    where = os.path.dirname(LIST)
    with open(os.path.join(where, sorted(x for x in os.listdir(where) if x.endswith(".conflist"))[0])) as f:
        return json.load(f)


def has_plugin():
    return listed()["plugins"][-1]["type"] == "durward-cni"


def network_writes(**more):
    """As a network's installer does when it starts."""
    with open(LIST + ".tmp", "w") as f:
        json.dump(dict(NETWORK, plugins=[dict(NETWORK["plugins"][0], **more)]), f)
    os.rename(LIST + ".tmp", LIST)


def labelled(c):
    return c.ask("GET", "/api/v1/nodes/" + NODE)[1]["metadata"]["labels"].get(LABEL) == "ready"


def serve_service(t, c):
    """In place of a kube-proxy: the webhook's Service leads to its pod."""
    at = tap.wait_for(lambda: c.kubectl("get", "service", "-n", "durward", "durward-policies", "-o", "jsonpath={.spec.clusterIP}")[1], 20, 0.2)
    to = tap.wait_for(lambda: c.kubectl("get", "pods", "-n", "durward", "-l", "app=durward-policies", "--field-selector=status.phase=Running",
                                        "-o", "jsonpath={.items[0].status.podIP}")[1].partition("error")[0], 40, 0.3)
    subprocess.run(["iptables", "-t", "nat", "-F", "OUTPUT"], check=True)
    subprocess.run(["iptables", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", at, "--dport", "443", "-j", "DNAT", "--to", to + ":8443"], check=True)


def says(c):
    """What is wrong, for whoever reads the test's output."""
    text = c.kubectl("get", "pods", "-A", "-o", "wide")[1]
    for ns, name in (("durward-node", "daemonset/durward-node"), *(("durward", "deployment/durward-" + x) for x in ("policies", "status", "nodes"))):
        text += c.events(ns)[-1500:] + c.kubectl("logs", "-n", ns, name, "--all-containers", "--tail=8")[1]
    return text[-6000:]


def ready(t, c, how):
    if not t.ok(tap.wait_for(lambda: has_plugin() and labelled(c), 90, 0.3), "%s: the plugin stands in the node's list, and the node is labelled" % how,
                says(c)):
        raise RuntimeError("without an installed Durward there is nothing to try")
    serve_service(t, c)
    t.ok(tap.wait_for(lambda: c.apply(POLICY, BINDING)[0] == 0, 40, 0.5), "%s: a policy is judged by the webhook, and applied" % how, says(c))


def bare(t):
    """The node's copy, where there is nothing else: no library, no loader."""
    where = t.mkdir("bare")
    shutil.copy(PLUGIN, where)
    r = subprocess.run(["/usr/sbin/chroot", where, "/durward-cni"], input='{"cniVersion": "1.0.0"}', stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       env={"CNI_COMMAND": "VERSION"})
    t.has(r.stdout, "supportedVersions", "the plugin runs on a node that has no library of ours")


def refused(t, c):
    bad = dict(POLICY, metadata={"name": "bad"}, spec={"rules": [{"allow": "api.github.com", "with": {"bearer": "githib"}}]})
    code, said = c.apply(bad)
    t.ok(code != 0 and "spec.rules[0]" in said, "one that would not load is refused", said)


def agent(c, name, ns="agents"):
    return Pod(c, ns, name, nodeSelector={LABEL: "ready"})


def works(pod):
    return pod.sh(GET % "https://api.github.com/user")[-3:] == "200"


def runs(t, s, c, pod, how):
    t.ok(pod.ready(60) and tap.wait_for(lambda: works(pod), 20, 0.3), "%s: a bound pod has its gate and the credential" % how, c.events("agents"), says(c))
    got = c.kubectl("get", "policy", "coder", "-o", "jsonpath={.status.pods} {.status.nodes} {.status.accepted}")[1]
    t.ok(tap.wait_for(lambda: c.kubectl("get", "policy", "coder", "-o", "jsonpath={.status.accepted}")[1] == "True", 20, 0.3), "its status says so", got)


def rights(t, c):
    for who in ("durward-node:durward-node", "durward:durward-policies", "durward:durward-status", "durward:durward-nodes"):
        may = [x for x in ("get secrets", "create pods", "delete pods", "patch pods", "create policies.durward.internal", "get configmaps", "delete nodes",
                           "create daemonsets", "patch daemonsets", "create tokenreviews", "create serviceaccounts/token")
               if c.kubectl("auth", "can-i", *x.split(), "-A", "--as=system:serviceaccount:" + who)[0] == 0]
        t.eq(may, [], "%s may do nothing that it has no reason for" % who)
    for who, may in (("policies", ["patch validatingwebhookconfigurations/durward-policies"]), ("status", [
            "list pods", "list policies.durward.internal", "patch policies.durward.internal --subresource=status"])):
        asked = ("patch validatingwebhookconfigurations/durward-policies", "list pods", "list policies.durward.internal",
                 "patch policies.durward.internal --subresource=status", "patch policies.durward.internal", "list nodes", "create events")
        t.eq([x for x in asked if c.kubectl("auth", "can-i", *x.split(), "-A", "--as=system:serviceaccount:durward:durward-" + who)[0] == 0], may,
             "durward-%s may do what its one program does" % who)
    for what, patch in (("a taint", {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}), ("another label", {"metadata": {"labels": {"x": "y"}}}),
                        ("an annotation", {"metadata": {"annotations": {"x": "y"}}}), ("a label's end", {"metadata": {"labels": {"kubernetes.io/os": None}}}),
                        ("a finalizer", {"metadata": {"finalizers": ["example.com/x"]}}),  # with an owner that is not there the node itself would be deleted
                        ("an owner", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]}})):
        code, said = c.ask("PATCH", "/api/v1/nodes/" + NODE, patch, "application/merge-patch+json", "durward:durward-nodes")
        t.ok(code == 422 and "one label of a node" in str(said), "who labels nodes may set one label, and not " + what, str(said))


def secret_outside(t, s, c):
    """Of the node's three programs only the daemon has what the secrets say."""
    found = []
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/cmdline" % pid) as f:
                words = f.read().split("\0")
        except OSError:
            continue
        if words[0].endswith("durward-kubernetes"):
            scan.scan_process(pid, s.scanner, "durward-kubernetes " + words[1])
            found.append(words[1])
    t.ok({"node", "plugin", "status", "review", "nodes"} <= set(found), "the memory of each durward-kubernetes was read", str(found))
    t.ok(not s.scanner.hits, "0 copies of a secret in them", *["%s as %s in %s" % h for h in s.scanner.hits])


def rewritten(t, c):
    """The network's installer writes its list anew, as it does when it starts."""
    watched = Watched()
    network_writes(mtu=1400)
    t.ok(tap.wait_for(lambda: listed()["plugins"][0].get("mtu") == 1400, 5, 0.01), "what a network writes anew is what pods have", says(c))
    network_writes()
    t.ok(tap.wait_for(lambda: "mtu" not in listed()["plugins"][0], 5, 0.01), "and again", says(c))
    t.ok(watched.end() == 0 and watched.looked > 5, "with the plugin behind it throughout", watched.looked)
    had = open(OWN).read()
    pids = [p for p, _ in tap.descendants() if b"\0plugin\0" in open("/proc/%d/cmdline" % p, "rb").read()]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # the second ends with the first
            os.kill(pid, signal.SIGKILL)
    t.ok(pids and tap.wait_for(lambda: labelled(c) and c.kubectl("get", "pods", "-n", "durward-node", "-o", "jsonpath={.items[0].status.containerStatuses[*].ready}")[1]
                               == "true true true", 60, 0.3), "kill -9 of what keeps it: it starts again", says(c))
    t.eq((open(OWN).read(), json.load(open(LIST))), (had, NETWORK), "and nothing is in the list twice")


class Leak(threading.Thread):
    """A listener on the node, where no pod of a gate's comes."""

    def __init__(self, t):
        super().__init__(daemon=True)
        self.came, self.socket = [], socket.create_server((NODE_IP, LEAK), backlog=64)
        t.cleanup(self.socket.close)
        self.start()

    def quiet(self):
        self.came.clear()
        time.sleep(1)  # in which nobody comes
        return not self.came

    def run(self):
        while True:
            try:
                c, peer = self.socket.accept()
            except OSError:
                return
            self.came.append(peer)
            c.close()


KNOCK = "while :; do nc -w 1 %s %d </dev/null; sleep 0.1; done" % (NODE_IP, LEAK)


def tries(c):
    """How often a pod was not started because no Durward answered."""
    return sum(e.get("count") or 1 for e in c.items("/api/v1/namespaces/agents/events") if "does not answer" in e.get("message", ""))


def run_all(c):
    """Durward's own programs in the cluster."""
    found = [x for ns in ("durward", "durward-node") for x in c.items("/api/v1/namespaces/%s/pods" % ns)]
    return len(found) > 3 and all(c.condition(x, "Ready") for x in found)


def booted(t, c):
    """A node that starts: its kubelet starts pods anew as soon as a list of plugins is there, the network writes its own, and Durward comes
    last of all."""
    leak = Leak(t)
    stranger = Pod(c, "open", "stranger", volume=False, container={"command": ["/bin/sh", "-c", KNOCK], "readinessProbe": None})
    stranger.create()
    t.ok(tap.wait_for(lambda: leak.came, 60, 0.1), "a pod without a gate reaches the node", c.events("open"))
    theirs = stranger.address()
    stranger.delete()
    pod = agent(c, "knocks")
    pod.object["spec"]["containers"][0].update(command=["/bin/sh", "-c", KNOCK], readinessProbe=None)
    pod.create()
    t.ok(pod.ready(60) and tap.wait_for(lambda: works(pod), 20, 0.3), "one with a gate has the credential", c.events("agents"))
    tap.wait_for(leak.quiet, 30, 0.1)
    t.ok(pod.address() != theirs, "which has another address")
    held_back(c, True)
    c.crash()
    network_writes()
    t.ok(labelled(c), "the node starts anew within seconds, so that it has its label")
    c.start_containerd()
    c.begin_kubelet()
    t.ok(tap.wait_for(lambda: "does not answer" in c.events("agents"), 60, 0.3), "until Durward runs there a bound pod does not start, and its event says why",
         c.events("agents")[-1500:])
    network_writes(mtu=1400)
    had = tries(c)
    t.ok(tap.wait_for(lambda: tries(c) > had, 90, 0.3), "with a list that the network has written since it is tried again", c.events("agents")[-1500:])
    t.eq((len(leak.came), pod.processes()), (0, []), "it does not start without a gate either, whatever list the network has written")
    held_back(c, False)
    t.ok(tap.wait_for(lambda: labelled(c) and works(pod), 120, 0.5), "then it has its gate again", says(c))
    t.eq(leak.came, [], "0 connections past it")
    t.ok(tap.wait_for(lambda: run_all(c), 180, 0.5), "and all of Durward's own programs run again", says(c))  # one that had no image is tried less and less often
    network_writes()
    pod.delete()


def held_back(c, back):
    """The image of Durward's own, on the node: without it nothing of Durward's starts."""
    name = "localhost/durward:1"
    if back:
        subprocess.run(["ctr", "-n", "k8s.io", "images", "tag", "--force", name, name + "-kept"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ctr", "-n", "k8s.io", "images", "rm", name], check=True, stdout=subprocess.DEVNULL)
    else:
        subprocess.run(["ctr", "-n", "k8s.io", "images", "tag", "--force", name + "-kept", name], check=True, stdout=subprocess.DEVNULL)


def alone(t, s, c, pod):
    """The DaemonSet is deleted, and nothing else."""
    c.kubectl("delete", "daemonset", "-n", "durward-node", "durward-node", "--wait=true")
    t.ok(tap.wait_for(lambda: not c.items("/api/v1/namespaces/durward-node/pods"), 60, 0.3), "the DaemonSet is deleted, and its pods end")
    t.ok(has_plugin() and os.path.exists(PLUGIN), "the plugin stays in the list", str(listed()))
    asked = len(s.github.requests)
    t.ok(not works(pod) and len(s.github.requests) == asked, "the pod that runs has no way out")
    t.ok(tap.wait_for(lambda: not labelled(c), 20, 0.2), "the node has lost its label", says(c))
    late, other = agent(c, "late"), Pod(c, "open", "late", volume=False)
    for x in (late, other):
        x.create()
    t.ok(tap.wait_for(lambda: "does not answer" in c.events("open"), 40, 0.3), "no pod starts on the node, and its event says why", c.events("open")[-800:])
    t.ok(not late.processes() and not other.processes(), "neither a bound one nor another")
    t.eq(c.kubectl("apply", "-k", overlay(t, s, "1"))[0], 0, "it is applied again")
    t.ok(tap.wait_for(lambda: labelled(c) and works(pod), 90, 0.5), "the pod that runs has its gate again", says(c))
    t.ok(late.ready(60) and works(late) and other.ready(60), "and those that waited start", c.events("agents")[-800:])
    for x in (late, other):
        x.delete()


class Watched(threading.Thread):
    """Whether the list ever lacks the plugin."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lacked, self.looked, self.stop = 0, 0, False
        self.start()

    def run(self):
        while not self.stop:
            self.looked += 1
            self.lacked += not has_plugin()
            time.sleep(0.005)

    def end(self):
        self.stop = True
        self.join()
        return self.lacked


def made_again(pod):
    """As its controller does: a kubelet ends a pod that the scheduler gave to its node just before that lost the label."""
    status = (pod.get() or {}).get("status", {})
    if status.get("phase") == "Failed" and status.get("reason") == "NodeAffinity":
        pod.delete()
        pod.create()
    return False


def updated(t, c, pod, update):
    """Another version: pods that run have their gate again, none starts without."""
    had = c.kubectl("get", "pods", "-n", "durward-node", "-o", "name")[1]
    watched = Watched()
    code, said = update()
    t.eq(code, 0, "the update is applied") or t.diag(said)
    during = agent(c, "during")
    during.create()
    t.ok(tap.wait_for(lambda: c.kubectl("get", "pods", "-n", "durward-node", "-o", "name")[1] not in ("", had) and labelled(c) and works(pod), 90, 0.5),
         "after an update the pod that runs has its gate again", says(c))
    t.ok(tap.wait_for(lambda: made_again(during) or c.condition(during.get() or {}, "Ready"), 60, 0.2) and works(during),
         "one that was made meanwhile has its gate", c.events("agents"))
    lacked = watched.end()
    t.ok(lacked == 0 and watched.looked > 100, "the list had the plugin throughout", "%d of %d" % (lacked, watched.looked))
    during.delete()


def taken_away(t, c, how, remove):
    code, said = remove()
    t.eq(code, 0, "%s: it is taken away" % how) or t.diag(said)
    t.ok(tap.wait_for(lambda: listed() == NETWORK and not os.path.exists(PLUGIN) and not os.path.exists(OWN), 60, 0.2), "%s: the node's list is as it was before" % how,
         str(listed()))
    after = Pod(c, "open", "after", volume=False)
    after.create()
    t.ok(after.ready(60), "%s: pods of the cluster start as before" % how, c.events("open"))
    after.delete()
    t.ok(tap.wait_for(lambda: c.ask("GET", "/api/v1/namespaces/durward")[0] == 404, 60, 0.3), "%s: and nothing of it is left" % how)


def by_kustomize(t, s, c):
    early = agent(c, "early")
    early.create()
    credentials(c)
    where = overlay(t, s, "1")
    code, said = c.kubectl("apply", "-k", where)
    t.eq(code, 0, "kubectl apply -k") or t.diag(said)
    t.ok(early.get()["status"]["phase"] == "Pending", "before that a bound pod has no node to run on")
    ready(t, c, "kustomize")
    refused(t, c)
    bare(t)
    runs(t, s, c, early, "kustomize")
    t.part(rights, t, c)
    t.part(secret_outside, t, s, c)
    t.part(rewritten, t, c)
    t.part(booted, t, c)
    t.part(alone, t, s, c, early)
    t.part(updated, t, c, early, lambda: c.kubectl("apply", "-k", overlay(t, s, "2")))
    early.delete()
    taken_away(t, c, "kustomize", lambda: c.kubectl("delete", "-k", where, timeout=120))


def credentials(c):
    """Before Durward itself, so that its first pods have them."""
    c.kubectl("delete", "namespace", "durward-node", "--ignore-not-found")
    c.namespace("durward-node")
    c.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "durward-credentials", "namespace": "durward-node"},
             "stringData": {"github": c.github}})


def by_helm(t, s, c):
    helm = c.ours("helm")
    if not os.access(helm, os.X_OK):
        t.skip("Helm's chart", "helm is not in %s: build helm.sh/helm/v3/cmd/helm from its Go module" % c.bin)
        return
    values = t.write("values.yaml", json.dumps(dict(secrets=configuration(s)["secrets"], config={"upstream": configuration(s)["upstream"]}, image={
        "name": "localhost/durward", "tag": "1"}, unbound=["kube-system", "open"], paths={"bin": "/run/cni/bin", "lists": "/run/cni/net.d",
                                                                                       "netns": "/run/netns", "kubelet": "/var/lib/kubelet"},
        api={"host": NODE_IP, "port": 6443}, sandboxes={"namespace": "boxes", "daemon": True, "volume": {"emptyDir": {}}, "policies": {
            "coder": {"image": "localhost/agent:1", "memory": "256MiB"}}})))

    def run(*words):
        r = subprocess.run([helm, "--kubeconfig", c.users["admin"], "--namespace", "durward-node", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=150,
                           env=dict(os.environ, HOME=t.mkdir("helm")))
        return r.returncode, r.stdout
    same(t, c, run)
    credentials(c)
    code, said = run("install", "durward", DEPLOY, "-f", values)
    t.eq(code, 0, "helm install") or t.diag(said)
    ready(t, c, "helm")
    pod = agent(c, "agent")
    pod.create()
    runs(t, s, c, pod, "helm")
    t.part(sandboxes, t, c)
    t.part(updated, t, c, pod, lambda: run("upgrade", "durward", DEPLOY, "-f", values, "--set", "image.tag=2"))
    code, said = c.kubectl("get", "validatingwebhookconfiguration", "durward-policies", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
    serve_service(t, c)
    t.ok(said and tap.wait_for(lambda: c.apply(POLICY)[0] == 0, 30, 0.5), "the webhook is known after the upgrade", says(c))
    pod.delete()
    taken_away(t, c, "helm", lambda: run("uninstall", "durward"))
    t.has(c.kubectl("get", "policies")[1], "coder", "policies outlive the release")


def sandboxes(t, c):
    """The daemon in the cluster whose sandboxes are pods, with no privilege and the rights that its chart lists."""
    c.apply(dict(BINDING, metadata={"name": "boxes"}, spec={"policy": "coder", "namespaces": ["boxes"], "labels": {"durward.internal/policy": "coder"}}))
    inside = lambda *words, **kw: c.kubectl("exec", "-n", "durward", "deployment/durward-sandboxes", "--", *words, **kw)  # noqa: E731
    if not t.ok(tap.wait_for(lambda: inside("durward", "status")[0] == 0, 60, 0.5), "the daemon of sandboxes runs, as an ordinary user without a capability",
                c.events("durward")[-1500:], c.kubectl("logs", "-n", "durward", "deployment/durward-sandboxes", "--tail=20")[1]):
        return
    code, said = tap.wait_for(lambda: (lambda r: r if r[0] == 0 else None)(inside("durward", "sandbox", "create", "--policy", "coder", timeout=100)), 60, 1) or inside(
        "durward", "sandbox", "create", "--policy", "coder", timeout=100)
    box = said.strip().splitlines()[-1]
    t.ok(code == 0 and box in c.kubectl("get", "pods", "-n", "boxes", "-o", "name")[1], "a sandbox of it is a pod of its namespace", said, c.events("boxes")[-1500:])
    code, said = inside("durward", "sandbox", "exec", box, "--", "sh", "-c", GET % "https://api.github.com/user")
    t.ok(code == 0 and said[-3:] == "200", "and its requests have the credential, by the gate of its node", said)
    code, said = inside("durward", "sandbox", "rm", box)
    t.ok(code == 0 and tap.wait_for(lambda: not c.items("/api/v1/namespaces/boxes/pods"), 40, 0.2), "its pod goes with it", said)
    asked = ("create pods", "delete pods", "create pods --subresource=exec", "get secrets", "list pods", "patch pods", "create serviceaccounts --subresource=token")
    can = lambda ns: [x for x in asked if c.kubectl("auth", "can-i", *x.split(), "-n", ns, "--as=system:serviceaccount:durward:durward-sandboxes")[0] == 0]  # noqa: E731
    t.eq((can("boxes"), can("agents"), can("durward")), (["create pods", "delete pods", "create pods --subresource=exec", "list pods"], [], []),
         "its account may make pods and start commands in that namespace, and nothing elsewhere")


def same(t, c, run):
    """Chart and kustomization install the same; and the chart refuses values that it does not know."""
    code, said = run("template", "durward", DEPLOY, "--namespace", "other", "--kube-version", "1.34.0")
    key = lambda x: (x["kind"], x["metadata"].get("namespace", ""), x["metadata"]["name"].rsplit("-", 1)[0] if x["kind"] == "ConfigMap" else x["metadata"]["name"])  # noqa: E731
    made = {key(x) for x in yaml.safe_load_all(said) if x} if code == 0 else set()
    kept = {key(x) for x in yaml.safe_load_all(c.kubectl("kustomize", DEPLOY)[1]) if x}
    names = lambda found: {(k, ns, "durward-config" if k == "ConfigMap" else n) for k, ns, n in found}  # noqa: E731
    t.ok(code == 0 and names(made) == names(kept) and len(kept) > 25, "%d objects by either" % len(kept), said[-500:] if code else str(names(made) ^ names(kept)))
    code, said = run("template", "durward", DEPLOY, "--kube-version", "1.34.0", "--set", "api.from={192.0.2.0/24,2001:db8::/64}")
    t.eq([x["from"] for o in yaml.safe_load_all(said if code == 0 else "") if o and o["kind"] == "NetworkPolicy" for x in o["spec"].get("ingress", [])],
         [[{"ipBlock": {"cidr": "192.0.2.0/24"}}, {"ipBlock": {"cidr": "2001:db8::/64"}}]], "the webhook's port is for the API server's addresses, where they are said")
    boxes = ["--set", "sandboxes.namespace=boxes,sandboxes.policies.coder.image=localhost/agent:1"]
    code, said = run("template", "durward", DEPLOY, "--kube-version", "1.34.0", *boxes)
    made = [(x["kind"], x["metadata"].get("namespace"), x["metadata"]["name"]) for x in yaml.safe_load_all(said if code == 0 else "") if x and "boxes" in str(x)]
    t.eq(made, [("Namespace", None, "boxes"), ("ServiceAccount", "boxes", "durward-sandboxes"), ("Role", "boxes", "durward-sandboxes"),
                ("RoleBinding", "boxes", "durward-sandboxes")], "sandboxes.namespace: a namespace for sandboxes that are pods, with an account and its rights")
    code, said = run("template", "durward", DEPLOY, "--kube-version", "1.34.0", *boxes, "--set", "sandboxes.daemon=true")
    made = {(x["kind"], x["metadata"].get("namespace")) for x in yaml.safe_load_all(said if code == 0 else "") if x and x["metadata"]["name"].startswith("durward-sandboxes")}
    t.eq(made, {("Role", "boxes"), ("RoleBinding", "boxes"), *((x, "durward") for x in (
        "ServiceAccount", "ConfigMap", "PersistentVolumeClaim", "Deployment", "Service", "NetworkPolicy"))}, "with sandboxes.daemon the account is in Durward's own namespace")
    for bad in ("sandboxes.daemon=true", "sandboxes.namespace=durward", "sandboxes.namespace=x,unbound={x}", "sandboxes.policies.x.memory=1GiB", "api.from={any}", "unbounds={x}", "image.tag=1,paths.bin=opt/cni", "config.node.socket=/x"):
        code, said = run("template", "durward", DEPLOY, "--kube-version", "1.34.0", "--set", bad)
        t.ok(code != 0, "the chart refuses %s" % bad, said[:300])
    code, said = run("lint", DEPLOY)
    t.eq(code, 0, "helm lint") or t.diag(said)


def test(t):
    c = kubernetes.Cluster(t, plugin=False)
    if yaml is None:
        raise tap.Skip("python3-yaml is not there")
    s = scene.Scene(t)
    c.github, s.d.audit_dir = s.github_secret.decode(), "/var/log/durward"  # where the daemons of the manifests have their log
    image(c, "1", "2")
    os.makedirs(os.path.dirname(TRUST), 0o755)
    with open(TRUST, "w") as f, open(s.d.ca.pem) as pem:
        f.write(pem.read())
    for name in ("agents", "open"):
        c.namespace(name)
    t.part(by_kustomize, t, s, c)
    t.part(by_helm, t, s, c)
    t.ok(s.github.requests and len(s.github.requests) <= len(s.d.kinds("admitted")), "each request at the origin is on record, which outlives the pods",
         "%d of %d" % (len(s.d.kinds("admitted")), len(s.github.requests)))


tap.run(test, timeout=480)
