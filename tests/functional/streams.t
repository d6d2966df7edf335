#!/usr/bin/python3 -B
"""Streams: each event of a reply and each piece of a request goes on before the next is made, with and
without a credential; ranges where a rule lets them; `progress` records of what lasts."""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import origin, scan, scene, tap  # noqa: E402

PLAIN, KEYED, RANGED = "plain.example.com", "keyed.example.com", "ranged.example.com"
EVENTS = 40
TEXT = b"0123456789" * 100
MARGIN = 6 * 8192  # the longest form of a secret


class Steps:
    """An origin that makes the next event only when the client says it has the last one."""

    def __init__(self, secret):
        self.secret = secret
        self.have = threading.Semaphore(0)
        self.early = 0

    def script(self, conn):
        while True:
            req = conn.read_head()
            getattr(self, req.path.strip("/"))(conn, req)
            req.complete = True

    def events(self, conn, req):
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        for i in range(EVENTS):
            conn.chunk(b"event: e\ndata: %d\n\n" % i)
            if not self.have.acquire(timeout=5):
                self.early += 1
        conn.chunk(b"")

    def endless(self, conn, req):
        """No framing but the end of the connection."""
        conn.head(200, [("Content-Type", "text/event-stream"), ("Connection", "close")])
        for i in range(EVENTS):
            conn.send(b"data: %d\n\n" % i)
            if not self.have.acquire(timeout=5):
                self.early += 1
        raise origin.Closed()

    def upload(self, conn, req):
        """Says of each chunk that it has it, while the next is not made yet."""
        for _ in range(EVENTS):
            size = int(conn.read_until(b"\r\n"), 16)
            req._take(conn.read_exact(size + 2)[:-2])
            self.have.release()
        conn.read_until(b"0\r\n\r\n")
        conn.reply(req, 200, b"whole")

    def slow(self, conn, req):
        conn.head(200, [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])
        for i in range(5):
            conn.chunk(b"data: %d\n\n" % i)
            threading.Event().wait(0.6)  # the time itself is what is tested
        conn.chunk(b"")

    def short(self, conn, req):
        """More is said than there is: it ends inside of the secret, behind what was asked for."""
        conn.head(206, [("Content-Range", "bytes 0-%d/1000000" % (2 * MARGIN - 1)), ("Transfer-Encoding", "chunked")])
        conn.chunk(b"x" * (MARGIN - 10) + self.secret[:-1])
        conn.chunk(b"")

    def trailed(self, conn, req):
        """As `short`, and what stands behind says that it was whole."""
        conn.head(206, [("Content-Range", "bytes 0-%d/1000000" % (2 * MARGIN - 1)), ("Transfer-Encoding", "chunked"),
                        ("Trailer", "X-Sum")])
        conn.chunk(b"x" * (MARGIN - 10) + self.secret[:-1])
        conn.send(b"0\r\nX-Sum: whole\r\n\r\n")

    def long(self, conn, req):
        conn.head(206, [("Content-Range", "bytes 0-%d/1000000" % (2 * MARGIN - 1)), ("Transfer-Encoding", "chunked")])
        conn.chunk(b"x" * (2 * MARGIN + 1))
        conn.read_until(b"never")  # it ends with the connection

    def empty(self, conn, req):
        """A part of ten bytes, of which none comes."""
        conn.reply(req, 206, b"", [("Content-Range", "bytes 0-%d/10" % 9)])

    def part(self, conn, req):
        whole = TEXT + self.secret + TEXT
        wanted = req.get("Range")
        if wanted is None:
            conn.reply(req, 200, whole, [("ETag", '"e"')], kind="text/plain")
            return
        a, b = (int(x) for x in wanted.split("=")[1].split("-"))
        b = min(b, len(whole) - 1)
        conn.reply(req, 206, whole[a:b + 1],
                   [("Content-Range", "bytes %d-%d/%d" % (a, b, len(whole)))], kind="text/plain")


def lockstep(t, gate, host, steps):
    for path, framing in (("/events", "chunked"), ("/endless", "to the end of the connection")):
        with gate.tls(host) as st:
            st.send("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host))
            r = st.head()
            for i in range(EVENTS):
                st.until(b"data: %d\n\n" % i)
                steps.have.release()
            t.eq((r.status, steps.early), (200, 0),
                 "%s: each event arrives before the next is made, %s" % (host, framing))
    with gate.tls(host) as st:
        st.send("POST /upload HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % host)
        late = 0
        for i in range(EVENTS):
            st.send("5\r\n%05d\r\n" % i)
            late += not steps.have.acquire(timeout=5)
        r = st.send("0\r\n\r\n").reply()
        t.eq((r.status, r.body, late), (200, b"whole", 0),
             host + ": each chunk of a request is there before the next is made")


def ranges(t, d, gate, origins, secret):
    at = len(TEXT)
    inside = "Range: bytes=%d-%d\r\nIf-Range: \"e\"\r\n" % (at - 10, at + len(secret) + 9)
    shown = TEXT[-10:] + secret + TEXT[:10]
    mark = b"[REDACTED:ranged]"
    hidden = TEXT[-10:] + (mark + b"*" * len(secret))[:len(secret)] + TEXT[:10]
    r = gate.get(PLAIN, "/part", inside)
    t.eq((r.status, r.body), (206, shown), "without a credential a range passes")
    q = origins[PLAIN].requests[-1]
    t.ok(q.get("Range") and q.get("If-Range") == '"e"', "and If-Range with it")
    r = gate.get(KEYED, "/part", inside)
    q = origins[KEYED].requests[-1]
    t.eq((r.status, r.body, r.get("content-range"), r.get("content-length")),
         (206, hidden, "bytes %d-%d/%d" % (at - 10, at + len(secret) + 9, 2 * at + len(secret)), str(len(hidden))),
         "with one it is the same part, searched (C14)")
    t.eq((q.get("Range"), q.get("If-Range")),
         ("bytes=%d-%d" % (max(0, at - 10 - MARGIN), at + len(secret) + 9 + MARGIN), '"e"'),
         "of which the origin was asked for more on each side")
    whole = TEXT + (mark + b"*" * len(secret))[:len(secret)] + TEXT
    for cut in (1, len(secret) // 2, len(secret) - 1):
        parts = [gate.get(KEYED, "/part", "Range: bytes=%d-%d\r\n" % x) for x in
                 ((at - 5, at + cut - 1), (at + cut, at + len(secret) + 5))]
        t.eq(b"".join(x.body for x in parts), whole[at - 5:at + len(secret) + 6],
             "two parts that meet in the secret after %d bytes show none of it" % cut)
    r = gate.get(KEYED, "/part", "Range: bytes=0-1,5-6\r\n")
    t.ok(r.status == 200 and r.body == whole and not origins[KEYED].requests[-1].get("Range"),
         "of several parts at once the whole is answered")
    for path, what in (("/short", "ends inside of the secret"), ("/long", "has a byte more than it says"),
                       ("/trailed", "has trailers where more should come")):
        with gate.tls(KEYED) as st:
            st.send("GET %s HTTP/1.1\r\nHost: %s\r\nTE: trailers\r\nConnection: TE\r\nRange: bytes=0-%d\r\n\r\n" %
                    (path, KEYED, MARGIN - 1))
            seen = st.rest()
        end = d.wait_records(1, "aborted", id=d.kinds("admitted", path=path)[0]["id"])
        t.ok(secret[:8] not in seen and b"\r\n0\r\n" not in seen and [x["code"] for x in end] == ["upstream_protocol"],
             "a part that %s is no whole reply" % what, "%s %r" % (end, seen[-40:]))
    with gate.tls(KEYED) as beside:
        beside.send("GET /slow HTTP/1.1\r\nHost: %s\r\n\r\n" % KEYED).head()
        r = gate.get(KEYED, "/empty", "Range: bytes=0-9\r\n")
        t.eq((r.status, r.code), (502, "upstream_protocol"), "a part of which nothing comes is none")
        t.ok(b"data: 4\n\n" in beside.rest() and not d.kinds("aborted", code="gate_gone"), "and costs its own request alone")
    r = gate.get(RANGED, "/part", inside)
    t.eq((r.status, r.body), (206, hidden), "with `ranges: true` it passes, and a 206 is searched")
    t.eq(r.get("content-range"), "bytes %d-%d/%d" % (at - 10, at + len(secret) + 9,
                                                     2 * at + len(secret)), "lengths stand")
    q = origins[RANGED].requests[-1]
    t.ok(q.get("Range") and q.get("If-Range"), "and both fields are at the origin")


def progress(t, d, gate, host):
    r = gate.get(host, "/slow")
    ids = [x["id"] for x in d.kinds("admitted", authority=host, path="/slow")]
    end = d.wait_records(1, "completed", id=ids[0])
    seen = d.kinds("progress", id=ids[0])
    t.ok(r.status == 200 and 2 <= len(seen) <= 4, host + ": `progress` each second of three",
         str(len(seen)))
    down = [x["bytes_down"] for x in seen] + [x["bytes_down"] for x in end]
    t.ok(down == sorted(down) and down[0] > 0 and all(x["status"] == 200 for x in seen),
         host + ": it says how far it has come", str(seen))


def main(t):
    s = scene.Scene(t)
    secret = scan.canary("rng_")
    s.scanner.add("ranged", secret)
    s.d.secret("ranged", secret)
    s.d.limits["progress_seconds"] = 1
    origins, steps = {}, {}
    for host, more in ((PLAIN, {}), (KEYED, {"with": {"bearer": "ranged"}}),
                       (RANGED, {"with": {"bearer": "ranged"}, "ranges": True})):
        steps[host] = Steps(secret)
        origins[host] = s.add(host, script=steps[host].script)
        s.rule(allow=host, **more)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    for host in (PLAIN, KEYED):
        t.part(lockstep, t, gate, host, steps[host])
        t.part(progress, t, s.d, gate, host)
    t.part(ranges, t, s.d, gate, origins, secret)
    s.judge([(o, None) for o in origins.values()], (), "streams")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
