#!/usr/bin/python3 -B
"""The PostgreSQL broker's two roles, conquered, with a real server outside: a front that lies to its
back or says what it should have refused, a back that asks vault and dialer for what is not its own.
Each row is what that one must not get; after each the back serves an honest session."""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, postgres, scan, seat, seat_broker, tap  # noqa: E402

HOST, CLOSED = "db.example.com", "closed.example.com"
POSTGRES = 4                     # enum scheme
SCRAM, MD5, CLEARTEXT = 1, 2, 3  # enum scram_scheme
NONCE = b"abcdefghijklmnopqrstuvwx"
SETUP = """
CREATE ROLE app LOGIN PASSWORD 'app-password-4711';
CREATE ROLE reader LOGIN PASSWORD 'reader-password-4711';
CREATE ROLE above;
GRANT above TO app;
CREATE DATABASE orders;
CREATE DATABASE capped;
CREATE DATABASE other;
"""
TABLES = """
CREATE TABLE t (id int);
INSERT INTO t SELECT generate_series(1, 1000);
GRANT SELECT ON t TO reader, app, above;
"""


def allow(database, login, **more):
    return dict({"allow": "postgres://%s/%s" % (HOST, database), "with": {"postgres_login": login}},
                **more)


class Bed:
    """One sandbox with rules of postgres://, and another policy beside it in the same daemon."""

    def __init__(self, t):
        self.t, self.seats = t, seat.Seats(t)
        self.d = d = durward.Durward(t)
        self.server = postgres.Postgres(t, d.ca, "pg", HOST)
        self.server.sql(SETUP)
        for database in ("orders", "capped"):
            self.server.sql(TABLES, database)
        for login in ("app", "reader"):
            d.secret(login + "_password", login + "-password-4711")
            d.secrets[login] = {"postgres_login": {"user": login, "password": login + "_password"}}
        self.word = scan.canary("ot-")
        d.secret("word", self.word)
        d.secrets["beside"] = {"postgres_login": {"user": "beside", "password": "word"}}
        d.resolve[HOST + ":5432"] = d.resolve[CLOSED + ":5432"] = self.server.address
        d.policy("coder", [allow("orders", "reader", access="read-only"),
                           allow("capped", "app", role="above", rows=10),
                           {"allow": "web.example.com", "with": {"bearer": "word"}}])
        d.policy("other", [{"allow": "postgres://%s/*" % CLOSED, "with": {"postgres_login": "beside"}}])
        self.box = durward.Sandbox(d, flags=["--policy", "coder"])

    def logins(self):
        return self.server.said().count("connection authorized")


def facts(database, *settings, code=196608, more=b""):
    body = struct.pack(">I", code)
    for name, value in (("database", database),) + settings if database else settings:
        body += name.encode() + b"\0" + value.encode() + b"\0"
    body += b"\0" + more
    return struct.pack(">I", len(body) + 4) + body


def query(sql):
    return b"Q" + struct.pack(">I", len(sql) + 5) + sql.encode() + b"\0"


class Front(seat_broker.Front):
    def honest(self):
        got = self.ask(facts("orders"))
        return True if got and got[0] == seat_broker.OPENED else got

    def ask_for(self, database, sql):
        """What comes back for it, on a session of its own."""
        def run(ours):
            said, ready = b"", 0
            packet = bytes([seat_broker.DATA]) + query(sql)
            self.seat.call("sendto", ours, packet, len(packet), 0, 0, 0)
            while ready < 2:  # the first is of the session's beginning
                r, _, data = self.seat.receive(ours, 10)
                if r <= 0:
                    break
                said += data[1:]
                ready = said.count(b"Z\0\0\0\x05")
            return said
        return self.ask(facts(database), opened=run)


def front(t, bed):
    f = Front(bed, "postgres", HOST, 5432)
    rows = seat.Rows(t, "front to back", f.honest)
    f.refusals(rows, (
        ("a database of no rule", "no_rule", facts("other"), {}),
        ("a database whose name leads upwards", "postgres_database", facts("../orders"), {}),
        ("another policy's host", "no_rule", facts("orders"), {"host": CLOSED}),
        ("a host of no rule", "no_rule", facts("orders"), {"host": "evil.example.org"}),
        ("an address in place of the name", "no_rule", facts("orders"), {"host": "127.0.0.1"}),
        ("another port", "no_rule", facts("orders"), {"port": bed.server.port})))
    f.lies(rows, (("facts that are cut", facts("orders")[:-1]),
                  ("facts with more behind them", facts("orders", more=b"x")),
                  ("facts without a database", facts("")),
                  ("a user", facts("orders", ("user", "admin"))),
                  ("a role", facts("capped", ("role", "app"))),
                  ("a role in capitals", facts("capped", ("ROLE", "app"))),
                  ("another session's authorization", facts("capped", ("session_authorization", "admin"))),
                  ("transactions that write", facts("orders", ("default_transaction_read_only", "off"))),
                  ("options", facts("capped", ("options", "-c role=app"))),
                  ("replication", facts("orders", ("replication", "true"))),
                  ("another encoding", facts("orders", ("client_encoding", "SJIS"))),
                  ("a request to cancel", struct.pack(">IIII", 16, 80877102, 1, 2)),
                  ("a wish for TLS", struct.pack(">II", 8, 80877103)),
                  ("a newer protocol", facts("orders", code=196610))))
    for name, database, sql, want in (
            ("rows that a read-only login may not write", "orders", "SET default_transaction_read_only = off; "
             "BEGIN READ WRITE; INSERT INTO t VALUES (1)", b"42501"),
            ("a table of a read-only login's", "orders", "BEGIN READ WRITE; CREATE TABLE x (a int)", b"42501"),
            ("more rows than its rule allows", "capped", "RESET ROLE; SELECT id FROM t", b"C53400"),
            ("another login", "capped", "SET SESSION AUTHORIZATION reader", b"42501")):
        got = f.ask_for(database, sql)
        count = got[1].count(b"D\0\0\0") if got and got != "ended" else -1
        rows.row(name, 0 <= count <= 10 and want in got[1], repr(got)[:600])
    rows.refused(f.seat, seat.calls_of_all())
    f.seat.end()


def back(t, bed):
    b = seat_broker.Back(t, bed, "postgres")
    told = b.get("reader")
    t.ok(told[1] == 1 and b"scram-sha-256 reader" in told[2], "what is told of its login is the name", repr(told))
    b.to_vault.row("its login's password", b"password-4711" not in told[2], repr(told))
    b.refused_secrets((("the file of its password", "reader_password"), ("another policy's login", "beside"),
                       ("a secret of its policy's that is no login", "word"),
                       ("a secret that there is not", "nobody")), bed.word)
    server = b"r=" + NONCE + b"SERVER,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=%d"
    whole = b"n=,r=" + NONCE + b"," + server + b",c=biws,r=" + NONCE + b"SERVER"
    t.eq(b.sign("reader", SCRAM, whole % 4096), 1, "a proof of its own login")
    b.refused_signatures((
        ("a proof with another policy's login", "beside", SCRAM, whole % 4096),
        ("a hash by md5", "reader", MD5, b"\1\2\3\4"),
        ("the password itself", "reader", CLEARTEXT, b""),
        ("a proof over one iteration", "reader", SCRAM, whole % 1),
        ("a proof over millions of iterations", "reader", SCRAM, whole % 5000000),
        ("a proof over what is no login", "reader", SCRAM, b"Server Key"),
        ("a proof as another user", "reader", SCRAM, whole.replace(b"n=,", b"n=admin,") % 4096)))
    b.refused_captures()
    b.refused_places(POSTGRES, 5432, (("another policy's server", CLOSED, 5432), ("a host of no rule", "evil.example.org", 5432),
                                      ("another port", HOST, bed.server.port)))
    b.refused_ends(bed)
    b.end()


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    seat_broker.run(t, Bed(t), "postgres", (front, back))


tap.run(main, timeout=240)
