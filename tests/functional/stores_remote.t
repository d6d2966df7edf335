#!/usr/bin/python3 -B
"""Secrets behind an endpoint: HashiCorp Vault / OpenBao (KV version 2; token, AppRole and Kubernetes logins and
their leases), AWS Secrets Manager and parameters, 1Password Connect. The servers are doubles of the documented
APIs, where every request is looked at; AWS signatures are checked by botocore. stores_servers.t has real servers."""
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, sigv4, tap  # noqa: E402

API, VAULT, CONNECT = "api.example.com", "vault.example.com", "connect.example.com"
MANAGER, SSM = "secretsmanager.eu-west-1.amazonaws.com", "ssm.eu-west-1.amazonaws.com"
LEASE, LAST = 6, 14     # seconds: of a login, and what it can be prolonged to
STORED = ("token", "role", "second", "kube", "manager", "parameter", "password")


class Vault:
    """POST auth/*/login, auth/token/renew-self, GET kv/data/*: tokens have a lease, a last moment, and count."""

    def __init__(self, r):
        self.r, self.lock = r, threading.Lock()
        self.tokens, self.notes, self.bad, self.down = {}, [], [], False

    def issue(self, kind):
        token = self.r.new("hvs." + kind)
        now = time.time()
        self.tokens[token] = [now + LEASE, now + LAST]
        return {"auth": {"client_token": token, "lease_duration": LEASE, "renewable": True}}

    def __call__(self, req, conn):
        with self.lock:
            self.notes.append((time.time(), req.path))
            status, answer = (503, {"errors": ["sealed"]}) if self.down else self.act(req)
        conn.reply(req, status, answer)

    def act(self, req):
        if req.get("x-vault-request") != "true" or req.get("x-vault-namespace") != "team":
            self.bad.append("headers of %s: %s" % (req.path, req.headers))
        if req.path.endswith("/login"):
            want = {"/v1/auth/approle/login": {"role_id": "role-1", "secret_id": self.r.values["sid"]},
                    "/v1/auth/k8s/login": {"role": "app", "jwt": self.r.values["jwt"]}}
            if req.method != "POST" or req.json() != want.get(req.path):
                self.bad.append("%s %s" % (req.method, req.path))
                return 400, {"errors": ["invalid role or secret ID"]}
            return 200, self.issue(req.path.split("/")[3])
        token, now = req.get("x-vault-token"), time.time()
        lease = self.tokens.get(token)
        if token != self.r.values["static"] and (lease is None or lease[0] < now):
            return 403, {"errors": ["permission denied"]}
        if req.path == "/v1/auth/token/renew-self":
            if lease is None:
                return 400, {"errors": ["lease is not renewable"]}
            lease[0] = min(now + LEASE, lease[1])
            return 200, {"auth": {"client_token": token, "lease_duration": int(lease[0] - now),
                                  "renewable": True}}
        if req.method != "GET" or not req.path.startswith("/v1/kv/data/apps/"):
            return 404, {"errors": []}
        value = self.r.values.get(req.path.split("/")[-1])
        return 200, {"data": {"data": {"key": value, "other": 1}, "metadata": {"version": 3}}}

    def count(self, end, since=0.0):
        with self.lock:
            return sum(p.endswith(end) and at >= since for at, p in self.notes)


class Run:
    def __init__(self, t):
        self.t, self.s, self.out, self.values = t, scene.Scene(t), [], {}
        self.s.rules[:] = []
        for name in ("static", "sid", "jwt", "aws", "connect") + STORED:
            self.values[name] = self.new(name)
        self.api = self.s.add(API, lambda req, conn: conn.reply(req, 200, "ok", kind="text/plain"))
        self.vault = Vault(self)
        self.s.add(VAULT, self.vault)
        self.s.add(MANAGER, self.aws("secretsmanager.GetSecretValue", MANAGER))
        self.s.add(SSM, self.aws("AmazonSSM.GetParameter", SSM))
        self.s.add(CONNECT, self.connect)
        self.configure()

    def new(self, name):
        value = scan.canary(name + "-").decode()
        self.s.scanner.add(name, value.encode())
        return value

    def configure(self):
        d = self.s.d
        for name in ("static", "sid", "jwt", "aws", "connect"):
            d.secret(name, self.values[name])
        d.secret("aws_id", "AKIDOFTHESTORE")
        at = {"address": "https://" + VAULT, "namespace": "team", "mount": "kv", "key": "key"}
        role = {"approle": {"role_id": "role-1", "secret_id": "sid"}}
        kube = {"kubernetes": {"role": "app", "jwt": "jwt", "mount": "k8s"}}
        aws = {"key": "pair", "region": "eu-west-1"}
        d.secrets.update({
            "token": {"vault": dict(at, path="apps/token", auth={"token": "static"}), "ttl": "1s"},
            "role": {"vault": dict(at, path="apps/role", auth=role), "ttl": "1s"},
            "second": {"openbao": dict(at, path="apps/second", auth=role), "ttl": "1s"},
            "kube": {"openbao": dict(at, path="apps/kube", auth=kube), "ttl": "1h"},
            "pair": {"aws_key": {"access_key_id": "aws_id", "secret_access_key": "aws"}},
            "manager": {"aws_secret": dict(aws, name="prod/api", field="password"), "ttl": "1s"},
            "parameter": {"aws_parameter": dict(aws, name="/prod/api")},
            "password": {"onepassword": {"address": "https://" + CONNECT, "token": "connect",
                                         "vault": "v1", "item": "i1", "field": "credential"}}})
        for name in STORED:
            self.s.rule(allow="%s/%s" % (API, name), **{"with": {"bearer": name}})

    def aws(self, target, host):
        def answer(req, conn):
            why = sigv4.wrong(req, host, "AKIDOFTHESTORE", self.values["aws"])
            if req.get("x-amz-target") != target:
                why = why or "target %s" % req.get("x-amz-target")
            want = ({"SecretId": "prod/api"} if host == MANAGER
                    else {"Name": "/prod/api", "WithDecryption": True})
            if req.json() != want:
                why = why or "asked for %r" % req.body
            self.vault.bad += [why] if why else []
            pair = json.dumps({"user": "u", "password": self.values["manager"]})
            conn.reply(req, 403 if why else 200, {"SecretString": pair} if host == MANAGER else
                       {"Parameter": {"Value": self.values["parameter"]}})
        return answer

    def connect(self, req, conn):
        right = (req.method, req.path, req.get("authorization")) == (
            "GET", "/v1/vaults/v1/items/i1", "Bearer " + self.values["connect"])
        conn.reply(req, 200 if right else 401, {"fields": [
            {"id": "username", "label": "username", "value": "u"},
            {"id": "x7", "label": "credential", "value": self.values["password"]}]})

    def get(self, name):
        status, out, err = self.box.sh("curl -sS -w ' %%{http_code}' https://%s/%s" % (API, name))
        self.out += [out, err]
        code = int(out.split()[-1] if out.split() else 0)
        return code, code == 200 and self.api.requests[-1].get("authorization") == (
            "Bearer " + self.values[name])


def values(t, r):
    for name in STORED:
        t.eq(r.get(name), (200, True), "the stored value: " + name)
    t.eq(r.vault.count("approle/login"), 1, "secrets with the same login share one")
    t.ok(not r.vault.bad, "as the API wants it, AWS with a good signature", *r.vault.bad)


def change(t, r):
    """A new version counts when the ttl is over."""
    for name in ("role", "manager"):
        r.values[name] = r.new(name)
        t.ok(tap.wait_for(lambda: r.get(name)[1], 5, 0.1), "a new value comes in: " + name)


def leases(t, r):
    """Three lives of a login: prolonged while it can be, then made anew; each request is served."""
    start, codes = time.time(), []
    while time.time() < start + 2 * LAST:
        codes.append(r.get("role"))
        time.sleep(0.15)
    t.eq(set(codes), {(200, True)}, "each request over several leases is served")
    renewed, logins = r.vault.count("renew-self", start), r.vault.count("approle/login", start)
    t.ok(renewed >= 2, "the lease is renewed", str(renewed))
    t.ok(1 <= logins <= 4, "a login that can be prolonged no more is made anew", str(logins))


def revoked(t, r):
    with r.vault.lock:
        r.vault.tokens.clear()
    time.sleep(1.1)     # the ttl of the value
    t.eq(r.get("role"), (200, True), "a revoked login is made anew within the request")


def down(t, r):
    r.vault.down = True
    t.ok(tap.wait_for(lambda: r.get("role")[0] == 503, 10, 0.2), "a store that is down: 503")
    t.eq([r.get(x) for x in ("manager", "password", "kube")], [(200, True)] * 3,
         "other stores, and values within their ttl, are not affected")
    begun = time.time()
    codes = {r.get("role")[0] for _ in range(20)}
    t.eq(codes, {503}, "and 503 it stays")
    asked = r.vault.count("apps/role", begun) + r.vault.count("login", begun)
    t.ok(asked <= 2 + 2 * int(time.time() - begun), "it is not hammered", str(asked))
    failed = r.s.d.wait_records(1, "lifecycle", event="store_failed", credential="role")
    t.ok(failed and "503" in failed[0].get("detail", ""), "the log says that it failed, and why",
         str(failed))
    r.vault.down = False
    t.ok(tap.wait_for(lambda: r.get("role")[1], 30, 0.3), "and it comes back by itself")
    t.ok(r.s.d.wait_records(1, "lifecycle", event="store_recovered", credential="role"),
         "the log says so, too")


def main(t):
    sigv4.library()
    r = Run(t)
    r.box = durward.Sandbox(r.s.d)
    values(t, r)
    change(t, r)
    leases(t, r)
    revoked(t, r)
    down(t, r)
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.clean(r.out, "stores")


tap.run(main, timeout=180)
