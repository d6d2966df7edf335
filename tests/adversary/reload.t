#!/usr/bin/python3 -B
"""A28: 1,000 reloads under load, and not one moment of another policy than some file that was good:
other rules, none at all, an edit that has nothing to do with rules, and files that are bad or cut off.
Probes that no file ever allowed are refused all the time; one that all good files allow is served."""
import json
import os
import ssl
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import api, client, durward, scene, shapes, tap  # noqa: E402

BY_COMMAND = 48  # of the reloads; the rest are asked for over one connection
ALWAYS, NEVER, ELSEWHERE = "one.example.com", "evil.example.com", "two.example.com"


def files(s):
    """[(text, is it good)]: the turn that they come in."""
    base = s.d.config()

    def text(rules=None, **more):
        c = json.loads(json.dumps(base))
        if rules is not None:
            c["policies"]["coder"]["rules"] = rules
        c.update(more)
        return json.dumps(c)
    first, second = {"allow": ALWAYS + "/**"}, {"allow": ELSEWHERE + "/there"}
    whole = text([first, second])
    return [(whole, True), (text([second, first, {"deny": NEVER}]), True),
            (text([first], limits=dict(base.get("limits") or {}, idle_seconds=77)), True),
            (whole[:len(whole) // 2], False), (text(nonsense=1), False),
            (text([first, {"allow": NEVER, "acess": "full"}]), False), ("", False),
            (text([{"allow": ALWAYS}, {"allow": NEVER, "with": {"bearer": "nobody"}}]), False)]


class Probe(threading.Thread):
    """Asks the same again and again, on new connections and on kept ones."""

    def __init__(self, gate, host, path, want):
        super().__init__(daemon=True)
        self.gate, self.host, self.path, self.want = gate, host, path, want
        self.over, self.asked, self.wrong = threading.Event(), 0, []

    def once(self):
        try:
            with self.gate.tls(self.host) as s:
                for _ in range(3):
                    r = s.ask("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (self.path, self.host))
                    self.count(r.status)
        except client.Ended as e:
            self.count(403 if "CONNECT: 403" in str(e) else str(e))
        except ssl.SSLError as e:  # let in by one policy, refused by the next before its handshake
            self.count(403 if e.reason == "TLSV1_UNRECOGNIZED_NAME" else repr(e))
        except OSError as e:
            self.count(repr(e))

    def count(self, got):
        self.asked += 1
        if got != self.want:
            self.wrong.append(got)

    def run(self):
        while not self.over.is_set():
            self.once()


def reload(s, a, command):
    """By the command, which is a process each time, or by what it asks. -> (was it taken, what was said)"""
    if command:
        r = s.d.command("reload", "--socket", s.d.socket)
        return r.returncode == 0, r.stderr
    refused = api.refused(a.ask, "POST", "/v1/reload")
    return refused is None, str(refused)


def empty(t, s, gate):
    """An empty list denies everything (CVE-2025-66479 of another product: it allowed)."""
    c = s.d.config()
    c["policies"]["coder"]["rules"] = []
    s.d.save(json.dumps(c))
    t.eq(s.d.command("reload", "--socket", s.d.socket).returncode, 0, "A28 no rules are a good file")

    def all_denied():
        r, st = gate.connect(ALWAYS + ":443")
        st.close()
        return r.status == 403
    t.ok(tap.wait_for(all_denied, 5), "A28 and an empty list denies everything")


def main(t):
    s = scene.Scene(t)
    origin, other = s.add(ALWAYS, shapes.echo), s.add(ELSEWHERE, shapes.echo)
    capture = s.add(NEVER, shapes.echo)
    s.rules[:] = [{"allow": ALWAYS + "/**"}]
    address = s.listener()
    s.d.serve()
    turns = files(s)
    gate = s.gate(address)
    probes = [Probe(gate, ALWAYS, "/x", 200), Probe(gate, NEVER, "/x", 403),
              Probe(gate, ELSEWHERE, "/", 403)]
    # where the second rule stands a CONNECT is let in, and its other path is refused inside
    [p.start() for p in probes]
    count = 250 if durward.sanitized() else 1000
    answers, a = [], api.Api(s.d.socket)
    for n in range(count):
        text, good = turns[n % len(turns)]
        s.d.save(text)
        taken, said = reload(s, a, n < BY_COMMAND)
        if taken != good:
            answers.append("%d: %s %s" % (n, taken, said))
    a.close()
    [p.over.set() for p in probes]
    [p.join(20) for p in probes]
    t.ok(not answers, "A28 %d reloads, each good file taken and each bad one refused" % count, *answers[:5])
    for p, what in zip(probes, ("served all the time (benign)", "refused all the time",
                                "another path refused all the time")):
        t.ok(p.asked >= count // 10 and not p.wrong, "A28 %s %s, %d probes" % (p.host, what, p.asked),
             *map(str, p.wrong[:5]))
    t.eq((capture.accepted, capture.bytes_in, len(other.requests)), (0, 0, 0),
         "A28 nothing reached what no file allowed")
    t.part(empty, t, s, gate)
    s.judge([(origin, None)], (), "reloads")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
