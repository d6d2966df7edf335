#!/usr/bin/python3 -B
"""Each preset as its vendor's own library uses it, against doubles of the APIs on loopback: the first call and a
streamed one go through, the credential arrives once and where that API reads it, no placeholder arrives, nothing is
refused. With --write: the table of doc/clients.md."""
import base64
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, scan, tap  # noqa: E402
from harness.answers import TEXT, chat, cohere, fixed, gemini, messages  # noqa: E402

FIELDS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "private-token")
PAGE = os.path.join(durward.TOP, "doc", "clients.md")
BEGIN, END = "<!-- presets.t -->\n", "<!-- end of presets.t -->\n"
REGION = "bedrock-runtime.eu-west-1.amazonaws.com"
AZURE, GHE, LAB = "acme.openai.azure.com", "github.corp.example", "gitlab.corp.example"
BEARER = ("authorization", "Bearer %s")
BASIC = ("authorization", "Basic x-access-token")

# preset, more of the rule, [(client, base URL, hosts, where the credential arrives)]
ROWS = (
    ("openai", {}, [("openai", "https://api.openai.com/v1", ["api.openai.com"], BEARER)]),
    ("anthropic", {}, [("anthropic", "https://api.anthropic.com", ["api.anthropic.com"], BEARER)]),
    ("gemini", {}, [
        ("gemini", "-", ["generativelanguage.googleapis.com"], ("x-goog-api-key", "%s")),
        ("openai", "https://generativelanguage.googleapis.com/v1beta/openai/", ["generativelanguage.googleapis.com"],
         BEARER)]),
    ("vertex", {}, [("vertex", "-", ["aiplatform.googleapis.com"], BEARER)]),
    ("azure-openai", {"preset_hosts": AZURE}, [("azure", "https://" + AZURE, [AZURE], ("api-key", "%s")),
                                               ("azure_token", "https://" + AZURE, [AZURE], BEARER)]),
    ("bedrock", {"preset_hosts": [REGION]}, [("bedrock", "-", [REGION], ("authorization", "AWS4 bedrock"))]),
    ("openrouter", {}, [("openai", "https://openrouter.ai/api/v1", ["openrouter.ai"], BEARER)]),
    ("mistral", {}, [("mistral", "-", ["api.mistral.ai"], BEARER)]),
    ("groq", {}, [("openai", "https://api.groq.com/openai/v1", ["api.groq.com"], BEARER)]),
    ("cerebras", {}, [("openai", "https://api.cerebras.ai/v1", ["api.cerebras.ai"], BEARER)]),
    ("together", {}, [("openai", "https://api.together.ai/v1", ["api.together.ai"], BEARER)]),
    ("xai", {}, [("openai", "https://api.x.ai/v1", ["api.x.ai"], BEARER)]),
    ("deepseek", {}, [("openai", "https://api.deepseek.com", ["api.deepseek.com"], BEARER),
                      ("anthropic", "https://api.deepseek.com/anthropic", ["api.deepseek.com"], BEARER)]),
    ("cohere", {}, [("cohere", "-", ["api.cohere.com"], BEARER)]),
    ("huggingface", {}, [("huggingface", "https://router.huggingface.co/v1",
                          ["huggingface.co", "router.huggingface.co"], BEARER)]),
    ("github", {}, [("github", "https://api.github.com", ["api.github.com"], BEARER)]),
    ("github", {"preset_hosts": GHE}, [("github", "https://%s/api/v3" % GHE, [GHE], BASIC)]),
    ("gitlab", {}, [("gitlab", "https://gitlab.com", ["gitlab.com"], ("private-token", "%s"))]),
    ("gitlab", {"preset_hosts": LAB}, [("gitlab_oauth", "https://" + LAB, [LAB], BEARER)]),
    ("bitbucket", {}, [("bitbucket", "https://api.bitbucket.org", ["api.bitbucket.org"], BEARER)]),
)


ANSWERS = (  # (path, how that API answers)
    (r"/chat/completions$", chat), (r":(stream)?[gG]enerateContent$", gemini), (r"/v1/messages$", messages),
    (r"^/v2/chat$", cohere), (r"^/api/whoami-v2$", fixed({"type": "user", "name": "octo", "orgs": []})),
    (r"^/model/m/converse$", fixed({"output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}},
                                    "stopReason": "end_turn", "metrics": {"latencyMs": 1},
                                    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}})),
    (r"^/api/v4/projects/1$", fixed({"id": 1, "description": TEXT})), (r"^/api/v4/user$", fixed({"id": 1})),
    (r"^(/api/v3)?/user$", fixed({"login": "octo", "bio": TEXT, "url": "https://api.github.com/user"})),
    (r"^/2\.0/user$", fixed({"display_name": TEXT})),
)


def double(req, conn):
    for path, answer in ANSWERS:
        if re.search(path, req.path):
            answer(req, conn)
            return
    conn.reply(req, 404, {"message": "the double has no " + req.path})


class Presets:
    def __init__(self, t):
        self.t, self.d = t, durward.Durward(t)
        self.scanner, self.origins, self.keys = scan.Scanner(), {}, {}
        rules, env = [], {}
        for i, (preset, more, uses) in enumerate(ROWS):
            name, value = "s%d" % i, scan.canary("key-")
            self.scanner.add(name, value)
            self.d.secret(name, value)
            self.keys[i] = value.decode()
            if preset == "bedrock":
                self.d.secret("id", "AKIAEXAMPLE7REALKEY0")
                self.d.secrets["aws"] = {"aws_key": {"access_key_id": "id", "secret_access_key": name}}
                name = "aws"
            rules.append(dict({"use": preset, "secret": name}, **more))
            env["KEY_%d" % i] = "{{placeholder %s}}" % name
            for host in sorted({h for u in uses for h in u[2]} - set(self.origins)):
                self.origins[host] = origin.Origin(t, self.d.ca, host, double)
                self.d.origin(host, self.origins[host])
        self.d.policy("agents", rules, env)
        self.box = durward.Sandbox(self.d, binds=durward.client_binds("sdks"))
        self.outputs = []

    def arrived(self, i, request, place):
        """None, or what is wrong with the credential of this request."""
        field, shape = place
        got = {n: request.all(n) for n in FIELDS if request.all(n)}
        if list(got) != [field] or len(got[field]) != 1:
            return "in %s" % sorted((n, len(v)) for n, v in got.items())
        value, secret = got[field][0], self.keys[i]
        if shape.startswith("Basic "):
            pair = base64.b64decode(value.split(" ", 1)[1]).decode()
            return None if pair == shape[6:] + ":" + secret else "another pair"
        if shape.startswith("AWS4 "):
            good = re.match(r"AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE7REALKEY0/\d{8}/eu-west-1/bedrock/aws4_request, ", value)
            return None if good and secret not in value else "another key or scope"
        return None if value == shape % secret else "another value"

    def use(self, i, preset, client, base, hosts, place):
        before = {h: len(self.origins[h].requests) for h in hosts}
        python = os.path.join(durward.clients_dir(), "sdks", "bin", "python")
        status, out, err = self.box.sh("%s -B %s %s %s \"$KEY_%d\"" % (
            python, os.path.join(durward.INSIDE, "sdk.py"), client, base, i), timeout=60)
        self.outputs += [out, err]
        said = json.loads(out) if status == 0 else {}
        what = "%s: %s at %s" % (preset, client, hosts[-1])
        self.t.ok(said.get("text") == TEXT, what + ": the first call", out, err[-1500:])
        streams = client not in ("bedrock", "gitlab", "gitlab_oauth", "github", "bitbucket")
        self.t.ok(said.get("streamed") == (TEXT if streams else None), what + ": a streamed reply", out)
        new = {h: self.origins[h].requests[n:] for h, n in before.items()}
        wrong = ["%s %s: %s" % (r.method, r.path, bad) for h in hosts for r in new[h]
                 for bad in [self.arrived(i, r, place)] if bad]
        self.t.ok(all(new.values()) and not wrong, what + ": the credential once, as %s" % place[0], *wrong)
        return (preset, said.get("version", "failed"), hosts[-1], place[0] + (
            " (%s)" % place[1].split()[0] if " " in place[1] else ""), "yes" if said.get("text") == TEXT else "no",
            ("yes" if said.get("streamed") == TEXT else "no") if streams else "n/a", sum(len(x) for x in new.values()))


def table(rows):
    lines = ["| preset | client | host | the credential arrives in | first call | streamed | requests |",
             "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + ["| `%s` | %s | %s | %s | %s | %s | %d |" % r for r in rows]) + "\n"


def main(t):
    if not os.path.exists(os.path.join(durward.clients_dir(), "sdks", "bin", "python")):
        t.skip("the vendors' libraries", "they are not there: run tests/functional/clients/setup")
        return
    p = Presets(t)
    rows = [p.use(i, preset, *use) for i, (preset, _, uses) in enumerate(ROWS) for use in uses]
    refused = [(r.get("authority"), r.get("code"), r.get("detail")) for r in p.d.kinds("denied")]
    t.ok(not refused, "0 of %d requests were refused" % sum(r[-1] for r in rows), *map(str, refused))
    raw = [r for o in p.origins.values() for r in o.requests if "{{placeholder" in str(r.raw)]
    own = p.box.sh("env | sed -n 's/^KEY_[0-9]*=//p'")[1].split()
    raw += [r for o in p.origins.values() for r in o.requests for k in own if k in str(r.raw)]
    t.ok(len(own) == len(ROWS) and not raw, "no placeholder arrived", *[r.path for r in raw])
    p.outputs.append(p.box.close()[1])
    for text in p.outputs:
        p.scanner.search(text, "a client's output")
    p.scanner.tree(p.d.audit_dir)
    t.ok(not p.scanner.hits, "no secret in outputs and records", *map(str, p.scanner.hits))
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    if "--write" in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(page[:begin] + table(rows) + page[end:])
    else:
        t.eq(page[begin:end], table(rows), "doc/clients.md has this table")


tap.run(main)
