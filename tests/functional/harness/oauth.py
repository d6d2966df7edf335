"""The OAuth server of the tests (oauth_server.py: Authlib's), in a process of its own."""
import glob
import json
import os

from . import durward, nginx, scan, scene, tap


class Server:
    """names: of its certificate. life: seconds of its tokens. start(more): of its configuration."""

    def __init__(self, t, d, names, life):
        self.t = t
        self.python = os.path.join(durward.clients_dir(), "venv/bin/python")
        if not glob.glob(os.path.join(durward.clients_dir(), "venv/lib/*/site-packages/authlib")):
            raise tap.Skip("Authlib is not there: run tests/functional/clients/setup")
        self.dir = t.mkdir("oauth")
        self.crt, self.key = d.ca.issue(*names)
        self.port = nginx.free_port()
        self.log, self.control = (os.path.join(self.dir, x) for x in ("log", "control"))
        self.conf = {"port": self.port, "cert": self.crt, "key": self.key, "log": self.log,
                     "control": self.control, "life": life, "refresh": "unused", "private": "",
                     "public": "", "ec_public": "", "google": "", "clients": [],
                     "signing": scan.canary("signing-").decode()}

    def start(self, **more):
        self.conf.update(more)
        err = open(os.path.join(self.dir, "err"), "ab")
        self.process = self.t.popen(
            [self.python, os.path.join(durward.SUITE, "harness", "oauth_server.py"),
             json.dumps(self.conf)], stdout=err, stderr=err, cwd=self.dir)
        err.close()
        if not tap.wait_for(lambda: scene.reachable("127.0.0.1:%d" % self.port), 30, 0.1):
            with open(os.path.join(self.dir, "err")) as f:
                raise RuntimeError(f.read())

    def say(self, word):
        with open(self.control, "w") as f:
            f.write(word)

    def notes(self, **want):
        try:
            with open(self.log) as f:
                lines = [json.loads(x) for x in f if x.endswith("\n")]
        except FileNotFoundError:
            lines = []
        return [x for x in lines if all(k in x if v is ... else x.get(k) == v
                                        for k, v in want.items())]
