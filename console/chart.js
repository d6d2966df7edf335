// Small charts in SVG.

import { h, bytes, count, clock } from "./dom.js";

// Requests a second: allowed below, refused on top.
export function rate(seconds, width = 900, height = 96) {
  const now = Math.floor(Date.now() / 1000), n = 120, w = width / n;
  const at = new Map(seconds.map((s) => [s.s, s]));
  let max = 1;
  for (let i = 0; i < n; i++) {
    const s = at.get(now - i);
    if (s) max = Math.max(max, s.ok + s.bad);
  }
  const step = nice(max);
  const top = Math.ceil(max / step) * step;
  const y = (v) => height - (v / top) * (height - 8);
  const bars = [];
  for (let v = step; v <= top; v += step)
    bars.push(h("line", { class: "grid", x1: 0, x2: width, y1: y(v), y2: y(v) }));
  for (let i = 0; i < n; i++) {
    const s = at.get(now - n + 1 + i);
    if (!s) continue;
    const x = i * w + 0.5, base = y(s.ok);
    const tip = h("title", {}, `${clock(s.s * 1000).slice(0, 8)}  ${count(s.ok)} allowed, ${count(s.bad)} refused`);
    if (s.ok) bars.push(h("rect", { class: "ok", x, y: base, width: w - 1, height: height - base, rx: 1 }, tip));
    if (s.bad)
      bars.push(h("rect", { class: "bad", x, y: y(s.ok + s.bad), width: w - 1, height: base - y(s.ok + s.bad), rx: 1 }, tip.cloneNode(true)));
  }
  return h("svg", { class: "rate", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `requests a second over two minutes, at most ${max}` }, bars);
}

export function peak(seconds) {
  const from = Date.now() / 1000 - 120;
  return Math.max(0, ...seconds.filter((s) => s.s > from).map((s) => s.ok + s.bad));
}

function nice(max) {
  const raw = max / 3, p = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  for (const m of [1, 2, 5, 10]) if (m * p >= raw) return Math.max(1, m * p);
  return 10 * p;
}

// Bytes out and in of one host, against the largest.
export function pair(up, down, max) {
  const share = (n) => Math.max(n ? 0.6 : 0, (100 * n) / (max || 1)) + "%";
  return h("div", { className: "pair", title: `${bytes(up)} out, ${bytes(down)} in` },
    h("div", { className: "bar up", style: { width: share(up) } }),
    h("div", { className: "bar down", style: { width: share(down) } }));
}

// What one sandbox did, along time, in lanes.
export function timeline(rows, lanes, width = 1000) {
  const lane = 30, left = 92, height = lanes.length * lane + 24;
  if (!rows.length) return h("div", { className: "empty" }, "Nothing seen of it yet.");
  const from = rows[0].t, to = Math.max(rows[rows.length - 1].t, from + 1000);
  const x = (t) => left + ((t - from) / (to - from)) * (width - left - 12);
  const marks = [];
  lanes.forEach(([name], i) => {
    marks.push(h("text", { class: "lane", x: 0, y: i * lane + 20 }, name));
    marks.push(h("line", { class: "grid", x1: left, x2: width, y1: (i + 1) * lane, y2: (i + 1) * lane }));
  });
  for (let i = 0; i <= 4; i++) {
    const t = from + ((to - from) * i) / 4;
    marks.push(h("text", { class: "axis", x: x(t), y: height - 6, "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle" }, clock(t).slice(0, to - from < 10000 ? 12 : 8)));
  }
  for (const row of rows) {
    const i = lanes.findIndex(([, has]) => has(row));
    if (i < 0) continue;
    const end = row.end ? Math.max(2.5, ((row.end.ms || 0) / (to - from)) * (width - left)) : 2.5;
    marks.push(h("rect", { class: "mark " + lanes[i][2], x: x(row.t), y: i * lane + 7, width: end, height: lane - 12, rx: 1.2 },
      h("title", {}, clock(row.t))));
  }
  return h("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "what this sandbox did, along time" }, marks);
}
