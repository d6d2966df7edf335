#!/usr/bin/python3 -B
"""A thousand busy connections of one gate, by way of it alone and of an injector, and where each request needs
a connection to the origin of its own: none of them is refused. Then one sandbox asks for far more connections
than it may be making at once: its neighbour is served, what waits too long is on record with its code, and
clients that leave take their places with them."""
import json
import os
import select
import socket
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "functional"), os.path.join(TOP, "bench")]
from harness import api, client, durward, nginx, tap  # noqa: E402
from rig import origin  # noqa: E402

HOST, SECRET_HOST, HANG = origin.HOST, "secret." + origin.HOST, "hang.example.com"
KEY_HANG = "key.hang.example.com"
BUSY = 1000
DIALS = 256  # of one sandbox at once (proxy/upstream/dial_client.h)
DIAL_SECONDS = 4  # of the hog and its neighbour
HOG = 2 * DIALS + 90  # two lots of them find a slot in time, the rest does not
SOON = 2.0  # s, of a neighbour's request


class Deaf:
    """A port whose queue is full: nobody is ever connected."""

    def __init__(self, t):
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(0)
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        self.fill = [socket.socket() for _ in range(8)]
        for s in self.fill:
            s.setblocking(False)
            s.connect_ex(self.sock.getsockname())
        t.cleanup(self.close)

    def close(self):
        for s in self.fill + [self.sock]:
            s.close()


class Bed:
    def __init__(self, t, name, **limits):
        self.t, self.d = t, durward.Durward(t, name)
        d, deaf = self.d, Deaf(t)
        self.origin = origin.Origin(t, d.ca, name + "-origin")
        d.secret("bench", origin.SECRET)
        self.port = self.origin.port
        for host in (HOST, SECRET_HOST):
            d.resolve["%s:%d" % (host, self.port)] = "127.0.0.1"
        d.resolve[HANG] = d.resolve[KEY_HANG] = deaf.address
        d.limits.update(limits, connections=2048)
        d.policy("crowd", [{"allow": "%s:%d" % (HOST, self.port)},
                           {"allow": "%s:%d" % (SECRET_HOST, self.port), "with": {"bearer": "bench"}},
                           {"allow": HANG}, {"allow": KEY_HANG, "with": {"bearer": "bench"}}])
        self.open, self.token = ("127.0.0.1:%d" % nginx.free_port() for _ in range(2))
        d.listen += [{"http": self.open, "policy": "crowd"}, {"http": self.token}]
        d.serve()
        self.api = api.Api(d.socket, timeout=60)
        self.load = t.path("load")
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", self.load, os.path.join(TOP, "bench", "rig", "load.c"),
                        "-lssl", "-lcrypto"], check=True)
        r = d.command("ca", "export", "-c", d.conf)
        self.ca = t.path(name + "-ca.pem")
        with open(self.ca, "w") as f:
            f.write(r.stdout)

    def busy(self, host, path, replies):
        """So many replies, however long a busy machine takes for them."""
        r = subprocess.run([self.load, "--to", self.open, "--connect", "--host", host, "--port", str(self.port),
                            "--path", path, "--connections", str(BUSY), "--limit", str(replies), "--seconds", "90",
                            "--warmup", "0"], stdout=subprocess.PIPE, timeout=120)
        return json.loads(r.stdout)

    def gate(self, name):
        """A paired sandbox of its own at the listener of tokens."""
        told = self.api.ask("POST", "/v1/identities", {"policy": "crowd"})
        return told["id"], client.Gate(self.token, self.ca, token="sandbox:" + told["token"], timeout=20)

    def queued(self):
        """Dials that waited, of all roles."""
        text = self.api.raw("GET", "/metrics")[2].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith("durward_dials_queued_total{"))


def crowd(t, bed, what, host, path, replies):
    before = len(bed.d.kinds("completed"))
    got = bed.busy(host, path, replies)
    t.eq((got["errors"], got.get("why", "")), (0, ""), "%s: no request of %d connections is lost" % (what, BUSY))
    t.ok(got["replies"] >= replies, "%s: %d requests are answered" % (what, replies), str(got))
    done = tap.wait_for(lambda: len(bed.d.kinds("completed")) - before >= got["replies"], 10)
    t.ok(done, "%s: each is on record" % what)
    bad = [r["code"] for r in bed.d.kinds("aborted") if r.get("code") in ("overload", "share_used")]
    t.eq(bad, [], "%s: nothing was too much" % what)
    t.diag("%s: %d replies, p50 %.0f us, p99 %.0f us" % (what, got["replies"], got["p50"], got["p99"]))


def ask(gate, host, port):
    """-> a connection with a request on it"""
    st = gate.tls(host, port=port) if port != 443 else gate.tls(host)
    return st.send("GET /small HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, port))


def status(gate, bed, host):
    begun = time.monotonic()
    with ask(gate, host, bed.port) as st:
        return st.reply().status, time.monotonic() - begun


def neighbours(t, bed, gate, host, what):
    for _ in range(10):
        got, took = status(gate, bed, host)
        if got != 200 or took > SOON:
            break
    t.ok(got == 200 and took < SOON, "%s: its neighbour is served, and soon" % what, "%r after %.1f s" % (got, took))


def crowding(t, bed, what, near, hang):
    """By way of the gate that both share, or of it and the injector."""
    (hog, hogs), (_, other) = bed.gate("hog"), bed.gate("neighbour")
    before = bed.queued()
    held = [hogs.tls(hang) for _ in range(HOG)]
    begun = time.monotonic()
    for st in held:  # all at once
        st.send("GET /small HTTP/1.1\r\nHost: %s\r\n\r\n" % hang)
    neighbours(t, bed, other, near, what)
    said = {}
    while held and time.monotonic() - begun < 4 * DIAL_SECONDS + 20:
        ready = select.select([st.sock for st in held], [], [], 1)[0]
        for st in [st for st in held if st.sock in ready]:
            r = st.reply()
            said[(r.status, r.code)] = said.get((r.status, r.code), 0) + 1
            held.remove(st)
            st.close()
    t.diag("%s: %s" % (what, said))
    t.eq(set(said), {(504, "timeout"), (503, "share_used")}, "%s: those that wait in vain are told why" % what)
    t.ok(said.get((504, "timeout"), 0) >= DIALS, "%s: as many were tried as may be at once" % what)
    t.eq(sum(said.values()), HOG, "%s: each has one answer" % what)

    def recorded():
        ends = [r.get("code") for r in bed.d.records(sandbox=hog) if r["kind"] == "aborted"]
        return all(ends.count(code) == n for (_, code), n in said.items())
    t.ok(tap.wait_for(recorded, 10), "%s: each is on record with that code" % what)
    t.ok(tap.wait_for(lambda: bed.queued() - before >= HOG - DIALS, 5), "%s: those beyond the slots have waited" % what)


def leaving(t, bed):
    """What a client gave up holds nobody up: its own next request has the slot at once."""
    _, hogs = bed.gate("leaver")
    held = [ask(hogs, HANG, 443) for _ in range(DIALS + 64)]
    for st in held:
        st.close()
    begun = time.monotonic()
    got, _ = status(hogs, bed, HOST)
    took = time.monotonic() - begun
    t.ok(got == 200 and took < DIAL_SECONDS / 2, "who left has left the queue", "%r after %.1f s" % (got, took))


def main(t):
    bed = Bed(t, "busy")
    t.part(crowd, t, bed, "gate", HOST, "/small", 8 * BUSY)
    t.part(crowd, t, bed, "injector", SECRET_HOST, "/small", 8 * BUSY)
    t.part(crowd, t, bed, "a connection each", HOST, "/once", BUSY + 600)
    t.ok(tap.wait_for(lambda: bed.queued() > 0, 5), "dials waited for their turn")
    bed.api.close()
    t.eq(bed.d.stop(), 0, "the daemon ends well")
    bed = Bed(t, "hog", dial_seconds=DIAL_SECONDS)
    t.part(crowding, t, bed, "gate", HOST, HANG)
    t.part(crowding, t, bed, "injector", SECRET_HOST, KEY_HANG)
    t.part(leaving, t, bed)
    bed.api.close()
    t.eq(bed.d.stop(), 0, "and the second one")


tap.run(main, timeout=300)
