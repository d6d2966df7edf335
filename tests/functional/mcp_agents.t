#!/usr/bin/python3 -B
"""Coding agents of others by `durward run NAME`, with an MCP server that the policy names: each calls an allowed tool, is
told of a call that the rule refuses, and has one held until somebody at the terminal says yes. What the model is told
is what the double of its API gets. Their profiles write the server into the agent's own files."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import agents, durward, models, tap  # noqa: E402
from harness.terminal import Terminal  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("claude", "codex", "gemini")
# Its tools of servers are offered at once, not when its model searches for them.
MORE = {"claude": ["-e", "ENABLE_TOOL_SEARCH=false"]}
# The tool of the server, its arguments, what the model is to be told of it.
STEPS = (("echo", {"word": "kept"}, "kept"),
         ("echo", {"word": "shut"}, "Durward denied this request"),
         ("env", {}, "PATH"))


class Calls(models.Task):
    """A model that calls the server's tools, one after the other, by whichever name the agent gives them."""

    def turn(self, offered, results, text, schema=None):
        by_name = {t.name: t for t in offered}
        found = {step: t for step, _, _ in STEPS for n, t in by_name.items()
                 if n.endswith("_" + step) or (n == step and (t.space or "run_shell_command" in by_name))}
        code = by_name["exec"] if "exec" in by_name and by_name["exec"].free else None
        with self.lock:
            self.offered = sorted(set(by_name) | set(self.offered))
        if models.MARK not in text:
            return super().turn([], results, text, schema)
        if not (found or code) and "WaitForMcpServers" in by_name and len(results) < 9:  # they are not there yet
            self.waited = len(results) + 1
            return models.Call(by_name["WaitForMcpServers"], by_name["WaitForMcpServers"].filled())
        results = results[getattr(self, "waited", 0):]
        while results and "is not a function" in results[0]:  # nor for a program
            results = results[1:]
        if not (found or code):
            return super().turn([], results, text, schema)
        with self.lock:
            if len(results) > len(self.results):
                self.results = list(results)
        if len(results) >= len(STEPS):
            return models.LAST
        name, arguments, _ = STEPS[len(results)]
        if code:  # a program that calls the others
            return models.Call(code, "try { text(JSON.stringify(await tools.mcp__odd__%s(%s))); } catch (e) { text(String(e)); }" % (
                name, json.dumps(arguments)))
        return models.Call(found[name], arguments)


def one(t, agent):
    run = agents.Run(t, agent, "mcp")
    run.task.__class__ = Calls
    d = run.d
    d.policy("nothing", [])
    d.policy(agent.name, [{"allow": "http://durward.internal/mcp/odd", "mcp": {"tools": [
        {"name": "echo", "arguments": {"/word": {"one_of": ["kept"]}}}, {"name": "env", "ask": True}]}}])
    d.extra["mcp_servers"] = {"odd": {"command": [durward.PYTHON, "-B", "/srv/peers/mcp_stdio.py"], "policy": "nothing",
                                      "files": [{"path": os.path.join(HERE, "peers"), "at": "/srv/peers"}]}}
    d.save()
    path = os.path.dirname(os.path.join(agent.folder, agent.program)) + ":" + agent.variables()["PATH"]
    env = dict(d.env, PATH=path, TERM="xterm", **{agent.caller_key: run.key})
    c = Terminal(t, [durward.program(), "run", "-c", d.conf, "--ask"] + MORE.get(agent.name, []) + [agent.name] + agent.words(), d.work, env)
    asked = c.see("allow it? [y/s/r/N]", 150)
    t.ok(asked and b"tools/call env" in c.last, "%s: a call of one tool is held, and shown at the terminal" % agent.name, c.out[-3000:],
         "offered %s" % run.task.offered, "results %s" % run.task.results,
         str(sorted({(q.method, q.path, str(q.status)) for q in run.double.requests})))
    if asked:
        c.type("y\n")
    t.eq(c.wait(90), 0, "%s: it ends well" % agent.name) or t.diag(c.out[-3000:])
    for (name, arguments, want), got in zip(STEPS, run.task.results + [""] * 3):
        t.ok(want in got, "%s: the model is told of %s %s" % (agent.name, name, json.dumps(arguments)), got[:600])
    seen = [r.get("detail") for r in d.kinds("denied") if r.get("code") == "mcp"]
    t.ok(seen == ["tools/call echo: /word (word)"], "%s: one refusal is on record" % agent.name, str(seen))
    held = [r.get("detail") for r in d.kinds("admitted") if "env" in str(r.get("detail"))]
    t.ok(len(held) == 1 and "approved by" in held[0], "%s: and who approved" % agent.name, str(held))


def main(t):
    asked = os.environ.get("AGENTS", "").split() or NAMES
    there = [a for a in agents.named(asked) if not a.missing()]
    if not there:
        raise tap.Skip("coding agents are not there: run tests/functional/clients/setup")
    for a in there:
        t.part(one, t, a)


tap.run(main, timeout=400)
