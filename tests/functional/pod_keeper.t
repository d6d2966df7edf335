#!/usr/bin/python3 -B
"""The keeper of a sandbox that is a pod, at an API server that answers when and how a test says, which a real one does not:
a stand-in takes its place, and this test the controller's. With a real one: tests/functional/kubernetes_backend.t."""
import array
import base64
import fcntl
import hashlib
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, tap, wire  # noqa: E402

LIBEXEC = os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec/durward")
PODS = "/api/v1/namespaces/agents/pods"
SOON = 10
PIPES = 2  # enum command_stdio
STDOUT, STATUS = b"\1", b"\3"
ENDED = {"metadata": {}, "status": "Success"}
UNREACHED = {"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500, "message": "the kubelet is not there"}


def frame(channel, data=b""):
    data = channel + data
    return b"\x82" + (bytes([len(data)]) if len(data) < 126 else struct.pack(">BH", 126, len(data))) + data


class Server:
    """An API server with one pod, which runs. log: what became of each signal, as (what, signal)."""

    def __init__(self, t, d):
        self.pod, self.log, self.changed = None, [], threading.Condition()
        self.open = {x: threading.Event() for x in ("exec", "end")}  # until then a command waits: for its connection, to end
        self.open["exec"].set()
        self.never = threading.Event()
        self.answers = []  # to the next signals: a status of HTTP, or what it ended with
        self.hold = 0.3  # seconds that one takes
        self.first = "apart"  # how a command's first words come after the answer's head: apart, at once, or in one piece with it
        self.origin = origin.Origin(t, d.ca, "localhost", self.answer)
        t.cleanup(lambda: [x.set() for x in self.open.values()])

    def answer(self, req, conn):
        conn.close_after = True
        query = urllib.parse.parse_qs(req.query)
        if req.path.endswith("/exec"):
            self.exec(req, conn, query["command"])
        elif "watch" in query:
            conn.head(200)
            conn.read_until(b"\n")  # until whoever watches leaves
        elif req.path == PODS and req.method == "GET":
            conn.reply(req, 200, {"metadata": {}, "items": []})
        elif req.path == PODS:
            self.pod = dict(req.json(), status={"phase": "Running", "containerStatuses": [{"name": "sandbox", "state": {"running": {}}}]})
            self.pod["metadata"].update(uid="u-1", resourceVersion="1")
            conn.reply(req, 201, self.pod)
        elif self.pod is None:
            conn.reply(req, 404, {"message": "not found"})
        else:
            conn.reply(req, 200, self.pod)
            self.pod = self.pod if req.method == "GET" else None

    def exec(self, req, conn, words):
        if words[2] == "signal":
            self.signal(req, conn, int(words[4]))
            return
        self.open["exec"].wait(60)
        self.upgrade(req, conn, self.first, frame(STDOUT), frame(STDOUT, b"P42;"), frame(STDOUT, b"hello\n"))
        self.open["end"].wait(60)
        conn.send(frame(STATUS, json.dumps(ENDED).encode()))

    def signal(self, req, conn, sig):
        self.note("asked", sig)
        how = self.answers.pop(0) if self.answers else ENDED
        if isinstance(how, int):
            conn.reply(req, how, {"message": "not now"})
            return
        self.upgrade(req, conn, "apart", frame(STDOUT))
        conn.sock.settimeout(self.hold)
        try:
            stays = conn.sock.recv(1) != b""
        except TimeoutError:
            stays = True
        except OSError:
            stays = False
        self.note(("sent" if how is ENDED else "refused") if stays else "left", sig)
        if stays:
            conn.send(frame(STATUS, json.dumps(how).encode()))

    def upgrade(self, req, conn, how, *first):
        key = req.get("sec-websocket-key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        head = ("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
                "Sec-WebSocket-Accept: %s\r\n\r\n" % base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()).encode()
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, how == "at once")
        for data in [head + b"".join(first)] if how == "in one piece" else (head,) + first:
            conn.send(data)
            if how == "apart":
                self.never.wait(0.02)
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    def note(self, what, sig):
        with self.changed:
            self.log.append((what, sig))
            self.changed.notify_all()

    def await_note(self, what, sig, seconds=SOON):
        with self.changed:
            return self.changed.wait_for(lambda: (what, sig) in self.log, seconds)


class Keeper:
    """As the builder starts it; this is the other end of the socket that durward-init has in other sandboxes."""

    def __init__(self, t, d, s):
        plan = {"sandbox": "sb-1", "policy": "coder", "namespace": "agents", "image": "a", "init": "b", "api": "localhost:%d" % s.origin.port,
                "ca": d.ca.pem, "token": t.write("token/token", "t0ken"), "daemon": "d1", "memory": 0, "cpu": 0, "disk": 0, "writable": False}
        self.socket, init = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with open(t.write("plan", json.dumps(plan))) as f, open(t.path("said"), "wb") as said, open(t.path("keeper.log"), "ab") as log:
            locks = os.open(t.mkdir("locks"), os.O_RDONLY | os.O_DIRECTORY)
            own = [fcntl.fcntl(x, fcntl.F_DUPFD_CLOEXEC, 40) for x in (init.fileno(), f.fileno(), said.fileno(), said.fileno(), channel.fileno(), locks)]
            actions = [(os.POSIX_SPAWN_DUP2, log.fileno(), 2)] + [(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(own)]
            self.pid = os.posix_spawn(os.path.join(LIBEXEC, "durward-kubernetes"), ["durward: cluster", build(), "sandbox"], {}, file_actions=actions,
                                      setpgroup=0)
        for x in own + [locks]:
            os.close(x)
        init.close()
        channel.close()
        self.number, self.left, self.exits = 0, b"", {}
        t.cleanup(self.kill)
        self.socket.settimeout(SOON)

    def kill(self):
        self.socket.close()
        self.channel.close()
        if self.pid and not tap.wait_for(self.ended, SOON, 0.05):
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def ended(self):
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.pid = 0
        return not self.pid

    def receive(self):
        """-> (type, fields, descriptors)"""
        data, control, _, _ = self.socket.recvmsg(1 << 17, socket.CMSG_SPACE(16 * 4))
        fds = array.array("i")
        for _, _, x in control:
            fds.frombytes(x[:len(x) - len(x) % fds.itemsize])
        return wire.messages(data)[0] + (list(fds),)

    def start(self):
        """A command. Its number, once it has started: what it says is in a pipe."""
        self.begin()
        kind, fields, fds = self.receive()
        if kind != wire.INIT_STARTED:
            raise RuntimeError("%s: %r" % (wire.NAMES.get(kind), fields.data))
        self.out = fds[-1]
        return self.number

    def begin(self):
        self.number += 1
        self.socket.send(wire.message(wire.INIT_EXEC, wire.u32(self.number), wire.u32(1), wire.text("x"), wire.u32(0), wire.text("/"), wire.u8(PIPES),
                                      wire.u32(0), wire.u32(0), wire.u8(0)))

    def signal(self, sig, times=1):
        m = wire.message(wire.INIT_SIGNAL, wire.u32(self.number), wire.u32(sig))
        for _ in range(times):
            self.socket.send(m)

    def finish(self, s):
        """The command ends. -> its status"""
        s.open["end"].set()
        kind, fields, _ = self.receive()
        s.open["end"].clear()
        os.close(self.out)
        return (fields.u32(), fields.u32())[1] if kind == wire.INIT_EXIT else wire.NAMES.get(kind)


def build():
    """What its parent tells a program that is ours, of lib/include.am."""
    with open(os.path.join(durward.TOP, "lib/wire.h"), "rb") as f:
        text = hashlib.sha256(f.read()).hexdigest()[:12]
    with open(os.path.join(durward.TOP, "configure.ac")) as f:
        return "%s-%s" % (re.search(r"AC_INIT\(\[\w+\],\s*\[([^\]]+)\]", f.read())[1], text)


def waits(t, s, k):
    """Until the API server says that a signal was sent nobody hangs up, and no other is sent."""
    k.start()
    k.signal(signal.SIGTERM)
    t.ok(s.await_note("asked", signal.SIGTERM), "a signal is asked for", str(s.log))
    k.signal(signal.SIGHUP)
    t.ok(s.await_note("sent", signal.SIGHUP), "and the next one", str(s.log))
    t.eq(s.log, [(x, y) for y in (signal.SIGTERM, signal.SIGHUP) for x in ("asked", "sent")], "each is waited for until it was sent, and comes behind the one before")
    t.eq(k.finish(s), 0, "the command ends")


def many(t, s, k):
    """However many are wanted before the command has started, none is lost."""
    s.log.clear()
    s.open["exec"].clear()
    k.begin()
    k.signal(signal.SIGUSR1, 10000)
    k.signal(signal.SIGTERM)
    s.open["exec"].set()
    kind, _, fds = k.receive()
    k.out = fds[-1]
    t.ok(s.await_note("sent", signal.SIGTERM), "a signal behind 10,000 others arrives", str(s.log))
    t.eq(s.log[:2], [("asked", signal.SIGUSR1), ("sent", signal.SIGUSR1)], "and these before it")
    t.ok(len(s.log) <= 8, "as few", len(s.log))
    t.eq(k.finish(s), 0, "the command ends")


def again(t, s, k):
    """An API server that is not there for a moment delays a signal."""
    s.log.clear()
    s.answers[:] = [503, UNREACHED]
    k.start()
    k.signal(signal.SIGTERM)
    t.ok(s.await_note("sent", signal.SIGTERM), "a signal that is refused, and then comes to no kubelet, is sent when it can be", str(s.log))
    t.eq([x for x, _ in s.log], ["asked", "asked", "refused", "asked", "sent"], "once")
    t.eq(k.finish(s), 0, "the command ends")


def words(t, s, k, how):
    """Whatever way the first words come, they are heard: by poll as records that are there already, or behind the answer's head."""
    s.first = how
    k.begin()
    there = select.select([k.socket], [], [], SOON)[0]
    if not t.ok(there, "a command whose first words come %s has started" % how):
        k.socket.send(wire.message(wire.INIT_RESET))
        k.receive()
        return
    k.out = k.receive()[2][-1]
    t.eq(os.read(k.out, 100) if select.select([k.out], [], [], SOON)[0] else None, b"hello\n", "and what it said is heard")
    t.eq(k.finish(s), 0, "the command ends")
    s.first = "apart"


def test(t):
    d = durward.Durward(t, "pod-keeper")
    s = Server(t, d)
    k = Keeper(t, d, s)
    t.eq(wire.NAMES[k.receive()[0]], "INIT_READY", "the pod runs")
    t.part(waits, t, s, k)
    t.part(many, t, s, k)
    t.part(again, t, s, k)
    t.part(words, t, s, k, "at once")
    t.part(words, t, s, k, "in one piece")
    k.channel.close()
    t.ok(tap.wait_for(k.ended, SOON, 0.02) and s.pod is None, "with its builder the keeper ends, and its pod")


tap.run(test, timeout=60)
