"""A real server of mailboxes on loopback (Dovecot, as a process of its own), and servers that say what none should."""
import grp
import imaplib
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import tempfile

from .accepting import accepting
from .nginx import free_port
from .tap import wait_for

PASSWORD, TOKEN, USER = "mailbox-password-4711", "mailbox-token-4711", "agent@acme.example"
CONFIG = """
base_dir = {dir}/run
state_dir = {dir}/state
log_path = {dir}/log
auth_verbose = yes
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{crt}
ssl_key = <{key}
default_internal_user = {internal}
default_internal_group = {group}
default_login_user = {login}
mail_uid = {uid}
mail_gid = {gid}
first_valid_uid = 1
first_valid_gid = 1
mail_home = {dir}/mail
mail_location = sdbox:~/boxes
auth_mechanisms = plain login
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {dir}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={dir}/mail
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    special_use = \\Sent
    auto = create
  }}
  mailbox Archive/2026 {{
    auto = create
  }}
  mailbox Secret {{
    auto = create
  }}
}}
service imap-login {{
  chroot =
  process_min_avail = 0
  inet_listener imap {{
    port = {starttls}
  }}
  inet_listener imaps {{
    port = {tls}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
"""
LETTER = b"From: bob@acme.example\r\nTo: agent@acme.example\r\nSubject: %s\r\n\r\n%s\r\n"


def missing():
    """Why there can be no server here; None: there can."""
    return None if shutil.which("dovecot", path="/usr/sbin:/usr/bin") else "dovecot-imapd is not installed"


def names():
    """Whom it runs as: nobody may have mail as root."""
    if os.geteuid() == 0:
        who = pwd.getpwnam("nobody")
        return {"internal": "dovecot", "login": "dovenull", "group": "dovecot", "uid": who.pw_uid, "gid": who.pw_gid}
    me = pwd.getpwuid(os.geteuid()).pw_name
    return {"internal": me, "login": me, "group": grp.getgrgid(os.getegid()).gr_name, "uid": os.geteuid(), "gid": os.getegid()}


class Imap:
    """.starttls and .tls are addresses."""

    def __init__(self, test, ca, *hosts):
        self.dir = tempfile.mkdtemp(prefix="durward-imap-")  # its sockets' paths have to be short
        test.cleanup(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        crt, key = ca.issue(*hosts)
        ports = [free_port() for _ in range(2)]
        self.starttls, self.tls = ("127.0.0.1:%d" % p for p in ports)
        who = names()
        for sub in ("run", "state", "mail"):
            os.makedirs(os.path.join(self.dir, sub))
        for path in (self.dir, os.path.join(self.dir, "mail")):
            os.chmod(path, 0o755)
        if os.geteuid() == 0:
            os.chown(os.path.join(self.dir, "mail"), who["uid"], who["gid"])
        with open(os.path.join(self.dir, "users"), "w") as f:
            f.write("%s:%s\n" % (USER, PASSWORD))
        self.conf = os.path.join(self.dir, "dovecot.conf")
        with open(self.conf, "w") as f:
            f.write(CONFIG.format(dir=self.dir, crt=crt, key=key, starttls=ports[0], tls=ports[1], **who))
        self.process = test.popen(["/usr/sbin/dovecot", "-F", "-c", self.conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        if not wait_for(lambda: self._answers(ports[0]), 30):
            raise RuntimeError("dovecot does not start: " + self.said())

    @staticmethod
    def _answers(port):
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as s:
                return s.recv(4) == b"* OK"
        except OSError:
            return False

    def said(self):
        path = os.path.join(self.dir, "log")
        if not os.path.exists(path):
            return ""
        with open(path, errors="replace") as f:
            return f.read()

    def logins(self):
        return self.said().count("imap-login: Login:")

    def direct(self):
        """Past the product."""
        host, port = self.tls.split(":")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        c = imaplib.IMAP4_SSL(host, int(port), ssl_context=context, timeout=20)
        c.login(USER, PASSWORD)
        return c

    def put(self, folder, subject, text=b"welcome-4711"):
        with self.direct() as c:
            c.create(folder)
            return c.append(folder, None, None, LETTER % (subject, text))[0]

    def subjects(self, folder):
        with self.direct() as c:
            if c.select(folder, readonly=True)[0] != "OK":
                return None
            found = c.fetch("1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")[1] if c.search(None, "ALL")[1][0] else []
            return [x[1].decode().split(":", 1)[1].strip() for x in found if isinstance(x, tuple)]

    def flags(self, folder):
        with self.direct() as c:
            c.select(folder, readonly=True)
            return [imaplib.ParseFlags(x) for x in c.fetch("1:*", "(FLAGS)")[1] if x]

    def folders(self):
        with self.direct() as c:
            return sorted(x.decode().rsplit('"/" ', 1)[1].strip('"') for x in c.list()[1])


class Scripted:
    """Answers each line with the next of its texts, in which TAG is that of the command, the first of them at once. .address;
    .said: lines that came. Once its texts are out it waits."""

    def __init__(self, *texts):
        self.texts, self.said = texts, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        accepting(self.listener, self._one)

    def _one(self, s):
        with s, s.makefile("rb") as f:
            s.settimeout(20)
            tag = b"*"
            try:
                for text in self.texts:
                    s.sendall(text.replace(b"TAG", tag))
                    line = f.readline()
                    tag = line.split(b" ")[0] if line.startswith(b"D") and b" " in line else tag
                    self.said.append(line)
                    if not line:
                        return
            except OSError:
                pass

    def close(self):
        self.listener.close()
