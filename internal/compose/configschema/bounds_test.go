package configschema

import (
	"fmt"
	"strings"
	"testing"

	"dsh/bundles"
	"dsh/internal/compose"

	"github.com/google/go-cmp/cmp"
)

// TestCheckBoundsSteps gives schemas and configs that would take for ever.
func TestCheckBoundsSteps(t *testing.T) {
	chain := `{"$ref": "#/$defs/0", "$defs": {`
	for i := range 40 {
		chain += fmt.Sprintf(`"%d": {"allOf": [{"$ref": "#/$defs/%d"}, {"$ref": "#/$defs/%d"}]}, `, i, i+1, i+1)
	}
	chain += `"40": {"type": "object"}}}`
	forms := `{"properties": {"a": {"anyOf": [` + strings.Repeat(`{"$ref": "#"}, `, 9) + `{"type": "string"}]}}}`
	circle := &compose.List{}
	circle.Items = []compose.Value{circle}
	laughs := &compose.List{Items: []compose.Value{"ha"}}
	for range 30 {
		laughs = &compose.List{Items: []compose.Value{laughs, laughs}}
	}
	deep := "5"
	for range 90 {
		deep = "{a: " + deep + "}"
	}
	tests := []struct {
		name, schema string
		config       compose.Value
	}{
		{"a chain of references", chain, value(t, "{}")},
		{"forms of forms", forms, value(t, deep)},
		{"a reference to itself", `{"$ref": "#"}`, value(t, "{}")},
		{"references in a circle", `{"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}`, value(t, "{}")},
		{"a config in itself", `{"type": "object"}`, circle},
		{"aliases of aliases", `{"type": "array"}`, laughs},
		{"nested schemas", strings.Repeat(`{"not": `, 1500) + `{"items": {"$ref": "#"}}` + strings.Repeat(`}`, 1500), value(t, strings.Repeat("[", 90)+strings.Repeat("]", 90))},
	}
	want := []Problem{{Kind: WrongValue, Text: tooMuch}}
	for _, test := range tests {
		if diff := cmp.Diff(want, mustCompile(t, "my-plugin", test.schema).Check(test.config)); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

// TestCheckIgnoresOtherKeywords puts rules that are not understood where taking
// them for kept or broken would make a problem.
func TestCheckIgnoresOtherKeywords(t *testing.T) {
	for _, schema := range []string{
		`{"contains": {"const": 1}, "propertyNames": {"maxLength": 0}, "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": false, "x-other": 5}`,
		`{"not": {"propertyNames": {"maxLength": 0}}}`,
		`{"oneOf": [{"dependentRequired": {"a": ["b"]}}, true]}`,
		`{"if": {"unevaluatedProperties": false}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}`,
		`{"not": {"$dynamicRef": "#x", "$dynamicAnchor": "x"}}`,
		`{"properties": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$defs": {"a": {"contains": {}}}}`,
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
