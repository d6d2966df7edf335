#!/usr/bin/python3 -B
"""durward image: import of directories, archives, OCI layouts and what `docker save` writes; ls, rm;
what runs in one, and who it is. As root and as ordinary users."""
import json
import os
import stat
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, person, rootfs, tap  # noqa: E402


def store(d, *path):
    return os.path.join(d.dir, "state", "images", *path)


def image(d, *args, **kw):
    return d.command("image", args[0], "-c", d.conf, *args[1:], **kw)


def run(d, name, script, *flags, policy="fixed", timeout=30):
    return d.command("run", "-c", d.conf, "--policy", policy, "--image", name, *flags, "--", "sh",
                     "-c", script, timeout=timeout)


def forms(t, d, top):
    """Every form gives the same files."""
    for name, args, kw in (
            ("directory", (top,), {}),
            ("tar", ("-",), {"stdin": rootfs.whole(top)}),
            ("tar.gz", (t.write("x.tar.gz", rootfs.whole(top, "w:gz")),), {}),
            ("tar.xz", (t.write("x.tar.xz", rootfs.whole(top, "w:xz")),), {}),
            ("docker", (t.write("d.tar", rootfs.docker_save([rootfs.whole(top)])),), {})):
        r = image(d, "import", *args, name, **kw)
        t.ok(r.returncode == 0 and r.stdout == name + "\n", "import of a %s" % name, r.stderr)
        r = run(d, name, "cat /etc/passwd; ls /usr/bin", "--no-bind")
        t.ok(r.returncode == 0 and "www-data" in r.stdout and "touch" in r.stdout,
             "a sandbox has the files of the %s" % name, r.stdout, r.stderr)


def layers(t, d, top):
    """Later layers win; whiteouts take away, whatever the order of members."""
    one = rootfs.whole(top, "w:gz")
    two = rootfs.archive([rootfs.member("opt/kept", content=b"below"),
                          rootfs.member("opt/gone", content=b"below"),
                          rootfs.member("srv/a/old", content=b"below"),
                          rootfs.member("turn", content=b"a file")])
    three = rootfs.archive([rootfs.member("srv/a/new", content=b"above"),
                            rootfs.member("srv/a/.wh..wh..opq"),
                            rootfs.member("opt/.wh.gone"),
                            rootfs.member("turn", tarfile.DIRTYPE, mode=0o755),
                            rootfs.member("turn/inside", content=b"x")])
    for form in ("layout", "index"):
        lay = rootfs.Layout(t.path(form))
        m = lay.image([one, two, three], arch=rootfs.architecture())
        if form == "index":
            inner = lay.blob(json.dumps({"schemaVersion": 2, "manifests": [
                lay.image([one], arch="s390x"), m]}).encode())
            lay.index(inner)
        else:
            lay.index(m)
        r = image(d, "import", lay.top, form)
        t.ok(r.returncode == 0, "import of an OCI %s" % form, r.stderr)
        r = run(d, form, "cd /; ls opt srv/a turn; cat srv/a/new", "--no-bind")
        t.eq(r.stdout.split(), ["opt:", "kept", "srv/a:", "new", "turn:", "inside", "above"],
             "layers, whiteouts and opaque directories") or t.diag(r.stderr)
    blob = os.path.join(t.path("layout"), "blobs/sha256", m["digest"][7:])
    with open(blob, "a") as f:
        f.write(" ")
    r = image(d, "import", t.path("layout"), "altered")
    t.ok(r.returncode == 1 and "digest" in r.stderr, "an altered blob is refused", r.stderr)


def listing(t, d):
    r = image(d, "ls")
    t.ok(r.stdout.split("\n")[1].startswith("host ") and "tar.gz" in r.stdout, "ls", r.stdout)
    rows = {x["name"]: x for x in json.loads(image(d, "ls", "--json").stdout)}
    t.ok(rows["host"]["kind"] == "built in" and rows["tar"]["files"] > 20 and
         rows["layout"]["kind"] == "layers" and rows["tar"]["bytes"] > 100000, "ls --json",
         str(rows))
    r = image(d, "import", "/nonexistent", "x")
    t.ok(r.returncode == 1 and "No such file" in r.stderr, "a source that is not there", r.stderr)
    r = image(d, "import", "-", "tar", stdin=b"")
    t.ok(r.returncode == 1 and "already" in r.stderr, "a name that is taken", r.stderr)
    for name in ("../x", "-x", ".x", "a/b", "x" * 65, "host"):
        r = image(d, "import", "--", "/usr/share/doc", name)
        t.ok(r.returncode == 1, "the name %.10s is refused" % name, r.stderr)
    for what in (b"", b"no archive at all", os.urandom(4096)):
        r = image(d, "import", "-", "broken", stdin=what)
        t.ok(r.returncode == 1 and r.stderr.count("\n") == 1, "what is no archive is refused",
             r.stderr)
    r = run(d, "nosuch", "true")
    t.ok(r.returncode == 125 and "image import" in r.stderr, "an image that is not there", r.stderr)


def who(t, d):
    """Root inside, who is nobody outside where that can be had; with a bind everybody is himself."""
    files = os.stat(store(d, "tar", "root", "usr"))
    expected = {"root": 61710, person.PLAIN: person.UID, person.MAPPED: 700000}.get(
        person.name(), files.st_uid)
    t.eq(files.st_uid, expected, "whom an image's files belong to")
    r = run(d, "tar", "id -u; id -g; cd; pwd; touch /root/x && echo home; touch /x && echo bad",
            "--no-bind")
    t.eq(r.stdout.split(), ["0", "0", "/root", "home"], "without binds: root, and a home")
    r = run(d, "tar", "id -u; pwd; touch made; touch /usr/x && echo bad; cat /etc/passwd")
    t.eq(r.stdout.split("\n")[:2], [str(os.geteuid()), d.work], "with a bind: the caller") or \
        t.diag(r.stderr)
    t.eq(os.stat(os.path.join(d.work, "made")).st_uid, os.geteuid(), "who owns what he makes")
    t.ok("www-data" in r.stdout, "the image's accounts are there", r.stdout)
    t.ok("bad" not in r.stdout, "the image is read-only")
    r = run(d, "tar", "echo new > /usr/bin/new && rm /usr/bin/ls && mkdir /etc/d && mv /usr/bin/id "
            "/usr/bin/ident && /usr/bin/ident -u; ls /usr/bin 2>&1", "--no-bind", policy="free")
    t.eq(r.stdout.split()[0], "0", "root: writable") or t.diag(r.stderr)
    names = os.listdir(store(d, "tar", "root", "usr", "bin"))
    t.ok("ls" in names and "new" not in names and "id" in names, "the image stays as it is",
         str(names))
    r = run(d, "tar", "cat /proc/self/uid_map /etc/resolv.conf; ls /usr/local /etc/durward "
            "/etc/ssl/certs", "--no-bind")
    t.ok("198.18.0.1" in r.stdout and "ca-certificates.crt" in r.stdout,
         "names and trust bundles are ours", r.stdout, r.stderr)


def removing(t, d):
    box = t.popen([durward.program(), "run", "-c", d.conf, "--policy", "fixed", "--image", "tar",
                   "--no-bind", "--", "sh", "-c", "echo on; exec cat"], cwd=d.work, env=d.env,
                  stdin=-1, stdout=-1)
    t.eq(box.stdout.readline(), b"on\n", "a sandbox runs")
    r = image(d, "rm", "tar")
    t.ok(r.returncode == 1 and "in use" in r.stderr, "an image in use stays", r.stderr)
    box.stdin.close()
    box.wait(10)
    names = [x["name"] for x in json.loads(image(d, "ls", "--json").stdout) if x["name"] != "host"]
    r = image(d, "rm", *names)
    t.eq((r.returncode, os.listdir(store(d))), (0, []), "rm leaves nothing") or t.diag(r.stderr)
    t.ok(image(d, "rm", "tar").returncode == 1, "a second rm says so")
    t.ok(image(d, "rm", "host").returncode == 1, "host cannot be removed")


def progress(t, d, top):
    """On a terminal a line that counts; elsewhere nothing."""
    r = image(d, "import", "-", "quiet", stdin=rootfs.whole(top))
    t.ok(" files, " not in r.stderr and "1 set-uid" in r.stderr,
         "no progress where there is no terminal; what was left out is said", r.stderr)
    master, slave = os.openpty()
    p = t.popen([durward.program(), "image", "import", "-c", d.conf, top, "seen"], env=d.env,
                stdout=-1, stderr=slave)
    os.close(slave)
    p.wait(20)
    text = os.read(master, 4096).decode()
    os.close(master)
    t.ok(" files, 3 MiB\033[K" in text and "\r\033[Kdurward" in text, "progress on a terminal",
         repr(text))
    mode = stat.S_IMODE(os.stat(store(d)).st_mode)
    t.eq(mode, 0o700, "the store is closed to others")


def all_parts(t):
    d = durward.Durward(t)
    d.policies = {"fixed": {"rules": []}, "free": {"rules": [], "sandbox": {"root": "writable"}}}
    d.save()
    top = rootfs.make(t.mkdir("rootfs"))
    os.chmod(os.path.join(top, "usr/bin/id"), 0o4755)
    t.part(forms, t, d, top)
    t.part(layers, t, d, top)
    t.part(listing, t, d)
    t.part(who, t, d)
    t.part(progress, t, d, top)
    t.part(removing, t, d)


tap.run(lambda t: person.each(t, all_parts, mapped=True), timeout=120)
