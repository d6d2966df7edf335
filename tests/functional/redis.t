#!/usr/bin/python3 -B
"""Redis with real clients inside a sandbox and a real server outside: the login is the vault's, and
commands that a rule does not leave to a session never reach the server."""
import json
import os
import random
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import deaths as died, durward, redis, scan, smtp, tap  # noqa: E402

HOST = "cache.example.com"
PASSWORD = "app-password-4711"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def allow(scheme="rediss", **more):
    rule = dict({"allow": "%s://%s" % (scheme, HOST), "with": {"redis_login": "app"}}, **more)
    if scheme == "redis":
        rule["allow_plaintext"] = True
    return rule


def bed(t, name, rules, server):
    d = durward.Durward(t, name)
    d.secret("app_password", PASSWORD)
    d.secrets["app"] = {"redis_login": {"user": "app", "password": "app_password"}}
    d.policies["coder"] = {"rules": rules}
    tls = rules[0]["allow"].startswith("rediss")
    d.resolve[HOST + ":6379"] = server.tls if tls else server.address
    d.extra.update(upstream={"ca": [server.pem], "resolve": d.resolve})
    return d


def cli(box, *lines, options="", timeout=60):
    return box.sh("redis-cli -h %s %s" % (HOST, options), stdin="".join(l + "\n" for l in lines),
                  timeout=timeout)


def raw(box, *commands):
    return box.py("redis_raw.py", HOST, stdin=json.dumps([list(c) for c in commands]), timeout=60)


def refused(said):
    return said[0] == "-" and said[1].startswith("NOPERM durward: refused: ")


def ordinary(t, box, d, server):
    status, out, err = cli(box, "SET greeting welcome-4711", "GET greeting", "ACL WHOAMI", "LPUSH l 1 2 3",
                           "LRANGE l 0 -1", "INCR n", "HSET h a 1 b 2", "HGETALL h")
    t.ok(status == 0 and "OK\nwelcome-4711\n" in out and "3\n2\n1\n" in out and "a\n1\nb\n2" in out,
         "redis-cli writes and reads", out, err)
    t.ok("NOPERM durward: refused" in out, "what must be named is refused, and the connection lives on", out)
    t.eq(server.call("GET", "greeting"), b"welcome-4711", "at the server")
    said = raw(box, ["AUTH", "x"], ["SET", "a", "1"], ["CONFIG", "GET", "*"], ["GET", "a"], ["HELLO", "3", "AUTH", "u", "p"],
               ["MULTI"], ["SET", "b", "2"], ["EXEC"], ["MULTI"], ["MONITOR"], ["SET", "b", "3"], ["EXEC"], ["GET", "b"])
    t.eq(said[0], ["+", "OK"], "a login of the sandbox's is answered here")
    t.ok(said[1] == ["+", "OK"] and refused(said[2]) and said[3] == ["$", "1"], "a refusal has its place in a pipeline", str(said))
    t.ok(said[4][0] == "%" and ["$", "proto"] in said[4][1] and [":", "3"] in said[4][1], "HELLO 3, its login left out", str(said[4]))
    t.eq(said[7], ["*", [["+", "OK"]]], "a transaction")
    t.ok(refused(said[9]) and said[11][0] == "-" and said[11][1].startswith("EXECABORT") and said[12] == ["$", "2"],
         "a refusal fails its transaction", str(said[8:]))
    said = raw(box, ["SUBSCRIBE", "c"], ["SET", "a", "2"], ["PING"], ["UNSUBSCRIBE", "c"], ["CONFIG", "GET", "x"], ["GET", "a"])
    t.ok(said[0][0] == "*" and said[1][0] == "-" and said[2] == ["*", [["$", "pong"], ["$", ""]]] and refused(said[4]) and
         said[5] == ["$", "1"], "a subscriber's mode of RESP2", str(said))
    value = "x" * 900000
    said = raw(box, ["SET", "long", value], ["GET", "long"])
    t.ok(said[0] == ["+", "OK"] and said[1] == ["$", value], "a value of 900,000 bytes", str(said)[:300])
    said = raw(box, *[["INCR", "counter"]] * 20000)
    t.eq(said, [[":", str(i + 1)] for i in range(20000)], "20,000 commands in a pipeline")


def strict(t, box, d, server):
    before = server.call("DBSIZE")
    for what, data in (("an inline command", "SET inline 1\r\n"), ("a sign", "*+1\r\n$4\r\nPING\r\n"),
                       ("a leading zero", "*01\r\n$4\r\nPING\r\n"), ("no array", "$4\r\nPING\r\n"),
                       ("an empty array", "*0\r\n*1\r\n$4\r\nPING\r\n"), ("a null", "*-1\r\n"),
                       ("a bare newline", "*1\n$4\nPING\n"), ("a body that is longer", "*1\r\n$3\r\nPING\r\n"),
                       ("an argument beyond Redis' own bound", "*2\r\n$3\r\nGET\r\n$536870913\r\n"),
                       ("more arguments than a command has", "*1048577\r\n$3\r\nDEL\r\n")):
        said = box.py("redis_raw.py", HOST, stdin=json.dumps([data]), timeout=30)
        t.ok(said[0][0] == "-" and "redis_protocol" in said[0][1], what + " is refused", str(said))
    t.eq(server.call("DBSIZE"), before, "and nothing came of them")


def encrypted(t, box, d, server):
    """Clients that insist on TLS have it, by the sandbox's own CA."""
    status, out, err = cli(box, "SET tls 1", "GET tls", "CONFIG GET *", options="--tls")
    t.ok("OK\n1\n" in out and "NOPERM durward: refused" in out, "redis-cli --tls", out, err)
    status, out, err = box.sh("redis-benchmark --tls -h %s -q -n 2000 -c 10 -P 8 -t set,get" % HOST, timeout=90)
    t.ok(status == 0 and "GET" in out and "rror" not in err, "redis-benchmark --tls", out[-300:], err)


def leaving(t, box, d, server):
    """A client that says QUIT gets all replies to what it said before."""
    server.call("SET", "long", "x" * 400000)
    came = box.py("redis_quit.py", HOST, "long", "40", timeout=60)
    t.eq([c for c in came if c != [400016, "+OK\r\n"]], [], "replies that are on their way when the server closes")


def guessed(t, box, d, server):
    """Nothing that the server says back tells a sandbox which of its guesses at the password is right, and what says the
    password or a hash of it is refused."""
    said, guesses = [], (PASSWORD, PASSWORD[:-1] + "9", "x" * len(PASSWORD))
    for guess in guesses:
        came = raw(box, ["ECHO", guess], ["SET", "said", "before %s behind" % guess], ["GET", "said"], ["SET", "a", "1", guess],
                   ["CLIENT", "SETNAME", guess], ["CLIENT", "GETNAME"], ["PUBLISH", guess, "x"], ["LPUSH", guess, guess[:8]], ["TYPE", guess],
                   ["MULTI"], ["GETRANGE", "said", "7", str(6 + len(guess))], ["EXEC"], ["DEL", guess, "said"])
        said.append(json.dumps(came).replace(guess, "GUESS").replace(guess[:8], "PART"))
    t.ok(said[0] == said[1] == said[2] and said[0].count("GUESS") == 4, "an echo of the password is an echo as of any word", *said)
    held = threading.Thread(target=cli, args=(box, "BLPOP nothing 3"))
    held.start()
    began = tap.wait_for(lambda: b"cmd=blpop" in server.call("CLIENT", "LIST"), 10)
    t.ok(began, "a session is open")
    scan.scan_front(t, d, "redis-back", HOST, scan.Scanner(app=PASSWORD.encode()))
    held.join()


def told(t, server):
    """A rule that names what shows passwords: none of it does."""
    d = bed(t, "told", [allow(commands=["config|*", "config|get", "acl|list", "acl|getuser", "acl|whoami", "@read"]),
                        dict(allow("redis"), allow="redis://old.example.com")], server)
    old = smtp.Scripted(b"", b"-ERR unknown command `AUTH`, with args beginning with: `app`, `%s`, \r\n" % PASSWORD.encode())
    d.resolve["old.example.com:6379"] = old.address
    box = durward.Sandbox(d)
    said = raw(box, ["CONFIG", "GET", "requirepass"], ["CONFIG", "GET", "*"], ["CONFIG", "GET", "save", "Require*"], ["ACL", "LIST"],
               ["ACL", "GETUSER", "app"], ["CONFIG", "GET", "maxmemory"], ["ACL", "WHOAMI"], ["CONFIG", "GET", "max*"])
    t.ok([refused(s) for s in said] == [True] * 5 + [False] * 3 and said[6] == ["$", "app"], "passwords and hashes of them", str(said))
    status, out, err = box.sh("redis-cli -h old.example.com PING")
    t.ok("the server says ERR: upstream_login" in out + err and PASSWORD not in out + err, "a server that says a login that it refuses", out, err)
    t.ok(d.wait_records(1, "aborted", detail="the server says ERR"), "of which nothing is on record but its code")
    box.close()


def peak(d, role):
    """The most memory that a role has had, in bytes."""
    pid, = [p for p, r in d.roles() if r == role]
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1)) * 1024


def large(t, box, d, server):
    """Values of any size pass as they come, while the server takes them; nobody holds them."""
    before = {r: peak(d, r) for r in ("redis-front", "redis-back")}
    fill = "head -c 40000000 /dev/zero | tr '\\0' x"
    os.kill(server.process.pid, signal.SIGSTOP)  # it takes nothing for a while
    timer = threading.Timer(1.5, os.kill, (server.process.pid, signal.SIGCONT))
    timer.start()
    status, out, err = box.sh("%s >v; for i in 1 2 3 4; do redis-cli -h %s -x SET big:$i <v & done; wait" % (fill, HOST), timeout=90)
    timer.join()
    t.eq((status, out), (0, "OK\n" * 4), "four values of 40 MB at once: " + err)
    t.eq([server.call("STRLEN", "big:%d" % i) for i in (1, 2, 3, 4)], [40000000] * 4, "are there")
    status, out, err = box.sh("redis-cli -h %s GET big:3 | cmp - v 2>&1; redis-cli -h %s DEL big:1 big:2 big:3 big:4" % (HOST, HOST), timeout=90)
    t.ok(out == "cmp: EOF on v after byte 40000000, line 0\n4\n" or "EOF on v after byte 40000000" in out, "and come back as they were", out, err)
    grown = {r: peak(d, r) - n for r, n in before.items()}
    t.ok(all(n < 12 << 20 for n in grown.values()), "nobody held them", str(grown))


def crowd(t, d, server):
    """Commands whose keys stand between long values: held until they are judged, within a sandbox's share. Beyond it they pass
    as far as they are judged, and a key that is refused then ends its connection."""
    server.call("FLUSHALL")
    box = durward.Sandbox(d)
    value = "v" * 300000
    said = raw(box, ["MSET", "job:1", value, "job:2", value], ["MSET", "job:3", value, "other", value], ["PING"], ["MGET", "job:1", "job:3"])
    t.ok(said[0] == ["+", "OK"] and refused(said[1]) and said[2] == ["+", "PONG"] and said[3][1][0] == ["$", value] and len(said[3][1]) == 2,
         "a key behind a value is refused in its place", str(said)[:300])
    said = raw(box, ["SET", "job:4", "x"], ["MSET", "job:5", value * 5, "other", "y"], ["SET", "job:6", "x"])
    t.ok(said[-1] == ["end", ""] or refused(said[-1]), "behind one of 1.5 MB it ends the connection", str(said)[:300])
    t.eq((server.call("EXISTS", "job:5", "job:6", "other", database=2), server.call("EXISTS", "job:4", database=2)), (0, 1), "and nothing came of it")
    before = {r: peak(d, r) for r in ("redis-front", "redis-back")}
    said = box.py("redis_crowd.py", HOST, "60", timeout=90)
    grown = {r: peak(d, r) - n for r, n in before.items()}
    t.eq((said["held"], said["good"]), (["refused"] * said["n_held"] + ["ended"] * (30 - said["n_held"]), ["OK"] * 30),
         "sixty commands of 900 kB at once")
    t.ok(0 < said["n_held"] < 30, "some of them are held, some pass", str(said))
    t.ok(grown["redis-front"] < 40 << 20 and grown["redis-back"] < 24 << 20, "within their bounds", str(grown))
    t.eq(server.call("EXISTS", "other", database=2), 0, "no refused key is written")
    box.close()


def table():
    """The table of the tree: {name: (arity, classes, keys)}"""
    with open(os.path.join(TOP, "broker/redis/redis_table.c")) as f:
        text = re.sub(r"\s+", " ", f.read())
    return {m.group(1): (int(m.group(2)), set(m.group(3).replace(" ", "").split("|")), m.group(4))
            for m in re.finditer(r'\{"([a-z_|-]+)", (-?\d+), ([A-Z |]+), \{(.*?)\}\},(?= \{"| \})', text)}


def commands(rows, into):
    for row in rows:
        into[row[0].decode()] = row
        commands(row[9], into)
    return into


def fresh(t, server):
    """The table is what the server says of its commands."""
    ours, theirs = table(), {n.lower(): row for n, row in commands(server.call("COMMAND"), {}).items()}
    t.ok(len(theirs) > 300, "the server describes its commands", str(len(theirs)))
    t.eq(sorted(set(theirs) - set(ours)), [], "each is in the table")
    wrong = []
    for name, row in theirs.items():
        if name not in ours:
            continue
        flags, categories = {f for f in row[2]}, {c for c in row[6]}
        arity, classes, _ = ours[name]
        admin = "admin" in flags or categories & {"@admin", "@dangerous", "@scripting"}
        fits = arity == row[1] or (arity < 0 and -arity <= abs(row[1]))  # a newer server may want fewer words
        if (not fits or ("write" in flags and "WRITE" not in classes) or
                ("readonly" in flags) != ("READ" in classes and name != "info") or
                (admin and name != "info" and not classes & {"NAMED", "NEVER"})):
            wrong.append(name)
    t.eq(wrong, [], "with its class and arguments")
    return theirs


def example(name, row):
    """A call with as many arguments as it has at least."""
    words = name.split("|")
    return words + ["1"] * (abs(row[1]) - len(words))


def read_only(t, d, server):
    theirs = commands(server.call("COMMAND"), {})
    writes = sorted(n for n, row in theirs.items() if "write" in row[2] and not row[9])
    server.call("FLUSHALL")
    server.call("SET", "1", "as it was")
    before = server.call("INFO", "commandstats")
    box = durward.Sandbox(d)
    said = raw(box, *[f(example(n, theirs[n])) for n in writes
                      for f in (lambda c: c, lambda c: [c[0].lower()] + c[1:], lambda c: [c[0].title()] + c[1:])])
    t.eq((len(said), [s for s in said if not refused(s)][:3]), (3 * len(writes), []),
         "all %d commands that write are refused" % len(writes))
    others = ["PUBLISH c x", "SPUBLISH c x", "EVAL x 0", "EVALSHA x 0", "FCALL f 0", "SCRIPT LOAD x", "SCRIPT FLUSH",
              "CONFIG SET maxmemory 1", "SHUTDOWN NOSAVE", "DEBUG SLEEP 0", "REPLICAOF 127.0.0.1 1", "SLAVEOF NO ONE",
              "MODULE LOAD x", "ACL SETUSER x", "MIGRATE h 1 k 0 1", "FAILOVER", "PSYNC ? -1", "SYNC", "CLIENT KILL x",
              "CLIENT PAUSE 1", "SAVE", "BGSAVE", "BGREWRITEAOF", "MONITOR", "RESET", "REPLCONF x y", "LATENCY RESET",
              "SLOWLOG RESET", "MEMORY PURGE", "CONFIG RESETSTAT", "CLUSTER RESET", "SWAPDB 0 1", "KEYS *", "NOSUCH x",
              "CONFIG|SET maxmemory 1", "config|get x", "JSON.SET a b c", "GET\t x", "OBJECT", "XGROUP NOSUCH x"]
    said = raw(box, *[c.split(" ") for c in others])
    t.eq([c for c, s in zip(others, said) if not refused(s)], [], "and what is not known, or has to be named")
    said = raw(box, ["GET", "1"], ["SCAN", "0"], ["DBSIZE"], ["TYPE", "1"], ["MULTI"], ["GET", "1"], ["EXEC"], ["SUBSCRIBE", "c"])
    t.ok(said[0] == ["$", "as it was"] and said[2] == [":", "1"] and said[6] == ["*", [["$", "as it was"]]] and
         said[7][0] == "*", "what reads is allowed", str(said))
    box.close()
    t.eq(server.call("GET", "1"), b"as it was", "nothing was written")
    stat = lambda s: {l.split(b":")[0] for l in s.splitlines() if l.startswith(b"cmdstat_")}  # noqa: E731
    new = stat(server.call("INFO", "commandstats")) - stat(before)
    t.ok(new <= {b"cmdstat_" + n for n in (b"scan", b"dbsize", b"type", b"multi", b"exec", b"subscribe", b"get", b"select", b"auth", b"info")},
         "the server was asked for nothing else", str(new))


def keyed(t, d, server):
    server.call("FLUSHALL")
    box = durward.Sandbox(d)
    good = (["SET", "job:1", "a"], ["GET", "job:1"], ["MSET", "job:2", "x", "job:3", "other"], ["MGET", "job:2", "job:3"],
            ["XADD", "job:s", "*", "k", "v"], ["XREAD", "COUNT", "1", "STREAMS", "job:s", "0"], ["ZADD", "job:z", "1", "m"],
            ["ZUNIONSTORE", "job:u", "1", "job:z"], ["ZUNION", "2", "job:z", "job:u"], ["BLPOP", "job:none", "0.01"],
            ["COPY", "job:1", "job:4"], ["PUBLISH", "job:c", "x"], ["PING"], ["SELECT", "2"], ["BITOP", "AND", "job:b", "job:1", "job:2"],
            ["OBJECT", "ENCODING", "job:1"], ["LMPOP", "1", "job:none", "LEFT"], ["EXISTS", "job:1"])
    said = raw(box, *good)
    t.eq([c for c, s in zip(good, said) if s[0] == "-"], [], "keys that the rule names")
    bad = (["SET", "other", "a"], ["GET", "job"], ["MSET", "job:2", "x", "other", "y"], ["MGET", "job:2", "other"],
           ["XREAD", "STREAMS", "job:s", "other", "0", "0"], ["XREAD", "STREAMS", "STREAMS", "job:s", "0", "0"],
           ["XREAD", "STREAMS", "job:s", "other", "0"], ["ZUNIONSTORE", "other", "1", "job:z"],
           ["ZUNIONSTORE", "job:u", "2", "job:z", "other"], ["ZUNION", "2", "job:z", "other"], ["ZUNION", "01x", "other"],
           ["BLPOP", "job:none", "other", "0"], ["COPY", "job:1", "other"], ["COPY", "other", "job:1"], ["RENAME", "job:1", "other"],
           ["COPY", "job:1", "job:5", "DB", "1"], ["MOVE", "job:1", "1"], ["SELECT", "1"], ["SELECT", "0"], ["SELECT", "+2"],
           ["SCAN", "0"], ["RANDOMKEY"], ["DBSIZE"], ["KEYS", "*"], ["FLUSHDB"], ["FLUSHALL"], ["SORT", "job:1", "BY", "other*"],
           ["EVAL", "return redis.call('get', 'other')", "1", "job:1"], ["PSUBSCRIBE", "*"], ["SUBSCRIBE", "job:c", "other"],
           ["PUBLISH", "other", "x"], ["CLIENT", "TRACKING", "ON", "BCAST"], ["BITOP", "AND", "job:b", "other"],
           ["GEORADIUS", "job:g", "0", "0", "1", "m", "STORE", "other"], ["GEORADIUS", "job:g", "0", "0", "1", "m", "STORE", "STORE", "other"],
           ["OBJECT", "ENCODING", "other"], ["SDIFFSTORE", "job:d", "other"], ["LMPOP", "2", "job:none", "other", "LEFT"],
           # a server ends a word where a C string ends
           ["XREAD", "STREAMS\0", "other", "0"], ["XREAD", "COUNT", "1", "streams\0x", "other", "0"], ["XREAD", "STREAMS\0" + "x" * 70000, "other", "0"],
           ["XREADGROUP", "GROUP", "g", "c", "STREAMS\0", "other", ">"], ["GEORADIUS", "job:g", "0", "0", "1", "m", "STORE\0", "other"],
           ["GEORADIUS", "job:g", "0", "0", "1", "m", "STORE", "job:d", "StoreDist\0x", "other"], ["COPY", "job:1", "job:5", "DB\0", "0"],
           ["MEMORY", "USAGE", "other"], ["INFO"], ["PUBSUB", "CHANNELS"], ["WATCH", "other"], ["TOUCH", "job:1", "other"])
    said = raw(box, *bad)
    t.eq([c for c, s in zip(bad, said) if not refused(s)], [], "and others, wherever a command has them")
    t.eq(sorted(server.call("KEYS", "*", database=2)), sorted(b"job:%s" % k for k in (b"1", b"2", b"3", b"4", b"s", b"z", b"u", b"b")),
         "all is in the rule's database, under its names")
    t.eq(server.call("DBSIZE"), 0, "and nothing in another")
    box.close()


def agrees(t, d, server):
    """Commands made at random: whatever passes has no key that the server, asked to hold the same patterns, finds and refuses."""
    seed = int(os.environ.get("TEST_SEED", random.randrange(1 << 31)))
    dice = random.Random(seed)
    server.call("ACL", "SETUSER", "keyed", "on", ">" + PASSWORD, "~job:*", "&job:*", "+@all")
    plain = ["job:1", "job:2", "other", "0", "1", "2", "m", "g", ">", "LIMIT", "COUNT", "BY"]
    words = ["STREAMS", "STORE", "STOREDIST", "DB", "GROUP"]
    words += [w + "\0" for w in words] + [w.lower() + "\0x" for w in words]
    quiet = {"quit", "hello", "auth", "wait", "multi", "exec", "discard", "reset"}

    def made(name, arity, of):
        n = abs(arity) - len(name.split("|"))
        return name.split("|") + [dice.choice(of) for _ in range(n + (dice.randrange(4) if arity < 0 else 0))]
    commands = []
    for name, (arity, classes, keys) in table().items():
        if name in quiet or name == "client|reply" or classes & {"NAMED", "NEVER", "PUBSUB", "CONTAINER"}:
            continue
        worded = '{"' in keys or name == "copy"
        if worded or "BLOCKING" not in classes:
            commands += [made(name, arity, ["job:1", "other", "0"] + words if worded else plain + words) for _ in range(400 if worded else 6)]
    dice.shuffle(commands)
    box = durward.Sandbox(d)
    said = raw(box, *commands)
    passed = [(c, s) for c, s in zip(commands, said) if not refused(s)]
    t.ok(len(passed) > 100 and said[-1][0] != "end", "%d of %d commands pass (seed %d)" % (len(passed), len(commands), seed), str(said[-1]))
    t.eq([c for c, s in passed if s[0] == "-" and s[1].startswith("NOPERM")][:3], [], "and the server finds no other key in them")
    box.close()


def named(t, d, server):
    box = durward.Sandbox(d)
    said = raw(box, ["CONFIG", "GET", "maxmemory"], ["CONFIG", "SET", "maxmemory", "0"], ["GET", "a"], ["HGET", "h", "f"],
               ["HDEL", "h", "f"], ["SET", "a", "1"], ["PING"])
    t.eq([refused(s) for s in said], [False, True, False, False, True, True, True], "commands by name, by pattern and taken away")
    box.close()


def capped(t, d, server):
    server.call("SET", "long", "x" * 400000)
    box = durward.Sandbox(d)
    said = raw(box, *[["GET", "long"]] * 5)
    t.ok(said[1][0] == "$" and said[4][0] in ("end", "$") and said[-1] != ["$", "x" * 400000], "bytes end at their bound")
    t.ok(d.wait_records(1, "aborted", code="redis_megabytes"), "and that is on record")
    status, out, err = cli(box, "BLPOP nothing 20", timeout=40)
    t.ok(d.wait_records(1, "aborted", code="redis_seconds"), "a session ends in its time", out, err)
    box.close()


def drivers(t, d, server):
    """redis-py and ioredis."""
    box = durward.Sandbox(d, binds=durward.client_binds("venv", "node_modules"))
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
    if box.sh("%s -c 'import redis'" % python)[0] != 0:
        t.skip("redis-py", "the clients' environment has none (tests/functional/clients/setup)")
    else:
        status, out, err = box.sh("%s -c 'import redis; redis.Redis(\"%s\").ping()'" % (python, HOST), timeout=60)
        d.settle()
        t.eq((status, len(d.ends(d.kinds("admitted"))), d.kinds("denied")), (0, 1, []),
             "redis-py says nothing at first that is refused: " + err[-300:])
        for protocol in (2, 3):
            status, out, err = box.sh("%s %s/redis_driver.py %s %d" % (python, here, HOST, protocol), timeout=60)
            t.eq((status, out.strip()), (0, "ok"), "redis-py, RESP%d: %s" % (protocol, err[-300:]))
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not os.path.isdir(modules + "/ioredis"):
        t.skip("ioredis", "the clients' environment has none (tests/functional/clients/setup)")
    else:
        status, out, err = box.sh("NODE_PATH=%s node %s/redis_driver.js %s" % (modules, here, HOST), timeout=60)
        t.eq((status, out.strip()), (0, "ok"), "ioredis: " + err[-300:])
    status, out, err = box.sh("redis-benchmark -h %s -q -n 2000 -c 10 -P 8 -t set,get,lpush" % HOST, timeout=90)
    t.ok(status == 0 and "LPUSH" in out and "rror" not in err, "redis-benchmark", out[-300:], err)
    box.close()


def records(t, d):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "redis"]
    one = admitted[0] if admitted else {}
    t.ok(one.get("user") == "app" and one.get("authority") == HOST and one.get("credential") == "app" and
         one.get("role") == "redis-back", "a session is on record before it is made", str(one))
    ends = d.ends(admitted)
    t.ok(admitted and all(r["id"] in ends for r in admitted), "each has one end",
         str([r for r in admitted if r["id"] not in ends][:3]))
    end = ends.get(one.get("id"), {})
    t.ok("get:1" in end.get("statements", "").split() and "set:1" in end.get("statements", "").split(),
         "with names of its commands and how often", str(end))
    denied = [r for r in d.kinds("denied") if r.get("code") == "redis_command"]
    t.ok(any(r.get("statements") == "config|get" for r in denied), "each refusal is one more", str(denied[:2]))
    log = b"".join(open(p, "rb").read() for p in d.audit_files())
    t.ok(b"greeting" not in log and b"welcome-4711" not in log and PASSWORD.encode() not in log,
         "and none of their keys or values")


def deaths(t, box, d):
    died.each(t, box, d, "redis", "redis-cli -h %s BLPOP nothing 30" % HOST, ("Server closed the connection", "broker_gone"),
              lambda: cli(box, "PING")[1] == "PONG\n")


def wrong(t, server):
    d = bed(t, "wrong", [allow()], server)
    d.secret("app_password", "another-4711")
    r = d.run(["redis-cli", "-h", HOST, "PING"])
    t.ok("upstream_login" in r.stdout + r.stderr and "WRONGPASS" in r.stdout + r.stderr, "a wrong password", r.stdout, r.stderr)
    d = bed(t, "untrusted", [allow()], server)
    del d.extra["upstream"]["ca"]
    r = d.run(["redis-cli", "-h", HOST, "PING"])
    t.ok("upstream_tls" in r.stdout + r.stderr, "a server that cannot be verified", r.stdout, r.stderr)
    d = bed(t, "clear", [{"allow": "redis://" + HOST, "with": {"redis_login": "app"}}], server)
    r = d.run(["redis-cli", "-h", HOST, "PING"])
    t.ok(r.returncode != 0 and "allow_plaintext" in r.stderr, "in clear only where the rule says so", r.stdout, r.stderr)
    d = bed(t, "alone", [allow("redis")], server)
    d.secret("app_password", redis.ADMIN)
    d.secrets["app"] = {"redis_login": {"password": "app_password"}}
    r = d.run(["redis-cli", "-h", HOST, "PING"])
    t.eq(r.stdout, "PONG\n", "a password without a user")


def main(t):
    why = redis.missing()
    if why:
        t.skip("everything", why)
        return
    first = durward.Durward(t, "ca")
    server = redis.Redis(t, first.ca, "server", HOST)
    server.pem = first.ca.pem
    d = bed(t, "d", [allow()], server)
    scanner = scan.Scanner(app=PASSWORD.encode())
    box = durward.Sandbox(d)
    t.part(ordinary, t, box, d, server)
    t.part(scan.scan_sandbox, t, box, scanner)
    t.part(scan.scan_front, t, d, "redis-front", HOST, scanner)
    t.part(strict, t, box, d, server)
    t.part(encrypted, t, box, d, server)
    t.part(leaving, t, box, d, server)
    t.part(large, t, box, d, server)
    t.part(guessed, t, box, d, server)
    t.part(records, t, d)
    t.part(deaths, t, box, d)
    box.close()
    t.part(fresh, t, server)
    for name, rule, run in (("read", allow(access="read-only"), read_only),
                            ("keys", allow("redis", keys=["job:*"], database=2), keyed),
                            ("crowd", allow("redis", keys=["job:*"], database=2), crowd),
                            ("agrees", allow("redis", keys=["job:*"]), agrees),
                            ("named", allow(commands=["config|get", "@read", "h*", "!hdel"]), named),
                            ("drivers", allow(), drivers),
                            ("caps", allow(megabytes=1, seconds=4), capped)):
        other = bed(t, name, [rule], server)
        if name == "agrees":
            other.secrets["app"] = {"redis_login": {"user": "keyed", "password": "app_password"}}
        t.part(run, t, other, server)
    t.part(told, t, server)
    t.part(wrong, t, server)


tap.run(main, timeout=400)
