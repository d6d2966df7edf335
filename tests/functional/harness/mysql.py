"""A real MariaDB server on loopback, with TLS and as an ordinary account."""
import os
import pwd
import shutil
import subprocess
import tempfile

from .nginx import free_port
from .tap import wait_for

SERVER, INSTALL = "/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db"


def missing():
    """Why there can be no server here; None: there can."""
    return None if os.path.exists(SERVER) and os.path.exists(INSTALL) else "mariadb-server is not installed"


class Mysql:
    """.address; sql() as its administrator, beside the broker; said(): the statements that came to it."""

    def __init__(self, test, ca, *names, clients=None):
        """clients: the authority (PEM) of its clients' certificates, for which it asks then."""
        self.test = test
        # the server's account must reach it, which it may not below the test's own folder
        self.dir = tempfile.mkdtemp(prefix="durward-mysql-")
        test.cleanup(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        self.data, self.socket = self.dir + "/data", self.dir + "/socket"
        self.general, self.log = self.dir + "/general", self.dir + "/log"
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.account = pwd.getpwuid(os.getuid())
        if os.getuid() == 0:
            self.account = pwd.getpwnam("nobody")
        self.user = ["--user=" + self.account.pw_name] if os.getuid() == 0 else []
        crt, key = ca.issue(*names)
        shutil.copy(crt, self.dir + "/server.crt")
        shutil.copy(key, self.dir + "/server.key")
        os.chmod(self.dir + "/server.key", 0o600)
        if clients:
            shutil.copy(clients, self.dir + "/clients.crt")
        os.mkdir(self.data)
        self._own()
        r = subprocess.run([INSTALL, "--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal",
                            "--datadir=" + self.data] + self.user, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, cwd="/", timeout=60)
        if r.returncode != 0:
            raise RuntimeError("mariadb-install-db: " + r.stdout.decode(errors="replace"))
        self._own()
        with open(self.log, "ab") as log:
            test.popen([SERVER, "--no-defaults", "--datadir=" + self.data, "--socket=" + self.socket,
                        "--bind-address=127.0.0.1", "--port=%d" % self.port, "--ssl-cert=%s/server.crt" % self.dir,
                        "--ssl-key=%s/server.key" % self.dir, "--general-log=1", "--general-log-file=" + self.general,
                        "--plugin-load-add=auth_ed25519", "--innodb-flush-log-at-trx-commit=0",
                        "--innodb-buffer-pool-size=16M", "--pid-file=%s/pid" % self.dir] + self.user
                       + (["--ssl-ca=%s/clients.crt" % self.dir] if clients else []),
                       stdout=log, stderr=log, cwd="/")
        if not wait_for(lambda: self._ask("SELECT 1").returncode == 0, 30):
            with open(self.log, errors="replace") as f:
                raise RuntimeError("mariadbd does not start: " + f.read())

    def _own(self):
        if os.getuid() != 0:
            return
        for root, dirs, files in os.walk(self.dir):
            for n in [root] + [os.path.join(root, x) for x in dirs + files]:
                os.chown(n, self.account.pw_uid, self.account.pw_gid)

    def _ask(self, text):
        return subprocess.run(["mariadb", "--no-defaults", "-u", "root", "-S", self.socket, "-N", "-B"], input=text.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def sql(self, text):
        r = self._ask(text)
        if r.returncode != 0:
            raise RuntimeError("%s: %s" % (text, r.stderr.decode(errors="replace")))
        return r.stdout.decode()

    def running(self, user):
        """What statements run now, of that user."""
        return self.sql("SELECT info FROM information_schema.processlist WHERE user = '%s'" % user)

    def said(self):
        with open(self.general, errors="replace") as f:
            return f.read()
