package compose

import (
	"slices"
	"testing"
)

func TestConfigSchemaTakesExpressions(t *testing.T) {
	for _, c := range []struct {
		name, schema    string
		accept, refuse  string // configs, in a list
		dropped         []string
		optional, valid bool
	}{
		{"properties", `{"properties": {"a": {"type": "integer"}, "b": true}, "additionalProperties": {"type": "null"}}`,
			"[{a: 1}, {a: !!js f()}, {c: !!js f()}, {c: null}]", "[{a: x}, {c: 1}]", nil, true, true},
		{"closed", `{"properties": {"a": {}}, "additionalProperties": false}`, "[{a: x}]", "[{b: !!js f()}]", nil, true, true},
		{"patterns", `{"patternProperties": {"^a": {"type": "integer"}}}`, "[{ab: !!js f()}]", "[{ab: x}]", nil, true, true},
		{"items", `{"properties": {"a": {"items": {"enum": [1]}, "prefixItems": [{"const": 0}], "maxItems": 2}}}`,
			"[{a: [0, 1]}, {a: [!!js f(), !!js f()]}, {a: !!js f()}]", "[{a: [1]}, {a: [0, 0]}, {a: [0, 1, 1]}]", nil, true, true},
		{"one of", `{"oneOf": [{"properties": {"t": {"const": "a"}}, "required": ["t"]}, {"properties": {"t": {"const": "b"}}, "required": ["t"]}]}`,
			"[{t: a}, {t: !!js f()}]", "[{t: c}, {}]", nil, false, true},
		{"one of and any of", `{"oneOf": [{}], "anyOf": [{"required": ["a"]}]}`, "[{a: 1}]", "[{}]", []string{"oneOf"}, false, true},
		{"all of", `{"allOf": [{"properties": {"a": {"type": "integer"}}}]}`, "[{a: !!js f()}]", "[{a: x}]", nil, false, true},
		{"not", `{"not": {"required": ["a", "b"]}}`, "[{a: 1}]", "[{a: 1, b: 2}]", nil, true, true},
		{"not a reference", `{"not": {"$ref": "#/$defs/a"}, "$defs": {"a": true}}`, "[{}]", "[]", []string{"not"}, true, true},
		{"references", `{"$defs": {"list": {"properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/list"}}}}, "properties": {"l": {"$ref": "#/$defs/list"}, "self": {"$ref": "#"}}}`,
			"[{l: {v: 1, next: {v: !!js f()}}}, {self: {l: !!js f()}}]", "[{l: {next: {v: x}}}, {self: {l: {v: x}}}]", nil, true, true},
		{"references elsewhere", `{"properties": {"a": {"$ref": "other.json"}, "b": {"$ref": "#/$defs/none"}, "c": {"$ref": "#/properties/a"}}}`,
			"[{a: 1, b: 1, c: 1}]", "[]", []string{"$ref"}, true, true},
		{"conditions", `{"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": false, "unevaluatedProperties": false}`,
			"[{a: 1}, {}]", "[]", []string{"if", "then", "else", "unevaluatedProperties"}, true, true},
		{"values stay", `{"enum": [{"properties": 1}]}`, "[{properties: 1}]", "[{properties: 2}]", nil, false, true},
		{"required", `{"required": ["a"]}`, "[{a: null}]", "[{}]", nil, false, true},
		{"everything", `true`, "[1]", "[]", nil, true, true},
		{"nothing", `false`, "[]", "[1]", nil, false, true},
		{"a list", `[]`, "[]", "[]", nil, false, false},
		{"no JSON", `{`, "[]", "[]", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := readConfigSchema([]byte(c.schema), "#/$defs/config0")
			if (err == nil) != c.valid {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if config.optional != c.optional || !slices.Equal(config.dropped, c.dropped) {
				t.Errorf("optional %v, dropped %v", config.optional, config.dropped)
			}
			document := object("$schema", draft, "$ref", definitions+"config0",
				"$defs", object("config0", config.schema, "loaderExpression", loaderExpression()))
			schema := compileSchema(t, appendJSON(nil, document, 1<<20))
			for view := range views {
				for _, v := range patchInstance(t, c.accept, view).([]any) {
					if err := schema.Validate(v); err != nil {
						t.Errorf("%v: %v", v, err)
					}
				}
				for _, v := range patchInstance(t, c.refuse, view).([]any) {
					if schema.Validate(v) == nil {
						t.Errorf("%v is accepted", v)
					}
				}
			}
		})
	}
}
