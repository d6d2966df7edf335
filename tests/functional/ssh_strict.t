#!/usr/bin/python3 -B
"""What SSH can be asked for beside commands and files, by either side: algorithms that are broken, keys made anew under load,
packets of no size, connections that never log in, and each of the ways to reach something else. OpenSSH on both sides where it has
the way, else bytes."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, sshd, tap  # noqa: E402

HOST = "git.example.com"
LATE = "exec >/dev/null; head -c 300000 /dev/zero 1>&2"
COMMANDS = ["echo hello world", "exit *", "cat", "wc -c", "head -c * /dev/zero", "sleep *", "kill -TERM $$", "printf %s *", "echo -n", LATE]
# What each greeting gets: a list of algorithms, or an end.
VERSIONS = """
import socket, sys
for hello in ('SSH-2.0-x', 'SSH-1.99-x', 'SSH-2.0-x with a comment', 'SSH-1.5-x', 'SSH-3.0-x', 'SSH-2.0', 'SSH--', 'ssh-2.0-x', ''):
    s = socket.create_connection((sys.argv[1], 22), 10)
    s.sendall(hello.encode() + b'\\r\\n')
    got = b''
    try:
        while b'\\n' not in got or b'curve25519' not in got:
            part = s.recv(65536)
            if not part:
                break
            got += part
    except OSError:
        pass
    print('list' if b'curve25519' in got else 'end', end=' ', flush=True)
"""
# Greetings without a name: how long until the far end goes; one with a name is waited for.
NAMELESS = """
import socket, sys, time
for hello in ('SSH-2.0-', 'SSH-2.0', 'SSH-2.0- x', 'SSH-1.99-', 'SSH-2.0-x'):
    s = socket.create_connection((sys.argv[1], 22), 10)
    s.settimeout(4)
    s.sendall(hello.encode() + b'\\r\\n')
    try:
        while s.recv(65536):
            pass
        print('end', end=' ', flush=True)
    except socket.timeout:
        print('waits', end=' ', flush=True)
    except OSError:
        print('end', end=' ', flush=True)
"""
# Speaks SSH's outer form only: what is sent before any key is agreed on, and how long it is until the far end goes.
RAW = """
import os, socket, struct, sys, time
def packet(body):
    pad = 8 - (len(body) + 5) % 8 + 4
    return struct.pack('>IB', len(body) + 1 + pad, pad) + body + b'\\0' * pad
def names(*lists):
    return b'\\x14' + b'x' * 16 + b''.join(struct.pack('>I', len(x)) + x for x in lists) + b'\\0' * 5
hello = b'SSH-2.0-test\\r\\n'
good = (b'curve25519-sha256', b'ssh-ed25519', b'aes128-ctr', b'aes128-ctr', b'hmac-sha2-256', b'hmac-sha2-256', b'none', b'none', b'', b'')
sent = {
    'silence': b'',
    'half a greeting': b'SSH-2.0-te',
    'a greeting alone': hello,
    'no greeting': b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n',
    'a greeting without an end': b'SSH-2.0-' + b'x' * 100000,
    'SSH 1': b'SSH-1.5-old\\r\\n',
    'a packet of 4 GiB': hello + b'\\xff\\xff\\xff\\xff' + b'\\x10' * 64,
    'a packet of 1 GiB': hello + b'\\x40\\0\\0\\0' + b'\\x10' * 4096,
    'a packet of nothing': hello + b'\\0\\0\\0\\0' + b'\\0' * 64,
    'a padding longer than its packet': hello + struct.pack('>IB', 12, 255) + b'\\x14' + b'\\0' * 64,
    'lists of a megabyte': hello + packet(names(*([b'x,' * 50000] * 10))),
    'a list cut': hello + packet(b'\\x14' + b'x' * 16 + b'\\0\\0\\xff\\xff' + b'x' * 20),
    'no algorithm in common': hello + packet(names(b'diffie-hellman-group1-sha1', *good[1:])),
    'a login before keys': hello + packet(b'\\x32' + b''.join(struct.pack('>I', len(x)) + x for x in (b'root', b'ssh-connection', b'none'))),
    'a channel before keys': hello + packet(b'\\x5a' + struct.pack('>I', 7) + b'session' + b'\\0' * 12),
    'a disconnect': hello + packet(b'\\x01' + b'\\0' * 12),
    'nothing but debug messages': hello + packet(b'\\x04\\0' + struct.pack('>I', 4) + b'text' + b'\\0' * 4) * 20000,
    'a key exchange twice': hello + packet(names(*good)) * 2,
}
for what, data in sent.items():
    s = socket.create_connection((sys.argv[1], 22), 10)
    s.settimeout(10)
    began, got = time.monotonic(), 0
    try:
        s.sendall(data)
        while True:
            part = s.recv(65536)
            got += len(part)
            if not part:
                break
        end = 'closed'
    except socket.timeout:
        end = 'open'
    except OSError:
        end = 'closed'
    print('%s|%s|%.1f|%d' % (what, end, time.monotonic() - began, got), flush=True)
"""

# Channels that OpenSSH's client does not ask for by itself; then sessions, until there are no more.
KINDS = """
import paramiko, sys
t = paramiko.Transport((sys.argv[1], 22))
t.connect(username=sys.argv[2], password='x')
refused = 0
for kind in ('direct-streamlocal@openssh.com', 'tun@openssh.com', 'x11', 'forwarded-tcpip', 'auth-agent@openssh.com', 'nobody@example.com'):
    try:
        t.open_channel(kind, ('127.0.0.1', 22), ('127.0.0.1', 22), timeout=5)
    except paramiko.ChannelException:
        refused += 1
print(refused)
held, full = [], 0
for i in range(18):
    try:
        held.append(t.open_channel('session', timeout=5))
    except paramiko.ChannelException:
        full += 1
print(full)
"""


def rule(server, pattern="", **more):
    return dict({"allow": "ssh://%s@%s%s" % (server.user, HOST, pattern), "with": {"ssh_key": "deploy"}, "host_keys": server.host_key}, **more)


def bed(t, server, rules, name, **limits):
    d = durward.Durward(t, name)
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = server.address
    d.limits = limits
    d.policy("coder", rules)
    return d


def towards_sandbox(t, box, server):
    """A client that offers what is broken is not spoken to."""
    at = "%s@%s" % (server.user, HOST)
    for option, value in (("KexAlgorithms", "diffie-hellman-group14-sha1"), ("KexAlgorithms", "diffie-hellman-group1-sha1"),
                          ("KexAlgorithms", "diffie-hellman-group-exchange-sha256"), ("Ciphers", "aes128-cbc"), ("Ciphers", "3des-cbc"),
                          ("MACs", "hmac-sha1"), ("MACs", "hmac-md5-96"), ("MACs", "umac-64@openssh.com"), ("HostKeyAlgorithms", "ssh-rsa")):
        cipher = " -c aes128-ctr" if option == "MACs" else ""
        status, out, err = box.sh("ssh -o %s=%s%s %s 'echo hello world'" % (option, value, cipher, at))
        t.ok(status == 255 and out == "" and "no matching" in err, "%s %s is not agreed to" % (option, value), out, err)
    status, out, err = box.sh("ssh -vvv %s 'echo hello world'" % at)
    t.ok(status == 0 and "strict KEX" in err, "a prefix cannot be cut (strict key exchange), towards the sandbox", err)
    for cipher in ("chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes192-ctr", "aes128-ctr"):
        status, out, err = box.sh("head -c 9000000 /dev/urandom >~/r; ssh -o RekeyLimit=1M -c %s %s cat <~/r | cmp - ~/r && echo same" % (cipher, at))
        t.ok(status == 0 and out == "same\n", "keys are made anew under load, both ways: " + cipher, out, err)


def towards_server(t, server):
    """A server that has only what is broken gets no login."""
    keys = "HostKey %s" % os.path.join(server.dir, "rsa")
    sshd.keygen(os.path.join(server.dir, "rsa"), "rsa", 2048)
    with open(os.path.join(server.dir, "rsa.pub")) as f:
        rsa = " ".join(f.read().split()[:2])
    sshd.keygen(os.path.join(server.dir, "short"), "rsa", 1024)
    with open(os.path.join(server.dir, "short.pub")) as f:
        short = " ".join(f.read().split()[:2])
    for what, options, key in (("no Diffie-Hellman but SHA-1's", ["KexAlgorithms diffie-hellman-group14-sha1"], None),
                               ("CBC alone", ["Ciphers aes128-cbc,3des-cbc"], None),
                               ("MACs of SHA-1 alone", ["MACs hmac-sha1", "Ciphers aes128-ctr"], None),
                               ("signatures of SHA-1", [keys, "HostKeyAlgorithms ssh-rsa"], rsa),
                               ("a host key of 1024 bits", ["HostKey %s" % os.path.join(server.dir, "short"), "RequiredRSASize 1024",
                                                            "HostKeyAlgorithms rsa-sha2-512"], short)):
        weak = sshd.Sshd(t, "sshd-" + re.sub(r"\W", "", what), options=options)
        one = dict(rule(weak, commands=COMMANDS), host_keys=key or weak.host_key)
        d = bed(t, weak, [one], "d-" + re.sub(r"\W", "", what))
        r = d.run(["ssh", "%s@%s" % (weak.user, HOST), "echo hello world"])
        t.ok(r.returncode == 255 and r.stdout == "" and weak.logins() == 0, "a server with %s gets no login" % what, r.stdout, r.stderr)
        weak.process.terminate()
    rekeys = sshd.Sshd(t, "sshd-rekeys", options=["RekeyLimit 1M", "LogLevel DEBUG3"])
    d = bed(t, rekeys, [rule(rekeys, commands=COMMANDS)], "d-rekeys")
    r = d.run(["sh", "-c", "head -c 9000000 /dev/urandom >r; ssh %s@%s cat <r | cmp - r && echo same" % (rekeys.user, HOST)])
    t.eq(r.stdout, "same\n", "keys that the server wants anew under load")
    t.ok("strict KEX" in rekeys.said(), "a prefix cannot be cut, towards the server")
    t.ok(len(re.findall(r"SSH2_MSG_NEWKEYS sent", rekeys.said())) > 2, "and they were made anew", str(len(re.findall("NEWKEYS sent", rekeys.said()))))
    rekeys.process.terminate()


def raw(t, server):
    """Bytes instead of SSH, and silence: each connection ends by itself, and the front goes on."""
    d = bed(t, server, [rule(server, commands=COMMANDS)], "raw", head_seconds=2)
    box = durward.Sandbox(d)
    before = [p for p, r in d.roles() if r == "ssh-front"]
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\" %s" % HOST, env={"P": RAW}, timeout=90)
    lines = [x.split("|") for x in out.splitlines()]
    t.ok(len(lines) == 18 and all(x[1] == "closed" and float(x[2]) < 5 for x in lines), "18 beginnings that are none end within the time for a head", out, err)
    t.ok(all(int(x[3]) < 5000 for x in lines), "and are answered by no more than a greeting and a list", out)
    flood = ("import socket\nheld = []\nfor i in range(400):\n    s = socket.create_connection((%r, 22), 10)\n    held.append(s)\n    held = held[-120:]\n"
             "print('done')") % HOST
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\"; ssh %s@%s 'echo hello world'" % (server.user, HOST), env={"P": flood}, timeout=60)
    t.ok(out == "done\nhello world\n", "400 connections that never log in, and then one that does", out, err)
    t.eq([p for p, r in d.roles() if r == "ssh-front"], before, "by the same front")
    box.close()


def elsewhere(t, box, d, server):
    """The ways to something else than a command: none opens, each is on record, and the server hears of none."""
    at, options = "%s@%s" % (server.user, HOST), "-o ExitOnForwardFailure=yes -o ConnectTimeout=5"
    box.sh("ssh-keygen -q -t ed25519 -N '' -f ~/own; (ssh-agent -D -a ~/agent >/dev/null 2>&1 &); sleep 0.2; SSH_AUTH_SOCK=~/agent ssh-add -q ~/own")
    before = server.logins()
    for what, command in (
            ("a port of the sandbox's", "ssh %s -R 8022:127.0.0.1:22 %s true" % (options, at)),
            ("a port of the server's choice", "ssh %s -R 0:127.0.0.1:22 %s true" % (options, at)),
            ("a proxy of the server's (-R without a target)", "ssh %s -R 8022 %s true" % (options, at)),
            ("what the server reaches", "ssh %s -W 127.0.0.1:22 %s" % (options, at))):
        denied = len(d.kinds("denied"))
        status, out, err = box.sh(command + " </dev/null")
        d.settle()
        t.ok(status != 0 and "SSH-2.0" not in out and len(d.kinds("denied")) > denied, "to %s: refused, and on record" % what, out, err)
    status, out, err = box.sh("ssh %s -R /tmp/x.sock:127.0.0.1:22 %s true </dev/null" % (options, at))
    t.ok(status == 255 and "failed" in err, "to a socket of the sandbox's: refused", out, err)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if box.sh("%s -c 'import paramiko'" % python)[0] == 0:
        denied = len(d.kinds("denied"))
        status, out, err = box.sh("%s -c \"$P\" %s %s" % (python, HOST, server.user), env={"P": KINDS})
        d.settle()
        t.ok(out.split() == ["6", "2"] and len(d.kinds("denied")) >= denied + 6, "channels of six other kinds, and a seventeenth session", out, err)
    else:
        t.skip("channels of other kinds", "the clients' environment has no paramiko (tests/functional/clients/setup)")
    for what, command in (
            ("-L", "(ssh -N -L 8022:127.0.0.1:22 %s & echo $! >~/pid); for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; exec 3<>/dev/tcp/127.0.0.1/8022 && break; done; "
                   "timeout 5 head -c 4 <&3; kill $(cat ~/pid)" % at),
            ("-D", "(ssh -N -D 1080 %s & echo $! >~/pid); for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; exec 3<>/dev/tcp/127.0.0.1/1080 && break; done; "
                   "printf '\\5\\1\\0\\5\\1\\0\\1\\177\\0\\0\\1\\0\\26' >&3; timeout 5 head -c 16 <&3 | tail -c +13; kill $(cat ~/pid)" % at)):
        status, out, err = box.sh("bash -c \"$C\" 2>/dev/null", env={"C": command})
        t.ok("SSH" not in out, "nothing comes by " + what, out, err)
    status, out, err = box.sh("export SSH_AUTH_SOCK=~/agent; ssh -A %s 'echo hello world'" % at)
    d.settle()
    t.ok(out == "hello world\n" and server.logins() == before + 1, "a command with an agent offered runs without it", out, err)
    t.ok({"forwarding of an agent"} <= {r.get("detail") for r in d.kinds("denied")}, "which is on record")
    status, out, err = box.sh("DISPLAY=:9 XAUTHORITY=/dev/null ssh -Y %s 'echo hello world'" % at)
    t.ok(out == "hello world\n", "and so does one with X11", out, err)
    status, out, err = box.sh("ssh -o SendEnv='LD_PRELOAD LANG' -o SetEnv=BASH_ENV=/tmp/x %s 'echo hello world'" % at, env={"LD_PRELOAD": "", "LANG": "C"})
    t.ok(out == "hello world\n", "variables are left out, and the command runs", out, err)


def endings(t, box, d, server):
    """How commands end, in OpenSSH's words or ours."""
    at = "%s@%s" % (server.user, HOST)
    status, out, err = box.sh("ssh %s 'kill -TERM $$'" % at)
    t.ok(status == 255 or status == 143, "a command that a signal ends", str(status), err)
    status, out, err = box.sh("ssh %s 'head -c 100000000 /dev/zero' | head -c 10 | wc -c" % at)
    t.eq(out.strip(), "10", "a client that takes no more")
    status, out, err = box.sh("ssh -n %s 'wc -c'; ssh %s 'wc -c' </dev/null" % (at, at))
    t.eq(out.split(), ["0", "0"], "no standard input")
    status, out, err = box.sh("ssh %s 'echo hello world' >&-; echo $?" % at)
    t.ok(out.strip() in ("0", "1", "255"), "a client without standard output ends", out, err)
    for n in (1, 5, 50):
        status, out, err = box.sh("ssh %s 'exit %d'" % (at, n))
        t.eq(status, n, "status %d comes back" % n)
    status, out, err = box.sh("ssh %s ''" % at)
    t.ok(status == 128 and "denied" in err, "an empty command is a shell, and denied", str(status), err)
    status, out, err = box.sh("ssh %s \"$(head -c 3000 /dev/zero | tr '\\0' x)\"" % at)
    t.ok(status == 128 and "denied" in err, "one that is too long to be judged", str(status), err)
    status, out, err = box.sh("ssh -o ServerAliveInterval=1 %s 'sleep 2'" % at)
    d.settle()
    t.ok(status == 0 and "forwarding of a port back" not in {r.get("detail") for r in d.kinds("denied")},
         "a client that asks whether we live, which is nothing to deny", str(status), err)
    status, out, err = box.sh("ssh -o ControlPath=~/mux -M -N -f %s; for i in 1 2 3; do ssh -o ControlPath=~/mux %s 'exit 5'; echo $?; done; "
                              "ssh -o ControlPath=~/mux -O forward -R 8022:127.0.0.1:22 x; echo $?; ssh -o ControlPath=~/mux -O exit x" % (at, at))
    t.eq(out.split(), ["5", "5", "5", "255"], "a connection for several, which forwards nothing either")
    for user in ("-oProxyCommand=x", "a" * 65, "root\\$(id)", ""):
        status, out, err = box.sh("ssh -l '%s' %s 'echo hello world'" % (user, HOST))
        t.ok(status in (128, 255) and "hello" not in out, "a user's name that is none: %.20r" % user, out, err)


def transfers(t, box, d, server):
    """What OpenSSH's own tests ask of a session (exit-status, stderr-after-eof, transfer, proto-version), through the broker."""
    at = "%s@%s" % (server.user, HOST)
    status, out, err = box.sh("for n in 0 1 4 5 44; do ssh -n %s \"exit $n\"; echo $?; done" % at)
    t.eq(out.split(), "0 1 4 5 44".split(), "statuses, without standard input")
    status, out, err = box.sh("ssh -n %s '%s' 2>&1 >/dev/null | wc -c" % (at, LATE))
    t.eq(out.strip(), "300000", "standard error behind the end of standard output is whole")
    status, out, err = box.sh("head -c 262144 /dev/urandom >~/r; for n in 0 1 10 100 1024 32768 65536 131072 262144; do head -c $n ~/r >~/a; "
                              "ssh %s cat <~/a >~/b; cmp ~/a ~/b && ssh -n %s \"head -c $n /dev/zero\" | wc -c; done" % (at, at), timeout=90)
    t.eq(out.split(), "0 1 10 100 1024 32768 65536 131072 262144".split(), "sizes, both ways")
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\" %s" % HOST, env={"P": VERSIONS}, timeout=90)
    t.eq(out.split()[:5] + out.split()[6:], "list list list end end end end end".split(), "greetings of other versions: " + out)
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\" %s" % HOST, env={"P": NAMELESS}, timeout=90)
    t.eq(out.split(), "end end end end waits".split(), "greetings without a name of their software: " + err)


def cut_off(t):
    """A server that closes a command's channel and says no status: OpenSSH's client says 255, and never that all went well."""
    cuts = sshd.Sshd(t, "sshd-cuts", options=["ChannelTimeout session:command=1"])
    d = bed(t, cuts, [rule(cuts, commands=COMMANDS)], "d-cuts")
    r = d.run(["ssh", "%s@%s" % (cuts.user, HOST), "sleep 30"])
    t.ok(r.returncode == 255 and r.stdout == "", "a command that the server cuts off has no status", str(r.returncode), r.stdout, r.stderr)
    t.ok(d.wait_records(1, "completed", detail="the server cut it off, and said no status"), "which is on record")
    cuts.process.terminate()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    server = sshd.Sshd(t, options=["MaxStartups 400"])
    d = bed(t, server, [rule(server, commands=COMMANDS)], "d")
    box = durward.Sandbox(d, binds=durward.client_binds("venv"))
    t.part(towards_sandbox, t, box, server)
    t.part(endings, t, box, d, server)
    t.part(transfers, t, box, d, server)
    t.part(elsewhere, t, box, d, server)
    box.close()
    t.part(raw, t, server)
    t.part(towards_server, t, server)
    t.part(cut_off, t)
    for pid, line in tap.descendants():
        if line.startswith("sleep ") or line.startswith("ssh-agent "):
            os.kill(pid, signal.SIGKILL)


tap.run(main, timeout=300)
