"""Opens that many sessions at a server that says nothing, holds them until the broker ends one, and
prints how many stood and what became of the next."""
import select
import socket
import struct
import sys

host, count = sys.argv[1], int(sys.argv[2])
body = struct.pack(">I", 196608) + b"user\0x\0database\0orders\0\0"
held, word = [], "held"
while len(held) < count and word == "held":
    s = socket.create_connection((host, 5432), 20)
    s.settimeout(10)
    try:
        s.sendall(struct.pack(">I", len(body) + 4) + body)
        held.append(s)
    except OSError:
        word = "closed"
    if len(held) == count and select.select([s], [], [], 10)[0]:
        try:
            said = s.recv(4096)
        except OSError:
            said = b""
        word = "broker_gone" if b"broker_gone" in said else "closed" if not said else repr(said)
        held.pop()
print(len(held), word, flush=True)
if count > 1:  # the others come meanwhile
    select.select(held, [], [], 25)
