"""OpenAI's responses and chat on loopback, for whole programs of agents: two commands or patches, then what they said."""
import http.server
import itertools
import json
import threading

KEY = "sk-canary-" + "k" * 24
# In two parts, so that no command is what it looks for.
LOOK = "pwd; p=sk-cana; echo found: $(grep -rlaF ${p}ry- /workspace /tmp /proc/[0-9]*/environ 2>/dev/null | wc -l)"
COMMANDS = (LOOK, "echo hello from inside | tee hello.txt; exit 7")
# What a command is called by in the tools of each framework, and that in its arguments.
SHELLS = {"sh": "command", "exec_command": "cmd", "mastra_workspace_execute_command": "command", "sandbox_shell": "command",
          "execute": "command"}
# For agents that write programs (smolagents).
COUNT = itertools.count(1)  # of two messages with one id a graph keeps one
PROGRAM = "Thought: one step is enough.\n<code>\nimport os\nfinal_answer(os.getcwd())\n</code>"


def call(name, n):
    """The next call of a tool: a command, or, where none can be run, a file."""
    words = {SHELLS[name]: COMMANDS[n]} if name else {"file_path": "/notes.md", "content": "remember the door"}
    return {"name": name or "write_file", "arguments": json.dumps(words)}


class Model(http.server.BaseHTTPRequestHandler):
    """The server has keys (Authorization), kinds (were the tools of OpenAI's own?), heard (what commands said)."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.keys.add(self.headers.get("authorization"))
        if "messages" in asked:
            self.answer(self.chat(asked))
            return
        last = max(i for i, x in enumerate(asked["input"]) if x.get("role") == "user")
        done = [x for x in asked["input"][last:] if str(x.get("type", "")).endswith("_output")]
        tools = asked.get("tools") or []
        own = not any(x["type"] == "function" for x in tools)
        self.server.heard.append(json.dumps(done))
        if tools:
            self.server.kinds.add(own)
        item = self.said("nothing to do") if not tools else self.own(len(done), json.dumps(done)) if own else self.function(last, len(done), json.dumps(done), self.shell_of(tools))
        self.answer({"id": "resp_%d" % next(COUNT), "object": "response", "created_at": 1, "model": asked["model"],
                     "status": "completed", "output": [item], "parallel_tool_calls": False, "usage": {
                         "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                         "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                         "output_tokens_details": {"reasoning_tokens": 0}}})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def shell_of(tools):
        """None where there is nothing that runs commands."""
        return next((n for n in (x.get("name") or x.get("function", {}).get("name") for x in tools) if n in SHELLS), None)

    def chat(self, asked):
        last = max(i for i, x in enumerate(asked["messages"]) if x["role"] == "user")
        done = [x["content"] for x in asked["messages"][last:] if x["role"] == "tool"]
        message = {"role": "assistant", "content": None}
        self.server.heard.append(json.dumps(done))
        name = self.shell_of(asked.get("tools", ()))
        if not asked.get("tools"):
            message["content"] = PROGRAM
        elif len(done) == (2 if name else 1):
            message["content"] = json.dumps(done)
        else:
            message["tool_calls"] = [{"id": "c%d-%d" % (last, len(done)), "type": "function", "function": call(name, len(done))}]
        return {"id": "chat_%d" % next(COUNT), "object": "chat.completion", "created": 1, "model": asked["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop" if message["content"] else "tool_calls"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}

    @staticmethod
    def said(text):
        return {"type": "message", "id": "msg_%d" % next(COUNT), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}

    def own(self, n, outputs):
        if n == 0:
            return {"type": "shell_call", "id": "sh_1", "call_id": "c1", "status": "completed",
                    "action": {"commands": [LOOK, "exit 7"], "timeout_ms": 5000, "max_output_length": 4000}}
        if n == 1:
            return {"type": "apply_patch_call", "id": "ap_1", "call_id": "c2", "status": "completed",
                    "operation": {"type": "create_file", "path": "hello.txt", "diff": "+hello from inside\n"}}
        return self.said(outputs)

    def function(self, last, n, outputs, name):
        if n == (2 if name else 1):
            return self.said(outputs)
        return dict({"type": "function_call", "id": "fc_%d" % next(COUNT), "call_id": "c%d-%d" % (last, n), "status": "completed"}, **call(name, n))


class Double:
    """`with Double() as model`: its address is model.url."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.server.keys, self.server.kinds, self.server.heard = set(), set(), []
        self.url = "http://127.0.0.1:%d/v1" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def keys(self):
        return self.server.keys

    @property
    def kinds(self):
        return self.server.kinds

    @property
    def heard(self):
        return list(self.server.heard)
