#!/usr/bin/python3 -B
"""What readers are told to type: each block of README.md, doc/tutorial.md and doc/how-to is run, or
says in the line above it why not; then its options are looked up. Each configuration is checked. Of the
reference pages the same is held of configurations, commands and options, and of Python that it compiles
and imports what is there. The
recording is what these commands print: --write runs them and writes README.md and doc/recording.cast."""
import ast
import json
import os
import re
import shlex
import subprocess
import sys
import time

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scene, tap  # noqa: E402

FENCE = re.compile(r"^( *)(?:<!-- (?P<mark>[^\n]*) -->\n\1)?```(?P<kind>\w*)\n(?P<text>.*?)^\1```$", re.M | re.S)
REASON = 20  # characters: less is no reason
RECORDING = re.compile(r"(<!-- recording -->\n```\n)(.*?)(```\n<!-- end)", re.S)
STEPS = ("durward explain GET https://api.github.com/repos/acme/site",
         "durward run --policy coder -- bash",
         'echo $GITHUB_TOKEN',
         "curl -sS -o /dev/null -w '%{http_code}\\n' -H \"Authorization: Bearer $GITHUB_TOKEN\" https://api.github.com/repos/acme/site",
         "curl -sS -X POST -d '{}' https://api.github.com/gists",
         "exit",
         "durward audit query --decision deny",
         "durward audit verify")
INSIDE = slice(2, 5)  # those of them that are typed in the sandbox


def pages():
    how = os.path.join(durward.TOP, "doc/how-to")
    return ["README.md", "doc/tutorial.md"] + ["doc/how-to/" + x for x in sorted(os.listdir(how)) if x.endswith(".md")]


REFERENCE = ["doc/integrations.md", "doc/durward.yaml.5.md", "doc/durward-audit.1.md", "doc/durward-profile.5.md", "deploy/README.md",
             "sdk/python/README.md", "sdk/typescript/README.md"]
INDENTED = re.compile(r"(?:^|\n\n)((?: {4}.*\n(?:\n(?= {4}))?)+)")
LEFT_OUT = re.compile(r"\.\.\.|…|<[a-z ]+>|^ *#", re.M)  # an example that is not whole


def read(page):
    with open(os.path.join(durward.TOP, page), encoding="utf-8") as f:
        return f.read()


def blocks(text):
    """-> (mark, kind, text without its indentation)"""
    for m in FENCE.finditer(text):
        yield m["mark"] or "", m["kind"], re.sub(r"^" + m[1], "", m["text"], flags=re.M)


class Reader:
    """Somebody at a shell: the configuration in its usual place, the tokens in the environment."""

    def __init__(self, s):
        self.s, d = s, s.d
        home = d.env["HOME"]
        d.conf = os.path.join(home, ".config/durward/durward.yaml")
        os.makedirs(os.path.dirname(d.conf), exist_ok=True)
        self.env = dict(d.env, PATH=os.path.dirname(durward.program()) + ":" + d.env["PATH"],
                        GITHUB_TOKEN=s.github_secret.decode(), OPENAI_API_KEY=s.openai_secret.decode(),
                        NO_COLOR="1")

    def configure(self, page):
        """As the page has it; with the tests' origins and folders."""
        c = dict(page, upstream={"ca": [self.s.d.ca.pem], "resolve": self.s.d.resolve})
        c.update(audit={"dir": self.s.d.audit_dir}, ca={"dir": self.s.d.ca_dir})
        self.s.d.save(json.dumps(c))

    def type(self, text):
        return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self.s.d.work, env=self.env, timeout=60,
                              preexec_fn=tap.die_with_parent)


PROFILES = {n[:-5] for n in os.listdir(os.path.join(durward.TOP, "rules/profiles")) if n.endswith(".yaml")}


def commands(text):
    """Each `durward …` of a block as words."""
    for line in text.replace("\\\n", " ").split("\n"):
        words = shlex.split(line, comments=True)
        while "durward" in words:
            words = words[words.index("durward") + 1:]
            if words[:1] == ["durward"]:  # a service of that name
                continue
            own = words[:words.index("--")] if "--" in words else words
            ends = [i for i, w in enumerate(own) if w in ("&&", "||", "|", ";", "&", ">")]
            own = own[:ends[0]] if ends else own
            if own[:1] == ["run"]:  # behind a profile's name stand words of its program's
                own = own[:next((i + 1 for i, w in enumerate(own) if w in PROFILES), len(own))]
            if own and re.fullmatch("[a-z]+", own[0]):
                yield own


def options(d, text):
    """What the help does not know of the commands in this block."""
    for own in commands(text):
        verbs = [w for w in own[:2] if re.fullmatch("[a-z]+", w)]
        helps = d.command(*verbs[:1], "--help").stdout + d.command(*verbs, "--help").stdout
        if "usage" not in helps.lower():
            yield "durward %s: no such command" % " ".join(verbs)
        for option in [w for w in own if re.match("--[a-z]", w)]:
            if option.split("=")[0] not in helps:
                yield "durward %s has no %s" % (" ".join(verbs), option)


def configuration(d, mark, text):
    """What is wrong with a block of YAML."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as e:
        return str(e)
    if mark.startswith("yaml: "):
        return "" if len(mark) > REASON else "the reason is missing"
    if mark == "part: rules":
        value = {"version": 1, "policies": {"p": {"rules": value}}}
    elif mark == "part: top":
        value = dict(value, version=1, policies={"p": {"rules": []}})
    elif "version" not in value:
        return "neither a whole configuration nor marked as a part"
    r = d.command("check", "-", stdin=json.dumps(value).encode())
    return "" if r.returncode == 0 else r.stdout + r.stderr


def served(t, s, reader):
    """A daemon for a page that has one; False where FUSE is not to be had, which such a page needs."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return False
    if "DURWARD_SOCKET" not in reader.env:
        s.d.serve()
        reader.env["DURWARD_SOCKET"] = s.d.socket
    return True


def page_holds(t, s, page):
    reader, config = Reader(s), {"version": 1, "policies": {}}
    for n, (mark, kind, text) in enumerate(blocks(read(page)), 1):
        what = "%s, block %d" % (page, n)
        if kind == "yaml":
            wrong = configuration(s.d, mark, text)
            t.ok(not wrong, what + " is a configuration that is taken", wrong, text)
            config = yaml.safe_load(text) if re.match("version:", text) else config
        elif kind == "json":
            t.ok(mark == "json" and json.loads(text), what + " is JSON")
        elif kind == "sh" and mark == "run":
            reader.configure(config)
            r = reader.type(text)
            t.ok(r.returncode == 0, what + " does what it says", "exit %d" % r.returncode, text, r.stdout.decode("utf-8", "replace"))
            t.ok(not s.scanner.search(r.stdout, what), what + " shows no secret")
        elif kind == "sh" and mark == "served":
            if served(t, s, reader):
                r = reader.type(text)
                t.ok(r.returncode == 0, what + " does what it says", "exit %d" % r.returncode, text,
                     r.stdout.decode("utf-8", "replace"), s.d.diagnostics() if r.returncode else "")
                t.ok(not s.scanner.search(r.stdout, what), what + " shows no secret")
            else:
                t.skip(what, "FUSE cannot be mounted here")
        elif kind == "sh":
            t.ok(mark.startswith("not run: ") and len(mark) > REASON, what + " is run, or says why not", mark, text)
            wrong = list(options(s.d, text))
            t.ok(not wrong, what + " has commands and options that exist", *wrong)
        else:
            t.ok(kind == "" and (mark == "recording" or not re.search(r"^ *durward [a-z]+ ", text, re.M)),
                 what + " is a picture, or the recording", kind, text)
    for path in re.findall(r"<!-- file: (\S+) -->", read(page)):
        r = s.d.command("check", os.path.join(durward.TOP, path))
        t.ok(r.returncode == 0, "%s: %s is taken" % (page, path), r.stdout, r.stderr)


def examples(text):
    """-> (kind, text) of each block, in fences or indented; kinds that are not said are guessed."""
    for _, kind, block in blocks(text):
        yield kind, block
    for m in INDENTED.finditer(FENCE.sub("", text)):
        block = re.sub(r"^ {4}", "", m[1], flags=re.M)
        yield ("python" if re.match(r"(from|import) ", block) else "sh" if re.match(r"\S*durward ", block) else
               "yaml" if re.match(r"[a-z_-]+:( |\n)|- [a-z{]", block) else ""), block


TOP_KEYS = {"version", "secrets", "policies", "listen", "audit", "ca", "upstream", "controller", "limits", "identity", "tracing"}
OF_POLICY = {"rules", "prices", "env", "budget", "sandbox"}


def part_of(text):
    """The configuration that a piece of YAML is meant as; None: it leaves something out, or is of another file."""
    try:
        value = yaml.safe_load(text.replace("[...]", "[]"))
    except yaml.YAMLError:
        return None if LEFT_OUT.search(text) else ""
    if "..." in json.dumps(value):
        return None
    if isinstance(value, list) and all(isinstance(x, dict) and {"allow", "deny", "ask"} & set(x) for x in value):
        value = {"rules": value}
    if not isinstance(value, dict):
        return None
    if set(value) <= OF_POLICY:
        value = {"policies": {"p": dict({"rules": []}, **value)}}
    if not set(value) <= TOP_KEYS:
        return None
    policies = {name: dict({"rules": []}, **p) for name, p in (value.get("policies") or {"p": {}}).items()}
    return dict(value, version=1, policies=policies)


def check(d, value):
    """What is wrong with it, when the secrets and policies that it names and leaves to the rest are there."""
    for _ in range(12):
        r = d.command("check", "-", stdin=json.dumps(value).encode())
        said = r.stdout + r.stderr
        secrets, policies = set(re.findall(r"(?:no|the) secret '([\w-]+)'", said)), set(re.findall(r"no policy '([\w-]+)'", said))
        if r.returncode == 0 or not secrets | policies:
            break
        value = dict(value, secrets=dict(value.get("secrets", {}), **{x: {"env": "X"} for x in secrets}),
                     policies=dict(value["policies"], **{x: {"rules": []} for x in policies}))
    return "" if r.returncode == 0 else said


def python_holds(text):
    """What is wrong with it: it has to compile, and what it imports of ours has to be there."""
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        return str(e)
    source = ""
    for part in ("durward/__init__", "durward_deepagents/__init__", "durward_frameworks/openai_agents", "durward_frameworks/autogen",
                 "durward_frameworks/smolagents", "durward_frameworks/openai_sandbox", "durward_frameworks/crewai"):
        with open(os.path.join(durward.TOP, "sdk/python/src", part + ".py"), encoding="utf-8") as f:
            source += f.read()
    names = [a.name for x in ast.walk(tree) if isinstance(x, ast.ImportFrom) and (x.module or "").startswith("durward") for a in x.names]
    return ", ".join(x + " is not there" for x in names if not re.search(r"\b%s\b" % x, source))


def typescript_holds(text):
    """What it imports of ours and is not there."""
    for names, module in re.findall(r"import \{([^}]*)\} from \"(durward(?:/deepagents)?)\"", text):
        with open(os.path.join(durward.TOP, "sdk/typescript/src", "index.ts" if module == "durward" else "deepagents.ts"), encoding="utf-8") as f:
            source = f.read()
        for name in [x.split()[-1] for x in names.split(",") if x.strip()]:
            if not re.search(r"\b%s\b" % name, source):
                return "%s has no %s" % (module, name)
    return ""


def reference_holds(t, s, page):
    held = 0
    for n, (kind, text) in enumerate(examples(read(page)), 1):
        what, wrong = "%s, example %d" % (page, n), []
        if kind == "python":
            wrong = [python_holds(text)]
        elif kind == "ts":
            wrong = [typescript_holds(text)]
        elif kind == "yaml":
            value = part_of(text)
            if value is None:
                continue
            wrong = [check(s.d, value) if value else "no YAML"]
        elif kind in ("sh", "") and re.search(r"^ *(?:[A-Z_]+=\S+ +)*durward [a-z]+", text, re.M):
            wrong = list(options(s.d, "\n".join(x for x in text.split("\n") if re.match(r" *(?:[A-Z_]+=\S+ +)*durward [a-z]+", x))))
        else:
            continue
        held += 1
        t.ok(not any(wrong), "%s (%s) holds" % (what, kind or "sh"), *[x for x in wrong if x], text)
    t.ok(held > 0, "%s: %d examples" % (page, held))


def record(s):
    """The session of STEPS -> its text, and events of an asciicast."""
    reader = Reader(s)
    config = [b for m, k, b in blocks(read("README.md")) if k == "yaml" and b.startswith("version:")][0]
    reader.configure(yaml.safe_load(config))
    begun, events, text = time.monotonic(), [], []

    def say(line):  # the folder of the log is named as it would be without the tests'
        line = line.replace(" --dir " + s.d.audit_dir, "").replace(s.d.audit_dir, "/var/log/durward")
        events.append([round(time.monotonic() - begun, 3), "o", line.replace("\n", "\r\n")])
        text.append(line)
    for i, step in enumerate(STEPS):
        if i == INSIDE.start - 1:
            say("$ %s\n" % step)
            script = "\n".join("echo %s; %s" % (shlex.quote("sandbox$ " + x), x) for x in STEPS[INSIDE])
            say(reader.type("durward run --policy coder -- bash -c %s" % shlex.quote(script)).stdout.decode())
        elif i >= INSIDE.stop - 1 and step == "exit" or i in range(*INSIDE.indices(len(STEPS))):
            continue
        else:
            say("$ %s\n" % step)
            say(reader.type(step + " || true").stdout.decode())
    return "".join(text), events


def same(text):
    """What stays from run to run."""
    text = re.sub(r"\bsb-[\w-]+|\b\d{4}-\d\d-\d\dT[\d:.]+Z|ghp_\w+|/tmp/\S+|\bcheckpoint.*", "#", text)
    return re.sub(r"[0-9a-f]{16,}|\d+", "#", re.sub(r"[ \t]+", " ", text))


def write(text, events):
    path = os.path.join(durward.TOP, "README.md")
    page = read("README.md")
    with open(path, "w", encoding="utf-8") as f:
        f.write(RECORDING.sub(lambda m: m[1] + text + m[3], page))
    with open(os.path.join(durward.TOP, "doc/recording.cast"), "w", encoding="utf-8") as f:
        f.write(json.dumps({"version": 2, "width": 100, "height": 30, "title": "Durward"}) + "\n")
        f.writelines(json.dumps(e, ensure_ascii=False) + "\n" for e in events)


def main(t):
    s = scene.Scene(t)
    if not s.d.command("--version").stdout.startswith("durward "):
        raise tap.Skip("the program does not start")
    text, events = record(s)
    t.ok("sandbox$ " in text and "denied denied_by_rule" in text and "\n200\n" in text, "the session of the recording runs", text)
    t.ok(not s.scanner.search(text.encode(), "the recording"), "the recording shows no secret")
    if "--write" in sys.argv:
        write(text, events)
    kept = RECORDING.search(read("README.md"))
    t.eq(same(kept[2] if kept else ""), same(text), "README.md shows what these commands print")
    for page in pages():
        t.part(page_holds, t, scene.Scene(t, name=re.sub(r"\W", "-", page)), page)
    for page in REFERENCE:
        t.part(reference_holds, t, s, page)


tap.run(main, timeout=300)
