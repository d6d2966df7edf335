#!/usr/bin/python3 -B
"""Streams of six vendors' models at once, made by us after their documents: piece by piece in turns, over HTTP/1.1 and as
streams of one connection of HTTP/2, slow, and cut anywhere. Records have what each stream says that it took, or that it is
not known; 64 at once that take more than they were estimated pass a budget by no more than that."""
import concurrent.futures
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, h2, scene, shapes, tap  # noqa: E402

HOST, EACH, PIECE = "model.example.com", 10, 23
JSON = "Content-Type: application/json\r\n"
EVENTS = "text/event-stream"


def sse(*items, named=False, end=b""):
    return b"".join(("%sdata: %s\n\n" % ("event: %s\n" % i["type"] if named else "", json.dumps(i))).encode() for i in items) + end


def chat(took, first=()):
    one = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": None}
    said = [dict(one, choices=[{"index": 0, "delta": {"content": x}, "finish_reason": None}]) for x in ("\"usage\": {", "}", "\u2028")]
    used = {"prompt_tokens": took["in"], "completion_tokens": took["out"], "total_tokens": took["in"] + took["out"],
            "prompt_tokens_details": {"cached_tokens": took["cached"]}}
    return sse(*[dict(one, **x) for x in first], *said, dict(one, choices=[], usage=used), end=b"data: [DONE]\n\n")


def azure(took):
    return chat(took, [{"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}])


def responses(took):
    one = {"id": "r", "object": "response", "status": "in_progress", "output": [], "usage": None}
    used = {"input_tokens": took["in"], "input_tokens_details": {"cached_tokens": took["cached"]}, "output_tokens": took["out"],
            "total_tokens": took["in"] + took["out"]}
    return sse({"type": "response.created", "response": one}, {"type": "response.output_text.delta", "delta": "\"usage\""},
               {"type": "response.completed", "response": dict(one, status="completed", usage=used)}, named=True)


def messages(took):
    used = {"input_tokens": took["in"] - took["cached"], "cache_creation_input_tokens": 0, "cache_read_input_tokens": took["cached"]}
    return sse({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": dict(used, output_tokens=1)}},
               {"type": "ping"}, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
               {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": dict(used, output_tokens=took["out"])},
               {"type": "message_stop"}, named=True)


def gemini(took):
    used = {"promptTokenCount": took["in"], "cachedContentTokenCount": took["cached"]}
    parts = [{"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}}], "usageMetadata": dict(used, candidatesTokenCount=n)}
             for n in (1, 2)]
    return sse(*parts, {"candidates": [{"finishReason": "STOP"}],
                        "usageMetadata": dict(used, candidatesTokenCount=took["out"] - 2, thoughtsTokenCount=2)})


def bedrock(took):
    return shapes.amazon_event("messageStart", {"role": "assistant"}) + \
        shapes.amazon_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "\"usage\""}}) + \
        shapes.amazon_event("messageStop", {"stopReason": "end_turn"}) + \
        shapes.amazon_event("metadata", {"metrics": {"latencyMs": 1}, "usage": {
            "inputTokens": took["in"] - took["cached"], "outputTokens": took["out"], "cacheReadInputTokens": took["cached"],
            "totalTokens": took["in"] + took["out"]}})


def ollama(took):
    lines = [{"model": "l", "message": {"role": "assistant", "content": x}, "done": False} for x in ("ok", "\"eval_count\":")]
    lines.append({"model": "l", "done": True, "done_reason": "stop", "prompt_eval_count": took["in"], "eval_count": took["out"]})
    return b"".join(json.dumps(x).encode() + b"\n" for x in lines)


# name -> (its stream, the path of a call, the type of the reply, what of a call is asked)
FORMS = {
    "openai": (chat, "/v1/chat/completions", EVENTS, {"model": "m", "stream_options": {"include_usage": True}}),
    "responses": (responses, "/v1/responses", EVENTS, {"model": "m", "input": "?"}),
    "anthropic": (messages, "/v1/messages", EVENTS, {"model": "m", "max_tokens": 9}),
    "gemini": (gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", EVENTS, {"contents": []}),
    "bedrock": (bedrock, "/model/m/converse-stream", "application/vnd.amazon.eventstream", {"messages": []}),
    "azure": (azure, "/openai/deployments/m/chat/completions?api-version=1", EVENTS, {}),
    "ollama": (ollama, "/api/chat", "application/x-ndjson", {"model": "l"}),
}
RULES = {name: {"llm": "openai" if name == "responses" else name} for name in FORMS}
RULES["over"] = {"llm": "openai", "budget": {"tokens": "20000/h"}}


def took(name, i):
    return {"in": 1000 + 7 * i, "cached": 0 if name == "ollama" else 3 + i, "out": 50 + i}


class Model:
    """Sends each stream in small pieces: the next one when all streams have sent theirs, after a moment where it is slow; with
    `cut` it ends the connection in front of that piece."""

    def __init__(self):
        self.turns, self.go, self.most = None, threading.Event(), 0
        self.go.set()

    def __call__(self, req, conn):
        how = json.loads(req.get("X-How"))
        make, _, kind, _ = FORMS[how["form"]]
        text = make(how["took"])
        pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)]
        conn.head(200, [("Content-Type", kind), ("Transfer-Encoding", "chunked")])
        self.go.wait(30)
        for i in range(max(len(pieces), how.get("rounds", 0))):
            if i == how.get("cut"):
                raise ConnectionResetError
            if how.get("turns"):
                self.turns.wait(30)
            time.sleep(how.get("slow", 0))
            if i < len(pieces):
                conn.chunk(pieces[i])
        conn.chunk(b"")


def fields(form, i, **how):
    return "X-How: %s\r\n" % json.dumps(dict({"form": form, "took": took(form, i)}, **how))


def path_of(form, i, rule=None):
    path = FORMS[form][1]
    return "/%s/%d%s" % (rule or form, i, path)


def body_of(form, **more):
    ask = dict(FORMS[form][3], **more)
    if form not in ("gemini", "bedrock", "ollama"):
        ask["stream"] = True
    return json.dumps(ask).encode()


def ends(s, kind, n):
    """path -> the end record of the request; n: as many have ended so."""
    tap.wait_for(lambda: len(s.d.kinds(kind)) >= n, 20, 0.2)
    begun = {r["id"]: r["path"] for r in s.d.kinds("admitted")}
    return {begun[r["id"]]: r for r in s.d.kinds(kind) if r["id"] in begun}


def same(t, s, calls, before, what):
    got = ends(s, "completed", before + len(calls))
    for form in FORMS:
        wrong, mine = [], [i for f, i in calls if f == form]
        for i in mine:
            want, r = took(form, i), got.get(path_of(form, i).partition("?")[0], {})
            said = {"in": r.get("tokens_in"), "cached": r.get("tokens_cached", 0), "out": r.get("tokens_out")}
            if said != want:
                wrong.append("%d: %s, not %s" % (i, said, want))
        t.ok(mine and not wrong, "%s, %s: each record has what its stream says" % (what, form), *wrong[:5])


def in_turns(t, s, gate, model):
    """All at once, a piece of each in turn: over as many connections, then as streams of one."""
    calls = [(form, i) for form in FORMS for i in range(EACH)]
    rounds = 1 + max(len(make(took(form, EACH))) for form, (make, *_) in FORMS.items()) // PIECE
    model.turns = threading.Barrier(len(calls))
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        got = list(pool.map(lambda c: gate.get(HOST, path_of(*c), JSON + fields(*c, turns=True, rounds=rounds), "POST", body=body_of(c[0])), calls))
    t.ok(all(r.status == 200 and r.body == FORMS[f][0](took(f, i)) for r, (f, i) in zip(got, calls)),
         "%d streams, a piece of each in turn, arrive as they were sent" % len(calls))
    same(t, s, calls, 0, "in turns")
    later = [(form, i) for form in FORMS for i in range(100, 104)]
    model.turns = threading.Barrier(len(later))
    with h2.H2(gate, HOST, timeout=60) as c:
        streams = []
        for form, i in later:
            more = [("content-type", "application/json"), ("x-how", json.dumps({"form": form, "took": took(form, i), "turns": True,
                                                                                "rounds": rounds}))]
            stream = c.open(c.fields(path_of(form, i), "POST") + more, end=False)
            c.frame(0, 1, stream, body_of(form))
            streams.append(stream)
        answers = [c.answer(x, 60) for x in streams]
    t.ok(all(a.status == 200 and a.body == FORMS[f][0](took(f, i)) for a, (f, i) in zip(answers, later)),
         "%d streams of one connection, too" % len(later))
    same(t, s, later, len(calls), "in turns on one connection")


def slow(t, s, gate):
    calls = [(form, 200) for form in FORMS]
    before = len(s.d.kinds("completed"))
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(lambda c: gate.get(HOST, path_of(*c), JSON + fields(*c, slow=0.05), "POST", body=body_of(c[0])), calls))
    same(t, s, calls, before, "slow")


def cut(t, s, gate):
    """Wherever it is cut: what a record says is what was taken, or it says that it does not know."""
    def one(c):
        form, i, at = c
        try:
            gate.get(HOST, path_of(form, i), JSON + fields(form, i, cut=at), "POST", body=body_of(form))
        except (client.Ended, OSError, AssertionError):
            pass
    calls = [(form, 300 + at, at) for form, (make, *_) in FORMS.items() for at in range(1, len(make(took(form, 0))) // PIECE + 1)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(one, calls))
    got = ends(s, "aborted", len(calls))
    for form in FORMS:
        mine = [(i, at, got.get(path_of(form, i).partition("?")[0])) for f, i, at in calls if f == form]
        unknown = [r for _, _, r in mine if r and r.get("usage") == "unknown"]
        wrong = ["%d: %s" % (at, r) for i, at, r in mine if not r or (r.get("usage") != "unknown" and (
            r.get("tokens_in"), r.get("tokens_out")) != (took(form, i)["in"], took(form, i)["out"]))]
        t.ok(not wrong and len(unknown) > len(mine) // 2, "cut, %s: in each of %d places what was taken, or unknown (%d)" % (
            form, len(mine), len(unknown)), *wrong[:5])


def over(t, s, gates, model):
    """64 at once that take four times what they were estimated: as many go as their estimates fit, and no more then."""
    model.go.clear()
    took_each, said = 4000, 980

    def one(i):
        how = "X-How: %s\r\n" % json.dumps({"form": "openai", "took": {"in": 1000, "cached": 0, "out": took_each - 1000}})
        return gates[i % len(gates)].get(HOST, path_of("openai", i, "over"), JSON + how, "POST", body=body_of("openai", max_tokens=said))
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        calls = [pool.submit(one, i) for i in range(64)]
        t.ok(tap.wait_for(lambda: sum(c.done() for c in calls) >= 43, 20), "those beyond the budget are refused before any was asked for more")
        model.go.set()
        got = [c.result(60) for c in calls]
    passed = sum(r.status == 200 for r in got)
    t.ok(passed in (19, 20) and sum(r.code == "budget" for r in got) == 64 - passed, "of 64 at once as many pass as the estimates fit: %d" % passed)
    tap.wait_for(lambda: len([r for r in s.d.kinds("completed") if r.get("tokens_in") == 1000 and r.get("tokens_out") == 3000]) >= passed, 10)
    spent = sum(r.get("tokens_in", 0) + r.get("tokens_out", 0) for p, r in ends(s, "completed", 0).items() if p.startswith("/over/"))
    beyond = passed * (took_each - said)
    t.ok(spent == passed * took_each and spent - 20000 <= beyond, "spent %d: %d beyond the budget, and what they took beyond their estimates is "
         "at most %d" % (spent, spent - 20000, beyond))
    r = one(64)
    t.eq((r.status, r.code), (429, "budget"), "then none goes")


def main(t):
    h2.needed()
    s, model = scene.Scene(t), Model()
    s.add(HOST, model)
    for name, more in RULES.items():
        s.rules.append(dict({"allow": "%s/%s/**" % (HOST, name)}, **more))
    at = [s.listener(), s.listener()]
    s.d.serve()
    gates = [s.gate(x, timeout=60) for x in at]
    t.part(in_turns, t, s, gates[0], model)
    t.part(slow, t, s, gates[0])
    t.part(cut, t, s, gates[1])
    t.part(over, t, s, gates, model)
    s.clean((), "streams of models")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=200)
