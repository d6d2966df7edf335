"""What was measured, as text and as a page with plots: ratios to the yardstick of the same round."""
import html
import statistics

from .measure import FIGURES

YARDSTICK, OURS = "nginx", ("gate", "injector")


class Summary:
    """results: [{"peer", "round", "figure", "value"}]"""

    def __init__(self, results):
        self.values = {}
        for r in results:
            self.values.setdefault((r["figure"], r["peer"]), {})[r["round"]] = r["value"]
        self.peers = list(dict.fromkeys(r["peer"] for r in results))

    def median(self, figure, peer):
        got = self.values.get((figure, peer))
        return statistics.median(got.values()) if got else None

    def ratios(self, figure, peer):
        """(median, least, most) of the rounds' ratios to the yardstick in the same round, or None."""
        base, got = self.values.get((figure, YARDSTICK), {}), self.values.get((figure, peer), {})
        all_of_them = [got[i] / base[i] for i in got if base.get(i)]
        if not all_of_them:
            return None
        return statistics.median(all_of_them), min(all_of_them), max(all_of_them)

    def verdicts(self):
        """[{figure, peer, value, bar, met}] of our two paths."""
        found = []
        for figure, words, unit, gate, injector, absolute in FIGURES:
            for peer, bar in zip(OURS, (gate, injector)):
                ratio = self.ratios(figure, peer)
                value = self.median(figure, peer) if absolute else ratio and ratio[0]
                if bar is not None and value is not None:
                    found.append({"figure": figure, "words": words, "peer": peer, "value": round(value, 3),
                                  "bar": bar, "met": value <= bar})
        return found

    def text(self):
        lines = []
        for figure, words, unit, *_ in FIGURES:
            lines.append("%s [%s]" % (words, unit))
            for peer in self.peers:
                value, ratio = self.median(figure, peer), self.ratios(figure, peer)
                if value is not None:
                    lines.append("  %-12s %10.1f" % (peer, value) + (
                        "   x%.2f  [%.2f-%.2f]" % ratio if ratio else ""))
        for v in self.verdicts():
            lines.append("%-6s %-8s %-40s %6.2f  bar %.2f" % (
                "met" if v["met"] else "MISSED", v["peer"], v["words"], v["value"], v["bar"]))
        return "\n".join(lines)


def plot(summary, figure, words, unit):
    """Bars by peer, the yardstick's value as a line; widths are of the median, whiskers from least to most."""
    rows = [(p, summary.median(figure, p), summary.ratios(figure, p)) for p in summary.peers]
    rows = [r for r in rows if r[1] is not None]
    if not rows:
        return ""
    top = min(max(r[1] for r in rows), 8 * (summary.median(figure, YARDSTICK) or max(r[1] for r in rows)))
    out = ['<h2>%s <small>%s</small></h2><svg viewBox="0 0 640 %d" role="img" aria-label="%s">' % (
        html.escape(words), unit, 22 * len(rows) + 4, html.escape(words))]
    for i, (peer, value, ratio) in enumerate(rows):
        y, width = 22 * i + 2, 380 * min(value, top) / top
        label = "%.1f" % value + (" (×%.2f, %.2f–%.2f)" % ratio if ratio else "")
        out.append('<text x="0" y="%d">%s</text><rect class="%s" x="90" y="%d" width="%.1f" height="16"/>'
                   '<text x="%.1f" y="%d">%s%s</text>' % (
                       y + 13, html.escape(peer), "ours" if peer in OURS else "peer", y, width,
                       95 + width, y + 13, "→ " if value > top else "", label))
    out.append("</svg>")
    return "".join(out)


STYLE = """body{font:15px/1.4 system-ui,sans-serif;max-width:44em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
svg{width:100%}text{font-size:12px;fill:currentColor}.peer{fill:#9ab}.ours{fill:#c60}small{font-weight:normal;color:#777}
td,th{text-align:left;padding:.1em .8em .1em 0}.no{color:#b00}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.peer{fill:#567}.no{color:#f66}}"""


def page(summary, about):
    rows = "".join("<tr><td>%s<td>%s<td>%.2f<td>%.2f<td%s>%s" % (
        html.escape(v["words"]), v["peer"], v["value"], v["bar"], "" if v["met"] else ' class="no"',
        "met" if v["met"] else "missed") for v in summary.verdicts())
    return ("<!doctype html><html lang=en><meta charset=utf-8><title>Durward beside other proxies</title>"
            "<style>%s</style><h1>Durward beside other proxies</h1><p>%s</p>"
            "<table><tr><th>figure<th>path<th>ours<th>bar<th></tr>%s</table>%s</html>\n" % (
                STYLE, html.escape(about), rows, "".join(plot(summary, *f[:3]) for f in FIGURES)))
