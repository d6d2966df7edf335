#!/usr/bin/python3 -B
"""The API over TLS: who is let in, what each scope may, what a token for some sandboxes sees, revocation
and time, who is refused before a body is taken; the command line and the Python clients by it; and that
no rule leads a sandbox there."""
import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scene, tap  # noqa: E402
from harness.nginx import free_port  # noqa: E402

sys.path.insert(0, os.path.join(durward.TOP, "sdk", "python", "src"))
import durward as sdk  # noqa: E402

BASE = "/v1/sandboxes"
SCOPES = ("read", "sandboxes", "exec", "approvals", "identities", "admin")


class Place:
    def __init__(self, t, s, c, port):
        self.t, self.s, self.c, self.port = t, s, c, port
        self.ca = s.ca_file()

    def token(self, *scopes, **more):
        return self.c.ask("POST", "/v1/tokens", dict({"scopes": list(scopes)}, **more))

    def remote(self, *scopes, **more):
        return api.Remote(self.port, self.ca, self.token(*scopes, **more)["token"])


def listeners(t, p):
    made = p.token("read", name="one")
    good = made["token"]
    t.eq(api.Remote(p.port, p.ca, good).said("GET", BASE), (200, None), "a good token is let in")
    other = p.token("read")["token"]
    wrong = {"none": None, "empty": "", "of another kind": "x", "without its secret": good.split(".")[0],
             "cut": good[:-1], "longer": good + "0", "of another's secret":
             good.split(".")[0] + "." + other.split(".")[1],
             "of another case": good.split(".")[0] + "." + good.split(".")[1].upper()}
    got = {k: api.Remote(p.port, p.ca, v).said("GET", BASE) for k, v in wrong.items()}
    t.eq(set(got.values()), {(401, "token")}, "tokens that are none: " + ", ".join(wrong))
    r = api.Remote(p.port, p.ca, good)
    t.eq(r.said("GET", BASE, Authorization="Basic " + good), (401, "token"), "Bearer only")
    t.eq([r.said("GET", BASE, **h) for h in ({"Host": "evil.example"}, {"Host": "localhost"},
                                             {"Host": "127.0.0.1.evil.example"},
                                             {"Origin": "https://127.0.0.1"},
                                             {"Sec_Fetch_Mode": "cors"})],
         [(403, "forbidden")] * 5, "another Host, or a browser, is refused though its token is good")
    status, headers, _ = r.raw("OPTIONS", BASE, Access_Control_Request_Method="GET")
    t.eq((status, [k for k in headers if k.lower().startswith("access-control")]), (405, []), "no CORS")
    t.eq(refuses_clear(p.port), b"", "nothing is answered in clear")
    try:
        ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", p.port)),
                                                 server_hostname="127.0.0.1")
        t.ok(False, "the certificate is our CA's")
    except ssl.SSLCertVerificationError:
        t.ok(True, "the certificate is our CA's")
    t.ok(good not in json.dumps(p.c.ask("GET", "/v1/tokens")) and
         not found_under(os.path.join(p.s.d.dir, "state"), good.split(".")[1].encode()),
         "a token is shown once and its secret is kept nowhere")
    t.eq([x["name"] for x in p.c.ask("GET", "/v1/tokens")["tokens"]], ["one", ""], "tokens are listed")
    bad = [{}, {"scopes": []}, {"scopes": ["root"]}, {"scopes": "read"}, {"scopes": ["read"], "ttl": 0},
           {"scopes": ["admin"], "policies": ["coder"]}, {"scopes": ["read"], "policies": ["nope"]},
           {"scopes": ["read"], "token": "x"}]
    t.eq([api.refused(p.c.ask, "POST", "/v1/tokens", b) for b in bad], [(400, "bad_request")] * len(bad),
         "what is no wish for a token is refused")
    made = [p.s.d.command("token", "create", "--scope", x, "--socket", p.s.d.socket).returncode for x in SCOPES + ("root",)]
    t.eq(made, [0] * len(SCOPES) + [2], "the command knows each scope")


def refuses_clear(port):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        got = b""
        try:
            while data := s.recv(4096):
                got += data
        except ConnectionResetError:
            pass
    return got if b"HTTP" in got else b""


def found_under(top, needle):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and needle in open(path, "rb").read():
                return True
    return False


def bodies(t, p):
    """50 MiB announced: how much is taken of whom?"""
    def push(token, length=50 << 20):
        tls = ssl.create_default_context(cafile=p.ca)
        raw = socket.create_connection(("127.0.0.1", p.port), 20)
        sent = 0
        try:
            with tls.wrap_socket(raw, server_hostname="127.0.0.1") as s:
                s.sendall(("PUT %s/sb-x/files?path=/tmp/x HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: "
                           "%d\r\n\r\n" % (BASE, "Authorization: Bearer %s\r\n" % token if token else "",
                                           length)).encode())
                while sent < length:
                    s.sendall(bytes(min(65536, length - sent)))
                    sent += min(65536, length - sent)
                return sent, int(s.recv(4096).split()[1])
        except OSError:
            return sent, None
    sent, status = push(None)
    t.ok(status is None and sent < 16 << 20, "without a token no large body is taken", sent, status)
    t.eq(push(None, 1000), (1000, 401), "of a small one the refusal is told")
    t.eq(push(p.token("exec")["token"], 8 << 20), (8 << 20, 404), "with one it is")


def asks(box):
    """One request a scope: which answer says that it was let through."""
    return {"read": [("GET", BASE, None), ("GET", BASE + "/" + box, None), ("GET", "/v1/policies", None),
                     ("GET", "/v1/status", None), ("GET", "/v1/fleet", None), ("GET", "/v1/events", None), ("GET", "/metrics", None),
                     ("GET", "/v1/snapshots", None), ("GET", "/v1/volumes", None), ("GET", BASE + "/%s/exec" % box, None)],
            "sandboxes": [("PATCH", BASE + "/" + box, {"ttl": 500}), ("POST", BASE, {"policy": "none"}),
                          ("DELETE", BASE + "/sb-none", None), ("POST", BASE + "/sb-none/stop", {}),
                          ("DELETE", "/v1/snapshots/none", None), ("DELETE", "/v1/volumes/none", None),
                          ("POST", "/v1/volumes", {"name": "../x"})],
            "exec": [("POST", BASE + "/%s/exec" % box, {"command": "true"}),
                     ("GET", BASE + "/%s/files?path=/etc/passwd" % box, None),
                     ("GET", BASE + "/%s/files/list?path=/" % box, None), ("GET", BASE + "/%s/services" % box, None),
                     ("POST", BASE + "/%s/previews" % box, {"service": "none"})],
            "approvals": [("GET", "/v1/approvals", None), ("POST", "/v1/approvals/none/allow", None)],
            "identities": [("POST", "/v1/identities", {"policy": "none"}),
                           ("DELETE", "/v1/identities/none", None)],
            "admin": [("GET", "/v1/tokens", None), ("DELETE", "/v1/tokens/none", None)]}


def scopes(t, p):
    box = p.c.create(policy="coder")["id"]
    wanted = asks(box)
    for scope in SCOPES:
        r = p.remote(scope)
        wrong = []
        for other, list_ in wanted.items():
            may = other == scope or scope == "admin"
            for method, path, body in list_:
                status, code = r.said(method, path, body) if method != "GET" or path != "/metrics" else \
                    (r.raw(method, path)[0], None)
                if (status == 403) == may or status == 401:
                    wrong.append("%s %s: %d %s" % (method, path, status, code))
        t.ok(not wrong, "%s: that and nothing else (%d requests)" %
             (scope, sum(len(x) for x in wanted.values())), *wrong)
    p.c.delete(box)


def many(t, p):
    """How many sandboxes a token may have at a time."""
    mine = p.remote("read", "sandboxes", policies=["coder"], max_sandboxes=2)
    first = mine.ask("POST", BASE, {})["id"]
    fork = mine.ask("POST", BASE + "/%s/fork" % first, {})["id"]
    t.eq([mine.said("POST", BASE, {}), mine.said("POST", BASE + "/%s/fork" % first, {})], [(503, "limit")] * 2,
         "a token has as many sandboxes as it may, forks among them")
    mine.ask("POST", BASE + "/%s/stop" % fork)
    t.eq(mine.said("POST", BASE, {}), (503, "limit"), "one that is stopped counts")
    other = p.c.create(policy="coder")["id"]
    mine.ask("DELETE", BASE + "/" + other)
    t.eq(mine.said("POST", BASE, {}), (503, "limit"), "another's does not, nor when it goes")
    mine.ask("DELETE", BASE + "/" + fork)
    again = mine.ask("POST", BASE, {})["id"]
    t.ok(again, "what is gone makes room")
    none = p.remote("read", "sandboxes", max_sandboxes=0)
    t.eq(none.said("POST", BASE, {"policy": "coder"}), (503, "limit"), "0 is none")
    for sid in (first, again):
        p.c.delete(sid)


def volumes(t, p):
    """Which a token sees, mounts and may make."""
    vol, mib = "/v1/volumes", 1 << 20
    mine = p.remote("read", "sandboxes", "exec", policies=["coder"], labels={"team": "a"}, volume_bytes=10 * mib)
    for name, policy, team in (("theirs", "coder", "b"), ("other", "other", "a")):
        p.c.ask("POST", vol, {"name": name, "policy": policy, "labels": {"team": team}})
    made = mine.ask("POST", vol, {"name": "mine", "size": 4 * mib})
    t.eq((made["policy"], made["labels"]), ("coder", {"team": "a"}), "a volume that a narrow token makes is its policy's, with its labels")
    t.eq([v["name"] for v in mine.ask("GET", vol)["volumes"]], ["mine"], "it sees its own only")
    got = {mine.said(*x) for n in ("theirs", "other") for x in
           (("GET", vol + "/" + n), ("POST", vol + "/%s/snapshot" % n, {"name": "x"}),
            ("POST", vol + "/mine/restore", {"snapshot": n}), ("POST", vol + "/%s/restore" % n, {"snapshot": "mine"}),
            ("POST", vol + "/%s/export" % n, {}))}
    t.eq(got, {(404, "volume_not_found")}, "others do not exist for it")
    t.eq({mine.said("POST", BASE, {"volumes": [n + ":/x:ro"]}) for n in ("theirs", "other", "none")}, {(400, "bad_request")},
         "it mounts none of them")
    t.eq({mine.said("POST", vol, {"name": "x", "from": n}) for n in ("theirs", "other", "none")}, {(400, "bad_request")}, "nor copies one")
    t.eq([mine.said("DELETE", vol + "/" + n) for n in ("theirs", "other")], [(204, None)] * 2, "to remove another's is to remove none")
    t.eq(sorted(v["name"] for v in p.c.ask("GET", vol)["volumes"]), ["mine", "other", "theirs"], "which stays")
    t.eq([mine.said("POST", vol, b) for b in ({"name": "x", "labels": {"team": "b"}}, {"name": "x", "policy": "other"})],
         [(400, "bad_request")] * 2, "it makes none for others")
    t.eq(mine.said("POST", vol, {"name": "more", "size": 7 * mib}), (413, "too_large"), "it has no more than its token's bytes")
    t.eq((mine.said("POST", vol + "/mine/snapshot", {"name": "copy"})[0], mine.said("POST", vol + "/mine/snapshot", {"name": "copy2"})),
         (201, (413, "too_large")), "copies count too")
    mine.ask("DELETE", vol + "/copy")
    t.eq(mine.said("POST", vol, {"name": "copy", "size": 6 * mib})[0], 201, "what is removed does not")
    t.eq(p.remote("read", policies=["coder"]).said("DELETE", vol + "/mine"), (403, "scope"), "a scope is needed")
    for n in range(1000 - len(p.c.ask("GET", vol)["volumes"])):
        p.c.ask("POST", vol, {"name": "n%d" % n, "policy": "coder", "size": mib})
    t.eq(api.refused(p.c.ask, "POST", vol, {"name": "one-more", "policy": "coder"}), (503, "limit"), "1000 volumes are all")
    for v in p.c.ask("GET", vol)["volumes"]:
        p.c.ask("DELETE", vol + "/" + v["name"])


def up(remote):
    try:
        return remote.said("GET", BASE)[0] == 200
    except OSError:
        return False


def ambiguous(t, p):
    """Heads that two readers would not read alike: one refusal, and the connection ends before what would be a request."""
    box, token = p.c.create(policy="coder")["id"], "Authorization: Bearer %s\r\n" % p.token("admin")["token"]
    hidden = "DELETE %s/%s HTTP/1.1\r\nHost: %%s\r\n%%s\r\n" % (BASE, box)
    cases = {"two lengths": "Content-Length: 2\r\nContent-Length: %d\r\n", "a length with a sign": "Content-Length: +%d\r\n",
             "another encoding": "Transfer-Encoding: identity\r\n", "two encodings": "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
             "length and encoding": "Transfer-Encoding: chunked\r\nContent-Length: %d\r\n", "two hosts": "Host: evil.example\r\nContent-Length: 2\r\n",
             "two tokens": "Authorization: Bearer x\r\nContent-Length: 2\r\n"}
    context = ssl.create_default_context(cafile=p.ca)
    for where in ("socket", "TLS"):
        name = "durward" if where == "socket" else "127.0.0.1"
        for what, fields in cases.items():
            if where == "socket":
                s = socket.socket(socket.AF_UNIX)
                s.connect(p.s.d.socket)
            else:
                s = context.wrap_socket(socket.create_connection(("127.0.0.1", p.port)), server_hostname=name)
            second = hidden % (name, token)
            body = "" if "identity" in fields else "{}" if "%d" not in fields or "Content-Length: 2" in fields else "{}" + second
            head = "POST /v1/explain HTTP/1.1\r\nHost: %s\r\n%s%s\r\n" % (name, token, fields % len(body) if "%d" in fields else fields)
            with s:
                s.settimeout(3)
                s.sendall((head + body + ("" if second in body else second)).encode())
                got = b""
                try:
                    while more := s.recv(65536):
                        got += more
                except OSError:
                    pass  # what it did not read of ours; or it stays open
            why = b"" if what in ("two encodings", "length and encoding") else b"the head is ambiguous"  # there the library refuses
            t.ok(got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1 and why in got, "%s: %s" % (where, what), got)
    t.eq(p.c.show(box)["state"], "running", "none of them did anything")
    p.c.delete(box)


def snapshots(t, p):
    """Of which sandboxes a token sees snapshots: of those that it sees, as they were labelled."""
    at = "/v1/snapshots"
    mine, theirs = (p.remote("read", "sandboxes", "exec", policies=["coder"], labels={"team": x}) for x in "ab")
    box, foreign = (c.ask("POST", BASE, {})["id"] for c in (mine, theirs))
    for c, i, name in ((mine, box, "mine"), (theirs, foreign, "theirs")):
        if c.said("POST", at, {"sandbox": i, "name": name})[0] == 501:
            t.skip("snapshots that a token sees", "files are not kept here")
            return
    t.eq([s["name"] for s in mine.ask("GET", at)["snapshots"]], ["mine"], "a token for a label sees the snapshots of its sandboxes only")
    for _ in range(2):
        t.eq(mine.said("POST", BASE, {"snapshot": "mine"})[0], 201, "and makes sandboxes of them")
        t.eq({mine.said(*x) for x in (("GET", at + "/theirs"), ("POST", at + "/theirs/export", {}), ("POST", BASE, {"snapshot": "theirs"}),
                                      ("POST", BASE + "/%s/restore" % box, {"snapshot": "theirs"}))},
             {(404, "snapshot_not_found")}, "others do not exist for it")
        t.eq((mine.said("DELETE", at + "/theirs"), mine.said("POST", at, {"sandbox": box, "name": "theirs", "get_or_create": True})),
             ((204, None), (409, "conflict")), "it removes and takes none")
        os.kill(next(x for x, role in p.s.d.roles() if role == "controller"), signal.SIGKILL)  # the next one reads the rows
        tap.wait_for(lambda: up(mine), 10, 0.1)
    mine.ask("DELETE", at + "/mine")
    t.eq([s["name"] for s in p.c.ask("GET", at)["snapshots"]], ["theirs"], "it removes its own")
    p.c.ask("DELETE", at + "/theirs")


def narrow(t, p):
    mine = p.remote("read", "sandboxes", "exec", policies=["coder"], labels={"team": "a"})
    theirs = p.c.create(policy="coder", labels={"team": "b"})["id"]
    other = p.c.create(policy="other", labels={"team": "a"})["id"]
    box = mine.ask("POST", BASE, {"labels": {"n": "1"}})
    t.eq((box["policy"], box["labels"]), ("coder", {"n": "1", "team": "a"}),
         "what a token for a label makes has it, and the token's only policy")
    t.eq([x["id"] for x in mine.ask("GET", BASE)["sandboxes"]], [box["id"]], "it sees its own only")
    got = set()
    for i in (theirs, other):
        at = BASE + "/" + i
        got |= {mine.said(*x) for x in
                (("GET", at), ("PATCH", at, {"ttl": 9}), ("POST", at + "/exec", {"command": "id"}),
                 ("GET", at + "/files?path=/etc/passwd"), ("POST", at + "/fork", {}),
                 ("POST", at + "/stop", {}), ("POST", "/v1/snapshots", {"sandbox": i, "name": "x"}))}
        t.eq(mine.said("DELETE", at), (204, None), "to delete another's is to delete none")
    t.eq(got, {(404, "sandbox_not_found")}, "another's does not exist for it")
    t.eq([p.c.show(i)["state"] for i in (theirs, other)], ["running"] * 2, "and was not touched")
    t.eq([mine.said("POST", BASE, b) for b in ({"labels": {"team": "b"}}, {"policy": "other"})],
         [(400, "bad_request")] * 2, "it makes none for others")
    t.eq([mine.said("POST", BASE, {"publish": [{"port": 1, "address": a}]}) for a in
          ("127.0.0.1:1", "127.0.0.1:1023", "[::1]:80", "0.0.0.0:0")], [(400, "bad_request")] * 4,
         "it publishes at no port of the administrator's, nor for other hosts")
    t.eq([mine.said("POST", BASE, {"publish": [{"port": 1, "address": a}]}) for a in
          ("127.0.0.1:1024", "127.0.0.1:8080", "[::1]:50000")], [(400, "bad_request")] * 3, "nor at one of its choice")
    t.eq([mine.said("POST", BASE, {"image": i}) for i in ("other", "nowhere")], [(400, "bad_request")] * 2,
         "it has no image but its policy's, and does not learn which there are")
    p.c.ask("PATCH", BASE + "/" + theirs, {"labels": {"team": "b", "n": "7"}})
    named = p.c.ask("POST", BASE, {"policy": "other", "name": "taken", "labels": {"team": "a", "n": "8"}})["id"]
    for body in ({"name": "taken"}, {"labels": {"n": "8"}, "get_or_create": True}):
        made = mine.said("POST", BASE, body)
        t.eq(made[0], 201, "what others have does not show: %s is free" % sorted(body))
    t.eq(mine.said("POST", BASE, {"name": "taken"}), (409, "conflict"), "its own does")
    for x in mine.ask("GET", BASE)["sandboxes"]:
        if x["id"] != box["id"]:
            p.c.delete(x["id"])
    p.c.delete(named)
    t.eq(mine.said("POST", BASE, {"labels": {"n": "1"}, "get_or_create": True})[0], 200,
         "get-or-create finds its own")
    at = BASE + "/" + box["id"]
    t.eq(mine.ask("PATCH", at, {"labels": {"n": "2"}})["labels"], {"n": "2", "team": "a"},
         "its label cannot be taken off")
    t.eq(mine.said("PATCH", at, {"labels": {"team": "b"}}), (400, "bad_request"), "nor changed")
    t.eq([x["name"] for x in mine.ask("GET", "/v1/policies")["policies"]], ["coder"], "its policy only")
    t.eq(mine.said("GET", "/v1/policy?name=other"), (400, "bad_request"), "another's rules are not shown")
    t.eq({mine.said("GET", x) for x in ("/v1/status", "/v1/events", "/v1/audit/stream")},
         {(403, "scope")}, "what shows all is not for it")
    ask = p.remote("approvals", policies=["coder"], labels={"team": "a"})
    wish = {"policy": "coder", "method": "GET", "url": "https://narrow.example/"}
    t.eq([ask.said("POST", "/v1/proposals", dict(wish, sandbox=x)) for x in (theirs, other, "sb-none", "a victim", "SB")],
         [(400, "bad_request")] * 5, "it proposes in the name of no sandbox but its own")
    t.eq(ask.said("POST", "/v1/proposals", dict(wish, sandbox=box["id"]))[0], 201, "of its own it does")
    second = mine.ask("POST", BASE, {})["id"]
    said = [ask.said("POST", "/v1/proposals", dict(wish, url="https://n%s.example/" % x, sandbox=x))[0] for x in (box["id"], second)]
    t.eq(said[1], 503, "what it proposes is charged to the token, whichever sandbox it names") or t.diag(str(said))
    for i in (theirs, other, second, box["id"]):
        p.c.delete(i)


def command_line(t, p):
    made = p.token("read", "sandboxes", "exec", name="cli")
    path = t.write("token", made["token"] + "\n", 0o600)
    env = {"DURWARD_URL": "https://127.0.0.1:%d" % p.port, "DURWARD_CA": p.ca,
           "DURWARD_TOKEN_FILE": path}

    def cli(*args, **kw):
        more = kw.pop("env", {})
        return p.s.d.command(*args, env=dict(p.s.d.env, **dict(env, **more)), **kw)
    r = cli("sandbox", "create", "--policy", "coder")
    box = r.stdout.strip()
    t.ok(box.startswith("sb-"), "create over TLS", r.stderr)
    r = cli("sandbox", "exec", "-i", box, "--", "sh", "-c", "cat; echo two >&2; exit 7", stdin=b"one")
    t.eq((r.returncode, r.stdout, r.stderr), (7, "one", "two\n"), "exec with input, both outputs, status")
    big = t.path("big")
    with open(big, "wb") as f:
        f.write(os.urandom(6 << 20))
    back = t.path("back")
    r1, r2 = cli("sandbox", "cp", big, box + ":/tmp/big"), cli("sandbox", "cp", box + ":/tmp/big", back)
    t.ok(r1.returncode == r2.returncode == 0 and open(big, "rb").read() == open(back, "rb").read(),
         "6 MiB in and out again", r1.stderr, r2.stderr)
    r = cli("sandbox", "exec", box, "--", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x", timeout=60)
    t.eq(len(r.stdout), 20000000, "20 MB of output")
    t.has(cli("token", "ls").stderr, "it lacks the scope 'admin'", "what its scopes do not cover is said")
    t.has(cli("sandbox", "ls", env={"DURWARD_CA": ""}).stderr, "DURWARD_CA", "an unknown CA is named")
    t.has(cli("sandbox", "ls", env={"DURWARD_TOKEN_FILE": ""}).stderr, "DURWARD_TOKEN", "no token")
    os.chmod(path, 0o644)
    t.has(cli("sandbox", "ls").stderr, "chmod 600", "a token's file that others can read is refused")
    os.chmod(path, 0o600)
    streams(t, p, made, box, dict(p.s.d.env, **env))
    t.has(cli("sandbox", "ls").stderr, "token", "then nothing is done with it")
    p.c.delete(box)


def streams(t, p, made, box, env):
    run = t.popen([durward.program(), "sandbox", "exec", "-i", box, "--", "sh", "-c", "echo go; sleep 100"],
                  env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    t.eq(run.stdout.readline(), b"go\n", "a command runs over TLS")
    out = p.s.d.command("token", "revoke", made["id"], "--socket", p.s.d.socket)
    t.eq(out.returncode, 0, "its token is revoked")
    t.ok(tap.wait_for(lambda: run.poll() is not None, 5), "what is open with it ends")
    t.ok(tap.wait_for(lambda: not p.c.ask("GET", BASE + "/%s/exec" % box)["execs"], 5),
         "the command too")


def clients(t, p):
    token = p.token("read", "sandboxes", "exec")["token"]
    url = "https://127.0.0.1:%d" % p.port
    d = sdk.Durward(url, token=token, ca=p.ca)
    box = d.create(policy="coder")
    r = box.exec("printf hello; exit 3")
    t.eq((r.output, r.exit_code), (b"hello", 3), "Python: exec over TLS")
    t.ok(token not in repr(d) + repr(d.socket) + repr(vars(d)), "Python: no token in a repr")

    async def both():
        a = sdk.AsyncDurward(url, token=token, ca=p.ca)
        b = await a.get(box.id)
        return (await b.exec("printf two")).output
    t.eq(asyncio.run(both()), b"two", "Python: the same with asyncio")
    try:
        sdk.Durward(url, token=token[:-1] + "x", ca=p.ca).version()
        t.ok(False, "Python: a token that is none")
    except sdk.Denied as e:
        t.has(str(e), "durward token create", "Python: a token that is none")
    box.delete()


def times(t, p):
    r = p.remote("read", ttl=1)
    t.ok(tap.wait_for(lambda: r.said("GET", BASE) == (401, "token"), 5, 0.2), "a token's time ends")
    keep, gone = p.token("read")["token"], p.token("read")
    p.c.ask("DELETE", "/v1/tokens/" + gone["id"])
    pid = [x for x, role in p.s.d.roles() if role == "controller"][0]
    os.kill(pid, signal.SIGKILL)
    again = api.Remote(p.port, p.ca, keep)

    def answers():
        try:
            return again.said("GET", BASE)[0] == 200
        except OSError:
            return False
    t.ok(tap.wait_for(answers, 10, 0.1), "a new controller knows the tokens")
    t.eq(api.Remote(p.port, p.ca, gone["token"]).said("GET", BASE), (401, "token"), "and which were revoked")
    events = {(x["event"], x.get("target")) for x in p.s.d.kinds("lifecycle")
              if x.get("event", "").startswith("token_")}
    t.ok({"token_created", "token_revoked", "token_refused"} <= {e for e, _ in events} and
         ("token_revoked", gone["id"]) in events, "made, revoked, refused: recorded", events)


def unreachable(t, p, inside, twin):
    """Through a listener whose policy leads to this host: another port answers, ours does not."""
    def through(port):
        r = subprocess.run(["curl", "-sk", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}", "-x",
                            "http://" + inside, "https://localhost:%d/v1/health" % port],
                           stdout=subprocess.PIPE, timeout=20)
        return r.stdout
    t.eq(through(twin.port), b"200", "a rule leads to a port of this host")
    t.eq(through(p.port), b"403", "but none to the API")


def published(t, p, inside, port):
    """No rule leads to what is published, from then until it is closed."""
    def through():
        return subprocess.run(["curl", "-sk", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}", "-x",
                               "http://" + inside, "https://localhost:%d/" % port],
                              stdout=subprocess.PIPE, timeout=20).stdout
    t.eq(through(), b"502", "where nothing listens a rule leads, in vain")
    box = p.c.create(policy="coder", publish=[{"port": 8000, "address": "127.0.0.1:%d" % port}])["id"]
    t.eq(through(), b"403", "no rule leads to a port that is published")
    p.c.delete(box)
    t.ok(tap.wait_for(lambda: through() == b"502", 10, 0.2), "nor is it ours any longer when it is closed")


def idle(t, p):
    """Who holds connections without a token: so many of an address, and not for long."""
    def gone(s):
        try:
            return s.recv(1, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
    held = [socket.create_connection(("127.0.0.1", p.port), 10) for _ in range(150)]
    made = time.monotonic()
    t.ok(tap.wait_for(lambda: sum(map(gone, held)) >= 22, 5, 0.1), "of one address 128 are held",
         sum(map(gone, held)))
    r = subprocess.run(["curl", "-s", "--interface", "127.0.0.2", "--cacert", p.ca, "-o", "/dev/null", "-w",
                        "%{http_code}", "-H", "@-", "https://127.0.0.1:%d%s" % (p.port, BASE)],
                       input=b"Authorization: Bearer " + p.token("read")["token"].encode(),
                       stdout=subprocess.PIPE, timeout=20)
    t.eq(r.stdout, b"200", "another address is served meanwhile")
    t.ok(tap.wait_for(lambda: all(map(gone, held)), 20, 0.2) and time.monotonic() - made > 5,
         "and the others end within seconds", sum(map(gone, held)))
    for s in held:
        s.close()


def main(t):
    s = scene.Scene(t)
    port, open_port = free_port(), free_port()
    twin = s.add("localhost", scene.shapes.echo)
    del s.d.resolve["localhost"]
    s.d.policy("other", [{"allow": scene.PLAIN}])
    s.rules.append({"allow": ["localhost:%d" % twin.port, "localhost:%d" % port,
                              "localhost:%d" % open_port],
                    "to": ["127.0.0.0/8", "::1/128"]})
    inside = s.listener("coder")
    config = s.d.config()["controller"]
    s.d.extra["controller"] = dict(config, https="127.0.0.1:%d" % port)
    s.d.serve()
    c = api.Api(s.d.socket)
    p = Place(t, s, c, port)
    t.part(listeners, t, p)
    t.part(bodies, t, p)
    t.part(unreachable, t, p, inside, twin)
    c.delete(c.first(policy="coder"))
    t.part(scopes, t, p)
    t.part(ambiguous, t, p)
    t.part(narrow, t, p)
    t.part(snapshots, t, p)
    t.part(many, t, p)
    t.part(volumes, t, p)
    t.part(published, t, p, inside, open_port)
    t.part(command_line, t, p)
    t.part(clients, t, p)
    t.part(times, t, p)
    t.part(idle, t, p)
    env = dict(s.d.env, DURWARD_CA=p.ca)
    t.has(s.d.command("sandbox", "ls", "--socket", "https://127.0.0.1:%d" % port, env=env).stderr,
          "DURWARD_TOKEN", "--socket takes a URL, too")
    c.close()
    silent = socket.create_connection(("127.0.0.1", port))
    silent = ssl._create_unverified_context().wrap_socket(silent)  # no token: it is unknown to the end
    t.eq(s.d.stop(), 0, "the daemon ends well")
    silent.close()


tap.run(main, timeout=180)
