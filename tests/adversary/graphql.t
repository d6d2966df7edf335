#!/usr/bin/python3 -B
"""Documents made to be read differently by two parsers, against a read-only GraphQL rule: whatever
reached the origin is read once more by graphql-core, and none of it may hold anything but queries."""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scene, tap  # noqa: E402

HOST, ROUNDS, SEED = "graph.example.com", 3000, 20261121
SEEDS = (
    "{a}", "query Q($x:Int=1,$y:[S!]!){a(b:$x,c:[1,2.5e3,\"s\",E,{k:null}]){d ...F}} "
    "fragment F on T @x(y:1){e}", "mutation M{a(b:\"\"\"x \\\"\"\" y\"\"\")}", "subscription{a}",
    "query A{a} mutation B{b}", "{a(b:\"\\\"}\\n mutation{c}\")}", "# mutation{a}\n{a}",
    "{a @include(if:true){b:c}} fragment mutation on query{mutation}",
    "query mutation{a:mutation(b:\"mutation{\")}", "{a(b:\"\"\"} mutation M{b(c:\"\"\")}")
PIECES = ("{", "}", "(", ")", "\"", "\"\"\"", "\\\"", "\\", "#", "\n", "\r", "\r\n", ",", " ", "\t",
          "...", "..", "@", "$", "!", "|", "&", "[", "]", ":", "=", "mutation", "mutation{m}",
          " mutation M{m} ", "subscription", "query", "fragment F on T{a}", "on", "\ufeff", "\u2028",
          "\u0085", "\u00e9", "\x00", "\x0b", "\x7f", "\U0001f600", "\\u0022", "\\u{22}", "\\\"\"\"",
          "0", "-1", "1.5", "null", "extend", "type T{a:B}", "\"d\" ", "'")
# Reads one JSON string a line; says the operations in it, or null where it is no document.
ORACLE = """
import json, sys
from graphql import parse
from graphql.language import OperationDefinitionNode
for line in sys.stdin:
    try:
        doc = parse(json.loads(line))
        print(json.dumps([d.operation.value if isinstance(d, OperationDefinitionNode) else d.kind
                          for d in doc.definitions]))
    except Exception:
        print("null")
"""


def mutated(rng):
    text = rng.choice(SEEDS)
    for _ in range(rng.randint(0, 4)):
        at = rng.randint(0, len(text))
        kind = rng.random()
        if kind < 0.6:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[at + rng.randint(1, 3):]
        else:
            text = text[:at] + rng.choice(SEEDS) + text[at:]
    return text


def oracle(python, texts):
    env = dict(os.environ)
    r = subprocess.run([python, "-c", ORACLE], input="\n".join(map(json.dumps, texts)) + "\n",
                       capture_output=True, text=True, timeout=120, env=env)
    return [json.loads(x) for x in r.stdout.splitlines()], r.stderr


def ask(gate, texts):
    """Each on a kept connection where the gate keeps it."""
    st, passed = None, []
    for text in texts:
        body = json.dumps({"query": text}).encode()
        data = ("POST /graphql HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                "Content-Length: %d\r\n\r\n" % (HOST, len(body))).encode() + body
        st = st or gate.tls(HOST)
        r = st.ask(data, "POST")
        if r.status == 200:
            passed.append(text)
        elif r.code not in ("graphql", "body_ambiguous"):
            raise RuntimeError("%r: %d %s" % (text, r.status, r.code))
        if r.get("connection") == "close" or r.status == 400:
            st.close()
            st = None
    return passed


def main(t):
    python = os.environ.get("DURWARD_PYTHON",
                            os.path.join(durward.clients_dir(), "venv/bin/python"))
    if not os.path.exists(python) or oracle(python, ["{a}"])[0] != [["query"]]:
        raise tap.Skip("graphql-core is not there: run tests/functional/clients/setup")
    s = scene.Scene(t)
    server = s.add(HOST, lambda req, conn: conn.reply(req, 200, b"{}"))
    s.rule(allow=HOST, graphql="read-only")
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    rng = random.Random(SEED)
    texts = list(SEEDS) + [mutated(rng) for _ in range(ROUNDS)]
    passed = ask(gate, texts)
    reached = [r.json()["query"] for r in server.requests]
    t.eq(reached, passed, "what was allowed is what the origin saw")
    read, errors = oracle(python, reached)
    wrong = [(x, ops) for x, ops in zip(reached, read)
             if ops is not None and set(ops) - {"query", "fragment_definition"}]
    t.ok(len(read) == len(reached) and not wrong, "%d of %d documents passed, none with anything but "
         "queries" % (len(reached), len(texts)), errors[-500:], *map(repr, wrong[:5]))
    unread = [x for x, ops in zip(reached, read) if ops is None]
    t.eq(unread, [], "and graphql-core reads every one of them")
    both, _ = oracle(python, texts)
    lost = [x for x, ops in zip(texts, both) if ops and set(ops) <= {"query", "fragment_definition"}
            and "query" in ops and x not in reached]
    t.diag("%d queries that graphql-core reads were refused, e.g. %r" % (len(lost), lost[:3]))
    t.ok(len(reached) > ROUNDS // 50, "enough of them pass to show something")
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main)
