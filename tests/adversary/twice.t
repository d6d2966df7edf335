#!/usr/bin/python3 -B
"""What one sandbox leaves in the bound directory must not show credential files to the next one, nor
give anybody on the host more than the sandbox had: directories renamed, made too deep to be searched,
closed; set-ID bits."""
import os
import stat
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import scan, scene, tap  # noqa: E402

KEY = "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n"
FILES = {".aws/credentials": "%s", "a/.docker/config.json": "%s", "b/.ssh/work": KEY,
         "c/.env": "%s", "m/.env": "%s", "z/.env": "%s"}

PREPARE = r"""
mv .aws aws; mv a/.docker a/docker; mv b/.ssh b/ssh; mv c c2; chmod 000 m
for i in 0 1 2 3 4 5 6 7 8 9; do
  p=deep$i; for j in 1 2 3 4 5 6 7; do p=$p/x/x/x/x/x/x/x/x/x/x; done; mkdir -p $p
done
cp /bin/true set-id; chmod 4755 set-id; chmod 2755 set-id
/usr/bin/python3 - <<'P'
import os
for n, m in (("u", 0o4755), ("g", 0o2755)):
    for flags in (os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY):
        try:
            fd = os.open("made-" + n if flags & os.O_CREAT else ".", flags, m)
            if not flags & os.O_CREAT:
                os.link("/proc/self/fd/%d" % fd, "linked-" + n, follow_symlinks=True)
        except OSError:
            pass
P
true
"""
READ = "chmod -R u+rwX . 2>/dev/null; find . -type f -exec cat {} + 2>/dev/null; true"


def main(t):
    s = scene.Scene(t)
    d = s.d
    canary = scan.canary("file-").decode()
    for name, text in FILES.items():
        path = os.path.join(d.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text % canary)
    first = d.run(["sh", "-c", PREPARE + READ])
    t.eq(first.returncode, 0, "the first sandbox runs") or t.diag(first.stderr)
    t.ok(canary not in first.stdout, "it reads no credential file")
    second = d.run(["sh", "-c", READ + "; echo done"])
    t.ok(second.returncode == 0 and "done" in second.stdout, "the second sandbox runs",
         second.stderr)
    t.eq(second.stdout.count(canary), 0, "nor does the second, whatever the first has moved")
    bits = [os.path.join(p, n) for p, _, names in os.walk(d.work) for n in names
            if os.lstat(os.path.join(p, n)).st_mode & (stat.S_ISUID | stat.S_ISGID)]
    t.ok(not bits, "no file on the host has a set-ID bit", *bits)
    t.ok(os.path.exists(os.path.join(d.work, "set-id")), "and files were made at all")


tap.run(main, timeout=60)
