package profile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func set(kind DependencyKind, name, spec string) func(*Manifest) {
	return func(m *Manifest) { m.SetDependency(kind, name, spec) }
}

func remove(name string) func(*Manifest) {
	return func(m *Manifest) { m.RemoveDependency(name) }
}

func bundles(names ...string) func(*Manifest) {
	return func(m *Manifest) { m.SetBundles(names) }
}

// editTests gives the whole text before and after one edit. Each edit, made
// twice, must give the same as once.
var editTests = []struct {
	name   string
	before string
	edit   func(*Manifest)
	after  string
}{
	{
		"an empty section gets lines",
		"{\n  \"dependencies\": {},\n  \"n\": 1.0\n}\n",
		set(Dependencies, "a", "^1.0.0"),
		"{\n  \"dependencies\": {\n    \"a\": \"^1.0.0\"\n  },\n  \"n\": 1.0\n}\n",
	},
	{
		"an empty section with a blank in it",
		"{\n  \"dependencies\": {\n  }\n}",
		set(Dependencies, "a", "1"),
		"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}",
	},
	{
		"sorted: first, with tabs",
		"{\n\t\"dependencies\": {\n\t\t\"b\": \"1\",\n\t\t\"c\": \"1\"\n\t}\n}\n",
		set(Dependencies, "a", "2"),
		"{\n\t\"dependencies\": {\n\t\t\"a\": \"2\",\n\t\t\"b\": \"1\",\n\t\t\"c\": \"1\"\n\t}\n}\n",
	},
	{
		"sorted: in the middle, four spaces",
		"{\n    \"dependencies\": {\n        \"a\": \"1\",\n        \"c\": \"1\"\n    }\n}\n",
		set(Dependencies, "b", "2"),
		"{\n    \"dependencies\": {\n        \"a\": \"1\",\n        \"b\": \"2\",\n        \"c\": \"1\"\n    }\n}\n",
	},
	{
		"sorted: last, CRLF",
		"{\r\n  \"dependencies\": {\r\n    \"a\": \"1\"\r\n  }\r\n}\r\n",
		set(Dependencies, "b", "2"),
		"{\r\n  \"dependencies\": {\r\n    \"a\": \"1\",\r\n    \"b\": \"2\"\r\n  }\r\n}\r\n",
	},
	{
		"CRLF, empty section",
		"{\r\n  \"dependencies\": {}\r\n}",
		set(Dependencies, "b", "2"),
		"{\r\n  \"dependencies\": {\r\n    \"b\": \"2\"\r\n  }\r\n}",
	},
	{
		"not sorted: at the end",
		"{\n  \"dependencies\": {\n    \"z\": \"1\",\n    \"b\": \"1\"\n  }\n}\n",
		set(Dependencies, "a", "2"),
		"{\n  \"dependencies\": {\n    \"z\": \"1\",\n    \"b\": \"1\",\n    \"a\": \"2\"\n  }\n}\n",
	},
	{
		"blank lines stay and are not copied",
		"{\n  \"dependencies\": {\n\n    \"a\": \"1\",\n\n    \"c\": \"1\"\n\n  }\n}\n",
		set(Dependencies, "d", "2"),
		"{\n  \"dependencies\": {\n\n    \"a\": \"1\",\n\n    \"c\": \"1\",\n    \"d\": \"2\"\n\n  }\n}\n",
	},
	{
		"a new spec changes only the spec",
		"{\"dependencies\" : { \"a\":\"1\" , \"b\" :\"1\" }, \"big\": 12345678901234567890, \"e\": 1e3}",
		set(Dependencies, "b", "2"),
		"{\"dependencies\" : { \"a\":\"1\" , \"b\" :\"2\" }, \"big\": 12345678901234567890, \"e\": 1e3}",
	},
	{
		"the same spec spelled otherwise is left alone",
		"{\"dependencies\":{\"a\":\"\\u0031\"}}",
		set(Dependencies, "a", "1"),
		"{\"dependencies\":{\"a\":\"\\u0031\"}}",
	},
	{
		"one line, compact",
		"{\"dependencies\":{\"a\":\"1\"}}",
		set(Dependencies, "b", "2"),
		"{\"dependencies\":{\"a\":\"1\",\"b\":\"2\"}}",
	},
	{
		"one line, spaced",
		"{ \"dependencies\": {} }\n",
		set(Dependencies, "b", "2"),
		"{ \"dependencies\": { \"b\": \"2\" } }\n",
	},
	{
		"a section on one line in a file of lines stays on it",
		"{\n  \"dependencies\": {\"a\": \"1\"}\n}\n",
		set(Dependencies, "b", "2"),
		"{\n  \"dependencies\": {\"a\": \"1\", \"b\": \"2\"}\n}\n",
	},
	{
		"no section yet: after the other ones",
		"{\n  \"dependencies\": {},\n  \"dsh\": {}\n}\n",
		set(DevDependencies, "a", "1"),
		"{\n  \"dependencies\": {},\n  \"devDependencies\": {\n    \"a\": \"1\"\n  },\n  \"dsh\": {}\n}\n",
	},
	{
		"no section at all: at the end",
		"{\n  \"name\": \"x\"\n}\n",
		set(Dependencies, "a", "1"),
		"{\n  \"name\": \"x\",\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
	},
	{
		"nothing at all",
		"{}",
		set(Dependencies, "@s/a", "npm:b@<2 & >1"),
		"{\n  \"dependencies\": {\n    \"@s/a\": \"npm:b@<2 & >1\"\n  }\n}",
	},
	{
		"a null section becomes one",
		"{\n  \"dependencies\": null\n}\n",
		set(Dependencies, "a", "1"),
		"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
	},
	{
		"moving between sections",
		"{\n  \"dependencies\": {\n    \"a\": \"1\",\n    \"b\": \"1\"\n  },\n  \"devDependencies\": {\n    \"c\": \"1\"\n  }\n}\n",
		set(Dependencies, "c", "2"),
		"{\n  \"dependencies\": {\n    \"a\": \"1\",\n    \"b\": \"1\",\n    \"c\": \"2\"\n  }\n}\n",
	},
	{
		"remove the first",
		"{\n\t\"dependencies\": {\n\t\t\"a\": \"1\",\n\t\t\"b\": \"1\"\n\t}\n}\n",
		remove("a"),
		"{\n\t\"dependencies\": {\n\t\t\"b\": \"1\"\n\t}\n}\n",
	},
	{
		"remove the last",
		"{\n  \"dependencies\": {\n    \"a\": \"1\",\n    \"b\": \"1\"\n  }\n}\n",
		remove("b"),
		"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
	},
	{
		"remove the only one",
		"{\n  \"dependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
		remove("a"),
		"{\n  \"dependencies\": {}\n}\n",
	},
	{
		"remove the only one of a section that a new profile does not have",
		"{\n  \"dependencies\": {},\n  \"optionalDependencies\": {\n    \"a\": \"1\"\n  }\n}\n",
		remove("a"),
		"{\n  \"dependencies\": {}\n}\n",
	},
	{
		"remove one that is written twice",
		"{\"dependencies\":{\"a\":\"1\",\"b\":\"1\",\"a\":\"2\"}}",
		remove("a"),
		"{\"dependencies\":{\"b\":\"1\"}}",
	},
	{
		"a section of two that is emptied hides the other one, which nobody could use",
		"{\"optionalDependencies\": \"x\", \"optionalDependencies\": {\"a\": \"link:/x\"}}",
		remove("a"),
		"{\"optionalDependencies\": \"x\", \"optionalDependencies\": {}}",
	},
	{
		"a section of two that is emptied hides the other one, which nobody used",
		"{\"devDependencies\": {\"b\": \"1\"}, \"devDependencies\": {\"a\": \"1\", \"a\": \"2\"}}",
		set(Dependencies, "a", "3"),
		"{\"devDependencies\": {\"b\": \"1\"}, \"devDependencies\": {}, \"dependencies\": {\"a\": \"3\"}}",
	},
	{
		"remove what is not there",
		"{\"dependencies\":{\"b\":\"1\"} ,\"x\" : [ ] }",
		remove("a"),
		"{\"dependencies\":{\"b\":\"1\"} ,\"x\" : [ ] }",
	},
	{
		"add a bundle, as the template writes the list",
		"{\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": [\n        \"a\"\n      ],\n      \"x\": 1.50\n    }\n  }\n}\n",
		bundles("a", "b"),
		"{\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": [\n        \"a\",\n        \"b\"\n      ],\n      \"x\": 1.50\n    }\n  }\n}\n",
	},
	{
		"remove a bundle, tabs and CRLF",
		"{\r\n\t\"dsh\": {\r\n\t\t\"profile\": {\r\n\t\t\t\"bundles\": [\r\n\t\t\t\t\"a\",\r\n\t\t\t\t\"b\"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}",
		bundles("b"),
		"{\r\n\t\"dsh\": {\r\n\t\t\"profile\": {\r\n\t\t\t\"bundles\": [\r\n\t\t\t\t\"b\"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}",
	},
	{
		"a list on one line stays on it",
		"{\n  \"dsh\": {\"profile\": {\"bundles\": [\"a\"]}}\n}\n",
		bundles("a", "b", "c"),
		"{\n  \"dsh\": {\"profile\": {\"bundles\": [\"a\", \"b\", \"c\"]}}\n}\n",
	},
	{
		"a compact list stays compact",
		"{\"dsh\":{\"profile\":{\"bundles\":[\"a\"]}}}",
		bundles("a", "b"),
		"{\"dsh\":{\"profile\":{\"bundles\":[\"a\",\"b\"]}}}",
	},
	{
		"a spaced list stays spaced",
		"{\n  \"dsh\": { \"profile\": { \"bundles\": [ \"a\", \"b\" ] } }\n}\n",
		bundles("a", "b", "c"),
		"{\n  \"dsh\": { \"profile\": { \"bundles\": [ \"a\", \"b\", \"c\" ] } }\n}\n",
	},
	{
		"the last bundle goes",
		"{\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": [\n        \"a\"\n      ]\n    }\n  }\n}\n",
		bundles(),
		"{\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": []\n    }\n  }\n}\n",
	},
	{
		"missing sections are made",
		"{\n  \"name\": \"x\"\n}\n",
		bundles("a"),
		"{\n  \"name\": \"x\",\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": [\n        \"a\"\n      ]\n    }\n  }\n}\n",
	},
	{
		"missing sections are made in one line",
		"{\"name\":\"x\"}",
		bundles("a", "b"),
		"{\"name\":\"x\",\"dsh\":{\"profile\":{\"bundles\":[\"a\",\"b\"]}}}",
	},
	{
		"bundles come before patchReload; null sections count as missing",
		"{\n  \"dsh\": {\n    \"bundle\": null,\n    \"profile\": {\n      \"patchReload\": \"live\"\n    }\n  }\n}\n",
		bundles("a"),
		"{\n  \"dsh\": {\n    \"bundle\": null,\n    \"profile\": {\n      \"bundles\": [\n        \"a\"\n      ],\n      \"patchReload\": \"live\"\n    }\n  }\n}\n",
	},
	{
		"a null profile",
		"{\n  \"dsh\": {\n    \"profile\": null\n  }\n}\n",
		bundles("a"),
		"{\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": [\n        \"a\"\n      ]\n    }\n  }\n}\n",
	},
	{
		"the same list is left alone, however it is laid out",
		"{\"dsh\":{\"profile\":{\"bundles\":[\n\"\\u0061\" , \"b\"]}}}",
		bundles("a", "b"),
		"{\"dsh\":{\"profile\":{\"bundles\":[\n\"\\u0061\" , \"b\"]}}}",
	},
}

func TestEdit(t *testing.T) {
	for _, test := range editTests {
		t.Run(test.name, func(t *testing.T) {
			m := mustParse(t, test.before)
			test.edit(m)
			if diff := cmp.Diff(strings.Split(test.after, "\n"), strings.Split(string(m.Bytes()), "\n")); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			test.edit(m)
			if diff := cmp.Diff(test.after, string(m.Bytes())); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUndo(t *testing.T) {
	for _, text := range []string{
		"{\n  \"dependencies\": {},\n  \"dsh\": {\n    \"profile\": {\n      \"bundles\": [\n        \"b\"\n      ]\n    }\n  }\n}\n",
		"{\n\t\"dependencies\": {\n\t\t\"b\": \"1\",\n\n\t\t\"x\": \"1\"\n\t},\n\t\"dsh\": {\"profile\": {\"bundles\": [\"b\"]}}\n}",
		"{\"dependencies\": {\"b\": \"1\"}, \"dsh\": {\"profile\": {\"bundles\": [\"b\", \"c\"]}}}",
		"{ \"dsh\": { \"profile\": { \"bundles\": [] } }, \"dependencies\": { \"z\": \"1\", \"b\": \"1\" }, \"devDependencies\": { \"d\": \"1\" } }",
	} {
		for _, kind := range dependencyKinds {
			for _, name := range []string{"a", "c", "zz"} {
				m := mustParse(t, text)
				list := m.Bundles()
				m.SetDependency(kind, name, "^1.0.0")
				m.SetBundles(append(m.Bundles(), name))
				if string(m.Bytes()) == text {
					t.Errorf("%s %s changed nothing", kind, name)
				}
				m.RemoveDependency(name)
				m.SetBundles(list)
				if diff := cmp.Diff(text, string(m.Bytes())); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", kind, name, diff)
				}
			}
		}
	}
}

// duplicated is manifests that spell one key two or three times, with every
// mixture of values that count and values that nobody can use.
func duplicated(yield func(text string) bool) {
	sections := []string{`"x"`, `null`, `[]`, `{}`, `{"a": "1"}`, `{"b": "1"}`, `{"a": "1", "b": "2", "a": "3"}`, `{"a": 1}`}
	profiles := []string{`"x"`, `null`, `{}`, `{"bundles": null}`, `{"bundles": 1, "bundles": ["a", "b"]}`, `{"bundles": ["a"], "bundles": null, "patchReload": 1, "patchReload": "live"}`}
	for i, outer := range profiles[:len(profiles):len(profiles)] {
		inner := profiles[(i+3)%6]
		profiles = append(profiles, `{"profile": `+outer+`, "profile": `+inner+`}`)
	}
	for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies", "dsh"} {
		values := sections
		if key == "dsh" {
			values = profiles
		}
		for _, first := range values {
			for _, second := range values {
				pair := `"` + key + `": ` + first + `, "` + key + `": ` + second
				for _, text := range []string{`{` + pair + `}`, `{` + pair + `, "devDependencies": {"a": "0"}, "` + key + `": ` + first + `}`} {
					if !yield(text) {
						return
					}
				}
			}
		}
	}
}

func TestEditDuplicated(t *testing.T) {
	edited := 0
	for text := range duplicated {
		if _, err := ParseManifest("package.json", []byte(text)); err != nil {
			continue
		}
		edited++
		for _, name := range []string{"a", "b", "c"} {
			checkEdits(t, text, name, "new")
		}
	}
	if edited < 100 {
		t.Errorf("only %d manifests could be read", edited)
	}
}

// others is what m says of everything but the dependency name.
func others(m *Manifest, name string) map[string]any {
	all := map[string]any{"bundles": m.Bundles(), "reload": m.PatchReload()}
	for _, kind := range dependencyKinds {
		for _, d := range m.Dependencies(kind) {
			if d.Name != name {
				all[string(kind)+" "+d.Name] = d.Spec
			}
		}
	}
	return all
}

// checkEdits makes every edit of a manifest that can be read: each does what
// it says and nothing else, and leaves a manifest that can be read.
func checkEdits(t *testing.T, text, name, spec string) {
	t.Helper()
	m := mustParse(t, text)
	before := others(m, name)
	unchanged := func() {
		t.Helper()
		if diff := cmp.Diff(before, others(m, name)); diff != "" {
			t.Fatalf("%s with %q: others changed (-want +got):\n%s\n%s", text, name, diff, m.Bytes())
		}
	}
	for _, kind := range dependencyKinds {
		m = mustParse(t, text)
		_, _, there := m.Dependency(name)
		if m.RemoveDependency(name) != there {
			t.Fatalf("%s: removing %q did not report %v", text, name, there)
		}
		unchanged()
		m = mustParse(t, text)
		m.SetDependency(kind, name, spec)
		once := string(m.Bytes())
		m = mustParse(t, once)
		if got, in, ok := m.Dependency(name); got != spec || in != kind || !ok {
			t.Fatalf("after setting %q in %s: %q in %q\n%s", spec, kind, got, in, once)
		}
		unchanged()
		if m.SetDependency(kind, name, spec); string(m.Bytes()) != once {
			t.Fatalf("setting the same again changed\n%s\nto\n%s", once, m.Bytes())
		}
	}
	for _, kind := range dependencyKinds { // moved from section to section
		m.SetDependency(kind, name, spec)
		m = mustParse(t, string(m.Bytes()))
		unchanged()
	}
	if !m.RemoveDependency(name) {
		t.Fatalf("%s: nothing was removed", text)
	}
	m = mustParse(t, string(m.Bytes()))
	if _, _, ok := m.Dependency(name); ok {
		t.Fatalf("%q is still there\n%s", name, m.Bytes())
	}
	unchanged()
	for _, list := range [][]string{{name}, {name, "b", name}, nil} {
		m.SetBundles(list)
		m = mustParse(t, string(m.Bytes()))
		if diff := cmp.Diff(list, m.Bundles()); diff != "" {
			t.Fatalf("bundles (-want +got):\n%s\n%s", diff, m.Bytes())
		}
		before["bundles"] = list
		unchanged()
	}
}

func TestRename(t *testing.T) {
	for _, test := range []struct {
		text, want string
		renamed    bool
	}{
		{`{ "a": 1, "name" : "dsh-profile-x", "b":2}`, `{ "a": 1, "name" : "dsh-profile-y z", "b":2}`, true},
		{`{"name": "dsh-profile-x", "name": "mine"}`, `{"name": "dsh-profile-x", "name": "mine"}`, false},
		{`{"name": "mine", "name": "dsh-profile-x"}`, `{"name": "mine", "name": "dsh-profile-y z"}`, true},
		{`{"name": "dsh-profile-xx"}`, `{"name": "dsh-profile-xx"}`, false},
		{`{"name": null}`, `{"name": null}`, false},
		{`{"name": 1}`, `{"name": 1}`, false},
		{`{}`, `{}`, false},
	} {
		m, err := ParseManifest("package.json", []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Rename(Name{"x"}, Name{"y z"}); got != test.renamed || string(m.Bytes()) != test.want {
			t.Errorf("%s: %v, %s", test.text, got, m.Bytes())
		}
	}
}
