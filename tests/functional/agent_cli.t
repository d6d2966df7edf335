#!/usr/bin/python3 -B
"""A coding agent inside of the sandbox: npm's pi, which knows the model's key as a placeholder only, works in the
directory that is bound, and shows its full-screen interface. The model is a server of ours that answers from
a script."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402
from harness.origin import needs  # noqa: E402
from harness.terminal import Terminal  # noqa: E402

WORK = "printf 'kept\\n' > door.txt; curl -sS -o user.json -w '%{http_code}' https://api.github.com/user; " \
       "curl -sS -o /dev/null -w ' %{http_code}' https://api.github.com/gists -d x; printenv OPENAI_API_KEY > key.txt"
LAST = "The door is kept."


def model(asked):
    """Chat completions, streamed: a command first, then, when its result is there, the end."""
    def chunk(conn, delta, finish=None):
        event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test",
                 "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        conn.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def handler(req, conn):
        if (req.method, req.path) != ("POST", "/v1/chat/completions"):
            conn.reply(req, 404, {"error": {"message": "no such route", "type": "invalid"}})
            return
        ask = req.json()
        asked.append(ask)
        results = [m for m in ask["messages"] if m["role"] == "tool"]
        req.status = 200
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        if results:
            chunk(conn, {"role": "assistant", "content": LAST})
            chunk(conn, {}, "stop")
        else:
            call = {"index": 0, "id": "call_1", "type": "function",
                    "function": {"name": "bash", "arguments": json.dumps({"command": WORK})}}
            chunk(conn, {"role": "assistant", "tool_calls": [call]})
            chunk(conn, {}, "tool_calls")
        conn.chunk(b"data: [DONE]\n\n")
        conn.chunk(b"")
    return handler


class Agent:
    """The program, where it lies, and how `durward run` is told to start it."""

    def __init__(self, t, s):
        self.s, top = s, os.path.join(durward.clients_dir(), "agent-cli")
        self.program = os.path.join(top, "node_modules", "@mariozechner", "pi-coding-agent", "dist", "cli.js")
        own = os.path.join(durward.clients_dir(), "agents-node", "node_modules", "node", "bin", "node")
        self.node = own if os.path.exists(own) else shutil.which("node")
        if not os.path.exists(self.program) or not self.node:
            raise tap.Skip("the agent is not there: run tests/functional/clients/setup (it needs npm and Node 20)")
        self.binds = [top + ":/opt/agent:ro"]
        if not os.path.realpath(self.node).startswith("/usr/"):
            self.binds.append(os.path.dirname(os.path.realpath(self.node)) + ":/opt/node:ro")
            self.node = "/opt/node/node"
        os.makedirs(os.path.join(s.d.work, ".agent"))
        about = {"providers": {"ours": {
            "baseUrl": "https://api.openai.com/v1", "api": "openai-completions", "apiKey": "OPENAI_API_KEY",
            "compat": {"supportsDeveloperRole": False, "supportsReasoningEffort": False}, "models": [{"id": "gpt-test"}]}}}
        with open(os.path.join(s.d.work, ".agent", "models.json"), "w") as f:
            json.dump(about, f)

    def flags(self):
        out = ["-e", "PI_CODING_AGENT_DIR=%s/.agent" % self.s.d.work, "-e", "PI_OFFLINE=1", "-e", "TERM=xterm-256color"]
        for b in self.binds:
            out += ["--bind", b]
        return out

    def words(self, *more):
        return [self.node, "/opt/agent/node_modules/@mariozechner/pi-coding-agent/dist/cli.js", "--provider", "ours", "--model",
                "gpt-test", *more]


def made(t, s, asked, how):
    work = s.d.work
    with open(os.path.join(work, "door.txt")) as f:
        t.eq(f.read(), "kept\n", how + ": its command wrote into the directory that is bound")
    with open(os.path.join(work, "user.json")) as f:
        t.has(f.read(), "octo", how + ": GitHub answered it, with the injected key")
    result = [m for m in asked[-1]["messages"] if m["role"] == "tool"]
    t.ok(result and "200 403" in json.dumps(result), how + ": and was told what it may not do", "%r" % result)
    with open(os.path.join(work, "key.txt"), "rb") as f:
        key = f.read().strip()
    t.ok(key.startswith(b"dwd_") and key not in s.openai_secret, how + ": its key is a placeholder", "%r" % key)


def printed(t, s, agent, asked):
    r = s.d.run(agent.words("--no-session", "-p", "Keep the door."), agent.flags(), timeout=120)
    t.eq(r.returncode, 0, "without a terminal it works to the end") or t.diag(r.stdout + r.stderr)
    t.has(r.stdout, LAST, "and prints what the model said")
    made(t, s, asked, "printed")
    return (r.stdout + r.stderr).encode()


def full_screen(t, s, agent, asked):
    s.d.save()
    words = [durward.program(), "run", "-c", s.d.conf] + agent.flags() + ["--"] + agent.words("--no-session")
    c = Terminal(t, words, s.d.work, dict(s.d.env, TERM="xterm-256color"), rows=40, cols=120)
    t.ok(c.see("gpt-test", 60), "on a terminal it shows its interface", repr(c.out[-2000:]))
    c.type("Keep the door.")
    t.ok(c.see("door.", 20), "shows what is typed", repr(c.out[-2000:]))
    c.type("\r")
    t.ok(c.see(LAST, 60), "works, and shows what the model said", repr(c.out[-3000:]))
    made(t, s, asked, "full screen")
    c.type("\x04")
    t.eq(c.wait(), 0, "and ends when it is told to")
    return c.last + c.out


def main(t):
    for name, part in (("printed", printed), ("screen", full_screen)):
        s, asked = scene.Scene(t, name=name), []
        s.openai.handler = needs(s.openai_credential, model(asked))
        said = t.part(part, t, s, Agent(t, s), asked) or b""
        s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential)], [said], name, [s.d.work])


tap.run(main, timeout=300)
