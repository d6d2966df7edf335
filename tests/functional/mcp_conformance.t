#!/usr/bin/python3 -B
"""The conformance suite of the Model Context Protocol, as a client of one server: directly, from a sandbox with a
credential that is added outside, and with the server over standard input and output in a sandbox of its own. Prints the
table; what differs has a reason here."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scene, tap  # noqa: E402
from harness.mcp_relay import relay  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HOST = "mcp.example.com"
FOLDER = os.path.join(durward.clients_dir(), "mcp")
SUITE = os.path.join(FOLDER, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
SERVER = os.path.join(HERE, "peers", "mcp_conformance.mjs")
HOOKS = os.path.join(HERE, "clients", "mcp", "globs.mjs")
ALLOWED = {"tools": ["*"], "methods": ["logging/*", "completion/complete"], "resources": ["test://**"], "prompts": ["*"]}
WHY = {}  # what the suite said last of a failure
# scenario -> why it may be otherwise through us
OTHERWISE = {
    "dns-rebinding-protection": "asks with another Host than the connection's, which the gate refuses before a server sees it",
}


def results(folder):
    """scenario -> (passed, failed)"""
    found = {}
    for path in glob.glob(os.path.join(folder, "server-*", "checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", os.path.basename(os.path.dirname(path))[len("server-"):])
        with open(path) as f:
            read = json.load(f)
        checks = [c["status"] for c in read]
        WHY[name] = [c.get("errorMessage", "")[:200] for c in read if c["status"] == "FAILURE"][:1]
        found[name] = (checks.count("SUCCESS"), checks.count("FAILURE"))
    return found


def command(url, out):
    return ["node", "--no-warnings", "--import", HOOKS, SUITE, "server", "--url", url, "-o", out]


def directly(t):
    server = t.popen(["node", SERVER, FOLDER], stdout=subprocess.PIPE, text=True)
    port, out = int(server.stdout.readline()), t.mkdir("out-direct")
    subprocess.run(command("http://127.0.0.1:%d/mcp" % port, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=180, check=False)
    return port, results(out)


def by_us(t, s, box, url, name):
    out = os.path.join(s.d.work, name)
    status, _, err = box.sh(" ".join("'%s'" % x for x in command(url, out)), timeout=240)
    got = results(out)
    t.ok(len(got) > 20, "%s: the suite ran" % name, str(status), err[-800:])
    shutil.rmtree(out, ignore_errors=True)
    return got


def same(t, what, direct, got):
    for name in sorted(direct):
        if got.get(name) != direct[name] and name in OTHERWISE:
            t.ok(True, "%s: %s is %s, not %s: %s" % (what, name, got.get(name), direct[name], OTHERWISE[name]))
        else:
            t.eq(got.get(name), direct[name], "%s: %s" % (what, name)) or t.diag(str(WHY.get(name)))


def main(t):
    if not os.path.exists(SUITE):
        t.skip("MCP's conformance suite", "clients/mcp is not there: make clients")
        return
    port, direct = directly(t)
    t.ok(len(direct) > 20 and sum(f for _, f in direct.values()) <= 1, "the suite, directly", str(direct))
    s = scene.Scene(t)
    o = origin.Origin(t, s.d.ca, HOST, scene.needs(s.github_credential, relay(port)))
    s.d.origin(HOST, o)
    s.env.clear()
    s.rules[:] = [{"allow": HOST + "/mcp", "with": {"bearer": "github"}, "mcp": ALLOWED},
                  {"allow": "http://durward.internal/mcp/suite", "mcp": ALLOWED}]
    s.d.policy("nothing", [])
    s.d.extra["mcp_servers"] = {"suite": {"command": ["node", SERVER, FOLDER, "stdio"], "policy": "nothing",
                                          "files": [{"path": HERE}, {"path": FOLDER}]}}
    box = durward.Sandbox(s.d, ("--policy", "coder"), binds=["%s:%s:ro" % (x, x) for x in (FOLDER, HERE)])
    keyed = by_us(t, s, box, "https://%s/mcp" % HOST, "keyed")
    stdio = by_us(t, s, box, "http://durward.internal/mcp/suite", "stdio")
    t.diag("%-34s %12s %12s %12s   (checks passed, failed)" % ("scenario", "directly", "credential", "stdio"))
    for name in sorted(direct):
        t.diag("%-34s %12s %12s %12s" % ((name,) + tuple("%d, %d" % x[name] if name in x else "-" for x in (direct, keyed, stdio))))
    same(t, "with a credential", direct, keyed)
    same(t, "over stdio", direct, stdio)
    t.ok(o.requests and not scene.one_right(o, s.github_credential), "the origin saw the right credential, once in each request")
    s.clean([box.close()[1]], "conformance")


tap.run(main, timeout=240)
