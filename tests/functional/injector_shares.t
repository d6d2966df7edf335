#!/usr/bin/python3 -B
"""One sandbox takes all that it can of what sandboxes of a policy share in one injector (connections being
made, bodies that are held whole, requests held for somebody's word, secrets that are awaited)
and what watchers of the log share; its neighbour's requests are all answered meanwhile, and about as soon as when it
is alone. What is refused to the first is on record, with its reason."""
import concurrent.futures
import json
import os
import socket
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, scene, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HANG, NEAR, BODY, SLOW = "hang.example.com", "near.example.com", "body.example.com", "slow.example.com"
REQUESTS, SOON = 100, 1.0  # of the neighbour; s more than its slowest when it is alone
HELD = 256  # limits.approvals: what one injector holds in all
DIALS = 256  # of one sandbox (proxy/upstream/dial_client.h)

# N requests, one after the other, each on a connection of its own -> [[status, s], ...]
STEADY = r"""
import json, os, sys, time
sys.path.insert(0, "/tmp")
import hog
said = []
for i in range(%d):
    begun, s = time.monotonic(), None
    try:
        s = hog.connect(%r)
        body = os.path.expandvars(%r).encode()
        kind = b"POST" if body else b"GET"
        s.sendall(kind + b" %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\n" +
                  (b"Content-Length: %%d\r\n" %% len(body) if body else b"") + b"\r\n" + body)
        status = hog.status_of(s)
    except OSError as e:
        status = str(e)
    said.append([status, time.monotonic() - begun])
print(json.dumps(said))
"""


class Deaf:
    """A port whose queue is full: nobody is ever connected."""

    def __init__(self, t):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(0)
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        self.fill = []
        for _ in range(8):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(self.sock.getsockname())
            self.fill.append(s)
        t.cleanup(self.close)

    def close(self):
        for s in self.fill + [self.sock]:
            s.close()


class Bed:
    def __init__(self, t):
        self.t, self.s = t, scene.Scene(t)
        s = self.s
        s.d.limits.update({"approvals": HELD, "dial_seconds": 20, "approval_seconds": 60})
        deaf = Deaf(t)
        s.d.resolve[HANG] = deaf.address
        for host in (NEAR, BODY, SLOW):
            s.add(host, lambda req, conn: conn.reply(req, 200, "ok", headers=[("Connection", "close")]))
        s.d.secrets["slow"] = {"command": ["sh", "-c", "sleep 5; echo slow-secret-of-this-test"], "ttl": "0s"}
        s.rule(allow=HANG, websocket=True, **{"with": {"bearer": "github"}})
        s.rule(allow=NEAR, **{"with": {"bearer": "github"}})
        s.rule(ask=NEAR + "/ask/**", **{"with": {"bearer": "github"}})
        s.rule(allow=BODY, **{"with": {"placeholder": {"secret": "openai", "in": {"body": "/key"}}}})
        s.rule(allow=SLOW, **{"with": {"bearer": "slow"}})
        self.port = free_port()
        s.d.extra["controller"] = dict(s.d.config()["controller"], https="127.0.0.1:%d" % self.port)
        s.d.serve()
        self.c = api.Api(s.d.socket, timeout=120)
        try:
            self.a, self.b = [self.c.create(policy="coder")["id"] for _ in range(2)]
        except api.Refused as e:
            raise tap.Skip("no sandbox can be made here: %s" % e)
        with open(os.path.join(HERE, "inside", "hog.py"), "rb") as f:
            program = f.read()
        self.c.write(self.a, "/tmp/hog.py", program)
        self.c.write(self.b, "/tmp/hog.py", program)
        self.pool = concurrent.futures.ThreadPoolExecutor(8)
        self.turns = 0

    def sh(self, sid, command, timeout=60):
        c = api.Api(self.s.d.socket, timeout=120)
        try:
            return c.sh(sid, command, timeout=timeout)[1].decode()
        finally:
            c.close()

    def steady(self, host=NEAR, path="/", body="", n=REQUESTS):
        """-> statuses, and the slowest in s"""
        out = self.sh(self.b, "/usr/bin/python3 - <<'END'\n%s\nEND" % (STEADY % (n, host, body, path, host)))
        said = json.loads(out)
        return [x[0] for x in said], max(x[1] for x in said)

    def hog(self, what, n, host, path="/"):
        """A is at it -> what stops it, and returns what it said."""
        self.turns += 1
        stop = "/tmp/stop%d" % self.turns
        job = self.pool.submit(self.sh, self.a, "/usr/bin/python3 /tmp/hog.py %s %d %s %s %s" % (
            what, n, host, path, stop))
        asked = tap.wait_for(lambda: job.done() or "yes" in self.sh(
            self.a, "test -e %s.asked && echo yes || true" % stop), 20, 0.2)
        self.t.ok(asked and not job.done(), what + ": the first sandbox has asked for all", str(job.done() and job.result()))

        def end():
            self.sh(self.a, "touch " + stop)
            return json.loads(job.result(40))
        return end

    def compare(self, name, quiet, **kw):
        statuses, slowest = self.steady(**kw)
        self.t.eq((len(statuses), set(statuses)), (REQUESTS, {"200"}), name + ": all of the neighbour's are answered")
        self.t.ok(slowest < quiet + SOON, name + ": and soon", "%.3f s, alone %.3f s" % (slowest, quiet))
        return slowest

    def refused(self, code, sid, what):
        records = self.s.d.records(code=code, sandbox=sid)
        self.t.ok(records, what + ": what is refused is on record, with the reason", code)
        self.served(what)

    def served(self, what):
        other = [r for r in self.s.d.records(sandbox=self.b) if r.get("code") in ("share_used", "overload")]
        self.t.eq(other, [], what + ": nothing is refused to the neighbour")


def dials(t, bed):
    _, quiet = bed.steady()
    end = bed.hog("sockets", DIALS + 64, HANG)
    slowest = bed.compare("hanging connections", quiet)
    said = end()
    t.diag("hanging connections: %s; neighbour's slowest %.3f s, alone %.3f s" % (said, slowest, quiet))
    t.eq((said["said"], said["open"]), ({}, DIALS + 64), "hanging connections: those beyond its part wait")
    bed.served("hanging connections")  # what waits in vain: no_cliff.t


def bodies(t, bed):
    more = {"host": BODY, "body": '{"key":"$OPENAI_API_KEY","pad":"%s"}' % ("x" * 2000)}
    _, quiet = bed.steady(**more)
    end = bed.hog("bodies", 72, BODY)
    slowest = bed.compare("bodies that do not end", quiet, **more)
    said = end()
    t.diag("bodies that do not end: %s; neighbour's slowest %.3f s, alone %.3f s" % (said, slowest, quiet))
    t.ok(said["said"].get("503", 0) > 0, "bodies that do not end: beyond its part: 503", str(said))
    t.ok([r for r in bed.s.d.records(code="share_used", sandbox=bed.a) if r.get("authority", "").startswith(BODY)],
         "bodies that do not end: it is on record")


def approvals(t, bed):
    end = bed.hog("gets", HELD + 8, NEAR, "/ask/a")
    job = bed.pool.submit(bed.steady, NEAR, "/ask/b", "", 1)
    own = tap.wait_for(lambda: [x for x in bed.c.ask("GET", "/v1/approvals")["approvals"] if x["sandbox"] == bed.b], 10)
    t.ok(own, "held requests: the neighbour's is listed")
    for x in own or ():
        bed.c.ask("POST", "/v1/approvals/%s/allow" % x["id"])
    t.eq(job.result(30)[0], ["200"], "held requests: and allowed, it goes on")
    t.ok(len(bed.c.ask("GET", "/v1/approvals")["approvals"]) <= HELD / 2, "held requests: one has half of them at most")
    said = end()
    t.diag("held requests: %s" % said)
    bed.refused("approval_full", bed.a, "held requests")


def mints(t, bed):
    """A secret that takes its time is one question, whoever waits for it."""
    _, quiet = bed.steady()
    end = bed.hog("gets", 64, SLOW)
    bed.compare("awaited secrets", quiet)
    t.diag("awaited secrets: %s" % end())


def watchers(t, bed):
    token = bed.c.ask("POST", "/v1/tokens", {"scopes": ["read"]})["token"]
    context = ssl.create_default_context(cafile=bed.s.ca_file())
    opened, statuses = [], []
    for _ in range(40):
        s = context.wrap_socket(socket.create_connection(("127.0.0.1", bed.port), 10), server_hostname="127.0.0.1")
        s.sendall(("GET /v1/audit/stream HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (
            bed.port, token)).encode())
        statuses.append(s.recv(4096).split()[1].decode())
        opened.append(s)
    t.eq(set(statuses), {"200", "503"}, "watchers: one token's part of them is bounded")
    mine = socket.socket(socket.AF_UNIX)
    mine.settimeout(10)
    mine.connect(bed.s.d.socket)
    mine.sendall(b"GET /v1/audit/stream HTTP/1.1\r\nHost: durward\r\n\r\n")
    t.eq(mine.recv(4096).split()[1], b"200", "watchers: another finds room")
    for s in opened + [mine]:
        s.close()


def main(t):
    bed = Bed(t)
    for part in (dials, bodies, approvals, mints, watchers):
        t.part(part, t, bed)
    bed.c.close()
    t.eq(bed.s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=150)
