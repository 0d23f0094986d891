// The frame of the page: which view is shown, the connection, and the operation that runs. What a view shows is in views/.

import { h, fill, button } from "./dom.js";
import { get, post, follow } from "./api.js";
import { problem, progressOf } from "./parts.js";
import { overview } from "./views/overview.js";
import { tree } from "./views/tree.js";
import { layers } from "./views/layers.js";
import { check } from "./views/check.js";
import { patch } from "./views/patch.js";
import { plugins } from "./views/plugins.js";
import { skills } from "./views/skills.js";
import { servers } from "./views/servers.js";
import { history } from "./views/history.js";
import { profiles } from "./views/profiles.js";

const views = { overview, tree, layers, check, patch, plugins, skills, servers, history, profiles };
const apart = new Set(["tree", "plugins", "history"]); // views that begin a group in the list

const place = (id) => document.getElementById(id);
const main = place("main"), nav = place("nav"), menu = place("menu");

// app is what views are given.
const app = {
  state: null,      // the answer of /state
  operation: null,  // the newest operation, or null
  counts: {},       // numbers beside names of views
  say, ask, run, note, count, confirm,
  reload: () => show(true),
  later: changed,   // reload, once for what comes together
};

// Names of views, and the one that is shown

let shown = { name: "", arg: "", request: null };

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  let arg = rest.join("/");
  try { arg = decodeURIComponent(arg); } catch { /* as it stands */ }
  return { name: views[name] ? name : "overview", arg };
}

function drawNav() {
  const { name } = route();
  fill(nav, h("ul", {}, Object.entries(views).map(([id, view]) => h("li", { class: apart.has(id) && "apart" },
    h("a", { href: `#/${id}`, data: { key: id }, "aria-current": id === name ? "page" : null, on: { click: closeMenu } },
      view.title, app.counts[id] && h("span", { class: `tag count ${app.counts[id].kind}` }, app.counts[id].text, h("span", { class: "hidden" }, ` ${app.counts[id].what}`)))))));
}

// count puts a number beside the name of a view; 0 takes it away.
function count(id, number, kind, what) {
  const now = number ? { text: String(number), kind, what } : null;
  if (JSON.stringify(app.counts[id] ?? null) === JSON.stringify(now)) return;
  app.counts[id] = now;
  drawNav();
}

function closeMenu() { nav.classList.remove("open"); menu.setAttribute("aria-expanded", "false"); }
menu.addEventListener("click", () => menu.setAttribute("aria-expanded", String(nav.classList.toggle("open"))));
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && nav.classList.contains("open")) { closeMenu(); menu.focus(); }
});

// show draws the view of the address. again means that the same view gets new data: it stays as it is until they are there, and
// people keep their place in it. With differs it stays as it is where the data are the same.
async function show(again = false, differs = false) {
  const { name, arg } = route();
  const view = views[name];
  const same = shown.name === name;
  shown.request?.abort();
  const request = new AbortController();
  shown = { name, arg, request, text: same ? shown.text : "" };
  document.title = `${view.title} · ${app.state?.profile?.name ?? "dsh"}`;
  if (!same) {
    drawNav();
    closeMenu();
  }
  if (same && !again && view.choose) { view.choose(arg); return; }
  const late = same ? 0 : setTimeout(() => fill(main, head(view), h("p", { class: "muted" }, "Loading…")), 200);
  let content;
  try {
    const data = view.load ? await view.load(request.signal, app, arg) : null;
    if (request.signal.aborted) return;
    const text = JSON.stringify(data);
    if (same && differs && text === shown.text) return;
    shown.text = text;
    content = view.show(data, app, arg);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (same && differs) { setTimeout(changed, 1500); return; } // what is shown stays; the server may be restarting
    content = [problem(error), button("Try again", () => show(true))];
    if (!error.status && error.status !== 0) console.error(error);
  } finally { clearTimeout(late); }
  if (content === undefined) return; // the view did it itself
  const inside = main.contains(document.activeElement);
  fill(main, head(view), h("div", { class: "stack" }, content));
  if (inside && !main.contains(document.activeElement)) main.focus({ preventScroll: true }); // what had the focus is gone
  main.dataset.view = name;
  if (!same) scrollTo(0, 0);
}

const head = (view) => [h("div", { class: "head" }, h("h1", {}, view.title)), view.lead && h("p", { class: "lead" }, view.lead)];

addEventListener("hashchange", async () => {
  const before = shown.name;
  await show();
  if (before !== shown.name) { main.focus({ preventScroll: true }); say(views[shown.name].title); }
});

// What is said

const said = place("said");
function say(text) { said.textContent = ""; requestAnimationFrame(() => { said.textContent = text; }); }

// confirm asks before something happens; it resolves to whether it is wanted.
function confirm({ title, text, action, danger, body }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title), text && h("p", {}, text), body,
      h("footer", {}, h("button", { value: "no", class: "quiet" }, "Cancel"), h("button", { value: "yes", class: danger ? "danger" : "main" }, action))));
    dialog.addEventListener("close", () => { resolve(dialog.returnValue === "yes"); dialog.remove(); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// ask posts, and shows what went wrong; null is a failure.
async function ask(path, body) {
  try { return await post(path, body); } catch (error) { note(error); return null; }
}

// What runs now: at most one operation, or the last thing that went wrong

const box = place("operation");
const verbs = { running: "busy", done: "ok", failed: "bad", cancelled: "off" };
let waiting = null; // { id, resolve } of the operation that run waits for
let asked = null;   // what began the newest operation of this page: { id, path, body, title }
let dismissed = ""; // id of the operation that was put away

// run posts what begins an operation, and resolves to the operation when it has ended, or to null where it did not begin.
async function run(path, body, title) {
  const begun = await ask(path, body);
  if (!begun) return null;
  const id = begun.operation;
  asked = { id, path, body, title };
  dismissed = "";
  say(`${title} …`);
  if (app.operation?.id === id && app.operation.state !== "running") { // the event was faster than the answer
    operate(app.operation);
    return app.operation;
  }
  return new Promise((resolve) => {
    waiting = { id, resolve };
    if (app.operation?.id !== id) operate({ id, title, state: "running" });
  });
}

function operate(operation) {
  const before = app.operation;
  app.operation = operation;
  if (!operation || operation.id === dismissed) { box.hidden = true; return; }
  const ended = operation.state !== "running";
  if (ended && before?.id === operation.id && before.state === "running") {
    say(`${operation.title}: ${operation.state}${operation.error ? `. ${operation.error.message}` : ""}`);
    if (waiting?.id === operation.id) { waiting.resolve(operation); waiting = null; }
    changed();
  }
  if (ended && !before) return; // it had ended before this page was opened
  const progress = progressOf(operation);
  const kind = verbs[operation.state] ?? "off";
  fill(box, h("header", {}, h("span", { class: `dot ${kind}`, "aria-hidden": "true" }), h("h2", {}, operation.title, h("span", { class: "hidden" }, `: ${operation.state}`)),
    ended ? button("Close", () => { dismissed = operation.id; box.hidden = true; main.focus({ preventScroll: true }); }, { class: "quiet", data: { key: "close" } })
      : button("Cancel", () => ask(`/operations/${operation.id}/cancel`), { class: "quiet", data: { key: "cancel" } })),
  h("div", { class: "body" }, progress, refusedByCheck(operation) && button("Do it all the same", () => run(asked.path, { ...asked.body, force: true }, asked.title), { class: "danger", data: { key: "force" } })));
  box.hidden = false;
}

// refusedByCheck says whether an operation of this page was refused for what the tree would be, which people may want all the same.
const refusedByCheck = (op) => op.state === "failed" && op.error?.class === "composition" && asked?.id === op.id && asked.path.startsWith("/plugins/") && asked.path !== "/plugins/approve" && !asked.body.force;

// note shows what went wrong with something that was asked for.
function note(error) {
  say(error.message);
  fill(box, h("header", {}, h("span", { class: "dot bad", "aria-hidden": "true" }), h("h2", {}, "That did not work"), button("Close", () => { box.hidden = true; main.focus({ preventScroll: true }); }, { class: "quiet" })),
    h("div", { class: "body" }, h("p", {}, error.message), error.hint && h("p", { class: "small muted" }, error.hint)));
  box.hidden = false;
}

// The connection, and what comes over it

const link = place("link");
function connected(is) {
  fill(link, h("span", { class: `dot ${is ? "ok" : "busy"}`, "aria-hidden": "true" }), h("span", { class: "word" }, is ? "connected" : "reconnecting"));
}

let again = 0;
// changed reads the view anew, once for events that come together.
function changed() {
  clearTimeout(again);
  again = setTimeout(async () => {
    await refresh();
    const view = views[shown.name];
    if (view.changed) view.changed(app); else show(true, true);
  }, 120);
}

// refresh reads what the frame shows.
async function refresh() {
  try { app.state = await get("/state"); } catch (error) { if (!app.state) note(error); return; }
  place("profile").textContent = app.state.profile?.name ?? "no profile";
  counts();
}

function counts() {
  const failed = app.state.rows.filter((r) => r.state === "failed").length;
  count("overview", failed, "bad", failed === 1 ? "row failed" : "rows failed");
}

function rows(list) {
  if (!app.state) return;
  app.state.rows = list;
  counts();
  views[shown.name].rows?.(app);
}

follow({
  connected,
  snapshot(event) { rows(event.rows); operate(event.operation); if (app.missed) changed(); app.missed = true; },
  rows(event) { rows(event.rows); },
  reload(event) { if (app.state) app.state.reload = event.reload; changed(); },
  operation: operate,
  tree: changed,
  servers() { if (shown.name === "servers") views.servers.changed(app); },
  skills() { if (shown.name === "skills") changed(); },
  log(event) { views[shown.name].log?.(event, app); },
});

await refresh();
await show();
