#!/usr/bin/python3 -B
"""git and commands over SSH, with OpenSSH's client inside a sandbox and OpenSSH's server outside:
the key is the vault's, the server's key is pinned, and what no rule allows never reaches it."""
import base64
import hashlib
import json
import os
import re
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
    t.ok(status != 0 and "method" in err, "sftp is refused where no rule names files", out, err)
    status, out, err = box.sh("ssh -s %s netconf </dev/null" % at)
    t.ok(status != 0 and out == "", "another subsystem is refused", out, err)
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
    ends = d.ends(admitted)
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end", str([r for r in admitted if r["id"] not in ends][:3]))
    ended = ends.get(one.get("id"), {})
    t.ok(ended.get("exit_status") == 0 and ended.get("bytes_down") == 12, "with status and bytes",
         str(ended))
    codes = {r.get("code") for r in d.kinds("denied") if r.get("scheme") == "ssh"}
    t.ok({"command", "no_rule", "method", "ssh_forwarding", "ssh_subsystem"} <= codes,
         "what was refused is on record with its code", str(codes))


def ended(t, box, d, server):
    """What a command says last is heard, whatever its client still sends; and a client that goes is
    noticed, though the server takes no more of what it sent."""
    at = "%s@%s" % (server.user, HOST)
    status, out, err = box.sh("for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero | ssh %s 'exit 7'; echo $?; done" % at,
                              timeout=60)
    t.eq(out.split(), ["7"] * 8, "a command that does not read what it is sent says how it ended")
    before = len(d.kinds("admitted"))
    box.sh("(head -c 900000000 /dev/zero | ssh %s 'sleep 30' & echo $! >~/sender; wait) >/dev/null 2>&1 &" % at)
    t.ok(d.wait_records(before + 1, "admitted"), "a command runs that reads nothing")

    def queued():  # at the server's end, unread: it takes no more
        r = subprocess.run(["ss", "-Htn", "state", "established", "sport", "=", ":%d" % server.port],
                           stdout=subprocess.PIPE, timeout=10)
        return any(int(line.split()[0]) > 0 for line in r.stdout.splitlines())
    t.ok(tap.wait_for(queued, 10), "what is sent to it waits")
    box.sh("kill -9 $(pgrep -x ssh)")
    d.settle()
    t.ok(d.wait_records(1, "aborted", 5, code="client_gone"), "its client's death is seen at once, and on record")


def known_keys(t):
    """The manual's fingerprints are those of the keys that are built in."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "rules/policy/ssh_rule.c")) as f:
        table = re.search(r"known\[\] = \{(.*?)\n\};", f.read(), re.S).group(1)
    with open(os.path.join(top, "doc/durward.yaml.5.md")) as f:
        manual = f.read()
    host, built = None, set()
    for name, kind, blob in re.findall(r'\{"([a-z.]+\.[a-z]+)",|\{"([a-z0-9-]+)",\s*((?:"[A-Za-z0-9+/=]+"\s*)+)\}', table):
        host = name or host
        if kind:
            digest = hashlib.sha256(base64.b64decode("".join(re.findall(r'"([^"]+)"', blob)))).digest()
            built.add((host, kind, "SHA256:" + base64.b64encode(digest).decode().rstrip("=")))
    said = set(re.findall(r"^\| ([a-z.]+) \| ([a-z0-9-]+) \| `(SHA256:[A-Za-z0-9+/]{43})` \|", manual, re.M))
    t.ok(len(built) == 4, "keys of three servers are built in", str(built))
    t.eq(said, built, "the manual has their fingerprints")


def refs(t, box, d, server, repo):
    """Pushes against the references that a rule names: a refusal is git's own report, nothing reaches
    the repository, and the connection goes on."""
    at = "ssh://%s@%s" % (server.user, HOST)

    def there(name):
        r = subprocess.run(["git", "--git-dir", repo, "log", "-1", "--format=%s", name],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=git_env(t))
        return r.stdout.decode().strip()
    status, out, err = box.sh(
        "set -e; cd ~; git clone -q %s%s refs; cd refs; head -c 200000 /dev/urandom > big; git add big; git commit -q -m one; "
        "git push -q origin HEAD:refs/heads/agent/x; git commit -q --allow-empty -m two; "
        "git push -q origin HEAD:refs/heads/agent/x" % (at, repo), env=IDENTITY, timeout=60)
    t.ok(status == 0 and there("agent/x") == "two", "a new reference that is named, and its fast-forward", out, err)
    denied = len([r for r in d.kinds("denied") if r.get("code") == "ref"])
    for command, words, what in (
            ("git push origin HEAD:refs/heads/main", "not allowed: refs/heads/main", "a reference that is not named"),
            ("git commit -q --amend --allow-empty -m other && git push -f origin HEAD:refs/heads/agent/x", "not shown to be a fast-forward",
             "a history that is rewritten"),
            ("git push origin :refs/heads/agent/x", "delete of refs/heads/agent/x", "a delete"),
            ("git push origin HEAD:refs/heads/agent/y HEAD:refs/heads/main", "not allowed: refs/heads/main",
             "two references, one of them named"),
            ("head -c 12000000 /dev/urandom > big; git add big; git commit -q -m big; "
             "git push origin HEAD:refs/heads/main", "not allowed: refs/heads/main", "twelve megabytes for another reference")):
        status, out, err = box.sh("cd ~/refs; %s" % command, env=IDENTITY, timeout=60)
        t.ok(status == 1 and "remote rejected" in err and "durward: " + words in err, what + " is refused in git's own words",
             out, err)
        t.ok(there("main") == "first" and there("agent/x") == "two" and there("agent/y") == "", "and nothing is there",
             there("main"), there("agent/x"))
    d.settle()
    t.eq(len([r for r in d.kinds("denied") if r.get("code") == "ref"]) - denied, 5, "each is on record")
    one = [r for r in d.kinds("denied") if r.get("code") == "ref"][-1]
    t.ok(one.get("method") == "push" and one.get("path") == repo and "refs/heads/main" in one.get("detail", "") and
         one.get("rule"), "with what it was", str(one))
    status, out, err = box.sh(
        "cd ~/refs; git reset -q --hard origin/agent/x; export GIT_SSH_COMMAND='ssh -o ControlPath=~/mux -o ControlMaster=auto "
        "-o ControlPersist=30'; git push origin HEAD:refs/heads/main 2>&1; ssh -o ControlPath=~/mux -O check x 2>&1; "
        "git commit -q --allow-empty -m three; git push -q origin HEAD:refs/heads/agent/x && echo went; "
        "ssh -o ControlPath=~/mux -O exit x" % (), env=IDENTITY, timeout=60)
    t.ok("remote rejected" in out and "Master running" in out and "went" in out and there("agent/x") == "three",
         "a connection goes on after a refusal", out, err)
    before = d.kinds("admitted")
    status, out, err = box.sh("cd ~/refs; git push -q origin HEAD:refs/heads/agent/x && echo nothing", env=IDENTITY)
    t.ok(out == "nothing\n", "a push of what is there already", out, err)
    ends = d.ends(before)
    t.ok(all(r["id"] in ends for r in before), "each has one end", str([r for r in before if r["id"] not in ends][:3]))


def connections(t, box, d, server):
    """As many connections as a sandbox may have, and channels of one."""
    program = ("import socket, sys, time\nheld = []\n"
               "for i in range(129):\n"
               "    s = socket.create_connection((%r, 22), 10)\n    s.settimeout(10)\n    held.append(s)\n"
               "    got = s.recv(100)\n"
               "    if not got.startswith(b'SSH-2.0'):\n        break\n"
               "print(len(held) - 1, len(got))\n"
               "held.pop().close()\nheld.pop().close()\n"
               "for i in range(50):\n"
               "    s = socket.create_connection((%r, 22), 10)\n    s.settimeout(10)\n"
               "    if s.recv(100).startswith(b'SSH-2.0'):\n        print('again')\n        break\n"
               "    time.sleep(0.1)\n") % (HOST, HOST)
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\"", env={"P": program}, timeout=60)
    t.eq(out.split(), ["128", "0", "again"], "128 connections of a sandbox; the next is closed, until one ends")
    at = "%s@%s" % (server.user, HOST)
    status, out, err = box.sh(
        "ssh -o ControlPath=~/m16 -M -N -f %s; for i in $(seq 16); do ssh -o ControlPath=~/m16 %s 'sleep 20' & done; "
        "n=0; while [ $n -lt 100 ] && ssh -o ControlPath=~/m16 -o ControlMaster=no -o ProxyCommand=false %s 'echo hello world' "
        ">/dev/null 2>>~/m16.err; do n=$((n+1)); sleep 0.1; done; echo; tail -3 ~/m16.err; "
        "ssh -o ControlPath=~/m16 -O exit x 2>/dev/null; wait" % (at, at, at), timeout=60)
    t.ok("open failed" in out + err or "refused" in out + err, "16 channels of a connection, and no more", out, err)
    t.ok(tap.wait_for(lambda: box.sh("ssh %s 'echo hello world'" % at)[1] == "hello world\n", 5), "and another connection has its own")


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


def suggested(t, server):
    """From what was denied to rules that allow just that, once each has its login."""
    d = bed(t, server, [rule(server, "", commands=["echo hello"], read_files=["/nowhere/**"])], "suggested")
    asked = (("exec", "", "uname -a"), ("exec", "", "id -un"), ("connect", "", "db.internal:5432"), ("fetch", "/acme/a", ""), ("push", "/acme/a", ""),
             ("fetch", "/acme/b.git", ""), ("list", "", "/etc/one"), ("mkdir", "", "/srv/new"), ("remove", "", "/srv/old"), ("write", "", "/srv/to"),
             ("remove", "", "/srv/from"))
    at = "%s@%s" % (server.user, HOST)
    box = durward.Sandbox(d)
    box.sh("for c in 'uname -a' 'id -un'; do ssh %s \"$c\"; done; ssh -W db.internal:5432 %s; git ls-remote ssh://%s/acme/a; git ls-remote ssh://%s/acme/b.git;"
           "git init -q r; cd r; git commit -q --allow-empty -m x; git push -q ssh://%s/acme/a HEAD:refs/heads/x; ssh nobody@%s true;"
           "printf -- '-%%s\\n' 'ls /etc/one' 'mkdir /srv/new' 'rm /srv/old' 'rename /srv/from /srv/to' | sftp -q -b - %s" %
           (at, at, at, at, at, HOST, at), env=IDENTITY)
    box.close()
    d.settle()
    got = json.loads(d.command("audit", "suggest", "--json", d.audit_dir).stdout)
    rules = [x["rule"] for x in got]
    want = [{"allow": "ssh://" + at, "commands": ["uname -a", "id -un"], "forward": ["db.internal:5432"],
             "read_files": ["/etc/one", "/srv/old"], "write_files": ["/srv/new", "/srv/to"], "remove_files": ["/srv/old", "/srv/from"]}, {"allow": "ssh://%s/acme/a" % at},
            {"allow": "ssh://%s/acme/b.git" % at, "access": "read-only"}, {"allow": "ssh://nobody@" + HOST, "commands": ["true"]}]
    t.eq(sorted(rules, key=str), sorted(want, key=str), "audit suggest: rules of ssh:// for what was denied, and no others")
    text = d.command("audit", "suggest", d.audit_dir).stdout
    t.ok(text.count("with: {}") == 4 and 'commands: ["uname -a", "id -un"]' in text, "in the form of the configuration", text)
    d.policy("coder", [dict(r, **{"with": {"ssh_key": "deploy"}, "host_keys": server.host_key}) for r in rules])
    d.save()
    for method, path, more in asked:
        r = d.command("explain", "-c", d.conf, method, "ssh://%s%s" % (at, path), *([more] if more else []))
        t.ok(r.stdout.startswith("allow "), "with them it would be allowed: %s %s%s" % (method, path, more), r.stdout, r.stderr)


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
    t.part(known_keys, t)
    server = sshd.Sshd(t, options=["MaxStartups 400"])
    repo, closed = server.repository("acme", "app"), server.repository("closed", "app")
    readable, narrow = server.repository("read", "app"), server.repository("refs", "app")
    d = bed(t, server, [
        rule(server, "", commands=["echo hello world", "exit *", "wc -c", "head -c * /dev/zero",
                                   "sleep *"]),
        rule(server, os.path.dirname(repo) + "/**"),
        rule(server, os.path.dirname(readable) + "/*", access="read-only"),
        rule(server, narrow, refs="refs/heads/agent/*")])
    blob = base64.b64decode(b"".join(server.key.split(b"\n")[1:-2]))
    seed = blob[blob.rindex(b"\0\0\0\x40") + 4:][:32]  # of Ed25519: the private half
    scanner = scan.Scanner(deploy=seed, text=server.key.split(b"\n")[3])
    box = durward.Sandbox(d)
    t.part(commands, t, box, d, server, repo)
    t.part(git, t, box, d, server, repo, closed, readable)
    t.part(refs, t, box, d, server, narrow)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(memory, t, d, server, scanner)
    t.part(records, t, d, server, repo)
    t.part(ended, t, box, d, server)
    t.part(connections, t, box, d, server)
    t.part(descriptors, t, box, d, server)
    t.part(deaths, t, box, d, server)
    box.close()
    t.part(wrong_key, t, server)
    t.part(reloaded, t, server)
    t.part(suggested, t, server)
    t.part(kinds, t)
    for pid, line in tap.descendants():  # what a server without root leaves running when its client goes, for want of a terminal
        if line == "sleep 30":
            os.kill(pid, signal.SIGKILL)


tap.run(main, timeout=420)
