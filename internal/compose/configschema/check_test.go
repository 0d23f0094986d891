package configschema

import (
	"io/fs"
	"math"
	"strings"
	"testing"

	"dsh/bundles"
	"dsh/internal/compose"

	"github.com/google/go-cmp/cmp"
)

// value reads a config as a layer holds it.
func value(t testing.TB, text string) compose.Value {
	t.Helper()
	v, err := compose.ParseValue(compose.Source{File: "config.yml", Dir: "/"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustCompile(t testing.TB, name, text string) *Schema {
	t.Helper()
	s, err := Compile(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inBox(t testing.TB, plugin string) *Schema {
	t.Helper()
	text, ok := bundles.Schema(plugin)
	if !ok {
		t.Fatalf("there is no schema of %s", plugin)
	}
	return mustCompile(t, plugin, string(text))
}

func texts(problems []Problem) []string {
	list := []string{}
	for _, p := range problems {
		list = append(list, p.Text)
	}
	return list
}

func TestCheckProblems(t *testing.T) {
	got := inBox(t, "dsh:scope").Check(value(t, "{allow: [{target: a}, {target: 1, acces: read}, {access: none}], dney: []}"))
	want := []Problem{
		{Key: "dney", Kind: UnknownKey, Text: `unknown key "dney"; did you mean "deny"?`},
		{Path: []string{"allow", "1"}, Key: "acces", Kind: UnknownKey, Text: `unknown key "acces" in allow.1; did you mean "access"?`},
		{Path: []string{"allow", "1", "target"}, Kind: WrongType, Text: "allow.1.target must be a text, and is a number"},
		{Path: []string{"allow", "2"}, Key: "target", Kind: MissingKey, Text: `"target" is missing in allow.2`},
		{Path: []string{"allow", "2", "access"}, Kind: WrongValue, Text: `allow.2.access must be "read" or "write"`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCheckInBox(t *testing.T) {
	const mcp, llm, compaction, jsonl = "@deepseek-ai/dsh-mcp-client", "@deepseek-ai/dsh-llm", "@deepseek-ai/dsh-compaction-basic", "@deepseek-ai/dsh-session-persistence-jsonl"
	tests := []struct {
		plugin, config string
		want           []string
	}{
		{mcp, "{transport: stdio, serverName: a, command: b}", nil},
		{mcp, "{transport: streamable-http, serverName: a, url: 'http://b'}", nil},
		{mcp, "{transport: stdio, serverName: a, url: 'http://b'}", []string{`"command" is missing`, `unknown key "url"`}},
		{mcp, "{transport: streamable-http, serverName: a, ulr: 'http://b'}", []string{`unknown key "ulr"; did you mean "url"?`, `"url" is missing`}},
		{mcp, "{transport: sse, serverName: a, url: 'http://b'}", nil},
		{mcp, "{transport: http, serverName: a, url: 'http://b'}", []string{`transport must be "stdio", "streamable-http" or "sse"`}},
		{mcp, "{serverName: a, command: b}", []string{`"transport" is missing`}},
		{mcp, "{serverName: a, url: b}", []string{`"transport" is missing`}},
		{mcp, "{transport: stdio, serverName: 'a b', command: '', args: [1]}", []string{
			"args.0 must be a text, and is a number", "command must not be empty", "serverName must match ^[A-Za-z0-9_-]{1,32}$"}},
		{mcp, "{transport: stdio, serverName: a, command: b, env: {API_TOKEN: 5}}", []string{"env.API_TOKEN must be a text, and is a number"}},
		{mcp, "{transport: !!js a, serverName: a, command: b}", nil},
		{mcp, "{transport: !!js a, serverName: a, url: b}", nil},
		{mcp, "{transport: stdio, serverName: !!js a, command: 5}", []string{"command must be a text, and is a number"}},
		{mcp, "{transport: stdio, serverName: !!js a, command: !!js b, args: !!js c, env: {A: !!js d}}", nil},
		{mcp, "{transport: stdio, serverName: a, comand: !!js b}", []string{`unknown key "comand"; did you mean "command"?`, `"command" is missing`}},
		{mcp, "!!js a", nil},
		{mcp, "[]", []string{"the config must be a mapping, and is a list"}},
		{mcp, "null", []string{`"command" is missing`, `"serverName" is missing`, `"transport" is missing`}},
		{llm, "{provider: a, model: '', retry: {max_attempts: 0, attempts: 3}, max_tokens: 1.5, temperature: 3}", []string{
			"max_tokens must be a whole number, and is a number with a fraction", "model must not be empty",
			`unknown key "attempts" in retry`, "retry.max_attempts must be at least 1", "temperature must be at most 2"}},
		{llm, "{provider: a, model: b, headers: x}", []string{"headers must be a mapping, and is a text"}},
		{llm, "{provider: a, model: b, max_tokens: .nan, timeout_ms: .inf}", []string{
			"max_tokens must be a finite number", "timeout_ms must be a finite number"}},
		{llm, "{provider: null, model: true}", []string{"model must be a text, and is true or false", "provider must be a text, and is null"}},
		{compaction, "{thresholdRatio: 0, retainRatio: 1}", []string{"retainRatio must be less than 1", "thresholdRatio must be more than 0"}},
		{compaction, "{retainRatio: 0.5, retainTokens: 1}", []string{`retainRatio and retainTokens cannot be set together`}},
		{compaction, "{modelPolicies: [{provider: a, model: b, retainRatio: 0.5, retainTokens: 1}]}", []string{
			`retainRatio and retainTokens cannot be set together in modelPolicies.0`}},
		{compaction, "{retainRatio: 0.5, retainTokens: !!js a, auto: 1}", []string{"auto must be true or false, and is a number"}},
		{compaction, "{retainRatio: 0.5, retainTokens: 1, maxTokens: !!js a}", []string{`retainRatio and retainTokens cannot be set together`}},
		{jsonl, "{root: a, compression: gzip}", []string{`compression must be "none" or "zstd"`}},
	}
	for _, test := range tests {
		got := texts(inBox(t, test.plugin).Check(value(t, test.config)))
		if test.want == nil {
			test.want = []string{}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", test.plugin, test.config, diff)
		}
	}
}

func TestCheckKeywords(t *testing.T) {
	tests := []struct {
		schema, config string
		want           []string
	}{
		{`{"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}`, "5", []string{"the config must be a text or a mapping, and is a number"}},
		{`{"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}`, "{}", []string{`"a" is missing`}},
		{`{"anyOf": [{"const": "a"}, {"const": "b"}, {"enum": ["b", "c"]}]}`, "x", []string{`the config must be "a", "b" or "c"`}},
		{`{"anyOf": [{"type": "number"}, {"const": "auto"}]}`, "x", []string{`the config must be a number or "auto", and is a text`}},
		{`{"properties": {"p": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}}}`, "{p: [!!js a, 1]}", []string{"p.1 must be a text, and is a number"}},
		{`{"properties": {"p": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}}}`, "{p: [!!js a]}", nil},
		{`{"properties": {"p": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"properties": {"port": {"type": "integer"}}, "additionalProperties": false}}}`, "{p: {prot: 1}}",
			[]string{`unknown key "prot" in p; did you mean "port"?`}},
		{`{"properties": {"port": {}, "host": {}}, "additionalProperties": false}`, "{prot: 1, port: 2}", []string{`unknown key "prot"`}},
		{`{"properties": {"a": false}}`, "{a: 1}", []string{`unknown key "a"`}},
		{`{"prefixItems": [{}], "items": false}`, "[1, 2]", []string{"1 cannot be given"}},
		{`{"if": {"properties": {"m": {"const": "a"}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}`, "{m: a}", []string{`"b" is missing`}},
		{`{"if": {"properties": {"m": {"const": "a"}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}`, "{m: !!js x}", nil},
		{`{"not": {"required": ["a"]}}`, "{a: 1}", []string{"the config has a value that it cannot have"}},
		{`{"not": {"required": ["a"]}}`, "{a: !!js x}", nil},
		{`{"properties": {"a": {"not": {"const": 1}}}}`, "{a: 1}", []string{"a has a value that it cannot have"}},
		{`{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}`, "{a: 1, b: 2}", []string{"the config fits more than one of the forms that it can have, and may fit only one"}},
		{`{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}`, "{a: 1, b: !!js x}", nil},
		{`{"uniqueItems": true}`, "[1, 1]", []string{"the config must not hold an item twice"}},
		{`{"uniqueItems": true}`, "[!!js a, !!js a]", nil},
		{`{"minItems": 2}`, "[1]", []string{"the config must have 2 or more items"}},
		{`{"maxItems": 1}`, "[1, 2]", []string{"the config must have 1 or fewer items"}},
		{`{"minProperties": 1}`, "{}", []string{"the config must not be empty"}},
		{`{"maxProperties": 1}`, "{a: 1, b: 2}", []string{"the config must have 1 or fewer keys"}},
		{`{"minLength": 3, "maxLength": 1}`, "'12'", []string{"the config must have 3 or more characters"}},
		{`{"multipleOf": 0.5}`, "0.7", []string{"the config must be a multiple of 0.5"}},
		{`{"enum": [{"a": 1}, 2]}`, "3", []string{`the config must be {"a":1} or 2`}},
		{`{"properties": {"a b": {"type": "string"}}}`, "{a b: 1}", []string{`"a b" must be a text, and is a number`}},
		{`{"minimum": 0e5}`, "-1", []string{"the config must be at least 0"}},
		{`{"minimum": 1e300}`, "1", []string{"the config must be at least 1e+300"}},
		{`{"properties": {"u": {"type": "string", "format": "uri"}}}`, "{u: no address}", nil},
		{`{"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": false}`, "{a: {a: {b: 1}}}", []string{`unknown key "b" in a.a`}},
		{`false`, "{}", []string{"the config cannot be given"}},
		{`true`, "{a: .nan}", nil},
	}
	for _, test := range tests {
		got := texts(mustCompile(t, "my-plugin", test.schema).Check(value(t, test.config)))
		if test.want == nil {
			test.want = []string{}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", test.schema, test.config, diff)
		}
	}
}

// TestCheckShowsNoValues gives every in-box plugin wrong values that must not
// be seen.
func TestCheckShowsNoValues(t *testing.T) {
	const secret = "sk-0123456789"
	for _, plugin := range []string{"@deepseek-ai/dsh-llm", "@deepseek-ai/dsh-mcp-client", "@deepseek-ai/dsh-session-persistence-jsonl"} {
		for _, key := range []string{"api_key_env", "model", "headers", "retry", "transport", "serverName", "env", "args", "compression", "root", "other"} {
			for _, v := range []string{"S", "[S]", "{S2: S}", "{a: {b: S}}"} {
				config := value(t, key+": "+strings.ReplaceAll(v, "S", secret))
				for _, p := range inBox(t, plugin).Check(config) {
					if strings.Contains(strings.ReplaceAll(p.Text, secret+"2", ""), secret) {
						t.Errorf("%s: %s: %s", plugin, key, p.Text)
					}
				}
			}
		}
	}
}

func TestCheckUnusualValues(t *testing.T) {
	many := &compose.List{}
	for i := range 100 {
		many.Items = append(many.Items, float64(i), math.NaN(), compose.Expr{Text: "a"})
	}
	got := mustCompile(t, "my-plugin", `{"uniqueItems": true, "items": {"type": "number"}}`).Check(many)
	if len(got) != 100 || got[0].Text != "1 must be a finite number" {
		t.Errorf("got %v", got)
	}
	if got := mustCompile(t, "my-plugin", `{"type": "object"}`).Check(nil); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// TestCheckShippedRows checks the configs that the in-box bundles ship, also
// those that override a row of another bundle.
func TestCheckShippedRows(t *testing.T) {
	patches := []compose.Patch{}
	for _, name := range bundles.Names() {
		pkg, _, _ := bundles.Open(name)
		text, err := fs.ReadFile(pkg, "cordis.patch.yml")
		if err != nil {
			t.Fatal(err)
		}
		list, err := compose.ParsePatches(compose.Source{File: name, Dir: "/"}, text)
		if err != nil {
			t.Fatal(err)
		}
		patches = append(patches, list...)
	}
	plugins, checked := map[compose.Value]string{}, 0
	check := func(row *compose.Map) {
		id, _ := row.Get("id")
		if name, ok := row.Get("name"); ok {
			plugins[id], _ = name.(string)
		}
		text, ok := bundles.Schema(plugins[id])
		if !ok {
			return
		}
		checked++
		config, _ := row.Get("config")
		if _, has := row.Get("name"); !has && config == nil {
			return // an override that leaves the config alone
		}
		for _, p := range mustCompile(t, plugins[id], string(text)).Check(config) {
			t.Errorf("%v: %s", id, p.Text)
		}
	}
	var rows func(v compose.Value)
	rows = func(v compose.Value) {
		list, _ := v.(*compose.List)
		if list == nil {
			return
		}
		for _, item := range list.Items {
			row := item.(*compose.Map)
			check(row)
			if group, _ := row.Get("group"); compose.Truthy(group) {
				config, _ := row.Get("config")
				rows(config)
			}
		}
	}
	for _, patch := range patches {
		inserted, _ := patch.Map.Get("insert")
		rows(inserted)
	}
	for _, patch := range patches {
		if _, inserts := patch.Map.Get("insert"); !inserts {
			check(patch.Map)
		}
	}
	if checked < 15 {
		t.Errorf("only %d rows have a schema", checked)
	}
}
