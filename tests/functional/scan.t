#!/usr/bin/python3 -B
"""C21: the deep scan, during load. Inside: environment, every readable file, all of /proc. Outside, as
root: every readable mapping of every role. The secret is found nowhere but in vault and injector;
the same scanner finds what was planted in the gate. Of files that are older than the secret ./runtests reads
every sixteenth, others each day; `make scan` all of them (DURWARD_SCAN=all)."""
import ctypes
import itertools
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, scan, scene, tap  # noqa: E402

HELD = "held.example.com"
EVERY = 1 if os.environ.get("DURWARD_SCAN") == "all" else 16
LOOP = ("while [ -e /tmp/go ]; do [ ! -e /tmp/calm ] || sleep 0.3; curl -s -o /dev/null -H \"Authorization: token $GITHUB_TOKEN\" "
        "https://api.github.com/user; curl -s -o /dev/null https://deps.example.com/x; "
        "curl -s -o /dev/null https://api.openai.com/v1/models; done")


def holder(planted, go):
    """Sends a body full of the planted canary and does not end it before `go`."""
    def handler(req, conn):
        conn.head(200, [("Transfer-Encoding", "chunked")])
        for _ in range(200):
            conn.chunk(planted * 200)
        go.wait(50)
        conn.chunk(b"")
    return handler


def key_of(d):
    """The CA's private number, wherever `ca.dir` keeps it."""
    for folder, _, names in os.walk(d.ca_dir):
        for n in names:
            r = subprocess.run(["openssl", "pkey", "-in", os.path.join(folder, n), "-noout",
                                "-text"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            lines = r.stdout.decode("latin-1").splitlines()
            if r.returncode == 0 and any(x.startswith("priv:") for x in lines):
                at = next(i for i, x in enumerate(lines) if x.startswith("priv:"))
                part = itertools.takewhile(lambda x: x.startswith("    "), lines[at + 1:])
                return bytes.fromhex("".join(part).replace(":", "").replace(" ", ""))[-32:]
    return None


STARTERS = ("parent", "builder")  # they start other programs, which are confined by themselves


def shut_in(t, pid, role, abi):
    """Filter, privileges, mappings, and where it keeps secrets; a line of figures."""
    with open("/proc/%d/status" % pid) as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    both = [m for m in scan.mappings(pid) if "w" in m[2] and "x" in m[2]]
    t.ok(not both, "%s: no mapping is writable and executable" % role, *[str(m) for m in both])
    filters = int(status.get("Seccomp_filters", "1"))
    if role not in STARTERS:
        t.ok(status["Seccomp"] == "2" and filters >= 1 and status["NoNewPrivs"] == "1" and int(status["CapEff"], 16) == 0,
             "%s: a system-call filter, no new privileges, no capability" % role,
             *["%s: %s" % (k, status.get(k)) for k in ("Seccomp", "NoNewPrivs", "CapEff")])
    kept = "secret memory: none"
    if role in ("vault", "injector"):
        with open("/proc/%d/smaps" % pid) as f:
            locked = re.search(r"^VmFlags:(?=.* lo\b)(?=.* dd\b)", f.read(), re.M)
        hidden = any("secretmem" in name for _, _, _, name in scan.mappings(pid))
        t.ok(hidden or locked, "%s: secrets lie in memfd_secret, or locked and in no dump" % role)
        kept = "secret memory: " + ("memfd_secret" if hidden else "locked, not dumped (no memfd_secret here)")
    t.diag("%s: %s, Landlock %s, 0 mappings writable and executable, %s" % (
        role, "default-deny filter" if status["Seccomp"] == "2" else "no filter",
        "version %d" % abi if abi and role not in STARTERS else "none", kept))


def landlock():
    """The kernel's version of it, 0 for none; a role that is refused it does not start. Sanitizer builds go without."""
    abi = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return abi if abi > 0 and not durward.sanitized() else 0


def roles(t, s, box, planted, key):
    found = s.d.roles(box.process.pid)
    t.ok({r for _, r in found} >= {"gate", "injector", "vault", "signer", "dialer", "logger"},
         "every role runs", str(found))
    total, leaked, abi = 0, 0, landlock()
    for pid, role in found:
        t.part(shut_in, t, pid, role, abi)
        own = scan.Scanner(github=s.github_secret, openai=s.openai_secret, planted=planted)
        if key:  # as in the file's DER, and as OpenSSL keeps numbers: lowest byte first
            own.needles[key] = ("ca-key", "raw")
            own.needles[key[::-1]] = ("ca-key", "reversed")
        try:
            hits, hidden, odd = scan.scan_process(pid, own, "%s %d" % (role, pid))
        except FileNotFoundError:
            continue
        total += own.bytes
        t.ok(not odd, "%s: every readable mapping could be read" % role, *odd)
        t.ok(own.bytes > 500000, "%s: %d bytes were searched" % (role, own.bytes))
        secrets = [h for h in hits if h[0] in ("github", "openai")]
        if role in ("vault", "injector"):
            t.ok(secrets or hidden, "%s: holds the secret, or a secret mapping (control)" % role)
        else:
            t.ok(not secrets, "%s: 0 copies of a secret" % role,
                 *["%s as %s in %s" % h for h in secrets])
        if role == "gate":
            t.ok([h for h in hits if h[0] == "planted"] or len(
                [1 for _, r in found if r == "gate"]) > 1, "gate: the planted canary is found "
                "(control)", "no copy of it in %d bytes" % own.bytes)
            s.planted_found |= bool([h for h in hits if h[0] == "planted"])
        keys = [h for h in hits if h[0] == "ca-key"]
        leaked += len(secrets) * (role not in ("vault", "injector")) + len(keys) * (role != "signer")
        if role == "signer":
            t.ok(keys or hidden, "signer: the CA's key is found, or a secret mapping (control)")
        elif key:
            t.ok(not keys, "%s: 0 copies of the CA's key" % role)
    t.diag("role scan: %d processes, %d bytes" % (len(found), total))
    t.tally(canaries=leaked, searched=total)
    t.ok(s.planted_found, "some gate holds the planted canary (control)")


def main(t):
    s = scene.Scene(t)
    go = threading.Event()
    t.cleanup(go.set)
    planted = scan.canary("planted-")
    s.planted_found = False
    held = s.add(HELD, holder(planted, go))
    s.rule(allow=HELD)
    box = durward.Sandbox(s.d)
    box.sh("touch /tmp/go; (%s) >/dev/null 2>&1 & (%s) >/dev/null 2>&1 &" % (LOOP, LOOP))
    box.sh("curl -sN --limit-rate 20k https://%s/ >/dev/null 2>&1 &" % HELD)
    t.ok(tap.wait_for(lambda: held.requests and len(s.github.requests) > 3 and
                      len(s.openai.requests) > 3, 10), "the load runs")
    if os.geteuid() == 0:
        key = key_of(s.d)
        t.ok(key, "the CA's key is known to the scan")
        roles(t, s, box, planted, key)
    else:
        t.skip("every mapping of every role", "reading other processes' memory needs root")
    box.sh("touch /tmp/calm")  # of the time that all files take, requests as fast as they go would be most
    before = len(s.github.requests)
    if durward.sanitized():
        t.diag("/usr is read by this test on the build as released: it is the same in a sandbox of this one")
    else:
        one = scan.Scanner(github=s.github_secret)  # of one secret
        scan.scan_sandbox(t, box, one, share="%d/%d" % (int(time.time() // 86400) % EVERY + 1, EVERY))
    scan.scan_sandbox(t, box, s.scanner)
    t.ok(len(s.github.requests) > before, "the load ran during the scan")
    box.sh("rm /tmp/go")
    go.set()
    box.sh("wait; sleep 0.5")
    status, err = box.close()
    t.eq(status, 0, "the sandbox ended well") or t.diag(err)
    s.judge([(s.github, s.github_credential), (s.openai, s.openai_credential), (s.plain, None),
             (held, None)], [err], "scan")


tap.run(main, timeout=240)
