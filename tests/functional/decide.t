#!/usr/bin/python3 -B
"""The model of tests/decide, written from the documents alone, and the C decide alike: policies and requests by
chance. DURWARD_DECIDE_CASES says how many (default 50,000), DURWARD_DECIDE_SEED repeats a run: the seed is
printed. All of them: make decide-model."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import durward, tap  # noqa: E402

CASES = os.environ.get("DURWARD_DECIDE_CASES", "50000")
SEED = os.environ.get("DURWARD_DECIDE_SEED") or str(random.SystemRandom().randrange(1 << 31))


def main(t):
    driver = os.environ.get("DURWARD_DECIDE") or os.path.join(os.path.dirname(durward.program()), "../../decide/decide")
    if not os.access(driver, os.X_OK):
        raise FileNotFoundError("the program of tests/decide is missing: %s" % driver)
    p = t.popen([os.path.join(os.path.dirname(durward.SUITE), "decide/hold"), "--cases", CASES, "--seed", SEED,
                 "--driver", driver], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = p.communicate()[0].splitlines()
    t.ok(p.returncode == 0, "the model and the C decide alike, %s cases" % CASES, *out)
    t.diag(out[-1] if out else "nothing was said")


tap.run(main, timeout=180)
