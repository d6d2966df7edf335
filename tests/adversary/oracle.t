#!/usr/bin/python3 -B
"""Every head and body that our HTTP/1 code accepts, Node's parser (llhttp, strict) accepts too and
reads the same; over our corpora and their mutations. ORACLE_INPUTS and ORACLE_SEED in the environment
ask for more or other ones."""
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "functional"))
from harness import tap  # noqa: E402


def program():
    return os.environ.get("DURWARD_READINGS", os.path.join(
        os.path.dirname(TESTS), "build", "tests", "oracle", "readings"))


def main(t):
    node = shutil.which("node")
    if node is None:
        raise tap.Skip("node is not installed: no second reading of HTTP/1")
    count, seed = int(os.environ.get("ORACLE_INPUTS", "200000")), \
        int(os.environ.get("ORACLE_SEED", "20261121"))
    start = time.monotonic()
    r = subprocess.run([node, "--no-deprecation", os.path.join(TESTS, "oracle", "llhttp.cjs"),
                        program(), os.path.join(TESTS, "corpus"), str(count), str(seed)],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not t.eq(r.returncode, 0, "the comparison ran"):
        t.diag(tap.clip(r.stderr))
        return
    got = json.loads(r.stdout)
    t.diag("llhttp %s, seed %d: %d inputs, %d accepted by us, %d of them with a body, %.1f s" % (
        got["llhttp"], seed, got["tried"], got["accepted"], got["bodies"], time.monotonic() - start))
    t.ok(got["tried"] >= count and got["accepted"] > count // 20 and got["bodies"] > count // 100,
         "%d inputs, and enough of them accepted to tell" % got["tried"])
    t.ok(not got["findings"], "llhttp (strict) reads each accepted one as we do",
         "%d findings" % len(got["findings"]),
         *["%s: %s\n%s" % (f["name"], f["why"], f["data"][:600]) for f in got["findings"][:10]])


tap.run(main, timeout=int(os.environ.get("ORACLE_SECONDS", "120")))
