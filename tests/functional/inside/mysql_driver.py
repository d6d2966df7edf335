"""PyMySQL as programs use it. argv: host. Says "ok"."""
import ssl
import sys

import pymysql
import pymysql.cursors

host = sys.argv[1]


def connect(**more):
    return pymysql.connect(host=host, user="anybody", password="placeholder", database="orders", charset="utf8mb4", **more)


c = connect()
with c.cursor() as cursor:
    cursor.execute("SELECT a FROM t WHERE id = %s", (3,))
    assert cursor.fetchall() == (("row 3",),)
    assert cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(70000 + i, "Grüße 💶 'it''s' \\ %d" % i) for i in range(500)]) == 500
    cursor.execute("SELECT a FROM t WHERE id = 70007")
    assert cursor.fetchone() == ("Grüße 💶 'it''s' \\ 7",)
c.rollback()
with c.cursor() as cursor:
    cursor.execute("SELECT COUNT(*) FROM t WHERE id >= 70000")
    assert cursor.fetchone() == (0,)
    for refused in ("SELECT * FROM other.secret", "SHOW GRANTS", "SELECT 1; SELECT 2"):
        try:
            cursor.execute(refused)
            raise SystemExit("not refused: " + refused)
        except pymysql.OperationalError as e:
            assert e.args[0] == 1142 and "durward: refused" in e.args[1], e
    cursor.execute("SELECT 5")
    assert cursor.fetchone() == (5,)
    try:
        cursor.execute("SELECT nothing FROM t")
        raise SystemExit("no error")
    except pymysql.OperationalError as e:
        assert e.args[0] == 1054, e  # the server's own
c.ping()
c.select_db("orders")
with connect(cursorclass=pymysql.cursors.SSCursor) as unbuffered, unbuffered.cursor() as cursor:
    cursor.execute("SELECT id FROM t ORDER BY id")
    assert [cursor.fetchone()[0] for _ in range(10)] == list(range(1, 11))
    assert len(cursor.fetchall()) == 990
with connect(ssl=ssl.create_default_context(), cursorclass=pymysql.cursors.DictCursor) as tls, tls.cursor() as cursor:
    cursor.execute("SELECT id, a FROM t WHERE id = 1")
    assert cursor.fetchall() == [{"id": 1, "a": "row 1"}] and tls._sock.version() == "TLSv1.3"
print("ok")
