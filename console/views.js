// The views. Each has: id, name, key, make(app) -> { element, update(), filter? }.

import { h, fill, text, bytes, count, several, clock, moment, ago, short } from "./dom.js";
import { List } from "./list.js";
import { rate, peak, pair, timeline } from "./chart.js";
import { title, verdict } from "./store.js";
import { ask } from "./feed.js";
import { LEVELS, level, severity, meaning, named, nameOf, learn, whole } from "./codes.js";
import { history, story, exportCase, query } from "./history.js";
import { proposals } from "./proposals.js";
import { suppressions, suppressed, changes } from "./suppressions.js";
import { fleet } from "./fleet.js";
import { kill, pause, resume } from "./actions.js";

const badge = ([word, tone]) => h("span", { className: "badge " + tone }, word);
const empty = (what, hint) => h("div", { className: "empty" }, h("p", {}, what), hint ? h("p", { className: "hint" }, hint) : null);
const panel = (name, ...rest) => h("section", { className: "panel" }, h("h2", {}, name), ...rest);

// ---- rows of attempts ----

const CELLS = ["time", "says", "sev", "method", "what", "box", "status", "size", "ms"];

function drawRow(row, e) {
  if (!e) {
    e = h("div", { className: "attempt" }, CELLS.map((c) => h("span", { className: c })));
    e.cells = [...e.children];
    text(e.cells[0], moment(row.t));
    e.cells[0].title = new Date(row.t).toISOString();
    text(e.cells[3], row.rec.method || "");
    text(e.cells[4], title(row));
    e.cells[4].title = title(row);
    e.end = undefined;
  }
  text(e.cells[5], named(row.box));
  e.cells[5].title = row.box;
  const hidden = suppressed(row);
  if (e.hidden !== hidden) {
    e.hidden = hidden;
    e.classList.toggle("suppressed", !!hidden);
    e.title = hidden ? `suppressed by ${hidden.id}: ${hidden.reason}` : "";
  }
  if (e.end === row.end) return e;
  e.end = row.end;
  const v = verdict(row), r = row.end || row.rec;
  const worst = severity(row);
  fill(e.cells[1], badge(v));
  fill(e.cells[2], worst === "info" ? null : level(worst));
  e.className = "attempt row " + v[1] + (hidden ? " suppressed" : "");
  text(e.cells[6], row.bad ? row.rec.code || "" : r.status ? String(r.status) : r.code || "");
  e.cells[6].title = meaning(r)?.why || "";
  text(e.cells[7], row.end ? bytes((r.bytes_up || 0) + (r.bytes_down || 0)) : row.rec.count > 1 ? "×" + count(row.rec.count) : "");
  text(e.cells[8], row.end && r.ms !== undefined ? count(r.ms) + " ms" : "");
  return e;
}

const rowHead = () =>
  h("div", { className: "attempt head" }, ["Time", "Kind", "Severity", "Method", "Destination", "Sandbox", "Result", "Bytes", "Took"].map((x, i) => h("span", { className: CELLS[i] }, x)));

// The chip that shows what is suppressed too; it is there when something is.
function hiding(again) {
  let on = false;
  const element = h("button", { className: "chip", ariaPressed: "false", hidden: true, onclick: () => {
    on = !on;
    element.classList.toggle("on", on);
    element.setAttribute("aria-pressed", on);
    again();
  } }, "suppressed");
  return {
    element,
    shows: () => on,
    count(n) {
      element.hidden = !n && !on;
      text(element, `suppressed (${count(n)})`);
    },
  };
}

// ---- live ----

const SORTS = [
  ["allowed", (r) => r.kind === "admitted"],
  ["denied", (r) => r.kind === "denied"],
  ["packets", (r) => r.kind === "packet"],
  ["names", (r) => r.kind === "dns" || r.kind === "name"],
  ["tls", (r) => r.kind === "tls_refused"],
  ["events", (r) => r.kind === "lifecycle"],
];

function live(app) {
  const on = new Set(SORTS.map(([n]) => n));
  const list = new List({ head: rowHead(), draw: drawRow, open: (row) => app.detail(row), label: "Attempts, newest first" });
  const tile = (name, cls) => {
    const value = h("b", {}, "0");
    return [value, h("div", { className: "tile " + (cls || "") }, value, h("span", {}, name))];
  };
  const tiles = { now: tile("requests/s"), seen: tile("records"), denied: tile("refused", "bad"), boxes: tile("sandboxes"), up: tile("bytes out"), down: tile("bytes in") };
  const chart = h("div", { className: "chart" });
  const note = h("span", { className: "note" }), legend = h("span", {});
  const chips = SORTS.map(([name]) =>
    h("button", { className: "chip on", ariaPressed: "true", onclick: (e) => {
      if (on.has(name)) on.delete(name);
      else on.add(name);
      e.target.classList.toggle("on", on.has(name));
      e.target.setAttribute("aria-pressed", on.has(name));
      again();
    } }, name));
  let shown = [], version = -1, from = 0, filter = "", listed = -1, left = 0;
  const hides = hiding(() => again());
  const fits = (row) => {
    const s = SORTS.find(([, has]) => has(row));
    if (!s || !on.has(s[0])) return false;
    if (suppressed(row)) {
      left++;
      if (!hides.shows()) return false;
    }
    if (!filter) return true;
    const r = row.rec;
    const hay = `${title(row)} ${row.box} ${r.policy || ""} ${r.method || ""} ${r.code || ""} ${r.rule || ""} ${r.credential || ""} ${nameOf(row.box)} ${severity(row)} ${verdict(row)[0]} ${row.end?.status || ""}`.toLowerCase();
    return filter.split(/\s+/).every((w) => (w.startsWith("-") && w.length > 1 ? !hay.includes(w.slice(1)) : hay.includes(w)));
  };
  const again = () => {
    left = 0;
    listed = changes();
    shown = app.store.rows.filter(fits);
    from = app.store.dropped + app.store.rows.length;
    list.set(shown);
  };
  const grow = () => {
    const s = app.store, rows = s.rows;
    if (from < s.dropped || listed !== changes()) return again();
    for (let i = from - s.dropped; i < rows.length; i++) if (fits(rows[i])) shown.push(rows[i]);
    from = s.dropped + rows.length;
    if (shown.length > rows.length) return again();
    list.set(shown);
  };
  let drawn = 0;
  return {
    element: h("div", { className: "view live" },
      h("div", { className: "tiles" }, Object.values(tiles).map((t) => t[1])),
      h("div", { className: "panel chartbox" }, chart, h("div", { className: "legend" }, h("i", { className: "ok" }), "allowed", h("i", { className: "bad" }), "refused", legend)),
      h("div", { className: "chips", role: "group", ariaLabel: "What to show" }, chips, hides.element, note),
      h("div", { className: "panel tablebox" }, list.element)),
    list,
    filter(s) {
      filter = s.trim().toLowerCase();
      again();
    },
    update(ui) {
      const s = app.store, n = Math.floor(Date.now() / 1000) - 1;
      const sec = s.seconds.find((x) => x.s === n);
      text(tiles.now[0], count(sec ? sec.ok + sec.bad : 0));
      text(tiles.seen[0], count(Object.values(s.counts).reduce((a, b) => a + b, 0)));
      text(tiles.denied[0], count((s.counts.denied || 0) + (s.counts.tls_refused || 0)));
      text(tiles.boxes[0], count(s.boxes.size));
      text(tiles.up[0], bytes(s.up));
      text(tiles.down[0], bytes(s.down));
      text(note, s.skipped ? `${several(s.skipped, "record")} counted, not shown` + (s.sampling > 1 ? ` (showing 1 of ${s.sampling})` : "") : "");
      if (performance.now() - drawn > 500) {
        fill(chart, rate(s.seconds));
        text(legend, `a second, over two minutes; at most ${count(peak(s.seconds))}`);
        drawn = performance.now();
      }
      if (app.paused && !ui) return;
      if (version !== s.version || ui || listed !== changes()) grow();
      else list.paint();
      hides.count(left);
      version = s.version;
    },
  };
}

// ---- tables that are drawn anew once in a while ----

function table(app, { label, columns, rows, open, none, above }) {
  let filter = "", drawn = 0, order = null;
  const body = h("tbody", {});
  const heads = columns.map((c) =>
    h("th", { className: c.cls || "", scope: "col" },
      c.by ? h("button", { onclick: () => { order = c; draw(); } }, c.name) : c.name));
  const box = h("div", { className: "panel tablebox" },
    h("div", { className: "scroll" }, h("table", { ariaLabel: label }, h("thead", {}, h("tr", {}, heads)), body)));
  const nothing = h("div", {});
  const draw = () => {
    let all = rows().filter((r) => !filter || (JSON.stringify(r, ["host", "id", "key", "policy", "name"]) + nameOf(r.row?.box || "")).toLowerCase().includes(filter));
    const by = order || columns.find((c) => c.first);
    if (by) all.sort((a, b) => (by.by(b) > by.by(a) ? 1 : by.by(b) < by.by(a) ? -1 : 0));
    const more = all.length - 300;
    all = all.slice(0, 300);
    heads.forEach((e, i) => e.setAttribute("aria-sort", columns[i] === by ? "descending" : "none"));
    const context = { max: Math.max(1, ...all.map((r) => Math.max(r.up || 0, r.down || 0))) };
    fill(body, all.map((r) =>
      h("tr", { tabIndex: 0, onclick: () => open(r), onkeydown: (e) => {
        if (e.key === "Enter") open(r);
        const to = e.key === "ArrowDown" || e.key === "j" ? e.currentTarget.nextSibling : e.key === "ArrowUp" || e.key === "k" ? e.currentTarget.previousSibling : null;
        if (to) { to.focus(); e.preventDefault(); }
      } }, columns.map((c) => h("td", { className: c.cls || "" }, c.cell(r, context))))));
    fill(nothing, all.length ? (more > 0 ? h("p", { className: "hint" }, `and ${count(more)} more: filter to see them`) : null) : none());
    drawn = performance.now();
  };
  return {
    draw,
    element: h("div", { className: "view" }, above, box, nothing),
    filter(s) { filter = s.trim().toLowerCase(); draw(); },
    update(ui) {
      const inside = body.contains(document.activeElement);
      if (ui || (performance.now() - drawn > (inside ? 5000 : 1000) && !app.paused && !inside)) draw();
    },
  };
}

function blocked(app) {
  const hides = hiding(() => list.draw());
  const list = table(app, {
    label: "What was refused",
    above: h("div", { className: "chips", role: "group", ariaLabel: "What to show" }, hides.element),
    rows() {
      const all = [...app.store.blocked.values()], seen = all.filter((b) => !suppressed(b.row));
      hides.count(all.length - seen.length);
      return hides.shows() ? all : seen;
    },
    open: (b) => app.detail(b.row),
    none: () => empty("Nothing was refused.", "What a sandbox tries and may not do is listed here, by reason."),
    columns: [
      { name: "Severity", by: (b) => (LEVELS.length - LEVELS.indexOf(severity(b.row))) * 1e14 + b.last, first: true, cell: (b) => level(severity(b.row)) },
      { name: "Last", by: (b) => b.last, cls: "when", cell: (b) => ago(b.last) },
      { name: "Reason", by: (b) => b.row.rec.code, cls: "reason", cell: (b) => [h("span", { className: "badge bad" }, b.row.rec.code || b.row.kind), h("small", {}, meaning(b.row.rec)?.why || "")] },
      { name: "What", cls: "wide", cell: (b) => [b.row.rec.method ? h("b", {}, b.row.rec.method + " ") : null, title(b.row)] },
      { name: "Sandbox", cell: (b) => named(b.row.box) },
      { name: "Policy", cell: (b) => b.row.rec.policy || "" },
      { name: "Times", by: (b) => b.n, cls: "num", cell: (b) => count(b.n) },
    ],
  });
  return list;
}

function destinations(app) {
  return table(app, {
    label: "Destinations",
    rows: () => [...app.store.hosts.values()].filter((d) => d.requests || d.up),
    open: (d) => app.show("live", d.host),
    none: () => empty("No destination yet."),
    columns: [
      { name: "Host", by: (d) => d.host, cls: "wide", cell: (d) => h("b", {}, d.host) },
      { name: "Bytes", cls: "chartcell", cell: (d, c) => pair(d.up, d.down, c.max) },
      { name: "Out", by: (d) => d.up, first: true, cls: "num", cell: (d) => bytes(d.up) },
      { name: "In", by: (d) => d.down, cls: "num", cell: (d) => bytes(d.down) },
      { name: "Requests", by: (d) => d.requests, cls: "num", cell: (d) => count(d.requests) },
      { name: "Refused", by: (d) => d.denied, cls: "num", cell: (d) => (d.denied ? h("span", { className: "bad" }, count(d.denied)) : "0") },
      { name: "Sandboxes", by: (d) => d.boxes.size, cls: "num", cell: (d) => count(d.boxes.size) },
      { name: "Last", by: (d) => d.last, cls: "when", cell: (d) => ago(d.last) },
    ],
  });
}

// ---- sandboxes ----

const LANES = [
  ["allowed", (r) => r.kind === "admitted", "good"],
  ["refused", (r) => r.bad && r.kind !== "dns" && r.kind !== "packet", "bad"],
  ["names", (r) => r.kind === "dns" || r.kind === "name", "name"],
  ["packets", (r) => r.kind === "packet", "bad"],
  ["commands", (r) => /^exec_/.test(r.rec.event || ""), "good"],
  ["files", (r) => /^(file|directory)_/.test(r.rec.event || ""), "name"],
  ["events", (r) => r.kind === "lifecycle" && !/^(exec|file|directory)_/.test(r.rec.event || ""), "quiet"],
];

function sandboxes(app) {
  let known = new Map(), asked = 0, chosen = null;
  const refresh = () => {
    asked = performance.now();
    return ask("/v1/sandboxes?limit=1000").then((v) => {
      learn(v.sandboxes);
      known = new Map(v.sandboxes.map((s) => [s.id, s]));
    }).catch(() => {});
  };
  const merged = () => {
    const all = new Map([...known.values()].map((s) => [s.id, { id: s.id, name: s.name || "", policy: s.policy, state: s.state, first: s.created_at * 1000, requests: 0, denied: 0, up: 0, down: 0, last: s.created_at * 1000 }]));
    for (const b of app.store.boxes.values()) all.set(b.id, { state: "", name: "", ...all.get(b.id), ...b, rows: undefined });
    return [...all.values()];
  };
  const list = table(app, {
    label: "Sandboxes",
    rows: merged,
    open: (b) => choose(b.id),
    none: () => empty("No sandbox yet.", "durward run, or durward sandbox create"),
    columns: [
      { name: "Sandbox", by: (b) => b.id, cls: "wide", cell: (b) => [h("b", {}, b.name || short(b.id)), b.name ? h("small", {}, " " + short(b.id)) : null] },
      { name: "State", by: (b) => b.state, cell: (b) => h("span", { className: "badge " + (b.state === "running" ? "good" : "quiet") }, b.state || "seen") },
      { name: "Policy", by: (b) => b.policy, cell: (b) => b.policy },
      { name: "Bytes", cls: "chartcell", cell: (b, c) => pair(b.up, b.down, c.max) },
      { name: "Out", by: (b) => b.up, cls: "num", cell: (b) => bytes(b.up) },
      { name: "Requests", by: (b) => b.requests, cls: "num", cell: (b) => count(b.requests) },
      { name: "Refused", by: (b) => b.denied, cls: "num", cell: (b) => (b.denied ? h("span", { className: "bad" }, count(b.denied)) : "0") },
      { name: "Last", by: (b) => b.last, first: true, cls: "when", cell: (b) => ago(b.last) },
    ],
  });
  const rows = new List({ head: rowHead(), draw: drawRow, open: (row) => app.detail(row), label: "What it did, newest first" });
  const line = h("div", {}), name = h("h2", {}), doing = h("div", { className: "actions" }), sums = h("p", { className: "hint" });
  let told = null; // its story, as the log has it
  const one = h("div", { className: "view one", hidden: true },
    h("div", { className: "back" }, h("button", { className: "plain", onclick: () => choose(null) }, "← All sandboxes"), name, h("span", { className: "grow" }), doing),
    h("div", { className: "panel" }, line, sums), h("div", { className: "panel tablebox" }, rows.element));
  const choose = (id) => {
    chosen = id;
    one.hidden = !id;
    list.element.hidden = !!id;
    told = null;
    if (id) story(id).then((s) => chosen === id && ((told = s), (drawn = 0))).catch((x) => app.toast(x.message));
    view.update(true);
  };
  // What the log had, and what came since.
  const joined = (b) => {
    const live = b ? b.rows : [];
    if (!told) return live;
    const last = told.rows.reduce((n, r) => Math.max(n, r.rec.seq, r.end?.seq || 0), 0);
    return told.rows.concat(live.filter((r) => r.rec.seq > last)).sort((x, y) => x.t - y.t);
  };
  const acts = (id, state) => [
    state === "running" ? h("button", { onclick: () => pause(app, id) }, "Pause") : null,
    state === "paused" ? h("button", { onclick: () => resume(app, id) }, "Resume") : null,
    state ? h("button", { className: "danger", onclick: () => kill(app, id) }, "Kill…") : null,
    h("button", { onclick: () => exportCase(app, { sandbox: id }) }, "Export as a case"),
  ];
  const summed = (rows) => {
    let files = 0, up = 0, down = 0, commands = 0;
    for (const r of rows) {
      if (r.rec.event === "file_read") files += r.rec.bytes_up || 0;
      if (r.rec.event === "exec_started") commands++;
      up += r.end?.bytes_up || 0;
      down += r.end?.bytes_down || 0;
    }
    return `${count(commands)} command${commands === 1 ? "" : "s"}, ${bytes(up)} out and ${bytes(down)} in by requests, ${bytes(files)} of files taken out` + (told?.more ? "; of a longer story, the newest part" : "");
  };
  let shownActs = "";
  let drawn = 0;
  const view = {
    element: h("div", { className: "view" }, list.element, one),
    list: rows,
    filter: (s) => list.filter(s),
    close: () => (chosen ? (choose(null), true) : false),
    choose,
    stale: () => (asked = 0),
    refresh,
    stateOf: (id) => known.get(id)?.state || "",
    update(ui) {
      if (!asked || performance.now() - asked > 5000) refresh();
      if (!chosen) return list.update(ui);
      if (!ui && (app.paused || performance.now() - drawn < 400)) return;
      drawn = performance.now();
      const b = app.store.boxes.get(chosen), k = known.get(chosen);
      const all = joined(b), act = chosen + (k?.state || "");
      if (act !== shownActs) fill(doing, acts(chosen, k?.state));
      shownActs = act;
      text(sums, summed(all));
      fill(name, k?.name || nameOf(chosen) || chosen, " ", h("small", {}, [k?.state, b?.policy || k?.policy].filter(Boolean).join(" · ")));
      fill(line, timeline(all, LANES));
      rows.set(all.slice());
    },
  };
  return view;
}

// ---- approvals ----

function approvals(app) {
  const box = h("div", { className: "cards" });
  let next = 0, all = [];
  const decide = async (a, word) => {
    try {
      const v = await ask(`/v1/approvals/${a.id}/${word}`, {});
      if (v.taken === false) app.toast(`It is said; ${v.host} has not taken it yet.`);
    } catch (x) {
      app.toast(x.message);
    }
    refresh();
  };
  const left = (a) => Math.max(0, Math.round(a.expires - Date.now() / 1000));
  const card = (a) => {
    const time = h("span", { className: "left" }, left(a) + " s left");
    const e = h("div", { className: "panel card", tabIndex: 0 },
      h("header", {}, h("span", { className: "badge warn" }, "asks"), h("b", {}, a.method), h("code", { className: "url" }, a.url + (a.query ? "?" + a.query : "")), h("span", { className: "grow" }), time),
      h("dl", {}, a.host ? [h("dt", {}, "host"), h("dd", { className: "host" }, a.host)] : null,
        h("dt", {}, "sandbox"), h("dd", {}, a.sandbox ? whole(a.sandbox) : "a paired client"), h("dt", {}, "policy"), h("dd", {}, a.policy), h("dt", {}, "rule"), h("dd", {}, h("code", {}, a.rule)),
        a.credential ? [h("dt", {}, "credential"), h("dd", {}, a.credential)] : null,
        a.content_type ? [h("dt", {}, "body"), h("dd", {}, a.content_type + (a.upload_bytes !== null ? ", " + bytes(a.upload_bytes) : ""))] : null),
      h("div", { className: "actions" }, h("button", { className: "primary allow", onclick: () => decide(a, "allow") }, "Allow once", h("kbd", {}, "a")), h("button", { className: "deny", onclick: () => decide(a, "deny") }, "Deny", h("kbd", {}, "d"))));
    e.tick = () => text(time, left(a) + " s left");
    return e;
  };
  const cards = new Map();
  const draw = () => {
    for (const id of [...cards.keys()]) if (!all.some((a) => a.id === id)) cards.delete(id);
    for (const a of all) if (!cards.has(a.id)) cards.set(a.id, card(a));
    const want = [...cards.values()];
    if (want.length !== box.children.length || want.some((c, i) => box.children[i] !== c))
      fill(box, want.length ? want : empty("Nothing waits for a word.", "Requests that an ask rule holds are decided here, or with durward approve."));
    for (const c of want) c.tick();
    app.badge("approvals", all.length ? count(all.length) : "", all.length > 0);
  };
  const refresh = async () => {
    const v = await ask("/v1/approvals");
    all = v.approvals;
    next = v.next;
    draw();
    decided().catch(() => {});
  };
  // Who decided what, and how: the log's records, and the path where the daemon still knows it.
  const past = h("tbody", {});
  const decided = async () => {
    const [log, events] = await Promise.all([ask("/v1/audit/query?" + query({ kind: "lifecycle", text: "approval_", limit: 200 })), ask("/v1/events?limit=1000")]);
    const paths = new Map();
    for (const e of events.events) {
      const m = /^(ap-\w+).*?: \S+ \S+?:\/\/[^/]*(\/.*)$/.exec(e.detail);
      if (m) paths.set(m[1], m[2]);
    }
    const rows = log.records.filter((r) => /^approval_(?!wanted)/.test(r.event));
    fill(past, !rows.length ? h("tr", {}, h("td", { colSpan: 5, className: "hint" }, "Nothing yet.")) : rows.reverse().map((r) => {
      const [, id, who] = /^(\S+)(?: by (.*))?$/.exec(r.detail) || [null, "", ""];
      return h("tr", {}, h("td", { className: "when" }, ago(Date.parse(r.time))), h("td", {}, badge([r.event.slice(9), r.event === "approval_allowed" ? "good" : "bad"])),
        h("td", { className: "wide" }, h("b", {}, (r.method || "") + " "), (r.authority || "") + (paths.get(id) || "")), h("td", {}, named(r.target || "")), h("td", {}, who || ""));
    }));
  };
  (async () => {
    for (;;) {
      try {
        await ask(`/v1/approvals?after=${next}&wait=25`);
        await refresh();
      } catch (x) {
        if (x.status === 401) return;
        await new Promise((done) => setTimeout(done, 3000));
      }
    }
  })();
  let asked = 0;
  return {
    element: h("div", { className: "view" }, box, panel("Decided before",
      h("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Approvals that were decided" }, h("table", { ariaLabel: "Approvals that were decided" }, h("thead", {}, h("tr", {}, ["When", "Outcome", "Request", "Sandbox", "Decided by"].map((x) => h("th", { scope: "col" }, x)))), past)))),
    key(e) {
      const word = { a: "allow", d: "deny" }[e.key], focused = document.activeElement.closest?.(".card");
      if (!word || (!focused && all.length !== 1)) return false; // which one must be clear
      decide(focused ? all[[...box.children].indexOf(focused)] : all[0], word);
      return true;
    },
    update(ui) {
      if (ui || performance.now() - asked > 2000) {
        asked = performance.now();
        refresh().catch(() => {});
      }
      draw();
    },
  };
}

// ---- policies ----

function ruleRow(r) {
  const verb = ["allow", "deny", "ask", "tunnel", "use"].find((k) => r[k] !== undefined) || "rule";
  const where = r[verb];
  const more = Object.entries(r).filter(([k]) => k !== verb && k !== "with");
  const tone = { allow: "good", deny: "bad", ask: "warn" }[verb] || "quiet";
  const plain = (v) => (typeof v === "string" ? v : JSON.stringify(v));
  const secret = r.with ? Object.entries(r.with).map(([kind, v]) => `${kind}: ${plain(v)}`).join(", ") : "";
  return h("li", {}, h("span", { className: "badge " + tone }, verb),
    h("code", {}, [].concat(where).map(plain).join(", ")),
    secret ? h("span", { className: "secret" }, "with " + secret) : null,
    more.map(([k, v]) => h("span", { className: "cond" }, k + ": " + [].concat(v).map(plain).join(", "))));
}

function policies(app) {
  const names = h("select", { id: "policy", onchange: () => load() });
  const rules = h("ol", { className: "rules" });
  const method = h("select", { id: "method" }, ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT"].map((m) => h("option", {}, m)));
  const url = h("input", { id: "url", type: "text", placeholder: "https://api.github.com/repos/acme/site", spellcheck: false, autocomplete: "off" });
  const answer = h("div", { className: "answer", role: "status" });
  const tryIt = async (e) => {
    e?.preventDefault();
    try {
      const a = await ask("/v1/explain", { method: method.value, url: url.value, policy: names.value });
      const tone = { allow: "good", deny: "bad", ask: "warn" }[a.decision];
      fill(answer, h("div", { className: "verdict " + tone }, a.decision),
        h("dl", {}, h("dt", {}, "why"), h("dd", {}, a.why, " ", h("code", {}, a.code)),
          h("dt", {}, "rule"), h("dd", {}, a.rule ? h("code", {}, a.rule) : "none: what no rule allows is denied"),
          h("dt", {}, "credential"), h("dd", {}, a.credential && a.decision !== "deny" ? `${a.credential}, ${a.as}` : "none"),
          h("dt", {}, "authority"), h("dd", {}, h("code", {}, a.authority))));
    } catch (x) {
      fill(answer, h("p", { className: "bad" }, x.message));
    }
  };
  const load = async () => {
    try {
      const v = await ask("/v1/policy?name=" + encodeURIComponent(names.value));
      const list = v.policy.rules || [];
      fill(rules, list.map(ruleRow));
      if (!list.length) fill(rules, empty("No rules: it denies everything."));
    } catch (x) {
      fill(rules, empty(x.message));
    }
  };
  let ready = null;
  const init = async () => {
    const v = await ask("/v1/policies").catch(() => ({ policies: [] }));
    const was = names.value;
    fill(names, v.policies.map((p) => h("option", {}, p.name)));
    if (was) names.value = was;
    if (v.policies.length) load();
  };
  return {
    element: h("div", { className: "view policies" },
      panel("Try a request",
        h("form", { className: "try", onsubmit: tryIt },
          h("label", {}, "Policy", names), h("label", {}, "Method", method), h("label", { className: "grow" }, "URL", url),
          h("button", { className: "primary", type: "submit" }, "Explain")),
        h("p", { className: "hint" }, "Decided here by the same function as in the gate. Nothing is sent."), answer),
      panel("Rules", rules)),
    async explain(row) {
      await (ready ||= init());
      if (row.rec.policy) names.value = row.rec.policy;
      method.value = row.rec.method || "GET";
      url.value = `${row.rec.scheme || "https"}://${row.rec.authority || row.rec.target}${row.rec.path || "/"}`;
      load();
      tryIt();
    },
    focus: () => url.focus(),
    update(ui) {
      if (ui) ready = init();
    },
  };
}

// ---- verification ----

// The whole log, by a process of the daemon: it reads all files anew.
function wholeLog() {
  const said = h("div", { className: "whole-said", role: "status" });
  const button = h("button", { className: "primary", id: "verify-whole", type: "button" }, "Verify the whole log");
  let since = 0;
  const result = (v, took) => {
    const p = v.problem;
    const where = p ? (p.file || "the log") + (p.line ? `:${p.line}` : "") : "";
    return h("div", { className: "seal " + (v.ok ? "good" : "bad") },
      h("div", { className: "mark" }, v.ok ? "✓" : "✕"),
      h("div", {}, h("h2", {}, v.ok ? "The whole log is good" : "The log is broken"),
        p ? h("p", {}, h("code", {}, where), ": ", p.why, ".") : null,
        h("p", {}, `${several(v.records, v.ok ? "record" : "good record")} in ${several(v.files, "file")}` +
          (v.logs > 1 ? ` of ${count(v.logs)} logs` : "") + `, ${several(v.checkpoints, "checkpoint")}, ${count(v.unsigned)} not signed yet; ` +
          `${clock(Date.now())}, in ${(took / 1000).toFixed(1)} s.`)));
  };
  const run = async () => {
    if (since) return;
    since = performance.now();
    button.setAttribute("aria-disabled", "true");
    fill(said, h("p", { className: "hint" }, "Reading all of it…"));
    try {
      const v = await ask("/v1/audit/verify", {});
      fill(said, result(v, performance.now() - since));
    } catch (x) {
      fill(said, h("p", { className: "bad" }, "It was not verified: " + x.message));
    }
    since = 0;
    button.removeAttribute("aria-disabled");
  };
  button.onclick = run;
  return panel("The whole log",
    h("p", {}, "All files, from the first record to the last, are read anew by the daemon: the chain, each checkpoint and the signed head, with the key of the logger that runs."), button, said);
}

function verification(app) {
  const out = h("div", {});
  let drawn = 0;
  const fact = (name, value, cls) => h("div", { className: "fact " + (cls || "") }, h("b", {}, value), h("span", {}, name));
  return {
    element: h("div", { className: "view" }, out, wholeLog(),
      panel("What this means",
        h("p", {}, "Each line of the audit log carries the hash of the line before. This page has computed the hashes of all lines that it was shown, and has checked the signatures of checkpoints (Ed25519, once a minute) with the key above. Compare the key's bytes with your own copy of key.pub."),
        h("p", {}, "It cannot speak for what was written before, or of what it was not shown: for that, the daemon's answer above; or, on a machine that you trust, offline, with nothing but the public key (and with --anchor, which alone shows that all of it was put back to an older state):"),
        h("pre", {}, "durward audit verify --key key.pub DIR"))),
    update(ui) {
      if (!ui && performance.now() - drawn < 500) return;
      drawn = performance.now();
      const v = app.verifier, bad = v.broken.length, c = v.lastCheckpoint;
      fill(out,
        h("div", { className: "panel seal " + (bad ? "bad" : v.checked ? "good" : "quiet") },
          h("div", { className: "mark" }, bad ? "✕" : v.checked ? "✓" : "…"),
          h("div", {}, h("h2", {}, bad ? "The log was changed" : v.checked ? "Unbroken as far as it was shown here" : "No line yet"),
            h("p", {}, bad ? `${several(bad, "line")} ${bad === 1 ? "does" : "do"} not fit; the first is ${v.broken[0].seq}: ${v.broken[0].why}.` : `${several(v.checked, "line")}, up to number ${count(v.seq)}.`))),
        h("div", { className: "facts" },
          fact("lines checked", count(v.checked)),
          fact("gaps (lines not shown)", count(v.gaps), v.gaps ? "warn" : ""),
          fact("not checked (too many at once)", count(v.unchecked), v.unchecked ? "warn" : ""),
          fact("checkpoints with a right signature", `${count(v.checkpoints - v.badCheckpoints)} of ${count(v.checkpoints)}`, v.badCheckpoints ? "bad" : ""),
          fact("last checkpoint", c ? `line ${count(c.seq)}, ${ago(c.time)}` : "none yet"),
          fact("log", app.logger ? "is written" : "cannot be written", app.logger ? "" : "bad")),
        panel("Public key", h("code", { className: "key" }, v.key || "not told yet")));
    },
  };
}

// ---- volumes ----

function volumes(app) {
  let known = [], asked = 0;
  const list = table(app, {
    label: "Volumes",
    rows: () => known,
    open: () => {},
    none: () => empty("No volume yet.", "durward volume create"),
    columns: [
      { name: "Volume", by: (v) => v.name, first: true, cls: "wide", cell: (v) => [h("b", {}, v.name), v.snapshot_of ? h("small", {}, " snapshot of " + v.snapshot_of) : null] },
      { name: "State", by: (v) => v.state, cell: (v) => h("span", { className: "badge " + (v.state === "ready" ? "good" : "quiet") }, v.state) },
      { name: "Policy", by: (v) => v.policy, cell: (v) => v.policy },
      { name: "Writers", by: (v) => v.access, cell: (v) => v.access },
      { name: "Size", by: (v) => v.size, cls: "num", cell: (v) => bytes(v.size) },
      { name: "Mounted in", by: (v) => v.mounted.length, cls: "wide", cell: (v) => v.mounted.map((m) => `${named(m.sandbox)} at ${m.path}${m.read_only ? " (reads)" : ""}`).join(", ") },
      { name: "Made", by: (v) => v.created_at, cls: "when", cell: (v) => ago(v.created_at * 1000) },
    ],
  });
  return {
    element: list.element,
    filter: (s) => list.filter(s),
    update(ui) {
      if (ui || performance.now() - asked > 2000) {
        asked = performance.now();
        ask("/v1/volumes").then((v) => {
          known = v.volumes;
          list.update(true);
        }).catch(() => {});
      }
      list.update(ui);
    },
  };
}

export const VIEWS = [
  { id: "live", name: "Live", key: "1", make: live },
  { id: "blocked", name: "Blocked", key: "2", make: blocked },
  { id: "approvals", name: "Approvals", key: "3", make: approvals },
  { id: "destinations", name: "Destinations", key: "4", make: destinations },
  { id: "sandboxes", name: "Sandboxes", key: "5", make: sandboxes },
  { id: "policies", name: "Policies", key: "6", make: policies },
  { id: "history", name: "History", key: "7", make: (app) => history(app, { head: rowHead(), draw: drawRow, empty }) },
  { id: "proposals", name: "Proposals", key: "8", make: (app) => proposals(app, { empty }) },
  { id: "suppressions", name: "Suppressions", key: "s", make: (app) => suppressions(app, { empty }) },
  { id: "verify", name: "Verification", key: "9", make: verification },
  { id: "volumes", name: "Volumes", key: "0", make: volumes },
  { id: "fleet", name: "Fleet", key: "f", make: (app) => fleet(app, { empty }) },
];
