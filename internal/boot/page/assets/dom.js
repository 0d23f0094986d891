// Elements from data. Text is always set as text, so that nothing from a package or a file is ever read as HTML.

// h makes an element. Props: class, on (object of listeners), data (object), and otherwise attributes; true is an attribute without a
// value, false, null and undefined are none. Children are nodes, strings, numbers, arrays of those; null and false are left out.
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value ?? "";
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  add(element, children);
  return element;
}

function add(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
}

// fill puts children in place of what element has, and gives the focus back to what stands for the element that had it: the one with
// the same data-key.
export function fill(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const key = active?.closest("[data-key]")?.dataset.key;
  const caret = key && typeof active.selectionStart === "number" ? [active.selectionStart, active.selectionEnd] : null;
  const scroll = element.scrollTop;
  element.replaceChildren();
  add(element, children);
  element.scrollTop = scroll;
  const now = key && element.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!now) return;
  now.focus({ preventScroll: true });
  if (caret && now.setSelectionRange) now.setSelectionRange(...caret);
}

export const svg = (path) => {
  const ns = "http://www.w3.org/2000/svg";
  const element = document.createElementNS(ns, "svg");
  element.setAttribute("viewBox", "0 0 20 20");
  element.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(ns, "path");
  line.setAttribute("d", path);
  element.append(line);
  return element;
};

export const button = (text, onClick, props = {}) => h("button", { type: "button", ...props, on: { click: onClick } }, text);

// plural is "1 row", "2 rows".
export const plural = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`;

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

// time is a <time> that says how long ago something was, and when on hover.
export function time(text) {
  const date = new Date(text);
  if (!text || isNaN(date)) return h("span", { class: "muted" }, "—");
  const seconds = (date - Date.now()) / 1000;
  const steps = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [86400 * 14, "day", 86400]];
  const step = steps.find(([limit]) => Math.abs(seconds) < limit);
  const shown = step ? ago.format(Math.round(seconds / step[2]), step[1]) : clock.format(date);
  return h("time", { datetime: text, title: clock.format(date) }, shown);
}

// plain is a value as people write it: a text stands as it is, and an expression as in YAML.
function plain(value, indent) {
  if (typeof value === "string") return value;
  if (value && typeof value === "object" && Object.keys(value).length === 1 && typeof value.__jsExpr === "string") return `!!js ${value.__jsExpr}`;
  return JSON.stringify(value, null, indent) ?? "";
}

export const pretty = (value) => plain(value, 2);

// short is a value on one line.
export const short = (value) => plain(value).replace(/\s+/g, " ");
