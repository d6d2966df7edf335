"""A TAP producer with a scratch directory, a watchdog and clean-up that always runs."""
import ctypes
import faulthandler
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import traceback

# Servers stand in /usr/sbin, where an ordinary user's shell does not look.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH") or "/usr/bin:/bin", "/usr/sbin", "/sbin"])
SLOWER = float(os.environ.get("TEST_SLOWER", "1"))  # how much longer all may take here
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    """For preexec_fn: a helper process never outlives the test, even when that is killed."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts in the background what ignores it


def take_terminal(fd):
    """For preexec_fn of a new session: this is its controlling terminal, whatever its standard input is."""
    die_with_parent()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


class Skip(Exception):
    """The rest of the test cannot run here; the text says why."""


class Expired(BaseException):
    """The test took too long. Of no kind that a test waits for or passes over, as a time-out of a socket is."""


class Test:
    """Counts results; owns the scratch directory and everything that must be undone."""

    def __init__(self, name):
        self.name = name
        self.count = 0
        self.failed = 0
        self._undo = []
        self._last = []
        self.tallied = {}
        base = os.environ.get("TEST_TMP")
        if base:
            os.makedirs(base, exist_ok=True)
        self.tmp = tempfile.mkdtemp(prefix="durward-%s-" % name, dir=base)
        os.chmod(self.tmp, 0o755)
        self.cleanup(lambda: _remove(self.tmp))
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    # ---- results ----

    def ok(self, good, what, *diag):
        self.count += 1
        if not good:
            self.failed += 1
        text = what.replace("#", "\\#")
        print("%sok %d - %s" % ("" if good else "not ", self.count, text), flush=True)
        if not good:
            for d in diag:
                self.diag(d)
        return bool(good)

    def eq(self, got, want, what):
        return self.ok(got == want, what, "got:  %r" % (got,), "want: %r" % (want,))

    def has(self, text, part, what):
        return self.ok(part in text, what, "%r is not in:" % (part,), clip(text))

    def skip(self, what, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, what.replace("#", "\\#"), why), flush=True)

    def diag(self, text):
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        for line in str(text).splitlines() or [""]:
            print("# " + line, flush=True)

    def part(self, fn, *args):
        """Run one part; what it raises is a failure of that part, and the next still run."""
        try:
            return fn(*args)
        except Skip:
            raise
        except Exception:
            error = traceback.format_exc()
        self.ok(False, "%s ran to its end" % getattr(fn, "__name__", "a part"), error)

    def tally(self, **counts):
        """Figures of a whole run (tests/analyse/adversary adds them up), printed when the test ends."""
        for name, n in counts.items():
            self.tallied[name] = self.tallied.get(name, 0) + n

    # ---- things to undo ----

    def cleanup(self, fn):
        self._undo.append(fn)

    def at_end(self, fn):
        """A check after the test's own, before anything is undone."""
        self._last.append(fn)

    def path(self, *parts):
        return os.path.join(self.tmp, *parts)

    def mkdir(self, name, mode=0o755):
        p = self.path(name)
        os.makedirs(p, exist_ok=True)
        os.chmod(p, mode)
        return p

    def write(self, name, text, mode=0o644):
        p = self.path(name)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        with open(p, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(p, mode)
        return p

    def popen(self, argv, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("start_new_session", True)
        kw.setdefault("preexec_fn", die_with_parent)
        p = subprocess.Popen(argv, **kw)
        self.cleanup(lambda: stop(p))
        return p

    def close(self):
        while self._undo:
            fn = self._undo.pop()
            try:
                fn()
            except Exception as e:  # every other thing must still be undone
                self.diag("clean-up: %r" % (e,))


def _remove(folder):
    """Directories that their owner shut (mode 000), too; with something mounted below it stays, for that is somebody else's."""
    mounted = False
    for base, dirs, _ in os.walk(folder):
        for name in list(dirs):
            path = os.path.join(base, name)
            if os.path.islink(path):
                continue
            if os.path.ismount(path):
                mounted = True
                dirs.remove(name)
                continue
            try:
                os.chmod(path, 0o700)
            except OSError:
                pass
    if not mounted:
        shutil.rmtree(folder, ignore_errors=True)


def clip(text, size=3000):
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = str(text)
    return text if len(text) <= size else text[:size] + "… (%d in all)" % len(text)


def stop(p, grace=3.0):
    """End a child and its process group: TERM, then KILL."""
    if p.poll() is None:
        for sig, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
            try:
                os.killpg(p.pid, sig)
            except (ProcessLookupError, PermissionError):
                try:
                    p.send_signal(sig)
                except ProcessLookupError:
                    break
            try:
                p.wait(wait)
                break
            except subprocess.TimeoutExpired:
                continue
    for f in (p.stdin, p.stdout, p.stderr):
        if f:
            try:
                f.close()
            except OSError:
                pass
    return p.returncode


def wait_for(fn, seconds=5.0, step=0.02):
    """Poll until fn() is true; its last value."""
    end = time.monotonic() + seconds
    while True:
        v = fn()
        if v or time.monotonic() > end:
            return v
        time.sleep(step)


def descendants(pid=None):
    """Every living process below us: [(pid, command line)]."""
    pid = pid or os.getpid()
    kids = {}
    text = {}
    for d in os.listdir("/proc"):
        if not d.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % d, "rb") as f:
                fields = f.read().rpartition(b")")[2].split()
            with open("/proc/%s/cmdline" % d, "rb") as f:
                text[int(d)] = f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue
        if fields[0] == b"Z":
            continue
        kids.setdefault(int(fields[1]), []).append(int(d))
    found, todo = [], [pid]
    while todo:
        for k in kids.get(todo.pop(), []):
            found.append((k, text[k]))
            todo.append(k)
    return found


def _reap():
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def run(fn, name=None, timeout=60):
    """Run one test file: fn(test). Prints the plan last, exits 0 or 1 (99 on a broken harness)."""
    name = name or os.path.basename(sys.argv[0])
    faulthandler.register(signal.SIGUSR1)
    t = Test(name)

    def expired(_sig, _frame):
        raise Expired("the test took longer than 2 x %d s" % timeout)

    signal.signal(signal.SIGALRM, expired)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A watchdog, no measure: on a busy machine all takes twice as long. Where it meets what passes over it (a finalizer), again.
    signal.setitimer(signal.ITIMER_REAL, 2 * timeout * SLOWER, 10)
    try:
        try:
            fn(t)
        except Skip as e:
            t.skip(name, str(e))
        except BaseException as e:
            t.failed += isinstance(e, (SystemExit, KeyboardInterrupt))
            t.ok(False, "%s ran to its end" % name, traceback.format_exc())
        signal.alarm(0)
        for check in t._last:
            t.part(check)
    finally:
        signal.alarm(0)
        t.close()
    left = wait_for(lambda: (_reap(), not descendants())[1], 3.0)
    if not left:
        t.ok(False, "no process is left behind", *["%d %s" % d for d in descendants()])
        for pid, _ in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    else:
        t.ok(True, "no process is left behind")
    t.ok(not os.path.exists(t.tmp), "no scratch file is left behind", t.tmp)
    if t.tallied:
        print("# tally " + " ".join("%s=%d" % x for x in sorted(t.tallied.items())))
    print("1..%d" % t.count, flush=True)
    sys.exit(1 if t.failed else 0)
