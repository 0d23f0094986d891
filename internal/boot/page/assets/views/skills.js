// Skills that agents find here, and files that are none.

import { h, fill } from "../dom.js";
import { get } from "../api.js";
import { empty, picker, code, problem, note, panel } from "../parts.js";

export const skills = {
  title: "Skills",
  lead: "Instructions that agents read when a task calls for them, from folders of the project, of your own and of plugins.",
  load: (signal) => get("/skills", signal),
  show(data, app, arg) {
    const { hidden = [], skipped = [] } = data;
    return [
      data.skills.length ? picker({
        items: data.skills, key: (s) => s.name, label: "Skills", selected: arg, chosen: (k) => history.replaceState(null, "", `#/skills/${encodeURIComponent(k)}`),
        line: (s) => [h("span", { class: "top" }, h("span", { class: "name" }, s.name), h("span", { class: "tag" }, s.provider)), h("span", { class: "muted small clip" }, s.description)],
        detail: (s) => {
          const body = h("div");
          get(`/skills/${encodeURIComponent(s.name)}`).then((full) => fill(body, code(full.body.trim(), { "aria-label": `Text of ${s.name}` })), (error) => fill(body, problem(error)));
          return [h("header", {}, h("h2", {}, s.name)), h("div", { class: "pad stack" }, h("p", {}, s.description), s.whenToUse && h("p", { class: "muted" }, s.whenToUse),
            h("dl", { class: "facts" }, h("dt", {}, "From"), h("dd", {}, s.provider), h("dt", {}, "File"), h("dd", {}, h("code", {}, s.path)),
              h("dt", {}, "Called by"), h("dd", {}, [s.modelInvocable !== false && "agents", s.userInvocable !== false && "you"].filter(Boolean).join(" and ") || "nobody")), body)];
        },
      }) : h("div", { class: "panel" }, empty("No skills", "Put one into ", h("code", {}, ".dsh/skills/NAME/SKILL.md"), " of a project, or add a plugin that brings some.")),
      (data.providers ?? []).filter((p) => p.problem).map((p) => note("warn", `${p.name}: ${p.problem}`)),
      skipped.length > 0 && panel("Files that are no skills", null, h("ul", { class: "list" }, skipped.map((s) => h("li", { class: "tight" }, h("p", {}, h("code", {}, s.path)), h("p", { class: "small muted" }, s.why))))),
      hidden.length > 0 && panel("Hidden by others of the same name", null, h("ul", { class: "list" }, hidden.map((s) => h("li", { class: "tight" }, h("p", {}, h("code", {}, s.path)), h("p", { class: "small muted" }, "hidden by ", h("code", {}, s.hiddenBy)))))),
    ];
  },
};
