#!/usr/bin/python3 -B
"""Published ports: reached at addresses of this host, by whom they should be, for as long as the sandbox is
there; a connection resumes one that sleeps; the controller's and the daemon's restart."""
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

BASE = "/v1/sandboxes"
# inside: says how much it got and its sum, then as much of its own
SERVER = r"""
import hashlib, socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        n = int(self.rfile.readline())
        data = self.rfile.read(n)
        self.wfile.write(hashlib.sha256(data).hexdigest().encode() + b"\n" + data[::-1])
class S(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
S(("127.0.0.1", 8000), H).serve_forever()
"""


def start(c, box):
    c.sh(box, "cat > server.py <<'E'\n%s\nE\n(python3 server.py >/dev/null 2>&1 &)" % SERVER)


def talk(address, size=1000):
    """-> True when what came back is right; None when nothing answers."""
    host, _, port = address.rpartition(":")
    data = os.urandom(size)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 5) as s:
            s.settimeout(20)
            f = s.makefile("rwb")
            f.write(b"%d\n" % size + data)
            f.flush()
            return f.readline().strip().decode() == hashlib.sha256(data).hexdigest() and \
                f.read(size) == data[::-1]
    except OSError:
        return None


def up(address):
    return tap.wait_for(lambda: talk(address), 10, 0.1)


def published(t, d, c):
    first, second = free_port(), free_port()
    r = d.command("sandbox", "create", "--policy", "coder", "--publish", "%d:8000" % first, "--publish",
                  "8000", "--publish", "[::1]:%d:8000" % second, "--socket", d.socket)
    box = r.stdout.strip()
    t.ok(box.startswith("sb-"), "create with three ports", r.stderr)
    at = [x["address"] for x in c.show(box)["published"]]
    t.ok(len(at) == 3 and at[0] == "127.0.0.1:%d" % first and at[1].startswith("127.0.0.1:") and
         at[2] == "[::1]:%d" % second and not at[1].endswith(":0"), "they are shown, the chosen one too", at)
    t.has(d.command("sandbox", "show", box, "--socket", d.socket).stdout, "%s to 8000" % at[0],
          "by the command line")
    t.ok(not talk(at[0]), "nothing listens inside yet: the connection ends")
    start(c, box)
    t.ok(all(up(x) for x in at), "each is answered from inside")
    t.ok(talk(at[0], 8 << 20), "8 MiB both ways")
    t.eq(api.refused(c.create, policy="coder", publish=[{"port": 80, "address": "127.0.0.1:%d" % first}]),
         (409, "conflict"), "a port that is taken: no sandbox")
    t.ok(tap.wait_for(lambda: len(c.list()["sandboxes"]) == 1, 10), "and none is left of it")
    bad = [[{}], [{"port": 0}], [{"port": 1, "address": "localhost:1"}], [{"port": 1, "address": "1.2.3:1"}],
           [{"port": 1, "address": "127.0.0.1"}], [{"port": 1, "x": 1}], {"port": 1}, [{"port": 1}] * 17]
    t.eq({api.refused(c.create, policy="coder", publish=x) for x in bad}, {(400, "bad_request")},
         "what is none is refused")
    return box, at


def lasts(t, d, c, box, at):
    c.ask("POST", BASE + "/%s/stop" % box)
    with socket.create_connection(("127.0.0.1", int(at[0].rpartition(":")[2])), 5):
        t.ok(tap.wait_for(lambda: c.show(box)["state"] == "running", 10), "a connection resumes a stopped one")
    start(c, box)
    t.ok(up(at[0]), "which answers there again")
    pid = [x for x, role in d.roles() if role == "controller"][0]
    os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: talk(at[1]), 15, 0.2), "a new controller has the same addresses")
    d.stop()
    d.serve(save=False)
    t.ok(tap.wait_for(lambda: [x["address"] for x in c.show(box)["published"]] == at, 10),
         "and so has a new daemon")


def ends(t, d, c, box, at):
    start(c, box)
    t.ok(up(at[0]), "it answers")
    with socket.create_connection(("127.0.0.1", int(at[0].rpartition(":")[2])), 5) as s:
        s.settimeout(10)
        c.delete(box)
        try:
            got = s.recv(1)
        except OSError:
            got = b""
        t.eq(got, b"", "its end ends connections")
    t.eq([talk(x) for x in at], [None] * 3, "and nothing listens any more")
    t.ok(d.wait_records(1, "lifecycle", event="port_published", target=box), "it is on record")
    again = c.create(policy="coder", publish=[{"port": 8000, "address": at[0]}])["id"]
    t.eq(c.show(again)["published"], [{"address": at[0], "port": 8000}], "the address is free again")
    c.delete(again)


def run(t, d):
    port = free_port()
    p = t.popen(d.prefix + [durward.program(), "run", "-c", d.conf, "--no-bind", "--publish", "%d:8000" % port,
                            "--", "python3", "-c", SERVER], env=d.env, cwd=d.work,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    at = "127.0.0.1:%d" % port
    t.ok(up(at), "durward run --publish: it answers")
    t.ok(talk(at, 8 << 20), "8 MiB both ways")
    r = d.command("run", "-c", d.conf, "--no-bind", "--publish", "%d:1" % port, "--", "true")
    t.ok(r.returncode == 125 and "in use" in r.stderr, "a port that is taken: 125 before anything starts", r.stderr)
    r = [d.command("run", "-c", d.conf, "--publish", x, "--", "true").returncode for x in
         ("0", "x:1", "1:2:3:4", "localhost:1:2", ":1", "70000:1")]
    t.eq(r, [125] * 6, "what is no port is refused")
    t.ok(d.wait_records(1, "lifecycle", event="port_published"), "it is on record")
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        s.settimeout(10)
        p.terminate()
        p.wait(10)
        t.eq(talk(at), None, "its end ends it")
    t.has(p.stderr.read().decode(), "port 8000 is published at " + at, "it says where")


def state(c, box):
    """None: it is gone, as one that cannot be paused is when it has idled."""
    try:
        return c.show(box)["state"]
    except api.Refused:
        return None


def used(t, c):
    """What passes through a connection is use, however long ago the connection was made."""
    box = c.create(policy="coder", idle_ttl=3, publish=[{"port": 8000}])["id"]
    start(c, box)
    at = c.show(box)["published"][0]["address"]
    t.ok(up(at), "a port of a sandbox that ends when it idles for three seconds")
    host, _, port = at.rpartition(":")
    with socket.create_connection((host, int(port)), 5) as s:
        s.settimeout(20)
        s.sendall(b"1000\n")
        for _ in range(14):  # a byte every half second
            time.sleep(0.5)
            s.sendall(b"x")
        t.eq(c.show(box)["state"], "running", "it runs for as long as bytes pass")
        t.ok(tap.wait_for(lambda: state(c, box) != "running", 15, 0.2), "and idles when none do")
    if state(c, box):
        c.delete(box)


def main(t):
    s = scene.Scene(t)
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="coder"))
    t.part(run, t, s.d)
    t.part(used, t, c)
    box, at = published(t, s.d, c)
    t.part(lasts, t, s.d, c, box, at)
    t.part(ends, t, s.d, c, box, at)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=90)
