#!/usr/bin/python3 -B
"""Who asks is told by the listener alone: not by a relay inside, nor by a source address, nor by another
sandbox (A5, D13, D22, D24); and gates share neither upstream connections nor leaf keys (B26, E11)."""
import itertools
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import durward, scene, shapes, tap  # noqa: E402

ONE, TWO, EVIL = "one.example.com", "two.example.com", "evil.example.com"

SOURCES = r"""
import json, socket, ssl
found = []
for source in ("10.99.99.99", "127.0.0.9", "93.184.216.34", "198.18.0.1"):
    for path in ("/user", "/gists"):
        try:
            s = socket.socket()
            s.settimeout(5)
            s.bind((source, 0))
            s.connect(("api.github.com", 443))
            t = ssl.create_default_context().wrap_socket(s, server_hostname="api.github.com")
            t.sendall(("GET %s HTTP/1.1\r\nHost: api.github.com\r\n\r\n" % path).encode())
            found.append([source, path, int(t.recv(4096).split(b" ")[1])])
        except OSError as e:
            found.append([source, path, repr(e)])
print(json.dumps(found))
"""

STRANGERS = r"""
import json, socket
found = []
for family, kind, to in ((2, 2, "224.0.0.1"), (2, 2, "255.255.255.255"), (2, 2, "10.255.255.255"),
                         (10, 2, "ff02::1"), (2, 1, "224.0.0.1"), (2, 1, "255.255.255.255"),
                         (2, 1, "10.1.2.3"), (2, 1, "127.0.0.1")):
    try:
        s = socket.socket(family, kind)
        s.settimeout(0.7)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.connect((to, 3000))
        s.send(b"hello")
        found.append([to, kind, s.recv(100).decode("latin-1")])
    except OSError as e:
        found.append([to, kind, None])
print(json.dumps(found))
"""

SERVER = r"""
import socket
s = socket.create_server(("0.0.0.0", 3000))
print("ready", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b"other-sandbox")
    c.close()
"""


def python(box, text):
    status, out, err = box.sh("/usr/bin/python3 -", stdin=text, timeout=60)
    if status != 0:
        raise RuntimeError(err)
    return json.loads(out)


def relayed(t, s, box, origins):
    """The matrix of one destination once more, through a relay inside."""
    status, out, err = box.sh("/usr/bin/python3 %s/relay.py 8888 %s 443 >/tmp/relay 2>&1 & "
                              "for i in $(seq 50); do grep -q ready /tmp/relay && break; sleep 0.1; done; "
                              "cat /tmp/relay" % (durward.INSIDE, ONE))
    t.has(out, "ready", "A5 a relay runs inside")
    cases = [{"to": ("127.0.0.1", 8888), "connect": c, "sni": n, "form": None, "host": h, "tls": True}
             for c, n, h in itertools.product((None, ONE, EVIL), (None, ONE, TWO, EVIL), (ONE, TWO, EVIL))]
    before = {n: len(o.requests) for n, o in origins.items()}
    status, out, err = box.sh("/usr/bin/python3 %s/authority.py" % durward.INSIDE,
                              stdin=json.dumps(cases), timeout=60)
    got = json.loads(out)

    def right(m, g):
        if m["connect"]:
            return g == ["reply", 405, "connect_inside"]
        if m["sni"] not in (None, ONE):
            return g[0] == "alert"
        return g == (["reply", 200, None] if m["host"] == ONE else ["reply", 421, "authority_mismatch"])
    wrong = [(m, g) for m, g in zip(cases, got) if not right(m, g)]
    t.ok(len(got) == len(cases) and not wrong, "A5 %d cases through it, each as without it" % len(cases),
         *[str(w) for w in wrong[:5]])
    t.eq({n: len(o.requests) - before[n] for n, o in origins.items()}, {ONE: 2, TWO: 0},
         "A5 and only what names the one host arrived")


def addresses(t, box):
    got = python(box, SOURCES)
    want = [[a, p, {"/user": 200, "/gists": 403}[p]] for a, p, _ in got]
    t.eq(got, want, "D22 whatever source address: the same policy")


def strangers(t, s, box):
    """Another sandbox, and a server in it, cannot be reached from the first."""
    other = durward.Sandbox(s.d)
    status, out, _ = other.sh(
        "/usr/bin/python3 -c '%s' >/tmp/server 2>&1 & "
        "for i in $(seq 50); do grep -q ready /tmp/server && break; sleep 0.1; done; "
        "/usr/bin/python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\", 3000))"
        ".recv(100).decode())'" % SERVER)
    t.has(out, "other-sandbox", "D24 a server in another sandbox serves there")
    got = python(box, STRANGERS)
    t.ok(all(g[2] is None or not g[2] for g in got if g[1] == 2), "D13 no multicast, no broadcast",
         str(got))
    t.ok(not [g for g in got if g[2] and "other" in g[2]], "D24 nothing of another sandbox can be reached",
         str(got))
    other.close()


def public_key(der):
    r = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-pubkey"], input=der,
                       stdout=subprocess.PIPE, check=True)
    return r.stdout


def gates(t):
    """Two listeners of one daemon: a gate each."""
    s = scene.Scene(t)
    tagged = s.add("tagged.example.com", lambda q, c: c.reply(q, 200, {"connection": c.id,
                                                                       "tag": q.get("x-tag")}))
    s.rule(allow="tagged.example.com/plain")
    s.rule(allow="tagged.example.com/keyed", **{"with": {"bearer": "openai"}})
    s.d.policy("other", [{"allow": "tagged.example.com/plain"},
                         {"allow": "tagged.example.com/keyed", "with": {"bearer": "openai"}}])
    first, second = s.listener(), s.listener("other")
    s.d.serve()
    used, keys, crossed = {}, {}, 0
    for _ in range(20):
        for where, path in itertools.product((first, second), ("/plain", "/keyed")):
            tag = "%s%s" % (where, path)
            with s.gate(where).tls("tagged.example.com") as st:
                keys.setdefault(where, set()).add(public_key(st.sock.getpeercert(True)))
                r = st.ask("GET %s HTTP/1.1\r\nHost: tagged.example.com\r\nX-Tag: %s\r\n\r\n" % (path, tag))
            got = json.loads(r.body)
            crossed += got["tag"] != tag
            used.setdefault(tag, set()).add(got["connection"])
    t.eq(crossed, 0, "B26 no reply is another's")
    shared = [(a, b) for a, b in itertools.combinations(used, 2) if used[a] & used[b]]
    t.ok(not shared and all(len(u) < 20 for u in used.values()),
         "B26 no upstream connection serves two policies, or two credentials; each is used again",
         str(used), str(shared))
    t.ok(len(keys[first]) == len(keys[second]) == 1 and not keys[first] & keys[second],
         "E11 each gate has a leaf key of its own", str({k: len(v) for k, v in keys.items()}))
    s.judge([(tagged, None)], (), "gates")
    t.eq(s.d.stop(), 0, "the daemon ends well")


def main(t):
    gates(t)
    s = Second(t)
    origins = {n: s.add(n, shapes.echo) for n in (ONE, TWO)}
    for n in origins:
        s.rule(allow=n)
    box = durward.Sandbox(s.d)
    t.part(relayed, t, s, box, origins)
    t.part(addresses, t, box)
    t.part(strangers, t, s, box)
    box.close()
    s.clean((), "relayed")


class Second(scene.Scene):
    """A scene of its own beside the first."""

    def __init__(self, test):
        real = durward.Durward
        scene.Durward = lambda t, _name, owner=None: real(t, "d2", owner)
        try:
            super().__init__(test)
        finally:
            scene.Durward = real


tap.run(main, timeout=120)
