// Findings that somebody looked at: what the first view leaves out until a date. Which ones, it says as
// audit/write/suppression.c does for notices; the log has them all.

import { h, fill, count, ago } from "./dom.js";
import { ask } from "./feed.js";
import { meaning, severity, whole } from "./codes.js";
import { question } from "./dialog.js";

const TONES = { open: "warn", active: "good", lifted: "quiet", expired: "quiet" };
const SPANS = [[86400, "a day"], [7 * 86400, "7 days"], [30 * 86400, "30 days"], [90 * 86400, "90 days"]];
const CRITICAL_SECONDS = 7 * 86400;
const FINDINGS = new Set(["denied", "dns", "packet", "tls_refused"]);
let active = [], version = 0;

const plain = (host) => host.replace(/:(443|80)$/, "").replace(/\.$/, "").toLowerCase();
const codeOf = (r) => r.code || r.kind;

export const isFinding = (r) => FINDINGS.has(r.kind) && !(r.kind === "dns" && (!r.code || r.code === "ok"));

function fits(s, r) {
  const want = plain(s.host), host = plain(r.authority || r.target || "");
  return s.expires * 1000 > Date.now() && s.code === codeOf(r) && s.policy === (r.policy || "") &&
    (want.startsWith("*.") ? host.length > want.length - 1 && host.endsWith(want.slice(1)) : host === want) &&
    (!s.method || s.method === r.method) &&
    (!s.path || (s.path.endsWith("**") ? (r.path || "").startsWith(s.path.slice(0, -2)) : s.path === r.path)) &&
    (!s.sandbox || s.sandbox === r.sandbox);
}

// The one that hides this row; what was found is kept beside the row until the list is another one.
export function suppressed(row) {
  if (!active.length || !isFinding(row.rec)) return null;
  if (row.suppressedAs !== version) {
    row.suppressedAs = version;
    row.suppressedBy = active.find((s) => fits(s, row.rec)) || null;
  }
  return row.suppressedBy;
}

export const changes = () => version;

function take(all) {
  const now = all.filter((s) => s.state === "active");
  if (JSON.stringify(now) === JSON.stringify(active)) return;
  active = now;
  version++;
}

// Asked for at the start, now and then, and whenever something changed here.
export async function load() {
  const v = await ask("/v1/suppressions");
  take(v.suppressions);
  return v.suppressions;
}

export const canSuppress = (row) => isFinding(row.rec) && row.rec.policy && (row.rec.authority || row.rec.target);

export async function suppress(app, row) {
  const r = row.rec;
  const field = (id, value, max) => h("input", { type: "text", id, value, maxLength: max, spellcheck: false, autocomplete: "off" });
  const host = field("suppress-host", plain(r.authority || r.target), 255), path = field("suppress-path", r.path && r.path.length < 256 ? r.path : "", 255);
  const method = field("suppress-method", r.method || "", 23), reason = field("suppress-reason", "", 280);
  const only = h("input", { type: "checkbox", id: "suppress-only" });
  const critical = severity(row) === "critical";
  const until = h("select", { id: "suppress-for" }, SPANS.filter(([s]) => !critical || s <= CRITICAL_SECONDS).map(([s, name]) => h("option", { value: s }, name)));
  reason.required = true;
  host.required = true;
  const read = () => ({ policy: r.policy, code: codeOf(r), host: host.value.trim(), path: path.value.trim(), method: method.value.trim(), sandbox: only.checked ? row.box : "", reason: reason.value, expires_in: Number(until.value) });
  const answer = await question({ title: `Suppress ${codeOf(r)}?`, yes: "Write it", read,
    body: h("div", { className: "fields" },
      h("p", {}, "Once somebody accepted it, such findings are left out of this page's first view and of notices until it ends. The log keeps all of them, and what pauses or kills counts them."),
      h("p", { className: "hint" }, `Of the policy ${r.policy}. ${meaning(r)?.why || ""}`),
      h("label", {}, "Host; *. at the front stands for what is below a name", host), h("label", {}, "Method; empty: any", method), h("label", {}, "Path; empty: any; /** at its end: all below", path),
      row.box ? h("label", { className: "check" }, only, `only of ${whole(row.box)}`) : null,
      h("label", {}, "Reason", reason), h("label", {}, "For", until)) });
  if (!answer) return;
  try {
    const s = await ask("/v1/suppressions", answer);
    app.show("suppressions");
    app.views.get("suppressions").refresh(s.id);
  } catch (x) {
    app.toast(x.message);
  }
}

const day = (s) => new Date(s * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";

function card(app, s, act) {
  const fact = (name, value) => (value ? [h("dt", {}, name), h("dd", {}, value)] : null);
  return h("article", { className: "panel card", tabIndex: 0, id: s.id },
    h("header", {}, h("span", { className: "badge " + TONES[s.state] }, s.state), h("b", {}, s.code), h("code", { className: "url" }, `${s.method ? s.method + " " : ""}${s.host}${s.path || ""}`), h("span", { className: "grow" }), h("span", { className: "hint" }, ago(s.created * 1000))),
    h("dl", {}, fact("policy", s.policy), fact("sandbox", s.sandbox && whole(s.sandbox)), fact("severity", s.severity),
      fact("written by", `${s.made_by}, ${day(s.created)}`), fact("accepted by", s.accepted && `${s.accepted_by}, ${day(s.accepted)}`),
      fact("lifted by", s.lifted && `${s.lifted_by}, ${day(s.lifted)}`), fact(s.state === "expired" ? "expired" : "ends", day(s.expires)), fact("reason", s.reason)),
    s.state === "open" ? [h("p", { className: "hint" }, "It hides nothing yet. What was written in the console is accepted by another token, or on the daemon's host:"), h("pre", { tabIndex: 0 }, `durward suppressions accept ${s.id}`)] : null,
    s.state === "open" || s.state === "active"
      ? h("div", { className: "actions" },
        s.state === "open" && s.made_by !== "console" ? h("button", { className: "primary", onclick: () => act(s, "/accept", "POST") }, "Accept") : null,
        h("button", { onclick: () => act(s, "", "DELETE") }, s.state === "open" ? "Withdraw" : "Lift"),
        h("button", { onclick: () => { app.show("history"); app.views.get("history").search({ code: s.code, host: s.host.replace(/^\*\.|:\d+$/g, ""), policy: s.policy, kind: "deny" }); } }, "What it is about"))
      : null);
}

export function suppressions(app, { empty }) {
  const box = h("div", { className: "cards" });
  let drawn = "", asked = 0;
  const act = async (s, verb, method) => {
    try {
      await ask(`/v1/suppressions/${s.id}${verb}`, method === "POST" ? {} : undefined, method);
    } catch (x) {
      app.toast(x.message);
    }
    refresh(s.id);
  };
  const refresh = async (focus) => {
    const all = (await load()).reverse(), order = ["open", "active", "expired", "lifted"];
    all.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
    const open = all.filter((s) => s.state === "open").length;
    app.badge("suppressions", open ? count(open) : "", open > 0);
    const now = JSON.stringify(all);
    if (now === drawn) return;
    const held = focus || document.activeElement?.closest?.(".card")?.id;
    fill(box, all.length ? all.map((s) => card(app, s, act)) : empty("Nothing is suppressed.", "A refused row has Suppress: with a reason and a date, it is left out of the first view and of notices. The log has it all the same."));
    drawn = now;
    if (held) document.getElementById(held)?.focus();
  };
  setInterval(() => document.hidden || refresh().catch(() => {}), 5000);
  refresh().catch(() => {});
  return {
    element: h("div", { className: "view" }, box),
    refresh,
    update(ui) {
      if (ui || performance.now() - asked > 2000) {
        asked = performance.now();
        refresh().catch(() => {});
      }
    },
  };
}
