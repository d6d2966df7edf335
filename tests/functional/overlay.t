#!/usr/bin/python3 -B
"""The root of a sandbox: read-only by default, a layer in memory where the policy says so, and in
neither case anything of the host's changed. As root and as ordinary users."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, person, tap  # noqa: E402


def sh(d, policy, script, *flags, **kw):
    return d.run(["sh", "-c", script], flags=("--policy", policy) + flags, save=False, **kw)


def fixed(t, d):
    r = sh(d, "fixed", "for f in / /usr /usr/bin /etc /opt /var /var/lib /srv /mnt /bin /dev /run/"
           "durward /etc/durward; do touch $f/durward-overlay-test 2>/dev/null && echo $f; done; "
           "for f in /tmp /var/tmp /run \"$HOME\"; do touch $f/x || echo no $f; done; ls -d "
           "/workspace", "--no-bind")
    t.eq(r.stdout, "", "by default only temporary directories and home can be written") or \
        t.diag(r.stderr)


def writable(t, d):
    r = sh(d, "free", "set -e; cd /workspace; touch a; mkdir /opt/tool /new; echo 1 > /etc/new; "
           "echo 127.0.0.9 x >> /etc/hosts; mv /opt/tool /opt/moved; rm /etc/hostname; ln -s x /l;"
           "ls -d /opt/moved /new /l; cat /etc/hosts | tail -1; ls /etc/hostname 2>&1 || true; "
           "chmod 700 /srv; stat -c %a /srv; echo $PWD", "--no-bind")
    t.eq(r.stdout.split("\n")[:4], ["/l", "/new", "/opt/moved", "127.0.0.9 x"],
         "files are made, changed, moved") or t.diag(r.stderr)
    t.ok("No such file" in r.stdout and "\n700\n" in r.stdout, "and removed", r.stdout)
    r = sh(d, "free", "ls -A /workspace /new; cat /etc/hostname", "--no-bind")
    t.ok(r.returncode == 0 or "No such file" in r.stderr and "/new" in r.stderr,
         "the next sandbox begins anew", r.stdout + r.stderr)
    t.ok(not os.path.exists("/new") and not os.path.exists("/workspace") and
         "127.0.0.9" not in open("/etc/hosts").read(), "nothing of it is on the host")


def host_usr(t, d):
    """Root's own sandbox may change the host's /usr, as it sees it; nobody else can."""
    r = sh(d, "free", "echo x > /usr/durward-overlay-test && echo made; rm /usr/bin/env 2>/dev/null "
           "&& echo gone; ls /usr/bin/env", "--no-bind")
    if os.geteuid() == 0:
        t.has(r.stdout, "made\ngone\n", "root writes below /usr, in a layer")
    else:
        t.eq(r.stdout, "/usr/bin/env\n", "an ordinary user does not")
    t.ok(os.path.exists("/usr/bin/env") and not os.path.exists("/usr/durward-overlay-test"),
         "the host's /usr is as it was")


def guarded(t, d):
    """What is ours in there cannot be written, moved or covered."""
    r = sh(d, "free", "for f in /run/durward/init /etc/durward/ca-certificates.crt /proc/sys/kernel/"
           "hostname; do (echo x > $f) 2>/dev/null && echo wrote $f; done; mv /run/durward /run/x "
           "2>/dev/null && echo moved; rm -rf /etc/durward /run/durward 2>/dev/null; "
           "ls /etc/durward/ca-certificates.crt /run/durward/init; mknod /x c 1 3 2>/dev/null && "
           "echo node; grep -c ' / / ' /proc/self/mountinfo; ls -ld /proc/1/root 2>/dev/null | grep "
           "-c upper", "--no-bind")
    t.eq(r.stdout.split()[:2], ["/etc/durward/ca-certificates.crt", "/run/durward/init"],
         "our own mounts hold") or t.diag(r.stdout, r.stderr)
    r = sh(d, "free", "cat /proc/self/mountinfo", "--no-bind")
    t.ok("upperdir=/proc/self/fd/" in r.stdout and "/sandboxes/" not in r.stdout,
         "mountinfo names no directory of the host", r.stdout)


def binds(t, d):
    """A bind stays a bind; credentials in it stay masked."""
    with open(os.path.join(d.work, ".env"), "w") as f:
        f.write("SECRET=0123456789\n")
    r = sh(d, "free", "echo in > made; cat .env; rm .env 2>/dev/null; ls -A; pwd")
    t.ok("SECRET" not in r.stdout and r.stdout.endswith(d.work + "\n"), "the mask holds",
         r.stdout, r.stderr)
    t.eq(open(os.path.join(d.work, "made")).read(), "in\n", "the bind is written through")
    t.ok(os.path.exists(os.path.join(d.work, ".env")), "what is masked is not removed")


def all_parts(t):
    d = durward.Durward(t)
    d.policies = {"fixed": {"rules": []}, "free": {"rules": [], "sandbox": {"root": "writable"}}}
    d.save()
    for part in (fixed, writable, host_usr, guarded, binds):
        t.part(part, t, d)


tap.run(lambda t: person.each(t, all_parts))
