"""Doubles of the APIs of model vendors, written from their public documents: Anthropic's Messages, OpenAI's
Responses (server-sent events and WebSocket) and Chat Completions, Gemini's generateContent.

Each plays one task for a coding agent that nobody changed: read a file, edit it, run a command, end with a
streamed text. Which step is next follows from the results that the conversation holds, so the double keeps no
state; which tool does a step is chosen from those that the agent offers."""
import base64
import hashlib
import json
import re
import struct
import threading

from .origin import Closed

MARK = "Keep the door."
WORDS = ("The door", " is kept", ", and the", " hinge is oiled.")
LAST = "".join(WORDS)
READ = ("read", "read_file", "view", "readfile", "view_file", "file_editor")
EDIT = ("edit", "replace", "edit_file", "apply_patch", "str_replace", "editfile", "file_editor")
RUN = ("bash", "run_shell_command", "exec_command", "shell_command", "shell", "terminal", "execute_bash", "run_command",
       "exec")
PATCH = "*** Begin Patch\n*** Update File: door.txt\n@@\n-shut\n+kept\n*** End Patch\n"
BLOCKS = "*SEARCH/REPLACE block*"
BLOCK = "\n\ndoor.txt\n```\n<<<<<<< SEARCH\nshut\n=======\nkept\n>>>>>>> REPLACE\n```\n"
PATHS = ("file_path", "filepath", "filePath", "absolute_path", "path")
OLD, NEW = ("old_string", "oldString", "old_str", "oldText"), ("new_string", "newString", "new_str", "newText")


def instance(schema):
    """The least value that a JSON schema allows."""
    schema = schema or {}
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf"):
        if schema.get(several):
            return instance(schema[several][0])
    kind = schema.get("type")
    kind = (kind[0] if isinstance(kind, list) else kind or "object").lower()
    if kind == "object":
        wanted = schema.get("required", list(schema.get("properties", {})))
        return {k: instance(schema.get("properties", {}).get(k)) for k in wanted}
    return {"string": "door", "integer": 1, "number": 1, "boolean": False, "null": None, "array": []}[kind]


class Tool:
    """One that the agent offers: its name, its schema, and whether it takes text instead of JSON."""

    def __init__(self, name, schema, free=False, space=None):
        self.name, self.schema, self.free, self.space = name, schema or {}, free, space

    def filled(self, **known):
        """Arguments: what is known, by whichever of its names this tool has, and the least for the rest."""
        properties = self.schema.get("properties", {})
        out = {}
        for names, value in known.values():
            found = [n for n in names if n in properties]
            if not found:
                return None
            kind = properties[found[0]].get("type")
            out[found[0]] = ["bash", "-c", value] if kind == "array" and isinstance(value, str) else value
        for name in self.schema.get("required", []):
            if name not in out:
                out[name] = instance(properties.get(name))
        return out


class Call:
    def __init__(self, tool, arguments):
        self.name, self.free, self.space = tool.name, tool.free, tool.space
        self.arguments = arguments
        self.text = arguments if tool.free else json.dumps(arguments)


class Task:
    """What the agent is to do in a folder, and what came of each step. command: what it is to run."""

    def __init__(self, folder, command):
        self.file, self.command = folder + "/door.txt", command
        self.results, self.asked, self.offered, self.wrong = [], 0, [], []
        self.lock, self.made, self.known = threading.Lock(), 0, {}

    def heard(self, n):
        """The result of step number n, as the model got it."""
        return self.results[n] if n < len(self.results) else ""

    def number(self):
        with self.lock:
            self.made += 1
            return self.made

    def turn(self, offered, results, text, schema=None):
        """What a model says next: a Call, or text. results: those of this conversation, in order."""
        by_name = {t.name.lower(): t for t in offered}
        runs = [by_name[n] for n in RUN if n in by_name]
        if BLOCKS in text:
            return self._blocks(text)
        if not runs or MARK not in text:
            return json.dumps(instance(schema)) if schema else "A door"
        with self.lock:
            self.asked += 1
            self.offered = sorted(by_name)
            if len(results) > len(self.results):
                self.results = list(results)
        steps = (self._read, self._edit, self._run)
        if len(results) >= len(steps):
            return LAST
        return steps[len(results)](by_name) or self._shell(runs[0], steps[len(results)])

    def _code(self, tool, step):
        """For a tool that takes a program (JavaScript) which calls the others."""
        if step == self._edit:
            return Call(tool, "text(await tools.apply_patch(%s));" % json.dumps(PATCH))
        return Call(tool, "text(JSON.stringify(await tools.exec_command({cmd: %s})));" % json.dumps(self.line(step)))

    def line(self, step):
        """A step as a shell command."""
        return {self._read: "cat door.txt", self._edit: "sed -i s/shut/kept/ door.txt"}.get(step, self.command)

    def _blocks(self, text):
        """For an agent without tools, whose model writes the edit into its answer, and that runs a command after it."""
        ran = json.dumps(BLOCK.strip())[1:-1] in text
        with self.lock:
            self.asked += 1
            self.results = [text] * (3 if ran else 1)
        return LAST + ("" if ran else BLOCK)

    def _read(self, by_name):
        for name in READ:
            if name in by_name:
                more = {"command": (("command",), "view")} if name == "file_editor" else {}
                found = by_name[name].filled(path=(PATHS, self.file), **more)
                if found:
                    return Call(by_name[name], found)
        return None

    def _edit(self, by_name):
        for name in EDIT:
            tool = by_name.get(name)
            if not tool:
                continue
            if tool.free:
                return Call(tool, PATCH)
            more = {"command": (("command",), "str_replace")} if name == "file_editor" else {}
            for found in (tool.filled(path=(PATHS, self.file), old=(OLD, "shut"), new=(NEW, "kept"), **more),
                          tool.filled(path=(PATHS, self.file), edits=(("edits",), [{"oldText": "shut", "newText": "kept"}])),
                          tool.filled(patch=(("patchText", "input", "patch"), PATCH))):
                if found:
                    return Call(tool, found)
        return None

    def _run(self, by_name):
        return None

    def _shell(self, tool, step):
        if tool.free:
            return self._code(tool, step)
        line = self.line(step)
        return Call(tool, tool.filled(command=(("command", "cmd"), line)) or {"command": line})


def text_of(content):
    """The text of a message's content, whichever form it has."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content") or content.get("output") or "")
    return "\n".join(text_of(x) for x in content or [])


class Events:
    """A reply of server-sent events, each in a chunk of its own."""

    def __init__(self, req, conn, named):
        self.conn, self.named = conn, named
        req.status = 200
        conn.head(200, [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"),
                        ("Transfer-Encoding", "chunked")])

    def send(self, event):
        name = "event: %s\n" % event["type"] if self.named else ""
        self.conn.chunk(("%sdata: %s\n\n" % (name, json.dumps(event))).encode())

    def end(self, done=False):
        if done:
            self.conn.chunk(b"data: [DONE]\n\n")
        self.conn.chunk(b"")


def pieces(said):
    """A text as it is streamed."""
    return WORDS if said == LAST else (said,)


# ---- Anthropic's Messages ----

def anthropic(task):
    def turn(ask):
        offered = [Tool(x["name"], x.get("input_schema")) for x in ask.get("tools", []) if "name" in x]
        results = [text_of(b) for m in ask["messages"] if isinstance(m["content"], list)
                   for b in m["content"] if b.get("type") == "tool_result"]
        wish = ask.get("output_config", {}).get("format") or ask.get("output_format") or {}
        return task.turn(offered, results, json.dumps(ask["messages"]), wish.get("schema"))

    def block(said):
        if isinstance(said, Call):
            return {"type": "tool_use", "id": "toolu_%d" % task.number(), "name": said.name, "input": said.arguments}
        return {"type": "text", "text": said}

    def messages(req, conn):
        ask = req.json()
        said = turn(ask)
        content, why = block(said), "tool_use" if isinstance(said, Call) else "end_turn"
        whole = {"id": "msg_%d" % task.number(), "type": "message", "role": "assistant", "model": ask["model"],
                 "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
        if not ask.get("stream"):
            conn.reply(req, 200, dict(whole, content=[content], stop_reason=why))
            return
        e = Events(req, conn, True)
        e.send({"type": "message_start", "message": whole})
        if isinstance(said, Call):
            deltas = [{"type": "input_json_delta", "partial_json": said.text}]
            e.send({"type": "content_block_start", "index": 0, "content_block": dict(content, input={})})
        else:
            deltas = [{"type": "text_delta", "text": x} for x in pieces(said)]
            e.send({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for d in deltas:
            e.send({"type": "content_block_delta", "index": 0, "delta": d})
        e.send({"type": "content_block_stop", "index": 0})
        e.send({"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": {"output_tokens": 7}})
        e.send({"type": "message_stop"})
        e.end()

    def handler(req, conn):
        if req.path == "/v1/messages" and req.method == "POST":
            messages(req, conn)
        elif req.path == "/v1/messages/count_tokens":
            conn.reply(req, 200, {"input_tokens": 9})
        elif req.path == "/v1/models":
            conn.reply(req, 200, {"data": [{"type": "model", "id": "claude-sonnet-4-5", "display_name": "Sonnet",
                                            "created_at": "2026-01-01T00:00:00Z"}],
                                  "has_more": False, "first_id": "claude-sonnet-4-5", "last_id": "claude-sonnet-4-5"})
        else:
            conn.reply(req, 404, {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}})
    return handler


# ---- OpenAI's Responses and Chat Completions ----

def openai_tools(tools, space=None):
    """Tools of both APIs: functions, with or without a wrapper, free-form ones, and those in namespaces."""
    out = []
    for x in tools or []:
        f = x.get("function", x)
        if x.get("type") == "namespace":
            out += openai_tools(x.get("tools"), x["name"])
        elif "name" in f:
            out.append(Tool(f["name"], f.get("parameters"), x.get("type") == "custom", space))
    return out


def responses_events(task, ask):
    """The events of one response."""
    found = ask.get("input") or []
    found = found if isinstance(found, list) else [{"content": found}]
    before = task.known.get(ask.get("previous_response_id"), ([], "", []))
    results = before[0] + [text_of(x.get("output")) for x in found if str(x.get("type")).endswith("_call_output")]
    text = before[1] + json.dumps(found)
    offered = before[2] + openai_tools(ask.get("tools")) + [
        t for x in found if x.get("type") == "additional_tools" for t in openai_tools(x["tools"])]
    said = task.turn(offered, results, text, ask.get("text", {}).get("format", {}).get("schema"))
    n = task.number()
    whole = {"id": "resp_%d" % n, "object": "response", "created_at": 1, "model": ask.get("model", "m"),
             "status": "in_progress", "output": [], "error": None, "tools": [], "parallel_tool_calls": False,
             "tool_choice": "auto", "metadata": {}}
    task.known[whole["id"]] = (results, text, offered)
    yield {"type": "response.created", "response": whole}
    if isinstance(said, Call):
        kind, field = ("custom_tool_call", "input") if said.free else ("function_call", "arguments")
        item = {"type": kind, "id": "fc_%d" % n, "call_id": "call_%d" % n, "name": said.name, field: "", "status": "in_progress"}
        if said.space:
            item["namespace"] = said.space
        about = {"item_id": item["id"], "output_index": 0}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        event = "response.%s.delta" % ("custom_tool_call_input" if said.free else "function_call_arguments")
        yield dict(about, type=event, delta=said.text)
        yield dict(about, type=event.replace(".delta", ".done"), **{field: said.text})
        item = dict(item, status="completed", **{field: said.text})
    else:
        item = {"type": "message", "id": "item_%d" % n, "role": "assistant", "status": "in_progress", "content": []}
        about = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        yield dict(about, type="response.content_part.added", part=part)
        for x in pieces(said):
            yield dict(about, type="response.output_text.delta", delta=x)
        yield dict(about, type="response.output_text.done", text=said)
        part = dict(part, text=said)
        yield dict(about, type="response.content_part.done", part=part)
        item = dict(item, status="completed", content=[part])
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": dict(whole, status="completed", output=[item], usage={
        "input_tokens": 9, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16})}


def chat_turn(task, ask):
    results = [text_of(m.get("content")) for m in ask["messages"] if m.get("role") == "tool"]
    wish = ask.get("response_format", {}).get("json_schema", {}).get("schema")
    return task.turn(openai_tools(ask.get("tools")), results, json.dumps(ask["messages"]), wish)


def chat(task, req, conn):
    ask = req.json()
    said = chat_turn(task, ask)
    n = task.number()
    whole = {"id": "chatcmpl-%d" % n, "object": "chat.completion", "created": 1, "model": ask["model"]}
    usage = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
    if isinstance(said, Call):
        calls = [{"id": "call_%d" % n, "type": "function", "function": {"name": said.name, "arguments": said.text}}]
        message, why = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        deltas = [{"role": "assistant", "tool_calls": [dict(calls[0], index=0)]}]
    else:
        message, why = {"role": "assistant", "content": said}, "stop"
        deltas = [{"role": "assistant", "content": x} for x in pieces(said)]
    if not ask.get("stream"):
        conn.reply(req, 200, dict(whole, usage=usage, choices=[{"index": 0, "message": message, "finish_reason": why}]))
        return
    e = Events(req, conn, False)
    whole["object"] = "chat.completion.chunk"
    for d in deltas:
        e.send(dict(whole, choices=[{"index": 0, "delta": d, "finish_reason": None}]))
    e.send(dict(whole, choices=[{"index": 0, "delta": {}, "finish_reason": why}]))
    e.send(dict(whole, choices=[], usage=usage))
    e.end(done=True)


class Socket:
    """The server's end of a WebSocket (RFC 6455): texts in and out, pings answered."""

    def __init__(self, req, conn):
        key = req.get("sec-websocket-key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.conn = conn
        conn.close_after = True
        req.status = 101
        conn.send(("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   "Sec-WebSocket-Accept: %s\r\n\r\n" % base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()).encode())

    def frame(self, kind, data):
        n = len(data)
        size = bytes([n]) if n < 126 else struct.pack(">BH", 126, n) if n < 65536 else struct.pack(">BQ", 127, n)
        self.conn.send(bytes([0x80 | kind]) + size + data)

    def receive(self):
        """The next text, or None at the end."""
        text = b""
        while True:
            first, second = self.conn.read_exact(2)
            n = second & 127
            if n >= 126:
                n = int.from_bytes(self.conn.read_exact(2 if n == 126 else 8), "big")
            mask = self.conn.read_exact(4)
            data = bytearray(self.conn.read_exact(n))
            for i in range(4):
                data[i::4] = bytes(b ^ mask[i] for b in data[i::4])
            kind = first & 15
            if kind == 8:
                self.frame(8, bytes(data[:2]))
                return None
            if kind == 9:
                self.frame(10, bytes(data))
            elif kind in (0, 1, 2):
                text += data
                if first & 128:
                    return text


def responses_socket(task, req, conn):
    """Responses over a WebSocket: each `response.create` is answered by the events of one response."""
    s = Socket(req, conn)
    while True:
        text = s.receive()
        if text is None:
            return
        req.body += text[:(1 << 20) - len(req.body)]
        ask = json.loads(text)
        if ask.get("type") != "response.create":
            continue
        if ask.get("generate") is False:  # it only wants the connection and the prompt to be warm
            whole = {"id": "resp_%d" % task.number(), "object": "response", "created_at": 1, "model": ask.get("model"),
                     "status": "completed", "output": []}
            task.known[whole["id"]] = ([], json.dumps(ask.get("input")), openai_tools(ask.get("tools")))
            for kind in ("response.created", "response.completed"):
                s.frame(1, json.dumps({"type": kind, "response": whole}).encode())
            continue
        for event in responses_events(task, ask):
            s.frame(1, json.dumps(event).encode())


def openai(task):
    def responses(req, conn):
        ask = req.json()
        events = list(responses_events(task, ask))
        if not ask.get("stream"):
            conn.reply(req, 200, events[-1]["response"])
            return
        e = Events(req, conn, True)
        for i, event in enumerate(events):
            e.send(dict(event, sequence_number=i))
        e.end()

    def handler(req, conn):
        if req.path.endswith("/responses") and (req.get("upgrade") or "").lower() == "websocket":
            responses_socket(task, req, conn)
        elif req.path.endswith("/responses") and req.method == "POST":
            responses(req, conn)
        elif req.path.endswith("/chat/completions"):
            chat(task, req, conn)
        elif req.path.endswith("/models"):
            conn.reply(req, 200, {"object": "list", "data": [
                {"id": "gpt-5", "object": "model", "created": 1, "owned_by": "openai"}]})
        else:
            conn.reply(req, 404, {"error": {"message": "Not found", "type": "invalid_request_error", "code": None}})
    return handler


# ---- Gemini's generateContent ----

def chatgpt(task, account):
    """The same models behind a ChatGPT login."""
    inner = openai(task)

    def handler(req, conn):
        if req.path.endswith("/accounts/check"):
            found = {"id": account, "name": "Door", "structure": "personal", "plan_type": "pro", "is_deactivated": False,
                     "can_access_with_session": True, "is_fedramp_compliant_workspace": False,
                     "workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "NO_CONSTRAINT"}
            conn.reply(req, 200, {"accounts": [found], "account_ordering": [account], "default_account_id": account})
        elif req.path.endswith(("/plugins/installed", "/plugins/suggested/codex")):
            conn.reply(req, 200, {"plugins": [], "pagination": {"next_page_token": None}})
        else:
            inner(req, conn)
    return handler


def gemini_turn(task, ask):
    offered = [Tool(f["name"], f.get("parametersJsonSchema") or f.get("parameters"))
               for x in ask.get("tools", []) for f in x.get("functionDeclarations", [])]
    results = [json.dumps(p["functionResponse"].get("response")) for c in ask.get("contents", [])
               for p in c.get("parts", []) if "functionResponse" in p]
    wish = ask.get("generationConfig", {})
    return task.turn(offered, results, json.dumps(ask.get("contents")),
                     wish.get("responseJsonSchema") or wish.get("responseSchema"))


def gemini_answer(task, parts, end=True):
    out = {"content": {"role": "model", "parts": parts}, "index": 0}
    if end:
        out["finishReason"] = "STOP"
    return {"candidates": [out], "modelVersion": "gemini", "responseId": "r%d" % task.number(),
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16}}


def gemini(task):
    def handler(req, conn):
        verb = re.search(r"^/v1(?:beta|alpha)?/models/[^/:]+:(\w+)$", req.path)
        if not verb:
            conn.reply(req, 404, {"error": {"code": 404, "message": "Not found", "status": "NOT_FOUND"}})
            return
        if verb[1] == "countTokens":
            conn.reply(req, 200, {"totalTokens": 9})
            return
        said = gemini_turn(task, req.json())
        if isinstance(said, Call):
            parts = [{"functionCall": {"name": said.name, "args": said.arguments}}]
        else:
            parts = [{"text": x} for x in pieces(said)]
        if verb[1] == "generateContent":
            conn.reply(req, 200, gemini_answer(task, parts))
            return
        e = Events(req, conn, False)
        for i, p in enumerate(parts):
            e.send(gemini_answer(task, [p], i + 1 == len(parts)))
        e.end()
    return handler


def code_assist(task):
    """The same models behind a Google account: what Gemini CLI asks for when its user has logged in."""
    def handler(req, conn):
        verb = req.path.rpartition(":")[2]
        if verb == "loadCodeAssist":
            tier = {"id": "standard-tier", "name": "Standard", "isDefault": True}
            conn.reply(req, 200, {"currentTier": tier, "allowedTiers": [tier], "cloudaicompanionProject": "door-1"})
        elif verb in ("generateContent", "streamGenerateContent", "countTokens"):
            ask = req.json()
            turn(req, conn, ask.get("request", ask), verb)
        else:
            conn.reply(req, 200, {})

    def turn(req, conn, ask, verb):
        if verb == "countTokens":
            conn.reply(req, 200, {"totalTokens": 9})
            return
        said = gemini_turn(task, ask)
        parts = [{"functionCall": {"name": said.name, "args": said.arguments}}] if isinstance(said, Call) else [
            {"text": x} for x in pieces(said)]
        if verb == "generateContent":
            conn.reply(req, 200, {"response": gemini_answer(task, parts)})
            return
        e = Events(req, conn, False)
        for i, p in enumerate(parts):
            e.send({"response": gemini_answer(task, [p], i + 1 == len(parts))})
        e.end()
    return handler


__all__ = ["Closed", "Task", "anthropic", "openai", "chatgpt", "gemini", "code_assist", "LAST", "MARK"]
