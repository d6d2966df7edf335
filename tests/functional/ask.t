#!/usr/bin/python3 -B
"""`ask`: a request is held until somebody decides, by command line, API or terminal; nothing of it
reaches an origin before. Time-out, a client that leaves, bounds, reload, a new controller."""
import concurrent.futures
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, durward, scene, shapes, tap  # noqa: E402
from harness.terminal import Terminal  # noqa: E402

ISSUE = "/repos/acme/held-%s/issues"  # which that origin answers with 404: nobody else here does


def rules(s):
    s.rules.insert(0, {"ask": "api.github.com/repos/acme/held-*/issues", "methods": ["POST"],
                       "with": {"bearer": "github"}})
    s.rules.insert(0, {"ask": scene.PLAIN + "/ask/**"})
    s.rules.insert(0, {"ask": "only.example.com"})
    s.rules.insert(0, {"ask": "bot.example.com/**", "with": {"placeholder": {"secret": "bot", "in": "path"}}})
    s.rules.insert(0, {"ask": "cluster.example.com/**", "kubernetes": {"verbs": "create", "resources": "pods/exec"}, "with": {"bearer": "github"}})
    s.d.secret("bot", "4711:a-token-of-a-bot")
    s.env["BOT"] = "{{placeholder bot}}"


class Held:
    """Requests in threads of their own, and the API's view of them."""

    def __init__(self, s, gate):
        self.s, self.gate, self.api = s, gate, api.Api(s.d.socket)
        self.pool = concurrent.futures.ThreadPoolExecutor(24)

    def send(self, host, path, method="GET", body=b"", headers=""):
        return self.pool.submit(self.gate.get, host, path, headers, method, 443, body)

    def list(self):
        return self.api.ask("GET", "/v1/approvals")["approvals"]

    def wait(self, n=1):
        return tap.wait_for(lambda: (lambda l: l if len(l) == n else None)(self.list()), 8,
                            0.05) or self.list()

    def close(self):
        self.pool.shutdown(wait=False)
        self.api.close()


def decided(t, s, h):
    before = len(s.github.requests)
    r = h.send("api.github.com", ISSUE % 7, "POST", b'{"title":"may I?"}',
               "Content-Type: application/json\r\n")
    (one,) = h.wait()
    t.eq((one["method"], one["url"], one["upload_bytes"], one["content_type"], one["credential"]),
         ("POST", "https://api.github.com" + ISSUE % 7, 18, "application/json", "github"),
         "a held request is listed with what it is")
    t.has(one["rule"], "ask api.github.com/repos/acme/held-*/issues", "and by which rule")
    t.eq((one["policy"], bool(re.fullmatch("ap-[a-z2-7]{8}", one["id"]))), ("coder", True),
         "with its policy and an id")
    listed = s.d.command("approve", "ls", "--socket", s.d.socket)
    t.ok(one["id"] in listed.stdout and "POST" in listed.stdout, "approve ls shows it",
         listed.stdout, listed.stderr)
    t.eq((r.done(), len(s.github.requests), s.d.kinds("admitted")), (False, before, []),
         "it waits; the origin has heard nothing and nothing is admitted")
    a = s.d.command("approve", "allow", "--socket", s.d.socket, one["id"])
    t.eq((a.returncode, r.result(10).status), (0, 404), "approve allow lets it go")
    (record,) = s.d.wait_records(1, "admitted", path=ISSUE % 7)
    t.eq(record.get("detail"), "approved by uid %d (API)" % os.getuid(),
         "its record says who has approved")
    t.eq((record["credential"], record["rule"]), ("github", one["rule"]), "and what for")
    again = s.d.command("approve", "allow", "--socket", s.d.socket, one["id"])
    t.ok(again.returncode == 1 and "nothing of that id" in again.stderr, "an answer counts once",
         again.stderr)

    r = h.send("api.github.com", ISSUE % 8, "POST", b'{"title":"x"}')
    (one,) = h.wait()
    a = s.d.command("approve", "deny", "--socket", s.d.socket, one["id"])
    r = r.result(10)
    t.eq((a.returncode, r.status, r.code), (0, 403, "approval_denied"), "approve deny refuses it")
    (record,) = s.d.wait_records(1, "denied", code="approval_denied")
    t.eq((record.get("detail"), record["id"]), ("denied by uid %d (API)" % os.getuid(), r.id),
         "recorded with who it was, under the id of the answer")
    t.eq(len(s.github.requests), before + 1, "the origin saw the approved one alone")


def plain(t, s, h):
    """A rule without a credential, by the API."""
    before = len(s.plain.requests)
    r = h.send(scene.PLAIN, "/ask/upload?token=abc", "POST", b"x" * 100000)
    (one,) = h.wait()
    t.eq((one["upload_bytes"], one["query"], one["credential"]), (100000, "token=<3>", ""),
         "a request without a credential is held too; its query is shown by names and lengths")
    t.eq(h.api.ask("GET", "/v1/approvals/" + one["id"])["url"], one["url"], "one can be asked for")
    h.api.ask("POST", "/v1/approvals/%s/allow" % one["id"])
    r = r.result(10)
    t.eq((r.status, len(s.plain.requests)), (200, before + 1), "and goes when it is allowed")
    t.eq(s.plain.requests[-1].body, b"x" * 100000, "with the whole of its body")
    r = h.send("only.example.com", "/")
    (one,) = h.wait()
    h.api.ask("POST", "/v1/approvals/%s/allow" % one["id"])
    t.eq(r.result(10).status, 200, "a host that only an ask rule names is reached")
    t.eq(h.gate.get(scene.PLAIN, "/free").status, 200, "what only an allow matches is not held")


def commands(t, s, h):
    """Of a cluster: what is to run is shown, cut where it is long."""
    at = "/api/v1/namespaces/team-a/pods/web-1/exec?stdout=true"
    for words, shown in ((["rm", "-rf", "/srv"], "rm -rf /srv"), (["echo", "x" * 600], "echo xxx")):
        r = h.send("cluster.example.com", at + "".join("&command=" + w for w in words), "POST")
        (one,) = h.wait()
        t.has(one["rule"], ": create pods/exec team-a/web-1: " + shown, "a command that is to run is shown")
        t.eq(one["rule"].endswith(" [...]"), len(words[1]) > 100, "and said to be cut where it is")
        h.api.ask("POST", "/v1/approvals/%s/deny" % one["id"])
        t.eq(r.result(10).status, 403, "denied")


def polling(t, s, h):
    """The long poll."""
    after = h.api.ask("GET", "/v1/approvals")["next"]
    other = api.Api(s.d.socket)
    begun = time.monotonic()
    t.eq(other.ask("GET", "/v1/approvals?after=%d&wait=1" % after)["approvals"], [],
         "a poll ends with its time")
    t.ok(time.monotonic() - begun >= 0.9, "not before")
    poll = h.pool.submit(other.ask, "GET", "/v1/approvals?after=%d&wait=20" % after)
    r = h.send(scene.PLAIN, "/ask/1")
    got = poll.result(10)
    t.eq([x["url"] for x in got["approvals"]], ["https://deps.example.com/ask/1"],
         "and at once when there is a new one")
    t.eq(other.ask("GET", "/v1/approvals?after=%d&wait=0" % got["next"])["approvals"], [],
         "which is not shown twice")
    h.api.ask("POST", "/v1/approvals/%s/deny" % got["approvals"][0]["id"])
    t.eq(r.result(10).code, "approval_denied", "denied")
    events = [e["event"] for e in h.api.ask("GET", "/v1/events?limit=1000")["events"]]
    t.ok("approval_wanted" in events and "approval_denied" in events, "events tell of it",
         str(events))
    kept = s.d.wait_records(1, "lifecycle", event="approval_denied")
    t.ok(kept and kept[-1]["authority"] == "deps.example.com" and kept[-1]["method"] == "GET" and
         "/ask/1" not in json.dumps(kept), "and so does the log, without the path", str(kept))
    other.close()


def bad(t, s, h):
    for method, path, want in (("GET", "/v1/approvals/ap-nothere", (404, "not_found")),
                               ("POST", "/v1/approvals/ap-nothere/allow", (404, "not_found")),
                               ("POST", "/v1/approvals/ap-nothere/deny", (404, "not_found")),
                               ("GET", "/v1/approvals?wait=61", (400, "bad_request")),
                               ("GET", "/v1/approvals?after=-1", (400, "bad_request")),
                               ("GET", "/v1/approvals?x=1", (400, "bad_request")),
                               ("POST", "/v1/approvals", (405, "method"))):
        try:
            got = h.api.ask(method, path)
        except api.Refused as e:
            got = (e.status, e.code)
        t.eq(got, want, "%s %s" % (method, path))


def leaving(t, s, h):
    """The client goes: nothing is left to decide."""
    st = h.gate.tls("api.github.com")
    st.send("POST %s HTTP/1.1\r\nHost: api.github.com\r\nContent-Length: 2\r\n\r\n{}" % (ISSUE % 9))
    h.wait()
    st.close()
    t.eq(h.wait(0), [], "a client that leaves takes its request along")
    (record,) = s.d.wait_records(1, "denied", path=ISSUE % 9)
    t.eq(record["code"], "client_gone", "and its record says so")


def bounds(t, s, h):
    """limits: approvals 3, approval_seconds 2."""
    rs = [h.send(scene.PLAIN, "/ask/%d" % i) for i in range(5)]
    full = tap.wait_for(lambda: [r for r in rs if r.done()] if sum(
        r.done() for r in rs) == 2 else None, 5, 0.02) or []
    t.eq([(r.result().status, r.result().code) for r in full], [(503, "approval_full")] * 2,
         "more than are held at a time are refused")
    left = [r.result(10) for r in rs if r not in full]
    t.eq([(r.status, r.code) for r in left], [(403, "approval_timeout")] * 3,
         "what nobody decides is denied when its time is over")
    t.eq(h.list(), [], "and is not listed any more")
    t.eq(len(s.d.wait_records(3, "denied", code="approval_timeout")), 3, "and recorded")


def reloaded(t, s, h):
    """What was asked about is decided by the policy of the moment of the answer."""
    before = len(s.plain.requests)
    r = h.send(scene.PLAIN, "/ask/late")
    (one,) = h.wait()
    s.rules.insert(0, {"deny": scene.PLAIN + "/ask/late"})
    s.d.save()
    t.eq(s.d.command("reload", "--socket", s.d.socket).returncode, 0, "reload")
    h.api.ask("POST", "/v1/approvals/%s/allow" % one["id"])
    r = r.result(10)
    t.eq((r.status, r.code, len(s.plain.requests)), (403, "policy_changed", before),
         "an answer does not outlive the rule that asked")


def new_controller(t, s, h):
    r = h.send(scene.PLAIN, "/ask/survivor")
    (one,) = h.wait()
    (pid,) = [x["pid"] for x in h.api.ask("GET", "/v1/status")["roles"]
              if x["role"] == "controller"]
    os.kill(pid, signal.SIGKILL)

    def back():
        try:
            return h.list()
        except (OSError, api.Refused):
            return None
    again = tap.wait_for(back, 10, 0.1) or []
    t.eq([x["url"] for x in again], [one["url"]], "a new controller hears of what is held")
    t.ok(again and again[0]["id"] != one["id"], "under another id")
    if again:
        h.api.ask("POST", "/v1/approvals/%s/allow" % again[0]["id"])
        t.eq(r.result(10).status, 200, "and can let it go")


def terminal(t, s):
    d = s.d

    def start(*flags):
        words = [durward.program(), "run", "-c", d.conf] + list(flags) + ["--", "/bin/sh", "-i"]
        return Terminal(t, words, d.work, dict(d.env, TERM="xterm"))
    d.save()
    c = start("--ask", "-e", "PS1=here> ")
    t.ok(c.see("here> "), "run --ask: a shell", c.out)
    before = len(s.github.requests)
    c.type("curl -s -o /dev/null -w 'code %%{http_code}\\n' -d '{\"title\":\"x\"}' "
           "https://api.github.com%s; echo do''ne\n" % (ISSUE % 20))
    t.ok(c.see("the sandbox wants to send"), "the terminal shows what is held", c.out)
    t.ok(c.see("https://api.github.com" + ISSUE % 20) and c.see("allow it? [y/s/r/N]"),
         "with its URL and a question", c.out)
    t.eq(len(s.github.requests), before, "nothing has left yet")
    c.type("y\n")
    t.ok(c.see("allowed") and c.see("code 404") and c.see("done"), "y lets it go", c.out)
    send = ("curl -s -o /dev/null -w 'code %%{http_code}\\n' -d '{\"title\":\"x\"}' https://api.github.com%s; echo do''ne\n")
    c.type(send % (ISSUE % 30))
    t.ok(c.see("allow it? [y/s/r/N]"), "the next is asked about again", c.out)
    c.type("r\n")
    t.ok(c.see('- allow: "api.github.com%s"' % (ISSUE % 30)) and c.see("methods: [POST]") and c.see("with: ...")
         and c.see("code 404"), "r lets it go and shows the rule that would", c.out)
    c.type(send % (ISSUE % 30))
    t.ok(c.see("allow it? [y/s/r/N]"), "which is not in force", c.out)
    c.type("s\n")
    t.ok(c.see("allowed for this sandbox") and c.see("done"), "s lets it go for this sandbox", c.out)
    c.type(send % (ISSUE % 30))
    t.ok(c.see("done"), "the same is not asked about again", c.out)
    t.ok(b"allow it?" not in c.last and b"code 404" in c.last, "and goes", c.last)
    c.type("curl -s -o /dev/null -w 'code %%{http_code}\\n' -d '{\"title\":\"x\"}' "
           "https://api.github.com%s\n" % (ISSUE % 21))
    t.ok(c.see("allow it? [y/s/r/N]"), "the next one is a new question", c.out)
    before = len(s.github.requests)
    c.type("yy\n")
    t.ok(c.see("allow it? [y/s/r/N]") and len(s.github.requests) == before, "what is no answer is asked again, and allows nothing", c.out)
    c.type("\n")
    t.ok(c.see("denied") and c.see("code 403"), "and an empty line is a no", c.out)
    send = "curl -s -o /dev/null -w 'code %%{http_code}\\n' https://%s; echo do''ne\n"
    for place, shown, other in (("bot.example.com/bot$BOT/sendMessage", "bot.example.com/bot[placeholder]/sendMessage", "bot.example.com/bot$BOT/close"),
                                ("only.example.com/x?a=1", "only.example.com/x", "'only.example.com/x?a=1&force=1'")):
        c.type(send % place)
        t.ok(c.see("https://" + shown + "\r\n") and c.see("allow it? [y/s/r/N]"), "of a path all but its placeholder is shown", c.out)
        c.type("s\n")
        t.ok(c.see("allowed for this sandbox") and c.see("code 200") and c.see("done"), "which is allowed for this sandbox", c.out)
        c.type(send % place)
        t.ok(c.see("code 200") and c.see("done") and b"allow it?" not in c.last, "and not asked about again", c.last)
        c.type(send % other)
        t.ok(c.see("allow it? [y/s/r/N]"), "another path, and another query, are", c.out)
        c.type("\n")
        t.ok(c.see("denied") and c.see("code 403") and c.see("done"), "and denied", c.out)
    long = "'only.example.com/x?" + 64 * "a" + "%d=1'"
    c.type(send % (long % 1))
    t.ok(c.see("a[...]=<1>") and c.see("allow it? [y/s/r/N]"), "a long name in a query is cut, with a mark", c.out)
    c.type("s\n")
    t.ok(c.see("code 200") and c.see("done"), "it is allowed this once", c.out)
    c.type(send % (long % 2))
    t.ok(c.see("allow it? [y/s/r/N]"), "and another that begins so is asked about", c.out)
    c.type("\n")
    t.ok(c.see("denied") and c.see("code 403") and c.see("done"), "and denied again", c.out)
    d.settle()
    t.ok([r for r in d.kinds("admitted") if r.get("path") == "/bot[placeholder]/sendMessage"] and
         [r for r in d.kinds("denied") if r.get("path") == "/bot[placeholder]/close"], "the log has the path, without the placeholder")
    c.type("(sleep 1; echo on''top) & curl -s -m 8 -o /dev/null -w 'code %%{http_code}\\n' "
           "-d '{\"title\":\"x\"}' https://api.github.com%s\n" % (ISSUE % 22))
    t.ok(c.see("allow it? [y/s/r/N]"), "a third one", c.out)
    t.ok(not c.see("ontop", 1.5), "meanwhile nothing of the sandbox gets onto the terminal", c.out)
    t.ok(c.see("its time is up, or its client has left", 12), "a client that gives up is told", c.out)
    t.ok(c.see("ontop"), "then its output goes on", c.out)
    c.type("stty -a | grep -o ' icanon'; exit 4\n")
    t.eq(c.wait(), 4, "and the exit status is the command's")
    records = [r for r in d.kinds("admitted") if r.get("path") == ISSUE % 20]
    t.eq([r.get("detail") for r in records], ["approved by uid %d (terminal)" % os.getuid()],
         "the record says who it was")
    c = start("-e", "PS1=here> ")
    c.see("here> ")
    c.type("curl -s -i -d '{\"title\":\"x\"}' https://api.github.com%s | grep -i durward-denied\n" %
           (ISSUE % 23))
    t.ok(c.see("approval_denied"), "without --ask it is denied at once", c.out)
    c.type("exit\n")
    t.ok(c.see("run --ask asks you"), "and the line at the end says what would have asked", c.out)
    c.wait()
    r = d.run(["true"], flags=["--ask"], start_new_session=True)
    t.ok(r.returncode == 125 and "needs a terminal" in r.stderr, "--ask needs a terminal", r.stderr)


def main(t):
    s = scene.Scene(t)
    rules(s)
    s.only = s.add("only.example.com", shapes.echo)
    s.add("bot.example.com", shapes.echo)
    s.add("cluster.example.com", shapes.echo)
    address = s.listener()
    s.d.serve()
    h = Held(s, s.gate(address, timeout=20))
    for part in (decided, plain, commands, polling, bad, leaving, new_controller, reloaded):
        t.part(part, t, s, h)
    h.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")
    s.d.limits = {"approvals": 3, "approval_seconds": 2}
    s.d.serve()
    h = Held(s, s.gate(address, timeout=20))
    t.part(bounds, t, s, h)
    h.close()
    s.judge([(s.github, s.github_credential), (s.plain, None), (s.only, None)], (), "ask")
    t.eq(s.d.stop(), 0, "and ends")
    s.d.limits = {}
    t.part(terminal, t, s)


tap.run(main)
