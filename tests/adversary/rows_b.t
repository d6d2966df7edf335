#!/usr/bin/python3 -B
"""Group B of the attack catalogue, row by row: framing, desync, hop-by-hop. rows_b.t [ROW…]"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "functional"), HERE]
from harness import tap  # noqa: E402
from rows import bed, case, group_b  # noqa: E402


def main(t):
    b = bed.Bed(t)
    case.try_rows(t, b, group_b.ROWS, sys.argv[1:])
    t.part(b.control)
    b.end()


tap.run(main, timeout=240)
