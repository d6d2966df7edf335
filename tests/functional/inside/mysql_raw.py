"""MySQL's protocol by hand. With a host: each line is a statement in hexadecimal, sent by a query and prepared; prints
"refused" for each, or what came. With a count behind it: opens that many sessions at a server that says nothing,
prints how many stood and what became of the next, and holds them until there is /tmp/enough."""
import json
import os
import select
import socket
import struct
import sys
import time

# long password and flag, a database, protocol 4.1, transactions, secure connection, plugins
CAPABILITIES = 1 | 4 | 8 | 0x200 | 0x2000 | 0x8000 | 0x80000
QUERY, PREPARE = 3, 0x16


def exactly(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def packet(s):
    head = exactly(s, 4)
    return exactly(s, int.from_bytes(head[:3], "little"))


def send(s, body, number=0):
    s.sendall(len(body).to_bytes(3, "little") + bytes([number]) + body)


def begin(host):
    """A connection that has said who it is, and waits."""
    s = socket.create_connection((host, 3306), 20)
    s.settimeout(20)
    packet(s)
    send(s, struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45) + b"anybody\0\0orders\0mysql_native_password\0", 1)
    return s


def session(host):
    s = begin(host)
    said = packet(s)
    if said[0] != 0:
        raise RuntimeError(repr(said))
    return s


def statements(host, asked):
    said, s = [], session(host)
    for statement in asked:
        for command in (QUERY, PREPARE):
            send(s, bytes([command]) + statement)
            try:
                got = packet(s)
            except EOFError:
                got = b"nothing"
            if got[:1] == b"\xff" and b"durward: refused" in got:
                said.append("refused")
                continue
            said.append("%s: %r" % (statement.decode(errors="replace"), got[:80]))
            s.close()
            s = session(host)
    return said


def crowd(host, count):
    held, word = [], "held"
    while len(held) < count and word == "held":
        try:
            held.append(begin(host))
        except (EOFError, OSError):
            word = "closed"
        if len(held) == count and select.select([held[-1]], [], [], 10)[0]:
            try:
                said = held[-1].recv(4096)
            except OSError:
                said = b""
            word = "broker_gone" if b"broker_gone" in said else "closed" if not said else repr(said)
            held.pop()
    print(len(held), word, flush=True)
    for _ in range(600 if count > 1 else 0):  # the others come meanwhile
        if os.path.exists("/tmp/enough"):
            break
        time.sleep(0.05)


if len(sys.argv) > 2:
    crowd(sys.argv[1], int(sys.argv[2]))
else:
    print(json.dumps(statements(sys.argv[1], [bytes.fromhex(line) for line in sys.stdin.read().split()])))
