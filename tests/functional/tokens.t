#!/usr/bin/python3 -B
"""Secrets that the vault makes of others: OAuth 2 client credentials, refresh tokens, JWT bearer, Google
service accounts, GitHub App installations, Entra, AWS roles. The server is Authlib (it checks clients,
assertions and signatures, rotates refresh tokens and lets tokens expire); AWS signatures are checked
by botocore."""
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, oauth, scan, scene, sigv4, tap  # noqa: E402

AUTH, API, STS = "auth.example.com", "api.example.com", "sts.us-east-1.amazonaws.com"
S3 = "s3.us-east-1.amazonaws.com"
LIFE = 6
JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def openssl(*args):
    return subprocess.run(["openssl"] + list(args), check=True, capture_output=True).stdout.decode()


class Server(oauth.Server):
    def __init__(self, t, d, secrets):
        super().__init__(t, d, (AUTH, API), LIFE)
        self.rsa = openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
        self.ec = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
        both, word = ["client_credentials", "refresh_token", JWT], secrets["client"]
        self.start(refresh=secrets["refresh"], private=self.rsa, public=self.public(self.rsa),
                   ec_public=self.public(self.ec), google="https://%s/google" % AUTH, clients=[
                       {"id": "basic:client+1", "secret": word, "auth": "client_secret_basic", "grants": both},
                       {"id": "poster", "secret": word, "auth": "client_secret_post", "grants": both},
                       {"id": "refresher", "secret": word, "auth": "client_secret_basic", "grants": both},
                       {"id": "issuer", "secret": "", "auth": "none", "grants": both}])

    def public(self, pem):
        path = os.path.join(self.dir, "pem")
        with open(path, "w") as f:
            f.write(pem)
        return openssl("pkey", "-in", path, "-pubout")


class Run:
    def __init__(self, t):
        self.t, self.s, self.out = t, scene.Scene(t), []
        self.values = {k: scan.canary(k + "-").decode() for k in ("client", "refresh", "aws")}
        for k, v in self.values.items():
            self.s.scanner.add(k, v.encode())
            self.s.d.secret(k, v)
        d = self.s.d
        self.server = Server(t, d, self.values)
        for host in (AUTH, API):
            d.resolve[host] = "127.0.0.1:%d" % self.server.port
        account = {"type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com",
                   "private_key": self.server.rsa, "private_key_id": "key-1",
                   "token_uri": "https://elsewhere.example.com/"}
        d.secret("rsa", self.server.rsa)
        d.secret("ec", self.server.ec)
        d.secret("account", json.dumps(account, indent=2))
        d.secret("aws_id", "AKIDLONGLIVED")
        for name in ("rsa", "ec"):
            body = "".join(getattr(self.server, name).split("\n")[2:-3])
            self.s.scanner.add(name, body[:60].encode())
        token = {"token_url": "https://%s/token" % AUTH}
        jwt = dict(token, issuer="issuer", subject="user-1", scope=["read"])
        google = {"service_account": "account", "token_url": "https://%s/google" % AUTH}
        self.made = {
            "basic": {"oauth2": dict(token, client_id="basic:client+1", client_secret="client",
                                     scope=["read", "write"])},
            "post": {"oauth2": dict(token, client_id="poster", client_secret="client", auth="post")},
            "wrong": {"oauth2": dict(token, client_id="poster", client_secret="aws", auth="post")},
            "fresh": {"oauth2": dict(token, client_id="refresher", client_secret="client",
                                     refresh_token="refresh")},
            "rs": {"jwt": dict(jwt, key="rsa", key_id="k1")},
            "es": {"jwt": dict(jwt, key="ec", algorithm="ES256")},
            "access": {"google": dict(google, scope=["https://scope.example.com/a"])},
            "identity": {"google": dict(google, audience="https://run.example.com")},
            "app": {"github_app": {"app_id": "123", "installation_id": "99", "key": "rsa",
                                   "api": "https://" + AUTH}},
            "entra": {"entra": {"tenant": "tenant-1", "client_id": "poster",
                                "client_secret": "client", "scope": "https://x/.default",
                                "authority": "https://" + AUTH}},
            "pair": {"aws_key": {"access_key_id": "aws_id", "secret_access_key": "aws"}},
            "role": {"aws_role": {"key": "pair", "role_arn": "arn:aws:iam::1:role/r",
                                  "region": "us-east-1", "external_id": "x=y"}}}
        d.secrets.update(self.made)
        for name in self.made:
            if name not in ("pair", "role"):
                self.s.rule(allow="%s/api/%s" % (API, name), **{"with": {"bearer": name}})
        self.aws()
        self.s.env["ROLE"] = "{{placeholder role}}"

    def aws(self):
        """STS and S3: the role's keys are issued by one and checked by the other."""
        self.roles, self.bad = [], []

        def sts(req, conn):
            why = sigv4.wrong(req, STS, "AKIDLONGLIVED", self.values["aws"])
            form = dict(urllib.parse.parse_qsl(req.body.decode()))
            if form.get("Action") != "AssumeRole" or form.get("ExternalId") != "x=y":
                why = why or str(form)
            self.bad += [why] if why else []
            pair = {"AccessKeyId": "ASIA%d" % len(self.roles),
                    "SecretAccessKey": scan.canary("role-").decode(),
                    "SessionToken": scan.canary("st-").decode() * 3,
                    "Expiration": time.time() + 900}
            if why:
                conn.reply(req, 403, {"Error": {"Code": "SignatureDoesNotMatch"}})
                return
            self.roles.append(pair)
            for k in ("SecretAccessKey", "SessionToken"):
                self.s.scanner.add(k + str(len(self.roles)), pair[k].encode())
            conn.reply(req, 200, {"AssumeRoleResponse": {"AssumeRoleResult": {"Credentials": pair}}})

        def s3(req, conn):
            p = self.roles[-1]
            why = sigv4.wrong(req, S3, p["AccessKeyId"], p["SecretAccessKey"], p["SessionToken"])
            self.bad += [why] if why else []
            conn.reply(req, 403 if why else 200, "echo " + (req.get("x-amz-security-token") or ""),
                       kind="text/plain")
        self.sts, self.s3 = self.s.add(STS, sts), self.s.add(S3, s3)
        self.s.rule(allow=S3, **{"with": {"aws": {"key": "role", "region": "us-east-1",
                                                  "service": "s3"}}})

    def get(self, name, more=""):
        status, out, err = self.box.sh("curl -sS -w '\\n%%{http_code}' %s https://%s/api/%s" % (
            more, API, name))
        self.out += [out, err]
        body, _, code = out.rpartition("\n")
        return int(code or 0), body

    def start(self):
        self.box = durward.Sandbox(self.s.d)


def kinds(t, r):
    want = {"basic": "basic:client+1", "post": "poster", "fresh": "refresher", "rs": "issuer",
            "es": "issuer", "access": "google https://scope.example.com/a", "identity": "google id",
            "app": "installation", "entra": "poster"}
    for name, client in want.items():
        code, body = r.get(name)
        got = json.loads(body) if code == 200 else {}
        t.ok(code == 200 and got.get("client") == client, "a token of " + name, str(code), body)
        t.ok("[REDACTED:%s" % name in got.get("echo", ""), "and it does not come back: " + name,
             got.get("echo", "")[:12])
    t.eq(r.server.notes(issued=..., to="basic:client+1")[-1]["scope"], "read write", "its scope")
    code, body = r.get("wrong")
    t.ok(code == 503 and "secret_unavailable" in body, "a wrong client secret: 503", str(code), body)
    detail = [x.get("detail", "") for x in
              r.s.d.wait_records(1, "denied", code="secret_unavailable")]
    t.ok(any("401 invalid_client" in x for x in detail), "the log says why", *detail)
    status, out, err = r.box.sh("curl -sS https://%s/bucket/key" % S3)
    r.out += [out, err]
    t.ok(out.startswith("echo [REDACTED:role]") and len(r.roles) == 1 and not r.bad,
         "a role's keys sign, its token does not come back", out[:40], *r.bad)


def together(t, r):
    """One refresh in flight, whoever asks."""
    time.sleep(LIFE)        # tokens of the first round are over: this is what is tested
    before = len(r.server.notes(issued=..., to="poster"))
    status, out, err = r.box.sh(
        "for i in $(seq 20); do curl -sS -o /dev/null -w '%%{http_code} ' https://%s/api/post & done; "
        "wait" % API)
    t.eq(out.split(), ["200"] * 20, "20 requests at once")
    t.ok(len(r.server.notes(issued=..., to="poster")) - before <= 2, "took one new token")


def renewal(t, r):
    before, codes = len(r.server.notes(issued=..., to="basic:client+1")), []
    until = time.time() + 2.5 * LIFE
    while time.time() < until:
        codes.append(r.get("basic")[0])
        time.sleep(0.1)
    made = len(r.server.notes(issued=..., to="basic:client+1")) - before
    t.ok(set(codes) == {200}, "over two lifetimes of its token each request is served",
         str(sorted(set(codes))))
    t.ok(2 <= made <= 6, "with a token for each lifetime", str(made))


def outage(t, r):
    r.get("post")
    r.server.say("down")
    time.sleep(LIFE + 1)
    asked = len(r.server.notes(asked="/token"))
    codes = [r.get("post")[0] for _ in range(20)]
    t.eq(set(codes), {503}, "an endpoint that fails: 503")
    t.ok(len(r.server.notes(asked="/token")) - asked <= 6, "and it is not hammered",
         str(len(r.server.notes(asked="/token")) - asked))
    t.eq(r.get("app")[0], 200, "other secrets are not affected")
    r.server.say("")
    t.ok(tap.wait_for(lambda: r.get("post")[0] == 200, 20, 0.5), "and it comes back by itself")


def rotated(t, r):
    """A refresh token is used once: the next one lies in a file before the token is used."""
    revoked = len(r.server.notes(revoked=True))
    t.ok(revoked >= 1, "the server took the first refresh token away")
    folder = os.path.join(r.s.d.dir, "state", "tokens")
    kept = os.path.join(folder, "fresh")
    mode = [oct(os.stat(x).st_mode & 0o777) for x in (folder, kept)]
    t.eq(mode, ["0o700", "0o600"], "the rotated one is kept, for us alone")
    time.sleep(LIFE)  # its token is over: the next request has the refresh token replaced
    r.server.say("slow")
    revoked = len(r.server.notes(revoked=True))
    r.box.sh("curl -sS https://%s/api/fresh >/dev/null 2>&1 &" % API)
    t.ok(tap.wait_for(lambda: len(r.server.notes(revoked=True)) > revoked, 10, 0.01),
         "the server has replaced it, and not said so yet")
    r.out.append(r.box.close()[1])
    r.server.say("")
    r.start()
    code, body = r.get("fresh")
    t.ok(code == 200, "whoever ends meanwhile keeps the new one, and goes on with it", str(code), body)
    vault = [p for p, role in r.s.d.roles() if role == "vault"]
    os.kill(vault[0], 9)
    t.ok(tap.wait_for(lambda: r.get("fresh")[0] == 200, 20, 0.5), "and after the vault's death")


def unusable(t, r):
    """An answer with a token that cannot be used has spent the refresh token all the same: the new one is kept."""
    for fields in ('{"expires_in": 0}', '{"token_type": "DPoP"}'):
        time.sleep(LIFE)
        r.server.say("with " + fields)
        revoked = len(r.server.notes(revoked=True))
        code = r.get("fresh")[0]
        t.ok(code == 503 and len(r.server.notes(revoked=True)) > revoked, "%s: 503, and the refresh token is spent" % fields, str(code))
        r.server.say("")
        t.ok(tap.wait_for(lambda: r.get("fresh")[0] == 200, 20, 0.5), "and the next one is asked with")
    for kind in ("bot", "BEARER"):
        time.sleep(LIFE)
        r.server.say('with {"token_type": "%s"}' % kind)
        code, body = r.get("fresh")
        t.eq(code, 200, "a token that is called %s is one" % kind) or t.diag(body)
    r.server.say("")


def silent(t, r):
    """A server that does not answer holds up nobody's end for long."""
    time.sleep(LIFE)
    r.server.say("silent")
    asked = len(r.server.notes(grant="refresh_token"))
    r.box.sh("curl -sS https://%s/api/fresh >/dev/null 2>&1 &" % API)
    t.ok(tap.wait_for(lambda: len(r.server.notes(grant="refresh_token")) > asked, 10, 0.01), "a server is asked, and silent")
    began = time.monotonic()
    r.out.append(r.box.close()[1])
    took = time.monotonic() - began
    t.ok(2.5 < took < 10, "who ends meanwhile waits for it, for three seconds", "%.1f s" % took)


def main(t):
    sigv4.library()
    r = Run(t)
    r.start()
    kinds(t, r)
    together(t, r)
    renewal(t, r)
    outage(t, r)
    rotated(t, r)
    for x in r.server.notes(issued=...):
        r.s.scanner.add("issued", x["issued"].encode())
        if x.get("refresh"):
            r.s.scanner.add("refresh token", x["refresh"].encode())
    scan.scan_sandbox(t, r.box, r.s.scanner)
    unusable(t, r)
    silent(t, r)
    r.s.clean(r.out, "tokens")


tap.run(main, timeout=240)
