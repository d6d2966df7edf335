#!/usr/bin/python3 -B
"""The SSH broker's two roles, conquered, with a real server outside: a front that lies to its back, a
back that asks vault and dialer for what is not its own. Each row is what that one must not get; after
each the back serves an honest request (of the other role: it still has what is its own)."""
import base64
import errno
import os
import socket
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scan, seat, seat_broker, sshd, tap, wire  # noqa: E402
from harness.nginx import git_env  # noqa: E402
from harness.wire import message, text, u8, u32  # noqa: E402

HOST, CLOSED, SILENT = "git.example.com", "closed.example.com", "silent.example.com"
FETCH, PUSH, EXEC, SHELL, SFTP, ARCHIVE, LFS_FETCH, LFS_PUSH, FORWARD = 1, 2, 3, 4, 5, 6, 7, 8, 9  # enum ssh_verb
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
        d.secrets["by_word"] = {"ssh_password": {"password": "word"}}
        d.secret("beside_word", scan.canary("bw-"))
        d.secrets["by_beside"] = {"ssh_password": {"password": "beside_word"}}
        d.secrets["access"] = {"ssh_certificate": {"ca": "beside_key", "principals": ["agents"]}}
        d.resolve[HOST + ":22"] = d.resolve[CLOSED + ":22"] = self.server.address
        at, more = "ssh://%s@%s" % (self.server.user, HOST), {
            "with": {"ssh_key": "deploy"}, "host_keys": self.server.host_key}
        self.files = os.path.realpath(t.mkdir("files"))
        for name in ("read", "up", "closed"):
            os.mkdir(os.path.join(self.files, name))
        for name in ("read/one", "closed/secret", "up/mine"):
            t.write("files/" + name, name + "\n")
        os.symlink("../closed/secret", self.files + "/up/out")
        os.symlink("../closed", self.files + "/up/outside")
        os.symlink("../up/mine", self.files + "/closed/in")
        d.policy("coder", [dict(more, allow=at, commands=["echo hello", "show *"], read_files=[self.files + "/read/**", self.files + "/up/**"],
                                write_files=self.files + "/up/**", remove_files=self.files + "/up/**", file_megabytes=1, forward=["db.internal:5432", "127.0.0.1:9"]),
                           dict(more, allow=at + os.path.dirname(self.repo) + "/**"),
                           dict(more, allow=at + os.path.dirname(self.readable) + "/**", access="read-only"),
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policies["coder"]["rules"] += [
            {"allow": "ssh-agent://git", "with": {"ssh_signing_key": "signer"}},
            dict(more, allow=at + self.narrow, refs="refs/heads/agent/*"),
            dict(more, allow="ssh://%s@%s" % (self.server.user, SILENT), commands="echo hello"),
            dict(more, allow="ssh://word@%s" % SILENT, commands="echo hello", **{"with": {"ssh_password": "by_word"}}),
            dict(more, allow="ssh://certified@%s" % SILENT, commands="echo hello", **{"with": {"ssh_certificate": "access"}})]
        d.resolve[SILENT + ":22"] = "127.0.0.1:%d" % self.silent.getsockname()[1]
        d.policy("other", [dict(more, allow="ssh://%s@%s/**" % (self.server.user, CLOSED),
                                **{"with": {"ssh_key": "beside"}}),
                           dict(more, allow="ssh://word@%s/**" % CLOSED, **{"with": {"ssh_password": "by_beside"}})])
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
        ("a connection to a target of no rule", "ssh_target", facts(user, FORWARD, "db.internal:5433"), {}),
        ("a connection to a target in capitals", "ssh_target", facts(user, FORWARD, "DB.internal:5432"), {}),
        ("a connection to an address in another form", "ssh_target", facts(user, FORWARD, "127.1:9"), {}),
        ("a connection to no target", "ssh_target", facts(user, FORWARD, ""), {}),
        ("a connection for another user", "no_rule", facts("nobody2", FORWARD, "db.internal:5432"), {}),
        ("an archive of a repository of no rule", "no_rule", facts(user, ARCHIVE, "/closed/app"), {}),
        ("an archive of a repository's inside", "ssh_path", facts(user, ARCHIVE, good + "/.git"), {}),
        ("large objects of a repository of no rule", "no_rule", facts(user, LFS_FETCH, "/closed/app"), {}),
        ("large objects sent where the rule is read-only", "method", facts(user, LFS_PUSH, bed.readable), {}),
        ("another policy's host", "no_rule", facts(user, FETCH, "/a/b"), {"host": CLOSED}),
        ("a host of no rule", "no_rule", facts(user, FETCH, good), {"host": "evil.example.org"}),
        ("an address in place of the name", "no_rule", facts(user, FETCH, good), {"host": "127.0.0.1"}),
        ("another port", "no_rule", facts(user, FETCH, good), {"port": bed.server.port})))
    whole = facts(user, FETCH, good)
    f.lies(rows, (("facts that are cut", whole[:-1]), ("facts with more behind them", whole + b"x"),
                  ("a verb that there is not", facts(user, 10, good)), ("a connection with a terminal", facts(user, FORWARD, "127.0.0.1:9", term="xterm")), ("a shell with a command", facts(user, SHELL, "id")),
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


def packet(*parts):
    whole = b"".join(parts)
    return n32(len(whole)) + whole


def n32(n):
    return struct.pack(">I", n)


def s32(s):
    s = s if isinstance(s, bytes) else s.encode()
    return n32(len(s)) + s


class Session:
    """A front's stream of SFTP: what is asked, and the back's replies."""

    def __init__(self, f, ours):
        self.seat, self.ours, self.came = f.seat, ours, b""

    def say(self, data):
        for i in range(0, len(data), 9000):
            self.seat.call("sendto", self.ours, bytes([seat_broker.DATA]) + data[i:i + 9000], len(data[i:i + 9000]) + 1, 0x4000, 0, 0)

    def reply(self):
        """-> a reply's type and what is behind its id, or how it ended"""
        while len(self.came) < 4 or len(self.came) < 4 + int.from_bytes(self.came[:4], "big"):
            r, _, data = self.seat.receive(self.ours, 10)
            if r > 0 and data[0] == seat_broker.DATA:
                self.came += data[1:]
            elif r != -errno.ECONNRESET:
                return data[1:].split(b"\0")[0] if r > 0 and data[0] == seat_broker.REFUSED else "ended"
        n = int.from_bytes(self.came[:4], "big")
        got, self.came = self.came[4:4 + n], self.came[4 + n:]
        return got[0], got[5:]

    def ask(self, op, *parts, id=1):
        self.say(packet(bytes([op]), n32(id), *parts))
        return self.reply()

    def open(self, path, flags=1, attrs=n32(0)):
        got = self.ask(3, s32(path), n32(flags), attrs)
        return got[1][4:] if got[0] == 102 else got


REFUSED, UNSUPPORTED = 3, 8  # SSH_FX_PERMISSION_DENIED, SSH_FX_OP_UNSUPPORTED


def sftp(t, bed):
    """A front that hands on what none does: each path is decided again, where it leads too."""
    f = Front(bed, "ssh", HOST, 22)
    said, at = facts(bed.server.user, SFTP, ""), bed.files

    def within(work):
        got = f.ask(said, opened=lambda ours: work(Session(f, ours)))
        return got[1] if got not in ("ended", None) and got[0] == seat_broker.OPENED else got

    def status(got):
        return int.from_bytes(got[1][:4], "big") if isinstance(got, tuple) and got[0] == 101 else got
    f.honest = lambda: within(lambda s: (lambda h: s.ask(5, s32(h), n32(0), n32(0), n32(100))[1][4:] == b"read/one\n")(s.open(at + "/read/one")))
    rows = seat.Rows(t, "front to back", f.honest)
    t.ok(f.honest() is True, "a file that may be read")
    for name, op, parts in (
            ("a file of no pattern", 3, (s32(at + "/closed/secret"), n32(1), n32(0))),
            ("a file with a way upwards", 3, (s32(at + "/read/../closed/secret"), n32(1), n32(0))),
            ("a file with an empty part", 3, (s32(at + "/read//one"), n32(1), n32(0))),
            ("a file from where the server begins", 3, (s32("x"), n32(1), n32(0))),
            ("a file that may only be read, to write", 3, (s32(at + "/read/one"), n32(2), n32(0))),
            ("a file that may only be read, to be made empty", 3, (s32(at + "/read/one"), n32(1 | 16), n32(0))),
            ("a link that leads out", 3, (s32(at + "/up/out"), n32(1), n32(0))),
            ("a link of no pattern to what may be read", 3, (s32(at + "/closed/in"), n32(1), n32(0))),
            ("a file of a folder that leads out", 3, (s32(at + "/up/outside/secret"), n32(1), n32(0))),
            ("a file to be made in a folder that leads out", 3, (s32(at + "/up/outside/new"), n32(2 | 8), n32(0))),
            ("a list of no pattern", 11, (s32(at + "/closed"),)),
            ("a list of a folder that leads out", 11, (s32(at + "/up/outside"),)),
            ("what a file of no pattern is", 17, (s32(at + "/closed/secret"),)),
            ("what a file behind a link is", 17, (s32(at + "/up/out"),)),
            ("where a link that leads out leads", 16, (s32(at + "/up/out"),)),
            ("removal of what may be read", 13, (s32(at + "/read/one"),)),
            ("removal in a folder that leads out", 13, (s32(at + "/up/outside/secret"),)),
            ("a rename of what may be read", 18, (s32(at + "/read/one"), s32(at + "/up/x"))),
            ("a rename to a folder that leads out", 18, (s32(at + "/up/mine"), s32(at + "/up/outside/x"))),
            ("a rename over what is of no pattern", 200, (s32("posix-rename@openssh.com"), s32(at + "/up/mine"), s32(at + "/closed/secret"))),
            ("another name for what is of no pattern", 200, (s32("hardlink@openssh.com"), s32(at + "/closed/secret"), s32(at + "/up/x"))),
            ("another name for what may only be read", 200, (s32("hardlink@openssh.com"), s32(at + "/read/one"), s32(at + "/up/x"))),
            ("a mode of what may only be read", 9, (s32(at + "/read/one"), n32(4), n32(0o777))),
            ("a mode through a link", 9, (s32(at + "/up/out"), n32(4), n32(0o777))),
            ("a set-user-ID bit", 9, (s32(at + "/up/mine"), n32(4), n32(0o4755))),
            ("an owner", 9, (s32(at + "/up/mine"), n32(2), n32(1), n32(1))),
            ("a size beyond the rule's", 9, (s32(at + "/up/mine"), n32(1), n32(0), n32(1000001))),
            ("a file to append to where sizes have a bound", 3, (s32(at + "/up/mine"), n32(2 | 4), n32(0)))):
        got = within(lambda s: s.ask(op, *parts))
        rows.row(name + " over SFTP", status(got) == REFUSED and tree(at) == BEFORE, repr(got))
    for name, work in (
            ("a write to what was opened to read", lambda s: s.ask(6, s32(s.open(at + "/up/mine")), n32(0), n32(0), s32("x"))),
            ("a read of what was opened to write", lambda s: s.ask(5, s32(s.open(at + "/up/mine", 2)), n32(0), n32(0), n32(9))),
            ("a mode of what was opened to read", lambda s: s.ask(10, s32(s.open(at + "/up/mine")), n32(4), n32(0o777))),
            ("a list of a file", lambda s: s.ask(12, s32(s.open(at + "/up/mine")))),
            ("a write beyond the rule's size", lambda s: s.ask(6, s32(s.open(at + "/up/mine", 2)), n32(0), n32(1000000), s32("x"))),
            ("a read beyond the rule's size", lambda s: s.ask(5, s32(s.open(at + "/up/mine")), n32(0), n32(1000000), n32(9))),
            ("an owner of what is open", lambda s: s.ask(10, s32(s.open(at + "/up/mine", 2)), n32(2), n32(1), n32(1)))):
        got = within(work)
        rows.row(name + " over SFTP", status(got) == REFUSED and tree(at) == BEFORE, repr(got))
    for name, op, parts in (("a symbolic link", 20, (s32(at + "/closed/secret"), s32(at + "/up/x"))),
                            ("an extension that is not known", 200, (s32("copy-data"), s32("x")))):
        got = within(lambda s: s.ask(op, *parts))
        rows.row(name + " over SFTP", status(got) == UNSUPPORTED and tree(at) == BEFORE, repr(got))
    for name, work in (("a handle that there is not", lambda s: s.ask(5, s32(n32(9)), n32(0), n32(0), n32(9))),
                       ("a handle after it was closed",
                        lambda s: (lambda h: (s.ask(4, s32(h)), s.ask(5, s32(h), n32(0), n32(0), n32(9)))[1])(s.open(at + "/read/one"))),
                       ("more open files than there may be", lambda s: [s.ask(3, s32(at + "/read/one"), n32(1), n32(0)) for _ in range(65)][-1])):
        got = within(work)
        rows.row(name + " over SFTP", status(got) == 4, repr(got))
    for name, data in (("a packet that is cut", packet(b"\x03" + n32(1))),
                       ("a packet with more behind it", packet(b"\x11" + n32(1) + s32(at + "/read/one") + b"x")),
                       ("a number of a request that there is not", packet(b"\x11" + n32(64) + s32(at + "/read/one"))),
                       ("an empty packet", n32(0)), ("a packet longer than any", n32(1 << 20) + b"x")):
        got = within(lambda s: (s.say(data), s.reply())[1])
        rows.row(name + " over SFTP", got == b"upstream_sftp", repr(got))
    f.seat.end()


BEFORE = {"read/one": "read/one\n", "closed/secret": "closed/secret\n", "up/mine": "up/mine\n", "up/out": "closed/secret\n", "closed/in": "up/mine\n"}


def tree(at):
    """All files, and what is in them; a mode that was changed shows, too."""
    ret = {}
    for folder, _, names in os.walk(at):
        for name in names:
            path = os.path.join(folder, name)
            if os.stat(path).st_mode & 0o111:
                return path
            with open(path) as f:
                ret[os.path.relpath(path, at)] = f.read()
    return ret


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


def login(blob, algorithm="ssh-ed25519-cert-v01@openssh.com"):
    return (text(b"s" * 32) + b"\x32" + text("git") + text("ssh-connection") + text("publickey") + b"\1" + text(algorithm) + text(blob))


def certificates(t, b, bed):
    """A CA of its policy's: certificates for sandboxes, and logins with those, are all that it makes."""
    def made(sandbox):
        b.vault.send(message(wire.SIGN_TEXT, u32(7), text("access"), text(sandbox), u32(1), text("")))
        got = b.vault.next(5)
        return got[1].u32() and got[1].u8() and got[1].bytes()
    own, other = made("box"), made("other")
    t.ok(own and other and own != other and b.sign("access", 0, login(own)) == 1, "a certificate, and a login with it", repr(own)[:80])
    ca = base64.b64decode(open(os.path.join(bed.server.dir, "beside.pub")).read().split()[1])
    b.refused_signatures((("a login with another sandbox's certificate", "access", 0, login(other)),
                          ("a login with the CA's own key", "access", 0, login(ca, "ssh-ed25519")),
                          ("a certificate that it has written", "access", 1, own[:-100]),
                          ("a certificate's text as a login", "access", 0, own[:-87]),
                          ("a login with a certificate that it has changed", "access", 0, login(own.replace(b"agents", b"admins"))),
                          ("a commit signed by a CA", "access", 0, sshsig("git"))))


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
    certificates(t, b, bed)
    told = b.get("by_word")
    b.to_vault.row("a password in place of what is told of it", told[1] == 1 and bed.word not in told[2], repr(told))
    t.eq(b.sign("by_word", 3, b""), 1, "its own password, for one login")
    b.refused_signatures((("another policy's password", "by_beside", 3, b""), ("a password, with a text", "by_word", 3, b"x"),
                          ("a password, as a signature", "by_word", 0, login(b"x"))))
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
    seat_broker.run(t, Bed(t), "ssh", (front, sftp, agent, many, back))


tap.run(main, timeout=240)
