#!/usr/bin/python3 -B
"""LangChain Deep Agents on our sandboxes: LangChain's standard tests, deep agents that use credentials
which they never see, other backends behind the proxy by pair(), and dcode through its entry point. In a
virtual machine a sample of the standard tests; by `make walls` all of them behind each wall, and nothing else."""
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, durward, namespace, nginx, scene, tap, walls  # noqa: E402

HERE = os.path.join(durward.SUITE, "clients", "agents")
SAMPLE = "test_write_new_file or test_read_basic_file"  # where a processor is emulated
SDK = os.path.join(durward.TOP, "sdk", "python")
EXPECTED = {"test_write_existing_file_fails", "test_glob", "test_glob_basic_pattern", "test_glob_with_directories",
            "test_glob_hidden_files_explicitly", "test_glob_with_character_class", "test_glob_with_question_mark"}


def python(name):
    path = os.path.join(durward.clients_dir(), name, "bin", "python")
    return path if os.path.exists(path) else None


def environment(d, **more):
    return {**d.env, "PYTHONPATH": os.path.join(SDK, "src"), "PYTHONDONTWRITEBYTECODE": "1",
            "DURWARD_SOCKET": d.socket, "LANGSMITH_TRACING": "false", **more}


def script(t, d, name, argument="", interpreter="agents", timeout=120, **env):
    """A script of clients/agents -> (its JSON or None, all that it wrote)."""
    r = subprocess.run([python(interpreter), "-B", os.path.join(HERE, name), argument], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=timeout, cwd=d.work, env=environment(d, **env))
    if not t.eq(r.returncode, 0, name + " ran to its end"):
        t.diag(tap.clip(r.stderr[-3000:]))
        return None, r.stdout + r.stderr
    return json.loads(r.stdout.strip().splitlines()[-1]), r.stdout + r.stderr


def as_user(t, d):
    """The daemon as an ordinary user's, if we are root: a file that nobody may read is one then."""
    if os.geteuid() != 0:
        d.serve()
        return os.geteuid()
    uid = 61655
    d.save()
    stage = t.mkdir("stage")
    prefix = os.path.dirname(os.path.dirname(durward.program()))
    for part in ("bin", "libexec"):
        shutil.copytree(os.path.join(prefix, part), os.path.join(stage, part))
    os.chown(d.dir, uid, uid)
    for root, dirs, files in os.walk(d.dir):
        for name in dirs + files:
            os.chown(os.path.join(root, name), uid, uid)
    with open(d.log, "ab") as log:
        d.daemon = t.popen([os.path.join(stage, "bin", "durward"), "serve", "-c", d.conf], stdout=log, stderr=log,
                           cwd=d.work, env=d.env, user=uid, group=uid, extra_groups=[], preexec_fn=None)
    if not tap.wait_for(lambda: os.path.exists(d.socket), 15):
        raise RuntimeError("durward serve is not ready: " + d.diagnostics())
    return uid


def suite(t, d, uid, name, select=""):
    """LangChain's tests -> (passed, failed as with every provider, failed, what was said)"""
    report = t.path(name + ".xml")
    r = subprocess.run([python("agents"), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto",
                        "--rootdir", t.tmp, "-W", "ignore", "--junit-xml", report, *(["-k", select] if select else []),
                        os.path.join(HERE, "test_standard.py")],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800 if walls.whole() else 150, cwd=t.tmp,
                       env=environment(d, SUITE_UID=str(uid)))
    passed, xfailed, failed = set(), set(), set()
    for case in xml.etree.ElementTree.parse(report).iter("testcase") if os.path.exists(report) else ():
        kinds = {c.tag: c.get("type") for c in case}
        into = failed if {"failure", "error"} & set(kinds) else xfailed if kinds.get("skipped") == "pytest.xfail" else \
            failed if "skipped" in kinds else passed
        into.add(case.get("name"))
    t.diag("SandboxIntegrationTests: %d passed, %d failed as with every provider" % (len(passed), len(xfailed)))
    if r.returncode != 0:
        failed.add("pytest: %d" % r.returncode)
    return passed, xfailed, failed, "" if not failed else tap.clip(r.stdout[-3000:] + r.stderr[-1000:])


def judged(t, passed, xfailed, failed, said, where=""):
    t.ok(not failed, where + "LangChain's standard tests of sandboxes: none fails", *sorted(failed), said)
    t.ok(xfailed <= EXPECTED and len(passed) + len(xfailed) >= 86 and len(passed) >= 79,
         where + "%d of %d pass, and the others are the seven of every provider" % (
             len(passed), len(passed | xfailed | {x for x in failed if x.startswith("test_")})), "%r" % sorted(xfailed - EXPECTED))


def standard(t):
    d = durward.Durward(t, "standard")
    d.policy("p", [])
    judged(t, *suite(t, d, as_user(t, d), "standard"))
    left = subprocess.run([durward.program(), "sandbox", "ls", "--json", "--socket", d.socket], env=d.env,
                          capture_output=True, text=True).stdout
    t.ok('"id"' not in left, "and leave no sandbox", left)
    d.daemon.terminate()
    d.daemon.wait(20)


def behind(t, wall, settings):
    """The same behind another wall, in a sandbox of whoever we are; where nothing more was asked for, a sample."""
    d = durward.Durward(t, "standard-" + wall)
    d.policies["p"] = {"rules": [], "sandbox": settings}
    d.serve()
    c = api.Api(d.socket, timeout=110)
    box = c.create(policy="p")["id"]
    uid = int(c.sh(box, "id -u", timeout=30)[1])
    c.delete(box)
    got = suite(t, d, uid, "standard-" + wall, "" if walls.whole() else SAMPLE)
    if walls.whole():
        judged(t, *got, where=wall + ": ")
    else:
        t.ok(len(got[0]) >= 2 and not got[2], "%s: a sample of LangChain's standard tests: all pass" % wall, *got)
    t.eq(c.list()["sandboxes"], [], wall + ": and leave no sandbox")
    c.close()
    t.eq(d.stop(), 0, wall + ": the daemon ends well")


def code(message):
    return (message["artifact"] or {}).get("exit_code")


def agents(t, s):
    out, text = script(t, s.d, "agent.py")
    for how in ("sync", "async") if out else ():
        got = [m["text"] for m in out[how]]
        t.ok('"octo"' in got[1] and code(out[how][1]) == 0, how + " agent: GitHub with the key", got[1])
        t.ok("The door is kept." in got[2], how + " agent: OpenAI with the key", got[2])
        t.has(got[3], "acme/x", how + " agent: Python's own client")
        t.ok(got[4].startswith("403") and code(out[how][4]) == 3, how + " agent: denied; exit codes", got[4])
        t.has(got[5], "gpt-test", how + " agent: reads the file that it wrote")
        t.ok("timed out after 1 seconds" in got[6] and code(out[how][6]) == 124, how + " agent: time out is 124", got[6])
        shape = re.search(r"GITHUB_TOKEN=(\S+)", got[7])
        t.ok(shape and shape.group(1) != s.github_secret.decode(), how + " agent: sees a placeholder", got[7])
    if out:
        t.ok(out["same"] and out["other"], "a thread has its sandbox, an assistant another")
        t.eq([x.split("\n")[0] for x in out["scoped"]], ["1", "1", "2"], "one agent, two threads: each its own sandbox")
        t.has(out["outside"], "no thread_id", "outside of a thread it says so")
        t.ok(out["gone"][0] == 1 and all(x and "\n" not in x and "create another" in x for x in out["gone"][1:]),
             "of a deleted one each answer is one line that says what to do", "%r" % (out["gone"],))
    return [text]


def relay(t, to):
    """A TCP port that leads to another: what a sandbox can reach of the network."""
    listener = socket.create_server((to, 0))
    t.cleanup(listener.close)
    return "tcp:%s:%d" % (to, listener.getsockname()[1])


def paired(t, s, address, ns):
    host, port = address.rsplit(":", 1)
    around = relay(t, host)
    ask = {"elsewhere": [around, "tcp:%s:1" % host, "name:no-such-name.invalid"], "folder": t.path("paired"),
           "closed": "%s:1" % host, "namespace": ns.name if ns else None}
    out, text = script(t, s.d, "paired.py", json.dumps(ask))
    if not out:
        return [text]
    t.ok(out["bare"] != 0, "a backend without pairing does not get there")
    t.ok(out["seen"]["gate"] and out["seen"]["around"] == [around], "verify: by the gate, and what gets around it",
         "%r" % out["seen"])
    t.ok(len(out["warned"]) == 1 and around in out["warned"][0], "which is a warning", "%r" % out["warned"])
    for name in ("user", "async", "python"):
        t.has(out[name], "octo", "paired: %s with the injected key" % name)
    t.eq((out["denied"][-3:], out["heredoc"]), ("403", "it's $HOME\n"), "other destinations are denied; commands stay as they are")
    t.ok(all("%s=" % k in out["env"] for k in ("https_proxy", "NODE_EXTRA_CA_CERTS", "JAVA_TOOL_OPTIONS", "GITHUB_TOKEN")),
         "the variables are there", out["env"])
    t.eq(out["files"], [None, "one"], "files go the backend's own way")
    t.ok(not [c for c in out["commands"] if out["token"] in c], "no token in a command line")
    t.eq(out["gone"], [True, False], "without our file inside a command does not run at all")
    t.ok("closed" in out["closed"][0] and out["closed"][1] is False, "close(): no command, no file left", "%r" % out["closed"])
    gate = client.Gate(address, s.ca_file(), token="sandbox:" + out["after"])
    r, st = gate.connect("api.github.com:443")
    st.close()
    t.eq((r.status, r.code), (407, "token_revoked"), "and its token is worth nothing")
    t.ok(out["locked"] and around in out["locked"] and "lock" in out["locked"] and not out["left"],
         "require_lock refuses, and leaves nothing", "%r" % out["locked"])
    t.ok(len(out["useless"]) == 3 and all(x and "\n" not in x and "upload_files" in x for x in out["useless"]),
         "pair() of what is no backend: one line that says what it wants", "%r" % out["useless"])
    t.eq(out["untried"], [True] * 6, "require_lock with what cannot be tried, or nothing, is an error")
    t.ok(out["nowhere"] and "\n" not in out["nowhere"] and "proxy_host" in out["nowhere"], "a gate that is not reached: one line",
         "%r" % out["nowhere"])
    t.ok(out["renewed"][0] and "octo" in out["renewed"][1], "a token is renewed before a command", "%r" % out["renewed"])
    t.has(out["stranger"], "does not know this identity", "a token that the proxy does not take is noticed")
    t.ok(out["tight"]["gate"] and out["tight"]["around"] == [], "a sandbox that reaches the proxy only passes require_lock",
         "%r" % out["tight"])
    return [text]


def provider(t, s):
    out, text = script(t, s.d, "provider.py", interpreter="dcode", THE_SOCKET=s.d.socket, DURWARD_POLICY="coder",
                       DURWARD_SOCKET=s.d.path_of_none, PYTHONPATH=installed(t), HOME=t.mkdir("provider-home"))
    if not out:
        return [text]
    t.eq(out["metadata"], ["durward", "/workspace", True, True, "durward_deepagents.backend"],
         "dcode's registry finds the entry point")
    t.eq(out["made"], ["b\n", {"made-by": "dcode", "job": "7"}, 900], "parameters: labels, times, environment")
    t.eq((out["again"], out["kept"], out["left"]), (True, "running", []),
         "--sandbox-id reattaches and does not delete; what dcode made it deletes")
    t.eq(out["woken"], "as it was", "--sandbox-id of one that sleeps resumes it")
    t.eq(out["of_snapshot"], ["as it was", "stop"], "--sandbox-snapshot-name: a sandbox with its files; on_idle")
    t.eq(out["use_or_create"], [["running", ["made-by-dcode"]], ["running", ["made-by-dcode"]], ""],
         "--sandbox-snapshot-name of one that is not there makes it of the new sandbox; the next ones begin with it")
    t.eq((out["unkept"] or [None])[0], "SandboxError", "where a sandbox's files are not kept it says so")
    t.eq(out["orphans"], 0, "a snapshot that cannot be made leaves no sandbox behind")
    for name, want in (("no_daemon", "SandboxError"), ("wrong_id", "SandboxNotFoundError"), ("snapshot", "ValueError"),
                       ("image", "ValueError"), ("unknown", "ValueError"), ("policy", "ValueError"),
                       ("labels", "ValueError"), ("timeout", "ValueError")):
        e = out[name] or ["nothing", ""]
        t.ok(e[0] == want and "\n" not in e[1] and e[1].startswith("durward: "), "%s: %s of one line" % (name, want), "%r" % e)
    return [text]


def installed(t):
    """The package as pip lays it out, built once."""
    where = t.path("installed")
    if not os.path.exists(where):
        source = t.path("sdk")
        shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        r = subprocess.run([python("agents"), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
                            "--target", where, source], capture_output=True, text=True)
        if r.returncode != 0:
            raise RuntimeError("pip: " + r.stderr)
    return where


def dcode_python(t):
    """An environment that sees dcode's own, our package and our model (its server drops PYTHONPATH)."""
    venv = t.path("dcode")
    subprocess.run([python("dcode"), "-m", "venv", "--without-pip", venv], check=True)
    site = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages"))[0]
    theirs = glob.glob(os.path.join(durward.clients_dir(), "dcode", "lib", "python3*", "site-packages"))[0]
    with open(os.path.join(site, "test.pth"), "w") as f:
        f.write("import site; site.addsitedir(%r)\n%s\n%s\n" % (theirs, installed(t), HERE))
    return os.path.join(venv, "bin", "python")


def call(name, **args):
    return "DO=%s:%s;;" % (name, json.dumps(args))


def dcode(t, s, c):
    home, program = t.mkdir("home"), dcode_python(t)
    t.write("home/.deepagents/config.toml", '[models.providers.itest]\nclass_path = "dcode_model:Scripted"\n'
            'models = ["fake"]\n')
    env = environment(s.d, HOME=home, DEEPAGENTS_CODE_OFFLINE="1", DEEPAGENTS_CODE_NO_UPDATE_CHECK="1", DURWARD_POLICY="coder")
    texts = []

    def run(prompt, *flags, **more):
        r = subprocess.run([program, "-m", "deepagents_code", "--model", "itest:fake", "--no-mcp", "--sandbox", "durward",
                            *flags, "-n", prompt], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
                           cwd=t.mkdir("cwd"), env=dict(env, **more))
        texts.append(r.stdout + r.stderr)
        return r
    setup = t.write("setup.sh", "curl -sS https://api.github.com/repos/acme/x > /workspace/set-up\n"
                    "printf %s \"$$GITHUB_TOKEN\" > /workspace/shown\n")
    r = run(call("write_file", file_path="/workspace/out.txt", content="hello") +
            call("execute", command="cat out.txt set-up; curl -sS https://api.github.com/user"), "--sandbox-setup", setup)
    flat = r.stdout.replace("\n", "")
    t.ok(r.returncode == 0 and "hello" in flat and "acme/x" in flat and "octo" in flat,
         "dcode --sandbox durward: a file, a command, a setup script without a secret", tap.clip(texts[-1]))
    rows = c.list()["sandboxes"]
    t.ok(all(x["labels"].get("made-by") == "dcode" and x["idle_ttl"] == 3600 for x in rows),
         "what dcode leaves behind has a time to live (%d left)" % len(rows))
    for x in rows:
        t.eq(c.read(x["id"], "/workspace/out.txt"), b"hello", "the file is in that sandbox")
        shown = c.read(x["id"], "/workspace/shown")
        t.ok(shown.startswith(b"ghp_") and shown != s.github_secret, "$$NAME of a setup script is the placeholder", shown)
        c.ask("PATCH", "/v1/sandboxes/" + x["id"], {"idle_ttl": 1})
    t.ok(tap.wait_for(lambda: not c.list()["sandboxes"], 8, 0.1), "and is reaped by it")
    if durward.sanitized():
        t.diag("one run of dcode on this build, for nothing of the daemon's is in the others that provider.py does not ask for; all four on the build as released")
        return texts
    with open(os.path.join(home, ".deepagents", "config.toml"), "a") as f:
        f.write('[sandboxes.providers.durward]\nclass_path = "durward_deepagents.provider:DurwardProvider"\n'
                'working_dir = "/workspace"\n[sandboxes.providers.durward.params]\nttl = 900\n')
    box = c.create(policy="coder")["id"]
    r = run(call("execute", command="hostname; echo again > /workspace/again"), "--sandbox-id", box)
    t.ok(r.returncode == 0 and c.read(box, "/workspace/again") == b"again\n" and c.show(box)["state"] == "running",
         "--sandbox-id works in that one and leaves it", tap.clip(texts[-1]))
    c.delete(box)
    for flags, more, want in ((("--sandbox-id", "sb-none"), {}, "there is no sandbox sb-none"),
                              ((), {"DURWARD_SOCKET": "/nonexistent"}, "start one with `durward serve`")):
        r = run("hello", *flags, **more)
        flat = " ".join((r.stdout + r.stderr).split())
        t.ok(r.returncode != 0 and want in flat, "dcode says: ..." + want, tap.clip(texts[-1]))
    return texts


def main(t):
    if not python("agents"):
        raise tap.Skip("deepagents is not there: run tests/functional/clients/setup (it needs Python 3.11)")
    for wall, settings in walls.Walls(t).each("LangChain's standard tests", ("microvm",)):
        t.part(behind, t, wall, settings)
    if walls.whole():
        return
    s = scene.Scene(t)
    s.d.path_of_none = t.path("none.sock")
    try:
        ns = namespace.Namespace(t) if os.geteuid() == 0 else None
    except tap.Skip as e:
        t.diag("pair() without a network namespace: %s" % e)
        ns = None
    address = "%s:%d" % (ns.host if ns else "127.0.0.1", nginx.free_port())
    s.d.listen.append({"http": address, "insecure": True} if ns else {"http": address})
    s.d.policies["bounded"] = {"rules": [], "sandbox": {"disk": "64MiB"}}
    s.d.serve()
    c = api.Api(s.d.socket)
    c.delete(c.first(policy="coder"))
    t.part(standard, t)
    outputs = t.part(agents, t, s) or []
    outputs += t.part(paired, t, s, address, ns) or []
    if python("dcode"):
        outputs += t.part(provider, t, s) or []
        outputs += t.part(dcode, t, s, c) or []
    else:
        t.skip("dcode and its provider", "deepagents-code needs Python 3.12, and clients/setup found none")
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential)], outputs, "deep agents")
    c.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=3600 if walls.whole() else 600)
