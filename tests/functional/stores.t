#!/usr/bin/python3 -B
"""C11: where secrets are kept: files that are watched, systemd credentials, mounted Kubernetes Secrets, the Secret
Service. A new value counts for the next request, on a connection that never saw the old one."""
import os
import shutil
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

API = "api.example.com"


class Run:
    def __init__(self, t):
        self.t, self.s, self.out = t, scene.Scene(t), []
        self.hold, self.held = threading.Event(), threading.Event()
        self.s.rules[:] = []
        self.api = self.s.add(API, self.answer)
        for name in ("watched", "long", "mounted", "credential", "ring", "locked"):
            self.s.rule(allow="%s/%s/**" % (API, name), **{"with": {"bearer": name}})

    def answer(self, req, conn):
        if "/hold" in req.path:
            self.held.set()
            self.hold.wait(20)
        conn.reply(req, 200, "ok", kind="text/plain")

    def new(self, name):
        value = scan.canary(name + "-").decode()
        self.s.scanner.add(name, value.encode())
        return value

    def get(self, name, path=""):
        status, out, err = self.box.sh("curl -sS -w ' %%{http_code}' https://%s/%s/%s" % (
            API, name, path))
        self.out += [out, err]
        return int(out.split()[-1] if out.split() else 0), out

    def sent(self):
        """What the last request carried, and on which connection."""
        return self.api.requests[-1].get("authorization"), self.api.requests[-1].conn_id


def put(path, value, mode=0o600):
    """As an editor does: a new file in place of the old one."""
    with open(path + ".new", "w") as f:
        os.fchmod(f.fileno(), mode)
        f.write(value + "\n")
    os.rename(path + ".new", path)


def project(folder, number, **values):
    """As the kubelet does: a new directory, then ..data points to it."""
    real = os.path.join(folder, "..2026_%d" % number)
    os.makedirs(real, mode=0o755)
    for key, value in values.items():
        put(os.path.join(real, key), value, 0o400)
        if number == 1:
            os.symlink("..data/" + key, os.path.join(folder, key))
    old = os.path.join(folder, "..data")
    before = os.readlink(old) if number > 1 else None
    os.symlink(os.path.basename(real), old + "_tmp")
    os.rename(old + "_tmp", old)
    if before:
        shutil.rmtree(os.path.join(folder, before))


def configure(t, r):
    d = r.s.d
    r.first = {k: r.new(k) for k in ("watched", "long", "mounted", "credential", "ring")}
    d.secret("watched", r.first["watched"])
    d.secret("long", r.first["long"], ttl="1h")
    r.mount = t.mkdir("mount")
    project(r.mount, 1, token=r.first["mounted"], other="x")
    d.secrets["mounted"] = {"kubernetes": {"path": r.mount, "key": "token"}, "ttl": "1h"}
    r.credentials = t.mkdir("credentials", 0o700)
    put(os.path.join(r.credentials, "api"), r.first["credential"], 0o400)
    d.secrets["credential"] = {"systemd": "api"}
    d.env["CREDENTIALS_DIRECTORY"] = r.credentials
    for name in ("ring", "locked"):
        d.secrets[name] = {"secret_service": {"service": "durward-test", "account": name}}
    tools = ("dbus-run-session", "gnome-keyring-daemon", "secret-tool")
    r.ring = all(shutil.which(x) for x in tools)
    if r.ring:
        d.env["GNOME_KEYRING_VALUE"] = r.first["ring"]
        d.prefix = ["dbus-run-session", "--", "/bin/sh", "-c", (
            "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 && "
            "printf %s \"$GNOME_KEYRING_VALUE\" | secret-tool store --label=x service durward-test "
            "account ring && unset GNOME_KEYRING_VALUE && exec \"$@\""), "sh"]


def first_values(t, r):
    names = list(r.first)
    if not r.ring:
        names.remove("ring")
        t.skip("the Secret Service", "gnome-keyring, dbus-run-session or secret-tool is not there")
    for name in names:
        code, out = r.get(name)
        t.ok(code == 200 and r.sent()[0] == "Bearer " + r.first[name], "a value: " + name, out)
    if r.ring:
        t.eq(r.get("locked")[0], 503, "what the keyring does not have: 503")


def changes(t, r):
    """Each the very next request; a `ttl` of an hour does not hold it up."""
    conf = os.path.join(r.s.d.dir, "conf", "secret-")
    number = [1]

    def swap(value):
        number[0] += 1
        project(r.mount, number[0], token=value, other="x")
    ways = {"watched": lambda v: put(conf + "watched", v), "long": lambda v: put(conf + "long", v),
            "mounted": swap,
            "credential": lambda v: put(os.path.join(r.credentials, "api"), v, 0o400)}
    for name, way in ways.items():
        bad, same = [], []
        for _ in range(5):
            r.get(name)
            r.get(name)
            before = r.sent()[1]
            value = r.new(name)
            way(value)
            tap.wait_for(lambda: False, 0.05)   # the kernel's event, not a period of ours
            code, out = r.get(name)
            if code != 200 or r.sent()[0] != "Bearer " + value:
                bad.append("%s: %s" % (out, "another value" if code == 200 else ""))
            if r.sent()[1] == before:
                same.append(str(before))
        t.ok(not bad, "the next request has the new value: " + name, *bad)
        t.ok(not same, "on a new connection: " + name, *same)


def under_way(t, r):
    """A connection that is in use while the value changes is not taken again."""
    path = os.path.join(r.s.d.dir, "conf", "secret-long")
    got = []
    thread = threading.Thread(target=lambda: got.append(r.s.d.test and r.get("long", "hold")))
    thread.start()
    t.ok(r.held.wait(10), "a request is under way")
    used, value = r.sent()[1], r.new("long")
    put(path, value)
    tap.wait_for(lambda: False, 0.1)
    r.hold.set()
    thread.join(20)
    t.eq(got and got[0][0], 200, "it ends well with the old value")
    code, _ = r.get("long")
    t.ok(code == 200 and r.sent()[0] == "Bearer " + value and r.sent()[1] != used,
         "the next one has the new value on another connection")


def broken(t, r):
    """Gone, or open to others: 503 for its rules only, and back by itself."""
    path = os.path.join(r.s.d.dir, "conf", "secret-long")
    os.chmod(path, 0o644)
    tap.wait_for(lambda: False, 0.05)
    t.eq(r.get("long")[0], 503, "a file that was opened to others: 503 at once")
    t.eq(r.get("watched")[0], 200, "the others go on")
    os.chmod(path, 0o600)
    tap.wait_for(lambda: False, 0.05)
    t.eq(r.get("long")[0], 200, "and back as soon as it is right again")
    os.unlink(path)
    tap.wait_for(lambda: False, 0.05)
    t.eq(r.get("long")[0], 503, "a file that is gone: 503")
    value = r.new("long")
    put(path, value)
    tap.wait_for(lambda: False, 0.05)
    code, _ = r.get("long")
    t.ok(code == 200 and r.sent()[0] == "Bearer " + value, "and back with the new one")


def main(t):
    r = Run(t)
    configure(t, r)
    r.box = durward.Sandbox(r.s.d)
    first_values(t, r)
    changes(t, r)
    under_way(t, r)
    broken(t, r)
    scan.scan_sandbox(t, r.box, r.s.scanner)
    r.out.append(r.box.close()[1])
    r.s.clean(r.out, "stores")


tap.run(main, timeout=120)
