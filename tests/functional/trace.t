#!/usr/bin/python3 -B
"""`durward trace` and `log_level`: the steps of a sandbox's requests through gate, injector, vault and
dialer, bounded in time, of no other sandbox, and with nothing in them that a credential, a path, a
query, a header's value or a body holds."""
import json
import os
import re
import select
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scan, scene, tap  # noqa: E402

ASK = ("curl -sS -o /dev/null -w '%%{http_code}' -H 'X-Of-Mine: %(header)s' -H 'Content-Type: application/json' "
       "-d '{\"a\":\"%(body)s\"}' "
       "'https://%(host)s/%(path)s?%(query)s=%(query)s'")
SHUT = "shut.example.com"  # nobody listens there, so that each request asks the dialer anew
CANARIES = ("header", "body", "path", "query")


class Bed:
    def __init__(self, t, **config):
        self.t, self.s = t, scene.Scene(t, name="level" if config else "d")
        self.words = {name: scan.canary(b"%s-" % name.encode()).decode() for name in CANARIES}
        for name, word in self.words.items():
            self.s.scanner.add(name, word.encode())
        self.s.rule(ask="only.example.com")
        self.s.add("only.example.com")
        self.s.rule(allow=SHUT)
        self.s.d.resolve[SHUT] = "127.0.0.1:1"
        self.s.d.extra.update(config)
        self.s.d.serve()
        self.api = api.Api(self.s.d.socket)
        t.cleanup(self.api.close)
        self.box = self.api.create(policy="coder")["id"]
        self.other = self.api.create(policy="coder")["id"]

    def asks(self, host, box=None, status=None):
        code, out = self.api.sh(box or self.box, ASK % dict(self.words, host=host))
        return out.decode()

    def trace(self, seconds="20s", box=None):
        p = self.t.popen([durward.program(), "trace", "--json", "-t", seconds, "--socket", self.s.d.socket,
                          box or self.box], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return p


class Lines:
    def __init__(self, p):
        self.p, self.text = p, ""

    def all(self):
        while select.select([self.p.stdout], [], [], 0)[0]:
            more = os.read(self.p.stdout.fileno(), 1 << 16)
            if not more:
                break
            self.text += more.decode()
        return [json.loads(x) for x in self.text.splitlines(True) if x.endswith("\n")]

    def wait(self, want, seconds=8):
        return tap.wait_for(lambda: (lambda got: got if want(got) else None)(self.all()), seconds, 0.05)


def began(t, bed, lines):
    """It is on, in the dialer too, which hears of it in its own time: a request that nobody counts is seen, to its end."""
    def ended():
        last = lines.all()[-1:]
        return last and last[0]["role"] == "gate" and last[0]["step"] in ("done", "refused", "failed")

    def seen():
        bed.asks(SHUT)
        return tap.wait_for(ended, 2, 0.05) and any(x["role"] == "dialer" for x in lines.all())
    t.ok(tap.wait_for(seen, 8, 0.1), "the trace is on", bed.s.d.diagnostics())


def traced(t, bed):
    p = bed.trace()
    lines = Lines(p)
    began(t, bed, lines)
    first = len(lines.all())
    t.eq(bed.asks("api.openai.com/v1"), "404", "a request with a credential goes through")
    all_roles = {"gate", "injector", "vault", "dialer"}  # each tells in its own time
    got = lines.wait(lambda g: any(x["step"] == "done" and x["role"] == "gate" for x in g[first:]) and
                     {x["role"] for x in g[first:]} >= all_roles) or lines.all()
    t.ok(any(x["step"] == "done" for x in got[first:]), "its end is told", lines.text)
    mine = [x for x in got[first:]]
    t.eq(len({x["request"] for x in mine}), 1, "all roles name it by one number")
    roles = {x["role"] for x in mine}
    t.eq(roles, all_roles, "its way leads through four roles")
    steps = [(x["role"], x["step"]) for x in mine]
    for want in (("gate", "request"), ("gate", "decided"), ("gate", "sent on"), ("injector", "decided"),
                 ("injector", "secret asked"), ("vault", "answered"), ("injector", "secret"),
                 ("injector", "origin: TLS"), ("dialer", "connecting"), ("gate", "reply")):
        t.ok(want in steps, "%s: %s" % want, steps)
    for role in roles:
        us = [x["us"] for x in mine if x["role"] == role]
        t.ok(us == sorted(us) and us[-1] < 20e6, "the %s's times go up" % role, us)
    asked = min(x["us"] for x in mine if x["role"] == "injector")
    t.ok(asked >= min(x["us"] for x in mine if x["role"] == "gate"), "and are of one clock", mine)
    t.ok("openai" in " ".join(x["text"] for x in mine), "the secret is named", mine)

    before = len(lines.all())
    t.eq(bed.asks("api.openai.com/v1", bed.other), "404", "another sandbox asks meanwhile")
    bed.asks("api.github.com/gists")
    lines.wait(lambda g: any(x["step"] == "refused" for x in g[before:]))
    t.eq(len({x["request"] for x in lines.all()[before:]}), 1, "and is not in this trace")

    again = bed.trace()
    t.ok(again.wait(10) == 1 and "traced already" in again.stderr.read().decode(), "a sandbox has one trace at a time")
    p.terminate()
    p.wait(5)
    return lines.text


def held(t, bed):
    p = bed.trace()
    lines = Lines(p)
    began(t, bed, lines)
    first = len(lines.all())
    bed.api.sh(bed.box, "(" + ASK % dict(bed.words, host="only.example.com") + ") >/dev/null 2>&1 &")
    (one,) = tap.wait_for(lambda: bed.api.ask("GET", "/v1/approvals")["approvals"], 8, 0.05)
    bed.api.ask("POST", "/v1/approvals/%s/deny" % one["id"])
    got = lines.wait(lambda g: any(x["step"] == "done" for x in g[first:])) or []
    steps = [(x["role"], x["step"], x["text"]) for x in got[first:] if x["role"] == "injector"]
    t.ok(any(x[1] == "approval asked" for x in steps) and ("injector", "approval", "denied") in steps,
         "an approval is asked for, and answered", lines.text)
    p.terminate()
    p.wait(5)
    return lines.text


def ends(t, bed):
    p = bed.trace("1s")
    t.eq(p.wait(10), 0, "a trace ends when its time is over")
    other = Lines(bed.trace("20s"))
    began(t, bed, other)
    other.p.kill()
    other.p.wait(5)
    last = Lines(bed.trace("20s", bed.other))  # the one that was killed does not stand in the way of others
    t.ok(tap.wait_for(lambda: (bed.asks("api.github.com/gists", bed.other), last.all())[1], 8, 0.1),
         "one whose reader was killed is over", bed.s.d.diagnostics())
    last.p.terminate()
    last.p.wait(5)
    r = bed.s.d.command("trace", "--socket", bed.s.d.socket, "sb-nothing")
    t.ok(r.returncode == 1 and "there is no sandbox" in r.stderr, "a sandbox that is not there", r.stderr)
    r = bed.s.d.command("trace", "-t", "1s", "--socket", bed.s.d.socket, bed.box)
    t.ok(r.returncode == 0, "in words, too", r.stderr)


def level(t):
    bed = Bed(t, log_level={"gate": "debug", "injector": "debug", "vault": "debug", "dialer": "debug"})
    t.eq(bed.asks("api.openai.com/v1"), "404", "log_level: debug changes no answer")

    def said():
        with open(bed.s.d.log) as f:
            text = f.read()
        return text if all(re.search(r"durward: %s: request \d+ \+\d+ us: " % r, text)
                           for r in ("gate", "injector", "dialer", "vault")) else None
    text = tap.wait_for(said, 8, 0.05)
    t.ok(text, "each role says its steps in the daemon's log", bed.s.d.diagnostics())
    bed.s.scanner.search(text or "", "the daemon's log")
    t.eq(bed.s.scanner.hits, [], "the log holds no secret, nor anything of the request's own")


def main(t):
    bed = Bed(t)
    text = t.part(traced, t, bed) or ""
    text += t.part(held, t, bed) or ""
    t.part(ends, t, bed)
    bed.s.scanner.search(text, "the traces")
    t.ok(len(text) > 2000 and not bed.s.scanner.hits, "%d bytes of traces hold 0 secrets" % len(text),
         bed.s.scanner.hits)
    with open(bed.s.d.log) as f:
        t.ok("+" not in "".join(re.findall("request .*us:", f.read())), "nothing of it is in the daemon's log")
    t.part(level, t)


tap.run(main)
