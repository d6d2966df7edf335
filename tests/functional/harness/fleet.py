"""Hosts of a fleet on one machine: each has a daemon and a way of its own to the database, which can be cut."""
import base64
import hashlib
import json
import os
import signal
import socket

from . import api, client, durward, nginx, origin, postgres
from .accepting import accepting, joined
from .tap import wait_for

DB, PASSWORD = "fleet.example.com", "fleet-password-4711"
NOTED = "api.example.com"
OK, REVOKED, UNREAD = (200, ""), (407, "token_revoked"), (503, "fleet_unread")


class Relay:
    """Between a host and the database: .cut() carries nothing any more, and ends no connection; .join() ends them.
    .missed: how often the host came and there was no database."""

    def __init__(self, t, port):
        self.port, self.open, self.pairs, self.missed = port, True, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        t.cleanup(self.close)
        accepting(self.listener, self._one)

    def _one(self, near):
        try:
            far = socket.create_connection(("127.0.0.1", self.port), 2)
        except OSError:
            near.close()
            self.missed += 1
            return
        self.pairs.append((near, far))
        joined(near, far, lambda: self.open)

    def cut(self):
        self.open = False

    def join(self):
        self.open = True
        for pair in self.pairs:
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
        self.join()
        for pair in self.pairs:
            for s in pair:
                s.close()


class Host:
    """.d its daemon, .at where it listens, .relay its way to the database."""

    def __init__(self, t, i, ca=None):
        self.t, self.d = t, durward.Durward(t, "n%d" % i)
        self.d.ca = ca or self.d.ca
        self.at = "127.0.0.1:%d" % nginx.free_port()

    def join(self, db, **more):
        """Into the configuration; before the daemon begins."""
        d, self.relay = self.d, Relay(self.t, db.port)
        d.secret("password", PASSWORD)
        d.secrets["fleet"] = {"postgres_login": {"user": "fleet", "password": "password"}}
        d.resolve[DB + ":5432"] = self.relay.address
        d.extra["fleet"] = dict({"postgres": "postgres://%s/fleet" % DB, "login": "fleet"}, **more)

    def ca_file(self):
        r = self.d.command("ca", "export", "-c", self.d.conf)
        path = os.path.join(self.d.dir, "durward-ca.pem")
        with open(path, "w") as f:
            f.write(r.stdout)
        return path

    def kill(self, role):
        for pid, found in self.d.roles(self.d.daemon.pid):
            if found == role:
                os.kill(pid, signal.SIGKILL)
                return pid
        return None


def prepare(db):
    db.sql("SET password_encryption = 'scram-sha-256'; CREATE ROLE fleet LOGIN PASSWORD '%s'; "
           "CREATE DATABASE fleet OWNER fleet;" % PASSWORD)


class Node(Host):
    """One whose listeners take tokens, and whose policy asks."""
    rules = [{"ask": NOTED + "/ask/**"}, {"allow": NOTED + "/**"}]

    def begin(self, db, served, **more):
        d = self.d
        self.join(db, **more)
        d.origin(NOTED, served)
        d.policy("coder", list(self.rules))
        self.bound = "127.0.0.1:%d" % nginx.free_port()
        d.listen += [{"http": self.at}, {"http": self.bound, "policy": "coder"}]
        _, self.access = d.reachable_from_elsewhere(nginx.free_port())
        d.serve()
        self.ca = self.ca_file()

    def api(self):
        return api.Api(self.d.socket)

    def issue(self):
        a = self.api()
        made = a.ask("POST", "/v1/identities", {"policy": "coder"})
        a.close()
        return made

    def revoke(self, identity):
        a = self.api()
        a.ask("DELETE", "/v1/identities/" + identity["id"])
        a.close()

    def gate(self, identity):
        return client.Gate(self.at, self.ca, token="sandbox:" + identity["token"], timeout=20)

    def says(self, identity):
        r, st = self.gate(identity).connect(NOTED + ":443")
        st.close()
        return r.status, r.code if r.status != 200 else ""

    def says_soon(self, identity, want, seconds=8):
        return wait_for(lambda: self.says(identity) == want, seconds, 0.02)


def noted(t, kind=Node, **more):
    """Three of these, their database, and the origin that all of them reach."""
    nodes = [kind(t, 0)]
    ca = nodes[0].d.ca
    nodes += [kind(t, i, ca) for i in (1, 2)]
    db = postgres.Postgres(t, ca, "pg", DB)
    prepare(db)
    served = origin.Origin(t, ca, NOTED, lambda req, conn: conn.reply(req, 200, b"ok"))
    for n in nodes:
        n.begin(db, served, **more)
    return nodes, db, served


def introduce(nodes, names, **more):
    """Started again as a, b, c: each knows the keys of those that `names` has for it. With `every` in more, each one's log is
    held against what it said."""
    keys, logs = {}, {}
    for name, n in zip("abc", nodes):
        n.fleet_key = keys[name] = json.loads(n.d.command("status", "--json", "--socket", n.d.socket).stdout)["fleet_key"]
        n.key = hashlib.sha256(base64.b64decode(n.fleet_key)).hexdigest()[:16]
        logs[name] = json.loads(n.d.command("audit", "verify", "--json", "-c", n.d.conf).stdout)["key"]
    for name, n, known in zip("abc", nodes, names):
        n.d.extra["fleet"].update(more, hosts={x: keys[x] for x in known}, **({"host": name, "logs": logs} if "every" in more else {}))
        n.d.stop()
        n.d.serve()
