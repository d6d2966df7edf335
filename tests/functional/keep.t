#!/usr/bin/python3 -B
"""The audit log over time: rotated on SIGHUP, compressed, anchored by a command, one record proven
without the log; what can be done to it afterwards, all of it found, and what only the anchor shows."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, forge, scene, tap  # noqa: E402

HOST = "api.github.com"


def lines(path):
    if not path.endswith(".zst"):
        with open(path) as f:
            return f.read().splitlines()
    return subprocess.run(["zstd", "-dc", path], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def logs(d):
    return sorted(p for p in glob.glob(os.path.join(d.audit_dir, "audit-*.jsonl*"))
                  if p.endswith((".jsonl", ".zst")))


def copy_log(d, name):
    to = os.path.join(d.dir, name)
    shutil.copytree(d.audit_dir, to, ignore=shutil.ignore_patterns("journal", "key", ".*.new"))
    return to


def packed(d):
    return sum(p.endswith(".zst") for p in logs(d))


def rotate(d, gate, n):
    """Requests, SIGHUP; then one more file is there compressed, and what it was made of is gone."""
    before, written = packed(d), len(d.kinds("admitted"))
    for _ in range(n):
        gate.get(HOST, "/user")
    tap.wait_for(lambda: len(d.kinds("admitted")) >= written + n, 20)  # the logger may be behind
    os.kill(d.daemon.pid, signal.SIGHUP)

    def done():
        gate.get(HOST, "/user")
        return packed(d) > before and not any(p + ".zst" in logs(d) for p in logs(d))
    return tap.wait_for(done, 20, 0.2)


def verified(t, d, *args):
    r = d.command("audit", "verify", "--json", *args)
    return r.returncode, json.loads(r.stdout or "{}"), r.stderr


def prove(t, d, old):
    records = [json.loads(x) for x in lines(old)]
    record = next(r for r in records if r["kind"] == "admitted")
    r = d.command("audit", "prove", str(record["seq"]), d.audit_dir)
    proof = os.path.join(d.dir, "proof.json")
    with open(proof, "w") as f:
        f.write(r.stdout)
    t.ok(r.returncode == 0, "audit prove: a proof of one record", r.stderr)
    key = os.path.join(d.audit_dir, "key.pub")
    r = d.command("audit", "verify", "--proof", proof, "--key", key)
    t.ok(r.returncode == 0 and '"id":"%s"' % record["id"] in r.stdout,
         "which holds with nothing but the key", r.stdout, r.stderr)
    with open(proof) as f:
        text = f.read()
    with open(proof, "w") as f:
        f.write(text.replace("/user", "/uses"))
    r = d.command("audit", "verify", "--proof", proof, "--key", key)
    t.ok(r.returncode == 1 and "not the one that was signed" in r.stderr,
         "and not once the record is changed", r.stdout, r.stderr)


def described(t, d):
    """Every line fits the published schema, and the schema names what the program can write."""
    with open(os.path.join(durward.TOP, "doc", "audit-record.schema.json")) as f:
        schema = json.load(f)
    with open(os.path.join(durward.TOP, "audit", "write", "record.c")) as f:
        source = f.read()
    known = set(re.findall(r'\[RF_[A-Z_]+\] = "([a-z_]+)"', source))
    t.ok(known and known <= set(schema["properties"]), "the schema has every field",
         str(known - set(schema["properties"])))
    kinds = set(re.findall(r'\[RECORD_[A-Z_]+\] = "([a-z_]+)"', source))
    t.eq(kinds, set(schema["properties"]["kind"]["enum"]), "and every kind")
    try:
        import jsonschema
    except ImportError:
        t.skip("each line fits the schema", "python3-jsonschema is missing")
        return
    checker = jsonschema.Draft202012Validator(schema)
    bad = [(e.message, x) for p in logs(d) for x in lines(p) for e in
           checker.iter_errors(json.loads(x))]
    t.ok(not bad, "each of the log's lines fits it", str(bad[:3]))


class Copy:
    """A copy of the whole log in plain files, to be damaged."""

    def __init__(self, t, d, kept):
        self.t, self.d, self.kept = t, d, kept
        self.dir = t.mkdir("tampered")
        self.key = os.path.join(d.dir, "auditor.pub")  # as it was kept elsewhere
        shutil.copy(os.path.join(d.audit_dir, "key.pub"), self.key)
        self.files = {os.path.basename(p)[:28]: [x.encode() for x in lines(p)] for p in logs(d)}
        with open(os.path.join(d.audit_dir, "head")) as f:
            self.head = f.read()
        self.tried = self.missed = 0

    def put(self, files, head=None, public=None):
        for name in os.listdir(self.dir):
            os.remove(os.path.join(self.dir, name))
        for name, data in files.items():
            with open(os.path.join(self.dir, name), "wb") as f:
                f.write(data if isinstance(data, bytes) else b"".join(x + b"\n" for x in data))
        with open(os.path.join(self.dir, "head"), "w") as f:
            f.write(head or self.head)
        shutil.copy(public or self.key, os.path.join(self.dir, "key.pub"))

    def verify(self, anchor=False, key=True):
        """-> (exit status, what it says)"""
        args = (["--key", self.key] if key else []) + (["--anchor", self.kept] if anchor else [])
        r = self.d.command("audit", "verify", *args, self.dir)
        return r.returncode, r.stdout + r.stderr

    def found(self, what, files, head=None):
        self.put(files, head)
        code, said = self.verify()
        self.tried += 1
        if code != 1:
            self.missed += 1
            self.t.ok(False, "verify finds " + what, str(code), said)

    def edited(self, name, change):
        files = dict(self.files)
        files[name] = change(list(files[name]))
        return files


def places(line):
    """A byte of each sort in a line: of each key, each value, and of what stands between them."""
    spots = {"first": 0, "last": len(line) - 1}
    for m in re.finditer(rb'"([a-z_]+)":("?)([^",}]*)', line):
        key, at = m.group(1).decode(), m.start(3)
        spots[key + ", key"] = m.start(1)
        spots[key + ", colon"] = m.end(1) + 1
        for where, i in (("begin", at), ("middle", (at + m.end(3)) // 2), ("end", m.end(3) - 1)):
            if m.group(3):
                spots["%s, %s" % (key, where)] = i
        spots[key + ", behind"] = m.end(3)
    return spots


def bytes_changed(c):
    """In a line of each kind; a bit, or the byte gone, or one more. (Every byte of a file in turn:
    tests/unit/test_verify.)"""
    seen = set()
    for name, rows in reversed(c.files.items()):
        for i, line in enumerate(rows):
            kind = json.loads(line)["kind"]
            for where, at in places(line).items() if kind not in seen else ():
                def put(with_, at=at, i=i, line=line):
                    return lambda x: x[:i] + [line[:at] + with_ + line[at + 1:]] + x[i + 1:]
                what = "%s of %s (%s)" % (where, kind, name)
                way = c.tried % 3
                c.found(what, c.edited(name, put((bytes([line[at] ^ 1]), b"",
                                                  line[at:at + 1] * 2)[way])))
            seen.add(kind)


def lines_moved(c):
    names = list(c.files)
    for name in names:
        n = len(c.files[name])
        for i in (0, n // 2, n - 1):
            c.found("record %d of %s dropped" % (i, name),
                    c.edited(name, lambda x, i=i: x[:i] + x[i + 1:]))
            c.found("record %d of %s twice" % (i, name),
                    c.edited(name, lambda x, i=i: x[:i + 1] + x[i:]))
            c.found("a foreign record before %d of %s" % (i, name),
                    c.edited(name, lambda x, i=i: x[:i] + [c.files[names[0]][0]] + x[i:]))
            if i + 1 < n:
                c.found("records %d and %d of %s exchanged" % (i, i + 1, name),
                        c.edited(name, lambda x, i=i: x[:i] + [x[i + 1], x[i]] + x[i + 2:]))
        c.found("%s deleted" % name, {k: v for k, v in c.files.items() if k != name})
        c.found("%s empty" % name, c.edited(name, lambda x: []))
    c.found("two files exchanged", dict(c.files, **{names[0]: c.files[names[1]],
                                                   names[1]: c.files[names[0]]}))
    last = c.files[names[-1]]
    whole = b"".join(x + b"\n" for x in last)
    for cut in (1, 2, len(last[-1]) // 2, len(last[-1]) + 1, len(whole) // 2):
        c.found("the last %d bytes cut" % cut, dict(c.files, **{names[-1]: whole[:-cut]}))
    for name in names:
        for i, line in enumerate(c.files[name]):
            if b'"kind":"checkpoint"' in line and (name, i + 1) != (names[-1], len(last)):
                files = {k: v for k, v in c.files.items() if k <= name}
                files[name] = c.files[name][:i + 1]
                c.found("the tail cut behind the checkpoint %d of %s" % (i, name), files)


def spread(c, rows):
    """Lines of the whole log, back in its files."""
    files, at = {}, 0
    for name, had in c.files.items():
        files[name] = rows[at:at + len(had)]
        at += len(had)
    return files


def forged(t, c):
    """Chained anew, with and without a key of the forger's own."""
    rows = [x for had in c.files.values() for x in had]
    name = list(c.files)[-1]
    changed = [x.replace(b"/user", b"/none") for x in rows]
    t.ok(changed != rows and forge.chained(rows) == rows, "the forger chains as the logger does")
    without = forge.chained([x for x in rows if b'"kind":"completed"' not in x])
    c.found("an edit, chained anew", spread(c, forge.chained(changed)))
    c.found("records left out, chained anew", spread(c, without))
    c.found("neither, once checkpoints are left out too", spread(c, forge.chained(
        [x for x in changed if b'"kind":"checkpoint"' not in x])))
    key = forge.Key(t.mkdir("forger"))
    all_new = forge.chained(changed, key)
    head = forge.head(name, all_new, key)
    c.found("an edit, signed anew, under the old head", spread(c, all_new))
    c.found("the whole log signed anew with another key", spread(c, all_new), head)
    c.put(spread(c, all_new), head, key.public)
    t.eq(c.verify()[0], 1, "also with its public key in the directory: to who kept ours (--key)")
    code, said = c.verify(key=False)
    t.eq(code, 0, "not to who trusts the key of the directory") or t.diag(said)
    r = c.d.command("audit", "verify", "--anchor", c.kept, c.dir)
    t.ok(r.returncode != 0, "whom the anchor tells", r.stdout, r.stderr)


def packed_changed(c, path):
    """Bits of a compressed file. One that zstd does not read (RFC 8878 3.1.1.1.1.3) changes no line."""
    name = os.path.basename(path)
    others = {k: v for k, v in c.files.items() if k != name[:28]}
    with open(path, "rb") as f:
        data = f.read()
    for at in list(range(12)) + [len(data) // 3, len(data) // 2, len(data) - 3]:
        if at == 4:
            continue
        bad = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]
        c.found("byte %d of %s" % (at, name), dict(others, **{name: bad}))
    c.found("a compressed file cut", dict(others, **{name: data[:len(data) * 2 // 3]}))


def tampered(t, d, kept, early):
    c = Copy(t, d, kept)
    c.put(c.files)
    code, said = c.verify(anchor=True)
    t.ok(code == 0 and len(c.files) >= 3, "a copy of the log in plain files verifies", said)
    bytes_changed(c)
    lines_moved(c)
    forged(t, c)
    packed_changed(c, [p for p in logs(d) if p.endswith(".zst")][0])
    t.ok(c.missed == 0 and c.tried > 150, "%d of %d changes are found with the public key alone" % (
        c.tried - c.missed, c.tried))
    # with the head that was written then, an older log is a good one; only the anchor knows more
    r = d.command("audit", "verify", "--key", c.key, early)
    a = d.command("audit", "verify", "--key", c.key, "--anchor", kept, early)
    t.eq((r.returncode, a.returncode), (0, 1),
         "rolled back to an earlier copy: the anchor is needed, and tells") or \
        t.diag(r.stdout + r.stderr + a.stdout + a.stderr)


def shared(t, d, kept):
    """A daemon and runs have one anchor: each checkpoint of it stands in some log, or one was removed."""
    before = len(lines(kept))
    for word in ("one", "two"):
        r = d.run(["true"])
        t.ok(r.returncode == 0, "a run beside the daemon, with its anchor: " + word, r.stderr)
    runs = glob.glob(os.path.join(d.audit_dir, "run-*"))
    more = [x for x in lines(kept)[before:] if x.startswith("run-")]
    t.eq(sorted(x.split(" ", 1)[0] for x in more), sorted(map(os.path.basename, runs)),
         "the last checkpoint of each is kept, with its log's name")
    code, v, errors = verified(t, d, "--anchor", kept, d.audit_dir)
    t.ok(code == 0 and len(v["logs"]) == 3, "all logs together hold what the anchor keeps", v, errors)
    code, v, errors = verified(t, d, "--anchor", kept, runs[0])
    t.ok(code == 0 and v["logs"][0]["anchored"] == 1, "a run's own directory: the others' lines are not looked for", v, errors)
    away = os.path.join(d.dir, "away")
    os.rename(runs[1], away)
    code, v, errors = verified(t, d, "--anchor", kept, d.audit_dir)
    bad = [x for x in v["logs"] if not x["ok"]]
    t.ok(code == 1 and len(bad) == 1 and bad[0]["dir"] == runs[1] and "removed" in bad[0]["why"],
         "a run's log that was removed is found out, by its name", v, errors)
    t.eq(verified(t, d, d.audit_dir)[0], 0, "by the anchor alone")
    shutil.copytree(runs[0], runs[1])
    code, v, errors = verified(t, d, "--anchor", kept, d.audit_dir)
    t.ok(code == 1 and [x["dir"] for x in v["logs"] if not x["ok"]] == [runs[1]], "as is another one in its place", v, errors)
    for path in runs:
        shutil.rmtree(path)
    own = [x for x in lines(kept) if not x.startswith("run-")]
    with open(kept, "w") as f:
        f.write("".join(x + "\n" for x in own))
    t.eq(verified(t, d, "--anchor", kept, d.audit_dir)[0], 0, "who removed runs takes their lines out")


def main(t):
    s = scene.Scene(t)
    d = s.d
    kept = os.path.join(d.dir, "kept")
    d.audit["anchor"] = {"command": ["/bin/sh", "-c", "cat >> %s" % kept]}
    d.audit["rotate"] = {"every": "24h"}
    address = s.listener()
    d.serve()
    gate = s.gate(address)
    t.ok(rotate(d, gate, 5), "SIGHUP: a new file, the old one compressed", str(logs(d)))
    old = logs(d)[0]
    t.eq(json.loads(lines(old)[-1])["kind"], "checkpoint", "which ends with a checkpoint")
    tap.wait_for(lambda: os.path.exists(kept) and os.path.getsize(kept), 20)
    t.eq(lines(kept)[0], lines(old)[-1], "and its copy is with the anchor")
    r = d.command("audit", "query", "--json", "--kind", "admitted", d.audit_dir)
    t.ok(r.stdout.count('"admitted"') >= 6, "audit query reads the compressed file", r.stdout,
         r.stderr)
    prove(t, d, old)
    early = copy_log(d, "early")
    t.ok(rotate(d, gate, 3), "and again")
    tap.wait_for(lambda: len(lines(kept)) >= 2, 20)
    code, v, errors = verified(t, d, "--anchor", kept, d.audit_dir)
    t.ok(code == 0 and v["logs"][0]["anchored"] >= 2, "the log holds what the anchor keeps", v,
         errors)
    code, v, errors = verified(t, d, early)
    t.ok(code == 0, "an older copy with its own head looks good by itself", str(v), errors)
    code, v, errors = verified(t, d, "--anchor", kept, early)
    t.ok(code == 1 and "rolled back" in v["logs"][0]["why"], "but not to the anchor", str(v), errors)
    t.part(shared, t, d, kept)
    t.eq(d.stop(), 0, "the daemon ends well")
    t.eq(lines(kept)[-1], lines(logs(d)[-1])[-1], "what it wrote last is with the anchor")
    described(t, d)
    code, v, errors = verified(t, d, d.audit_dir)
    t.ok(code == 0 and v["logs"][0]["checkpoints"] >= 3, "the whole log verifies", str(v), errors)
    t.part(tampered, t, d, kept, early)


tap.run(main)
