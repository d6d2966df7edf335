#!/usr/bin/python3 -B
"""Vendors' own client libraries, bare and inside of `durward run`, against the same doubles: what each does in the bare
run it does inside, by as many requests; the key stands in the field where it stood, none is refused, no placeholder
arrives.

Some of them and one turn each, unless LIBRARIES names some (by API, package or language), or `all`, and TURNS says how
many turns. With --write: the table of doc/clients.md."""
import collections
import fcntl
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, libraries, tap  # noqa: E402

SAMPLE = ["python:openai", "python:aws", "node:stripe", "node:telegram", "node:discord"]
PAGE = os.path.join(durward.TOP, "doc", "clients.md")
BEGIN, END = "<!-- libraries.t -->\n", "<!-- end of libraries.t -->\n"


def methods(requests):
    return collections.Counter(r.method for r in requests)


def fields(requests, key):
    """In which fields the key stands together. Of its scheme the rule has the last word (GitHub takes two), and a rule
    adds its key to a request that has none."""
    return {tuple(p.split(" ")[0] for p in libraries.places(r, key)) for r in requests} - {()}


def carry(requests, key):
    """How many of them have the key."""
    return sum(libraries.places(r, key) != () for r in requests)


def one(t, w, x, turns):
    """-> its row of the table: bare first, for what a library does bare is what is asked of it inside."""
    key = w.key(x)
    said, bare, err = w.bare(x, turns)
    if not t.ok(said.get("turns") == turns, "%s: bare, %d turns (control)" % (x.name, turns), err[-2500:],
                *["%s %s %s" % (r.method, r.path, r.status) for r in bare[-3:]]):
        return None
    before = len(w.refused())
    got, inside, err = w.inside(x, turns)
    refused = w.refused()[before:]
    good = t.ok(got.get("turns") == turns, "%s: inside, %d turns" % (x.name, turns), err[-2500:])
    good &= t.ok(not refused, "%s: 0 of %d requests were refused" % (x.name, len(inside)), *refused[:5])
    good &= t.ok(methods(bare) == methods(inside), "%s: by the same requests" % x.name, methods(bare), methods(inside))
    good &= t.ok(fields(bare, key) == fields(inside, key), "%s: the key where it stood" % x.name, fields(bare, key),
                 fields(inside, key))
    good &= t.ok(carry(bare, key) <= carry(inside, key), "%s: in as many requests" % x.name, carry(bare, key), carry(inside, key))
    if not good:
        return None
    where = sorted({p for r in inside for p in libraries.places(r, key)})
    return (x.package, x.language, said["version"], x.hosts[0], ", ".join(where), len(bare), len(inside), len(refused))


def line(r):
    return "| %s | %s | %s | %s | %s | %d | %d | %d |" % r


def cells(text):
    return [x.strip() for x in text.strip("|").split("|")]


def table(rows):
    """Lines of rows, and what they come to."""
    lines = ["| library | language | version | host | the key arrives in | requests bare | inside | refused |",
             "|---|---|---|---|---|---|---|---|"] + rows
    found = [cells(x) for x in rows]
    sums = [sum(int(x[n]) for x in found) for n in (5, 6, 7)]
    return lines + ["| %d libraries | | | | | %d | %d | %d |" % (len(found), *sums)]


def write(rows):
    """Into the page: what ran now, and of the others what stood there."""
    with open(PAGE, "r+", encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        page = f.read()
        begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
        known = {tuple(cells(x)[:2]): x for x in page[begin:end].splitlines()[2:-1]}
        known.update((r[:2], line(r)) for r in rows)
        kept = [known[x.package, x.language] for x in libraries.LIBRARIES if (x.package, x.language) in known]
        f.seek(0)
        f.write(page[:begin] + "\n".join(table(kept)) + "\n" + page[end:])
        f.truncate()


def together(t, group, name, turns):
    """Those that one policy serves. -> their rows"""
    w = libraries.World(t, group, name)
    rows = [r for x in group for r in [t.part(one, t, w, x, turns)] if r]
    w.close()
    for text in w.outputs:
        w.scanner.search(text, "a client's output")
    w.scanner.tree(w.d.audit_dir)
    t.ok(not w.scanner.hits, "no secret in outputs and records", *map(str, w.scanner.hits))
    stray = [r.path for o in w.origins.values() for r in o.requests for k in w.given if k.encode() in r.raw + r.body]
    t.ok(len(w.given) == sum("{{" in x for x in w.env.values()) and not stray, "no placeholder arrived", w.given, *stray)
    return rows


def main(t):
    asked = os.environ.get("LIBRARIES", "").split() or SAMPLE
    turns = int(os.environ.get("TURNS", "1"))
    chosen = [x for x in libraries.LIBRARIES if x.goes_by(asked)]
    there = [x for x in chosen if x.folder()]
    if there != chosen:
        t.skip("client libraries", "some are not there: run tests/functional/clients/setup, for all of them "
               "tests/functional/clients/libraries/setup FOLDER PYTHON all (Python 3.11, Node 20, Go 1.26, JDK 17 with Maven): "
               + " ".join(x.name for x in chosen if x not in there))
    if not there:
        return
    rows = [r for n, group in enumerate(libraries.by_policy(there)) for r in together(t, group, "d%d" % n, turns)]
    for text in table([line(r) for r in rows]):
        t.diag(text)
    if "--write" in sys.argv:
        write(rows)


tap.run(main, timeout=7200 if os.environ.get("LIBRARIES") else 120)
