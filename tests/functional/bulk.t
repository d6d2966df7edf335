#!/usr/bin/python3 -B
"""F4: 64 MiB up and down with bounded memory; a slow reader holds the origin back; a slow origin holds
the client back."""
import hashlib
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, memory, origin, scene, tap  # noqa: E402

SIZE = 64 << 20
BLOCK = os.urandom(1 << 16)
HOSTS = ("bulk.example.com", "keyed.example.com")


class Load:
    """The origin: /down sends SIZE bytes, /up takes them, /stall takes nothing for a while."""

    def __init__(self):
        self.sent = 0
        self.go = threading.Event()

    def script(self, conn):
        while True:
            req = conn.read_head()
            if req.path == "/stall":
                self.go.wait(20)
            conn.read_body(req)
            if req.path == "/down":
                self.sent = 0
                conn.head(200, [("Content-Length", str(SIZE))])
                for _ in range(SIZE // len(BLOCK)):
                    conn.send(BLOCK)
                    self.sent += len(BLOCK)
            else:
                conn.reply(req, 200, req.sha256)


def down(t, gate, host):
    with gate.tls(host) as st:
        st.send("GET /down HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        r = st.head()
        digest, left = hashlib.sha256(st.buf), SIZE - len(st.buf)
        st.buf = b""
        while left > 0:
            data = st.sock.recv(1 << 18)
            if not data:
                break
            digest.update(data)
            left -= len(data)
        want = hashlib.sha256(BLOCK * (SIZE // len(BLOCK))).hexdigest()
        t.ok(r.status == 200 and left == 0 and digest.hexdigest() == want,
             host + ": 64 MiB down arrive whole", "left %d" % left)


def up(t, gate, host):
    with gate.tls(host) as st:
        st.send("POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (host, SIZE))
        for _ in range(SIZE // len(BLOCK)):
            st.send(BLOCK)
        r = st.reply()
        want = hashlib.sha256(BLOCK * (SIZE // len(BLOCK))).hexdigest().encode()
        t.ok(r.status == 200 and r.body == want, host + ": 64 MiB up arrive whole", str(r.status))


def slow_reader(t, gate, host, load):
    """The client reads nothing: the origin must come to a stand far below SIZE, then go on."""
    with gate.tls(host) as st:
        # its own buffer counts too, and the kernel lets one grow to half of SIZE
        st.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        st.send("GET /down HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        st.head()
        still = [-1]

        def stands():
            before, still[0] = still[0], load.sent
            return before == load.sent > 0
        tap.wait_for(stands, 8, 0.7)
        t.ok(load.sent < SIZE // 2, host + ": a reader that stops holds the origin back",
             "the origin could send %d" % load.sent)
        left = SIZE - len(st.buf)
        st.buf = b""
        while left > 0:
            data = st.sock.recv(1 << 18)
            if not data:
                break
            left -= len(data)
        t.eq(left, 0, host + ": and gets all when it reads on")


def slow_origin(t, gate, host, load):
    load.go.clear()
    with gate.tls(host, ) as st:
        st.send("POST /stall HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (host, SIZE))
        st.sock.settimeout(1.5)
        sent = 0
        try:
            while sent < SIZE:
                sent += st.sock.send(BLOCK)
        except (TimeoutError, OSError):
            pass
        t.ok(sent < SIZE // 2, host + ": an origin that stops holds the client back",
             "the client could send %d" % sent)
        load.go.set()


def main(t):
    s = scene.Scene(t)
    load = Load()
    want = ("Authorization", "Bearer " + s.openai_secret.decode())
    origins = []
    for host in HOSTS:
        o = origin.Origin(t, s.d.ca, host, script=load.script)
        s.d.origin(host, o)
        origins.append(o)
    s.rule(allow=HOSTS[0])
    s.rule(allow=HOSTS[1], **{"with": {"bearer": "openai"}})
    address = s.listener()
    s.d.serve()
    gate = s.gate(address, timeout=30)
    gate.get(HOSTS[0], "/warm")
    gate.get(HOSTS[1], "/warm")
    idle = memory.roles(s.d)
    watch = memory.Watch(s.d)
    for host in HOSTS:
        started = time.time()
        t.part(down, t, gate, host)
        t.part(up, t, gate, host)
        t.diag("%s: 128 MiB in %.1f s" % (host, time.time() - started))
        t.part(slow_reader, t, gate, host, load)
        t.part(slow_origin, t, gate, host, load)
    peak = watch.result()
    grown = {r: peak[r] - idle.get(r, 0) for r in peak}
    t.diag("anonymous KiB idle %s, growth %s" % (idle, grown))
    if not durward.sanitized():  # AddressSanitizer keeps what was freed: its memory says nothing
        t.ok(peak and max(grown.values()) < 8192, "no role grew by 8 MiB", str(grown))
    t.eq([q.credentials() for q in origins[1].requests],
         [[("authorization", want[1])]] * len(origins[1].requests), "one right credential in each")
    s.judge([(o, None) for o in origins], (), "bulk")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
