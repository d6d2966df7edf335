"""The system that adversaries in its roles' places find: two policies, a listener for each and one whose
clients have tokens; the neighbour is a client of policy `other`."""
import base64
import hashlib

from . import api, client, scene, seat, shapes, tap, wire
from .origin import needs

STORE, SIGNED, MINTS, MINTED = "s3.us-east-1.amazonaws.com", "signed.example.com", "mints.example.com", "minted.example.com"
OTHER, TENANT = "api.other.example.com", "tenant.example.com"
MCP, MCP_PLAIN = "mcp.example.com", "mcp-open.example.com"
CLUSTER = "cluster.example.com"
MODEL, MODEL_PLAIN = "model.example.com", "model-open.example.com"
SESSIONS = "sessions.example.com"
FLEET = "fleet.example.com"


class Sessions:
    """A double that agrees to each WebSocket, keeps the whole messages that come, and says nothing."""

    def __init__(self):
        self.heard, self.ended = [], 0

    def __call__(self, req, conn):
        try:
            self.session(req, conn)
        finally:
            self.ended += 1

    def session(self, req, conn):
        accept = hashlib.sha1((req.get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        conn.head(101, [("Connection", "Upgrade"), ("Upgrade", "websocket"),
                        ("Sec-WebSocket-Accept", base64.b64encode(accept).decode())])
        conn.close_after = True
        whole = b""
        while True:
            a, b = conn.read_exact(2)
            n = b & 0x7f
            n = int.from_bytes(conn.read_exact(2 if n == 126 else 8), "big") if n > 125 else n
            mask = conn.read_exact(4)
            data = bytes(x ^ mask[i % 4] for i, x in enumerate(conn.read_exact(n)))
            if a & 15 == 8:
                return
            whole += data
            if a & 0x80:
                self.heard.append(whole)
                whole = b""


def scan_of(s, name):
    word = scene.scan.canary(name + "-")
    s.scanner.add(name, word)
    return word


class Bed:
    def __init__(self, t, fleet=False, **audit):
        self.t, self.seats = t, seat.Seats(t)
        s = self.s = scene.Scene(t)
        s.rule(allow="api.github.com/read/**", methods=["GET"], **{"with": {"bearer": "github"}})
        s.rule(allow=TENANT, headers={"x-tenant": "a"}, **{"with": {"bearer": "github"}})
        s.add(TENANT, shapes.echo)
        s.rule(allow=MCP, mcp={"tools": ["read", {"name": "send", "calls": "3/h"}, {"name": "write", "arguments": {"/path": {"pattern": "/work/**"}}}]},
               **{"with": {"bearer": "github"}})
        s.rule(allow=MCP_PLAIN, mcp={"tools": ["read", {"name": "send", "calls": "3/h"}]})
        calls = {"llm": {"api": "openai", "models": ["m"], "max_tokens": 100}, "budget": {"tokens": "1000/h"}}
        s.rule(allow=MODEL, **dict(calls, **{"with": {"bearer": "github"}}))
        s.rule(allow=MODEL_PLAIN, **calls)
        for host in (MCP, MCP_PLAIN, MODEL, MODEL_PLAIN):
            s.add(host, shapes.echo)
        self.sessions = Sessions()
        s.rule(allow=SESSIONS, websocket=True, **calls)
        s.add(SESSIONS, self.sessions)
        s.rule(allow=CLUSTER + "/**", kubernetes=[
            {"verbs": ["get", "list"], "resources": ["pods"], "namespaces": "team-*"},
            {"verbs": "create", "resources": "pods/exec", "namespaces": "team-*", "commands": "uptime"}],
               **{"with": {"bearer": "github"}})
        s.add(CLUSTER, shapes.echo)
        word = scene.scan.canary("ot-")
        s.scanner.add("other", word)
        s.d.secret("other", word)
        self.word = ("Authorization", "Bearer " + word.decode())
        s.d.secret("key", scan_of(s, "key"))
        s.d.secret("id", b"AKIDOWN")
        s.d.secrets.update(own={"aws_key": {"access_key_id": "id", "secret_access_key": "key"}}, caught={"captured": {}},
                           sum={"hmac_key": {"key": "key"}})
        s.rule(allow=STORE, **{"with": {"aws": "own"}})
        s.rule(allow=SIGNED, **{"with": {"hmac": {"key": "sum", "text": "{body}", "headers": {"x-sum": "{signature}"}}}})
        s.rule(allow=MINTS, capture={"access_token": "caught"}, **{"with": {"bearer": "github"}})
        s.rule(allow=MINTED, **{"with": {"bearer": "caught"}})
        self.other = s.add(OTHER, needs(self.word, shapes.github()))
        s.d.policy("other", [{"allow": OTHER, "with": {"bearer": "other"}}])
        s.d.audit.update(audit)
        if fleet:  # no token is taken before fleet_read()
            s.d.secret("fleet_password", scan_of(s, "fleet"))
            s.d.secrets["fleet"] = {"postgres_login": {"user": "fleet", "password": "fleet_password"}}
            s.d.resolve[FLEET + ":5432"] = "127.0.0.1:1"  # where nobody listens
            s.d.extra["fleet"] = {"postgres": "postgres://%s/fleet" % FLEET, "login": "fleet", "revocations": "2h"}
        self.addresses = [s.listener(), s.listener("other"), s.listener(None)]
        s.d.extra.get("fleet", {}).update(every="1s", host="box", logs={"box": "58" + "66" * 31})  # of a key that is not this log's
        s.d.serve()
        self.near, self.kept = s.gate(self.addresses[1], timeout=5), None
        self.api = api.Api(s.d.socket)
        t.cleanup(self.api.close)

    def neighbour(self):
        """Another gate's client, on a connection that it keeps."""
        for again in (True, False):
            try:
                self.kept = self.kept or self.near.tls(OTHER)
                r = self.kept.ask("GET /user HTTP/1.1\r\nHost: %s\r\n\r\n" % OTHER)
                return True if r.status == 200 else r.status
            except (client.Ended, OSError) as e:
                self.kept = None
                if not again:
                    return e

    def comes_back(self, seconds=10):
        """The neighbour is served, if not at once: a role that all share was started again."""
        return tap.wait_for(lambda: self.neighbour() is True, seconds, 0.1) or self.neighbour()

    def gate(self, *policies):
        """Of the listener whose clients may be of these."""
        try:
            return self.seats.take("gate", lambda g: {w.policy for w in g.wires("dialer")} == set(policies))
        except RuntimeError as e:
            raise RuntimeError("%s\n%s\n%s" % (e, self.processes(), self.s.d.diagnostics()))

    def processes(self):
        """Each process below the daemon: what it is, in which state, and in which system call it waits."""
        lines = []
        for pid, _ in tap.descendants(self.s.d.daemon.pid):
            told = []
            for name in ("cmdline", "stat", "wchan", "syscall"):
                try:
                    with open("/proc/%d/%s" % (pid, name)) as f:
                        told.append(f.read().replace("\0", " ")[:120].strip())
                except OSError as e:
                    told.append(str(e))
            lines.append(" | ".join(told))
        return "\n".join(lines)

    def injector(self, policy):
        return self.seats.take("injector", lambda i: {w.policy for w in i.wires("vault")} == {policy})

    def arrived(self):
        return sum(len(o.requests) for o in self.s.d.origins.values()) - len(self.other.requests)

    def quiet(self, seconds=20):
        """Nothing is under way to an origin any more."""
        seen = [-1]

        def still():
            before, seen[0] = seen[0], self.arrived()
            return before == seen[0]
        return tap.wait_for(still, seconds, 0.5)

    def fleet_read(self):
        """What a fleet's role says when it has read that nothing was revoked."""
        f = self.seats.take("fleet")
        w = f.wire("controller")
        w.send(wire.message(wire.NOTES_UP))
        kind, fields, _ = w.next(5)
        w.send(wire.message(wire.NOTES_READ, wire.u32(fields.u32()), wire.u8(0)))
        gate = client.Gate(self.addresses[2], self.near.cafile, token="sandbox:" + self.identity("other")["token"])
        self.t.ok(kind == wire.NOTES_ASK and tap.wait_for(lambda: gate.get(OTHER, "/user").status == 200, 5, 0.05),
                  "a token is taken once the fleet's notes are read")
        f.end()

    def identity(self, policy):
        return self.api.ask("POST", "/v1/identities", {"policy": policy})
