#!/usr/bin/python3 -B
"""Templates and pools: sandboxes that are made, warmed up and frozen before anybody asks, and what whoever claims one
gets and does not get to see; a pool that is empty, fails, is reloaded, restarted and killed; who may claim what."""
import json
import os
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, nginx, tap  # noqa: E402

BASE = "/v1/templates"
WARM = ("echo warm >/workspace/warm; cat /proc/sys/kernel/random/uuid >/workspace/one; "
        "curl -s -o /dev/null http://elsewhere.org/; (while :; do echo x; sleep 0.02; done) >/workspace/ticks 2>&1 &")


def template(d, name, **more):
    d.extra.setdefault("templates", {})[name] = dict({"policy": "p"}, **more)


def show(c, name):
    return c.ask("GET", "%s/%s" % (BASE, name))


def ready(c, name, n, seconds=20):
    return tap.wait_for(lambda: show(c, name)["ready"] == n, seconds, 0.05)


def events(d, what, **want):
    return [r for r in d.kinds("lifecycle", event=what, **want)]


def claimed(t, d, c):
    t.ok(ready(c, "warm", 2), "a pool is filled by itself", show(c, "warm"))
    t.eq(c.list()["sandboxes"], [], "nobody sees what is in it")
    pooled = [r["target"] for r in d.wait_records(2, "lifecycle", event="sandbox_pooled", detail="warm")]
    t.eq(set(api.refused(c.show, p) for p in pooled), {(404, "sandbox_not_found")}, "nor does who knows an id")
    t.eq(set(api.refused(c.exec, p, "true") for p in pooled), {(404, "sandbox_not_found")}, "or gets in")
    c.delete(pooled[0])
    t.eq(show(c, "warm")["ready"], 2, "or ends it")
    status = c.ask("GET", "/v1/status")
    t.ok(not set(pooled) & {s["id"] for s in status["sandboxes"]}, "status does not list them")
    t.eq([(x["name"], x["pool"], x["ready"]) for x in status["templates"] if x["name"] == "warm"], [("warm", 2, 2)],
         "but counts them")
    before = time.time()
    box = c.create(template="warm", name="mine", labels={"a": "own", "b": "2"}, env={"OWN": "1"}, idle_ttl=77)
    sid = box["id"]
    t.ok(sid in pooled, "a claim is one of the pool", sid, pooled)
    t.eq((box["name"], box["labels"], box["template"], box["policy"], box["state"], box["idle_ttl"], box["ttl"],
          box["denied"]), ("mine", {"a": "own", "b": "2", "c": "3"}, "warm", "p", "running", 77, 500, []),
         "it has the claimer's name, labels and times, the template's beside them, and nothing that was refused before")
    t.ok(before - 1 <= box["created_at"] <= time.time() + 1 and 490 <= box["expires_at"] - time.time() <= 501,
         "its life begins now")
    code, out = c.sh(sid, "cat /workspace/warm; echo $OWN $FROM; wc -c </workspace/ticks")
    t.eq((code, out.split()[:3]), (0, [b"warm", b"1", b"template"]), "its warm-up ran; variables are both's")
    ticks = int(out.split()[-1])
    t.ok(tap.wait_for(lambda: int(c.sh(sid, "wc -c </workspace/ticks")[1]) > ticks, 5), "what it left behind goes on")
    t.eq([s["id"] for s in c.list()["sandboxes"]], [sid], "it is in the list from now on")
    t.eq([x["id"] for x in c.ask("GET", "/v1/sandboxes/%s/exec" % sid)["execs"]], [], "its warm-up is no command of it")
    t.eq([(p["port"], p["address"].rpartition(":")[0]) for p in box["published"]], [(8000, "127.0.0.1")],
         "the template's port is published when it is had")
    c.sh(sid, "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 0.5")
    host, _, port = box["published"][0]["address"].rpartition(":")

    def answers():
        with socket.create_connection((host, int(port)), 5) as s:
            s.sendall(b"GET /warm HTTP/1.0\r\n\r\n")
            return b"200" in s.recv(100)
    t.ok(tap.wait_for(answers, 5, 0.1), "and leads inside")
    two = c.create(template="warm")
    own = [c.sh(x, "cat one; echo $GITHUB_TOKEN; cat /run/durward/ca.pem 2>/dev/null || cat $SSL_CERT_FILE")[1]
           for x in (sid, two["id"])]
    parts = [o.split(b"\n", 2) for o in own]
    t.ok(all(len(p) == 3 and all(p) for p in parts) and all(a != b for a, b in zip(*parts)),
         "each has files, placeholders and a CA of its own", parts[0][:2], parts[1][:2])
    names = [r["detail"] for r in events(d, "sandbox_claimed", target=sid)]
    t.eq(names, ["warm"], "a claim is recorded")
    records = [r for r in d.records() if sid in (r.get("sandbox"), r.get("target"))]
    kinds = [(r["kind"], r.get("event")) for r in records]
    t.ok(kinds.index(("lifecycle", "sandbox_pooled")) < kinds.index(("lifecycle", "sandbox_claimed")), "after the pooling")
    at = [r["time"] for r in records if r.get("event") == "sandbox_claimed"][0]
    asked = [r["time"] for r in records if r.get("authority", "").startswith("elsewhere.org")]
    t.ok(asked and max(asked) < at, "what the warm-up asked for was recorded before that", asked, at)
    t.ok([r for r in records if r.get("event") == "exec_started" and "warm-up" in r["detail"]], "its command as warm-up")
    for x in (sid, two["id"]):
        c.delete(x)
    t.ok(ready(c, "warm", 2), "the pool is filled again")
    made = show(c, "warm")
    t.eq((made["claimed"], made["missed"], made["failures"]), (2, 0, 0), "it counts")


def empty(t, c):
    box = c.create(template="cold")
    t.eq((box["template"], c.sh(box["id"], "cat /workspace/warm")), ("cold", (0, b"cold\n")),
         "without a pool one is made, and warmed up before it is had")
    again = c.create(template="cold", labels={"who": "me"})
    t.eq(c.create(template="cold", labels={"who": "me"}, get_or_create=True)["id"], again["id"], "get_or_create takes it")
    t.eq(api.refused(c.create, template="warm", labels={"who": "me"}, get_or_create=True), (409, "conflict"),
         "but none of another template")
    t.eq(api.refused(c.create, template="none"), (400, "bad_request"), "a template that there is not")
    wrong = [dict(template="cold", image="host"), dict(template="cold", backend="bwrap"), dict(template="cold", policy="q"),
             dict(template="cold", volumes=["v:/v"]), dict(template="cold", snapshot="s"), dict(template="cold", ttl=0)]
    t.eq([api.refused(c.create, **w) for w in wrong], [(400, "bad_request")] * len(wrong),
         "what a template says is not said again")
    c.create(policy="p", name="taken")
    t.ok(ready(c, "warm", 2), "full")
    t.eq(api.refused(c.create, template="warm", name="taken"), (409, "conflict"), "nor a name that is taken")
    t.eq(api.refused(c.create, template="warm", env={"A": "x" * 32000, "B": "x" * 32000, "C": "x" * 32000}),
         (413, "too_large"), "nor variables that do not fit")
    t.eq(show(c, "warm")["ready"], 2, "which costs the pool nothing")
    for s in c.list()["sandboxes"]:
        c.delete(s["id"])


def failing(t, d, c):
    t.ok(tap.wait_for(lambda: show(c, "bad")["failures"] >= 2, 15, 0.1), "a warm-up that fails is tried again")
    bad = show(c, "bad")
    t.ok(bad["reason"] == "its warm-up ended with status 3: no luck" and bad["ready"] == 0, "and said", bad)
    n = len(events(d, "warm_up_failed"))
    t.ok(n <= 4, "but later and later", n)
    t.ok("no luck" in d.command("status", "--socket", d.socket).stdout, "status says so")
    code = api.refused(c.create, template="bad")
    t.eq(code, (503, "create_failed"), "who asks is told")
    t.ok(tap.wait_for(lambda: c.list()["sandboxes"] == [], 5, 0.05), "and nothing stays of it")


def tokens(t, d, c):
    """Templates that a token for some sandboxes sees, and what it may take of them."""
    port = int(d.extra["controller"]["https"].rpartition(":")[2])
    ca = t.write("ca.pem", d.command("ca", "export", "-c", d.conf).stdout)

    def who(**more):
        made = c.ask("POST", "/v1/tokens", dict({"scopes": ["read", "sandboxes", "exec", "approvals"]}, **more))
        return made, api.Remote(port, ca, made["token"])
    _, other = who(policies=["q"])
    said = other.said("POST", "/v1/sandboxes", {"template": "warm"})
    t.eq((said, other.said("POST", "/v1/sandboxes", {"template": "nothing"})), ((400, "bad_request"),) * 2,
         "a template of another policy is as one that there is not")
    t.eq([x["name"] for x in other.ask("GET", BASE)["templates"]], ["q"], "it lists none but its own")
    t.eq(other.said("GET", BASE + "/warm"), (404, "template_not_found"), "and shows none")
    own = other.ask("GET", BASE + "/q")
    t.ok("reason" not in own and "claimed" not in own, "what its pool went through is not said", own)
    _, team = who(policies=["p"], labels={"c": "4"})
    t.eq([x["name"] for x in team.ask("GET", BASE)["templates"]], ["cold", "bad"],
         "nor of a template with another value of its label")
    made, mine = who(policies=["p"], labels={"team": "x"}, max_sandboxes=1)
    box = mine.ask("POST", "/v1/sandboxes", {"template": "warm"})
    t.eq(box["labels"], {"a": "1", "c": "3", "team": "x"}, "what a token claims has its labels")
    t.eq(mine.said("POST", "/v1/sandboxes", {"template": "warm"}), (503, "limit"), "and counts for it")
    t.eq([r["detail"] for r in events(d, "sandbox_claimed", target=box["id"])], ["warm by " + made["id"]], "by its name")
    t.eq(team.said("GET", "/v1/sandboxes/" + box["id"]), (404, "sandbox_not_found"), "others do not see it")
    mine.ask("DELETE", "/v1/sandboxes/" + box["id"])


def held(t, d, c):
    """A request of a warm-up's that waits for somebody is its template's, and nobody else's."""
    port = int(d.extra["controller"]["https"].rpartition(":")[2])
    made = c.ask("POST", "/v1/tokens", {"scopes": ["read", "sandboxes", "exec", "approvals"], "policies": ["r"]})
    narrow = api.Remote(port, t.write("ca.pem", d.command("ca", "export", "-c", d.conf).stdout), made["token"])
    t.ok(ready(c, "asks", 1) and tap.wait_for(lambda: c.ask("GET", "/v1/approvals")["approvals"], 10, 0.05), "one waits")
    waits = c.ask("GET", "/v1/approvals")["approvals"][0]["sandbox"]
    t.eq(narrow.ask("GET", "/v1/approvals")["approvals"], [], "a token that is for its policy is not shown it")
    box = c.create(template="asks")["id"]
    t.ok(box != waits, "and its sandbox is not handed out")
    c.delete(box)


def crowd(t, c, d):
    """More at once than there are."""
    t.ok(ready(c, "warm", 2), "full")
    got, lock = [], threading.Lock()

    def one():
        own = api.Api(d.socket)
        made = own.create(template="warm")
        text = own.sh(made["id"], "cat /workspace/one")[1]
        own.close()
        with lock:
            got.append((made["id"], text))
    threads = [threading.Thread(target=one) for _ in range(5)]
    for x in threads:
        x.start()
    for x in threads:
        x.join(60)
    t.eq((len(got), len({g[0] for g in got}), len({g[1] for g in got})), (5, 5, 5), "five claims of a pool of two are five sandboxes")
    for sid, _ in got:
        c.delete(sid)


def reloads(t, d, c):
    t.ok(ready(c, "warm", 2), "full")
    old = {r["target"] for r in events(d, "sandbox_pooled", detail="warm")}
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "the same configuration again")
    kept = c.create(template="warm")
    t.ok(kept["id"] in old, "keeps the pool", kept["id"])
    t.ok(ready(c, "warm", 2), "full")
    old = {r["target"] for r in events(d, "sandbox_pooled", detail="warm")}
    d.policies["p"]["env"]["NEW"] = "policy"
    del d.extra["templates"]["asks"]  # while a request waits, the daemon's end waits for it
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "another policy")
    box = c.create(template="warm")
    t.ok(box["id"] not in old, "what the former one made is not handed out any more")
    t.eq(c.sh(box["id"], "echo $NEW"), (0, b"policy\n"), "but what the new one does")
    t.ok(tap.wait_for(lambda: old - {kept["id"]} <= {r["target"] for r in events(d, "sandbox_ended")}, 10, 0.1), "it is ended")
    for x in (kept, box):
        c.delete(x["id"])
    t.ok(ready(c, "warm", 2), "and made anew")


def restarts(t, d, c):
    old = {r["target"] for r in events(d, "sandbox_pooled", detail="warm")}
    pid = [p for p, r in d.roles() if r == "controller"][0]
    box = c.create(template="warm", env={"OWN": "kept"})["id"]
    c.close()
    os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: api.refused(c.show, box) is None and c.show(box)["state"] == "running", 15, 0.1),
         "a claimed one outlives the controller")
    t.eq((c.show(box)["template"], c.sh(box, "echo $OWN; cat warm")), ("warm", (0, b"kept\nwarm\n")), "as it was claimed")
    t.ok(ready(c, "warm", 2), "the pool is made anew")
    fresh = c.create(template="warm")["id"]
    t.ok(fresh not in old, "of new sandboxes")
    t.ok(tap.wait_for(lambda: old - {box} <= {r["target"] for r in events(d, "sandbox_ended")}, 10, 0.1),
         "the former ones are gone", old)
    c.delete(fresh)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends")
    t.eq(boxes(), set(), "nothing of its pools runs")
    d.serve()
    t.ok(ready(c, "warm", 2), "another fills them")
    t.eq([(s["id"], s["state"]) for s in c.list()["sandboxes"]], [(box, "stopped")], "what was claimed is still there")
    c.delete(box)
    layers = os.path.join(d.dir, "state", "layers")
    del d.extra["templates"]
    d.save()
    t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "templates can be taken away")
    t.ok(tap.wait_for(lambda: boxes() == set(), 10, 0.1), "with their pools", boxes())
    t.ok(tap.wait_for(lambda: not os.path.isdir(layers) or not os.listdir(layers), 10, 0.1), "no files are left")


def boxes():
    """Sandboxes that run, by their inits."""
    found = set()
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if b"bwrap" in words[0]:
            found.add(pid)
    return found


def commands(t, d):
    def run(*args):
        return d.command(*args, "--socket", d.socket)
    t.has(run("template", "ls").stdout, "warm", "durward template ls")
    t.eq([x["name"] for x in json.loads(run("template", "ls", "--json").stdout)], ["warm", "cold", "bad", "q", "asks"], "--json")
    shown = run("template", "show", "warm")
    t.ok("of 2 ready" in shown.stdout and "8000" in shown.stdout, "durward template show", shown.stdout, shown.stderr)
    t.eq(json.loads(run("template", "show", "warm", "--json").stdout)["pool"], 2, "--json")
    t.eq(run("template", "show", "none").returncode, 1, "one that there is not")
    made = run("sandbox", "create", "--template", "warm")
    t.ok(made.returncode == 0 and made.stdout.startswith("sb-"), "durward sandbox create --template", made.stderr)
    t.eq(run("sandbox", "rm", made.stdout.strip()).returncode, 0, "and rm")
    t.eq(run("completion", "--list", "templates").stdout.split(), ["warm", "cold", "bad", "q", "asks"], "completion knows them")


def configured(t, d):
    good = d.config()
    for text, why in (({"policy": "none"}, "there is no policy"), ({"policy": "p", "pool": 300}, "pool"),
                      ({"policy": "p", "warm_up": "sh"}, "list"), ({}, "needs a 'policy'"),
                      ({"policy": "p", "snapshot": "s", "image": "i"}, "leave 'image' out"),
                      ({"policy": "p", "warm_up_timeout": "2h"}, "warm_up_timeout"),
                      ({"policy": "p", "labels": {"a b": "1"}}, "label"), ({"policy": "p", "ports": [0]}, "port")):
        config = dict(good)
        config["templates"] = {"x": text}
        t.has(d.check(json.dumps(config)).stderr, why, "refused: %s" % json.dumps(text))
    config = dict(good)
    config["templates"] = {"x%d" % i: {"policy": "p", "pool": 200} for i in range(3)}
    t.has(d.check(json.dumps(config)).stderr, "at most 512", "pools are bounded together")
    d.save()


def main(t):
    d = durward.Durward(t)
    d.secret("github", "ghp_" + "a" * 36, kind="github-pat")
    d.policy("p", [{"use": "github", "secret": "github"}], env={"GITHUB_TOKEN": "{{placeholder github}}"})
    d.policy("q", [])
    d.policy("r", [{"ask": "http://held.elsewhere.org/"}])
    d.extra["controller"] = dict(d.config()["controller"], https= "127.0.0.1:%d" % nginx.free_port())
    template(d, "warm", pool=2, warm_up=["sh", "-c", WARM], env={"FROM": "template"}, labels={"a": "1", "c": "3"}, ttl="500s",
             ports=[8000])
    template(d, "cold", warm_up=["sh", "-c", "sleep 0.2; echo cold >warm"])
    template(d, "bad", pool=1, warm_up=["sh", "-c", "echo no luck; exit 3"])
    template(d, "q", policy="q")
    template(d, "asks", policy="r", pool=1, warm_up=["sh", "-c", "curl -s -m 60 http://held.elsewhere.org/ >/dev/null 2>&1 & sleep 0.3"])
    d.save()
    d.serve()
    c = api.Api(d.socket)
    t.part(configured, t, d)
    t.part(claimed, t, d, c)
    t.part(empty, t, c)
    t.part(failing, t, d, c)
    t.part(tokens, t, d, c)
    t.part(commands, t, d)
    t.part(crowd, t, c, d)
    t.part(held, t, d, c)
    t.part(reloads, t, d, c)
    t.part(restarts, t, d, c)


tap.run(main, timeout=120)
