#!/usr/bin/python3 -B
"""Files over SSH with the clients of others (OpenSSH's sftp and scp, paramiko, AsyncSSH) inside a sandbox and OpenSSH's server outside:
what the patterns of a rule allow goes both ways and whole, and nothing else is read, written, listed or removed, by whatever name."""
import collections
import hashlib
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, sshd, tap  # noqa: E402

HOST = "files.example.com"
MB = 1000000


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while True:
            part = f.read(1 << 20)
            if not part:
                return h.hexdigest()
            h.update(part)


class Tree:
    """The server's files: read/, up/, drop/, closed/ below .top."""

    def __init__(self, t, server):
        self.top = os.path.realpath(t.mkdir("files"))
        for name in ("read/deep/er", "up", "drop", "closed", "read/.hidden"):
            os.makedirs(os.path.join(self.top, name))
        for name, said in (("read/one.txt", "one\n"), ("read/deep/er/two.txt", "two\n"), ("closed/secret", "secret\n"),
                           ("read/.hidden/key", "key\n")):
            self.put(name, said)
        with open(self.at("read/big"), "wb") as f:
            block = os.urandom(MB)
            for i in range(64):
                f.write(block[i:] + block[:i])
        os.symlink("../closed/secret", self.at("up/out"))
        os.symlink("../closed", self.at("up/outside"))
        os.symlink("../closed/new", self.at("up/dangling"))
        os.symlink("deep/er", self.at("read/inside"))

    def at(self, name):
        return os.path.join(self.top, name)

    def put(self, name, said):
        with open(self.at(name), "w") as f:
            f.write(said)

    def has(self, name):
        try:
            with open(self.at(name)) as f:
                return f.read()
        except FileNotFoundError:
            return None


def rule(server, tree, **more):
    return dict({"allow": "ssh://%s@%s" % (server.user, HOST), "with": {"ssh_key": "deploy"}, "host_keys": server.host_key,
                 "read_files": [tree.top + "/read/**", tree.top + "/up/**"], "write_files": [tree.top + "/up/**", tree.top + "/drop/*.log"],
                 "remove_files": [tree.top + "/up/**"]}, **more)


def bed(t, server, rules, name="d"):
    d = durward.Durward(t, name)
    d.secret("deploy_key", server.key)
    d.secrets["deploy"] = {"ssh_key": {"key": "deploy_key"}}
    d.resolve[HOST + ":22"] = server.address
    d.policy("coder", rules)
    return d


def sftp(box, server, lines, **kw):
    return box.sh("sftp -q -b - %s@%s" % (server.user, HOST), stdin=lines, **kw)


def copies(t, box, server, tree):
    """What is allowed, with sftp."""
    top = tree.top
    status, out, err = sftp(box, server, "get %s/read/one.txt /tmp/one\nput /tmp/one %s/up/one\nls -a %s/read\n" % (top, top, top))
    t.ok(status == 0 and tree.has("up/one") == "one\n" and "one.txt" in out and ".hidden" not in out, "a file there and back, and a list", out, err)
    status, out, err = sftp(box, server, "get -R %s/read/deep /tmp/d\nput -R /tmp/d %s/up/d\n" % (top, top))
    t.ok(status == 0 and tree.has("up/d/er/two.txt") == "two\n", "folders, with all that is in them", out, err)
    status, out, err = sftp(box, server, "cd %s/up\nput /tmp/one a\nrename a b\nmkdir m\nchmod 600 b\nln b c\nls -l\nrm c\nrmdir m\ncd ..\npwd\n" % top)
    t.ok(status == 0 and tree.has("up/b") == "one\n" and os.stat(tree.at("up/b")).st_mode & 0o777 == 0o600 and
         tree.has("up/a") is tree.has("up/c") is None and ("working directory: " + top) in out,
         "in a folder: rename, mode, another name, remove, and the folder above", out, err)
    status, out, err = sftp(box, server, "df %s/up\nget %s/read/inside/two.txt /tmp/two\nls %s/read/inside\n" % (top, top, top))
    t.ok(status == 0 and "two.txt" in out, "a link to what is allowed is followed", out, err)
    status, out, err = sftp(box, server, "put /tmp/one %s/drop/x.log\n" % top)
    t.ok(status == 0 and tree.has("drop/x.log") == "one\n", "a pattern of names", out, err)
    box.sh("head -c 3000000 /dev/urandom > /tmp/r; head -c 1000000 /tmp/r > /tmp/part")
    status, out, err = sftp(box, server, "put /tmp/part %s/up/r\nreput /tmp/r %s/up/r\n!mv /tmp/part /tmp/back\nreget %s/up/r /tmp/back\n" % ((top,) * 3))
    _, sums, _ = box.sh("sha256sum /tmp/r /tmp/back")
    t.ok(status == 0 and {x.split()[0] for x in sums.splitlines()} == {digest(tree.at("up/r"))}, "what was broken off goes on, both ways", out + sums, err)


def scp(t, box, server, tree):
    at, top = "%s@%s" % (server.user, HOST), tree.top
    status, out, err = box.sh("scp -q -p %s:%s/read/one.txt /tmp/s && scp -q -p /tmp/s %s:%s/up/s && scp -q -r %s:%s/read/deep /tmp/sd && "
                              "scp -q -r /tmp/sd %s:%s/up/sd" % (at, top, at, top, at, top, at, top))
    t.ok(status == 0 and tree.has("up/s") == "one\n" and tree.has("up/sd/er/two.txt") == "two\n" and
         int(os.stat(tree.at("up/s")).st_mtime) == int(os.stat(tree.at("read/one.txt")).st_mtime), "scp, both ways, folders and times", out, err)
    status, out, err = box.sh("scp -q %s:%s/closed/secret /tmp/no; cat /tmp/no" % (at, top))
    t.ok(status != 0 and out == "", "scp of what is not allowed", out, err)
    status, out, err = box.sh("scp -q -O %s:%s/read/one.txt /tmp/old && cat /tmp/old && scp -q -O /tmp/old %s:%s/up/old" % (at, top, at, top))
    t.ok(status == 0 and out == "one\n" and tree.has("up/old") == "one\n", "the protocol of old (scp -O), both ways", out, err)
    status, out, err = box.sh("scp -q -O %s:%s/closed/secret /tmp/older; cat /tmp/older; scp -q -O /tmp/old %s:%s/read/mine" % (at, top, at, top))
    t.ok(status != 0 and out == "" and err.count("durward: the policy does not allow this file") == 2 and tree.has("read/mine") is None, "by the same rules", out, err)
    before = server.logins()
    status, out, err = box.sh("ssh %s 'scp -f %s/read/$(id)'; ssh %s 'scp -t -f x'" % (at, top, at))
    t.ok(status == 128 and out == "" and server.logins() == before, "what a shell would have to read is a command, and denied", out, err)


def refusals(t, box, d, server, tree):
    top, up = tree.top, tree.top + "/up"
    box.sh("echo evil > /tmp/evil; ln -s /etc/passwd /tmp/link; rm -f /tmp/got*")
    for what, line in (
            ("a file of no pattern", "get %s/closed/secret /tmp/got" % top),
            ("a folder of no pattern", "ls %s/closed" % top),
            ("a file outside of all", "get /etc/passwd /tmp/got"),
            ("what it is", "ls -l %s/closed/secret" % top),
            ("a way upwards", "get %s/read/../closed/secret /tmp/got" % top),
            ("a hidden file", "get %s/read/.hidden/key /tmp/got" % top),
            ("a link that leads out", "get %s/out /tmp/got" % up),
            ("a folder that leads out", "get %s/outside/secret /tmp/got" % up),
            ("to go into a folder that leads out", "cd %s/outside" % up),
            ("to write through a link that leads out", "put /tmp/evil %s/out" % up),
            ("to make a file where a link leads out to", "put /tmp/evil %s/dangling" % up),
            ("to write in a folder that leads out", "put /tmp/evil %s/outside/new" % up),
            ("to make a folder there", "mkdir %s/outside/m" % up),
            ("to remove there", "rm %s/outside/secret" % up),
            ("to rename out of there", "rename %s/outside/secret %s/mine" % (up, up)),
            ("to rename to there", "rename %s/one %s/outside/one" % (up, up)),
            ("another name for what is there", "ln %s/outside/secret %s/mine" % (up, up)),
            ("another name for what is not allowed", "ln %s/closed/secret %s/mine" % (top, up)),
            ("another name for what may only be read", "ln %s/read/one.txt %s/mine" % (top, up)),
            ("a symbolic link", "ln -s %s/closed/secret %s/mine" % (top, up)),
            ("a mode through a link", "chmod 777 %s/out" % up),
            ("an owner", "chown 1234 %s/one" % up),
            ("a set-user-ID bit", "chmod 4755 %s/one" % up),
            ("to write what may be read", "put /tmp/evil %s/read/one.txt" % top),
            ("to remove what may be read", "rm %s/read/one.txt" % top),
            ("to rename what may be read", "rename %s/read/one.txt %s/mine" % (top, up)),
            ("to read what may be written", "get %s/drop/x.log /tmp/got" % top),
            ("to remove what may be written", "rm %s/drop/x.log" % top),
            ("a name that the pattern has not", "put /tmp/evil %s/drop/x.sh" % top),
            ("to move it where it may be read", "rename %s/drop/x.log %s/x.log" % (top, up))):
        denied = len(d.kinds("denied"))
        status, out, err = sftp(box, server, line + "\n")
        d.settle()
        t.ok(status != 0 and len(d.kinds("denied")) > denied, what + " is refused, and on record", out, err)
    _, out, _ = box.sh("cat /tmp/got* 2>/dev/null")
    t.eq(out, "", "nothing came")
    t.eq((tree.has("closed/secret"), sorted(os.listdir(tree.at("closed"))), os.stat(tree.at("closed/secret")).st_mode & 0o777,
          tree.has("read/one.txt"), tree.has("up/one"), tree.has("up/mine"), sorted(os.listdir(tree.at("drop")))),
         ("secret\n", ["secret"], 0o644, "one\n", "one\n", None, ["x.log"]), "and nothing is changed")
    roles = {r.get("code"): r.get("role") for r in d.kinds("denied")}
    t.ok(roles.get("file") == "ssh-front" and roles.get("file_link") == "ssh-back", "the front answers what it refuses by itself", str(roles))
    codes = {r.get("code") for r in d.kinds("denied")}
    t.ok({"file", "file_path", "file_link", "file_symlink", "file_attributes"} <= codes, "each with its code", str(codes))


def fast(t, box, server, tree):
    """64 MB, whole, and beside the same copy without Durward."""
    key, at = os.path.join(server.dir, "login"), "%s@%s" % (server.user, HOST)
    wanted = digest(tree.at("read/big"))

    def bare(source, target):
        began = time.monotonic()
        subprocess.run(["scp", "-q", "-P", str(server.port), "-i", key, "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
                        "-o", "UserKnownHostsFile=/dev/null", source, target], check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - began

    def inside(source, target):
        began = time.monotonic()
        status, out, err = box.sh("scp -q %s %s" % (source, target), timeout=120)
        t.ok(status == 0, "64 MB go through", out, err)
        return time.monotonic() - began
    local, there = os.path.join(server.dir, "copy"), "%s@127.0.0.1:" % server.user
    down = inside("%s:%s/read/big" % (at, tree.top), "/tmp/big"), bare(there + tree.at("read/big"), local)
    up = inside("/tmp/big", "%s:%s/up/big" % (at, tree.top)), bare(local, there + tree.at("up/bare"))
    _, out, _ = box.sh("sha256sum /tmp/big; rm /tmp/big")
    t.ok(out.split()[0] == wanted == digest(tree.at("up/big")), "and are whole, down and up", out)
    print("# 64 MB: down %.2f s (bare %.2f), up %.2f s (bare %.2f)" % (down + up))
    t.ok(down[0] < 8 * down[1] + 2 and up[0] < 8 * up[1] + 2, "in a time like that without", str((down, up)))
    for name in ("up/big", "up/bare"):
        os.unlink(tree.at(name))


def libraries(t, box, server, tree):
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    for name in ("paramiko", "asyncssh"):
        if box.sh("%s -c 'import %s'" % (python, name))[0] != 0:
            t.skip(name, "the clients' environment has none (tests/functional/clients/setup)")
            continue
        status, out, err = box.sh("%s %s/sftp_clients.py %s %s %s %s/read %s/up %s/closed" % (
            python, durward.INSIDE, name, HOST, server.user, tree.top, tree.top, tree.top), timeout=60)
        t.ok(status == 0 and out == "ok\n", name + " reads, writes, lists, renames and removes, and is refused", out, err)


def held(t, box, server, tree):
    """All sandboxes of a policy wait for whoever gives files other names; nobody can make that last."""
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    if box.sh("%s -c 'import paramiko'" % python)[0] != 0:
        t.skip("a client that takes nothing", "the clients' environment has no paramiko (tests/functional/clients/setup)")
        return
    os.link(tree.at("read/big"), tree.at("read/large"))
    tree.put("up/h1", "x")
    tree.put("up/m1", "x")
    status, out, err = box.sh(
        "%s %s/sftp_clients.py held %s %s %s/read %s/up - >/tmp/log 2>&1 & p=$!; for i in $(seq 100); do [ -e /tmp/held ] && break; sleep 0.1; done; "
        "[ -e /tmp/held ] || { cat /tmp/log; exit 9; }; printf 'rename %s/m1 %s/m2\\nls %s/read\\n' | timeout 15 sftp -q -b - %s@%s; r=$?; kill $p; exit $r" % (
            python, durward.INSIDE, HOST, server.user, tree.top, tree.top, tree.at("up"), tree.at("up"), tree.top, server.user, HOST), timeout=60)
    t.ok(status == 0 and tree.has("up/m2") == "x", "another's session goes on beside one that takes no answers", str(status), out, err)


def folders(t, server, tree):
    """A folder's new name gives files names that no pattern has."""
    for name in ("stage", "www", "a"):
        os.makedirs(tree.at(name))
    os.makedirs(tree.at("a/d"))
    tree.put("a/d/kept", "kept")
    one = rule(server, tree, read_files=[tree.top + "/**"], write_files=[tree.at("stage/**"), tree.at("www/*"), tree.at("a/*")],
               remove_files=[tree.at("stage/**"), tree.at("a/*")])
    box = durward.Sandbox(bed(t, server, [one], "folders"))
    box.sh("echo x >/tmp/x")
    status, out, err = sftp(box, server, "mkdir %s/d\nput /tmp/x %s/d/x\nput /tmp/x %s/f\n" % ((tree.at("stage"),) * 3))
    t.ok(status == 0, "a folder with a file", out, err)
    status, out, err = sftp(box, server, "rename %s/d %s/d\n" % (tree.at("stage"), tree.at("www")))
    t.ok(status != 0 and not os.path.exists(tree.at("www/d")), "is not moved where files below it may not be written", out, err)
    status, out, err = sftp(box, server, "rename %s/d %s/e\n" % (tree.at("a"), tree.at("a")))
    t.ok(status != 0 and tree.has("a/d/kept") == "kept", "nor from where files below it may not be removed", out, err)
    status, out, err = sftp(box, server, "rename %s/f %s/f\n" % (tree.at("stage"), tree.at("www")))
    t.ok(status == 0 and tree.has("www/f") == "x\n", "a file is", out, err)
    status, out, err = sftp(box, server, "rename %s/d %s/e\n" % (tree.at("stage"), tree.at("stage")))
    t.ok(status == 0 and tree.has("stage/e/x") == "x\n", "and a folder where all below it may be both", out, err)
    box.close()


def records(t, d, server, tree):
    d.settle()
    admitted = [r for r in d.kinds("admitted") if r.get("scheme") == "ssh"]

    def ended():
        return {r["id"]: r for r in d.kinds("completed") + d.kinds("aborted")}
    tap.wait_for(lambda: all(r["id"] in ended() for r in admitted), 5)  # a client was killed just now
    ends = ended()
    t.ok(admitted and all(r["id"] in ends for r in admitted), "all that began has an end", str([r for r in admitted if r["id"] not in ends]))
    more = [i for i, n in collections.Counter(r["id"] for r in d.kinds("completed") + d.kinds("aborted")).items() if n != 1]
    t.eq(more, [], "each request has one end, also the last one of a session")
    by = {(r.get("method"), r.get("path")): r for r in admitted}
    down, up = by.get(("read", tree.at("read/big")), {}), by.get(("write", tree.at("up/big")), {})
    t.ok(down.get("user") == server.user and down.get("authority") == HOST and down.get("credential") == "deploy" and down.get("sandbox"),
         "a file is on record before it is opened", str(down))
    t.ok(ends.get(down.get("id"), {}).get("bytes_down") == 64 * MB and ends.get(up.get("id"), {}).get("bytes_up") == 64 * MB,
         "and how many bytes went which way", str((ends.get(down.get("id")), ends.get(up.get("id")))))
    moved = by.get(("rename", tree.at("up/a")), {})
    t.eq(moved.get("detail"), tree.at("up/b"), "a rename says to what")
    t.ok({"sftp", "read", "write", "list", "mkdir", "remove", "rmdir", "rename", "link", "attributes"} <= {r["method"] for r in admitted},
         "each kind of change is on record", str({r["method"] for r in admitted}))


def bounds(t, server, tree):
    """Sizes, budgets and somebody's word."""
    d = bed(t, server, [rule(server, tree, file_megabytes=2, budget={"upload": "8MB/h"})], "bounds")
    box = durward.Sandbox(d)
    box.sh("head -c 1900000 /dev/zero > /tmp/small; head -c 2100000 /dev/zero > /tmp/large")
    status, out, err = sftp(box, server, "put /tmp/small %s/up/small\n" % tree.top)
    t.ok(status == 0, "a file below the size", out, err)
    status, out, err = sftp(box, server, "put /tmp/large %s/up/large\n" % tree.top)
    t.ok(status != 0 and os.path.getsize(tree.at("up/large")) <= 2 * MB, "no more than that is written of one", out, err, str((status, os.path.getsize(tree.at("up/large")))))
    status, out, err = sftp(box, server, "get %s/read/big /tmp/big\n" % tree.top)
    _, size, _ = box.sh("stat -c %s /tmp/big")
    t.ok(status != 0 and int(size or 0) <= 2 * MB, "and no more is read of one", out + size, err)
    status, out, err = sftp(box, server, "reput /tmp/large %s/up/small\n" % tree.top)
    t.ok(status != 0 and os.path.getsize(tree.at("up/small")) == 1900000, "nor appended", out, err)
    d.settle()
    t.ok("file_size" in {r.get("code") for r in d.kinds("denied")}, "that is on record")
    status, out, err = sftp(box, server, "".join("put /tmp/small %s/up/s%d\n" % (tree.top, i) for i in range(4)))
    t.ok(status != 0 and d.wait_records(1, "aborted", 5, code="budget"), "the bytes of all files are the budget's", out, err)
    box.close()


def asked(t, server, tree):
    one = rule(server, tree)
    one["ask"] = one.pop("allow")
    d = bed(t, server, [one], "asked")
    d.serve()
    calls = api.Api(d.socket)
    box, got = calls.create(policy="coder")["id"], []
    thread = threading.Thread(target=lambda: got.append(api.Api(d.socket).sh(
        box, "echo get %s/read/one.txt /tmp/x | sftp -q -b - %s@%s && cat /tmp/x" % (tree.top, server.user, HOST))))
    thread.start()
    before = server.logins()
    t.ok(tap.wait_for(lambda: calls.ask("GET", "/v1/approvals")["approvals"], 10), "a session is held")
    held = calls.ask("GET", "/v1/approvals")["approvals"]
    t.ok(server.logins() == before and held[0]["method"] == "sftp", "before the server hears of it", str(held))
    calls.ask("POST", "/v1/approvals/%s/allow" % held[0]["id"])
    thread.join(15)
    t.ok(got and got[0][0] == 0 and b"one\n" in got[0][1], "and goes on once somebody approved", str(got))
    d.stop()


def main(t):
    why = sshd.missing()
    if why:
        t.skip("everything", why)
        return
    server = sshd.Sshd(t)
    tree = Tree(t, server)
    d = bed(t, server, [rule(server, tree)])
    box = durward.Sandbox(d, binds=durward.client_binds("venv"))
    t.part(copies, t, box, server, tree)
    t.part(scp, t, box, server, tree)
    t.part(refusals, t, box, d, server, tree)
    t.part(fast, t, box, server, tree)
    t.part(libraries, t, box, server, tree)
    t.part(held, t, box, server, tree)
    t.part(records, t, d, server, tree)
    box.close()
    t.part(folders, t, server, tree)
    t.part(bounds, t, server, tree)
    t.part(asked, t, server, tree)


tap.run(main, timeout=300)
