#!/usr/bin/python3 -B
"""Commands in a sandbox: exit codes, times, input, outputs whole and streamed, many at once, frames
and terminals, the command line's side, and a port inside."""
import base64
import concurrent.futures
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402


def codes(t, c, box):
    for command, want in (("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143),
                          ("nosuchthing", 127), ("/etc", 126)):
        t.eq(c.sh(box, command)[0], want, "sh: %s is %d" % (command, want))
    run = lambda **kw: c.ask("POST", "/v1/sandboxes/%s/exec" % box, kw)  # noqa: E731
    r = run(argv=["nosuchthing"])
    t.ok(r["exit_code"] == 127 and "nosuchthing" in r["message"], "argv: not found is 127, and says so")
    t.eq(run(argv=["/etc"])["exit_code"], 126, "argv: not executable is 126")
    r = run(argv=["printf", "%s|", "a b", "$HOME", "*"])
    t.eq(r["output"], "a b|$HOME|*|", "argv has no shell")
    r = run(command="pwd", cwd="/tmp")
    t.eq(r["output"], "/tmp\n", "cwd")
    t.eq(run(command="pwd", cwd="/nowhere")["exit_code"], 125, "a cwd that is not there is 125")
    r = run(command="echo $A $HOME", env={"A": "1", "HOME": "/x"})
    t.eq(r["output"], "1 /x\n", "env wins over the sandbox's")
    for body in ({}, {"command": ""}, {"argv": []}, {"command": "x", "argv": ["x"]},
                 {"argv": ["a\0b"]}, {"command": "x", "timeout": -1}, {"command": "x", "cwd": "x"},
                 {"command": "x", "tty": True}, {"command": "x", "stdin_encoding": "utf-16"},
                 {"command": "x", "stdin": "?", "stdin_encoding": "base64"}, {"command": "x", "id": "A"}):
        t.eq(api.refused(run, **body), (400, "bad_request"), "%s is 400" % json.dumps(body))


def times(t, c, box):
    began = time.monotonic()
    r = c.exec(box, "(sleep 100; echo x) & echo begun; sleep 100", timeout=1)
    t.eq((r["exit_code"], r["timed_out"], r["output"]), (124, True, "begun\n"),
         "a timeout is 124, with what came before it")
    t.ok(time.monotonic() - began < 3, "and comes in time")
    t.ok(tap.wait_for(lambda: c.sh(box, "ps ax | grep -c '[s]leep 100'")[1] == b"0\n", 5),
         "the whole process group is killed")
    began = time.monotonic()
    t.eq(c.exec(box, "sleep 60 & echo out")["output"], "out\n", "a background process holds nothing off")
    t.ok(time.monotonic() - began < 3, "whatever it holds open")
    done = []
    k = api.Api(c.path)
    th = threading.Thread(target=lambda: done.append(k.exec(box, "sleep 100", id="mine")))
    th.start()
    running = "/v1/sandboxes/%s/exec" % box
    t.ok(tap.wait_for(lambda: "mine" in [e["id"] for e in c.ask("GET", running)["execs"]], 5),
         "what runs is listed, by the name it was given")
    t.eq(api.refused(c.exec, box, "true", id="mine"), (409, "conflict"), "which is taken")
    c.ask("DELETE", running + "/mine")
    th.join(5)
    t.ok(done and done[0]["exit_code"] == 137, "and it can be cancelled")
    t.eq(c.ask("DELETE", running + "/mine"), None, "twice")
    k.close()


def bytes_through(t, c, box):
    blob = os.urandom(300000) + b"\0\r\n\xff"
    text = base64.b64encode(blob).decode()
    t.eq(c.sh(box, "cat", stdin=text, stdin_encoding="base64"), (0, blob), "input and output are 8-bit clean")
    r = c.exec(box, "printf 'a\\0\\303\\266'")
    t.eq((r["output"], r["encoding"]), ("a\0\u00f6", "utf-8"), "UTF-8 comes as text, NUL too")
    t.eq(c.exec(box, "printf '\\377'")["encoding"], "base64", "what is none comes in base64")
    began = time.monotonic()
    r = c.exec(box, "head -c 8000000 /dev/zero")
    t.eq((r["encoding"], len(base64.b64decode(r["output"]))), ("base64", 8000000),
         "and what is hardly text")
    t.ok(time.monotonic() - began < 2, "which is quick")
    n = 12 << 20
    r = c.exec(box, "head -c %d /dev/zero | tr '\\0' x" % n)
    t.eq((len(r["output"]), r["truncated"], r["exit_code"]), (8 << 20, True, 0),
         "8 MiB are kept by default, and the cut is said")
    r = c.exec(box, "head -c %d /dev/zero | tr '\\0' x" % n, max_output=n)
    t.eq((len(r["output"]), r["truncated"]), (n, False), "more when asked for")
    r = c.exec(box, "echo o; echo e >&2; echo o; exit 2", split=True)
    t.eq((r["stdout"], r["stderr"], r["output"], r["exit_code"]), ("o\no\n", "e\n", "", 2), "split")
    r = c.exec(box, "echo o; echo e >&2; echo p")
    t.eq(r["output"], "o\ne\np\n", "combined as it came")
    t.eq(c.exec(box, "cat; readlink /proc/self/fd/0")["output"], "/dev/null\n", "no input is /dev/null")
    t.eq(c.exec(box, "echo x >/dev/stdout; echo y >/dev/stderr")["output"], "x\ny\n",
         "/dev/stdout can be opened")
    long = "x=%s; echo ${#x}; cat <<'E'\nhere\nE\nread y; echo $y" % ("a" * 700000)
    t.eq(c.exec(box, long, stdin="in\n")["output"], "700000\nhere\nin\n", "a command of 700 KB")
    t.eq(api.refused(c.ask, "POST", "/v1/sandboxes/%s/exec" % box,
                     {"argv": ["echo", "a" * 200000]}), (413, "too_large"), "argv is bounded")


def at_once(t, c, box):
    def one(i):
        k = api.Api(c.path)
        try:
            return k.sh(box, "sleep 0.3; echo %d" % i)
        finally:
            k.close()
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        got = list(pool.map(one, range(20)))
    t.eq(got, [(0, b"%d\n" % i) for i in range(20)], "20 at once, each with its own answer")
    t.ok(time.monotonic() - began < 4, "at the same time")


def streams(t, c, box):
    body = json.dumps({"command": "for i in 1 2 3; do echo $i; done; echo e >&2; exit 4",
                       "split": True, "stream": True})
    status, headers, data = c.raw("POST", "/v1/sandboxes/%s/exec" % box, body, kept=False)
    lines = [json.loads(x) for x in data.decode().splitlines()]
    out = b"".join(base64.b64decode(x["data"]) for x in lines if x["type"] == "stdout")
    err = b"".join(base64.b64decode(x["data"]) for x in lines if x["type"] == "stderr")
    t.eq((status, headers["Content-Type"], lines[0]["type"], lines[-1]["type"]),
         (200, "application/x-ndjson", "started", "exit"), "lines: from started to exit")
    t.eq((out, err, lines[-1]["exit_code"]), (b"1\n2\n3\n", b"e\n", 4), "with the outputs between")
    f = c.frames(box, command="cat; exit 6")
    t.eq(f.receive()[0], 0, "frames: started")
    f.send(0, b"one ")
    f.send(0, b"two")
    f.send(0)
    out, err, last = f.finish()
    t.eq((out, last["exit_code"]), (b"one two", 6), "input in pieces, its end, the exit")
    f.close()
    f = c.frames(box, command="echo up; sleep 50")
    f.receive()
    f.receive()
    f.send(1, bytes([15]))
    t.eq(f.finish()[2]["exit_code"], 143, "a signal")
    f.close()
    f = c.frames(box, command="echo up; sleep 55")
    f.receive()
    f.receive()
    f.close()
    t.ok(tap.wait_for(lambda: c.sh(box, "ps ax | grep -c '[s]leep 55'")[1] == b"0\n", 5),
         "closing the connection kills the command")
    for bad in (b"\x09\0\0\0\0", b"\x01\0\0\0\x02ab", b"\x02\0\0\0\x01a", b"\0\xff\xff\xff\xff"):
        f = c.frames(box, command="sleep 5")
        f.sock.sendall(bad)
        try:
            f.finish()
            t.ok(False, "a bad frame %r ends the connection" % bad)
        except EOFError:
            t.ok(True, "a bad frame %r ends the connection" % bad)
        f.close()
    # a reader that does not read: bounded memory, and nothing is lost when it reads on
    f = c.frames(box, command="head -c 30000000 /dev/zero")
    pid = [p for p, text in tap.descendants() if text.startswith("durward: controller")][0]
    seen = []

    def full():
        """It takes no more: its memory is the same three times."""
        with open("/proc/%d/status" % pid) as status:
            seen.append(int([x for x in status if x.startswith("VmRSS")][0].split()[1]))
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]
    tap.wait_for(full, 10, 0.15)
    rss = seen[-1]
    out, _, last = f.finish()
    t.eq((len(out), last["exit_code"]), (30000000, 0), "a slow reader loses nothing")
    t.diag("controller's memory with a reader that waits: %d KiB" % rss)
    f.close()


def terminals(t, c, box):
    f = c.frames(box, command="tty; stty size; read x; echo got-$x; stty size", tty=True, rows=33,
                 cols=99)
    seen = b""
    while b"33 99" not in seen:
        seen += f.receive()[1]
    f.send(2, bytes([0, 50, 0, 120]))
    f.send(0, b"word\r")
    out, _, last = f.finish()
    t.ok(b"/dev/pts/" in seen and b"got-word" in out and b"50 120" in out and last["exit_code"] == 0,
         "a terminal: size, input, change of size", seen + out)
    f.close()
    f = c.frames(box, command="echo up; sleep 60", tty=True)
    while b"up" not in seen[-10:]:
        seen += f.receive()[1]
    # a shell that is just about to fork may swallow it
    tap.wait_for(lambda: c.sh(box, "ps ax | grep -c '[s]leep 60'")[1] != b"0\n", 5)
    f.send(0, b"\x03")
    t.eq(f.finish()[2]["exit_code"], 130, "^C by the line discipline")
    f.close()


def interruptible():
    """What a shell starts in the background, such as all of these tests, has SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command_line(t, d, box):
    env = {"DURWARD_SOCKET": d.socket}
    run = lambda *a, **kw: d.command("sandbox", "exec", *a, env=env, **kw)  # noqa: E731
    r = run(box, "--", "sh", "-c", "echo o; echo e >&2; exit 9")
    t.eq((r.returncode, r.stdout, r.stderr), (9, "o\n", "e\n"), "exec: status and both outputs")
    r = run("-i", box, "wc", "-c", stdin=b"x" * 1000000)
    t.eq((r.returncode, r.stdout), (0, "1000000\n"), "exec -i: standard input")
    r = run(box, "cat", stdin=b"ignored")
    t.eq((r.returncode, r.stdout), (0, ""), "without -i there is none")
    t.eq(run(box, "nosuchthing").returncode, 127, "exec: 127")
    t.eq(run(box, "/etc").returncode, 126, "exec: 126")
    t.eq(run("sb-none", "true").returncode, 125, "exec: no such sandbox is 125")
    t.eq(run(box).returncode, 125, "exec: usage is 125")
    t.eq(run("--timeout", "1s", box, "sleep", "20").returncode, 124, "exec --timeout: 124")
    r = run("-e", "A=b c", "--workdir", "/tmp", box, "sh", "-c", "echo $A; pwd")
    t.eq(r.stdout, "b c\n/tmp\n", "exec -e, --workdir")
    r = run("--json", box, "echo", "x")
    t.eq(json.loads(r.stdout)["output"], "x\n", "exec --json")
    p = d.test.popen([durward.program(), "sandbox", "exec", box, "sh", "-c",
                      "trap 'echo caught; exit 3' INT; echo up; while :; do sleep 1; done"],
                     env=dict(d.env, **env), stdout=subprocess.PIPE, preexec_fn=interruptible)
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    t.eq((p.stdout.read(), p.wait(10)), (b"caught\n", 3), "exec: ^C goes inside")
    master, slave = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=slave, capture_output=True).stdout
    p = d.test.popen([durward.program(), "sandbox", "exec", "-it", box, "sh", "-c",
                      "tty; read x; echo got-$x; exit 4"], env=dict(d.env, **env), stdin=slave,
                     stdout=slave, stderr=slave, preexec_fn=None)
    seen = b""
    while b"/dev/pts/" not in seen and select.select([master], [], [], 5)[0]:
        seen += os.read(master, 4096)
    os.write(master, b"typed\r")
    code = p.wait(10)
    while select.select([master], [], [], 0.2)[0]:
        seen += os.read(master, 4096)
    after = subprocess.run(["stty", "-g"], stdin=slave, capture_output=True).stdout
    t.ok(code == 4 and b"got-typed" in seen, "exec -it: a terminal, its status", seen)
    t.eq(after, before, "and ours is as it was")
    os.close(master)
    os.close(slave)
    for verb, want in (("snapshot", 2), ("nonsense", 2)):
        t.eq(d.command("sandbox", verb, box, env=env).returncode, want, "sandbox %s: %d" % (verb, want))
    r = d.command("sandbox", "ls", "--json", env=env)
    t.ok(box in [x["id"] for x in json.loads(r.stdout)], "sandbox ls --json")
    r = d.command("sandbox", "show", box, env=env)
    t.ok(r.returncode == 0 and "running" in r.stdout, "sandbox show")


SERVER = """import socket, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 8765)); s.listen(50)
def one(c):
    while True:
        b = c.recv(65536)
        if not b: break
        c.sendall(b)
    c.close()
while True:
    threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
"""


def ports(t, d, c, box):
    t.eq(api.refused(c.upgrade, "/v1/sandboxes/%s/forward?port=8765" % box, "durward-forward")[0], 503,
         "a port on which nothing listens is 503")
    c.write(box, "/workspace/server.py", SERVER.encode())
    c.sh(box, "setsid /usr/bin/python3 server.py >/dev/null 2>&1 &")
    p = d.test.popen([durward.program(), "sandbox", "forward", box, "8765", "0"], stdout=subprocess.PIPE,
                     env=dict(d.env, DURWARD_SOCKET=d.socket))
    host, _, port = p.stdout.readline().decode().strip().rpartition(":")
    t.eq(host, "127.0.0.1", "forward listens on loopback only")
    blob = os.urandom(3 << 20)

    def echoed():
        with socket.create_connection((host, int(port)), 5) as s:
            s.settimeout(5)
            s.sendall(b"hello")
            return s.recv(5) == b"hello"

    def safe():
        try:
            return echoed()
        except ConnectionResetError:
            return False  # nothing listens in there yet
    t.ok(tap.wait_for(safe, 10, 0.1), "bytes go in and come back")
    with socket.create_connection((host, int(port)), 5) as s:
        th = threading.Thread(target=s.sendall, args=(blob,))
        th.start()
        got = b""
        while len(got) < len(blob):
            got += s.recv(1 << 20)
        th.join()
    t.ok(got == blob, "3 MiB both ways at once")
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        t.ok(all(pool.map(lambda _: echoed(), range(30))), "30 connections")
    tap.stop(p)


def connections(t, c, box):
    def request(command):
        body = json.dumps({"command": command}).encode()
        return ("POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: durward\r\nContent-Length: %d\r\n\r\n"
                % (box, len(body))).encode() + body

    def opened():
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(c.path)
        return s
    s, got = opened(), b""
    s.sendall(request("sleep 0.3; echo fir\"\"st") + request("echo sec\"\"ond") +
              b"GET /v1/health HTTP/1.1\r\nHost: durward\r\n\r\n")
    while got.count(b"HTTP/1.1 200") < 3 or b'"version"' not in got:
        more = s.recv(65536)
        if not more:
            break
        got += more
    s.close()
    t.ok(-1 < got.find(b"first") < got.find(b"second") < got.find(b'"status":"ok"'),
         "requests ahead of their answers are answered in order", got)
    for _ in range(20):
        s = opened()
        s.sendall(request("sleep 0.1; head -c 3000000 /dev/zero") + b"more")
        s.close()
    for junk in (b"GARBAGE\r\n\r\n", b"GET / HTTP/1.1\r\nHost: durward\r\nA: " + b"x" * 30000 + b"\r\n\r\n"):
        s = opened()
        s.sendall(junk)
        t.ok(s.recv(300).startswith(b"HTTP/1.1 4"), "%r is 4xx" % junk[:10])
        s.close()
    t.eq(c.sh(box, "echo still"), (0, b"still\n"), "20 clients that left do no harm")


def main(t):
    d = durward.Durward(t)
    d.policy("p", [])
    d.serve()
    c = api.Api(d.socket)
    box = c.first()
    for part in (codes, times, bytes_through, at_once, streams, terminals, connections):
        t.part(part, t, c, box)
    t.part(command_line, t, d, box)
    t.part(ports, t, d, c, box)
    running = c.ask("GET", "/v1/sandboxes/%s/exec" % box)["execs"]
    t.eq(running, [], "no command is left")
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
