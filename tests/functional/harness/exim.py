"""Exim, the mail server of Debian's: what it takes with a login within TLS it puts into files."""
import os
import re
import shutil
import subprocess

from .nginx import free_port
from .smtp import PASSWORD, USER, answers
from .tap import wait_for

EXIM = "/usr/sbin/exim4"
CONFIG = """primary_hostname = mail.example.com
exim_user = Debian-exim
exim_group = Debian-exim
deliver_drop_privilege
spool_directory = {dir}/spool
log_file_path = {dir}/%slog
log_selector = +8bitmime +received_recipients
pid_file_path = {dir}/pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = {starttls} : {tls}
tls_on_connect_ports = {tls}
tls_advertise_hosts = *
tls_certificate = {dir}/pem
auth_advertise_hosts = ${{if def:tls_in_cipher{{*}}{{}}}}
host_lookup =
rfc1413_hosts =
acl_smtp_rcpt = rcpt
begin acl
rcpt:
  deny
    local_parts = nobody
    message = No such user
  accept
    authenticated = *
  deny
begin routers
all:
  driver = accept
  transport = file
begin transports
file:
  driver = appendfile
  file = {dir}/mail/$message_exim_id
  user = Debian-exim
  message_prefix =
  message_suffix =
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${{if and{{{{eq{{$auth2}}{{{user}}}}}{{eq{{$auth3}}{{{password}}}}}}}}}
  server_set_id = $auth2
"""


def missing():
    """Why there can be no server here; None: there can."""
    if not os.access(EXIM, os.X_OK):
        return "exim4-daemon-light is not installed"
    return None if os.geteuid() == 0 else "Exim needs root to be another user"


class Exim:
    """.starttls and .tls are addresses; logins() and messages() as those of smtp.Smtp."""

    def __init__(self, test, ca, *hosts):
        self.dir = test.mkdir("exim")
        crt, key = ca.issue(*hosts)
        ports = {"starttls": free_port(), "tls": free_port()}
        self.starttls, self.tls = ("127.0.0.1:%d" % ports[x] for x in ("starttls", "tls"))
        for name in ("spool", "mail"):
            os.mkdir(os.path.join(self.dir, name))
        with open(crt) as c, open(key) as k:
            test.write("exim/pem", c.read() + k.read(), 0o600)
        conf = test.write("exim/conf", CONFIG.format(dir=self.dir, user=USER, password=PASSWORD, **ports), 0o600)
        subprocess.run(["chown", "-R", "Debian-exim:Debian-exim", self.dir], check=True)
        os.chown(conf, 0, 0)
        at = self.dir
        while at != "/":  # its account must reach it
            os.chmod(at, os.stat(at).st_mode | 0o111)
            at = os.path.dirname(at)
        self.process = test.popen([EXIM, "-bdf", "-C", conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        test.cleanup(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        if not wait_for(lambda: answers(ports["starttls"]), 20):
            raise RuntimeError("exim does not start: " + self.said())

    def said(self):
        try:
            with open(self.dir + "/mainlog", encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def came(self):
        """Of each message (id, who, the line's words, to whom)."""
        return [(m[1], m[2], m[3], m[4].split()) for m in
                re.finditer(r"^\S+ \S+ (\S+) <= (\S+) (.*?) for (.*)$", self.said(), re.M)]

    def logins(self):
        return [{"user": re.findall(r" A=plain:(\S+)", words + " ")[0] if " A=" in words else "", "good": " A=plain:" in words,
                 "tls": " X=TLS" in words} for _, _, words, _ in self.came()]

    def messages(self):
        wait_for(lambda: all(x[0] + " Completed" in self.said() for x in self.came()), 10)
        found = []
        for key, sender, words, to in self.came():
            with open(os.path.join(self.dir, "mail", key), encoding="latin-1", newline="") as f:
                text = f.read().replace("\n", "\r\n")
            options = (["BODY=8BITMIME"] if " M8S=8" in words else []) + (["SMTPUTF8"] if " P=utf8" in words else [])
            found.append({"sender": sender, "to": to, "options": options, "tls": " X=TLS" in words,
                          "text": re.sub(r"^Received: .*?\r\n(?=\S)", "", text, flags=re.S)})
        return found
