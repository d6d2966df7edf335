#!/usr/bin/python3 -B
"""A key that only an SSH agent of the host has: it logs in and signs for sandboxes, no process of ours ever holds it, and nobody inside
reaches the agent. Agents that ask, stop, lie or say nothing. And what `ask` and budgets make of signatures inside."""
import base64
import hashlib
import os
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import accepting, api, durward, scan, sshd, tap  # noqa: E402

HOST = "git.example.com"
IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@example.com"}


def text(b):
    return struct.pack(">I", len(b)) + b


def bed(t, server, named, name="d", **more):
    d = durward.Durward(t, name)
    d.secrets["host"] = {"ssh_agent": dict({"key": named}, **more)}
    d.secrets["deploy"] = {"ssh_key": {"key": "host"}}
    d.resolve[HOST + ":22"] = server.address
    d.policy("coder", [{"allow": "ssh://%s@%s" % (server.user, HOST), "commands": "echo *", "with": {"ssh_key": "deploy"},
                        "host_keys": server.host_key}])
    return d


def logs_in(t, server, agent):
    with open(server.dir + "/login.pub") as f:
        public = " ".join(f.read().split()[:2])
    at = "%s@%s" % (server.user, HOST)
    for what, named in (("its public half", public + " a comment"), ("its fingerprint", sshd.fingerprint(public))):
        d = bed(t, server, named, "by-" + what.split()[1])
        d.env["SSH_AUTH_SOCK"] = agent.socket
        r = d.run(["sh", "-c", "ssh %s 'echo hello'; echo ${SSH_AUTH_SOCK-none}; ls -d %s" % (at, agent.socket)])
        t.ok(r.stdout == "hello\nnone\n", "a key of an agent, named by %s, logs in; inside is no agent" % what, r.stdout, r.stderr)
    r = d.command("secret", "test", "-c", d.conf, "host")
    t.ok(r.returncode == 0 and "ok" in r.stdout, "`durward secret test` finds it there", r.stdout, r.stderr)
    d = bed(t, server, public, "socket", socket=agent.socket)
    box = durward.Sandbox(d)
    status, out, err = box.sh("ssh %s 'echo hello'" % at)
    t.ok(out == "hello\n", "an agent that the configuration names", out, err)
    if os.geteuid() == 0:
        blob = base64.b64decode(b"".join(server.key.split(b"\n")[1:-2]))
        scanner = scan.Scanner(deploy=blob[blob.rindex(b"\0\0\0\x40") + 4:][:32], text=server.key.split(b"\n")[3])
        for pid, role in d.roles():
            scan.scan_process(pid, scanner, role)
        t.eq(scanner.report(), [], "0 copies of the key in any role, the vault among them")
    else:
        t.skip("memory of the roles", "reading other processes' memory needs root")
    agent.add("-d", server.dir + "/login")
    d.settle()
    status, out, err = box.sh("ssh %s 'echo hello'" % at)
    t.ok(status == 255 and out == "" and "agent" in err, "a key that is taken out of the agent logs in no more, and why is said", out, err)
    agent.add("-c", server.dir + "/login")
    status, out, err = tap.wait_for(lambda: (lambda r: r if "does not sign" in r[2] else None)(box.sh("ssh %s 'echo hello'" % at)), 5) or (0, "", "")
    t.ok(status == 255, "one that its user does not confirm", out, err)
    agent.add("-d", server.dir + "/login")
    agent.add(server.dir + "/login")
    t.ok(tap.wait_for(lambda: box.sh("ssh %s 'echo hello'" % at)[1] == "hello\n", 5), "and it logs in again when it is added")
    agent.stop()
    status, out, err = box.sh("ssh %s 'echo hello'" % at)
    t.ok(status == 255 and out == "", "an agent that is gone", out, err)
    agent.start()
    agent.add(server.dir + "/login")
    t.ok(tap.wait_for(lambda: box.sh("ssh %s 'echo hello'" % at)[1] == "hello\n", 5), "another in its place")
    box.close()


class Liar:
    """An agent that answers as it is told: a function of the question's bytes -> bytes, None to go away."""

    def __init__(self, t, answer):
        self.agent_dir = t.mkdir("liar")
        self.path = os.path.join("/tmp", "durward-liar-%d" % os.getpid())
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.answer, self.asked = answer, []
        self.s = socket.socket(socket.AF_UNIX)
        self.s.bind(self.path)
        self.s.listen(16)
        accepting.accepting(self.s, self.one)

    def one(self, c):
        with c:
            while True:
                got = b""
                while len(got) < 4 or len(got) < 4 + struct.unpack(">I", got[:4])[0]:
                    part = c.recv(65536)
                    if not part:
                        return
                    got += part
                self.asked.append(got[4:])
                said = self.answer(got[4:])
                if said is None:
                    return
                try:
                    c.sendall(said)
                except OSError:
                    return

    def close(self):
        self.s.close()
        os.unlink(self.path)


def liars(t, server):
    """What an agent says that is no answer fails the login, and the vault goes on."""
    with open(server.dir + "/login.pub") as f:
        public = " ".join(f.read().split()[:2])
    blob, at = base64.b64decode(public.split()[1]), "%s@%s" % (server.user, HOST)
    listed = text(b"\x0c" + struct.pack(">I", 1) + text(blob) + text(b"x"))
    how = {"list": listed, "sign": text(b"\x05")}
    liar = Liar(t, lambda q: how["list"] if q[:1] == b"\x0b" else how["sign"])
    d = bed(t, server, public, "liars", socket=liar.path)
    d.serve()
    calls = api.Api(d.socket)
    box = calls.create(policy="coder")["id"]

    def tries():
        return calls.sh(box, "ssh %s 'echo hello' 2>&1" % at)
    vault = [p for p, r in d.roles() if r == "vault"]
    for what, sign in (("a failure", text(b"\x05")), ("another message", text(b"\x06")), ("nothing in it", text(b"\x0e")),
                       ("a signature cut", text(b"\x0e" + struct.pack(">I", 90) + b"x")),
                       ("one by another algorithm", text(b"\x0e" + text(text(b"ssh-rsa") + text(b"x" * 64)))),
                       ("one that is wrong", text(b"\x0e" + text(text(b"ssh-ed25519") + text(b"x" * 64)))),
                       ("one of a megabyte", text(b"\x0e" + text(text(b"ssh-ed25519") + text(b"x" * 1000000)))),
                       ("a length of 4 GiB", b"\xff\xff\xff\xff"), ("the end", None)):
        how["sign"] = sign
        status, out = tries()
        t.ok(status == 255 and b"hello" not in out, "asked to sign, an agent says %s: no login" % what, out)
    asked = [q for q in liar.asked if q[:1] == b"\x0d"]
    t.ok(asked and all(q[1:].startswith(text(blob)) and b"ssh-connection" in q for q in asked),
         "it is asked for logins with that key, and nothing else", str(asked[:1]))
    for what, said in (("no list", text(b"\x05")), ("a list cut", text(b"\x0c" + struct.pack(">I", 3) + text(blob))),
                       ("a list without it", text(b"\x0c" + struct.pack(">I", 1) + text(b"x" * 40) + text(b"y"))),
                       ("a list of 4 billion", text(b"\x0c\xff\xff\xff\xff")), ("a length of 4 GiB", b"\xff\xff\xff\xff"), ("the end", None)):
        how["list"], how["sign"] = said, text(b"\x05")
        tap.wait_for(lambda: len(liar.asked) > 0 and calls.ask("GET", "/v1/sandboxes") is not None, 1)
        status, out = tries()
        t.ok(status == 255 and b"hello" not in out, "asked for its keys, an agent says %s: no login" % what, out)
    t.eq([p for p, r in d.roles() if r == "vault"], vault, "by the same vault")
    d.stop()
    liar.close()


def signs(t, agent):
    """git's signatures, by keys of two kinds in the agent; policy says in which namespaces, as of any key."""
    d = durward.Durward(t, "signs")
    keys = {}
    for name, kind in (("signer", "ed25519"), ("filer", "rsa")):
        path = os.path.join(d.dir, name)
        keys[name] = sshd.keygen(path, kind, 3072 if kind == "rsa" else None)[1]
        agent.add(path)
        os.unlink(path)
        d.secrets[name + "_host"] = {"ssh_agent": {"key": sshd.fingerprint(keys[name]), "socket": agent.socket}}
    d.secrets["signer"] = {"ssh_signing_key": {"key": "signer_host"}}
    d.secrets["filer"] = {"ssh_signing_key": {"key": "filer_host", "namespaces": ["file"]}}
    d.policy("coder", [{"allow": "ssh-agent://git", "with": {"ssh_signing_key": "signer"}},
                       {"allow": "ssh-agent://file", "with": {"ssh_signing_key": "filer"}}])
    box = durward.Sandbox(d)
    status, out, err = box.sh(
        "set -e; cd ~; git init -q -b main r; cd r; echo '* %s' > ~/allowed; git config gpg.ssh.allowedSignersFile ~/allowed; "
        "git commit -q -S --allow-empty -m one; git verify-commit HEAD; git log -1 --format=%%G?%%GK; cd ~; echo '%s' > k.pub; echo x > f; "
        "ssh-keygen -q -Y sign -n file -f k.pub f; echo '* %s' > a2; ssh-keygen -Y verify -n file -f a2 -I x -s f.sig < f >&2" % (
            keys["signer"], keys["filer"], keys["filer"]), env=IDENTITY)
    t.ok(status == 0 and out == "G" + sshd.fingerprint(keys["signer"]) + "\n" and "Good \"file\" signature" in err,
         "commits and files are signed by keys of the host's agent, and verify", out, err)
    status, out, err = box.sh("cd ~; echo y > g; ssh-keygen -q -Y sign -n other -f k.pub g; ssh-keygen -q -Y sign -n git -f k.pub g")
    t.ok(status != 0 and err.count("Signing g failed") == 2, "in no other namespace", out, err)
    box.close()


def refused(t):
    """What the configuration may not make of such a key."""
    d = durward.Durward(t, "refused")
    d.secret("file", "text")
    key = "SHA256:" + base64.b64encode(hashlib.sha256(b"x").digest()).decode().rstrip("=")
    ssh = {"allow": "ssh://o@h.example.com", "commands": "x", "host_keys": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"}
    for what, secrets, rule in (
            ("a key sent to a web server", {"deploy": {"env": "X"}}, {"allow": "api.example.com", "with": {"bearer": "host"}}),
            ("an agent's key named by a rule itself", {}, dict(ssh, **{"with": {"ssh_key": "host"}})),
            ("an agent's key for another kind of secret", {"k": {"hmac_key": {"key": "host"}}}, dict(ssh, **{"with": {"ssh_key": "deploy"}})),
            ("a fingerprint that is none", {"host": {"ssh_agent": {"key": "SHA256:xyz"}}}, dict(ssh, **{"with": {"ssh_key": "deploy"}})),
            ("a key of a kind that is not", {"host": {"ssh_agent": {"key": "ssh-dss AAAA"}}}, dict(ssh, **{"with": {"ssh_key": "deploy"}})),
            ("no key at all", {"host": {"ssh_agent": {}}}, dict(ssh, **{"with": {"ssh_key": "deploy"}}))):
        d.secrets = dict({"host": {"ssh_agent": {"key": key}}, "deploy": {"ssh_key": {"key": "host"}}}, **secrets)
        d.policy("coder", [rule])
        r = d.check()
        t.ok(r.returncode != 0, what + " is refused at load", r.stdout, r.stderr)
    d.secrets = {"host": {"ssh_agent": {"key": key}}, "deploy": {"ssh_key": {"key": "host"}}}
    d.policy("coder", [dict(ssh, **{"with": {"ssh_key": "deploy"}})])
    r = d.check()
    t.eq(r.returncode, 0, "and what is meant is not")


def asked(t):
    """Somebody is asked for a signature before it is made; a budget bounds how many there are."""
    d = durward.Durward(t, "asked")
    private, public = sshd.keygen(os.path.join(d.dir, "key"))
    d.secret("file", private)
    d.secrets["signer"] = {"ssh_signing_key": {"key": "file", "namespaces": ["git", "file"]}}
    d.policy("coder", [{"ask": "ssh-agent://git", "with": {"ssh_signing_key": "signer"}},
                       {"allow": "ssh-agent://file", "with": {"ssh_signing_key": "signer"}, "budget": {"requests": "2/h"}}])
    d.serve()
    calls, got = api.Api(d.socket), []
    box = calls.create(policy="coder")["id"]
    line = "cd; echo '%s' > k.pub; date > f; rm -f f.sig; ssh-keygen -q -Y sign -n %s -f k.pub f 2>&1; ls f.sig"

    def sign(space):
        got.append(api.Api(d.socket).sh(box, line % (public, space)))
    for allow in (True, False):
        got.clear()
        thread = threading.Thread(target=sign, args=("git",))
        thread.start()
        t.ok(tap.wait_for(lambda: calls.ask("GET", "/v1/approvals")["approvals"], 10), "a signature waits for somebody's word")
        held = calls.ask("GET", "/v1/approvals")["approvals"][0]
        t.ok(held["method"] == "sign" and "/git: sha512:" in held["url"] and not got,
             "who is asked sees namespace and hash", str(held))
        calls.ask("POST", "/v1/approvals/%s/%s" % (held["id"], "allow" if allow else "deny"))
        thread.join(15)
        t.ok(got and (got[0][1] == b"f.sig\n") == allow, "it is made once that is given" if allow else "and not where it is denied", str(got))
    results = []
    for i in range(3):
        got.clear()
        sign("file")
        results.append(got[0][1].endswith(b"f.sig\n"))
    t.eq(results, [True, True, False], "two signatures of a budget of two, and no third")
    d.settle()
    ends = [(r.get("kind"), r.get("code")) for r in d.kinds("denied") + d.kinds("aborted") if r.get("method") == "sign"]
    begun = {r["id"] for r in d.kinds("admitted") if r.get("method") == "sign"}
    t.ok(("denied", "budget") in ends or ("aborted", "budget") in ends, "that is on record", str(ends))
    t.ok(tap.wait_for(lambda: len([r for r in d.kinds("completed") if r["id"] in begun]) == 3, 5), "and so are the three that were made",
         str(d.kinds("completed") + d.kinds("aborted")))
    d.stop()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    agent = sshd.Agent(t)
    server = sshd.Sshd(t)
    agent.add(server.dir + "/login")
    t.part(refused, t)
    t.part(logs_in, t, server, agent)
    t.part(signs, t, agent)
    t.part(liars, t, server)
    t.part(asked, t)
    subprocess.run(["ssh-add", "-D"], env=dict(os.environ, SSH_AUTH_SOCK=agent.socket), stderr=subprocess.DEVNULL)


tap.run(main, timeout=300)
