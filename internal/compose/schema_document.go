package compose

import "slices"

func (w *schemaWriter) document(profile string) Value {
	defs := []pair{
		{"loaderExpression", loaderExpression()},
		{"entryMetadata", entryMetadata()},
		{"entryList", object("type", "array", "items", w.insertedSchema())},
		{"patchList", object("type", "array", "items", reference("patch"))},
		{"unknownConfig", object("description", "Configuration that no schema describes.")},
		{"includeConfig", includeConfig()},
		{"includePatch", includePatch()},
	}
	defs = append(defs, w.configs...)
	defs = append(defs, pair{"entry", w.entrySchema()}, pair{"patch", w.patchSchema()})
	return object(
		"$schema", draft,
		"title", "Cordis configuration for profile "+profile,
		"description", "The rows of the profile, or a patch file over them: each patch inserts rows or overrides keys of the row with its id.",
		"$comment", "Written by dsh from the layers of the profile. Write it anew when bundles or rows change.",
		"type", "array",
		"items", reference("entry"),
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

// entrySchema describes what may stand in a list: a row, whose config fits its
// plugin, or a patch. Whether an override that names the plugin is a row makes
// no difference.
func (w *schemaWriter) entrySchema() Value {
	row := list(reference("entryMetadata"))
	names := &List{}
	for _, plugin := range w.order {
		names.Items = append(names.Items, plugin.name)
		if plugin.ref != "unknownConfig" {
			row.Items = append(row.Items, object("if", named(plugin), "then", object("properties", object("config", config(plugin)))))
		}
	}
	return object(
		"description", "A row, which is one plugin instance, or a patch.",
		"properties", object("name", object("examples", names)),
		"if", object(
			"properties", object("name", object("minLength", 1.0)),
			"required", list("name"),
			"not", object("required", list("insert")),
		),
		"then", object("allOf", row),
		"else", reference("patch"),
	)
}

// insertedSchema describes rows of their own, which say all that their plugins
// need.
func (w *schemaWriter) insertedSchema() Value {
	all := list(reference("entry"))
	for _, plugin := range w.order {
		if !plugin.optional {
			all.Items = append(all.Items, object("if", named(plugin), "then", object("required", list("config"))))
		}
	}
	return object("required", list("name"), "allOf", all)
}

// named describes rows of a plugin.
func named(plugin *pluginConfig) *Map {
	return object("properties", object("name", object("const", plugin.name)), "required", list("name"))
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
