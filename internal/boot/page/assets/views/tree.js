// The composed tree: rows by the layer that brought them, and for one of them every key with who wrote it.

import { h, fill, svg, button, plural, short, pretty } from "../dom.js";
import { get, post } from "../api.js";
import { empty, place, layerName, rowState, stateLine, dot, isNarrow, problem, note } from "../parts.js";
import { propose } from "./patch.js";
import { changesOf } from "./layers.js";

// What people see of the tree outlives a change of data.
const kept = { query: "", open: new Map(), chosen: "" };
let now = null; // { items, tree, pane, rows, layers, app }

export const tree = {
  title: "Tree",
  lead: "Every row of the composed profile under the layer that brought it. Choose one to see who wrote which key.",
  load: (signal) => get("/tree", signal),
  show(data, app, arg) {
    now = { ...data, app, lines: [] };
    now.roots = nodes(data);
    walk(now.roots, (n, parent) => { n.parent = parent; });
    if (arg) reveal(arg);
    const search = h("input", { type: "search", placeholder: "Search rows, plugins, keys, values", "aria-label": "Search the tree", value: kept.query, data: { key: "search" }, autocomplete: "off", spellcheck: "false",
      on: { input: () => { kept.query = search.value; draw(); app.say(found()); }, keydown: (e) => { if (e.key === "ArrowDown") { e.preventDefault(); focusOn(now.lines[0]); } } } });
    now.list = h("div", { role: "tree", "aria-label": "Rows by layer", on: { keydown: key, click } });
    now.nothing = h("div");
    now.pane = h("section", { class: "panel detail", tabindex: "-1", "aria-label": "Details" });
    now.found = h("span", { class: "muted small" });
    draw();
    choose(kept.chosen, true);
    return [
      h("div", { class: "row" }, h("div", { class: "search" }, search), button("Expand all", () => all(true)), button("Collapse all", () => all(false)), now.found),
      h("div", { class: "split" }, h("div", { class: "panel" }, now.list, now.nothing), now.pane),
    ];
  },
  choose(arg) { reveal(arg); draw(); choose(kept.chosen); },
  rows() { if (now?.list?.isConnected) { draw(); state(); } },
  log(event) {
    for (const { path, text } of event.lines) {
      const log = now?.pane?.querySelector(`[data-log="${CSS.escape(path)}"]`);
      if (log) { log.append(text + "\n"); log.scrollTop = log.scrollHeight; }
    }
  },
};

// nodes are the layers with their rows; a row of a group stands under the group.
function nodes({ layers, rows }) {
  const row = (r) => ({ key: r.path, kind: "row", row: r, text: textOf(r), children: (r.children ?? []).map(row) });
  return layers.map((layer) => {
    const children = rows.filter((r) => r.from?.layer === layer.label).map(row);
    return { key: `layer:${layer.label}`, kind: "layer", layer, text: layer.label.toLowerCase(), children };
  }).concat(rows.some((r) => !r.from) ? [{ key: "layer:", kind: "layer", layer: { label: "rows of no layer", kind: "" }, text: "", children: rows.filter((r) => !r.from).map(row) }] : []);
}

const textOf = (r) => [r.id, r.host, r.plugin, ...(r.keys ?? []).flatMap((k) => [k.key, short(k.value)])].join("\n").toLowerCase();
const walk = (list, visit, parent) => { for (const n of list) { visit(n, parent); walk(n.children, visit, n); } };
const isOpen = (n) => kept.open.get(n.key) ?? true;
function find(k) { let out; walk(now.roots, (n) => { if (n.key === k) out ??= n; }); return out; }

// reveal opens what holds a row, named by its path or its id.
function reveal(name) {
  let target;
  walk(now.roots, (n) => {
    if (n.key === name || (n.kind === "row" && (n.row.host === name || String(n.row.id) === name))) target ??= n;
  });
  if (!target) return;
  kept.chosen = target.key;
  for (let n = target.parent; n; n = n.parent) kept.open.set(n.key, true);
}

function draw() {
  const words = kept.query.toLowerCase().split(/\s+/).filter(Boolean);
  const hit = (n) => words.every((w) => n.text.includes(w));
  const show = (n) => hit(n) || n.children.some(show);
  now.lines = [];
  now.hits = 0;
  const build = (list, level) => list.filter((n) => !words.length || show(n)).forEach((n, i, shown) => {
    const open = words.length ? true : isOpen(n);
    const line = h("div", {
      role: "treeitem", "aria-level": level, "aria-setsize": shown.length, "aria-posinset": i + 1, tabindex: "-1", data: { key: n.key },
      class: `${n.kind} ${n.kind === "row" && n.row.state === "off" ? "disabled" : ""}`, "aria-selected": String(n.key === kept.chosen),
      "aria-expanded": n.children.length ? String(open) : null,
    }, h("span", { class: "twist", "aria-hidden": "true" }, n.children.length > 0 && svg("M7 4l6 6-6 6")), n.kind === "layer" ? layerLine(n) : rowLine(n.row, words));
    line.style.setProperty("--depth", level - 1);
    line.node = n;
    now.lines.push(line);
    if (n.kind === "row" && hit(n)) now.hits++;
    if (open) build(n.children, level + 1);
  });
  build(now.roots, 1);
  fill(now.list, now.lines);
  now.list.hidden = !now.lines.length;
  fill(now.nothing, !now.lines.length && empty(words.length ? "Nothing matches" : "The tree is empty", words.length ? "Search looks at ids, plugins, keys and values." : "Add a bundle under Plugins, or insert a row in your patch."));
  const current = now.lines.find((l) => l.node.key === kept.chosen) ?? now.lines[0];
  if (current) current.tabIndex = 0;
  now.found.textContent = words.length ? found() : "";
}

const found = () => plural(now.hits, "row") + (kept.query.trim() ? " found" : "");

const layerLine = (n) => [h("span", { class: "id", title: n.layer.label }, layerName(n.layer.kind, n.layer.label)), h("span", { class: "sub" }, plural(n.children.length, "row"))];

function rowLine(r, words) {
  const host = statusOf(r);
  return [dot(host ? rowState(host.state)[0] : "off"), h("span", { class: "id" }, marked(nameOf(r), words)),
    h("span", { class: "sub" }, marked(r.plugin ?? "", words)), h("span", { class: "hidden" }, host ? rowState(host.state)[1] : "not running"),
    r.changedBy?.length > 0 && h("span", { class: "tag info", title: `changed by ${r.changedBy.map((w) => layerName(w.kind, w.layer)).join(", ")}` }, "changed")];
}

function marked(text, words) {
  const at = words.map((w) => [text.toLowerCase().indexOf(w), w.length]).find(([i]) => i >= 0);
  return at ? [text.slice(0, at[0]), h("mark", {}, text.slice(at[0], at[0] + at[1])), text.slice(at[0] + at[1])] : text;
}

// nameOf is the id of a row, or its place where it has none.
const nameOf = (r) => r.id === null || r.id === undefined ? r.host || r.path : String(r.id);
const statusOf = (r) => now.app.state?.rows.find((s) => s.path === r.host);

function all(open) {
  walk(now.roots, (n) => kept.open.set(n.key, open || false));
  draw();
  now.app.say(open ? "All expanded" : "All collapsed");
}

function toggle(line, open) {
  kept.open.set(line.node.key, open);
  const had = line.contains(document.activeElement);
  draw();
  if (had) focusOn(now.lines.find((l) => l.node === line.node));
}

function focusOn(line) {
  if (!line) return;
  for (const l of now.lines) l.tabIndex = -1;
  line.tabIndex = 0;
  line.focus();
  line.scrollIntoView({ block: "nearest" });
}

function click(event) {
  const line = event.target.closest("[role=treeitem]");
  if (!line) return;
  if (event.target.closest(".twist") && line.node.children.length) { toggle(line, line.getAttribute("aria-expanded") !== "true"); return; }
  focusOn(line);
  pick(line.node);
}

function pick(node) {
  choose(node.key);
  history.replaceState(null, "", `#/tree/${encodeURIComponent(node.row?.host || node.key)}`);
  if (isNarrow()) now.pane.scrollIntoView({ block: "start" });
}

let typed = { text: "", at: 0 };
function key(event) {
  const line = event.target.closest("[role=treeitem]");
  if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = now.lines.indexOf(line);
  const expanded = line.getAttribute("aria-expanded");
  const actions = {
    ArrowDown: () => focusOn(now.lines[at + 1]),
    ArrowUp: () => focusOn(now.lines[at - 1]),
    Home: () => focusOn(now.lines[0]),
    End: () => focusOn(now.lines.at(-1)),
    ArrowRight: () => expanded === "false" ? toggle(line, true) : expanded === "true" && focusOn(now.lines[at + 1]),
    ArrowLeft: () => expanded === "true" && !kept.query ? toggle(line, false) : focusOn(now.lines.find((l) => l.node === line.node.parent)),
    Enter: () => pick(line.node),
    " ": () => pick(line.node),
    "*": () => all(true),
  };
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); return; }
  if (event.key.length !== 1) return;
  typed = { text: (event.timeStamp - typed.at < 700 ? typed.text : "") + event.key.toLowerCase(), at: event.timeStamp };
  const named = (l) => (l.node.kind === "layer" ? layerName(l.node.layer.kind, l.node.layer.label) : String(l.node.row.id ?? "")).toLowerCase().startsWith(typed.text);
  focusOn([...now.lines.slice(at + 1), ...now.lines.slice(0, at + 1)].find(named));
}

// choose shows the details of a layer or row.
async function choose(k, quiet) {
  const node = find(k);
  kept.chosen = node ? k : "";
  for (const l of now.lines) l.setAttribute("aria-selected", String(l.node.key === k));
  if (!node) { fill(now.pane, empty("Choose a row", "Its config is shown here, key by key, with the layer and line that wrote it.")); return; }
  if (node.kind === "row") { fill(now.pane, details(node.row)); state(); if (!quiet) now.pane.scrollTop = 0; return; }
  if (!node.layer.number) { fill(now.pane, h("header", {}, h("h2", {}, node.layer.label))); return; }
  try {
    const changes = await get(`/changes?layer=${node.layer.number}`);
    if (kept.chosen === k) fill(now.pane, h("header", {}, h("h2", {}, layerName(node.layer.kind, node.layer.label)), h("span", { class: "tag" }, node.layer.kind)), changesOf(changes));
  } catch (error) { if (kept.chosen === k) fill(now.pane, h("div", { class: "pad" }, problem(error))); }
}

const from = (w) => w && h("span", { title: w.file && place(w) }, layerName(w.kind, w.layer), w.line > 0 && h("span", { class: "muted" }, ` line\u00a0${w.line}`));

// keyName is a key that may break at its dots; that it stands in the config goes without saying.
const keyName = (key) => h("code", {}, key.replace(/^config\./, "").split(/(?<=\.)/).map((part) => [part, h("wbr")]), !key.startsWith("config.") && h("span", { class: "muted" }, " (row)"));

function details(r) {
  return [
    h("header", {}, h("h2", {}, h("code", {}, r.host || nameOf(r))), h("span", { id: "row-state" })),
    h("div", { class: "pad stack" },
      h("div", { id: "row-problem" }),
      h("dl", { class: "facts" },
        h("dt", {}, "Plugin"), h("dd", {}, h("code", {}, r.plugin || "none")),
        h("dt", {}, "Brought by"), h("dd", {}, from(r.from) ?? "no layer"),
        r.changedBy?.length > 0 && [h("dt", {}, "Changed by"), r.changedBy.map((w) => h("dd", {}, from(w)))],
        r.state !== "on" && [h("dt", {}, "Switched"), h("dd", {}, r.state)])),
    r.keys?.length ? h("table", { class: "fold keys" }, h("caption", { class: "hidden" }, `Keys of ${nameOf(r)}`), h("thead", {}, h("tr", {}, ["Key", "Value", "Written by"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, [...r.keys].sort((a, b) => b.key.startsWith("config.") - a.key.startsWith("config.")).map((k) => h("tr", {}, h("td", {}, keyName(k.key)), h("td", {}, h("code", { class: "value" }, typeof k.value === "object" && k.value !== null ? pretty(k.value) : short(k.value))), h("td", { class: "small" }, from(k.from) ?? "—")))))
      : h("p", { class: "pad muted" }, "It has no config: the plugin's defaults count."),
    h("div", { class: "pad", id: "row-log" }),
  ];
}

// change leads to what your patch says of a row, or begins a patch of it.
function change(r) {
  const own = [...r.changedBy ?? [], r.from].find((w) => w?.kind === "profile" && w.line);
  if (own) return h("a", { class: "button", href: `#/patch/${own.line}` }, "Edit in your patch");
  return r.id !== null && r.id !== undefined && button("Change…", () => propose(patchOf(r)), { data: { key: "change" } });
}

// patchOf is a patch that writes what the config of a row is. It replaces the whole, so all keys are there; secrets are left to be written.
function patchOf(r) {
  const config = {};
  for (const { key, value } of r.keys ?? []) {
    const path = key.split(".");
    if (path.shift() !== "config") continue;
    let at = config;
    path.forEach((part, i) => { at = i === path.length - 1 ? (at[part] = value) : (at[part] ??= /^\d+$/.test(path[i + 1]) ? [] : {}); });
  }
  const lines = Object.entries(config).map(([key, value]) => JSON.stringify(value).includes("***") ? `    # ${flow(key)}: has a secret, which is not shown here: write it anew` : `    ${flow(key)}: ${flow(value)}`);
  return [`- id: ${flow(r.id)}`, ...(lines.some((l) => !l.includes("#")) ? ["  # This replaces the whole config.", "  config:"] : ["  config: {}"]), ...lines, ""].join("\n");
}

// flow is a value as YAML on one line.
function flow(value) {
  if (typeof value === "string") return /^[A-Za-z_][\w-]*$/.test(value) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(value) ? value : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (typeof value.__jsExpr === "string") return `!!js ${JSON.stringify(value.__jsExpr)}`;
  return `{${Object.entries(value).map(([k, v]) => ` ${flow(k)}: ${flow(v)}`).join(",")} }`;
}

// state shows what the host says of the chosen row.
async function state() {
  const node = find(kept.chosen);
  const at = now.pane.querySelector("#row-state");
  if (!at || node?.kind !== "row") return;
  const host = statusOf(node.row);
  fill(at, host ? h("span", { class: "row" }, stateLine(host.state), now.app.state.profile?.writable && change(node.row), host.state !== "off" && button("Restart", async () => {
    try { await post(`/rows/${encodeURIComponent(host.path)}/restart`); now.app.say(`${host.path} restarts`); } catch (error) { now.app.note(error); }
  }, { data: { key: "restart" } })) : h("span", { class: "muted small" }, "not running"));
  fill(now.pane.querySelector("#row-problem"), host?.error && note("bad", host.error, host.hint), host?.state === "waiting" && note("warn", host.why || `Waits for ${host.missing.join(", ")}`));
  const log = now.pane.querySelector("#row-log");
  if (!host || log.dataset.of === host.path) return;
  log.dataset.of = host.path;
  try {
    const { lines } = await get(`/rows/${encodeURIComponent(host.path)}/log`);
    if (lines.length) fill(log, h("h3", {}, "Log"), h("pre", { class: "code", tabindex: "0", "aria-label": `Log of ${host.path}`, data: { log: host.path } }, lines.map((l) => l.text + "\n")));
  } catch { /* a row without a log has none to show */ }
}
