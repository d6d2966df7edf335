#!/usr/bin/python3 -B
"""A sample of tests/mutations/LIST, others with each commit: a check that is taken out is missed by a unit
test. All of them: make mutation-test."""
import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from harness import durward, tap  # noqa: E402

SAMPLE, SECONDS = 6, 120
TREE = os.path.join(durward.TOP, "tests/mutations")


def seed():
    """By the list: another sample whenever it changes, the same one wherever this tree is tested."""
    with open(os.path.join(TREE, "LIST"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def main(t):
    build = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(durward.program()))))
    if not os.path.exists(os.path.join(build, "Makefile")):
        raise tap.Skip("the program under test lies in no build directory: %s" % build)
    word = seed()
    p = t.popen([os.path.join(TREE, "run"), "--beside", build, "--sample", str(SAMPLE), "--seed", word,
                 "--seconds", str(SECONDS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = p.communicate()[0]
    tried = [x for x in out.splitlines() if x.startswith(("killed ", "equal ", "ALIVE "))]
    for line in tried:
        t.ok(not line.startswith("ALIVE "), "mutation " + line)
    t.ok(p.returncode == 0 and tried, "a sample of the list %s was tried" % word[:12], out)


tap.run(main, timeout=180)
