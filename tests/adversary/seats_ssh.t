#!/usr/bin/python3 -B
"""The SSH broker's two roles, conquered, with a real server outside: a front that lies to its back, a
back that asks vault and dialer for what is not its own. Each row is what that one must not get; after
each the back serves an honest request (of the other role: it still has what is its own)."""
import base64
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scan, seat, seat_broker, sshd, tap  # noqa: E402
from harness.nginx import git_env  # noqa: E402
from harness.wire import text, u8, u32  # noqa: E402

HOST, CLOSED, SILENT = "git.example.com", "closed.example.com", "silent.example.com"
FETCH, PUSH, EXEC, SHELL = 1, 2, 3, 4  # enum ssh_verb
SSH = 3                                # enum scheme
AGENT = "gate.durward.internal"


class Bed:
    """One sandbox with rules of ssh://, and another policy beside it in the same daemon."""

    def __init__(self, t):
        self.t, self.seats = t, seat.Seats(t)
        self.server = sshd.Sshd(t)
        self.repo = self.server.repository("acme", "app")
        self.readable, self.narrow = self.server.repository("read", "app"), self.server.repository("refs", "app")
        self.silent = socket.create_server(("127.0.0.1", 0))
        self.silent.listen(1024)
        t.cleanup(self.silent.close)
        self.d = d = durward.Durward(t)
        d.secret("deploy_key", self.server.key)
        d.secret("beside_key", sshd.keygen(os.path.join(self.server.dir, "beside"))[0])
        self.word = scan.canary("ot-")
        d.secret("word", self.word)
        d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
        self.signing, self.public = sshd.keygen(os.path.join(self.server.dir, "signer"))
        d.secret("signer_key", self.signing)
        d.secrets["signer"] = {"ssh_signing_key": {"key": "signer_key"}}
        d.secrets["beside"] = {"ssh_key": {"key": "beside_key"}}
        d.resolve[HOST + ":22"] = d.resolve[CLOSED + ":22"] = self.server.address
        at, more = "ssh://%s@%s" % (self.server.user, HOST), {
            "with": {"ssh_key": "deploy"}, "host_keys": self.server.host_key}
        d.policy("coder", [dict(more, allow=at, commands=["echo hello", "show *"]),
                           dict(more, allow=at + os.path.dirname(self.repo) + "/**"),
                           dict(more, allow=at + os.path.dirname(self.readable) + "/**", access="read-only"),
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policies["coder"]["rules"] += [
            {"allow": "ssh-agent://git", "with": {"ssh_signing_key": "signer"}},
            dict(more, allow=at + self.narrow, refs="refs/heads/agent/*"),
            dict(more, allow="ssh://%s@%s" % (self.server.user, SILENT), commands="echo hello")]
        d.resolve[SILENT + ":22"] = "127.0.0.1:%d" % self.silent.getsockname()[1]
        d.policy("other", [dict(more, allow="ssh://%s@%s/**" % (self.server.user, CLOSED),
                                **{"with": {"ssh_key": "beside"}})])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])

    def logins(self):
        return self.server.logins()


def facts(user, verb, said, git=0, term="", columns=0, rows=0):
    return text(user) + u8(verb) + text(said) + u8(git) + text(term) + u32(columns) + u32(rows)


def signs(space, key=None, algorithm="sha512", digest=b"\1" * 64, flags=0):
    return text(key) + u32(flags) + text(space) + text(algorithm) + text(digest)


class Front(seat_broker.Front):
    def honest(self):
        got = self.ask(facts(self.bed.server.user, EXEC, "echo hello"))
        return True if got and got[0] == seat_broker.OPENED else got


def front(t, bed):
    f = Front(bed, "ssh", HOST, 22)
    rows = seat.Rows(t, "front to back", f.honest)
    user, good = bed.server.user, bed.repo
    f.refusals(rows, (
        ("a repository of no rule", "no_rule", facts(user, FETCH, "/closed/app"), {}),
        ("a path upwards", "path_ambiguous", facts(user, FETCH, good + "/../../closed/app"), {}),
        ("a path of another user's home", "ssh_path", facts(user, FETCH, "~root/app"), {}),
        ("an option in place of a path", "ssh_path", facts(user, FETCH, "--exec=id"), {}),
        ("a push where the rule is read-only", "method", facts(user, PUSH, bed.readable), {}),
        ("another user", "no_rule", facts("nobody2", FETCH, good), {}),
        ("an option in place of a user", "ssh_user", facts("-oX", FETCH, good), {}),
        ("a command of no rule", "command", facts(user, EXEC, "id"), {}),
        ("a command with another behind it", "command", facts(user, EXEC, "echo hello; id"), {}),
        ("a command with a line behind it", "command", facts(user, EXEC, "show a\nid"), {}),
        ("an option where a word is allowed", "command", facts(user, EXEC, "show -x"), {}),
        ("a terminal for a command", "ssh_terminal", facts(user, EXEC, "echo hello", term="xterm"), {}),
        ("a terminal for git", "ssh_terminal", facts(user, FETCH, good, term="xterm"), {}),
        ("a path with a shell's signs", "ssh_path", facts(user, FETCH, good + "/$(id)"), {}),
        ("a repository's inside", "ssh_path", facts(user, FETCH, good + "/.git"), {}),
        ("a shell", "method", facts(user, SHELL, ""), {}),
        ("another policy's host", "no_rule", facts(user, FETCH, "/a/b"), {"host": CLOSED}),
        ("a host of no rule", "no_rule", facts(user, FETCH, good), {"host": "evil.example.org"}),
        ("an address in place of the name", "no_rule", facts(user, FETCH, good), {"host": "127.0.0.1"}),
        ("another port", "no_rule", facts(user, FETCH, good), {"port": bed.server.port})))
    whole = facts(user, FETCH, good)
    f.lies(rows, (("facts that are cut", whole[:-1]), ("facts with more behind them", whole + b"x"),
                  ("a verb that there is not", facts(user, 9, good)), ("a shell with a command", facts(user, SHELL, "id")),
                  ("a zero byte in a command", facts(user, EXEC, "echo hello\0; id")),
                  ("a terminal's name that is none", facts(user, EXEC, "echo hello", term="x;id")),
                  ("a version of git's protocol that there is not", facts(user, FETCH, good, git=9))))
    pushes(t, bed, f, rows)
    rows.refused(f.seat, seat.calls_of_all())
    f.seat.end()


def pushes(t, bed, f, rows):
    """A front that hands on what its rule's `refs` do not allow."""
    def git(*argv):
        return subprocess.run(["git", "--git-dir", bed.narrow] + list(argv), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=git_env(t)).stdout
    first, zero, none = git("rev-parse", "main").strip(), b"0" * 40, b"1" * 40
    git("update-ref", "refs/heads/agent/x", "main")

    def command(old, new, ref, capabilities=b"\0report-status"):
        line = old + b" " + new + b" " + ref + capabilities + b"\n"
        return b"%04x" % (len(line) + 4) + line
    empty = b"PACK\0\0\0\2\0\0\0\0" + bytes.fromhex("029d08823bd8a8eab510ad6ac75c823cfd3ed31e")
    for name, said in (
            ("a reference that its rule does not name", command(zero, first, b"refs/heads/main2") + b"0000" + empty),
            ("a reference beside one that is named",
             command(zero, first, b"refs/heads/agent/y") + command(zero, first, b"refs/heads/main2", b"") + b"0000" + empty),
            ("a delete", command(first, zero, b"refs/heads/agent/x") + b"0000"),
            ("an update that is no fast-forward", command(first, none, b"refs/heads/agent/x") + b"0000" + empty),
            ("a push that is cut", command(zero, first, b"refs/heads/agent/y")),
            ("a push with a certificate", b"0010push-cert\0x\n" + b"0000"),
            ("commands in no form", b"00zz")):
        before = git("for-each-ref")
        got = f.ask(facts(bed.server.user, PUSH, bed.narrow),
                    more=[bytes([seat_broker.DATA]) + said[i:i + 9000] for i in range(0, len(said), 9000)] + [bytes([seat_broker.END])])
        rows.row(name, got not in ("ended", None) and got[0] == seat_broker.REFUSED and
                 got[1].split(b"\0")[0] in (b"ref", b"body_ambiguous") and git("for-each-ref") == before, repr(got))
    got = f.ask(facts(bed.server.user, PUSH, bed.narrow),
                more=[bytes([seat_broker.DATA]) + command(zero, first, b"refs/heads/agent/y") + b"0000" + empty, bytes([seat_broker.END])])
    t.ok(got not in ("ended", None) and got[0] == seat_broker.END and b"agent/y" in git("for-each-ref"), "what is allowed goes through", repr(got))


def agent(t, bed):
    """A front that asks for signatures which no client of its agent could ask for."""
    key = base64.b64decode(bed.public.split()[1])
    f = Front(bed, "ssh", AGENT, 22)
    f.honest = lambda: (lambda got: True if got not in ("ended", None) and got[0] == seat_broker.DATA else got)(f.ask(signs("git", key)))
    rows = seat.Rows(t, "front to back", f.honest)
    t.ok(f.honest() is True, "a signature in the namespace of its rule")
    with open(os.path.join(bed.server.dir, "login.pub"), "rb") as p:
        login = base64.b64decode(p.read().split()[1])
    f.refusals(rows, (
        ("a signature in another namespace", "no_rule", signs("file", key), {}),
        ("a signature with a login's key", "ssh_agent_key", signs("git", login), {}),
        ("a signature with a key of nobody's", "ssh_agent_key", signs("git", key + b"x"), {})))
    got, ended = f.ask(signs("git", key), host=HOST), f.wire.ended()
    f.heal()
    rows.row("a signature at a server of its policy's", got == "ended" and ended, repr(got))
    whole = signs("git", key)
    f.lies(rows, (("a signature's facts that are cut", whole[:-1]), ("a signature's facts with more behind them", whole + b"x"),
                  ("a namespace that is none", signs("a/b", key)), ("a namespace with a NUL", signs("git\0", key)),
                  ("a hash that is not as long as it says", signs("git", key, digest=b"\1" * 32)),
                  ("a login in place of a hash", signs("git", key, digest=text(b"s" * 32) + b"\x32" + text(b"git"))),
                  ("a hash of SHA-1", signs("git", key, "sha1", b"\1" * 20)),
                  ("a command for the agent", facts(bed.server.user, EXEC, "echo hello"))))
    f.seat.end()


def many(t, bed):
    """All the requests that one sandbox may have at its policy's back."""
    f = Front(bed, "ssh", HOST, 22)
    rows = seat.Rows(t, "front to back", f.honest)
    said = facts(bed.server.user, EXEC, "echo hello")
    held = [f.open(said, SILENT) for _ in range(128)]
    r, _, _ = f.seat.receive(held[-1], 0.5)
    t.ok(r < 0, "128 requests of a sandbox wait for their server", str(r))
    last = f.open(said, SILENT)
    r, _, _ = f.seat.receive(last, 5)
    for fd in held + [last]:
        f.seat.call("close", fd)
    rows.row("more requests than a sandbox may have", r == 0, str(r))
    f.seat.end()


def sshsig(space):
    return b"SSHSIG" + text(space) + text("") + text("sha512") + text(b"\1" * 64)


def back(t, bed):
    b = seat_broker.Back(t, bed, "ssh")
    told = b.get("deploy")
    t.ok(told[1] == 1 and b"ssh-ed25519" in told[2], "what is told of its key is the public half")
    whole = b"".join(x for x in bed.server.key.split(b"\n")[1:-2])
    b.to_vault.row("its key's private half", whole[-60:] not in told[2] and len(told[2]) < 200, repr(told))
    b.refused_secrets((("the file of its key", "deploy_key"), ("another policy's key", "beside"),
                       ("a secret of its policy's that is no key", "word"),
                       ("a secret that there is not", "nobody")), bed.word)
    b.refused_signatures((("a signature over what is no login", "deploy", 0, b"x"),
                          ("a signature over a commit", "deploy", 0, b"SSHSIG\0" + b"x" * 100),
                          ("a signature with another policy's key", "beside", 0, b"x")))
    b.refused_signatures((("a login signed by a key of signatures", "signer", 0,
                           text(b"s" * 32) + b"\x32" + text("git") + text("ssh-connection") + text("publickey") + b"\1" +
                           text("ssh-ed25519") + text(base64.b64decode(bed.public.split()[1]))),
                          ("a signature in a namespace of no declaration", "signer", 0, sshsig("file")),
                          ("a signature over more than its text", "signer", 0, sshsig("git") + b"x"),
                          ("a commit signed by a key of logins", "deploy", 0, sshsig("git"))))
    t.eq(b.sign("signer", 0, sshsig("git")), 1, "what is its own is signed")
    b.refused_captures()
    b.refused_places(SSH, 22, (("another policy's server", CLOSED, 22), ("a host of no rule", "evil.example.org", 22),
                               ("another port", HOST, bed.server.port)))
    b.refused_ends(bed)
    b.end()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    seat_broker.run(t, Bed(t), "ssh", (front, agent, many, back))


tap.run(main, timeout=240)
