// What was proposed to be allowed: who asks, in whose words, the rule and what it would change.

import { h, fill, text, count, ago } from "./dom.js";
import { ask } from "./feed.js";
import { whole } from "./codes.js";

const TONES = { open: "warn", accepted: "good", rejected: "quiet" };

const rule = (r) => `${r.rule} (${r.where})`;

function card(app, p, decide) {
  const own = p.made_by === "sandbox";
  return h("article", { className: "panel card", tabIndex: 0, id: p.id },
    h("header", {}, h("span", { className: "badge " + TONES[p.state] }, p.state), h("b", {}, p.method), h("code", { className: "url" }, p.target), h("span", { className: "grow" }), h("span", { className: "hint" }, ago(p.created * 1000))),
    h("dl", {}, h("dt", {}, "asked by"), h("dd", {}, own ? h("button", { className: "link", onclick: () => app.sandbox(p.sandbox) }, whole(p.sandbox)) : p.made_by),
      h("dt", {}, "policy"), h("dd", {}, p.policy),
      p.before ? [h("dt", {}, "today"), h("dd", {}, p.before), h("dt", {}, "with the rule"), h("dd", {}, p.after + (p.after === "deny" ? ": a deny rule of the policy is stronger" : ""))] : null,
      p.decides ? [h("dt", {}, "decides today"), h("dd", {}, rule(p.decides))] : null,
      p.overlaps?.length ? [h("dt", {}, "stands beside"), h("dd", {}, p.overlaps.map((r) => h("div", {}, rule(r))), p.overlaps_more ? h("div", {}, "and more rules") : null)] : null,
      p.lifts ? [h("dt", {}, "would lift the conditions of"), h("dd", {}, rule(p.lifts))] : null,
      p.decided_by ? [h("dt", {}, "decided by"), h("dd", {}, `${p.decided_by}, ${ago(p.decided * 1000)}`)] : null),
    p.reason ? h("figure", {}, h("figcaption", {}, own ? "The sandbox's own words; they may say anything:" : "Reason:"), h("blockquote", {}, p.reason)) : null,
    p.diff ? h("pre", { className: "diff", tabIndex: 0, ariaLabel: "What it adds to the policy" }, p.diff.split("\n").filter(Boolean).map((l) => h("span", { className: l[0] === "+" && l[1] !== "+" ? "added" : "" }, l + "\n"))) : null,
    p.state === "open"
      ? h("div", { className: "actions" }, h("button", { className: "primary", onclick: () => decide(p, "accept") }, "Accept"), h("button", { onclick: () => decide(p, "reject") }, "Reject"))
      : p.state === "accepted" && p.before === "deny"
        ? [h("p", { className: "hint" }, "It is allowed when the policy has it. Whoever may write the configuration:"), h("pre", { tabIndex: 0 }, `durward proposals accept --write ${p.id}`)]
        : null);
}

export function proposals(app, { empty }) {
  const box = h("div", { className: "cards" });
  let all = [], asked = 0, drawn = "";
  const decide = async (p, word) => {
    try {
      await ask(`/v1/proposals/${p.id}/${word}`, {});
    } catch (x) {
      app.toast(x.message);
    }
    refresh(p.id);
  };
  const refresh = async (focus) => {
    const v = await ask("/v1/proposals");
    const whole = await Promise.all(v.proposals.slice(-100).map((p) => ask("/v1/proposals/" + p.id).catch(() => p)));
    all = whole.sort((a, b) => (a.state === "open") - (b.state === "open") || a.sequence - b.sequence).reverse();
    const open = all.filter((p) => p.state === "open").length;
    app.badge("proposals", open ? count(open) : "", open > 0);
    const now = JSON.stringify(all);
    if (now !== drawn) {
      const held = focus || document.activeElement?.closest?.(".card")?.id;
      fill(box, all.length ? all.map((p) => card(app, p, decide)) : empty("Nothing was proposed.", "A program in a sandbox asks at http://durward.internal/proposals; you ask with a refused row, Allow from now on."));
      drawn = now;
      if (held) document.getElementById(held)?.focus();
    }
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
