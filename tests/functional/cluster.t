#!/usr/bin/python3 -B
"""What a cluster's API server may be asked, by `kubernetes` in a rule: with a stand-in for what is refused and recorded, and with
a real kube-apiserver and kubectl where DURWARD_KUBERNETES names a folder that has them (etcd from the path): there each
request is read as the server reads it, by the server's own audit log."""
import http.client
import itertools
import json
import os
import shutil
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, kubernetes, origin, scan, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

HOST = "cluster.example.com"
AT = "%s:6443" % HOST
ENTRIES = [{"verbs": ["get", "list", "watch"], "resources": ["pods", "pods/log", "configmaps"], "namespaces": "team-*"},
          {"verbs": "create", "resources": ["pods", "pods/exec", "pods/portforward"], "namespaces": "team-a", "names": "web-*"},
          {"verbs": ["create", "patch", "delete"], "resources": "configmaps", "namespaces": "team-a"},
          {"verbs": "create", "resources": "pods/exec", "namespaces": "team-b", "commands": ["uptime", "cat /tmp/*"]}]


def bed(t, name, address, token, grants, **more):
    d = durward.Durward(t, name)
    d.secret("token", token)
    d.resolve[AT] = address
    d.policy("coder", [dict({"allow": AT + "/**", "websocket": True, "kubernetes": grants, "with": {"bearer": "token"}}, **more)],
             env={"TOKEN": "{{placeholder token}}"})
    return d


def stand_in(t):
    """What is refused never reaches the server, is answered as a Status, and is on record."""
    token = scan.canary("t-").decode()
    d = durward.Durward(t, "stand-in")
    server = origin.Origin(t, d.ca, HOST, lambda q, c: c.reply(q, 200, {"kind": "Pod"}))
    d.secret("token", token)
    d.resolve[AT] = server.address
    d.policy("coder", [{"allow": AT + "/**", "kubernetes": ENTRIES, "with": {"bearer": "token"}}])
    box = durward.Sandbox(d)

    def ask(path, *flags):
        status, out, err = box.sh("curl -sS --path-as-is -w '\\n%%{http_code}' %s 'https://%s%s'" % (" ".join(flags), AT, path))
        body, _, code = out.rpartition("\n")
        return code, body
    for path, flags in (("/api/v1/namespaces/team-a/pods", ()), ("/api/v1/namespaces/team-b/pods/x", ()),
                        ("/api/v1/namespaces/team-a/pods?watch=1", ()), ("/version", ()), ("/apis/apps/v1", ()),
                        ("/api/v1/namespaces/team-b/pods/x/exec?command=cat&command=/tmp/%61&stdout=true", ()),
                        ("/api/v1/namespaces/team-a/configmaps", ("-X", "POST", "-d", "x"))):
        t.eq(ask(path, *flags)[0], "200", "%s passes" % path)
    before = len(server.requests)
    for path, flags in (("/api/v1/namespaces/prod/pods", ()), ("/api/v1/pods", ()), ("/api/v1/namespaces/team-a/secrets", ()),
                        ("/api/v1/namespaces/team-a/pods/x", ("-X", "DELETE")), ("/metrics", ()), ("/version", ("-X", "POST")),
                        ("/api/v1/namespaces/team-a/pods/db/exec?command=id", ()), ("/api/v1/namespaces/team-a/%70ods", ()),
                        ("/api/v1/namespaces/team-a/pods%2Fx", ()), ("/api/v1/namespaces/team-a/pods/x/status", ()),
                        ("/api/v1/namespaces/team-b/pods/x/exec?command=uptime&command=/etc", ()),
                        ("/api/v1/namespaces/team-b/pods/x/exec?command=uptime&c%6fmmand=id", ()),
                        ("/api/v1/namespaces/team-a/pods", ("-H", "'Impersonate-User: admin'"))):
        code, body = ask(path, *flags)
        try:
            said = json.loads(body)
        except ValueError:
            said = {}
        t.ok(code == "403" and said.get("kind") == "Status" and said.get("reason") == "Forbidden" and said.get("code") == 403 and
             "kubernetes" in said.get("message", ""), "%s is refused, with a Status" % path, code, body)
    t.eq(len(server.requests), before, "none of these reached the server")
    d.settle()
    denied = [r for r in d.kinds("denied") if r.get("code") == "kubernetes"]
    t.eq([r.get("kubernetes") for r in denied][:4], ["list pods prod/", "list pods ", "list secrets team-a/", "delete pods team-a/x"],
         "what was asked is on record, as the cluster would say it")
    t.ok({"id", "uptime /etc", "uptime id"} <= {r.get("command") for r in denied}, "and the command of an exec", str(denied[-5:]))
    t.ok(any(r.get("kubernetes") == "watch pods team-a/" for r in d.kinds("admitted")), "of what is allowed, too")
    box.close()
    explained(t, d)


def explained(t, d):
    """`durward explain` says what is asked and which entry has it; `durward check` what lets nothing pass."""
    for method, path, said, entry in (("GET", "/api/v1/namespaces/team-a/pods", "allow", "list pods team-a/ (entry 1)"),
                                      ("GET", "/api/v1/namespaces/team-a/pods/web-1/exec?command=id", "allow", "create pods/exec team-a/web-1 (entry 2)"),
                                      ("GET", "/version", "allow", "no resource (discovery)"), ("GET", "/metrics", "deny", "no resource"),
                                      ("GET", "/api/v1/namespaces/prod/pods", "deny", "list pods prod/"),
                                      ("GET", "/api/v1/namespaces/team-a/%70ods", "deny", "not read with certainty")):
        url = "https://" + AT + path
        out = d.command("explain", "-c", d.conf, method, url).stdout
        told = json.loads(d.command("explain", "-c", d.conf, "--json", method, url).stdout)
        t.ok(out.startswith(said + " ") and "  kubernetes: %s\n" % entry in out and (told["decision"], told["kubernetes"]) == (said, entry) and
             (said == "allow" or told["code"] == "kubernetes"), "explain %s %s: %s" % (method, path, entry), out, str(told))
    r = d.command("check", d.conf)
    t.ok(r.returncode == 0 and "entry 2 of 'kubernetes' is of streams into pods, which need 'websocket: true'" in r.stderr,
         "check warns of streams that the rule does not carry", r.stdout, r.stderr)


class Cluster:
    """etcd and kube-apiserver on loopback; one user, who may do all, by a token. .audited(): what the server says it was asked."""

    def __init__(self, t, folder, ca):
        self.dir, self.token = t.mkdir("cluster"), "t-" + "0" * 40
        self.port, etcd, peer = free_port(), free_port(), free_port()
        crt, key = ca.issue(HOST, "127.0.0.1")
        sa = os.path.join(self.dir, "sa.key")
        subprocess.run(["openssl", "genrsa", "-out", sa, "2048"], check=True, stderr=subprocess.DEVNULL)
        tokens = t.write("cluster/tokens", "%s,admin,1,system:masters\n" % self.token, 0o600)
        policy = t.write("cluster/policy", json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
                                                       "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}))
        self.log = os.path.join(self.dir, "audit")
        at = "http://127.0.0.1:%d"
        with open(os.path.join(self.dir, "out"), "wb") as out:
            t.popen(["etcd", "--data-dir", os.path.join(self.dir, "etcd"), "--listen-client-urls", at % etcd, "--advertise-client-urls", at % etcd,
                     "--listen-peer-urls", at % peer, "--initial-advertise-peer-urls", at % peer, "--initial-cluster", "default=" + at % peer,
                     "--unsafe-no-fsync=true"], stdout=out, stderr=out)
            t.popen([os.path.join(folder, "kube-apiserver"), "--etcd-servers=" + at % etcd, "--bind-address=127.0.0.1", "--secure-port=%d" % self.port,
                     "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
                     "--tls-cert-file=" + crt, "--tls-private-key-file=" + key, "--service-account-issuer=https://kubernetes.default.svc",
                     "--service-account-key-file=" + sa, "--service-account-signing-key-file=" + sa, "--token-auth-file=" + tokens,
                     "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--audit-policy-file=" + policy,
                     "--audit-log-path=" + self.log, "--audit-log-mode=blocking", "--watch-cache=false"], stdout=out, stderr=out)
        self.context = ssl.create_default_context(cafile=ca.pem)
        if not tap.wait_for(lambda: self.ask("GET", "/readyz") == 200, 90):
            with open(os.path.join(self.dir, "out"), errors="replace") as f:
                raise RuntimeError("the API server does not start: " + f.read()[-2000:])

    def ask(self, method, path, body=None):
        try:
            c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=self.context)
            c.request(method, path, body, {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
            r = c.getresponse()
            r.read()
            return r.status
        except OSError:
            return 0

    def audited(self):
        with open(self.log) as f:
            return {e["auditID"]: e for e in map(json.loads, f)}


def requests():
    """Targets in whose reading the parts of the server's own could differ; of watches those of what there is not, which end at once."""
    named = ("pods", "pods/x", "pods/x/log", "pods/x/status", "secrets", "serviceaccounts/x/token", "pods/x/exec/y")
    paths = ["/api/v1/" + x for x in ("namespaces", "namespaces/a", "namespaces/a/status", "namespaces/a/finalize", "nodes/n", "nodes/n/proxy/x/y",
                                      "widgets", "watch/widgets", "watch/namespaces/a/widgets", "watch/namespaces/a/widgets/x", "proxy/namespaces/a/services/x")]
    paths += ["/api/v1/namespaces/a/" + x for x in named] + ["/apis/apps/v1/namespaces/a/" + x for x in ("deployments", "deployments/x", "deployments/x/scale")]
    paths += ["/apis/apps/v1/deployments", "/apis/x.example/v1/widgets", "/apis/x.example/v1/namespaces/a", "/api/v1/namespaces/a/pods/", "/api/v1", "/apis/apps/v1",
              "/version", "/apis", "/api/v2/widgets/x", "/apis/apps", "/api/v1/watch/watch"]
    for method, path in itertools.product(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"), paths):
        yield method, path
    for query in ("watch=1", "watch", "watch=", "watch=0", "watch=false", "watch=FALSE", "watch=no", "w%61tch=1", "watch=1;x", "watch=%", "Watch=1", "watch=0&watch=1",
                  "watch=1&watch=0", "&&watch=true", "watch=tr%75e", "fieldSelector=metadata.name%3Db", "fieldSelector=metadata.name==b", "fieldSelector=metadata.name!%3Db",
                  "fieldSelector=metadata.name=b,status.phase=x", "fieldSelector=status.phase=x,metadata.name=b", "fieldSelector=metadata.name=b,x",
                  "fieldSelector=metadata.name=..", "fieldSelector=metadata.name=a/b", "fieldSelector=metadata.name=b&watch=1", "fieldSelector=", "limit=x&watch=1",
                  "timeoutSeconds=x&watch=1", "watch=1&labelSelector=%3D%3D", "fieldSelector=metadata.name=b&limit=x", "fieldSelector=metadata.name=b&limit=5",
                  "fieldSelector=metadata.name=b&timeoutSeconds=", "watch=x%20y", "fieldSelector=metadata.name=b&labelSelector=%3D%3D"):
        yield "GET", "/api/v1/namespaces/a/widgets?" + query
        yield "DELETE", "/api/v1/namespaces/a/widgets?" + query
    yield "GET", "/api/v1/namespaces/a/gadgets?watch=fal%C5%BFe"


def differential(t, cluster, d, box):
    """Each is sent through Durward, which lets all pass, and named so that the server's log of it is found."""
    rows = [x for x in requests()]
    lines = "".join("url = \"https://%s%s\"\nrequest = \"%s\"\nheader = \"Audit-ID: n-%d\"\noutput = \"/dev/null\"\n%smax-time = 10\nglobo\nnext\n".replace("globo", "globoff") %
                    (AT, path, method, i, "head\n" if method == "HEAD" else "") for i, (method, path) in enumerate(rows))
    status, out, err = box.sh("cat > ~/rows; curl -sS -K ~/rows >/dev/null", stdin=lines, timeout=120)
    d.settle()
    ours = {}  # those of one method and path come over one channel, in their order
    for r in sorted((r for r in d.kinds("admitted") + d.kinds("denied") if r.get("authority") == AT), key=lambda r: [int(x) for x in r["id"].split("-")]):
        ours.setdefault((r["method"], r["path"]), []).append(r)
    theirs = cluster.audited()
    t.eq(sum(map(len, ours.values())), len(rows), "each is on our record")
    wrong, compared, unread = [], 0, 0
    for i, (method, path) in enumerate(rows):
        e, mine = theirs.get("n-%d" % i), ours[method, path.partition("?")[0]].pop(0)
        if mine["kind"] == "denied":
            unread += 1  # what we do not read, or the server's own 500
            continue
        ref = (e or {}).get("objectRef")
        what = ""
        if ref:
            group = ref.get("apiGroup", "")
            what = "%s %s%s%s %s%s%s" % (e["verb"], ref["resource"], "." + group if group else "", "/" + ref["subresource"] if ref.get("subresource") else "",
                                         ref.get("namespace", ""), "/" if ref.get("namespace") else "", ref.get("name", ""))
            if "pods/exec" in what:
                what = what.replace("get ", "create ", 1)  # a stream, which ours calls so by whichever method
        compared += 1
        if e is None or (mine.get("kubernetes", "") != what.strip() and mine.get("kubernetes", "") != what):
            wrong.append("%s %s: %r, theirs %r" % (method, path, mine.get("kubernetes"), what if e else None))
    t.ok(not wrong and compared > 230, "%d requests are read as kube-apiserver reads them (%d refused unread)" % (compared, unread), *wrong[:20])


def kubeconfig(box, folder, at=AT):
    """kubectl inside, with a placeholder for its token; -> a function that runs it"""
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://" + at}}],
              "users": [{"name": "u", "user": {"token": box.sh("echo $TOKEN")[1].strip()}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
    box.sh("mkdir -p ~/.kube; cat > ~/.kube/config", stdin=json.dumps(config))
    return lambda words, **kw: box.sh("%s/kubectl %s" % (folder, words), **kw)


def kubectl(t, cluster, folder):
    """kubectl inside: what the rule grants works, what it does not is told in its own words."""
    d = bed(t, "kubectl", "127.0.0.1:%d" % cluster.port, cluster.token, ENTRIES)
    d.ca = cluster.ca
    for ns in ("team-a", "prod"):
        cluster.ask("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": ns}}))
        cluster.ask("POST", "/api/v1/namespaces/%s/pods" % ns, json.dumps(
            {"metadata": {"name": "web-1"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
    box = durward.Sandbox(d, binds=["%s:%s:ro" % (folder, folder)])
    k = kubeconfig(box, folder)
    status, out, err = k("get pods -n team-a")
    t.ok(status == 0 and "web-1" in out, "kubectl get, discovery and all", out, err)
    for words, what in (("get pods -n prod", "another namespace"), ("get pods -A", "all namespaces"), ("get secrets -n team-a", "another resource"),
                        ("delete pod web-1 -n team-a", "another verb"), ("get nodes", "what has no namespace"), ("get pods -n team-a --as admin", "to be somebody else")):
        status, out, err = k(words)
        t.ok(status != 0 and "Durward denied this request" in err and "kubernetes" in err, "%s is refused, and kubectl says why" % what, out, err)
    status, out, err = k("create configmap x --from-literal=a=b -n team-a && %s/kubectl get configmap x -n team-a -o jsonpath={.data.a}" % folder)
    t.ok(status == 0 and out.endswith("b"), "create, and get", out, err)
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "z", "namespace": "team-a"}, "data": {"a": "%s"}})
    said = [k("apply -f -", stdin=manifest % x) for x in "bc"] + [k("apply --server-side --force-conflicts -f -", stdin=manifest % "d")]
    t.ok([x[0] for x in said] == [0, 0, 0] and "configured" in said[1][1], "apply, there and again, and by the server", str(said))
    status, out, err = k("apply -f -", stdin=manifest.replace("team-a", "team-b") % "b")
    t.ok(status != 0 and "Durward denied this request" in err, "apply elsewhere is refused", out, err)
    status, out, err = box.sh("timeout 15 %s/kubectl get configmaps -n team-a -w -o name > ~/watched & for i in $(seq 100); do grep -q /x ~/watched && break; sleep 0.1; done; "
                              "%s/kubectl create configmap y --from-literal=a=b -n team-a >&2; for i in $(seq 100); do grep -q /y ~/watched && break; sleep 0.1; done; "
                              "kill $!; cat ~/watched" % (folder, folder), timeout=40)
    t.ok("configmap/x" in out and "configmap/y" in out, "a watch hears of what comes later", out, err)
    status, out, err = k("exec web-1 -n team-a -- echo hello", timeout=40)
    t.ok(status != 0 and "only an upgrade to WebSocket is carried" in err, "kubectl falls back to SPDY where the server has no node: refused, and said", out, err)
    status, out, err = k("exec db-1 -n team-a -- id")
    t.ok(status != 0 and "NotFound" in err or "Durward" in err, "exec elsewhere is refused", out, err)
    d.settle()
    said = [(r["kind"], r.get("kubernetes"), r.get("command")) for r in d.kinds("admitted") + d.kinds("denied")]
    t.ok(("denied", "list pods ", None) in said and ("admitted", "list pods team-a/", None) in said, "both are on record", str(said[:20]))
    t.ok(any(x[1] == "create pods/exec team-a/web-1" and x[2] == "echo hello" for x in said), "an exec with its command", str(said))
    box.close()


def real(t):
    folder = os.environ.get("DURWARD_KUBERNETES", "")
    why = "DURWARD_KUBERNETES names no folder with kube-apiserver and kubectl" if not os.access(os.path.join(folder, "kube-apiserver"), os.X_OK) else \
        None if shutil.which("etcd") else "etcd is not installed"
    if why or not folder:
        t.skip("a real API server", why)
        return
    everything = {"verbs": "*", "resources": ["*", "*/*", "*/proxy"]}
    d = durward.Durward(t, "differential")
    cluster = Cluster(t, folder, d.ca)
    cluster.ca = d.ca
    d.secret("token", cluster.token)
    d.resolve[AT] = "127.0.0.1:%d" % cluster.port
    d.policy("coder", [{"allow": AT + "/**", "kubernetes": everything, "with": {"bearer": "token"}}])
    box = durward.Sandbox(d)
    t.part(differential, t, cluster, d, box)
    box.close()
    t.part(kubectl, t, cluster, folder)


def streams(t):
    """Of a real kubelet: logs, exec, attach, cp and port-forward of a pod that runs, over WebSocket through Durward."""
    c, at = kubernetes.Cluster(t), "kubernetes.default.svc:6443"
    with open("/run/cni/net.d/10-pods.conflist", "w") as f:
        json.dump({"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "isGateway": True, "ipam": {
            "type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]]}}]}, f)
    c.namespace("team-a")
    c.namespace("team-b")
    c.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "agent"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "team-a"}]})
    token = c.ask("POST", "/api/v1/namespaces/team-a/serviceaccounts/default/token", {"spec": {}})[1]["status"]["token"]
    pod = kubernetes.Pod(c, "team-a", "web-1", volume=False)
    t.ok(pod.create() is None and pod.ready(60), "a pod runs", c.events("team-a"))
    other = kubernetes.Pod(c, "team-b", "web-1", volume=False)
    t.ok(other.create() is None and other.ready(60), "another, of which a rule says what may run", c.events("team-b"))
    d = durward.Durward(t, "streams")
    d.secret("token", token)
    d.extra["upstream"] = {"ca": [c.ca.pem], "resolve": {at: "127.0.0.1:6443"}}
    d.policy("coder", [{"allow": at + "/**", "websocket": True, "kubernetes": ENTRIES, "with": {"bearer": "token"}}],
             env={"TOKEN": "{{placeholder token}}"})
    box = durward.Sandbox(d, binds=["%s:%s:ro" % (c.bin, c.bin)])
    k = kubeconfig(box, c.bin, at)
    status, out, err = k("exec web-1 -n team-a -- sh -c 'echo hello; exit 7'", timeout=40)
    t.ok(status == 7 and out == "hello\n", "exec runs, with its output and its status", out, err)
    status, out, err = k("exec web-1 -n team-b -- id", timeout=40)
    d.settle()
    t.ok(status != 0 and "Durward refused this request" in err and ("create pods/exec team-b/web-1", "id") in [
        (r.get("kubernetes"), r.get("command")) for r in d.kinds("denied") if r.get("code") == "kubernetes"],
        "exec of what no entry lets run is refused and on record; kubectl then tries SPDY, and says that this is refused", out, err)
    status, out, err = k("exec web-1 -n team-b -- cat /tmp/none", timeout=40)
    t.ok(status != 0 and "open" in out + err and "Durward" not in out + err, "of what one does it is the cluster's answer", out, err)
    status, out, err = k("exec -i web-1 -n team-a -- wc -c", stdin="x" * 300000, timeout=40)
    bare = c.kubectl("exec", "-i", "web-1", "-n", "team-a", "--", "wc", "-c", stdin="x" * 300000)[1].strip()
    t.ok(out.strip() == "300000" or out.strip().isdigit() and bare != "300000", "its input arrives whole (kubectl's own end of it: %s of 300000 without us)" % bare, out, err)
    status, out, err = k("logs web-1 -n team-a", timeout=40)
    t.eq(status, 0, "logs")
    status, out, err = box.sh("head -c 200000 /dev/urandom > ~/f; cd ~; %s/kubectl cp f web-1:/f -n team-a && "
                              "%s/kubectl cp web-1:/f g -n team-a && cmp f g && echo same" % (c.bin, c.bin), timeout=60)
    t.ok("same" in out, "cp there and back", out, err)
    status, out, err = box.sh("%s/kubectl port-forward web-1 -n team-a 18080:8080 >/dev/null 2>~/pf & for i in $(seq 100); do curl -s -o /dev/null "
                              "-w '%%{http_code}' http://127.0.0.1:18080/ && break; sleep 0.1; done; kill $!; cat ~/pf >&2" % c.bin, timeout=40)
    t.ok(out.endswith("200"), "port-forward", out, err)
    d.settle()
    said = [(r.get("kubernetes"), r.get("command")) for r in d.kinds("admitted")]
    t.ok(("create pods/exec team-a/web-1", "sh -c \"echo hello; exit 7\"") in said and ("create pods/portforward team-a/web-1", None) in said,
         "each is on record, with its command", str(said))
    box.close()


def scale(t):
    """A short form of `make kubernetes-scale`: our programs beside nodes and pods that kwok plays."""
    folder = os.environ.get("DURWARD_KUBERNETES", "")
    r = subprocess.run([os.path.join(durward.TOP, "bench/kubernetes"), "--size", os.path.join(durward.TOP, "bench/kubernetes.json")], stdout=subprocess.PIPE,
                       text=True, timeout=20)
    with open(os.path.join(durward.TOP, "doc/how-to/kubernetes.md")) as f:
        t.ok(r.returncode == 0 and r.stdout and r.stdout in f.read(), "what the how-to says of a large cluster is what bench/kubernetes computes", r.stdout[-500:])
    lacks = "not root" if os.geteuid() != 0 else kubernetes.kwok_lacks(folder)
    if lacks:
        t.skip("nodes and pods that kwok plays", lacks)
        return
    r = subprocess.run([os.path.join(durward.TOP, "bench/kubernetes"), "--program", durward.program(), "--programs", folder, "--nodes", "10", "--pods", "40",
                        "--watchers", "2", "--policies", "12", "--namespaces", "4", "--claims", "20", "--seconds", "2", "--every", "3", "--changes", "2",
                        "--settle", "5"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=150)
    t.ok(r.returncode == 0 and "all nodes are labelled" in r.stdout, "40 pods of 10 nodes, 20 claims: each is decided, counted and labelled, and nothing grows", r.stdout[-3000:])


def main(t):
    t.part(stand_in, t)
    real(t)
    t.part(scale, t)
    try:
        kubernetes.needed()
    except tap.Skip as e:
        t.skip("streams of a real kubelet", str(e))
        return
    t.part(streams, t)


tap.run(main, timeout=300)
