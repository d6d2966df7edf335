"""A real OpenSSH server on loopback, as the account that runs the test, with git repositories."""
import base64
import hashlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile

from .nginx import free_port, git_env
from .tap import wait_for

SSHD = "/usr/sbin/sshd"


def missing():
    """Why there can be no server here; None: there can."""
    if not os.access(SSHD, os.X_OK):
        return "openssh-server is not installed"
    return None


def keygen(path, kind="ed25519", bits=None):
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", path] +
                   (["-b", str(bits)] if bits else []), check=True, stdin=subprocess.DEVNULL)
    with open(path, "rb") as f, open(path + ".pub") as p:
        return f.read(), " ".join(p.read().split()[:2])


class Agent:
    """An SSH agent of the host's, as its user has one: .socket."""

    def __init__(self, test, name="agent"):
        self.test = test
        self.socket = os.path.join(test.mkdir(name), "s")
        if len(self.socket) > 100:  # a unix socket's path has 107 bytes
            short = tempfile.mkdtemp(prefix="durward-")
            test.cleanup(lambda: shutil.rmtree(short, ignore_errors=True))
            self.socket = os.path.join(short, "s")
        self.start()

    def start(self):
        self.process = self.test.popen(["ssh-agent", "-D", "-a", self.socket], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env={"PATH": os.environ["PATH"], "SSH_ASKPASS": "/bin/false", "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":9"})
        wait_for(lambda: os.path.exists(self.socket), 5)

    def stop(self):
        self.process.kill()
        self.process.wait()
        if os.path.exists(self.socket):
            os.unlink(self.socket)

    def add(self, *argv):
        r = subprocess.run(["ssh-add", "-q"] + list(argv), env=dict(os.environ, SSH_AUTH_SOCK=self.socket), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return r.returncode


def fingerprint(public):
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


class Sshd:
    """.user, .address, .host_key ("ssh-ed25519 AAAA..."), .key (the private key that may log in)."""

    def __init__(self, test, name="sshd", kind="ed25519", options=(), forced="", password=None):
        """forced: what the key may run, whatever is asked for. password: its user's for this server alone, which needs root."""
        self.test = test
        self.dir = test.mkdir(name)
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.log = os.path.join(self.dir, "log")
        _, self.host_key = keygen(os.path.join(self.dir, "host"))
        bits = {"rsa": 3072, "ecdsa": 256}.get(kind)
        self.key, public = keygen(os.path.join(self.dir, "login"), kind, bits)
        test.write(name + "/authorized", ('command="%s" ' % forced if forced else "") + public + "\n", 0o600)
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.options = list(options)
        self.shadow = self.shadow_with(password) if password else None
        self.process = None
        self.start()

    def start(self):
        # SHLVL: so that bash does not read what its user has in .bashrc
        conf = self.options + [  # the first word of two counts
                "Port %d" % self.port, "ListenAddress 127.0.0.1",
                "HostKey %s/host" % self.dir, "AuthorizedKeysFile %s/authorized" % self.dir,
                "UsePAM no", "StrictModes no", "PasswordAuthentication no", "PidFile none",
                "PermitRootLogin yes", "AcceptEnv GIT_PROTOCOL", "LogLevel VERBOSE",
                "PrintMotd no", "Subsystem sftp internal-sftp",
                "SetEnv SHLVL=2"]
        path = self.test.write(os.path.basename(self.dir) + "/sshd_config", "\n".join(conf) + "\n")
        argv = [SSHD, "-D", "-e", "-f", path]
        if os.getuid() == 0:  # its directory, which nobody else is to see
            known = "mount --bind %s /etc/shadow && " % self.shadow if self.shadow else ""
            argv = ["unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", known + "mount -t tmpfs none /run && mkdir -m 755 /run/sshd "
                    "&& exec \"$@\"", "sshd"] + argv
        with open(self.log, "ab") as log:
            self.process = self.test.popen(argv, stdout=log, stderr=log)
        if not wait_for(lambda: "Server listening" in self.said(), 10):
            raise RuntimeError("sshd does not start: " + self.said())

    def shadow_with(self, password):
        made = subprocess.run(["openssl", "passwd", "-6", "-stdin"], input=password.encode() + b"\n", stdout=subprocess.PIPE, check=True)
        with open("/etc/shadow") as f:
            lines = [":".join([self.user, made.stdout.decode().strip()] + line.split(":")[2:]) if line.startswith(self.user + ":") else line for line in f]
        return self.test.write(os.path.basename(self.dir) + "/shadow", "".join(lines), 0o600)

    def said(self):
        try:
            with open(self.log, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def logins(self):
        return len(re.findall(r"^Accepted publickey for ", self.said(), re.M))

    def repository(self, *path):
        """A bare one with a commit; -> its path from the root."""
        where = os.path.join(self.dir, *path)
        work = where + ".work"
        env = git_env(self.test)
        for argv in (["init", "-q", "--bare", "-b", "main", where], ["init", "-q", "-b", "main", work],
                     ["-C", work, "-c", "user.name=T", "-c", "user.email=t@example.com", "commit",
                      "-q", "--allow-empty", "-m", "first"],
                     ["-C", work, "push", "-q", where, "main"]):
            subprocess.run(["git"] + argv, check=True, env=env, stdin=subprocess.DEVNULL)
        return where
