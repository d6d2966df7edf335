#!/usr/bin/python3 -B
"""PostgreSQL with real clients inside a sandbox and a real server outside: the login is proven by
the vault, statements are judged, and what would undo a rule never reaches the server."""
import base64
import json
import os
import re
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, deaths as died, durward, postgres, scan, tap, telltale  # noqa: E402

HOST = "db.example.com"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETUP = """
SET password_encryption = 'scram-sha-256';
CREATE ROLE app LOGIN PASSWORD 'app-password-4711';
CREATE ROLE reader LOGIN PASSWORD 'reader-password-4711';
CREATE ROLE clear LOGIN PASSWORD 'clear-password-4711';
CREATE ROLE limited;
CREATE ROLE above;
GRANT limited, above TO app;
SET password_encryption = 'md5';
CREATE ROLE hashed LOGIN PASSWORD 'hashed-password-4711';
CREATE DATABASE orders;
CREATE DATABASE other;
"""
TABLES = """
CREATE TABLE t (id int PRIMARY KEY, a text);
INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
CREATE TABLE closed (a int);
INSERT INTO closed VALUES (1);
GRANT SELECT, INSERT, UPDATE, DELETE ON t TO app, limited, hashed, clear;
GRANT SELECT ON closed TO above;
GRANT SELECT ON t TO reader;
GRANT CREATE ON SCHEMA public TO app;
"""


def bed(t, name, rules, secrets):
    d = durward.Durward(t, name)
    for login, auth in secrets.items():
        d.secret(login + "_password", login + "-password-4711")
        d.secrets[login] = {"postgres_login": dict({"user": login, "password": login + "_password"},
                                                   **({"auth": auth} if auth else {}))}
    d.policies["coder"] = {"rules": rules}
    return d


def allow(database, login, **more):
    return dict({"allow": "postgres://%s/%s" % (HOST, database), "with": {"postgres_login": login}},
                **more)


def psql(box, sql, database="orders", options="", timeout=30, user="anybody", **kw):
    return box.sh("psql -X -q -A -t %s 'host=%s dbname=%s user=%s'" % (options, HOST, database, user),
                  stdin=sql, timeout=timeout, **kw)


def ordinary(t, box, d, server):
    status, out, err = psql(box, "SELECT current_user, session_user, count(*) FROM t;")
    t.ok(status == 0 and out == "app|app|1000\n", "psql reads, as the login of the vault", out, err)
    status, out, err = psql(box, "SHOW application_name;")
    t.ok(out.startswith("durward/"), "the server is told which sandbox", out, err)
    status, out, err = psql(
        box, "BEGIN; INSERT INTO t VALUES (5000, 'new'); SELECT a FROM t WHERE id = 5000; ROLLBACK;")
    t.eq((status, out), (0, "new\n"), "a transaction")
    status, out, err = psql(box, "COPY (SELECT id FROM t ORDER BY id) TO STDOUT;")
    t.eq(len(out.splitlines()), 1000, "COPY out")
    lines = "".join("%d\tcopied\n" % i for i in range(10000, 30000))
    status, out, err = psql(box, "COPY t FROM STDIN;\n" + lines + "\\.\n"
                            "SELECT count(*) FROM t WHERE a = 'copied';"
                            "DELETE FROM t WHERE a = 'copied';")
    t.eq((status, out), (0, "20000\n"), "COPY in")
    status, out, err = psql(box, "SELECT repeat('x', 5000000);")
    t.eq(len(out), 5000001, "a value of five megabytes")
    status, out, err = psql(box, "LISTEN x; NOTIFY x, 'hello'; SELECT 1;")
    t.ok('"x" with payload "hello"' in out, "LISTEN and NOTIFY", out, err)
    status, out, err = psql(box, "\\d t\n\\dt\n\\l\n\\du\n")
    t.ok(status == 0 and "id|integer" in out and "orders" in out, "psql's own questions", out, err)
    status, out, err = psql(box, "PREPARE p AS SELECT a FROM t WHERE id = $1; EXECUTE p(3);")
    t.eq(out, "row 3\n", "PREPARE and EXECUTE")
    status, out, err = psql(box, "SELECT 1", database="other")
    t.ok(status == 2 and "no_rule" in err, "another database is denied", out, err)
    status, out, err = box.sh("psql -X -A -t 'host=%s dbname=orders user=x replication=database' "
                              "-c 'IDENTIFY_SYSTEM'" % HOST)
    t.ok(status == 2 and "postgres_settings" in err, "replication is denied", out, err)
    for options in ("-c role=above", "-crole=above", "--session-authorization=admin",
                    "-c standard_conforming_strings=off", "-c client_encoding=SJIS", "-r /x"):
        status, out, err = box.sh("psql -X \"host=%s dbname=orders user=x options='%s'\" -c 'SELECT 1'" %
                                  (HOST, options.replace("\\", "\\\\")))
        t.ok(status == 2 and "postgres_settings" in err, "options: " + options, out, err)
    status, out, err = box.sh("psql -X -A -t \"host=%s dbname=orders user=x options='-c search_path=a -c "
                              "geqo=off'\" -c 'SHOW search_path'" % HOST)
    t.eq((status, out), (0, "a\n"), "options that decide nothing")


def encrypted(t, box, d, server):
    """Clients that insist on TLS have it, by the sandbox's own CA."""
    for mode in ("require", "verify-full sslrootcert=$SSL_CERT_FILE"):
        status, out, err = box.sh("psql -X -A -t \"host=%s dbname=orders user=x sslmode=%s\" -c 'SELECT 1' -c '\\conninfo'" %
                                  (HOST, mode))
        t.ok(status == 0 and out.startswith("1\n") and "protocol: TLSv1.3" in out, "sslmode=" + mode.split()[0], out, err)
    status, out, err = box.sh("psql -X \"host=%s dbname=payroll user=x sslmode=require\" -c 'SELECT 1'" % HOST)
    t.ok(status == 2 and "no_rule" in err, "a refusal in TLS", out, err)
    said = box.py("postgres_tls.py", HOST, timeout=60)
    t.eq(said["direct"], "TLSv1.3 postgresql R", "TLS at once, as clients of PostgreSQL 17 have it")
    t.eq(said["again"], "N", "within TLS there is no more")
    t.ok("postgres_protocol" in said["early"] and "postgres_protocol" in said["clear"],
         "nothing in clear between the wish and TLS", str(said))
    t.eq(said["other"], "refused", "another protocol in it is refused")
    t.eq(said["untrusting"], "CERTIFICATE_VERIFY_FAILED", "who does not trust the sandbox's CA has none")
    t.ok(d.wait_records(1, "tls_refused", code="client_tls_refused"), "which is on record")


def cancelled(t, box, d, server):
    status, out, err = box.sh("timeout -s INT 4 psql -X -q -A -t 'host=%s dbname=orders user=x' "
                              "-c 'SELECT pg_sleep(20)'; echo $?" % HOST, timeout=25)
    t.ok("canceling statement due to user request" in err, "a statement is cancelled", out, err)
    t.eq(server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(20)%' AND "
                    "state = 'active' AND pid <> pg_backend_pid()").strip(), "0", "at the server")


def decode(text):
    return re.sub(rb"\\(n|t|\\|x[0-9a-f]{2})",
                  lambda m: {b"n": b"\n", b"t": b"\t", b"\\": b"\\"}.get(m.group(1)) or
                  bytes([int(m.group(1)[1:], 16)]), text)


def statements(name):
    with open(os.path.join(TOP, "tests", "statements", name), "rb") as f:
        return [(line[:1].decode(), decode(line[2:].rstrip(b"\n"))) for line in f
                if not line.startswith(b"#")]


def columns(t, d, server):
    """x.f is f(x) to the server, so a function that is refused by its name in a call is refused as a column."""
    box = durward.Sandbox(d)
    names = server.sql("SELECT DISTINCT proname FROM pg_proc WHERE pronargs >= 1 AND pronargs - pronargdefaults <= 1 AND prokind = 'f'"
                       " AND provolatile <> 'i' ORDER BY 1").split()
    ways = [w % n for n in names for w in ('SELECT "%s"(x.y) FROM x', 'SELECT (x.y)."%s" FROM x')]
    said = [x == "refused" for x in box.py("postgres_raw.py", HOST, stdin="".join(s.encode().hex() + "\n" for s in ways), timeout=120)]
    wrong = [n for i, n in enumerate(names) if said[4 * i] and not (said[4 * i + 2] and said[4 * i + 3])]
    t.ok(len(said) == 4 * len(names) and sum(said) > 100, "%d functions of one argument, %d of them refused" % (len(names), sum(said[::4])))
    t.eq(wrong, [], "and each of these as a column, too")
    box.close()


def escapes(t, d, server, letters, what):
    """None of them reaches the server, by a simple query or a prepared one."""
    box = durward.Sandbox(d)
    asked = [s for letter, s in statements("postgres_escapes") if letter in letters and b"\0" not in s]
    before = len(server.said())
    said = box.py("postgres_raw.py", HOST, stdin="".join(s.hex() + "\n" for s in asked), timeout=120)
    wrong = [x for x in said if x != "refused"]
    t.eq((len(said), wrong[:3]), (2 * len(asked), []), "%s: all are refused" % what)
    log = server.said()[before:]
    words = [s for s in asked if len(s) > 12 and s.decode(errors="replace") in log]
    t.eq(words, [], "%s: none of their texts is in the server's log" % what)
    box.close()
    return len(asked)


NEIGHBOURS = "SELECT query FROM pg_stat_activity WHERE query LIKE '%of-a-neighbour%' AND pid <> pg_backend_pid();"


def neighbours(t, d, server):
    """What a sandbox runs is not shown to another of the same login, but where the rule says so."""
    other = bed(t, "seen", [allow("orders", "app", activity=True)], {"app": None})
    other.resolve[HOST + ":5432"] = server.address
    server.trust(other)
    box, seen, alone = durward.Sandbox(d), durward.Sandbox(other), durward.Sandbox(d)
    thread = threading.Thread(target=lambda: psql(box, "SELECT 'of-a-neighbour', pg_sleep(60);", timeout=90))
    thread.start()
    t.ok(tap.wait_for(lambda: server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT ''of-a-neighbour%' AND "
                                         "state = 'active'").strip() == "1", 20, 0.1), "a neighbour is at work")
    status, out, err = psql(seen, NEIGHBOURS)
    t.ok(status == 0 and "of-a-neighbour" in out, "a rule with activity shows it", out, err)
    status, out, err = psql(alone, NEIGHBOURS + "SELECT (pg_stat_get_activity(NULL)).query; SELECT 'goes on';")
    t.ok("of-a-neighbour" not in out and out.endswith("goes on\n") and err.count("'activity'") == 2,
         "any other rule does not", out, err)
    server.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT ''of-a-neighbour%'")
    thread.join(20)
    box.close()
    seen.close()
    alone.close()


def forced(t, d, server):
    box = durward.Sandbox(d)
    status, out, err = psql(box, "SELECT current_user; SELECT * FROM closed;")
    t.ok(out == "limited\n" and "permission denied" in err, "the role is the rule's", out, err)
    status, out, err = psql(box, "RESET ALL; SELECT current_user; BEGIN; SET ROLE above; SELECT 1; "
                            "ROLLBACK; SELECT current_user;")
    t.ok(out.split() == ["limited", "limited"] and "refused: a change of the role" in err,
         "a refused statement ends its transaction, and the session goes on", out, err)
    status, out, err = psql(box, "BEGIN; SET LOCAL ROLE limited; SELECT 1; COMMIT; SET ROLE 'limited'; SELECT current_user; SET ROLE above; "
                            "SELECT current_user;")
    t.ok(out.split() == ["1", "limited", "limited"] and err.count("refused") == 1, "the rule's role may be said, and no other", out, err)
    box.close()


def reading(t, d, server):
    box = durward.Sandbox(d)
    status, out, err = psql(box, "SELECT count(*) FROM t; SHOW default_transaction_read_only;")
    t.eq((status, out), (0, "1000\non\n"), "a read-only rule reads")
    status, out, err = psql(box, "DELETE FROM t;")
    t.ok("refused: a statement that writes" in err, "and writes nothing", out, err)
    box.close()


def too_much(t, d, server):
    """Its login may write: the server says so, and there is no session."""
    r = d.run(["psql", "-X", "host=%s dbname=orders user=x" % HOST, "-c", "SELECT 1"])
    t.ok(r.returncode == 2 and "may write" in r.stderr.replace("may create", "may write") and
         "postgres_writes" in r.stderr, "a login that may write is no read-only one", r.stdout, r.stderr)


def capped(t, d, server):
    box = durward.Sandbox(d)
    status, out, err = psql(box, "SELECT id FROM t;", database="orders")
    t.ok(len(out.splitlines()) <= 100 and "all the rows" in err, "rows end at their bound",
         str(len(out.splitlines())), err)
    status, out, err = psql(box, "COPY t TO STDOUT;", database="orders")
    t.ok(len(out.splitlines()) <= 100 and "all the rows" in err, "rows of COPY, too",
         str(len(out.splitlines())), err)
    status, out, err = psql(box, "SELECT pg_sleep(20);", timeout=20)
    t.ok(status != 0 and "time is over" in err, "a session ends in its time", out, err)
    box.close()


def tools(t, d, server):
    """pgbench in its three ways, and pg_dump."""
    box = durward.Sandbox(d)
    at = "-h %s -U x" % HOST
    status, out, err = box.sh("pgbench -q -i -s 1 %s orders" % at, timeout=60)
    t.ok(status == 0 and "done in" in err, "pgbench fills its tables", out, err)
    for mode in ("simple", "extended", "prepared"):
        status, out, err = box.sh("pgbench -n -M %s -c 4 -t 50 %s orders" % (mode, at), timeout=60)
        t.ok(status == 0 and "number of transactions actually processed: 200/200" in out,
             "pgbench -M " + mode, out, err)
    status, out, err = box.sh("pg_dump %s -t t orders" % at, timeout=60)
    t.ok(status == 0 and "row 999" in out and "CREATE TABLE public.t" in out, "pg_dump", out[-300:], err)
    status, out, err = box.sh("pg_dump --no-owner --no-privileges %s -t t orders | sed 's/public[.]t/public.restored/; s/t_pkey/restored_pkey/' "
                              "| psql -X -q -1 -v ON_ERROR_STOP=1 %s orders; psql -X -A -t %s -c 'SELECT count(*), max(a) FROM restored' orders" %
                              (at, at, at), timeout=60)
    t.ok(status == 0 and out.endswith("1000|row 999\n"), "and what it says is put in again", out[-300:], err)
    box.close()


def driver(t, d, server):
    """psycopg 3, asyncpg, and for Node pg and postgres."""
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    box = durward.Sandbox(d, binds=durward.client_binds("venv", "node_modules"))
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
    modules = os.path.join(durward.clients_dir(), "node_modules")
    for name, there, line in (("asyncpg", "%s -c 'import asyncpg'" % python, "%s %s/postgres_asyncpg.py" % (python, inside)),
                              ("pg and postgres", "test -d %s/pg -a -d %s/postgres" % (modules, modules),
                               "NODE_PATH=%s node %s/postgres_driver.js" % (modules, inside))):
        if box.sh(there)[0] != 0:
            t.skip(name, "the clients' environment has none (tests/functional/clients/setup)")
            continue
        status, out, err = box.sh("%s %s" % (line, HOST), timeout=60)
        t.eq((status, out.strip()), (0, "ok"), name + ": " + err[-300:])
    if box.sh("%s -c 'import psycopg'" % python)[0] != 0:
        t.skip("psycopg", "the clients' environment has none (tests/functional/clients/setup)")
    else:
        status, out, err = box.sh("%s %s %s" % (python, os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "inside/postgres_driver.py"), HOST), timeout=60)
        said = json.loads(out) if status == 0 else {"error": err}
        t.eq({k: said.get(k) for k in ("prepared", "pipeline", "after", "copy", "cursor", "cancelled",
                                       "process", "status", "unicode")},
             {"prepared": ["row 1", "row 2", "row 3"], "pipeline": [1, 2], "after": "limited",
              "copy": 1000, "cursor": 100, "cancelled": True, "process": True, "status": "IDLE", "unicode": True},
             "psycopg 3")
        t.ok(said.get("refused", [""])[0] == "42501" and "change of the role" in said["refused"][1],
             "a refusal within a pipeline", str(said))
        t.ok("runs what it is given" in said.get("do", "") or "not carried" in said.get("do", ""),
             "and within a transaction", str(said))
    box.close()


def raw(t, d, server):
    """A client that sends ahead: what could be read otherwise waits for the answers, and only that."""
    server.sql("CREATE FUNCTION set_it() RETURNS text LANGUAGE sql SECURITY DEFINER AS "
               "$$SELECT set_config('standard_conforming_strings', 'off', false)$$; GRANT EXECUTE ON FUNCTION set_it() TO limited;",
               "orders")
    box = durward.Sandbox(d)
    where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside/postgres_ahead.py")
    status, out, err = box.sh("/usr/bin/python3 %s %s" % (where, HOST), timeout=60)
    said = json.loads(out) if status == 0 else {"error": err}
    t.eq(said.get("ahead"), ["a\\b", "2", "c\\d"], "queries that are sent at once, with backslashes")
    t.eq(said.get("prepared"), ["e\\f"], "a statement of its own Sync behind another")
    t.ok(said.get("group", [""])[0] == "42501" and "not answered" in said["group"][1],
         "a backslash behind what runs without a Sync between is refused", str(said.get("group")))
    t.eq(said.get("copied"), ["g\\h", "1"], "after COPY by an Execute, whose Sync the server passes over")
    t.ok("denied here" not in server.said() and said.get("otherwise") in ("ended", "57P01", "42501"),
         "a statement behind one that changes how it is read does not reach the server", str(said.get("otherwise")))
    box.close()
    d.settle()
    ends = [(r["count"], len(set(r["statements"].split()))) for r in d.kinds("completed") if r.get("statements")]
    t.ok((5, 5) in ends and len(said.get("counted", [])) == 3, "statements that come together are each on record", str((ends, said)))


def views(t, d, server):
    """A login that may write to a view over pg_settings gets no session with bounds."""
    server.sql("CREATE VIEW knobs AS SELECT * FROM pg_settings; CREATE VIEW deep AS SELECT name, setting FROM knobs; "
               "GRANT SELECT, UPDATE ON deep TO limited;", "orders")
    r = d.run(["psql", "-X", "-A", "-t", "host=%s dbname=orders user=x" % HOST, "-c", "SELECT 1"])
    t.ok(r.returncode == 2 and "may write to public.deep" in r.stderr, "a view over a view over settings", r.stdout, r.stderr)
    server.sql("REVOKE UPDATE ON deep FROM limited", "orders")
    r = d.run(["psql", "-X", "-A", "-t", "host=%s dbname=orders user=x" % HOST, "-c", "SELECT count(*) > 100 FROM deep"])
    t.ok(r.stdout == "t\n", "which it may read", r.stdout, r.stderr)
    server.sql("DROP VIEW knobs CASCADE", "orders")


def crowds(t, d, server):
    """As many connections as a sandbox may have, and sessions as a policy's sandboxes may have together, at a
    server that says nothing: never so many that none are left for another sandbox."""
    silent = socket.create_server(("127.0.0.1", 0))
    silent.listen(1024)
    t.cleanup(silent.close)
    d.resolve[HOST + ":5432"] = "127.0.0.1:%d" % silent.getsockname()[1]
    d.serve()
    calls = api.Api(d.socket)
    boxes = [calls.create(policy="coder")["id"] for _ in range(5)]
    where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside/postgres_crowd.py")
    with open(where) as f:
        program = "echo %s | base64 -d >p.py; /usr/bin/python3 p.py %s " % (base64.b64encode(f.read().encode()).decode(), HOST)
    got, threads = {}, []

    def sit(i):
        got[i] = api.Api(d.socket, timeout=60).sh(boxes[i], program + "129")
    for i in range(4):
        threads.append(threading.Thread(target=sit, args=(i,)))
        threads[-1].start()
        if i == 0:
            t.eq(len(d.wait_records(128, "admitted", 30)), 128, "128 sessions of a sandbox")
    held = tap.wait_for(lambda: all(calls.sh(box, "test -e /tmp/held")[0] == 0 for box in boxes[:4]), 60, 0.2)
    n = len(d.kinds("admitted"))
    t.ok(held and 400 < n < 512, "four sandboxes that take what they get do not have all 512", str(n))
    status, out = calls.sh(boxes[4], program + "1 2>&1")
    t.eq(out.split(), [b"1", b"held"], "the next sandbox has a session")
    for box, thread in zip(boxes, threads):
        calls.sh(box, "touch /tmp/enough")
        thread.join()
    t.eq(got[0][1].split()[:2], [b"128", b"closed"], "a sandbox's 129th connection is closed")
    d.stop()


def records(t, d, server):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "postgres"]
    one = admitted[0] if admitted else {}
    t.ok(one.get("user") == "app" and one.get("authority") == HOST and one.get("path") == "/orders" and
         one.get("credential") == "app" and one.get("role") == "postgres-back",
         "a session is on record before it is made", str(one))
    ends = d.ends(admitted)
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end", str([r for r in admitted if r["id"] not in ends][:3]))
    t.ok(re.match(r"[0-9a-f]{16}:\d+", ends.get(one.get("id"), {}).get("statements", "")),
         "with fingerprints of its statements", str(ends.get(one.get("id"))))
    log = b"".join(open(p, "rb").read() for p in d.audit_files())
    t.ok(b"'new'" not in log and b"copied" not in log and b"repeat(" not in log,
         "and none of their values or texts")


def guessed(t, box, d, server):
    """Nothing that the server says back tells a sandbox which of its guesses at the password is right."""
    said = []
    for guess in ("app-password-4711", "app-password-4719", "x" * 17):
        status, out, err = psql(box, "SELECT '%s'; SELECT CAST('%s' AS int); SELECT * FROM \"%s\"; SELECT \"%s\" FROM t; DO 'BEGIN RAISE NOTICE ''%s''; END';"
                                % ((guess,) * 5))
        said.append((out + err).replace(guess, "GUESS"))
    t.ok(said[0] == said[1] == said[2] and said[0].count("GUESS") >= 4, "an echo of the password is an echo as of any word", *said)


def telling(t, server):
    """A login whose password goes to the server: it is in no back's memory once there is a session, and a server that says it
    as it refuses it is not heard."""
    d = bed(t, "telling", [allow("orders", "clear"), dict(allow("orders", "clear"), allow="postgres://tell.example.com/orders")], {"clear": "password"})
    tell = telltale.Telltale(t, d.ca, "tell.example.com", telltale.postgres)
    server.trust(d)
    d.extra["upstream"]["ca"].append(d.ca.pem)
    d.resolve.update({HOST + ":5432": server.address, "tell.example.com:5432": tell.address})
    box = durward.Sandbox(d)
    held = threading.Thread(target=psql, args=(box, "SELECT pg_sleep(3);"))
    held.start()
    t.ok(tap.wait_for(lambda: "pg_sleep" in server.sql("SELECT query FROM pg_stat_activity WHERE usename = 'clear'"), 10), "a session is open")
    scan.scan_front(t, d, "postgres-back", HOST, scan.Scanner(clear=b"clear-password-4711"))
    status, out, err = box.sh("psql -X 'host=tell.example.com dbname=orders user=x' -c 'SELECT 1'")
    t.ok(set(tell.words) == {b"clear-password-4711"} and "the server says 28P01" in err and "4711" not in out + err,
         "a server that says a login that it refuses", repr(tell.words), out, err)
    t.ok(d.kinds("aborted") and "4711" not in str(d.kinds("aborted")), "of which nothing is on record but its code", str(d.kinds("aborted")))
    held.join()
    box.close()


def deaths(t, box, d):
    died.each(t, box, d, "postgres", "psql -X 'host=%s dbname=orders user=x' -c 'SELECT pg_sleep(30)'" % HOST,
              ("connection to server was lost", "broker_gone"), lambda: psql(box, "SELECT 1;")[0] == 0)


def logins(t, server):
    for login, auth, good in (("hashed", "md5", True), ("hashed", None, False),
                              ("clear", "password", True), ("clear", "md5", False),
                              ("app", "password", True)):
        d = bed(t, "login-%s-%s" % (login, auth), [allow("orders", login)], {login: auth})
        d.resolve[HOST + ":5432"] = server.address
        server.trust(d)
        r = d.run(["psql", "-X", "-A", "-t", "host=%s dbname=orders user=x" % HOST, "-c",
                   "SELECT current_user"])
        t.ok(r.stdout == login + "\n" if good else r.returncode == 2 and "weaker" in r.stderr,
             "%s with auth %s" % (login, auth or "scram-sha-256"), r.stdout, r.stderr)
    d = bed(t, "wrong", [allow("orders", "app")], {"app": None})
    d.resolve[HOST + ":5432"] = server.address
    server.trust(d)
    d.secret("app_password", "another-4711")
    r = d.run(["psql", "-X", "host=%s dbname=orders user=x" % HOST, "-c", "SELECT 1"])
    t.ok(r.returncode == 2 and "upstream_login" in r.stderr and "28P01" in r.stderr,
         "a wrong password", r.stdout, r.stderr)
    d = bed(t, "untrusted", [allow("orders", "app")], {"app": None})
    d.resolve[HOST + ":5432"] = server.address
    r = d.run(["psql", "-X", "host=%s dbname=orders user=x" % HOST, "-c", "SELECT 1"])
    t.ok(r.returncode == 2 and "upstream_tls" in r.stderr, "a server that cannot be verified",
         r.stdout, r.stderr)


def reloaded(t, d, server):
    """A session ends when its rule has other terms; it goes on when another rule comes."""
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    ask = "psql -X -q -A -t 'host=%s dbname=orders user=x' -c '%%s' 2>&1" % HOST
    thread = threading.Thread(target=lambda: got.append(api.Api(d.socket).sh(box, ask % "SELECT pg_sleep(30)")))
    thread.start()
    t.ok(d.wait_records(1, "admitted", scheme="postgres"), "a session runs")
    d.policies["coder"]["rules"].append({"allow": "other.example.com"})
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "another rule is added")
    status, out = calls.sh(box, ask % "SELECT 5")
    t.ok(out == b"5\n" and not got, "the session goes on", str((status, out, got)))
    d.policies["coder"]["rules"][0]["statements"] = ["read"]
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "its rule has other terms")
    thread.join(5)
    t.ok(got and got[0][0] != 0 and b"policy was changed" in got[0][1], "a session ends with its terms",
         str(got))
    t.ok(d.wait_records(1, "aborted", code="policy_changed"), "and that is on record")
    thread.join()
    d.stop()


def pooled(t, d, server, what):
    """Something in between, with the server's certificate, that does not hand on what a startup sets."""
    d.resolve[HOST + ":5432"] = server.pooler(t, what)
    r = d.run(["psql", "-X", "-A", "-t", "host=%s dbname=orders user=x" % HOST, "-c", "SELECT current_user"])
    t.ok(r.returncode == 2 and "postgres_setting" in r.stderr, "a pooler that drops %s" % what.decode(),
         r.stdout, r.stderr)


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    d = bed(t, "d", [allow("orders", "app")], {"app": None})
    server = postgres.Postgres(t, d.ca, "pg", HOST)
    pem = d.ca.pem
    server.trust = lambda other: other.extra.update(
        upstream={"ca": [pem], "resolve": other.resolve})
    server.sql(SETUP)
    server.sql(TABLES, "orders")
    d.resolve[HOST + ":5432"] = server.address
    scanner = scan.Scanner(app=b"app-password-4711")
    box = durward.Sandbox(d)
    t.part(ordinary, t, box, d, server)
    t.part(encrypted, t, box, d, server)
    t.part(cancelled, t, box, d, server)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(scan.scan_front, t, d, "postgres-front", HOST, scanner)
    t.part(guessed, t, box, d, server)
    t.part(records, t, d, server)
    t.part(deaths, t, box, d)
    box.close()
    for name, rule, login, run in (
            ("role", allow("orders", "app", role="limited"), "app", forced),
            ("tools", allow("orders", "app"), "app", tools),
            ("driver", allow("orders", "app", role="limited"), "app", driver),
            ("read", allow("orders", "reader", access="read-only"), "reader", reading),
            ("write", allow("orders", "app", access="read-only"), "app", too_much),
            ("raw", allow("orders", "app", role="limited"), "app", raw),
            ("views", allow("orders", "app", role="limited"), "app", views),
            ("crowds", allow("orders", "app"), "app", crowds),
            ("reloaded", allow("orders", "app"), "app", reloaded),
            ("pool-role", allow("orders", "app", role="limited"), "app",
             lambda t, d, server: pooled(t, d, server, b"role")),
            ("pool-read", allow("orders", "reader", access="read-only"), "reader",
             lambda t, d, server: pooled(t, d, server, b"default_transaction_read_only")),
            ("neighbours", allow("orders", "app"), "app", neighbours),
            ("columns", allow("orders", "app"), "app", columns),
            ("caps", allow("orders", "app", rows=100, seconds=3), "app", capped)):
        other = bed(t, name, [rule], {login: None})
        other.resolve[HOST + ":5432"] = server.address
        server.trust(other)
        t.part(run, t, other, server)
    for name, rule, login, letters in (
            ("er", allow("orders", "app", role="limited"), "app", "ARS"),
            ("ew", allow("orders", "reader", access="read-only"), "reader", "AWS")):
        other = bed(t, name, [rule], {login: None})
        other.resolve[HOST + ":5432"] = server.address
        server.trust(other)
        t.part(escapes, t, other, server, letters, "escapes from %s" % name)
    t.part(logins, t, server)
    t.part(telling, t, server)


tap.run(main, timeout=400)
