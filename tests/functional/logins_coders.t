#!/usr/bin/python3 -B
"""Coding agents of others log in by themselves inside, as they are: Claude Code by a code that is pasted on its terminal, or into
its own screen (/login), Codex by a device's code, or by a browser that calls its port. What their vendors' doubles answer stays on the host; the programs have placeholders, look into the claims of
those that are tokens, refresh them, and work with them in the next run of that home, until it is logged out.

./runtests leaves out /login on the screen; `make tui` tries it."""
import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import agents, durward, models, nginx, origin, scan, tap, terminal  # noqa: E402
from harness.screen import Screen  # noqa: E402

AUTH = "https://api.openai.com/auth"
ACCOUNT = "acct-door"
CLIENT = {"claude": "9d1c250a-e61b-44d9-88ed-5944d1962f5e", "codex": "app_EMoamEEZ73f0CkXaXp7hrann"}  # of the programs, as anybody sees
MARK = "T=$(sed -n 's/.*\"%s\": *\"\\([^\"]*\\)\".*/\\1/p' ~/.claude/.credentials.json ~/.codex/auth.json 2>/dev/null)\n"
# With what stands in its file, also when that is gone.
CALL = (MARK + "[ -z \"$T\" ] || echo \"$T\" >mark; curl -sS -o /dev/null -w '%%{http_code}' -H \"Authorization: Bearer $(cat mark)\" %s")


def b64(raw):
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def token(left, secret, **auth):
    """A JSON web token as the vendor's are: signed, with more in it than its program reads."""
    claims = {"exp": int(time.time() + left), "jti": secret, "email": "me@door.example", "sid": secret, AUTH: auth}
    return ".".join([b64(b'{"alg":"RS256","kid":"k1","typ":"JWT"}'), b64(json.dumps(claims).encode()), b64(secret.encode())])


class Vendor:
    """A token endpoint: codes with PKCE (RFC 7636), and refresh tokens that serve once."""

    def __init__(self, t, name, how="command"):
        agent = next(a for a in agents.AGENTS if a.name == name)
        self.run = agents.Run(t, agent, how)
        self.t, self.agent, self.d = t, agent, self.run.d
        self.scanner, self.lock, self.said = scan.Scanner(), threading.Lock(), []
        self.issued, self.refresh, self.codes, self.wrong, self.asked, self.revoked = [], None, {}, [], [], []

    def double(self, host, handler):
        if host == self.agent.host:  # the one of its API key
            self.run.double.handler = handler
            return self.run.double
        o = origin.Origin(self.t, self.d.ca, host, handler)
        self.d.origin(host, o)
        return o

    def secret(self, prefix):
        value = scan.canary(prefix)
        self.scanner.add("%s%d" % (prefix, len(self.scanner.needles)), value)
        return value.decode()

    def on_token(self, req, conn):
        got = req.json() if "json" in req.get("content-type") else {
            k: v[0] for k, v in urllib.parse.parse_qs(req.body.decode()).items()}
        with self.lock:
            self.asked.append(got)
            if req.path.endswith("/revoke"):
                self.revoked.append(got["token"])
                conn.reply(req, 200, {})
                return
            proof = b64(hashlib.sha256(got.get("code_verifier", "").encode()).digest())
            code = got.get("grant_type") == "authorization_code" and self.codes.pop(got.get("code"), None) == proof
            if not code and (got.get("grant_type") != "refresh_token" or got.get("refresh_token") != self.refresh):
                self.wrong.append(got)
                conn.reply(req, 400, {"error": "invalid_grant"})
                return
            self.refresh = self.secret("sk-ant-ort01-" if self.agent.name == "claude" else "rt-")
            conn.reply(req, 200, dict(self.tokens(first=code), refresh_token=self.refresh))

    def command(self, *argv, timeout=90, how="--login-kept"):
        a = self.agent
        env = {"PATH": os.path.dirname(os.path.join(a.folder, a.program)) + ":" + a.variables()["PATH"]}
        self.d.policy("agent", [])
        self.d.save()
        r = self.d.command("run", "-c", self.d.conf, how, *argv, env=env, timeout=timeout)
        self.said += [r.stdout, r.stderr]
        return r

    def shell(self, script):
        return self.command("--profile", self.agent.name, "--", "sh", "-c", script)

    def begins(self, url):
        """Where a login is made: without the project, in an empty home, and with no token but its own."""
        t, name = self.t, self.agent.name
        open(os.path.join(self.d.work, "planted"), "w").close()
        ask = json.dumps({"grant_type": "refresh_token", "client_id": CLIENT[name], "refresh_token": "theirs"})
        script = "[ \"$PWD\" = \"$HOME\" ] && [ ! -e %s/planted ] && echo alone; curl -sS -o /dev/null -w '%%{http_code}' -H 'Content-Type: application/json' -d '%s' %s"
        r = self.command("--profile", name, "--home", "other", "--", "sh", "-c", script % (self.d.work, ask, url), how="--login-inside")
        t.ok(r.stdout == "alone\n403" and not self.asked, "%s: its login begins without the project, and for no token of another account" % name,
             r.stdout, r.stderr, self.asked)
        r = self.command("--profile", name, "--home", "other", "--", "true", how="--login-inside")
        t.ok(r.returncode == 125 and "durward home rm other" in r.stderr, "%s: nor in a home that was used" % name, r.stdout, r.stderr)
        r = self.command("--profile", name, "--bind", self.d.work, "--", "true", how="--login-inside")
        t.ok(r.returncode == 125 and "leave out --bind" in r.stderr, "%s: nor with a bind" % name, r.stdout, r.stderr)

    def other(self, url):
        """Nobody inside can log in to another account by the rules of a login that is there."""
        t, name = self.t, self.agent.name
        field = {"claude": "refreshToken", "codex": "refresh_token"}[name]
        whole = '"grant_type":"refresh_token","client_id":"%s","refresh_token":"@"' % CLIENT[name]
        code = '"grant_type":"authorization_code","code":"theirs","client_id":"%s"' % CLIENT[name]
        form = "grant_type=refresh_token&client_id=%s&refresh_token=@" % CLIENT[name]
        bodies = ['{%s}' % code, '{%s,"refresh_token":"@"}' % code, '{%s}' % whole.replace('"@"', '"theirs"'), '{%s}' % whole.replace("@", "theirs.@"),
                  '{%s,"refresh_token":"theirs"}' % whole, '{%s,"Grant_Type":"authorization_code"}' % whole, '{"refresh_token":"@"}',
                  '{%s}' % whole.replace(CLIENT[name], "another"), '{%s,"refresh_to\\u212aen":"theirs"}' % whole, '{%s,"expires_in":31536000}' % whole,
                  '{%s,"audience":"other"}' % whole, '{%s,"grant[type":"authorization_code"}' % whole,
                  '{%s}' % whole.replace("@", "\\u0064~")]
        cases = [("application/json", "", x) for x in bodies]
        cases += [("application/json", "?grant_type=authorization_code", "{%s}" % whole), ("text/plain", "", ""),
                  ("application/x-www-form-urlencoded", "", "grant_type=authorization_code&code=theirs"),
                  ("application/x-www-form-urlencoded", "", form + "&grant.type=authorization_code")]
        cases += [(x, "", '{%s,"scope":"&grant_type=authorization_code&code=theirs&y="}' % whole) for x in
                  ("application/x-www-form-urlencoded,x/y+json", "application/x-www-form-urlencoded x/y+json", "application/x-www-form-urlencoded+json",
                   "multipart/form-data+json; boundary=z", "application/json;charset=utf-7")]
        script = MARK % field + "post() { sed \"s/@/$T/;s/~/${T#d}/\" | curl -sS -o /dev/null -w '%%{http_code} ' -H \"Content-Type: $1\" --data-binary @- '%s'\"$2\"; }\n" % url
        script += "".join("post '%s' '%s' <<'END'\n%s\nEND\n" % x for x in cases)
        before = len(self.asked)
        r = self.shell(script)
        t.ok(r.stdout.split() == ["403"] * len(cases) and len(self.asked) == before,
             "%s: no code and no token of another account is exchanged there" % name, list(zip(r.stdout.split(), cases)), r.stderr, self.asked[before:])

    def narrow(self, text, calls):
        """Its token goes where its program works with the model, and nowhere else. calls: method, URL, body, status."""
        script = MARK % text
        for method, url, body, _ in calls:
            sent = "-H 'Content-Type: application/json' -d '%s'" % json.dumps(body) if body else ""
            script += "curl -sS -o /dev/null -w '%%{http_code} ' -X %s -H \"Authorization: Bearer $T\" %s '%s'\n" % (method, sent, url)
        r = self.shell(script)
        self.t.eq(r.stdout.split(), [x[3] for x in calls], "%s: its token goes to the model, and not to what else the account has" % self.agent.name)

    def work(self, here):
        """The task, in a run of its own, which begins with a refresh."""
        t, name, run = self.t, self.agent.name, self.run
        run.said = self.command(name, *self.agent.words(), timeout=150)
        t.ok(not run.done(), "%s: the next run of its home is logged in, and does the task" % name, run.done(),
             run.said.stdout[-2000:], run.said.stderr[-2000:], sorted({(q.method, q.path, str(q.status)) for q in here.requests}))
        t.ok(len(self.issued) > 1 and not self.wrong, "%s: %d refreshes for the real token" % (name, len(self.issued) - 1), self.wrong)
        said = {q.get("authorization") for q in here.requests if q.get("authorization")}
        t.ok(said and said <= {"Bearer " + x for x in self.issued}, "%s: the real token arrives, and nothing else" % name,
             said - {"Bearer " + x for x in self.issued})
        refused = sorted({"%s%s %s" % (x.get("authority"), x.get("path"), x.get("code")) for x in self.d.kinds("denied")})
        t.diag("%s: refused: %s" % (name, refused))

    def end(self, text, url, leave):
        """What it left is searched; its login ends at the vendor, and on the host. text: before its placeholder in its file."""
        t, name, s = self.t, self.agent.name, self.scanner
        call = CALL % (text, url)
        r = self.shell(call)
        t.eq(r.stdout.strip()[-3:], "200", "%s: its placeholder is worth the token" % name)
        self.shell(agents.AFTER)
        homes = os.path.join(self.d.dir, "state-homes")
        found = json.loads(self.d.command("home", "ls", "-c", self.d.conf, "--json").stdout)["homes"]
        mine = [x for x in found if x["home"].startswith(name + "-inside")]
        t.ok(len(mine) == 1 and [x["policy"] for x in mine[0]["logins"]] == [name], "%s: the host has it, with that home" % name, found)
        for text in self.said:
            s.search(text, "output")
        for folder in (self.d.work, self.d.audit_dir, os.path.join(homes, mine[0]["home"], "home")):
            s.tree(folder)
        t.ok(os.path.exists(os.path.join(self.d.work, "left.tar")) and not s.hits,
             "%s: 0 copies of %d tokens in what it left, said, or that is on record" % (name, len(s.needles)), *s.report())
        t.tally(canaries=len(s.hits), searched=s.bytes)
        self.command(*leave)
        t.eq(self.revoked, [self.refresh], "%s: its own logout tells its vendor the real one" % name)
        self.d.command("home", "logout", "-c", self.d.conf, mine[0]["home"])
        r = self.shell(call)
        t.eq(r.stdout.strip()[-3:], "503", "%s: after durward home logout it is worth nothing" % name)


class Claude(Vendor):
    def tokens(self, first):
        self.issued.append(self.secret("sk-ant-oat01-"))
        return {"token_type": "Bearer", "access_token": self.issued[-1], "expires_in": 100 if first else 28800,
                "scope": "user:inference user:profile user:sessions:claude_code",
                "account": {"uuid": "u-1", "email_address": "me@door.example"}, "organization": {"uuid": "o-1", "name": "Door"}}

    def on_platform(self, req, conn):
        if req.path == "/v1/oauth/hello":
            conn.reply(req, 200, {})
        else:
            self.on_token(req, conn)

    def on_api(self, req, conn):
        if req.get("authorization") not in ["Bearer " + x for x in self.issued]:
            conn.reply(req, 401, {"type": "error", "error": {"type": "authentication_error", "message": "who?"}})
        elif req.path == "/api/oauth/profile":
            conn.reply(req, 200, {"account": {"uuid": "u-1", "email": "me@door.example", "has_claude_max": True},
                                  "organization": {"uuid": "o-1", "organization_type": "claude_max", "rate_limit_tier": "t"}})
        elif req.path == "/api/oauth/claude_cli/roles":
            conn.reply(req, 200, {"organization_role": "admin", "workspace_role": None, "organization_name": "Door"})
        elif req.method == "GET" and req.path == "/v1/models/door":
            conn.reply(req, 200, {})
        else:
            self.model(req, conn)


def claude(t):
    v = Claude(t, "claude")
    v.model = models.anthropic(v.run.task)
    api = v.double("api.anthropic.com", v.on_api)
    v.double("platform.claude.com", v.on_platform)
    v.begins("https://platform.claude.com/v1/oauth/token")
    a = v.agent
    env = dict(v.d.env, TERM="xterm", PATH=os.path.dirname(os.path.join(a.folder, a.program)) + ":" + a.variables()["PATH"])
    env.pop("DISPLAY", None)
    tty = terminal.Terminal(t, [durward.program(), "run", "-c", v.d.conf, "--login-inside", "-e", "CLAUDE_CODE_FULL_SIGN_IN_LINK=1",
                              "claude", "auth", "login"], v.d.work, env,
                            cols=2000)
    shown = tty.see("Paste code here", 90)
    before = getattr(tty, "last", b"").decode("utf-8", "replace")
    got = re.search(r"https://\S+/oauth/authorize\?[^\s\x1b\x07]+", before)
    if not t.ok(shown and got, "claude: it shows where to log in, and waits for a code", tty.out[-3000:], before[-3000:]):
        return
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(got[0]).query))
    code = scan.canary("code-").decode()  # it is typed, and serves once
    v.codes[code] = asked["code_challenge"]
    tty.type("%s#%s\r" % (code, asked["state"]))
    t.ok(tty.see("Login successful", 60) and tty.wait(60) == 0 and len(v.issued) == 1 and not v.wrong,
         "claude: the code that is pasted logs it in", tty.out[-2000:], v.wrong, v.d.kinds("denied"))
    r = v.shell("cat ~/.claude/.credentials.json")
    t.ok('"accessToken":"dwd_' in r.stdout.replace(" ", "") and '"refreshToken":"dwd_' in r.stdout.replace(" ", ""),
         "claude: its file holds placeholders", r.stdout)
    v.other("https://platform.claude.com/v1/oauth/token")
    base = "https://api.anthropic.com"
    v.narrow("accessToken", [("GET", base + "/v1/models/door", None, "200"), ("GET", "https://platform.claude.com/v1/oauth/hello", None, "403")] +
             [(m, base + p, b, "403") for m, p, b in (
                 ("POST", "/v1/environments", {"a": 1}), ("GET", "/v1/code/sessions", None), ("GET", "/v1/sessions", None), ("GET", "/v1/vaults", None),
                 ("POST", "/v1/tunnels", {"a": 1}), ("GET", "/v1/organizations/me", None), ("POST", "/v1/files", {"a": 1}), ("DELETE", "/v1/models/x", None),
                 ("GET", "/api/oauth/organizations/o-1", None), ("POST", "/v1/messages", {"model": "m", "mcp_servers": [{"url": "https://x"}]}))])
    r = v.shell("curl -sS -o /dev/null -w '%{http_code}' https://platform.claude.com/v1/oauth/hello")
    t.eq(r.stdout, "200", "claude: it may ask whether its vendor can be reached")
    v.work(api)
    v.end("accessToken", "https://api.anthropic.com/v1/models/door", ["claude", "auth", "logout"])


class Codex(Vendor):
    plain = False  # no WebSocket: it asks by requests

    def tokens(self, first):
        auth = {"chatgpt_account_id": ACCOUNT, "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1", "groups": ["hidden"]}
        made = [token(-5 if first else 7200, self.secret(x), **auth) for x in ("access-", "identity-")]
        for x in made:
            self.scanner.add("jwt%d" % len(self.scanner.needles), x.encode())
        self.issued.append(made[0])
        return {"access_token": made[0], "id_token": made[1]}

    def on_auth(self, req, conn):
        if req.path == "/api/accounts/deviceauth/usercode":
            conn.reply(req, 200, {"device_auth_id": "d-1", "user_code": "DOOR-1234", "interval": "1"})
        elif req.path == "/api/accounts/deviceauth/token":
            verifier = scan.canary("v-").decode()
            proof = b64(hashlib.sha256(verifier.encode()).digest())
            self.codes["code-1"] = proof
            conn.reply(req, 200, {"authorization_code": "code-1", "code_challenge": proof, "code_verifier": verifier})
        else:
            self.on_token(req, conn)

    def on_api(self, req, conn):
        if req.get("authorization") not in ["Bearer " + x for x in self.issued]:
            conn.reply(req, 401, {"error": {"message": "who?"}})
        elif req.path == "/backend-api/wham/door":
            conn.reply(req, 200, {})
        elif req.path == "/backend-api/wham/parts":
            conn.reply(req, 200, dict(zip(("head", "claims", "mark"), self.issued[-1].split("."))))
        elif self.plain and req.get("upgrade"):
            conn.reply(req, 426, {"error": {"message": "no WebSocket here"}})
        else:
            self.model(req, conn)


def codex(t):
    v = Codex(t, "codex")
    v.model = models.chatgpt(v.run.task, ACCOUNT)
    api = v.double("chatgpt.com", v.on_api)
    v.double("auth.openai.com", v.on_auth)
    v.begins("https://auth.openai.com/oauth/token")
    r = v.command("codex", "login", "--device-auth", how="--login-inside")
    t.ok(r.returncode == 0 and "DOOR-1234" in r.stdout + r.stderr and len(v.issued) == 1 and not v.wrong,
         "codex: a device's code logs it in", r.stdout, r.stderr, v.wrong, v.d.kinds("denied"))
    r = v.shell("cat ~/.codex/auth.json")
    tokens = json.loads(r.stdout)["tokens"]
    for name in ("access_token", "id_token"):
        head, claims, mark = tokens[name].split(".")
        said = json.loads(base64.urlsafe_b64decode(claims + "=="))
        t.ok(b"none" in base64.urlsafe_b64decode(head + "==") and mark.startswith("dwd_") and sorted(said) == ["exp", AUTH] and
             said[AUTH] == {"chatgpt_account_id": ACCOUNT, "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1"},
             "codex: its %s says what it reads, without a signature" % name, tokens)
    t.ok(tokens["refresh_token"].startswith("dwd_"), "codex: its refresh token is a placeholder", tokens)
    v.other("https://auth.openai.com/oauth/token")
    base = "https://chatgpt.com/backend-api"
    ask = {"model": "m", "input": "x", "stream": True}
    v.narrow("access_token", [("GET", base + "/wham/door", None, "200"), ("GET", base + "/ps/mcp", None, "403"), ("POST", base + "/wham/door", {"a": 1}, "403")] +
             [("POST", base + "/codex/responses", dict(ask, tools=[x]), "403") for x in (
                 {"type": "mcp", "server_label": "a", "server_url": "https://x"}, {"type": "mcp", "server_label": "a", "connector_id": "connector_gmail"},
                 {"type": "web_search"})])
    r = v.shell(MARK % "access_token" + "curl -sS -H \"Authorization: Bearer $T\" %s/wham/parts" % base)
    got, (head, claims, mark) = json.loads(r.stdout), v.issued[-1].split(".")
    t.ok(got["head"] == head and all(x.startswith("[REDACTED:codex_access") for x in (got["claims"], got["mark"])) and claims not in r.stdout,
         "codex: a reply that has its claims or its signature alone comes without them", r.stdout)
    v.plain = True  # it would compress them
    v.shell("sed -i '/^\\[features\\]/d;/enable_request_compression/d' ~/.codex/config.toml")  # a home of an older profile
    v.work(api)
    v.end("access_token", "https://chatgpt.com/backend-api/wham/door", ["codex", "logout"])


# ---- by their own screens, and by a browser ----

def begun(t, v, *words):
    """What starts the program where it may log in, and its environment."""
    a = v.agent
    v.d.policy("agent", [])
    v.d.save()
    env = dict(v.d.env, PATH=os.path.dirname(os.path.join(a.folder, a.program)) + ":" + a.variables()["PATH"])
    env.pop("DISPLAY", None)
    return [durward.program(), "run", "-c", v.d.conf, "--login-inside"] + list(words), env


def slash_login(t):
    """Claude Code's /login, typed into its own screen."""
    if not shutil.which("tmux"):
        t.skip("claude logs in on its screen", "tmux is not installed")
        return
    v = Claude(t, "claude", "screen")
    v.model = models.anthropic(v.run.task)
    api = v.double("api.anthropic.com", v.on_api)
    v.double("platform.claude.com", v.on_platform)
    argv, env = begun(t, v, "-e", "CLAUDE_CODE_FULL_SIGN_IN_LINK=1", "claude")
    s = Screen(t, argv, v.d.work, env, cols=1000)

    def stands():
        return not s.choose("Yes, I trust this folder") and ("? for shortcuts" in s.words() or "Not logged in" in s.words())
    if not t.ok(s.wait(stands, 90), "claude: its screen stands, without a login", s.shown()):
        return
    s.type("/login")
    s.wait(lambda: "/login" in s.shown(), 10)
    s.key("Enter")
    t.ok(s.wait(lambda: "Select login method" in s.words(), 30), "claude: /login asks how", s.shown())
    s.key("Enter")
    link = lambda: re.search(r"https://\S+/oauth/authorize\?\S+", s.shown())  # noqa: E731
    if not t.ok(s.wait(lambda: link() and "Paste code here" in s.words(), 30), "claude: shows an address, and waits for the code", s.shown()):
        return
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(link()[0]).query))
    code = scan.canary("code-").decode()
    v.codes[code] = asked["code_challenge"]
    s.type("%s#%s" % (code, asked["state"]))
    time.sleep(0.3)  # as a person does between a paste and the key: it is taken for a part of it else
    s.key("Enter")
    t.ok(s.wait(lambda: "Login successful" in s.words(), 60) and len(v.issued) == 1 and not v.wrong, "claude: the code that is pasted there "
         "logs it in", s.shown(), v.wrong, v.d.kinds("denied"))
    s.key("Enter")
    left = lambda: s.status() is not None  # noqa: E731
    for _ in range(3):
        s.key("C-c")
        if s.wait(left, 3):
            break
    v.said.append(s.shown())
    s.close()
    r = v.shell("cat ~/.claude/.credentials.json")
    t.ok('"accessToken":"dwd_' in r.stdout.replace(" ", "") and '"refreshToken":"dwd_' in r.stdout.replace(" ", ""),
         "claude: its file holds placeholders", r.stdout)
    v.work(api)
    v.end("accessToken", "https://api.anthropic.com/v1/models/door", ["claude", "auth", "logout"])


def visit(port, target):
    """As the browser of this machine, where the program's port is published. -> where it is sent on, or None"""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("GET", target, headers={"Host": "127.0.0.1:1455"})
    r = c.getresponse()
    r.read()
    c.close()
    return r.getheader("Location")


def callback(t):
    """Codex's login by a browser, whose answer comes to a port of the program's."""
    v = Codex(t, "codex", "browser")
    v.model = models.chatgpt(v.run.task, ACCOUNT)
    api = v.double("chatgpt.com", v.on_api)
    v.double("auth.openai.com", v.on_auth)
    port = nginx.free_port()
    argv, env = begun(t, v, "--publish", "127.0.0.1:%d:1455" % port, "codex", "login")
    tty = terminal.Terminal(t, argv, v.d.work, dict(env, TERM="xterm"), cols=2000)
    shown = tty.see("headless machine", 90)
    got = re.search(r"https://\S+/oauth/authorize\?[^\s\x1b\x07]+", getattr(tty, "last", b"").decode("utf-8", "replace"))
    if not t.ok(shown and got, "codex: it shows where to log in, and listens", tty.out[-3000:]):
        return
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(got[0]).query))
    code = scan.canary("code-").decode()
    v.codes[code] = asked["code_challenge"]
    back = urllib.parse.urlsplit(asked["redirect_uri"])
    t.eq((back.hostname, back.port, asked["client_id"]), ("127.0.0.1", 1455, CLIENT["codex"]), "codex: the answer is for its port")
    to = visit(port, "%s?%s" % (back.path, urllib.parse.urlencode({"code": code, "state": asked["state"]})))
    while to:
        at = urllib.parse.urlsplit(to)
        t.ok(at.netloc in ("", "127.0.0.1:1455"), "codex: the browser is sent on within it", to)
        to = visit(port, at.path + ("?" + at.query if at.query else ""))
    t.ok(tty.wait(60) == 0 and len(v.issued) == 1 and not v.wrong, "codex: a browser's answer logs it in", tty.out[-2000:], v.wrong,
         v.d.kinds("denied"))
    t.ok([x.get("grant_type") for x in v.asked] == ["authorization_code"], "codex: no API key is made by it", v.asked)
    r = v.shell("cat ~/.codex/auth.json")
    tokens = json.loads(r.stdout)["tokens"]
    t.ok(all(x.rpartition(".")[2].startswith("dwd_") for x in (tokens["access_token"], tokens["id_token"], tokens["refresh_token"])),
         "codex: its file holds placeholders", tokens)
    v.work(api)
    v.end("access_token", "https://chatgpt.com/backend-api/wham/door", ["codex", "logout"])


def main(t):
    if not shutil.which("curl"):
        raise tap.Skip("curl is not installed")
    parts = {"claude": claude, "codex": codex, "claude-screen": slash_login, "codex-browser": callback}
    for name in os.environ.get("AGENTS", "claude codex codex-browser").split():
        why = next(a for a in agents.AGENTS if a.name == name.partition("-")[0]).missing()
        if why:
            t.skip("%s logs in by itself" % name, why)
        else:
            t.part(parts[name], t)


tap.run(main, timeout=400)
