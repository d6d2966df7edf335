#!/usr/bin/python3 -B
"""The fixed answers: who is refused, with which status and word, and that nothing of a refused
request reaches an origin. Through an explicit listener that is bound to a policy."""
import json
import os
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, nginx, scene, shapes, tap  # noqa: E402

GH = "api.github.com"
BOTH = "both.example.com:8443"


def expect(t, r, status, code, what):
    t.ok(r.status == status and r.code == code, "%s: %d %s" % (what, status, code),
         "got %d %r %r" % (r.status, r.code, r.body[:200]))


def denials(t, s, gate):
    before = len(s.github.requests), s.github.accepted
    expect(t, gate.get(GH, "/gists", method="POST", body=b"{}"), 403, "denied_by_rule",
           "a path that a rule denies")
    expect(t, gate.get(GH, "/GISTS/x"), 403, "denied_by_rule", "a deny in another case")
    expect(t, gate.get(GH, "/repos/acme/secret/x"), 403, "denied_by_rule",
           "a deny inside a wider allow")
    expect(t, gate.get(GH, "/orgs/acme"), 403, "no_rule", "a path no rule names")
    expect(t, gate.get("readonly.example.com", "/", method="DELETE"), 403, "method",
           "a method outside access: read-only")
    t.eq((len(s.github.requests), s.github.accepted), before, "no byte of these left")
    r, st = gate.connect("evil.example.com:443")
    st.close()
    expect(t, r, 403, "no_rule", "CONNECT to a host no rule names")
    r, st = gate.connect(GH + ":8443")
    st.close()
    expect(t, r, 403, "no_rule", "CONNECT to another port of a named host")
    r, st = gate.connect("203.0.113.9:443")
    st.close()
    expect(t, r, 403, "no_rule", "CONNECT to an address")
    for spelled in ("2130706433:443", "0x7f.1:443", "0177.0.0.1:443", "127.1:443", "a..b:443",
                    "user@%s:443" % GH, GH + ":0", GH + ":65536", GH + ":+443", GH,
                    "api%2egithub.com:443", "api.github.com\x00.evil.com:443", "[fe80::1%25lo]:443",
                    "api.github\x80.com:443"):
        r, st = gate.connect(spelled)
        st.close()
        t.eq(r.status, 400, "CONNECT %r is 400" % spelled)
    with gate.tls(GH, connect=GH + ".:443") as st:
        r = st.ask("GET /user HTTP/1.1\r\nHost: %s.\r\n\r\n" % GH)
        t.eq(r.status, 200, "one trailing dot is folded")
    r, st = gate.connect("API.GitHub.com:443", host="api.github.com:443")
    st.close()
    t.eq(r.status, 200, "ASCII case is folded")


MCP, DOWN = "mcp.example.com", "down.example.com"
JSON = "application/json"
# what is asked -> (status, type of the answer)
FORMS = {
    "": (403, "text/plain; charset=utf-8"),
    "Accept: */*\r\n": (403, "text/plain; charset=utf-8"),
    "Accept: text/html,*/*;q=0.8\r\n": (403, "text/html; charset=utf-8"),
    "Accept: application/json\r\n": (403, JSON),
    "Accept: */*\r\nContent-Type: application/json\r\n": (403, JSON),
    "Accept: application/problem+json\r\n": (403, "application/problem+json"),
    "Accept: application/vnd.npm.install-v1+json; q=1.0, */*\r\n": (403, JSON),
    "Content-Type: application/grpc-web+proto\r\n": (200, "application/grpc-web"),
    "Accept: text/html<script>x</script>\r\n": (403, "text/plain; charset=utf-8"),
}


def forms(t, s, gate):
    """Each answer says who refused, why, and what to do, in the form that was asked for."""
    why = "Durward denied this request: no rule of the policy allows it"
    for fields, (status, kind) in FORMS.items():
        r = gate.get(GH, "/orgs/acme", fields + "X-Word: zebra\r\n", method="POST")
        t.ok((r.status, r.get("content-type"), r.code) == (status, kind, "no_rule") and b"zebra" not in r.raw + r.body and
             b"script" not in r.body, "%r: %d %s" % (fields.strip(), status, kind), r.raw, r.body)
        t.ok(r.get("x-proxy-error") == "denied no_rule", "and X-Proxy-Error")
    r = gate.get(GH, "/orgs/acme", "Accept: application/json\r\n")
    said = json.loads(r.body)
    t.eq(said, {"error": {"message": said["message"], "type": "durward_denied", "code": "no_rule", "id": r.id},
                "message": said["message"]}, "the form that SDKs print")
    t.ok(said["message"].startswith(why + ". Ask "), "with the reason and the way out", said["message"])
    t.has(r.raw.decode(), "HTTP/1.1 403 Forbidden - %s. Ask " % why, "HTTP/1 has them in its reason too")
    r, st = gate.connect("evil.example.com:443")
    st.close()
    t.ok(r.body.decode().startswith(why) and why in r.raw.decode().split("\r\n")[0], "a refused CONNECT too", r.raw, r.body)
    r = gate.get(GH, "/orgs/acme", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n")
    t.ok(r.code == "no_rule" and r.body.decode().startswith(why), "and a WebSocket's handshake", r.raw, r.body)


def failures(t, s, gate):
    """"failed" is what policy let go."""
    r = gate.get(DOWN, "/", "Accept: application/json\r\n")
    said = json.loads(r.body)
    t.ok((r.status, r.code, said["error"]["type"]) == (502, "connect", "durward_failed") and
         "could not be connected to. The policy is not the reason" in said["message"], "an origin that is down", r.body)
    t.eq((r.get("x-proxy-error"), r.get("retry-after")), ("failed connect", None), "502 has no Retry-After")
    os.chmod(s.loose, 0o644)
    r = gate.get("loose.example.com", "/")
    t.eq((r.status, r.code, r.get("x-proxy-error"), r.get("retry-after")),
         (503, "secret_unavailable", "failed secret_unavailable", "10"), "503 has one")


def rpc(t, s, gate):
    """MCP: a JSON-RPC error with the id of the message, and nothing else of it; the session lives on (200). One
    that is no id, or that readers take for different ones, is not repeated (403)."""
    for number, want in (("7", 7), ("0", 0), ("-1", -1), ('"a\\u00e9\\"b"', "a\u00e9\"b"), ("9007199254740993", None),
                         ("1.5", None), ("null", None), ('"%s"' % ("x" * 129), None), ("[1]", None)):
        body = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"zebra"}}' % number.encode()
        r = gate.get(MCP, "/mcp", "Content-Type: application/json\r\n", method="POST", body=body)
        said = json.loads(r.body)
        t.ok(r.status == (403 if want is None else 200) and r.code == "mcp" and said.get("jsonrpc") == "2.0" and "id" in said and
             said["id"] == want and said["error"]["message"].startswith("Durward denied this request: ") and
             b"zebra" not in r.body, "an id of %s: %s" % (number, want), r.raw, r.body)
    before = len(s.mcp.requests)
    body = b'{"jsonrpc":"2.0","id":12,"method":"ping"}'
    r = gate.get(MCP, "/mcp", "Content-Type: application/json\r\n", method="POST", body=body)
    t.ok(r.status == 502 and json.loads(r.body)["id"] == 12 and r.code == "upstream_protocol",
         "an origin's failure answers that message", r.raw, r.body)
    t.eq(len(s.mcp.requests), before + 1, "and it was asked once")


def early(t, s, gate):
    """Refused at its head: a client that first sends its whole body reads the answer all the same."""
    before = len(s.github.requests), s.github.accepted
    for length, extra in (("Content-Length: %d" % (1 << 20), b""),
                          ("Transfer-Encoding: chunked", b"100000\r\n")):
        got = []
        for _ in range(10):
            with gate.tls(GH) as st:
                st.send("POST /orgs/acme HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n" % (GH, length))
                try:
                    st.send(extra + bytes((1 << 20) - 4096))
                    r = st.reply()
                    got.append((r.status, r.code, st.ended()))
                except (OSError, client.Ended) as e:
                    got.append(repr(e))
        t.eq(got, [(403, "no_rule", True)] * 10, "a refusal is read after 1 MiB of the body, " +
             length.split(":")[0])
    t.eq((len(s.github.requests), s.github.accepted), before, "no byte of these left")


def authorities(t, s, gate):
    before = len(s.github.requests), len(s.plain.requests)
    with gate.tls(GH) as st:
        r = st.ask("GET /user HTTP/1.1\r\nHost: deps.example.com\r\n\r\n")
        expect(t, r, 421, "authority_mismatch", "Host is not the SNI")
        t.ok(st.ended(), "and the connection is closed")
    try:
        with gate.tls(GH, sni="deps.example.com") as st:
            r = st.ask("GET / HTTP/1.1\r\nHost: deps.example.com\r\n\r\n")
            expect(t, r, 421, "authority_mismatch", "SNI is not the CONNECT target")
    except ssl.SSLError as e:
        t.ok("unrecognized" in str(e).lower(), "SNI is not the CONNECT target: alert", str(e))
    with gate.tls(GH) as st:
        r = st.ask("GET /user HTTP/1.1\r\nHost: api.github.com:8443\r\n\r\n")
        expect(t, r, 421, "authority_mismatch", "Host with another port")
    with gate.tls(GH) as st:
        r = st.ask("GET https://deps.example.com/ HTTP/1.1\r\nHost: api.github.com\r\n\r\n")
        t.ok(r.status in (400, 421), "absolute-form inside TLS is refused", str(r.status))
    r, st = gate.connect(GH + ":443", host="deps.example.com:443")
    st.close()
    t.ok(r.status in (400, 421), "CONNECT with another Host is refused", str(r.status))
    t.eq((len(s.github.requests), len(s.plain.requests)), before, "nothing reached an origin")


def credentials(t, s, gate):
    before = len(s.github.requests)
    for header in ("Authorization: Bearer ghp_somebodyelse", "Authorization: token x",
                   "Authorization: Basic dTpw", "X-Api-Key: mine", "Api-Key: mine",
                   "Private-Token: mine", "authorization: bearer x\r\nAuthorization: Bearer y"):
        r = gate.get(GH, "/user", header + "\r\n")
        t.ok(r.status == 403 and r.code == "foreign_credential",
             "%r on a credentialed rule: 403 foreign_credential" % header,
             "%d %r" % (r.status, r.body[:100]))
    t.eq(len(s.github.requests), before, "none of them reached the origin")
    r = gate.get("deps.example.com", "/own", "Authorization: Bearer own\r\n")
    t.eq(r.status, 200, "on a rule without a credential the client's own passes")
    t.eq(s.plain.requests[-1].get("authorization"), "Bearer own", "as it is")
    r = gate.get(GH, "/user", "Cookie: session=1\r\n")
    t.ok(r.status == 200 and s.github.requests[-1].get("cookie") is None,
         "a Cookie is dropped on a credentialed rule", str(r.status))
    r = gate.get("cookie.example.com", "/")
    t.ok(r.status == 200 and not r.all("set-cookie"), "Set-Cookie too", str(r.headers))
    r = gate.get("cookie.example.com", "/", "X-Forwarded-Host: evil\r\nForwarded: host=evil\r\n"
                 "Connection: x-secret-hop\r\nX-Secret-Hop: 1\r\nX-Original-URL: /admin\r\n")
    names = {n.lower() for n, _ in s.cookie.requests[-1].headers}
    t.ok(r.status == 200 and not names & {"x-forwarded-host", "forwarded", "x-secret-hop",
                                          "x-original-url", "proxy-connection"},
         "forwarding and hop-by-hop headers are dropped", str(names))
    r = gate.get(GH, "/user", "Connection: authorization\r\n")
    t.ok(r.status in (200, 400, 403) and all(
        q.credentials() == [("authorization", s.github_credential[1])]
        for q in s.github.requests), "Connection: authorization does not strip the credential",
        str(r.status))


def methods(t, s, gate):
    before = len(s.plain.requests)
    for method, wanted in (("TRACE", (405,)), ("TRACK", (405,)), ("get", (400, 405)),
                           ("CONNECT", (400, 405)), ("G\x01T", (400,))):
        with gate.tls("deps.example.com") as st:
            target = "deps.example.com:443" if method == "CONNECT" else "/"
            r = st.ask("%s %s HTTP/1.1\r\nHost: deps.example.com\r\n\r\n" % (method, target))
            t.ok(r.status in wanted, "%r inside TLS is %s" % (method, wanted), str(r.status))
    for extra, status in (("Connection: upgrade\r\nUpgrade: websocket\r\n"
                           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                           "AAAAAAAAAAAAAAAAAAAAAA==\r\n", 403),
                          ("Expect: something\r\n", 417)):
        r = gate.get("deps.example.com", "/", extra)
        t.eq(r.status, status, "%r is %d" % (extra.split("\r\n")[0], status))
    for path in ("/a/../b", "/a/%2e%2e/b", "/a/%2E./b", "//x", "/a\\b", "/a%00", "/a%5cb", "/%zz",
                 "/a;x/../b", "/x#f", "/\x80", "/.", "/a/%252e%252e/"):
        with gate.tls("deps.example.com") as st:
            r = st.ask("GET %s HTTP/1.1\r\nHost: deps.example.com\r\n\r\n" % path)
            if path == "/a/%252e%252e/":
                t.ok(r.status in (200, 400), "%r is refused or forwarded as it came" % path)
                continue
            t.eq(r.status, 400, "path %r is 400" % path)
    got = [q.target for q in s.plain.requests[before:]]
    t.ok(not [x for x in got if x != "/a/%252e%252e/"], "no such request reached the origin",
         str(got))
    r = gate.get("deps.example.com", "/a%2Fb?x=1&y=%2e%2e/")
    t.eq((r.status, s.plain.requests[-1].target), (200, "/a%2Fb?x=1&y=%2e%2e/"),
         "an encoded slash and any query are forwarded as they came")


def plain_http(t, s, gate):
    def forward(target, host):
        with gate.plain() as st:
            return st.ask("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host))
    r = forward("http://clear.example.com/a?b", "clear.example.com")
    t.eq((r.status, s.clear.requests[-1].target if s.clear.requests else None), (200, "/a?b"),
         "absolute-form to a plain http origin")
    n = len(s.clear.requests)
    r = forward("http://clear.example.com/", "deps.example.com")
    t.ok(r.status in (400, 421), "absolute-form with another Host is refused", str(r.status))
    expect(t, forward("http://api.github.com/user", GH), 403, "no_rule",
           "an https rule says nothing of http")
    r = forward("http://u:p@clear.example.com/", "clear.example.com")
    t.eq(r.status, 400, "user information in a target is 400")
    with gate.plain() as st:
        r = st.ask("GET / HTTP/1.1\r\nHost: clear.example.com\r\n\r\n")
        t.eq(r.status, 400, "origin-form at the explicit port is 400")
    with gate.plain() as st:
        r = st.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        t.ok((r.status, r.code) == (400, "h2c") and b"CONNECT" in r.body,
             "HTTP/2 with prior knowledge to the port itself is refused, with the way that is open", repr(r.body))
    t.eq(len(s.clear.requests), n, "none of these reached the origin")
    with gate.plain() as st:
        st.send("CONNECT api.github.com:443 HTTP/1.1\r\nHost: api.github.com:443\r\n\r\n"
                "GET / HTTP/1.1\r\nHost: api.github.com\r\n\r\n")
        got = st.rest(2)
        t.ok(got.startswith(b"HTTP/1.1 400"), "bytes after CONNECT before its answer are 400",
             repr(got[:80]))


def one_port(t, s, gate):
    """A port that speaks both, and one credential for both: a connection in clear serves no request for https."""
    def ask(st):
        return st.ask("GET /x HTTP/1.1\r\nHost: %s\r\n\r\n" % BOTH).status
    got = []
    for _ in range(2):
        r, st = gate.connect(BOTH)
        with st:
            got.append(ask(st))
        with gate.tls("both.example.com", 8443) as st:
            got.append(ask(st))
    t.eq((got, [bool(q.tls) for q in s.both.requests]), ([200] * 4, [False, True] * 2),
         "by injector: http and https to one port keep to connections of their own")
    t.eq(s.both.accepted, 2, "and each is used again")


def edits(t, s, gate):
    r = gate.get("edit.example.com", "/", "X-Old: 1\r\nX-Kept: 2\r\n")
    q = s.edit.requests[-1] if s.edit.requests else None
    t.ok(r.status == 200 and q and q.all("x-new") == ["from-rule"] and not q.all("x-old") and
         q.all("x-kept") == ["2"], "set_headers and remove_headers",
         str(q.headers if q else r.status))
    q = gate.get("key.example.com", "/")
    t.eq((q.status, s.key.requests[-1].credentials() if s.key.requests else None),
         (200, [("x-api-key", s.openai_secret.decode())]), "with: header")


def records(t, s):
    d = s.d
    denied = d.kinds("denied")
    ids = [r["id"] for r in denied]
    t.eq(len(ids), len(set(ids)), "each refusal has an id of its own")
    codes = {r.get("code") for r in denied}
    t.ok(codes >= {"no_rule", "denied_by_rule", "authority_mismatch", "foreign_credential",
                   "method"}, "and its word", str(codes))
    text = b"".join(open(f, "rb").read() for f in d.audit_files())
    t.ok(b"ghp_somebodyelse" not in text, "a client's credential is not in the log")
    origins = [(o, None) for o in (s.github, s.openai, s.plain, s.clear, s.edit, s.key, s.cookie, s.both,
                                   s.readonly)]
    s.judge(origins, (), "answers")


def main(t):
    s = scene.Scene(t)
    s.readonly = s.add("readonly.example.com", shapes.echo)
    s.rule(allow="readonly.example.com", access="read-only")
    s.clear = s.add("clear.example.com:80", shapes.echo, tls=False)
    s.rule(allow="http://clear.example.com")
    s.edit = s.add("edit.example.com", shapes.echo)
    s.rule(allow="edit.example.com", set_headers={"X-New": "from-rule"}, remove_headers=["X-Old"])
    s.key = s.add("key.example.com", lambda q, c: c.reply(q, 200, "ok"))
    s.rule(allow="key.example.com",
           **{"with": {"header": {"x-api-key": "openai"}}})
    s.both = s.add("both.example.com", lambda q, c: c.reply(q, 200, "ok"), tls="either")
    s.d.origin(BOTH, s.both)
    for way in ("", "http://"):
        s.rule(allow=way + BOTH, allow_plaintext=True, **{"with": {"bearer": "openai"}})
    s.cookie = s.add("cookie.example.com", lambda q, c: c.reply(
        q, 200, "ok", [("Set-Cookie", "a=b"), ("X-Fine", "1")]))
    s.rule(allow="cookie.example.com", **{"with": {"bearer": "openai"}})
    s.mcp = s.add(MCP, lambda q, c: c.send(b"HTTP/9.9 200 OK\r\n\r\n"))
    s.rule(allow=MCP, mcp={"tools": ["read_file"]})
    s.rule(allow=DOWN)
    s.d.resolve[DOWN] = "127.0.0.1:%d" % nginx.free_port()
    s.add("loose.example.com", shapes.echo)
    s.loose = s.d.secret("loose", b"zebra-loose")
    s.rule(allow="loose.example.com", **{"with": {"bearer": "loose"}})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for part in (denials, forms, early, authorities, credentials, methods, plain_http, one_port, edits):
        t.part(part, t, s, gate)
    records(t, s)
    t.part(failures, t, s, gate)
    t.part(rpc, t, s, gate)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
