"""G. Controller and sandbox escape: what can be tried the same on each backend, row by row. The rest is in
escape.t, rooted.t, bombs.t, archives.t, and named in ROWS."""
import concurrent.futures
import http.client
import io
import json
import os
import random
import socket
import subprocess
import tarfile
import time

from harness import api, durward, gvisor, microvm, tap

W = "/workspace/"
REFUSED = ("EPERM", "EACCES", "ENOENT", "EROFS", "ENXIO", "ENODEV", "EIO", "ETXTBSY", "ENOTDIR")
CANARY = b"HOST-CANARY-0123456789"
VARIABLE = "host-variable-0123456789"
BOX = "/v1/sandboxes"


class Place:
    """A backend: its policy, its name, and how its sandboxes run a Python."""

    def __init__(self, t, d, c, backend, policy):
        self.t, self.d, self.c, self.backend, self.policy = t, d, c, backend, policy
        self.mark = "durward-rows-g-%d-%s" % (os.getpid(), backend)
        self.canary = t.write("canary-%s/canary" % backend, CANARY, 0o666)
        self.victim = t.write("canary-%s/victim" % backend, b"untouched", 0o666)
        self.folder = os.path.dirname(self.canary)
        os.chmod(self.folder, 0o777)
        self.before = self.look()
        self.others = set(self.ours())
        self.box = c.create(policy=policy)["id"]
        self.seconds = {"microvm": 5, "gvisor": 2}.get(backend, 1)  # for one of the host's

    def ours(self):
        """What of its wall runs: gVisor's processes, or a machine's."""
        return gvisor.running() if self.backend == "gvisor" else list(microvm.running()) if self.backend == "microvm" else []

    def look(self):
        """What a sandbox could have changed."""
        return {x: (os.lstat(p).st_mode, os.lstat(p).st_uid, os.lstat(p).st_nlink, open(p, "rb").read())
                for x in sorted(os.listdir(self.folder)) for p in [os.path.join(self.folder, x)]}

    def ok(self, row, good, what, *diag):
        return self.t.ok(good, "%s %s: %s" % (row, self.backend, what), *[str(d) for d in diag])

    def sh(self, command, **kw):
        return self.c.sh(self.box, command, **kw)[1].decode("utf-8", "replace")

    def try_all(self, calls):
        """What any of them gave that was not refused."""
        got = []
        for fn in calls:
            try:
                got.append(fn())
            except api.Refused:
                pass
        return got


# ---- the API ----

def g1(p):
    """The API is nowhere inside: not its socket, not by the gate, not on loopback."""
    sock, said = p.d.socket, ""
    for where in ("http://127.0.0.1/", "http://localhost/", "http://durward/", "http://gate.durward.internal:3128/",
                  "http://[::1]/", "http://0.0.0.0/"):
        said += p.sh("curl -s -m 5 -H 'Host: durward' %sv1/sandboxes; curl -s -m 5 %sv1/sandboxes" % (where, where))
    said += p.sh("curl -s -m 5 --unix-socket %s http://durward/v1/sandboxes; ls -d %s %s 2>/dev/null" %
                 (sock, sock, os.path.dirname(sock)))
    p.ok("G1", '"sandboxes"' not in said and sock not in said, "the API cannot be had from inside", said)


def g1_who(t, d):
    """Once a daemon: peers of another uid."""
    if os.geteuid() != 0:
        t.skip("G1 another user", "needs root to become one")
        return
    pid = os.fork()
    if pid == 0:
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(d.socket)
        except OSError:
            os._exit(0)
        os._exit(1)
    t.eq(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "G1 another user cannot connect")


def g2(t, c):
    bad = []
    for name, value in (("Host", "evil.example"), ("Host", "127.0.0.1"), ("Host", "localhost.evil.example"), ("Host", ""),
                        ("Host", "durward:80@x"), ("Origin", "http://localhost"), ("Origin", "null"),
                        ("Origin", "http://durward"), ("Origin", "")):
        for method, path, body in (("GET", BOX, None), ("POST", BOX, "{}"), ("OPTIONS", BOX, None)):
            status, headers, _ = c.raw(method, path, body, {name: value, "Content-Type": "text/plain"}, kept=False)
            if status // 100 == 2 or [h for h in headers if h.lower().startswith("access-control")]:
                bad.append((name, value, method, status))
    t.eq(bad, [], "G2 a page of a browser gets nothing: Host and Origin")


def g3(p):
    """Ids are names of ours or nothing."""
    r, bad = random.Random(3), []
    ids = ["..", "../status", "%2e%2e", "%2e%2e%2fstatus", "a/../" + p.box, p.box.upper(), p.box + "%00", p.box + "%20",
           "%00" + p.box, p.box[:-1], p.box + "a", "*", "a" * 65, "-", "sb-", ".", p.box + ".", p.box + "%2f"]
    ids += ["".join("%%%02x" % r.randrange(256) for _ in range(r.randrange(1, 20))) for _ in range(200)]
    for sid in ids:
        for tail in ("", "/exec", "/files?path=/etc/passwd"):
            status, _, data = p.c.raw("GET", "%s/%s%s" % (BOX, sid, tail))
            if status not in (400, 404) or b'"error"' not in data:
                bad.append((sid, tail, status))
    p.ok("G3", not bad, "%d ids that are none" % len(ids), bad[:5])


# ---- files ----

def g4(p):
    up, got = "/..", []
    for n in (1, 3, 9, 30):
        for start in ("/workspace", "/tmp", "", "/proc/self/root", "/proc/1/root", "/proc/self/cwd", "/dev/fd"):
            path = start + up * n + p.canary
            got += p.try_all([lambda: p.c.read(p.box, path), lambda: p.c.tar(p.box, os.path.dirname(path)),
                              lambda: p.c.entries(p.box, os.path.dirname(path))])
            p.try_all([lambda: p.c.write(p.box, path.replace("/canary-", "/canary-"), b"TAKEN"),
                       lambda: p.c.remove(p.box, start + up * n + p.victim)])
    leaked = [x for x in got if CANARY in (x if isinstance(x, bytes) else json.dumps(x).encode())]
    p.ok("G4", not leaked and p.look() == p.before, "56 ways up lead to nothing of the host's", p.look())
    p.sh("rm -rf /tmp/*")


LAYOUTS = """import os
at, folder = %r, %r
def links(*pairs):
    for name, to in pairs:
        os.symlink(to, name)
for i in range(200):
    os.mkdir("l%%d" %% i)
    os.chdir("l%%d" %% i)
    if i %% 10 == 9:
        os.mkdir("in")
    links(*((("x", at),), (("y", folder), ("x", "y/canary")), (("x", "../" * 7 + at.lstrip("/")),), (("x", "/proc/1/root" + at),),
            (("y", "/"), ("x", "y" + at)), (("y", "/proc/self/fd"), ("x", "y/%%d" %% i + at)), (("x", "a"), ("a", "b"), ("b", at)),
            (("x", "/proc/self/cwd/" + "../" * 3 + ".." + at),), (("x", "x"),), (("in/y", "../../.."), ("x", "in/y/.." + at)))[i %% 10])
    os.chdir("..")
print(i + 1)
"""


def g5(p):
    p.c.write(p.box, "/tmp/layouts.py", (LAYOUTS % (p.canary, p.folder)).encode())
    made = p.sh("mkdir -p g5; cd g5; python3 -S /tmp/layouts.py 2>&1", timeout=60).split()[-1:]
    read = p.c.batch(p.box, [{"op": "read", "path": "%sg5/l%d/x" % (W, i)} for i in range(200)])
    p.c.batch(p.box, [{"op": "write", "path": "%sg5/l%d/x" % (W, i), "data": "TAKEN"} for i in range(200)])
    leaked = [x for x in read if CANARY.decode() in x.get("data", "")]
    archive = p.try_all([lambda: p.c.tar(p.box, W + "g5")])
    p.c.batch(p.box, [{"op": "delete", "path": "%sg5/l%d/x" % (W, i), "recursive": True} for i in range(200)])
    p.ok("G5", made == ["200"] and not leaked and not [a for a in archive if CANARY in a] and p.look() == p.before,
         "200 layouts of links, read, written, archived, deleted: nothing of the host's", made, leaked[:3], p.look())
    p.sh("rm -rf g5")


def g6(p):
    """A name that is a file, a link to the host's and a folder by turns, while we use it."""
    p.sh("cat >race.sh <<'E'\nwhile :; do ln -sfn %s race; rm -f race; echo inside >race; rm -f race; mkdir -p rd; "
         "echo in >rd/canary; rm -rf rd; ln -sfn %s rd; rm -f rd; done\nE\nsetsid sh race.sh >/dev/null 2>&1 &" %
         (p.canary, p.folder))
    served, leaked, end = 0, 0, time.monotonic() + 2
    while time.monotonic() < end:
        got = p.try_all([lambda: p.c.read(p.box, W + "race"), lambda: p.c.read(p.box, W + "rd/canary"),
                         lambda: p.c.write(p.box, W + "rd/victim", b"TAKEN"), lambda: p.c.write(p.box, W + "race", b"TAKEN"),
                         lambda: p.c.remove(p.box, W + "rd/victim", recursive="true")])
        served += len(got)
        leaked += len([x for x in got if CANARY in x])
    p.ok("G6", served > 10 and not leaked and p.look() == p.before, "a race wins nothing (%d times served)" % served)
    p.sh("for f in /proc/[0-9]*; do grep -q race.sh $f/cmdline 2>/dev/null && kill -9 ${f#/proc/}; done; rm -rf race rd")


def evil(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, link, data in members:
            i = tarfile.TarInfo(name)
            i.type, i.linkname, i.size, i.mode = kind, link, len(data), 0o6777
            tar.addfile(i, io.BytesIO(data))
    return out.getvalue()


def g7(p):
    reg, sym, hard, dev = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
    up = "../" * 12 + p.folder.lstrip("/")
    for members in ([(up + "/new", reg, "", b"x")], [(p.folder + "/new", reg, "", b"x")],
                    [("l", sym, p.folder, b""), ("l/new", reg, "", b"x")], [("l", sym, p.canary, b""), ("l", reg, "", b"x")],
                    [("h", hard, p.canary, b""), ("h", reg, "", b"x")], [("h", hard, up + "/canary", b"")],
                    [("null", dev, "", b"")], [("su", reg, "", b"x")]):
        p.try_all([lambda: p.c.tar(p.box, W + "g7", evil(members))])
    # with containers inside, set-ID bits are its own business, and c 0:0 is what an overlay leaves out
    nodes = p.sh("find g7 -type b" + ("" if p.backend == "nested" else " -o -type c -o -perm -4000 -type f") + " 2>/dev/null")
    p.ok("G7", p.look() == p.before and nodes == "", "archives that reach outside, with devices, set-uid", p.look(), nodes)
    p.sh("rm -rf g7")


def g8(p, small):
    """An archive that is larger than its sandbox may be, and a folder that is larger than a list."""
    box = p.c.create(policy=small)["id"]
    big = evil([("zeros", tarfile.REGTYPE, "", bytes(24 << 20))])
    refusal = api.refused(p.c.tar, box, W + "g8", big)
    used = p.c.sh(box, "du -sk /workspace | cut -f1")[1]
    p.ok("G8", refusal and int(used or b"0") <= 9000, "an archive of 24 MiB into 8", refusal, used)
    p.ok("G8", api.refused(p.c.write, box, W + "big", bytes(24 << 20)) is not None, "a file of 24 MiB into 8")
    p.c.delete(box)
    # where the processor is emulated each file that the host keeps takes some ten milliseconds
    at = "/dev/shm/g8" if p.backend == "microvm" else W + "g8"
    p.sh("mkdir -p %s; cd %s; seq 17000 | xargs touch" % (at, at), timeout=60 * p.seconds)
    r = p.c.entries(p.box, at)
    p.ok("G8", len(r["entries"]) == 16384 and r["truncated"], "17,000 entries: a bounded list that says so", len(r["entries"]))
    p.sh("rm -rf " + at)


def g9(t, d):
    """What the sandbox left in a folder does not decide what is mounted next."""
    os.symlink("/etc", os.path.join(d.work, "planted"))
    r = d.run(["true"], ["--policy", "plain", "--bind", os.path.join(d.work, "planted") + ":/mnt:ro"], save=False)
    t.ok(r.returncode == 125, "G9 a bind whose source is a link is refused", r.stdout + r.stderr)
    os.unlink(os.path.join(d.work, "planted"))
    shown = os.path.dirname(t.mkdir("shown/below", 0o755))
    os.symlink(os.path.dirname(shown), os.path.join(d.work, "planted"))
    os.mkdir(os.path.join(d.work, "more"))
    for at in (os.path.join(d.work, "planted/shown/below"), "more/../planted/shown/below"):
        for args in (["--bind", at + ":/mnt:ro"], ["--workdir", at]):
            r = d.run(["true"], ["--policy", "plain"] + args, save=False)
            t.ok(r.returncode == 125 and "on the way" in r.stderr, "G9 nor is one behind a link on the way: " + args[0], r.stderr)
    os.symlink("./" * 2040 + "planted", os.path.join(d.work, "padded"))  # with what follows longer than a path may be
    long = os.path.join(d.work, "padded/shown/below")
    r = d.run(["true"], ["--policy", "plain", "--bind", long + ":/mnt:ro"], save=False)
    t.ok(r.returncode == 125 and "cannot be followed" in r.stderr, "G9 nor one behind a link that is too long to be followed", r.stderr)
    there = os.path.join(d.work, "planted/shown/below")
    r = subprocess.run([durward.program(), "run", "-c", d.conf, "--policy", "plain", "true"], cwd=there, env=dict(d.env, PWD=there),
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    t.ok(r.returncode == 125 and "on the way" in r.stderr, "G9 nor the current directory, entered by way of one", r.stderr)
    r = d.run(["true"], ["--policy", "plain", "--bind", shown + ":/mnt:ro"], save=False)
    t.eq(r.returncode, 0, "G9 where it really lies it is bound: " + r.stderr)
    box = api.Api(d.socket).create(policy="plain")["id"]
    r = d.command("sandbox", "sync", "--socket", d.socket, box, "planted/shown/below")
    t.ok(r.returncode == 1 and "on the way" in r.stderr, "G9 nor is one synchronised from there", r.stderr)
    api.Api(d.socket).delete(box)


def g11(p):
    """Everything that root does beside a sandbox's files: stop, run again, copy, delete. No owner, no mode changes."""
    box = p.c.create(policy=p.policy)["id"]
    p.c.sh(box, "ln -s %s x; ln -s %s y; mkdir -p /workspace/.d; ln -s %s /workspace/.d/z; echo a >f; chmod 0 f" %
           (p.canary, p.folder, p.folder))
    for verb, body in (("stop", None), ("resume", None), ("pause", None), ("resume", None), ("fork", {})):
        try:
            r = p.c.ask("POST", "%s/%s/%s" % (BOX, box, verb), body)
            if verb == "fork":
                p.c.delete(r["id"])
        except api.Refused:
            pass  # in a container there is neither
    p.c.delete(box)
    p.ok("G11", p.look() == p.before, "no owner, no mode, no link count of the host's changes", p.look())


# ---- processes ----

def alive(mark):
    found = []
    for pid in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if pid.isdigit() and mark.encode() in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            continue
    return found


def share_of(p, box, command):
    """Of one processor, what a command takes that prints its ticks. Those of a machine that is emulated are QEMU's."""
    def spent():
        total = 0
        for pid in [x for x, name in microvm.running().items() if name.startswith("qemu")]:
            with open("/proc/%d/stat" % pid) as f:
                total += sum(int(x) for x in f.read().rpartition(")")[2].split()[11:13])
        return total
    before, began = spent(), time.monotonic()
    said = p.c.exec(box, command, timeout=60 * p.seconds)
    wall = time.monotonic() - began
    ticks = spent() - before if p.backend == "microvm" else sum(int(x) for x in said["output"].split())
    return ticks / os.sysconf("SC_CLK_TCK") / wall, wall


def g12(p, small):
    """More than it may have of each: processes, memory, open files, output, time. The rest goes on."""
    box = p.c.create(policy=small)["id"]
    own = p.backend == "gvisor"  # where 256 more are its own, and it ends as a whole
    many = 400 if own else 100
    out = p.c.sh(box, "i=0; while [ $i -lt %d ]; do sleep 20 & i=$((i+1)); done; true" % many, timeout=30 * p.seconds)[1]
    p.ok("G12", b"fork" in out or b"Resource" in out or b"Cannot" in out or own and p.c.show(box)["state"] == "stopped",
         "processes", out[-300:])
    p.c.delete(box)
    box = p.c.create(policy=small)["id"]
    code, out = p.c.sh(box, "x=0123456789abcdef; while :; do x=$x$x; done", timeout=30 * p.seconds)
    p.ok("G12", code not in (0, 124), "memory: whoever takes too much is ended", code, out[-200:])
    if own:
        p.c.delete(box)
        box = p.c.create(policy=small)["id"]
    out = p.c.sh(box, "ulimit -n; ulimit -n 1000 2>&1 || true")[1]
    p.ok("G12", out.startswith(b"64\n"), "open files: 64, and no more can be had", out)
    began = time.monotonic()
    r = p.c.exec(box, "while :; do :; done", timeout=1)
    p.ok("G12", (r["exit_code"], r["timed_out"]) == (124, True) and time.monotonic() - began < 10 * p.seconds, "time", r)
    r = p.c.exec(box, "yes | head -c 3000000", max_output=1000)
    p.ok("G12", len(r["output"]) == 1000 and r["truncated"], "output", len(r["output"]))
    turns = 60000 if p.backend == "microvm" else 300000  # seconds of it, on an emulated processor too
    # gVisor's own kernel counts a task that waits for the quota as one that runs, until it looks again: later on a busy machine
    most = 0.9 if own else 0.8
    for _ in range(3 if own else 1):
        share, wall = share_of(p, box, "i=0; while [ $i -lt %d ]; do i=$((i+1)); done; cat /proc/$$/stat | cut -d' ' -f14,15" % turns)
        if share < most:
            break
    p.ok("G12", share < most, "processor: half of one (%.0f %% in %.1f s)" % (share * 100, wall))
    p.ok("G12", p.sh("echo fine") == "fine\n", "and its neighbour goes on")
    p.c.delete(box)


def g13(p):
    """Whoever leaves its session, its parents, its group is gone with the sandbox all the same."""
    neighbours = set(p.ours())
    box = p.c.create(policy=p.policy)["id"]
    for command in ("setsid sh -c 'trap \"\" TERM INT HUP; sleep 1000' %s", "(sh -c 'sleep 1000; :' %s &)",
                    "setsid setsid sh -c '(sh -c \"sleep 1000; :\" %s &)'", "sh -c 'kill -STOP $$; sleep 1000' %s"):
        p.c.exec(box, "(%s) >/dev/null 2>&1 &" % (command % p.mark))
    if p.backend in ("gvisor", "microvm"):  # whose processes are none of the host's
        count = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c %s" % p.mark
        there = tap.wait_for(lambda: int(p.c.sh(box, count, timeout=30)[1]) >= 3, 5 * p.seconds)
        mine = set(p.ours()) - neighbours
    else:
        there, mine = tap.wait_for(lambda: len(alive(p.mark)) >= 3, 5), set()
    p.c.delete(box)
    left = alive(p.mark) + sorted(mine & set(p.ours()))
    p.ok("G13", there and not left, "nothing of it is left when delete has answered", there, left)


def g15(p):
    """Delete, delete again, and use, all at once: each answer is one of those that there are."""
    odd = []

    def ask(method, path, body=None):
        k = api.Api(p.d.socket)
        try:
            return k.raw(method, path, json.dumps(body) if body is not None else None)[0]
        except http.client.HTTPException:
            return 0
        finally:
            k.close()
    rounds = 12 if p.backend == "bwrap" else 4
    for i in range(rounds):
        box = p.c.create(policy=p.policy)["id"]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            jobs = [(what, pool.submit(ask, *what)) for what in (
                ("POST", "%s/%s/exec" % (BOX, box), {"command": "sleep 0.0%d; echo x" % i}),
                ("DELETE", "%s/%s" % (BOX, box)), ("DELETE", "%s/%s" % (BOX, box)),
                ("GET", "%s/%s/files?path=/etc/passwd" % (BOX, box)), ("POST", "%s/%s/stop" % (BOX, box)),
                ("PATCH", "%s/%s" % (BOX, box), {"labels": {"i": str(i)}}))]
        odd += [(what[:2], j.result()) for what, j in jobs if j.result() not in
                ((204,) if what[0] == "DELETE" else (200, 404, 409, 503))]
        odd += [box] if api.refused(p.c.show, box) != (404, "sandbox_not_found") else []
    p.ok("G15", not odd, "%d times all at once" % rounds, odd[:5])


# ---- what is found inside ----

def inside(p):
    """G17, G18, G22 to G25, G27, G29, as inside/rooted.py finds them."""
    with open(os.path.join(durward.INSIDE, "rooted.py"), "rb") as f:
        p.c.write(p.box, "/tmp/rooted.py", f.read())
    r = p.c.exec(p.box, "python3 /tmp/rooted.py", split=True, timeout=60 * p.seconds)
    try:
        got = json.loads(r["stdout"])
    except ValueError:
        p.ok("G22", False, "the probe answers", r)
        return
    # gVisor knows no ETXTBSY: what is opened for writing is the program in the sandbox's own layer
    own = p.backend == "gvisor"
    p.ok("G17", all(got["proc"][x] in REFUSED for x in ("/proc/1/exe", "/proc/self/exe")[:1 if own else 2]),
         "no program can be overwritten by its link", got["proc"])
    p.ok("G18", all(got["proc"][x] in REFUSED + ("empty",) for x in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern",
         "/proc/kcore", "/proc/timer_list")), "what is masked stays so", got["proc"])
    nested = p.backend == "nested"
    p.ok("G22", got["caps"] == ["00000000a82435ff" if nested else "0" * 16] * 4 + ["-" if own else got["caps"][0]] and got["nnp"] == "1" and
         (nested or all(v == "EPERM" for k, v in got["suid"].items() if k.startswith("chmod"))),
         "capabilities of its own namespace" if nested else "no capability, no set-uid", got["caps"], got["suid"])
    # gVisor's /dev is in its memory, and leads to devices of its own alone
    nodes = {k: v for k, v in got["nodes"].items() if not own or k != "/dev"}
    device = {k: v for k, v in got["device"].items() if not own or k != "/dev/fuse"}
    p.ok("G23", all(v in REFUSED for v in nodes.values()) and all(v in REFUSED for v in device.values()),
         "no device of the host's, no node of its own", got["nodes"], got["device"])
    bad = {x: v for x, v in got["proc"].items() if v not in REFUSED + ("empty",) and not x.startswith("/sys") and
           not (own and x in ("/proc/self/exe", "/proc/1/environ"))}
    p.ok("G24", not bad and len(got["pids"]) < 200, "nothing of the host's /proc", bad)
    p.ok("G25", got["abort"] == [-6, False] and not got["dumps"] and got["core"] in ([1, 1], [0, 0]), "no core", got["core"])
    p.ok("G27", VARIABLE not in json.dumps(got["env"]) and "HOST_VARIABLE" not in got["env"], "no variable of the host")
    # gVisor takes int 0x80 for its own call of that number, filtered as such
    for abi in ("x32",) if own else ("int80", "x32"):
        p.ok("G29", got[abi] is None or got[abi][0] == -31, abi + " is killed", got[abi])
    p.ok("G29", got["unknown"] == ["ENOSYS"], "unknown calls do not exist", got["unknown"])


def g26(p):
    """Names that a sandbox chose, on the operator's terminal."""
    p.sh("mkdir -p g26; cd g26; mkfifo \"$(printf 'x\\033]0;owned\\007\\033[2J')\"; echo a >a")
    to = os.path.join(p.d.work, "g26-" + p.backend)
    r = p.d.command("sandbox", "cp", "--socket", p.d.socket, "%s:%sg26" % (p.box, W), to)
    p.ok("G26", not any(x in r.stderr + r.stdout for x in "\x1b\x07"), "what is said of its files is escaped",
         repr(r.stderr))
    p.sh("curl -s -m 5 'http://x.invalid/' >/dev/null")
    r = p.d.command("sandbox", "show", "--socket", p.d.socket, p.box)
    p.ok("G26", r.returncode == 0 and "\x1b" not in r.stdout + r.stderr, "and in show", repr(r.stdout[-300:]))
    p.sh("rm -rf g26")


EACH = (g1, g3, g4, g5, g6, g7, g11, g13, g15, inside, g26)
SHORT = (g5, g13, inside)  # of a machine whose processor is emulated, where nothing more was asked for


def nothing_runs(p):
    p.c.delete(p.box)
    left = alive(p.mark) + sorted(set(p.ours()) - p.others)
    p.ok("G14", not left and p.look() == p.before, "when it is deleted, nothing is left", left)
