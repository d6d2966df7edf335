#!/usr/bin/python3 -B
"""Snapshots of sandboxes' files by name, sandboxes made of them and restored to them, forks: 8-bit
files, who is whose in placeholders, addresses and the audit log; and SIGKILLs of the controller and
the builder while files are copied."""
import concurrent.futures
import ctypes
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, rootfs, scene, tap  # noqa: E402

BOX = "/v1/sandboxes"
SNAP = "/v1/snapshots"
BYTES = bytes(range(256)) * 400
SETUP = ("set -e; mkdir -p deep/er empty; printf '\\377\\001' >$(printf 'n\\376me'); ln -s deep link; "
         "ln deep/../b hard; chmod 751 deep; chmod 604 b; touch -d @1000000000 deep/er; "
         "echo x >/opt/new; rm /etc/hostname; mkfifo pipe; head -c 3000000 /dev/zero >hole")
LOOK = ("sha256sum b hole | cut -c1-64; od -An -tx1 n*me; readlink link; stat -c '%a %h %s' b deep hole; "
        "stat -c %Y deep/er; test -d empty -a -p pipe; cat /opt/new; ls /etc/hostname 2>/dev/null; echo end")


def snapshot(c, sid, name, **kw):
    return c.ask("POST", SNAP, dict({"sandbox": sid, "name": name}, **kw))


def fork(c, sid, **kw):
    return c.ask("POST", "%s/%s/fork" % (BOX, sid), kw)


def restore(c, sid, name):
    return c.ask("POST", "%s/%s/restore" % (BOX, sid), {"snapshot": name})


def verb(c, sid, what):
    return c.ask("POST", "%s/%s/%s" % (BOX, sid, what))


def names(c):
    return [s["name"] for s in c.ask("GET", SNAP)["snapshots"]]


def steady(d, role):
    """Its pid, once it has lived so long that its death does not count as quick."""
    pid = [pid for pid, r in d.roles() if r == role][0]
    with open("/proc/%d/stat" % pid) as f:
        start = int(f.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    tap.wait_for(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) - start > 1.1, 3, 0.05)
    return pid


def files(t, c):
    box = c.create()["id"]
    c.write(box, "/workspace/b", BYTES)
    code, out = c.sh(box, SETUP)
    t.eq(code, 0, "files of every kind") or t.diag(out)
    want = c.sh(box, LOOK)
    made = snapshot(c, box, "base")
    t.eq((made["name"], made["state"], made["sandbox"], made["policy"], made["image"]),
         ("base", "ready", box, "coder", "host"), "a snapshot")
    c.sh(box, "echo later >later; rm b; echo changed >/opt/new")
    one = c.create(snapshot="base")
    t.eq((one["state"], one["snapshot"], one["image"]), ("running", "base", "host"), "a sandbox of it")
    t.eq(c.sh(one["id"], LOOK), want, "has the same files: bytes, modes, links, holes, times, removals")
    t.eq(c.read(one["id"], "/workspace/b"), BYTES, "8-bit content")
    t.eq(api.refused(c.read, one["id"], "/workspace/later"), (404, "file_not_found"),
         "what came after it is not there")
    c.sh(one["id"], "echo mine >b")
    two = c.create(snapshot="base")["id"]
    t.eq(c.sh(two, LOOK), want, "nobody changes it")
    shown = restore(c, box, "base")
    t.eq((shown["id"], shown["state"], shown["snapshot"]), (box, "running", "base"), "restore")
    t.eq(c.sh(box, LOOK), want, "puts the files back")
    t.eq(c.sh(box, "ls later 2>&1 | grep -c 'No such'")[1], b"1\n", "and takes others away")
    verb(c, box, "stop")
    c.sh(two, "echo 2 >two")
    snapshot(c, two, "second")
    t.eq(restore(c, box, "second")["state"], "stopped", "a stopped one stays so")
    t.eq(c.sh(box, "cat two"), (0, b"2\n"), "with the files of another's")
    child = fork(c, box, labels={"of": "box"})
    t.eq((child["state"], child["parent"], child["labels"]), ("running", box, {"of": "box"}), "fork")
    c.sh(box, "rm two")
    t.eq(c.sh(child["id"], "cat two"), (0, b"2\n"), "has its files, and they are its own")
    t.eq(c.sh(child["id"], LOOK), want, "all of them")
    grandchild = fork(c, child["id"])["id"]
    c.delete(child["id"])
    t.eq(c.sh(grandchild, "cat two"), (0, b"2\n"), "a fork of a fork outlives it")
    for sid in (box, one["id"], two, grandchild):
        c.delete(sid)
    t.eq(names(c), ["base", "second"], "snapshots outlive their sandboxes")


def use_or_create(t, d, c):
    box = c.create()["id"]

    def one(_):
        k = api.Api(d.socket)
        status, _, data = k.raw("POST", SNAP, json.dumps(
            {"sandbox": box, "name": "shared", "get_or_create": True}))
        k.close()
        return status, json.loads(data)["name"]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(one, range(6)))
    t.eq(sorted(got), [(200, "shared")] * 5 + [(201, "shared")], "use or create by name: 6 at once make one")
    t.eq(api.refused(snapshot, c, box, "shared"), (409, "conflict"), "else a name is taken once")
    t.eq(c.ask("GET", SNAP + "/shared")["state"], "ready", "show")
    for bad in ("", "../x", ".x", "a/b", "x" * 65, "a b"):
        t.eq(api.refused(snapshot, c, box, bad), (400, "bad_request"), "the name %.8r is refused" % bad)
    t.eq(api.refused(snapshot, c, "sb-none", "y"), (404, "sandbox_not_found"), "of no sandbox")
    t.eq(api.refused(c.create, snapshot="none"), (404, "snapshot_not_found"), "no sandbox of none")
    t.eq(api.refused(restore, c, box, "none"), (404, "snapshot_not_found"), "nothing is restored to none")
    t.eq(api.refused(c.create, snapshot="shared", image="host"), (400, "bad_request"),
         "it brings its image")
    small = c.create(policy="small")["id"]
    for what, fn in (("snapshot", lambda: snapshot(c, small, "n")), ("fork", lambda: fork(c, small)),
                     ("restore", lambda: restore(c, small, "shared")),
                     ("create", lambda: c.create(policy="small", snapshot="shared"))):
        got = api.refused(fn)
        t.ok(got in ((501, "unsupported"),), "%s where files are in memory: unsupported" % what, got)
    for sid in (box, small):
        c.delete(sid)
    t.eq((c.ask("DELETE", SNAP + "/shared"), c.ask("DELETE", SNAP + "/shared")), (None, None),
         "delete is idempotent")
    t.ok("shared" not in names(c), "and it is gone")


def token(c, sid):
    return c.sh(sid, "printf %s $GITHUB_TOKEN")[1].decode()


def ask(c, sid, placeholder):
    return c.sh(sid, "curl -s -i -H 'Authorization: Bearer %s' https://api.github.com/user"
                % placeholder)[1].decode()


def identity(t, s, c):
    """Who is whose."""
    box = c.create()["id"]
    mine = token(c, box)
    c.sh(box, "echo $GITHUB_TOKEN >token; getent ahostsv4 deps.example.com >before")
    t.has(ask(c, box, mine), "octo", "a sandbox's own placeholder is filled")
    child = fork(c, box)["id"]
    other = token(c, child)
    t.ok(other and other != mine, "a fork has fresh placeholders")
    t.eq(c.read(child, "/workspace/token").decode().strip(), mine, "though it has its parent's in a file")
    t.has(ask(c, child, mine), "cross_sandbox", "which is worth nothing in it")
    t.has(ask(c, child, other), "octo", "as its own is not")
    t.has(ask(c, box, other), "cross_sandbox", "nor is the fork's in the parent")
    t.has(ask(c, box, mine), "octo", "whose own goes on")
    t.eq(c.sh(child, "getent ahostsv4 api.openai.com >/dev/null; getent ahostsv4 deps.example.com | "
                     "cmp - before && echo same")[1], b"same\n", "its files' addresses mean what they did")
    snapshot(c, box, "who")
    third = c.create(snapshot="who")["id"]
    t.ok(token(c, third) not in (mine, other), "so has a sandbox of a snapshot")
    t.has(ask(c, third, mine), "cross_sandbox", "and no use of the first one's")
    t.eq(c.sh(third, "getent ahostsv4 deps.example.com | cmp - before && echo same")[1], b"same\n",
         "addresses too")
    restore(c, box, "who")
    t.ok(token(c, box) not in (mine, ""), "a restored one gets fresh ones")
    t.has(ask(c, box, mine), "cross_sandbox", "its former ones are dead")
    t.ok(s.d.wait_records(1, "lifecycle", event="sandbox_forked", target=child, detail=box) and
         s.d.wait_records(1, "lifecycle", event="snapshot_created", target=box, detail="who") and
         s.d.wait_records(1, "lifecycle", event="sandbox_restored", target=third, detail="who") and
         s.d.wait_records(1, "lifecycle", event="sandbox_restored", target=box, detail="who"),
         "the audit log shows who comes from whom")
    for sid in (box, child, third):
        c.delete(sid)


def paused(t, c):
    box = c.create()["id"]
    c.write(box, "/workspace/b", BYTES)
    if api.refused(verb, c, box, "pause"):
        t.skip("fork of a paused one", "there is no cgroup freezer here that we may use")
        c.delete(box)
        return
    child = fork(c, box)
    t.eq((child["state"], c.show(box)["state"]), ("paused", "paused"), "a fork of a paused one is paused")
    t.eq(c.read(child["id"], "/workspace/b"), BYTES, "and has its files")
    t.eq(snapshot(c, box, "cold")["state"], "ready", "a paused one can be kept")
    t.eq(restore(c, box, "cold")["state"], "stopped", "restored, it waits to be resumed")
    t.eq(c.read(box, "/workspace/b"), BYTES, "which a read does")
    for sid in (box, child["id"]):
        c.delete(sid)


def image(t, d, c):
    top = rootfs.make(t.mkdir("rootfs"))
    d.command("image", "import", "-c", d.conf, top, "small")
    box = c.create(image="small")["id"]
    c.write(box, "/etc/new", BYTES)
    snapshot(c, box, "imaged")
    c.delete(box)
    t.eq(d.command("image", "rm", "-c", d.conf, "small").returncode, 1, "a snapshot's image stays")
    made = c.create(snapshot="imaged")
    t.eq((made["image"], c.read(made["id"], "/etc/new")), ("small", BYTES), "it comes with its image")
    t.eq(c.sh(made["id"], "id -u"), (0, b"0\n"), "where everybody is root")
    host = c.create()["id"]
    t.eq(api.refused(restore, c, host, "imaged"), (409, "conflict"),
         "it is not put in place of files above another image")
    for sid in (made["id"], host):
        c.delete(sid)
    c.ask("DELETE", SNAP + "/imaged")
    t.eq(d.command("image", "rm", "-c", d.conf, "small").returncode, 0, "then the image can go")


def members(path):
    with tarfile.open(path) as f:
        return [(m, f.extractfile(m).read() if m.isreg() else b"") for m in f]


def forged(path, base, change):
    """An archive of these members, as `change` leaves them."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, encoding="utf-8",
                      errors="surrogateescape") as f:
        for m, data in change([x for x in base if "hole" not in x[0].name]):
            m.size = len(data)
            f.addfile(m, io.BytesIO(data))


def member(name, kind=tarfile.REGTYPE, data=b"", **kw):
    m = tarfile.TarInfo(name)
    m.type = kind
    for k, v in kw.items():
        setattr(m, k, v)
    return m, data


def hostile(base):
    """What an archive may not be: (what, why not, change)."""
    def add(*more):
        return lambda ms: ms[:-1] + list(more) + ms[-1:]

    def about(**kw):
        def change(ms):
            return [(ms[0][0], json.dumps(dict(json.loads(ms[0][1]), **kw)).encode())] + ms[1:]
        return change
    sym = member("root/out", tarfile.SYMTYPE, linkname="/tmp")
    return [
        ("a path that leads out", "'..'", add(member("root/../../evil", data=b"x"))),
        ("an absolute path", "not of a snapshot", add(member("/tmp/evil", data=b"x"))),
        ("a path through a link", "not a directory", add(sym, member("root/out/evil", data=b"x"))),
        ("a directory of its own", "not of a snapshot", add(member("work/evil", data=b"x"))),
        ("a hard link that leads out", "'..'", add(member("root/h", tarfile.LNKTYPE, linkname="root/../../image"))),
        ("a hard link to a link", "no file of", add(sym, member("root/h", tarfile.LNKTYPE, linkname="root/out"))),
        ("a hard link to the other part", "another part",
         add(member("usr/h", tarfile.LNKTYPE, linkname="root/workspace/b"))),
        ("a device", "is a device", add(member("root/null", tarfile.CHRTYPE, devmajor=1, devminor=3))),
        ("a block device", "of no kind", add(member("root/disk", tarfile.BLKTYPE, devmajor=8, devminor=0))),
        ("a name twice", "exists", add(member("root/two"), member("root/two"))),
        ("a redirect of overlayfs", "not for a snapshot", add(member("root/d", tarfile.DIRTYPE, pax_headers={
            "SCHILY.xattr.user.overlay.redirect": "/etc"}))),
        ("a capability", "not for a snapshot",
         add(member("root/f", pax_headers={"SCHILY.xattr.security.capability": "x"}))),
        ("more bytes than there is room", "no room", add(member("root/s", pax_headers={
            "GNU.sparse.name": "root/s", "GNU.sparse.numblocks": "1",
            "GNU.sparse.size": str(1 << 50), "GNU.sparse.map": "0,0"}))),
        ("something behind its end", "something follows", lambda ms: ms + [member("root/late")]),
        ("no end", "is cut", lambda ms: ms[:-1]),
        ("no description", "not the archive", lambda ms: ms[1:]),
        ("another format", "format is 2", about(format=2)),
        ("an image that is not there", "no image", about(image="nowhere")),
        ("an image's name that is none", "description", about(image="../x")),
        ("a sandbox that is none", "description", about(sandbox="../x")),
        ("a description of another kind", "description", about(policy=[])),
    ]


def overwriting(t, s, cli, path):
    """A file that is there is somebody's."""
    link = path + "-link"
    os.symlink(path, link)
    t.write(path, b"mine")
    for what, at, why in (("a file", path, "--force"), ("a link", link, "not a regular file"),
                          ("a directory", s.d.work, "not a regular file")):
        r = cli("export", "travels", "-o", at)
        t.ok(r.returncode == 1 and why in r.stderr and open(path, "rb").read() == b"mine",
             "export does not write over " + what, r.stdout, r.stderr)
    r = cli("export", "travels", "--force", "-o", link)
    t.ok(r.returncode == 1 and os.path.islink(link), "nor over a link by --force", r.stderr)
    r = cli("export", "travels", "--force", "-o", path)
    t.ok(r.returncode == 0 and members(path)[0][0].name == "durward-snapshot.json",
         "over a file by --force", r.stderr)
    t.eq([x for x in os.listdir(os.path.dirname(path)) if ".part" in x], [], "nothing is left beside it")


def archives(t, s, c):
    """Export and import: the same files, everything, or nothing."""
    box = c.create()["id"]
    c.write(box, "/workspace/b", BYTES)
    c.sh(box, SETUP)
    c.sh(box, "rm -r /opt; mkdir /opt; echo x >/opt/new; printf 'a\\303\\244' >$(printf '\\303\\244'); chmod 500 deep; "
              "rm hole; truncate -s 5M hole; cat b >>hole; truncate -s 20M hole; "
              "%s -c 'import os; os.setxattr(\"b\", \"user.who\", b\"me\\0\\377\")'" % "/usr/bin/python3")
    look = LOOK + ("; stat -c %b hole; ls /opt; cat $(printf '\\303\\244'); /usr/bin/python3 -c "
                   "'import os; print(os.getxattr(\"b\", \"user.who\"))'")
    want = c.sh(box, look)
    made = snapshot(c, box, "travels")
    path = os.path.join(s.d.work, "travels.tar")
    cli = lambda *args, **kw: s.d.command("sandbox", "snapshot", "--socket", s.d.socket, *args, **kw)  # noqa: E731
    r = cli("export", "travels", "-o", path)
    t.eq((r.returncode, r.stdout), (0, path + "\n"), "export") or t.diag(r.stderr)
    base = members(path)
    said = json.loads(base[0][1])
    t.eq((base[0][0].name, base[-1][0].name, said["format"], said["name"], said["sandbox"], said["image"]),
         ("durward-snapshot.json", "durward-end", 1, "travels", box, "host"), "it says first what it is")
    t.ok(os.path.getsize(path) < 1000000 and oct(os.stat(path).st_mode & 0o777) == "0o600",
         "holes are left out, and nobody else reads it", os.path.getsize(path))
    r = cli("import", "--json", "arrived", path)
    t.eq((r.returncode, r.stdout and json.loads(r.stdout)), (0, dict(made, name="arrived")),
         "import under another name, with where it comes from") or t.diag(r.stderr)
    one = c.create(snapshot="arrived")["id"]
    t.eq(c.sh(one, look), want, "the same files: bytes, names, modes, links, holes, times, removals, attributes")
    with open(path, "rb") as f:
        whole = f.read()
    t.ok(cli("import", "arrived", "-", stdin=whole).returncode == 1, "a name is taken once")
    r = cli("import", path)
    t.eq((r.returncode, names(c).count("travels")), (1, 1), "the file's name is the default")
    t.ok(s.d.wait_records(1, "lifecycle", event="snapshot_exported", target=box, detail="travels") and
         s.d.wait_records(1, "lifecycle", event="snapshot_imported", target=box, detail="arrived"), "recorded")
    base = [(m, data) for m, data in base if m.name.isascii()]
    for m, _ in base:
        m.pax_headers = {k: v for k, v in m.pax_headers.items() if "xattr" not in k and "charset" not in k}
    forged(path, base, list)
    r = cli("import", "control", path)
    t.ok(r.returncode == 0, "of those as they are a snapshot is made", r.stderr)
    c.ask("DELETE", SNAP + "/control")
    before = names(c)
    for what, why, change in hostile(base):
        forged(path, base, change)
        r = cli("import", "evil", path)
        gone = tap.wait_for(lambda: "evil" not in names(c), 10, 0.02)
        t.ok(r.returncode == 1 and why in r.stderr and gone, "refused: " + what, r.stdout, r.stderr)
    for at in (0, 100, 512, 1500, len(whole) // 2 // 512 * 512, len(whole) - 2000):
        r = cli("import", "cut", "-", stdin=whole[:at])
        tap.wait_for(lambda: "cut" not in names(c), 10, 0.02)
        t.ok(r.returncode == 1 and "archive" in r.stderr, "refused: one that ends after %d bytes" % at, r.stdout, r.stderr)
    for what, data in (("empty", b""), ("a line of text", b"hello\n"), ("a page of text", b"hello\n" * 2000)):
        r = cli("import", "cut", "-", stdin=data)
        tap.wait_for(lambda: "cut" not in names(c), 10, 0.02)
        t.ok(r.returncode == 1 and "not the archive of a snapshot" in r.stderr, "no archive: " + what, r.stderr)
    overwriting(t, s, cli, path)
    t.eq(cli("export", "none", "-o", path + "-none").returncode, 1, "there is no such snapshot")
    t.eq(names(c), before, "nothing of them is there")
    killed_midway(t, s.d, c, whole)
    for sid in (box, one):
        c.delete(sid)
    for name in ("travels", "arrived"):
        c.ask("DELETE", SNAP + "/" + name)


def half_an_import(d, name, data):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(d.socket)
    sock.sendall(b"POST /v1/snapshots/%s/import HTTP/1.1\r\nHost: durward\r\nConnection: Upgrade\r\n"
                 b"Upgrade: durward-archive\r\nContent-Length: 0\r\n\r\n" % name.encode())
    head = sock.recv(4096)
    for at in range(0, len(data), 60000):
        part = data[at:at + 60000]
        sock.sendall(b"\0" + len(part).to_bytes(4, "big") + part)
    return sock, head


def killed_midway(t, d, c, whole):
    state = os.path.join(d.dir, "state", "snapshots")
    for who in ("client", "builder", "controller"):
        sock, head = half_an_import(d, "half", whole[:len(whole) // 2])
        t.has(head.decode(), " 101 ", "an import begins")
        tap.wait_for(lambda: any(x.startswith(".new-half-") for x in os.listdir(state)), 10, 0.05)
        t.eq(c.ask("GET", SNAP + "/half")["state"], "making", "it is being made")
        if who == "client":
            sock.close()
        else:
            os.kill(steady(d, who), signal.SIGKILL)
            c.close()

        def gone():
            try:
                return "half" not in names(c) and not any("half" in x for x in os.listdir(state))
            except (OSError, api.Refused, ValueError, EOFError):
                c.close()
                return False
        t.ok(tap.wait_for(gone, 20, 0.1), "the death of the %s in the middle of an import leaves nothing" % who,
             os.listdir(state), d.diagnostics())
        sock.close()


def is_whole(c, sid):
    try:
        return c.sh(sid, "sha256sum --quiet -c sums && echo whole") == (0, b"whole\n")
    except (OSError, api.Refused, ValueError, EOFError):
        c.close()
        return False


def deaths(t, d, c):
    """Killed while files are copied: all or nothing."""
    box = c.create(idle_ttl=0)["id"]
    c.sh(box, "mkdir m; cd m; for i in $(seq 1500); do echo $i >f$i; done; head -c 8000000 /dev/urandom >r; "
              "cd ..; find m -type f | sort | xargs sha256sum >sums")
    snapshot(c, box, "whole")
    state = os.path.join(d.dir, "state")
    n = 0
    for role, waits in (("controller", (0, 0.02, 0.06, 0.15)), ("builder", (0.02, 0.1))):
        for wait in waits:
            for path, body in ((SNAP, {"sandbox": box, "name": "k%d" % n}),
                               ("%s/%s/fork" % (BOX, box), {}), (BOX, {"policy": "coder", "snapshot": "whole"}),
                               ("%s/%s/restore" % (BOX, box), {"snapshot": "whole"})):
                n += 1
                c.sh(box, "true")
                pid = steady(d, role)
                k = api.Api(d.socket, timeout=10)
                k.conn.request("POST", path, json.dumps(body), {})
                time.sleep(wait)
                os.kill(pid, signal.SIGKILL)
                c.close()
                whole = tap.wait_for(lambda: is_whole(c, box), 15, 0.1)
                if not t.ok(whole, "%s killed %.2f s after %s: files are whole" % (
                        role, wait, path.rpartition("/")[2])):
                    t.diag(d.diagnostics())
                    return
                k.close()
    for s in c.ask("GET", SNAP)["snapshots"]:
        if s["state"] == "ready":
            made = c.create(snapshot=s["name"])["id"]
            if s["name"] in ("whole",) or s["name"].startswith("k"):
                t.eq(c.sh(made, "sha256sum --quiet -c sums && echo whole")[1], b"whole\n",
                     "what is ready is whole: " + s["name"])
        c.ask("DELETE", SNAP + "/" + s["name"])
    for s in c.list("?limit=1000")["sandboxes"]:
        c.delete(s["id"])
    left = tap.wait_for(lambda: not any(os.listdir(os.path.join(state, x))
                                        for x in ("sandboxes", "snapshots")), 15, 0.2)
    t.ok(left, "nothing is left of what was under way",
         *["%s: %s" % (x, os.listdir(os.path.join(state, x))) for x in ("sandboxes", "snapshots")],
         d.diagnostics())
    t.eq((names(c), c.list()["sandboxes"]), ([], []), "no row either")


def cli(t, d):
    def run(*args):
        return d.command("sandbox", args[0], "--socket", d.socket, *args[1:])
    sid = run("create", "--policy", "coder").stdout.strip()
    run("exec", sid, "--", "sh", "-c", "echo kept >f")
    r = run("snapshot", sid, "by-hand")
    t.eq((r.returncode, r.stdout), (0, "by-hand\n"), "sandbox snapshot") or t.diag(r.stderr)
    t.ok(run("snapshot", sid, "by-hand").returncode == 1 and
         run("snapshot", "--reuse", sid, "by-hand").returncode == 0, "a name twice, and --reuse")
    rows = json.loads(run("snapshot", "ls", "--json").stdout)
    t.ok([x for x in rows if x["name"] == "by-hand" and x["sandbox"] == sid], "snapshot ls --json", rows)
    made = run("create", "--policy", "coder", "--snapshot", "by-hand").stdout.strip()
    t.eq(run("exec", made, "cat", "f").stdout, "kept\n", "create --snapshot")
    run("exec", made, "--", "sh", "-c", "echo else >f")
    r = run("restore", made, "by-hand")
    t.eq((r.returncode, run("exec", made, "cat", "f").stdout), (0, "kept\n"), "restore") or t.diag(r.stderr)
    r = run("fork", "--label", "a=b", made)
    child = r.stdout.strip()
    t.ok(re.fullmatch("sb-[a-z2-7]{26}", child), "fork prints the id", r.stderr)
    t.has(run("show", child).stdout, made, "show says whose it is")
    t.eq((run("snapshot", "rm", "by-hand").returncode, run("rm", sid, made, child).returncode), (0, 0), "rm")
    completion(t, d)


def completion(t, d):
    """What bash itself makes of it."""
    script = t.write("completion.bash", d.command("completion", "bash").stdout)
    for words, want in ((("sandbox", "re"), "resume restore"), (("sandbox", "snapshot", "exp"), "export"),
                        (("sandbox", "snapshot", "i"), "import"), (("image", "im"), "import"),
                        (("sandbox", "snapshot", "export", "--forc"), "--force")):
        r = subprocess.run(["bash", "-c", '. "$0"; COMP_WORDS=(durward "$@"); COMP_CWORD=$#; _durward; '
                            'echo "${COMPREPLY[*]}"', script] + list(words), stdout=subprocess.PIPE)
        t.eq(r.stdout.decode().strip(), want, "completion: durward " + " ".join(words))


def on_an_overlay(t):
    """Where overlayfs lies below the state directory, as in a container. In mounts of our own."""
    what = "a state directory on an overlay: one clear error"
    if os.geteuid() != 0:
        t.skip(what, "only root mounts one here")
        return
    if ctypes.CDLL(None).unshare(0x20000) != 0:
        t.skip(what, "no mount namespace can be made here")
        return
    s = scene.Scene(t)
    state = os.path.join(s.d.dir, "state")
    os.makedirs(state, exist_ok=True)
    st = os.stat(state)
    low, up, work = (t.mkdir(x) for x in ("low", "up", "work"))
    os.chown(up, st.st_uid, st.st_gid)
    os.chmod(up, st.st_mode & 0o777)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                    "lowerdir=%s,upperdir=%s,workdir=%s" % (low, up, work), state], check=True)
    try:
        s.d.serve()
        c = api.Api(s.d.socket)
        try:
            t.ok(False, what, c.create(policy="coder"))
        except api.Refused as e:
            t.has(str(e), "cannot be kept on an overlay", what)
        c.close()
        t.eq(s.d.stop(), 0, "its daemon ends well")
    finally:
        subprocess.run(["umount", "-l", state], check=True)


def main(t):
    s = scene.Scene(t)
    s.d.policies["small"] = {"rules": [], "sandbox": {"disk": "32MiB"}}
    s.d.serve()
    c = api.Api(s.d.socket)
    plain = c.create
    c.create = lambda **kw: plain(**dict({"policy": "coder"}, **kw))
    c.delete(c.first())
    t.part(files, t, c)
    t.part(use_or_create, t, s.d, c)
    t.part(identity, t, s, c)
    t.part(paused, t, c)
    t.part(image, t, s.d, c)
    t.part(cli, t, s.d)
    t.part(archives, t, s, c)
    t.part(deaths, t, s.d, c)
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    t.part(on_an_overlay, t)


tap.run(main, timeout=200)
