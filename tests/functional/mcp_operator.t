#!/usr/bin/python3 -B
"""`durward mcp --operator`: the log, approvals and sandboxes as tools of MCP, with the rights of who starts it."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402


class Operator:
    def __init__(self, s, *flags, remote=None):
        where = [] if remote else ["--socket", s.d.socket]
        env = {k: v for k, v in s.d.env.items() if k != "DURWARD_SOCKET"} if remote else s.d.env
        self.p = s.test.popen([durward.program(), "mcp", "--operator"] + where + list(flags), env=dict(env, **remote or {}),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0

    def raw(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def ask(self, method, **params):
        self.number += 1
        got = self.raw(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))
        return got.get("result", got)

    def call(self, tool, **arguments):
        got = self.ask("tools/call", name=tool, arguments=arguments)
        return got.get("isError"), (got.get("content") or [{}])[0].get("text", json.dumps(got))


def by_token(t, s, client, port, box):
    """From elsewhere, by a token: each of its tools may what the token's scopes say, whatever it lists."""
    rows = (("read", True, False, False), ("approvals", False, True, False), ("sandboxes", False, False, True), ("exec", False, False, False))
    for scope, reads, approves, deletes in rows:
        token = client.ask("POST", "/v1/tokens", {"scopes": [scope]})["token"]
        o = Operator(s, "--allow-changes", remote={"DURWARD_URL": "https://127.0.0.1:%d" % port, "DURWARD_TOKEN": token,
                                                   "DURWARD_CA": s.ca_file()})
        got = o.call("sandboxes"), o.call("approval_allow", id="ap-none"), o.call("sandbox_delete", id="sb-none")
        told = ["scope" not in text and "403" not in text for _, text in got]
        t.eq(told, [reads, approves, deletes], "a token of scope %s: sees, approves, deletes" % scope) or t.diag(str(got))
        o.p.stdin.close()
        t.eq(o.p.wait(10), 0, "and ends")
    token = client.ask("POST", "/v1/tokens", {"scopes": ["read"], "policies": ["other"]})["token"]
    o = Operator(s, remote={"DURWARD_URL": "https://127.0.0.1:%d" % port, "DURWARD_TOKEN": token, "DURWARD_CA": s.ca_file()})
    t.ok(box not in o.call("sandboxes")[1] and box not in o.call("audit_search", kind="denied")[1],
         "a token for another policy sees neither the sandbox nor what the log has of it", *[x[1][:300] for x in (
             o.call("sandboxes"), o.call("audit_search", kind="denied"))])
    o.p.stdin.close()
    o.p.wait(10)


def main(t):
    s = scene.Scene(t)
    port = free_port()
    s.d.extra["controller"] = dict(s.d.config()["controller"], https="127.0.0.1:%d" % port)
    s.d.policy("other", [{"allow": scene.PLAIN}])
    s.rule(ask="%s/held/**" % scene.PLAIN)
    s.d.serve()
    client = api.Api(s.d.socket)
    box = client.ask("POST", "/v1/sandboxes", {"policy": "coder"})["id"]
    client.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "curl -s https://refused.example.org/ https://api.github.com/gists"})
    o = Operator(s, "--allow-changes")
    t.eq(o.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"})["protocolVersion"],
         "2025-06-18", "it begins")
    names = [x["name"] for x in o.ask("tools/list")["tools"]]
    t.ok({"audit_search", "approvals", "sandboxes", "approval_allow", "sandbox_delete"} <= set(names), "its tools", str(names))
    bad, text = o.call("sandboxes")
    t.ok(not bad and box in text, "the sandboxes", text[:300])
    bad, text = o.call("sandbox", id=box)
    t.ok(not bad and '"coder"' in text, "one of them", text[:300])
    logged = tap.wait_for(lambda: [x for x in [o.call("audit_search", kind="denied", sandbox=box)] if "api.github.com" in x[1]], 10, 0.1)
    t.ok(logged and not logged[0][0], "the log", str(logged)[:500])
    waiting = t.popen([durward.program(), "sandbox", "exec", "--socket", s.d.socket, box, "--", "curl", "-s", "-m", "30",
                       "https://%s/held/x" % scene.PLAIN], env=s.d.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    held = tap.wait_for(lambda: json.loads(o.call("approvals")[1]).get("approvals"), 15, 0.2)
    t.ok(held, "what waits for somebody's word")
    if held:
        bad, text = o.call("approval_allow", id=held[0]["id"])
        t.ok(not bad, "and it is let go", text)
    t.ok(b"/held/x" in waiting.communicate(timeout=30)[0], "by that tool")
    for tool, arguments, says in (("sandbox", {"id": "../status"}, ""), ("sandbox", {}, "missing"), ("sandbox", {"id": "sb-none"}, ""),
                                  ("audit_search", {"limit": "1; x", "nonsense": "1"}, "not a text that this tool takes")):
        bad, text = o.call(tool, **arguments)
        t.ok(bad and says in text, "%s of %s is an error, in words" % (tool, arguments), text[:200])
    t.ok("-32601" in json.dumps(o.ask("nonsense")), "a method that is not there")
    t.ok("-32601" in json.dumps(o.ask("tools/call", name="nonsense")), "a tool that is not there")
    t.ok("-32700" in json.dumps(o.raw("{")), "what is no message")
    t.ok("-32700" in json.dumps(o.raw('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}')), "a key twice")
    readers = [Operator(s), Operator(s, "--read-only"), Operator(s, "--read-only", "--allow-changes")]
    for r, how in zip(readers, ("by default", "--read-only", "--read-only beside --allow-changes")):
        names = [x["name"] for x in r.ask("tools/list")["tools"]]
        t.ok("audit_search" in names and not {"sandbox_delete", "approval_allow", "approval_deny"} & set(names),
             "%s: what changes something is not listed" % how, str(names))
        t.ok("-32601" in json.dumps(r.ask("tools/call", name="sandbox_delete", arguments={"id": box})), "nor called")
    t.part(by_token, t, s, client, port, box)
    bad, text = o.call("sandbox_delete", id=box)
    t.ok(not bad, "with --allow-changes, a sandbox can be deleted", text)
    for one in [o] + readers:
        one.p.stdin.close()
        t.eq(one.p.wait(10), 0, "the end of its input ends it")
    t.eq(s.d.command("mcp").returncode, 2, "without --operator it is a usage error")
    s.d.stop()
    s.clean([], "operator")


tap.run(main)
