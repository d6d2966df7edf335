"""A network namespace for clients that are not in a sandbox of ours (root only)."""
import os
import random
import subprocess

from .tap import Skip


def ip(*args, ns=None):
    return subprocess.run((["ip", "netns", "exec", ns] if ns else []) + ["ip"] + list(args),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Namespace:
    """A network namespace joined to the host by one veth pair; no route further."""

    def __init__(self, t):
        self.name = "durward-t%d" % os.getpid()
        third = random.randrange(1, 250)
        self.host, self.peer = "10.213.%d.1" % third, "10.213.%d.2" % third
        a, b = "dwt%dh" % (os.getpid() % 100000), "dwt%dp" % (os.getpid() % 100000)
        if ip("netns", "add", self.name).returncode != 0:
            raise Skip("cannot make a network namespace")
        t.cleanup(lambda: (ip("link", "del", a), ip("netns", "del", self.name)))
        for r in (ip("link", "add", a, "type", "veth", "peer", "name", b, "netns", self.name),
                  ip("addr", "add", self.host + "/30", "dev", a), ip("link", "set", a, "up"),
                  ip("addr", "add", self.peer + "/30", "dev", b, ns=self.name),
                  ip("link", "set", b, "up", ns=self.name),
                  ip("link", "set", "lo", "up", ns=self.name)):
            if r.returncode != 0:
                raise Skip("cannot make a veth pair: " + r.stderr.decode().strip())

    def sh(self, command):
        r = subprocess.run(["ip", "netns", "exec", self.name, "env", "-i", "PATH=/usr/bin:/bin",
                            "HOME=/nonexistent", "sh", "-c", command], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=40)
        return r.returncode, r.stdout.decode(), r.stderr.decode()
