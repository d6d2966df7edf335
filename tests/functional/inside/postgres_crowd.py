"""Opens that many sessions at a server that says nothing, prints how many connections stood and what became of the
next, says so by /tmp/held, and holds them until there is /tmp/enough."""
import os
import select
import socket
import struct
import sys
import time

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
    open("/tmp/held", "w").close()
    for _ in range(1200):
        if os.path.exists("/tmp/enough"):
            break
        time.sleep(0.05)
