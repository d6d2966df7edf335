"""Database servers on loopback, in TLS, that say a login back as they refuse it: the password itself, in the words of an error."""
import socket
import ssl
import struct

from .accepting import accepting, exactly


def postgres(s, secure):
    exactly(s, 8)
    s.sendall(b"S")
    s = secure(s)
    exactly(s, struct.unpack("!I", exactly(s, 4))[0] - 4)
    s.sendall(b"R" + struct.pack("!II", 8, 3))  # the password in clear
    exactly(s, 1)
    word = exactly(s, struct.unpack("!I", exactly(s, 4))[0] - 4).rstrip(b"\0")
    fields = b"SFATAL\0C28P01\0Mno login with \"%s\" here\0\0" % word
    s.sendall(b"E" + struct.pack("!I", len(fields) + 4) + fields)
    return s, word


def mysql(s, secure):
    def put(number, body):
        s.sendall(struct.pack("<I", len(body))[:3] + bytes([number]) + body)

    def take():
        head = exactly(s, 4)
        return exactly(s, struct.unpack("<I", head[:3] + b"\0")[0])
    has = 0x000fb20d | 0x00000800 | 0x00008000 | 0x00080000
    put(0, b"\x0a8.0.36\0" + struct.pack("<I", 7) + b"12345678\0" + struct.pack("<HBHH", has & 0xffff, 45, 2, has >> 16) +
        b"\x15" + bytes(10) + b"123456789012\0" + b"caching_sha2_password\0")
    take()
    s = secure(s)
    take()
    put(3, b"\xfecaching_sha2_password\0" + b"12345678901234567890\0")
    take()
    put(5, b"\x01\x04")  # the password itself, in TLS
    word = take().rstrip(b"\0")
    put(7, b"\xff" + struct.pack("<H", 1045) + b"#28000no login with '%s' here" % word)
    return s, word


class Telltale:
    """.address; .words: passwords that it was given."""

    def __init__(self, test, ca, host, speak):
        self.words, self.speak = [], speak
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*ca.issue(host))
        self.listener = socket.create_server(("127.0.0.1", 0))
        test.cleanup(self.listener.close)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        accepting(self.listener, self._one)

    def _one(self, s):
        try:
            s.settimeout(20)
            s, word = self.speak(s, lambda plain: self.context.wrap_socket(plain, server_side=True))
            self.words.append(word)
            s.recv(1)
        except OSError:
            pass  # they went away
        finally:
            s.close()
