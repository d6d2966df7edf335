#!/usr/bin/python3 -B
"""The command line: explain agrees with what the gate does; audit tail, query, verify; ca, secret,
status; help, JSON and exit codes of every command."""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402

COMMANDS = ("run", "serve", "reload", "status", "check", "explain", "test", "env", "secret", "preset", "ca", "audit", "doctor")
QUESTIONS = (  # method, path at api.github.com, first word, code
    ("GET", "/user", "allow", "ok"), ("POST", "/gists", "deny", "denied_by_rule"),
    ("GET", "/orgs/acme", "deny", "no_rule"), ("GET", "/repos/acme/secret/x", "deny",
                                               "denied_by_rule"),
    ("GET", "/repos/acme", "allow", "ok"), ("GET", "/repos/acme/a/b/c", "allow", "ok"))


def words(t, s):
    d = s.d
    r = d.command("--help")
    t.ok(r.returncode == 0 and all(c in r.stdout for c in COMMANDS), "--help lists the commands",
         r.stdout)
    for c in COMMANDS:
        r = d.command(c, "--help")
        t.ok(r.returncode == 0 and "usage" in r.stdout.lower() and not r.stderr,
             c + " --help explains it on stdout", r.stdout, r.stderr)
        r = d.command(c, "--no-such-option")
        t.ok(r.returncode in (2, 125) and "no-such-option" in r.stderr and not r.stdout,
             c + " refuses an unknown option by name", "exit %d" % r.returncode, r.stderr)
    r = d.command("chekc")
    t.ok(r.returncode == 2 and "check" in r.stderr, "a mistyped command is guessed", r.stderr)
    for asked, told in ((("auditt", "ls"), "'audit'"), (("-x",), "no option '-x'"), (("sandbox", "creat"), "'sandbox create'"), (("help", "rnu"), "'run'"),
                        (("sandbox", "create", "--polcy", "p"), "--policy"), (("run", "--alow=x", "true"), "--allow"),
                        (("audit", "qery"), "'audit query'"), (("help", "run", "foo"), "no 'run foo'")):
        r = d.command(*asked)
        t.ok(r.returncode in (2, 125) and told in r.stderr.splitlines()[0], "a mistyped word is guessed: %s" % " ".join(asked), r.stderr)
    for asked in (("run",), ("sandbox",), ("sandbox", "exec"), ("audit", "query"), ("check",)):
        a, b = d.command("help", *asked), d.command(*asked, "--help")
        t.ok(a.returncode == 0 and a.stdout == b.stdout, "help %s is its --help" % " ".join(asked), a.stdout, a.stderr)
    for word in ("--version", "-V", "version"):
        r = d.command(word)
        t.ok(r.returncode == 0 and r.stdout.startswith("durward "), word, r.stdout)
    r = d.command("check", "--json=1", d.conf)
    t.ok(r.returncode == 2 and "takes no value" in r.stderr, "--json=1: it takes no value", r.stderr)
    a, b = d.command("check", d.conf), d.command("check", "-c", d.conf)
    t.eq((b.returncode, b.stdout, b.stderr), (a.returncode, a.stdout, a.stderr), "check -c FILE is check FILE")
    t.eq(d.command("check", "-c", d.conf, d.conf).returncode, 2, "one of both")
    r = d.command("audit", "tail", d.work)
    t.ok("no audit log" in r.stderr, "a directory without a log is said to be one", r.stderr)
    r = d.command("status", "--socket", d.socket)
    t.ok(r.returncode == 1 and d.socket in r.stderr, "status without a daemon: 1, and where it "
         "looked", "exit %d" % r.returncode, r.stderr)


def helps(t, d):
    """What the help of these tells is whole: exit status, an example, and each option in the manual page too."""
    def manual(page, begin, end):
        with open(os.path.join(durward.TOP, "doc", page)) as f:
            return f.read().split(begin, 1)[1].split(end, 1)[0].replace("Fl -", "--").replace("\\-", "-")
    verbs = {"ca": ("", "show", "export", "rotate"), "token": ("", "create", "ls", "revoke"), "doctor": ("",),
             "audit": ("", "tail", "query", "verify", "prove", "suggest", "exfil", "index")}
    for command, names in verbs.items():
        page = manual("durward-audit.1.md", "# durward-audit(1)", "## Lines") if command == "audit" else \
            manual("durward.1", ".Ss durward %s\n" % command, "\n.Ss ")
        for name in names:
            r = d.command(command, *([name] if name else []), "--help")
            own = r.stdout.split("options:")[-1]
            options = set(re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", own, re.M)) - {"--help", "--json", "--socket"}
            t.eq([o for o in sorted(options) if o not in page], [], "%s %s: the manual page has its options" % (command, name))
            t.ok("xit status" in r.stdout or command + name == "audit", "%s %s: exit status" % (command, name), r.stdout)
            if name or command == "doctor":
                example = re.findall(r"^  (durward %s%s\b.*)$" % (command, name and " " + name), own, re.M)
                words = example[0].split()[1:] if example else []
                t.ok(example and all(w in r.stdout.split("\n\nread", 1)[0] for w in words if w.startswith("--")),
                     "%s %s: an example with options that exist" % (command, name), r.stdout)
            t.ok(all(n in r.stdout for n in names if not name), "%s %s: names what there is" % (command, name), r.stdout)
    r = d.command("sandbox", "ls", "--socket", "http://127.0.0.1:8443")
    t.ok(r.returncode == 1 and "unix socket or https only" in r.stderr and "controller.https" in r.stderr,
         "a daemon's URL in clear is refused with what to do", r.stderr)
    # root's socket has a fixed place
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    where = "/nowhere/with:" + "//" + "x" * 40
    r = subprocess.run(user + [durward.program(), "sandbox", "ls"], env={"XDG_RUNTIME_DIR": where, "PATH": os.environ["PATH"]},
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    t.ok(r.returncode == 1 and "'%s/" % where in r.stderr, "so is a path that looks like one, and named", r.stderr)


def pages(t, d):
    """The manual has each command, verb and option that --help has."""
    with open(os.path.join(durward.TOP, "doc", "durward.1")) as f:
        page = f.read().replace("\\-", "-")
    page = re.sub(r"\bFl (-?[A-Za-z][\w-]*)", r"-\1", page)
    with open(os.path.join(durward.TOP, "doc", "durward-audit.1.md")) as f:
        audit = f.read()
    rows, missing = r"^  (?:-(\w), |    )--([a-z-]+)", []

    def of(text, word):
        return re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), text)

    def look(text, said, name):
        options = re.findall(rows, said.split("options:\n", 1)[1].split("\nverbs:")[0].split("\n\n")[0], re.M)
        missing.extend("%s --%s" % (name, long) for short, long in options if long not in ("help", "json", "socket") and
                       not of(text, "--" + long) and not (short and of(text, "-" + short)))
    for command in re.findall(r"^  ([a-z-]+) ", d.command("--help").stdout.split("commands:\n")[1].split("\n\n")[0], re.M):
        section = page.split(".Ss durward %s" % command, 1)[1:]
        said = d.command(command, "--help").stdout
        text = "".join(re.findall(r"^\.Nm durward Cm %s\b.*" % command, page, re.M)) + "".join(section).split("\n.Ss ")[0]
        text += audit if command == "audit" else ""
        missing += [] if section else [command]
        look(text, said, command)
        for verb in re.findall(r"^  ([a-z-]+) ", said.split("\nverbs:\n")[1], re.M) if "\nverbs:\n" in said else []:
            missing += [] if of(text, verb) else ["%s %s" % (command, verb)]
            look(text, d.command(command, verb, "--help").stdout, "%s %s" % (command, verb))
    t.eq(missing, [], "the manual has each command, verb and option of --help")


def listeners(t, d):
    """`check` counts all that is listened on."""
    listen, d.listen = d.listen, [{"metrics": "127.0.0.1:9464"}, {"console": "127.0.0.1:9465"}]
    d.save()
    r, j = d.command("check", d.conf), d.command("check", "--json", d.conf)
    t.ok("2 listeners" in r.stdout and json.loads(j.stdout)["listen"] == 2, "check counts metrics and console", r.stdout, j.stdout)
    d.listen = listen
    d.save()


BROKERS = """version: 1
secrets:
  word: { file: %s/word }
  key: { ssh_key: { key: word } }
  pg: { postgres_login: { user: a, password: word } }
  mail: { smtp_login: { user: a, password: word } }
  box: { imap_login: { user: a, password: word } }
  cache: { redis_login: { user: a, password: word } }
policies:
  p:
    rules:
    - { allow: "ssh://git@github.com/acme/**", with: { ssh_key: key } }
    - { allow: "ssh://git@github.com/acme/docs", access: read-only, with: { ssh_key: key } }
    - { allow: "ssh://ops@build.example.com", commands: ["uptime"], read_files: ["/srv/**"], forward: ["db.internal:5432"],
        host_keys: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl", with: { ssh_key: key } }
    - { ask: "postgres://db.example.com/orders", with: { postgres_login: pg } }
    - { allow: "smtps://mail.example.com", recipients: ["*@example.com"], senders: ["bot@example.com"], with: { smtp_login: mail } }
    - { allow: "imaps://mail.example.com", folders: ["INBOX"], with: { imap_login: box } }
    - { allow: "rediss://cache.example.com", with: { redis_login: cache } }
"""
ASKED = (
    ("fetch", "ssh://git@github.com/acme/app.git", "", "allow", "ok"), ("push", "ssh://git@github.com/acme/app", "", "allow", "ok"),
    ("push", "ssh://git@github.com/acme/docs", "", "deny", "method"), ("push", "ssh://git@github.com/other/app", "", "deny", "no_rule"),
    ("fetch", "ssh://root@github.com/acme/app", "", "deny", "no_rule"), ("fetch", "ssh://git@github.com:2222/acme/app", "", "deny", "no_rule"),
    ("exec", "ssh://ops@build.example.com", "uptime", "allow", "ok"), ("exec", "ssh://ops@build.example.com", "uptime; id", "deny", "command"),
    ("shell", "ssh://ops@build.example.com", "", "deny", "method"), ("read", "ssh://ops@build.example.com/", "/srv/a", "allow", "ok"),
    ("write", "ssh://ops@build.example.com", "/srv/a", "deny", "file"), ("read", "ssh://ops@build.example.com", "/srv/../etc/x", "deny", "file_path"),
    ("connect", "ssh://ops@build.example.com", "DB.internal:5432", "allow", "ok"), ("connect", "ssh://ops@build.example.com", "db.internal:22", "deny", "ssh_target"),
    ("connect", "ssh://ops@build.example.com", "127.1:22", "deny", "ssh_target_form"), ("connect", "ssh://ops@build.example.com", "x", "deny", "ssh_target_form"),
    ("connect", "postgres://db.example.com/orders", "", "ask", "ok"), ("connect", "postgresql://db.example.com/other", "", "deny", "no_rule"),
    ("connect", "smtps://mail.example.com", "from:bot@example.com ann@example.com bob@example.com", "allow", "ok"),
    ("connect", "smtps://mail.example.com", "ann@example.com eve@example.net", "deny", "smtp_recipient"),
    ("connect", "smtps://mail.example.com", "from:eve@example.com ann@example.com", "deny", "smtp_sender"),
    ("connect", "smtp://mail.example.com", "", "deny", "no_rule"), ("connect", "imaps://mail.example.com", "INBOX", "allow", "ok"),
    ("connect", "imaps://mail.example.com", "Sent", "deny", "imap_folder"), ("connect", "rediss://cache.example.com", "", "allow", "ok"))


def brokers(t, d):
    """What is not HTTP: decided as by a front, and said in the same words by the command, its --json and a list of tests."""
    t.write("word", "x")
    conf = t.write("brokers.yaml", BROKERS % t.tmp)
    for method, url, text, verdict, code in ASKED:
        r = d.command("explain", "-c", conf, method, url, *([text] if text else []))
        j = json.loads(d.command("explain", "-c", conf, "--json", method, url, *([text] if text else [])).stdout)
        t.ok(r.stdout.split()[0] == verdict == j["decision"] and "(%s)\n" % code in r.stdout and code == j["code"] and "ranges" not in r.stdout,
             "%s %s %s: %s, %s" % (method, url, text, verdict, code), r.stdout, r.stderr, j)
    lines = ["- { request: \"%s\", expect: %s, code: %s }" % (" ".join(x for x in (m, u, w) if x), v, c) for m, u, w, v, c in ASKED]
    tests = t.write("brokers.tests", "config: brokers.yaml\ntests:\n" + "\n".join(lines) + "\n")
    r = d.command("test", tests)
    t.eq(r.returncode, 0, "and so does durward test: " + r.stdout[-300:] + r.stderr)
    for words in (("GET", "ssh://git@github.com/acme/app"), ("fetch", "ssh://github.com/acme/app"), ("exec", "ssh://ops@build.example.com"),
                  ("exec", "ssh://ops@build.example.com/x", "uptime"), ("fetch", "ssh://git@github.com"), ("GET", "https://example.com", "x"),
                  ("SELECT", "postgres://db.example.com/orders"), ("connect", "postgres://a@db.example.com/orders"),
                  ("connect", "redis://cache.example.com", "GET x"), ("connect", "imaps://mail.example.com?x")):
        r = d.command("explain", "-c", conf, *words)
        t.ok(r.returncode == 2 and r.stdout == "" and len(r.stderr.splitlines()[0]) > 20, "refused, with what to do: %s" % " ".join(words), r.stderr)


def decisions(t, s, gate):
    d = s.d
    for method, path, word, code in QUESTIONS:
        url = "https://api.github.com" + path
        r = d.command("explain", "-c", d.conf, method, url)
        j = d.command("explain", "-c", d.conf, "--json", method, url)
        told = json.loads(j.stdout or "{}")
        t.ok(r.returncode == 0 and r.stdout.split()[:1] == [word] and
             (told.get("decision"), told.get("code")) == (word, code),
             "explain %s %s: %s" % (method, path, word), r.stdout, r.stderr, j.stdout)
        got = gate.get("api.github.com", path, method=method)
        t.ok((got.status != 403) == (word == "allow") and got.code == (
            None if word == "allow" else code), "and so the gate decides",
            "%d %s" % (got.status, got.code))
    suite = os.path.join(d.work, "tests.yaml")
    with open(suite, "w") as f:
        f.write("config: %s\ntests:\n" % d.conf)
        for method, path, word, code in QUESTIONS:
            f.write("- { request: %s https://api.github.com%s, expect: %s, code: %s }\n" % (
                method, path, word, code))
    r = d.command("test", suite)
    t.ok(r.returncode == 0 and "%d tests, 0 failed" % len(QUESTIONS) in r.stdout,
         "durward test: the same decisions", r.stdout, r.stderr)
    with open(suite, "a") as f:
        f.write("- { request: GET https://evil.example.net/, expect: allow }\n")
    r = d.command("test", suite)
    t.ok(r.returncode == 1 and "tests.yaml:%d: FAIL" % (len(QUESTIONS) + 3) in r.stdout,
         "and a wrong expectation fails, with its line", r.stdout, r.stderr)
    scoped = os.path.join(d.work, "scoped.yaml")
    with open(scoped, "w") as f:
        f.write("version: 1\nsecrets: { k: { env: K } }\npolicies: { p: { rules: [{ allow: a.example, access: read-only },\n"
                "{ allow: m.example, with: { bearer: k }, mcp: { tools: [a] } },\n"
                "{ allow: r.example, with: { bearer: k }, ranges: true }] } }\n")
    os.chmod(scoped, 0o600)
    brokers(t, d)
    r = d.command("explain", "-c", scoped, "GET", "https://a.example/x?a=1&_method=DELETE")
    t.ok(r.stdout.startswith("deny") and "(method_override)" in r.stdout,
         "another method in the query is denied where methods are named", r.stdout)
    r = d.command("explain", "-c", scoped, "GET", "https://a.example/a//b%00")
    t.ok("an encoded NUL in the path" in r.stdout, "of a path with an empty segment and a NUL, the NUL is the reason", r.stdout)
    said = [d.command("explain", "-c", scoped, "GET", "https://%s/" % h).stdout for h in ("m.example", "r.example")]
    t.ok("ranges:     Range is left out" in said[0] and "ranges:     Range passes\n" in said[1],
         "explain says what becomes of Range where messages are read, and where it passes", *said)
    r = d.command("explain", "-c", d.conf, "GET", "https://api.github.com/a/../b")
    t.ok(r.stdout.startswith("deny") and "(path_ambiguous)" in r.stdout,
         "an ambiguous path is denied, with the gate's code", r.stdout)
    r = d.command("preset", "ls")
    presets = r.stdout.split()
    t.ok(presets == sorted(presets) and {"github", "openai", "anthropic", "gemini"} <= set(presets), "preset ls", r.stdout)
    t.eq(json.loads(d.command("preset", "ls", "--json").stdout)["presets"], presets, "and in JSON")
    r = d.command("preset", "show", "gihub")
    t.ok(r.returncode == 1 and "anthropic" in r.stderr, "preset show: what there is", r.stderr)
    for preset in presets:
        shown = d.command("preset", "show", preset).stdout
        r = d.command("explain", "--preset", preset)
        t.ok(r.returncode == 0 and preset in r.stdout and shown == r.stdout, "explain --preset " + preset, r.stderr)
        r = d.command("explain", "--json", "--preset", preset)
        t.eq(json.loads(r.stdout or "{}").get("preset"), preset, "and in JSON")


def runs(t, s):
    """What `run` says: masked files by name, denials in one line, a secret's value never."""
    d = s.d
    for i in range(3):
        os.makedirs(os.path.join(d.work, "d%d" % i))
        with open(os.path.join(d.work, "d%d" % i, ".env"), "w", encoding="utf-8") as f:
            f.write("X=1\n")
    r = d.run(["curl", "-sS", "https://api.github.com/gists"])
    t.ok("3 files with credentials" in r.stderr and "masked:" not in r.stderr and
         all("d%d/.env" % i in r.stderr for i in range(3)), "masked files are named", r.stderr)
    last = r.stderr.splitlines()[-1] if r.stderr else ""
    t.ok("1 denied: api.github.com (denied_by_rule)" in last, "denials are one line", r.stderr)
    notes = r.stderr.splitlines()
    t.ok(len(notes) == 3 and notes[1].startswith("durward: note: such files"), "what holds of all of them is said after them", r.stderr)
    quiet = d.run(["curl", "-sS", "https://api.github.com/gists"], flags=("--quiet",))
    t.eq((quiet.returncode, quiet.stderr, quiet.stdout != ""), (0, "", True), "--quiet says none of it")
    hint = last.split("; durward ")[-1].split()
    r = d.command(*hint)
    t.ok(r.returncode == 0 and "/gists" in r.stdout, "whose command finds them", hint, r.stderr)
    d.secret("openai", s.openai_secret, mode=0o644)
    r = d.run(["curl", "-sS", "https://api.openai.com/v1/models"])
    t.ok("(secret_unavailable)" in r.stderr, "what an injector refused is a denial too", r.stderr)
    d.secret("openai", s.openai_secret)
    value = s.github_secret.decode()
    r = d.run(["true"], flags=("--secret", value))
    t.ok(r.returncode == 125 and value not in r.stderr and "never its value" in r.stderr,
         "a value given to --secret is not shown", "exit %d" % r.returncode, r.stderr)
    r = d.run(["true"], flags=("--policy", "nobody"))
    t.ok(r.returncode == 125 and "coder" in r.stderr, "an unknown policy: those there are", r.stderr)


def audit(t, s):
    d = s.d
    r = d.command("audit", "query", "--json", d.audit_dir)
    lines = [json.loads(x) for x in r.stdout.splitlines() if x.startswith("{")]
    kept = d.records()
    t.ok(r.returncode == 0 and len(lines) >= 10, "audit query prints records", r.stdout, r.stderr)
    t.ok({x.get("id") for x in lines} <= {x.get("id") for x in kept}, "that are in the log")
    own = {k: v for k, v in d.env.items() if k not in ("DURWARD_SOCKET", "DURWARD_URL")}
    for how, flags, env in (("DURWARD_SOCKET", (), {"DURWARD_SOCKET": d.socket}),
                            ("--socket", ("--socket", d.socket), {})):
        r = d.command("audit", "query", "--json", *flags, env=dict(own, **env))
        named = [json.loads(x) for x in r.stdout.splitlines() if x.startswith("{")]
        t.ok(r.returncode == 0 and {x.get("id") for x in lines} <= {x.get("id") for x in named},
             "the log of the daemon that %s names" % how, r.stderr)
    r = d.command("audit", "query", env=dict(own, DURWARD_SOCKET=os.path.join(d.work, "nobody")))
    t.ok(r.returncode == 1 and "no daemon answers" in r.stderr, "which has to be there", r.stderr)
    r = d.command("audit", "query", env=dict(own, DURWARD_URL="https://127.0.0.1:1"))
    t.ok(r.returncode == 1 and "lies on its host" in r.stderr, "and on this host", r.stderr)
    r = d.command("audit", "tail", d.audit_dir)
    t.ok(r.returncode == 0 and "/gists" in r.stdout, "audit tail shows the latest", r.stdout,
         r.stderr)
    t.ok(not any("\x1b" in x for x in r.stdout), "without colour where there is no terminal")
    seqs = [x["seq"] for x in kept]
    t.eq(seqs, list(range(seqs[0], seqs[0] + len(seqs))), "sequence numbers have no gap")
    r = d.command("audit", "verify", d.audit_dir)
    t.eq(r.returncode, 0, "audit verify accepts a running log") or t.diag(r.stdout + r.stderr)


PROBES = ("self-test.durward.invalid", "doctor.durward.test")


def suggestions(t, s, gate):
    """What was denied for want of a rule comes back as rules that would have allowed it."""
    d = s.d
    for i in range(5):
        gate.get("api.github.com", "/orgs/o%d/members" % i)
    gate.get("api.github.com", "/orgs/o1/members", method="POST")
    for page in ("https://a.example/x", "https://b.example/"):
        gate.get("api.github.com", "/read/" + page)
    for host in PROBES:
        gate.connect(host + ":443")
    gate.connect("new.example.org:8443")
    tap.wait_for(lambda: "new.example.org" in d.command("audit", "tail", d.audit_dir).stdout)
    r = d.command("audit", "suggest", "--json", d.audit_dir)
    got = {x["rule"]["allow"]: x["rule"].get("methods") for x in json.loads(r.stdout or "[]")}
    t.ok(got.get("api.github.com/orgs/*/members") == ["GET", "POST"] and
         "new.example.org:8443" in got, "audit suggest: the smallest rules", r.stdout, r.stderr)
    t.eq(got.get("api.github.com/read/https:/**"), ["GET"], "of a path with an empty segment what a rule can say") or t.diag(r.stdout)
    t.ok(not any("gists" in x for x in got), "nothing that a deny rule refused", r.stdout)
    t.ok(not any(p in x for p in PROBES for x in got), "nothing that Durward itself asks for", r.stdout)
    r = d.command("audit", "suggest", d.audit_dir)
    conf = os.path.join(d.work, "suggested.yaml")
    with open(conf, "w") as f:
        f.write("version: 1\n" + r.stdout)
    os.chmod(conf, 0o600)
    r = d.command("explain", "-c", conf, "GET", "https://api.github.com/orgs/zzz/members")
    t.ok(r.stdout.startswith("allow"), "which load, and allow it", r.stdout, r.stderr)


def tampered(t, s):
    d = s.d
    path = d.audit_files()[0]
    with open(path, "rb") as f:
        whole = f.read()
    lines = whole.splitlines(True)
    middle = len(lines) // 2
    for name, data in (("a changed byte", whole.replace(b"/user", b"/usex", 1)),
                       ("a missing record", b"".join(lines[:middle] + lines[middle + 1:])),
                       ("two exchanged", b"".join(lines[:middle] + [lines[middle + 1],
                                                                   lines[middle]] +
                                                  lines[middle + 2:])),
                       ("a cut end", b"".join(lines[:-2])),
                       ("a record twice", b"".join(lines[:middle] + [lines[middle]] +
                                                   lines[middle:]))):
        with open(path, "wb") as f:
            f.write(data)
        r = d.command("audit", "verify", d.audit_dir)
        t.ok(r.returncode == 1, "verify finds " + name, "exit %d" % r.returncode,
             r.stdout + r.stderr)
    with open(path, "wb") as f:
        f.write(whole)
    r = d.command("audit", "verify", d.audit_dir)
    t.eq(r.returncode, 0, "and accepts the log as it was") or t.diag(r.stdout + r.stderr)


def keys(t, s):
    d = s.d
    r = d.command("ca", "show", "-c", d.conf)
    t.ok(r.returncode == 0 and "PRIVATE" not in r.stdout, "ca show", r.stdout, r.stderr)
    r = d.command("ca", "export", "-c", d.conf)
    t.ok(r.stdout.startswith("-----BEGIN CERTIFICATE") and "PRIVATE" not in r.stdout, "ca export")
    for folder, _, names in os.walk(d.ca_dir):
        for n in names:
            path = os.path.join(folder, n)
            with open(path, "rb") as f:
                private = b"PRIVATE" in f.read()
            if private:
                t.eq(os.stat(path).st_mode & 0o077, 0, "the CA's key is readable by its owner only")
    r = d.command("secret", "ls", "-c", d.conf)
    t.ok(r.returncode == 0 and "github" in r.stdout and "openai" in r.stdout, "secret ls", r.stderr)
    r = d.command("secret", "test", "-c", d.conf)
    t.eq(r.returncode, 0, "secret test reads all of them") or t.diag(r.stdout + r.stderr)


def drained(t, s, gate):
    """SIGTERM: a request that is open is answered to its end, then the daemon goes."""
    begun, end, got = threading.Event(), threading.Event(), []

    def slow(req, conn):
        req.status = 200
        conn.head(200, [("Transfer-Encoding", "chunked")])
        conn.chunk(b"begun, ")
        begun.set()
        end.wait(9)
        conn.chunk(b"and ended")
        conn.chunk(b"")
    s.plain.handler = slow
    asking = threading.Thread(target=lambda: got.append(gate.get(scene.PLAIN, "/slow")))
    asking.start()
    t.ok(begun.wait(10), "a request is under way")
    s.d.daemon.send_signal(signal.SIGTERM)
    t.ok(not tap.wait_for(lambda: s.d.daemon.poll() is not None, 1.5, 0.1), "SIGTERM waits for its end")
    end.set()
    asking.join(15)
    t.eq([(r.status, r.body) for r in got], [(200, b"begun, and ended")], "which its client sees")
    t.eq(s.d.daemon.wait(15), 0, "then the daemon ends, with 0")
    s.d.stop()
    ids = [r["id"] for r in s.d.kinds("admitted") if "/slow" in json.dumps(r)]
    t.ok(len(ids) == 1 and s.d.wait_records(1, "completed", id=ids[0]), "and the log: completed", ids)
    t.eq(s.d.kinds("aborted"), [], "nothing is aborted")


def listens(pid, port):
    """Does this process hold the socket that listens there?"""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f]
    inodes = ["socket:[%s]" % r[9] for r in rows if r[1].endswith(":%04X" % port) and r[3] == "0A"]
    folder, held = "/proc/%d/fd" % pid, []
    for n in os.listdir(folder):
        try:
            held.append(os.readlink(os.path.join(folder, n)))
        except OSError:
            continue
    return bool(set(held) & set(inodes))


def spared(t, s, address):
    """The spare gate ends after the last one that had something to end: nobody waits for it."""
    if os.getuid() != 0:
        t.skip("a spare gate that stands still", "root alone can see what a gate, which nobody may trace, listens at")
        return
    s.d.serve(save=False)
    port = int(address.rpartition(":")[2])
    gates = tap.wait_for(lambda: (lambda g: g if len(g) == 2 else None)(
        [pid for pid, role in s.d.roles() if role == "gate"]), 5) or []
    spare = [pid for pid in gates if not listens(pid, port)]
    t.eq((len(gates), len(spare)), (2, 1), "there is a gate in use, and a spare one")
    for pid in spare:
        os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    s.d.daemon.send_signal(signal.SIGTERM)
    t.ok(tap.wait_for(lambda: not [p for p, r in s.d.roles() if r == "gate" and p not in spare], 5),
         "SIGTERM: the one in use ends")
    for pid in spare:
        os.kill(pid, signal.SIGCONT)
    t.eq(s.d.daemon.wait(15), 0, "and the daemon, with 0")
    took = time.monotonic() - begun
    t.ok(took < 5, "without a wait for what nobody asked for", "%.1f s" % took)


def follows(t, s, address):
    """A daemon that was killed lets go a moment later than the next one starts."""
    s.d.stop()
    lock = open(os.path.join(s.d.audit_dir, "lock"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    host, _, port = address.rpartition(":")
    held = [lock, socket.create_server((host, int(port))), socket.socket(socket.AF_UNIX)]
    os.unlink(s.d.socket) if os.path.exists(s.d.socket) else None
    held[2].bind(s.d.socket)
    held[2].listen(8)
    for i, thing in enumerate(held):
        threading.Timer(0.2 * (i + 1), thing.close).start()
    s.d.serve(save=False)
    t.ok(s.d.daemon.poll() is None, "a daemon waits for what the one before it still holds")


def main(t):
    s = scene.Scene(t)
    s.d.save()
    words(t, s)
    helps(t, s.d)
    pages(t, s.d)
    listeners(t, s.d)
    address = s.listener()
    s.d.serve()
    r = s.d.command("status", "--socket", s.d.socket, "--json")
    t.ok(r.returncode == 0 and isinstance(json.loads(r.stdout), (dict, list)), "status --json",
         r.stdout, r.stderr)
    r = s.d.command("status", "--socket", s.d.socket)
    t.ok("gate" in r.stdout and "vault" in r.stdout, "status names the roles", r.stdout)
    decisions(t, s, s.gate(address))
    audit(t, s)
    suggestions(t, s, s.gate(address))
    keys(t, s)
    r = s.d.command("serve", "-c", s.d.conf)
    t.ok(r.returncode != 0 and r.stderr, "a second daemon on the same place is refused", r.stderr)
    t.part(follows, t, s, address)
    t.part(drained, t, s, s.gate(address))
    t.part(spared, t, s, address)
    tampered(t, s)
    t.part(runs, t, s)
    s.clean([], "cli")


tap.run(main)
