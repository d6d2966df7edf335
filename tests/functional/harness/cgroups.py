"""The control groups of sandboxes, and which of them this test left behind."""
import os

from . import tap


def every():
    """Directories of ours in every hierarchy."""
    found = set()
    for base, dirs, _ in os.walk("/sys/fs/cgroup"):
        found |= {os.path.join(base, x) for x in dirs if x.startswith("durward-")}
    return found


def left(before):
    """Those made since, but for groups in which processes run that are none of this test's."""
    mine = {pid for pid, _ in tap.descendants()}
    found = set()
    for group in every() - before:
        try:
            with open(os.path.join(group, "cgroup.procs")) as f:
                inside = {int(line) for line in f}
        except OSError:
            continue  # gone meanwhile
        if not inside or inside & mine:
            found.add(group)
    return found
