"""The same program without Durward: in a network namespace of its own, where the doubles have their hosts' names
and port 443, and no other name is known; of files it writes its own folders only. An ordinary user may do this, too."""
import os
import socket
import subprocess
import threading
import time

from . import tap
from .durward import INSIDE, PYTHON, TOP, clients_dir


def no_such_name(names):
    """Answer every question of a name: there is none."""
    try:
        while True:
            data, who = names.recvfrom(4096)
            if len(data) > 12:
                names.sendto(data[:2] + b"\x81\x83\0\1\0\0\0\0\0\0" + data[12:data.index(b"\0", 12) + 5], who)
    except (OSError, ValueError):
        pass


def quiet(names):
    """End the thread that waits in recvfrom()."""
    try:
        names.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has no peer, and the thread is woken all the same
    names.close()


class Bare:
    """origins: {host: Origin}. run() is like Durward.run(), and .took says how long it took."""

    def __init__(self, t, origins, folder, home):
        self.t, self.origins, self.folder, self.home = t, origins, folder, home
        hosts = "127.0.0.1 localhost\n" + "".join(
            "127.1.0.%d %s\n" % (i + 1, h) for i, h in enumerate(origins))
        self.hosts = t.write("bare/hosts", hosts)
        self.nothing = t.write("bare/resolv.conf", "nameserver 127.0.0.1\n")
        self.took = 0.0

    def argv(self, meeting, argv):
        own = []  # what it may write, or needs, and may lie below /tmp
        for flag, path in (("--ro-bind", TOP), ("--ro-bind", clients_dir()), ("--bind", self.t.tmp)):
            own += [flag, path, path] if os.path.exists(path) else []
        user = [] if os.geteuid() == 0 else ["--unshare-user", "--uid", "0", "--gid", "0"]  # port 443 is root's
        return ["bwrap"] + user + ["--ro-bind", "/", "/", "--tmpfs", "/tmp"] + own + [
                "--dev", "/dev", "--proc", "/proc", "--unshare-net", "--unshare-pid", "--unshare-ipc",
                "--die-with-parent", "--cap-add", "CAP_NET_BIND_SERVICE", "--ro-bind", self.hosts, "/etc/hosts", "--ro-bind", self.nothing, "/etc/resolv.conf",
                "--chdir", self.folder, "--", PYTHON, "-B", os.path.join(INSIDE, "bare.py"), meeting,
                str(len(self.origins))] + list(argv)

    def run(self, argv, env, timeout=60):
        """-> CompletedProcess, text; its status is None when it took longer."""
        path = self.t.path("bare", "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen(1)
            listening.settimeout(10)
            p = self.t.popen(self.argv(path, argv), env=dict({"PATH": "/usr/bin:/bin", "HOME": self.home}, **env),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                s, _ = listening.accept()
            except TimeoutError:
                p.kill()
                why = p.communicate()[1].decode("utf-8", "replace").strip().splitlines()
                tap.stop(p)
                raise tap.Skip("network namespaces are not available here: %s" % (why or [""])[-1]) from None
            finally:
                os.unlink(path)
            with s:
                _, found, _, _ = socket.recv_fds(s, 1, len(self.origins) + 1)
                for o, fd in zip(self.origins.values(), found):
                    o.also(socket.socket(fileno=fd))
                names = socket.socket(fileno=found[-1])
                threading.Thread(target=no_such_name, args=(names,), daemon=True).start()
                self.t.cleanup(lambda: quiet(names))
                began = time.monotonic()
                s.sendall(b"g")
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as e:
            tap.stop(p)
            out, err = e.stdout or b"", e.stderr or b""
        self.took = time.monotonic() - began
        return subprocess.CompletedProcess(argv, p.returncode, out.decode("utf-8", "replace"),
                                           err.decode("utf-8", "replace"))
