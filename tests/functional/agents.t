#!/usr/bin/python3 -B
"""Coding agents of others, as their vendors deliver them, do one task bare and inside of `durward run`, against
doubles of the vendors' APIs: read a file, edit it, run a command, say something that is streamed. The key arrives
where the bare run sent it, nothing is refused that the bare run is not, and a host that the policy does not name is
answered by a sentence that the model gets to read. With --write: the table of doc/clients.md."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import agents, durward, scan, tap  # noqa: E402

PAGE = os.path.join(durward.TOP, "doc", "clients.md")
BEGIN, END = "<!-- agents.t -->\n", "<!-- end of agents.t -->\n"
SENTENCE = "Durward denied this request: no rule of the policy allows it"


def shown(run):
    return (run.said.stdout[-2000:], run.said.stderr[-2000:], "offered: %s" % run.task.offered,
            "results: %s" % [x[:300] for x in run.task.results],
            "requests: %s" % sorted({(q.method, q.path, str(q.status)) for q in run.double.requests}))


def key(t, name, bare, inside):
    """The real key where the bare run sent it, the placeholder nowhere."""
    want, got = set(bare.shapes()), inside.shapes()
    t.ok(want and got and set(got) <= want and all(len(x) == 1 for x in got),
         "%s: the key arrives once in each of %d requests, as in the bare run" % (name, len(got)), want, set(got))
    given = inside.read("key.txt")
    t.ok(given and given != inside.key and bare.read("key.txt") == bare.key, "%s: knows a placeholder only" % name, given,
         inside.said.stderr[-1500:])
    t.ok(given and not [r for r in inside.double.requests if given.encode() in r.raw + r.body],
         "%s: which arrives nowhere" % name)
    return ", ".join(sorted({n + (" (%s)" % v.split()[0] if " " in v else "") for x in got for n, v in x}))


def clean(t, name, run):
    scanner = scan.Scanner(key=run.secret)
    for text in (run.said.stdout, run.said.stderr):
        scanner.search(text, "output")
    scanner.tree(run.d.work)  # what it left in its home and in /tmp, and its environment, lie here as well
    scanner.tree(run.d.audit_dir)
    t.ok(os.path.exists(os.path.join(run.d.work, "left.tar")) and not scanner.hits,
         "%s: 0 copies of the key in %d bytes that it left, said, or that are on record" % (name, scanner.bytes),
         *scanner.report())
    t.tally(canaries=len(scanner.hits), searched=scanner.bytes)


def one(t, agent):
    """-> its row of the table."""
    name = agent.name
    bare, inside = agents.Run(t, agent, "bare").bare(), agents.Run(t, agent, "inside").inside()
    t.ok(not bare.done(), "%s: bare, it does the task (control)" % name, bare.done(), *shown(bare))
    t.ok(not inside.done(), "%s: inside of it (%s), it does the task" % (name, inside.how), inside.done(), *shown(inside))
    place = key(t, name, bare, inside)
    here, elsewhere = inside.refused()
    t.ok(not here, "%s: 0 of %d requests to %s were refused" % (name, len(inside.double.requests), agent.host), *here)
    t.ok(SENTENCE in inside.task.heard(2) and SENTENCE not in bare.task.heard(2),
         "%s: a host that no rule names answers with the sentence, which the model gets" % name, inside.task.heard(2))
    clean(t, name, inside)
    t.diag("%s: bare %.1f s, inside %.1f s, added %.1f s; refused elsewhere: %s" % (
        name, bare.took, inside.took, inside.took - bare.took, ", ".join(sorted(set(elsewhere))) or "nothing"))
    return (name, agents.version(agent), agent.host, place, "yes" if not inside.done() else "no", len(here))


def table(rows):
    lines = ["| agent | package | API | the key arrives in | task done | refused |", "|---|---|---|---|---|---|"]
    return lines + ["| %s | %s | %s | %s | %s | %d |" % r for r in rows]


def main(t):
    asked = os.environ.get("AGENTS", "").split()
    there = [a for a in agents.named(asked) if not a.missing()]
    for a in agents.named(asked):
        if a not in there:
            t.diag("%s: %s" % (a.name, a.missing()))
    if not there:
        raise tap.Skip("coding agents are not there: run tests/functional/clients/setup")
    found = [r for r in (t.part(one, t, a) for a in there) if r]
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    kept = page[begin:end].splitlines()
    new = table(found)
    if "--write" in sys.argv:
        old = {x.split("|")[1].strip(): x for x in kept[2:]}
        old.update((r[0], line) for r, line in zip(found, new[2:]))
        lines = new[:2] + [old[a.name] for a in agents.AGENTS if a.name in old]
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(page[:begin] + "\n".join(lines) + "\n" + page[end:])
    else:
        t.ok(set(new) <= set(kept), "doc/clients.md has these rows", *[x for x in new if x not in kept])


tap.run(main, timeout=600)
