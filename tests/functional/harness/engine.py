"""A Docker Engine of the test's own (Debian has one), with no network and nothing outside the test's
directory but its control group, and images made from what this machine has."""
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import urllib.parse

from . import tap
from .api import _Connection

DOCKERD, BUSYBOX, CURL = "/usr/sbin/dockerd", "/bin/busybox", "/usr/bin/curl"
APPLETS = ("sh ls cat echo env id ip mount nc ps pwd sleep touch true false wget head wc grep tar mkdir rm stat dd seq "
           "sort hostname nslookup printf tr ping od kill ulimit chmod ln cp mv date test unshare").split()


def needed():
    """Why there can be no engine here, or None."""
    if os.geteuid() != 0:
        return "a Docker Engine needs root"
    for program in (DOCKERD, BUSYBOX, CURL):
        if not os.access(program, os.X_OK):
            return "%s is missing (packages docker.io, busybox-static, curl)" % program
    return None


def libraries(program):
    """What it is linked to, and what glibc loads by itself to resolve names."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = [w for line in text.splitlines() for w in line.split() if w.startswith("/")]
    folder = os.path.dirname([x for x in found if "libc.so" in x][0])
    return found + [p for n in ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2")
                    for p in [os.path.join(folder, n)] if os.path.exists(p)]


def python_files():
    """The host's Python and the modules of its own, without what only tests need: [(path, host's path)]."""
    program = os.path.realpath("/usr/bin/python3")
    library = "/usr/lib/" + os.path.basename(program)
    found = {program} | set(libraries(program))
    for where, dirs, files in os.walk(library):
        dirs[:] = [d for d in dirs if d not in ("__pycache__", "test", "idlelib", "lib2to3", "distutils", "ensurepip")]
        for name in files:
            path = os.path.join(where, name)
            found.add(path)
            if name.endswith(".so") and "_ctypes." in name or "termios." in name:
                found.update(libraries(path))
    return [("usr/bin/python3", program)] + [(p.lstrip("/"), os.path.realpath(p)) for p in sorted(found)]


def rootfs(links=(), files=()):
    """busybox and curl, as a tar; links: (path, to) beside them; files: (path, host's path)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        def put(path, data, mode=0o755):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))

        def link(path, to):
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, to
            tar.addfile(info)

        with open(BUSYBOX, "rb") as f:
            put("bin/busybox", f.read())
        ours = dict([(p.lstrip("/"), os.path.realpath(p)) for p in (CURL, *libraries(CURL))] + list(files))
        for name in APPLETS:
            if "bin/" + name not in ours:
                link("bin/" + name, "busybox")
        for path, source in sorted(ours.items()):
            with open(source, "rb") as f:
                put(path, f.read())
        put("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n", 0o644)
        put("etc/nsswitch.conf", b"hosts: files dns\n", 0o644)
        put("home.txt", b"of the image\n", 0o644)
        for path, to in links:
            link(path, to)
    return out.getvalue()


class Engine:
    def __init__(self, test):
        self.test = test
        self.dir = tempfile.mkdtemp(prefix="durward-engine-", dir="/tmp")  # a socket's path is short
        self.socket = os.path.join(self.dir, "d.sock")
        self.group = "durward-engine-%d" % os.getpid()
        self.log = os.path.join(self.dir, "log")
        self.daemon = None
        test.cleanup(self.clean)
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.daemon = self.test.popen(
                [DOCKERD, "--host", "unix://" + self.socket, "--data-root", os.path.join(self.dir, "data"),
                 "--exec-root", os.path.join(self.dir, "exec"), "--pidfile", os.path.join(self.dir, "pid"),
                 "--iptables=false", "--ip6tables=false", "--bridge=none", "--cgroup-parent", "/" + self.group,
                 "--default-ulimit", "nofile=1024:4096", "--default-ulimit", "nproc=4096:4096"],
                stdout=log, stderr=log)
        if not tap.wait_for(self.answers, 30, 0.1):
            with open(self.log, errors="replace") as f:
                raise tap.Skip("the Docker Engine does not start here: %s" % f.read()[-1500:])
        self.test.cleanup(self.empty)  # undone before it ends: one that is told to end leaves what does not end in time

    def answers(self):
        try:
            return self.ask("GET", "/_ping")[0] == 200
        except OSError:
            return False

    def stop(self):
        tap.stop(self.daemon)

    def empty(self):
        for c in self.containers() if self.answers() else ():
            self.ask("DELETE", "/containers/%s?force=1&v=1" % c["Id"])

    def clean(self):
        self.stop()
        with open("/proc/self/mountinfo") as f:
            mounts = [line.split()[4] for line in f]
        for path in sorted((m for m in mounts if m.startswith(self.dir + "/")), reverse=True):
            subprocess.run(["umount", "-l", path], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
        for where, dirs, _ in os.walk("/sys/fs/cgroup"):
            if self.group in dirs:
                for below, _, _ in os.walk(os.path.join(where, self.group), topdown=False):
                    try:
                        os.rmdir(below)
                    except OSError:
                        pass
            if where.count("/") >= 5:
                dirs[:] = []

    # ---- its API ----

    def ask(self, method, path, body=None, kind="application/json", timeout=60):
        """-> (status, JSON or None)"""
        c = _Connection(self.socket, timeout)
        try:
            c.request(method, path, body, {"Content-Type": kind, "Host": "docker"})
            r = c.getresponse()
            data = r.read()
        finally:
            c.close()
        try:
            return r.status, json.loads(data)
        except ValueError:
            return r.status, None

    def image(self, name, tar=None, changes=()):
        """An image of that name from a tar, with Dockerfile instructions."""
        repo, _, tag = name.rpartition(":")
        q = [("fromSrc", "-"), ("repo", repo), ("tag", tag)] + [("changes", c) for c in changes]
        status, said = self.ask("POST", "/images/create?" + urllib.parse.urlencode(q), tar or rootfs(),
                                "application/x-tar", 600)
        if status != 200:
            raise RuntimeError("the engine imports no image: %s %s" % (status, said))
        return name

    def containers(self):
        return self.ask("GET", "/containers/json?all=1")[1] or []

    def inspect(self, cid):
        return self.ask("GET", "/containers/%s/json" % cid)[1]

    def inspect_image(self, name):
        status, said = self.ask("GET", "/images/%s/json" % name)
        return said if status == 200 else None

    # ---- containers of the test's own ----

    def create(self, name, body):
        """-> its id; begin() starts it."""
        status, said = self.ask("POST", "/containers/create?name=" + name, json.dumps(body))
        if status != 201:
            raise RuntimeError("no container %s: %s" % (name, said))
        return said["Id"]

    def begin(self, cid, wait=False):
        """Starts it; with `wait` to its end, and gives its status."""
        status, said = self.ask("POST", "/containers/%s/start" % cid)
        if status != 204:
            raise RuntimeError("the container does not start: %s" % said)
        return self.ask("POST", "/containers/%s/wait" % cid)[1]["StatusCode"] if wait else None

    def _stream(self, method, path, body=None):
        """What it says, out of the engine's frames: a kind, three zeros, a length, the bytes."""
        c = _Connection(self.socket, 60)
        try:
            c.request(method, path, body, {"Content-Type": "application/json", "Host": "docker"})
            data, found = c.getresponse().read(), []
        finally:
            c.close()
        while len(data) >= 8:
            n = int.from_bytes(data[4:8], "big")
            found.append(data[8:8 + n])
            data = data[8 + n:]
        return b"".join(found).decode("utf-8", "surrogateescape")

    def logs(self, cid):
        return self._stream("GET", "/containers/%s/logs?stdout=1&stderr=1&tail=200" % cid)

    def run(self, cid, *argv):
        """A command in a container -> (exit status, output of both kinds)."""
        said = self.ask("POST", "/containers/%s/exec" % cid, json.dumps(
            {"Cmd": argv, "AttachStdout": True, "AttachStderr": True}))[1]
        if "Id" not in (said or {}):
            return 255, str(said)
        out = self._stream("POST", "/exec/%s/start" % said["Id"], json.dumps({"Detach": False, "Tty": False}))
        return self.ask("GET", "/exec/%s/json" % said["Id"])[1]["ExitCode"], out

    def volumes(self):
        return (self.ask("GET", "/volumes")[1] or {}).get("Volumes") or []

    def traces(self):
        """What of containers is left: records, volumes, mounts and network namespaces, shims."""
        with open("/proc/self/mountinfo") as f:
            mounts = [x for x in (line.split()[4] for line in f) if x.startswith(self.dir + "/") and
                      ("/overlay2/" in x or "/netns/" in x or "/mounts/" in x)]
        shims = [p for p in tap.descendants() if "containerd-shim" in p[1] and self.dir in p[1]]
        try:
            netns = os.listdir(os.path.join(self.dir, "exec", "netns"))
        except FileNotFoundError:
            netns = []
        return {"containers": [c["Names"] for c in self.containers()], "volumes": self.volumes(),
                "mounts": [m for m in mounts if not m.endswith("/default")], "netns":
                [n for n in netns if n != "default"], "shims": shims}


def connects(path):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path)
        return True
    except OSError:
        return False
    finally:
        s.close()


PODMAN = "/usr/bin/podman"


class Podman(Engine):
    """Podman's service, which speaks the same API. Its images have no tag but `latest`."""

    def start(self):
        self.cgroups = {w for w in self.parents() if os.path.isdir(w)}
        conf = os.path.join(self.dir, "containers.conf")
        with open(conf, "w") as f:
            f.write('[engine]\ncgroup_manager="cgroupfs"\nruntime="runc"\nevents_logger="file"\nlock_type="file"\n'
                    'tmp_dir="%s/tmp"\n' % self.dir)
        os.mkdir(os.path.join(self.dir, "tmp"))
        os.mkdir(os.path.join(self.dir, "runtime"), 0o700)
        with open(self.log, "ab") as log:
            self.daemon = self.test.popen(
                [PODMAN, "--root", os.path.join(self.dir, "data"), "--runroot", os.path.join(self.dir, "exec"),
                 "--storage-driver", "overlay" if os.geteuid() == 0 else "vfs", "system", "service", "--time=0", "unix://" + self.socket],
                stdout=log, stderr=log, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.dir,
                                             "XDG_RUNTIME_DIR": os.path.join(self.dir, "runtime"), "CONTAINERS_CONF": conf})
        if not tap.wait_for(self.answers, 30, 0.1):
            with open(self.log, errors="replace") as f:
                raise tap.Skip("Podman's service does not start here: %s" % f.read()[-1500:])
        self.test.cleanup(self.empty)

    @staticmethod
    def parents():
        return [os.path.join("/sys/fs/cgroup", n, "libpod_parent") for n in os.listdir("/sys/fs/cgroup")]

    def clean(self):
        try:  # an ordinary user's leaves a process that keeps its namespaces
            with open(os.path.join(self.dir, "tmp", "pause.pid")) as f:
                os.kill(int(f.read()), signal.SIGKILL)
        except (OSError, ValueError):
            pass
        super().clean()
        for top in set(self.parents()) - self.cgroups:
            for below, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(below)
                except OSError:
                    pass

    def traces(self):
        with open("/proc/self/mountinfo") as f:
            mounts = [x for x in (line.split()[4] for line in f) if x.startswith(self.dir + "/") and
                      x.endswith("/merged")]
        conmon = [p for p in tap.descendants() if "conmon" in p[1] and self.dir in p[1]]
        return {"containers": [c["Names"] for c in self.containers()], "volumes": self.volumes(), "mounts": mounts,
                "netns": [], "shims": conmon}
