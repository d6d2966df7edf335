"""A real Gitea with the SSH server of its own (Go's x/crypto/ssh). DURWARD_GITEA names its program, which no package of
Debian has: CGO_ENABLED=1 go build -tags sqlite,sqlite_unlock_notify, in a copy of the module code.gitea.io/gitea, where
it stays, for its templates are read from beside it."""
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from .nginx import free_port
from .sshd import keygen
from .tap import wait_for

CONFIG = """RUN_MODE = prod
RUN_USER = {user}
WORK_PATH = {dir}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {http}
STATIC_ROOT_PATH = {static}
START_SSH_SERVER = true
BUILTIN_SSH_SERVER_USER = git
SSH_LISTEN_HOST = 127.0.0.1
SSH_LISTEN_PORT = {ssh}
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {dir}/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = {secret}
PASSWORD_HASH_ALGO = pbkdf2
[repository]
ROOT = {dir}/repositories
DEFAULT_BRANCH = main
[log]
MODE = console
LEVEL = Warn
[service]
DISABLE_REGISTRATION = true
"""
PERSON, PASSWORD = "durward", "a password of the test 1"


def missing():
    """Why there can be none here; None: there can."""
    program = os.environ.get("DURWARD_GITEA")
    if not program:
        return "DURWARD_GITEA does not name its program"
    return None if os.access(program, os.X_OK) else program + " is no program"


class Gitea:
    """.address and .host_key of its SSH server, whose user is "git"; .key: of its user "durward"."""

    def __init__(self, test, *repositories):
        self.dir = tempfile.mkdtemp(prefix="durward-gitea-")  # its account must reach it
        test.cleanup(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        self.account = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
        http, ssh = free_port(), free_port()
        self.url, self.address = "http://127.0.0.1:%d" % http, "127.0.0.1:%d" % ssh
        os.mkdir(os.path.join(self.dir, "data"))
        self.conf = os.path.join(self.dir, "app.ini")
        with open(self.conf, "w") as f:
            f.write(CONFIG.format(dir=self.dir, user=self.account.pw_name, http=http, ssh=ssh, secret=os.urandom(32).hex(),
                                  static=os.path.dirname(os.path.realpath(os.environ["DURWARD_GITEA"]))))
        if os.getuid() == 0:
            for root, dirs, files in os.walk(self.dir):
                for n in [root] + [os.path.join(root, x) for x in dirs + files]:
                    os.chown(n, self.account.pw_uid, self.account.pw_gid)
        self.run("migrate")
        self.run("admin", "user", "create", "--username", PERSON, "--password", PASSWORD, "--email", "d@example.com", "--admin",
                 "--must-change-password=false")
        self.token = self.run("admin", "user", "generate-access-token", "--username", PERSON, "--scopes", "all", "--raw").split()[-1]
        log = open(os.path.join(self.dir, "out"), "ab")
        test.popen(self.argv("web"), env=self.env(), cwd=self.dir, stdout=log, stderr=log)
        log.close()
        if not wait_for(lambda: self.api("GET", "/version")[0] == 200, 60, 0.2):
            with open(os.path.join(self.dir, "out"), errors="replace") as f:
                raise RuntimeError("gitea does not start: " + f.read()[-2000:])
        self.key, public = keygen(os.path.join(self.dir, "login"))
        self.must("POST", "/user/keys", {"title": "login", "key": public})
        for name in repositories:
            self.must("POST", "/user/repos", {"name": name, "auto_init": True, "default_branch": "main", "private": True})
        self.host_key = self._scan(ssh)

    def argv(self, *words):
        drop = ["setpriv", "--reuid=%d" % self.account.pw_uid, "--regid=%d" % self.account.pw_gid, "--clear-groups"]
        return (drop if os.getuid() == 0 else []) + [os.environ["DURWARD_GITEA"], "--config", self.conf] + list(words)

    def env(self):
        return {"PATH": "/usr/bin:/bin", "HOME": self.dir, "USER": self.account.pw_name, "GITEA_WORK_DIR": self.dir, "LANG": "C.UTF-8"}

    def run(self, *words):
        r = subprocess.run(self.argv(*words), env=self.env(), cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=120)
        if r.returncode:
            raise RuntimeError("gitea %s: %s" % (words[0], r.stdout.decode("utf-8", "replace")[-2000:]))
        return r.stdout.decode("utf-8", "replace")

    def api(self, method, path, body=None):
        """-> (status, JSON); (0, None): it does not answer."""
        request = urllib.request.Request(self.url + "/api/v1" + path, method=method, data=json.dumps(body).encode() if body else None,
                                         headers={"Authorization": "token " + self.token, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as r:
                return r.status, json.loads(r.read() or b"null")
        except urllib.error.HTTPError as e:
            return e.code, e.read()
        except OSError:
            return 0, None

    def must(self, method, path, body=None):
        status, answer = self.api(method, path, body)
        if status // 100 != 2:
            raise RuntimeError("gitea: %s %s: %s %s" % (method, path, status, answer))
        return answer

    @staticmethod
    def _scan(port):
        out = subprocess.run(["ssh-keyscan", "-t", "rsa,ecdsa,ed25519", "-p", str(port), "127.0.0.1"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30).stdout.decode()
        keys = [" ".join(line.split()[1:3]) for line in out.splitlines() if not line.startswith("#")]
        return sorted(keys)[0]
