"""The same test again as an ordinary user, where we are root: one without ids of /etc/subuid, and
one with them, in a mount namespace that has its own /etc/passwd."""
import ctypes
import os
import re
import shutil
import subprocess
import sys

from . import durward, tap

UID = 61999
PLAIN, MAPPED, FUSE, BOTH = "plain", "mapped", "fuse", "mapped, with fuse,"
LINE = re.compile(r"^(not )?ok \d+ - (.*)$")
ENTER = """set -e
for f in passwd subuid subgid; do
    mount --bind "$1/$f" /etc/$f
done
shift
exec "$@"
"""
# as udev leaves it: everybody may open it
ENTER_FUSE = """set -e
mknod "$1" c 10 229
chmod 666 "$1"
mount --bind "$1" /dev/fuse
shift
exec "$@"
"""


def name():
    """What this process is: root, plain, mapped, or just itself."""
    return os.environ.get("TEST_PERSON", "root" if os.geteuid() == 0 else "ourselves")


def copies(t, folder):
    """Program and tests where everybody can read them."""
    top = os.path.dirname(os.path.dirname(durward.program()))
    stage = t.mkdir(folder + "/stage")
    for part in ("bin", "libexec"):
        shutil.copytree(os.path.join(top, part), os.path.join(stage, part),
                        ignore=lambda base, names: [n for n in names if not os.path.isfile(os.path.join(base, n)) and
                                                    not os.path.isdir(os.path.join(base, n))])
    seats = os.environ.get("DURWARD_SEATS", "")
    if os.path.exists(seats):
        shutil.copytree(seats, os.path.join(t.path(folder), "seats"), ignore=shutil.ignore_patterns("*.o", ".*"))
    os.makedirs(os.path.join(t.path(folder), "lib"))
    for name in ("wire.h", "proc.h"):
        shutil.copy(os.path.join(durward.TOP, "lib", name), os.path.join(t.path(folder), "lib"))
    tests = os.path.join(t.path(folder), "tests")
    source = os.path.dirname(durward.SUITE)
    for part in ("functional", "adversary"):
        shutil.copytree(os.path.join(source, part), os.path.join(tests, part),
                        ignore=shutil.ignore_patterns("clients", "__pycache__"))
    for base, dirs, files in os.walk(t.path(folder)):
        os.chmod(base, 0o755)
        for f in files:
            os.chmod(os.path.join(base, f), 0o755)
    return os.path.join(stage, "bin/durward"), tests


def accounts(t, folder):
    """Copies of the host's files with one user more."""
    line = "durwardtest:x:%d:%d::/nonexistent:/bin/sh\n" % (UID, UID)
    for f, more in (("passwd", line), ("subuid", "durwardtest:700000:65536\n"),
                    ("subgid", "durwardtest:700000:65536\n")):
        try:
            with open("/etc/" + f) as old:
                text = old.read()
        except OSError:
            text = ""
        t.write("%s/etc/%s" % (folder, f), text + more)
    return t.path(folder, "etc")


def again(t, who):
    folder = "as-" + who.split(",")[0] + "-fuse" * (who == BOTH)
    program, tests = copies(t, folder)
    own = t.mkdir(folder + "/tmp")
    os.chown(own, UID, UID)
    script = os.path.join(tests, os.path.relpath(os.path.abspath(sys.argv[0]),
                                                 os.path.dirname(durward.SUITE)))
    argv = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "--",
            durward.PYTHON, "-B", script]
    if who in (MAPPED, BOTH):
        argv = ["unshare", "-m", "sh", "-c", ENTER, "enter", accounts(t, folder)] + argv
    if who in (FUSE, BOTH):
        argv = ["unshare", "-m", "sh", "-c", ENTER_FUSE, "enter", t.path(folder, "device")] + argv
    env = dict(os.environ, DURWARD=program, TEST_TMP=own, TEST_PERSON=who, HOME=own,
               DURWARD_SEATS=os.path.join(t.path(folder), "seats"))
    r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, preexec_fn=tap.die_with_parent, cwd="/")
    count = 0
    for line in r.stdout.decode("utf-8", "replace").splitlines():
        m = LINE.match(line)
        if m:
            count += 1
            what = "%s user: %s" % (who, m.group(2))
            if "# SKIP" in what:
                t.skip(*[x.strip() for x in what.split("# SKIP", 1)])
            else:
                t.ok(not m.group(1), what)
        elif line.startswith("#"):
            t.diag(line[1:].strip())
        elif line and not line.startswith("1.."):
            t.diag(line)
    t.ok(r.returncode == 0 and count > 0, "%s user: the test ran to its end" % who,
         "status %d" % r.returncode)


def each(t, fn, mapped=False, fuse=False):
    """fn(t) as who we are; as root, as ordinary users too. fuse: one may open /dev/fuse."""
    fn(t)
    if os.geteuid() != 0 or "TEST_PERSON" in os.environ:
        return
    again(t, PLAIN)
    if fuse:
        again(t, FUSE)
    if not mapped:
        return
    if os.access("/usr/bin/newuidmap", os.X_OK):
        again(t, BOTH if fuse else MAPPED)
    else:
        t.skip("a user with ids of /etc/subuid", "newuidmap is not installed")


def own_ids(t):
    """Where we are root: this process in a mount namespace whose /etc/subuid and subgid have ids for Durward."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, private = 0x20000, 1 << 18 | 16384
    if libc.unshare(new_mounts) < 0 or libc.mount(None, b"/", None, private, None) < 0:
        raise tap.Skip("no mount namespace can be made here")
    line = t.write("ids", "durward:700000:65536\n")
    for f in ("subuid", "subgid"):
        if not os.path.exists("/etc/" + f):
            raise tap.Skip("/etc/%s is not there" % f)
        subprocess.run(["mount", "--bind", line, "/etc/" + f], check=True)
