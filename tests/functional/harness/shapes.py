"""Handlers shaped like the services that agents call: OpenAI chat completions, GitHub REST; events of Amazon's streams."""
import json
import struct
import time
import zlib

WORDS = ["The", " door", " is", " kept", "."]


def openai(delay=0.0):
    """/v1/chat/completions (plain and streamed) and /v1/models."""

    def chat(req, conn):
        ask = req.json()
        base = {"id": "chatcmpl-1", "created": 1700000000, "model": ask.get("model", "m")}
        if not ask.get("stream"):
            conn.reply(req, 200, dict(base, object="chat.completion", choices=[
                {"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "".join(WORDS)}}],
                usage={"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6}))
            return
        req.status = 200
        conn.head(200, [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"),
                        ("Transfer-Encoding", "chunked")])
        for i, word in enumerate(WORDS):
            delta = {"content": word}
            if i == 0:
                delta["role"] = "assistant"
            event = dict(base, object="chat.completion.chunk", choices=[
                {"index": 0, "delta": delta, "finish_reason": None}])
            conn.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
            time.sleep(delay)
        last = dict(base, object="chat.completion.chunk", choices=[
            {"index": 0, "delta": {}, "finish_reason": "stop"}])
        conn.chunk(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
        conn.chunk(b"")

    def handler(req, conn):
        if req.method == "POST" and req.path == "/v1/chat/completions":
            chat(req, conn)
        elif req.path == "/v1/models":
            conn.reply(req, 200, {"object": "list", "data": [
                {"id": "gpt-test", "object": "model", "created": 1, "owned_by": "test"}]})
        else:
            conn.reply(req, 404, {"error": {"message": "no such route", "type": "invalid"}})
    return handler


def github():
    """A little of the GitHub REST interface, with state enough for issues."""
    issues = [{"number": 1, "title": "first", "state": "open", "user": {"login": "octo"}}]

    def handler(req, conn):
        path, method = req.path, req.method
        limits = [("X-RateLimit-Limit", "5000"), ("X-OAuth-Scopes", "repo")]
        if path == "/user":
            conn.reply(req, 200, {"login": "octo", "id": 1}, limits)
        elif path in ("/repos/acme/x", "/repos/acme/site") and method in ("GET", "HEAD"):
            conn.reply(req, 200, {"id": 7, "name": "x", "full_name": "acme/x",
                                  "private": True}, limits)
        elif path == "/repos/acme/x/issues" and method == "GET":
            conn.reply(req, 200, issues, limits)
        elif path == "/repos/acme/x/issues" and method == "POST":
            made = dict(req.json(), number=len(issues) + 1, state="open")
            issues.append(made)
            conn.reply(req, 201, made, limits)
        elif path == "/gists" and method == "POST":
            conn.reply(req, 201, {"id": "g1", "public": True}, limits)
        else:
            conn.reply(req, 404, {"message": "Not Found"}, limits)
    return handler


def echo(req, conn):
    """Everything it was asked, as JSON (for origins without a credential)."""
    conn.reply(req, 200, {"method": req.method, "target": req.target, "headers": req.headers,
                          "length": req.body_len, "sha256": req.sha256})


def amazon_event(kind, payload):
    """One event of Amazon's binary streams: lengths, a checksum, fields, a payload, a checksum."""
    def field(name, value):
        return struct.pack(">B", len(name)) + name + b"\x07" + struct.pack(">H", len(value)) + value
    heads = field(b":event-type", kind.encode()) + field(b":content-type", b"application/json") + field(b":message-type", b"event")
    body = json.dumps(payload).encode()
    begin = struct.pack(">II", 16 + len(heads) + len(body), len(heads))
    text = begin + struct.pack(">I", zlib.crc32(begin)) + heads + body
    return text + struct.pack(">I", zlib.crc32(text))
