"""A real mail server on loopback (aiosmtpd), and servers that say what no mail server should."""
import json
import os
import socket
import subprocess

from .accepting import accepting
from .nginx import free_port
from .tap import wait_for

PYTHON = "/usr/bin/python3"
PASSWORD, TOKEN, USER = "mail-password-4711", "mail-token-4711", "agent@acme.example"


def missing():
    """Why there can be no server here; None: there can."""
    r = subprocess.run([PYTHON, "-c", "import aiosmtpd"], capture_output=True)
    return None if r.returncode == 0 else "python3-aiosmtpd is not installed"


def answers(port):
    """Does a mail server greet there?"""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as s:
            return s.recv(4) == b"220 "
    except OSError:
        return False


class Smtp:
    """.starttls, .tls and .plain are addresses; logins() and messages(): what came to it."""

    def __init__(self, test, ca, name, *hosts):
        self.log = os.path.join(test.mkdir(name), "log")
        crt, key = ca.issue(*hosts)
        ports = [free_port() for _ in range(3)]
        self.starttls, self.tls, self.plain = ("127.0.0.1:%d" % p for p in ports)
        here = os.path.dirname(os.path.abspath(__file__))
        with open(self.log + ".err", "ab") as err:
            self.process = test.popen([PYTHON, "-B", os.path.join(here, "smtp_server.py"), crt, key, self.log] +
                                      [str(p) for p in ports], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        if not wait_for(lambda: all(answers(p) for p in (ports[0], ports[2])), 30):
            with open(self.log + ".err", errors="replace") as f:
                raise RuntimeError("aiosmtpd does not start: " + f.read())

    def came(self, what):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as f:
            return [r for r in map(json.loads, f) if r["what"] == what]

    def logins(self):
        return self.came("login")

    def messages(self):
        return self.came("message")


class Scripted:
    """Answers each line with the next of its texts, the first of them at once. .address; .said: lines that came."""

    def __init__(self, *texts):
        self.texts, self.said = texts, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        accepting(self.listener, self._one)

    def _one(self, s):
        with s, s.makefile("rb") as f:
            s.settimeout(20)
            try:
                for text in self.texts:
                    s.sendall(text)
                    self.said.append(f.readline())
            except OSError:
                pass

    def close(self):
        self.listener.close()
