// The profiles of the home. This page changes only the one that it serves.

import { h, fill, time, plural } from "../dom.js";
import { get } from "../api.js";
import { picker, note, problem, empty } from "../parts.js";

export const profiles = {
  title: "Profiles",
  lead: "All profiles of this home. This page serves one of them; the others are shown as they are.",
  load: (signal) => get("/profiles", signal),
  show(data, app, arg) {
    if (!data.profiles.length) return h("div", { class: "panel" }, empty("No profiles", h("code", {}, "dsh profile create NAME"), " makes one."));
    return picker({
      items: data.profiles, key: (p) => p.name, label: "Profiles", selected: arg || data.current, chosen: (k) => window.history.replaceState(null, "", `#/profiles/${encodeURIComponent(k)}`),
      line: (p) => [h("span", { class: "top" }, h("span", { class: "name" }, p.name), tags(p, data)), h("span", { class: "muted small clip" }, [plural(p.bundles, "bundle"), plural(p.dependencies, "dependency", "dependencies")].join(" · "))],
      detail: (p) => {
        const more = h("div");
        if (p.state !== "not made yet" && p.state !== "removed") get(`/profiles/${encodeURIComponent(p.name)}`).then((d) => fill(more, details(d)), (error) => fill(more, problem(error)));
        return [h("header", {}, h("h2", {}, p.name), tags(p, data)), h("div", { class: "pad stack" }, p.problem && note("bad", p.problem, `dsh profile repair ${p.name}`),
          h("dl", { class: "facts" }, h("dt", {}, "State"), h("dd", {}, p.state), h("dt", {}, "Directory"), h("dd", {}, h("code", {}, p.dir)), p.changed && [h("dt", {}, "Changed"), h("dd", {}, time(p.changed))]),
          p.state === "not made yet" && h("p", { class: "muted" }, "It is made when you first use it: ", h("code", {}, `dsh ${p.name}`)), more)];
      },
    });
  },
};

const tags = (p, data) => h("span", { class: "row" }, p.name === data.current && h("span", { class: "tag ok" }, "runs here"), p.default && h("span", { class: "tag" }, "default"), p.problem && h("span", { class: "tag bad" }, "problem"), p.state !== "ok" && !p.problem && h("span", { class: "tag" }, p.state));

const details = (d) => h("div", { class: "stack" },
  d.bundleList?.length > 0 && h("div", { class: "tight" }, h("h3", {}, "Bundles, in order"), h("ol", {}, d.bundleList.map((b) => h("li", { class: "row" }, h("code", {}, b.name), h("span", { class: "muted small" }, b.version), b.state !== "applied" && h("span", { class: `tag ${b.state === "broken" ? "bad" : ""}` }, b.state))))),
  d.dependencyList?.length > 0 && h("div", { class: "tight" }, h("h3", {}, "Packages"), h("ul", {}, d.dependencyList.map((p) => h("li", { class: "row" }, h("code", {}, p.name), h("span", { class: "muted small" }, p.version))))));
