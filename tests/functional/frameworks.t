#!/usr/bin/python3 -B
"""Agents' frameworks of others with their commands, code and files in a sandbox: OpenAI's Agents SDK, AutoGen,
smolagents, each its own package (tests/functional/clients/frameworks) over durward_frameworks."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402

PYTHON = os.path.join(durward.clients_dir(), "frameworks", "bin", "python")
SCRIPT = os.path.join(durward.INSIDE, "frameworks.py")
SDK = os.path.join(durward.TOP, "sdk/python/src")


def each(t, s, which, least):
    r = subprocess.run([PYTHON, "-B", SCRIPT, which, s.d.socket], capture_output=True, text=True, timeout=80,
                       env=dict(s.d.env, PYTHONPATH=SDK, PYTHONDONTWRITEBYTECODE="1"), cwd=s.d.work)
    lines = [json.loads(x[5:]) for x in r.stdout.splitlines() if x.startswith("seen ")]
    for good, name, more in lines:
        t.ok(good, name, *more)
    t.ok(r.returncode == 0 and len(lines) >= least, "%s: to its end" % which, r.returncode, r.stderr[-3000:])


def main(t):
    if not os.access(PYTHON, os.X_OK):
        raise tap.Skip("the frameworks' packages are not there: run tests/functional/clients/setup")
    s = scene.Scene(t)
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="coder"))
    for which, least in (("openai", 5), ("autogen", 7), ("smolagents", 3)):
        t.part(each, t, s, which, least)
    t.ok(tap.wait_for(lambda: not c.list()["sandboxes"], 10, 0.2), "no sandbox is left of them")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=260)
