#!/usr/bin/python3 -B
"""Requests that are signed with a key which stays in the vault. Generic HMAC, checked by the libraries of
those who send so (Stripe, Slack, Standard Webhooks); HTTP message signatures of each algorithm, checked
by http-message-signatures; Azure Storage's SharedKey, checked by Azurite."""
import base64
import datetime
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, scan, scene, tap  # noqa: E402

ALGORITHMS = {"ed25519": ("-algorithm", "ED25519"),
              "ecdsa-p256-sha256": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
              "ecdsa-p384-sha384": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"),
              "rsa-pss-sha512": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
              "rsa-v1_5-sha256": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
              "hmac-sha256": None}
HMAC = {"stripe": {"text": "{timestamp}.{body}",
                   "headers": {"Stripe-Signature": "t={timestamp},v1={signature}"}},
        "slack": {"text": "v0:{timestamp}:{body}",
                  "headers": {"X-Slack-Signature": "v0={signature}",
                              "X-Slack-Request-Timestamp": "{timestamp}"}},
        "standard": {"text": "msg_{nonce}.{timestamp}.{body}", "encoding": "base64",
                     "headers": {"webhook-id": "msg_{nonce}", "webhook-timestamp": "{timestamp}",
                                 "webhook-signature": "v1,{signature}"}},
        "parts": {"text": "{method}\n{host}\n{target}\n{header:x-a}\n{body_sha256}\n{date}",
                  "headers": {"X-Sig": "{signature}", "Date": "{date}"}}}
ACCOUNT = "agentstore"
BLOB = ACCOUNT + ".blob.core.windows.net"
HOOKS, SIGS = "hooks.example.com", "sigs.example.com"


def libraries():
    found = glob.glob(os.path.join(durward.clients_dir(), "venv/lib/python3*/site-packages"))
    for name in ("stripe", "slack_sdk", "standardwebhooks", "http_message_signatures"):
        if not found or not os.path.isdir(os.path.join(found[0], name)):
            raise tap.Skip("%s is not there: run tests/functional/clients/setup" % name)
    sys.path.append(found[0])


def echo(req, conn):
    conn.reply(req, 200, b"{}")


class Run:
    def __init__(self, t):
        self.t, self.s, self.out = t, scene.Scene(t), []
        d = self.s.d
        self.text = scan.canary("hk-")
        self.raw = os.urandom(32)
        self.secret("text", self.text)
        self.secret("raw", base64.b64encode(self.raw))
        d.secrets["by-text"] = {"hmac_key": {"key": "text"}}
        d.secrets["by-raw"] = {"hmac_key": {"key": "raw", "encoding": "base64"}}
        d.secrets["by-sha512"] = {"hmac_key": {"key": "text", "algorithm": "sha512"}}
        self.hooks, self.sigs = self.s.add(HOOKS, echo), self.s.add(SIGS, echo)
        for name, how in HMAC.items():
            self.rule(HOOKS + "/" + name, "hmac",
                      dict(how, key="by-raw" if name == "standard" else "by-text"))
        self.rule(HOOKS + "/long", "hmac", dict(HMAC["parts"], key="by-sha512"))
        self.s.rule(allow=HOOKS + "/replace", client_credential="replace",
                    **{"with": {"hmac": dict(HMAC["stripe"], key="by-text")}})
        self.keys = {}
        for name, how in ALGORITHMS.items():
            if how:
                pem = subprocess.run(["openssl", "genpkey"] + list(how), check=True,
                                     capture_output=True).stdout
                self.keys[name] = pem
                d.secret("pem-" + name, pem)
                self.s.scanner.add(name, "".join(pem.decode().split("\n")[1:-2])[-50:].encode())
            d.secrets["sig-" + name] = {"signature_key": {
                "key": "pem-" + name if how else "raw", "key_id": "key:" + name, "algorithm": name}}
            self.rule(SIGS + "/%s/**" % name, "signature", {
                "key": "sig-" + name, "components": ["@method", "@target-uri", "@authority", "@path",
                                                     "@query", "content-digest", "x-a"],
                "expires": 60, "nonce": True, "tag": "app", "label": "agent"})
        self.azure()

    def secret(self, name, value):
        self.s.d.secret(name, value)
        self.s.scanner.add(name, value)

    def rule(self, pattern, kind, how):
        self.s.rule(allow=pattern, **{"with": {kind: how}})

    def azure(self):
        self.azurite = os.path.join(durward.clients_dir(), "node_modules/azurite/dist/src/blob/main.js")
        key = base64.b64encode(os.urandom(64))
        self.secret("azure-key", key)
        self.s.d.secrets["store"] = {"azure_key": {"account": ACCOUNT, "key": "azure-key"}}
        self.s.d.secrets["wrong"] = {"azure_key": {"account": ACCOUNT, "key": "raw"}}
        self.rule(BLOB + "/box/**", "azure", "store")
        self.rule(BLOB + "/wrong/**", "azure", "wrong")
        node = shutil.which("node")
        self.has_azurite = bool(node) and os.path.exists(self.azurite)
        if not self.has_azurite:
            return
        crt, private = self.s.d.ca.issue(BLOB)
        port = nginx.free_port()
        self.s.d.resolve[BLOB] = "127.0.0.1:%d" % port
        folder = self.t.mkdir("azurite")
        log = open(os.path.join(folder, "out"), "wb")
        self.t.popen([node, self.azurite, "--blobHost", "127.0.0.1", "--blobPort", str(port),
                      "--location", folder, "--cert", crt, "--key", private, "--silent",
                      "--skipApiVersionCheck", "--disableTelemetry"], stdout=log, stderr=log,
                     env={"PATH": os.environ["PATH"], "HOME": folder,
                          "AZURITE_ACCOUNTS": "%s:%s" % (ACCOUNT, key.decode())})
        log.close()
        if not tap.wait_for(lambda: scene.reachable("127.0.0.1:%d" % port), 60, 0.2):
            with open(os.path.join(folder, "out")) as f:
                raise RuntimeError("azurite does not start: " + f.read())

    def curl(self, url, *more):
        status, out, err = self.box.sh("curl -sS -w '\\n%%{http_code}' %s \"https://%s\"" % (
            " ".join(more), url))
        self.out += [out, err]
        body, _, code = out.rpartition("\n")
        return int(code or 0), body

    def sent(self, origin, url, *more):
        before = len(origin.requests)
        code, body = self.curl(url, *more)
        return code, body, origin.requests[-1] if len(origin.requests) > before else None


def hooks(t, r):
    import slack_sdk.signature
    import standardwebhooks
    import stripe
    body = '{"id":"evt_1","object":"event","n":[1,2]}'
    data = "-d '%s'" % body
    _, _, req = r.sent(r.hooks, HOOKS + "/stripe", data)
    t.ok(stripe.WebhookSignature.verify_header(req.body.decode(), req.get("stripe-signature"),
                                               r.text.decode(), 60), "Stripe's library takes it")
    _, _, req = r.sent(r.hooks, HOOKS + "/slack", data)
    slack = slack_sdk.signature.SignatureVerifier(r.text.decode())
    t.ok(slack.is_valid_request(req.body, dict(req.headers)), "Slack's does",
         str(req.headers))
    t.ok(not slack.is_valid_request(req.body + b" ", dict(req.headers)), "not with another body")
    _, _, req = r.sent(r.hooks, HOOKS + "/standard", data)
    standard = standardwebhooks.Webhook(base64.b64encode(r.raw).decode())
    t.eq(standard.verify(req.body.decode(), dict(req.headers)), json.loads(body),
         "Standard Webhooks' does, with a key in base64")
    for path, name in (("/parts", hashlib.sha256), ("/long", hashlib.sha512)):
        _, _, req = r.sent(r.hooks, HOOKS + path + "?b=2&a=%20x", "-H 'X-A: 1'", "-H 'X-A: two'",
                           "-d '%s'" % body)
        text = "POST\n%s\n%s?b=2&a=%%20x\n1, two\n%s\n%s" % (
            HOOKS, path, hashlib.sha256(body.encode()).hexdigest(), req.get("date"))
        import hmac
        t.eq(req.get("x-sig"), hmac.new(r.text, text.encode(), name).hexdigest(),
             "parts of the request, " + path)
    t.eq(r.sent(r.hooks, HOOKS + "/parts", data)[0], 403, "a header that it needs is not there")
    own = "-H 'Stripe-Signature: t=1,v1=mine'"
    code, got, req = r.sent(r.hooks, HOOKS + "/stripe", data, own)
    t.ok(code == 403 and "foreign_credential" in got and req is None, "a signature of the client's own")
    code, _, req = r.sent(r.hooks, HOOKS + "/replace", data, own)
    t.ok(code == 200 and "mine" not in req.get("stripe-signature") and
         len(req.all("stripe-signature")) == 1, "is replaced where the rule says so")
    r.box.sh("head -c 61441 /dev/zero > /tmp/long; head -c 61000 /dev/zero > /tmp/short")
    t.eq(r.curl(HOOKS + "/stripe", "--data-binary @/tmp/long")[0], 413, "a body that is too long")
    _, _, req = r.sent(r.hooks, HOOKS + "/stripe", "--data-binary @/tmp/short",
                       "-H 'Transfer-Encoding: chunked'")
    t.ok(stripe.WebhookSignature.verify_header(b"\0".decode() * 61000, req.get("stripe-signature"),
                                               r.text.decode(), 60), "a long and chunked one")


class Message:
    def __init__(self, req, host):
        self.method, self.headers = req.method, dict(req.headers)
        self.url = "https://%s%s" % (host, req.path) + ("?" + req.query if req.query else "")


def signatures(t, r):
    import http_message_signatures as sig
    from cryptography.hazmat.primitives import serialization

    class Keys(sig.HTTPSignatureKeyResolver):
        def resolve_public_key(self, key_id):
            name = key_id.partition(":")[2]
            if name == "hmac-sha256":
                return r.raw
            return serialization.load_pem_private_key(r.keys[name], None).public_key()
    found = {x.algorithm_id: x for x in vars(sig.algorithms).values()
             if isinstance(x, type) and getattr(x, "algorithm_id", None)}
    for name in ALGORITHMS:
        for more in (["-d hello"], ["-X GET"], ["-X PUT", "-T /tmp/short"]):
            code, body, req = r.sent(r.sigs, SIGS + "/%s/x%%20y?a=1&b=%%2F" % name, "-H 'X-A: v'",
                                     *more)
            if req is None:
                t.ok(False, "a request is signed with " + name, str(code), body)
                continue
            verifier = sig.HTTPMessageVerifier(signature_algorithm=found[name], key_resolver=Keys())
            try:
                got = verifier.verify(Message(req, SIGS), max_age=datetime.timedelta(seconds=60),
                                      expect_tag="app", body=req.body,
                                      require_components=("@method", "@target-uri", "content-digest"))
                why = "" if len(got) == 1 and got[0].label == "agent" else str(got)
            except Exception as e:
                why = repr(e)
            t.ok(not why, "%s: %s verifies" % (name, req.method), why, req.get("signature-input"))
            other = Message(req, SIGS)
            other.url += "1"
            try:
                verifier.verify(other, max_age=datetime.timedelta(seconds=60))
                t.ok(False, "not for another URL")
            except sig.InvalidSignature:
                pass
    code, body, _ = r.sent(r.sigs, SIGS + "/ed25519/x", "-d hello")
    t.ok(code == 403 and "signature_component" in body, "a header that is to be signed is not there",
         body)
    for own in ("Signature: agent=:AA==:", "Signature-Input: x=()"):
        code, body, req = r.sent(r.sigs, SIGS + "/ed25519/x", "-H 'X-A: v'", "-H '%s'" % own)
        t.ok(code == 403 or (req and len(req.all("signature-input")) == 1 and
                             "x=()" not in req.get("signature-input")),
             "the client's own %s does not go on" % own.partition(":")[0], str(code))


def azure(t, r):
    if not r.has_azurite:
        t.skip("Azure Storage", "azurite is not there: run tests/functional/clients/setup")
        return
    v = "-H 'x-ms-version: 2021-12-02'"
    code, body = r.curl(BLOB + "/box?restype=container", v, "-X PUT", "-d ''")
    t.eq(code, 201, "a container is made")
    r.box.sh("seq 20000 > /tmp/blob")
    code, body = r.curl(BLOB + "/box/a%20b/c+d.txt", v, "-X PUT", "-H 'x-ms-blob-type: BlockBlob'",
                        "-H 'x-ms-meta-z: 1'", "-H 'x-ms-meta-a: 2'",
                        "-H 'Content-Type: text/plain; charset=utf-8'", "--data-binary @/tmp/blob")
    t.ok(code == 201, "a blob is put", str(code), body[:200], r.out[-1][-300:])
    code, body = r.curl(BLOB + "/box?restype=container&comp=list&prefix=a%20b%2F&include=metadata", v)
    t.ok(code == 200 and "<Name>a b/c+d.txt</Name>" in body, "and listed", str(code), body[:300])
    code, body = r.curl(BLOB + "/box/a%20b/c+d.txt", v, "-H 'x-ms-range: bytes=0-3'",
                        "-H 'If-Match: *'")
    t.eq((code, body), (206, "1\n2\n"), "and read in part")
    code, body = r.curl(BLOB + "/box/a%20b/c+d.txt", v, "-X DELETE")
    t.eq(code, 202, "and deleted")
    code, body = r.curl(BLOB + "/wrong/x", v)
    t.ok(code == 403 and "AuthorizationFailure" in body or "AuthenticationFailed" in body,
         "with another key Azurite says no", str(code), body[:200])
    code, body = r.curl(BLOB + "/box/x", v, "-H 'Authorization: SharedKey %s:AAAA'" % ACCOUNT)
    t.ok(code == 403 and "foreign_credential" in body, "the client's own is refused", body[:100])


def main(t):
    libraries()
    r = Run(t)
    r.box = durward.Sandbox(r.s.d)
    hooks(t, r)
    signatures(t, r)
    azure(t, r)
    if os.geteuid() == 0:
        for pid, role in r.s.d.roles():
            if role in ("gate", "injector"):
                hits, _, _ = scan.scan_process(pid, r.s.scanner, role)
                t.eq(hits, [], "no key in the memory of: " + role)
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.clean(r.out, "signed")


tap.run(main, timeout=300)
