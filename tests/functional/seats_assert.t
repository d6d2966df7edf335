#!/usr/bin/python3 -B
"""Assertions are on in every build: a role that finds one untrue says where in one line and ends; the
parent starts another, the log says so, and requests go through again."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import seat, seat_bed, tap  # noqa: E402

LIVES = 1.1  # seconds: a role that dies sooner, five times on end, ends the daemon
ROLES = ("gate", "injector", "dialer", "signer", "vault", "logger", "controller")


def wait_said(d, pattern):
    return tap.wait_for(lambda: re.search(pattern, said(d)), 5, 0.05)


def said(d):
    with open(d.log) as f:
        return f.read()


def one(t, bed, role):
    who = bed.seats.take(role)
    who.lives(LIVES)
    d = bed.s.d
    before = len(d.kinds("lifecycle", event="role_ended"))
    who.asserts()
    again = bed.seats.take(role)
    new = again.pid
    again.go()
    line = wait_said(d, r"durward: %s[^\n]*: assertion failed at tests/seats/seat\.c:\d+: what != 'A'\n" % role)
    t.ok(line and new != who.pid, "%s: one line says where, and another is started" % role, said(d)[-600:])
    served = bed.comes_back()
    t.ok(served is True, "%s: a client is served again" % role, repr(served))
    found = d.wait_records(before + 1, "lifecycle", event="role_ended")
    t.ok(found and found[-1]["detail"] == "%s: assertion failed" % role, "%s: the log has it" % role, found)


def main(t):
    bed = seat_bed.Bed(t)
    t.ok(bed.neighbour() is True, "a client is served")
    for role in ROLES:
        one(t, bed, role)
    log = said(bed.s.d)
    t.ok(len(re.findall("assertion failed at", log)) == len(ROLES), "each said it once", log[-600:])


tap.run(main)
