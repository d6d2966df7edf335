"""A real PostgreSQL server on loopback, with TLS and as an ordinary account."""
import glob
import os
import pwd
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

from .accepting import accepting, carry, exactly
from .nginx import free_port
from .tap import wait_for

CONF = """listen_addresses = '127.0.0.1'
port = %(port)d
unix_socket_directories = '%(dir)s'
ssl = on
ssl_cert_file = '%(dir)s/server.crt'
ssl_key_file = '%(dir)s/server.key'
fsync = off
log_statement = all
log_line_prefix = '%%u %%a: '
max_prepared_transactions = 4
"""
HBA = """local all all trust
hostssl all hashed 127.0.0.1/32 md5
hostssl all clear 127.0.0.1/32 password
hostssl all all 127.0.0.1/32 scram-sha-256
"""


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    return os.path.dirname(found[-1]) if found else None


def missing():
    """Why there can be no server here; None: there can."""
    return None if programs() else "postgresql is not installed"


class Postgres:
    """.address; sql() as its superuser, beside the broker; said(): its log."""

    def __init__(self, test, ca, name, host, hba=HBA, clients=None, idents=""):
        """clients: the authority (PEM) of its clients' certificates, for which it asks then; idents: pg_ident.conf."""
        self.test = test
        # initdb's account must reach it, which it may not below the test's own folder
        self.dir = tempfile.mkdtemp(prefix="durward-pg-")
        test.cleanup(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        self.bin = programs()
        self.log = os.path.join(self.dir, "log")
        self.data = os.path.join(self.dir, "data")
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.become = []
        account = pwd.getpwuid(os.getuid())
        if os.getuid() == 0:  # which the server refuses to be
            account = pwd.getpwnam("nobody")
            self.become = ["setpriv", "--reuid=nobody", "--regid=%d" % account.pw_gid,
                           "--clear-groups"]
        self._call("initdb", "-D", self.data, "-U", "admin", "-A", "trust", "-N", "-E", "UTF8",
                   "--locale=C", before=account)
        crt, key = ca.issue(host)
        shutil.copy(crt, self.dir + "/server.crt")
        shutil.copy(key, self.dir + "/server.key")
        with open(self.data + "/postgresql.conf", "a") as f:
            f.write(CONF % {"port": self.port, "dir": self.dir})
            if clients:
                shutil.copy(clients, self.dir + "/clients.crt")
                f.write("ssl_ca_file = '%s/clients.crt'\nlog_connections = on\n" % self.dir)
        with open(self.data + "/pg_ident.conf", "w") as f:
            f.write(idents)
        with open(self.data + "/pg_hba.conf", "w") as f:
            f.write(hba)
        os.chmod(self.dir + "/server.key", 0o600)
        self._own(account)
        self.start()

    def _own(self, account):
        if os.getuid() != 0:
            return
        for root, dirs, files in os.walk(self.dir):
            for n in [root] + [os.path.join(root, x) for x in dirs + files]:
                os.chown(n, account.pw_uid, account.pw_gid)

    def _call(self, program, *args, before=None):
        if before:
            self._own(before)
        r = subprocess.run(self.become + [os.path.join(self.bin, program)] + list(args),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, cwd="/", timeout=60)
        if r.returncode != 0:
            raise RuntimeError("%s: %s" % (program, r.stdout.decode(errors="replace")))
        return r.stdout.decode(errors="replace")

    def start(self):
        with open(self.log, "ab") as log:
            self.process = self.test.popen(
                self.become + [os.path.join(self.bin, "postgres"), "-D", self.data],
                stdout=log, stderr=log, cwd="/")
        if not wait_for(lambda: subprocess.run(
                [os.path.join(self.bin, "pg_isready"), "-q", "-h", self.dir, "-p", str(self.port)],
                timeout=10).returncode == 0, 30):
            raise RuntimeError("postgres does not start: " + self.said())

    def sql(self, text, database="postgres"):
        """As its superuser; the rows as text."""
        r = subprocess.run([os.path.join(self.bin, "psql"), "-X", "-q", "-A", "-t", "-h", self.dir,
                            "-p", str(self.port), "-U", "admin", "-d", database,
                            "-v", "ON_ERROR_STOP=1"], input=text.encode(), timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if r.returncode != 0:
            raise RuntimeError("%s: %s" % (text, r.stderr.decode(errors="replace")))
        return r.stdout.decode()

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def pooler(self, test, dropped):
        """Ends TLS as the server does and leaves this setting out of startups; -> its address."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.dir + "/server.crt", self.dir + "/server.key")
        listener = socket.create_server(("127.0.0.1", 0))
        test.cleanup(listener.close)

        def serve(s):
            far = socket.socket(socket.AF_UNIX)
            try:
                exactly(s, 8)
                s.sendall(b"S")
                s = context.wrap_socket(s, server_side=True)
                n, = struct.unpack("!I", exactly(s, 4))
                fields = exactly(s, n - 4)[4:].split(b"\0")
                pairs = [fields[i:i + 2] for i in range(0, len(fields) - 2, 2)]
                body = struct.pack("!I", 196608) + b"".join(
                    k + b"\0" + v + b"\0" for k, v in pairs if k and k != dropped) + b"\0"
                far.connect("%s/.s.PGSQL.%d" % (self.dir, self.port))
                far.sendall(struct.pack("!I", len(body) + 4) + body)
                back = threading.Thread(target=carry, args=(far, s), daemon=True)
                back.start()
                carry(s, far)
                back.join(5)
            except OSError:
                pass
            finally:
                s.close()
                far.close()

        accepting(listener, serve)
        return "127.0.0.1:%d" % listener.getsockname()[1]
