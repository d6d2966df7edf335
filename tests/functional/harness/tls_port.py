"""Clients of an explicit port in TLS: CONNECT and SOCKS5 inside, and TLS to the origin inside that."""
import ssl

from . import client, socks


class Layered:
    """A TLS client on top of any stream with sendall and recv (a TLS socket is one)."""

    def __init__(self, sock, context, name):
        self.sock = sock
        self.inp, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.obj = context.wrap_bio(self.inp, self.out, server_hostname=name)
        self._until(self.obj.do_handshake)

    def _flush(self):
        data = self.out.read()
        if data:
            self.sock.sendall(data)

    def _until(self, fn, *args):
        while True:
            try:
                got = fn(*args)
                self._flush()
                return got
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if data:
                    self.inp.write(data)
                else:
                    self.inp.write_eof()
            except ssl.SSLError:
                self._flush()
                raise

    def sendall(self, data):
        view = memoryview(data)
        while view:
            view = view[self._until(self.obj.write, view[:65536]):]

    def recv(self, n):
        try:
            return self._until(self.obj.read, n)
        except ssl.SSLZeroReturnError:
            return b""

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def close(self):
        self.sock.close()


class Port(client.Gate):
    """A listener in TLS; every connection is verified for `name`."""

    def __init__(self, address, cafile, name, token=None):
        super().__init__(address, cafile, token)
        self.name = name

    most = ssl.TLSVersion.TLSv1_3

    def outer(self):
        ctx = ssl.create_default_context(cafile=self.cafile)
        ctx.maximum_version = self.most
        return ctx

    def plain(self):
        s = super().plain()
        s.sock = self.outer().wrap_socket(s.sock, server_hostname=self.name)
        return s

    def wrap(self, s, context, name):
        s.sock = Layered(s.sock, context, name)


class Listener(Port, socks.Listener):
    """SOCKS5 inside it."""

    def __init__(self, address, cafile, name, token=None):
        Port.__init__(self, address, cafile, name)
        self.login = token
