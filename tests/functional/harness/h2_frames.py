"""HTTP/2 origins: nghttpd and nginx as they are, and one of ours that says any frames a test wants.

Frames are (type, flags, stream, payload); heads are written without compression (RFC 7541 literals
without indexing), so that nothing here hides what goes over the wire."""
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess

from . import nginx, tap
from .accepting import accepting

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _number(n, bits):
    most = (1 << bits) - 1
    if n < most:
        return bytes([n])
    out, n = bytes([most]), n - most
    while n >= 128:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def block(*fields):
    """A field block of literals."""
    out = b""
    for name, value in fields:
        name, value = (x if isinstance(x, bytes) else x.encode() for x in (name, value))
        out += b"\0" + _number(len(name), 7) + name + _number(len(value), 7) + value
    return out


def head(stream, status=200, fields=(), flags=END_HEADERS):
    return frame(HEADERS, flags, stream, block((":status", str(status)), *fields))


class Peer:
    """The origin's end of one connection."""

    def __init__(self, sock, number):
        self.sock, self.id, self.buf = sock, number, b""
        self.seen = []  # (kind, flags, stream, length) of each frame that came

    def send(self, data):
        self.sock.sendall(data)

    def exact(self, n):
        while len(self.buf) < n:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("end")
            self.buf += data
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def read(self):
        top = self.exact(9)
        n = int.from_bytes(top[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", top[3:])
        body = self.exact(n)
        self.seen.append((kind, flags, stream & 0x7fffffff, n))
        return kind, flags, stream & 0x7fffffff, body

    def request(self, answer_settings=True):
        """Until the next request's HEADERS; -> its stream."""
        while True:
            kind, flags, stream, _ = self.read()
            if kind == SETTINGS and not flags & ACK and answer_settings:
                self.send(frame(SETTINGS, ACK))
            if kind == HEADERS:
                return stream


class FrameOrigin:
    """script(peer) runs for each connection, after the handshake, with the preface read."""

    def __init__(self, test, ca, host, script, alpn=("h2", "http/1.1")):
        self.script, self.errors, self.peers = script, [], []
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(*ca.issue(host))
        if alpn:
            ctx.set_alpn_protocols(list(alpn))
        self.ctx, self.names = ctx, [host]
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        test.cleanup(self.close)
        accepting(self.listener, self._serve)

    def close(self):
        self.listener.close()

    def _serve(self, sock):
        try:
            sock.settimeout(20)
            sock = self.ctx.wrap_socket(sock, server_side=True)
            peer = Peer(sock, len(self.peers))
            self.peers.append(peer)
            if sock.selected_alpn_protocol() == "h2" and peer.exact(len(PREFACE)) != PREFACE:
                self.errors.append("no preface")
            self.script(peer)
        except (OSError, ConnectionError):
            pass
        finally:
            sock.close()


def _up(process, port):
    def fn():
        if process.poll() is not None:
            return True
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    tap.wait_for(fn, 10)
    return process.poll() is None


class Nghttpd:
    """nghttpd with a document root; its verbose output tells connections and frames."""

    def __init__(self, test, ca, host, *options):
        exe = shutil.which("nghttpd", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if exe is None:
            raise tap.Skip("nghttpd is not installed (nghttp2-server)")
        name = "nghttpd-" + host
        self.www, self.names = test.mkdir(name), [host]
        crt, key = ca.issue(host)
        self.log = test.path(name + ".log")
        for _ in range(5):
            self.port = nginx.free_port()
            with open(self.log, "wb") as log:
                self.process = test.popen([exe, "-v", "-a", "127.0.0.1", "-d", self.www, *options,
                                           str(self.port), key, crt], stdout=log, stderr=log)
            if _up(self.process, self.port):
                break
        self.address = "127.0.0.1:%d" % self.port

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def count(self, what):
        return self.text().count(what)

    def connections(self):
        """Those on which a request came, by number."""
        return {line.split("]")[0][4:] for line in self.text().splitlines()
                if line.startswith("[id=") and "recv HEADERS" in line}


CONF = """
daemon off;
worker_processes 1;
error_log {dir}/error.log warn;
pid {dir}/nginx.pid;
{user}
events {{ worker_connections 1024; }}
http {{
    log_format t escape=json '{{"uri":"$request_uri","status":$status,"http":"$server_protocol",'
        '"reused":"$ssl_session_reused","connection":$connection,"sni":"$ssl_server_name",'
        '"length":"$content_length","auth":"$http_authorization","te":"$http_te"}}';
    access_log {dir}/access.log t;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    client_max_body_size 256m;
    ssl_session_cache shared:s:1m;
    server {{
        listen 127.0.0.1:{port} ssl{http2};
        server_name {name};
        ssl_certificate {crt};
        ssl_certificate_key {key};
        root {dir}/www;
        {more}
        location / {{ }}
    }}
}}
"""


class Nginx:
    """nginx with http2 and files; its access log tells connection and TLS resumption."""

    def __init__(self, test, ca, host, more="", http2=True):
        if not os.access("/usr/sbin/nginx", os.X_OK):
            raise tap.Skip("nginx is not installed")
        name = "nginx-" + host
        self.dir, self.names = test.mkdir(name), [host]
        self.www = test.mkdir(name + "/www")
        crt, key = ca.issue(host)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "www-data", self.dir], check=True)
        for _ in range(5):
            port = nginx.free_port()
            conf = test.write(name + "/nginx.conf", CONF.format(
                dir=self.dir, name=host, crt=crt, key=key, port=port, more=more, http2=" http2" if http2 else "",
                user="user www-data;" if os.geteuid() == 0 else ""))
            self.process = test.popen(
                ["/usr/sbin/nginx", "-c", conf, "-e", self.dir + "/error.log", "-p", self.dir],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if _up(self.process, port):
                break
        self.address = "127.0.0.1:%d" % port

    def records(self):
        with open(os.path.join(self.dir, "access.log")) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
