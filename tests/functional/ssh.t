#!/usr/bin/python3 -B
"""git and commands over SSH, with OpenSSH's client inside a sandbox and OpenSSH's server outside:
the key is the vault's, the server's key is pinned, and what no rule allows never reaches it."""
import base64
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scan, sshd, tap  # noqa: E402
from harness.nginx import git_env  # noqa: E402

HOST = "git.example.com"
IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_TERMINAL_PROMPT": "0"}


def rule(server, pattern, **more):
    return dict({"allow": "ssh://%s@%s%s" % (server.user, HOST, pattern),
                 "with": {"ssh_key": "deploy"}, "host_keys": server.host_key}, **more)


def bed(t, server, rules, name="d"):
    d = durward.Durward(t, name)
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = server.address
    d.policy("coder", rules)
    return d


def commands(t, box, d, server, repo):
    at = "%s@%s" % (server.user, HOST)
    status, out, err = box.sh("ssh -v %s 'echo hello world'" % at)
    t.ok(status == 0 and out == "hello world\n", "an allowed command runs", out, err)
    status, out, err = box.sh("ssh %s 'exit 7'" % at)
    t.eq(status, 7, "its exit status comes back")
    status, out, err = box.sh("head -c 3000000 /dev/zero | ssh %s 'wc -c'" % at)
    t.eq(out.strip(), "3000000", "standard input goes there and ends there")
    status, out, err = box.sh("for i in 1 2 3 4 5 6 7 8; do for k in 1 2 3 4 5; do head -c 700000 /dev/zero | ssh %s 'wc -c' & done; "
                              "wait; done" % at)
    t.eq(out.split(), ["700000"] * 40, "so does that of forty, five at a time")
    status, out, err = box.sh("ssh %s 'head -c 3000000 /dev/zero' | wc -c" % at)
    t.eq(out.strip(), "3000000", "standard output comes back whole")
    before = server.logins()
    for command, what in (("echo hello; id", "a command with more behind it"),
                          ("id", "another command"), ("cat ../x", "a path upwards"),
                          ("echo $(id)", "a substitution")):
        status, out, err = box.sh("ssh %s '%s'" % (at, command))
        t.ok(status == 128 and out == "" and "denied" in err, what + " is denied", out, err)
    status, out, err = box.sh("ssh -T %s </dev/null" % at)
    t.ok(status == 128 and "denied" in err, "a shell is denied", out, err)
    status, out, err = box.sh("ssh nobody@%s true" % HOST)
    t.ok(status == 128 and "no_rule" in err, "another user is denied", out, err)
    status, out, err = box.sh("sftp -b /dev/null %s" % at)
    t.ok(status != 0, "sftp is refused", out, err)
    status, out, err = box.sh("ssh -o ExitOnForwardFailure=yes -R 8022:127.0.0.1:22 %s true" % at)
    t.ok(status == 255 and "forward" in err, "a port forwarded back is refused", out, err)
    status, out, err = box.sh("ssh -W 127.0.0.1:22 %s </dev/null" % at)
    t.ok(status != 0 and "SSH-2.0-OpenSSH" not in out, "a port forwarded there is refused", out, err)
    status, out, err = box.sh("ssh -tt %s 'echo hello world' </dev/null" % at)
    t.ok(status == 128 and "ssh_terminal" in err + out, "a command on a terminal is denied", out, err)
    t.eq(server.logins(), before, "none of these reached the server")


def git(t, box, d, server, repo, closed, readable):
    at = "ssh://%s@%s" % (server.user, HOST)
    status, out, err = box.sh(
        "set -e; cd ~; git clone -q %s%s app; cd app; git log -1 --format=%%s; "
        "head -c 2000000 /dev/urandom > big; git add big; git commit -q -m second; "
        "git push -q origin main; git fetch -q; git rev-parse HEAD origin/main" % (at, repo),
        env=IDENTITY, timeout=60)
    lines = out.split("\n")
    t.ok(status == 0 and lines[0] == "first" and lines[1] == lines[2], "clone, push and fetch",
         out, err)
    r = subprocess.run(["git", "--git-dir", repo, "log", "-1", "--format=%s", "main"],
                       stdout=subprocess.PIPE, env=git_env(t))
    t.eq(r.stdout.strip(), b"second", "the push arrived")
    status, out, err = box.sh("cd ~; git clone -q %s:%s scp && echo good" %
                              (at[6:], repo.lstrip("/")), env=IDENTITY)
    t.ok("good" in out, "a path without a slash is one from the top", out, err)
    before = server.logins()
    status, out, err = box.sh("cd ~; git clone -q %s%s no" % (at, closed), env=IDENTITY)
    t.ok(status != 0 and "denied" in err, "a repository outside the rules is denied", out, err)
    status, out, err = box.sh("ssh %s \"git-upload-pack '%s/../%s'\"" %
                              (at[6:], repo, os.path.basename(closed)))
    t.ok(status == 128 and "denied" in err, "a path upwards is denied", out, err)
    t.eq(server.logins(), before, "neither reached the server")
    status, out, err = box.sh(
        "set -e; cd ~; git clone -q %s%s r; cd r; echo read; git commit -q --allow-empty -m x; "
        "git push -q origin main" % (at, readable), env=IDENTITY)
    t.ok(out == "read\n" and status != 0 and "method" in err,
         "where a rule is read-only a push is denied", out, err)


def records(t, d, server, repo):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "ssh"]
    by = {(r.get("method"), r.get("command") or r.get("path")): r for r in admitted}
    one = by.get(("exec", "echo hello world"), {})
    t.ok(one.get("user") == server.user and one.get("authority") == HOST and
         one.get("credential") == "deploy" and one.get("role") == "ssh-back" and
         one.get("sandbox"), "a command is on record before it leaves", str(one))
    t.ok(("push", repo) in by and ("fetch", repo) in by, "and so are git's, by repository",
         str(list(by)))
    ends = {r["id"]: r for r in d.kinds("completed") + d.kinds("aborted")}
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end")
    ended = ends.get(one.get("id"), {})
    t.ok(ended.get("exit_status") == 0 and ended.get("bytes_down") == 12, "with status and bytes",
         str(ended))
    codes = {r.get("code") for r in d.kinds("denied") if r.get("scheme") == "ssh"}
    t.ok({"command", "no_rule", "method", "ssh_forwarding", "ssh_subsystem"} <= codes,
         "what was refused is on record with its code", str(codes))


def pids(d, role):
    return [p for p, r in d.roles() if r == role]


def deaths(t, box, d, server):
    """Each of the two killed while a command runs: cut, on record, and back."""
    at = "%s@%s" % (server.user, HOST)
    for role in ("ssh-front", "ssh-back"):
        old = pids(d, role)
        t.eq(len(old), 1, "there is one " + role)
        before = len(d.kinds("admitted"))
        box.sh("(ssh %s 'sleep 20'; echo $? >~/ended-%s) >/dev/null 2>&1 &" % (at, role))
        t.ok(d.wait_records(before + 1, "admitted"), "a command runs")
        os.kill(old[0], signal.SIGKILL)
        died = time.monotonic()
        back = tap.wait_for(lambda: box.sh("ssh -o ConnectTimeout=1 %s 'echo hello world'" % at)[0] == 0, 3)
        took = time.monotonic() - died
        t.ok(back and took < 1.5, "%s is back within a second" % role, "%.2f s" % took)
        t.ok(pids(d, role) and pids(d, role) != old, "as another process")
        _, out, _ = box.sh("for i in 1 2 3 4 5 6 7 8 9 10; do cat ~/ended-%s 2>/dev/null && break; sleep 0.2; done" % role)
        t.eq(out.strip(), "255", "what ran was cut, and its client knows")
    d.settle()
    cut = [r for r in d.kinds("aborted")]
    t.ok(len(cut) >= 2, "and each is on record as aborted", str(cut))
    ended = [r for r in d.kinds("lifecycle") if r.get("event") == "role_ended"]
    t.ok({"ssh-front: signal 9", "ssh-back: signal 9"} <= {r.get("detail") for r in ended},
         "both deaths are on record", str(ended))


def descriptors(t, box, d, server):
    """Logins leave none behind in the back."""
    if os.geteuid() != 0:
        t.skip("descriptors of the back", "looking at other processes' descriptors needs root")
        return
    at, fds = "%s@%s" % (server.user, HOST), "/proc/%d/fd" % pids(d, "ssh-back")[0]
    box.sh("ssh %s 'exit 0'" % at)
    before = len(os.listdir(fds))
    status, out, err = box.sh("for i in 1 2 3 4 5 6; do ssh %s 'exit 0' || exit 1; done" % at, timeout=60)
    t.eq(status, 0, "six logins")
    t.ok(tap.wait_for(lambda: len(os.listdir(fds)) <= before, 3),
         "logins leave no descriptor behind in the back", "%d, then %d" % (before, len(os.listdir(fds))))


def memory(t, d, server, scanner):
    """No copy of the private key in either role: the back has it signed."""
    if os.geteuid() != 0:
        t.skip("memory of front and back", "reading other processes' memory needs root")
        return
    t.ok(scan.Scanner(text=server.key.split(b"\n")[3]).search(server.key, "its file"),
         "the scan finds the key where it is")
    for role in ("ssh-front", "ssh-back", "gate"):
        for pid in pids(d, role):
            scan.scan_process(pid, scanner, role)
    t.eq(scanner.report(), [], "0 copies of the key in front, back and gate")


def wrong_key(t, server):
    """The server shows a key that the rule does not name."""
    other = sshd.keygen(os.path.join(server.dir, "other"))[1]
    d = bed(t, server, [dict(rule(server, "", commands="echo *"), host_keys=other)], "wrong")
    before = server.logins()
    r = d.run(["ssh", "%s@%s" % (server.user, HOST), "echo hello"])
    t.ok(r.returncode == 255 and "ssh_host_key" in r.stderr, "a server with another key gets nothing",
         r.stdout, r.stderr)
    t.eq(server.logins(), before, "and nobody logged in")


def reloaded(t, server):
    """What runs goes on under a policy that says the same of it, and ends under another."""
    d = bed(t, server, [rule(server, "", commands=["echo *", "sleep *"])], "reloaded")
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    thread = threading.Thread(target=lambda: got.append(api.Api(d.socket).sh(
        box, "ssh %s@%s 'sleep 30' 2>&1" % (server.user, HOST))))
    thread.start()
    t.ok(d.wait_records(1, "admitted", scheme="ssh"), "a command runs")
    d.policies["coder"]["rules"].append({"allow": "other.example.com"})
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "another rule is added")
    status, out = calls.sh(box, "ssh %s@%s 'echo hello'" % (server.user, HOST))
    t.ok(out == b"hello\n" and not got, "what runs goes on", str((status, out, got)))
    d.policies["coder"]["rules"].pop(0)
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "its rule is removed")
    thread.join(5)
    t.ok(got and got[0][0] == 255, "a command ends with its rule", str(got))
    t.ok(d.wait_records(1, "aborted", code="policy_changed"), "and that is on record")
    thread.join()
    d.stop()


def kinds(t):
    """Keys of other kinds, as ssh-keygen writes them."""
    for kind in ("rsa", "ecdsa"):
        server = sshd.Sshd(t, "sshd-" + kind, kind)
        d = bed(t, server, [rule(server, "", commands="echo *")], kind)
        r = d.run(["ssh", "%s@%s" % (server.user, HOST), "echo hello"])
        t.ok(r.returncode == 0 and r.stdout == "hello\n", "a key of kind %s logs in" % kind, r.stdout,
             r.stderr)
        server.process.terminate()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    server = sshd.Sshd(t)
    repo, closed = server.repository("acme", "app"), server.repository("closed", "app")
    readable = server.repository("read", "app")
    d = bed(t, server, [
        rule(server, "", commands=["echo hello world", "exit *", "wc -c", "head -c * /dev/zero",
                                   "sleep *"]),
        rule(server, os.path.dirname(repo) + "/**"),
        rule(server, os.path.dirname(readable) + "/*", access="read-only")])
    blob = base64.b64decode(b"".join(server.key.split(b"\n")[1:-2]))
    seed = blob[blob.rindex(b"\0\0\0\x40") + 4:][:32]  # of Ed25519: the private half
    scanner = scan.Scanner(deploy=seed, text=server.key.split(b"\n")[3])
    box = durward.Sandbox(d)
    t.part(commands, t, box, d, server, repo)
    t.part(git, t, box, d, server, repo, closed, readable)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(memory, t, d, server, scanner)
    t.part(records, t, d, server, repo)
    t.part(descriptors, t, box, d, server)
    t.part(deaths, t, box, d, server)
    box.close()
    t.part(wrong_key, t, server)
    t.part(reloaded, t, server)
    t.part(kinds, t)


tap.run(main, timeout=240)
