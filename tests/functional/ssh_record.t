#!/usr/bin/python3 -B
"""Recordings of what commands and shells over SSH said: in the log piece by piece, put together by `durward audit recording`, and read
by asciinema's own reader."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, sshd, tap  # noqa: E402

HOST, OTHER, TYPED, REDACTED = "build.example.com", "other.example.com", "typed.example.com", "redacted.example.com"
COMMANDS = ["echo *", "echo \"hello world\"", "cat", "head -c * /dev/zero", "exit *", "stty size", "sleep *", "echo first; echo second"]
# bytes as they come from a server that cuts them where it likes: characters of two to four bytes, and what is none
TEXT = "a\u00e9\u20ac\U0001f600\"\\\r\n\x1b[1mb\x1b[0m\x7f\x00 end".encode()
BAD = b"\xff\xc3(\xe2\x82 \xed\xa0\x80 \xf0\x9f\x98"
NONE = re.compile("\ufffd+")

PARAMIKO = """
import sys, time, paramiko
t = paramiko.Transport((sys.argv[1], 22)); t.start_client(timeout=10); t.auth_none(sys.argv[2])
c = t.open_session(); c.get_pty("xterm", 100, 30); c.exec_command("cat"); c.settimeout(10)
c.sendall(b"one\\n"); got = b""
while got.count(b"one") < 2: got += c.recv(100)
c.resize_pty(120, 40); c.sendall(b"two\\n")
while got.count(b"two") < 2: got += c.recv(100)
c.sendall(b"\\4"); c.recv_exit_status(); t.close()
"""


def rule(server, host, **more):
    return dict({"allow": "ssh://%s@%s" % (server.user, host), "with": {"ssh_key": "deploy"}, "host_keys": server.host_key,
                 "commands": COMMANDS, "terminal": True}, **more)


def bed(t, server, name, rules):
    d = durward.Durward(t, name)
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    for host in (HOST, OTHER, TYPED, REDACTED):
        d.resolve[host + ":22"] = server.address
    d.policy("coder", rules)
    return d


class Log:
    def __init__(self, t, d):
        self.t, self.d = t, d

    def newest(self, kind="admitted"):
        self.d.settle()
        return [r for r in self.d.kinds(kind) if r.get("scheme") == "ssh" or kind != "admitted"][-1]

    def recording(self, identity):
        r = self.d.command("audit", "recording", identity, self.d.audit_dir)
        return r.returncode, r.stdout, r.stderr

    def last(self):
        """-> the header, the events, the text"""
        one = self.newest()
        tap.wait_for(lambda: one["id"] in self.d.ends([one]), 10)
        status, out, err = self.recording(one["id"])
        self.t.ok(status == 0 and err == "", "a recording is whole", str(status), err, out[:300])
        lines = [json.loads(x) for x in out.splitlines()]
        return lines[0], lines[1:], out


def said(events, kind="o"):
    return "".join(e[2] for e in events if e[1] == kind)


def plays(t, text):
    """asciinema's own reader shows the same."""
    program = next((p for p in (os.path.join(durward.clients_dir(), "venv/bin/asciinema"), shutil.which("asciinema")) if p and os.path.exists(p)), None)
    if program is None:
        t.skip("asciinema's own reader", "it is not there: run tests/functional/clients/setup, or install asciinema")
        return
    path = t.write("session.cast", text)
    r = subprocess.run([program, "cat", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, HOME=t.mkdir("asciinema")), timeout=30)
    want = said([json.loads(x) for x in text.splitlines()[1:]])
    t.ok(r.returncode == 0 and r.stdout.decode() == want, "asciinema's own reader shows the same", r.stdout.decode(errors="replace")[:300], r.stderr.decode()[:300])


def commands(t, box, server, log):
    at = "%s@%s" % (server.user, HOST)
    box.sh("ssh %s 'echo \"hello world\"'" % at)
    head, events, text = log.last()
    t.ok(head["version"] == 2 and (head["width"], head["height"]) == (80, 24) and head["command"] == 'echo "hello world"' and
         head["timestamp"] > 1e9 and head["title"] == "%s@%s" % (server.user, HOST), "its head says what it is", str(head))
    t.ok(said(events) == "hello world\n" and {e[1] for e in events} == {"o"} and all(0 <= e[0] < 60 for e in events), "what a command said", str(events))
    plays(t, text)
    box.sh("ssh -tt %s 'stty size' </dev/null" % at, env={"TERM": "xterm-256color"})
    head, events, text = log.last()
    t.ok(head["env"]["TERM"] == "xterm-256color" and set(head["env"]) == {"TERM"}, "one on a terminal", str(head))
    for name, data, want in (("characters of several bytes, escapes and a NUL", TEXT, TEXT.decode()), ("bytes that are no text", BAD, "\ufffd\ufffd(\ufffd\ufffd \ufffd\ufffd\ufffd \ufffd\ufffd\ufffd")):
        status, out, err = box.sh("/usr/bin/python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(\"%s\"))' | ssh %s cat | od -An -tx1" % (data.hex(), at))
        head, events, text = log.last()
        t.ok(bytes.fromhex("".join(out.split())) == data, name + ": the client has them as they are", out, err)
        t.eq(said(events), want, name)
        plays(t, text)
    box.sh("/usr/bin/python3 -c 'print(chr(8364) * 20000)' | ssh %s cat >/dev/null" % at, env={"PYTHONIOENCODING": "utf-8"})
    head, events, text = log.last()
    t.ok(said(events) == chr(8364) * 20000 + "\n" and len(events) > 60, "sixty thousand bytes of characters, wherever they are cut", str(len(events)))
    box.sh("head -c 100000 /dev/urandom >~/r; ssh %s cat <~/r >~/s" % at)
    head, events, text = log.last()
    status, out, err = box.sh("cmp ~/r ~/s && od -An -v -tx1 ~/r")
    data = bytes.fromhex("".join(out.split()))
    t.ok(len(data) == 100000 and NONE.sub("\ufffd", said(events)) == NONE.sub("\ufffd", data.decode("utf-8", "replace")) and text.isascii(),
         "any bytes at all, of which what is text stands as it is", err)
    status, out, err = box.sh("ssh %s 'exit 7'; echo $?" % at)
    t.eq(out, "7\n", "a command that says nothing")
    t.eq(log.last()[1], [], "has a head alone")


def spoiled(t, box, d, server, log):
    """A log that was changed: what is not what was recorded is shown as such."""
    box.sh("ssh %s@%s 'echo first; echo second' >/dev/null; ssh %s@%s 'head -c 3000 /dev/zero' >/dev/null" % (server.user, HOST, server.user, HOST))
    one = log.newest()
    tap.wait_for(lambda: one["id"] in d.ends([one]), 10)
    d.settle()
    copy = t.path("copy")
    for name, change, words in (("changed", lambda r: json.dumps(dict(r, body=r["body"].replace("u0000", "u0001", 1)), separators=(",", ":")) + "\n", "it is not what its end in the log says"),
                                ("left out", lambda r: "", "a piece of it is not in the log")):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(d.audit_dir, copy)
        done = 0
        for folder, _, names in os.walk(copy):
            for path in (os.path.join(folder, n) for n in names if n.endswith(".jsonl")):
                with open(path) as f:
                    lines = f.readlines()
                for i, line in enumerate(lines):
                    r = json.loads(line)
                    if not done and r.get("kind") == "body" and r.get("id") == one["id"] and r.get("offset", 0) > 0 and r.get("body"):
                        lines[i] = change(r)
                        done += lines[i] != line
                with open(path, "w") as f:
                    f.writelines(lines)
        t.eq(done, 1, "a piece is " + name)
        r = d.command("audit", "recording", one["id"], copy)
        t.ok(r.returncode == 1 and words in r.stderr, "and that is said", r.stderr)


def bounded(t, box, server, log):
    status, out, err = box.sh("ssh %s@%s 'head -c 3000000 /dev/zero' | wc -c" % (server.user, HOST), timeout=60)
    t.eq(out.strip(), "3000000", "three megabytes come whole")
    one = log.newest()
    tap.wait_for(lambda: one["id"] in log.d.ends([one]), 10)
    status, out, err = log.recording(one["id"])
    t.ok(status == 0 and "the session went on beyond record_megabytes" in err and 900000 < len(out) <= 1000000, "of which the recording has what its rule says, and says so",
         str((status, len(out))), err, str(log.d.ends([one]).get(one["id"])))
    t.ok(said([json.loads(x) for x in out.splitlines()[1:]]).strip("\0") == "", "and no line of it is broken")


def terminal(t, box, server, log):
    """What is typed, and a window that changes."""
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if box.sh("%s -c 'import paramiko'" % python)[0] != 0:
        t.skip("a terminal", "the clients' environment has no paramiko (tests/functional/clients/setup)")
        return
    for host, typed in ((HOST, False), (TYPED, True)):
        status, out, err = box.sh("%s -c \"$P\" %s %s" % (python, host, server.user), env={"P": PARAMIKO}, timeout=40)
        head, events, text = log.last()
        t.ok(status == 0 and (head["width"], head["height"]) == (100, 30), "a terminal of its size", err, str(head))
        t.ok([e[2] for e in events if e[1] == "r"] == ["120x40"], "and of another one later", str(events))
        t.eq(said(events, "i"), "one\ntwo\n\x04" if typed else "", "what is typed is in it" if typed else "what is typed is not")
        t.ok(said(events).count("one") == 2 and sorted(e[0] for e in events) == [e[0] for e in events], "in the order of its times", str(events))
        plays(t, text)


def looked_through(t, box, d, server, log):
    """What detectors find is not in the recording, in whatever pieces it comes; the client has it."""
    key, token = sshd.keygen(t.path("printed"))[0].decode(), "ghp_" + "".join(chr(65 + i * 7 % 26) for i in range(36))
    text = "before\n" + key + "between " + token + " after \u20ac\n"
    program = ("import os, subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)\n"
               "for i in range(0, len(T), 97): os.write(p.stdin.fileno(), T[i:i + 97]); time.sleep(0.01)\n"
               "p.stdin.close(); p.wait()")
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\" ssh %s@%s cat" % (server.user, REDACTED), env={"P": "T = %r\n%s" % (text.encode(), program)}, timeout=40)
    t.ok(status == 0 and out == text, "the client has what the server says", out[-200:], err)
    head, events, cast = log.last()
    for kind, what in (("o", "what it says"), ("i", "what is typed")):
        one = said(events, kind)
        t.ok(one.startswith("before\n") and one.endswith(" after \u20ac\n") and len(one) == len(text) and "between" in one, what + " is in the recording", one[-300:])
        t.ok(not any(line in one for line in key.splitlines()[1:-1]) and token not in one, "without the key and the token", one)
    plays(t, cast)
    log.d.settle()
    last = [r for r in log.d.kinds("body") if r["id"] == log.newest()["id"]][-1]
    t.ok(last.get("patterns") == "private_key 2, github 2", "and how many that were", str(last)[-300:])
    whole = b"".join(open(p, "rb").read() for p in d.audit_files())
    t.ok(token.encode() not in whole and key.splitlines()[1].encode() not in whole, "nor anywhere in the log")


def share(t, server):
    """What is looked through has its memory: a sandbox that has its part of it gets no more recordings, and another one does."""
    d = bed(t, server, "share", [rule(server, REDACTED, record="all", record_redact="credentials")])
    d.serve()
    calls = api.Api(d.socket)
    box, other = (calls.create(policy="coder")["id"] for _ in range(2))
    hello = "ssh %s@%s 'echo hello' 2>&1" % (server.user, REDACTED)
    calls.sh(box, "for i in $(seq 20); do (ssh %s@%s 'sleep 32' >/dev/null 2>err.$i &) ; done" % (server.user, REDACTED))
    t.ok(tap.wait_for(lambda: b"no memory for a recording" in calls.sh(box, "cat err.*")[1], 40), "a sandbox gets no more recordings than its part",
         calls.sh(box, "cat err.*")[1][-600:])
    t.eq(calls.sh(other, hello), (0, b"hello\n"), "another one does")
    calls.sh(box, "pkill ssh")
    t.ok(tap.wait_for(lambda: calls.sh(box, hello)[1] == b"hello\n", 20), "and this one when others are over")
    calls.close()
    d.stop()


def others(t, box, d, server, log):
    box.sh("ssh %s@%s 'echo hello'" % (server.user, OTHER))
    one = log.newest()
    d.settle()
    status, out, err = log.recording(one["id"])
    t.ok(status == 1 and out == "" and "no recording has that id" in err, "a rule that asks for none has none", out, err)
    bodies = d.kinds("body")
    t.ok(bodies and all(r.get("code") == "recording" and r.get("sandbox") and r.get("role") == "ssh-back" and r["id"] != one["id"] for r in bodies),
         "the pieces are their sandbox's", str(bodies[:1]))
    before = len(d.kinds("admitted"))
    box.sh("(ssh %s@%s 'sleep 31' >/dev/null 2>&1 &)" % (server.user, HOST))
    t.ok(d.wait_records(before + 1, "admitted"), "a command runs")
    one = log.newest()
    t.ok(tap.wait_for(lambda: any(r["id"] == one["id"] for r in d.kinds("body")), 5), "what it has said is on record while it runs")
    status, out, err = log.recording(one["id"])
    t.ok(status == 1 and "it has no end" in err and json.loads(out.splitlines()[0])["command"] == "sleep 31", "and is said not to be whole", out, err)
    os.kill([p for p, r in d.roles() if r == "ssh-back"][0], signal.SIGKILL)
    t.ok(d.wait_records(1, "aborted"), "its role dies")
    status, out, err = log.recording(one["id"])
    t.ok(status == 1 and "it has no end" in err, "then it never gets one", out, err)
    r = d.command("audit", "verify", d.audit_dir)
    t.eq(r.returncode, 0, "the log is good")


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    server = sshd.Sshd(t, options=["MaxStartups 400"])
    d = bed(t, server, "d", [rule(server, HOST, record="output"), rule(server, OTHER), rule(server, TYPED, record="all", record_megabytes=2),
                       rule(server, REDACTED, record="all", record_redact="credentials")])
    box, log = durward.Sandbox(d, binds=durward.client_binds("venv")), Log(t, d)
    t.part(commands, t, box, server, log)
    t.part(spoiled, t, box, d, server, log)
    t.part(bounded, t, box, server, log)
    t.part(terminal, t, box, server, log)
    t.part(looked_through, t, box, d, server, log)
    t.part(others, t, box, d, server, log)
    box.close()
    t.part(share, t, server)
    for pid, line in tap.descendants():
        if line.startswith("sleep "):
            os.kill(pid, signal.SIGKILL)


tap.run(main, timeout=180)
