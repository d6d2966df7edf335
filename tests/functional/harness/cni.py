"""A node's network as a container runtime makes it, and its calls of durward-cni by hand (root only). The node is this
host; pods are network namespaces on a bridge; a stranger on it is no pod of Durward's."""
import json
import os
import random
import subprocess

from . import durward
from .namespace import ip
from .tap import Skip

NETNS = "/run/netns"


class Node:
    def __init__(self, t, d):
        self.t, self.d, self.n, self.pods = t, d, 0, []
        self.id = os.getpid() % 100000
        self.net = "10.214.%d." % random.randrange(1, 250)
        self.ip = self.net + "1"
        self.bridge = "dwb%d" % self.id
        self.socket = os.path.join(os.path.dirname(d.socket), "node.sock")
        self.kubelet = t.mkdir("kubelet")
        self.plugin = os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec/durward/durward-cni")
        os.makedirs(NETNS, exist_ok=True)
        if ip("link", "add", self.bridge, "type", "bridge").returncode != 0:
            raise Skip("cannot make a bridge")
        t.cleanup(lambda: ip("link", "del", self.bridge))
        self.must("addr", "add", self.ip + "/24", "dev", self.bridge)
        self.must("link", "set", self.bridge, "up")
        d.extra["node"] = {"socket": self.socket, "kubelet": self.kubelet, "namespaces": {"agents": "coder"},
                           "unbound": ["kube-system"]}

    def must(self, *args, ns=None):
        r = ip(*args, ns=ns)
        if r.returncode != 0:
            raise Skip("cannot make a pod's network: ip %s: %s" % (" ".join(args), r.stderr.decode().strip()))

    def pod(self, name, bare=False, of=None):
        self.pods.append(Pod(self, name, bare, of))
        return self.pods[-1]


class Pod:
    """A namespace, or the one of this process, with what a bridge plugin makes in it; `add` has Durward give it its way out."""

    def __init__(self, node, name, bare, of):
        node.n += 1
        self.node, self.t, self.name, self.started = node, node.t, name, []
        self.ns = "cni-dwt%d-%d" % (node.id, node.n)
        self.container = "%064x" % random.getrandbits(256)
        self.uid = "uid-%d-%d" % (node.id, node.n)
        self.address = node.net + str(10 + node.n)
        self.host = "dwv%d-%d" % (node.id % 10000, node.n)
        self.volume = os.path.join(node.kubelet, "pods", self.uid, "volumes/kubernetes.io~empty-dir/durward")
        self.pin = os.path.join(NETNS, "durward-" + self.container)
        node.must(*(("netns", "attach", self.ns, str(of)) if of else ("netns", "add", self.ns)))
        self.t.cleanup(self.remove)
        self.t.cleanup(lambda: self.call("DEL"))
        if bare:
            return
        node.must("link", "add", self.host, "type", "veth", "peer", "name", "eth0", "netns", self.ns)
        node.must("link", "set", self.host, "master", node.bridge, "up")
        for words in (("link", "set", "lo", "up"), ("addr", "add", self.address + "/24", "dev", "eth0"),
                      ("link", "set", "eth0", "up"), ("route", "add", "default", "via", node.ip)):
            node.must(*words, ns=self.ns)
        os.makedirs(self.volume)
        self.resolv = self.t.write("resolv-%d" % node.n, "nameserver 127.0.0.1\n")

    def remove(self):
        for path in (self.pin, os.path.join(NETNS, self.ns)):
            while subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL).returncode == 0:
                pass
            if os.path.exists(path):
                os.unlink(path)
        ip("link", "del", self.host)

    # ---- the runtime's side ----

    def config(self, **more):
        result = {"cniVersion": "1.0.0", "interfaces": [{"name": self.host}, {"name": "eth0", "sandbox": NETNS + "/" + self.ns}],
                  "ips": [{"address": self.address + "/24", "gateway": self.node.ip, "interface": 1}], "routes": [{"dst": "0.0.0.0/0"}]}
        return dict({"cniVersion": "1.0.0", "name": "n", "type": "durward-cni", "socket": self.node.socket, "netns": NETNS,
                     "kubelet": self.node.kubelet,
                     "prevResult": result}, **more)

    def call(self, command, namespace="agents", config=None, **env):
        """-> (status, what it printed as JSON or None)"""
        words = {"CNI_COMMAND": command, "CNI_CONTAINERID": self.container, "CNI_NETNS": NETNS + "/" + self.ns,
                 "CNI_IFNAME": "eth0", "CNI_PATH": "/usr/lib/cni", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                 "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_UID=%s" % (namespace, self.name, self.uid)}
        for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if k in os.environ:
                words[k] = os.environ[k]
        words.update(env)
        r = subprocess.run([self.node.plugin], input=json.dumps(config or self.config()).encode(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60, env=words)
        if r.stderr:
            self.t.diag(r.stderr)
        return r.returncode, json.loads(r.stdout) if r.stdout.strip() else None

    # ---- inside ----

    def sh(self, command, timeout=30):
        """As root with every capability, with the environment and trust that the pod's volume has."""
        env = os.path.join(self.volume, "env")
        lines = "mount --bind %s /etc/resolv.conf; " % self.resolv
        if os.path.exists(env):
            with open(env) as f:
                lines += f.read().replace("/etc/durward", self.volume)
        r = subprocess.run(["ip", "netns", "exec", self.ns, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent",
                            "sh", "-c", lines + "\n" + command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=timeout)
        return r.returncode, r.stdout.decode("utf-8", "replace")

    def start(self, *argv):
        p = self.t.popen(["ip", "netns", "exec", self.ns] + list(argv), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(p)
        return p

    def links(self):
        r = ip("-o", "link", "show", "up", ns=self.ns)
        return sorted(x.split(": ")[1].split("@")[0] for x in r.stdout.decode().splitlines())
