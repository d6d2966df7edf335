#!/usr/bin/python3 -B
"""Sandboxes with a life: create, get-or-create, labels, paging, times to live, credentials, the
daemon's and the controller's death, an ordinary user's daemon, and that nothing is left behind."""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402

BASE = "/v1/sandboxes"


def inits(root=None):
    """Processes that belong to sandboxes."""
    return [p for p in tap.descendants(root) if "bwrap" in p[1] or "/run/durward/init" in p[1]]


def role_pid(d, role):
    return [pid for pid, r in d.roles() if r == role][0]


def life(t, c):
    a = c.create(labels={"thread": "1", "team": "x"}, name="first", ttl=600, idle_ttl=300,
                 env={"COLOUR": "blue"})
    t.ok(re.fullmatch(r"sb-[a-z2-7]{26}", a["id"]), "an id of 128 random bits", a["id"])
    t.eq((a["state"], a["policy"], a["name"], a["labels"]),
         ("running", "coder", "first", {"thread": "1", "team": "x"}), "it runs when create answers")
    t.ok(0 <= a["expires_at"] - a["created_at"] - 600 <= 30, "its time to live is as asked", a)
    t.eq(c.sh(a["id"], "echo $COLOUR; pwd; hostname | head -c 3"), (0, b"blue\n/workspace\nsb-"),
         "its environment, and it starts in the writable workspace")
    b = c.create(labels={"thread": "2", "team": "x"})
    t.eq((b["ttl"], b["idle_ttl"], b["soft_ttl"], b["soft_expires_at"]), (86400, 3600, 0, None),
         "times to live are on by default, a soft one is not")
    t.eq([s["id"] for s in c.list("?label=team%3Dx")["sandboxes"]], [a["id"], b["id"]],
         "by one label, oldest first")
    t.eq([s["id"] for s in c.list("?label=team%3Dx&label=thread%3D2")["sandboxes"]], [b["id"]],
         "by two labels")
    page = c.list("?limit=1")
    rest = c.list("?limit=1&after=" + page["next"])
    t.eq((page["sandboxes"][0]["id"], rest["sandboxes"][0]["id"], rest["next"]),
         (a["id"], b["id"], None), "in pages")
    t.eq(api.refused(c.create, name="first"), (409, "conflict"), "a name is taken once")
    changed = c.ask("PATCH", BASE + "/" + b["id"], {"labels": {"n": "1"}, "ttl": 50})
    t.ok(changed["labels"] == {"n": "1"} and changed["generation"] > b["generation"] and
         changed["expires_at"] <= time.time() + 51, "labels and times can be changed",
         json.dumps(changed))
    c.sh(a["id"], "sleep 300 >/dev/null 2>&1 & setsid sleep 300 >/dev/null 2>&1 &")
    c.delete(a["id"])
    t.ok(not [p for p in inits() if a["id"] in p[1]] and len(inits()) <= 3,
         "delete answers when nothing of it is left", *["%d %s" % p for p in inits()])
    t.eq((c.delete(a["id"]), c.delete("sb-never-was")), (None, None), "delete is idempotent")
    t.eq(api.refused(c.show, a["id"]), (404, "sandbox_not_found"), "a deleted one is unknown")
    t.eq(c.create(name="first")["name"], "first", "and its name free")
    for s in c.list()["sandboxes"]:
        c.delete(s["id"])
    happened(t, c, a["id"])


def happened(t, c, box):
    """The events, in pages; one that begins where there is nothing yet is empty."""
    seen, after = [], 0
    for _ in range(300):
        page = c.ask("GET", "/v1/events?limit=2&after=%d" % after)
        if not page["events"]:
            break
        seen, after = seen + page["events"], page["next"]
    whole = c.ask("GET", "/v1/events?limit=1000")["events"]
    order = [e["sequence"] for e in seen]
    t.ok(seen == whole and order == sorted(set(order)), "events in pages are the events", seen[-3:], whole[-3:])
    t.eq([e["event"] for e in seen if e["sandbox"] == box],
         ["sandbox_created", "sandbox_named", "sandbox_labelled", "sandbox_started", "sandbox_ended", "sandbox_deleted"],
         "what became of one, in order")


def defaults(t, c):
    """What a policy says of its sandboxes holds where who makes one does not say it."""
    keys = ("ttl", "idle_ttl", "on_idle", "soft_ttl", "on_soft_ttl", "image")
    t.eq(api.refused(c.create, policy="short"), (404, "image_not_found"), "the policy's image is taken")
    a = c.create(policy="short", image="host")
    t.eq([a[k] for k in keys], [172800, 0, "stop", 28800, "pause", "host"], "the policy's times, and what was said")
    t.ok(0 <= a["expires_at"] - a["created_at"] - 172800 <= 30, "its end is theirs", a)
    fork = c.ask("POST", BASE + "/" + a["id"] + "/fork", {"ttl": 60})
    t.eq([fork[k] for k in keys], [60, 0, "stop", 28800, "pause", "host"], "a fork's too, above the same files")
    b = c.create(policy="short", image="host", ttl=90, idle_ttl=30, on_idle="pause", soft_ttl=40, on_soft_ttl="stop")
    t.eq([b[k] for k in keys], [90, 30, "pause", 40, "stop", "host"], "what is said goes first")
    for x in (a, fork, b):
        c.delete(x["id"])


def get_or_create(t, d, c):
    want = {"labels": {"thread_id": "42"}, "get_or_create": True}

    def one(_):
        k = api.Api(d.socket)
        status, _, data = k.raw("POST", BASE, json.dumps(dict(want, policy="coder")))
        k.close()
        return status, json.loads(data)["id"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(one, range(8)))
    t.eq((len({i for _, i in got}), sorted(s for s, _ in got)), (1, [200] * 7 + [201]),
         "get-or-create by labels is atomic: 8 at once make one")
    t.eq(c.ask("POST", BASE, want)["id"], got[0][1], "to be given one no policy need be named")
    t.eq(api.refused(c.create, policy="other", **want), (409, "conflict"),
         "one with another policy is not given for it")
    t.eq(api.refused(c.create, get_or_create=True), (400, "bad_request"), "it needs labels")
    c.delete(got[0][1])
    t.ok(c.create(**want)["id"] != got[0][1], "a deleted one is not given again")


def refusals(t, d, c):
    rows = (("POST", BASE, "{", 400), ("POST", BASE, "[]", 400), ("POST", BASE, '{"x":1}', 400),
            ("POST", BASE, '{"policy":"nope"}', 400), ("POST", BASE, '{"ttl":0}', 400),
            ("POST", BASE, '{"policy":"coder","policy":"other"}', 400), ("POST", BASE, "{}", 400),
            ("POST", BASE, '{"env":{"A":"\\u0000"}}', 400), ("POST", BASE, '{"env":{"1":"x"}}', 400),
            ("POST", BASE, '{"labels":{"":"x"}}', 400), ("POST", BASE, '{"labels":{"a":1}}', 400),
            ("POST", BASE, '{"name":"../x"}', 400), ("GET", BASE + "?x=1", None, 400),
            ("GET", BASE + "?limit=0", None, 400), ("GET", BASE + "?limit=1&limit=2", None, 400),
            ("GET", BASE + "?state=x", None, 400), ("GET", BASE + "?label=%00", None, 400),
            ("GET", BASE + "/../status", None, 404), ("GET", BASE + "/%2e%2e", None, 404),
            ("GET", BASE + "/SB-X", None, 404), ("GET", BASE + "/" + "a" * 65, None, 404),
            ("PUT", BASE, "{}", 405), ("OPTIONS", BASE, None, 405), ("TRACE", BASE, None, 405),
            ("GET", "/v2/sandboxes", None, 404), ("GET", BASE + "/", None, 404))
    for method, path, body, want in rows:
        status, _, data = c.raw(method, path, body, kept=False)
        shape = json.loads(data).get("error", {}) if data else {}
        t.ok(status == want and set(shape) == {"code", "message"},
             "%s %s %s: %d" % (method, path[:40], (body or "")[:40], want),
             "%d %r" % (status, data[:200]))
    for name, value in (("Host", "evil.example"), ("Host", "127.0.0.1"), ("Origin", "http://x")):
        status, headers, data = c.raw("GET", "/v1/health", headers={name: value}, kept=False)
        t.ok(status == 403 and "Access-Control-Allow-Origin" not in headers,
             "%s: %s is 403" % (name, value))
    t.eq(os.stat(d.socket).st_mode & 0o777, 0o600, "the socket is its owner's")
    t.eq([p["name"] for p in c.ask("GET", "/v1/policies")["policies"]], ["coder", "other", "short"],
         "policies by name")
    doc = c.ask("GET", "/openapi.json")
    t.ok(doc["openapi"] == "3.1.0" and BASE in doc["paths"], "the document is served")


def expiry(t, c):
    hard = c.create(ttl=1)["id"]
    idle = c.create(idle_ttl=1)["id"]
    busy = c.create(idle_ttl=1)["id"]
    f = c.frames(busy, command="sleep 4", timeout=10)
    gone = lambda sid: api.refused(c.show, sid) is not None  # noqa: E731
    t.ok(tap.wait_for(lambda: gone(hard) and gone(idle), 8, 0.1),
         "times to live end a sandbox: hard, and idle")
    t.ok(not gone(busy), "one with a running command is not idle")
    f.finish()
    f.close()
    t.ok(tap.wait_for(lambda: gone(busy), 8, 0.1), "and is when the command has ended")
    events = c.ask("GET", "/v1/events?limit=1000")["events"]
    t.ok([e for e in events if e["sandbox"] == idle and e["event"] == "sandbox_deleted" and
          "idle" in e["detail"]], "the event says why", json.dumps(events[-4:]))


def credentials(t, s, c):
    box = c.create(policy="coder")["id"]
    code, out = c.sh(box, "env; curl -s https://api.github.com/user; "
                          "curl -s -o /dev/null -w '%{http_code}' https://api.github.com/gists/1")
    t.ok(code == 0 and b"octo" in out and b"403" in out, "requests go out by the policy", out)
    shown = tap.wait_for(lambda: c.show(box)["denied"], 3, 0.1)
    t.ok(shown and shown[0]["target"].startswith("api.github.com"), "show says what was denied",
         json.dumps(shown))
    t.ok(s.d.wait_records(1, "lifecycle", event="sandbox_started", target=box),
         "its life is in the audit log")
    other = c.create(policy="other")["id"]
    placeholder = re.search(rb"GITHUB_TOKEN=(\S+)", out).group(1).decode()
    _, answer = c.sh(other, "curl -s -i -H 'Authorization: Bearer %s' https://deps.example.com/"
                     % placeholder)
    t.has(answer.decode(), "cross_sandbox", "another's placeholder is worth nothing")
    c.delete(other)
    return box, [out]


def controller_dies(t, d, c, box):
    """SIGKILL at any point: no row is lost, what ran runs on, names keep their addresses."""
    before = c.sh(box, "getent ahostsv4 deps.example.com | head -1")[1].split()[0]
    c.sh(box, "echo kept >/workspace/kept; (sleep 600 &) >/dev/null 2>&1")
    others = [c.create(labels={"n": str(i)})["id"] for i in range(3)]
    for round_ in range(4):
        k = api.Api(d.socket, timeout=5)
        f = k.frames(box, command="sleep 100")
        f.receive()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(lambda: api.Api(d.socket, timeout=5).create(policy="coder")) for _ in range(3)]
            time.sleep(0.013 * round_)
            os.kill(role_pid(d, "controller"), signal.SIGKILL)
            [j.exception() for j in jobs]
        f.close()
        c.close()

        def running():
            try:
                rows = {x["id"]: x["state"] for x in c.list("?limit=1000")["sandboxes"]}
            except (OSError, api.Refused, ValueError, EOFError):
                c.close()
                return False
            return all(rows.get(x) == "running" for x in [box] + others)
        if not t.ok(tap.wait_for(running, 10, 0.05), "killed %d: all are taken over" % round_):
            t.diag(d.diagnostics())
            return
    t.eq(c.sh(box, "cat kept; ps ax | grep -c '[s]leep 600'; ps ax | grep -c '[s]leep 100'"),
         (1, b"kept\n1\n0\n"), "files and background stay, commands whose client died are killed")
    t.eq(c.sh(box, "getent ahostsv4 deps.example.com | head -1")[1].split()[0], before,
         "a name keeps its synthetic address")
    t.ok(c.sh(box, "getent ahostsv4 api.openai.com | head -1")[1].split()[0] != before,
         "and a new name gets another one")
    t.has(c.sh(box, "curl -s https://api.github.com/user")[1].decode(), "octo",
          "requests are served again")
    with open(d.log) as log:
        t.has(log.read(), "is taken over", "and the daemon says so")
    known = {x["id"] for x in c.list("?limit=1000")["sandboxes"]}
    t.ok(tap.wait_for(lambda: len([p for p in inits() if "bwrap" in p[1]]) <= 2 * len(known), 20, 0.2),
         "no sandbox runs without a row", *["%d %s" % p for p in inits()])
    for sid in known - {box}:
        c.delete(sid)


def listening(pid):
    """Has the sandbox monitor its listeners?"""
    try:
        with open("/proc/%d/net/tcp" % pid) as f:
            return os.readlink("/proc/%d/ns/net" % pid) != os.readlink("/proc/self/ns/net") and len(f.readlines()) > 2
    except OSError:
        return False


def busy_parent(t, d, c):
    """The parent reads the builder's listeners before it hears from the controller what they are for."""
    c.delete(c.create()["id"])
    asked = []
    os.kill(d.daemon.pid, signal.SIGSTOP)
    try:
        for i in range(400):  # fill the controller's channel to it
            k = api.Api(d.socket)
            k.conn.timeout = None  # a full backlog is waited for
            k.conn.request("GET", "/v1/status")
            asked.append(k)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(lambda: api.Api(d.socket).create(policy="coder"))
            builder = role_pid(d, "builder")
            made = tap.wait_for(lambda: [p for p, _ in tap.descendants(builder) if listening(p)], 10)
            os.kill(d.daemon.pid, signal.SIGCONT)
            t.ok(made and job.exception() is None, "a parent that is behind: the sandbox is made", str(job.exception()))
            c.delete(job.result()["id"]) if not job.exception() else None
    finally:
        os.kill(d.daemon.pid, signal.SIGCONT)
    t.eq({k.conn.getresponse().status for k in asked}, {200}, "and whoever asked is answered")
    [k.close() for k in asked]


def daemon_restarts(t, d, c, box):
    c.close()
    d.stop()
    t.ok(tap.wait_for(lambda: not inits(), 5), "the daemon's end ends its sandboxes")
    d.serve(save=False)
    row = c.show(box)
    t.eq(row["state"], "stopped", "a row stays, as stopped") or t.diag(json.dumps(row))
    t.eq(c.sh(box, "cat kept; ps ax | grep -c '[s]leep'"), (1, b"kept\n0\n"),
         "a command has it run again, above its files")
    live = c.create()["id"]
    asleep = c.create(auto_resume=False)["id"]
    c.close()
    d.daemon.kill()
    d.daemon.wait()
    t.ok(tap.wait_for(lambda: not inits(), 5), "SIGKILL of the parent ends them too",
         *["%d %s" % p for p in inits()])
    d.serve(save=False)
    t.ok(tap.wait_for(lambda: c.show(live)["state"] == "stopped", 5), "and their rows stay")
    t.ok(tap.wait_for(lambda: c.show(asleep)["state"] == "stopped", 5) and
         api.refused(c.exec, asleep, "true") == (409, "not_running"),
         "nothing runs in one that is not to be resumed")
    for s in c.list()["sandboxes"]:
        c.delete(s["id"])
    t.eq(c.list()["sandboxes"], [], "a stopped one can be deleted")
    t.ok(tap.wait_for(lambda: not os.listdir(os.path.join(d.dir, "state", "sandboxes")), 10),
         "and its files go")


def counts(d):
    """Descriptors of each shared role, and mounts and namespaces of the host."""
    n = {}
    for pid, role in d.roles():
        if role != "gate" and os.geteuid() == 0:  # whose descriptors others may not see
            try:
                n[role] = len(os.listdir("/proc/%d/fd" % pid))
            except FileNotFoundError:
                n["ended meanwhile"] = pid  # a child of a role's: no count is like another until it is gone
    with open("/proc/self/mountinfo") as f:  # ours: other tests run beside this one
        n["mounts"] = sum(d.dir in line for line in f)
    n["processes"] = len(tap.descendants())
    n["layers"] = len(os.listdir(os.path.join(d.dir, "state", "sandboxes")))
    return n


def steady(d):
    """Counts when the next gate is warm and what ended is reaped: the same three times."""
    seen = []

    def same():
        seen.append(counts(d))
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]
    tap.wait_for(same, 5, 0.1)
    return seen[-1]


def nothing_grows(t, d, c):
    def cycle(i):
        sid = c.create(labels={"i": str(i)})["id"]
        c.sh(sid, "echo x > f; (sleep 100 &) >/dev/null 2>&1")
        c.delete(sid)
    [cycle(i) for i in range(5)]
    before = steady(d)
    [cycle(i) for i in range(25)]
    after = tap.wait_for(lambda: (lambda n: n if n == before else None)(counts(d)), 5, 0.1)
    t.ok(after, "25 more cycles leave nothing: descriptors, mounts, processes, files",
         "before %r" % before, "after %r" % counts(d))


def ordinary_user(t):
    if os.geteuid() != 0:
        t.skip("a daemon of an ordinary user", "this is one already")
        return
    uid = 61654
    d = durward.Durward(t, "user")
    d.policy("p", [])
    d.save()
    stage = t.mkdir("user/stage")
    prefix = os.path.dirname(os.path.dirname(durward.program()))
    for part in ("bin", "libexec"):
        shutil.copytree(os.path.join(prefix, part), os.path.join(stage, part))
    for root, dirs, files in os.walk(d.dir):
        for name in dirs + files:
            if not root.startswith(stage):
                os.chown(os.path.join(root, name), uid, uid)
    os.chown(d.dir, uid, uid)
    program = os.path.join(stage, "bin", "durward")
    with open(d.log, "ab") as log:
        d.daemon = t.popen([program, "serve", "-c", d.conf], stdout=log, stderr=log, cwd=d.work,
                           env=d.env, user=uid, group=uid, extra_groups=[], preexec_fn=None)
    t.ok(tap.wait_for(lambda: os.path.exists(d.socket), 10), "an ordinary user's daemon starts") or \
        t.diag(d.diagnostics())

    def cli(*args):
        return subprocess.run([program] + list(args), env=dict(d.env, DURWARD_SOCKET=d.socket),
                              user=uid, group=uid, extra_groups=[], capture_output=True, text=True,
                              cwd=d.work, timeout=30)

    r = tap.wait_for(lambda: (lambda x: x if x.returncode == 0 else None)(
        cli("sandbox", "create")), 10, 0.2) or cli("sandbox", "create")
    sid = r.stdout.strip()
    t.ok(r.returncode == 0 and sid.startswith("sb-"), "it makes a sandbox", r.stderr, d.diagnostics())
    r = cli("sandbox", "exec", sid, "sh", "-c", "id -u; touch /workspace/x && echo w; exit 5")
    t.eq((r.returncode, r.stdout), (5, "%d\nw\n" % uid), "and runs commands in it") or t.diag(r.stderr)
    t.eq(cli("sandbox", "rm", sid).returncode, 0, "and ends it")
    d.daemon.terminate()
    d.daemon.wait(20)


def main(t):
    s = scene.Scene(t)
    s.d.policy("other", [{"allow": scene.PLAIN}])
    s.d.policy("short", [])
    s.d.policies["short"]["sandbox"] = {"image": "nowhere", "ttl": "2d", "idle_ttl": "0s", "on_idle": "stop",
                                          "soft_ttl": "8h", "on_soft_ttl": "pause"}
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="coder"))
    plain = c.create
    c.create = lambda **kw: plain(**dict({"policy": "coder"}, **kw))
    t.part(life, t, c)
    t.part(get_or_create, t, s.d, c)
    t.part(defaults, t, c)
    t.part(refusals, t, s.d, c)
    t.part(expiry, t, c)
    t.part(busy_parent, t, s.d, c)
    box, outputs = credentials(t, s, c)
    t.part(controller_dies, t, s.d, c, box)
    s.clean(outputs)
    t.part(daemon_restarts, t, s.d, c, box)
    t.part(nothing_grows, t, s.d, c)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.part(ordinary_user, t)


tap.run(main, timeout=150)
