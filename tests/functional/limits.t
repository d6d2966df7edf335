#!/usr/bin/python3 -B
"""F1, F2: Every time-out and cap of `limits`: slow heads and bodies, idle connections, an origin that does
not answer or cannot be reached, heads that are too long, too many connections, too many names."""
import os
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, nginx, scene, tap  # noqa: E402

HOST, RAW = "odd.example.com", "raw.example.com"
LIMITS = {"connections": 40, "head_bytes": 16384, "headers": 50, "target_bytes": 4096,
          "head_seconds": 2, "idle_seconds": 3, "dial_seconds": 2, "reply_seconds": 2,
          "mints": 3}


def answer(req, conn):
    if req.path == "/never":
        time.sleep(8)
        conn.close_after = True
    elif req.path == "/stops":
        conn.head(200, [("Content-Length", "1000")])
        conn.send(b"x" * 10)
        time.sleep(8)
        conn.close_after = True
    elif req.path == "/bighead":
        conn.send(b"HTTP/1.1 200 OK\r\n" + b"X-A: %s\r\n" % (b"y" * 60000) +
                  b"Content-Length: 0\r\n\r\n")
    elif req.path == "/much":
        conn.reply(req, 200, b"z" * 300000)
    else:
        conn.reply(req, 200, "fine")


def get(path, extra="", host=HOST):
    return "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (path, host, extra)


def took(t, fn, least, most, what):
    start = time.monotonic()
    value = fn()
    spent = time.monotonic() - start
    t.ok(value and least <= spent <= most, "%s (%.1f to %.1f s)" % (what, least, most),
         "%.2f s, %r" % (spent, value))


def slow(t, gate):
    with gate.plain() as st:
        took(t, lambda: st.ended(8), 1, 5, "a silent connection is closed")
    with gate.plain() as st:
        st.send("CONNECT odd.exam")
        took(t, lambda: st.rest(8).startswith(b"HTTP/1.1 408"), 1, 5, "half a CONNECT is 408")
    r, st = gate.connect(HOST + ":443")
    took(t, lambda: st.ended(8), 1, 5, "a handshake that does not come is closed")
    st.close()
    with gate.tls(HOST) as st:
        st.send("GET / HTTP/1.1\r\nHost: ")
        took(t, lambda: st.rest(8).startswith(b"HTTP/1.1 408"), 1, 5, "half a head is 408")
    with gate.tls(HOST) as st:
        st.send("GET / HTTP/1.1\r\n")

        def drip():
            for i in range(40):
                try:
                    st.send("X-%d: 1\r\n" % i)
                except OSError:
                    return True
                time.sleep(0.2)
            return False
        took(t, drip, 1, 6, "a head that drips is cut too")
    with gate.tls(HOST) as st:
        st.ask(get("/x"))
        took(t, lambda: st.ended(9), 2, 7, "an idle kept connection is closed")
    got = []
    with gate.tls(HOST) as st:
        st.send("POST /b HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nhalf" % HOST)
        took(t, lambda: got.append(st.rest(9)[:12]) or got[0] in (b"HTTP/1.1 408", b""), 2, 7,
             "a body that stops is 408 or cut")
        t.diag("a body that stops: %r" % got)


def origins(t, s, gate):
    start = time.monotonic()
    r = gate.get(HOST, "/never")
    t.ok(r.status in (502, 504) and time.monotonic() - start < 6,
         "an origin that does not answer: %d %s" % (r.status, r.code))
    with gate.tls(HOST) as st:
        r = st.ask(get("/stops"))
        t.ok(r.truncated, "a reply that stops is cut, not passed as whole", str(r.status))
    r = gate.get("closed.example.com", "/")
    t.ok(r.status == 502 and r.code, "a port that is closed: 502 %s" % r.code, str(r.status))
    r = gate.get("silent.example.com", "/")
    t.ok(r.status in (502, 504) and r.code, "an origin without a handshake: %d %s" %
         (r.status, r.code))
    r = gate.get("unknown.invalid", "/")
    t.ok(r.status == 502 and r.code, "a name that does not resolve: 502 %s" % r.code,
         str(r.status))
    r = gate.get(HOST, "/bighead")
    t.eq(r.status, 502, "a reply head that is too long is 502")
    r = gate.get(HOST, "/ok")
    t.eq(r.status, 200, "and the next request is fine")


def heads(t, s, gate):
    n = len(s.odd.requests)
    for what, data, status in (
            ("a long head", get("/", "X-Long: %s\r\n" % ("a" * 20000)), (431,)),
            ("many fields", get("/", "".join("X-%d: 1\r\n" % i for i in range(80))), (431,)),
            ("a long target", get("/" + "a" * 6000), (414,)),
            ("an endless head", "GET / HTTP/1.1\r\nX: " + "a" * 200000, (431,))):
        with gate.tls(HOST) as st:
            try:
                st.send(data)
            except OSError:
                pass
            try:
                r = st.reply()
                t.ok(r.status in status, "%s is %s" % (what, status), str(r.status))
            except client.Ended as e:
                t.ok(False, "%s is %s" % (what, status), repr(e))
    t.eq(len(s.odd.requests), n, "none of these reached the origin")


def crowds(t, s, address):
    """Connections above the cap wait or are refused; the listener never dies of it."""
    held = []
    host, _, port = address.rpartition(":")
    for _ in range(60):
        try:
            held.append(socket.create_connection((host, int(port)), 2))
        except OSError:
            break
    gate = s.gate(address, timeout=1)
    try:
        r, st = gate.connect(HOST + ":443")
        over = r.status
        st.close()
    except (client.Ended, OSError) as e:
        over = repr(e)
    t.ok(over != 200, "a connection above the cap is not served", str(over))
    for c in held:
        c.close()
    got = tap.wait_for(lambda: gate.get(HOST, "/ok").status == 200, 6, 0.3)
    t.ok(got, "and when the crowd has gone it is served again")


def sockets(pid):
    """How many it has."""
    n = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            n += os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("socket:")
        except OSError:
            pass
    return n


def leaving(t, s, address):
    """A connection that is over, and whose last bytes nobody takes, has its place until it is closed."""
    gates = [pid for pid, role in s.d.roles() if role == "gate"]
    before = {pid: sockets(pid) for pid in gates}
    gate, held, most = s.gate(address, timeout=1), [], 0
    narrow = socket.create_connection

    def connect(where, timeout=None):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(timeout)
        sock.connect(where)
        return sock
    socket.create_connection = connect
    try:
        for _ in range(3 * LIMITS["connections"]):
            st = gate.tls(HOST)
            held.append(st)
            st.send(get("/much", "Connection: close\r\n"))
            st.sock.recv(1)
            most = max([most] + [sockets(pid) - before[pid] for pid in gates])
    except (OSError, client.Ended) as e:
        t.diag("after %d: %r" % (len(held), e))
    finally:
        socket.create_connection = narrow
    t.diag("%d connections, of which a gate had %d at once" % (len(held), most))
    t.ok(len(held) > 10 and most <= LIMITS["connections"] + 5, "what ends and is not read counts as a connection", "%d" % most)
    for st in held:
        st.close()
    t.ok(tap.wait_for(lambda: gate.get(HOST, "/ok").status == 200, 6, 0.3), "and when they are closed others are served")


def leaving_tunnel(t, s, address):
    """As does one whose far end is the one that takes nothing."""
    gates = [pid for pid, role in s.d.roles() if role == "gate"]
    before = {pid: sockets(pid) for pid in gates}
    hello, incoming = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(incoming, hello, server_hostname=RAW).do_handshake()
    except ssl.SSLWantReadError:
        pass
    first, gate, most, done = hello.read(), s.gate(address, timeout=1), 0, 0
    much = b"x" * (s.deaf.holds() + 256 * 1024)  # more than the kernel keeps for it, and less than that and the gate
    try:
        for _ in range(3 * LIMITS["connections"]):
            r, st = gate.connect(RAW + ":443")
            with st:
                st.send(first + much)
                st.sock.shutdown(socket.SHUT_WR)
                while st.sock.recv(65536):
                    pass
            done += 1
            most = max([most] + [sockets(pid) - before[pid] for pid in gates])
    except (OSError, client.Ended) as e:
        t.diag("after %d: %r" % (done, e))
    t.diag("%d tunnels, of which a gate had %d at once" % (done, most))
    t.ok(done > 10 and most <= LIMITS["connections"] + 5,
         "a tunnel that is over and whose origin reads nothing counts as a connection", "%d" % most)
    s.deaf.drop()
    t.ok(tap.wait_for(lambda: s.gate(address, timeout=1).get(HOST, "/ok").status == 200, 15, 0.3), "and its place is free again")


class Deaf:
    """Says at once that it has no more to say, and reads nothing."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.held = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            while True:
                conn, _ = self.listener.accept()
                conn.shutdown(socket.SHUT_WR)
                self.held.append(conn)
        except OSError:
            pass

    def holds(self):
        """Bytes that a connection to it takes although nobody reads."""
        n = 0
        with socket.create_connection(self.listener.getsockname()) as conn:
            conn.setblocking(False)
            try:
                while True:
                    n += conn.send(b"x" * 65536)
            except BlockingIOError:
                return n

    def drop(self):
        for conn in self.held:
            conn.close()
        self.held = []


def mints(t, s, gate):
    got = []
    start = time.monotonic()
    for i in range(12):
        try:
            with gate.tls("h%d.wild.example.com" % i):
                got.append(True)
        except (OSError, client.Ended):
            got.append(False)
    spent = time.monotonic() - start
    t.ok(not all(got) or spent > 2, "new leaf certificates are limited to `mints` a second",
         "%d of 12 in %.2f s" % (sum(got), spent))
    t.ok(any(got), "but some are made")
    ok = tap.wait_for(lambda: gate.get(HOST, "/ok").status == 200, 4, 0.3)
    t.ok(ok, "names that have one go on")


def main(t):
    s = scene.Scene(t)
    s.odd = s.add(HOST, answer)
    s.rule(allow=HOST)
    s.rule(allow=".wild.example.com")
    silent = socket.create_server(("127.0.0.1", 0))
    t.cleanup(silent.close)
    s.d.resolve["closed.example.com"] = "127.0.0.1:%d" % nginx.free_port()
    s.d.resolve["silent.example.com"] = "127.0.0.1:%d" % silent.getsockname()[1]
    s.deaf = Deaf()
    t.cleanup(s.deaf.listener.close)
    s.d.resolve[RAW] = "127.0.0.1:%d" % s.deaf.listener.getsockname()[1]
    s.rule(allow=RAW, tunnel=True)
    for host in ("closed.example.com", "silent.example.com", "unknown.invalid"):
        s.rule(allow=host)
    s.d.limits = dict(LIMITS)
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)

    def patient(*a, **kw):
        return tap.wait_for(lambda: gate.get(*a, **kw), 1)
    patient(HOST, "/warm")
    for part, args in ((slow, (t, gate)), (origins, (t, s, gate)), (heads, (t, s, gate)),
                       (crowds, (t, s, address)), (leaving, (t, s, address)),
                       (leaving_tunnel, (t, s, address)), (mints, (t, s, gate))):
        t.part(part, *args)
        tap.wait_for(lambda: patient(HOST, "/warm").status == 200, 5, 0.1)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90)
