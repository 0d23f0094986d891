package configschema

import (
	"fmt"
	"strings"
	"testing"

	"dsh/bundles"
	"dsh/internal/compose"

	"github.com/google/go-cmp/cmp"
)

// TestCheckBoundsSteps gives schemas that would take for ever.
func TestCheckBoundsSteps(t *testing.T) {
	chain := `{"$ref": "#/$defs/0", "$defs": {`
	for i := range 40 {
		chain += fmt.Sprintf(`"%d": {"allOf": [{"$ref": "#/$defs/%d"}, {"$ref": "#/$defs/%d"}]}, `, i, i+1, i+1)
	}
	chain += `"40": {"type": "object"}}}`
	forms := `{"properties": {"a": {"anyOf": [` + strings.Repeat(`{"$ref": "#"}, `, 9) + `{"type": "string"}]}}}`
	deep := "5"
	for range 90 {
		deep = "{a: " + deep + "}"
	}
	tests := []struct{ name, schema, config string }{
		{"a chain of references", chain, "{}"},
		{"forms of forms", forms, deep},
		{"nested schemas", strings.Repeat(`{"not": `, 1500) + `{"items": {"$ref": "#"}}` + strings.Repeat(`}`, 1500), strings.Repeat("[", 90) + strings.Repeat("]", 90)},
	}
	want := []Problem{{Kind: WrongValue, Text: "the config was not checked, as its plugin's schema takes too many steps"}}
	for _, test := range tests {
		if diff := cmp.Diff(want, mustCompile(t, "my-plugin", test.schema).Check(value(t, test.config))); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

func TestCheckSaysNothingInCircles(t *testing.T) {
	for _, schema := range []string{
		`{"$ref": "#"}`,
		`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}`,
		`{"not": {"$ref": "#"}}`,
		`{"anyOf": [{"$ref": "#"}, {"required": ["b"]}], "oneOf": [{"$ref": "#"}], "unevaluatedProperties": false}`,
		`{"if": {"$ref": "#"}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}`,
		`{"not": {"$dynamicRef": "#x", "$dynamicAnchor": "x"}}`,
		`{"$dynamicRef": "#x", "unevaluatedProperties": false}`,
		`{"oneOf": [{"items": {"type": "string"}, "unevaluatedItems": false}, true]}`,
		`{"not": {"propertyNames": {"pattern": "^(?!a)"}}, "properties": {"a": {"not": {"pattern": "(?<=a)"}}}}`,
		`{"$defs": {"a": {"$id": "https://example.com/a", "$ref": "#/$defs/b", "$defs": {"b": {"type": "string"}}}}, "$ref": "#/$defs/a"}`,
	} {
		if got := mustCompile(t, "my-plugin", schema).Check(value(t, "{a: x}")); len(got) > 0 {
			t.Errorf("%s: %v", schema, texts(got))
		}
	}
}

func BenchmarkCompileAndCheck(b *testing.B) {
	const plugin = "@deepseek-ai/dsh-mcp-client"
	text, _ := bundles.Schema(plugin)
	config, err := compose.ParseValue(compose.Source{File: "config.yml", Dir: "/"}, []byte("{transport: stdio, serverName: a, command: b, args: [c, d], env: {E: f}, reconnect: {enabled: true}}"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			mustCompile(b, plugin, string(text))
		}
	})
	s := mustCompile(b, plugin, string(text))
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if got := s.Check(config); len(got) > 0 {
				b.Fatal(got)
			}
		}
	})
}
