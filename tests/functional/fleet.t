#!/usr/bin/python3 -B
"""Three hosts and a real PostgreSQL: a budget of the fleet is never exceeded by all of them together, whatever is
killed or cut off meanwhile; a host that is cut off goes on for `hold`, with what it holds, and no longer."""
import concurrent.futures
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import client, fleet, origin, postgres, scan, tap  # noqa: E402
from harness.fleet import DB, PASSWORD  # noqa: E402

HOST, HOLD = "count.example.com", 2
WINDOW, RATE = 2, 12
BUDGETS = {"all": {"requests": "40/h", "fleet": True}, "fast": {"requests": "%d/%ds" % (RATE, WINDOW), "fleet": True},
           "cut": {"requests": "1600/h", "fleet": True}, "bytes": {"download": "400KB/h", "fleet": True},
           "own": {"requests": "3/h"}, "held": {"requests": "32/10m", "fleet": True}, "free": None}


class Node(fleet.Host):
    def __init__(self, t, i, ca=None):
        super().__init__(t, i, ca)
        self.counted = origin.Origin(t, self.d.ca, HOST, handler)

    def begin(self, db):
        d = self.d
        self.join(db, hold="%ds" % HOLD)
        d.origin(HOST, self.counted)
        d.policy("coder", [dict({"allow": "%s/%s/**" % (HOST, name)}, **({"budget": b} if b else {}))
                           for name, b in BUDGETS.items()])
        d.listen.append({"http": self.at, "policy": "coder"})
        d.serve()
        self.gate = client.Gate(self.at, self.ca_file(), timeout=20)

    def get(self, name, path=""):
        return self.gate.get(HOST, "/%s/%s" % (name, path))


def handler(req, conn):
    conn.reply(req, 200, b"x" * (50000 if "bytes" in req.target else 2))


def statuses(nodes, name, n, path=""):
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        return list(pool.map(lambda i: nodes[i % len(nodes)].get(name, path).status, range(n)))


def arrived(nodes, name):
    return sum(q.path.startswith("/%s/" % name) for n in nodes for q in n.counted.requests)


def together(t, nodes):
    """More than there is, through all three at once, and then until each says no more."""
    got = statuses(nodes, "all", 90)
    t.eq(set(got) - {200, 429}, set(), "each is served or refused")
    end = time.monotonic() + 8
    while got.count(200) < 40 and time.monotonic() < end:
        got += statuses(nodes, "all", 3)
    t.eq((got.count(200), arrived(nodes, "all")), (40, 40), "three hosts together: exactly as many as the budget")
    got = statuses(nodes, "all", 6)
    t.eq(got, [429] * 6, "and none more on any of them")
    (record,) = nodes[0].d.wait_records(1, "denied", code="budget")[:1]
    t.eq(record.get("detail"), "requests 40/h", "a refusal names the budget")
    t.eq([n.get("own").status for n in nodes for _ in range(4)], [200, 200, 200, 429] * 3,
         "a budget without 'fleet' is each host's own")


def downloads(t, nodes):
    got = [n.get("bytes") for _ in range(4) for n in nodes]
    whole = sum(r.status == 200 and len(r.body) == 50000 for r in got)
    total = sum(len(r.body) for r in got if r.status == 200)
    t.ok(total <= 400000 and whole >= 5, "bytes are shared likewise", "%d bytes, %d whole" % (total, whole))


def cut_off(t, nodes):
    """One host is cut off: it goes on with what it holds, for so long as it is said; the others go on without end."""
    b = nodes[1]
    t.eq([n.get("cut").status for n in nodes], [200] * 3, "all of them use some of it")
    b.relay.cut()
    begun = time.monotonic()
    t.eq(b.get("cut").status, 200, "who is cut off goes on with its share")
    refused = tap.wait_for(lambda: b.get("cut", "on").status == 429, HOLD + 4, 0.4)
    took = time.monotonic() - begun
    t.ok(refused and took <= HOLD + 2.5, "until its lease is over, and no longer", "%.1f s" % took)
    t.eq([nodes[0].get("cut").status, nodes[2].get("cut").status], [200, 200], "the others do not notice")
    b.relay.join()
    t.ok(tap.wait_for(lambda: b.get("cut").status == 200, 8, 0.1), "joined again it goes on")


def most_in_window(times):
    return max(sum(x <= asked and y < x + WINDOW for asked, y in times) for x, _ in times) if times else 0


def killed(t, nodes, db):
    """Asked for all the time on each host, while roles, the database and a whole host are killed."""
    times, over = [], threading.Event()

    def hammer(node):
        while not over.is_set():
            asked = time.monotonic()
            try:
                if node.get("fast").status == 200:
                    times.append((asked, time.monotonic()))
            except (OSError, client.Ended):
                pass  # its host is dead
            over.wait(0.02)

    def answered():
        """Some more were."""
        there = len(times)
        tap.wait_for(lambda: len(times) >= there + 3, 15, 0.02)

    threads = [threading.Thread(target=hammer, args=(n,)) for n in nodes]
    for x in threads:
        x.start()
    try:
        answered()
        t.ok(nodes[0].kill("fleet") and nodes[2].kill("dialer"), "a fleet role and another host's dialer are killed")
        answered()
        db.process.kill()
        db.process.wait()
        t.ok(db.process.returncode, "the database is killed")
        before = [n.relay.missed for n in nodes]
        t.ok(tap.wait_for(lambda: all(n.relay.missed > m for n, m in zip(nodes, before)), 10), "each host asks, and there is none")
        db.start()
        for pid, _ in tap.descendants(nodes[1].d.daemon.pid):
            os.kill(pid, signal.SIGKILL)
        nodes[1].d.daemon.kill()
        nodes[1].d.daemon.wait()
        answered()
        nodes[1].d.serve()
        since = time.monotonic()
        t.ok(tap.wait_for(lambda: sum(a > since + HOLD + WINDOW for a, _ in times) >= RATE, HOLD + 12, 0.1),
             "what the dead one held is free after its lease and the limit's time")
    finally:
        over.set()
        for x in threads:
            x.join()
    t.ok(most_in_window(times) <= RATE, "in no %d seconds more than %d" % (WINDOW, RATE), str(most_in_window(times)))
    t.ok(len(times) >= 2 * RATE, "and not much less", str(len(times)))


def refuses(t, nodes, db):
    """A database that refuses for a while and keeps the connection, as one that is not yet the primary."""
    n = nodes[0]
    db.sql("REVOKE INSERT, UPDATE ON durward_holder FROM fleet", "fleet")
    t.ok(n.kill("fleet") and n.kill("dialer"), "its role and its dialer begin anew meanwhile")
    t.ok(tap.wait_for(lambda: n.get("cut").status == 429, 8, 0.2), "a host that the database refuses holds nothing")
    t.eq(n.get("free").status, 200, "and goes on otherwise")
    db.sql("GRANT INSERT, UPDATE ON durward_holder TO fleet", "fleet")
    t.ok(tap.wait_for(lambda: n.get("cut").status == 200, 8, 0.2), "it is asked again, over the same connection")


def ended(t, nodes, db):
    """A host that ends gives back what it has not used."""
    n = nodes[2]
    t.eq([n.get("held").status for _ in range(3)], [200] * 3, "a host uses three")
    t.ok(tap.wait_for(lambda: held(db, "held") > 3, 3, 0.05), "and holds some more ahead", str(held(db, "held")))
    t.eq(n.d.stop(), 0, "it ends")
    t.eq(held(db, "held"), 3, "what it did not use is given back")
    t.ok(db.sql("SELECT count(*) FROM durward_holder h JOIN durward_share s ON s.holder = h.id WHERE gone AND seconds = "
                "600", "fleet").strip() == "1", "and it is marked as gone")


def held(db, name):
    """Of the budget whose time no other has."""
    seconds = {"held": 600}[name]
    return int(db.sql("SELECT coalesce(sum(share), 0) FROM durward_share WHERE seconds = %d" % seconds, "fleet").strip())


def secrets(t, nodes):
    own = scan.Scanner(password=PASSWORD.encode())
    found = {role: scan.scan_process(pid, own, role)[0] for pid, role in nodes[0].d.roles(nodes[0].d.daemon.pid)
             if role in ("fleet", "dialer")}
    t.eq(found, {"fleet": [], "dialer": []}, "neither the role nor the dialer has the password")


def refused(t, nodes):
    d = nodes[0].d
    whole = d.extra.pop("fleet")
    r = d.check()
    t.ok(r.returncode != 0 and "'fleet' says where" in r.stderr + r.stdout, "a budget of the fleet without one is refused", r.stderr)
    d.extra["fleet"] = dict(whole, login="password")
    t.ok(d.check().returncode != 0, "the login is one of PostgreSQL")
    d.extra["fleet"] = whole
    d.save()


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    nodes = [Node(t, 0)]
    ca = nodes[0].d.ca
    nodes += [Node(t, i, ca) for i in (1, 2)]
    db = postgres.Postgres(t, ca, "pg", DB)
    fleet.prepare(db)
    for n in nodes:
        n.begin(db)
    t.part(together, t, nodes)
    t.part(downloads, t, nodes)
    t.part(secrets, t, nodes)
    t.part(cut_off, t, nodes)
    t.part(killed, t, nodes, db)
    t.part(refuses, t, nodes, db)
    t.part(ended, t, nodes, db)
    t.part(refused, t, nodes)


tap.run(main)
