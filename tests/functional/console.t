#!/usr/bin/python3 -B
"""The console: who gets in, what it may ask, and its flows in a headless Chromium. Screenshots are
kept in $TEST_ARTIFACTS, where that is set."""
import http.client
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, nginx, scene, tap  # noqa: E402

SCRIPT = os.path.join(durward.INSIDE, "console.mjs")


def ask(port, method, path, body=None, **headers):
    """-> (status, headers, bytes); Host is the right one unless given."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    names = {"host": "Host", "origin": "Origin", "authorization": "Authorization",
             "site": "Sec-Fetch-Site"}
    conn.request(method, path, body, {names[k]: v for k, v in headers.items()})
    r = conn.getresponse()
    data = r.read()
    conn.close()
    return r.status, r.headers, data


def link(s):
    r = s.d.command("console", "--socket", s.d.socket)
    return r.stdout.strip()


def session(t, s, port):
    token = link(s).rpartition("#")[2]
    t.eq(len(token), 64, "durward console prints a link with a token")
    r = ask(port, "POST", "/login", json.dumps({"token": token}))
    t.eq(r[0], 200, "which is traded for a session")
    t.eq(ask(port, "POST", "/login", json.dumps({"token": token}))[0], 401, "once")
    return "Bearer " + json.loads(r[2])["session"]


def listeners(t, s, port):
    good = session(t, s, port)
    for path in ("/v1/status", "/v1/audit/stream", "/v1/policies", "/v1/approvals"):
        t.eq(ask(port, "GET", path)[0], 401, "%s without a session is 401" % path)
        t.eq(ask(port, "GET", path, authorization="Bearer " + "0" * 64)[0], 401,
             "and with another one")
    t.eq(ask(port, "GET", "/v1/status", authorization=good)[0], 200, "with it, it is answered")
    t.eq(ask(port, "POST", "/v1/audit/verify", "{}")[0], 401, "nor is the log verified without one")
    wish = {"policy": "coder", "code": "no_rule", "host": "x.example", "reason": "r", "expires_in": 60}
    r = ask(port, "POST", "/v1/suppressions", json.dumps(wish), authorization=good)
    one = json.loads(r[2])
    t.eq((r[0], one.get("state")), (201, "open"), "it writes a suppression")
    r = ask(port, "POST", "/v1/suppressions/%s/accept" % one["id"], "{}", authorization=good)
    t.eq((r[0], json.loads(r[2])["error"]["code"]), (403, "own"), "and does not accept it, nor does another session of it")
    t.eq(ask(port, "DELETE", "/v1/suppressions/" + one["id"], authorization=good)[0], 200, "it withdraws it")
    answers = []

    def verify():
        answers.append(ask(port, "POST", "/v1/audit/verify", "{}", authorization=good))
    clients = [threading.Thread(target=verify) for _ in range(4)]
    for x in clients:
        x.start()
    for x in clients:
        x.join()
    said = [(a[0], json.loads(a[2]).get("ok")) for a in answers]
    t.eq(said, [(200, True)] * 4, "four who ask for it at once are all told that the log is good")
    for method, path in (("POST", "/v1/sandboxes"), ("POST", "/v1/reload"),
                         ("POST", "/v1/identities"), ("POST", "/v1/console"),
                         ("PATCH", "/v1/sandboxes/sb-x"), ("POST", "/v1/sandboxes/sb-x/exec"),
                         ("POST", "/v1/sandboxes/sb-x/stop"), ("POST", "/v1/tokens"),
                         ("GET", "/v1/sandboxes/sb-x/files?path=/etc/passwd"),
                         ("GET", "/metrics"), ("GET", "/openapi.json")):
        r = ask(port, method, path, "{}" if method == "POST" else None, authorization=good)
        t.ok(r[0] in (404, 405, 501), "%s %s is none of the console's" % (method, path), str(r[0]))
    for name, headers in (("a name that was led here", {"host": "evil.example:%d" % port}),
                          ("a name that begins like ours", {"host": "127.0.0.1.evil.example"}),
                          ("a foreign origin", {"origin": "http://127.0.0.1:1"}),
                          ("a null origin", {"origin": "null"}),
                          ("a page of another port", {"site": "same-site"}),
                          ("a page of another site", {"site": "cross-site"})):
        t.eq(ask(port, "GET", "/v1/status", authorization=good, **headers)[0], 403,
             "%s is refused" % name)
        t.eq(ask(port, "GET", "/", **headers)[0], 403, "and does not get the page")
    status, headers, body = ask(port, "GET", "/")
    policy = headers.get("content-security-policy", "")
    t.eq((status, headers.get("x-frame-options")), (200, "DENY"), "the page, not to be framed")
    t.ok(all(x in policy for x in ("default-src 'none'", "script-src 'self'", "connect-src 'self'",
                                   "frame-ancestors 'none'", "require-trusted-types-for")) and
         "unsafe" not in policy, "with a strict policy", policy)
    t.ok(b"http" not in body and not headers.get_all("set-cookie"),
         "no third party is named, no cookie set")


def replaced(t):
    """A log that is whole, in the place of the one that is written: only its key says that it is another."""
    mine, theirs = durward.Durward(t, "mine"), durward.Durward(t, "theirs")
    for d in (mine, theirs):
        d.policies = {"p": {"rules": []}}
        d.serve()
    t.eq(theirs.stop(), 0, "another daemon has written a log and ended")
    a = api.Api(mine.socket)
    v = a.ask("POST", "/v1/audit/verify")
    t.ok(v["ok"], "the log of the one that runs is good", repr(v))
    (logger,) = [pid for pid, role in mine.roles() if role == "logger"]
    os.kill(logger, signal.SIGSTOP)  # it would notice that its file is gone, and begin another
    owner = os.stat(os.path.join(mine.audit_dir, "key.pub"))

    def put(path):
        to = shutil.copy(path, mine.audit_dir)
        os.chown(to, owner.st_uid, owner.st_gid)
    try:
        for place, take in ((mine, os.unlink), (theirs, put)):
            for name in os.listdir(place.audit_dir):
                path = os.path.join(place.audit_dir, name)
                if os.path.isfile(path) and name not in ("key", "lock"):
                    take(path)
        v = a.ask("POST", "/v1/audit/verify")
        r = mine.command("audit", "verify", "--dir", mine.audit_dir)
    finally:
        os.kill(logger, signal.SIGCONT)
    a.close()
    t.eq(r.returncode, 0, "the log that stands there now is good by the key beside it") or t.diag(r.stdout + r.stderr)
    t.eq((v["ok"], v.get("problem", {}).get("file")), (False, "key.pub"),
         "a key that is not the running logger's is a problem")
    mine.stop()


def inside(t, s, port):
    """Nothing in a sandbox gets there, though it has a loopback and the name of ours."""
    s.d.save()
    r = s.d.command("run", "-c", s.d.conf, "--policy", "coder", "--", "/bin/sh", "-c",
                    "curl -s -m 5 -o /dev/null -w '%%{http_code}\\n' http://127.0.0.1:%d/; "
                    "curl -s -m 5 -o /dev/null -w '%%{http_code}\\n' -x $https_proxy -p "
                    "http://127.0.0.1:%d/" % (port, port), timeout=60)
    if "cannot start" in r.stderr:
        t.skip("from inside a sandbox", r.stderr.strip()[:200])
        return
    t.ok(r.stdout.split() and "200" not in r.stdout.split(), "a sandbox does not get there",
         r.stdout, r.stderr)


def found(s, kind, *more):
    """Records of that kind, those of closed files too."""
    r = s.d.command("audit", "query", "--json", "--kind", kind, *more, s.d.audit_dir)
    return [json.loads(x) for x in r.stdout.splitlines()]


class Page:
    """The script in Chromium, and what it asks us for."""

    def __init__(self, t, s, gate, port):
        self.t, self.s, self.gate, self.port = t, s, gate, port
        self.held = queue.Queue()
        self.box = None

    def link(self, _):
        return {"url": link(self.s)}

    def traffic(self, _):
        for _ in range(6):
            self.gate.get("api.github.com", "/user")
        for _ in range(3):
            self.gate.get("api.github.com", "/gists", method="POST", body=b"{}")
        self.gate.get("deps.example.com", "/upload", method="POST", body=b"x" * 200000)
        self.gate.get("api.github.com", "/user", "X-Api-Key: sk-ant-api03-%s\r\n" % ("x" * 40))
        r, st = self.gate.connect("paste.example.net:443")
        st.close()
        return {}

    def hold(self, _):
        def wait():
            r = self.gate.get("api.github.com", "/repos/acme/site/pulls/1/merge", method="PUT",
                              body=b"{}")
            self.held.put(r.code or "")
        threading.Thread(target=wait, daemon=True).start()
        return {}

    def await_held(self, _):
        code = self.held.get(timeout=20)
        return {"seen": any(q.path.endswith("/merge") for q in self.s.github.requests),
                "code": code}

    def sandbox(self, _):
        try:
            c = api.Api(self.s.d.socket)
            self.box = c.create(policy="coder", name="site-builder")["id"]
            c.sh(self.box, "curl -s https://api.github.com/user; "
                 "curl -s -X POST https://api.github.com/gists -d '{}'; "
                 "curl -s https://api.github.com/zen; curl -s -m 2 https://nowhere.example.org/; curl -s -m 2 http://192.0.2.1:9/; "
                 "curl -s -m 5 http://durward.internal/proposals -d "
                 "'{\"host\":\"evil.example\",\"reason\":\"<img src=x onerror=alert(1)>\"}'")
            c.close()
        except (api.Refused, OSError) as e:
            self.t.skip("a sandbox's timeline", "no sandbox can be made here: %s" % e)
        return {"id": self.box}

    def checkpoint(self, _):
        """One is written with each rotation."""
        before = len(found(self.s, "checkpoint"))
        self.s.d.daemon.send_signal(signal.SIGHUP)
        tap.wait_for(lambda: len(found(self.s, "checkpoint")) > before, 10, 0.1)
        return {}

    def state(self, arg):
        """Of a sandbox; "": it is gone. until: those it has come to."""
        c = api.Api(self.s.d.socket)
        try:
            for _ in range(50):
                state = c.show(arg["id"])["state"]
                if state in arg.get("until", [state])[:1]:
                    break
                time.sleep(0.1)
            return {"state": state}
        except api.Refused:
            return {"state": ""}
        finally:
            c.close()

    def write(self, arg):
        r = self.s.d.command("proposals", "accept", "--write", "-c", self.s.d.conf, arg["id"],
                             "--socket", self.s.d.socket)
        r = r if r.returncode else self.s.d.command(
            "explain", "-c", self.s.d.conf, "--policy", "coder", "GET",
            "https://api.github.com/zen/x")
        if r.returncode:
            self.t.diag(r.stdout + r.stderr)
        return {"allowed": r.returncode == 0}

    def accept(self, _):
        """The open suppression, by the command."""
        c = api.Api(self.s.d.socket)
        one = [x["id"] for x in c.ask("GET", "/v1/suppressions")["suppressions"] if x["state"] == "open"][0]
        c.close()
        r = self.s.d.command("suppressions", "accept", one, "--socket", self.s.d.socket)
        if r.returncode:
            self.t.diag(r.stdout + r.stderr)
        return {"id": one}

    def token(self, arg):
        """A request of a remote sandbox, which is refused; with which code."""
        if not arg:
            c = api.Api(self.s.d.socket)
            arg = {"proxy": c.ask("POST", "/v1/identities", {"policy": "hosted"})["proxy"]}
            c.close()
        r = subprocess.run(["curl", "-s", "-m", "5", "-o", "/dev/null", "-D", "-", "-x", arg["proxy"],
                            "https://from-a-token.example/"], stdout=subprocess.PIPE, timeout=20)
        said = [x.split()[1] for x in r.stdout.decode().splitlines()
                if x.lower().startswith("durward-denied:")]
        return dict(arg, code=said[0] if said else r.stdout.decode())

    def verify(self, arg):
        r = self.s.d.command("audit", "verify", "--case", arg["file"], "--key",
                             os.path.join(self.s.d.audit_dir, "key.pub"))
        return {"status": r.returncode, "said": r.stdout + r.stderr}

    def spoil(self, _):
        """One byte in the middle of the oldest file, which is closed."""
        folder = self.s.d.audit_dir
        name = sorted(x for x in os.listdir(folder) if x.endswith((".jsonl", ".jsonl.zst")))[0]
        self.spoilt = os.path.join(folder, name)
        self.flip()
        return {"file": name}

    def mend(self, _):
        self.flip()
        return {}

    def flip(self):
        with open(self.spoilt, "r+b") as f:
            at = os.path.getsize(self.spoilt) // 2
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1]))

    def run(self, node, modules, chromium, folder):
        home = tempfile.mkdtemp(prefix="durward-")  # the browser's socket in it has a path of 107 bytes
        self.t.cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
        p = subprocess.Popen([node, SCRIPT, modules, chromium, folder,
                              "http://127.0.0.1:%d" % self.port], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, preexec_fn=tap.die_with_parent,
                             env=dict(os.environ, HOME=home, XDG_CONFIG_HOME=home,
                                      XDG_CACHE_HOME=home, TMPDIR=home))
        self.t.cleanup(lambda: tap.stop(p))
        wishes = {"link": self.link, "traffic": self.traffic, "hold": self.hold,
                  "held": self.await_held, "sandbox": self.sandbox, "checkpoint": self.checkpoint,
                  "spoil": self.spoil, "mend": self.mend, "state": self.state, "write": self.write,
                  "token": self.token, "verify": self.verify,
                  "accept": self.accept}
        for line in p.stdout:
            v = json.loads(line)
            if "ok" in v:
                self.t.ok(v["ok"], v["what"], *v["diag"])
            elif "do" in v:
                p.stdin.write((json.dumps(wishes[v["do"]](v.get("arg"))) + "\n").encode())
                p.stdin.flush()
        p.stdin.close()
        self.t.eq(p.wait(20), 0, "the browser ended")


def main(t):
    t.part(replaced, t)
    s = scene.Scene(t)
    s.rule(ask="api.github.com/repos/acme/*/pulls/*/merge", methods=["PUT"],
           **{"with": {"bearer": "github"}})
    port = nginx.free_port()
    s.d.listen.append({"console": "127.0.0.1:%d" % port})
    address = s.listener()
    s.listener(policy=None)
    s.d.policies["hosted"] = dict(s.d.policies["coder"])
    s.d.serve()
    t.part(listeners, t, s, port)
    t.part(inside, t, s, port)
    chromium, node = shutil.which("chromium"), shutil.which("node")
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not chromium or not node or not all(
            os.path.isdir(os.path.join(modules, x)) for x in ("playwright-core", "axe-core")):
        t.skip("the page in a browser", "chromium, node, playwright-core or axe-core is not there")
    else:
        folder = os.environ.get("TEST_ARTIFACTS")
        folder = os.path.join(folder, "console") if folder else t.mkdir("shots")
        os.makedirs(folder, exist_ok=True)
        t.part(Page(t, s, s.gate(address), port).run, node, modules, chromium, folder)
        asked = found(s, "lifecycle", "--text", "console_asked")
        t.ok({x["detail"].split()[0] for x in asked} == {"POST", "DELETE"}, "what the console did is on record", str(asked))
        shots = [x for x in os.listdir(folder) if x.endswith(".png")]
        t.ok(len(shots) >= 8, "%d screenshots" % len(shots))
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=420)
