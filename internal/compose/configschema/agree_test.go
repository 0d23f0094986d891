package configschema

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dsh/bundles"
	"dsh/internal/compose"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// judge is the validator that ours must agree with, nil if it refuses the
// schema.
func judge(schema string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) { return regexp.Compile(pattern) })
	if c.AddResource("schema.json", doc) != nil {
		return nil
	}
	s, _ := c.Compile("schema.json")
	return s
}

// plain is a config without expressions as the judge takes it.
func plain(v compose.Value) any {
	switch v := v.(type) {
	case *compose.List:
		items := []any{}
		for _, item := range v.Items {
			items = append(items, plain(item))
		}
		return items
	case *compose.Map:
		m := map[string]any{}
		for key, item := range v.All() {
			m[key] = plain(item)
		}
		return m
	default:
		return v
	}
}

// verdictOn is what a schema says of a config.
func verdictOn(s *Schema, config compose.Value) fit {
	c := checking{Schema: s}
	return c.check(s.doc, config, nil, nil).fit
}

// agree holds our verdict on a config against the judge's.
func agree(t *testing.T, text string, s *Schema, j *jsonschema.Schema, config compose.Value) (valid bool) {
	t.Helper()
	err := j.Validate(plain(config))
	problems, verdict := s.Check(config), verdictOn(s, config)
	if (len(problems) == 0) != (err == nil) || verdict == unsure || (verdict == no) != (len(problems) > 0) {
		t.Errorf("%s: %s: got %d %v, the judge says %v", text, compose.Show(config), verdict, texts(problems), err)
	}
	return err == nil
}

// agreeWithExpressions puts expressions into a config. What is said then must be true
// whatever they give, also if they give nothing.
func agreeWithExpressions(t *testing.T, text string, s *Schema, j *jsonschema.Schema, config compose.Value, gives []compose.Value) {
	t.Helper()
	gives = slices.Concat(gives[:9], gives[len(gives)/2:len(gives)/2+9])
	for _, at := range places(config, nil) {
		unknown := edited(config, at, compose.Expr{Text: "x"}, false)
		problems, verdict := s.Check(unknown), verdictOn(s, unknown)
		if verdict == yes && len(problems) > 0 || verdict == no && len(problems) == 0 {
			t.Errorf("%s: %s: got %d %v", text, compose.Show(unknown), verdict, texts(problems))
		}
		unknownKey := slices.ContainsFunc(problems, func(p Problem) bool { return p.Kind == UnknownKey })
		for _, gives := range gives {
			err := j.Validate(plain(edited(config, at, gives, false)))
			if len(problems) > 0 && err == nil || verdict == yes && err != nil {
				t.Errorf("%s: %s: got %d %v, with %s the judge says %v", text, compose.Show(unknown), verdict, texts(problems), compose.Show(gives), err)
			}
		}
		if nothing := edited(config, at, nil, true); nothing != nil {
			err := j.Validate(plain(nothing))
			if len(problems) > 0 && !unknownKey && err == nil || verdict == yes && err != nil || verdict == no && err == nil {
				t.Errorf("%s: %s: got %d %v, without it the judge says %v", text, compose.Show(unknown), verdict, texts(problems), err)
			}
		}
	}
}

// places is where values are in a config, in mappings and lists.
func places(v compose.Value, at []string) [][]string {
	var all [][]string
	add := func(key string, item compose.Value) {
		below := append(slices.Clip(at), key)
		all = append(append(all, below), places(item, below)...)
	}
	switch v := v.(type) {
	case *compose.Map:
		for key, item := range v.All() {
			add(key, item)
		}
	case *compose.List:
		for i, item := range v.Items {
			add(strconv.Itoa(i), item)
		}
	}
	return all
}

// edited is a config with another value at a place, or without its key; nil if
// there is no key.
func edited(config compose.Value, at []string, to compose.Value, without bool) compose.Value {
	config = compose.Clone(config)
	v := config
	for i, key := range at {
		last := i == len(at)-1
		switch node := v.(type) {
		case *compose.Map:
			switch v, _ = node.Get(key); {
			case last && without:
				node.Delete(key)
			case last:
				node.Set(key, to)
			}
		case *compose.List:
			n, _ := strconv.Atoi(key)
			if v = node.Items[n]; last {
				if without {
					return nil
				}
				node.Items[n] = to
			}
		}
	}
	return config
}

// pool is values that tell rules apart.
func pool(t testing.TB) []compose.Value {
	var all []compose.Value
	for _, text := range []string{
		"null", "true", "false", "0", "1", "-1", "2", "3", "5", "0.3", "0.07", "1.5", "1e300", "1e-7", "4503599627370497.5",
		"''", "a", "ab", "abc", "x", "'1'", "é", "日本", "'😀'", "'\\n'",
		"[]", "[1]", "[1, 1]", "[1, 2]", "[1, '1']", "[a, b, a]", "[[], []]", "[{a: 1, b: 2}, {b: 2, a: 1}]", "[0, -0.0]", "[1, a, null]", "[1, 2, 3, 4]", "[null, false, 0, '']", "[[1], [1]]",
		"{}", "{a: 1}", "{a: x}", "{b: 1}", "{a: 1, b: 2}", "{a: 1, b: x}", "{a: {a: 1}}", "{a: {a: {b: x}}}", "{a: null}", "{c: 1}", "{a: 1, b: 2, c: 3}", "{ab: 1, x-y: a}",
		"{a: [1, 2]}", "{a: []}", "{b: {a: 1, b: 1}}", "{a: 1, c: a}", "{'': 1}", "{k: one, one: 1}", "{k: two, two: a}", "{k: two, one: 1}", "{k: three}", "{a: [{a: 1}, {b: 1}]}",
	} {
		all = append(all, value(t, text))
	}
	return all
}

// keywordSchemas has every keyword alone and beside those that change what it
// means.
var keywordSchemas = []string{
	`true`, `false`, `{}`,
	`{"type": "null"}`, `{"type": "boolean"}`, `{"type": "number"}`, `{"type": "integer"}`, `{"type": "string"}`, `{"type": "array"}`, `{"type": "object"}`,
	`{"type": ["integer", "string"]}`, `{"type": ["object", "null", "number"]}`,
	`{"enum": [1, "a", null]}`, `{"enum": [[1, 2], {"b": 2, "a": 1}, 1.50]}`, `{"enum": []}`, `{"enum": [true, "1", 0.0]}`,
	`{"const": 1}`, `{"const": 1.0}`, `{"const": "a"}`, `{"const": null}`, `{"const": [1, "1"]}`, `{"const": {"a": {"a": 1}}}`, `{"const": false}`, `{"const": 0}`, `{"const": 1e300}`,
	`{"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}`, `{"properties": {"a": false, "b": true}}`, `{"properties": {"": {"type": "string"}}}`,
	`{"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}}`, `{"patternProperties": {"-": false}}`,
	`{"additionalProperties": false}`, `{"additionalProperties": {"type": "integer"}}`, `{"additionalProperties": true}`,
	`{"properties": {"a": {}}, "additionalProperties": false}`, `{"properties": {"a": {}}, "patternProperties": {"^b": {}}, "additionalProperties": {"type": "string"}}`,
	`{"propertyNames": {"maxLength": 1}}`, `{"propertyNames": {"enum": ["a", "b"]}}`, `{"propertyNames": false}`, `{"propertyNames": {"pattern": "a"}}`,
	`{"required": ["a"]}`, `{"required": ["a", "b"]}`, `{"required": []}`, `{"required": [""]}`,
	`{"dependentRequired": {"a": ["b"], "b": ["a", "c"]}}`, `{"dependentRequired": {"": ["a"]}}`, `{"dependentSchemas": {"a": {"required": ["b"]}, "b": {"properties": {"a": {"type": "string"}}}}}`,
	`{"dependencies": {"a": ["b"], "b": {"minProperties": 3}}}`, `{"dependentSchemas": {"a": false}}`,
	`{"minProperties": 1}`, `{"minProperties": 2, "maxProperties": 2}`, `{"maxProperties": 1}`, `{"maxProperties": 0}`,
	`{"items": {"type": "integer"}}`, `{"items": false}`, `{"prefixItems": [{"type": "integer"}, {"type": "string"}]}`, `{"prefixItems": [{}, {}], "items": false}`, `{"prefixItems": [true], "items": {"type": "string"}}`, `{"prefixItems": [false]}`,
	`{"contains": {"const": 1}}`, `{"contains": {"type": "string"}, "minContains": 2}`, `{"contains": {"type": "integer"}, "minContains": 0}`, `{"contains": {"const": 1}, "minContains": 0, "maxContains": 1}`, `{"contains": {"type": "number"}, "maxContains": 1}`, `{"minContains": 2}`, `{"maxContains": 0}`, `{"contains": false}`, `{"contains": true}`,
	`{"minItems": 1}`, `{"minItems": 2, "maxItems": 3}`, `{"maxItems": 1}`, `{"maxItems": 1.0}`, `{"uniqueItems": true}`, `{"uniqueItems": false}`,
	`{"minimum": 1}`, `{"maximum": 1}`, `{"exclusiveMinimum": 1}`, `{"exclusiveMaximum": 1}`, `{"minimum": 0.3}`, `{"maximum": 0.30000000000000001}`, `{"minimum": -1e10, "exclusiveMaximum": 1e-6}`,
	`{"multipleOf": 1}`, `{"multipleOf": 0.01}`, `{"multipleOf": 0.1}`, `{"multipleOf": 1.5}`, `{"multipleOf": 1e-8}`,
	`{"minLength": 1}`, `{"minLength": 2}`, `{"maxLength": 1}`, `{"maxLength": 0}`, `{"pattern": "^a"}`, `{"pattern": "b"}`, `{"pattern": "^\\p{L}$"}`, `{"pattern": ""}`,
	`{"allOf": [{"type": "integer"}, {"minimum": 2}]}`, `{"allOf": [true, false]}`,
	`{"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 2}]}`, `{"anyOf": [false, {"required": ["a"]}]}`, `{"anyOf": [false]}`,
	`{"oneOf": [{"type": "integer"}, {"minimum": 2}]}`, `{"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]}`, `{"oneOf": [true, true]}`, `{"oneOf": [true, false]}`,
	`{"oneOf": [{"properties": {"k": {"const": "one"}, "one": {}}, "required": ["k"], "additionalProperties": false}, {"properties": {"k": {"const": "two"}, "two": {"type": "string"}}, "required": ["k"], "additionalProperties": false}]}`,
	`{"not": {"type": "integer"}}`, `{"not": {}}`, `{"not": false}`, `{"not": {"not": {"type": "integer"}}}`, `{"not": {"required": ["a", "b"]}}`, `{"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}}`, `{"not": {"additionalProperties": false, "properties": {"a": {}}}}`, `{"not": {"uniqueItems": true}}`, `{"not": {"contains": {"const": 1}}}`, `{"not": {"maxProperties": 1}}`, `{"not": {"propertyNames": {"const": "a"}}}`, `{"not": {"enum": [{"a": 1}, [1]]}}`, `{"not": {"const": {"a": {"a": 1}}}}`,
	`{"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}}`, `{"if": {"required": ["a"]}, "then": {"required": ["b"]}}`, `{"if": {"required": ["a"]}, "else": {"required": ["b"]}}`, `{"then": false, "else": false}`, `{"if": false}`, `{"if": {"additionalProperties": false, "properties": {"a": {}}}, "then": {"maxProperties": 0}, "else": {"required": ["c"]}}`,
	`{"if": {"properties": {"k": {"const": "one"}}, "required": ["k"]}, "then": {"required": ["one"]}, "else": {"properties": {"one": false}}}`,
	`{"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}`, `{"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"type": "integer"}}`, `{"$ref": "#/$defs/a~1b/0%25/a~0", "$defs": {"a/b": {"anyOf": true}}, "$comment": "see below"}`, `{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"type": ["array", "object"]}}, "minItems": 1, "minProperties": 1}`,
	`{"$ref": "#/other/1", "other": [5, {"type": "string"}]}`, `{"properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "integer"}}}`, `{"items": {"$ref": "#/$defs/two"}, "$defs": {"two": {"anyOf": [{"$ref": "#"}, {"const": 1}]}}}`,
	`{"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "string"}}}`, `{"$id": "https://example.com/a", "$ref": "https://example.com/a#/$defs/x", "$defs": {"x": {"minimum": 1}}}`, `{"$id": "https://example.com/a", "items": {"$ref": "https://example.com/a"}, "maxItems": 2}`,
	`{"unevaluatedProperties": false}`, `{"properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}`, `{"allOf": [{"properties": {"a": {}}}], "anyOf": [{"properties": {"b": {"type": "integer"}}}, {"required": ["c"], "properties": {"c": {}}}], "unevaluatedProperties": false}`,
	`{"if": {"properties": {"a": {"type": "integer"}}}, "then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}, "unevaluatedProperties": false}`, `{"not": {"not": {"properties": {"a": {}}}}, "unevaluatedProperties": false}`, `{"dependentSchemas": {"a": {"properties": {"b": {}}}}, "properties": {"a": {}}, "unevaluatedProperties": false}`,
	`{"allOf": [{"patternProperties": {"^a": {}}, "unevaluatedProperties": {"type": "integer"}}], "unevaluatedProperties": false}`, `{"$ref": "#/$defs/a", "unevaluatedProperties": false, "$defs": {"a": {"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}}}`, `{"properties": {"a": {"properties": {"b": {}}, "unevaluatedProperties": false}}, "unevaluatedProperties": false}`,
	`{"title": "t", "description": "d", "default": 1, "examples": [1], "deprecated": true, "readOnly": true, "writeOnly": true, "format": "date", "x-any": {"type": 5}, "contentMediaType": "application/json"}`,
	`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "additionalItems": {"type": "string"}}`, `{"$schema": "http://json-schema.org/draft-07/schema#", "additionalItems": false}`, `{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}, {}], "additionalItems": false}`, `{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "string", "definitions": {"a": {"type": "integer"}}}`, `{"$schema": "http://json-schema.org/draft-07/schema", "if": {"type": "integer"}, "then": {"const": 1}}`,
	`{"$schema": "http://json-schema.org/draft-06/schema#", "exclusiveMinimum": 1, "contains": {"const": 1}}`, `{"$schema": "https://json-schema.org/draft/2019-09/schema", "$ref": "#/$defs/a", "type": "string", "$defs": {"a": {"minLength": 2}}}`, `{"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{"type": "integer"}], "additionalItems": false}`, `{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "type": ["number", "array"]}`,
}

func TestCheckAgreesByKeyword(t *testing.T) {
	pool := pool(t)
	for _, text := range keywordSchemas {
		j := judge(text)
		if s, err := Compile("my-plugin", []byte(text)); (err == nil) != (j != nil) {
			t.Errorf("%s: got %v, the judge reads it: %v", text, err, j != nil)
		} else if err == nil {
			for _, config := range pool[1:] { // no config is an empty one
				agree(t, text, s, j, config)
				agreeWithExpressions(t, text, s, j, config, pool)
			}
		}
	}
}

// TestCheckAgreesOnInBoxSchemas makes configs by the schemas, most of them
// right, and changes them at random.
func TestCheckAgreesOnInBoxSchemas(t *testing.T) {
	pool := pool(t)
	index, err := os.ReadFile("../../../bundles/schemas/index.json")
	if err != nil {
		t.Fatal(err)
	}
	var plugins map[string]string
	if err := json.Unmarshal(index, &plugins); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range slices.Sorted(maps.Keys(plugins)) {
		text, _ := bundles.Schema(plugin)
		s, j := mustCompile(t, plugin, string(text)), judge(string(text))
		var valid [2]int
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range 300 {
			config := sample(rnd, s.doc)
			if all := places(config, nil); i%2 == 1 && len(all) > 0 {
				at := all[rnd.IntN(len(all))]
				config = edited(config, at, pool[rnd.IntN(len(pool))], false)
			}
			if agree(t, plugin, s, j, config) {
				valid[i%2]++
			}
			if i < 20 {
				agreeWithExpressions(t, plugin, s, j, config, pool)
			}
		}
		if valid[0] < 50 || valid[1] > 149 {
			t.Errorf("%s: %d of 150 configs and %d of 150 changed ones are valid", plugin, valid[0], valid[1])
		}
	}
}

// sample is a value that a schema allows, but for nots.
func sample(rnd *rand.Rand, schema any) compose.Value {
	m, _ := schema.(map[string]any)
	if choices := list(m["enum"]); choices != nil {
		return choices[rnd.IntN(len(choices))]
	}
	if forms := list(m["oneOf"]); forms != nil {
		return sample(rnd, forms[rnd.IntN(len(forms))])
	}
	if want, ok := m["const"]; ok {
		return want
	}
	typ := m["type"]
	if types := list(typ); types != nil {
		typ = types[rnd.IntN(len(types))]
	}
	limit := func(keyword string, otherwise float64) float64 {
		if n, ok := m[keyword].(json.Number); ok {
			otherwise, _ = n.Float64()
		}
		return otherwise
	}
	switch typ {
	case "object":
		return sampleMap(rnd, m)
	case "array":
		items := &compose.List{}
		for range rnd.IntN(3) + int(limit("minItems", 0)) {
			items.Items = append(items.Items, sample(rnd, m["items"]))
		}
		return items
	case "boolean":
		return rnd.IntN(2) == 0
	case "integer":
		low := limit("minimum", limit("exclusiveMinimum", 0)+1)
		return low + float64(rnd.IntN(int(min(limit("maximum", low+9), low+9)-low)+1))
	case "number":
		low, high := limit("minimum", limit("exclusiveMinimum", 0)), limit("maximum", limit("exclusiveMaximum", 1))
		return low + (high-low)/float64(2+rnd.IntN(3))
	case "null":
		return nil
	default:
		return "abc" + strconv.Itoa(rnd.IntN(9))
	}
}

func sampleMap(rnd *rand.Rand, m map[string]any) compose.Value {
	config := &compose.Map{}
	properties, _ := m["properties"].(map[string]any)
	required := list(m["required"])
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if rnd.IntN(2) == 0 || slices.Contains(required, any(key)) {
			config.Set(key, sample(rnd, properties[key]))
		}
	}
	if other, ok := m["additionalProperties"].(map[string]any); ok && rnd.IntN(2) == 0 {
		config.Set("OTHER", sample(rnd, other))
	}
	return config
}

// FuzzCheckAgrees may end undecided only where the schema gives reason to.
func FuzzCheckAgrees(f *testing.F) {
	configs := pool(f)
	for i, schema := range keywordSchemas {
		f.Add(schema, compose.Show(configs[i%len(configs)]))
	}
	for _, name := range []string{"@deepseek-ai/dsh-mcp-client", "@deepseek-ai/dsh-compaction-basic", "dsh:scope"} {
		text, _ := bundles.Schema(name)
		f.Add(string(text), `{"transport": "stdio", "serverName": "a", "command": "b"}`)
	}
	undecided := regexp.MustCompile(`\$|unevaluated|[pP]attern|format|\\`)
	f.Fuzz(func(t *testing.T, schema, text string) {
		if len(schema) > 8<<10 || len(text) > 1<<10 {
			return
		}
		s, err := Compile("my-plugin", []byte(schema))
		if err != nil {
			return
		}
		j := judge(schema)
		config, err := compose.ParseValue(compose.Source{File: "config.yml", Dir: "/"}, []byte(text))
		if err != nil || j == nil || config == nil || strings.Contains(compose.Show(config), "__jsExpr") || measure(config) != nil || !allFinite(config) {
			return
		}
		agreeWithExpressions(t, schema, s, j, config, configs)
		if verdictOn(s, config) != unsure {
			agree(t, schema, s, j, config)
		} else if !undecided.MatchString(schema) {
			t.Errorf("%s: %s: undecided", schema, text)
		}
	})
}

// allFinite says whether JSON can write a config.
func allFinite(v compose.Value) bool {
	switch v := v.(type) {
	case float64:
		return finite(v)
	case *compose.List:
		return !slices.ContainsFunc(v.Items, func(item compose.Value) bool { return !allFinite(item) })
	case *compose.Map:
		for _, item := range v.All() {
			if !allFinite(item) {
				return false
			}
		}
	}
	return true
}
