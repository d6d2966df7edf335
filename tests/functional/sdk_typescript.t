#!/usr/bin/python3 -B
"""sdk/typescript: it builds and packs; its tarball, installed beside deepagents, against a daemon: the
client, the behaviours of LangChain's standard tests by their names, those tests themselves when
DURWARD_JS_STANDARD_TESTS says where their sources are, a deep agent that asks origins from inside, and
pair() of a backend that is none of ours. By `make walls` those behaviours behind each wall, and nothing else."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, nginx, scene, tap, walls  # noqa: E402

SDK = os.path.join(durward.TOP, "sdk", "typescript")
PROBE = "python/src/durward_deepagents/probe.py"
HERE = os.path.join(durward.SUITE, "clients", "agents-node")
STANDARD = 93  # behaviours in the upstream suite


class Node:
    """A Node of at least 20, the libraries, and a folder that is an application with our package in it."""

    def __init__(self, t):
        self.t = t
        self.modules = os.path.join(durward.clients_dir(), "agents-node", "node_modules")
        if not os.path.exists(os.path.join(self.modules, "deepagents")):
            raise tap.Skip("deepagents for Node is not there: run tests/functional/clients/setup")
        own = os.path.join(self.modules, "node", "bin")
        self.env = dict(os.environ, HOME=t.mkdir("home"), npm_config_update_notifier="false",
                        PATH=own + ":" + os.environ["PATH"] if os.path.exists(own) else os.environ["PATH"])
        r = self.run(["node", "-p", "process.versions.node"], t.tmp)
        if r.returncode != 0 or int(r.stdout.split(".")[0]) < 20 or not shutil.which("npm"):
            raise tap.Skip("Node 20 and npm are needed, here is: " + (r.stdout or r.stderr or "none").strip())
        self.app = t.mkdir("app")

    def run(self, argv, cwd, timeout=120, **env):
        try:
            return subprocess.run(argv, cwd=cwd, env=dict(self.env, **env), stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=5 * timeout if walls.whole() else timeout, preexec_fn=tap.die_with_parent)
        except FileNotFoundError as e:
            return subprocess.CompletedProcess(argv, 127, "", str(e))

    def lines(self, name, socket, **env):
        """The behaviours that a file reports, each a result here; -> (passed, all, what it said)."""
        r = self.run(["node", name], self.app, DURWARD_SOCKET=socket, **env)
        seen = [json.loads(x) for x in r.stdout.splitlines() if x.startswith("{")]
        for b in seen:
            self.t.ok(b["ok"], b["what"], b["why"])
        self.t.eq(r.returncode, 0, name + " ran to its end") or self.t.diag(r.stderr)
        return len([b for b in seen if b["ok"]]), len(seen), r.stdout + r.stderr


def package(t, node):
    source, probe = t.path("sdk/typescript"), t.path("sdk/" + PROBE)
    os.makedirs(os.path.dirname(probe))
    shutil.copy(os.path.join(os.path.dirname(SDK), PROBE), probe)
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("dist", "node_modules", "*.tgz"))
    os.symlink(node.modules, os.path.join(source, "node_modules"))
    r = node.run(["npm", "pack", "--silent", "--pack-destination", t.tmp], source)
    t.eq(r.returncode, 0, "it builds under strict and packs") or t.diag(r.stdout + r.stderr)
    ball = t.path(r.stdout.strip().splitlines()[-1])
    with tarfile.open(ball) as z:
        names = {n[len("package/"):] for n in z.getnames()}
        about = json.load(z.extractfile("package/package.json"))
        sent = z.extractfile("package/dist/probe.js").read().decode()
    with open(probe) as f:
        t.eq(json.loads(sent[sent.index('"'):sent.rindex('"') + 1]), f.read(), "what looks from inside is the Python package's")
    t.ok({"dist/index.js", "dist/index.d.ts", "dist/deepagents.js", "README.md", "LICENSE"} <= names and
         not [n for n in names if not n.startswith("dist/") and n not in ("README.md", "LICENSE", "package.json")],
         "what is in it: its modules, their types, README and licence", str(sorted(names)))
    with open(os.path.join(durward.TOP, "LICENSE")) as ours, open(os.path.join(SDK, "LICENSE")) as theirs:
        t.ok(ours.read() == theirs.read(), "the licence is Durward's")
    t.eq((about.get("dependencies"), about["peerDependenciesMeta"]["deepagents"]["optional"]), (None, True),
         "no dependencies; deepagents is an optional peer")
    with open(os.path.join(node.app, "package.json"), "w") as f:
        json.dump({"name": "app", "private": True, "type": "module"}, f)
    r = node.run(["npm", "install", "--offline", "--no-save", "--no-audit", "--no-fund", ball], node.app)
    t.eq(r.returncode, 0, "the tarball installs without a network") or t.diag(r.stderr)
    r = node.run(["node", "-e", "import('durward').then((d) => console.log(typeof d.Durward))"], node.app)
    t.eq(r.stdout, "function\n", "the client loads without deepagents") or t.diag(r.stderr)
    beside(node)
    for name in os.listdir(HERE):
        if name.endswith((".mjs", ".ts")):
            shutil.copy(os.path.join(HERE, name), node.app)
    r = node.run(["node", os.path.join(node.modules, "typescript/bin/tsc"), "--noEmit", "--strict", "--module",
                  "nodenext", "--target", "es2022", "--types", "node", "--skipLibCheck", "consumer.ts"], node.app)
    t.eq(r.returncode, 0, "an application's types agree with ours and deepagents'") or t.diag(r.stdout)


def beside(node):
    """deepagents and all it needs, in the application's node_modules, without 130 MB of copies."""
    for name in os.listdir(node.modules):
        if name.startswith(".") or name == "durward":
            continue
        os.symlink(os.path.join(node.modules, name), os.path.join(node.app, "node_modules", name))


def standard(t, node, socket, where=""):
    passed, count, _ = node.lines("standard.mjs", socket)
    t.eq((passed, count), (STANDARD, STANDARD), where + "%d of the %d behaviours of the standard tests" % (passed, STANDARD))


def behind(t, node, wall, settings):
    d = durward.Durward(t, "behind-" + wall)
    d.policies["p"] = {"rules": [], "sandbox": dict(settings, services={"web": 8124})}
    d.serve()
    t.part(standard, t, node, d.socket, wall + ": ")
    t.eq(d.stop(), 0, wall + ": the daemon ends well")


def upstream(t, node, socket):
    where = os.environ.get("DURWARD_JS_STANDARD_TESTS")
    what = "LangChain's standard tests for Node"
    if not where:
        t.skip(what, "DURWARD_JS_STANDARD_TESTS does not say where their sources are (libs/standard-tests)")
        return
    shutil.copytree(os.path.join(where, "src"), os.path.join(node.app, "upstream", "src"))
    r = node.run(["node", os.path.join(node.modules, "vitest/vitest.mjs"), "run", "--root", node.app,
                  "--reporter=json", "--outputFile", t.path("upstream.json")], node.app, DURWARD_SOCKET=socket)
    if not os.path.exists(t.path("upstream.json")):
        t.ok(False, what + " ran", r.stdout, r.stderr)
        return
    with open(t.path("upstream.json")) as f:
        got = json.load(f)
    failed = [a for x in got["testResults"] for a in x["assertionResults"] if a["status"] != "passed"]
    t.ok(not failed and got["numPassedTests"] > 0 and r.returncode == 0,
         "%s: %d of %d" % (what, got["numPassedTests"], got["numTotalTests"]),
         *["%s: %s" % (a["fullName"], a["failureMessages"]) for a in failed], r.stderr[-2000:])


def paired(t, node, s, address):
    listener = socket.create_server(("127.0.0.1", 0))
    t.cleanup(listener.close)
    told, there = [s.d.command("env", "--policy", "p", "--json", "--ca-dir", "/there", *more, "--socket", s.d.socket).stdout
                   for more in ((), ("--for", "modal"))]
    return node.lines("paired.mjs", s.d.socket, GATE=address, AROUND="tcp:127.0.0.1:%d" % listener.getsockname()[1],
                      NOBODY="tcp:127.0.0.1:1", FOLDER=t.path("paired"), TOLD=told, TOLD_THERE=there)


def main(t):
    node = Node(t)
    package(t, node)
    if walls.whole():
        for wall, settings in walls.Walls(t).each("the behaviours of the standard tests", walls.WALLS):
            t.part(behind, t, node, wall, settings)
        return
    s = scene.Scene(t)
    address = s.listener(policy=None)
    s.d.policies = {"p": dict(s.d.policies["coder"], sandbox={"services": {"web": 8124}}), "other": {"rules": [{"ask": scene.PLAIN}]}}
    s.d.listen.append({"https": "127.0.0.1:%d" % nginx.free_port(), "name": "gate.example.net"})
    _, access = s.d.reachable_from_elsewhere(nginx.free_port())
    s.d.extra["templates"] = {"ts": {"policy": "p", "warm_up": ["sh", "-c", "echo up >warm"], "labels": {"kind": "ts"}, "idle_ttl": "120s"}}
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="p"))
    t.part(lambda: node.lines("client.mjs", s.d.socket, HELD="https://%s/" % scene.PLAIN, PLAIN=s.d.socket))
    t.part(lambda: node.lines("client.mjs", s.d.socket, HELD="https://%s/" % scene.PLAIN, PLAIN=s.d.socket, **access()))
    t.part(standard, t, node, s.d.socket)
    t.part(upstream, t, node, s.d.socket)
    _, _, said = node.lines("agent.mjs", s.d.socket)
    _, _, more = paired(t, node, s, address)
    t.eq(c.list()["sandboxes"], [], "no sandbox is left")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential), (s.plain, None)], [said, more], "a deep agent for Node")


tap.run(main, timeout=1200 if walls.whole() else 400)
