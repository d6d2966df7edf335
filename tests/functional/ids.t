#!/usr/bin/python3 -B
"""Commands that take an id take it whole or by its first letters where no other has them; letters that several
have are refused with the ids they fit, and a word that fits none says which command lists them. The shell completes them."""
import os
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, scene, shapes, tap  # noqa: E402

HELD, MANY = "held.example.com", 24  # ids are of 32 letters: of so many, two begin alike
WISH = {"policy": "coder", "code": "denied_by_rule", "host": scene.GITHUB, "reason": "looked at", "expires_in": 3600}
# what takes an id -> kind of the list, command that lists them, what an unknown whole id gets
VERBS = {
    ("approve", "allow"): ("approvals", "durward approve ls", "nothing of that id waits"),
    ("approve", "deny"): ("approvals", "durward approve ls", "nothing of that id waits"),
    ("proposals", "show"): ("proposals", "durward proposals ls", "there is no such proposal"),
    ("proposals", "accept"): ("proposals", "durward proposals ls", "there is no such proposal"),
    ("proposals", "reject"): ("proposals", "durward proposals ls", "there is no such proposal"),
    ("suppressions", "show"): ("suppressions", "durward suppressions ls", "there is no such suppression"),
    ("suppressions", "accept"): ("suppressions", "durward suppressions ls", "there is no such suppression"),
    ("suppressions", "lift"): ("suppressions", "durward suppressions ls", "there is no such suppression"),
    ("token", "revoke"): ("tokens", "durward token ls", None),  # it is gone already: no error
}
STATES = {("token", "revoke"): None, ("approve", "allow"): None, ("approve", "deny"): None, ("proposals", "accept"): "accepted",
          ("proposals", "reject"): "rejected", ("suppressions", "accept"): "active", ("suppressions", "lift"): "lifted"}


def alike(ids):
    """A letter that several ids have first, behind what all begin with; and those."""
    heads = {}
    for x in ids:
        heads.setdefault(x[3], []).append(x)
    return max(heads.items(), key=lambda h: len(h[1]))


def short(one, ids):
    return next(one[:n] for n in range(7, len(one) + 1) if sum(x.startswith(one[:n]) for x in ids) == 1)


def fitting(t, s, a, verb):
    kind, listing, gone = VERBS[verb]
    found = lambda: {x["id"]: x.get("state") for x in a.ask("GET", "/v1/" + kind)[kind]}  # noqa: E731
    say = lambda word: s.d.command(*verb, "--socket", s.d.socket, word)  # noqa: E731
    name, before = " ".join(verb), found()
    letter, several = alike(before)
    r = say(letter)
    t.ok(len(several) > 1 and r.returncode == 1 and all(x in r.stderr for x in several[:4]) and "write more of it" in r.stderr,
         name + ": letters that several have are refused with the ids", r.stdout, r.stderr)
    r = say("nobody")
    t.ok(r.returncode == 1 and "there is no " in r.stderr and "'nobody'; '%s' lists them" % listing in r.stderr,
         name + ": a word that fits none, and what lists them", r.stdout, r.stderr)
    unknown = several[0][:3] + "7" * (len(several[0]) - 3)
    r = say(unknown)
    t.ok(r.returncode == 0 if gone is None else
         r.returncode == 1 and gone in r.stderr and "; '%s' lists what there is" % listing in r.stderr,
         name + ": a whole id that is unknown, and what lists them", r.stdout, r.stderr)
    t.eq(found(), before, name + ": none of these did anything")
    state = STATES.get(verb, 0)
    for i, what in enumerate(("first letters", "letters without the kind's", "a whole id")):
        one = next(x for x, was in found().items() if was in (None, "open"))
        r = say((short(one, found()), short(one, found())[3:], one)[i])
        now = found()
        good = one in now if state == 0 else now.get(one) == state
        t.ok(r.returncode == 0 and good, "%s: %s" % (name, what), one, r.stdout, r.stderr)
        if verb[1] == "show":
            t.has(r.stdout, one, name + ": that one")
        else:
            t.eq({k: v for k, v in now.items() if k != one}, {k: v for k, v in before.items() if k != one and k in now},
                 name + ": and no other")
            before = now


def proposed(a):
    """One a second is taken: so many that all verbs have theirs and two begin alike."""
    def another():
        try:
            a.ask("POST", "/v1/proposals", {"policy": "coder", "method": "GET", "url": "https://h%d.example/" % len(ids),
                                            "reason": "r"})
        except api.Refused:
            return False
        ids[:] = [x["id"] for x in a.ask("GET", "/v1/proposals")["proposals"]]
        return len(ids) >= 8 and len(alike(ids)[1]) > 1
    ids = []
    return tap.wait_for(another, 40, 0.1)


def completed(t, s, kind, ids):
    words = s.d.command("completion", "--list", kind, "--socket", s.d.socket).stdout.split()
    t.ok(ids and set(ids) <= set(words), "completion lists " + kind, words)
    script = s.d.command("completion", "bash").stdout
    for verb, (of, *_) in VERBS.items():
        if of == kind:
            t.ok(re.search(r'"%s "%s\).*kind=%s ;;' % (*verb, kind), script), " ".join(verb) + ": its id is completed")


def sandboxes(t, s):
    """tests/functional/command_line.t asks for sandboxes by all that stands for one."""
    script = s.d.command("completion", "bash").stdout
    for verb in "show exec attach cp watch forward rm pause stop resume snapshot restore fork".split():
        t.ok(re.search(r'"sandbox "%s\).*kind=sandboxes ;;' % verb, script), "sandbox %s: its id is completed" % verb)
    for verb in (("show",), ("exec",), ("pause",), ("resume",)):
        r = s.d.command("sandbox", *verb, "--socket", s.d.socket, "sb-" + "7" * 26, *(["true"] if verb == ("exec",) else []))
        t.ok(r.returncode != 0 and "there is no such sandbox; 'durward sandbox ls' lists what there is" in r.stderr,
             "sandbox %s: a whole id that is unknown, and what lists them" % verb[0], r.returncode, r.stderr)


def main(t):
    s = scene.Scene(t)
    s.rules.insert(0, {"ask": HELD})
    s.add(HELD, shapes.echo)
    s.d.limits["approvals"] = 2 * MANY
    address = s.listener()
    s.d.serve()
    a, gate = api.Api(s.d.socket), s.gate(address, timeout=120)  # they are held for as long as the test takes
    held = lambda: [x["id"] for x in a.ask("GET", "/v1/approvals")["approvals"]]  # noqa: E731
    asked = [threading.Thread(target=lambda i=i: gate.get(HELD, "/x/%d" % i), daemon=True) for i in range(MANY)]
    for x in asked:
        x.start()
    if not t.ok(tap.wait_for(lambda: len(held()) == MANY, 20), "requests are held", held()):
        return
    for i in range(MANY):
        a.ask("POST", "/v1/suppressions", dict(WISH, path="/gists/%d" % i))
        a.ask("POST", "/v1/tokens", {"scopes": ["read"]})
    t.ok(proposed(a), "proposals that begin alike")
    for kind in ("approvals", "proposals", "suppressions", "tokens"):
        completed(t, s, kind, [x["id"] for x in a.ask("GET", "/v1/" + kind)[kind]])
    sandboxes(t, s)
    for verb in VERBS:
        t.part(fitting, t, s, a, verb)
    for one in held():
        a.ask("POST", "/v1/approvals/%s/deny" % one)
    for x in asked:
        x.join(10)
    a.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
