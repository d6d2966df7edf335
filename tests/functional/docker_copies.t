#!/usr/bin/python3 -B
"""`durward run` in a container of an engine has the current directory as a copy: what it changes is
brought back, what would lead out of the directory is not, credentials are not copied, what the host
changed meanwhile stays, and what could not be brought back is kept and said."""
import json
import os
import re
import signal
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, engine, person, tap  # noqa: E402

IMAGE, SECRET = "durward-test:1", "hunter2-of-the-host"
WHERE = re.compile(r" is in (\S+?)(?:;|$)", re.M)


def read(*path):
    try:
        with open(os.path.join(*path)) as f:
            return f.read()
    except FileNotFoundError:
        return None


def write(text, *path):
    os.makedirs(os.path.dirname(os.path.join(*path)), exist_ok=True)
    with open(os.path.join(*path), "w") as f:
        f.write(text)


def names(top):
    return sorted(os.path.relpath(os.path.join(w, n), top) for w, d, f in os.walk(top) for n in d + f)


class Box:
    def __init__(self, t, d):
        self.t, self.d, self.n = t, d, 0
        self.copies = os.path.join(d.dir, "state", "copies")

    def work(self):
        """A directory of its own for each case, with a bit of everything."""
        self.n += 1
        top = self.t.mkdir("work-%d" % self.n)
        write("one\n", top, "a.txt")
        write("two\n", top, "sub", "b.txt")
        write("old\n", top, "sub", "deep", "c.txt")
        write("#!/bin/sh\necho ran\n", top, "tool")
        os.chmod(os.path.join(top, "tool"), 0o755)
        os.symlink("sub/b.txt", os.path.join(top, "link"))
        return top

    def argv(self, script, *flags):
        return [durward.program(), "run", "-c", self.d.conf, "--policy", "p", *flags, "--", "sh", "-c", script]

    def run(self, top, script, *flags, **kw):
        kw = dict({"cwd": top, "env": self.d.env, "timeout": 60, "stdin": subprocess.DEVNULL}, **kw)
        return subprocess.run(self.argv(script, *flags), capture_output=True, text=True, **kw)

    def begin(self, top, script):
        """One that waits for a line."""
        p = self.t.popen(self.argv(script + "; echo on; read x; exit 0"), cwd=top, env=self.d.env, stdin=-1, stdout=-1,
                         stderr=-1)
        line = p.stdout.readline()
        self.t.eq(line, b"on\n", "it runs") or self.t.diag(p.stderr.read().decode("utf-8", "replace"))
        return p

    def left(self):
        return sorted(os.listdir(self.copies)) if os.path.isdir(self.copies) else []


def there_and_back(t, b):
    top = b.work()
    write("K=" + SECRET, top, ".env")
    write("-----BEGIN PRIVATE KEY-----\n" + SECRET, top, "sub", "server.key")
    write(SECRET, top, "real")
    os.symlink("real", os.path.join(top, ".netrc"))
    write(SECRET, top, ".gnupg", "secring")
    os.mkfifo(os.path.join(top, "fifo"))
    r = b.run(top, "pwd; cat a.txt link sub/deep/c.txt; ./tool; grep -r hunter2 . ; ls -A | wc -l; id -u; "
                   "echo more >>a.txt; rm sub/b.txt link; mkdir -p new/dir; echo n >new/dir/n.txt; chmod 750 new/dir/n.txt; "
                   "mv sub/deep sub/deeper; ln -s new/dir/n.txt made; rm tool; mkdir tool; echo t >tool/t; exit 3")
    t.eq((r.returncode, r.stdout), (3, "%s\none\ntwo\nold\nran\n5\n0\n" % top),
         "the directory is there at its own path, without its credentials; the command's status") or t.diag(r.stderr)
    for name in (".env", "sub/server.key", "real", ".gnupg"):
        t.has(r.stderr, os.path.join(top, name), "hidden, and named: " + name)
    t.has(r.stderr, "1 sockets, devices and files", "a pipe is not copied, which is said")
    t.eq(names(top), sorted([".env", ".gnupg", ".gnupg/secring", ".netrc", "a.txt", "fifo", "made", "new", "new/dir",
                             "new/dir/n.txt", "real", "sub", "sub/deeper", "sub/deeper/c.txt", "sub/server.key", "tool",
                             "tool/t"]), "what it made, moved and removed is so on the host")
    t.eq((read(top, "a.txt"), read(top, "made"), os.readlink(os.path.join(top, "made")), read(top, ".env")),
         ("one\nmore\n", "n\n", "new/dir/n.txt", "K=" + SECRET), "with its content, and the host's own as it was")
    t.eq(stat.S_IMODE(os.stat(os.path.join(top, "new/dir/n.txt")).st_mode), 0o750, "and its mode")
    t.eq(b.left(), [], "the copy is gone")
    r = b.run(top, "true", "--json")
    said = json.loads(r.stderr.splitlines()[-1])
    t.eq(said["copied"], {"written": 0, "removed": 0, "kept": [], "left_out": [], "failed": []},
         "nothing changed: nothing is written")


def escapes(t, b):
    """The sandbox's owner wants out, by what is brought back."""
    top, outside = b.work(), t.mkdir("outside")
    write("untouched\n", outside, "target")
    r = b.run(top, "ln -s %s/target abs; ln -s ../outside/target up; mkdir d; ln -s ../sub/../../outside/target d/mid; "
                   "ln -s ../sub/b.txt d/fine; "
                   "mkdir d/e; ln -s .. d/back; ln -s ../back/../outside/target d/e/esc; "
                   "rm -r sub; ln -s %s sub; echo own >own; chmod 6755 own; "
                   "mkfifo pipe; mknod dev c 1 3 2>/dev/null; ln own twin; rm a.txt; ln -s %s/target a.txt; "
                   "printf x >'..x'; mkdir '...'" % (outside, outside, outside))
    t.eq(r.returncode, 0, "it ends well") or t.diag(r.stderr)
    t.eq(names(outside), ["target"], "nothing is written outside")
    t.eq(read(outside, "target"), "untouched\n", "nor changed there")
    links = [n for n in names(top) if os.path.islink(os.path.join(top, n))]
    t.eq(links, ["d/back", "d/fine", "link"], "a link that leads out is not brought back, one that stays is")
    for name in ("abs", "up", "d/mid", "d/e/esc", "pipe"):
        t.has(r.stderr, name, "what was left out is named: " + name)
    t.eq(os.stat(os.path.join(top, "own")).st_mode & 0o7000, 0, "no set-uid bit")
    t.eq((read(top, "twin"), os.stat(os.path.join(top, "twin")).st_nlink), ("own\n", 1), "a hard link is a file")
    t.ok(os.path.isdir(os.path.join(top, "...")) and read(top, "..x") == "x", "odd names are names")
    t.eq(b.left(), [], "no copy is kept for that")


def conflicts(t, b):
    top = b.work()
    write("K=" + SECRET, top, ".env")
    write(SECRET, top, ".gnupg", "secring")
    p = b.begin(top, "mkdir .gnupg; echo inside >.gnupg/gpg.conf; echo inside >a.txt; echo inside >sub/b.txt; rm sub/deep/c.txt; echo inside >fresh; "
                     "echo same >both; echo inside >.env; echo inside >tool")
    write("host\n", top, "a.txt")
    write("host\n", top, "sub", "deep", "c.txt")
    write("host\n", top, "fresh")
    write("same\n", top, "both")
    os.unlink(os.path.join(top, "sub", "b.txt"))
    out, err = p.communicate(b"\n", 60)
    err = err.decode()
    t.eq(p.returncode, 125, "not all is in its place: 125") or t.diag(err)
    t.eq([read(top, n) for n in ("a.txt", "sub/deep/c.txt", "fresh", "both", ".env", "tool")],
         ["host\n"] * 3 + ["same\n", "K=" + SECRET, "inside\n"], "what the host changed stays; the rest is brought back")
    t.ok(not os.path.exists(os.path.join(top, "sub", "b.txt")), "what it removed stays removed")
    t.eq(os.listdir(os.path.join(top, ".gnupg")), ["secring"], "a directory that is hidden is not written to")
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt", "fresh", ".env", ".gnupg"):
        t.has(err, name, "it is said: " + name)
    t.ok("both" not in err, "but not of what is the same at both", err)
    where = WHERE.search(err)
    t.ok(where, "where the sandbox's are", err)
    t.eq([read(where.group(1), n) for n in ("a.txt", "sub/b.txt", "fresh", ".env")], ["inside\n"] * 4,
         "and there they are")
    r = b.run(top, "true")
    t.has(r.stderr, "what an earlier run did here was not all brought back", "the next run there says so")
    r = b.run(b.work(), "true")
    t.ok("earlier run" not in r.stderr, "one elsewhere does not", r.stderr)
    t.eq(len(b.left()), 1, "until somebody removes it")
    subprocess.run(["rm", "-r", os.path.dirname(where.group(1))], check=True)


def bounds(t, b):
    top = b.work()
    with open(os.path.join(top, "huge"), "wb") as f:
        f.truncate(5 << 30)
    r = b.run(top, "true")
    t.ok(r.returncode == 125 and "too large to be copied" in r.stderr and "--workdir" in r.stderr,
         "a directory that is too large is refused, with the way out", r.stderr)
    os.unlink(os.path.join(top, "huge"))
    t.eq(b.left(), [], "and nothing is left of it")
    r = b.run(top, "dd if=/dev/zero of=huge bs=1 count=0 seek=5368709120 2>/dev/null; echo small >small")
    t.ok(r.returncode == 125 and "4096 MiB" in r.stderr and "huge" in r.stderr and not
         os.path.exists(os.path.join(top, "huge")), "so is a file that it made", r.stderr)
    t.eq(read(top, "small"), "small\n", "the rest is brought back")
    where = WHERE.search(r.stderr)
    t.eq(os.stat(os.path.join(where.group(1), "huge")).st_size, 5 << 30, "the file is where it is said to be")
    subprocess.run(["rm", "-r", os.path.dirname(where.group(1))], check=True)
    r = b.run(top, "n=0; d=x; while [ $n -lt 70 ]; do d=$d/x; n=$((n+1)); done; mkdir -p $d; echo 1 >$d/f; exit 0")
    t.has(r.stderr, "left out", "a directory too deep is left out, and said") or t.diag(r.stderr)


def binds(t, b):
    top, lib = b.work(), t.mkdir("library")
    write("lib\n", lib, "l.txt")
    r = b.run(top, "cat /lib1/l.txt; echo x >/lib1/l.txt 2>/dev/null || echo read-only; echo w >/lib2/w.txt; echo w >w.txt",
              "--bind", lib + ":/lib1:ro", "--bind", lib + ":/lib2")
    t.eq((r.returncode, r.stdout), (0, "lib\nread-only\n"), "--bind copies too; read-only is so") or t.diag(r.stderr)
    t.eq((read(lib, "l.txt"), read(lib, "w.txt"), read(top, "w.txt")), ("lib\n", "w\n", "w\n"), "each to its own place")
    for what, flags in (("a file", ["--bind", os.path.join(top, "a.txt")]), ("/etc", ["--bind", "/etc:/x"]),
                        ("over /etc/durward", ["--bind", lib + ":/etc/durward"]),
                        ("over /etc/ssl", ["--bind", lib + ":/etc/ssl"]), ("/proc", ["--bind", "/proc:/x"])):
        r = b.run(top, "true", *flags)
        t.ok(r.returncode == 125 and r.stderr, "refused: " + what, r.stderr)
    t.eq(b.left(), [], "nothing is left")


def deaths(t, b):
    """Whoever dies, what the sandbox wrote is there and said to be."""
    top = b.work()
    p = b.begin(top, "echo work >a.txt")
    pids = [q for q, text in tap.descendants(p.pid) if text.startswith("durward: controller ")]
    os.kill(pids[0], signal.SIGKILL)
    err = p.communicate(None, 60)[1].decode()
    where = WHERE.search(err)
    t.ok(p.returncode == 125 and where, "the controller killed: it is said where the work is", err)
    t.eq((read(where.group(1), "0", "a.txt"), read(top, "a.txt")), ("work\n", "one\n"),
         "there it is, and the host's is as it was")
    subprocess.run(["rm", "-r", where.group(1)], check=True)
    top = b.work()
    p = b.begin(top, "echo work >a.txt")
    p.kill()
    p.wait()
    t.ok(tap.wait_for(lambda: len(b.left()) == 1, 5, 0.1), "the command itself killed: the copy is there")
    r = b.run(top, "cat a.txt")
    where = WHERE.search(r.stderr)
    t.ok(r.stdout == "one\n" and where and read(where.group(1), "0", "a.txt") == "work\n",
         "and the next run says where", r.stderr)
    subprocess.run(["rm", "-r", os.path.join(b.copies, b.left()[0])], check=True)
    top = b.work()
    p = b.begin(top, "echo work >a.txt")
    p.send_signal(signal.SIGTERM)
    p.wait(60)
    t.eq((p.returncode, read(top, "a.txt"), b.left()), (143, "work\n", []), "ended by a signal: it is brought back")


def podman(t, b):
    if not os.access(engine.PODMAN, os.X_OK):
        t.skip("Podman", "%s is missing (package podman)" % engine.PODMAN)
        return
    e = engine.Podman(t)
    e.image("localhost/durward-podman:latest")
    b.d.policies["p"]["sandbox"]["docker"] = {"socket": e.socket, "image": "localhost/durward-podman:latest"}
    b.d.save()
    top = b.work()
    r = b.run(top, "cat a.txt; echo more >>a.txt; rm link")
    t.eq((r.returncode, r.stdout, read(top, "a.txt"), os.path.lexists(os.path.join(top, "link"))),
         (0, "one\n", "one\nmore\n", False), "Podman: there and back") or t.diag(r.stderr)
    t.eq((os.stat(os.path.join(top, "a.txt")).st_uid, b.left()), (os.geteuid(), []), "it is ours, and no copy is left")


def ordinary(t):
    """A user with an engine of his own, whose containers' root he is."""
    d = durward.Durward(t)
    d.policy("p", [])
    d.policies["p"]["sandbox"] = {"backend": "docker"}
    podman(t, Box(t, d))


def main(t):
    if person.name() == person.MAPPED:
        t.part(ordinary, t)
        return
    why = engine.needed()
    if why:
        raise tap.Skip(why)
    e = engine.Engine(t)
    e.image(IMAGE)
    d = durward.Durward(t)
    d.policy("p", [])
    d.policies["p"]["sandbox"] = {"backend": "docker", "docker": {"socket": e.socket, "image": IMAGE}}
    d.save()
    b = Box(t, d)
    for part in (there_and_back, escapes, conflicts, bounds, binds, deaths, podman):
        t.part(part, t, b)
    if os.access("/usr/bin/newuidmap", os.X_OK):
        person.again(t, person.MAPPED)
    else:
        t.skip("a user with ids of /etc/subuid", "newuidmap is not installed")


tap.run(main, timeout=300)
