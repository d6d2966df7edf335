#!/usr/bin/python3 -B
"""The official SDKs of the Model Context Protocol, of both versions, and LangChain's adapters in a sandbox, against a
server of the official Python SDK that wants a credential: beside what they get without us, and with somebody who says
yes to what is held."""
import json
import os
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scene, tap, terminal  # noqa: E402
from harness.mcp_relay import relay  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = {"/mcp": "mcp.example.com", "/sse": "sse.example.com"}
FOLDER = os.path.join(durward.clients_dir(), "mcp")
TOOLS = ["add", "count", {"name": "deploy", "ask": True}, "slow"]
DENIED = "Durward denied this request: the policy does not allow this MCP tool or method"
# client -> (how it is started, a word of its own about that, the words before a JSON-RPC error, the server's path: /sse is that
# of the older transport)
CLIENTS = {
    "Python, by handshake": ("py", "legacy", "MCPError: ", "/mcp"), "Python, 2026-07-28": ("py", "2026-07-28", "MCPError: ", "/mcp"),
    "Node": ("node", "", "McpError: MCP error -31403: ", "/mcp"), "Node, version 2": ("node", "legacy", "ProtocolError: ", "/mcp"),
    "Node, 2026-07-28": ("node", "2026-07-28", "ProtocolError: ", "/mcp"), "LangChain's adapters": ("py1", "", "McpError: ", "/mcp"),
    "Python, HTTP+SSE": ("py", "legacy", "MCPError: ", "/sse"), "Node, HTTP+SSE": ("node", "", "McpError: MCP error -31403: ", "/sse"),
    "Node, version 2, HTTP+SSE": ("node", "legacy", "ProtocolError: ", "/sse"), "LangChain's adapters, HTTP+SSE": ("py1", "", "McpError: ", "/sse"),
}


def server(t, *args):
    p = subprocess.Popen([os.path.join(FOLDER, "py", "bin", "python"), "-B", os.path.join(HERE, "peers", "mcp_server.py")] + list(args),
                         stdout=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent)
    t.cleanup(lambda: tap.stop(p))
    return int(p.stdout.readline())


def command(client, base):
    kind, mode, _, path = CLIENTS[client]
    url = base + path
    if kind == "node":
        return ["node", "--no-warnings", os.path.join(HERE, "inside", "mcp_client.mjs"), FOLDER, url, mode]
    script = "mcp_client.py" if kind == "py" else "mcp_langchain.py"
    return [os.path.join(FOLDER, kind, "bin", "python"), "-B", os.path.join(HERE, "inside", script), url, mode]


def direct(t, name, ports):
    r = subprocess.run(command(name, "http://127.0.0.1:%d" % ports[CLIENTS[name][3]]), stdout=subprocess.PIPE, text=True,
                       stderr=subprocess.PIPE, timeout=60, check=False)
    said = json.loads(r.stdout) if r.returncode == 0 else {"failed": r.stderr[-800:]}
    t.ok(said.get("add") == [False, "5"] and said.get("remove") == [False, "removed"] and
         said.get("deploy") == [False, "deployed to there"], "%s: without us" % name, str(said))
    return said


def inside(box, name):
    status, out, err = box.sh(shlex.join(command(name, "https://" + HOSTS[CLIENTS[name][3]])), timeout=60)
    return json.loads(out) if status == 0 else {"failed": out + err[-800:]}


def in_sandbox(t, box, ports):
    """Nobody can be asked here: a held call is denied."""
    for name, (_, _, words, _) in CLIENTS.items():
        plain, ours = direct(t, name, ports), inside(box, name)
        t.eq(ours.get("tools"), ["add", "count", "deploy", "slow"], "%s: sees the tools that it may call" % name)
        t.ok(str(ours.get("remove")).startswith(words + DENIED), "%s: is told of a refused tool" % name, str(ours))
        t.ok("a person has to allow it, and did not" in str(ours.get("deploy")), "%s: is told that somebody said no" % name,
             str(ours))
        t.eq(int(ours.get("count", [0, "-1"])[1]), int(plain.get("count", [0, "-2"])[1]),
             "%s: the refused one was not called" % name)
        same = {k: v for k, v in plain.items() if k not in ("tools", "remove", "deploy", "count")}
        t.eq({k: ours.get(k) for k in same}, same, "%s: all else is as without us: %s" % (name, ", ".join(sorted(same))))


def approved(t, s):
    """Somebody at the terminal says yes to each."""
    person = terminal.Answerer(t, "y\n")
    box = durward.Sandbox(s.d, flags=("--policy", "coder", "--ask"), terminal=person.slave, binds=durward.client_binds("mcp"))
    for n, name in enumerate(CLIENTS):
        said = inside(box, name)
        t.eq((said.get("deploy"), said.get("read")), ([False, "deployed to there"], "first"),
             "%s: a call is held, approved and answered" % name) or t.diag(str(said))
        t.eq(person.asked, n + 1, "%s: somebody was asked once" % name)
    details = [r.get("detail") for r in s.d.kinds("admitted") if "deploy" in str(r.get("detail"))]
    t.ok(len(details) == len(CLIENTS) and all(d.startswith("tools/call deploy (where); approved by ") for d in details),
         "and the record says who and of what", str(details))
    return box.close()[1]


def main(t):
    if not os.path.exists(os.path.join(FOLDER, "stamp")):
        raise tap.Skip("the client libraries are not there: MCP's SDKs; run tests/functional/clients/setup")
    s = scene.Scene(t)
    ports = {"/mcp": server(t), "/sse": server(t, "sse")}
    origins = {path: s.add(host, origin.needs(s.openai_credential, relay(ports[path]))) for path, host in HOSTS.items()}
    for host in HOSTS.values():
        s.rule(allow=host, mcp={"tools": TOOLS, "resources": "docs://*"}, **{"with": {"bearer": "openai"}})
    box = durward.Sandbox(s.d, flags=("--policy", "coder"), binds=durward.client_binds("mcp"))
    in_sandbox(t, box, ports)
    outputs = [box.close()[1], t.part(approved, t, s) or ""]
    t.ok(sum(q.get("mcp-param-where") == "there" for q in origins["/mcp"].requests) == 2, "clients of 2026-07-28 repeat an argument in a field")
    s.clean(outputs, "MCP's SDKs")


tap.run(main, timeout=300)
