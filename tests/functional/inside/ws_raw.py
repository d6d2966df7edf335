"""A WebSocket client that says exactly what a test wants. stdin: a JSON list of cases
{name, host, path, head, fields, steps}; stdout: a JSON list of what came back. Steps: [opcode, fin, text]
is a masked frame; {"raw": hex} are bytes; {"cut": [n, ...], "op": o, "text": t} is one message in
fragments cut there; {"pieces": n, "op": o, "text": t} one frame in TLS records of n bytes. {P} in a text
is the placeholder in PLACEHOLDER, {Q} the one in STRANGER."""
import json
import os
import socket
import ssl
import struct
import sys

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
MASK = b"\x37\xfa\x21\x3d"
FIELDS = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
          "Sec-WebSocket-Key: " + KEY + "\r\n")
ctx = ssl.create_default_context()


def payload(text):
    text = text.replace("{P}", os.environ.get("PLACEHOLDER", "")).replace(
        "{Q}", os.environ.get("STRANGER", ""))
    return text.encode("latin-1")


def frame(op, fin, data):
    n = len(data)
    head = bytes([(0x80 if fin else 0) | op])
    if n < 126:
        head += bytes([0x80 | n])
    elif n < 65536:
        head += struct.pack(">BH", 0xfe, n)
    else:
        head += struct.pack(">BQ", 0xff, n)
    return head + MASK + bytes(b ^ MASK[i % 4] for i, b in enumerate(data))


def send(s, step):
    if isinstance(step, list):
        s.sendall(frame(step[0], step[1], payload(step[2])))
    elif "raw" in step:
        s.sendall(bytes.fromhex(step["raw"]))
    elif "pieces" in step:
        data = frame(step["op"], True, payload(step["text"]))
        for i in range(0, len(data), step["pieces"]):
            s.sendall(data[i:i + step["pieces"]])
    else:
        data, at, op = payload(step["text"]), 0, step["op"]
        for cut in step["cut"] + [len(data)]:
            s.sendall(frame(op, cut == len(data), data[at:cut]))
            at, op = cut, 0


class Reader:
    def __init__(self, s):
        self.s, self.buf = s, b""

    def take(self, n):
        while len(self.buf) < n:
            data = self.s.recv(65536)
            if not data:
                raise EOFError
            self.buf += data
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def head(self):
        while b"\r\n\r\n" not in self.buf:
            data = self.s.recv(65536)
            if not data:
                raise EOFError
            self.buf += data
        head, _, self.buf = self.buf.partition(b"\r\n\r\n")
        return head.decode("latin-1").split("\r\n")

    def frame(self):
        a, b = self.take(2)
        n = b & 0x7f
        if n > 125:
            n = int.from_bytes(self.take(2 if n == 126 else 8), "big")
        return [a & 0x0f, bool(a & 0x80), bool(a & 0x70 or b & 0x80), self.take(n).decode("latin-1")]


def closes(step):
    return isinstance(step, list) and step[0] == 8


def play(case):
    out = {"name": case["name"], "frames": [], "end": None, "status": None}
    with socket.create_connection((case["host"], 443), 10) as raw, \
            ctx.wrap_socket(raw, server_hostname=case["host"]) as s:
        s.settimeout(case.get("seconds", 10))
        r = Reader(s)
        head = case.get("head", "GET %s HTTP/1.1\r\nHost: {H}\r\n" % case["path"])
        head = (head + case.get("fields", FIELDS) + case.get("more", "") + "\r\n").replace(
            "{H}", case["host"])
        try:
            s.sendall(payload(head) + b"".join(bytes.fromhex(x) for x in case.get("early", [])))
            lines = r.head()
            out["status"] = int(lines[0].split(" ")[1])
            out["head"] = lines[1:]
            if out["status"] == 101:
                for step in case.get("steps", ()):
                    send(s, step)
                while True:
                    f = r.frame()
                    out["frames"].append(f)
                    if f[0] == 8:
                        out["close"] = int.from_bytes(f[3].encode("latin-1")[:2], "big")
                        if not case.get("steps") or not closes(case["steps"][-1]):
                            s.sendall(frame(8, True, f[3].encode("latin-1")[:2]))
                        break
            while True:
                data = s.recv(65536)
                if not data:
                    out["end"] = "eof"
                    break
                r.buf += data
        except (EOFError, ssl.SSLEOFError):
            out["end"] = "eof"
        except TimeoutError:
            out["end"] = "timeout"
        except OSError as e:
            out["end"] = "reset" if isinstance(e, ConnectionError) else str(e)
        out["rest"] = r.buf.decode("latin-1")
    return out


def safe(case):
    try:
        return play(case)
    except Exception as e:  # one case that fails must not hide the others
        return {"name": case["name"], "frames": [], "end": repr(e), "status": None, "rest": ""}


print(json.dumps([safe(c) for c in json.load(sys.stdin)]))
