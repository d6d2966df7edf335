#!/usr/bin/python3 -B
"""Logins by certificates of an SSH CA that the vault runs, at OpenSSH's server: which users, from where, with what leave, for how
long, and by whom a server's log says that it was. The CA's key is the vault's alone."""
import base64
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scan, sshd, tap  # noqa: E402

HOST = "build.example.com"
IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@example.com",
            "GIT_TERMINAL_PROMPT": "0"}


class Ca:
    """.key, and a server that takes its certificates and nothing else, for the principal "agents"."""

    def __init__(self, t, name, kind="ed25519", bits=None):
        folder = t.mkdir(name)
        self.key, public = sshd.keygen(folder + "/ca", kind, bits)
        t.write(name + "/ca.pub", public + "\n")
        t.write(name + "/principals", "agents\n")
        self.server = sshd.Sshd(t, name + "-sshd", options=["TrustedUserCAKeys %s/ca.pub" % folder, "AuthorizedKeysFile none",
                                                            "AuthorizedPrincipalsFile %s/principals" % folder])


def bed(t, ca, name, rules=None, **terms):
    d = durward.Durward(t, name)
    d.secret("ca_key", ca.key)
    d.secrets["access"] = {"ssh_certificate": dict({"ca": "ca_key", "principals": ["agents"]}, **terms)}
    d.resolve[HOST + ":22"] = ca.server.address
    d.policy("coder", rules or [rule(ca, commands=["echo *", "id -un"])])
    return d


def rule(ca, path="", **more):
    return dict({"allow": "ssh://%s@%s%s" % (ca.server.user, HOST, path), "with": {"ssh_certificate": "access"},
                 "host_keys": ca.server.host_key}, **more)


def at(ca):
    return "%s@%s" % (ca.server.user, HOST)


def seen(ca):
    """What the server says of the certificates that it took: (key id, serial)."""
    return re.findall(r"^Accepted publickey for \S+ .* ED25519-CERT .* ID (\S+) \(serial (\d+)\) CA ", ca.server.said(), re.M)


def kinds(t):
    """CAs of each kind, as ssh-keygen writes them."""
    for kind, bits in (("ed25519", None), ("ecdsa", 256), ("ecdsa", 521), ("rsa", 3072)):
        ca = Ca(t, "ca-%s%s" % (kind, bits or ""), kind, bits)
        r = bed(t, ca, "d-%s%s" % (kind, bits or "")).run(["ssh", at(ca), "echo hello"])
        t.ok(r.returncode == 0 and r.stdout == "hello\n" and len(seen(ca)) == 1,
             "a certificate by a CA of kind %s%s logs in" % (kind, " of %d bits" % bits if bits else ""), r.stdout, r.stderr, ca.server.said()[-600:])
        ca.server.process.terminate()


def refused(t, ca):
    """What the server holds a certificate to."""
    for what, terms in (("for another principal", {"principals": ["admins", "agents2"]}),
                        ("for use from elsewhere", {"source_address": ["192.0.2.0/24", "2001:db8::/32"]})):
        before = ca.server.logins()
        r = bed(t, ca, "r%d" % before, **terms).run(["ssh", at(ca), "echo hello"])
        t.ok(r.returncode == 255 and r.stdout == "" and "ssh_login" in r.stderr and "certificate" in r.stderr,
             "a certificate %s is refused, and why is said" % what, r.stdout, r.stderr)
        t.eq(ca.server.logins(), before, "and nobody is let in")
        ca.server.said()
    t.ok("not permitted to use" in ca.server.said() or "source address" in ca.server.said().lower(), "by the server, for where it comes from",
         ca.server.said()[-800:])
    r = bed(t, ca, "here", source_address=["127.0.0.0/8", "::1/128"]).run(["ssh", at(ca), "echo hello"])
    t.eq(r.stdout, "hello\n", "for use from here it is taken")


def other_ca(t, ca):
    """A certificate that another CA has made is none to this server."""
    stranger = Ca(t, "stranger")
    stranger.server.process.terminate()
    before = ca.server.logins()
    mixed = bed(t, ca, "mixed")
    mixed.secret("ca_key", stranger.key)
    r = mixed.run(["ssh", at(ca), "echo hello"])
    t.ok(r.returncode == 255 and "ssh_login" in r.stderr and ca.server.logins() == before, "one by a CA that the server does not know",
         r.stdout, r.stderr)


def leave(t, ca):
    """What it permits: nothing but what is asked for."""
    rules = [rule(ca, commands=["tty", "echo *"], terminal=True)]
    ask = "ssh -tt %s tty </dev/null" % at(ca)
    r = bed(t, ca, "bare", rules).run(["sh", "-c", ask])
    t.ok("/dev/" not in r.stdout, "a certificate without extensions has no terminal", r.stdout, r.stderr)
    r = bed(t, ca, "pty", rules, extensions=["permit-pty", "login@forge.example=alice"]).run(["sh", "-c", ask])
    t.ok("/dev/" in r.stdout, "one that permits it has", r.stdout, r.stderr)
    target = ca.server.address  # itself: what it connects to says who it is
    through = [rule(ca, forward=[target])]
    for name, terms, good in (("no-port", {}, False), ("port", {"extensions": ["permit-port-forwarding"]}, True)):
        r = bed(t, ca, name, through, **terms).run(["sh", "-c", "ssh -W %s %s </dev/null" % (target, at(ca))])
        t.ok(r.stdout.startswith("SSH-2.0-") == good, "a port is connected to by one that permits it" if good else "and by no other", r.stdout, r.stderr)
    r = bed(t, ca, "forced", rules, force_command="echo forced to this").run(["ssh", at(ca), "echo hello"])
    t.ok(r.stdout == "forced to this\n", "one with a command runs that, whatever is asked for", r.stdout, r.stderr)


def whose(t, ca, d):
    """A server's log names policy and sandbox; each has a key of its own, and keeps it for half of its time."""
    d.serve()
    calls = api.Api(d.socket)
    boxes = [calls.create(policy="coder")["id"] for _ in range(2)]
    before = len(seen(ca))
    for box in boxes + boxes:
        status, out = calls.sh(box, "ssh %s 'echo hello' 2>&1" % at(ca))
        t.eq((status, out), (0, b"hello\n"), "a sandbox of the daemon logs in")
    new = seen(ca)[before:]
    t.eq([x[0] for x in new], ["durward:coder:" + box for box in boxes + boxes], "the server's log says which sandbox it was")
    t.ok(new[0] == new[2] and new[1] == new[3] and new[0][1] != new[1][1], "each by a certificate of its own, which it keeps", str(new))
    keys = re.findall(r"ED25519-CERT (SHA256:\S+)", ca.server.said())[-4:]
    t.ok(keys[0] == keys[2] != keys[1] == keys[3], "and a key of its own", str(keys))
    vault = [p for p, r in d.roles() if r == "vault"][0]
    os.kill(vault, 9)
    t.ok(tap.wait_for(lambda: calls.sh(boxes[0], "ssh %s 'echo hello' 2>&1" % at(ca))[1] == b"hello\n", 5), "another vault gives it another one")
    t.ok(seen(ca)[-1][1] not in [x[1] for x in new], "with another number", str(seen(ca)[-1]))
    memory(t, ca, d)
    rotated(t, ca, d, calls, boxes[0])
    d.stop()


def memory(t, ca, d):
    if os.geteuid() != 0:
        t.skip("memory of the roles", "reading other processes' memory needs root")
        return
    blob = base64.b64decode(b"".join(ca.key.split(b"\n")[1:-2]))
    scanner = scan.Scanner(ca=blob[blob.rindex(b"\0\0\0\x40") + 4:][:32], text=ca.key.split(b"\n")[3])
    for pid, role in d.roles():
        if role != "vault":
            scan.scan_process(pid, scanner, role)
    t.eq(scanner.report(), [], "0 copies of the CA's key in any role but the vault")


def rotated(t, ca, d, calls, box):
    """Another CA's key in the file: the next certificate is its."""
    other = Ca(t, "rotated")
    d.secret("ca_key", other.key)
    t.ok(tap.wait_for(lambda: b"ssh_login" in calls.sh(box, "ssh %s 'echo hello' 2>&1" % at(ca))[1], 5),
         "once the CA's key is another one this server takes no more of them")
    other.server.process.terminate()


def renewed(t, ca):
    """A certificate of one minute: it is another one after half of it, while the first is good yet."""
    box = durward.Sandbox(bed(t, ca, "renewed", minutes=1))
    box.sh("ssh %s 'echo hello'" % at(ca))
    first = seen(ca)[-1]

    def another():
        out = box.sh("ssh %s 'echo hello'" % at(ca))[1]
        return out == "hello\n" and seen(ca)[-1] != first
    t.ok(tap.wait_for(another, 45, step=1), "after half a minute it is renewed, and no login is refused meanwhile", str(seen(ca)[-3:]))
    box.close()


def git(t, ca):
    repo = ca.server.repository("acme", "app")
    d = bed(t, ca, "git", [rule(ca, os.path.dirname(repo) + "/**")])
    box = durward.Sandbox(d)
    status, out, err = box.sh("set -e; cd ~; git clone -q ssh://%s%s app; cd app; git commit -q --allow-empty -m second; git push -q origin main; "
                              "git rev-parse HEAD origin/main" % (at(ca), repo), env=IDENTITY)
    lines = out.split()
    t.ok(status == 0 and len(lines) == 2 and lines[0] == lines[1], "git clones and pushes", out, err)
    box.close()


def declared(t, ca):
    """Nonsense is refused where it is written."""
    for what, terms, words in (
            ("no principal", {"principals": []}, "principals"),
            ("a principal with a comma", {"principals": ["a,b"]}, "a principal is a name"),
            ("a principal with a blank", {"principals": ["a b"]}, "a principal is a name"),
            ("a principal twice", {"principals": ["a", "a"]}, "twice"),
            ("no minutes", {"minutes": 0}, "minutes"),
            ("more than a day", {"minutes": 1441}, "minutes"),
            ("an address that is no range", {"source_address": ["192.0.2.1"]}, "is not a range"),
            ("a range with more behind its prefix", {"source_address": ["192.0.2.1/24"]}, "is not a range"),
            ("a name in place of a range", {"source_address": ["example.com"]}, "is not a range"),
            ("an extension that there is not", {"extensions": ["permit-everything"]}, "an extension is"),
            ("one that forwards an agent", {"extensions": ["permit-agent-forwarding"]}, "agents and X11 are not forwarded"),
            ("OpenSSH's own with a value", {"extensions": ["permit-pty=yes"]}, "an extension is"),
            ("an extension twice", {"extensions": ["a@b=1", "a@b=2"]}, "twice"),
            ("a CA that is made of others", {"ca": "access"}, "made of others"),
            ("a key of an agent", {"ca": "agent"}, "key of an SSH agent"),
            ("a word that there is not", {"principal": "a"}, "principals")):
        d = bed(t, ca, "declared")
        d.secrets["agent"] = {"ssh_agent": {"key": "SHA256:w1TjyRXKXgLf7hLVV4WZbKQO0PxtUuBx7Cg7HfUAtV0"}}
        d.secrets["access"]["ssh_certificate"].update(terms)
        d.save()
        r = d.command("check", d.conf)
        t.ok(r.returncode != 0 and words in r.stderr + r.stdout, what + " is refused at load", r.stdout, r.stderr)
    d = bed(t, ca, "placed")
    for pattern, with_, words in (("ssh://a@%s" % HOST, {"ssh_key": "access"}, "ssh_certificate"),
                                  ("web.example.com", {"ssh_certificate": "access"}, "goes with patterns of ssh://"),
                                  ("web.example.com", {"bearer": "access"}, "ssh_certificate"),
                                  ("postgres://db.example.com/app", {"ssh_certificate": "access"}, "postgres_login")):
        more = {"commands": "echo *", "host_keys": ca.server.host_key} if "ssh:" in pattern else {}
        d.policy("coder", [dict(more, **{"allow": pattern, "with": with_})])
        d.save()
        r = d.command("check", d.conf)
        t.ok(r.returncode != 0 and words in r.stderr + r.stdout, "%s with %s is refused at load" % (pattern, list(with_)[0]), r.stdout, r.stderr)
    weak = bed(t, ca, "weak")
    weak.secret("ca_key", b"no key at all\n")
    before = ca.server.logins()
    r = weak.run(["ssh", at(ca), "echo hello"])
    t.ok(r.returncode == 255 and "secret_unavailable" in r.stderr and ca.server.logins() == before, "a CA's key that is none", r.stdout, r.stderr)


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    t.part(kinds, t)
    ca = Ca(t, "ca")
    t.part(declared, t, ca)
    t.part(refused, t, ca)
    t.part(other_ca, t, ca)
    t.part(leave, t, ca)
    t.part(git, t, ca)
    t.part(whose, t, ca, bed(t, ca, "daemon"))
    t.part(renewed, t, ca)


tap.run(main, timeout=300)
