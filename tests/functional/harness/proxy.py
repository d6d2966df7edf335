"""An upstream proxy of ours: CONNECT to origins by name, plain or in TLS, with or without Basic, or
with any answer a test thinks of. Every head it gets is kept."""
import select
import socket
import ssl
import threading
import time


class Proxy:
    """hosts: {"name:port": Origin}. credential: "Basic …" or None. answer: what it says instead of
    going on, or a function of the connection."""

    def __init__(self, test, hosts, credential=None, cert=None, family=socket.AF_INET):
        self.hosts, self.credential = hosts, credential
        self.answer = None
        self.heads, self.tls_errors = [], []
        self.accepted = 0
        self.ctx = None
        if cert:
            self.ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.ctx.load_cert_chain(*cert)
        self.sock = socket.create_server(
            ("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family, backlog=64)
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        test.cleanup(self.close)

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        sock.settimeout(20)
        try:
            if self.ctx:
                try:
                    sock = self.ctx.wrap_socket(sock, server_side=True)
                except (ssl.SSLError, OSError) as e:
                    self.tls_errors.append(str(e))
                    return
            if callable(self.answer):
                self.answer(self, sock)
                return
            head = self.head(sock)
            if self.answer is not None:
                sock.sendall(self.answer)
                sock.recv(1)
                return
            self._connect(sock, head)
        except (OSError, ValueError):
            pass
        finally:
            sock.close()

    def head(self, sock):
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            byte = sock.recv(1)
            if not byte:
                raise ValueError("closed")
            data += byte
        self.heads.append(data)
        return data

    def _connect(self, sock, head):
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        fields = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:] if x)}
        if self.credential and fields.get("proxy-authorization") != self.credential:
            sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                         b"Proxy-Authenticate: Basic realm=\"corp\"\r\nContent-Length: 3\r\n\r\nno\n")
            return
        if method != "CONNECT" or target not in self.hosts:
            sock.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        far = socket.create_connection(("127.0.0.1", self.hosts[target].port), 5)
        sock.sendall(b"HTTP/1.1 200 Connection established\r\nProxy-Agent: test\r\n\r\n")
        with far:
            self._carry(sock, far)

    @staticmethod
    def _carry(a, b):
        """Both directions, by one thread: OpenSSL allows an SSL object one call at a time."""
        waiting = {a: b"", b: b""}  # what each is still to be sent
        other = {a: b, b: a}
        reading = {a, b}
        for s in (a, b):
            s.setblocking(False)
        quiet = time.monotonic() + 20
        while (reading or any(waiting.values())) and time.monotonic() < quiet:
            readable = [s for s in reading if not waiting[other[s]]]
            ready = [s for s in readable if isinstance(s, ssl.SSLSocket) and s.pending()]
            if not ready:
                r, w, _ = select.select(readable, [s for s in waiting if waiting[s]], [], 1)
                ready = r + w
            for s in set(ready):
                quiet = time.monotonic() + 20
                Proxy._step(s, other[s], waiting, reading)

    @staticmethod
    def _step(s, far, waiting, reading):
        """Send what waits for this one, and read from it if nothing waits for the other."""
        again = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
        try:
            if waiting[s]:
                waiting[s] = waiting[s][s.send(waiting[s]):]
        except again:
            pass
        if s not in reading or waiting[far]:
            return
        try:
            data = s.recv(65536)
        except again:
            return
        if data:
            waiting[far] = data
            return
        reading.discard(s)
        try:
            far.shutdown(socket.SHUT_WR)
        except OSError:
            pass
