#!/usr/bin/python3 -B
"""Bodies and connections: chunked both ways, 100-continue, HEAD, 204, 304, close-delimited replies,
pipelining, keep-alive, pools, server-sent events, interim replies, a broken origin."""
import hashlib
import os
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, origin, scene, tap  # noqa: E402

HOST = "odd.example.com"
KEYED = "keyed.example.com"


OK = b"HTTP/1.1 200 OK\r\n"
REPAIRED = {  # path: (what the record says, the origin's bytes)
    "/name": ("name", OK + b"Server : x\r\nContent-Length: 2\r\n\r\nok"),
    "/length": ("length", OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok"),
    "/list": ("length", OK + b"Content-Length: 2, 2\r\n\r\nok"),
    "/coding": ("coding", b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "/all": ("name, length, coding", b"HTTP/1.1 304 Not Modified\r\nServer\t: x\r\nTransfer-Encoding: chunked\r\n"
             b"Content-Length: 2, 2\r\n\r\n"),
    "/whole": (None, OK + b"Server: x\r\nContent-Length: 2\r\n\r\nok")}


def answer(req, conn):
    """What the odd origin does by path."""
    path = req.path
    if path == "/chunks":
        conn.head(200, [("Transfer-Encoding", "chunked"), ("Content-Type", "text/plain")])
        for part in (b"one ", b"two ", b"three" * 2000):
            conn.chunk(part)
        conn.chunk(b"")
    elif path == "/close":
        conn.head(200, [("Connection", "close")])
        conn.send(b"until the end" * 100)
        conn.close_after = True
    elif path == "/204":
        conn.head(204, [("X-Mark", "1")])
    elif path == "/304":
        conn.head(304, [("ETag", '"x"')])
    elif path == "/early":
        conn.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        conn.reply(req, 200, "late")
    elif path == "/events":
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        for i in range(5):
            conn.chunk(b"data: %d %.6f\n\n" % (i, time.time()))
            time.sleep(0.15)
        conn.chunk(b"")
    elif path == "/short":
        conn.head(200, [("Content-Length", "100")])
        conn.send(b"only this")
        conn.close_after = True
    elif path == "/both":
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                  b"5\r\nhello\r\n0\r\n\r\n")
        conn.close_after = True
    elif path in REPAIRED:
        conn.send(REPAIRED[path][1])
        conn.close_after = True
    elif path == "/switch":
        conn.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        conn.close_after = True
    elif path == "/garbage":
        conn.send(b"this is not HTTP\r\n\r\n")
        conn.close_after = True
    elif path.startswith("/held/"):
        answer.held.wait(10)
        conn.reply(req, 200, "held")
    elif path == "/conn":
        conn.reply(req, 200, {"connection": conn.id})
    else:
        conn.reply(req, 200, {"length": req.body_len, "sha256": req.sha256, "path": req.path,
                              "coding": req.get("transfer-encoding"),
                              "trailers": req.trailers.decode()})


answer.held = threading.Event()


def get(path, host=HOST, extra="", method="GET"):
    return "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (method, path, host, extra)


def replies(t, gate, host):
    with gate.tls(host) as st:
        r = st.ask(get("/chunks", host))
        t.eq(r.body, b"one two " + b"three" * 2000, host + ": a chunked reply")
        r = st.ask(get("/204", host))
        t.eq((r.status, r.get("x-mark"), r.body), (204, "1", b""), host + ": 204")
        r = st.ask(get("/304", host))
        t.eq((r.status, r.get("etag")), (304, '"x"'), host + ": 304")
        r = st.ask(get("/anything", host, method="HEAD"), "HEAD")
        t.ok(r.status == 200 and int(r.get("content-length", "0")) > 10, host + ": HEAD keeps the "
             "length and sends no body", str(r.headers))
        r = st.ask(get("/early", host))
        t.eq((r.status, r.body), (200, b"late"), host + ": an interim reply does not confuse")
        r = st.ask(get("/after", host))
        t.eq(r.status, 200, host + ": all on one connection")
    with gate.tls(host) as st:
        r = st.ask(get("/close", host))
        t.eq(r.body, b"until the end" * 100, host + ": a reply that ends with the connection")
    with gate.tls(host) as st:
        r = st.ask(get("/short", host))
        t.ok(r.truncated or r.status == 502, host + ": a cut reply is not passed as whole",
             "%d %r" % (r.status, r.body))
    for path in ("/both", "/switch", "/garbage"):
        with gate.tls(host) as st:
            r = st.ask(get(path, host))
            t.eq(r.status, 502, host + ": a reply %s is 502" % path)


def repaired(t, s, gate):
    """What a proxy may mend is mended, and said in the record of the request's end."""
    for host in (HOST, KEYED):
        for path, (what, raw) in REPAIRED.items():
            with gate.tls(host) as st:
                r = st.ask(get(path, host))
            t.eq(r.status, int(raw[9:12]), "%s%s: passes" % (host, path))
            ids = [x["id"] for x in s.d.kinds("admitted", authority=host, path=path)]
            ends = tap.wait_for(lambda: [x for x in s.d.kinds("completed") if x["id"] in ids], 3) or [{}]
            t.eq(ends[0].get("repaired"), what, "%s%s: the record says what was mended" % (host, path))


def bodies(t, gate, host):
    data = os.urandom(100000)
    digest = hashlib.sha256(data).hexdigest()
    with gate.tls(host) as st:
        st.send(get("/put", host, "Content-Length: %d\r\n" % len(data), "POST"))
        st.send(data)
        t.has(st.reply().body.decode(), digest, host + ": a counted body arrives whole")
        st.send(get("/put", host, "Transfer-Encoding: chunked\r\n", "POST"))
        for at in range(0, len(data), 7001):
            part = data[at:at + 7001]
            st.send(b"%x;ext=1\r\n%s\r\n" % (len(part), part))
        st.send("0\r\nX-Trailer: smuggled\r\n\r\n")
        r = st.reply()
        t.has(r.body.decode(), digest, host + ": a chunked body arrives whole")
        t.ok(b"smuggled" not in r.body, host + ": without its trailers",
             r.body)
        st.send(get("/put", host, "Content-Length: 0\r\n", "POST"))
        t.eq(st.reply().status, 200, host + ": an empty body")
        r = st.ask(get("/after", host))
        t.eq(r.status, 200, host + ": and the connection goes on")
    with gate.tls(host) as st:
        st.send(get("/put", host, "Content-Length: 5\r\nExpect: 100-continue\r\n", "POST"))
        first = client.Reply(st.until(b"\r\n\r\n"))
        t.eq(first.status, 100, host + ": 100 Continue is answered")
        st.send("hello")
        t.has(st.reply().body.decode(), '"length": 5', host + ": then the body passes")


def pipelines(t, s, gate):
    with gate.tls(HOST) as st:
        st.send("".join(get("/p%d" % i) for i in range(20)))
        got = [st.reply() for _ in range(20)]
        t.ok(all(('"path": "/p%d"' % i).encode() in r.body for i, r in enumerate(got)),
             "20 pipelined requests, answered in order")
    before = len(s.odd.requests)
    with gate.tls(HOST) as st:
        st.send("".join(get("/denied/%d" % i if i % 2 else "/q%d" % i) for i in range(20)))
        got = []
        try:
            while len(got) < 20:
                got.append(st.reply())
        except client.Ended:
            pass
        right = all((r.status == 403 and r.code == "denied_by_rule") if i % 2 else
                    ('"path": "/q%d"' % i).encode() in r.body for i, r in enumerate(got))
        t.ok(right and len(got) >= 2, "each pipelined request is decided alone",
             str([r.status for r in got]))
    seen = [q.path for q in s.odd.requests[before:]]
    t.ok(seen and not [p for p in seen if p.startswith("/denied")], "no denied one reached the "
         "origin", str(seen))


def connections(t, s, gate):
    with gate.tls(HOST) as st:
        ids = {st.ask(get("/conn")).body for _ in range(5)}
        t.eq(len(ids), 1, "keep-alive: five requests use one upstream connection")
    ids = set()
    for _ in range(3):
        with gate.tls(KEYED) as st:
            ids.add(st.ask(get("/conn", KEYED)).body)
    t.ok(len(ids) < 3, "the pool is used again by a later connection", str(ids))
    with gate.tls(HOST) as st:
        st.ask(get("/close"))
    with gate.tls(HOST) as st:
        r = st.ask(get("/x", extra="Connection: close\r\n"))
        t.ok(r.status == 200 and st.ended(), "Connection: close is obeyed")
    with gate.tls(HOST) as st:
        r = st.ask("GET /old HTTP/1.0\r\nHost: %s\r\n\r\n" % HOST)
        t.ok(r.status == 200 and st.ended(), "HTTP/1.0 is answered and closed", str(r.status))
    errors = []

    def many(number):
        try:
            with gate.tls(HOST if number % 2 else KEYED) as st:
                host = HOST if number % 2 else KEYED
                for i in range(10):
                    r = st.ask(get("/m%d-%d" % (number, i), host))
                    if ('"path": "/m%d-%d"' % (number, i)).encode() not in r.body:
                        errors.append((number, i, r.status, r.body))
        except Exception as e:  # told below
            errors.append((number, repr(e)))
    threads = [threading.Thread(target=many, args=(n,)) for n in range(16)]
    [th.start() for th in threads]
    [th.join() for th in threads]
    t.ok(not errors, "16 connections at once, no reply crosses", *errors[:5])


def events(t, gate, host):
    with gate.tls(host) as st:
        st.send(get("/events", host))
        r = st.body(st.head())
    lags = []
    for when, data in r.chunks:
        for event in data.decode().split("\n\n"):
            if event:
                lags.append(when - float(event.split()[2]))
    slow = 0.12
    t.ok(len(lags) == 5 and max(lags) < slow, host + ": each event passes within %.2f s" % slow,
         str(lags))


def half_closed(t, s, gate, host, o):
    """A client that has ended its TLS and still reads, as socat and gnutls-cli do, gets its reply; one that is gone gets none."""
    for gone in (False, True):
        with gate.tls(host) as st:
            path, before = "/held/%d" % gone, len(s.d.kinds("aborted"))
            answer.held.clear()
            st.send(get(path, host, "Connection: close\r\n"))
            tap.wait_for(lambda p=path: o.count(path=p), 5)
            said = st.sock  # a whole shutdown would wait for the far side's
            said.setblocking(False)
            try:
                said._sslobj.shutdown()
            except ssl.SSLWantReadError:
                pass
            said.settimeout(10)
            if gone:
                said.close()
                t.ok(tap.wait_for(lambda: len(s.d.kinds("aborted")) > before, 5), "%s: who is gone is waited for no more" % host)
                answer.held.set()
                continue
            t.ok(not tap.wait_for(lambda: len(s.d.kinds("aborted")) > before, 0.3), "%s: who ended its TLS alone is not gone" % host)
            answer.held.set()
            r = st.reply()
            t.eq((r.status, r.body), (200, b"held"), "%s: and gets its reply" % host)


BAD = (b"GET http://%s/x HTTP/1.1\r\nHost : %s\r\n\r\n", b"GET http://%s/\x7f HTTP/1.1\r\nHost: %s\r\n\r\n",
       b"GET  http://%s/x HTTP/1.1\r\nHost: %s\r\n\r\n", b"GET http://%s/x HTTP/1.1\nHost: %s\r\n\r\n")


def one(address, source, head, wait=10):
    """One connection that says this. -> the first bytes of the answer"""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), wait, (source, 0)) as c:
        c.sendall(head)
        return c.recv(4096)[:12]


def at_fault(t, s, address):
    """Heads at fault slow down who sends them, over all its connections, and nobody else."""
    name, count = HOST.encode(), 160
    good = b"GET http://%s/nothing HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % ((b"other.example.com",) * 2)
    denied, begun = len(s.d.kinds("denied")), time.monotonic()
    got = [one(address, "127.0.0.3", BAD[i % len(BAD)] % ((name,) * BAD[i % len(BAD)].count(b"%s"))) for i in range(count)]
    took, late = time.monotonic() - begun, time.monotonic()
    t.eq(set(got), {b"HTTP/1.1 400"}, "%d heads at fault are all answered" % count)
    # 5 points each; 500 are free, and 100 come back a second
    t.ok(took > (count * 5 - 500) / 100 * 0.8, "which takes its time: %.1f s" % took)
    t.eq(one(address, "127.0.0.4", good), b"HTTP/1.1 403", "another client is answered meanwhile")
    near = time.monotonic() - late
    t.ok(near < 1, "at once: %.3f s" % near)
    t.ok(tap.wait_for(lambda: len(s.d.kinds("denied")) >= denied + count + 1, 3), "and each is recorded")


def main(t):
    s = scene.Scene(t)
    s.odd = s.add(HOST, answer)
    s.rule(allow=HOST)
    s.rule(deny=HOST + "/denied/**")
    want = ("X-Api-Key", s.openai_secret.decode())
    s.keyed = s.add(KEYED, origin.needs(want, answer))
    s.rule(allow=KEYED, **{"with": {"header": {"x-api-key": "openai"}}})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for host in (HOST, KEYED):
        for part in (replies, bodies, events):
            t.part(part, t, gate, host)
    t.part(pipelines, t, s, gate)
    t.part(connections, t, s, gate)
    t.part(repaired, t, s, gate)
    for host, o in ((HOST, s.odd), (KEYED, s.keyed)):
        t.part(half_closed, t, s, gate, host, o)
    t.part(at_fault, t, s, address)
    s.judge([(s.odd, None), (s.keyed, want)], (), "framing")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
