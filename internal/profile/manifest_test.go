package profile

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := ParseManifest("package.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseManifest(t *testing.T) {
	m := mustParse(t, "\ufeff"+`{
  "name": "dsh-profile-x",
  "dependencies": {"b": "^1.0.0", "a": "link:../a", "b": "^2.0.0"},
  "devDependencies": null,
  "optionalDependencies": {"o\u002fp": "*"},
  "dsh": {"bundle": {"patch": "./x.yml"}, "profile": {"bundles": ["one", "two", "one"], "patchReload": "startup"}}
}`)
	if diff := cmp.Diff([]Dependency{{"b", "^2.0.0"}, {"a", "link:../a"}}, m.Dependencies(Dependencies)); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Dependency(nil), m.Dependencies(DevDependencies)); diff != "" {
		t.Errorf("devDependencies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Dependency{{"o/p", "*"}}, m.Dependencies(OptionalDependencies)); diff != "" {
		t.Errorf("optionalDependencies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "two", "one"}, m.Bundles()); diff != "" {
		t.Errorf("bundles (-want +got):\n%s", diff)
	}
	if got := m.PatchReload(); got != ReloadStartup {
		t.Errorf("patchReload = %v, want startup", got)
	}
	if spec, kind, ok := m.Dependency("o/p"); spec != "*" || kind != OptionalDependencies || !ok {
		t.Errorf("Dependency(o/p) = %q, %q, %v", spec, kind, ok)
	}
	if _, _, ok := m.Dependency("absent"); ok {
		t.Error("Dependency(absent) was found")
	}
	if strings.HasPrefix(string(m.Bytes()), "\ufeff") {
		t.Error("Bytes begins with a byte-order mark")
	}
}

func TestParseManifestWithoutSections(t *testing.T) {
	for _, text := range []string{`{}`, `{"dsh": null}`, `{"dsh": {}}`, `{"dsh": {"profile": null}}`, `{"dsh": {"profile": {"bundles": null, "patchReload": null}}}`} {
		m := mustParse(t, text)
		if len(m.Bundles()) != 0 || m.PatchReload() != ReloadUnset || m.PatchReload().String() != "" {
			t.Errorf("%s: bundles %v, reload %v", text, m.Bundles(), m.PatchReload())
		}
	}
}

func TestParseManifestErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", "p.json:1:1: the file is empty, expected a JSON object"},
		{"blank", " \n\n", "p.json:1:1: the file is empty, expected a JSON object"},
		{"array", "[]", "profile manifest p.json must hold a JSON object"},
		{"null", "null", "profile manifest p.json must hold a JSON object"},
		{"comment", "{\n  // hello\n}", "p.json:2:3: comments are not allowed here"},
		{"block comment", "{\"a\": /* x */ 1}", "p.json:1:7: comments are not allowed here"},
		{"trailing comma", "{\n  \"a\": 1,\n}", `p.json:2:9: a comma is not allowed before "}"`},
		{"trailing comma in list", "{\n  \"a\": [1,\n  ]\n}", `p.json:2:10: a comma is not allowed before "]"`},
		{"unquoted key", "{\n  name: 1}", "p.json:2:3: expected a key in double quotes, found 'n'"},
		{"single quotes", "{\n  \"ä\": 'x'}", `p.json:2:8: expected a value, found '\''`},
		{"missing comma", "{\"a\": 1\n \"b\": 2}", `p.json:2:2: expected "," or "}", found '"'`},
		{"missing colon", `{"a" 1}`, `p.json:1:6: expected ":", found '1'`},
		{"missing comma in list", `{"a": [1 2]}`, `p.json:1:10: expected "," or "]", found '2'`},
		{"two documents", "{}\n{}", "p.json:2:1: expected the end of the file, found '{'"},
		{"cut off", "{\n  \"a\": {", "p.json:2:9: the file ends too early, a bracket or quote is not closed"},
		{"open string", "{\"a", "p.json:1:4: the file ends too early, a bracket or quote is not closed"},
		{"merge marker", "<<<<<<< HEAD\n{}", "p.json:1:1: expected a value, found '<'"},
		{"dsh", `{"dsh": 1}`, "p.json:1:9: dsh must be an object"},
		{"profile", `{"dsh": {"profile": []}}`, "p.json:1:21: dsh.profile must be an object"},
		{"bundles", "{\"dsh\": {\"profile\": {\n\"bundles\": \"x\"}}}", "p.json:2:12: dsh.profile.bundles must be a list of package names"},
		{"bundle", "{\"dsh\": {\"profile\": {\n\"bundles\": [\"x\", 1]}}}", "p.json:2:18: dsh.profile.bundles must be a list of package names"},
		{"patchReload", `{"dsh": {"profile": {"patchReload": "Live"}}}`, `p.json:1:37: dsh.profile.patchReload must be "live" or "startup"`},
		{"patchReload type", `{"dsh": {"profile": {"patchReload": {}}}}`, `p.json:1:37: dsh.profile.patchReload must be "live" or "startup"`},
		{"dependencies", `{"dependencies": []}`, "p.json:1:18: dependencies must be an object"},
		{"spec", "{\"devDependencies\": {\n\"a\": 1}}", `p.json:2:6: the spec of "a" in devDependencies must be a string`},
		{"too deep", strings.Repeat("[", 20000), "p.json:1:10001: brackets are nested too deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseManifest("p.json", []byte(test.text))
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
			if typed, ok := errors.AsType[*ManifestError](err); !ok && !strings.Contains(test.want, "must hold") {
				t.Errorf("%T is no ManifestError", err)
			} else if ok && typed.Path != "p.json" {
				t.Errorf("path %q", typed.Path)
			}
		})
	}
}

func FuzzManifest(f *testing.F) {
	for _, test := range editTests {
		f.Add(test.before, "new", "^1.0.0")
	}
	f.Add("\ufeff{}", "a", "")
	f.Add(`{"dependencies":{"a":"1","a":"2"},"devDependencies":{"a":"3"},"dsh":null}`, "a", "\u2028<")
	f.Add(`{"dsh":{"profile":{"bundles":[ "x" ]}},"dsh":{"profile":null}}`, "@s/x", "1")
	n := 0
	for text := range duplicated {
		if n++; n%10 == 0 {
			f.Add(text, "a", "1")
		}
	}
	f.Fuzz(func(t *testing.T, text, name, spec string) {
		m, err := ParseManifest("package.json", []byte(text))
		if err != nil {
			return
		}
		if got, want := string(m.Bytes()), strings.TrimPrefix(text, "\ufeff"); got != want {
			t.Fatalf("parsed and written back: %q", got)
		}
		if !utf8.ValidString(name) || !utf8.ValidString(spec) {
			return
		}
		checkEdits(t, strings.TrimPrefix(text, "\ufeff"), name, spec)
	})
}

func BenchmarkParseManifest(b *testing.B) {
	tmpl, err := LookupTemplate("web")
	if err != nil {
		b.Fatal(err)
	}
	text := tmpl.manifest(Name{"web"})
	for b.Loop() {
		if _, err := ParseManifest("package.json", text); err != nil {
			b.Fatal(err)
		}
	}
}
