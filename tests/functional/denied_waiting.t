#!/usr/bin/python3 -B
"""A request that is denied while something is owed to it: the inspection of its body is not over, or the dialer has
not said yet whether its budget has room. One refusal, one record, nothing at the origin, and what was held or
granted is there for the next."""
import json
import os
import select
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, origin, scene, shapes, tap  # noqa: E402

PLAIN, KEYED = "inspected.example.com", "keyed.example.com"
BEGUN = b'{"query":"{a}"'  # and no end of it: the inspection goes on
FEW = 3


def rules(s, host, key):
    s.rule(allow=host, **key)
    s.rule(allow=host + "/graphql", graphql="read-only", **key)
    s.rule(allow=host + "/few/**", budget={"requests": "%d/h" % FEW}, **key)
    s.rule(deny=host + "/**", methods=["DELETE"])


def seen(server, path):
    return [r for r in server.requests if r.path == path]


def begun(st, host, more=b""):
    st.send("POST /graphql HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n"
            % host)
    st.send(BEGUN + more)


def reads_on(t, gate, host, server, before):
    whole = json.dumps({"query": "{a}"})
    with gate.tls(host) as st:
        r = st.ask("POST /graphql HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                   % (host, len(whole), whole))
    t.eq((r.status, len(seen(server, "/graphql")) - before), (200, 1), "%s: the next is read, and goes on alone" % host)


def refused(t, s, gate, host, server):
    before = len(seen(server, "/graphql"))
    with gate.tls(host) as st:
        begun(st, host, b',"_method":"DELETE"')
        answered = bool(select.select([st.sock], [], [], 5)[0])
        r = st.reply() if answered else None
    if not t.ok(r and (r.status, r.code) == (403, "method_override"),
                "%s: another method in a body that is still read is refused" % host, r and r.raw):
        return
    t.eq(len(s.d.wait_records(1, "denied", code="method_override", id=r.id)), 1, "%s: one record of it" % host)
    reads_on(t, gate, host, server, before)


def left(t, s, gate, host, server):
    before = len(seen(server, "/graphql"))
    had = len(s.d.records(kind="denied", path="/graphql", authority=host))
    with gate.tls(host) as st:
        begun(st, host)
        early = select.select([st.sock], [], [], 0.3)[0] if host == KEYED else ()
    got = s.d.wait_records(had + 1, "denied", path="/graphql", authority=host)
    t.eq((list(early), len(got)), ([], had + 1), "%s: who leaves while a body is still read has one record" % host)
    reads_on(t, gate, host, server, before)


def budget(t, s, gate, host, server):
    (dialer,) = [r["pid"] for r in s.api.ask("GET", "/v1/status")["roles"] if r["role"] == "dialer"]
    os.kill(dialer, signal.SIGSTOP)
    try:
        with gate.tls(host) as st:
            st.send("GET /few/x HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            early = select.select([st.sock], [], [], 0.5)[0]
        gone = s.d.wait_records(1, "denied", path="/few/x", authority=host)
    finally:
        os.kill(dialer, signal.SIGCONT)
    t.ok(not early, "%s: nothing is answered before the dialer has spoken" % host)
    t.eq((len(gone), len(seen(server, "/few/x"))), (1, 0), "%s: who leaves meanwhile has a record, and asked no origin" % host)
    got = [gate.get(host, "/few/y").status for _ in range(FEW + 1)]
    t.ok(got[-1] == 429 and got.count(200) in (FEW - 1, FEW), "%s: the budget is as it was, or counts it once" % host, repr(got))
    t.eq(gate.get(host, "/free").status, 200, "%s: and what has none is served" % host)


def main(t):
    s = scene.Scene(t)
    key = {"with": {"bearer": "openai"}}
    plain = s.add(PLAIN, shapes.echo)
    keyed = s.add(KEYED, origin.needs(("Authorization", "Bearer " + s.openai_secret.decode()), shapes.echo))
    rules(s, PLAIN, {})
    rules(s, KEYED, key)
    address = s.listener()
    s.d.serve()
    gate, s.api = s.gate(address, timeout=10), api.Api(s.d.socket)
    t.cleanup(s.api.close)
    for host, server in ((PLAIN, plain), (KEYED, keyed)):
        if host == PLAIN:  # with a credential it is the injector that looks for it, behind the inspection
            t.part(refused, t, s, gate, host, server)
        t.part(left, t, s, gate, host, server)
        t.part(budget, t, s, gate, host, server)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
