"""What is done at random, and what the model says of it. Each takes the world; some do nothing when there is
nothing to do it to."""
import base64
import concurrent.futures
import io
import json
import tarfile
import time

from harness import api

from .world import BOX, SNAP, Box

BOXES_MAX, SNAPS_MAX = 6, 3
NAMES = ("a", "b", "c", "d")
LABELS = ("one", "two", "three")
REFUSED = (400, 403, 404, 409)  # which of them a path earns the document does not say
SHELL = {"LC_ALL": "C"}


def some(w, fits=lambda b: True):
    found = [b for b in w.boxes.values() if b.id not in w.fading and fits(b)]
    return w.r.choice(found) if found else None


def path(w, b):
    return b.tree.top + "".join("/" + w.r.choice(NAMES) for _ in range(w.r.choice((1, 1, 2, 2, 3))))


def known(w, b):
    """A path that is there, if there is one."""
    return w.r.choice(b.tree.below(b.tree.top) or [path(w, b)])


def content(w):
    n = w.r.choice((0, 1, 10, 10, 100, 5000, 70000))
    return w.r.randbytes(n)


def labels(w):
    return {k: w.r.choice(("x", "y", "ü ")) for k in LABELS if w.r.random() < 0.4}


def life(w):
    """Members that a creation may have, and what they are without."""
    given = {}
    for key, values in (("labels", (labels(w),)), ("ttl", (3600, 86400)), ("idle_ttl", (0, 7200)),
                        ("on_idle", ("delete", "pause", "stop")), ("auto_resume", (True, False, True))):
        if w.r.random() < 0.4:
            given[key] = w.r.choice(values)
    if w.r.random() < 0.3:
        given.update(soft_ttl=7200, on_soft_ttl="pause")
    return given


# ---- sandboxes ----

def creation(w):
    """-> (body, how it will look)"""
    body = dict(life(w), policy=w.r.choice(("coder", "coder", "coder", "small")))
    extra = {k: v for k, v in body.items() if k != "policy"}
    if w.r.random() < 0.3:
        w.serial += 1
        body["name"] = extra["name"] = "n%d" % w.serial
    if w.r.random() < 0.5:
        body["env"] = extra["env"] = {"COLOUR": w.r.choice(("blue", "green"))}
    tree = w.new_tree()
    if w.snaps and w.r.random() < 0.3:
        name = w.r.choice(list(w.snaps))
        body.update(snapshot=name, policy="coder")
        extra["snapshot"], tree = name, w.snaps[name]["tree"].copy()
    return body, lambda sid: Box(sid, body["policy"], tree, **extra)


def create(w):
    if len(w.boxes) >= BOXES_MAX:
        return
    body, made = creation(w)
    _, row = w.json("POST", BOX, body, want=(201,))
    w.add(made(row["id"]), row)
    w.expect(abs(row["expires_at"] - row["created_at"] - row["ttl"]) <= 1, "its end", row)


def create_short(w):
    if len(w.boxes) < BOXES_MAX:
        ttl = w.r.choice((1, 2, 4))
        status, row = w.json("POST", BOX, {"policy": "coder", "ttl": ttl}, want=(201, 503))
        if status == 503:  # on a busy machine its time is over before it runs
            return
        w.add(Box(row["id"], "coder", w.new_tree(), ttl=ttl), row)
        w.fading[row["id"]] = row["expires_at"]


def delete(w):
    b = some(w)
    if b:
        w.ask("DELETE", "%s/%s" % (BOX, b.id), want=(204,))
        w.drop(b)
        w.ask("GET", "%s/%s" % (BOX, b.id), want=(404,))
        if w.r.random() < 0.3:
            w.ask("DELETE", "%s/%s" % (BOX, b.id), want=(204,))


def name_taken(w):
    b = some(w, lambda b: b.name)
    if b:
        status, code = w.ask("POST", BOX, {"policy": "coder", "name": b.name}, want=(409,))
        w.expect(code == "conflict", "a name twice", code)


def found(w, wanted):
    for b in w.boxes.values():
        if not b.lost() and wanted.items() <= b.labels.items():
            return b
    return None


def get_or_create(w):
    wanted = labels(w)
    body = {"policy": "coder", "labels": wanted, "get_or_create": True}
    if not wanted:
        w.ask("POST", BOX, body, want=(400,))
        return
    if any(f in w.boxes and wanted.items() <= w.boxes[f].labels.items() for f in w.fading):
        return
    b = found(w, wanted)
    if b is None and len(w.boxes) >= BOXES_MAX:
        return
    if b is None:
        # two at once are given the same one
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            other = api.Api(w.d.socket, timeout=90)
            jobs = [pool.submit(w.json, "POST", BOX, body, want=(200, 201), c=c) for c in (w.c, other)]
            got = [j.result() for j in jobs]
            other.close()
        w.expect(sorted(s for s, _ in got) == [200, 201] and got[0][1]["id"] == got[1][1]["id"], "get-or-create", got)
        row = got[0][1]
        w.add(Box(row["id"], "coder", w.new_tree(), labels=wanted), row)
    elif b.policy != "coder":
        w.ask("POST", BOX, body, want=(409,))
    else:
        _, row = w.json("POST", BOX, body)
        w.expect(row["id"] == b.id, "the oldest that fits", row["id"], b.id)
        b.state = "running"
        w.shown(b, row)


def show(w):
    b = some(w)
    if b:
        w.shown(b, w.json("GET", "%s/%s" % (BOX, b.id))[1])


def listing(w):
    what = w.r.randrange(4)
    if what == 0:
        w.compare_lists()
    elif what == 1:
        state = w.r.choice(("running", "paused", "stopped", "creating"))
        w.compare_lists("&state=" + state, lambda b: b.state == state)
    else:
        key, value = w.r.choice(LABELS), w.r.choice(("x", "y"))
        w.compare_lists("&label=%s%%3D%s" % (key, value), lambda b: b.labels.get(key) == value)


def patch(w):
    b = some(w)
    if b is None:
        return
    body = {k: v for k, v in life(w).items() if k in ("labels", "ttl", "idle_ttl")}
    _, row = w.json("PATCH", "%s/%s" % (BOX, b.id), body)
    b.__dict__.update(body)
    if "ttl" in body:  # counted from now
        w.expect(abs(row["expires_at"] - time.time() - body["ttl"]) <= 2 + SLOW, "its new end", row)
        b.ttl = row["ttl"]
    w.shown(b, row)


SLOW = 2


def sleepy(w):
    b = some(w)
    if b is None:
        return
    verb = w.r.choice(("pause", "stop", "resume", "resume"))
    target = w.at(b.id, verb)
    if verb == "pause" and b.state == "stopped":
        w.ask("POST", target, want=(409,))
    elif verb == "pause" and not w.freezer:
        w.ask("POST", target, want=(501,))
    elif verb == "resume" and b.lost():
        w.ask("POST", target, want=(409, 503))
    else:
        _, row = w.json("POST", target)
        b.state = {"pause": "paused", "stop": "stopped", "resume": "running"}[verb]
        w.shown(b, row)


# ---- snapshots ----

def snapshot(w):
    b = some(w)
    if b is None:
        return
    name = w.r.choice(("s1", "s2", "s3", "s4"))
    body = {"sandbox": b.id, "name": name, "get_or_create": w.r.random() < 0.5}
    if name in w.snaps:
        if body["get_or_create"]:
            _, row = w.json("POST", SNAP, body)
            w.expect(row["sandbox"] == w.snaps[name]["sandbox"], "the snapshot that there was", row)
        else:
            w.ask("POST", SNAP, body, want=(409,))
    elif not b.kept:
        w.ask("POST", SNAP, body, want=(409, 501))
    elif len(w.snaps) < SNAPS_MAX:
        _, row = w.json("POST", SNAP, body, want=(201,))
        w.expect((row["name"], row["state"], row["sandbox"]) == (name, "ready", b.id), "a snapshot", row)
        w.snaps[name] = {"sandbox": b.id, "policy": b.policy, "tree": b.tree.copy()}


def snapshot_gone(w):
    if w.snaps:
        name = w.r.choice(list(w.snaps))
        w.ask("DELETE", "%s/%s" % (SNAP, name), want=(204,))
        del w.snaps[name]
        w.ask("GET", "%s/%s" % (SNAP, name), want=(404,))


def snapshots(w):
    w.compare_snapshots()
    w.ask("POST", BOX, {"policy": "coder", "snapshot": "s9"}, want=(404,))


def fork(w):
    b = some(w)
    if b is None or len(w.boxes) >= BOXES_MAX:
        return
    body = life(w)
    if not b.kept:
        w.ask("POST", w.at(b.id, "fork"), body, want=(409, 501))
        return
    _, row = w.json("POST", w.at(b.id, "fork"), body, want=(201,))
    state = "paused" if b.state == "paused" else "running"
    w.add(Box(row["id"], b.policy, b.tree.copy(), **dict({"env": b.env, "parent": b.id, "state": state,
                                                          **body})), row)


def restore(w):
    b = some(w)
    if b is None or not w.snaps:
        return
    name = w.r.choice(list(w.snaps))
    if not b.kept:
        w.ask("POST", w.at(b.id, "restore"), {"snapshot": name}, want=(409, 501))
        return
    _, row = w.json("POST", w.at(b.id, "restore"), {"snapshot": name})
    b.tree, b.snapshot = w.snaps[name]["tree"].copy(), name
    if b.state == "paused":  # it did not run; whether it does now the document leaves open
        w.expect(row["state"] in ("paused", "running", "stopped"), "restored", row["state"])
        b.state = row["state"]
    w.shown(b, row)


# ---- commands ----

def command(w, b, body, code, output):
    if not w.use(b):
        status, why = w.ask("POST", w.at(b.id, "exec"), body, want=(409,))
        w.expect(why == "not_running", "a command in one that does not run", why)
        return
    _, r = w.json("POST", w.at(b.id, "exec"), body)
    faults = w.document.faults("ExecResult", r)
    w.expect(not faults, "the form of a result", faults)
    got = w.output(r) if not body.get("split") else r["stdout"].encode()
    w.expect((r["exit_code"], got) == (code, output), "%r in %s (%s)" % (body, b.id, b.state), "got", r["exit_code"],
             got[:200], "want", code, output[:200], r["message"])


def exec_plain(w):
    b = some(w)
    if b is None:
        return
    n = w.r.randrange(7)
    if n == 0:
        command(w, b, {"command": "echo $COLOUR; exit 7"}, 7, (b.env.get("COLOUR", "") + "\n").encode())
    elif n == 1:
        data = content(w)
        command(w, b, {"argv": ["cat"], "stdin": base64.b64encode(data).decode(), "stdin_encoding": "base64",
                       "encoding": "base64"}, 0, data)
    elif n == 2:
        command(w, b, {"argv": ["/no/such/program"]}, 127, b"")
    elif n == 3:
        command(w, b, {"command": "kill -9 $$"}, 137, b"")
    elif n == 4:
        command(w, b, {"command": "echo out; echo err >&2", "split": True, "env": SHELL}, 0, b"out\n")
    elif n == 5:
        command(w, b, {"command": "seq 100000", "max_output": 10}, 0, b"1\n2\n3\n4\n5\n")
    else:
        command(w, b, {"argv": ["pwd"], "cwd": "/usr"}, 0, b"/usr\n")


def exec_files(w):
    b = some(w)
    if b is None:
        return
    p, n = known(w, b), w.r.randrange(4)
    if n == 0:
        data = b.tree.files[p][0] if p in b.tree.files else None
        command(w, b, {"command": "cat '%s' 2>/dev/null" % p, "encoding": "base64"}, 0 if data is not None else 1, data or b"")
    elif n == 1:
        p = path(w, b)
        good = b.usable() and p not in b.tree.dirs and not b.tree.blocked(p) and p.rpartition("/")[0] in b.tree.dirs
        command(w, b, {"command": "exec 2>/dev/null; (echo words >'%s') || exit 2" % p}, 0 if good else 2, b"")
        if good:
            b.tree.write(p, b"words\n")
    elif n == 2:
        names = b"".join(x.encode() + b"\n" for x in sorted(b.tree.children(p))) if p in b.tree.dirs else b""
        command(w, b, {"command": "[ -d '%s' ] && ls -A '%s'" % (p, p), "env": SHELL}, 0 if p in b.tree.dirs else 1, names)
    elif b.usable():
        command(w, b, {"command": "rm -rf '%s'" % p}, 0, b"")
        b.tree.remove(p, True)


def exec_cancel(w):
    """A command that lasts is listed, and can be killed."""
    b = some(w, lambda b: b.state == "running")
    if b is None:
        return
    w.serial += 1
    name = "x%d" % w.serial
    other = api.Api(w.d.socket, timeout=60)
    f = other.frames(b.id, command="sleep 60", id=name)
    f.receive()
    w.ask("POST", w.at(b.id, "exec"), {"command": "true", "id": name}, want=(409,))
    _, r = w.json("GET", w.at(b.id, "exec"))
    w.expect(name in [x["id"] for x in r["execs"]], "it is listed", r)
    w.ask("DELETE", w.at(b.id, "exec/" + name), want=(204,))
    _, _, end = f.finish()
    f.close()
    other.close()
    w.expect(end["exit_code"] == 137, "it is killed", end)
    w.ask("DELETE", w.at(b.id, "exec/" + name), want=(204,))


def fetch(w):
    """The gate lets out what its policy allows, and nothing else."""
    b = some(w, lambda b: b.policy == "coder" and b.usable())
    if b:
        command(w, b, {"command": "curl -s -m 20 -o /dev/null -w '%{http_code} ' https://api.github.com/user; "
                                  "curl -s -m 20 -o /dev/null -w '%{http_code}' https://api.github.com/gists/1"},
                0, b"200 403")


# ---- files ----

def write(w):
    b = some(w)
    if b is None:
        return
    p, data = path(w, b), content(w)
    mode = w.r.choice(({}, {"mode": "0600"}, {"mode": "755"}))
    target = w.file(b.id, p, **mode)
    if not w.use(b):
        w.ask("PUT", target, data, want=(409,))
    elif b.tree.write(p, data, "0" + mode.get("mode", "0644").lstrip("0")):
        w.ask("PUT", target, data, want=(204,))
    else:
        w.ask("PUT", target, data, want=REFUSED)


def read(w):
    b = some(w)
    if b is None:
        return
    p = known(w, b) if w.r.random() < 0.8 else path(w, b)
    if not w.use(b):
        w.ask("GET", w.file(b.id, p), want=(409,))
    elif p in b.tree.files:
        _, data = w.ask("GET", w.file(b.id, p))
        w.expect(data == b.tree.files[p][0], "bytes of " + p, len(data), len(b.tree.files[p][0]))
    else:
        w.ask("GET", w.file(b.id, p), want=REFUSED if p in b.tree.dirs or b.tree.blocked(p) else (404,))


def remove(w):
    b = some(w)
    if b is None:
        return
    p = known(w, b) if w.r.random() < 0.7 else path(w, b)
    recursive = w.r.random() < 0.5
    target = w.file(b.id, p, **({"recursive": "true"} if recursive else {}))
    if not w.use(b):
        w.ask("DELETE", target, want=(409,))
    elif b.tree.kind(p) is None:
        w.ask("DELETE", target, want=(204,) + REFUSED)  # of idempotence the document says nothing
    else:
        w.ask("DELETE", target, want=(204,) if b.tree.remove(p, recursive) else REFUSED)


def entries(w):
    b = some(w)
    if b is None:
        return
    p = w.r.choice(sorted(b.tree.dirs)) if w.r.random() < 0.8 else path(w, b)
    target = w.file(b.id, p, "files/list")
    if not w.use(b):
        w.ask("GET", target, want=(409,))
    elif p in b.tree.dirs:
        _, r = w.json("GET", target)
        got = {e["name"]: (e["type"], e["size"] if e["type"] == "file" else None,
                           e["mode"] if e["type"] == "file" else None) for e in r["entries"]}
        w.expect(got == b.tree.children(p) and not r["truncated"], "entries of " + p, got, b.tree.children(p))
    else:
        w.ask("GET", target, want=REFUSED)


def batch(w):
    b = some(w)
    if b is None:
        return
    operations, want = [], []
    usable = b.usable()
    for _ in range(w.r.randrange(5)):
        p, op = path(w, b), w.r.choice(("read", "write", "write", "delete"))
        one = {"op": op, "path": p}
        if op == "write":
            data = content(w)[:3000]
            one.update(data=base64.b64encode(data).decode(), encoding="base64")
            want.append(not usable or b.tree.write(p, data))
        elif op == "read":
            want.append(b.tree.files[p][0] if p in b.tree.files else False)
        else:
            one["recursive"] = True
            there = b.tree.kind(p)
            want.append(None if there is None else not usable or b.tree.remove(p, True))
        operations.append(one)
    target = w.at(b.id, "files/batch")
    if not w.use(b):
        w.ask("POST", target, {"operations": operations}, want=(409,) if operations else (200, 409))
        return
    _, r = w.json("POST", target, {"operations": operations})
    w.expect(len(r["results"]) == len(want), "a result for each", r)
    for one, good, got in zip(operations, want, r["results"]):
        w.expect(got["path"] == one["path"] and (good is None or (got["error"] is None) == (good is not False)),
                 "a batch's result", one, good, got)
        if one["op"] == "read" and good is not False:
            w.expect(w.output({"output": got["data"], "encoding": got["encoding"]}) == good, "its bytes", one)


def archive(w):
    b = some(w)
    if b is None:
        return
    top = b.tree.top + "/" + w.r.choice(NAMES)
    if w.r.random() < 0.5:
        if not w.use(b):
            w.ask("GET", w.file(b.id, top, "tar"), want=(409,))
        elif top in b.tree.dirs:
            _, data = w.ask("GET", w.file(b.id, top, "tar"))
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                got = {m.name.lstrip("./").rstrip("/"): tar.extractfile(m).read() for m in tar if m.isfile()}
            w.expect(got == {p[len(top) + 1:]: b.tree.files[p][0] for p in b.tree.below(top) if p in b.tree.files},
                     "an archive of " + top, sorted(got))
        else:
            w.ask("GET", w.file(b.id, top, "tar"), want=REFUSED)
        return
    out = io.BytesIO()
    files = {w.r.choice(NAMES): w.r.randbytes(20) for _ in range(3)}
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o640
            tar.addfile(info, io.BytesIO(data))
    if top in b.tree.files or any(top + "/" + n in b.tree.dirs for n in files):
        return  # what an archive that does not fit leaves the document does not say
    if not w.use(b):
        w.ask("PUT", w.file(b.id, top, "tar"), out.getvalue(), want=(409,))
    else:
        w.ask("PUT", w.file(b.id, top, "tar"), out.getvalue(), want=(204,))
        b.tree.make(top)
        for name, data in files.items():
            b.tree.files[top + "/" + name] = [data, "0640"]


# ---- what is refused, and the rest ----

def unknown(w):
    sid = w.r.choice(("sb-nothere", "x", "sb-" + "a" * 26, "a" * 64))
    for method, tail, body in (("GET", "", None), ("PATCH", "", {}), ("POST", "/stop", None), ("POST", "/fork", {}),
                               ("POST", "/exec", {"command": "true"}), ("GET", "/exec", None),
                               ("GET", "/files?path=/x", None), ("POST", "/files/batch", {"operations": []}),
                               ("GET", "/tar?path=/x", None), ("POST", "/restore", {"snapshot": "s1"})):
        if w.r.random() < 0.3:
            w.ask(method, "%s/%s%s" % (BOX, sid, tail), body, want=(404,))


MALFORMED = (("POST", BOX, {}), ("POST", BOX, {"policy": "none"}), ("POST", BOX, {"policy": "coder", "x": 1}),
             ("POST", BOX, {"policy": "coder", "ttl": 0}), ("POST", BOX, {"policy": "coder", "ttl": 2592001}),
             ("POST", BOX, {"policy": "coder", "labels": {"": "x"}}), ("POST", BOX, {"policy": "coder", "name": "a b"}),
             ("POST", BOX, {"policy": "coder", "on_idle": "burn"}), ("POST", BOX, []), ("POST", BOX, "{"),
             ("POST", BOX, {"policy": "coder", "env": {"1": "x"}}), ("POST", BOX, {"policy": "coder", "image": "../x"}),
             ("GET", BOX + "?limit=0", None), ("GET", BOX + "?state=asleep", None), ("GET", BOX + "?after=x", None),
             ("GET", "/v1/events?limit=1001", None), ("POST", SNAP, {"name": "s1"}), ("POST", SNAP, {"sandbox": "x", "name": "/"}))
OF_A_BOX = (("POST", "exec", {}), ("POST", "exec", {"command": "x", "argv": ["x"]}), ("POST", "exec", {"command": ""}),
            ("POST", "exec", {"command": "x", "timeout": -1}), ("POST", "exec", {"argv": []}), ("POST", "exec", {"command": "a\0b"}),
            ("GET", "files?path=relative", None), ("GET", "files", None), ("PUT", "files?path=/workspace/a&mode=9", b"x"),
            ("POST", "files/batch", {"operations": [{"op": "burn", "path": "/x"}]}), ("POST", "restore", {}),
            ("POST", "fork", {"policy": "coder"}), ("POST", "forward?port=0", None))


def malformed(w):
    b = some(w, lambda b: b.usable())
    if b and w.r.random() < 0.5:
        method, tail, body = w.r.choice(OF_A_BOX)
        w.ask(method, w.at(b.id, tail), body, want=(400,))
        w.json("GET", "%s/%s" % (BOX, b.id))
        b.state = w.json("GET", "%s/%s" % (BOX, b.id))[1]["state"]  # whether that resumes it is left open
    else:
        method, target, body = w.r.choice(MALFORMED)
        w.ask(method, target, body, want=(400,))


def events(w):
    _, r = w.json("GET", "/v1/events?limit=%d" % w.r.choice((1, 10, 1000)))
    numbers = [e["sequence"] for e in r["events"]]
    faults = [f for e in r["events"] for f in w.document.faults("Event", e)]
    w.expect(numbers == sorted(set(numbers)) and not faults, "events are in order", numbers[-5:], faults[:3])
    if numbers:
        _, later = w.json("GET", "/v1/events?after=%d" % numbers[-1])
        w.expect(all(e["sequence"] > numbers[-1] for e in later["events"]), "and later ones later", later)


def daemon(w):
    w.expect(w.json("GET", "/v1/health")[1]["status"] == "ok", "health")
    w.expect(sorted(p["name"] for p in w.json("GET", "/v1/policies")[1]["policies"]) == ["coder", "small"], "policies")


def whole(w):
    b = some(w)
    if b:
        w.compare_files(b)


TABLE = ((write, 120), (read, 120), (exec_files, 100), (exec_plain, 90), (show, 120), (listing, 100), (patch, 70),
         (remove, 60), (entries, 60), (batch, 40), (malformed, 40), (unknown, 20), (events, 25), (daemon, 15),
         (snapshots, 20), (whole, 10), (archive, 12), (exec_cancel, 8), (name_taken, 5), (create, 14), (delete, 7),
         (get_or_create, 6), (sleepy, 14), (fork, 4), (restore, 5), (snapshot, 6), (snapshot_gone, 3), (create_short, 3),
         (fetch, 6))


def pick(w):
    if len(w.boxes) - len(w.fading) < 1:
        return create
    return w.r.choices([f for f, _ in TABLE], [n for _, n in TABLE])[0]
