#!/usr/bin/python3 -B
"""Group D of the attack catalogue, row by row: the network. rows_d.t [ROW…]"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "functional"), HERE]
from harness import tap  # noqa: E402
from rows import bed, case, group_d  # noqa: E402


def main(t):
    b = bed.Bed(t)
    if b.names.why:
        raise tap.Skip("no capturing name server: " + b.names.why)
    group_d.known(b)
    case.try_rows(t, b, group_d.ROWS, sys.argv[1:])
    t.part(b.control)
    b.end()


tap.run(main, timeout=240)
