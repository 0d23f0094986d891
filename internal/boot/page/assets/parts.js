// What several views show: problems, findings, places, empty lists, lists with a detail beside them.

import { h, fill, plural } from "./dom.js";

// note is a box with a dot of kind bad, warn, ok or info.
export const note = (kind, text, hint, ...more) => h("div", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null },
  h("span", { class: `dot ${kind === "info" ? "off" : kind}`, "aria-hidden": "true" }),
  h("div", { class: "tight" }, h("p", {}, text), hint && h("p", { class: "hint" }, hint), more));

// problem is a failed request.
export const problem = (error) => note("bad", error.message || String(error), error.hint);

export const empty = (title, ...text) => h("div", { class: "empty" }, h("strong", {}, title), text);

export const code = (text, props = {}) => h("pre", { class: "code", tabindex: "0", ...props }, text);

// layerName is what people call a layer: a bundle by its name, and files by whose they are.
export function layerName(kind, label) {
  const file = label.split(/[\\/]/).pop();
  return { profile: "your patch", home: "home patch", project: "project patch", patch: `--patch ${file}`, set: "--set" }[kind] ?? label;
}

// place is where something stands: file, line and column.
export const place = (at) => at?.file ? [at.file, at.line, at.column].filter(Boolean).join(":") : at?.layer ?? "";

const words = { error: ["bad", "Error"], warning: ["warn", "Warning"], info: ["info", "Note"] };

// findings is a list of findings; jump, if given, goes to the place of one in a text.
export function findings(list, jump) {
  return h("ul", { class: "list" }, list.map((f) => {
    const [kind, word] = words[f.severity] ?? ["info", f.severity];
    const where = place(f);
    return h("li", { class: "tight" },
      h("p", { class: "row" }, h("span", { class: `tag ${kind}` }, word), f.row && h("a", { href: `#/tree/${encodeURIComponent(f.row)}` }, h("code", {}, f.row)), h("code", { class: "muted" }, f.code)),
      h("p", {}, f.message),
      f.remedy && h("p", { class: "small" }, h("span", { class: "muted" }, "Remedy: "), f.remedy),
      where && h("p", { class: "small muted" }, jump && f.line ? h("button", { type: "button", class: "quiet", on: { click: () => jump(f.line, f.column) } }, `Go to line ${f.line}`) : h("code", {}, where)),
      f.related?.length > 0 && h("ul", { class: "small muted" }, f.related.map((r) => h("li", {}, h("code", {}, place(r))))));
  }));
}

// severities is "2 errors, 1 warning".
export function severities(list) {
  const of = (s) => list.filter((f) => f.severity === s).length;
  return [[of("error"), "error"], [of("warning"), "warning"], [of("info"), "note"]].filter(([n]) => n).map(([n, w]) => plural(n, w)).join(", ");
}

// picker is a list with what is chosen of it beside: items have key, and line(item) is what a list shows, detail(item) what the pane.
// chosen(key) is called when another one is chosen.
export function picker({ items, key, line, detail, chosen, label, selected }) {
  const pane = h("section", { class: "panel detail", "aria-live": "off", tabindex: "-1" });
  let now = items.some((i) => key(i) === selected) ? selected : items.length ? key(items[0]) : null;
  const buttons = items.map((item) => h("button", { type: "button", class: "pick", data: { key: `pick-${key(item)}` }, "aria-pressed": "false", on: { click: () => { choose(key(item)); if (narrow.matches) { pane.scrollIntoView({ block: "start" }); pane.focus({ preventScroll: true }); } } } }, line(item)));
  const choose = (k, quiet) => {
    now = k;
    items.forEach((item, i) => buttons[i].setAttribute("aria-pressed", String(key(item) === k)));
    const item = items.find((i) => key(i) === k);
    fill(pane, item ? detail(item) : null);
    pane.scrollTop = 0;
    if (!quiet) chosen?.(k);
  };
  const list = h("ul", { class: "panel picks", "aria-label": label, on: { keydown: (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    buttons[Math.min(Math.max(at + step, 0), buttons.length - 1)].focus();
  } } }, buttons.map((b) => h("li", {}, b)));
  if (now !== null) choose(now, true);
  return h("div", { class: "split" }, list, pane);
}

const narrow = matchMedia("(max-width: 60rem)");
export const isNarrow = () => narrow.matches;

// states of rows: the dot, and the word
const rowStates = {
  active: ["ok", "running"], starting: ["busy", "starting"], stopping: ["busy", "stopping"], waiting: ["warn", "waiting"],
  failed: ["bad", "failed"], off: ["off", "off"],
};
export const rowState = (state) => rowStates[state] ?? ["off", state ?? "not running"];
export const dot = (kind) => h("span", { class: `dot ${kind}`, "aria-hidden": "true" });
export const stateLine = (state) => { const [kind, word] = rowState(state); return h("span", { class: "row" }, dot(kind), word); };

export const panel = (title, tools, ...content) => h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), tools), content);


const stages = { waiting: "Waiting for another command", resolving: "Choosing versions", fetching: "Fetching", linking: "Laying out packages", building: "Running scripts" };

// progressOf is what there is to see of an operation.
export function progressOf(op) {
  if (op.state === "running") {
    const known = op.total > 0;
    return [h("progress", { max: known ? op.total : null, value: undefined, "aria-label": op.title }), h("p", { class: "small muted" }, stages[op.stage] ?? op.stage ?? "Starting", op.detail ? ` ${op.detail}` : "", known ? `, ${op.done} of ${op.total}` : "", op.bytes > 1e5 ? `, ${(op.bytes / 1e6).toFixed(1)} MB` : "")]
      .map((e) => { if (e.tagName === "PROGRESS" && known) e.value = op.done; return e; });
  }
  if (op.error) return [h("p", {}, op.error.message), op.error.hint && h("p", { class: "small muted" }, op.error.hint), op.findings?.length > 0 && h("ul", { class: "small" }, op.findings.map((f) => h("li", {}, place(f) && h("code", { class: "muted" }, place(f)), " ", f.message)))];
  if (op.state === "cancelled") return h("p", {}, "Cancelled. Nothing was changed.");
  return [op.summary?.length ? h("ul", { class: "small" }, op.summary.map((line) => h("li", {}, line))) : h("p", { class: "small muted" }, "Done."), op.warnings?.map((w) => h("p", { class: "small muted" }, w))];
}
