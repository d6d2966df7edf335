// Elements, made without markup: nothing that a sandbox sent is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = new Set(["svg", "path", "rect", "line", "g", "text", "circle", "title", "polyline"]);

export function h(tag, props, ...children) {
  const shape = SHAPES.has(tag);
  const e = shape ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "style") Object.assign(e.style, v);
    else if (k in e && !shape && k !== "list" && k !== "form") e[k] = v;
    else e.setAttribute(k === "className" ? "class" : k, v === true ? "" : v);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return parent;
}

// Only when it differs: setting text makes the browser lay out again.
export function text(e, s) {
  if (e.textContent !== s) e.textContent = s;
}

export function bytes(n) {
  if (n === undefined || n === null) return "";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

export const count = (n) => n.toLocaleString("en-US");
// several(1, "file"): `1 file`; several(2, "file"): `2 files`.
export const several = (n, noun) => count(n) + " " + noun + (n === 1 ? "" : "s");

export function clock(ms) {
  const d = new Date(ms);
  const two = (n) => String(n).padStart(2, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}

// The day too, where it is not the last one.
export function moment(ms) {
  const d = new Date(ms), two = (n) => String(n).padStart(2, "0");
  return Date.now() - ms < 20 * 3600e3 ? clock(ms) : `${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms).slice(0, 8)}`;
}

export function ago(ms) {
  const s = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (s < 60) return s + " s ago";
  if (s < 3600) return Math.floor(s / 60) + " min ago";
  if (s < 86400) return Math.floor(s / 3600) + " h ago";
  return Math.floor(s / 86400) + " d ago";
}

export const short = (id) => (id && id.length > 14 ? id.slice(0, 11) + "…" : id || "");
