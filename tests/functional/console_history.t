#!/usr/bin/python3 -B
"""A record that is a day old, among a million, on a live daemon: the console in a headless Chromium finds it, and makes
a case of it, by the log's index. A case has the same proofs where the index is gone, and where it is wrong."""
import glob
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import api, durward, nginx, scene, tap  # noqa: E402

RECORDS = int(os.environ.get("DURWARD_RECORDS", "1000000"))
AGE = 26 * 3600  # seconds; the log made is 17 minutes long
TEXT = "Xk9Qz-exfil"  # in four of a million, the newest of them in the middle
SECONDS = 4.0  # to be found and on the page, beside other tests
SHARE = 0.2  # of the processor time that it takes without the index
SCRIPT = os.path.join(durward.INSIDE, "console_history.mjs")


def make_log():
    return os.environ.get("DURWARD_MAKE_LOG") or os.path.join(os.path.dirname(durward.program()), "../../../bench/make_log")


def fill(t, s):
    """The daemon's log becomes one that began a day ago. The first run says whose the files are."""
    s.d.serve()
    owner = os.stat(os.path.join(s.d.audit_dir, "key.pub"))
    s.d.stop()
    for name in os.listdir(s.d.audit_dir):
        path = os.path.join(s.d.audit_dir, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    began = time.monotonic()
    r = subprocess.run([make_log(), s.d.audit_dir, str(RECORDS), str(int(time.time()) - AGE)], capture_output=True, text=True,
                       timeout=240, check=False)
    t.ok(r.returncode == 0 and int(r.stdout) >= RECORDS, "a log of %d records (%.0f s)" % (RECORDS, time.monotonic() - began), r.stderr)
    for folder, _, names in os.walk(s.d.audit_dir):
        for path in [folder] + [os.path.join(folder, x) for x in names]:
            os.chown(path, owner.st_uid, owner.st_gid)


def spent(s, *words):
    """-> (processor seconds, what it printed)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = s.d.command(*words, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, r.stdout


def by_index(t, s, a):
    """Found, and proven, without reading the log."""
    whole, said = spent(s, "audit", "query", "--json", "--no-index", "--text", TEXT, s.d.audit_dir)
    lines = said.splitlines()
    t.eq(len(lines), 4, "the records looked for are there")
    took, said = spent(s, "audit", "query", "--json", "--text", TEXT, s.d.audit_dir)
    t.eq(said.splitlines(), lines, "the index finds the same")
    t.ok(took < whole * SHARE, "in %.2f s of processor time; without it %.2f s" % (took, whole))
    took, said = spent(s, "audit", "case", "--text", TEXT, s.d.audit_dir)
    case = json.loads(said)
    t.eq([r["line"] for r in case["records"]], lines, "a case has them")
    t.eq(case["verified"], {"records": 4, "unsigned": 0}, "and was checked")
    t.ok(took < whole * 2 * SHARE, "in %.2f s of processor time" % took)
    began = time.monotonic()
    v = a.ask("GET", "/v1/audit/query?text=" + TEXT)
    t.ok(len(v["records"]) == 4 and time.monotonic() - began < SECONDS, "the API finds them in %.2f s" % (time.monotonic() - began), str(v)[:500])
    began = time.monotonic()
    v = a.ask("GET", "/v1/audit/case?text=" + TEXT)
    t.ok(v["records"] == case["records"] and time.monotonic() - began < SECONDS, "and makes the case in %.2f s" % (time.monotonic() - began))
    return case


def spread(t, s):
    """Records all over the log, some beside each other, some far apart, the newest of the daemon's own time: their
    proofs hold, and a log read from its beginning gives the same."""
    plain = spent(s, "audit", "case", "--host", "middle.example.com", "--limit", "2000", s.d.audit_dir)[1]
    case = json.loads(plain)
    t.ok(len(case["records"]) > 50 and len(case["checkpoints"]) > 5, "%d records by %d checkpoints" % (len(case["records"]), len(case["checkpoints"])))
    path = os.path.join(s.d.dir, "case.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(plain)
    key = os.path.join(s.d.audit_dir, "key.pub")
    r = s.d.command("audit", "verify", "--json", "--case", path, "--key", key)
    t.eq(json.loads(r.stdout or "{}"), {"ok": True, "records": len(case["records"]), "unsigned": 0}, "each is proven") or t.diag(r.stderr)
    away = os.path.join(s.d.dir, "indexes")
    blocks = sorted(glob.glob(os.path.join(s.d.audit_dir, "*.blk")))
    t.ok(len(blocks) >= 3, "%d files have an index" % len(blocks))
    os.mkdir(away)

    def same(what):
        took, said = spent(s, "audit", "case", "--host", "middle.example.com", "--limit", "2000", s.d.audit_dir)
        again = json.loads(said or "{}")
        t.eq((again.get("records"), again.get("checkpoints")), (case["records"], case["checkpoints"]), "%s: the same (%.1f s)" % (what, took))
    # another file's index: it says wrong places, or none at all
    shutil.copy(blocks[0], os.path.join(away, "first"))
    shutil.copyfile(blocks[1], blocks[0])
    same("with a wrong index")
    shutil.copyfile(os.path.join(away, "first"), blocks[0])
    for path in blocks:
        shutil.move(path, away)
    same("without an index")
    for path in blocks:
        shutil.move(os.path.join(away, os.path.basename(path)), path)
    same("with the index again")


def page(t, s, port):
    chromium, node = shutil.which("chromium"), shutil.which("node")
    modules = os.path.join(durward.clients_dir(), "node_modules")
    if not chromium or not node or not os.path.isdir(os.path.join(modules, "playwright-core")):
        t.skip("the page in a browser", "chromium, node or playwright-core is not there")
        return
    folder = t.mkdir("shots")
    home = tempfile.mkdtemp(prefix="durward-")  # the browser's socket in it has a path of 107 bytes
    t.cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    link = s.d.command("console", "--socket", s.d.socket).stdout.strip()
    r = subprocess.run([shutil.which("node"), SCRIPT, modules, chromium, folder, link, TEXT], capture_output=True, text=True,
                       timeout=120, preexec_fn=tap.die_with_parent, check=False,
                       env=dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home, TMPDIR=home))
    t.ok(r.returncode == 0, "the page", r.stdout[-2000:] + r.stderr[-2000:])
    got = json.loads(r.stdout.splitlines()[-1]) if r.returncode == 0 else {}
    t.ok(len(got.get("rows", [])) == 4 and all("paste.rare-place.net" in x for x in got["rows"]), "the page shows the four rows", str(got))
    t.ok(got.get("search", 99) < SECONDS * 1000, "%s ms after Enter" % got.get("search"))
    t.ok(got.get("case", 99999) < SECONDS * 1000, "and has their case %s ms after the click" % got.get("case"))
    t.ok(got.get("rare") == 0, "a text that stands nowhere is known to stand nowhere, %s ms after Enter" % got.get("nothing"), str(got))
    t.ok(got.get("nothing", 99999) < SECONDS * 1000, "in time")
    r = s.d.command("audit", "verify", "--json", "--case", os.path.join(folder, "case.json"), "--key", os.path.join(s.d.audit_dir, "key.pub"))
    t.eq(json.loads(r.stdout or "{}"), {"ok": True, "records": 4, "unsigned": 0}, "which the command verifies") or t.diag(r.stderr)
    artifacts = os.environ.get("TEST_ARTIFACTS")
    if artifacts:
        shutil.copytree(folder, os.path.join(artifacts, "console_history"), dirs_exist_ok=True)


def main(t):
    if not os.path.exists(make_log()):
        raise tap.Skip("bench/make_log is not built: make bench/make_log")
    s = scene.Scene(t)
    port = nginx.free_port()
    s.d.listen.append({"console": "127.0.0.1:%d" % port})
    address = s.listener()
    fill(t, s)
    s.d.serve()
    s.gate(address).get("api.github.com", "/user")
    s.d.settle()
    a = api.Api(s.d.socket, timeout=130)
    t.part(by_index, t, s, a)
    t.part(spread, t, s)
    t.part(page, t, s, port)
    v = a.ask("POST", "/v1/audit/verify")
    t.ok(v.get("ok"), "the log is whole", str(v)[:500])
    a.close()
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=600)
