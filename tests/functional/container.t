#!/usr/bin/python3 -B
"""Durward as an image. Always: the recipe, the compose file and the Kubernetes manifests are what their programs take, and
the configurations in them load. With DURWARD_IMAGE=1 (`make image-test`; it takes minutes): the image is built by an engine on
a bare Debian 12, and serves clients of the compose file and of the manifests' pods, which have no other way out."""
import base64
import ctypes
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, engine, machine, nginx, origin, scan, shapes, tap  # noqa: E402
from harness.ears import Ears  # noqa: E402
from harness.pod import Played, Pod  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPE = os.path.join(TOP, "deploy/container/Containerfile")
COMPOSE = os.path.join(TOP, "deploy/container/compose.yaml")
MANIFESTS = [p for p in sorted(glob.glob(os.path.join(TOP, "deploy/kubernetes/*.yaml"))) if os.path.basename(p) not in (
    "kustomization.yaml", "node-config.yaml", "Chart.yaml", "values.yaml")]
KUBERNETES = "1.31"
OF_CLUSTER = ("review", "status", "nodes")
HOST, ELSEWHERE, OUTSIDE = "api.github.com", "paste.example.net", "192.0.2.1"  # the last: an address of the test's own network namespace
CLIENT = "durward-client:1"
UID = 65532
CLONE_NEWNET = 0x40000000
GONE = ("curl -s -k -m 5 --noproxy '*' https://%s/user; echo direct $?; nslookup example.com >/dev/null 2>&1; echo names $?; "
        "curl -s -m 5 --noproxy '*' http://169.254.169.254/; echo metadata $?")
# What the host listens on, at the address that an engine gives it in a network: the first.
HOSTS = "curl -s -m 5 --noproxy '*' http://$(hostname -i | sed 's/[.][0-9]* *$/.1/'):%d/; echo host $?"


def read(path):
    with open(path) as f:
        return f.read()


def manifests():
    return [(os.path.basename(p), x) for p in MANIFESTS for x in yaml.safe_load_all(read(p))]


def configurations():
    """(where, text) of each durward.yaml that is shipped for containers."""
    return [("compose", read(os.path.join(TOP, "deploy/container/durward.yaml")))] + [
        (name, x["data"]["durward.yaml"]) for name, x in manifests() if x["kind"] == "ConfigMap"]


# ---- what is always looked at ----

def recipe(t):
    text = read(RECIPE)
    last = text[text.rindex("\nFROM"):]
    t.ok(re.search(r"^USER %d:%d$" % (UID, UID), last, re.M), "the image's user is a number, and not root's")
    t.ok("HEALTHCHECK" in last and re.search(r"^ENTRYPOINT \[", last, re.M), "it has a health check, no shell between")
    images = re.findall(r"^ARG BASE=(\S+)", text, re.M) + [s["image"] for s in yaml.safe_load(read(COMPOSE))["services"].values()]
    for _, x in manifests():
        pod = x["spec"].get("template", x).get("spec", {}) if x["kind"] in ("Deployment", "Pod") else {}
        images += [c["image"] for c in pod.get("containers", []) + pod.get("initContainers", [])]
    bad = [i for i in images if "/" in re.sub(r"\$\{[^}]*:-", "", i)]
    t.ok(len(images) > 6 and not bad, "%d image names, none with a registry's" % len(images), *bad)
    wanted = {"debian/control": set(re.findall(r"\blib\S+-dev\b", read(os.path.join(TOP, "debian/control"))))}
    for name in (".ci/steps.sh", "CONTRIBUTING.md"):
        part = re.search(r"BUILD_PACKAGES=\"([^\"]*)\"|apt-get install gcc(.*?)\n    autoreconf",
                         read(os.path.join(TOP, name)), re.S)
        wanted[name] = set(re.findall(r"\blib\S+-dev\b", part.group(0))) - {"libc6-dev"}
    for name, found in wanted.items():
        others = set.union(*wanted.values()) - {"libcunit1-dev"}
        t.eq(sorted(others - found), [], "%s names every library that a build needs" % name)


def loads(t):
    """`durward check` takes them, where secrets lie somewhere else here."""
    for name, text in configurations():
        value = yaml.safe_load(text)
        for secret in value.get("secrets", {}).values():
            where = secret.pop("kubernetes", None) or secret.pop("file")
            t.ok(str(where).find("/run/secrets/") >= 0, "%s: the secret is one that was mounted" % name)
            secret["file"] = t.write("secret", "x", 0o600)
        path = t.write("c.yaml", json.dumps(value), 0o600)
        r = subprocess.run([durward.program(), "check", path], capture_output=True, text=True, timeout=20)
        t.ok(r.returncode == 0, "%s: the configuration loads" % name, r.stdout, r.stderr)


def compose_command():
    """Whichever of the two there is."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    r = subprocess.run(["docker", "compose", "version"], capture_output=True) if shutil.which("docker") else None
    return ["docker", "compose"] if r and r.returncode == 0 else None


def compose_reads(t):
    command = compose_command()
    if command is None:
        t.skip("compose takes its file", "neither docker-compose nor docker's plugin is here (package docker-compose)")
        return
    r = subprocess.run(command + ["-f", COMPOSE, "config"], capture_output=True, text=True, timeout=60)
    said = yaml.safe_load(r.stdout) if r.returncode == 0 else {"services": {}, "networks": {}}
    t.ok(r.returncode == 0 and said["networks"]["inside"]["internal"] is True and
         list(said["services"]["agent"]["networks"]) == ["inside"], "compose takes its file; the agent is in a network without "
         "a way out only", r.stdout, r.stderr)


def kubernetes_reads(t):
    program = os.path.join(os.environ.get("DURWARD_CLIENTS", ""), "venv/bin/kubernetes-validate")
    if not os.access(program, os.X_OK):
        program = shutil.which("kubernetes-validate")
    if not program:
        t.skip("Kubernetes' schemas", "kubernetes-validate is not there: tests/functional/clients/setup installs it")
        return
    r = subprocess.run([program, "--strict", "-k", KUBERNETES, *MANIFESTS], capture_output=True, text=True, timeout=90)
    passed = len(re.findall(r"passed for resource", r.stdout + r.stderr))
    t.ok(r.returncode == 0 and passed == len(manifests()), "%d manifests are strictly of Kubernetes %s' schemas" % (
        passed, KUBERNETES), r.stdout, r.stderr)
    bad = t.write("bad.yaml", read(MANIFESTS[0]).replace("automountServiceAccountToken", "automountServiceAcountToken"))
    r = subprocess.run([program, "--strict", "-k", KUBERNETES, bad], capture_output=True, text=True, timeout=60)
    t.ok(r.returncode != 0 and "automountServiceAcountToken" in r.stdout + r.stderr, "and one with a mistyped key is not")


def paired(t):
    """What `pair` lays out for a client leads to the address that it was told, and has all that the client needs."""
    d = durward.Durward(t)
    d.secret("github", "ghp_" + "x" * 36, kind="github-pat")
    d.policy("coder", [{"allow": HOST, "with": {"bearer": "github"}}], {"GITHUB_TOKEN": "{{placeholder github}}"})
    d.listen.append({"http": "127.0.0.1:%d" % nginx.free_port(), "policy": "coder"})
    d.serve()
    to = t.mkdir("pair")
    env = dict(d.env, DURWARD_SOCKET=d.socket, PATH=os.path.dirname(durward.program()) + ":" + d.env["PATH"])
    for proxy in ("http://durward:3128", "http://durward:3129"):  # again, as after `ca rotate`
        r = subprocess.run(["sh", os.path.join(TOP, "deploy/container/pair"), proxy, "coder", to], env=env, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        plain = dict(x.split("=", 1) for x in read(os.path.join(to, "env.list")).splitlines()) if r.returncode == 0 else {}
        t.eq([plain.get(n) for n in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")], [proxy] * 4,
             "`pair`: every variable of a proxy leads to the one it was told") or t.diag(r.stdout)
    said = subprocess.run(["sh", "-c", "set -a; . %s/env; env" % to], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    shell = dict(x.split("=", 1) for x in said.stdout.splitlines())
    t.ok(plain and plain.items() <= shell.items() and shell["GITHUB_TOKEN"].startswith("ghp_"), "`pair`: both of its forms say the same")
    files = [v for v in plain.values() if v.startswith("/")]
    t.ok(len(files) > 5 and all(f.startswith(to) and os.path.exists(f) for f in files), "`pair`: each file that they name is beside them")


def closed_pods(t):
    """What each pod of the manifests is not given."""
    for name, x in manifests():
        if x["kind"] not in ("Deployment", "Pod"):
            continue
        pod = x["spec"]["template"]["spec"] if x["kind"] == "Deployment" else x["spec"]
        rows = [(c["name"], dict(pod["securityContext"], **c["securityContext"]))
                for c in pod["containers"] + pod.get("initContainers", [])]
        bad = [n for n, s in rows if s.get("allowPrivilegeEscalation") is not False or s["capabilities"]["drop"] != ["ALL"] or
               s["seccompProfile"]["type"] != "RuntimeDefault" or
               (s["capabilities"].get("add"), s.get("runAsUser")) != ((["NET_ADMIN"], 0) if n == "lock" else (None, UID if n in (
                   "durward", "pair", "sandboxes", *OF_CLUSTER) else 1000))]
        asks = rows[0][0] in OF_CLUSTER  # what speaks to the API server
        t.ok(pod["automountServiceAccountToken"] is asks and not bad, "%s, %s: no token of the cluster, no right of root's" % (
            name, x["metadata"]["name"]), *bad)


# ---- DURWARD_IMAGE ----

def bare(t):
    """A bare Debian 12 as a tar; DURWARD_BASE names one that is there."""
    if os.environ.get("DURWARD_BASE"):
        with open(os.environ["DURWARD_BASE"], "rb") as f:
            return f.read()
    tree = t.mkdir("debian")
    r = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", tree, machine.mirror()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500 * tap.SLOWER)
    if r.returncode != 0:
        raise tap.Skip("no bare Debian 12: %s" % r.stdout[-300:])
    shutil.copy("/etc/resolv.conf", os.path.join(tree, "etc/resolv.conf"))
    path = t.path("debian.tar")
    subprocess.run(["tar", "-c", "-C", tree, "-f", path, "."], check=True, timeout=120)
    shutil.rmtree(tree)
    with open(path, "rb") as f:
        return f.read()


def context(t):
    """A copy of what git knows (or a tarball holds), as somebody has it who follows deploy/README.md: with the secret in it."""
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    names = listed.stdout.decode().strip("\0").split("\0") if listed.returncode == 0 else [
        os.path.relpath(os.path.join(w, n), TOP) for w, d, ns in os.walk(TOP) for n in ns
        if not os.path.relpath(w, TOP).startswith("build")]
    folder = t.mkdir("tree")
    for name in names:
        to = os.path.join(folder, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.join(TOP, name), to, follow_symlinks=False)
    for name in ("deploy/container/github", ".git/config", "build/left"):
        t.write("tree/" + name, "secret", 0o400)
    return folder


def seen(t, e, folder, env):
    """What of a tree reaches the engine, and so its cache: by an image that is the whole context."""
    r = subprocess.run(["docker", "build", "-q", "-t", "context", "-f", "-", "."], cwd=folder, env=env, input="FROM scratch\nCOPY . /\n",
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    path, names = t.path("context.tar"), set()
    subprocess.run(["docker", "save", "-o", path, "context"], env=env, timeout=300, check=r.returncode == 0)
    with tarfile.open(path) as image:
        for layer in image:
            if layer.name.endswith("/layer.tar"):
                with tarfile.open(fileobj=image.extractfile(layer)) as files:
                    names |= set(files.getnames())
    bad = [n for n in names if n == "deploy/container/github" or n.split("/")[0] in (".git", "build")]
    t.ok("debian/control" in names and "deploy/container/pair" in names and not bad,
         "no secret that lies in the tree, no history and no build gets to the engine (%d files do)" % len(names), *bad, r.stdout)
    os.unlink(path)


def build(t, e):
    """DURWARD_IMAGE names an image that was saved, to try that one."""
    if os.path.exists(os.environ["DURWARD_IMAGE"]):
        with open(os.environ["DURWARD_IMAGE"], "rb") as f:
            e.ask("POST", "/images/load", f.read(), "application/x-tar", 600)
        e.image(CLIENT)
        return
    e.image("debian:12-slim", bare(t))
    folder, env = context(t), dict(os.environ, DOCKER_HOST="unix://" + e.socket, DOCKER_BUILDKIT="0", HOME=t.tmp)
    seen(t, e, folder, env)
    r = subprocess.run(["docker", "build", "--network", "host", "-f", "deploy/container/Containerfile", "-t", "durward", "."],
                       cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", timeout=3600 * tap.SLOWER)
    said = r.stdout
    shutil.rmtree(folder)
    image = e.inspect_image("durward")
    t.ok(image is not None, "the image is built on a bare Debian 12", said[-2000:])
    if image is None:
        raise tap.Skip("without an image there is nothing more to see")
    t.eq(image["Config"]["User"], "%d:%d" % (UID, UID), "of %d MB" % (image["Size"] >> 20))
    e.image(CLIENT)


def own_network():
    """From here on this test and what it starts are in a network namespace of their own, with OUTSIDE on its loopback."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise tap.Skip("cannot make a network namespace: errno %d" % ctypes.get_errno())
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "addr", "add", OUTSIDE + "/32", "dev", "lo"], check=True)


class World:
    """An origin outside, its secret, and configurations that reach it."""

    def __init__(self, t):
        self.secret = scan.canary("ghp_").decode()
        self.scanner = scan.Scanner(github=self.secret.encode())
        authority = ca.Authority(t.mkdir("origin-ca"))
        self.right = ("Authorization", "Bearer " + self.secret)
        self.origin = origin.Origin(t, authority, HOST, origin.needs(self.right, shapes.github()), host=OUTSIDE)
        self.pem = authority.pem
        self.ears = Ears(t)
        self.seen = 0

    def configuration(self, text):
        value = yaml.safe_load(text)
        value["upstream"] = {"ca": ["/etc/durward/origin-ca.pem"], "resolve": {HOST: self.origin.address}}
        return json.dumps(value)

    def served(self, t, what, out):
        """What a client said that asked for /user, /gists and its environment."""
        self.scanner.search(out.encode(), what)
        wrong = origin.one_right(self.origin, self.right)
        t.ok("octo" in out and "denied" in out and len(self.origin.requests) == self.seen + 1 and not wrong,
             "%s: a request with the one right credential, and what no rule allows is denied" % what, out, *wrong)
        t.ok(re.search(r"GITHUB_TOKEN=ghp_\w+", out), "%s: it has a placeholder" % what, out)
        self.seen = len(self.origin.requests)

    def recorded(self, t, what, e, daemon):
        """The log has each of these attempts once, with its end, and is whole."""
        lines = e.run(daemon, "durward", "audit", "query", "--json")[1].splitlines()
        found = [json.loads(x) for x in lines if x.startswith("{")]
        asked = sorted((r["kind"], r.get("authority", "").split(":")[0], r.get("path")) for r in found
                       if r["kind"] in ("admitted", "denied", "completed", "aborted"))
        ends = [r["id"] for r in found if r["kind"] == "completed"]
        begun = [r["id"] for r in found if r["kind"] == "admitted"]
        t.eq([a for a in asked if a[0] != "completed"],
             [("admitted", HOST, "/user"), ("denied", HOST, "/gists"), ("denied", ELSEWHERE, None)], "%s: each attempt is recorded, once" % what)
        t.ok(begun == ends, "%s: and ended" % what, *lines)
        code, said = e.run(daemon, "durward", "audit", "verify")
        t.ok(code == 0, "%s: its log verifies" % what, said)
        self.scanner.search("\n".join(lines).encode(), what + ": log")


ASK = "curl -s https://%s/user; echo; curl -s https://%s/gists; echo; curl -s https://%s/x?y=z; echo; env; cat /pair/env 2>/dev/null" % (
    HOST, HOST, ELSEWHERE)


def least(wanted, kind):
    """What this machine lets an engine give."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def composed(t, e, w):
    command = compose_command()
    if command is None or command == ["docker", "compose"]:
        t.skip("the compose file, run", "docker-compose is missing (package docker-compose)")
        return
    folder = t.mkdir("compose")
    config = t.write("compose/durward.yaml", w.configuration(read(os.path.join(TOP, "deploy/container/durward.yaml"))))
    pem = shutil.copy(w.pem, os.path.join(folder, "origin.pem"))
    secret = t.write("compose/github", w.secret + "\n", 0o400)
    os.chown(secret, UID, UID)
    more = t.write("compose/more.yaml", json.dumps({"services": {"durward": {
        "ulimits": {"nofile": least(65536, resource.RLIMIT_NOFILE), "memlock": least(67108864, resource.RLIMIT_MEMLOCK)},
        "volumes": [config + ":/etc/durward/durward.yaml:ro", pem + ":/etc/durward/origin-ca.pem:ro"]}}}))
    env = dict(os.environ, DOCKER_HOST="unix://" + e.socket, COMPOSE_PROJECT_NAME="dwt", AGENT_IMAGE=CLIENT,
               DURWARD_GITHUB_FILE=secret)

    def compose(*args, timeout=120):
        r = subprocess.run(command + ["-f", COMPOSE, "-f", more, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=timeout, env=env)
        return r.returncode, r.stdout

    code, said = compose("up", "-d", "--no-build", "durward")
    box = [c["Id"] for c in e.containers() if "durward" in c["Names"][0]]
    healthy = box and tap.wait_for(lambda: e.inspect(box[0])["State"].get("Health", {}).get("Status") == "healthy", 90, 0.5)
    t.ok(code == 0 and healthy, "compose: the daemon is healthy", said, e.logs(box[0]) if box else "")
    if not healthy:
        return
    rows = e.ask("GET", "/containers/%s/top?ps_args=-eo%%20pid,uid,args" % box[0])[1]["Processes"]
    t.ok(len(rows) >= 6 and {r[1].strip() for r in rows} == {str(UID)}, "compose: %d processes, none of root's" % len(rows), json.dumps(rows))
    code, said = compose("run", "--rm", "-T", "agent", "sh", "-c", ASK)
    w.served(t, "compose", said)
    w.recorded(t, "compose", e, box[0])
    said = compose("run", "--rm", "-T", "agent", "sh", "-c", "id -u; grep -h -e CapBnd -e NoNewPrivs -e Seccomp: /proc/self/status")[1]
    t.eq(said.split()[-7:], ["1000", "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"],
         "compose: an agent is not root, has no capability and cannot get one, and has the engine's filter")
    e.ask("POST", "/networks/create", json.dumps({"Name": "plain", "Driver": "bridge", "Internal": True}))
    out = e.create("plain", {"Image": CLIENT, "Cmd": ["sh", "-c", HOSTS % w.ears.port], "HostConfig": {"NetworkMode": "plain"}})
    e.begin(out, True)
    t.ok("host 0" in e.logs(out) and len(w.ears.heard) == 1, "compose: in an internal network that is no more than that the host "
         "is reached", e.logs(out))
    w.ears.heard.clear()
    code, said = compose("run", "--rm", "-T", "agent", "sh", "-c", GONE % w.origin.address + "; " + HOSTS % w.ears.port)
    t.ok(len(w.origin.requests) == w.seen and re.search(r"direct (7|28)\nnames 1\nmetadata (7|28)\nhost (7|28)", said),
         "compose: nothing else is reached, the host neither, and no name is known", said)
    t.eq(w.ears.heard, [], "compose: no service of the host's was asked, and its resolver for no name")
    authority = e.run(box[0], "durward", "ca", "export")
    code, said = compose("stop", "-t", "20", "durward")
    state = e.inspect(box[0])["State"]
    t.ok((state["ExitCode"], state["Running"]) == (0, False), "compose: stopped, it ends well", json.dumps(state), said)
    compose("start", "durward")
    t.ok(tap.wait_for(lambda: e.run(box[0], "durward", "status")[0] == 0, 30, 0.5), "compose: started again", e.logs(box[0]))
    t.eq(e.run(box[0], "durward", "ca", "export"), authority, "with the authority it had")
    t.eq(e.run(box[0], "durward", "audit", "verify", "/var/log/durward/audit")[0], 0, "and its log verifies")
    w.scanner.search(json.dumps(e.inspect(box[0])).encode() + e.logs(box[0]).encode(), "compose: engine")
    compose("down", "-v", "-t", "5")


def two_networks(e):
    """The one that leads out (in this test: to OUTSIDE)."""
    status, said = e.ask("POST", "/networks/create", json.dumps({"Name": "out", "Driver": "bridge"}))
    if status != 201:
        raise RuntimeError("no network: %s" % said)
    return "out"


def files_of(w, name):
    """Of the manifest's ConfigMap and of the Secret that it wants."""
    found = {x["metadata"]["name"]: dict(x["data"]) for n, x in manifests() if n == name and x["kind"] == "ConfigMap"}
    for data in found.values():
        data["durward.yaml"] = w.configuration(data["durward.yaml"])
        data["origin-ca.pem"] = read(w.pem)
    return dict(found, **{"durward-credentials": {"github": w.secret}})


def sidecar(t, e, w, network):
    spec = [x for n, x in manifests() if n == "sidecar.yaml" and x["kind"] == "Pod"][0]["spec"]
    pod = Pod(t, e, spec, files_of(w, "sidecar.yaml"), "side")
    # A pod's network is there before its containers; here somebody has to hold it.
    hold = e.create("side-network", {"Image": CLIENT, "Cmd": ["sleep", "600"], "HostConfig": {"NetworkMode": network}})
    e.begin(hold)
    pod.network = "container:" + hold
    lock, keeper, pair = spec["initContainers"]
    agent = dict(spec["containers"][0], command=["sh", "-c", "set -a; . /pair/env; set +a; exec sleep 600"])
    t.eq(pod.start(dict(agent, name="before", command=["sh", "-c", "curl -s -k -m 5 https://%s/x" % w.origin.address]), CLIENT, True),
         0, "sidecar: without `lock` an agent reaches the origin by itself")
    w.seen = len(w.origin.requests)
    w.origin.requests.clear()
    w.seen = 0
    t.ok([c["name"] for c in (lock, keeper, pair)] == ["lock", "durward", "pair"] and keeper["restartPolicy"] == "Always" and
         pod.start(lock, wait=True) == 0, "sidecar: `lock` comes first, and its rules are taken", e.logs(pod.last))
    pod.start(keeper)
    probe = keeper["startupProbe"]["exec"]["command"]
    t.ok(tap.wait_for(lambda: e.run(pod.last, *probe)[0] == 0, 30, 0.5), "sidecar: its start-up probe succeeds", e.logs(pod.last))
    daemon = pod.last
    t.eq(pod.start(pair, wait=True), 0, "sidecar: `pair` ends well") or t.diag(e.logs(pod.last))
    pod.start(agent, CLIENT)
    w.served(t, "sidecar", e.run(pod.last, "sh", "-c", "set -a; . /pair/env; " + ASK)[1])
    said = e.run(pod.last, "sh", "-c", GONE % w.origin.address)[1]
    t.ok(len(w.origin.requests) == w.seen and re.search(r"direct (7|28)\nnames 1\nmetadata (7|28)", said),
         "sidecar: nothing else is reached", said)
    t.ok("secrets" not in e.run(pod.last, "sh", "-c", "ls /run /etc/durward 2>/dev/null")[1], "sidecar: no secret is mounted there")
    w.recorded(t, "sidecar", e, daemon)


def deployment():
    """The one whose clients are paired; what a cluster's own programs run in are others'."""
    return next(x for n, x in manifests() if (n, x["kind"]) == ("durward.yaml", "Deployment"))


def deployed(t, e, w, network):
    """The Deployment's pod, its probes, and an agent's with the ConfigMaps that agent.yaml tells how to make."""
    w.origin.requests.clear()
    w.seen = 0
    spec = deployment()["spec"]["template"]["spec"]
    pod = Pod(t, e, spec, files_of(w, "durward.yaml"), "deploy")
    pod.network = network
    pod.start(spec["containers"][0])
    daemon = pod.last
    address = e.inspect(daemon)["NetworkSettings"]["Networks"][network]["IPAddress"]

    def probe(path):
        return subprocess.run(["curl", "-s", "-m", "2", "-o", "/dev/null", "-w", "%{http_code}",
                               "http://%s:9464%s" % (address, path)], capture_output=True, text=True).stdout
    t.ok(tap.wait_for(lambda: probe("/readyz") == "200", 60, 0.5) and probe("/healthz") == "200", "deployment: its probes succeed",
         e.logs(daemon))
    code, said = e.run(daemon, "sh", "-c", "mkdir -p /tmp/p && /usr/share/durward/pair - coder /tmp/p && sed -i s,/tmp/p/,/pair/, /tmp/p/env.list")
    if not t.eq(code, 0, "deployment: `pair` in it ends well"):
        t.diag(said)
        return
    lines = e.run(daemon, "cat", "/tmp/p/env.list")[1].splitlines()
    names = e.run(daemon, "sh", "-c", "ls -p /tmp/p/trust | grep -v /$")[1].split()
    trust = {n: e.run(daemon, "cat", "/tmp/p/trust/" + n)[1].encode("utf-8", "surrogateescape") for n in names}
    t.ok(names and sum(len(v) for v in trust.values()) < 1 << 20, "deployment: what clients trust fits into a ConfigMap")
    spec = [x for n, x in manifests() if n == "agent.yaml" and x["kind"] == "Pod"][0]["spec"]
    agent = Pod(t, e, spec, {"durward-trust": trust}, "agent")
    agent.network = network
    c = dict(spec["containers"][0], service=address, command=["sleep", "600"])
    t.eq(c["envFrom"], [{"configMapRef": {"name": "durward-env"}}], "deployment: the agent has its variables from there")
    own = {x["name"] for x in c["env"]}
    c["env"] = [dict(zip(("name", "value"), x.split("=", 1))) for x in lines
                if "=" in x and x.split("=")[0] not in own] + c["env"]
    agent.start(c, CLIENT)
    w.served(t, "deployment", e.run(agent.last, "sh", "-c", ASK)[1])
    w.recorded(t, "deployment", e, daemon)
    t.skip("deployment: the agent has no other way out", "NetworkPolicy is enforced by a cluster's network, and none is here")


def played(t, e, w):
    """durward.yaml by Podman, which knows no NetworkPolicy; the client is this test's."""
    w.origin.requests.clear()
    w.seen = 0
    saved = t.path("durward.tar")
    subprocess.run(["docker", "save", "-o", saved, "durward"], env=dict(os.environ, DOCKER_HOST="unix://" + e.socket), check=True, timeout=300)
    try:
        podman = Played(t, saved)
    except tap.Skip as why:
        t.skip("podman kube play", str(why))
        return
    text = {x["metadata"]["name"]: x for n, x in manifests() if n == "durward.yaml" and x["kind"] in ("ConfigMap", "PersistentVolumeClaim")}
    text["durward"]["data"].update(files_of(w, "durward.yaml")["durward"])
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "durward-credentials"},
              "data": {"github": base64.b64encode(w.secret.encode()).decode()}}
    first, (code, said) = podman.play("secret", [secret]), podman.play("durward", list(text.values()) + [deployment()])
    name, curl = "durward-pod-0-durward", ["curl", "-s", "-m", "10", "-x", "http://127.0.0.1:3128", "--cacert"]
    ready = tap.wait_for(lambda: podman("exec", name, "durward", "status")[0] == 0, 60, 0.5)
    t.ok((first[0], code, ready) == (0, 0, True), "podman kube play: it takes the manifest as it is, and the daemon answers", first[1], said,
         podman("logs", name)[1])
    limits = podman("exec", name, "sh", "-c", "id -u; grep -h -e CapBnd -e NoNewPrivs -e Seccomp: /proc/self/status; touch /x")[1]
    t.ok(limits.split()[:7] == [str(UID), "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"] and "Read-only" in limits,
         "podman kube play: uid %d, no capability nor a way to one, a filter, a root that is read only" % UID, limits)
    pem = t.write("played.pem", podman("exec", name, "durward", "ca", "export")[1])

    def ask(path):
        return subprocess.run(curl + [pem, "https://%s%s" % (HOST, path)], capture_output=True, text=True).stdout
    # Podman 4 knows no `defaultMode`, and leaves the data in base64. What everybody may read is no secret; then as a node has it.
    where = podman("volume", "inspect", "--format", "{{.Mountpoint}}", "durward-credentials")[1].strip() + "/github"
    if os.stat(where).st_mode & 0o777 == 0o644:
        t.has(ask("/user"), "failed secret_unavailable", "podman kube play: a secret that everybody can read is refused")
        with open(where, "w") as f:
            f.write(w.secret)
        os.chown(where, 0, UID)
        os.chmod(where, 0o440)
    out = [ask("/user"), ask("/gists")]
    wrong = origin.one_right(w.origin, w.right)
    t.ok("octo" in out[0] and "denied" in out[1] and len(w.origin.requests) == 1 and not wrong,
         "podman kube play: a client is served with the one right credential, and else denied", *out, *wrong)
    w.scanner.search("".join(out).encode(), "podman kube play")


def main(t):
    if yaml is None:
        raise tap.Skip("python3-yaml is missing")
    t.part(recipe, t)
    t.part(loads, t)
    t.part(compose_reads, t)
    t.part(kubernetes_reads, t)
    t.part(closed_pods, t)
    t.part(paired, t)
    if not os.environ.get("DURWARD_IMAGE"):
        t.skip("built and run", "it takes minutes: `make image-test`, or DURWARD_IMAGE=1")
        return
    why = engine.needed() or machine.needed()
    if why:
        raise tap.Skip(why)
    e = engine.Engine(t)
    build(t, e)
    e.stop()
    own_network()
    e.start()
    w = World(t)
    t.part(composed, t, e, w)
    network = two_networks(e)
    t.part(sidecar, t, e, w, network)
    t.part(deployed, t, e, w, network)
    t.part(played, t, e, w)
    t.ok(not w.scanner.hits, "0 copies of the secret in what clients and engine said", *w.scanner.hits[:5])


tap.run(main, timeout=150 if not os.environ.get("DURWARD_IMAGE") else 5400)
