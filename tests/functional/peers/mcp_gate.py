#!/usr/bin/python3 -B
"""In a network namespace of its own, the gate of a sandbox as durward-mcp (PROGRAM, linked to in FOLDER) meets it: the
request N is answered by what standard input says (JSON: [[TYPE, BODY]...], with N for %d), and what came out is printed."""
import json
import os
import socket
import subprocess
import sys
import threading

HERE = "198.18.0.1"  # durward.internal


def take(conn):
    data = b""
    while b"\r\n\r\n" not in data:
        data += conn.recv(65536)
    head, body = data.split(b"\r\n\r\n", 1)
    length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    while length and len(body) < length[0]:
        body += conn.recv(65536)
    return json.loads(body)["id"]


def serve(listener, answers):
    for _ in answers:
        conn, _ = listener.accept()
        number = take(conn)
        kind, body = answers[number]
        body = body % number
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
            kind.encode(), len(body.encode()), body.encode()))
        conn.close()


def main():
    answers = json.load(sys.stdin)
    for words in (["link", "set", "lo", "up"], ["address", "add", HERE + "/32", "dev", "lo"]):
        subprocess.run(["ip"] + words, check=True)
    listener = socket.create_server((HERE, 80))
    server = threading.Thread(target=serve, args=(listener, answers), daemon=True)
    server.start()
    folder = os.path.join(sys.argv[2], "durward-mcp")
    os.symlink(os.path.abspath(sys.argv[1]), folder)
    asked = "".join('{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % i for i in range(len(answers)))
    r = subprocess.run([folder, "name"], input=asked, stdout=subprocess.PIPE, text=True, timeout=30, check=False)
    print(r.stdout, end="")


main()
