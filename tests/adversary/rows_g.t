#!/usr/bin/python3 -B
"""Group G of the attack catalogue, row by row, on bubblewrap, also with containers inside, and in containers of a
Docker Engine, and under gVisor: the controller and the escape from a sandbox. Rows that other tests hold stand in ROWS."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "functional"), HERE]
from harness import api, durward, engine, gvisor, person, tap  # noqa: E402
from rows import group_g  # noqa: E402

LIMITS = {"memory": "64MiB", "pids": 48, "cpu": "50%", "disk": "8MiB", "files": 64}


def place(t, d, c, backend):
    policy, small = {"bwrap": ("plain", "small"), "docker": ("engine", "small-engine"),
                     "nested": ("nested", "small-nested"), "gvisor": ("gvisor", "small-gvisor")}[backend]
    p = group_g.Place(t, d, c, backend, policy)
    for row in group_g.EACH:
        t.part(row, p)
    for row in (group_g.g8, group_g.g12):
        t.part(row, p, small)
    t.part(group_g.nothing_runs, p)


def main(t):
    d = durward.Durward(t)
    d.policies = {"plain": {"rules": [], "sandbox": {"root": "writable"}}, "small": {"rules": [], "sandbox": LIMITS},
                  "nested": {"rules": [], "sandbox": {"nested": True}},
                  "small-nested": {"rules": [], "sandbox": dict(LIMITS, nested=True)},
                  "gvisor": {"rules": [], "sandbox": {"backend": "gvisor"}},
                  # of its memory gVisor has a part
                  "small-gvisor": {"rules": [], "sandbox": dict(LIMITS, backend="gvisor", memory="192MiB")}}
    if os.geteuid() == 0:
        person.own_ids(t)
    why = engine.needed()
    if why is None:
        try:
            e = engine.Engine(t)
            e.image("python:1", engine.rootfs(files=engine.python_files() + [
                ("usr/bin/" + n, os.path.realpath("/bin/busybox")) for n in
                ("setsid", "find", "du", "xargs", "cut", "yes", "mkfifo", "dirname", "id")]))
            docker = {"backend": "docker", "docker": {"socket": e.socket, "image": "python:1"}}
            d.policies["engine"] = {"rules": [], "sandbox": docker}
            d.policies["small-engine"] = {"rules": [], "sandbox": dict(LIMITS, **docker)}
        except tap.Skip as x:
            why = str(x)
    d.serve(env={"HOST_VARIABLE": group_g.VARIABLE})
    c = api.Api(d.socket)
    t.part(group_g.g1_who, t, d)
    t.part(group_g.g2, t, c)
    t.part(group_g.g9, t, d)
    t.part(place, t, d, c, "bwrap")
    if os.geteuid() == 0:
        t.part(place, t, d, c, "nested")
    else:
        t.skip("group G with containers inside", "needs uids of /etc/subuid for the test's own user")
    if gvisor.needed() is None:
        t.part(place, t, d, c, "gvisor")
    else:
        t.skip("group G under gVisor", gvisor.needed())
    if why is None:
        t.part(place, t, d, c, "docker")
    else:
        t.skip("group G in containers", why)
    c.close()
    t.eq(d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=300)
