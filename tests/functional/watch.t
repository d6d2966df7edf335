#!/usr/bin/python3 -B
"""Events of files: what happens below a directory of a sandbox, at any depth, as lines; what is skipped, lost and
refused; who watches only keeps nothing awake; a directory that is swapped for a link leads nowhere; `durward sandbox
watch`."""
import base64
import json
import os
import select
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402

AT = "/v1/sandboxes/%s/files/watch"


class Watch:
    """An open watch, its lines as they come."""

    def __init__(self, c, sid, **body):
        self.sock, self.held = c.upgrade(AT % sid, "durward-watch", body)

    def line(self, seconds=20):
        self.sock.settimeout(seconds)
        while b"\n" not in self.held:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError("the watch ended")
            self.held += more
        line, _, self.held = self.held.partition(b"\n")
        v = json.loads(line)
        if v.get("encoding") == "base64":
            v["path"] = base64.b64decode(v["path"])
        return v

    def until(self, last, kind="created"):
        """(type, path, directory) of all up to this."""
        seen = []
        while True:
            v = self.line()
            if v["type"] in ("end", "overflow", "ready"):
                seen.append((v["type"], v.get("reason", v.get("code")), None))
            else:
                seen.append((v["type"], v["path"], v["directory"]))
            if (v["type"], v.get("path")) == (kind, last) or v["type"] == "end":
                return seen

    def close(self):
        self.sock.close()


def events(t, c, sid):
    c.sh(sid, "mkdir -p old/deep skip/x && echo 1 >old/deep/file && ln -s /etc link")
    w = Watch(c, sid, skip=["skip", "node_modules"])
    t.eq(w.line(), {"type": "ready"}, "it says when nothing is missed any more")
    c.sh(sid, "echo 2 >>old/deep/file; echo 3 >new; chmod 600 new; mv new moved; rm moved; rm -r old; touch link; "
              "mkdir skip/y node_modules; touch end1")
    seen = w.until("end1")
    have = set(seen)
    t.ok({("modified", "old/deep/file", False), ("created", "new", False), ("modified", "new", False),
          ("attributes", "new", False), ("deleted", "new", False), ("created", "moved", False), ("deleted", "moved", False),
          ("deleted", "old/deep/file", False), ("deleted", "old/deep", True), ("deleted", "old", True)} <= have,
         "files that are written, made, moved and removed, at any depth", *map(str, seen))
    t.ok(not [x for x in seen if x[1].startswith(("skip", "node_modules", "link"))], "nothing of what is skipped, nor behind a link",
         *map(str, seen))
    c.sh(sid, "mkdir -p a/b/c && echo x >a/b/c/f && mkdir t && echo y >t/g && mv t a/b/t && echo z >a/b/t/g; touch end2")
    seen = set(w.until("end2"))
    if ("created", "a/b/t/g", False) not in seen:  # a directory is looked into once all that came with it is told
        seen |= set(w.until("a/b/t/g"))
    t.ok({("created", "a", True), ("created", "a/b/c", True), ("created", "a/b/c/f", False), ("deleted", "t", True),
          ("created", "a/b/t", True), ("created", "a/b/t/g", False)} <= seen, "directories that are made and moved are watched at once",
         *map(str, sorted(seen, key=str)))
    c.sh(sid, "echo again >>a/b/t/g; touch end3")
    t.ok(("modified", "a/b/t/g", False) in w.until("end3"), "under their new name")
    c.sh(sid, "touch \"$(printf 'bytes\\377\\nand a line')\" end4")
    t.ok(("created", b"bytes\xff\nand a line", False) in w.until("end4"), "a name is bytes")
    c.sh(sid, "rm -rf a; mkdir -p a/in; touch end5")
    w.until("end5")
    c.sh(sid, "mkdir /tmp/else; mv a /tmp/else/a; ln -s /tmp/else/a a; touch a/in/there; touch end6")
    seen = w.until("end6")
    t.ok(not [x for x in seen if "there" in x[1]], "a directory that a link takes the place of leads nowhere", *map(str, seen))
    w.close()


def lost(t, c, sid):
    """More than the kernel's queue holds, while nobody reads; then what happens is told again."""
    c.sh(sid, "rm -rf /workspace/*; mkdir /workspace/d")
    w = Watch(c, sid)
    w.line()
    code, out = c.sh(sid, "cat /proc/sys/fs/inotify/max_queued_events")
    many = max(60000, 4 * int(out))
    code = c.sh(sid, "python3 -c 'import os\nfor i in range(%d):\n p=\"d/%%d-\" %% i + \"x\" * 180\n os.close(os.open(p,os.O_CREAT|os.O_WRONLY)); "
              "os.unlink(p)'; mkdir d/after; touch end1" % many, timeout=120)
    seen = []
    try:
        while True:
            seen.append(w.line(60 if not seen else 3))
    except TimeoutError:
        pass
    t.ok({"type": "overflow", "reason": "events"} in seen and len(seen) < 4 * many, "more than can wait: an overflow is told", len(seen))
    c.sh(sid, "touch d/after/it; touch end2")
    rest = w.until("end2")
    t.ok(("created", "d/after/it", False) in rest, "after it nothing is missed, in directories made meanwhile either",
         code, c.sh(sid, "ls -la d | head -5"), *map(str, seen[-3:] + rest[:9]))
    w.close()
    c.sh(sid, "rm -rf d; mkdir wide; cd wide; seq 5000 | xargs mkdir", timeout=120)
    w = Watch(c, sid)
    t.eq([w.line(60), w.line(60)], [{"type": "ready"}, {"type": "overflow", "reason": "directories"}],
         "more directories than are watched: it is told")
    c.sh(sid, "touch /workspace/still")
    t.ok(("created", "still", False) in w.until("still"), "and those that are go on")
    w.close()
    c.sh(sid, "rm -rf /workspace/wide", timeout=120)


def refusals(t, c, sid):
    c.sh(sid, "echo >/workspace/plain; mkdir -p /workspace/gone")
    ask = lambda **body: api.refused(c.ask, "POST", AT % sid, body)  # noqa: E731
    t.eq([ask(path="/workspace/none"), ask(path="/workspace/plain"), ask(path="workspace"), ask(skip=["a/b"]), ask(skip=[""]),
          ask(skip=["x"] * 33), ask(skip="x"), ask(deep=True)],
         [(404, "file_not_found"), (409, "not_directory")] + [(400, "bad_request")] * 6, "refusals")
    w = Watch(c, sid, path="/workspace/gone")
    w.line()
    c.sh(sid, "touch gone/x; rm -r gone")
    t.eq(w.until(None)[-1], ("end", "file_not_found", None), "it ends with its directory, which is told")
    w.close()
    four = [Watch(c, sid) for _ in range(4)]
    t.ok(all(x.line() == {"type": "ready"} for x in four), "four may watch")
    t.eq(ask(), (503, "limit"), "a fifth may not")
    four.pop().close()
    t.ok(tap.wait_for(lambda: workers(c, sid) == 3, 10, 0.1), "one that leaves is gone inside, too")
    more = Watch(c, sid)
    t.eq(more.line(), {"type": "ready"}, "and makes room")
    for x in four + [more]:
        x.close()
    t.ok(tap.wait_for(lambda: workers(c, sid) == 0, 10, 0.1), "nothing is left of them")


def workers(c, sid):
    """Children of durward-init's own program."""
    return int(c.sh(sid, "cat /proc/[0-9]*/comm 2>/dev/null | grep -cx \"$(cat /proc/1/comm)\"")[1]) - 1


def idle(t, c):
    sid = c.create(policy="coder", idle_ttl=3)["id"]
    w = Watch(c, sid)
    t.eq(w.line(), {"type": "ready"}, "a sandbox that is watched")
    t.eq(w.until(None, "end")[-1][0], "end", "who watches only does not keep it from its idle time")
    t.ok(tap.wait_for(lambda: api.refused(c.show, sid) is not None, 10, 0.1), "which ends it")
    w.close()


def chunks(t, c, sid):
    """As HTTP has it: lines in chunks."""
    s = c.conn.__class__(c.path, 20)
    s.request("POST", AT % sid, json.dumps({"path": "/workspace"}))
    r = s.getresponse()
    t.eq((r.status, r.headers["Content-Type"], json.loads(r.readline())), (200, "application/x-ndjson", {"type": "ready"}), "in chunks")
    c.write(sid, "/workspace/by-http", b"x")
    t.eq(json.loads(r.readline())["path"], "by-http", "the same")
    s.close()


def cli(t, d, c, sid):
    p = subprocess.Popen([durward.program(), "sandbox", "watch", "--socket", d.socket, "--skip", "no", "--json", sid],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.eq(json.loads(p.stdout.readline()), {"type": "ready"}, "durward sandbox watch --json")
    c.sh(sid, "mkdir no made; touch made/it")
    got = [json.loads(p.stdout.readline())["path"] for _ in range(2)]
    t.eq(got, ["made", "made/it"], "its lines are the API's")
    p.terminate()
    p.wait(10)
    p = subprocess.Popen([durward.program(), "sandbox", "watch", "--socket", d.socket, sid + ":/workspace/made"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.ok(tap.wait_for(lambda: c.sh(sid, "touch made/it") and select.select([p.stdout], [], [], 0.2)[0], 10, 0.1), "it watches")
    tap.wait_for(lambda: c.sh(sid, "printf x >\"made/$(printf 'a\\033[31mb')\"; mkdir made/sub; rmdir made/sub; rm -r made") and p.poll() is not None, 10, 0.5)
    out, err = p.communicate(timeout=10)
    t.ok(b"created\t" in out and b"created\tsub/\n" in out and b"deleted\tsub/\n" in out and b"\033" not in out, "as text, which a name does not colour", out)
    t.ok(p.returncode == 1 and b"No such file" in err, "it ends with the directory", err)
    r = d.command("sandbox", "watch", "--socket", d.socket, sid + ":relative")
    t.eq(r.returncode, 2, "a path is absolute")
    r = d.command("sandbox", "watch", "--socket", d.socket, sid + ":/nope")
    t.ok(r.returncode == 1 and "/nope: No such file" in r.stderr, "one that is not there is named", r.stderr)


def main(t):
    s = scene.Scene(t)
    s.d.serve()
    c = api.Api(s.d.socket)
    sid = c.first(policy="coder", idle_ttl=0)
    t.part(events, t, c, sid)
    t.part(lost, t, c, sid)
    t.part(refusals, t, c, sid)
    t.part(chunks, t, c, sid)
    t.part(cli, t, s.d, c, sid)
    t.part(idle, t, c)
    c.delete(sid)
    t.ok(s.d.kinds("lifecycle", event="file_watched"), "watches are on record")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=240)
