#!/usr/bin/python3 -B
"""Volumes: what sandboxes write to them outlives sandboxes and daemon, within a bound; who may mount
one, how often, and what a sandbox cannot do to another's; snapshots, clones, restores, archives;
SIGKILLs of controller and builder while they are made. As root and as an ordinary user."""
import concurrent.futures
import json
import os
import signal
import struct
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, person, tap  # noqa: E402

VOL, BOX = "/v1/volumes", "/v1/sandboxes"
MIB = 1 << 20
PYTHON = "/usr/bin/python3"


def volume(c, name, **kw):
    return c.ask("POST", VOL, dict({"name": name, "policy": "p"}, **kw))


def show(c, name):
    return c.ask("GET", "%s/%s" % (VOL, name))


def remove(c, name):
    return c.ask("DELETE", "%s/%s" % (VOL, name))


def names(c):
    return [v["name"] for v in c.ask("GET", VOL)["volumes"]]


def box(c, *volumes, **kw):
    return c.create(**dict({"policy": "p", "volumes": list(volumes)}, **kw))["id"]


def out(c, sid, command):
    return c.sh(sid, command)[1].decode()


def state(d):
    return os.path.join(d.dir, "state", "volumes")


def files(t, d, c):
    made = volume(c, "work", size=64 * MIB, labels={"team": "a"})
    t.eq((made["name"], made["policy"], made["state"], made["size"], made["access"], made["labels"], made["mounted"]),
         ("work", "p", "ready", 64 * MIB, "one", {"team": "a"}, []), "a volume")
    one = box(c, "work:/data")
    t.eq(c.show(one)["volumes"], ["work:/data"], "a sandbox says what it has")
    t.eq(show(c, "work")["mounted"], [{"sandbox": one, "path": "/data", "read_only": False}], "so does the volume")
    t.eq(out(c, one, "cd /data && stat -c '%u %g %a' . && mkdir -p a/b && echo hello >a/b/f && ln -s a/b/f link && "
                     "ln a/b/f hard && chmod 741 a/b && touch -d @1000000000 a && id -u"),
         "%s 755\n%s\n" % (" ".join([out(c, one, "id -u").strip(), out(c, one, "id -g").strip()]),
                           out(c, one, "id -u").strip()), "owned by who is in the sandbox")
    t.eq(out(c, one, "stat -c '%u' /data/a/b/f"), out(c, one, "id -u"), "so is what it writes")
    look = "cd /data && cat a/b/f link hard && stat -c '%a %h %Y' a/b hard a && readlink link"
    want = out(c, one, look)
    t.eq(out(c, one, "df -k --output=size /data | tail -1").split(), ["65536"], "df says the bound")
    c.delete(one)
    two = box(c, "work:/data:ro")
    t.eq(out(c, two, look), want, "it outlives its sandbox: bytes, modes, links, times")
    t.has(out(c, two, "echo x >/data/new; rm /data/hard; mv /data/a /data/z; chmod 700 /data/a; truncate -s 0 /data/hard"),
          "Read-only file system", "read-only is so")
    t.eq(out(c, two, look), want, "and nothing is changed")
    c.delete(two)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends")
    d.serve()
    three = box(c, "work:/deep/down/here")
    t.eq(out(c, three, look.replace("/data", "/deep/down/here")), want, "it outlives the daemon")
    t.ok(0 < show(c, "work")["used"] < 1 * MIB, "used is said", show(c, "work"))
    c.delete(three)
    remove(c, "work")
    t.eq((names(c), tap.wait_for(lambda: os.listdir(state(d)) == [], 10, 0.1)), ([], True), "removed, nothing is left")
    for what in ("volume_created", "volume_deleted"):
        t.ok(d.wait_records(1, "lifecycle", event=what, target="work", detail="p"), "recorded: " + what)


FILL = r'''
import errno, os, sys
os.chdir("/data")
def full(fn):
    try:
        fn()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
def write(name, n, at=0):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        while n:
            w = os.pwrite(fd, b"x" * min(n, 1 << 18), at)
            n -= w; at += w
    finally:
        os.close(fd)
M = 1 << 18
print(full(lambda: write("big", 9 * M)), os.stat("big").st_size <= 8 * M)
os.unlink("big")
print(full(lambda: write("big", 6 * M)))
os.truncate("big", 0)
print(full(lambda: write("again", 6 * M)))
print(full(lambda: os.truncate("big", 64 * M)), full(lambda: write("hole", 1, 1 << 40)))
fd = os.open("again", os.O_RDWR)
os.unlink("again")
print(full(lambda: write("third", 6 * M)), "while it is open")
os.unlink("third")
os.close(fd)
print(full(lambda: write("third", 6 * M)), "when it is closed")
os.link("third", "fourth"); os.unlink("third")
print(full(lambda: write("fifth", 6 * M)), "by its other name")
for f in ("fifth", "fourth", "big", "hole"):
    if os.path.exists(f): os.unlink(f)
fd = os.open("pre", os.O_RDWR | os.O_CREAT)
print(full(lambda: os.posix_fallocate(fd, 0, 32 * M)), full(lambda: os.posix_fallocate(fd, 0, 4 * M)))
os.close(fd); os.unlink("pre")
n = 0
try:
    while n < 5000:
        os.mkdir("d%d" % n); n += 1
except OSError as e:
    print(errno.errorcode[e.errno], 240 <= n <= 256)
for i in range(n): os.rmdir("d%d" % i)
n = 0
open("one", "w").close()
try:
    while n < 5000:
        os.link("one", "l%d" % n); n += 1
except OSError as e:
    print(errno.errorcode[e.errno], 470 <= n <= 512)
for i in range(n): os.unlink("l%d" % i)
n = 0
try:
    while n < 5000:
        os.symlink("x" * 4000, "s%d" % n); n += 1
except OSError as e:
    print(errno.errorcode[e.errno], 220 <= n <= 256)
for i in range(n): os.unlink("s%d" % i)
import mmap
write("m", 4 * M)
fd = os.open("m", os.O_RDWR)
m = mmap.mmap(fd, 4 * M); m[4 * M - 1] = 65; m.flush(); m.close(); os.close(fd)
write("old", 2 * M)
os.rename("m", "old")
print(full(lambda: write("new", 3 * M)), "what was renamed over is given back")
with open("new", "w"): pass
with open("ap", "ab", buffering=0) as f:
    print(full(lambda: [f.write(b"y" * M) for _ in range(9)]))
for f in os.listdir("."): os.unlink(f)
'''
FILLED = ("ENOSPC True\ndone\ndone\nENOSPC ENOSPC\nENOSPC while it is open\ndone when it is closed\n"
          "ENOSPC by its other name\nENOSPC done\nENOSPC True\nENOSPC True\nENOSPC True\n"
          "done what was renamed over is given back\nENOSPC\n")


def directories(d, name):
    """What its directories count."""
    return sum(-(-os.stat(base).st_size // 4096) * 4096 for base, _, _ in os.walk(os.path.join(state(d), name, "root")))


def servers(d):
    """The processes that serve volumes."""
    found = []
    for pid, _ in tap.descendants(d.daemon.pid):
        try:
            with open("/proc/%d/comm" % pid) as f:
                found += [pid] if "durward-view" in f.read() else []
        except OSError:  # it has just ended
            pass
    return found


EMPTIED = r'''
import errno, os
os.chdir("/data")
try:
    for k in range(30):
        os.mkdir("d%d" % k)
        for i in range(120): open("d%d/%s%d" % (k, "x" * 240, i), "w").close()
        for f in os.listdir("d%d" % k): os.unlink("d%d/%s" % (k, f))
    print("no end")
except OSError as e:
    print(errno.errorcode[e.errno])
'''
AGAIN = r'''
import errno, os, resource
os.chdir("/data")
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
fds = [os.open("f", os.O_RDWR | os.O_CREAT)]
try:
    while len(fds) < 4200: fds.append(os.open("f", os.O_RDWR))
    print("no end")
except OSError as e:
    print(errno.errorcode[e.errno], len(fds) if hard > 4200 else "of its own")
try: os.listdir(".")
except OSError as e: print(errno.errorcode[e.errno])
os.rename("f", "g"); os.link("g", "h"); os.unlink("h")
for fd in fds: os.close(fd)
os.unlink("g")
print(os.listdir("."))
'''


def kept(t, d, c):
    """What a directory keeps of what it held; and the count when much is open."""
    volume(c, "kept", size=MIB)
    one = box(c, "kept:/data")
    c.write(one, "/workspace/emptied.py", EMPTIED.encode())
    t.eq(out(c, one, PYTHON + " /workspace/emptied.py 2>&1"), "ENOSPC\n", "directories that were emptied count what they keep")
    kept = int(out(c, one, "du -s -B1 /data | cut -f1"))
    t.ok(kept <= MIB, "the bound holds on the disk, directories too", kept)
    c.sh(one, "rm -r /data/*")
    t.eq(show(c, "kept")["used"], directories(d, "kept"), "they are given back when they go")
    c.write(one, "/workspace/again.py", AGAIN.encode())
    got = out(c, one, PYTHON + " /workspace/again.py 2>&1")
    if got.startswith("EMFILE"):
        t.skip("one file, opened 4096 times", "a process here may not have so many")
    else:
        t.eq(got, "ENFILE 4096\nENFILE\n[]\n", "one file may be opened 4096 times, directories among them")
    t.eq(show(c, "kept")["used"], directories(d, "kept"), "and the count is right afterwards")
    c.delete(one)
    remove(c, "kept")


def peer(t, d, c):
    """What one process that serves a volume could do to those that serve it for other sandboxes."""
    volume(c, "peers", size=MIB, access="many")
    a, b = box(c, "peers:/data"), box(c, "peers:/data")
    usage = os.path.join(state(d), "peers", "usage")
    c.sh(a, "echo x >/data/f")
    with open(usage, "r+b") as f:
        f.seek(8)
        f.write(struct.pack("<q", -(1 << 62)))
    t.has(out(c, b, "echo y >/data/g; head -c 2m /dev/zero >/data/h; stat -c %s /data/h"), "No space left",
          "a count that cannot be true counts as full")
    os.truncate(usage, 0)
    t.eq(out(c, b, "echo y >/data/g; cat /data/f; cat /data/f").count("Input/output error"), 3,
         "what all share is cut off: an error, and no end of those who serve")
    t.eq(out(c, a, "ls /data"), out(c, b, "ls /data"), "which still answer")
    t.eq(out(c, b, "stat -c %s /data/f"), "2\n", "all that needs no count")
    t.ok(tap.wait_for(lambda: len(servers(d)) == 2, 10, 0.1), "two processes serve it", servers(d))
    pids = servers(d)
    maps = "".join(open("/proc/%d/maps" % p).read() for p in pids) if os.geteuid() == 0 else ""
    t.ok(" rw-s " not in maps, "and share no memory to write")
    c.delete(a)
    c.delete(b)
    t.ok(tap.wait_for(lambda: not servers(d), 10, 0.1), "with the last of both nobody serves it", servers(d))
    a = box(c, "peers:/data")
    t.eq(out(c, a, "cat /data/f; echo z >>/data/f; cat /data/f"), "x\nx\nz\n", "who mounts it next counts anew")
    c.delete(a)
    remove(c, "peers")


def bound(t, d, c):
    """What one can do to have more than the bound, and that what is removed is given back."""
    volume(c, "small", size=2 * MIB)
    one = box(c, "small:/data")
    c.write(one, "/workspace/fill.py", FILL.encode())
    for i in range(2):
        got = out(c, one, PYTHON + " /workspace/fill.py 2>&1")
        t.eq(got, FILLED, "the bound holds, and nothing is lost of it (%d)" % i)
        t.eq(show(c, "small")["used"], directories(d, "small"), "all of it is given back")
    on_disk = int(out(c, one, "head -c 1792k /dev/zero >/data/z; du -sk /data | cut -f1")) * 1024
    t.ok(on_disk <= 2 * MIB, "it holds on the disk", on_disk)
    used = show(c, "small")["used"]
    t.ok(tap.wait_for(lambda: len(servers(d)) == 1, 10, 0.1), "one process serves it", servers(d))
    pid = servers(d)
    c.sh(one, "(exec 3>/data/gone; head -c 120k /dev/zero >&3; rm /data/gone; echo on; sleep 100) >/dev/null 2>&1 & sleep 0.3")
    t.ok(show(c, "small")["used"] > used, "what is open counts")
    os.kill(pid[0], signal.SIGKILL)
    t.ok(c.sh(one, "cat /data/z | wc -c")[1] != b"1835008\n", "without its process a volume cannot be read")
    c.delete(one)
    two = box(c, "small:/data")
    t.eq(show(c, "small")["used"], used, "whoever mounts it next counts anew")
    c.delete(two)
    remove(c, "small")


def who(t, d, c):
    volume(c, "one")
    volume(c, "many", access="many", size=16 * MIB)
    volume(c, "theirs", policy="q")
    a = box(c, "one:/one", "many:/many")
    t.eq(api.refused(box, c, "one:/one"), (409, "conflict"), "a second writer is refused")
    b = box(c, "one:/one:ro", "many:/many")
    c.sh(a, "echo a >/one/f; echo a >/many/a")
    t.eq(out(c, b, "cat /one/f /many/a; echo b >/many/b; (echo b >/one/g) 2>/dev/null"), "a\na\n", "readers, and several writers")
    t.eq(out(c, a, "sleep 1.1; cat /many/b; ls /one"), "b\nf\n", "see one another's")
    put = "for i in $(seq 300); do echo %s-$i >>/many/log; done"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        k = api.Api(d.socket)
        list(pool.map(lambda x: x[0].sh(x[1], put % x[2]), [(c, a, "a"), (k, b, "b")]))
        k.close()
    lines = sorted(c.read(a, "/many/log").decode().split())
    t.eq(lines, sorted("%s-%d" % (x, i) for x in "ab" for i in range(1, 301)), "no line appended by two is lost")
    t.eq(api.refused(remove, c, "one"), (409, "volume_in_use"), "what is mounted is not removed")
    c.ask("POST", "%s/%s/stop" % (BOX, b))
    t.eq(api.refused(remove, c, "one"), (409, "volume_in_use"), "nor what a stopped one has")
    c.delete(a)
    for what, volumes, want in (("another policy's", ["theirs:/x"], (400, "bad_request")),
                                ("none", ["none:/x"], (400, "bad_request")),
                                ("no path", ["one"], (400, "bad_request")), ("a relative one", ["one:x"], (400, "bad_request")),
                                ("a path with ..", ["one:/a/../b"], (400, "bad_request")),
                                ("a name with a slash", ["../one:/x"], (400, "bad_request")),
                                ("twice one", ["one:/x", "one:/y"], (400, "bad_request")),
                                ("twice a path", ["one:/x:ro", "many:/x"], (400, "bad_request")),
                                ("nine", ["one:/%d:ro" % i for i in range(9)], (400, "bad_request")),
                                ("no list", {"one": "/x"}, (400, "bad_request")),
                                ("/etc", ["one:/etc:ro"], (503, "create_failed")),
                                ("/proc/x", ["one:/proc/x:ro"], (503, "create_failed")),
                                ("/", ["one:/"], (400, "bad_request"))):
        t.eq(api.refused(lambda: c.create(policy="p", volumes=volumes)), want, "refused: " + what)
    for body in ({"name": "../x"}, {"name": "x", "size": 0}, {"name": "x", "access": "none"}, {"name": "x", "policy": "none"},
                 {"name": "x", "from": "none"}, {}):
        t.eq(api.refused(lambda: c.ask("POST", VOL, dict({"policy": "p"}, **body))), (400, "bad_request"),
             "refused: %s" % body)
    t.eq(api.refused(volume, c, "one"), (409, "conflict"), "a name is taken once")
    t.eq(volume(c, "one", get_or_create=True)["name"], "one", "or used")
    t.eq(api.refused(c.create, policy="declared"), (503, "create_failed"), "a policy's volume that is not there")
    volume(c, "mine", policy="declared")
    p = c.create(policy="declared")["id"]
    t.eq(out(c, p, "echo x >/mine/f; cat /mine/f"), "x\n", "a policy's own volume is mounted")
    t.eq(api.refused(remove, c, "mine"), (409, "volume_in_use"), "and not removed")
    c.delete(p)
    remove(c, "mine")
    c.delete(b)
    for n in ("one", "many", "theirs"):
        remove(c, n)


RACE = r'''
import os, sys, threading, time
os.chdir("/data")
os.makedirs("d", exist_ok=True)
open("d/f", "w").write("mine")
end = time.time() + 3
def swap():
    while time.time() < end:
        try:
            os.rename("d", "e"); os.symlink("/proc/self/root/../../other/root", "d"); os.unlink("d"); os.rename("e", "d")
        except OSError: pass
threading.Thread(target=swap).start()
seen = set()
while time.time() < end:
    for path in ("d/f", "d/../../other/root/f", "../other/root/f", "../../volumes/other/root/f"):
        try: seen.add(open(path).read())
        except OSError: pass
print(sorted(seen))
'''


def paused(t, d, c):
    """Who serves a volume is frozen with its sandbox, but never while it holds the lock that others need."""
    volume(c, "shared", access="many", size=16 * MIB)
    a, b = box(c, "shared:/v"), box(c, "shared:/v")
    if api.refused(c.ask, "POST", "/v1/sandboxes/%s/pause" % a) == (501, "unsupported"):
        t.skip("paused", "there is no cgroup freezer here that we may use")
    else:
        c.ask("POST", "/v1/sandboxes/%s/resume" % a)
        busy = "for n in 1 2 3 4; do (while :; do : >/v/a$n; rm /v/a$n; done) & done"
        c.sh(a, "(%s) >/dev/null 2>&1" % busy)
        wrong = []
        for n in range(20):
            c.ask("POST", "/v1/sandboxes/%s/pause" % a)
            began = time.monotonic()
            code, text = c.sh(b, "echo %d >/v/b && rm /v/b" % n)
            if code or time.monotonic() - began > 3:
                wrong.append("%d: %r after %.1f s" % (code, text, time.monotonic() - began))
            c.ask("POST", "/v1/sandboxes/%s/resume" % a)
        t.ok(not wrong, "who is paused holds no lock of a volume: another one writes, each of 20 times", *wrong)
    for sid in (a, b):
        c.delete(sid)
    remove(c, "shared")


def apart(t, d, c):
    """A sandbox has no way from its volume into another's."""
    volume(c, "mine")
    volume(c, "other")
    a, b = box(c, "mine:/data"), box(c, "other:/data")
    c.sh(b, "echo secret >/data/f")
    links = ("../other/root/f", "../../other/root/f", os.path.join(state(d), "other/root/f"), "/proc/1/root/data/f")
    for i, to in enumerate(links):
        t.eq(out(c, a, "ln -s %s /data/l%d; cat /data/l%d 2>&1 | grep -c secret" % (to, i, i)), "0\n", "no way by a link: " + to)
    c.write(a, "/workspace/race.py", RACE.encode())
    t.eq(out(c, a, PYTHON + " /workspace/race.py"), "['mine']\n", "nor by names that change meanwhile")
    t.ok(out(c, a, "mknod /data/dev c 1 3 2>&1; chmod 4755 /data/l9 2>&1; touch /data/s; chmod 4755 /data/s; stat -c %a /data/s").endswith("644\n"),
         "no device, no set-uid")
    c.sh(a, "rm -rf /data/* ; echo x >/data/f")
    t.eq(out(c, b, "cat /data/f"), "secret\n", "the other's is whole")
    c.sh(a, "mkdir /mnt/x 2>/dev/null; echo '-----BEGIN OPENSSH PRIVATE KEY-----' >/data/id_rsa; mkdir /data/.aws; echo k >/data/.aws/credentials")
    c.delete(a)
    a = box(c, "mine:/data")
    t.eq(out(c, a, "cat /data/id_rsa /data/.aws/credentials"), "-----BEGIN OPENSSH PRIVATE KEY-----\nk\n",
         "what sandboxes wrote is theirs, whatever it is called")
    # a link in the place where it is to be mounted
    c.sh(a, "rm -rf /opt/there; mkdir -p /workspace/t; ln -s /workspace/t /opt/there")
    c.delete(a)
    c.delete(b)
    remove(c, "mine")
    remove(c, "other")


OPENS = r'''
import errno, os, resource
os.chdir("/data")
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
fds = []
try:
    while len(fds) < 4200: fds.append(os.open("f%d" % len(fds), os.O_RDWR | os.O_CREAT))
    print("no end")
except OSError as e:
    print(errno.errorcode[e.errno], len(fds) if hard > 4200 else "of its own")
while fds: os.close(fds.pop())
os.close(os.open("f0", os.O_RDONLY))
print("closed, it goes on")
'''


def bounds(t, d, c):
    """Mounts of one volume, and files that one of them has open."""
    volume(c, "full", size=64 * MIB)
    one = box(c, "full:/data")
    c.write(one, "/workspace/opens.py", OPENS.encode())
    got = out(c, one, PYTHON + " /workspace/opens.py 2>&1")
    if got.startswith("EMFILE"):
        t.skip("4096 open files", "a process here may not have so many")
    else:
        t.eq(got, "ENFILE 4096\nclosed, it goes on\n", "4096 of its files may be open in a sandbox")
    boxes = [one]
    try:
        while len(boxes) < 40:
            boxes.append(box(c, "full:/data:ro"))
        t.ok(False, "there is an end of mounts")
    except api.Refused as e:
        t.ok(len(boxes) == 32 and "32 sandboxes already" in str(e), "32 sandboxes have it at once, the next is not made",
             len(boxes), str(e))
    t.eq(out(c, boxes[-1], "ls /data | wc -l").strip() != "", True, "the others go on")
    for sid in boxes:
        c.delete(sid)
    remove(c, "full")


def copies(t, d, c):
    volume(c, "base", size=16 * MIB)
    a = box(c, "base:/data")
    c.sh(a, "cd /data; mkdir m; for i in $(seq 200); do echo $i >m/f$i; done; head -c 3m /dev/urandom >r; ln r s; "
            "find . -type f | sort | xargs sha256sum >/workspace/sums; cp /workspace/sums sums")
    check = "cd /data && sha256sum --quiet -c sums && echo whole"
    snap = c.ask("POST", VOL + "/base/snapshot", {"name": "snap"})
    t.eq((snap["name"], snap["snapshot_of"], snap["state"], snap["policy"]), ("snap", "base", "ready", "p"), "a snapshot")
    t.eq(api.refused(box, c, "snap:/x:ro"), (400, "bad_request"), "which nobody mounts")
    c.sh(a, "cd /data; echo changed >r; rm -r m")
    t.eq(api.refused(c.ask, "POST", VOL + "/base/restore", {"snapshot": "snap"}), (409, "volume_in_use"),
         "what is mounted is not restored")
    c.ask("POST", "%s/%s/stop" % (BOX, a))
    t.eq(c.ask("POST", VOL + "/base/restore", {"snapshot": "snap"})["state"], "ready", "restore")
    t.eq(out(c, a, check), "whole\n", "the files are what they were; the sandbox goes on with them")
    clone = volume(c, "clone", **{"from": "snap"})
    t.eq((clone["size"], clone["snapshot_of"]), (16 * MIB, None), "a clone")
    b = box(c, "clone:/data")
    t.eq(out(c, b, check), "whole\n", "has the same files")
    c.sh(b, "echo other >/data/r")
    t.eq(out(c, a, check), "whole\n", "which are its own")
    t.eq(api.refused(volume, c, "tiny", size=MIB, **{"from": "base"}), (400, "bad_request"), "a clone is not smaller")
    t.eq(api.refused(c.ask, "POST", VOL + "/base/restore", {"snapshot": "clone"}), (404, "volume_not_found"),
         "only a snapshot is restored")
    path = os.path.join(d.work, "base.tar")
    r = d.command("volume", "export", "--socket", d.socket, "base", "-o", path)
    t.eq((r.returncode, r.stdout), (0, path + "\n"), "export") or t.diag(r.stderr)
    with tarfile.open(path) as f:
        got = f.extractfile("root/m/f7").read() if "root/m/f7" in f.getnames() else f.getnames()[:5]
    t.eq(got, b"7\n", "an archive with its files")
    c.delete(a)
    c.delete(b)
    for n in ("base", "clone", "snap"):
        remove(c, n)


def command(t, d, c):
    def run(*args):
        return d.command("volume", args[0], "--socket", d.socket, *args[1:])
    r = run("create", "--policy", "p", "--size", "32MiB", "--label", "a=b", "hand")
    t.eq((r.returncode, r.stdout), (0, "hand\n"), "volume create") or t.diag(r.stderr)
    t.ok(run("create", "--policy", "p", "hand").returncode == 1 and
         run("create", "--policy", "p", "--get-or-create", "hand").returncode == 0, "a name twice, and --get-or-create")
    r = d.command("sandbox", "create", "--socket", d.socket, "--policy", "p", "--volume", "hand:/data")
    sid = r.stdout.strip()
    t.eq(r.returncode, 0, "sandbox create --volume") or t.diag(r.stderr)
    c.sh(sid, "echo by hand >/data/f")
    t.has(run("show", "hand").stdout, "mounted     %s at /data" % sid, "volume show")
    t.ok(run("rm", "hand").returncode == 1, "volume rm of what is mounted")
    r = d.run(["cat", "/v/f"], flags=("--policy", "p", "--volume", "hand:/v:ro"), save=False)
    t.eq((r.returncode, r.stdout), (0, "by hand\n"), "durward run --volume, beside a sandbox of the daemon's") or t.diag(r.stderr)
    r = d.run(["true"], flags=("--policy", "p", "--volume", "hand:/v"), save=False)
    t.ok(r.returncode == 125 and "for writing in another sandbox" in r.stderr, "not for writing", r.stderr)
    r = d.run(["true"], flags=("--policy", "q", "--volume", "hand:/v:ro"), save=False)
    t.ok(r.returncode == 125 and "there is no volume 'hand' of the policy 'q'" in r.stderr, "nor by another policy", r.stderr)
    c.delete(sid)
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "p", "--volume", "hand:/v", "--", "sh", "-c",
                 "echo run >>/v/f; echo on; exec cat"], cwd=d.work, env=d.env, stdin=-1, stdout=-1, stderr=open(d.log, "ab"))
    t.eq(p.stdout.readline(), b"on\n", "durward run --volume, for writing")
    r = run("rm", "hand")
    t.ok(r.returncode == 1 and "mounted" in r.stderr, "what a run has mounted is not removed", r.stderr)
    p.stdin.close()
    t.eq(p.wait(20), 0, "its end")
    for args, want in ((("snapshot", "hand", "hand-1"), "hand-1\n"), (("restore", "hand", "hand-1"), "hand\n"),
                       (("clone", "hand", "hand-2"), "hand-2\n")):
        r = run(*args)
        t.eq((r.returncode, r.stdout), (0, want), "volume " + args[0]) or t.diag(r.stderr)
    rows = {x["name"]: x for x in json.loads(run("ls", "--json").stdout)}
    t.eq((sorted(rows), rows["hand-1"]["snapshot_of"]), (["hand", "hand-1", "hand-2"], "hand"), "volume ls --json")
    sid = box(c, "hand-2:/data")
    t.eq(out(c, sid, "cat /data/f"), "by hand\nrun\n", "a run's writing is kept")
    c.delete(sid)
    t.eq(run("rm", "hand", "hand-1", "hand-2").returncode, 0, "volume rm")


DEEP = r'''
import os
for k in range(3):
    os.chdir("/data")
    os.mkdir("deep%d" % k); os.chdir("deep%d" % k)
    for i in range(700):
        os.mkdir("n"); os.chdir("n")
    open("last", "w").close()
os.chdir("/data")
for i in range(50): os.mkdir("e%d" % i)
'''
CHURN = r'''
import os
os.makedirs("/data/c", exist_ok=True)
os.chdir("/data/c")
os.write(1, b"on\n")
while True:
    for i in range(60):
        with open("f%d" % i, "w") as f: f.write("x")
        if i % 9 == 0: os.symlink("x", "l%d" % i); os.mkdir("d%d" % i)
        if i % 7 == 0: os.link("f%d" % i, "m%d" % i)
    for f in os.listdir("."): os.rmdir(f) if f[0] == "d" else os.unlink(f)
'''


def corners(t, d, c):
    """Trees that are deep, larger than they may be, written to meanwhile, or of no row."""
    volume(c, "odd", size=64 * MIB)
    a = box(c, "odd:/data")
    c.write(a, "/workspace/deep.py", DEEP.encode())
    t.eq(out(c, a, PYTHON + " /workspace/deep.py 2>&1"), "", "directories 700 deep")
    c.delete(a)
    remove(c, "odd")
    t.ok(tap.wait_for(lambda: os.listdir(state(d)) == [], 15, 0.2), "are removed with all the rest", os.listdir(state(d)))

    volume(c, "large", size=MIB)
    a = box(c, "large:/data")
    c.sh(a, "echo x >/data/f")
    with open(os.path.join(state(d), "large", "root", "more"), "wb") as f:
        f.write(b"x" * 2 * MIB)
    refused = api.refused(c.ask, "POST", VOL + "/large/snapshot", {"name": "larger"})
    t.eq(refused, (503, "volume_failed"), "no copy is larger than the volume may be")
    t.ok(tap.wait_for(lambda: "larger" not in names(c), 10, 0.1), "what there was of it goes")
    os.unlink(os.path.join(state(d), "large", "root", "more"))
    p = t.popen([durward.program(), "volume", "snapshot", "--socket", d.socket, "large", "fits"], cwd=d.work, env=d.env)
    t.eq(p.wait(20), 0, "one that fits is made")
    c.write(a, "/workspace/churn.py", CHURN.encode())
    c.sh(a, PYTHON + " /workspace/churn.py >/workspace/on 2>&1 & until [ -s /workspace/on ]; do sleep 0.05; done")
    t.eq(out(c, a, "cat /workspace/on"), "on\n", "names come and go")
    path = os.path.join(d.work, "large.tar")
    bad = []
    for _ in range(20):
        r = d.command("volume", "export", "--socket", d.socket, "large", "-o", path)
        if r.returncode:
            bad.append(r.stderr)
        else:
            with tarfile.open(path) as f:
                f.getmembers()
            os.unlink(path)
    t.eq(bad, [], "what is written to meanwhile is exported")
    c.delete(a)
    remove(c, "fits")
    remove(c, "large")

    volume(c, "first", policy="q")
    subprocess.check_call(["cp", "-a", os.path.join(state(d), "first"), os.path.join(state(d), "second")])
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "q", "--volume", "second:/v", "--", "sh", "-c",
                 "echo theirs >/v/f; echo on; exec cat"], cwd=d.work, env=d.env, stdin=-1, stdout=-1, stderr=open(d.log, "ab"))
    t.eq(p.stdout.readline(), b"on\n", "files of no row, mounted by a run of another policy")
    t.eq(api.refused(volume, c, "second"), (503, "volume_failed"), "a volume of their name is not made")
    t.ok(tap.wait_for(lambda: "second" not in names(c), 10, 0.1), "and its row goes", c.ask("GET", VOL))
    p.stdin.close()
    t.eq(p.wait(20), 0, "the run's end")
    t.eq(api.refused(volume, c, "second"), (503, "volume_failed"), "once nobody has them the next one removes them")
    t.ok(tap.wait_for(lambda: "second" not in names(c), 10, 0.1), "with its row")
    # an export asks for the policy's
    with open(os.path.join(state(d), "first", "about"), "w") as f:
        f.write("p %d one" % MIB)
    r = d.command("volume", "export", "--socket", d.socket, "first", "-o", path)
    t.ok(r.returncode == 1, "no files of another policy are exported", r.stderr)
    t.eq(api.refused(volume, c, "third", policy="q", **{"from": "first"}), (503, "volume_failed"), "or copied")
    remove(c, "first")
    t.ok(tap.wait_for(lambda: os.listdir(state(d)) == [], 15, 0.2), "nothing is left of them", os.listdir(state(d)))


TASKS = r'''
import os, signal
pids = []
try:
    while len(pids) < 200:
        pid = os.fork()
        if pid == 0: signal.pause()
        pids.append(pid)
except OSError: pass
print(len(pids))
for p in pids: os.kill(p, 9); os.waitpid(p, 0)
'''


def tasks(t, d, c):
    """Those who serve volumes do not count for the sandbox."""
    said = []
    for k in range(4):
        volume(c, "t%d" % k, policy="few")
    for n in (0, 4):
        a = box(c, *["t%d:/t%d" % (k, k) for k in range(n)], policy="few")
        c.write(a, "/workspace/tasks.py", TASKS.encode())
        said.append(int(out(c, a, PYTHON + " /workspace/tasks.py")))
        c.delete(a)
    if said[0] > 40:
        t.skip("processes beside volumes", "nothing holds pids here: %s" % said)
    else:
        t.eq(said[1], said[0], "a sandbox with four volumes may have as many processes")
    for k in range(4):
        remove(c, "t%d" % k)


def steady(d, role):
    """The role's process once it has run for a while: one that was just killed may still be listed."""
    def old():
        for pid, r in d.roles():
            if r == role:
                with open("/proc/%d/stat" % pid) as f:
                    words = f.read().rpartition(")")[2].split()
                start = int(words[19]) / os.sysconf("SC_CLK_TCK")
                if words[0] not in "ZX" and time.clock_gettime(time.CLOCK_BOOTTIME) - start > 1.1:
                    return pid
        return None

    def found():
        try:
            return old()
        except OSError:  # it has just ended
            return None
    return tap.wait_for(found, 10, 0.05)


def deaths(t, d, c):
    """Killed while files are made or copied: all or nothing."""
    volume(c, "whole")
    a = box(c, "whole:/data", idle_ttl=0)
    c.sh(a, "cd /data; mkdir m; for i in $(seq 500); do echo $i >m/f$i; done; find m -type f | sort | xargs sha256sum >sums")
    c.ask("POST", VOL + "/whole/snapshot", {"name": "kept"})
    c.delete(a)
    n = 0
    for role, waits in (("controller", (0, 0.05)), ("builder", (0.02, 0.1))):
        for wait in waits:
            for path, body in ((VOL, {"name": "n%d", "from": "whole"}), (VOL + "/whole/snapshot", {"name": "s%d"}),
                               (VOL + "/whole/restore", {"snapshot": "kept"}), (VOL, {"name": "e%d", "policy": "p"})):
                n += 1
                body = {k: v % n if "%" in v else v for k, v in body.items()}
                pid = steady(d, role)
                k = api.Api(d.socket, timeout=10)
                k.conn.request("POST", path, json.dumps(body), {})
                time.sleep(wait)
                os.kill(pid, signal.SIGKILL)
                c.close()
                k.close()

                def settled():
                    try:
                        return all(v["state"] == "ready" for v in c.ask("GET", VOL)["volumes"])
                    except (OSError, api.Refused, ValueError, EOFError):
                        c.close()
                        return False
                if not t.ok(tap.wait_for(settled, 20, 0.1), "%s killed %.2f s after %s: it settles" % (role, wait, path)):
                    t.diag(d.diagnostics())
                    return
    tap.wait_for(lambda: not api.refused(lambda: c.delete(c.create(policy="p")["id"])), 20, 0.2)
    for v in c.ask("GET", VOL)["volumes"]:
        if v["snapshot_of"] is None and not v["name"].startswith("e"):
            a = box(c, v["name"] + ":/data")
            t.eq(out(c, a, "cd /data && sha256sum --quiet -c sums && echo whole"), "whole\n", "what is ready is whole: " + v["name"])
            c.delete(a)
        remove(c, v["name"])
    t.ok(tap.wait_for(lambda: os.listdir(state(d)) == [], 15, 0.2), "nothing is left", os.listdir(state(d)), d.diagnostics())


# What makes and removes thousands of files is the same for every ordinary user but one with uids of /etc/subuid.
LONG, LONG_FOR = (bounds, corners, deaths), (person.ROOT, person.BOTH)


def each(t):
    d = durward.Durward(t, "d")
    d.policy("p", [])
    d.policy("q", [])
    d.policies["few"] = {"rules": [], "sandbox": {"pids": 40}}
    d.policies["declared"] = {"rules": [], "sandbox": {"volumes": ["mine:/mine"]}}
    d.serve()
    c = api.Api(d.socket)
    c.delete(c.first(policy="p"))
    volume(c, "try", policy="p")
    try:
        c.delete(box(c, "try:/data"))
    except api.Refused as e:
        remove(c, "try")
        t.has(str(e), "FUSE", "where /dev/fuse cannot be opened no volume is mounted")
        t.skip("volumes", "FUSE cannot be mounted here")
        d.stop()
        return
    remove(c, "try")
    for part in (files, bound, kept, peer, who, apart, bounds, paused, copies, corners, tasks, command, deaths):
        if part not in LONG or os.environ.get("TEST_PERSON", person.ROOT) in LONG_FOR:
            t.part(part, t, d, c)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


def main(t):
    person.each(t, each, mapped=True, fuse=True, together=True)


tap.run(main, timeout=400)
