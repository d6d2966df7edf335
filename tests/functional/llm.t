#!/usr/bin/python3 -B
"""`llm`: calls to models as facts. What a rule allows of them; what replies say they took, in records, metrics and
budgets of tokens and money; 64 calls at once; and the vendors' own libraries, whose counts are the record's."""
import concurrent.futures
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, durward, origin, scan, scene, shapes, tap  # noqa: E402

HOST, CHAT = "model.example.com", "/v1/chat/completions"
JSON = "Content-Type: application/json\r\n"
RULES = {
    "free": {"llm": "openai"},
    "few": {"llm": {"api": "openai", "models": ["gpt-4*"], "max_tokens": 100}},
    "tools": {"llm": "openai", "server_tools": []},
    "many": {"llm": "openai", "budget": {"tokens": "20000/h"}},
    "less": {"llm": "openai", "budget": {"tokens": "5000/h"}},
    "unsaid": {"llm": "openai", "budget": {"tokens": "3000/h"}},
    "failing": {"llm": "openai", "budget": {"tokens": "2000/h"}},
    "cut": {"llm": "openai", "budget": {"tokens": "3000/h"}},
    "money": {"llm": "openai", "budget": {"cost": "0.01/h"}},
    "dear": {"llm": "openai", "budget": {"cost": "0.01/h"}},
    "each": {"llm": "openai", "budget": {"tokens": "1500/h per sandbox"}},
    "seen": {"llm": "openai", "budget": {"tokens": "20000/h"}},
    "words": {"llm": "openai", "budget": {"tokens": "20000/h"}},
    "hidden": {"llm": ["openai", "gemini"], "budget": {"tokens": "20000/h"}},
    "deployed": {"llm": {"api": "azure", "models": ["cheap"]}},
    "plain": {"llm": "openai", "budget": {"tokens": "1500/h"}},
}
PRICES = [{"model": "gpt-4*", "in": 2.5, "out": 10, "cached": "1.25"}]


def usage(taken, cached=0):
    return {"prompt_tokens": taken[0], "completion_tokens": taken[1], "total_tokens": sum(taken),
            "prompt_tokens_details": {"cached_tokens": cached}}


class Model:
    """An origin that says that a call took what the call says that it takes."""

    def __init__(self):
        self.go = threading.Event()
        self.go.set()

    def __call__(self, req, conn):
        self.go.wait(30)
        ask = json.loads(req.body or b"{}")
        taken, how = ask.get("takes", [7, 3]), ask.get("how")
        if how == "fails":
            conn.reply(req, 429, {"error": "slower"})
        elif how in ("stream", "silent", "cut"):
            conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
            for _ in range(ask.get("words", 1)):
                conn.chunk(b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % (b"hi" * ask.get("long", 1)))
            if how == "cut":
                raise ConnectionResetError
            if how == "stream":
                conn.chunk(("data: " + json.dumps({"choices": [], "usage": usage(taken, 2)}) + "\n\n").encode())
            conn.chunk(b"data: [DONE]\n\n")
            conn.chunk(b"")
        else:
            conn.reply(req, 200, {"choices": [], "usage": usage(taken)})


def call(gate, name, path=CHAT, **body):
    body = dict({"model": "gpt-4o", "max_tokens": 1000 - 20}, **body)
    return gate.get(HOST, "/%s%s" % (name, path), JSON, "POST", body=json.dumps(body).encode())


def end_of(s, reply_or_path, kind="completed"):
    (one,) = s.d.wait_records(1, "admitted", path=reply_or_path)
    return s.d.wait_records(1, kind, id=one["id"])[0], one


def facts(t, s, gate):
    r = call(gate, "free", "/facts" + CHAT, stream=True, how="stream", takes=[12, 34], tools=[{"type": "function"}])
    t.eq(r.status, 200, "a streamed call")
    end, begin = end_of(s, "/free/facts" + CHAT)
    t.eq([end.get(k) for k in ("model", "tokens_in", "tokens_cached", "tokens_out", "usage")],
         ["gpt-4o", 12, 2, 34, None], "its end record has what the reply says")
    t.eq(end.get("cost_millionths"), 25 + 3 + 340, "and what it costs, by the table")
    t.eq(begin.get("detail"), "model gpt-4o, 1 tools, streamed, at most 980 tokens", "the beginning has what was asked")
    call(gate, "free", "/unpriced" + CHAT, model="other")
    end, _ = end_of(s, "/free/unpriced" + CHAT)
    t.eq([end.get(k) for k in ("model", "tokens_in", "tokens_out", "cost_millionths")], ["other", 7, 3, None],
         "a model without a price has tokens and no cost")
    call(gate, "free", "/silent" + CHAT, how="silent")
    end, _ = end_of(s, "/free/silent" + CHAT)
    t.eq([end.get(k) for k in ("model", "tokens_in", "usage")], ["gpt-4o", None, "unknown"],
         "a stream that does not say it: unknown")
    r = gate.get(HOST, "/free/v1/models")
    t.eq(r.status, 200, "a list of models is no call")


def limits(t, s, gate):
    for what, status, code, body in (
            ("an allowed model", 200, None, {"max_tokens": 100}),
            ("another", 403, "llm", {"max_tokens": 100, "model": "gpt-5"}),
            ("too many tokens", 403, "llm", {"max_tokens": 101}),
            ("no maximum", 403, "llm", {"max_tokens": None}),
            ("another in its place", 403, "llm", {"max_tokens": 100, "models": ["o1"]}),
            ("another where that refuses", 403, "llm", {"max_tokens": 100, "fallbacks": [{"model": "o1"}]}),
            ("an allowed one where that refuses", 200, None, {"max_tokens": 100, "fallbacks": [{"model": "gpt-4o-mini"}]}),
            ("a model that is named in two ways", 400, "body_ambiguous", {"max_tokens": 100, "MODEL": "gpt-5"})):
        r = call(gate, "few", **body)
        t.eq((r.status, r.code), (status, code), what)
    r = call(gate, "few", "/v1/batches", max_tokens=9)
    t.eq((r.status, r.code), (403, "llm"), "what is no known call, where calls are limited")
    r = call(gate, "tools", tools=[{"type": "web_search"}])
    t.eq((r.status, r.code), (403, "server_tool"), "a tool of the provider's")
    (record,) = s.d.wait_records(1, "denied", code="llm", detail="model gpt-5")
    t.eq(record["path"], "/few" + CHAT, "a refusal's record names the model")


def counted(replies):
    return (sum(r.status == 200 for r in replies), sum((r.status, r.code) == (429, "budget") for r in replies))


def at_once(t, s, gates):
    """Each call is estimated at 1,000 tokens, a little less; none is over before all were asked."""
    s.model.go.clear()
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        calls = [pool.submit(call, gates[i % len(gates)], "many", max_tokens=990, takes=[100, 300]) for i in range(64)]
        t.ok(tap.wait_for(lambda: sum(c.done() for c in calls) >= 44, 20), "those beyond the budget are refused at once")
        s.model.go.set()
        replies = [c.result(30) for c in calls]
    t.eq(counted(replies), (20, 44) if counted(replies)[0] == 20 else (19, 45), "64 at once: as many as the budget holds")
    t.eq(len([q for q in s.origin.requests if q.path == "/many" + CHAT]), counted(replies)[0],
         "the origin heard of these alone")
    tap.wait_for(lambda: len(s.d.kinds("completed", model="gpt-4o")) >= counted(replies)[0], 5)
    left = 20000 - 400 * counted(replies)[0]
    n = 0
    while call(gates[0], "many", max_tokens=990, takes=[100, 300]).status == 200:
        n += 1
    t.ok(abs(n - (1 + (left - 1010) // 400)) <= 1, "what they did not take came back", "%d, %d left" % (n, left))
    refused = call(gates[0], "many", max_tokens=990)
    t.ok(int(refused.get("retry-after") or 0) > 3000, "with Retry-After", refused.get("retry-after"))
    (record,) = s.d.wait_records(1, "denied", id=refused.id)
    t.eq(record.get("detail"), "tokens 20000/h", "and the record names the budget")


def settled(t, s, gate):
    t.eq(call(gate, "less", max_tokens=100, takes=[3000, 1900]).status, 200, "a call that takes more than it was estimated")
    t.eq(call(gate, "less", max_tokens=200).status, 429, "is charged in full")
    t.eq([call(gate, "unsaid", how="silent").status for _ in range(2)], [200, 200], "a reply that says nothing")
    t.eq(call(gate, "unsaid", max_tokens=1100).status, 429, "is charged as estimated")
    t.eq([call(gate, "failing", max_tokens=1500, how="fails").status for _ in range(4)], [429] * 4, "calls that fail")
    t.eq(call(gate, "failing", max_tokens=1500).status, 200, "take nothing")
    try:
        call(gate, "cut", max_tokens=1900, how="cut")
    except client.Ended:
        pass
    end, _ = end_of(s, "/cut" + CHAT, "aborted")
    t.eq(end.get("usage"), "unknown", "a reply that is cut")
    t.eq(call(gate, "cut", max_tokens=1900).status, 429, "is charged as estimated")


def seen(t, s, gate):
    """What a reply does not say is charged by what came of it, where that is more than the estimate."""
    t.eq(call(gate, "seen", max_tokens=10, how="silent", words=20, long=2000).status, 200, "an answer of 80,000 letters")
    t.eq(call(gate, "seen", max_tokens=10).status, 429, "is charged by what came of it")
    words = "word\n" * 20000
    r = call(gate, "words", max_tokens=10, messages=[{"role": "user", "content": words}])
    t.eq((r.status, r.code), (429, "budget"), "a text without a blank counts as any")


def hidden(t, s, gate):
    """What keeps a reply from saying what it took is refused where tokens have a budget."""
    gemini = {"contents": []}
    for what, status, name, path, body in (
            ("a background answer", 403, "hidden", "/v1/responses", {"background": True}),
            ("the same, where no budget holds", 200, "free", "/v1/responses", {"background": True}),
            ("a reply without its usage", 403, "hidden", "/v1/models/g:generateContent?fields=candidates", gemini),
            ("by another spelling", 403, "hidden", "/v1/models/g:generateContent?a=b&%24Fields=candidates", gemini),
            ("a plain query", 200, "hidden", "/v1/models/g:generateContent?alt=json&fieldset=1", gemini)):
        r = call(gate, name, path, **body)
        t.eq((r.status, r.code if status == 403 else "llm"), (status, "llm"), what)
    r = gate.get(HOST, "/hidden/v1/models/g:generateContent", JSON + "X-Goog-FieldMask: candidates\r\n", "POST",
                 body=json.dumps(gemini).encode())
    t.eq((r.status, r.code), (403, "llm"), "by a header")
    for path in ("%64eployments/dear", "Deployments/dear", "deployments/dear/extensions", "deployments/dear"):
        r = call(gate, "deployed", "/openai/%s/chat/completions" % path, model="cheap")
        t.eq((r.status, r.code), (403, "llm"), "a deployment at %s" % path)
    t.eq(call(gate, "deployed", "/openai/deployments/cheap/chat/completions", model="cheap").status, 200, "one that is allowed")


def dear(t, s, gate):
    """What a call costs beyond its model's price nobody knows: where money has a budget it is refused."""
    field = "X-Vertex-AI-LLM-Shared-Request-Type: %s\r\n"
    for what, name, passes, fields, body in (
            ("a dearer tier", "dear", False, "", {"service_tier": "priority"}),
            ("a faster answer", "dear", False, "", {"speed": "fast"}),
            ("a dearer tier by a field", "dear", False, field % "priority", {}),
            ("a plain one and a dearer one by a field", "dear", False, field % "standard" + field % "priority", {}),
            ("one that the provider picks", "dear", False, "", {"fallbacks": "default"}),
            ("a plain tier", "dear", True, field % "standard", {"service_tier": "flex", "max_tokens": 1}),
            ("a dearer one, where tokens alone have a budget", "hidden", True, field % "priority", {"service_tier": "priority"})):
        r = gate.get(HOST, "/" + name + CHAT, JSON + fields, "POST", body=json.dumps(dict({"model": "gpt-4o"}, **body)).encode())
        t.eq((r.status, r.code), (200, None) if passes else (403, "llm"), what)
        if not passes:
            (record,) = s.d.wait_records(1, "denied", id=r.id)
            t.ok(record.get("detail") in ("no price of default", "money has a budget here, and %s sets another price" % (
                list(body) + ["x-vertex-ai-llm-shared-request-type"])[0]), "which its record says", str(record.get("detail")))


def money(t, s, gate):
    r = call(gate, "money", model="other")
    t.eq((r.status, r.code), (403, "llm"), "a model without a price, where money has a budget")
    (record,) = s.d.wait_records(1, "denied", id=r.id)
    t.eq(record.get("detail"), "no price of other", "which the record says")
    t.eq(call(gate, "money", max_tokens=2000).status, 429, "a call that is estimated beyond the budget")
    t.eq(call(gate, "money", max_tokens=900, takes=[100, 500]).status, 200, "one within it, for 0.00525")
    t.eq(call(gate, "money", max_tokens=470).status, 200, "another that fits into the rest")
    t.eq(call(gate, "money", max_tokens=900).status, 429, "and one that does not")


def each(t, s, a, address):
    tokens = [a.ask("POST", "/v1/identities", {"policy": "coder"})["token"] for _ in range(2)]
    gates = [s.gate(address, token="sandbox:" + x, timeout=40) for x in tokens]
    t.eq([call(g, "each", takes=[600, 400]).status for g in gates], [200, 200], "a budget of each sandbox")
    t.eq([call(g, "each", takes=[600, 400]).status for g in gates], [429, 429], "which each has used up")


def unread(t, s, gate):
    """Where tokens have a budget, nothing goes by it uncounted."""
    r = call(gate, "plain", "/v1/other")
    t.eq((r.status, r.code), (403, "llm"), "what is no known call")
    t.eq(gate.get(HOST, "/plain/v1/models").status, 200, "what asks for nothing passes")


def whole(t, s, address):
    """A policy's budget counts what rules with `llm` send, and lets nothing of a model's credential by."""
    gate = s.gate(address)
    body = json.dumps({"model": "m"}).encode()
    r = gate.get(scene.OPENAI, CHAT, JSON, "POST", body=body)
    t.eq((r.status, r.code), (403, "llm"), "a rule for models that does not count")
    t.eq(gate.get(scene.PLAIN, "/", JSON, "POST", body=body).status, 200, "another host's has nothing to do with it")
    t.eq([call(gate, "free").status for _ in range(2)], [200, 200], "calls within it")
    t.eq(call(gate, "free", max_tokens=2490).status, 429, "and beyond")


def metrics(t, a):
    text = a.raw("GET", "/metrics")[-1].decode()
    got = {n: sum(float(x) for x in re.findall(r"^durward_%s(?:\{[^}]*\})? ([0-9.e+]+)$" % n, text, re.M))
           for n in ("model_calls_total", "model_tokens_in_total", "model_tokens_cached_total",
                     "model_tokens_out_total", "model_usage_unknown_total", "model_cost_millionths_total")}
    t.ok(all(v > 0 for v in got.values()), "the metrics have calls, tokens, what is unknown, and cost", str(got))


def explained(t, s):
    r = s.d.command("explain", "-c", s.d.conf, "--policy", "coder", "POST", "https://%s/few%s" % (HOST, CHAT))
    t.has(r.stdout, "calls to a model (openai), models gpt-4*, at most 100 tokens an answer", "explain tells what is asked")


def rules(t):
    s = scene.Scene(t)
    s.model = Model()
    s.origin = s.add(HOST, s.model)
    for name, more in RULES.items():
        s.rules.append(dict({"allow": "%s/%s/**" % (HOST, name)}, **more))
    s.d.extra["prices"] = PRICES
    s.d.policy("small", list(s.rules))
    s.d.policies["small"]["budget"] = {"tokens": "2500/h"}
    at, small, tokens = [s.listener(), s.listener()], s.listener("small"), s.listener(None)
    s.d.serve()
    gates = [s.gate(x, timeout=40) for x in at]
    a = api.Api(s.d.socket)
    for part, args in ((facts, (s, gates[0])), (limits, (s, gates[0])), (at_once, (s, gates)), (settled, (s, gates[0])),
                       (seen, (s, gates[0])), (hidden, (s, gates[0])), (dear, (s, gates[0])),
                       (money, (s, gates[0])), (each, (s, a, tokens)), (unread, (s, gates[0])), (whole, (s, small)),
                       (explained, (s,))):
        t.part(part, t, *args)
    tap.wait_for(lambda: False, 1.5)  # roles report once a second
    t.part(metrics, t, a)
    a.close()
    s.clean((), "llm")
    t.eq(s.d.stop(), 0, "the daemon ends well")


# ---- the vendors' libraries ----

def sse(conn, req, items, named=False, end=b""):
    req.status = 200
    conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
    for i in items:
        text = (("event: %s\n" % i["type"] if named else "") + "data: %s\n\n" % json.dumps(i)).encode()
        for k in range(0, len(text), 50):  # events are cut anywhere
            conn.chunk(text[k:k + 50])
    conn.chunk(end) if end else None
    conn.chunk(b"")


def chat(req, conn):
    one = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    used = dict(usage([19, 10], 4), completion_tokens_details={"reasoning_tokens": 2})
    if not req.json().get("stream"):
        conn.reply(req, 200, dict(one, usage=used, choices=[{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "ok"}}]))
        return
    one["object"] = "chat.completion.chunk"
    sse(conn, req, [dict(one, usage=None, choices=[{"index": 0, "delta": {"content": "ok"}, "finish_reason": None}]),
                    dict(one, usage=used, choices=[])], end=b"data: [DONE]\n\n")


def responses(req, conn):
    one = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [],
           "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
           "usage": {"input_tokens": 36, "input_tokens_details": {"cached_tokens": 6}, "output_tokens": 87,
                     "output_tokens_details": {"reasoning_tokens": 9}, "total_tokens": 123}}
    if not req.json().get("stream"):
        conn.reply(req, 200, one)
        return
    sse(conn, req, [{"type": "response.created", "sequence_number": 0, "response": dict(one, usage=None)},
                    {"type": "response.completed", "sequence_number": 1, "response": one}], named=True)


def messages(req, conn):
    one = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
           "stop_sequence": None, "content": [], "usage": {"input_tokens": 25, "cache_creation_input_tokens": 7,
                                                           "cache_read_input_tokens": 100, "output_tokens": 15}}
    if not req.json().get("stream"):
        conn.reply(req, 200, one)
        return
    sse(conn, req, [{"type": "message_start", "message": dict(one, usage=dict(one["usage"], output_tokens=1))},
                    {"type": "ping"},
                    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                     "usage": {"output_tokens": 15}}, {"type": "message_stop"}], named=True)


def gemini(req, conn):
    def part(**used):
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
                "usageMetadata": dict({"promptTokenCount": 5, "cachedContentTokenCount": 3, "totalTokenCount": 34}, **used)}
    if "stream" in req.path:
        sse(conn, req, [part(), part(candidatesTokenCount=7, thoughtsTokenCount=22)])
    else:
        conn.reply(req, 200, part(candidatesTokenCount=7, thoughtsTokenCount=22))


def converse(req, conn):
    used = {"inputTokens": 30, "outputTokens": 62, "totalTokens": 102, "cacheReadInputTokens": 10}
    if req.path.endswith("/converse"):
        conn.reply(req, 200, {"output": {"message": {"role": "assistant", "content": [{"text": "ok"}]}},
                              "stopReason": "end_turn", "metrics": {"latencyMs": 1}, "usage": used})
        return
    text = shapes.amazon_event("messageStart", {"role": "assistant"}) + \
        shapes.amazon_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "ok"}}) + \
        shapes.amazon_event("messageStop", {"stopReason": "end_turn"}) + \
        shapes.amazon_event("metadata", {"usage": used, "metrics": {"latencyMs": 1}})
    in_pieces(conn, req, "application/vnd.amazon.eventstream", text)


def ollama(req, conn):
    one = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "ok"}, "done": False}
    end = dict(one, done=True, done_reason="stop", prompt_eval_count=26, eval_count=298)
    if not req.json().get("stream", True):
        conn.reply(req, 200, end)
        return
    in_pieces(conn, req, "application/x-ndjson", b"".join(json.dumps(x).encode() + b"\n" for x in (one, one, end)))


def in_pieces(conn, req, kind, text):
    req.status = 200
    conn.head(200, [("Content-Type", kind), ("Transfer-Encoding", "chunked")])
    for k in range(0, len(text), 50):
        conn.chunk(text[k:k + 50])
    conn.chunk(b"")


DOUBLES = ((r"/chat/completions$", chat), (r"/responses$", responses), (r"/messages$", messages),
           (r"[gG]enerateContent$", gemini), (r"/converse(-stream)?$", converse), (r"/api/chat$", ollama))
CLIENTS = (("openai", "openai", scene.OPENAI), ("responses", "openai", scene.OPENAI),
           ("anthropic", "anthropic", "api.anthropic.com"), ("gemini", "gemini", "generativelanguage.googleapis.com"),
           ("bedrock", "bedrock", "bedrock-runtime.eu-west-1.amazonaws.com"),
           ("azure", "azure-openai", "acme.openai.azure.com"), ("ollama", "ollama", "ollama.example.com"))


def double(req, conn):
    for path, answer in DOUBLES:
        if re.search(path, req.path):
            answer(req, conn)
            return
    conn.reply(req, 404, {"message": req.path})


def libraries(t):
    """By the presets: no word of `llm` in this configuration, but for Ollama, which has none."""
    if not os.path.exists(os.path.join(durward.clients_dir(), "sdks", "bin", "python")):
        t.skip("the vendors' libraries", "they are not there: run tests/functional/clients/setup")
        return
    d = durward.Durward(t, "sdks")
    given, env = [], {}
    for preset in ("openai", "anthropic", "gemini", "bedrock", "azure-openai", "ollama"):
        value = scan.canary("key-")
        d.secret(preset, value)
        more = {"secret": preset}
        if preset == "bedrock":
            d.secret("id", "AKIAEXAMPLE7REALKEY0")
            d.secrets["aws"] = {"aws_key": {"access_key_id": "id", "secret_access_key": preset}}
            more = {"secret": "aws"}
        hosts = [h for _, p, h in CLIENTS if p == preset]
        if preset in ("bedrock", "azure-openai"):
            more["preset_hosts"] = hosts
        given.append({"allow": hosts[0], "llm": "ollama", "with": {"bearer": "ollama"}} if preset == "ollama" else dict({"use": preset}, **more))
        env["KEY_" + preset.partition("-")[0]] = "{{placeholder %s}}" % more["secret"]
    for host in sorted({c[2] for c in CLIENTS}):
        d.origin(host, origin.Origin(t, d.ca, host, double))
    d.policy("agents", given, env)
    box = durward.Sandbox(d, binds=durward.client_binds("sdks"))
    python = os.path.join(durward.clients_dir(), "sdks", "bin", "python")
    for name, preset, host in CLIENTS:
        before = len(d.kinds("completed", authority=host) or d.kinds("completed"))
        status, out, err = box.sh("%s -B %s %s \"$KEY_%s\"" % (
            python, os.path.join(durward.INSIDE, "llm_sdk.py"), name, preset.partition("-")[0]), timeout=60)
        said = json.loads(out) if status == 0 else []
        t.ok(status == 0 and said, "%s: %d calls" % (name, len(said)), out, err[-2000:])
        tap.wait_for(lambda: len([r for r in d.kinds("completed")]) >= before + len(said), 5)
        ends = [r for r in d.kinds("completed") if r.get("model")][-len(said):] if said else []
        got = [[r.get("tokens_in"), r.get("tokens_cached") or 0, r.get("tokens_out")] for r in ends]
        t.eq(sorted(got), sorted(said), "%s: the records have what the library's usage says" % name)
    line = box.close()[1]
    sums = [sum(r.get(k, 0) for r in d.kinds("completed")) for k in ("tokens_in", "tokens_out")]
    t.has(line, "durward: 14 calls to models: %d tokens sent, %d answered" % tuple(sums), "the line at the end has the sums")
    refused = [(r.get("authority"), r.get("code"), r.get("detail")) for r in d.kinds("denied")]
    t.ok(not refused, "nothing was refused", *map(str, refused))


def main(t):
    rules(t)
    t.part(libraries, t)


tap.run(main, timeout=240)
