#!/usr/bin/python3 -B
"""Logins of other programs are used from their files on the host: inside lies the same file with placeholders, the real
texts arrive at the origins only. A session is refreshed on the host, under its program's lock, one at a time, and the file
is replaced. Coding agents of others work with such a login as they are, where they are there."""
import base64
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import agents, durward, index, models, origin, registry, scan, tap  # noqa: E402

TOKEN, API = "platform.claude.com", "api.anthropic.com"


class World:
    def __init__(self, t, name="d"):
        self.t, self.d = t, durward.Durward(t, name)
        self.scanner = scan.Scanner()
        self.home = self.d.env["HOME"]
        self.doubles = {}
        self.extra = 0
        self.said = []

    def secret(self, name, prefix=""):
        value = scan.canary(prefix)
        self.scanner.add(name, value)
        return value.decode()

    def double(self, host, handler):
        self.doubles[host] = origin.Origin(self.t, self.d.ca, host, handler)
        self.d.origin(host, self.doubles[host])
        return self.doubles[host]

    def file(self, path, text, mode=0o600):
        whole = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(whole), 0o700, exist_ok=True)
        with open(whole + ".new", "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(whole + ".new", mode)
        os.replace(whole + ".new", whole)  # a run that reads it meanwhile reads one or the other
        return whole

    def read(self, path):
        with open(os.path.join(self.home, path)) as f:
            return f.read()

    def run(self, login, script, *flags, **kw):
        """A shell with that login. What it could read, it leaves in the working directory, for a scan."""
        self.d.save()
        logins = [x for name in login.split() for x in ("--login", name)]
        r = self.d.command("run", "-c", self.d.conf, *logins, *flags, "--", "sh", "-c", script + "\n" + agents.AFTER, **kw)
        self.said += [r.stdout, r.stderr]
        return r

    def auth(self, host):
        return [q.get("authorization") for q in self.doubles[host].requests]

    def clean(self, what):
        s = self.scanner
        for text in self.said:
            s.search(text, "output")
        s.tree(self.d.work)
        s.tree(self.d.audit_dir)
        self.t.ok(os.path.exists(os.path.join(self.d.work, "left.tar")) and not s.hits,
                  "%s: 0 copies of a login in what it left, said, or that is on record" % what, *s.report())
        self.t.tally(canaries=len(s.hits), searched=s.bytes)


def ok(req, conn):
    conn.reply(req, 200, {"ok": "called"})


def hosts(t):
    """Logins by host: gh's, netrc, npm's."""
    w = World(t, "hosts")
    gh, corp, curl, npm = (w.secret(x, p) for x, p in (("gh", "gho_"), ("corp", "gho_"), ("curl", "pw-"), ("npm", "npm_")))
    for host in ("api.github.com", "git.corp.example", "files.corp.example", "other.corp.example", "packages.corp.example"):
        w.double(host, ok)
    w.file(".config/gh/hosts.yml", "github.com:\n    users:\n        me:\n            oauth_token: %s\n"
           "    git_protocol: https\n    oauth_token: %s\n    user: me\ngit.corp.example:\n    oauth_token: %s\n"
           "    user: us\n" % (gh, gh, corp))
    w.file(".netrc", "# mine\nmachine files.corp.example\n  login me password %s\nmachine other.corp.example login me "
           "password %s\ndefault login anonymous password x\n" % (curl, curl))
    w.file(".npmrc", "@acme:registry=https://packages.corp.example/npm/\n//packages.corp.example/npm/:_authToken=%s\n"
           "//elsewhere.example/:_authToken=${NPM_TOKEN}\nregistry=https://u:%s@packages.corp.example/\n" % (npm, npm))
    r = w.run("gh", "cat ~/.config/gh/hosts.yml; T=$(sed -n '/^github/,/^git\\./s/.*oauth_token: //p' ~/.config/gh/hosts.yml)\n"
              "curl -sS -H \"Authorization: token $T\" https://api.github.com/user")
    t.ok(r.returncode == 0 and "github.com:\n    oauth_token: ghp_" in r.stdout and "user: me" in r.stdout and
         "git.corp.example:\n" in r.stdout and '"called"' in r.stdout, "gh's hosts, with placeholders", r.stdout, r.stderr)
    t.eq(w.auth("api.github.com"), ["Bearer " + gh], "the token of this host arrives there")
    r = w.run("gh@git.corp.example", "cat ~/.config/gh/hosts.yml; curl -sS https://git.corp.example/api/v3/user;"
              "curl -sS -o /dev/null -w ' %{http_code}' https://api.github.com/user")
    t.ok("github.com" not in r.stdout.split("git.corp.example")[0] and r.stdout.endswith("403"),
         "NAME@HOST: of this host only", r.stdout, r.stderr)
    t.eq(w.auth("git.corp.example"), ["Basic " + base64.b64encode(("x-access-token:" + corp).encode()).decode()],
         "and to it")
    r = w.run("netrc", "cat ~/.netrc; curl -sS -n https://files.corp.example/x; curl -sS -n https://elsewhere.example/; true")
    t.ok(r.returncode == 0 and "machine files.corp.example login me password dwd_" in r.stdout and '"called"' in r.stdout,
         "curl -n finds its netrc", r.stdout, r.stderr)
    t.eq(w.auth("files.corp.example"), ["Basic " + base64.b64encode(("me:" + curl).encode()).decode()],
         "and the password arrives")
    r = w.run("npm", "cat ~/.npmrc; T=$(sed -n 's/.*_authToken=//p' ~/.npmrc); for m in GET PUT; do curl -sS -X $m "
              "-H \"Authorization: Bearer $T\" https://packages.corp.example/npm/@acme%2fx; done")
    t.ok("@acme:registry=https://packages.corp.example/npm/\n//packages.corp.example/npm/:_authToken=dwd_" in r.stdout and
         "elsewhere" not in r.stdout and "u:" not in r.stdout, "npm's registries and its token", r.stdout, r.stderr)
    t.eq([(q.method, q.get("authorization")) for q in w.doubles["packages.corp.example"].requests],
         [("GET", "Bearer " + npm)], "the token reads, and does not publish")
    r = w.run("gh netrc", "true", "--home", "kept")
    t.ok(r.returncode == 0, "several logins, and a kept home", r.stderr)
    w.clean("hosts")
    return w


def tool(t, name, what):
    """A program's own file, and what is bound for it; None with a skip."""
    found = shutil.which(name)
    if found and name == "cargo" and shutil.which("rustup"):
        found = subprocess.run(["rustup", "which", "cargo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               check=False).stdout.strip()
    if not found:
        t.skip(what, "%s is not installed" % name)
        return None, []
    found = os.path.realpath(found)
    top = os.path.dirname(os.path.dirname(found)) if name == "cargo" else found
    return found, [] if found.startswith("/usr/") else ["--bind", "%s:%s:ro" % (top, top)]


def basic(user, password):
    return "Basic " + base64.b64encode((user + ":" + password).encode()).decode()


def guarded(handler, want):
    """Only who sends exactly this is answered."""
    def handle(req, conn):
        if req.get("authorization") == want:
            handler(req, conn)
        else:
            conn.reply(req, 401, {"error": "who?"}, headers=[("WWW-Authenticate", 'Basic realm="x"')])
    return handle


def pip(t):
    w = World(t, "pip")
    host, password = "packages.corp.example", w.secret("pip", "p/")
    w.double(host, guarded(index.pypi(), basic("me", password)))
    path = w.file(".config/pip/pip.conf", "[global]\nindex-url = https://me:%s@%s/simple\nextra-index-url =\n    https://%s@b.example/\n"
                  "    https://c.example/\nproxy = http://u:%s@p.example\n" % (password.replace("/", "%2F"), host, password, password))
    r = w.run("pip", "cat ~/.config/pip/pip.conf")
    t.ok("index-url = https://me:dwd_" in r.stdout and "   https://c.example/\n" in r.stdout and "b.example" not in r.stdout and "proxy" not in r.stdout,
         "pip.conf: a placeholder in its URL, and nothing else that could be a login", r.stdout, r.stderr)
    r = w.run("pip", "true", "--bind", path)
    t.ok(r.returncode == 125 and "from which the secret" in r.stderr, "the file itself is never bound", r.stderr)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if os.path.exists(python):
        binds = [x for b in durward.client_binds("venv") for x in ("--bind", b)]
        r = w.run("pip", "sed -i '/^extra/,$d' ~/.config/pip/pip.conf; %s -m pip install -q --no-cache-dir --disable-pip-version-check "
                  "--target ~/x acme-widget && cat ~/x/acme_widget.py; curl -sS -o /dev/null -w '%%{http_code}' -X POST -d x https://%s/" % (
                      python, host), *binds)
        t.ok("ANSWER = 42\n403" in r.stdout, "pip installs with it; nothing is uploaded", r.stdout, r.stderr)
        t.eq(set(w.auth(host)), {basic("me", password)}, "the password arrives")
    else:
        t.skip("pip with its login", "the client libraries are not there: run tests/functional/clients/setup")
    w.clean("pip")


def cargo(t):
    program, binds = tool(t, "cargo", "cargo with its login")
    if program is None:
        return
    w = World(t, "cargo")
    host, token = "crates.corp.example", w.secret("cargo", "cio")

    def handler(req, conn):
        if req.path == "/index/config.json":
            whole = {"dl": "https://%s/dl/{crate}/{version}" % host, "api": "https://" + host, "auth-required": True}
            conn.reply(req, 200 if req.get("authorization") else 401, whole, headers=[("WWW-Authenticate", "Cargo")])
        else:
            guarded(registry.cargo(host), token)(req, conn)
    w.double(host, handler)
    w.file(".cargo/config.toml", "[registries.corp]\nindex = \"sparse+https://%s/index/\"\n" % host)
    w.file(".cargo/credentials.toml", "[registries.corp]\ntoken = \"%s\"\n[registries.unknown]\ntoken = \"%s\"\n" % (token, token))
    r = w.run("cargo", "cat ~/.cargo/*.toml; (mkdir -p c/src; cd c; touch src/lib.rs; printf '[package]\\nname = \"c\"\\nversion = \"1.0.0\"\\n"
              "edition = \"2021\"\\nlicense = \"MIT\"\\ndescription = \"x\"\\n[dependencies]\\nacme-widget = { version = \"1\", registry = "
              "\"corp\" }\\n' >Cargo.toml; export PATH=%s:$PATH; cargo fetch 2>&1; cat ~/.cargo/registry/src/*/*/src/lib.rs; cargo publish "
              "--registry corp --no-verify --allow-dirty 2>&1 | tail -5)" % os.path.dirname(program), *binds)
    t.ok('token = "dwd_' in r.stdout and "unknown" not in r.stdout and "ANSWER: u32 = 42" in r.stdout, "cargo fetches with its token",
         r.stdout, r.stderr, [(q.method, q.path, str(q.status)) for q in w.doubles[host].requests])
    t.ok('"code":"method"' in r.stdout and {q.method for q in w.doubles[host].requests} == {"GET"}, "and does not publish", r.stdout[-1500:])
    w.clean("cargo")


def docker(t):
    w = World(t, "docker")
    host, plain = "images.corp.example", "plain.corp.example"
    password, token, other = w.secret("docker", "pw-"), w.secret("token", "tok-"), w.secret("plain", "pw-")
    w.double(host, registry.oci(host, token, login=basic("me", password), refresh=w.secret("refresh", "rt-")))
    w.double(plain, guarded(lambda req, conn: conn.reply(req, 200, {"tags": ["called"]}), basic("us", other)))
    w.file(".docker/config.json", {"auths": {host: {"auth": basic("me", password)[6:]}, "https://%s/v1/" % plain: {
        "auth": basic("us", other)[6:]}}, "credsStore": "desktop"})
    r = w.run("docker-basic@" + plain, "cat ~/.docker/config.json; A=$(sed -n 's/.*\"auth\": \"\\([^\"]*\\)\".*/\\1/p' ~/.docker/config.json)\n"
              "curl -sS -H \"Authorization: Basic $A\" https://%s/v2/x/tags/list; curl -sS -o /dev/null -w '%%{http_code}' -X POST -H "
              "\"Authorization: Basic $A\" https://%s/v2/x/blobs/uploads/" % (plain, plain))
    t.ok(host not in r.stdout and '"called"' in r.stdout and r.stdout.endswith("403"), "a registry that takes the password itself", r.stdout,
         r.stderr)
    r = w.run("docker@" + host, "A=$(sed -n 's/.*\"auth\": \"\\([^\"]*\\)\".*/\\1/p' ~/.docker/config.json | head -n 1)\n"
              "curl -sS -H \"Authorization: Basic $A\" 'https://%s/token?service=%s&offline_token=true'" % (host, host))
    t.ok('"refresh_token":"dwd_' in r.stdout, "of a token that lives on and is asked for there is a placeholder inside", r.stdout, r.stderr)
    program, binds = tool(t, "docker", "docker with its login")
    if program:
        r = w.run("docker@" + host, "%s manifest inspect %s/acme/widget:1; curl -sS -o /dev/null -w '%%{http_code}' -X POST https://%s/v2/acme/"
                  "widget/blobs/uploads/" % (program, host, host), *binds)
        t.ok('"schemaVersion": 2' in r.stdout and "403" in r.stdout, "docker reads with its login, and pushes nothing", r.stdout, r.stderr,
             [(q.method, q.path, str(q.status)) for q in w.doubles[host].requests])
        t.eq({q.get("authorization") for q in w.doubles[host].requests if q.path == "/token" and q.status == 200},
             {basic("me", password)}, "the password goes to the token server alone")
        t.ok("Bearer " + token in w.auth(host), "and its token to the registry")
    w.clean("docker")


def kube(t):
    w = World(t, "kube")
    host, token = "cluster.corp.example", w.secret("kube", "eyJ")
    pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [
        {"metadata": {"name": "called", "namespace": "default"}, "spec": {"containers": []}, "status": {"phase": "Running"}}]}

    def handler(req, conn):
        answers = {"/api": {"kind": "APIVersions", "versions": ["v1"]}, "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
                   "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                       {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"], "shortNames": ["po"]}]},
                   "/api/v1/namespaces/default/pods": pods}
        good = req.get("authorization") == "Bearer " + token
        conn.reply(req, 401 if not good else 200 if req.path in answers else 404, answers.get(req.path, {}) if good else {})
    w.double(host, handler)
    w.file(".kube/config", json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "work", "clusters": [
            {"name": "c", "cluster": {"server": "https://%s" % host, "certificate-authority-data": "eA=="}},
            {"name": "p", "cluster": {"server": "https://prod.corp.example:6443"}}],
        "users": [{"name": "u", "user": {"token": token}}, {"name": "x", "user": {"exec": {"command": "/bin/false"}}}],
        "contexts": [{"name": "work", "context": {"cluster": "c", "user": "u"}}, {"name": "prod", "context": {"cluster": "p", "user": "u"}},
                     {"name": "exec", "context": {"cluster": "c", "user": "x"}}]}))
    program, binds = tool(t, "kubectl", "kubectl with its login")
    r = w.run("kube", "cat ~/.kube/config; curl -sS -o /dev/null -w '%%{http_code}\\n' -X POST -d x https://%s/api/v1/namespaces/default/"
              "serviceaccounts/me/token; %s get pods --cache-dir=$HOME/kc 2>&1" % (host, program or "true"), *binds)
    t.ok("prod" not in r.stdout and "token: \"dwd_" in r.stdout and "current-context: \"work\"" in r.stdout, "the current context, with a "
         "placeholder", r.stdout, r.stderr)
    t.ok("\n403\n" in r.stdout, "no token is made that lives on", r.stdout)
    if program:
        t.ok("called" in r.stdout.split("current-context")[1], "kubectl gets with its login", r.stdout, r.stderr)
        t.eq(set(w.auth(host)), {"Bearer " + token}, "the token arrives")
    r = w.run("kube@prod", "grep server ~/.kube/config")
    t.ok("https://prod.corp.example:6443" in r.stdout and "cluster.corp" not in r.stdout, "NAME@CONTEXT: another one", r.stdout, r.stderr)
    r = w.run("kube@exec", "true")
    t.ok(r.returncode == 125 and "holds no login that can be used for exec" in r.stderr, "nothing is run for one that is computed", r.stderr)
    w.clean("kube")


def azure(t):
    """The Azure command line's: a managed identity inside, whose token the host refreshes."""
    w = World(t, "azure")
    refresh, access = w.secret("refresh", "0.AX"), w.secret("access", "ey")
    asked = []

    def handler(req, conn):
        asked.append((req.path, req.body.decode()))
        conn.reply(req, 200, {"access_token": access, "expires_in": 3599, "token_type": "Bearer"})
    w.double("login.microsoftonline.com", handler)
    w.double("management.azure.com", ok)
    w.file(".azure/msal_token_cache.json", {
        "Account": {"a": {"home_account_id": "o.t", "username": "me@corp.example", "realm": "t-1"}},
        "RefreshToken": {"r": {"home_account_id": "o.t", "client_id": "c-1", "secret": refresh}}, "AccessToken": {}})
    r = w.run("azure", "ls -A ~/.azure 2>&1; T=$(curl -sS -H 'Metadata: true' 'http://169.254.169.254/metadata/identity/oauth2/token?api-version="
              "2018-02-01&resource=https://management.azure.com/' | sed 's/.*access_token\":\"\\([^\"]*\\).*/\\1/'); echo $T; curl -sS -H "
              "\"Authorization: Bearer $T\" https://management.azure.com/subscriptions")
    t.ok("dwd_" in r.stdout and '"called"' in r.stdout and "msal" not in r.stdout, "the token is a placeholder, which works", r.stdout, r.stderr)
    t.eq(w.auth("management.azure.com"), ["Bearer " + access], "and it is the real one there")
    t.ok(len(asked) == 1 and asked[0][0] == "/t-1/oauth2/v2.0/token" and "refresh_token=" + refresh in asked[0][1], "refreshed on the host",
         asked)
    if not shutil.which("az"):
        t.skip("the Azure command line with its login", "az is not installed")
    w.clean("azure")


def refused(t, w):
    path = os.path.join(w.home, ".netrc")
    os.chmod(path, 0o644)
    r = w.run("netrc", "true")
    t.ok(r.returncode == 125 and "is open to others" in r.stderr and "chmod 600" in r.stderr, "a file that others read", r.stderr)
    os.chmod(path, 0o600)
    r = w.run("netrc", "true", "--bind", path)
    t.ok(r.returncode == 125 and "from which the secret" in r.stderr, "the file itself is never bound", r.stderr)
    r = w.run("netrc@nowhere.example", "true")
    t.ok(r.returncode == 125 and "holds no login that can be used for nowhere.example" in r.stderr, "an entry that is not there",
         r.stderr)
    r = w.run("codex", "true")
    t.ok(r.returncode == 125 and "there is no " in r.stderr and "--login codex=FILE" in r.stderr, "a file that is not there",
         r.stderr)
    r = w.run("netr", "true")
    t.has(r.stderr, "did you mean 'netrc'", "a login that nobody knows")
    r = w.run("claude@x", "true")
    t.ok(r.returncode == 125, "entries of a login that has none", r.stderr)
    w.file(".netrc", "machine a.example login x\"y password p\nmachine b.example password \"q r\"\n")
    r = w.run("netrc", "cat ~/.netrc")
    t.ok("machine a.example login  password dwd_" in r.stdout, "what could end a line or a quote is left out", r.stdout, r.stderr)
    r = w.d.command("login", "ls", "--json")
    rows = {x["login"]: x for x in json.loads(r.stdout)["logins"]}
    t.ok(rows["gh"]["here"] and not rows["codex"]["here"] and rows["netrc"]["file"] == path, "durward login ls", r.stdout)


# ---- sessions ----

class Vendor:
    """A token endpoint whose refresh tokens serve once, and an API that knows the newest access token only."""

    def __init__(self, w, token, api, life=3600, slow=0.0):
        self.w, self.life, self.slow = w, life, slow
        self.refresh, self.access = w.secret("refresh0", "rt-"), w.secret("access0", "at-")
        self.issued = [self.access]
        self.asked, self.wrong, self.down, self.lock = [], [], False, threading.Lock()
        self.token = w.double(token, self.on_token)
        self.api = w.double(api, self.on_api)

    def on_token(self, req, conn):
        with self.lock:
            got = req.json()
            self.asked.append(got)
            if self.down:
                conn.reply(req, 503, {"error": "temporarily_unavailable"})
                return
            if got.get("refresh_token") != self.refresh or got.get("grant_type") != "refresh_token":
                self.wrong.append(got)
                conn.reply(req, 400, {"error": "invalid_grant"})
                return
            time.sleep(self.slow)
            n = len(self.asked)
            self.refresh, self.access = self.w.secret("refresh%d" % n, "rt-"), self.w.secret("access%d" % n, "at-")
            self.issued.append(self.access)
            conn.reply(req, 200, {"access_token": self.access, "refresh_token": self.refresh, "expires_in": self.life,
                                  "token_type": "Bearer"})

    def on_api(self, req, conn):
        good = req.get("authorization") == "Bearer " + self.access
        conn.reply(req, 200 if good else 401, {"ok": "called"} if good else {"error": "who?"})


def claude_file(v, left):
    return {"claudeAiOauth": {"accessToken": v.access, "refreshToken": v.refresh, "expiresAt": int((time.time() + left) * 1000),
                              "scopes": ["user:inference"], "subscriptionType": "max"}, "other": {"kept": [1, None, "x"]}}


CALL = ("T=$(sed -n 's/.*\"accessToken\": \"\\([^\"]*\\)\".*/\\1/p' ~/.claude/.credentials.json)\n"
        "call() { curl -sS -m 40 -w ' %{http_code}\\n' -H \"Authorization: Bearer $T\" https://api.anthropic.com/v1/messages -H 'Content-Type: application/json' -d '{}'; }\n")


def claude(t):
    w = World(t, "claude")
    v = Vendor(w, TOKEN, API)
    path = w.file(".claude/.credentials.json", claude_file(v, 3600))
    before = os.stat(path).st_ino
    r = w.run("claude", "cat ~/.claude/.credentials.json; " + CALL + "call")
    t.ok('"subscriptionType": "max"' in r.stdout and "kept-on-the-host" in r.stdout and r.stdout.endswith(" 200\n"),
         "a session that is good is used as it is", r.stdout, r.stderr)
    t.eq((len(v.asked), os.stat(path).st_ino), (0, before), "and nothing is refreshed")
    w.file(".claude/.credentials.json", claude_file(v, 100))
    used = v.refresh
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 200\n") and not v.wrong, "one that ends soon is refreshed on the host", r.stdout, r.stderr, v.wrong)
    t.eq(v.asked, [{"grant_type": "refresh_token", "refresh_token": used,
                    "client_id": "9d1c250a-e61b-44d9-88ed-5944d1962f5e"}], "once, as its program does it")
    got = json.loads(w.read(".claude/.credentials.json"))
    mine = got["claudeAiOauth"]
    t.eq((mine["accessToken"], mine["refreshToken"], got["other"], mine["scopes"]),
         (v.access, v.refresh, {"kept": [1, None, "x"]}, ["user:inference"]), "the file has the new session, and all else")
    t.ok(3400 < mine["expiresAt"] / 1000 - time.time() < 3700, "and when it ends", mine["expiresAt"])
    t.eq((stat.S_IMODE(os.stat(path).st_mode), os.stat(path).st_ino != before,
          sorted(os.listdir(os.path.dirname(path)))), (0o600, True, [".credentials.json"]), "by a new file, and no lock stays")
    r = w.run("claude", "curl -sS -o /dev/null -w '%{http_code}' -X POST https://api.anthropic.com/api/oauth/claude_cli/create_api_key")
    t.ok(r.stdout.startswith("403"), "a key that would live on is not made", r.stdout)
    together(t, w, v, path)
    locked(t, w, v, path)
    down(t, w, v, path)
    unusable(t, w, v, path)
    unsaved(t, w, v, path)
    ended(t, w, v, path)
    w.clean("claude")


def together(t, w, v, path):
    """Sandboxes at once, on a login that has ended: one refreshes."""
    w.file(".claude/.credentials.json", claude_file(v, -10))
    asked, v.slow = len(v.asked), 1.0
    work = [t.mkdir("together%d" % i) for i in range(3)]
    w.d.save()
    ps = [t.popen([durward.program(), "run", "-c", w.d.conf, "--login", "claude", "--", "sh", "-c",
                   CALL + "call; call"], env=w.d.env, cwd=d,
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for d in work]
    outs = [p.communicate(timeout=90)[0] for p in ps]
    w.said += outs
    t.ok(all(x.count(" 200\n") == 2 for x in outs) and len(v.asked) == asked + 1 and not v.wrong,
         "three sandboxes at once: one refresh, which all wait for", *outs, v.asked[asked:])
    v.slow = 0.0


def locked(t, w, v, path):
    """Its program refreshes on the host: we wait, read its file again, and take what it got."""
    lock = os.path.join(os.path.dirname(path), ".oauth_refresh.lock")
    w.file(".claude/.credentials.json", claude_file(v, -10))
    os.mkdir(lock)
    asked, new = len(v.asked), w.secret("hosts", "at-")

    def host():
        tap.wait_for(lambda: os.path.exists(os.path.join(w.d.work, "begun")), 30, 0.05)
        v.access = new
        w.file(".claude/.credentials.json", claude_file(v, 3600))
        os.rmdir(lock)

    helper = threading.Thread(target=host)
    helper.start()
    r = w.run("claude", CALL + "touch begun; call")
    helper.join()
    lines = [x for x in r.stdout.splitlines() if x]
    t.ok(lines == ['{"ok": "called"} 200'] and len(v.asked) == asked,
         "while its program holds the lock nothing is refreshed here; what it got is used", r.stdout, r.stderr)
    w.file(".claude/.credentials.json", claude_file(v, -10))
    os.mkdir(lock)
    os.utime(lock, (time.time() - 120,) * 2)
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 200\n") and len(v.asked) == asked + 1 and not os.path.exists(lock),
         "a lock whose holder has died is taken away", r.stdout, r.stderr)
    legacy = os.path.join(w.home, ".claude.lock")
    w.file(".claude/.credentials.json", claude_file(v, 200))
    os.mkdir(legacy)
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 200\n") and len(v.asked) == asked + 1, "its older lock counts, too; a token with some life left serves",
         r.stdout, r.stderr)
    os.rmdir(legacy)


def down(t, w, v, path):
    w.file(".claude/.credentials.json", claude_file(v, 200))
    v.down = True
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 200\n"), "the endpoint is down: the token serves to its end", r.stdout, r.stderr)
    w.file(".claude/.credentials.json", claude_file(v, -10))
    text = w.read(".claude/.credentials.json")
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 503\n") and w.read(".claude/.credentials.json") == text, "and then no request goes out", r.stdout)
    t.has(json.dumps(w.d.kinds("lifecycle", event="store_failed")[-1:]), "its endpoint answered 503", "the log says why")
    v.down = False


def unusable(t, w, v, path):
    """An access token that has ended when it comes: the refresh token beside it is the only one now."""
    w.file(".claude/.credentials.json", claude_file(v, -10))
    access, v.life = v.access, 0
    r = w.run("claude", CALL + "call")
    v.life = 3600
    mine = json.loads(w.read(".claude/.credentials.json"))["claudeAiOauth"]
    t.ok(r.stdout.endswith(" 503\n") and v.access != access, "an answer that has ended when it comes is not used", r.stdout, r.stderr)
    t.eq((mine["accessToken"], mine["refreshToken"]), (access, v.refresh), "its refresh token is in the file, and all else as it was")
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 200\n") and not v.wrong, "and the next run goes on with it", r.stdout, r.stderr, v.wrong)


def unsaved(t, w, v, path):
    """The file cannot be written (a full disk; here a folder stands where the new file would): the refresh token that
    has replaced the file's is still asked with, and goes into the file when that can be written again."""
    w.file(".claude/.credentials.json", claude_file(v, -10))
    access, used = v.access, v.refresh
    flag = os.path.join(w.d.work, "failed")
    os.mkdir(path + ".durward")

    def host():
        tap.wait_for(lambda: os.path.exists(flag), 30, 0.05)
        os.rmdir(path + ".durward")
        os.remove(flag)

    helper = threading.Thread(target=host)
    helper.start()
    r = w.run("claude", CALL + "call; touch failed; while [ -e failed ]; do sleep 0.05; done\n"
              "until call > got; grep -q ' 200$' got; do sleep 0.1; done; cat got", timeout=60)
    helper.join()
    mine = json.loads(w.read(".claude/.credentials.json"))["claudeAiOauth"]
    t.ok(" 503\n" in r.stdout and access != v.access and used != v.refresh, "a session that cannot be written is not used", r.stdout, r.stderr)
    t.ok(r.stdout.endswith(" 200\n") and not v.wrong, "and its refresh token is not lost", r.stdout, r.stderr, v.wrong)
    t.eq((mine["accessToken"], mine["refreshToken"]), (v.access, v.refresh), "the file has what came last")


def ended(t, w, v, path):
    """The run ends while the endpoint replaces the session: the vault ends only when the file has the new one."""
    w.file(".claude/.credentials.json", claude_file(v, -10))
    asked, used, v.slow = len(v.asked), v.refresh, 1.0
    flag = os.path.join(w.d.work, "asked")

    def host():
        if tap.wait_for(lambda: len(v.asked) > asked, 30, 0.01):
            open(flag, "w").close()

    helper = threading.Thread(target=host)
    helper.start()
    r = w.run("claude", CALL + "call >/dev/null 2>&1 & while [ ! -e asked ]; do sleep 0.05; done; exit 0", timeout=60)
    helper.join()
    v.slow = 0.0
    t.ok(r.returncode == 0 and len(v.asked) == asked + 1 and v.refresh != used and
         json.loads(w.read(".claude/.credentials.json"))["claudeAiOauth"]["refreshToken"] == v.refresh,
         "a run that ends meanwhile ends when the new session is in the file", r.stdout, r.stderr, v.asked[asked:])
    t.eq(sorted(os.listdir(os.path.dirname(path))), [".credentials.json"], "and lets go of its lock")
    r = w.run("claude", CALL + "call")
    t.ok(r.stdout.endswith(" 200\n") and not v.wrong, "and the next one goes on with it", r.stdout, r.stderr, v.wrong)


def jwt(left, **claims):
    parts = [{"alg": "RS256"}, dict(claims, exp=int(time.time() + left))]
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + ".c2ln"


def codex_file(w, v, left):
    v.issued.append(jwt(left, jti=w.secret("jti%d" % len(w.scanner.needles), "")))
    v.access = v.issued[-1]
    w.scanner.add("jwt%d" % len(w.scanner.needles), v.access.encode())
    about = {"https://api.openai.com/auth": {"chatgpt_plan_type": "pro"}}
    return {"OPENAI_API_KEY": None, "tokens": {"id_token": jwt(9999, **about), "access_token": v.access,
                                               "refresh_token": v.refresh, "account_id": "acct-1"},
            "last_refresh": "2026-01-01T00:00:00Z"}


def codex(t):
    """No lock is known: the user's own file is read only; a login of Durward's own is refreshed."""
    w = World(t, "codex")
    v = Vendor(w, "auth.openai.com", "chatgpt.com")
    call = ("T=$(sed -n 's/.*\"access_token\": \"\\([^\"]*\\)\".*/\\1/p' ~/.codex/auth.json)\n"
            "curl -sS -w ' %{http_code}\\n' -H \"Authorization: Bearer $T\" https://chatgpt.com/backend-api/codex/responses -H 'Content-Type: application/json' -d '{}'")
    path = w.file(".codex/auth.json", codex_file(w, v, 7200))
    r = w.run("codex", "cat ~/.codex/auth.json; " + call)
    t.ok(r.stdout.endswith(" 200\n") and '"account_id": "acct-1"' in r.stdout, "the user's own login is used", r.stdout, r.stderr)
    token = json.loads(r.stdout[:r.stdout.rindex("}{") + 1] if "}{" in r.stdout else r.stdout.rsplit("{", 1)[0])["tokens"]["id_token"]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    t.eq(claims["https://api.openai.com/auth"]["chatgpt_plan_type"], "pro", "what its identity says, without a signature")
    w.file(".codex/auth.json", codex_file(w, v, -5))
    r = w.run("codex", call)
    t.ok(r.stdout.endswith(" 503\n") and not v.asked, "when that has ended it is not refreshed", r.stdout)
    t.has(json.dumps(w.d.kinds("lifecycle", event="store_failed")[-1:]), "only its program may refresh it", "the log says what to do")
    own = w.file("own/auth.json", codex_file(w, v, 100))
    r = w.run("codex=" + own, call)
    got = json.loads(w.read("own/auth.json"))
    t.ok(r.stdout.endswith(" 200\n") and len(v.asked) == 1 and got["tokens"]["refresh_token"] == v.refresh and
         got["last_refresh"] > "2026-06", "one of Durward's own is", r.stdout, r.stderr, got)
    t.ok(os.path.exists(path) and sorted(os.listdir(os.path.dirname(own))) == ["auth.json"], "and nothing is left beside it")
    w.clean("codex")


def counted(t):
    """A call to a model whose token is refused and made anew meanwhile is booked once, with a budget and without."""
    w = World(t, "counted")
    v = Vendor(w, "auth.openai.com", "chatgpt.com")

    def answer(req, conn):
        good = req.get("authorization") == "Bearer " + v.access
        conn.reply(req, 200 if good else 401, {"usage": {"input_tokens": 100, "output_tokens": 200}} if good else {"error": "who?"})
    w.doubles["chatgpt.com"].handler = answer
    own = w.file("own/auth.json", codex_file(w, v, 7200))
    script = ("T=$(sed -n 's/.*\"access_token\": \"\\([^\"]*\\).*/\\1/p' ~/.codex/auth.json)\n"
              "call() { curl -sS -o /dev/null -w '%{http_code} ' -H \"Authorization: Bearer $T\" https://chatgpt.com/backend-api/codex/responses "
              "-H 'Content-Type: application/json' -d \"{\\\"model\\\":\\\"m\\\",\\\"input\\\":\\\"x\\\",\\\"max_output_tokens\\\":$1}\"; }\n")
    w.d.policies["spends"] = {"budget": {"tokens": "5000/h"}, "rules": []}
    w.d.policy("free", [])
    v.access = "revoked"
    r = w.run("codex=" + own, script + "call 1000; call 1000; call 4500; call 4500", "--policy", "spends")
    t.ok((r.stdout.split(), len(v.asked)) == (["503", "200", "200", "429"], 1), "a call whose token is made anew takes nothing of a budget of "
         "tokens until it is asked again", r.stdout, r.stderr, v.asked)
    v.access = "revoked"
    r = w.run("codex=" + own, script + "call 1000", "--policy", "free")
    ids = {(x["sandbox"], x["id"]) for x in w.d.kinds("admitted") if x.get("policy") == "free"}
    ends = [(x["kind"], x.get("tokens_in"), x.get("tokens_out")) for kind in ("aborted", "completed") for x in w.d.kinds(kind)
            if (x.get("sandbox"), x["id"]) in ids]
    t.ok((r.stdout.split(), len(v.asked)) == (["200"], 2) and ends == [("aborted", None, None), ("completed", 100, 200)],
         "without one it is sent again, and its tokens are on record once", r.stdout, r.stderr, ends)
    w.clean("counted")


class Google:
    """An endpoint whose refresh tokens serve for ever."""

    def __init__(self, w):
        self.refresh, access = w.secret("refresh", "1//"), w.secret("access", "ya29.")
        self.issued, self.asked = [access], []
        w.double("oauth2.googleapis.com", self)
        w.double("www.googleapis.com", lambda req, conn: conn.reply(req, 200, {"email": "me@example.com"}))

    def __call__(self, req, conn):
        if req.path == "/tokeninfo":
            conn.reply(req, 200, {"scope": "a b", "expires_in": 3000})
            return
        self.asked.append(req.body.decode())
        conn.reply(req, 200, {"access_token": self.issued[0], "expires_in": 3599, "scope": "a b", "token_type": "Bearer",
                              "id_token": jwt(3000, sub="1")})


def gemini(t):
    """The program asks for tokens by itself: with a placeholder, for placeholders."""
    w = World(t, "gemini")
    v = Google(w)
    refresh, access, asked = v.refresh, v.issued[0], v.asked
    w.double("cloudcode-pa.googleapis.com", ok)
    w.file(".gemini/oauth_creds.json", {"access_token": "ya29.old", "refresh_token": refresh, "scope": "a b",
                                        "token_type": "Bearer", "expiry_date": 5, "id_token": "x"})
    r = w.run("gemini", "cat ~/.gemini/oauth_creds.json; R=$(sed -n 's/.*\"refresh_token\": \"\\([^\"]*\\)\".*/\\1/p' ~/.gemini/oauth_creds.json)\n"
              "curl -sS -o got --data-urlencode refresh_token=$R -d grant_type=refresh_token https://oauth2.googleapis.com/token\n"
              "T=$(sed -n 's/.*\"access_token\": *\"\\([^\"]*\\)\".*/\\1/p' got); echo \"new $T\"\n"
              "curl -sS -H \"Authorization: Bearer $T\" https://cloudcode-pa.googleapis.com/v1internal:loadCodeAssist -d x")
    t.ok("new dwd_" in r.stdout and '"called"' in r.stdout and '"scope": "a b"' in r.stdout, "a token is had, as a placeholder",
         r.stdout, r.stderr)
    t.ok(len(asked) == 1 and "refresh_token=1%2F%2F" in asked[0], "for the real refresh token", asked)
    t.eq(w.auth("cloudcode-pa.googleapis.com"), ["Bearer " + access], "and it is the real one there")
    w.clean("gemini")


def adc(t):
    """A user's application default credentials: Google's library finds an instance's account, whose token the host refreshes."""
    w = World(t, "adc")
    v = Google(w)
    client = w.secret("client", "GOCSPX-")
    w.double("cloudresourcemanager.googleapis.com", ok)
    path = w.file(".config/gcloud/application_default_credentials.json",
                  {"type": "authorized_user", "client_id": "1-x.apps.googleusercontent.com", "client_secret": client,
                   "refresh_token": v.refresh, "quota_project_id": "acme-build", "universe_domain": "googleapis.com"})
    script = ("ls ~/.config/gcloud 2>&1; T=$(curl -sS -H 'Metadata-Flavor: Google' http://metadata.google.internal/computeMetadata/v1/"
              "instance/service-accounts/default/token); echo $T; curl -sS -H \"Authorization: Bearer $(echo $T | sed 's/.*access_token\":\"\\([^\"]*\\).*/\\1/')\" "
              "https://cloudresourcemanager.googleapis.com/v3/projects/acme-build")
    r = w.run("adc", script)
    t.ok('"access_token":"dwd_' in r.stdout and '"called"' in r.stdout, "the token is a placeholder, which works", r.stdout, r.stderr)
    t.eq(w.auth("cloudresourcemanager.googleapis.com"), ["Bearer " + v.issued[0]], "and it is the real one there")
    t.ok(len(v.asked) == 1 and "client_secret=" + client in v.asked[0] and "grant_type=refresh_token" in v.asked[0],
         "refreshed on the host", v.asked)
    t.ok("application_default" not in r.stdout, "no such file is inside", r.stdout)
    python = os.path.join(durward.clients_dir(), "sdks/bin/python")
    if os.path.exists(python):
        code = ("import google.auth, google.auth.transport.requests as q; c, p = google.auth.default(); "
                "print(p, q.AuthorizedSession(c).get('https://cloudresourcemanager.googleapis.com/v3/x').json())")
        binds = [x for b in durward.client_binds("sdks") for x in ("--bind", b)]
        r = w.run("adc", "%s -c \"%s\"" % (python, code), *binds)
        t.ok("acme-build {'ok': 'called'}" in r.stdout, "google-auth finds it, and its project", r.stdout, r.stderr)
    else:
        t.skip("google-auth with its user's login", "it is not there: run tests/functional/clients/setup")
    w.d.policies["p"] = {"identity": {"gcp": {"secret": "mine"}}, "rules": [{"allow": "a.example", "with": {"bearer": "mine"}}]}
    w.d.secret("mine", "x" * 20)
    r = w.run("adc", "true", "--policy", "p")
    t.ok(r.returncode == 125 and "says already who it is to gcp" in r.stderr, "not beside an identity of the policy", r.stderr)
    w.file(path, {"type": "service_account", "client_email": "a@b", "private_key": client})
    r = w.run("adc", "true", "--policy", "none")
    t.ok(r.returncode == 125 and "holds no login" in r.stderr, "a service account's file is no such login", r.stderr)
    w.clean("adc")


# ---- agents of others, as they are ----

def session(v, left, **more):
    """As opencode and pi keep one."""
    return dict({"type": "oauth", "access": v.access, "refresh": v.refresh, "expires": int((time.time() + left) * 1000)}, **more)


def coder(t, name):
    """One task by its profile and its user's login, which ends soon."""
    agent = next(a for a in agents.AGENTS if a.name == name)
    if agent.missing():
        t.skip("%s with its login" % name, agent.missing())
        return
    run, words = agents.Run(t, agent, name + "-login"), agent.words()
    w = World.__new__(World)
    w.t, w.d, w.scanner, w.home, w.doubles, w.said, login = t, run.d, scan.Scanner(), run.d.env["HOME"], {}, [], name
    if name == "claude":
        v = Vendor(w, TOKEN, "unused.example")
        host, here = agent.host, run.double
        w.file(".claude/.credentials.json", claude_file(v, 200))
    elif name == "codex":
        v = Vendor(w, "auth.openai.com", "unused.example")
        host, here = "chatgpt.com", w.double("chatgpt.com", models.chatgpt(run.task, "acct-1"))
        login += "=" + w.file("own/auth.json", codex_file(w, v, 100))  # nobody else refreshes it
    elif name == "opencode":
        v = Vendor(w, "auth.openai.com", "unused.example")
        host, here = "chatgpt.com", w.double("chatgpt.com", models.chatgpt(run.task, "acct-1"))
        login += "=" + w.file("own/auth.json", {"openai": session(v, 200, accountId="acct-1")})
        words = ["run", "-m", "openai/gpt-5.4", agents.PROMPT]
    elif name == "pi":
        v = Vendor(w, TOKEN, "unused.example")
        host, here = agent.host, run.double
        w.file(".pi/agent/auth.json", {"anthropic": session(v, 200)})
    else:
        v = Google(w)
        host, here = "cloudcode-pa.googleapis.com", w.double("cloudcode-pa.googleapis.com", models.code_assist(run.task))
        w.file(".gemini/oauth_creds.json", {"access_token": "ya29.old", "refresh_token": v.refresh, "scope": "a b",
                                            "token_type": "Bearer", "expiry_date": 5})
    run.d.save()
    env = {"PATH": os.path.dirname(os.path.join(agent.folder, agent.program)) + ":" + agent.variables()["PATH"]}
    run.said = run.d.command("run", "-c", run.d.conf, "--login", login, name, *words, env=env, timeout=180)
    after = run.d.command("run", "-c", run.d.conf, "--login", login, "--profile", name, "--", "sh", "-c", agents.AFTER, env=env)
    w.said += [run.said.stdout, run.said.stderr, after.stderr]
    t.ok(not run.done(), "%s: with its user's login it does the task" % name, run.done(), run.said.stdout[-2000:],
         run.said.stderr[-2000:], sorted({(q.method, q.path, str(q.status)) for q in here.requests}))
    said = [q.get("authorization") for q in here.requests]
    t.ok(said and set(said) <= {"Bearer " + x for x in v.issued}, "%s: %d requests with the real token" % (name, len(said)),
         set(said) - {"Bearer " + x for x in v.issued})
    t.ok(v.asked and not getattr(v, "wrong", None), "%s: %d refreshes, with the real token" % (name, len(v.asked)), v.asked)
    refused = [x for x in run.d.kinds("denied") if x.get("authority") == host and
               x.get("path") != "/backend-api/ps/mcp"]
    t.ok(not refused, "%s: 0 of them were refused, but for connectors of the account" % name, *refused)
    t.diag("%s: refused elsewhere: %s" % (name, sorted({"%s %s" % (x.get("authority"), x.get("code"))
                                                         for x in run.d.kinds("denied")})))
    w.clean(name)


def main(t):
    if "AGENTS" not in os.environ:
        w = t.part(hosts, t)
        if w:
            t.part(refused, t, w)
        for part in (claude, codex, counted, gemini, adc, pip, cargo, docker, kube, azure):
            t.part(part, t)
    for name in os.environ.get("AGENTS", "claude codex gemini opencode pi").split():
        t.part(coder, t, name)


tap.run(main, timeout=400)
