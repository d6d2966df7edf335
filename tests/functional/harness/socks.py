"""A raw SOCKS5 client (RFC 1928, RFC 1929) that says exactly what a test wants."""
import socket
import ssl
import struct

from . import client

GRANTED = b"\x05\x00\x00\x01\0\0\0\0\0\0"


def refused(code):
    """The whole answer to a request with this code."""
    return b"\x05" + bytes([code]) + b"\x00\x01\0\0\0\0\0\0"


def request(host, port=443, command=1):
    """host: a name (text or bytes), or ("192.0.2.1",) for an address as an address."""
    if isinstance(host, tuple):
        family = socket.AF_INET6 if ":" in host[0] else socket.AF_INET
        where = (b"\x04" if family == socket.AF_INET6 else b"\x01") + \
            socket.inet_pton(family, host[0])
    else:
        name = host if isinstance(host, bytes) else host.encode("latin-1")
        where = b"\x03" + bytes([len(name)]) + name
    return b"\x05" + bytes([command]) + b"\x00" + where + struct.pack("!H", port)


def login(user, password):
    return b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password


class Listener(client.Gate):
    """An explicit listener, entered with SOCKS5. token: (user, password), bytes."""

    def greet(self, methods=None):
        """A connection with its method chosen; -> (answer, stream)."""
        s = self.plain()
        if methods is None:
            methods = b"\x02" if self.login else b"\x00"
        s.send(b"\x05" + bytes([len(methods)]) + methods)
        return s.exact(2), s

    def __init__(self, address, cafile=None, token=None, timeout=10):
        super().__init__(address, cafile, None, timeout)
        self.login = token

    def enter(self, host, port=443, command=1):
        """-> (the whole answer to the request, stream)."""
        answer, s = self.greet()
        if answer == b"\x05\x02":
            s.send(login(*self.login))
            answer = s.exact(2)
            if answer != b"\x01\x00":
                return answer, s
        elif answer != b"\x05\x00":
            return answer, s
        s.send(request(host, port, command))
        return s.exact(10), s

    def tls(self, host, port=443, sni=None, alpn=None, context=None, connect=None):
        """As Gate.tls, behind a SOCKS request for `connect` or the host."""
        answer, s = self.enter(connect or host, port)
        if answer != GRANTED:
            s.close()
            raise client.Ended("SOCKS: %r" % answer)
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
