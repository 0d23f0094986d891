// The editor of the user's patch: validated while it is written, saved as a whole.

import { h, fill, button } from "../dom.js";
import { get, post } from "../api.js";
import { values } from "./layers.js";
import { findings, note, problem, empty, severities } from "../parts.js";

// What is written and not saved outlives a change of the view.
let draft = null; // { text, base: {text, revision} }
let now = null;
let proposed = "";

// propose opens the editor with another patch at the end of what is there. It is written as any other text is: nothing is saved.
export function propose(text) {
  proposed = text;
  location.hash = "#/patch";
}

export const patch = {
  title: "Patch",
  lead: "Your own layer, on top of the bundles. A patch changes a row by its id, or inserts rows; saved edits are live.",
  load: (signal) => get("/patch", signal),
  show(data, app, arg) {
    if (draft && draft.text === draft.base.text) draft = null;
    let text = draft?.text ?? data.text;
    const base = draft?.base ?? { text: data.text, revision: data.revision };
    let line = Number(arg);
    if (proposed) {
      const before = text.replace(/^\[\]\s*$/m, "").replace(/\n*$/, text.trim() ? "\n" : "");
      text = before + proposed;
      draft = { text, base };
      line = before.split("\n").length;
      proposed = "";
    }
    const gutter = h("div", { class: "gutter", "aria-hidden": "true" });
    const area = h("textarea", { id: "patch", "aria-label": `Text of ${data.path}`, "aria-describedby": "patch-state", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", value: text, readonly: !data.writable, data: { key: "patch" },
      placeholder: "# One patch is one entry of the list. This one changes the key \"level\" of the row \"mine\":\n#\n# - id: mine\n#   config:\n#     level: 2" });
    now = { app, area, gutter, base, data, marks: new Map(), timer: 0, asked: 0,
      save: button("Save", () => save(false), { class: "main", data: { key: "save" }, title: "Ctrl+S, or ⌘S", "aria-keyshortcuts": "Control+S Meta+S" }),
      discard: button("Discard", discard, { class: "quiet" }),
      state: h("span", { id: "patch-state", class: "muted small", role: "status" }),
      message: h("div"), list: h("div", { class: "panel" }), changes: h("div", { class: "panel" }) };
    area.addEventListener("input", () => { draft = { text: area.value, base: now.base }; lines(); buttons(); later(); });
    area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
    area.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") { event.preventDefault(); save(false); }
    });
    lines();
    buttons();
    validate();
    if (base.revision !== data.revision) requestAnimationFrame(() => conflict(data));
    if (line) requestAnimationFrame(() => jump(line, 1));
    return [
      h("div", { class: "row" }, now.save, now.discard, h("code", { class: "muted grow" }, data.path), now.state),
      now.message,
      h("div", { class: "panel editor" }, gutter, area),
      h("div", { class: "below" }, now.list, now.changes),
    ];
  },
  choose(arg) { if (Number(arg)) jump(Number(arg), 1); },
  // The file or the tree changed: what is being written stays, and is checked against what is there now.
  async changed() {
    const mine = now;
    if (!mine?.area.isConnected) return;
    try {
      const disk = await get("/patch");
      if (disk.revision === mine.base.revision) { validate(); return; }
      if (mine.area.value === mine.base.text) { take(disk); return; }
      conflict(disk);
    } catch { /* the connection says so */ }
  },
};

addEventListener("beforeunload", (event) => { if (draft && draft.text !== draft.base.text) event.preventDefault(); });

const dirty = () => now.area.value !== now.base.text;

function lines() {
  const count = now.area.value.split("\n").length;
  const { gutter, marks } = now;
  gutter.replaceChildren(...Array.from({ length: count }, (_, i) => {
    const mark = marks.get(i + 1);
    return h("div", { class: mark?.kind, title: mark?.text }, String(i + 1));
  }));
  gutter.append(h("div"), h("div"));
  gutter.scrollTop = now.area.scrollTop;
}

function buttons() {
  now.save.disabled = !dirty() || !now.data.writable;
  now.discard.hidden = !dirty();
}

function later() {
  clearTimeout(now.timer);
  now.state.textContent = "Checking…";
  now.timer = setTimeout(validate, 250);
}

async function validate() {
  const mine = now, asked = ++mine.asked;
  let result;
  try { result = await post("/patch/check", { text: mine.area.value }); } catch (error) {
    if (asked === mine.asked) { mine.state.textContent = "Not checked"; fill(mine.list, h("div", { class: "pad" }, problem(error))); }
    return;
  }
  if (asked !== mine.asked) return;
  mine.marks.clear();
  const here = (f) => !f.file || f.file === mine.data.path || mine.data.path.endsWith(f.file) || f.file.endsWith(mine.data.path.split(/[\\/]/).pop()) && f.layer === "profile patch";
  for (const f of result.findings) {
    if (f.line && here(f) && f.severity !== "info" && mine.marks.get(f.line)?.kind !== "bad") mine.marks.set(f.line, { kind: f.severity === "error" ? "bad" : "warn", text: f.message });
  }
  lines();
  const errors = result.findings.some((f) => f.severity === "error");
  mine.state.textContent = `${result.findings.length ? severities(result.findings) : "No problems"}${dirty() ? " · not saved" : ""}`;
  mine.area.setAttribute("aria-invalid", String(errors));
  fill(mine.list, h("header", {}, h("h2", {}, "Findings")), result.findings.length ? findings(result.findings, jump) : empty("Nothing to mend", "The patch can be read, and every row that it names is there."));
  const { added = [], removed = [], changed = [] } = result.changes ?? {};
  const all = [...added.map((r) => ["plus", "+", r.row, r.plugin]), ...removed.map((r) => ["minus", "−", r.row, r.plugin]), ...changed.flatMap((c) => c.keys.map((k) => ["tilde", "~", c.row, [k.key, ": ", values("old" in k, k.old, "new" in k, k.new)]]))];
  fill(mine.changes, h("header", {}, h("h2", {}, "What saving would change")), all.length
    ? h("ul", { class: "changes pad" }, all.map(([kind, sign, row, what]) => h("li", { class: kind, data: { sign } }, h("strong", {}, String(row)), " ", what)))
    : !result.changes ? empty("Not known", "The patch has to be readable first.") : empty("Nothing", dirty() ? "The composed tree stays as it is." : "Write something, and see here what it does to the tree."));
}

function jump(line, column) {
  const { area } = now;
  const before = area.value.split("\n").slice(0, line - 1);
  const at = before.reduce((n, l) => n + l.length + 1, 0) + Math.max((column || 1) - 1, 0);
  area.focus();
  area.setSelectionRange(at, at);
  area.scrollTop = Math.max(0, (line - 6) * 20);
}

async function save(force) {
  const mine = now;
  if (!dirty() || !mine.data.writable) return;
  const text = mine.area.value;
  mine.save.disabled = true;
  try {
    const saved = await post("/patch", { text, revision: mine.base.revision, ...(force ? { force } : {}) });
    mine.base = { text, revision: saved.revision };
    draft = mine.area.value === text ? null : { text: mine.area.value, base: mine.base };
    fill(mine.message, note("ok", "Saved.", saved.generation ? `It is generation ${saved.generation} in the history.` : ""));
    mine.app.say("Saved");
    validate();
  } catch (error) {
    if (error.status === 409 && error.body?.patch) conflict(error.body.patch);
    else if (error.status === 422 && !force) {
      fill(mine.message, note("bad", ["Not saved. ", error.message], error.hint || "What runs now stays as it is.", h("p", {}, button("Save all the same", () => save(true), { class: "danger" }))));
      validate();
    } else fill(mine.message, problem(error));
  }
  buttons();
}

function conflict(disk) {
  const mine = now;
  fill(mine.message, note("warn", "The file was changed on disk since you opened it.", "Nothing of what you write here is lost.", h("div", { class: "row" },
    button("Take the file's text", () => take(disk)),
    button("Keep mine", () => { mine.base = { text: disk.text, revision: disk.revision }; draft = { text: mine.area.value, base: mine.base }; fill(mine.message); buttons(); validate(); }))));
  mine.app.say("The file was changed on disk");
}

function take(disk) {
  draft = null;
  now.base = { text: disk.text, revision: disk.revision };
  now.area.value = disk.text;
  fill(now.message);
  lines();
  buttons();
  validate();
}

async function discard() {
  if (!await now.app.confirm({ title: "Discard what you wrote?", text: `The text goes back to what ${now.data.path} has.`, action: "Discard", danger: true })) return;
  take({ ...now.data, ...now.base });
  now.area.focus();
}
