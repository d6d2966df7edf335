#!/usr/bin/python3 -B
"""The Redis broker's two roles, conquered, with a real server outside: a front that lies to its back
or hands on what it should have refused, or has certificates made, a back that asks vault and dialer
for what is not its own. Each row is what that one must not get; after each the back serves an honest
session."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, redis, scan, seat, seat_broker, tap, wire  # noqa: E402
from harness.wire import message, text, u32  # noqa: E402

HOST, CLOSED, OWN = "cache.example.com", "closed.example.com", "keys.example.com"
REDIS = 5          # enum scheme
CLEARTEXT, SCRAM = 3, 1  # enum scram_scheme
PASSWORD = "app-password-4711"


class Bed:
    """One sandbox with rules of rediss://, and another policy beside it in the same daemon."""

    def __init__(self, t):
        self.t, self.seats = t, seat.Seats(t)
        self.d = d = durward.Durward(t)
        self.server = redis.Redis(t, d.ca, "server", HOST)
        d.secret("app_password", PASSWORD)
        d.secrets["app"] = {"redis_login": {"user": "app", "password": "app_password"}}
        self.word = scan.canary("ot-")
        d.secret("word", self.word)
        d.secrets["beside"] = {"redis_login": {"user": "beside", "password": "word"}}
        plain = {"allow_plaintext": True}
        d.resolve[HOST + ":6379"] = d.resolve[CLOSED + ":6379"] = d.resolve[OWN + ":6379"] = self.server.address
        d.policy("coder", [dict(plain, allow="redis://" + HOST, access="read-only", **{"with": {"redis_login": "app"}}),
                           dict(plain, allow="redis://" + OWN, keys=["job:*"], database=2, **{"with": {"redis_login": "app"}}),
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policy("other", [dict(plain, allow="redis://" + CLOSED, **{"with": {"redis_login": "beside"}})])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])

    def logins(self):
        """Sessions of the login's, ever; of other things it does nothing."""
        said = self.server.call("INFO", "commandstats").decode()
        calls = [line for line in said.split("\r\n") if line.startswith("cmdstat_auth:")]
        return int(calls[0].split("calls=")[1].split(",")[0]) - self.asked() if calls else 0

    def asked(self):
        """By the test itself: each of its questions logs in."""
        self.questions = getattr(self, "questions", 0) + 1
        return self.questions


class Front(seat_broker.Front):
    def honest(self):
        got = self.ask(b"")
        return True if got and got[0] == seat_broker.OPENED else got

    def ask_for(self, host, *commands):
        """-> what comes back for them on a session of its own, until it ends or PING is answered."""
        def run(ours):
            said = b""
            text = b"".join(redis.encode(*c) if isinstance(c, tuple) else c for c in commands)
            for i in range(0, len(text), 16000):
                packet = bytes([seat_broker.DATA]) + text[i:i + 16000]
                self.seat.call("sendto", ours, packet, len(packet), 0, 0, 0)
            while True:
                r, _, data = self.seat.receive(ours, 10)
                if r <= 0 or data[0] == seat_broker.END:
                    return said + b"<ended>"
                said += data[1:]
                if said.endswith(b"+PONG\r\n"):
                    return said
        return self.ask(b"", host=host, opened=run)


def front(t, bed):
    f = Front(bed, "redis", HOST, 6379)
    rows = seat.Rows(t, "front to back", f.honest)
    f.refusals(rows, (("another policy's host", "no_rule", b"", {"host": CLOSED}),
                      ("a host of no rule", "no_rule", b"", {"host": "evil.example.org"}),
                      ("an address in place of the name", "no_rule", b"", {"host": "127.0.0.1"}),
                      ("another port", "no_rule", b"", {"port": bed.server.port})))
    f.lies(rows, (("facts, of which there are none", b"x"),))
    server = bed.server
    server.call("SET", "kept", "as it was")
    server.call("SET", "job:1", "0")
    server.call("SET", "other", "theirs", database=2)
    got = f.ask_for(HOST, ("GET", "kept"), ("PING",))
    t.ok(got and b"as it was" in got[1], "what its rule allows", repr(got))
    for name, host, commands in (
            ("a command that writes", HOST, (("SET", "kept", "mine"), ("PING",))),
            ("a command that writes, in small letters", HOST, (("set", "kept", "mine"), ("PING",))),
            ("a command that writes, behind others", HOST, (("GET", "kept"), ("MULTI",), ("SET", "kept", "mine"), ("EXEC",), ("PING",))),
            ("a command of the administration", HOST, (("CONFIG", "GET", "*"), ("PING",))),
            ("a script", HOST, (("EVAL", "return redis.call('SET', 'kept', 'mine')", "0"), ("PING",))),
            ("a command of no table", HOST, (("NOSUCH", "kept"), ("PING",))),
            ("a login of another user", HOST, (("AUTH", "default", redis.ADMIN), ("PING",))),
            ("a login within HELLO", HOST, (("HELLO", "2", "AUTH", "default", redis.ADMIN), ("PING",))),
            ("the end of its login", HOST, (("RESET",), ("PING",))),
            ("a command of one line", HOST, (b"SET kept mine\r\n", ("PING",))),
            ("a command that is counted wrongly", HOST, (b"*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$5\r\nmine\r\n\r\n", ("PING",))),
            ("a word with more behind it", HOST, ((b"DURWARD-REFUSED-x", "SET", "kept", "mine"), ("PING",))),
            ("a command that writes, longer than is held", HOST, (("SET", "kept", "m" * 100000), ("PING",))),
            ("a name that is longer than is held", HOST, (("S" * 100000, "kept", "mine"), ("PING",))),
            ("a key that its rule has not", OWN, (("GET", "other"), ("PING",))),
            ("a key that its rule has not, behind a long value", OWN, (("MSET", "job:1", "v" * 100000, "other", "mine"), ("PING",))),
            ("a key that is longer than is held", OWN, (("MSET", "job:" + "x" * 100000, "v", "other", "mine"), ("PING",))),
            ("a parameter that holds a password", OWN, (("CONFIG", "GET", "requirepass"), ("PING",))),
            ("a key that its rule has not, beside one that it has", OWN, (("MGET", "job:1", "other"), ("PING",))),
            ("a key behind a keyword with a byte 0 at its end", OWN, (("XREAD", b"STREAMS\0", "other", "0"), ("PING",))),
            ("another database, behind a word with a byte 0", OWN, (("COPY", "job:1", "job:2", b"DB\0", "0"), ("PING",))),
            ("another database", OWN, (("SELECT", "0"), ("GET", "kept"), ("PING",)))):
        got = f.ask_for(host, *commands)
        said = got[1] if got and got[0] == seat_broker.OPENED else b""
        kept = (server.call("GET", "kept"), server.call("GET", "other", database=2))
        rows.row(name, said.endswith(b"<ended>") and b"theirs" not in said and b"maxmemory" not in said and
                 kept == (b"as it was", b"theirs"), repr((got, kept))[:600])
    signer(t, bed, f.seat)
    rows.refused(f.seat, seat.calls_of_all())
    f.seat.end()


def signer(t, bed, who):
    """A front's channel to the signer: names under the CA of its own sandbox, and nothing else."""
    key = subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
                         capture_output=True, check=True).stdout
    key = subprocess.run(["openssl", "pkey", "-pubout", "-outform", "DER"], input=key, capture_output=True, check=True).stdout
    m = seat.Talk(bed, seat.Rows(t, "front to signer", lambda: True), who.wire("signer"), (wire.ROOT,))

    def mint(host):
        return message(wire.MINT, u32(7), text(host), text(key))

    def refused(got):
        return got not in ("ended", None) and got[0] == wire.MINT_FAIL
    m.takes("a name to certify", lambda got: got[0] == wire.MINTED, mint(HOST))
    m.tries("a wildcard", refused, mint("*.example.com"))
    m.tries("a name in capitals", refused, mint("CACHE.example.com"))
    m.breaks("the root of a sandbox", message(wire.ROOT, text("x")))


def back(t, bed):
    b = seat_broker.Back(t, bed, "redis")
    told = b.get("app")
    t.ok(told[1] == 1 and b"redis app" in told[2], "what is told of its login is the name", repr(told))
    b.to_vault.row("its login's password, as a secret", PASSWORD.encode() not in told[2], repr(told))
    b.refused_secrets((("the file of its password", "app_password"), ("another policy's login", "beside"),
                       ("a secret of its policy's that is no login", "word"),
                       ("a secret that there is not", "nobody")), bed.word)
    t.eq(b.sign("app", CLEARTEXT, b""), 1, "its own login's password, which it has to send")
    b.refused_signatures((
        ("the password of another policy's login", "beside", CLEARTEXT, b""),
        ("the password behind a secret that is no login", "word", CLEARTEXT, b""),
        ("a proof as of PostgreSQL", "app", SCRAM, b"n=,r=abcdefghijklmnopqrstuvwx,r=x,s=eA==,i=4096,c=biws,r=x"),
        ("the password with a text beside", "app", CLEARTEXT, b"x")))
    b.refused_captures()
    b.refused_places(REDIS, 6379, (("another policy's server", CLOSED, 6379), ("a host of no rule", "evil.example.org", 6379),
                                   ("another port", HOST, bed.server.port)))
    b.refused_ends(bed)
    b.end()


def main(t):
    why = redis.missing()
    if why:
        t.skip("everything", why)
        return
    seat_broker.run(t, Bed(t), "redis", (front, back))


tap.run(main, timeout=240)
