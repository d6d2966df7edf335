"""An HTTP/2 client that says exactly what a test wants, frame by frame: hpack and hyperframe of the
client libraries, and nothing that would keep it from breaking the rules."""
import glob
import os
import socket
import ssl
import struct
import sys
import time

from . import durward
from .client import refusal

sys.path += glob.glob(os.path.join(durward.clients_dir(), "venv/lib/python3*/site-packages"))
try:
    import hpack
    from hyperframe import frame as frames
except ImportError:
    hpack = None

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = \
    range(10)
PROTOCOL_ERROR, ENHANCE_YOUR_CALM, CANCEL = 1, 11, 8


def needed():
    """No test of HTTP/2 passes by not being one."""
    if hpack is None:
        raise RuntimeError("hpack and hyperframe are not there: run tests/functional/clients/setup, or "
                           "apt-get install python3-hpack python3-hyperframe")


class Answer:
    """What came on one stream."""

    def __init__(self):
        self.status, self.headers, self.body, self.trailers = None, [], b"", None
        self.ended, self.reset, self.length = False, None, 0

    def get(self, name):
        for n, v in self.headers:
            if n == name:
                return v
        return None

    @property
    def code(self):
        """As Reply.code of harness.client."""
        return refusal(self.get, self.body)

    @property
    def over(self):
        return self.ended or self.reset is not None


class H2:
    """One connection. windows: give back what was read (a client that reads). clear: by prior knowledge, in a tunnel to
    this port or on the stream given."""

    def __init__(self, gate, host, windows=True, settings=(), timeout=10, preface=True, clear=None):
        self.scheme = "http" if clear else "https"
        if isinstance(clear, int):
            r, self.stream = gate.connect("%s:%d" % (host, clear))
            if r.status != 200:
                raise RuntimeError("CONNECT: %d %r" % (r.status, r.body))
        elif clear:
            self.stream = clear
        else:
            self.stream = gate.tls(host, alpn=["h2"], context=ssl.create_default_context(cafile=gate.cafile))
        self.sock = self.stream.sock
        if not clear and self.sock.selected_alpn_protocol() != "h2":
            raise RuntimeError("ALPN: %r" % self.sock.selected_alpn_protocol())
        self.host, self.windows, self.timeout = host, windows, timeout
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.buf, self.next, self.answers = b"", 1, {}
        self.goaway, self.closed, self.settings, self.pongs = None, False, {}, 0
        self.keep = 1 << 20
        if preface:
            self.send(PREFACE + self.raw(SETTINGS, 0, 0, b"".join(
                struct.pack("!HL", k, v) for k, v in settings)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    # ---- saying ----

    @staticmethod
    def raw(kind, flags, stream, body=b""):
        return struct.pack("!L", len(body))[1:] + struct.pack("!BBL", kind, flags, stream) + body

    def send(self, data):
        self.sock.settimeout(self.timeout)
        try:
            self.sock.sendall(data)
            return True
        except OSError:
            self.closed = True
            return False

    def frame(self, kind, flags=0, stream=0, body=b""):
        return self.send(self.raw(kind, flags, stream, body))

    def fields(self, path="/", method="GET", extra=(), authority=None, scheme=None):
        return [(":method", method), (":scheme", scheme or self.scheme), (":authority", authority or self.host),
                (":path", path)] + list(extra)

    def block(self, fields):
        return self.encoder.encode(fields)

    def open(self, fields, end=True, stream=None):
        """HEADERS of a new stream -> its id."""
        if stream is None:
            stream, self.next = self.next, self.next + 2
        self.answers[stream] = Answer()
        self.headers(stream, self.block(fields), END_STREAM if end else 0)
        return stream

    def headers(self, stream, block, flags=0):
        """A field block, in as many frames as it needs."""
        parts = [block[i:i + 16384] for i in range(0, len(block), 16384)] or [b""]
        for i, part in enumerate(parts):
            last = END_HEADERS if i == len(parts) - 1 else 0
            self.frame(CONTINUATION if i else HEADERS, last | (0 if i else flags), stream, part)

    def get(self, path="/", **kw):
        return self.open(self.fields(path, **kw))

    def together(self, paths):
        """GETs of these in one write: the last is read before anything comes of the first; -> their streams."""
        held = []
        self.send = held.append
        try:
            ids = [self.get(p) for p in paths]
        finally:
            del self.send
        self.send(b"".join(held))
        return ids

    def window(self, stream, n):
        return self.frame(WINDOW_UPDATE, 0, stream, struct.pack("!L", n))

    # ---- hearing ----

    def fill(self, seconds):
        self.sock.settimeout(max(seconds, 0.001))
        try:
            data = self.sock.recv(1 << 17)
        except (ssl.SSLWantReadError, socket.timeout, TimeoutError):
            return False
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return False
        self.buf += data
        return True

    def take(self):
        """Handle the frames that are whole."""
        while len(self.buf) >= 9:
            f, n = frames.Frame.parse_frame_header(memoryview(self.buf[:9]))
            if len(self.buf) < 9 + n:
                return
            f.parse_body(memoryview(self.buf[9:9 + n]))
            self.buf = self.buf[9 + n:]
            self.on_frame(f, n)

    def on_frame(self, f, n):
        a = self.answers.setdefault(f.stream_id, Answer())
        if isinstance(f, frames.HeadersFrame):
            fields = self.decoder.decode(f.data)
            if a.status is None:
                a.headers = fields
                a.status = int(dict(fields)[":status"])
            else:
                a.trailers = fields
            a.ended |= "END_STREAM" in f.flags
        elif isinstance(f, frames.DataFrame):
            a.length += len(f.data)
            if len(a.body) < self.keep:
                a.body += f.data
            a.ended |= "END_STREAM" in f.flags
            if self.windows and n:
                self.window(0, n)
                if not a.ended:
                    self.window(f.stream_id, n)
        elif isinstance(f, frames.RstStreamFrame):
            a.reset = f.error_code
        elif isinstance(f, frames.GoAwayFrame):
            self.goaway = f.error_code
        elif isinstance(f, frames.SettingsFrame):
            if "ACK" not in f.flags:
                self.settings = dict(f.settings)
                self.frame(SETTINGS, ACK)
        elif isinstance(f, frames.PingFrame):
            self.pongs += "ACK" in f.flags

    def until(self, fn, seconds=None):
        """Read until fn() is true, the far side closes, or time is up; -> fn()."""
        end = time.monotonic() + (seconds or self.timeout)
        self.take()
        while not fn() and not self.closed and time.monotonic() < end:
            if self.fill(min(end - time.monotonic(), 0.5)):
                self.take()
        return fn()

    def answer(self, stream, seconds=None):
        self.until(lambda: self.answers[stream].over or self.goaway, seconds)
        return self.answers[stream]

    def ask(self, path="/", **kw):
        return self.answer(self.get(path, **kw))

    def ended(self, seconds=5):
        """The far side closes within this time."""
        return self.until(lambda: self.closed, seconds)

    def alive(self):
        """A PING is answered."""
        want = self.pongs + 1
        self.frame(PING, 0, 0, b"are you?")
        return bool(self.until(lambda: self.pongs >= want, 5)) and not self.closed
