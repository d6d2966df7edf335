"""The same test again as an ordinary user, where we are root: one without ids of /etc/subuid, and
one with them, in a mount namespace that has its own /etc/passwd."""
import concurrent.futures
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

from . import durward, tap

UID = 61999
ROOT, PLAIN, MAPPED, FUSE, BOTH = "root", "plain", "mapped", "fuse", "mapped, with fuse,"
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


MOST = 1200  # seconds, of a test whose own watchdog does not end it


def started(t, who):
    """The test as this person, to its end -> CompletedProcess"""
    if who == ROOT:
        argv, env = [durward.PYTHON, "-B", os.path.abspath(sys.argv[0])], {}
    else:
        argv, env = as_user(t, who)
    return subprocess.run(argv + sys.argv[1:], env={**os.environ, **env, "TEST_PERSON": who}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=tap.die_with_parent, cwd=None if who == ROOT else "/",
                          timeout=MOST)


def as_user(t, who):
    """-> the command of a test as an ordinary user, and what its environment has of its own"""
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
    return argv, {"DURWARD": program, "TEST_TMP": own, "HOME": own, "DURWARD_SEATS": os.path.join(t.path(folder), "seats")}


def told(t, who, r):
    """What that run said, as rows of this one."""
    count, whose = 0, "" if who == ROOT else who + " user: "
    for line in r.stdout.decode("utf-8", "replace").splitlines():
        m = LINE.match(line)
        if m:
            count += 1
            what = whose + m.group(2)
            if "# SKIP" in what:
                t.skip(*[x.strip() for x in what.split("# SKIP", 1)])
            else:
                t.ok(not m.group(1), what)
        elif line.startswith("#"):
            t.diag(line[1:].strip())
        elif line and not line.startswith("1.."):
            t.diag(line)
    t.ok(r.returncode == 0 and count > 0, whose + "the test ran to its end", "status %d" % r.returncode)


def again(t, who):
    told(t, who, started(t, who))


def others(t, mapped, fuse):
    """Those besides root."""
    yield PLAIN
    if fuse:
        yield FUSE
    if mapped and os.access("/usr/bin/newuidmap", os.X_OK):
        yield BOTH if fuse else MAPPED
    elif mapped:
        t.skip("a user with ids of /etc/subuid", "newuidmap is not installed")


def each(t, fn, mapped=False, fuse=False, together=False):
    """fn(t) as who we are; as root, as ordinary users too. fuse: one may open /dev/fuse. together: all of them at once, each
    in a process of its own with its own watchdog; of tests that wait for most of their time."""
    if os.geteuid() != 0 or "TEST_PERSON" in os.environ:
        fn(t)
        return
    if not together:
        fn(t)
        for who in others(t, mapped, fuse):
            again(t, who)
        return
    signal.alarm(0)
    everybody = [ROOT, *others(t, mapped, fuse)]
    with concurrent.futures.ThreadPoolExecutor(len(everybody)) as pool:
        for who, r in zip(everybody, pool.map(lambda who: started(t, who), everybody)):
            told(t, who, r)


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
