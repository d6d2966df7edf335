// All hosts of the fleet, as this one knows them: who is there, how far each one's audit log goes and
// what does not agree, what each holds. Nobody is asked across the network: beside each thing stands how
// old it is.

import { h, fill, text, count, several } from "./dom.js";
import { ask } from "./feed.js";

const TONES = { connected: "good", silent: "bad", unknown: "quiet", agrees: "good", doubted: "bad" };
const LOGS = { agrees: "agrees", doubted: "does not agree", unknown: "no head known" };
const FAULTS = { missing: "heads are missing", forked: "forked", rolled_back: "cut or rolled back", changed: "changed in the database", unsigned: "not signed by it", unknown: "no head known" };

const badge = (state, says) => h("span", { className: "badge " + (TONES[state] || "quiet") }, says || state);
const known = (n) => (n === null || n === undefined ? "?" : count(n));

// Seconds, as a person says them; null: never.
export function span(s) {
  if (s === null || s === undefined) return "never";
  if (s < 2) return "just now";
  if (s < 120) return s + " s ago";
  if (s < 7200) return Math.floor(s / 60) + " min ago";
  if (s < 172800) return Math.floor(s / 3600) + " h ago";
  return Math.floor(s / 86400) + " d ago";
}

function log(l) {
  if (!l) return h("dd", {}, h("span", { className: "hint" }, "fleet.logs does not name it: nobody holds its log against what it said"));
  const words = [...new Set(l.problems.map((p) => FAULTS[p.what] || p.what))];
  return h("dd", { className: "log" }, badge(l.state, l.state === "doubted" ? words.join(", ") : LOGS[l.state]),
    l.head ? ` ${several(l.records, "record")}, said ${span(l.age_seconds)}` : null,
    l.problems.length ? h("ul", { className: "problems" }, l.problems.map((p) => h("li", {}, p.text))) : null);
}

function shares(x) {
  if (!x.shares) return "?";
  if (!x.shares.length) return "none";
  return [h("ul", { className: "shares" }, x.shares.map((s) => h("li", {}, h("b", {}, count(s.held)), ` of ${s.limit}, policy ${s.policy}`))),
    x.shares_more ? h("span", { className: "hint" }, `and ${count(x.shares_more)} more`) : null];
}

function since(x) {
  if (x.this) return "this host";
  return x.age_seconds === null ? "never heard" : (x.state === "silent" ? "silent, last heard " : "heard ") + span(x.age_seconds);
}

function card(x) {
  const old = x.state !== "connected" && x.sandboxes !== null;
  return h("article", { className: "panel card host" + (old ? " stale" : ""), tabIndex: 0, ariaLabel: "Host " + x.host },
    h("header", {}, badge(x.state), h("b", {}, x.host), h("span", { className: "grow" }), h("span", { className: "since" }, since(x))),
    x.why ? h("p", { className: "why" }, x.why[0].toUpperCase() + x.why.slice(1) + ".") : null,
    h("dl", {}, h("dt", {}, "audit log"), log(x.log),
      h("dt", {}, "sandboxes"), h("dd", { className: "sandboxes" }, known(x.sandboxes)),
      h("dt", {}, "waits for a word"), h("dd", { className: "held" }, known(x.held)),
      h("dt", {}, "shares of budgets"), h("dd", { className: "holds" }, shares(x)),
      x.version ? [h("dt", {}, "version"), h("dd", {}, x.version)] : null),
    old ? h("p", { className: "hint" }, "It said this " + span(x.age_seconds) + ".") : null);
}

export function fleet(app, { empty }) {
  const box = h("div", { className: "cards" }), said = h("p", { className: "hint", role: "status" });
  let asked = 0, drawn = "";
  const draw = (v) => {
    if (v.host === null) return fill(box, empty("This host is in no fleet.", "durward.yaml(5), Fleet: several hosts that share budgets, revocations and approvals"));
    const wrong = v.hosts.filter((x) => x.state === "silent" || x.log?.state === "doubted").length;
    app.badge("fleet", wrong ? count(wrong) : "", wrong > 0);
    text(said, v.connected ? `As read by ${v.host} ${span(v.age_seconds)}. No other host was asked.`
      : `${v.host} does not hear the fleet. What is below was read ${span(v.age_seconds)}.`);
    said.classList.toggle("bad", !v.connected);
    const now = JSON.stringify(v.hosts);
    if (now === drawn) return;
    drawn = now;
    const held = document.activeElement?.closest?.(".host")?.getAttribute("aria-label");
    fill(box, v.hosts.map(card));
    if (held) [...box.children].find((e) => e.getAttribute("aria-label") === held)?.focus();
  };
  const refresh = () => ask("/v1/fleet").then(draw).catch((x) => {
    text(said, "");
    drawn = "";
    fill(box, h("p", { className: "bad" }, x.message));
  });
  return {
    element: h("div", { className: "view" }, said, box),
    update(ui) {
      if (!ui && (app.paused || performance.now() - asked < 2000)) return;
      asked = performance.now();
      refresh();
    },
  };
}
