#!/usr/bin/python3 -B
"""Providers for hosted systems: made by the vendors' own packages with the proxy's variables and the vendor's network
lock, against doubles of the vendors' APIs that keep what was sent. The sandbox itself is a process in a
network namespace that reaches the proxy and nothing else, or, for a lock that does not hold, in none."""
import json
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, namespace, nginx, scene, tap  # noqa: E402

HERE = os.path.join(durward.SUITE, "clients", "agents")
SDK = os.path.join(durward.TOP, "sdk", "python")
VENDORS = ["modal", "daytona", "runloop", "langsmith", "agentcore", "vercel", "e2b", "sandbox0", "deno"]


def installed(t, python):
    """The package as pip lays it out: dcode finds entry points in what is installed."""
    where, source = t.path("installed"), t.path("sdk")
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    r = subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
                        "--target", where, source], capture_output=True, text=True)
    if r.returncode != 0:
        raise RuntimeError("pip: " + r.stderr)
    return where


def kept(name):
    """A folder for what is made of the packages once, and serves the next run, too: compiling them takes most of the time."""
    folder = os.path.join(durward.clients_dir(), name)
    os.makedirs(folder, exist_ok=True)
    return folder


def main(t):
    python = os.path.join(durward.clients_dir(), "providers", "bin", "python")
    if not os.path.exists(python):
        raise tap.Skip("the vendors' packages are not there: run tests/functional/clients/setup (Python 3.12)")
    if os.geteuid() != 0:
        raise tap.Skip("a network namespace needs root")
    ns = namespace.Namespace(t)
    s = scene.Scene(t)
    address = "%s:%d" % (ns.host, nginx.free_port())
    s.d.listen.append({"http": address, "insecure": True})
    s.d.serve()
    around = socket.create_server((ns.host, 0))  # what only an unlocked sandbox reaches
    t.cleanup(around.close)
    other = socket.create_server(("127.0.0.1", 0))
    t.cleanup(other.close)
    ask = {"address": address, "namespace": ns.name, "vendors": os.environ.get("VENDORS", "").split() or VENDORS,
           "elsewhere": ["tcp:127.0.0.1:%d" % other.getsockname()[1], "tcp:1.1.1.1:443", "name:no-such-name.invalid"]}
    env = {**s.d.env, "PYTHONPATH": installed(t, python) + ":" + HERE, "PYTHONPYCACHEPREFIX": kept("pycache"), "HOME": t.mkdir("home"),
           "DURWARD_SOCKET": s.d.socket, "LANGSMITH_TRACING": "false", "DEEPAGENTS_CODE_OFFLINE": "1",
           "AWS_EC2_METADATA_DISABLED": "true"}
    r = subprocess.run([python, os.path.join(HERE, "vendors.py"), json.dumps(ask)], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=300, cwd=s.d.work, env=env)
    seen = [json.loads(x[1:]) for x in r.stdout.splitlines() if x.startswith("@{")]
    for b in seen:
        t.ok(b["ok"], b["what"], b["why"])
    t.eq(r.returncode, 0, "all vendors were tried") or t.diag(r.stderr[-3000:])
    for name in ask["vendors"]:
        t.ok(len([b for b in seen if b["what"].startswith(name + ":")]) >= 9, "%s: nothing was left out" % name)
    r = subprocess.run([python, "-m", "mypy", "--strict", "--cache-dir", kept("mypy-providers"), "--config-file",
                        os.path.join(SDK, "pyproject.toml"), os.path.join(SDK, "src")], capture_output=True, text=True)
    t.eq(r.returncode, 0, "mypy --strict has nothing to say") or t.diag(r.stdout + r.stderr)
    s.judge([(s.github, s.github_credential)], [r.stdout, r.stderr], "providers")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=400)
