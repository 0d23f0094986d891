package bundles

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// expression stands for a !!js value: the schema of a value says what it
// evaluates to, which a test cannot know.
const expression = "\x00expression"

type patch struct {
	ID       string
	Name     string
	Insert   []row
	Disabled any
	Config   any
}

type row struct {
	ID     string
	Name   string
	Inject []string
	Config yaml.Node
}

func readPatches(t *testing.T, name string) []patch {
	t.Helper()
	pkg, _, ok := Open(name)
	if !ok {
		t.Fatalf("no bundle %s", name)
	}
	text, err := fs.ReadFile(pkg, "cordis.patch.yml")
	if err != nil {
		t.Fatal(err)
	}
	var patches []patch
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&patches); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return patches
}

// trees is the bundle lists of the shipped templates and the ids that the rows
// of each composed tree have.
var trees = map[string]struct{ bundles, ids string }{
	"web":         {"dsh-base dsh-web-app", baseIDs + " web-startup webserver frontend-static plugin-inventory web-runtime profile-api"},
	"headless":    {"dsh-base dsh-headless", baseIDs + " headless-startup headless-runner"},
	"sdk":         {"dsh-base dsh-sdk-app", baseIDs + " sdk-app-startup sdk-jsonrpc-server"},
	"acp":         {"dsh-base dsh-acp-app", baseIDs + " acp-app-startup acp"},
	"sdk-minimal": {"dsh-sdk-minimal", "sdk-app-startup sdk-jsonrpc-server credentials llm session sessions tools scope"},
}

const baseIDs = "hmr settings credentials llm session session-persistence-jsonl tools skill skill-filesystem compaction-basic scope"

func TestTrees(t *testing.T) {
	for template, want := range trees {
		t.Run(template, func(t *testing.T) {
			var ids []string
			for folder := range strings.FieldsSeq(want.bundles) {
				for i, p := range readPatches(t, scope+folder) {
					if p.Insert == nil && !slices.Contains(ids, p.ID) {
						t.Errorf("%s, patch %d: no row %q below it", folder, i+1, p.ID)
					}
					for _, r := range p.Insert {
						if r.ID == "" || r.Name == "" {
							t.Errorf("%s: a row without id or name: %+v", folder, r)
						}
						if slices.Contains(ids, r.ID) {
							t.Errorf("%s: a second row %q", folder, r.ID)
						}
						ids = append(ids, r.ID)
					}
				}
			}
			if diff := cmp.Diff(strings.Fields(want.ids), ids); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The same plugin has the same id in all trees where the reference does not
// say otherwise, so that one home-wide patch fits every profile.
func TestNamesOfIDs(t *testing.T) {
	names := map[string]string{}
	for _, bundle := range Names() {
		for _, p := range readPatches(t, bundle) {
			for _, r := range p.Insert {
				if known, ok := names[r.ID]; ok && known != r.Name {
					t.Errorf("%s: row %s is %s here and %s elsewhere", bundle, r.ID, r.Name, known)
				}
				names[r.ID] = r.Name
				if !strings.HasPrefix(r.Name, scope) && !strings.HasPrefix(r.Name, "dsh:") {
					t.Errorf("%s: row %s names a plugin that is neither the reference's nor ours: %s", bundle, r.ID, r.Name)
				}
			}
		}
	}
}

func TestConfigMatchesSchema(t *testing.T) {
	rows := 0
	for _, bundle := range Names() {
		for _, p := range readPatches(t, bundle) {
			for _, r := range p.Insert {
				if r.Config.Kind == 0 {
					continue
				}
				rows++
				text, ok := Schema(r.Name)
				if !ok {
					t.Errorf("%s: row %s has config, but %s has no schema", bundle, r.ID, r.Name)
					continue
				}
				if err := compile(t, r.Name, text, true).Validate(value(t, &r.Config)); err != nil {
					t.Errorf("%s: row %s: %v", bundle, r.ID, err)
				}
			}
		}
	}
	if rows < 15 {
		t.Errorf("only %d rows with config were seen", rows)
	}
}

func TestSchemas(t *testing.T) {
	text, err := files.ReadFile("schemas/index.json")
	if err != nil {
		t.Fatal(err)
	}
	var index map[string]string
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	entries, err := files.ReadDir("schemas")
	if err != nil {
		t.Fatal(err)
	}
	var onDisk []string
	for _, entry := range entries {
		if entry.Name() != "index.json" {
			onDisk = append(onDisk, entry.Name())
		}
	}
	if diff := cmp.Diff(onDisk, slices.Sorted(maps.Values(index))); diff != "" {
		t.Errorf("files and index (-files +index):\n%s", diff)
	}
	for plugin, file := range index {
		want := strings.NewReplacer(scope, "", ":", ".", "/", ".").Replace(plugin) + ".json"
		if file != want {
			t.Errorf("the schema of %s is in %s, want %s", plugin, file, want)
		}
		schema, ok := Schema(plugin)
		if !ok {
			t.Errorf("%s has no schema", plugin)
			continue
		}
		if compiled := compile(t, plugin, schema, false); compiled.DraftVersion != 2020 {
			t.Errorf("%s: draft %d", plugin, compiled.DraftVersion)
		}
	}
	if _, ok := Schema("@deepseek-ai/dsh-nothing"); ok {
		t.Error("an unknown plugin has a schema")
	}
}

func TestPathFormat(t *testing.T) {
	for plugin, pointers := range map[string][]string{
		"@deepseek-ai/dsh-llm":                       {"/properties/api_key_file"},
		"@deepseek-ai/dsh-compaction-basic":          {"/properties/provider/properties/api_key_file"},
		"dsh:scope":                                  {"/properties/allow/items/properties/target", "/properties/deny/items/properties/target"},
		"@deepseek-ai/dsh-session-persistence-jsonl": {"/properties/root"},
		"@deepseek-ai/dsh-skill-filesystem":          {"/properties/customSkillDirs/items"},
		"@deepseek-ai/dsh-mcp-client":                {"/oneOf/0/properties/cwd"},
	} {
		text, _ := Schema(plugin)
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatalf("%s: %v", plugin, err)
		}
		for _, pointer := range pointers {
			at := schema
			for key := range strings.SplitSeq(pointer[1:], "/") {
				switch node := at.(type) {
				case map[string]any:
					at = node[key]
				case []any:
					at = node[int(key[0]-'0')]
				}
			}
			if node, ok := at.(map[string]any); !ok || node["format"] != "path" {
				t.Errorf("%s %s is no path: %v", plugin, pointer, at)
			}
		}
	}
}

func TestSchemasRefuse(t *testing.T) {
	for plugin, configs := range map[string][]string{
		"@deepseek-ai/dsh-llm":              {`{"provider": "p"}`, `{"provider": "p", "model": "m", "apiKey": "secret"}`, `{"provider": "p", "model": 1}`},
		"@deepseek-ai/dsh-host-webserver":   {`{"host": "127.0.0.1", "port": 70000}`, `{"host": "example.org", "port": 1}`, `{"port": 1}`},
		"@deepseek-ai/dsh-compaction-basic": {`{"retainRatio": 0.1, "retainTokens": 10}`, `{"thresholdRatio": 1.5}`},
		"dsh:scope":                         {`{"allow": [{}]}`, `{"allow": [{"target": "x", "access": "all"}]}`, `{"deny": "x"}`},
		"@deepseek-ai/dsh-mcp-client":       {`{"transport": "stdio", "serverName": "a b", "command": "x"}`, `{"transport": "stdio", "serverName": "a", "url": "http://x"}`, `{}`},
	} {
		text, _ := Schema(plugin)
		schema := compile(t, plugin, text, false)
		for _, config := range configs {
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(instance) == nil {
				t.Errorf("%s accepts %s", plugin, config)
			}
		}
	}
}

func TestManifests(t *testing.T) {
	want := []string{"dsh-acp-app", "dsh-base", "dsh-headless", "dsh-sdk-app", "dsh-sdk-minimal", "dsh-web-app"}
	var got []string
	for _, name := range Names() {
		pkg, folder, ok := Open(name)
		if !ok {
			t.Fatalf("%s cannot be opened", name)
		}
		got = append(got, folder)
		text, err := fs.ReadFile(pkg, "package.json")
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Name, Version, License, Description string
			Dsh                                 struct{ Bundle struct{ Patch string } }
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatal(err)
		}
		if manifest.Name != name || manifest.Version != "0.0.0-embedded" || manifest.License != "MIT" || manifest.Description == "" {
			t.Errorf("%s: %+v", folder, manifest)
		}
		if _, err := fs.Stat(pkg, path.Clean(manifest.Dsh.Bundle.Patch)); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, other := range []string{"dsh-base", "@deepseek-ai/", "@deepseek-ai/schemas", "@deepseek-ai/dsh-base/x", "@deepseek-ai/../x", "@deepseek-ai/.", ""} {
		if _, _, ok := Open(other); ok {
			t.Errorf("%q is a bundle", other)
		}
	}
}

// compile makes a validator; with expressions allowed, each value inside the
// config may be an expression instead.
func compile(t *testing.T, plugin string, text []byte, expressions bool) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", plugin, err)
	}
	if expressions {
		allowExpressions(document)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatalf("%s: %v", plugin, err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", plugin, err)
	}
	return schema
}

func allowExpressions(schema any) {
	node, ok := schema.(map[string]any)
	if !ok {
		return
	}
	or := func(sub any) any {
		allowExpressions(sub)
		return map[string]any{"anyOf": []any{map[string]any{"const": expression}, sub}}
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		for key, sub := range properties {
			properties[key] = or(sub)
		}
	}
	if items, ok := node["items"]; ok {
		node["items"] = or(items)
	}
	if branches, ok := node["oneOf"].([]any); ok {
		for _, branch := range branches {
			allowExpressions(branch)
		}
	}
}

// value is the JSON value of a YAML node, with expressions replaced.
func value(t *testing.T, node *yaml.Node) any {
	t.Helper()
	switch {
	case node.Tag == "!!js":
		return expression
	case node.Kind == yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i < len(node.Content); i += 2 {
			object[node.Content[i].Value] = value(t, node.Content[i+1])
		}
		return object
	case node.Kind == yaml.SequenceNode:
		list := []any{}
		for _, element := range node.Content {
			list = append(list, value(t, element))
		}
		return list
	}
	var scalar any
	if err := node.Decode(&scalar); err != nil {
		t.Fatal(err)
	}
	return scalar
}
