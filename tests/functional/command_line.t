#!/usr/bin/python3 -B
"""What people type: names and first letters for ids, what the shell completes, every error of a configuration, what is
said at the end of a run and in lists, variables in the forms that others read, a first configuration."""
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402
from harness.terminal import Terminal  # noqa: E402

BROKEN = """version: 1
secrets:
  a: { envv: X }
  b: { env: "9x" }
policies:
  my.policy:
    env: { "9": x, OK: "{{placeholder zz}}" }
    rules:
      - allow: "bad host/"
      - { allow: api.github.com, with: { bearer: nosuch } }
      - { allow: ok.example.com, with: { bearer: a } }
      - { allow: x.test, methos: [GET] }
  other:
    rulez: []
upstream: { nonsense: 1, resolve: 4 }
limits: { abc: 1 }
listen: [ { http: "x" } ]
"""
TWO_PLACES = """version: 1
secrets:
  a: { env: X }
policies:
  p:
    rules:
      - allow: b.test/**
      - { allow: b.test/**, with: { bearer: a } }
      - deny: c.test/**
      - allow: c.test/x
      - deny: b.test/x
"""


def every_error(t, d):
    r = d.check(BROKEN)
    lines = [x.split(":")[1] for x in r.stderr.splitlines() if x.startswith(d.conf)]
    t.eq((r.returncode, sorted(lines, key=int)), (1, "3 4 7 7 9 10 12 14 15 15 16 17".split()),
         "check tells every error with its line, and none that follows from another")
    t.has(r.stderr, "12 errors", "and how many there are")
    got = json.loads(d.command("check", "--json", d.conf).stdout)
    t.eq((got["ok"], len(got["errors"]), got["error"]), (False, 12, got["errors"][0]), "as JSON too")
    r = d.command("run", "-c", d.conf, "--no-bind", "--", "true")
    t.ok(r.returncode == 125 and "'durward check %s'" % d.conf in r.stderr, "run tells the first, and who tells all", r.stderr)
    for text, said in ((TWO_PLACES, r"^{0}:8: this rule and the one at {0}:7 both allow"),
                       (TWO_PLACES.replace("with: { bearer: a }", "access: read-only"), r'"deny .*" stands inside the wider "allow .*" \({0}:\d+\)')):
        r = d.check(text)
        j = d.command("check", "--json", d.conf)
        t.ok(re.search(said.format(re.escape(d.conf)), r.stderr, re.M) and "\\u00" not in j.stdout, "each place in a message is told as it is",
             r.stderr, j.stdout)
    t.ok(re.search(r'^warning: {0}:10: "allow c.test/x" never decides: "deny c.test/\*\*" \({0}:9\)'.format(re.escape(d.conf)), r.stderr, re.M),
         "a rule that never decides is warned of", r.stderr)
    r = d.check("version: 1\n  bad\n")
    t.ok(r.returncode == 1 and "1 error" not in r.stderr and len(r.stderr.splitlines()) == 1, "a file that is no YAML has one",
         r.stderr)


def default_file(t, d):
    home = os.path.join(d.env["XDG_CONFIG_HOME"], "durward")
    os.makedirs(home)
    path = os.path.join(home, "durward.yaml")
    with open(path, "w") as f:
        f.write("version: 1\nsecrets: { s: { file: key }, v: { env: NOT_SET_HERE }, c: { command: [no-such-program] } }\n"
                "policies: { p: { rules: [ { allow: a.test, with: { bearer: s } } ] } }\n")
    key = os.path.join(home, "key")
    r = d.command("check")
    t.ok(r.returncode == 0 and path + ": OK" in r.stdout, "check without a file takes the one that run would", r.stdout, r.stderr)
    t.ok("'s': cannot open" in r.stderr and "NOT_SET_HERE is not set" in r.stderr and "no program 'no-such-program'" in r.stderr,
         "secrets that are not there are warned of", r.stderr)
    with open(key, "w") as f:
        f.write("value-of-the-key\n")
    os.chmod(key, 0o644)
    r = d.command("check", env={"NOT_SET_HERE": "v"})
    t.ok("mode 0644" in r.stderr and "NOT_SET_HERE" not in r.stderr and "value-of" not in r.stderr,
         "and one that is open to others, not one that is there", r.stderr)
    os.unlink(path)


def which(t, d, c):
    one, two = (c.create(name=n)["id"] for n in ("builder", "tester"))
    ask = lambda verb, *a: d.command("sandbox", verb, "--socket", d.socket, *a)  # noqa: E731
    short = os.path.commonprefix([one, two])
    first = one[:max(len(short) + 1, 7)]
    for word, what in ((one, "its id"), ("builder", "its name"), (first, "first letters"), (first[3:], "letters without sb-")):
        r = ask("show", "--json", word)
        t.ok(r.returncode == 0 and json.loads(r.stdout)["id"] == one, "a sandbox by " + what, r.stderr)
    r = d.command("logs", "buildre", env={"DURWARD_SOCKET": d.socket})
    t.eq((r.returncode, r.stdout, r.stderr), (0, "", "durward: nothing is on record of a sandbox 'buildre'\n"), "logs of a name that nobody has had")
    both = [c.create(name="twice")["id"]]
    c.delete(both[0])
    both.append(c.create(name="twice")["id"])
    r = d.command("logs", "twice", env={"DURWARD_SOCKET": d.socket})
    t.ok(r.returncode == 1 and all(re.search(x + r" \(twice, \d+s ago\)", r.stderr) for x in both) and "write the id of one" in r.stderr,
         "logs of a name that two have had: their ids, and how long ago each was made", r.stderr)
    c.delete(both[1])
    r = ask("show", "builder")
    said = dict(line.split(None, 1) for line in r.stdout.splitlines())
    t.ok(said.get("ttl") == "24h, idle 60m" and said.get("expires") in ("59m", "60m") and said.get("age", "").endswith("s"),
         "it says its times as people do", r.stdout)
    r = ask("rm", one[3:6])
    t.ok(r.returncode == 1 and one in r.stderr and c.show(one)["id"] == one, "three letters are too few, whoever they fit", r.stderr)
    three = [c.create()["id"] for _ in range(33)]  # two of these begin alike: there are 32 letters
    heads = {}
    for x in three:
        heads.setdefault(x[:4], []).append(x)
    head, alike = next((h, v) for h, v in heads.items() if len(v) > 1)
    r = ask("show", head)
    t.ok(r.returncode == 1 and all(x in r.stderr for x in alike[:4]), "letters that several have are refused with their ids",
         r.stderr)
    r = ask("rm", head)
    t.ok(r.returncode == 1 and set(alike) <= {s["id"] for s in c.ask("GET", "/v1/sandboxes?limit=1000")["sandboxes"]}, "and nothing is removed by them", r.stderr)
    r = ask("show", "nobody")
    t.ok(r.returncode == 1 and "there is no sandbox 'nobody'" in r.stderr, "a word that fits none", r.stderr)
    for x in three:
        c.delete(x)
    r = d.command("volume", "ls", "--socket", d.socket)
    t.eq((r.stdout, r.stderr), ("", "durward: there are no volumes\n"), "where there are none, no table is begun")
    r = ask("exec", "builder", "--", "sh", "-c", "echo in $0 >/workspace/f; exit 3")
    t.ok(r.returncode == 3, "exec by name", r.stderr)
    r = ask("cp", "builder:/workspace/f", os.path.join(d.work, "f"))
    t.ok(r.returncode == 0 and os.path.exists(os.path.join(d.work, "f")) and r.stdout == "", "cp by name", r.stderr)
    for args in (("builder:/workspace/f", os.path.join(d.work, "f")), (os.path.join(d.work, "f"), "builder:/workspace/g")):
        r = ask("cp", "--json", *args)
        t.eq(json.loads(r.stdout or "null"), {"id": one, "files": 1, "bytes": os.path.getsize(os.path.join(d.work, "f")), "left_out": 0},
             "cp --json says what was copied") or t.diag(r.stderr)
    r = d.command("token", "create", "--scope", "read", "--scope", "exec sandboxes", "--socket", d.socket)
    t.ok(r.returncode == 2 and "there is no 'exec sandboxes'; it is one of: read sandboxes exec" in r.stderr,
         "a scope that there is not is a usage error", r.stderr)
    r = ask("snapshot", first, "shot")
    t.ok(r.returncode == 0 and ask("restore", "builder", "shot").returncode == 0, "snapshot and restore", r.stderr)
    r = ask("fork", "builder")
    t.ok(r.returncode == 0 and r.stdout.startswith("sb-"), "fork", r.stderr)
    t.eq(ask("rm", r.stdout.strip()).returncode, 0, "rm")
    t.eq([ask(verb, "tester").returncode for verb in ("stop", "resume")], [0, 0], "stop and resume by name")
    for verb in (("sandbox", "rm"), ("sandbox", "snapshot", "rm"), ("volume", "rm"), ("image", "rm"), ("home", "rm"), ("token", "revoke")):
        r = d.command(*verb, "nope", "--socket", d.socket)
        t.ok(r.returncode == 1 and "'nope'" in r.stderr and " ls" in r.stderr, "%s: a name that nothing has is an error" % " ".join(verb), r.stdout, r.stderr)
    ask("snapshot", "builder", "spare")
    gone = [json.loads(ask(*verb, "--json").stdout or "0") for verb in (("snapshot", "rm", "spare"), ("rm", "sb-" + 26 * "a"))]
    t.eq(gone, [{"removed": ["spare"]}, {"removed": ["sb-" + 26 * "a"]}], "what was removed, as JSON; a sandbox may have ended by itself")
    r = ask("create", "--policy", "q")
    t.ok(r.returncode == 1 and "there is no policy 'q'" in r.stderr and "are: p\n" in r.stderr, "another policy than there are: those there are", r.stderr)
    tok = d.command("token", "create", "--scope", "read", "--name", "mine", "--socket", d.socket)
    r = d.command("token", "revoke", "mine", "--socket", d.socket)
    left = json.loads(d.command("token", "ls", "--json", "--socket", d.socket).stdout)
    t.ok(tok.returncode == 0 and r.returncode == 0 and left == [], "a token by its name", r.stderr, left)
    return one


def lists(t, d, one):
    r = d.command("sandbox", "ls", "--socket", d.socket)
    head, *rows = r.stdout.splitlines()
    t.ok(all(x in head.split() for x in ("AGE", "EXPIRES", "USED", "REFUSED")), "sandbox ls tells age, end, use, refusals", head)
    mine = dict(zip(head.split(), next(x for x in rows if one in x).split()))
    t.ok(mine["AGE"][-1] in "sm" and mine["EXPIRES"][-1] in "mh" and mine["USED"][-1] in "sm" and int(mine["REFUSED"]) > 0,
         "with values", mine)
    r = d.command("status", "--socket", d.socket)
    t.ok(d.socket in r.stdout and d.console in r.stdout and d.metrics in r.stdout and d.audit_dir in r.stdout,
         "status says socket, console, metrics and log", r.stdout)
    with open(d.log) as f:
        said = f.read()
    t.ok(d.socket in said and d.console in said and d.metrics in said, "serve says them as it starts", said)


def logs(t, d, one):
    d.settle()
    at = {"DURWARD_SOCKET": d.socket}
    elsewhere = os.path.join(d.dir, "elsewhere")
    os.makedirs(os.path.join(elsewhere, "durward"))
    with open(os.path.join(elsewhere, "durward", "durward.yaml"), "w") as f:
        f.write("version: 1\npolicies: { x: { rules: [] } }\naudit: { dir: %s/other }\n" % elsewhere)
    at["XDG_CONFIG_HOME"] = elsewhere
    for verb in (["tail"], ["query"], ["verify"], ["prove", "1"], ["suggest"], ["exfil"], ["index"]):
        r = d.command("audit", *verb, "--json", env=at)
        t.ok("other" not in r.stderr and (r.returncode == 0 or "checkpoint" in r.stderr),
             "audit %s reads the log of the daemon that DURWARD_SOCKET names" % verb[0], r.stdout[:200], r.stderr)
    r = d.command("logs", "builder", env=at)
    t.ok(r.returncode == 0 and one in r.stdout and "exec_started" in r.stdout and "denied.acme-example.dev" in r.stdout
         and "tester" not in r.stdout and "self-test" not in r.stdout, "logs: what one sandbox did, by name", r.stdout, r.stderr)
    # a count of what repeats may come on record in between
    same = tap.wait_for(lambda: d.command("logs", one[:12], env=at).stdout == d.command("logs", "builder", env=at).stdout, 10)
    t.ok(same, "by first letters")
    kinds = lambda *a: [json.loads(x) for x in d.command("audit", "query", "--json", *a, env=at).stdout.splitlines()]  # noqa: E731
    refused = kinds("--decision", "deny", "--sandbox", "builder")
    t.ok({"dns", "denied"} <= {x["kind"] for x in refused} and all(x.get("code") != "ok" for x in refused),
         "--decision deny holds names too", refused)
    t.ok(any(x.get("code") == "blocked_ip" for x in refused), "and addresses that may not be reached", refused)
    t.eq({x["kind"] for x in kinds("--kind", "denied")}, {"denied"}, "--kind denied is that kind alone")
    told = d.command("audit", "query", "--help", env=at)
    t.ok(told.returncode == 0 and told.stdout.startswith("usage: durward audit query") and "--no-index" in told.stdout
         and told.stdout.rstrip().endswith("--host api.github.com"), "audit query --help shows help and asks nothing", told.stdout[-300:])
    plain = d.command("audit", "query", env=at).stdout
    probed = d.command("audit", "query", "--probes", env=at).stdout
    t.ok("self-test" not in plain and "(probe)" not in plain, "the self-test's probes are hidden", plain)
    t.ok("GET doctor.durward.test/a" in plain, "what is let through is no probe", plain)
    t.ok("self-test" in probed and "(probe)" in probed, "and shown, marked, with --probes", probed)
    tty = Terminal(t, [durward.program(), "audit", "query", "--dir", d.audit_dir], d.work, dict(d.env, NO_COLOR="1"))
    tty.wait()
    text = tty.out.decode()
    t.ok("\x1b" not in text and len(re.findall(r"\n20\d\d-", text)) <= 1 and not re.search(r"\dT\d", text), "on a terminal times are short, and with NO_COLOR nothing is coloured",
         text[:300])
    t.ok("\x1b" not in d.command("audit", "query", env=at).stdout, "no colours where there is no terminal")


def completes(t, d, one):
    def words(*a, **kw):
        return d.command("completion", "--list", *a, **kw).stdout.split()
    at = {"DURWARD_SOCKET": d.socket, "DURWARD_CONFIG": d.conf}
    t.ok({one, "builder", "tester"} <= set(words("sandboxes", env=at)), "ids and names of sandboxes are listed for shells")
    t.eq((words("policies", env=at), words("secrets", env=at)), (["p"], ["s"]), "policies and secrets")
    t.ok("github" in words("presets"), "presets")
    t.ok("host" in words("images") and "claude" in words("profiles") and words("homes", env=at) == [] and "sandbox" in words("commands") and
         "microvm" in words("backends"), "images, profiles, homes, commands, and words that are always the same")
    t.eq((words("approvals", env=at), words("snapshots", env=at)), ([], ["shot"]), "approvals and snapshots")
    t.eq(d.command("completion", "--list", "horses").returncode, 2, "there is no list of anything else")
    for shell, line in (("bash", 'COMP_WORDS=(durward sandbox show bu); COMP_CWORD=3; _durward; echo "${COMPREPLY[@]}"'),
                        ("bash", 'COMP_WORDS=(durward sandbox preview bu); COMP_CWORD=3; _durward; echo "${COMPREPLY[@]}"'),
                        ("bash", 'COMP_WORDS=(durward run --use gith); COMP_CWORD=3; _durward; echo "${COMPREPLY[@]}"'),
                        ("bash", 'COMP_WORDS=(durward run --policy ""); COMP_CWORD=3; _durward; echo "${COMPREPLY[@]}"'),
                        ("bash", 'COMP_WORDS=(durward help sandb); COMP_CWORD=2; _durward; echo "${COMPREPLY[@]/sandbox/builder}"'),
                        ("bash", 'COMP_WORDS=(durward sandbox ""); COMP_CWORD=2; _durward; echo "${COMPREPLY[@]/create/builder}"'),
                        ("bash", 'COMP_WORDS=(durward help sandbox cr); COMP_CWORD=3; _durward; echo "${COMPREPLY[@]/create/builder}"'),
                        ("bash", 'COMP_WORDS=(durward run --policy p clau); COMP_CWORD=4; _durward; echo "${COMPREPLY[@]/claude/p}"'),
                        ("bash", 'COMP_WORDS=(durward run -- clau); COMP_CWORD=3; _durward; echo "${COMPREPLY[@]-p}"'),
                        ("bash", 'COMP_WORDS=(durward audit query --decision den); COMP_CWORD=4; _durward; echo "${COMPREPLY[@]/denied/p}"'),
                        ("bash", 'COMP_WORDS=(durward check ""); COMP_CWORD=2; _durward; echo "${COMPREPLY[@]-p}"'),
                        ("fish", "complete -C 'durward sandbox show bu'"),
                        ("fish", "complete -C 'durward help sandbox cr' | string replace create builder"),
                        ("fish", "complete -C 'durward run clau' | string replace claude p"),
                        ("fish", "complete -C 'durward run --policy '")):
        if not shutil.which(shell):
            t.skip("completion in " + shell, "it is not installed")
            continue
        text = d.command("completion", shell).stdout + "\n" + line + "\n"
        env = dict(d.env, **at)
        env["PATH"] = os.path.dirname(durward.program()) + ":" + env["PATH"]
        r = subprocess.run([shutil.which(shell)], input=text, env=env, capture_output=True, text=True, timeout=20)
        want = "builder" if "sandb" in line else "github" if "--use" in line else "p"
        t.ok(want in r.stdout.split(), "%s: %s" % (shell, line[:60]), r.stdout, r.stderr)


def shapes(t, d, one):
    """The manual says of each list whether it is an array or stands in an object, and each does as it says."""
    with open(os.path.join(durward.TOP, "doc/durward.1"), encoding="utf-8") as f:
        text = re.search(r"^These lists are arrays:$(.*?)^These are objects.*?:$(.*?)^\.Cm check", f.read(), re.M | re.S)
    arrays = [x.strip() for x in re.sub(r"^\.Cm|\.$", "", text[1], flags=re.M).replace("\n", " ").split(" ,") if x.strip()]
    objects = dict(re.findall(r"^\.Cm ([a-z ]+) Pq Cm ([a-z]+) [,.]$", text[2], re.M))
    more = {"sandbox services": [one], "audit exfil": ["--dir", d.audit_dir], "audit suggest": ["--dir", d.audit_dir]}
    at = {"DURWARD_SOCKET": d.socket, "DURWARD_CONFIG": d.conf}
    for words in arrays + sorted(objects):
        r = d.command(*words.split(), *more.get(words, []), "--json", env=at)
        said = json.loads(r.stdout or "null")
        t.ok(isinstance(said.get(objects[words]) if words in objects and isinstance(said, dict) else said, list) and
             isinstance(said, list) == (words in arrays), words + " --json is as the manual says", r.stdout[:200], r.stderr)
    lists = {c + " ls" for c in d.command("completion", "--list", "commands").stdout.split()
             if re.search(r"^  ls ", d.command(c, "--help").stdout, re.M)}
    t.eq(sorted(lists - set(arrays) - set(objects)), [], "the manual has all lists")


def misread(t, d, one):
    """What somebody types who has not read the help is refused with what to type."""
    at = {"DURWARD_SOCKET": d.socket, "DURWARD_CONFIG": d.conf}
    for words, said in ((("-c", d.conf, "status"), "options stand behind it"),
                        (("--json", "status"), "options stand behind it"),
                        (("sandbox", "sync", d.work + "/a", one + ":/workspace"), "the sandbox goes first"),
                        (("sandbox", "snapshot", "ls", one), "takes no name"),
                        (("audit", "query", "--dir", d.audit_dir, "--since", "1h", "--until", "2h"), "--until lies before --since")):
        r = d.command(*words, env=at)
        t.ok(r.returncode == 2 and said in r.stderr, "durward " + " ".join(words[:3]).replace(d.conf, "FILE").replace(d.work, ""), r.stdout, r.stderr)
    r = d.command("audit", "query", "--dir", d.audit_dir, "--since", "2h", "--until", "1h")
    t.eq((r.returncode, r.stdout), (0, ""), "a time in which nothing was is no error")
    r = d.command("home", "ls", "--json")
    t.eq(json.loads(r.stdout), {"homes": []}, "no homes, as JSON")
    two = os.path.join(d.work, "two.yaml")
    with open(two, "w", encoding="utf-8") as f:
        json.dump({"version": 1, "policies": {"a": {"rules": []}, "b": {"rules": []}}}, f)
    r = d.command("run", "-c", two, "--", "true")
    t.ok(r.returncode == 125 and "name one with --policy: a, b" in r.stderr and "durward check" not in r.stderr,
         "a policy that has to be named is no error of the configuration", r.stderr)
    with open(two, "w", encoding="utf-8") as f:
        json.dump({"version": 1, "policies": {"a": {"rules": [{"allow": "a.example/b/c", "git": {"push": []}}]}}}, f)
    r = d.command("check", two)
    t.ok(r.returncode == 1 and "'git' must be one of: fetch, push, not a mapping" in r.stderr, "what a key takes is said, whatever stands there", r.stderr)


def forms(t, d):
    ask = lambda *a: d.command("env", "--socket", d.socket, *a)  # noqa: E731
    want = json.loads(ask("--format", "json").stdout)
    t.eq(set(want) >= {"HTTPS_PROXY", "TOKEN"}, True, "env --format json")
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    r = subprocess.run(["sh", "-c", "set -a; eval \"$1\"; exec %s -c '%s'" % (durward.PYTHON, show), "sh", ask().stdout],
                       capture_output=True, text=True, env={"PATH": d.env["PATH"]})
    t.ok(json.loads(r.stdout)["ODD"] == want["ODD"], "a shell gets each value as it is", r.stdout, r.stderr)
    for form in ("docker", "github-actions"):
        got = ask("--format", form)
        pairs = dict(x.split("=", 1) for x in got.stdout.splitlines())
        t.ok(pairs["ODD"] == want["ODD"] and set(pairs) == set(want), "--format %s: KEY=value as it stands" % form, got.stdout)
    t.ok("::add-mask::" in got.stderr and "::add-mask::" not in got.stdout, "the runner is told to hide the token", got.stderr)
    line = next(x for x in ask("--format", "dotenv").stdout.splitlines() if x.startswith("ODD="))
    t.eq(line, 'ODD="it\'s \\$5 \\"x\\""', "--format dotenv escapes what such files expand")
    got = json.loads(ask("--for", "devcontainer").stdout)
    t.ok(set(got["containerEnv"]) == set(want) and "target=/tmp/durward" in got["mounts"][0], "--for devcontainer", got)
    got = ask("--for", "compose").stdout
    t.ok(":/tmp/durward:ro" in got and '      ODD: "it\'s $$5 \\"x\\""' in got, "--for compose", got)
    got = ask("--for", "docker").stdout
    t.ok("# - Lock its network" in got and "ODD=it's $5" in got, "--for docker", got)
    t.eq(ask("--format", "xml").returncode, 2, "another form is a usage error")


def runs(t, d):
    r = d.run(["sh", "-c", "curl -s https://unlisted.acme-example.dev/a; getent ahosts unlisted.acme-example.dev; getent ahosts only.acme-example.dev;"
                           "curl -s https://down.example.com/"])
    last = r.stderr.strip().splitlines()[-1]
    t.ok("unlisted.acme-example.dev (no_rule) x1" in last and "unlisted.acme-example.dev (dns_denied)" not in last,
         "the line at the end counts a host once", last)
    t.has(last, "only.acme-example.dev (dns_denied) x1", "a name that was only asked for once, too")
    t.has(last, "; 1 failed: down.example.com (connect) x1", "and tells what failed at its origin")
    box = last.rsplit(" ", 1)[1]
    (made,) = d.kinds("lifecycle", event="run", target=box)
    t.ok(made["detail"].startswith("sh (3 words) in %s by " % d.work) and "(uid %d)" % os.geteuid() in made["detail"]
         and "curl" not in made["detail"], "the record of a run: program, directory, user, not its arguments", made)
    r = d.run(["true"], flags=["--json"])
    t.eq(sorted(json.loads(r.stderr.strip().splitlines()[-1])), ["denied", "error", "failed", "model_calls", "sandbox", "status"],
         "as JSON, failures stand beside denials")
    out = d.command("audit", "verify", d.audit_dir).stdout.splitlines()
    t.ok(len(out) > 2 and out[-1].startswith("all: good, %d logs" % (len(out) - 1)), "audit verify ends with totals", out)
    sums = json.loads(d.command("audit", "verify", "--json", d.audit_dir).stdout)
    t.eq((sums["totals"]["logs"], sums["totals"]["records"]), (len(sums["logs"]), sum(x["records"] for x in sums["logs"])),
         "and as JSON")


def disk_full():
    """For what is run: no file takes more than some bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))


def first_configuration(t, d):
    here, tools = t.mkdir("project"), t.mkdir("tools")
    for name, text in (("go.sum", ""), ("package-lock.json", "{}")):
        with open(os.path.join(here, name), "w") as f:
            f.write(text)
    os.makedirs(os.path.join(here, ".git"))
    with open(os.path.join(here, ".git", "config"), "w") as f:
        f.write('[remote "o"]\n\turl = https://someone:hunter2-token@git.acme.dev/a/b.git\n')
    ran = os.path.join(here, "ran")
    for name in ("claude", "go", "npm", "git"):
        path = os.path.join(tools, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\ntouch %s\n" % ran)
        os.chmod(path, 0o755)
    env = {"PATH": tools + ":" + d.env["PATH"], "GITHUB_TOKEN": "ghp_the-value-of-a-token",
           "XDG_CONFIG_HOME": os.path.join(here, "conf")}
    r = d.command("init", cwd=here, env=env)
    path = os.path.join(here, "conf", "durward", "durward.yaml")
    t.ok(r.returncode == 0 and path in r.stdout, "init writes the user's configuration", r.stdout, r.stderr)
    with open(path) as f:
        text = f.read()
    t.ok("use: anthropic" in text and "use: github" in text and "git.acme.dev/**" in text and "go.sum is here" in text and
         "# - use: npm\n" in text and "'durward run claude' starts it" in text,
         "from agents, variables, remotes and lock files", text)
    t.ok("hunter2" not in text and "ghp_" not in text and "someone" not in text, "of which only names are written", text)
    t.ok(not os.path.exists(ran), "and nothing was executed")
    r = d.command("check", cwd=here, env=env)
    t.ok(r.returncode == 0 and "OK" in r.stdout, "which is good as it is", r.stdout, r.stderr)
    r = d.command("init", cwd=here, env=env)
    t.ok(r.returncode == 1 and "is there already" in r.stderr, "it is not written over", r.stderr)
    full = subprocess.run([durward.program(), "init", "-o", "part.yaml"], cwd=here, env=dict(d.env, **env), capture_output=True, text=True,
                          preexec_fn=disk_full, timeout=30)
    t.ok(full.returncode == 1 and "cannot write part.yaml: File too large" in full.stderr and not os.path.exists(os.path.join(here, "part.yaml")),
         "one that cannot be written whole is not left behind, and why is said", full.stderr)
    os.chmod(path, 0o600)
    full = subprocess.run([durward.program(), "init", "-f"], cwd=here, env=dict(d.env, **env), capture_output=True, text=True,
                          preexec_fn=disk_full, timeout=30)
    kept = open(path).read() if os.path.exists(path) else None
    t.eq((full.returncode, kept == text, os.listdir(os.path.dirname(path))), (1, True, ["durward.yaml"]),
         "init -f leaves the one that is there until another is written whole") or t.diag(full.stderr)
    r = d.command("init", "-f", cwd=here, env=env)
    t.eq((r.returncode, stat.S_IMODE(os.stat(path).st_mode), open(path).read() == text), (0, 0o600, True), "and then takes its place, with its mode")
    bare = t.mkdir("bare")
    r = d.command("init", "-o", os.path.join(bare, "x.yaml"), cwd=bare, env={"PATH": bare})
    ok = d.command("check", os.path.join(bare, "x.yaml"))
    t.ok(r.returncode == 0 and ok.returncode == 0 and "rules: []" in open(os.path.join(bare, "x.yaml")).read(),
         "where nothing is found, nothing is allowed", r.stderr, ok.stderr)
    t.eq(stat.S_IMODE(os.stat(os.path.join(bare, "x.yaml")).st_mode) & 0o022, 0, "nobody else may write it")


def interrupted(t, d):
    """Whenever ^C comes while a sandbox is made, the command ends soon, by the signal, and blames nobody."""
    seen = []
    for moment in range(10):
        p = subprocess.Popen([durward.program(), "run", "-c", d.conf, "--", "sleep", "60"], cwd=d.work, env=d.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent)
        try:
            p.wait(0.03 + 0.02 * moment)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGINT)
        begun = time.monotonic()
        said = p.communicate(timeout=30)[1]
        seen.append((p.returncode, time.monotonic() - begun < 8, said))
    t.ok(all(r in (130, -signal.SIGINT) and soon and "cannot start" not in said and "again and again" not in said for r, soon, said in seen),
         "^C while a sandbox is made ends it soon, and says nothing else", seen)


def main(t):
    d = durward.Durward(t)
    every_error(t, d)
    default_file(t, d)
    d.resolve.update({"down.example.com": "127.0.0.1:9", "doctor.durward.test": "127.0.0.1:9"})
    d.secret("s", "the-value")
    d.policy("p", [{"allow": "localhost:9"}, {"allow": "down.example.com"},
                   {"allow": "doctor.durward.test"}],
             {"TOKEN": "{{placeholder s}}", "ODD": "it's $5 \"x\""})
    d.console, d.metrics = "127.0.0.1:%d" % free_port(), "127.0.0.1:%d" % free_port()
    d.listen = [{"http": "127.0.0.1:%d" % free_port(), "policy": "p"}, {"console": d.console}, {"metrics": d.metrics}]
    d.serve()
    c = api.Api(d.socket)
    c.delete(c.first())
    one = which(t, d, c)
    c.sh(one, "curl -s https://denied.acme-example.dev/; curl -s -x %s https://localhost:9/;"
              "curl -s https://doctor.durward.test/a" % durward.GATE_PROXY)
    lists(t, d, one)
    logs(t, d, one)
    completes(t, d, one)
    shapes(t, d, one)
    misread(t, d, one)
    forms(t, d)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")
    runs(t, d)
    interrupted(t, d)
    first_configuration(t, d)


tap.run(main, timeout=240)
