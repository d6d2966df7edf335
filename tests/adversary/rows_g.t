#!/usr/bin/python3 -B
"""Group G of the attack catalogue, row by row, behind each wall: bubblewrap, the same with containers inside, containers of a
Docker Engine, gVisor, a virtual machine: the controller and the escape from a sandbox. Rows that other tests hold stand in
ROWS. Of a virtual machine a sample, unless `make walls` asks for it."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "functional"), HERE]
from harness import api, durward, tap, walls  # noqa: E402
from rows import group_g  # noqa: E402

LIMITS = {"memory": "64MiB", "pids": 48, "cpu": "50%", "disk": "8MiB", "files": 64}
# of its memory gVisor has a part
MORE = {"gvisor": {"memory": "192MiB"}}


def place(t, d, c, wall):
    p = group_g.Place(t, d, c, wall, wall)
    if wall == "microvm" and not walls.whole():
        for row in group_g.SHORT:
            t.part(row, p)
    else:
        for row in group_g.EACH:
            t.part(row, p)
        for row in (group_g.g8, group_g.g12):
            t.part(row, p, "small-" + wall)
        if walls.whole() or wall in ("nested", "docker"):  # the others are compared by tests of their own
            t.part(walls.compare, t, wall, walls.found(c, p.box, 60))
    t.part(group_g.nothing_runs, p)


def main(t):
    d = durward.Durward(t)
    d.policies = {"plain": {"rules": [], "sandbox": {"root": "writable"}}}
    here = dict(walls.Walls(t).each("group G", walls.WALLS))
    for wall, settings in here.items():
        d.policies[wall] = {"rules": [], "sandbox": settings or {"root": "writable"}}
        d.policies["small-" + wall] = {"rules": [], "sandbox": {**LIMITS, **settings, **MORE.get(wall, {})}}
    d.serve(env={"HOST_VARIABLE": group_g.VARIABLE})
    c = api.Api(d.socket, timeout=110)
    t.part(group_g.g1_who, t, d)
    t.part(group_g.g2, t, c)
    t.part(group_g.g9, t, d)
    for wall in here:
        t.part(place, t, d, c, wall)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=1200 if walls.whole() else 300)
