"""Coding agents of others, as their vendors deliver them: where each lies, which API it speaks and how it is told to
do one task and end; and that task done by it, bare and inside of `durward run`. Which versions: clients/coding/AGENTS."""
import json
import os
import platform
import time

from . import bare, durward, models, origin, scan

PROMPT = models.MARK + " Read door.txt, replace shut by kept in it, then run the command that you are told."
REFUSED = "paste.acme.dev"  # no rule names it, and it is nobody's
COMMAND = "cp door.txt told.txt; curl -sS -m 20 https://%s/x" % REFUSED
HOSTS = {"anthropic": "api.anthropic.com", "openai": "api.openai.com", "gemini": "generativelanguage.googleapis.com"}
PREFIX = {"anthropic": "sk-ant-api03-", "openai": "sk-proj-", "gemini": "AIza"}
KIND = {"anthropic": {"kind": "anthropic"}, "openai": {"kind": "openai"}, "gemini": {}}
# What a sandbox leaves in its home and in /tmp, and its environment, for a scan.
AFTER = ("s=$?; find ~ /tmp /dev/shm -xdev -type f -size -2048k -print0 2>/dev/null | "
         "tar -cf left.tar --null -T - 2>/dev/null; printenv >environment; exit $s")
BIN = "node_modules/.bin/"
CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


class Agent:
    """api: which double it speaks with. key: the variable of its key. env: more of them. settings: {file of its home:
    its content}. argv: how it is started. elsewhere: other hosts that it asks, which answer 404 in the bare run."""

    def __init__(self, name, api, key, program, argv, env=None, settings=None, node=False, elsewhere=()):
        self.name, self.api, self.key, self.program, self.host = name, api, key, program, HOSTS[api]
        self.env, self.settings, self.node, self.elsewhere = dict(env or {}), dict(settings or {}), node, elsewhere
        self._argv = argv

    @property
    def folder(self):
        return os.path.join(durward.clients_dir(), "coding", self.name)

    def missing(self):
        """None, or why it cannot be run."""
        if os.path.exists(os.path.join(self.folder, self.program)):
            return None
        return reasons().get(self.name, "it is not there: run tests/functional/clients/coding/setup DIR " + self.name)

    def binds(self):
        """What a sandbox needs to run it."""
        parts = [os.path.join("coding", self.name)] + (["coding/node"] if self.node else [])
        out = durward.client_binds(*parts)
        python = os.path.realpath(os.path.join(self.folder, "bin", "python3"))
        if os.path.exists(python) and not python.startswith("/usr/"):
            prefix = os.path.dirname(os.path.dirname(python))
            out.append("%s:%s:ro" % (prefix, prefix))
        return out

    def variables(self):
        """The environment that its user gives it, without the key."""
        path = SYSTEM
        if self.node:
            path = os.path.join(durward.clients_dir(), "coding/node/node_modules/node-linux-%s/bin:" % CPU) + path
        return dict(self.env, PATH=path)

    def words(self):
        """Its arguments."""
        return list(self._argv)

    @property
    def caller_key(self):
        """The variable in which the caller of its profile has the key."""
        return {"CODEX_API_KEY": "OPENAI_API_KEY", "COPILOT_PROVIDER_API_KEY": "OPENAI_API_KEY",
                "LLM_API_KEY": "OPENAI_API_KEY"}.get(self.key, self.key)

    def shell(self, after=""):
        """Its settings, what it knows of the key, the program, and what comes after it."""
        lines = ["mkdir -p ~/%s; cat >~/%s <<'END'\n%s\nEND" % (os.path.dirname(f), f, json.dumps(x))
                 for f, x in self.settings.items()]
        words = " ".join("'%s'" % x for x in [os.path.join(self.folder, self.program)] + self._argv)
        return "\n".join(lines + ["printenv %s >key.txt" % self.key, words, after]).rstrip("\n")


NO_STATISTICS = {"usageStatisticsEnabled": False}
AGENTS = (
    Agent("claude", "anthropic", "ANTHROPIC_API_KEY", "node_modules/@anthropic-ai/claude-code-linux-%s/claude" % CPU,
          ["-p", PROMPT, "--dangerously-skip-permissions"],
          env={"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}),
    Agent("codex", "openai", "CODEX_API_KEY", BIN + "codex",
          ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT], node=True,
          elsewhere=("chatgpt.com", "ab.chatgpt.com", "github.com", "api.github.com")),
    Agent("gemini", "gemini", "GEMINI_API_KEY", BIN + "gemini", ["-y", "--skip-trust", "-p", PROMPT], node=True,
          settings={".gemini/settings.json": {"security": {"auth": {"selectedType": "gemini-api-key"}},
                                              "privacy": NO_STATISTICS}}),
    Agent("opencode", "anthropic", "ANTHROPIC_API_KEY", "node_modules/opencode-linux-%s/bin/opencode" % CPU,
          ["run", "-m", "anthropic/claude-sonnet-4-5", PROMPT],
          env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}),
    Agent("qwen", "openai", "OPENAI_API_KEY", BIN + "qwen", ["-y", PROMPT], node=True,
          env={"OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-5"},
          settings={".qwen/settings.json": {"security": {"auth": {"selectedType": "openai"}}, "privacy": NO_STATISTICS}}),
    Agent("copilot", "openai", "COPILOT_PROVIDER_API_KEY", BIN + "copilot",
          ["-p", PROMPT, "--allow-all-tools", "--allow-all-paths", "--no-color"], node=True,
          env={"COPILOT_PROVIDER_BASE_URL": "https://api.openai.com/v1", "COPILOT_MODEL": "gpt-5",
               "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}),
    Agent("pi", "anthropic", "ANTHROPIC_API_KEY", BIN + "pi",
          ["--provider", "anthropic", "--model", "claude-sonnet-4-5", "--no-session", "-p", PROMPT], node=True,
          env={"PI_OFFLINE": "1"}),
    Agent("aider", "openai", "OPENAI_API_KEY", "bin/aider",
          ["--model", "openai/gpt-4o", "--yes-always", "--no-git", "--no-check-update", "--analytics-disable", "--auto-test",
           "--test-cmd", "sh task.sh", "--no-show-model-warnings", "--message", PROMPT, "door.txt"],
          env={"LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
    Agent("openhands", "openai", "LLM_API_KEY", "bin/openhands",
          ["--override-with-envs", "--headless", "-t", PROMPT],
          env={"LLM_MODEL": "openai/gpt-5", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
    Agent("goose", "openai", "OPENAI_API_KEY", "node_modules/@aaif/goose-binary-linux-%s/bin/goose" % CPU,
          ["run", "--no-session", "-t", PROMPT],
          env={"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-5", "GOOSE_DISABLE_KEYRING": "1",
               "GOOSE_TELEMETRY_ENABLED": "false"}),
)


def rows():
    """clients/coding/AGENTS: [(agent, where it comes from, package, version or why there is none)]"""
    with open(os.path.join(durward.SUITE, "clients", "coding", "AGENTS"), encoding="utf-8") as f:
        return [tuple(x.strip() for x in line.split("|")) for line in f if line.strip() and not line.startswith("#")]


def reasons():
    return {name: why for name, source, _, why in rows() if source == "none"}


def version(agent):
    return next("%s %s" % (package, version) for name, _, package, version in rows() if name == agent.name)


class Run:
    """One agent's turn at the task, with a folder, a double and a key of its own."""

    def __init__(self, t, agent, how):
        self.t, self.agent, self.d = t, agent, durward.Durward(t, "%s-%s" % (agent.name, how))
        self.task = models.Task(self.d.work, COMMAND)
        self.secret = scan.canary(PREFIX[agent.api])
        self.key = self.secret.decode()
        # An agent that only runs tests shows its model the output of one that failed.
        failing = COMMAND + "\n[ -e again ] || { touch again; exit 1; }\n"
        for name, text in (("door.txt", "shut\n"), ("task.sh", failing)):
            with open(os.path.join(self.d.work, name), "w") as f:
                f.write(text)
        self.double = origin.Origin(t, self.d.ca, agent.host, getattr(models, agent.api)(self.task))
        self.d.origin(agent.host, self.double)
        self.took = self.said = None
        self.how = "bare"

    def bare(self):
        origins = {self.agent.host: self.double}
        if self.agent.elsewhere:
            other = origin.Origin(self.t, self.d.ca, self.agent.elsewhere,
                                  lambda req, conn: conn.reply(req, 404, {"message": "Not Found"}))
            origins.update((h, other) for h in self.agent.elsewhere)
        b = bare.Bare(self.t, origins, self.d.work, self.d.env["HOME"])
        trust = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE")
        env = dict(self.agent.variables(), LANG="C.UTF-8", TERM="xterm", **{x: self.d.ca.pem for x in trust})
        self.said = b.run(["sh", "-c", self.agent.shell()], dict(env, **{self.agent.key: self.key}), timeout=180)
        self.took = b.took
        return self

    def inside(self):
        """By its profile, where Durward has one; else by the preset of its API, and settings as of a user."""
        known = self.d.command("profile", "ls").stdout.split()
        return self.by_profile() if self.agent.name in known else self.by_preset()

    def by_profile(self):
        """`durward run NAME`, and what is left in its home by a second run."""
        a, name = self.agent, self.agent.caller_key
        self.how = "durward run " + a.name
        self.d.policy("agent", [])
        self.d.save()
        path = os.path.dirname(os.path.join(a.folder, a.program)) + ":" + a.variables()["PATH"]
        env = dict(self.d.env, PATH=path, **{name: self.key})
        began = time.monotonic()
        self.said = self.d.command("run", "-c", self.d.conf, a.name, *a.words(), env=env, timeout=180)
        self.took = time.monotonic() - began
        after = self.d.command("run", "-c", self.d.conf, "--profile", a.name, "--", "sh", "-c",
                               "printenv %s >key.txt; %s" % (a.key, AFTER), env=env)
        self.said.stderr += after.stderr
        return self

    def by_preset(self):
        a = self.agent
        self.how = "durward run, use: " + a.api
        self.d.secret("key", self.secret, **KIND[a.api])
        self.d.policy("agent", [{"use": a.api, "secret": "key"}], {a.key: "{{placeholder key}}"})
        flags = [x for b in a.binds() for x in ("--bind", b)]
        flags += [x for k, v in a.variables().items() for x in ("-e", "%s=%s" % (k, v))]
        began = time.monotonic()
        self.said = self.d.run(["sh", "-c", a.shell(AFTER)], flags, timeout=180)
        self.took = time.monotonic() - began
        return self

    def read(self, name):
        try:
            with open(os.path.join(self.d.work, name), encoding="utf-8", errors="replace") as f:
                return f.read().strip()
        except FileNotFoundError:
            return None

    def done(self):
        """What of the task was not done."""
        found = [("it ended well", self.said.returncode == 0), ("the file is edited", self.read("door.txt") == "kept"),
                 ("the command was run", self.read("told.txt") == "kept"), ("its last words", models.LAST in self.printed()),
                 ("the model was told what is in the file", "shut" in self.task.heard(0))]
        return [what for what, good in found if not good]

    def printed(self):
        """What it printed, without line breaks that a narrow page put into it."""
        return " ".join(self.said.stdout.split())

    def shapes(self):
        """Where the requests carried the key: {(field, value with KEY)} of each, a list."""
        return [tuple((n, v.replace(self.key, "KEY")) for n, v in r.credentials()) for r in self.double.requests]

    def refused(self):
        """Refusals: (at the API's host, elsewhere), as texts."""
        got = [(x.get("authority"), "%s %s %s %s" % (x.get("authority"), x.get("method"), x.get("path"), x.get("code")))
               for x in self.d.kinds("denied") if x.get("authority") != REFUSED]
        return [w for h, w in got if h == self.agent.host], [w for h, w in got if h != self.agent.host]


def named(names):
    return [a for a in AGENTS if not names or a.name in names]
