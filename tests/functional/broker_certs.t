#!/usr/bin/python3 -B
"""Client certificates towards databases: a real PostgreSQL takes one alone (`cert`) or beside a password, a real
MariaDB (REQUIRE X509) and a real Redis (tls-auth-clients) likewise. The key is the vault's alone."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, mysql, postgres, redis, scan, tap  # noqa: E402

HOST, PLAIN = "db.example.com", "plain.example.com"
KINDS = {"rsa": ca.RSA, "ec": ca.EC, "p384": ca.P384, "ed": ca.ED}
HBA = """local all all trust
hostssl pair app 127.0.0.1/32 scram-sha-256 clientcert=verify-full
hostssl mapped all 127.0.0.1/32 cert map=agents
hostssl login all 127.0.0.1/32 scram-sha-256
hostssl all all 127.0.0.1/32 cert
"""
IDENTS = "agents \"an agent\" mapped\n"
OTHERS = ("pair", "mapped", "login", "stranger", "other", "halves", "unmapped", "two", "nameless")


class Certificates:
    """Of clients; by the names of their secrets."""

    def __init__(self, t, scanner):
        self.authority = ca.Authority(t.mkdir("client-ca"), "Client CA")
        self.strangers = ca.Authority(t.mkdir("other-ca"), "Another CA")
        self.scanner, self.files = scanner, {}
        for name, key in KINDS.items():
            self.issue(name, self.authority, name, key)
        self.issue("app", self.authority, "app", ca.EC)
        self.issue("agent", self.authority, "an agent", ca.EC)
        self.issue("stranger", self.strangers, "ec", ca.EC)
        self.issue("two", self.authority, "", ca.EC, "/CN=rsa/CN=ec")
        self.issue("nameless", self.authority, "", ca.EC, "/O=rsa")
        self.files["halves"] = (self.files["rsa"][0], self.files["ec"][1])

    def issue(self, name, authority, who, key, subject=None):
        # a name that is no host's: extensions of OpenSSL take no blank in one
        self.files[name] = authority.issue(who, usage="clientAuth", key=key, cn_only=True, subject=subject)
        ca.watch_key(self.scanner, name, self.files[name][1])

    def declare(self, d):
        for name, files in self.files.items():
            for what, file in zip(("crt", "key"), files):
                with open(file) as f:
                    d.secret("%s-%s" % (name, what), f.read())
            d.secrets[name] = {"client_certificate": {"certificate": name + "-crt", "key": name + "-key"}}


def login(d, kind, user="app"):
    d.secret("password", user + "-password-4711")
    d.secrets["login"] = {kind: {"user": user, "password": "password"}}


def with_certificate(name, **more):
    return dict({"client_certificate": name}, **more)


def searched(t, d, scanner):
    """No key but in the vault."""
    if os.geteuid() != 0:
        t.skip("the memory of the roles", "reading it needs root")
        return
    for pid, role in d.roles():
        if role != "vault":
            t.eq(scan.scan_process(pid, scanner, role)[0], [], "no private key in the memory of: " + role)


def psql(box, database, sql="SELECT current_user", host=HOST):
    return box.sh("psql -X -q -A -t 'host=%s dbname=%s user=anybody'" % (host, database), stdin=sql, timeout=40)


def postgres_bed(t, certs):
    d = durward.Durward(t, "pg")
    server = postgres.Postgres(t, d.ca, "server", HOST, HBA, certs.authority.pem, IDENTS)
    plain = postgres.Postgres(t, d.ca, "plain", PLAIN)
    for name in list(KINDS) + ["app", "mapped"]:
        server.sql("CREATE ROLE %s LOGIN PASSWORD '%s-password-4711'" % (name, name))
    for name in list(KINDS) + list(OTHERS):
        server.sql("CREATE DATABASE %s" % name)
    plain.sql("CREATE ROLE app LOGIN PASSWORD 'app-password-4711'; CREATE DATABASE none;")
    certs.declare(d)
    login(d, "postgres_login")
    both = with_certificate("app", postgres_login="login")

    def rule(database, credential, host=HOST, **more):
        return dict({"allow": "postgres://%s/%s" % (host, database), "with": credential}, **more)
    d.policies["coder"] = {"rules": [rule(k, with_certificate(k)) for k in KINDS] + [
        rule("pair", both), rule("mapped", with_certificate("agent"), user="mapped"),
        rule("unmapped", with_certificate("agent")), rule("login", with_certificate("app")),
        rule("stranger", with_certificate("stranger")), rule("halves", with_certificate("halves")),
        rule("other", with_certificate("rsa"), user="ec"),
        rule("two", with_certificate("two")), rule("nameless", with_certificate("nameless")),
        rule("none", both, PLAIN)]}
    d.resolve.update({HOST + ":5432": server.address, PLAIN + ":5432": plain.address})
    d.extra.update(upstream={"ca": [d.ca.pem], "resolve": d.resolve})
    return d, server, plain


def kinds(t, box, server):
    for version in ("TLSv1.2", "TLSv1.3"):
        server.sql("ALTER SYSTEM SET ssl_min_protocol_version = '%s'" % version if version == "TLSv1.3" else
                   "ALTER SYSTEM SET ssl_max_protocol_version = '%s'" % version)
        server.sql("SELECT pg_reload_conf()")
        said = "SELECT current_user, version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        for name in KINDS:
            if (name, version) == ("p384", "TLSv1.2"):
                continue  # ssl_ecdh_curve is P-256: such a server refuses the key's curve
            want = (0, "%s|%s|/CN=%s\n" % (name, version, name))
            got = ()

            def comes():
                nonlocal got
                got = psql(box, name, said)
                return got[:2] == want
            t.ok(tap.wait_for(comes, 10, 0.2), "a key of %s, %s, and nothing else" % (name, version), *map(str, got))
        server.sql("ALTER SYSTEM RESET ALL")
    server.sql("SELECT pg_reload_conf()")


def beside(t, box, d, server):
    t.eq(psql(box, "pair")[:2], (0, "app\n"), "a certificate beside SCRAM")
    t.ok(d.wait_records(1, "admitted", credential="login app"), "the record names both")
    t.eq(psql(box, "mapped")[:2], (0, "mapped\n"), "one that the server maps to the rule's user")
    got = box.sh("timeout -s INT 4 psql -X -q 'host=%s dbname=pair' -c 'SELECT pg_sleep(20)'" % HOST, timeout=30)
    t.ok("canceling statement due to user request" in got[2], "a statement is cancelled", *map(str, got))
    status, out, err = box.sh("for i in $(seq 12); do psql -X -q -A -t 'host=%s dbname=rsa' -c 'SELECT 1' & done; "
                              "wait" % HOST, timeout=60)
    t.eq(out.split(), ["1"] * 12, "12 sessions at once")


def refused(t, box, d, server, plain):
    for database, code, word, what in (
            ("stranger", "upstream_tls", "unknown ca", "one of another authority, by the server's word"),
            ("other", "upstream_login", "certificate authentication failed for user", "another one's name"),
            ("unmapped", "upstream_login", 'role "an agent" does not exist', "a name that no role has"),
            ("halves", "secret_unavailable", "not that of its first certificate", "another certificate's key"),
            ("two", "secret_unavailable", "its certificate names nobody", "two common names"),
            ("nameless", "secret_unavailable", "its certificate names nobody", "no common name"),
            ("login", "upstream_login", "wants a password beside the certificate", "a server that wants a password too")):
        status, out, err = psql(box, database)
        t.ok(status == 2 and code in err and word in err, "refused: " + what, out, err)
    status, out, err = psql(box, "none", host=PLAIN)
    t.ok(status == 2 and "asked for no client certificate" in err, "refused: a server that asks for none", out, err)
    t.ok("app durward" not in plain.said(), "which has seen no session", plain.said()[-300:])
    t.ok(d.wait_records(8, "aborted"), "and each is on record")


def alone(t, d, server):
    """The login without the certificate gets nothing of such a server."""
    d2 = durward.Durward(t, "alone")
    login(d2, "postgres_login")
    d2.policies["coder"] = {"rules": [{"allow": "postgres://%s/pair" % HOST, "with": {"postgres_login": "login"}}]}
    d2.resolve[HOST + ":5432"] = server.address
    d2.extra.update(upstream={"ca": [d.ca.pem], "resolve": d2.resolve})
    r = d2.run(["psql", "-X", "host=%s dbname=pair" % HOST, "-c", "SELECT 1"])
    t.ok(r.returncode == 2 and "valid client certificate" in r.stderr, "the password alone is refused", r.stderr)


def with_postgres(t):
    why = postgres.missing()
    if why:
        t.skip("PostgreSQL", why)
        return
    scanner = scan.Scanner(app=b"app-password-4711")
    certs = Certificates(t, scanner)
    d, server, plain = postgres_bed(t, certs)
    box = durward.Sandbox(d)
    t.part(kinds, t, box, server)
    t.part(beside, t, box, d, server)
    t.part(refused, t, box, d, server, plain)
    t.part(searched, t, d, scanner)
    t.part(scan.scan_sandbox, t, box, scanner)
    box.close()
    d.stop()
    t.part(alone, t, d, server)


def redis_bed(t, name, certs, server, pem, credential):
    d = durward.Durward(t, name)
    certs.declare(d)
    login(d, "redis_login")
    d.policies["coder"] = {"rules": [{"allow": "rediss://cache.example.com", "with": credential, "commands": ["acl|whoami"]}]}
    d.resolve["cache.example.com:6379"] = server.tls
    d.extra.update(upstream={"ca": [pem], "resolve": d.resolve})
    return d


def with_redis(t):
    why = redis.missing()
    if why:
        t.skip("Redis", why)
        return
    certs, authority = Certificates(t, scan.Scanner()), ca.Authority(t.mkdir("redis-ca"))
    server = redis.Redis(t, authority, "redis", "cache.example.com", certs.authority.pem)

    def ask(name, credential):
        r = redis_bed(t, name, certs, server, authority.pem, credential).run(
            ["redis-cli", "-h", "cache.example.com", "ACL", "WHOAMI"])
        return r.stdout + r.stderr
    said = ask("r-both", with_certificate("rsa", redis_login="login"))
    t.eq(said.strip(), "app", "Redis: a certificate beside a login")
    said = ask("r-none", {"redis_login": "login"})
    t.ok("app" not in said and "certificate" in said, "Redis: the login alone is refused", said)
    said = ask("r-noauth", with_certificate("rsa"))
    t.ok("NOAUTH" in said, "Redis: a server that wants a login, too", said)
    server.call("ACL", "SETUSER", "default", "nopass")
    t.eq(ask("r-alone", with_certificate("ed")).strip(), "default", "Redis: a certificate alone")
    said = ask("r-stranger", with_certificate("stranger"))
    t.ok("default" not in said and "unknown ca" in said, "Redis: one of another authority, by the server's word", said)


def with_mysql(t):
    why = mysql.missing()
    if why:
        t.skip("MariaDB", why)
        return
    certs, authority = Certificates(t, scan.Scanner()), ca.Authority(t.mkdir("mysql-ca"))
    server = mysql.Mysql(t, authority, HOST, clients=certs.authority.pem)
    server.sql("CREATE DATABASE orders; CREATE USER app@'%' IDENTIFIED BY 'app-password-4711' REQUIRE SUBJECT '/CN=app';"
               "GRANT ALL ON orders.* TO app@'%';")

    def ask(name, credential):
        d = durward.Durward(t, name)
        certs.declare(d)
        login(d, "mysql_login")
        d.secrets["login"]["mysql_login"]["auth"] = "native"
        d.policies["coder"] = {"rules": [{"allow": "mysql://%s/orders" % HOST, "with": credential}]}
        d.resolve[HOST + ":3306"] = server.address
        d.extra.update(upstream={"ca": [authority.pem], "resolve": d.resolve})
        r = d.run(["mariadb", "--no-defaults", "-A", "-N", "-B", "-h", HOST, "orders", "-e", "SELECT user()"])
        return r.stdout + r.stderr
    t.ok(ask("m-both", with_certificate("app", mysql_login="login")).startswith("app@"),
         "MariaDB: a certificate beside a login")
    for name, credential in (("m-none", {"mysql_login": "login"}),
                             ("m-other", with_certificate("rsa", mysql_login="login"))):
        said = ask(name, credential)
        t.ok("app@" not in said and "1045" in said, "MariaDB refuses the login: " + name, said)
    said = ask("m-stranger", with_certificate("stranger", mysql_login="login"))
    t.ok("app@" not in said and "upstream_" in said, "MariaDB: one of another authority", said)


def main(t):
    t.part(with_postgres, t)
    t.part(with_redis, t)
    t.part(with_mysql, t)


tap.run(main, timeout=300)
