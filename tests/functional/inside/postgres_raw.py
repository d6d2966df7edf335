#!/usr/bin/python3
"""Sends statements (hexadecimal, a line each) by simple query and by Parse, and says of each whether
it was refused, in a session that stays usable."""
import json
import socket
import struct
import sys


def connect():
    s = socket.create_connection((sys.argv[1], 5432), 10)
    body = b"\0\3\0\0user\0x\0database\0orders\0\0"
    s.sendall(struct.pack(">I", len(body) + 4) + body)
    until(s, b"Z")
    return s


def exactly(s, n):
    b = b""
    while len(b) < n:
        more = s.recv(n - len(b))
        if not more: raise EOFError
        b += more
    return b


def until(s, end):
    got = []
    while True:
        head = exactly(s, 5)
        body = exactly(s, struct.unpack(">I", head[1:])[0] - 4)
        got.append((head[:1], body))
        if head[:1] == b"E" and b"SFATAL" in body: raise EOFError(body)
        if head[:1] == end: return got


def message(kind, body):
    return kind + struct.pack(">I", len(body) + 4) + body


out = []
s = connect()
for line in sys.stdin:
    text = bytes.fromhex(line.strip())
    for way in ("simple", "extended"):
        if way == "simple":
            s.sendall(message(b"Q", text + b"\0"))
        else:
            s.sendall(message(b"P", b"\0" + text + b"\0\0\0") + message(b"S", b""))
        try:
            got = until(s, b"Z")
        except EOFError as e:
            out.append("closed %s" % e); s = connect(); continue
        errors = [b for k, b in got if k == b"E"]
        out.append("refused" if len(errors) == 1 and b"Mdurward: refused: " in errors[0] and b"C42501" in errors[0]
                   else "passed " + repr(got)[:200])
        if got[-1][1] != b"I": out.append("status " + repr(got[-1]))
print(json.dumps(out))