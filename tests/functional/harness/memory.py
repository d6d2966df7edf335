"""What the roles of a daemon hold in memory."""
import threading
import time


def each(d):
    """Anonymous memory in KiB, by (process, role)."""
    found = {}
    for pid, role in d.roles():
        try:
            with open("/proc/%d/status" % pid) as f:
                own = [int(x.split()[1]) for x in f if x.startswith("RssAnon")]
        except OSError:
            continue
        found[pid, role] = max([0] + own)
    return found


def roles(d):
    """The same by role, of each the largest."""
    found = {}
    for (_, role), kib in each(d).items():
        found[role] = max(found.get(role, 0), kib)
    return found


class Watch(threading.Thread):
    """The peak of each role while it runs."""

    def __init__(self, d):
        super().__init__(daemon=True)
        self.d, self.peak, self.stop = d, {}, False
        self.start()

    def run(self):
        while not self.stop:
            for role, kib in roles(self.d).items():
                self.peak[role] = max(self.peak.get(role, 0), kib)
            time.sleep(0.1)

    def result(self):
        self.stop = True
        self.join()
        return self.peak
