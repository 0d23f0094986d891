package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const text = "\xef\xbb\xbf" + `{
		"name": "@s/n", "version": "1.0.0", "Version": "2.0.0",
		"dependencies": {"a": "^1", "b\u002dc": "*", "odd": 5, "gone": null, "any": ""},
		"Dependencies": {"x": "1"},
		"optionalDependencies": {"o": "1"},
		"peerDependencies": {"p": ">=1", "q": "2"},
		"peerDependenciesMeta": {"q": {"optional": true}, "p": {"optional": false}, "r": null, "t": {"optional": 1, "Optional": false}},
		"bundledDependencies": ["b-c", "a", "a", 7],
		"engines": {"node": ">=18"},
		"os": ["linux", "", "!win32"], "cpu": "x64", "libc": [],
		"bin": {"tool": "./cli.js", "../../up": "..\\..\\x.js", "bad": 1, "c:\\d": "e"},
		"Bin": {"other": "other.js"},
		"dsh": {"bundle": {"patch": "./p.yml"}}
	}`
	want := &Manifest{
		Name: "@s/n", Version: "1.0.0",
		Dependencies:         map[string]string{"a": "^1", "b-c": "*", "any": ""},
		OptionalDependencies: map[string]string{"o": "1"},
		PeerDependencies:     map[string]string{"p": ">=1", "q": "2"},
		OptionalPeers:        []string{"q", "t"},
		BundleDependencies:   []string{"a", "b-c"},
		Engines:              map[string]string{"node": ">=18"},
		OS:                   []string{"linux", "!win32"},
		CPU:                  []string{"x64"},
		Bin:                  map[string]string{"tool": "cli.js", "up": "x.js", "d": "e"},
		Layer:                true,
	}
	got, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

func TestOddTypes(t *testing.T) {
	odd := []string{`null`, `true`, `false`, `0`, `-1.5e9`, `""`, `"s"`, `[]`, `[""]`, `{}`, `{"": ""}`, `[[{"a":[1]}], "x"]`, `{"a": {"b": []}}`}
	for _, field := range []string{
		"name", "version", "optionalDependencies", "peerDependencies", "peerDependenciesMeta", "bundleDependencies",
		"bundledDependencies", "engines", "os", "cpu", "libc", "bin", "dsh",
	} {
		for _, value := range odd {
			text := fmt.Sprintf(`{%q: %s, "dependencies": {"after": "1"}}`, field, value)
			m, err := Parse([]byte(text))
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if m.Dependencies["after"] != "1" {
				t.Errorf("%s: what follows is lost: %+v", text, m)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"null", "[]", `"x"`, "1"} {
		if _, err := Parse([]byte(text)); !errors.Is(err, ErrNoObject) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "{", `{"name": "a",}`, `{"name": "a"} x`} {
		_, err := Parse([]byte(text))
		if _, ok := errors.AsType[*json.SyntaxError](err); !ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPrograms(t *testing.T) {
	for bin, want := range map[string]map[string]string{
		`"./x.js"`:         {"n": "x.js"},
		`["lib/a.js", ""]`: {"a.js": "lib/a.js"},
		`{"": "x"}`:        nil,
		`{".": "x"}`:       nil,
		`{"..": "x"}`:      nil,
		`{"a/..": "x"}`:    nil,
		`{"a": ""}`:        nil,
		`{"a": "../.."}`:   nil,
		`{"a": "."}`:       nil,
		`{"a\u0000": "x"}`: nil,
		`{"a": "x\n"}`:     nil,
		`{"a?": "x"}`:      nil,
		`{"` + strings.Repeat("a", 251) + `": "x"}`: nil,
		`{"a": "x/../../y"}`:                        {"a": "y"},
		`{"a": "/y"}`:                               {"a": "y"},
		`{"b/x": "2", "a/x": "1", "c:x": "3"}`:      {"x": "1"},
		`{"x": "2", "y/x": "3", "a\\x": ""}`:        {"x": "2"},
	} {
		for range 20 { // in whatever order maps are walked
			m, err := Parse([]byte(`{"name": "@s/n", "bin": ` + bin + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, m.Bin); diff != "" {
				t.Fatalf("bin %s (-want +got):\n%s", bin, diff)
			}
		}
	}
	m, err := Parse([]byte(`{"bin": "x.js"}`))
	if err != nil || m.Bin != nil {
		t.Errorf("a program without a name: %v, %v", m, err)
	}
}

func TestBundled(t *testing.T) {
	for text, want := range map[string][]string{
		`"bundleDependencies": true`:                                {"a", "b"},
		`"bundleDependencies": {"z": 1, "": 1, "y": 1}`:             {"y", "z"},
		`"bundleDependencies": false, "bundledDependencies": ["z"]`: nil,
		`"bundledDependencies": ["z", ""]`:                          {"z"},
		`"bundledDependencies": [""]`:                               nil,
	} {
		m, err := Parse([]byte(`{` + text + `, "dependencies": {"b": "1", "a": "2"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, m.BundleDependencies); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"name":"n","bin":{"a/b":"../x","..":"y"},"os":["",1],"bundleDependencies":true,"dependencies":{"a":""}}`)
	f.Add(`{"name":"n","bin":["a",""],"peerDependenciesMeta":{"a":{"optional":1}},"dsh":{"bundle":null}}`)
	f.Add(`{"name":"n","bin":"\ud800","cpu":"","libc":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for _, list := range [][]string{m.OS, m.CPU, m.Libc, m.OptionalPeers, m.BundleDependencies} {
			if slices.Contains(list, "") || (list != nil && len(list) == 0) {
				t.Errorf("%q: an empty text in %q", text, list)
			}
		}
		for name, file := range m.Bin {
			cleanName, cleanFile, ok := Program(name, file)
			if !ok || cleanName != name || cleanFile != file || path.Base(name) != name || path.Clean("/" + file)[1:] != file {
				t.Errorf("%q: the program %q of %q is not clean", text, name, file)
			}
		}
		again, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("%q reads in two ways:\n%s", text, diff)
		}
	})
}

// Identity says what Parse says, or nothing.
func TestIdentity(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"name": "@s/n", "version": "1.0.0", "x": {"name": "y"}}`: {"@s/n", "1.0.0"},
		"\xef\xbb\xbf" + `{"n\u0061me": "\u006e", "version": "1"}`: {"n", "1"},
		`{"name": "a", "name": "b", "version": 5}`:                 {"b", ""},
		`{"name": ["a"], "Version": "1"}`:                          {"", ""},
		`{"name": "a", "version": "1"`:                             {"", ""},
		`{"name": "a", "version": "1"} x`:                          {"", ""},
		`[{"name": "a"}]`:                                          {"", ""},
		``:                                                         {"", ""},
		`{"version": "2", "scripts": {"version": "3", "name": "c"}, "name":"z"}`: {"z", "2"},
	} {
		name, version := Identity([]byte(text))
		if got := [2]string{name, version}; got != want {
			t.Errorf("%s: %q", text, got)
		}
		if m, err := Parse([]byte(text)); err == nil && (m.Name != name || m.Version != version) {
			t.Errorf("%s: %q %q, and Parse says %q %q", text, name, version, m.Name, m.Version)
		}
	}
}
