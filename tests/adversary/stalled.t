#!/usr/bin/python3 -B
"""F4: One HTTP/2 connection with 100 bodies that nobody takes (row B30 of the catalogue): replies that
the client opens no window for, requests that the origin does not read. Whatever the way to the
origin, no role holds more than 16 MiB for it, and another connection is served beside it."""
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, h2, h2_frames, memory, scene, tap  # noqa: E402

STREAMS, SIZE, BOUND = 100, 4 << 20, 16 << 10  # BOUND in KiB
BLOCK = os.urandom(1 << 16)
PLAIN, KEYED, PLAIN2, KEYED2 = ("plain.example.com", "keyed.example.com", "plain2.example.com",
                                "keyed2.example.com")


def script(conn):
    """/small answers; /big has no end in sight; /up is not read until the client is gone."""
    while True:
        req = conn.read_head()
        if req.path == "/up":
            conn.sock.settimeout(60)
            conn.origin.go.wait(60)
            return
        conn.read_body(req)
        if req.path == "/small":
            conn.reply(req, 200, b"small\n")
            continue
        conn.head(200, [("Content-Length", str(SIZE))])
        for _ in range(SIZE // len(BLOCK)):
            conn.send(BLOCK)


def settled(s, base):
    """The most that a process of each role grew by, when nothing moves any more."""
    seen, same = {}, 0
    while same < 8:
        now = {p: kib - base.get(p, 0) for p, kib in memory.each(s.d).items()}
        same = same + 1 if all(now[p] <= seen.get(p, 0) + 64 for p in now) else 0
        seen = {p: max(now[p], seen.get(p, 0)) for p in now}
        tap.wait_for(lambda: False, 0.1)
    grown = {}
    for (_, role), kib in seen.items():
        grown[role] = max(kib, grown.get(role, 0))
    return grown


def judge(t, s, gate, host, base, what):
    grown = settled(s, base)
    t.diag("%s %s: KiB grown %s" % (host, what, {r: k for r, k in grown.items() if k > 100}))
    with h2.H2(gate, host) as d:
        t.eq(d.ask("/small").status, 200, "B30 %s %s: another connection is served" % (host, what))
    if not durward.sanitized():
        t.ok(max(grown.values()) < BOUND, "B30 %s: 100 stalled %s within 16 MiB in each role" %
             (host, what), str(grown))


def replies(t, s, gate, host):
    base = memory.each(s.d)
    with h2.H2(gate, host, windows=False, settings=[(4, 0)], timeout=30) as c:
        ids = [c.get("/big") for _ in range(STREAMS)]
        c.until(lambda: all(c.answers[i].status for i in ids), 30)
        t.eq({c.answers[i].status for i in ids}, {200}, "B30 %s: 100 replies have begun" % host)
        judge(t, s, gate, host, base, "replies")


def grown_first(t, s, gate, host):
    """Readers that kept up have wide windows; then all of them stop at once."""
    base = memory.each(s.d)
    with h2.H2(gate, host, timeout=60) as c:
        c.keep = 0
        ids = [c.get("/big") for _ in range(STREAMS)]
        c.until(lambda: min(c.answers[i].length for i in ids) > SIZE // 8, 60)
        c.windows = False
        c.until(lambda: False, 1)
        judge(t, s, gate, host, base, "replies, once quick")


def requests(t, s, gate, host):
    """As much of each body as the windows let through."""
    base = memory.each(s.d)
    room, first = {0: 65535}, [65535]
    with h2.H2(gate, host, timeout=30) as c:
        take = c.on_frame

        def credit(f, n):
            if f.type == h2.WINDOW_UPDATE:
                room[f.stream_id] = room.get(f.stream_id, first[0]) + f.window_increment
            elif f.type == h2.SETTINGS and "ACK" not in f.flags:
                first[0] = f.settings.get(4, 65535)
            take(f, n)
        c.on_frame = credit
        c.until(lambda: c.settings, 5)
        ids = [c.open(c.fields("/up", method="POST"), end=False) for _ in range(STREAMS)]
        sent, idle = 0, 0
        while idle < 20:
            before = sent
            for i in ids:
                n = min(room[0], room.setdefault(i, first[0]), 16384)
                if n > 0:
                    c.frame(h2.DATA, 0, i, BLOCK[:n])
                    room[0] -= n
                    room[i] -= n
                    sent += n
            idle = idle + 1 if sent == before else 0
            c.until(lambda: False, 0.1)
        t.diag("%s: %d KiB of requests were let in" % (host, sent >> 10))
        judge(t, s, gate, host, base, "requests")
    for o in s.stalled:
        o.go.set()


def main(t):
    h2.needed()
    s = scene.Scene(t)
    s.stalled = []
    for host in (PLAIN, KEYED):
        o = s.add(host, script=script)
        o.go = threading.Event()
        s.stalled.append(o)
    for host in (PLAIN2, KEYED2):
        o = h2_frames.Nghttpd(t, s.d.ca, host, "-m", "250")
        s.d.origin(host, o)
        with open(os.path.join(o.www, "small"), "w") as f:
            f.write("small\n")
        with open(os.path.join(o.www, "big"), "wb") as f:
            for _ in range(SIZE // len(BLOCK)):
                f.write(BLOCK)
    s.d.limits["idle_seconds"] = 60
    s.d.limits["connections"] = 1000
    cases = [(part, host) for host in (PLAIN, KEYED, PLAIN2, KEYED2)
             for part in (replies, grown_first)] + [(requests, PLAIN), (requests, KEYED)]
    # a policy of its own each: its gate and its injector have held nothing before
    for i, (part, host) in enumerate(cases):
        rule = {"allow": host}
        if host in (KEYED, KEYED2):
            rule["with"] = {"bearer": "openai"}
        s.d.policy("case%d" % i, [rule])
        cases[i] = (part, host, s.listener("case%d" % i))
    s.d.serve()
    for part, host, address in cases:
        gate = s.gate(address, timeout=30)
        with h2.H2(gate, host) as c:
            t.eq(c.ask("/small").status, 200, host + ": served")
        t.part(part, t, s, gate, host)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=300)
