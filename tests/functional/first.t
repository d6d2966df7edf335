#!/usr/bin/python3 -B
"""The main job once: a sandboxed curl reaches its origin with a credential it cannot see, is denied
elsewhere, and all of it is in the audit. Then what `durward run` owes its caller."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import books, scene, tap  # noqa: E402


def job(t, s):
    d = s.d
    script = ('echo "env: $GITHUB_TOKEN"; curl -sS -i https://api.github.com/user; echo; '
              'curl -sS -i https://api.github.com/gists -d {}; echo; '
              'curl -sS https://evil.example.com/; echo "last $?"')
    r = d.run(["sh", "-c", script])
    t.eq(r.returncode, 0, "the command's status is passed on")
    t.has(r.stdout, '"login": "octo"', "the sandboxed curl got the answer")
    t.has(r.stdout, "env: ghp_", "the sandbox has a placeholder of the right shape")
    t.ok(s.github_secret.decode() not in r.stdout, "and not the secret")
    t.has(r.stdout, "HTTP/2 403", "a denied path is 403")
    t.has(r.stdout.lower(), "\ndurward-denied: denied_by_rule ", "with the header that says so")
    t.has(r.stdout, "last 6", "a denied name does not resolve")
    t.eq(len(s.github.requests), 1, "the origin saw the allowed request only")
    ours = [x for x in r.stderr.splitlines() if x.startswith("durward: ")]
    t.ok(len(ours) == 1 and " denied: " in ours[0] and "api.github.com" in ours[0] and
         "evil.example.com" in ours[0], "one line on stderr sums up what was denied", r.stderr)
    t.eq([x["status"] for x in d.kinds("completed")], [200], "one completed record, status 200")
    admitted = d.kinds("admitted")
    t.ok(len(admitted) == 1 and admitted[0].get("credential") == "github" and
         admitted[0].get("method") == "GET" and admitted[0].get("path") == "/user" and
         admitted[0].get("authority") == "api.github.com", "the admitted record says what",
         str(admitted))
    t.ok(any(x.get("code") == "denied_by_rule" for x in d.kinds("denied")),
         "the denied path is recorded", str(d.kinds("denied")))
    t.ok(any("evil.example.com" in str(x) for x in d.kinds("dns")), "the denied name is recorded",
         str(d.kinds("dns")))
    s.judge([(s.github, s.github_credential)], [r.stdout, r.stderr], "first curl")
    v = d.command("audit", "verify", os.path.dirname(d.audit_files()[0]))
    t.eq(v.returncode, 0, "audit verify accepts the log")


def statuses(t, s):
    d = s.d
    t.eq(d.run(["sh", "-c", "exit 7"]).returncode, 7, "exit status of the command")
    t.eq(d.run(["sh", "-c", "kill -9 $$"]).returncode, 137, "128+n on a signal")
    t.eq(d.run(["/nowhere/x"]).returncode, 127, "127 for a command that is not there")
    t.eq(d.run(["/etc/passwd"]).returncode, 126, "126 for one that cannot be executed")
    r = d.command("run", "-c", os.path.join(d.dir, "none.yaml"), "--", "true")
    t.eq(r.returncode, 125, "125 when Durward itself fails")
    t.has(r.stderr, "none.yaml", "and the message names the file")
    r = d.run(["sh", "-c", "echo out; echo err >&2; cat"], stdin=b"in\n")
    t.eq((r.stdout, r.stderr), ("out\nin\n", "err\n"), "pipes pass through, stderr separate, "
         "nothing is added when nothing was denied")


def surroundings(t, s):
    d = s.d
    t.write("d/work/.env", "PASSWORD=hunter2-in-dot-env\n", 0o600)
    t.write("d/work/note", "a note\n")
    script = ("env; echo --; pwd; cat note; echo made > made; echo --; cat .env; echo --; "
              "ls /proc/self/fd; echo --; id -u; cat /proc/self/status | grep -E "
              "'CapEff|NoNewPrivs|Seccomp:'; ls -a ~; ls / /etc")
    r = d.run(["sh", "-c", script], env={"AWS_SECRET_ACCESS_KEY": "host-env-value"},
              flags=["-e", "EXTRA=1"])
    env = r.stdout.split("\n--\n")[0]
    t.ok("host-env-value" not in r.stdout, "the host's environment is cleared")
    t.has(env, "EXTRA=1", "-e passes a variable in")
    t.has(r.stdout, "\n%s\na note\n" % d.work, "the current directory is bound at its own path")
    t.ok(os.path.exists(os.path.join(d.work, "made")), "and writable")
    t.ok("hunter2" not in r.stdout, "a credential file in it is masked")
    t.has(r.stdout, "NoNewPrivs:\t1", "no_new_privs is set")
    t.has(r.stdout, "Seccomp:\t2", "a seccomp filter is on")
    t.has(r.stdout, "CapEff:\t0000000000000000", "no capability")
    for var in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"):
        t.has(env, var + "=", var + " is set")
    r = d.run(["true"], flags=["--bind", d.env["HOME"] + "/.."], save=False)
    t.eq(r.returncode, 125, "a configuration inside a writable bind is refused")
    r = d.run(["true"], cwd=d.env["HOME"])
    t.eq(r.returncode, 125, "$HOME as the current directory is refused")
    t.has(r.stderr, "home directory", "and the message says so")
    r = d.run(["sh", "-c", "ls " + d.work], flags=["--no-bind"])
    t.ok("note" not in r.stdout, "--no-bind binds nothing")


def flags_only(t, s):
    """--secret and --allow with no policy written."""
    d = s.d
    text = ('version: 1\nupstream:\n  ca: [%s]\n  resolve: { api.github.com: "%s", '
            'deps.example.com: "%s" }\naudit: { dir: %s }\nca: { dir: %s }\n' % (
                d.ca.pem, s.github.address, s.plain.address, d.audit_dir, d.ca_dir))
    d.save(text)
    before = len(s.github.requests)
    r = d.run(["sh", "-c", "curl -sS https://api.github.com/user; "
               "curl -sS -o /dev/null -w '%{http_code}' https://deps.example.com/a; env"],
              flags=["--secret", "GITHUB_TOKEN@api.github.com", "--allow", "deps.example.com/a"],
              save=False, env={"GITHUB_TOKEN": s.github_secret.decode()})
    t.has(r.stdout, '"octo"', "--secret NAME@host injects an environment secret")
    t.has(r.stdout, "200", "--allow opens a host")
    t.eq(len(s.github.requests) - before, 1, "one request came")
    s.clean([r.stdout, r.stderr], "run with flags")
    r = d.run(["true"], flags=["--secret", "GITHUB_TOKEN=abc@api.github.com"], save=False)
    t.ok(r.returncode in (2, 125) and "abc" not in r.stderr,
         "a secret's value on the command line is refused and not repeated", r.stderr)


def main(t):
    s = scene.Scene(t)
    for part in (job, statuses, surroundings, flags_only):
        t.part(part, t, s)
    sums = books.figures(s.d)  # of several runs: each has its own log, in which ids begin anew
    t.ok(sums["admitted"] > 2 and sums["lost"] == 0 and sums["unlogged"] == 0, "every request is in its run's log",
         repr(sums))


tap.run(main)
