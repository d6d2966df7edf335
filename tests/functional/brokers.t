#!/usr/bin/python3 -B
"""What every broker has of the frame: `ask`, and budgets of a rule and of its policy, with real
servers. What nobody has approved, and what a budget does not leave, never reaches a server."""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, postgres, redis, sshd, tap  # noqa: E402

CACHE, SMALL, TIGHT, BULK, DB, GIT = ("cache.example.com", "small.example.com", "tight.example.com", "bulk.example.com",
                                      "db.example.com", "git.example.com")
APP = "app-password-4711"
SETUP = "CREATE ROLE app LOGIN PASSWORD '%s'; CREATE DATABASE orders;" % APP


class Bed:
    """A daemon, and a sandbox in it whose commands are waited for or not."""

    def __init__(self, t):
        self.d = d = durward.Durward(t)
        self.redis = redis.Redis(t, d.ca, "redis", CACHE)
        self.sshd = None if sshd.missing() else sshd.Sshd(t)
        self.postgres = None if postgres.missing() else postgres.Postgres(t, d.ca, "pg", DB)
        d.secret("password", APP)
        d.secrets["cache"] = {"redis_login": {"user": "app", "password": "password"}}
        d.secrets["orders"] = {"postgres_login": {"user": "app", "password": "password"}}
        plain = {"allow_plaintext": True, "with": {"redis_login": "cache"}}
        rules = [dict(plain, ask="redis://" + CACHE),
                 dict(plain, allow="redis://" + SMALL, budget={"requests": "2/h"}),
                 dict(plain, allow="redis://" + TIGHT, budget={"download": "100KB/h"}),
                 dict(plain, allow="redis://" + BULK, budget={"upload": "100KB/h"})]
        for host in (CACHE, SMALL, TIGHT, BULK):
            d.resolve[host + ":6379"] = self.redis.address
        if self.postgres:
            self.postgres.sql(SETUP)
            d.resolve[DB + ":5432"] = self.postgres.address
            rules.append({"ask": "postgres://%s/orders" % DB, "with": {"postgres_login": "orders"},
                          "budget": {"download": "60KB/h"}})
        if self.sshd:
            d.secret("key", self.sshd.key)
            d.secrets["deploy"] = {"ssh_key": {"key": "key"}}
            d.resolve[GIT + ":22"] = self.sshd.address
            more = {"with": {"ssh_key": "deploy"}, "host_keys": self.sshd.host_key}
            rules += [dict(more, ask="ssh://%s@%s" % (self.sshd.user, GIT), commands=["echo *", "wc -c", "head -c * /dev/zero"],
                           budget={"upload": "50KB/h", "download": "50KB/h"})]
        d.policy("coder", rules)
        d.policies["whole"] = {"rules": [dict(plain, allow="redis://" + CACHE)], "budget": {"requests": "1/h"}}
        d.extra.update(upstream={"ca": [d.ca.pem], "resolve": d.resolve})
        d.serve()
        self.api = api.Api(d.socket)
        self.pool = concurrent.futures.ThreadPoolExecutor(8)
        self.id = self.create("coder")

    def create(self, policy):
        return self.api.create(policy=policy)["id"]

    def sh(self, command, sid=None):
        """-> (status, output), of both streams"""
        other = api.Api(self.d.socket)
        status, out = other.sh(sid or self.id, command + " 2>&1", timeout=60)
        other.close()
        return status, out.decode(errors="replace")

    def begin(self, command):
        return self.pool.submit(self.sh, command)

    def held(self, n=1):
        def look():
            found = self.api.ask("GET", "/v1/approvals")["approvals"]
            return found if len(found) == n else None
        return tap.wait_for(look, 10, 0.05) or []

    def say(self, one, word):
        self.api.ask("POST", "/v1/approvals/%s/%s" % (one["id"], word))

    def connections(self):
        return int(dict(l.split(b":", 1) for l in self.redis.call("INFO", "stats").split() if b":" in l)[b"total_connections_received"])


def asked(t, b):
    before = b.connections()
    run = b.begin("redis-cli -h %s SET asked 1" % CACHE)
    (one,) = b.held()
    t.eq((one["method"], one["url"], one["credential"], one["rule"].split()[0]),
         ("connect", "redis://%s/" % CACHE, "cache", "ask"), "a session is held, and listed with what it is")
    t.eq((run.done(), b.connections() - before, b.d.kinds("admitted")), (False, 1, []),
         "it waits; its server has heard nothing, and nothing is admitted")
    b.say(one, "allow")
    t.eq(run.result(20), (0, "OK\n"), "allowed, it goes on with what the client had sent")
    (r,) = b.d.wait_records(1, "admitted", scheme="redis")
    t.ok(r.get("detail", "").startswith("approved by "), "its record says who approved it", str(r))
    run = b.begin("redis-cli -h %s SET asked 2" % CACHE)
    b.say(b.held()[0], "deny")
    status, out = run.result(20)
    t.ok("approval_denied" in out, "denied, the client is told", out)
    t.ok(b.d.wait_records(1, "denied", code="approval_denied"), "and that is on record")
    t.eq(b.redis.call("GET", "asked"), b"1", "and nothing was written")
    leaves(t, b, "redis-cli -h %s SET asked 3" % CACHE)


def leaves(t, b, command):
    run = b.begin("timeout 2 %s </dev/null" % command)
    held = b.held()
    run.result(20)
    gone = tap.wait_for(lambda: not b.api.ask("GET", "/v1/approvals")["approvals"], 5)
    t.ok(held and gone, "a client that leaves asks no more: " + command.split()[0])


def asked_postgres(t, b):
    if b.postgres is None:
        t.skip("PostgreSQL", postgres.missing())
        return
    run = b.begin("psql -X -A -t 'host=%s dbname=orders user=x' -c 'SELECT 4711'" % DB)
    (one,) = b.held()
    t.eq(one["url"], "postgres://%s/orders" % DB, "a session at a database is shown with its name")
    b.say(one, "allow")
    t.eq(run.result(20), (0, "4711\n"), "and is allowed")
    leaves(t, b, "psql -X 'host=%s dbname=orders user=x' -c 'SELECT 1'" % DB)
    run = b.begin("psql -X -A -t 'host=%s dbname=orders user=x' -c \"SELECT repeat('x', 1000) FROM generate_series(1, 500)\"" % DB)
    b.say(b.held()[0], "allow")
    status, out = run.result(30)
    t.ok(status != 0 and out.count("x" * 1000) < 61, "its budget of bytes ends it", out[-200:])
    t.ok(b.d.wait_records(1, "aborted", code="budget"), "which is on record")


def asked_ssh(t, b):
    if b.sshd is None:
        t.skip("SSH", sshd.missing())
        return
    at = "ssh %s@%s " % (b.sshd.user, GIT)
    run = b.begin(at + "echo hello")
    (one,) = b.held()
    t.eq((one["method"], one["url"]), ("exec", "ssh://%s/%s: echo hello" % (GIT, b.sshd.user)), "a command is shown as it is")
    t.eq(b.sshd.logins(), 0, "its server has heard of no login")
    b.say(one, "allow")
    t.eq(run.result(20), (0, "hello\n"), "and is allowed")
    run = b.begin(at + "echo again")
    b.say(b.held()[0], "deny")
    status, out = run.result(20)
    t.ok(status != 0 and "approval_denied" in out and b.sshd.logins() == 1, "or denied", out)
    leaves(t, b, at + "wc -c")
    t.eq(b.sshd.logins(), 1, "and reaches nothing")
    run = b.begin("head -c 500000 /dev/zero | " + at + "wc -c")
    b.say(b.held()[0], "allow")
    status, out = run.result(30)
    t.ok(status != 0 and "budget" in out, "a budget of what goes there ends it", out)
    run = b.begin(at + "'head -c 500000 /dev/zero' | wc -c")
    b.say(b.held()[0], "allow")
    status, out = run.result(30)
    got = [int(l) for l in out.split() if l.isdigit()]
    t.ok(got and got[0] <= 50000, "and one of what comes back", out)


def counted(t, b):
    for i in range(2):
        t.eq(b.sh("redis-cli -h %s PING" % SMALL), (0, "PONG\n"), "session %d of two" % (i + 1))
    before = b.connections()
    status, out = b.sh("redis-cli -h %s PING" % SMALL)
    t.ok("budget" in out and "requests 2/h" in out, "a third is refused, and why", out)
    t.eq(b.connections() - before, 1, "which the server does not see")
    t.ok(b.d.wait_records(1, "denied", code="budget"), "but the log does")
    sid = b.create("whole")
    t.eq(b.sh("redis-cli -h %s PING" % CACHE, sid), (0, "PONG\n"), "the policy's own budget: one")
    t.ok("budget" in b.sh("redis-cli -h %s PING" % CACHE, sid)[1], "and no more")
    b.api.delete(sid)


def flowing(t, b):
    b.redis.call("SET", "long", "x" * 400000)
    status, out = b.sh("redis-cli -h %s GET long | wc -c" % TIGHT)
    t.ok(int(out.split()[-1]) <= 100000, "no more bytes come than a budget leaves", out[-100:])
    t.ok(b.d.wait_records(1, "aborted", code="budget"), "and its end is on record")
    t.ok("budget" in b.sh("redis-cli -h %s PING" % TIGHT)[1], "the next session is refused")
    before = b.redis.call("INFO", "stats")
    status, out = b.sh("head -c 400000 /dev/zero | redis-cli -h %s -x SET up" % BULK)
    t.ok("OK" not in out and b.redis.call("EXISTS", "up") == 0, "nor do more go there", out[-100:])
    used = [int(s.split(b"total_net_input_bytes:")[1].split()[0]) for s in (before, b.redis.call("INFO", "stats"))]
    t.ok(used[1] - used[0] < 101000, "as the server counts them", str(used))


def main(t):
    why = redis.missing()
    if why:
        t.skip("everything", why)
        return
    b = Bed(t)
    for part in (asked, asked_postgres, asked_ssh, counted, flowing):
        t.part(part, t, b)
    b.api.delete(b.id)
    b.api.close()
    b.pool.shutdown(wait=False)
    t.eq(b.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=200)
