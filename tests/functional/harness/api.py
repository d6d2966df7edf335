"""The daemon's API over its unix socket, on a kept connection, as a client would use it."""
import base64
import http.client
import json
import socket
import ssl
import struct
import urllib.parse

from .tap import Skip, wait_for


class Refused(Exception):
    def __init__(self, status, code, text):
        super().__init__("%d %s: %s" % (status, code, text))
        self.status, self.code = status, code


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("durward", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def wait(self, seconds):
        """Of the next request, whether connected yet or not."""
        self.timeout = seconds
        if self.sock:
            self.sock.settimeout(seconds)


class Frames:
    """An upgraded exec: frames in both directions."""

    def __init__(self, sock):
        self.sock, self.held = sock, b""

    def send(self, kind, data=b""):
        self.sock.sendall(struct.pack(">BI", kind, len(data)) + data)

    def _hold(self, n):
        while len(self.held) < n:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError("the connection ended")
            self.held += more

    def receive(self):
        """-> (kind, data). Where the time is over meanwhile, what has come of a frame is not lost."""
        self._hold(5)
        kind, n = struct.unpack(">BI", self.held[:5])
        self._hold(5 + n)
        data, self.held = self.held[5:5 + n], self.held[5 + n:]
        return kind, data

    def finish(self):
        """-> (stdout, stderr, exit frame)"""
        out = {1: bytearray(), 2: bytearray()}
        while True:
            kind, data = self.receive()
            if kind == 3:
                return bytes(out[1]), bytes(out[2]), json.loads(data)
            if kind:
                out[kind] += data

    def close(self):
        self.sock.close()


class Api:
    def __init__(self, path, timeout=40):
        self.path, self.timeout = path, timeout
        self.conn = _Connection(path, timeout)

    def taken_over(self, box, seconds=15):
        """Does it run, by what a new controller says, within that time?"""
        def runs():
            try:
                return self.show(box)["state"] == "running"
            except (OSError, Refused, EOFError, ValueError):
                self.close()
                return False
        return wait_for(runs, seconds, 0.05)

    def close(self):
        self.conn.close()

    def raw(self, method, path, body=None, headers=None, kept=True, wait=0):
        """-> (status, headers, bytes). A kept connection that the other side closed is made anew; one that failed
        otherwise is closed, and the next call finds a new one. wait: seconds that the answer itself may take."""
        conn = self.conn if kept else _Connection(self.path, self.timeout)
        for again in (True, False):
            try:
                conn.wait(self.timeout + wait)
                conn.request(method, path, body, headers or {})
                r = conn.getresponse()
                return r.status, r.headers, r.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                conn.close()
                if not again:
                    raise
            except BaseException:
                conn.close()
                raise

    def ask(self, method, path, body=None, **kw):
        """JSON both ways; Refused for anything but 2xx."""
        text = json.dumps(body) if body is not None else None
        status, _, data = self.raw(method, path, text, **kw)
        if status // 100 != 2:
            try:
                e = json.loads(data)["error"]
            except ValueError:
                e = {"code": "no_json", "message": data[:200]}
            raise Refused(status, e["code"], e["message"])
        return json.loads(data) if data else None

    # ---- sandboxes ----

    def create(self, **kw):
        return self.ask("POST", "/v1/sandboxes", kw)

    def first(self, **kw):
        """The id of a test's first sandbox: where none can be made here, its test is skipped."""
        try:
            return self.create(**kw)["id"]
        except Refused as e:
            raise Skip("no sandbox can be made here: %s" % e)

    def show(self, sid):
        return self.ask("GET", "/v1/sandboxes/" + sid)

    def delete(self, sid):
        return self.ask("DELETE", "/v1/sandboxes/" + sid)

    def list(self, query=""):
        return self.ask("GET", "/v1/sandboxes" + query)

    # ---- commands ----

    def exec(self, sid, command, **kw):
        return self.ask("POST", "/v1/sandboxes/%s/exec" % sid, dict({"command": command}, **kw),
                        wait=kw.get("timeout", 0))

    def sh(self, sid, command, **kw):
        """-> (exit code, output in bytes)"""
        r = self.exec(sid, command, encoding="base64", **kw)
        return r["exit_code"], base64.b64decode(r["output"])

    def upgrade(self, path, protocol, body=None):
        """-> (socket, what came with the head)"""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(self.timeout)
        s.connect(self.path)
        text = json.dumps(body).encode() if body is not None else b""
        s.sendall(("POST %s HTTP/1.1\r\nHost: durward\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
                   "Content-Length: %d\r\n\r\n" % (path, protocol, len(text))).encode() + text)
        held = b""
        while b"\r\n\r\n" not in held:
            more = s.recv(4096)
            if not more:
                raise EOFError("the connection ended")
            held += more
        head, _, rest = held.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            s.close()
            raise Refused(int(head.split()[1]), "not_upgraded", rest)
        return s, rest

    def frames(self, sid, **body):
        s, rest = self.upgrade("/v1/sandboxes/%s/exec" % sid, "durward-exec", body)
        f = Frames(s)
        f.held = rest
        return f

    # ---- files ----

    def _files(self, sid, tail, path, **more):
        q = urllib.parse.urlencode(dict({"path": path}, **more), quote_via=urllib.parse.quote)
        return "/v1/sandboxes/%s/%s?%s" % (sid, tail, q)

    def _bytes(self, method, target, body=None):
        status, _, data = self.raw(method, target, body)
        if status // 100 != 2:
            e = json.loads(data)["error"]
            raise Refused(status, e["code"], e["message"])
        return data

    def read(self, sid, path):
        return self._bytes("GET", self._files(sid, "files", path))

    def write(self, sid, path, data, **more):
        return self._bytes("PUT", self._files(sid, "files", path, **more), data)

    def remove(self, sid, path, **more):
        return self._bytes("DELETE", self._files(sid, "files", path, **more))

    def entries(self, sid, path):
        return json.loads(self._bytes("GET", self._files(sid, "files/list", path)))

    def tar(self, sid, path, data=None):
        return self._bytes("PUT" if data is not None else "GET", self._files(sid, "tar", path), data)

    def batch(self, sid, operations):
        return self.ask("POST", "/v1/sandboxes/%s/files/batch" % sid,
                        {"operations": operations})["results"]


class Remote:
    """One that asks over TLS, each request on a connection of its own."""

    def __init__(self, port, ca, token=None):
        self.port, self.token = port, token
        self.tls = ssl.create_default_context(cafile=ca)

    def raw(self, method, path, body=None, **headers):
        c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=self.tls)
        h = {"Host": "127.0.0.1:%d" % self.port}
        if self.token is not None:
            h["Authorization"] = "Bearer " + self.token
        h.update({k.replace("_", "-"): v for k, v in headers.items()})
        c.request(method, path, json.dumps(body) if isinstance(body, dict) else body, h)
        r = c.getresponse()
        got = r.status, r.headers, r.read()
        c.close()
        return got

    def said(self, method, path, body=None, **headers):
        """-> (status, code of the error or None)"""
        status, _, data = self.raw(method, path, body, **headers)
        return status, json.loads(data)["error"]["code"] if status >= 400 else None

    def ask(self, method, path, body=None):
        status, _, data = self.raw(method, path, body)
        if status // 100 != 2:
            raise Refused(status, "", data.decode())
        return json.loads(data) if data else None


def refused(fn, *args, **kw):
    """-> (status, code) of the refusal, or None."""
    try:
        fn(*args, **kw)
    except Refused as e:
        return e.status, e.code
    return None
