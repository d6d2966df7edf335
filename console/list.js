// A list of any length of which only what is seen exists. Newest first. While somebody reads further
// down it stands still, and says how much is new.

import { h, text, count } from "./dom.js";

export const ROW = 32; // px; style.css has the same

export class List {
  constructor({ head, draw, open, label }) {
    this.draw = draw;
    this.onOpen = open;
    this.rows = [];
    this.cursor = null;
    this.fresh = 0;
    this.space = h("div", { className: "space" });
    this.pill = h("button", { className: "pill", hidden: true, onclick: () => this.top() });
    this.view = h("div", {
      className: "list", tabIndex: 0, role: "listbox", ariaLabel: label,
      onscroll: () => this.paint(), onkeydown: (e) => this.key(e),
    }, head, this.space);
    this.element = h("div", { className: "listbox" }, this.pill, this.view);
    this.live = new Map();
    new ResizeObserver(() => this.paint()).observe(this.view);
  }

  // Oldest first, as they are kept.
  set(rows) {
    const grown = rows.length - this.rows.length;
    const reading = this.view.scrollTop > ROW / 2;
    this.rows = rows;
    if (reading && grown > 0) {
      this.fresh += grown;
      this.view.scrollTop += grown * ROW;
    } else if (!reading) {
      this.fresh = 0;
    }
    this.pill.hidden = !this.fresh;
    text(this.pill, `↑ ${count(this.fresh)} new`);
    this.paint();
  }

  top() {
    this.view.scrollTop = 0;
    this.fresh = 0;
    this.pill.hidden = true;
    this.paint();
  }

  at(i) {
    return this.rows[this.rows.length - 1 - i];
  }

  paint() {
    const n = this.rows.length, height = this.view.clientHeight;
    this.space.style.height = n * ROW + "px";
    const from = Math.max(0, Math.floor(this.view.scrollTop / ROW) - 4);
    const to = Math.min(n, Math.ceil((this.view.scrollTop + height) / ROW) + 4);
    const seen = new Map();
    for (let i = from; i < to; i++) {
      const row = this.at(i);
      let e = this.live.get(row);
      if (!e) {
        e = this.draw(row, null);
        e.classList.add("row");
        e.setAttribute("role", "option");
        e.addEventListener("click", () => this.open(row));
        this.space.append(e);
      } else {
        this.draw(row, e);
      }
      e.style.transform = `translateY(${i * ROW}px)`;
      e.classList.toggle("cursor", row === this.cursor);
      e.setAttribute("aria-selected", row === this.cursor);
      seen.set(row, e);
    }
    for (const [row, e] of this.live) if (seen.get(row) !== e) e.remove();
    this.live = seen;
  }

  open(row) {
    this.cursor = row;
    this.paint();
    this.onOpen(row);
  }

  move(by) {
    const n = this.rows.length;
    if (!n) return;
    const at = this.cursor ? n - 1 - this.rows.lastIndexOf(this.cursor) : -1;
    const i = Math.min(n - 1, Math.max(0, (at > n - 1 ? -1 : at) + by));
    this.cursor = this.at(i);
    if (i * ROW < this.view.scrollTop) this.view.scrollTop = i * ROW;
    if ((i + 1) * ROW > this.view.scrollTop + this.view.clientHeight)
      this.view.scrollTop = (i + 1) * ROW - this.view.clientHeight;
    this.paint();
  }

  key(e) {
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 1);
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page }[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (by) this.move(by);
    else if (e.key === "Home") this.top();
    else if (e.key === "Enter" && this.cursor) this.onOpen(this.cursor);
    else return;
    e.preventDefault();
  }
}
