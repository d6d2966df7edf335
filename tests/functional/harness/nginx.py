"""nginx as a TLS origin, and in front of git http-backend (through fcgiwrap) behind one exact
Authorization value. Its access log is the record of what came."""
import base64
import json
import os
import random
import shutil
import socket
import subprocess

from . import tap

LOG = ("log_format t escape=json '{\"method\":\"$request_method\",\"uri\":\"$request_uri\","
       "\"status\":$status,\"auth\":\"$http_authorization\",\"host\":\"$http_host\","
       "\"agent\":\"$http_user_agent\",\"length\":\"$request_length\"}';")

CONF = """
daemon off;
worker_processes 1;
error_log {dir}/error.log warn;
pid {dir}/nginx.pid;
{user}
events {{ worker_connections 256; }}
http {{
    {log}
    access_log {dir}/access.log t;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    client_max_body_size 256m;
    map_hash_bucket_size 512;
    map $http_authorization $known {{ default 0; "{auth}" 1; }}
    server {{
        listen 127.0.0.1:{port} ssl;
        server_name {name};
        ssl_certificate {crt};
        ssl_certificate_key {key};
        root {www};
        error_page 401 = @refuse;
        location @refuse {{
            add_header WWW-Authenticate 'Basic realm="git"' always;
            return 401 "credential wanted\\n";
        }}
        location /static/ {{ }}
        location / {{
            if ($known = 0) {{ return 401; }}
            include {fcgi};
            fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
            fastcgi_param GIT_HTTP_EXPORT_ALL "";
            fastcgi_param GIT_PROJECT_ROOT {repos};
            fastcgi_param REMOTE_USER $remote_user;
            fastcgi_param PATH_INFO $uri;
            fastcgi_pass unix:{dir}/fcgi.sock;
        }}
    }}
}}
"""


given = set()


def free_port():
    """A port that nothing has, below those that the kernel gives to connections, and never the same twice:
    its server starts later, and tests run beside one another."""
    while True:
        port = random.randrange(10240, 32000)
        if port in given:
            continue
        given.add(port)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


class GitServer:
    """https://NAME/acme/repo.git, only for Basic USER:PASSWORD; /static/ for everybody."""

    def __init__(self, test, ca, name, user, password):
        for program in ("nginx", "fcgiwrap"):
            if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
                raise tap.Skip("%s is not installed" % program)
        self.dir = test.mkdir("nginx")
        self.repos = test.mkdir("nginx/repos")
        self.www = test.mkdir("nginx/www/static")
        self.basic = "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()
        crt, key = ca.issue(name)
        self._make_repo(test)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "www-data", self.dir], check=True)
        self._start_fcgi(test)
        for attempt in range(5):
            if self._start(test, name, crt, key):
                return
        raise RuntimeError("nginx does not start: " + self.errors())

    def _make_repo(self, test):
        env = git_env(test)
        self.repo = os.path.join(self.repos, "acme", "repo.git")
        work = test.mkdir("seed")
        steps = (["init", "-q", "--bare", "-b", "main", self.repo],
                 ["-C", self.repo, "config", "http.receivepack", "true"],
                 ["-C", self.repo, "config", "safe.directory", "*"],
                 ["init", "-q", "-b", "main", work])
        for s in steps:
            subprocess.run(["git"] + s, check=True, env=env)
        test.write("seed/README", "hello from the repository\n")
        test.write("seed/big", os.urandom(300000))
        for s in (["add", "."], ["commit", "-q", "-m", "first"],
                  ["push", "-q", self.repo, "main"]):
            subprocess.run(["git", "-C", work] + s, check=True, env=env)

    def _start_fcgi(self, test):
        path = os.path.join(self.dir, "fcgi.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen(16)
        env = {"PATH": "/usr/bin:/bin", "HOME": self.dir, "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        drop = {"user": "www-data", "group": "www-data"} if os.geteuid() == 0 else {}
        test.popen(["/usr/sbin/fcgiwrap", "-c", "3"], stdin=listener, env=env,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **drop)
        listener.close()

    def _start(self, test, name, crt, key):
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        conf = test.write("nginx/nginx.conf", CONF.format(
            dir=self.dir, log=LOG, name=name, crt=crt, key=key, port=self.port, www=self.dir +
            "/www", repos=self.repos, auth=self.basic, fcgi="/etc/nginx/fastcgi_params",
            user="user www-data;" if os.geteuid() == 0 else ""))
        exe = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = test.popen([exe, "-c", conf, "-e", self.dir + "/error.log", "-p", self.dir],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def up():
            if self.process.poll() is not None:
                return True
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                return False
        tap.wait_for(up, 10)
        return self.process.poll() is None

    def errors(self):
        with open(os.path.join(self.dir, "error.log")) as f:
            return f.read()

    def records(self):
        """One dictionary a request."""
        try:
            with open(os.path.join(self.dir, "access.log")) as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []


def git_env(test):
    """An environment in which git reads no configuration of this machine."""
    return {"PATH": "/usr/bin:/bin", "HOME": test.tmp, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "T", "GIT_COMMITTER_NAME": "T",
            "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_EMAIL": "t@example.com",
            "GIT_TERMINAL_PROMPT": "0"}
