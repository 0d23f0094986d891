package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/bundles"
	"dsh/internal/fault"
)

func TestSourcePath(t *testing.T) {
	const (
		posix   = "/proj/.dsh"
		windows = `C:\proj\.dsh`
		share   = `\\srv\data\proj`
		long    = `\\?\C:\proj`
	)
	for _, c := range []struct{ dir, name, want string }{
		{posix, "x", "/proj/.dsh/x"},
		{posix, "./x", "/proj/.dsh/x"},
		{posix, "x/../y/", "/proj/.dsh/y"},
		{posix, "..", "/proj"},
		{posix, ".", "/proj/.dsh"},
		{posix, "../../../..", "/"},
		{posix, "", ""},
		{posix, "/x/../y", "/x/../y"},
		{posix, "/", "/"},
		{posix, "~", "/home/u"},
		{posix, "~/", "/home/u"},
		{posix, "~/x/../y", "/home/u/y"},
		{posix, "~x", "/proj/.dsh/~x"},
		{posix, "x/~", "/proj/.dsh/x/~"},
		{posix, "file:///x/y", "file:///x/y"},
		{posix, "file:/x", "file:/x"},
		{posix, "file:x", "/proj/.dsh/file:x"},
		{posix, "https://host/x", "/proj/.dsh/https:/host/x"},
		{posix, `C:\x`, `/proj/.dsh/C:\x`},
		{posix, `..\x`, `/proj/.dsh/..\x`},
		{posix, ` x `, "/proj/.dsh/ x "},
		{"/", "x", "/x"},
		{"/", "..", "/"},

		{windows, "x", `C:\proj\.dsh\x`},
		{windows, `.\x/y`, `C:\proj\.dsh\x\y`},
		{windows, `..\x`, `C:\proj\x`},
		{windows, "../../..", `C:\`},
		{windows, ".", `C:\proj\.dsh`},
		{windows, "", ""},
		{windows, `D:\x\..\y`, `D:\x\..\y`},
		{windows, "d:/x", "d:/x"},
		{windows, `\x`, `C:\x`},
		{windows, "/x/../y", `C:\y`},
		{windows, "c:x", `C:\proj\.dsh\x`},
		{windows, "C:", `C:\proj\.dsh`},
		{windows, "D:x", `D:\x`},
		{windows, `\\srv\s\x`, `\\srv\s\x`},
		{windows, "//srv/s/x", "//srv/s/x"},
		{windows, `\\?\D:\x`, `\\?\D:\x`},
		{windows, "file:///C:/x", "file:///C:/x"},
		{windows, `~\x`, `C:\Users\u\x`},
		{windows, "~", `C:\Users\u`},
		{`C:\`, "x", `C:\x`},
		{`c:/proj/`, "x", `c:\proj\x`},

		{share, "x", `\\srv\data\proj\x`},
		{share, `..\..\..\x`, `\\srv\data\x`},
		{share, `\x`, `\\srv\data\x`},
		{share, `C:\x`, `C:\x`},
		{`\\srv\data`, "x", `\\srv\data\x`},
		{long, `..\..\x`, `\\?\C:\x`},
	} {
		src := Source{Dir: c.dir, UserHome: "/home/u"}
		if isWindows(c.dir) {
			src.UserHome = `C:\Users\u`
		}
		got := src.Path(c.name)
		if got != c.want {
			t.Errorf("%s in %s is %s, want %s", c.name, c.dir, got, c.want)
		}
		if again := src.Path(got); again != got {
			t.Errorf("%s in %s is %s, and that is %s", c.name, c.dir, got, again)
		}
		if elsewhere := (&Source{Dir: "/other"}).Path(got); !isWindows(c.dir) && elsewhere != got {
			t.Errorf("%s in %s is %s, and that is %s in another directory", c.name, c.dir, got, elsewhere)
		}
	}
	if got := (&Source{Dir: "/a"}).Path("~/x"); got != "/a/~/x" {
		t.Errorf("without a home ~/x is %s", got)
	}
}

func FuzzSourcePath(f *testing.F) {
	for _, name := range []string{"x", "../..", "~/x", `C:\x`, "c:x", `\\srv\s`, `\x`, "file:///x", "", "//", `\\`, "~", "C:"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, dir := range []string{"/", "/a/b", `C:\`, `C:\a\b`, `\\srv\s`, `\\srv\s\a`} {
			src := Source{Dir: dir, Root: dir, UserHome: dir}
			got := src.Path(name)
			if src.Path(got) != got {
				t.Errorf("%q in %s is %q, and that is %q", name, dir, got, src.Path(got))
			}
			if name != "" && !isAbsolute(strings.ReplaceAll(got, `\`, "/"), isWindows(dir)) {
				t.Errorf("%q in %s is %q", name, dir, got)
			}
			if _, relative := src.resolve(name); relative && !src.escapes(name) && !inside(joinPath(dir, ""), got) {
				t.Errorf("%q in %s is %q, which is outside", name, dir, got)
			}
		}
	})
}

func TestPathTag(t *testing.T) {
	const (
		elsewhere = "`!path` can stand in a project's layer and in --patch files only: other launchers read this file too, and do not know it"
		oneText   = "`!path` takes one text"
	)
	for _, c := range []struct {
		kind       Kind
		text, want string // the config, or what is wrong
	}{
		{BundleLayer, "!path x", elsewhere},
		{ProfileLayer, "!path x", elsewhere},
		{HomeLayer, "!path x", elsewhere},
		{ProjectLayer, "!path x", "/d/x"},
		{PatchLayer, "!path x", "/d/x"},
		{SetLayer, "!path x", "/d/x"},
		{PatchLayer, "!path 'a b'", `"/d/a b"`},
		{PatchLayer, `!path "../x"`, "/x"},
		{PatchLayer, "!path ~", "/home/u"},
		{PatchLayer, "!path ~/x", "/home/u/x"},
		{PatchLayer, "!path /x", "/x"},
		{PatchLayer, "!path 5", "/d/5"},
		{PatchLayer, "!path true", "/d/true"},
		{PatchLayer, "!path null", "/d/null"},
		{PatchLayer, "{a: [!path x, x], b: {c: !path y}}", "{a: [/d/x, x], b: {c: /d/y}}"},
		{PatchLayer, "[&a !path x, *a]", "[/d/x, /d/x]"},
		{PatchLayer, "!path |-\n    x", "/d/x"},
		{PatchLayer, "!path", oneText},
		{PatchLayer, "!path ''", oneText},
		{PatchLayer, "!path [x]", oneText},
		{PatchLayer, "!path {x: y}", oneText},
		{PatchLayer, "{!path x: y}", "a path cannot be a key"},
		{PatchLayer, "!paths x", "unknown tag !paths"},
		{PatchLayer, "!!path x", "unknown tag !!path"},
	} {
		text := "- id: a\n  config: " + c.text
		patches, err := ParsePatches(Source{File: "f", Dir: "/d", Kind: c.kind, UserHome: "/home/u"}, []byte(text))
		var got string
		if syntax, ok := errors.AsType[*SyntaxError](err); ok {
			if got = syntax.Problem; syntax.Line == 0 || syntax.Remedy == "" {
				t.Errorf("%s: %+v", c.text, syntax)
			}
		} else if err != nil {
			t.Fatal(err)
		} else {
			config, _ := patches[0].Map.Get("config")
			got = flow(config)
		}
		if got != c.want {
			t.Errorf("%v layer: %s is %s, want %s", c.kind, c.text, got, c.want)
		}
	}
	// A row's name, which then is a URL.
	patches, err := ParsePatches(Source{File: "f", Dir: "/d", Kind: PatchLayer}, []byte("- insert: [{name: !path x.js}]"))
	if err != nil {
		t.Fatal(err)
	}
	if dump := string(Apply([]Layer{{Label: "L", Patches: patches}}, nil).Dump()); dump != "# == L\n- name: file:///d/x.js\n" {
		t.Error(dump)
	}
	if _, err := decode([]byte("!path x")); err == nil || err.Error() != "unknown tag !path" {
		t.Errorf("in a text that is no layer: %v", err)
	}
}

// pathPlaces are the places of a rule, as in allow[].target.
func pathPlaces(r *PathRule) []string {
	var places []string
	open := map[*PathRule]bool{}
	var walk func(string, *PathRule)
	walk = func(at string, r *PathRule) {
		if r == nil || open[r] {
			return
		}
		open[r] = true
		defer delete(open, r)
		if r.path {
			places = append(places, strings.TrimPrefix(at, "."))
		}
		for key, below := range r.keys {
			walk(at+"."+key, below)
		}
		for _, p := range r.patterns {
			walk(at+"./"+p.key.String()+"/", p.rule)
		}
		walk(at+".*", r.other)
		for i, below := range r.first {
			walk(fmt.Sprintf("%s[%d]", at, i), below)
		}
		walk(at+"[]", r.items)
	}
	walk("", r)
	slices.Sort(places)
	return places
}

func TestPathRulesOfInBoxPlugins(t *testing.T) {
	text, err := os.ReadFile("../../bundles/schemas/index.json")
	if err != nil {
		t.Fatal(err)
	}
	index := map[string]string{}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name := range index {
		schema, _ := bundles.Schema(name)
		rule, err := NewPathRule(schema)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if places := pathPlaces(rule); len(places) > 0 {
			got[name] = places
		}
		if marked := strings.Contains(string(schema), `"format": "path"`); marked != (rule != nil) {
			t.Errorf("%s: a schema with paths: %v; a rule: %v", name, marked, rule != nil)
		}
	}
	want := map[string][]string{
		"@deepseek-ai/dsh-compaction-basic":          {"provider.api_key_file"},
		"@deepseek-ai/dsh-credentials-local":         {"dshHome", "path"},
		"@deepseek-ai/dsh-hmr":                       {"base", "root[]"},
		"@deepseek-ai/dsh-host-frontend-static":      {"distIndex"},
		"@deepseek-ai/dsh-llm":                       {"api_key_file"},
		"@deepseek-ai/dsh-mcp-client":                {"cwd"},
		"@deepseek-ai/dsh-session-persistence-jsonl": {"root"},
		"@deepseek-ai/dsh-settings-file":             {"dshHome", "path"},
		"@deepseek-ai/dsh-skill-filesystem":          {"agentsHome", "bundledSkillDir", "customSkillDirs[]", "dshHome"},
		"dsh:scope":                                  {"allow[].target", "deny[].target"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const pathSchema = `{"format":"path"}`

func TestPathRules(t *testing.T) {
	for _, c := range []struct {
		name, schema  string
		config, paths string // the paths, as a list
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, "{a: x}", ""},
		{"another format", `{"properties":{"a":{"format":"uri"}}}`, "{a: x}", ""},
		{"true", `true`, "{a: x}", ""},
		{"the config itself", pathSchema, "x", "[x]"},
		{"keys", `{"properties":{"a":{"format":"path"},"b":{"properties":{"c":{"format":"path"}}}}}`,
			"{a: x, b: {c: y, d: n}, c: n}", "[x, y]"},
		{"no texts", `{"properties":{"a":{"format":"path"}}}`, "{a: 5}", "[]"},
		{"an expression", `{"properties":{"a":{"format":"path"}}}`, "{a: !!js x}", "[]"},
		{"a mapping where a text should be", `{"properties":{"a":{"format":"path"}}}`, "{a: {a: n}}", "[]"},
		{"items", `{"properties":{"a":{"items":{"format":"path"}}}}`, "{a: [x, y, [n]]}", "[x, y]"},
		{"other keys", `{"properties":{"a":{}},"additionalProperties":{"format":"path"}}`, "{a: n, b: x, c: y}", "[x, y]"},
		{"other keys of one alternative", `{"anyOf":[{"properties":{"a":{}}},{"additionalProperties":{"format":"path"}}]}`, "{a: x, b: y}", "[x, y]"},
		{"keys by pattern", `{"properties":{"xa":{}},"patternProperties":{"^x":{"format":"path"}},"additionalProperties":{}}`, "{xa: x, xb: y, b: n}", "[x, y]"},
		{"a pattern that Go cannot read", `{"patternProperties":{"(?=x)":{"format":"path"}},"properties":{"a":{"format":"path"}}}`, "{x: n, a: x}", "[x]"},
		{"unevaluated", `{"unevaluatedProperties":{"unevaluatedItems":{"format":"path"}}}`, "{a: [x]}", "[x]"},
		{"the first items", `{"prefixItems":[{"format":"path"},{}],"items":{"format":"path"}}`, "[x, n, y]", "[x, y]"},
		{"the first items only", `{"prefixItems":[{},{"format":"path"}]}`, "[n, x, n]", "[x]"},
		{"all of", `{"allOf":[{"properties":{"a":{"format":"path"}}},{"properties":{"b":{"format":"path"}}}]}`, "{a: x, b: y, c: n}", "[x, y]"},
		{"any of", `{"anyOf":[{"type":"string","format":"path"},{"type":"array","items":{"format":"path"}}]}`, "[x, y]", "[x, y]"},
		{"one of, with a key that tells", `{"oneOf":[{"properties":{"kind":{"const":"a"},"at":{"format":"path"}}},{"properties":{"kind":{"const":"b"},"at":{"type":"number"}}}]}`, "{kind: a, at: x}", "[x]"},
		{"one of: a word is no path", `{"oneOf":[{"const":"auto"},{"enum":["off",5]},{"format":"path"}]}`, "auto", "[]"},
		{"one of: another word is", `{"oneOf":[{"const":"auto"},{"enum":["off",5]},{"format":"path"}]}`, "auto2", "[auto2]"},
		{"a URL where these may be", `{"items":{"anyOf":[{"format":"uri"},{"format":"path"}]}}`, "['https://h', x]", "[x]"},
		{"then and else", `{"if":{},"then":{"properties":{"a":{"format":"path"}}},"else":{"properties":{"b":{"format":"path"}}}}`, "{a: x, b: y}", "[x, y]"},
		{"dependent", `{"dependentSchemas":{"a":{"properties":{"b":{"format":"path"}}}}}`, "{a: n, b: x}", "[x]"},
		{"not", `{"not":{"properties":{"a":{"format":"path"}}}}`, "{a: n}", ""},
		{"a reference", `{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"a":{"format":"path"}}}}}`, "{a: x}", "[x]"},
		{"a reference to anywhere", `{"properties":{"a~/b":{"anyOf":[{},{"format":"path"}]},"c":{"$ref":"#/properties/a~0~1%62/anyOf/1"}}}`, "{c: x}", "[x]"},
		{"a reference beside other keys", `{"$ref":"#/$defs/d","properties":{"b":{"format":"path"}},"$defs":{"d":{"properties":{"a":{"format":"path"}}}}}`, "{a: x, b: y}", "[x, y]"},
		{"references to nowhere", `{"anyOf":[{"$ref":"#/$defs/x"},{"$ref":"http://h/s"},{"$ref":"#name"},{"$ref":5},{"$ref":"#/anyOf/99"},{"$ref":"#/anyOf/x"},{"$ref":"#/anyOf/0/$ref/x"}],"properties":{"a":{"format":"path"}}}`, "{a: x}", "[x]"},
		{"to itself", `{"$ref":"#"}`, "{a: n}", ""},
		{"a circle", `{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"file":{"format":"path"},"next":{"$ref":"#/$defs/d"}}}}}`,
			"{file: x, next: {file: y, next: {file: z, other: n}}}", "[x, y, z]"},
		{"a circle through lists", `{"properties":{"at":{"format":"path"},"more":{"items":{"$ref":"#"}}}}`, "{at: x, more: [{more: [{at: y}]}]}", "[x, y]"},
		{"a circle without paths", `{"properties":{"next":{"$ref":"#"},"a":{}}}`, "{a: n, next: {a: n}}", ""},
		{"anything in anything", `{"anyOf":[{"format":"path"},{"items":{"$ref":"#"}},{"additionalProperties":{"$ref":"#"}}]}`, "{a: [x, {b: y}], c: z}", "[x, y, z]"},
		{"indented with tabs", "{\n\t\"properties\": {\n\t\t\"a\": {\"format\":\t\"path\"}\n\t}\n}\n", "{a: x}", "[x]"},
	} {
		rule, err := NewPathRule([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := ""
		if rule != nil {
			list := &List{}
			for _, path := range texts(Paths(rule, valueOf(t, c.config))) {
				list.Items = append(list.Items, path)
			}
			got = flow(list)
		}
		if got != c.paths {
			t.Errorf("%s: %s, want %s", c.name, got, c.paths)
		}
	}
	if _, err := NewPathRule([]byte(`{"a":`)); err == nil || !strings.Contains(err.Error(), "reading a config schema: ") {
		t.Errorf("a broken schema: %v", err)
	}
}

// TestPathRulesOfEntangledSchemas would not come to an end if every way
// through the references was taken.
func TestPathRulesOfEntangledSchemas(t *testing.T) {
	const n = 40
	var defs []string
	for i := range n {
		var props []string
		for j := range n {
			props = append(props, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"}`, j, j))
		}
		defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"file":{"format":"path"},%s}}`, i, strings.Join(props, ",")))
	}
	rule, err := NewPathRule([]byte(`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x"}, texts(Paths(rule, valueOf(t, "{p3: {p39: {p0: {p3: {file: x, q1: n}}}}}")))); diff != "" {
		t.Error(diff)
	}

	// The keys a and b lead from a set of schemas to very many others.
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d0"}]}}}`, i, (i+1)%20, (i+1)%20))
	}
	_, err = NewPathRule([]byte(`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(all, ",") + `}}`))
	if err == nil || err.Error() != "reading a config schema: its references are too entangled" {
		t.Error(err)
	}
}

// testRules are the rules of three plugins: p has paths at some places, any
// has them everywhere, q is not known.
func testRules(t testing.TB) PathRules {
	t.Helper()
	known := map[string]*PathRule{}
	for name, schema := range map[string]string{
		"p": `{"properties":{"file":{"format":"path"},"dir":{"properties":{"file":{"format":"path"}}},
			"files":{"items":{"format":"path"}},"allow":{"items":{"properties":{"target":{"format":"path"}}}}}}`,
		"any": `{"anyOf":[{"format":"path"},{"items":{"$ref":"#"}},{"additionalProperties":{"$ref":"#"}}]}`,
	} {
		rule, err := NewPathRule([]byte(schema))
		if err != nil || rule == nil {
			t.Fatal(name, err)
		}
		known[name] = rule
	}
	return func(plugin string) *PathRule { return known[plugin] }
}

func TestPathsInLayers(t *testing.T) {
	rules := testRules(t)
	for _, c := range []struct {
		name   string
		layers []string // of the directories /1, /2, …
		want   string   // the rows of the tree, in flow style
	}{
		{"an insert", []string{"- insert: [{id: a, name: p, config: {file: x, text: x}}]"}, "[{id: a, name: p, config: {file: /1/x, text: x}}]"},
		{"a plugin that is not known", []string{"- insert: [{id: a, name: q, config: {file: x}}, {id: b, config: {file: x}}]"},
			"[{id: a, name: q, config: {file: x}}, {id: b, config: {file: x}}]"},
		{"all forms", []string{"- insert: [{id: a, name: p, config: {files: [x, ./x, ../x, ., .., '~', ~/x, /x, 'file:///x', '', 5, null, true, !!js x, [y]]}}]"},
			`[{id: a, name: p, config: {files: [/1/x, /1/x, /x, /1, /, /home/u, /home/u/x, /x, "file:///x", "", 5, null, true, !!js "x", [y]]}}]`},
		{"keys of keys", []string{"- insert: [{id: a, name: any, config: {x: {y: x, 1: [x, {z: x}]}}}]"},
			`[{id: a, name: any, config: {x: {"1": [/1/x, {z: /1/x}], y: /1/x}}}]`},
		{"an override belongs to its own file", []string{
			"- insert: [{id: a, name: p, config: {file: x, dir: {file: x}}}]",
			"- {id: a, config: {file: x, allow: [{target: ..}, {target: .}]}}",
		}, "[{id: a, name: p, config: {file: /2/x, allow: [{target: /}, {target: /2}]}}]"},
		{"what is restated stays where it was", []string{
			"- insert: [{id: a, name: p, config: {file: x}}]", "- {id: a, disabled: true}", "- {id: a, config: {file: /1/x, dir: {file: y}}}",
		}, "[{id: a, name: p, config: {file: /1/x, dir: {file: /3/y}}, disabled: true}]"},
		{"a skipped override", []string{"- insert: [{id: a, name: p, config: {file: x}}]", "- {id: a, name: q, config: {file: y}}\n- {id: b, config: {file: y}}"},
			"[{id: a, name: p, config: {file: /1/x}}]"},
		{"keys of the row are no config", []string{"- insert: [{id: a, name: p, file: x}]", "- {id: a, files: [x]}"}, "[{id: a, name: p, file: x, files: [x]}]"},
		{"groups", []string{
			"- insert: [{id: g, name: 'cordis:group', group: true, config: [{id: a, name: p, config: {file: x}}]}]",
			"- {id: a, config: {file: y}}\n- {id: g, insert: [{id: b, name: p, config: {file: z}}]}",
		}, `[{id: g, name: "cordis:group", group: true, config: [{id: a, name: p, config: {file: /2/y}}, {id: b, name: p, config: {file: /2/z}}]}]`},
		{"the config of a group is replaced", []string{
			"- insert: [{id: g, name: 'cordis:group', group: true, config: [{id: a, name: p, config: {file: x}}]}]",
			"- {id: g, config: [{id: a, name: p, config: {file: x}}, {id: h, name: 'cordis:group', config: [{name: p, config: {file: y}}]}]}",
		}, `[{id: g, name: "cordis:group", group: true, config: [{id: a, name: p, config: {file: /2/x}}, {id: h, name: "cordis:group", config: [{name: p, config: {file: /2/y}}]}]}]`},
		{"a group by the same patch, and by a later layer", []string{
			"- insert: [{id: g, config: [{name: p, config: {file: x}}]}, {id: h}]", "- {id: g, group: true}\n- {id: h, config: [{name: p, config: {file: y}}], group: true}",
		}, "[{id: g, config: [{name: p, config: {file: /1/x}}], group: true}, {id: h, config: [{name: p, config: {file: /2/y}}], group: true}]"},
		{"no group any more", []string{"- insert: [{id: g, name: any, group: true, config: [x]}]", "- {id: g, group: false}"},
			"[{id: g, name: any, group: false, config: [/1/x]}]"},
		{"inserted texts", []string{"- insert: ab\n- insert: [c, 5, [{name: p, config: {file: n}}]]"}, "[a, b, c, 5, [{name: p, config: {file: n}}]]"},

		{"aliases at a path and elsewhere", []string{"- insert: [{id: a, name: p, config: {dir: &d {file: x, deep: {file: x}}, text: *d, allow: [*d]}}]"},
			"[{id: a, name: p, config: {dir: {file: /1/x, deep: {file: x}}, text: {file: x, deep: {file: x}}, allow: [{file: x, deep: {file: x}}]}}]"},
		{"below an alias", []string{"- insert: [{id: a, name: q, config: &c {dir: {file: x}, files: [x], allow: [{target: x}]}}, {id: b, name: p, config: *c}, {id: c, name: p, config: *c}]"},
			"[{id: a, name: q, config: {dir: {file: x}, files: [x], allow: [{target: x}]}}, " +
				"{id: b, name: p, config: {dir: {file: /1/x}, files: [/1/x], allow: [{target: /1/x}]}}, " +
				"{id: c, name: p, config: {dir: {file: /1/x}, files: [/1/x], allow: [{target: /1/x}]}}]"},
		{"an alias in an override", []string{"- insert: [{id: a, name: p}, {id: b, name: q}]", "- {id: a, config: &c {files: [x, &x y, *x]}}\n- {id: b, config: *c}\n- {id: b, other: *c}"},
			"[{id: a, name: p, config: {files: [/2/x, /2/y, /2/y]}}, {id: b, name: q, config: {files: [x, y, y]}, other: {files: [x, y, y]}}]"},
		{"a patch that is a row as well", []string{"- insert: [{id: a, name: p}]\n- &r {id: a, config: {file: x}}\n- insert: [{id: b, name: q, config: *r}]"},
			"[{id: a, name: p, config: {file: /1/x}}, {id: b, name: q, config: {id: a, config: {file: x}}}]"},
		{"one row in two places", []string{"- insert: [&r {id: a, name: p, config: {file: x}}, *r]", "- {id: a, config: {file: y}}"},
			"[{id: a, name: p, config: {file: /2/y}}, {id: a, name: p, config: {file: /2/y}}]"},
	} {
		var layers []Layer
		for i, text := range c.layers {
			src := Source{File: "f", Dir: fmt.Sprintf("/%d", i+1), Kind: ProfileLayer, UserHome: "/home/u"}
			patches, err := ParsePatches(src, []byte(text))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			layers = append(layers, Layer{Label: fmt.Sprintf("L%d", i+1), Patches: patches})
		}
		before := layerTexts(layers)
		tree := Apply(layers, rules)
		if diff := cmp.Diff(c.want, flow(rowsOf(tree))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if relative := tree.RelativePaths(rules); len(relative) > 0 {
			t.Errorf("%s: %v", c.name, relative)
		}
		if diff := cmp.Diff(before, layerTexts(layers)); diff != "" {
			t.Errorf("%s: layers changed (-before +after):\n%s", c.name, diff)
		}
	}
}

func layerTexts(layers []Layer) (texts []string) {
	for _, layer := range layers {
		for _, patch := range layer.Patches {
			texts = append(texts, string(appendJSON(nil, patch.Map, 1<<16)))
		}
	}
	return texts
}

func rowsOf(tree *Tree) *List {
	rows := &List{}
	for _, row := range tree.Rows {
		rows.Items = append(rows.Items, row.value)
	}
	return rows
}

func TestRelativePaths(t *testing.T) {
	patches, err := ParsePatches(Source{File: "f", Dir: "here"}, []byte(
		`[{insert: [{id: a, name: p, config: {files: [x, '~/x', /x, 'C:\x', '\\s\x', 'file:///x', '']}}, {id: g, group: true, config: [{id: b, name: p, config: {file: y}}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	tree := Apply([]Layer{{Label: "L", Patches: patches}}, nil) // so that they stay
	var got []string
	for _, p := range tree.RelativePaths(testRules(t)) {
		id, _ := p.Row.Get("id")
		got = append(got, IDText(id)+": "+p.Path)
	}
	if diff := cmp.Diff([]string{"a: x", "a: ~/x", "b: y"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPathsThatLeaveThePackage(t *testing.T) {
	rules := testRules(t)
	for _, c := range []struct {
		dir, root, path string
		refused         bool
	}{
		{"/pkg/layers", "/pkg", "..", false},
		{"/pkg/layers", "/pkg", "../x", false},
		{"/pkg/layers", "/pkg", "../..", true},
		{"/pkg/layers", "/pkg", "../../x", true},
		{"/pkg/layers", "/pkg", "./a/../../../pkg2", true},
		{"/pkg/layers", "/pkg", "../../pkg/x", false},
		{"/pkg", "/pkg", "..x", false},
		{"/pkg", "/pkg", "x/..", false},
		{"/pkg", "/pkg/", "../x", true},
		{"/pkg", "/", "../x", false},
		{"/pkg", "/pkg", "/etc/../x", false},
		{"/pkg", "/pkg", "~/../x", false},
		{"/pkg", "", "../x", false},
		{"/pkg", "/pkg", `..\x`, false}, // a name, here
		{`C:\pkg\l`, `C:\pkg`, `..\x`, false},
		{`C:\pkg\l`, `C:\pkg`, `..\..\x`, true},
		{`C:\pkg\l`, `C:\pkg`, `../../x`, true},
		{`C:\pkg\l`, `C:\pkg`, `c:..\..\x`, true},
		{`C:\pkg\l`, `C:\pkg`, `D:\..\x`, false},
		{`\\s\d\pkg`, `\\s\d\pkg`, `..\x`, true},
	} {
		src := Source{File: "f", Dir: c.dir, Root: c.root, UserHome: "/home/u"}
		patches, err := ParsePatches(src, []byte(fmt.Sprintf("- insert: [{id: a, name: p, config: {file: '%s'}}]", c.path)))
		if err != nil {
			t.Fatal(err)
		}
		tree := Apply([]Layer{{Label: "L", Patches: patches}}, rules)
		want := []Warning(nil)
		if c.refused {
			want = []Warning{{"L", "patch: path " + Show(c.path) + " leaves the package"}}
		}
		if diff := cmp.Diff(want, tree.Warnings); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", c.path, c.dir, diff)
		}
		if step := tree.Steps[0]; (step.Outcome == PathEscapes) != c.refused || step.Outcome.Applied() == c.refused {
			t.Errorf("%s in %s: outcome %d", c.path, c.dir, step.Outcome)
		}
		if found := tree.FindText("a") != nil; found == c.refused {
			t.Errorf("%s in %s: the row is there: %v", c.path, c.dir, found)
		}
	}
	// An override is skipped whole.
	patches, err := ParsePatches(Source{File: "f", Dir: "/pkg", Root: "/pkg"}, []byte(
		"- insert: [{id: a, name: p}]\n- {id: a, disabled: true, config: {files: [../../one, ../two]}}"))
	if err != nil {
		t.Fatal(err)
	}
	tree := Apply([]Layer{{Label: "L", Patches: patches}}, rules)
	want := "# == L\n- id: a\n  name: p\n"
	if diff := cmp.Diff([2]string{want, `[L] patch: path "../../one" leaves the package`}, [2]string{string(tree.Dump()), tree.Warnings[0].String()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowNamesThatLeaveThePackage(t *testing.T) {
	for _, c := range []struct {
		dir, root, name, escapes string
	}{
		{"/pkg/l", "/pkg", "../x.js", ""},
		{"/pkg/l", "/pkg", "../../x.js", "../../x.js"},
		{"/pkg/l", "/pkg", "./../../x.js", "./../../x.js"},
		{"/pkg/l", "/pkg", "/x/../../y.js", ""},
		{"/pkg/l", "/pkg", "x/../../../y.js", ""}, // the name of a package
		{"/pkg/l", "/pkg", "@x/../../../y.js", ""},
		{"/pkg/l", "", "../../x.js", ""},
		{`C:\pkg`, `C:\pkg`, `..\x.js`, `..\x.js`},
		{`C:\pkg`, `C:\pkg`, `.\..\x.js`, `.\..\x.js`},
		{`C:\pkg`, `C:\pkg`, `D:\x\..\..\x.js`, ""},
	} {
		for at, text := range []string{
			"- insert:\n    - name: '%s'",
			"- insert:\n    - {id: g, group: true, config: [{name: '%s'}]}",
			"- id: g\n  insert:\n    - {name: 'cordis:group', config: [{name: p}, {name: '%s'}]}",
		} {
			_, err := ParsePatches(Source{File: "f", Dir: c.dir, Root: c.root}, []byte(fmt.Sprintf(text, c.name)))
			if c.escapes == "" {
				if err != nil {
					t.Errorf("%s in %s: %v", c.name, c.dir, err)
				}
				continue
			}
			place := []string{"f:2:7", "f:2:37", "f:3:50"}[at]
			escape, ok := errors.AsType[*EscapeError](err)
			if !ok || escape.Error() != place+": path "+quoteForMessage(c.escapes)+" leaves the package" || escape.Class() != fault.Policy {
				t.Errorf("%s in %s: %v", c.name, c.dir, err)
			}
		}
		// What overrides a row is no name of a file.
		if _, err := ParsePatches(Source{File: "f", Dir: c.dir, Root: c.root}, []byte(fmt.Sprintf("- {id: a, name: '%s'}", c.name))); err != nil {
			t.Errorf("%s in %s: %v", c.name, c.dir, err)
		}
	}
}

// texts are paths without their places.
func texts(paths []PathAt) []string {
	var list []string
	for _, at := range paths {
		list = append(list, at.Path)
	}
	return list
}

func TestPathsHavePlaces(t *testing.T) {
	rule, err := NewPathRule([]byte(`{"properties": {"file": {"format": "path"}, "list": {"items": {"properties": {"to": {"format": "path"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := Paths(rule, valueOf(t, "{other: /x, file: /x, list: [{as: /y}, {as: /y, to: /y}, {to: /z}]}"))
	want := []PathAt{{[]string{"file"}, "/x"}, {[]string{"list", "1", "to"}, "/y"}, {[]string{"list", "2", "to"}, "/z"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
