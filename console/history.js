// What the log holds, however old: conditions, pages, filters that are kept in this browser, and a case
// of what was found as one file.

import { h, fill, text, count, several, clock } from "./dom.js";
import { List } from "./list.js";
import { Store } from "./store.js";
import { ask, download } from "./feed.js";
import { LEVELS, severity } from "./codes.js";
import { question } from "./dialog.js";

const KEPT = "durward-filters";
const PAGE = 1000;
const SPANS = [["15m", "last 15 minutes"], ["1h", "last hour"], ["24h", "last day"], ["7d", "last week"], ["", "all of the log"], ["between", "between…"]];
const KINDS = [["", "all kinds"], ["deny", "all that was refused"], ["admitted", "admitted"], ["completed,aborted", "ends"], ["dns", "names"], ["packet", "packets"], ["lifecycle", "events"]];
const TEXTS = [["sandbox", "Sandbox"], ["policy", "Policy"], ["host", "Host"], ["code", "Code"], ["text", "Text"]];

const kept = () => {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) || [];
  } catch {
    return [];
  }
};

export const query = (conditions) =>
  Object.entries(conditions).filter(([, v]) => v !== "" && v !== undefined).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&");

// Records as rows, each with its end where that was found too.
export function rowsOf(records) {
  const s = new Store();
  s.alone = true;
  for (const r of records) s.put(r);
  return s.rows;
}

const same = (r) => r.seq + r.prev;

// All that a sandbox did, as far as the log has it: its own records, and what the daemon says of it.
export async function story(id) {
  const [own, told] = await Promise.all([
    ask("/v1/audit/query?" + query({ sandbox: id, limit: 5000 })),
    ask("/v1/audit/query?" + query({ text: id, kind: "lifecycle", limit: 1000 })),
  ]);
  const seen = new Set(), all = [];
  for (const r of [...own.records, ...told.records]) {
    if (seen.has(same(r)) || (r.kind === "lifecycle" && r.target !== id && r.sandbox !== id)) continue;
    seen.add(same(r));
    all.push(r);
  }
  all.sort((a, b) => (a.received < b.received ? -1 : a.received > b.received ? 1 : a.seq - b.seq));
  return { rows: rowsOf(all), more: own.more };
}

export async function exportCase(app, conditions) {
  try {
    const name = `durward-case-${new Date().toISOString().replace(/[:.]/g, "-")}.json`;
    const v = await download("/v1/audit/case?" + query({ limit: 5000, ...conditions }), name);
    app.toast(`${several(v.records.length, "record")} with ${v.records.length === 1 ? "its proof" : "their proofs"}` + (v.unsigned.length ? `, ${count(v.unsigned.length)} too new to be signed: export again in a minute` : "") + `: ${name}`);
  } catch (x) {
    app.toast(x.message);
  }
}

const choice = (list, id, onchange) => h("select", { id, onchange }, list.map(([v, name]) => h("option", { value: v }, name)));

export function history(app, { head, draw, empty }) {
  const span = choice(SPANS, "h-span", () => between());
  const from = h("input", { type: "datetime-local", id: "h-from", step: "1" }), to = h("input", { type: "datetime-local", id: "h-to", step: "1" });
  const kind = choice(KINDS, "h-kind");
  const least = choice(LEVELS.slice().reverse().map((l) => [l, l === "info" ? "any severity" : l + " and worse"]), "h-level", () => paint());
  const inputs = Object.fromEntries(TEXTS.map(([k]) => [k, h("input", { type: "text", id: "h-" + k, autocomplete: "off", spellcheck: false })]));
  const names = h("select", { id: "h-kept", onchange: () => useKept() });
  const said = h("span", { className: "note", role: "status" });
  const older = h("button", { type: "button", hidden: true, onclick: () => search(true) }, "Older");
  const list = new List({ head, draw, open: (row) => app.detail(row), label: "Records found, newest first" });
  let records = [], seen = new Set(), more = false, asking = 0;
  span.value = "24h";

  const between = () => {
    for (const e of [from, to]) e.parentElement.hidden = span.value !== "between";
  };
  const form = () => ({ span: span.value, from: from.value, to: to.value, kind: kind.value, level: least.value, ...Object.fromEntries(TEXTS.map(([k]) => [k, inputs[k].value.trim()])) });
  const put = (f) => {
    span.value = f.span ?? "24h";
    from.value = f.from || "";
    to.value = f.to || "";
    kind.value = f.kind || "";
    least.value = f.level || "info";
    for (const [k] of TEXTS) inputs[k].value = f[k] || "";
    between();
  };
  const conditions = () => {
    const f = form(), c = Object.fromEntries(TEXTS.map(([k]) => [k, f[k]]));
    const utc = (v) => (v ? new Date(v).toISOString() : "");
    return { ...c, kind: f.kind, since: f.span === "between" ? utc(f.from) : f.span, until: f.span === "between" ? utc(f.to) : "" };
  };
  const paint = () => {
    const worst = LEVELS.indexOf(least.value), rows = rowsOf(records).filter((r) => LEVELS.indexOf(severity(r)) <= worst);
    list.set(rows);
    older.hidden = !more;
    text(said, records.length ? `${several(rows.length, "row")} of ${several(records.length, "record")}` + (more ? "; there are older ones" : "") : said.textContent);
  };
  const search = async (further) => {
    const mine = ++asking, c = conditions();
    if (!further) {
      records = [];
      seen = new Set();
      list.set([]);
    } else if (records.length) {
      c.until = new Date(Date.parse(records[0].received) + 1).toISOString();
    }
    text(said, "Looking…");
    try {
      const v = await ask("/v1/audit/query?" + query({ ...c, limit: PAGE }));
      if (mine !== asking) return;
      const fresh = v.records.filter((r) => !seen.has(same(r)));
      for (const r of fresh) seen.add(same(r));
      records = fresh.concat(records);
      more = v.more && fresh.length > 0;
      text(said, records.length ? "" : "Nothing in the log fits.");
      paint();
    } catch (x) {
      if (mine === asking) text(said, x.message);
    }
  };
  const fillKept = () => fill(names, h("option", { value: "" }, kept().length ? "saved filters…" : "no saved filter"), kept().map((f) => h("option", { value: f.name }, f.name)));
  const useKept = () => {
    const f = kept().find((x) => x.name === names.value);
    if (!f) return;
    put(f);
    search();
  };
  const keep = async () => {
    const name = h("input", { type: "text", id: "h-name", maxLength: 60, autocomplete: "off" });
    const answer = await question({ title: "Save this filter", yes: "Save", read: () => name.value.trim(), body: h("div", { className: "fields" }, h("label", {}, "Name", name)) });
    if (!answer) return;
    localStorage.setItem(KEPT, JSON.stringify([...kept().filter((x) => x.name !== answer), { name: answer, ...form() }].slice(-50)));
    fillKept();
    names.value = answer;
  };
  const drop = () => {
    localStorage.setItem(KEPT, JSON.stringify(kept().filter((x) => x.name !== names.value)));
    fillKept();
  };
  const field = (name, e) => h("label", {}, name, e);
  const element = h("div", { className: "view history" },
    h("form", { className: "panel try", ariaLabel: "What to look for", onsubmit: (e) => { e.preventDefault(); search(); } },
      field("Time", span), field("From", from), field("To", to), field("Kind", kind), field("Severity", least),
      TEXTS.map(([k, name]) => field(name, inputs[k])),
      h("button", { className: "primary", type: "submit", id: "h-search" }, "Search")),
    h("div", { className: "chips" }, field("", names), h("button", { type: "button", id: "h-keep", onclick: keep }, "Save filter…"), h("button", { type: "button", onclick: drop }, "Forget filter"),
      h("button", { type: "button", id: "h-case", onclick: () => exportCase(app, conditions()) }, "Export as a case"), said, older),
    h("div", { className: "panel tablebox" }, list.element));
  names.parentElement.append(h("span", { className: "unseen" }, "Saved filters"));
  between();
  fillKept();
  return {
    element, list,
    search(f) {
      put({ span: "", ...f });
      search();
    },
    update(ui) {
      if (ui && !records.length && !asking) search();
      list.paint();
    },
  };
}
