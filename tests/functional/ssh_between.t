#!/usr/bin/python3 -B
"""Somebody between who has no key: at the network between the broker and an OpenSSH server, and between OpenSSH's client inside and the
broker. What is put in (Terrapin's way), changed or said twice ends the connection before anything of it is believed."""
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside"))
from harness import durward, sshd, tap  # noqa: E402
from harness.accepting import accepting  # noqa: E402
import ssh_between  # noqa: E402

HOST = "git.example.com"
EARLY = ("before the list", "within the exchange", "before the new keys", "another list", "a bit at once", "twice")
LATE = "a bit later"
CIPHERS = ("chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr")


class Between:
    """.address; .up and .down: what is done to what comes from a client, and from the server."""

    def __init__(self, t, port):
        self.port, self.up, self.down = port, "", ""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        t.cleanup(self.listener.close)
        accepting(self.listener, lambda s: ssh_between.relay(s, socket.create_connection(("127.0.0.1", self.port)), self.up, self.down))


def bed(t, server, address, name):
    d = durward.Durward(t, name)
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = address
    d.policy("coder", [{"allow": "ssh://%s@%s" % (server.user, HOST), "commands": ["head -c * /dev/zero", "wc -c"], "with": {"ssh_key": "deploy"},
                        "host_keys": server.host_key}])
    return d


def whole(box, at, options=""):
    """-> (how much came of what a server said, how much a server says that it got)"""
    out = box.sh("timeout 20 ssh %s %s 'head -c 30000 /dev/zero' | wc -c; head -c 30000 /dev/zero | timeout 20 ssh %s %s 'wc -c'" %
                 (options, at, options, at), timeout=60)[1].split()
    return int(out[0]), int(out[1]) if len(out) > 1 else 0


def towards_server(t, cipher):
    name = cipher.split("@")[0]
    server = sshd.Sshd(t, "sshd-" + name, options=["Ciphers " + cipher, "MaxStartups 400"])
    between = Between(t, server.port)
    d = bed(t, server, between.address, "d-" + name)
    box, at = durward.Sandbox(d), "%s@%s" % (server.user, HOST)
    t.eq(whole(box, at), (30000, 30000), "%s: nothing is done (control)" % cipher)
    for way in ("down", "up"):
        for deed in EARLY:
            setattr(between, way, deed)
            before = server.logins()
            t.eq((whole(box, at), server.logins() - before), ((0, 0), 0), "%s: %s, %s: no login" % (cipher, deed, way))
            setattr(between, way, "")
    between.down = LATE
    got = whole(box, at)[0]
    t.ok(got < 30000, "%s: %s, down: what comes ends there" % (cipher, LATE), got)
    between.down, between.up = "", LATE
    t.eq(whole(box, at)[1], 0, "%s: %s, up: the server ends it" % (cipher, LATE))
    between.up = ""
    t.eq(whole(box, at), (30000, 30000), "%s: and the next ones are whole" % cipher)
    d.settle()
    admitted = d.kinds("admitted")
    ends = d.ends(admitted)
    t.eq(([r for r in admitted if r["id"] not in ends], len(d.kinds("completed"))), ([], 4 + 2), "each has its end, the whole ones alone a good one")
    box.close()
    server.process.terminate()


def towards_sandbox(t):
    server = sshd.Sshd(t)
    d = bed(t, server, server.address, "d")
    box, at = durward.Sandbox(d), "%s@%s" % (server.user, HOST)
    by = "-o ProxyCommand=\"/usr/bin/python3 %s/ssh_between.py %%h '%%s'\" -c %%s" % durward.INSIDE
    front = [p for p, r in d.roles() if r == "ssh-front"]
    for cipher in CIPHERS:
        t.eq(whole(box, at, by.replace("%h", HOST) % ("", cipher)), (30000, 30000), "%s: nothing is done inside (control)" % cipher)
        before = server.logins()
        for deed in EARLY:
            t.eq(whole(box, at, by.replace("%h", HOST) % (deed, cipher)), (0, 0), "%s: %s, inside: the broker ends it" % (cipher, deed))
        t.eq(server.logins(), before, "and the server hears of none")
        t.eq(whole(box, at, by.replace("%h", HOST) % (LATE, cipher))[1], 0, "%s: %s, inside" % (cipher, LATE))
    t.eq((whole(box, at), [p for p, r in d.roles() if r == "ssh-front"]), ((30000, 30000), front), "the same front goes on")
    box.close()
    server.process.terminate()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    for cipher in CIPHERS:
        t.part(towards_server, t, cipher)
    t.part(towards_sandbox, t)


tap.run(main, timeout=400)
