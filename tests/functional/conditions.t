#!/usr/bin/python3 -B
"""Conditions of a rule on query and headers, with and without a credential; a credential over http://
only where a rule says so; replies with the secret in them refused."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import origin, scene, tap  # noqa: E402

PLAIN, KEYED, CLEAR = "plain.example.com", "keyed.example.com", "clear.example.com"
BLOCKED = "blocked.example.com"
ASKED = (  # path and query, headers, code
    ("/a?page=1", {"x-api-version": "2"}, None),
    ("/a", {"x-api-version": "1"}, None),
    ("/a?p%61ge=1", {"x-api-version": "2"}, None),
    ("/a?page=1&page=2", {"x-api-version": "2"}, "query"),
    ("/a?page=1;admin=1", {"x-api-version": "2"}, "query"),
    ("/a?admin=1", {"x-api-version": "2"}, "query"),
    ("/a?page=%2531", {"x-api-version": "2"}, "query"),
    ("/a?page=1", {"x-api-version": "3"}, "header"),
    ("/a?page=1", {}, "header"),
    # what is judged is what will be written
    ("/a?page=1", {"x-api-version": "2", "connection": "x-api-version"}, "header"),
    ("/a?page=1", {"x-api-version": "2", "x_api_version": "9"}, "header"),
    ("/a?page=1", {"x_api_version": "2"}, "header"),
    ("/a?page=1", {"x-api-version": "2", "connection": "x-api-key, x-other", "x-other": "1"}, None))


def answer(req, conn):
    key = req.get("x-api-key", "none").encode()
    if req.path == "/echo-head":
        conn.reply(req, 200, b"{}", [("X-Seen", key.decode())])
    elif req.path == "/echo-body":
        conn.reply(req, 200, b"x" * 70000 + key + b"y" * 70000)
    else:
        conn.reply(req, 200, b"{}")


def main(t):
    s = scene.Scene(t)
    want = ("X-Api-Key", s.openai_secret.decode())
    plain = s.add(PLAIN, answer)
    keyed = s.add(KEYED, origin.needs(want, answer))
    s.add(BLOCKED, origin.needs(want, answer))
    clear = s.add(CLEAR, origin.needs(want, answer), tls=False)
    s.d.resolve[CLEAR + ":80"] = clear.address
    limits = {"query": {"page": "*"}, "headers": {"X-Api-Version": ["1", "2"]}}
    key = {"with": {"header": {"x-api-key": "openai"}}}
    s.rule(allow=PLAIN, **limits)
    s.rule(allow=KEYED, **limits, **key)
    s.rule(allow=BLOCKED, on_reflect="block", **key)
    s.rule(allow="http://" + CLEAR, allow_plaintext=True, **key)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for host, server in ((PLAIN, plain), (KEYED, keyed)):
        for path, headers, code in ASKED:
            seen = len(server.requests)
            r = gate.get(host, path, "".join("%s: %s\r\n" % x for x in headers.items()))
            t.ok((r.status, r.code) == ((403, code) if code else (200, None)) and
                 len(server.requests) - seen == (0 if code else 1),
                 "%s%s %s: %s" % (host, path, headers, code or "passes"),
                 "%d %s" % (r.status, r.code))
    with gate.plain() as st:
        r = st.ask("GET http://%s/x HTTP/1.1\r\nHost: %s\r\n\r\n" % (CLEAR, CLEAR))
    t.ok(r.status == 200 and clear.requests[-1].get("x-api-key") == want[1],
         "a credential over http:// where the rule says so", str(r.status))
    r = gate.get(BLOCKED, "/plain")
    t.eq(r.status, 200, "on_reflect: block lets a clean reply through")
    r = gate.get(BLOCKED, "/echo-head")
    t.ok((r.status, r.code) == (502, "secret_reflected"), "and refuses one with the secret in a field",
         "%d %s" % (r.status, r.code))
    r = gate.get(BLOCKED, "/echo-body")
    t.ok(r.truncated and want[1].encode() not in r.body and b"REDACTED" not in r.body,
         "in a body it is cut off before it", "%d %d bytes" % (r.status, len(r.body)))
    def aborted():
        return [x["code"] for x in s.d.kinds("aborted") if x["role"] == "injector"]
    tap.wait_for(lambda: len(aborted()) >= 2, 3)
    got = aborted()
    t.eq(got, ["secret_reflected"] * 2, "each is on record")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
