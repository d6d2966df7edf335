"""More nodes of the test's cluster: containerd and a kubelet in a mount and a network namespace of their own, behind a link that
can be cut."""
import ctypes
import json
import os
import socket
import subprocess
import threading

from . import tap
from .kubernetes import CLONE_NEWNET, LIST, NODE_IP, containerd_config, documented, image_files, kubelet_config, plugins_of
from .namespace import ip

SETUP = """set -e
for x in /run /var/lib /var/log /var/cache; do mount -t tmpfs -o mode=755 tmpfs $x; done
mount --make-rshared /
mkdir -p /run/cni/net.d /run/cni/bin /run/durward /run/objects
chmod 700 /run/durward
echo 1 >/proc/sys/net/ipv4/ip_forward
ip link set lo up
ip addr add %(ip)s/24 dev uplink
ip link set uplink up
ip route add default via 192.0.2.1"""


def listening_at(pid, host, port):
    """A listening socket in the network namespace of that process."""
    made = []

    def enter():
        with open("/proc/%d/ns/net" % pid) as f:
            if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), CLONE_NEWNET) == 0:  # of this thread alone
                made.append(socket.create_server((host, port), backlog=512))
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return made[0]


class Node:
    """Number 2 and up; the cluster's own is the first."""

    def __init__(self, cluster, number):
        self.c, self.t = cluster, cluster.t
        self.name, self.ip = "node%d" % number, NODE_IP + "%d" % number
        self.holder = self.t.popen(["unshare", "-m", "-n", "--propagation", "private", "sleep", "infinity"])
        own = os.stat("/proc/self/ns/net").st_ino
        if not tap.wait_for(lambda: os.stat("/proc/%d/ns/net" % self.holder.pid).st_ino != own and self.sleeps(), 10, 0.02):
            raise tap.Skip("no namespaces for another node")
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-m", "-n", "--"]
        self.root = "/proc/%d/root" % self.holder.pid
        self.link()
        self.runtime(number)
        self.kubelet(number)

    def sleeps(self):
        with open("/proc/%d/comm" % self.holder.pid) as f:
            return f.read().strip() == "sleep"

    def run(self, *argv):
        return subprocess.run(self.enter + list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)

    def link(self):
        made = ip("link", "add", self.name, "type", "veth", "peer", "name", "uplink", "netns", str(self.holder.pid))
        up = ip("link", "set", self.name, "master", "node0", "up")
        inside = self.run("sh", "-c", SETUP % {"ip": self.ip})
        if made.returncode or up.returncode or inside.returncode:
            raise tap.Skip("cannot make another node's network: %s" % inside.stdout)

    def cut(self, really=True):
        """And waits until its own end of the link knows."""
        ip("link", "set", self.name, "down" if really else "up")
        tap.wait_for(lambda: ("NO-CARRIER" in self.run("ip", "link", "show", "uplink").stdout) == really, 10, 0.05)

    def runtime(self, number):
        plugins_of(self.root + "/run/cni/bin")
        text = json.dumps(documented("## A gate in each pod's own network")).replace("10.244.1.", "10.244.%d." % number)
        with open(self.root + LIST, "w") as f:
            f.write(text)
        self.c.start("containerd-" + self.name, *self.enter, "containerd", "-c", containerd_config(self.t))
        if not tap.wait_for(lambda: self.run("ctr", "version").returncode == 0, 30, 0.1):
            raise RuntimeError("containerd does not answer: " + self.c.log("containerd-" + self.name))
        for path in image_files(self.t):
            said = self.run("ctr", "-n", "k8s.io", "images", "import", "--snapshotter", "native", path)
            if said.returncode:
                raise RuntimeError("an image: " + said.stdout)

    def kubelet(self, number):
        conf = self.c.user("kubelet-" + self.name, "/O=system:nodes/CN=system:node:" + self.name, NODE_IP)
        crt, key = self.c.pair("kubelet-server-" + self.name, "/CN=" + self.name, "DNS:%s,IP:%s" % (self.name, self.ip))
        path = self.t.write("cluster/kubelet-%s.yaml" % self.name, json.dumps(kubelet_config(self.c.ca.pem, crt, key, self.c.group(number))))
        self.c.start("kubelet-" + self.name, *self.enter, self.c.ours("kubelet"), "--config=" + path, "--kubeconfig=" + conf,
                     "--hostname-override=" + self.name, "--node-ip=" + self.ip)

    def ready(self):
        return any(n["metadata"]["name"] == self.name and self.c.condition(n, "Ready") for n in self.c.items("/api/v1/nodes"))
