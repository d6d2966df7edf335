#!/usr/bin/python3 -B
"""A conquered gate: the process, its filter, its descriptors are the gate's, and what it says is ours.
Each row is a thing that it must not get; after each a neighbour's gate serves its client."""
import json
import os
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import person, scene, seat, seat_bed, tap, wire  # noqa: E402
from harness.seat_bed import CLUSTER, MCP, MCP_PLAIN, MODEL, MODEL_PLAIN, OTHER, SESSIONS  # noqa: E402
from harness.seat_injector_channel import Hop  # noqa: E402
from harness.wire import message, pairs, text, u8, u32, u64  # noqa: E402

MARK = "dwp" + "0" * 29


def decisions(h):
    """What the gate says is allowed, and is not."""
    h.bed.t.eq(h.works(), 200, "a request as a gate sends it is answered")
    for name, code, over in (
            ("a path that no rule has", "no_rule", dict(path="/emojis")),
            ("a denied path below an allowed one", "denied_by_rule", dict(path="/repos/acme/secret/x")),
            ("a denied path, escaped", "denied_by_rule", dict(path="/repos/acme/%73ecret/x")),
            ("a method that the rule has not", "method", dict(path="/read/x", method="POST")),
            ("DELETE where GET is allowed", "method", dict(path="/read/x", method="DELETE")),
            ("a host of no rule", "no_rule", dict(host="evil.example.com")),
            ("a subdomain of an allowed one", "no_rule", dict(host="x.api.github.com")),
            ("another policy's host", "no_rule", dict(host=OTHER)),
            ("another policy's host and secret", "no_rule", dict(host=OTHER, secret="other")),
            ("an address in place of the name", "no_rule", dict(host="127.0.0.1")),
            ("another port", "no_rule", dict(port=8443)),
            ("plaintext", "no_rule", dict(scheme=wire.HTTP, port=80)),
            ("plaintext at the port of TLS", "no_rule", dict(scheme=wire.HTTP)),
            ("another rule's secret", "grant_denied", dict(secret="openai")),
            ("another policy's secret", "grant_denied", dict(secret="other")),
            ("a secret that there is not", "grant_denied", dict(secret="none")),
            ("no secret where the rule has one", "grant_denied", dict(secret="")),
            ("a secret where the rule has none", "grant_denied", dict(host=scene.PLAIN, path="/")),
            ("an uncredentialed host by way of the injector", "grant_denied", dict(host=scene.PLAIN, path="/", secret="")),
            ("a WebSocket where the rule has none", "websocket", dict(body=wire.BODY_TUNNEL)),
            ("a condition that is not met", "header", dict(host="tenant.example.com", path="/")),
            ("a condition with another value", "header", dict(host="tenant.example.com", path="/",
                                                              fields=(("x-tenant", "b"),))),
            ("a condition met twice", "header", dict(host="tenant.example.com", path="/",
                                                     fields=(("x-tenant", "a"), ("x-tenant", "b")))),
            ("a resource that no entry has", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/team-a/secrets")),
            ("a namespace that no entry has", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/prod/pods")),
            ("a verb of the cluster's by the query", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/team-a/pods", has_query=1,
                                                                        query="w%61tch=1")),
            ("an exec where pods may be read", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/team-a/pods/x/exec", has_query=1, query="command=id")),
            ("a resource in an escape", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/team-a/pods%2fx")),
            ("to be somebody else in a cluster", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/team-a/pods",
                                                                    fields=(("impersonate-user", "admin"),))),
            ("a command that no entry has", "kubernetes", dict(host=CLUSTER, path="/api/v1/namespaces/team-a/pods/x/exec", has_query=1,
                                                               query="command=uptime&c%6fmmand=id")),
            ("placeholders for what is not captured", "grant_request", dict(blanks=[MARK]))):
        h.asks(name, code, **over)
    for name, over in (
            ("a host in capitals", dict(host="API.github.com")),
            ("a host with a dot behind", dict(host="api.github.com.")),
            ("a host with its port", dict(host="api.github.com:443")),
            ("a host behind a user", dict(host="api.github.com@evil.example.com")),
            ("an empty host", dict(host="")),
            ("a host with a line ending", dict(host="api.github.com\r\nx: y")),
            ("a host in brackets", dict(host="[::1]"))):
        h.asks(name, "grant_authority", **over)
    for name, over in (
            ("dot segments", dict(path="/x/../user")),
            ("escaped dot segments", dict(path="/x/%2e%2e/user")),
            ("an empty segment", dict(path="//user")),
            ("a path without its slash", dict(path="user")),
            ("an empty path", dict(path="")),
            ("a path with a line ending", dict(path="/user\r\nX-Evil: 1")),
            ("a path with a blank", dict(path="/user HTTP/1.1")),
            ("a path with its query", dict(path="/user#f")),
            ("an escaped zero byte", dict(path="/user%00"))):
        h.asks(name, "path_ambiguous", status=400, **over)
    for name, over in (
            ("CONNECT", dict(method="CONNECT")), ("TRACE", dict(method="TRACE")),
            ("a method in small letters", dict(method="get"))):
        h.asks(name, "method", status=405, **over)
    said = [r.get("detail") for r in h.bed.s.d.records(kind="denied", role="injector")]
    h.bed.t.ok(said and {str(x).rpartition("; ")[2] for x in said} == {"its gate let it pass"}, "what its gate let pass is on record as that",
               str(set(said)))
    h.asks("a method by a parameter", "method_override", path="/read/x", has_query=1, query="_method=DELETE")
    h.asks("a denied path, of a generation to come", "denied_by_rule", path="/gists/1", generation=99)
    h.asks("a denied path, of a generation before", "denied_by_rule", path="/gists/1", generation=0)


def slots(h):
    """The slot is the injector's alone: whatever a gate leaves in the typed fields, the origin sees
    one right credential or nothing."""
    for name, over in (
            ("a credential in another field", dict(fields=(("x-api-key", "sk-abc"),))),
            ("a credential for a proxy", dict(fields=(("proxy-authorization", "Basic eDp5"),))),
            ("a cookie", dict(fields=(("cookie", "session=1"),))),
            ("a credential in the query", dict(has_query=1, query="access_token=abc"))):
        before = h.bed.arrived()
        h.wire.send(h.request(**over))
        got, mine = h.answer(), h.bed.s.github.requests[-1:]
        clean = got == 200 and not any(mine[0].get(n) for n in ("x-api-key", "proxy-authorization", "cookie"))
        h.rows.row(name, got == (403, "foreign_credential") and h.bed.arrived() == before or
                   "query" not in over and clean, repr(got))
    for name, fields in (
            ("the slot, filled", (("authorization", "Bearer mine"),)),
            ("the slot, twice", (("authorization", "Bearer a"), ("authorization", "Bearer b"))),
            ("Connection names the slot", (("connection", "authorization"),)),
            ("another Host", (("host", "evil.example.com"),)),
            ("a length of its own", (("content-length", "5"),)),
            ("a coding of its own", (("transfer-encoding", "chunked"),)),
            ("an upgrade", (("upgrade", "h2c"), ("connection", "upgrade"))),
            ("where it comes from", (("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1")))):
        h.wire.send(h.request(fields=fields))
        got, last = h.answer(), h.bed.s.github.requests[-1]
        lied = [n for n in ("content-length", "transfer-encoding", "upgrade", "x-forwarded-for", "forwarded")
                if last.get(n)]
        good = got == 200 and last.get("host") == "api.github.com" and not lied and \
            last.all("authorization") == [h.bed.s.github_credential[1]]
        h.rows.row(name, good or isinstance(got, tuple) and got[0] == 403,
                   "%r %r" % (got, last.headers))
    h.asks("an override of the method", "method", path="/read/x", method="PUT",
           fields=(("x-http-method-override", "GET"),))


def grammar(h):
    """Bytes that would end a field or a head, and messages that are none."""
    for name, over in (
            ("a line ending in a value", dict(fields=(("x-a", "b\r\nAuthorization: Bearer x"),))),
            ("a bare LF in a value", dict(fields=(("x-a", "b\nc"),))),
            ("a bare CR in a value", dict(fields=(("x-a", "b\rc"),))),
            ("a zero byte in a value", dict(fields=(("x-a", "b\0c"),))),
            ("a line ending in a name", dict(fields=(("x-a\r\nx-b", "c"),))),
            ("a colon in a name", dict(fields=(("x-a:b", "c"),))),
            ("a blank in a name", dict(fields=(("x a", "c"),))),
            ("an empty name", dict(fields=(("", "c"),))),
            ("a pseudo field", dict(fields=((":authority", "evil.example.com"),))),
            ("more fields than a head has", dict(fields=[("x-%d" % i, "y") for i in range(2000)])),
            ("a query with a blank", dict(has_query=1, query="a b")),
            ("a query with a line ending", dict(has_query=1, query="a\r\nx: y")),
            ("a query with high bytes", dict(has_query=1, query=b"a=\xff")),
            ("a method with a blank", dict(method="GET /x")),
            ("a method with a line ending", dict(method="GET\r\n")),
            ("an empty method", dict(method="")),
            ("a long method", dict(method="G" * 33)),
            ("a zero byte in a host", dict(host="api.github.com\0.evil")),
            ("a long host", dict(host="a" * 300)),
            ("a zero byte in a secret's name", dict(secret="github\0x")),
            ("a long secret's name", dict(secret="g" * 200)),
            ("a long token", dict(token="t" * 600)),
            ("a path beyond what a target has", dict(path="/" + "a" * 65600)),
            ("a query beyond what a target has", dict(has_query=1, query="a" * 65600)),
            ("port 0", dict(port=0)), ("port 65979", dict(port=65536 + 443)),
            ("a scheme that is none", dict(scheme=3)), ("scheme 0", dict(scheme=0)),
            ("a body that is none", dict(body=9)), ("a body until the end", dict(body=3)),
            ("a tunnel with POST", dict(body=wire.BODY_TUNNEL, method="POST")),
            ("a length without a body", dict(length=5)),
            ("HTTP/2 by prior knowledge within TLS", dict(te=2)),
            ("a client that speaks what nobody knows", dict(te=4)),
            ("a counted body of nothing", dict(body=wire.BODY_LENGTH, length=0)),
            ("a length in a chunked one", dict(body=wire.BODY_CHUNKED, length=7)),
            ("a short placeholder to look for", dict(marks=["abc"])),
            ("a placeholder with a quote", dict(marks=['a"' * 16])),
            ("five placeholders to look for", dict(marks=[MARK] * 5)),
            ("nine placeholders for captures", dict(blanks=[MARK] * 9))):
        h.breaks(name, h.request(**over))
    whole = h.request()
    for n in (3, 4, 8, 12, len(whole) // 2, len(whole) - 1):
        h.breaks("a request of %d bytes of its %d" % (n, len(whole)), whole[:n])
    h.breaks("a request with more behind", h.request() + b"\0")
    h.breaks("a request of 97 KiB", h.request() + b"x" * (97 << 10))
    h.breaks("a descriptor beside", h.request(), fds=(2,))
    h.breaks("64 descriptors beside", h.request(), fds=(2,) * 64)
    h.breaks("200 descriptors beside", h.request(), fds=(2,) * 200)
    h.breaks("a count of fields that is a lie", message(
        wire.INJECTOR_CHANNEL_REQUEST, u32(h.id), *h.fields()[:-1], u32(0xffffffff)))
    h.breaks("a datagram of several whose first is cut", wire.gathered((wire.INJECTOR_CHANNEL_REQUEST, u32(h.id)))[:-2])
    h.breaks("a datagram of several that holds one", wire.gathered((wire.GATHERED, u32(h.id))))


def bodies(h):
    """A body is as long as its head says, within its credit, and ends once."""
    post = dict(path="/repos/acme/x/y", method="POST")

    def opened(**over):
        h.id += 1
        return (wire.INJECTOR_CHANNEL_REQUEST, u32(h.id), *h.fields(**dict(post, **over)))

    def rows(name, first, *then, whole=None):
        """In one datagram where it fits, so that the exchange is not over before all is said."""
        before = len(h.bed.s.github.requests)
        parts = [first] + [(kind, u32(h.id)) + tuple(fields) for kind, *fields in then]
        data = wire.gathered(*parts)
        for d in [data] if len(data) < 90000 else [message(*p) for p in parts]:
            h.wire.send(d)
        got = "ended" if h.wire.ended(4) else None
        came = [r.body for r in h.bed.s.github.requests[before:]]
        h.rows.row(name, got == "ended" and came in ([], [whole], [b""]), "%r, came: %r" % (got, came))
        if got == "ended":
            h.heal()
    ten = dict(body=wire.BODY_LENGTH, length=10)
    chunked = dict(body=wire.BODY_CHUNKED)
    rows("a body longer than its length", opened(**ten), (wire.INJECTOR_CHANNEL_BODY, text(b"x" * 11)))
    rows("another request behind a body", opened(**ten), (wire.INJECTOR_CHANNEL_BODY, text(b"x" * 10)),
         (wire.INJECTOR_CHANNEL_BODY, text(b"GET /gists HTTP/1.1\r\n\r\n")), whole=b"x" * 10)
    rows("a body shorter than its length", opened(**ten), (wire.INJECTOR_CHANNEL_BODY, text(b"x" * 9)), (wire.INJECTOR_CHANNEL_END,))
    rows("a body where there is none", opened(), (wire.INJECTOR_CHANNEL_BODY, text(b"x")))
    rows("an end with something behind", opened(**chunked), (wire.INJECTOR_CHANNEL_END, u32(1)))
    rows("a part of a body beyond its bound", opened(**chunked), (wire.INJECTOR_CHANNEL_BODY, text(b"x" * 32769)))
    rows("a body beyond its credit", opened(body=wire.BODY_LENGTH, length=1 << 30, host="api.openai.com", path="/v1/x",
                                            secret="openai"),
         *[(wire.INJECTOR_CHANNEL_BODY, text(b"x" * 32768))] * 2000)
    rows("credit beyond the window", opened(**chunked), (wire.INJECTOR_CHANNEL_CREDIT, u32(1 << 20)))
    rows("credit that overflows", opened(**chunked), (wire.INJECTOR_CHANNEL_CREDIT, u32(0xffffffff)))
    rows("credit that is cut", opened(**chunked), (wire.INJECTOR_CHANNEL_CREDIT, u8(1)))
    rows("a reason with a line ending", opened(**chunked), (wire.INJECTOR_CHANNEL_ABORT, text("x\r\ny")))
    rows("a reason that is empty", opened(**chunked), (wire.INJECTOR_CHANNEL_ABORT, text("")))
    rows("a reason that is long", opened(**chunked), (wire.INJECTOR_CHANNEL_ABORT, text("x" * 99)))
    rows("a finding that is no detector's", opened(**chunked), (wire.INJECTOR_CHANNEL_FOUND, text("jane@corp.example 1")))
    rows("a finding without a number", opened(**chunked), (wire.INJECTOR_CHANNEL_FOUND, text("github")))
    rows("a finding that is long", opened(**chunked), (wire.INJECTOR_CHANNEL_FOUND, text("x" * 999)))
    rows("a finding behind the end", opened(**chunked), (wire.INJECTOR_CHANNEL_END,), (wire.INJECTOR_CHANNEL_FOUND, text("github 1")))
    rows("the same exchange twice", opened(**chunked), (wire.INJECTOR_CHANNEL_REQUEST, *h.fields(**dict(post, **chunked))))


def allowed(h, what, body):
    h.wire.send(h.request(**dict(what, body=wire.BODY_LENGTH, length=len(body))))
    h.wire.send(message(wire.INJECTOR_CHANNEL_BODY, u32(h.id), text(body)))
    h.wire.send(message(wire.INJECTOR_CHANNEL_END, u32(h.id)))
    return h.answer()


def tools(h):
    """The injector reads messages of MCP by itself: a gate that says that they may pass calls no refused tool."""
    def call(name, **arguments):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                           "params": {"name": name, "arguments": arguments}}).encode()
    as_json = (("content-type", "application/json"),)
    good, bad = call("write", path="/work/a"), call("delete")
    gzip = zlib.compress(bad, wbits=31)
    for host, secret in ((MCP, "github"), (MCP_PLAIN, "")):
        mcp = dict(host=host, secret=secret, path="/mcp", method="POST", fields=as_json)
        for name, want, body, over in (
                ("a refused tool", (403, "mcp"), bad, {}),
                ("a refused argument", (403, "mcp"), call("write", path="/etc/a"), {}),
                ("a refused tool in a batch", (403, "mcp"), b"[" + call("read") + b"," + bad + b"]", {}),
                ("two calls of one budget in a batch", (403, "mcp"), b"[" + call("send") + b"," + call("send") + b"]", {}),
                ("a tool that is named twice", (400, "body_ambiguous"), bad[:-2] + b',"name":"read"}}', {}),
                ("a refused tool, compressed", (415, "content_coding"), gzip,
                 dict(fields=as_json + (("content-encoding", "gzip"),))),
                ("a refused tool in UTF-16", (400, "body_ambiguous"), bad.decode().encode("utf-16"), {}),
                ("a refused tool by another type", (415, "content_type"), bad,
                 dict(fields=(("content-type", "application/json; charset=utf-16"),))),
                ("a refused tool of no said length", (403, "mcp"), bad, dict(body=wire.BODY_CHUNKED, length=0)),
                ("no message", (403, "mcp"), None, dict(body=wire.BODY_NONE, length=0)),
                ("a message beyond the bound", (413, "too_large_to_inspect"), None, dict(length=2 << 20))):
            first = h.request(**dict(mcp, **dict(dict(body=wire.BODY_LENGTH, length=len(body or b"")), **over)))
            then = [message(wire.INJECTOR_CHANNEL_BODY, u32(h.id), text(body)), message(wire.INJECTOR_CHANNEL_END, u32(h.id))] if body else []
            h.tries("%s at %s" % (name, host), want, first, *then)
        got = [allowed(h, mcp, call("send")) for _ in range(6)]
        h.rows.row("calls of a tool beyond its budget at %s" % host, got == [200] * 3 + [(429, "budget")] * 3, repr(got))
    h.bed.t.eq(allowed(h, dict(host=MCP, path="/mcp", method="POST", fields=as_json), good), 200, "an allowed tool is called")


def calls(h):
    """The injector reads calls to models by itself: a gate that says that they may pass reaches no refused model, asks for
    no more tokens than the rule has, and gets none by the budget. The double says nothing of usage: each call is charged
    its estimate."""
    path, as_json = "/v1/chat/completions", (("content-type", "application/json"),)

    def body(**more):
        return json.dumps(dict({"model": "m", "max_tokens": 100, "server": "x"}, **more)).encode()

    def parts(data, **over):
        first = h.request(**dict(dict(host=host, secret=secret, path=path, method="POST", fields=as_json,
                                      body=wire.BODY_LENGTH, length=len(data)), **over))
        return [first, message(wire.INJECTOR_CHANNEL_BODY, u32(h.id), text(data)), message(wire.INJECTOR_CHANNEL_END, u32(h.id))]
    for host, secret in ((MODEL, "github"), (MODEL_PLAIN, "")):
        for name, want, data, over in (
                ("a refused model", (403, "llm"), body(model="other"), {}),
                ("more tokens than allowed", (403, "llm"), body(max_tokens=101), {}),
                ("no maximum of tokens", (403, "llm"), json.dumps({"model": "m"}).encode(), {}),
                ("a model that is named twice", (400, "body_ambiguous"), body()[:-1] + b',"model":"other"}', {}),
                ("a model in other letters too", (400, "body_ambiguous"), body(Model="other"), {}),
                ("a refused model in its place", (403, "llm"), body(models=["other"]), {}),
                ("a call, compressed", (415, "content_coding"), zlib.compress(body(), wbits=31),
                 dict(fields=as_json + (("content-encoding", "gzip"),))),
                ("a call by another type", (415, "content_type"), body(), dict(fields=(("content-type", "text/plain"),))),
                ("a call at another path", (403, "llm"), body(), dict(path="/v1/batches")),
                ("a call of no said length", (403, "llm"), body(model="other"), dict(body=wire.BODY_CHUNKED, length=0))):
            h.tries("%s at %s" % (name, host), want, *parts(data, **over))
        got = []
        for _ in range(12):
            for p in parts(body()):
                h.wire.send(p)
            got.append(h.answer())
        n = got.count(200)
        h.rows.row("calls beyond the budget at %s" % host, 7 <= n <= 9 and got[n:] == [(429, "budget")] * (12 - n), repr(got))


def masked(event):
    data, mask = json.dumps(event).encode() if isinstance(event, dict) else event, b"\1\2\3\4"
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
    return b"\x81" + size + mask + bytes(x ^ mask[i % 4] for i, x in enumerate(data))


def sessions(h):
    """The injector reads the events of a session with a model by itself: a gate that lets all of them pass has none of them
    reach the origin whole, and no answer beyond the budget asked for. The double answers none: each is charged its estimate."""
    session = dict(host=SESSIONS, secret="", path="/v1/realtime", has_query=1, query="model=m", body=wire.BODY_TUNNEL)
    create = {"type": "response.create", "response": {"max_output_tokens": 100}}

    def say(*events):
        """-> the whole events that reached the origin, and what the session ended with"""
        before, ended = len(h.bed.sessions.heard), h.bed.sessions.ended
        h.wire.send(h.request(**session))
        for e in events:
            h.wire.send(message(wire.INJECTOR_CHANNEL_BODY, u32(h.id), text(masked(e))))
        got = h.answer(3)
        tap.wait_for(lambda: h.bed.sessions.ended > ended, 10)
        return len(h.bed.sessions.heard) - before, got
    for name, query in (("a session with a refused model", "model=other"), ("a session without a model", "x=y"),
                        ("a session with a model and its twin", "Model=m&model=m")):
        code = (400, "body_ambiguous") if "twin" in name else (403, "llm")
        h.tries(name, code, h.request(**dict(session, query=query)))
    h.tries("a session at another path", (403, "llm"), h.request(**dict(session, path="/v1/other")))
    for name, event in (
            ("a refused model in a session", {"type": "session.update", "session": {"model": "other"}}),
            ("an answer without a maximum in a session", {"type": "response.create"}),
            ("more tokens than allowed in a session", {"type": "response.create", "response": {"max_output_tokens": 101}}),
            ("audio that begins an answer", {"type": "input_audio_buffer.append", "audio": "AAAA"}),
            ("an event of two types", b'{"type":"x","type":"response.create"}'), ("an event that is no JSON", b"{"),
            ("an event of no type", {"x": 1})):
        n, got = say(event, create)
        h.rows.row(name, n == 0 and got == 101, "%d reached the origin; %r" % (n, got))
    n, got = say(*[create] * 12)
    h.rows.row("answers beyond the budget in a session", 5 <= n <= 9 and got == 101, "%d reached the origin; %r" % (n, got))


def messages(h):
    """Every message that an injector does not take of a gate: of an exchange and of none."""
    taken = {wire.INJECTOR_CHANNEL_REQUEST, wire.INJECTOR_CHANNEL_BODY, wire.INJECTOR_CHANNEL_END, wire.INJECTOR_CHANNEL_CREDIT, wire.INJECTOR_CHANNEL_ABORT}
    for kind in sorted(set(wire.TYPES.values()) - taken):
        first = h.request(path="/repos/acme/x/y", method="POST", body=wire.BODY_CHUNKED)
        h.breaks("an exchange's message %s" % wire.NAMES[kind], first, message(kind, u32(h.id)), begun=1)
    for kind in (wire.SECRET_GET, wire.PEER, wire.POLICY, wire.INJECTOR_CHANNEL_REPLY, 0, 65534):
        h.breaks("message %s of no exchange" % wire.NAMES.get(kind, kind), message(kind, u32(0x7fffffff)))
    h.breaks("a message without an exchange", message(wire.INJECTOR_CHANNEL_BODY))
    for kind, *fields in ((wire.INJECTOR_CHANNEL_BODY, text(b"x")), (wire.INJECTOR_CHANNEL_END,), (wire.INJECTOR_CHANNEL_CREDIT, u32(1)),
                          (wire.INJECTOR_CHANNEL_ABORT, text("x"))):
        h.tries("%s of an exchange that there is not" % wire.NAMES[kind], None,
                message(kind, u32(0x7fffffff), *fields))
    h.bed.t.eq(h.works(), 200, "and what is right is answered still")
    data = h.request(path="/repos/acme/x/y", method="POST", body=wire.BODY_CHUNKED)
    n = h.gate.many(h.wire.fd, data, 5000, 4)
    h.rows.row("5000 exchanges that do not go on", n > 0, "%d taken" % n)
    h.heal()
    h.bed.quiet()
    h.bed.t.eq(tap.wait_for(lambda: h.works() == 200, 10), True, "and what is right is answered on a new wire")


def tokens(bed, rows):
    """The gate of a listener whose clients have tokens."""
    gate = bed.gate("coder", "other")
    good, far, old = bed.identity("coder"), bed.identity("other"), bed.identity("coder")
    bed.api.ask("DELETE", "/v1/identities/" + old["id"])
    h = Hop(bed, rows, gate, "coder")
    bed.t.eq(h.works(token=good["token"]), 200, "a request with a token is answered")
    cut = good["token"]
    for name, code, token in (
            ("no token", "token_invalid", ""), ("a word for a token", "token_invalid", "dwt1.x.y"),
            ("a cut token", "token_invalid", cut[:-4]),
            ("a token with another signature", "token_invalid", cut[:-8] + far["token"][-8:]),
            ("a token whose payload is another's", "token_invalid",
             ".".join(far["token"].split(".")[:2] + cut.split(".")[2:])),
            ("a token with a line behind", "token_invalid", cut + "\r\n"),
            ("another policy's token", "token_policy", far["token"]),
            ("a revoked token", "token_revoked", old["token"])):
        h.asks(name, code, token=token)
    h.asks("a token, and a denied path", "denied_by_rule", token=cut, path="/gists/1")
    h = Hop(bed, rows, gate, "other")
    h.asks("a token of the policy beside", "token_policy", token=cut, host=OTHER, secret="other")
    gate.end()


def with_injector(t, bed):
    rows = seat.Rows(t, "gate to injector", bed.neighbour)
    gate = bed.gate("coder")
    h = Hop(bed, rows, gate)
    for part in seat.chosen((decisions, slots, grammar, bodies, tools, calls, sessions, messages, tokens)):
        if part == messages:  # each kind costs a channel, and the parent ends a role that loses too many of them
            gate.end()
            h = Hop(bed, rows, bed.gate("coder"))
        t.part(part, *((bed, rows) if part == tokens else (h,)))


def everything(t):
    bed = seat_bed.Bed(t)
    with_injector(t, bed)
    bed.s.clean()
    seat.listed(t, "gate")


def main(t):
    person.each(t, everything, together=True)


tap.run(main, timeout=240)
