"""postgres_tls.py HOST: PostgreSQL's ways into TLS, by hand. Prints what each came to, as JSON."""
import json
import os
import socket
import ssl
import struct
import sys

HOST = sys.argv[1]
WISH = struct.pack(">II", 8, 80877103)
TEXTS = b"user\0x\0database\0orders\0\0"
STARTUP = struct.pack(">II", 8 + len(TEXTS), 196608) + TEXTS


def context(*protocols):
    c = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    if protocols:
        c.set_alpn_protocols(protocols)
    return c


def connect():
    return socket.create_connection((HOST, 5432), 20)


def rest(s):
    said = b""
    try:
        while len(said) < 4096:
            more = s.recv(4096)
            if not more:
                break
            said += more
    except OSError:
        pass
    return said.decode(errors="replace")


def direct():
    with context("postgresql").wrap_socket(connect(), server_hostname=HOST) as s:
        s.sendall(STARTUP)
        return "%s %s %s" % (s.version(), s.selected_alpn_protocol(), s.recv(1).decode())


def again():
    with connect() as s:
        s.sendall(WISH)
        if s.recv(1) != b"S":
            return "no TLS"
        with context().wrap_socket(s, server_hostname=HOST) as inner:
            inner.sendall(WISH)
            return inner.recv(1).decode()


def early():
    with connect() as s:
        s.sendall(WISH + STARTUP)
        return rest(s)


def clear():
    with connect() as s:
        s.sendall(WISH)
        s.recv(1)
        s.sendall(STARTUP)
        return rest(s)


def other():
    try:
        with context("http/1.1").wrap_socket(connect(), server_hostname=HOST):
            return "taken"
    except (ssl.SSLError, OSError):
        return "refused"


def untrusting():
    try:
        with ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(connect(), server_hostname=HOST):
            return "taken"
    except ssl.SSLError as e:
        return e.reason


print(json.dumps({f.__name__: f() for f in (direct, again, early, clear, other, untrusting)}))
