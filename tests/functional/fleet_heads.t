#!/usr/bin/python3 -B
"""Three hosts and a real PostgreSQL: each says to the others how far its audit log goes, and `audit verify --fleet` finds by
name whose log was cut, put back, lacks a stretch, whose lines the database lost or changed, and who is silent."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, postgres, tap  # noqa: E402

DB, PASSWORD, NAMES, SILENT = "fleet.example.com", "fleet-password-4711", "abc", 30


class Host:
    def __init__(self, t, name, ca):
        self.name, self.t = name, t
        self.d = d = durward.Durward(t, name)
        d.ca = ca or d.ca
        d.serve(wait=False)

    def made_key(self):
        """What its first start has made."""
        tap.wait_for(self.d.answers, 15, 0.05)
        self.d.stop()
        r = self.d.command("audit", "verify", "--json", "-c", self.d.conf)
        self.key = json.loads(r.stdout)["key"]

    def begin(self, db, keys):
        d = self.d
        d.secret("password", PASSWORD)
        d.secrets["fleet"] = {"postgres_login": {"user": "fleet", "password": "password"}}
        d.resolve[DB + ":5432"] = db.address
        d.extra["fleet"] = {"postgres": "postgres://%s/fleet" % DB, "login": "fleet", "host": self.name, "logs": keys,
                            "every": "1s", "silent": "%ds" % SILENT}
        d.serve()

    def verify(self, *more, conf=None):
        """-> exit status, host -> what is wrong"""
        r = self.d.command("audit", "verify", "--fleet", "--json", "-c", conf or self.d.conf, *more)
        try:
            said = json.loads(r.stdout)
        except ValueError:
            return r.returncode, r.stderr
        self.said = {h["host"]: h for h in said["hosts"]}
        return r.returncode, {h["host"]: sorted({p["what"] for p in h["problems"]}) for h in said["hosts"] if h["problems"]}

    def head(self, of=None):
        self.verify()
        return self.said[of or self.name].get("head", 0)

    def agrees(self):
        return tap.wait_for(lambda: self.verify() == (0, {}) and all(h.get("head", 0) > 2 for h in self.said.values()), 15, 0.2)

    def further(self, by=2, of=None):
        """Until it knows so many heads more."""
        want = self.head(of) + by
        return tap.wait_for(lambda: self.head(of) >= want, 15, 0.2)

    def finds(self, host, what, *more):
        """That it, and who is named, come to light."""
        return tap.wait_for(lambda: what in found(self.verify(*more), host), 15, 0.3)

    def copy(self, name):
        """With its owners; a journal may go meanwhile."""
        to = os.path.join(self.d.dir, name)
        subprocess.run(["cp", "-a", self.d.audit_dir, to], stderr=subprocess.DEVNULL, timeout=20)
        return to


def found(result, host):
    status, wrong = result
    return wrong.get(host, []) if isinstance(wrong, dict) and status == 1 else []


def log_of(folder):
    return sorted(glob.glob(os.path.join(folder, "audit-*.jsonl")))[-1]


def refusing(t, db):
    """A database that refuses for a while and keeps the connections, as one that is not yet the primary."""
    here = "SELECT count(DISTINCT pid) FROM pg_stat_activity WHERE usename = 'fleet' AND state = 'idle' AND query <> ''"
    t.ok(tap.wait_for(lambda: db.sql(here, "fleet").strip() == "3", 10, 0.1), "three hosts are connected, and may make no table")
    t.eq(db.sql("SELECT count(*) FROM pg_class WHERE relname LIKE 'durward_%'", "fleet").strip(), "0", "there is none")
    db.sql("GRANT CREATE ON SCHEMA public TO pg_database_owner", "fleet")


def clean(t, hosts):
    for h in hosts:
        t.ok(h.agrees(), "%s hears of all three, and finds nothing wrong" % h.name, str(h.verify()))
    r = hosts[0].d.command("audit", "verify", "--fleet", "-c", hosts[0].d.conf)
    t.ok(r.returncode == 0 and r.stdout.count(": good") == 4 and "fleet: good, 3 hosts, root " in r.stdout, "in words, too", r.stdout)


def copies(t, hosts):
    """Of files, on a machine that asks nobody."""
    a = hosts[0]
    folders = {h.name: h.copy("copied") for h in hosts}
    heads = ",".join(os.path.join(f, "fleet.heads") for f in folders.values())

    def logs(**other):
        return "--heads", heads, "--logs", ",".join("%s=%s" % x for x in sorted(dict(folders, **other).items()))
    t.eq(a.verify("--heads", heads, "--logs", "b=" + folders["b"]), (1, {"a": ["unknown"], "c": ["unknown"]}),
         "a log that is not at hand is no success")
    # logs were copied one after another: what a host said after its own was copied is in the others'
    early = [os.path.join(folders["a"], "fleet.heads")]
    t.eq(a.verify("--heads", early[0], *logs()[2:]), (0, {}), "copies of all verify")
    for what, edit, want in (
            ("whose end is cut off", lambda text: text[:len(text) // 2], "log_cut"),
            ("without a line of its middle", lambda text: text[:1] + text[2:], "log_broken"),
            ("with a changed line", lambda text: text[:1] + [text[1].replace(b'"role"', b'"r0le"')] + text[2:], "log_broken")):
        bad = shutil.copytree(folders["b"], os.path.join(a.d.dir, "bad"), dirs_exist_ok=True)
        with open(log_of(bad), "rb") as f:
            text = f.read().splitlines(True)
        with open(log_of(bad), "wb") as f:
            f.writelines(edit(text))
        got = a.verify(*logs(b=bad))
        t.ok(want in found(got, "b") and set(got[1]) == {"b"}, "a log %s: found, and its host is named" % what, str(got))
    t.eq(a.verify(*logs(b=folders["c"]))[1].get("b", [])[:1], ["log_broken"], "a log that another host's key signed")
    with open(early[0]) as f:
        lines = f.read().splitlines()
    for what, edited, host, want in (
            ("with a changed head of b", [x.replace(" 0 ", " 1 ", 1) if x.split()[1] == "b" else x for x in lines], "b", "unsigned"),
            ("without a head of c", [x for x in lines if x.split()[1:4:2] != ["c", "2"]], "c", "missing"),
            ("without b's heads", [x for x in lines if x.split()[1] != "b"], "b", "unknown"),
            ("that is empty", [], "a", "unknown")):
        t.write("edited", "".join(x + "\n" for x in edited))
        got = a.verify("--heads", t.path("edited"), *logs()[2:])
        t.ok(want in found(got, host), "heads %s: found" % what, str(got))
    t.write("edited", "\n".join(lines + ["durward-fleet-head/1 b"]) + "\n")
    t.eq(a.verify("--heads", t.path("edited"), *logs()[2:]), (1, {}), "what is no head is no success")
    t.eq(a.verify("--heads", t.path("none"))[0], 1, "no file is none either")
    t.eq(a.d.command("audit", "verify", "--heads", heads, "-c", a.d.conf).returncode, 2, "--heads goes with --fleet")


def is_gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def killed(t, hosts, db):
    for h in hosts[:2]:
        for pid, role in h.d.roles(h.d.daemon.pid):
            if role in ("fleet", "logger")[:1 + (h is hosts[1])]:
                os.kill(pid, signal.SIGKILL)
    children = [pid for pid, _ in tap.descendants(db.process.pid)]
    db.process.kill()
    db.process.wait()
    t.ok(tap.wait_for(lambda: all(map(is_gone, children)), 15, 0.05), "the database and its children are gone")
    db.start()
    t.ok(all([hosts[2].further(2, n) for n in NAMES]), "all go on after kill -9 of roles and database")
    for h in hosts:
        t.ok(h.agrees(), "and %s misses nothing" % h.name, str(h.verify()))


def lying(t, hosts, db):
    a, b, c = hosts
    db.sql("DELETE FROM durward_head WHERE host = 'c' AND number = 2", "fleet")
    db.sql("UPDATE durward_head SET line = replace(line, ' 0 ', ' 1 ') WHERE host = 'b' AND number = 3", "fleet")
    t.ok(a.finds("c", "missing"), "a row of c's is removed: its loss is found, and c named", str(a.verify()))
    t.ok(a.finds("b", "changed"), "a row of b's is changed: likewise", str(a.verify()))
    t.eq(found(a.verify(), "a"), [], "and a is as it was")
    t.ok(len(c.d.wait_records(1, "lifecycle", event="fleet_doubt", detail="head 2 of c is missing")) >= 1, "it is on record",
         str([(r.get("event"), r.get("detail")) for r in c.d.records(kind="lifecycle")][-8:]))
    db.sql("TRUNCATE durward_head", "fleet")
    t.ok(c.finds("a", "missing") and c.finds("b", "missing"), "a database that was emptied", str(c.verify()))


def silent(t, hosts):
    a, b, c = hosts
    c.d.stop()
    a.d.extra["fleet"]["silent"] = "3s"
    with open(a.d.conf) as f:
        short = t.path("short.yaml")
        with open(os.open(short, os.O_WRONLY | os.O_CREAT, 0o600), "w") as to:
            to.write(f.read().replace('"silent": "%ds"' % SILENT, '"silent": "3s"'))
    t.ok(tap.wait_for(lambda: "silent" in found(a.verify(conf=short), "c"), 10, 0.3), "a host that says nothing any more is named",
         str(a.verify(conf=short)))
    t.eq([x for n in "ab" for x in found(a.verify(conf=short), n) if x == "silent"], [], "and no other")
    b.d.stop()
    a.d.stop()
    t.ok(tap.wait_for(lambda: all("silent" in found(a.verify(conf=short), n) for n in NAMES), 10, 0.3),
         "where all are silent, this host's own clock says so", str(a.verify(conf=short)))
    heads = ",".join(os.path.join(h.d.audit_dir, "fleet.heads") for h in (a, b))
    logs = ",".join("%s=%s" % (h.name, h.d.audit_dir) for h in hosts)
    got = a.verify("--heads", heads, "--logs", logs, conf=short)
    t.ok("silent" not in found(got, "a") + found(got, "b") and "silent" in found(got, "c"), "copies are as old as they are", str(got))


def put_back(t, hosts):
    """b's whole directory is put back to a former state, and b goes on."""
    a, b, _ = hosts
    b.d.stop()
    old = b.copy("old")
    b.d.serve(save=False)
    t.ok(a.further(2, "b"), "b says more")
    b.d.stop()
    shutil.rmtree(b.d.audit_dir)
    os.rename(old, b.d.audit_dir)
    b.d.serve(save=False)
    t.ok(a.finds("b", "rolled_back"), "a directory that was put back: the others find it", str(a.verify()))
    t.ok(b.finds("b", "log_forked") or b.finds("b", "log_cut"), "and it itself", str(b.verify()))
    t.ok(len(b.d.wait_records(1, "lifecycle", event="fleet_rolled_back")) >= 1, "and its log says so",
         str([(r.get("event"), r.get("detail")) for r in b.d.records(kind="lifecycle")][-8:]))
    t.eq(b.d.command("audit", "verify", b.d.audit_dir).returncode, 0, "which by itself verifies")


def refused(t, hosts):
    d = hosts[0].d
    fleet = d.extra["fleet"]
    for what, over in (("a host that is none of them", {"host": "x"}), ("a key that is none", {"logs": {"a": "00"}}),
                       ("two hosts with one key", {"logs": {"a": "12" * 32, "b": "12" * 32}}),
                       ("logs without a host", {"host": None}), ("a silence shorter than what is said", {"silent": "2s"})):
        d.extra["fleet"] = {k: v for k, v in dict(fleet, **over).items() if v is not None}
        t.ok(d.check().returncode != 0, "refused: " + what)
    d.extra["fleet"] = fleet
    d.save()


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    hosts = [Host(t, "a", None)]
    ca = hosts[0].d.ca
    hosts += [Host(t, n, ca) for n in NAMES[1:]]
    db = postgres.Postgres(t, ca, "pg", DB)
    db.sql("SET password_encryption = 'scram-sha-256'; CREATE ROLE fleet LOGIN PASSWORD '%s'; "
           "CREATE DATABASE fleet OWNER fleet;" % PASSWORD)
    for h in hosts:
        h.made_key()
    db.sql("REVOKE CREATE ON SCHEMA public FROM pg_database_owner, PUBLIC", "fleet")
    for h in hosts:
        h.begin(db, {x.name: x.key for x in hosts})
    t.part(refusing, t, db)
    t.part(clean, t, hosts)
    t.part(copies, t, hosts)
    t.part(killed, t, hosts, db)
    t.part(put_back, t, hosts)
    t.part(lying, t, hosts, db)
    t.part(silent, t, hosts)
    t.part(refused, t, hosts)


tap.run(main)
