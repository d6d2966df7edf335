#!/usr/bin/python3 -B
"""`request_usage` of a rule: a stream of OpenAI's chat is asked what it takes, though its client does not ask, and what
that adds is taken out of the reply: the client has, byte for byte, what the model sends to who does not ask, and the record
has the tokens. The model is ours, after OpenAI's document; the client that others wrote is OpenAI's own SDK."""
import base64
import concurrent.futures
import hashlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2, scene, tap  # noqa: E402

HOST, PATH = "model.example.com", "/v1/chat/completions"
JSON = "Content-Type: application/json\r\n"
TOOK = {"prompt_tokens": 1234, "completion_tokens": 56, "total_tokens": 1290, "prompt_tokens_details": {"cached_tokens": 7}}
ASK = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "stream_options {\"include_usage\":false}"}]}
KNOWN = (1234, 56, 7)


def stream(asked, end="\n", long=False):
    """What the model sends: with its usage if it was asked for it."""
    one = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    texts = ["The door", "\"usage\":null,\"choices\":[]", " is\u2028kept"] + (["x" * 20000] if long else [])
    chunks = [dict(one, choices=[], prompt_filter_results=[{"prompt_index": 0}])]
    chunks += [dict(one, choices=[{"index": 0, "delta": {"content": x}, "finish_reason": None}]) for x in texts]
    chunks.append(dict(one, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    if asked:
        chunks = [dict(x, usage=None) for x in chunks]
        chunks.append(dict(one, choices=[], usage=TOOK))
    said = [": OPENROUTER PROCESSING"] + ["data: " + json.dumps(x, separators=(",", ":")) for x in chunks] + ["data: [DONE]"]
    return "".join(x + end * 2 for x in said).encode()


def unasked(how):
    text = stream(False, how.get("end", "\n"))
    return text[:len(text) - how.get("short", 0)]


class Model:
    """`piece` bytes at a time; says its usage to who asks. `asked`: the bodies that came."""

    def __init__(self):
        self.asked = []

    def __call__(self, req, conn):
        how = json.loads(req.get("X-How") or "{}")
        body = json.loads(req.body)
        self.asked.append(req.body)
        if not body.get("stream"):
            text = json.dumps({"choices": [], "usage": TOOK}).encode()
            conn.head(200, [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
            conn.send(text)
            return
        options = body.get("stream_options")
        wants = isinstance(options, dict) and options.get("include_usage") is True
        text, piece = stream(wants, how.get("end", "\n"), how.get("long")), how.get("piece", 1 << 20)
        text = text[:len(text) - how.get("short", 0)]
        if how.get("length"):
            conn.head(200, [("Content-Type", "text/event-stream"), ("Content-Length", str(len(text)))])
            conn.send(text)
            return
        conn.head(200, [("Content-Type", "text/event-stream; charset=utf-8"), ("Transfer-Encoding", "chunked")])
        for i, at in enumerate(range(0, len(text), piece)):
            if i == how.get("cut"):
                raise ConnectionResetError
            time.sleep(how.get("slow", 0))
            conn.chunk(text[at:at + piece])
        conn.chunk(b"")


def call(gate, ask=ASK, how=None, more="", rule="asks", i=0):
    body = ask if isinstance(ask, bytes) else json.dumps(ask).encode()
    return gate.get(HOST, "/%s/%d%s" % (rule, i, PATH), JSON + more + "X-How: %s\r\n" % json.dumps(how or {}), "POST", body=body)


def tokens(s, rule, i, kind="completed"):
    """Of the end record of that request: (in, out, cached), or what it says instead."""
    path = "/%s/%d%s" % (rule, i, PATH)

    def got():
        begun = {r["id"] for r in s.d.kinds("admitted") if r["path"] == path}
        return next((r for r in s.d.kinds(kind) if r["id"] in begun), None)
    tap.wait_for(got, 4, 0.1)
    r = got() or {}
    return r.get("usage") or (r.get("tokens_in"), r.get("tokens_out"), r.get("tokens_cached", 0))


def as_unasked(t, s, gate, model):
    """Whatever its pieces, its line ends and its framing."""
    hows = [{"piece": n} for n in (1, 2, 3, 7, 64, 1000)] + [{"end": "\r\n"}, {"end": "\r\n", "piece": 1}, {"end": "\r", "piece": 5},
                                                            {"piece": 60, "slow": 0.01}, {"length": True}, {"short": 1},
                                                            {"short": 9}]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda x: call(gate, how=x[1], i=100 + x[0]), enumerate(hows)))
    for i, (how, r) in enumerate(zip(hows, got)):
        t.ok(r.status == 200 and r.body == unasked(how), "%s: as the model sends it to who does not ask" % how, r.body[-400:])
        t.eq(tokens(s, "asks", 100 + i), KNOWN, "and its record has what it took")
    t.ok(all(json.loads(b)["stream_options"] == {"include_usage": True} for b in model.asked), "the model was asked each time")
    detail = [r["detail"] for r in s.d.kinds("admitted") if r["path"].startswith("/asks/100/")]
    t.ok(detail and all("usage requested" in x for x in detail), "which the record says", detail)
    with h2.H2(gate, HOST, timeout=60) as c:
        stream_id = c.open(c.fields("/asks/90" + PATH, "POST") + [("content-type", "application/json"), ("x-how", json.dumps({"piece": 9}))], end=False)
        c.frame(0, 1, stream_id, json.dumps(ASK).encode())
        a = c.answer(stream_id, 60)
    t.ok(a.status == 200 and a.body == stream(False), "over HTTP/2, too", a.body[-400:])
    r = call(gate, how={"long": True}, i=91)
    texts = [json.loads(x[6:]) for x in r.body.decode().split("\n\n") if x.startswith("data: {")]
    plain = [json.loads(x[6:]) for x in stream(False, long=True).decode().split("\n\n") if x.startswith("data: {")]
    t.ok([{k: v for k, v in x.items() if k != "usage"} for x in texts] == plain and sum("usage" in x for x in texts) == 1,
         "an event of 20,000 bytes goes on as it came, and nothing is lost", r.body[-300:])


def bodies(t, s, gate, model):
    """The question goes in where it is not there; nothing else of the body changes."""
    for i, (ask, options) in enumerate((
            (dict(ASK, stream_options={}), {"include_usage": True}),
            (dict(ASK, stream_options=None), {"include_usage": True}),
            (dict(ASK, stream_options={"include_usage": False}), {"include_usage": True}),
            (dict(ASK, stream_options={"include_usage": None, "include_obfuscation": False}), {"include_usage": True, "include_obfuscation": False}),
            (dict(ASK, stream_options={"include_obfuscation": False}), {"include_usage": True, "include_obfuscation": False}))):
        r = call(gate, ask, i=200 + i)
        t.ok(r.status == 200 and r.body == stream(False), "%s: as it would be unasked" % ask["stream_options"], r.body[-300:])
        t.eq(json.loads(model.asked[-1]), dict(ask, stream_options=options), "and the model had the rest as it was")
    spaced = b" \n{ \"stream\" :true, \"model\":\"m\",\"messages\":[ 1.50, \"\\u00e9\" ] }\n"
    call(gate, spaced, i=210)
    t.eq(model.asked[-1], spaced.replace(b"{", b"{\"stream_options\":{\"include_usage\":true},", 1), "byte for byte")


def left_alone(t, s, gate, model):
    """Who asks by himself has the usage; signed bodies, other calls and other rules are left as they are."""
    asks = dict(ASK, stream_options={"include_usage": True})
    r = call(gate, asks, i=300)
    t.ok(r.body == stream(True) and json.loads(model.asked[-1]) == asks, "a client that asks has its usage", r.body[-300:])
    t.eq(tokens(s, "asks", 300), KNOWN, "and its record, too")
    text = json.dumps(ASK).encode()
    digest = "Content-Digest: sha-256=:%s:\r\n" % base64.b64encode(hashlib.sha256(text).digest()).decode()
    for i, (what, ask, more, rule) in enumerate((
            ("a body with a digest", ASK, digest, "asks"),
            ("an older digest", ASK, "Digest: SHA-256=x\r\n", "asks"),
            ("a signature", ASK, "Signature-Input: sig=(\"@method\");keyid=\"k\"\r\n", "asks"),
            ("a rule that does not say so", ASK, "", "plain"),
            ("options that are none", dict(ASK, stream_options=[1]), "", "asks"),
            ("a key that some read as the same", dict(ASK, Stream_Options={}), "", "asks"))):
        before = json.dumps(ask).encode()
        r = call(gate, before, more=more, rule=rule, i=310 + i)
        t.ok(r.status == 200 and model.asked[-1] == before and r.body == stream(False), "%s: goes as it is" % what, r.status, r.body[-300:])
        t.eq(tokens(s, rule, 310 + i), "unknown", "and what it took is unknown")
    whole = dict(ASK, stream=False)
    r = call(gate, whole, i=320)
    t.ok(json.loads(model.asked[-1]) == whole and json.loads(r.body)["usage"] == TOOK, "a call that does not stream goes as it is", r.body)


def cut(t, s, gate):
    """Wherever the model ends it: the client has a beginning of what it would have unasked."""
    text, wrong, n = stream(True), [], 0
    for i, at in enumerate(range(1, len(text) // 40, 3)):
        r = call(gate, how={"piece": 40, "cut": at}, i=400 + i)
        n += 1
        if not getattr(r, "truncated", False) or not stream(False).startswith(r.body):
            wrong.append((at, r.status, r.body[-100:]))
    t.ok(n > 5 and not wrong, "cut in %d places: a beginning of that, and an end that is seen" % n, *wrong[:4])


def budget(t, s, gate):
    """Tokens are booked as they were taken, not as they were guessed."""
    first, second = call(gate, dict(ASK, max_tokens=10), rule="booked", i=1), call(gate, dict(ASK, max_tokens=10), rule="booked", i=2)
    t.eq((first.status, second.status, second.code), (200, 429, "budget"), "1,290 tokens of a budget of 1,200 end it")


SDK = """
import sys, openai
c = openai.OpenAI(base_url="https://%s/asks/500/v1", api_key="x", max_retries=0)
said = list(c.chat.completions.create(model="m", stream=True, messages=[{"role": "user", "content": "?"}]))
print("".join(x.choices[0].delta.content or "" for x in said if x.choices))
print([x.usage for x in said if x.usage], ["usage" in x.model_fields_set for x in said])
""" % HOST


def by_sdk(t, s):
    python = os.path.join(durward.clients_dir(), "sdks", "bin", "python")
    if not os.path.exists(python):
        t.skip("OpenAI's own SDK", "it is not there: run tests/functional/clients/setup")
        return
    box = durward.Sandbox(s.d, binds=durward.client_binds("sdks"))
    status, out, err = box.sh("%s -B -" % python, stdin=SDK, timeout=90)
    lines = out.splitlines()
    t.ok(status == 0 and lines and lines[0].startswith("The door"), "the SDK reads the stream", out, err[-600:])
    t.ok(status == 0 and lines[-1].startswith("[] [False"), "and sees no usage", out)
    t.eq(tokens(s, "asks", 500), KNOWN, "the record has it")
    box.close()


def main(t):
    h2.needed()
    s, model = scene.Scene(t), Model()
    s.add(HOST, model)
    asks = {"api": "openai", "request_usage": True}
    for name, llm, more in (("asks", asks, {}), ("plain", "openai", {}), ("booked", asks, {"budget": {"tokens": "1200/h"}})):
        s.rules.append(dict({"allow": "%s/%s/**" % (HOST, name), "llm": llm}, **more))
    at = s.listener()
    s.d.serve()
    gate = s.gate(at, timeout=60)
    t.part(as_unasked, t, s, gate, model)
    t.part(bodies, t, s, gate, model)
    t.part(left_alone, t, s, gate, model)
    t.part(cut, t, s, gate)
    t.part(budget, t, s, gate)
    t.part(by_sdk, t, s)
    s.clean((), "usage")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=200)
