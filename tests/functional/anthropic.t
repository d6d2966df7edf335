#!/usr/bin/python3 -B
"""Presets as vendors' clients use them: Anthropic's key as x-api-key and as bearer, by the official SDK where
it is there and by exact requests always; OpenAI's WebSocket. The secret goes once, where it was sent."""
import base64
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

HOST = "api.anthropic.com"
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
           "stop_sequence": None, "content": [{"type": "text", "text": "The door is kept."}],
           "usage": {"input_tokens": 1, "output_tokens": 1}}
ASK = """
import json, os, sys, anthropic
how = sys.argv[1]
given = os.environ["ANTHROPIC_API_KEY"]
os.environ.pop("ANTHROPIC_API_KEY")
kw = {"api_key": given} if how == "api_key" else {"auth_token": given}
c = anthropic.Anthropic(max_retries=0, **kw)
m = c.messages.create(model="claude", max_tokens=5, messages=[{"role": "user", "content": "?"}],
                      extra_headers={"Mcp-Session-Id": "1868a90c-ecb5-4d2f-9d1c-6f1d1d6f0c11"})
print(json.dumps([given, m.content[0].text]))
"""


def places(request):
    """Where the request carries what: {field: value}."""
    return {n: v for n in ("x-api-key", "authorization") for v in [request.get(n)] if v is not None}


def by_sdk(t, s, box, server, secret):
    python = os.path.join(durward.clients_dir(), "agents", "bin", "python")
    if not os.path.exists(python):
        t.skip("anthropic's own SDK", "it is not there: run tests/functional/clients/setup (it needs Python 3.11)")
        return []
    outputs = []
    key, bearer = {"x-api-key": secret}, {"authorization": "Bearer " + secret}
    for how, may in (("api_key", (key, bearer)), ("auth_token", (bearer,))):  # newer ones send both alike
        seen = len(server.requests)
        status, out, err = box.sh("%s -B - %s" % (python, how), stdin=ASK, timeout=60)
        outputs += [out, err]
        got = json.loads(out) if status == 0 else [None, err[-600:]]
        t.ok(got[1] == "The door is kept." and got[0] != secret, "the SDK with %s" % how, str(got))
        new = server.requests[seen:]
        t.ok(len(new) == 1 and places(new[0]) in may, "the secret went once, where %s goes" % how,
             [sorted(places(r)) for r in new])
        t.ok(new and new[0].get("mcp-session-id"), "and an id of a session beside it")
    return outputs


def by_hand(t, box, server, secret):
    curl = "curl -sS -o /dev/null -w '%%{http_code}' https://%s/v1/messages --json '{}' %s"
    bearer, key = {"authorization": "Bearer " + secret}, {"x-api-key": secret}
    outputs = []
    for fields, status, want in (
            ("-H \"x-api-key: $ANTHROPIC_API_KEY\"", "200", key),
            ("-H \"Authorization: Bearer $ANTHROPIC_API_KEY\"", "200", bearer),
            ("", "200", key),
            ("-H \"x-api-key: $ANTHROPIC_API_KEY\" -H \"Authorization: Bearer $ANTHROPIC_API_KEY\"", "403", None),
            ("-H 'x-api-key: sk-ant-mine'", "403", None),
            ("-H 'Authorization: Bearer sk-ant-mine'", "403", None),
            ("-H \"x-api-key: $ANTHROPIC_API_KEY\" -H 'Authorization: Bearer sk-ant-mine'", "403", None),
            ("-H \"X-Other: $ANTHROPIC_API_KEY\"", "403", None)):
        seen = len(server.requests)
        _, out, err = box.sh(curl % (HOST, fields))
        outputs += [out, err]
        new = [places(r) for r in server.requests[seen:]]
        t.ok(out.strip().endswith(status) and new == ([want] if want else []),
             "%s: %s" % (fields or "nothing", status), out, [sorted(x) for x in new], err)
    return outputs


def one_flag(t, s, server, secret):
    """--secret ANTHROPIC_API_KEY@api.anthropic.com: the preset's rules of that host."""
    before = len(server.requests)
    r = s.d.run(["sh", "-c", "curl -sS https://%s/v1/messages --json '{}' -H \"Authorization: Bearer "
                 "$ANTHROPIC_API_KEY\"" % HOST],
                flags=("--policy", "bare", "--secret", "ANTHROPIC_API_KEY@" + HOST), env={"ANTHROPIC_API_KEY": secret})
    got = [places(x) for x in server.requests[before:]]
    t.ok(got == [{"authorization": "Bearer " + secret}], "with --secret NAME@HOST too", r.stdout, r.stderr)
    outputs = [r.stdout, r.stderr]
    before = len(server.requests)
    r = s.d.run(["sh", "-c", "for f in x-goog-api-key x-api-key; do curl -sS -o /dev/null -w '%%{http_code} ' "
                 "https://%s/v1/messages --json '{}' -H \"$f: $GEMINI_API_KEY\"; done" % HOST],
                flags=("--policy", "bare", "--secret", "GEMINI_API_KEY@" + HOST + ":x-goog-api-key"),
                env={"GEMINI_API_KEY": secret})
    got = [(x.get("x-goog-api-key"), places(x)) for x in server.requests[before:]]
    t.ok(got == [(secret, {})] and r.stdout.split() == ["200", "403"],
         "and NAME@HOST:FIELD sends it in that field, and takes it in no other", got, r.stdout, r.stderr)
    return outputs + [r.stdout, r.stderr]


def sockets(t, s, box):
    key = base64.b64encode(b"0123456789abcdef").decode()
    seen = len(s.openai.requests)
    _, out, err = box.sh(
        "curl -sS -i --http1.1 -m 10 https://%s/v1/realtime -H 'Connection: Upgrade' -H 'Upgrade: websocket' "
        "-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: %s' -H \"Authorization: Bearer $OPENAI_API_KEY\""
        % (scene.OPENAI, key))
    new = s.openai.requests[seen:]
    t.ok("durward-denied" not in out.lower() and len(new) == 1 and new[0].get("upgrade") == "websocket" and
         new[0].get("authorization") == s.openai_credential[1], "preset openai: a WebSocket is asked for", out, err)
    return [out, err]


def main(t):
    s = scene.Scene(t)
    value = scan.canary("sk-ant-api03-")
    secret = value.decode()
    s.scanner.add("anthropic", value)
    s.d.secret("anthropic", value, kind="anthropic")
    server = s.add(HOST, lambda req, conn: conn.reply(req, 200, json.dumps(MESSAGE).encode(),
                                                      [("Content-Type", "application/json")]))
    s.rules[:] = [r for r in s.rules if not str(r.get("allow")).startswith("api.openai.com")]
    s.rule(use="anthropic")
    s.rule(use="openai")
    s.env["ANTHROPIC_API_KEY"] = "{{placeholder anthropic}}"
    s.d.policy("bare", [{"allow": scene.PLAIN}])
    box = durward.Sandbox(s.d, flags=("--policy", "coder"), binds=durward.client_binds("agents"))
    outputs = by_hand(t, box, server, secret)
    outputs += by_sdk(t, s, box, server, secret)
    outputs += sockets(t, s, box)
    denied = [r for r in s.d.records() if r.get("kind") == "denied"]
    t.ok({"header x-api-key", "header authorization"} <=
         {r.get("detail") for r in denied if r.get("code") == "foreign_credential"} and
         "header x-other; the rule fills header x-api-key or header authorization" in {r.get("detail") for r in denied if r.get("code") == "secret_blocked"} and
         not any("sk-ant-mine" in json.dumps(r) for r in s.d.records()),
         "records name the field that was refused, not its value", [(r.get("code"), r.get("detail")) for r in denied])
    last = box.close()[1]
    outputs.append(last)
    t.ok("header x-other; the rule fills header x-api-key or header authorization (secret_blocked)" in last and "header authorization (foreign_credential)" in last and
         "sk-ant-mine" not in last, "so does the line at the end of run", last)
    outputs += one_flag(t, s, server, secret)
    s.clean(outputs, "presets")


tap.run(main)
