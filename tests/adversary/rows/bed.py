"""What every row is tried against: one daemon with an explicit listener, origins for names that a
policy allows, origins for names that it does not (they capture what must not come), and a name server
that captures every query."""
import json
import os
import random
import socket
import ssl
import struct
import threading

from harness import scene, shapes, tap

PLAIN, KEYED, RO, PATHS = ("deps.example.com", "keyed.example.com", "ro.example.com",
                           "paths.example.com")
CLEAR, ODD, OTHER = "clear.example.com", "odd.example.com", "other.example.com"
WILD, EVIL = "a.wild.example.net", "evil.example.org"
CAPTURED = (EVIL, "wild.example.net", "awild.example.net", "a.wild.example.net.evil.org",
            PLAIN + ".evil.org", "xdeps.example.com", PLAIN + ":8443", "www." + PLAIN,
            PLAIN + ":80", "xn--deps-example.com")


class Names:
    """A name server that knows .known alone (name: [IPv4 text]) and keeps what it was asked. Where it cannot be put in the
    daemon's place, .why says so."""

    def __init__(self, test):
        self.queries, self.why, self.prefix, self.known = [], None, [], {}
        if os.geteuid() != 0:
            self.why = "a mount namespace of its own takes root"
            return
        for _ in range(20):
            address = "127.%d.%d.%d" % tuple(random.randrange(1, 250) for _ in range(3))
            try:
                self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self.sock.bind((address, 53))
                break
            except OSError as e:
                self.sock.close()
                self.why = str(e)
        else:
            return
        self.why = None
        path = test.write("resolv.conf", "nameserver %s\noptions timeout:1 attempts:1\n" % address)
        self.prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c",
                       "mount --bind %s /etc/resolv.conf && exec \"$@\"" % path, "sh"]
        test.cleanup(self.sock.close)
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        try:
            while True:
                data, who = self.sock.recvfrom(4096)
                self.queries.append(data)
                self.sock.sendto(self._answer(data), who)
        except OSError:
            pass


    def _answer(self, data):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
            at += 1 + data[at]
        end, kind = at + 5, data[at + 2]
        found = self.known.get(".".join(labels).lower())
        if found is None:
            return data[:2] + b"\x81\x83" + data[4:]  # NXDOMAIN
        family = socket.AF_INET if kind == 1 else socket.AF_INET6
        packed = [socket.inet_pton(family, a) for a in found if (":" in a) == (kind == 28)]
        answers = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(p)) + p for p in packed)
        return (data[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, len(packed), 0, 0) +
                data[12:end] + answers)


class Log:
    """The audit, read once: what is new since the last look."""

    def __init__(self, durward):
        self.durward, self.at = durward, {}

    def new(self):
        found = []
        for path in self.durward.audit_files():
            with open(path, "rb") as f:
                f.seek(self.at.get(path, 0))
                for line in f:
                    if not line.endswith(b"\n"):
                        break
                    self.at[path] = self.at.get(path, 0) + len(line)
                    r = json.loads(line)
                    r["kind"] = r.get("kind") or r.get("type")
                    found.append(r)
        return found


def odd(conn):
    """An origin that answers with whatever bytes stand in .answer, then ends."""
    req = conn.read_head()
    conn.read_body(req)
    reply = conn.origin.answer
    conn.send(reply(req) if callable(reply) else reply)
    conn.close_after = True


class Bed:
    def __init__(self, test, more=None, listener=True, limits=None):
        self.test = test
        self.s = s = scene.Scene(test)
        self.d = s.d
        self.names = Names(test)
        s.d.prefix = self.names.prefix
        self.plain, self.keyed = s.plain, s.add(KEYED, shapes.echo)
        self.ro, self.paths = s.add(RO, shapes.echo), s.add(PATHS, shapes.echo)
        self.other, self.wild = s.add(OTHER, shapes.echo), s.add(WILD, shapes.echo)
        self.clear = s.add(CLEAR + ":80", shapes.echo, tls=False)
        self.odd = s.add(ODD, script=odd)
        self.odd.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.capture = s.add(EVIL, shapes.echo)
        for name in CAPTURED:
            s.d.origin(name, self.capture)
        s.rule(allow=KEYED + "/v1/**", **{"with": {"bearer": "openai"}})
        s.rule(allow=RO, access="read-only")
        s.rule(allow=PATHS + "/pub/**")
        s.rule(deny=PATHS + "/pub/secret/**")
        s.rule(deny=PATHS + "/pub/exact")
        s.rule(allow=".rebind.example.com")
        for name in (OTHER, ".wild.example.net", ODD, "http://" + CLEAR, "unresolved.example.com"):
            s.rule(allow=name)
        s.d.limits = dict({"head_seconds": 4, "idle_seconds": 6}, **(limits or {}))
        self.origins = [s.github, s.openai, s.plain, self.keyed, self.ro, self.paths, self.other,
                        self.wild, self.clear, self.odd, self.capture]
        if more:
            more(self)
        if listener:
            self.address = s.listener()
            s.d.serve()
            self.enter(s.gate(self.address, timeout=8))
        self.log = Log(s.d)

    def enter(self, gate):
        """From here on cases go in by this gate, and trust what it trusts."""
        self.gate = gate
        self.context = ssl.create_default_context(cafile=gate.cafile)
        self.loose = ssl.create_default_context(cafile=gate.cafile)
        self.loose.check_hostname = False

    def arrived(self):
        """What left so far: bytes and connections at every origin, queries at the name server."""
        return (sum(o.bytes_in for o in self.origins), sum(o.accepted for o in self.origins),
                len(self.names.queries))

    def requests(self):
        return sum(len(o.requests) for o in self.origins)

    def control(self):
        """The capture works: a name that is allowed and has no address here is asked for."""
        if self.names.why:
            self.test.skip("D2 the capturing name server", self.names.why)
            return
        r = self.gate.get("unresolved.example.com", "/")
        self.test.ok(r.status == 502 and r.code == "resolve" and self.names.queries,
                     "D3 the capturing name server is the one that is asked",
                     "%d %s %d" % (r.status, r.code, len(self.names.queries)))

    def end(self):
        hits = self.s.scanner
        self.s.clean((), "rows")
        if self.d.daemon:
            self.test.eq(self.d.stop(), 0, "the daemon ends well")
        return hits


def settle(fn, seconds=2.0):
    return tap.wait_for(fn, seconds, 0.005)
