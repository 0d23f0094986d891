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

// Schema is a JSON Schema (2020-12) of the rows of a tree and of the patch
// files over them.
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
	definitions = "#/$defs/"
	draft       = "https://json-schema.org/draft/2020-12/schema"
)

// Schema describes the rows of the profile that composed to t, and the patch
// files over them. skipped are lines about bundles that are missing from the
// tree. No plugin is run.
//
// The names in the document are those of the reference launcher's schema dump.
// As there it describes lists of rows, so that a dump of the tree fits it; but
// an item that names no plugin is taken for a patch, so that editors can hold
// it against patch files. "#/$defs/patchList" knows patches only.
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
	case name == IncludePlugin:
		tree = "include"
	case name == GroupPlugin || Truthy(group):
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
	carrier := tree == "group" && name != GroupPlugin
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
	case name == GroupPlugin:
		plugin.status, plugin.ref, plugin.literal = statusSchema, "entryList", true
	case name == IncludePlugin:
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
