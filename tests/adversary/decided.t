#!/usr/bin/python3 -B
"""Gate, injector and `durward test` decide as the model of tests/decide does: policies by chance in a running daemon,
and of the requests that the model judged some of each verdict and code. First a client's, and what the gate answers,
what the origin gets and who was asked; then the same by somebody in the gate's place, who asks the injector for what
that gate has refused too; then what the command says of them. DURWARD_DECIDE_SEED repeats a run: the seed is printed."""
import collections
import json
import os
import random
import ssl
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
sys.path.insert(0, os.path.dirname(HERE))
from decide.generate import Chance  # noqa: E402
from decide.model import Policy  # noqa: E402
from harness import api, origin, scan, scene, seat, shapes, tap, wire  # noqa: E402
from harness.seat_injector_channel import Hop  # noqa: E402

SEED = os.environ.get("DURWARD_DECIDE_SEED") or str(random.SystemRandom().randrange(1 << 31))
POLICIES, EACH = 6, 4  # so many policies; of each kind of answer so many requests of a policy
NAMES = ["ok.com"] + [n + ".ok.com" for n in ("a", "c", "b.a", "a.a", "c.a", "b.a.a")]
PORTS = (("https", 443), ("https", 8443), ("http", 80))
SEAT_CODES = (None, "grant_denied", "no_rule", "denied_by_rule", "method", "respelled", "path_ambiguous", "query",
              "header", "method_override")
CODES = (None, "no_rule", "denied_by_rule", "method", "respelled", "path_ambiguous", "query", "header",
         "method_override", "graphql", "mcp", "body_ambiguous", "content_type")
SECRETS = ("one", "two", "")
OVERRIDE = "X-HTTP-Method-Override"


class Case:
    def __init__(self, policy, q, text):
        self.policy, self.q, self.text = policy, q, text
        self.said, self.want = policy.answer(q), policy.gate(q)
        self.passes = self.want[1] is None
        self.rule = self.said.rule
        self.asks = self.passes and self.said.verdict == "ask"
        self.secret = self.rule.secret if self.passes else None
        self.codes = {self.want[1]} | {("seat", policy.injector(q, secret)[1]) for secret in SECRETS}
        if self.passes:  # the injector looks into the method as well, where there is one
            hop = self.rule.credential or self.asks or policy.searched(q.host)
            self.codes.add(("method", self.rule.scoped, self.said.matters, bool(hop)))
        self.kind = (self.want, self.said.verdict, self.secret, self.said.matters, policy.searched(q.host),
                     self.passes and self.rule.scoped)

    def __str__(self):
        q = self.q
        return "%s %s://%s:%d%s%s" % (q.method, q.scheme, q.host, q.port, q.path, "" if q.query is None else "?" + q.query)


def cases_of(chance, policy):
    """Of one policy: EACH of a kind, in their order."""
    kinds = collections.defaultdict(list)
    for _ in range(250):
        q, text = chance.request(policy.said)
        if (q.scheme, q.port) in PORTS and q.host in NAMES + ["far.com"]:
            c = Case(policy, q, text)
            kinds[c.kind].append(c)
    return {k: found[:EACH] for k, found in kinds.items()}


def chosen(chance):
    """Policies that between them have every code of gate and injector, as many kinds of answers as can be, and each a
    credential and an ask."""
    def codes_of(found):
        return {code for cases in found.values() for c in cases for code in c.codes}
    wanted = set(CODES) | {("seat", code) for code in SEAT_CODES} | {
        ("method", False, matters, hop) for matters in (False, True) for hop in (False, True)}
    some, had = [], set()
    while len(some) < 60 or wanted - had:
        policy = Policy(chance.policy())
        if not policy.conflict() and any(r.credential for r in policy.passes) and any(r.verb == "ask" for r in policy.passes):
            some.append((policy, cases_of(chance, policy)))
            had |= codes_of(some[-1][1])
    picked, kinds = [], set()
    while len(picked) < POLICIES or wanted:
        best = max(some, key=lambda one: 10 * len(codes_of(one[1]) & wanted) + len(set(one[1]) - kinds))
        some.remove(best)
        picked.append(best)
        kinds |= set(best[1])
        wanted -= codes_of(best[1])
    return [(p, [c for k in sorted(found, key=repr) for c in found[k]]) for p, found in picked]


class Approver:
    """Lets everything go that is held, and knows what it was."""

    def __init__(self, t, path):
        self.api, self.asked, self.going = api.Api(path), [], True
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        after = 0
        while self.going:
            got = self.api.ask("GET", "/v1/approvals?after=%d&wait=1" % after)
            after = got["next"]
            for one in got["approvals"]:
                self.asked.append((one["method"], one["policy"]))
                self.api.ask("POST", "/v1/approvals/%s/allow" % one["id"])

    def close(self):
        self.going = False
        self.thread.join(10)
        self.api.close()


def answer(r):
    """The code from the field alone: a reply to HEAD has no body."""
    return r.status, (r.get("durward-denied") or "").partition(" ")[0] or None


class Bed:
    def __init__(self, t, sample):
        self.t, self.seats, s = t, seat.Seats(t), scene.Scene(t)
        self.s, self.words = s, {name: scan.canary(name + "-") for name in ("one", "two")}
        for name, word in self.words.items():
            s.scanner.add(name, word)
            s.d.secret(name, word)
        self.secure = origin.Origin(t, s.d.ca, NAMES, shapes.echo)
        self.clear = origin.Origin(t, s.d.ca, NAMES, shapes.echo, tls=False)
        for name in NAMES:
            for port, to in ((443, self.secure), (8443, self.secure), (80, self.clear)):
                s.d.resolve["%s:%d" % (name, port)] = to.address
        self.names = ["p%d" % i for i in range(len(sample))]
        for name, (policy, _) in zip(self.names, sample):
            s.d.policy(name, policy.said)
        addresses = [s.listener(name) for name in self.names]
        s.d.serve()
        self.gates = [s.gate(a) for a in addresses]
        self.context = ssl.create_default_context(cafile=self.gates[0].cafile)
        self.approver = Approver(t, s.d.socket)

    def arrived(self):
        return len(self.secure.requests) + len(self.clear.requests)

    def newest(self, q):
        return (self.secure if q.scheme == "https" else self.clear).requests[-1]

    def ask(self, gate, c):
        """-> (status, code)"""
        q = c.q
        name = q.host if q.port in (443, 80) else "%s:%d" % (q.host, q.port)
        target = q.path + ("" if q.query is None else "?" + q.query)
        fields = "".join("%s: %s\r\n" % f for f in list(q.fields) + [(OVERRIDE, "DELETE")])
        if q.kind:
            fields += "Content-Type: %s\r\n" % q.kind
        if c.text:
            fields += "Content-Length: %d\r\n" % len(c.text)
        if q.scheme == "https":
            r, st = gate.connect("%s:%d" % (q.host, q.port))
            if r.status != 200:
                st.close()
                return answer(r)
            try:
                gate.wrap(st, self.context, q.host)
            except ssl.SSLError as e:  # the same port is open in clear
                st.close()
                return 403, "no_rule" if e.reason == "TLSV1_UNRECOGNIZED_NAME" else e.reason
        else:
            st, target = gate.plain(), "http://" + name + target
        with st:
            return answer(st.ask("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s" % (
                q.method, target, name, fields, c.text), q.method))

    # ---- a case ----

    def carried(self, q, secret):
        """Of what came to the origin: is it the credential that it should be?"""
        want = ["Bearer " + self.words[secret].decode()] if secret else []
        return self.newest(q).all("authorization") == want

    def by_gate(self, gate, c):
        """-> what is wrong"""
        before, asked = self.arrived(), len(self.approver.asked)
        got = self.ask(gate, c)
        came, held = self.arrived() - before, len(self.approver.asked) - asked
        wrong = []
        if got != c.want:
            wrong.append("%s, the model: %s" % (got, c.want))
        if came != c.passes:
            wrong.append("%d requests came to an origin" % came)
        elif came and not self.carried(c.q, c.secret):
            wrong.append("with another credential than %s" % c.secret)
        elif came and (self.newest(c.q).get(OVERRIDE.lower()) is None) != c.said.matters:
            wrong.append("the method %s" % ("matters" if c.said.matters else "does not matter"))
        if held != c.asks:
            wrong.append("%d were asked about" % held)
        return wrong

    def by_seat(self, hop, c, secret):
        q, before, asked = c.q, self.arrived(), len(self.approver.asked)
        want = c.policy.injector(q, secret)
        hop.wire.send(hop.request(
            scheme=wire.HTTPS if q.scheme == "https" else wire.HTTP, host=q.host, port=q.port, method=q.method,
            path=q.path, has_query=int(q.query is not None), query=q.query or "", secret=secret, fields=q.fields))
        got = hop.answer(8)
        passes, wrong = want[1] is None, []
        if got != (200 if passes else want):
            wrong.append("asked for %r: %r, the model: %r" % (secret, got, want))
        came, held = self.arrived() - before, len(self.approver.asked) - asked
        if came != passes:
            wrong.append("%d requests came to an origin" % came)
        elif came and not self.carried(q, secret):
            wrong.append("with another credential than %s" % secret)
        if held != (passes and c.policy.decide(q).verdict == "ask"):
            wrong.append("%d were asked about" % held)
        return wrong


def told(t, what, tried, wrong):
    t.ok(tried and not wrong, "%s: %d cases as the model has them" % (what, tried), *wrong[:8])


def through_gates(t, bed, sample):
    seen = collections.Counter()
    for name, gate, (policy, cases) in zip(bed.names, bed.gates, sample):
        wrong = []
        for c in cases:
            seen[c.want[1]] += 1
            wrong += ["%s: %s" % (c, w) for w in bed.by_gate(gate, c)]
        told(t, "%s, a client's" % name, len(cases), wrong + ([str(policy.said)] if wrong else []))
    t.ok(all(seen[code] for code in CODES), "each code was among the gate's answers",
         "not: %s" % [code for code in CODES if not seen[code]])


def from_seats(t, bed, sample):
    seen = collections.Counter()
    for name, (policy, cases) in zip(bed.names, sample):
        gate = bed.seats.take("gate", lambda g: {w.policy for w in g.wires("dialer")} == {name})
        hop, wrong, tried = Hop(bed, None, gate, name), [], 0
        for c in cases:
            if "\\" in c.q.path:
                continue  # no target: what the channel's grammar makes of it is for seats_gate.t
            for secret in SECRETS:
                tried += 1
                seen[policy.injector(c.q, secret)[1]] += 1
                wrong += ["%s: %s" % (c, w) for w in bed.by_seat(hop, c, secret)]
        told(t, "%s, from the gate's place" % name, tried, wrong + ([str(policy.said)] if wrong else []))
        gate.end()
    t.ok(all(seen[code] for code in SEAT_CODES), "each code was among the injector's answers", str(seen))


def by_command(t, bed, sample):
    """`durward test` says the code that the gate answers, of what is judged by a head alone."""
    tests, tried = [], 0
    for name, (policy, cases) in zip(bed.names, sample):
        for c in cases:
            q, fields = c.q, dict(c.q.fields)
            if len(fields) < len(q.fields):
                continue  # a field twice cannot be said there
            url = "%s://%s:%d%s%s" % (q.scheme, q.host, q.port, q.path, "" if q.query is None else "?" + q.query)
            code = policy.explain(q)
            expect = policy.admission(q).verdict if code == "ok" else "deny"
            tests.append({"request": "%s %s" % (q.method, url), "expect": expect, "code": code, "policy": name,
                          "headers": fields})
            tried += 1
    path = os.path.join(bed.s.d.work, "decided.yaml")
    with open(path, "w") as f:
        json.dump({"tests": tests}, f)
    r = bed.s.d.command("test", "-c", bed.s.d.conf, path)
    wrong = [x for x in r.stdout.splitlines() if "FAIL" in x] or ([] if r.returncode == 0 else [r.stdout + r.stderr])
    told(t, "the command's", tried, wrong)


def main(t):
    t.diag("seed " + SEED)
    sample = chosen(Chance(random.Random(SEED)))
    bed = Bed(t, sample)
    t.part(through_gates, t, bed, sample)
    t.part(from_seats, t, bed, sample)
    t.part(by_command, t, bed, sample)
    bed.approver.close()
    bed.s.clean()


tap.run(main, timeout=120)
