#!/usr/bin/python3 -B
"""`redact` and `refuse`: bodies on their way out, with and without a credential, over HTTP/1 and HTTP/2, of
known length and chunked, whole and in pieces. What is found is counted on record and stands nowhere."""
import gzip
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import h2, origin, scan, scene, tap  # noqa: E402

REDACT, REFUSE, KEYED, BARE, GRAPH, BOTH = ("%s.example.com" % x for x in
                                            ("redact", "refuse", "keyed", "bare", "graph", "both"))
JSON = "Content-Type: application/json\r\n"
MAIL, CARD = b"jane.doe@corp.example", b"4111 1111 1111 1111"
WANT = b"*" * len(MAIL), b"**** **** **** ****"


class Kept:
    """An origin that remembers the bodies it was sent."""

    def __init__(self):
        self.bodies = []

    def __call__(self, req, conn):
        self.bodies.append(bytes(req.body))
        conn.reply(req, 200, b"{}")


def body_of(*what):
    return b'{"text":"to ' + b" and ".join(what) + b' \\u00e9"}'


def ask_head(host, path, fields):
    return "POST %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n" % (path, host, JSON, fields)


def end_of(s, path, kind="completed", **more):
    """The last end record of the request with this path."""
    for r in reversed(s.d.wait_records(1, "admitted", path=path)):
        return s.d.wait_records(1, kind, id=r["id"], **more)[-1]


def redacted(t, s, gate, kept):
    sent, want = body_of(MAIL, CARD), body_of(*WANT)
    for host, name in ((REDACT, "plain"), (KEYED, "with a credential"), (GRAPH, "inspected as well")):
        body, clean = sent, want
        if host == GRAPH:
            body = json.dumps({"query": "{a(b:\"%s %s\")}" % (MAIL.decode(), CARD.decode())}).encode()
            clean = body.replace(MAIL, WANT[0]).replace(CARD, WANT[1])
        r = gate.get(host, "/whole", JSON, "POST", body=body)
        t.eq((r.status, kept[host].bodies[-1:]), (200, [clean]), "%s: what is found is made unreadable" % name)
        t.eq(end_of(s, "/whole").get("patterns"), "card 1, email 1", "%s: and counted on record" % name)
        with gate.tls(host) as st:
            st.send(ask_head(host, "/chunks", "Transfer-Encoding: chunked\r\n"))
            for i in range(len(body)):
                st.send(b"1\r\n" + body[i:i + 1] + b"\r\n")
            r = st.ask(b"0\r\n\r\n")
            t.eq((r.status, kept[host].bodies[-1:]), (200, [clean]), "%s: in chunks of a byte" % name)
            r = st.ask(ask_head(host, "/next", "Content-Length: 2\r\n").encode() + b"{}")
            if host != GRAPH:  # there it is no GraphQL
                t.eq((r.status, kept[host].bodies[-1:], end_of(s, "/next").get("patterns")), (200, [b"{}"], None),
                     "%s: the connection serves the next" % name)
    r = gate.get(BARE, "/bare", JSON, "POST", body=sent)
    t.eq((r.status, kept[BARE].bodies), (200, [sent]), "a rule without them changes nothing")


def refused(t, s, gate, kept):
    key = scan.canary("ghp_").decode()
    key = "ghp_" + (key[4:] + "A" * 36)[:36]
    s.scanner = scan.Scanner(key=key.encode())
    body = body_of(key.encode())
    r = gate.get(REFUSE, "/refused", JSON, "POST", body=body)
    t.eq((r.status, r.code, kept[REFUSE].bodies), (403, "pattern", []), "a token is refused, nothing reaches the origin")
    d = s.d.wait_records(1, "denied", code="pattern")[-1]
    t.eq((d.get("patterns"), d.get("path")), ("github 1", "/refused"), "the record counts what it was")
    t.eq([x for x in s.d.kinds("admitted") if x["path"] == "/refused"], [], "and it was not admitted")
    r = gate.get(REFUSE, "/fine", JSON, "POST", body=body_of(MAIL))
    t.eq((r.status, kept[REFUSE].bodies.pop()), (200, body_of(MAIL)), "what is not named passes as it is")
    r = gate.get(BOTH, "/both", JSON, "POST", body=body_of(MAIL))
    t.eq((r.status, kept[BOTH].bodies), (200, [body_of(WANT[0])]), "redact and refuse on one rule: the one")
    r = gate.get(BOTH, "/both2", JSON, "POST", body=body_of(MAIL, key.encode()))
    t.eq((r.status, r.code, len(kept[BOTH].bodies)), (403, "pattern", 1), "the other")
    late = b'{"x":"' + b"x" * 300000
    for host in (REFUSE, BOTH):
        seen = len(kept[host].bodies)
        with gate.tls(host) as st:
            st.send(ask_head(host, "/late", "Transfer-Encoding: chunked\r\n"))
            r = st.ask(b"%x\r\n" % len(late) + late + b"\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
            t.eq((r.status, r.code, len(kept[host].bodies)), (403, "pattern", seen),
                 "%s: in a long body: the origin never has the end of it" % host)
        t.eq(end_of(s, "/late", "aborted").get("patterns", ""), "github 1", "%s: and its record says so" % host)
    return key


def unreadable(t, gate, kept):
    rows = ((JSON + "Content-Encoding: gzip\r\n", gzip.compress(b"{}"), "content_coding"),
            ("Content-Type: text/plain; charset=utf-16\r\n", "x".encode("utf-16"), "content_type"),
            ("Content-Type: text/plain\r\n", "x".encode("utf-16"), "content_type"))
    for host in (REFUSE, REDACT):
        for fields, body, code in rows:
            seen = len(kept[host].bodies)
            r = gate.get(host, "/coded", fields, "POST", body=body)
            t.eq((r.status, r.code, len(kept[host].bodies)), (415, code, seen),
                 "%s: what cannot be judged is refused: %s" % (host, " ".join(fields.split())))
    with gate.tls(REFUSE) as st:
        st.send(ask_head(REFUSE, "/gone", "Content-Length: 100\r\n") + '{"query"')
    r = gate.get(REFUSE, "/empty", "", "POST", body=b"")
    t.eq(r.status, 200, "no body is no question")


def over_h2(t, gate, kept, key):
    h2.needed()
    for host in (REDACT, KEYED):
        with h2.H2(gate, host) as c:
            stream = c.open(c.fields("/h2", "POST"), end=False)
            c.frame(0, 0, stream, body_of(MAIL)[:15])
            c.frame(0, 1, stream, body_of(MAIL)[15:])
            t.eq((c.answer(stream, 10).status, kept[host].bodies[-1]), (200, body_of(WANT[0])), "HTTP/2: %s" % host)
    for host in (REFUSE, BOTH):
        with h2.H2(gate, host) as c:
            stream = c.open(c.fields("/h2r", "POST"), end=False)
            seen = len(kept[host].bodies)
            c.frame(0, 1, stream, body_of(key.encode()))
            a = c.answer(stream, 10)
            t.eq((a.status, len(kept[host].bodies)), (403, seen), "HTTP/2: refused: %s" % host)


def rejected(t, s):
    rows = (("redact: nothing", "is not a detector"), ("redact: [email, email], refuse: email", "is in 'redact' too"),
            ("refuse: github, websocket: true", "WebSocket"), ("refuse: []", "list"),
            ("with: { aws: key }, redact: email", "signs its body"))
    for text, why in rows:
        r = s.d.check("version: 1\nsecrets: { a: { env: A }, b: { env: B }, key: { aws_key: { access_key_id: a, "
                      "secret_access_key: b } } }\npolicies: { a: { rules: [ { allow: x.com, %s } ] } }\n" % text)
        t.ok(r.returncode == 1 and why in r.stderr + r.stdout, "%s: %s" % (text, why), r.stderr + r.stdout)
    r = s.d.check("version: 1\npolicies: { a: { rules: [ { allow: x.com/a/b, git: push, refuse: github } ] } }\n")
    t.ok(r.returncode == 1 and "compressed" in r.stderr + r.stdout, "nor in a git rule", r.stderr + r.stdout)


def main(t):
    s = scene.Scene(t)
    kept = {h: Kept() for h in (REDACT, REFUSE, BARE, GRAPH, KEYED, BOTH)}
    keyed = {"with": {"bearer": "github"}}
    for host in (REDACT, REFUSE, BARE, GRAPH):
        s.add(host, kept[host])
    for host in (KEYED, BOTH):
        s.add(host, origin.needs(s.github_credential, kept[host]))
    s.rule(allow=REDACT, redact=["email", "card"])
    s.rule(allow=GRAPH, redact=["email", "card"], graphql="read-only")
    s.rule(allow=KEYED, redact=["email", "card"], **keyed)
    s.rule(allow=BOTH, redact="email", refuse="credentials", **keyed)
    s.rule(allow=REFUSE, refuse="credentials", capture_body="4KB")
    s.rule(allow=BARE)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    redacted(t, s, gate, kept)
    key = refused(t, s, gate, kept)
    unreadable(t, gate, kept)
    over_h2(t, gate, kept, key)
    s.clean()
    r = s.d.command("audit", "verify", s.d.audit_dir)
    t.eq(r.returncode, 0, "the log verifies") or t.diag(r.stdout + r.stderr)
    rejected(t, s)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
