#!/usr/bin/python3 -B
"""Approvals over a fleet, by a real PostgreSQL: a request that one host holds is shown and answered on each other host
that its configuration names, once; whoever has the database, or a key that is not named, lets nothing go."""
import concurrent.futures
import http.client
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, durward, fleet, postgres, tap  # noqa: E402
from harness.fleet import NOTED, OK, REVOKED  # noqa: E402

sys.path.insert(0, os.path.join(durward.TOP, "sdk/python/src"))
import durward as sdk  # noqa: E402


class Held:
    """A request that a host holds, and what each host says of it."""

    def __init__(self, node, name, bound=False):
        """bound: by a listener that wants no token."""
        self.node, self.path = node, "/ask/" + name
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        gate = client.Gate(node.bound, node.ca, timeout=30) if bound else node.gate(node.issue())
        self.sent = self.pool.submit(gate.get, NOTED, self.path)
        self.id = (tap.wait_for(lambda: seen(node, self.path), 8, 0.02) or {}).get("id", "")

    def waits(self):
        return not self.sent.done()

    def result(self):
        r = self.sent.result(20)
        self.pool.shutdown()
        return r.status, r.code if r.status != 200 else ""


def seen(node, path):
    a = node.api()
    got = [x for x in a.ask("GET", "/v1/approvals")["approvals"] if x["url"].endswith(path)]
    a.close()
    return got[0] if len(got) == 1 else None


def answer(node, held, word="allow"):
    """-> status, what is said"""
    a = node.api()
    status, _, data = a.raw("POST", "/v1/approvals/%s/%s" % (held.id, word))
    a.close()
    return status, json.loads(data)


def everywhere_read(a, b):
    """a has read all that there is: what b revokes now came behind it."""
    mark = a.issue()
    b.revoke(mark)
    return a.says_soon(mark, REVOKED)


def answers(node):
    try:
        a = node.api()
        a.ask("GET", "/v1/health")
        a.close()
        return True
    except (OSError, http.client.HTTPException):
        return False


def heard(served, held):
    return sum(q.path == held.path for q in served.requests)


def approvals(t, nodes, served):
    a, b, c = nodes
    held = Held(a, "one")
    shown = tap.wait_for(lambda: seen(b, held.path), 3, 0.02) or {}
    mine = seen(a, held.path)
    t.eq({k: shown.get(k) for k in ("id", "sandbox", "policy", "method", "url", "rule")},
         {k: mine.get(k) for k in ("id", "sandbox", "policy", "method", "url", "rule")}, "what one host holds another one shows")
    t.eq((shown.get("host"), mine.get("host")), ("a", None), "with the host that holds it")
    status, said = answer(b, held)
    t.eq((status, said.get("taken"), said.get("host")), (200, True, "a"), "it is answered there")
    t.eq((held.result(), heard(served, held)), (OK, 1), "and sent")
    (record,) = a.d.wait_records(1, "admitted", path=held.path)
    t.eq(record.get("detail"), "approved by uid %d (API) at b" % os.getuid(), "the record says who, and where")
    t.ok(tap.wait_for(lambda: not seen(c, held.path) and not seen(b, held.path), 3, 0.02), "it is in no list any more")
    t.eq(answer(b, held)[0], 404, "a second answer finds none")
    held = Held(a, "no")
    tap.wait_for(lambda: seen(b, held.path), 3, 0.02)
    r = b.d.command("approve", "deny", "--socket", b.d.socket, held.id)
    t.eq((r.returncode, held.result(), heard(served, held)), (0, (403, "approval_denied"), 0), "denied on another host: refused")


def at_once(t, nodes, served):
    """Several people answer the same request."""
    a, b, c = nodes
    for i, (one, other) in enumerate(((b, c), (a, b), (b, c), (c, a))):
        held = Held(a, "race%d" % i)
        tap.wait_for(lambda: seen(b, held.path) and seen(c, held.path), 3, 0.02)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first, second = pool.submit(answer, one, held), pool.submit(answer, other, held, "deny")
        got = [first.result()[0], second.result()[0]]
        t.eq((got.count(200), got.count(409) + got.count(404)), (1, 1), "two answers at once: one counts")
        allowed = got[0] == 200
        t.eq((held.result()[0], heard(served, held)), (200, 1) if allowed else (403, 0), "the one that was told so")


def unlisted(t, nodes, served):
    """c's configuration does not name b, though b's names c."""
    a, b, c = nodes
    held = Held(c, "strict")
    t.ok(tap.wait_for(lambda: seen(b, held.path) and seen(a, held.path), 3, 0.02), "a host may see what it may not answer")
    t.eq(answer(b, held)[0], 202, "its answer is not taken")
    t.ok(held.waits() and heard(served, held) == 0, "and lets nothing go")
    t.eq((answer(a, held)[0], held.result()), (200, OK), "one that is named answers it still")


def forged(t, nodes, db, served):
    """Whoever has the database has every note, and no key."""
    a, b, _ = nodes
    one, two = Held(a, "signed"), Held(a, "target")
    tap.wait_for(lambda: seen(b, one.path) and seen(b, two.path), 3, 0.02)
    t.eq((answer(b, one)[0], one.result()), (200, OK), "an answer of a listed host")
    note, body = db.sql("SELECT id || ' ' || body FROM durward_note WHERE kind = 'answered' AND id LIKE '%s-%%'" % one.id,
                        "fleet").strip().split(" ")
    key = note.rpartition("-")[2]
    put = "INSERT INTO durward_note (kind, id, body, until) VALUES ('%s', '%s', '%s', 99999999999) ON CONFLICT (kind, id) DO UPDATE SET body = EXCLUDED.body"
    asked = db.sql("SELECT body FROM durward_note WHERE kind = 'asked' AND id = '%s'" % two.id, "fleet").strip()
    for name, kind, where, what in (("replayed for another request", "answered", "%s-%s" % (two.id, key), body),
                                    ("under another key", "answered", two.id + "-0123456789abcdef", body),
                                    ("without a key", "answered", two.id, body), ("that is the question", "answered", "%s-%s" % (two.id, key), asked),
                                    ("of nobody", "answered", "%s-%s" % (two.id, key), body[:-4] + "AAAA"),
                                    ("without a signature", "answered", "%s-%s" % (two.id, key), body.rpartition(".")[0]),
                                    ("that it is over", "ended", two.id, body)):
        db.sql("DELETE FROM durward_note WHERE kind = '%s' AND id = '%s'" % (kind, where), "fleet")
        db.sql(put % (kind, where, what), "fleet")
        t.ok(everywhere_read(a, b) and two.waits() and heard(served, two) == 0, "an answer %s lets nothing go" % name)
    db.sql(put % ("asked", "ap-aaaaaaaa", asked), "fleet")
    t.ok(everywhere_read(b, a) and seen(b, two.path), "a request under another id is not shown twice")
    t.eq((answer(a, two)[0], two.result(), heard(served, two)), (200, OK, 1), "where it is held it is answered still")


def held_cut_off(t, nodes, db, served):
    a, b, _ = nodes
    held, own = Held(a, "cut", True), Held(a, "own", True)
    tap.wait_for(lambda: seen(b, held.path) and seen(b, own.path), 3, 0.02)
    a.relay.cut()
    t.eq(answer(b, held)[0], 202, "of a host that is cut off the answer waits")
    t.ok(held.waits(), "it holds the request meanwhile")
    t.eq((answer(a, own)[0], own.result()), (200, OK), "its own people answer what it holds")
    a.relay.join()
    t.eq((held.result(), heard(served, held)), (OK, 1), "connected again it takes the answer")
    t.ok(tap.wait_for(lambda: not seen(b, own.path), 5, 0.02), "and the others hear what became of the rest")
    held = Held(a, "told", True)
    tap.wait_for(lambda: seen(b, held.path), 3, 0.02)
    b.relay.cut()
    c = sdk.Durward(b.d.socket)
    t.eq(c.approval(held.id).host, "a", "the client names the host that holds it")
    t.eq(c.allow(held.id), sdk.Decision(held.id, "allowed", "a", False), "a host that is cut off says its answer: it is not taken yet")
    t.ok(b.kill("controller") and held.waits(), "and its controller is killed before the database has it")
    t.ok(tap.wait_for(lambda: answers(b), 10, 0.1), "another one is there")
    b.relay.join()
    t.eq((held.result(), heard(served, held)), (OK, 1), "what was told is said all the same")
    held = Held(a, "killed", True)
    tap.wait_for(lambda: seen(b, held.path), 3, 0.02)
    t.ok(a.kill("fleet") and b.kill("fleet"), "the roles are killed")
    db.process.kill()
    db.process.wait()
    t.ok(answer(b, held)[0] in (202, 503), "and the database")
    db.start()
    t.ok(held.waits() and tap.wait_for(lambda: seen(b, held.path), 10, 0.05), "then it is shown again")
    first = tap.wait_for(lambda: (lambda x: x if x != 503 else None)(answer(b, held)[0]), 10, 0.1)
    t.ok(first in (200, 409, 404) and held.result() == OK and heard(served, held) == 1, "and answered once", str(first))
    held = Held(a, "controller", True)
    tap.wait_for(lambda: seen(b, held.path), 3, 0.02)
    old = held.id
    t.ok(a.kill("controller"), "the controller of the host that holds it is killed")
    t.ok(tap.wait_for(lambda: (seen(b, held.path) or {}).get("id", old) != old, 10, 0.05), "the next one says it anew, and ends the old")
    held.id = seen(b, held.path)["id"]
    t.eq((answer(b, held)[0], held.result()), (200, OK), "and takes an answer")


def know_one_another(nodes):
    """a names b and c, b names a and c, c names a alone."""
    keys = [json.loads(n.d.command("status", "--json", "--socket", n.d.socket).stdout)["fleet_key"] for n in nodes]
    for i, names in enumerate(("bc", "ac", "a")):
        nodes[i].d.extra["fleet"]["hosts"] = {x: keys["abc".index(x)] for x in names}
        nodes[i].d.stop()
        nodes[i].d.serve()


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    nodes, db, served = fleet.noted(t, revocations="1m")
    know_one_another(nodes)
    t.part(approvals, t, nodes, served)
    t.part(at_once, t, nodes, served)
    t.part(unlisted, t, nodes, served)
    t.part(forged, t, nodes, db, served)
    t.part(held_cut_off, t, nodes, db, served)


tap.run(main)
