#!/usr/bin/python3 -B
"""MariaDB with real clients inside a sandbox and a real server outside: the login is proven by the
vault, statements are judged, and what a rule does not leave never reaches the server."""
import base64
import os
import re
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, deaths as died, durward, mysql, mysql_words, scan, tap, telltale  # noqa: E402
from harness.nginx import free_port  # noqa: E402

HOST = "db.example.com"
BUDGETS = {"small.example.com": {"requests": "2/h"}, "tight.example.com": {"download": "60KB/h"},
           "bulk.example.com": {"upload": "60KB/h"}}
HERE = os.path.dirname(os.path.abspath(__file__))
ASK = "mariadb --no-defaults -A -N -B -h %s -u anybody orders -e \"%%s\" 2>&1" % HOST
SETUP = """
CREATE DATABASE orders CHARACTER SET utf8mb4; CREATE DATABASE other;
CREATE TABLE orders.t (id int PRIMARY KEY, a text);
INSERT INTO orders.t SELECT seq, CONCAT('row ', seq) FROM orders.seq_1_to_1000;
CREATE TABLE other.secret (a text); INSERT INTO other.secret VALUES ('theirs');
CREATE USER app@'%' IDENTIFIED BY 'app-password-4711';
CREATE USER reader@'%' IDENTIFIED BY 'reader-password-4711';
CREATE USER signed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('signed-password-4711');
CREATE USER wide@'%' IDENTIFIED BY 'wide-password-4711';
GRANT ALL ON orders.* TO app@'%', signed@'%';
GRANT SELECT ON orders.* TO reader@'%';
GRANT ALL ON *.* TO wide@'%';
"""


def bed(t, name, rules, login, auth, server=None):
    d = durward.Durward(t, name)
    d.secret(login + "_password", login + "-password-4711")
    d.secrets[login] = {"mysql_login": {"user": login, "password": login + "_password", "auth": auth}}
    d.policies["coder"] = {"rules": rules}
    if server:
        trust(d, server)
    return d


def trust(d, server):
    d.resolve[HOST + ":3306"] = server.address
    d.extra.update(upstream={"ca": [server.pem], "resolve": d.resolve})


def allow(database, login, **more):
    return dict({"allow": "mysql://%s/%s" % (HOST, database), "with": {"mysql_login": login}}, **more)


def cli(box, sql, database="orders", options="", timeout=30):
    return box.sh("mariadb --no-defaults -A -N -B -f -h %s -u anybody %s %s" % (HOST, options, database), stdin=sql, timeout=timeout)


def ordinary(t, box, d, server):
    status, out, err = cli(box, "SELECT current_user(), count(*) FROM t;")
    t.ok(status == 0 and out == "app@%\t1000\n", "the client reads, as the login of the vault", out, err)
    status, out, err = cli(box, "BEGIN; INSERT INTO t VALUES (5000, 'new'); SELECT a FROM t WHERE id = 5000; ROLLBACK;")
    t.eq((status, out), (0, "new\n"), "a transaction: " + err)
    status, out, err = cli(box, "SELECT REPEAT('x', 5000000);")
    t.eq(len(out), 5000001, "a value of five megabytes: " + err)
    status, out, err = cli(box, "SELECT a FROM t WHERE id = 1; SELECT * FROM other.secret; SELECT a FROM t WHERE id = 2;")
    t.ok(out == "row 1\nrow 2\n" and "refused: a name of another database" in err, "a refusal has its place", out, err)
    status, out, err = cli(box, "SELECT 1", database="other")
    t.ok(status != 0 and "no_rule" in err, "another database is denied", out, err)
    status, out, err = box.sh("mariadb --no-defaults -h %s --ssl --ssl-ca=$SSL_CERT_FILE --ssl-verify-server-cert -e '\\s' orders" % HOST)
    t.ok(status == 0 and "Cipher in use is TLS" in out, "in TLS, by the sandbox's CA", out, err)
    t.eq(box.py("mysql_raw.py", HOST, "tls"), ["tls", "refused"], "behind a wish for TLS comes TLS, at once or later, and nothing else")


def escapes(t, d, server):
    """None of them reaches the server, by a query or prepared."""
    box = durward.Sandbox(d)
    with open(os.path.join(HERE, "../statements/mysql_escapes"), "rb") as f:
        asked = [line.rstrip(b"\n") for line in f if not line.startswith(b"#")]
    before = len(server.said())
    said = box.py("mysql_raw.py", HOST, stdin="".join(s.hex() + "\n" for s in asked), timeout=120)
    wrong = [x for x in said if x != "refused"]
    t.eq((len(said), wrong[:5]), (2 * len(asked), []), "%d statements are refused" % len(asked))
    t.ok("theirs" in server.sql("SELECT a,1.5FROM other.secret;SELECT a,1e1FROM other.secret"),
         "behind a number a server's word begins at once (control)")
    log = server.said()[before:]
    t.eq([s for s in asked if len(s) > 12 and s.decode() in log], [], "none of their texts is in the server's log")
    status, out, err = cli(box, "SELECT count(*) FROM t; SHOW TABLES; SET NAMES utf8mb4; SELECT t.a FROM t WHERE t.id IN (1, 2);"
                           "SELECT EXTRACT(YEAR FROM t.a) IS NULL FROM t LIMIT 1; SELECT @@session.tx_read_only;"
                           "SELECT count(*) > 0 FROM information_schema.tables; SELECT REPLACE(t.a, 'r', 'x') FROM t LIMIT 1;"
                           "DESC t; SET SESSION sql_mode='STRICT_ALL_TABLES'; START TRANSACTION READ ONLY; COMMIT;")
    t.ok(status == 0 and out.startswith("1000\nt\nrow 1\nrow 2\n") and "\n1\n1\nxow 1\n" in out, "what reads is allowed", out, err)
    box.close()


def cut(t, d, server):
    """Statements by chance, which name another database: what of them comes to the server it does not read so."""
    box, seed = durward.Sandbox(d), int(time.time() / 86400)
    asked = mysql_words.statements(500, seed)
    said = box.py("mysql_raw.py", HOST, "latin1", stdin="".join(s.hex() + "\n" for s in asked), timeout=60)
    passed = [x for x in said if x != "refused"]
    wrong = [x for x in passed if "denied" in x and "`other`" in x.rpartition("denied")[2]]
    t.ok(len(said) == 2 * len(asked) and passed, "%d statements by chance, %d to the server (seed %d)" % (len(said), len(passed), seed))
    t.eq(wrong[:3], [], "none of which it has to refuse for another database's sake")
    box.close()


def too_much(t, d, server, code):
    r = d.run(["mariadb", "--no-defaults", "-h", HOST, "-e", "SELECT 1", "orders"])
    t.ok(r.returncode != 0 and code in r.stderr, "a login that may do more has no session: " + code, r.stdout, r.stderr)


def signed(t, d, server):
    r = d.run(["mariadb", "--no-defaults", "-N", "-h", HOST, "-e", "SELECT current_user()", "orders"])
    t.ok("signed@%" in r.stdout, "client_ed25519", r.stdout, r.stderr)


def weaker(t, d, server):
    r = d.run(["mariadb", "--no-defaults", "-h", HOST, "-e", "SELECT 1", "orders"])
    t.ok(r.returncode != 0 and "weaker" in r.stderr, "a weaker login than is declared", r.stdout, r.stderr)


def capped(t, d, server):
    box = durward.Sandbox(d)
    status, out, err = cli(box, "SELECT id FROM t;", options="--quick")
    t.ok(len(out.splitlines()) <= 100 and "all the rows" in err, "rows end at their bound", str(len(out.splitlines())), err)
    status, out, err = cli(box, "SELECT SLEEP(20);", timeout=20)
    t.ok("time is over" in err, "a session ends in its time", out, err)
    box.close()


def files(t, d, server):
    box = durward.Sandbox(d)
    lines = "".join("%d\tloaded\n" % i for i in range(10000, 60000))
    box.sh("cat > /tmp/rows", stdin=lines)
    status, out, err = cli(box, "LOAD DATA LOCAL INFILE '/tmp/rows' INTO TABLE t; SELECT count(*) FROM t WHERE a = 'loaded';"
                           "DELETE FROM t WHERE a = 'loaded';", options="--local-infile=1")
    t.eq((status, out), (0, "50000\n"), "a file of the client's, where the rule says so: " + err)
    box.close()


def cancelled(t, box, d, server):
    status, out, err = box.sh("timeout -s INT 3 mariadb --no-defaults -h %s -e 'SELECT SLEEP(20)' orders; echo $?" % HOST, timeout=15)
    t.ok(tap.wait_for(lambda: "SLEEP(20)" not in server.running("app"), 3),
         "a statement is cancelled", out, err)
    t.ok("KILL QUERY" in server.said(), "by KILL QUERY", out, err)


def records(t, d, server):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "mysql"]
    one = admitted[0] if admitted else {}
    t.ok(one.get("user") == "app" and one.get("authority") == HOST and one.get("path") == "/orders" and
         one.get("credential") == "app" and one.get("role") == "mysql-back", "a session is on record before it is made", str(one))
    ends = d.ends(admitted)
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end",
         str([r for r in admitted if r["id"] not in ends][:3]))
    t.ok(re.match(r"[0-9a-f]{16}:\d+", ends.get(one.get("id"), {}).get("statements", "")), "with fingerprints of its statements")
    log = b"".join(open(p, "rb").read() for p in d.audit_files())
    t.ok(b"'new'" not in log and b"REPEAT" not in log.upper(), "and none of their values or texts")


def deaths(t, box, d):
    died.each(t, box, d, "mysql", ASK % "SELECT SLEEP(30)", ("ERROR 2013", "ERROR 2026", "broker_gone"),
              lambda: cli(box, "SELECT 1;")[0] == 0)


def memory(t, box, d, scanner):
    """While sessions run: the login is proven by the vault, so neither of the broker's roles has ever had the password."""
    if os.geteuid() != 0:
        t.skip("every mapping of the broker's roles", "reading other processes' memory needs root")
        return
    run = threading.Thread(target=lambda: cli(box, "SELECT SLEEP(2);"))
    run.start()
    t.ok(d.wait_records(1, "admitted", scheme="mysql"), "sessions run")
    own = scan.Scanner(app=b"app-password-4711")
    t.ok(scan.scan_process(os.getpid(), own, "the test")[0], "a process that has it is seen to have it (control)")
    found = [(pid, role) for pid, role in d.roles() if role in ("mysql-front", "mysql-back", "gate", "dialer", "logger")]
    hits = [h for pid, role in found for h in scan.scan_process(pid, scanner, "%s %d" % (role, pid))[0]]
    run.join()
    t.eq(sorted({role for _, role in found}), ["dialer", "gate", "logger", "mysql-back", "mysql-front"], "the roles were read")
    t.ok(not hits, "0 copies of the password in them", *["%s as %s in %s" % h for h in hits])


def guessed(t, box, d, server):
    """Nothing that the server says back tells a sandbox which of its guesses at the password is right."""
    said = []
    for guess in ("app-password-4711", "app-password-4719", "x" * 17):
        status, out, err = cli(box, "SELECT '%s'; SELECT * FROM `%s`; SELECT `%s`.a FROM t; SELECT JSON_EXTRACT('%s', '$'); SELECT CAST('%s' AS int);"
                               " SHOW WARNINGS;" % ((guess,) * 5))
        said.append((out + err).replace(guess, "GUESS"))
    t.ok(said[0] == said[1] == said[2] and said[0].count("GUESS") >= 4, "an echo of the password is an echo as of any word", *said)


def driver(t, d, server):
    """PyMySQL (the clients' environment's, or the system's), and mysql2 for Node."""
    box = durward.Sandbox(d, binds=durward.client_binds("venv", "node_modules"))
    pythons = [p for p in (os.path.join(durward.clients_dir(), "venv/bin/python"), "/usr/bin/python3")
               if box.sh(p + " -c 'import pymysql'")[0] == 0]
    if not pythons:
        t.skip("PyMySQL", "there is none (tests/functional/clients/setup, or python3-pymysql)")
    else:
        status, out, err = box.sh("%s %s/inside/mysql_driver.py %s" % (pythons[0], HERE, HOST), timeout=60)
        t.eq((status, out.strip()), (0, "ok"), "PyMySQL: " + err[-300:])
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not os.path.isdir(modules + "/mysql2"):
        t.skip("mysql2", "the clients' environment has none (tests/functional/clients/setup)")
    else:
        status, out, err = box.sh("NODE_PATH=%s node %s/inside/mysql_driver.js %s" % (modules, HERE, HOST), timeout=60)
        t.eq((status, out.strip()), (0, "ok"), "mysql2: " + err[-300:])
    box.close()


def dumps(t, d, server):
    """Programs that name no database as they connect, and USE it: it is the rules' only one. Also beside a session, where the first
    word of such a connection may be KILL QUERY."""
    box = durward.Sandbox(d)
    at = "--no-defaults -h %s -u anybody" % HOST
    for how in ("", "--single-transaction", "--databases"):
        status, out, err = box.sh("mariadb-dump %s %s orders" % (at, how), timeout=60)
        t.ok(status == 0 and "(1000,'row 1000');" in out and "Dump completed" in out, "mariadb-dump %s" % how, out[-300:], err)
    status, out, err = box.sh("mariadb %s -N -e 'SELECT DATABASE()'; mariadb %s -e 'USE other'" % (at, at))
    t.ok(out.startswith("orders\n") and "another database" in err, "it has that database, and no other", out, err)
    box.sh("(mariadb %s orders -e 'SELECT SLEEP(8)' >/dev/null 2>&1 &)" % at)
    t.ok(tap.wait_for(lambda: "SLEEP(8)" in server.running("app"), 5), "a session is there")
    status, out, err = box.sh("mariadb-dump %s --compact orders t | tail -c 20; mariadb %s -N -e 'SELECT COUNT(*), REPEAT(\"x\", 5) FROM t /* %s */'" %
                              (at, at, "x" * 20000), timeout=60)
    t.ok(out.endswith("'row 1000');\n1000\txxxxx\n"), "nor beside a session, nor with a long first word", out, err)
    box.close()


def restored(t, d, server):
    """A dump goes in as its program wrote it: it keeps the session's modes and character sets in variables, and sets them again at
    its end. What such a variable holds is asked for before the next statement is carried."""
    box = durward.Sandbox(d)
    at = "--no-defaults -h %s -u anybody orders" % HOST
    status, out, err = box.sh("mariadb-dump %s > /tmp/dump.sql && mariadb %s < /tmp/dump.sql && mariadb %s -N -e 'SELECT COUNT(*) FROM t'; "
                              "grep -c 'SET SQL_MODE=@OLD_SQL_MODE\\|999999\|@saved_cs_client' /tmp/dump.sql" % (at, at, at), timeout=60)
    t.eq((status, out), (0, "1000\n4\n"), "a dump is restored as it is: " + err)
    status, out, err = cli(box, "SET @m = @@sql_mode, @c = @@character_set_client; SET sql_mode = ''; SET sql_mode = @m, "
                           "character_set_client = @c; SELECT 7; SET sql_mode = @none; SELECT 8;")
    t.ok(out == "7\n8\n" and "1231" in err, "what the server itself refuses ends nothing", out, err)
    for what, mode in (("sql_mode", "ANSI_QUOTES"), ("sql_mode", "NO_BACKSLASH_ESCAPES"), ("character_set_client", "gbk"),
                       ("character_set_connection", "sjis")):
        status, out, err = cli(box, "SET @m = '%s'; SET %s = @m; SELECT \"4711\" AS after_%s;" % (mode, what, mode.lower()))
        t.ok("mysql_setting" in err and "4711" not in out, "%s = %s ends the session" % (what, mode), out, err)
        t.ok("after_%s" % mode.lower() not in server.said(), "and what stands behind it never reaches the server")
    status, out, err = cli(box, "SET @m = 'ANSI_QUOTES'; SET @@session.sql_mode = @m, autocommit = 1; SELECT \"4711\";")
    t.ok("mysql_setting" in err and "4711" not in out, "nor beside another setting", out, err)
    t.ok(d.wait_records(1, "aborted", code="mysql_setting"), "which is on record")
    box.close()


def reloaded(t, d, server):
    """A session ends when its rule has other terms; it goes on when another rule comes."""
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    thread = threading.Thread(target=lambda: got.append(api.Api(d.socket, timeout=60).sh(box, ASK % "SELECT SLEEP(30)")))
    thread.start()
    t.ok(d.wait_records(1, "admitted", scheme="mysql"), "a session runs")
    tap.wait_for(lambda: "SLEEP(30)" in server.running("app"), 10)
    d.policies["coder"]["rules"].append({"allow": "other.example.com"})
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "another rule is added")
    status, out = calls.sh(box, ASK % "SELECT 5")
    t.ok(out == b"5\n" and not got, "the session goes on", str((status, out, got)))
    d.policies["coder"]["rules"][0]["statements"] = ["read"]
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "its rule has other terms")
    thread.join(10)
    t.ok(got and got[0][0] != 0 and b"policy was changed" in got[0][1], "a session ends with its terms", str(got))
    t.ok(d.wait_records(1, "aborted", code="policy_changed"), "and that is on record")
    d.stop()


def held(calls, n=1):
    def look():
        found = calls.ask("GET", "/v1/approvals")["approvals"]
        return found if len(found) == n else None
    return tap.wait_for(look, 10, 0.05) or []


def bounded(t, d, server):
    """`ask`, a budget of requests, and one of bytes each way: what is not left never reaches the server."""
    d.resolve.update({h + ":3306": server.address for h in BUDGETS})
    rules = d.policies["coder"]["rules"]
    rules[0]["ask"] = rules[0].pop("allow")
    rules += [{"allow": "mysql://%s/orders" % host, "with": {"mysql_login": "app"}, "budget": budget} for host, budget in BUDGETS.items()]
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []

    def begin(command):
        got.clear()
        thread = threading.Thread(target=lambda: got.append(api.Api(d.socket, timeout=60).sh(box, command)))
        thread.start()
        return thread

    def logins():
        return server.said().count("Connect\tapp@")

    before, thread = logins(), begin(ASK % "SELECT 4711")
    (one,) = held(calls)
    t.eq((one["method"], one["url"], one["credential"]), ("connect", "mysql://%s/orders" % HOST, "app"), "a session is held, and shown")
    t.eq((logins() - before, got, d.kinds("admitted")), (0, [], []), "its server has heard nothing, and nothing is admitted")
    calls.ask("POST", "/v1/approvals/%s/allow" % one["id"])
    thread.join(20)
    t.eq(got, [(0, b"4711\n")], "allowed, it goes on")
    (r,) = d.wait_records(1, "admitted", scheme="mysql")
    t.ok(r.get("detail", "").startswith("approved by "), "its record says who approved it", str(r))
    thread = begin(ASK % "SELECT 4712")
    calls.ask("POST", "/v1/approvals/%s/deny" % held(calls)[0]["id"])
    thread.join(20)
    t.ok(got and got[0][0] != 0 and b"approval_denied" in got[0][1], "denied, the client is told", str(got))
    thread = begin("timeout 2 " + ASK % "SELECT 4713")
    t.ok(held(calls), "another is held")
    thread.join(20)
    t.ok(tap.wait_for(lambda: not calls.ask("GET", "/v1/approvals")["approvals"], 5), "a client that leaves asks no more")
    t.ok(logins() - before == 1 and "SELECT 471" in server.said() and "4712" not in server.said(), "one of three was there")
    small = (ASK % "SELECT 1").replace(HOST, "small.example.com")
    t.eq([calls.sh(box, small) for _ in range(2)], [(0, b"1\n")] * 2, "two sessions of a budget of two")
    before = logins()
    status, out = calls.sh(box, small)
    t.ok(status != 0 and b"budget" in out and logins() == before, "a third is refused, and its server sees nothing", str(out))
    status, out = calls.sh(box, (ASK % "SELECT REPEAT('x', 1000) FROM t LIMIT 500").replace(HOST, "tight.example.com"))
    t.ok(status != 0 and out.count(b"x" * 1000) < 61, "a budget of bytes ends a session", str(out[-200:]))
    t.ok(d.wait_records(1, "aborted", code="budget"), "which is on record")
    status, out = calls.sh(box, "(printf \"SELECT LENGTH('\"; head -c 400000 /dev/zero | tr '\\0' y; printf \"')\") | "
                           "mariadb --no-defaults -N -B -h bulk.example.com orders 2>&1")
    t.ok(status != 0 and b"400000" not in out and "yyyyyyyy" not in server.said(), "and one of what goes there", str(out[-200:]))
    d.stop()


def crowds(t, d, server):
    """As many connections as a sandbox may have, and sessions as a policy's sandboxes may have together, at a
    server that says nothing: never so many that none are left for another sandbox."""
    silent = socket.create_server(("127.0.0.1", 0))
    silent.listen(1024)
    t.cleanup(silent.close)
    d.resolve[HOST + ":3306"] = "127.0.0.1:%d" % silent.getsockname()[1]
    d.serve()
    calls = api.Api(d.socket)
    boxes = [calls.create(policy="coder")["id"] for _ in range(5)]
    with open(os.path.join(HERE, "inside/mysql_raw.py"), "rb") as f:
        program = "echo %s | base64 -d >p.py; /usr/bin/python3 p.py %s " % (base64.b64encode(f.read()).decode(), HOST)
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


NEIGHBOURS = "SELECT info FROM information_schema.processlist WHERE info LIKE '%of-a-neighbour%' AND id <> connection_id();"


def neighbours(t, d, server):
    """What a sandbox runs is not shown to another of the same login, but where the rule says so."""
    other = bed(t, "seen", [allow("orders", "app", activity=True)], "app", "native", server)
    box, seen, alone = durward.Sandbox(d), durward.Sandbox(other), durward.Sandbox(d)
    thread = threading.Thread(target=lambda: cli(box, "SELECT 'of-a-neighbour', SLEEP(60);", timeout=90))
    thread.start()
    t.ok(tap.wait_for(lambda: "of-a-neighbour" in server.running("app"), 20, 0.1), "a neighbour is at work")
    status, out, err = cli(seen, NEIGHBOURS)
    t.ok(status == 0 and "of-a-neighbour" in out, "a rule with activity shows it", out, err)
    folded = NEIGHBOURS.replace("processlist", "processl\u0130st")
    status, out, err = cli(seen, folded, options="--default-character-set=utf8mb4")
    t.ok(status == 0 and "of-a-neighbour" in out, "so it does by another writing of that name (control)", out, err)
    status, out, err = cli(alone, folded + "SELECT 'goes on';", options="--default-character-set=utf8mb4")
    t.ok("of-a-neighbour" not in out and out.endswith("goes on\n") and "'activity'" in err, "which no other rule lets pass", out, err)
    status, out, err = cli(alone, NEIGHBOURS + "SHOW FULL PROCESSLIST; SELECT 'goes on';")
    t.ok("of-a-neighbour" not in out and out.endswith("goes on\n") and err.count("'activity'") == 2,
         "any other rule does not", out, err)
    for one in server.sql("SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT ''of-a-neighbour%'").split():
        server.sql("KILL QUERY " + one)
    thread.join(20)
    box.close()
    seen.close()
    alone.close()


def strangers(t, d, server):
    """Servers that do not let the login in, or cannot show who they are."""
    d.secret("app_password", "another-4711")
    r = d.run(["mariadb", "--no-defaults", "-h", HOST, "-e", "SELECT 1", "orders"])
    t.ok(r.returncode != 0 and "upstream_login" in r.stderr and "1045" in r.stderr, "a wrong password", r.stdout, r.stderr)
    d = bed(t, "untrusted", [allow("orders", "app")], "app", "native")
    d.resolve[HOST + ":3306"] = server.address
    r = d.run(["mariadb", "--no-defaults", "-h", HOST, "-e", "SELECT 1", "orders"])
    t.ok(r.returncode != 0 and "upstream_tls" in r.stderr, "a server that cannot be verified", r.stdout, r.stderr)


def telling(t, d, server):
    """A server that says the password, which it was given by caching_sha2's full login, as it refuses it."""
    tell = telltale.Telltale(t, d.ca, HOST, telltale.mysql)
    d.resolve[HOST + ":3306"] = tell.address
    d.extra["upstream"]["ca"] = [d.ca.pem]
    r = d.run(["mariadb", "--no-defaults", "-h", HOST, "-e", "SELECT 1", "orders"])
    t.ok(set(tell.words) == {b"app-password-4711"} and "the server says 1045" in r.stderr and "4711" not in r.stdout + r.stderr,
         "a server that says a login that it refuses", repr(tell.words), r.stdout, r.stderr)
    t.ok(d.kinds("aborted") and "4711" not in str(d.kinds("aborted")), "of which nothing is on record but its code", str(d.kinds("aborted")))


def sha2(t, d, server):
    """caching_sha2 at a server that has it: the password itself within TLS, then proofs of the vault's; a wrong one of each."""
    program = os.path.join(durward.clients_dir(), "databases", "mysql-server")
    if not os.path.exists(program):
        t.skip("caching_sha2 at a server", "it is not there (tests/databases/setup)")
        return
    crt, key = d.ca.issue(HOST)
    port, log = free_port(), os.path.join(t.mkdir("sha2-server"), "log")
    with open(log, "wb") as out:
        t.popen([program, "127.0.0.1:%d" % port, crt, key, "app", "app-password-4711"], stdout=out, stderr=out)
    said = lambda: [x for x in open(log).read().split("\n") if x in ("ready", "full", "fast")]  # noqa: E731
    t.ok(tap.wait_for(lambda: said() == ["ready"], 20), "the server is there")
    d.resolve[HOST + ":3306"] = "127.0.0.1:%d" % port
    d.extra["upstream"]["ca"] = [d.ca.pem]
    box = durward.Sandbox(d)
    for n, how in enumerate(("full", "fast", "fast"), 1):
        status, out, err = cli(box, "SELECT 4711;")
        t.ok((status, out, said()[1:][n - 1:]) == (0, "4711\n", [how]), "caching_sha2, %s" % how, out, err, str(said()))
    scan.scan_front(t, d, "mysql-back", HOST, scan.Scanner(app=b"app-password-4711"))
    box.close()
    d.secret("app_password", "another-4711")
    r = d.run(["mariadb", "--no-defaults", "-h", HOST, "-e", "SELECT 1", "orders"])
    t.ok(r.returncode != 0 and "upstream_login" in r.stderr and "1045" in r.stderr, "a wrong proof", r.stdout, r.stderr)


def main(t):
    why = mysql.missing()
    if why:
        t.skip("everything", why)
        return
    d = bed(t, "d", [allow("orders", "app")], "app", "native")
    server = mysql.Mysql(t, d.ca, HOST, *BUDGETS)
    server.pem = d.ca.pem
    server.sql(SETUP)
    trust(d, server)
    box = durward.Sandbox(d)
    scanner = scan.Scanner(app=b"app-password-4711")
    t.part(ordinary, t, box, d, server)
    t.part(cancelled, t, box, d, server)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(memory, t, box, d, scanner)
    t.part(guessed, t, box, d, server)
    t.part(records, t, d, server)
    t.part(deaths, t, box, d)
    box.close()
    for name, rule, login, auth, run in (
            ("read", allow("orders", "reader", access="read-only"), "reader", "native", escapes),
            ("cut", allow("orders", "reader", access="read-only"), "reader", "native", cut),
            ("write", allow("orders", "app", access="read-only"), "app", "native", lambda *a: too_much(*a, "mysql_writes")),
            ("wide", allow("orders", "wide"), "wide", "native", lambda *a: too_much(*a, "mysql_beyond")),
            ("signed", allow("orders", "signed"), "signed", "ed25519", signed),
            ("weaker", allow("orders", "app"), "app", "caching_sha2", weaker),
            ("sha2", allow("*", "app"), "app", "caching_sha2", sha2),
            ("telling", allow("orders", "app"), "app", "caching_sha2", telling),
            ("files", allow("orders", "app", local_infile=True), "app", "native", files),
            ("driver", allow("orders", "app"), "app", "native", driver),
            ("dumps", allow("orders", "app"), "app", "native", dumps),
            ("restored", allow("orders", "app"), "app", "native", restored),
            ("reloaded", allow("orders", "app"), "app", "native", reloaded),
            ("bounded", allow("orders", "app"), "app", "native", bounded),
            ("crowds", allow("orders", "app"), "app", "native", crowds),
            ("neighbours", allow("orders", "app"), "app", "native", neighbours),
            ("strangers", allow("orders", "app"), "app", "native", strangers),
            ("caps", allow("orders", "app", rows=100, seconds=3), "app", "native", capped)):
        other = bed(t, name, [rule], login, auth, server)
        t.part(run, t, other, server)


tap.run(main, timeout=120)
