#!/usr/bin/python3 -B
"""Connections that an SSH server makes for a sandbox (-L, -W, -D, -J), by OpenSSH's client, paramiko and AsyncSSH inside and OpenSSH's
server outside: those that a rule names and no other, whole both ways, each on record before the server hears of it."""
import hashlib
import json
import os
import socket
import socketserver
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, sshd, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

HOST = "jump.example.com"
LARGE = 20000000
QUICK = "-o ExitOnForwardFailure=yes -o ConnectTimeout=10"


class Echo(socketserver.BaseRequestHandler):
    """What comes goes back, until its end."""
    def handle(self):
        while True:
            part = self.request.recv(65536)
            if not part:
                return
            self.request.sendall(part)


class Sum(socketserver.BaseRequestHandler):
    """Says how much came, and its digest, once that has ended; its own end comes after."""
    def handle(self):
        h, n = hashlib.sha256(), 0
        while True:
            part = self.request.recv(65536)
            if not part:
                break
            h.update(part)
            n += len(part)
        self.server.sums.append((n, h.hexdigest()))
        self.request.sendall(b"%d %s\n" % (n, h.hexdigest().encode()))


class Source(socketserver.BaseRequestHandler):
    """Ends at once, and goes on reading: what came by then is told."""
    def handle(self):
        self.request.sendall(self.server.bytes)
        self.request.shutdown(socket.SHUT_WR)
        Sum.handle(self)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 256

    def __init__(self, t, handler, said=b""):
        super().__init__(("127.0.0.1", 0), handler)
        self.port, self.sums, self.bytes = self.server_address[1], [], said
        threading.Thread(target=self.serve_forever, daemon=True).start()
        t.cleanup(self.server_close)
        t.cleanup(self.shutdown)

    def handle_error(self, request, client_address):
        pass  # a peer that is gone, as some here shall be


class Bed:
    def __init__(self, t):
        self.t = t
        self.echo, self.sum = Server(t, Echo), Server(t, Sum)
        self.source, self.brief = Server(t, Source, os.urandom(LARGE)), Server(t, Source, b"brief")
        self.beyond = Server(t, Echo)  # that no rule names
        self.shut = Server(t, Echo)    # that a rule names, and the server does not allow
        self.dead = free_port()        # where nobody listens
        self.inner = sshd.Sshd(t, "inner")
        opens = ["127.0.0.1:%d" % p for p in (self.echo.port, self.sum.port, self.source.port, self.brief.port, self.beyond.port, self.dead, self.inner.port)]
        self.server = sshd.Sshd(t, options=["MaxStartups 400", "PermitOpen %s localhost:%d" % (" ".join(opens), self.echo.port)])
        self.at = "%s@%s" % (self.server.user, HOST)
        self.targets = ["127.0.0.1:%d" % p for p in (self.echo.port, self.sum.port, self.source.port, self.brief.port, self.shut.port, self.dead, self.inner.port)]
        self.targets.append("LocalHost.:%d" % self.echo.port)

    def rule(self, **more):
        return dict({"allow": "ssh://" + self.at, "with": {"ssh_key": "deploy"}, "host_keys": self.server.host_key, "forward": self.targets}, **more)

    def durward(self, rules, name="d"):
        d = durward.Durward(self.t, name)
        d.secret("deploy_key", self.server.key)
        d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
        d.resolve[HOST + ":22"] = self.server.address
        d.policy("coder", rules)
        return d


def allowed(t, box, bed):
    """-W, -L and -D of OpenSSH."""
    status, out, err = box.sh("echo hello | ssh %s -W 127.0.0.1:%d %s" % (QUICK, bed.echo.port, bed.at))
    t.ok(status == 0 and out == "hello\n", "-W to an address that a rule names", out, err)
    status, out, err = box.sh("echo hello | ssh %s -W LOCALHOST.:%d %s" % (QUICK, bed.echo.port, bed.at))
    t.ok(status == 0 and out == "hello\n", "to a name, in another spelling of the same", out, err)
    script = ("ssh -N -o ControlPath=~/c%s -M %s -f %s %s; trap 'ssh -o ControlPath=~/c%s -O exit x 2>/dev/null' EXIT; ")
    local = "-L 7001:127.0.0.1:%d -L 7002:127.0.0.1:%d" % (bed.echo.port, bed.sum.port)
    status, out, err = box.sh("bash -c \"$C\"", env={"C": script % ("L", QUICK, local, bed.at, "L") +
                              "exec 3<>/dev/tcp/127.0.0.1/7001; echo first >&3; head -1 <&3; exec 4<>/dev/tcp/127.0.0.1/7001; "
                              "echo second >&4; head -1 <&4; echo third >&3; head -1 <&3"})
    t.ok(out.split() == ["first", "second", "third"], "-L: two connections by one port", out, err)
    status, out, err = box.sh("bash -c \"$C\"", env={"C": script % ("D", QUICK, "-D 7003", bed.at, "D") +
                              "for p in %d %d; do printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /usr/bin/python3 -c \"$S\" $p; done" %
                              (bed.echo.port, bed.beyond.port), "S": SOCKS})
    t.ok(out.split("\n")[0].startswith("GET / HTTP/1.0") and out.count("GET") == 1, "-D: to what a rule names, and to nothing else", out, err)


SOCKS = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 7003), 10)
s.sendall(b"\\5\\1\\0"); s.recv(2)
s.sendall(b"\\5\\1\\0\\1\\x7f\\0\\0\\1" + int(sys.argv[1]).to_bytes(2, "big"))
try:
    if s.recv(10)[1:2] == b"\\0":
        s.sendall(sys.stdin.buffer.read()); s.shutdown(1)
        print(s.makefile("rb").read().decode())
except OSError:
    pass
"""


def jump(t, box, bed):
    """ProxyJump: the second connection is the client's own, with a key that it has, and passes as bytes."""
    box.sh("umask 077; cat >~/inner", stdin=bed.inner.key.decode())
    known = "[127.0.0.1]:%d %s\\n[127.0.0.1]:%d %s\\n" % (bed.inner.port, bed.inner.host_key, bed.beyond.port, bed.inner.host_key)
    box.sh("printf '%s' >~/known" % known)
    said = "ssh -o UserKnownHostsFile='~/known /etc/ssh/ssh_known_hosts' -i ~/inner -J %s -p %%d %s@127.0.0.1 'echo within; cat' </etc/hostname"
    before = bed.inner.logins()
    status, out, err = box.sh((said % (bed.at, bed.inner.user)) % bed.inner.port)
    t.ok(status == 0 and out.startswith("within\n") and bed.inner.logins() == before + 1, "-J to a server that a rule names", out, err)
    status, out, err = box.sh((said % (bed.at, bed.inner.user)) % bed.beyond.port)
    t.ok(status == 255 and out == "", "and to none else", out, err)


def refused(t, box, d, bed):
    """What no rule names, in each spelling; and what the server does not do."""
    before, denied = bed.server.logins(), len(d.kinds("denied"))
    spellings = ("127.0.0.1:%d" % bed.beyond.port, "localhost:%d" % bed.beyond.port, "127.1:%d" % bed.echo.port, "0x7f.0.0.1:%d" % bed.echo.port,
                 "2130706433:%d" % bed.echo.port, "[::ffff:127.0.0.1]:%d" % bed.echo.port, "[::1]:%d" % bed.echo.port,
                 "localhost.localdomain:%d" % bed.echo.port, "127.0.0.1.:%d" % bed.echo.port)
    for target in spellings:
        status, out, err = box.sh("echo hello | ssh -v %s -W %s %s" % (QUICK, target, bed.at))
        t.ok(status == 255 and "hello" not in out and "administratively prohibited" in err, "-W %s is refused" % target, out, err)
    d.settle()
    t.ok(bed.server.logins() == before and len(d.kinds("denied")) == denied + len(spellings), "each is on record, and the server heard of none")
    one = d.kinds("denied")[denied]
    t.ok(one.get("method") == "connect" and one.get("target") == "127.0.0.1:%d" % bed.beyond.port and one.get("user") == bed.server.user and
         one.get("code") == "ssh_target" and one.get("rule"), "with who, and where to", str(one))
    for port, words, what in ((bed.shut.port, "error (1)", "what the server itself does not allow"), (bed.dead, "error (2)", "what does not answer")):
        status, out, err = box.sh("echo hello | ssh -v %s -W 127.0.0.1:%d %s" % (QUICK, port, bed.at))
        t.ok("hello" not in out and "ssh_target_refused" in err and words in err, what + ": the channel is closed, and why is said", out, err)
    d.wait_records(2, "aborted", code="ssh_target_refused")
    ends = [r for r in d.kinds("aborted") if r.get("code") == "ssh_target_refused"]
    t.ok(len(ends) == 2 and "error (1)" in ends[0].get("detail", "") and "error (2)" in ends[1].get("detail", ""), "each ends on record", str(ends))
    status, out, err = box.sh("ssh %s id" % bed.at)
    t.ok(status == 128 and "method" in err, "a rule of targets allows no command", out, err)
    for what, command in (("a port back", "ssh %s -R 7100:127.0.0.1:22 -N %s" % (QUICK, bed.at)),
                          ("a proxy back", "ssh %s -R 7100 -N %s" % (QUICK, bed.at)),
                          ("a socket back", "ssh %s -R /tmp/s:127.0.0.1:22 -N %s" % (QUICK, bed.at))):
        status, out, err = box.sh(command + " </dev/null")
        t.ok(status == 255, "forwarding of %s stays refused" % what, out, err)
    status, out, err = box.sh("bash -c \"$C\"", env={"C": "ssh -N -o ControlPath=~/cU -M %s -f -L 7004:/run/nothing.sock %s; exec 3<>/dev/tcp/127.0.0.1/7004; "
                                                     "timeout 5 cat <&3; echo $?; ssh -o ControlPath=~/cU -O exit x" % (QUICK, bed.at)})
    d.settle()
    t.ok(out.split()[-1:] == ["0"] and "a channel of another kind" in {r.get("detail") for r in d.kinds("denied")},
         "a socket of the server's stays refused", out, err)


def bytes_both_ways(t, box, d, bed):
    """Large data, and ends that come alone."""
    ssh = "ssh %s -W 127.0.0.1:%%d %s" % (QUICK, bed.at)
    status, out, err = box.sh("head -c %d /dev/urandom >~/up; sha256sum <~/up; %s <~/up" % (LARGE, ssh % bed.sum.port), timeout=90)
    lines = out.split("\n")
    t.ok(lines[1] == "%d %s" % (LARGE, lines[0].split()[0]), "twenty megabytes up, their end, and then the answer", out, err)
    status, out, err = box.sh("%s <~/up | head -c %d | sha256sum" % (ssh % bed.source.port, LARGE), timeout=90)
    t.eq(out.split()[0], hashlib.sha256(bed.source.bytes).hexdigest(), "both ways at once")
    d.settle()
    done = [r for r in d.kinds("completed") if r.get("scheme") == "ssh" or "bytes_up" in r]
    t.ok(any(r.get("bytes_up") == LARGE for r in done) and any(r.get("bytes_down", 0) >= LARGE for r in done), "bytes are on record, both ways", str(done[-4:]))


def libraries(t, box, bed):
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    for name in ("paramiko", "asyncssh"):
        if box.sh("%s -c 'import %s'" % (python, name))[0] != 0:
            t.skip(name, "the clients' environment has no %s (tests/functional/clients/setup)" % name)
            continue
        before = len(bed.sum.sums)
        status, out, err = box.sh("%s %s/ssh_forward.py %s %s %s %d %d %d %d %d" % (
            python, durward.INSIDE, name, HOST, bed.server.user, bed.echo.port, bed.beyond.port, bed.dead, bed.sum.port, bed.brief.port), timeout=60)
        if not t.ok(status == 0, name + " runs", out, err):
            continue
        found = json.loads(out)
        t.ok(found["echo"] == "hello" and found["half"] is True, name + ": there and back, and an end of its own", out)
        t.ok(found["refused"] == 1 and found["closed"] == "", name + ": what is refused is a failure, what does not answer is closed", out)
        t.ok(any("ssh_target" in x for x in found["told"]) and any("ssh_target_refused" in x for x in found["told"]), "and both say why", out)
        if name == "paramiko":
            t.ok(found["brief"] == "brief" and tap.wait_for(lambda: bed.brief.sums, 20) and bed.brief.sums[0][0] == 3000000,
                 "what goes up after the other end has ended arrives whole", out, str(bed.brief.sums))
            t.ok(found["most"] == 16 and found["several"] == [str(i) for i in range(16)] and found["again"] == 16,
                 "sixteen channels of a connection, no more, and one again once one has ended", out)
            t.ok(found["local"] == 1, "a socket's path is refused", out)
            t.ok(tap.wait_for(lambda: [n for n, _ in bed.sum.sums[before:]] == [3000000] * 2, 20), "what is said before a client closes arrives", str(bed.sum.sums))
        else:
            t.ok(found["local"] == "local" and found["back"] != "opened" and found["socket"] != "opened", "by a port of its own; none back, no socket", out)


def records(t, d, bed):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("method") == "connect" and r.get("scheme") == "ssh"]
    ends = d.ends(admitted)
    t.ok(admitted and all(r.get("target") and r.get("user") == bed.server.user and r.get("credential") == "deploy" and r.get("role") == "ssh-back"
                          for r in admitted), "each is on record with its target", str(admitted[:2]))
    t.ok(all(r["id"] in ends for r in admitted), "and has one end", str([r for r in admitted if r["id"] not in ends][:3]))
    t.ok(all("exit_status" not in ends[r["id"]] for r in admitted), "which has no status")


def plain(t, bed):
    """Without `forward`, and beside a rule of commands."""
    d = bed.durward([dict(bed.rule(commands="echo *"))], "plain")
    d.policies["coder"]["rules"][0].pop("forward")
    box = durward.Sandbox(d)
    before = bed.server.logins()
    status, out, err = box.sh("bash -c \"$C\"", env={"C": "ssh -v -N -o ControlPath=~/c -M %s -f -L 7001:127.0.0.1:%d %s 2>~/err; exec 3<>/dev/tcp/127.0.0.1/7001; "
                                                     "timeout 5 cat <&3; ssh -o ControlPath=~/c -O exit x; cat ~/err >&2" % (QUICK, bed.echo.port, bed.at)})
    t.ok(out == "" and "durward: denied: the policy lets this server connect to nowhere: ssh_forwarding" in err,
         "no rule names a target: refused, and why is said", out, err)
    d.settle()
    t.ok(bed.server.logins() == before and [r.get("target") for r in d.kinds("denied") if r.get("code") == "ssh_forwarding"] ==
         ["127.0.0.1:%d" % bed.echo.port], "and on record")
    box.close()


def asked(t, bed):
    """Somebody is asked; a budget is used up."""
    d = bed.durward([{"ask": "ssh://" + bed.at, "with": {"ssh_key": "deploy"}, "host_keys": bed.server.host_key, "forward": bed.targets,
                      "budget": {"upload": "1MB/h"}}], "asked")
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    before = bed.server.logins()
    thread = threading.Thread(target=lambda: got.append(api.Api(d.socket).sh(
        box, "head -c 3000000 /dev/zero | ssh -v %s -W 127.0.0.1:%d %s 2>&1 >/dev/null" % (QUICK, bed.sum.port, bed.at))))
    thread.start()
    t.ok(tap.wait_for(lambda: calls.ask("GET", "/v1/approvals")["approvals"], 10), "it is held")
    held = calls.ask("GET", "/v1/approvals")["approvals"]
    t.ok(held and held[0]["method"] == "connect" and "/%s: 127.0.0.1:%d" % (bed.server.user, bed.sum.port) in str(held[0]),
         "who is asked sees where to", str(held))
    t.eq(bed.server.logins(), before, "before the server hears of it")
    calls.ask("POST", "/v1/approvals/%s/allow" % held[0]["id"])
    thread.join(30)
    t.ok(got and b"budget" in got[0][1], "a budget ends it, and why is said", str(got))
    t.ok(d.wait_records(1, "aborted", code="budget"), "and on record")
    d.stop()


def many(t, bed):
    """All that one sandbox may have at once, and another beside it."""
    d = bed.durward([bed.rule()], "many")
    d.serve()
    calls = api.Api(d.socket)
    one, other = calls.create(policy="coder")["id"], calls.create(policy="coder")["id"]
    script = ("cd; for m in $(seq 9); do ssh -o ControlPath=~/m$m -M -N -f %s; done; for m in $(seq 9); do for i in $(seq 15); do "
              "(sleep 600 | ssh -o ControlPath=~/m$m -o ControlMaster=no -o ProxyCommand=false -W 127.0.0.1:%d x >/dev/null 2>>~/err) & done; done; "
              "wait" % (bed.at, bed.echo.port))
    thread = threading.Thread(target=lambda: api.Api(d.socket).sh(one, script), daemon=True)
    thread.start()
    t.ok(tap.wait_for(lambda: len([r for r in d.kinds("admitted") if r.get("method") == "connect"]) >= 128, 60), "128 connections of one sandbox",
         str(len(d.kinds("admitted"))))
    status, out = calls.sh(other, "echo hello | ssh %s -W 127.0.0.1:%d %s" % (QUICK, bed.echo.port, bed.at))
    t.ok(out == b"hello\n", "another sandbox of its policy has its own", str((status, out)))
    d.settle()
    mine = [r for r in d.kinds("admitted") if r.get("method") == "connect" and r.get("sandbox", "").startswith(one[:8])]
    t.ok(len(mine) <= 128 or not mine, "and the first no more than 128", str(len(mine)))
    d.stop()


def changed(t, bed):
    """A connection ends with its rule."""
    d = bed.durward([bed.rule()], "changed")
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    thread = threading.Thread(target=lambda: got.append(api.Api(d.socket).sh(
        box, "(echo hello; sleep 60) | ssh -v %s -W 127.0.0.1:%d %s 2>&1" % (QUICK, bed.echo.port, bed.at))))
    thread.start()
    t.ok(d.wait_records(1, "admitted", method="connect"), "a connection is there")
    d.policies["coder"]["rules"][0]["forward"] = bed.targets[1:]
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "its target is taken out of the rule")
    t.ok(d.wait_records(1, "aborted", code="policy_changed"), "it is cut, and on record")
    calls.sh(box, "pkill sleep; true")
    thread.join(10)
    t.ok(got and b"policy_changed" in got[0][1], "and its client is told", str(got))
    d.stop()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    bed = Bed(t)
    d = bed.durward([bed.rule()])
    box = durward.Sandbox(d, binds=durward.client_binds("venv"))
    t.part(allowed, t, box, bed)
    t.part(jump, t, box, bed)
    t.part(refused, t, box, d, bed)
    t.part(bytes_both_ways, t, box, d, bed)
    t.part(libraries, t, box, bed)
    t.part(records, t, d, bed)
    box.close()
    t.part(plain, t, bed)
    t.part(asked, t, bed)
    t.part(changed, t, bed)
    t.part(many, t, bed)


tap.run(main, timeout=300)
