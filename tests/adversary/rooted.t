#!/usr/bin/python3 -B
"""Rows G22 to G25 and G27 to G29 of the catalogue, in the two kinds of root that can be written or
are not the host's: a layer above the host's /usr, and an image that was made to do harm."""
import json
import os
import pwd
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, person, rootfs, tap  # noqa: E402

REFUSED = ("EPERM", "EACCES", "ENOENT", "EROFS", "ENXIO", "ENODEV", "EIO", "ETXTBSY")
SECRET = "host-variable-0123456789"


def python_image(t):
    """A root file system with a Python, set-uid programs and a /dev of its own."""
    top = rootfs.make(t.mkdir("python"))
    version = "python%d.%d" % sys.version_info[:2]
    source = os.path.realpath("/usr/bin/python3")
    shutil.copy(source, os.path.join(top, "usr/bin/python3"))
    shutil.copytree("/usr/lib/" + version, os.path.join(top, "usr/lib", version), symlinks=True,
                    ignore=shutil.ignore_patterns("test", "tests", "idlelib", "__pycache__",
                                                  "ensurepip", "tkinter", "lib2to3",
                                                  "sitecustomize.py", "config-*", "*.a"))
    dynload = os.path.join(top, "usr/lib", version, "lib-dynload")
    needed = [source] + [os.path.join(dynload, x) for x in os.listdir(dynload)
                         if x.startswith(("_ctypes.", "mmap.", "_json.", "resource."))]
    for word in subprocess.check_output(["ldd"] + needed, text=True).split():
        if word.startswith("/") and not word.endswith(":"):
            to = os.path.join(top, "usr" + (word[4:] if word.startswith("/usr") else word))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.realpath(word), to)
    shutil.copy(os.path.join(durward.INSIDE, "rooted.py"), os.path.join(top, "usr/rooted.py"))
    os.chmod(os.path.join(top, "usr/bin/id"), 0o6755)
    os.makedirs(os.path.join(top, "dev"))
    for link, to in (("proc", "/etc"), ("run", "/etc"), ("tmp", "/root")):
        os.symlink(to, os.path.join(top, link))
    with open(os.path.join(top, "etc/ld.so.preload"), "w") as f:
        f.write("")
    return top


def judge(t, where, got, inside, outside):
    t.eq(got["caps"], ["0" * 16] * 5, "G22 %s: no capability in any set" % where)
    t.eq(got["nnp"], "1", "G22 %s: no new privileges" % where)
    t.eq(got["mounts"], [], "G22 %s: every mount is nosuid, all but device files nodev" % where)
    suid = got["suid"]
    t.ok(all(v == "EPERM" for k, v in suid.items() if k.startswith("chmod")) and
         not any(v for k, v in suid.items() if k.startswith("mode")),
         "G22 %s: no file can be made set-uid" % where, str(suid))
    if where == "image":
        t.eq(suid["found"], [], "G22 image: its set-uid programs are none")
    t.ok(all(v in REFUSED for v in got["nodes"].values()), "G23 %s: no node can be made" % where,
         str(got["nodes"]))
    t.ok(set(got["devices"]) <= {"console", "core", "fd", "full", "null", "ptmx", "pts", "random",
                                 "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"},
         "G23 %s: only harmless devices" % where, str(got["devices"]))
    bad = {p: v for p, v in got["device"].items() if v not in REFUSED}
    t.eq(bad, {}, "G23 %s: no device of the host can be opened" % where)
    links = {p: got["proc"][p] for p in ("/proc/1/exe", "/proc/self/exe")}
    t.ok(all(v in REFUSED for v in links.values()), "G17 %s: no program is written through /proc" % where, str(links))
    bad = {p: v for p, v in got["proc"].items() if v not in REFUSED + ("empty",)}
    t.eq(bad, {}, "G18 G24 %s: nothing of /proc and /sys that is the host's" % where)
    t.eq(got["keys"], "", "G24 %s: no keys are listed" % where)
    t.ok(max(got["pids"]) < 100, "G24 %s: only its own processes" % where, str(got["pids"]))
    t.eq((got["core"], got["core_set"]), ([1, 1], "ok"),
         "G25 %s: the limit that keeps the host's program from running stays" % where)
    t.eq((got["abort"], got["dumps"]), ([-6, False], []), "G25 %s: a crash leaves no core" % where)
    t.ok(SECRET not in json.dumps(got["env"]) and "HOST_VARIABLE" not in got["env"],
         "G27 %s: no variable of the host" % where, str(got["env"]))
    t.eq(got["uid"], inside, "G28 %s: the uid inside" % where)
    t.eq(outside, expected(where, inside), "G28 %s: the uid outside" % where)
    for abi in ("int80", "x32"):
        if got[abi]:
            t.eq(got[abi][0], -31, "G29 %s: %s is killed" % (where, abi))
    t.eq(got["unknown"], ["ENOSYS"], "G29 %s: unknown calls do not exist" % where)


def expected(where, inside):
    """[uid of every process inside], as the host sees it."""
    if os.geteuid() == 0:
        return [61710]
    if where == "image" and person.name() == person.MAPPED:
        return [700000]
    return [mapped() if where == "image" and person.name() == "ourselves" else os.geteuid()]


def mapped():
    """The first of the uids that this user may give away (subuid(5)); its own where it has none."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    with open("/etc/subuid") as f:
        ranges = [line.strip().split(":") for line in f]
    return next((int(first) for who, first, _ in ranges if who == me), os.geteuid())


def probe(t, d, where, flags, script, inside):
    p = t.popen([durward.program(), "run", "-c", d.conf, "--no-bind"] + flags +
                ["--", "/usr/bin/python3", script], cwd=d.work, stdin=-1, stdout=-1,
                stderr=open(d.log, "ab"), env=dict(d.env, HOST_VARIABLE=SECRET))
    line = p.stdout.readline()
    if not line:
        t.ok(False, "the probe in the %s answers" % where, d.diagnostics())
        return
    mine = set()
    for pid, text in tap.descendants(p.pid):
        if script in text:
            with open("/proc/%d/status" % pid) as f:
                mine |= {int(x) for l in f if l.startswith("Uid:") for x in l.split()[1:]}
    judge(t, where, json.loads(line), inside, sorted(mine))
    p.stdin.close()
    t.eq(p.wait(10), 0, "the probe in the %s ends" % where)


def all_parts(t):
    d = durward.Durward(t)
    d.policies = {"p": {"rules": [], "sandbox": {"root": "writable"}}}
    d.save()
    inside = os.path.join(durward.INSIDE, "rooted.py")
    probe(t, d, "layer", ["--bind", "%s:/opt/rooted.py:ro" % inside], "/opt/rooted.py",
          os.geteuid())
    r = d.command("image", "import", "-c", d.conf, python_image(t), "harm")
    t.ok(r.returncode == 0, "the image can be imported", r.stderr)
    probe(t, d, "image", ["--image", "harm"], "/usr/rooted.py", 0)
    d.command("image", "rm", "-c", d.conf, "harm")


tap.run(lambda t: person.each(t, all_parts, mapped=True), timeout=120)
