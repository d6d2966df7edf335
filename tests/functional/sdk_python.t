#!/usr/bin/python3 -B
"""sdk/python: the client of the API, waiting and for asyncio, against a daemon; its wheel; its types."""
import asyncio
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward as program  # noqa: E402
from harness import dropping, tap  # noqa: E402

SDK = os.path.join(program.TOP, "sdk", "python")
sys.path.insert(0, os.path.join(SDK, "src"))
import durward  # noqa: E402
import durward.trust  # noqa: E402

W = "/workspace/"


def refused(fn, *args, **kw):
    """-> the exception, whose text must be one line."""
    try:
        fn(*args, **kw)
    except durward.DurwardError as e:
        if "\n" in str(e) or not str(e):
            raise RuntimeError("not one line: %r" % str(e))
        return e
    return None


def kind(t, e, want, code, what):
    return t.eq((type(e), getattr(e, "code", "")), (want, code), what) or t.diag(repr(e))


def life(t, c):
    t.eq(sorted(c.policies()), ["other", "p"], "policies") and t.eq(c.version(), "0.1.0", "the daemon's version")
    a = c.create("p", name="one", labels={"team": "x", "n": "1"}, env={"COLOUR": "blue"}, ttl=600, idle_ttl=0)
    t.eq((a.info.state, a.info.name, a.info.labels, a.info.ttl, a.info.idle_ttl),
         ("running", "one", {"team": "x", "n": "1"}, 600, 0), "create: it runs, as asked")
    t.eq(a.exec("echo $COLOUR").text, "blue\n", "with its environment")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = set(pool.map(lambda _: c.get_or_create({"thread_id": "42"}, "p").id, range(6)))
    t.eq(len(got), 1, "get_or_create of six threads: one sandbox")
    t.eq([s.id for s in c.sandboxes({"team": "x"})], [a.id], "sandboxes by label")
    t.eq([s.id for s in c.sandboxes(page_size=1)], [s.id for s in c.sandboxes()], "and page by page")
    t.eq({s.id for s in c.sandboxes(state="running")}, {a.id} | got, "and by state")
    a.update(labels={"n": "2"}, ttl=100)
    t.eq((c.get(a.id).info.labels, a.info.ttl), ({"n": "2"}, 100), "update")
    kind(t, refused(c.create, "p", name="one"), durward.Conflict, "conflict", "a name is taken once")
    kind(t, refused(c.create, "nope"), durward.BadRequest, "bad_request", "an unknown policy")
    kind(t, refused(c.create), durward.BadRequest, "bad_request", "no policy where there are two")
    e = refused(c.get, "one")
    t.ok(isinstance(e, durward.NotFound) and "list the sandboxes to find the id of a name" in str(e), "get by a name says how to find the id", repr(e))
    for wrong in (b"true", ["echo", b"x"], [], [1]):
        try:
            a.exec(wrong)
            t.ok(False, "no command: %r" % (wrong,), "it was run")
        except (TypeError, durward.DurwardError) as e:
            t.has(str(e), "decode bytes first", "no command, and what is one is said: %r" % (wrong,))
    a.delete()
    c.delete(a.id)
    kind(t, refused(c.get, a.id), durward.NotFound, "sandbox_not_found", "a deleted one")
    kind(t, refused(a.exec, "true"), durward.NotFound, "sandbox_not_found", "a command in a deleted one")
    kind(t, refused(c.get, "../status"), durward.NotFound, "sandbox_not_found", "an id is no path")
    with c.get_or_create({"thread_id": "42"}) as b:
        t.ok(b.id in got, "get_or_create needs no policy for one that is there")
    kind(t, refused(c.get, b.id), durward.NotFound, "sandbox_not_found", "`with` deletes it")
    t.ok([e for e in c.events(limit=1000) if e.sandbox == b.id and e.event == "sandbox_deleted"], "events")
    with c.create("p", image="host", backend="bwrap", on_idle="stop", auto_resume=False, soft_ttl=900,
                  on_soft_ttl="pause") as b:
        t.eq((b.info.image, b.info.backend, b.info.on_idle, b.info.auto_resume, b.info.parent),
             ("host", "bwrap", "stop", False, None), "image, backend, what idling does")
        t.ok((b.info.soft_ttl, b.info.on_soft_ttl) == (900, "pause") and b.info.soft_expires_at, "a soft time to live", b.info)
        with b.fork(soft_ttl=60, on_soft_ttl="stop") as f:
            t.eq((f.info.soft_ttl, f.info.on_soft_ttl), (60, "stop"), "a fork's own")
        t.eq((b.update(soft_ttl=0).soft_ttl, b.info.soft_expires_at), (0, None), "and none")


def daemon(t, d, c):
    t.eq((c.policy("p")["name"] if "name" in c.policy("p") else "p", sorted(c.status())),
         ("p", ["api", "audit_dir", "console", "listeners", "metrics", "roles", "sandboxes", "socket", "templates", "uptime_seconds"]), "policy, status")
    e = c.explain("GET", "https://held.example.com/", "p")
    t.eq((e.decision, e.policy, c.explain("GET", "https://a.example/", "other").decision), ("ask", "p", "deny"), "explain")
    whole = c.verify_log()
    t.ok(whole["ok"] and whole["records"] > 0 and "problem" not in whole, "the log is verified", whole)
    t.ok(c.query_log(kind="lifecycle", limit=3) and json.loads(c.export_case(kind="lifecycle"))["durward_case"] == 1, "records of the log, and a case of them")
    t.eq({x["code"]: x["severity"] for x in c.codes()["codes"]}["foreign_credential"], "critical", "what codes mean")
    p = c.propose("GET", "https://proposed.example/x", policy="p", reason="a test")
    t.eq((p["state"], [x["id"] for x in c.proposals()], c.proposal(p["id"])["after"], c.reject_proposal(p["id"])["state"]),
         ("open", [p["id"]], "allow", "rejected"), "a proposal, read and rejected")
    kind(t, refused(lambda: c.accept_proposal(p["id"])), durward.Conflict, "conflict", "it was decided otherwise")
    v = c.suppress("no_rule", "proposed.example", "a test", 60, policy="p")
    t.eq((v["state"], [x["id"] for x in c.suppressions()], c.accept_suppression(v["id"])["state"], c.suppression(v["id"])["state"],
          c.lift_suppression(v["id"])["state"]), ("open", [v["id"]], "active", "active", "lifted"), "a suppression, written, accepted and lifted")
    t.has(c.metrics(), "durward_", "metrics")
    kind(t, refused(c.console_url), durward.Unsupported, "no_console", "no console here")
    c.reload()
    d.extra["nonsense"] = 1
    d.save()
    kind(t, refused(c.reload), durward.BadRequest, "bad_configuration", "what is wrong in the configuration is told")
    del d.extra["nonsense"]
    d.save()


def volumes(t, c):
    v = c.create_volume("sdk", "p", size=8 << 20, labels={"a": "b"})
    t.eq((v.name, v.policy, v.state, v.size, v.access, v.labels, v.mounted), ("sdk", "p", "ready", 8 << 20, "one", {"a": "b"}, ()),
         "a volume")
    t.eq(c.create_volume("sdk", "p", get_or_create=True), v, "get_or_create takes it")
    kind(t, refused(c.create_volume, "sdk", "p"), durward.Conflict, "conflict", "of a name that is taken")
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        with c.create("p", volumes=["sdk:/data"]) as box:
            box.write("/data/f", b"1")
            t.eq((box.info.volumes, c.volume("sdk").mounted[0].path), (("sdk:/data",), "/data"), "mounted in a sandbox")
            kind(t, refused(c.delete_volume, "sdk"), durward.Conflict, "volume_in_use", "what is mounted is not removed")
    t.eq(c.snapshot_volume("sdk", "sdk-1").snapshot_of, "sdk", "a snapshot of it")
    t.eq(c.restore_volume("sdk", "sdk-1").state, "ready", "restored")
    t.eq(c.create_volume("sdk-2", clone_of="sdk-1").size, 8 << 20, "a clone")
    t.ok(b"".join(c.export_volume("sdk"))[257:262] == b"ustar", "an archive of it")
    t.eq([x.name for x in c.volumes()], ["sdk", "sdk-1", "sdk-2"], "volumes")

    async def asynchronously():
        a = durward.AsyncDurward(c.socket)
        t.ok(b"".join([p async for p in a.export_volume("sdk-2")])[257:262] == b"ustar", "async: an archive")
        await a.delete_volume("sdk-2")
        t.eq([x.name for x in await a.volumes()], ["sdk", "sdk-1"], "async: volumes")
    asyncio.run(asynchronously())
    for name in ("sdk", "sdk-1"):
        c.delete_volume(name)
    kind(t, refused(c.volume, "sdk"), durward.NotFound, "volume_not_found", "one that is removed")


def templates(t, c):
    t.eq([(x.name, x.policy, x.pool, x.warm_up) for x in c.templates()], [("sdk", "p", 0, True)], "templates")
    found = c.template("sdk")
    t.eq((found.labels, found.idle_ttl, found.ports, found.claimed, found.reason), ({"kind": "sdk"}, 120, (), 0, ""), "one of them")
    kind(t, refused(c.template, "none"), durward.NotFound, "template_not_found", "one that there is not")
    with c.create(template="sdk", labels={"a": "b"}) as box:
        t.eq((box.info.template, box.info.labels, box.info.idle_ttl, box.read(W + "warm")),
             ("sdk", {"a": "b", "kind": "sdk"}, 120, b"up\n"), "a sandbox by a template")
    kind(t, refused(c.create, template="sdk", image="host"), durward.BadRequest, "bad_request", "which says what it is made of")

    async def asynchronously():
        a = durward.AsyncDurward(c.socket)
        t.eq([x.name for x in await a.templates()] + [(await a.template("sdk")).policy], ["sdk", "p"], "async: templates")
        async with a.create(template="sdk") as box:
            t.eq(box.info.template, "sdk", "async: a sandbox by one")
    asyncio.run(asynchronously())


def sleeps(t, c):
    box = c.create("p", auto_resume=False)
    box.write(W + "f", b"1")
    try:
        t.eq((box.pause().state, box.resume().state), ("paused", "running"), "pause, resume")
    except durward.Unsupported as e:
        t.skip("pause, resume", str(e))
    t.eq((box.stop().state, box.info.kept), ("stopped", True), "stop")
    e = refused(box.exec, "true")
    kind(t, e, durward.NotRunning, "not_running", "a command in one that sleeps, and is not to wake by it") and \
        t.has(str(e), "resume", "the error says what to do")
    t.eq((box.resume().state, box.read(W + "f")), ("running", b"1"), "resume, with its files")
    made = box.snapshot("sdk")
    t.eq((made.name, made.state, made.sandbox), ("sdk", "ready", box.id), "a snapshot")
    kind(t, refused(box.snapshot, "sdk"), durward.Conflict, "conflict", "of a name that is taken")
    t.eq(box.snapshot("sdk", get_or_create=True), made, "get_or_create takes it")
    t.eq((c.snapshots(), c.snapshot("sdk")), ([made], made), "snapshots, one of them")
    box.write(W + "f", b"2")
    with box.fork(labels={"of": "it"}) as other, c.create("p", snapshot="sdk") as old:
        t.eq((other.read(W + "f"), other.info.parent, other.info.labels), (b"2", box.id, {"of": "it"}), "fork")
        t.eq((old.read(W + "f"), old.info.snapshot), (b"1", "sdk"), "a sandbox of the snapshot")
    t.eq((box.restore("sdk").snapshot, box.read(W + "f")), ("sdk", b"1"), "restore")
    volumes(t, c)
    templates(t, c)
    c.delete_snapshot("sdk")
    c.delete_snapshot("sdk")
    kind(t, refused(c.snapshot, "sdk"), durward.NotFound, "snapshot_not_found", "a snapshot that is deleted")
    kind(t, refused(c.create, "p", snapshot="sdk"), durward.NotFound, "snapshot_not_found", "nothing is made of it")
    box.delete()


def asked(t, c, box):
    """Requests that wait for somebody: by curl inside, as its last argument the status."""
    ask = "curl -s -m 30 -o /dev/null -w '%{http_code}' https://held.example.com/"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for word, status in (("deny", "403"), ("allow", "502")):  # allowed, there is no such origin
            answer = pool.submit(box.exec, ask)
            found = c.approvals(wait=20)
            t.eq([(a.method, a.url, a.policy, a.sandbox) for a in found],
                 [("GET", "https://held.example.com/", "p", box.id)], "approvals: what waits")
            t.eq(c.approval(found[0].id), found[0], "one of them")
            t.eq(getattr(c, word)(found[0].id), durward.Decision(found[0].id, {"deny": "denied", "allow": "allowed"}[word], None, True), "an answer")
            t.eq((answer.result().text, found[0].host), (status, None), word)
            kind(t, refused(c.deny, found[0].id), durward.NotFound, "not_found", "it is decided once")
    t.eq(c.approvals(), [], "none is left")
    t.eq(c.fleet(), durward.Fleet(None, False, None, None, ()), "a host in no fleet")


def kept(t, box):
    """Commands that outlive their client."""
    one = box.start("echo first; until test -e /tmp/sdk-go; do sleep 0.1; done; echo second; exit 4", split=True)
    pieces = box.attach(one.id)
    t.eq((next(pieces).data, one.kept), (b"first\n", True), "start, attach: what it wrote")
    t.ok([e.attached for e in box.execs() if e.id == one.id] == [True], "somebody is attached")
    other = box.attach(one.id)
    t.eq(next(other).data, b"first\n", "the next one is told again")
    kind(t, refused(lambda: list(pieces)), durward.Conflict, "detached", "and the first one that another is there")
    other.close()
    box.exec("touch /tmp/sdk-go")

    async def ask():
        a = await durward.AsyncDurward(box.client.socket).get(box.id)
        got = [p async for p in a.attach(one.id)]
        t.eq((b"".join(p.data for p in got[:-1]), got[-1].exit_code), (b"first\nsecond\n", 4), "async: attach, to its end")
        more = await a.start(["true"])
        t.eq((await collect(a, more.id))[-1].exit_code, 0, "async: start")

    async def collect(a, exec_id):
        return [p async for p in a.attach(exec_id)]
    asyncio.run(ask())
    kind(t, refused(lambda: list(box.attach(one.id))), durward.NotFound, "not_found", "it was told its end once")


def ports(t, box):
    serve = box.stream(["/usr/bin/python3", "-u", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
    next(serve)
    t.eq([e.id[:4] for e in box.execs()], ["sdk-"], "commands that run")
    with box.forward(8123) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        t.ok(s.recv(100).startswith(b"HTTP/1.0 200"), "forward: a port of the sandbox's own")

    seen = box.services()[0]
    t.eq((seen.name, seen.state, seen.detail, seen.preview), ("web", "healthy", "status 200", None), "services")
    kind(t, refused(box.preview, "web"), durward.NotFound, "preview_not_found", "preview where they are off")
    t.eq((box.revoke_previews("web"), box.revoke_previews(8000), box.revoke_previews()), (None,) * 3, "taking back what was not given")
    kind(t, refused(box.revoke_previews, "a b"), durward.BadRequest, "bad_request", "what is no service's name")

    async def ask():
        a = await durward.AsyncDurward(box.client.socket).get(box.id)
        t.eq([s.name for s in await a.services()], ["web"], "async: services")
        reader, writer = await a.forward(8123)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        t.ok((await reader.read(100)).startswith(b"HTTP/1.0 200"), "async: forward")
        writer.close()
    asyncio.run(ask())
    box.cancel(box.execs()[0].id)
    for piece in serve:
        pass
    t.eq(piece.exit_code, 137, "cancel: a command is killed")
    kind(t, refused(box.forward, 8123), durward.Unavailable, "not_listening", "forward to where nothing listens")


def published(t, c):
    """Ports by number, and at an address said; a server inside is reached from here."""
    with c.create("p", publish=[8123, (8123, "127.0.0.1:0")]) as box:
        t.eq([(p.port, p.address.rpartition(":")[0]) for p in box.info.published], [(8123, "127.0.0.1")] * 2, "publish")
        serve = box.stream(["/usr/bin/python3", "-u", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
        next(serve)
        for p in box.info.published:
            host, _, port = p.address.rpartition(":")
            with socket.create_connection((host, int(port)), 10) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                t.ok(s.recv(100).startswith(b"HTTP/1.0 200"), "the sandbox's server answers at " + host)
        serve.close()
    kind(t, refused(c.create, "p", publish=[(8123, "127.0.0.1")]), durward.BadRequest, "bad_request", "an address without a port")


def archives(t, c, box):
    blob, tar = os.urandom(3 << 20), t.path("archive.tar")
    box.write(W + "blob", blob)
    made = box.snapshot("arc")
    with open(tar, "wb") as f:
        for piece in c.export_snapshot("arc"):
            f.write(piece)
    with tarfile.open(tar) as z:
        t.ok(any(n.endswith("blob") for n in z.getnames()), "a snapshot exported is a tar archive", str(z.getnames()[:20]))
    with open(tar, "rb") as f:
        got = c.import_snapshot("arc2", f)
    t.eq((got.name, got.state, got.policy), ("arc2", "ready", made.policy), "and imported from an open file")
    t.eq(c.import_snapshot("arc3", c.export_snapshot("arc")).name, "arc3", "or from pieces, as another daemon gives them")
    with c.create("p", snapshot="arc3") as other:
        t.ok(other.read(W + "blob") == blob, "what was in it is in a sandbox of it")
    kind(t, refused(c.import_snapshot, "arc2", [b"x"]), durward.Conflict, "conflict", "of a name that is taken")
    kind(t, refused(lambda: list(c.export_snapshot("none"))), durward.NotFound, "snapshot_not_found", "of none")
    with open(tar, "rb") as f:
        half = f.read(os.path.getsize(tar) // 2)
    kind(t, refused(c.import_snapshot, "half", [half]), durward.DurwardError, "snapshot_failed", "half of one is none")
    kind(t, refused(c.import_snapshot, "junk", (b"junk" * 30000 for _ in range(400))), durward.DurwardError,
         "snapshot_failed", "48 MB that are no archive: told, whenever the daemon says so")
    first = c.export_snapshot("arc")
    next(first)
    first.close()

    async def part():
        a = durward.AsyncDurward(c.socket)
        with open(tar, "wb") as f:
            async for piece in a.export_snapshot("arc"):
                f.write(piece)
        with open(tar, "rb") as f:
            t.eq((await a.import_snapshot("arc4", f)).name, "arc4", "async: exported to a file, imported from it")
        t.eq((await a.import_snapshot("arc5", a.export_snapshot("arc"))).name, "arc5", "async: from pieces")
        for name, source in (("half", [half]), ("junk", (b"junk" * 30000 for _ in range(400)))):
            try:
                await a.import_snapshot(name, source)
                t.ok(False, "async: " + name)
            except durward.DurwardError as e:
                t.eq(e.code, "snapshot_failed", "async: %s is none" % name)
        async with a.create("p", publish=[8123]) as b:
            t.eq([p.port for p in b.info.published], [8123], "async: publish")
    asyncio.run(part())
    t.eq([s.name for s in c.snapshots()], ["arc", "arc2", "arc3", "arc4", "arc5"], "nothing else came of it")
    for s in c.snapshots():
        c.delete_snapshot(s.name)


def commands(t, box):
    r = box.exec("echo out; echo err >&2; exit 7")
    t.eq((r.exit_code, r.output, r.truncated, r.timed_out), (7, b"out\nerr\n", False, False), "output and code")
    r = box.exec("echo out; echo err >&2", split=True)
    t.eq((r.output, r.stderr), (b"out\n", b"err\n"), "split")
    t.eq(box.exec(["cat"], stdin=b"\0\xff" * 3).output, b"\0\xff" * 3, "argv and standard input, 8-bit clean")
    t.eq(box.exec("pwd; echo $A", cwd="/tmp", env={"A": "1"}).text, "/tmp\n1\n", "cwd and env")
    t.eq(box.exec("pwd", cwd=pathlib.PurePosixPath("/tmp")).text, "/tmp\n", "cwd may be a path of pathlib")
    t.eq(box.exec("cat", stdin="\u00e4").output, b"\xc3\xa4", "text is UTF-8 on standard input")
    r = box.exec("echo a; sleep 60", timeout=1)
    t.eq((r.exit_code, r.timed_out, r.output), (124, True, b"a\n"), "a time out is 124, what came is kept")
    r = box.exec("head -c 5000 /dev/zero; exit 3", max_output=1000)
    t.eq((r.exit_code, len(r.output), r.truncated), (3, 1000, True), "max_output: truncated says so")
    t.eq(box.exec(["/no/such"]).exit_code, 127, "no such program")
    r = box.exec("head -c 6000000 /dev/zero; sleep 0.1; echo end")
    t.eq((len(r.output), r.truncated), (6000004, False), "6 MB of output, whole")
    t.eq(len(box.exec("printf %s '" + "x" * 300000 + "'").output), 300000, "a command of 300,000 bytes")


def interrupted(t, box):
    """Ctrl-C at a program that waits for a command."""
    text = "import durward\ndurward.Durward(%r).get(%r).exec('echo on >/tmp/int; sleep 303')" % (str(box.client.socket), box.id)
    p = t.popen([sys.executable, "-c", text], env=dict(os.environ, PYTHONPATH=os.path.join(SDK, "src")), stderr=subprocess.DEVNULL)
    t.ok(tap.wait_for(lambda: box.exec("test -e /tmp/int").exit_code == 0, 10, 0.1), "a command runs")
    p.send_signal(signal.SIGINT)
    t.ok(p.wait(10) != 0 and tap.wait_for(lambda: box.exec("ps ax | grep -c '[s]leep 303'").text == "0\n", 5, 0.1), "interrupted, exec kills it")


def streaming(t, box):
    times, got = [], b""
    for piece in box.stream("echo a; sleep 0.4; echo b >&2; exit 5", split=True):
        times.append(time.monotonic())
        if isinstance(piece, durward.ExecOutput):
            got += piece.stream.encode() + b":" + piece.data
    t.eq((got, piece.exit_code), (b"stdout:a\nstderr:b\n", 5), "pieces by stream, the result last")
    t.ok(times[1] - times[0] > 0.2, "as they come")
    it = box.stream("echo started; sleep 300")
    t.eq(next(it).data, b"started\n", "a stream")
    it.close()
    t.ok(tap.wait_for(lambda: box.exec("ps ax | grep -c '[s]leep 300'").text == "0\n", 5, 0.1),
         "closing it kills the command")


def files(t, box):
    blob = os.urandom(17 << 20)
    box.write(W + "a/b/blob", blob)
    t.ok(box.read(W + "a/b/blob") == blob, "17 MiB in and out; parents are made")
    box.write(W + "text", "\u00e4\u20ac")
    t.eq(box.read(W + "text"), b"\xc3\xa4\xe2\x82\xac", "and in a file")
    try:
        box.write(W + "text", 5)
        t.ok(False, "a number is no file")
    except TypeError:
        t.ok(True, "a number is no file")
    odd = W + "n \u00e4 % & ? # +\n'\""
    box.write(odd, b"odd", mode=0o750)
    entries = {e.name: e for e in box.list_files("/workspace")}
    e = entries[os.path.basename(odd)]
    t.eq((box.read(odd), e.type, e.size, e.mode & 0o777), (b"odd", "file", 3, 0o750), "an odd name, its mode, listed")
    box.exec("printf x > \"$(printf 'l\\374')\"")
    raw = [e.name for e in box.list_files("/workspace") if e.name.startswith("l")][0]
    t.eq((raw.encode("utf-8", "surrogateescape"), box.read(W + raw)), (b"l\xfc", b"x"),
         "a name that is no UTF-8 comes and goes")
    up = box.upload([(W + "u/1", b"1"), ("relative", b""), (W + "u", b"")])
    t.eq([r.error and r.error.code for r in up], [None, "invalid_path", "is_directory"],
         "upload: a result each, in order")
    t.eq([r.error and r.error.code for r in box.upload([(W + "huge", bytes(200 << 20)), (W + "u/2", b"2")])],
         ["too_large", None], "a file of 200 MiB is refused by itself")
    down = box.download([W + "u/1", W + "none", W + "a", "rel"])
    t.eq([(r.data, r.error and r.error.code) for r in down],
         [(b"1", None), (None, "file_not_found"), (None, "is_directory"), (None, "invalid_path")], "download too")
    r = box.batch([{"op": "write", "path": W + "q", "data": "AAH/", "encoding": "base64"},
                   {"op": "read", "path": W + "q"}, {"op": "delete", "path": W + "q"},
                   {"op": "read", "path": W + "q"}])
    t.eq([(x.data, x.error and x.error.code) for x in r],
         [(None, None), (b"\0\1\xff", None), (None, None), (None, "file_not_found")], "batch")
    box.write_tar(W + "t", box.read_tar(W + "a"))
    t.eq(box.exec("cmp a/b/blob t/b/blob && echo same").text, "same\n", "archives")
    kind(t, refused(box.remove, W + "a"), durward.FileError, "not_empty", "a full directory stays")
    box.remove(W + "a", recursive=True)
    kind(t, refused(box.read, W + "a/b/blob"), durward.FileError, "file_not_found", "but with recursive")


def awaited(t, path, box):
    async def part():
        c = durward.AsyncDurward(path)
        a = await c.get(box.id)
        t.eq((await a.exec("cat; exit 4", stdin=b"in")).output, b"in", "async: a command")
        rs = await asyncio.gather(*[a.exec("head -c 600000 /dev/zero; sleep 0.5") for _ in range(8)])
        t.eq([len(r.output) for r in rs], [600000] * 8, "async: eight at once")
        seen = [x async for x in a.stream("echo a; sleep 0.1; echo b", timeout=20)]
        t.eq((b"".join(x.data for x in seen[:-1]), seen[-1].exit_code), (b"a\nb\n", 0), "async: a stream")
        async with contextlib.aclosing(a.stream("echo on; sleep 301")) as it:
            async for _ in it:
                break
        for _ in range(50):
            left = (await a.exec("ps ax | grep -c '[s]leep 301'")).text
            if left == "0\n":
                break
            await asyncio.sleep(0.1)
        t.eq(left, "0\n", "async: closing it kills the command")
        running = asyncio.ensure_future(a.exec("sleep 302"))
        while (await a.exec("ps ax | grep -c '[s]leep 302'")).text == "0\n":
            await asyncio.sleep(0.1)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        for _ in range(50):
            left = (await a.exec("ps ax | grep -c '[s]leep 302'")).text
            if left == "0\n":
                break
            await asyncio.sleep(0.1)
        t.eq(left, "0\n", "async: cancelling the task kills the command")
        await a.write(W + "as", b"\0" * 3000000)
        t.eq(len(await a.read(W + "as")), 3000000, "async: files")
        t.eq([r.error and r.error.code for r in await a.download([W + "as", "rel", W + "no"])],
             [None, "invalid_path", "file_not_found"], "async: a result each")
        t.eq([s.id async for s in c.sandboxes()], [box.id], "async: sandboxes")
        try:
            await c.get("sb-none")
        except durward.NotFound as e:
            t.has(str(e), "create another", "async: a refusal says what to do")
        async with await c.get_or_create({"k": "v"}, "other") as b:
            t.eq(b.info.policy, "other", "async: get_or_create")
        async with c.create("p", auto_resume=False) as b:
            t.eq((await b.exec("echo in")).text, "in\n", "async with create(): without await")
            await b.stop()
            t.eq(((await b.resume()).state, (await c.status())["sandboxes"] != [], (await c.fleet()).hosts), ("running", True, ()), "async: stop, resume")
            await b.snapshot("as")
            async with b.fork() as f:
                t.eq((f.info.parent, (await f.restore("as")).snapshot), (b.id, "as"), "async: fork, snapshot, restore")
            t.eq([s.name for s in await c.snapshots()], ["as"], "async: snapshots")
            await c.delete_snapshot("as")
        try:
            await c.get(b.id)
        except durward.NotFound:
            t.ok(True, "async: left, it is deleted")
        made = await asyncio.create_task(c.create("other"))
        t.eq(((await c.explain("GET", "https://x.example/", "other")).decision, await c.approvals()), ("deny", []),
             "async: explain, approvals")
        await made.delete()
        async with contextlib.aclosing(c.audit()) as log:
            async for record in log:
                if record["kind"] == "denied" and "held.example.com" in json.dumps(record):
                    break
            t.eq(record["code"], "approval_denied", "async: the audit log")
    asyncio.run(part())


def crowded(t, path, box):
    """A unix socket's queue that is full, and more commands than a sandbox may run."""
    async def waiting():
        place = t.path("full.sock")
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
            listener.bind(place)
            listener.listen(0)
            first.connect(place)
            asked = asyncio.ensure_future(durward.AsyncDurward(place, retries=0).version())
            done, _ = await asyncio.wait([asked], timeout=0.5)
            t.ok(not done, "async: a full queue is waited for", *map(str, done))
            listener.accept()[0].close()
            conn = await asyncio.get_running_loop().run_in_executor(None, lambda: listener.accept()[0])
            with conn:
                await asyncio.get_running_loop().run_in_executor(None, conn.recv, 4096)
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"version\":\"1\"}")
                t.eq(await asked, "1", "async: then it is asked")

    async def many():
        a = await durward.AsyncDurward(path).get(box.id)
        tasks = [asyncio.ensure_future(a.exec(["sleep", "303"])) for _ in range(230)]
        while sum(x.done() for x in tasks) < 30:
            await asyncio.sleep(0.05)
        said = {(type(x.exception()).__name__, x.exception().code) for x in tasks if x.done()}
        t.eq(said, {("Unavailable", "limit")}, "async: 230 commands at once: 200 run, the others are told that it is full")
        for x in tasks:
            x.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    asyncio.run(waiting())
    asyncio.run(many())


def far_off(t, url):
    """What is wrong with the way to a daemon elsewhere is said as that."""
    mine = dict(os.environ)
    del os.environ["DURWARD_CA"]

    async def ask(*args, **kw):
        await durward.AsyncDurward(*args, **kw).version()
    for word, fn in (("", lambda *a, **kw: durward.Durward(*a, **kw).version()), ("async: ", lambda *a, **kw: asyncio.run(ask(*a, **kw)))):
        e = refused(fn, url, retries=0)
        kind(t, e, durward.Unavailable, "tls", word + "a CA that nobody knows")
        t.has(str(e), "DURWARD_CA", word + "says what to do")
        e = refused(fn, url.rsplit(":", 1)[0] + ":1", retries=0)
        kind(t, e, durward.Unavailable, "no_daemon", word + "nobody at that port")
        t.has(str(e), "controller: {https: ADDRESS:PORT}", word + "says where to look")
    try:
        durward.Durward(url, ca=t.path("none.pem"))
        t.ok(False, "a CA's file that is not there")
    except ValueError as e:
        t.has(str(e), "cannot be read from " + t.path("none.pem"), "a CA's file that is not there")
    os.environ.update(mine)


def identities(t, d, c):
    for elsewhere, flags, scheme in ((False, (), "http:"), (True, ("--for", "other"), "https:")):
        i = c.issue_identity("p", ttl=60, remote=elsewhere)
        told = json.loads(d.command("env", "--policy", "p", *flags, "--ca-dir", i.trust_dir, "--json",
                                    "--socket", d.socket).stdout)
        ours = durward.trust.variables(i)
        t.ok(ours["HTTPS_PROXY"].startswith(scheme) and told["HTTPS_PROXY"].startswith(scheme),
             "%s has the listener in %s" % ("a remote client" if elsewhere else "one of this host", scheme))
        same = [k for k in told if "roxy" not in k.lower().replace("git_proxy", "") and k not in i.env]
        t.eq((sorted(ours), {k: ours[k] for k in same}), (sorted(told), {k: told[k] for k in same}),
             "variables are those of `durward env`, and point at the same files")
        t.eq((ours["CURL_CA_BUNDLE"] == "", ours["NODE_USE_ENV_PROXY"]), (elsewhere, "1"), "as the proxy's scheme wants it")
        c.revoke_identity(i.id)
    i = c.issue_identity("p", ttl=60)
    name = [n for n in durward.trust.files(i) if n.startswith("certs/") and n.endswith(".0")]
    t.eq(name, ["certs/" + n for n in i.ca_hashed], "the CA by its hashed name")
    t.ok(i.token and i.token in i.proxy and i.token not in repr(i), "an identity's token is not in its repr")
    t.eq(durward.trust.reached_at("http://sandbox:tok@0.0.0.0:3128", "gate.example"),
         "http://sandbox:tok@gate.example:3128", "a proxy's address can be another from there")
    t.eq(durward.trust.reached_at("https://sandbox:tok@g:443", "http://10.0.0.1:3128"), "http://sandbox:tok@10.0.0.1:3128",
         "and its scheme")
    elsewhere = dataclasses.replace(i, trust_dir="/nonexistent")
    made = durward.trust.files(elsewhere)
    t.eq(([made["certs/" + n].strip() for n in i.ca_hashed], made["durward-ca.pem"]), ([i.ca.encode().strip()], i.ca.encode()),
         "files where the daemon's are not")
    t.ok({"ca-certificates.crt", "durward-ca.pem", "cacerts.p12"} <= set(durward.trust.files(i)), "trust files")
    c.revoke_identity(i.id)
    kind(t, refused(c.revoke_identity, i.id), durward.NotFound, "not_found", "revoked once")
    kind(t, refused(c.issue_identity, "nope"), durward.BadRequest, "bad_request", "no identity of no policy")


def repeated(t, path):
    """Behind a socket that drops requests without an answer."""
    front = dropping.Dropping(t, t.path("front.sock"), path)
    c, a = durward.Durward(front.path), durward.AsyncDurward(front.path)
    for kind_, ask in (("waiting", c.policies), ("asyncio", lambda: asyncio.run(a.policies()))):
        front.drop(2)
        t.eq((sorted(ask()), len(front.asked)), (["other", "p"], 3), "%s: what reads is asked again, and again" % kind_)
        front.drop(3)
        kind(t, refused(ask), durward.Unavailable, "connection", "%s: not for ever" % kind_)
        front.drop(1, "busy")
        t.eq((sorted(ask()), len(front.asked)), (["other", "p"], 2), "%s: nor is 503 the end" % kind_)
    for ask in (durward.Durward(front.path, timeout=0.3).policies,
                lambda: asyncio.run(durward.AsyncDurward(front.path, timeout=0.3).policies())):
        front.drop(9, "hang")
        kind(t, refused(ask), durward.Unavailable, "timeout", "a daemon that hangs is waited for as long as the client's timeout says")
        t.eq(len(front.asked), 1, "once")
    front.drop(1)
    kind(t, refused(c.create, "p"), durward.Unavailable, "connection", "a sandbox is not made twice")
    t.eq(len(front.asked), 1, "it was asked once")
    front.drop(1)
    with c.get_or_create({"again": "1"}, "p") as box:
        t.eq(len(front.asked), 2, "but got or created")
        front.drop(1)
        kind(t, refused(box.exec, "true"), durward.Unavailable, "connection", "a command is not run twice")
        front.drop(1)
        box.write(W + "again", b"1")
        front.drop(1)
        kind(t, refused(box.write, W + "again", b"2", if_version="none"), durward.Unavailable, "connection", "nor what depends on a version written")
    t.eq(refused(durward.Durward(front.path, retries=0).get, box.id).code, "sandbox_not_found", "and it is gone")
    front.drop(1)
    kind(t, refused(durward.Durward(front.path, retries=0).policies), durward.Unavailable, "connection", "retries=0: once")


def no_daemon(t, path, c, box):
    kind(t, refused(durward.Durward(t.path("none.sock")).version), durward.Unavailable, "no_daemon", "no daemon")
    t.has(str(refused(durward.Durward(t.path("none.sock")).version)), "durward serve", "says what to do")
    e = refused(c.version)
    kind(t, e, durward.Unavailable, "no_daemon", "a daemon that ended")

    async def ask():
        await durward.AsyncDurward(path).version()
    kind(t, refused(lambda: asyncio.run(ask())), durward.Unavailable, "no_daemon", "async: too")
    for bad, say in (("https://durward.example/v1", "HOST[:PORT]"), ("relative.sock", "absolute"),
                     ("http://127.0.0.1:8443", "unix socket or https only")):
        try:
            durward.Durward(bad)
            t.ok(False, "%s is no socket" % bad)
        except ValueError as e:
            t.ok("\n" not in str(e) and say in str(e), "%s is no socket" % bad, str(e))


def wheel(t):
    venv = os.path.join(program.clients_dir(), "agents", "bin", "python")
    if not os.path.exists(venv):
        t.skip("the wheel", "its tools are not there: run tests/functional/clients/setup")
        return
    source = t.path("sdk")
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    r = subprocess.run([venv, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index",
                        "-w", t.path("wheel"), source], capture_output=True, text=True)
    t.eq(r.returncode, 0, "the wheel builds") or t.diag(r.stderr)
    name = [n for n in os.listdir(t.path("wheel")) if n.endswith(".whl")][0]
    with zipfile.ZipFile(os.path.join(t.path("wheel"), name)) as z:
        inside = set(z.namelist())
        points = [z.read(n).decode() for n in inside if n.endswith("entry_points.txt")]
    with open(os.path.join(program.TOP, "LICENSE")) as f:
        license = f.read()
    with zipfile.ZipFile(os.path.join(t.path("wheel"), name)) as z:
        t.eq([z.read(n).decode() for n in inside if n.endswith("/LICENSE")], [license], "with its licence")
    r = subprocess.run([venv, "-c", "from setuptools import build_meta; print(build_meta.build_sdist(%r))" % t.path("sdist")],
                       cwd=source, capture_output=True, text=True)
    with tarfile.open(t.path("sdist", r.stdout.split()[-1])) as z:
        t.ok([n for n in z.getnames() if n.endswith("/LICENSE") and n.count("/") == 1], "the sdist, too", r.stderr)
    t.ok({"durward/py.typed", "durward_deepagents/py.typed", "durward_deepagents/provider.py", "durward_deepagents/probe.py"} <= inside,
         "typed, with both packages: " + name, str(sorted(inside)))
    t.has("".join(points), "durward = durward_deepagents.provider:DurwardProvider", "and dcode's entry point")
    r = subprocess.run([venv, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", t.path("installed"),
                        os.path.join(t.path("wheel"), name)], capture_output=True, text=True)
    t.eq(r.returncode, 0, "it is installed from its file, without an index") or t.diag(r.stderr)
    r = subprocess.run([venv, "-I", "-c", "import sys; sys.path.insert(0, sys.argv[1]); import durward, durward_deepagents, importlib.metadata as m; "
                        "print(durward_deepagents.__file__, m.version('durward'))", t.path("installed")], capture_output=True, text=True)
    t.ok(t.path("installed") in r.stdout and "0.1.0" in r.stdout, "and its packages are found there", r.stdout, r.stderr)
    r = subprocess.run(["/usr/bin/python3", "-B", "-c", "import durward, sys; print(durward.__file__)"],
                       env={"PYTHONPATH": os.path.join(t.path("wheel"), name)}, capture_output=True, text=True)
    t.has(r.stdout, ".whl", "the client needs nothing but Python") or t.diag(r.stderr)
    r = subprocess.run([venv, "-m", "mypy", "--strict", "--cache-dir", os.path.join(program.clients_dir(), "mypy-sdk"), "--exclude", "provider|durward_frameworks",
                        os.path.join(source, "src")], capture_output=True, text=True)
    t.eq(r.returncode, 0, "mypy --strict has nothing to say") or t.diag(r.stdout + r.stderr)


def main(t):
    t.part(wheel, t)
    d = program.Durward(t)
    d.policy("p", [{"ask": "held.example.com"}])
    d.policies["p"]["sandbox"] = {"services": {"web": {"port": 8123, "health": "/"}}}
    d.policy("other", [])
    from harness import nginx
    d.listen.append({"http": "127.0.0.1:%d" % nginx.free_port()})
    d.listen.append({"https": "127.0.0.1:%d" % nginx.free_port(), "name": "gate.example.net"})
    url, access = d.reachable_from_elsewhere(nginx.free_port())
    d.extra["templates"] = {"sdk": {"policy": "p", "warm_up": ["sh", "-c", "echo up >warm"], "labels": {"kind": "sdk"}, "idle_ttl": "120s"}}
    d.serve()
    c = durward.Durward(d.socket)
    try:
        c.create("p").delete()
    except durward.DurwardError as e:
        raise tap.Skip("no sandbox can be made here: %s" % e)
    t.part(life, t, c)
    t.part(daemon, t, d, c)
    t.part(sleeps, t, c)
    box = c.create("p")
    t.part(asked, t, c, box)
    for part in (ports, kept, commands, interrupted, streaming, files):
        t.part(part, t, box)
    t.part(awaited, t, d.socket, box)
    t.part(crowded, t, d.socket, box)
    t.part(published, t, c)
    t.part(archives, t, c, box)
    t.part(repeated, t, d.socket)
    t.part(identities, t, d, c)
    os.environ.update(access())
    far = durward.Durward()
    t.eq(str(far.socket), url, "the same by the API over TLS, with a token, as the environment says")
    t.part(far_off, t, url)
    again = far.get(box.id)
    for part in (ports, streaming):
        t.part(part, t, again)
    t.part(asked, t, far, again)
    t.part(archives, t, far, again)
    t.part(awaited, t, far.socket, again)
    t.eq(d.stop(), 0, "the daemon ends well")
    t.part(no_daemon, t, d.socket, c, box)


tap.run(main, timeout=240)
