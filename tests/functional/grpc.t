#!/usr/bin/python3 -B
"""gRPC inside a sandbox: grpcio (Python) and grpc-go as clients of a real server, within TLS and in clear (an insecure
channel: HTTP/2 by prior knowledge), transparent and with the proxy variables, with and without a credential: each kind of call with its trailers, errors,
deadlines, cancelling."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, peer, scan, scene, shapes, tap  # noqa: E402

PLAIN, KEYED, PACKED = "grpc.example.com", "keyed-grpc.example.com", "packed-keyed.example.com"
CLEAR, KEYED_CLEAR, OLD = "collector.example.com:4317", "keyed-collector.example.com:4317", "old.example.com:4317"
SERVED = (PLAIN, KEYED, CLEAR, KEYED_CLEAR)
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
    servers = {h: peer.Peer(t, s, h, [python, peer.path("grpc_server.py")], ["clear"] if ":" in h else ()) for h in SERVED}
    packed = peer.Peer(t, s, PACKED, [python, peer.path("grpc_server.py")], ["gzip"])
    s.rule(allow=PLAIN + "/durward.test.Door/*")
    s.rule(allow="http://" + CLEAR + "/durward.test.Door/*")
    s.rule(allow="http://" + KEYED_CLEAR + "/durward.test.Door/*", allow_plaintext=True, **{"with": {"bearer": "openai"}})
    old = s.add(OLD, shapes.echo, tls=False)
    s.rule(allow="http://" + OLD)
    for host in (KEYED, PACKED):
        s.rule(allow=host + "/durward.test.Door/*", **{"with": {"bearer": "openai"}})
    box = durward.Sandbox(s.d, binds=durward.client_binds("venv", "bin"))
    outputs = []
    for client, argv in (("grpcio", "%s %s/grpc_client.py" % (python, durward.INSIDE)), ("grpc-go", go)):
        if client == "grpc-go" and not os.path.exists(go):
            t.skip("grpc-go", "it was not built: is Go installed?")
            continue
        for proxy in (False, True):
            for host in SERVED:
                name = "%s, %s, %s" % (client, "with proxy variables" if proxy else "transparent", host)
                status, out, err = box.sh("%s %s" % (argv, host), proxy=proxy, timeout=60)
                outputs += [out, err]
                got = judge(t, name, status, out, err)
                seen = got.get("reflect", "")
                if host in (PLAIN, CLEAR):
                    t.eq(seen, "none", name + ": no credential")
                else:
                    t.ok(seen.startswith("Bearer ") and "REDACTED" in seen and secret not in seen and
                         len(seen) == len(secret) + 7, name + ": a reflected secret is taken out", seen)
    for host, server in servers.items():
        calls = [x for x in server.lines if x["event"] == "call"]
        want = "Bearer " + secret if host in (KEYED, KEYED_CLEAR) else None
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
    t.part(recorded, t, s)
    t.part(no_http2, t, box, python, old, outputs)
    scan.scan_sandbox(t, box, s.scanner)
    outputs.append(box.close()[1])
    denied = {(x["code"], x.get("detail")) for x in s.d.kinds("denied") if x["code"] != "no_rule"}
    t.ok(not denied, "nothing was refused but what no rule allows", *map(str, sorted(denied, key=str)))
    s.d.check_pairs(t, [sum(x["event"] == "call" for x in p.lines)
                        for p in list(servers.values()) + [packed]], "gRPC", exact=False)
    s.clean(outputs, "gRPC")


def recorded(t, s):
    """What was refused is in the log as any request is, in clear too; what was carried says how."""
    refused = {(x.get("scheme"), x.get("authority")) for x in s.d.kinds("denied") if x.get("path") == "/durward.test.Closed/Unary"}
    t.eq(refused, {("http" if ":" in h else "https", h) for h in SERVED}, "each refused call has its record")
    ends = {x.get("protocol") for x in s.d.kinds("completed")}
    t.eq(ends, {"h2"}, "and every one that ended well went by HTTP/2")


def no_http2(t, box, python, old, outputs):
    status, out, err = box.sh("%s %s/grpc_client.py %s reflect" % (python, durward.INSIDE, OLD))
    outputs += [out, err]
    t.ok(status != 0 and "UNAVAILABLE" in err and "upstream_no_h2" in err,
         "a server that speaks HTTP/1.1 only: gRPC shows the words of a 502 upstream_no_h2", out, err)
    t.eq([q.target for q in old.requests if b"Door" in q.raw], [], "and nothing of it reached that server")


def compressed(t, box, python, server, outputs):
    """Messages that the server packs could hide the secret from the search for it (attack C13)."""
    status, out, err = box.sh("%s %s/grpc_client.py %s reflect" % (python, durward.INSIDE, PACKED))
    outputs += [out, err]
    t.eq(tap.wait_for(lambda: server.count("call"), 10), 1, "a server that packs its messages was asked")
    t.ok(status != 0 and "UNAVAILABLE" in err and "cannot_scrub" in err, "and its reply is 502, of which gRPC shows the words",
         out, err)


tap.run(main, timeout=360)
