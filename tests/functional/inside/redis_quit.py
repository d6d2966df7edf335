"""Asks a Redis server for a long value and says QUIT behind it, on one connection after another.
argv: host, key, how many. -> JSON, of each how many bytes came and the last reply."""
import json
import socket
import sys


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def one(host, key):
    with socket.create_connection((host, 6379), 20) as s:
        s.sendall(encode(b"GET", key) + encode(b"QUIT"))
        came = b""
        while part := s.recv(16384):
            came += part
    return [len(came), came[-5:].decode("latin-1")]


print(json.dumps([one(sys.argv[1], sys.argv[2].encode()) for _ in range(int(sys.argv[3]))]))
