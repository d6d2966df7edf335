#!/usr/bin/python3 -B
"""All hosts of a fleet, as one of them shows them: by the API, the command and the console in a headless Chromium. Who is
there and since when not, whose log does not agree, what each holds; what is old says how old, and nothing is believed but
what its host signed."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, durward, fleet, nginx, postgres, tap  # noqa: E402
from harness.fleet import NOTED, PASSWORD  # noqa: E402

sys.path.insert(0, os.path.join(durward.TOP, "sdk/python/src"))
import durward as sdk  # noqa: E402

SCRIPT = os.path.join(durward.INSIDE, "console_fleet.mjs")
EVERY = 1


def shown(node):
    a = node.api()
    v = a.ask("GET", "/v1/fleet")
    a.close()
    return v


def host(node, name):
    return {h["host"]: h for h in shown(node)["hosts"]}[name]


def becomes(node, name, seconds=12, **want):
    """Until that host is shown so."""
    return tap.wait_for(lambda: (lambda h: h if {k: h[k] for k in want} == want else None)(host(node, name)), seconds, 0.1)


def log_state(node, name, state, seconds=20):
    return tap.wait_for(lambda: (lambda h: h["log"] if h["log"] and h["log"]["state"] == state else None)(host(node, name)), seconds, 0.2)


def everything(t, nodes):
    a, b, _ = nodes
    t.ok(all(becomes(a, n, state="connected") for n in "abc"), "each host is connected", json.dumps(shown(a)))
    t.ok(all(log_state(a, n, "agrees") for n in "abc"), "and its log agrees", json.dumps(shown(a)))
    v = shown(a)
    t.eq((v["host"], v["connected"], [h["host"] for h in v["hosts"]], [h["this"] for h in v["hosts"]]),
         ("a", True, ["a", "b", "c"], [True, False, False]), "who answers comes first")
    t.ok(0 <= v["age_seconds"] <= 3 and all(0 <= h["age_seconds"] <= 4 for h in v["hosts"]), "and how old it is", json.dumps(v))
    before = host(a, "b")["log"]
    t.ok(tap.wait_for(lambda: host(a, "b")["log"]["head"] > before["head"], 8, 0.1), "heads go on")
    t.eq(b.get("/share").status, 200, "b uses a budget of the fleet")
    got = tap.wait_for(lambda: host(a, "b")["shares"], 8, 0.1)
    t.ok(got and (got[0]["policy"], got[0]["limit"], got[0]["amount"]) == ("coder", "requests 40/h", 40) and
         0 < got[0]["held"] <= 40, "a shows which share of it b holds", str(got))
    t.eq(host(b, "b")["shares"], got, "as b does")
    t.eq(host(a, "a")["shares"], [], "and none of its own")
    made = b.box()
    if made:
        t.ok(becomes(a, "b", sandboxes=1), "a sandbox of b's is counted")
    else:
        t.skip("a sandbox of b's is counted", "no sandbox can be made here")
    b.hold()
    t.ok(becomes(a, "b", held=1) and becomes(b, "b", held=1), "so is a request that b holds", json.dumps(host(a, "b")))
    t.ok(PASSWORD not in json.dumps(shown(a)), "no secret is in it")


def unnamed(t, nodes):
    """c's configuration names a alone."""
    c = nodes[2]
    b = host(c, "b")
    t.eq((b["state"], b["sandboxes"], b["shares"], b["heard"]), ("unknown", None, None, None), "of a host that is not named nothing is believed")
    t.ok("fleet.hosts" in b["why"] and b["log"]["state"] == "agrees", "but what its log's key has signed", str(b))


def command(t, nodes):
    d = nodes[0].d
    r = d.command("status", "--fleet", "--socket", d.socket)
    rows = {x.split()[0]: x.split() for x in r.stdout.partition("SHARES OF")[0].splitlines() if x[:2] in ("a ", "b ", "c ")}
    t.ok(r.returncode == 0 and "read by a" in r.stdout and set(rows) == set("abc"), "the command shows them", r.stdout + r.stderr)
    t.ok(rows["b"][1] == "connected" and "agrees" in rows["b"] and "requests 40/h" in r.stdout, "state, log and shares", r.stdout)
    v = json.loads(d.command("status", "--fleet", "--json", "--socket", d.socket).stdout)
    t.eq([h["host"] for h in v["hosts"]], ["a", "b", "c"], "as JSON, too")
    t.eq(d.command("status", "--fleet", "x", "--socket", d.socket).returncode, 2, "more words are a usage error")
    v = sdk.Durward(d.socket).fleet()
    t.eq((v.host, v.connected, [(h.host, h.this, h.state, h.held, h.log.state) for h in v.hosts]),
         ("a", True, [("a", True, "connected", 0, "agrees"), ("b", False, "connected", 1, "agrees"), ("c", False, "connected", 0, "agrees")]),
         "and the client in Python")
    t.eq([(s.policy, s.limit, s.amount) for s in v.hosts[1].shares], [("coder", "requests 40/h", 40)], "with shares")


def scopes(t, nodes):
    """It is of all policies."""
    a = nodes[0]
    env = a.access()
    for words, want in ((("read",), True), (("exec",), False), (("read", "--policy", "coder"), False)):
        r = a.d.command("token", "create", "--scope", *words, "--socket", a.d.socket)
        path = os.path.join(a.d.dir, "some-token")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(r.stdout)
        got = a.d.command("status", "--fleet", "--json", env=dict(env, DURWARD_TOKEN_FILE=path))
        t.eq(got.returncode == 0, want, "a token with --scope %s %s" % (" ".join(words), "may see it" if want else "may not"))


def silent(t, nodes, db):
    """c ends. Whoever has the database has its words, and makes nobody believe that it lives."""
    a, b, c = nodes
    old = db.sql("SELECT id || ' ' || body FROM durward_note WHERE kind = 'host'", "fleet").split("\n")
    kept = host(a, "c")["log"]["head"]
    c.d.stop()
    gone = becomes(a, "c", state="silent")
    t.ok(gone and becomes(b, "c", state="silent"), "a host that ended is silent", json.dumps(host(a, "c")))
    t.ok(gone["age_seconds"] >= 3 * EVERY and gone["sandboxes"] == 0, "since when it is, and what it said last", str(gone))
    age = host(a, "c")["log"]["age_seconds"]
    t.ok(tap.wait_for(lambda: host(a, "c")["log"]["age_seconds"] > age, 5, 0.1) and host(a, "c")["log"]["head"] >= kept, "its head grows old")
    put = "INSERT INTO durward_note (kind, id, body, until) VALUES ('host', '%s', '%s', 99999999999) ON CONFLICT (kind, id) DO " \
          "UPDATE SET body = EXCLUDED.body, place = EXCLUDED.place"
    rows = dict(x.split(" ") for x in old if x)
    t.eq(set(rows), {n.key for n in nodes}, "each host has said one thing of itself")
    mine = c.key
    for what, body in (("what it said before", rows[mine]), ("another host's words", rows[[k for k in rows if k != mine][0]]),
                       ("words without a signature", rows[mine].rpartition(".")[0]), ("words that are spoilt", rows[mine][:-4] + "AAAA")):
        db.sql(put % (mine, body), "fleet")
        mark = a.issue()
        b.revoke(mark)
        a.says_soon(mark, fleet.REVOKED)
        t.eq(host(a, "c")["state"], "silent", "nobody believes that it lives by %s, put there again" % what)
    t.eq([h["state"] for h in shown(a)["hosts"]], ["connected", "connected", "silent"], "nor do they hide others")


def doubted(t, nodes, db):
    """b's directory is put back to a former state; the database loses a head of c's."""
    a, b, _ = nodes
    b.end_hold()
    b.d.stop()
    old = os.path.join(b.d.dir, "old")
    subprocess.run(["cp", "-a", b.d.audit_dir, old], stderr=subprocess.DEVNULL, timeout=20, check=False)
    b.d.serve(save=False)
    number = host(a, "b")["log"]["head"]
    t.ok(tap.wait_for(lambda: host(a, "b")["log"]["head"] >= number + 2, 10, 0.1), "b says more")
    b.d.stop()
    shutil.rmtree(b.d.audit_dir)
    os.rename(old, b.d.audit_dir)
    b.d.serve(save=False)
    got = log_state(a, "b", "doubted")
    t.ok(got and "rolled_back" in {p["what"] for p in got["problems"]}, "a log that was put back does not agree", str(got))
    db.sql("DELETE FROM durward_head WHERE host = 'c' AND number = 2", "fleet")
    got = log_state(a, "c", "doubted")
    t.ok(got and {p["what"] for p in got["problems"]} == {"missing"}, "nor one whose head the database lost", str(got))
    t.eq(host(a, "a")["log"]["state"], "agrees", "a's is as it was")
    r = a.d.command("status", "--fleet", "--socket", a.d.socket)
    t.ok("b: its log: rolled_back:" in r.stdout and "c: its log: missing: head 2" in r.stdout, "the command says what", r.stdout)


def browser(t, node, name):
    chromium, program = shutil.which("chromium"), shutil.which("node")
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not chromium or not program or not all(os.path.isdir(os.path.join(modules, x)) for x in ("playwright-core", "axe-core")):
        t.skip("the page in a browser: " + name, "chromium, node, playwright-core or axe-core is not there")
        return
    folder = os.environ.get("TEST_ARTIFACTS") or t.mkdir("shots-" + name)
    home = tempfile.mkdtemp(prefix="durward-")
    t.cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    link = node.d.command("console", "--socket", node.d.socket).stdout.strip()
    r = subprocess.run([program, SCRIPT, modules, chromium, folder, link, name], stdout=subprocess.PIPE, timeout=60, check=False,
                       preexec_fn=tap.die_with_parent, env=dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home, TMPDIR=home))
    for line in r.stdout.decode().splitlines():
        v = json.loads(line)
        t.ok(v["ok"], v["what"], *v["diag"])
    t.eq(r.returncode, 0, "the browser ended: " + name)


def cut_off(t, nodes):
    a, b, _ = nodes
    a.relay.cut()
    got = tap.wait_for(lambda: (lambda v: v if not v["connected"] else None)(shown(a)), 20, 0.2)
    t.ok(got and got["age_seconds"] >= 5, "a host that is cut off says that it reads nothing, and since when", json.dumps(got))
    of_b = {h["host"]: h for h in got["hosts"]}["b"]
    t.ok(of_b["state"] == "unknown" and "does not hear the fleet" in of_b["why"] and of_b["version"], "of the others it says what it knew", str(of_b))
    t.ok(becomes(b, "a", state="silent"), "the others say that it is silent")


class Node(fleet.Node):
    """With a budget of the fleet."""
    rules = [{"allow": NOTED + "/share", "budget": {"requests": "40/h", "fleet": True}}] + fleet.Node.rules

    def get(self, path):
        return client.Gate(self.bound, self.ca, timeout=60).get(NOTED, path)

    def box(self):
        a = self.api()
        try:
            return a.create(policy="coder")["id"]
        except (api.Refused, OSError, tap.Skip):
            return None
        finally:
            a.close()

    def hold(self):
        self.held = threading.Thread(target=self.get, args=("/ask/it",), daemon=True)
        self.held.start()

    def end_hold(self):
        a = self.api()
        for x in a.ask("GET", "/v1/approvals")["approvals"]:
            if "host" not in x:
                a.raw("POST", "/v1/approvals/%s/deny" % x["id"])
        a.close()
        self.held.join(20)


def main(t):
    why = postgres.missing()
    if why:
        t.skip("everything", why)
        return
    nodes, db, _ = fleet.noted(t, Node, revocations="1m")
    port = nginx.free_port()
    nodes[0].d.listen.append({"console": "127.0.0.1:%d" % port})
    fleet.introduce(nodes, ("bc", "ac", "a"), every="%ds" % EVERY)
    t.part(everything, t, nodes)
    t.part(unnamed, t, nodes)
    t.part(command, t, nodes)
    t.part(scopes, t, nodes)
    t.part(browser, t, nodes[0], "connected")
    t.part(silent, t, nodes, db)
    t.part(doubted, t, nodes, db)
    t.part(browser, t, nodes[0], "doubted")
    t.part(cut_off, t, nodes)
    t.part(browser, t, nodes[0], "cut off")


tap.run(main)
