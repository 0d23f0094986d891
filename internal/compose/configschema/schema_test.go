package configschema

import (
	"io/fs"
	"testing"

	"dsh/bundles"
	"dsh/internal/compose"
)

func TestCompileRefuses(t *testing.T) {
	tests := []struct{ schema, want string }{
		{``, "reading the config schema of my-plugin: EOF"},
		{`{} {}`, "reading the config schema of my-plugin: invalid character after top-level value"},
		{`{"$ref": "other.json"}`, "reading the config schema of my-plugin: it refers to something outside its document: other.json"},
		{`{"$ref": "https://example.com/schema.json#/a"}`, "reading the config schema of my-plugin: it refers to something outside its document: https://example.com/schema.json"},
		{`{"$ref": "file:///etc/passwd"}`, "reading the config schema of my-plugin: it refers to something outside its document: file:///etc/passwd"},
		{`{"$schema": "https://example.com/dialect"}`, "reading the config schema of my-plugin: it refers to something outside its document: https://example.com/dialect"},
		{`{"$ref": "#/$defs/a"}`, `reading the config schema of my-plugin: json-pointer in "#/$defs/a" not found`},
		{`{"properties": {"a": {"type": "txt"}}}`, "reading the config schema of my-plugin: it is no JSON Schema: at /properties/a/type: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'"},
		{`{"minimum": 1e999999999}`, "reading the config schema of my-plugin: the number 1e999999999 is out of bounds"},
		{`{"enum": [1, 1e-999999999]}`, "reading the config schema of my-plugin: the number 1e-999999999 is out of bounds"},
		{`5`, "reading the config schema of my-plugin: it is no JSON Schema: at /: got number, want boolean or object"},
	}
	for _, test := range tests {
		_, err := Compile("my-plugin", []byte(test.schema))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v, want %s", test.schema, err, test.want)
		}
	}
}

func TestCompileTakesTheInBoxSchemas(t *testing.T) {
	names := []string{
		"@deepseek-ai/dsh-acp", "@deepseek-ai/dsh-compaction-basic", "@deepseek-ai/dsh-credentials-local", "@deepseek-ai/dsh-headless",
		"@deepseek-ai/dsh-hmr", "@deepseek-ai/dsh-host-frontend-static", "@deepseek-ai/dsh-host-webserver", "@deepseek-ai/dsh-llm",
		"@deepseek-ai/dsh-mcp-client", "@deepseek-ai/dsh-sdk-app", "@deepseek-ai/dsh-sdk-jsonrpc-server",
		"@deepseek-ai/dsh-session-persistence-jsonl", "@deepseek-ai/dsh-settings-file", "@deepseek-ai/dsh-skill",
		"@deepseek-ai/dsh-skill-filesystem", "@deepseek-ai/dsh-tools", "@deepseek-ai/dsh-web-app", "dsh:profile-api", "dsh:scope",
	}
	for _, name := range names {
		if got := inBox(t, name).Check(value(t, "{no-such-key: 1}")); len(got) == 0 || got[len(got)-1].Key == "" && got[0].Key == "" {
			t.Errorf("%s: an unknown key is no problem: %v", name, got)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, name := range bundles.Names() {
		pkg, _, _ := bundles.Open(name)
		text, err := fs.ReadFile(pkg, "cordis.patch.yml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(`{"type": "object"}`, string(text))
	}
	schema, _ := bundles.Schema("@deepseek-ai/dsh-mcp-client")
	f.Add(string(schema), "{transport: stdio, serverName: !!js a, command: [b]}")
	f.Add(`{"propertyNames": {"pattern": "^a"}, "additionalProperties": {"$ref": "#"}}`, "{b: {c: .nan}}")
	f.Add(`{"anyOf": [{"not": {"uniqueItems": true}}, {"contains": false}], "unevaluatedItems": false}`, "[1, 1, !!js a]")
	f.Fuzz(func(t *testing.T, schema, config string) {
		if len(schema) > 4<<10 || len(config) > 4<<10 {
			return
		}
		s, err := Compile("my-plugin", []byte(schema))
		if err != nil {
			return
		}
		v, err := compose.ParseValue(compose.Source{File: "config.yml", Dir: "/"}, []byte(config))
		if err != nil {
			return
		}
		got := s.Check(v)
		for i, p := range got {
			if p.Text == "" {
				t.Fatalf("%s: %s: a problem without words: %+v", schema, config, p)
			}
			if i > 0 && compareProblems(got[i-1], p) >= 0 {
				t.Fatalf("%s: %s: problems out of order: %+v", schema, config, got)
			}
		}
	})
}
