// Questions before something is done.

import { h, fill } from "./dom.js";

// Resolves with the answer of `read`, or null when it is left.
export function question({ title, body, yes, danger, read }) {
  return new Promise((done) => {
    const e = h("dialog", { className: "question", ariaLabel: title });
    let answer = null;
    const form = h("form", { onsubmit: (x) => { x.preventDefault(); answer = read ? read() : true; e.close(); } },
      h("h2", {}, title), body,
      h("div", { className: "actions" },
        h("button", { type: "button", onclick: () => e.close() }, "Leave it"), h("span", { className: "grow" }),
        h("button", { type: "submit", className: danger ? "danger" : "primary" }, yes)));
    fill(e, form);
    e.addEventListener("close", () => { e.remove(); done(answer); });
    document.body.append(e);
    e.showModal();
  });
}
