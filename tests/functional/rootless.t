#!/usr/bin/python3 -B
"""Root's own sandboxes: root inside, nobody on the host, as the host's /proc sees it. What root binds
is root's inside as well; what else is root's on the host is not. Files that an earlier version kept,
when such a sandbox was uid 0 outside."""
import ctypes
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, rootfs, scene, tap  # noqa: E402

OURS, STRANGER = 61710, 61998
HOLD = "echo on; exec cat"
MOUNTED = 'set -e; eval "$1"; shift; exec "$@"'
BOX, SNAP = "/v1/sandboxes", "/v1/snapshots"


def run(d, argv, *flags, **kw):
    return d.run(argv, flags=("--policy", "p") + flags, save=False, **kw)


def people(pid):
    """Of every process below pid that is in a user namespace of its own: uids, gids, groups."""
    own, found = os.readlink("/proc/self/ns/user"), []
    for p, text in tap.descendants(pid):
        try:
            if os.readlink("/proc/%d/ns/user" % p) == own:
                continue
            with open("/proc/%d/status" % p) as f:
                rows = dict(x.split(":", 1) for x in f.read().splitlines() if ":" in x)
        except OSError:
            continue  # it has just ended
        found.append((text[:60], [int(x) for k in ("Uid", "Gid", "Groups") for x in rows[k].split()]))
    return found


def nobody(t, pid, least, what):
    got = people(pid)
    good = len(got) >= least and all(set(ids) == {OURS} for _, ids in got)
    t.ok(good, "%s: every process of it is %d outside" % (what, OURS), *got)


def outside(t, d, top):
    """Each kind of `durward run`."""
    r = d.command("image", "import", "-c", d.conf, top, "small")
    t.eq(r.returncode, 0, "an image") or t.diag(r.stderr)
    for what, flags in (("the current directory", []), ("without a bind", ["--no-bind"]),
                        ("a writable root", ["--policy", "free"]),
                        ("an image", ["--image", "small", "--no-bind"]),
                        ("an image and a bind", ["--image", "small"])):
        flags = flags if "--policy" in flags else ["--policy", "p"] + flags
        p = t.popen([durward.program(), "run", "-c", d.conf] + flags +
                    ["--", "sh", "-c", "id -u; id -g; " + HOLD], cwd=d.work, env=d.env, stdin=-1, stdout=-1,
                    stderr=open(d.log, "ab"))
        t.eq([p.stdout.readline() for _ in range(3)], [b"0\n", b"0\n", b"on\n"], what + ": root inside")
        nobody(t, p.pid, 3, what)
        p.stdin.close()
        t.eq(p.wait(20), 0, what + ": its end")
    d.command("image", "rm", "-c", d.conf, "small")


def mounted(d, mounts, argv, flags=()):
    """`durward run` where these commands have mounted something, for it alone."""
    return subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNTED, "sh", mounts,
                           durward.program(), "run", "-c", d.conf, "--policy", "p"] + list(flags) + ["--"] + argv,
                          cwd=d.work, env=d.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=30, preexec_fn=tap.die_with_parent)


def bound(t, d):
    """A bind shows the owner's files as the owner's, and a stranger's as a stranger's."""
    for name, owner, mode in (("own", 0, 0o600), ("theirs", STRANGER, 0o600), ("open", STRANGER, 0o666)):
        path = os.path.join(d.work, name)
        with open(path, "w") as f:
            f.write(name + "\n")
        os.chmod(path, mode)
        os.chown(path, owner, owner)
    r = run(d, ["sh", "-c", "stat -c '%u %g %n' . own; cat own; cat theirs 2>/dev/null || echo refused; echo x >>open; "
               "mkdir dir; echo 1 >dir/made; chmod 600 dir/made; git init -q dir 2>&1; git -C dir status -s"])
    t.eq(r.stdout.split("\n")[:5], ["0 0 .", "0 0 own", "own", "refused", "?? made"], "files of a bind") or \
        t.diag(r.stderr)
    made = [os.stat(os.path.join(d.work, x)) for x in ("dir", "dir/made")]
    t.eq([(s.st_uid, s.st_gid, s.st_mode & 0o777) for s in made], [(0, 0, 0o755), (0, 0, 0o600)],
         "what it makes there is root's on the host")
    t.eq(open(os.path.join(d.work, "open")).read(), "open\nx\n", "what everybody may write, it may")
    r = run(d, ["sh", "-c", "cat own; echo x >own || echo refused; rm own || echo refused"],
            "--no-bind", "--bind", d.work + ":ro", "--workdir", d.work)
    t.eq(r.stdout.split(), ["own", "refused", "refused"], "a read-only one is read") or t.diag(r.stderr)


def not_bound(t, d):
    """What root alone may read, in what every sandbox sees of the host."""
    aside = t.mkdir("aside")
    for name, mode in (("secret", 0o600), ("plain", 0o644)):
        with open(os.path.join(aside, name), "w") as f:
            f.write(name + "\n")
        os.chmod(f.name, mode)
    r = mounted(d, "mount --bind %s /usr/src" % aside,
                ["sh", "-c", "cat /usr/src/plain; cat /usr/src/secret; stat -c %u /usr/bin/env"], ["--no-bind"])
    t.eq(r.stdout.split(), ["plain", "65534"], "a file of root's below /usr, 0600, is not read") or t.diag(r.stderr)
    t.has(r.stderr, "Permission denied", "its reason")


def credentials(t, d):
    """Whoever had got out with what a sandbox's process is would find nothing of root's open."""
    p = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "p", "--", "sh", "-c", HOLD], cwd=d.work, env=d.env, stdin=-1,
                stdout=-1)
    p.stdout.readline()
    inside = tap.wait_for(lambda: [ids for text, ids in people(p.pid) if text == "cat"])
    t.eq(len(inside), 1, "a process of a sandbox")
    ids = inside[0] if inside else [0] * 8
    own = t.write("own", "root's\n", 0o600)
    r = subprocess.run(["setpriv", "--reuid", str(ids[0]), "--regid", str(ids[4]), "--clear-groups",
                        "--bounding-set", "-all", "sh", "-c",
                        "cat %s; echo x >/proc/sys/kernel/core_pattern; kill -0 %d; : >/etc/durward-test; "
                        "cat /proc/%d/environ" % (own, os.getpid(), os.getpid())], capture_output=True, text=True)
    t.eq((r.stdout, len(r.stderr.splitlines())), ("", 5), "its uid is nobody's on the host") or \
        t.diag(r.stdout + r.stderr)
    p.stdin.close()
    p.wait(20)


def elsewhere(t, d):
    """File systems that cannot show another owner, and mounts that the host shares."""
    with open(os.path.join(d.work, ".env"), "w") as f:
        f.write("SECRET=0123456789\n")
    up, work = t.mkdir("up"), t.mkdir("up.work")
    r = mounted(d, "mount -t overlay overlay -o lowerdir=%s,upperdir=%s,workdir=%s %s; cd %s" %
                (d.work, up, work, d.work, d.work),
                ["sh", "-c", "cat own; cat open; echo x >new; cat .env"])
    t.eq((r.stdout.split(), r.stderr.count("Permission denied")), (["open", "x"], 2),
         "on an overlay what is root's alone is not read, and nothing is made") or t.diag(r.stdout + r.stderr)
    t.has(r.stderr, "cannot show root's files as the sandbox's", "which is said")
    shown = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c",
         'mount --bind "$1" "$1"; mount --make-shared "$1"; cd "$1"; shift; "$@" & '
         'while [ ! -e ready ]; do sleep 0.02; done; cat .env; rm ready; wait',
         "sh", d.work, durward.program(), "run", "-c", d.conf, "--policy", "p", "--", "sh", "-c",
         "cat .env; : >ready; while [ -e ready ]; do sleep 0.02; done"],
        cwd=d.work, env=d.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    t.has(shown.stdout, "SECRET=0123456789", "a mask in a mount that the host shares is none for the host") or t.diag(shown.stdout + shown.stderr)


def pipes(t, d):
    """/dev/stdin and the like are opened again by name."""
    r = run(d, ["sh", "-c", "cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr"], stdin=b"in\n")
    t.eq((r.stdout, "err" in r.stderr.splitlines()), ("in\nout\n", True), "pipes that root made are the sandbox's too") or t.diag(r.stderr)


def daemon(t, s, c):
    """Create, pause, fork, snapshot, restore."""
    box = c.create(policy="coder")["id"]
    t.eq(c.sh(box, "id -u; touch /usr/durward-test /workspace/a && stat -c %u /usr/bin/env /usr/durward-test"),
         (0, b"0\n0\n0\n"), "a sandbox of the daemon: root, who may write below /usr as it sees it")
    nobody(t, s.d.daemon.pid, 2, "created")
    c.ask("POST", SNAP, {"sandbox": box, "name": "one"})
    child = c.ask("POST", "%s/%s/fork" % (BOX, box), {})["id"]
    t.eq(c.sh(child, "ls /workspace /usr/durward-test"), (0, b"/usr/durward-test\n\n/workspace:\na\n"), "a fork")
    nobody(t, s.d.daemon.pid, 4, "forked")
    c.sh(box, "rm /workspace/a")
    c.ask("POST", "%s/%s/restore" % (BOX, box), {"snapshot": "one"})
    t.eq(c.sh(box, "ls /workspace; touch /workspace/b"), (0, b"a\n"), "restored")
    nobody(t, s.d.daemon.pid, 4, "restored")
    t.ok(not os.path.exists("/usr/durward-test"), "the host's /usr is as it was")
    owners = set()
    for top, dirs, files in os.walk(os.path.join(s.d.dir, "state/sandboxes", box, "root")):
        owners |= {os.lstat(os.path.join(top, x)).st_uid for x in dirs + files}
    t.eq(owners, {OURS}, "whose its files are")
    return box, child


def aged(t, s, c, box, child):
    """What an earlier version kept is root's; it is opened all the same."""
    base = os.path.join(s.d.dir, "state")
    c.sh(box, "set -e; cd /workspace; mkdir -p closed/in; echo f >closed/in/f; chmod 0 closed; ln -s /none link; ln b hard; "
              "rm /etc/hostname; chmod 640 b")
    look = "stat -c '%u %a %h %n' /workspace/* /usr/durward-test; ls /etc/hostname; chmod 700 /workspace/closed; cat /workspace/closed/in/f"
    for sid in (box, child):
        c.ask("POST", "%s/%s/stop" % (BOX, sid))
    c.ask("POST", SNAP, {"sandbox": box, "name": "old"})
    for part in ("sandboxes/" + box, "snapshots/old"):
        for name in ("root", "usr", "root.work", "usr.work"):
            path = os.path.join(base, part, name)
            if os.path.isdir(path):
                subprocess.run(["chown", "-hR", "0:0", path], check=True)
    for what, sid in (("a sandbox", box), ("one of a snapshot", None)):
        sid = sid or c.create(policy="coder", snapshot="old")["id"]
        c.ask("POST", "%s/%s/resume" % (BOX, sid)) if sid == box else None
        code, out = c.sh(sid, look + "; touch /workspace/new /usr/new; rm -r /workspace/closed")
        t.ok(code == 0 and b"0 640 2 /workspace/b\n" in out and b"0 0 3 /workspace/closed\n" in out and
             b"0 777 1 /workspace/link\n" in out and out.endswith(b"f\n") and b"/usr/durward-test\n" in out,
             what + " that an earlier version kept is whole, and its own", out)
    nobody(t, s.d.daemon.pid, 4, "after that")


def unable(t, s):
    """As under the packaged unit, without CAP_SYS_ADMIN: /usr as its owner is not to be had, all else is."""
    s.d.prefix = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    s.d.serve()
    c = api.Api(s.d.socket)
    box = [x["id"] for x in c.ask("GET", BOX)["sandboxes"]][0]
    c.ask("POST", "%s/%s/resume" % (BOX, box))
    code, out = c.sh(box, "id -u; ls /usr/durward-test; echo x >/workspace/b && cat /workspace/b; touch /usr/bin/durward-more 2>/dev/null || echo refused")
    t.ok(code == 0 and out.split()[:3] == [b"0", b"/usr/durward-test", b"x"] and out.endswith(b"refused\n"),
         "without CAP_SYS_ADMIN a sandbox has what it wrote below /usr, and writes no more there", out)
    fresh = c.create(policy="coder")["id"]
    t.eq(c.sh(fresh, "id -u; touch /workspace/x /opt/y && ls /usr/bin/env"), (0, b"0\n/usr/bin/env\n"), "a fresh one works")
    nobody(t, s.d.daemon.pid, 4, "both")
    c.close()
    s.d.stop()


def main(t):
    if os.geteuid() != 0:
        raise tap.Skip("root's own sandboxes: needs root")
    d = durward.Durward(t)
    d.policies = {"p": {"rules": []}, "free": {"rules": [], "sandbox": {"root": "writable"}}}
    d.save()
    if run(d, ["true"]).returncode != 0:
        raise tap.Skip("no sandbox can be made here")
    top = rootfs.make(t.mkdir("top"))
    for part in ((outside, t, d, top), (bound, t, d), (not_bound, t, d), (credentials, t, d), (elsewhere, t, d),
                 (pipes, t, d)):
        t.part(*part)
    s = scene.Scene(t)
    s.d.serve()
    c = api.Api(s.d.socket)
    boxes = t.part(daemon, t, s, c)
    t.part(aged, t, s, c, *(boxes or ("", "")))
    c.close()
    s.d.stop()
    t.part(unable, t, s)
    shutil.rmtree(t.path("top"), ignore_errors=True)


tap.run(main, timeout=180)
