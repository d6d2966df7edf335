#!/usr/bin/python3 -B
"""Logins by password at SSH servers: at OpenSSH's by both of its methods, and at one that asks in every other way. The password leaves
the vault for one login, to a server whose key is the rule's, and is nowhere afterwards."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, ssh_server, sshd, tap  # noqa: E402

HOST = "old.example.com"


def bed(t, server, users, password, name="d", **more):
    d = durward.Durward(t, name)
    d.secret("word", password)
    d.secrets["login"] = {"ssh_password": {"password": "word"}}
    d.resolve[HOST + ":22"] = server.address
    d.policy("coder", [dict({"allow": "ssh://%s@%s" % (user, HOST), "commands": ["echo *", "sleep *"], "with": {"ssh_password": "login"},
                             "host_keys": server.host_key}, **more) for user in users])
    return d


def openssh(t):
    """OpenSSH's server, by its method for passwords, and by that which asks."""
    if os.geteuid() != 0:
        t.skip("OpenSSH's server", "a password of its user's needs root")
        return
    for what, options, by in (("password", ["PasswordAuthentication yes", "KbdInteractiveAuthentication no"], "password"),
                              ("password, over PAM", ["UsePAM yes", "PasswordAuthentication yes", "KbdInteractiveAuthentication no"], "password"),
                              ("keyboard-interactive, over PAM", ["UsePAM yes", "KbdInteractiveAuthentication yes"], "keyboard-interactive/pam")):
        password = scan.canary("pw-").decode()
        server = sshd.Sshd(t, "sshd-" + what.split(",")[0] + str(len(options)), options=options, password=password)
        d = bed(t, server, [server.user], password, "d-%s%d" % (what.split(",")[0], len(options)))
        at = "%s@%s" % (server.user, HOST)
        box = durward.Sandbox(d)
        status, out, err = box.sh("ssh -v %s 'echo hello'" % at)
        t.ok(status == 0 and out == "hello\n" and "Accepted %s for " % by in server.said(), "OpenSSH's server lets it in by " + what, out, err,
             server.said()[-600:])
        t.ok(password not in out + err, "and its client does not see it")
        running(t, d, box, at, password, what)
        box.close()
        logged(t, d, password, what)
        wrong = bed(t, server, [server.user], password[:-1] + "!", "w-%s%d" % (what.split(",")[0], len(options)))
        r = wrong.run(["ssh", at, "echo hello"])
        t.ok(r.returncode == 255 and r.stdout == "" and "ssh_login" in r.stderr and "password" in r.stderr, "with another password it does not, by " + what,
             r.stdout, r.stderr)
        t.eq(server.said().count("Failed "), 1, "and it was tried once")
        server.process.terminate()


def half(t):
    """A server that wants a key as well."""
    if os.geteuid() != 0:
        t.skip("a server that wants more", "a password of its user's needs root")
        return
    password = scan.canary("pw-").decode()
    server = sshd.Sshd(t, "sshd-half", options=["PasswordAuthentication yes", "AuthenticationMethods password,publickey"], password=password)
    r = bed(t, server, [server.user], password, "half").run(["ssh", "%s@%s" % (server.user, HOST), "echo hello"])
    t.ok(r.returncode == 255 and r.stdout == "" and "wants more than a password" in r.stderr and "Partial password" in server.said(),
         "a server that wants a key as well is given up, with the reason", r.stdout, r.stderr, server.said()[-400:])


def running(t, d, box, at, password, what):
    """While what logged in by it still runs."""
    before = len(d.kinds("admitted"))
    box.sh("(ssh %s 'sleep 5'; ssh %s 'sleep 5') >/dev/null 2>&1 &" % (at, at))
    t.ok(d.wait_records(before + 1, "admitted"), "a command runs")
    status, out, err = box.sh("ssh %s 'echo hello'" % at)
    t.eq(out, "hello\n", "and another has logged in after it")
    scanner = scan.Scanner(password=password.encode())
    t.ok(scan.Scanner(password=password.encode()).search(b"x" * 99 + password.encode(), "here"), "the scan finds it where it is")
    for pid, role in d.roles():
        if role in ("ssh-front", "ssh-back", "gate", "dialer", "logger", "controller"):
            scan.scan_process(pid, scanner, role)
    t.eq(scanner.report(), [], "0 copies of the password in front and back (%s)" % what)


def logged(t, d, password, what):
    d.settle()
    found = []
    for folder, _, files in os.walk(d.dir):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not name.startswith("secret-"):  # where it belongs
                with open(path, "rb") as f:
                    if password.encode() in f.read():
                        found.append(path)
    t.eq(found, [], "none in log and output (%s)" % what)


def servers(t):
    why = ssh_server.missing()
    if why:
        t.skip("a server that asks in other ways", why)
        return
    password = scan.canary("pw-").decode()
    server = ssh_server.Server(t, password)
    d = bed(t, server, ssh_server.USERS, password)
    box = durward.Sandbox(d)

    def ask(user):
        return box.sh("ssh %s@%s 'echo hello'" % (user, HOST))
    for user, what, came in (("plain", "its method for passwords", [["password", password]]),
                             ("asks", "one question", [["asked", ""], ["answered", password]]),
                             ("words", "words before and after its question",
                              [["asked", ""], ["answered", ""], ["answered", password], ["answered", ""]]),
                             ("both", "both methods", [["password", password]]),
                             ("open", "no login at all", [])):
        status, out, err = ask(user)
        t.eq((status, out), (0, "hello\n"), "a server with %s lets it in" % what)
        t.eq([r[1:] for r in server.came(user) if r[1] not in ("begin", "ran")], came, "and was told what it asked for, once")
    refused(t, d, box, server, password, ask)
    scanner = scan.Scanner(password=password.encode())
    if os.geteuid() == 0:
        for pid, role in d.roles():
            if role in ("ssh-front", "ssh-back", "gate", "logger"):
                scan.scan_process(pid, scanner, role)
        t.eq(scanner.report(), [], "0 copies of the password in front and back after servers that said it")
    else:
        t.skip("memory of front and back", "reading other processes' memory needs root")
    box.close()
    logged(t, d, password, "of servers that say it")
    stranger(t, server, password)
    odd(t, server)


def refused(t, d, box, server, password, ask):
    for user, words, told in (("twice", "several questions", 0), ("shows", "would show", 0), ("again", "more than a password", 1),
                              ("forever", "does not let this user in", 0), ("keys", "takes no password", 0), ("change", "", 1),
                              ("banner", "does not let this user in", 1), ("tells", "", 1), ("refuses", "does not let this user in", 1)):
        status, out, err = ask(user)
        t.ok(status == 255 and out == "" and words in err, "a server that does otherwise (%s) is given up, with the reason" % user, out, err)
        t.eq(sum(r[2] == password for r in server.came(user)), told, "having been told the password %s" % ("once" if told else "never"))
        t.ok(password not in out + err, "and what it says of it comes not in")
    tap.wait_for(lambda: len(d.kinds("aborted")) >= 9, 10)
    ends = [r for r in d.kinds("aborted") if r.get("code") in ("ssh_login", "upstream_closed", "upstream_ssh")]
    t.ok(len(ends) == 9 and not any(password in str(r) for r in ends), "each is on record, without it", str(ends)[:600])


def stranger(t, server, password):
    """A server that shows another key than the rule's."""
    other = sshd.keygen(os.path.join(t.mkdir("stranger"), "other"))[1]
    d = bed(t, server, ["plain"], password, "stranger-d", host_keys=other)
    before = len(server.came())
    r = d.run(["ssh", "plain@" + HOST, "echo hello"])
    t.ok(r.returncode == 255 and "ssh_host_key" in r.stderr and len(server.came()) == before, "a server with another key is not even asked how",
         r.stdout, r.stderr)


def odd(t, server):
    """Passwords at the edges of what one may be. The longest leaves no copy in what grew for it."""
    password = scan.canary("pw-", 509).decode()
    d = bed(t, server, ["plain", "asks"], password, "long")
    box = durward.Sandbox(d)
    for user in ("plain", "asks"):
        box.sh("ssh %s@%s 'echo hello'" % (user, HOST))
        t.eq(sum(r[2] == password for r in server.came(user)), 1, "a long password is sent (%s)" % user)
    if os.geteuid() == 0:
        scanner = scan.Scanner(head=password[:40].encode(), tail=password[-40:].encode())
        for pid, role in d.roles():
            if role in ("ssh-front", "ssh-back", "gate", "logger"):
                scan.scan_process(pid, scanner, role)
        t.eq(scanner.report(), [], "0 copies of either end of it")
    else:
        t.skip("memory of front and back", "reading other processes' memory needs root")
    box.close()
    for what, password, good in (("of 512 bytes", "p" * 512, True), ("of 513 bytes", "p" * 513, False)):
        d = bed(t, server, ["plain", "asks"], password, "odd%d" % len(password))
        for user in ("plain", "asks"):
            before = sum(r[2] == password for r in server.came())
            r = d.run(["ssh", "%s@%s" % (user, HOST), "echo hello"])
            code = "ssh_login" if good else "secret_unavailable"
            t.ok(r.returncode == 255 and code in r.stderr and sum(x[2] == password for x in server.came()) == before + good,
                 "a password %s is %s (%s)" % (what, "sent" if good else "not", user), r.stderr)


def declared(t):
    for what, secret, with_, words in (("a password without a secret", {"ssh_password": {}}, "ssh_password", "needs 'password'"),
                                       ("a user beside it", {"ssh_password": {"password": "word", "user": "a"}}, "ssh_password", "user"),
                                       ("a password as a key", {"ssh_password": {"password": "word"}}, "ssh_key", "ssh_password"),
                                       ("a password sent to a web server", {"ssh_password": {"password": "word"}}, "bearer", "ssh_password")):
        d = durward.Durward(t, "declared")
        d.secret("word", "secret-word")
        d.secrets["login"] = secret
        more = {"commands": "echo *", "host_keys": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"}
        d.policy("coder", [dict(more if with_ != "bearer" else {}, **{"allow": "ssh://a@" + HOST if with_ != "bearer" else HOST,
                                                                        "with": {with_: "login"}})])
        d.save()
        r = d.command("check", d.conf)
        t.ok(r.returncode != 0 and words in r.stderr + r.stdout, what + " is refused at load", r.stdout, r.stderr)


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    t.part(declared, t)
    t.part(servers, t)
    t.part(openssh, t)
    t.part(half, t)
    for pid, line in tap.descendants():  # what a server leaves running when its client goes, for want of a terminal
        if line == "sleep 5":
            os.kill(pid, 9)


tap.run(main, timeout=300)
