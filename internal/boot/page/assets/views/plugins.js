// The packages of the profile: what is there, what is newer, and scripts that wait for approval.

import { h, button, plural } from "../dom.js";
import { get } from "../api.js";
import { empty, note, panel } from "../parts.js";

let outdated = null; // by name, when it was asked for
let spec = "";

export const plugins = {
  title: "Plugins",
  lead: "Packages that this profile depends on. Nothing that is downloaded runs until you approve it.",
  load: (signal) => get("/plugins", signal),
  show(data, app) {
    const writable = app.state?.profile?.writable;
    const pending = data.scripts.filter((s) => s.state === "pending");
    app.count("plugins", pending.length, "warn", "packages with scripts to approve");
    const input = h("input", { id: "spec", value: spec, required: true, autocomplete: "off", autocapitalize: "off", spellcheck: "false", data: { key: "spec" }, "aria-describedby": "spec-help", placeholder: "name, name@^1, github:owner/repo, ./folder", on: { input: () => { spec = input.value; } } });
    const updates = Object.values(outdated ?? {}).filter((o) => o.wanted && o.wanted !== o.current);
    const status = h("span", { class: "muted small", role: "status" }, outdated ? (updates.length ? `${plural(updates.length, "update")} to take` : "Everything is up to date") : "");
    const act = (path, body, title) => app.run(path, body, title).then((op) => { if (op?.state === "done") outdated = null; return op; });
    return [
      pending.map((p) => approval(p, app, act)),
      !writable && note("info", "This page shows the profile and does not change it.", "writable of the row profile-api says so."),
      writable && h("form", { class: "panel", on: { submit: async (event) => {
        event.preventDefault();
        const specs = spec.trim().split(/\s+/).filter(Boolean);
        if (!specs.length) return;
        const op = await act("/plugins/add", { specs }, `Adding ${specs.join(", ")}`);
        if (op?.state === "done") { spec = ""; app.reload(); }
      } } }, h("div", { class: "pad field" }, h("label", { for: "spec" }, "Add a plugin"),
        h("div", { class: "row" }, h("div", { class: "grow" }, input), h("button", { class: "main" }, "Add")),
        h("p", { class: "small", id: "spec-help" }, "A registry's package, a repository, an archive's address or a folder, as ", h("code", {}, "dsh plugin add"), " takes them."))),
      h("section", { class: "panel" },
        h("header", {}, h("h2", {}, "Packages"), status,
          data.dependencies.length > 0 && button("Check for updates", async (event) => {
            event.target.disabled = true;
            status.textContent = "Asking registries…";
            try {
              const found = await get("/plugins/outdated");
              outdated = Object.fromEntries(found.dependencies.map((o) => [o.name, o]));
              app.reload();
            } catch (error) { status.textContent = ""; app.note(error); }
            event.target.disabled = false;
          }, { data: { key: "outdated" } }),
          writable && updates.length > 0 && button("Update all", () => act("/plugins/update", { names: [] }, "Updating packages"), { class: "main" }),
          writable && button("Install", () => act("/plugins/install", {}, "Installing what package.json says"), { title: "Lays out exactly what package.json and the lockfile say" })),
        data.dependencies.length ? h("table", { class: "fold" }, h("thead", {}, h("tr", {}, ["Package", "Version", "Asked for", ""].map((t) => h("th", { scope: "col" }, t || h("span", { class: "hidden" }, "Actions"))))),
          h("tbody", {}, data.dependencies.map((d) => {
            const news = outdated?.[d.name];
            const newer = news?.wanted && news.wanted !== news.current ? news.wanted : "";
            return h("tr", {},
              h("td", {}, h("div", { class: "row" }, h("code", {}, h("strong", {}, d.name)), kind(d)), d.description && h("p", { class: "small muted" }, d.description), news?.notes?.map((n) => h("p", { class: "small muted" }, n.text))),
              h("td", { class: "inline" }, h("span", { class: "row" }, d.version || h("span", { class: "tag warn" }, "not installed"), newer && h("span", { class: "tag info" }, `${newer} is there`), !newer && news?.outdated && news.latest && h("span", { class: "tag" }, `latest is ${news.latest}`))),
              h("td", { class: "inline" }, h("code", { class: "muted" }, d.written || d.spec)),
              h("td", { class: "act" }, writable && (newer || !d.version) && button("Update", () => act("/plugins/update", { names: [d.name] }, `Updating ${d.name}`), { "aria-label": `Update ${d.name}` }),
                writable && button("Remove", async () => {
                  if (await app.confirm({ title: `Remove ${d.name}?`, text: d.layer ? "Its layer goes with it. History can bring both back." : "History can bring it back.", action: "Remove", danger: true })) act("/plugins/remove", { names: [d.name] }, `Removing ${d.name}`);
                }, { class: "quiet", "aria-label": `Remove ${d.name}` })));
          }))) : empty("No packages yet", "Add the first one above. Bundles become layers of the tree by themselves.")),
      data.scripts.some((s) => s.state !== "pending") && panel("Packages with scripts", null, h("ul", { class: "list" }, data.scripts.filter((s) => s.state !== "pending").map((s) =>
        h("li", { class: "row" }, h("code", {}, `${s.name}@${s.version}`), h("span", { class: `tag ${s.state === "approved" ? "ok" : ""}` }, s.state), s.by && h("span", { class: "muted small" }, `by ${s.by}`))))),
    ];
  },
};

function kind(d) {
  if (d.agentPlugin) return h("span", { class: "tag info" }, `Agent Plugin${d.layer ? `, layer ${d.layer}` : ""}`);
  return d.layer || d.bundle ? h("span", { class: "tag info" }, d.layer ? `bundle, layer ${d.layer}` : "bundle") : null;
}

function approval(p, app, act) {
  const name = `${p.name}@${p.version}`;
  return h("section", { class: "note warn", "aria-label": `Scripts of ${name}` }, h("span", { class: "dot warn", "aria-hidden": "true" }),
    h("div", { class: "tight" }, h("p", {}, h("strong", {}, name), " has scripts, which have not run."),
      p.chain?.length > 1 && h("p", { class: "hint" }, "It comes with ", p.chain.slice(0, -1).join(" → "), "."),
      p.scripts.map((s) => h("pre", { class: "code", tabindex: "0", "aria-label": `Script ${s.event}` }, h("strong", {}, `${s.event}: `), s.text)),
      h("p", { class: "hint" }, "Approval counts for exactly this content. Scripts run confined, with no secrets in their environment.")),
    app.state?.profile?.writable && button("Approve", async () => {
      if (await app.confirm({ title: `Let the scripts of ${name} run?`, body: p.scripts.map((s) => h("pre", { class: "code", tabindex: "0" }, s.text)), action: "Approve and run" })) act("/plugins/approve", { packages: [{ spec: p.spec, content: p.content }] }, `Running the scripts of ${name}`);
    }, { "aria-label": `Approve scripts of ${name}` }));
}
