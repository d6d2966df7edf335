#!/usr/bin/python3 -B
"""Group C of the attack catalogue, row by row: secrets, from inside of two sandboxes. rows_c.t [ROW…]"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "functional"), HERE]
from harness import h2, tap  # noqa: E402
from rows import bed_c, case, group_c  # noqa: E402


def main(t):
    h2.needed()
    b = bed_c.BedC(t)
    case.try_rows(t, b, group_c.ROWS, sys.argv[1:])
    t.diag("shapes %d, copies sent back %d" % (b.shapes, b.reflected))
    t.ok(b.shapes >= 60 or sys.argv[1:], "C1 %d shapes" % b.shapes)
    b.end()


tap.run(main, timeout=240)
