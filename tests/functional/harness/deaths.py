"""A broker's roles killed while a session is open."""
import os
import signal
import time

from .tap import wait_for


def ended(box, role):
    out = box.sh("cat ~/ended-%s" % role)[1]
    return out if "and it ended" in out else None


def each(t, box, d, name, command, told, works):
    """Front, then back: what ran (a command of a shell's, which may wait for ~/died) is cut, and its client is told, in these words; its
    end and the death are on record, and works() is true again within a second (and what it takes by itself)."""
    for role in (name + "-front", name + "-back"):
        began = time.monotonic()
        t.ok(works(), role + ": a session (control)")
        usual = time.monotonic() - began
        d.settle()
        before = {r["id"] for r in d.kinds("admitted")}
        box.sh("rm -f ~/died; (timeout 30 bash -c \"$C\" 2>&1; echo and it ended) >~/ended-%s 2>&1 &" % role, env={"C": command})
        news = wait_for(lambda: [r["id"] for r in d.kinds("admitted") if r["id"] not in before], 10, 0.05)
        old = [p for p, r in d.roles() if r == role]
        t.eq((len(news or []), len(old)), (1, 1), "one session is open, by one " + role)
        os.kill(old[0], signal.SIGKILL)
        died = time.monotonic()
        back = wait_for(works, 5)
        took = time.monotonic() - died
        t.ok(back and took < 1 + usual, role + " is back within a second", "%.2f s, and %.2f s is usual" % (took, usual))
        box.sh("touch ~/died")
        said = wait_for(lambda: ended(box, role), 10, 0.1) or ""
        t.ok(any(x in said for x in told), "what ran is cut, and its client is told", said[-400:])
        end = wait_for(lambda: [r for r in d.kinds("aborted") if r["id"] in (news or [])], 10, 0.05)
        t.eq(len(end or []), 1, "which is on record, once")
        t.ok(wait_for(lambda: [r for r in d.kinds("lifecycle") if r.get("event") == "role_ended" and r.get("detail") == role + ": signal 9"],
                      10, 0.05), "and so is the death of " + role)
        t.ok([p for p, r in d.roles() if r == role] not in ([], old), "another process is " + role)
