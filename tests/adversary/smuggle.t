#!/usr/bin/python3 -B
"""Framing attacks, byte for byte, through a gate to an uncredentialed and a credentialed origin: what
the grammar does not list is refused, and no part of it arrives as a request of its own."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import client, scene, shapes, tap  # noqa: E402

H = "deps.example.com"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: deps.example.com\r\n\r\n"


def post(fields, body=b"", line=b"POST /p HTTP/1.1"):
    return line + b"\r\nHost: {H}\r\n" + fields + b"\r\n" + body


CHUNK = b"0\r\n\r\n" + SMUGGLED
REFUSED = {  # name: (bytes with {H} for the host, statuses)
    "CL and TE": (post(b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", CHUNK), (400,)),
    "TE and CL": (post(b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", CHUNK), (400,)),
    "two CL": (post(b"Content-Length: 0\r\nContent-Length: 50\r\n", SMUGGLED), (400,)),
    "two equal CL": (post(b"Content-Length: 0\r\nContent-Length: 0\r\n"), (400,)),
    "CL list": (post(b"Content-Length: 0, 0\r\n"), (400,)),
    "CL +1": (post(b"Content-Length: +1\r\n", b"x"), (400,)),
    "CL -1": (post(b"Content-Length: -1\r\n", b"x"), (400,)),
    "CL hex": (post(b"Content-Length: 0x1\r\n", b"x"), (400,)),
    "CL empty": (post(b"Content-Length:\r\n", SMUGGLED), (400,)),
    "CL overflow": (post(b"Content-Length: 18446744073709551616\r\n"), (400, 413)),
    "CL inner space": (post(b"Content-Length: 1 1\r\n", b"x" * 11), (400,)),
    "TE xchunked": (post(b"Transfer-Encoding: xchunked\r\n", CHUNK), (400, 501)),
    "TE list": (post(b"Transfer-Encoding: chunked, identity\r\n", CHUNK), (400, 501)),
    "TE gzip": (post(b"Transfer-Encoding: gzip, chunked\r\n", CHUNK), (400, 501)),
    "TE twice": (post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNK),
                 (400, 501)),
    "TE dup false": (post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked-false\r\n",
                          CHUNK), (400, 501)),
    "TE tab": (post(b"Transfer-Encoding:\x0bchunked\r\n", CHUNK), (400, 501)),
    "TE quoted": (post(b"Transfer-Encoding: \"chunked\"\r\n", CHUNK), (400, 501)),
    "TE in 1.0": (post(b"Transfer-Encoding: chunked\r\n", CHUNK, b"POST /p HTTP/1.0"), (400,)),
    "TE identity": (post(b"Transfer-Encoding: identity\r\n", CHUNK), (400, 501)),
    "space before colon": (post(b"Transfer-Encoding : chunked\r\n", CHUNK), (400,)),
    "space before name": (post(b" Transfer-Encoding: chunked\r\n", CHUNK), (400,)),
    "folded value": (post(b"X-A: b\r\n c\r\n"), (400,)),
    "folded TE": (post(b"Transfer-Encoding:\r\n chunked\r\n", CHUNK), (400,)),
    "bare LF line": (b"GET /p HTTP/1.1\nHost: {H}\n\n", (400,)),
    "bare LF field": (post(b"X-A: b\nX-B: c\r\n"), (400,)),
    "bare CR in a value": (post(b"X-A: b\rX-B: c\r\n"), (400,)),
    "NUL in a value": (post(b"X-A: b\0c\r\n"), (400,)),
    "control in a value": (post(b"X-A: b\x01c\r\n"), (400,)),
    "empty name": (post(b": x\r\n"), (400,)),
    "no colon": (post(b"X-A\r\n"), (400,)),
    "name with underscore": (post(b"Content_Length: 5\r\n"), (400,)),
    "TE with underscore": (post(b"Transfer_Encoding: chunked\r\n"), (400,)),
    "name with high byte": (post(b"X-\xe9: 1\r\n"), (400,)),
    "leading CRLF": (b"\r\nGET /p HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "leading space": (b" GET /p HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "two spaces": (b"GET  /p HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "tab in the line": (b"GET\t/p HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "space in the target": (b"GET /p q HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "no version": (b"GET /p\r\nHost: {H}\r\n\r\n", (400, 505)),
    "HTTP/0.9": (b"GET /p\r\n\r\n", (400, 505)),
    "HTTP/2.0": (b"GET /p HTTP/2.0\r\nHost: {H}\r\n\r\n", (400, 505)),
    "HTTP/1.10": (b"GET /p HTTP/1.10\r\nHost: {H}\r\n\r\n", (400, 505)),
    "HTTP/9.9": (b"GET /p HTTP/9.9\r\nHost: {H}\r\n\r\n", (400, 505)),
    "http/1.1": (b"GET /p http/1.1\r\nHost: {H}\r\n\r\n", (400, 505)),
    "no Host": (b"GET /p HTTP/1.1\r\nX-A: b\r\n\r\n", (400,)),
    "two Host": (b"GET /p HTTP/1.1\r\nHost: {H}\r\nHost: {H}\r\n\r\n", (400,)),
    "empty Host": (b"GET /p HTTP/1.1\r\nHost:\r\n\r\n", (400, 421)),
    "Host with path": (b"GET /p HTTP/1.1\r\nHost: {H}/x\r\n\r\n", (400,)),
    "Host with user": (b"GET /p HTTP/1.1\r\nHost: u@{H}\r\n\r\n", (400,)),
    "chunk size 0x1": (post(b"Transfer-Encoding: chunked\r\n", b"0x1\r\nx\r\n0\r\n\r\n"), (400,)),
    "chunk size +1": (post(b"Transfer-Encoding: chunked\r\n", b"+1\r\nx\r\n0\r\n\r\n"), (400,)),
    "chunk size with space": (post(b"Transfer-Encoding: chunked\r\n", b"1 \r\nx\r\n0\r\n\r\n"),
                              (400,)),
    "chunk size empty": (post(b"Transfer-Encoding: chunked\r\n", b"\r\nx\r\n0\r\n\r\n"), (400,)),
    "chunk size long": (post(b"Transfer-Encoding: chunked\r\n", b"0" * 40 + b"1\r\nx\r\n0\r\n\r\n"),
                        (400,)),
    "chunk size huge": (post(b"Transfer-Encoding: chunked\r\n", b"FFFFFFFFFFFFFFFF\r\nx"),
                        (400, 413)),
    "chunk without CRLF": (post(b"Transfer-Encoding: chunked\r\n", b"1\r\nxy0\r\n\r\n" + SMUGGLED),
                           (400,)),
    "chunk with LF": (post(b"Transfer-Encoding: chunked\r\n", b"1\nx\n0\n\n"), (400,)),
    "LF in chunk extension": (post(b"Transfer-Encoding: chunked\r\n",
                                   b"1;a\nb\r\nx\r\n0\r\n\r\n"), (400,)),
    "long chunk extension": (post(b"Transfer-Encoding: chunked\r\n",
                                  b"1;" + b"a" * 4000 + b"\r\nx\r\n0\r\n\r\n"), (400,)),
    "bad trailer": (post(b"Transfer-Encoding: chunked\r\n", b"0\r\nX A: b\r\n\r\n"), (400,)),
    "asterisk GET": (b"GET * HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "authority form GET": (b"GET {H}:443 HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "PRI": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 405, 505)),
    "absolute form of another scheme": (b"GET http://{H}/p HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "absolute form of another host": (b"GET https://other.example.com/p HTTP/1.1\r\nHost: {H}\r\n\r\n", (400,)),
    "absolute form of another port": (b"GET https://{H}:444/p HTTP/1.1\r\nHost: {H}:444\r\n\r\n", (400,)),
    "absolute form, another Host": (b"GET https://{H}/p HTTP/1.1\r\nHost: other.example.com\r\n\r\n", (421,)),
}


def attack(t, s, gate, host, origin):
    for name, (data, wanted) in REFUSED.items():
        before = origin.count(path="/smuggled")
        arrived = len(origin.requests)
        with gate.tls(host) as st:
            st.send(data.replace(b"{H}", host.encode()))
            try:
                r = st.reply()
            except (client.Ended, OSError) as e:
                t.ok(False, "%s: %s is refused with %s" % (host, name, wanted), repr(e))
                continue
            first = r.status
            try:
                closed = st.ended(3)
            except OSError:
                closed = True
        good = first in wanted and closed and origin.count(path="/smuggled") == before
        early = "chunk" in name or name == "bad trailer"
        if not early:
            good = good and len(origin.requests) == arrived
        t.ok(good, "%s: %s is refused with %s" % (host, name, wanted),
             "status %d, closed %s, smuggled %d, arrived %d" % (
                 first, closed, origin.count(path="/smuggled") - before,
                 len(origin.requests) - arrived))


def bodies_on_get(t, gate, host, origin):
    """CL.0: an origin may ignore a body on GET; its bytes must never be read as a request there."""
    before = origin.count(path="/smuggled")
    with gate.tls(host) as st:
        body = SMUGGLED.replace(H.encode(), host.encode())
        r = st.ask(b"GET /g HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s" % (
            host.encode(), len(body), body))
        t.ok(r.status in (200, 400), "%s: a body on GET is a body or refused" % host, str(r.status))
    got = [q for q in origin.requests if q.path == "/g"]
    t.ok(all(q.body_len == len(body) for q in got) and origin.count(path="/smuggled") == before,
         "%s: and nothing of it a request" % host)


def no_get_bodies(conn):
    """An origin that takes no body of a GET for a body: it answers as soon as it has the head."""
    while not conn.close_after:
        req = conn.read_head()
        if req.method != "GET":
            conn.read_body(req)
        conn.close_after = (req.get("connection") or "").lower() == "close"
        conn.reply(req, 200, b"ok")


def half_a_request(t, gate, host, origin, credential):
    """Such an origin, and a body that is the beginning of a request: the next one, with its
    credential, must not become the rest of it."""
    body = b"GET /elsewhere HTTP/1.1\r\nHost: %s\r\nX-Rest: " % host.encode()
    for method in (b"GET", b"DELETE"):
        with gate.tls(host) as st:
            st.ask(b"%s /g HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s" % (
                method, host.encode(), len(body), body))
        r = gate.get(host, "/next")
        t.eq(r.status, 200, "%s: after a %s with a body the next is answered" % (
            host, method.decode()))
    bad = [q for q in origin.requests if q.path == "/elsewhere"]
    t.ok(not bad, "%s: no request was made of a body and the next request" % host,
         *["%s %s" % (q.path, q.credentials()) for q in bad])
    got = [q for q in origin.requests if q.path == "/g"]
    t.ok(got and all(q.all("connection") == ["close"] for q in got),
         "%s: and the origin was told that nothing follows" % host)
    wrong = [q.path for q in origin.requests if q.credentials() != credential]
    t.ok(not wrong, "%s: each with its credential" % host, *wrong)


def main(t):
    s = scene.Scene(t)
    keyed = s.add("keyed.example.com", shapes.echo)
    s.rule(allow="keyed.example.com", **{"with": {"bearer": "openai"}})
    deaf = s.add("deaf.example.com", script=no_get_bodies)
    s.rule(allow="deaf.example.com", **{"with": {"bearer": "openai"}})
    deaf_plain = s.add("deaf-plain.example.com", script=no_get_bodies)
    s.rule(allow="deaf-plain.example.com")
    s.d.limits = {"head_seconds": 3, "idle_seconds": 4}
    address = s.listener()
    s.d.serve()
    gate = s.gate(address, timeout=6)
    for host, o in ((H, s.plain), ("keyed.example.com", keyed)):
        attack(t, s, gate, host, o)
        bodies_on_get(t, gate, host, o)
    want = [("authorization", "Bearer " + s.openai_secret.decode())]
    t.ok(all(q.credentials() == want for q in keyed.requests),
         "no request reached the credentialed origin without exactly its credential")
    half_a_request(t, gate, "deaf.example.com", deaf, want)
    half_a_request(t, gate, "deaf-plain.example.com", deaf_plain, [])
    s.judge([(s.plain, None), (keyed, None), (deaf, None), (deaf_plain, None)], (), "smuggling",
            exact=False)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90)
