#!/usr/bin/python3 -B
"""Sessions with a model over a WebSocket (`llm` beside `websocket`): which models and tools, what answers took in records and
budgets, answers that audio begins or nobody asked for, events that are cut, slow and interleaved, 64 sessions at once; and
OpenAI's own library. The origin speaks by the events that the vendor documents; its texts are ours."""
import base64
import concurrent.futures
import hashlib
import json
import os
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scene, tap  # noqa: E402

HOST = "rt.example.com"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MANY = "many"
RULES = {
    "free": {"llm": "openai"},
    "few": {"llm": {"api": "openai", "models": ["gpt-realtime*", "whisper-1"], "max_tokens": 300}},
    "tools": {"llm": "openai", "server_tools": []},
    "less": {"llm": "openai", "budget": {"tokens": "5000/h"}},
    "cut": {"llm": "openai", "budget": {"tokens": "3000/h"}},
    "audio": {"llm": "openai", "budget": {"tokens": "9000/h"}},
    "timed": {"llm": "openai", "budget": {"tokens": "9000/h"}},
    "money": {"llm": "openai", "budget": {"cost": "0.01/h"}},
    "each": {"llm": "openai", "budget": {"tokens": "20000/h"}},
    MANY: {"llm": "openai", "budget": {"tokens": "20000/h"}},
}
PRICES = [{"model": "gpt-realtime*", "in": 2.5, "out": 10, "cached": "1.25"}]


def frame(op, data, fin=True, mask=None):
    n, bit = len(data), 0x80 if mask else 0
    head = bytes([(0x80 if fin else 0) | op])
    head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + n.to_bytes(2, "big") if n < 65536 else \
        bytes([bit | 127]) + n.to_bytes(8, "big")
    return head + (mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)) if mask else data)


class Frames:
    """What comes on one side of a WebSocket, as messages."""

    def __init__(self, read):
        self.read, self.part = read, b""

    def next(self):
        """-> (opcode, payload) of a whole message or control frame."""
        while True:
            a, b = self.read(2)
            n = b & 0x7f
            if n > 125:
                n = int.from_bytes(self.read(2 if n == 126 else 8), "big")
            mask = self.read(4) if b & 0x80 else bytes(4)
            data = bytes(x ^ mask[i % 4] for i, x in enumerate(self.read(n)))
            if a & 15 > 7:
                return a & 15, data
            self.part += data
            if a & 0x80:
                whole, self.part = self.part, b""
                return 1, whole


def usage(taken, cached=0):
    return {"total_tokens": sum(taken), "input_tokens": taken[0], "output_tokens": taken[1],
            "input_token_details": {"text_tokens": taken[0], "audio_tokens": 0, "cached_tokens": cached},
            "output_token_details": {"text_tokens": taken[1], "audio_tokens": 0}}


class Model:
    """Answers each response.create by what it says of itself in its `metadata`: what it takes, and how it comes."""

    def __init__(self):
        self.heard, self.lock, self.go = [], threading.Lock(), threading.Event()
        self.go.set()

    def note(self, path, event):
        with self.lock:
            self.heard.append((path, event))

    def of(self, path, kind="response.create"):
        with self.lock:
            return [e for p, e in self.heard if p == path and e["type"] == kind]

    def __call__(self, req, conn):
        accept = base64.b64encode(hashlib.sha1((req.get("Sec-WebSocket-Key") + GUID).encode()).digest()).decode()
        more = []
        if req.get("Sec-WebSocket-Extensions"):
            self.note(req.path, {"type": "extensions", "text": req.get("Sec-WebSocket-Extensions")})
        conn.head(101, [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", accept)] + more)
        frames = Frames(conn.read_exact)
        self.say(conn, {"type": "session.created", "session": {"type": "realtime", "model": "gpt-realtime"}})
        while True:
            op, data = frames.next()
            if op == 8:
                conn.send(frame(8, data[:2]))
                conn.close_after = True
                return
            if op == 1:
                event = json.loads(data)
                self.note(req.path, event)
                self.answer(conn, req, event)

    def say(self, conn, event, cut=0, slow=0.0):
        data = json.dumps(dict({"event_id": "e"}, **event)).encode()
        parts = [data[i:i + cut] for i in range(0, len(data), cut)] if cut else [data]
        for i, p in enumerate(parts):
            conn.send(frame(0 if i else 1, p, i + 1 == len(parts)))
            if cut and i % 7 == 3:
                conn.send(frame(9, b"ping"))  # control frames between fragments
            time.sleep(slow)

    def answer(self, conn, req, event):
        if event["type"] == "session.update":
            self.say(conn, {"type": "session.updated", "session": event["session"]})
        if event["type"] == "input_audio_buffer.commit" and "silent" not in req.query:
            self.one(conn, {"takes": [700, 900]}, "vad")
        if event["type"] == "conversation.item.create" and "timeout" in json.dumps(event):
            self.one(conn, {"takes": [3000, 3000]}, "timer")
        if event["type"] == "response.create":
            how = (event.get("response") or event).get("metadata") or {}
            how = {k: json.loads(v) for k, v in how.items()}
            if how.get("waits"):
                self.go.wait(30)
            if how.get("fails"):
                self.say(conn, {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}})
                return
            self.one(conn, how, "r%d" % len(self.heard))

    def one(self, conn, how, name):
        cut, slow = how.get("cut", 0), how.get("slow", 0.0)
        r = {"id": name, "object": "realtime.response", "status": "in_progress", "output": [], "usage": None}
        self.say(conn, {"type": "response.created", "response": r}, cut, slow)
        for _ in range(how.get("words", 1)):
            self.say(conn, {"type": "response.output_text.delta", "response_id": name, "delta": "hi" * how.get("long", 1)}, cut)
        if how.get("dies"):
            conn.sock.shutdown(socket.SHUT_RDWR)
            raise origin.Closed()
        done = dict(r, status="completed", usage=None if how.get("unsaid") else usage(how.get("takes", [7, 3]), how.get("cached", 0)))
        self.say(conn, {"type": "response.done", "response": done}, cut, slow)


class Session:
    """A client that says what it is told to, frame by frame."""

    def __init__(self, s, address, path, extra=""):
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)), 10)
        plain.sendall(("CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % (HOST, HOST)).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += plain.recv(1)
        assert b" 200 " in head, head
        context = ssl.create_default_context(cafile=s.ca)
        self.sock = context.wrap_socket(plain, server_hostname=HOST)
        self.sock.settimeout(40)
        self.sock.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n" % (path, HOST, extra)).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.sock.recv(1)
            if not more:
                break
            head += more
        self.status, self.head = int(head.split()[1]), head.decode()
        self.held = b""
        self.frames = Frames(self.exactly)

    def exactly(self, n):
        while len(self.held) < n:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError
            self.held += more
        got, self.held = self.held[:n], self.held[n:]
        return got

    def raw(self, data, fin=True, op=1):
        self.sock.sendall(frame(op, data, fin, b"\1\2\3\4"))

    def say(self, **event):
        self.raw(json.dumps(event).encode())

    def create(self, most=None, how=None, **more):
        r = dict({"metadata": {k: json.dumps(v) for k, v in (how or {}).items()}}, **more)
        if most is not None:
            r["max_output_tokens"] = most
        self.say(type="response.create", response=r)

    def until(self, *kinds):
        """The next event of one of these types; or how it was ended, (code, reason)."""
        try:
            while True:
                op, data = self.frames.next()
                if op == 8:
                    self.raw(data[:2], op=8)
                    return (int.from_bytes(data[:2], "big"), data[2:].decode())
                if op == 1 and json.loads(data)["type"] in kinds:
                    return json.loads(data)["type"]
        except (EOFError, ConnectionError):
            return "cut"

    def done(self):
        return self.until("response.done", "error")

    def close(self):
        try:
            self.raw(b"\x03\xe8", op=8)
            self.until()
        except OSError:
            pass
        finally:
            self.sock.close()


class World:
    def __init__(self, t):
        self.t, self.s, self.model = t, scene.Scene(t), Model()
        self.origin = self.s.add(HOST, self.model)
        for name, more in RULES.items():
            self.s.rule(**dict({"allow": "%s/%s/**" % (HOST, name), "websocket": True}, **more))
        self.s.d.extra["prices"] = PRICES
        self.at = [self.s.listener(), self.s.listener()]
        self.s.d.serve()
        self.ca = self.s.ca_file()

    def session(self, rule, query="?model=gpt-realtime", at=0, path="/v1/realtime", extra=""):
        return Session(self, self.at[at], "/%s%s%s" % (rule, path, query), extra)

    def ended(self, path, n=1):
        """The end record of the n-th session there."""
        def one():
            begun = self.s.d.kinds("admitted", path=path)
            ends = [r for b in begun[n - 1:n] for k in ("completed", "aborted") for r in self.s.d.kinds(k, id=b["id"])]
            return ends[0] if ends else None
        return tap.wait_for(one, 10) or {}


def facts(t, w):
    s = w.session("free", extra="Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n")
    t.eq(s.status, 101, "a session is agreed to")
    t.ok("permessage-deflate" not in s.head.lower(), "without an extension: nothing is read that cannot be")
    t.eq(w.model.of("/free/v1/realtime", "extensions"), [], "and the origin was asked for none")
    s.say(type="session.update", session={"type": "realtime", "instructions": "\u20ac" * 30})
    s.create(how={"takes": [12, 34], "cached": 2})
    t.eq(s.done(), "response.done", "an answer")
    s.create(how={"takes": [40, 6], "cut": 5, "words": 3})
    t.eq(s.done(), "response.done", "another, cut into fragments with pings between")
    s.create(how={"takes": [1, 1], "slow": 0.01, "cut": 90})
    t.eq(s.done(), "response.done", "another, slowly")
    parts = json.dumps({"type": "response.create", "response": {"metadata": {"takes": "[5, 5]"}}}).encode()
    for i in range(0, len(parts), 7):
        s.raw(parts[i:i + 7], i + 7 >= len(parts), 0 if i else 1)
        s.raw(b"x", op=9)
    t.eq(s.done(), "response.done", "a client's event in fragments, with pings between")
    s.close()
    end = w.ended("/free/v1/realtime")
    t.eq([end.get(k) for k in ("kind", "model", "tokens_in", "tokens_cached", "tokens_out", "usage", "cost_millionths")],
         ["completed", "gpt-realtime", 58, 2, 46, None, 25 + 3 + 340 + 100 + 60 + 3 + 10 + 13 + 50], "the record has the sums of all answers, and the cost")
    (begin,) = w.s.d.kinds("admitted", path="/free/v1/realtime")
    t.eq(begin.get("detail"), "session, model gpt-realtime", "and its beginning the model")


def judged(t, w):
    for what, query, path, want in (
            ("an allowed model", "?model=gpt-realtime", "/v1/realtime", 101),
            ("another", "?model=gpt-5", "/v1/realtime", 403), ("no model", "", "/v1/realtime", 403),
            ("a call's id in its place", "?call_id=x", "/v1/realtime", 403),
            ("two models", "?model=gpt-realtime&model=gpt-5", "/v1/realtime", 400),
            ("one in other letters", "?Model=gpt-realtime", "/v1/realtime", 400),
            ("one in an escape", "?%6dodel=gpt-5&model=gpt-realtime", "/v1/realtime", 400),
            ("one behind a semicolon", "?a=b;model=gpt-5&model=gpt-realtime", "/v1/realtime", 403),
            ("a deployment", "?model=gpt-realtime&deployment=x", "/v1/realtime", 400),
            ("an escaped model", "?model=gpt%2drealtime", "/v1/realtime", 101),
            ("no session that is known", "?model=gpt-realtime", "/v1/realtime/translations", 403),
            ("another path", "", "/v1/other", 403)):
        s = w.session("few", query, path=path)
        t.eq(s.status, want, "%s: %d" % (what, want))
        s.sock.close()
    create = {"type": "response.create", "response": {"max_output_tokens": 300}}
    for what, want, event in (
            ("an answer within the maximum", "response.done", create),
            ("beyond it", (1008, "llm"), {"type": "response.create", "response": {"max_output_tokens": 301}}),
            ("without one", (1008, "llm"), {"type": "response.create"}),
            ("with none", (1008, "llm"), {"type": "response.create", "response": {"max_output_tokens": "inf"}}),
            ("another model for the session", (1008, "llm"), {"type": "session.update", "session": {"model": "gpt-5"}}),
            ("another who writes down audio", (1008, "llm"), {"type": "session.update", "session": {
                "audio": {"input": {"transcription": {"model": "gpt-5"}}}}}),
            ("an allowed one", "response.done", {"type": "session.update", "session": {
                "audio": {"input": {"transcription": {"model": "whisper-1"}}}}}),
            ("a model in other letters", (1008, "body_ambiguous"), {"type": "session.update", "session": {"MODEL": "gpt-realtime"}}),
            ("an event without a type", (1008, "body_ambiguous"), {"response": {}}),
            ("two types", (1008, "body_ambiguous"), b'{"type":"x","type":"response.create"}'),
            ("a type in other letters", (1008, "body_ambiguous"), {"type": "x", "Type": "response.create"}),
            ("no JSON", (1008, "body_ambiguous"), b'{"type":"x"'), ("a list", (1008, "body_ambiguous"), b'[{"type":"x"}]'),
            ("nothing", (1008, "body_ambiguous"), b""),
            ("audio that may begin an answer", (1008, "llm"), {"type": "input_audio_buffer.append", "audio": "AAAA"}),
            ("too long an event", (1009, "too_large_to_inspect"), {"type": "x", "text": "a" * (1 << 20)})):
        s = w.session("few")
        try:
            s.raw(event if isinstance(event, bytes) else json.dumps(event).encode())
            s.raw(json.dumps(create).encode())
        except OSError:
            pass
        t.eq(s.done(), want, what)
        s.close()
    t.eq(len(w.model.of("/few/v1/realtime")), 3, "no refused event reached the origin")
    s = w.session("tools")
    s.say(type="session.update", session={"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://x.example"}]})
    t.eq(s.done(), (1008, "server_tool"), "a tool that the provider runs")
    s.close()
    t.ok([r for r in w.s.d.wait_records(1, "aborted", code="llm")], "a session that was ended says so on record")


def budgets(t, w):
    s = w.session("less")
    s.create(900, {"takes": [3000, 1900]})
    t.eq(s.done(), "response.done", "an answer that takes more than it was estimated")
    s.create(900)
    t.eq(s.done(), (1008, "budget"), "is charged in full: the next is refused before it is asked for")
    s.close()
    t.eq(len(w.model.of("/less/v1/realtime")), 1, "the origin heard of one alone")
    end = w.ended("/less/v1/realtime")
    t.eq((end.get("code"), end.get("detail"), end.get("tokens_in")), ("budget", "tokens 5000/h", 3000), "the record says which budget")
    s = w.session("cut")
    s.create(2500, {"dies": True})
    t.eq(s.done(), "cut", "an answer that is cut")
    s.close()
    t.eq(w.ended("/cut/v1/realtime").get("usage"), "unknown", "is unknown")
    s = w.session("cut")
    s.create(900)
    t.eq(s.done(), (1008, "budget"), "and charged as estimated")
    s.close()
    s = w.session("money")
    s.create(900, {"takes": [100, 500]})
    t.eq(s.done(), "response.done", "money: an answer for 0.00525")
    s.create(900)
    t.eq(s.done(), (1008, "budget"), "and one that does not fit into the rest")
    s.close()
    t.eq(w.session("money", "?model=other").status, 403, "a model without a price")
    s = w.session("each")
    s.create(9000, {"fails": True})
    t.eq(s.until("error"), "error", "an answer that the provider refuses")
    s.create(9000, {"fails": True})
    s.until("error")
    s.create(9000, {"takes": [1, 1]})
    t.eq(s.done(), "response.done", "takes nothing")
    s.close()


def unasked(t, w):
    """Audio has an estimate before it goes; what begins of itself has one as it begins."""
    s = w.session("audio")
    for _ in range(3):
        s.say(type="input_audio_buffer.append", audio="A" * 4000)
    s.say(type="input_audio_buffer.commit")
    t.eq(s.done(), "response.done", "an answer that audio begins")
    s.say(type="input_audio_buffer.append", audio="A" * 4000)
    s.say(type="input_audio_buffer.commit")
    t.eq(s.done(), "response.done", "and another")
    s.say(type="input_audio_buffer.append", audio="A" * 4000)
    s.say(type="input_audio_buffer.commit")
    s.done()
    for _ in range(3):
        got = s.say(type="input_audio_buffer.append", audio="A" * 4000) or s.say(type="input_audio_buffer.commit") or s.done()
        if got != "response.done":
            break
    t.eq(got, (1008, "budget"), "audio is refused once the budget has no room for an answer")
    s.close()
    end = w.ended("/audio/v1/realtime")
    t.ok(end.get("tokens_in", 0) >= 1400 and end.get("tokens_out") == end.get("tokens_in") * 9 // 7, "all of which is on record", str(end))
    s = w.session("timed")
    say = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "timeout"}]}
    s.say(type="conversation.item.create", item=say)
    t.eq(s.done(), "response.done", "an answer that nobody asked for")
    s.say(type="conversation.item.create", item=say)
    t.eq(s.until(), (1008, "budget"), "ends the session once there is no budget for it")
    s.close()


def at_once(t, w):
    """64 sessions, each with an answer of nearly 1,000 tokens that goes on until all have asked."""
    w.model.go.clear()

    def one(i):
        s = w.session(MANY, at=i % 2)
        s.create(950, {"waits": True, "takes": [100, 300]})
        got = s.done()
        s.close()
        return got
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        calls = [pool.submit(one, i) for i in range(64)]
        t.ok(tap.wait_for(lambda: sum(c.done() for c in calls) >= 43, 30), "those beyond the budget are refused at once")
        w.model.go.set()
        got = [c.result(40) for c in calls]
    n = got.count("response.done")
    t.ok(n in (20, 21) and got.count((1008, "budget")) == 64 - n, "64 at once: as many as the budget holds", "%d %r" % (n, got))
    t.eq(len(w.model.of("/%s/v1/realtime" % MANY)), n, "the origin heard of these alone")
    s = w.session(MANY)
    s.create(950, {"takes": [100, 300]})
    t.eq(s.done(), "response.done", "what they did not take came back")
    s.close()


def by_events(t, w):
    """The responses API over a WebSocket: each event names its model."""
    s = w.session("few", "", path="/v1/responses")
    t.eq(s.status, 101, "a session of the responses API")
    s.say(type="response.create", model="gpt-realtime", input="?", max_output_tokens=100, metadata={"takes": "[9, 4]"})
    t.eq(s.done(), "response.done", "an allowed model")
    s.say(type="response.create", model="gpt-5", input="?", max_output_tokens=100)
    t.eq(s.done(), (1008, "llm"), "another")
    s.close()
    end = w.ended("/few/v1/responses")
    t.eq([end.get(k) for k in ("code", "model", "tokens_in", "tokens_out")], ["llm", "gpt-realtime", 9, 4], "on record")
    for name, what, more in (("few", "another in its place", {"fallbacks": [{"model": "gpt-5"}]}),
                             ("money", "a dearer tier, where money has a budget", {"service_tier": "priority"})):
        s = w.session(name, "", path="/v1/responses")
        s.say(type="response.create", model="gpt-realtime", input="?", max_output_tokens=100, **more)
        t.eq(s.done(), (1008, "llm"), what)
        s.close()


def library(t):
    python = os.path.join(durward.clients_dir(), "sdks", "bin", "python")
    if not os.path.exists(python):
        t.skip("OpenAI's library", "it is not there: run tests/functional/clients/setup")
        return
    s, model = scene.Scene(t, name="sdk"), Model()
    s.d.secret("rt", b"sk-realtime-0123456789abcdef")
    del s.rules[:]
    s.rule(allow="api.openai.com/v1/realtime", llm={"api": "openai", "models": ["gpt-realtime*"]}, websocket=True,
           budget={"tokens": "100K/h"}, **{"with": {"bearer": "rt"}})
    s.d.origin(scene.OPENAI, origin.Origin(t, s.d.ca, scene.OPENAI, model))
    s.env["RT"] = "{{placeholder rt}}"
    s.d.policy("coder", s.rules, s.env)
    box = durward.Sandbox(s.d, binds=durward.client_binds("sdks"))
    status, out, err = box.sh("%s -B %s \"$RT\"" % (python, os.path.join(durward.INSIDE, "realtime_sdk.py")), timeout=60)
    t.eq((status, out.strip()), (0, "[[7, 0, 3], [7, 0, 3]]"), "OpenAI's library has two answers") or t.diag(err[-2000:])
    end = s.d.wait_records(1, "completed", model="gpt-realtime")[-1:]
    t.eq([[r.get("tokens_in"), r.get("tokens_out")] for r in end], [[14, 6]], "the record has what the library's usage says")
    line = box.close()[1]
    t.has(line, "2 calls to models: 14 tokens sent, 6 answered", "and so has the line at the end")


def main(t):
    w = World(t)
    for part in (facts, judged, budgets, unasked, at_once, by_events):
        t.part(part, t, w)
    w.s.clean((), "realtime")
    t.eq(w.s.d.stop(), 0, "the daemon ends well")
    t.part(library, t)


tap.run(main, timeout=150)
