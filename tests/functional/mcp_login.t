#!/usr/bin/python3 -B
"""`durward login mcp`: OAuth at a remote MCP server is the host's. A sandbox sees a server that wants no login; what is
kept is refreshed outside; what a lying server or authorization server says is refused by name."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, mcp_login, origin, tap  # noqa: E402
from harness.mcp_login import ISSUER, SERVER, URL  # noqa: E402
from harness.mcp_relay import relay  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(durward.clients_dir(), "mcp")
PYTHON = os.path.join(FOLDER, "py", "bin", "python")

CALL = ("curl -sS -m 40 -w ' %%{http_code}\\n' %s -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "
        "-d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}'\n" % URL)


def call(w, flags=("--login", "mcp@acme"), script=CALL, **kw):
    w.d.save()
    return w.d.command("run", "-c", w.d.conf, *flags, "--", "sh", "-c", script, timeout=60, **kw)


def age(w, left):
    """The login in the file ends that soon."""
    path = mcp_login.state_file(w.d)
    login = mcp_login.kept(w.d)
    login["expires"] = int(time.time()) + left
    with open(path, "w") as f:
        json.dump(login, f)


def plain(t, w):
    code, out, err = w.login()
    t.ok(code == 0 and "durward run --login mcp@acme" in err, "a login, with a browser that the user has", code, out, err)
    path = mcp_login.state_file(w.d)
    login = mcp_login.kept(w.d)
    t.eq((stat.S_IMODE(os.stat(path).st_mode), stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), os.listdir(os.path.dirname(path))),
         (0o600, 0o700, ["acme.json"]), "in a file that its user alone can read")
    t.eq((login["server"], login["resource"], login["token_url"], login["access"], login["refresh"]),
         (SERVER + "/mcp", URL, "https://%s/token" % ISSUER, w.access, w.refresh), "which says for whom the tokens are")
    wanted = next(iter(w.clients.values()))
    t.eq((wanted["client_name"], wanted["token_endpoint_auth_method"], wanted["application_type"], wanted["scope"]),
         ("Durward", "none", "native", "read write"), "the client that was registered")
    t.ok(wanted["redirect_uris"][0].startswith("http://127.0.0.1:"), "its redirect is this machine's loopback", wanted)
    t.ok(set(w.asked[0]) == {"grant_type", "code", "redirect_uri", "code_verifier", "resource", "client_id"} and len(w.asked[0]["code_verifier"]) == 43,
         "the code is changed into tokens with PKCE and for this resource", list(w.asked[0]))
    w.scanner.search(out + err, "what was said")
    t.ok(not w.scanner.hits, "and nothing of a token is said", *w.scanner.report())
    rows = {x["login"]: x["file"] for x in json.loads(w.d.command("login", "ls", "--json").stdout)["logins"]}
    t.eq(rows.get("mcp@acme"), path, "durward login ls")


def inside(t, w):
    r = call(w, script=CALL + "env >env.txt; tar cf left.tar --ignore-failed-read -C / proc/self/environ home root tmp 2>/dev/null; true")
    t.ok(r.stdout.endswith(" 200\n") and w.calls[-1:] == ["tools/list"], "inside, the server wants no login", r.stdout, r.stderr)
    w.scanner.tree(w.d.work)
    w.scanner.tree(w.d.audit_dir)
    w.scanner.search(r.stdout + r.stderr, "output")
    t.ok(not w.scanner.hits, "and nothing of a token is there or on record", *w.scanner.report())
    r = call(w, script="curl -sS -o /dev/null -w '%%{http_code} ' https://%s/other; curl -sS -o /dev/null -w '%%{http_code}' https://%s/token -d x" % (
        SERVER, ISSUER))
    t.eq(r.stdout, "403 000", "the authorization server and the rest of the host are not opened by that")
    r = call(w, flags=("--login", "mcp@other"))
    t.ok(r.returncode == 125 and "durward login mcp other URL" in r.stderr, "a login that is not there: the command is named", r.stderr)
    r = call(w, flags=("--login", "mcp"))
    t.ok(r.returncode == 125 and "--login mcp@NAME" in r.stderr, "which one, has to be said", r.stderr)


def configured(t, w):
    """The lines that the command prints, in a configuration."""
    code, out, err = w.login("--json")
    said = json.loads(out)
    t.ok(code == 0 and said["refreshes"] and said["resource"] == URL, "--json", err)
    w.d.secrets.update(said["secrets"])
    w.d.policy("coder", said["rules"])
    r = call(w, ("--policy", "coder"))
    t.ok(r.stdout.endswith(" 200\n"), "its secrets and rule, in a configuration", r.stdout, r.stderr)
    for pattern in ("other.example.com/mcp", SERVER, "." + SERVER + "/mcp", SERVER + "/mcpx", SERVER + ":8443/mcp"):
        w.d.policy("coder", [dict(said["rules"][0], allow=pattern)])
        r = w.d.check()
        t.ok(r.returncode == 1 and "is a token for %s" % URL in r.stderr + r.stdout, "the token is for no other place: %s" % pattern, r.stdout, r.stderr)
    w.d.policies.clear()
    w.d.secrets.clear()


def refreshed(t, w):
    age(w, 60)
    before, asked = (w.access, w.refresh), len(w.asked)
    r = call(w)
    got = mcp_login.kept(w.d)
    t.ok(r.stdout.endswith(" 200\n") and len(w.asked) == asked + 1 and w.access != before[0], "a token that ends soon is refreshed outside",
         r.stdout, r.stderr, w.asked[asked:])
    t.eq(set(w.asked[-1]), {"grant_type", "refresh_token", "resource", "client_id"}, "for the same resource, by the same client")
    t.eq((got["access"], got["refresh"], got["client"]), (w.access, w.refresh, got["client"]), "the file has the new tokens")
    age(w, -10)
    asked = len(w.asked)
    w.d.save()
    ps = [t.popen([durward.program(), "run", "-c", w.d.conf, "--login", "mcp@acme", "--", "sh", "-c", CALL + CALL], env=w.d.env,
                  cwd=t.mkdir("together%d" % i), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in range(2)]
    outs = [p.communicate(timeout=90)[0] for p in ps]
    t.ok(all(x.count(" 200\n") == 2 for x in outs) and len(w.asked) == asked + 1, "two sandboxes at once: one refresh", *outs, w.asked[asked:])
    age(w, -10)
    w.refused = "invalid_grant"
    r = call(w)
    t.ok(r.stdout.endswith(" 503\n"), "a refresh that is refused: no request goes out", r.stdout)
    t.has(json.dumps(w.d.kinds("lifecycle", event="store_failed")[-1:]), "400 invalid_grant; log in again on the host: durward login mcp NAME URL",
          "and the log names the command")
    w.reset()


def revoked(t, w):
    """The server takes the token no more, before its time: it is refreshed outside, once, and nobody inside notices."""
    w.login()
    w.access, asked, calls = "revoked", len(w.asked), len(w.calls)
    r = call(w, script="(" + CALL + ") & (" + CALL + ") & (" + CALL + ") & wait\n")
    t.ok(r.stdout.count(" 200\n") == 3 and len(w.asked) == asked + 1 and len(w.calls) == calls + 3, "three calls at once with a revoked token: "
         "one refresh, and each is answered", r.stdout, r.stderr, w.asked[asked:])
    t.eq((mcp_login.kept(w.d)["access"], mcp_login.kept(w.d)["refresh"]), (w.access, w.refresh), "the file has the new tokens")
    rows = [x for x in w.d.kinds("aborted", code="login_renewed") if x["status"] == 401]
    t.ok(1 <= len(rows) <= 3, "each attempt is on record", rows)
    w.answers["/mcp"] = lambda req, conn: conn.reply(req, 401, {"error": "invalid_token"})
    asked = len(w.asked)
    r = call(w, script=CALL * 4)
    t.ok(r.stdout.count(" 502\n") == 4 and len(w.asked) == asked + 1, "a server that refuses everything: one refresh", r.stdout, w.asked[asked:])
    w.reset()


def revoked_elsewhere(t, w):
    """A rule that reads no messages: what cannot be sent again is asked for again, and a 401 is the server's word in the end."""
    code, out, err = w.login("--json")
    said = json.loads(out)
    w.d.secrets.update(said["secrets"])
    w.d.policy("coder", [{"allow": URL.partition("://")[2], "with": said["rules"][0]["with"]}])
    w.access, asked = "revoked", len(w.asked)
    post = "curl -sS -m 40 -o /dev/null -w '%%{http_code} %%header{retry-after} ' -d '{}' %s\n" % URL
    get = post.replace("-d '{}' ", "")
    r = call(w, ("--policy", "coder"), post + post)
    t.eq((r.stdout, len(w.asked) - asked), ("503 1 200  ", 1), "a body that has gone on: 503, worth another try, which has the new token")
    w.access = "revoked"
    r = call(w, ("--policy", "coder"), get)
    t.eq((r.stdout, len(w.asked) - asked), ("200  ", 2), "without a body it is sent again")
    w.answers["/mcp"] = lambda req, conn: conn.reply(req, 401, {"error": "invalid_token"}, [("X-Said", "so")])
    r = call(w, ("--policy", "coder"), get + get + post)
    t.eq((r.stdout, len(w.asked) - asked), ("401  401  401  ", 3), "refused again: that is what the client is told")
    w.d.policies.clear()
    w.d.secrets.clear()
    w.reset()


def counted(t, w):
    """What is counted or decided for one request is not spent on two, and what was let pass is judged by the policy of now."""
    code, out, err = w.login("--json")
    said = json.loads(out)
    w.d.secrets.update(said["secrets"])
    rule = {"allow": URL.partition("://")[2], "with": said["rules"][0]["with"]}
    get = "curl -sS -m 40 -o /dev/null -w '%%{http_code} %%header{retry-after} ' %s\n" % URL
    w.d.policy("coder", [dict(rule, budget={"requests": "2/h"})])
    w.access, asked, came = "revoked", len(w.asked), []
    w.server.handler = lambda req, conn: (came.append(req.path), w.on_server(req, conn))
    r = call(w, ("--policy", "coder"), get * 3)
    t.eq((r.stdout, len(w.asked) - asked, len(came)), ("503 1 200  429 %s " % r.stdout.split()[-1], 1, 2),
         "a rule with a budget: the client asks again, and the server gets no more requests than that") or t.diag(r.stderr)
    held, go = threading.Event(), threading.Event()

    def slow(req, conn):
        held.set()
        go.wait(20)
        w.on_token(req, conn)
    w.d.policy("asked", [{"ask": rule["allow"], "with": rule["with"]}])

    def curl(box):
        one = api.Api(w.d.socket)
        outs.append(one.exec(box, get, split=True)["stdout"].strip())
        one.close()

    def serve(policy):
        w.d.serve()
        w.access = "revoked"
        c = api.Api(w.d.socket)
        box = c.create(policy=policy)["id"]
        thread = threading.Thread(target=curl, args=(box,))
        thread.start()
        return c, box, thread
    outs, calls = [], len(w.calls)
    c, box, thread = serve("asked")
    one = tap.wait_for(lambda: c.ask("GET", "/v1/approvals")["approvals"], 20, 0.05)
    c.ask("POST", "/v1/approvals/%s/allow" % one[0]["id"])
    thread.join(60)
    t.eq((outs, len(w.calls) - calls), (["503 1"], 0), "an approval is for one request")
    c.close()
    w.d.stop()
    w.d.policy("coder", [rule])
    w.answers["/token"] = slow
    outs = []
    c, box, thread = serve("coder")
    t.ok(held.wait(20), "a token is got anew")
    w.d.policies["coder"]["rules"] = [dict(rule, methods=["DELETE"])]
    w.d.save()
    c.ask("POST", "/v1/reload")
    now = c.exec(box, get, split=True)["stdout"].strip()
    go.set()
    thread.join(60)
    t.eq((now, outs, len(w.calls) - calls), ("403", ["503 1"], 0), "meanwhile the rule is gone: it is not sent again")
    c.close()
    w.d.stop()
    w.server.handler = w.on_server
    w.d.policies.clear()
    w.d.secrets.clear()
    w.reset()


def renewed(t, w):
    """Neither is it refreshed: the sandbox is told what to do, and that helps while it runs."""
    w.login()
    w.access, w.refused = "revoked", "invalid_grant"
    refused = len(w.d.kinds("aborted", code="mcp_login"))
    answers = []

    def host():
        if tap.wait_for(lambda: os.path.exists(w.d.work + "/refused"), 40, 0.05):
            w.refused = None
            answers.append(w.login())
            open(w.d.work + "/renewed", "w").close()
    helper = threading.Thread(target=host)
    helper.start()
    r = call(w, script=CALL + "touch refused; while [ ! -e renewed ]; do sleep 0.1; done\n" + CALL)
    helper.join()
    first, _, second = r.stdout.partition(" 502\n")
    t.ok("durward login mcp NAME URL" in first and "resource_metadata" not in r.stdout, "a token that is taken no more: the answer names the command",
         r.stdout, r.stderr)
    t.ok(second.endswith(" 200\n") and answers and answers[0][0] == 0, "a new login serves the sandbox that runs", r.stdout, answers)
    t.eq(len(w.d.kinds("aborted", code="mcp_login")), refused + 1, "and the record says why")


def proofs(t, w):
    """Confidential clients, and one that the user registered."""
    for method in ("client_secret_post", "client_secret_basic"):
        w.metadata["token_endpoint_auth_methods_supported"] = [method]
        code, out, err = w.login()
        age(w, 60)
        r = call(w)
        t.ok(code == 0 and r.stdout.endswith(" 200\n"), "a client with a secret: %s, at the login and at a refresh" % method, err, r.stdout, r.stderr,
             w.asked[-1:])
        w.scanner.search(out + err + r.stdout + r.stderr, "what was said")
    t.ok(not w.scanner.hits, "which is not said", *w.scanner.report())
    w.reset()
    del w.metadata["registration_endpoint"]
    code, out, err = w.login()
    t.ok(code == 1 and "--client-id ID --port PORT" in err, "no registration: what to do is said", err)
    code, out, err = w.login("--client-id", "https://client.example.com/durward.json")
    t.ok(code == 0 and w.asked[-1]["client_id"] == "https://client.example.com/durward.json", "a client of the user's", err)
    w.reset()


def pasted(t, w):
    code, out, err = w.login(paste=True)
    t.ok(code == 0, "without a browser here: the address is pasted", err)
    code, out, err = w.login(paste=True, answer=lambda url: url.replace("127.0.0.1", "127.9.9.1"))
    t.ok(code == 1 and "not the address" in err, "another address is none", err)
    code, out, err = w.login(paste=True, answer=lambda url: url.replace("state=", "state=x"))
    t.ok(code == 1 and "not the address" in err, "nor is the answer of another attempt", err)
    opener = os.path.join(t.mkdir("bin"), "xdg-open")
    with open(opener, "w") as f:
        f.write("#!/bin/sh\nprintf '%%s\\n' \"$@\" >%s/opened\n" % w.d.work)
    os.chmod(opener, 0o755)
    code, out, err = w.login(env={"PATH": os.path.dirname(opener) + ":" + w.d.env["PATH"]})
    opened = tap.wait_for(lambda: os.path.exists(w.d.work + "/opened") and open(w.d.work + "/opened").read(), 10, 0.05)
    t.ok(code == 0 and opened and re.fullmatch(r"http://127\.0\.0\.1:[0-9]+/begin\n", opened),
         "a browser is opened with one address, in which nobody who sees its arguments finds anything", opened, err)


def other_user(t, w):
    """Another user of this machine, who has seen the address, and comes with an answer of his own."""
    def stranger(url):
        if os.geteuid() == 0:
            t.eq(as_user(url), "none none", "another user's is not heard, with the right answer either")
        begin = url.partition("/callback")[0] + "/begin"
        t.ok(mcp_login.leads_to(begin).startswith("https://%s/authorize?" % ISSUER), "our own browser is sent on", begin)
        return url
    code, out, err = w.login(answer=stranger)
    t.ok(code == 0, "a login, while others knock", err)
    if os.geteuid() != 0:
        t.skip("another user's browser", "needs root")
        return
    t.has(err, "another user of this machine was not heard", "which is said")
    gone(t, w)


GONE = """
import socket, sys
for i in range(6):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.send(("GET %s HTTP/1.1\\r\\nHost: 127.0.0.1:%s\\r\\n\\r\\n" % (sys.argv[2], sys.argv[1])).encode())
    s.close()
"""


def closed_ends(port):
    """Whose the sockets are whose other end is that port, as the kernel says it."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        return {x.split()[7] for x in f if x.split()[2].endswith(":%04X" % port)}


def gone(t, w):
    """Another user, who has closed his ends when they are looked up: the kernel says uid 0 of them."""
    def stranger(url):
        where = urllib.parse.urlsplit(url)
        words = dict(urllib.parse.parse_qsl(where.query), code="a-code-of-a-stranger")
        w.process.send_signal(signal.SIGSTOP)
        try:
            subprocess.run([sys.executable, "-c", GONE, str(where.port), where.path + "?" + urllib.parse.urlencode(words)], user=65534, group=65534,
                           extra_groups=[], cwd="/", check=True, timeout=20)
            t.ok(tap.wait_for(lambda: closed_ends(where.port) == {"0"}, 10, 0.02), "closed ends are uid 0's", closed_ends(where.port))
        finally:
            w.process.send_signal(signal.SIGCONT)
        return url
    asked = len(w.asked)
    code, out, err = w.login(answer=stranger)
    t.ok(code == 0 and len(w.asked) == asked + 1 and "stranger" not in w.asked[-1]["code"] and "another user of this machine was not heard" in err,
         "nor when he has sent the answer, with a code of his own, and closed", code, err, w.asked[asked:])


def as_user(url):
    """What curl of an ordinary user gets."""
    begin = url.partition("/callback")[0] + "/begin"
    said = []
    for one in (url, begin):
        r = subprocess.run(["curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", one], user=65534, group=65534, extra_groups=[],
                           stdout=subprocess.PIPE, text=True, cwd="/", env={"PATH": os.environ["PATH"]})
        said.append("none" if r.stdout == "000" else r.stdout)
    return " ".join(said)


def visited(t, w):
    """Whoever else comes to the listener does not end the wait."""
    def others(url):
        base = url.partition("?")[0]
        wrong = base + "?code=x&state=" + "A" * 43
        got = [mcp_login.visit(wrong), mcp_login.visit(base), mcp_login.visit(url.replace("/callback", "/other")),
               mcp_login.visit(url, Host="evil.example.com"), mcp_login.visit(base + "?error=access_denied&state=stolen")]
        t.eq(got, [404] * 5, "a stranger's code, another path, another name, a stranger's error: 404 each")
        return url
    code, out, err = w.login(answer=others)
    t.ok(code == 0, "and the wait goes on", err)


def attack(t, w, what, want, change=None, **kw):
    """A lie: the login ends with these words, and what is kept stays as it was."""
    w.reset()
    if change:
        change(w)
    before, asked = open(mcp_login.state_file(w.d)).read(), len(w.asked)
    code, out, err = w.login(**kw)
    t.ok(code == 1 and want in err and open(mcp_login.state_file(w.d)).read() == before, what, code, out, err)
    w.scanner.search(out + err, what)
    w.reset()
    return w.asked[asked:]


def set_in(part, **members):
    def change(w):
        for k, v in members.items():
            if v is None:
                getattr(w, part).pop(k)
            else:
                getattr(w, part)[k] = v
    return change


def discovery(t, w):
    evil = "https://evil.example.com"
    attack(t, w, "the metadata is another host's word", "another's word about it is not taken",
           lambda w: setattr(w, "challenge", 'Bearer resource_metadata="%s/x"' % evil))
    attack(t, w, "the server names two places", "WWW-Authenticate cannot be read", lambda w: setattr(
        w, "challenge", 'Bearer resource_metadata="https://%s/a", resource_metadata="https://%s/b"' % (SERVER, SERVER)))
    for resource in ("https://other.example.com/mcp", "https://%s/mcp/deeper" % SERVER, "https://%s/mc" % SERVER, "http://%s/mcp" % SERVER):
        attack(t, w, "a token for another resource: %s" % resource, "resource", set_in("resource", resource=resource))
    attack(t, w, "an authorization server in clear", "is not https", set_in("resource", authorization_servers=["http://" + ISSUER]))
    attack(t, w, "mix-up: metadata of another issuer", "that of another issuer", set_in("metadata", issuer=evil))
    attack(t, w, "endpoints in clear", "is not https", set_in("metadata", token_endpoint="http://%s/token" % ISSUER))
    attack(t, w, "an address that a shell or browser could take otherwise", "has a sign", set_in(
        "metadata", authorization_endpoint="https://%s/a\"; x" % ISSUER))
    attack(t, w, "no PKCE", "PKCE", set_in("metadata", code_challenge_methods_supported=None))
    attack(t, w, "PKCE in clear only", "PKCE", set_in("metadata", code_challenge_methods_supported=["plain"]))
    attack(t, w, "a redirect to another origin", "no redirect is followed", lambda w: w.answers.update({
        "/.well-known/oauth-authorization-server": lambda req, conn: conn.reply(req, 302, b"", [("Location", evil + "/x")])}))
    attack(t, w, "redirects without end", "more than 3 redirects", lambda w: w.answers.update({
        "/.well-known/oauth-authorization-server": lambda req, conn: conn.reply(req, 302, b"", [("Location", req.path)])}))
    huge = b'{"issuer": "' + b"x" * 300000 + b'"}'
    attack(t, w, "metadata of 300 kB", "longer than 262144 bytes", lambda w: w.answers.update({
        "/.well-known/oauth-authorization-server": lambda req, conn: conn.reply(req, 200, huge)}))
    attack(t, w, "a duplicate key", "not a JSON document", lambda w: w.answers.update({
        "/.well-known/oauth-authorization-server": lambda req, conn: conn.reply(req, 200, b'{"issuer":"a","issuer":"b"}')}))
    for host in ("127.0.0.1", "localhost"):
        attack(t, w, "a place of this network, which a server elsewhere named: %s" % host, "leads to an address of this network (loopback)", set_in(
            "metadata", token_endpoint="https://%s:%d/token" % (host, w.issuer.port)))
    code, out, err = w.login("--issuer", evil)
    t.ok(code == 1 and "that --issuer says" in err, "the authorization server is not the one that was asked for", err)


def answers(t, w):
    got = attack(t, w, "the answer of another authorization server", "RFC 9207", lambda w: w.callback.update(iss="https://evil.example.com"))
    t.eq(got, [], "no code was handed in")
    attack(t, w, "an answer that does not say whose it is", "RFC 9207", lambda w: w.callback.update(iss=None))
    attack(t, w, "the user said no", "refused: access_denied", lambda w: w.callback.update(error="access_denied", code=None))
    attack(t, w, "a registration with another redirect", "another redirect", lambda w: w.register.update(redirect_uris=["https://evil.example.com/cb"]))
    attack(t, w, "a registration that is refused", "the registration answered 403", lambda w: w.answers.update({
        "/register": lambda req, conn: conn.reply(req, 403, {"error": "no; \x1b[31m"})}))
    attack(t, w, "a token endpoint that leads elsewhere", "the token endpoint answered 307", lambda w: w.answers.update({
        "/token": lambda req, conn: conn.reply(req, 307, b"", [("Location", "https://evil.example.com/token")])}))
    got = attack(t, w, "a refusal: its code, and none of its text", "answered 400 invalid_target", lambda w: setattr(w, "refused", "invalid_target"))
    t.ok(len(got) == 1, "once", got)
    for member, value in (("token_type", "DPoP"), ("access_token", "a b"), ("access_token", "x" * 20000), ("access_token", None),
                          ("expires_in", -1), ("refresh_token", "a\nb")):
        attack(t, w, "a token that cannot be used: %s" % member, "no bearer token that can be used", lambda w: w.token.update({member: value}))
    t.ok(not w.scanner.hits, "nothing of a token was said", *w.scanner.report())


def lenient(t, w):
    """What is legitimate: OpenID's place, a challenge without a word, a resource that is the whole host, a slash."""
    w.challenge = None
    code, _, err = w.login()
    t.ok(code == 0, "a 401 that says nothing: the well-known place", err)
    w.reset()
    w.resource = None
    code, _, err = w.login()
    t.ok(code == 1 and "--issuer URL" in err, "no metadata at all: what to do is said", err)
    code, _, err = w.login("--issuer", "https://%s/" % ISSUER)
    t.ok(code == 0, "and done; a slash that is all of the path counts for nothing", err)
    w.reset()
    w.answers["/.well-known/openid-configuration"] = lambda req, conn: conn.reply(req, 200, w.metadata)
    w.answers["/.well-known/oauth-authorization-server"] = lambda req, conn: conn.reply(req, 404, {})
    code, _, err = w.login()
    t.ok(code == 0, "OpenID's metadata", err)
    w.reset()
    w.answers["/mcp"] = lambda req, conn: conn.reply(req, 200, {})
    code, _, err = w.login()
    t.ok(code == 1 and "wants no login" in err, "a server that wants none", err)
    w.reset()
    w.answers["/mcp"] = lambda req, conn: conn.reply(req, 405, {})
    code, _, err = w.login()
    t.ok(code == 1 and "answers 405" in err, "what is no MCP endpoint", err)
    w.reset()


class Official(mcp_login.Person):
    """A server and an authorization server of the official Python SDK."""

    def __init__(self, t, d):
        super().__init__(t, d)
        self.issued = []
        p = subprocess.Popen([PYTHON, "-B", os.path.join(HERE, "peers", "mcp_auth_server.py"), URL, "https://" + ISSUER, "3600"],
                             stdout=subprocess.PIPE, text=True, preexec_fn=tap.die_with_parent)
        self.server = p
        t.cleanup(lambda: tap.stop(p))
        port = int(p.stdout.readline())
        for host in (SERVER, ISSUER):
            d.origin(host, origin.Origin(t, d.ca, host, relay(port, login=True)))
        threading.Thread(target=self.read, args=(p.stdout,), daemon=True).start()

    def revoke(self):
        self.server.send_signal(signal.SIGUSR1)
        return tap.wait_for(lambda: any("revoked" in x for x in self.issued), 10, 0.02)

    def read(self, lines):
        for line in lines:
            said = json.loads(line)
            self.issued.append(said)
            for name in ("secret", "access", "refresh"):
                if said.get(name):
                    self.scanner.add("%s%d" % (name, len(self.issued)), said[name].encode())


def official(t):
    if not os.path.exists(os.path.join(FOLDER, "stamp")):
        t.skip("the official SDK at both ends", "the client libraries are not there: MCP's SDKs; run tests/functional/clients/setup")
        return
    w = Official(t, durward.Durward(t, "official"))
    code, out, err = w.login()
    t.ok(code == 0, "the official SDK's server and authorization server: a login", err)
    age(w, 60)
    binds = [x for b in durward.client_binds("mcp") for x in ("--bind", b)]
    client = os.path.join(HERE, "inside", "mcp_client.py")
    said = []
    for mode in ("legacy", "2026-07-28", "revoked"):
        if mode == "revoked":
            t.ok(w.revoke(), "the SDK's server forgets its access tokens, before their time")
            mode = "legacy"
        r = call(w, ("--login", "mcp@acme", "--bind", client + ":/tmp/mcp_client.py:ro", *binds), "%s -B /tmp/mcp_client.py %s %s" % (PYTHON, URL, mode))
        got = json.loads(r.stdout) if r.returncode == 0 else {}
        t.ok(got.get("tools") == ["add", "remove"] and got.get("add") == [False, "5"], "its client inside, which has no login (%s)" % mode, r.stdout,
             r.stderr)
        said += [r.stdout, r.stderr]
    issued = [x for x in w.issued if "access" in x]
    login = mcp_login.kept(w.d)
    t.eq(([x["resource"] for x in issued], login["access"], login["refresh"], login["client"]["auth"]),
         ([URL] * 3, issued[-1]["access"], issued[-1]["refresh"], "client_secret_post"), "two refreshes, outside, for the same resource")
    for text in said + [out, err]:
        w.scanner.search(text, "output")
    w.scanner.tree(w.d.audit_dir)
    t.ok(not w.scanner.hits and len(w.scanner.needles) > 0, "and no token was said or is on record", *w.scanner.report())


def main(t):
    t.part(official, t)
    d = durward.Durward(t)
    w = mcp_login.Doubles(t, d)
    for part in (plain, inside, configured, refreshed, revoked, revoked_elsewhere, counted, renewed, proofs, pasted, other_user, visited, discovery, answers, lenient):
        t.part(part, t, w)


tap.run(main, timeout=120)
