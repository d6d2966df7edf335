#!/usr/bin/python3
"""Network probes from inside the sandbox. argv[1]: a JSON list of steps; prints a list of answers.

{"do":"dns","name":…,"type":N,"server":…,"tcp":bool}   -> {"rcode":N,"answers":[text…]} or {"error"}
{"do":"tcp","host":…,"port":N,"send":text,"wait":s}    -> {"connected":bool,"got":text,"error"}
{"do":"udp","host":…,"port":N,"send":text}             -> {"sent":bool,"got":text,"error"}
{"do":"socket","family":N,"type":N,"protocol":N}       -> {"error":errno name or ""}
{"do":"tls","host":…,"address":…,"port":N,"sni":…,"send":text} -> {"handshake":bool,"got","error"}"""
import errno
import json
import os
import socket
import ssl
import struct
import sys


def name_of(e):
    return errno.errorcode.get(e.errno or 0, "") or type(e).__name__ + ": " + str(e)


def query(name, qtype):
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.strip(".").split("."))
    return struct.pack(">HHHHHH", 0x1234, 0x0100, 1, 0, 0, 0) + labels + b"\0" + \
        struct.pack(">HH", qtype, 1)


def skip_name(data, at):
    while True:
        n = data[at]
        if n == 0:
            return at + 1
        if n >= 0xC0:
            return at + 2
        at += n + 1


def parse(data):
    flags, qd, an = struct.unpack(">HHH", data[2:8])
    at = 12
    for _ in range(qd):
        at = skip_name(data, at) + 4
    answers = []
    for _ in range(an):
        at = skip_name(data, at)
        kind, _, _, size = struct.unpack(">HHIH", data[at:at + 10])
        rdata = data[at + 10:at + 10 + size]
        at += 10 + size
        if kind in (1, 28):
            answers.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6,
                                            rdata))
        else:
            answers.append("type%d" % kind)
    return {"rcode": flags & 15, "answers": answers}


def dns(m):
    server, data = m.get("server", "192.0.2.53"), query(m["name"], m.get("type", 1))
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    if m.get("tcp"):
        with socket.create_connection((server, 53), 3) as s:
            s.sendall(struct.pack(">H", len(data)) + data)
            size = struct.unpack(">H", s.recv(2))[0]
            got = b""
            while len(got) < size:
                got += s.recv(size - len(got))
            return parse(got)
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(3)
        s.connect((server, 53))
        s.send(data)
        return parse(s.recv(4096))


def read_some(s):
    got = b""
    try:
        while len(got) < 65536:
            data = s.recv(65536)
            if not data:
                break
            got += data
    except (OSError, ssl.SSLError):
        pass
    return got.decode("latin-1")


def tcp(m):
    with socket.create_connection((m["host"], m["port"]), m.get("wait", 3)) as s:
        if m.get("send"):
            s.sendall(m["send"].encode("latin-1"))
        return {"connected": True, "got": read_some(s), "peer": s.getpeername()[0]}


def udp(m):
    family = socket.AF_INET6 if ":" in m["host"] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(m.get("wait", 1))
        s.connect((m["host"], m["port"]))
        s.send(m.get("send", "x").encode())
        try:
            return {"sent": True, "got": s.recv(4096).decode("latin-1")}
        except OSError as e:
            return {"sent": True, "got": "", "error": name_of(e)}


def sock(m):
    socket.socket(m["family"], m["type"], m.get("protocol", 0)).close()
    return {"error": ""}


def tls(m):
    ctx = ssl.create_default_context()
    if m.get("sni", m["host"]) != m["host"] or m.get("insecure"):
        ctx.check_hostname = False
    if m.get("insecure"):
        ctx.verify_mode = ssl.CERT_NONE
    with socket.create_connection((m.get("address", m["host"]), m.get("port", 443)), 5) as raw:
        sni = m.get("sni", m["host"])
        with ctx.wrap_socket(raw, server_hostname=sni or None) as s:
            out = {"handshake": True, "subject": str(s.getpeercert().get("subjectAltName"))
                   if not m.get("insecure") else ""}
            s.settimeout(5)
            s.sendall(m["send"].encode("latin-1"))
            out["got"] = read_some(s)
            return out


steps = {"dns": dns, "tcp": tcp, "udp": udp, "socket": sock, "tls": tls}
answers = []
for m in json.loads(os.fdopen(0).read() if sys.argv[1] == "-" else sys.argv[1]):
    try:
        answers.append(steps[m["do"]](m))
    except (OSError, IndexError, struct.error) as e:
        answers.append({"error": name_of(e) if isinstance(e, OSError) else repr(e)})
print(json.dumps(answers))
