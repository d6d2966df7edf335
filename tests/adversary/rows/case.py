"""A row of the catalogue and how it is judged.

A row passes only when its benign twin is served (one `admitted`, one `completed`, one request at an
origin), each case has the exact answer, exactly one record, and nothing left: no byte and no
connection at any origin, no query at the name server."""
import time

from . import bed as beds
from .send import get


class Case:
    """answer: (status, code), ("alert", number, code), or a function(bed, out, records) -> complaint.
    event: the kind of its one record. left: what may have left ("bytes" when a request had been
    admitted before the attack showed; "denied|aborted": either, by who was quicker). keeps: the connection may stay open."""

    def __init__(self, what, send, *answer, event="denied", left=None, keeps=False):
        self.what, self.send, self.answer = what, send, answer
        self.event, self.left, self.keeps = event, left, keeps


class Sweep:
    """Many cases on one line: [(what, send, answer…)]."""

    def __init__(self, what, cases, **kw):
        self.what = what
        self.cases = [Case(c[0], c[1], *c[2:], **kw) for c in cases]


class Many:
    """Cases that one function tries and judges: fn(bed) -> (how many, [(what, complaint)])."""

    def __init__(self, what, fn):
        self.what, self.fn = what, fn


class Row:
    def __init__(self, id, title, *cases, twin=None, held=None):
        self.id, self.title, self.cases = id, title, cases
        self.twin = twin if twin is not None else get()
        self.held = held


def ended(records):
    return [r for r in records if r["kind"] in ("admitted", "denied", "completed", "aborted",
                                                "tls_refused")]


def quiet(bed, found=None):
    """Until no record has come for a while; the logger hears of them in batches."""
    while True:
        time.sleep(0.05)
        got = bed.log.new()
        if not got:
            return
        if found is not None:
            found.extend(ended(got))


def served(bed, send):
    """-> complaint about a benign twin, or None"""
    quiet(bed)
    before = bed.requests()
    out = send(bed)
    if isinstance(out.reply, int):  # a handshake that went on; we left it, and that is recorded
        beds.settle(lambda: any(r["kind"] == "tls_refused" for r in bed.log.new()))
        return None
    if out.reply is None and out.status == 200:
        return None  # a tunnel that stands
    if out.status != 200:
        return "the benign twin: %r" % out
    records = []

    def done():
        records.extend(ended(bed.log.new()))
        return "completed" in [r["kind"] for r in records]
    beds.settle(done)
    kinds = [r["kind"] for r in records]
    if kinds != ["admitted", "completed"] or bed.requests() != before + 1:
        return "the benign twin: %s, %d requests" % (kinds, bed.requests() - before)
    return None


def judge(bed, case):
    """-> complaint or None"""
    bed.log.new()
    before, requests = bed.arrived(), bed.requests()
    try:
        out = case.send(bed)
    except Exception as e:
        return "not sent: %r" % e
    records = []

    def come():
        records.extend(ended(bed.log.new()))
        return any(r["kind"] in case.event.split("|") for r in records)
    beds.settle(come)
    if callable(case.answer[0]):
        return case.answer[0](bed, out, records)
    return answered(case, out) or audited(case, out, records) or leaked(bed, case, before, requests)


def answered(case, out):
    """-> complaint about what came back, or None"""
    if case.answer[0] == "alert":
        if out.alert != case.answer[1]:
            return "wanted alert %s, got %r" % (case.answer[1], out)
    elif (out.status, out.code) != case.answer[:2]:
        return "wanted %s, got %r" % (case.answer[:2], out)
    if out.closed is False and not case.keeps:
        return "the connection stays open: %r" % out
    return None


def judge_all(bed, cases):
    """Many cases whose answers are plain, one after the other; their records and what left are counted
    when all are done. -> [(what, complaint)]. Where the counts are wrong each is tried by itself."""
    if len(cases) < 4 or any(callable(c.answer[0]) or "|" in c.event for c in cases):
        return [(c.what, why) for c in cases for why in [judge(bed, c)] if why]
    quiet(bed)
    before, requests, outs, records = bed.arrived(), bed.requests(), [], []
    for c in cases:
        try:
            outs.append(c.send(bed))
        except Exception as e:
            return [(c.what, "not sent: %r" % e)]
    bad = [(c.what, why) for c, out in zip(cases, outs) for why in [answered(c, out)] if why]
    if bad:
        return bad
    kinds = ["admitted"] * (cases[0].event == "aborted") + [cases[0].event]

    def come():
        records.extend(ended(bed.log.new()))
        return len(records) >= len(kinds) * len(cases)
    beds.settle(come, 10)
    quiet(bed, records)
    ends = [r for r in records if r["kind"] == cases[0].event]
    by_id = {r.get("id"): r.get("code") for r in ends}
    right = len(records) == len(kinds) * len(cases) and len(ends) == len(cases) and \
        sorted(r.get("code") for r in ends) == sorted(c.answer[-1] for c in cases) and \
        all(by_id.get(o.id) == c.answer[-1] for c, o in zip(cases, outs) if o.id not in (None, ""))
    if cases[0].left == "bytes":
        right = right and bed.requests() - requests <= len(cases)
    else:
        right = right and bed.arrived() == before
    if right:
        return []
    one = [(c.what, why) for c in cases[:60] for why in [judge(bed, c)] if why]
    return one or [("all", "the %d records or what left do not add up" % len(records))]


def audited(case, out, records):
    wanted = case.answer[-1]
    if case.event == "denied|aborted" and [r["kind"] for r in records] == ["denied"]:
        case = Case(case.what, case.send, *case.answer)
    elif case.event.endswith("aborted"):
        if [r["kind"] for r in records] != ["admitted", "aborted"]:
            return "records %s" % [(r["kind"], r.get("code")) for r in records]
        records = records[1:]
    kind = case.event.rpartition("|")[2]
    if [(r["kind"], r.get("code")) for r in records] != [(kind, wanted)]:
        return "wanted one %s(%s), got %s" % (kind, wanted,
                                              [(r["kind"], r.get("code")) for r in records])
    if out.id not in (None, "") and records[0].get("id") != out.id:
        return "the answer's id %r is not the record's %r" % (out.id, records[0].get("id"))
    return None


def leaked(bed, case, before, requests):
    now = bed.arrived()
    if case.left == "bytes":
        extra = bed.requests() - requests
        return "%d requests at the origins" % extra if extra > 1 else None
    if now != before:
        return "left: %d bytes, %d connections, %d queries" % tuple(
            n - b for n, b in zip(now, before))
    return None


def tried(bed, many):
    """What was sent is on record before the next row looks there."""
    try:
        return many.fn(bed)
    except Exception as e:
        return 1, [("not tried to the end", repr(e))]
    finally:
        quiet(bed)


class Count:
    rows = passed = cases = 0


def try_row(t, bed, row, count):
    good = True
    try:
        why = served(bed, row.twin)
    except Exception as e:
        why = "the benign twin: %r" % e
    if why:
        t.ok(False, "%s %s" % (row.id, row.title), why)
        good = False
    for case in row.cases:
        name = "%s %s: %s" % (row.id, row.title, case.what)
        if isinstance(case, Many):
            number, bad = tried(bed, case)
            good &= t.ok(number and not bad, "%s (%d cases)" % (name, number),
                         *["%s: %s" % b for b in bad[:5]], "%d of them" % len(bad))
            count.cases += number
        elif isinstance(case, Sweep):
            bad = judge_all(bed, case.cases)
            good &= t.ok(not bad, "%s (%d cases)" % (name, len(case.cases)),
                         *["%s: %s" % b for b in bad[:5]], "%d of them" % len(bad))
            count.cases += len(case.cases)
        else:
            why = judge(bed, case)
            good &= t.ok(why is None, name, why)
            count.cases += 1
    count.rows += 1
    count.passed += good


def try_rows(t, bed, rows, only=()):
    count = Count()
    for row in rows:
        if not only or row.id in only:
            try_row(t, bed, row, count)
    t.diag("rows tried %d, passed %d; cases %d" % (count.rows, count.passed, count.cases))
    return count
