#!/usr/bin/python3 -B
"""Agents' frameworks of others with their commands, code and files in a sandbox: OpenAI's Agents SDK, AutoGen,
smolagents, CrewAI, each its own package (tests/functional/clients/frameworks) over durward_frameworks; and the examples
of both SDKs, as they are, with these, Vercel's AI SDK and Mastra (tests/functional/clients/frameworks-node)."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, openai_double, scene, tap  # noqa: E402
from harness.openai_double import KEY, LOOK  # noqa: E402

PYTHON = os.path.join(durward.clients_dir(), "frameworks", "bin", "python")
CREWAI = os.path.join(durward.clients_dir(), "frameworks", "crewai", "bin", "python")
SCRIPT = os.path.join(durward.INSIDE, "frameworks.py")
SDK = os.path.join(durward.TOP, "sdk/python/src")

NODE = os.path.join(durward.clients_dir(), "frameworks-node", "node_modules")
TYPES = os.path.join(durward.clients_dir(), "agents-node", "node_modules")


def application(t):
    """A folder with our package, built, and the frameworks' beside it; -> it, or None."""
    if not os.path.isdir(os.path.join(NODE, "ai")) or not os.path.isdir(os.path.join(TYPES, "typescript")):
        t.skip("examples of TypeScript", "the frameworks' packages are not there: run tests/functional/clients/setup")
        return None
    sdk, probe = t.path("sdk/typescript"), "python/src/durward_deepagents/probe.py"
    os.makedirs(os.path.dirname(t.path("sdk/" + probe)))
    shutil.copy(os.path.join(durward.TOP, "sdk", probe), t.path("sdk/" + probe))
    shutil.copytree(os.path.join(durward.TOP, "sdk/typescript"), sdk, ignore=shutil.ignore_patterns("dist", "node_modules"))
    os.symlink(TYPES, os.path.join(sdk, "node_modules"))
    r = subprocess.run([node(), os.path.join(TYPES, "typescript/bin/tsc"), "-p", "tsconfig.json"], cwd=sdk, capture_output=True,
                       text=True, timeout=120)
    t.eq(r.returncode, 0, "the package for Node builds") or t.diag(r.stdout)
    app = t.mkdir("app")
    os.mkdir(os.path.join(app, "node_modules"))
    for name in os.listdir(NODE):
        if not name.startswith("."):
            os.symlink(os.path.join(NODE, name), os.path.join(app, "node_modules", name))
    os.symlink(sdk, os.path.join(app, "node_modules", "durward"))
    for name in EXAMPLES:
        shutil.copy(os.path.join(durward.TOP, "sdk/typescript/examples", name), app)
    for name in ("types.ts", "sessions.mjs"):
        shutil.copy(os.path.join(durward.SUITE, "clients/frameworks-node", name), app)
    with open(os.path.join(app, "package.json"), "w") as f:
        json.dump({"name": "app", "private": True, "type": "module"}, f)
    r = subprocess.run([node(), os.path.join(TYPES, "typescript/bin/tsc"), "--noEmit", "--strict", "--module", "nodenext",
                        "--target", "es2022", "--typeRoots", os.path.join(TYPES, "@types"), "--types", "node",
                        "--skipLibCheck", "types.ts"], cwd=app, capture_output=True,
                       text=True, timeout=120)
    t.eq(r.returncode, 0, "our types are those of OpenAI's SDK, Vercel's and Mastra") or t.diag(r.stdout)
    return app


def node():
    own = os.path.join(TYPES, "node", "bin", "node")
    return own if os.access(own, os.X_OK) else "node"


EXAMPLES = ("openai-agents.mjs", "openai-sandbox.mjs", "vercel-ai.mjs", "vercel-ai-sandbox.mjs", "mastra.mjs")
# Programs that would tell their vendors about themselves are told not to.
QUIET = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_VERSION_CHECK": "true",
         "CREWAI_TRACING_ENABLED": "false", "MASTRA_TELEMETRY_DISABLED": "1"}
PYTHON_EXAMPLES = (("openai_sandbox.py", PYTHON), ("crewai_tools.py", CREWAI))


def examples(t, s, c):
    """Examples of both SDKs as they are, against a double of the model's API on loopback."""
    app = application(t)
    if app is not None:
        t.part(sessions, t, s, app)
    box = c.create(policy="coder")["id"]
    r = c.sh(box, "echo sk-canary-x >/tmp/k; " + LOOK)
    t.ok("found: 1" in str(r), "a copy of the key that is in there is found", r)
    c.delete(box)
    run = [([python, "-B", os.path.join(durward.TOP, "sdk/python/examples", name)], name) for name, python in PYTHON_EXAMPLES
           if os.access(python, os.X_OK)] + [([node(), name], name) for name in EXAMPLES if app is not None]
    with openai_double.Double() as model:
        env = dict(s.d.env, DURWARD_SOCKET=s.d.socket, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=model.url,
                   OPENAI_AGENTS_DISABLE_TRACING="1", PYTHONPATH=SDK, PYTHONDONTWRITEBYTECODE="1", **QUIET)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            ran = list(pool.map(lambda x: subprocess.run(x[0], cwd=app or t.tmp, capture_output=True, text=True, timeout=90, env=env), run))
        for r, (_, name) in zip(ran, run):
            t.ok(r.returncode == 0 and "/workspace" in r.stdout and "hello from inside" in r.stdout,
                 "%s: its commands and files are in a sandbox" % name, r.stdout[-1500:], r.stderr[-3000:])
            t.ok("found: 0" in r.stdout, "%s: no copy of the key is in there" % name, r.stdout[-1500:])
            t.ok(re.search(r"(?i)exit(ed with)?[ _]?code\W+7\b", r.stdout), "%s: the model hears a command's exit status" % name, r.stdout[-1500:])
        if app is not None:
            t.eq((model.keys, model.kinds), ({"Bearer " + KEY}, {True, False}), "the model was asked with the key, by tools of both kinds")
    s.d.settle()
    t.eq([f for f in s.d.audit_files() for x in [open(f, "rb").read()] if KEY.encode() in x], [], "nor is one in the log")


def sessions(t, s, app):
    """What frameworks ask of our modules for Node, without a model."""
    r = subprocess.run([node(), "sessions.mjs"], cwd=app, capture_output=True, text=True, timeout=90,
                       env=dict(s.d.env, DURWARD_SOCKET=s.d.socket, **QUIET))
    lines = [json.loads(x) for x in r.stdout.splitlines() if x.startswith("{")]
    for x in lines:
        t.ok(x["ok"], x["what"], *x["more"])
    t.ok(r.returncode == 0 and len(lines) == 21, "sessions.mjs: to its end", r.returncode, len(lines), r.stderr[-3000:])


def each(t, s, which, least, python=PYTHON):
    r = subprocess.run([python, "-B", SCRIPT, which, s.d.socket], capture_output=True, text=True, timeout=80,
                       env=dict(s.d.env, PYTHONPATH=SDK, PYTHONDONTWRITEBYTECODE="1", **QUIET), cwd=s.d.work)
    lines = [json.loads(x[5:]) for x in r.stdout.splitlines() if x.startswith("seen ")]
    for good, name, more in lines:
        t.ok(good, name, *more)
    t.ok(r.returncode == 0 and len(lines) >= least, "%s: to its end" % which, r.returncode, r.stderr[-3000:])


def main(t):
    s = scene.Scene(t)
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="coder"))
    if os.access(PYTHON, os.X_OK):
        for which, least in (("openai", 5), ("openai-sandbox", 11), ("autogen", 7), ("smolagents", 3)):
            t.part(each, t, s, which, least)
    else:
        t.skip("frameworks of Python", "the frameworks' packages are not there: run tests/functional/clients/setup")
    if os.access(CREWAI, os.X_OK):
        t.part(each, t, s, "crewai", 6, CREWAI)
    else:
        t.skip("CrewAI", "its packages are not there: run tests/functional/clients/setup")
    t.part(examples, t, s, c)
    t.ok(tap.wait_for(lambda: not c.list()["sandboxes"], 10, 0.2), "no sandbox is left of them")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=260)
