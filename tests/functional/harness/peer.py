"""A server of tests/functional/peers as a process: what it said of itself and of each connection or
call, a JSON object a line."""
import json
import os
import subprocess
import threading

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers")


def path(name):
    return os.path.join(FOLDER, name)


class Peer:
    """argv: without certificate and key, which come first among its arguments."""

    def __init__(self, test, scene, host, argv, more=()):
        cert, key = scene.d.ca.issue(host.partition(":")[0])
        self.names, self.lines = [host], []
        self.process = test.popen(list(argv) + [cert, key] + list(more), stdout=subprocess.PIPE)
        first = self.process.stdout.readline()
        if not first:
            raise RuntimeError("%s did not start" % argv)
        self.address = "127.0.0.1:%d" % json.loads(first)["port"]
        threading.Thread(target=self.read, daemon=True).start()
        scene.d.origin(host, self)

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def count(self, event):
        return sum(x["event"] == event for x in self.lines)
