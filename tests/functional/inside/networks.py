#!/usr/bin/python3
"""Runs inside a sandbox, beside containers with networks of their own. networks.py echo NAME: in a container, answers datagrams and
says its name and the bytes of connections at port 7000. networks.py ask: what its mapped ports answer. networks.py hold N MOST: how many of N connections to
port 7001 are carried at once, when MOST can be. networks.py other: what who is not podman gets of the keeper. Prints JSON."""
import json
import os
import resource
import select
import socket
import sys
import threading
import time


def serve(connection):
    n = 0
    for part in iter(lambda: connection.recv(1 << 16), b""):
        n += len(part)
    connection.sendall(b"%s %d\n" % (sys.argv[2].encode(), n))
    connection.close()


def echo():
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for s in (tcp, udp):
        s.bind(("0.0.0.0", 7000))
    tcp.listen(1024)

    def accept():
        while True:
            threading.Thread(target=serve, args=(tcp.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    print("ready", flush=True)
    while True:
        data, who = udp.recvfrom(65535)
        udp.sendto(data[::-1], who)


def datagram(family, where, data):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(5)
    s.sendto(data, (where, 7001))
    return s.recv(65535) == data[::-1]


def sent(where, n):
    with socket.create_connection((where, 7001), timeout=20) as s:
        s.sendall(bytes(n))
        s.shutdown(socket.SHUT_WR)
        return s.makefile().read().split()[-1]


def ask():
    return {"tcp": [sent(w, 3000000) for w in ("127.0.0.1", "::1")],
            "udp": [datagram(socket.AF_INET, "127.0.0.1", b"once"), datagram(socket.AF_INET6, "::1", b"six"),
                    datagram(socket.AF_INET, "127.0.0.1", os.urandom(60000))],
            # more clients than there are flows: the oldest one's makes room
            "clients": sum(datagram(socket.AF_INET, "127.0.0.1", b"%d" % i) for i in range(40))}


def hold():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    held, n, most = [], int(sys.argv[2]), int(sys.argv[3])
    for _ in range(n):
        try:
            held.append(socket.create_connection(("127.0.0.1", 7001), timeout=20))
        except ConnectionResetError:
            n -= 1
    poll = select.poll()
    for s in held:
        poll.register(s, select.POLLIN)
    end = time.monotonic() + 10
    while len(poll.poll(100)) < n - most and time.monotonic() < end:
        pass
    for s in held:
        try:
            s.sendall(b"abc")
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    good = 0
    for s in held:
        try:
            good += s.recv(20).split()[-1:] == [b"3"]
        except OSError:
            pass
    return {"carried": good, "then": sent("127.0.0.1", 7)}


def other():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    try:
        s.connect("/run/durward-containers/networks")
        s.send(b't{"container_id":"x","networks":{}}')
        return s.recv(100).decode()
    except OSError as e:
        return type(e).__name__


if sys.argv[1] == "echo":
    echo()
print(json.dumps({"ask": ask, "hold": hold, "other": other}[sys.argv[1]]()))
