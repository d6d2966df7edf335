#!/usr/bin/python3 -B
"""MCP servers over standard input and output, each in a sandbox of its own: reached by `durward-mcp NAME` and at
http://durward.internal/mcp/NAME, decided by the rules of who asks, with credentials that neither sees, and with
nothing of one sandbox in another. One of them was written to misbehave."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, scan, scene, shapes, tap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
SHIM = "/run/durward/durward-mcp"
ALL = ["echo", "env", "files", "reach", "flood", "long", "sample", "junk", "end", "turn", "slow", "forge", "fetch", "shout"]
DENIED = "Durward denied this request"


def steps(*calls):
    """tools/call of NAME(ARGUMENTS), or a method."""
    return "".join(json.dumps(c if isinstance(c, dict) else {"method": c, "params": {}} if isinstance(c, str) else
                              {"method": "tools/call", "params": {"name": c[0], "arguments": c[1]}}) + "\n" for c in calls)


def session(box, name, *calls, timeout=120):
    """What came of each step; the first is `initialize`."""
    status, out, err = box.sh("%s -B %s/mcp_stdio.py %s %s" % (durward.PYTHON, durward.INSIDE, SHIM, name),
                              stdin=steps(*calls), timeout=timeout)
    try:
        return json.loads(out)
    except ValueError:
        return {"steps": [], "status": status, "errors": out + err}


def text_of(step):
    try:
        return step["answer"]["result"]["content"][0]["text"]
    except (KeyError, IndexError, TypeError):
        return json.dumps(step)[:600]


def error_of(step):
    return (step.get("answer") or {}).get("error", {}).get("message", "")


def config(t, name="d"):
    s = scene.Scene(t, name=name)
    s.env.clear()  # the agent has no credential of its own
    s.rules[:] = [{"allow": "http://durward.internal/mcp/odd",
                   "mcp": {"tools": [x for x in ALL if x != "end"] + [{"name": "end", "arguments": {"/no": {"absent": True}}}],
                           "server": {"sampling": "refuse"}}},
                  {"allow": "http://durward.internal/mcp/few", "mcp": {"tools": ["echo"]}}]
    s.d.policy("server", [{"allow": "api.github.com/user", "with": {"bearer": "github"}}],
               {"GITHUB_TOKEN": "{{placeholder github}}"})
    s.d.policies["server"]["sandbox"] = {"pids": 64, "memory": "512MB"}
    s.d.policy("other", [{"allow": scene.PLAIN}])
    one = {"command": [durward.PYTHON, "-B", "/srv/peers/mcp_stdio.py"], "policy": "server",
           "files": [{"path": PEERS, "at": "/srv/peers"}], "idle_stop": "60s"}
    s.d.extra["mcp_servers"] = {"odd": one, "few": one, "hidden": one,
                                "broken": dict(one, command=["/no/such/program"]),
                                "brief": dict(one, idle_stop="1s")}
    for name, more in (("turns", {"changed": "refuse"}), ("asks", {"changed": "ask"})):
        s.d.extra["mcp_servers"][name] = one
        s.rule(allow="http://durward.internal/mcp/" + name, mcp=dict({"tools": ["echo", "turn"]}, **more))
    odd = os.path.join(s.d.dir, "odd")
    os.mkdir(odd)
    os.symlink(os.path.join(s.d.work, "agents-own"), os.path.join(odd, "out"))
    s.d.extra["mcp_servers"]["vile"] = dict(one, files=one["files"] + [{"path": odd, "at": "/srv/odd"}])
    s.rule(allow="http://durward.internal/mcp/vile", mcp={
        "tools": ["echo", "poison", "flood", "long", "turn", "fetch", {"name": "read", "arguments": {"/path": {"pattern": "/srv/odd/**"}}}],
        "resources": "file:///srv/odd/**", "changed": "refuse", "server": {x: "refuse" for x in ("sampling", "elicitation", "roots")}})
    s.d.extra["mcp_servers"]["fixed"] = one
    s.rule(allow="http://durward.internal/mcp/fixed", mcp={"tools": ["turn", {"name": "echo", "sha256": "0" * 32}]})
    s.rule(allow="http://durward.internal/mcp/broken", mcp={"tools": ["*"]})
    s.rule(allow="http://brief.mcp.durward.internal/mcp", mcp={"tools": ["*"]})
    return s


def usual(t, s, box):
    got = session(box, "odd", "tools/list", ("echo", {"a": [1, {"b": "\n\u2028é"}]}), ("env", {}), ("slow", {}))
    if not t.eq(len(got["steps"]), 5, "a session over standard input and output"):
        t.diag(json.dumps(got)[:1500])
        t.diag(box.stderr()[-1500:])
        return
    first, listed, echo, env, slow = got["steps"]
    t.eq(first["answer"]["result"]["serverInfo"]["name"], "odd", "it is the server that answers")
    t.eq(sorted(x["name"] for x in listed["answer"]["result"]["tools"]), sorted(ALL), "the tools that policy allows are listed")
    t.eq(json.loads(text_of(echo)), {"a": [1, {"b": "\n\u2028é"}]}, "a call with its arguments, and its answer")
    names = json.loads(text_of(env))
    t.ok(names.get("GITHUB_TOKEN", "").startswith("ghp_") and names["GITHUB_TOKEN"] != s.github_secret.decode(),
         "the server's credential is a placeholder", str(names)[:300])
    t.ok(slow.get("count") == 3, "what it says meanwhile comes first", str(slow)[:300])
    t.eq(got["status"], 0, "the end of the input ends it") or t.diag(got["errors"])
    _, out, _ = box.sh("env; ls /srv 2>&1")
    t.ok(names["GITHUB_TOKEN"] not in out, "the agent has not even the placeholder")


def decided(t, s, box):
    got = session(box, "few", "tools/list", ("env", {}), ("echo", {"x": 1}), "resources/list")
    t.eq([x["name"] for x in got["steps"][1]["answer"]["result"]["tools"]], ["echo"], "another server, other rules: one tool is listed")
    t.ok(DENIED in error_of(got["steps"][2]), "one that is not is refused", str(got["steps"][2])[:300])
    t.eq(json.loads(text_of(got["steps"][3])), {"x": 1}, "and the session lives on")
    t.ok(DENIED in error_of(got["steps"][4]), "so is a method", str(got["steps"][4])[:300])
    for name in ("hidden", "nobody"):
        got = session(box, name)
        t.ok(got["steps"] and "403" in error_of(got["steps"][0]), "%s, which no rule names, is refused" % name, str(got)[:400])
    status, out, _ = box.sh("curl -sS -m 10 -o /dev/null -w '%{http_code}' http://hidden.mcp.durward.internal/mcp -d '{}'")
    t.ok(out in ("403", "000"), "by its other name too", str(status), out)
    denied = [r for r in s.d.kinds("denied") if r.get("code") == "mcp"]
    t.ok(any("env" in r.get("detail", "") for r in denied), "the log names the tool", str(denied)[-400:])


def by_http(t, box):
    fields = "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'"
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}})
    _, out, _ = box.sh("curl -sS -m 20 -i %s -d '%s' http://durward.internal/mcp/odd" % (fields, hello))
    head, _, body = out.replace("\r", "").partition("\n\n")
    name = [x.split(": ")[1] for x in head.split("\n") if x.lower().startswith("mcp-session-id")]
    t.ok(head.startswith("HTTP/1.1 200") and name and '"serverInfo"' in body, "the same over HTTP", out[:600])
    ask = json.dumps({"jsonrpc": "2.0", "id": "two", "method": "ping"})
    _, out, _ = box.sh("curl -sS -m 20 %s -H 'Mcp-Session-Id: %s' -d '%s' http://odd.mcp.durward.internal/mcp" %
                       (fields, name[0] if name else "", ask))
    t.ok('"id": "two"' in out or '"id":"two"' in out, "and by the origin's own name", out)
    for url in ("http://odd.mcp.durward.internal/mcp", "http://durward.internal/mcp/odd"):
        _, out, _ = box.sh("curl -sS -m 20 -i --http2-prior-knowledge %s -H 'Mcp-Session-Id: %s' -d '%s' %s" %
                           (fields, name[0] if name else "", ask, url))
        t.ok(out.startswith("HTTP/2 200") and ('"id": "two"' in out or '"id":"two"' in out), "and in HTTP/2 by prior knowledge: " + url,
             out[:600])
    for session_id, want in (("0" * 32, "404"), ("", "400")):
        _, out, _ = box.sh("curl -sS -m 20 -o /dev/null -w '%%{http_code}' %s %s -d '%s' http://durward.internal/mcp/odd" % (
            fields, "-H 'Mcp-Session-Id: %s'" % session_id if session_id else "", ask))
        t.eq(out, want, "a session that is none: %s" % want)
    _, out, _ = box.sh("curl -sS -m 20 -o /dev/null -w '%%{http_code}' -X DELETE -H 'Mcp-Session-Id: %s' "
                       "http://durward.internal/mcp/odd" % (name[0] if name else ""))
    t.eq(out, "200", "DELETE ends one")


def misbehaves(t, s, box):
    got = session(box, "odd", ("junk", {}), ("forge", {}), ("sample", {}), ("echo", {"still": 1}))
    t.eq(text_of(got["steps"][1]), "after junk", "what is no message is dropped")
    t.ok("own" in text_of(got["steps"][2]) or "ended" in got["steps"][2] or "error" in json.dumps(got["steps"][2]),
         "an answer to what nobody asked reaches nobody", str(got["steps"][2])[:300])
    t.ok("forged" not in json.dumps(got["steps"]), "as nothing of it does")
    sampled = json.dumps(got["steps"][3])
    t.ok("sampling/createMessage" not in sampled and "-32601" in sampled, "it may not ask the client's model", sampled[:500])
    got = session(box, "odd", ("flood", {}), ("echo", {"after": "flood"}))
    t.ok("flooded" in text_of(got["steps"][1]) and got["steps"][1]["count"] == 200000, "a flood passes at the client's pace",
         str(got["steps"][1])[:200])
    t.eq(text_of(got["steps"][2]), '{"after": "flood"}', "and the session lives on")
    got = session(box, "odd", ("long", {}))
    t.ok("8 MiB" in json.dumps(got["steps"][1]), "a line without end ends its session, by name", str(got["steps"][1])[:300])
    got = session(box, "odd", ("shout", {"bytes": 320 * 1024}), ("echo", {"after": "shout"}))
    t.ok(float(text_of(got["steps"][1])) > 2, "what it writes to its standard error is read at a bounded pace", text_of(got["steps"][1]))
    status, out, _ = box.sh("head -c 4300000 /dev/zero | tr '\\0' x | timeout 30 %s odd" % SHIM, timeout=60)
    t.ok(status == 1 and "-32600" in out, "a line of the client's without end is answered, and ends it", str(status), out[:300])
    got = session(box, "odd", ("echo", {"new": 1}), ("end", {}))
    t.eq(text_of(got["steps"][1]), '{"new": 1}', "the next session is a new process")
    t.ok("has ended" in error_of(got["steps"][2]), "one that ends is told of", str(got["steps"][2])[:300])


VILE = (  # what it tries; the step; what the client has of it, and must not have; the record that names it
    ("a result with a list of tools in it", ("poison", {"how": "list"}), '"tools": []', "hidden\"", ("completed", None, "hidden: 1")),
    ("a result that asks the client's model", ("poison", {"how": "sampling"}), "-31403", "sampling/", ("completed", None, "requests of the server refused: 1")),
    ("an error that sends the user to a URL", ("poison", {"how": "elicitation"}), "-31403", "odd.example.net", ("completed", None, "requests of the server refused: 1")),
    ("a question to the client's user", ("poison", {"how": "elicitation/create"}), "-32601", "password", ("completed", None, "requests of the server refused: 1")),
    ("a question for the client's folders", ("poison", {"how": "roots/list"}), "-32601", '"method": "roots/list"', ("completed", None, "requests of the server refused: 1")),
    ("a result with two lists of tools", ("poison", {"how": "twice"}), "was cut", "hidden\"", ("aborted", "mcp_reply", None)),
    ("a text that orders a call, which the model makes", ("end", {}), DENIED, None, ("denied", "mcp", "tools/call end")),
    ("a text that orders a path, which the model reads", ("read", {"path": "/srv/odd/../../etc/shadow"}), DENIED, None,
     ("denied", "mcp", "tools/call read: /path (path)")),
    ("an escape by an escaped path", ("read", {"path": "/srv/odd/%2e%2e/shadow"}), DENIED, None, ("denied", "mcp", "tools/call read: /path (path)")),
    ("an escape by a link of the server's", ("read", {"path": "/srv/odd/out"}), "not read: ", "zebra", None),
    ("a link to a resource, which the client reads", {"method": "resources/read", "params": {"uri": "file:///etc/shadow"}}, DENIED, None,
     ("denied", "mcp", "resources/read file:///etc/shadow")),
    ("a line without end", ("long", {}), "8 MiB", None, None),
    ("a flood", ("flood", {}), "flooded", None, None),
    ("a path that its own policy does not name", ("fetch", {"url": "https://api.github.com/user/keys"}), "no_rule", None, ("denied", "no_rule", None)),
    ("a description that changes", ("turn", {}), "turned", None, None),
    ("and its tool then", ("echo", {}), DENIED, None, ("denied", "mcp", "echo: changed")),
)


def vile(t, s, box):
    """Each thing that a malicious server does has its answer, and where somebody was refused its name on record."""
    with open(os.path.join(s.d.work, "agents-own"), "w") as f:
        f.write("zebra")
    for one in VILE[:-2]:
        answered(t, s, one, lambda step=one[1]: session(box, "vile", step)["steps"][-1])
    turned = []
    answered(t, s, VILE[-1], lambda: turned.extend(session(box, "vile", "tools/list", VILE[-2][1], "tools/list", VILE[-1][1])["steps"]) or turned[-1])
    t.ok("turned" in json.dumps(turned[2]) and '"echo"' in json.dumps(turned[1]) and '"echo"' not in json.dumps(turned[3]),
         "vile: a description that changes: its tool is not shown", json.dumps(turned)[-600:])
    got = json.dumps(session(box, "vile", ("poison", {"how": "order"}), ("poison", {"how": "link"}))["steps"])
    t.ok("IGNORE" in got and "resource_link" in got, "texts and links of a result pass: what they lead to is decided", got[:600])


def answered(t, s, one, what_came):
    what, _, has, lacks, record = one
    kind, code, detail = record or (None, None, None)

    def named():
        return [r for r in s.d.kinds(kind) if (code is None or r.get("code") == code) and (detail or "") in r.get("detail", "")]
    before = len(named()) if record else 0
    got = json.dumps(what_came())
    t.ok(has in got and (lacks is None or lacks not in got), "vile: %s: %s" % (what, has), got[:600])
    if record:
        t.ok(tap.wait_for(lambda: len(named()) > before, 5), "vile: %s: on record: %s %s" % (what, code or kind, detail or ""),
             str([(r.get("code"), r.get("detail")) for r in s.d.kinds(kind)])[-600:])


def pinned(t, s, box):
    """A server that changes what it says of a tool is seen, and refused or asked about where the rule says so."""
    calls = ("tools/list", ("echo", {"n": 1}), ("turn", {}), "tools/list", ("echo", {"n": 2}), ("turn", {}))
    got = {n: session(box, n, *calls)["steps"] for n in ("turns", "asks", "odd")}

    def names(step):
        return sorted(x["name"] for x in step["answer"]["result"]["tools"])
    turns = got["turns"]
    t.eq((names(turns[1]), text_of(turns[2])), (["echo", "turn"], '{"n": 1}'), "tools as they were first pass")
    t.eq(names(turns[4]), ["turn"], "refuse: one that is listed otherwise is not shown")
    t.ok(DENIED in error_of(turns[5]), "and cannot be called", str(turns[5])[:300])
    t.eq(text_of(turns[6]), "turned", "another can")
    t.eq(names(got["asks"][4]), ["echo", "turn"], "ask: it is shown")
    t.ok("denied" in error_of(got["asks"][5]), "and a call needs somebody's word, which nobody gives here", str(got["asks"][5])[:300])
    t.ok("echo" in names(got["odd"][4]) and text_of(got["odd"][5]) == '{"n": 2}', "without a word of it the tool passes")
    details = [r.get("detail", "") for r in s.d.kinds("completed")]
    seen = [d for d in details if "changed echo " in d]
    t.ok(len(seen) == 4 and any("pinned echo " in d for d in details), "each change is in the log, as what was pinned is", *seen)
    first = [d.split("pinned echo ")[1][:64] for d in details if "pinned echo " in d]
    t.ok(first and len(set(first)) == 1 and len(first[0]) == 64, "by its hash", str(first))
    t.ok(any("changed (n)" in r.get("detail", "") or "echo: changed" in r.get("detail", "") for r in s.d.kinds("denied")),
         "the refusal says why", str([r.get("detail") for r in s.d.kinds("denied")])[-300:])
    fixed = session(box, "fixed", "tools/list", ("echo", {}))["steps"]
    t.eq(names(fixed[1]), ["turn"], "a tool with another hash than the policy says is not shown")
    t.ok(DENIED in error_of(fixed[2]), "nor called", str(fixed[2])[:300])
    s.d.extra["mcp_servers"]["right"] = s.d.extra["mcp_servers"]["odd"]
    s.rule(allow="http://durward.internal/mcp/right", mcp={"tools": [{"name": "echo", "sha256": first[0] if first else ""}]})
    again = durward.Sandbox(s.d, ("--policy", "coder"))
    early, *right = session(again, "right", ("echo", {"n": 3}), "tools/list", ("echo", {"n": 3}))["steps"][1:]
    t.ok(DENIED in error_of(early), "a tool with a hash that was never listed is not called", str(early)[:300])
    t.ok(any("not_listed_yet" in r.get("detail", "") for r in s.d.kinds("denied")), "and the log says why")
    t.eq((names(right[0]), text_of(right[1])), (["echo"], '{"n": 3}'), "with the hash of the log it passes")
    again.close()


def confined(t, s, box):
    with open(os.path.join(s.d.work, "agents-own"), "w") as f:
        f.write("zebra")
    got = session(box, "odd", ("files", {"path": s.d.work}), ("files", {"path": "/root"}), ("files", {"path": "/srv"}),
                  ("files", {"path": s.d.audit_dir}), ("reach", {"host": "127.0.0.1", "port": 22}),
                  ("reach", {"host": "192.0.2.1", "port": 443}), ("reach", {"host": "odd.mcp.durward.internal", "port": 80}))
    texts = [text_of(x) for x in got["steps"][1:]]
    t.ok("agents-own" not in texts[0] and "agents-own" not in texts[2], "the server sees no file of the agent's", texts[0][:300])
    t.eq((texts[1], texts[3]), ("[]", "[]"), "nor the host's") or t.diag(str(texts[1])[:300])
    t.ok("mcp_stdio.py" in texts[2], "but what is bound", texts[2][:300])
    for what, got_text in zip(("its loopback is its own", "another network", "an MCP server that its policy does not name"), texts[4:]):
        t.ok("refused" in got_text, "it reaches nothing else: " + what, got_text)


def credential(t, s, box):
    got = session(box, "odd", ("fetch", {"url": "https://api.github.com/user"}),
                  ("fetch", {"url": "https://%s/" % scene.PLAIN}), ("fetch", {"url": "https://api.github.com/user/keys"}))
    texts = [text_of(x) for x in got["steps"][1:]]
    t.ok('"login"' in texts[0], "on its way out the server's placeholder is the credential", texts[0][:300])
    t.ok("refused" in texts[1] and "no_rule" in texts[2], "by its own policy, and no other", *texts[1:])
    t.ok(s.github.requests and not scene.one_right(s.github, s.github_credential), "the origin saw the right one, once in each")


def turning(client, box, *methods):
    """A session by HTTP with the server `turns` in that sandbox of the daemon's: what it answers last."""
    fields = "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'"
    url = "http://durward.internal/mcp/turns"
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    script = "S=$(curl -s -m 20 -D - -o /dev/null %s -d '%s' %s | tr -d '\\r' | grep -i ^mcp-session-id)\n" % (fields, json.dumps(hello), url)
    for i, method in enumerate(methods):
        m = {"jsonrpc": "2.0", "id": 1 + i, "method": "tools/list", "params": {}} if method == "list" else \
            {"jsonrpc": "2.0", "id": 1 + i, "method": "tools/call", "params": {"name": method, "arguments": {"n": 4}}}
        script += "curl -s -m 20 %s -H \"$S\" -d '%s' %s; echo\n" % (fields, json.dumps(m), url)
    got = client.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": script, "timeout": 60})
    return (got.get("output") or json.dumps(got)).strip().split("\n")[-1]


def by_daemon(t):
    """A sandbox of the daemon's has them too, with the files that the configuration names and no other bind."""
    s = config(t, "serve")
    s.d.serve()
    client = api.Api(s.d.socket)
    made = client.ask("POST", "/v1/sandboxes", {"policy": "coder"})
    name = made["id"]
    script = "printf '%s' | " + SHIM + " odd"
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "files", "arguments": {"path": "/srv"}}}
    lines = "\\n".join(json.dumps(m) for m in (hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call)) + "\\n"
    got = client.ask("POST", "/v1/sandboxes/%s/exec" % name, {"command": script % lines, "timeout": 60})
    out = [json.loads(x) for x in got.get("stdout", got.get("output", "")).splitlines() if x.startswith("{")]
    t.ok(any("mcp_stdio.py" in json.dumps(m) for m in out if m.get("id") == 2), "a sandbox of the daemon's", json.dumps(got)[:800])
    other = client.ask("POST", "/v1/sandboxes", {"policy": "coder"})["id"]
    said = turning(client, name, "list", "turn", "list", "echo")
    t.ok(DENIED in said, "one that changes what it says of a tool is refused that tool", said[:400])
    said = turning(client, other, "echo")
    t.ok('\\"n\\": 4' in said, "what the server of one sandbox changed, another's did not", said[:400])
    client.ask("DELETE", "/v1/sandboxes/" + other)
    client.ask("DELETE", "/v1/sandboxes/" + name)
    t.ok(s.d.wait_records(1, "lifecycle", 10, event="mcp_server_ended"), "its end is its server's")
    t.eq(s.d.stop(), 0, "the daemon ends as it should")


def lives(t, s, box):
    got = session(box, "broken")
    t.ok(got["steps"] and "error" in got["steps"][0].get("answer", {}), "a program that is not there is told of", str(got)[:400])
    got = session(box, "brief", ("echo", {"n": 1}))
    t.eq(text_of(got["steps"][1]), '{"n": 1}', "a server with a short idle time")
    t.ok(tap.wait_for(lambda: any("brief" in r["detail"] and "not used" in r["detail"]
                                  for r in s.d.kinds("lifecycle", event="mcp_server_ended")), 20, 0.1), "ends when nobody uses it")
    got = session(box, "brief", ("echo", {"n": 2}))
    t.eq(text_of(got["steps"][1]), '{"n": 2}', "and is started again by the next use")
    started = [r for r in s.d.kinds("lifecycle") if r.get("event") == "mcp_server_started"]
    t.ok(len([r for r in started if "brief" in r["detail"]]) == 2, "the log says so", str(started)[-500:])


def apart(t, s, box):
    """Two sandboxes of one policy have two servers."""
    other = durward.Sandbox(s.d, ("--policy", "coder"))
    a, b = (json.loads(text_of(session(x, "odd", ("env", {}))["steps"][1])) for x in (box, other))
    t.ok(a["GITHUB_TOKEN"] != b["GITHUB_TOKEN"], "each sandbox has a server, and it a placeholder, of its own")
    other.close()


def messages_alone(t):
    """What a gate gives durward-mcp beside messages is none of its client's: another type, an event of another type."""
    here, odd = '{"jsonrpc":"2.0","id":%d,"result":{"here":true}}', '{"jsonrpc":"2.0","id":%d,"result":{"odd":true}}'
    answers = [("application/json; charset=utf-8", here), ("text/plain", odd), ("application/jsonx", odd),
               ("text/event-stream", "event: message\ndata: " + here + "\n\n"), ("text/event-stream", "data: " + here + "\n\n"),
               ("text/event-stream", "event: ping\ndata: " + odd + "\n\n"), ("text/event-streams", "data: " + odd + "\n\n")]
    r = subprocess.run(["unshare", "--user", "--map-root-user", "--net", durward.PYTHON, "-B", os.path.join(PEERS, "mcp_gate.py"),
                        os.path.join(os.path.dirname(durward.program()), "../libexec/durward/durward-init"), t.mkdir("shim")],
                       input=json.dumps(answers), text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    said = {m.get("id"): m for m in (json.loads(line) for line in r.stdout.splitlines())}
    t.eq(sorted(said), list(range(len(answers))), "durward-mcp answers each request, itself where it got no message")
    for i, (kind, text) in enumerate(answers):
        t.eq("result" in said.get(i, {}), "here" in text,
             "durward-mcp gives its client %s of %r" % ("the message" if "here" in text else "no word", (kind, text[:14])))


def main(t):
    t.part(messages_alone, t)
    s = config(t)
    box = durward.Sandbox(s.d, ("--policy", "coder"))
    for part in (usual, decided):
        t.part(part, t, s, box)
    t.part(by_http, t, box)
    t.part(misbehaves, t, s, box)
    t.part(vile, t, s, box)
    t.part(pinned, t, s, box)
    t.part(confined, t, s, box)
    t.part(credential, t, s, box)
    t.part(lives, t, s, box)
    t.part(apart, t, s, box)
    scan.scan_sandbox(t, box, s.scanner)
    out = box.close()[1]
    s.clean([out], "MCP servers")
    t.part(by_daemon, t)
    bad = s.d.check(json.dumps(dict(s.d.config(), mcp_servers={"Odd": {"command": ["x"], "policy": "server"}})))
    t.ok(bad.returncode != 0 and "name" in bad.stderr, "a name that is no label of a host is a load error", bad.stderr[:300])
    bad = s.d.check(json.dumps(dict(s.d.config(), mcp_servers={"odd": {"command": ["x"], "policy": "none"}})))
    t.ok(bad.returncode != 0 and "no policy" in bad.stderr, "so is a policy that is not there", bad.stderr[:300])


tap.run(main)
