// A form from the JSON Schema of a tool's input. What it has no field for is written as JSON, and all of it can be.

import { h, fill, button } from "./dom.js";

let forms = 0;

// form is { element, toggle, value() }, where toggle is the button between fields and JSON; value throws an Error with a text for people.
export function form(schema) {
  const prefix = `tool${++forms}-`;
  const properties = Object.entries(schema?.properties ?? {});
  const required = new Set(schema?.required ?? []);
  const fields = properties.map(([name, property], i) => field(`${prefix}${i}`, name, property ?? {}, required.has(name)));
  const simple = schema?.type === "object" || properties.length > 0 || !schema;
  let raw = !simple;
  const text = h("textarea", { id: `${prefix}raw`, rows: 8, spellcheck: "false", value: "{}" });
  const element = h("div", { class: "stack" });
  const toggle = button("", () => {
    if (!raw) { try { text.value = JSON.stringify(collect(fields), null, 2); } catch { /* what is there stays */ } }
    raw = !raw;
    draw();
    element.querySelector("input, textarea, select")?.focus();
  }, { class: "quiet" });
  const draw = () => {
    toggle.textContent = raw ? "Fill in fields" : "Write JSON";
    fill(element, raw
      ? h("div", { class: "field" }, h("label", { for: text.id }, "Arguments as JSON"), text)
      : fields.length ? fields.map((f) => f.element) : h("p", { class: "muted" }, "This tool takes no arguments."));
    toggle.hidden = !simple || (!fields.length && schema?.additionalProperties === false);
  };
  draw();
  return {
    element, toggle,
    value() {
      if (!raw) return collect(fields);
      try { return JSON.parse(text.value || "{}"); } catch (error) { text.focus(); throw new Error(`This is no JSON: ${error.message}`); }
    },
  };
}

function collect(fields) {
  const out = {};
  for (const f of fields) {
    const value = f.value();
    if (value !== undefined) Object.defineProperty(out, f.name, { value, enumerable: true, configurable: true, writable: true });
  }
  return out;
}

function field(id, name, property, required) {
  const types = [property.type ?? []].flat().filter((type) => type !== "null");
  const type = types.length === 1 ? types[0] : property.enum?.every((v) => typeof v === "string") ? "string" : "json";
  const help = property.description ? `${id}-help` : null;
  const common = { id, required, "aria-describedby": help };
  const start = property.default;
  let control, value;
  const nothing = () => {
    if (required) { control.focus(); throw new Error(`${name} is needed`); }
  };
  if (property.enum) {
    control = h("select", common, h("option", { value: "" }, required ? "Choose…" : "—"), property.enum.map((v, i) => h("option", { value: String(i), selected: v === start }, typeof v === "string" ? v : JSON.stringify(v))));
    value = () => control.value === "" ? nothing() : property.enum[Number(control.value)];
  } else if (type === "boolean") {
    control = h("input", { ...common, required: false, type: "checkbox", checked: start === true });
    let touched = start !== undefined || required;
    control.addEventListener("change", () => { touched = true; });
    value = () => touched ? control.checked : undefined;
  } else if (type === "integer" || type === "number") {
    control = h("input", { ...common, type: "number", step: type === "integer" ? 1 : "any", min: property.minimum, max: property.maximum, value: start });
    value = () => {
      if (control.validity.badInput) { control.focus(); throw new Error(`${name} is no number`); }
      return control.value === "" ? nothing() : Number(control.value);
    };
  } else if (type === "string") {
    const long = (property.maxLength ?? 0) > 200 || ["content", "text", "body"].includes(name);
    control = h(long ? "textarea" : "input", { ...common, type: long ? null : "text", rows: long ? 4 : null, spellcheck: "false", autocomplete: "off", value: start });
    value = () => control.value === "" ? (required ? "" : undefined) : control.value;
  } else if (type === "array" && property.items?.type === "string") {
    control = h("textarea", { ...common, rows: 3, spellcheck: "false", value: Array.isArray(start) ? start.join("\n") : "" });
    value = () => {
      const lines = control.value.split("\n").filter((line) => line !== "");
      return lines.length || required ? lines : undefined;
    };
  } else {
    control = h("textarea", { ...common, rows: 3, spellcheck: "false", value: start === undefined ? "" : JSON.stringify(start, null, 2) });
    value = () => {
      if (control.value.trim() === "") return nothing();
      try { return JSON.parse(control.value); } catch (error) { control.focus(); throw new Error(`${name} is no JSON: ${error.message}`); }
    };
  }
  const kind = type === "array" && property.items?.type === "string" ? "one on each line" : type === "json" || type === "object" || type === "array" ? "JSON" : "";
  return {
    name, value,
    element: h("div", { class: "field" },
      h("label", { for: id }, h("code", {}, name), required && h("span", { class: "required", "aria-hidden": "true" }, " *"), kind && h("span", { class: "muted small" }, ` ${kind}`)),
      control, help && h("p", { class: "small", id: help }, property.description)),
  };
}
