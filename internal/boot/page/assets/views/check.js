// What the check finds in layers and tree.

import { h, button } from "../dom.js";
import { get } from "../api.js";
import { findings, empty, severities } from "../parts.js";

export const check = {
  title: "Check",
  lead: "Mistakes in layers and in the tree that they compose to, before they stop a start.",
  load: (signal) => get("/findings", signal),
  show(data, app) {
    const list = data.findings;
    app.count("check", list.filter((f) => f.severity !== "info").length, list.some((f) => f.severity === "error") ? "bad" : "warn", "findings");
    return [
      h("div", { class: "row" }, button("Check again", () => app.reload()), h("span", { class: "muted small" }, list.length ? severities(list) : "")),
      h("div", { class: "panel" }, list.length ? findings(list) : empty("Nothing found", "All layers apply, every config fits its plugin's schema, and every file that is named is there.")),
    ];
  },
};
