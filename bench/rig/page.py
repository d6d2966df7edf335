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


LEFT, WIDE, LEAST = 90, 330, 2.0


def place(value, top):
    return LEFT + WIDE * min(value, top) / top


def bars(title, unit, rows, top, marks):
    """rows: (name, its class, value, least, most, label); whiskers go from least to most, marks are upright lines."""
    out = ['<figure><figcaption>%s <small>%s</small></figcaption><svg viewBox="0 0 640 %d" role="img" aria-label="%s">' % (
        html.escape(title), html.escape(unit), 22 * len(rows) + 6, html.escape(title))]
    for kind, at in marks:
        if at <= top:
            out.append('<path class="%s" d="M%.1f 0V%d"/>' % (kind, place(at, top), 22 * len(rows) + 6))
    for i, (name, kind, value, least, most, label) in enumerate(rows):
        y = 22 * i + 4
        out.append('<text x="0" y="%d">%s</text><rect class="%s" x="%d" y="%d" width="%.1f" height="14"/>' % (
            y + 12, html.escape(name), kind, LEFT, y, place(value, top) - LEFT))
        if least is not None:
            out.append('<path class="spread" d="M%.1f %dH%.1f"/>' % (place(least, top), y + 7, place(most, top)))
        out.append('<text x="%d" y="%d">%s%s</text>' % (LEFT + WIDE + 12, y + 12, "→ " if value > top else "", html.escape(label)))
    out.append("</svg></figure>")
    return "".join(out)


def plot(summary, figure, words, unit, bar_gate, bar_injector, absolute):
    """Ratios to the yardstick in the same round; of what has an absolute bar the values themselves."""
    rows = []
    for peer in summary.peers:
        value, ratio = summary.median(figure, peer), summary.ratios(figure, peer)
        if value is None or (ratio is None and not absolute):
            continue
        label = "%.1f" % value + (" (×%.2f, %.2f–%.2f)" % ratio if ratio else "")
        shown = (value, None, None) if absolute else ratio
        rows.append((peer, "ours" if peer in OURS else "peer") + shown + (label,))
    if not rows:
        return ""
    ours = [r[2] for r in rows if r[0] in OURS]
    top = min(max(r[4] or r[2] for r in rows), max([LEAST] + [2 * x for x in ours])) * (1.1 if absolute else 1.0)
    marks = [("bar", b) for b in dict.fromkeys((bar_gate, bar_injector)) if b is not None]
    return bars(words, unit if absolute else "nginx = 1", rows, top, marks + [("one", 1)] * (not absolute))


def comparison(name, compared):
    """The lines of bench/compare: NEW to OLD, 1 in the middle, the interval in which the median lies."""
    out, lines = [], compared["lines"]
    least = min([0.9] + [x["low"] for x in lines])
    most = max([1.1] + [x["high"] for x in lines])
    low, high = max(least, 0.5), min(most, 2.0)

    def at(v):
        return 300 + 180 * (min(max(v, low), high) - low) / (high - low)
    height = 20 * len(lines) + 6
    out.append('<figure><figcaption>%s <small>new to old, %d rounds</small></figcaption><svg viewBox="0 0 640 %d" role="img" '
               'aria-label="%s"><path class="one" d="M%.1f 0V%d"/><path class="bar" d="M%.1f 0V%d"/>' % (
                   html.escape(name), compared["rounds"], height, html.escape(name), at(1), height, at(1.05), height))
    for i, x in enumerate(lines):
        y = 20 * i + 12
        out.append('<text x="0" y="%d">%s</text><path class="spread" d="M%.1f %dH%.1f"/><circle class="ours" cx="%.1f" cy="%d" r="4"/>'
                   '<text x="490" y="%d">%.3f [%.2f–%.2f]%s</text>' % (
                       y + 4, html.escape("%s: %s" % (x["path"], x["words"])), at(x["low"]), y, at(x["high"]), at(x["median"]), y,
                       y + 4, x["median"], x["low"], x["high"], "" if x["verdict"] == "good" else " " + x["verdict"]))
    return "".join(out) + "</svg></figure>"


STYLE = """body{font:15px/1.4 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
figure{margin:1.2em 0}figcaption{font-weight:bold}svg{width:100%}text{font-size:11px;fill:currentColor}.peer{fill:#9ab}
.ours{fill:#c60}small{font-weight:normal;color:#666}.spread{stroke:#222;stroke-width:2;opacity:.6}.one{stroke:#888}
.bar{stroke:#080;stroke-dasharray:4 3}td,th{text-align:left;padding:.1em .8em .1em 0}.no{color:#b00}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.peer{fill:#567}.spread{stroke:#eee}small{color:#999}
.bar{stroke:#4c4}.no{color:#f66}}"""
KEY = ("Bars are medians, the thin lines on them go from the least to the most of the rounds; the grey line is nginx, the dashed "
       "green ones the bars that Durward is held to. An arrow says that a bar is cut off.")


def page(summary, about, comparisons=()):
    """comparisons: (name, what bench/compare wrote)"""
    rows = "".join("<tr><td>%s<td>%s<td>%.2f<td>%.2f<td%s>%s" % (
        html.escape(v["words"]), v["peer"], v["value"], v["bar"], "" if v["met"] else ' class="no"',
        "met" if v["met"] else "missed") for v in summary.verdicts())
    body = "<h1>Durward beside other proxies</h1><p>%s</p><p>%s</p>" % (html.escape(about), KEY)
    body += "<table><tr><th>figure<th>path<th>ours<th>bar<th></tr>%s</table>" % rows
    body += "".join(plot(summary, *f) for f in FIGURES)
    if comparisons:
        body += "<h1>One build beside another</h1><p>Ratios to the older build in the same round; a line right of the dashed one " \
                "is refused.</p>" + "".join(comparison(name, c) for name, c in comparisons)
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><title>Durward beside other proxies</title>'
            '<meta name="viewport" content="width=device-width"><style>%s</style>%s</html>\n' % (STYLE, body))
