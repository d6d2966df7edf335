#!/usr/bin/python3 -B
"""What a program in a sandbox asks its operator for: `POST http://durward.internal/proposals`, and
`durward proposals`. Nothing is allowed before the operator wrote it into the policy; its words are
shown as its own, harmless; it can neither flood the list nor be heard where the policy says no."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scan, scene, tap  # noqa: E402

WHERE = "http://durward.internal/proposals"
EACH = 16
PACE = 1.05  # one a second of each owner
SOON = "Too many proposals wait for an answer already, or this one came within a second of another."
ALLOWED = "The policy allows that as it is, perhaps under conditions."
WORDS = "I need \x1b[31mthe\x1b[0m issues \u202egpj.exe \"quoted\" </script><b>bold</b>"


class Box:
    """A sandbox of the daemon, and what its programs say to the guide."""

    def __init__(self, a, policy="coder", name="requester"):
        self.api, self.id, self.last = a, a.create(policy=policy, name=name)["id"], 0.0

    def sh(self, script):
        return self.api.sh(self.id, script)[1].decode("utf-8", "replace")

    def propose(self, body, more="", wait=True):
        """-> (status, answer)"""
        if wait:
            time.sleep(max(0.0, self.last + PACE - time.monotonic()))
        text = body if isinstance(body, str) else json.dumps(body)
        out = self.sh("printf %%s %s | base64 -d >/tmp/body; "
                      "curl -sS -m 10 -H 'Accept: application/json' --data-binary @/tmp/body %s "
                      "-w '\\n%%{http_code}' %s" % (base64.b64encode(text.encode()).decode(), more, WHERE))
        text, _, status = out.rstrip().rpartition("\n")
        self.last = time.monotonic()
        try:
            return int(status), json.loads(text)
        except ValueError:
            return status, text

    def get(self, url):
        return self.sh("curl -sS -m 10 -o /dev/null -w '%%{http_code}' '%s'" % url).strip()


def asked(t, s, box):
    status, v = box.propose({"host": scene.GITHUB, "path": "/zen", "reason": WORDS})
    t.eq(status, 202, "a proposal is taken") or t.diag(str(v))
    pid = v.get("id", "")
    t.ok(pid.startswith("pr-") and "Nothing more is allowed" in v.get("about", ""), "it has an id, and says that nothing is allowed yet", str(v))
    t.eq(box.get("https://%s/zen" % scene.GITHUB), "403", "and so it is")
    t.eq(box.propose({"host": scene.GITHUB, "path": "/zen"}), (202, {"about": "The same was asked for before and waits for an answer.", "id": pid}), "the same once more is the same one")
    one = s.d.wait_records(1, "lifecycle", event="proposal_made")[0]
    t.eq((one.get("target"), one.get("authority"), one.get("path"), one.get("method"), one.get("policy")),
         (box.id, scene.GITHUB, "/zen", "GET", "coder"), "it is on record, with who asked for what") or t.diag(str(one))
    t.ok("in the sandbox's own words: I need ?" in one.get("detail", ""), "and its words are said to be its own", str(one))
    return pid


def refused(t, s, box, word):
    for what, body, why in (
            ("no JSON", "host=x", "not JSON"), ("a list", "[1]", "nothing else"),
            ("no host", {"path": "/"}, "host"), ("a host of no form", {"host": "a b"}, "host"),
            ("a host with a path", {"host": "a.example/x"}, "host"),
            ("a method that is none", {"host": "a.example", "method": "GE T"}, "method"),
            ("CONNECT", {"host": "a.example", "method": "CONNECT"}, "method"),
            ("a scheme", {"host": "a.example", "scheme": "ftp"}, "scheme"),
            ("a path without its slash", {"host": "a.example", "path": "x"}, "path"),
            ("a query", {"host": "a.example", "path": "/x?y=1"}, "path"),
            ("a quote in the path", {"host": "a.example", "path": "/\""}, "path"),
            ("a line's end in the path", {"host": "a.example", "path": "/x\n- allow: b"}, "path"),
            ("a path of 513 bytes", {"host": "a.example", "path": "/" + "x" * 512}, "path"),
            ("another member", {"host": "a.example", "with": {"bearer": "github"}}, "nothing else"),
            ("a member twice", '{"host":"a.example","host":"b.example"}', "not JSON"),
            ("a placeholder in its words", {"host": "a.example", "reason": word}, "placeholder")):
        status, v = box.propose(body, wait=False)
        t.ok(status == 400 and why in v.get("why", ""), "%s: 400" % what, str(status), str(v))
    status, v = box.propose({"host": "a.example", "path": "/a/../b"})
    t.eq((status, v.get("about")), (400, "That cannot be written as a rule."), "a path that no rule can have: 400")
    status, v = box.propose({"host": "a.example", "reason": "x" * 5000})
    t.eq(status, 413, "more than 4096 bytes: 413") or t.diag(str(v))
    status, v = box.propose({"host": scene.GITHUB, "path": "/user"})
    t.eq((status, v.get("about")), (200, ALLOWED), "what is allowed need not be asked for")
    t.eq(box.propose({"host": "a.example"}, "-X PUT")[0], 403, "another method is no proposal")


def told(t, s, a, pid):
    r = s.d.command("proposals", "ls", "--socket", s.d.socket)
    t.ok(pid in r.stdout and "GET %s/zen" % scene.GITHUB in r.stdout, "durward proposals ls lists it", r.stdout, r.stderr)
    t.ok("\x1b" not in r.stdout and "\u202e" not in r.stdout, "nothing of its words drives a terminal", repr(r.stdout))
    r = s.d.command("proposals", "show", pid[:8], "--socket", s.d.socket)
    for part in ("it says", "I need ?[31mthe", '+- allow: "%s/zen"' % scene.GITHUB, "+  methods: [GET]", "today      deny", "with it    allow"):
        t.ok(part in r.stdout, "show has: " + part, r.stdout, r.stderr)
    v = a.ask("GET", "/v1/proposals/" + pid)
    t.eq((v["made_by"], v["rule"], v["before"], v["after"]),
         ("sandbox", {"allow": scene.GITHUB + "/zen", "methods": ["GET"]}, "deny", "allow"), "the API has the rule and what it would change")


def accepted(t, s, a, box, pid):
    r = s.d.command("proposals", "accept", pid, "--socket", s.d.socket)
    t.ok('- allow: "%s/zen"' % scene.GITHUB in r.stdout, "accept prints the rule", r.stdout, r.stderr)
    t.eq(box.get("https://%s/zen" % scene.GITHUB), "403", "and changes nothing by itself")
    before = open(s.d.conf, encoding="utf-8").read()
    mode = os.stat(s.d.conf).st_mode
    r = s.d.command("proposals", "accept", "--write", "-c", s.d.conf, pid, "--socket", s.d.socket)
    t.ok(r.returncode == 0 and "the daemon has read it" in r.stdout, "with --write it goes into the policy", r.stdout, r.stderr)
    after = open(s.d.conf, encoding="utf-8").read()
    t.ok(len(after) > len(before) and os.stat(s.d.conf).st_mode == mode, "the file has it, and its mode", after)
    t.eq(box.get("https://%s/zen" % scene.GITHUB), "401", "now it is carried, without a credential")
    t.eq(s.plain is not None and [x for x in s.github.requests if x.path == "/zen"] != [], True, "and reaches its origin")
    status, v = box.propose({"host": scene.GITHUB, "path": "/zen"})
    t.eq((status, v.get("about")), (200, ALLOWED), "and need not be asked for")
    t.eq(s.d.wait_records(1, "lifecycle", event="proposal_accepted")[0]["detail"].split(" by ")[0], pid, "who accepted it is on record")
    r = s.d.command("proposals", "reject", pid, "--socket", s.d.socket)
    t.ok(r.returncode == 1 and "decided otherwise" in r.stderr, "it cannot be rejected any more", r.stdout, r.stderr)
    r = s.d.command("proposals", "accept", "--write", "-c", "/dev/null", pid, "--socket", s.d.socket)
    t.eq(r.returncode, 1, "nothing is written to what is no configuration")


def rejected(t, s, box):
    _, v = box.propose({"host": "evil.example", "path": "/**", "method": "POST", "reason": "please"})
    r = s.d.command("proposals", "reject", v["id"], "--socket", s.d.socket)
    t.eq((r.returncode, r.stdout), (0, v["id"] + ": rejected\n"), "reject")
    t.eq(box.propose({"host": "evil.example", "path": "/**", "method": "POST"})[0], 403, "whoever asks again is told so")


def bounded(t, s, a, box, other):
    ends = [box.propose({"host": "h%d.example" % i})[0] for i in range(EACH + 4)]
    t.eq((ends[:EACH], ends[EACH:]), ([202] * EACH, [429] * 4), "a sandbox has %d that wait" % EACH)
    t.eq(other.propose({"host": "h0.example"})[0], 202, "its neighbour has its own")
    status, v = other.propose({"host": "h1.example"}, wait=False)
    t.eq((status, v.get("about")), (429, SOON), "and makes one a second: a policy is compiled for each")
    t.eq(other.propose({"host": "h0.example"}, wait=False)[0], 202, "what is known costs nothing, and is answered")
    t.eq(other.propose({"host": "h1.example"})[0], 202, "a second later there is time for it")
    a.ask("DELETE", "/v1/sandboxes/" + other.id)
    gone = s.d.wait_records(2, "lifecycle", event="proposal_dropped", target=other.id)
    t.eq({x.get("authority") for x in gone}, {"h0.example", "h1.example"}, "what a sandbox asked for ends with it, on record")
    t.eq([x for x in a.ask("GET", "/v1/proposals")["proposals"] if x["sandbox"] == other.id], [], "and waits no more")
    for one in a.ask("GET", "/v1/proposals")["proposals"]:
        if one["state"] == "open" and one["sandbox"] == box.id:
            a.ask("POST", "/v1/proposals/%s/reject" % one["id"])
    t.eq(box.propose({"host": "h99.example"})[0], 202, "when they are decided there is room")


def by_operator(t, s, a):
    v = a.ask("POST", "/v1/proposals", {"policy": "coder", "method": "POST", "url": "https://new.example/x/*", "reason": "of a record"})
    t.ok(v["made_by"].startswith("uid ") and v["diff"].count("\n") == 4, "an operator proposes, of a record", str(v))
    for body in ({"method": "GET", "url": "https://a.example/", "policy": "none"}, {"method": "GET"}, {"method": "BAD", "url": "https://a.example/"},
                 {"method": "GET", "url": "https://a.example/", "extra": 1}):
        try:
            a.ask("POST", "/v1/proposals", body)
            t.ok(False, "%s is refused" % body)
        except api.Refused as e:
            t.eq(e.status, 400, "%s is refused" % body)


def ask_paced(a, body):
    time.sleep(PACE)
    return a.ask("POST", "/v1/proposals", body)


def lifts(t, s, a):
    """No proposal goes before a rule with conditions and so lifts them; what it stands beside is shown."""
    at = "https://" + scene.GITHUB
    source = os.environ.get("srcdir") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(source, "console", "actions.js"), encoding="utf-8") as f:
        offered = re.findall(r'"(\w+)"', re.search(r"\[([^\]]*)\]\.includes\(row\.rec\.code\)", f.read()).group(1))
    for code, path in (("header", "/narrow/a"), ("query", "/asked/a")):
        got = api.refused(a.ask, "POST", "/v1/proposals", {"policy": "guarded", "method": "GET", "url": at + path})
        t.ok(got == (409, "conflict") and code not in offered, "%s: no proposal, and the console offers none" % code, str(got), str(offered))
    for path in ("/narrow/*", "/narrow/**", "/narrow/*/x", "/asked/*", "/counted/*", "/with/*"):
        time.sleep(PACE)
        got = api.refused(a.ask, "POST", "/v1/proposals", {"policy": "guarded", "method": "GET", "url": at + path})
        t.eq(got, (409, "conflict"), "would lift a rule's conditions: " + path)
    v = ask_paced(a, {"policy": "guarded", "method": "GET", "url": at + "/**"})
    over = {x["rule"] for x in v.get("overlaps", [])}
    t.ok("lifts" not in v and len(over) == 6 and any(x.startswith("deny") for x in over), "a wider one lifts nothing; what it overlaps is told", str(v))
    v = ask_paced(a, {"policy": "guarded", "method": "GET", "url": at + "/plain/*"})
    r = s.d.command("proposals", "show", v["id"], "--socket", s.d.socket)
    t.ok(re.search(r"^decides +allow %s/plain/\*\* \(" % re.escape(scene.GITHUB), r.stdout, re.M) and
         re.search(r"^overlaps +deny %s/plain/no \(" % re.escape(scene.GITHUB), r.stdout, re.M), "show tells which rule decides today, and what overlaps", r.stdout, r.stderr)


def yaml_forms(t, s, a):
    """The rule goes into a file as people write them, and nothing else of it changes."""
    pid = ask_paced(a, {"policy": "coder", "method": "POST", "url": "https://yaml.example/x/*"})["id"]
    before = ("# of ☃\nversion: 1\npolicies:\n  other: { rules: [] } # none\n  coder:\n    names: nxdomain\n")
    for what, old, new in (
            ("a list of blocks", "    rules: # what it may\n      # the user\n      - allow: api.github.com/user\n        access: read-only\n",
             "    rules: # what it may\n      - allow: \"yaml.example/x/*\"\n        methods: [POST]\n      # the user\n      - allow: api.github.com/user\n        access: read-only\n"),
            ("a list at its key's column", "    rules:\n    - allow: a.example\n", "    rules:\n    - allow: \"yaml.example/x/*\"\n      methods: [POST]\n    - allow: a.example\n"),
            ("an empty list", "    rules: [] # nothing\n    guide: none\n",
             "    rules: \n      - allow: \"yaml.example/x/*\"\n        methods: [POST] # nothing\n    guide: none\n"),
            ("a key without a value", "    rules: # nothing yet\n    guide: none\n",
             "    rules:\n      - allow: \"yaml.example/x/*\"\n        methods: [POST] # nothing yet\n    guide: none\n"),
            ("a key whose value is null", "    rules: ~\n    guide: none\n",
             "    rules: \n      - allow: \"yaml.example/x/*\"\n        methods: [POST]\n    guide: none\n"),
            ("a list in brackets", "    rules: [{ allow: a.example }]\n", "    rules: [{ allow: \"yaml.example/x/*\", methods: [POST] }, { allow: a.example }]\n")):
        path = os.path.join(s.d.dir, "forms.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(before + old)
        os.chmod(path, 0o640)
        r = s.d.command("proposals", "accept", "--write", "-c", path, pid, "--socket", s.d.socket)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        t.eq((r.returncode, text), (0, before + new), what) or t.diag(r.stdout + r.stderr)
        t.eq(os.stat(path).st_mode & 0o777, 0o640, "its mode stays")
    for what, old, new in (
            ("an empty list in braces", "version: 1\npolicies: { coder: { rules: [] } } # all\n",
             "version: 1\npolicies: { coder: { rules: [{ allow: \"yaml.example/x/*\", methods: [POST] }] } } # all\n"),
            ("no value in braces", "version: 1\npolicies:\n  coder: { names: nxdomain, rules: }\n",
             "version: 1\npolicies:\n  coder: { names: nxdomain, rules: [{ allow: \"yaml.example/x/*\", methods: [POST] }] }\n")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(old)
        r = s.d.command("proposals", "accept", "--write", "-c", path, pid, "--socket", s.d.socket)
        with open(path, encoding="utf-8") as f:
            t.eq((r.returncode, f.read()), (0, new), what) or t.diag(r.stdout + r.stderr)
    for what, text in (("a policy that is not there", "version: 1\npolicies: { other: { rules: [] } }\n"),
                       ("a rule that a deny rule is stronger than", "version: 1\npolicies:\n  coder:\n    rules:\n      - deny: yaml.example/**\n"),
                       ("one with a rule whose conditions it would lift",
                        "version: 1\npolicies:\n  coder:\n    rules:\n      - allow: yaml.example/**\n        headers: { x-team: red }\n"),
                       ("what is no configuration", "version: 1\npolicies:\n  coder:\n    rules:\n      - nonsense: 1\n")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        r = s.d.command("proposals", "accept", "--write", "-c", path, pid, "--socket", s.d.socket)
        with open(path, encoding="utf-8") as f:
            t.eq((r.returncode, f.read()), (1, text), "not into %s" % what) or t.diag(r.stdout + r.stderr)
    t.eq([x for x in os.listdir(s.d.dir) if x.startswith("forms.yaml.")], [], "nothing is left beside it")


def on_disk(t, s, a):
    """The file and its name are on disk before the command says that they are written."""
    if shutil.which("strace") is None:
        t.skip("the file is on disk before its name, and its name before it is said", "strace is not here")
        return
    path, trace = os.path.join(s.d.dir, "disk.yaml"), os.path.join(s.d.dir, "disk.trace")
    pid = ask_paced(a, {"policy": "coder", "method": "GET", "url": "https://disk.example/"})["id"]
    with open(path, "w", encoding="utf-8") as f:
        f.write("version: 1\npolicies:\n  coder:\n    rules: []\n")
    strace = ["strace", "-f", "-y", "-o", trace, "-e", "trace=write,fsync,fchmod,fchown,rename,renameat,renameat2"]
    r = subprocess.run(strace + [durward.program(), "proposals", "accept", "--write", "-c", path, pid, "--socket", s.d.socket],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False)
    with open(trace, encoding="utf-8", errors="replace") as f:
        calls = [m.group(1) + (" dir" if m.group(2) == os.path.realpath(s.d.dir) else "") for line in f
                 for m in [re.search(r"\b(write|fsync|fchmod|rename)\w*\((?:\d+<([^>]*)>)?", line)]
                 if m and (m.group(2) is None or m.group(2).startswith(os.path.realpath(s.d.dir)))]
    t.eq(calls[-5:], ["write", "fchmod", "fsync", "rename", "fsync dir"],
         "the file is on disk before its name, and its name before it is said") or t.diag(r.stdout.decode("utf-8", "replace"))


def main(t):
    s = scene.Scene(t)
    s.d.policies["guarded"] = {"rules": [
        {"allow": scene.GITHUB + "/narrow/**", "headers": {"x-team": "red"}},
        {"allow": scene.GITHUB + "/asked/**", "query": {"q": "1"}},
        {"allow": scene.GITHUB + "/counted/**", "budget": {"requests": "5/h"}},
        {"allow": scene.GITHUB + "/with/**", "methods": ["GET"], "with": {"bearer": "github"}},
        {"allow": scene.GITHUB + "/plain/**"}, {"deny": scene.GITHUB + "/plain/no"}]}
    s.d.policies["quiet"] = dict(s.d.policies["coder"], guide="none")
    s.d.serve()
    a = api.Api(s.d.socket)
    try:
        box = Box(a)
    except (api.Refused, OSError) as e:
        t.skip("proposals of a sandbox", "no sandbox can be made here: %s" % e)
        s.d.stop()
        return
    word = box.sh("printf %s \"$GITHUB_TOKEN\"").strip()
    pid = asked(t, s, box)
    t.part(refused, t, s, box, word)
    t.part(told, t, s, a, pid)
    t.part(accepted, t, s, a, box, pid)
    t.part(rejected, t, s, box)
    t.part(bounded, t, s, a, box, Box(a, "coder", "neighbour"))
    t.part(by_operator, t, s, a)
    t.part(lifts, t, s, a)
    t.part(on_disk, t, s, a)
    t.part(yaml_forms, t, s, a)
    quiet = Box(a, "quiet", "quiet")
    t.eq(quiet.propose({"host": "a.example"})[0], 403, "guide: none takes no proposal")
    t.ok("proposals" not in quiet.sh("curl -sS http://durward.internal/"), "nor says that there are some")
    a.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=180)
