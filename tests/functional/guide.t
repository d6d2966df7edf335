#!/usr/bin/python3 -B
"""`http://durward.internal/`, which the sandbox's own gate answers: what may be reached, which
placeholders there are, why a request was refused. Nothing of it leaves the machine, nothing of it is
a secret, and a flood of refusals keeps it small."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

GUIDE = "http://durward.internal"
KEPT = 64
DOWN = "down.example.com"


class Guide:
    def __init__(self, t, box, outputs):
        self.t, self.box, self.outputs = t, box, outputs

    def curl(self, args, **kw):
        status, out, err = self.box.sh("curl -sS -m 10 " + args, **kw)
        self.outputs += [out, err]
        return status, out, err

    def json(self, path, **kw):
        _, out, err = self.curl("-H 'Accept: application/json' %s%s" % (GUIDE, path), **kw)
        try:
            return json.loads(out)
        except ValueError:
            self.t.diag("no JSON at %s: %r %r" % (path, out, err))
            return {}


def pages(t, s, g):
    before = len(s.d.kinds("connection"))
    for proxy in (False, True):
        how = "by the proxy variables" if proxy else "by its name"
        _, out, err = g.curl("-i %s/" % GUIDE, proxy=proxy)
        t.ok(out.startswith("HTTP/1.1 200") and "text/plain" in out and "/refusals" in out, "the guide answers " + how, out, err)
        t.eq(out.lower().count("content-length:"), 1, "its length stands there once, " + how)
        about = g.json("/", proxy=proxy)
        t.eq(about.get("policy"), "coder", "it names the policy, " + how)
    _, out, err = g.curl("-i --http2-prior-knowledge %s/" % GUIDE)
    t.ok(out.startswith("HTTP/2 200") and "/refusals" in out, "and in HTTP/2 by prior knowledge", out, err)
    rules = g.json("/rules").get("rules", [])
    mine = [r for r in rules if scene.GITHUB in r["rule"]]
    t.ok(mine and mine[0]["credential"] and not mine[0]["approval"], "the rules say where a credential is added", str(rules))
    t.ok(not [r for r in rules if r["rule"].startswith("deny")], "what is denied is not listed", str(rules))
    _, out, _ = g.curl(GUIDE + "/rules")
    t.ok(scene.GITHUB in out and "credential: yes" in out, "as text too", out)
    t.eq(len(s.d.kinds("connection")), before, "nobody was dialled for it")


def odd(t, g):
    for args, want in (("-X POST", "405"), ("-d x=y", "405"), ("-I", "200")):
        _, out, err = g.curl("-o /dev/null -w '%%{http_code}' %s %s/" % (args, GUIDE))
        t.ok(out.endswith(want) or (want == "405" and out in ("403", "405")), "%s: %s" % (args, want), out, err)
    _, out, _ = g.curl("-w '%%{http_code}' %s/other" % GUIDE)
    t.ok(out.endswith("404") and "no such page" in out, "an unknown page is 404", out)
    for url in ("https://durward.internal/", "http://durward.internal:8080/", "http://x.durward.internal/"):
        status, out, _ = g.curl("-k -o /dev/null -w '%%{http_code}' %s" % url)
        t.ok(status != 0 and out == "000", "%s is not served" % url, str(status), out)


def refusals(t, s, g):
    _, out, _ = g.curl("-o /dev/null -D - 'https://%s/nothing/here?secret=zebra'" % scene.GITHUB)
    denied = [line for line in out.splitlines() if line.lower().startswith("durward-denied:")][0].split()
    t.eq(denied[1], "no_rule", "a refusal to ask about")
    one = g.json("/refusals/" + denied[2])
    t.eq((one.get("code"), one.get("status"), one.get("class"), one.get("method"), one.get("target")),
         ("no_rule", 403, "denied", "GET", "https://" + scene.GITHUB), "the guide says what it was") or t.diag(str(one))
    t.ok(one.get("why") == "no rule of the policy allows it" and "Ask" in one.get("way", ""), "and why, and the way out", str(one))
    t.ok("zebra" not in json.dumps(one), "nothing of the query is kept", str(one))
    _, out, _ = g.curl("-w '%%{http_code}' %s/refusals/0-0" % GUIDE)
    t.ok(out.endswith("404"), "an id that is nobody's is 404", out)
    g.curl("-H 'X-Api-Key: sk-ant-api03-%s' https://%s/user" % ("x" * 40, scene.GITHUB))
    first = (g.json("/refusals").get("refusals") or [{}])[0]
    t.ok(first.get("code") == "foreign_credential" and "x-api-key" in first.get("detail", "").lower(),
         "the newest comes first, with the field that was refused", str(first))
    g.curl("-o /dev/null 'https://%s/many/[1-200]' -Z --parallel-max 4" % scene.GITHUB)
    kept = g.json("/refusals").get("refusals", [])
    t.eq(len(kept), KEPT, "after 200 more it holds the latest %d" % KEPT)


def by_injector(t, g):
    """What the injector refuses is kept in the gate's own words, however many come after it."""
    for _ in range(3):
        g.curl("-o /dev/null https://%s/x https://%s/nothing" % (DOWN, scene.GITHUB))
    kept = [r.get("code") for r in g.json("/refusals").get("refusals", [])[:6]]
    t.eq(kept, ["no_rule", "connect"] * 3, "an injector's codes are kept")


def placeholders(t, g, word):
    _, out, _ = g.box.sh("env")
    mine = g.json("/placeholders").get("placeholders", [])
    t.ok(mine and all(p["placeholder"] in out for p in mine), "the placeholders are those of the environment", str(mine), out)
    t.ok(any(scene.GITHUB in r for p in mine for r in p["rules"]), "each with the rules that take it", str(mine))


def mcp(t, s, g):
    """The same as an MCP server, over HTTP and over standard input and output."""
    word = g.box.sh("printenv GITHUB_TOKEN")[1].strip()

    def say(method, number=1, **params):
        return json.dumps(dict({"jsonrpc": "2.0", "method": method}, params=params, **({"id": number} if number else {})))

    def post(text, *more):
        _, out, err = g.curl("-w '\n%%{http_code}' -H 'Content-Type: application/json' %s --data-binary @- %s/mcp <<'END'\n%s\nEND" % (
            " ".join(more), GUIDE, text))
        body, _, status = out.rpartition("\n")
        t.diag("%s %s" % (err, body)) if err else None
        return status, json.loads(body) if body.strip() else None

    def text(name, **arguments):
        status, got = post(say("tools/call", name=name, arguments=arguments))
        result = (got or {}).get("result", {})
        return status, result.get("isError"), result.get("content", [{}])[0].get("text", "")
    status, got = post(say("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}))
    t.ok(status == "200" and got["result"]["protocolVersion"] == "2025-06-18" and "coder" in got["result"]["instructions"], "initialize", str(got))
    t.eq(post(say("notifications/initialized", 0))[0], "202", "a notification is taken")
    status, got = post(say("tools/list"))
    t.eq([x["name"] for x in got["result"]["tools"]],
         ["what_may_i_do", "why_was_it_refused", "list_placeholders", "propose_rule"], "its tools")
    status, failed, out = text("what_may_i_do")
    t.ok(status == "200" and failed is False and scene.GITHUB in out and "credential: yes" in out, "what may be done", out)
    _, out, _ = g.curl("-o /dev/null -D - 'https://%s/nothing/here?secret=zebra'" % scene.GITHUB)
    denied = [line for line in out.splitlines() if line.lower().startswith("durward-denied:")][0].split()
    status, failed, out = text("why_was_it_refused", id=denied[2])
    t.ok(failed is False and "no rule of the policy allows it" in out and "zebra" not in out, "why it was refused", out)
    status, failed, out = text("why_was_it_refused", id="0-0")
    t.ok(status == "200" and failed is True, "an id that is nobody's fails", out)
    status, failed, out = text("list_placeholders")
    t.ok(failed is False and word in out, "the placeholders", out)
    status, failed, out = text("propose_rule", host="new.example.com", path="/v1/**", method="POST", reason="to file issues")
    t.ok(status == "200" and (failed is False) == ("is asked" in out) and out, "a rule is proposed", out)
    status, failed, out = text("propose_rule", host="new.example.com", path="/%s" % word)
    t.ok(failed is True and "placeholder" in out, "a placeholder is in no proposal", out)
    for what, want in (("[%s]" % say("ping"), "400"), (say("ping")[:-1] + ',"ID":2}', "400"), ("{", "400"),
                       (say("ping", _meta={"x": "y" * 17000}), "413")):
        status, got = post(what)
        t.ok(status == want, "no message: %s" % what[:40], status, str(got))
    status, got = post(say("tools/call", name="other"))
    t.ok(status == "200" and got["error"]["code"] == -32602 and got["id"] == 1, "a tool that is not there", str(got))
    for args, want in (("-X GET", "405"), ("-X DELETE", "405"), ("-d x=y", "40"), ("-H 'Content-Type: text/plain' -d '{}'", "40")):
        _, out, _ = g.curl("-o /dev/null -w '%%{http_code}' %s %s/mcp" % (args, GUIDE))
        t.ok(out.startswith(want), "%s: %s" % (args, want), out)
    lines = "\n".join((say("initialize", protocolVersion="2025-06-18", capabilities={}), say("notifications/initialized", 0),
                       say("tools/call", 3, name="list_placeholders")))
    status, out, err = g.box.sh("/run/durward/durward-mcp <<'END'\n%s\nEND" % lines)
    g.outputs += [out, err]
    last = json.loads(out.strip().splitlines()[-1])
    t.ok(last["id"] == 3 and word in last["result"]["content"][0]["text"], "durward-mcp without a name speaks with it", out, err)


def main(t):
    s = scene.Scene(t)
    s.rule(deny="%s/private/**" % scene.GITHUB)
    s.d.resolve[DOWN] = "127.0.0.1:1"
    s.rule(allow=DOWN, **{"with": {"bearer": "github"}})
    outputs = []
    box = durward.Sandbox(s.d)
    g = Guide(t, box, outputs)
    t.part(pages, t, s, g)
    t.part(odd, t, g)
    t.part(refusals, t, s, g)
    t.part(by_injector, t, g)
    t.part(placeholders, t, g, s.github_credential)
    t.part(mcp, t, s, g)
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.d.policies["coder"]["guide"] = "none"
    box = durward.Sandbox(s.d)
    g = Guide(t, box, outputs)
    _, out, _ = g.curl(GUIDE + "/rules")
    t.ok("does not tell" in out and scene.GITHUB not in out, "guide: none tells no rule", out)
    t.eq([list(p) for p in g.json("/placeholders").get("placeholders", [])][:1], [["placeholder"]], "nor which rule takes a placeholder")
    _, out, _ = g.curl("-H 'Content-Type: application/json' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' %s/mcp" % GUIDE)
    t.ok("what_may_i_do" in out and "propose_rule" not in out, "nor takes a proposal as a tool", out)
    outputs.append(box.close()[1])
    s.clean(outputs, "the guide")


tap.run(main)
