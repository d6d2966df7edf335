#!/usr/bin/python3 -B
"""F11: A gate that falls again and again is one listener's trouble: the others go on being served, and it
comes back itself. So does a role that all share: what needs it is refused meanwhile, and the daemon goes on."""
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "functional"))
from harness import client, scene, tap  # noqa: E402


SHARED = ("dialer", "signer", "vault", "logger", "controller", "builder")


def serves(gate):
    try:
        return gate.get(scene.PLAIN, "/x").status == 200
    except (OSError, client.Ended, ValueError):
        return False


def shared(t, s, here, there):
    """Each as soon as it is there, more often than a role may fall within a second of its start."""
    deaths = {role: 0 for role in SHARED}
    end = time.monotonic() + 40
    while min(deaths.values()) < 7 and time.monotonic() < end and s.d.daemon.poll() is None:
        for pid, role in s.d.roles():
            if deaths.get(role, 7) < 7:
                os.kill(pid, signal.SIGKILL)
                deaths[role] += 1
                tap.wait_for(lambda: pid not in [p for p, _ in s.d.roles()], 5, 0.01)
        time.sleep(0.02)
    t.eq(deaths, {role: 7 for role in SHARED}, "each role that all share was killed 7 times")
    t.ok(s.d.daemon.poll() is None, "the daemon is there after that") or t.diag(s.d.diagnostics())
    t.ok(tap.wait_for(lambda: serves(here) and serves(there), 15, 0.1), "and both listeners are served once they stay")


def main(t):
    s = scene.Scene(t)
    first, second = s.listener(), s.listener()
    s.d.serve()
    here, there = s.gate(first, timeout=5), s.gate(second, timeout=5)
    t.ok(serves(here) and serves(there), "two listeners are served")
    def running():
        gates = sorted(pid for pid, role in s.d.roles() if role == "gate")
        return gates if len(gates) >= 3 else None
    gates = tap.wait_for(running, 5, 0.05) or []
    t.eq(len(gates), 3, "each by a gate of its own, and one waits for a local sandbox")
    kept, deaths, served = gates[1], 0, 0
    end = time.monotonic() + 6
    while deaths < 9 and time.monotonic() < end and s.d.daemon.poll() is None:
        for pid, role in s.d.roles():
            if role == "gate" and pid != kept:
                os.kill(pid, signal.SIGKILL)
                deaths += 1
        served += serves(here) or serves(there)
        time.sleep(0.05)
    t.ok(deaths >= 7 and served > 0, "one gate was killed %d times" % deaths)
    t.ok(s.d.daemon.poll() is None, "the daemon is still there") or t.diag(s.d.diagnostics())
    t.ok(tap.wait_for(lambda: serves(here) and serves(there), 5, 0.1),
         "and both listeners are served again")
    t.part(shared, t, s, here, there)
    t.eq(s.d.stop(), 0, "the daemon ends well")


tap.run(main, timeout=120)
