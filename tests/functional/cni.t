#!/usr/bin/python3 -B
"""Pods of a Kubernetes node, without Kubernetes: the CNI plugin is called by hand for network namespaces of our own. Names,
paths, methods and credentials as for any sandbox; what is closed; who may connect to a pod; what root in a pod tries; the
deaths of daemon, roles and keeper; CHECK, STATUS, GC, DEL."""
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, cni, scene, tap, wire  # noqa: E402
from harness.nginx import free_port  # noqa: E402
from harness.namespace import ip  # noqa: E402

NS_GET_USERNS = 0xb701  # ioctl_ns(2)
GET = "curl -sS -m 10 -o /dev/null -w '%%{http_code}' %s"
RAW = """
import socket, struct, sys
mac, src, dst, port = bytes.fromhex(sys.argv[1]), socket.inet_aton(sys.argv[2]), socket.inet_aton(sys.argv[3]), int(sys.argv[4])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
udp = struct.pack("!HHHH", 4000, port, 12, 0) + b"leak"
head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, src, dst)
total = sum(struct.unpack("!10H", head))
total = (total & 0xffff) + (total >> 16)
head = head[:10] + struct.pack("!H", ~((total & 0xffff) + (total >> 16)) & 0xffff) + head[12:]
with open("/proc/net/arp") as f:  # our end of the pair, which forwards what is sent to it
    ours = [bytes.fromhex(x.split()[3].replace(":", "")) for x in f if x.startswith("169.254.1.1 ")]
for to in [mac, b"\\xff" * 6] + ours:
    s.send(to + s.getsockname()[4] + b"\\x08\\x00" + head + udp)
print("sent", len(ours))
"""
BOUND = """
import socket, sys
s = socket.socket()
s.settimeout(1)
s.bind((sys.argv[1], 0))
try:
    s.connect((sys.argv[2], int(sys.argv[3])))
    print("connected", s.getsockname())
except OSError as e:
    print("refused", e)
"""


def status(pod, url):
    return pod.sh(GET % url)[1][-3:]


def connects(host, port, seconds=2.0):
    """'yes', 'refused', or 'no': nothing was answered."""
    try:
        socket.create_connection((host, port), seconds).close()
        return "yes"
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "no"


def before(t, s, node):
    """What keeps a pod from starting."""
    pod = node.pod("early")
    code, said = pod.call("ADD")
    t.ok(code == 1 and said["code"] == 11 and "does not answer" in said["msg"], "without the daemon a pod does not start, and the runtime "
         "is told to try again", str(said))
    t.ok(not os.path.exists(pod.pin) and pod.links() == ["eth0", "lo"], "and nothing of it is changed")
    code, said = pod.call("STATUS")
    t.ok(code == 1 and said["code"] == 50, "STATUS says so", str(said))
    s.d.serve()
    code, said = pod.call("ADD", namespace="nowhere")
    t.ok(code == 1 and said["code"] == 100 and "namespace nowhere" in said["msg"], "a pod of a namespace without a policy does not "
         "start", str(said))
    t.ok(not os.path.exists(pod.pin) and pod.links() == ["eth0", "lo"], "and nothing of it is left")
    config = pod.config()
    del config["prevResult"]
    code, said = pod.call("ADD", config=config)
    t.ok(code == 1 and said["code"] == 7, "the plugin says where it has to stand", str(said))
    code, said = pod.call("ADD", CNI_CONTAINERID="../../x")
    t.ok(code == 1 and said["code"] == 4, "a container's id that would be a path is refused", str(said))
    bare = node.pod("bare", bare=True)
    code, said = bare.call("ADD")
    t.ok(code == 1 and "no interface" in said["msg"], "a pod without an interface does not start", str(said))
    code, said = pod.call("ADD", namespace="kube-system")
    t.ok(code == 0 and said == pod.config()["prevResult"] and not os.path.exists(pod.pin) and pod.links() == ["eth0", "lo"],
         "a pod of a namespace that is left alone keeps what it has", str(said))
    t.eq(pod.call("VERSION")[1]["supportedVersions"], ["0.3.1", "0.4.0", "1.0.0", "1.1.0"], "versions of the specification")
    t.eq(pod.call("STATUS"), (0, None), "STATUS: ready")


def way_out(t, s, node, pod):
    code, said = pod.call("ADD")
    t.ok(code == 0 and said == pod.config()["prevResult"], "a pod of a namespace with a policy starts, with the address it had", str(said))
    row = api.Api(s.d.socket).list()["sandboxes"]
    t.eq([(r["state"], r["policy"], r["backend"], r["labels"]) for r in row],
         [("running", "coder", "pod", {"kubernetes.namespace": "agents", "kubernetes.pod": "agent"})], "it is a sandbox of its policy")
    t.eq(pod.call("CHECK"), (0, None), "CHECK")
    code, text = pod.sh("curl -sS -m 10 https://api.github.com/user; echo; echo $GITHUB_TOKEN")
    t.has(text, '"login": "octo"', "curl in the pod has the credential put in")
    t.has(text, "ghp_", "its environment has a placeholder")
    t.eq(status(pod, "-H \"Authorization: Bearer $GITHUB_TOKEN\" https://api.github.com/user"), "200", "which is replaced")
    t.eq([status(pod, "https://api.github.com" + x) for x in ("/gists", "/user/emails")], ["403", "403"], "other paths are denied")
    t.eq(status(pod, "-X DELETE https://api.github.com/repos/acme/secret/x"), "403", "and methods")
    t.eq(status(pod, "https://deps.example.com/"), "200", "a host without a credential")
    t.has(pod.sh("curl -sS -m 5 https://other.example.net/")[1], "Could not resolve", "a name of no rule does not resolve")
    hits = s.scanner.search(pod.sh("env; cat %s/*" % pod.volume)[1], "the pod's environment and volume")
    t.ok(not hits and not s.scanner.hits, "no secret is in the pod's environment or volume")


def closed(t, s, node, pod):
    port = free_port()
    listener = socket.create_server((node.ip, port))
    t.cleanup(listener.close)
    stranger = node.stranger.address
    for what, where in (("the node", "http://%s:%d/" % (node.ip, port)), ("another pod", "http://%s:8080/" % stranger),
                        ("the cloud's metadata", "http://169.254.169.254/latest/"), ("a service", "https://10.96.0.1/"),
                        ("the internet", "http://93.184.216.34/")):
        t.ok(status(pod, "-k " + where) in ("403", "000"), "closed: " + what)
    t.eq(connects(node.ip, port), "yes", "while the node's port is open")
    listener.settimeout(0.2)
    n = 0
    try:
        while True:
            listener.accept()[0].close()
            n += 1
    except OSError:
        pass
    t.eq(n, 1, "and had no connection but this")
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    t.cleanup(udp.close)
    udp.bind((node.ip, 0))
    udp.settimeout(0.5)
    to = udp.getsockname()[1]
    pod.sh("echo leak >/dev/udp/%s/%d || echo leak | socat - UDP:%s:%d" % (node.ip, to, node.ip, to))
    t.has(pod.sh("curl -sS -m 3 http://[2001:db8::1]/ -o /dev/null -w '%{http_code}'; ip -6 route show default | wc -l")[1], "403",
          "IPv6 ends at the gate")
    t.eq(quiet(udp), True, "UDP does not reach the node")
    packets = s.d.wait_records(1, "packet")
    t.ok([r for r in packets if str(to) in str(r)], "and is on record", str(packets)[:500])
    return udp, to


def quiet(udp):
    try:
        return udp.recv(100)
    except OSError:
        return True


def inbound(t, s, node, pod):
    pod.start("python3", "-m", "http.server", "8080", "--bind", "0.0.0.0")
    t.ok(tap.wait_for(lambda: connects(pod.address, 8080) == "yes", 10, 0.1), "the kubelet's probe reaches the pod's server")
    t.eq(connects(pod.address, 8081), "refused", "a closed port is refused, as without Durward")
    t.eq([connects(pod.address, x, 0.5) for x in (53, 901)], ["no", "no"], "Durward's own ports in the pod are closed to all")
    t.eq(status(pod, "http://%s:8080/" % pod.address), "200", "the pod reaches itself by its own address")
    t.eq(status(pod, "http://127.0.0.1:8080/"), "200", "and by loopback")
    code, text = node.stranger.sh(GET % ("-m 2 http://%s:8080/" % pod.address))
    t.ok(text.endswith("000"), "nobody else reaches it, unless node.inbound says so", text)
    seen = tap.wait_for(lambda: s.d.records(event="pod_inbound"), 5, 0.1) or []
    t.ok(any("from %s to port 8080" % node.ip in r.get("detail", "") for r in seen), "who connected is on record", str(seen)[:500])


def tampering(t, s, node, pod, udp, to):
    """Root with every capability in the pod's network."""
    with open("/sys/class/net/%s/address" % node.bridge) as f:
        mac = f.read().strip().replace(":", "")
    raw, bound = t.write("raw.py", RAW), t.write("bound.py", BOUND)
    listener = socket.create_server((node.ip, 0))
    t.cleanup(listener.close)
    port = listener.getsockname()[1]
    words = "python3 %s %s %d; python3 %s %s %s %s %d" % (bound + " " + pod.address, node.ip, port, raw, mac, pod.address, node.ip, to)
    text = pod.sh(words)[1]
    t.has(text, "refused", "a connection from the pod's own address is refused")
    t.has(text, "sent 1", "frames are sent past the pod's own packet rules, to what forwards them too")
    t.eq(quiet(udp), True, "and do not arrive")
    text = pod.sh("ip route flush table main; ip rule flush; ip rule add lookup main; ip rule add lookup local pref 0; "
                  "ip route add 169.254.1.1 dev eth0; ip route add default via 169.254.1.1 dev eth0; " + words +
                  "; " + GET % ("-m 2 http://%s:%d/" % (node.ip, port)))[1]
    t.ok("connected" not in text and quiet(udp) is True, "changed routes and rules gain nothing", text)
    listener.settimeout(0.2)
    try:
        listener.accept()
        t.ok(False, "no connection of these has arrived")
    except OSError:
        t.ok(True, "no connection of these has arrived")
    seen = tap.wait_for(lambda: s.d.records(event="pod_outbound_refused"), 5, 0.1) or []
    t.ok(any("to %s" % node.ip in r.get("detail", "") for r in seen), "what was tried is on record", str(seen)[:500])


def works(pod):
    return status(pod, "https://api.github.com/user") == "200"


def named(name):
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/comm" % pid) as f:
                if f.read().strip() == name:
                    yield pid
        except OSError:
            pass


def deaths(t, s, node, pod):
    for role in ("controller", "builder", "gate"):
        for pid in [p for p, r in s.d.roles() if r == role]:
            os.kill(pid, signal.SIGKILL)
        t.ok(tap.wait_for(lambda: works(pod), 15, 0.2), "the way out comes back when the %s was killed" % role, s.d.diagnostics())
    for pid in named("durward-pod"):
        os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: pod.call("CHECK")[0] == 0 and works(pod), 15, 0.2), "and when the pod's keeper was", s.d.diagnostics())
    s.d.stop()
    t.ok(not works(pod), "without the daemon there is no way out")
    s.d.serve()
    t.ok(tap.wait_for(lambda: works(pod), 15, 0.2), "the daemon's next start gives it back", s.d.diagnostics())
    t.eq(len(api.Api(s.d.socket).list()["sandboxes"]), 1, "as the same sandbox")


def answered(t, pod, command, *fields):
    """-> what the plugin makes of a daemon that answers so, or (no fields) hangs up"""
    path = os.path.join(t.mkdir("false"), "node.sock")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(1)
    listener.settimeout(20)

    def answer():
        c = listener.accept()[0]
        with c:
            c.settimeout(20)
            c.recv(1 << 16)
            if fields:
                c.send(wire.message(wire.POD_DONE, *fields))
                c.recv(1)

    one = threading.Thread(target=answer)
    one.start()
    try:
        return pod.call(command, config=pod.config(socket=path))
    finally:
        one.join()
        listener.close()
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


class Facts:
    """In durward-kubernetes' place: what it says of a pod, at the socket that the plugin asks."""

    def __init__(self, t):
        self.path, self.asked, self.bound, self.says = os.path.join(tempfile.mkdtemp(prefix="dwpods."), "s"), [], [], None
        t.cleanup(lambda: shutil.rmtree(os.path.dirname(self.path)))
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(8)
        t.cleanup(self.listener.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                c = self.listener.accept()[0]
            except OSError:
                return
            with c:
                got = wire.messages(c.recv(1 << 16))[0][1]
                who = [got.text() for _ in range(3)]
                if not got.data:
                    self.asked.append(who)
                if got.data:
                    self.bound.append(got.text())
                elif self.says is not None:
                    c.send(wire.message(wire.POD_FACTS, *self.says))

    def say(self, account, *labels):
        self.says = [wire.u8(1), wire.text(account), wire.u32(len(labels))] + [wire.text(x) for x in labels]


def by_pod(t, s, node):
    """Bindings by label and service account, of which the API server's word counts and no other."""
    facts, kept = Facts(t), dict(s.d.extra["node"]["namespaces"])
    s.d.policies["strict"] = {"rules": [{"allow": "deps.example.com"}]}

    def bound(*bindings):
        s.d.extra["node"]["namespaces"] = dict(kept, mixed=list(bindings))
        s.d.save()
        r = s.d.command("reload", "--socket", s.d.socket)
        t.eq(r.returncode, 0, "bindings by label and account load") or t.diag(r.stderr)
    labelled, accounted = {"policy": "coder", "labels": {"role": "coder"}}, {"policy": "strict", "accounts": ["reviewer"]}
    bound(labelled, accounted)
    n = 0

    def add(account, *labels, says=None, path=facts.path):
        nonlocal n
        n += 1
        pod = node.pod("mixed%d" % n)
        facts.say(account, *labels)
        facts.says = says or facts.says
        return (pod,) + pod.call("ADD", "mixed", pod.config(pods=path))

    def policy(pod):
        return [x["policy"] for x in api.Api(s.d.socket).list()["sandboxes"] if x["labels"]["kubernetes.pod"] == pod.name]
    pod, code, said = add("default", "app=x", "role=coder")
    t.eq((code, policy(pod)), (0, ["coder"]), "a pod with the label has the policy that is bound by it") or t.diag(str(said), s.d.diagnostics())
    t.eq(facts.asked, [["mixed", pod.name, pod.uid]], "the plugin has asked for that pod, by its uid")
    row = [x["id"] for x in api.Api(s.d.socket).list()["sandboxes"] if x["labels"]["kubernetes.pod"] == pod.name]
    t.ok(tap.wait_for(lambda: facts.bound == ["policy coder, gate %s" % row[0]], 5, 0.05), "and says what has become of it", str(facts.bound))
    t.eq(policy(add("reviewer")[0]), ["strict"], "one of the service account has its policy")
    for what, want, args, more in (
            ("a pod that two policies are bound to", "policies coder and strict", ("reviewer", "role=coder"), {}),
            ("one that none is bound to", "no policy for the namespace mixed", ("default", "role=other"), {}),
            ("one that nobody can say anything of", "does not answer", ("x",), {"path": "/nonexistent/s"}),
            ("one that the API server does not have", "another pod", ("x",), {"says": [wire.u8(0), wire.text("another pod")]}),
            ("one with a label that is none", "another version", ("x", "role=coder\nrole"), {}),
            ("one whose labels are cut short", "another version", ("x",), {"says": [wire.u8(1), wire.text("x"), wire.u32(2), wire.text("a=b")]})):
        pod, code, said = add(*args, **more)
        t.ok(code == 1 and want in said["msg"] and policy(pod) == [] and not os.path.exists(pod.pin), what + " does not start", str(said))
    pod, code, said = add("default", "role=coder")
    bound(labelled, dict(accounted, labels={"role": "coder"}), {"policy": "strict"})
    t.ok(pod.call("CHECK")[0] == 0 and policy(pod) == ["coder"], "a binding that is not of a pod that runs changes nothing for it")
    facts.say("default", "role=other")
    asked = len(facts.asked)
    bound({"policy": "coder", "labels": {"role": "other"}}, {"policy": "strict", "labels": {"role": "coder"}})
    t.ok(tap.wait_for(lambda: policy(pod) == ["strict"] and pod.call("CHECK")[0] == 0, 15, 0.1),
         "one that is counts for it, by the labels that it had when it began", s.d.diagnostics())
    t.eq(len(facts.asked), asked, "for which nobody is asked again")
    bound({"policy": "coder", "labels": {"role": "coder"}}, {"policy": "strict", "labels": {"role": "coder"}})
    t.ok(tap.wait_for(lambda: pod.call("CHECK")[0] != 0, 5, 0.1), "and when two policies are bound to it, it has no way out")
    s.d.extra["node"]["namespaces"] = kept
    s.d.save()
    s.d.command("reload", "--socket", s.d.socket)
    for x in [p for p in node.pods if p.name.startswith("mixed")]:
        x.call("DEL")
    t.ok(tap.wait_for(lambda: not any(policy(x) for x in node.pods if x.name.startswith("mixed")), 10, 0.1), "they are deleted")


def lies(t, s, node):
    """Who answers for the daemon chooses neither what the plugin, which is root, writes to, nor what stands there."""
    pod = node.pod("lied", bare=True)
    os.makedirs(pod.volume)
    elsewhere = t.mkdir("elsewhere")
    ok = wire.u8(0)
    for what, where, line in (("another folder", elsewhere, "A=b"), ("a folder above", os.path.dirname(pod.volume), "A=b"),
                              ("a line that is no variable's", pod.volume, "X\n* * * * * root id #=1"),
                              ("a name with a blank", pod.volume, "A B=c"), ("a name that begins with a digit", pod.volume, "1A=c")):
        code, said = answered(t, pod, "ADD", ok, wire.text(""), wire.text(where), wire.u32(1), wire.text(line))
        t.ok(code == 1 and not os.path.exists(pod.pin), "a daemon that names %s starts no pod" % what, str(said))
        t.eq((os.listdir(elsewhere), os.listdir(os.path.dirname(pod.volume)), os.listdir(pod.volume)), ([], ["durward"], []),
             "and nothing is written")
    code, said = answered(t, pod, "ADD", ok, wire.text(""), wire.text(pod.volume), wire.u32(1), wire.text("A=b'c"))
    with open(os.path.join(pod.volume, "env")) as f:
        t.eq((code, f.read()), (0, "export A='b'\\''c'\n"), "what is right is written, for a shell")
    code, said = answered(t, pod, "DEL")
    t.ok(code == 1 and said["code"] == 11 and os.path.exists(pod.pin), "a DEL that the daemon has not answered is asked again", str(said))
    t.eq(answered(t, pod, "DEL", ok, wire.text(""), wire.text(""), wire.u32(0)), (0, None), "and one that it has is over")


def moved(t, s, node, pod):
    """A pod that runs on gets the policy that its namespace has now."""
    s.d.policies["strict"] = {"rules": [{"allow": "deps.example.com"}]}
    s.d.extra["node"]["namespaces"]["agents"] = "strict"
    s.d.stop()
    s.d.serve()
    t.ok(tap.wait_for(lambda: pod.call("CHECK")[0] == 0, 15, 0.2), "a pod whose namespace has another policy gets its way out back",
         s.d.diagnostics())
    t.eq([x["policy"] for x in api.Api(s.d.socket).list()["sandboxes"]], ["strict"], "by the policy of now")
    t.eq(status(pod, "https://api.github.com/user"), "403", "which allows less")
    s.d.extra["node"]["namespaces"] = {"others": "strict"}
    s.d.stop()
    s.d.serve()
    t.ok(pod.call("CHECK")[0] != 0 and not works(pod), "one whose namespace has none any more has no way out")
    s.d.extra["node"]["namespaces"] = {"agents": "coder"}
    s.d.stop()
    s.d.serve()
    t.ok(tap.wait_for(lambda: works(pod), 15, 0.2), "until it has one again", s.d.diagnostics())


def reloaded(t, s, node, pod):
    """The same without a restart, by the file of objects."""
    path = s.d.extra["node"]["objects"]

    def write(objects):
        with open(path + ".new", "w") as f:
            json.dump(objects, f)
        os.rename(path + ".new", path)
    s.d.extra["node"]["namespaces"] = {"others": "coder"}
    s.d.save()
    write({"policies": {"made": {"rules": [{"allow": "deps.example.com"}]}}, "namespaces": {"agents": "made"}})
    t.ok(tap.wait_for(lambda: [x["policy"] for x in api.Api(s.d.socket).list()["sandboxes"]] == ["made"] and
                      status(pod, "https://deps.example.com/") == "200", 10, 0.2), "a pod that runs has the policy of an object "
         "within seconds", s.d.diagnostics())
    t.eq(status(pod, "https://api.github.com/user"), "403", "and no other")
    write({"policies": {"made": {"rules": [{"alow": 1}]}}, "namespaces": {"agents": "made"}})
    t.ok(tap.wait_for(lambda: "not taken" in s.d.diagnostics(), 5, 0.1) and status(pod, "https://deps.example.com/") == "200",
         "objects that do not load change nothing", s.d.diagnostics())
    write({"policies": {"made": {"rules": [{"allow": "deps.example.com"}]}}, "namespaces": {}})
    t.ok(tap.wait_for(lambda: pod.call("CHECK")[0] != 0, 5, 0.1) and status(pod, "https://deps.example.com/") == "000",
         "a pod whose namespace is bound no more has no way out", s.d.diagnostics())
    write({"secrets": {}})
    r = s.d.command("reload", "--socket", s.d.socket)
    t.ok(r.returncode != 0 and "nothing that it may hold" in r.stderr, "such a file says policies and namespaces, and nothing else", r.stderr)
    os.unlink(path)
    s.d.extra["node"]["namespaces"] = {"agents": "coder"}
    s.d.stop()
    s.d.serve()
    t.ok(tap.wait_for(lambda: works(pod), 15, 0.2), "and without the file the configuration is what there is", s.d.diagnostics())


def exchanged(t, s, node, pod):
    """At a pod's name stands another's namespace: as who had taken the controller over would have it."""
    links, name = node.stranger.links(), os.path.join(cni.NETNS, pod.ns)
    s.d.stop()
    subprocess.run(["mount", "--bind", os.path.join(cni.NETNS, node.stranger.ns), name], check=True)
    s.d.serve()
    refused = tap.wait_for(lambda: "is not that pod's" in s.d.diagnostics(), 10, 0.2)
    code = pod.call("CHECK")[0]
    subprocess.run(["umount", name], check=True)
    t.ok(refused and code != 0, "a pinned namespace is given to no other pod's", s.d.diagnostics())
    t.eq((node.stranger.links(), connects(node.stranger.address, 9999)), (links, "refused"), "which stays as it is")
    t.ok(tap.wait_for(lambda: works(pod), 20, 0.2), "and the pod that it is of has its way out again", s.d.diagnostics())


def owner(path):
    """Of a network namespace: the number of its user namespace."""
    with open(path) as f:
        fd = fcntl.ioctl(f, NS_GET_USERNS)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def owned(t, s, node):
    """A pod in a user namespace of its own (`hostUsers: false`): its network is that one's, or its /sys could not be mounted."""
    holder = t.popen(["unshare", "--user", "--map-root-user", "--net", "sleep", "60"])
    own = os.stat("/proc/self/ns/net").st_ino
    if not tap.wait_for(lambda: os.stat("/proc/%d/ns/net" % holder.pid).st_ino != own, 5, 0.02):
        t.skip("a pod in a user namespace", "user namespaces are not available here")
        return
    pod = node.pod("owned", of=holder.pid)
    code, said = pod.call("ADD")
    t.ok(code == 0 and works(pod), "a pod in a user namespace of its own has its way out", str(said), s.d.diagnostics())
    t.eq(owner(os.path.join(cni.NETNS, pod.ns)), os.stat("/proc/%d/ns/user" % holder.pid).st_ino, "and its network is that namespace's")
    t.ok(os.stat(os.path.join(cni.NETNS, pod.ns)).st_ino != os.stat("/proc/%d/ns/net" % holder.pid).st_ino, "which is not the one that the runtime made")
    t.eq(pod.call("DEL"), (0, None), "DEL")
    t.eq(os.stat(os.path.join(cni.NETNS, pod.ns)).st_ino, os.stat("/proc/%d/ns/net" % holder.pid).st_ino, "whose it is again for the runtime")


def ends(t, s, node, pod):
    c = api.Api(s.d.socket)
    code, said = pod.call("GC", config=pod.config(**{"name": "another", "cni.dev/valid-attachments": []}))
    t.eq((code, pod.call("CHECK")[0], os.path.exists(pod.pin)), (0, 0, True), "GC of another list of plugins leaves it")
    code, said = pod.call("GC", config=pod.config(**{"name": "../x", "cni.dev/valid-attachments": []}))
    t.ok(code == 1 and said["code"] == 7, "a list without a proper name is refused", str(said))
    code, said = pod.call("GC", config=pod.config(**{"cni.dev/valid-attachments": [{"containerID": pod.container, "ifname": "eth0"}]}))
    t.eq((code, pod.call("CHECK")[0]), (0, 0), "GC leaves what is listed")
    for p in pod.started:
        p.kill()
        p.wait()
    t.eq(pod.call("DEL"), (0, None), "DEL")
    t.eq((c.list()["sandboxes"], os.path.exists(pod.pin)), ([], False), "nothing of it is left")
    text = ip("-o", "addr", "show", "eth0", ns=pod.ns).stdout.decode()
    t.ok(pod.address + "/24" in text, "the interface is back, for the plugins before", text)
    t.eq(pod.links(), ["lo"], "and switched off")
    t.eq(pod.call("DEL"), (0, None), "DEL again")
    other = node.pod("other")
    t.eq(other.call("ADD")[0], 0, "another pod")
    os.rename(other.volume, other.volume + "-kept")
    code, said = other.call("GC", config=other.config(**{"cni.dev/valid-attachments": []}))
    ended = tap.wait_for(lambda: c.list()["sandboxes"] == [], 10, 0.1)  # it stops after the answer
    t.eq((code, bool(ended), os.path.exists(other.pin)), (0, True, False), "GC ends what is not listed")
    lives = node.pod("lives")
    t.eq(lives.call("ADD")[0], 0, "a pod in which a process lives on")
    survivor = lives.start("sleep", "60")
    tap.wait_for(lambda: tap.descendants(survivor.pid) or "sleep" in open("/proc/%d/comm" % survivor.pid).read(), 5, 0.05)
    t.eq(lives.call("DEL"), (0, None), "is given up")
    left = subprocess.run(["nsenter", "-t", str(survivor.pid), "-n", "ip", "-o", "link", "show"], stdout=subprocess.PIPE, text=True).stdout
    t.ok(not os.path.exists(lives.pin) and "lo:" in left and "eth0" not in left, "and has no interface that it could switch on", left)
    gone = node.pod("gone")
    t.eq(gone.call("ADD")[0], 0, "a third pod")
    s.d.stop()
    gone.remove()
    s.d.serve()
    t.ok(tap.wait_for(lambda: c.list()["sandboxes"] == [], 10, 0.1), "a pod that ended while the daemon was away is forgotten")


def test(t):
    if os.geteuid() != 0:
        raise tap.Skip("needs root")
    s = scene.Scene(t)
    node = cni.Node(t, s.d)
    s.d.extra["node"]["objects"] = t.path("objects.json")
    node.stranger = node.pod("stranger")
    before(t, s, node)
    pod = node.pod("agent")
    t.part(way_out, t, s, node, pod)
    udp, to = closed(t, s, node, pod)
    t.part(inbound, t, s, node, pod)
    t.part(deaths, t, s, node, pod)
    t.part(lies, t, s, node)
    t.part(by_pod, t, s, node)
    t.part(moved, t, s, node, pod)
    t.part(reloaded, t, s, node, pod)
    t.part(exchanged, t, s, node, pod)
    t.part(tampering, t, s, node, pod, udp, to)
    t.part(owned, t, s, node)
    t.part(ends, t, s, node, pod)
    s.clean(what="pods")


tap.run(test, timeout=240)
