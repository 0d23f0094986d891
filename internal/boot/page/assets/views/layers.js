// The stack of layers, and what each of them changed.

import { h, fill, plural, short } from "../dom.js";
import { get } from "../api.js";
import { empty, layerName, picker, findings, panel, place, problem, note } from "../parts.js";

const states = { applied: ["ok", "applied"], broken: ["bad", "broken"], untrusted: ["warn", "not trusted"], disabled: ["", "switched off"] };

export const layers = {
  title: "Layers",
  lead: "What the profile is composed of, lowest first. A later layer may change what those before it wrote.",
  load: (signal) => get("/layers", signal),
  show(data, app, arg) {
    const key = (l) => `${l.kind}:${l.label}`;
    return [
      data.layers.length ? picker({
        items: data.layers, key, label: "Layers", selected: arg, chosen: (k) => history.replaceState(null, "", `#/layers/${encodeURIComponent(k)}`),
        line: (l) => [h("span", { class: "top" }, h("span", { class: "name" }, l.number ? `${l.number}. ` : "", layerName(l.kind, l.label)), tag(l.state)),
          h("span", { class: "muted small clip" }, [l.kind === "bundle" ? l.version : l.source, l.kind === "bundle" && "bundle", l.inserts?.length && `brings ${plural(l.inserts.length, "row")}`, l.overrides?.length && `changes ${l.overrides.length}`].filter(Boolean).join(" · "))],
        detail: (l) => {
          const changes = h("div");
          if (l.number) get(`/changes?layer=${l.number}`).then((c) => fill(changes, changesOf(c)), (error) => fill(changes, h("div", { class: "pad" }, problem(error))));
          return [h("header", {}, h("h2", {}, layerName(l.kind, l.label)), tag(l.state)),
            h("div", { class: "pad stack" },
              l.reason && note(l.state === "broken" ? "bad" : "warn", l.reason, l.remedy),
              h("dl", { class: "facts" }, h("dt", {}, "Kind"), h("dd", {}, l.kind), l.version && [h("dt", {}, "Version"), h("dd", {}, l.version)],
                h("dt", {}, "Found in"), h("dd", {}, h("code", {}, l.source || "nowhere")),
                l.files?.length > 0 && [h("dt", {}, "Files"), l.files.map((f) => h("dd", {}, h("code", {}, f)))])),
            changes];
        },
      }) : h("div", { class: "panel" }, empty("No layers", "Add a bundle: ", h("code", {}, "dsh plugin add PACKAGE"))),
      data.conflicts?.length > 0 && panel("Layers against each other", null, findings(data.conflicts)),
    ];
  },
};

const tag = (state) => { const [kind, word] = states[state] ?? ["", state]; return h("span", { class: `tag ${kind}` }, word); };

// values is what a key had, and has.
export const values = (had, before, has, after) => [had && h("del", { class: "removed" }, short(before)), had && has && " → ", has ? h("ins", { class: "added" }, short(after)) : !had && "gone"];

// changesOf is what a layer changed.
export function changesOf({ inserted = [], writes = [], skipped = [] }) {
  if (!inserted.length && !writes.length && !skipped.length) return h("p", { class: "pad muted" }, "This layer changes nothing.");
  const row = (path) => h("a", { href: `#/tree/${encodeURIComponent(path)}` }, path);
  return h("div", { class: "pad stack" },
    inserted.length > 0 && h("div", { class: "tight" }, h("h3", {}, `Brings ${plural(inserted.length, "row")}`),
      h("ul", { class: "changes" }, inserted.map((r) => h("li", { class: "plus", data: { sign: "+" } }, row(r.row), h("span", { class: "muted" }, " ", r.plugin))))),
    writes.length > 0 && h("div", { class: "tight" }, h("h3", {}, `Writes ${plural(writes.length, "key")}`),
      h("ul", { class: "changes" }, writes.map((w) => h("li", { class: w.hasAfter ? "tilde" : "minus", data: { sign: w.hasAfter ? "~" : "−" } }, row(w.row), " ", w.key, ": ", values(w.hadBefore, w.before, w.hasAfter, w.after))))),
    skipped.length > 0 && h("div", { class: "tight" }, h("h3", {}, "Does not apply"),
      h("ul", { class: "small" }, skipped.map((s) => h("li", {}, h("code", {}, place(s)), " ", s.why)))));
}
