#!/usr/bin/python3 -B
"""Programs of others that ask in ways of their own, each at its task inside a sandbox, transparent and with the proxy
variables: HTTP/2 in clear, offered or by prior knowledge, methods of Subversion's, a file fetched in parts, URLs inside URLs or
without a path, CONNECT as lftp and ffmpeg say it, TLS that its client ends before the reply. None of this is refused, and the
answers are those of the server. doc/clients.md has the table; --write writes it."""
import hashlib
import os
import shutil
import subprocess
import sys
import wave

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, h2, h2_clear, h2_frames, nginx, peer, scan, scene, shapes, tap  # noqa: E402

PAGE = os.path.join(durward.TOP, "doc", "clients.md")
BEGIN, END = "<!-- outsiders.t -->\n", "<!-- end of outsiders.t -->\n"
MODULES = "/usr/lib/apache2/modules"
APACHE = """ServerRoot {dir}
PidFile {dir}/pid
ErrorLog {dir}/error.log
ServerName {host}
Mutex file:{dir}
Listen 127.0.0.1:{port}
{user}
{modules}
SSLEngine on
SSLCertificateFile {crt}
SSLCertificateKeyFile {key}
<Location /svn>
DAV svn
SVNPath {dir}/repository
AuthType Basic
AuthName svn
AuthUserFile {dir}/users
Require valid-user
</Location>
"""
NEEDED = ("mpm_event", "authz_core", "authn_core", "authn_file", "authz_user", "auth_basic", "ssl", "dav", "dav_svn")
SVN = """set -e
cd $(mktemp -d); export LC_ALL=C.UTF-8; o='--non-interactive --config-dir .svn-config'; at=https://svn.example.com/svn
svn $o -q co $at wc; cd wc; echo one >f; svn -q add f; svn $o -q ci -m first; svn $o -q up
svn $o -q mkdir -m second $at/d; svn $o -q cp -m third $at/f $at/d/g; svn $o -q lock f >/dev/null; echo two >f; svn $o -q ci -m fourth
svn $o -q propset k v f; svn $o -q ci -m fifth; svn $o log -q $at | grep -c '^r'; svn $o cat $at/d/g; svn $o diff -r1:4 f | tail -2
"""
ASK = "GET /half HTTP/1.1\\r\\nHost: deps.example.com\\r\\nConnection: close\\r\\n\\r\\n"
NGINX = """cd $(mktemp -d); cat >conf <<'END'
user root;
daemon off; error_log stderr; pid pid;
events {}
http { access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server { listen unix:here; location / {
    proxy_pass https://deps.example.com; proxy_ssl_server_name on; proxy_http_version 1.1; proxy_set_header Host deps.example.com;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; } } }
END
nginx -e stderr -p "$PWD" -c "$PWD/conf" 2>log & trap "kill $!" EXIT
for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS --noproxy '*' --unix-socket here http://x/behind && exit; sleep 0.1; done; cat log; exit 1
"""
PHP = """php -r '$p = getenv("http_proxy"); $c = $p ? ["http" => ["proxy" => str_replace("http:", "tcp:", $p), "request_fulluri" => true]] : [];
echo file_get_contents("http://clear.example.com", false, stream_context_create($c)), extension_loaded("mbstring") ? "mb" : "no mb";'
"""
ERLANG = """cd $(mktemp -d); cat >ask <<'END'
#!/usr/bin/env escript
main(_) -> inets:start(),
  case os:getenv("http_proxy") of false -> ok; "http://" ++ R -> [H, P] = string:split(R, ":"), httpc:set_options([{proxy, {{H, list_to_integer(P)}, []}}]) end,
  {ok, {{_, 200, _}, _, B}} = httpc:request("http://clear.example.com?a=b"), io:put_chars(B).
END
escript ask
"""
TRIES = {
    "curl --http2": ("an offer of h2c in clear", "curl -sS --http2 http://clear.example.com/x", '"/x"'),
    "Java's HttpClient": ("the same, as it makes it by itself", "java -Xshare:auto {inside}/Clear.java http://clear.example.com/x "
                          "2>/dev/null", '"/x"'),
    "curl -p --http2-prior-knowledge": ("HTTP/2 in clear by prior knowledge", "curl -sS -p --http2-prior-knowledge -d hello "
                                        "http://h2c.example.com:8080/x", '"length": 5'),
    "nghttp": ("the same, from a host that gets a secret", "nghttp http://keyed-h2c.example.com/x", '"scheme": "http"'),
    "gRPC for Python": ("the same: an insecure channel to a collector", "{clients}/venv/bin/python {inside}/grpc_client.py "
                        "collector.example.com:4317 reflect", '"reflect": "none"'),
    "gRPC for Go": ("the same", "{clients}/bin/grpcclient collector.example.com:4317 unary x", '"unary":"octo"'),
    "svn": ("Subversion: check out, commit, copy, lock, log, diff", SVN, "5\none\n-one\n+two"),
    "aria2c": ("a file in four parts at once, from a host that gets a secret",
               "cd $(mktemp -d) && aria2c -q -x4 -s4 -k1M --no-conf https://files.example.com/big && sha256sum big | cut -c1-64", None),
    "wget": ("a download resumed, from the same host", "cd $(mktemp -d) && head -c 1000000 {work}/big >big && "
             "wget -q -c https://files.example.com/big && sha256sum big | cut -c1-64", None),
    "lftp": ("a file, by a CONNECT without Host and the whole URL in it", "cd $(mktemp -d) && lftp -c 'set net:max-retries 2; set net:timeout 10; "
             "get https://files.example.com/big' >&2 && sha256sum big | cut -c1-64", None),
    "ffmpeg": ("a film's length, by a CONNECT with the proxy's name for Host",
               "ffprobe -v error -show_entries format=format_name -of csv=p=0 https://files.example.com/tone.wav", "wav"),
    "php": ("a URL without a path, and the extensions that /etc names", PHP, '"target": "/"'),
    "Erlang's httpc": ("a URL with a query and no path", ERLANG, '"/?a=b"'),
    "nginx": ("a reverse proxy with its usual lines: Connection: upgrade in each request", NGINX, '"/behind"'),
    "socat": ("a request and the end of TLS, before the reply",
              "printf '" + ASK + "' | socat -t 10 - OPENSSL:deps.example.com:443,cafile=$SSL_CERT_FILE", '"/half"'),
    "gnutls-cli": ("the same", "printf '" + ASK + "' | gnutls-cli --no-ca-verification -p 443 deps.example.com 2>&1", '"/half"'),
    "lynx": ("a page, as its configuration in /etc has it", "lynx -dump https://files.example.com/page.html", "kept"),
    "curl": ("a URL inside a URL", "curl -sS 'https://deps.example.com/read/https://example.com//a?b=//c'",
             '"/read/https://example.com//a?b=//c"'),
}


def subversion(t, s):
    """Apache's own server of Subversion, behind TLS; None where it cannot be had."""
    if not shutil.which("svn") or not all(os.path.exists("%s/mod_%s.so" % (MODULES, m)) for m in NEEDED):
        return None
    folder, port = t.mkdir("svn"), nginx.free_port()
    subprocess.run(["svnadmin", "create", folder + "/repository"], check=True)
    made = subprocess.run(["openssl", "passwd", "-apr1", "-stdin"], input=s.openai_secret, stdout=subprocess.PIPE, check=True)
    t.write("svn/users", "me:" + made.stdout.decode())
    crt, key = s.d.ca.issue("svn.example.com")
    root = os.geteuid() == 0
    if root:
        subprocess.run(["chown", "-R", "www-data", folder], check=True)
    conf = t.write("svn/conf", APACHE.format(
        dir=folder, host="svn.example.com", port=port, crt=crt, key=key, user="User www-data\nGroup www-data" if root else "",
        modules="\n".join("LoadModule %s_module %s/mod_%s.so" % (m, MODULES, m) for m in NEEDED)))
    t.popen(["/usr/sbin/apache2", "-f", conf, "-DFOREGROUND"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    s.d.resolve["svn.example.com"] = "127.0.0.1:%d" % port
    s.rule(allow="svn.example.com/svn/**", **{"with": {"basic": {"user": "me", "password": "openai"}}})
    tap.wait_for(lambda: scene.reachable("127.0.0.1:%d" % port), 10)
    return folder + "/repository"


def collectors(t, s):
    """Who speaks HTTP/2 in clear: two that echo, the second with a secret, and gRPC's own server."""
    h2.needed()
    spoken = [h2_clear.ClearOrigin(t, h) for h in ("h2c.example.com:8080", "keyed-h2c.example.com:80")]
    for o in spoken:
        s.d.origin(o.names[0], o)
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if os.path.exists(python):
        peer.Peer(t, s, "collector.example.com:4317", [python, peer.path("grpc_server.py")], ["clear"])
    s.rule(allow=["http://h2c.example.com:8080", "http://collector.example.com:4317"])
    s.rule(allow="http://keyed-h2c.example.com", allow_plaintext=True, **{"with": {"bearer": "openai"}})
    return spoken


def missing(name, repository):
    if name == "svn":
        return None if repository else "subversion and libapache2-mod-svn are not installed"
    if name.startswith("gRPC"):
        there = os.path.exists(os.path.join(durward.clients_dir(), "venv/bin/python" if "Python" in name else "bin/grpcclient"))
        return None if there else "it was not built: run tests/functional/clients/setup"
    program = {"Java's HttpClient": "java", "Erlang's httpc": "escript", "ffmpeg": "ffprobe"}.get(name, name.split()[0])
    return None if shutil.which(program) else program + " is not installed"


def each(t, s, box, name, repository, outputs):
    """-> "yes, yes" """
    what, command, want = TRIES[name]
    said = []
    for proxy in (False, True):
        if name == "svn":
            shutil.rmtree(repository)
            subprocess.run(["svnadmin", "create", repository], check=True)
            if os.geteuid() == 0:
                subprocess.run(["chown", "-R", "www-data", repository], check=True)
        before = len(s.d.kinds("denied"))
        command = command.replace("{clients}", durward.clients_dir()).replace("{inside}", durward.INSIDE).replace("{work}", s.d.work)
        status, out, err = box.sh(command, proxy=proxy, timeout=60)
        outputs += [out, err]
        refused = s.d.kinds("denied")[before:]
        good = status == 0 and (want or s.digest) in out and not refused
        said.append("yes" if good else "NO")
        t.ok(good, "%s, %s: %s" % (name, "with proxy variables" if proxy else "transparent", what), status, out[-1500:], err[-1500:],
             *map(str, refused[:4]))
    return ", ".join(said)


def lines_of(table):
    return ["| program | task | inside |\n", "|---|---|---|\n"] + ["| %s | %s | %s |\n" % row for row in table]


def main(t):
    s = scene.Scene(t)
    clear = s.add("clear.example.com", shapes.echo, tls=False)
    s.d.resolve["clear.example.com:80"] = clear.address
    s.rule(allow="http://clear.example.com")
    spoken = collectors(t, s)
    files = h2_frames.Nginx(t, s.d.ca, "files.example.com", http2=False)
    s.d.origin("files.example.com", files)
    s.rule(allow="files.example.com", **{"with": {"bearer": "openai"}})
    big = os.urandom(6 << 20)
    s.digest = hashlib.sha256(big).hexdigest()
    for path in (os.path.join(files.www, "big"), os.path.join(s.d.work, "big")):
        with open(path, "wb") as f:
            f.write(big)
    with wave.open(os.path.join(files.www, "tone.wav"), "wb") as f:
        f.setparams((1, 2, 8000, 0, "NONE", ""))
        f.writeframes(bytes(16000))
    with open(os.path.join(files.www, "page.html"), "w", encoding="ascii") as f:
        f.write("<p>The door is <b>kept</b>.")
    repository = subversion(t, s)
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "bin"))
    table, outputs = [], []
    for name in [x for x in sys.argv[1:] if x in TRIES] or TRIES:
        why = missing(name, repository)
        if why:
            t.skip(name, why)
            continue
        table.append((name, TRIES[name][0], t.part(each, t, s, box, name, repository, outputs) or "NO"))
    tap.wait_for(lambda: files.records(), 3)
    parts = [x for x in files.records() if x["status"] == 206]
    t.ok(parts and all(x["auth"] == "Bearer " + s.openai_secret.decode() for x in files.records()),
         "files were asked for in parts, with the credential", *map(str, files.records()[:4]))
    t.ok(all(set(o.first) == {h2.PREFACE} for o in spoken), "in clear they had HTTP/2 by prior knowledge, and nothing else",
         *map(str, (o.first for o in spoken)))
    t.eq({q.get("authorization") for q in spoken[1].requests}, {"Bearer " + s.openai_secret.decode()},
         "with the credential where the rule has one")
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.clean(outputs, "outsiders")
    with open(PAGE) as f:
        page = f.read()
    before, _, rest = page.partition(BEGIN)
    there, _, after = rest.partition(END)
    if "--write" in sys.argv and len(table) == len(TRIES):
        with open(PAGE, "w") as f:
            f.write(before + BEGIN + "".join(lines_of(table)) + END + after)
    else:
        t.ok(all(x in there for x in lines_of(table)), "doc/clients.md says the same", *lines_of(table))


tap.run(main, timeout=240)
