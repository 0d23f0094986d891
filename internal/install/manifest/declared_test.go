package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestDeclares(t *testing.T) {
	for text, want := range map[string]string{
		``:                                      ``,
		`[]`:                                    ``,
		"\xef\xbb\xbf" + `{"main": "./a.js"}`:   `main a.js`,
		`{"main": "a.js", "exports": "./b.js"}`: `exports b.js`,
		`{"main": "a.js", "exports": null}`:     `main a.js`,
		`{"Main": "a.js", "MAIN": "b.js"}`:      ``,
		`{"bin": {"types": "t.js", "b": "b.js"}}`:                                                                         `bin b.js, bin t.js`,
		`{"bin": "./cli.js", "files": ["lib/a", "./lib", "*.md", "!x", "/out/", ""]}`:                                     `bin cli.js, files lib, files out`,
		`{"exports": {"import": "./b.mjs", "require": "./a.cjs", "types": "./t.d.ts"}}`:                                   `exports a.cjs|b.mjs`,
		`{"exports": {".": {"types@>=5": "./t.d.ts", "node": {"import": "./b.mjs"}, "default": ["./a.js", null]}}}`:       `exports a.js|b.mjs`,
		`{"exports": {"./a": "./x.js", "./b": "./x.js", "./c": null, "./d": {"types": "./t.d.ts"}, "./e/*": "./e/*.js"}}`: `exports x.js, exports e/*.js`,
		`{"dsh": {"bundle": {"patch": ["./p.yml", "q.yml"]}}}`:                                                            `dsh.bundle.patch p.yml, dsh.bundle.patch q.yml`,
		`{"dsh": {"bundle": true}, "main": 1, "bin": [], "files": "lib", "exports": {".": 7}}`:                            ``,
	} {
		var got []string
		for _, d := range Declares([]byte(text)) {
			got = append(got, d.Field+" "+strings.Join(d.Files, "|"))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s declares %q, want %q", text, got, want)
		}
	}
}

func TestDeclaredThere(t *testing.T) {
	for _, test := range []struct {
		field, file, files string
		want               bool
	}{
		{"main", "lib/a", "lib/a.js", true},
		{"main", "lib", "lib/index.node", true},
		{"main", "lib/a.js", "index.js", true},
		{"main", "lib/a.js", "b.js", false},
		{"bin", "lib/a", "lib/a.js", false},
		{"exports", "lib/a.js", "index.js", false},
		{"exports", "lib/*.js", "lib", true},
		{"exports", "lib/x-*/*.js", "lib", true},
		{"exports", "lib/*.js", "", false},
		{"exports", "*.js", "", true},
		{"exports", "../a.js", "", true},
		{"bin", "..", "", true},
		{"bin", "/a", "", true},
	} {
		has := func(name string) bool { return slices.Contains(strings.Fields(test.files), name) }
		if got := (Declared{Field: test.field}).There(test.file, has); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func FuzzDeclares(f *testing.F) {
	f.Add(`{"main": "a", "exports": {"x": ["*"]}, "files": ["!a", "/"], "bin": {"a": "b"}, "dsh": {"bundle": {"patch": "p"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, d := range Declares([]byte(text)) {
			key := fmt.Sprintf("%q", d)
			if seen[key] || len(d.Files) == 0 || !slices.IsSorted(d.Files) {
				t.Errorf("it declares %s", key)
			}
			seen[key] = true
			for _, file := range d.Files {
				if file == "" || path.Clean(file) != file || !d.There(file, func(string) bool { return true }) {
					t.Errorf("it declares %s", key)
				}
			}
		}
	})
}
