"""How the APIs of vendors answer their own libraries: the least that makes the first call of each succeed, and a
streamed one."""
import json

WORDS = ("The door ", "is kept.")
TEXT = "".join(WORDS)


def events(conn, req, items, named=False, end=False):
    """A reply of server-sent events, each in a chunk of its own."""
    req.status = 200
    conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
    for item in items:
        name = "event: %s\n" % item["type"] if named else ""
        conn.chunk(("%sdata: %s\n\n" % (name, json.dumps(item))).encode())
    if end:
        conn.chunk(b"data: [DONE]\n\n")
    conn.chunk(b"")


def chat(req, conn):
    """What OpenAI's clients speak."""
    whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m",
             "system_fingerprint": "f", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    if not req.json().get("stream"):
        conn.reply(req, 200, dict(whole, choices=[{"index": 0, "finish_reason": "stop",
                                                   "message": {"role": "assistant", "content": TEXT}}]))
        return
    events(conn, req, [dict(whole, object="chat.completion.chunk", choices=[
        {"index": 0, "delta": {"role": "assistant", "content": w}, "finish_reason": None if w == WORDS[0] else "stop"}])
        for w in WORDS], end=True)


def gemini(req, conn):
    def part(text):
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}
    if "stream" in req.path:
        events(conn, req, [part(w) for w in WORDS])
    else:
        conn.reply(req, 200, part(TEXT))


def messages(req, conn):
    """What Anthropic's clients speak."""
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
             "stop_sequence": None, "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not req.json().get("stream"):
        conn.reply(req, 200, dict(whole, content=[{"type": "text", "text": TEXT}]))
        return
    events(conn, req, [{"type": "message_start", "message": whole},
                       {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}] +
           [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": w}} for w in WORDS] +
           [{"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
             "usage": {"output_tokens": 1}}, {"type": "message_stop"}], named=True)


def cohere(req, conn):
    if not req.json().get("stream"):
        conn.reply(req, 200, {"id": "c1", "finish_reason": "COMPLETE", "message": {
            "role": "assistant", "content": [{"type": "text", "text": TEXT}]}})
        return
    events(conn, req, [{"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": w}}}}
                       for w in WORDS], named=True)


def fixed(answer):
    return lambda req, conn: conn.reply(req, 200, answer)
