#!/usr/bin/python3 -B
"""Remote pairing: a listener that is bound to a policy, and one that wants a sandbox's token. A curl
in a plain network namespace is paired with nothing but the output of `durward env`."""
import glob
import os
import signal
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, client, namespace, nginx, scene, tap  # noqa: E402


def env_lines(t, r):
    t.eq(r.returncode, 0, "durward env succeeds") or t.diag(r.stderr)
    lines = r.stdout.strip().splitlines()
    t.ok(lines and all("=" in x and x.split("=")[0].isidentifier() for x in lines),
         "durward env prints KEY=value lines", r.stdout)
    return dict(x.split("=", 1) for x in lines if "=" in x)


def token_of(values):
    """user:password of the proxy address."""
    for key in ("HTTPS_PROXY", "https_proxy"):
        if key in values:
            return values[key].strip("'\"").split("//", 1)[1].rpartition("@")[0]
    return ""


def bound(t, s, gate):
    r = gate.get("api.github.com", "/user")
    t.eq((r.status, b"octo" in r.body), (200, True), "the policy-bound listener serves its policy")
    r, st = gate.connect("other.example.com:443")
    st.close()
    t.eq((r.status, r.code), (403, "no_rule"), "and nothing of another policy")


def tokens(t, s, address, values):
    good = token_of(values)
    t.ok(":" in good and len(good) > 40, "the proxy variable carries a token")
    before = len(s.github.requests)
    for name, token in (("no token", None), ("a wrong one", "x:y"),
                        ("a cut one", good[:-4]), ("an empty one", ":"),
                        ("a changed one", good[:-6] + ("A" if good[-6] != "A" else "B") +
                         good[-5:]),
                        ("a long one", "a:" + "b" * 5000)):
        gate = client.Gate(address, s.ca_file(), token=token)
        r, st = gate.connect("api.github.com:443")
        st.close()
        t.ok(r.status in ((407, 431) if name == "a long one" else (407,)), "%s is 407" % name,
             str(r.status))
        if name == "no token":
            t.ok((r.get("proxy-authenticate") or "").lower().startswith("basic"),
                 "with Proxy-Authenticate: Basic", str(r.headers))
    for line in ("Proxy-Authorization: Basic !!!\r\n", "Proxy-Authorization: Bearer x\r\n",
                 "Proxy-Authorization: Basic eDp5\r\nProxy-Authorization: Basic eDp5\r\n"):
        r, st = client.Gate(address).connect("api.github.com:443", line)
        st.close()
        t.ok(r.status in (400, 407), "%r is refused" % line.split("\r\n")[0], str(r.status))
    t.eq(len(s.github.requests), before, "nothing of these reached the origin")
    gate = client.Gate(address, s.ca_file(), token=good)
    r = gate.get("api.github.com", "/user")
    t.eq(r.status, 200, "the right one is served")
    r = gate.get("api.github.com", "/gists", method="POST", body=b"{}")
    t.eq((r.status, r.code), (403, "denied_by_rule"), "under the policy's rules")
    t.ok(all(not q.get("proxy-authorization") for q in s.github.requests),
         "the token never reaches an origin")


def expiry(t, s, address):
    """A token is good for its time and no longer."""
    r = s.d.command("env", "--policy", "coder", "--ttl", "2s", "--socket", s.d.socket)
    gate = client.Gate(address, s.ca_file(), token=token_of(env_lines(t, r)))
    t.eq(gate.get("api.github.com", "/user").status, 200, "a token of two seconds is served")

    def gone():
        answer, st = gate.connect("api.github.com:443")
        st.close()
        return answer.status == 407
    t.ok(tap.wait_for(gone, 5, 0.25), "and is 407 when it has expired")


def revoked(t, s, address):
    """A revoked identity's token ends at once: on new connections, on those that are open, for
    every role, and after a restart."""
    with_api = api.Api(s.d.socket)
    first = with_api.ask("POST", "/v1/identities", {"policy": "coder"})
    other = with_api.ask("POST", "/v1/identities", {"policy": "coder"})
    gate = client.Gate(address, s.ca_file(), token="sandbox:" + first["token"])
    keeps = client.Gate(address, s.ca_file(), token="sandbox:" + other["token"])
    held = [(host, gate.tls(host)) for host in ("api.github.com", "deps.example.com")]
    ask = "GET /user HTTP/1.1\r\nHost: %s\r\n\r\n"
    for host, st in held:
        t.eq(st.ask((ask % host).encode(), "GET").status, 200, "%s: served before" % host)
    before = len(s.github.requests) + len(s.plain.requests)
    with_api.ask("DELETE", "/v1/identities/" + first["id"])

    def refused():
        answer, st = gate.connect("api.github.com:443")
        st.close()
        return (answer.status, answer.code) == (407, "token_revoked")
    t.ok(refused(), "a revoked token is 407 token_revoked as soon as the API has answered")
    for host, st in held:
        try:
            r = st.ask((ask % host).encode(), "GET")
            t.ok(False, "%s: what was open has ended" % host, str(r.status))
        except (client.Ended, OSError):
            t.ok(True, "%s: what was open has ended" % host)
        st.close()
    t.eq(len(s.github.requests) + len(s.plain.requests), before, "no origin heard of it any more")
    t.eq(keeps.get("api.github.com", "/user").status, 200, "another identity is untouched")
    t.eq(s.d.stop(), 0, "the daemon ends")
    s.d.serve()
    t.ok(refused(), "and it is refused after a restart")
    t.eq(keeps.get("api.github.com", "/user").status, 200, "while the other one is served")
    with_api.close()


def waited_for(t, s):
    """The API answers a revocation once each role has taken it, and waits a second for one that does not."""
    a = api.Api(s.d.socket)
    ids = [a.ask("POST", "/v1/identities", {"policy": "coder"})["id"] for _ in range(2)]

    def seconds(identity):
        began = time.monotonic()
        t.eq(a.ask("DELETE", "/v1/identities/" + identity), {"revoked": identity}, "revoked")
        return time.monotonic() - began
    (dialer,) = [pid for pid, role in s.d.roles() if role == "dialer"]
    os.kill(dialer, signal.SIGSTOP)
    try:
        took = seconds(ids[0])
    finally:
        os.kill(dialer, signal.SIGCONT)
    t.ok(0.9 < took < 5, "a role that does not take it is waited for, a second", "%.3f s" % took)
    took = seconds(ids[1])
    t.ok(took < 0.9, "where all take it the answer comes at once", "%.3f s" % took)
    a.close()


def paired(t, s, ns, values_text):
    path = t.write("paired.env", values_text, 0o644)
    status, out, err = ns.sh("set -a; . %s; set +a; curl -sS https://api.github.com/user; "
                             "curl -sS -o /dev/null -w '%%{http_connect}' "
                             "https://evil.example.com/; "
                             "curl -sS -d '{\"title\":\"remote\"}' "
                             "https://api.github.com/repos/acme/x/issues" % path)
    t.has(out, '"octo"', "curl in a plain namespace, paired by durward env alone") or t.diag(err)
    t.has(out, "403", "is denied elsewhere")
    t.has(out, '"remote"', "and may what its policy may")
    status, out2, err2 = ns.sh("curl -sS -m 5 https://api.github.com/user")
    t.ok(status != 0, "without it there is no way out of that namespace", out2)
    return [out, err, out2, err2]


def many_revoked(t, s, address):
    """Thousands of revoked tokens, and a controller that dies: the next one says them all, and nobody falls."""
    t.eq(s.d.stop(), 0, "the daemon ends")
    (path,) = glob.glob(os.path.join(s.d.dir, "state", "**", "registry.db"), recursive=True)
    db = sqlite3.connect(path, timeout=20)
    with db:
        db.executemany(
            "INSERT INTO identity (id, kind, policy, seed, expires, revoked) VALUES (?, 1, 'coder', ?, ?, 1)",
            [("revoked%026d" % i, os.urandom(16), int(time.time()) + (3000 if i > 512 else -3000)) for i in range(3600)])
    db.close()
    s.d.serve()
    before = s.d.roles()
    (pid,) = [p for p, role in before if role == "controller"]
    os.kill(pid, signal.SIGKILL)
    t.ok(tap.wait_for(lambda: pid not in dict(s.d.roles()) and s.d.answers(), 15, 0.05), "a new controller answers")
    a = api.Api(s.d.socket)
    one = a.ask("POST", "/v1/identities", {"policy": "coder"})
    gate = client.Gate(address, s.ca_file(), token="sandbox:" + one["token"])
    t.eq(gate.get("api.github.com", "/user").status, 200, "a token of its is served")
    a.ask("DELETE", "/v1/identities/" + one["id"])

    def heard():  # behind all that was revoked before
        answer, st = gate.connect("api.github.com:443")
        st.close()
        return answer.code == "token_revoked"
    t.ok(tap.wait_for(heard, 10, 0.05), "and revoked")
    a.close()
    gone = {x for x in before if x[1] != "controller"} - set(s.d.roles())
    t.eq(gone, set(), "with 3,600 revoked tokens: no other role fell")


def main(t):
    if os.geteuid() != 0:
        ns = None
    else:
        ns = namespace.Namespace(t)
    s = scene.Scene(t)
    s.d.policy("other", [{"allow": "other.example.com"}])
    s.d.policy("bound", s.rules)
    bound_at = s.listener("bound")
    host = ns.host if ns else "127.0.0.1"
    token_at = "%s:%d" % (host, nginx.free_port())
    s.d.listen.append({"http": token_at, "insecure": True} if ns else {"http": token_at})
    s.d.serve()
    outputs = []
    bound(t, s, s.gate(bound_at))
    r = s.d.command("env", "--policy", "coder", "--socket", s.d.socket)
    values = env_lines(t, r)
    t.ok(token_at in r.stdout, "and names the listener that wants a token", r.stdout)
    outputs.append(r.stdout)
    tokens(t, s, token_at, values)
    expiry(t, s, token_at)
    revoked(t, s, token_at)
    waited_for(t, s)
    many_revoked(t, s, token_at)
    if ns:
        outputs += paired(t, s, ns, r.stdout)
    else:
        t.skip("curl in a plain network namespace", "making one needs root")
    other = s.d.command("env", "--policy", "other", "--socket", s.d.socket)
    gate = client.Gate(token_at, s.ca_file(), token=token_of(env_lines(t, other)))
    r, st = gate.connect("api.github.com:443")
    st.close()
    t.eq((r.status, r.code), (403, "no_rule"), "another policy's token gets that policy's rules")
    r = s.d.command("env", "--policy", "nobody", "--socket", s.d.socket)
    t.ok(r.returncode != 0 and "nobody" in r.stderr, "env for an unknown policy fails", r.stderr)
    good = token_of(values)
    logs = b"".join(open(f, "rb").read() for f in s.d.audit_files())
    t.ok(good.rpartition(":")[2].encode() not in logs, "no token is in the log")
    s.judge([(s.github, s.github_credential), (s.plain, None)], outputs, "remote")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
