#!/usr/bin/python3 -B
"""HTTP/2 towards the sandbox, bodies: 100 MiB up and down in bounded memory; streams that stand still
beside those that do not; a daemon that ends finishes what is under way."""
import hashlib
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2, memory, scene, shapes, tap  # noqa: E402

HOST, BULK, KEYED = "h2.example.com", "bulk.example.com", "keyed.example.com"
SIZE = 100 << 20
BLOCK = os.urandom(1 << 16)
BLOCKS = SIZE // len(BLOCK)
WHOLE = hashlib.sha256(BLOCK * BLOCKS).hexdigest()


def small(req, conn):
    if req.path.startswith("/slow"):
        time.sleep(0.8)
    shapes.echo(req, conn)


def bulk(conn):
    while True:
        req = conn.read_head()
        conn.read_body(req)
        if req.path == "/down":
            conn.head(200, [("Content-Length", str(SIZE))])
            for _ in range(BLOCKS):
                conn.send(BLOCK)
        else:
            conn.reply(req, 200, req.sha256)


def neighbours(t, gate):
    """A reader that opens no window stands still; those beside it do not."""
    with h2.H2(gate, BULK, windows=False) as c:
        stuck = [c.get("/down") for _ in range(4)]
        c.until(lambda: sum(c.answers[s].length for s in stuck) >= 65535, 10)
        c.window(0, 1 << 20)
        c.until(lambda: all(c.answers[s].length == 65535 for s in stuck), 10)
        t.eq([c.answers[s].length for s in stuck], [65535] * 4, "four streams stand at their window")
        got = []
        for i in range(30):
            a = c.ask("/quick/%d" % i)
            got.append((a.status, a.ended))
        t.eq(got, [(200, True)] * 30, "30 requests beside them are answered")
        for s in stuck[1:]:
            c.frame(h2.RST_STREAM, 0, s, b"\0\0\0\x08")
        c.windows, c.keep = True, 0
        c.window(0, 1 << 24)
        c.window(stuck[0], 1 << 24)
        a = c.answer(stuck[0], 60)
        t.eq((a.length, a.ended), (SIZE, True), "and a stuck one goes on to its end")


def bodies(t, gate, host):
    with h2.H2(gate, host, timeout=30) as c:
        c.keep = 0
        digest = hashlib.sha256()
        down = c.get("/down")
        first, take = c.answers[down], c.on_frame

        def hashed(f, n):
            if f.stream_id == down and hasattr(f, "data") and f.type == h2.DATA:
                digest.update(f.data)
            take(f, n)
        c.on_frame = hashed
        c.answer(down, 60)
        t.ok(first.ended and first.length == SIZE and digest.hexdigest() == WHOLE,
             host + ": 100 MiB down arrive whole", "%d %r" % (first.length, first.reset))
    with h2.H2(gate, host, timeout=30) as c:
        most = []
        t.eq(upload(c, most), (200, WHOLE.encode()), host + ": 100 MiB up arrive whole")
        t.ok(65536 < max(most) <= 512 * 1024, "and the window of a body that is taken is the wide one",
             "%d to %d" % (min(most), max(most)))


def upload(c, most):
    """As a client has to: never beyond the windows. most: what they were."""
    room = {0: 65535, 1: 65535}
    take = c.on_frame

    def credit(f, n):
        if f.type == h2.WINDOW_UPDATE:
            room[f.stream_id] = room.get(f.stream_id, 0) + f.window_increment
        elif f.type == h2.SETTINGS and "ACK" not in f.flags:
            room[1] += f.settings.get(4, 65535) - 65535
        most.append(room[1])
        take(f, n)
    c.on_frame = credit
    s = c.open(c.fields("/up", method="POST"), end=False)
    for i in range(BLOCKS):
        for at in range(0, len(BLOCK), 16384):
            part = BLOCK[at:at + 16384]
            while part:
                c.until(lambda: min(room[0], room[s]) > 0, 20)
                n = min(room[0], room[s], len(part))
                if n <= 0 or c.closed:
                    return "no window after %d blocks" % i
                last = i == BLOCKS - 1 and at + 16384 >= len(BLOCK) and n == len(part)
                c.frame(h2.DATA, h2.END_STREAM if last else 0, s, part[:n])
                room[0] -= n
                room[s] -= n
                part = part[n:]
    a = c.answer(s, 30)
    return a.status, a.body


def drained(t, s, gate):
    """The daemon ends: what is under way ends with its reply, behind a GOAWAY."""
    with h2.H2(gate, HOST) as c:
        slow = c.get("/slow/last")
        c.until(lambda: any(r.path == "/slow/last" for r in s.small.requests), 5)
        ender = threading.Thread(target=s.d.stop)
        ender.start()
        c.until(lambda: c.goaway is not None, 5)
        t.eq(c.goaway, 0, "GOAWAY without an error when the daemon ends")
        a = c.answers[slow]
        c.until(lambda: a.over, 5)
        t.eq((a.status, a.ended), (200, True), "and the request under way is answered")
        ender.join()


def main(t):
    h2.needed()
    s = scene.Scene(t)
    s.small = s.add(HOST, small)
    loads = [s.add(host, script=bulk) for host in (BULK, KEYED)]
    s.rule(allow=HOST)
    s.rule(allow=BULK)
    s.rule(allow=KEYED, **{"with": {"bearer": "openai"}})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address, timeout=30)
    for host in (BULK, KEYED):
        with h2.H2(gate, host) as c:
            c.ask("/warm")
    idle = memory.roles(s.d)
    watch = memory.Watch(s.d)
    for host in (BULK, KEYED):
        started = time.time()
        t.part(bodies, t, gate, host)
        t.diag("%s: 200 MiB in %.1f s" % (host, time.time() - started))
    peak = watch.result()
    grown = {r: peak[r] - idle.get(r, 0) for r in peak}
    t.diag("anonymous KiB idle %s, growth %s" % (idle, grown))
    if not durward.sanitized():
        t.ok(peak and max(grown.values()) < 4096, "no role grew by 4 MiB", str(grown))
    t.part(neighbours, t, gate)
    t.part(drained, t, s, gate)
    s.judge([(s.small, None), (loads[0], None), (loads[1], s.openai_credential)], (), "bodies",
            exact=False)


tap.run(main, timeout=120)
