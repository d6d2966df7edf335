#!/usr/bin/python3 -B
"""AWS signatures: boto3 in a sandbox signs with its placeholder, the origins see requests signed with
the real key. Verified by botocore at origins of ours, and by S3 servers that others maintain and that check each
signature: s3proxy, and versitygw, which also checks those of each chunk of a body and of trailers. For
versitygw jclouds uploads in signed chunks, and its own test client with signed trailers."""
import glob
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, nginx, openbao, scan, scene, sigv4, tap  # noqa: E402

STS, ASSUMED = "sts.us-east-1.amazonaws.com", "dynamodb.eu-west-3.amazonaws.com"
S3, DYNAMO = "s3.us-east-1.amazonaws.com", "dynamodb.us-east-2.amazonaws.com"
REAL, GATEWAY = "s3.example.com", "gateway.example.com"
CHUNKED = (0, 1, 65535, 65536, 65537, 5000000)
KEY = "a/b c+d=e&f ~'(x)\u00e9"
WANT = {"make": True, "put": True, "get": "hello", "meta": {"one": "1  2"}, "list": [KEY],
        "unsigned": True, "signed": True, "big": True, "presigned": "hello", "presigned put": "",
        "presigned got": "presigned", "in parts": [True, 4], "packed": [True, "gzip"], "delete": True}


class Bucket:
    """A few of S3's verbs, each only for a right signature."""

    def __init__(self, host, key):
        self.host, self.key, self.objects, self.bad = host, key, {}, []

    def __call__(self, req, conn):
        why = sigv4.wrong(req, self.host, *self.key())
        said = req.get("x-amz-content-sha256", "")
        if not why and len(said) == 64 and said != req.sha256:
            why = "another body"
        if why:
            self.bad.append("%s %s: %s" % (req.method, req.target, why))
            conn.reply(req, 403, "<Error><Code>SignatureDoesNotMatch</Code></Error>",
                       kind="application/xml")
            return
        name = urllib.parse.unquote(req.path)
        query = urllib.parse.parse_qs(req.query, keep_blank_values=True)
        if req.method == "PUT" and name.count("/") > 1:
            coded = [c for c in req.get("content-encoding", "").split(",") if c.strip() not in ("", "aws-chunked")]
            self.objects[name] = (req.body, [h for h in req.headers if h[0].startswith("x-amz-meta-")] +
                                  [("Content-Encoding", c) for c in coded])
            conn.reply(req, 200, b"", [("ETag", '"e"')])
        elif "list-type" in query:
            body = "".join("<Contents><Key>%s</Key></Contents>" % n.split("/", 2)[2].replace(
                "&", "&amp;") for n in self.objects if n.startswith(name + "/" + query["prefix"][0]))
            conn.reply(req, 200, "<ListBucketResult>%s</ListBucketResult>" % body,
                       kind="application/xml")
        elif req.method in ("GET", "HEAD") and name in self.objects:
            body, meta = self.objects[name]
            part = re.match("bytes=([0-9]+)-([0-9]*)$", req.get("range", ""))
            if part:
                first, last = int(part[1]), min(int(part[2] or len(body)), len(body) - 1)
                meta = meta + [("Content-Range", "bytes %d-%d/%d" % (first, last, len(body)))]
                body = body[first:last + 1]
            conn.reply(req, 206 if part else 200, body, meta, kind="text/plain")
        else:
            conn.reply(req, 200, b"<x/>", kind="application/xml")


def dynamo(key, bad):
    def handler(req, conn):
        why = sigv4.wrong(req, DYNAMO, *key())
        if why:
            bad.append(why)
        conn.reply(req, 400 if why else 200, {"Item": req.json().get("Key")},
                   kind="application/x-amz-json-1.0")
    return handler


def assumed(run):
    """STS: moto answers it, for a right signature. The role's keys sign for another service."""
    moto = openbao.Moto(run.t, run.s.d.ca, "moto")
    tls = ssl.create_default_context(cafile=run.s.d.ca.pem)

    def sts(req, conn):
        why = sigv4.wrong(req, STS, *run.pair())
        asked = urllib.request.Request("https://" + moto.address, req.body, {
            "Host": STS, "Authorization": req.get("authorization"), "Content-Type": req.get("content-type")})
        with urllib.request.urlopen(asked, context=tls) as f:
            answer, kind = f.read().decode(), f.headers["Content-Type"]
        run.issued.append([re.search("<%s>(.*?)</%s>" % (n, n), answer).group(1) for n in (
            "AccessKeyId", "SecretAccessKey", "SessionToken")])
        for part in run.issued[-1]:
            run.s.scanner.add("of the role", part.encode())
        conn.reply(req, 400 if why else 200, why or answer, kind=kind)

    def service(req, conn):
        why = sigv4.wrong(req, ASSUMED, *run.issued[-1]) if run.issued else "nothing issued"
        conn.reply(req, 400 if why else 200, {"Item": req.json().get("Key")} if not why else why,
                   kind="application/x-amz-json-1.0")

    run.s.add(STS, sts)
    run.s.add(ASSUMED, service)
    run.s.d.secrets["assumed"] = {"captured": {}}
    run.s.rule(allow=STS, capture={"AssumeRoleResponse.AssumeRoleResult.Credentials": "assumed"},
               **{"with": {"aws": "s3"}})
    run.s.rule(allow=ASSUMED, **{"with": {"aws": "assumed"}})
    run.s.env["ASSUMED"] = "{{placeholder assumed}}"


class Run:
    def __init__(self, t):
        self.t, self.s = t, scene.Scene(t)
        self.id = "AKIA" + scan.canary("").decode().upper()[:16]
        self.secret = scan.canary("aws-").decode()
        self.token = scan.canary("session-").decode() * 4
        self.s.scanner.add("aws", self.secret.encode())
        self.s.scanner.add("session", self.token.encode())
        d = self.s.d
        d.secret("id", self.id)
        d.secret("key", self.secret)
        d.secret("token", self.token)
        d.secrets["s3"] = {"aws_key": {"access_key_id": "id", "secret_access_key": "key"}}
        d.secrets["session"] = {"aws_key": {"access_key_id": "id", "secret_access_key": "key",
                                            "session_token": "token"}}
        self.bucket = Bucket(S3, self.pair)
        self.s3 = self.s.add(S3, self.bucket)
        self.bad = []
        self.dynamo = self.s.add(DYNAMO, dynamo(lambda: self.pair() + (self.token,), self.bad))
        self.s.rule(allow=S3, **{"with": {"aws": "s3"}})
        self.s.rule(allow=DYNAMO, **{"with": {"aws": {"key": "session", "region": "us-east-2",
                                                      "service": "dynamodb"}}})
        self.s.env.update({"AWS_ACCESS_KEY_ID": "{{placeholder s3}}",
                           "SESSION_KEY_ID": "{{placeholder session}}",
                           "AWS_SECRET_ACCESS_KEY": "nothing",
                           "AWS_EC2_METADATA_DISABLED": "true"})
        self.out, self.issued = [], []
        assumed(self)

    def pair(self):
        return self.id, self.secret

    def client(self, box, s3, other, env=None):
        python = os.path.join(durward.clients_dir(), "venv/bin/python")
        status, out, err = box.sh("%s %s/aws_clients.py %s %s" % (
            python, durward.INSIDE, s3, other), env=env, timeout=90)
        self.out += [out, err]
        if status != 0:
            raise RuntimeError(err)
        return json.loads(out)


def ours(t, r, box):
    got = r.client(box, "https://" + S3, "-")
    for name, want in WANT.items():
        t.eq(got.get(name), want, "S3, checked by botocore: " + name)
    t.eq(got.get("foreign"), "403", "another key than the sandbox's placeholder")
    t.ok(len(r.s3.requests) >= 12 and not r.bucket.bad, "every signature is right",
         *r.bucket.bad[:3])
    kinds = {q.get("x-amz-content-sha256") for q in r.s3.requests}
    t.ok("UNSIGNED-PAYLOAD" in kinds and hashlib.sha256(bytes(range(256)) * 4096).hexdigest() in kinds,
         "bodies were hashed, and left unsigned where the client said so")
    got = r.client(box, "https://" + S3, "https://" + DYNAMO,
                   {"AWS_ACCESS_KEY_ID": box.sh("printf %s \"$SESSION_KEY_ID\"")[1]})
    t.eq(got.get("dynamodb"), {"k": {"S": "\u00fc"}}, "a session's key, a body that we hash")
    t.ok("403" in str(got.get("region")), "a region the rule does not name", str(got.get("region")))
    t.ok(r.dynamo.requests and not r.bad, "with the session's token signed", *r.bad[:3])


def raw(t, r, box):
    """What no SDK does."""
    send = ("curl -sS -o /tmp/out -w '%%{http_code}' -H \"Authorization: AWS4-HMAC-SHA256 "
            "Credential=$AWS_ACCESS_KEY_ID/20260101/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;x-amz-date, Signature=00\" %s https://" + S3 + "/bucket-one/%s; "
            "cut -d' ' -f1,2 /tmp/out")
    before = len(r.s3.requests)
    box.sh("for n in 1 1 0; do printf '%s;chunk-signature=%064d\\r\\n' $n 0; [ $n = 0 ] || printf x; "
           "printf '\\r\\n'; done > /tmp/bytes")
    for more, path, want, what in (
            ("-H 'x-amz-content-sha256: %s' -T /etc/passwd" % ("0" * 64), "x",
             "403denied body_hash", "a body that is not the one it said"),
            ("-H 'x-amz-content-sha256: %s'" % ("0" * 64), "x", "403denied body_hash",
             "no body, where it said one"),
            ("-H 'x-amz-content-sha256: %s' -H 'Transfer-Encoding: chunked' -d ''" % ("0" * 64), "x",
             "403denied body_hash", "an empty body in chunks, where it said another"),
            ("-H 'x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD' -T /etc/passwd", "x",
             "403denied signature_streaming", "signed chunks that nobody counted"),
            ("-H 'x-amz-content-sha256: STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD' "
             "-H 'x-amz-decoded-content-length: 5' -T /etc/passwd", "x",
             "403denied signature_streaming", "chunks signed with another algorithm"),
            ("-H 'x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD' "
             "-H 'x-amz-decoded-content-length: 5' -T /etc/passwd", "x",
             "403denied signature_streaming", "a body that is not in chunks"),
            ("-H 'x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD' "
             "-H 'x-amz-decoded-content-length: 2' -T /tmp/bytes", "x",
             "403denied signature_streaming", "chunks of a byte: each would be a signature"),
            ("-H 'x-amz-security-token: mine'", "x", "403denied foreign_credential",
             "a session token of the client's"),
            ("-H 'Authorization: AWS4-HMAC-SHA256 Credential=x'", "x",
             "403denied foreign_credential", "two of them"),
            ("", "x?X-Amz-Signature=1", "403denied foreign_credential", "half a presigned query")):
        status, out, err = box.sh(send % (more, path))
        r.out += [out, err]
        t.ok(out.startswith(want[:3]) and want[3:] in out, what + ": " + want, out, err)
    ended = [q for q in r.s3.requests[before:] if q.complete]
    t.eq([(q.method, q.target, q.headers) for q in ended], [], "no whole request of these reached the origin")
    status, out, _ = box.sh("head -c 9000000 /dev/zero > /tmp/big; " +
                            send % ("-T /tmp/big", "x"))
    t.ok(out.startswith("413"), "a body over 8 MiB that has to be hashed", out)
    status, out, _ = box.sh("head -c 8000000 /dev/zero > /tmp/big; " + send % ("-T /tmp/big", "x"))
    t.ok(out.startswith("200"), "one of 8 MB is hashed and sent", out)
    status, out, err = box.sh("curl -sS https://%s/bucket-one/x?acl" % S3)
    t.ok("denied signature_scope" in out, "a request that nobody signed: signature_scope", out, err)


def roles(t, r, box):
    """boto3 assumes a role: the sandbox gets placeholders, signs with them, and the role's keys are used."""
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    status, out, err = box.sh("%s %s/aws_role.py https://%s https://%s" % (
        python, durward.INSIDE, STS, ASSUMED), timeout=60)
    r.out += [out, err]
    own = box.sh("printf %s \"$ASSUMED\"")[1]
    got = json.loads(out) if status == 0 else {}
    t.eq(got.get("before"), "503", "before there is one, its placeholder is 503")
    t.eq(got.get("credentials"), [own] * 3, "the answer of STS (XML) holds placeholders in place of a key")
    t.eq(got.get("item"), {"k": {"S": "\u00fc"}}, "what boto3 signs with them is signed with the role's key")
    t.eq(got.get("again"), [own] * 3, "and with a newer one, once there is")
    t.ok(len(r.issued) == 2 and got.get("item again") == got.get("item"), "which is used from then on", err)
    other = durward.Sandbox(r.s.d)
    status, out, err = other.sh("curl -sS -H \"Authorization: AWS4-HMAC-SHA256 Credential=$ASSUMED/20260101/eu-west-3/"
                                "dynamodb/aws4_request, SignedHeaders=host, Signature=00\" https://%s/" % ASSUMED)
    t.ok("secret_unavailable" in out, "another sandbox of the policy has none", out, err)
    r.out.append(other.close()[1])


def rotate(t, r, box):
    r.secret = scan.canary("rotated-").decode()
    r.s.scanner.add("rotated", r.secret.encode())
    r.s.d.secret("key", r.secret)
    ok = tap.wait_for(lambda: r.client(box, "https://" + S3, "-").get("get") == "hello", 20, 0.5)
    t.ok(ok, "a rotated key signs the next requests")


def s3proxy(t, r):
    """The real server; None when it cannot be had."""
    jars = glob.glob(os.path.join(durward.clients_dir(), "jars", "*.jar"))
    if not jars or not shutil.which("java"):
        t.skip("s3proxy", "no jars of s3proxy or no java: run tests/functional/clients/setup")
        return None
    folder = t.mkdir("s3proxy")
    crt, key = r.s.d.ca.issue(REAL)
    store = os.path.join(folder, "store.p12")
    subprocess.run(["openssl", "pkcs12", "-export", "-in", crt, "-inkey", key, "-out", store,
                    "-passout", "pass:password"], check=True, capture_output=True)
    port = nginx.free_port()
    os.makedirs(os.path.join(folder, "data"))
    with open(os.path.join(folder, "conf"), "w") as f:
        f.write("\n".join((
            "s3proxy.authorization=aws-v2-or-v4", "s3proxy.identity=" + r.id,
            "s3proxy.credential=" + r.secret, "s3proxy.secure-endpoint=https://127.0.0.1:%d" % port,
            "s3proxy.keystore-path=" + store, "s3proxy.keystore-password=password",
            "jclouds.provider=filesystem", "jclouds.filesystem.basedir=%s/data" % folder, "")))
    log = open(os.path.join(folder, "log"), "wb")
    process = t.popen(["java", "-Xmx256m", "-cp", ":".join(jars), "org.gaul.s3proxy.Main",
                       "--properties", os.path.join(folder, "conf")], stdout=log, stderr=log,
                      cwd=folder)
    log.close()
    r.s.d.resolve[REAL] = "127.0.0.1:%d" % port
    r.s.rule(allow=REAL, **{"with": {"aws": "s3"}})
    return process, port, os.path.join(folder, "log")


def against_s3proxy(t, r, box, server):
    process, port, log = server
    if not tap.wait_for(lambda: scene.reachable("127.0.0.1:%d" % port), 60, 0.2):
        with open(log) as f:
            t.ok(False, "s3proxy started", tap.clip(f.read()))
        return
    got = r.client(box, "https://" + REAL, "-")
    for name, want in WANT.items():
        t.eq(got.get(name), want, "s3proxy: " + name)
    plain = subprocess.run(["curl", "-sS", "--cacert", r.s.d.ca.pem, "--resolve",
                            "%s:%d:127.0.0.1" % (REAL, port), "-o", "/dev/null", "-w",
                            "%{http_code}", "https://%s:%d/bucket-one/big" % (REAL, port)],
                           capture_output=True, timeout=30).stdout
    t.eq(plain, b"403", "s3proxy: and without a signature it refuses")


def versitygw(t, r):
    """-> its process and program; None when it cannot be had."""
    program = os.path.join(durward.clients_dir(), "bin", "versitygw")
    if not os.path.exists(program):
        t.skip("versitygw", "not there: run tests/functional/clients/setup with Go")
        return None
    folder, port = t.mkdir("versitygw"), nginx.free_port()
    crt, key = r.s.d.ca.issue(GATEWAY, "*." + GATEWAY)
    os.makedirs(os.path.join(folder, "data"))
    log = open(os.path.join(folder, "log"), "wb")
    process = t.popen([program, "--virtual-domain", GATEWAY, "--port", "127.0.0.1:%d" % port, "--access", r.id, "--secret", r.secret,
                       "--cert", crt, "--key", key, "--keep-alive", "posix", "--sidecar",
                       t.mkdir("versitygw/meta"), os.path.join(folder, "data")],
                      stdout=log, stderr=log, cwd=folder)
    log.close()
    r.s.d.resolve[GATEWAY] = r.s.d.resolve["." + GATEWAY] = "127.0.0.1:%d" % port
    r.s.rule(allow=[GATEWAY, "." + GATEWAY], **{"with": {"aws": "s3"}})
    return process, port, program, os.path.join(folder, "data")


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError as e:
        return e


def tampered(r, port, chunk):
    """A request that is signed well, past Durward, with this signature of its chunk -> status and answer."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    body = b"5;chunk-signature=%s\r\nhello\r\n0;chunk-signature=%s\r\n\r\n" % (chunk, chunk)
    req = AWSRequest("PUT", "https://%s:%d/chunks/x" % (GATEWAY, port), {
        "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x-amz-decoded-content-length": "5",
        "Content-Encoding": "aws-chunked"})
    SigV4Auth(Credentials(r.id, r.secret), "s3", "us-east-1").add_auth(req)
    argv = ["curl", "-sS", "--cacert", r.s.d.ca.pem, "--resolve", "%s:%d:127.0.0.1" % (GATEWAY, port),
            "-X", "PUT", "--data-binary", "@-", "-H", "Content-Type:", "-w", "%{http_code}", req.url]
    for name, value in req.headers.items():
        argv += ["-H", "%s: %s" % (name, value)]
    return subprocess.run(argv, input=body, capture_output=True, timeout=30).stdout.decode()


def in_chunks(t, r, box, server):
    """What jclouds and versitygw's own client sign with the placeholder, chunk by chunk."""
    _, port, program, data = server
    t.ok(tap.wait_for(lambda: scene.reachable("127.0.0.1:%d" % port), 30, 0.1), "versitygw started")
    status, out, err = box.sh("curl -sS --aws-sigv4 aws:amz:us-east-1:s3 --user $AWS_ACCESS_KEY_ID:nothing -X PUT "
                              "-w '%%{http_code}' https://%s/chunks" % GATEWAY)
    t.ok(out == "200", "curl makes a bucket", out, err)
    jars = os.path.join(durward.clients_dir(), "jars", "*")
    if shutil.which("java") and glob.glob(jars + ".jar"):
        status, out, err = box.sh(
            "java -Xshare:auto -Xmx256m -cp '%s' %s/S3Chunks.java https://%s $AWS_ACCESS_KEY_ID %s" % (
                jars, durward.INSIDE, GATEWAY, " ".join(map(str, CHUNKED))), timeout=90)
        r.out += [out, err]
        for n in CHUNKED:
            want = bytes((i * 31 + (i >> 12)) & 255 for i in range(n))
            t.ok("%d put\n" % n in out and read(os.path.join(data, "chunks", str(n))) == want,
                 "%d bytes in signed chunks: each signature is right" % n, tap.clip(out + err))
    else:
        t.skip("jclouds", "no java, or no jars: run tests/functional/clients/setup")
    own = "%s test -a %%s -s nothing -e https://%s %%s" % (program, GATEWAY)
    for name in ("SignedStreamingPayloadTrailer_success", "UnsignedStreamingPayloadTrailer_success_both_sdk_algo_and_trailer"):
        status, out, err = box.sh(own % ("$AWS_ACCESS_KEY_ID", name), timeout=60)
        r.out += [out, err]
        t.ok(status == 0 and "PASS" in out, "versitygw's client: " + name, tap.clip(out + err))
    status, out, err = box.sh(own % ("AKIAATTACKER", "SignedStreamingPayloadTrailer_success"))
    t.ok("PASS" not in out, "and not with another key id", tap.clip(out))
    out = tampered(r, port, b"0" * 64)
    t.ok("SignatureDoesNotMatch" in out, "versitygw looks: a chunk with another signature is refused", tap.clip(out))
    said = {q["credential"] for q in r.s.d.kinds("admitted") if q["authority"].endswith(GATEWAY)}
    t.eq(said, {"s3"}, "each of these went with the key")


S3CMD = "s3cmd --access_key=$AWS_ACCESS_KEY_ID --secret_key=nothing --host={host} --host-bucket={host} --ca-certs=$SSL_CERT_FILE "
RCLONE = ("export RCLONE_CONFIG_S_TYPE=s3 RCLONE_CONFIG_S_PROVIDER=Other RCLONE_CONFIG_S_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID "
          "RCLONE_CONFIG_S_SECRET_ACCESS_KEY=nothing RCLONE_CONFIG_S_ENDPOINT=https://{host} RCLONE_CONFIG_S_REGION=us-east-1; "
          "rclone --s3-upload-cutoff 5M --s3-chunk-size 5M ")
RESTIC = "RESTIC_PASSWORD=x restic --no-cache -r s3:https://{host}/chunks/restic "
PROGRAMS = {"rclone": (RCLONE + "copy --include '[ab]*' /tmp/s3 s:chunks/rclone && " + RCLONE + "check --download /tmp/s3 s:chunks/rclone && " +
                       RCLONE + "moveto s:chunks/rclone/big s:chunks/rclone/c && " + RCLONE + "cat s:chunks/rclone/c"),
            "s3cmd": (S3CMD + "--multipart-chunk-size-mb=5 put /tmp/s3/big 's3://chunks/s3cmd/a b' >&2 && " + S3CMD +
                      "cp 's3://chunks/s3cmd/a b' s3://chunks/s3cmd/c >&2 && " + S3CMD + "get s3://chunks/s3cmd/c -"),
            "restic": (RESTIC + "init >&2 && " + RESTIC + "backup /tmp/s3 >&2 && " + RESTIC + "check --read-data >&2 && " +
                       RESTIC + "dump latest /tmp/s3/big")}


def programs(t, r, box):
    """Programs of Debian's, each with what it makes of S3: parts, copies, lists, checksums."""
    box.sh("mkdir -p /tmp/s3 && head -c 12000000 /dev/urandom > /tmp/s3/big && echo x > '/tmp/s3/a b+&\u00e9'")
    for name, command in PROGRAMS.items():
        if not shutil.which(name):
            t.skip(name, name + " is not installed")
            continue
        status, out, err = box.sh("(%s) > /tmp/back; cmp /tmp/s3/big /tmp/back && echo SAME" % command.replace("{host}", GATEWAY), timeout=120)
        r.out += [out, err]
        t.ok(out.endswith("SAME\n"), name + ": what was sent in parts and copied comes back", tap.clip(out + err))


def main(t):
    sigv4.library()
    r = Run(t)
    server = s3proxy(t, r)
    gateway = versitygw(t, r)
    box = durward.Sandbox(r.s.d, binds=durward.client_binds("venv", "bin", "jars"))
    ours(t, r, box)
    roles(t, r, box)
    raw(t, r, box)
    if server:
        against_s3proxy(t, r, box, server)
        tap.stop(server[0])
    if gateway:
        in_chunks(t, r, box, gateway)
        programs(t, r, box)
        tap.stop(gateway[0])
    rotate(t, r, box)
    t.eq({x.get("credential") for x in r.s.d.kinds("admitted") if x["authority"] == S3}, {"s3"},
         "the log names the key")
    scan.scan_sandbox(t, box, r.s.scanner)
    r.out.append(box.close()[1])
    r.s.clean(r.out, "aws")


tap.run(main, timeout=240)
