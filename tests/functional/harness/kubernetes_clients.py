"""Clients in a pod: git, gRPC and WebSocket, as a user would have them there, a coding agent, and their servers outside."""
import glob
import json
import os
import re
import subprocess

from . import agents, durward, engine, kubernetes, models, nginx, origin, peer, scan

IMAGE = "localhost/clients:1"
AGENT, AGENT_IMAGE = "opencode", "localhost/coder:1"
PEERS = {"grpc": "grpc.example.com", "socket": "socket.example.com"}
MODULES = ("grpc", "websockets", "typing_extensions.py")
GIT = ("/usr/bin/git", "/usr/lib/git-core/git", "/usr/lib/git-core/git-remote-http", "/usr/lib/git-core/git-remote-https")
WORK = ("mkdir -p /tmp; export HOME=/tmp GIT_TERMINAL_PROMPT=0 GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@example.com GIT_COMMITTER_NAME=T "
        "GIT_COMMITTER_EMAIL=t@example.com; cd /tmp && git clone -q https://github.com/acme/repo.git work && cd work && cat README && "
        "head -c 150000 /dev/urandom >new && git add . && git commit -q -m from-a-pod && git push -q origin HEAD:refs/heads/pod && "
        "git fetch -q && git rev-parse origin/pod HEAD; cd /tmp && git clone -q https://github.com/other/repo.git o")


def packages_dir():
    return (glob.glob(os.path.join(durward.clients_dir(), "venv/lib/python3*/site-packages")) or [durward.clients_dir()])[0]


def needed():
    """Why they cannot be had, or None."""
    packages = packages_dir()
    missing = [x for x in MODULES if not os.path.exists(os.path.join(packages, x))] + [x for x in GIT if not os.path.exists(x)]
    return "%s is missing: run tests/functional/clients/setup, install git" % missing[0] if missing else None


def files():
    packages = packages_dir()
    found = [(x.lstrip("/"), os.path.realpath(x)) for x in GIT]
    for name in MODULES:
        top = os.path.join(packages, name)
        for where, _, names in os.walk(top) if os.path.isdir(top) else [(packages, [], [name])]:
            found += [("usr/lib/python3/dist-packages/" + os.path.relpath(os.path.join(where, x), packages), os.path.join(where, x))
                      for x in names if not x.endswith(".pyc")]
    found += [("opt/" + x, os.path.join(durward.INSIDE, x)) for x in ("grpc_client.py", "ws_client.py")]
    linked = [source for _, source in found if source.endswith(".so") or source in [os.path.realpath(x) for x in GIT]]
    return found + [(p.lstrip("/"), os.path.realpath(p)) for x in linked for p in engine.libraries(x)]


class Clients:
    """Servers and rules for them, before the daemon starts; then a pod."""

    def __init__(self, t, s):
        self.t, self.s = t, s
        self.secrets = {x: scan.canary("%s_" % x) for x in ("git", "grpc", "socket")}
        for name, value in self.secrets.items():
            s.scanner.add(name, value)
            s.d.secret(name, value)
        python = os.path.join(durward.clients_dir(), "venv/bin/python")
        self.git = nginx.GitServer(t, s.d.ca, "github.com", "x-access-token", self.secrets["git"].decode())
        s.d.resolve["github.com"] = self.git.address
        self.peers = {name: peer.Peer(t, s, host, [python, peer.path("%s_server.py" % ("grpc" if name == "grpc" else "websocket"))])
                      for name, host in PEERS.items()}
        s.rule(allow="github.com/acme/*", git="push", **{"with": {"basic": {"user": "x-access-token", "password": "git"}}})
        s.rule(allow=PEERS["grpc"] + "/durward.test.Door/*", **{"with": {"bearer": "grpc"}})
        s.rule(allow=PEERS["socket"], websocket=True, **{"with": {"bearer": "socket"}})

    def image(self, c):
        c.take(kubernetes.image(IMAGE, engine.rootfs(files=engine.python_files() + files()), ["/bin/sh"]))

    def try_git(self, pod):
        t, text = self.t, pod.sh(WORK, timeout=90)
        heads = re.findall(r"^[0-9a-f]{40}$", text, re.M)
        t.ok("hello from the repository\n" in text and len(heads) == 2 and len(set(heads)) == 1, "git clones, pushes and fetches over HTTPS", text)
        r = subprocess.run(["git", "--git-dir", self.git.repo, "-c", "safe.directory=*", "log", "-1", "--format=%s", "pod"], stdout=subprocess.PIPE,
                           env=nginx.git_env(t))
        t.eq(r.stdout.decode().strip(), "from-a-pod", "the push arrived")
        t.ok("403" in text, "a repository of no rule is refused", text)
        wrong = [x for x in self.git.records() if x["auth"] != self.git.basic]
        t.ok(self.git.records() and not wrong, "the server saw the right credential in each of git's %d requests" % len(self.git.records()), *wrong)

    def try_grpc(self, pod):
        t, text, calls = self.t, pod.sh("python3 /opt/grpc_client.py " + PEERS["grpc"], timeout=90), self.peers["grpc"]
        got = self.answer(text)
        want = {"unary": "hello", "first": "head", "last": "trailer", "binary": "00ff01", "big": True, "server": 20, "client": True, "bidi": 50,
                "fail": ["INVALID_ARGUMENT", "no such door: \u20ac 100%", "trailer"], "cancelled": "CANCELLED", "many": 200, "denied": "PERMISSION_DENIED"}
        t.eq({k: got.get(k) for k in want}, want, "gRPC: each kind of call, with trailers, errors, and a service of no rule denied") or t.diag(text[-2000:])
        seen = [x["authorization"] for x in calls.lines if x["event"] == "call"]
        t.ok(seen and set(seen) == {"Bearer " + self.secrets["grpc"].decode()}, "with the one right credential in each of %d calls" % len(seen))

    def try_socket(self, pod):
        t, text, peer_ = self.t, pod.sh("python3 /opt/ws_client.py wss://%s/chat 0" % PEERS["socket"], timeout=90), self.peers["socket"]
        got = self.answer(text)
        want = {"protocol": "chat.v1", "binary": True, "fragmented": "fragmented \u20ac", "pong": True, "small": 300, "closed": [4001, "done here"],
                "server_closed": [4002, "go away"], "many": 20}
        t.eq({k: got.get(k) for k in want}, want, "WebSocket: text, binary, fragments, pings, close codes, many at once") or t.diag(text[-2000:])
        opened = [x for x in peer_.lines if x["event"] == "open"]
        t.ok(opened and self.secrets["socket"].decode() not in text, "with a credential that is not seen inside, in %d of them" % len(opened))

    def search(self, pod):
        """Nobody inside has read them."""
        for pid in pod.processes():
            scan.scan_process(pid, self.s.scanner, "process %d of the clients' pod" % pid)
        self.s.scanner.search(pod.sh("env; cat /etc/durward/* /tmp/work/.git/config /tmp/work/.git/*HEAD"), "the clients' pod")
        self.t.ok(not self.s.scanner.hits, "0 copies of their credentials in the pod", *["%s as %s in %s" % h for h in self.s.scanner.hits])

    @staticmethod
    def answer(text):
        for line in text.splitlines():
            if line.startswith("{"):
                return json.loads(line)
        return {}


class Coder:
    """A coding agent as its vendor delivers it, which a pod has from a volume, with the double of its model's API."""

    def __init__(self, t, s):
        self.t, self.s = t, s
        self.agent, = agents.named([AGENT])
        self.missing = self.agent.missing()
        if self.missing:
            return
        secret = scan.canary(agents.PREFIX[self.agent.api])
        self.key = secret.decode()
        s.scanner.add("agent", secret)
        s.d.secret("agent", secret, kind=self.agent.api)
        self.task = models.Task("/tmp/work", agents.COMMAND)
        self.double = origin.Origin(t, s.d.ca, self.agent.host, getattr(models, self.agent.api)(self.task))
        s.d.origin(self.agent.host, self.double)
        s.rule(use=self.agent.api, secret="agent")
        s.env[self.agent.key] = "{{placeholder agent}}"

    def pod(self, c, make):
        """make(name, container, volumes) -> the pod, whose volume of the agent is a folder of the node's: an administrator's to give."""
        program = os.path.join(self.agent.folder, self.agent.program)
        files = [(p.lstrip("/"), os.path.realpath(p)) for x in (program, "/bin/bash") for p in engine.libraries(x)] + [("bin/bash", "/bin/bash")]
        c.take(kubernetes.image(AGENT_IMAGE, engine.rootfs(files=files), ["/bin/sh"]))
        size, modes = {"storage": "1Gi"}, ["ReadOnlyMany"]
        code, said = c.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "coder"}, "spec": {
                "capacity": size, "accessModes": modes, "storageClassName": "", "hostPath": {"path": self.agent.folder},
                "claimRef": {"namespace": "agents", "name": "coder"}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "coder", "namespace": "agents"}, "spec": {
                "accessModes": modes, "storageClassName": "", "volumeName": "coder", "resources": {"requests": size}}})
        self.t.eq(code, 0, "a volume with an agent") or self.t.diag(said)
        return make("coder", {"image": AGENT_IMAGE, "readinessProbe": None, "command": ["/bin/sh", "-c", "exec sleep 1000"], "volumeMounts": [
            {"name": "durward", "mountPath": "/etc/durward", "readOnly": True}, {"name": "coder", "mountPath": self.agent.folder, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"}]}, [{"name": "durward", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}, {
                "name": "coder", "persistentVolumeClaim": {"claimName": "coder", "readOnly": True}}])

    def work(self, pod):
        """The task that tests/functional/agents.t gives to each agent."""
        t, a = self.t, self.agent
        words = "; ".join("export %s='%s'" % x for x in dict(a.variables(), HOME="/tmp/home", TERM="xterm", SHELL="/bin/bash", LANG="C.UTF-8").items())
        text = pod.sh("mkdir -p /tmp/home /tmp/work; cd /tmp/work; echo shut >door.txt; " + words + "\n" + a.shell() + "\necho DONE; cat door.txt told.txt", timeout=150)
        said, _, after = text.rpartition("DONE\n")
        t.eq((after.split(), models.LAST in " ".join(said.split())), (["kept", "kept"], True),
             "%s does its task in a pod: reads a file, edits it, runs a command" % AGENT) or t.diag(text[-3000:])
        seen = {v for r in self.double.requests for _, v in r.credentials()}
        t.ok(seen and all(self.key in v for v in seen), "its model's API saw the one right key in each of %d requests" % len(self.double.requests), str(seen)[:300])
        t.ok(agents.REFUSED in str(self.s.d.kinds("dns")) + str(self.s.d.kinds("denied")), "what its command asked of another host is refused, and on record")
        for pid in pod.processes():
            scan.scan_process(pid, self.s.scanner, "process %d of the agent's pod" % pid)
        self.s.scanner.search(text, "what the agent said")
        t.ok(not self.s.scanner.hits, "0 copies of its key in the pod", *["%s as %s in %s" % h for h in self.s.scanner.hits])
