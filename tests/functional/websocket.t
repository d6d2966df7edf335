#!/usr/bin/python3 -B
"""WebSockets with real peers on both sides: `websockets` (Python) and `ws` (Node) as clients in a
sandbox and as servers, with and without a credential: text, binary, fragments, one message of
100 MB each way, ping and pong, close codes, sub-protocols, several at once; what the audit says."""
import json
import os
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
BIG = 100 << 20
WANT = {"protocol": "chat.v1", "extensions": None, "text": "zażółć gęślą jaźń", "binary": True,
        "fragmented": "fragmented \u20ac", "empty": "", "pong": True, "pinged": "ponged",
        "small": 300, "closed": [4001, "done here"], "no_protocol": None,
        "server_closed": [4002, "go away"], "cut": True, "many": 20}


class Peer:
    """A WebSocket server process and what it said of each connection."""

    def __init__(self, t, s, host, argv):
        cert, key = s.d.ca.issue(host)
        self.names, self.lines = [host], []
        self.process = t.popen(argv + [cert, key], stdout=subprocess.PIPE)
        self.address = "127.0.0.1:%d" % json.loads(self.process.stdout.readline())["port"]
        threading.Thread(target=self.read, daemon=True).start()
        s.d.origin(host, self)

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def opened(self):
        return [x for x in self.lines if x["event"] == "open"]

    records = opened  # as many as admitted requests


def judge(t, name, got, secret, big):
    if not t.ok(isinstance(got, dict), name + ": the client ran", str(got)):
        return
    for key, want in WANT.items():
        t.eq(got.get(key), want, "%s: %s" % (name, key))
    if big:
        t.ok(got.get("big_up") and got.get("big_down"), name + ": one message of 100 MB each way",
             str(got.get("big_up")), str(got.get("big_down")))
    seen = got.get("reflected")
    if secret:
        hidden = "[REDACTED:socket]"
        t.ok(seen.startswith("Bearer " + hidden[:len(secret)]) and secret not in seen and
             len(seen) == len(secret) + 7, name + ": a reflected secret is taken out, same length",
             seen)
    else:
        t.eq(seen, "none", name + ": no credential")


def audit(t, d, host, name):
    """Of one host: opened once for each admitted, ends with counts and the close code."""
    mine = {r["id"] for r in d.kinds("admitted", authority=host)}
    opened = [r for r in d.kinds("opened") if r["id"] in mine]
    ends = [r for r in d.kinds("completed") + d.kinds("aborted") if r["id"] in mine]
    t.ok(mine and sorted(r["id"] for r in opened) == sorted(mine), name + ": each has one `opened`",
         "%d of %d" % (len(opened), len(mine)))
    basics = [r for r in ends if r.get("close") == 4001]
    t.ok(basics and all(r["kind"] == "completed" and r["messages_up"] >= 305 and
                        r["messages_down"] >= 305 and r["bytes_up"] > 65536 and r["status"] == 101
                        for r in basics), name + ": its end says code, messages and bytes", str(basics))
    t.ok(any(r.get("close") == 4002 for r in ends), name + ": the server's code is in the record")
    cut = [r for r in ends if r["kind"] == "aborted"]
    t.ok(cut and all("close" not in r for r in cut), name + ": a cut one is `aborted`, without a code",
         str(cut))


def main(t):
    folder = durward.clients_dir()
    python = os.path.join(folder, "venv/bin/python")
    modules = os.path.join(folder, "node_modules")
    if not os.path.exists(os.path.join(modules, "ws")) or not shutil.which("node"):
        raise tap.Skip("the client libraries are not there: run tests/functional/clients/setup")
    s = scene.Scene(t)
    secret = scan.canary("sock_")
    s.scanner.add("socket", secret)
    s.d.secret("socket", secret)
    servers = {"websockets": [python, os.path.join(PEERS, "websocket_server.py")],
               "ws": ["node", os.path.join(PEERS, "websocket_server.mjs"), modules]}
    clients = {"websockets": "%s %s/ws_client.py" % (python, durward.INSIDE),
               "ws": "node %s/ws_client.mjs" % durward.INSIDE}
    peers = {}
    for kind, argv in servers.items():
        for keyed in (False, True):
            host = "%s-%s.example.com" % (kind, "keyed" if keyed else "plain")
            peers[kind, keyed] = Peer(t, s, host, argv)
            more = {"with": {"bearer": "socket"}} if keyed else {}
            s.rule(allow=host, websocket=True, **more)
    shut = Peer(t, s, "shut.example.com", servers["websockets"])
    s.rule(allow="shut.example.com")
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "node_modules"))
    outputs = []
    for (server, keyed), peer in peers.items():
        for client, command in clients.items():
            name = "%s to %s%s" % (client, server, " with a credential" if keyed else "")
            big = BIG if client == server else 0
            status, out, err = box.sh("%s wss://%s/chat %d %s" % (command, peer.names[0], big, modules),
                                      timeout=60)
            outputs += [out, err]
            t.part(judge, t, name, json.loads(out) if status == 0 else err,
                   secret.decode() if keyed else None, big)
        want = "Bearer " + secret.decode() if keyed else None
        o = peer.opened()
        t.ok(o and all(x["authorization"] == want for x in o),
             "%s: the credential is in the handshake, %s" % (peer.names[0], keyed), str(o[:1])[:60])
        t.ok(all(x["offered"] is None for x in o), peer.names[0] + ": no extension is ever offered")
        tap.wait_for(lambda p=peer: len(p.lines) == 2 * len(p.opened()), 3)
        t.ok(sum(x.get("code") == 4001 and x.get("reason") == "done here" for x in peer.lines) == 2,
             peer.names[0] + ": the server got the client's code and reason")
    status, out, err = box.sh("%s wss://shut.example.com/ 0" % clients["websockets"])
    refused = (json.loads(out) if status == 0 else {}).get("refused") or [err, ""]
    t.ok(refused[0] == 403 and refused[1].startswith("websocket "), "a rule without `websocket`: 403",
         str(refused))
    t.eq(shut.opened(), [], "and nothing at its origin")
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    s.judge([(p, None) for p in peers.values()], outputs, "WebSocket")
    for peer in peers.values():
        t.part(audit, t, s.d, peer.names[0], peer.names[0])


tap.run(main, timeout=180)
