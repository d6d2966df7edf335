#!/usr/bin/python3 -B
"""Streams that a client makes us end (MadeYouReset and its kin), over as many connections as it likes: each is
charged to its sandbox however it was found, nobody is dialled for a length that nothing agrees with, and what
is left is a few a second. Another sandbox is served meanwhile."""
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import client, h2, scene, shapes, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

HOST, DEAD = "reset.example.com", "dead.example.com"
SECONDS = 4.0
BURST, EACH = 200, 20  # faults at once and a second (proxy/http/faults.h)
DIALS, DIALS_EACH = 1000, 200  # at once and a second (proxy/upstream/pace.h)
SLACK = 120  # of a connection's last reading


def head(c, method="POST", length=None):
    extra = [("content-length", str(length))] if length is not None else []
    return c.block(c.fields("/made", method, extra))


def frames(c, n, *parts):
    """n streams of these frames (kind, flags, body) as one text."""
    out = b""
    for _ in range(n):
        stream, c.next = c.next, c.next + 2
        for kind, flags, body in parts:
            body = body() if callable(body) else body
            out += c.raw(kind, flags, stream, body)
    return out


def short(c):
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS, lambda: head(c, length=10)), (h2.DATA, h2.END_STREAM, b"five!"))


def long(c):
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS, lambda: head(c, length=3)), (h2.DATA, h2.END_STREAM, b"five!"))


def none(c):
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS, lambda: head(c, length=5)), (h2.DATA, h2.END_STREAM, b""))


def trailed(c):
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS, lambda: head(c, length=5)),
                  (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, lambda: c.block([("x", "y")])))


def late(c):
    """It agrees at first."""
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS, lambda: head(c, length=10)), (h2.DATA, 0, b"five!"),
                  (h2.DATA, h2.END_STREAM, b""))


def overflow(c):
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS, lambda: head(c)),
                  (h2.WINDOW_UPDATE, 0, struct.pack("!L", 0x7fffffff)))


def malformed(c):
    return frames(c, 50, (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM,
                          lambda: c.block(c.fields("/made", extra=[("te", "gzip")]))))


def zero(c):
    return frames(c, 1, (h2.HEADERS, h2.END_HEADERS, lambda: head(c)), (h2.WINDOW_UPDATE, 0, struct.pack("!L", 0)))


def itself(c):
    return frames(c, 1, (h2.HEADERS, h2.END_HEADERS, lambda: head(c)),
                  (h2.PRIORITY, 0, lambda: struct.pack("!LB", c.next - 2, 0)))


def priority(c):
    return frames(c, 1, (h2.HEADERS, h2.END_HEADERS, lambda: head(c)), (h2.PRIORITY, 0, b"four"))


def data_after(c):
    return frames(c, 1, (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, lambda: head(c, "GET")), (h2.DATA, 0, b"five!"))


def head_after(c):
    return frames(c, 1, (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, lambda: head(c, "GET")),
                  (h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, lambda: head(c, "GET")))


# name: (attack, what reaches the origin: 0, or as many as its faults)
VARIANTS = {
    "a body shorter than declared": (short, 0),
    "a body longer than declared": (long, 0),
    "none of a declared body": (none, 0),
    "trailers instead of a declared body": (trailed, 0),
    "a malformed head": (malformed, 0),
    "a body that agrees at first": (late, 1),
    "a window beyond 2^31-1": (overflow, 1),
    "a window update of nothing": (zero, 1),
    "a stream that depends on itself": (itself, 1),
    "a PRIORITY of four bytes": (priority, 1),
    "DATA behind END_STREAM": (data_after, 1),
    "HEADERS behind END_STREAM": (head_after, 1),
}


def attack(gate, fn):
    """As fast as it goes, a new connection whenever one ends -> (streams sent, connections)."""
    end, streams, connections = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        try:
            with h2.H2(gate, HOST, timeout=1) as c:
                connections += 1
                while time.monotonic() < end and not c.closed and c.goaway is None:
                    before = c.next
                    c.send(fn(c))
                    streams += (c.next - before) // 2
                    c.until(lambda: c.goaway is not None, 0.005)
        except (OSError, client.Ended):
            connections += 1
    return streams, connections


def settled(o):
    """The origin's connections, when no more come."""
    seen = [0.0, -1]

    def quiet():
        now = time.monotonic()
        if o.accepted != seen[1]:
            seen[:] = now, o.accepted
        return now - seen[0] > 0.4
    tap.wait_for(quiet, 5)
    return o.accepted


def variant(t, s, o, gate, other, name, fn, reaches):
    records, dialled = len(s.d.kinds("denied")), settled(o)
    streams, connections = attack(gate, fn)
    with h2.H2(other, HOST) as c:
        began = time.monotonic()
        a = c.ask("/neighbour")
        t.ok(a.status == 200 and time.monotonic() - began < 1, "%s: another sandbox is served" % name,
             "%r after %.1f s" % (a.status, time.monotonic() - began))
    bound = BURST + EACH * SECONDS + SLACK
    made, seen = len(s.d.kinds("denied")) - records, settled(o) - dialled
    t.ok(streams >= 50, "%s: tried often enough" % name, "%d" % streams)
    t.ok(made <= 2 * bound, "%s: its records are few" % name, "%d of %d streams, %d connections" % (
        made, streams, connections))
    t.ok(seen <= (bound if reaches else 0) + 1, "%s: its connections to the origin are %s" % (
        name, "few" if reaches else "none"), "%d of %d streams" % (seen, streams))
    t.diag("%s: %d streams on %d connections in %.0f s: %d records, %d connections to the origin" % (
        name, streams, connections, SECONDS, made, seen))


class Closed:
    """An origin whose port nobody listens at."""
    def __init__(self):
        self.address, self.requests = "127.0.0.1:%d" % free_port(), []


def dials(t, s, gate, other):
    """Requests that nothing is wrong with, each of which dials."""
    end, sent = time.monotonic() + SECONDS, 0
    with h2.H2(gate, DEAD) as c:
        while time.monotonic() < end and not c.closed and c.goaway is None:
            ids = [c.get("/dead") for _ in range(90)]
            c.until(lambda: all(c.answers[i].over for i in ids) or c.goaway is not None, 5)
            sent += len(ids)
            for i in ids:
                del c.answers[i]
    with h2.H2(other, HOST) as c:
        t.eq(c.ask("/neighbour").status, 200, "dials: another sandbox is served")
    ends = [r["code"] for r in s.d.kinds("aborted")]
    made, kept = ends.count("connect"), ends.count("overload")
    t.ok(made >= 900 and made <= DIALS + DIALS_EACH * (SECONDS + 3), "dials of one sandbox are few",
         "%d, and %d not made, of %d requests" % (made, kept, sent))
    t.diag("dials: %d requests in %.0f s, %d dials, %d overload" % (sent, SECONDS, made, kept))


def main(t):
    h2.needed()
    s = scene.Scene(t)
    o = s.add(HOST, shapes.echo)
    s.rule(allow=HOST)
    s.d.origin(DEAD, Closed())
    s.rule(allow=DEAD)
    gates = [s.listener() for _ in range(len(VARIANTS) + 2)]  # a gate each: what one used up is its own
    s.d.serve()
    other = s.gate(gates[-1])
    for address, (name, (fn, reaches)) in zip(gates, VARIANTS.items()):
        t.part(variant, t, s, o, s.gate(address), other, name, fn, reaches)
    t.part(dials, t, s, s.gate(gates[-2]), other)
    with h2.H2(s.gate(gates[0]), HOST) as c:
        t.eq(c.ask("/later").status, 200, "whoever was slowed is served again")


tap.run(main, timeout=200)
