#!/usr/bin/python3 -B
"""Sandboxes under gVisor: the gate is the only way out, credentials are injected; commands, terminals, files, watches,
ports, volumes, snapshots, pauses and limits as with bubblewrap; what each wall holds; deaths that leave nothing."""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, gvisor, scene, tap, usual, walls  # noqa: E402
from harness.terminal import Terminal  # noqa: E402

BOX = "/v1/sandboxes/%s/%s"


def verb(c, box, what, body=None):
    return c.ask("POST", BOX % (box, what), body)


def keepers():
    found = []
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/comm" % pid) as f:
                if f.read().strip() == "durward-keeper":
                    found.append(pid)
        except OSError:
            pass
    return found


def ours():
    """What of gVisor's runs."""
    return [name for _, name in tap.descendants() if "runsc" in name.split(" ")[0]] + keepers()


def way_out(t, s, c):
    box = c.create(policy="coder", env={"COLOUR": "blue"}, publish=[{"port": 8000}])["id"]
    out = usual.way_out(t, c, box, "gvisor")

    def sh(command):
        return c.sh(box, command, timeout=30)[1].decode("utf-8", "replace")
    t.eq(sh("dmesg 2>/dev/null | head -1; cat /proc/version | cut -c1-19; echo /sys/*; grep -c : /proc/net/dev"),
         "Linux version 4.4.0\n/sys/*\n1\n", "the kernel is gVisor's; no /sys; no interface but lo")
    other = c.create(policy="other", backend="gvisor")["id"]
    placeholder = re.search(rb"GITHUB_TOKEN=(\S+)", out).group(1).decode()
    _, answer = c.sh(other, "curl -s -i -H 'Authorization: Bearer %s' https://deps.example.com/" % placeholder)
    t.has(answer.decode(), "cross_sandbox", "another's placeholder is worth nothing")
    c.delete(other)
    return box, [out]


def commands(t, d, c, box):
    usual.streams(t, c, box)
    r = c.exec(box, "kill -TERM $$")
    t.eq(r["exit_code"], 143, "a signal's status")
    t.eq([x["name"] for x in c.entries(box, "/workspace/deep/er")["entries"]], ["blob"], "is listed")
    t.eq(c.sh(box, "sha256sum <deep/er/blob; id -u; pwd; echo big | tee /dev/stdout | wc -c")[0], 0, "and is what a command sees")
    tar = c.tar(box, "/workspace/deep")
    c.tar(box, "/workspace/copy", tar)
    t.eq(c.read(box, "/workspace/copy/er/blob"), c.read(box, "/workspace/deep/er/blob"), "an archive goes out and in")
    c.remove(box, "/workspace/deep", recursive="true")
    t.eq(c.sh(box, "cd /workspace; echo *"), (0, b"copy\n"), "and files are removed")
    usual.long_output(t, c, box, 3000000)


def terminal(t, d, c, box):
    x = usual.terminal(t, d, box)
    x.size(41, 97)
    os.kill(x.pid, signal.SIGWINCH)
    t.ok(tap.wait_for(lambda: (x.type("stty size\n"), x.see("41 97", 1))[1], 8, 0.2), "a change of its size arrives", x.out)
    x.type("seq 1 20000; exit 3\n")
    t.ok(x.see("\n20000", 20), "a long output arrives whole", x.out[-300:])
    t.eq(x.wait(), 3, "and the status")


def watches(t, c, box):
    sock, held = c.upgrade(BOX % (box, "files/watch"), "durward-watch", {})
    sock.settimeout(20)
    f = sock.makefile("rb")
    t.has((held + f.readline()).decode() if b"\n" not in held else held.decode(), "ready", "a watch begins")
    c.sh(box, "mkdir -p w/deep && echo 1 >w/deep/file && touch last")
    seen = []
    while not seen or seen[-1].get("path") != "last":
        seen.append(json.loads(f.readline()))
    t.ok([x for x in seen if x["path"] == "w/deep/file"], "and tells of files at any depth", seen)
    sock.close()


def ports(t, c, box):
    c.sh(box, "cat >s.py <<'E'\nimport http.server\nhttp.server.test(http.server.SimpleHTTPRequestHandler, port=8000, "
              "bind='127.0.0.1')\nE\n(python3 s.py >/dev/null 2>&1 &)")
    s = tap.wait_for(lambda: c.sh(box, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/", timeout=20)[1] == b"200", 20, 0.2)
    t.ok(s, "a server inside serves programs inside")
    at = c.show(box)["published"][0]["address"]
    r = subprocess.run(["curl", "-s", "-m", "10", "http://%s/s.py" % at], capture_output=True, text=True)
    t.has(r.stdout, "http.server", "and, by a published port, who is outside")


def life(t, c):
    """Kept files: stop and resume, pause, snapshot, another wall; its end by time."""
    box = c.create(policy="coder")["id"]
    c.sh(box, "echo kept >k; echo x >/opt/there")
    usual.pauses(t, c, box)
    c.delete(usual.snapshots(t, c, box, "coder", "gvisor"))
    verb(c, box, "stop")
    verb(c, box, "resume")
    t.eq(c.sh(box, "cat k /opt/there"), (0, b"kept\nx\n"), "stopped and resumed, its files are there")
    c.delete(box)
    box = c.create(policy="coder", ttl=2)["id"]
    t.ok(tap.wait_for(lambda: api.refused(c.show, box), 15, 0.1), "its time to live ends it")


def volumes(t, c):
    box = usual.volumes(t, c, "coder", "gvisor")
    if box:
        c.delete(box)
        c.ask("DELETE", "/v1/volumes/work")


def limits(t, c):
    box = c.create(policy="small")["id"]
    _, out = c.sh(box, "dd if=/dev/zero of=/tmp/f bs=1M count=20 2>&1")
    t.ok(b"No space" in out, "disk", out)
    t.eq(c.sh(box, "ulimit -n"), (0, b"64\n"), "open files")
    code, out = c.sh(box, "x=0123456789abcdef; while :; do x=$x$x; done", timeout=40)
    t.ok(code not in (0, 124), "memory: whoever takes too much is ended", code, out[-200:])
    c.delete(box)


def by_hand(t, s):
    d = s.d
    t.write("d/work/story", "once")
    t.write("d/work/.netrc", "machine x password netrc-secret-0123456789")
    r = d.run(["sh", "-c", "cat story; cat .netrc; echo more >>story; id -u; pwd; exit 3"], ["--policy", "other", "--backend", "gvisor"],
              save=False, timeout=60)
    with open(os.path.join(d.work, "story")) as f:
        t.eq((r.returncode, r.stdout, f.read()), (3, "once0\n%s\n" % d.work, "oncemore\n"),
             "durward run: the directory is bound, its credential files are not seen") or t.diag(r.stderr)
    r = d.run(["cat"], ["--policy", "other", "--backend", "gvisor", "--no-bind"], save=False, stdin=b"in\n", timeout=60)
    t.eq((r.returncode, r.stdout), (0, "in\n"), "with input") or t.diag(r.stderr)
    r = subprocess.run([durward.program(), "run", "-c", d.conf, "--policy", "other", "--backend", "gvisor", "--no-bind", "--",
                        "wc", "-c"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=d.env, cwd=d.work, timeout=60)
    t.eq((r.returncode, r.stdout), (0, "0\n"), "with /dev/null") or t.diag(r.stderr)
    x = Terminal(t, [durward.program(), "run", "-c", d.conf, "--policy", "other", "--backend", "gvisor",
                     "--no-bind", "--", "/bin/sh", "-i"],
                 d.work, dict(d.env, TERM="xterm"), rows=30, cols=100)
    x.type("stty size; exit 4\n")
    t.ok(x.see("30 100") and x.wait() == 4, "and on a terminal", x.out)
    r = d.run(["true"], ["--policy", "nested", "--backend", "gvisor", "--no-bind"], save=False)
    t.ok(r.returncode == 125 and "no containers inside" in r.stderr, "nested: true is not gVisor's", r.stderr)


CONQUERED = r"""
import ctypes, os, sys
l = ctypes.CDLL(None, use_errno=True)
for fd in [os.open("/proc/%s/ns/%s" % (sys.argv[1], k), os.O_RDONLY) for k in ("user", "mnt")]:
    if l.setns(fd, 0) < 0:
        sys.exit("setns: %s" % os.strerror(ctypes.get_errno()))
os.chdir("/")
work = [at + sys.argv[2] for at in ("/sandbox", "/root") if os.path.exists(at + sys.argv[2] + "/.netrc")]
for at in [x.encode() for x in work]:
    gone = [l.umount2(at + b"/.netrc", 0), l.umount2(at + b"/.netrc", 2), l.umount2(at, 2), l.syscall(428, -100, at, 1)]
    gone += [l.mount(at, to, None, 4096, None) for to in (b"/tmp", b"/state", b"/proc")]
    gone += [l.mount(None, at[:-len(sys.argv[2])] + b"/usr", None, 4096 | 32, None)]
    print(all(x < 0 for x in gone), repr(open(at + b"/.netrc").read()))
"""


def conquered(t, d):
    """Who has taken over gVisor's processes has all rights in their namespaces, and no mask goes and nothing is written to."""
    if os.geteuid() != 0:
        t.skip("a conquered gVisor", "only root enters its namespaces")
        return
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "other", "--backend", "gvisor", "--", "sh", "-c", "echo up; read x"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=d.env, cwd=d.work)
    p.stdout.readline()
    mine = [pid for pid in gvisor.running() if os.path.exists("/proc/%d/root/sandbox%s/.netrc" % (pid, d.work)) or
            gvisor.name(pid).startswith("runsc-gofer")]
    said = [subprocess.run([sys.executable, "-c", CONQUERED, str(pid), d.work], capture_output=True, text=True) for pid in mine]
    t.ok(len(said) >= 2 and {r.stdout for r in said} <= {"True ''\n", ""} and [r for r in said if r.stdout],
         "who has taken over gVisor takes no mask away, and makes nothing writable", *[r.stdout + r.stderr for r in said])
    p.communicate(b"\n", timeout=30)


def deaths(t, d, c, box):
    t.ok(len(keepers()) == 1, "a keeper for the one sandbox", ours())
    os.kill(keepers()[0], signal.SIGKILL)
    t.ok(tap.wait_for(lambda: c.show(box)["state"] == "stopped", 10, 0.1), "its keeper's SIGKILL: it is stopped")
    t.ok(tap.wait_for(lambda: not ours(), 10, 0.1), "and nothing of it runs", ours())
    c.delete(box)
    box = c.create(policy="coder")["id"]
    c.sh(box, "(sleep 600 &) >/dev/null 2>&1")
    controller = [pid for pid, r in d.roles() if r == "controller"][0]
    os.kill(controller, signal.SIGKILL)
    c.close()
    t.ok(c.taken_over(box), "the controller's SIGKILL: it is taken over", d.diagnostics())
    t.eq(c.sh(box, "echo still"), (0, b"still\n"), "and goes on")
    c.close()
    d.daemon.kill()
    d.daemon.wait()
    t.ok(tap.wait_for(lambda: not ours(), 10, 0.1), "the daemon's SIGKILL leaves nothing", ours())
    d.serve(save=False)


def rights(pid):
    with open("/proc/%d/status" % pid) as f:
        s = dict(x.rstrip("\n").split(":\t", 1) for x in f if ":\t" in x)
    return "%s, %s, sees %s" % (
        "no capability" if int(s["CapEff"], 16) == 0 else "capabilities of its own namespace",
        "a filter" if s["Seccomp"] == "2" else "no filter", ", ".join(sorted(os.listdir("/proc/%d/root" % pid))[:4]))


def alone(pid):
    """Whose network and users it has."""
    return all(os.readlink("/proc/%d/ns/%s" % (pid, n)) != os.readlink("/proc/self/ns/" + n) for n in ("net", "user"))


def meets(t, c, box):
    """What a program inside meets, and what the host's kernel meets."""
    plain = c.create(policy="coder", backend="bwrap")["id"]
    walls.compare(t, "bwrap", walls.found(c, plain))
    walls.compare(t, "gvisor", walls.found(c, box))
    c.delete(plain)
    if os.geteuid() == 0:
        t.eq(rights(keepers()[0]).split(", ")[0], "no capability", "no capability of its keeper")
        mine = [p for p in gvisor.running() if gvisor.name(p).startswith(("runsc-gofer", "runsc-sandbox"))]
        t.ok(len(mine) == 2 and all("a filter" in rights(p) for p in mine) and all(map(alone, mine)),
             "gVisor's two processes have a filter and namespaces of their own", *map(rights, mine))
        t.ok(not [p for p in gvisor.running() if {"home", "root", "boot"} & set(os.listdir("/proc/%d/root" % p))],
             "and none of gVisor's sees a file of the host's but the sandbox's")


def doctor(t, d):
    r = d.command("doctor", "-c", d.conf, "--host", "--json")
    found = [x for x in json.loads(r.stdout)["findings"] if x["check"] == "gvisor"]
    t.ok(len(found) == 1 and found[0]["state"] in ("ok", "note") and gvisor.version() in found[0]["what"] and
         "platform" in found[0]["what"], "durward doctor finds runsc: its version and platform", r.stdout[-800:])


def main(t):
    why = gvisor.needed()
    if why:
        raise tap.Skip(why)
    s = scene.Scene(t)
    d = s.d
    d.policies["coder"]["sandbox"] = {"backend": "gvisor"}
    d.policy("other", [{"allow": scene.PLAIN}, {"allow": "http://" + scene.PLAIN}])
    d.policy("small", [])
    d.policies["small"]["sandbox"] = {"backend": "gvisor", "memory": "256MiB", "pids": 64, "disk": "8MiB", "files": 64}
    d.policy("nested", [])
    d.policies["nested"]["sandbox"] = {"nested": True}
    d.serve()
    c = api.Api(d.socket)
    box, outputs = way_out(t, s, c)
    t.part(commands, t, d, c, box)
    t.part(meets, t, c, box)
    t.part(terminal, t, d, c, box)
    t.part(watches, t, c, box)
    t.part(ports, t, c, box)
    t.part(volumes, t, c)
    t.part(limits, t, c)
    t.part(life, t, c)
    t.part(by_hand, t, s)
    t.part(conquered, t, d)
    t.part(doctor, t, d)
    t.part(deaths, t, d, c, box)
    s.clean(outputs)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=300)
