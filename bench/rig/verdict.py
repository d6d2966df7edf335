"""Whether one build costs more than another, from ratios of rounds in which both were measured in turn: a median, the interval in which
it lies, and how sure that is. Nothing is assumed of how the ratios are spread (an interval between order statistics)."""
import math
import statistics

BOUND, SURE = 1.05, 0.95
GOOD, UNSURE, WORSE = "", "unsure", "WORSE"


def interval(values):
    """-> (low, high, how sure it is that the median lies between them); the narrowest that is SURE, where there are rounds enough."""
    got, n = sorted(values), len(values)
    best, tail = None, 0.0
    for k in range((n + 1) // 2):
        tail += math.comb(n, k) / 2 ** n
        if best is None or 1 - 2 * tail >= SURE:
            best = got[k], got[n - 1 - k], max(0.0, 1 - 2 * tail)
    return best


class Line:
    """.median, .low, .high, .sure of the ratios new to old, and the .verdict on it."""

    def __init__(self, old, new):
        """Values by round; rounds that one of them lacks do not count."""
        self.ratios = [new[i] / old[i] for i in sorted(new) if old.get(i)]
        self.median = statistics.median(self.ratios)
        self.low, self.high, self.sure = interval(self.ratios)
        self.verdict = GOOD if self.median <= BOUND else WORSE if self.low > 1 and self.sure >= SURE else UNSURE

    def text(self):
        return "%.3f [%.3f-%.3f, %2.0f %%]%s" % (self.median, self.low, self.high, 100 * self.sure,
                                               "  " + self.verdict if self.verdict else "")


def status(lines):
    """What a program exits with: 1 a line is worse, 3 one may be and more rounds would tell, 0 none is, 2 there is none."""
    verdicts = {line.verdict for line in lines}
    return 1 if WORSE in verdicts else 3 if UNSURE in verdicts else 0 if verdicts else 2
