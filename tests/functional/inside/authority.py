#!/usr/bin/python3
"""Requests from inside whose names disagree. stdin: a JSON list of
{"to": [host, port], "connect": …, "sni": …, "form": target or null, "host": …, "tls": bool}; null
leaves the step out. stdout: for each what came: ["reply", status, code], ["alert", text] or ["end"]."""
import json
import os
import socket
import ssl

ctx = ssl.create_default_context()
ctx.check_hostname = False  # the certificate is verified all the same, the name is what is tried


def head(sock):
    got = b""
    while b"\r\n\r\n" not in got:
        data = sock.recv(65536)
        if not data:
            return None
        got += data
    lines = got.decode("latin-1").split("\r\n")
    code = [x.split(" ")[1] for x in lines if x.lower().startswith("durward-denied:")]
    return ["reply", int(lines[0].split(" ")[1]), code[0] if code else None]


def attempt(m):
    with socket.create_connection(tuple(m["to"]), 5) as s:
        if m["connect"]:
            s.sendall(("CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % (
                m["connect"], m["connect"])).encode())
            r = head(s)
            if r is None or r[1] != 200:
                return r or ["end"]
        if m["tls"]:
            s = ctx.wrap_socket(s, server_hostname=m["sni"])
        s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (
            m["form"] or "/", m["host"])).encode())
        return head(s) or ["end"]


answers = []
for m in json.loads(os.fdopen(0).read()):
    try:
        answers.append(attempt(m))
    except ssl.SSLError as e:
        answers.append(["alert", (e.reason or str(e)).lower()])
    except OSError as e:
        answers.append(["end", type(e).__name__])
print(json.dumps(answers))
