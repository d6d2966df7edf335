#!/usr/bin/python3 -B
"""A login made inside (a device's code, RFC 8628; then a refresh) is captured: the sandbox keeps placeholders, the home on the
host the tokens, for its policy. The next run with that home is logged in, another home and another policy are not, and a
reply that cannot be read so is not stored."""
import json
import os
import stat
import sys
import threading
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scan, tap  # noqa: E402

AUTH, API = "auth.example.com", "api.example.com"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"

# A program of somebody else's: it logs in by a device's code, keeps what it got in its own file, and refreshes.
CLIENT = r"""
set -u
post() { curl -sS -m 20 -w '\n%{http_code}' "https://auth.example.com/$@"; }
login() { post token -d grant_type=urn:ietf:params:oauth:grant-type:device_code -d device_code=dc-1 -d client_id=tool; }
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" ~/.tool.json 2>/dev/null || echo none; }
refresh() { post token -d grant_type=refresh_token -d client_id=tool --data-urlencode "refresh_token=$(field refresh_token)"; }
call() { curl -sS -m 20 -o /dev/null -w 'call %{http_code}\n' -H "Authorization: Bearer $(field access_token)" https://api.example.com/me; }
"""


class Vendor:
    """Answers a login as `odd` says; a refresh token serves once."""

    def __init__(self, t, d, scanner):
        self.t, self.scanner, self.n, self.odd, self.lock = t, scanner, 0, "", threading.Lock()
        self.access = self.refresh = None
        self.issued, self.approved, self.wrong = [], False, []
        self.token, self.api = (self.double(d, h, f) for h, f in ((AUTH, self.on_token), (API, self.on_api)))

    def double(self, d, host, handler):
        o = origin.Origin(self.t, d.ca, host, handler)
        d.origin(host, o)
        return o

    def issue(self):
        self.n += 1
        made = []
        for what in ("at-", "rt-"):
            value = scan.canary(what)
            self.scanner.add("%s%d" % (what, self.n), value)
            made.append(value.decode())
        self.issued.append(tuple(made))
        return made

    def on_token(self, req, conn):
        from urllib.parse import parse_qs
        got = {k: v[0] for k, v in parse_qs(req.body.decode()).items()}
        with self.lock:
            if got.get("grant_type") == DEVICE and not self.approved:
                conn.reply(req, 400, {"error": "authorization_pending"})
                return
            if got.get("grant_type") == "refresh_token" and got.get("refresh_token") != self.refresh:
                self.wrong.append(got)
                conn.reply(req, 400, {"error": "invalid_grant"})
                return
            access, refresh = self.issue()
            whole = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}
            if not self.odd:
                self.access, self.refresh = access, refresh
            self.answer(req, conn, whole)

    def answer(self, req, conn, whole):
        text = json.dumps(whole)
        plain, kind = [], "text/html" if self.odd == "html" else "application/json"
        a = whole["access_token"]
        odd = {"gzip": (200, zlib.compress(text.encode(), wbits=31), plain + [("Content-Encoding", "gzip")]),
               "twice": (200, text[:-1] + ', "access_token": "%s"}' % a, plain),
               "array": (200, "[%s]" % text, plain),
               "nested": (200, json.dumps({"data": whole}), plain),
               "huge": (200, text[:-1] + ', "pad": "%s"}' % ("x" * 70000), plain),
               "cut": (200, text[:-1], plain),
               "html": (200, "<p>%s</p>" % a, plain),
               "number": (200, text.replace('"%s"' % a, "123456789"), plain),
               "key": (200, text[:-1] + ', "%s": 1}' % a, plain)}
        code, body, headers = odd.get(self.odd, (200, text, plain))
        conn.reply(req, code, body, headers=headers, kind=kind)

    def on_api(self, req, conn):
        good = self.access and req.get("authorization") == "Bearer " + self.access
        conn.reply(req, 200 if good else 401, {"ok": "called"} if good else {"error": "who?"})


def rules():
    return [{"allow": AUTH + "/token", "methods": ["POST"],
             "with": {"placeholder": {"secret": "refresh", "in": {"body": "refresh_token"}}},
             "capture": {"access_token": "access", "refresh_token": "refresh"}},
            {"allow": API, "with": {"bearer": "access"}}]


class World:
    def __init__(self, t):
        self.t, self.d, self.scanner, self.said = t, durward.Durward(t, "d"), scan.Scanner(), []
        self.v = Vendor(t, self.d, self.scanner)
        self.homes = os.path.join(self.d.dir, "state-homes")
        for name in ("access", "refresh"):
            self.d.secrets[name] = {"captured": {"keep": "home"}}
        for name in ("tool", "other"):
            self.d.policy(name, rules())
        self.d.save()

    def run(self, script, home="mine", policy="tool", *flags):
        argv = ["--home", home] if home else []
        r = self.d.command("run", "-c", self.d.conf, "--policy", policy, *argv, *flags, "--", "sh", "-c", CLIENT + script, timeout=60)
        self.said += [r.stdout, r.stderr]
        return r

    def home(self, verb, *argv):
        r = self.d.command("home", verb, "-c", self.d.conf, *argv)
        self.said += [r.stdout, r.stderr]
        return r

    def logins(self, home="mine"):
        return {x["home"]: x for x in json.loads(self.home("ls", "--json").stdout)["homes"]}[home]["logins"]

    def file(self, home="mine", policy="tool"):
        return os.path.join(self.homes, home, "logins", policy)


def made(t, w):
    r = w.run("login")
    t.ok('authorization_pending' in r.stdout and r.stdout.endswith("400") and w.logins() == [], "nobody has approved yet: as it comes, and nothing is kept",
         r.stdout, r.stderr)
    w.v.approved = True
    r = w.run("call; login | sed '$d' >~/.tool.json; cat ~/.tool.json; call")
    t.ok("dwd_" in r.stdout and r.stdout.endswith("call 200\n"), "a login made inside: placeholders in its file, and the token at the API", r.stdout, r.stderr)
    path = w.file()
    t.eq((stat.S_IMODE(os.stat(path).st_mode), stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), os.listdir(os.path.dirname(path))),
         (0o600, 0o700, ["tool"]), "the host has it beside the home, for its policy, and nobody else can read it")
    rows = w.logins()
    t.eq([(x["policy"], x["secrets"]) for x in rows], [("tool", "access, refresh")], "home ls names what is there")
    t.ok("access, refresh of tool" in w.home("ls").stdout, "in the table, too")
    got = w.d.kinds("lifecycle", event="login_captured")
    t.eq(sorted(x["credential"] for x in got), ["access", "refresh"], "on record by names")


def again(t, w):
    before = w.v.access
    r = w.run("call; cat ~/.tool.json")
    t.ok(r.stdout.startswith("call 200\n") and before == w.v.access, "the next run of the home is logged in", r.stdout, r.stderr)
    r = w.run("refresh | sed '$d' >~/x; mv ~/x ~/.tool.json; call; refresh >/dev/null; call")
    t.ok(r.stdout == "call 200\ncall 200\n" and not w.v.wrong and w.v.n == 3, "refreshes of the program's own: captured again", r.stdout, r.stderr, w.v.wrong)
    r = w.run("call; refresh >/dev/null; call")
    t.ok(r.stdout == "call 200\ncall 200\n" and not w.v.wrong, "and the run after that goes on with the last", r.stdout, r.stderr, w.v.wrong)


def apart(t, w):
    token = json.loads(open(os.path.join(w.homes, "mine", "home", ".tool.json")).read())["access_token"]
    take = "echo '{\"access_token\": \"%s\"}' >~/.tool.json; call" % token
    for home, policy, code, what in (("yours", "tool", "403", "another home"), ("", "tool", "403", "no home"), ("mine", "other", "503", "another policy")):
        r = w.run(take if home != "mine" else "call", home, policy)
        t.ok(r.stdout == "call %s\n" % code, "%s is not logged in by it" % what, r.stdout, r.stderr)
    count, before = w.v.n, open(w.file(), "rb").read()
    r = w.run("login >~/.tool.json; call", "yours")
    t.ok(r.stdout == "call 200\n" and w.v.n == count + 1 and open(w.file(), "rb").read() == before and os.path.exists(w.file("yours")),
         "another home logs in for itself, and the first one's file stays as it is", r.stdout, r.stderr)
    r = w.run("find / -xdev -name logins 2>/dev/null; ls ~/.. | grep -x logins; ls -a ~/../logins 2>&1 | grep -c 'No such'")
    t.eq(r.stdout, "1\n", "the file is nowhere inside")
    r = w.run("true", "mine", "tool", "--bind", os.path.dirname(w.file()))
    t.ok(r.returncode == 125 and "keeps the homes" in r.stderr, "nor can it be bound", r.stderr)
    w.run("login >/dev/null", "")
    t.ok(not os.path.exists(os.path.join(w.homes, "logins")) and sorted(os.listdir(w.homes)) == ["mine", "yours"], "without a home nothing is kept")


def refused(t, w):
    """What cannot be read so: 502, nothing of it inside, the home's file as it was."""
    before = open(w.file(), "rb").read()
    for odd in ("gzip", "twice", "array", "nested", "huge", "cut", "html", "number", "key"):
        w.v.odd = odd
        r = w.run("login")
        ok = r.stdout.endswith("502") and w.v.issued[-1][0] not in r.stdout and w.v.issued[-1][1] not in r.stdout
        t.ok(ok and open(w.file(), "rb").read() == before, "an answer that is %s is not passed on, and not kept" % odd, r.stdout[:500], r.stderr)
    w.v.odd = ""
    folder = os.path.dirname(w.file())
    os.rename(folder, folder + ".away")
    open(folder, "w").close()
    r = w.run("login")
    said = tap.wait_for(lambda: "could not be kept" in json.dumps(w.d.kinds("aborted")), 5, 0.05)
    t.ok(r.stdout.endswith("502") and said, "a file that cannot be written: the answer stays outside",
         r.stdout, r.stderr, *[json.dumps(x)[:400] for x in w.d.kinds("aborted")])
    os.unlink(folder)
    os.rename(folder + ".away", folder)


def ended(t, w):
    r = w.run("login >~/.tool.json; call")
    t.eq(r.stdout, "call 200\n", "logged in once more")
    t.eq((w.home("logout", "mine").returncode, w.logins(), os.path.exists(w.file())), (0, [], False), "home logout forgets it")
    r = w.run("call")
    t.eq(r.stdout, "call 503\n", "and the placeholder is worth nothing")
    w.run("login >~/.tool.json")
    t.eq((w.home("renew", "mine").returncode, w.logins()), (0, []), "so does home renew")
    r = w.run("call")
    t.eq(r.stdout, "call 403\n", "whose former placeholders are a stranger's")


def clean(t, w):
    """Run by run what is inside goes; what it left, said and recorded is searched. Last a sandbox that runs is."""
    s = w.scanner
    for text in w.said:
        s.search(text, "output")
    for folder in (w.d.work, w.d.audit_dir, *(os.path.join(w.homes, x, "home") for x in os.listdir(w.homes))):
        s.tree(folder)
    t.ok(not s.hits, "0 copies of a token in homes, output or log", *s.report())
    t.tally(canaries=len(s.hits), searched=s.bytes)


def main(t):
    w = World(t)
    for part in (made, again, apart, refused, ended, clean):
        part(t, w)


tap.run(main, timeout=180)
