#!/usr/bin/python3 -B
"""Identities of clouds: boto3, the aws command, google-auth and azure-identity find in a sandbox who they are, from the
metadata services that its gate answers, with nothing configured. What they find are placeholders; the origins check the
real signature and the real tokens. What the clouds' own services refuse is refused, and so is what no policy says."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scan, scene, sigv4, tap  # noqa: E402

STS, DYNAMO = "sts.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com"
STORE, RUN, VAULT = "storage.googleapis.com", "run.example.com", "box.vault.azure.net"
META, CONTAINER, GOOGLE = "http://169.254.169.254", "http://169.254.170.2", "http://metadata.google.internal"
ARN = "arn:aws:sts::123456789012:assumed-role/builder/me"
PROXY = "-x %s " % durward.GATE_PROXY
TOKEN = META + "/latest/api/token"
CREDENTIALS = META + "/latest/meta-data/iam/security-credentials"
GCP = "/computeMetadata/v1"
AZURE = META + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource="


class World:
    """Origins that answer the right credential only, and a policy whose sandboxes have an identity of each cloud."""

    def __init__(self, t, name="d", **identity):
        self.t, self.s, self.out = t, scene.Scene(t, name=name), []
        d = self.s.d
        self.id = "AKIA" + scan.canary("").decode().upper()[:16]
        self.values = {"key": scan.canary("aws-").decode(), "token": scan.canary("st-").decode() * 4}
        for k in ("gcp", "run", "vault"):
            self.values[k] = scan.canary(k + "-").decode()
        for k, v in self.values.items():
            self.s.scanner.add(k, v.encode())
            d.secret(k, v)
        d.secret("id", self.id)
        d.secrets["deploy"] = {"aws_key": {"access_key_id": "id", "secret_access_key": "key", "session_token": "token"}}
        self.bad = []
        self.origins = [self.s.add(STS, self.aws), self.s.add(DYNAMO, self.aws),
                        self.s.add(STORE, self.bearer("gcp", {"name": "box"})),
                        self.s.add(RUN, self.bearer("run", {"called": True})),
                        self.s.add(VAULT, self.bearer("vault", {"value": "stored"}))]
        for host in (STS, DYNAMO):
            self.s.rule(allow=host, **{"with": {"aws": "deploy"}})
        for host, secret in ((STORE, "gcp"), (RUN, "run"), (VAULT, "vault")):
            self.s.rule(allow=host, **{"with": {"bearer": secret}})
        self.policy = d.policies["coder"]
        self.policy["identity"] = {
            "aws": dict({"secret": "deploy", "role": "builder", "region": "eu-west-1", "account": "123456789012"},
                        **identity.get("aws", {})),
            "gcp": {"secret": "gcp", "project": "acme-build", "number": "42", "zone": "europe-west1-b",
                    "id_tokens": {"https://" + RUN: "run"}},
            "azure": dict({"tokens": {"https://vault.azure.net": "vault"}, "client_id": "me-1"}, **identity.get("azure", {}))}

    def aws(self, req, conn):
        host = req.sni
        why = sigv4.wrong(req, host, self.id, self.values["key"], self.values["token"])
        if why:
            self.bad.append("%s: %s" % (host, why))
            conn.reply(req, 403, "<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>", kind="text/xml")
        elif host == STS:
            conn.reply(req, 200, "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>"
                       "<Arn>%s</Arn><Account>123456789012</Account><UserId>me</UserId></GetCallerIdentityResult>"
                       "</GetCallerIdentityResponse>" % ARN, kind="text/xml")
        else:
            conn.reply(req, 200, {"Item": {"k": {"S": "kept"}}}, kind="application/x-amz-json-1.0")

    def bearer(self, secret, answer):
        def handler(req, conn):
            good = req.all("authorization") == ["Bearer " + self.values[secret]]
            if not good:
                self.bad.append("%s: %r" % (req.sni, req.all("authorization")))
            conn.reply(req, 200 if good else 401, answer if good else {"error": "who?"})
        return handler

    def start(self, **kw):
        self.box = durward.Sandbox(self.s.d, binds=durward.client_binds("sdks"), **kw)
        return self.box

    def sh(self, command, **kw):
        status, out, err = self.box.sh(command, **kw)
        self.out += [out, err]
        return out

    def curl(self, args, **kw):
        """-> (status, body)"""
        body, _, code = self.sh("curl -sS -m 10 -w '\\n%%{http_code}' %s" % args, **kw).rpartition("\n")
        return int(code or 0), body

    def token(self):
        return self.curl("-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 3600' " + TOKEN)[1]

    def clients(self, *steps, env=None):
        python = os.path.join(durward.clients_dir(), "sdks/bin/python")
        out = self.sh("%s %s/clouds.py %s" % (python, durward.INSIDE, " ".join("'%s'" % x for x in steps)), env=env, timeout=120)
        return json.loads(out.splitlines()[-1]) if out.strip() else {}

    def end(self, what):
        scan.scan_sandbox(self.t, self.box, self.s.scanner)
        self.out.append(self.box.close()[1])
        self.s.clean(self.out, what)
        self.t.eq(self.bad, [], what + ": each request at an origin had the real signature or token")


def placeholders(w):
    return json.loads(w.curl("-H 'Accept: application/json' http://durward.internal/placeholders")[1])["placeholders"]


def libraries(t, w):
    if not os.path.exists(os.path.join(durward.clients_dir(), "sdks/bin/aws")):
        t.skip("the clouds' own libraries", "they are not there: run tests/functional/clients/setup")
        return
    got = w.clients("aws", "dynamo")
    t.eq((got.get("aws"), got.get("dynamo")), (ARN, "kept"), "boto3 finds its identity") or t.diag(got)
    t.eq(got.get("method"), "iam-role", "at the instance's metadata service")
    t.ok(str(got.get("key")).startswith("dwd_"), "its key is a placeholder", got)
    out = w.sh("%s/sdks/bin/python %s/sdks/bin/aws sts get-caller-identity" % ((durward.clients_dir(),) * 2), timeout=90)
    t.ok(ARN in out, "so does the aws command", out, w.out[-1])
    got = w.clients("google", "id", "other id")
    t.eq((got.get("google"), got.get("project"), got.get("id")), ("box", "acme-build", True), "google-auth finds its project, its "
         "token, and an ID token for the audience that is ruled") or t.diag(got)
    t.eq(got.get("email"), "default@acme-build.iam.gserviceaccount.com", "and its account")
    t.ok("403" in str(got.get("other id")) or "Error" in str(got.get("other id")), "and none for another one", got)
    got = w.clients("azure", "managed")
    t.eq((got.get("azure"), got.get("managed")), ("stored", "stored"), "azure-identity finds its token") or t.diag(got)
    t.ok(str(got.get("scope ManagedIdentityCredential")).startswith("dwd_"), "a placeholder", got)


def by_hand(t, w):
    """What the services answer, line by line, and where they do not."""
    token = w.token()
    short = w.curl("-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 3' " + TOKEN)[1]
    head = "-H 'X-aws-ec2-metadata-token: %s' " % token
    t.eq(w.curl(head + CREDENTIALS), (200, "builder"), "the role is listed")
    t.eq(w.curl(head + CREDENTIALS + "/"), (200, "builder"), "with a slash, too")
    code, body = w.curl(head + CREDENTIALS + "/builder")
    got = json.loads(body)
    mine = {p["placeholder"] for p in placeholders(w)}
    t.ok(code == 200 and {got["AccessKeyId"], got["SecretAccessKey"], got["Token"]} <= mine and got["Code"] == "Success",
         "its credentials are the sandbox's own placeholder", body)
    t.ok(w.curl("-H 'X-aws-ec2-metadata-token: %s' %s" % (short, CREDENTIALS))[0] == 200 and tap.wait_for(lambda: w.curl("-H 'X-aws-ec2-metadata-token: %s' %s" % (short, CREDENTIALS))[0] == 401, 10),
         "a token whose time is over is none", w.out[-2:])
    t.eq(w.curl(head + META + "/latest/meta-data/placement/region"), (200, "eu-west-1"), "its region")
    code, body = w.curl(head + META + "/latest/dynamic/instance-identity/document")
    t.eq((code, json.loads(body)["region"]), (200, "eu-west-1"), "its document, not signed")
    flavor = "-H 'Metadata-Flavor: Google' "
    for place, want in (("/project/project-id", "acme-build"), ("/project/numeric-project-id", "42"),
                        ("/instance/zone", "projects/42/zones/europe-west1-b"),
                        ("/instance/service-accounts/default/email", "default@acme-build.iam.gserviceaccount.com")):
        t.eq(w.curl(flavor + GOOGLE + GCP + place), (200, want), "gcp: " + place)
    t.ok("Metadata-Flavor: Google" in w.sh("curl -sSi -m 10 %s %s/" % (flavor, META)).title().replace("flavor", "Flavor"),
         "gcp answers at the address, too", w.out[-2])
    code, body = w.curl("-H 'Metadata: true' '%shttps://vault.azure.net/'" % AZURE)
    t.ok(code == 200 and json.loads(body)["access_token"] in mine, "azure: a resource with or without its slash", body)
    _, out, _ = w.box.sh("env")
    t.ok("AWS_REGION=eu-west-1" in out and "AWS_CONTAINER" not in out and "IDENTITY_" not in out,
         "no variable leads elsewhere", out)


REFUSED = (
    ("a version 1 question", CREDENTIALS, 401, "metadata_token"),
    ("an empty token", "-H 'X-aws-ec2-metadata-token;' " + CREDENTIALS, 401, "metadata_token"),
    ("a token that was made up", "-H 'X-aws-ec2-metadata-token: QUJDREVGR0g' " + CREDENTIALS, 401, "metadata_token"),
    ("a token with one letter changed", "-H 'X-aws-ec2-metadata-token: {bent}' " + CREDENTIALS, 401, "metadata_token"),
    ("two tokens", "-H 'X-aws-ec2-metadata-token: {token}' -H 'X-aws-ec2-metadata-token: {token}' " + CREDENTIALS, 401,
     "metadata_token"),
    ("a token asked for by GET", "-H 'X-aws-ec2-metadata-token-ttl-seconds: 60' " + TOKEN, 404, "metadata_unknown"),
    ("a token without a time", "-X PUT " + TOKEN, 400, "metadata_field"),
    ("a token for no time", "-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 0' " + TOKEN, 400, "metadata_field"),
    ("a token for a week", "-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 604800' " + TOKEN, 400, "metadata_field"),
    ("a token for somebody else", "-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' -H 'X-Forwarded-For: 10.0.0.9' " + TOKEN,
     403, "metadata_forwarded"),
    ("a forwarded question", "-H 'X-aws-ec2-metadata-token: {token}' -H 'Forwarded: for=10.0.0.9' " + CREDENTIALS, 403,
     "metadata_forwarded"),
    ("another role", "-H 'X-aws-ec2-metadata-token: {token}' " + CREDENTIALS + "/admin", 404, "metadata_unknown"),
    ("user data", "-H 'X-aws-ec2-metadata-token: {token}' " + META + "/latest/user-data", 404, "metadata_unknown"),
    ("a signed document", "-H 'X-aws-ec2-metadata-token: {token}' " + META + "/latest/dynamic/instance-identity/pkcs7", 404,
     "metadata_unknown"),
    ("an old version", "-H 'X-aws-ec2-metadata-token: {token}' " + META + "/1.0/meta-data/iam/security-credentials", 404,
     "metadata_unknown"),
    ("a container's credentials without its token", CONTAINER + "/v1/credentials", 401, "metadata_token"),
    ("with another placeholder of its own", "-H 'Authorization: {other}' " + CONTAINER + "/v1/credentials", 401, "metadata_token"),
    ("another path of that address", "-H 'Authorization: {own}' " + CONTAINER + "/v2/metadata", 404, "metadata_unknown"),
    ("gcp without its field", GOOGLE + GCP + "/project/project-id", 403, "metadata_field"),
    ("gcp with another", "-H 'Metadata-Flavor: Amazon' " + GOOGLE + GCP + "/project/project-id", 403, "metadata_field"),
    ("gcp forwarded", "-H 'Metadata-Flavor: Google' -H 'X-Forwarded-For: 1.2.3.4' " + GOOGLE + GCP + "/instance/service-accounts/default/token",
     403, "metadata_forwarded"),
    ("an ID token for nobody", "-H 'Metadata-Flavor: Google' '" + GOOGLE + GCP +
     "/instance/service-accounts/default/identity?audience=https://evil.example.com'", 403, "metadata_audience"),
    ("an ID token for two", "-H 'Metadata-Flavor: Google' '" + GOOGLE + GCP +
     "/instance/service-accounts/default/identity?audience=https://run.example.com&audience=https://run.example.com'", 403,
     "metadata_audience"),
    ("another account", "-H 'Metadata-Flavor: Google' " + GOOGLE + GCP + "/instance/service-accounts/admin/token", 404, "metadata_unknown"),
    ("attributes of the instance", "-H 'Metadata-Flavor: Google' " + GOOGLE + GCP + "/instance/attributes/ssh-keys", 404,
     "metadata_unknown"),
    ("azure without its field", "'" + AZURE + "https://vault.azure.net'", 400, "metadata_field"),
    ("azure for another resource", "-H 'Metadata: true' '" + AZURE + "https://management.azure.com'", 400, "metadata_audience"),
    ("azure for another identity", "-H 'Metadata: true' '" + AZURE + "https://vault.azure.net&client_id=you'", 400, "metadata_audience"),
    ("azure forwarded", "-H 'Metadata: true' -H 'X-Forwarded-For: 1.2.3.4' '" + AZURE + "https://vault.azure.net'", 403,
     "metadata_forwarded"),
    ("azure's instance", "-H 'Metadata: true' '" + META + "/metadata/instance?api-version=2021-02-01'", 404, "metadata_unknown"),
    ("app service without its field", "'" + META + "/msi/token?resource=https://vault.azure.net'", 401, "metadata_token"),
    ("a body", "-H 'X-aws-ec2-metadata-token: {token}' -X GET -d x " + CREDENTIALS, 400, "metadata_field"),
    ("a write", "-X POST -H 'Metadata-Flavor: Google' " + GOOGLE + GCP + "/project/project-id", 404, "metadata_unknown"),
    ("dot segments", "--path-as-is -H 'X-aws-ec2-metadata-token: {token}' " + META + "/latest/x/../meta-data/iam/security-credentials",
     400, "path_ambiguous"),
    ("another host at its address", "-H 'Host: metadata.google.internal' -H 'Metadata-Flavor: Google' " + META + GCP + "/project/project-id",
     421, "authority_mismatch"),
    ("its address as a number", "-H 'Host: 2852039166' -H 'Metadata-Flavor: Google' " + META + GCP + "/project/project-id", None, None),
    ("its address as a number, sent to a proxy", PROXY + "--request-target http://2852039166/latest/meta-data/ http://169.254.169.254/", 400, None),
    ("in hexadecimal digits", PROXY + "--request-target http://0xa9fea9fe/latest/meta-data/ -H 'Host: 0xa9fea9fe' http://169.254.169.254/", 400, None),
    ("in octal ones", PROXY + "--request-target http://0251.0376.0251.0376/ -H 'Host: 0251.0376.0251.0376' http://169.254.169.254/", 400, None),
    ("mapped into IPv6", PROXY + "'http://[::ffff:169.254.169.254]/latest/meta-data/'", 400, None),
    ("in IPv6", PROXY + "'http://[fd00:ec2::254]/latest/meta-data/'", 403, "no_rule"),
    ("with a user's name before it", PROXY + "--request-target http://a@169.254.169.254/latest/meta-data/ http://169.254.169.254/", 400, None),
    ("by a proxy, without a token", PROXY + CREDENTIALS, 401, "metadata_token"),
    ("another port", META + ":8080/latest/meta-data/", 0, None),
    ("TLS", "-k https://169.254.169.254/latest/meta-data/", 0, None),
    ("its neighbour", "http://169.254.169.253/latest/meta-data/", 403, "no_rule"),
)


def refused(t, w, other):
    """Rows of an attacker; other: a placeholder of another sandbox."""
    token = w.token()
    own = {p["placeholder"]: p for p in placeholders(w)}
    key = json.loads(w.curl("-H 'X-aws-ec2-metadata-token: %s' %s/builder" % (token, CREDENTIALS))[1])["AccessKeyId"]
    fill = {"token": token, "bent": token[:-1] + ("A" if token[-1] != "A" else "Q"), "own": key,
            "other": next(x for x in own if x != key)}
    for what, args, want, code in REFUSED:
        for k, v in fill.items():
            args = args.replace("{%s}" % k, v)
        before = len(w.s.d.kinds("denied"))
        status, body = w.curl("-o /dev/null -D - " + args)
        if want is None:
            t.ok(status in (400, 403, 421, 0), "%s is refused" % what, status, body)
        else:
            t.eq(status, want, "%s: %s" % (what, want or "nothing answers")) or t.diag(body)
        t.ok(code is None or "durward-denied: %s " % code in body.lower(), "%s: %s" % (what, code), body)
        new = w.s.d.wait_records(before + 1, "denied")
        t.ok(len(new) > before, "%s: it is on record" % what, status)
    for name, url in (("Authorization", CONTAINER + "/v1/credentials"), ("X-IDENTITY-HEADER", META + "/msi/token?resource=https://vault.azure.net")):
        status, body = w.curl("-o /dev/null -D - -H '%s: %s' '%s'" % (name, other, url))
        t.ok(status == 403 and "durward-denied: cross_sandbox" in body.lower(), "another sandbox's placeholder in %s" % name, body)
    status, body = w.curl("-o /dev/null -D - -H 'Authorization: Bearer eyJhIjoxfQ.eyJhIjoxfQ.%s' https://%s/" % (other, RUN))
    t.ok(status == 403 and "cross_sandbox" in body.lower(), "an ID token with another sandbox's placeholder", body)
    status, body = w.curl("-o /dev/null -D - -H 'Authorization: Bearer eyJhIjoxfQ.eyJhIjoxfQ.c2lnbmF0dXJl' https://%s/" % RUN)
    t.ok(status == 403 and "foreign_credential" in body.lower(), "an ID token of somebody else", body)


def recorded(t, w):
    before = {k: len(w.s.d.kinds(k)) for k in ("admitted", "connection")}
    w.token()
    new = w.s.d.wait_records(before["admitted"] + 1, "admitted")[before["admitted"]:]
    t.eq([(r.get("rule"), r.get("authority"), r.get("path"), r.get("method")) for r in new],
         [("identity", "169.254.169.254", "/latest/api/token", "PUT")], "an answer is on record") or t.diag(new)
    t.eq(len(w.s.d.kinds("connection")), before["connection"], "and nobody was dialled for it")
    w.s.d.check_pairs(t, w.origins + [len([r for r in w.s.d.kinds("admitted") if r.get("rule") == "identity"])], "clouds")


def services(t):
    """A container's endpoint and App Service's, led to by variables."""
    w = World(t, "services", aws={"via": "container"}, azure={"via": "app-service"})
    w.start()
    env = dict(x.split("=", 1) for x in w.sh("env").splitlines() if "=" in x)
    t.eq((env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"), env.get("IDENTITY_ENDPOINT")),
         (CONTAINER + "/v1/credentials", META + "/msi/token"), "the variables lead there")
    code, body = w.curl("-H \"Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN\" $AWS_CONTAINER_CREDENTIALS_FULL_URI")
    t.ok(code == 200 and json.loads(body)["RoleArn"] == "arn:aws:iam::123456789012:role/builder", "a container's credentials", body)
    code, body = w.curl("-H \"X-IDENTITY-HEADER: $IDENTITY_HEADER\" \"$IDENTITY_ENDPOINT?resource=https://vault.azure.net&api-version=2019-08-01\"")
    t.ok(code == 200 and json.loads(body)["access_token"].startswith("dwd_"), "App Service's token", body)
    if os.path.exists(os.path.join(durward.clients_dir(), "sdks/bin/aws")):
        got = w.clients("aws", "managed")
        t.eq((got.get("aws"), got.get("managed"), got.get("method")), (ARN, "stored", "container-role"),
             "boto3 and azure-identity find them") or t.diag(got)
    w.end("services")


def without(t):
    """No identity: as before."""
    s = scene.Scene(t, name="without")
    box = durward.Sandbox(s.d)
    for url, want in ((META + "/latest/meta-data/", "403"), (CONTAINER + "/v1/credentials", "403"), (GOOGLE + "/", "000")):
        _, out, _ = box.sh("curl -s -m 10 -o /dev/null -w '%%{http_code}' %s" % url)
        t.eq(out, want, "%s without an identity" % url)
    box.close()


def denied(t):
    """A rule that denies goes before the identity."""
    w = World(t, "denied")
    w.s.rule(deny="http://169.254.169.254/latest/**")
    w.start()
    status, body = w.curl("-o /dev/null -D - -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' " + TOKEN)
    t.ok(status == 403 and "denied_by_rule" in body.lower(), "a rule that denies goes first", body)
    t.eq(w.curl("-H 'Metadata-Flavor: Google' %s%s/project/project-id" % (GOOGLE, GCP)), (200, "acme-build"), "for what it names")
    w.end("denied")


def older(t):
    """A sandbox that was made before its policy had an identity, and what goes with it, has no placeholder to tell."""
    w = World(t, "older")
    identity, rules = w.policy.pop("identity"), list(w.s.rules)
    w.s.rules[:] = [r for r in rules if r.get("allow") not in (STS, DYNAMO, STORE, RUN, VAULT)]
    w.s.d.serve()
    client = api.Api(w.s.d.socket)
    name = client.ask("POST", "/v1/sandboxes", {"policy": "coder"})["id"]
    w.policy["identity"], w.s.rules[:] = identity, rules
    w.s.d.save()
    t.eq(w.s.d.command("reload", "--socket", w.s.d.socket).returncode, 0, "an identity by a new configuration")
    for what, ask in (("Google", "-H 'Metadata-Flavor: Google' %s%s/instance/service-accounts/default/token" % (GOOGLE, GCP)),
                      ("Azure", "-H 'Metadata: true' '%shttps://vault.azure.net'" % AZURE)):
        got = client.ask("POST", "/v1/sandboxes/%s/exec" % name, {"command": "curl -sS -m 10 -D - " + ask, "timeout": 30})
        out = json.dumps(got)
        t.ok(" 404" in out and "metadata_placeholder" in out, "%s: an older sandbox is told so" % what, out[:600])
    t.eq(w.s.d.stop(), 0, "the daemon ends as it should")


def main(t):
    t.part(without, t)
    w = World(t)
    stranger = w.start()
    other = placeholders(w)[0]["placeholder"]
    w.start()
    t.part(by_hand, t, w)
    t.part(libraries, t, w)
    t.part(refused, t, w, other)
    t.part(recorded, t, w)
    stranger.close()
    w.end("clouds")
    t.part(services, t)
    t.part(denied, t)
    t.part(older, t)


tap.run(main, timeout=400)
