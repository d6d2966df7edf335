#!/usr/bin/python3 -B
"""What the host's machine is, as a source of secrets: an instance's role, account or identity, a container's credentials,
projected tokens that are exchanged. No long-lived key is in any store. The metadata services are doubles on loopback that
refuse what the clouds' own refuse; signatures are checked by botocore."""
import json
import os
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scan, scene, sigv4, tap  # noqa: E402

S3, STS, AUTH, API = "s3.us-east-1.amazonaws.com", "sts.us-east-1.amazonaws.com", "auth.example.com", "api.example.com"
NEAR = "127.0.0.1/32"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def end():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))


class Machine:
    """The metadata services of all three clouds, in clear."""

    def __init__(self, w):
        self.w, self.session, self.asked, self.wrong = w, "", [], []
        self.o = origin.Origin(w.t, w.s.d.ca, "metadata", self, tls=False)

    def keys(self, name):
        w = self.w
        return {"Code": "Success", "AccessKeyId": w.ids[name], "SecretAccessKey": w.values[name],
                "Token": w.values[name + "-st"], "Expiration": end()}

    def __call__(self, req, conn):
        self.asked.append("%s %s" % (req.method, req.target))
        query = urllib.parse.parse_qs(req.query)
        if req.path == "/latest/api/token":
            good = req.method == "PUT" and 0 < int(req.get("x-aws-ec2-metadata-token-ttl-seconds", "0")) <= 21600
            self.session = self.w.made("session")
            answer = self.session
        elif req.path == "/latest/meta-data/iam/security-credentials/builder":
            good, answer = req.get("x-aws-ec2-metadata-token") == self.session != "", self.keys("instance")
        elif req.path == "/v2/credentials/4711":
            good, answer = req.method == "GET", self.keys("container")
        elif req.path == "/v1/credentials":
            good, answer = req.get("authorization") == self.w.values["pod"], self.keys("pod-keys")
        elif req.path == "/computeMetadata/v1/instance/service-accounts/default/token":
            good = req.get("metadata-flavor") == "Google"
            answer = {"access_token": self.w.values["gcp"], "expires_in": 3599, "token_type": "Bearer"}
        else:
            good = req.get("metadata") == "true" and req.path == "/metadata/identity/oauth2/token" and \
                query == {"api-version": ["2018-02-01"], "resource": ["https://vault.azure.net"], "client_id": ["me"]}
            answer = {"access_token": self.w.values["azure"], "expires_in": "3599", "token_type": "Bearer"}
        if not good:
            self.wrong.append(self.asked[-1])
        conn.reply(req, 200 if good else 401, answer if good else {"error": "no"})


class World:
    def __init__(self, t):
        self.t, self.s, self.values, self.out = t, scene.Scene(t), {}, []
        d = self.s.d
        self.ids = {x: "ASIA" + scan.canary("").decode().upper()[:16] for x in ("instance", "container", "pod-keys", "web")}
        for name in self.ids:
            self.made(name)
            self.made(name + "-st")
        for name in ("pod", "gcp", "azure", "jwt", "exchanged", "entra"):
            self.made(name)
        d.secret("pod", self.values["pod"])
        d.secret("jwt", self.values["jwt"])
        d.secret("path", "/v2/credentials/4711")
        self.machine = Machine(self)
        at = "http://127.0.0.1:%d" % self.machine.o.port
        d.secrets.update({
            "instance": {"aws_instance": {"role": "builder", "endpoint": at, "to": NEAR}},
            "container": {"aws_container": {"endpoint": at + "/", "path": "path", "to": NEAR}},
            "pod-keys": {"aws_container": {"endpoint": at + "/v1/credentials", "token": "pod", "to": NEAR}},
            "web": {"aws_web_identity": {"jwt": "jwt", "role_arn": "arn:aws:iam::1:role/r", "region": "us-east-1"}},
            "gcp": {"google_instance": {"endpoint": at + "/computeMetadata/v1/instance/service-accounts/default/token", "to": NEAR}},
            "azure": {"azure_instance": {"resource": "https://vault.azure.net", "client_id": "me",
                                         "endpoint": at + "/metadata/identity/oauth2/token", "to": NEAR}},
            "exchanged": {"token_exchange": {"token_url": "https://%s/token" % AUTH, "subject_token": "jwt", "scope": ["a", "b"],
                                             "audience": "//iam.example.com/pools/p"}},
            "entra": {"entra": {"tenant": "t", "client_id": "me", "assertion": "jwt", "scope": "https://x/.default",
                                "authority": "https://" + AUTH}}})
        self.bad, self.forms = [], []
        self.s.add(AUTH, self.on_token)
        self.s.add(STS, self.on_token)
        for name in ("gcp", "azure", "exchanged", "entra"):
            host = name + "." + API
            self.s.add(host, scene.needs(("Authorization", "Bearer " + self.values[name]), lambda req, conn: conn.reply(req, 200, {"ok": 1})))
            self.s.rule(allow=host, **{"with": {"bearer": name}})
        for name in self.ids:
            host = name + "." + S3
            self.s.add(host, self.on_s3(name, host))
            self.s.rule(allow=host, **{"with": {"aws": {"key": name, "region": "us-east-1", "service": "s3"}}})

    def made(self, name):
        """A value that nobody inside may see."""
        self.values[name] = value = scan.canary(name + "-").decode()
        self.s.scanner.add("%s %d" % (name, len(self.s.scanner.needles)), value.encode())
        return value

    def on_token(self, req, conn):
        form = dict(urllib.parse.parse_qsl(req.body.decode()))
        self.forms.append(form)
        if form.get("Action") == "AssumeRoleWithWebIdentity":
            good = form.get("WebIdentityToken") == self.values["jwt"] and not req.get("authorization")
            answer = {"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": {"Credentials": {
                "AccessKeyId": self.ids["web"], "SecretAccessKey": self.values["web"], "SessionToken": self.values["web-st"],
                "Expiration": time.time() + 900}}}}
        elif form.get("grant_type") == EXCHANGE:
            good, answer = form.get("subject_token") == self.values["jwt"], {"access_token": self.values["exchanged"], "expires_in": 900,
                                                                             "issued_token_type": "x", "token_type": "Bearer"}
        else:
            good = form.get("client_assertion") == self.values["jwt"] and "client_secret" not in form
            answer = {"access_token": self.values["entra"], "expires_in": 900, "token_type": "Bearer"}
        conn.reply(req, 200 if good else 400, answer if good else {"error": "invalid_grant"})

    def on_s3(self, name, host):
        def handler(req, conn):
            why = sigv4.wrong(req, host, self.ids[name], self.values[name], self.values[name + "-st"])
            self.bad += ["%s: %s" % (name, why)] if why else []
            conn.reply(req, 403 if why else 200, why or "signed")
        return handler

    def get(self, host):
        status, out, err = self.box.sh("curl -sS -m 20 -w ' %%{http_code}' https://%s/" % host)
        self.out += [out, err]
        return out


def sources(t, w):
    for name in w.ids:
        out = w.get(name + "." + S3)
        t.ok(out == "signed 200", "%s: its keys sign" % name, out, w.machine.asked[-3:], w.forms[-1:])
    for name in ("gcp", "azure", "exchanged", "entra"):
        out = w.get(name + "." + API)
        t.ok(out.endswith(" 200"), "%s: its token arrives" % name, out, w.machine.asked[-2:], w.forms[-1:])
    t.eq((w.bad, w.machine.wrong), ([], []), "each signature and each question was right")
    before = len(w.machine.asked)
    for name in ("instance", "container"):
        w.get(name + "." + S3)
    t.eq(len(w.machine.asked), before, "what is good is not asked for again")
    t.eq(len([x for x in w.machine.asked if x.startswith("PUT ")]), 1, "one session for the instance")
    exchange = [f for f in w.forms if f.get("grant_type") == EXCHANGE][0]
    t.eq((exchange["audience"], exchange["scope"], exchange["subject_token_type"]),
         ("//iam.example.com/pools/p", "a b", "urn:ietf:params:oauth:token-type:jwt"), "an exchange says what for")


def unreachable(t, w):
    """The sandbox has the machine's identity by its rules alone."""
    status, out, _ = w.box.sh("curl -sS -m 5 -o /dev/null -w '%{http_code}' -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "
                              "http://169.254.169.254/latest/api/token")
    t.eq(out, "403", "it cannot ask the metadata service")


def refused(t, w):
    """A path that is no path, and a machine that has no identity."""
    d = w.s.d
    d.secret("path", "/v2/../../latest/user-data")
    box = durward.Sandbox(d)
    asked = len(w.machine.asked)
    out = box.sh("curl -sS -m 20 -o /dev/null -w '%%{http_code}' https://container.%s/" % S3)[1]
    t.ok(out == "503" and len(w.machine.asked) == asked, "a container's path with dots is not asked for", out, w.machine.asked[asked:])
    t.ok(tap.wait_for(lambda: "is not the path of a URL" in json.dumps(d.kinds("lifecycle", event="store_failed")), 5, 0.1),
         "the log says so")
    box.close()
    r = d.command("secret", "test", "-c", d.conf)
    t.ok("instance" in r.stdout and "container" in r.stdout, "durward secret test asks", r.stdout, r.stderr)
    for what, secret in (("in clear elsewhere", {"token_exchange": {"token_url": "http://127.0.0.1/t", "subject_token": "jwt"}}),
                         ("entra with both", {"entra": {"tenant": "t", "client_id": "me", "assertion": "jwt", "client_secret": "pod",
                                                        "scope": "x"}}),
                         ("entra with neither", {"entra": {"tenant": "t", "client_id": "me", "scope": "x"}}),
                         ("a session by hand", {"aws_session": {"address": "http://127.0.0.1"}})):
        r = d.command("check", "-", stdin=json.dumps({"version": 1, "secrets": {"jwt": {"env": "A"}, "pod": {"env": "B"}, "x": secret},
                                                      "policies": {"p": {"rules": []}}}).encode())
        t.ok(r.returncode == 1, "%s is no secret" % what, r.stdout, r.stderr)


def main(t):
    w = World(t)
    w.box = durward.Sandbox(w.s.d)
    t.part(sources, t, w)
    t.part(unreachable, t, w)
    scan.scan_sandbox(t, w.box, w.s.scanner)
    w.out.append(w.box.close()[1])
    w.s.clean(w.out, "ambient")
    t.part(refused, t, w)


tap.run(main, timeout=200)
