// What runs, what is wrong, and what to do next.

import { h, plural, time } from "../dom.js";
import { get } from "../api.js";
import { note, panel, stateLine, severities, empty } from "../parts.js";

const rank = { failed: 0, waiting: 1, starting: 2, stopping: 3, active: 4, off: 5 };

export const overview = {
  title: "Overview",
  async load(signal) {
    const [state, findings, plugins] = await Promise.all([get("/state", signal), get("/findings", signal), get("/plugins", signal)]);
    return { state, findings, plugins };
  },
  show({ state, findings, plugins }, app) {
    app.count("check", findings.findings.filter((f) => f.severity !== "info").length, findings.counts.errors ? "bad" : "warn", "findings");
    const pending = (plugins.scripts ?? []).filter((s) => s.state === "pending");
    app.count("plugins", pending.length, "warn", "packages with scripts to approve");
    const { rows } = state;
    const of = (s) => rows.filter((r) => r.state === s).length;
    const failed = rows.filter((r) => r.state === "failed"), waits = rows.filter((r) => r.state === "waiting");
    const problems = [
      state.reload?.error && note("bad", "Your last edit was not taken: the tree before it still runs.", state.reload.error, state.reload.hint && h("p", { class: "hint" }, state.reload.hint), h("p", {}, h("a", { href: "#/patch" }, "Open the patch"))),
      failed.map((r) => note("bad", [h("a", { href: `#/tree/${encodeURIComponent(r.path)}` }, h("code", {}, r.path)), " failed: ", r.error], r.hint)),
      waits.map((r) => note("warn", [h("a", { href: `#/tree/${encodeURIComponent(r.path)}` }, h("code", {}, r.path)), " waits for ", r.missing.length ? list(r.missing) : "what it needs"], r.why || "It starts by itself when that is there.")),
      findings.counts.errors + findings.counts.warnings > 0 && note(findings.counts.errors ? "bad" : "warn", ["The check finds ", h("a", { href: "#/check" }, severities(findings.findings)), "."]),
      pending.length > 0 && note("warn", [h("a", { href: "#/plugins" }, plural(pending.length, "package")), ` ${pending.length === 1 ? "has" : "have"} scripts that wait for your approval.`]),
    ].flat().filter(Boolean);
    const own = plugins.dependencies.length;
    return [
      h("div", { class: "cards" },
        figure("#/tree", of("active"), `of ${plural(rows.length, "row")} running`),
        figure("#/check", findings.counts.errors + findings.counts.warnings, "to look at in the check"),
        figure("#/plugins", own, own === 1 ? "package of your own" : "packages of your own"),
        h("div", { class: "panel figure" }, h("dl", { class: "facts" },
          h("dt", {}, "dsh"), h("dd", {}, state.version),
          h("dt", {}, "Harness"), h("dd", {}, state.installation || "embedded")))),
      problems.length ? problems : note("ok", "Everything that is switched on runs, and the check finds nothing to mend."),
      !own && state.profile && panel("What to do next", null, h("ul", { class: "list" },
        h("li", {}, h("a", { href: "#/plugins" }, "Add a plugin"), ", from a registry, a repository, an archive or a folder."),
        h("li", {}, h("a", { href: "#/patch" }, "Change a row"), " in your patch; edits are live when you save."),
        h("li", {}, "Whatever you do, ", h("a", { href: "#/history" }, "History"), " takes it back."))),
      panel("Rows", h("span", { class: "muted small" }, "what the host runs, most urgent first"), rows.length
        ? h("table", { class: "fold" }, h("thead", {}, h("tr", {}, ["Row", "State", "Plugin", "Since"].map((t) => h("th", { scope: "col" }, t)))),
          h("tbody", {}, [...rows].sort((a, b) => rank[a.state] - rank[b.state]).map((r) => h("tr", {},
            h("td", { class: "inline" }, h("a", { href: `#/tree/${encodeURIComponent(r.path)}` }, h("code", {}, r.path))), h("td", { class: "inline" }, stateLine(r.state)), h("td", {}, h("code", { class: "muted" }, r.name)), h("td", { class: "muted small" }, time(r.since))))))
        : empty("No rows run", "The profile is not started, or its tree is empty.")),
      state.profile && h("dl", { class: "facts" }, h("dt", {}, "Profile"), h("dd", {}, h("code", {}, state.profile.dir)), h("dt", {}, "Home"), h("dd", {}, h("code", {}, state.home))),
    ];
  },
  rows(app) { app.later(); },
};

const list = (names) => names.map((n, i) => [i ? ", " : "", h("code", {}, n)]);
const figure = (href, number, text) => h("a", { href, class: "panel figure" }, h("b", {}, String(number)), h("span", { class: "muted small" }, text));
