#!/usr/bin/python3 -B
"""Pods of a real Kubernetes: what agent-sandbox#818 and #1045 ask of an isolated network, from containers that a kubelet
started. Default deny, names, paths, methods, TLS; an identity that nothing inside changes; credentials that stay outside;
probes; the deaths of daemon, containerd and kubelet; a pod whose policy cannot be had; what the API server refuses.

`make kubernetes-test KUBERNETES=FOLDER` runs it: DURWARD_KUBERNETES names the folder of Kubernetes' programs."""
import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, kubernetes, scan, scene, tap  # noqa: E402
from harness import kubernetes_clients, kubernetes_probes, kubernetes_timed  # noqa: E402
from harness.kubernetes import NODE_IP, SERVICE, Pod  # noqa: E402
from harness.kubernetes_objects import Keepers, binding, manifest, policy  # noqa: E402
from harness.namespace import ip  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

ADMISSION = os.path.join(durward.TOP, "deploy/kubernetes/node-admission.yaml")
HOST_PORT = 8082
GET = "curl -sS -m 10 -o /dev/null -w '%%{http_code}' %s 2>/dev/null"
UDP = "python3 -c 'import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"leak\", (\"%s\", %d))'"
# Root in a container has a packet socket: frames to the node's own address, past the routes of the pod.
RAW = """python3 - <<'END'
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
udp = struct.pack("!HHHH", 4000, %d, 12, 0) + b"leak"
head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton("%s"), socket.inet_aton("%s"))
total = sum(struct.unpack("!10H", head))
total = (total & 0xffff) + (total >> 16)
head = head[:10] + struct.pack("!H", ~((total & 0xffff) + (total >> 16)) & 0xffff) + head[12:]
with open("/proc/net/arp") as f:
    near = [bytes.fromhex(x.split()[3].replace(":", "")) for x in list(f)[1:]]
for to in near + [b"\\xff" * 6]:
    s.send(to + s.getsockname()[4] + b"\\x08\\x00" + head + udp)
print("frames sent to %%d" %% len(near))
END"""


def status(pod, words):
    return pod.sh(GET % words)[-3:]


def works(pod):
    return status(pod, "https://api.github.com/user") == "200"


def answers_at_node():
    try:
        with socket.create_connection((NODE_IP, HOST_PORT), 2) as c:
            c.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return c.recv(12).endswith(b" 200")
    except OSError:
        return False


def quiet(udp):
    try:
        return udp.recv(100)
    except OSError:
        return True


def admission(t, c):
    """The manifest as it is shipped, but for the list of namespaces that are left alone."""
    with open(ADMISSION) as f:
        objects = list(yaml.safe_load_all(f))
    for x in objects:
        for rule in x["spec"].get("matchResources", {}).get("namespaceSelector", {}).get("matchExpressions", []):
            rule["values"].append("open")
    code, said = c.apply(*objects)
    t.eq(code, 0, "the API server takes the admission manifest") or t.diag(said)
    bad = Pod(c, "agents", "bad", hostNetwork=True)
    refused = tap.wait_for(lambda: bad.create() or bad.delete() and None, 20, 0.3)
    t.has(refused or "", "hostNetwork", "a pod in the node's network is refused to a bound namespace, with the reason")
    checked = [x for name in ("durward-pods", "durward-pod-changes", "durward-pod-secrets") for x in [c.ask(
        "GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/" + name)[1]]]
    t.eq([x["status"].get("typeChecking", {}).get("expressionWarnings") for x in checked], [None] * 3, "and its expressions fit their types")


REFUSED = (
    ("hostPID", {"hostPID": True}, {}, "hostPID"),
    ("hostIPC", {"hostIPC": True}, {}, "hostPID"),
    ("a folder of the node", {"volumes": [{"name": "h", "hostPath": {"path": "/"}}, {"name": "durward", "emptyDir": {}}]}, {}, "hostPath"),
    ("a privileged container", {}, {"securityContext": {"privileged": True}}, "privileged"),
    ("NET_ADMIN", {}, {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}, "capabilit"),
    ("an unmasked /proc", {"hostUsers": False}, {"securityContext": {"procMount": "Unmasked"}}, "procMount"),
    ("a port of the node", {}, {"ports": [{"containerPort": 8080, "hostPort": 8080}]}, "hostPort"),
    ("no node with Durward", {"nodeSelector": {}}, {}, "nodeSelector"),
)


def refused(t, c):
    """What leads around a pod's own network is refused before there is a pod."""
    for what, spec, container, word in REFUSED:
        said = agent_pod(c, "agents", "bad", container=container, **spec).create()
        t.has(said or "nothing was refused", word, "refused at admission: " + what)
    init = agent_pod(c, "agents", "bad", initContainers=[{"name": "i", "image": "localhost/agent:1", "securityContext": {"privileged": True}}])
    t.has(init.create() or "", "privileged", "of an init container, too")
    second = agent_pod(c, "agents", "bad", metadata={"annotations": {"k8s.v1.cni.cncf.io/networks": "other"}})
    t.has(second.create() or "", "second network", "refused at admission: a second network")
    token, said = json.dumps(agent_pod(c, "agents", "token", automountServiceAccountToken=True).object), []

    def warned():  # by a policy of its own, which the API server may have read later than the others
        said.append(c.kubectl("apply", "--dry-run=server", "-f", "-", stdin=token))
        return said[-1][0] == 0 and "Warning" in said[-1][1] and "token" in said[-1][1]
    t.ok(tap.wait_for(warned, 10, 0.3), "a token of the API server in the pod is warned of", said[-1][1])


def agent_pod(c, namespace, name, **more):
    return Pod(c, namespace, name, **dict({"nodeSelector": {"node-restriction.kubernetes.io/durward": "ready"}}, **more))


def before(t, s, c):
    """No pod of a bound namespace runs without its way out."""
    lost, early = Pod(c, "nowhere", "lost", volume=False, nodeSelector={"node-restriction.kubernetes.io/durward": "ready"}), agent_pod(
        c, "agents", "early")
    early.create()
    t.ok(tap.wait_for(lambda: "does not answer" in c.events("agents"), 20, 0.2), "without the daemon a pod does not start, and its event "
         "says why", c.events("agents"))
    t.ok(not early.processes() and early.get()["status"]["phase"] == "Pending", "nothing of it runs")
    early.delete()
    s.d.serve()
    lost.create()
    t.ok(tap.wait_for(lambda: "no policy for the namespace nowhere" in c.events("nowhere"), 20, 0.2),
         "a pod whose policy cannot be had does not start, and its event says why", c.events("nowhere"))
    t.eq(lost.get()["status"]["phase"], "Pending", "it stays pending")
    lost.delete()


def way_out(t, s, c, pod, reader):
    if not t.ok(pod.ready() and reader.ready(), "pods of bound namespaces become ready: the kubelet's probe reaches them",
                c.events("agents"), s.d.diagnostics()):
        raise RuntimeError("without a pod there is nothing to try")
    rows = {r["labels"]["kubernetes.pod"]: (r["state"], r["policy"], r["backend"]) for r in api.Api(s.d.socket).list()["sandboxes"]}
    t.eq(rows, {"agent": ("running", "coder", "pod"), "reader": ("running", "reader", "pod")}, "each is a sandbox of its namespace's policy")
    text = pod.sh("curl -sS -m 10 https://api.github.com/user; echo; echo $GITHUB_TOKEN")
    t.has(text, '"login": "octo"', "curl has the credential put in")
    t.has(text, "ghp_", "the environment has a placeholder")
    t.eq(status(pod, "-H \"Authorization: Bearer $GITHUB_TOKEN\" https://api.github.com/user"), "200", "which is replaced")
    t.has(pod.sh("python3 -c 'import urllib.request as u; print(u.urlopen(\"https://api.github.com/user\").status)'"), "200",
          "Python's own client trusts and works")
    t.eq([status(pod, "https://api.github.com" + x) for x in ("/gists", "/user/emails", "/repos/acme/secret/x", "/repos/acme/../../gists")],
         ["403", "403", "403", "403"], "paths that no rule allows are denied")
    t.eq([status(pod, "-X %s https://deps.example.com/" % x) for x in ("GET", "DELETE")], ["200", "403"], "methods, too")
    t.has(pod.sh("curl -sS -m 5 https://other.example.net/"), "Could not resolve", "a name of no rule does not resolve")
    t.has(pod.sh("curl -sSv -m 5 https://api.github.com/user 2>&1 | grep -i 'issuer'"), "Durward", "TLS ends at the gate, with its CA")
    t.has(pod.sh("curl -sS -m 5 --cacert /etc/passwd https://api.github.com/user"), "curl: (", "who does not trust that CA is not fooled")
    t.ok(all(x.startswith("TLSv1.") for x in s.github.versions) if getattr(s.github, "versions", None) else s.github.requests,
         "the origin was asked over TLS")


def protocols(t, c, clients):
    """What is more than one request and its answer, by the usual clients."""
    clients.image(c)
    pod = agent_pod(c, "agents", "clients", container={"image": kubernetes_clients.IMAGE, "readinessProbe": None, "command": ["/bin/sh", "-c", "exec sleep 1000"]})
    pod.create()
    if not t.ok(pod.ready(), "a pod with git, grpcio and websockets", c.events("agents")):
        return
    for part in (clients.try_git, clients.try_grpc, clients.try_socket):
        t.part(part, pod)
    clients.search(pod)
    pod.delete()
    t.ok(tap.wait_for(lambda: len(api.Api(clients.s.d.socket).list()["sandboxes"]) == 2, 20, 0.1), "and its sandbox ends with it")


def agent_at_work(t, c, coder):
    pod = coder.pod(c, lambda name, container, volumes: agent_pod(c, "agents", name, volume=False, container=container, volumes=volumes))
    said = pod.create()
    if t.ok(said is None and pod.ready(60), "a pod with a coding agent", said, c.events("agents")):
        coder.work(pod)
    pod.delete()
    t.ok(tap.wait_for(lambda: len(api.Api(coder.s.d.socket).list()["sandboxes"]) == 2, 20, 0.1), "and its sandbox ends with it")


def closed(t, s, c, pod, stranger):
    port = 9999
    listener = socket.create_server((NODE_IP, port))
    t.cleanup(listener.close)
    six = socket.create_server(("2001:db8::10", port), family=socket.AF_INET6)
    t.cleanup(six.close)
    for what, where in (("the node", "http://%s:%d/" % (NODE_IP, port)), ("the bridge's address", "http://%s1:%d/" % (kubernetes.PODS, port)),
                        ("another pod", "http://%s:8080/" % stranger.address()), ("another pod's port of the node (hostPort)", "http://%s:%d/" % (NODE_IP, HOST_PORT)), ("the API server", "https://%s:6443/version" % NODE_IP),
                        ("the API server's service", "https://%s/version" % SERVICE), ("the kubelet", "https://%s:10250/pods" % NODE_IP),
                        ("the cloud's metadata", "http://169.254.169.254/latest/meta-data/"), ("the internet", "http://93.184.216.34/"),
                        ("IPv6", "-g http://[2001:db8::10]:%d/" % port)):
        got = status(pod, "-k -m 4 " + where)
        t.ok(got in ("403", "000"), "closed: " + what, got)
    denied = [str(r) for r in s.d.wait_records(3, "denied")]
    t.ok(all(any(x in r for r in denied) for x in (NODE_IP + ":%d" % port, NODE_IP + ":%d" % HOST_PORT, NODE_IP + ":6443", NODE_IP + ":10250", kubernetes.PODS + "1", stranger.address(), SERVICE,
                                                   "169.254.169.254", "93.184.216.34", "2001:db8::10")),
         "each attempt is on record", *denied[-12:])
    for x in (listener, six):
        x.settimeout(0.2)
        try:
            x.accept()
            t.ok(False, "no connection of these has arrived")
        except OSError:
            t.ok(True, "no connection of these has arrived")
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    t.cleanup(udp.close)
    udp.bind((NODE_IP, 53))
    udp.settimeout(0.5)
    pod.sh(UDP % (NODE_IP, 4444) + "; nslookup secret-in-a-name.example.net %s" % NODE_IP)
    t.ok(quiet(udp) is True, "no query reaches a server that the pod names itself: the gate answers")
    t.ok(tap.wait_for(lambda: "secret-in-a-name" in str(s.d.kinds("dns")), 5, 0.1), "and the name is on record", str(s.d.kinds("dns"))[-500:])
    t.ok("4444" in str(s.d.wait_records(1, "packet")), "UDP is closed, and on record", str(s.d.kinds("packet"))[:500])
    return udp


def inbound(t, s, pod, stranger):
    t.has(stranger.sh(GET % ("-m 2 http://%s:8080/" % pod.address())), "000", "another pod does not reach it, unless node.inbound says so")
    seen = tap.wait_for(lambda: s.d.records(event="pod_inbound"), 5, 0.1) or []
    t.ok(any("to port 8080" in r.get("detail", "") for r in seen), "the kubelet's probes are on record", str(seen)[:500])


def identity(t, s, c, pod, reader, thief, udp):
    """Whose request it is, is where it comes from: nothing that a pod or its owner says changes that."""
    held = pod.sh("echo $GITHUB_TOKEN").strip().split()[-1]
    t.eq(status(reader, "-H 'Authorization: Bearer %s' https://api.github.com/user" % held), "403", "another pod's placeholder is worth nothing")
    t.eq(status(reader, "https://deps.example.com/"), "200", "while it has what its own policy allows")
    code, said = c.kubectl("label", "pod", "-n", "reviewers", "reader", "app=agent", "durward-policy=coder", "kubernetes.namespace=agents", "--overwrite")
    t.eq((code, status(reader, "https://api.github.com/user")), (0, "403"), "changed labels gain nothing")
    c.kubectl("annotate", "pod", "-n", "reviewers", "reader", "durward-policy=coder", "--overwrite")
    t.eq(status(reader, "https://api.github.com/user"), "403", "nor annotations")
    own = pod.address()
    t.ok(thief.ready(), "a pod that nobody bound runs as before")
    text = thief.sh("ip addr add %s/24 dev eth0; " % own + GET % "-k -m 3 https://api.github.com/user" + "; for p in 53 901 3128; do nc -w 1 %s1 $p "
                    "</dev/null && echo open; done" % kubernetes.PODS)
    t.ok("200" not in text and "open" not in text, "a pod that takes the other one's address gains nothing", text)
    thief.sh("ip addr del %s/24 dev eth0" % own)
    text = pod.sh("id -u; ip route flush table main; ip rule add lookup main pref 1; ip route add default via %s1 dev eth0; ip link set eth0 down; "
                  % kubernetes.PODS + GET % ("-m 2 http://%s:9999/" % NODE_IP) + "; echo")
    t.ok({"0", "000"} <= set(text.split()) and text.count("not permitted") == 3, "exec as root changes no route", text)
    t.has(pod.sh(RAW % (53, own, NODE_IP)), "frames sent to 1", "a packet socket is root's in a container, too")
    t.ok(quiet(udp) is True, "and its frames arrive nowhere")
    code, said = c.kubectl("debug", "-n", "agents", "agent", "--image=localhost/agent:1", "--profile=general", "--", "/bin/sh", timeout=20)
    t.ok(code != 0 and "ephemeral" in said, "an ephemeral container is refused", said)
    t.ok(works(pod), "the pod itself goes on")
    codes = {r["policy"] for r in s.d.kinds("denied") if "api.github.com" in str(r) and "/user" == r.get("path")}
    t.eq(codes, {"reader"}, "what was denied of this is on record as the other policy's")


def outside(t, s, c, pod):
    """No copy of a secret in the pod, or in what the cluster keeps of it."""
    before = s.scanner.bytes
    s.scanner.search(pod.sh("env; cat /etc/durward/* /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"), "the pod")
    pids = pod.processes()
    for pid in pids:
        try:
            scan.scan_process(pid, s.scanner, "process %d of the pod" % pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    s.scanner.search(c.kubectl("get", "pods,events,configmaps,secrets", "-A", "-o", "yaml")[1], "the API server")
    s.scanner.tree("/var/lib/etcd")
    s.scanner.tree("/var/lib/kubelet/pods")
    s.scanner.tree("/var/log")
    hits = list(s.scanner.hits)
    t.tally(canaries=len(hits), searched=s.scanner.bytes - before)
    t.ok(pids and s.scanner.bytes - before > 5 << 20, "the pod's memory was read, and what the cluster keeps", "%s, %d bytes" % (
        pids, s.scanner.bytes - before))
    t.ok(not hits, "0 copies of a secret in the pod and in the cluster", *["%s as %s in %s" % h for h in hits])


def deaths(t, s, c, pod):
    refused = tap.wait_for(lambda: s.d.records(event="pod_outbound_refused"), 70, 0.5) or []  # said once a minute
    t.ok(any("to %s" % NODE_IP in r.get("detail", "") for r in refused), "what a packet socket sent is on record", str(refused)[:500])
    rows = [r["id"] for r in api.Api(s.d.socket).list()["sandboxes"]]
    for pid in [s.d.daemon.pid] + [p for p, _ in s.d.roles()]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    s.d.daemon.wait()
    asked = len(s.github.requests)
    t.ok(not works(pod), "kill -9 of the daemon: the pod has no way out")
    t.eq(len(s.github.requests), asked, "nothing of it reached the origin")
    s.d.serve()
    t.ok(tap.wait_for(lambda: works(pod), 20, 0.2), "the next start gives it back to the pod that runs", s.d.diagnostics())
    t.eq(sorted(r["id"] for r in api.Api(s.d.socket).list()["sandboxes"]), sorted(rows), "as the same sandbox")
    for role in ("gate", "injector", "controller"):
        for pid in [p for p, r in s.d.roles() if r == role]:
            os.kill(pid, signal.SIGKILL)
        t.ok(tap.wait_for(lambda: works(pod), 20, 0.2), "and so it does when the %s was killed" % role, s.d.diagnostics())
    for name, start in (("containerd", c.start_containerd), ("kubelet", c.begin_kubelet)):
        c.kill(name)
        start()
        t.ok(tap.wait_for(lambda: "octo" in pod.sh("curl -sS -m 5 https://api.github.com/user"), 30, 0.3), "kill -9 of %s: the pod goes on" % name,
             c.log(name))
    after = agent_pod(c, "agents", "after")
    after.create()
    t.ok(after.ready(60), "and another one starts", c.events("agents"))
    after.delete()


# ---- objects ----

def column(c, kind, name, path):
    return c.kubectl("get", kind, name, "-o", "jsonpath={%s}" % path)[1]


def begin_objects(t, s, c):
    k = Keepers(t, s.d, c)
    for ns in ("durward-node", "durward", "bound"):
        c.namespace(ns)
    code, said = c.apply(*manifest("node-objects.yaml"))
    t.eq(code, 0, "the API server takes the definitions of Policy and PolicyBinding, accounts and rights") or t.diag(said)
    code, said = c.apply(*manifest("node-review.yaml"))
    t.eq(code, 0, "and the webhook") or t.diag(said)
    for who in ("durward-node:durward-node", "durward:durward-policies", "durward:durward-status"):
        may = [x for x in ("get secrets", "watch pods", "patch pods", "patch events", "create policies.durward.internal", "patch policies.durward.internal",
                           "get configmaps", "patch validatingwebhookconfigurations/others")
               if c.kubectl("auth", "can-i", *x.split(), "-A", "--as=system:serviceaccount:" + who)[0] == 0]
        t.eq(may, ["watch pods"] if "status" in who else [], "%s may ask for no secret, change no policy" % who)
    at = column(c, "service/durward-policies", "--namespace=durward", ".spec.clusterIP")
    ip("addr", "add", at + "/32", "dev", "lo")  # what kube-proxy does
    node, policies = k.account("durward-node", "durward-node"), k.account("durward-policies", "durward")
    k.node = k.start("node", node, "--node", kubernetes.NODE)
    k.start("status", k.account("durward-status", "durward"), "--every", "1")
    k.start("review", policies, "--listen", at + ":8443")
    c.apply(dict(manifest("node-review.yaml", "Service")[0], spec={"clusterIP": at, "ports": [{"port": 8443}]}))
    hook = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/durward-policies"
    c.ask("PATCH", hook, [{"op": "add", "path": "/webhooks/0/clientConfig/service/port", "value": 8443}], "application/json-patch+json")
    t.ok(tap.wait_for(lambda: c.ask("GET", hook)[1]["webhooks"][0]["clientConfig"].get("caBundle"), 20, 0.2),
         "the webhook makes itself known", k.said("review"))
    return k


def judged(t, c):
    """What is wrong is refused where it is applied."""
    code, said = c.apply(policy("wrong", [{"allow": "deps.example.com"}, {"allow": "api.github.com", "with": {"bearer": "githib"}}]))
    t.ok(code != 0 and "spec.rules[1]" in said and "githib" in said, "a policy that would not load is refused, with place and reason", said)
    code, said = c.apply(policy("wrong", [{"alow": "deps.example.com"}]))
    t.ok(code != 0 and "did you mean 'allow'" in said, "a mistyped key, too", said)
    code, said = c.apply(policy("coder", []))
    t.ok(code != 0 and "has a policy of that name" in said, "the name of a policy that the daemons have", said)
    code, said = c.apply(policy("wrong", [], sandbox={"binds": ["/:/host"]}))
    t.ok(code != 0 and "sandbox" in said, "limits of a local sandbox are nothing for an object", said)
    code, said = c.apply(policy("wrong", [], env={"A B": "c"}))
    t.ok(code != 0 and "environment variable is" in said, "the API server itself refuses a variable that is none", said)
    code, said = c.apply(binding("wrong", "fetcher", "kube-system"))
    t.ok(code != 0 and "have no gate" in said, "and a binding of kube-system", said)


def by_pod(t, s, c, k):
    """Bindings by label and by service account, of which the API server's word counts."""
    c.namespace("mixed")
    c.kubectl("create", "serviceaccount", "reviewer", "-n", "mixed")
    code, said = c.apply(binding("by-label", "coder", "mixed", labels={"role": "coder"}),
                         binding("by-account", "reader", "mixed", serviceAccounts=["reviewer"]))
    t.eq(code, 0, "bindings by label and by service account are applied") or t.diag(said)
    for what, more, word in (("labels: {}", {"labels": {}}, "labels"), ("a label's key", {"labels": {"a b": "c"}}, "a key is"),
                             ("no account", {"serviceAccounts": []}, "serviceAccounts")):
        code, said = c.apply(binding("wrong", "coder", "mixed", **more))
        t.ok(code != 0 and word in said, "the API server refuses a binding: " + what, said)
    t.ok(tap.wait_for(lambda: column(c, "policybinding", "by-account", ".status.accepted") == "True", 20, 0.2), "both are accepted",
         k.said("status"))

    def pod(name, account="default", **labels):
        made = agent_pod(c, "mixed", name, metadata={"labels": labels}, serviceAccountName=account)
        said = made.create()
        t.ok(said is None, "the pod %s is created" % name, said)
        return made
    coder, reviewer = pod("coder", role="coder"), pod("reviewer", "reviewer", role="none")
    both, none = pod("both", "reviewer", role="coder"), pod("none")
    t.ok(coder.ready() and works(coder), "the pod with the label has the policy that is bound by it", c.events("mixed"), k.said("node"),
         s.d.diagnostics())
    t.ok(reviewer.ready() and status(reviewer, "https://deps.example.com/") == "200", "the pod of the account has the account's",
         c.events("mixed"))
    t.eq(status(reviewer, "https://api.github.com/user"), "403", "and no other")
    t.ok(tap.wait_for(lambda: "policies reader and coder" in c.events("mixed"), 20, 0.2), "a pod that two policies are bound to does not start, "
         "and its event says why", c.events("mixed"))
    t.ok(tap.wait_for(lambda: "or none for this pod" in c.events("mixed"), 20, 0.2), "nor does one that none is bound to", c.events("mixed"))
    t.ok(tap.wait_for(lambda: "Durward: policy coder, gate " in c.events("mixed") and "Durward: policy reader, gate " in c.events("mixed"), 10, 0.2),
         "an event of the pod names policy, gate and node", c.events("mixed"), k.said("node"))
    row = [r for r in api.Api(s.d.socket).list()["sandboxes"] if r["labels"]["kubernetes.pod"] == "coder"][0]
    said = c.kubectl("events", "-n", "mixed", "--for", "pod/coder")[1]
    t.ok("policy coder, gate %s, node %s" % (row["id"], kubernetes.NODE) in said, "which kubectl shows with the pod", said)
    t.ok(tap.wait_for(lambda: column(c, "policybinding", "by-label", ".status.pods") == "1" and
                      column(c, "policybinding", "by-label", ".status.refused") == "1", 20, 0.3),
         "the binding's status counts its pods, and the one that it does not agree about",
         column(c, "policybinding", "by-label", ".status"), k.said("status"))
    wide = c.kubectl("get", "policybinding", "by-account", "-o", "wide")[1]
    t.ok("reviewer" in wide and "NODES" in wide, "and kubectl get -o wide shows them", wide)
    t.eq(column(c, "policybinding", "by-label", ".status.some"), json.dumps([{"name": "coder", "namespace": "mixed", "node": kubernetes.NODE}],
                                                                          separators=(",", ":")), "by name and node")
    for x in (both, none):
        t.eq(x.get()["status"]["phase"], "Pending", "it stays pending")
        x.delete()
    for words in (("role=other", "--overwrite"), ("role-",)):
        code, said = c.kubectl("label", "pod", "-n", "mixed", "coder", *words)
        t.ok(code != 0 and "by-label goes by one of them" in said, "the label is not to be changed: %s" % words[0], said)
    code, said = c.ask("PATCH", coder.path + "/status", {"metadata": {"labels": {"role": "x"}}}, "application/merge-patch+json")
    t.ok(code == 422 and "by-label" in str(said), "not by way of its status either", str(said))
    code, said = c.kubectl("label", "pod", "-n", "mixed", "coder", "other=label")
    t.eq(code, 0, "another label is") or t.diag(said)
    c.kubectl("delete", "validatingadmissionpolicybinding", "durward-pod-labels")
    changed = tap.wait_for(lambda: c.kubectl("label", "pod", "-n", "mixed", "coder", "role=other", "--overwrite")[0] == 0, 20, 0.3)
    t.ok(changed and works(coder), "where nobody refuses it the pod that runs keeps its policy")
    s.d.stop()
    s.d.serve()
    t.ok(tap.wait_for(lambda: works(coder), 20, 0.2), "through a restart of the daemon, too", s.d.diagnostics())
    for x in (coder, reviewer):
        x.delete()


def objects(t, s, c, k):
    good = policy("fetcher", [{"allow": "api.github.com/user", "with": {"bearer": "github"}}, {"allow": scene.PLAIN}])
    code, said = c.apply(good, binding("fetchers", "fetcher", "bound"))
    t.eq(code, 0, "a policy and its binding are applied") or t.diag(said)
    t.ok(tap.wait_for(lambda: column(c, "policy", "fetcher", ".status.accepted") == "True", 20, 0.2), "its status says that it is accepted",
         k.said("status"))
    t.has(c.kubectl("get", "policybindings")[1], "fetcher", "kubectl get shows who is bound to what")
    pod = agent_pod(c, "bound", "agent")
    pod.create()
    t.ok(pod.ready() and works(pod), "a pod of the namespace starts, and has that policy", c.events("bound"), k.said("node"), s.d.diagnostics())
    good["spec"]["rules"] = good["spec"]["rules"][1:]
    began = time.monotonic()
    c.apply(good)
    t.ok(tap.wait_for(lambda: status(pod, "https://api.github.com/user") == "403", 10, 0.05), "what is taken out of it is taken from the pod "
         "that runs", k.said("node"), s.d.diagnostics())
    t.diag("%.1f s after 'kubectl apply' began" % (time.monotonic() - began))
    c.kubectl("delete", "policybinding", "fetchers")
    t.ok(tap.wait_for(lambda: status(pod, "https://deps.example.com/") == "000", 10, 0.2), "without its binding the pod has no way out")
    late = agent_pod(c, "bound", "late")
    late.create()
    t.ok(tap.wait_for(lambda: "no policy for the namespace bound" in c.events("bound"), 20, 0.2), "and another one does not start")
    late.delete()
    c.apply(binding("fetchers", "fetcher", "bound"))
    t.ok(tap.wait_for(lambda: status(pod, "https://deps.example.com/") == "200", 15, 0.2), "bound again, it has it again", s.d.diagnostics())
    c.apply(binding("others", "coder", "bound"))
    t.ok(tap.wait_for(lambda: "older PolicyBinding" in column(c, "policybinding", "others", ".status.message"), 20, 0.2),
         "a second binding of the namespace counts for nothing, and says so")
    c.kubectl("delete", "validatingwebhookconfiguration", "durward-policies")
    c.apply(policy("fetcher", [{"allow": "api.github.com", "with": {"bearer": "githib"}}]))
    t.ok(tap.wait_for(lambda: "spec.rules[0]" in column(c, "policy", "fetcher", ".status.message"), 20, 0.2),
         "where nobody judged it a bad policy says so in its status", k.said("status"))
    t.eq(status(pod, "https://deps.example.com/"), "200", "and what it was before stays in force")
    pod.processes_known = pod.processes()
    c.kill("apiserver")
    k.node.kill()
    t.eq(status_by_runtime(pod, "https://deps.example.com/"), "200", "without the API server the pod goes on with what it has")
    t.ok(works_after_restart(s, pod), "through a restart of the daemon, too", s.d.diagnostics())
    return pod


def status_by_runtime(pod, url):
    """Where no `kubectl exec` is to be had."""
    pid = pod.processes_known[-1]
    return kubernetes.inside(pid, "test -r /etc/durward/env && . /etc/durward/env; " + GET % url)[-3:]


def works_after_restart(s, pod):
    s.d.stop()
    s.d.serve()
    return tap.wait_for(lambda: status_by_runtime(pod, "https://deps.example.com/") == "200", 20, 0.2)


def ends(t, s, pod, reader):
    t.ok(pod.delete() and reader.delete(), "pods are deleted")
    t.ok(tap.wait_for(lambda: api.Api(s.d.socket).list()["sandboxes"] == [], 20, 0.1), "their sandboxes are gone")
    t.ok(tap.wait_for(lambda: not [x for x in os.listdir("/run/netns") if x.startswith("durward-")], 20, 0.1), "and their namespaces",
         str(os.listdir("/run/netns")))


def times(t, s, c, rounds=int(os.environ.get("DURWARD_KUBERNETES_ROUNDS", "5"))):
    """From the claim to the first credentialed request's arrival, beside the same pod in a namespace that is left alone (bench/kubernetes --first-byte has more)."""
    took = kubernetes_timed.Timed(t, s, c, agent_pod).rounds(rounds)
    if t.ok(None not in took["agents"] + took["open"], "each pod asks", str(took), c.events("agents"), c.events("open")):
        t.diag("\n".join(kubernetes_timed.text(took)))


def test(t):
    c = kubernetes.Cluster(t)
    if yaml is None:
        raise tap.Skip("python3-yaml is not there")
    s = scene.Scene(t)
    s.d.policy("reader", [{"allow": scene.PLAIN, "access": "read-only"}])
    s.rules[-1]["access"] = "read-only"
    os.makedirs("/run/durward", 0o700)
    s.d.extra["node"] = {"namespaces": {"agents": "coder", "reviewers": "reader"}, "unbound": ["kube-system", "open"],
                         "objects": "/run/objects/objects.json"}
    for name in ("agents", "reviewers", "open", "nowhere"):
        c.namespace(name)
    missing = kubernetes_clients.needed()
    clients = None if missing else kubernetes_clients.Clients(t, s)
    coder = kubernetes_clients.Coder(t, s)
    c.kubectl("label", "node", kubernetes.NODE, "node-restriction.kubernetes.io/durward=ready")
    t.part(admission, t, c)
    t.part(refused, t, c)
    before(t, s, c)
    stranger, thief = (Pod(c, "open", x, volume=False, container=dict({"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}, **more)) for x, more in (
        ("agent", {"ports": [{"containerPort": 8080, "hostPort": HOST_PORT}]}), ("thief", {})))
    pod, reader = agent_pod(c, "agents", "agent"), agent_pod(c, "reviewers", "reader")
    for x in (stranger, thief, pod, reader):
        said = x.create()
        t.ok(said is None, "the pod %s of %s is created" % (x.name, x.ns), said)
    way_out(t, s, c, pod, reader)
    stranger.ready()
    t.ok(tap.wait_for(answers_at_node, 10, 0.2), "another pod has a port of the node (hostPort)")
    udp = closed(t, s, c, pod, stranger)
    t.part(inbound, t, s, pod, stranger)
    t.part(identity, t, s, c, pod, reader, thief, udp)
    t.skip("git, gRPC and WebSocket", missing) if missing else t.part(protocols, t, c, clients)
    t.skip("a coding agent", coder.missing) if coder.missing else t.part(agent_at_work, t, c, coder)
    t.part(kubernetes_probes.find, t, c, agent_pod)
    t.part(outside, t, s, c, pod)
    t.part(deaths, t, s, c, pod)
    t.part(ends, t, s, pod, reader)
    t.part(times, t, s, c)
    k = begin_objects(t, s, c)
    t.part(judged, t, c)
    t.part(by_pod, t, s, c, k)
    t.part(objects, t, s, c, k)
    s.clean(what="pods of a cluster")


tap.run(test, timeout=300)
