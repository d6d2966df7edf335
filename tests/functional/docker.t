#!/usr/bin/python3 -B
"""Sandboxes that are containers of a Docker Engine: the gate is the only way out, credentials are injected,
commands and files as with any backend, what images try, limits, deaths of every process, nothing left."""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, engine, scene, tap  # noqa: E402

IMAGE, EVIL = "durward-test:1", "localhost:5000/some/evil:1"
NOTHING = {"containers": [], "volumes": [], "mounts": [], "netns": [], "shims": []}
BASE = "/v1/sandboxes"


def role_pids(d, role):
    return [pid for pid, r in d.roles() if r == role]


def keepers(d):
    found = []
    for pid, _ in tap.descendants():
        try:
            with open("/proc/%d/comm" % pid) as f:
                if f.read().strip() == "durward-keeper":
                    found.append(pid)
        except OSError:
            pass
    return found


def left(e, d):
    """What there is of any sandbox: the engine's side, and ours."""
    n = e.traces()
    try:
        n["folders"] = os.listdir(os.path.join(d.dir, "state", "docker"))
    except FileNotFoundError:
        n["folders"] = []
    n["keepers"] = keepers(d)
    return n


def nothing(e, d, seconds=10):
    want = dict(NOTHING, folders=[], keepers=[])
    return tap.wait_for(lambda: left(e, d) == want, seconds, 0.1)


def shape(t, e, c):
    """What the engine is asked for, as the engine sees it."""
    box = c.create(policy="coder")["id"]
    rows = e.containers()
    t.eq([r["Names"] for r in rows], [["/durward-" + box]], "one container a sandbox")
    x = e.inspect(rows[0]["Id"])
    host = x["HostConfig"]
    t.eq((host["NetworkMode"], x["Config"].get("NetworkDisabled"), x["NetworkSettings"]["Networks"]),
         ("none", True, {}), "it has no network of the engine's")
    t.eq((host["Privileged"], host["CapDrop"], host["CapAdd"], host["ReadonlyRootfs"], host["SecurityOpt"],
          host["Binds"], host["Devices"], host["PidMode"], host["IpcMode"]),
         (False, ["ALL"], None, True, ["no-new-privileges"], None, None, "", "private"), "and no privilege")
    mounts = {m["Destination"]: m for m in x["Mounts"] if m["Type"] == "bind"}
    t.ok("/run/durward" in mounts and not [m for m in mounts.values() if m["RW"]],
         "nothing of the host's that can be written", json.dumps(x["Mounts"]))
    text = json.dumps(x)
    t.ok("GITHUB_TOKEN" not in text and "ghp_" not in text and "sk-" not in text,
         "the engine is told no credential, and no placeholder either")
    t.eq(c.sh(box, "cat /proc/1/cmdline | tr '\\0' ' '; id -u; cat /home.txt; pwd"),
         (0, b"/run/durward/init engine 0\nof the image\n/workspace\n"), "process 1 is ours, the rest the image's")
    with open("/proc/%d/environ" % x["State"]["Pid"], "rb") as f:
        t.ok(b"TOKEN" not in f.read(), "its environment has nothing to hide")
    t.eq(c.show(box)["state"], "running", "it is shown like any sandbox")
    c.delete(box)


def closed(t, s, c, box):
    """Nothing leaves but through the gate."""
    def sh(command):
        return c.sh(box, command, timeout=20)[1].decode("utf-8", "replace")
    t.eq(sh("ls /sys; cat /proc/net/dev | grep -c :; grep -v lo /proc/net/route | wc -l; cat /proc/net/unix | wc -l"),
         "1\n1\n1\n", "no interface but lo, no route, no unix socket of the host's, nothing of /sys")
    t.has(sh("curl -s -m 10 -i https://evil.example.net/ 2>&1; echo $?"), "6", "a name that no rule has is unknown")
    t.has(sh("curl -s -m 10 -i http://93.184.216.34/; curl -sk -m 10 -i https://169.254.169.254/"), "denied ",
          "an address is answered by the gate: denied")
    t.ok("200" not in sh("curl -s -m 10 -o /dev/null -w '%{http_code}\\n' http://169.254.169.254/latest/"),
         "also that of a cloud's metadata")
    t.has(sh("echo x | nc -u -w 1 1.1.1.1 443; echo $?; ping -c 1 -W 1 1.1.1.1 2>&1; echo $?"), "1\n",
          "no UDP, no ICMP")
    host = socket.socket()
    host.bind(("127.0.0.1", 0))
    host.listen()
    t.eq(sh("nc -w 2 127.0.0.1 %d </dev/null 2>/dev/null; echo $?" % host.getsockname()[1]), "1\n",
         "the host's loopback is another")
    host.close()
    t.eq(sh("nc -l -p 443 -w 1 2>&1 | grep -c 'denied\\|in use'; nc -l -p 53 -w 1 2>&1 | grep -c 'denied\\|in use'"),
         "1\n1\n", "nobody inside takes the gate's ports")
    t.eq(sh("unshare -U true 2>&1 | grep -c 'not permitted'; mount -t tmpfs x /mnt 2>&1 | grep -c . ; "
            "ip link set lo down 2>&1 | grep -c 'not permitted'; grep -c 'Seccomp:.2' /proc/self/status; "
            "grep Cap /proc/self/status | sort -u -k2 | wc -l"),
         "1\n1\n1\n1\n1\n", "no namespace, no mount, no capability, our filter")
    t.eq(sh("touch /x /etc/durward/x /run/durward/x /bin/x 2>/dev/null; ls -d /x /etc/durward/x /run/durward/* /bin/x "
            "2>/dev/null"), "/run/durward/durward-mcp\n/run/durward/init\n/run/durward/socket\n",
         "root, trust and our program cannot be written")
    t.has(sh("nc local:/run/durward/socket 2>&1; echo $?"), "1", "and nobody listens there any more")
    events = tap.wait_for(lambda: [x for x in c.show(box)["denied"] if "evil" in x["target"]], 5, 0.1)
    t.ok(events, "what was refused is counted", json.dumps(c.show(box)["denied"]))


def credentials(t, s, c):
    box = c.create(policy="coder", env={"COLOUR": "blue"})["id"]
    code, out = c.sh(box, "env; cat /etc/resolv.conf; curl -s https://api.github.com/user; "
                          "curl -s -o /dev/null -w '%{http_code}' https://api.github.com/gists/1; "
                          "curl -s https://api.openai.com/v1/models -H \"Authorization: Bearer $OPENAI_API_KEY\"")
    t.ok(code == 0 and b"octo" in out and b"403" in out and b"COLOUR=blue" in out and b"198.18.0.1" in out,
         "curl in the container is served by the policy, with the credentials", out)
    t.has(c.sh(box, "wget -q -O - http://%s/ 2>&1; env -u CURL_CA_BUNDLE -u SSL_CERT_FILE -u SSL_CERT_DIR curl -s "
                    "https://%s/x" % (scene.PLAIN, scene.PLAIN))[1].decode(), "/x",
          "the usual places of an image hold our bundle")
    t.ok(s.d.wait_records(1, "lifecycle", event="sandbox_started", target=box), "its life is in the audit log")
    other = c.create(policy="other")["id"]
    placeholder = re.search(rb"GITHUB_TOKEN=(\S+)", out).group(1).decode()
    _, answer = c.sh(other, "curl -s -i -H 'Authorization: Bearer %s' https://deps.example.com/" % placeholder)
    t.has(answer.decode(), "cross_sandbox", "another's placeholder is worth nothing")
    c.delete(other)
    return box, [out]


def commands(t, c, box):
    r = c.exec(box, "echo o; echo e >&2; exit 7", split=True)
    t.eq((r["stdout"], r["stderr"], r["exit_code"]), ("o\n", "e\n", 7), "output apart, exit status")
    began = time.monotonic()
    r = c.exec(box, "(sleep 100; echo x) & echo begun; sleep 100", timeout=1)
    t.eq((r["exit_code"], r["timed_out"], r["output"]), (124, True, "begun\n"), "a time-out is 124")
    t.ok(time.monotonic() - began < 5, "in time")
    blob = bytes(range(256)) * 4096
    c.write(box, "/workspace/deep/er/blob", blob)
    t.eq(c.read(box, "/workspace/deep/er/blob"), blob, "a file goes in and out, 8-bit clean")
    t.eq([x["name"] for x in c.entries(box, "/workspace/deep/er")["entries"]], ["blob"], "is listed")
    t.eq(c.sh(box, "cat deep/er/blob"), (0, blob), "and is what a command sees")
    t.eq(api.refused(c.read, box, "/etc/nope"), (404, "file_not_found"), "one that is not there is 404")
    tar = c.tar(box, "/workspace/deep")
    c.tar(box, "/workspace/copy", tar)
    t.eq(c.read(box, "/workspace/copy/er/blob"), blob, "an archive goes out and in")
    c.remove(box, "/workspace/deep", recursive="true")
    t.eq(c.sh(box, "ls /workspace"), (0, b"copy\n"), "and files are removed")
    f = c.frames(box, command="read x; echo got $x")
    f.send(0, b"that\n")
    t.eq(f.finish()[0], b"got that\n", "interactively too")
    f.close()


def images(t, e, d, c):
    e.image(EVIL, engine.rootfs([("run", "/tmp"), ("etc/ssl/cert.pem", "/nowhere/at/all")]),
            ['ENTRYPOINT ["/bin/sh","-c","touch /vol/entry; sleep 99"]', "VOLUME /vol", "USER nobody",
             "HEALTHCHECK --interval=1s CMD touch /vol/health", "ENV LD_PRELOAD=/nope.so", "ENV HTTPS_PROXY=http://x"])
    box = c.create(policy="coder", image=EVIL)["id"]
    time.sleep(2.5)  # the health check's interval, twice: that it does not come is what is to be seen
    t.eq(c.sh(box, "ls /vol; id -u; env | grep -c 'nope.so\\|http://x'"), (1, b"0\n0\n"),
         "an image's entry point, health check, user and environment are not used")
    t.ok(c.sh(box, "curl -s https://api.github.com/user")[1].startswith(b"{"), "and it works all the same")
    t.eq(len(e.volumes()), 1, "its volume is there")
    c.delete(box)
    t.ok(nothing(e, d), "and goes with it", json.dumps(left(e, d)))
    why = None
    try:
        c.create(policy="coder", image="no-such:image")
    except api.Refused as x:
        why = x
    t.ok(why and why.status == 503 and "no such image" in str(why).lower(), "an image that the engine has not: its words",
         str(why))
    t.eq([api.refused(c.create, policy="coder", image=x) for x in ("../x", "a b", "-x", "x" * 256)],
         [(400, "bad_request")] * 4, "a name that is none")
    t.eq(api.refused(c.create, policy="plain", backend="docker"), (400, "bad_request"), "docker needs an image")
    t.eq(api.refused(c.create, policy="none", backend="docker", image=IMAGE), (400, "bad_request"),
         "a policy that names no engine has none")
    t.eq(api.refused(c.create, policy="plain", backend="runc"), (400, "bad_request"), "a backend that there is not")


def limits(t, d, c):
    box = c.create(policy="small")["id"]
    code, out = c.sh(box, "dd if=/dev/zero of=/tmp/f bs=1M count=20 2>&1; ls -s /tmp/f | cut -d' ' -f1")
    t.ok(b"No space" in out, "disk", out)
    # its own memory, not the file system's: 200 MB in one string
    code, _ = c.sh(box, "x=0123456789abcdef; while :; do x=$x$x; done", timeout=20)
    t.eq(code, 137, "memory: whoever takes too much is killed")
    _, out = c.sh(box, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 "
                       "33 34 35 36; do sleep 20 & done 2>&1; ps | grep -c 'sleep 20'", timeout=20)
    t.ok(b"fork" in out, "G12 processes", out)
    box2 = c.create(policy="small")["id"]
    t.eq(c.sh(box2, "ulimit -n"), (0, b"64\n"), "open files")
    t.eq(c.sh(box2, "echo x >/usr-file && cat /usr-file && touch /bin/x && echo w"), (0, b"x\nw\n"), "root: writable")
    t.eq(c.sh(box2, "touch /etc/durward/x /run/durward/x 2>/dev/null; echo $?"), (0, b"1\n"), "but not what is ours")
    for x in (box, box2):
        c.delete(x)


def deaths(t, e, d, c, box):
    c.sh(box, "echo kept >/workspace/kept; (sleep 600 &) >/dev/null 2>&1")
    os.kill(role_pids(d, "controller")[0], signal.SIGKILL)
    c.close()
    t.ok(c.taken_over(box), "the controller's SIGKILL: it is taken over", d.diagnostics())
    t.eq(c.sh(box, "cat kept; ps | grep -c '[s]leep 600'"), (0, b"kept\n1\n"), "with its files and what runs in it")
    t.has(c.sh(box, "curl -s https://api.github.com/user")[1].decode(), "octo", "and is served")

    other = c.create(policy="coder")["id"]
    mine = e.inspect("durward-" + other)["State"]["Pid"]
    os.kill(mine, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: c.show(other)["state"] == "stopped", 10, 0.1), "process 1's SIGKILL: it is stopped")
    c.delete(other)
    before = set(keepers(d))
    other = c.create(policy="coder")["id"]
    [os.kill(k, signal.SIGKILL) for k in set(keepers(d)) - before]
    t.ok(tap.wait_for(lambda: c.show(other)["state"] == "stopped", 10, 0.1), "its keeper's SIGKILL: it is stopped")
    t.ok(tap.wait_for(lambda: len(e.containers()) == 1, 10, 0.1), "and the engine removes it", json.dumps(e.traces()))
    c.delete(other)

    builder = [p for p in role_pids(d, "builder") if p not in keepers(d)]
    os.kill(builder[0], signal.SIGKILL)
    t.ok(tap.wait_for(lambda: c.show(box)["state"] == "stopped", 10, 0.1), "the builder's SIGKILL ends it")
    t.ok(tap.wait_for(lambda: not e.containers(), 10, 0.1), "and nothing of it is left", json.dumps(e.traces()))
    c.delete(box)
    live = c.create(policy="coder")["id"]
    t.ok(nothing_but_one(e, d), "the next one sweeps what a killed keeper left", json.dumps(left(e, d)))
    c.close()
    d.daemon.kill()
    d.daemon.wait()
    t.ok(nothing(e, d), "G14 the daemon's SIGKILL leaves nothing", json.dumps(left(e, d)))
    d.serve(save=False)
    t.ok(tap.wait_for(lambda: c.show(live)["state"] == "stopped", 5, 0.1), "but its row, as stopped")
    c.delete(live)


def nothing_but_one(e, d):
    return tap.wait_for(lambda: (lambda n: len(n["containers"]) == len(n["folders"]) == len(n["keepers"]) == 1)(
        left(e, d)), 10, 0.1)


def orphans(t, e, d, c):
    """Created, never started: a keeper that was killed between the two."""
    def orphan(state, sandbox):
        labels = {"durward.state": state, "durward.sandbox": sandbox}
        return e.ask("POST", "/containers/create", json.dumps(
            {"Image": IMAGE, "Cmd": ["true"], "Labels": labels, "HostConfig": {"NetworkMode": "none"}}))[1]["Id"]
    state = os.path.join(d.dir, "state")
    gone, stays = orphan(state, "sb-gone"), orphan(state + "-of-another", "sb-stays")
    os.makedirs(os.path.join(state, "docker", "sb-folder", "run"))
    c.delete(c.create(policy="coder")["id"])
    ids = [x["Id"] for x in e.containers()]
    t.ok(gone not in ids and stays in ids, "what was never started is swept, another daemon's is not")
    e.ask("DELETE", "/containers/%s?force=1" % stays)
    t.ok(nothing(e, d), "folders too", json.dumps(left(e, d)))


def steady(counts):
    """When the next gate is warm and what ended is reaped: the same three times."""
    seen = []

    def same():
        seen.append(counts())
        return len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]
    tap.wait_for(same, 5, 0.1)
    return seen[-1]


def grows(t, e, d, c):
    def cycle():
        box = c.create(policy="coder")["id"]
        c.sh(box, "echo x >f; (sleep 100 &) >/dev/null 2>&1")
        c.delete(box)

    def counts():
        n = {role: len(os.listdir("/proc/%d/fd" % pid)) for pid, role in d.roles() if role != "gate"}
        with open("/proc/self/mountinfo") as f:
            n["mounts"] = sum(1 for m in f if m.split()[4].startswith(e.dir + "/"))  # others mount too
        n["processes"] = len(tap.descendants(d.daemon.pid))
        return n
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        def one(_):
            k = api.Api(d.socket)
            box = k.create(policy="coder")["id"]
            out = k.sh(box, "echo up")
            k.delete(box)
            k.close()
            return out
        t.eq(list(pool.map(one, range(6))), [(0, b"up\n")] * 6, "six at once")
    cycle()
    before = steady(counts)
    [cycle() for _ in range(5)]
    t.ok(tap.wait_for(lambda: counts() == before, 5, 0.1), "5 more cycles leave nothing", "%r" % before, "%r" % counts())
    t.ok(nothing(e, d), "delete answers when the container is gone", json.dumps(left(e, d)))


def by_hand(t, e, d):
    """durward run, and the command line."""
    r = d.run(["sh", "-c", "cat /home.txt; id -u; curl -s -o /dev/null -w '%{http_code}\\n' https://api.github.com/user"],
              ["--policy", "coder", "--no-bind"], save=False, timeout=60)
    t.eq((r.returncode, r.stdout), (0, "of the image\n0\n200\n"), "durward run") or t.diag(r.stderr)
    r = d.run(["sh", "-c", "exit 3"], ["--policy", "engine", "--backend", "docker", "--image", IMAGE, "--no-bind"],
              save=False, timeout=60)
    t.eq(r.returncode, 3, "durward run --backend docker --image") or t.diag(r.stderr)
    r = d.run(["pwd"], ["--policy", "coder"], save=False, timeout=60)
    t.eq((r.returncode, r.stdout), (0, d.work + "\n"), "in a copy of the current directory (docker_copies.t)") or \
        t.diag(r.stderr)
    r = d.run(["true"], ["--policy", "plain", "--backend", "docker", "--image", IMAGE, "--no-bind"], save=False, timeout=60)
    t.ok(r.returncode == 125 and "/nowhere/docker.sock" in r.stderr, "no engine there: its socket is named", r.stderr)
    r = d.command("sandbox", "create", "--policy", "engine", "--backend", "docker", "--image", IMAGE, "--socket", d.socket)
    box = r.stdout.strip()
    t.ok(r.returncode == 0 and box.startswith("sb-"), "durward sandbox create --backend docker", r.stderr)
    r = d.command("sandbox", "exec", "--socket", d.socket, box, "sh", "-c", "cat /home.txt; exit 5")
    t.eq((r.returncode, r.stdout), (5, "of the image\n"), "durward sandbox exec")
    t.eq(d.command("sandbox", "rm", "--socket", d.socket, box).returncode, 0, "durward sandbox rm")
    t.ok(nothing(e, d), "nothing is left", json.dumps(left(e, d)))


def podman(t, s):
    """The same by Podman's socket."""
    if not os.access(engine.PODMAN, os.X_OK):
        t.skip("Podman", "%s is missing (package podman)" % engine.PODMAN)
        return
    e = engine.Podman(t)
    e.image("localhost/durward-podman:latest")
    for name in ("coder", "other"):
        s.d.policies[name]["sandbox"] = {"backend": "docker", "memory": "256MiB", "docker": {
            "socket": e.socket, "image": "localhost/durward-podman:latest"}}
    s.d.serve()
    c = api.Api(s.d.socket)
    try:
        box, outputs = credentials(t, s, c)
    except api.Refused as x:
        with open(e.log, errors="replace") as f:
            t.ok(False, "a container of Podman's", str(x), f.read()[-1500:])
        return
    t.part(closed, t, s, c, box)
    t.part(commands, t, c, box)
    c.delete(box)
    t.ok(nothing(e, s.d), "Podman: delete answers when the container is gone", json.dumps(left(e, s.d)))
    c.create(policy="coder")
    c.close()
    s.d.daemon.kill()
    s.d.daemon.wait()
    t.ok(nothing(e, s.d), "Podman: the daemon's SIGKILL leaves nothing", json.dumps(left(e, s.d)))
    s.clean(outputs, "Podman")


def not_ours(t, e, s):
    """An ordinary user who may talk to root's engine: its containers' networks are not his to enter."""
    uid = 61655
    d = durward.Durward(t, "user")
    d.policy("p", [])
    d.policies["p"]["sandbox"] = {"backend": "docker", "docker": {"socket": e.socket, "image": IMAGE}}
    d.save()
    stage = t.mkdir("user/stage")
    prefix = os.path.dirname(os.path.dirname(durward.program()))
    for part in ("bin", "libexec"):
        shutil.copytree(os.path.join(prefix, part), os.path.join(stage, part))
    for root, dirs, files in os.walk(d.dir):
        for name in dirs + files:
            os.chown(os.path.join(root, name), uid, uid)
    os.chown(d.dir, uid, uid)
    os.chmod(e.dir, 0o755)
    os.chmod(e.socket, 0o666)
    r = subprocess.run([os.path.join(stage, "bin/durward"), "run", "-c", d.conf, "--no-bind", "--", "true"],
                       user=uid, group=uid, extra_groups=[], env=d.env, cwd=d.work, capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=60)
    os.chmod(e.socket, 0o660)
    t.ok(r.returncode == 125 and "not ours to enter" in r.stderr, "an ordinary user and root's engine: why not",
         r.stderr)
    t.ok(nothing(e, s.d) and not os.listdir(os.path.join(d.dir, "state", "docker")), "and nothing is left",
         json.dumps(left(e, s.d)))


def main(t):
    why = engine.needed()
    if why:
        raise tap.Skip(why)
    e = engine.Engine(t)
    e.image(IMAGE)
    s = scene.Scene(t)
    docker = {"socket": e.socket, "image": IMAGE}
    s.d.policies["coder"]["sandbox"] = {"backend": "docker", "docker": docker}
    s.d.policy("other", [{"allow": scene.PLAIN}, {"allow": "http://" + scene.PLAIN}])
    s.d.policies["other"]["sandbox"] = {"backend": "docker", "docker": docker}
    s.d.policy("small", [])
    s.d.policies["small"]["sandbox"] = {"backend": "docker", "docker": docker, "memory": "64MiB", "pids": 32,
                                        "cpu": "50%", "disk": "8MiB", "files": 64, "root": "writable"}
    s.d.policy("engine", [])
    s.d.policies["engine"]["sandbox"] = {"docker": {"socket": e.socket}}
    s.d.policy("none", [])
    s.d.policy("plain", [])
    s.d.policies["plain"]["sandbox"] = {"docker": {"socket": "/nowhere/docker.sock"}}
    s.d.serve()
    c = api.Api(s.d.socket)
    t.part(shape, t, e, c)
    box, outputs = credentials(t, s, c)
    t.part(closed, t, s, c, box)
    t.part(commands, t, c, box)
    t.part(images, t, e, s.d, c) if not c.delete(box) else None
    t.part(limits, t, s.d, c)
    t.part(orphans, t, e, s.d, c)
    box = c.create(policy="coder")["id"]
    t.part(deaths, t, e, s.d, c, box)
    t.part(grows, t, e, s.d, c)
    t.part(by_hand, t, e, s.d)
    t.part(not_ours, t, e, s)
    s.clean(outputs)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.ok(nothing(e, s.d), "and leaves nothing", json.dumps(left(e, s.d)))
    t.part(podman, t, s)


tap.run(main, timeout=300)
