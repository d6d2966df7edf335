#!/usr/bin/python3 -B
"""C24: new secrets in replies become placeholders of the sandbox: OAuth tokens of a device flow and of
refreshes (the server is Authlib, which rotates refresh tokens), tokens of a registry, headers of git-lfs
actions. The sandbox uses the placeholders, the server sees its own tokens; a reply that cannot be read
so does not come in."""
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, oauth, openbao, scan, scene, tap  # noqa: E402

AUTH, API = "auth.example.com", "api.example.com"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


def server(t, d, secret):
    s = oauth.Server(t, d, (AUTH, API), 600)
    s.start(clients=[{"id": "robot", "secret": secret, "auth": "client_secret_basic",
                      "grants": ["client_credentials"]},
                     {"id": "tool", "secret": "", "auth": "none", "grants": [DEVICE, "refresh_token"]}])
    return s


class Run:
    def __init__(self, t):
        self.t, self.s, self.out = t, scene.Scene(t), []
        d = self.s.d
        secret = scan.canary("client-")
        self.s.scanner.add("client", secret)
        d.secret("client", secret)
        self.server = server(t, d, secret.decode())
        for host in (AUTH, API):
            d.resolve[host] = "127.0.0.1:%d" % self.server.port
        for name in ("access", "refresh", "hub", "lfs", "odd", "install", "basic"):
            d.secrets[name] = {"captured": {}}
        basic = {"basic": {"user": "robot", "password": "client"}}
        self.rule("/token", {"placeholder": {"secret": "refresh", "in": {"body": "refresh_token"}}},
                  {"access_token": "access", "refresh_token": "refresh"})
        self.s.rule(allow=AUTH + "/device")
        self.s.rule(allow=API + "/api/**", **{"with": {"bearer": "access"}})
        self.rule("/oci/token", basic, {"token": "hub", "access_token": "hub"})
        self.s.rule(allow=AUTH + "/v2/**", **{"with": {"bearer": "hub"}})
        self.rule("/acme/repo.git/info/lfs/objects/batch", basic,
                  {"objects.*.actions.*.header.Authorization": "lfs"})
        self.s.rule(allow=AUTH + "/lfs/*",
                    **{"with": {"header": {"name": "Authorization", "secret": "lfs"}}})
        self.rule("/login/oauth/access_token", {"placeholder": {"secret": "refresh", "in": {"body": "refresh_token"}}},
                  {"access_token": "access", "refresh_token": "refresh"})
        self.rule("/app/installations/7/access_tokens", basic, {"token": "install"})
        self.s.rule(allow=AUTH + "/v2/installed/**", **{"with": {"bearer": "install"}})
        self.rule("/tenant-1/oauth2/v2.0/token", basic, {"access_token": "basic"})
        self.signed()
        self.rule("/odd/*", basic, {"access_token": "odd", "refresh_token": "odd"})
        self.s.env.update({"ACCESS": "{{placeholder access}}", "HUB": "{{placeholder hub}}",
                           "REFRESH": "{{placeholder refresh}}", "LFS": "{{placeholder lfs}}",
                           "ODD": "{{placeholder odd}}", "INSTALL": "{{placeholder install}}"})

    def signed(self):
        """Texts that itsdangerous and Flask sign, for rules that send them where those look."""
        from flask import Flask
        from flask.sessions import SecureCookieSessionInterface
        from itsdangerous import URLSafeTimedSerializer
        app = Flask("signs")
        app.secret_key = self.server.conf["signing"]
        made = {"session": SecureCookieSessionInterface().get_signing_serializer(app).dumps({"user": "robot"})}
        for name in ("key", "segment"):
            made[name] = URLSafeTimedSerializer(app.secret_key).dumps([name, scan.canary("").decode()])
        for name, text in made.items():
            self.s.scanner.add(name, text.encode())
            self.s.d.secret(name, text)
        self.s.rule(allow=AUTH + "/signed", **{"with": {"query": {"name": "key", "secret": "key"}}})
        self.s.rule(allow=AUTH + "/signed/*/x", **{"with": {"placeholder": {"secret": "segment", "in": "path"}}})
        self.s.rule(allow=AUTH + "/session", **{"with": {"cookie": {"name": "session", "secret": "session"}}})
        self.s.env["SEGMENT"] = "{{placeholder segment}}"

    def rule(self, path, how, fields):
        self.s.rule(allow=AUTH + path, capture=fields, **{"with": how})

    def start(self):
        self.box = durward.Sandbox(self.s.d)
        self.own = {k: self.box.sh("echo $" + k)[1].strip()
                    for k in ("ACCESS", "REFRESH", "HUB", "LFS", "ODD", "INSTALL")}

    def curl(self, url, *more, box=None):
        """-> (status, body, head)"""
        status, out, err = (box or self.box).sh("curl -sS -D /dev/stderr -w '\\n%%{http_code}' %s "
                                                "\"https://%s\"" % (" ".join(more), url))
        self.out += [out, err]
        body, _, code = out.rpartition("\n")
        return int(code or 0), body.strip(), err

    def post(self, url, **form):
        code, body, _ = self.curl(url, *["--data-urlencode %s=%s" % x for x in form.items()])
        try:
            return code, json.loads(body)
        except ValueError:
            return code, body


def device(t, r):
    code, got = r.post(AUTH + "/device", client_id="tool", scope="read")
    form = {"grant_type": DEVICE, "client_id": "tool", "device_code": got["device_code"]}
    t.eq(r.post(AUTH + "/token", **form), (400, {"error": "authorization_pending"}),
         "device flow: an error comes as it is")
    r.server.say("approved")
    code, got = r.post(AUTH + "/token", **form)
    t.eq((code, got.get("access_token"), got.get("refresh_token"), got.get("token_type")),
         (200, r.own["ACCESS"], r.own["REFRESH"], "Bearer"), "device flow: placeholders come in")
    t.eq(len(r.server.notes(issued=...)), 1, "for the tokens of one answer")
    code, body, _ = r.curl(API + "/api/x", "-H \"Authorization: Bearer $ACCESS\"")
    got = json.loads(body) if code == 200 else {}
    t.ok(got.get("client") == "tool" and "[REDACTED:access" in got.get("echo", ""),
         "the placeholder is the token at the origin, and does not come back", body)


def refreshed(t, r):
    for i in range(3):
        code, got = r.post(AUTH + "/token", grant_type="refresh_token", client_id="tool",
                           refresh_token="$REFRESH")
        t.eq((code, got["access_token"], got["refresh_token"]),
             (200, r.own["ACCESS"], r.own["REFRESH"]), "refresh %d" % (i + 1))
    t.eq(len(r.server.notes(revoked=True)), 3, "each with the token of the answer before")
    t.eq(r.curl(API + "/api/x", "-H \"Authorization: Bearer $ACCESS\"")[0], 200,
         "and the newest token serves")
    code, got = r.post(AUTH + "/token", grant_type="refresh_token", client_id="tool",
                       refresh_token="made-up")
    t.eq((code, got.get("error")), (400, "invalid_grant"), "another refresh token is the client's own")


def in_forms(t, r):
    """A refresh whose answer is a form, as GitHub's are."""
    code, body, head = r.curl(AUTH + "/login/oauth/access_token", "--data-urlencode grant_type=refresh_token",
                              "--data-urlencode client_id=tool", "--data-urlencode refresh_token=$REFRESH")
    got = dict(urllib.parse.parse_qsl(body))
    t.ok(code == 200 and "x-www-form-urlencoded" in head, "a reply in a form", head, body)
    t.eq((got.get("access_token"), got.get("refresh_token"), got.get("token_type")),
         (r.own["ACCESS"], r.own["REFRESH"], "Bearer"), "is captured, too")
    t.eq(r.curl(API + "/api/x", "-H \"Authorization: Bearer $ACCESS\"")[0], 200, "and what it held serves")


def installation(t, r):
    code, body, _ = r.curl(AUTH + "/app/installations/7/access_tokens", "-X POST")
    t.eq((code, json.loads(body).get("token")), (201, r.own["INSTALL"]), "an installation's token")
    code, body, _ = r.curl(AUTH + "/v2/installed/x", "-H \"Authorization: Bearer $INSTALL\"")
    t.eq((code, json.loads(body)["client"]), (200, "installation"), "and is used")


def kinds(t, r):
    """Places for a credential, each read and checked by a library that others wrote."""
    code, got = r.post(AUTH + "/tenant-1/oauth2/v2.0/token", grant_type="client_credentials")
    t.ok(code == 200 and "access_token" in got, "basic: Authlib knows the client", str(got))
    for path, want, what in (("/signed", "key", "a query parameter, signed by itsdangerous"),
                             ("/signed/$SEGMENT/x", "segment", "a segment of the path"),
                             ("/session", "robot", "a cookie: Flask's session")):
        code, body, _ = r.curl(AUTH + path)
        t.ok(code == 200 and want in body, what, str(code), body)


def unasked(t, r):
    """A captured secret goes where its placeholder stands, and else nothing does."""
    t.eq(r.curl(API + "/api/x")[0], 401, "without the placeholder the request goes without")
    t.eq(r.curl(API + "/api/x", "-H 'Authorization: Bearer mine'")[0], 403, "not with another's")
    t.eq(r.curl(API + "/api/x", "-H 'X-Api-Key: mine'")[0], 403, "nor in another place")
    t.eq(r.curl("deps.example.com/?x=$ACCESS")[0], 403, "nor does it go to another host")


def registry(t, r):
    code, _, head = r.curl(AUTH + "/v2/acme/app/manifests/1")
    t.ok(code == 401 and "oci/token" in head, "registry: the challenge comes", head)
    code, body, _ = r.curl(AUTH + "/v2/acme/app/manifests/1", "-H \"Authorization: Bearer $HUB\"")
    t.ok(code == 503 and "secret_unavailable" in body, "no token yet: 503", body)
    code, body, head = r.curl(AUTH + "/oci/token?scope=pull")
    t.eq(json.loads(body), {"token": r.own["HUB"], "access_token": r.own["HUB"], "expires_in": 300},
         "registry: one token in two fields")
    t.ok("content-length: %d" % len(body) in head.lower(), "with the length of what came", head)
    code, body, _ = r.curl(AUTH + "/v2/acme/app/manifests/1", "-H \"Authorization: Bearer $HUB\"")
    t.eq((code, json.loads(body)["client"]), (200, "registry pull"), "and is used")


def lfs(t, r):
    objects = {"operation": "download", "objects": [{"oid": str(i), "size": i} for i in range(5)]}
    code, body, head = r.curl(AUTH + "/acme/repo.git/info/lfs/objects/batch",
                              "-H 'Content-Type: application/vnd.git-lfs+json'",
                              "-d '%s'" % json.dumps(objects))
    found = [x["actions"]["download"]["header"]["Authorization"] for x in json.loads(body)["objects"]]
    t.eq((code, found), (200, [r.own["LFS"]] * 5), "git-lfs: each action's header")
    t.ok("x-other: plain" in head.lower() and "x-token" not in head.lower(),
         "a field of the head that repeats it is dropped, others are not", head)
    t.eq(r.curl(AUTH + "/lfs/1", "-H \"Authorization: $LFS\"")[:2], (200, "object"), "and is used")


def odd(t, r):
    codes = {what: r.curl(AUTH + "/odd/" + what) for what in (
        "text", "two", "broken", "number", "twice", "large", "bytes")}
    for what, (code, body, _) in codes.items():
        word = "capture_too_large" if what == "large" else "capture_unreadable"
        t.ok(code == 502 and word in body, "a reply with %s: 502 %s" % (what, word), str(code), body)
    t.eq(r.curl(AUTH + "/odd/none")[:2], (200, '{"a":[1,2]}'), "nothing to capture: as it is")
    t.eq(r.curl(AUTH + "/odd/error")[:2], (400, "{}"), "an error: as it is")
    code, body, _ = r.curl(AUTH + "/odd/list")
    t.ok(code == 502 and "odd-" not in body and "capture_unreadable" in body,
         "a field of the captured name, but not at its path: 502", str(code), body)
    got = json.loads(r.curl(AUTH + "/odd/deep")[1])
    t.eq(got, {"a": {"b": ["say " + r.own["ODD"]]}, "access_token": r.own["ODD"]},
         "a captured value is replaced wherever it stands")


def apart(t, r):
    """Another sandbox of the same policy has none of it; nor has one after it ended."""
    other = durward.Sandbox(r.s.d)
    code, body, _ = r.curl(API + "/api/x", "-H \"Authorization: Bearer $ACCESS\"", box=other)
    t.ok(code == 503 and "secret_unavailable" in body, "another sandbox's placeholder: nothing yet",
         str(code), body)
    code, body, _ = r.curl(API + "/api/x", "-H \"Authorization: Bearer %s\"" % r.own["ACCESS"],
                           box=other)
    t.ok(code == 403 and "cross_sandbox" in body, "and the first one's is a stranger's", body)
    r.out.append(other.close()[1])


def main(t):
    openbao.site()
    r = Run(t)
    r.start()
    device(t, r)
    refreshed(t, r)
    in_forms(t, r)
    installation(t, r)
    kinds(t, r)
    unasked(t, r)
    registry(t, r)
    lfs(t, r)
    odd(t, r)
    apart(t, r)
    for x in r.server.notes(issued=...):
        if x["to"] != "odd":
            r.s.scanner.add("issued", x["issued"].encode())
        if x.get("refresh"):
            r.s.scanner.add("refresh token", x["refresh"].encode())
    e = r.s.d.command("explain", "-c", r.s.d.conf, "POST", "https://%s/token" % AUTH).stdout
    t.ok("captures:   access_token of the reply, as access" in e and "uncaptured" not in e,
         "explain says what is captured", e)
    for method, url, want in (("POST", AUTH + "/device/code", None), ("POST", API + "/api/token", "an OAuth token"),
                              ("POST", API + "/api/device/code", "a device code"),
                              ("GET", API + "/api/x", None), ("POST", API + "/api/oauth/access_token", "an OAuth token"),
                              ("POST", API + "/api/x.git/info/lfs/objects/batch", "a header of git-lfs"),
                              ("POST", API + "/api/login", "a session's secret")):
        e = r.s.d.command("explain", "-c", r.s.d.conf, method, "https://" + url).stdout
        t.ok(("uncaptured: the reply may hold %s" % want in e) if want else "uncaptured" not in e,
             "C24 explain names what is not captured: %s %s" % (method, url), e)
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.clean(r.out, "captured")


tap.run(main, timeout=180)
