#!/usr/bin/python3 -B
"""Origins that speak HTTP/2, real ones: nghttpd and nginx. Clients of HTTP/1.1 reach them through
the gate and through the injector; 100 MiB both ways in bounded memory; 200 at once on one
connection; TLS sessions resumed within a pool key only."""
import hashlib
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2_frames as h2, memory, scene, tap  # noqa: E402

FILES, KEYED, NGINX, TRAILERS = ("files.example.com", "keyed.example.com", "nginx.example.com",
                                 "trailers.example.com")
SIZE = 100 << 20
BLOCK = os.urandom(1 << 16)
DIGEST = hashlib.sha256(BLOCK * (SIZE // len(BLOCK))).hexdigest()


def small(t, gate, o, host):
    """What a request and a reply carry."""
    r = gate.get(host, "/small?q=1", "TE: trailers\r\nX-Mark: one\r\nConnection: TE\r\n")
    t.eq((r.status, r.body), (200, b"small\n"), host + ": GET")
    t.ok(r.version == "HTTP/1.1" and r.get("content-length") == "6", host + ": the reply's length",
         str(r.headers))
    seen = o.text()
    for want in (":method: GET", ":scheme: https", ":authority: " + host, ":path: /small?q=1",
                 "x-mark: one", "te: trailers"):
        t.ok(want in seen, host + ": the origin saw " + want, seen[-2000:])
    t.ok("connection: " not in seen and "host: " not in seen, host + ": and no field of one hop")
    r = gate.get(host, "/small", method="HEAD")
    t.ok(r.status == 200 and r.get("content-length") == "6" and not r.body, host + ": HEAD",
         str(r.headers))
    r = gate.get(host, "/absent")
    t.eq(r.status, 404, host + ": 404")
    body = os.urandom(100000)
    r = gate.get(host, "/up", method="POST", body=body)
    t.ok(r.status == 200 and r.body == body, host + ": a counted body and its echo", str(r.status))
    with gate.tls(host) as st:
        st.send("POST /up HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % host)
        for at in range(0, len(body), 7001):
            part = body[at:at + 7001]
            st.send(b"%x\r\n%s\r\n" % (len(part), part))
        r = st.ask("0\r\n\r\n")
        t.ok(r.status == 200 and r.body == body, host + ": a chunked one", str(r.status))
        r = st.ask("POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n" % host)
        t.eq((r.status, r.body), (200, b""), host + ": an empty one")
    t.eq(len(o.connections()), 1, host + ": all on one connection")


def drain(st, left, digest):
    digest.update(st.buf)
    left -= len(st.buf)
    st.buf = b""
    while left > 0:
        data = st.sock.recv(1 << 18)
        if not data:
            break
        digest.update(data)
        left -= len(data)
    return left


def bulk(t, gate, host):
    started = time.time()
    with gate.tls(host) as st:
        digest = hashlib.sha256()
        st.send("GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        st.head()
        left = drain(st, SIZE, digest)
        t.ok(left == 0 and digest.hexdigest() == DIGEST, host + ": 100 MiB down arrive whole",
             "left %d" % left)
    middle = time.time()
    with gate.tls(host) as st:
        st.send("POST /small HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (host, SIZE))
        for _ in range(SIZE // len(BLOCK)):
            st.send(BLOCK)
        r = st.head()
        digest = hashlib.sha256()
        left = drain(st, SIZE, digest)
        t.ok(r.status == 200 and left == 0 and digest.hexdigest() == DIGEST,
             host + ": 100 MiB up, and their echo, arrive whole", "%d, left %d" % (r.status, left))
    t.diag("%s: down %.0f MiB/s, up and down %.0f MiB/s" % (host, 100 / (middle - started),
                                                   200 / (time.time() - middle)))


def slow_reader(t, gate, o, host):
    """A client that reads nothing holds the origin back by the window, and no other client."""
    before = o.count("send DATA frame")
    with gate.tls(host) as st:
        st.send("GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        st.head()
        still = [-1]

        def stands():
            last, still[0] = still[0], o.count("send DATA frame")
            return last == still[0]
        tap.wait_for(stands, 8, 0.7)
        sent = (still[0] - before) * 16384
        t.ok(sent < SIZE // 2, host + ": a reader that stops holds the origin back", str(sent))
        r = gate.get(host, "/small")
        t.eq(r.body, b"small\n", host + ": another stream of the connection goes on")
        left = drain(st, SIZE, hashlib.sha256())
        t.eq(left, 0, host + ": and it gets all when it reads on")


def many(t, gate, o, host, n=200):
    """n requests under way at once: their bodies are held back until all have begun."""
    before = o.connections()
    streams = []
    for _ in range(n):
        st = gate.tls(host)
        streams.append(st)
        st.send("POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: 5\r\n\r\nhel" % host)
    good = 0
    tap.wait_for(lambda: o.count(":path: /up") >= n, 20)
    for st in streams:
        st.send("lo")
    for st in streams:
        good += st.reply().body == b"hello"
        st.close()
    t.eq(good, n, "%s: %d requests at once" % (host, n))
    fresh = o.connections() - before
    t.ok(len(fresh) <= 1, host + ": on one connection", "before %s, new %s" % (before, fresh))


def cancelled(t, gate, o, host):
    """A client that leaves ends its stream; the connection lives."""
    before, resets = o.connections(), o.count("recv RST_STREAM")
    st = gate.tls(host)
    st.send("GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
    st.head()
    st.close()
    tap.wait_for(lambda: o.count("recv RST_STREAM") > resets, 5)
    t.ok(o.count("recv RST_STREAM") > resets and "CANCEL" in o.text(),
         host + ": a client that leaves cancels its stream")
    t.eq((gate.get(host, "/small").status, o.connections()), (200, before),
         host + ": the connection goes on")


def trailers(t, gate, o):
    with gate.tls(TRAILERS) as st:
        r = st.ask("GET /small HTTP/1.1\r\nHost: %s\r\nTE: trailers\r\nConnection: TE\r\n\r\n"
                   % TRAILERS)
        t.eq((r.status, r.body), (200, b"small\n"), "a reply with trailers")
        if r.get("transfer-encoding"):
            t.has(r.trailers, b"x-sum: 42", "its trailers come")


def resumption(t, s, gate, o, d):
    """nginx closes after two requests a connection: each further connection resumes."""
    for _ in range(6):
        t.eq(gate.get(NGINX, "/small").status, 200, "nginx: GET")
    seen = o.records()
    t.ok(all(x["http"] == "HTTP/2.0" for x in seen), "nginx: all HTTP/2", str(seen))
    first = {}
    for x in seen:
        first.setdefault(x["connection"], x["reused"])
    t.eq(list(first.values()), ["."] + ["r"] * (len(first) - 1),
         "nginx: the first handshake is whole, %d more resume it" % (len(first) - 1))
    t.ok(len(first) >= 3, "nginx: several connections", str(first))
    n = len(seen)
    other = s.gate(s.other)
    other.get(NGINX, "/small")
    x = o.records()[n]
    t.eq(x["reused"], ".", "another policy's first handshake resumes nothing (E12)")


def grpc(t, gate):
    for host, want in ((FILES, None), (scene.PLAIN, "grpc_needs_h2")):
        with gate.tls(host) as st:
            r = st.ask("POST /small HTTP/1.1\r\nHost: %s\r\nContent-Type: application/grpc+proto\r\n"
                       "Content-Length: 3\r\n\r\nabc" % host)
            t.eq((r.status == 502, r.code), (want is not None, want), "gRPC to " + host)


def main(t):
    s = scene.Scene(t)
    files = h2.Nghttpd(t, s.d.ca, FILES, "--echo-upload", "-m", "250")
    keyed = h2.Nghttpd(t, s.d.ca, KEYED, "--echo-upload", "-m", "250")
    nginx = h2.Nginx(t, s.d.ca, NGINX, "keepalive_requests 2;")
    trailing = h2.Nghttpd(t, s.d.ca, TRAILERS, "--trailer", "x-sum: 42")
    for o in (files, keyed, nginx, trailing):
        s.d.origin(o.names[0], o)
        with open(os.path.join(o.www, "small"), "w") as f:
            f.write("small\n")
    for o in (files, keyed):
        with open(os.path.join(o.www, "big"), "wb") as f:
            for _ in range(SIZE // len(BLOCK)):
                f.write(BLOCK)
    for host in (FILES, NGINX, TRAILERS):
        s.rule(allow=host)
    s.rule(allow=KEYED, **{"with": {"bearer": "openai"}})
    s.d.policy("other", [{"allow": NGINX}])
    address = s.listener()
    s.other = s.listener("other")
    s.d.limits["connections"] = 1000
    s.d.serve()
    gate = s.gate(address, timeout=30)
    for host, o in ((FILES, files), (KEYED, keyed)):
        t.part(small, t, gate, o, host)
    s.plain.requests.clear()
    t.part(grpc, t, gate)
    t.eq(len(s.plain.requests), 0, "nothing of it reached the origin without HTTP/2")
    t.part(trailers, t, gate, trailing)
    t.part(resumption, t, s, gate, nginx, s.d)
    idle = memory.roles(s.d)
    watch = memory.Watch(s.d)
    for host, o in ((FILES, files), (KEYED, keyed)):
        t.part(bulk, t, gate, host)
        t.part(slow_reader, t, gate, o, host)
        t.part(cancelled, t, gate, o, host)
    peak = watch.result()
    grown = {r: peak[r] - idle.get(r, 0) for r in peak}
    t.diag("anonymous KiB idle %s, growth %s" % (idle, grown))
    if not durward.sanitized():  # AddressSanitizer keeps what was freed: its memory says nothing
        t.ok(peak and max(grown.values()) < 8192, "no role grew by 8 MiB", str(grown))
    for host, o in ((FILES, files), (KEYED, keyed)):
        t.part(many, t, gate, o, host)
    text = keyed.text()
    right = "authorization: Bearer " + s.openai_secret.decode()
    t.ok(text.count(right) > 200 and text.count("authorization: ") == text.count(right),
         "one right credential in each request", str(text.count(right)))
    t.ok("authorization" not in files.text(), "and none where the rule has none")
    s.clean()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=180)
