"""What there must be: sandboxes and snapshots as the document describes them. Whoever asks the server says
here what the answer has to be; anything else is a Divergence."""
import base64
import json
import time
import urllib.parse

from harness import api

from .tree import Tree

BOX, SNAP = "/v1/sandboxes", "/v1/snapshots"
SLACK = 3  # seconds by which the end of a life time may be late


class Divergence(Exception):
    pass


class Box:
    def __init__(self, sid, policy, tree, **more):
        self.id, self.policy, self.tree = sid, policy, tree
        self.state = "running"
        self.name, self.labels, self.env = None, {}, {}
        self.ttl, self.idle_ttl, self.on_idle, self.auto_resume = 86400, 3600, "delete", True
        self.soft_ttl, self.on_soft_ttl = 0, "stop"
        self.parent = self.snapshot = None
        self.kept = policy != "small"
        self.generation, self.created = 0, time.time()
        self.__dict__.update(more)

    def lost(self):
        """Stopped without its files: nothing can run it again."""
        return self.state == "stopped" and not self.kept

    def usable(self):
        return self.state == "running" or (self.auto_resume and not self.lost())


class World:
    def __init__(self, document, d, r):
        self.document, self.d, self.r = document, d, r
        self.c = api.Api(d.socket, timeout=90)
        self.boxes, self.snaps = {}, {}  # in the order in which they were made
        self.fading = {}  # id -> when its time to live is over
        self.serial = self.asked = 0
        self.trail = []

    # ---- asking ----

    def say(self, text):
        self.trail = self.trail[-24:] + [text]

    def expect(self, good, what, *detail):
        if not good:
            raise Divergence("%s: %s" % (what, " ".join(repr(x) for x in detail)))

    def raw(self, method, path, body=None, c=None):
        """-> (status, bytes); only what the document knows of this operation."""
        text = json.dumps(body) if isinstance(body, (dict, list)) else body
        status, _, data = (c or self.c).raw(method, path, text)
        self.asked += 1
        self.expect(status in self.document.statuses(method, path), "%s %s: a status that is not documented" %
                    (method, path), status, data[:300])
        return status, data

    def ask(self, method, path, body=None, want=(200,), c=None):
        """-> (status, JSON, bytes or an error's code); the status is one of those wanted."""
        status, data = self.raw(method, path, body, c)
        if status // 100 in (4, 5):
            e = json.loads(data)["error"]
            self.expect(not self.document.faults("Error", {"error": e}) and e["message"], "an error's form", data)
            self.expect(status in want, "%s %s %.300r" % (method, path, body), status, e, "wanted", want)
            return status, e["code"]
        self.expect(status in want, "%s %s %.300r" % (method, path, body), status, data[:300], "wanted", want)
        return status, data

    def json(self, *args, **kw):
        status, data = self.ask(*args, **kw)
        return status, json.loads(data) if status // 100 == 2 else data

    @staticmethod
    def at(sid, tail):
        return "%s/%s/%s" % (BOX, sid, tail)

    def file(self, sid, path, tail="files", **more):
        q = urllib.parse.urlencode(dict({"path": path}, **more), quote_via=urllib.parse.quote)
        return "%s/%s/%s?%s" % (BOX, sid, tail, q)

    # ---- comparing ----

    def shown(self, b, row):
        """A sandbox as the server shows it, against ours."""
        faults = self.document.faults("Sandbox", row)
        self.expect(not faults, "the form of a sandbox", faults)
        want = {"id": b.id, "name": b.name, "policy": b.policy, "state": b.state, "labels": b.labels, "ttl": b.ttl,
                "idle_ttl": b.idle_ttl, "on_idle": b.on_idle, "soft_ttl": b.soft_ttl, "on_soft_ttl": b.on_soft_ttl,
                "auto_resume": b.auto_resume, "kept": b.kept,
                "parent": b.parent, "snapshot": b.snapshot, "backend": "bwrap", "image": "host",
                "workdir": "/workspace"}
        wrong = {k: (row.get(k), v) for k, v in want.items() if row.get(k) != v}
        self.expect(not wrong, "sandbox %s, shown and expected" % b.id, wrong)
        self.expect(row["generation"] >= b.generation, "a generation went back", row["generation"], b.generation)
        self.expect(row["reason"] == "" or b.state in ("stopped", "stopping"), "a reason", row["reason"])
        b.generation = row["generation"]

    def use(self, b):
        """An operation that needs it to run. -> may it work?"""
        if not b.usable():
            return False
        b.state = "running"
        return True

    def add(self, b, row):
        self.expect(b.id not in self.boxes, "an id twice", b.id)
        self.boxes[b.id] = b
        self.shown(b, row)

    def drop(self, b):
        del self.boxes[b.id]
        self.fading.pop(b.id, None)

    def forget_faded(self):
        """Those whose time is up, and those about which nothing can be said just now."""
        now, unsure = time.time(), set()
        for sid, end in list(self.fading.items()):
            if now < end - 1:
                continue
            unsure.add(sid)
            if now > end + SLACK:
                status, _ = self.ask("GET", "%s/%s" % (BOX, sid), want=(404,))
                self.drop(self.boxes[sid])
                unsure.discard(sid)
        return unsure

    def compare_lists(self, query="", fits=lambda b: True):
        before = self.forget_faded()
        rows, after = [], ""
        limit = self.r.choice((1, 2, 3, 100, 1000))
        for _ in range(200):
            _, page = self.json("GET", "%s?limit=%d%s%s" % (BOX, limit, query, after))
            self.expect(len(page["sandboxes"]) <= limit, "a page's length", limit, len(page["sandboxes"]))
            rows += page["sandboxes"]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        unsure = before | self.forget_faded()
        got = [x["id"] for x in rows if x["id"] not in unsure]
        want = [b.id for b in self.boxes.values() if fits(b) and b.id not in unsure]
        self.expect(got == want, "list " + query, "got", got, "want", want)
        for row in rows:
            if row["id"] in self.boxes and row["id"] not in unsure:
                self.shown(self.boxes[row["id"]], row)

    def compare_snapshots(self):
        _, data = self.json("GET", SNAP)
        got = [(s["name"], s["state"], s["sandbox"], s["policy"]) for s in data["snapshots"]]
        want = [(n, "ready", s["sandbox"], s["policy"]) for n, s in self.snaps.items()]
        self.expect(got == want, "snapshots", "got", got, "want", want)

    def compare_files(self, b):
        """Every file, its bytes and its mode; every directory."""
        if not self.use(b):
            return
        command = ("find . -mindepth 1 -printf '%y %m %p\\n' | sort; find . -type f | sort | "
                   "while read -r f; do sha256sum <\"$f\" | cut -c1-16; done")
        import hashlib
        top = b.tree.top
        names = {"./" + p[len(top) + 1:]: b.tree.kind(p) for p in b.tree.below(top)}
        want = sorted("%s %s %s" % ("f", b.tree.files[top + n[1:]][1].lstrip("0"), n) for n, k in names.items()
                      if k == "file")
        sums = [hashlib.sha256(b.tree.files[top + n[1:]][0]).hexdigest()[:16]
                for n in sorted(n for n, k in names.items() if k == "file")]
        _, r = self.json("POST", self.at(b.id, "exec"), {"command": command, "env": {"LC_ALL": "C"}})
        lines = r["output"].splitlines()
        got = [x for x in lines if x.startswith("f ")], [x for x in lines if x[:2] not in ("f ", "d ")]
        dirs = {x.split(" ", 2)[2] for x in lines if x.startswith("d ")}
        self.expect(got == (want, sums), "files of %s" % b.id, "got", got, "want", (want, sums))
        self.expect(dirs == {n for n, k in names.items() if k == "directory"}, "directories of %s" % b.id, dirs, names)

    def compare_all(self):
        self.compare_lists()
        self.compare_snapshots()
        for b in list(self.boxes.values()):
            if b.id not in self.fading:
                self.compare_files(b)

    def output(self, r):
        """An exec's output in bytes."""
        return base64.b64decode(r["output"]) if r["encoding"] == "base64" else r["output"].encode()

    def new_tree(self):
        return Tree()
