"""The program under test: its configuration, `durward run`, `durward serve`, its audit."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from . import books, tap
from .ca import Authority

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.dirname(HERE)
TOP = os.path.dirname(os.path.dirname(SUITE))
INSIDE = os.path.join(SUITE, "inside")
PYTHON = "/usr/bin/python3"
GATE_PROXY = "http://gate.durward.internal:3128"
LINE_AT = re.compile(rb'"id":"(\d+)-\d+","at":(\d+),')
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
               "no_proxy", "NO_PROXY")


def complaints(text):
    """Reports of sanitizers and of deaths that no test asked for, each with some lines of context."""
    lines = text.splitlines()
    return ["\n".join(lines[i:i + 40]) for i, x in enumerate(lines)
            if "Sanitizer" in x and "ERROR" in x or ": runtime error:" in x or
            "LeakSanitizer has" in x or ": assertion failed at " in x and "tests/seats/" not in x or
            "died of signal" in x and "signal 9" not in x]


def program():
    return os.path.abspath(os.environ.get("DURWARD",
                                          os.path.join(TOP, "build/stage/bin/durward")))


def clients_dir():
    """Where clients-setup put the virtual environment and node_modules."""
    return os.path.abspath(os.environ.get("DURWARD_CLIENTS", os.path.join(TOP, "build/clients")))


def client_binds(*parts):
    """What of it a sandbox needs, as binds: a scan looks at every file that a sandbox has."""
    paths = [os.path.join(clients_dir(), x) for x in parts]
    return ["%s:%s:ro" % (x, x) for x in paths if os.path.isdir(x)]


def sanitized():
    """A sanitizer build is slower and larger: bounds on time and memory are widened for it."""
    with open(program(), "rb") as f:
        return b"__asan_init" in f.read()


class Durward:
    """One configuration in scratch. Set .policies, secret(), origin(); then run() or serve()."""

    def __init__(self, test, name="d", owner=None):
        if not os.access(program(), os.X_OK):
            raise FileNotFoundError("the program under test is missing: %s" % program())
        self.test = test
        self.dir = test.mkdir(name)
        self.owner = owner
        for sub in ("conf", "work", "audit", "ca", "state", "run", "home", "origin-ca"):
            test.mkdir(os.path.join(name, sub), 0o700)
        self.work = os.path.join(self.dir, "work")
        self.audit_dir = os.path.join(self.dir, "audit")
        self.ca_dir = os.path.join(self.dir, "ca")
        self.socket = os.path.join(self.dir, "run", "api.sock")
        if len(self.socket) > 100:  # a unix socket's path has 107 bytes
            short = tempfile.mkdtemp(prefix="durward-")
            test.cleanup(lambda: shutil.rmtree(short, ignore_errors=True))
            self.socket = os.path.join(short, "api.sock")
        self.conf = os.path.join(self.dir, "conf", "durward.yaml")
        self.ca = Authority(os.path.join(self.dir, "origin-ca"))
        self.secrets, self.policies, self.resolve, self.origins = {}, {}, {}, {}
        self.listen, self.limits, self.extra = [], {}, {}
        self.audit = {"dir": self.audit_dir}
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.path.join(self.dir, "home"),
                    "LANG": "C.UTF-8", "TERM": "xterm",
                    "XDG_RUNTIME_DIR": os.path.join(self.dir, "run"),
                    "XDG_STATE_HOME": os.path.join(self.dir, "state"),
                    "XDG_DATA_HOME": os.path.join(self.dir, "state"),
                    "XDG_CACHE_HOME": os.path.join(self.dir, "state"),
                    "XDG_CONFIG_HOME": os.path.join(self.dir, "home", ".config")}
        for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if k in os.environ:
                self.env[k] = os.environ[k]
        self.prefix = []  # what the program is started through
        self.daemon = None
        self.complaints = []
        test.at_end(self.sane)
        test.cleanup(self.forget_trust)
        self.log = os.path.join(self.dir, "daemon.log")

    # ---- configuration ----

    def secret(self, name, value, mode=0o600, **more):
        """A secret kept in a file; a newline at its end is not part of it."""
        path = os.path.join(self.dir, "conf", "secret-" + name)
        with open(path, "wb") as f:
            f.write(value if isinstance(value, bytes) else value.encode())
        os.chmod(path, mode)
        self.secrets[name] = dict({"file": path}, **more)
        return path

    def origin(self, host, origin):
        self.resolve[host] = origin.address
        self.origins[host] = origin

    def policy(self, name, rules, env=None):
        self.policies[name] = {"rules": rules}
        if env:
            self.policies[name]["env"] = env

    def config(self):
        c = {"version": 1, "secrets": self.secrets, "policies": self.walled(),
             "upstream": {"ca": [self.ca.pem], "resolve": self.resolve},
             "audit": self.audit, "ca": {"dir": self.ca_dir},
             "controller": {"socket": self.socket, "state": os.path.join(self.dir, "state")}}
        for key, value in (("listen", self.listen), ("limits", self.limits)):
            if value:
                c[key] = value
        c.update(self.extra)
        return c

    def walled(self):
        """The policies. Where DURWARD_WALL names a backend, sandboxes of those that name none are behind that."""
        wall = os.environ.get("DURWARD_WALL")
        return {name: {**p, "sandbox": {"backend": wall, **p.get("sandbox", {})}} if wall else p for name, p in self.policies.items()}

    def save(self, text=None):
        """JSON is a form of YAML. text: exactly this file instead."""
        with open(self.conf, "w") as f:
            f.write(text if text is not None else json.dumps(self.config(), indent=1) + "\n")
        os.chmod(self.conf, 0o600)
        return self.conf

    def reachable_from_elsewhere(self, port):
        """The API over TLS, too; before serve(). -> (url, a function that makes the environment of a client)."""
        self.extra["controller"] = dict(self.config()["controller"], https="127.0.0.1:%d" % port)
        url = "https://127.0.0.1:%d" % port

        def access():
            ca, token = os.path.join(self.dir, "api-ca.pem"), os.path.join(self.dir, "api-token")
            for path, argv in ((ca, ("ca", "export", "-c", self.conf)),
                               (token, ("token", "create", "--scope", "admin", "--socket", self.socket))):
                r = self.command(*argv)
                if r.returncode != 0:
                    raise RuntimeError("%s: %s" % (" ".join(argv), r.stderr))
                with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                    f.write(r.stdout)
            return {"DURWARD_URL": url, "DURWARD_TOKEN_FILE": token, "DURWARD_CA": ca}
        return url, access

    # ---- commands ----

    def command(self, *args, stdin=b"", timeout=30, env=None, cwd=None, **kw):
        """Any subcommand; -> CompletedProcess with text."""
        r = subprocess.run([program()] + list(args), input=stdin, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=timeout, cwd=cwd or self.work,
                           env=dict(self.env, **(env or {})), preexec_fn=tap.die_with_parent, **kw)
        r.stdout = r.stdout.decode("utf-8", "replace")
        r.stderr = "".join(x for x in r.stderr.decode("utf-8", "replace").splitlines(True)
                           if "parent: sanitizer build: " not in x)
        self.complaints += ["durward %s\n%s" % (" ".join(args), c) for c in complaints(r.stderr)]
        return r

    def run(self, argv, flags=(), save=True, **kw):
        """durward run -c FILE FLAGS -- ARGV, in the work directory."""
        if save:
            self.save()
        return self.command("run", "-c", self.conf, *flags, "--", *argv, **kw)

    def check(self, text=None):
        self.save(text)
        return self.command("check", self.conf)

    def sane(self):
        """No crash, and nothing a sanitizer had to say, in all that was written on stderr."""
        self.stop()
        for path in (self.log, os.path.join(self.dir, "sandbox.err")):
            if os.path.exists(path):
                with open(path, errors="replace") as f:
                    self.complaints += ["in %s\n%s" % (os.path.basename(path), c) for c in complaints(f.read())]
        self.test.ok(not self.complaints, "no role crashed, no sanitizer complained",
                     *self.complaints[:5])
        books.balance(self)

    def forget_trust(self):
        """As root the bundles of our throw-away CA lie in the system's cache: take them away."""
        ours = set()
        for path in glob.glob(os.path.join(self.ca_dir, "*")):
            with open(path, "rb") as f:
                ours.add(f.read().strip())
        for folder in glob.glob("/var/cache/durward/trust-*") if os.geteuid() == 0 else ():
            try:
                with open(os.path.join(folder, "durward-ca.pem"), "rb") as f:
                    text = f.read().strip()
            except OSError:
                continue
            if text in ours:
                shutil.rmtree(folder, ignore_errors=True)

    # ---- the daemon ----

    def serve(self, save=True, wait=True, env=None):
        if save:
            self.save()
        log = open(self.log, "ab")
        self.daemon = self.test.popen(self.prefix + [program(), "serve", "-c", self.conf],
                                      stdout=log, stderr=log, cwd=self.work, env=dict(self.env, **(env or {})))
        log.close()
        if wait and not tap.wait_for(self.answers, 15, 0.05):
            raise RuntimeError("durward serve is not ready: " + self.diagnostics())
        return self.daemon

    def answers(self):
        """Ready: the daemon says so and every listener accepts."""
        if self.daemon.poll() is not None:
            raise RuntimeError("durward serve ended (%d): %s" % (self.daemon.returncode,
                                                                 self.diagnostics()))
        for entry in self.listen:
            where = (entry.get("http") or entry.get("https") or entry.get("metrics") or
                     entry.get("console"))
            host, _, port = where.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), 1).close()
            except OSError:
                return False
        return self.command("status", "--socket", self.socket).returncode == 0

    def diagnostics(self):
        try:
            with open(self.log) as f:
                return f.read()[-3000:]
        except FileNotFoundError:
            return ""

    def stop(self):
        """SIGTERM; -> exit status."""
        if self.daemon is None or self.daemon.returncode is not None:
            return None
        self.daemon.send_signal(signal.SIGTERM)
        try:
            return self.daemon.wait(20)
        except subprocess.TimeoutExpired:
            return tap.stop(self.daemon)
        finally:
            tap.stop(self.daemon)

    # ---- roles ----

    def roles(self, root=None):
        """[(pid, role)] of our daemon's (or this process's) role processes."""
        found = []
        for pid, _ in tap.descendants(root or os.getpid()):
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    text = f.read().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if text.startswith("durward: "):
                found.append((pid, text.split()[1]))
        return found

    # ---- the audit ----

    def audit_files(self):
        return sorted(glob.glob(os.path.join(self.audit_dir, "**", "*.jsonl"), recursive=True))

    def journals(self):
        """Of each writer: its log and number, and where the last whole record in its journal ends (what it
        wrote is on record from then on; the logger copies it into the log a moment later)."""
        ends = {}
        for path in glob.glob(os.path.join(self.audit_dir, "**", "journal", "*.j"), recursive=True):
            try:
                with open(path, "rb") as f:
                    head = f.read(12)
                    size = os.fstat(f.fileno()).st_size
            except OSError:
                continue  # its writer has gone, and it with it
            if len(head) == 12 and size > 12 + int.from_bytes(head[8:], "big"):
                ends[os.path.dirname(os.path.dirname(path)), os.path.basename(path)[:-2]] = size
        return ends

    def settle(self, limit=5.0):
        """Wait until everything that was on record when asked is in the log."""
        want = self.journals()

        def copied():
            at = {}
            for path in self.audit_files():
                with open(path, "rb") as f:
                    for line in f:
                        m = LINE_AT.search(line)
                        if m:
                            key = os.path.dirname(path), m[1].decode()
                            at[key] = max(at.get(key, 0), int(m[2]))
            return all(at.get(k, 0) >= size for k, size in want.items()
                       if k in at or k in self.journals())
        if want:
            tap.wait_for(copied, limit, 0.01)

    def records(self, **want):
        """Every record that has these members, in file order."""
        return [r for _, r in self.records_of(**want)]

    def records_of(self, **want):
        """[(its log, record)]: each run has a log of its own, and ids are a log's."""
        found = []
        self.settle()
        for path in self.audit_files():
            with open(path, "rb") as f:
                for line in f:
                    if not line.endswith(b"\n"):
                        continue
                    r = json.loads(line)
                    r["kind"] = r.get("kind") or r.get("type")
                    if all(r.get(k) == v for k, v in want.items()):
                        found.append((os.path.dirname(path), r))
        return found

    def kinds(self, kind, **want):
        return self.records(kind=kind, **want)

    def wait_records(self, n, kind, seconds=5.0, **want):
        return tap.wait_for(lambda: (lambda got: got if len(got) >= n else None)(
            self.kinds(kind, **want)), seconds, 0.05) or self.kinds(kind, **want)

    def ends(self, admitted, seconds=10.0):
        """{id: the record of its end}, of all that ended, once each of `admitted` did or the time is over: clients have gone, and
        their sessions go."""
        found = {}

        def ended():
            found.update({r["id"]: r for r in self.kinds("completed") + self.kinds("aborted")})
            return all(r["id"] in found for r in admitted)
        tap.wait_for(ended, seconds, 0.05)
        return found

    def check_pairs(self, test, origins, what, settle=5.0, exact=True):
        """Every admitted id once, each with exactly one end, and as many as the origins counted
        (exact=False: some were given up before a byte left, so at least as many)."""
        def count():
            return sum(o if isinstance(o, int) else len(
                o.requests if hasattr(o, "requests") else o.records()) for o in origins)

        def settled():
            ids = sorted(r["id"] for r in self.kinds("admitted"))
            ends = sorted(r["id"] for r in self.kinds("completed") + self.kinds("aborted"))
            return (ids, ends) if ids == ends and len(ids) >= count() else None
        tap.wait_for(settled, settle, 0.1)
        ids = [r["id"] for r in self.kinds("admitted")]
        ends = sorted(r["id"] for r in self.kinds("completed") + self.kinds("aborted"))
        counted = count()
        test.eq(len(ids), len(set(ids)), what + ": no id is admitted twice")
        test.ok(sorted(ids) == ends, what + ": each admitted id has exactly one end",
                "admitted without an end: %s" % sorted(set(ids) - set(ends))[:10],
                "ends: %d of %d" % (len(ends), len(ids)))
        if exact:
            test.eq(len(ids), counted, what + ": as many admitted ids as requests at the origins")
        else:
            test.ok(counted <= len(ids), what + ": no request at an origin without its record",
                    "%d at the origins, %d admitted" % (counted, len(ids)))


class Sandbox:
    """One `durward run` that obeys: inside/agent.py runs commands which we send it."""

    def __init__(self, durward, flags=(), binds=(), env=None, terminal=None):
        """terminal: a descriptor of the one that --ask asks on."""
        self.durward = durward
        durward.save()
        argv = durward.prefix + [program(), "run", "-c", durward.conf]
        for b in (INSIDE + ":" + INSIDE + ":ro",) + tuple(binds):
            argv += ["--bind", b]
        for k, v in (env or {}).items():
            argv += ["-e", "%s=%s" % (k, v)]
        argv += list(flags) + ["--", PYTHON, os.path.join(INSIDE, "agent.py")]
        self.errors = open(os.path.join(durward.dir, "sandbox.err"), "w+b")
        self.process = durward.test.popen(
            argv, cwd=durward.work, env=durward.env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, bufsize=0,
            **({} if terminal is None else {"preexec_fn": lambda: tap.take_terminal(terminal)}))
        self.out = os.fdopen(os.dup(self.process.stdout.fileno()), "rb")
        durward.test.cleanup(self.out.close)
        durward.test.cleanup(self.errors.close)
        self.lock = threading.Lock()
        hello = self._receive()
        if hello.get("ready") is not True:
            raise RuntimeError("the sandbox did not start: " + self.stderr())

    def stderr(self):
        self.errors.seek(0)
        return tap.clip(self.errors.read())

    def _line(self):
        line = self.out.readline()
        if not line:
            tap.wait_for(lambda: self.process.poll() is not None, 3)
            raise RuntimeError("the sandbox ended (%s): %s" % (self.process.poll(), self.stderr()))
        return line

    def _receive(self):
        return json.loads(self._line())

    def ask(self, **message):
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            return self._receive()

    def sh(self, command, env=None, timeout=30, proxy=False, stdin=""):
        """A shell command inside -> (status, stdout, stderr), text. proxy: the variables are set,
        else they are not there at all (transparent)."""
        env = dict(env or {})
        if proxy:
            env.update({k: GATE_PROXY for k in PROXY_NAMES[:6]})
        r = self.ask(do="sh", command=command, env=env, timeout=timeout, stdin=stdin,
                     drop=[] if proxy else list(PROXY_NAMES))
        return r["status"], r["out"], r["err"]

    def py(self, script, *args, **kw):
        """A script of inside/ -> its JSON answer (or an error with its output)."""
        line = " ".join([PYTHON, os.path.join(INSIDE, script)] + ["'%s'" % a for a in args])
        status, out, err = self.sh(line, **kw)
        try:
            return json.loads(out)
        except ValueError:
            raise RuntimeError("%s: status %s: %s%s" % (script, status, out, err))

    def stream(self, script, *args):
        """Start a script of inside/ whose stdout is framed bytes; yields blocks as they come."""
        with self.lock:
            self.process.stdin.write(json.dumps(
                {"do": "stream", "argv": [PYTHON, os.path.join(INSIDE, script)] + list(args)}
            ).encode() + b"\n")
            while True:
                size = int(self._line())
                if size == 0:
                    break
                yield self.out.read(size)
            status = self._receive()
        if status["status"] != 0:
            raise RuntimeError("%s: %s" % (script, status))

    def close(self):
        """End the agent; -> (exit status of durward, what it wrote on stderr)."""
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            tap.stop(self.process)
        return self.process.returncode, self.stderr()
