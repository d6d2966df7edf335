#!/usr/bin/python3 -B
"""durward doctor: on a sound host, with one fault at a time, and what clients in a sandbox say with and without our CA."""
import json
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, scene, tap  # noqa: E402

CLIENTS = {"system": "openssl", "openssl": "openssl", "curl": "curl", "wget": "wget", "git": "git", "python": "python3", "node": "node",
           "go": "go", "java": "javac", "docker": "docker"}
NO_VARIABLE = ("wget", "system")  # they listen to none
WRONG = ("SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/proc/self/fdinfo", "CURL_CA_BUNDLE=/dev/null",
         "GIT_SSL_CAINFO=/dev/null", "GIT_SSL_CAPATH=/proc/self/fdinfo", "NODE_EXTRA_CA_CERTS=/dev/null",
         "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/usr/bin/env", "REQUESTS_CA_BUNDLE=/dev/null")


def here(program):
    """It lies where a sandbox sees it."""
    path = shutil.which(program, path="/usr/local/bin:/usr/bin:/bin")
    return path and os.path.realpath(path).startswith(("/usr/", "/bin/", "/etc/alternatives"))


def doctor(d, *args, through=(), env=None, timeout=120):
    """-> (exit status, {check: [finding]}, text)."""
    argv = list(through) + [durward.program(), "doctor", "-c", d.conf, "--json", *args]
    r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                       cwd=d.work, env=dict(d.env, **(env or {})))
    text = (r.stdout + r.stderr).decode("utf-8", "replace")
    d.complaints += durward.complaints(r.stderr.decode("utf-8", "replace"))
    try:
        rows = json.loads(r.stdout)["findings"]
    except ValueError:
        rows = []
    found = {}
    for row in rows:
        found.setdefault(row["check"], []).append(row)
    bare = [x["check"] for x in rows if x["state"] in ("fail", "warn") and not x.get("fix")]
    if bare:
        text = "without a remedy: %s\n%s" % (" ".join(bare), text)
        found["remedies"] = [{"state": "fail", "check": "remedies"}]
    return r.returncode, found, text


def fault(t, d, check, state, words, fix, what, **kw):
    """One thing is wrong: its check says so with a remedy, and the exit status follows."""
    code, found, text = doctor(d, "--host", **kw)
    rows = [x for x in found.get(check, []) if x["state"] == state]
    t.ok(len(rows) == 1 and words in rows[0]["what"] and fix in rows[0].get("fix", ""), what, text)
    fails = sum(x["state"] == "fail" for rows in found.values() for x in rows)
    t.ok(code == (1 if fails else 0) and bool(fails) == (state == "fail"), "%s: exit status %d" % (check, code), text)


def sound(t, d):
    code, found, text = doctor(d, "--host")
    t.ok(code == 0 and not [x for rows in found.values() for x in rows if x["state"] == "fail"], "nothing would break here", text)
    t.eq([x for rows in found.values() for x in rows if x["state"] == "ok" and ("cannot" in x["what"] or "lacks" in x["what"])], [],
         "what cannot be had is not said to be ok")
    t.eq(sorted(set("kernel seccomp landlock userns overlay fuse bwrap memory files cgroups state audit cache ca clock daemon config".split()) -
                set(found)), [], "every check says something")
    r = d.command("doctor", "-c", d.conf, "--host")
    t.ok(r.returncode == 0 and "\033" not in r.stdout and "ok    userns" in r.stdout, "for people: no colours into a pipe", r.stdout)
    if shutil.which("script"):
        out = subprocess.run(["script", "-qec", "%s doctor -c %s --host" % (durward.program(), d.conf), "/dev/null"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=d.env, timeout=60).stdout
        t.ok(b"\033[" in out, "colours on a terminal", out)
    for args in (("--host", "--sandbox"), ("x",), ("--against", "h.example", "-e", "A=b"), ("--nope",)):
        t.eq(d.command("doctor", *args).returncode, 2, "usage error: %s" % " ".join(args))


def faults(t, d):
    fault(t, d, "files", "warn", "256", "ulimit", "few open files", through=("prlimit", "--nofile=256:256"))
    d.listen = []
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    d.listen = [{"http": "127.0.0.1:%d" % taken.getsockname()[1], "policy": "coder"}]
    d.save()
    fault(t, d, "port", "fail", "in use", "ss -ltnp", "a port that somebody has")
    d.listen = []
    d.extra["controller"] = {"https": "127.0.0.1:%d" % taken.getsockname()[1], "state": t.mkdir("doctor-state", 0o700)}
    d.save()
    fault(t, d, "port", "fail", "in use", "ss -ltnp", "the API's port that somebody has")
    del d.extra["controller"]
    d.listen = [{"http": "127.0.0.1:%d" % taken.getsockname()[1], "policy": "coder"}]
    d.save()
    taken.close()
    code, found, text = doctor(d, "--host")
    t.ok(code == 0 and found["port"][0]["state"] == "ok", "and when it is free", text)
    d.listen = []
    crt, key = ca.Authority(t.mkdir("old")).issue("old.example", expired=True)
    later, later_key = ca.Authority(t.mkdir("new")).issue("new.example", not_yet=True)
    for pair, words, fix in (((crt, key), "expired", "ca rotate"), ((later, later_key), "not valid yet", "timedatectl")):
        d.extra["ca"] = dict(zip(("cert", "key"), pair))
        d.save()
        fault(t, d, "ca", "fail", words, fix, "a CA that is %s" % words)
    del d.extra["ca"]
    d.extra["policies"] = dict(d.policies, box={"rules": [], "sandbox": {
        "backend": "docker", "docker": {"socket": t.path("no.sock"), "image": "x"}}})
    d.save()
    fault(t, d, "docker", "fail", "no.sock", "systemctl start docker", "an engine that is not there")
    del d.extra["policies"]
    d.save("version: 1\nnope: 1\n")
    fault(t, d, "config", "fail", ":2", "durward.yaml(5)", "a configuration that does not load")
    d.save()
    os.chmod(d.audit_dir, 0o777)
    fault(t, d, "audit", "fail", "written by others", "0700", "a log that anybody may write")
    os.chmod(d.audit_dir, 0o700)


def faults_of_root(t, d):
    if os.geteuid() != 0:
        t.skip("bubblewrap, user namespaces, a full disk, no right over cgroups", "needs root")
        return
    script = "mount --make-rprivate / && mount --bind /etc/hostname \"$(command -v bwrap)\" && exec \"$@\""
    fault(t, d, "bwrap", "fail", "does not run", "apt-get install", "a bubblewrap that does not run",
          through=("unshare", "-m", "sh", "-c", script, "sh"))
    script = "mount --make-rprivate / && mount --bind /dev/null /dev/fuse && exec \"$@\""
    if os.path.exists("/dev/fuse"):
        fault(t, d, "fuse", "note", "another device", "modprobe fuse", "a /dev/fuse that is none",
              through=("unshare", "-m", "sh", "-c", script, "sh"))
    else:
        t.skip("a /dev/fuse that is none", "there is no /dev/fuse at all")
    script = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\""
    for check, state in (("userns", "fail"), ("overlay", "warn"), ("fuse", "note")):
        code, found, text = doctor(d, "--host", through=("unshare", "-Ur", "sh", "-c", script, "sh"))
        rows = [x for x in found.get(check, []) if x["state"] == state]
        t.ok(code == 1 and len(rows) == 1 and "no user namespace is left" in rows[0]["what"] and
             rows[0]["fix"].startswith("as root: sysctl -w user.max_user_namespaces"), "no user namespaces: %s says so, with the remedy" % check, text)
    script = "mount --make-rprivate / && mount -t tmpfs -o size=4m,mode=700 tmpfs %s && exec \"$@\"" % d.audit_dir
    fault(t, d, "audit", "warn", "MB left", "make room", "a small disk", through=("unshare", "-m", "sh", "-c", script, "sh"))
    home = t.mkdir("nobody", 0o777)
    os.chmod(d.conf, 0o644)
    code, found, text = doctor(d, "--host", through=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
                               env={k: home for k in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME",
                                                      "XDG_CACHE_HOME")})
    os.chmod(d.conf, 0o600)
    t.ok(found.get("cgroups", [{}])[0].get("state") == "warn" and "Delegate" in found["cgroups"][0]["fix"],
         "an ordinary user without delegation holds no control group", text)


def clients(t, d):
    expected = [c for c, program in CLIENTS.items() if here(program)]
    code, found, text = doctor(d, "--sandbox")
    t.eq((code, [c for c in expected if found.get(c, [{}])[0].get("state") != "ok"]), (0, []),
         "each client that is here verifies our certificates: %s" % " ".join(expected))
    flags = [x for pair in WRONG for x in ("-e", pair)]
    code, found, text = doctor(d, "--sandbox", *flags)
    wrong = {c: found.get(c, [{}])[0] for c in expected if c not in NO_VARIABLE}
    t.eq((code, [c for c, x in wrong.items() if x.get("state") != "fail" or "leave" not in x.get("fix", "")]), (1, []),
         "each is found out when its variable leads elsewhere, and the remedy names it")
    code, found, text = doctor(d, "--sandbox", "--image", "nothing-of-this-name")
    t.ok(code == 1 and "sandbox" in found, "a sandbox that does not start is a finding, with its reason", text)


def against(t, s):
    """Inside a sandbox, against an origin that its policy allows."""
    if durward.sanitized():
        t.skip("doctor inside a sandbox", "LeakSanitizer cannot attach there")
        return
    program = durward.program()
    r = s.d.run(["/opt/bin/durward", "doctor", "--against", scene.PLAIN, "--json"],
                flags=["--policy", "coder", "--no-bind", "--bind", os.path.dirname(program) + ":/opt/bin:ro"], timeout=120)
    rows = {x["check"]: x["state"] for x in json.loads(r.stdout or "{}").get("findings", [])}
    t.ok(rows.get("openssl") == "ok" and rows.get("python") == "ok", "in a sandbox, against a host of its policy",
         r.stdout, r.stderr)
    r = s.d.command("doctor", "--against", "nothing.invalid", "--json")
    found = {x["check"]: x for x in json.loads(r.stdout or "{}").get("findings", [])}
    t.ok(r.returncode == 1 and "durward env" in found.get("curl", {}).get("fix", ""),
         "a host without an address: where to run this", r.stdout, r.stderr)
    r = s.d.command("doctor", "--against", "x; id")
    t.ok(r.returncode == 1 and "uid=" not in r.stdout, "a host name is no command", r.stdout)


def with_daemon(t, s):
    s.listener()
    s.d.serve()
    code, found, text = doctor(s.d, "--host", "--socket", s.d.socket)
    t.ok(code == 0 and found["daemon"][0]["state"] == "ok" and "port" not in found, "beside a daemon its ports are its own", text)
    s.d.stop()
    s.d.listen = []


def main(t):
    s = scene.Scene(t)
    s.d.save()
    t.part(sound, t, s.d)
    t.part(faults, t, s.d)
    s.d.save()
    t.part(faults_of_root, t, s.d)
    t.part(clients, t, s.d)
    t.part(against, t, s)
    t.part(with_daemon, t, s)
    s.clean(what="doctor")


tap.run(main, timeout=120)
