package compose

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"dsh/bundles"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the golden files of schemas")

// webBundles are the layers of the shipped web profile.
var webBundles = []string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-web-app"}

func inBoxText(t testing.TB, name string) []byte {
	t.Helper()
	pkg, _, ok := bundles.Open(name)
	if !ok {
		t.Fatalf("no bundle %s", name)
	}
	text, err := fs.ReadFile(pkg, "cordis.patch.yml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parsed(t testing.TB, text string) []Patch {
	t.Helper()
	patches, err := ParsePatches(Source{File: "test.yml", Dir: "/dir"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return patches
}

func layersOf(t testing.TB, names ...string) []Layer {
	t.Helper()
	var layers []Layer
	for _, name := range names {
		layers = append(layers, Layer{Label: name, Patches: parsed(t, string(inBoxText(t, name)))})
	}
	return layers
}

// inBox knows the plugins with a schema, and those of in-box names without.
func inBox(plugin string) (json.RawMessage, bool) {
	schema, ok := bundles.Schema(plugin)
	return schema, ok || strings.HasPrefix(plugin, "@deepseek-ai/")
}

func compileSchema(t testing.TB, document []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	if schema.DraftVersion != 2020 {
		t.Fatalf("draft %d", schema.DraftVersion)
	}
	return schema
}

// views are what validators see of an expression: the loader's object, and
// the text that is left when an editor has put the tag aside.
var views = map[string]func(Expr) any{
	"loader": func(e Expr) any { return map[string]any{exprKey: e.Text} },
	"editor": func(e Expr) any { return e.Text },
}

func instance(v Value, view func(Expr) any) any {
	switch v := v.(type) {
	case Expr:
		return view(v)
	case *List:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = instance(item, view)
		}
		return items
	case *Map:
		object := make(map[string]any, v.Len())
		for key, item := range v.All() {
			object[key] = instance(item, view)
		}
		return object
	default:
		return v
	}
}

// patchInstance is a patch file as a validator gets it, whatever its shape.
func patchInstance(t testing.TB, text, view string) any {
	t.Helper()
	doc, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return instance(doc.value, views[view])
}

func webSchema(t testing.TB) Schema {
	t.Helper()
	return Apply(layersOf(t, webBundles...), nil).Schema("web", inBox, nil)
}

func TestSchemaOfWeb(t *testing.T) {
	got := webSchema(t)
	if !got.Complete || got.Diagnostics != nil {
		t.Errorf("complete %v, diagnostics %v", got.Complete, got.Diagnostics)
	}
	golden := filepath.Join("testdata", "schema_web.json")
	if *updateSchemas {
		if err := os.WriteFile(golden, got.Document, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got.Document)); diff != "" {
		t.Errorf("go test -update-schemas writes the file anew\n%s", diff)
	}
}

func TestSchemaAcceptsAndRefuses(t *testing.T) {
	schema := compileSchema(t, webSchema(t).Document)
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"[]", true},
		{"- {id: llm, config: {provider: p, model: m}}", true},
		{"- {id: llm, name: '@deepseek-ai/dsh-llm', config: {provider: p, model: m}}", true},
		{"- {id: llm, name: '', config: {provider: p, model: m}}", true},
		{"- {id: llm, disabled: true}", true},
		{"- {id: llm, disabled: !!js ctx.off}", true},
		{"- {id: llm, config: !!js ctx.settings.llm}", true},
		{"- {id: llm, note: any key is kept}", true},
		{"- {id: 7, config: {a: 1}}", true},
		{"- {id: elsewhere, config: {any: [thing]}}", true},
		{"- {id: session, config: {any: thing}}", true},
		{"- {id: webserver, config: {host: localhost, port: 80}}", true},
		{"- {id: webserver, config: {host: !!js ctx.host, port: !!js 'ctx.port ?? 80'}}", true},
		{"- {id: webserver, config: {host: !!js process.env.HOST, port: !!js 'Number(x)'}}", true},
		{"- {id: webserver, config: {host: !!js 'ctx[1]', port: !!js undefined}}", true},
		{"- {id: webserver, config: {host: !!js typeof a, port: !!js a / b}}", true},
		{"- {id: web-runtime, config: {trustedHosts: [!!js ctx.a, b]}}", true},
		{"- {id: frontend-static, config: null}", true},
		{"- {id: scope, config: {allow: [{target: !!js process.cwd(), access: !!js ctx.access}]}}", true},
		{"- insert: []", true},
		{"- insert: [{name: my-plugin}]", true},
		{"- insert: [{id: x, name: ./mine.js, config: {any: thing}, inject: [a, b]}]", true},
		{"- {id: some-group, insert: [{name: '@deepseek-ai/dsh-llm', config: {provider: p, model: m}}]}", true},
		{"- insert: [{name: '@deepseek-ai/dsh-session'}]", true},
		{"- insert: [{name: '@deepseek-ai/dsh-tools', config: null}]", true},

		// Rows as a dump shows them.
		{"- {id: a, name: my-plugin}", true},
		{"- {name: '@deepseek-ai/dsh-tools', config: {mode: code}}", true},

		{"- {name: '@deepseek-ai/dsh-tools', config: {mode: no}}", false},
		{"- {id: llm, name: '', config: {provider: p}}", false},
		{"{}", false},
		{"null", false},
		{"id: llm", false},
		{"- text", false},
		{"- {}", false},
		{"- {set: {id: llm}}", false},
		{"- {id: [llm]}", false},
		{"- {id: llm, config: {provider: p}}", false},
		{"- {id: llm, config: {provider: p, model: 1}}", false},
		{"- {id: llm, config: {provider: p, model: m, typo: 1}}", false},
		{"- {id: llm, name: '@deepseek-ai/dsh-llm', config: {}}", false},
		{"- {id: llm, config: null}", false},
		{"- {id: llm, config: plain words}", false},
		{"- {id: webserver, config: {host: localhost, port: 70000}}", false},
		{"- {id: webserver, config: {host: localhost, port: '3080'}}", false},
		{"- {id: webserver, config: {host: 127.0.0.1, port: 70000}}", false},
		{"- {id: webserver, config: {port: 80}}", false},
		{"- {id: tools, config: {mode: fast}}", false},
		{"- {id: tools, config: {mode: {__jsExpr: a, b: c}}}", false},
		{"- {id: scope, config: {allow: [{access: read}]}}", false},
		{"- {id: llm, disabled: yes please}", false},
		{"- {insert: {name: x}}", false},
		{"- {insert: text}", false},
		{"- insert:", false},
		{"- insert: [{id: x}]", false},
		{"- insert: [text]", false},
		{"- insert: [{name: '@deepseek-ai/dsh-llm'}]", false},
		{"- insert: [{name: '@deepseek-ai/dsh-llm', config: {provider: p}}]", false},
	} {
		for view := range views {
			err := schema.Validate(patchInstance(t, c.text, view))
			if (err == nil) != c.ok {
				t.Errorf("%s, as the %s sees it: %v", c.text, view, err)
			}
		}
	}
}

// What is refused without an expression stays refused where only a text that
// is no expression stands in its place.
func TestExpressionText(t *testing.T) {
	schema := compileSchema(t, []byte(`{"$schema": "`+draft+`", "type": "string", "pattern": `+string(appendJSONString(nil, expressionText))+`}`))
	for text, want := range map[string]bool{
		"ctx.webStartup.port ?? 3080": true, "dshHomePath('sessions')": true, "process.env.X": true, "!a": true,
		"a ? b : c": true, "[1]": true, "{}": true, "'text'": true, "`text`": true, "a - b": true, "a/b": false,
		"new Date": true, "void 0": true, "undefined": true, "a?.b": true, "a\n  .b": false,
		"": false, "word": false, "two words": false, "80": false, "80.5": false, "127.0.0.1": false, "a-b": false,
		"/path/to": false, "@scope/name": false, "undefined word": false, "renew it": false,
	} {
		if got := schema.Validate(text) == nil; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The bundles' own files are patch files of the profiles that they make up.
func TestSchemaAcceptsInBoxBundles(t *testing.T) {
	for _, names := range [][]string{
		webBundles,
		{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-headless"},
		{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-sdk-app"},
		{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-acp-app"},
		{"@deepseek-ai/dsh-sdk-minimal"},
	} {
		result := Apply(layersOf(t, names...), nil).Schema("x", inBox, nil)
		if !result.Complete {
			t.Errorf("%v: incomplete: %v", names, result.Diagnostics)
		}
		schema := compileSchema(t, result.Document)
		if err := schema.Validate(patchInstance(t, string(Apply(layersOf(t, names...), nil).Dump()), "loader")); err != nil {
			t.Errorf("%v: the dump: %v", names, err)
		}
		for _, name := range names {
			for view := range views {
				if err := schema.Validate(patchInstance(t, string(inBoxText(t, name)), view)); err != nil {
					t.Errorf("%v: %s, as the %s sees it: %v", names, name, view, err)
				}
			}
		}
	}
}

// Patch files of public bundles, over the rows of the web profile and their
// own.
func TestSchemaAcceptsRealBundles(t *testing.T) {
	data, err := os.ReadFile("testdata/real-bundles.json")
	if err != nil {
		t.Fatal(err)
	}
	var real struct {
		Bundles []struct{ Name, Patch string }
	}
	if err := json.Unmarshal(data, &real); err != nil {
		t.Fatal(err)
	}
	layers := layersOf(t, webBundles...)
	texts := map[string]string{}
	for _, bundle := range real.Bundles {
		patches, err := ParsePatches(Source{File: bundle.Name, Dir: "/b"}, []byte(bundle.Patch))
		if err != nil {
			continue
		}
		layers = append(layers, Layer{Label: bundle.Name, Patches: patches})
		texts[bundle.Name] = bundle.Patch
	}
	if len(texts) < 50 {
		t.Errorf("only %d bundles were read", len(texts))
	}
	result := Apply(layers, nil).Schema("web", inBox, nil)
	if result.Complete {
		t.Error("the plugins of these bundles are known")
	}
	schema := compileSchema(t, result.Document)
	for name, text := range texts {
		for view := range views {
			err := schema.Validate(patchInstance(t, text, view))
			// The one that is a template was not filled in.
			if wanted := name != "{{PKG_NAME}}"; (err == nil) != wanted {
				t.Errorf("%s, as the %s sees it: %v\n%s", name, view, err, text)
			}
		}
	}
}

func TestSchemaReport(t *testing.T) {
	find := func(plugin string) (json.RawMessage, bool) {
		switch plugin {
		case "whole", "other":
			return json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}}`), true
		case "silent":
			return nil, true
		case "partial":
			return json.RawMessage(`{"if": true, "then": {"contains": true}}`), true
		case "old":
			return json.RawMessage(`{"$schema": "http://json-schema.org/draft-07/schema#"}`), true
		case "broken":
			return json.RawMessage(`[1]`), true
		}
		return nil, false
	}
	for _, c := range []struct {
		name, rows  string
		skipped     []string
		entries     string // path id name status configRef tree, a line each
		diagnostics []string
		complete    bool
	}{
		{"no rows", "[]", nil, "", nil, true},
		{"described", "[{id: a, name: whole}, {id: b, name: other}, {id: c, name: whole}]", nil,
			"/0 a whole schema config0\n/1 b other schema config1\n/2 c whole schema config0\n", nil, true},
		{"without a schema", "[{name: silent}]", nil, "/0 silent absent unknownConfig\n", nil, true},
		{"not known", "[{name: js}, {name: js}, {name: b}]", nil,
			"/0 js unsupported unknownConfig\n/1 js unsupported unknownConfig\n/2 b unsupported unknownConfig\n",
			[]string{"warning: any config is accepted for plugins that would have to be run to know theirs: js, b"}, false},
		{"many not known", "[{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}]", nil,
			"/0 a unsupported unknownConfig\n/1 b unsupported unknownConfig\n/2 c unsupported unknownConfig\n/3 d unsupported unknownConfig\n" +
				"/4 e unsupported unknownConfig\n/5 f unsupported unknownConfig\n/6 g unsupported unknownConfig\n",
			[]string{"warning: any config is accepted for plugins that would have to be run to know theirs: a, b, c, d, e and 2 more"}, false},
		{"in part", "[{name: silent}, {name: partial}, {name: partial}]", nil,
			"/0 silent absent unknownConfig\n/1 partial partial config0\n/2 partial partial config0\n",
			[]string{`warning: [/1] rules of plugin "partial" are left out of its config schema: if, then`}, false},
		{"another draft", "[{name: old}]", nil, "/0 old unsupported unknownConfig\n",
			[]string{`warning: [/0] the config schema of plugin "old" is of another draft than 2020-12: http://json-schema.org/draft-07/schema#`}, false},
		{"broken schema", "[{name: broken}]", nil, "/0 broken error unknownConfig\n",
			[]string{`error: [/0] the config schema of plugin "broken" cannot be read: it is neither an object nor a boolean`}, false},
		{"groups", "[{id: g, name: 'cordis:group', group: true, config: [{id: a, name: whole}, {name: 'cordis:group', config: [{name: silent}]}]}]", nil,
			"/0 g cordis:group schema entryList group\n/0/config/0 a whole schema config0\n" +
				"/0/config/1 cordis:group schema entryList group\n/0/config/1/config/0 silent absent unknownConfig\n", nil, true},
		{"a group of another kind", "[{name: whole}, {name: whole, group: true, config: [{name: other}]}]", nil,
			"/0 whole schema config0\n/1 whole unsupported unknownConfig group\n/1/config/0 other schema config1\n",
			[]string{"warning: any config is accepted for plugins that would have to be run to know theirs: whole"}, false},
		{"includes", "[{name: 'cordis:include', config: {path: other.yml}}]", nil,
			"/0 cordis:include partial includeConfig include\n",
			[]string{"warning: [/0] the rows of the included file are not described"}, false},
		{"malformed", "[text, {id: a}, {id: b, name: 7}, {name: !!js x}, {name: 'cordis:group', config: [[]]}]", nil,
			"/0 error unknownConfig\n/1 a error unknownConfig\n/2 b error unknownConfig\n/3 error unknownConfig\n" +
				"/4 cordis:group schema entryList group\n/4/config/0 error unknownConfig\n",
			[]string{"error: [/0] the row is not a mapping", "error: [/1] the row names no plugin", "error: [/2] the row names no plugin",
				"error: [/3] the row names no plugin", "error: [/4/config/0] the row is not a mapping"}, false},
		{"a skipped bundle", "[{name: silent}]", []string{`skipping profile bundle "x": why`}, "/0 silent absent unknownConfig\n",
			[]string{`warning: skipping profile bundle "x": why`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := Apply([]Layer{{Label: "l", Patches: parsed(t, "- insert: "+c.rows)}}, nil).Schema("p", find, c.skipped)
			compileSchema(t, result.Document)
			var told []string
			for _, d := range result.Diagnostics {
				told = append(told, d.level()+": "+d.String())
			}
			if diff := cmp.Diff(c.diagnostics, told); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			var doc struct {
				Report struct {
					Profile, PatchSchema string
					Complete             bool
					Entries              []map[string]any
					Diagnostics          []struct{ Level, Path, Message string }
				} `json:"x-cordis"`
			}
			if err := json.Unmarshal(result.Document, &doc); err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			for _, entry := range doc.Report.Entries {
				var words []string
				for _, key := range []string{"path", "id", "name", "status", "configRef", "tree"} {
					if word, ok := entry[key].(string); ok {
						words = append(words, strings.TrimPrefix(word, definitions))
					}
				}
				lines.WriteString(strings.Join(words, " ") + "\n")
			}
			if diff := cmp.Diff(c.entries, lines.String()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			var listed []string
			for _, d := range doc.Report.Diagnostics {
				listed = append(listed, d.Level+": "+SchemaDiagnostic{Path: d.Path, Message: d.Message}.String())
			}
			if diff := cmp.Diff(told, listed); diff != "" {
				t.Errorf("diagnostics in the document (-want +got):\n%s", diff)
			}
			if result.Complete != c.complete || doc.Report.Complete != c.complete {
				t.Errorf("complete is %v, and %v in the document", result.Complete, doc.Report.Complete)
			}
			if doc.Report.Profile != "p" || doc.Report.PatchSchema != "#/$defs/patchList" {
				t.Errorf("report %+v", doc.Report)
			}
		})
	}
}

// Where only patches can stand, rows of their own are refused.
func TestPatchListOfSchema(t *testing.T) {
	document := bytes.Replace(webSchema(t).Document, []byte(`"$ref": "#/$defs/entry"`), []byte(`"$ref": "#/$defs/patch"`), 1)
	schema := compileSchema(t, document)
	for text, ok := range map[string]bool{
		"[]":                       true,
		"- {id: llm, name: x}":     true,
		"- insert: [{name: x}]":    true,
		"- {name: x}":              false,
		"- {id: llm, config: {}}":  false,
		"- insert: [{id: nobody}]": false,
	} {
		if err := schema.Validate(patchInstance(t, text, "loader")); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSchemaShowsSkippedPatches(t *testing.T) {
	result := Apply([]Layer{{Label: "file.yml", Patches: parsed(t, "- {id: gone, disabled: true}")}}, nil).Schema("p", inBox, nil)
	want := []SchemaDiagnostic{{Message: `patch: entry "gone" not found`}}
	if diff := cmp.Diff(want, result.Diagnostics); diff != "" {
		t.Error(diff)
	}
	if !result.Complete {
		t.Error("a warning makes it incomplete")
	}
}

// One id may stand for several plugins; an override must then fit one of them.
func TestSchemaOfSharedIDs(t *testing.T) {
	rows := "- insert: [{id: a, name: '@deepseek-ai/dsh-tools'}, {id: a, name: '@deepseek-ai/dsh-skill'}, {id: 1, name: '@deepseek-ai/dsh-tools'}]"
	schema := compileSchema(t, Apply([]Layer{{Label: "l", Patches: parsed(t, rows)}}, nil).Schema("p", inBox, nil).Document)
	for text, ok := range map[string]bool{
		"- {id: a, config: {mode: code}}":                 true,
		"- {id: a, config: {collectCacheMaxEntries: 1}}":  true,
		"- {id: a, config: {collectCacheMaxEntries: no}}": false,
		"- {id: 1, config: {mode: code}}":                 true,
		"- {id: 1, config: {mode: no}}":                   false,
		"- {id: '1', config: {mode: no}}":                 true,
	} {
		if err := schema.Validate(patchInstance(t, text, "loader")); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzSchema(f *testing.F) {
	for _, name := range bundles.Names() {
		f.Add(inBoxText(f, name))
	}
	f.Add([]byte("- insert: [{id: .nan, name: 'cordis:group', config: [x, {name: a, group: 1, config: [1]}]}, {id: !!js x}, {name: 'cordis:include'}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		patches, err := ParsePatches(Source{File: "f", Dir: "/d"}, text)
		if err != nil {
			return
		}
		tree := Apply([]Layer{{Label: "l", Patches: patches}}, nil)
		result := tree.Schema("p", inBox, nil)
		compileSchema(t, result.Document)
		if !bytes.Equal(result.Document, tree.Schema("p", inBox, nil).Document) {
			t.Error("two documents of one tree differ")
		}
	})
}
