"""A TLS (or plain) HTTP/1.1 origin that records exactly what reaches it.

Origin(ca, names, handler) listens on a free loopback port; handler(request, connection) answers.
With script=fn instead, fn(connection) has the connection right after the handshake and may send
any bytes. Every request is kept in .requests with its raw head."""
import hashlib
import json
import socket
import ssl
import threading
import time

CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "x-api-key", "api-key",
                      "private-token", "x-goog-api-key", "cookie")
REASON = {200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 301: "Moved",
          302: "Found", 304: "Not Modified", 307: "Temporary Redirect", 400: "Bad Request",
          401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 422: "Unprocessable Entity",
          500: "Server Error"}
KEEP = 1 << 20  # bytes of a body that are kept beside its hash


class Closed(Exception):
    """The peer ended the connection."""


class Request:
    def __init__(self, raw, conn):
        self.time = time.time()
        self.raw = raw
        self.conn_id, self.sni, self.tls = conn.id, conn.sni, conn.tls
        lines = raw[:-4].decode("latin-1").split("\r\n")
        parts = lines[0].split(" ")
        self.method, self.target = parts[0], parts[1] if len(parts) > 1 else ""
        self.version = parts[-1]
        self.headers = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers.append((name, value.strip(" \t")))
        self.path, _, self.query = self.target.partition("?")
        self.body, self.body_len, self.body_sha = b"", 0, hashlib.sha256()
        self.trailers = b""
        self.complete = False
        self.status = None

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name, default=None):
        got = self.all(name)
        return got[0] if got else default

    def credentials(self):
        """Every header that could carry a credential, in order."""
        return [(n.lower(), v) for n, v in self.headers if n.lower() in CREDENTIAL_HEADERS]

    def json(self):
        return json.loads(self.body or b"null")

    def _take(self, data):
        self.body_len += len(data)
        self.body_sha.update(data)
        if len(self.body) < KEEP:
            self.body += data[:KEEP - len(self.body)]

    @property
    def sha256(self):
        return self.body_sha.hexdigest()


class Connection:
    def __init__(self, origin, sock, number, sni):
        self.origin, self.sock, self.id, self.sni = origin, sock, number, sni
        self.tls = sock.version() if isinstance(sock, ssl.SSLSocket) else None
        self._buf = b""
        self.close_after = False

    # ---- reading ----

    def fill(self):
        data = self.sock.recv(65536)
        if not data:
            raise Closed()
        self.origin.count_bytes(len(data))
        self._buf += data

    def read_exact(self, n):
        while len(self._buf) < n:
            self.fill()
        out, self._buf = self._buf[:n], self._buf[n:]
        return out

    def read_until(self, mark, cap=1 << 20):
        while mark not in self._buf:
            if len(self._buf) > cap:
                raise Closed()
            self.fill()
        at = self._buf.index(mark) + len(mark)
        out, self._buf = self._buf[:at], self._buf[at:]
        return out

    def read_head(self):
        """The next request, its body still unread."""
        req = Request(self.read_until(b"\r\n\r\n"), self)
        self.origin.note(req)
        return req

    def read_body(self, req):
        coding = (req.get("transfer-encoding") or "").lower()
        if coding == "chunked":
            while True:
                size = int(self.read_until(b"\r\n").split(b";")[0], 16)
                if size == 0:
                    break
                req._take(self.read_exact(size))
                self.read_exact(2)
            while True:
                line = self.read_until(b"\r\n")
                if line == b"\r\n":
                    break
                req.trailers += line
        elif req.get("content-length"):
            self._read_length(req, int(req.get("content-length")))
        req.complete = True
        return req

    def _read_length(self, req, left):
        while left:
            if not self._buf:
                self.fill()
            part, self._buf = self._buf[:left], self._buf[left:]
            req._take(part)
            left -= len(part)

    # ---- writing ----

    def send(self, data):
        self.sock.sendall(data)

    def head(self, status, headers=(), version="HTTP/1.1"):
        lines = ["%s %d %s" % (version, status, REASON.get(status, "Status"))]
        lines += ["%s: %s" % h for h in headers]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def reply(self, req, status, body=b"", headers=(), kind="application/json"):
        if not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        req.status = status
        head = list(headers)
        if status not in (204, 304):
            head += [("Content-Type", kind), ("Content-Length", str(len(body)))]
        lines = ["HTTP/1.1 %d %s" % (status, REASON.get(status, "Status"))]
        lines += ["%s: %s" % h for h in head]
        data = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if req.method != "HEAD" and status not in (204, 304):
            data += body
        self.send(data)

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data) if data else b"0\r\n\r\n")

    def close(self):
        try:
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.settimeout(1)
                self.sock = self.sock.unwrap()
        except (OSError, ValueError):
            pass
        self.sock.close()


class Origin:
    def __init__(self, test, ca, names, handler=None, script=None, cert=None, tls=True,
                 min_version=None, max_version=None, host="127.0.0.1"):
        self.names = [names] if isinstance(names, str) else list(names)
        self.handler, self.script = handler, script
        self.requests, self.tls_errors = [], []
        self.bytes_in = 0
        self.accepted = 0
        self.handshakes = 0
        self._lock = threading.Lock()
        self._open = set()
        self.tls = tls  # True, False, or "either": as the first byte of a connection says
        self._ctx = self._context(ca, cert, min_version, max_version) if tls else None
        self._sock = socket.create_server((host, 0), backlog=512)
        self.port = self._sock.getsockname()[1]
        self.address = "%s:%d" % (host, self.port)
        self._stop = False
        self._others = []
        threading.Thread(target=self._accept, args=(self._sock,), daemon=True).start()
        test.cleanup(self.close)

    def also(self, sock):
        """Serve those who come to this listening socket, too (of another network namespace)."""
        self._others.append(sock)
        threading.Thread(target=self._accept, args=(sock,), daemon=True).start()

    def _context(self, ca, cert, low, high):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if cert:  # whatever it is, this side takes it
            ctx.set_ciphers("DEFAULT:@SECLEVEL=0")
        crt, key = cert or ca.issue(*self.names)
        ctx.load_cert_chain(crt, key)
        if low:
            ctx.minimum_version = low
        if high:
            ctx.maximum_version = high
        ctx.sni_callback = lambda sock, name, _ctx: setattr(sock, "durward_sni", name)
        return ctx

    # ---- bookkeeping ----

    def note(self, req):
        with self._lock:
            self.requests.append(req)

    def count_bytes(self, n):
        with self._lock:
            self.bytes_in += n

    def count(self, **want):
        """How many requests have these attributes (all, without)."""
        with self._lock:
            return sum(all(getattr(r, k) == v for k, v in want.items()) for r in self.requests)

    def wire(self):
        """All raw heads, for a scan."""
        with self._lock:
            return b"".join(r.raw for r in self.requests)

    # ---- serving ----

    def _accept(self, listening):
        while not self._stop:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(sock, self.accepted), daemon=True).start()

    def _serve(self, sock, number):
        with self._lock:
            self._open.add(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(60)
        raw, sni = sock, None
        try:
            if self._ctx and (self.tls != "either" or sock.recv(1, socket.MSG_PEEK) == b"\x16"):
                try:
                    sock = self._ctx.wrap_socket(sock, server_side=True)
                except (ssl.SSLError, OSError) as e:
                    self.tls_errors.append(str(e))
                    return
                sni = getattr(sock, "durward_sni", None)
            with self._lock:
                self.handshakes += 1
                self._open.discard(raw)
                self._open.add(sock)
            conn = Connection(self, sock, number, sni)
            if self.script:
                self.script(conn)
            else:
                self._exchanges(conn)
            conn.close()
        except (Closed, OSError, ssl.SSLError, ValueError):
            pass
        finally:
            with self._lock:
                self._open.discard(sock)
                self._open.discard(raw)
            sock.close()

    def _exchanges(self, conn):
        while not self._stop and not conn.close_after:
            req = conn.read_head()
            if (req.get("expect") or "").lower() == "100-continue":
                conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            conn.read_body(req)
            self.handler(req, conn)
            if (req.get("connection") or "").lower() == "close":
                return

    def close(self):
        self._stop = True
        for listening in [self._sock] + self._others:
            try:
                listening.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listening.close()
        with self._lock:
            todo = list(self._open)
        for s in todo:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def needs(credential, handler):
    """Answer 401 unless the one credential header is exactly this (name, value)."""
    name, value = credential

    def guarded(req, conn):
        if req.credentials() != [(name.lower(), value)]:
            conn.reply(req, 401, {"message": "Bad credentials"},
                       [("WWW-Authenticate", 'Basic realm="test"')])
            return
        handler(req, conn)
    return guarded


def one_right(origin, credential):
    """The requests that did not carry exactly that one credential."""
    want = [(credential[0].lower(), credential[1])]
    return ["%s %s %r" % (r.method, r.target, [n for n, _ in r.credentials()])
            for r in origin.requests if r.credentials() != want]
