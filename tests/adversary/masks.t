#!/usr/bin/python3 -B
"""Credential files in a bound directory stay hidden for a sandbox's whole life: from the files that fill a folder,
from the folder that moves, from the editor that saves on the host, from every other name that a sandbox gives them.
What it writes itself it reads. Without a view what is there at the start,
with one (--view) for its whole life. As root, and as an ordinary user who may open /dev/fuse and one who may not."""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, person, scan, tap  # noqa: E402

KEY = "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
FILL = 210000
GO = ("/usr/local/go/src", "/usr/lib/go*/src", "/usr/share/go*/src")
FLAGS = []  # of durward run: with --view or without
LATE = {".env": "%s", ".aws/credentials": "%s", "home/.ssh/work": KEY, "id_rsa": KEY, "tls.pem": KEY, ".gnupg/ring": "%s",
        "sub/.env.local": "%s", ".netrc": "%s"}

# Reads all that there is, over and over, through descriptors that it keeps as well, until told to stop.
WATCH = r"""
import os, sys
kept, seen, rounds = {}, [], 0
print("ready", flush=True)
while not os.path.exists("stop") or rounds < 3:
    rounds += os.path.exists("stop")
    for base, dirs, files in os.walk("."):
        for name in files:
            path = os.path.join(base, name)
            for attempt in (lambda: open(path, "rb").read(), lambda: kept[path].seek(0) or kept[path].read()):
                try:
                    seen.append(attempt())
                    kept.setdefault(path, open(path, "rb", 0))
                except (OSError, KeyError):
                    continue
    if len(seen) > 10000:
        seen = list(set(seen))
sys.stdout.buffer.write(b"".join(set(seen)))
"""

# Every way to another name. A line for each that the kernel lets pass; then what can be read.
RENAME = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, fn):
    try:
        fn()
        print("passed", what)
    except OSError:
        pass
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "exchange")
open("mine", "w").write("mine\n"); os.mkdir("empty")
for f in (".env", "id_rsa", "server.pem", ".aws/credentials", "home/.ssh/work"):
    tried("rename " + f, lambda: os.rename(f, "renamed"))
    tried("link " + f, lambda: os.link(f, "linked"))
    tried("exchange " + f, lambda: exchange(f, "mine"))
    tried("replace " + f, lambda: os.rename("mine", f))
    tried("write " + f, lambda: open(f, "r+").write("x"))
    tried("truncate " + f, lambda: os.truncate(f, 0))
    tried("cut " + f, lambda: open(f, "w").close())
    tried("chmod " + f, lambda: os.chmod(f, 0o666))
    tried("remove " + f, lambda: os.unlink(f))
for d in (".aws", "home/.ssh", ".gnupg"):
    tried("rename " + d, lambda: os.rename(d, "moved"))
    tried("exchange " + d, lambda: exchange(d, "empty"))
tried("into .gnupg", lambda: open(".gnupg/x", "w"))
tried("from .gnupg", lambda: os.rename(".gnupg/ring", "ring"))
# what the host would write to .env later would be seen under another name
open("plain", "w").write("x"); os.link("plain", "twin")
tried("twin", lambda: os.rename("plain", "sub/.env"))
tried("link to a name", lambda: os.link("twin", "sub/.netrc"))
tried("symlink", lambda: os.symlink("twin", "sub/.env"))
tried("symlink of a directory", lambda: os.symlink("empty", "sub/.aws"))
open("sub/.npmrc", "w").write("x")
tried("link own", lambda: os.link("sub/.npmrc", "sub/again"))
for base, dirs, files in os.walk("."):
    for name in files:
        try:
            print(open(os.path.join(base, name), errors="replace").read())
        except OSError as e:
            print(e)
"""

# Its own files, in each way that programs write them.
OWN = r"""
set -e
echo one > .env; cat .env; echo two >> .env; cat .env
printf 'x=1\n' > .env.tmp; mv .env.tmp sub/.env; cat sub/.env
printf 'plain\n' > draft; mv draft .npmrc; cat .npmrc; sed -i s/plain/changed/ .npmrc; cat .npmrc
mkdir -p own/.aws own/.gnupg; echo id > own/.aws/credentials; cat own/.aws/credentials
echo ring > own/.gnupg/ring; cat own/.gnupg/ring; ls own/.gnupg
/usr/bin/python3 -c 'print("-----BEGIN PRIVATE" + " KEY-----")' > own/new.pem; cat own/new.pem
mv .env .env.bak; cat .env.bak; mv .env.bak back; cat back; rm back
truncate -s 1 .npmrc; cat .npmrc; echo; rm .npmrc; test ! -e .npmrc
"""
OWNED = ("one\none\ntwo\nx=1\nplain\nchanged\nid\nring\nring\n-----BEGIN PRIVATE KEY-----\none\ntwo\none\ntwo\n"
         "c\n")


# Files that are open when the host makes credentials of them: one gets another content, one another name.
HOLD = r"""
import os, time
held = [os.open(f, os.O_RDONLY) for f in ("tls.pem", "notes")]
before = [os.read(fd, 4096) for fd in held]
print("up", flush=True)
input()
end = time.monotonic() + 3  # what is known of a file may be a second old
for fd, old in zip(held, before):
    got = old
    while got == old and time.monotonic() < end:
        try:
            got = os.pread(fd, 4096, 0)
        except OSError as e:
            got = str(e).encode()
        time.sleep(0.05)
    print(got.decode())
"""


def put(d, files, text):
    for name, form in files.items():
        path = os.path.join(d.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(form % text if "%s" in form else form)


def sh(d, script, **kw):
    return d.run(["sh", "-c", script], FLAGS, save=False, **kw)


def fresh(t, name):
    d = durward.Durward(t, name)
    d.policies = {"p": {"rules": []}}
    d.save()
    return d


def views(t):
    """Can this user have a view here?"""
    return os.access("/dev/fuse", os.R_OK | os.W_OK)


def watched(t, d, change):
    """What a sandbox reads that looks all the time, while the host does `change`."""
    p = t.popen([durward.program(), "run", "-c", d.conf, *FLAGS, "--", durward.PYTHON, "-c", WATCH], cwd=d.work, env=d.env,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = p.stdout.readline()
    if line != b"ready\n":
        raise RuntimeError("no sandbox: %r" % p.stderr.read())
    change()
    open(os.path.join(d.work, "stop"), "w").close()
    out, err = p.communicate(timeout=60)
    os.unlink(os.path.join(d.work, "stop"))
    return out.decode(errors="replace"), p.returncode, err.decode(errors="replace")


def replaced(t, d, canary):
    """An editor saves: a new file is renamed over the old one; and files that were not there."""
    os.makedirs(os.path.join(d.work, "sub"), exist_ok=True)
    put(d, {".env": "old-%s", "tls.pem": CERTIFICATE, "sub/note": "a note\n", ".gnupg/ring": "%s"}, canary)

    def change():
        for i in range(20):
            for name, form in LATE.items():
                path = os.path.join(d.work, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path + ".swp-%d" % i if os.path.basename(path).startswith(".env") else path, "w") as f:
                    f.write(form % canary)
                if f.name != path:
                    os.rename(f.name, path)
        with open(os.path.join(d.work, "tls.pem"), "r+") as f:  # in place, below a descriptor that is open
            f.write(KEY % canary)
    out, status, err = watched(t, d, change)
    t.ok(status == 0 and "a note" in out, "the sandbox reads on while the host saves", err)
    t.eq(out.count(canary), 0, "it sees no credential that the host made or replaced meanwhile")


def open_already(t, d, canary):
    put(d, {"tls.pem": CERTIFICATE, "notes": "notes\n"}, "")
    p = t.popen([durward.program(), "run", "-c", d.conf, *FLAGS, "--", durward.PYTHON, "-c", HOLD], cwd=d.work, env=d.env,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.eq(p.stdout.readline(), b"up\n", "a sandbox holds files open")
    os.rename(os.path.join(d.work, "notes"), os.path.join(d.work, ".env"))
    put(d, {"tls.pem": KEY + "more than before", ".env": "%s more than before"}, canary)
    out = p.communicate(b"\n", timeout=30)[0].decode()
    t.eq((p.returncode, out.count(canary)), (0, 0), "what the host makes of an open file is not read") or t.diag(out)


def written_in_place(t, d, canary):
    """The host's bytes in a file that the sandbox made first."""
    t.eq(sh(d, "echo mine > .env; echo mine > id_ed25519; echo mine > tmp; ln tmp tmp2; mv tmp .npmrc").returncode != 0,
         True, "a file with two names does not become a credential")
    p = t.popen([durward.program(), "run", "-c", d.conf, *FLAGS, "--", "sh", "-c",
                 "rm -f .netrc late; echo mine > .netrc; exec 3<.netrc; echo mine > late; exec 4<late; mv late .pgpass; "
                 "echo up; read x; cat .netrc <&- ; cat <&3; cat <&4; cat .pgpass; cat .netrc; echo done"],
                cwd=d.work, env=d.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.eq(p.stdout.readline(), b"up\n", "a sandbox made its own")
    for name in (".netrc", ".pgpass"):
        with open(os.path.join(d.work, name), "a") as f:
            f.write(canary)
    out = p.communicate(b"\n", timeout=30)[0].decode()
    t.ok(canary not in out and "done" in out, "what the host adds to it is not shown", out)


def renamed(t, d, canary):
    put(d, {".env": "%s", "id_rsa": KEY, "server.pem": KEY, ".aws/credentials": "%s", "home/.ssh/work": KEY,
            ".gnupg/ring": "%s", "sub/x": "x\n", "secret.txt": "%s"}, canary)
    os.symlink("secret.txt", os.path.join(d.work, ".npmrc"))
    before = {f: open(os.path.join(d.work, f)).read() for f in (".env", "id_rsa", ".aws/credentials", ".gnupg/ring")}
    r = sh(d, "exec %s -" % durward.PYTHON, stdin=RENAME.encode())
    passed = [x[7:] for x in r.stdout.splitlines() if x.startswith("passed")]
    beside = [] if FLAGS else ["twin", "link to a name", "symlink of a directory", "link own"]
    t.eq((r.returncode, [x for x in passed if x not in beside]), (0, []),
         "no other name for a credential, and none of it is written or removed") or t.diag(r.stderr)
    t.eq(r.stdout.count(canary), 0, "and nothing of it is read, nor what a link with such a name leads to")
    t.eq({f: open(os.path.join(d.work, f)).read() for f in before}, before, "on the host all is as it was")
    r = sh(d, "find . -type f -exec cat {} +; echo end")
    t.ok("end" in r.stdout and canary not in r.stdout, "nor by the next sandbox", r.stderr)


def own(t, d, canary):
    os.makedirs(os.path.join(d.work, "sub"))
    r = sh(d, OWN)
    t.eq((r.returncode, r.stdout), (0, OWNED), "what a sandbox writes itself it reads") or t.diag(r.stderr)
    r = sh(d, "cat sub/.env own/.aws/credentials own/new.pem; stat -c %s - <own/new.pem; ls -A own/.gnupg; echo end")
    t.ok(r.stdout == "0\nend\n" and "cat:" not in r.stderr, "to the next one they are empty", r.stdout, r.stderr)


def moved(t, d, canary):
    """A folder that one sandbox moves to and fro while others are made."""
    for i in range(40):
        put(d, {"a/f%d/.env" % i: "%s", "b/x%d/y" % i: "y\n"}, canary)
    p = t.popen([durward.program(), "run", "-c", d.conf, *FLAGS, "--", durward.PYTHON, "-c",
                 "import os\nprint('up', flush=True)\nwhile not os.path.exists('stop'):\n"
                 " for i in range(40):\n  for s, e in (('a/f%d', 'b/x%d/f'), ('b/x%d/f', 'a/f%d')):\n"
                 "   try: os.rename(s % i, e % i)\n   except OSError: pass\n"],
                cwd=d.work, env=d.env, stdout=subprocess.PIPE)
    t.eq(p.stdout.readline(), b"up\n", "one sandbox moves folders")
    seen, ran, refused = 0, 0, 0
    for _ in range(6):
        r = sh(d, "for i in 1 2 3; do grep -rsh %s .; done; echo end" % canary[:8])
        seen += canary in r.stdout
        ran += "end" in r.stdout
        refused += r.returncode == 125 and "while it was searched" in r.stderr
    open(os.path.join(d.work, "stop"), "w").close()
    p.wait(20)
    t.eq((seen, ran + refused), (0, 6), "no sandbox made meanwhile sees a credential in them")
    t.ok(not FLAGS or ran == 6, "and with a view each of them runs", "%d ran" % ran)


def filled(t, d, canary):
    """More entries than anybody searches in a moment."""
    folders = ["%02d" % i for i in range(30)]
    for x in folders:
        put(d, {x + "/.env": "%s", x + "/id_rsa": KEY, x + "/.aws/credentials": "%s"}, canary)
    os.mkdir(os.path.join(d.work, "fill"))
    at = os.open(os.path.join(d.work, "fill"), os.O_RDONLY)
    for i in range(FILL):
        if i % 50000 == 0:
            first = str(i)
            os.close(os.open(first, os.O_CREAT | os.O_WRONLY, dir_fd=at))
        else:
            os.link(first, str(i), src_dir_fd=at, dst_dir_fd=at)
    os.close(at)
    r = sh(d, "cat */.env */id_rsa */.aws/credentials; echo end", timeout=60)
    t.ok("end" in r.stdout and canary not in r.stdout, "a filled folder hides nothing from the masks",
         "%d shown" % r.stdout.count(canary), r.stderr)


def published(t, d, canary):
    """A test key of Go is no secret; with one byte more it is no longer known."""
    key = next((f for p in GO for f in glob.glob(p + "/crypto/tls/testdata/example-key.pem")), None)
    if key is None:
        t.skip("a published key is shown", "Go's source is not installed")
        return
    with open(key) as f:
        text = f.read()
    put(d, {"lib/testdata/example.pem": text, "lib/testdata/id_ecdsa": text, "lib/testdata/other.pem": text + "\n",
            "lib/testdata/server.pem": KEY}, canary)
    r = sh(d, "cd lib/testdata; for f in example.pem id_ecdsa other.pem server.pem; do wc -c <$f; done")
    t.eq(r.stdout.split(), [str(len(text))] * 2 + ["0"] * 2, "a published key is shown; one that differs from it is not")


def without(t, d, canary):
    """Without a view, and with one that cannot be had."""
    put(d, {".env": "%s", "sub/x": "x\n"}, canary)
    r = sh(d, "cat .env sub/x")
    t.ok(r.stdout == "x\n" and "not hidden; with --view" in r.stderr, "what was searched whole is bound, with a note",
         r.stdout, r.stderr)
    if not views(t):
        r = d.run(["true"], ["--view"], save=False)
        t.ok(r.returncode == 125 and "/dev/fuse" in r.stderr, "a view that cannot be had is no sandbox", r.stderr)


def all_parts(t):
    canary = scan.canary("mask-").decode()
    both = [renamed, moved, published]
    for flags, parts in (([], both + [without] + ([filled] if person.name() != person.FUSE else [])),
                         (["--view"], both + [replaced, open_already, written_in_place, own])):
        if flags and not views(t):
            t.skip("files that the host makes while a sandbox runs", "this user cannot open /dev/fuse")
            break
        FLAGS[:] = flags
        for part in parts:
            t.part(part, t, fresh(t, part.__name__ + "".join(flags)), canary)


tap.run(lambda t: person.each(t, all_parts, fuse=True), timeout=240)
