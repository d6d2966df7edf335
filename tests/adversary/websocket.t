#!/usr/bin/python3 -B
"""Rows B17, B18 and C20: upgrades that are none, 101s that nobody asked for, frames that break the
rules from either side, placeholders in messages, secrets in messages. Each refusal has a benign twin."""
import base64
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, origin, scan, scene, tap  # noqa: E402

PLAIN, KEYED, SHUT = "ws.example.com", "ws-keyed.example.com", "shut.example.com"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
UP = "Upgrade: websocket\r\n"
CONN = "Connection: Upgrade\r\n"
V13 = "Sec-WebSocket-Version: 13\r\n"
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def frame(op, data, fin=True):
    n = len(data)
    head = bytes([(0x80 if fin else 0) | op])
    return head + (bytes([n]) if n < 126 else b"\x7e" + n.to_bytes(2, "big")) + data


def unmask(data):
    """[(opcode, fin, payload)] of masked frames; fails on anything else."""
    found = []
    while data:
        n, at = data[1] & 0x7f, 2
        assert data[1] & 0x80 and not data[0] & 0x70, "not a plain masked frame"
        if n > 125:
            size = 2 if n == 126 else 8
            n, at = int.from_bytes(data[2:2 + size], "big"), 2 + size
        mask, body = data[at:at + 4], data[at + 4:at + 4 + n]
        found.append((data[0] & 15, bool(data[0] & 0x80),
                      bytes(b ^ mask[i % 4] for i, b in enumerate(body))))
        data = data[at + 4 + n:]
    return found


def has_close(data):
    """Is a whole close frame among these masked frames? By their lengths: in a mask any byte may stand."""
    at = 0
    while len(data) - at >= 6:
        op, n, head = data[at] & 15, data[at + 1] & 0x7f, 6
        if n > 125:
            size = 2 if n == 126 else 8
            n, head = int.from_bytes(data[at + 2:at + 2 + size], "big"), 6 + size
        at += head + n
        if op == 8 and at <= len(data):
            return True
    return False


class Evil:
    """An origin that answers an upgrade at PATH as the plan for it says, and keeps what came."""

    def __init__(self, plans):
        self.plans, self.got, self.ended = plans, {}, {}

    def accept(self, req):
        return base64.b64encode(hashlib.sha1(((req.get("Sec-WebSocket-Key") or "") + GUID).encode())
                                .digest()).decode()

    def agree(self, conn, req, *more):
        conn.head(101, [("Connection", "Upgrade"), ("Upgrade", "websocket"),
                        ("Sec-WebSocket-Accept", self.accept(req))] + list(more))

    def rest(self, conn, path, seconds=8):
        """All that comes until the client's close frame or the end."""
        conn.sock.settimeout(seconds)
        got = self.got.setdefault(path, bytearray())
        try:
            while True:
                got += conn._buf
                conn._buf = b""
                if has_close(got):
                    return
                conn.fill()
        except (origin.Closed, OSError) as e:
            self.ended[path] = repr(e)
            got += conn._buf

    def script(self, conn):
        req = conn.read_head()
        plan = self.plans.get(req.path, Evil.echo)
        try:
            plan(self, conn, req)
        except (origin.Closed, OSError) as e:
            self.ended[req.path] = repr(e)
            raise

    def echo(self, conn, req):
        self.agree(conn, req)
        got = self.got.setdefault(req.path, bytearray())
        at = 0
        while True:
            while len(got) - at < 2 or len(got) - at < 6 + (got[at + 1] & 0x7f):
                conn.fill()
                got += conn._buf
                conn._buf = b""
            n = got[at + 1] & 0x7f
            if n > 125:  # long ones are only counted
                self.rest(conn, req.path)
                return
            (op, fin, data), = unmask(bytes(got[at:at + 6 + n]))
            at += 6 + n
            conn.send(frame(op, data, fin))
            if op == 8:
                return


# ---- B17: what is no upgrade ----

B17 = {  # name: (head or None, fields, status, code)
    "two protocols": (None, CONN + "Upgrade: websocket, h2c\r\n" + V13 + KEY, 501, "upgrade"),
    "two Upgrade fields": (None, CONN + UP + "Upgrade: h2c\r\n" + V13 + KEY, 501, "upgrade"),
    "no key": (None, CONN + UP + V13, 400, "upgrade"),
    "two keys": (None, CONN + UP + V13 + KEY + KEY, 400, "upgrade"),
    "a short key": (None, CONN + UP + V13 + "Sec-WebSocket-Key: AAAA\r\n", 400, "upgrade"),
    "version 8": (None, CONN + UP + "Sec-WebSocket-Version: 8\r\n" + KEY, 400, "upgrade"),
    "no version": (None, CONN + UP + KEY, 400, "upgrade"),
    "Upgrade without Connection": (None, UP + V13 + KEY, 400, "upgrade"),
    "POST": ("POST /b17 HTTP/1.1\r\nHost: {H}\r\n", CONN + UP + V13 + KEY, 400, "upgrade"),
    "HTTP/1.0": ("GET /b17 HTTP/1.0\r\nHost: {H}\r\n", CONN + UP + V13 + KEY, 400, "upgrade"),
    "a body": (None, CONN + UP + V13 + KEY + "Content-Length: 3\r\n", 400, "upgrade"),
    "a chunked body": (None, CONN + UP + V13 + KEY + "Transfer-Encoding: chunked\r\n", 400, "upgrade"),
    "a placeholder as sub-protocol": (None, CONN + UP + V13 + KEY + "Sec-WebSocket-Protocol: {P}\r\n",
                                      403, "secret_blocked"),
}


FOREIGN = ("openai-insecure-api-key.sk-proj-other", "base64url.bearer.authorization.k8s.io.b3RoZXI",
           "chat, Bearer.abc")


def b17(box, o, run, t):
    for host in (PLAIN, KEYED):
        cases = []
        for name, (head, fields, _, _) in B17.items():
            case = {"name": name, "host": host, "path": "/b17", "fields": fields,
                    "early": [frame(1, b"early").hex()]}
            if head:
                case["head"] = head
            cases.append(case)
        before = len(o[host].requests)
        for got in run(cases):
            status, code = B17[got["name"]][2:]
            said = [x for x in got.get("head", ()) if x.startswith("Durward-Denied: ")]
            t.ok(got["status"] == status and said and said[0].split(" ")[1] == code and
                 got["end"] != "timeout", "B17 %s: %s is %d %s" % (host, got["name"], status, code),
                 str(got))
        t.eq(len(o[host].requests), before, "B17 %s: nothing of it at the origin" % host)
    before = len(o[KEYED].requests)
    for got in run([{"name": x, "host": KEYED, "path": "/b17", "more": "Sec-WebSocket-Protocol: " + x +
                     "\r\n"} for x in FOREIGN]):
        t.ok(got["status"] == 403 and "foreign_credential" in " ".join(got["head"]),
             "C5 a credential as sub-protocol is 403 foreign_credential: " + got["name"][:20], str(got))
    t.eq(len(o[KEYED].requests), before, "C5 and nothing at the origin")
    got, = run([{"name": "shut", "host": SHUT, "path": "/", "early": [frame(1, b"x").hex()]}])
    t.ok(got["status"] == 403 and "Durward-Denied: websocket" in " ".join(got["head"]),
         "B17 a rule without `websocket`: 403 websocket", str(got))
    t.eq(o[SHUT].requests, [], "B17 and nothing at its origin")
    got = run([{"name": "twin", "host": h, "path": "/b17-twin%d" % i, "more": m,
                "steps": [[1, True, "hi"], [8, True, "\x03\xe8"]]}
               for h in (PLAIN, KEYED)
               for i, m in enumerate(("", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"))])
    t.ok(all(g["status"] == 101 and g["frames"][0][3] == "hi" and g["end"] == "eof" and
             "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in " ".join(g["head"]) and
             "xtensions" not in " ".join(g["head"]) for g in got),
         "B17 benign twin: a right handshake is answered by the gate, without extensions", str(got))
    for h in (PLAIN, KEYED):
        mine = [q for q in o[h].requests if q.path.startswith("/b17-twin")]
        t.ok(len(mine) == 2 and all(len(q.all("Sec-WebSocket-Key")) == 1 and
                                    q.get("Sec-WebSocket-Key") != "dGhlIHNhbXBsZSBub25jZQ==" and
                                    not q.get("Sec-WebSocket-Extensions") for q in mine),
             "B17 %s: the origin got a key of ours and no extension" % h)


# ---- B18: what is no agreement ----

def bad(fields, status=101, accept=True, then=b""):
    def plan(evil, conn, req):
        head = [(n, v) for n, v in fields]
        if accept:
            head.append(("Sec-WebSocket-Accept", evil.accept(req)))
        conn.head(status, head)
        conn.send(then)
        evil.rest(conn, req.path, 4)
    return plan


YES = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
B18 = {
    "/no-accept": bad(YES, accept=False),
    "/wrong-accept": bad(YES + [("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")], accept=False),
    "/two-accepts": bad(YES + [("Sec-WebSocket-Accept", "x")]),
    "/no-upgrade": bad(YES[:1]),
    "/no-connection": bad(YES[1:]),
    "/h2c": bad([YES[0], ("Upgrade", "h2c")]),
    "/extension": bad(YES + [("Sec-WebSocket-Extensions", "permessage-deflate")]),
    "/protocol": bad(YES + [("Sec-WebSocket-Protocol", "mqtt")]),
    "/with-length": bad(YES + [("Content-Length", "5")], then=b"hello"),
}


def answer_200(evil, conn, req):
    conn.head(200, YES + [("Content-Length", "2"), ("Sec-WebSocket-Accept", evil.accept(req))])
    conn.send(b"ok" + frame(1, b"tunnelled"))
    evil.rest(conn, req.path, 3)


def b18(box, o, run, t):
    for host in (PLAIN, KEYED):
        for got in run([{"name": p, "host": host, "path": p, "early": [frame(1, b"x").hex()],
                         "steps": [[1, True, "tunnel?"]]} for p in B18]):
            t.ok(got["status"] == 502 and "Durward-Denied: upstream_protocol" in " ".join(got["head"]),
                 "B18 %s: %s is 502" % (host, got["name"]), str(got))
        got, = run([{"name": "plain", "host": host, "path": "/unasked", "fields": "X-A: b\r\n"}])
        t.ok(got["status"] == 502, "B18 %s: a 101 to a plain request is 502" % host, str(got))
        early = frame(1, b"SMUGGLED").hex()
        got, = run([{"name": "200", "host": host, "path": "/answer-200", "early": [early]}])
        t.ok(got["status"] == 200 and got["rest"] == "ok" and got["end"] == "eof" and
             "pgrade" not in " ".join(got["head"]),
             "B18 %s: a 200 to an upgrade is a reply like others, and no tunnel" % host, str(got))
        evil = o[host].evil
        late = [p for p in list(B18) + ["/unasked", "/answer-200"] if evil.got.get(p)]
        t.eq(late, [], "B18 %s: no byte followed the request to such an origin" % host)


# ---- C20: frames ----

CLIENT_FAULTS = {  # name: (hex, close code)
    "unmasked": ("810568656c6c6f", 1002), "RSV1 (deflate)": ("c1850000000068656c6c6f", 1002),
    "RSV2": ("a18100000000" + "61", 1002), "opcode 3": ("83810000000061", 1002),
    "opcode 11": ("8b8000000000", 1002), "continuation of nothing": ("808000000000", 1002),
    "a message in a message": ("018100000000" + "61" + "818100000000" + "62", 1002),
    "fragmented ping": ("098000000000", 1002), "long ping": ("89fe007e00000000", 1002),
    "length not shortest": ("82fe0001000000" + "0061", 1002),
    "length with the top bit": ("82ff8000000000000001" + "00000000", 1002),
    "close of one byte": ("88810000000003", 1002), "close 1006": ("88820000000003ee", 1002),
    "text not UTF-8": ("818100000000ff", 1007), "raw HTTP": (
        b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n".hex(), 1002),
}


def first_back(evil, conn, req):
    """Sends the first message back, and nothing after that: who closes a connection with bytes unread resets it, and the
    kernel then throws away what had come before."""
    evil.agree(conn, req)
    got = evil.got.setdefault(req.path, bytearray())
    while len(got) < 2 or len(got) < 6 + (got[1] & 0x7f):
        conn.fill()
        got += conn._buf
        conn._buf = b""
    (op, fin, data), = unmask(bytes(got[:6 + (got[1] & 0x7f)]))
    conn.send(frame(op, data, fin))
    evil.rest(conn, req.path)


def client_faults(box, o, run, t, d):
    for host in (PLAIN, KEYED):
        smuggled = o[host].count(path="/smuggled")
        for got in run([{"name": n, "host": host, "path": "/f-" + str(i), "steps": [
                [1, True, "before"], {"raw": x}]} for i, (n, (x, _)) in enumerate(CLIENT_FAULTS.items())]):
            code = CLIENT_FAULTS[got["name"]][1]
            t.ok(got["status"] == 101 and got.get("close") == code and got["end"] == "eof",
                 "C20 %s: %s is closed with %d" % (host, got["name"], code), str(got))
        for i, (name, (x, code)) in enumerate(CLIENT_FAULTS.items()):
            part = [(1, False, b"a")] if name == "a message in a message" else []
            tap.wait_for(lambda p="/f-%d" % i, n=len(part): len(unmask_safe(o[host].evil.got.get(p, b""))) > 1 + n, 10)
            seen = unmask_safe(o[host].evil.got.get("/f-%d" % i, b""))
            t.ok(seen == [(1, True, b"before")] + part + [(8, True, code.to_bytes(2, "big"))],
                 "C20 %s: %s: the origin sees what was right, and a close frame" % (host, name), str(seen),
                 str(o[host].evil.ended.get("/f-%d" % i)))
        t.eq(o[host].count(path="/smuggled"), smuggled, "C20 %s: no request came out of it" % host)
        ids = {r["id"] for r in d.kinds("admitted", authority=host) if r["path"].startswith("/f-")}
        ended = tap.wait_for(lambda: (lambda e: e if len(e) == len(ids) else None)(
            [r for r in d.kinds("aborted") if r["id"] in ids]), 5)
        t.ok(ended and all((r["code"], r["close"]) in (
            ("websocket_protocol", 1002), ("websocket_text", 1007)) for r in ended),
             "C20 %s: each is recorded as aborted, with its code" % host, str(ended), str(len(ids)))


def unmask_safe(data):
    try:
        return unmask(bytes(data))
    except (AssertionError, IndexError) as e:
        return [repr(e)]


ORIGIN_FAULTS = {"masked": bytes.fromhex("818500000000") + b"hello", "rsv": b"\xc1\x01a",
                 "opcode": b"\x84\0", "orphan": b"\x80\0", "badutf8": frame(1, b"\xed\xa0\x80"),
                 "longping": b"\x89\x7e\0\x7e" + b"x" * 126, "http": b"HTTP/1.1 200 OK\r\n\r\n",
                 "long": b"\x82\x7e\0\x01a"}


def faulty(data):
    def plan(evil, conn, req):
        evil.agree(conn, req)
        conn.send(frame(1, b"before") + data + frame(1, b"after"))
        evil.rest(conn, req.path)
    return plan


def origin_faults(box, o, run, t):
    for host in (PLAIN, KEYED):
        for got in run([{"name": n, "host": host, "path": "/of-" + n} for n in ORIGIN_FAULTS]):
            code = 1007 if got["name"] == "badutf8" else 1002
            t.ok([f[3] for f in got["frames"][:1]] == ["before"] and len(got["frames"]) == 2 and
                 got.get("close") == code, "C20 %s: an origin's %s frame is closed with %d" % (
                     host, got["name"], code), str(got))


# ---- C20: placeholders ----

def placeholders(box, o, run, t, d, mine, foreign):
    text = '{"auth": "{P}", "n": 1}'
    whole = text.replace("{P}", mine)
    n = len(mine)
    ways = {"in one message": [[1, True, text]], "in binary": [[2, True, text]],
            "in a ping": [[9, True, "{P}"]], "in a pong": [[10, True, "x{P}"]],
            "in a reason": [[8, True, "\x03\xe8{P}"]],
            "behind its own beginning": [[1, True, mine[:11] + "{P}"]],
            "byte by byte": [{"cut": list(range(1, len(whole))), "op": 1, "text": text}],
            "in small records": [{"pieces": 3, "op": 1, "text": text}],
            "behind 20000 bytes": [[2, True, "x" * 20000 + "{P}"]],
            "across the piece": [[2, True, "y" * (16384 - 20) + "{P}"]],
            "with a ping between": [[1, False, mine[:9]], [9, True, "p"], [0, True, mine[9:]]]}
    for cut in range(1, n, 3):
        ways["cut at %d" % cut] = [{"cut": [9 + cut], "op": 1, "text": text}]
    for host in (PLAIN, KEYED):
        bad = [g for g in run([{"name": k, "host": host, "path": "/p-%d" % i, "steps": v}
                               for i, (k, v) in enumerate(ways.items())])
               if g.get("close") != 1008 or g["end"] != "eof"]
        t.ok(not bad, "C20 %s: a placeholder in a message is closed with 1008, %d ways" % (
            host, len(ways)), str(bad[:3]))
        got, = run([{"name": "stranger", "host": host, "path": "/q", "steps": [[1, True, "{Q}"]]}])
        t.eq(got.get("close"), 1008, "C20 %s: so is one of another sandbox" % host)
        wire = b"".join(p for k, v in o[host].evil.got.items() if k.startswith(("/p-", "/q"))
                        for _, _, p in unmask_safe(v) if isinstance(p, bytes))
        t.ok(mine[4:].encode() not in wire and mine[:20].encode() not in wire and
             foreign[4:].encode() not in wire,
             "C20 %s: no placeholder, and not its first half, at the origin" % host)
        ids = {r["id"]: r["path"] for r in d.kinds("admitted", authority=host)}
        ends = tap.wait_for(lambda: (lambda e: e if len(e) == len(ways) + 1 else None)(
            [r for r in d.kinds("aborted") if ids.get(r["id"], "").startswith(("/p-", "/q"))]), 5) or []
        wrong = [(ids[r["id"]], r["code"], r.get("close")) for r in ends if (r["code"], r.get("close")) != (
            "cross_sandbox" if ids[r["id"]] == "/q" else "secret_blocked", 1008)]
        t.ok(ends and not wrong, "C20 %s: recorded as secret_blocked and cross_sandbox, 1008" % host, str(wrong))
        near = ["ghp_", mine[:-1][:20], mine[:30].lower(), "x" + mine[4:], "dwd_dwd_ghp_sk-", mine[:30] + "!"]
        got = run([{"name": x, "host": host, "path": "/twin%d" % i, "steps": [
            {"cut": [len(x) // 2], "op": 1, "text": x}, [8, True, "\x03\xe8"]]}
            for i, x in enumerate(near)])
        t.ok(all("".join(f[3] for f in g["frames"] if f[0] < 8) == g["name"] and g.get("close") == 1000
                 for g in got), "C20 %s benign twin: text like one passes as it is" % host,
             str([g for g in got if g.get("close") != 1000][:2]))


# ---- C20: secrets that come back ----

def reflect(secret):
    """path: what the origin sends, frame by frame."""
    s, half = secret, len(secret) // 2
    h = s.hex().encode()
    return {
        "/r-text": [frame(1, b"a " + s + b" z")], "/r-binary": [frame(2, b"\0" + s + b"\xff")],
        "/r-fragments": [frame(1, s[:half], False), frame(0, s[half:])],
        "/r-bytes": [frame(1, s[:1], False)] + [frame(0, bytes([b]), False) for b in s[1:]] +
                    [frame(0, b"", True)],
        "/r-ping-between": [frame(1, s[:half], False), frame(9, b"p"), frame(0, s[half:])],
        "/r-ping": [frame(9, s)], "/r-pong": [frame(10, b"<" + s)],
        "/r-reason": [frame(8, b"\x03\xe8" + s)],
        "/r-hex": [frame(1, h)], "/r-base64": [frame(1, base64.b64encode(s), False), frame(0, b"")],
        "/r-two": [frame(1, s), frame(2, s)],
    }


def reflecting(frames):
    def plan(evil, conn, req):
        evil.agree(conn, req)
        data = b"".join(frames)
        for i in range(0, len(data), 7):
            conn.send(data[i:i + 7])
        conn.send(b"" if frames[-1][0] == 0x88 else frame(8, b"\x03\xe8"))
        evil.rest(conn, req.path)
    return plan


def reflected(box, o, run, t, d, secret, plans, scanner):
    results = run([{"name": p, "host": KEYED, "path": p} for p in plans])
    for got in results:
        sent = b"".join(unframe(f) for f in plans[got["name"]])
        back = "".join(f[3] for f in got["frames"]).encode("latin-1")
        if got["name"] != "/r-reason":
            back = back[:-2]  # the close code
        t.ok(got["status"] == 101 and len(back) == len(sent) and b"[REDACTED:socket]" in back and
             secret not in back and not any(f[2] for f in got["frames"]),
             "C20 %s: the secret is taken out, same length" % got["name"], str(got))
    hits = len(scanner.hits)
    scanner.search(json.dumps(results), "messages")
    t.eq(scanner.hits[hits:], [], "C20 0 copies of the secret in what the client got")
    ids = {r["id"] for r in d.kinds("admitted", authority=KEYED) if r["path"].startswith("/r-")}
    ends = tap.wait_for(lambda: (lambda e: e if len(e) == len(plans) else None)(
        [r for r in d.kinds("completed", code="secret_reflected") if r["id"] in ids]), 5)
    t.ok(ends, "C20 each is recorded as secret_reflected",
         str([r for r in d.records() if r["id"] in ids and r["kind"] in ("completed", "aborted")][:4]))


def unframe(f):
    n = f[1]
    return f[4:] if n == 126 else f[2:]


def main(t):
    s = scene.Scene(t)
    secret = scan.canary("sock_")
    s.scanner.add("socket", secret)
    s.d.secret("socket", secret)
    plans = dict(B18)
    plans["/unasked"] = bad(YES)
    plans["/answer-200"] = answer_200
    plans.update({"/f-%d" % i: first_back for i in range(len(CLIENT_FAULTS))})
    plans.update({"/of-" + n: faulty(x) for n, x in ORIGIN_FAULTS.items()})
    frames = reflect(secret)
    plans.update({p: reflecting(f) for p, f in frames.items()})
    o = {}
    for host in (PLAIN, KEYED, SHUT):
        evil = Evil(plans)
        o[host] = s.add(host, script=evil.script)
        o[host].evil = evil
    s.rule(allow=PLAIN, websocket=True)
    s.rule(allow=KEYED, websocket=True, **{"with": {"bearer": "socket"}})
    s.rule(allow=SHUT)
    box = durward.Sandbox(s.d)
    _, mine, _ = box.sh("printf %s $GITHUB_TOKEN")
    foreign = s.d.run(["sh", "-c", "printf %s $GITHUB_TOKEN"], save=False).stdout
    t.ok(len(mine) == 40 and len(foreign) == 40 and mine != foreign, "two sandboxes, two placeholders")
    outputs = []

    def run(cases):
        status, out, err = box.sh("%s %s/ws_raw.py" % (durward.PYTHON, durward.INSIDE), timeout=50,
                                  env={"PLACEHOLDER": mine, "STRANGER": foreign},
                                  stdin=json.dumps(cases))
        outputs.extend([out, err])
        if status != 0:
            raise RuntimeError(err)
        return json.loads(out)

    t.part(b17, box, o, run, t)
    t.part(b18, box, o, run, t)
    t.part(client_faults, box, o, run, t, s.d)
    t.part(origin_faults, box, o, run, t)
    t.part(placeholders, box, o, run, t, s.d, mine, foreign)
    t.part(reflected, box, o, run, t, s.d, secret, frames, s.scanner)
    scan.scan_roles(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.judge([(o[KEYED], ("Authorization", "Bearer " + secret.decode())), (o[PLAIN], None),
             (s.github, s.github_credential if os.geteuid() == 0 else None)], outputs,
            "WebSocket")


tap.run(main, timeout=120)
