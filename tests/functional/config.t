#!/usr/bin/python3 -B
"""Bad input gets a clear message and nothing starts: configurations, secret files, ports, a missing
bubblewrap. `check` reads FILE:LINE, `serve` and `run` refuse the same."""
import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, durward, scene, tap  # noqa: E402

HEAD = "version: 1\nsecrets:\n  k: { file: %(dir)s/conf/secret-github }\n"

# name: (text, line of the error or 0, words of which one must be in the message)
BAD = {
    "not YAML": ("version: 1\npolicies: {\n  a: [\n", 0, ("yaml", "expected", "found", "parse")),
    "an unknown key": ("version: 1\npolicys: {}\n", 2, ("policys",)),
    "an unknown key in a rule": (
        HEAD + "policies:\n  a:\n    rules:\n      - { alow: x.example.com }\n", 7, ("alow",)),
    "a duplicate key": ("version: 1\nversion: 1\n", 2, ("duplicate", "twice")),
    "an anchor": ("version: &a 1\n", 1, ("anchor",)),
    "an alias": ("version: 1\npolicies: *a\n", 0, ("alias", "anchor")),
    "a tag": ("version: !!int 1\n", 1, ("tag",)),
    "bytes that are no text": ("version: 1\n# \x01\n", 2, ("control",)),
    "a rule that is a word": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - x.example.com\n", 5, ("allow: HOST",)),
    "a word of another tool": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - { allow: x.example.com/a/b, git: pull }\n",
        5, ("fetch, push",)),
    "no version": ("policies: {}\n", 0, ("version",)),
    "another version": ("version: 2\n", 1, ("version",)),
    "yes as a boolean": (
        "version: 1\nlisten:\n  - { http: 127.0.0.1:1, policy: a, insecure: yes }\n"
        "policies: { a: { rules: [] } }\n", 3, ("insecure", "true")),
    "a section that there is not": (
        HEAD + "images: {}\n", 0, ("unknown key", "images")),
    "a sandbox without an end": (
        HEAD + "policies:\n  a:\n    rules: []\n    sandbox:\n      ttl: 0s\n", 0, ("ttl", "at least 1s")),
    "an unknown secret": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - allow: x.example.com\n"
        "        with: { bearer: nobody }\n", 0, ("nobody",)),
    "a bad pattern": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - allow: '*.co*m/x'\n", 5, ("co*m", "*")),
    "dot segments in a pattern": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - allow: x.example.com/a/../b\n", 5,
        ("..", "segment")),
    "an address spelled oddly": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - allow: 127.1\n", 5, ("127.1",)),
    "a credential on plain http": (
        HEAD + "policies:\n  a:\n    rules:\n      - { allow: 'http://x.example.com', with: "
        "{ bearer: k } }\n", 7, ("http", "plaintext")),
    "ambiguous rules": (
        HEAD + "  j: { file: %(dir)s/conf/secret-openai }\npolicies:\n  a:\n    rules:\n"
        "      - { allow: x.example.com/*/b, with: { bearer: k } }\n"
        "      - { allow: x.example.com/a/*, with: { bearer: j } }\n", 0,
        ("x.example.com/a/b",)),
    "a credential header in set_headers": (
        "version: 1\npolicies:\n  a:\n    rules:\n      - { allow: x.example.com, set_headers: "
        "{ Authorization: x } }\n", 0, ("authorization",)),
    "a listener off loopback without a policy's guard": (
        "version: 1\nlisten:\n  - { http: 0.0.0.0:3128, policy: a }\n"
        "policies: { a: { rules: [] } }\n", 3, ("insecure", "loopback")),
    "a listener for an unknown policy": (
        "version: 1\nlisten:\n  - { http: 127.0.0.1:3128, policy: b }\n"
        "policies: { a: { rules: [] } }\n", 0, ("'b'",)),
    "a port out of range": (
        "version: 1\nupstream:\n  resolve: { x.example.com: '127.0.0.1:70000' }\n", 3,
        ("70000", "port")),
    "a list where a map belongs": ("version: 1\nsecrets: [a]\n", 2, ("secrets", "map", "object")),
    "a secret with two stores": (
        "version: 1\nsecrets:\n  k: { env: A, file: /x }\n", 3, ("k", "env", "file")),
    "an env line with an unknown placeholder": (
        "version: 1\npolicies:\n  a:\n    env: { X: '{{placeholder none}}' }\n    rules: []\n", 4,
        ("none",)),
}


def checks(t, s):
    d = s.d
    r = d.check()
    t.ok(r.returncode == 0 and "OK" in r.stdout, "the good one passes", r.stdout, r.stderr)
    t.ok("warning: " in r.stderr and "stands inside the wider" in r.stderr,
         "with a warning of the deny inside a wider allow", r.stderr)
    r = d.check("version: 1\npolicies: { a: { rules: [] } }\nupstream: { ca: none.pem }\n")
    t.ok(r.returncode == 0 and "none.pem" in r.stderr, "and of a root that is not there", r.stderr)
    for name, (text, line, words) in BAD.items():
        r = d.check(text.replace("%(dir)s", d.dir))
        said = r.stdout + r.stderr
        t.ok(r.returncode == 1 and any(w.lower() in said.lower() for w in words),
             "check refuses %s and names it" % name, "exit %d" % r.returncode, said)
        place = "durward.yaml:%d:" % line if line else "durward.yaml"
        t.ok(place in said, "with its place: " + place, said)
    r = d.command("check", d.conf + ".none")
    t.ok(r.returncode == 1 and "No such file" in r.stderr + r.stdout, "a missing file", r.stderr)
    r = d.run(["true"], save=False)
    t.eq(r.returncode, 125, "run refuses what check refuses")
    r = d.command("serve", "-c", d.conf)
    t.ok(r.returncode != 0 and "durward.yaml" in r.stderr, "serve too, naming the file", r.stderr)
    d.save("version: 1\npolicies: { a: { rules: [] } }\naudit: { dir: %s }\nca: { dir: %s }\n" % (
        d.audit_dir, d.ca_dir))
    r = d.run(["sh", "-c", "curl -sS https://api.github.com/"], save=False)
    t.has(r.stdout, "denied no_rule ", "an empty rule list denies all")


def secrets(t, s):
    d = s.d
    for name, value, mode, words in (
            ("readable by others", b"x" * 40, 0o644, ("600", "others", "permission", "readable")),
            ("readable by the group", b"x" * 40, 0o640, ("600", "group", "permission", "readable")),
            ("with a control byte", b"abc\x01def" * 5, 0o600, ("control",)),
            ("with a line break inside", b"abc\r\ndef" * 5, 0o600, ("control", "line")),
            ("empty", b"", 0o600, ("empty",))):
        path = d.secret("github", value, mode)
        d.save()
        r = d.command("secret", "test", "-c", d.conf, "github")
        said = r.stdout + r.stderr
        t.ok(r.returncode != 0 and any(w in said for w in words) and ("github" in said),
             "a secret file %s is refused, and why" % name, "exit %d" % r.returncode, said)
        r = d.run(["sh", "-c", "curl -sS -o /dev/null -w '%{http_code}' "
                   "https://api.github.com/user"])
        t.ok(r.returncode == 125 or r.stdout in ("502", "503"),
             "no request goes out with it", r.stdout, r.stderr)
        t.ok(value.decode("latin-1") not in said or not value, "the message does not show it")
    t.eq(len(s.github.requests), 0, "the origin saw nothing")
    os.unlink(path)
    r = d.command("secret", "test", "-c", d.conf, "github")
    t.ok(r.returncode != 0 and "No such file" in r.stdout + r.stderr, "a missing secret file",
         r.stdout + r.stderr)
    d.secret("github", s.github_secret)
    d.save()
    r = d.command("secret", "ls", "-c", d.conf)
    t.ok(r.returncode == 0 and "github" in r.stdout and
         s.github_secret.decode() not in r.stdout, "secret ls names them, never values", r.stdout)
    d.secrets["cmd"] = {"command": ["sh", "-c", "printf %s " + s.openai_secret.decode()]}
    d.save()
    r = d.command("secret", "test", "-c", d.conf, "cmd")
    t.ok(r.returncode == 0 and s.openai_secret.decode() not in r.stdout + r.stderr,
         "a command store works and is not shown", r.stdout + r.stderr)
    d.secrets["cmd"] = {"command": ["sh", "-c", "echo no luck >&2; exit 3"]}
    d.save()
    r = d.command("secret", "test", "-c", d.conf, "cmd")
    t.ok(r.returncode != 0 and "3" in r.stdout + r.stderr, "a failing command says its status",
         r.stdout + r.stderr)
    del d.secrets["cmd"]


def places(t, s):
    d = s.d
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        d.listen = [{"http": "127.0.0.1:%d" % port, "policy": "coder"}]
        d.save()
        r = d.command("serve", "-c", d.conf)
        t.ok(r.returncode != 0 and str(port) in r.stderr and "in use" in r.stderr,
             "a port in use is named", "exit %d" % r.returncode, r.stderr)
    d.listen = []
    d.extra["audit"] = {"dir": "/proc/nowhere"}
    r = d.run(["true"])
    t.ok(r.returncode == 125 and "/proc/nowhere" in r.stderr, "an audit directory that cannot be "
         "made", r.stderr)
    d.extra.clear()


def bubblewrap(t, s):
    """A bubblewrap that is not there, and one that fails: one line says what to do."""
    d = s.d
    if os.geteuid() != 0:
        t.skip("missing bubblewrap", "hiding the program needs root")
        return
    hide = "mount --bind /dev/null /usr/bin/bwrap && exec \"$@\""
    d.save()
    r = subprocess.run(["unshare", "-m", "sh", "-c", hide, "sh", durward.program(), "run", "-c",
                        d.conf, "--", "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       cwd=d.work, env=d.env, timeout=30)
    err = r.stderr.decode()
    t.ok(r.returncode == 125 and ("bwrap" in err or "bubblewrap" in err),
         "a broken bubblewrap is named", "exit %d" % r.returncode, err)
    status, err = without_namespaces(t)
    t.ok(status == 125 and "namespace" in err, "G30 user namespaces switched off: named, with the fix",
         "exit %d" % status, err)


HIDE = """for f in /usr/bin/qemu-system-x86_64 /usr/local/bin/qemu-system-x86_64; do
[ ! -e $f ] || mount --bind /dev/null $f; done; exec "$@" """
ABSENT = "backend: microvm cannot run here: QEMU is not there: install it"


def absent(t, s):
    """A backend whose programs this host lacks: said when the configuration is read, and to who asks for one."""
    there = any(map(os.path.exists, ("/usr/bin/qemu-system-x86_64", "/usr/local/bin/qemu-system-x86_64")))
    if there and os.geteuid() != 0:
        t.skip("a host without QEMU", "hiding the program needs root")
        return
    d = s.d
    d.policy("machines", [])
    d.policies["machines"]["sandbox"] = {"backend": "microvm"}
    d.save()
    d.prefix = ["unshare", "-m", "sh", "-c", HIDE, "sh"] if there else []
    r = subprocess.run(d.prefix + [durward.program(), "check", d.conf], capture_output=True, text=True, env=d.env, timeout=30)
    t.ok(r.returncode == 0 and "policy 'machines': " + ABSENT in r.stderr and r.stderr.count(ABSENT) == 1,
         "check warns of a backend that this host has no programs for", r.stderr)
    d.serve()
    with open(d.log) as f:
        t.ok("policy 'machines': " + ABSENT in f.read(), "as does the daemon, which starts", d.diagnostics())
    c = api.Api(d.socket)
    for what, body in (("by its policy", {"policy": "machines"}), ("by name", {"policy": "coder", "backend": "microvm"})):
        try:
            said = c.ask("POST", "/v1/sandboxes", body)
        except api.Refused as e:
            said = str(e)
        t.ok(str(said).startswith("501 unsupported: unsupported: " + ABSENT), "one asked for " + what + ": not possible here", said)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")
    d.prefix = []
    del d.policies["machines"]


def without_namespaces(t):
    """Run as an ordinary user of a user namespace that allows no further ones."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = t.mkdir("other", 0o777)
    log = t.write("other.log", "", 0o666)
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            libc.unshare(0x10000000)
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            with open("/proc/sys/user/max_user_namespaces", "w") as f:
                f.write("0")
            os.setgid(1000)
            os.setuid(1000)
            fd = os.open(log, os.O_WRONLY)
            os.dup2(fd, 2)
            os.chdir(t.mkdir("other/work"))
            os.execve(durward.program(), [durward.program(), "run", "--", "true"],
                      {"PATH": "/usr/bin:/bin", "HOME": home})
        finally:
            os._exit(99)
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open("/proc/%d/%s" % (pid, name), "w") as f:
            f.write("0 0 65536")
    os.write(go[1], b"x")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    [os.close(fd) for fd in ready + go]
    with open(log) as f:
        return status, f.read()


def reloads(t, s):
    """A bad configuration never replaces a good one."""
    d = s.d
    address = s.listener()
    d.policy("bare", [{"allow": "deps.example.com"}])
    d.policy("wide", s.rules + [{"allow": "n%d.example.com/a/b/c/d/**" % i, "methods": ["GET"]} for i in range(4000)])
    bare, tokens, wide = s.listener("bare"), s.listener(None), s.listener("wide")
    d.serve()
    t.eq([s.gate(wide).get(h, p).status for h, p in (("deps.example.com", "/"), ("api.github.com", "/user"))],
         [200, 200], "a policy of 4000 rules serves")
    t.part(grown, t, s, bare, tokens)
    gate = s.gate(address)
    t.eq(gate.get("api.github.com", "/user").status, 200, "the good configuration serves")
    d.save("version: 1\nnonsense: true\n")
    r = d.command("reload", "--socket", d.socket)
    t.ok(r.returncode != 0 and "nonsense" in r.stderr + r.stdout, "reload refuses a bad one",
         r.stderr + r.stdout)
    t.eq(gate.get("api.github.com", "/user").status, 200, "and the old one goes on")
    t.eq(gate.get("api.github.com", "/gists").status, 403, "denying what it denied")
    d.secret("another", "x" * 20)
    d.save()
    r = d.command("reload", "--socket", d.socket)
    t.ok(r.returncode != 0 and "`secrets` changed" in r.stderr + r.stdout, "reload refuses other secrets",
         r.stderr + r.stdout)
    del d.secrets["another"]
    s.rules.append({"deny": "api.github.com/user"})
    d.save()
    r = d.command("reload", "--socket", d.socket)
    t.eq(r.returncode, 0, "a good one is taken") or t.diag(r.stderr)
    got = tap.wait_for(lambda: gate.get("api.github.com", "/user").status == 403, 3)
    t.ok(got, "and decides from then on")
    t.ok(d.wait_records(1, "lifecycle", event="config_reloaded") and
         d.wait_records(1, "lifecycle", event="policy_changed", policy="coder"),
         "the log says which policy changed")
    t.part(without_room, t, s, gate)
    t.part(while_it_binds, t, s, gate)
    t.eq(d.stop(), 0, "the daemon ends well")


def without_room(t, s, gate):
    """The parent cannot have the descriptors that the images need: said, and the old rules go on."""
    d = s.d
    parent = d.daemon.pid
    if os.getuid() != 0:
        t.skip("a reload without room", "root alone can count the descriptors of a role, which nobody may trace")
        return
    taken = {int(fd) for fd in os.listdir("/proc/%d/fd" % parent)}
    soft, hard = resource.prlimit(parent, resource.RLIMIT_NOFILE)
    limit = max(taken) + 4
    extra = ["extra%d" % i for i in range(limit - len(taken) + len(d.policies) + 4)]
    for name in extra:
        d.policy(name, [{"allow": name + ".example.com"}])
    s.rules.append({"deny": "deps.example.com/roomless"})
    d.save()
    resource.prlimit(parent, resource.RLIMIT_NOFILE, (limit, hard))
    try:
        r = d.command("reload", "--socket", d.socket)
    finally:
        resource.prlimit(parent, resource.RLIMIT_NOFILE, (soft, hard))
    t.ok(r.returncode != 0 and "no room for the policies' images" in r.stderr + r.stdout,
         "reload refuses what there is no room for", r.stderr + r.stdout)
    t.eq(gate.get("deps.example.com", "/roomless").status, 200, "and the old one goes on")
    r = d.command("reload", "--socket", d.socket)
    t.eq(r.returncode, 0, "with room it is taken") or t.diag(r.stderr)
    t.ok(tap.wait_for(lambda: gate.get("deps.example.com", "/roomless").status == 403, 3), "and decides from then on")
    t.eq(gate.get("deps.example.com", "/path").status, 200, "as it says")


def while_it_binds(t, s, gate):
    """A gate that waits for its journal hears of a new policy: it serves that one."""
    d = s.d
    old = {pid for pid, role in d.roles() if role == "gate"}
    logger = [pid for pid, role in d.roles() if role == "logger"][0]
    t.eq(gate.get("deps.example.com", "/path").status, 200, "what is to be denied is allowed yet")
    os.kill(logger, signal.SIGSTOP)
    try:
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        t.ok(tap.wait_for(lambda: len({p for p, role in d.roles() if role == "gate"} - old) == len(old), 10),
             "new gates wait for the logger")
        s.rules.append({"deny": "deps.example.com/path"})
        d.save()
        t.eq(d.command("reload", "--socket", d.socket).returncode, 0, "reload")
    finally:
        os.kill(logger, signal.SIGCONT)
    try:
        got = str(gate.get("deps.example.com", "/path").status)
    except client.Ended as e:
        got = str(e)
    t.has(got, "403", "they serve the newer policy")


def grown(t, s, bare, tokens):
    """What a policy gets by a reload works in gates that run: its first credential, another one, itself."""
    d, gate = s.d, s.gate(bare)

    def reload(rules, policy="bare"):
        d.policy(policy, rules)
        d.save()
        r = d.command("reload", "--socket", d.socket)
        t.eq(r.returncode, 0, "a policy with more is taken") or t.diag(r.stderr)

    def once(gate, host, path):
        """The first answer that is not of the policy before."""
        got = []

        def other():
            try:
                r = gate.get(host, path)
            except client.Ended as e:
                return "CONNECT: 403" not in str(e)
            got[:] = [(r.status, r.code)]
            return r.code != "no_rule"
        tap.wait_for(other, 5)
        return got
    t.eq(gate.get("deps.example.com", "/").status, 200, "a policy without credentials serves")
    rules = [{"allow": "deps.example.com"}, {"allow": "api.github.com/user", "with": {"bearer": "github"}}]
    reload(rules)
    t.eq(once(gate, "api.github.com", "/user"), [(200, None)], "reload: its first credential")
    rules.append({"allow": "api.openai.com/v1/models", "with": {"bearer": "openai"}})
    reload(rules)
    t.eq(once(gate, "api.openai.com", "/v1/models"), [(200, None)], "reload: another credential")
    reload(rules, "later")
    c = api.Api(d.socket)
    token = c.ask("POST", "/v1/identities", {"policy": "later"})["token"]
    c.close()
    t.eq(once(client.Gate(tokens, s.ca_file(), token="sandbox:" + token), "api.github.com", "/user"),
         [(200, None)], "reload: a new policy, by a token")


def main(t):
    s = scene.Scene(t)
    for part in (checks, secrets, places, bubblewrap, absent, reloads):
        t.part(part, t, s)


tap.run(main)
