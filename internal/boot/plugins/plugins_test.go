package plugins

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"dsh/bundles"
	"dsh/internal/action"
	"dsh/internal/boot/plugins/agent"
	"dsh/internal/boot/plugins/credentials"
	"dsh/internal/boot/plugins/frontend"
	"dsh/internal/boot/plugins/hmr"
	"dsh/internal/boot/plugins/profileapi"
	"dsh/internal/boot/plugins/scope"
	"dsh/internal/boot/plugins/settings"
	"dsh/internal/boot/plugins/skill"
	"dsh/internal/boot/plugins/startup"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/plugins/webruntime"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/compose"
)

// treeOf is the tree of in-box bundles and one more layer.
func treeOf(t *testing.T, patch string, names ...string) *compose.Tree {
	t.Helper()
	var layers []compose.Layer
	add := func(label string, text []byte) {
		patches, err := compose.ParsePatches(compose.Source{File: label, Dir: "/somewhere"}, text)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, compose.Layer{Label: label, Patches: patches})
	}
	for _, name := range names {
		pkg, _, ok := bundles.Open(name)
		if !ok {
			t.Fatalf("no bundle %s", name)
		}
		text, err := fs.ReadFile(pkg, "cordis.patch.yml")
		if err != nil {
			t.Fatal(err)
		}
		add(name, text)
	}
	if patch != "" {
		add("patch", []byte(patch))
	}
	return compose.Apply(layers, func(string) *compose.PathRule { return nil })
}

// TestEveryRowHasItsPlugin goes through all in-box bundles.
func TestEveryRowHasItsPlugin(t *testing.T) {
	rows := 0
	for _, bundle := range bundles.Names() {
		for row := range treeOf(t, "", bundle).Mounted() {
			rows++
			if _, ok := agents[row.Name()]; ok {
				continue
			}
			if _, ok := Lookup(row.Name()); !ok {
				t.Errorf("%s: row %s: no plugin %s", bundle, compose.IDText(row.ID()), row.Name())
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}

// TestReferenceNamesEveryPlugin looks for the plugins in the page for users.
func TestReferenceNamesEveryPlugin(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/reference.md does not name %s", name)
		}
	}
}

func TestNeedsNode(t *testing.T) {
	for name, want := range map[string]string{
		"@deepseek-ai/dsh-host-webserver":     "",
		"dsh:scope":                           "",
		"cordis:group":                        "",
		"cordis:include":                      "",
		"@deepseek-ai/dsh-headless/startup":   "",
		"@deepseek-ai/dsh-headless":           "it gives an agent its task",
		"@deepseek-ai/dsh-sdk-jsonrpc-server": "lets a program drive",
		"@deepseek-ai/dsh-acp":                "lets an editor drive",
		"some-plugin":                         "Node.js harness",
		"":                                    "Node.js harness",
	} {
		why, needs := NeedsNode(name)
		if needs != (want != "") || !strings.Contains(why, want) {
			t.Errorf("%s: %v %q", name, needs, why)
		}
	}
}

// configs are the types that the plugins of this program decode their
// configuration into, by the plugins' names.
var configs = map[string]any{
	agent.CompactionName:   agent.CompactionConfig{},
	agent.ModelName:        agent.ModelConfig{},
	agent.PersistenceName:  agent.PersistenceConfig{},
	credentials.Name:       credentials.Config{},
	frontend.Name:          frontend.Config{},
	hmr.Name:               hmr.Config{},
	profileapi.Name:        profileapi.Config{},
	scope.Name:             scope.Config{},
	settings.Name:          settings.Config{},
	skill.Name:             skill.Config{},
	skill.FilesystemName:   skill.FilesystemConfig{},
	tools.Name:             tools.Config{},
	startup.Apps()[2].Name: startup.SDKConfig{},
	webruntime.Name:        webruntime.Config{},
	webserver.Name:         webserver.Config{},
}

// TestConfigsAgreeWithSchemas decodes a document that has every key which the
// schema allows, and asks the schema for every key that the type has.
func TestConfigsAgreeWithSchemas(t *testing.T) {
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			text, ok := bundles.Schema(name)
			if !ok {
				t.Fatal("there is no schema")
			}
			var schema map[string]any
			if err := json.Unmarshal(text, &schema); err != nil {
				t.Fatal(err)
			}
			document, err := json.Marshal(example(schema))
			if err != nil {
				t.Fatal(err)
			}
			into := reflect.New(reflect.TypeOf(config))
			decoder := json.NewDecoder(bytes.NewReader(document))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(into.Interface()); err != nil {
				t.Errorf("%s: %v", document, err)
			}
			compareKeys(t, "", reflect.TypeOf(config), schema)
		})
	}
}

// example is a value with all that a schema allows.
func example(schema map[string]any) any {
	if value, ok := schema["default"]; ok && schema["type"] != "array" {
		return value
	}
	if values, ok := schema["enum"].([]any); ok {
		return values[0]
	}
	switch schema["type"] {
	case "object":
		value := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for key, of := range properties {
			value[key] = example(of.(map[string]any))
		}
		if of, ok := schema["additionalProperties"].(map[string]any); ok {
			value["any-key"] = example(of)
		}
		return value
	case "array":
		return []any{example(schema["items"].(map[string]any))}
	case "string":
		return "text"
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	panic("a schema of another kind")
}

// compareKeys looks for the keys of a type in a schema, and for those of the
// schema in the type.
func compareKeys(t *testing.T, at string, typ reflect.Type, schema map[string]any) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		if items, ok := schema["items"].(map[string]any); ok && typ.Kind() == reflect.Slice {
			schema = items
		}
		typ = typ.Elem()
	}
	properties, _ := schema["properties"].(map[string]any)
	if typ.Kind() != reflect.Struct {
		return
	}
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(typ) {
		if field.Anonymous {
			continue
		}
		key := field.Tag.Get("json")
		known[key] = true
		of, ok := properties[key].(map[string]any)
		if !ok {
			t.Errorf("%s.%s: the schema has no key %q", at, field.Name, key)
			continue
		}
		compareKeys(t, at+"."+key, field.Type, of)
	}
	for key := range properties {
		if !known[key] {
			t.Errorf("%s: the plugin does not know %q", at, key)
		}
	}
}

func TestParseCommandLine(t *testing.T) {
	web := []string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-web-app"}
	headless := []string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-headless"}
	for name, c := range map[string]struct {
		bundles []string
		patch   string
		args    string // words
		code    int    // -1: all goes on
		text    string // in what is said
	}{
		"web":                          {web, "", "--port 0 --no-open", -1, ""},
		"web, help":                    {web, "", "--help", 0, "Usage: dsh --profile web [options]"},
		"web, wrong":                   {web, "", "--port x", 1, "error: option '--port <n>' argument 'x' is invalid"},
		"no task":                      {headless, "", "", 1, "error: a task is required"},
		"task":                         {headless, "", "do it", -1, ""},
		"sdk":                          {[]string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-sdk-app"}, "", "-h", 0, "Usage: dsh --profile sdk [options]"},
		"sdk-minimal":                  {[]string{"@deepseek-ai/dsh-sdk-minimal"}, "", "-h", 0, "Usage: dsh --profile sdk-minimal [options]"},
		"sdk of another name":          {[]string{"@deepseek-ai/dsh-sdk-minimal"}, "- id: sdk-app-startup\n  config: {profile: mine}\n", "-h", 0, "Usage: dsh --profile mine [options]"},
		"sdk of an expression":         {[]string{"@deepseek-ai/dsh-sdk-minimal"}, "- id: sdk-app-startup\n  config: {profile: !!js x}\n", "-h", 0, "Usage: dsh --profile sdk [options]"},
		"acp":                          {[]string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-acp-app"}, "", "x", 1, "error: there may be options only, but 'x' is none"},
		"nobody reads":                 {[]string{"@deepseek-ai/dsh-base"}, "", "--any thing --help", -1, ""},
		"switched off":                 {headless, "- id: headless-startup\n  disabled: true\n", "--help", -1, ""},
		"perhaps off":                  {headless, "- id: headless-startup\n  disabled: !!js x\n", "--help", -1, ""},
		"in a group":                   {nil, "- insert: [{id: g, name: 'cordis:group', config: [{id: s, name: '@deepseek-ai/dsh-headless/startup'}]}]\n", "-h", 0, "dsh --profile headless"},
		"in a group that is off":       {nil, "- insert: [{id: g, name: 'cordis:group', disabled: true, config: [{id: s, name: '@deepseek-ai/dsh-headless/startup'}]}]\n", "-h", -1, ""},
		"in a group with its rows off": {nil, "- insert: [{id: g, name: 'cordis:group', group: true, disabled: true, config: [{id: s, name: '@deepseek-ai/dsh-headless/startup'}]}]\n", "-h", -1, ""},
		"in a group perhaps off":       {nil, "- insert: [{id: g, name: 'cordis:group', disabled: !!js x, config: [{id: s, name: '@deepseek-ai/dsh-headless/startup'}]}]\n", "-h", -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			exit := ParseCommandLine(treeOf(t, c.patch, c.bundles...), strings.Fields(c.args))
			switch {
			case c.code < 0:
				if exit != nil {
					t.Errorf("got %+v", exit)
				}
			case exit == nil || exit.Code != c.code || !strings.Contains(exit.Text, c.text) || !strings.HasSuffix(exit.Text, "\n"):
				t.Errorf("got %+v", exit)
			}
		})
	}
}

// TestCheckKnowsThePlugins holds what `dsh config check` takes for built in against
// what is.
func TestCheckKnowsThePlugins(t *testing.T) {
	for _, name := range Names() {
		if !action.BuiltIn(name) {
			t.Errorf("%s is compiled in, and a check says that there is no such plugin", name)
		}
	}
}
