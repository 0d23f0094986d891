package configschema

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"dsh/bundles"
	"dsh/internal/compose"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// judge is the validator that ours must agree with, nil if it refuses the
// schema.
func judge(schema string) *jsonschema.Schema {
	var doc any // not by the judge's own reader, which keeps digits that no config can have
	if json.Unmarshal([]byte(schema), &doc) != nil {
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
	c := &checking{}
	return c.check(s, c.plain(config), nil).fit
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
	`{"enum": [1, "a", null]}`, `{"enum": [[1, 2], {"b": 2, "a": 1}, 1.50]}`, `{"enum": [true, "1", 0.0]}`,
	`{"const": 1}`, `{"const": 1.0}`, `{"const": "a"}`, `{"const": null}`, `{"const": [1, "1"]}`, `{"const": {"a": {"a": 1}}}`, `{"const": false}`, `{"const": 0}`, `{"const": 1e300}`,
	`{"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}`, `{"properties": {"a": false, "b": true}}`, `{"properties": {"": {"type": "string"}}}`,
	`{"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}}`, `{"patternProperties": {"-": false}}`,
	`{"additionalProperties": false}`, `{"additionalProperties": {"type": "integer"}}`, `{"additionalProperties": true}`,
	`{"properties": {"a": {}}, "additionalProperties": false}`, `{"properties": {"a": {}}, "patternProperties": {"^b": {}}, "additionalProperties": {"type": "string"}}`,
	`{"required": ["a"]}`, `{"required": ["a", "b"]}`, `{"required": []}`, `{"required": [""]}`,
	`{"minProperties": 1}`, `{"minProperties": 2, "maxProperties": 2}`, `{"maxProperties": 1}`, `{"maxProperties": 0}`,
	`{"items": {"type": "integer"}}`, `{"items": false}`, `{"prefixItems": [{"type": "integer"}, {"type": "string"}]}`, `{"prefixItems": [{}, {}], "items": false}`, `{"prefixItems": [true], "items": {"type": "string"}}`, `{"prefixItems": [false]}`,
	`{"minItems": 1}`, `{"minItems": 2, "maxItems": 3}`, `{"maxItems": 1}`, `{"maxItems": 1.0}`, `{"uniqueItems": true}`, `{"uniqueItems": false}`,
	`{"minimum": 1}`, `{"maximum": 1}`, `{"exclusiveMinimum": 1}`, `{"exclusiveMaximum": 1}`, `{"minimum": 0.3}`, `{"maximum": 0.30000000000000001}`, `{"minimum": -1e10, "exclusiveMaximum": 1e-6}`,
	`{"multipleOf": 1}`, `{"multipleOf": 0.01}`, `{"multipleOf": 0.1}`, `{"multipleOf": 1.5}`, `{"multipleOf": 1e-8}`,
	`{"minLength": 1}`, `{"minLength": 2}`, `{"maxLength": 1}`, `{"maxLength": 0}`, `{"pattern": "^a"}`, `{"pattern": "b"}`, `{"pattern": "^\\p{L}$"}`, `{"pattern": ""}`,
	`{"allOf": [{"type": "integer"}, {"minimum": 2}]}`, `{"allOf": [true, false]}`,
	`{"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 2}]}`, `{"anyOf": [false, {"required": ["a"]}]}`, `{"anyOf": [false]}`,
	`{"oneOf": [{"type": "integer"}, {"minimum": 2}]}`, `{"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]}`, `{"oneOf": [true, true]}`, `{"oneOf": [true, false]}`,
	`{"oneOf": [{"properties": {"k": {"const": "one"}, "one": {}}, "required": ["k"], "additionalProperties": false}, {"properties": {"k": {"const": "two"}, "two": {"type": "string"}}, "required": ["k"], "additionalProperties": false}]}`,
	`{"not": {"type": "integer"}}`, `{"not": {}}`, `{"not": false}`, `{"not": {"not": {"type": "integer"}}}`, `{"not": {"required": ["a", "b"]}}`, `{"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}}`, `{"not": {"additionalProperties": false, "properties": {"a": {}}}}`, `{"not": {"uniqueItems": true}}`, `{"not": {"maxProperties": 1}}`, `{"not": {"enum": [{"a": 1}, [1]]}}`, `{"not": {"const": {"a": {"a": 1}}}}`,
	`{"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}}`, `{"if": {"required": ["a"]}, "then": {"required": ["b"]}}`, `{"if": {"required": ["a"]}, "else": {"required": ["b"]}}`, `{"then": false, "else": false}`, `{"if": false}`, `{"if": {"additionalProperties": false, "properties": {"a": {}}}, "then": {"maxProperties": 0}, "else": {"required": ["c"]}}`,
	`{"if": {"properties": {"k": {"const": "one"}}, "required": ["k"]}, "then": {"required": ["one"]}, "else": {"properties": {"one": false}}}`,
	`{"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}`, `{"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"type": "integer"}}`,
	`{"items": {"$ref": "#/$defs/two"}, "$defs": {"two": {"anyOf": [{"$ref": "#"}, {"const": 1}]}}}`,
	`{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": ["array", "object"]}}, "minItems": 1, "minProperties": 1}`,
	`{"title": "t", "description": "d", "default": 1, "examples": [1], "deprecated": true, "readOnly": true, "writeOnly": true, "format": "date", "$comment": "see below"}`,
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
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		var valid [2]int
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range 300 {
			config := sample(rnd, doc)
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
	if choices, ok := m["enum"].([]any); ok {
		return choices[rnd.IntN(len(choices))]
	}
	if forms, ok := m["oneOf"].([]any); ok {
		return sample(rnd, forms[rnd.IntN(len(forms))])
	}
	if want, ok := m["const"]; ok {
		return want
	}
	if examples, ok := m["examples"].([]any); ok && m["pattern"] != nil {
		return examples[rnd.IntN(len(examples))]
	}
	typ := m["type"]
	if types, ok := typ.([]any); ok {
		typ = types[rnd.IntN(len(types))]
	}
	limit := func(keyword string, otherwise float64) float64 {
		if n, ok := m[keyword].(float64); ok {
			return n
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
	required, _ := m["required"].([]any)
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

// FuzzCheck holds every problem to what Problem and Check promise, and the
// verdict, with and without expressions in the config, against the judge's.
func FuzzCheck(f *testing.F) {
	configs := pool(f)
	for i, schema := range keywordSchemas {
		f.Add(schema, compose.Show(configs[i%len(configs)]))
	}
	for _, name := range []string{"@deepseek-ai/dsh-mcp-client", "@deepseek-ai/dsh-compaction-basic", "dsh:scope"} {
		text, _ := bundles.Schema(name)
		f.Add(string(text), "{transport: stdio, serverName: a, command: b}")
	}
	f.Add(`{"anyOf": [{"not": {"uniqueItems": true}}, {"contains": false}], "unevaluatedItems": false}`, "[1, 1, !!js a]")
	f.Add(`{"additionalProperties": {"$ref": "#"}}`, "{b: {c: .nan}}")
	elsewhere := regexp.MustCompile(`\$(id|dynamic|vocabulary)|\\u`) // may make # another schema for the judge
	f.Fuzz(func(t *testing.T, schema, text string) {
		if len(schema) > 8<<10 || len(text) > 1<<10 {
			return
		}
		s, err := Compile("my-plugin", []byte(schema))
		if err != nil {
			return
		}
		config, err := compose.ParseValue(compose.Source{File: "config.yml", Dir: "/"}, []byte(text))
		if err != nil || config == nil {
			return
		}
		got := s.Check(config)
		for i, p := range got {
			if p.Text == "" || i > 0 && compareProblems(got[i-1], p) >= 0 {
				t.Fatalf("%s: %s: without words or out of order: %+v", schema, text, got)
			}
		}
		j := judge(schema)
		c := &checking{}
		if j == nil || elsewhere.MatchString(schema) || canonical(c.plain(config)) == "" || slices.Contains(texts(got), tooMuch) {
			return
		}
		agreeWithExpressions(t, schema, s, j, config, configs)
		if verdictOn(s, config) != unsure {
			agree(t, schema, s, j, config)
		}
	})
}
