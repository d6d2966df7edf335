#!/usr/bin/python3 -B
"""The conformance suite of the Model Context Protocol, as a client of one server: directly, from a sandbox with a
credential that is added outside, and with the server over standard input and output in a sandbox of its own. And as the
servers of a client: directly, and with that in a sandbox. Prints the table; what differs has a reason here."""
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scene, tap  # noqa: E402
from harness.mcp_relay import relay  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HOST, SERVERS = "mcp.example.com", "suite.example.com"
FOLDER = os.path.join(durward.clients_dir(), "mcp")
SUITE = os.path.join(FOLDER, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
SERVER = os.path.join(HERE, "peers", "mcp_conformance.mjs")
EVERYTHING = os.path.join(HERE, "inside", "mcp_everything.mjs")
# Those of a login are the host's here (mcp_login.t): its client sees a server that wants none.
CLIENT_SCENARIOS = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
HOOKS = os.path.join(HERE, "clients", "mcp", "globs.mjs")
ALLOWED = {"tools": ["*"], "methods": ["logging/*", "completion/complete"], "resources": ["test://**"], "prompts": ["*"]}
WHY = {}  # what the suite said last of a failure
# scenario -> why it may be otherwise through us
OTHERWISE = {
    "dns-rebinding-protection": "asks with another Host than the connection's, which the gate refuses before a server sees it",
}


def results(folder, kind="server-"):
    """scenario -> (passed, failed)"""
    found = {}
    for path in glob.glob(os.path.join(folder, kind + "*", "checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", os.path.basename(os.path.dirname(path))[len(kind):])
        with open(path) as f:
            read = json.load(f)
        checks = [c["status"] for c in read]
        WHY[name] = [c.get("errorMessage", "")[:200] for c in read if c["status"] == "FAILURE"][:1]
        slow = [c["status"] for c in read if c["id"] == "client-sse-retry-timing"].count("WARNING")  # it came late, and not too late
        found[name] = (checks.count("SUCCESS") + slow, checks.count("FAILURE"))
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


class Clients:
    """The suite's servers, each for a client that we start where `run` does, given the server's URL."""

    def __init__(self, t):
        self.t, self.port, self.path = t, 0, os.path.join(t.mkdir("hand-over"), "s")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.listener.settimeout(60)
        t.cleanup(self.listener.close)

    def ask(self, scenario, out, run):
        me = "%s -B %s %s" % (durward.PYTHON, os.path.join(HERE, "peers", "mcp_hand_over.py"), self.path)
        p = self.t.popen(["node", "--no-warnings", "--import", HOOKS, SUITE, "client", "--command", me, "--scenario", scenario, "-o", out],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        conn, _ = self.listener.accept()
        with conn, conn.makefile("rw") as f:
            url = urllib.parse.urlsplit(f.readline().strip())
            self.port = url.port
            status, said = run(url)
            f.write("%d\n" % status)
            f.flush()
        p.wait(60)
        return status, said

    def all(self, what, run):
        out = self.t.mkdir("out-" + what)
        for scenario in CLIENT_SCENARIOS:
            status, said = self.ask(scenario, out, run)
            self.t.eq(status, 0, "a client of the suite's, %s: %s" % (what, scenario)) or self.t.diag(said[-1500:])
        return results(out, "")


def clients(t, held, box):
    def plain(url):
        r = subprocess.run(["node", "--no-warnings", EVERYTHING, FOLDER, url.geturl()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=60, check=False)
        return r.returncode, r.stdout

    def inside(url):
        status, out, err = box.sh("node --no-warnings %s %s https://%s%s" % (EVERYTHING, FOLDER, SERVERS, url.path or "/"), timeout=60)
        return status, out + err
    direct, keyed = held.all("directly", plain), held.all("with a credential", inside)
    for name in sorted(direct):
        t.diag("%-34s %12s %12s" % ((name,) + tuple("%d, %d" % x.get(name, (0, 0)) for x in (direct, keyed))))
    t.ok(sorted(direct) == sorted(CLIENT_SCENARIOS) and not any(f for _, f in direct.values()), "the client, directly", str(direct), str(WHY))
    same(t, "a client with a credential", direct, keyed)


def main(t):
    if not os.path.exists(SUITE):
        t.skip("MCP's conformance suite", "clients/mcp is not there: make clients")
        return
    held = Clients(t)
    port, direct = directly(t)
    t.ok(len(direct) > 20 and sum(f for _, f in direct.values()) <= 1, "the suite, directly", str(direct))
    s = scene.Scene(t)
    o = origin.Origin(t, s.d.ca, HOST, scene.needs(s.github_credential, relay(port)))
    s.d.origin(HOST, o)
    servers = s.add(SERVERS, scene.needs(s.github_credential, relay(lambda: held.port)))
    s.env.clear()
    s.rules[:] = [{"allow": HOST + "/mcp", "with": {"bearer": "github"}, "mcp": ALLOWED},
                  {"allow": SERVERS, "with": {"bearer": "github"}, "mcp": {"tools": ["*"]}},
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
    t.part(clients, t, held, box)
    for one in (o, servers):
        t.ok(one.requests and not scene.one_right(one, s.github_credential), "%s saw the right credential, once in each request" % one.names[0])
    s.clean([box.close()[1]], "conformance")


tap.run(main, timeout=240)
