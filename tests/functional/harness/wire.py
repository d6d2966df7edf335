"""Messages between roles (lib/ipc_msg.h), for whoever sits in a role's place. Types are those of
lib/wire.h, by name: wire.INJECTOR_CHANNEL_REQUEST."""
import os
import re
import struct

from .durward import TOP

with open(os.path.join(TOP, "lib/wire.h")) as _f:
    TYPES = {n: int(v) for n, v in re.findall(r"\bW_([A-Z_]+)\s*=\s*([0-9]+)", _f.read())}
with open(os.path.join(TOP, "lib/proc.h")) as _f:  # as a role is called, and its number in W_PEER
    ROLES = {n.lower().replace("_", "-"): i for i, n in enumerate(re.findall(r"^    ROLE_(\w+)", _f.read(), re.MULTILINE))}
NAMES = {v: n for n, v in TYPES.items()}
GATHERED = 0xffff
HTTP, HTTPS = 1, 2          # enum scheme
BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_TUNNEL = 0, 1, 2, 4


def __getattr__(name):
    try:
        return TYPES[name]
    except KeyError:
        raise AttributeError(name)


def u8(v):
    return struct.pack(">B", v)


def u32(v):
    return struct.pack(">I", v & 0xffffffff)


def u64(v):
    return struct.pack(">Q", v & 0xffffffffffffffff)


def text(v):
    v = v.encode() if isinstance(v, str) else v
    return u32(len(v)) + v


def pairs(fields):
    return u32(len(fields)) + b"".join(text(a) + text(b) for a, b in fields)


def message(kind, *fields):
    return struct.pack(">HH", kind, 0) + b"".join(fields)


def gathered(*parts):
    return struct.pack(">HH", GATHERED, 0) + b"".join(
        struct.pack(">HI", kind, len(b"".join(fields))) + b"".join(fields) for kind, *fields in parts)


def messages(data):
    """-> [(type, fields)] of a datagram."""
    kind, = struct.unpack(">H", data[:2])
    if kind != GATHERED:
        return [(kind, Fields(data[4:]))]
    found, at = [], 4
    while at < len(data):
        kind, n = struct.unpack(">HI", data[at:at + 6])
        found.append((kind, Fields(data[at + 6:at + 6 + n])))
        at += 6 + n
    return found


class Fields:
    def __init__(self, data):
        self.data = data

    def take(self, n):
        if n > len(self.data):
            raise ValueError("a message is too short: %r" % self.data)
        got, self.data = self.data[:n], self.data[n:]
        return got

    def u8(self):
        return self.take(1)[0]

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def bytes(self):
        return self.take(self.u32())

    def text(self):
        return self.bytes().decode("utf-8", "replace")
