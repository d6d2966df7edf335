#!/usr/bin/python3 -B
"""The SSH broker's two roles, conquered, with a real server outside: a front that lies to its back, a
back that asks vault and dialer for what is not its own. Each row is what that one must not get; after
each the back serves an honest request (of the other role: it still has what is its own)."""
import errno
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scan, seat, sshd, tap, wire  # noqa: E402
from harness.nginx import git_env  # noqa: E402
from harness.wire import message, text, u8, u32  # noqa: E402

HOST, CLOSED, SILENT = "git.example.com", "closed.example.com", "silent.example.com"
FETCH, PUSH, EXEC, SHELL = 1, 2, 3, 4  # enum ssh_verb
DATA, END, OPENED, REFUSED = 1, 3, 4, 5  # enum broker_packet
SSH, HTTPS = 3, 2                      # enum scheme
UNIX, SEQPACKET = 1, 5 | 0o4000


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
        d.secrets["beside"] = {"ssh_key": {"key": "beside_key"}}
        d.resolve[HOST + ":22"] = d.resolve[CLOSED + ":22"] = self.server.address
        at, more = "ssh://%s@%s" % (self.server.user, HOST), {
            "with": {"ssh_key": "deploy"}, "host_keys": self.server.host_key}
        d.policy("coder", [dict(more, allow=at, commands=["echo hello", "show *"]),
                           dict(more, allow=at + os.path.dirname(self.repo) + "/**"),
                           dict(more, allow=at + os.path.dirname(self.readable) + "/**", access="read-only"),
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policies["coder"]["rules"] += [
            dict(more, allow=at + self.narrow, refs="refs/heads/agent/*"),
            dict(more, allow="ssh://%s@%s" % (self.server.user, SILENT), commands="echo hello")]
        d.resolve[SILENT + ":22"] = "127.0.0.1:%d" % self.silent.getsockname()[1]
        d.policy("other", [dict(more, allow="ssh://%s@%s/**" % (self.server.user, CLOSED),
                                **{"with": {"ssh_key": "beside"}})])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])


def facts(user, verb, said, git=0, term="", columns=0, rows=0):
    return text(user) + u8(verb) + text(said) + u8(git) + text(term) + u32(columns) + u32(rows)


class Front:
    """A front's place: requests to its back, each with a stream of its own."""

    def __init__(self, bed):
        self.bed, self.seat = bed, bed.seats.take("ssh-front")
        self.wire = self.seat.wire("ssh-back")

    def ask(self, said, host=HOST, port=22, more=()):
        """-> (packet's type, its bytes), "ended" or None. more: packets to follow; then the answer is the first
        of the last words."""
        ours = self.open(said, host, port)
        for packet in more:
            self.seat.call("sendto", ours, packet, len(packet), 0x4000, 0, 0)
        r, _, data = self.seat.receive(ours, 5)
        while r == -errno.ECONNRESET or more and r > 0 and data[0] not in (END, REFUSED):
            r, _, data = self.seat.receive(ours, 5)  # once where it ended and had not read all
        self.seat.call("close", ours)
        return (data[0], data[1:]) if r > 0 else "ended" if r == 0 else None

    def open(self, said, host=HOST, port=22):
        room = bytearray(8)
        if self.seat.call("socketpair", UNIX, SEQPACKET, 0, room) < 0:
            raise RuntimeError("no socket pair")
        ours, theirs = (int.from_bytes(room[i:i + 4], sys.byteorder) for i in (0, 4))
        self.wire.send(message(wire.BROKER_OPEN, text(host), u32(port), text(said)), [theirs])
        self.seat.call("close", theirs)
        return ours

    def honest(self):
        got = self.ask(facts(self.bed.server.user, EXEC, "echo hello"))
        return True if got and got[0] == OPENED else got

    def heal(self):
        self.wire = self.wire.renew()


def front(t, bed):
    f = Front(bed)
    rows = seat.Rows(t, "front to back", f.honest)
    user, good = bed.server.user, bed.repo
    for name, code, said, more in (
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
            ("another port", "no_rule", facts(user, FETCH, good), {"port": bed.server.port})):
        before = bed.server.logins()
        got = f.ask(said, **more)
        rows.row(name, got not in ("ended", None) and got[0] == REFUSED and
                 got[1].split(b"\0")[0] == code.encode() and bed.server.logins() == before, repr(got))
    whole = facts(user, FETCH, good)
    for name, said in (("facts that are cut", whole[:-1]), ("facts with more behind them", whole + b"x"),
                       ("a verb that there is not", facts(user, 9, good)), ("a shell with a command", facts(user, SHELL, "id")),
                       ("a zero byte in a command", facts(user, EXEC, "echo hello\0; id")),
                       ("a terminal's name that is none", facts(user, EXEC, "echo hello", term="x;id")),
                       ("a version of git's protocol that there is not", facts(user, FETCH, good, git=9))):
        before = bed.server.logins()
        got = f.ask(said)
        ended = f.wire.ended()
        f.heal()
        rows.row(name, got == "ended" and ended and bed.server.logins() == before, repr(got))
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
                    more=[bytes([DATA]) + said[i:i + 9000] for i in range(0, len(said), 9000)] + [bytes([END])])
        rows.row(name, got not in ("ended", None) and got[0] == REFUSED and
                 got[1].split(b"\0")[0] in (b"ref", b"body_ambiguous") and git("for-each-ref") == before, repr(got))
    got = f.ask(facts(bed.server.user, PUSH, bed.narrow),
                more=[bytes([DATA]) + command(zero, first, b"refs/heads/agent/y") + b"0000" + empty, bytes([END])])
    t.ok(got not in ("ended", None) and got[0] == END and b"agent/y" in git("for-each-ref"), "what is allowed goes through", repr(got))


def many(t, bed):
    """All the requests that one sandbox may have at its policy's back."""
    f = Front(bed)
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


def back(t, bed):
    who = bed.seats.take("ssh-back")
    vault = who.wire("vault")
    rows = seat.Rows(t, "back to vault", lambda: True)

    def get(name):
        vault.send(message(wire.SECRET_GET, u32(7), text(name)))
        got = vault.next(5)
        return got if got in ("ended", None) else (got[1].u32(), got[1].u8(), got[1].data)
    told = get("deploy")
    t.ok(told[1] == 1 and b"ssh-ed25519" in told[2], "what is told of its key is the public half")
    whole = b"".join(x for x in bed.server.key.split(b"\n")[1:-2])
    rows.row("its key's private half", whole[-60:] not in told[2] and len(told[2]) < 200, repr(told))
    for name, want in (("the file of its key", "deploy_key"), ("another policy's key", "beside"),
                       ("a secret of its policy's that is no key", "word"), ("a secret that there is not", "nobody")):
        got = get(want)
        rows.row(name, got not in ("ended", None) and got[1] == 0 and bed.word not in got[2], repr(got))

    def sign(name, what):
        vault.send(message(wire.SIGN_TEXT, u32(7), text(name), u32(0), text(what)))
        got = vault.next(5)
        return got if got in ("ended", None) else got[1].u32() and got[1].u8()
    for name, key, what in (("a signature over what is no login", "deploy", b"x"),
                            ("a signature over a commit", "deploy", b"SSHSIG\0" + b"x" * 100),
                            ("a signature with another policy's key", "beside", b"x")):
        got = sign(key, what)
        rows.row(name, got == 0, repr(got))
    for name, data in (("what its policy's sandboxes captured", message(wire.CAPTURED_ALL, u32(7), text("word"))),
                       ("a sandbox's captured secret", message(wire.CAPTURED_GET, u32(7), text("sb-x"), text("word")))):
        vault.send(data)
        ended = vault.ended()
        rows.row(name, ended, "the wire did not end")
        if ended:
            vault = vault.renew()
    dialer = who.wire("dialer")
    rows = seat.Rows(t, "back to dialer", lambda: True)

    def dial(host, port, scheme):
        dialer.send(message(wire.DIAL, u32(7), u8(scheme), text(host), u32(port), text("1-1"), text(""), text("")))
        got = dialer.next(5)
        return got if got in ("ended", None) else got[0]
    for name, host, port, scheme in (("another policy's server", CLOSED, 22, SSH), ("a host of no rule", "evil.example.org", 22, SSH),
                                     ("another port", HOST, bed.server.port, SSH),
                                     ("a host of its policy's for HTTPS", "web.example.com", 443, HTTPS),
                                     ("its server as HTTPS", HOST, 22, HTTPS)):
        got = dial(host, port, scheme)
        rows.row(name, got in (wire.DIAL_FAIL, "ended"), repr(got))
        if got == "ended":
            dialer = dialer.renew()
    rows = seat.Rows(t, "back to kernel", lambda: True)
    rows.refused(who, seat.calls_of_all())
    who.end()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    bed = Bed(t)
    for part in seat.chosen((front, many, back)):
        t.part(part, t, bed)
    bed.box.close()
    seat.listed(t, "ssh")


tap.run(main, timeout=240)
