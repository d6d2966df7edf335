"""The providers of hosted systems, through dcode's registry and factory, with the vendors' own packages against
doubles of their APIs. Where the sandbox would be, commands run in plain processes: in a network namespace
that reaches the proxy only (a lock that holds), or in none (one that does not). Prints a JSON line for
each behaviour."""
import json
import os
import subprocess
import sys
import traceback

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox
from deepagents_code.integrations.sandbox_factory import create_sandbox
from deepagents_code.integrations.sandbox_provider import SandboxError, SandboxNotFoundError
from deepagents_code.integrations.sandbox_registry import SandboxRegistry

import vendor_doubles as doubles

ASK = json.loads(sys.argv[1])
HOST, PORT = ASK["address"].rsplit(":", 1)
USER = "curl -sS -m 10 https://api.github.com/user"


def say(what, ok, why=""):
    print("\n@" + json.dumps({"what": what, "ok": bool(ok), "why": str(why)[:2000]}), flush=True)


class Local(BaseSandbox):
    """Commands of the sandbox's shell, with what the vendor was told to set."""

    def __init__(self, id, namespace, env):
        self._id, self.env = id, env
        self.prefix = ["ip", "netns", "exec", namespace] if namespace else []

    @property
    def id(self):
        return self._id

    def execute(self, command, *, timeout=None):
        env = ["%s=%s" % kv for kv in {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **self.env}.items()]
        r = subprocess.run(self.prefix + ["env", "-i", *env, "sh", "-c", command], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout or 60)
        return ExecuteResponse(output=r.stdout.decode("utf-8", "replace"), exit_code=r.returncode)

    def upload_files(self, files):
        for path, data in files:
            doubles.goes_along(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        return [FileUploadResponse(path=path) for path, _ in files]

    def download_files(self, paths):
        return [FileDownloadResponse(path=p, content=open(p, "rb").read()) for p in paths]


def trusted(env):
    """What every sandbox is given: the way to the proxy with a token, and what to trust."""
    return env.get("HTTPS_PROXY", "").startswith("http") and "@%s" % ASK["address"] in env["https_proxy"] and \
        all(k in env for k in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "GITHUB_TOKEN"))


# Each: the request that made a sandbox -> (its environment, [what must be true of the rest])

def modal(sent):
    asked = [m for k, m in sent if k == "create"][-1]
    made, net = asked.definition, asked.definition.network_access
    return dict(asked.secret_sources[-1].env.contents), {
        "the lock": list(net.allowed_cidrs) == [HOST + "/32"] and not net.allowed_domains and
        net.network_access_type == net.NetworkAccessType.ALLOWLIST,
        "the time": made.timeout_secs == 600, "labels": [(t.tag_name, t.tag_value) for t in asked.tags] == [("made-by", "durward")]}


def daytona(sent):
    body = sent.bodies("POST", "/sandbox")[-1]
    return body["env"], {"the lock": body["networkAllowList"] == HOST + "/32" and body["networkBlockAll"] is False and
                         not body.get("domainAllowList"),
                         "its proxy": body["outboundProxyUrl"] == body["env"]["HTTPS_PROXY"],
                         "the time": body["ttlMinutes"] == 10, "labels": body["labels"]["made-by"] == "durward"}


def runloop(sent):
    policy, body = sent.bodies("POST", "/v1/network-policies")[-1], sent.bodies("POST", "/v1/devboxes/create_and_await_running")[-1]
    return body["environment_variables"], {
        "the lock": policy["allowed_cidrs"] == [{"cidr": HOST + "/32", "ports": [{"port": int(PORT)}]}] and
        not any(policy[k] for k in policy if k.startswith("allow_")) and policy["allowed_hostnames"] == [] and
        body["launch_parameters"]["network_policy_id"] == "np-1",
        "the certificates": any("BEGIN CERTIFICATE" in v for v in body["file_mounts"].values()) and
        body["environment_variables"]["SSL_CERT_FILE"] in body["file_mounts"],
        "the time": body["launch_parameters"]["keep_alive_time_seconds"] == 600,
        "labels": body["metadata"]["made-by"] == "durward"}


def langsmith(sent):
    body = sent.bodies("POST", "/api/v2/sandboxes/boxes")[-1]
    return None, {"the lock": body["proxy_config"] == {"access_control": {"allow_list": [ASK["address"]]}},
                  "the time": body["idle_ttl_seconds"] == 600 and body["delete_after_stop_seconds"] == 60,
                  "labels": body["labels"]["made-by"] == "durward"}


def agentcore(sent):
    body, session = sent.bodies("PUT", "/code-interpreters")[-1], sent.bodies("PUT", "/code-interpreters/ci-1/sessions/start")[-1]
    return None, {"the lock": body["networkConfiguration"] == {"networkMode": "VPC", "vpcConfig": {
        "subnets": ["subnet-1"], "securityGroups": ["sg-1"]}}, "the time": session["sessionTimeoutSeconds"] == 600,
        "the certificate": body["certificates"] == [{"location": {"secretsManager": {"secretArn": "arn:ca"}}}],
        "labels": body["tags"]["made-by"] == "durward"}


def vercel(sent):
    body = sent.bodies("POST", "/v1/sandboxes")[-1]
    lock = body["networkPolicy"]
    return body["env"], {"the lock": lock.get("allowedCIDRs") == [HOST + "/32"] and not lock.get("allowedDomains") and
                         lock.get("mode") == "custom", "the time": body["timeout"] == 600000}


def e2b(sent):
    body = sent.bodies("POST", "/v2/sandboxes")[-1]
    return body["envVars"], {"the lock": body["network"] == {"denyOut": ["0.0.0.0/0"], "allowOut": [HOST + "/32"]},
                             "the time": body["timeout"] == 600, "labels": body["metadata"]["made-by"] == "durward"}


def sandbox0(sent):
    body = sent.bodies("POST", "/api/v1/sandboxes")[-1]
    config = body["config"]
    return config["env_vars"], {"the lock": config["network"] == {"mode": "block-all", "egress": {"trafficRules": [
        {"name": "durward", "action": "allow", "cidrs": [HOST + "/32"], "ports": [{"port": int(PORT), "protocol": "tcp"}]}]}},
        "the time": config["hard_ttl"] == 600}


def deno(sent):
    made = sent.made[-1]
    return made["env"], {"the lock": made["allow_net"] == [ASK["address"]], "the time": made["timeout"] == "600s",
                         "labels": made["labels"] == {"made-by": "durward"}}


def gone(name, sent):
    """How often a sandbox was deleted."""
    return {"modal": lambda: len([1 for k, _ in sent if k == "terminate"]),
            "daytona": lambda: sent.asked("DELETE", "/sandbox/box-1"),
            "runloop": lambda: min(sent.asked("POST", "/v1/devboxes/box-1/shutdown"),
                                   sent.asked("POST", "/v1/network-policies/np-1/delete")),
            "langsmith": lambda: sent.asked("DELETE", "/api/v2/sandboxes/boxes/box-1"),
            "agentcore": lambda: min(sent.asked("PUT", "/code-interpreters/ci-1/sessions/stop"),
                                     sent.asked("DELETE", "/code-interpreters/ci-1")),
            "vercel": lambda: sent.asked("POST", "/v1/sandboxes/box-1/stop"),
            "e2b": lambda: sent.asked("DELETE", "/sandboxes/box-1"),
            "deno": lambda: sent.asked("DELETE", "/api/v3/sandboxes/box-1"),
            "sandbox0": lambda: sent.asked("DELETE", "/api/v1/sandboxes/box-1")}[name]()


SENT = {"modal": modal, "daytona": daytona, "runloop": runloop, "langsmith": langsmith, "agentcore": agentcore,
        "vercel": vercel, "e2b": e2b, "sandbox0": sandbox0, "deno": deno}
OPTIONS = {"agentcore": {"subnets": ["subnet-1"], "security_groups": ["sg-1"], "execution_role": "arn:role", "certificate": "arn:ca"}}


def last(sent):
    """What was sent, without the long variables."""
    if isinstance(sent, list):
        return [(k, str(m)[-1500:]) for k, m in sent]
    return [(m, p, {k: v for k, v in b.items() if k not in ("env", "envVars")} if isinstance(b, dict) else b)
            for m, p, b in sent.sent]


def refused(name, **kw):
    try:
        with create_sandbox("durward-" + name, **kw):
            return ["nothing", ""]
    except (SandboxError, ValueError) as e:
        return [type(e).__name__, str(e)]


def files(name, box):
    """Whole files there and back, and exit codes: of our own adapters all that there is."""
    path, data = "/tmp/durward-vendor-%d/a b" % os.getpid(), bytes(range(256)) * 300
    put = box.upload_files([(path, data)])
    say("%s: files go there and back" % name, put[0].error is None and box.download_files([path])[0].content == data)
    r = box.execute("rm -r '%s'; echo out; echo err >&2; exit 3" % os.path.dirname(path))
    say("%s: exit code and both outputs" % name, r.exit_code == 3 and "out" in r.output and "err" in r.output, r)
    if name in ("deno", "e2b"):
        r = box.execute("sleep 20", timeout=1)
        say("%s: a command that takes too long is 124" % name, r.exit_code == 124 and "timed out after 1 s" in r.output, r)
        say("%s: what is not there" % name, box.download_files(["/nonexistent/x"])[0].error)


def one(name):
    double = getattr(doubles, name)()
    sent = double.sent if name == "modal" else double
    cls = type(SandboxRegistry.load().create_provider("durward-" + name))
    params = {"policy": "coder", "life": 600, "elsewhere": ASK["elsewhere"], "options": OPTIONS.get(name, {})}
    namespace = [ASK["namespace"]]

    def backend(self, sandbox):
        env = SENT[name](sent)[0] or {}
        return Local(self.identify(sandbox), namespace[0], env)
    theirs = cls.backend
    if name in ("deno", "e2b"):
        double.namespace = namespace  # these doubles run commands themselves
    else:
        cls.backend = backend
    with create_sandbox("durward-" + name, params=params) as box:
        env, others = SENT[name](sent)
        if env is not None:
            say("%s: the proxy and what to trust are set where it is made" % name, trusted(env), env)
        for what, true in others.items():
            say("%s: %s as the vendor's API wants it" % (name, what), true, last(sent))
        got = box.execute(USER).output
        say("%s: from inside GitHub answers, with the injected key" % name, '"octo"' in got, got)
        files(name, box)
        id = box.id
        say("%s: it is paired, and locked" % name, box.verification.through_gate and not box.verification.around,
            box.verification)
    say("%s: dcode's end deletes it" % name, gone(name, sent) == 1, gone(name, sent))
    namespace[0] = None
    kind, text = refused(name, params=params)
    say("%s: a lock that does not hold is refused, in one line" % name,
        kind == "SandboxError" and "lock" in text and "\n" not in text, text)
    say("%s: and that sandbox is deleted again" % name, gone(name, sent) == 2, gone(name, sent))
    namespace[0] = ASK["namespace"]
    if cls.reattaches:
        with create_sandbox("durward-" + name, sandbox_id=id, params=params) as again:
            say("%s: --sandbox-id attaches" % name, again.id == id and '"octo"' in again.execute(USER).output)
        say("%s: and leaves it" % name, gone(name, sent) == 2)
        kind, text = refused(name, sandbox_id="no-such", params=params)
        say("%s: a wrong id: one line" % name, kind == "SandboxNotFoundError" and "\n" not in text, [kind, text])
    for bad in sorted(cls.locked):
        kind, text = refused(name, params={**params, "options": {**params["options"], bad: "x"}})
        say("%s: %s among options is refused" % (name, bad), kind == "ValueError" and bad in text, [kind, text])
    asked = len(sent) if isinstance(sent, list) else len(sent.sent)
    for here in ("127.0.0.1:" + PORT, "localhost", "0.0.0.0"):
        kind, text = refused(name, params={**params, "proxy_host": here})
        say("%s: a proxy at %s is refused before the vendor is asked, with what to do" % (name, here),
            kind == "ValueError" and "proxy_host" in text and "https: 0.0.0.0" in text and "\n" not in text and
            asked == (len(sent) if isinstance(sent, list) else len(sent.sent)), [kind, text])
    kind, text = refused(name, params={**params, "polcy": "x"})
    say("%s: a mistyped parameter is named" % name, kind == "ValueError" and "polcy" in text, [kind, text])
    cls.backend = theirs
    double.close()


assert SandboxNotFoundError
for name in ASK["vendors"]:
    try:
        one(name)
    except BaseException:
        say(name + " ran to its end", False, traceback.format_exc()[-2500:])
