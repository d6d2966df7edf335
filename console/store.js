// What was seen, put together: requests with their ends, and sums by host, sandbox and reason. All of it
// is bounded. Counts by kind are exact, also of records that were not shown.

import { learn } from "./codes.js";

const ROWS = 100000;
const HOSTS = 5000;
const BEHIND = 20000; // lines that may wait; beyond, a sample is read and the rest counted
const SECONDS = 120;
const TRAIL = 1500; // rows kept for one sandbox

export const ATTEMPTS = new Set(["admitted", "denied", "tls_refused", "packet", "dns"]);
const SELFTEST = "self-test.durward.invalid";
const KIND = /"kind":"(\w+)"/;

export class Store {
  constructor() {
    this.rows = [];
    this.alone = false; // of a question: ends may come without their beginnings
    this.dropped = 0; // rows that were let go, so that a list can follow
    this.open = new Map();
    this.counts = {};
    this.skipped = 0; // told by the daemon, or passed over here
    this.serverSkipped = {};
    this.hosts = new Map();
    this.blocked = new Map();
    this.boxes = new Map();
    this.seconds = [];
    this.queue = [];
    this.sampling = 1;
    this.up = 0;
    this.down = 0;
    this.version = 0;
  }

  add(lines) {
    for (const l of lines) this.queue.push(l);
  }

  // The daemon's count of what it did not send to us, cumulative.
  skippedByServer(kinds) {
    for (const [k, n] of Object.entries(kinds)) {
      const more = n - (this.serverSkipped[k] || 0);
      this.serverSkipped[k] = n;
      this.counts[k] = (this.counts[k] || 0) + more;
      this.skipped += more;
    }
  }

  // Work for some milliseconds; true: there is more.
  work(ms) {
    const end = performance.now() + ms;
    if (this.queue.length > BEHIND) this.sample();
    let i = 0;
    for (; i < this.queue.length; i++) {
      if ((i & 63) === 63 && performance.now() > end) break;
      this.take(this.queue[i]);
    }
    if (i) {
      this.queue.splice(0, i);
      this.version++;
      this.trim();
    }
    if (this.queue.length < BEHIND / 4) this.sampling = 1;
    return this.queue.length > 0;
  }

  // Too much to read: one in n is read, the rest is counted by kind. Sums of bytes are then of what was read.
  sample() {
    const n = Math.ceil(this.queue.length / (BEHIND / 2));
    this.sampling = Math.max(this.sampling, n);
    const kept = [];
    this.queue.forEach((line, i) => {
      if (i % n === 0) {
        kept.push(line);
        return;
      }
      const kind = KIND.exec(line)?.[1] || "unknown";
      this.counts[kind] = (this.counts[kind] || 0) + 1;
      this.skipped++;
    });
    this.queue = kept;
  }

  take(line) {
    let r;
    try {
      r = JSON.parse(line);
    } catch {
      return;
    }
    this.put(r);
  }

  put(r) {
    this.counts[r.kind] = (this.counts[r.kind] || 0) + 1;
    const t = Date.parse(r.time);
    if (r.kind === "lifecycle" && r.event === "sandbox_named") learn([{ id: r.target, name: r.detail }]);
    if (r.kind === "completed" || r.kind === "aborted") return this.end(r, t);
    if (r.kind === "opened" || r.kind === "progress") return this.progress(r);
    if (r.kind === "connection" || r.kind === "checkpoint") return;
    this.begin(r, t);
  }

  begin(r, t) {
    const row = { t, rec: r, end: null, kind: r.kind, host: hostOf(r), box: r.sandbox || (r.kind === "lifecycle" && /^(sb|rt)-/.test(r.target || "") ? r.target : "") };
    if (r.kind === "dns" && (!r.code || r.code === "ok")) row.kind = "name";
    if (r.kind === "completed" || r.kind === "aborted") row.kind = "admitted";
    if (row.host === SELFTEST) row.kind = "name"; // the start-up test asks for it: nobody's doing
    row.bad = row.kind === "denied" || row.kind === "packet" || row.kind === "tls_refused" || row.kind === "dns";
    this.rows.push(row);
    this.tick(t, row);
    if (r.kind === "admitted") this.open.set(r.id, row);
    if (this.open.size > 20000) this.open.delete(this.open.keys().next().value);
    this.box(row);
    if (row.kind === "lifecycle") return;
    const d = this.host(row.host);
    if (d) {
      d.last = t;
      if (r.kind === "admitted" || row.bad) d.requests += row.bad ? r.count || 1 : 1;
      if (row.bad) d.denied += r.count || 1;
      if (row.box) d.boxes.add(row.box);
    }
    if (row.bad) this.block(row);
  }

  end(r, t) {
    if (this.alone && !this.open.has(r.id)) { // its beginning was not asked for
      this.begin(r, t);
      this.rows[this.rows.length - 1].end = r;
      return;
    }
    const row = this.open.get(r.id);
    this.up += r.bytes_up || 0;
    this.down += r.bytes_down || 0;
    if (!row) return;
    this.open.delete(r.id);
    row.end = r;
    const d = this.hosts.get(row.host), b = this.boxes.get(row.box);
    for (const x of [d, b]) {
      if (!x) continue;
      x.up += r.bytes_up || 0;
      x.down += r.bytes_down || 0;
    }
  }

  progress(r) {
    const row = this.open.get(r.id);
    if (row) row.now = r;
  }

  tick(t, row) {
    const s = Math.floor(t / 1000), last = this.seconds[this.seconds.length - 1];
    let e = last && last.s === s ? last : null;
    if (!e && (!last || s > last.s)) {
      e = { s, ok: 0, bad: 0, other: 0 };
      this.seconds.push(e);
      if (this.seconds.length > SECONDS) this.seconds.shift();
    }
    if (e) e[row.bad ? "bad" : row.kind === "admitted" ? "ok" : "other"]++;
  }

  host(name) {
    if (!name) return null;
    let d = this.hosts.get(name);
    if (!d && this.hosts.size < HOSTS) {
      d = { host: name, requests: 0, denied: 0, up: 0, down: 0, boxes: new Set(), last: 0 };
      this.hosts.set(name, d);
    }
    return d;
  }

  box(row) {
    const id = row.box;
    if (!id) return;
    let b = this.boxes.get(id);
    if (!b) {
      if (this.boxes.size >= HOSTS) this.boxes.delete(this.boxes.keys().next().value);
      b = { id, policy: "", first: row.t, last: row.t, requests: 0, denied: 0, up: 0, down: 0, rows: [] };
      this.boxes.set(id, b);
    }
    b.policy = row.rec.policy || b.policy;
    b.last = Math.max(b.last, row.t);
    if (row.kind === "admitted") b.requests++;
    if (row.bad) b.denied += row.rec.count || 1;
    b.rows.push(row);
    if (b.rows.length > TRAIL) b.rows.splice(0, TRAIL / 5);
  }

  block(row) {
    const key = [row.box, row.rec.code, row.host, row.rec.method || "", row.rec.path || ""].join(" ");
    let b = this.blocked.get(key);
    if (!b) {
      if (this.blocked.size >= HOSTS) this.blocked.delete(this.blocked.keys().next().value);
      b = { key, row, n: 0, first: row.t, last: row.t };
      this.blocked.set(key, b);
    }
    b.n += row.rec.count || 1;
    b.last = row.t;
    b.row = row;
  }

  trim() {
    if (this.rows.length <= ROWS + ROWS / 10) return;
    const n = this.rows.length - ROWS;
    this.rows.splice(0, n);
    this.dropped += n;
  }
}

// The host that it was about, without the usual port.
export function hostOf(r) {
  const a = r.authority || r.target || "";
  return a.replace(/:(443|80)$/, "").replace(/\.$/, "");
}

// One line of text for people.
export function title(row) {
  const r = row.rec;
  if (row.kind === "lifecycle") {
    const what = r.authority ? `${r.method || ""} ${hostOf(r)}${r.path || ""}` : r.path || "";
    return [r.event, row.box ? "" : r.target, what, r.detail].filter(Boolean).join(" · ");
  }
  if (r.method) return hostOf(r) + (r.path || "") + (r.query ? "?" + r.query : "");
  return [r.authority || r.target || "", r.detail].filter(Boolean).join(" · ");
}

export function verdict(row) {
  if (row.kind === "denied") return ["denied", "bad"];
  if (row.kind === "packet") return ["packet", "bad"];
  if (row.kind === "dns") return ["name", "bad"];
  if (row.kind === "name") return ["name", "quiet"];
  if (row.kind === "tls_refused") return ["tls", "warn"];
  if (row.kind === "lifecycle") return ["event", "quiet"];
  if (!row.end) return ["open", "busy"];
  if (row.end.kind === "aborted") return ["aborted", "warn"];
  if (row.end.code === "secret_reflected") return ["reflected", "warn"];
  return ["allowed", "good"];
}
