#!/usr/bin/python3 -B
"""F6: A full disk under the audit: every request is 503 and nothing reaches an origin; when there is
room again it recovers by itself, and the log still verifies."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import scene, tap  # noqa: E402


def fill(path):
    """Take every last byte."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    for size in (1 << 16, 512, 1):
        try:
            while True:
                os.write(fd, b"\xff" * size)
        except OSError:
            pass
    os.close(fd)


def main(t):
    if os.geteuid() != 0:
        raise tap.Skip("mounting a small file system needs root")
    s = scene.Scene(t)
    audit = s.d.audit_dir
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", audit])
    if r.returncode != 0:
        raise tap.Skip("cannot mount a tmpfs")
    t.cleanup(lambda: subprocess.run(["umount", "-l", audit]))
    address = s.listener()
    s.d.serve()
    gate = s.gate(address)
    t.eq([gate.get(h, p).status for h, p in (("api.github.com", "/user"),
                                             ("deps.example.com", "/"))], [200, 200],
         "with room both kinds of rule are served")
    filler = os.path.join(audit, "filler")
    fill(filler)

    def closed():
        fill(filler)
        return gate.get("api.github.com", "/user").status == 503
    start = time.monotonic()
    t.ok(tap.wait_for(closed, 20, 0.01), "with a full disk requests become 503")
    t.diag("%.2f s, %d requests were still within the credit granted before" % (
        time.monotonic() - start, len(s.github.requests) - 1))
    tap.wait_for(lambda: gate.get("deps.example.com", "/").status == 503, 20, 0.01)
    seen = len(s.github.requests), len(s.plain.requests)
    got = [gate.get(h, p) for h, p in (("api.github.com", "/user"), ("deps.example.com", "/"),
                                       ("api.github.com", "/repos/acme/x"))
           for _ in range(5)]
    t.ok(all(r.status == 503 and r.code == "audit_unwritable" for r in got),
         "each is 503 audit_unwritable", str([(r.status, r.code) for r in got]))
    t.eq((len(s.github.requests), len(s.plain.requests)), seen, "and the origins get nothing")
    os.unlink(filler)
    start = time.monotonic()
    t.ok(tap.wait_for(lambda: gate.get("api.github.com", "/user").status == 200, 5),
         "with room again it recovers")
    t.diag("recovered after %.2f s" % (time.monotonic() - start))
    t.ok(tap.wait_for(lambda: gate.get("deps.example.com", "/").status == 200, 5), "both kinds")
    t.eq(s.d.stop(), 0, "the daemon ends well")
    s.judge([(s.github, s.github_credential), (s.plain, None)], (), "disk")
    v = s.d.command("audit", "verify", audit)
    t.ok(v.returncode == 0, "the log verifies", v.stdout, v.stderr)


tap.run(main)
