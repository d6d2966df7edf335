#!/usr/bin/python3
"""Requests through the explicit proxy of a sandbox, for so many seconds.

usage: log_noise.py flood|steady SECONDS HOST PORT PATH

flood   16 connections with request after request, each with a path of its own of 1,500 bytes below PATH
steady  one connection, a request each 20 ms

Prints JSON: how many of each status, and the slowest in ms."""
import json
import socket
import ssl
import sys
import threading
import time

PROXY = ("gate.durward.internal", 3128)


def connect(host, port):
    at = socket.getaddrinfo(*PROXY, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    raw = socket.create_connection(at, 30)
    authority = "%s:%s" % (host, port)
    raw.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority, authority)).encode())
    got = b""
    while b"\r\n\r\n" not in got:
        more = raw.recv(4096)
        if not more:
            raise OSError("closed")
        got += more
    if b" 200" not in got[:13]:
        raise OSError(got[:40].decode("latin-1"))
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(raw, server_hostname=host)


def ask(f, s, host, port, path):
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s:%s\r\n\r\n" % (path, host, port)).encode())
    status = f.readline().split()
    if len(status) < 2:
        raise OSError("closed")
    length, closes = 0, False
    for line in iter(f.readline, b"\r\n"):
        name, _, value = line.lower().partition(b":")
        if name == b"content-length":
            length = int(value)
        closes = closes or (name == b"connection" and value.strip() == b"close")
    f.read(length)
    return int(status[1]), closes


def work(until, host, port, path, pause, said, lock):
    s = f = None
    n = 0
    while time.monotonic() < until:
        begun = time.monotonic()
        try:
            if s is None:
                s = connect(host, port)
                f = s.makefile("rb")
            n += 1
            status, closes = ask(f, s, host, port, path if pause else "%s/%d%s" % (path, n, "x" * 1500))
        except OSError as e:
            status, closes = "%s" % e, True
        if closes:
            s = None
        with lock:
            said[status] = said.get(status, 0) + 1
            said["slowest"] = max(said.get("slowest", 0), int(1000 * (time.monotonic() - begun)))
        time.sleep(pause)


what, seconds, host, port, path = sys.argv[1:]
said, lock, threads = {}, threading.Lock(), []
for _ in range(16 if what == "flood" else 1):
    threads.append(threading.Thread(target=work, args=(time.monotonic() + float(seconds), host, port, path,
                                                       0 if what == "flood" else 0.02, said, lock)))
    threads[-1].start()
for t in threads:
    t.join()
print(json.dumps(said))
