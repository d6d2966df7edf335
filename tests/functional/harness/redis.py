"""A real Redis server on loopback, in clear and with TLS, with logins of its own."""
import os
import shutil
import socket
import subprocess

from .nginx import free_port
from .tap import wait_for

CONF = """bind 127.0.0.1
port %(port)d
tls-port %(tls)d
tls-cert-file %(crt)s
tls-key-file %(key)s
tls-auth-clients %(asks)s
%(more)s
save ""
dir %(dir)s
enable-debug-command yes
user default on >%(admin)s ~* &* +@all
user app on >app-password-4711 ~* &* +@all
"""
ADMIN = "default-password-4711"


def missing():
    """Why there can be no server here; None: there can."""
    return None if shutil.which("redis-server") else "redis-server is not installed"


def encode(*words):
    said = b"*%d\r\n" % len(words)
    for w in words:
        w = w if isinstance(w, bytes) else str(w).encode()
        said += b"$%d\r\n%s\r\n" % (len(w), w)
    return said


def reply(f):
    """One reply (RESP2) of a file."""
    line = f.readline()[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest.decode()
    if kind == b"-":
        return Exception(rest.decode())
    if kind == b":":
        return int(rest)
    if int(rest) < 0:
        return None
    if kind == b"$":
        return f.read(int(rest) + 2)[:-2]
    return [reply(f) for _ in range(int(rest))]


class Redis:
    """.address (in clear), .tls; call() as its administrator, beside the broker."""

    def __init__(self, test, ca, name, host, clients=None):
        """clients: the authority (PEM) of its clients' certificates, without which TLS lets nobody in."""
        self.dir = test.mkdir(name)
        crt, key = ca.issue(host)
        self.port, self.tls_port = free_port(), free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.tls = "127.0.0.1:%d" % self.tls_port
        conf = os.path.join(self.dir, "redis.conf")
        with open(conf, "w") as f:
            f.write(CONF % {"port": self.port, "tls": self.tls_port, "crt": crt, "key": key,
                            "dir": self.dir, "admin": ADMIN, "asks": "yes" if clients else "no",
                            "more": "tls-ca-cert-file " + clients if clients else ""})
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = test.popen(["redis-server", conf], stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL)
        if not wait_for(self._answers, 30):
            raise RuntimeError("redis-server does not start: " + self.said())

    def _answers(self):
        try:
            return self.call("PING") == "PONG"
        except OSError:
            return False

    def call(self, *words, database=0):
        with socket.create_connection(("127.0.0.1", self.port), 10) as s, s.makefile("rb") as f:
            s.sendall(encode("AUTH", ADMIN) + encode("SELECT", database) + encode(*words))
            return [reply(f) for _ in range(3)][2]

    def said(self):
        with open(os.path.join(self.dir, "log"), errors="replace") as f:
            return f.read()
