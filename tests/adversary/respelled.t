#!/usr/bin/python3 -B
"""What a narrower rule asks holds in every spelling of a path and of a method: through the gate alone and
through the injector, over HTTP/1.1 and HTTP/2. The wide rule beside it would let each of them through."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import h2, origin, scene, shapes, tap  # noqa: E402

PLAIN, KEYED = "plain.example.com", "keyed.example.com"
MERGE = "/repos/a/b/pulls/7/merge"
# A spelling of the path above that some origin takes for it, and what has to be answered.
SPELLINGS = (
    (MERGE + "/", 403, "respelled"), (MERGE.upper(), 403, "respelled"), (MERGE + ";a", 403, "respelled"),
    (MERGE + ".", 403, "respelled"), (MERGE + "%20", 403, "respelled"), (MERGE + "%2f", 403, "respelled"),
    (MERGE + "%3fx", 403, "respelled"), (MERGE + "%23x", 403, "respelled"),
    ("/repos/a/b/pulls%2F7/merge", 403, "respelled"), ("/repos;x=1/a/b/pulls/7/merge", 403, "respelled"),
    ("/repos/a/b/pulls/7/%256derge", 403, "respelled"), ("/Repos/a/b/pulls/7/merge", 403, "respelled"),
    (MERGE + "%09", 400, "path_ambiguous"), (MERGE + "%0a", 400, "path_ambiguous"),
    (MERGE + "%7f", 400, "path_ambiguous"), (MERGE + "%2509", 400, "path_ambiguous"),
    ("/repos/a/b/pulls/7/%6derge", 403, "header"), ("/%72epos/a/b/pulls/7/merg%65", 403, "header"),
    ("/graph%71l", 403, "graphql"), ("/GraphQL", 403, "respelled"),
    ("/oauth/%74oken/", 403, "respelled"), ("/ADMIN/x", 403, "denied_by_rule"), ("/adm%C4%B1n/x", 403, "denied_by_rule"),
    ("/admin%2f", 403, "denied_by_rule"), ("/admin.", 403, "denied_by_rule"),
    ("/admin%20", 403, "denied_by_rule"), ("/admin/", 403, "denied_by_rule"),
    ("/LOG/x", 403, "respelled"), ("/log;x/y", 403, "respelled"))
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
PARTS = "multipart/form-data; boundary=xyz"
PART = "--xyz\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\nDELETE\r\n--xyz--\r\n"
# The query, the type and the body of a POST where DELETE is denied: is it refused?
OVERRIDES = (
    ("?_method=DELETE", FORM, "a=b", True), ("?x-http-method-override=DELETE", FORM, "a=b", True),
    ("?%24httpMethod=DELETE", FORM, "a=b", True), ("", FORM, "_method=DELETE", True),
    ("", FORM, "a=b&%5Fmethod=DELETE", True), ("", FORM, "x=" + "y" * 70000 + "&_method=DELETE", True),
    ("", JSON, '{"a":1,"_method":"DELETE"}', True), ("", PARTS, PART % "_method", True),
    ("", FORM, "a=_method", False), ("", JSON, '{"a":"_method"}', False), ("", PARTS, PART % "a", False),
    ("", None, "b=c&_method=DELETE", True), ("", None, "a=_method", False),
    ("", " ", "_method=DELETE", True), ("", FORM + ",x", "_method=DELETE", True),
    ("?[_method]=DELETE", FORM, "a=b", True), ("?_method%00=DELETE", FORM, "a=b", True),
    ("", PARTS.replace("form-data", "mixed"), PART % "_method", True), ("", PARTS + ",z", PART % "a", True),
    ("", "text/plain\r\nContent-Type: " + FORM, "_method=DELETE", True),
    ("", FORM + "\r\nContent-Encoding: gzip", "\x1f\x8b", True),
    ("", JSON + "\r\nContent-Encoding: gzip", "\x1f\x8b", False),
    ("", JSON + "; charset=utf-16", "{}", True), ("", JSON + "; charset=utf-8", "{}", False),
    ("", "text/plain", "_method=DELETE", False), ("?method=DELETE", FORM, "method=DELETE", False))
FIELDS = ("X-HTTP-Method-Override", "HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")


def rules(s, host, key):
    s.rule(allow=host, **key)
    s.rule(allow=host + "/repos/*/*/pulls/*/merge", headers={"X-Sure": "yes"}, **key)
    s.rule(allow=host + "/graphql", graphql="read-only", **key)
    s.rule(allow=host + "/oauth/token", query={"a": "1"}, **key)
    s.rule(allow=host + "/log/**", budget={"requests": "1/h"}, **key)
    s.rule(deny=host + "/admin/**")
    s.rule(deny=host + "/items/**", methods=["DELETE"])


def spelled(t, gate, host, server):
    for path, status, code in SPELLINGS:
        for version in ("1.1", "2"):
            seen = len(server.requests)
            if version == "1.1":
                r = gate.get(host, path)
            else:
                with h2.H2(gate, host) as c:
                    r = c.ask(path)
            t.ok((r.status, r.code) == (status, code) and len(server.requests) == seen,
                 "%s%s over HTTP/%s: %s" % (host, path, version, code), "%s %s" % (r.status, r.code))
    r = gate.get(host, MERGE, "X-Sure: yes\r\n")
    t.eq(r.status, 200, "%s: the plain spelling passes as its rule says" % host)


def overridden(t, gate, host, server):
    for query, kind, body, refused in OVERRIDES:
        done = len([r for r in server.requests if r.complete])
        with gate.tls(host) as st:
            r = st.ask("POST /items/1%s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s"
                       % (query, host, "Content-Type: %s\r\n" % kind if kind else "", len(body), body))
        passed = len([r for r in server.requests if r.complete]) - done
        t.ok((r.status, r.code, passed) == ((403, "method_override", 0) if refused else (200, None, 1)),
             "%s: %s%.40r %s" % (host, query, body, "is refused" if refused else "passes"),
             "%s %s, %d whole requests" % (r.status, r.code, passed))
    for name in FIELDS:
        r = gate.get(host, "/items/1", "%s: DELETE\r\n" % name)
        t.ok(r.status == 200 and server.requests[-1].get(name.lower()) is None,
             "%s: %s does not reach an origin where DELETE is denied" % (host, name), str(r.status))
        gate.get(host, "/elsewhere", "%s: DELETE\r\n" % name)
        t.eq(server.requests[-1].get(name.lower()), "DELETE",
             "%s: and does where no rule looks at the method" % host)


def copied(t, gate, host, server):
    """What an object store would copy from is judged as well."""
    for source, passes in (("items/1", True), ("admin/x", False), ("%61dmin/x", False), ("ADMIN/x", False)):
        seen = len(server.requests)
        with gate.tls(host) as st:
            r = st.ask("PUT /items/2 HTTP/1.1\r\nHost: %s\r\nx-amz-copy-source: %s\r\nContent-Length: 0\r\n\r\n"
                       % (host, source))
        t.ok((r.status, r.code, len(server.requests) - seen) == ((200, None, 1) if passes else (403, "destination", 0)),
             "%s: a copy from %s %s" % (host, source, "passes" if passes else "is refused"), "%s %s" % (r.status, r.code))
    r = gate.get(host, "/elsewhere", "X-HTTP-Method-Override: MOVE\r\nDestination: /admin/x\r\n")
    t.ok(r.status == 200 and server.requests[-1].get("x-http-method-override") is None,
         "%s: where a Destination stands no field asks for another method" % host, str(r.status))


def main(t):
    s = scene.Scene(t)
    key = {"with": {"bearer": "openai"}}
    plain, keyed = s.add(PLAIN, shapes.echo), s.add(KEYED, origin.needs(
        ("Authorization", "Bearer " + s.openai_secret.decode()), shapes.echo))
    h2.needed()
    rules(s, PLAIN, {})
    rules(s, KEYED, key)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for host, server in ((PLAIN, plain), (KEYED, keyed)):
        spelled(t, gate, host, server)
        overridden(t, gate, host, server)
        copied(t, gate, host, server)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
