// What codes mean, how bad a record is, and by which names sandboxes go.

import { h, short } from "./dom.js";
import { ask } from "./feed.js";

export const LEVELS = ["critical", "high", "medium", "low", "info"];
const codes = new Map(), names = new Map();
let kinds = {}, events = {}, loaded = null;

export const load = () => (loaded ||= ask("/v1/codes").then((v) => {
  for (const c of v.codes) codes.set(c.code + (c.status ? " " + c.status : ""), c);
  kinds = v.kinds;
  events = v.events;
}).catch(() => { loaded = null; }));

export const meaning = (rec) => codes.get(`${rec.code} ${rec.status}`) || codes.get(rec.code) || null;

// Of a row: its own record, or what became of it.
export function severity(row) {
  const r = row.rec, end = row.end;
  if (row.kind === "name") return "info";
  if (r.kind === "lifecycle") return events[r.event] || "info";
  const own = of(r);
  if (!end) return own;
  const last = of(end);
  return LEVELS.indexOf(last) < LEVELS.indexOf(own) ? last : own;
}

function of(r) {
  if (r.code === "ok" || !r.code) return r.code === "ok" ? "info" : kinds[r.kind] || "info";
  if (r.kind !== "denied" && r.kind !== "aborted" && r.kind !== "dns" && r.kind !== "packet" && r.kind !== "tls_refused" && r.code !== "secret_reflected") return "info";
  const usual = meaning(r)?.severity || kinds[r.kind] || "info";
  // a gate that lets pass what its injector refuses has another policy, or lies
  const passed = (r.detail || "").endsWith("its gate let it pass");
  return passed && LEVELS.indexOf("high") < LEVELS.indexOf(usual) ? "high" : usual;
}

export const level = (name) => h("span", { className: "level " + name }, name);

export function learn(list) {
  for (const s of list) if (s.name) names.set(s.id, s.name);
}

// A name is for people; whoever needs the id finds it beside it.
export const named = (id) => names.get(id) || short(id);
export const nameOf = (id) => names.get(id) || "";

export function whole(id) {
  const name = names.get(id);
  return name ? `${name} (${id})` : id;
}
