// The page: its frame, keys, the stream, and what is shown of one record.

import { h, fill, text, count, clock, bytes } from "./dom.js";
import { ask, login, logout, watch, isLink } from "./feed.js";
import { Store, title, verdict } from "./store.js";
import { Verifier } from "./verify.js";
import { VIEWS } from "./views.js";
import { load, meaning, severity, level, learn, whole } from "./codes.js";
import { buttons } from "./actions.js";
import { suppressed, changes, load as loadSuppressions } from "./suppressions.js";

const FRAME = 100; // ms between two drawings
const THEME = "durward-theme";
const HELP = [
  ["1 … 9, 0, s, f", "views"], ["/", "filter; a word with - before it is left out"], ["j k ↓ ↑", "move"], ["Enter", "open"], ["e", "explain what is open"], ["a d", "allow, deny what waits"],
  ["p", "stand still, and go on"], ["t", "light, dark"], ["Esc", "close, back"], ["?", "this"],
];

class App {
  constructor() {
    this.store = new Store();
    this.verifier = new Verifier();
    this.paused = false;
    this.logger = true;
    this.views = new Map();
    this.current = null;
    this.opened = null;
    this.frame();
    this.views = new Map(VIEWS.map((v) => [v.id, v.make(this)]));
    for (const v of this.views.values()) {
      v.element.hidden = true;
      this.main.append(v.element);
    }
    document.addEventListener("keydown", (e) => this.key(e));
    addEventListener("hashchange", () => this.show(location.hash.slice(1)));
    this.show(location.hash.slice(1) || "live");
    loadSuppressions().catch(() => {});
    load().then(() => this.views.get(this.current).update(true));
    ask("/v1/sandboxes?limit=1000").then((v) => learn(v.sandboxes)).catch(() => {});
    watch((event, data) => this.on(event, data));
    setInterval(() => this.turn(), FRAME);
  }

  frame() {
    this.filter = h("input", { type: "search", id: "filter", placeholder: "Filter  /", ariaLabel: "Filter", spellcheck: false,
      oninput: () => this.views.get(this.current).filter?.(this.filter.value) });
    this.state = h("span", { className: "state", role: "status" }, "connecting");
    this.pauseButton = h("button", { className: "plain", title: "p", onclick: () => this.pause() }, "Pause");
    this.links = new Map();
    const nav = h("nav", { ariaLabel: "Views" }, VIEWS.map((v) => {
      const extra = h("span", { className: "extra" });
      const a = h("a", { href: "#" + v.id }, h("kbd", {}, v.key), v.name, extra);
      this.links.set(v.id, { a, extra });
      return a;
    }));
    this.heading = h("h1", {});
    this.main = h("main", { id: "main" });
    this.drawer = h("aside", { className: "drawer", hidden: true, ariaLabel: "Details" });
    this.help = h("dialog", { className: "help" }, h("h2", {}, "Keys"), h("dl", {}, HELP.map(([k, what]) => [h("dt", {}, k.split(" ").map((x) => (x === "…" ? " … " : h("kbd", {}, x)))), h("dd", {}, what)])),
      h("button", { className: "primary", onclick: () => this.help.close() }, "Close"));
    fill(document.body,
      h("div", { className: "app" },
        h("aside", { className: "side", ariaLabel: "Durward" },
          h("div", { className: "brand" }, logo(), h("b", {}, "Durward"), h("span", {}, "audit")),
          nav,
          h("div", { className: "foot" },
            h("button", { className: "plain", onclick: () => this.theme(), title: "t" }, "Light / dark"),
            h("button", { className: "plain", onclick: () => this.help.showModal(), title: "?" }, "Keys"))),
        h("header", { className: "top" }, this.heading, this.filter, h("span", { className: "grow" }), this.state, this.pauseButton),
        this.main, this.drawer), this.help);
    const theme = localStorage.getItem(THEME);
    if (theme) document.documentElement.dataset.theme = theme;
  }

  show(id, filter) {
    const v = this.views.get(id);
    if (!v) return;
    if (location.hash.slice(1) !== id) history.replaceState(null, "", "#" + id);
    for (const [name, view] of this.views) view.element.hidden = name !== id;
    for (const [name, l] of this.links) name === id ? l.a.setAttribute("aria-current", "page") : l.a.removeAttribute("aria-current");
    this.current = id;
    text(this.heading, VIEWS.find((x) => x.id === id).name);
    this.filter.hidden = !v.filter;
    this.filter.value = filter ?? "";
    v.filter?.(this.filter.value);
    v.update(true);
  }

  on(event, data) {
    if (event === "login") return (logout(), welcome());
    if (event === "open") this.say("replaying", "busy");
    if (event === "live") this.say("live", "good");
    if (event === "closed") this.say("not connected", "bad");
    if (event === "lines") {
      this.store.add(data);
      this.verifier.add(data);
    }
    if (event === "state") {
      const s = JSON.parse(data[0]);
      this.store.skippedByServer(s.skipped);
      this.verifier.setKey(s.key);
      this.logger = s.logger;
    }
  }

  say(what, tone) {
    this.said = [what, tone];
    text(this.state, this.paused ? "standing still" : what);
    this.state.className = "state " + (this.paused ? "warn" : tone);
  }

  badge(id, what, loud) {
    const { extra } = this.links.get(id);
    text(extra, what);
    extra.classList.toggle("loud", !!loud);
  }

  toast(what) {
    const e = h("div", { className: "toast", role: "alert" }, what);
    document.body.append(e);
    setTimeout(() => e.remove(), 5000);
  }

  turn() {
    if (document.hidden) return void this.store.work(40);
    this.store.work(30);
    this.views.get(this.current).update(false);
    const s = this.store, bad = this.verifier.broken.length;
    if (this.counted !== s.version + "." + changes()) {
      this.counted = s.version + "." + changes();
      let n = 0;
      for (const b of s.blocked.values()) n += !suppressed(b.row);
      text(this.links.get("blocked").extra, n ? count(n) : "");
    }
    text(this.links.get("verify").extra, bad ? "!" : this.verifier.checked ? "✓" : "");
    this.links.get("verify").extra.classList.toggle("bad", bad > 0);
    if (this.opened && this.opened.end !== this.drawnEnd) this.detail(this.opened);
  }

  pause() {
    this.paused = !this.paused;
    text(this.pauseButton, this.paused ? "Go on" : "Pause");
    this.say(...this.said);
    if (!this.paused) this.views.get(this.current).update(true);
  }

  theme() {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem(THEME, dark ? "light" : "dark");
  }

  detail(row) {
    const boxes = this.views.get("sandboxes"), was = boxes.stateOf(row.box);
    if (row.box && this.opened !== row) boxes.refresh().then(() => this.opened === row && boxes.stateOf(row.box) !== was && this.detail(row));
    this.opened = row;
    this.drawnEnd = row.end;
    const v = verdict(row), all = { ...row.rec, ...Object.fromEntries(Object.entries(row.end || {}).filter(([k]) => ["status", "bytes_up", "bytes_down", "ms", "code", "detail"].includes(k))) };
    const first = ["code", "rule", "credential", "sandbox", "policy", "status", "bytes_up", "bytes_down", "ms", "detail", "address", "entry", "count"];
    const keys = [...first.filter((k) => k in all), ...Object.keys(all).filter((k) => !first.includes(k))];
    const value = (k) => (k.startsWith("bytes_") ? `${bytes(all[k])} (${count(all[k])})` : k === "ms" ? count(all[k]) + " ms" : k === "sandbox" ? whole(all[k]) : String(all[k]));
    fill(this.drawer,
      h("header", {}, h("span", { className: "badge " + v[1] }, v[0]), h("span", {}, clock(row.t)), h("span", { className: "grow" }),
        h("button", { className: "plain", ariaLabel: "Close", onclick: () => this.close() }, "✕")),
      meaningOf(row),
      h("h2", {}, row.rec.method ? h("b", {}, row.rec.method + " ") : null, title(row)),
      h("div", { className: "actions" },
        row.rec.authority || row.rec.target ? h("button", { onclick: () => this.explain(row) }, "Explain") : null,
        row.box ? h("button", { onclick: () => this.sandbox(row.box) }, "Sandbox") : null,
        row.host ? h("button", { onclick: () => this.show("live", row.host) }, "This host") : null,
        row.host ? h("button", { onclick: () => { this.show("history"); this.views.get("history").search({ host: row.host.replace(/:\d+$/, "") }); } }, "Its history") : null,
        buttons(this, row, this.views.get("sandboxes").stateOf(row.box))),
      h("dl", {}, keys.map((k) => [h("dt", {}, k), h("dd", {}, value(k))])),
      h("p", { className: "hint" }, "In the log:"), h("pre", {}, `durward audit query --id ${row.rec.id}`));
    this.drawer.hidden = false;
  }

  sandbox(id) {
    this.show("sandboxes");
    this.views.get("sandboxes").choose(id);
  }

  explain(row) {
    this.show("policies");
    this.views.get("policies").explain(row);
  }

  close() {
    if (this.drawer.hidden) return false;
    this.drawer.hidden = true;
    this.opened = null;
    this.views.get(this.current).list?.view.focus();
    return true;
  }

  key(e) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.key === "Escape") {
      if (typing) e.target.blur();
      else this.close() || this.views.get(this.current).close?.();
      return;
    }
    if (typing) return;
    const view = VIEWS.find((v) => v.key === e.key), list = this.views.get(this.current).list;
    if (this.views.get(this.current).key?.(e)) e.preventDefault();
    if (view) this.show(view.id);
    else if (e.key === "/" && !this.filter.hidden) this.filter.focus();
    else if (e.key === "p") this.pause();
    else if (e.key === "t") this.theme();
    else if (e.key === "?") this.help.showModal();
    else if (e.key === "e" && this.opened) this.explain(this.opened);
    else if (list && ["j", "k", "ArrowDown", "ArrowUp", "Enter"].includes(e.key) && e.target === document.body) {
      list.view.focus();
      list.key(e);
    } else return;
    e.preventDefault();
  }
}

// What its code says, and the way out, as whoever sent the request was told.
function meaningOf(row) {
  const r = row.end?.code && row.end.code !== "ok" ? row.end : row.rec, m = meaning(r);
  const worst = severity(row), hidden = suppressed(row);
  if (!m?.why && worst === "info") return null;
  return h("div", { className: "meaning" }, hidden ? h("p", {}, `Suppressed by ${hidden.id}: ${hidden.reason}`) : null, level(worst), m?.why ? h("span", {}, ` ${m.why}. `, h("small", {}, m.way + ".")) : null);
}

function logo() {
  return h("svg", { class: "logo", viewBox: "0 0 32 32", "aria-hidden": "true" },
    h("path", { d: "M5 30V14a11 11 0 0 1 22 0v16h-5V14a6 6 0 0 0-12 0v16z" }),
    h("circle", { cx: 16, cy: 17, r: 2.6 }), h("path", { d: "M15 18h2l1 7h-4z" }));
}

function welcome() {
  fill(document.body, h("div", { className: "welcome" }, logo(), h("h1", {}, "Durward"),
    h("p", {}, "This page is for whoever may use the daemon. Ask it for a link:"), h("pre", {}, "durward console"),
    h("p", { className: "hint" }, "A link is good once, for five minutes.")));
}

addEventListener("hashchange", () => isLink() && location.reload());
if (await login()) window.app = new App();
else welcome();
