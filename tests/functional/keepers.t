#!/usr/bin/python3 -B
"""durward-kubernetes at an API server that is slow, large or half broken, which a real one is not when it is asked to be: a
stand-in takes its place. With a real one: tests/functional/kubernetes.t."""
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, origin, tap, wire  # noqa: E402

API = "/apis/durward.internal/v1alpha1/"
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(durward.program())), "libexec/durward/durward-kubernetes")
CONFIG = {"version": 1, "policies": {"own": {"rules": []}}, "node": {"unbound": ["kube-system"]}}


def listed(items, version="1", **more):
    return {"metadata": dict({"resourceVersion": version}, **more), "items": items}


def binding(name, policy, *namespaces):
    return {"metadata": {"name": name, "generation": 1, "creationTimestamp": name}, "spec": {"policy": policy, "namespaces": list(namespaces)}}


class Server:
    """What a cluster's API server says of these objects; pods: a list, or a number: this status. tell(): an event for all who watch."""

    def __init__(self, t, d, policies, bindings, pods):
        self.objects = {"policies": policies, "policybindings": bindings}
        self.pods, self.told, self.pages, self.events, self.hung = pods, {}, [], [], threading.Event()
        self.release, self.daemons, self.nodes = threading.Event(), [], []
        self.signs, self.said = {"daemonsets": 200, "rolebindings": 200}, {"daemonsets": [], "rolebindings": []}
        self.followed, self.streams, self.missing, self.flood, self.newer = 0, {}, set(), set(), {}
        self.space = {}
        t.cleanup(self.release.set)
        self.origin = origin.Origin(t, d.ca, "localhost", self.answer)
        self.token, self.ca, self.uid = t.write("token", "t0ken"), d.ca.pem, "d-1"

    def start(self, t, verb, *more):
        log = open(t.path(verb + ".log"), "ab")
        p = t.popen([PROGRAM, verb, "-c", t.path("durward.json"), "--api", "localhost:%d" % self.origin.port, "--ca", self.ca, "--token",
                     self.token] + list(more), stdout=log, stderr=log)
        log.close()
        return p

    def answer(self, req, conn):
        conn.close_after = True
        query = dict(urllib.parse.parse_qsl(req.query))
        kind = req.path[len(API):].split("/")[0] if req.path.startswith(API) else None
        last = req.path.split("/")[-1]
        if "watch" in query and last in self.signs:
            self.follow(conn, self.said[last])
        elif "watch" in query:
            self.stream(conn, "daemons" if "labelSelector" in query else req.path.split("/")[-1])
        elif req.method == "PATCH" and self.missing & set(req.path.split("/")):
            conn.reply(req, 404, {"message": "not found"})
        elif req.method == "PATCH" and req.path.startswith("/api/v1/nodes/"):
            name = req.path.split("/")[-1]
            self.told[name] = req.json()
            conn.reply(req, 200, {"metadata": {"name": name, "labels": {k: v for k, v in req.json()["metadata"]["labels"].items() if v}}})
        elif req.method == "PATCH":
            self.told.setdefault(req.path[len(API):], []).append(req.json()["status"])
            one = [x for x in self.objects[kind] if x["metadata"]["name"] == req.path.split("/")[-2]][0]
            one.update(self.newer.pop(one["metadata"]["name"], {}))
            one["status"] = dict(one.get("status", {}), **req.json()["status"])
            conn.reply(req, 200, one)
        elif kind:
            self.part(req, conn, query, self.objects[kind])
        elif req.path.endswith("/events"):
            self.events.append(req.json())
            if self.hung.is_set():
                self.release.wait(60)
            conn.reply(req, 201, {})
        elif req.path == "/api/v1/nodes":
            self.part(req, conn, query, self.nodes)
        elif req.path.endswith("/daemonsets"):
            conn.reply(req, 200, listed([{"metadata": {"name": "durward-node", "namespace": "durward-node", "uid": self.uid}}]))
        elif req.path == "/api/v1/namespaces/durward-node":
            conn.reply(req, 200, {"metadata": self.space})
        elif req.path.split("/")[-2] in self.signs:
            conn.reply(req, self.signs[req.path.split("/")[-2]], {"metadata": {"uid": self.uid}})
        elif "labelSelector" in query:
            self.part(req, conn, query, self.daemons)
        elif req.path.endswith("/pods"):
            self.page(req, conn, query)
        else:
            conn.reply(req, 200, {"metadata": {"uid": "u-1", "labels": {"a": "b"}}, "spec": {"serviceAccountName": "default"}})

    def follow(self, conn, said):
        """What becomes of the DaemonSet, or of its rights, as it comes to be said."""
        conn.head(200)
        self.followed += 1
        at = 0
        while not self.release.wait(0.02):
            for kind, more in said[at:]:
                conn.send(json.dumps({"type": kind, "object": {"metadata": dict({"name": "durward-node"}, **more)}}).encode() + b"\n")
                at += 1

    def tell(self, kind, *events):
        """Texts, or (type, object): of policies, policybindings, pods, nodes, daemons."""
        self.streams.setdefault(kind, []).extend(x if isinstance(x, str) else json.dumps({"type": x[0], "object": x[1]}) for x in events)

    def stream(self, conn, kind):
        """What is told from here on; a text END ends it."""
        at = len(self.streams.setdefault(kind, []))
        conn.head(200)
        if kind in self.flood:
            conn.send(b"{" + b" " * (17 << 20))
            return
        while not self.release.wait(0.01):
            for text in self.streams[kind][at:]:
                at += 1
                if text == "END":
                    return
                conn.send(text.encode() + b"\n")

    def page(self, req, conn, query):
        if isinstance(self.pods, int):
            conn.reply(req, self.pods, {"message": "no list of pods"})
        else:
            self.part(req, conn, query, self.pods)

    def part(self, req, conn, query, items):
        at, limit = int(query.get("continue", "0")), int(query.get("limit", "1000000"))
        self.pages.append((req.path, at, limit))
        part = items[at:at + limit]
        text = json.dumps(listed(part, **({"continue": str(at + limit)} if at + limit < len(items) else {})))
        large = sum(x["metadata"].get("namespace") == "large" for x in part)
        conn.reply(req, 200, text + " " * (17 << 20) if large > 100 else text)


def pod(ns, i):
    return {"metadata": {"namespace": ns, "name": "p%d" % i}, "spec": {"nodeName": "n%d" % (i % 3)}, "status": {"phase": "Running"}}


def counts(t, d):
    """Pods by pages, however large, and then as they come and go; where they cannot be listed no count is said."""
    policies = [{"metadata": {"name": x, "generation": 7}, "spec": {"rules": []}} for x in ("p", "q")]
    s = Server(t, d, policies, [binding("many", "p", "many", "other"), binding("large", "q", "large")],
               [pod("many", i) for i in range(1203)] + [pod("other", 0)] + [pod("large", i) for i in range(130)])
    p = s.start(t, "status", "--every", "1")
    told = lambda path: s.told.get(path + "/status", [{}])[-1]  # noqa: E731
    t.ok(tap.wait_for(lambda: all(told("policybindings/" + x).get("accepted") for x in ("many", "large")), 20, 0.05), "each object is told what became of it", str(s.told)[:500])
    many = told("policybindings/many")
    t.eq((many.get("pods"), many.get("nodes"), len(many.get("some", []))), (1204, 3, 20), "1,204 pods of two namespaces are counted")
    t.eq([x[1:] for x in s.pages if x[0] == "/api/v1/pods"][:3], [(0, 500), (500, 500), (1000, 500)], "a page of 500 at a time")
    t.eq(told("policybindings/large").get("pods"), 130, "pods that are large are listed in smaller pages")
    t.eq([told("policies/" + x).get("pods") for x in ("p", "q")], [1204, 130], "policies have the counts of their bindings")
    t.eq((told("policies/p").get("observedGeneration"), told("policies/p").get("bindings")), (7, 1), "of which version is said with it")
    listings, wrote = len(s.pages), len(s.told["policybindings/many/status"])
    at = lambda version, x, **more: {"metadata": dict(x["metadata"], resourceVersion=str(version)), "spec": x["spec"], "status": dict(x["status"], **more)}  # noqa: E731
    s.tell("pods", ("ADDED", at(2, pod("other", 1))), ("MODIFIED", at(3, pod("many", 0), conditions=[])), ("DELETED", at(4, pod("many", 1))),
           ("DELETED", at(5, pod("many", 2))), ("MODIFIED", at(6, pod("many", 3), phase="Failed")), ("BOOKMARK", {"metadata": {"resourceVersion": "9"}}))
    t.ok(tap.wait_for(lambda: told("policybindings/many").get("pods") == 1202, 10, 0.05), "pods that come, end and go are counted as they do", str(told("policybindings/many"))[:200])
    t.ok(len(s.pages) == listings and len(s.told["policybindings/many/status"]) <= wrote + 2, "nothing is listed anew for that, and the status is not written for each")
    s.tell("pods", "END")
    t.ok(tap.wait_for(lambda: any("resourceVersion=9" in (r.query or "") for r in s.origin.requests), 10, 0.05), "a watch that ends is begun again where it was")
    t.eq(len(s.pages), listings, "without a list")
    for what, event in (("a watch that says that it is too old", ("ERROR", {"kind": "Status", "code": 410})), ("one that nobody can read", "{\"type\"")):
        had = len(s.pages)
        s.pods.append(pod("other", had))
        s.tell("pods", event)
        t.ok(tap.wait_for(lambda: len(s.pages) > had and told("policybindings/many").get("pods") == 1205 + (what[0] == "o"), 15, 0.05),
             "after %s all is listed again" % what, str(told("policybindings/many"))[:100])
    p.kill()
    s = Server(t, d, policies[:1], [dict(x, spec=dict(x["spec"], labels={"a": "b"})) for x in (binding("c%d" % i, "p", "n") for i in range(40))], [])
    p = s.start(t, "status", "--every", "3")
    said = lambda: sum(told("policybindings/c%d" % i).get("pods", 0) for i in range(40))  # noqa: E731
    tap.wait_for(lambda: all(told("policybindings/c%d" % i) for i in range(40)), 10, 0.02)
    one = pod("n", 0)
    one["metadata"]["labels"] = {"a": "b"}
    s.tell("pods", ("ADDED", at(2, one)))
    tap.wait_for(lambda: said() >= 31, 10, 0.02)
    t.ok(not tap.wait_for(lambda: said() > 31, 1.5, 0.02), "of 40 statuses that say another number of pods, and their policy, 32 are written at once", said())
    t.ok(tap.wait_for(lambda: said() == 40, 10, 0.05), "and the others after them", said())
    p.kill()
    s = Server(t, d, policies + [{"metadata": {"name": "late", "generation": 1}, "spec": {"rules": []}}], [], [])
    s.missing.add("q")
    p = s.start(t, "status", "--every", "1")
    tap.wait_for(lambda: told("policies/p"), 10, 0.02)
    s.tell("policies", ("DELETED", {"metadata": {"name": "q", "resourceVersion": "2"}}),
           ("MODIFIED", {"metadata": {"name": "late", "generation": 2, "resourceVersion": "3"}, "spec": {"rules": []}}))
    t.ok(tap.wait_for(lambda: any(x["observedGeneration"] == 2 for x in s.told.get("policies/late/status", [])), 10, 0.05), "an object that went before its status was written stops nothing", str(s.told))
    p.kill()
    s = Server(t, d, [{"metadata": {"name": "n", "generation": 1}, "spec": {"rules": []}}], [], [])
    s.newer["n"] = {"metadata": {"name": "n", "generation": 2, "resourceVersion": "2"}, "spec": {"rules": [{"alow": "x"}]}}
    p = s.start(t, "status", "--every", "60")
    t.ok(tap.wait_for(lambda: (told("policies/n").get("observedGeneration"), told("policies/n").get("accepted")) == (2, "False"), 5, 0.02),
         "a version that came while a status was written is judged at once", str(s.told))
    p.kill()
    s = Server(t, d, policies[:1], [binding("lost", "p", "lost")], 500)
    s.start(t, "status")
    t.ok(tap.wait_for(lambda: told("policybindings/lost").get("accepted"), 20, 0.05), "where pods cannot be listed objects are told what became of them")
    t.eq(told("policybindings/lost").get("pods"), None, "without a count")
    t.ok(tap.wait_for(lambda: "no list of pods" in open(t.path("status.log")).read(), 10, 0.05), "and the program says why")


def connected(c, path):
    try:
        c.connect(path)
        return True
    except BlockingIOError:  # as many wait as may
        return False


def say(path, kind, *fields):
    c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    c.settimeout(20)
    tap.wait_for(lambda: connected(c, path), 20, 0.01)
    c.send(wire.message(kind, *[wire.text(x) for x in fields]))
    return c


def ask(path, ns, name, uid="u-1"):
    """-> whether the pod is known"""
    with say(path, wire.POD_ASK, ns, name, uid) as c:
        return wire.messages(c.recv(1 << 16))[0][1].data[0] == 1


def queue(t, d):
    """An event that hangs delays no answer, and what waits is bounded."""
    s = Server(t, d, [], [], [])
    at = t.path("pods.sock")
    s.start(t, "node", "--pods", at, "--node", "n1")
    t.ok(tap.wait_for(lambda: os.path.exists(at) and ask(at, "a", "p"), 20, 0.05), "the plugin is answered")
    for ns, name, uid in (("../x", "p", "u"), ("a", "../../secrets/y", "u"), ("a", "p?x=1", "u"), ("", "p", "u"), ("a" * 64, "p", "u"),
                          ("a", "p", "u" * 64)):
        say(at, wire.POD_BOUND, ns, name, uid, "policy x, gate y").close()
        t.eq(ask(at, ns, name, uid), False, "a question about %.20s/%.20s is malformed" % (ns, name))
    say(at, wire.POD_BOUND, "a", "p", "u-1", "policy x, gate \"y\"\n").close()
    t.ok(tap.wait_for(lambda: s.events, 10, 0.02), "an event is made")
    e = s.events[0]
    t.eq((e["involvedObject"]["uid"], e["message"]), ("u-1", "Durward: policy x, gate \"y\"\n, node n1"), "of the pod, with what was said as its text")
    asked = sorted({r.path for r in s.origin.requests if not r.path.startswith(API)})
    t.eq(asked, ["/api/v1/namespaces/a/events", "/api/v1/namespaces/a/pods/p"], "whoever lies about a pod's name has nothing else asked")
    s.hung.set()
    for i in range(400):
        say(at, wire.POD_BOUND, "a", "p%d" % i, "u-1", "policy x" * 100).close()
    began = time.monotonic()
    t.ok(all(ask(at, "a", "p") for _ in range(8)), "while an event hangs the plugin is answered")
    took = time.monotonic() - began
    t.ok(took < 4, "at once", "%.1f s" % took)
    said = lambda: re.findall(r"no event of a/p\d+: too many wait", open(t.path("node.log")).read())  # noqa: E731
    t.ok(tap.wait_for(lambda: len(said()) > 200, 10, 0.05), "no more than a bounded number of events wait, and what is lost is said", str(len(said())))


def objects(t, d):
    """A node hears of what changed, and of nothing else; each object is judged as if it were alone."""
    policies = [{"metadata": {"name": "p%d" % i, "generation": 1}, "spec": {"rules": []}} for i in range(200)]
    bad = {30: "none", 77: "none", 150: "none"}
    bound = [binding("b%03d" % i, bad.get(i, "p%d" % i), "ns%d" % i) for i in range(200)] + [binding("c", "p1", "ns0")]
    s = Server(t, d, policies, bound, [])
    at = t.path("objects.json")
    began = time.monotonic()
    s.start(t, "node", "--pods", t.path("pods2.sock"), "--node", "n2")
    read = lambda: json.load(open(at))  # noqa: E731
    t.ok(tap.wait_for(lambda: os.path.exists(at) and len(read()["policies"]) == 200, 20, 0.02), "200 policies and 201 bindings come to the node's file")
    t.diag("after %.1f s" % (time.monotonic() - began))
    t.eq(sorted({"ns%d" % i for i in range(200)} - set(read()["namespaces"])), ["ns150", "ns30", "ns77"], "bindings that are bad take their own namespaces, and no others")
    t.eq(read()["namespaces"]["ns0"], [{"policy": "p0"}], "and the older of two counts")
    listings = len(s.pages)
    s.tell("policies", ("MODIFIED", {"metadata": {"name": "p0", "generation": 1, "resourceVersion": "2"}, "spec": {"rules": []}, "status": {"pods": 7}}))
    s.tell("policies", ("MODIFIED", {"metadata": {"name": "p1", "generation": 2, "resourceVersion": "3"}, "spec": {"rules": [{"allow": "x.example.com"}]}}))
    t.ok(tap.wait_for(lambda: "x.example.com" in open(at).read(), 5, 0.02), "a policy that changes is heard of")
    s.tell("policybindings", ("DELETED", {"metadata": {"name": "b005", "resourceVersion": "4"}}))
    t.ok(tap.wait_for(lambda: "ns5" not in read()["namespaces"], 5, 0.02), "and a binding that goes")
    t.eq(len(s.pages), listings, "without a list")
    rules = [{"allow": "h%d.example.com/%s" % (i, "a" * 180)} for i in range(3000)]
    large = lambda name, n: {"metadata": {"name": name, "generation": 1, "resourceVersion": str(n)}, "spec": {"rules": rules}}  # noqa: E731
    s.tell("policies", ("ADDED", large("large", 5)), ("ADDED", large("larger", 6)))
    t.ok(tap.wait_for(lambda: "more than 1 MiB" in open(t.path("node.log")).read(), 20, 0.05), "policies that are too large together are not written")
    s.tell("policybindings", ("DELETED", {"metadata": {"name": "b006", "resourceVersion": "7"}}))
    s.tell("policies", ("DELETED", large("large", 8)), ("DELETED", large("larger", 9)))
    t.ok(tap.wait_for(lambda: "ns6" not in read()["namespaces"], 20, 0.05), "and what was too large is heard to go, with all else")


def flooded(t, d):
    """An event that is longer than any object may be comes again with each watch."""
    s = Server(t, d, [{"metadata": {"name": "p", "generation": 1}, "spec": {"rules": []}}], [binding("b", "p", "one")], [])
    s.flood.add("policies")
    at = t.path("objects.json")
    p = s.start(t, "node", "--pods", t.path("pods3.sock"), "--node", "n3")
    watches = lambda: [r.time for r in s.origin.requests if "watch" in (r.query or "") and r.path.endswith("/policies")]  # noqa: E731
    tap.wait_for(lambda: len(watches()) > 2, 15, 0.05)
    s.tell("policybindings", ("ADDED", dict(binding("c", "p", "two"), metadata={"name": "c", "resourceVersion": "2", "creationTimestamp": "c"})))
    t.ok(tap.wait_for(lambda: os.path.exists(at) and "two" in json.load(open(at))["namespaces"], 2, 0.02), "meanwhile what can be read counts at once", open(t.path("node.log")).read()[-500:])
    at_s = watches()
    t.ok(len(at_s) == 3 and at_s[1] - at_s[0] > 0.9 and at_s[2] - at_s[1] > 1.9, "an event above 16 MiB is asked for again less and less often", str(at_s))
    s.flood.clear()
    s.objects["policies"][0]["spec"]["rules"].append({"allow": "late.example.com"})
    t.ok(tap.wait_for(lambda: "late.example.com" in open(at).read(), 12, 0.05), "and once it is gone all is as before")
    p.kill()


LABEL = "node-restriction.kubernetes.io/durward"


def nodes(t, d):
    """Nodes are labelled by the DaemonSet's pods."""
    s = Server(t, d, [], [], [])
    node = lambda name, **labels: {"metadata": {"name": name, "labels": labels}}  # noqa: E731
    s.nodes = [node(x) for x in ("mirror", "own", "before", "beside", "new", "other")] + [node(x, **{LABEL: "ready"}) for x in ("kept", "lost", "gone")]
    condition = lambda ready: [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": ready}]  # noqa: E731
    owner = lambda uid, controller=True: [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "durward-node", "uid": uid, "controller": controller}]  # noqa: E731
    daemon = lambda name, ready, **more: {"metadata": dict({"name": "d-" + name, "namespace": "durward-node", "ownerReferences": owner(s.uid)}, **more), "spec": {"nodeName": name},  # noqa: E731
                                          "status": {"conditions": condition(ready)}}
    s.daemons = [daemon("new", "True"), daemon("kept", "True"), daemon("lost", "False"), daemon("other", "False"),
                 daemon("mirror", "True", annotations={"kubernetes.io/config.mirror": "x"}), daemon("own", "True", ownerReferences=[]),
                 daemon("before", "True", ownerReferences=owner("d-0")), daemon("beside", "True", ownerReferences=owner(s.uid, False))]
    s.nodes[:0], s.daemons[:0] = [node("n%d" % i) for i in range(1100)], [daemon("n%d" % i, "False") for i in range(1200)]
    s.start(t, "nodes")
    want = {name: {"metadata": {"labels": {LABEL: value}}} for name, value in (("new", "ready"), ("lost", None), ("gone", None))}
    tap.wait_for(lambda: set(want) <= set(s.told), 10, 0.05)
    t.eq([(at, limit) for path, at, limit in s.pages], [(0, 500), (500, 500), (1000, 500)] * 2, "pods and nodes are listed by pages, and all of them")
    t.ok(all("as=PartialObjectMetadata" in dict(r.headers).get("Accept", "") for r in s.origin.requests if r.path == "/api/v1/nodes"), "of nodes only what they are called by")
    t.eq(s.told.get("new"), want["new"], "the node whose daemon is ready is labelled")
    t.eq({x: s.told.get(x) for x in want}, want, "and those whose daemon is not are so no more")
    t.eq([x for x in ("own", "before", "beside") if x in s.told], [], "a pod that has its label and another owner counts for nothing")
    t.ok("mirror" not in s.told, "nor does the mirror of a static pod", str(s.told))
    listings = len(s.pages)
    s.tell("daemons", ("MODIFIED", daemon("new", "False", resourceVersion="2")), ("MODIFIED", daemon("other", "True", resourceVersion="3")), ("DELETED", daemon("kept", "True", resourceVersion="4")))
    t.ok(tap.wait_for(lambda: [s.told.get(x, {}).get("metadata", {}).get("labels", {}).get(LABEL, "-") for x in ("new", "other", "kept")] == [None, "ready", None], 10, 0.05),
         "a daemon that becomes ready or ends changes its node's label", str(s.told))
    node_of = lambda name, version, **labels: {"metadata": {"name": name, "labels": labels, "resourceVersion": str(version)}}  # noqa: E731
    s.told.clear()
    s.tell("nodes", ("MODIFIED", node_of("other", 5)), ("MODIFIED", node_of("lost", 6, **{LABEL: "ready"})), ("ADDED", node_of("n5", 7)))
    t.ok(tap.wait_for(lambda: set(s.told) == {"other", "lost"}, 10, 0.05), "and so does somebody else's label", str(s.told))
    t.eq(len(s.pages), listings, "none of that lists anything anew")
    s.missing.add("other")
    s.tell("daemons", ("DELETED", daemon("other", "True", resourceVersion="8")))
    tap.wait_for(lambda: "404" in open(t.path("nodes.log")).read(), 10, 0.05)
    s.tell("nodes", ("DELETED", node_of("other", 9)))
    s.tell("daemons", ("ADDED", daemon("n5", "True", resourceVersion="10")))
    t.ok(tap.wait_for(lambda: "n5" in s.told, 10, 0.05), "a node that went before it was labelled keeps no other from its label", str(s.told))


NETWORK = {"name": "n", "cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]}


class Daemon(threading.Thread):
    """At node.socket: says that it is ready, or not yet."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.ready, self.socket = False, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        self.socket.listen(16)
        self.start()

    def run(self):
        while True:
            with self.socket.accept()[0] as c:
                c.recv(1 << 16)
                c.send(wire.message(wire.POD_DONE, wire.u8(0 if self.ready else 2), wire.text(""), wire.text(""), wire.u32(0)))


class Node:
    """A node's folders, its daemon, and what keeps the plugin there."""

    def __init__(self, t, s):
        self.t, self.s, self.bin, self.lists = t, s, t.mkdir("bin"), t.mkdir("lists")
        self.network, self.other, self.ours = (os.path.join(self.lists, x) for x in ("10-net.conflist", "20-other.conflist", "0-durward.conflist"))
        for path in (self.network, self.other):
            self.write(path, NETWORK)
            os.chmod(path, 0o640)
        self.words = ["--bin", self.bin, "--lists", self.lists, "--socket", t.path("node.sock")]
        self.daemon = Daemon(t.path("node.sock"))

    def write(self, path, v):
        self.t.write(os.path.relpath(path, self.t.tmp), json.dumps(v))

    def start(self):
        self.p = self.s.start(self.t, "plugin", *self.words)

    def end(self):
        self.p.terminate()
        self.p.wait(10)

    def types(self):
        """Of the list that a runtime uses."""
        first = sorted(x for x in os.listdir(self.lists) if x.endswith((".conf", ".conflist", ".json")))[0]
        with open(os.path.join(self.lists, first)) as f:
            return [x["type"] for x in json.load(f)["plugins"]]

    def has(self):
        return self.types()[-1] == "durward-cni"

    def check(self):
        return subprocess.run([PROGRAM, "plugin", "--check"] + self.words, stderr=subprocess.DEVNULL).returncode == 0

    def wait(self, types):
        return tap.wait_for(lambda: self.types() == types, 3, 0.01)


def plugin(t, d):
    """The plugin in the list that a runtime uses: once the daemon answers, whatever others write, until Durward is taken away."""
    s = Server(t, d, [], [], [])
    n = Node(t, s)
    read = lambda path: json.load(open(path))  # noqa: E731
    n.start()
    t.ok(not tap.wait_for(n.has, 1.5, 0.05) and not n.check() and not os.listdir(n.bin), "until the daemon has answered once all stays as it is")
    n.daemon.ready = True
    t.ok(tap.wait_for(n.has, 5, 0.02) and n.check(), "then the plugin stands in the list that the runtime uses")
    ours = read(n.ours)
    t.eq((n.types(), ours["name"], ours["disableCheck"], os.stat(n.ours).st_mode & 0o777, read(n.network), read(n.other)), (
        ["bridge", "durward-cni"], "n", True, 0o640, NETWORK, NETWORK), "behind the network's own, in a list of its own name: the others are not touched")
    mesh = [{"type": "mesh"}]
    n.write(n.ours, dict(ours, plugins=ours["plugins"] + mesh))
    t.ok(n.wait(["bridge", "mesh", "durward-cni"]), "what somebody puts into that list stays, in front of it", str(n.types()))
    n.write(n.network, dict(NETWORK, plugins=[{"type": "ptp"}]))
    t.ok(n.wait(["ptp", "durward-cni"]), "a network's list that is written anew is what it is made of", str(n.types()))
    n.write(n.network, dict(NETWORK, plugins=NETWORK["plugins"] + [{"type": "durward-cni"}]))
    t.ok(n.wait(["bridge", "durward-cni"]) and tap.wait_for(lambda: read(n.network) == NETWORK, 3, 0.01), "and where an earlier version put the plugin it is taken out", str(read(n.network)))
    os.unlink(n.ours)
    t.ok(tap.wait_for(n.has, 3, 0.01), "a list of ours that somebody takes away comes again")
    n.write(os.path.join(n.lists, "!.conflist"), NETWORK)
    t.ok(not n.check() and tap.wait_for(lambda: "comes before" in open(t.path("plugin.log")).read(), 5, 0.02), "--check and the program say where another is the one that the runtime uses")
    os.unlink(os.path.join(n.lists, "!.conflist"))
    n.end()
    t.ok(n.has() and n.check(), "what ends while its DaemonSet is there leaves the list as it is")
    n.write(n.network, dict(NETWORK, plugins=[{"type": "ptp"}]))
    t.eq(n.types(), ["bridge", "durward-cni"], "a network that writes its list while nothing of Durward's runs, as where a node starts, takes nothing out")
    for path in (n.network, n.other):
        os.unlink(path)
    n.start()
    t.ok(not tap.wait_for(lambda: not n.has(), 1, 0.05) and not n.check(), "nor does one that takes its list away")
    for path in (n.network, n.other):
        n.write(path, NETWORK)
    tap.wait_for(n.check, 5, 0.02)
    n.end()
    n.daemon.ready = False
    os.unlink(n.ours)
    n.start()
    t.ok(tap.wait_for(n.has, 3, 0.01) and not n.check(), "after the node's start it is put in at once, before the daemon answers: bound pods wait")
    n.daemon.ready = True
    n.end()
    os.unlink(n.bin + "/durward-cni")
    t.ok(not n.check(), "--check says when something is missing")
    t.part(taken_away, t, s, n)


def taken_away(t, s, n):
    """Both the DaemonSet and its rights, or the plugin stays."""
    here, gone, ends = ("ADDED", {}), ("DELETED", {}), ("MODIFIED", {"deletionTimestamp": "now"})
    for how, daemonset, rights, stays in (
            ("nobody may ask any more", (403, None), (403, None), True), ("the DaemonSet alone is gone", (404, gone), (200, None), True),
            ("both are deleted, with the account", (401, gone), (401, gone), False), ("one is being deleted, and the other was", (403, ends), (403, gone), False),
            ("both are gone", (404, None), (404, None), False), ("their namespace is being deleted", (200, None), (200, None), False)):
        s.signs.update(daemonsets=200, rolebindings=200)
        for x in s.said:
            s.said[x] = [here]
        had = s.followed
        n.start()
        tap.wait_for(lambda: n.check() and s.followed > had + 1, 10, 0.05)
        s.signs.update(daemonsets=daemonset[0], rolebindings=rights[0])
        s.space = {"deletionTimestamp": "now"} if how.startswith("their namespace") else {}
        n.p.terminate()
        s.said["daemonsets"] += [daemonset[1]] if daemonset[1] else []
        s.said["rolebindings"] += [rights[1]] if rights[1] else []
        n.p.wait(10)
        want = (["bridge"] + (["durward-cni"] if stays else []), ["durward-cni"] if stays else [],
                (["0-durward.conflist"] if stays else []) + ["10-net.conflist", "20-other.conflist"], NETWORK)
        with open(n.network) as f:
            t.eq((n.types(), os.listdir(n.bin), sorted(os.listdir(n.lists)), json.load(f)), want, "%s: %s" % (how, "the plugin stays" if stays else "all is as before"))


def test(t):
    d = durward.Durward(t, "keepers")
    t.write("durward.json", json.dumps(dict(CONFIG, node=dict(CONFIG["node"], objects=t.path("objects.json")))))
    t.part(counts, t, d)
    t.part(queue, t, d)
    t.part(objects, t, d)
    t.part(flooded, t, d)
    t.part(nodes, t, d)
    t.part(plugin, t, d)


tap.run(test, timeout=120)
