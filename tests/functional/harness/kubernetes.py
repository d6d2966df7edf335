"""A Kubernetes of the test's own: etcd, the control plane, containerd and one kubelet, in a network and a mount namespace
of this process. No port of it is the host's, and what it writes below /run, /var/lib and /var/log is gone with it.

The programs of Kubernetes lie in the folder that DURWARD_KUBERNETES names, built from the Go module k8s.io/kubernetes (Debian
has none of this decade); etcd, containerd, runc and the first plugins are Debian's."""
import ctypes
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess

from . import ca, durward, engine, rootfs, tap
from .namespace import ip

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
OTHERS = {"etcd": "etcd-server", "containerd": "containerd", "ctr": "containerd", "runc": "runc", "openssl": "openssl"}
PLUGINS = "/usr/lib/cni"
NODE, NODE_IP, PODS, SERVICE = "node", "192.0.2.10", "10.244.1.", "10.96.0.1"
CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE, MS_SHARED = 0x20000, 0x40000000, 1 << 14, 1 << 18, 1 << 20
CAP_SYS_RESOURCE = 24
LIST = "/run/cni/net.d/10-pods.conflist"
# As a network's own installer writes it.
NETWORK = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "isGateway": True, "ipam": {
    "type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
# What makes a pod's hostPort.
PORTS = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
# A lower oom_score_adj is refused to root without CAP_SYS_RESOURCE, and runc ends over it.
RUNC = """#!/bin/sh
after=
for word; do
    [ "$after" != --bundle ] || sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$word/config.json"
    after=$word
done
exec runc "$@"
"""
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/run/cni/bin"
    conf_dir = "/run/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "%s"
"""


def needed():
    """The folder of Kubernetes' programs; skips where something is missing."""
    if os.geteuid() != 0:
        raise tap.Skip("a node's kubelet and container runtime need root")
    folder = os.environ.get("DURWARD_KUBERNETES")
    if not folder:
        raise tap.Skip("DURWARD_KUBERNETES does not say where Kubernetes' programs are")
    for name in PROGRAMS:
        if not os.access(os.path.join(folder, name), os.X_OK):
            raise tap.Skip("%s is not in %s" % (name, folder))
    for name, package in OTHERS.items():
        if not shutil.which(name):
            raise tap.Skip("%s is missing (package %s)" % (name, package))
    if not os.access(os.path.join(PLUGINS, "bridge"), os.X_OK):
        raise tap.Skip("%s is missing (package containernetworking-plugins)" % PLUGINS)
    return os.path.abspath(folder)


def kwok_lacks(folder):
    """Why kwok cannot play nodes and pods, or None. From 0.8 on it plays nothing of itself: it has to be told in stages."""
    path = os.path.join(folder, "kwok")
    if not os.access(path, os.X_OK):
        return "%s is not there: build sigs.k8s.io/kwok/cmd/kwok@v0.7.0" % path
    said = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20).stdout
    found = re.search(r"\bv0\.(\d+)\.", said)
    return None if found and int(found[1]) < 8 else "kwok is not of a version before 0.8 (%s): build sigs.k8s.io/kwok/cmd/kwok@v0.7.0" % said.strip()


def _must(result, what):
    if result != 0:
        raise tap.Skip("%s: %s" % (what, os.strerror(ctypes.get_errno())))


def leave_host():
    """Into namespaces of this process's own, with folders of their own where a node's programs write."""
    libc = ctypes.CDLL(None, use_errno=True)
    _must(libc.unshare(CLONE_NEWNS | CLONE_NEWNET), "no namespaces for a cluster")
    for how in (MS_PRIVATE, MS_SHARED):  # ours alone, and shared among us, as a node's are
        _must(libc.mount(None, b"/", None, MS_REC | how, None), "mount propagation")
    for where in ("/run", "/var/lib", "/var/log", "/var/cache"):
        _must(libc.mount(b"tmpfs", where.encode(), b"tmpfs", 0, b"mode=755"), "a tmpfs at " + where)
    with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
        f.write("1")
    for words in (("link", "set", "lo", "up"), ("link", "add", "node0", "type", "bridge"), ("link", "set", "node0", "up"),
                  ("addr", "add", NODE_IP + "/24", "dev", "node0"), ("addr", "add", "2001:db8::10/64", "dev", "node0", "nodad"),
                  ("route", "add", "default", "via", "192.0.2.1", "dev", "node0")):
        if ip(*words).returncode != 0:
            raise tap.Skip("cannot make the node's network: ip %s" % " ".join(words))


def lacks_resource():
    with open("/proc/self/status") as f:
        return not int(re.search(r"CapEff:\s*(\w+)", f.read())[1], 16) >> CAP_SYS_RESOURCE & 1


def image(name, layer, entrypoint):
    """As `docker save` writes it, for `ctr images import`."""
    config = json.dumps({"architecture": rootfs.architecture(), "os": "linux", "config": {"Entrypoint": entrypoint},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}).encode()
    digest = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": digest + ".json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    return rootfs.archive([rootfs.member("manifest.json", content=json.dumps(manifest).encode()),
                           rootfs.member(digest + ".json", content=config), rootfs.member("layer.tar", content=layer)])


def image_files(t):
    """What the pods of a test run in: the paths of images, for `ctr images import`."""
    pause, agent = (t.path("cluster", "image-%s.tar" % x) for x in ("pause", "agent"))
    if not os.path.exists(agent):
        t.write("cluster/image-pause.tar", image("localhost/pause:1", engine.rootfs(), ["/bin/busybox", "tail", "-f", "/dev/null"]))
        t.write("cluster/image-agent.tar", image("localhost/agent:1", engine.rootfs(files=engine.python_files()), ["/bin/sh"]))
    return pause, agent


def plugins_of(folder, ours=True):
    """The runtime's plugins: Debian's, and ours."""
    os.makedirs(folder, exist_ok=True)
    own = [os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec/durward/durward-cni")]
    for path in [os.path.join(PLUGINS, x) for x in os.listdir(PLUGINS)] + (own if ours else []):
        os.symlink(path, os.path.join(folder, os.path.basename(path)))


def containerd_config(t):
    runc = t.write("cluster/runc", RUNC, 0o755) if lacks_resource() else shutil.which("runc")
    return t.write("cluster/containerd.toml", CONTAINERD % runc)


def hierarchies():
    """Of control groups: one, or one a controller."""
    top = "/sys/fs/cgroup"
    if os.path.exists(top + "/cgroup.controllers"):
        return [top]
    return [x for x in (os.path.join(top, name) for name in os.listdir(top)) if os.path.isdir(x) and not os.path.islink(x)]


def kubelet_config(authority, crt, key, group):
    """group: of control groups, below which a kubelet ends what it does not know."""
    for top in hierarchies():
        os.makedirs(os.path.join(top, group), exist_ok=True)
    return {"cgroupRoot": "/" + group, "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": False,
            "failSwapOn": False, "cgroupDriver": "cgroupfs", "enforceNodeAllocatable": [], "makeIPTablesUtilChains": False,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": authority}},
            "authorization": {"mode": "Webhook"}, "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "tlsCertFile": crt, "tlsPrivateKeyFile": key, "evictionHard": {}, "imageGCHighThresholdPercent": 100,
            "volumePluginDir": "/var/lib/kubelet/plugins", "registerWithTaints": []}


def documented(heading):
    """The first block of JSON below a heading of the how-to: what it says is what is tried."""
    with open(os.path.join(durward.TOP, "doc/how-to/kubernetes.md")) as f:
        part = f.read().partition(heading)[2]
    return json.loads(re.search(r"```json\n(.*?)```", part, re.S)[1])


def inside(pid, command):
    """In the container of this process of the host's."""
    r = subprocess.run(["nsenter", "-t", str(pid), "-m", "-n", "-p", "/bin/sh", "-c", command], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=40, text=True,
                       env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    return r.stdout


class Cluster:
    def __init__(self, t, plugin=True):
        self.t, self.bin, self.running, self.plugin, self.groups = t, needed(), {}, plugin, []
        leave_host()
        self.dir = t.mkdir("cluster")
        t.cleanup(self.end)
        self.ca = ca.Authority(os.path.join(self.dir, "pki"), "Cluster CA")
        self.users = {}
        for name, subject in (("admin", "/O=system:masters/CN=admin"), ("manager", "/CN=system:kube-controller-manager"),
                              ("scheduler", "/CN=system:kube-scheduler"), ("kubelet", "/O=system:nodes/CN=system:node:" + NODE)):
            self.user(name, subject)
        self.control_plane()
        self.runtime()
        self.start_kubelet()

    # ---- keys ----

    def openssl(self, *words):
        subprocess.run(("openssl",) + words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.dir)

    def pair(self, name, subject, san=None):
        """A key and its certificate of the cluster's CA, as server or client."""
        key, csr, crt, ext = (os.path.join(self.dir, name + x) for x in (".key", ".csr", ".crt", ".ext"))
        with open(ext, "w") as f:
            f.write("extendedKeyUsage=serverAuth,clientAuth\n" + ("subjectAltName=%s\n" % san if san else ""))
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", csr,
                     "-subj", subject)
        self.openssl("x509", "-req", "-in", csr, "-CA", self.ca.pem, "-CAkey", self.ca.key, "-CAcreateserial", "-out", crt,
                     "-days", "2", "-extfile", ext)
        return crt, key

    def user(self, name, subject, server="127.0.0.1"):
        crt, key = self.pair(name, subject)
        text = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": "https://%s:6443" % server, "certificate-authority": self.ca.pem}}],
                "users": [{"name": "u", "user": {"client-certificate": crt, "client-key": key}}]}
        self.users[name] = self.t.write("cluster/%s.conf" % name, json.dumps(text), 0o600)
        return self.users[name]

    # ---- programs ----

    def start(self, name, *argv):
        with open(os.path.join(self.dir, name + ".log"), "ab") as log:
            self.running[name] = self.t.popen(list(argv), stdout=log, stderr=log, cwd=self.dir)

    def ours(self, name):
        return os.path.join(self.bin, name)

    def log(self, name, size=2000):
        with open(os.path.join(self.dir, name + ".log"), errors="replace") as f:
            return f.read()[-size:]

    def control_plane(self):
        self.openssl("genrsa", "-out", "accounts.key", "2048")
        self.openssl("rsa", "-in", "accounts.key", "-pubout", "-out", "accounts.pub")
        crt, key = self.pair("apiserver", "/CN=kube-apiserver", "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:%s,IP:%s" % (
            NODE_IP, SERVICE))
        admin = [os.path.join(self.dir, "admin" + x) for x in (".crt", ".key")]
        self.apiserver = [
            self.ours("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443",
            "--advertise-address=" + NODE_IP, "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
            "--client-ca-file=" + self.ca.pem, "--tls-cert-file=" + crt, "--tls-private-key-file=" + key,
            "--kubelet-client-certificate=" + admin[0], "--kubelet-client-key=" + admin[1],
            "--kubelet-certificate-authority=" + self.ca.pem, "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=accounts.pub",
            "--service-account-signing-key-file=accounts.key", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            "--enable-admission-plugins=NodeRestriction"]
        self.start_etcd()
        self.start_apiserver()
        self.tls = ssl.create_default_context(cafile=self.ca.pem)
        self.tls.load_cert_chain(*admin)
        if not tap.wait_for(self.answers, 240, 0.1):
            raise RuntimeError("the API server is not ready: " + self.log("apiserver"))
        self.start("manager", self.ours("kube-controller-manager"), "--kubeconfig=" + self.users["manager"],
                   "--service-account-private-key-file=accounts.key", "--root-ca-file=" + self.ca.pem,
                   "--use-service-account-credentials", "--leader-elect=false")
        self.start("scheduler", self.ours("kube-scheduler"), "--kubeconfig=" + self.users["scheduler"], "--leader-elect=false")

    def start_etcd(self):
        self.start("etcd", "etcd", "--data-dir", "/var/lib/etcd", "--unsafe-no-fsync=true")

    def start_apiserver(self):
        self.start("apiserver", *self.apiserver)

    def answers(self):
        return self.ask("GET", "/readyz")[0] == 200

    def runtime(self):
        """containerd, with the plugins and their list as the how-to says."""
        os.makedirs("/run/cni/net.d")
        plugins_of("/run/cni/bin", self.plugin)
        text = documented("## A gate in each pod's own network") if self.plugin else dict(NETWORK, plugins=list(NETWORK["plugins"]))
        if self.plugin:
            text["plugins"].insert(1, PORTS)
        with open(LIST, "w") as f:
            json.dump(text, f)
        self.containerd = containerd_config(self.t)
        self.start_containerd()
        for path in image_files(self.t):
            self.import_image(path)

    @staticmethod
    def import_image(path):
        subprocess.run(["ctr", "-n", "k8s.io", "images", "import", "--snapshotter", "native", path], check=True, stdout=subprocess.DEVNULL)

    def take(self, archive):
        """An image, as `docker save` writes it."""
        path = self.t.write("cluster/image.tar", archive)
        self.import_image(path)
        os.unlink(path)

    def start_containerd(self):
        self.start("containerd", "containerd", "-c", self.containerd)
        if not tap.wait_for(lambda: subprocess.run(["ctr", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0,
                            30, 0.1):
            raise RuntimeError("containerd does not answer: " + self.log("containerd"))

    def start_kubelet(self):
        crt, key = self.pair("kubelet-server", "/CN=" + NODE, "DNS:%s,IP:%s" % (NODE, NODE_IP))
        self.kubelet_config = self.t.write("cluster/kubelet.yaml", json.dumps(kubelet_config(self.ca.pem, crt, key, self.group(1))))
        self.begin_kubelet()
        ready = tap.wait_for(lambda: [n for n in self.items("/api/v1/nodes") if self.condition(n, "Ready")], 90, 0.2)
        if not ready:
            raise RuntimeError("the node is not ready: " + self.log("kubelet"))

    def group(self, number):
        """Of this test's, for a node."""
        self.groups.append("durward-test-%d-%d" % (os.getpid(), number))
        return self.groups[-1]

    def begin_kubelet(self):
        for top in hierarchies():
            os.makedirs(os.path.join(top, self.groups[0]), exist_ok=True)
        self.start("kubelet", self.ours("kubelet"), "--config=" + self.kubelet_config, "--kubeconfig=" + self.users["kubelet"],
                   "--hostname-override=" + NODE, "--node-ip=" + NODE_IP)

    def kill(self, name):
        p = self.running[name]
        p.send_signal(signal.SIGKILL)
        p.wait()

    # ---- the API ----

    def ask(self, method, path, body=None, kind="application/json", account=None):
        """-> (status, the answer's JSON or text); status 0: nobody answers."""
        c = http.client.HTTPSConnection("127.0.0.1", 6443, timeout=20, context=self.tls)
        try:
            c.request(method, path, None if body is None else json.dumps(body), dict(
                {"Content-Type": kind}, **({"Impersonate-User": "system:serviceaccount:" + account} if account else {})))
            r = c.getresponse()
            text = r.read().decode()
        except OSError:
            return 0, ""
        finally:
            c.close()
        return r.status, json.loads(text) if text.startswith("{") else text

    def items(self, path):
        status, said = self.ask("GET", path)
        return said["items"] if status == 200 else []

    @staticmethod
    def condition(thing, name):
        return any(c["type"] == name and c["status"] == "True" for c in thing.get("status", {}).get("conditions", []))

    def kubectl(self, *args, stdin=None, timeout=60):
        """-> (exit status, what it said on both)."""
        r = subprocess.run([self.ours("kubectl"), "--kubeconfig", self.users["admin"]] + list(args), input=stdin, timeout=timeout,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                           **({} if stdin is not None else {"stdin": subprocess.DEVNULL}))
        return r.returncode, r.stdout

    def apply(self, *objects):
        return self.kubectl("apply", "-f", "-", stdin="---\n".join(json.dumps(x) + "\n" for x in objects))

    def namespace(self, name):
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if not tap.wait_for(lambda: self.ask("GET", "/api/v1/namespaces/%s/serviceaccounts/default" % name)[0] == 200, 30, 0.1):
            raise RuntimeError("the namespace %s has no account: %s" % (name, self.log("manager")))

    def events(self, namespace):
        return "\n".join(e.get("message", "") for e in self.items("/api/v1/namespaces/%s/events" % namespace))

    # ---- the end ----

    def crash(self):
        """The node loses its power: nothing of it runs on, and what it had in memory is gone. Its control plane is elsewhere."""
        kept = {p.pid for name, p in self.running.items() if name not in ("kubelet", "containerd")}
        for name in ("kubelet", "containerd"):
            self.kill(name)
        def left():
            return [pid for pid, _ in tap.descendants() if pid not in kept]
        for _ in range(200):
            for pid in left():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if tap.wait_for(lambda: not left(), 0.1, 0.01):
                break
        with open("/proc/self/mounts") as f:
            mounts = [x.split()[1] for x in f]
        for where in reversed(mounts):
            if where.startswith(("/run/netns/", "/run/containerd/", "/var/lib/kubelet/pods/")):
                subprocess.run(["umount", "-l", where], stderr=subprocess.DEVNULL)
        for where in ("/run/netns", "/run/containerd", "/run/durward", "/run/objects"):
            shutil.rmtree(where, ignore_errors=True)
        ip("link", "del", "cni0")
        self.drop_groups()

    def end(self):
        """First who would start something again; then all that is left of pods, which is all ours."""
        first = ("kubelet", "manager", "scheduler", "containerd")
        for name in sorted((x for x in self.running if x.startswith(first)), key=lambda x: [x.startswith(y) for y in first], reverse=True):
            tap.stop(self.running[name])
        kept = {p.pid for p in self.running.values() if p.poll() is None}
        def left():
            return [pid for pid, _ in tap.descendants() if pid not in kept]
        for pid in left():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        tap.wait_for(lambda: not left(), 10, 0.05)
        self.drop_groups()

    def drop_groups(self):
        for top in hierarchies() if os.path.isdir("/sys/fs/cgroup") else []:
            for where, _, _ in [x for g in self.groups for x in os.walk(os.path.join(top, g), topdown=False)]:
                try:
                    os.rmdir(where)
                except OSError:
                    pass


class Pod:
    """A pod of the usual image that serves HTTP at port 8080, which the kubelet probes."""

    def __init__(self, cluster, namespace, name, volume=True, **more):
        self.cluster, self.ns, self.name = cluster, namespace, name
        self.path = "/api/v1/namespaces/%s/pods/%s" % (namespace, name)
        container = {"name": "c", "image": "localhost/agent:1", "imagePullPolicy": "Never",
                     "command": ["/bin/sh", "-c", "exec python3 -m http.server 8080 --directory /usr"],
                     "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}}
        container.update(more.pop("container", {}))
        spec = {"containers": [container], "automountServiceAccountToken": False, "enableServiceLinks": False, "dnsPolicy": "None",
                "dnsConfig": {"nameservers": ["127.0.0.1"]}, "terminationGracePeriodSeconds": 0}
        if volume:
            container["volumeMounts"] = [{"name": "durward", "mountPath": "/etc/durward", "readOnly": True}]
            spec["volumes"] = [{"name": "durward", "emptyDir": {}}]
        metadata = {"name": name, "namespace": namespace, "labels": {"app": "agent"}}
        metadata.update(more.pop("metadata", {}))
        spec.update(more)
        self.object = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def create(self):
        """-> what the API server said, if it refused."""
        status, said = self.cluster.ask("POST", os.path.dirname(self.path), self.object)
        return None if status == 201 else said.get("message", str(said)) if isinstance(said, dict) else said

    def get(self):
        status, said = self.cluster.ask("GET", self.path)
        return said if status == 200 else None

    def ready(self, seconds=40):
        return bool(tap.wait_for(lambda: self.cluster.condition(self.get() or {}, "Ready"), seconds, 0.1))

    def address(self):
        return (self.get() or {}).get("status", {}).get("podIP", "")

    def sh(self, command, timeout=40):
        """By `kubectl exec`, as root of the container, with the environment that the pod's volume has."""
        return self.cluster.kubectl("exec", "-n", self.ns, self.name, "--", "/bin/sh", "-c",
                                    "test -r /etc/durward/env && . /etc/durward/env\n" + command + "\ntrue", timeout=timeout)[1]

    def delete(self, seconds=30):
        self.cluster.ask("DELETE", self.path + "?gracePeriodSeconds=0")
        return bool(tap.wait_for(lambda: self.get() is None, seconds, 0.1))

    def processes(self):
        """The host's numbers of its processes."""
        own = "/%s" % (self.get() or {}).get("metadata", {}).get("uid", "-")
        found = []
        for pid, _ in tap.descendants():
            try:
                with open("/proc/%d/cgroup" % pid) as f:
                    if own in f.read().replace("pod", "/").replace("_", "-"):
                        found.append(pid)
            except OSError:
                pass
        return found
