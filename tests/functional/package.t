#!/usr/bin/python3 -B
"""The Debian package. Always: unit, sysusers, tmpfiles and AppArmor profile are as their programs want them,
manual pages without a fault, and shells complete what is typed. With
DURWARD_PACKAGE=1 (`make package-test`; it takes minutes): built by dpkg-buildpackage, lintian has nothing to say, and on a
bare Debian 12 under systemd it installs, starts, serves clients and sandboxes, reloads, is upgraded, is purged and comes
back with the audit log it had. DURWARD_PACKAGE=FILE.deb tests that one."""
import glob
import json
import os
import pty
import re
import shutil
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import ca, durward, machine, nginx, origin, scan, shapes, tap  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = os.path.join(TOP, "deploy/systemd/durward.service")
HOST = "api.github.com"
SCORE = 4.5  # of 10; less is better
CURL = "curl -s -i -m 20 --proxy http://127.0.0.1:%d --cacert /root/ca.pem https://%s%s"


def have(t, program, what, package):
    if shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        return True
    t.skip(what, "%s is missing (package %s)" % (program, package))
    return False


def run(*argv, **kw):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=90, **kw)


def unit(t):
    if not have(t, "systemd-analyze", "the unit", "systemd"):
        return
    known = ("is not executable", "man durward")  # it is not installed here
    said = [x for x in run("systemd-analyze", "verify", UNIT).stdout.splitlines() if not any(k in x for k in known)]
    t.ok(not said, "systemd knows every line of the unit", *said)
    with open(UNIT) as f, open(t.path("durward.service"), "w") as to:
        to.write(f.read() + open(os.path.join(TOP, "deploy/systemd/unprivileged.conf")).read())
    for path, name, bound in ((UNIT, "durward.service", SCORE),
                              (t.path("durward.service"), "with unprivileged.conf", 3.3)):
        r = run("systemd-analyze", "security", "--offline=true", "--threshold=%d" % round(10 * bound), path)
        score = re.search(r"level for [^:]*: ([0-9.]+)", r.stdout)
        t.ok(r.returncode == 0 and score, "systemd-analyze security of %s: %s, %.1f or less" % (
            name, score and score.group(1), bound), r.stdout)


def files(t):
    conf = os.path.join(TOP, "deploy/sysusers.d/durward.conf")
    with open(conf) as f:
        users = {x.split()[1]: x.split()[2] for x in f if x.startswith("u ")}
    with open(os.path.join(TOP, "SECURITY.md")) as f:
        roles = dict((name, uid) for uid, name in re.findall(r"^\| (617\d\d) \| ([\w-]+)", f.read(), re.M))
    t.eq({k.replace("durward-", ""): v for k, v in users.items() if v != "-"}, roles,
         "each uid of SECURITY.md has a name, so that systemd gives it to nobody else")
    for program, conf, package in (("systemd-sysusers", "sysusers.d", "systemd"), ("systemd-tmpfiles", "tmpfiles.d", "systemd")):
        if program == "systemd-tmpfiles" and os.geteuid() != 0:
            t.skip("systemd-tmpfiles takes its file", "root alone may give files to others")
        elif have(t, program, conf, package):
            root = t.mkdir("root-" + conf)
            os.makedirs(os.path.join(root, "etc"), exist_ok=True)
            r = run(program, "--root=" + root, *(["--create"] if "tmp" in conf else []),
                    os.path.join(TOP, "deploy", conf, "durward.conf"))
            t.ok(r.returncode == 0 and "rror" not in r.stdout and "ailed" not in r.stdout, "%s takes its file" % program, r.stdout)
            if program == "systemd-tmpfiles":
                t.eq(oct(os.stat(os.path.join(root, "var/lib/durward")).st_mode & 0o777), "0o700", "and directories are private")


def apparmor(t):
    """AppArmor before 4 has no word for user namespaces: without that line it must parse there too."""
    if not have(t, "apparmor_parser", "the AppArmor profile", "apparmor"):
        return
    with open(os.path.join(TOP, "deploy/apparmor/durward")) as f:
        text = f.read()
    version = re.search(r"version (\d+)", run("apparmor_parser", "--version").stdout)
    if int(version.group(1)) < 4:
        t.ok("\n  userns,\n" in text and "abi <abi/4.0>," in text, "the profile allows user namespaces")
        text = text.replace("  userns,\n", "").replace("abi <abi/4.0>", "abi <abi/3.0>")
    path = t.write("profile", text)
    r = run("apparmor_parser", "-Q", "-K", path)
    t.ok(r.returncode == 0, "AppArmor %s parses the profile" % version.group(1), r.stdout)


def pages(t):
    """What man(1) shows."""
    texts = [os.path.join(TOP, "doc/durward.1")]
    if have(t, "lowdown", "pages made of guides", "lowdown"):
        for name in ("durward.yaml.5", "durward-audit.1", "durward-profile.5", "durward-kubernetes.8"):
            r = subprocess.run([os.path.join(TOP, "doc/manpage"), os.path.join(TOP, "doc", name + ".md")], capture_output=True)
            t.ok(r.returncode == 0 and len(r.stdout) > 3000, "%s is made of its guide" % name, r.stderr)
            texts.append(t.write(name, r.stdout))
    if have(t, "mandoc", "manual pages", "mandoc"):
        for path in texts:
            r = run("mandoc", "-Tlint", "-W", "warning", path)
            t.ok(r.returncode == 0 and not r.stdout, "mandoc has nothing to say about %s" % os.path.basename(path), r.stdout)


# ---- completion, in the shells themselves ----

TYPED = (("durward aud", "durward audit"), ("durward audit veri", "durward audit verify"), ("durward image im", "durward image import"),
         ("durward run --pol", "durward run --policy"), ("durward sandbox sna", "durward sandbox snapshot"),
         ("durward completion fi", "durward completion fish"), ("durward doctor --ag", "durward doctor --against"))

COMPARED = ("run", "audit", "doctor")


def told(command):
    """The long options of a command and of its verbs, as their --help says."""
    text = run(durward.program(), command, "--help").stdout
    more = [run(durward.program(), command, v, "--help").stdout for v in re.findall(r"^  ([a-z]+)  +\S", text, re.M)]
    return set(re.findall(r"^ +(?:-\w, +)?(--[a-z][a-z-]+)", "\n".join([text] + more), re.M))


def typed(t, argv, setup, lines):
    """What a shell on a terminal makes of each line and a tabulator; it writes its line when it gets ^X."""
    out, (master, slave) = t.path("line"), pty.openpty()
    p = t.popen(argv, stdin=slave, stdout=slave, stderr=slave, env={"PATH": os.environ["PATH"], "TERM": "vt100", "HOME": t.tmp})
    os.close(slave)

    def until(seen):
        end, text = time.monotonic() + 60, b""
        while time.monotonic() < end and not seen(text):
            if select.select([master], [], [], 0.05)[0]:
                try:
                    text += os.read(master, 4096)
                except OSError:
                    break
        return text

    found = []
    os.write(master, (setup.replace("OUT", out) + "; echo rea''dy\n").encode())
    said = until(lambda text: b"\nready\r" in text)
    for line in lines:
        os.write(master, b"\x15" + line.encode() + b"\t\x18")
        said += until(lambda text: os.path.exists(out) and os.path.getsize(out) > 0)
        if not os.path.exists(out):
            found.append(said[-300:].decode("utf-8", "replace"))
            break
        with open(out) as f:
            found.append(f.read().strip())
        os.unlink(out)
    tap.stop(p)
    os.close(master)
    return found


def completions(t):
    program, words = durward.program(), {}
    for shell in ("bash", "zsh", "fish"):
        r = run(program, "completion", shell)
        words[shell] = t.write("words/" + ("_durward" if shell == "zsh" else shell), r.stdout)
    if have(t, "bash", "completion in bash", "bash"):
        setup = ". %s; bind -x '\"\\C-x\": echo \"$READLINE_LINE\" >OUT'" % words["bash"]
        got = typed(t, ["bash", "--norc", "--noprofile", "-i"], setup, [line for line, _ in TYPED])
        t.eq(got, [x for _, x in TYPED], "bash completes commands, verbs and options")
    if have(t, "zsh", "completion in zsh", "zsh"):
        setup = ("fpath=(%s $fpath); autoload -U compinit; compinit -u -D; look() { print -r -- $BUFFER >OUT; }; zle -N look; "
                 "bindkey '^X' look" % os.path.dirname(words["zsh"]))
        got = typed(t, ["zsh", "-f", "-i"], setup, [line for line, _ in TYPED])
        t.eq(got, [x for _, x in TYPED], "zsh completes commands, verbs and options")
    if have(t, "fish", "completion in fish", "fish"):
        asks = [line for line, _ in TYPED] + ["durward %s --" % c for c in COMPARED]
        script = "source %s\n" % words["fish"] + "".join("echo = %d\ncomplete -C '%s'\n" % x for x in enumerate(asks))
        path = os.path.dirname(program) + ":" + os.environ["PATH"]  # the words ask the command
        r = run("fish", "--no-config", t.write("ask.fish", script), env=dict(os.environ, HOME=t.tmp, PATH=path))
        parts = [x.splitlines()[1:] for x in re.split(r"^= ", r.stdout, flags=re.M)[1:]]
        got = [[x.split("\t")[0] for x in part] for part in parts]
        t.eq(got[:len(TYPED)], [[x.split()[-1]] for _, x in TYPED], "fish completes commands, verbs and options")
        for c, found in zip(COMPARED, got[len(TYPED):]):
            wanted = told(c)
            t.ok(wanted and wanted <= set(found), "fish: every option of %s that --help has" % c, sorted(wanted - set(found)), r.stdout)


# ---- DURWARD_PACKAGE ----

def build(t):
    """The package, built as anybody would, from what git knows (or what a tarball holds)."""
    given = os.environ["DURWARD_PACKAGE"]
    if given.endswith(".deb"):
        return given
    source = t.mkdir("source/durward")
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    names = listed.stdout if listed.returncode == 0 else b"\0".join(
        os.path.relpath(os.path.join(w, n), TOP).encode() for w, d, ns in os.walk(TOP) for n in ns
        if not os.path.relpath(w, TOP).startswith("build"))
    pack = subprocess.Popen(["tar", "-c", "-C", TOP, "--null", "-T", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(["tar", "-x", "-C", source], stdin=pack.stdout)
    pack.stdin.write(names)
    pack.stdin.close()
    t.eq((unpack.wait(), pack.wait()), (0, 0), "the source is copied")
    with open(t.path("build.log"), "w") as log:
        r = subprocess.run(["dpkg-buildpackage", "-us", "-uc", "-b"], cwd=source, stdout=log, stderr=log, timeout=1200 * tap.SLOWER,
                           env=dict(os.environ, DEB_BUILD_OPTIONS="nocheck parallel=%d" % os.cpu_count()))
    with open(t.path("build.log"), errors="replace") as log:
        t.ok(r.returncode == 0, "dpkg-buildpackage makes it", log.read()[-2000:])
    if have(t, "lintian", "lintian", "lintian"):
        r = run("lintian", "--no-cfg", "-EvIL", "+pedantic", *glob.glob(t.path("source/*.changes")))
        # Whether pieces of texts make that word (debian/durward.lintian-overrides) differs from build to build.
        said = [x for x in r.stdout.splitlines() if x[:2] in ("E:", "W:", "I:", "P:", "X:") and
                "unused-override spelling-error-in-binary" not in x]
        t.ok(r.returncode == 0 and not said, "lintian finds no error, no warning, nothing of information", *said)
    return glob.glob(t.path("source/durward_*.deb"))[0]


class Host:
    """The machine with the package, an origin for the policy, and what was ever asked."""

    def __init__(self, t, deb):
        self.t, self.deb = t, deb
        self.m = machine.Machine(t, include=("curl", "ca-certificates", "less"))
        self.secret = scan.canary("ghp_").decode()
        self.scanner = scan.Scanner(github=self.secret.encode())
        authority = ca.Authority(t.mkdir("origin-ca"))
        self.origin = origin.Origin(t, authority, HOST, origin.needs(("Authorization", "Bearer " + self.secret), shapes.github()))
        self.port = nginx.free_port()
        self.durward = "durward"
        shutil.copy(self.deb, self.m.path("durward.deb"))
        shutil.copy(authority.pem, self.m.path("etc/origin-ca.pem"))
        self.m.boot()

    def configure(self):
        self.m.put("/etc/durward/credentials/github", self.secret + "\n", 0o600)
        self.m.put("/etc/durward/durward.yaml", json.dumps({
            "version": 1, "secrets": {"github": {"systemd": "secret_github", "kind": "github-pat"}},
            "policies": {"coder": {"env": {"GITHUB_TOKEN": "{{placeholder github}}"},
                                   "rules": [{"allow": HOST + "/user", "with": {"bearer": "github"}}]}},
            "upstream": {"ca": ["/etc/origin-ca.pem"], "resolve": {HOST: self.origin.address}},
            "listen": [{"http": "127.0.0.1:%d" % self.port, "policy": "coder"}],
            "audit": {"dir": "/var/log/durward"}}) + "\n")

    def install(self, more=""):
        return self.m.sh("apt-get update -qq && apt-get install -y -qq --no-install-recommends %s /durward.deb" % more, timeout=300)

    def wait(self):
        return tap.wait_for(lambda: self.m.sh(self.durward + " status", check=False)[0] == 0, 20, 0.1)

    def state(self):
        return self.m.sh("systemctl is-active durward; systemctl is-enabled durward", check=False)[1].split()

    def journal(self):
        return self.m.sh("journalctl -u durward --no-pager | tail -12", check=False)[1]


def roles(h):
    """"USER ROLE" of each process of ours."""
    return h.m.sh("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline | grep -q '^durward: ' && "
                  "echo $(stat -c %U $p) $(tr '\\0' ' ' <$p/cmdline | cut -d' ' -f2); done | sort -u", check=False)[1]


def installed(t, h):
    h.install()
    t.ok(h.wait() and h.state() == ["active", "enabled"], "installed on a bare Debian 12 it is started by systemd and answers",
         h.state(), h.journal())
    t.eq(h.m.sh("find /etc/durward /var/lib/durward /var/log/durward /run/durward -maxdepth 0 -printf '%p %m %u\\n' ; "
                "stat -c '%a %u' /etc/durward/credentials")[1],
         "/etc/durward 755 root\n/var/lib/durward 700 root\n/var/log/durward 700 durward-logger\n/run/durward 700 root\n700 0\n",
         "directories are private, the log is the logger's")
    pairs = dict(reversed(x.split()[:2]) for x in roles(h).splitlines())
    t.ok(all(pairs.get(r) == "durward-" + r for r in ("signer", "vault", "dialer", "gate", "logger", "controller")) and
         pairs.get("builder") == "root", "each role runs under a name of its own", json.dumps(pairs))
    t.has(h.m.sh("curl -s -m 5 --unix-socket /run/durward/api.sock http://localhost/v1/sandboxes")[1], "[", "its API answers root")
    r = h.m.sh("systemd-analyze verify durward.service 2>&1 | grep -v \"man durward\"; dpkg --audit; dpkg --verify durward", check=False)
    t.eq(r, (0, ""), "nothing of it is amiss")
    limits = h.m.sh("grep -h -e NoNewPrivs -e CapBnd -e 'Seccomp:' /proc/$(systemctl show -P MainPID durward)/status")[1]
    t.eq(limits.split(), ["CapBnd:", "00000000800004eb", "NoNewPrivs:", "1", "Seccomp:", "2"], "what the unit takes away is gone")


def ordinary(t, h):
    """What a user does first who has the package and no file of his own. (The journal keeps this command line: a secret of its own.)"""
    secret = "ghp_" + "ordinary" * 4 + "user"
    h.m.sh("useradd -m me")
    code, out = h.m.sh("runuser -l me -c 'mkdir p && cd p && GITHUB_TOKEN=%s durward run --secret GITHUB_TOKEN@%s -- "
                       "sh -c \"env; id -u\"; durward audit verify'" % (secret, HOST), timeout=90, check=False)
    t.ok(code == 0 and re.search(r"^GITHUB_TOKEN=ghp_", out, re.M) and secret not in out and ": good, " in out,
         "an ordinary user's first `durward run` needs no file, and has a log of its own", out)


def serves(t, h, what):
    """A client of the listener and one in a sandbox; the credential reaches the origin and nobody else."""
    before = len(h.origin.requests)
    h.m.sh(h.durward + " ca export >/root/ca.pem")
    answer = h.m.sh(CURL % (h.port, HOST, "/user"))[1]
    t.ok("200" in answer and "octo" in answer, "%s: a client is served with the unit's credential" % what, answer, h.journal())
    t.has(h.m.sh(CURL % (h.port, HOST, "/gists"))[1], "403", "%s: what no rule allows is denied" % what)
    box = h.m.sh(h.durward + " sandbox create --policy coder", timeout=90, check=False)
    t.ok(box[0] == 0, "%s: a sandbox starts and passes its self-test" % what, box[1], h.journal())
    name = box[1].split()[-1]
    out = h.m.sh("%s sandbox exec %s -- sh -c 'curl -s https://%s/user; echo; env; id -u; ls /etc/durward /var/lib/durward'"
                 % (h.durward, name, HOST), check=False)
    t.ok("octo" in out[1], "%s: and reaches the origin" % what, out[1], h.journal())
    h.scanner.search(answer.encode() + out[1].encode(), "clients")
    h.m.sh("%s sandbox rm %s" % (h.durward, name), check=False)
    wrong = origin.one_right(h.origin, ("Authorization", "Bearer " + h.secret))
    t.ok(len(h.origin.requests) == before + 2 and not wrong, "%s: two requests, each with the one right credential" % what, *wrong)


def verified(h):
    return h.m.sh("durward audit verify /var/log/durward", check=False)


def records(h):
    return h.m.sh("cat /var/log/durward/*.jsonl | wc -l")[1].strip()


def life(t, h):
    """Restart, reload, upgrade: the log goes on."""
    h.m.sh("systemctl restart durward")
    t.ok(h.wait(), "restarted, it answers", h.journal())
    serves(t, h, "after a restart")
    h.m.sh("sed -i 's,/user,/users,' /etc/durward/durward.yaml && systemctl reload durward")
    t.ok(tap.wait_for(lambda: "403" in h.m.sh(CURL % (h.port, HOST, "/user"))[1], 5, 0.1), "systemctl reload takes a new policy")
    h.m.sh("sed -i 's,/users,/user,' /etc/durward/durward.yaml && systemctl reload durward")
    h.m.sh("sed -i '1s/^/broken: [/' /etc/durward/durward.yaml; systemctl reload durward", check=False)
    t.ok(h.state()[0] == "active" and "200" in h.m.sh(CURL % (h.port, HOST, "/user"))[1], "a bad one does not replace it", h.journal())
    h.m.sh("sed -i '1s/^broken: .//' /etc/durward/durward.yaml")
    h.install("--reinstall -o Dpkg::Options::=--force-confold")
    t.ok(h.wait() and "200" in h.m.sh(CURL % (h.port, HOST, "/user"))[1], "after an upgrade it serves with the file that was edited",
         h.journal())
    t.ok(verified(h)[0] == 0, "the log verifies", verified(h)[1])


def unprivileged(t, h):
    """All as the user durward, on a log and state of its own."""
    h.m.sh("systemctl stop durward; mkdir -p /etc/systemd/system/durward.service.d; "
           "rm -r /var/log/durward /var/lib/durward /var/cache/durward; "
           "cp /usr/share/doc/durward/examples/unprivileged.conf /etc/systemd/system/durward.service.d/; "
           "systemctl daemon-reload; systemctl start durward")
    h.durward = "runuser -u durward -- env $(systemctl show -P Environment durward) durward"
    t.ok(h.wait(), "with unprivileged.conf it starts", h.journal())
    t.eq(h.m.sh("stat -c %U /proc/$(systemctl show -P MainPID durward) /var/lib/durward /var/log/durward")[1],
         "durward\n" * 3, "and all is the user durward's")
    serves(t, h, "as the user durward")


def purged(t, h):
    h.m.sh("systemctl start durward")
    h.wait()
    before, key = records(h), h.m.sh("cat /var/log/durward/key.pub")[1]
    out = h.m.sh("apt-get purge -y -qq durward 2>&1")[1]
    t.has(out, "audit log stays", "purge says what it leaves")
    left = h.m.sh("ls -d /etc/durward /var/lib/durward /var/cache/durward /run/durward /usr/bin/durward /usr/libexec/durward "
                  "/lib/systemd/system/durward.service 2>/dev/null; find /etc/durward -type f", check=False)[1]
    t.eq(left, "/etc/durward\n/etc/durward/credentials/github\n", "only the administrator's own credential and the log are left")
    t.ok(int(records(h)) >= int(before), "with all of its records")
    t.eq(roles(h), "", "no process of it is left")
    h.install()
    h.configure()
    h.m.sh("systemctl restart durward")
    t.ok(h.wait(), "installed again it starts", h.journal())
    serves(t, h, "installed again")
    t.ok(int(records(h)) > int(before) and verified(h)[0] == 0 and h.m.sh("cat /var/log/durward/key.pub")[1] == key,
         "the log goes on under its key and verifies from its first record", verified(h)[1])


def main(t):
    t.part(unit, t)
    t.part(files, t)
    t.part(apparmor, t)
    t.part(pages, t)
    t.part(completions, t)
    if not os.environ.get("DURWARD_PACKAGE"):
        t.skip("built, installed, run, purged", "it takes minutes: `make package-test`, or DURWARD_PACKAGE=1")
        return
    for program, package in (("dpkg-buildpackage", "dpkg-dev"), ("dh", "debhelper")):
        if not have(t, program, "built, installed, run, purged", package):
            return
    why = machine.needed()
    if why:
        raise tap.Skip(why)
    h = Host(t, build(t))
    installed(t, h)
    t.part(ordinary, t, h)
    h.configure()
    h.m.sh("systemctl restart durward")
    t.ok(h.wait(), "configured, it answers", h.journal())
    serves(t, h, "installed")
    t.part(life, t, h)
    t.part(purged, t, h)
    for where in ("var/log", "run/durward", "var/lib/durward"):
        h.scanner.tree(h.m.path(where))
    t.ok(not h.scanner.hits, "0 copies of the secret in output, logs and state", *h.scanner.hits[:5])
    t.part(unprivileged, t, h)


tap.run(main, timeout=180 if not os.environ.get("DURWARD_PACKAGE") else 1500)
