#!/usr/bin/python3 -B
"""Commands that outlive their client: what they wrote is told to whoever attaches, who goes on where the other left;
one client at a time; bounds; by frames, by lines, by the command line and on a terminal."""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402

STARTED, OUT, ERR, EXIT, DETACHED = range(5)
EACH, TAIL = 16, 256 * 1024  # as controller/api/command_sessions.h has them


def start(c, sid, command, **more):
    return c.exec(sid, command, keep=True, **more)["id"]


def framed(c, path, body=None):
    sock, held = c.upgrade(path, "durward-exec", body)
    f = api.Frames(sock)
    f.held = held
    return f


def begin(c, sid, command, **more):
    """With a client that is there from the start."""
    return framed(c, "/v1/sandboxes/%s/exec" % sid, dict({"command": command, "keep": True}, **more))


def attach(c, sid, one):
    return framed(c, "/v1/sandboxes/%s/exec/%s/attach" % (sid, one))


def execs(c, sid):
    return {x["id"]: x for x in c.ask("GET", "/v1/sandboxes/%s/exec" % sid)["execs"]}


def until(f, text, seconds=20):
    """What was written up to this."""
    f.sock.settimeout(seconds)
    got = b""
    while text not in got:
        kind, data = f.receive()
        if kind in (EXIT, DETACHED):
            raise EOFError("it ended: %r behind %r" % (data, got))
        got += data if kind in (OUT, ERR) else b""
    return got


def lines(c, sid, one):
    status, _, body = c.raw("POST", "/v1/sandboxes/%s/exec/%s/attach" % (sid, one))
    return status, [json.loads(x) for x in body.splitlines()]


def alone(t, c, sid):
    """Nobody is attached while it runs."""
    one = start(c, sid, "echo before; echo wrong >&2; until test -e /tmp/go; do sleep 0.1; done; echo after; exit 7", split=True)
    t.ok(tap.wait_for(lambda: one in execs(c, sid), 10, 0.1), "it runs, and nobody waits for it")
    x = execs(c, sid)[one]
    t.ok(x["kept"] and not x["attached"] and "exit_code" not in x, "it is listed as kept", str(x))
    f = attach(c, sid, one)
    kind, data = f.receive()
    t.eq((kind, json.loads(data)), (STARTED, {"type": "started", "id": one, "lost": False}), "who attaches is told which it is")
    got = until(f, b"wrong\n")
    t.ok(b"before\n" in got, "what it wrote before is told", got)
    t.ok(execs(c, sid)[one]["attached"], "somebody is attached")
    f.close()
    t.ok(tap.wait_for(lambda: not execs(c, sid)[one]["attached"], 10, 0.1), "who closes has left")
    c.sh(sid, "touch /tmp/go")
    t.ok(tap.wait_for(lambda: execs(c, sid)[one].get("exit_code") == 7, 10, 0.1), "the command went on to its end, which stays",
         str(execs(c, sid)))
    out, err, end = attach(c, sid, one).finish()
    t.eq((out, err, end["exit_code"]), (b"before\nafter\n", b"wrong\n", 7), "and all is told, output and errors apart")
    t.ok(one not in execs(c, sid) and api.refused(lambda: c.ask("POST", "/v1/sandboxes/%s/exec/%s/attach" % (sid, one))) == (404, "not_found"),
         "once")


def by_lines(t, c, sid):
    one = start(c, sid, "echo said; exit 3")
    tap.wait_for(lambda: "exit_code" in execs(c, sid).get(one, {}), 10, 0.1)
    status, got = lines(c, sid, one)
    t.eq((status, [x["type"] for x in got], got[-1]["exit_code"]), (200, ["started", "stdout", "exit"], 3), "as lines")
    one = start(c, sid, "sleep 300")
    tap.wait_for(lambda: one in execs(c, sid), 10, 0.1)
    c.ask("DELETE", "/v1/sandboxes/%s/exec/%s" % (sid, one))
    t.ok(tap.wait_for(lambda: one not in execs(c, sid), 10, 0.1), "what is cancelled is forgotten")
    one = start(c, sid, "true")
    tap.wait_for(lambda: "exit_code" in execs(c, sid).get(one, {}), 10, 0.1)
    c.ask("DELETE", "/v1/sandboxes/%s/exec/%s" % (sid, one))
    t.ok(one not in execs(c, sid), "so is one that has ended")
    t.eq(api.refused(c.exec, sid, "true", keep=True, stream=True), (400, "bad_request"), "keep goes without stream")
    held = framed(c, "/v1/sandboxes/%s/exec" % sid, {"command": "cat", "id": "mine"})
    held.receive()
    t.eq(api.refused(c.ask, "POST", "/v1/sandboxes/%s/exec/mine/attach" % sid), (409, "conflict"), "a command without keep is its client's")
    held.close()
    t.ok(tap.wait_for(lambda: "mine" not in execs(c, sid), 10, 0.1), "and ends with it")


def places(t, c, sid):
    """One takes the other's place, and has its input."""
    first = begin(c, sid, "while read x; do echo got $x; done; echo over", id="talk")
    first.send(0, b"one\n")
    until(first, b"got one\n")
    second = attach(c, sid, "talk")
    until(second, b"got one\n")
    first.sock.settimeout(20)
    t.eq(first.receive(), (DETACHED, b'{"type":"detached"}'), "who was attached is told that another is")
    t.eq(first.sock.recv(10), b"", "and its connection ends")
    second.send(0, b"two\n")
    until(second, b"got two\n")
    second.close()
    third = attach(c, sid, "talk")
    t.eq(until(third, b"got two\n"), b"got one\ngot two\n", "all of it is told again")
    third.send(0)
    out, _, end = third.finish()
    t.ok(out == b"over\n" and end["exit_code"] == 0, "its input ends when somebody says so", out)


def bounded(t, c, sid):
    one = start(c, sid, "seq -f 'line %.0f' 200000; echo last")
    t.ok(tap.wait_for(lambda: "exit_code" in execs(c, sid).get(one, {}), 30, 0.1), "what nobody reads does not hold it up")
    f = attach(c, sid, one)
    _, data = f.receive()
    out, _, _ = f.finish()
    t.ok(json.loads(data)["lost"] and TAIL // 2 < len(out) <= TAIL and out.endswith(b"line 200000\nlast\n"),
         "the latest of it is kept, and that some is lost is told", len(out), data)
    running = [start(c, sid, "sleep 300") for _ in range(EACH)]
    t.eq(api.refused(start, c, sid, "sleep 300"), (409, "not_running"), "%d run, and no more" % EACH)
    c.ask("DELETE", "/v1/sandboxes/%s/exec/%s" % (sid, running[0]))
    tap.wait_for(lambda: running[0] not in execs(c, sid), 10, 0.1)
    brief = start(c, sid, "true")
    tap.wait_for(lambda: "exit_code" in execs(c, sid).get(brief, {}), 10, 0.1)
    more = start(c, sid, "sleep 300")
    now = execs(c, sid)
    t.ok(more in now and brief not in now, "one that has ended makes room")
    for x in running[1:] + [more]:
        c.ask("DELETE", "/v1/sandboxes/%s/exec/%s" % (sid, x))
    t.ok(tap.wait_for(lambda: not execs(c, sid), 10, 0.1), "all are gone")


def shared(t, c):
    """Five sandboxes that keep all they can leave room for another."""
    boxes = [c.create(policy="coder", idle_ttl=0)["id"] for _ in range(6)]
    fill = "head -c 300000 /dev/zero | tr '\\0' x; echo last"
    for sid in boxes[:5]:
        ids = [start(c, sid, fill) for _ in range(EACH)]
        tap.wait_for(lambda: all("exit_code" in execs(c, sid).get(x, {}) for x in ids), 60, 0.2)
    one = start(c, boxes[5], "echo mine")
    tap.wait_for(lambda: "exit_code" in execs(c, boxes[5]).get(one, {}), 10, 0.1)
    out, _, _ = attach(c, boxes[5], one).finish()
    t.eq(out, b"mine\n", "whoever has kept nothing finds room")
    other = next(iter(execs(c, boxes[0])))
    t.eq(lines(c, boxes[5], other)[0], 404, "a command is found in its own sandbox only")
    kept = 0
    for sid in boxes[:5]:
        for x in execs(c, sid):
            kept += len(attach(c, sid, x).finish()[0])
    t.ok(8 << 20 < kept <= 16 << 20, "all together keep what they may", kept)
    for sid in boxes:
        c.delete(sid)


def cli(t, d, c, sid):
    say = lambda *words, **kw: subprocess.run([durward.program(), "sandbox"] + list(words[:1]) + ["--socket", d.socket] + list(words[1:]),  # noqa: E731
                                              capture_output=True, text=True, timeout=60, **kw)
    r = say("attach", sid)
    t.ok(r.returncode == 125 and "--keep or -d" in r.stderr, "nothing to come back to", r.stderr)
    r = say("exec", "-d", sid, "--", "sh", "-c", "echo before; sleep 1; exit 9")
    one = r.stdout.strip()
    t.ok(r.returncode == 0 and one in execs(c, sid), "-d prints its id", r.stdout, r.stderr)
    r = say("attach", sid, stdin=subprocess.DEVNULL)
    t.ok(r.returncode == 9 and r.stdout == "before\n", "attach finds the only one, and has its exit status", r.stdout, r.stderr)
    r = say("attach", "--json", sid)
    t.ok(r.returncode == 125 and "--json" in r.stderr, "attach says that it has no --json", r.stderr)
    r = say("exec", "-d", "--json", sid, "--", "sleep", "300")
    a, b = json.loads(r.stdout)["id"], start(c, sid, "sleep 300")
    t.ok(a in execs(c, sid), "-d --json says its id in JSON", r.stdout, r.stderr)
    r = say("attach", sid)
    t.ok(r.returncode == 125 and a in r.stderr and b in r.stderr, "of two it asks which", r.stderr)
    r = say("attach", sid, "nobody")
    t.ok(r.returncode == 125 and "'nobody'" in r.stderr, "an id that none has", r.stderr)
    p = subprocess.Popen([durward.program(), "sandbox", "attach", "--socket", d.socket, sid, a], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.ok(tap.wait_for(lambda: execs(c, sid)[a]["attached"], 10, 0.1), "it is attached")
    p.send_signal(signal.SIGTERM)  # as SIGHUP, which who runs the tests may have had ignored
    _, err = p.communicate(timeout=20)
    t.ok(p.returncode == 0 and b"sandbox attach %s %s" % (sid.encode(), a.encode()) in err and a in execs(c, sid),
         "a client that is ended leaves the command", err)
    for x in (a, b):
        c.ask("DELETE", "/v1/sandboxes/%s/exec/%s" % (sid, x))
    tap.wait_for(lambda: not execs(c, sid), 10, 0.1)


class Terminal:
    """The command line on a terminal of its own."""

    def __init__(self, d, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(durward.program(), [durward.program(), "sandbox", words[0], "--socket", d.socket] + list(words[1:]))
        self.seen = b""

    def see(self, text, seconds=20):
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    break
        return text in self.seen

    def type(self, text):
        os.write(self.fd, text)

    def end(self):
        self.see(b"\0never", 1)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def terminal(t, d, c, sid):
    x = Terminal(d, "exec", "-i", "-t", "--keep", sid, "--", "sh")
    x.type(b"V=kept; echo one-$V\n")
    t.ok(x.see(b"one-kept"), "a shell on a terminal", x.seen)
    x.type(b"\x10")
    x.type(b"\x10\x11")
    t.ok(x.see(b"detached; 'durward sandbox attach"), "^P ^Q leaves it", x.seen)
    t.eq(x.end(), 0, "with exit status 0")
    y = Terminal(d, "attach", sid)
    t.ok(y.see(b"one-kept"), "what stood there is shown again", y.seen)
    y.type(b"echo two-$V; exit 5\n")
    t.ok(y.see(b"two-kept"), "and it is the same shell", y.seen)
    t.eq(y.end(), 5, "whose exit status is told")


def main(t):
    s = scene.Scene(t)
    s.d.serve()
    c = api.Api(s.d.socket)
    sid = c.first(policy="coder", idle_ttl=0)
    t.part(alone, t, c, sid)
    t.part(by_lines, t, c, sid)
    t.part(places, t, c, sid)
    t.part(bounded, t, c, sid)
    t.part(shared, t, c)
    t.part(cli, t, s.d, c, sid)
    t.part(terminal, t, s.d, c, sid)
    last = start(c, sid, "sleep 300")
    tap.wait_for(lambda: last in execs(c, sid), 10, 0.1)
    f = attach(c, sid, last)
    f.receive()
    c.delete(sid)
    t.eq(f.finish()[2]["exit_code"], 125, "a sandbox that is deleted ends it")
    t.ok(s.d.kinds("lifecycle", event="exec_attached"), "who attaches is on record")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=240)
