#!/usr/bin/python3 -B
"""An evil or ailing HTTP/2 origin: each of its tricks is a 502 or 504 with the right code, or a reply
cut short, never a hung client, a second request that nobody asked for, or another request's loss
(B25, B28, B31); and the benign twins pass."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "functional"))
from harness import h2_frames as h2, scene, tap  # noqa: E402
from harness.h2_frames import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS,  # noqa
                        PING, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, head)

PLAIN, KEYED, OLD = "evil.example.com", "evil-keyed.example.com", "old.example.com"
SOCKETS = {PLAIN: "sockets.example.com", KEYED: "sockets-keyed.example.com"}  # which announce RFC 8441
HELLO = frame(SETTINGS)
HELLO_SOCKETS = frame(SETTINGS, 0, 0, b"\0\x08\0\0\0\1")
OK = END_HEADERS | END_STREAM


class Play:
    """Which trick the origin plays, and what it counted."""

    def __init__(self, hello=HELLO):
        self.hello = hello
        self.trick, self.requests, self.connections = None, 0, 0
        self.lock = threading.Lock()

    def set(self, trick):
        self.trick, self.requests, self.connections = trick, 0, 0

    def script(self, peer):
        with self.lock:
            self.connections += 1
            number = self.connections
        peer.send(self.hello)
        while True:
            stream = peer.request()
            with self.lock:
                self.requests += 1
            self.trick(peer, stream, number)


def answer(peer, stream, _=0):
    peer.send(head(stream, 200, [("content-length", "2")]) + frame(DATA, END_STREAM, stream, b"ok"))


def flood(data):
    def trick(peer, stream, _):
        block = data(stream) * 200
        for _ in range(100):
            peer.send(block)
    return trick


def say(data):
    return lambda peer, stream, _: peer.send(data(stream))


RST = {"refused": 7, "cancel": 8, "internal": 2, "no_error": 0, "calm": 11}


def rst(code):
    return lambda s: frame(RST_STREAM, 0, s, RST[code].to_bytes(4, "big"))


# name, what is said upon a request, status, code
TRICKS = (
    ("no HTTP/2 at all", say(lambda s: b"HTTP/1.1 200 OK\r\n\r\n" * 40), 502, "upstream_protocol"),
    ("101", say(lambda s: head(s, 101)), 502, "upstream_protocol"),
    ("a head of one hop", say(lambda s: head(s, 200, [("connection", "close")], OK)), 502,
     "upstream_protocol"),
    ("Transfer-Encoding", say(lambda s: head(s, 200, [("transfer-encoding", "chunked")])), 502,
     "upstream_protocol"),
    ("a field with a line ending", say(lambda s: head(s, 200, [("x", "a\r\nset-cookie: b")], OK)),
     502, "upstream_protocol"),
    ("two lengths", say(lambda s: head(s, 200, [("content-length", "5"), ("content-length", "6")])),
     502, "upstream_protocol"),
    ("a head of 1 MB", say(lambda s: head(s, 200, [("x", "y" * 200)] * 60, 0) + b"".join(
        frame(CONTINUATION, 0, s, h2.block(*[("x", "y" * 200)] * 60)) for _ in range(80))), 502,
     "upstream_protocol"),
    ("an endless head", flood(lambda s: frame(CONTINUATION, 0, s, h2.block(("a", "b")))), 502,
     "upstream_protocol"),
    ("a push", say(lambda s: frame(PUSH_PROMISE, END_HEADERS, s, b"\0\0\0\2" + h2.block(
        (":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", "a")))), 502,
     "upstream_protocol"),
    ("a reply to what was not asked", say(lambda s: head(s + 2, 200)), 502, "upstream_protocol"),
    ("a window of more than 2^31", say(lambda s: frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff")),
     502, "upstream_protocol"),
    ("a broken compression", say(lambda s: frame(HEADERS, OK, s, b"\xff\xff\xff\xff\xff\xff")), 502,
     "upstream_protocol"),
    ("9 interim replies", say(lambda s: head(s, 103) * 9 + head(s, 200, (), OK)), 502,
     "upstream_protocol"),
    ("PINGs without end", flood(lambda s: frame(PING, 0, 0, b"12345678")), 502,
     "upstream_protocol"),
    ("SETTINGS without end", flood(lambda s: frame(SETTINGS, 0, 0, b"\0\4\0\0\0\1")), 502,
     "upstream_protocol"),
    ("frames of no known type", flood(lambda s: frame(0xee, 0, 0, b"")), 502, "upstream_protocol"),
    ("RST_STREAM", say(rst("internal")), 502, "upstream_reset"),
    ("RST_STREAM(CANCEL)", say(rst("cancel")), 502, "upstream_reset"),
    ("always REFUSED_STREAM", say(rst("refused")), 502, "upstream_refused"),
)


def get(host, method="GET", extra=""):
    return "%s /x HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (method, host, extra)


def tricks(t, gate, host, play):
    for name, trick, status, code in TRICKS:
        play.set(trick)
        r = gate.get(host, "/x")
        t.eq((r.status, r.code), (status, code), "%s: %s" % (host, name))
        play.set(answer)
        r = gate.get(host, "/x")
        t.eq((r.status, r.body), (200, b"ok"), "%s: after it, a good reply" % host)


def cut_short(t, gate, host, play):
    """The reply has begun: what is wrong with the rest is never passed as whole."""
    begun = [("content-length", "10")]
    for name, rest in (("RST_STREAM", rst("internal")),
                       ("RST_STREAM(NO_ERROR)", rst("no_error")),
                       ("an end too soon", lambda s: frame(DATA, END_STREAM, s, b"a")),
                       ("more than its length", lambda s: frame(DATA, END_STREAM, s, b"a" * 11)),
                       ("bad trailers", lambda s: frame(HEADERS, END_HEADERS, s,
                                                        h2.block((":status", "200")))),
                       ("garbage", lambda s: b"\xff" * 64)):
        play.set(say(lambda s: head(s, 200, begun) + frame(DATA, 0, s, b"abc") + rest(s)))
        with gate.tls(host) as st:
            r = st.ask(get(host))
            t.ok(r.truncated or r.status == 502, "%s: %s is not passed as whole" % (host, name),
                 "%d %r" % (r.status, r.body))


def again(t, gate, host, play):
    """What the origin says it has not begun is sent again, once, whatever the method."""
    def refuse_first(peer, stream, number):
        if play.requests == 1:
            peer.send(rst("refused")(stream))
        else:
            answer(peer, stream)

    def leave_first(peer, stream, number):
        if play.requests == 1:
            peer.send(frame(GOAWAY, 0, 0, b"\0\0\0\0" + b"\0\0\0\0"))
        else:
            answer(peer, stream)

    def vanish(peer, stream, number):
        if play.requests == 2:
            raise ConnectionError()
        answer(peer, stream)
    for name, trick in (("REFUSED_STREAM", refuse_first), ("GOAWAY", leave_first)):
        for method in ("GET", "POST", "DELETE"):
            play.set(rst_all)
            gate.get(host, "/x")  # the next is on a fresh connection
            play.set(trick)
            extra = "Content-Length: 0\r\n" if method == "POST" else ""
            with gate.tls(host) as st:
                r = st.ask(get(host, method, extra))
            t.eq((r.status, play.requests), (200, 2), "%s: %s after %s" % (host, method, name))
    for method, want in (("GET", (200, 3)), ("DELETE", (502, 2))):
        play.set(rst_all)
        gate.get(host, "/x")
        play.set(vanish)
        gate.get(host, "/x")
        with gate.tls(host) as st:
            r = st.ask(get(host, method))
        t.eq((r.status, play.requests), want, "%s: %s on a kept connection that ends" % (host,
                                                                                        method))


def rst_all(peer, stream, _):
    peer.send(frame(GOAWAY, 0, 0, stream.to_bytes(4, "big") + b"\0\0\0\2"))
    raise ConnectionError()


def stalled(t, gate, host, play):
    play.set(lambda peer, stream, _: None)
    started = time.time()
    r = gate.get(host, "/x")
    t.ok((r.status, r.code) == (504, "upstream_timeout") and time.time() - started < 8,
         host + ": an origin that says nothing", "%d %s" % (r.status, r.code))
    play.set(answer)
    t.eq((gate.get(host, "/x").status, play.connections), (200, 0),
         host + ": loses that stream, not the connection")


def one_dial(t, gate, host, play):
    """Known to speak HTTP/2: requests that come at once wait for the one connection."""
    play.set(rst_all)
    gate.get(host, "/x")
    play.set(answer)
    streams = [gate.tls(host) for _ in range(20)]
    for st in streams:
        st.send(get(host))
    t.eq([st.reply().status for st in streams], [200] * 20, host + ": 20 at once are answered")
    t.eq((play.connections, play.requests), (1, 20), host + ": over one connection")
    for st in streams:
        st.close()


def sockets(t, gate, beside, plays):
    """A WebSocket that is refused, and how long the refusal says it is: nghttp2 does not count what follows a CONNECT. It costs
    itself alone."""
    host = SOCKETS[beside]
    for name, lie in (("ten bytes of which none comes", lambda s: head(s, 404, [("content-length", "10")], OK)),
                      ("three bytes of which thirty come", lambda s: head(s, 404, [("content-length", "3")]) +
                       frame(DATA, END_STREAM, s, b"HTTP/1.1 200 OK\r\nevil: yes\r\n\r\n"))):
        plays[host].set(answer)
        t.eq(gate.get(host, "/x").status, 200, "%s: %s: there is a connection" % (host, name))
        asked, go = threading.Event(), threading.Event()
        plays[beside].set(lambda peer, stream, n, a=asked, g=go: (a.set(), g.wait(10), answer(peer, stream)))
        with gate.tls(beside) as held, gate.tls(host) as st:
            held.send(get(beside))
            t.ok(asked.wait(10), "%s: another request is under way" % host)
            plays[host].set(say(lie))
            r = st.ask(get(host, extra="Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
            t.ok(r.status == 404 and r.get("evil") is None and r.body in (b"", b"HTTP/1.1 200 OK\r\nevil: yes\r\n\r\n") and not r.truncated,
                 "%s: %s: one reply" % (host, name), "%d %r" % (r.status, r.body))
            go.set()
            t.eq(held.reply().status, 200, "%s: %s: the other request is answered" % (host, name))


def main(t):
    s = scene.Scene(t)
    plays = {}
    origins = []
    for host in (PLAIN, KEYED):
        plays[host] = Play()
        o = h2.FrameOrigin(t, s.d.ca, host, plays[host].script)
        s.d.origin(host, o)
        origins.append(o)
    for host in SOCKETS.values():
        plays[host] = Play(HELLO_SOCKETS)
        s.d.origin(host, h2.FrameOrigin(t, s.d.ca, host, plays[host].script))
    old = Play()
    s.d.origin(OLD, h2.FrameOrigin(t, s.d.ca, OLD, old.script, alpn=None))
    for host in (PLAIN, OLD):
        s.rule(allow=host)
    s.rule(allow=KEYED, **{"with": {"bearer": "openai"}})
    s.rule(allow=SOCKETS[PLAIN], websocket=True)
    s.rule(allow=SOCKETS[KEYED], websocket=True, **{"with": {"bearer": "openai"}})
    s.d.limits["reply_seconds"] = 2
    address = s.listener()
    s.d.serve()
    gate = s.gate(address, timeout=20)
    for host in (PLAIN, KEYED):
        t.part(one_dial, t, gate, host, plays[host])
        t.part(tricks, t, gate, host, plays[host])
        t.part(cut_short, t, gate, host, plays[host])
        t.part(again, t, gate, host, plays[host])
        t.part(stalled, t, gate, host, plays[host])
        t.part(sockets, t, gate, host, plays)
    s.clean()
    t.eq([e for o in origins for e in o.errors], [], "the origins saw HTTP/2")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
