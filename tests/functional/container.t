#!/usr/bin/python3 -B
"""Durward as an image. Always: the recipe, the compose file and the Kubernetes manifests are what their programs take, and
the configurations in them load. With DURWARD_IMAGE=1 (`make image-test`; it takes minutes): the image is built by an engine on
a bare Debian 12, and serves clients of the compose file and of the manifests' pods, which have no other way out."""
import ctypes
import glob
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, engine, machine, origin, scan, shapes, tap  # noqa: E402
from harness.api import _Connection  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPE = os.path.join(TOP, "deploy/container/Containerfile")
COMPOSE = os.path.join(TOP, "deploy/container/compose.yaml")
MANIFESTS = sorted(glob.glob(os.path.join(TOP, "deploy/kubernetes/*.yaml")))
KUBERNETES = "1.31"
HOST, OUTSIDE = "api.github.com", "192.0.2.1"  # an address of the test's own network namespace
CLIENT = "durward-client:1"
UID = 65532
CLONE_NEWNET = 0x40000000
GONE = ("curl -s -k -m 5 --noproxy '*' https://%s/user; echo direct $?; nslookup example.com >/dev/null 2>&1; echo names $?; "
        "curl -s -m 5 --noproxy '*' http://169.254.169.254/; echo metadata $?")


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
    for name in (".ci/steps.sh", "README.md"):
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
        for secret in value["secrets"].values():
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
                   "durward", "pair") else 1000))]
        t.ok(pod["automountServiceAccountToken"] is False and not bad, "%s, %s: no token of the cluster, no right of root's" % (
            name, x["metadata"]["name"]), *bad)


# ---- DURWARD_IMAGE ----

def bare(t):
    """A bare Debian 12 as a tar; DURWARD_BASE names one that is there."""
    if os.environ.get("DURWARD_BASE"):
        with open(os.environ["DURWARD_BASE"], "rb") as f:
            return f.read()
    tree = t.mkdir("debian")
    r = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", tree, machine.mirror()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
    if r.returncode != 0:
        raise tap.Skip("no bare Debian 12: %s" % r.stdout[-300:])
    shutil.copy("/etc/resolv.conf", os.path.join(tree, "etc/resolv.conf"))
    path = t.path("debian.tar")
    subprocess.run(["tar", "-c", "-C", tree, "-f", path, "."], check=True, timeout=120)
    shutil.rmtree(tree)
    with open(path, "rb") as f:
        return f.read()


def sources():
    """What git knows (or a tarball holds), as a tar: an engine's build context."""
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    names = listed.stdout.decode().strip("\0").split("\0") if listed.returncode == 0 else [
        os.path.relpath(os.path.join(w, n), TOP) for w, d, ns in os.walk(TOP) for n in ns
        if not os.path.relpath(w, TOP).startswith("build")]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            tar.add(os.path.join(TOP, name), name)
    return out.getvalue()


def build(t, e):
    """DURWARD_IMAGE names an image that was saved, to try that one."""
    if os.path.exists(os.environ["DURWARD_IMAGE"]):
        with open(os.environ["DURWARD_IMAGE"], "rb") as f:
            e.ask("POST", "/images/load", f.read(), "application/x-tar", 600)
        e.image(CLIENT)
        return
    e.image("debian:12-slim", bare(t))
    query = {"dockerfile": "deploy/container/Containerfile", "t": "durward", "networkmode": "host", "rm": "1"}
    c = _Connection(e.socket, 1200)
    c.request("POST", "/build?" + urllib.parse.urlencode(query), sources(), {"Content-Type": "application/x-tar", "Host": "docker"})
    said = c.getresponse().read().decode("utf-8", "replace")
    c.close()
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


ASK = "curl -s https://%s/user; echo; curl -s https://%s/gists; echo; env" % (HOST, HOST)


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
    rows = e.ask("GET", "/containers/%s/top?ps_args=-eo%%20uid,args" % box[0])[1]["Processes"]
    t.ok(len(rows) >= 6 and {r[0] for r in rows} == {str(UID)}, "compose: %d processes, none of root's" % len(rows), json.dumps(rows))
    code, said = compose("run", "--rm", "-T", "agent", "sh", "-c", ASK)
    w.served(t, "compose", said)
    code, said = compose("run", "--rm", "-T", "agent", "sh", "-c", GONE % w.origin.address)
    t.ok(len(w.origin.requests) == w.seen and re.search(r"direct (7|28)\nnames 1\nmetadata (7|28)", said),
         "compose: nothing else is reached, and no name is known", said)
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


class Pod:
    """Containers of one pod as a node would start them, by the manifest: network, user, capabilities, volumes, environment."""

    def __init__(self, t, e, spec, files, name):
        self.t, self.e, self.spec, self.name = t, e, spec, name
        self.volumes = {v["name"]: self._volume(v, files) for v in spec["volumes"]}
        self.network, self.last = None, None

    def _volume(self, v, files):
        group = self.spec["securityContext"].get("fsGroup")
        where = self.t.mkdir("%s-%s" % (self.name, v["name"]), 0o2770 if group else 0o777)
        os.chown(where, 0, group or 0)
        os.chmod(where, 0o2770 if group else 0o777)
        kind = "configMap" if "configMap" in v else "secret" if "secret" in v else None
        source = v[kind].get("name", v[kind].get("secretName")) if kind else None
        for name, text in files.get(source, {}).items():
            path = self.t.write("%s-%s/%s" % (self.name, v["name"], name), text, v[kind].get("defaultMode", 0o644))
            os.chown(path, 0, group or 0)
        if kind:
            os.chmod(where, 0o755)
        return where

    def _body(self, c, image):
        s = dict(self.spec["securityContext"], **c["securityContext"])
        binds = ["%s:%s%s" % (os.path.join(self.volumes[m["name"]], m.get("subPath", "")).rstrip("/"), m["mountPath"],
                             ":ro" if m.get("readOnly") else "") for m in c.get("volumeMounts", [])]
        for m in c.get("volumeMounts", []):
            if "subPath" in m:
                where = os.path.join(self.volumes[m["name"]], m["subPath"])
                os.makedirs(where, exist_ok=True)
                os.chown(where, 0, s["fsGroup"])
                os.chmod(where, 0o2770)
        body = {"Image": image or c["image"], "User": "%d:%d" % (s["runAsUser"], s.get("runAsGroup", 0)),
                "Env": ["%s=%s" % (x["name"], x["value"].replace("$(DURWARD_SERVICE_HOST)", c.get("service", ""))) for x in
                        c.get("env", [])],
                "HostConfig": {"Binds": binds, "CapDrop": s["capabilities"]["drop"], "CapAdd": s["capabilities"].get("add"),
                               "ReadonlyRootfs": s.get("readOnlyRootFilesystem", False), "SecurityOpt": ["no-new-privileges"],
                               "NetworkMode": self.network, "GroupAdd": [str(s["fsGroup"])] if "fsGroup" in s else None}}
        if "command" in c:
            body["Entrypoint"], body["Cmd"] = c["command"][:1], c["command"][1:]
        return body

    def start(self, c, image=None, wait=False):
        """Starts it; with `wait` to its end, and gives its status."""
        self.last = self.e.create("%s-%s" % (self.name, c["name"]), self._body(c, image))
        return self.e.begin(self.last, wait)


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
    t.eq(e.run(daemon, "durward", "audit", "verify", "/var/log/durward/audit")[0], 0, "sidecar: the log verifies")


def deployed(t, e, w, network):
    """The Deployment's pod, its probes, and an agent's with the ConfigMaps that agent.yaml tells how to make."""
    w.origin.requests.clear()
    w.seen = 0
    spec = [x for n, x in manifests() if x["kind"] == "Deployment"][0]["spec"]["template"]["spec"]
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
    t.skip("deployment: the agent has no other way out", "NetworkPolicy is enforced by a cluster's network, and none is here")


def main(t):
    if yaml is None:
        raise tap.Skip("python3-yaml is missing")
    t.part(recipe, t)
    t.part(loads, t)
    t.part(compose_reads, t)
    t.part(kubernetes_reads, t)
    t.part(closed_pods, t)
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
    t.ok(not w.scanner.hits, "0 copies of the secret in what clients and engine said", *w.scanner.hits[:5])


tap.run(main, timeout=60 if not os.environ.get("DURWARD_IMAGE") else 3000)
