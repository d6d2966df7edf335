#!/usr/bin/python3 -B
"""The Model Context Protocol, message by message: what is refused is answered on a session that lives on, tools are
decided by their arguments, some are asked about, and replies show what the policy allows."""
import concurrent.futures
import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, h2, origin, scene, tap  # noqa: E402

KEYED, PLAIN, STRICT = "mcp.example.com", "open.example.com", "strict.example.com"
JSON = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
SESSION = "Mcp-Session-Id: 1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11\r\n"
TOOLS = ["read_file", "read_many", "write_file", "run_shell", "deploy"]
RULE = {
    "tools": ["read_*",
              {"name": "write_file", "arguments": {
                  "/path": {"pattern": "/work/**"}, "/mode": {"one_of": ["a", "w"], "absent": True},
                  "/size": {"range": [0, 100], "absent": True}, "/force": {"absent": True},
                  "/options/deep/0": {"equals": 7, "absent": True}}},
              {"name": "deploy", "ask": True}, {"name": "mail", "calls": ["20/h", "18/h per sandbox"]}],
    "methods": ["logging/*"], "resources": ["file:///docs/**", "db://one"], "prompts": ["greet*"],
    "server": {"sampling": "refuse"},
}


def message(method, number=1, **params):
    m = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    if number is None:
        del m["id"]
    return m


def call(name, number=1, **arguments):
    return message("tools/call", number, name=name, arguments=arguments)


def event(m, number=1):
    return b"event: message\r\nid: %d\r\ndata: %s\r\n\r\n" % (number, json.dumps(m).encode())


LISTED = {"tools": [{"name": n, "description": "\u2028 %s 0.1" % n, "inputSchema": {"type": "object", "maximum": 0.1}}
                    for n in TOOLS], "nextCursor": "x"}
SAMPLING = message("sampling/createMessage", 5, messages=[{"role": "user", "content": {"type": "text", "text": "odd"}}])


class Server:
    """One that answers what it is asked; /json: as JSON, else as events."""

    def __init__(self):
        self.raw = None  # in place of the next reply: (type, body)
        self.status = 200  # of that
        self.go = threading.Event()  # a stream of the older transport ends

    def __call__(self, req, conn):
        if self.raw:
            (kinds, body), self.raw = self.raw, None
            status, self.status = self.status, 200
            head = [("Content-Type", kind) for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind]
            conn.head(status, head + [("Content-Length", str(len(body)))])
            return conn.send(body)
        if req.path == "/sse":
            return self.older(conn)
        if req.method == "GET":
            return self.events(conn, [event(SAMPLING), event({"jsonrpc": "2.0", "id": 1, "result": LISTED}, 2)])
        if req.method == "DELETE":
            return conn.reply(req, 204)
        if req.method == "OPTIONS":
            return conn.reply(req, 200, b"OK", [("Access-Control-Allow-Methods", "POST")], kind="text/plain")
        said = json.loads(req.body)
        answers = [self.answer(m) for m in (said if isinstance(said, list) else [said]) if "id" in m and "method" in m]
        if not answers:
            return conn.reply(req, 202)
        if req.path == "/json":
            return conn.reply(req, 200, json.dumps(answers if isinstance(said, list) else answers[0]).encode())
        return self.events(conn, [event(SAMPLING)] + [event(a, 2 + i) for i, a in enumerate(answers)])

    def older(self, conn):
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        conn.chunk(b"event: endpoint\r\ndata: /messages?session=1\r\n\r\n")
        self.go.wait(30)
        self.go.clear()
        conn.chunk(b"")

    @staticmethod
    def answer(m):
        result = LISTED if m["method"] == "tools/list" else \
            {"resources": [{"uri": "file:///docs/a", "name": "a"}, {"uri": "file:///etc/b", "name": "b"}]} \
            if m["method"] == "resources/list" else {"content": [{"type": "text", "text": "done"}]}
        return {"jsonrpc": "2.0", "id": m["id"], "result": result}

    @staticmethod
    def events(conn, events):
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        for e in events:
            for i in range(0, len(e), 7):  # split events
                conn.chunk(e[i:i + 7])
        conn.chunk(b"")


def post(gate, host, what, path="/mcp", fields=""):
    body = what if isinstance(what, bytes) else json.dumps(what).encode()
    return gate.get(host, path, JSON + SESSION + fields, "POST", body=body)


def said(r):
    """The messages of a reply."""
    text = r.body.decode()
    if "event-stream" in (r.get("content-type") or ""):
        return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
    got = json.loads(text)
    return got if isinstance(got, list) else [got]


PASSES = (
    call("read_file", path="/etc/passwd"), call("read_many"), call("write_file", path="/work/a/b"),
    call("write_file", path="/work/x", mode="w", size=100, options={"deep": [7, 8]}), message("ping", "a"),
    message("logging/setLevel", level="debug"), message("resources/read", uri="file:///docs/a/b.md"),
    message("resources/read", uri="db://one"), message("resources/list"), message("prompts/get", name="greeting"),
    message("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}),
    [call("read_file", 1), message("ping", "two")],
)
REFUSED = (
    (call("run_shell", cmd="zebra"), "tools/call run_shell (cmd)"),
    (call("Read_file"), "tools/call Read_file"),
    (call("write_file"), "tools/call write_file: /path"),
    (call("write_file", path="/work/../zebra"), "tools/call write_file: /path (path)"),
    (call("write_file", path="/work/%2e%2e/zebra"), "tools/call write_file: /path (path)"),
    (call("write_file", path=["/work/zebra"]), "tools/call write_file: /path (path)"),
    (call("write_file", path="/work/zebra", Path="/etc/zebra"), "tools/call write_file: /path (path, Path)"),
    (call("write_file", path="/work/zebra", mode="x"), "tools/call write_file: /mode (path, mode)"),
    (call("write_file", path="/work/zebra", size=101), "tools/call write_file: /size (path, size)"),
    (call("write_file", path="/work/zebra", size="1"), "tools/call write_file: /size (path, size)"),
    (call("write_file", path="/work/zebra", size=2 ** 53 + 1), "tools/call write_file: /size (path, size)"),
    (call("write_file", path="/work/zebra", force=None), "tools/call write_file: /force (path, force)"),
    (call("write_file", path="/work/zebra", options={"deep": [8]}),
     "tools/call write_file: /options/deep/0 (path, options)"),
    (call("write_file", path="/work/zebra", options={"Deep": [8]}),
     "tools/call write_file: /options/deep/0 (path, options)"),
    (message("resources/read", uri="file:///docs/../zebra"), "resources/read file:///docs/../zebra"),
    (message("prompts/get", name="other"), "prompts/get other"),
    (message("completion/complete"), "completion/complete"), (message("Tools/Call", name="x"), "Tools/Call"),
)
AMBIGUOUS = (  # no id is answered
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","name":"run_shell"}}', 400),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"run_shell"}}', 403),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400), (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', 400),
    (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_file"}}', 403),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', 403), (b'{"id":1,"method":"ping"}', 403),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 403), (b'[]', 403),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%s1%s}' % (b'{"a":' * 70, b'}' * 70), 400),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', 400), (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', 400),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}', 400),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\u0000"}}', 400),
)


def requests(t, s, gate, host, server):
    for m in PASSES:
        seen = len(server.requests)
        r = post(gate, host, m)
        t.ok(r.status == 200 and r.code is None and len(server.requests) == seen + 1 and
             json.loads(server.requests[-1].body) == m, "%s: %s passes" % (host, json.dumps(m)[:90]), r.raw, r.body)
    for m, detail in REFUSED:
        seen = len(server.requests)
        r = post(gate, host, m)
        got = said(r)[0]
        t.ok(r.status == 200 and r.code == "mcp" and got["id"] == 1 and got["error"]["code"] == -31403 and
             b"zebra" not in r.body and len(server.requests) == seen, "%s: refused: %s" % (host, detail), r.raw, r.body)
        rec = s.d.wait_records(1, "denied", code="mcp")[-1]
        t.eq(rec.get("detail"), detail, "on record with names alone")
    for body, status in AMBIGUOUS:
        seen = len(server.requests)
        r = post(gate, host, body)
        t.ok(r.status == status and said(r)[0].get("id", 0) in (None, 1) and len(server.requests) == seen,
             "%s: ambiguous: %s" % (host, body[:70]), r.raw, r.body)


def fields(t, gate, server):
    """Mcp-Method and Mcp-Name, by which others on the way may go, say what the message says."""
    for text, good in (("Mcp-Method: tools/call\r\nMcp-Name: read_file\r\n", True), ("Mcp-Method: tools/call\r\n", True),
                       ("Mcp-Name: =?base64?cmVhZF9maWxl?=\r\n", True), ("Mcp-Method: tools/list\r\n", False),
                       ("Mcp-Name: run_shell\r\n", False), ("Mcp-Name: =?base64?cnVuX3NoZWxs?=\r\n", False),
                       ("Mcp-Name: read_file\r\nMcp-Name: run_shell\r\n", False)):
        seen = len(server.requests)
        r = post(gate, KEYED, call("read_file"), fields=text)
        t.ok(r.status == 200 and r.code == (None if good else "mcp") and len(server.requests) == seen + good,
             "%r: %s" % (text, "passes" if good else "refused"), r.raw, r.body)
    r = post(gate, KEYED, [call("read_file")], fields="Mcp-Method: tools/call\r\n")
    t.eq(r.code, "mcp", "no such field beside a batch")
    params(t, gate, server)


def params(t, gate, server):
    """Mcp-Param-NAME repeats an argument for who is on the way: it says what some argument says, and of those that a rule
    decides by that name."""
    read, write, field = call("read_file", path="/x", n=7, deep={"tenant_id": "a", "yes": True}), "/work/a", "Mcp-Param-%s: %s\r\n"
    many = dict({"p%d" % i: "1" for i in range(17)})
    rows = [(read, field % ("Path", "/x"), True), (read, field % ("Path", "=?base64?L3g=?="), True), (read, field % ("N", "7"), True),
            (read, field % ("Tenant-Id", "a") + field % ("TenantId", "a") + field % ("Yes", "true"), True),
            (read, field % ("Folder", "/x"), True), (read, field % ("Path", "/zebra"), False), (read, field % ("Path", ""), False),
            (read, field % ("Path", "/x") * 2, False), (message("prompts/get", name="greeting", arguments={"x": "a"}), field % ("X", "a"), False),
            (message("tools/list"), field % ("X", "1"), False), ([read], field % ("Path", "/x"), False),
            (call("read_file", **many), "".join(field % (i, "1") for i in range(16)), True),
            (call("read_file", **many), "".join(field % (i, "1") for i in range(17)), False)]
    for at, other in (({}, False), ({"deep": {"path": "/zebra"}}, False), ({"note": "/zebra"}, True)):
        rows += [(call("write_file", path=write, **at), field % ("Path", write), other or not at),
                 (call("write_file", path=write, **at), field % ("Path", "/zebra"), False),
                 (call("write_file", path=write, **at), field % ("Folder", "/zebra"), False)]
    rows += [(call("write_file", path=write, note="n"), field % ("Note", "n") + field % ("Path", write), True)]
    for m, text, good in rows:
        seen = len(server.requests)
        r = post(gate, KEYED, m, fields=text)
        one = m if isinstance(m, dict) else m[0]
        t.ok(r.status == 200 and r.code == (None if good else "mcp") and len(server.requests) == seen + good, "%s%s, %r: %s" % (
            one["method"], " " + one["params"]["name"] if "name" in one["params"] else "", text, "passes" if good else "refused"),
             r.raw, r.body, json.dumps(m))


def batch(t, gate, server):
    seen = len(server.requests)
    r = post(gate, KEYED, [call("read_file", "one"), message("notifications/cancelled", None), call("run_shell", 2),
                           message("ping", 3)])
    got = said(r)
    t.ok(r.status == 200 and [m["id"] for m in got] == ["one", 2, 3] and all("error" in m for m in got) and
         len(server.requests) == seen, "a batch with one refused message: an error for each request in it", r.body)
    r = post(gate, KEYED, [call("read_file", i) for i in range(65)])
    t.eq((r.status, r.code), (413, "too_large_to_inspect"), "a batch of 65 messages is not read")
    r = post(gate, KEYED, message("notifications/initialized", None))
    t.eq(r.status, 202, "a notification passes")
    r = post(gate, KEYED, {"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}})
    t.eq(r.status, 202, "and an answer to what the server asked")


def replies(t, gate, host, server):
    allowed = ["read_file", "read_many", "write_file", "deploy"]
    for path in ("/mcp", "/json"):
        got = said(post(gate, host, message("tools/list"), path))[-1]
        t.ok([x["name"] for x in got["result"]["tools"]] == allowed and got["result"]["nextCursor"] == "x" and
             got["result"]["tools"][0] == LISTED["tools"][0], "%s%s: tools/list shows what may be called" % (host, path),
             str(got))
        got = said(post(gate, host, message("resources/list"), path))[-1]
        t.eq([x["uri"] for x in got["result"]["resources"]], ["file:///docs/a"], "and so does resources/list")
    r = gate.get(host, "/mcp", "Accept: text/event-stream\r\nLast-Event-ID: 7\r\n" + SESSION)
    got = said(r)
    t.ok(r.status == 200 and server.requests[-1].get("last-event-id") == "7" and got[0]["method"] == "durward/refused" and
         got[0]["id"] == 5 and b"odd" not in r.body and [x["name"] for x in got[1]["result"]["tools"]] == allowed,
         "%s: a stream that is taken up again is cut as well, and a refused request of the server is none that a client "
         "knows" % host, r.raw, r.body)
    t.eq(gate.get(host, "/mcp", SESSION, "DELETE").status, 204, "DELETE ends the session")
    r = gate.get(host, "/mcp", "Origin: https://page.example.com\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS")
    t.eq((r.status, r.body, r.get("access-control-allow-methods")), (200, b"OK", "POST"), "%s: a browser may ask what it may send" % host)
    t.eq(gate.get(host, "/mcp", "", "PUT").code, "mcp", "%s: another method needs a message" % host)


def doubtful_types(t, gate, handler):
    """What some client reads as messages, whatever else its type says, passes as messages or not at all."""
    listed = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "run_shell"}]}}).encode()
    sampling = json.dumps(SAMPLING).encode()
    wide = "data: ".encode("utf-16-le") + sampling.decode().encode("utf-16-le") + "\n\n".encode("utf-16-le")
    for kind, body in (("application/json; charset=utf-16", listed), ("application/jsonx", listed),
                       ("application/json, text/plain", listed), ("text/event-stream, x", b"data: " + sampling + b"\n\n"),
                       ("text/event-stream; charset=utf-16le", wide), ("text/event-streams", b"data: {}\n\n"),
                       (["application/json", "application/json"], listed), (["text/plain", "application/json"], listed)):
        handler.raw = (kind, body)
        r = post(gate, KEYED, message("ping"))
        t.eq((r.status, r.code), (502, "mcp_reply"), "a reply of type %s, which clients read differently, is none" % kind)
    for kind in ("text/plain", "text/html; charset=utf-8", None):
        handler.raw = (kind, b"data: " + sampling + b"\n\n")
        r = gate.get(KEYED, "/mcp", "Accept: text/event-stream\r\n" + SESSION)
        t.eq((r.status, r.code), (502, "mcp_reply"), "nor is one of type %s where events were asked for" % kind)
        handler.raw = (kind, b"Accepted")
        r = post(gate, KEYED, message("notifications/initialized", None))
        t.eq((r.status, r.body), (200, b"Accepted"), "to a POST a reply of type %s passes" % kind)
    handler.raw = ("text/event-stream", b"event: ping\ndata: " + sampling + b"\n\nevent: x\ndata:\ndata: \t[" + listed + b"]\n\n")
    r = post(gate, KEYED, message("ping"))
    t.ok(r.status == 200 and b"odd" not in r.body and b"durward/refused" in r.body and b"run_shell" not in r.body and
         r.body.startswith(b"event: ping\n"), "an event of another type is read as a message is", r.raw, r.body)


def asks_otherwise(t, gate, handler):
    """A server asks its client by an error, or by what it tells of a task."""
    where = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "message": "go", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e", "url": "https://odd.example.net/"}]}}}
    task = {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"taskId": "t", "status": "input_required",
            "inputRequests": {"k": {"method": "elicitation/create", "params": {"message": "odd"}}}}}
    for host, passes in ((STRICT, False), (KEYED, True)):
        for what in (where, dict(where, error=dict(where["error"], code=-32042.0)), task):
            handler.raw = ("application/json", json.dumps(what).encode())
            r = post(gate, host, message("ping"))
            t.eq((r.status, b"odd" in r.body), (200, passes), "%s: what asks for an elicitation otherwise %s: %s" % (
                host, "passes" if passes else "is taken away", json.dumps(what)[:70]))
    for error in ({"code": -32601, "message": "odd"}, {"message": "odd"}, None):
        what = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error, "odd": 1}).encode()
        handler.raw = ("application/json", what)
        t.eq(post(gate, STRICT, message("ping")).body, what, "%s: another error passes: %s" % (STRICT, error))
    handler.raw = ("application/json", b'{"jsonrpc":"2.0","id":1,"error":{"code":"-32042","data":{}}}')
    r = post(gate, STRICT, message("ping"))
    t.eq((r.status, r.code), (502, "mcp_reply"), "%s: an error whose code some reader takes for a number is none" % STRICT)


def failed_replies(t, gate, handler):
    """Clients read an error in a reply of any status (2026-07-28): so are these cut, and what is no message has no body."""
    where = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "message": "go", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e", "url": "https://odd.example.net/"}]}}}).encode()
    listed = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "run_shell"}, {"name": "read_file"}]}}).encode()
    events = b"data: " + json.dumps(message("elicitation/create", 5, message="odd")).encode() + b"\n\n"
    plain = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"},"odd":1}'
    for status in (400, 401, 404, 500, 301):
        for kind, what in (("application/json", where), ("application/problem+json", where), ("application/json", listed),
                           ("text/event-stream", events)):
            handler.raw, handler.status = (kind, what), status
            r = post(gate, STRICT, message("ping"))
            t.ok(r.status == status and b"odd" not in r.body and b"run_shell" not in r.body and len(r.body) > 2,
                 "status %d, %s: what the server may not say is taken away: %s" % (status, kind, what[:40]), r.raw, r.body)
        for kind, what, want in (("application/json", plain, plain), ("application/problem+json", b'{"title":"no"}', b'{"title":"no"}'),
                                 ("application/json", b'{"error":"invalid_token"}', b'{"error":"invalid_token"}'),
                                 ("text/plain", b"no such session", b"no such session"), (None, b"{", b"{"),
                                 ("application/json", b"Unauthorized", b""), ("application/json", b'"Not Found"', b""),
                                 ("application/json", b'{"error":{"code":1,"code":-32042}}', b"")):
            handler.raw, handler.status = (kind, what), status
            r = post(gate, STRICT, message("ping"))
            t.eq((r.status, r.body), (status, want), "status %d, %s: %s %s" % (
                status, kind, what, "passes" if want else "is no message, and goes without its body"))
    handler.raw, handler.status = ("text/plain", b"Method Not Allowed"), 405
    r = gate.get(STRICT, "/mcp", "Accept: text/event-stream\r\n" + SESSION)
    t.eq((r.status, r.body), (405, b"Method Not Allowed"), "a server without a stream for GET says so")


def odd_replies(t, gate, handler):
    good = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"x": "\u2028", "n": 0.1, "big": 2 ** 60}},
                      ensure_ascii=False).encode()
    for kind, body, want in (
            ("application/json", good, good),
            ("text/event-stream", b": hello\n\nid: 1\ndata:\n\nevent: endpoint\ndata: /messages?x\n\n",
             b": hello\n\nid: 1\ndata:\n\nevent: endpoint\ndata: /messages?x\n\n"),
            ("text/event-stream", b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata:\"result\":{}}\n\ndata: {\"half",
             b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata:\"result\":{}}\n\n"),
            ("text/event-stream", b"id: 9\ndata: " + good + b"\n\n",
             b"id: 9\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\\u2028\",\"n\":0.10000000000000001,"
             b"\"big\":1152921504606846976}}\n\n"),
            ("text/plain", b"{\"tools\":[", b"{\"tools\":["),
            ("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"k":{"method":"roots/list"}}}}',
             b'{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"k":{"method":"roots/list"}}}}'),
            ("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"k":{"method":'
             b'"sampling/createMessage","params":{"odd":1}}}}}',
             b'{"jsonrpc":"2.0","id":1,"error":{"code":-31403,"message":"Durward denied this request: the policy does '
             b'not let the server ask its client for this"}}'),
            ("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}', None),
            ("application/json", b'{"jsonrpc":"2.0","id":1,"Result":{"tools":[]}}', None),
            ("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"Tools":[{"name":"run_shell"}]}}', None),
            ("application/json", b'{"jsonrpc":"2.0","id":1,"method":"Sampling/createmessage","params":{}}', None)):
        handler.raw = (kind, body)
        r = post(gate, KEYED, message("ping"))
        ok = r.body == want and r.status == 200 if want is not None else (r.status, r.code) == (502, "mcp_reply")
        t.ok(ok, "a reply %s %s: %s" % (kind, body[:60], "as it came, or what it means" if want else "is not passed on"),
             r.raw, r.body)
    doubtful_types(t, gate, handler)
    for text in (b"data: {}\rdata: x\n\n", b"\xef\xbb\xbfdata: {}\n\n", b"data: x\n\n", b"event: a\xe2\x80\xa8b\ndata: x\n\n"):
        handler.raw = ("text/event-stream", b"data: {}\n\n" * 0 + text)
        try:
            r = post(gate, KEYED, message("ping"))
            bad = r.body
        except (OSError, ValueError, AssertionError) as e:
            bad = str(e).encode()
        t.ok(text not in bad, "events %r do not pass" % text, bad)
    handler.raw = ("application/json", b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + b"y" * (9 << 20) + b'"}}')
    r = post(gate, KEYED, message("ping"))
    t.eq((r.status, r.code), (502, "mcp_reply_too_large"), "a message of 9 MiB is none")
    large = b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + b"y" * (6 << 20) + b'"}}'
    handler.raw = ("application/json", large)
    t.ok(post(gate, KEYED, message("ping")).body == large, "one of 6 MiB passes")
    handler.raw = ("text/event-stream", b"data: " + large + b"\n\n")
    t.ok(post(gate, KEYED, message("ping")).body == b"data: " + large + b"\n\n", "as an event, too")


def asked(t, s, gate, server):
    """A call of one tool is held, and the others go on; whoever is asked sees its name, and no value."""
    client = api.Api(s.d.socket)
    for verdict, want in (("allow", None), ("deny", "approval_denied")):
        seen, got = len(server.requests), []
        thread = threading.Thread(target=lambda: got.append(post(gate, KEYED, call("deploy", 9, where="zebra"))))
        thread.start()
        one = tap.wait_for(lambda: client.ask("GET", "/v1/approvals")["approvals"], 8)[0]
        t.ok("tools/call deploy (where)" in one["rule"] and "zebra" not in json.dumps(one), "somebody is asked", str(one))
        t.ok(post(gate, KEYED, call("read_file")).code is None, "meanwhile another tool is called")
        client.ask("POST", "/v1/approvals/%s/%s" % (one["id"], verdict))
        thread.join(20)
        r = got[0]
        t.ok(r.status == 200 and r.code == want and said(r)[-1]["id"] == 9 and
             len(server.requests) == seen + (1 if want else 2), "%s: %s" % (verdict, want), r.raw, r.body)


def changed(t, s, gate, server):
    """What was asked about is refused by the policy of now, though the rule reads the same."""
    client, seen, got = api.Api(s.d.socket), len(server.requests), []
    thread = threading.Thread(target=lambda: got.append(post(gate, KEYED, call("deploy", 9))))
    thread.start()
    one = tap.wait_for(lambda: client.ask("GET", "/v1/approvals")["approvals"], 8)[0]
    rule = next(r for r in s.rules if r.get("allow") == KEYED)
    rule["mcp"] = dict(RULE, tools=["read_*"])
    s.d.save()
    t.eq(s.d.command("reload", "--socket", s.d.socket).returncode, 0, "reload")
    client.ask("POST", "/v1/approvals/%s/allow" % one["id"])
    thread.join(20)
    t.ok(got[0].code == "policy_changed" and said(got[0])[0]["id"] == 9 and len(server.requests) == seen,
         "a policy that changed meanwhile", got[0].raw, got[0].body)


def limited(t, s, address, server):
    """Calls of a tool with a limit: 64 at once get as many as it has, on a session that lives on; of each sandbox or of all."""
    client = api.Api(s.d.socket)
    tokens = [client.ask("POST", "/v1/identities", {"policy": "coder"})["token"] for _ in range(2)]
    gates = [s.gate(address, token="sandbox:" + x, timeout=40) for x in tokens]
    seen = len(server.requests)
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        got = list(pool.map(lambda i: post(gates[0], KEYED, call("mail", i, to="zebra")), range(64)))
    codes = [r.code for r in got]
    t.eq((codes.count(None), codes.count("budget")), (18, 46), "64 at once: those that one sandbox has")
    t.eq([said(r)[-1]["id"] for r in got], list(range(64)), "each has an answer to its id")
    t.ok(all(r.status == 200 for r in got) and len(server.requests) == seen + 18, "no other reached the server")
    rec = s.d.wait_records(1, "denied", code="budget")[-1]
    t.eq(rec.get("detail"), "tools/call mail (to): requests 20/h, requests 18/h per sandbox", "on record with the tool and its limits")
    r = post(gates[0], KEYED, [call("mail", 1), call("mail", 2)])
    t.eq([r.code, len(said(r))], ["mcp", 2], "two in a batch are refused")
    codes = [post(gates[1], KEYED, call("mail", i)).code for i in range(4)]
    t.eq(codes, [None, None, "budget", "budget"], "another sandbox has what is left of all")
    t.ok(post(gates[0], KEYED, call("read_file")).code is None, "other tools are called still")
    t.ok(post(gates[0], PLAIN, call("mail")).code is None, "and the same tool of another rule")


def older(t, s, address, handler, server):
    """HTTP+SSE: what a POST is answered its client does not read, so a refusal stands among the events of its stream."""
    client = api.Api(s.d.socket)
    gates = [s.gate(address, token="sandbox:" + client.ask("POST", "/v1/identities", {"policy": "coder"})["token"], timeout=40)
             for _ in range(2)]

    def until(st, mark):
        got = b""
        while mark not in got:
            got += st.sock.recv(65536)
        return got
    with gates[0].tls(KEYED) as st:
        st.send("GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n" % KEYED)
        until(st, b"data: /messages?session=1\r\n\r\n")
        seen = len(server.requests)
        r = post(gates[1], KEYED, call("run_shell", 6), path="/messages?session=1")
        t.eq((r.status, said(r)[0]["id"]), (200, 6), "another sandbox's refusal is in its own reply")
        r = post(gates[0], KEYED, call("run_shell", 7), path="/messages?session=2")
        t.eq((r.status, said(r)[0]["id"]), (200, 7), "and so is one of another session")
        r = post(gates[0], KEYED, call("run_shell", 8), path="/messages?session=1")
        t.eq((r.status, r.body, (r.get("durward-denied") or "")[:4]), (202, b"", "mcp "), "what is posted for the stream is accepted")
        got = until(st, b"\n\n")
        t.ok(b"event: message\ndata: {" in got and b'"id":8' in got and b"-31403" in got and b'"id":6' not in got and b'"id":7' not in got,
             "and the refusal is an event of it", got)
        t.eq(len(server.requests), seen, "none reached the server")
        r = post(gates[0], KEYED, call("read_file", 9), path="/messages?session=1")
        t.eq((r.status, len(server.requests)), (200, seen + 1), "another goes there")
        handler.go.set()
        until(st, b"0\r\n\r\n")
    h2.needed()
    with h2.H2(gates[0], KEYED, timeout=20) as c:
        stream = c.open(c.fields("/sse"))
        c.until(lambda: b"session=1" in c.answers[stream].body)
        kind = [("content-type", "application/json")]
        for number in (11, 12):
            other = c.open(c.fields("/messages?session=1", "POST") + kind, end=False)
            c.frame(0, 1, other, json.dumps(call("run_shell", number)).encode())
            t.eq(c.answer(other).status, 202, "HTTP/2: it is accepted on the same connection")
            c.until(lambda: b'"id":%d' % number in c.answers[stream].body)
            t.ok(b'"id":%d' % number in c.answers[stream].body and not c.answers[stream].over, "HTTP/2: and told while the stream lives on")
        handler.go.set()
        t.ok(c.answer(stream).ended, "HTTP/2: which ends as it should")
    r = post(gates[0], KEYED, call("run_shell", 10), path="/messages?session=1")
    t.eq((r.status, said(r)[0]["id"]), (200, 10), "where the stream has ended, it is in the reply")


def as_result(t, gate):
    r = post(gate, PLAIN, call("run_shell", "x1"), "/result")
    got = said(r)[0]
    t.ok(r.status == 200 and r.code == "mcp" and got["id"] == "x1" and got["result"]["isError"], "a refusal as a result",
         r.body)
    r = post(gate, PLAIN, message("completion/complete", 2), "/result")
    t.ok(r.code == "mcp" and "error" in said(r)[0], "of tools/call alone", r.body)


def echoed(t, s, gate, handler):
    """A server that names a tool after its credential gets it neither past the gate nor into the log."""
    before = len(s.d.kinds("completed"))
    name = "read_" + s.openai_secret.decode()
    handler.raw = ("application/json", json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
        {"name": name, "inputSchema": {"type": "object"}}, {"name": "read_other", "inputSchema": {"type": "object"}}]}}).encode())
    r = post(gate, KEYED, message("tools/list"), path="/echo")
    t.ok(s.openai_secret not in r.body, "a tool's name with the credential does not pass", str(r.status))
    seen = tap.wait_for(lambda: [x["detail"] for x in s.d.kinds("completed")[before:] if "(withheld)" in x.get("detail", "")], 10, 0.1)
    t.ok(seen and "read_other" in seen[0] and name not in seen[0], "and the log has its hash alone", str(s.d.kinds("completed")[-1:])[:600])


def main(t):
    s = scene.Scene(t)
    key = ("X-Api-Key", s.openai_secret.decode())
    handler = Server()
    servers = {KEYED: s.add(KEYED, origin.needs(key, handler)), PLAIN: s.add(PLAIN, Server()),
               STRICT: s.add(STRICT, handler)}
    s.rule(allow=KEYED, mcp=RULE, **{"with": {"header": {"x-api-key": "openai"}}})
    s.rule(allow=PLAIN + "/result", mcp=dict(RULE, on_refused="result"))
    s.rule(allow=PLAIN, mcp=RULE)
    s.rule(allow=STRICT, mcp=dict(RULE, server={"elicitation": "refuse"}))
    address, tokened = s.listener(), s.listener(None)
    s.d.serve()
    gate = s.gate(address)
    for host in (KEYED, PLAIN):
        t.part(requests, t, s, gate, host, servers[host])
        t.part(replies, t, gate, host, servers[host])
    t.part(fields, t, gate, servers[KEYED])
    t.part(batch, t, gate, servers[KEYED])
    t.part(odd_replies, t, gate, handler)
    t.part(asks_otherwise, t, gate, handler)
    t.part(failed_replies, t, gate, handler)
    t.part(as_result, t, gate)
    t.part(limited, t, s, tokened, servers[KEYED])
    t.part(older, t, s, tokened, handler, servers[KEYED])
    t.part(asked, t, s, gate, servers[KEYED])
    t.part(changed, t, s, gate, servers[KEYED])
    t.part(echoed, t, s, gate, handler)
    s.judge([(servers[KEYED], key), (servers[PLAIN], None), (servers[STRICT], None)], (), "mcp", exact=False)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
