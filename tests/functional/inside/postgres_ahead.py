"""A client of PostgreSQL's protocol that sends ahead of the answers; prints what came of each as JSON."""
import json
import socket
import struct
import sys


class Session:
    def __init__(self):
        body = struct.pack(">I", 196608) + b"user\0x\0database\0orders\0\0"
        self.s = socket.create_connection((sys.argv[1], 5432), 20)
        self.s.settimeout(20)
        self.s.sendall(struct.pack(">I", len(body) + 4) + body)
        self.buf = b""
        self.until(1)

    def one(self):
        while len(self.buf) < 5 or len(self.buf) < 1 + struct.unpack(">I", self.buf[1:5])[0]:
            more = self.s.recv(65536)
            if not more:
                return None, b""
            self.buf += more
        n = 1 + struct.unpack(">I", self.buf[1:5])[0]
        kind, body, self.buf = self.buf[:1], self.buf[5:n], self.buf[n:]
        return kind, body

    def until(self, ready):
        """-> values of rows, errors as (code, text), until so many ReadyForQuery"""
        found = []
        while ready:
            kind, body = self.one()
            if kind is None:
                found.append("ended")
                break
            if kind == b"D":
                n = struct.unpack(">i", body[2:6])[0]
                found.append(body[6:6 + n].decode())
            if kind == b"E":
                fields = {f[:1]: f[1:].decode() for f in body.split(b"\0") if f}
                found.append((fields[b"C"], fields[b"M"]))
            if kind == b"G":
                found.append("copying")
                break
            ready -= kind == b"Z"
        return found


def message(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body


def query(sql):
    return message(b"Q", sql.encode() + b"\0")


def run(sql):
    return (message(b"P", b"\0" + sql.encode() + b"\0\0\0") + message(b"B", b"\0\0\0\0\0\0\0\0") +
            message(b"E", b"\0\0\0\0\0"))


SYNC = message(b"S")
said = {}
c = Session()
c.s.sendall(query("SELECT 'a\\b'") + query("SELECT 2") + query("SELECT 'c\\d'"))
said["ahead"] = c.until(3)
c.s.sendall(run("SELECT 1") + SYNC + run("SELECT 'e\\f'") + SYNC)
said["prepared"] = c.until(2)[1:]
c.s.sendall(run("SELECT 1") + run("SELECT 'i\\j'") + SYNC)
said["group"] = c.until(1)[1]
c.s.sendall(query("CREATE TEMP TABLE ahead (a text)"))
c.until(1)
c.s.sendall(run("COPY ahead FROM STDIN") + SYNC)
c.until(1)
c.s.sendall(message(b"d", b"one\n") + message(b"c") + SYNC)
c.until(1)
c.s.sendall(query("SELECT pg_sleep(0.1)") + query("SELECT 'g\\h'") + query("SELECT count(*) FROM ahead"))
said["copied"] = c.until(3)[1:]
c.s.sendall(query("SELECT set_it()") + query("SELECT '\\'; SELECT 1 --denied here'"))
found = c.until(2)
last = found[-1] if found else None
said["otherwise"] = last if isinstance(last, str) else last[0]
c = Session()
c.s.sendall(query("SHOW TimeZone") + run("SELECT 1") + run("BEGIN") + run("COMMIT") + SYNC + query("SELECT current_user"))
said["counted"] = c.until(3)
c.s.sendall(message(b"X"))
said["left"] = c.one()[0]
print(json.dumps(said))
