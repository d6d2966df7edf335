#!/usr/bin/python3
"""psycopg 3 against the broker: prepared statements, a pipeline with a refusal in its middle, COPY,
server-side cursors, cancelling. Says what came of each."""
import json
import sys
import threading

import psycopg

said = {}
dsn = "host=%s dbname=orders user=x password=placeholder" % sys.argv[1]
with psycopg.connect(dsn, autocommit=True) as c:
    said["prepared"] = [c.execute("SELECT a FROM t WHERE id = %s", [i], prepare=True).fetchone()[0]
                        for i in (1, 2, 3)]
    with c.pipeline():
        first = c.execute("SELECT 1")
        second = c.execute("SELECT 2")
    said["pipeline"] = [first.fetchone()[0], second.fetchone()[0]]
    try:
        with c.pipeline() as p:
            one = c.execute("SELECT 1")
            c.execute("SET ROLE above")
            c.execute("SELECT 3")
            p.sync()
    except psycopg.Error as e:
        said["refused"] = [e.sqlstate, str(e).split("\n")[0]]
    said["after"] = c.execute("SELECT current_user").fetchone()[0]
    with c.cursor() as cursor:
        with cursor.copy("COPY (SELECT id FROM t ORDER BY id) TO STDOUT") as copy:
            said["copy"] = sum(1 for _ in copy.rows())
    with c.transaction():
        with c.cursor("named") as cursor:
            cursor.execute("SELECT id FROM t ORDER BY id")
            said["cursor"] = len(cursor.fetchmany(100))
    timer = threading.Timer(0.5, c.cancel)
    timer.start()
    try:
        c.execute("SELECT pg_sleep(20)")
    except psycopg.errors.QueryCanceled:
        said["cancelled"] = True
    try:
        with c.transaction():
            c.execute("SELECT 1")
            c.execute("DO $$BEGIN NULL; END$$")
    except psycopg.errors.InsufficientPrivilege as e:
        said["do"] = str(e)
    c.execute("LISTEN news")
    c.execute("NOTIFY news, 'hello'")
    heard = next(c.notifies(timeout=10))
    said["process"] = {heard.pid, c.info.backend_pid} == {c.execute("SELECT pg_backend_pid()").fetchone()[0]}
    said["status"] = c.info.transaction_status.name
    said["unicode"] = c.execute("SELECT %s::text", ["é€😀"]).fetchone()[0] == "é€😀"
print(json.dumps(said))
