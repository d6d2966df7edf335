#!/usr/bin/python3 -B
"""WebSockets over HTTP/2 (RFC 8441): the libraries h2 and wsproto as a client, `websockets` (HTTP/1.1) and
hypercorn (HTTP/2) as origins, with and without a credential; the same client over HTTP/1.1 to the HTTP/2
origin; what is refused; what the audit says."""
import base64
import hashlib
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2 as raw, origin, peer, scan, scene, tap  # noqa: E402

try:
    import h2.connection
    import h2.events
    import wsproto
    import wsproto.events as said
    import wsproto.frame_protocol
except ImportError:
    h2 = None

CLEAR = "slow-clear.example.com"
BIG = bytes(range(256)) * 8192  # 2 MiB


class Socket:
    """One WebSocket in a stream of a Client, or in a connection of HTTP/1.1."""

    def __init__(self, client, send, end):
        self.client, self.send_bytes, self.end = client, send, end
        self.ws = wsproto.connection.Connection(wsproto.ConnectionType.CLIENT)
        self.status, self.headers, self.closed, self.over, self.reset = None, {}, None, False, None
        self.messages, self.part, self.body = [], None, b""

    def take(self, data):
        if self.status not in (200, 101):
            self.body += data
            return
        if data:  # what ends a stream may be an empty frame
            self.ws.receive_data(data)
        for e in self.ws.events():
            if isinstance(e, (said.TextMessage, said.BytesMessage)):
                self.part = e.data if self.part is None else self.part + e.data
                if e.message_finished:
                    self.messages.append(self.part if isinstance(self.part, str) else bytes(self.part))
                    self.part = None
            elif isinstance(e, said.Ping):
                self.send_bytes(self.ws.send(e.response()))
            elif isinstance(e, said.CloseConnection):
                self.closed = (e.code, e.reason or "")
                if self.ws.state is wsproto.connection.ConnectionState.REMOTE_CLOSING:
                    self.send_bytes(self.ws.send(e.response()))
                    self.end()

    def say(self, data):
        kind = said.TextMessage if isinstance(data, str) else said.BytesMessage
        self.send_bytes(self.ws.send(kind(data=data)))

    def ask(self, data):
        """-> the next message"""
        n = len(self.messages)
        self.say(data)
        self.client.until(lambda: len(self.messages) > n or self.over)
        return self.messages[n] if len(self.messages) > n else None

    def close(self, code, reason=""):
        """Our side ends when both have said goodbye: hypercorn stumbles over an end that comes sooner."""
        self.send_bytes(self.ws.send(said.CloseConnection(code=code, reason=reason)))
        self.client.until(lambda: self.closed or self.over)
        self.end()
        self.client.until(lambda: self.over)


class Client:
    """One connection of HTTP/2; to slow-clear, by prior knowledge in clear."""

    def __init__(self, gate, host):
        self.host, self.streams, self.settings, self.gone, self.pongs = host, {}, None, False, 0
        self.scheme = "http" if host == CLEAR else "https"
        self.sock = (gate.connect(host + ":80")[1] if host == CLEAR else gate.tls(host, alpn=["h2"])).sock
        self.sock.settimeout(0.2)
        self.h2 = h2.connection.H2Connection()
        self.h2.initiate_connection()
        self.flush()
        self.until(lambda: self.settings is not None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def flush(self):
        self.sock.settimeout(10)
        self.sock.sendall(self.h2.data_to_send())
        self.sock.settimeout(0.2)

    def open(self, path="/chat", protocol="websocket", extra=(), end=False, version="13", wait=True):
        id = self.h2.get_next_available_stream_id()
        fields = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", self.scheme),
                  (":authority", self.host), (":path", path)]
        if version:
            fields.append(("sec-websocket-version", version))
        self.h2.send_headers(id, fields + list(extra), end_stream=end)
        s = Socket(self, lambda data: self.send(id, data), lambda: self.end(id))
        s.id = id
        self.streams[id] = s
        self.flush()
        if wait:
            self.until(lambda: s.status or s.over)
        return s

    def settle(self):
        """What was sent has been read."""
        self.h2.ping(b"settled?")
        self.flush()
        n = self.pongs
        return self.until(lambda: self.pongs > n)

    def get(self, path="/"):
        id = self.h2.get_next_available_stream_id()
        s = self.streams[id] = Socket(self, None, None)
        self.h2.send_headers(id, [(":method", "GET"), (":scheme", "https"), (":authority", self.host),
                                  (":path", path)], end_stream=True)
        self.flush()
        self.until(lambda: s.over)
        return s

    def send(self, id, data):
        while data and not self.streams[id].over:
            room = min(self.h2.local_flow_control_window(id), self.h2.max_outbound_frame_size)
            if room <= 0:
                self.until(lambda: self.h2.local_flow_control_window(id) > 0 or self.streams[id].over)
                continue
            self.h2.send_data(id, data[:room])
            data = data[room:]
            self.flush()

    def end(self, id):
        if not self.streams[id].over:
            self.h2.end_stream(id)
            self.flush()

    def reset(self, id):
        self.h2.reset_stream(id, 8)
        self.flush()

    def take(self):
        try:
            data = self.sock.recv(1 << 16)
        except TimeoutError:
            return
        self.gone = not data
        for e in self.h2.receive_data(data):
            s = self.streams.get(getattr(e, "stream_id", None))
            if isinstance(e, h2.events.RemoteSettingsChanged):
                self.settings = {k: v.new_value for k, v in e.changed_settings.items()}
            elif isinstance(e, h2.events.PingAckReceived):
                self.pongs += 1
            elif isinstance(e, h2.events.ResponseReceived):
                s.headers = {n.decode(): v.decode() for n, v in e.headers}
                s.status = int(s.headers[":status"])
            elif isinstance(e, h2.events.DataReceived):
                self.h2.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
                s.take(e.data)
            elif isinstance(e, (h2.events.StreamEnded, h2.events.StreamReset)):
                s.over = True
                s.reset = getattr(e, "error_code", None)
        self.flush()

    def until(self, fn, seconds=15):
        return tap.wait_for(lambda: self.gone or fn() or self.take() or fn(), seconds, 0)


class Old:
    """One connection of HTTP/1.1 with the same wsproto behind it."""

    def __init__(self, gate, host):
        self.stream = gate.tls(host)
        self.s = Socket(self, self.stream.send, lambda: None)
        handshake = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        self.stream.send(handshake.send(said.Request(host=host, target="/chat")))
        r = self.stream.head()
        self.s.status = r.status

    def until(self, fn, seconds=15):
        def step():
            if self.stream.buf or self.stream.fill():
                data, self.stream.buf = self.stream.buf, b""
                self.s.take(data)
            return fn()
        return tap.wait_for(lambda: fn() or step(), seconds, 0)


def talk(t, s, name, secret):
    t.eq(s.ask("zażółć"), "zażółć", name + ": text")
    t.ok(s.ask(BIG[:9999]) == BIG[:9999], name + ": binary")
    s.say("sum")
    t.eq(s.ask(BIG), hashlib.sha256(BIG).hexdigest(), name + ": one message of 2 MiB up")
    t.ok(s.ask("big %d" % len(BIG)) == b"\xa5" * len(BIG), name + ": and down")
    seen = s.ask("reflect")
    if secret:
        t.ok(seen and secret not in seen and len(seen) == len(secret) + 7 and "REDACTED" in seen,
             name + ": a reflected secret is taken out, same length", seen)
    else:
        t.eq(seen, "none", name + ": no credential")


def sockets(t, gate, host, secret, over_h2):
    with Client(gate, host) as c:
        t.eq(c.settings.get(8), 1, host + ": extended CONNECT is announced")
        if over_h2:  # the connection that there is then says that it takes one, too
            t.eq(c.get().status, 200, host + ": GET")
        s = c.open(extra=[("sec-websocket-protocol", "chat.v2, chat.v1"),
                          ("sec-websocket-extensions", "permessage-deflate")])
        t.eq((s.status, s.headers.get("sec-websocket-extensions"), s.headers.get("content-length")),
             (200, None, None), host + ": 200, no extension")
        t.ok(s.headers.get("sec-websocket-protocol") in ("chat.v1", "chat.v2"), host + ": sub-protocol",
             str(s.headers))
        talk(t, s, host, secret)
        s.close(4001, "done here")
        t.eq((s.closed and s.closed[0], s.over, s.reset), (4001, True, None),
             host + ": closed by the client, the stream ends")
        if over_h2:  # hypercorn ends its connection over the end of a stream that it has closed
            t.eq(c.get().status, 200, host + ": GET again")
        many = [c.open("/many") for _ in range(20)]
        for i, m in enumerate(many):
            m.say("number %d" % i)
        c.until(lambda: all(m.messages for m in many))
        t.eq([m.messages for m in many], [["number %d" % i] for i in range(20)],
             host + ": 20 at once on the connection")
        c.reset(many[0].id)
        t.eq(many[1].ask("still here"), "still here", host + ": one is reset, others go on")
        ends = many[1:2] if over_h2 else many[1:]
        for m in ends:
            m.say("close 4002 go away")
        c.until(lambda: all(m.over for m in ends))
        t.eq([(m.closed, m.over, m.reset) for m in ends], [((4002, "go away"), True, None)] * len(ends),
             host + ": closed by the server, the streams end")


def refused(t, gate, host, shut):
    with Client(gate, host) as c:
        for name, want, kw in (
                ("another protocol", (501, "upgrade"), {"protocol": "connect-udp"}),
                ("its name in capitals", (501, "upgrade"), {"protocol": "WebSocket"}),
                ("no version", (400, "upgrade"), {"version": None}),
                ("another version", (400, "upgrade"), {"version": "8"}),
                ("the key of HTTP/1.1", (400, "upgrade"),
                 {"extra": [("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]}),
                ("a length", (400, "upgrade"), {"extra": [("content-length", "5")]}),
                ("no body", (400, "upgrade"), {"end": True})):
            s = c.open(**kw)
            c.until(lambda: s.over, 2)
            code = s.headers.get("durward-denied", " ").split(" ")[0]
            t.ok((s.status, code) == want or (s.reset == 1 and s.status is None), name + ": refused",
                 "%r %r %r" % (s.status, code, s.reset))
        s = c.open()
        t.eq(s.ask("twin"), "twin", "and a right one passes beside them")
    with Client(gate, shut) as c:
        s = c.open()
        t.eq((s.status, s.headers.get("durward-denied", "").split(" ")[0]), (403, "websocket"),
             "a rule without `websocket`: 403")


class Slow:
    """An origin that agrees when it is told to, and then waits for the client's end."""

    def __init__(self):
        self.asked, self.agree, self.ended = threading.Event(), threading.Event(), threading.Event()

    def again(self):
        for event in (self.asked, self.agree, self.ended):
            event.clear()

    def script(self, conn):
        key = conn.read_head().get("sec-websocket-key")
        self.asked.set()
        self.agree.wait(20)
        accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        conn.send(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: %s\r\n\r\n" % base64.b64encode(accept).decode()).encode())
        try:
            while True:
                conn.fill()
        except (origin.Closed, OSError):
            self.ended.set()


def early(t, gate, host, slow):
    """The client's END_STREAM comes before the origin has agreed."""
    with Client(gate, host) as c:
        s = c.open(wait=False)
        t.ok(slow.asked.wait(10), host + ": the origin is asked")
        c.end(s.id)
        t.ok(c.settle(), host + ": an end before the answer")
        slow.agree.set()
        t.eq((c.until(lambda: s.status), s.status), (200, 200), host + ": which comes")
        t.ok(slow.ended.wait(5), host + ": and the end reaches the origin with it")


def audit(t, d, host):
    mine = {r["id"] for r in d.kinds("admitted", authority=host)}
    opened = {r["id"] for r in d.kinds("opened") if r["id"] in mine}

    def ends():
        return [r for r in d.kinds("completed") + d.kinds("aborted") if r["id"] in opened]
    tap.wait_for(lambda: len(ends()) == len(opened), 5)
    t.eq(len(ends()), len(opened), host + ": each that was opened has one end")
    basics = [r for r in ends() if r.get("close") == 4001]
    t.ok(len(basics) == 1 and basics[0]["kind"] == "completed" and basics[0]["status"] == 101 and
         basics[0]["messages_up"] == 6 and basics[0]["messages_down"] == 5 and
         basics[0]["bytes_up"] > len(BIG), host + ": its end says code, messages and bytes", str(basics))
    theirs, cut = [r for r in ends() if r.get("close") == 4002], [r for r in ends() if r["kind"] == "aborted"]
    if host.startswith("old"):
        t.eq((len(theirs), len(cut)), (19, 1), host + ": the server's code, and what was reset")
    else:
        t.ok(theirs and cut, host + ": the server's code, and what was reset or died with hypercorn's connection")


def main(t):
    raw.needed()
    if h2 is None:
        raise tap.Skip("h2 and wsproto are not there: run tests/functional/clients/setup")
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    s = scene.Scene(t)
    secret = scan.canary("sock_")
    s.scanner.add("socket", secret)
    s.d.secret("socket", secret)
    peers = {}
    for kind, program in (("old", "websocket_server.py"), ("new", "websocket_h2_server.py")):
        for keyed in (False, True):
            host = "%s-%s.example.com" % (kind, "keyed" if keyed else "plain")
            peers[host] = peer.Peer(t, s, host, [python, peer.path(program)])
            s.rule(allow=host, websocket=True, **({"with": {"bearer": "socket"}} if keyed else {}))
    s.rule(allow=scene.PLAIN + "/shut")
    slow = {"slow-plain.example.com": Slow(), "slow-keyed.example.com": Slow(), CLEAR: Slow()}
    for host, o in slow.items():
        clear = host == CLEAR
        s.d.origin(host + ":80" if clear else host, origin.Origin(t, s.d.ca, host, script=o.script, tls=not clear))
        s.rule(allow=("http://" if clear else "") + host, websocket=True, **({"with": {"bearer": "socket"}} if "keyed" in host else {}))
    address = s.listener()
    s.d.serve()
    gate = s.gate(address, timeout=15)
    for host, p in peers.items():
        keyed, over_h2 = host.endswith("keyed.example.com"), host.startswith("new")
        t.part(sockets, t, gate, host, secret.decode() if keyed else None, over_h2)
        seen = [x for x in p.lines if x["event"] == "open"]
        t.ok(len(seen) == 21 and all(x["offered"] is None for x in seen),
             host + ": 21 at the origin, no extension offered", str(seen[:1]))
        t.eq({x["authorization"] for x in seen}, {"Bearer " + secret.decode() if keyed else None},
             host + ": the credential is in the handshake")
        if over_h2:
            t.eq({(x["version"], x["key"]) for x in seen}, {("2", None)}, host + ": all over HTTP/2")
        audit(t, s.d, host)
    for host in ("new-plain.example.com", "new-keyed.example.com"):
        with Client(gate, host) as c:  # so that there is one of HTTP/2, which says what it takes
            t.eq(c.get().status, 200, host + ": GET")
        old = Old(gate, host)
        t.part(talk, t, old.s, "HTTP/1.1 to " + host, secret.decode() if "keyed" in host else None)
        t.eq(peers[host].lines[-1].get("version"), "2", "HTTP/1.1 to %s: over HTTP/2 there" % host)
        old.stream.close()
    for _ in range(6):  # the end and the origin's close may meet the answer in one turn
        for host, o in slow.items():
            o.again()
            t.part(early, t, gate, host, o)
    t.part(refused, t, gate, "old-plain.example.com", scene.PLAIN)
    s.clean((), "WebSocket over HTTP/2")


tap.run(main, timeout=120)
