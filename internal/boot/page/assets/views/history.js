// Saved states of the profile, and the way back to them.

import { h, button, time, plural } from "../dom.js";
import { get } from "../api.js";
import { empty, note } from "../parts.js";

export const history = {
  title: "History",
  lead: "Every change saved the state that it made. Going back is a change itself, so nothing is lost by it.",
  load: (signal) => get("/generations", signal),
  show(data, app) {
    const list = data.generations;
    return [
      data.state === "edited" && data.current > 0 && note("info", "The profile was edited since the newest generation.", summary(data.edited).join(", ")),
      h("div", { class: "panel" }, list.length ? h("table", { class: "fold" }, h("thead", {}, h("tr", {}, ["", "Made by", "What it changed", "When", ""].map((t, i) => h("th", { scope: "col" }, t || h("span", { class: "hidden" }, i ? "Actions" : "Number"))))),
        h("tbody", {}, list.map((g) => h("tr", {},
          h("td", { class: "inline" }, h("strong", {}, String(g.id))),
          h("td", { class: "inline" }, h("code", {}, g.command || "found as it was"), " ", g.id === data.current && h("span", { class: "tag ok" }, "newest"), g.pinned && h("span", { class: "tag" }, "pinned")),
          h("td", { class: "small" }, changes(g.changes)),
          h("td", { class: "small muted" }, time(g.saved)),
          h("td", { class: "act" }, app.state?.profile?.writable && (g.id !== data.current || data.state !== "saved") && button("Roll back…", () => back(g, app), { "aria-label": `Roll back to ${g.id}`, data: { key: `back-${g.id}` } }))))))
        : empty("No history yet", "The first change to this profile begins it.")),
    ];
  },
};

async function back(g, app) {
  if (await app.confirm({ title: `Roll back to generation ${g.id}?`, text: "Packages, layers and your patch become what they were then. What is there now is kept as a generation.", action: "Roll back",
    body: h("p", { class: "small muted" }, h("code", {}, g.command || "found as it was"), " ", time(g.saved)) })) app.run("/generations/rollback", { id: g.id }, `Rolling back to ${g.id}`);
}

function summary(c) {
  if (!c) return [];
  const of = (d) => !d.before ? `+ ${d.name} ${d.after.version || d.after.spec}` : !d.after ? `− ${d.name}` : `${d.name} ${d.before.version || d.before.spec} → ${d.after.version || d.after.spec}`;
  const packages = c.packages.added + c.packages.removed + c.packages.changed;
  return [...c.dependencies.map(of), ...(!c.dependencies.length && packages ? [plural(packages, "package")] : []), ...c.files.map((f) => `${f.path} ${f.change}`)];
}

function changes(c) {
  const lines = summary(c);
  if (!lines.length) return h("span", { class: "muted" }, c ? "nothing" : "the first state that is kept");
  return h("ul", {}, lines.map((l) => h("li", {}, l)));
}
