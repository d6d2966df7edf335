#!/usr/bin/python3 -B
"""Budgets `per label`: sandboxes that have the same value of a label share a budget of tokens, whoever made them. 64 calls
at once from two of them; labels that change; sandboxes from a pool; and the death of the dialer and of the controller."""
import concurrent.futures
import json
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, scene, tap  # noqa: E402

HOST, CHAT = "model.example.com", "/v1/chat/completions"
LIMIT = "tokens 20000/h per label team"


class Model:
    """An origin whose answers say that each call took 400 tokens, and wait until they may."""

    def __init__(self):
        self.go = threading.Event()
        self.go.set()

    def __call__(self, req, conn):
        self.go.wait(30)
        conn.reply(req, 200, {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 300, "total_tokens": 400}})


def role_pid(d, role):
    return ([pid for pid, r in d.roles() if r == role] + [None])[0]


class World:
    def __init__(self, t):
        self.t, self.s = t, scene.Scene(t)
        self.model = Model()
        self.origin = self.s.add(HOST, self.model)
        for name, budget in (("team", "20000/h per label team"), ("both", ["1300/h per label team", "900000/h per label cost.centre"]),
                             ("mine", "1300/h per sandbox")):
            self.s.rule(allow="%s/%s/**" % (HOST, name), llm="openai", budget={"tokens": budget})
        self.s.d.policy("coder", self.s.rules, self.s.env)
        self.s.d.extra["templates"] = {"ready": {"policy": "coder", "pool": 1}}
        self.s.d.serve()
        self.a = api.Api(self.s.d.socket, timeout=60)

    def box(self, **labels):
        return self.a.create(policy="coder", labels=labels)["id"]

    def calls(self, box, n, rule="team"):
        """n at once, each of nearly 1,000 tokens; -> their statuses."""
        body = json.dumps({"model": "m", "max_tokens": 980, "messages": []})
        own = api.Api(self.s.d.socket, timeout=60)
        out = own.sh(box, "for i in $(seq %d); do curl -s -m 40 -o /dev/null -w '%%{http_code} ' -H 'Content-Type: application/json' "
                          "-d '%s' https://%s/%s%s & done; wait" % (n, body, HOST, rule, CHAT), timeout=60)[1]
        own.close()
        return sorted(out.decode().split())


def at_once(t, w):
    """As many as the budget holds of both sandboxes of a team together, as many of the other team's, and of those that
    have no team, which are one."""
    boxes = [w.box(team="red", n="1"), w.box(team="red", n="2"), w.box(team="blue"), w.box(n="1"), w.box()]
    w.model.go.clear()
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(w.calls, box, n) for box, n in zip(boxes, (32, 32, 30, 15, 15))]
        want = 3 * 20  # of 1,000 and a little less each
        tap.wait_for(lambda: len(w.origin.requests) >= want, 30)
        tap.wait_for(lambda: len(w.s.d.kinds("denied", code="budget")) >= 124 - want, 30)
        w.model.go.set()
        got = [f.result(60) for f in futures]
    passed = [x.count("200") for x in got]
    t.eq(sorted(set(sum(got, []))), ["200", "429"], "each call passes or is refused for the budget")
    t.eq((passed[0] + passed[1], passed[2], passed[3] + passed[4]), (20, 20, 20),
         "124 at once: as many of each team as its budget holds")
    t.ok(passed[0] and passed[1], "both sandboxes of one had some", repr(passed))
    (record,) = w.s.d.wait_records(1, "denied", code="budget")[:1]
    t.eq(record.get("detail"), LIMIT, "the record names the budget and its label")
    t.ok(tap.wait_for(lambda: w.calls(boxes[1], 1) == ["200"], 10), "what they did not take comes back to the team")
    return boxes


def spend(w, box):
    """All that its label has left."""
    for _ in range(8):
        if "200" not in w.calls(box, 16):
            return True
    return False


def changes(t, w, boxes):
    red, other, blue, none = boxes[:4]
    t.ok(spend(w, red), "one of a team spends what the team has")
    t.eq(w.calls(other, 2), ["429"] * 2, "the team's other has no more")
    t.eq(w.calls(blue, 1), ["200"], "another team has")
    w.a.ask("PATCH", "/v1/sandboxes/" + blue, {"labels": {"team": "red"}})
    t.eq(w.calls(blue, 2), ["429"] * 2, "who is put into the team shares what it has")
    w.a.ask("PATCH", "/v1/sandboxes/" + blue, {"labels": {"team": "blue", "cost.centre": "x"}})
    t.eq(w.calls(blue, 1), ["200"], "and who leaves it does not")
    events = [r.get("detail") for r in w.s.d.wait_records(3, "lifecycle", event="sandbox_labelled", target=blue)]
    t.eq(events, ['{"team":"blue"}', '{"team":"red"}', '{"cost.centre":"x","team":"blue"}'], "all of which is on record")
    fresh = w.box(team="red")
    t.eq(w.calls(fresh, 1), ["429"], "a new sandbox of the team has no more either")
    w.a.delete(fresh)
    t.eq(w.calls(none, 1, "both"), ["200"], "two labels' limits in one budget")
    t.eq(w.calls(none, 1, "both"), ["429"], "hold both")
    t.eq((w.calls(other, 1, "mine"), w.calls(other, 1, "mine"), w.calls(red, 1, "mine")), (["200"], ["429"], ["200"]),
         "a limit of each sandbox is still each one's own")


def pool(t, w):
    """One that was made ahead has no labels, and gets those of who takes it."""
    def ready():
        return [x for x in w.a.ask("GET", "/v1/templates")["templates"] if x.get("ready")]
    t.ok(tap.wait_for(ready, 20), "a sandbox is made ahead")
    box = w.a.ask("POST", "/v1/sandboxes", {"template": "ready", "labels": {"team": "red"}})["id"]
    claimed = w.s.d.kinds("lifecycle", event="sandbox_claimed", target=box)
    t.eq((len(claimed), w.calls(box, 1)), (1, ["429"]), "who takes it for a team shares what that has")


def deaths(t, w, boxes):
    red, _, blue = boxes[:3]
    for role in ("dialer", "controller"):
        pid = role_pid(w.s.d, role)
        os.kill(pid, signal.SIGKILL)
        t.ok(tap.wait_for(lambda: role_pid(w.s.d, role) not in (None, pid), 10), "another %s is started" % role)
        got = tap.wait_for(lambda: (lambda x: x if x in (["200"], ["429"]) else None)(w.calls(blue, 1)), 20)
        t.eq((got, w.calls(red, 2)), (["200"], ["429"] * 2), "the next %s's labels are those of before" % role)


def main(t):
    w = World(t)
    try:
        w.a.delete(w.box())
    except api.Refused as e:
        raise tap.Skip("no sandbox can be made here: %s" % e)
    boxes = at_once(t, w)
    t.part(changes, t, w, boxes)
    t.part(pool, t, w)
    t.part(deaths, t, w, boxes)
    w.s.clean((), "labels")
    w.a.close()
    t.eq(w.s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=150)
