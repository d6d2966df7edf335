"""`durward sandbox sync` under way: its events as they come, and both trees as they are."""
import json
import os
import subprocess
import threading

from . import tap
from .durward import program

LOOK = r'''
import os, sys, base64, json
top, rows = sys.argv[1], {}
for base, dirs, files in os.walk(top):
    for x in files:
        p = os.path.join(base, x)
        if os.path.islink(p) or not os.path.isfile(p):
            continue
        rows[os.path.relpath(p, top)] = base64.b64encode(open(p, "rb").read()).decode()
print(json.dumps(rows))
'''


def here(top):
    """{path: bytes} of regular files; none of a conflict's or of a write under way."""
    rows = {}
    for base, _, files in os.walk(top):
        for x in files:
            p = os.path.join(base, x)
            if not os.path.islink(p) and os.path.isfile(p):
                rows[os.path.relpath(p, top)] = open(p, "rb").read()
    return rows


def inside(c, sid, top="/workspace"):
    import base64
    code, out = c.sh(sid, "/usr/bin/python3 - %s <<'END'\n%sEND" % (top, LOOK))
    assert code == 0, out
    return {k: base64.b64decode(v) for k, v in json.loads(out).items()}


class Sync:
    def __init__(self, d, *words):
        self.p = subprocess.Popen([program(), "sandbox", "sync", "--json", "--socket", d.socket, *words], env=d.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=tap.die_with_parent)
        self.events, self.err = [], b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.p.stdout:
            self.events.append(json.loads(line))
        self.err = self.p.stderr.read()

    def of(self, kind):
        return {e.get("path") for e in list(self.events) if e["type"] == kind}

    def ready(self, seconds=20):
        return tap.wait_for(lambda: any(e["type"] == "ready" for e in list(self.events)) or self.p.poll() is not None, seconds, 0.02) \
            and self.p.poll() is None

    def end(self, signal=None):
        """-> its exit code"""
        if signal is None:
            self.p.terminate()
        else:
            self.p.send_signal(signal)
        code = self.p.wait(20)
        self.reader.join(5)
        return code
