"""A raw client that says exactly what a test wants, to a gate's explicit listener or any port."""
import base64
import json
import socket
import ssl
import time


CLASSES = {"denied": "Durward denied this request", "refused": "Durward refused this request",
           "failed": "Durward could not complete this request"}


def refusal(get, body):
    """The code of a refusal whose body, whatever its form, says what its head says; None: it is none."""
    mark = get("durward-denied")
    if not mark:
        return None
    code, number = mark.split(" ")
    kind = (get("x-proxy-error") or "").split(" ")[0]
    text, form = body.decode("latin-1"), get("content-type")
    if kind not in CLASSES or get("x-proxy-error") != "%s %s" % (kind, code):
        return "MISMATCH header %r %r" % (mark, get("x-proxy-error"))
    if form == "text/plain; charset=utf-8":
        good = text.startswith(CLASSES[kind] + ": ") and text.endswith("\n%s %s\n" % (kind, mark))
    elif form in ("application/json", "application/problem+json"):
        said = json.loads(text)
        said = said[0] if isinstance(said, list) else said  # a batch of JSON-RPC
        if said.get("result", {}).get("isError"):  # of a tool, where its rule wants that
            good = said["result"]["content"][0]["text"].endswith("(%s)" % mark) and CLASSES[kind] + ": " in text
            return code if good else "MISMATCH body %r header %r" % (body, mark)
        error = said.get("error")
        inner = error.get("data", error) if isinstance(error, dict) else said
        good = (inner["code"], inner["id"]) == (code, number) and CLASSES[kind] + ": " in text
    elif form.startswith("application/grpc"):
        good = get("grpc-message").endswith("(%s)" % mark) and not text
    else:
        good = form == "text/html; charset=utf-8" and CLASSES[kind] in text and "%s %s" % (kind, mark) in text
    return code if good else "MISMATCH body %r header %r" % (body, mark)


class Reply:
    def __init__(self, raw):
        self.raw = raw
        lines = raw[:-4].decode("latin-1").split("\r\n")
        parts = lines[0].split(" ", 2)
        self.version, self.status = parts[0], int(parts[1])
        self.headers = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers.append((name.lower(), value.strip()))
        self.body = b""
        self.chunks = []    # (time, data) as the framing of the wire shows them
        self.interim = []   # 1xx replies before it
        self.truncated = False
        self.trailers = b""

    def get(self, name, default=None):
        for n, v in self.headers:
            if n == name:
                return v
        return default

    def all(self, name):
        return [v for n, v in self.headers if n == name]

    @property
    def code(self):
        """The word of a refusal: the body's, checked against the Durward-Denied header."""
        return refusal(self.get, self.body)

    @property
    def id(self):
        return (self.get("durward-denied") or " ").split(" ")[1]


class Ended(Exception):
    """The far side closed before a whole reply."""


class Stream:
    """One connection; replies are parsed, requests are the caller's bytes."""

    def __init__(self, sock, timeout=10):
        sock.settimeout(timeout)
        self.sock = sock
        self.buf = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
        return self

    def fill(self):
        try:
            data = self.sock.recv(65536)
        except ssl.SSLEOFError:
            data = b""
        except ssl.SSLError as e:
            raise Ended("tls: %s" % e)
        except ConnectionError as e:
            raise Ended(str(e))
        if not data:
            raise Ended("end of stream")
        self.buf += data

    def until(self, mark):
        while mark not in self.buf:
            self.fill()
        at = self.buf.index(mark) + len(mark)
        out, self.buf = self.buf[:at], self.buf[at:]
        return out

    def exact(self, n):
        while len(self.buf) < n:
            self.fill()
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def head(self):
        """The head of the next final reply."""
        interim = []
        while True:
            r = Reply(self.until(b"\r\n\r\n"))
            if 100 <= r.status < 200 and r.status != 101:
                interim.append(r)
                continue
            r.interim = interim
            return r

    def body(self, r, method="GET"):
        if method == "HEAD" or r.status in (204, 304) or r.status < 200:
            return r
        try:
            if (r.get("transfer-encoding") or "").lower() == "chunked":
                while True:
                    size = int(self.until(b"\r\n").split(b";")[0], 16)
                    if size == 0:
                        break
                    data = self.exact(size)
                    r.chunks.append((time.time(), data))
                    r.body += data
                    self.exact(2)
                while True:
                    line = self.until(b"\r\n")
                    if line == b"\r\n":
                        break
                    r.trailers += line
            elif r.get("content-length") is not None:
                r.body = self.exact(int(r.get("content-length")))
            else:
                while True:
                    self.fill()
        except Ended:
            r.body += self.buf
            self.buf = b""
            r.truncated = r.get("content-length") is not None or \
                r.get("transfer-encoding") is not None
        return r

    def reply(self, method="GET"):
        return self.body(self.head(), method)

    def ask(self, data, method="GET"):
        return self.send(data).reply(method)

    def ended(self, seconds=3):
        """The far side closes within this time (bytes before it are dropped)."""
        self.sock.settimeout(seconds)
        try:
            while True:
                if not self.sock.recv(65536):
                    return True
        except (ssl.SSLEOFError, ConnectionError):
            return True
        except ssl.SSLError as e:
            return not isinstance(e, ssl.SSLWantReadError)
        except (socket.timeout, TimeoutError):
            return False

    def rest(self, seconds=3):
        """Everything until the end or until nothing comes any more."""
        self.sock.settimeout(seconds)
        try:
            while True:
                self.fill()
        except (Ended, socket.timeout, TimeoutError):
            pass
        out, self.buf = self.buf, b""
        return out

    def close(self):
        self.sock.close()


class Gate:
    """An explicit proxy listener at HOST:PORT whose leaves are issued by the CA in cafile."""

    def __init__(self, address, cafile=None, token=None, timeout=10):
        host, _, port = address.rpartition(":")
        self.where = (host.strip("[]"), int(port))
        self.cafile = cafile
        self.timeout = timeout
        self.extra = ""
        if token is not None:
            self.extra = "Proxy-Authorization: Basic %s\r\n" % base64.b64encode(
                token.encode()).decode()

    def plain(self):
        s = socket.create_connection(self.where, self.timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(s, self.timeout)

    def connect(self, authority, extra="", host=None):
        """CONNECT; -> (reply, stream)."""
        s = self.plain()
        s.send("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n" % (
            authority, host or authority, self.extra, extra))
        r = s.head()
        if r.status != 200:
            s.body(r)
        return r, s

    def wrap(self, s, context, name):
        """TLS on a stream, for a name or (None) without SNI."""
        s.sock = context.wrap_socket(s.sock, server_hostname=name)

    def tls(self, host, port=443, sni=None, alpn=None, context=None, connect=None):
        """CONNECT and a verified handshake; -> stream. sni: another name (then unverified)."""
        r, s = self.connect(connect or "%s:%d" % (host, port))
        if r.status != 200:
            raise Ended("CONNECT: %d %r" % (r.status, r.body))
        ctx = context or ssl.create_default_context(cafile=self.cafile)
        if sni is not None and sni != host:
            ctx.check_hostname = False
        if alpn:
            ctx.set_alpn_protocols(alpn)
        try:
            self.wrap(s, ctx, (sni or None) if sni is not None else host)
        except BaseException:
            s.close()
            raise
        return s

    def get(self, host, path="/", headers="", method="GET", port=443, body=b""):
        """One request on a connection of its own."""
        name = host if port == 443 else "%s:%d" % (host, port)
        if body:
            headers += "Content-Length: %d\r\n" % len(body)
        with self.tls(host, port) as s:
            return s.ask(("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (
                method, path, name, headers)).encode("latin-1") + body, method)
