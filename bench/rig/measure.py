"""The measures: what is done to a peer, and what of it counts."""
import contextlib
import glob
import json
import os
import socket
import ssl
import subprocess
import time

from . import origin as rig_origin

HOST = rig_origin.HOST
NAMES = 300  # new host names a round
IDLE = 1000
FOREIGN = 0.1  # of a processor, used by programs that are not ours: the measure is made again

# (figure, what it says, unit, bars of the gate's and the injector's path, bar is absolute)
FIGURES = (
    ("cpu_request", "CPU a request, 64 connections", "us", 1.15, 1.5, False),
    ("rate", "requests a second, 64 connections", "/s", None, None, False),
    ("cpu_1", "CPU a request, 1 connection", "us", 1.2, 2.2, False),
    ("p50_1", "latency p50, 1 connection", "us", 1.1, 1.6, False),
    ("p99_1", "latency p99, 1 connection", "us", 1.2, 1.8, False),
    ("p99_64", "latency p99, 64 connections", "us", 1.3, 1.6, False),
    ("cpu_connection", "CPU a new connection", "us", 1.0, 1.1, False),
    ("cpu_name", "CPU a new host name", "us", 2.6, 2.7, False),
    ("cpu_10mb", "CPU per 10 MB relayed", "us", 1.15, 1.5, False),
    ("idle_mb", "memory per 1,000 idle connections", "MB", 16.0, 16.3, True),
    ("event_lag", "event-stream lag p50", "us", 1.0, 1.3, False),
)


def cpu_us(pids):
    """What these processes ran, all threads, from the scheduler's own count."""
    total = 0
    for pid in pids:
        for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
            with contextlib.suppress(OSError):
                with open(path) as f:
                    total += int(f.read().split()[0])
    return total / 1000


def machine_us():
    """What everything on this machine ran: user, nice, system, interrupts, and what the host took."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return (t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) * 1e6 / os.sysconf("SC_CLK_TCK")


def pss_kb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += sum(int(x.split()[1]) for x in f if x.startswith("Pss:"))
    return total


class TooSlow(RuntimeError):
    """Not one reply came in the time that was measured."""


@contextlib.contextmanager
def on_cpus(cpus):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Rig:
    """Where the load generator is, and which processors it and the peer have."""

    def __init__(self, load, ca, peer_cpus, rig_cpus, seconds):
        self.load, self.ca, self.seconds = load, ca, seconds
        self.peer_cpus, self.rig_cpus = peer_cpus, rig_cpus
        self.next_name = 0

    def command(self, peer, what, *options):
        port = peer.at(what) if peer.static else peer.port
        how = [] if peer.static else ["--connect"]
        return [self.load, "--to", "127.0.0.1:%d" % port, "--host", HOST, "--port", str(peer.target(what))] + how + \
            [str(o) for o in options]

    def run(self, peer, what, *options):
        """-> (the generator's report, CPU us of the peer, share of a processor that others used)"""
        mine, spent, machine, began = os.times(), cpu_us(peer.pids()), machine_us(), time.monotonic()
        others = cpu_us(peer.origin.pids())
        with on_cpus(self.rig_cpus):
            r = subprocess.run(self.command(peer, what, *options), stdout=subprocess.PIPE, timeout=120)
        report = json.loads(r.stdout)
        if not report["errors"] and report.get("replies") == 0 and "--limit" not in options:
            raise TooSlow("%s: no reply in time" % peer.name)
        if report["errors"]:
            raise RuntimeError("%s: %d errors, first: %s" % (peer.name, report["errors"], report["why"]))
        spent = cpu_us(peer.pids()) - spent
        now = os.times()
        ours = spent + cpu_us(peer.origin.pids()) - others + 1e6 * (
            sum(now[:4]) - sum(mine[:4]))
        wall = (time.monotonic() - began) * 1e6
        return report, spent, max(0.0, (machine_us() - machine - ours) / wall)


def fetch(peer, ca, path, what="origin"):
    """One verified request -> (status, body), or None where the peer refuses before a reply."""
    port = peer.at(what) if peer.static else peer.port
    tls = ssl.create_default_context(cafile=ca.pem)
    with socket.create_connection(("127.0.0.1", port), 10) as raw:
        authority = "%s:%d" % (HOST, peer.target(what))
        if not peer.static:
            raw.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority, authority)).encode())
            if b" 200" not in raw.recv(4096):
                return None
        try:
            with tls.wrap_socket(raw, server_hostname=HOST) as s:
                s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, authority)).encode())
                got = b""
                while True:
                    block = s.recv(65536)
                    if not block:
                        break
                    got += block
        except (ssl.SSLError, ConnectionError):
            return None
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode("latin-1")


def verify(peer, ca):
    """Refuses to time what does not intercept, inject and check its origins. -> what was seen, in words."""
    seen = fetch(peer, ca, "/seen")
    if seen != (200, peer.injects):
        raise RuntimeError("%s: the origin saw %r, not %r" % (peer.name, seen, peer.injects))
    if not peer.checks:
        return "leaf of our authority; no header, no check of the origin: a relay"
    bad = fetch(peer, ca, "/", "bad")
    if bad is not None and bad[0] < 500:
        raise RuntimeError("%s: an origin of a strange authority was let through: %r" % (peer.name, bad))
    return "leaf of our authority, header added, strange origin refused"


def keepalive(rig, peer):
    one, spent, f1 = rig.run(peer, "origin", "--path", "/small", "--seconds", rig.seconds, "--warmup", 0)
    yield {"cpu_1": spent / one["replies"], "p50_1": one["p50"], "p99_1": one["p99"]}, f1
    many, spent, f64 = rig.run(peer, "origin", "--path", "/small", "--connections", 64, "--seconds", rig.seconds,
                               "--warmup", 0)
    yield {"cpu_request": spent / many["replies"], "p99_64": many["p99"],
           "rate": many["replies"] / many["seconds"]}, f64


def connections(rig, peer):
    r, spent, foreign = rig.run(peer, "origin", "--path", "/small", "--connections", 16, "--new",
                                "--seconds", rig.seconds)
    yield {"cpu_connection": spent / r["replies"]}, foreign


def new_names(rig, peer):
    if peer.names:
        first, rig.next_name = rig.next_name, rig.next_name + NAMES + 16
        r, spent, foreign = rig.run(peer, "origin", "--path", "/small", "--connections", 4, "--new", "--names", first,
                                    "--limit", NAMES, "--seconds", 60)
        yield {"cpu_name": spent / r["ended"]}, foreign


def bulk(rig, peer):
    r, spent, foreign = rig.run(peer, "origin", "--path", "/big", "--seconds", rig.seconds)
    yield {"cpu_10mb": spent * 1e7 / r["bytes"]}, foreign


def events(rig, peer):
    if peer.events:
        r, _, foreign = rig.run(peer, "events", "--path", "/events", "--events", "--limit", 60, "--seconds", 30)
        yield {"event_lag": r["p50"]}, foreign


def idle(rig, peer):
    """In a freshly started peer: growth of its memory by 1,000 connections that had one reply each."""
    before = pss_kb(peer.pids())
    p = subprocess.Popen(rig.command(peer, "origin", "--path", "/small", "--connections", IDLE, "--idle",
                                     "--seconds", 60), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    report = json.loads(p.stdout.readline())
    if report["resting"] != IDLE:
        p.communicate()
        raise RuntimeError("%s: only %d of %d idle connections: %s" % (peer.name, report["resting"], IDLE,
                                                                      report["why"]))
    time.sleep(1)  # what is measured is rest: buffers given back, idle upstreams pooled
    after = pss_kb(peer.pids())
    p.communicate()
    yield {"idle_mb": (after - before) / 1024}, 0


TIMED = (keepalive, connections, new_names, bulk, events)
