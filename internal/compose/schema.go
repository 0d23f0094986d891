package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Schema is the JSON Schema (2020-12) of the patch files that go over a tree.
type Schema struct {
	Document    []byte // indented by two spaces, with a newline at the end
	Diagnostics []SchemaDiagnostic
	// Complete says that the document knows the config of every row. It is
	// false after an error, a skipped bundle, or a row whose plugin is not or
	// only partly described.
	Complete bool
}

// SchemaDiagnostic is one thing to say about a schema.
type SchemaDiagnostic struct {
	Error   bool   // else it is a warning
	Path    string // of the row, as /0 or /0/config/1; "" for what concerns no row
	Message string
}

// String is the diagnostic without its level.
func (d SchemaDiagnostic) String() string {
	if d.Path == "" {
		return d.Message
	}
	return "[" + d.Path + "] " + d.Message
}

func (d SchemaDiagnostic) level() string {
	if d.Error {
		return "error"
	}
	return "warning"
}

// PluginSchema finds the JSON Schema (2020-12) of a plugin's config. known is
// false for plugins of which nothing is known; a known plugin without a schema
// leaves its config open.
type PluginSchema func(plugin string) (schema json.RawMessage, known bool)

// How much the schema knows of a row's config, in the reference launcher's
// words.
const (
	statusSchema      = "schema"      // all
	statusPartial     = "partial"     // some rules are left out
	statusAbsent      = "absent"      // the plugin has no schema
	statusUnsupported = "unsupported" // the plugin would have to be run
	statusError       = "error"       // the row or the schema is broken
)

const (
	includeName = "cordis:include"
	definitions = "#/$defs/"
	draft       = "https://json-schema.org/draft/2020-12/schema"
)

// Schema describes the patch files of the profile that composed to t. skipped
// are lines about bundles that are missing from the tree. No plugin is run.
//
// The definitions and the part under "x-cordis" have the names of the
// reference launcher's schema dump. Other than there, the document itself
// describes patch files, since these are what people edit; the composed rows
// are "#/$defs/entryList".
func (t *Tree) Schema(profile string, find PluginSchema, skipped []string) Schema {
	w := schemaWriter{find: find, plugins: map[string]*pluginConfig{}, ids: map[Value]*knownID{}, complete: len(skipped) == 0}
	for _, line := range skipped {
		w.warn("", "%s", line)
	}
	for _, warning := range t.Warnings {
		w.warn("", "%s", warning.Text)
	}
	for i, row := range t.Rows {
		w.row("/"+strconv.Itoa(i), row.value)
	}
	w.sumUp()
	raw := appendJSON(nil, w.document(profile), math.MaxInt)
	var out bytes.Buffer
	out.Grow(2 * len(raw))
	// It cannot fail: appendJSON writes JSON.
	_ = json.Indent(&out, raw, "", "  ")
	out.WriteByte('\n')
	return Schema{out.Bytes(), w.diagnostics, w.complete}
}

// schemaWriter collects what a document holds while it goes through the rows.
type schemaWriter struct {
	find        PluginSchema
	plugins     map[string]*pluginConfig
	order       []*pluginConfig // of plugins, as they came
	configs     []pair          // config0, config1, …
	ids         map[Value]*knownID
	idOrder     []*knownID
	entries     []Value
	unknown     []string // plugins that would have to be run
	diagnostics []SchemaDiagnostic
	complete    bool
}

// pluginConfig is what is known of the config of one plugin.
type pluginConfig struct {
	name     string
	status   string
	ref      string // name of the definition
	optional bool   // a row may do without config
	literal  bool   // the config is never an expression
}

// knownID is an id that patches can name, with the plugins of its rows.
type knownID struct {
	id      Value
	plugins []*pluginConfig
}

func (w *schemaWriter) warn(path, format string, args ...any) {
	w.diagnostics = append(w.diagnostics, SchemaDiagnostic{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (w *schemaWriter) fail(path, format string, args ...any) {
	w.diagnostics = append(w.diagnostics, SchemaDiagnostic{Error: true, Path: path, Message: fmt.Sprintf(format, args...)})
	w.complete = false
}

// row notes a row, then the rows inside it.
func (w *schemaWriter) row(path string, v Value) {
	entry, ok := v.(*Map)
	if !ok {
		w.fail(path, "the row is not a mapping")
		w.entry(path, nil, statusError, "unknownConfig", "")
		return
	}
	value, _ := entry.Get("name")
	name, _ := value.(string)
	group, _ := entry.Get("group")
	tree := ""
	switch {
	case name == includeName:
		tree = "include"
	case name == groupName || Truthy(group):
		tree = "group"
	}
	if name == "" {
		w.fail(path, "the row names no plugin")
		w.entry(path, entry, statusError, "unknownConfig", tree)
	} else {
		plugin := w.plugin(path, name, tree)
		w.entry(path, entry, plugin.status, plugin.ref, tree)
		w.know(entry, plugin)
		if tree == "include" {
			w.warn(path, "the rows of the included file are not described")
		}
	}
	config, _ := entry.Get("config")
	if rows, ok := config.(*List); ok && tree == "group" {
		for i, item := range rows.Items {
			w.row(path+"/config/"+strconv.Itoa(i), item)
		}
	}
}

// entry adds a row to the list of entries.
func (w *schemaWriter) entry(path string, entry *Map, status, ref, tree string) {
	pairs := []pair{{"path", path}}
	if id, ok := entry.Get("id"); ok {
		pairs = append(pairs, pair{"id", id})
	}
	if name, ok := entry.Get("name"); ok {
		pairs = append(pairs, pair{"name", name})
	}
	pairs = append(pairs, pair{"status", status}, pair{"configRef", definitions + ref})
	if tree != "" {
		pairs = append(pairs, pair{"tree", tree})
	}
	w.entries = append(w.entries, newMap(pairs))
	if status != statusSchema && status != statusAbsent {
		w.complete = false
	}
}

// know notes the id of a row, if patches can name it.
func (w *schemaWriter) know(entry *Map, plugin *pluginConfig) {
	id, _ := entry.Get("id")
	number, isNumber := id.(float64)
	if _, ok := id.(string); !ok && !isNumber || !Truthy(id) || !isFinite(number) {
		return
	}
	known := w.ids[id]
	if known == nil {
		known = &knownID{id: id}
		w.ids[id] = known
		w.idOrder = append(w.idOrder, known)
	}
	if !slices.Contains(known.plugins, plugin) {
		known.plugins = append(known.plugins, plugin)
	}
}

// plugin is what is known of a plugin's config. path is that of the row that
// asks.
func (w *schemaWriter) plugin(path, name, tree string) *pluginConfig {
	carrier := tree == "group" && name != groupName
	plugin, ok := w.plugins[name]
	if ok && !carrier {
		return plugin
	}
	if !ok {
		plugin = &pluginConfig{name: name}
		w.plugins[name] = plugin
		w.order = append(w.order, plugin)
	}
	plugin.ref, plugin.optional = "unknownConfig", true
	switch {
	case name == groupName:
		plugin.status, plugin.ref, plugin.literal = statusSchema, "entryList", true
	case name == includeName:
		plugin.status, plugin.ref, plugin.literal, plugin.optional = statusPartial, "includeConfig", true, false
	case carrier:
		// Only the plugin knows whether it takes rows, whatever its schema says
		// of other configs.
		plugin.status = statusUnsupported
		if !slices.Contains(w.unknown, name) {
			w.unknown = append(w.unknown, name)
		}
	default:
		w.describe(path, plugin)
	}
	return plugin
}

// describe looks for the schema of a plugin.
func (w *schemaWriter) describe(path string, plugin *pluginConfig) {
	text, known := w.find(plugin.name)
	switch {
	case !known:
		plugin.status = statusUnsupported
		w.unknown = append(w.unknown, plugin.name)
		return
	case text == nil:
		plugin.status = statusAbsent
		return
	}
	ref := "config" + strconv.Itoa(len(w.configs))
	config, err := readConfigSchema(text, definitions+ref)
	if err != nil {
		plugin.status = statusError
		w.fail(path, "the config schema of plugin %q cannot be read: %v", plugin.name, err)
		return
	}
	if config.draft != "" && config.draft != draft {
		plugin.status = statusUnsupported
		w.warn(path, "the config schema of plugin %q is of another draft than 2020-12: %s", plugin.name, config.draft)
		return
	}
	plugin.status, plugin.ref, plugin.optional = statusSchema, ref, config.optional
	if len(config.dropped) > 0 {
		plugin.status = statusPartial
		w.warn(path, "rules of plugin %q are left out of its config schema: %s", plugin.name, strings.Join(config.dropped, ", "))
	}
	w.configs = append(w.configs, pair{ref, config.schema})
}

// maxNamed is how many plugins one diagnostic names.
const maxNamed = 5

// sumUp says in one line which plugins nothing is known of.
func (w *schemaWriter) sumUp() {
	n := len(w.unknown)
	if n == 0 {
		return
	}
	names := strings.Join(w.unknown[:min(n, maxNamed)], ", ")
	if n > maxNamed {
		names += fmt.Sprintf(" and %d more", n-maxNamed)
	}
	w.warn("", "any config is accepted for plugins that would have to be run to know theirs: %s", names)
}

func (w *schemaWriter) document(profile string) Value {
	defs := []pair{
		{"loaderExpression", loaderExpression()},
		{"entryMetadata", entryMetadata()},
		{"entryList", listOf("entry")},
		{"patchList", listOf("patch")},
		{"unknownConfig", object("description", "Configuration that no schema describes.")},
		{"includeConfig", includeConfig()},
		{"includePatch", includePatch()},
	}
	defs = append(defs, w.configs...)
	defs = append(defs, pair{"entry", w.entrySchema()}, pair{"patch", w.patchSchema()})
	return object(
		"$schema", draft,
		"title", "Cordis configuration for profile "+profile,
		"description", "A patch file: each item inserts rows or overrides keys of the row with its id.",
		"$comment", "Written by dsh from the layers of the profile. Write it anew when bundles or rows change.",
		"type", "array",
		"items", reference("patch"),
		"$defs", newMap(defs),
		"x-cordis", w.report(profile),
	)
}

func (w *schemaWriter) report(profile string) Value {
	diagnostics := &List{}
	for _, d := range w.diagnostics {
		pairs := []pair{{"level", d.level()}}
		if d.Path != "" {
			pairs = append(pairs, pair{"path", d.Path})
		}
		diagnostics.Items = append(diagnostics.Items, newMap(append(pairs, pair{"message", d.Message})))
	}
	return object(
		"profile", profile,
		"complete", w.complete,
		"entries", &List{Items: w.entries},
		"diagnostics", diagnostics,
		"patchSchema", definitions+"patchList",
	)
}

// entrySchema describes rows: metadata, and a config that fits the plugin.
func (w *schemaWriter) entrySchema() Value {
	all := []Value{reference("entryMetadata")}
	names := &List{}
	for _, plugin := range w.order {
		names.Items = append(names.Items, plugin.name)
		if plugin.ref == "unknownConfig" {
			continue
		}
		then := []any{"properties", object("config", config(plugin))}
		if !plugin.optional {
			then = append(then, "required", list("config"))
		}
		all = append(all, object(
			"if", object("properties", object("name", object("const", plugin.name)), "required", list("name")),
			"then", object(then...),
		))
	}
	return object(
		"description", "A row: one plugin instance.",
		"properties", object("name", object("examples", names)),
		"required", list("name"),
		"allOf", &List{Items: all},
	)
}

// patchSchema describes patches: an override of a row that is known needs a
// config that fits one of the plugins which rows of that id have.
func (w *schemaWriter) patchSchema() Value {
	all := []Value{reference("includePatch")}
	ids := &List{}
	for _, known := range w.idOrder {
		ids.Items = append(ids.Items, known.id)
		described := func(p *pluginConfig) bool { return p.ref != "unknownConfig" }
		if !slices.ContainsFunc(known.plugins, described) {
			continue
		}
		names := list("")
		for _, plugin := range known.plugins {
			names.Items = append(names.Items, plugin.name)
		}
		all = append(all, object(
			"if", object(
				"properties", object("id", object("const", known.id), "name", object("enum", names)),
				"required", list("id"),
				"not", object("required", list("insert")),
			),
			"then", object("properties", object("config", config(known.plugins...))),
		))
	}
	return object(
		"description", "A patch: inserts rows, or overrides whole keys of the row with its id.",
		"properties", object("id", object("examples", ids)),
		"allOf", &List{Items: all},
	)
}

// config is the config of a row that has one of the plugins.
func config(plugins ...*pluginConfig) *Map {
	var any []Value
	optional, literal := false, true
	for _, plugin := range plugins {
		any = append(any, reference(plugin.ref))
		optional = optional || plugin.optional
		literal = literal && plugin.literal
	}
	if !literal {
		any = append(any, reference("loaderExpression"))
	}
	if optional {
		any = append(any, object("type", "null"))
	}
	return object("anyOf", &List{Items: any})
}

// expressionText recognises the text of an expression. A JSON Schema does not
// see tags: to the language server of an editor, `!!js a.b` is the text "a.b".
// Hence a text counts as an expression where it has a call, a member, an
// operator or a quote in it, and plain words do not.
const expressionText = "[(\\[{?!<>=&|+*%^~'\"`]|[\\w$]\\.[A-Za-z_$]|\\s[-/]\\s|^undefined$|^(typeof|void|new)\\s"

func loaderExpression() Value {
	return object(
		"description", "A !!js expression: as the loader holds it, or the text that editors see.",
		"anyOf", list(
			object(
				"type", "object",
				"properties", object(exprKey, object("type", "string")),
				"required", list(exprKey),
				"additionalProperties", false,
			),
			object("type", "string", "pattern", expressionText),
		),
	)
}

func entryMetadata() Value {
	text := object("type", "string")
	flag := list("boolean", "null")
	return object(
		"type", "object",
		"properties", object(
			"id", object("type", list("string", "number"), "description", "How patches find the row."),
			"name", object("type", "string", "description", "The plugin: a package, a path or a built-in name."),
			"config", object("description", "What the plugin is given. A patch replaces it whole."),
			"group", object("type", flag, "description", "The config holds rows, which patches can find."),
			"disabled", object(
				"description", "Switches the row off.",
				"anyOf", list(object("type", flag), reference("loaderExpression")),
			),
			"inject", object(
				"description", "Services that the row waits for.",
				"anyOf", list(object("type", "array", "items", text), object("type", list("object", "null"))),
			),
			"intercept", object("type", list("object", "null"), "description", "Configuration of services for the row."),
			"isolate", object(
				"type", list("object", "null"),
				"description", "Services of its own: true, or a name that rows share.",
				"additionalProperties", object("type", list("boolean", "string", "null")),
			),
		),
	)
}

func includeConfig() Value {
	return object(
		"description", "Rows from another file.",
		"type", "object",
		"properties", object(
			"path", object("type", "string", "format", "path", "description", "The file."),
			"initial", reference("entryList"),
			"patches", object("type", "array", "items", reference("includePatch")),
			"enableLogs", object("type", "boolean"),
		),
		"required", list("path"),
	)
}

// includePatch is a patch of rows that are not known.
func includePatch() Value {
	return object(
		"allOf", list(reference("entryMetadata")),
		"properties", object("insert", reference("entryList")),
		"anyOf", list(object("required", list("id")), object("required", list("insert"))),
	)
}

func listOf(definition string) Value {
	return object("type", "array", "items", reference(definition))
}

func reference(definition string) *Map { return object("$ref", definitions+definition) }

// object is a mapping of keys and values that alternate.
func object(keysAndValues ...any) *Map {
	pairs := make([]pair, 0, len(keysAndValues)/2)
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		pairs = append(pairs, pair{keysAndValues[i].(string), keysAndValues[i+1]})
	}
	return newMap(pairs)
}

func list(items ...Value) *List { return &List{Items: items} }
