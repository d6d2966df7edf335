#!/usr/bin/python3 -B
"""F3: A client that takes every descriptor its gate may have: it is refused with a reason or waits, other listeners, which
share every other role, are served meanwhile, no role dies of it, and when it lets go it is served again. Sandboxes that
take all that the parent may have: the next one is refused at once and with the reason, as many as were calculated
are there, each of them has its way out, and a gate that is killed comes back."""
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, ceiling, client, durward, held, origin, scene, shapes, tap  # noqa: E402

FILES = 256  # hard limit of each process
CROWD = 400
HOST = "slow.example.com"
WAITS = "GET /waits HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST


def answer(req, conn):
    if req.path.endswith("/waits"):
        select.select([conn.sock], [], [], 60)  # until the other side leaves
        conn.close_after = True
    else:
        conn.reply(req, 200, "fine")


def use(d):
    """{(pid, role): open descriptors}"""
    found = {}
    for pid, role in d.roles():
        found[pid, role] = sum(held.descriptors([(pid, role)]).values())
    return found


def silent(t, s, crowded, other, roles):
    """Connections that say nothing: one descriptor each."""
    host, _, port = crowded.rpartition(":")
    conns = []
    for _ in range(CROWD):
        c = socket.socket()
        c.settimeout(2)
        try:
            c.connect((host, int(port)))
        except OSError:
            c.close()
            break
        conns.append(c)
    most = max((n, role) for (_, role), n in use(s.d).items())
    t.diag("%d connections; the most descriptors of a role: %d, of the %s" % (len(conns), *most))
    if os.geteuid() == 0:
        t.ok(most[1] == "gate" and most[0] >= FILES - 30, "the crowd takes what its gate has", str(use(s.d)))
    else:
        t.skip("the crowd takes what its gate has", "root alone can count the descriptors of a role, which nobody may trace")
    served(t, s, other, roles, "silent connections")
    for c in conns:
        c.close()
    back(t, s, crowded, "silent connections")


def busy(t, s, crowded, other, roles, path, what):
    """Requests that last: a descriptor to the client, one to the origin, more in the roles between."""
    gate, streams, codes = s.gate(crowded, timeout=1.5), [], {}
    for _ in range(FILES):
        try:
            st = gate.tls(HOST)
        except (OSError, client.Ended) as e:
            codes[repr(e)[:60]] = codes.get(repr(e)[:60], 0) + 1
            if sum(codes.values()) > 1:
                break
            continue
        streams.append(st)
        st.send(WAITS.replace("/waits", path))
        if select.select([st.sock], [], [], 0.02)[0]:
            try:
                r = st.reply()
                codes[r.status, r.code] = codes.get((r.status, r.code), 0) + 1
            except (OSError, client.Ended) as e:
                codes[repr(e)[:60]] = codes.get(repr(e)[:60], 0) + 1
            if sum(codes.values()) > 12:
                break  # they are answered, not held
    t.diag("%s: %d connections; %s; %s" % (what, len(streams), codes, sorted(use(s.d).items(), key=lambda x: -x[1])[:4]))
    others = [k for k in codes if isinstance(k, tuple) and (k[0] != 503 or not k[1])]
    t.ok(codes and not others, "%s: what is too much is 503 with a code, or waits" % what, str(codes))
    served(t, s, other, roles, what)
    for st in streams:
        st.close()
    back(t, s, crowded, what)


def served(t, s, other, roles, what):
    gate, slow, statuses = s.gate(other, timeout=5), 0.0, []
    for i in range(20):
        begun = time.monotonic()
        for host, path in ((HOST, "/x%d" % i), ("api.github.com", "/user")):
            try:
                statuses.append(gate.get(host, path).status)
            except (OSError, client.Ended) as e:
                statuses.append(repr(e))
        slow = max(slow, time.monotonic() - begun)
    t.ok(set(statuses) == {200}, "%s: another listener is served all the while" % what, str(statuses))
    t.diag("%s: the slowest two requests of another listener took %.0f ms" % (what, slow * 1000))
    gone = roles - {p for p, _ in s.d.roles()}
    t.ok(not gone, "%s: no role died" % what, str(gone))


def back(t, s, crowded, what):
    def once():
        try:
            return s.gate(crowded, timeout=2).get(HOST, "/x").status == 200
        except (OSError, client.Ended):
            return False
    begun = time.monotonic()
    t.ok(tap.wait_for(once, 10, 0.1), "%s: closed, and it is served again" % what)
    t.diag("%s: after %.1f s" % (what, time.monotonic() - begun))


def many(t):
    """One sandbox after another, until there is no room."""
    d = durward.Durward(t, "many")
    d.origin(HOST, origin.Origin(t, d.ca, HOST, shapes.echo))
    d.policy("many", [{"allow": HOST}])
    d.prefix = ["prlimit", "--nofile=%d:%d" % (FILES, FILES)]
    d.serve()
    c, boxes, points, refusal = api.Api(d.socket), [], [], None
    boxes.append(c.first())
    while refusal is None and len(boxes) < FILES:
        if len(boxes) in (2, 8):
            tap.wait_for(lambda: taken_twice(d), 3, 0.1)
            points.append((len(boxes), ceiling.taken(d.daemon.pid)))
        begun = time.monotonic()
        try:
            boxes.append(c.create()["id"])
        except api.Refused as e:
            refusal = e
    took = time.monotonic() - begun
    t.ok(refusal is not None and (refusal.status, refusal.code) == (503, "create_failed") and
         "no room for another sandbox" in str(refusal) and "LimitNOFILE" in str(refusal),
         "what finds no room is refused, and the answer says what to do", str(refusal))
    t.ok(took < 5, "at once", "%.1f s" % took)
    if os.geteuid() == 0:
        first = ceiling.ends(points[0], points[1], ceiling.limits(FILES))[0]
        t.ok(first.what == ("open files", "parent") and abs(first.at - len(boxes)) <= 1,
             "as many are there as were calculated", "%s at %d; %d made" % (first.what, first.at, len(boxes)))
    else:
        t.skip("as many are there as were calculated", "root alone can count the descriptors of a role")
    fetch = "curl -sS -m 20 -o /dev/null -w '%%{http_code}' https://%s/" % HOST
    t.eq([c.sh(b, fetch) for b in boxes], [(0, b"200")] * len(boxes), "each of them has its way out")
    gate = next(pid for pid, role in d.roles() if role == "gate")
    os.kill(gate, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: gate not in [p for p, _ in d.roles()] and
                      [c.sh(b, fetch) for b in boxes] == [(0, b"200")] * len(boxes), 20, 0.2), "and so it is when a gate was killed")
    c.delete(boxes.pop())
    t.ok(tap.wait_for(lambda: api.refused(c.create) is None, 10, 0.1), "one that is deleted makes room for another")
    c.close()
    t.eq(d.stop(), 0, "that daemon ends well")


def taken_twice(d):
    """Nothing more is being made: the same is taken now and a moment later."""
    before = ceiling.taken(d.daemon.pid)["open files of all", ""]
    time.sleep(0.1)
    return before == ceiling.taken(d.daemon.pid)["open files of all", ""]


def main(t):
    if not shutil.which("prlimit"):
        raise tap.Skip("prlimit is not installed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    s = scene.Scene(t)
    s.slow = s.add(HOST, answer)
    s.rule(allow=HOST + "/key/**", **{"with": {"bearer": "github"}})
    s.rule(allow=HOST)
    crowded, other = s.listener(), s.listener("neighbour")
    s.d.policy("neighbour", s.rules, s.env)
    s.d.limits["connections"] = 4096
    s.d.prefix = ["prlimit", "--nofile=%d:%d" % (FILES, FILES)]
    s.d.serve()
    back(t, s, crowded, "at first")
    roles = {p for p, _ in s.d.roles()}
    t.part(silent, t, s, crowded, other, roles)
    t.part(busy, t, s, crowded, other, roles, "/waits", "requests that last")
    t.part(busy, t, s, crowded, other, roles, "/key/waits", "credentialed ones")
    said = [x for x in s.d.diagnostics().splitlines() if "connections wait" in x]
    t.ok(len(said) == 1 and "gate" in said[0] and "Too many open files" in said[0],
         "the gate says why once, not each second", *said)
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.part(many, t)


tap.run(main, timeout=90)
