#!/usr/bin/python3 -B
"""Commits, tags and files signed inside a sandbox with OpenSSH's and git's own programs, by keys that stay in the vault: what
policy names is signed and verifies, and everything else that an agent can be asked for is refused and on record."""
import base64
import hashlib
import os
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, sshd, tap  # noqa: E402

IDENTITY = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.com"}
ASK = ("import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(15)\ns.connect(os.environ['SSH_AUTH_SOCK'])\n"
       "for word in sys.argv[1:]:\n    got = b''\n    try:\n        s.sendall(bytes.fromhex(word))\n"
       "        while len(got) < 4 or len(got) < 4 + int.from_bytes(got[:4], 'big'):\n"
       "            part = s.recv(65536)\n            if not part:\n                break\n            got += part\n"
       "    except ConnectionError:\n        got = b''  # it ended before it read this: a broken pipe, or a reset\n"
       "    print(got.hex() or 'ended', flush=True)\n    if not got:\n        break\n")


def text(b):
    return struct.pack(">I", len(b)) + b


def signed_text(space, data=b"data", algorithm=b"sha512"):
    return b"SSHSIG" + text(space) + text(b"") + text(algorithm) + text(hashlib.new(algorithm.decode(), data).digest())


def request(blob, data, flags=0):
    return text(b"\x0d" + text(blob) + text(data) + struct.pack(">I", flags))


def blob_of(public):
    return base64.b64decode(public.split()[1])


def fingerprint(public):
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob_of(public)).digest()).decode().rstrip("=")


def ask(box, *words):
    """-> the answers' types, "ended" where there was none"""
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\" %s" % " ".join(w.hex() for w in words), env={"P": ASK})
    return [x if x == "ended" else int(x[8:10], 16) for x in out.split()] or err


def listed(t, box, keys):
    status, out, err = box.sh("ssh-add -l")
    t.ok(status == 0 and {x.split()[1] for x in out.splitlines()} == {fingerprint(k) for k in keys.values()},
         "ssh-add lists the keys of the rules", out, err)
    t.eq([x.split()[2] for x in out.splitlines()], ["signer", "filer"], "in their order, by the names that they have in the configuration")


def git(t, box, keys):
    status, out, err = box.sh(
        "set -e; cd ~; git init -q -b main r; cd r; echo '* %s' > ~/allowed; git config gpg.ssh.allowedSignersFile ~/allowed; "
        "git commit -q -S --allow-empty -m one; git tag -s -m v1 v1; git verify-commit HEAD; git verify-tag v1; "
        "git log -1 --format=%%G?%%GK" % keys["signer"], env=IDENTITY)
    t.ok(status == 0 and out == "G" + fingerprint(keys["signer"]) + "\n" and err.count("Good \"git\" signature") == 2,
         "git commit -S and git tag -s with nothing configured, and they verify", out, err)


def files(t, box, keys):
    status, out, err = box.sh(
        "set -e; cd ~; echo '%s' > k.pub; echo hello > f; ssh-keygen -q -Y sign -n file -f k.pub f; echo '* %s' > a2; "
        "ssh-keygen -Y verify -n file -f a2 -I x -s f.sig < f" % (keys["filer"], keys["filer"]))
    t.ok(status == 0 and "Good \"file\" signature" in out, "ssh-keygen -Y sign with an RSA key, and it verifies", out, err)


def refused(t, box, keys, d):
    signer, filer = blob_of(keys["signer"]), blob_of(keys["filer"])
    login = (text(b"s" * 32) + b"\x32" + text(b"git") + text(b"ssh-connection") + text(b"publickey") + b"\x01" +
             text(b"ssh-ed25519") + text(signer))
    good = request(signer, signed_text(b"git"))
    t.eq(ask(box, good), [14], "a text of SSHSIG in its namespace is signed")
    for what, words in (
            ("a login", request(signer, login)),
            ("a namespace of no rule", request(signer, signed_text(b"other"))),
            ("another rule's key", request(filer, signed_text(b"git"), 4)),
            ("another rule's namespace", request(signer, signed_text(b"file"))),
            ("a key of nobody's", request(signer[:-1] + b"x", signed_text(b"git"))),
            ("a namespace that begins alike", request(signer, signed_text(b"git2"))),
            ("no namespace", request(signer, signed_text(b""))),
            ("a namespace with a NUL", request(signer, signed_text(b"git\0"))),
            ("a path for a namespace", request(signer, signed_text(b"x/../git"))),
            ("more behind the text", request(signer, signed_text(b"git") + b"x")),
            ("less of it", request(signer, signed_text(b"git")[:-1])),
            ("a hash of SHA-1", request(signer, signed_text(b"git", algorithm=b"sha1"))),
            ("a hash of another length", request(signer, signed_text(b"git").replace(b"sha512", b"sha256"))),
            ("SHA-1 of an RSA key", request(filer, signed_text(b"file"))),
            ("a request that is cut", text(good[4:-1])),
            ("a request with more behind it", text(good[4:] + b"x")),
            ("a list with more behind it", text(b"\x0bx")),
            ("a key to add", text(b"\x11" + text(b"ssh-ed25519") + text(b"x" * 32) + text(b"x" * 64) + text(b""))),
            ("removal of all keys", text(b"\x13")), ("a lock", text(b"\x16" + text(b"x"))),
            ("a smart card", text(b"\x14" + text(b"/x.so") + text(b""))),
            ("an extension", text(b"\x1b" + text(b"session-bind@openssh.com") + text(b"x"))),
            ("a message that there is not", text(b"\xff"))):
        t.eq(ask(box, words, good), [5, 14], what + " is refused, and the next request served")
    for what, words in (("no message", text(b"")), ("a message of 16 KiB and more", struct.pack(">I", 16385) + b"\x0d")):
        t.eq(ask(box, words), [5], what + " is refused")
    t.eq(ask(box, *[text(b"\xff")] * 102), [5] * 101 + ["ended"], "after a hundred refusals it ends")
    status, out, err = box.sh("cd ~; echo x > g; ssh-keygen -Y sign -n other -f k.pub g")
    t.ok(status != 0 and "refused" in err, "ssh-keygen says that the agent refused", out, err)
    status, out, err = box.sh("ssh-add -D; ssh-add -x </dev/null; ssh-keygen -q -t ed25519 -N '' -f ~/own; ssh-add ~/own")
    t.ok(status != 0, "ssh-add adds and removes nothing", out, err)


def records(t, d, keys):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("method") == "sign"]
    digest = "sha512:" + hashlib.sha512(b"data").hexdigest()
    one = next((r for r in admitted if r.get("signed_hash") == digest), {})
    t.ok(one.get("key_fingerprint") == fingerprint(keys["signer"]) and one.get("path") == "/git" and one.get("credential") == "signer" and
         one.get("rule") == "allow ssh-agent://git" and one.get("role") == "ssh-back" and one.get("sandbox"),
         "a signature is on record before it is made: key, namespace, hash, rule", str(one))
    ends = d.ends(admitted)
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end", str([r for r in admitted if r["id"] not in ends][:3]))
    denied = [r for r in d.kinds("denied") if r.get("authority") == "gate.durward.internal"]
    t.ok({"ssh_agent_text", "ssh_agent_request", "ssh_agent_key", "no_rule"} <= {r.get("code") for r in denied},
         "what was refused is on record with its code", str({r.get("code") for r in denied}))
    other = [r for r in denied if r.get("path") == "/other"]
    t.ok(other and all(r.get("role") == "ssh-front" and r.get("key_fingerprint") and r.get("signed_hash", "").startswith("sha512:") for r in other), "with key, namespace and hash",
         str(other[:1]))


def connections(t, box):
    program = ("import os, socket\nheld = []\nfor i in range(17):\n    s = socket.socket(socket.AF_UNIX)\n    s.settimeout(10)\n"
               "    s.connect(os.environ['SSH_AUTH_SOCK'])\n    held.append(s)\n"
               "    try:\n        s.sendall(b'\\0\\0\\0\\1\\x0b')\n        got = s.recv(5)\n    except ConnectionError:\n        got = b''\n    print(len(got), end=' ')\n")
    status, out, err = box.sh("/usr/bin/python3 -c \"$P\"", env={"P": program})
    t.eq(out.split(), ["5"] * 16 + ["0"], "16 connections at once, and no more")
    t.ok(tap.wait_for(lambda: box.sh("ssh-add -l")[0] == 0, 5), "and another has its turn")


def deaths(t, box, d):
    for role in ("ssh-front", "ssh-back"):
        old = [p for p, r in d.roles() if r == role]
        t.eq(len(old), 1, "there is one " + role)
        os.kill(old[0], signal.SIGKILL)
        died = time.monotonic()
        back = tap.wait_for(lambda: box.sh("ssh-add -l")[0] == 0, 3)
        t.ok(back and time.monotonic() - died < 1.5, role + " is back within a second", "%.2f s" % (time.monotonic() - died))


def memory(t, d, scanner):
    if os.geteuid() != 0:
        t.skip("memory of front and back", "reading other processes' memory needs root")
        return
    for pid, role in d.roles():
        if role in ("ssh-front", "ssh-back", "gate"):
            scan.scan_process(pid, scanner, role)
    t.eq(scanner.report(), [], "0 copies of the key in front, back and gate")


def without(t):
    d = durward.Durward(t, "without")
    d.policy("coder", [{"allow": "web.example.com"}])
    r = d.run(["sh", "-c", "echo \"${SSH_AUTH_SOCK-none}\"; git config --system gpg.format || echo none"])
    t.eq(r.stdout.split(), ["none", "none"], "a policy that signs nothing makes no agent, and leaves git as it is")
    d.secret("key", sshd.keygen(os.path.join(d.dir, "key"))[0])
    d.secrets["signer"] = {"ssh_signing_key": {"key": "key"}}
    d.secrets["login"] = {"ssh_key": {"key": "key"}}
    for what, rule in (("a login's key", {"allow": "ssh-agent://git", "with": {"ssh_key": "login"}}),
                       ("a login's key as one that signs", {"allow": "ssh-agent://git", "with": {"ssh_signing_key": "login"}}),
                       ("a star", {"allow": "ssh-agent://*", "with": {"ssh_signing_key": "signer"}}),
                       ("a signing key for a server", {"allow": "ssh://git@github.com/a/b", "with": {"ssh_signing_key": "signer"}}),
                       ("'access'", {"allow": "ssh-agent://git", "access": "read-only", "with": {"ssh_signing_key": "signer"}})):
        d.policy("coder", [rule])
        t.ok(d.check().returncode != 0, what + " is refused at load")


def main(t):
    d = durward.Durward(t)
    keys, private = {}, {}
    for name, kind in (("signer", "ed25519"), ("filer", "rsa")):
        private[name], keys[name] = sshd.keygen(os.path.join(d.dir, name), kind, 3072 if kind == "rsa" else None)
        d.secret(name + "_key", private[name])
    d.secrets["signer"] = {"ssh_signing_key": {"key": "signer_key"}}
    d.secrets["filer"] = {"ssh_signing_key": {"key": "filer_key", "namespaces": ["file"]}}
    d.policy("coder", [{"allow": "ssh-agent://git", "with": {"ssh_signing_key": "signer"}},
                       {"allow": "ssh-agent://file", "with": {"ssh_signing_key": "filer"}}])
    blob = base64.b64decode(b"".join(private["signer"].split(b"\n")[1:-2]))
    scanner = scan.Scanner(signer=blob[blob.rindex(b"\0\0\0\x40") + 4:][:32], text=private["signer"].split(b"\n")[3])
    box = durward.Sandbox(d)
    t.part(listed, t, box, keys)
    t.part(git, t, box, keys)
    t.part(files, t, box, keys)
    t.part(refused, t, box, keys, d)
    t.part(records, t, d, keys)
    t.part(connections, t, box)
    t.part(memory, t, d, scanner)
    t.part(deaths, t, box, d)
    box.close()
    t.part(without, t)


tap.run(main, timeout=240)
