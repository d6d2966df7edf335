#!/usr/bin/python3 -B
"""The API against its own OpenAPI document, by schemathesis: valid and invalid requests of every
operation; answers must have the statuses, types and shapes that the document says, and never be 5xx
but where it says so. Over a relay, as schemathesis speaks TCP only."""
import json
import os
import random
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402
from harness.accepting import accepting, joined  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# an archive's bytes cannot be made from a schema; files.t has its own
# the streams of the audit log (console.t) and of a watch (watch.t) have no end, and a list of approvals waits as long as it is told
ALWAYS_OUT = ("writeTar", "watchAudit", "watchFiles", "listApprovals")
ENDS_IT = ("deleteSandbox", "updateSandbox")


def document(t):
    """The document for this host: without backends that `durward doctor` says cannot run here."""
    with open(os.path.join(TOP, "doc", "openapi.json")) as f:
        doc = json.load(f)
    r = subprocess.run([durward.program(), "doctor", "--json"], capture_output=True, text=True, timeout=60)
    notes = " ".join(f["what"] for f in json.loads(r.stdout)["findings"])
    names = doc["components"]["schemas"]["CreateSandbox"]["properties"]["backend"]["enum"]
    names[:] = [n for n in names if "backend: %s cannot run here" % n not in notes]
    return t.write("openapi.json", json.dumps(doc))


def relay(t, path):
    listener = socket.create_server(("127.0.0.1", 0))
    t.cleanup(listener.close)

    def one(client):
        inside = socket.socket(socket.AF_UNIX)
        inside.connect(path)
        joined(client, inside)
    accepting(listener, one)
    return "http://127.0.0.1:%d" % listener.getsockname()[1]


def hunt(t, program, url, what, seed, args, examples):
    if durward.sanitized():
        examples = examples * 2 // 3  # most of the time is schemathesis's own
    scratch = t.mkdir("hypothesis")
    r = subprocess.run(
        [program, "run", t.document, "--base-url", url,
         "-H", "Host: durward", "--experimental=openapi-3.1", "-c", "all", "--no-color",
         "--hypothesis-max-examples", str(examples), "--hypothesis-seed", str(seed),
         "--hypothesis-database=none", "--request-timeout", "15000"] + args,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=150, cwd=scratch,
        env=dict(os.environ, HYPOTHESIS_STORAGE_DIRECTORY=scratch, HOME=scratch))
    text = r.stdout.decode("utf-8", "replace")
    asked = re.search(r"not_a_server_error\s+(\d+) / (\d+) passed", text)
    t.ok(r.returncode == 0, "%s: the server is what the document says (seed %d)" % (what, seed),
         text[text.find("= FAILURES"):][:6000] if "= FAILURES" in text else text[-3000:])
    t.ok(asked and int(asked.group(2)) >= (25 if durward.sanitized() else 40), "%s: %s requests" % (
        what, asked.group(2) if asked else "no"))


def main(t):
    program = os.path.join(durward.clients_dir(), "venv/bin/schemathesis")
    if not os.path.exists(program):
        raise tap.Skip("schemathesis is not there: run tests/functional/clients/setup")
    d = durward.Durward(t)
    d.policy("p", [])
    d.serve()
    c = api.Api(d.socket)
    try:
        box, other = c.create(idle_ttl=0)["id"], c.create()["id"]
    except api.Refused as e:
        raise tap.Skip("no sandbox can be made here: %s" % e)
    # 501 where there is no freezer, which is no fault of its
    not_here = ("pauseSandbox",) if api.refused(
        c.ask, "POST", "/v1/sandboxes/%s/pause" % box) else ()
    url = relay(t, d.socket)
    t.document = document(t)
    seed = int(os.environ.get("TEST_SEED", random.randrange(1 << 31)))
    out = [x for o in ALWAYS_OUT + not_here for x in ("--exclude-operation-id", o)]
    not_ending = [x for o in ENDS_IT for x in ("--exclude-operation-id", o)]
    hunt(t, program, url, "a running sandbox", seed, out + not_ending + ["--set-path", "id=" + box], 12)
    t.eq(c.sh(box, "echo fine"), (0, b"fine\n"), "which runs on")
    hunt(t, program, url, "one that is changed and deleted", seed,
         [x for o in ENDS_IT for x in ("--include-operation-id", o)] + ["--set-path", "id=" + other], 40)
    hunt(t, program, url, "any id", seed, out, 5)
    for s in c.list("?limit=1000")["sandboxes"]:
        c.delete(s["id"])
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=400)
