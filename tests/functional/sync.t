#!/usr/bin/python3 -B
"""`durward sandbox sync`: a tree of the host's and one of a sandbox are kept the same, whoever writes and however;
conflicts keep both; what a sandbox makes to reach the host's files, or to have the host run code, stays inside; files
that hold credentials stay on the host. The API's versions, by which nothing is written over that nobody looked at."""
import json
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, syncing, tap  # noqa: E402

W = "/workspace/"
KEY = b"-----BEGIN PRIVATE KEY-----\nx\n"


def put(top, path, data):
    """In place, as some editors do."""
    os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
    with open(os.path.join(top, path), "wb") as f:
        f.write(data)


def save(top, path, data):
    """Beside it, then renamed, as the others do."""
    put(top, path + "~tmp", data)
    os.rename(os.path.join(top, path + "~tmp"), os.path.join(top, path))


def versions(t, c, sid):
    at = "/v1/sandboxes/%s/files" % sid
    stat = lambda p: c.ask("GET", at + "/stat?path=" + p)  # noqa: E731

    def still(p):
        tap.wait_for(lambda: stat(p)["version"], 5, 0.02)
        return stat(p)["version"]

    def write(p, data, v):
        return c.raw("PUT", at + "?path=%s&if_version=%s" % (p, v), data)[0]

    def remove(p, v):
        return c.raw("DELETE", at + "?path=%s&if_version=%s" % (p, v))[0]
    c.sh(sid, "mkdir v; ln -s /etc/passwd v/link; printf old >v/a")
    t.eq(stat(W + "v/link")["type"], "symlink", "stat follows no link")
    t.eq(api.refused(stat, W + "v/none"), (404, "file_not_found"), "nor finds what is not there")
    first = still(W + "v/a")
    t.eq((write(W + "v/a", b"new", first), c.read(sid, W + "v/a")), (204, b"new"), "written over the version that was meant")
    t.eq((write(W + "v/a", b"newer", first), c.read(sid, W + "v/a")), (412, b"new"), "and over no other")
    t.eq((write(W + "v/a", b"newer", "none"), write(W + "v/b/c", b"b", "none"), c.read(sid, W + "v/b/c")), (412, 204, b"b"),
         "where nothing is, if nothing is meant")
    t.eq([write(W + "v/a", b"x", v) for v in ("x", "1.2.3", "1.2.3.4.5", "")], [400] * 4, "what is no version")
    second = still(W + "v/a")
    t.eq([e["version"] for e in c.entries(sid, W + "v")["entries"] if e["name"] == "a"], [second], "a list has it too")
    t.eq((remove(W + "v/a", first), c.read(sid, W + "v/a"), remove(W + "v/a", second), api.refused(c.read, sid, W + "v/a")),
         (412, b"new", 204, (404, "file_not_found")), "and what is deleted is that version")
    c.sh(sid, "rm -rf v")


def once(t, d, c, sid, top):
    put(top, "a/one", b"1")
    put(top, "run.sh", b"#!/bin/sh\n")
    os.chmod(os.path.join(top, "run.sh"), 0o755)
    put(top, ".env", b"SECRET=1")
    put(top, "k.pem", KEY)
    put(top, "given", b"SECRET=2")
    os.makedirs(os.path.join(top, "gh"))
    os.symlink("../given-elsewhere", os.path.join(top, "gh", "hosts.yml"))
    os.symlink("given", os.path.join(top, ".netrc"))
    put(top, ".aws/credentials", b"SECRET=3")
    put(top, "out/x.o", b"o")
    put(top, ".durwardignore", b"*.o\n/cache\n")
    put(top, ".git/config", b"[core]\n")
    c.sh(sid, "mkdir -p b cache .git/hooks; echo 2 >b/two; echo no >cache/x; mkfifo fifo; ln -s /etc/passwd link; chmod 4755 b/two || chmod 755 b/two; "
              "echo evil >.git/hooks/post-checkout; printf x >\"$(printf 'c\\033[2Jd')\"; printf y >\"$(printf 'l\\374')\"; "
              "head -c 3000000 /dev/zero >large; echo HOME=/ >.npmrc; mkdir bare; echo ref >bare/HEAD")
    words = ["sandbox", "sync", "--socket", d.socket, "--json", "--max-size", "1MiB", "--once"]
    r = d.command(*words, "--dry-run", sid, top)
    t.ok(r.returncode == 0 and '"dry_run":true' in r.stdout and syncing.inside(c, sid).get("a/one") is None and
         "b" not in os.listdir(top), "--dry-run changes nothing", r.stdout, r.stderr)
    r = d.command(*words, sid, top)
    said = [json.loads(x) for x in r.stdout.splitlines()]
    into, out = syncing.inside(c, sid), syncing.here(top)
    t.ok(r.returncode == 0 and into.get("a/one") == b"1" and out.get("b/two") == b"2\n", "both have what either had", r.stdout, r.stderr)
    t.eq(c.sh(sid, "stat -c %a run.sh a/one"), (0, b"755\n644\n"), "what can be run can be run there")
    t.eq(os.stat(os.path.join(top, "b/two")).st_mode & 0o7111, 0o111, "and no other bit comes out")
    t.eq([p for p in (".env", "k.pem", "given", ".aws/credentials", "out/x.o") if p in into], [], "credentials and what is ignored stay here")
    t.eq([p for p in ("cache/x", "link", "fifo", "large", ".npmrc", ".git/hooks/post-checkout", "bare/HEAD") if os.path.lexists(os.path.join(top, p))],
         [], "links, devices, large files, git's files and what is ignored stay inside")
    t.eq((into.get(".git/config"), sorted(x for x in os.listdir(top) if "c" == x[0] or "l" == x[0])), (b"[core]\n", []),
         ".git goes in; names that a terminal obeys come nowhere")
    left = {e["path"] for e in said if e["type"] == "left_out"}
    t.ok({".env", "k.pem", "given", "link", "fifo", "large"} <= left, "what is left out is said", *map(str, said))
    r = d.command(*words, sid, top)
    t.ok(r.returncode == 0 and '"sent":0,"received":0' in r.stdout, "again: nothing", r.stdout)
    r = d.command(*words, "--git-metadata", sid, top)
    t.ok(os.path.exists(os.path.join(top, ".git/hooks/post-checkout")) and os.path.exists(os.path.join(top, "bare/HEAD")),
         "--git-metadata carries git's files out", r.stdout)


def live(t, d, c, sid, top):
    s = syncing.Sync(d, sid, top)
    t.ok(s.ready(), "it says when both are the same", *map(str, s.events[-3:]), s.err)
    same = lambda path, data: tap.wait_for(  # noqa: E731
        lambda: syncing.here(top).get(path) == data and api.refused(c.read, sid, W + path) is None and c.read(sid, W + path) == data, 10, 0.05)
    save(top, "a/one", b"saved by an editor")
    t.ok(same("a/one", b"saved by an editor"), "saved by renaming, here")
    put(top, "a/one", b"in place" * 1000)
    t.ok(same("a/one", b"in place" * 1000), "in place, here")
    c.sh(sid, "printf 'by the agent' >a/.t; mv a/.t a/one")
    t.ok(same("a/one", b"by the agent"), "saved by renaming, inside")
    c.sh(sid, "printf more >>a/one; mkdir -p n/e/w; printf f >n/e/w/file")
    t.ok(same("a/one", b"by the agentmore") and same("n/e/w/file", b"f"), "in place, inside; directories with it")
    put(top, "x/y/z", b"z")
    t.ok(same("x/y/z", b"z"), "a new directory, here")
    os.rename(os.path.join(top, "x"), os.path.join(top, "moved"))
    t.ok(same("moved/y/z", b"z") and tap.wait_for(lambda: c.sh(sid, "ls -d x")[0], 10, 0.1), "a directory that is moved")
    c.sh(sid, "rm -r n")
    t.ok(tap.wait_for(lambda: not os.path.exists(os.path.join(top, "n")), 10, 0.05), "deleted inside: here too, with its directories")
    shutil.rmtree(os.path.join(top, "moved"))
    t.ok(tap.wait_for(lambda: c.sh(sid, "ls -d moved")[0], 10, 0.1), "deleted here: inside too")
    c.sh(sid, "echo '!*' >.durwardignore; rm -rf .git; echo '[core] hooksPath=/evil' >.durwardignored")
    c.write(sid, W + "end0", b"0")
    t.ok(same("end0", b"0") and open(os.path.join(top, ".durwardignore"), "rb").read() == b"*.o\n/cache\n",
         "what a sandbox makes of .durwardignore stays inside")
    put(top, ".durwardignore", b"*.o\n/cache\nlater*\n")
    put(top, "later1", b"l")
    put(top, "end1", b"e")
    t.ok(same("end1", b"e") and api.refused(c.read, sid, W + "later1"), ".durwardignore is read again, and none comes out")
    t.eq((open(os.path.join(top, ".durwardignore"), "rb").read()[:3], open(os.path.join(top, ".git/config"), "rb").read()), (b"*.o", b"[core]\n"),
         "what a sandbox makes of .git stays inside")
    outside = os.path.join(d.dir, "outside")
    os.makedirs(outside)
    put(outside, "kept", b"kept")
    os.symlink(outside, os.path.join(top, "way"))
    c.sh(sid, "mkdir way; echo in >way/new; echo in >way/kept; echo end >end2")
    t.ok(same("end2", b"end\n") and tap.wait_for(lambda: "way/new" in s.of("failed"), 10, 0.05), "a link on the way is not followed",
         *map(str, s.events[-4:]))
    t.eq(sorted(os.listdir(outside)), ["kept"], "nothing is written beyond the directory")
    c.sh(sid, "rm -r a; ln -s /etc a; echo end >end3")
    t.ok(same("end3", b"end\n"), "a directory that becomes a link inside")
    t.ok(not os.path.islink(os.path.join(top, "a")), "is none here")
    r = d.command("sandbox", "sync", "--socket", d.socket, sid, top)
    t.ok(r.returncode == 1 and "another" in r.stderr, "one at a time", r.stderr)
    t.eq(s.end(signal.SIGINT), 0, "interrupted, it ends well")
    os.unlink(os.path.join(top, "way"))
    c.sh(sid, "rm -rf way a")


def conflicts(t, d, c, sid, top):
    words = ["sandbox", "sync", "--socket", d.socket, "--json", "--once"]
    put(top, "c", b"base")
    put(top, "e", b"base")
    put(top, "f", b"base")
    d.command(*words, sid, top)
    put(top, "c", b"mine")
    c.sh(sid, "printf theirs >c; rm e; printf theirs >f")
    put(top, "e", b"edited")
    os.unlink(os.path.join(top, "f"))
    r = d.command(*words, sid, top)
    kept = "c.conflict-%s-1" % sid
    out = syncing.here(top)
    t.eq((r.returncode, out.get("c"), c.read(sid, W + "c"), out.get(kept)), (3, b"mine", b"mine", b"theirs"), "a conflict keeps both, and is said")
    t.eq((c.read(sid, W + "e"), out.get("f")), (b"edited", b"theirs"), "a deletion never goes before a change")
    t.eq(api.refused(c.read, sid, W + kept), (404, "file_not_found"), "what is kept is not carried")
    c.sh(sid, "printf same >c")
    put(top, "c", b"same")
    r = d.command(*words, sid, top)
    t.eq((r.returncode, len([x for x in os.listdir(top) if "conflict" in x])), (0, 1), "the same change on both sides is no conflict")
    c.sh(sid, "printf only-in >c")
    put(top, "e", b"only-out")
    r = d.command(*words, "--direction", "in", sid, top)
    t.eq((open(os.path.join(top, "c"), "rb").read(), c.read(sid, W + "e")), (b"same", b"only-out"), "--direction in")
    put(top, "e", b"only-out-2")
    r = d.command(*words, "--direction", "out", sid, top)
    t.eq((open(os.path.join(top, "c"), "rb").read(), c.read(sid, W + "e")), (b"only-in", b"only-out"), "--direction out")
    d.command(*words, sid, top)
    state = os.path.join(d.dir, "state", "durward", "sync")
    files = [os.path.join(state, x) for x in os.listdir(state)]
    t.ok(files and all(os.stat(x).st_mode & 0o777 == 0o600 for x in files), "what is in common is kept where nobody else reads it", *files)


def refusals(t, d, c, sid, top):
    ask = lambda *w: d.command("sandbox", "sync", "--socket", d.socket, *w)  # noqa: E731
    t.eq([ask(sid).returncode, ask(sid, top + ":/").returncode, ask("--direction", "up", sid, top).returncode,
          ask("--max-size", "1TiB", sid, top).returncode, ask("--ignore", "/", sid, top).returncode], [2] * 5, "what cannot be meant")
    t.eq([ask("none", top).returncode, ask(sid, top + "/none").returncode, ask("--once", sid, "/").returncode,
          ask("--once", sid, top + ":/workspace/none").returncode], [1] * 4, "what is not there, or too much")
    many = os.path.join(d.dir, "many")
    for i in range(12):
        put(many, "m%d" % i, b"m")
    c.sh(sid, "mkdir many")
    r = ask("--once", sid, many + ":/workspace/many")
    c.sh(sid, "rm many/*")
    r = ask("--once", sid, many + ":/workspace/many")
    t.ok(r.returncode == 1 and "--allow-empty" in r.stderr and len(os.listdir(many)) == 12, "all at once gone: it asks", r.stderr)
    r = ask("--once", "--allow-empty", sid, many + ":/workspace/many")
    t.eq((r.returncode, os.listdir(many)), (0, []), "unless that is meant")
    c.sh(sid, "cd many; for i in 1 2 3 4; do head -c 1000 /dev/zero >f$i; done")
    r = ask("--once", "--max-total", "2KB", sid, many + ":/workspace/many")
    t.eq(len(os.listdir(many)), 2, "--max-total")
    r = ask("--once", "--max-files", "3", sid, many + ":/workspace/many")
    t.ok(r.returncode == 1 and len(os.listdir(many)) == 3, "--max-files", r.stdout, str(os.listdir(many)))


def gone(t, d, c, sid, top):
    s = syncing.Sync(d, sid, top)
    s.ready()
    os.kill(d.daemon.pid, signal.SIGKILL)
    d.daemon.wait()
    c.close()
    put(top, "meanwhile", b"m")
    t.ok(tap.wait_for(lambda: "waiting" in [e["type"] for e in s.events], 10, 0.05), "the daemon is killed: it waits")
    d.serve()
    t.ok(tap.wait_for(lambda: api.refused(c.read, sid, W + "meanwhile") is None, 20, 0.1), "and goes on when it is back", *map(str, s.events[-3:]))
    c.delete(sid)
    t.eq((s.p.wait(20), True), (1, True), "it ends with the sandbox")


def main(t):
    d = durward.Durward(t, "d")
    d.policy("p", [])
    d.serve()
    c = api.Api(d.socket)
    sid = c.first(policy="p")
    top = os.path.join(d.dir, "tree")
    os.makedirs(top)
    t.part(versions, t, c, sid)
    t.part(once, t, d, c, sid, top)
    t.part(live, t, d, c, sid, top)
    t.part(conflicts, t, d, c, sid, top)
    t.part(refusals, t, d, c, sid, top)
    t.part(gone, t, d, c, sid, top)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=180)
