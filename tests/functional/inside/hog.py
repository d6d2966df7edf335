#!/usr/bin/python3
"""Takes all it can of what sandboxes share, until a file says that it is enough.

usage: hog.py sockets|bodies|gets N HOST PATH STOP

sockets  N requests for a WebSocket, each of which needs a connection of its own to the origin
bodies   N requests with all of 1 MiB but its last byte
gets     N plain requests

Whoever is answered asks again. Prints JSON: how many of each status, and when all had asked, in s."""
import json
import os
import select
import socket
import ssl
import sys
import time

PROXY = ("gate.durward.internal", 3128)
BODY = 1 << 20
AGAIN = 0.1  # s between two lots of requests
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONTEXT.check_hostname = False
CONTEXT.verify_mode = ssl.CERT_NONE


def read_head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(4096)
        if not more:
            raise OSError("closed")
        got += more
    return got


def connect(host):
    at = socket.getaddrinfo(*PROXY, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    raw = socket.create_connection(at, 20)
    raw.sendall(("CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % (host, host)).encode())
    if b" 200" not in read_head(raw)[:13]:
        raise OSError("refused")
    return CONTEXT.wrap_socket(raw, server_hostname=host)


def request(what, host, path):
    head = "%s %s HTTP/1.1\r\nHost: %s\r\n" % ("POST" if what == "bodies" else "GET", path, host)
    if what == "sockets":
        return (head + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode()
    if what == "gets":
        return (head + "\r\n").encode()
    head += "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % BODY
    return head.encode() + b'{"pad":"' + b"x" * (BODY - 9)


def begin(what, host, path):
    s = connect(host)
    s.settimeout(20)
    s.sendall(request(what, host, path))
    return s


def status_of(s):
    try:
        return read_head(s).split()[1].decode()
    except (OSError, IndexError):
        return "closed"


def main(what, n, host, path, stop):
    said, begun, opened, asked = {}, time.monotonic(), {}, None
    while not os.path.exists(stop):
        while len(opened) < n and not os.path.exists(stop):
            try:
                s = begin(what, host, path)
                opened[s.fileno()] = s
            except OSError as e:
                said[str(e)] = said.get(str(e), 0) + 1
                break
            if len(opened) % 16 == 0:
                break  # hear who was answered
        if len(opened) >= n and asked is None:
            asked = round(time.monotonic() - begun, 1)
            open(stop + ".asked", "w").close()
        if asked is not None:
            time.sleep(AGAIN)
        for fd in select.select(list(opened), [], [], 0)[0]:
            s = opened.pop(fd)
            status = status_of(s)
            said[status] = said.get(status, 0) + 1
            s.close()
        if asked is None and sum(said.values()) >= n:
            asked = round(time.monotonic() - begun, 1)
            open(stop + ".asked", "w").close()
    print(json.dumps({"said": said, "open": len(opened), "asked": asked}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
