#!/usr/bin/python3 -B
"""What rules ask of bodies (graphql, mcp, server_tools), with and without a credential: held before
*admitted*, then passed on byte for byte; and `to`, which opens an address on this machine for one name."""
import hashlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import origin, scene, tap  # noqa: E402

GRAPH, KEYED, MCP, INNER = "graph.example.com", "keyed.example.com", "mcp.example.com", "localhost"
MODEL, JSON = scene.OPENAI, "Content-Type: application/json\r\n"
MIB = 1 << 20


def answer(req, conn):
    conn.reply(req, 200, b"{}")


def query(text, **more):
    return json.dumps(dict({"query": text}, **more)).encode()


def call(tool):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": tool, "arguments": {}}}).encode()


ASKED = (  # path, fields, body, status and code (None: passes)
    (GRAPH, "/graphql", JSON, query("{viewer{login}}"), None),
    (GRAPH, "/graphql", JSON, query("query Q{viewer{login}}", operationName="Q"), None),
    (GRAPH, "/graphql", JSON, query("mutation{deleteAll}"), (403, "graphql")),
    (GRAPH, "/graphql", JSON, query("query A{a} mutation B{b}", operationName="A"),
     (403, "graphql")),
    (GRAPH, "/graphql", JSON, b"[" + query("{a}") + b"]", (403, "graphql")),
    (GRAPH, "/graphql", JSON, b'{"query":"{a}","query":"mutation{b}"}', (400, "body_ambiguous")),
    (GRAPH, "/graphql", JSON + "Content-Encoding: gzip\r\n", query("{a}"), (415, "content_coding")),
    (GRAPH, "/graphql", "Content-Type: text/plain\r\n", query("{a}"), (415, "content_type")),
    (GRAPH, "/graphql?query=mutation%7Bb%7D", JSON, query("{a}"), (403, "graphql")),
    (GRAPH, "/graphql?query=%7Ba%7D", "", None, None),
    (GRAPH, "/graphql?query=mutation%7Ba%7D", "", None, (403, "graphql")),
    (KEYED, "/graphql", JSON, query("query GetIt{a}"), None),
    (KEYED, "/graphql", JSON, query("query GetIt{a} mutation Other{b}"), (403, "graphql")),
    (MCP, "/mcp", JSON, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', None),
    (MCP, "/mcp", JSON, call("read_file"), None),
    (MCP, "/mcp", JSON, call("run_shell"), (200, "mcp")),
    (MCP, "/mcp", JSON, b"[" + call("read_file") + b"," + call("run_shell") + b"]", (200, "mcp")),
    (MCP, "/mcp", "", None, None),
    (MODEL, "/v1/responses", JSON, b'{"input":"x","tools":[{"type":"function","name":"f"}]}', None),
    (MODEL, "/v1/responses", JSON, b'{"input":"x","tools":[{"type":"web_search"}]}',
     (403, "server_tool")),
    (MODEL, "/v1/responses", "", b'{"tools":[{"type":"code_interpreter"}]}', (403, "server_tool")),
    (MODEL, "/v1/models", "", None, None),
)


def table(t, s, gate, servers):
    for host, path, fields, body, want in ASKED:
        seen = len(servers[host].requests)
        r = gate.get(host, path, fields, "GET" if body is None else "POST", body=body or b"")
        got = servers[host].requests[seen:]
        good = (r.status, r.code) == (want or (200, None)) and len(got) == (0 if want else 1)
        if good and not want and body is not None:
            good = got[0].sha256 == hashlib.sha256(body).hexdigest()
        t.ok(good, "%s%s %s: %s" % (host, path, (body or b"")[:60], want or "passes"),
             "%d %s, %d requests" % (r.status, r.code, len(got)))
    details = [r.get("detail") for r in s.d.wait_records(5, "denied", code="graphql")]
    t.ok("mutation" in [str(d).strip() for d in details], "a denied record names the operation", str(details))


def ask_head(host, path, fields):
    return "POST %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n" % (path, host, JSON, fields)


def framing(t, gate, servers):
    """The body comes in pieces, in chunks, after a 100, or not at all."""
    body = query("{a}")
    with gate.tls(GRAPH) as st:
        st.send(ask_head(GRAPH, "/graphql", "Transfer-Encoding: chunked\r\n"))
        for i in range(len(body)):
            st.send(b"1\r\n" + body[i:i + 1] + b"\r\n")
        r = st.ask(b"0\r\n\r\n")
        t.eq((r.status, servers[GRAPH].requests[-1].body_len), (200, len(body)),
             "byte for byte in chunks")
        r = st.ask(ask_head(GRAPH, "/graphql", "Expect: 100-continue\r\nContent-Length: %d\r\n" %
                            len(body)).encode() + body)
        t.eq(r.status, 200, "the same connection serves the next")
    with gate.tls(GRAPH) as st:
        st.send(ask_head(GRAPH, "/graphql", "Expect: 100-continue\r\nContent-Length: %d\r\n" %
                         len(body)))
        t.has(st.until(b"\r\n\r\n").decode(), "100 Continue", "100 comes before the body")
        t.eq(st.ask(body).status, 200, "and then it passes")
    with gate.tls(GRAPH) as st:
        r = st.ask(ask_head(GRAPH, "/graphql", "Expect: 100-continue\r\nContent-Length: 999999\r\n"))
        t.eq((r.status, r.code, r.interim), (413, "too_large_to_inspect", []),
             "no 100 for a body that is too large")


def model(t, gate, servers):
    """Large bodies: within the bound whole, beyond it refused; a form streams."""
    text = b'{"input":"' + b"x" * (8 * MIB - 12) + b'"}'
    r = gate.get(MODEL, "/v1/responses", JSON, "POST", body=text)
    t.ok(r.status == 200 and servers[MODEL].requests[-1].body_len == len(text),
         "8 MiB of JSON pass whole", str(r.status))
    with gate.tls(MODEL) as st:
        r = st.ask(ask_head(MODEL, "/v1/responses", "Content-Length: %d\r\n" % (len(text) + 1)))
        t.eq((r.status, r.code), (413, "too_large_to_inspect"), "a byte more does not")
    with gate.tls(MODEL) as st:
        st.send(ask_head(MODEL, "/v1/responses", "Transfer-Encoding: chunked\r\n"))
        r = st.ask(b"%x\r\n" % (len(text) + 1) + text + b" ")
        t.eq((r.status, r.code), (413, "too_large_to_inspect"), "nor when no length is said")
    form = b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\n" + b"y" * (24 * MIB) + \
        b"\r\n--x--\r\n"
    r = gate.get(MODEL, "/v1/files", "Content-Type: multipart/form-data; boundary=x\r\n", "POST",
                 body=form)
    t.ok(r.status == 200 and servers[MODEL].requests[-1].body_len == len(form),
         "24 MiB of a form stream through", str(r.status))


def records(t, s, gate):
    before = len(s.d.kinds("admitted"))
    with gate.tls(GRAPH) as st:
        st.send(ask_head(GRAPH, "/graphql", "Content-Length: 100\r\n") + '{"query"')
        time.sleep(0.1)
    t.ok(s.d.wait_records(1, "denied", code="client_gone"),
         "who leaves before the decision is recorded as denied")
    t.eq(len(s.d.kinds("admitted")), before, "and nothing was admitted")


def inner(t, s, gate, servers):
    port = servers[INNER].port
    r = gate.get(INNER, "/", port=port)
    t.ok(r.status == 200 and servers[INNER].requests, "`to` opens loopback for its host",
         "%d %s" % (r.status, r.code))
    r = gate.get(INNER, "/", port=servers["closed"].port)
    t.eq((r.status, r.code, len(servers["closed"].requests)), (403, "blocked_ip", 0),
         "and for that port alone")


def main(t):
    s = scene.Scene(t)
    servers = {h: s.add(h, answer) for h in (GRAPH, MCP)}
    key = ("X-Api-Key", s.openai_secret.decode())
    servers[KEYED] = s.add(KEYED, origin.needs(key, answer))
    servers[MODEL] = s.openai
    s.openai.handler = origin.needs(s.openai_credential, answer)
    servers[INNER] = origin.Origin(t, s.d.ca, INNER, answer)
    servers["closed"] = origin.Origin(t, s.d.ca, INNER, answer)
    s.rule(allow=GRAPH + "/graphql", graphql="read-only")
    s.rule(allow=KEYED, graphql=["GetIt"], **{"with": {"header": {"x-api-key": "openai"}}})
    s.rule(allow=MCP, mcp={"tools": ["read_file"]})
    s.rule(allow="%s:%d" % (INNER, servers[INNER].port), to="127.0.0.0/8")
    s.rule(allow="%s:%d" % (INNER, servers["closed"].port))
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    table(t, s, gate, servers)
    framing(t, gate, servers)
    model(t, gate, servers)
    records(t, s, gate)
    inner(t, s, gate, servers)
    s.judge([(servers[KEYED], key), (s.openai, s.openai_credential)] +
            [(servers[h], None) for h in (GRAPH, MCP, INNER)], (), "inspection", exact=False)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
