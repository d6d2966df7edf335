// What can be done about a row: its sandbox ends, pauses, goes on; a token is revoked; a request is
// proposed to be allowed. Each asks before, and is recorded.

import { h } from "./dom.js";
import { ask } from "./feed.js";
import { whole } from "./codes.js";
import { question } from "./dialog.js";
import { canSuppress, suppress, suppressed } from "./suppressions.js";

async function done(app, what, path, method = "POST") {
  try {
    await ask(path, method === "DELETE" ? undefined : {}, method);
    app.toast(what);
    app.views.get("sandboxes").stale?.();
  } catch (x) {
    app.toast(x.message);
  }
}

export async function kill(app, id) {
  const sure = await question({ title: `End ${whole(id)}?`, yes: "End it", danger: true,
    body: h("p", {}, "All that runs in it ends now. What it wrote is gone unless its policy keeps it.") });
  if (sure) await done(app, "It was ended.", "/v1/sandboxes/" + id, "DELETE");
}

export const pause = (app, id) => done(app, "It is paused.", `/v1/sandboxes/${id}/pause`);
export const resume = (app, id) => done(app, "It goes on.", `/v1/sandboxes/${id}/resume`);

export async function revoke(app, id) {
  const sure = await question({ title: `Revoke the token of ${id}?`, yes: "Revoke it", danger: true,
    body: h("p", {}, "Whoever uses it is refused from now on.") });
  if (sure) await done(app, "The token is revoked.", "/v1/identities/" + id, "DELETE");
}

// A rule to be read by somebody, of what was refused here.
export async function propose(app, row) {
  const r = row.rec;
  const url = h("input", { type: "text", id: "propose-url", spellcheck: false, autocomplete: "off", value: `${r.scheme || "https"}://${r.authority || r.target}${r.path || "/"}` });
  const method = h("select", { id: "propose-method" }, ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((m) => h("option", {}, m)));
  const reason = h("input", { type: "text", id: "propose-reason", maxLength: 280, autocomplete: "off" });
  method.value = r.method || "GET";
  const answer = await question({ title: "Allow from now on?", yes: "Propose it", read: () => ({ policy: r.policy, method: method.value, url: url.value, sandbox: row.box || "", reason: reason.value }),
    body: h("div", { className: "fields" },
      h("p", {}, "This makes a rule of it, to be reviewed. Nothing is allowed before the rule is in the policy ", h("code", {}, r.policy || ""), "."),
      h("label", {}, "Method", method), h("label", {}, "URL; '*' stands for one part of a path, '**' for the rest", url), h("label", {}, "Reason", reason)) });
  if (!answer) return;
  try {
    const v = await ask("/v1/proposals", answer);
    app.show("proposals");
    app.views.get("proposals").refresh(v.id);
  } catch (x) {
    app.toast(x.message);
  }
}

const refused = (row) => row.kind === "denied" && row.rec.policy && ["no_rule", "method", "denied", "denied_by_rule"].includes(row.rec.code) && (row.rec.authority || row.rec.target);

// The buttons of a row; state: of its sandbox, as the daemon says it.
export function buttons(app, row, state) {
  const id = row.box, list = [];
  const b = (name, fn, danger) => list.push(h("button", { className: danger ? "danger" : "", onclick: fn }, name));
  if (refused(row)) b("Allow from now on…", () => propose(app, row));
  if (canSuppress(row) && !suppressed(row)) b("Suppress…", () => suppress(app, row));
  if (id && state === "running") b("Pause", () => pause(app, id));
  if (id && state === "paused") b("Resume", () => resume(app, id));
  if (id && state && state !== "stopping") b("Kill…", () => kill(app, id), true);
  if (/^rt-/.test(id)) b("Revoke token…", () => revoke(app, id), true);
  return list;
}
