#!/usr/bin/python3 -B
"""A command ends when it ends, silent for longer than any time-out of ours or chatty: whole, as frames, as JSON, with an
input that stays open, over the unix socket. A request that an `ask` rule holds waits as long for its answer.
DURWARD_LONG is for how many seconds (`make check-long`: 600, and 240 for what is asked)."""
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402
from harness.origin import Origin  # noqa: E402

SILENT = int(os.environ.get("DURWARD_LONG", "64"))  # seconds: time-outs of the API and of its client are 60
ASKED = min(SILENT, 240)


def main(t):
    d = durward.Durward(t)
    origin = Origin(t, d.ca, ["asked.example.com"], lambda req, conn: conn.reply(req, 200, {"ok": 1}))
    d.origin("asked.example.com", origin)
    d.policy("p", [{"ask": "asked.example.com"}])
    d.serve()
    c = api.Api(d.socket)
    try:
        box = c.create()["id"]
    except api.Refused as e:
        raise tap.Skip("no sandbox can be made here: %s" % e)
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
    more = [threading.Thread(target=chat), threading.Thread(target=ask)]
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
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=SILENT + 90)
