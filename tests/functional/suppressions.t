#!/usr/bin/python3 -B
"""Suppressions: what was looked at is left out of notices until a date, and of nothing else. By the command and by the API;
who writes one does not accept it; they outlive the daemon, its logger and its controller; they are bounded, and end."""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, nginx, scene, tap  # noqa: E402

PATH = "/v1/suppressions"
EACH, TOTAL = 32, 64
WISH = {"policy": "coder", "code": "denied_by_rule", "host": scene.GITHUB, "path": "/gists/**",
        "reason": "the tool asks for gists and lives without", "expires_in": 3600}


class Hook:
    """What a webhook takes."""

    def __init__(self):
        self.got = []

    def __call__(self, request, conn):
        self.got.append(json.loads(request.body))
        conn.reply(request, 204)

    def of(self, sandbox="", then="notify"):
        return [x for x in self.got if x["sandbox"] == sandbox and x["limit"] == {"notify": 3, "kill": 5}[then]]


class Box:
    """What comes by the listener, counted by the log."""

    def __init__(self, s, address):
        self.s, self.gate = s, s.gate(address)

    def refused(self, n=1, path="/gists/1", method="GET"):
        before = len(self.s.d.kinds("denied"))
        for _ in range(n):
            self.gate.get(scene.GITHUB, path, method=method)
        self.s.d.settle()
        return len(self.s.d.kinds("denied")) - before


def command(s, *words):
    return s.d.command("suppressions", *words, "--socket", s.d.socket)


def written(t, s, a, hook, box):
    r = command(s, "ls")
    t.eq((r.returncode, r.stdout, r.stderr), (0, "", "durward: nothing is suppressed\n"), "at first there are none")
    t.eq(box.refused(4), 4, "what is refused is in the log")
    t.ok(tap.wait_for(lambda: len(hook.of()) == 1, 8, 0.1), "and told", str(hook.got))
    r = command(s, "add", "--code", WISH["code"], "--host", WISH["host"], "--path", WISH["path"], "--policy", "coder",
                "--reason", "caf\u00e9 \x1b[31m" + WISH["reason"], "--for", "1h")
    sid = r.stdout.strip()
    t.ok(r.returncode == 0 and sid.startswith("su-") and "hides nothing yet: durward suppressions accept " + sid in r.stderr,
         "one is written, and says that it hides nothing yet", r.stdout, r.stderr)
    v = a.ask("GET", PATH + "/" + sid)
    t.eq((v["state"], v["code"], v["host"], v["path"], v["severity"], v["expires"] - v["created"]),
         ("open", WISH["code"], WISH["host"], WISH["path"], "medium", 3600), "it is open, and ends")
    t.ok(v["reason"].endswith(WISH["reason"]) and "\x1b" not in v["reason"] and v["made_by"].startswith("uid "),
         "its reason is harmless, and who wrote it is known", str(v))
    for verb in (("ls",), ("show", sid[:8])):
        r = command(s, *verb)
        t.ok(sid in r.stdout and WISH["reason"] in r.stdout and "\x1b" not in r.stdout, "%s has it" % verb[0], r.stdout, r.stderr)
    one = s.d.wait_records(1, "lifecycle", event="suppression_made")[0]
    t.eq((one["policy"], one["authority"], one["path"], one["code"], one["detail"].split(" by ")[0]),
         ("coder", WISH["host"], WISH["path"], WISH["code"], sid), "the log has who wrote what") or t.diag(str(one))
    t.eq(a.ask("POST", PATH, WISH)["id"], sid, "the same once more is the same one")
    return sid


def wait_quiet(s):
    """The window in which the threshold said nothing is over: it may speak again."""
    time.sleep(s.within * 21 / 20 + 0.5)


def hidden(t, s, a, hook, box, sid):
    wait_quiet(s)
    n = len(hook.of())
    t.eq(box.refused(4), 4, "while it is open")
    t.ok(tap.wait_for(lambda: len(hook.of()) == n + 1, 8, 0.1), "such findings are told", str(hook.got))
    open_one = a.ask("POST", PATH, {"policy": "coder", "code": "no_rule", "host": scene.GITHUB, "reason": "not looked at", "expires_in": 3600})["id"]
    r = command(s, "accept", sid[3:9])
    t.eq((r.returncode, r.stdout), (0, sid + ": accepted\n"), "accepted by the daemon's owner") or t.diag(r.stderr)
    t.eq(a.ask("GET", PATH + "/" + sid)["state"], "active", "it is active")
    wait_quiet(s)
    t.eq(box.refused(8), 8, "the log has every finding that it is about")
    n = len(hook.of())
    t.eq(box.refused(2, "/zen"), 2, "and what else is refused")
    t.eq(len(hook.of()), n, "two others are below the threshold: none of those eight was counted")
    t.eq(box.refused(1, "/zen"), 1, "one more")
    t.ok(tap.wait_for(lambda: len(hook.of()) == n + 1, 8, 0.1), "reaches it: what is beside it is told, as one for that is only open", str(hook.got))
    a.ask("DELETE", PATH + "/" + open_one)
    t.eq([x["value"] for x in hook.of()[-1:]], [3], "with the number of those alone")
    r = s.d.command("audit", "query", "--json", "--decision", "deny", "--code", WISH["code"], "--host", WISH["host"], s.d.audit_dir)
    t.eq(len(r.stdout.splitlines()), 16, "audit query shows all of them") or t.diag(r.stderr)
    t.eq(s.d.command("audit", "verify", s.d.audit_dir).returncode, 0, "and the log is good")


def deaths(t, s, a, hook, box):
    """The logger and the controller forget nothing."""
    for role in ("logger", "controller"):
        pid = [p for p, r in s.d.roles() if r == role][0]
        os.kill(pid, signal.SIGKILL)
        tap.wait_for(lambda: [p for p, r in s.d.roles() if r == role and p != pid], 10, 0.1)
        def there():
            try:
                return a.ask("GET", PATH)["suppressions"]
            except (OSError, api.Refused):
                a.close()
                return None
        t.ok(tap.wait_for(there, 10, 0.2), "after the death of the %s it is there" % role)
        wait_quiet(s)
        n = len(hook.of())
        box.gate = s.gate(s.address)
        tap.wait_for(lambda: box.refused(1) == 1, 10, 0.2)
        box.refused(6)
        t.eq(len(hook.of()), n, "and in force")


def ends(t, s, a, c, hook):
    """What pauses or kills counts what is suppressed."""
    try:
        box = c.create(policy="coder")["id"]
    except api.Refused as e:
        t.skip("what becomes of a sandbox", "no sandbox can be made here: %s" % e)
        return
    code = "for i in 1 2 3 4 5 6; do curl -s -o /dev/null https://api.github.com/gists/$i; done; sleep 5"
    try:
        api.Api(s.d.socket, timeout=2).sh(box, code)
    except (OSError, api.Refused):
        pass
    t.ok(tap.wait_for(lambda: [x for x in s.d.records(kind="lifecycle", event="killed") if x["target"] == box], 10, 0.1),
         "a threshold that kills counts them all the same")
    t.ok(tap.wait_for(lambda: hook.of(box, "kill"), 8, 0.1), "and that is told")


def lifted(t, s, a, hook, box, sid):
    r = command(s, "lift", sid)
    t.eq((r.returncode, r.stdout), (0, sid + ": lifted\n"), "lift") or t.diag(r.stderr)
    one = s.d.wait_records(2, "lifecycle", event="suppression_lifted")[-1]
    t.ok(sid in one["detail"] and " by uid " in one["detail"], "is on record", str(one))
    wait_quiet(s)
    n = len(hook.of())
    box.refused(3)
    t.ok(tap.wait_for(lambda: len(hook.of()) == n + 1, 8, 0.1), "and they are told again", str(hook.got))
    r = command(s, "accept", sid)
    t.ok(r.returncode == 1 and "is over" in r.stderr, "what is over is not accepted again", r.stderr)
    t.eq(a.ask("DELETE", PATH + "/" + sid)["state"], "lifted", "lifted twice is lifted")


def expires(t, s, a, hook, box):
    v = a.ask("POST", PATH, dict(WISH, expires_in=2 * s.within + 5))
    a.ask("POST", PATH + "/%s/accept" % v["id"])
    wait_quiet(s)
    n = len(hook.of())
    box.refused(4)
    t.eq(len(hook.of()), n, "one for a few seconds hides")
    t.ok(tap.wait_for(lambda: a.ask("GET", PATH + "/" + v["id"])["state"] == "expired", 25, 0.2), "until it expires")
    box.refused(3)
    t.ok(tap.wait_for(lambda: len(hook.of()) == n + 1, 8, 0.1), "then they are told", str(hook.got))


def refused(t, s, a):
    def said(**more):
        body = {k: v for k, v in dict(WISH, **more).items() if v is not None}
        try:
            a.ask("POST", PATH, body)
        except api.Refused as e:
            return e.status, str(e)
        return 201, ""
    for what, more, word in (
            ("no reason", {"reason": None}, "needed"), ("an empty reason", {"reason": "   "}, "'reason'"),
            ("no end", {"expires_in": None}, "needed"), ("an end after 91 days", {"expires_in": 91 * 86400}, "expires_in"),
            ("no code", {"code": None}, "'code'"), ("a code that is none", {"code": "no rule"}, "'code'"),
            ("what was allowed", {"code": "ok"}, "'code'"), ("no host", {"host": None}, "'host'"),
            ("every host", {"host": "*"}, "'host'"), ("every host of a top-level domain", {"host": "*.com"}, "'host'"),
            ("a star within a host", {"host": "a*.example.com"}, "'host'"), ("a path without its slash", {"path": "gists"}, "'path'"),
            ("a star within a path", {"path": "/a*b"}, "'path'"), ("another policy", {"policy": "none"}, "no policy"),
            ("a sandbox that is none", {"sandbox": "A B"}, ""), ("a line's end in a host", {"host": "a\n.example"}, "'host'"),
            ("a critical code for more than 7 days", {"code": "foreign_credential", "expires_in": 8 * 86400}, "7 days"),
            ("another member", {"kind": "denied"}, "kind")):
        status, text = said(**more)
        t.ok(status == 400 and word in text, "%s: 400" % what, str(status), text)
    t.eq(said(code="foreign_credential", expires_in=7 * 86400)[0], 201, "a critical code for 7 days")
    r = command(s, "add", "--code", "no_rule", "--host", "x.example", "--reason", "r", "--for", "91d")
    t.eq(r.returncode, 2, "the command knows the longest time, too") or t.diag(r.stderr)


def tokens(t, s, a):
    """Who writes one by a token does not accept it by the same, and sees its policies only."""
    def token(name, *policies):
        v = a.ask("POST", "/v1/tokens", dict({"name": name, "scopes": ["approvals"]}, **({"policies": list(policies)} if policies else {})))
        return api.Remote(s.https, s.ca_file(), v["token"])
    one, two, other = token("one"), token("two"), token("other", "quiet")
    v = one.ask("POST", PATH, dict(WISH, path="/gists/token"))
    t.eq(one.said("POST", PATH + "/%s/accept" % v["id"]), (403, "own"), "who wrote it by a token does not accept it")
    t.eq(a.ask("GET", PATH + "/" + v["id"])["state"], "open", "and it stays open")
    t.eq(other.said("GET", PATH + "/" + v["id"]), (404, "not_found"), "a token for another policy does not see it")
    t.eq(other.ask("GET", PATH)["suppressions"], [], "nor in the list")
    t.eq([other.said(*x)[0] for x in (("POST", PATH + "/%s/accept" % v["id"]), ("DELETE", PATH + "/" + v["id"]))], [404, 404], "nor decides about it")
    t.eq(other.said("POST", PATH, dict(WISH, path="/x"))[0], 400, "nor writes one of that policy")
    t.eq(two.ask("POST", PATH + "/%s/accept" % v["id"])["state"], "active", "another token accepts it")
    t.ok(one.ask("DELETE", PATH + "/" + v["id"])["lifted_by"].startswith("token "), "anybody who sees it lifts it")
    return one


def bounded(t, s, a, token):
    for v in a.ask("GET", PATH)["suppressions"]:
        if v["state"] in ("open", "active"):
            a.ask("DELETE", PATH + "/" + v["id"])
    got = [token.said("POST", PATH, dict(WISH, path="/t/%d" % i))[0] for i in range(EACH + 4)]
    t.eq((got[:EACH], set(got[EACH:])), ([201] * EACH, {503}), "a token has %d" % EACH)
    mine = [a.ask("POST", PATH, dict(WISH, path="/p/%d" % i))["id"] for i in range(EACH // 2)]
    t.eq(len(mine), EACH // 2, "its neighbour has room")
    for v in a.ask("GET", PATH)["suppressions"]:
        if v["state"] in ("open", "active"):
            a.ask("POST", PATH + "/%s/accept" % v["id"])
    t.eq(len([v for v in a.ask("GET", PATH)["suppressions"] if v["state"] == "active"]), EACH + EACH // 2, "all of them are in force at once")
    for sid in mine[1:]:
        a.ask("DELETE", PATH + "/" + sid)
    for i in range(270):
        a.ask("DELETE", PATH + "/" + a.ask("POST", PATH, dict(WISH, path="/e/%d" % i))["id"])
    t.ok(len(a.ask("GET", PATH)["suppressions"]) <= EACH + 1 + 257, "of those that ended the newest 256 are kept")


def kept(t, s, box, hook):
    """They outlive the daemon."""
    before = api.Api(s.d.socket).ask("GET", PATH)
    t.eq(s.d.stop(), 0, "the daemon ends well")
    s.d.serve()
    t.eq(api.Api(s.d.socket).ask("GET", PATH), before, "the next daemon has the same")


def main(t):
    s = scene.Scene(t)
    hook = Hook()
    s.add("hooks.example.com", hook)
    s.within = 10
    s.d.audit["notify"] = {"webhook": {"url": "https://hooks.example.com/in"},
                           "when": [{"denied": 3, "within": "%ds" % s.within},
                                    {"denied": 5, "within": "10m", "then": "kill"}]}
    s.d.policy("quiet", s.rules)
    s.https = nginx.free_port()
    s.d.extra["controller"] = dict(s.d.config()["controller"], https="127.0.0.1:%d" % s.https)
    s.address = s.listener()
    s.d.serve()
    a = api.Api(s.d.socket, timeout=30)
    box = Box(s, s.address)
    sid = written(t, s, a, hook, box)
    hidden(t, s, a, hook, box, sid)
    t.part(ends, t, s, a, a, hook)
    deaths(t, s, a, hook, box)
    lifted(t, s, a, hook, box, sid)
    t.part(expires, t, s, a, hook, box)
    t.part(refused, t, s, a)
    token = tokens(t, s, a)
    t.part(bounded, t, s, a, token)
    a.close()
    kept(t, s, box, hook)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=240)
