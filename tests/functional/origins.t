#!/usr/bin/python3 -B
"""The harness by itself: origins, indexes, git server and clients work on loopback without the
product, and the scanner finds what it should. A test that fails here says nothing about Durward."""
import base64
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, index, nginx, origin, scan, shapes, tap  # noqa: E402


def sh(argv, env=None, stdin=b"", cwd=None):
    return subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, env=env, cwd=cwd)


def curl(authority, server, host, path, *more):
    r = sh(["curl", "-sS", "--noproxy", "*", "--cacert", authority.pem, "--resolve",
            "%s:%d:127.0.0.1" % (host, server.port), "-w", "\n%{http_code}",
            "https://%s:%d%s" % (host, server.port, path)] + list(more))
    body, _, code = r.stdout.decode().rpartition("\n")
    return int(code or 0), body, r.stderr.decode()


def rest(t, authority):
    want = ("Authorization", "Bearer abc")
    o = origin.Origin(t, authority, "api.github.com", origin.needs(want, shapes.github()))
    good = ["-H", "Authorization: Bearer abc"]
    t.eq(curl(authority, o, "api.github.com", "/user")[0], 401, "no credential is 401")
    t.eq(curl(authority, o, "api.github.com", "/user", *good)[:1], (200,), "the right one is 200")
    t.eq(curl(authority, o, "api.github.com", "/user", *good, "-H", "X-Api-Key: b")[0], 401,
         "a second credential header is 401")
    t.eq(curl(authority, o, "api.github.com", "/user", "-H", "Authorization: Bearer abd")[0], 401,
         "a wrong one is 401")
    t.eq(len(origin.one_right(o, want)), 3, "and the record tells the three wrong ones")
    code, body, _ = curl(authority, o, "api.github.com", "/repos/acme/x/issues", *good,
                         "-d", '{"title":"t"}')
    t.eq((code, json.loads(body)["number"]), (201, 2), "an issue is made")
    t.eq(o.requests[-1].body_len, 13, "and its body counted")
    t.ok(b"Bearer abd" in o.wire(), "raw heads are kept")
    t.eq(curl(authority, o, "api.github.com", "/user", "-I", *good)[0], 200, "HEAD works")


def models(t, authority):
    want = ("Authorization", "Bearer sk-x")
    o = origin.Origin(t, authority, "localhost", origin.needs(want, shapes.openai(0.05)))
    g = origin.Origin(t, authority, "localhost",
                      lambda req, conn: shapes.github()(req, conn))
    venv = os.path.join(durward.clients_dir(), "venv/bin/python")
    base = ["https://localhost:%d" % g.port, "https://localhost:%d" % o.port]
    env = {"PATH": "/usr/bin:/bin", "REQUESTS_CA_BUNDLE": authority.pem, "HOME": t.tmp,
           "SSL_CERT_FILE": authority.pem, "NODE_EXTRA_CA_CERTS": authority.pem,
           "GITHUB_TOKEN": "abc", "OPENAI_API_KEY": "sk-x"}
    if not os.path.exists(venv):
        t.skip("client libraries", "run tests/functional/clients/setup")
        return
    r = sh([venv, os.path.join(durward.INSIDE, "py_clients.py")] + base, env)
    got = json.loads(r.stdout or b"{}")
    t.eq(got.get("stream"), "The door is kept.", "Python clients work")
    t.ok(got.get("spread", 0) > 0.15, "the stream came event by event", r.stderr, str(got))
    r = sh(["node", os.path.join(durward.INSIDE, "node_clients.mjs")] + base +
           [durward.clients_dir() + "/node_modules"], env)
    got = json.loads(r.stdout or b"{}")
    t.eq(got.get("stream"), "The door is kept.", "Node clients work")
    t.ok(got.get("spread", 0) > 0.15, "the stream came event by event", r.stderr, str(got))


def indexes(t, authority):
    p = origin.Origin(t, authority, "localhost", index.pypi())
    n = origin.Origin(t, authority, "localhost")
    n.handler = index.npm("localhost:%d" % n.port)
    target = t.mkdir("packages")
    env = {"PATH": "/usr/bin:/bin", "HOME": t.tmp, "PIP_CERT": authority.pem,
           "npm_config_cafile": authority.pem,
           "NODE_EXTRA_CA_CERTS": authority.pem}
    venv = os.path.join(durward.clients_dir(), "venv/bin/python")
    r = sh([venv, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir",
            "--index-url", "https://localhost:%d/simple/" % p.port, "--target", target,
            index.NAME], env)
    t.ok(os.path.exists(target + "/acme_widget.py"), "pip installs from the index", r.stderr)
    t.write("packages/package.json", '{"name":"a","version":"1.0.0"}')
    r = sh(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-update-notifier",
            "--registry", "https://localhost:%d/" % n.port, index.NAME], env, cwd=target)
    t.ok(os.path.exists(target + "/node_modules/acme-widget/index.js"), "npm installs", r.stderr)


def git(t, authority):
    g = nginx.GitServer(t, authority, "localhost", "x-access-token", "tok")
    url = "https://x-access-token:tok@localhost:%d/acme/repo.git" % g.port
    env = dict(nginx.git_env(t), GIT_SSL_CAINFO=authority.pem)
    r = sh(["git", "clone", "-q", url.replace("x-access-token:tok@", ""), t.path("c0")], env)
    t.ok(r.returncode != 0, "clone without a credential fails")
    r = sh(["git", "clone", "-q", url, t.path("c1")], env)
    t.eq(r.returncode, 0, "clone with it works")
    t.write("c1/more", os.urandom(200000))
    for step in (["add", "."], ["commit", "-q", "-m", "more"], ["push", "-q"], ["fetch"]):
        r = sh(["git", "-C", t.path("c1")] + step, env)
    t.eq(r.returncode, 0, "push and fetch work")
    log = sh(["git", "--git-dir", g.repo, "-c", "safe.directory=*", "log", "--oneline", "main"],
             nginx.git_env(t))
    t.has(log.stdout.decode(), "more", "the push arrived")
    t.ok(any(r["auth"] == g.basic and r["status"] == 200 for r in g.records()),
         "the log has the credential", str(g.records()))


def variants(t, authority):
    for name, options, part in (("expired", {"expired": True}, "expired"),
                                ("self-signed", {"self_signed": True}, "self"),
                                ("other name", {}, "match")):
        names = ["other.example.com"] if name == "other name" else ["bad.example.com"]
        o = origin.Origin(t, authority, "bad.example.com", shapes.echo,
                          cert=authority.issue(*names, **options))
        code, _, err = curl(authority, o, "bad.example.com", "/")
        t.ok(code == 0 and part in err, "curl refuses the %s certificate" % name, err)
        t.eq(o.bytes_in, 0, "and no HTTP byte came")


def scanner(t):
    secret = scan.canary("ghp_")
    pads = [b"", b"x", b"xy"]
    cases = [("raw", secret), ("hex", secret.hex().encode()),
             ("HEX", secret.hex().upper().encode()),
             ("percent", b"".join(b"%%%02x" % b for b in secret)),
             ("utf-16le", secret.decode().encode("utf-16-le")),
             ("utf-16be", secret.decode().encode("utf-16-be"))]
    cases += [("base64 %d" % len(p), base64.b64encode(p + secret + b"tail")) for p in pads]
    cases += [("base64url %d" % len(p), base64.urlsafe_b64encode(p + secret)) for p in pads]
    for name, data in cases:
        s = scan.Scanner(k=secret)
        stream = os.urandom(5000) + data + os.urandom(5000)
        s.pieces([stream[i:i + 7] for i in range(0, len(stream), 7)], name)
        t.ok(s.hits, "the scanner finds %s across pieces" % name)
    s = scan.Scanner(k=secret)
    s.search(os.urandom(1 << 20) + secret[:-1], "noise")
    t.ok(not s.hits, "and nothing in noise")
    t.part(finder, t)
    me = scan.Scanner(k=secret)
    if os.geteuid() == 0:
        hits, _, _ = scan.scan_process(os.getpid(), me, "self")
        t.ok(any(h[1] == "raw" for h in hits), "it finds our own copy in our memory")
    else:
        t.skip("it finds our own copy in our memory", "needs root")


def finder(t):
    """Large pieces are searched by finder.c: it finds what Python finds, wherever it lies."""
    s = scan.Scanner(a=scan.canary("one-"), b=scan.canary("two-"))
    noise, needles, wrong, there = os.urandom(scan.LARGE + 64), list(s.needles), [], 0
    for n, needle in enumerate(needles):
        for at in (list(range(17)) + [len(noise) - len(needle) - k for k in range(17)] if n % 4 == 0 else (n, 40000 + n)):
            for planted in (needle, needle[:-1], needle[1:]):
                data = bytearray(noise)
                data[at:at + len(planted)] = planted
                data[30000:30036] = needles[(n + 5) % len(needles)][:36]
                want = [s.needles[x] + ("here",) for x in needles if x in data]
                there += len(want)
                if s.search(bytes(data), "here") != want:
                    wrong.append((n, at, len(planted)))
    t.ok(not wrong and there > 100, "finder.c finds the same as Python in %d cases" % there, str(wrong[:5]))


def main(t):
    authority = ca.Authority(t.path("ca"))
    rest(t, authority)
    models(t, authority)
    indexes(t, authority)
    git(t, authority)
    variants(t, authority)
    scanner(t)


tap.run(main, timeout=90)
