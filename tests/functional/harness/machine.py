"""A bare Debian, made by debootstrap from where this host gets its packages, and started under systemd of its own in
namespaces: mount, pid, uts, ipc and control groups. The network is the host's, so that servers of a test are reached."""
import json
import os
import shutil
import signal
import subprocess

from . import tap

# /proc/sys is the host's: nothing that would set something there, and nothing that waits for devices.
MASKED = ("systemd-sysctl.service systemd-modules-load.service systemd-udevd.service systemd-udev-trigger.service "
          "systemd-binfmt.service proc-sys-fs-binfmt_misc.automount kmod-static-nodes.service systemd-timesyncd.service "
          "systemd-networkd.service systemd-resolved.service systemd-random-seed.service systemd-remount-fs.service "
          "dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount "
          "console-getty.service getty.target apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer "
          "systemd-hwdb-update.service ldconfig.service systemd-firstboot.service").split()
BOOT = r"""
set -e
T=$1 G=$2
mkdir -p "$G" && echo $$ >"$G/cgroup.procs"
exec unshare --cgroup --mount --pid --uts --ipc --fork --kill-child sh -ec '
    T=$1
    mount --make-rprivate /
    mount --bind "$T" "$T"
    mount -t proc proc "$T/proc"
    mount -t sysfs -o ro sysfs "$T/sys"
    mount -t tmpfs -o mode=755 tmpfs "$T/dev"
    for n in null zero full random urandom tty; do touch "$T/dev/$n"; mount --bind "/dev/$n" "$T/dev/$n"; done
    mkdir "$T/dev/pts" "$T/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$T/dev/pts"
    ln -s pts/ptmx "$T/dev/ptmx"
    mount -t tmpfs -o mode=1777 tmpfs "$T/dev/shm"
    mount -t tmpfs -o mode=755 tmpfs "$T/run"
    mount -t cgroup2 cgroup2 "$T/sys/fs/cgroup"
    cd "$T" && mkdir -p .old && pivot_root . .old && umount -l .old && rmdir .old
    mount --make-rshared /  # as systemd expects it in a container; credentials are mounts
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init --log-target=console --log-level=warning
' boot "$T"
"""


def mirror(suite="bookworm"):
    """Where this host's apt has its packages from."""
    text = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
                           "Created-By: Packages"], capture_output=True, text=True).stdout
    found = [line.split()[0] for line in text.splitlines() if line.split()[1:] == [suite, "main"]]
    return found[0] if found else None


def needed():
    """Why there can be no such machine here, or None."""
    if os.geteuid() != 0:
        return "a machine of its own needs root"
    for program in ("debootstrap", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return "%s is missing (packages debootstrap, util-linux)" % program
    if mirror() is None:
        return "apt knows no mirror of Debian 12"
    return None if group_root() else "no cgroup2 is mounted here"


def group_root():
    with open("/proc/self/mounts") as f:
        found = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    return found[0] if found else None


class Machine:
    """install(), boot(), sh(), then off(); the tree stays until the test ends."""

    def __init__(self, test, include=()):
        self.test = test
        self.tree = test.mkdir("machine")
        self.group = os.path.join(group_root(), "durward-machine-%d" % os.getpid())
        self.log = test.path("machine.log")
        self.process = None
        test.cleanup(self.off)
        self._debian(("systemd", "systemd-sysv") + tuple(include))
        for unit in MASKED:
            os.symlink("/dev/null", os.path.join(self.tree, "etc/systemd/system", unit))
        shutil.copy("/etc/resolv.conf", os.path.join(self.tree, "etc/resolv.conf"))

    def _debian(self, packages):
        """DURWARD_DEBIAN names a tree that debootstrap made with these packages, to be copied."""
        made = os.environ.get("DURWARD_DEBIAN")
        argv = ["cp", "-a", made + "/.", self.tree] if made else [
            "debootstrap", "--variant=minbase", "--include=" + ",".join(packages), "bookworm", self.tree, mirror()]
        with open(self.test.path("debootstrap.log"), "wb") as log:
            r = subprocess.run(argv, stdout=log, stderr=log, timeout=420 * tap.SLOWER)
        if r.returncode != 0:
            with open(self.test.path("debootstrap.log")) as log:
                raise tap.Skip("%s failed: %s" % (argv[0], log.read()[-300:].replace("\n", " | ")))

    def path(self, *parts):
        return os.path.join(self.tree, *(p.lstrip("/") for p in parts))

    def put(self, path, text, mode=0o644):
        with open(self.path(path), "w") as f:
            f.write(text)
        os.chmod(self.path(path), mode)

    def boot(self):
        with open(self.log, "ab") as log:
            self.process = self.test.popen(["sh", "-c", BOOT, "boot", self.tree, self.group], stdout=log, stderr=log)
        if not tap.wait_for(lambda: self.sh("systemctl is-system-running", check=False)[1].strip()
                            in ("running", "degraded"), 60, 0.3):
            with open(self.log, errors="replace") as f:
                raise tap.Skip("systemd does not start in namespaces here: " + f.read()[-300:].replace("\n", " | "))

    def init(self):
        """systemd's process id, as we see it."""
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            found = f.read().split()
        return int(found[0]) if found else None

    def sh(self, command, timeout=60, check=True):
        """-> (exit status, output of both kinds)."""
        init = self.init()
        if init is None:
            return 255, "the machine is off"
        r = subprocess.run(["nsenter", "-t", str(init), "-m", "-p", "-u", "-i", "-C", "--root", "--wd", "env", "-i",
                            "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
                            "DEBIAN_FRONTEND=noninteractive", "sh", "-c", command], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        text = r.stdout.decode("utf-8", "replace")
        if check and r.returncode != 0:
            raise RuntimeError("%s: status %d: %s" % (command, r.returncode, text[-2000:]))
        return r.returncode, text

    def json(self, command):
        return json.loads(self.sh(command)[1])

    def off(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
        tap.wait_for(self._groups_gone, 10, 0.1)

    def _groups_gone(self):
        for where, _, _ in os.walk(self.group, topdown=False):
            try:
                os.rmdir(where)
            except OSError:
                pass
        return not os.path.exists(self.group)
