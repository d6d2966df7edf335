#!/usr/bin/python3 -B
"""Secrets in stores that others wrote: a real OpenBao (KV version 2 in a namespace; token, AppRole and Kubernetes
logins, the TokenReview API behind the last is a double; leases of seconds), moto's Secrets Manager and parameters.
stores_remote.t has what these cannot show."""
import base64
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, openbao, origin, scan, scene, tap  # noqa: E402

API, BAO = "api.example.com", "bao.example.com"
MANAGER, SSM = "secretsmanager.eu-west-1.amazonaws.com", "ssm.eu-west-1.amazonaws.com"
KUBE = ("team", "apps")
STORED = ("token", "role", "kube", "manager", "parameter")
TTL, MAX = 3, 9     # seconds: of an AppRole login, and what it can be prolonged to
READ = 'path "kv/data/apps/*" { capabilities = ["read"] }'


def jwt(name):
    """As a service account's: OpenBao reads it before it has it reviewed."""
    def part(v):
        return base64.urlsafe_b64encode(v if isinstance(v, bytes) else json.dumps(v).encode()).rstrip(b"=")
    claims = {"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:apps:" + name,
              "aud": ["openbao"], "exp": int(time.time()) + 3600,
              "iat": int(time.time()) - 5, "nbf": int(time.time()) - 5,
              "kubernetes.io": {"namespace": "apps", "serviceaccount": {"name": name, "uid": "u-1"}}}
    return b".".join((part({"alg": "RS256", "kid": "k"}), part(claims), part(os.urandom(256)))).decode()


class Run:
    def __init__(self, t):
        self.t, self.s, self.out, self.values = t, scene.Scene(t), [], {}
        self.s.rules[:] = []
        self.api = self.s.add(API, lambda req, conn: conn.reply(req, 200, "ok", kind="text/plain"))
        self.bao = openbao.OpenBao(t, self.s.d.ca, BAO)
        self.moto = openbao.Moto(t, self.s.d.ca, MANAGER, SSM)
        self.s.d.resolve.update({BAO: self.bao.address, MANAGER: self.moto.address, SSM: self.moto.address})
        self.jwt = jwt("agent")
        self.reviewed = []
        self.kube = origin.Origin(t, self.s.d.ca, "127.0.0.1", self.review)
        self.fill_openbao()
        self.fill_aws()
        self.configure()

    def new(self, name):
        value = scan.canary(name + "-").decode()
        self.s.scanner.add(name, value.encode())
        self.values[name] = value
        return value

    def review(self, req, conn):
        """authentication.k8s.io/v1 TokenReview."""
        got = req.json() or {}
        known = got.get("spec", {}).get("token") == self.jwt
        self.reviewed.append(known)
        user = {"username": "system:serviceaccount:apps:agent", "uid": "u-1",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:apps"]}
        conn.reply(req, 201, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                              "status": {"authenticated": known, "audiences": ["openbao"],
                                         "user": user if known else {}}})

    def put(self, name, value=None):
        self.bao.api("POST", "kv/data/apps/" + name, {"data": {"key": value or self.new(name), "port": 5}},
                     namespace="team")

    def fill_openbao(self):
        b = self.bao
        b.api("POST", "sys/namespaces/team", {})

        def team(method, path, body=None):
            return b.api(method, path, body, namespace="team")
        team("POST", "sys/mounts/kv", {"type": "kv", "options": {"version": "2"}})
        self.t.ok(tap.wait_for(lambda: self.try_put(), 20, 0.2), "OpenBao has a KV version 2 mount")
        for name in ("token", "role", "kube"):
            self.put(name)
        team("PUT", "sys/policies/acl/agents", {"policy": READ})
        team("POST", "sys/auth/approle", {"type": "approle"})
        team("POST", "auth/approle/role/agent", {"token_policies": "agents", "token_ttl": TTL, "token_max_ttl": MAX,
                                                 "secret_id_ttl": "1h"})
        self.role_id = team("GET", "auth/approle/role/agent/role-id")["data"]["role_id"]
        self.sid = team("POST", "auth/approle/role/agent/secret-id")["data"]["secret_id"]
        team("POST", "sys/auth/k8s", {"type": "kubernetes"})
        with open(self.s.d.ca.pem) as f:
            ca = f.read()
        reviewer = jwt("reviewer")
        team("POST", "auth/k8s/config", {"kubernetes_host": "https://127.0.0.1:%d" % self.kube.port,
                                         "kubernetes_ca_cert": ca, "token_reviewer_jwt": reviewer,
                                         "disable_local_ca_jwt": True})
        team("POST", "auth/k8s/role/agent", {"bound_service_account_names": "agent", "token_policies": "agents",
                                             "bound_service_account_namespaces": "apps", "token_ttl": "1h"})
        self.static = self.periodic("15s")  # less than leases() takes, more than a slow start
        for name in ("sid", "jwt"):
            self.s.scanner.add(name, getattr(self, name).encode())

    def periodic(self, period):
        """A token that ends when nobody prolongs it for so long."""
        made = self.bao.api("POST", "auth/token/create", {"policies": ["agents"], "period": period}, namespace="team")
        token = made["auth"]["client_token"]
        self.s.scanner.add("static " + period, token.encode())
        return token

    def try_put(self):
        try:
            self.put("token", "x")
            return True
        except OSError:
            return False

    def fill_aws(self):
        self.manager, self.ssm = self.moto.client("secretsmanager"), self.moto.client("ssm")
        pair = {"user": "u", "password": self.new("manager")}
        self.manager.create_secret(Name="prod/api", SecretString=json.dumps(pair))
        self.ssm.put_parameter(Name="/prod/api", Type="SecureString", Value=self.new("parameter"))

    def configure(self):
        d = self.s.d
        for name in ("sid", "static", "jwt"):
            d.secret(name, getattr(self, name))
        self.shown()
        d.secret("aws_id", "AKIDOFTHESTORE")
        d.secret("aws", scan.canary("aws-").decode())
        at = {"address": "https://" + BAO, "namespace": "team", "mount": "kv", "key": "key"}
        role = {"approle": {"role_id": self.role_id, "secret_id": "sid"}}
        kube = {"kubernetes": {"role": "agent", "jwt": "jwt", "mount": "k8s"}}
        aws = {"key": "pair", "region": "eu-west-1"}
        d.secrets.update({
            "token": {"vault": dict(at, path="apps/token", auth={"token": "static"}), "ttl": "0s"},
            "role": {"openbao": dict(at, path="apps/role", auth=role), "ttl": "1s"},
            "kube": {"openbao": dict(at, path="apps/kube", auth=kube), "ttl": "1h"},
            "pair": {"aws_key": {"access_key_id": "aws_id", "secret_access_key": "aws"}},
            "manager": {"aws_secret": dict(aws, name="prod/api", field="password"), "ttl": "0s"},
            "parameter": {"aws_parameter": dict(aws, name="/prod/api"), "ttl": "0s"}})
        for name in STORED:
            self.s.rule(allow="%s/%s" % (API, name), **{"with": {"bearer": name}})

    def shown(self):
        """Rules of several kinds whose credential OpenBao itself checks."""
        made = self.bao.api("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"}, namespace="team")
        token = made["auth"]["client_token"]
        self.s.scanner.add("shown", token.encode())
        self.s.d.secret("shown", token)
        self.s.d.secrets["logged_in"] = {"captured": {}}
        self.bao.api("POST", "kv/data/apps/open", {"data": {"port": 5}}, namespace="team")
        v1 = BAO + "/v1/"
        self.s.rule(allow=v1 + "auth/token/lookup-self", **{"with": {"bearer": "shown"}})
        self.s.rule(allow=v1 + "sys/capabilities-self", **{"with": {"header": {"name": "X-Vault-Token",
                                                                               "secret": "shown"}}})
        self.s.rule(allow=v1 + "auth/token/renew-self", **{"with": {"placeholder": {
            "secret": "shown", "in": "header", "name": "X-Vault-Token"}}})
        self.s.rule(allow=v1 + "auth/approle/login", capture={"auth.client_token": "logged_in"},
                    **{"with": {"placeholder": {"secret": "sid", "in": {"body": "/secret_id"}}}})
        self.s.rule(allow=v1 + "kv/**", **{"with": {"bearer": "logged_in"}})
        self.s.env.update({"SHOWN": "{{placeholder shown}}", "SID": "{{placeholder sid}}",
                           "LOGGED_IN": "{{placeholder logged_in}}"})

    def ask(self, path, *more):
        """OpenBao itself, from inside -> status and JSON."""
        status, out, err = self.box.sh("curl -sS -w '\\n%%{http_code}' -H 'X-Vault-Namespace: team' %s https://%s/v1/%s"
                                       % (" ".join(more), BAO, path))
        self.out += [out, err]
        text, _, code = out.rpartition("\n")
        try:
            return int(code or 0), json.loads(text)
        except ValueError:
            return int(code or 0), text

    def get(self, name):
        status, out, err = self.box.sh("curl -sS -w ' %%{http_code}' https://%s/%s" % (API, name))
        self.out += [out, err]
        code = int(out.split()[-1] if out.split() else 0)
        return code, code == 200 and self.api.requests[-1].get("authorization") == (
            "Bearer " + self.values[name])


def kinds(t, r):
    """Credentials of rules, each checked by OpenBao."""
    code, got = r.ask("auth/token/lookup-self")
    t.ok(code == 200 and got["data"]["policies"] == ["default"], "OpenBao takes a bearer token", str(got))
    code, got = r.ask("sys/capabilities-self", "-d '{\"path\":\"sys/x\"}'")
    t.ok(code == 200 and "data" in got, "and one in a header of its own", str(got))
    code, got = r.ask("auth/token/renew-self", "-X POST", "-H \"X-Vault-Token: $SHOWN\"")
    t.ok(code == 200 and got["auth"]["renewable"], "and one where the sandbox wrote its placeholder", str(got))
    login = "-d \"{\\\"role_id\\\":\\\"%s\\\",\\\"secret_id\\\":\\\"$SID\\\"}\"" % r.role_id
    code, got = r.ask("auth/approle/login", "-H 'Content-Type: application/json'", login)
    own = r.box.sh("printf %s \"$LOGGED_IN\"")[1]
    t.ok(code == 200 and got["auth"]["client_token"] == own,
         "and a secret in a JSON body, and gives a token that is captured", str(got))
    code, got = r.ask("kv/data/apps/open", "-H \"Authorization: Bearer $LOGGED_IN\"")
    t.ok(code == 200 and got["data"]["data"]["port"] == 5, "which OpenBao takes", str(got)[:300])


def values(t, r):
    for name in STORED:
        t.eq(r.get(name), (200, True), "the stored value: " + name)
    t.ok(r.reviewed and all(r.reviewed), "OpenBao had the service account's token reviewed")


def change(t, r):
    """With a ttl of 0 a new version counts for the next request, on a connection that never saw the old one."""
    seen = {q.conn_id for q in r.api.requests}
    for name in ("token", "manager", "parameter"):
        if name == "token":
            r.put(name)
        elif name == "manager":
            r.manager.put_secret_value(SecretId="prod/api", SecretString=json.dumps({"password": r.new(name)}))
        else:
            r.ssm.put_parameter(Name="/prod/api", Type="SecureString", Value=r.new(name), Overwrite=True)
        t.eq(r.get(name), (200, True), "a new value counts for the next request: " + name)
        t.ok(r.api.requests[-1].conn_id not in seen, "and goes over a new connection: " + name)
    r.put("role")
    t.ok(tap.wait_for(lambda: r.get("role")[1], 5, 0.1), "with a ttl of 1 s a new value comes in")


def leases(t, r):
    """A login is prolonged while it can be, then made anew; each request is served."""
    start, codes = time.time(), []
    while time.time() < start + 2 * MAX:
        codes.append(r.get("role"))
        time.sleep(0.2)
    t.eq(set(codes), {(200, True)}, "each of %d requests over several leases is served" % len(codes))
    logins, renewals = r.bao.count("auth/approle/login", start), r.bao.count("auth/token/renew-self", start)
    t.ok(1 <= logins <= 2 * MAX / TTL, "a login that can be prolonged no more is made anew", str(logins))
    t.ok(renewals >= 3, "leases are prolonged", str(renewals))
    t.eq(r.get("token"), (200, True), "a periodic token is prolonged although nobody asked for its secret meanwhile")


def revoked(t, r):
    r.bao.api("PUT", "sys/leases/revoke-prefix/auth/approle", {}, namespace="team")
    time.sleep(1.1)     # the ttl of the value
    t.eq(r.get("role"), (200, True), "a revoked login is made anew within the request")


def down(t, r):
    r.bao.api("PUT", "sys/seal")
    t.ok(tap.wait_for(lambda: r.get("role")[0] == 503, 10, 0.2), "a sealed OpenBao: 503")
    t.eq([r.get(x) for x in ("manager", "kube")], [(200, True)] * 2,
         "another store, and a value within its ttl, are not affected")
    failed = r.s.d.wait_records(1, "lifecycle", event="store_failed", credential="role")
    t.ok(failed and "503: it is sealed or on standby" in failed[0].get("detail", ""), "the log says why", str(failed))
    r.bao.unseal()
    t.ok(tap.wait_for(lambda: r.get("role")[1], 60, 0.3), "unsealed, it comes back by itself")
    t.ok(r.s.d.wait_records(1, "lifecycle", event="store_recovered", credential="role"), "the log says so, too")
    try:
        r.bao.api("POST", "auth/token/revoke", {"token": r.static}, namespace="team")
    except OSError:     # it ended while the store was sealed
        pass
    t.ok(tap.wait_for(lambda: r.get("token")[0] == 503, 5, 0.1), "a token that is revoked cannot be had again")
    r.s.d.secret("static", r.periodic("1h"))
    t.ok(tap.wait_for(lambda: r.get("token")[1], 5, 0.1), "until its file has a new one, then at once")
    r.manager.delete_secret(SecretId="prod/api", ForceDeleteWithoutRecovery=True)
    t.eq(r.get("manager")[0], 503, "a secret that is deleted: 503")
    failed = r.s.d.wait_records(1, "lifecycle", event="store_failed", credential="manager")
    t.ok(failed and "ResourceNotFoundException" in failed[0].get("detail", ""), "the log says why", str(failed))


def says(t, r):
    """`durward secret test` asks the servers, and says what is wrong."""
    d = r.s.d
    good = d.command("secret", "test", "--json", "-c", d.conf, *STORED[:3], "parameter", timeout=60)
    r.out += [good.stdout, good.stderr]
    t.eq([(x["name"], x["ok"]) for x in json.loads(good.stdout or "[]")],
         [(x, True) for x in ("token", "role", "kube", "parameter")], "secret test: all is well")
    at = dict(d.secrets["role"]["openbao"])
    bad_login = {"approle": {"role_id": r.role_id, "secret_id": "aws_id"}}
    d.secrets.update({
        "no_path": {"openbao": dict(at, path="apps/nothing")},
        "no_key": {"openbao": dict(at, key="kee")},
        "not_mine": {"openbao": dict(at, path="other/x")},
        "no_login": {"openbao": dict(at, auth=bad_login)},
        "no_mount": {"openbao": dict(at, auth={"kubernetes": {"role": "agent", "jwt": "jwt"}})},
        "number": {"openbao": dict(at, key="port")},
        "no_name": {"aws_secret": {"key": "pair", "region": "eu-west-1", "name": "nothing"}},
        "no_host": {"openbao": dict(at, address="https://127.0.0.1:1")}})
    d.save()
    want = {"no_path": "404: nothing is there", "no_key": "no text named 'kee'", "number": "no text named 'port'",
            "not_mine": "403: its login may not read this path", "no_login": "400: this login is refused",
            "no_mount": "403: this login is refused", "no_name": "ResourceNotFoundException",
            "no_host": "blocked_ip"}
    got = d.command("secret", "test", "-c", d.conf, *want, timeout=60)
    r.out += [got.stdout, got.stderr]
    lines = dict(x.split(": ", 1) for x in got.stdout.splitlines() if ": " in x)
    for name, text in want.items():
        t.has(lines.get(name, ""), text, "secret test says what is wrong: " + name)
    t.eq(got.returncode, 1, "and exits with 1")
    d.secrets["no_host"]["openbao"]["to"] = ["127.0.0.1/32"]
    d.save()
    got = d.command("secret", "test", "-c", d.conf, "no_host", timeout=60)
    t.has(got.stdout, "connect", "'to' opens an address; nobody listens there")


def main(t):
    r = Run(t)
    r.box = durward.Sandbox(r.s.d)
    for part in (kinds, values, change, leases, revoked, down, says):
        t.part(part, t, r)
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.clean(r.out, "stores")


tap.run(main, timeout=240)
