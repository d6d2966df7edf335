#!/usr/bin/python3 -B
"""Sandboxes that sleep: paused by the host's freezer, stopped with their files kept, resumed by hand
and by whoever needs them; on an image; and SIGKILLs of the controller, the builder and the whole
daemon while they sleep."""
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, rootfs, scene, tap  # noqa: E402

BASE = "/v1/sandboxes/%s/%s"
BYTES = bytes(range(256)) * 40


def role_pid(d, role):
    return [pid for pid, r in d.roles() if r == role][0]


def steady_controller(d):
    """One that dies within a second of its start, often, is given up."""
    pid = role_pid(d, "controller")
    with open("/proc/%d/stat" % pid) as f:
        start = int(f.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    tap.wait_for(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) - start > 1.1, 3, 0.05)
    return pid


def kill_controller(d):
    os.kill(steady_controller(d), signal.SIGKILL)


def under_way(d, seconds, method, path):
    """SIGKILL of the controller so long after it was asked for something."""
    pid = steady_controller(d)
    k = api.Api(d.socket, timeout=5)
    k.conn.request(method, path, "", {})
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    k.close()


def frozen(sid):
    """Do its processes stand still, as the kernel says?"""
    for path in ("/sys/fs/cgroup/freezer/durward-%s/freezer.state" % sid,):
        if os.path.exists(path):
            with open(path) as f:
                return f.read().strip() == "FROZEN"
    groups = [p for p, _, names in os.walk("/sys/fs/cgroup") if p.endswith("/durward-" + sid) and
              "cgroup.events" in names]
    if not groups:
        return None
    with open(os.path.join(groups[0], "cgroup.events")) as f:
        return "frozen 1" in f.read()


def verb(c, sid, what):
    return c.ask("POST", BASE % (sid, what))


def ticks(c, sid):
    return int(c.read(sid, "/workspace/ticks") or b"0")


def counter(c, sid):
    """Something that counts in the background."""
    c.sh(sid, "(i=0; while :; do i=$((i+1)); echo $i >ticks.new; mv ticks.new ticks; sleep 0.05; "
              "done) >/dev/null 2>&1 &")
    tap.wait_for(lambda: api.refused(ticks, c, sid) is None and ticks(c, sid) > 1, 5)


def pausing(t, c):
    box = c.create()["id"]
    counter(c, box)
    f = c.frames(box, command="sleep 0.3; echo over")
    f.receive()
    shown = verb(c, box, "pause")
    t.eq((shown["state"], shown["idle_expires_at"]), ("paused", None), "pause")
    t.ok(tap.wait_for(lambda: frozen(box), 5), "its processes are frozen")
    t.eq(verb(c, box, "pause")["state"], "paused", "pause is idempotent")
    t.eq([s["id"] for s in c.list("?state=paused")["sandboxes"]], [box], "it can be listed by it")
    t.eq((verb(c, box, "resume")["state"], frozen(box)), ("running", False), "resume")
    t.eq(verb(c, box, "resume")["state"], "running", "resume is idempotent")
    t.eq(f.finish()[0], b"over\n", "a command that ran goes on")
    f.close()
    c.sh(box, "mkdir still; echo x >still/x")  # tar complains of files that change under it
    before = ticks(c, box)
    t.ok(tap.wait_for(lambda: ticks(c, box) > before, 5), "so does what ran in the background")
    for name, use in (("a command", lambda: c.sh(box, "echo x")[1] == b"x\n"),
                      ("a file read", lambda: ticks(c, box) >= before),
                      ("a file written", lambda: c.write(box, "/workspace/b", BYTES) == b""),
                      ("a list", lambda: c.entries(box, "/workspace")["entries"]),
                      ("a batch", lambda: c.batch(box, [{"op": "read", "path": "/workspace/b"}])),
                      ("an archive", lambda: c.tar(box, "/workspace/still"))):
        verb(c, box, "pause")
        t.ok(use() and c.show(box)["state"] == "running", "%s resumes it" % name)
    verb(c, box, "pause")
    c.delete(box)
    t.eq(api.refused(c.show, box), (404, "sandbox_not_found"), "a paused one can be deleted")
    box = c.create(auto_resume=False)["id"]
    verb(c, box, "pause")
    t.eq(api.refused(c.exec, box, "true"), (409, "not_running"), "without auto_resume it stays so")
    verb(c, box, "resume")
    t.eq(c.sh(box, "echo on"), (0, b"on\n"), "until it is resumed")
    c.delete(box)


def stopping(t, c):
    box = c.create(labels={"a": "1"}, env={"E": "v"})["id"]
    counter(c, box)
    c.write(box, "/workspace/b", BYTES)
    c.sh(box, "mkdir -p /opt/d; echo x >/opt/d/f; ln -s f /opt/d/l; chmod 640 /opt/d/f; echo t >/tmp/t")
    first = c.sh(box, "echo $GITHUB_TOKEN")[1]
    t.eq((verb(c, box, "stop")["state"], verb(c, box, "stop")["state"]), ("stopped", "stopped"),
         "stop, and again")
    t.ok(not [p for p in tap.descendants() if box in p[1]], "nothing of it runs")
    t.eq(verb(c, box, "resume")["state"], "running", "resume makes it anew")
    t.eq(c.read(box, "/workspace/b"), BYTES, "8-bit files are kept")
    t.eq(c.sh(box, "cat /opt/d/l; stat -c %a /opt/d/f; ls /tmp; echo $E; ps ax | grep -c '[t]icks'"),
         (1, b"x\n640\nv\n0\n"), "modes, links, environment too; /tmp and processes are not")
    t.eq(c.sh(box, "echo $GITHUB_TOKEN")[1], first, "it is the same sandbox: the same placeholders")
    verb(c, box, "stop")
    t.eq(c.sh(box, "cat /opt/d/f"), (0, b"x\n"), "a command resumes a stopped one")
    verb(c, box, "stop")
    again = c.create(labels={"a": "1"}, get_or_create=True)
    t.eq((again["id"], again["state"]), (box, "running"), "so does get-or-create by its labels")
    c.delete(box)
    small = c.create(policy="small")
    t.eq(small["kept"], False, "with a limit on files they are in memory")
    r = c.sh(small["id"], "head -c 40000000 /dev/zero >/workspace/big; echo $?")[1]
    t.ok(b"No space" in r, "which holds", r)
    verb(c, small["id"], "stop")
    t.eq(api.refused(c.exec, small["id"], "true"), (409, "not_running"),
         "such a one is not made again without them")
    c.delete(small["id"])


def idling(t, c):
    pause, stop = c.create(idle_ttl=1, on_idle="pause")["id"], c.create(idle_ttl=1, on_idle="stop")["id"]
    t.ok(tap.wait_for(lambda: c.show(pause)["state"] == "paused", 8, 0.1), "idle: paused")
    t.ok(tap.wait_for(lambda: c.show(stop)["state"] == "stopped", 8, 0.1), "idle: stopped")
    t.eq(c.show(stop)["reason"], "it was idle too long", "and why")
    t.ok(c.sh(pause, "true")[0] == 0 and c.sh(stop, "true")[0] == 0, "both come back when used")
    t.ok(tap.wait_for(lambda: c.show(pause)["state"] == "paused", 8, 0.1), "and sleep again")
    t.eq(api.refused(c.create, on_idle="burn"), (400, "bad_request"), "other words are refused")
    for sid in (pause, stop):
        c.delete(sid)


def soft(t, d, c, freezer):
    """A soft time to live ends a stretch of running, whatever goes on in it; its files stay, and what asks for it resumes it."""
    box = c.create(soft_ttl=2)
    t.ok(box["on_soft_ttl"] == "stop" and 0 <= box["soft_expires_at"] - time.time() <= 3, "a soft time to live", box)
    sid = box["id"]
    c.write(sid, "/workspace/kept", BYTES)
    f = c.frames(sid, command="sleep 60", timeout=100)
    t.ok(tap.wait_for(lambda: c.show(sid)["state"] == "stopped", 10, 0.1), "is over though a command runs: stopped")
    f.close()
    row = c.show(sid)
    t.eq((row["reason"], row["soft_expires_at"]), ("its soft time to live is over", None), "and why")
    t.eq(c.read(sid, "/workspace/kept"), BYTES, "what asks for a file resumes it, above its files")
    t.ok(c.show(sid)["soft_expires_at"] - time.time() > 0, "and its time begins anew")
    c.ask("PATCH", "/v1/sandboxes/" + sid, {"soft_ttl": 0})
    t.eq(c.show(sid)["soft_expires_at"], None, "0 is never")
    c.ask("PATCH", "/v1/sandboxes/" + sid, {"soft_ttl": 6})
    ends = c.show(sid)["soft_expires_at"]
    c.close()
    kill_controller(d)
    t.ok(tap.wait_for(lambda: state_of(c, sid) == "running", 10, 0.1), "a controller's death and another's start")
    t.ok(abs(c.show(sid)["soft_expires_at"] - ends) <= 1, "lengthen it by nothing", c.show(sid), ends)
    t.ok(tap.wait_for(lambda: c.show(sid)["state"] == "stopped", 12, 0.1), "it holds")
    t.eq([api.refused(c.create, policy="small", soft_ttl=9), api.refused(c.create, soft_ttl=9, on_soft_ttl="delete")],
         [(400, "bad_request")] * 2, "stopping is refused where it would lose the files, and deleting is no word")
    if freezer:
        other = c.create(policy="small", soft_ttl=2, on_soft_ttl="pause")["id"]
        t.ok(tap.wait_for(lambda: c.show(other)["state"] == "paused", 10, 0.1), "paused then")
        t.eq(c.sh(other, "echo again"), (0, b"again\n"), "and resumed by a command")
        c.delete(other)
    c.delete(sid)


def image(t, d, c):
    top = rootfs.make(t.mkdir("rootfs"))
    r = d.command("image", "import", "-c", d.conf, top, "small")
    t.eq(r.returncode, 0, "an image is imported") or t.diag(r.stderr)
    box = c.create(image="small")
    t.eq(box["image"], "small", "a sandbox of it")
    sid = box["id"]
    t.eq(c.sh(sid, "id -u; pwd; cat /etc/passwd | head -2; ls /usr/bin | head -1; echo y >/etc/new"),
         (0, b"0\n/workspace\nroot:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/sh\ncat\n"),
         "has its files, and root inside")
    c.write(sid, "/workspace/b", BYTES)
    verb(c, sid, "stop")
    r = d.command("image", "rm", "-c", d.conf, "small")
    t.ok(r.returncode == 1 and "in use" in r.stderr, "which stays while a stopped one needs it", r.stderr)
    t.eq((c.sh(sid, "cat /etc/new"), c.read(sid, "/workspace/b")), ((0, b"y\n"), BYTES),
         "it comes back above the image")
    c.delete(sid)
    t.eq(d.command("image", "rm", "-c", d.conf, "small").returncode, 0, "and goes")
    status, _, data = c.raw("POST", "/v1/sandboxes", json.dumps({"image": "none", "policy": "coder"}))
    t.ok(status == 404 and b"no image 'none'" in data, "an image that is not there", data)
    t.eq(api.refused(c.create, image="../x"), (400, "bad_request"), "or is no name")
    t.ok(tap.wait_for(lambda: not c.list("?limit=1000")["sandboxes"], 5), "leaves no row")


def state_of(c, sid):
    try:
        return c.show(sid)["state"]
    except (OSError, api.Refused, ValueError, EOFError):
        c.close()
        return None


def deaths(t, d, c, freezer):
    asleep, still = c.create()["id"], c.create(idle_ttl=0)["id"]
    counter(c, asleep)
    c.write(still, "/workspace/b", BYTES)
    verb(c, still, "stop")
    if freezer:
        verb(c, asleep, "pause")
        for _ in range(3):
            kill_controller(d)
            c.close()
            t.ok(tap.wait_for(lambda: state_of(c, asleep) == "paused" and frozen(asleep), 30, 0.05),
                 "the controller killed: a paused one is taken over, and paused again",
                 state_of(c, asleep))
        before = ticks(c, asleep)
        t.ok(tap.wait_for(lambda: ticks(c, asleep) > before, 5), "which goes on where it was")
        for wait in (0, 0.004, 0.02):
            under_way(d, wait, "POST", BASE % (asleep, "pause"))
            c.close()
            t.ok(tap.wait_for(lambda: state_of(c, asleep) in ("running", "paused"), 10, 0.05) and
                 c.sh(asleep, "echo on") == (0, b"on\n"), "killed while it pauses one: it can be used")
        verb(c, asleep, "pause")
    os.kill(role_pid(d, "builder"), signal.SIGKILL)
    t.ok(tap.wait_for(lambda: state_of(c, asleep) == "stopped", 10, 0.05),
         "the builder's death ends what runs and what is paused", state_of(c, asleep))
    t.ok(tap.wait_for(lambda: not [p for p in tap.descendants() if "/run/durward/init" in p[1]], 5),
         "no process of it is left")
    t.ok(tap.wait_for(lambda: api.refused(c.sh, asleep, "true") is None, 5) and
         ticks(c, asleep) > 1, "its files are, and it can be resumed")
    if freezer:
        verb(c, asleep, "pause")
    d.daemon.kill()
    d.daemon.wait()
    c.close()
    d.serve(save=False)
    t.ok(tap.wait_for(lambda: (state_of(c, asleep), state_of(c, still)) == ("stopped", "stopped"), 10, 0.05),
         "the whole daemon killed: both are stopped", state_of(c, asleep), state_of(c, still))
    t.ok(tap.wait_for(lambda: not [p for p in tap.descendants() if "/run/durward/init" in p[1]], 5),
         "and nothing of them runs", *["%d %s" % p for p in tap.descendants()])
    t.eq((c.read(still, "/workspace/b"), ticks(c, asleep) > 1), (BYTES, True), "their files are there")
    for n in range(3):
        d.daemon.kill()
        d.daemon.wait()
        c.close()
        d.serve(save=False)
        t.eq(api.refused(c.sh, still, "true"), None, "killed again: who asks at once is served (%d)" % n)
    for wait in (0, 0.003, 0.01, 0.03, 0.06, 0.1):
        sid = c.create(labels={"w": str(wait)})["id"]
        c.sh(sid, "for i in $(seq 300); do echo $i >f$i; done")
        under_way(d, wait, "DELETE", "/v1/sandboxes/" + sid)
        c.close()
        t.ok(tap.wait_for(lambda: state_of(c, still) == "running", 10, 0.05), "killed while one is deleted")
    for left in c.list("?limit=1000")["sandboxes"]:  # those whose DELETE the killed one never read, too
        c.delete(left["id"])
    layers = os.path.join(d.dir, "state", "sandboxes")
    t.ok(tap.wait_for(lambda: not c.list()["sandboxes"] and not os.listdir(layers), 10),
         "no row and no file is left", os.listdir(layers), json.dumps(c.list()["sandboxes"]))


def cli(t, d):
    def run(*args):
        return d.command("sandbox", args[0], "--socket", d.socket, *args[1:])
    r = run("create", "--policy", "coder", "--on-idle", "stop", "--no-auto-resume")
    sid = r.stdout.strip()
    t.ok(re.fullmatch("sb-[a-z2-7]{26}", sid), "sandbox create", r.stderr)
    r = run("stop", "--json", sid)
    t.eq(json.loads(r.stdout)["state"], "stopped", "sandbox stop --json") or t.diag(r.stderr)
    r = run("exec", sid, "true")
    t.ok(r.returncode == 125 and "stopped" in r.stderr, "--no-auto-resume", r.stderr)
    r = run("resume", sid)
    t.ok("running" in r.stdout and "host" in r.stdout, "sandbox resume", r.stdout, r.stderr)
    t.eq(run("rm", sid).returncode, 0, "sandbox rm")


def main(t):
    s = scene.Scene(t)
    s.d.policies["small"] = {"rules": [], "sandbox": {"disk": "32MiB"}}
    s.d.serve()
    c = api.Api(s.d.socket)
    plain = c.create
    c.create = lambda **kw: plain(**dict({"policy": "coder"}, **kw))
    first = c.first()
    why = api.refused(verb, c, first, "pause")
    c.delete(first)
    t.part(stopping, t, c)
    t.part(image, t, s.d, c)
    t.part(cli, t, s.d)
    if why == (501, "unsupported"):
        t.skip("pausing", "there is no cgroup freezer here that we may use")
    else:
        t.part(pausing, t, c)
        t.part(idling, t, c)
    t.part(soft, t, s.d, c, why is None)
    t.part(deaths, t, s.d, c, why is None)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=150)
