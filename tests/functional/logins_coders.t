#!/usr/bin/python3 -B
"""Coding agents of others log in by themselves inside, as they are: Claude Code by a code that is pasted on its terminal, Codex
by a device's code. What their vendors' doubles answer stays on the host; the programs have placeholders, look into the claims of
those that are tokens, refresh them, and work with them in the next run of that home, until it is logged out."""
import base64
import hashlib
import json
import os
import re
import shutil
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import agents, durward, models, origin, scan, tap, terminal  # noqa: E402

AUTH = "https://api.openai.com/auth"
ACCOUNT = "acct-door"
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

    def __init__(self, t, name):
        agent = next(a for a in agents.AGENTS if a.name == name)
        self.run = agents.Run(t, agent, name + "-inside")
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

    def other(self, url):
        """Nobody inside can log in to another account by the rules of a login that is there."""
        t, name = self.t, self.agent.name
        field = {"claude": "refreshToken", "codex": "refresh_token"}[name]
        code = '"grant_type":"authorization_code","code":"theirs","client_id":"x"'
        bodies = ('{%s}' % code, '{%s,"refresh_token":"M"}' % code, '{"grant_type":"refresh_token","refresh_token":"theirs"}',
                  '{"grant_type":"refresh_token","refresh_token":"M","refresh_token":"theirs"}',
                  '{"grant_type":"refresh_token","Grant_Type":"authorization_code","code":"theirs","refresh_token":"M"}',
                  '{"refresh_token":"M"}')
        script = MARK % field + "post() { sed \"s/M/$T/\" | curl -sS -o /dev/null -w '%%{http_code} ' -H \"Content-Type: $1\" --data-binary @- '%s'$2; }\n" % url
        script += "".join("post application/json <<'END'\n%s\nEND\n" % x for x in bodies)
        script += "post application/json '?grant_type=authorization_code' <<'END'\n{\"grant_type\":\"refresh_token\",\"refresh_token\":\"M\"}\nEND\n"
        script += "post application/x-www-form-urlencoded <<'END'\ngrant_type=authorization_code&code=theirs\nEND\npost text/plain </dev/null\n"
        before = len(self.asked)
        r = self.shell(script)
        t.ok(r.stdout.split() == ["403"] * 9 and len(self.asked) == before,
             "%s: no code and no token of another account is exchanged there" % name, r.stdout, r.stderr, self.asked[before:])

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

    def on_api(self, req, conn):
        if req.get("authorization") not in ["Bearer " + x for x in self.issued]:
            conn.reply(req, 401, {"type": "error", "error": {"type": "authentication_error", "message": "who?"}})
        elif req.path == "/api/oauth/profile":
            conn.reply(req, 200, {"account": {"uuid": "u-1", "email": "me@door.example", "has_claude_max": True},
                                  "organization": {"uuid": "o-1", "organization_type": "claude_max", "rate_limit_tier": "t"}})
        elif req.path == "/api/oauth/claude_cli/roles":
            conn.reply(req, 200, {"organization_role": "admin", "workspace_role": None, "organization_name": "Door"})
        elif req.method == "GET" and req.path == "/v1/door":
            conn.reply(req, 200, {})
        else:
            self.model(req, conn)


def claude(t):
    v = Claude(t, "claude")
    v.model = models.anthropic(v.run.task)
    api = v.double("api.anthropic.com", v.on_api)
    v.double("platform.claude.com", v.on_token)
    v.d.policy("agent", [])
    v.d.save()
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
    v.work(api)
    v.end("accessToken", "https://api.anthropic.com/v1/door", ["claude", "auth", "logout"])


class Codex(Vendor):
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
        else:
            self.model(req, conn)


def codex(t):
    v = Codex(t, "codex")
    v.model = models.chatgpt(v.run.task, ACCOUNT)
    api = v.double("chatgpt.com", v.on_api)
    v.double("auth.openai.com", v.on_auth)
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
    v.work(api)
    v.end("access_token", "https://chatgpt.com/backend-api/wham/door", ["codex", "logout"])


def main(t):
    if not shutil.which("curl"):
        raise tap.Skip("curl is not installed")
    names = os.environ.get("AGENTS", "claude codex").split()
    there = 0
    for name in names:
        why = next(a for a in agents.AGENTS if a.name == name).missing()
        if why:
            t.skip("%s logs in by itself" % name, why)
            continue
        there += 1
        t.part({"claude": claude, "codex": codex}[name], t)


tap.run(main, timeout=400)
