// MCP servers: their state, tools, log, and a form to call a tool.

import { h, fill, button, plural, pretty } from "../dom.js";
import { get, post } from "../api.js";
import { empty, picker, code, note, problem, dot } from "../parts.js";
import { form } from "../form.js";

const states = { connected: "ok", connecting: "busy", reconnecting: "busy", starting: "busy", down: "bad", failed: "bad", stopped: "off", off: "off", waiting: "warn" };
const open = { server: "", tool: "" };
let calling = false; // while a form is filled in, new data waits

export const servers = {
  title: "Servers",
  lead: "MCP servers that run as rows of this profile, and the tools that they offer.",
  load: (signal) => get("/servers", signal),
  show(data, app, arg) {
    calling = false;
    const [name, tool] = (arg || open.server).split("/");
    if (tool) Object.assign(open, { server: name, tool });
    if (!data.servers.length) return h("div", { class: "panel" }, empty("No servers", "Add an Agent Plugin that brings one, or insert a row ", h("code", {}, "@deepseek-ai/dsh-mcp-client"), " in your ", h("a", { href: "#/patch" }, "patch"), "."));
    return picker({
      items: data.servers, key: (s) => s.name, label: "Servers", selected: name, chosen: (k) => { Object.assign(open, { server: k, tool: "" }); history.replaceState(null, "", `#/servers/${encodeURIComponent(k)}`); },
      line: (s) => [h("span", { class: "top" }, dot(states[s.state] ?? "off"), h("span", { class: "name" }, s.name), h("span", { class: "muted small" }, s.state)), h("span", { class: "muted small clip" }, [s.transport, plural(s.tools.length, "tool")].join(" · "))],
      detail: (s) => server(s, app),
    });
  },
  changed(app) { if (!calling) app.reload(); },
  rows(app) { if (!calling) app.reload(); },
};

function server(s, app) {
  const tools = h("ul", { class: "list" });
  const draw = () => fill(tools, s.tools.map((t) => {
    const is = open.tool === t.name && (!open.server || open.server === s.name);
    return h("li", { class: "stack" }, h("div", { class: "row" }, h("div", { class: "grow" }, h("p", {}, h("code", {}, h("strong", {}, t.name)), t.title && h("span", { class: "muted" }, ` ${t.title}`)), t.description && h("p", { class: "small muted" }, t.description)),
      button(is ? "Close" : "Call…", () => { Object.assign(open, { server: s.name, tool: is ? "" : t.name }); calling = !is; draw(); if (!is) tools.querySelector("form input, form textarea, form select, form button")?.focus(); }, { "aria-expanded": String(is), "aria-label": `${is ? "Close" : "Call"} ${t.name}`, data: { key: `call-${t.name}` } })),
    is && caller(s, t, app));
  }));
  draw();
  return [
    h("header", {}, h("h2", {}, s.name), h("span", { class: "row" }, dot(states[s.state] ?? "off"), s.state), s.row && button("Restart", () => post(`/rows/${encodeURIComponent(s.row)}/restart`).then(() => app.say(`${s.name} restarts`), app.note), { data: { key: "restart" } })),
    s.error && h("div", { class: "pad" }, note("bad", s.error)),
    s.tools.length ? tools : h("p", { class: "pad muted" }, s.state === "connected" ? "It offers no tools." : "Its tools are not known while it is not connected."),
    h("div", { class: "pad" }, s.row && h("p", { class: "small muted" }, "Row ", h("a", { href: `#/tree/${encodeURIComponent(s.row)}` }, h("code", {}, s.row)), ", tools are known to agents as ", h("code", {}, `mcp__${s.name}__…`)),
      s.log?.length > 0 && h("details", {}, h("summary", {}, "Log"), code(s.log.map((l) => `${l.time ? new Date(l.time).toLocaleTimeString() + "  " : ""}${l.text}`).join("\n"), { "aria-label": `Log of ${s.name}` }))),
  ];
}

function caller(s, t, app) {
  const fields = form(t.inputSchema);
  const answer = h("div", { role: "status" });
  const send = h("button", { class: "main" }, "Call");
  let request = null;
  return h("form", { class: "stack", "aria-label": `Call ${t.name}`, novalidate: true, on: { submit: async (event) => {
    event.preventDefault();
    if (request) { request.abort(); return; }
    let args;
    try { args = fields.value(); } catch (error) { fill(answer, note("bad", error.message)); return; }
    request = new AbortController();
    send.textContent = "Stop";
    fill(answer, h("p", { class: "muted" }, "Waiting for the answer…"));
    const begun = performance.now();
    try {
      const result = await post(`/servers/${encodeURIComponent(s.name)}/call`, { tool: t.name, arguments: args }, request.signal);
      fill(answer, h("div", { class: "tight" }, h("p", { class: "row" }, h("span", { class: `tag ${result.isError ? "bad" : "ok"}` }, result.isError ? "The tool says that it failed" : "Answer"), h("span", { class: "muted small" }, `${Math.round(result.ms ?? performance.now() - begun)} ms`)), (result.content ?? []).map(content), result.structuredContent !== undefined && result.structuredContent !== null && h("details", {}, h("summary", {}, "Structured"), code(pretty(result.structuredContent)))));
    } catch (error) {
      fill(answer, error.name === "AbortError" ? h("p", { class: "muted" }, "Stopped.") : problem(error));
    }
    request = null;
    send.textContent = "Call";
  } } }, fields.element, h("div", { class: "row" }, send, fields.toggle), answer);
}

// content is one piece of an answer. Pictures are shown from their bytes; all else as text.
function content(c) {
  if (c.type === "text") return code(c.text, { "aria-label": "Text of the answer" });
  if (c.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(c.mimeType)) return h("img", { src: `data:${c.mimeType};base64,${c.data}`, alt: "Picture of the answer" });
  return code(pretty(c), { "aria-label": `Part of kind ${c.type}` });
}
