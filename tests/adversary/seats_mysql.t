#!/usr/bin/python3 -B
"""The MySQL broker's two roles, conquered, with a real server outside: a front that lies to its back
or hands on what it should have refused, a back that asks vault and dialer for what is not its own.
Each row is what that one must not get; after each the back serves an honest session."""
import errno
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, mysql, scan, seat, seat_broker, tap  # noqa: E402

HOST, NEWER, CLOSED = "db.example.com", "newer.example.com", "closed.example.com"
MYSQL = 6                                    # enum scheme
NATIVE, SHA2, ED25519, CLEARTEXT = 1, 2, 3, 4  # enum mysql_scheme
QUERY, PREPARE, CHOSEN = 3, 0x16, 0x10482
SETUP = """
CREATE DATABASE orders; CREATE DATABASE other;
CREATE TABLE orders.t (a int); INSERT INTO orders.t VALUES (1);
CREATE TABLE other.secret (a text); INSERT INTO other.secret VALUES ('theirs');
CREATE USER reader@'%' IDENTIFIED BY 'reader-password-4711'; GRANT SELECT ON orders.* TO reader@'%';
"""


class Bed:
    """One sandbox with a rule of mysql://, and another policy beside it in the same daemon."""

    def __init__(self, t):
        self.t, self.seats = t, seat.Seats(t)
        self.d = d = durward.Durward(t)
        self.server = mysql.Mysql(t, d.ca, HOST)
        self.server.sql(SETUP)
        d.secret("reader_password", "reader-password-4711")
        d.secrets["reader"] = {"mysql_login": {"user": "reader", "password": "reader_password", "auth": "native"}}
        d.secret("newer_password", "newer-password-4711")
        d.secrets["newer"] = {"mysql_login": {"user": "newer", "password": "newer_password"}}
        self.word = scan.canary("ot-")
        d.secret("word", self.word)
        d.secrets["beside"] = {"mysql_login": {"user": "beside", "password": "word"}}
        d.resolve[HOST + ":3306"] = d.resolve[CLOSED + ":3306"] = self.server.address
        d.policy("coder", [{"allow": "mysql://%s/orders" % HOST, "access": "read-only", "with": {"mysql_login": "reader"}},
                           {"allow": "mysql://%s/orders" % NEWER, "with": {"mysql_login": "newer"}},
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policy("other", [{"allow": "mysql://%s/*" % CLOSED, "with": {"mysql_login": "beside"}}])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])

    def logins(self):
        return self.server.said().count("Connect\treader@")


def facts(database, capabilities=0, charset=45):
    return struct.pack("<IB", capabilities, charset) + database.encode()


def packet(body, number=0):
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def query(sql, command=QUERY):
    return packet(bytes([command]) + sql.encode())


class Front(seat_broker.Front):
    def honest(self):
        got = self.ask(facts("orders"))
        return True if got and got[0] == seat_broker.OPENED else got

    def ask_for(self, *packets):
        """-> what comes back for them on a session of its own, until it ends, a reply is over, or nothing more comes."""
        def run(ours):
            said = b""
            data = bytes([seat_broker.DATA]) + b"".join(packets)
            self.seat.call("sendto", ours, data, len(data), 0, 0, 0)
            while True:
                r, _, data = self.seat.receive(ours, 5)
                if r in (0, -errno.ECONNRESET) or r > 0 and data[0] == seat_broker.END:
                    return said + b"<ended>"
                if r <= 0:
                    return said + b"<and no more>"
                said += data[1:]
                if said.endswith(packet(b"\xfe\0\0\x22\0", 5)) or said.endswith(packet(b"\0\0\0\3\0\0\0", 1)):
                    return said
        return self.ask(facts("orders"), opened=run)


def front(t, bed):
    f = Front(bed, "mysql", HOST, 3306)
    rows = seat.Rows(t, "front to back", f.honest)
    f.refusals(rows, (
        ("a database of no rule", "no_rule", facts("other"), {}),
        ("no database", "no_rule", facts(""), {}),
        ("a database of the server's own", "mysql_database", facts("mysql"), {}),
        ("a database whose name leads upwards", "mysql_database", facts("../orders"), {}),
        ("another policy's host", "no_rule", facts("orders"), {"host": CLOSED}),
        ("a host of no rule", "no_rule", facts("orders"), {"host": "evil.example.org"}),
        ("an address in place of the name", "no_rule", facts("orders"), {"host": "127.0.0.1"}),
        ("another port", "no_rule", facts("orders"), {"port": bed.server.port})))
    f.lies(rows, (("facts that are cut", facts("orders")[:4]),
                  ("a database with a zero byte", facts("orders\0x")),
                  ("a database with too long a name", facts("o" * 65)),
                  ("compression", facts("orders", 0x20)),
                  ("query attributes", facts("orders", 1 << 27)),
                  ("a character set whose characters hold a backslash", facts("orders", charset=28))))
    server = bed.server
    got = f.ask_for(query("SELECT a FROM t"))
    t.ok(got and got[0] == seat_broker.OPENED and b"<ended>" not in got[1] and b"orders" in got[1], "what its rule allows", repr(got))
    more = facts("orders", CHOSEN)
    t.eq((f.ask(more) or [None])[0], seat_broker.OPENED, "capabilities that a rule may leave")
    for name, packets in (
            ("a statement that writes", (query("INSERT INTO t VALUES (2)"),)),
            ("a statement that writes, prepared", (query("INSERT INTO t VALUES (2)", PREPARE),)),
            ("a transaction that writes", (query("START TRANSACTION READ WRITE"),)),
            ("the end of read-only", (query("SET SESSION TRANSACTION READ WRITE"),)),
            ("a mode in which statements are read differently", (query("SET sql_mode = 'ANSI_QUOTES'"),)),
            ("several statements", (query("SELECT 1; DELETE FROM t"),)),
            ("several statements, by an option", (packet(b"\x1b\0\0"),)),
            ("a file at the server", (query("SELECT 1 INTO OUTFILE '/tmp/durward-mysql'"),)),
            ("a file of the sandbox's", (query("LOAD DATA LOCAL INFILE '/x' INTO TABLE t"),)),
            ("a table of another database", (query("SELECT * FROM other.secret"),)),
            ("another database", (packet(b"\x02other"),)),
            ("another user", (packet(b"\x11root\0\0other\0"),)),
            ("the server's binary log", (packet(b"\x12" + b"\0" * 10),)),
            ("to be a replica", (packet(b"\x15" + b"\0" * 18),)),
            ("another connection's end", (packet(b"\x0c\1\0\0\0"),)),
            ("another connection's end, by a statement", (query("KILL QUERY 1"),)),
            ("a session that begins anew", (packet(b"\x1f"),)),
            ("the end of the server", (packet(b"\x08"),)),
            ("a command that is not known", (packet(b"\xfe"),)),
            ("a command behind another that is not answered", (query("SELECT a FROM t"), query("SELECT SLEEP(0)"))),
            ("a command with a number of its own", (packet(b"\x0e", 3),)),
            ("a packet with nothing in it", (packet(b""),)),
            ("a packet of 16 MiB", (b"\xff\xff\xff\0\x03SELECT 1",))):
        before = server.said()
        got = f.ask_for(*packets)
        said = got[1] if got and got[0] == seat_broker.OPENED else b""
        new = server.said()[len(before):]
        rows.row(name, said.endswith(b"<ended>") and b"theirs" not in said and "DELETE" not in new and "OUTFILE" not in new and
                 server.sql("SELECT COUNT(*) FROM orders.t") == "1\n", repr((got, new))[:600])
    rows.refused(f.seat, seat.calls_of_all())
    f.seat.end()


def back(t, bed):
    b = seat_broker.Back(t, bed, "mysql")
    told = b.get("reader")
    t.ok(told[1] == 1 and b"mysql reader" in told[2], "what is told of its login is the name", repr(told))
    b.to_vault.row("its login's password, as a secret", b"password-4711" not in told[2], repr(told))
    b.refused_secrets((("the file of its password", "reader_password"), ("another policy's login", "beside"),
                       ("a secret of its policy's that is no login", "word"),
                       ("a secret that there is not", "nobody")), bed.word)
    t.eq(b.sign("reader", NATIVE, b"n" * 20), 1, "a proof of its own login")
    t.eq(b.sign("newer", CLEARTEXT, b""), 1, "the password of a login of caching_sha2, for a server that wants it in TLS")
    b.refused_signatures((
        ("a proof with another policy's login", "beside", SHA2, b"n" * 20),
        ("a weaker proof than is declared", "beside", NATIVE, b"n" * 20),
        ("the password of another policy's login", "beside", CLEARTEXT, b""),
        ("a proof behind a secret that is no login", "word", NATIVE, b"n" * 20),
        ("a proof over no nonce", "reader", NATIVE, b""),
        ("a proof over a nonce that is cut", "reader", SHA2, b"n" * 19),
        ("a proof over a long nonce", "reader", ED25519, b"n" * 33),
        ("the password of a login that is proven without", "reader", CLEARTEXT, b""),
        ("the password with a text beside", "newer", CLEARTEXT, b"x"),
        ("a proof of no method", "reader", 5, b"n" * 20)))
    b.refused_captures()
    b.refused_places(MYSQL, 3306, (("another policy's server", CLOSED, 3306), ("a host of no rule", "evil.example.org", 3306),
                                   ("another port", HOST, bed.server.port)))
    b.end()


def main(t):
    why = mysql.missing()
    if why:
        t.skip("everything", why)
        return
    seat_broker.run(t, Bed(t), "mysql", (front, back))


tap.run(main, timeout=240)
