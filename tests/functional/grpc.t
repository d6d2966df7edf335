#!/usr/bin/python3 -B
"""gRPC inside a sandbox: grpcio (Python) and grpc-go as clients of a real server, transparent and with
the proxy variables, with and without a credential: each kind of call with its trailers, errors,
deadlines, cancelling."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, peer, scan, scene, tap  # noqa: E402

PLAIN, KEYED, PACKED = "grpc.example.com", "keyed-grpc.example.com", "packed-keyed.example.com"
WANT = {"unary": "hello", "first": "head", "last": "trailer", "binary": "00ff01", "empty": True,
        "big": True, "server": 20, "client": True, "bidi": 50,
        "fail": ["INVALID_ARGUMENT", "no such door: \u20ac 100%", "trailer"],
        "deadline": ["DEADLINE_EXCEEDED", True], "cancel": "waiting", "cancelled": "CANCELLED",
        "many": 200, "denied": "PERMISSION_DENIED"}


def judge(t, name, status, out, err):
    try:
        got = json.loads(out)
    except ValueError:
        t.ok(False, name + ": the client ran", str(status), out, err)
        return {}
    t.eq(status, 0, name + ": the client ends well") or t.diag(out + err)
    for key, want in WANT.items():
        t.eq(got.get(key), want, "%s: %s" % (name, key))
    t.ok(0.1 < got.get("spread", 0) < 5, name + ": messages come one by one", str(got.get("spread")))
    return got


def main(t):
    folder = durward.clients_dir()
    python, go = folder + "/venv/bin/python", folder + "/bin/grpcclient"
    if not os.path.exists(python):
        raise tap.Skip("the client libraries are not there: run tests/functional/clients/setup")
    s = scene.Scene(t)
    secret = s.openai_secret.decode()
    servers = {h: peer.Peer(t, s, h, [python, peer.path("grpc_server.py")]) for h in (PLAIN, KEYED)}
    packed = peer.Peer(t, s, PACKED, [python, peer.path("grpc_server.py")], ["gzip"])
    s.rule(allow=PLAIN + "/durward.test.Door/*")
    for host in (KEYED, PACKED):
        s.rule(allow=host + "/durward.test.Door/*", **{"with": {"bearer": "openai"}})
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "bin"))
    outputs = []
    for client, argv in (("grpcio", "%s %s/grpc_client.py" % (python, durward.INSIDE)), ("grpc-go", go)):
        if client == "grpc-go" and not os.path.exists(go):
            t.skip("grpc-go", "it was not built: is Go installed?")
            continue
        for proxy in (False, True):
            for host in (PLAIN, KEYED):
                name = "%s, %s, %s" % (client, "with proxy variables" if proxy else "transparent", host)
                status, out, err = box.sh("%s %s" % (argv, host), proxy=proxy, timeout=60)
                outputs += [out, err]
                got = judge(t, name, status, out, err)
                seen = got.get("reflect", "")
                if host == PLAIN:
                    t.eq(seen, "none", name + ": no credential")
                else:
                    t.ok(seen.startswith("Bearer ") and "REDACTED" in seen and secret not in seen and
                         len(seen) == len(secret) + 7, name + ": a reflected secret is taken out", seen)
    for host, server in servers.items():
        calls = [x for x in server.lines if x["event"] == "call"]
        want = "Bearer " + secret if host == KEYED else None
        wrong = [x for x in calls if x["authorization"] != want]
        t.ok(calls and not wrong, "%s: the right credential, or none, in each of %d calls" % (
            host, len(calls)), *[str(x["method"]) for x in wrong[:5]])
        t.ok(all(x["mark"] == "one" and x["binary"] == "00fe" for x in calls
                 if x["mark"] or x["binary"]) and any(x["mark"] for x in calls), host + ": metadata")
        t.ok(all(x["left"] is not None and x["left"] < 1 for x in calls if x["method"] == "Wait"
                 and x["left"] and x["left"] < 10), host + ": the deadline reaches the server")
        waits = sum(x["method"] == "Wait" for x in calls)
        tap.wait_for(lambda: server.count("cancelled") == waits, 20)
        t.eq(server.count("cancelled"), waits, host + ": each call given up was cancelled at the server")
    t.part(compressed, t, box, python, packed, outputs)
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    denied = {(x["code"], x.get("detail")) for x in s.d.kinds("denied") if x["code"] != "no_rule"}
    t.ok(not denied, "nothing was refused but what no rule allows", *map(str, sorted(denied, key=str)))
    s.d.check_pairs(t, [sum(x["event"] == "call" for x in p.lines)
                        for p in list(servers.values()) + [packed]], "gRPC", exact=False)
    s.clean(outputs, "gRPC")


def compressed(t, box, python, server, outputs):
    """Messages that the server packs could hide the secret from the search for it (attack C13)."""
    status, out, err = box.sh("%s %s/grpc_client.py %s reflect" % (python, durward.INSIDE, PACKED))
    outputs += [out, err]
    t.eq(server.count("call"), 1, "a server that packs its messages was asked")
    t.ok(status != 0 and "UNAVAILABLE" in err and "cannot_scrub" in err, "and its reply is 502, of which gRPC shows the words",
         out, err)


tap.run(main, timeout=240)
