"""A ClientHello (RFC 8446 4.1.2) with any bytes where its fields go, and the first reply to it."""
import os
import struct

from harness import client

UNRECOGNIZED_NAME, DECODE_ERROR, PROTOCOL_VERSION = 112, 50, 70
NO_APPLICATION_PROTOCOL, INTERNAL_ERROR, HANDSHAKE_FAILURE = 120, 80, 40
GREASE = 0x8A8A
CIPHERS = (0xC02B, 0xC02C, 0xCCA9, 0xC009, 0x1301)


def block(data, size=2):
    return len(data).to_bytes(size, "big") + data


def extension(kind, data):
    return struct.pack(">H", kind) + block(data)


def server_name(name, kind=0):
    return extension(0, block(bytes([kind]) + block(name)))


def alpn(*names):
    return extension(16, block(b"".join(block(n, 1) for n in names)))


def hello(extensions=b"", ciphers=CIPHERS, version=0x0303):
    """The handshake message. Without key shares it can only become TLS 1.2."""
    usual = (extension(10, block(b"\0\x17\0\x18")) + extension(11, b"\1\0") +
             extension(13, block(b"\4\3\5\3\6\3\4\1\x08\4")))
    body = (struct.pack(">H", version) + os.urandom(32) + b"\0" +
            block(b"".join(struct.pack(">H", c) for c in ciphers)) + b"\1\0" +
            block(usual + extensions))
    return b"\1" + block(body, 3)


def records(message, size=16384, version=0x0301):
    """Handshake records of at most size bytes each."""
    return b"".join(b"\x16" + struct.pack(">H", version) + block(message[i:i + size])
                    for i in range(0, len(message), size))


def answer(stream):
    """("alert", number), ("hello", version), ("closed", None)"""
    try:
        kind, _, size = struct.unpack(">BHH", stream.exact(5))
        data = stream.exact(size)
    except (client.Ended, OSError):
        return "closed", None
    if kind == 21 and size == 2:
        return "alert", data[1]
    if kind == 22 and data[:1] == b"\2":
        return "hello", struct.unpack(">H", data[4:6])[0]
    return "record %d" % kind, data[:8]
