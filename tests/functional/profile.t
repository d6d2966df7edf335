#!/usr/bin/python3 -B
"""A program runs by its profile: its host is allowed, its key is added outside, its files hold placeholders. Its home
is kept, for one sandbox at a time; placeholders stay until they are renewed; nothing of the secret is inside."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scan, tap  # noqa: E402

# A real program, installed where programs of users are: below a folder of its own, its name a link in PATH.
TOY = r"""#!/usr/bin/env toysh
. "$(dirname "$0")/../lib/words.sh"
say "words $*"; say "variable $TOY_KEY"; say "quiet ${QUIET-no}"
say "file $(cat ~/.toy/auth.json)"
say "json $(cat ~/.toy/servers.json)"; say "toml $(tr '\n' ';' <~/.toy/servers.toml)"
[ -e ~/.cache ] && say "cache kept"
mkdir -p ~/.cache; echo once >>~/times; say "times $(wc -l <~/times)"
[ "$2" = spoil ] && echo spoilt >~/.toy/auth.json
[ "$2" = link ] && { rm -rf ~/.toy; ln -s /etc ~/.toy; }
[ "$2" = call ] && curl -sS -H "Authorization: Bearer $(sed -n 's/.*"key": "\([^"]*\)".*/\1/p' ~/.toy/auth.json)" \
    https://api.toy.example/v1/x
[ "$2" = report ] && curl -sS -o /dev/null -w 'report %{http_code}\n' https://report.toy.example/
[ "$2" = wait ] && { say waiting; read -r _; }
exit 0
"""
PROFILE = """about: a toy
command: [toy, --first]
model:
  - secret: toy
    env: TOY_KEY
    from: OLD_TOY_KEY
    rules: [{ allow: api.toy.example, with: { bearer: "{{secret}}" } }]
telemetry:
  rules: [{ allow: report.toy.example }]
  quiet: { QUIET: "yes" }
files:
  .toy/auth.json: |
    { "key": "{{placeholder toy}}", "last": "{{placeholder toy last 6}}", "in": "{{project}}" }
  .netrc: "machine api.toy.example password {{placeholder toy}}"
  .toy/servers.json: |
    { {{mcp_servers json}} }
  .toy/servers.toml: |
    {{mcp_servers toml}}
  .other: "{{placeholder absent}}"
forget: .cache
"""


class Toy:
    def __init__(self, t, top="d"):
        self.t, self.d = t, durward.Durward(t, top)
        d, self.secret = self.d, scan.canary("toy-")
        self.api = origin.Origin(t, d.ca, "api.toy.example", lambda req, conn: conn.reply(req, 200, {"ok": "called"}))
        self.report = origin.Origin(t, d.ca, "report.toy.example", lambda req, conn: conn.reply(req, 200, {}))
        d.origin("api.toy.example", self.api)
        d.origin("report.toy.example", self.report)
        d.policies["other"] = {"rules": [{"allow": "other.example"}, {"allow": "http://durward.internal/mcp/docs"}]}
        d.extra["mcp_servers"] = {n: {"command": ["true"], "policy": "other"} for n in ("docs", "more")}
        d.save()
        t.write(top + "/home/pkg/bin/toy", TOY, 0o755)
        t.write(top + "/home/pkg/lib/words.sh", "say() { echo \"$@\"; }\n")
        t.write(top + "/home/pkg/pyvenv.cfg", "")
        self.bin = t.mkdir(top + "/home/bin")
        os.symlink("../pkg/bin/toy", os.path.join(self.bin, "toy"))
        os.symlink("/bin/sh", os.path.join(self.bin, "toysh"))
        self.profiles = t.mkdir(top + "/home/.config/durward/profiles")
        t.write(top + "/home/.config/durward/profiles/toy.yaml", PROFILE, 0o600)
        self.env = {"PATH": "%s:%s" % (self.bin, d.env["PATH"]), "TOY_KEY": self.secret.decode()}
        self.homes = os.path.join(d.dir, "state-homes")
        self.outputs = []

    def command(self, *argv, env=None, **kw):
        r = self.d.command(*argv, env=dict(self.env, **(env or {})), **kw)
        self.outputs += [r.stdout, r.stderr]
        return r

    def run(self, *argv, flags=(), **kw):
        return self.command("run", "-c", self.d.conf, *flags, *argv, **kw)

    def home(self, verb, *argv):
        return self.command("home", verb, "-c", self.d.conf, *argv)

    def names(self):
        return [x["home"] for x in json.loads(self.home("ls", "--json").stdout)["homes"]]


def said(r, what):
    return next((x[len(what) + 1:] for x in r.stdout.splitlines() if x.startswith(what + " ")), None)


def runs(t, s):
    d = s.d
    r = s.run("toy", "call")
    t.eq((r.returncode, r.stderr), (0, ""), "durward run NAME, without another word")
    t.eq(said(r, "words"), "--first call", "its own words come first, then the user's")
    t.has(r.stdout, '"called"', "its host answered")
    got = [x.get("authorization") for x in s.api.requests]
    t.eq(got, ["Bearer " + s.secret.decode()], "with the key, which was added outside")
    key = said(r, "variable")
    file = json.loads(said(r, "file"))
    t.ok(key.startswith("dwd_") and file == {"key": key, "last": key[-6:], "in": d.work},
         "the variable and the file hold one placeholder", r.stdout)
    t.eq([x.get("policy") for x in d.kinds("admitted")], ["toy"], "under a policy of its own")
    r = s.run("toy")
    t.eq((said(r, "variable"), json.loads(said(r, "file"))["key"]), (key, key), "placeholders stay with the home")
    t.ok(said(r, "times") == "2" and "cache kept" not in r.stdout, "the home is kept, but for what is to be forgotten",
         r.stdout)
    t.eq(s.names(), ["toy-work-" + s.names()[0][-8:]], "one home a profile and directory, and its name says which")
    t.eq(os.stat(os.path.join(s.homes, s.names()[0])).st_mode & 0o777, 0o700, "nobody else sees it")
    t.eq(json.loads(said(r, "json")), {}, "MCP servers that the policy does not name are not there")
    r = s.run("toy", flags=["--policy", "other", "--home", "served"])
    t.eq(json.loads(said(r, "json") or "null"), {"docs": {"command": "/run/durward/durward-mcp", "args": ["docs"]}},
         "those it names are written into the program's file") or t.diag(r.stdout + r.stderr)
    t.eq(said(r, "toml"), '[mcp_servers.docs];command = "/run/durward/durward-mcp";args = ["docs"];;', "in its form")
    elsewhere = t.mkdir("d/elsewhere")
    r = s.run("toy", cwd=elsewhere)
    t.ok(said(r, "times") == "1" and said(r, "variable") != key, "another directory has another home", r.stdout)
    r = s.run("toy", flags=["--home", "mine"])
    t.eq(said(r, "times"), "1", "--home names one")
    r = s.run("toy", flags=["--home", "mine"], cwd=elsewhere)
    t.eq(said(r, "times"), "2", "wherever it is used")
    t.ok(os.listdir(d.env["HOME"]) and not os.path.exists(os.path.join(d.env["HOME"], ".toy")),
         "the user's own home is not touched")
    return key


def binds(t, s):
    """What the user binds is not the home's to change, and a sandbox's files do not choose binds."""
    kept = t.mkdir("d/kept")
    t.write("d/kept/file", "kept\n")
    home = s.d.env["HOME"]
    for target in (".cache", ".cache/below"):
        r = s.run("toy", flags=["--home", "bound", "--bind", "%s:%s/%s" % (kept, home, target)])
        t.ok(r.returncode == 0 and os.listdir(kept) == ["file"], "a writable bind at %s is not forgotten" % target, r.stderr)
    own = t.mkdir("d/own")
    t.write("d/own/auth.json", "mine\n")
    s.home("renew", "bound")
    r = s.run("toy", flags=["--home", "bound", "--bind", "%s:%s/.toy" % (own, home)])
    with open(os.path.join(own, "auth.json")) as f:
        t.eq(f.read(), "mine\n", "nor is a file in a bind written anew")
    project, app = t.mkdir("d/project"), t.mkdir("d/app")
    for name in ("d/app/bin", "d/app/lib", "d/project/bin"):
        t.mkdir(name)
    t.write("d/app/bin/run", "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0o755)
    t.write("d/app/lib/private", "private\n")
    t.write("d/project/bin/toy", "#!%s/bin/run\nls %s\n" % (app, app), 0o755)
    os.symlink(os.path.join(app, "bin/run"), os.path.join(project, "bin/toysh"))
    path = {"PATH": "%s/bin:%s" % (project, s.env["PATH"])}
    r = s.run("toy", cwd=project, env=path)
    t.ok(r.returncode == 0 and "words" in r.stdout and "private" not in r.stdout + r.stderr,
         "a program in a directory that the sandbox can write is passed over", r.stdout, r.stderr)
    r = s.run("--", "sh", "-c", "ls %s; exit 0" % app, flags=["--profile", "toy"], cwd=project, env=path)
    t.ok("lib" not in r.stdout, "and chooses no bind", r.stdout, r.stderr)
    r = s.run("--", "true", flags=["--policy", "other"], cwd=os.path.dirname(os.path.dirname(s.profiles)))
    t.ok(r.returncode == 125 and "the folder of" in r.stderr, "the profiles' folder is given to no sandbox", r.stderr)


def interpreters(t, s):
    """As pip and uv make environments: their python is a link to an installation's, by a folder that is a link itself; what
    that one needs lies beside it."""
    at = t.mkdir("d/environments")
    for name in ("new/bin", "new/lib", "venv/bin"):
        t.mkdir("d/environments/" + name)
    shutil.copy("/bin/sh", os.path.join(at, "new/bin/run3"))
    t.write("d/environments/new/lib/kept", "kept\n")
    t.write("d/environments/venv/pyvenv.cfg", "")
    for link, to in (("line", "new"), ("new/bin/run", "run3"), ("venv/bin/python", "run"), ("venv/bin/run", at + "/line/bin/run")):
        os.symlink(to, os.path.join(at, link))
    t.write("d/environments/venv/bin/toy", "#!%s/venv/bin/python\nread -r x <%s/line/lib/kept; echo found $x\n" % (at, at), 0o755)
    r = s.run("toy", env={"PATH": "%s/venv/bin:%s" % (at, s.d.env["PATH"])})
    t.eq((r.returncode, r.stdout), (0, "found kept\n"), "an environment's interpreter comes with its installation") or t.diag(r.stderr)


def removes(t, s):
    r = s.run("--", "sh", "-c", "mkdir -p ~/go/mod/x && touch ~/go/mod/x/f && chmod -R a-w ~/go", flags=["--profile", "toy", "--home", "modules"])
    t.eq(r.returncode, 0, "a home with folders that cannot be written")
    r = s.home("rm", "modules")
    t.ok(r.returncode == 0 and "modules" not in s.names(), "is removed", r.stderr)


def words(t, s):
    r = s.run("--", "sh", "-c", "toy", env={"PATH": s.d.env["PATH"]}, flags=["--policy", "other"])
    t.eq(r.returncode, 127, "without a profile its program is not inside")
    r = s.run("--", "toy", flags=["--policy", "other"])
    t.eq(r.returncode, 127, "behind -- a profile's name is a command")
    r = s.run("--", "sh", "-c", "cat ~/.toy/auth.json; cat ~/times", flags=["--profile", "toy"])
    t.ok(r.returncode == 0 and '"key": "dwd_' in r.stdout, "--profile NAME -- CMD runs another command", r.stdout, r.stderr)
    r = s.run("--", "sh", "-c", "cat ~/.netrc; ls -a ~", flags=["--profile", "toy"])
    t.ok("password dwd_" in r.stdout, "a file of logins in a kept home is seen", r.stdout)
    t.ok(".other" not in r.stdout, "one for a key that is not there is left out", r.stdout)
    r = s.run("toy", flags=["--telemetry"])
    t.eq(said(r, "quiet"), "no", "--telemetry leaves out what keeps it quiet")
    t.has(s.run("toy", "report", flags=["--telemetry"]).stdout, "report 200", "and lets it report")
    r = s.run("toy", "report")
    t.ok(said(r, "quiet") == "yes" and "report 000" in r.stdout and len(s.report.requests) == 1,
         "which it does not do otherwise", r.stdout)
    r = s.run("true", flags=["--telemetry", "--policy", "other"])
    t.has(r.stderr, "--telemetry goes with a profile", "and which only a profile knows")
    r = s.run("sh", "-c", "echo here >>~/f; wc -l <~/f", flags=["--home", "plain", "--policy", "other"])
    r = s.run("sh", "-c", "echo here >>~/f; wc -l <~/f", flags=["--home", "plain", "--policy", "other"])
    t.eq(r.stdout.strip(), "2", "--home keeps a home without a profile")


def missing(t, s):
    r = s.run("toy", env={"TOY_KEY": ""})
    t.ok(r.returncode == 125 and "export TOY_KEY (or OLD_TOY_KEY) before" in r.stderr and "secrets: { toy: { file:" in r.stderr,
         "a key that is not there: what to do", r.stderr)
    r = s.run("toy", "call", env={"TOY_KEY": "", "OLD_TOY_KEY": s.secret.decode()})
    t.has(r.stdout, '"called"', "the second variable counts too")
    before = s.d.secrets
    s.d.secret("toy", s.secret)
    s.d.save()
    r = s.run("toy", "call", env={"TOY_KEY": ""})
    t.has(r.stdout, '"called"', "and so does a secret of the configuration's")
    s.d.secrets = {k: v for k, v in before.items() if k != "toy"}
    s.d.save()
    r = s.run("toy", env={"PATH": s.d.env["PATH"]})
    t.ok(r.returncode == 125 and "toy is not in PATH" in r.stderr, "a program that is not there is named", r.stderr)
    r = s.run("true", flags=["--profile", "toi"])
    t.ok(r.returncode == 125 and "did you mean 'toy'" in r.stderr, "a profile that is not there too", r.stderr)
    r = s.run("toy", flags=["--backend", "docker"])
    t.ok(r.returncode == 125 and "cannot keep a home" in r.stderr, "a backend that keeps no home says so", r.stderr)
    r = s.run("true", flags=["--home", "../x", "--policy", "other"])
    t.ok(r.returncode == 125 and "not a home's name" in r.stderr, "a home's name is no path", r.stderr)


def kept_apart(t, s):
    """The homes are Durward's: no bind shows them. A profile that a sandbox could write is refused."""
    r = s.run("true", flags=["--bind", s.homes, "--policy", "other"])
    t.ok(r.returncode == 125 and "keeps the homes" in r.stderr, "homes cannot be bound", r.stderr)
    r = s.run("toy", flags=["--bind", s.profiles])
    t.ok(r.returncode == 125 and "the profile" in r.stderr, "nor a profile, if it could be written", r.stderr)
    path = os.path.join(s.profiles, "toy.yaml")
    os.chmod(path, 0o666)
    r = s.run("toy")
    t.ok(r.returncode == 125 and "can be written by others" in r.stderr, "nor is one read that others write", r.stderr)
    os.chmod(path, 0o600)


def locked(t, s):
    p = t.popen([durward.program(), "run", "-c", s.d.conf, "toy", "wait"], env=dict(s.d.env, **s.env),
                cwd=s.d.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in p.stdout:
        if line == b"waiting\n":
            break
    name = next(x for x in s.names() if x.startswith("toy-work"))
    r = s.run("toy")
    t.ok(r.returncode == 125 and name in r.stderr and "in use" in r.stderr and "--home" in r.stderr,
         "a home has one sandbox at a time, and who comes second is told", r.stderr)
    r = s.run("toy", flags=["--home", "mine"])
    t.ok(r.returncode == 0, "another home is free", r.stderr)
    used = {x["home"]: x["used"] for x in json.loads(s.home("ls", "--json").stdout)["homes"]}
    t.ok(used[name] and not used["mine"], "`home ls` says which is in use", str(used))
    for verb in ("renew", "rm"):
        r = s.home(verb, name)
        t.ok(r.returncode == 1 and "in use" in r.stderr, "it is not changed meanwhile: " + verb, r.stderr)
    p.stdin.write(b"\n")
    p.stdin.close()
    p.wait(20)
    t.eq(s.run("toy").returncode, 0, "then it is free again")
    return name


def renewed(t, s, key, name):
    s.run("toy", "spoil")
    r = s.run("toy")
    t.ok(said(r, "file") == "spoilt", "what a program wrote in its files stays", r.stdout, r.stderr)
    t.eq(s.home("renew", name).returncode, 0, "home renew")
    r = s.run("toy", "call")
    other = said(r, "variable")
    t.ok(other != key and json.loads(said(r, "file"))["key"] == other and '"called"' in r.stdout,
         "gives other placeholders, and the files anew", r.stdout)
    r = s.run("--", "sh", "-c", "curl -sS -o /dev/null -w '%%{http_code}' -H 'Authorization: Bearer %s' "
              "https://api.toy.example/v1/x" % key, flags=["--profile", "toy"])
    t.eq(r.stdout, "403", "the former ones are worth nothing")
    s.run("toy", "link")
    r = s.run("toy", "call")
    t.ok(r.returncode != 0 or not os.path.exists("/etc/auth.json"), "a link that a sandbox left leads nowhere", r.stderr)
    t.ok(not os.path.exists("/etc/auth.json"), "nothing was written outside")
    t.eq(s.home("rm", name).returncode, 0, "home rm")
    t.ok(name not in s.names() and os.path.exists("/etc/passwd"), "removes it, and no more")
    t.has(s.home("rm", name).stderr, "there is no home", "once")


def commands(t, s):
    rows = json.loads(s.command("profile", "ls", "--json").stdout)["profiles"]
    built_in = [x["profile"] for x in rows if x["from"] == "built in"]
    t.ok({"claude", "codex", "gemini"} <= set(built_in) and any(
        x["profile"] == "toy" and x["from"].endswith("/profiles/toy.yaml") for x in rows), "profile ls", str(rows))
    t.has(s.command("profile", "show", "claude").stdout, "ANTHROPIC_API_KEY", "profile show")
    r = s.command("profile", "new", "mine")
    t.eq((r.returncode, r.stdout.strip()), (0, os.path.join(s.profiles, "mine.yaml")), "profile new writes a file")
    t.eq(s.command("profile", "show", "mine").returncode, 0, "which is good as it is")
    t.has(s.command("profile", "new", "mine").stderr, "there already", "and is not written over")
    s.command("profile", "new", "--from", "claude", "claude")
    t.has(json.dumps(json.loads(s.command("profile", "ls", "--json").stdout)), "profiles/claude.yaml",
          "one of the user's comes before a built in one")
    t.write("d/home/.config/durward/profiles/bad.yaml", "command: x\nfiels: {}\n", 0o600)
    r = s.command("profile", "show", "bad")
    t.ok(r.returncode == 1 and "bad.yaml:2: " in r.stderr and "files" in r.stderr, "what is wrong is told with its line",
         r.stderr)
    t.eq(s.command("profile", "ls").returncode, 1, "by profile ls too")
    r = s.run("bad")
    t.ok(r.returncode == 125 and "bad.yaml:2: " in r.stderr, "and by run", r.stderr)


def clean(t, s):
    """No copy of the secret in a home, an output or a file of a sandbox's."""
    found = [os.path.join(at, f) for top in (s.homes, s.d.work) for at, _, files in os.walk(top) for f in files
             if s.secret in open(os.path.join(at, f), "rb").read()]
    t.eq(found, [], "no file of a home or of the project holds the secret")
    t.ok(not any(s.secret.decode() in x for x in s.outputs), "and no output")


def ordinary(t):
    """The same for a user who is not root: a home that is kept, one sandbox at a time, renewed and removed."""
    if os.geteuid() != 0:
        return  # all of this test was an ordinary user's
    s, uid = Toy(t, "u"), 61657
    stage = t.mkdir("stage")
    prefix = os.path.dirname(os.path.dirname(durward.program()))
    for part in ("bin", "libexec"):
        shutil.copytree(os.path.join(prefix, part), os.path.join(stage, part))
    for at, dirs, files in os.walk(s.d.dir):
        for name in [at] + [os.path.join(at, x) for x in dirs + files]:
            os.lchown(name, uid, uid)

    def call(*argv):
        r = subprocess.run([os.path.join(stage, "bin/durward"), *argv], user=uid, group=uid, extra_groups=[],
                           env=dict(s.d.env, **s.env), cwd=s.d.work, capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL)
        s.outputs += [r.stdout, r.stderr]
        return r

    first = call("run", "-c", s.d.conf, "toy", "call")
    if "user namespaces are not available" in first.stderr:
        t.skip("kept homes of an ordinary user", "user namespaces are not available here")
        return
    t.ok(first.returncode == 0 and '"called"' in first.stdout, "an ordinary user's toy runs", first.stdout, first.stderr)
    second = call("run", "-c", s.d.conf, "toy")
    key = said(first, "variable")
    t.eq((said(second, "times"), said(second, "variable")), ("2", key), "its home is kept, and its placeholders")
    home = json.loads(call("home", "ls", "-c", s.d.conf, "--json").stdout)["homes"][0]["home"]
    kept = os.path.join(s.homes, home)
    owners = {os.lstat(os.path.join(at, x)).st_uid for at, dirs, files in os.walk(kept) for x in dirs + files}
    t.eq((owners, os.stat(kept).st_mode & 0o777), ({uid}, 0o700), "what lies in it is that user's, and nobody else sees it")
    p = t.popen([os.path.join(stage, "bin/durward"), "run", "-c", s.d.conf, "toy", "wait"], env=dict(s.d.env, **s.env),
                cwd=s.d.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=uid, group=uid,
                extra_groups=[], preexec_fn=None)
    for line in p.stdout:
        if line == b"waiting\n":
            break
    t.has(call("run", "-c", s.d.conf, "toy").stderr, "in use", "one sandbox at a time")
    p.stdin.close()
    p.wait(20)
    t.eq(call("home", "renew", "-c", s.d.conf, home).returncode, 0, "it is renewed")
    t.ok(said(call("run", "-c", s.d.conf, "toy"), "variable") != key, "with other placeholders")
    t.eq((call("home", "rm", "-c", s.d.conf, home).returncode, os.path.exists(kept)), (0, False), "and removed")


def main(t):
    s = Toy(t)
    key = t.part(runs, t, s)
    for part in (words, binds, interpreters, removes, missing, kept_apart):
        t.part(part, t, s)
    name = t.part(locked, t, s)
    t.part(renewed, t, s, key, name)
    t.part(clean, t, s)
    t.part(commands, t, s)
    t.part(ordinary, t)


tap.run(main)
