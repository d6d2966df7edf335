#!/usr/bin/python3 -B
"""A command ends when it ends, silent for longer than any time-out of ours or chatty: whole, as frames, as JSON, with an
input that stays open, over the unix socket; by the command, by sdk/python (waiting and for asyncio) and by sdk/typescript.
A request that an `ask` rule holds waits as long for its answer.
DURWARD_LONG is for how many seconds (`make check-long`: 600, and 240 for what is asked)."""
import asyncio
import importlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402
from harness.origin import Origin  # noqa: E402

SILENT = int(os.environ.get("DURWARD_LONG", "64"))  # seconds: time-outs of the API and of its client are 60
ASKED = min(SILENT, 240)
SDK = os.path.join(durward.TOP, "sdk")
QUIET = "echo first; sleep %d; echo last; exit 7" % SILENT
CHAT = "i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); sleep 1; done; exit 5" % SILENT
SAID = {"quiet": [7, "first\nlast\n"], "chat": [5, "".join("%d\n" % i for i in range(SILENT))]}


def by_python(socket, box):
    """-> what sdk/python makes of both, waiting and for asyncio, at the same time"""
    sys.path.insert(0, os.path.join(SDK, "python", "src"))
    package = importlib.import_module("durward")
    got = {}

    def quiet():
        r = package.Durward(socket).get(box).exec(QUIET)
        got["quiet"] = [r.exit_code, r.text]

    def chat():
        pieces = list(package.Durward(socket).get(box).stream(CHAT))
        got["chat"] = [pieces[-1].exit_code, b"".join(x.data for x in pieces[:-1]).decode()]

    async def both():
        b = await package.AsyncDurward(socket).get(box)
        r, pieces = await asyncio.gather(b.exec(QUIET), collect(b.stream(CHAT)))
        got["quiet, asyncio"] = [r.exit_code, r.text]
        got["chat, asyncio"] = [pieces[-1].exit_code, b"".join(x.data for x in pieces[:-1]).decode()]

    async def collect(stream):
        return [x async for x in stream]
    threads = [threading.Thread(target=x) for x in (quiet, chat, lambda: asyncio.run(both()))]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    return got


def typescript(t):
    """-> (node, the built package); or why not, as text"""
    modules = os.path.join(durward.clients_dir(), "agents-node", "node_modules")
    if not os.path.exists(os.path.join(modules, "typescript")):
        return "TypeScript is not there: run tests/functional/clients/setup"
    own = os.path.join(modules, "node", "bin", "node")
    node = own if os.path.exists(own) else shutil.which("node")
    source = t.path("typescript")
    shutil.copytree(os.path.join(SDK, "typescript"), source, ignore=shutil.ignore_patterns("dist", "node_modules", "*.tgz"))
    os.symlink(modules, os.path.join(source, "node_modules"))
    shutil.copy(os.path.join(durward.INSIDE, "exec_long.mjs"), source)
    r = subprocess.run([node, os.path.join(modules, "typescript/bin/tsc"), "-p", "tsconfig.json"], cwd=source, capture_output=True,
                       text=True, timeout=120, check=False) if node else None
    if r is None or r.returncode:
        return "it cannot be built here: " + (r.stdout + r.stderr if r else "no node")[:300]
    return node, source


def by_typescript(node, source, socket, box):
    p = subprocess.run([node, os.path.join(source, "exec_long.mjs"), socket, box, QUIET, CHAT], capture_output=True, text=True,
                       cwd=source, timeout=SILENT + 60, check=False)
    return json.loads(p.stdout) if p.returncode == 0 else {"failed": p.stderr[-800:]}


def main(t):
    d = durward.Durward(t)
    origin = Origin(t, d.ca, ["asked.example.com"], lambda req, conn: conn.reply(req, 200, {"ok": 1}))
    d.origin("asked.example.com", origin)
    d.policy("p", [{"ask": "asked.example.com"}])
    d.serve()
    c = api.Api(d.socket)
    box = c.first()
    chatty = []

    def chat():
        p = subprocess.run([durward.program(), "sandbox", "exec", box, "--", "sh", "-c",
                            "i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); sleep 1; done; exit 5" % SILENT],
                           stdin=subprocess.DEVNULL, capture_output=True, env=dict(d.env, DURWARD_SOCKET=d.socket))
        chatty.append((p.returncode, p.stdout.split(), p.stderr))

    asked = []

    def ask():
        p = subprocess.run([durward.program(), "sandbox", "exec", box, "--", "curl", "-s", "-o", "/dev/null", "-w",
                            "%{http_code}", "https://asked.example.com/held"],
                           stdin=subprocess.DEVNULL, capture_output=True, env=dict(d.env, DURWARD_SOCKET=d.socket))
        asked.append((p.returncode, p.stdout, p.stderr))

    sdks, built = {}, typescript(t)
    if isinstance(built, str):
        t.skip("sdk/typescript", built)

    def python():
        sdks["python"] = by_python(d.socket, box)

    def node():
        sdks["typescript"] = by_typescript(*built, d.socket, box)

    ways = {"plain": [], "input that stays open": ["-i"], "as JSON": ["--json"]}
    got = {}

    def run(name, flags):
        r, w = os.pipe()
        p = subprocess.run([durward.program(), "sandbox", "exec", *flags, box, "--", "sh", "-c",
                            "echo first; sleep %d; echo last; exit 7" % SILENT],
                           stdin=r, capture_output=True, env=dict(d.env, DURWARD_SOCKET=d.socket))
        os.close(w)
        os.close(r)
        got[name] = (p.returncode, json.loads(p.stdout)["output"] if name == "as JSON" else p.stdout.decode(), p.stderr)

    threads = [threading.Thread(target=run, args=x) for x in ways.items()]
    began = time.monotonic()
    for x in threads:
        x.start()
    more = [threading.Thread(target=x) for x in (chat, ask, python) + (() if isinstance(built, str) else (node,))]
    for x in more:
        x.start()
    held = tap.wait_for(lambda: d.command("completion", "--list", "approvals", "--socket", d.socket).stdout.strip(), 10)
    t.ok(held, "a request is held")
    time.sleep(ASKED - (time.monotonic() - began))  # the matter of this test
    r = d.command("approve", "allow", held[:7], "--socket", d.socket)
    for x in more + threads:
        x.join()
    t.ok(r.returncode == 0 and asked == [(0, b"200", b"")] and len(origin.requests) == 1,
         "an answer after %d s is in time" % ASKED, r.stderr, asked)
    t.eq(chatty, [(5, [b"%d" % i for i in range(SILENT)], b"")], "%d s of talk" % SILENT)
    t.ok(time.monotonic() - began >= SILENT, "%d s of silence" % SILENT)
    for name in ways:
        t.eq(got.get(name), (7, "first\nlast\n", b""), name)
    t.eq(sdks.get("python"), {**SAID, **{k + ", asyncio": v for k, v in SAID.items()}}, "sdk/python: %d s of both, waiting and for asyncio" % SILENT)
    if not isinstance(built, str):
        t.eq(sdks.get("typescript"), SAID, "sdk/typescript: %d s of both" % SILENT)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=SILENT + 90)
