#!/usr/bin/python3 -B
"""An explicit port in TLS: the client verifies its proxy, then CONNECT, absolute-form and SOCKS5 inside
it, with TLS to the origin inside TLS to the proxy. curl -x https://, Python; tokens; bulk both ways."""
import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, index, nginx, origin, scan, scene, shapes, socks, tap, tls_port  # noqa: E402

NAME = "proxy.example.com"
LOCAL = "localhost"
BIG = "big.example.com"
SIZE = 24 << 20
PLAIN_HTTP = "clear.example.com"
GIT, NPM = "github.com", "npm.example.com"
# A proxy in clear on a sandbox's own loopback, for what does not speak to one in TLS; as in doc/integrations.md.
FORWARD = """
from=$https_proxy; at=${from##*@}; login=${from#https://}; login=${login%%@*}
socat TCP-LISTEN:%d,bind=127.0.0.1,reuseaddr,fork "OPENSSL:$at,cafile=$SSL_CERT_FILE" &
export https_proxy="http://$login@127.0.0.1:%d" HTTPS_PROXY="http://$login@127.0.0.1:%d"
"""


def curl(s, *args):
    r = subprocess.run(["curl", "-sS", "--max-time", "20", "--cacert", s.ca_file(),
                        "--proxy-cacert", s.ca_file()] + list(args), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
                       env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    return r.returncode, r.stdout.decode("utf-8", "replace"), r.stderr.decode()


def big(req, conn):
    if req.path == "/down":
        conn.head(200, [("Content-Length", str(SIZE))])
        block = bytes(range(256)) * 256
        for _ in range(SIZE // len(block)):
            conn.send(block)
    else:
        conn.reply(req, 200, {"bytes": req.body_len, "sha256": req.sha256})


def clients(t, s, where, named):
    for what, proxy, args in (
            ("by its address", "https://" + where, ()),
            ("by its name", "https://%s:%s" % (NAME, named.rpartition(":")[2]),
             ("--resolve", "%s:%s:127.0.0.1" % (NAME, named.rpartition(":")[2])))):
        status, out, err = curl(s, "-x", proxy, *args, "https://api.github.com/user")
        t.ok(status == 0 and '"octo"' in out, "curl -x https://, " + what, out, err)
        status, out, err = curl(s, "-x", proxy, *args, "http://%s/there" % PLAIN_HTTP)
        t.ok(status == 0 and "/there" in out, "absolute-form inside it, " + what, out, err)
        status, out, err = curl(s, "-x", proxy, *args, "-w", "%{http_connect}",
                                "https://evil.example.com/")
        t.ok("403" in out, "a name without a rule is 403, " + what, out, err)
    status, out, err = curl(s, "-x", "https://" + named, "https://api.github.com/user")
    t.ok(status == 60, "curl refuses the named port by its address", str(status), err)
    status, out, err = curl(s, "-x", "https://" + where, "--tls-max", "1.2",
                            "https://api.github.com/user", "https://api.openai.com/v1/models")
    t.ok(status == 0 and '"octo"' in out, "TLS 1.2 inside TLS 1.3", out, err)


def inside(t, s, where):
    port, listener = tls_port.Port(where, s.ca_file(), "127.0.0.1"), tls_port.Listener(where, s.ca_file(), "127.0.0.1")
    t.eq(port.get("api.github.com", "/user").status, 200, "TLS to the origin in TLS to the proxy")
    port.most = ssl.TLSVersion.TLSv1_2
    t.eq(port.get("api.github.com", "/user").status, 200, "TLS 1.3 in TLS 1.2")
    port.most = ssl.TLSVersion.TLSv1_3
    answer, st = listener.enter("api.github.com")
    t.eq(answer, socks.GRANTED, "SOCKS5 inside TLS")
    st.sock = tls_port.Layered(st.sock, ssl.create_default_context(cafile=s.ca_file()), "api.github.com")
    t.eq(st.ask("GET /user HTTP/1.1\r\nHost: api.github.com\r\n\r\n").status, 200, "and served")
    t.eq(st.ask("GET /user HTTP/1.1\r\nHost: api.github.com\r\n\r\n").status, 200, "twice")
    st.close()
    with port.tls(BIG) as st:
        r = st.send("GET /down HTTP/1.1\r\nHost: %s\r\n\r\n" % BIG).head()
        h, got = hashlib.sha256(), 0
        while got < SIZE:
            data = st.exact(min(65536, SIZE - got))
            h.update(data)
            got += len(data)
        want = hashlib.sha256(bytes(range(256)) * (SIZE // 256)).hexdigest()
        t.eq((r.status, got, h.hexdigest()), (200, SIZE, want), "24 MiB down, whole")
        body = os.urandom(1 << 20) * (SIZE >> 20)
        r = st.ask(b"POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n" % (
            BIG.encode(), SIZE) + body)
        t.has(r.body.decode(), hashlib.sha256(body).hexdigest(), "24 MiB up, whole")


def ended_as(sock, hello, what):
    """What there is before the connection's end, which must come: nothing, or an alert."""
    sock.sendall(hello)
    sock.settimeout(5)
    got = b""
    try:
        while piece := sock.recv(65536):
            got += piece
    except ConnectionResetError:
        pass  # it did not read all of it
    return got == b"" or got[:2] == b"\x15\x03", what, repr(got)


def strangers(t, s, where):
    """Who does not speak TLS, or not to us."""
    host, _, port = where.rpartition(":")

    def count(kind):
        return len(s.d.kinds(kind))
    before = s.github.bytes_in
    with socket.create_connection((host, int(port))) as raw:
        t.ok(*ended_as(raw, b"CONNECT api.github.com:443 HTTP/1.1\r\nHost: api.github.com\r\n\r\n",
                       "CONNECT in clear gets no answer"))
    with socket.create_connection((host, int(port))) as raw:
        t.ok(*ended_as(raw, b"\x05\x04\x00\x01\x02\x03", "nor does SOCKS in clear"))
    t.ok(tap.wait_for(lambda: count("tls_refused") >= 1, 3), "and it is recorded")
    denied = count("denied")
    ctx = ssl.create_default_context(cafile=s.ca_file())
    ctx.check_hostname = False
    with socket.create_connection((host, int(port))) as raw:
        try:
            ctx.wrap_socket(raw, server_hostname="other.example.com").close()
            t.ok(False, "a handshake for another name is refused")
        except ssl.SSLError as e:
            t.has(str(e).lower().replace("_", " "), "unrecognized name",
                  "a handshake for another name is refused")
    t.ok(tap.wait_for(lambda: count("denied") == denied + 1, 3) and
         s.d.kinds("denied")[-1]["code"] == "authority_mismatch", "and recorded once")
    warnings.simplefilter("ignore", DeprecationWarning)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection((host, int(port))) as raw:
        try:
            old.wrap_socket(raw).close()
            t.ok(False, "TLS 1.1 is refused")
        except ssl.SSLError as e:
            t.has(str(e).lower().replace("_", " "), "protocol version", "TLS 1.1 is refused")
    gate = tls_port.Port(where, s.ca_file(), "127.0.0.1")
    with gate.plain() as st:
        r = st.ask("GET / HTTP/1.1\r\nHost: api.github.com\r\n\r\n")
        t.eq((r.status, r.code), (400, "bad_target"), "origin-form inside is 400")
    with gate.plain() as st:  # a third layer
        r, st2 = gate.connect("api.github.com:443")
        st2.sock = tls_port.Layered(st2.sock, ssl.create_default_context(cafile=s.ca_file()),
                           "api.github.com")
        st2.send(b"\x16\x03\x01\x00\x10" + b"x" * 16)
        t.ok(b" 400 " in st2.rest()[:16], "TLS in TLS in TLS is 400")
        st2.close()
    t.eq(s.github.bytes_in, before, "nothing of these reached the origin")


def tokens(t, s, r, where):
    t.has(r.stdout, "https://sandbox:", "durward env names a proxy in TLS")
    t.has(r.stdout, "@%s:%s" % (LOCAL, where.rpartition(":")[2]), "by the name of its certificate")
    token = r.stdout.split("https://", 1)[1].split("@")[0]
    good = tls_port.Port(where, s.ca_file(), LOCAL, token)
    t.eq(good.get("api.github.com", "/user").status, 200, "the token is served")
    answer, st = tls_port.Port(where, s.ca_file(), LOCAL).connect("api.github.com:443")
    st.close()
    t.eq((answer.status, answer.code), (407, "token_missing"), "without it 407")
    status, out, err = curl(s, "-x", "https://%s@%s:%s" % (token, LOCAL, where.rpartition(":")[2]),
                            "https://api.github.com/user")
    t.ok(status == 0 and '"octo"' in out, "curl with the address that env printed", out, err)
    path = t.write("paired.env", r.stdout, 0o644)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    node = os.environ.get("DURWARD_NODE", "node")
    url = "https://api.github.com/user"
    get = {"requests": "import requests; print(requests.get('%s', timeout=10).text)" % url,
           "httpx": "import httpx; print(httpx.get('%s', timeout=10).text)" % url,
           "urllib": "import urllib.request as u; print(u.urlopen('%s', timeout=5).read())" % url}
    paired(t, path, "curl", "curl -sS --max-time 10 " + url)
    paired(t, path, "curl, where CURL_CA_BUNDLE was set before",
           "curl -sS --max-time 10 " + url, CURL_CA_BUNDLE="/etc/ssl/certs/ca-certificates.crt")
    paired(t, path, "git", "git ls-remote https://%s/acme/repo.git" % GIT, "HEAD")
    for name in ("requests", "httpx"):
        paired(t, path, name, "%s -c \"%s\"" % (python, get[name]), needs=python)
    go = os.path.join(durward.clients_dir(), "bin/h2get")
    paired(t, path, "Go", "%s https://%s https://%s/" % (go, scene.PLAIN, scene.PLAIN), '"good":80', needs=go)
    if shutil.which("npm"):
        paired(t, path, "npm", "npm --loglevel=error --fetch-retries=0 --cache %s --registry https://%s/ view %s version" % (
            t.path("npm"), NPM, index.NAME), index.VERSION)
    if node_heeds(node):
        paired(t, path, "Node's fetch", "%s -e \"fetch('%s').then((r) => r.text()).then(console.log)\"" % (node, url))
    else:
        t.skip("Node's fetch, by the variables alone", "it heeds a proxy from Node 22.21 and 24.5 on: say DURWARD_NODE")
    # What cannot speak to a proxy in TLS at all: so it is documented, and with this it works.
    for what, command in (("Python's urllib", python + ' -c "%s"' % get["urllib"]), ("wget", "wget -qO- -T 5 -t 1 --ca-certificate=$SSL_CERT_FILE " + url)):
        p = run(path, command)
        t.ok(p.returncode != 0 and "octo" not in p.stdout, what + " cannot", p.stdout)
        if os.path.exists("/usr/bin/socat"):
            port = nginx.free_port()
            paired(t, path, what + ", by a forwarder on the loopback", FORWARD % ((port,) * 3) +
                   "until curl -so /dev/null http://127.0.0.1:%d/; do :; done\n" % port + command + "; kill $!")
        else:
            t.skip(what + ", by a forwarder", "no socat")


def node_heeds(node):
    try:
        r = subprocess.run([node, "-p", "process.versions.node"], capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        return False
    return [int(x) for x in (r.stdout or "0.0").split(".")[:2]] >= [22, 21]


def run(path, command, **env):
    return subprocess.run(["sh", "-c", "set -a; . %s; set +a; %s" % (path, command)], timeout=30, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **env})


def paired(t, path, what, command, want='"octo"', needs=None, **env):
    """A client with what `durward env` printed and nothing else."""
    what += ", by the variables alone" if "forwarder" not in what else ""
    if needs and not os.path.exists(needs):
        t.skip(what, "%s is not there: run tests/functional/clients/setup" % needs)
        return
    p = run(path, command, **env)
    t.has(p.stdout, want, what) or t.diag(p.stderr)


def main(t):
    s = scene.Scene(t)
    clear = s.add(PLAIN_HTTP, shapes.echo, tls=False)
    s.d.resolve[PLAIN_HTTP + ":80"] = s.d.resolve.pop(PLAIN_HTTP)
    s.rule(allow="http://" + PLAIN_HTTP)
    bulk = s.add(BIG, big)
    s.rule(allow=BIG)
    npm = s.add(NPM, origin.needs(s.openai_credential, index.npm(NPM)))
    s.rule(allow=NPM, **{"with": {"bearer": "openai"}})
    password = scan.canary("ghp_")
    s.scanner.add("git", password)
    s.d.secret("git", password)
    git = nginx.GitServer(t, s.d.ca, GIT, "x-access-token", password.decode())
    s.d.resolve[GIT] = git.address
    s.rule(allow=GIT + "/acme/*", git="fetch", **{"with": {"basic": {"user": "x-access-token", "password": "git"}}})
    where = "127.0.0.1:%d" % nginx.free_port()
    named = "127.0.0.1:%d" % nginx.free_port()
    wants = "127.0.0.1:%d" % nginx.free_port()
    s.d.listen += [{"https": where, "policy": "coder"},
                   {"https": named, "name": NAME, "policy": "coder"},
                   {"https": wants, "name": LOCAL}]
    s.d.serve()
    t.part(clients, t, s, where, named)
    t.part(inside, t, s, where)
    t.part(strangers, t, s, where)
    r = s.d.command("env", "--policy", "coder", "--socket", s.d.socket)
    t.part(tokens, t, s, r, wants)
    t.ok(git.records() and git.records()[-1]["auth"] == git.basic, "git's server had its credential")
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential), (npm, s.openai_credential), (clear, None),
             (bulk, None), (s.plain, None)], [r.stdout], "TLS ports", exact=False)
    for text, want in (
            ({"https": "0.0.0.0:8443"}, "name:"),
            ({"https": "10.0.0.1:8443", "policy": "coder"}, "without a token"),
            ({"http": "127.0.0.1:3128", "name": NAME}, "https"),
            ({"http": "127.0.0.1:1", "https": "127.0.0.1:2"}, "not both")):
        s.d.listen = [text]
        c = s.d.check()
        t.ok(c.returncode == 1 and want in c.stderr + c.stdout, "%s is a load error" % text,
             c.stdout, c.stderr)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
