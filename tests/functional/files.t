#!/usr/bin/python3 -B
"""Files of a sandbox by the API and by `sandbox cp`: bytes, errors, batches, archives, and layouts
that a sandbox made to reach the host's files: links, races, names, FIFOs, many entries."""
import base64
import io
import json
import os
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402

W = "/workspace/"


def plain(t, c, box):
    blob = os.urandom(17 << 20)
    c.write(box, W + "a/b/c/blob", blob)
    t.ok(c.read(box, W + "a/b/c/blob") == blob, "17 MiB in and out; parents are made")
    c.write(box, W + "empty", b"")
    t.eq(c.read(box, W + "empty"), b"", "an empty file")
    c.write(box, W + "a/b/c/blob", b"short")
    t.eq(c.read(box, W + "a/b/c/blob"), b"short", "a shorter one replaces a longer")
    c.write(box, W + "run", b"#!/bin/sh\necho ran\n", mode="755")
    t.eq(c.sh(box, "./run"), (0, b"ran\n"), "a mode for new files")
    odd = W + "n \u00e4 % & ? # + \n'\""
    c.write(box, odd, b"odd")
    t.eq(c.read(box, odd), b"odd", "an odd name")
    c.sh(box, "printf x > \"$(printf 'l\\374')\"; mkdir d; ln -s nowhere l; mkfifo f")
    entries = {e["name"]: e for e in c.entries(box, W)["entries"]}
    t.eq((entries["d"]["type"], entries["l"]["type"], entries["f"]["type"], entries["run"]["type"],
          entries["run"]["mode"], entries["run"]["size"]),
         ("directory", "symlink", "other", "file", "0755", 19), "the list says what each is")
    latin = base64.b64encode(b"l\xfc").decode()
    t.eq(entries.get(latin, {}).get("encoding"), "base64", "a name that is no UTF-8 comes in base64")
    c.remove(box, W + "empty")
    t.eq(api.refused(c.read, box, W + "empty"), (404, "file_not_found"), "deleted")
    t.eq(api.refused(c.remove, box, W + "a"), (409, "not_empty"), "a full directory is not deleted")
    c.remove(box, W + "a", recursive="true")
    t.eq(api.refused(c.read, box, W + "a/b/c/blob"), (404, "file_not_found"), "but with recursive")
    c.sh(box, "cat f & ", timeout=2)


def errors(t, c, box):
    c.sh(box, "mkdir -p shut dir; touch file no; chmod 000 no shut; ln -s loop loop")
    rows = (("read", W + "dir", (409, "is_directory")), ("read", W + "none", (404, "file_not_found")),
            ("read", W + "file/x", (409, "not_directory")), ("read", "rel", (400, "invalid_path")),
            ("read", "", (400, "invalid_path")), ("read", W + "loop", (400, "invalid_path")),
            ("read", W + "x" * 300, (400, "invalid_path")), ("read", "/dev/zero", (400, "invalid_path")),
            ("read", "/" + "x/" * 2100, (400, "invalid_path")), ("read", W + "f", (400, "invalid_path")),
            ("entries", W + "file", (409, "not_directory")), ("entries", W + "none", (404, "file_not_found")),
            ("remove", W + "none", (404, "file_not_found")), ("tar", W + "none", (404, "file_not_found")),
            ("tar", W + "file", (409, "not_directory")))
    for what, path, want in rows:
        t.eq(api.refused(getattr(c, what), box, path), want, "%s %s: %s" % (what, path[:30], want[1]))
    for path, want in ((W + "dir", (409, "is_directory")), ("/run/durward/x", (403, "permission_denied")),
                       (W + "file/x", (409, "not_directory")), (W + "f", (400, "invalid_path")),
                       (W + "new/", (409, "is_directory")), ("/dev/null", (400, "invalid_path"))):
        t.eq(api.refused(c.write, box, path, b"x"), want, "write %s: %s" % (path, want[1]))
    if os.geteuid() != 0:
        t.eq(api.refused(c.read, box, W + "no"), (403, "permission_denied"), "read as the sandbox's user")
    for path in ("/v1/sandboxes/%s/files" % box, "/v1/sandboxes/%s/files?path=/x&path=/y" % box,
                 "/v1/sandboxes/%s/files?path=/x%%00y" % box, "/v1/sandboxes/%s/files?path=/x&z=1" % box):
        t.eq(c.raw("GET", path)[0], 400, "%s is 400" % path.partition("?")[2])
    t.eq(api.refused(c.read, "sb-none", "/x"), (404, "sandbox_not_found"), "of no sandbox")


def batches(t, c, box):
    got = c.batch(box, [{"op": "write", "path": W + "q/1", "data": "one"},
                        {"op": "write", "path": W + "q/2", "data": "AAH/", "encoding": "base64"},
                        {"op": "read", "path": W + "q/1"}, {"op": "read", "path": W + "q/2"},
                        {"op": "read", "path": W + "q/2", "encoding": "base64"},
                        {"op": "read", "path": W + "q"}, {"op": "read", "path": "relative"},
                        {"op": "write", "path": "/run/durward/x", "data": "x"},
                        {"op": "delete", "path": W + "q/1"},
                        {"op": "read", "path": W + "q/1"}, {"op": "delete", "path": W + "q", "recursive": True}])
    codes = [(r["error"] or {}).get("code") for r in got]
    t.eq(codes, [None, None, None, None, None, "is_directory", "invalid_path", "permission_denied", None,
                 "file_not_found", None], "each operation has a result of its own, in order")
    t.eq((got[2]["data"], got[2]["encoding"], got[3]["data"], got[3]["encoding"]),
         ("one", "utf-8", "AAH/", "base64"), "with its bytes")
    for bad in ([{"op": "x", "path": "/a"}], [{"op": "read"}], [{"op": "read", "path": 1}], {}, [1],
                [{"op": "write", "path": "/a", "data": "?", "encoding": "base64"}],
                [{"op": "read", "path": "/a", "x": 1}]):
        t.eq(api.refused(c.batch, box, bad), (400, "bad_request"), "a malformed batch does nothing")


def archives(t, c, box):
    c.sh(box, "mkdir -p src/deep; echo one > src/one; echo two > src/deep/two; ln -s one src/link")
    data = c.tar(box, W + "src")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = sorted(os.path.normpath(n) for n in tar.getnames())
    t.eq(names, [".", "deep", "deep/two", "link", "one"], "a directory as an archive")
    c.tar(box, W + "made/anew", data)
    t.eq(c.sh(box, "cat made/anew/one made/anew/deep/two; readlink made/anew/link")[1], b"one\ntwo\none\n",
         "and back, into a directory that is made")
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w") as tar:
        for name, kind, link in (("../../out", tarfile.REGTYPE, ""), ("/abs", tarfile.REGTYPE, ""),
                                 ("s", tarfile.SYMTYPE, "/etc"), ("s/x", tarfile.REGTYPE, ""),
                                 ("h", tarfile.LNKTYPE, "/etc/passwd"), ("dev", tarfile.CHRTYPE, "")):
            i = tarfile.TarInfo(name)
            i.type, i.linkname = kind, link
            tar.addfile(i)
    c_before = os.listdir("/")
    try:
        c.tar(box, W + "evil", evil.getvalue())
    except api.Refused as e:
        t.ok(e.status in (403, 409), "an evil archive is refused in part: %s" % e.code)
    t.ok(os.listdir("/") == c_before, "an archive touches nothing outside")
    t.eq(api.refused(c.tar, box, W + "junk", b"\1" * 5000), (409, "tar_failed"), "junk is no archive")


def hostile(t, d, c, box):
    """The sandbox plants; we read and write; the host's files stay the host's."""
    secret, victim = t.write("host-secret", "HOST-SECRET", 0o644), t.write("host-victim", "untouched", 0o666)
    os.chmod(t.tmp, 0o777)
    layouts = {"link": secret, "dir": t.tmp, "up": "../../../.." + secret, "proc": "/proc/1/root" + secret,
               "cwd": "/proc/self/cwd", "fd": "/proc/self/fd", "root": "/", "etc": "/etc/shadow"}
    c.sh(box, "mkdir -p h && cd h && " + " && ".join("ln -sfn %s %s" % (to, n) for n, to in layouts.items()))
    leaked = []
    paths = [W + "h/link", W + "h/dir/host-secret", W + "h/up", W + "h/proc", W + "h/root" + secret,
             W + "../../.." + secret, secret, "/proc/1/root" + secret, "/proc/1/cwd" + secret,
             "//" + secret, W + "h/etc", W + "h/cwd/../../" + secret]
    paths += ["/proc/self/fd/%d%s" % (i, secret) for i in range(12)]
    for path in paths:
        try:
            if b"HOST-SECRET" in c.read(box, path):
                leaked.append(path)
        except api.Refused:
            pass
        folder = os.path.dirname(path) or "/"
        try:
            if [e for e in c.entries(box, folder)["entries"] if e["name"] == "host-secret"]:
                leaked.append("listed: " + path)
            if b"HOST-SECRET" in c.tar(box, folder):
                leaked.append("in an archive: " + path)
        except api.Refused:
            pass
        for fn in (lambda: c.write(box, path.replace("secret", "victim"), b"TAKEN"),
                   lambda: c.remove(box, path.replace("secret", "victim"))):
            try:
                fn()
            except api.Refused:
                pass
    t.ok(not leaked, "%d paths lead to nothing of the host's" % len(paths), *leaked)
    with open(victim) as f:
        t.eq(f.read(), "untouched", "and nothing of the host's was written or removed")
    # a name that is a file and a link to the host's file by turns
    c.sh(box, "cat > r.sh <<'E'\nwhile :; do ln -sfn %s race; rm -f race; echo inside > race; mkdir -p rd; "
              "rm -rf rd; ln -sfn %s rd; rm -f rd; done\nE\nsetsid sh r.sh >/dev/null 2>&1 &" % (secret, t.tmp))
    seen, end = 0, time.monotonic() + 3
    while time.monotonic() < end:
        for fn in (lambda: c.read(box, W + "race"), lambda: c.read(box, W + "rd/host-secret"),
                   lambda: c.write(box, W + "rd/host-victim", b"TAKEN"),
                   lambda: c.write(box, W + "race", b"TAKEN"),
                   lambda: c.remove(box, W + "rd/host-victim", recursive="true")):
            try:
                if b"HOST-SECRET" in fn():
                    leaked.append("race")
                seen += 1
            except api.Refused:
                pass
    with open(victim) as f, open(secret) as g:
        t.ok(not leaked and f.read() == "untouched" and g.read() == "HOST-SECRET" and seen > 20,
             "G6 a race between file and link wins nothing (%d times served)" % seen)
    c.sh(box, "pkill -f r.sh")
    c.sh(box, "mkdir many; cd many; /usr/bin/python3 -c 'for i in range(20000): open(str(i), \"w\")'")
    r = c.entries(box, W + "many")
    t.eq((len(r["entries"]), r["truncated"]), (16384, True), "20,000 entries: a bounded list that says so")
    c.remove(box, W + "many", recursive="true")
    c.sh(box, "truncate -s 1G sparse")
    t.eq(api.refused(c.read, box, W + "sparse"), (413, "too_large"), "a huge sparse file is refused, not held")
    began = time.monotonic()
    t.eq(api.refused(c.tar, box, "/"), (413, "too_large"), "nor the whole root as an archive")
    t.ok(time.monotonic() - began < 10, "which is said as soon as it is known")
    t.eq(c.sh(box, "rm sparse; echo fine"), (0, b"fine\n"), "and the sandbox goes on")


def parallel(t, c, box):
    wrong = []

    def work(i):
        k = api.Api(c.path)
        data = os.urandom(200000)
        for j in range(8):
            k.write(box, W + "p/%d" % i, data)
            if k.read(box, W + "p/%d" % i) != data:
                wrong.append(i)
        k.close()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [th.start() for th in threads]
    [th.join() for th in threads]
    t.ok(not wrong, "8 writers and readers at once")


def irregular(t, c, box):
    """What has no end is neither read nor written, and that is said."""
    c.sh(box, "mkfifo pipe")
    for path in (W + "pipe", "/dev/zero"):
        said = []
        try:
            c.read(box, path)
        except api.Refused as e:
            said.append(str(e))
        batch = c.ask("POST", "/v1/sandboxes/%s/files/batch" % box, {"operations": [{"op": "read", "path": path}]})
        said.append(batch["results"][0]["error"]["message"])
        t.ok(len(said) == 2 and all("no regular file" in x for x in said), "no regular file: " + path, *said)


def copying(t, d, c, box):
    env = {"DURWARD_SOCKET": d.socket}
    cp = lambda *a: d.command("sandbox", "cp", *a, env=env)  # noqa: E731
    for name, text in (("tree/one", "1"), ("tree/sub/two", "2"), ("tree/sub/run", "#!/bin/sh\n")):
        t.write("d/work/" + name, text, 0o755 if name.endswith("run") else 0o644)
    os.symlink("/etc/passwd", os.path.join(d.work, "tree", "link"))
    r = cp("tree", box + ":" + W + "tree")
    t.ok(r.returncode == 0 and "left out" in r.stderr, "cp of a directory; links are left out, and said so",
         r.stderr)
    t.eq(c.sh(box, "cat tree/one tree/sub/two; test -x tree/sub/run; echo $?; ls -A tree | tr '\\n' ' '")[1],
         b"120\none sub ", "what it is inside")
    r = cp("tree/one", box + ":" + W + "into/")
    t.eq((r.returncode, c.read(box, W + "into/one")), (0, b"1"), "cp of a file into a directory")
    for name in ("sparse/empty/deep", "sparse/links"):
        os.makedirs(os.path.join(d.work, name))
    os.symlink("nowhere", os.path.join(d.work, "sparse", "links", "l"))
    t.write("d/work/sparse/-n", "5", 0o600)
    r = cp("sparse", box + ":" + W + "sparse")
    t.eq((r.returncode, c.sh(box, "cd sparse && find . | sort | tr '\\n' ' '; stat -c %a ./-n")[1]),
         (0, b". ./-n ./empty ./empty/deep ./links 600\n"), "directories with nothing in them are made, and modes kept") or t.diag(r.stderr)
    t.write("d/work/-dash", "6")
    t.eq((cp("--", "-dash", box + ":" + W + "-dash").returncode, c.read(box, W + "-dash")), (0, b"6"), "a name with a dash first")
    c.sh(box, "chmod 700 sparse/empty; echo key > sparse/key; chmod 640 sparse/key; echo k > alone; chmod 600 alone; ln -s alone to-alone")
    old = os.umask(0o022)
    r = cp(box + ":" + W + "sparse", "back")
    t.eq((r.returncode, [oct(os.stat(os.path.join(d.work, "back", x)).st_mode & 0o777) for x in ("empty", "empty/deep", "key", "-n")]),
         (0, ["0o700", "0o755", "0o640", "0o600"]), "cp out: empty directories, and as private as they were") or t.diag(r.stderr)
    for name in ("alone", "to-alone"):
        r = cp(box + ":" + W + name, "got-" + name)
        t.eq((r.returncode, os.stat(os.path.join(d.work, "got-" + name)).st_mode & 0o777), (0, 0o600), "and one file alone: " + name) or t.diag(r.stderr)
    os.umask(old)
    outside = t.mkdir("outside", 0o777)
    c.sh(box, "mkdir -p bad/sub; echo x > bad/ok; ln -s %s bad/esc; mkfifo bad/fifo; ln -s /etc/passwd bad/pw"
         % outside)
    r = cp(box + ":" + W + "bad", "got")
    t.eq((r.returncode, sorted(os.listdir(os.path.join(d.work, "got")))), (0, ["ok", "sub"]),
         "cp out: files and directories only") or t.diag(r.stderr)
    # what was copied before, by whatever means, is not followed the next time
    c.sh(box, "rm -rf bad; mkdir -p bad/esc; echo pwned > bad/esc/x; echo pwned > bad/pw")
    os.symlink(outside, os.path.join(d.work, "got", "esc"))
    os.symlink(os.path.join(outside, "y"), os.path.join(d.work, "got", "pw"))
    for _ in range(2):
        r = cp(box + ":" + W + "bad/.", "got")
    t.ok(os.listdir(outside) == [], "no link on this side is followed", r.stderr)
    os.symlink(outside, os.path.join(d.work, "bad"))
    r = cp(box + ":" + W + "bad", ".")
    t.ok(r.returncode == 1 and os.listdir(outside) == [], "nor one that has the copied directory's own name", r.stderr)
    os.unlink(os.path.join(d.work, "bad"))
    for args in ((box + ":rel", "x"), ("a", "b"), (box + ":/a", box + ":/b"), (box + ":/none", "x"),
                 ("none", box + ":/x")):
        t.ok(cp(*args).returncode in (1, 2), "cp %s %s fails" % args)


def recorded(t, d, c, box):
    c.write(box, W + "kept", b"x" * 1234)
    c.read(box, W + "kept")
    c.sh(box, "true a-secret-word; exit 3")
    def event(name, **want):
        return d.wait_records(1, "lifecycle", event=name, target=box, **want)
    t.ok(event("file_written", path=W + "kept", bytes_down=1234, code="ok") and
         event("file_read", path=W + "kept", bytes_up=1234, code="ok"), "files are on record")
    t.ok([x for x in event("exec_ended") if x["detail"].endswith("exit status 3")] and
         [x for x in event("exec_started") if "/bin/sh" in x["detail"]], "commands are on record")
    t.ok("a-secret-word" not in json.dumps(d.records()), "their words are not")


def main(t):
    d = durward.Durward(t)
    d.policy("p", [])
    d.serve()
    c = api.Api(d.socket)
    box = c.first()
    for part in (plain, errors, batches, archives, parallel):
        t.part(part, t, c, box)
    t.part(hostile, t, d, c, box)
    t.part(irregular, t, c, box)
    t.part(copying, t, d, c, box)
    recorded(t, d, c, box)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
