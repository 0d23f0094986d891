package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install/store"
)

func TestScriptsIn(t *testing.T) {
	tests := map[string]struct {
		text  string
		git   bool
		files string
		want  string // event:text, prepare scripts before a bar
	}{
		"none":                         {text: `{"name": "a"}`},
		"no object":                    {text: `[]`},
		"others are nobody's business": {text: `{"scripts": {"test": "x", "prepublishOnly": "x", "start": "x"}}`},
		"in order":                     {text: `{"scripts": {"postinstall": "c", "install": "b", "preinstall": "a"}}`, want: "| preinstall:a install:b postinstall:c"},
		"empty and no text":            {text: `{"scripts": {"postinstall": " ", "install": 1, "preinstall": null}}`},
		"prepare of a published one":   {text: `{"scripts": {"prepare": "x", "prepack": "x"}}`},
		"a byte order mark":            {text: "\xef\xbb\xbf" + `{"scripts": {"install": "a"}}`, want: "| install:a"},
		"native":                       {text: `{}`, files: "binding.gyp", want: "| install:node-gyp rebuild"},
		"native with its own":          {text: `{"scripts": {"preinstall": "a"}}`, files: "binding.gyp", want: "| preinstall:a"},
		"native for its author":        {text: `{"gypfile": false}`, files: "binding.gyp"},
		"native, and said so":          {text: `{"gypfile": true}`, files: "binding.gyp", want: "| install:node-gyp rebuild"},
		"for its author, and scripts":  {text: `{"gypfile": false, "scripts": {"postinstall": "a"}}`, files: "binding.gyp", want: "| postinstall:a"},
		"native and more":              {text: `{"scripts": {"postinstall": "a"}}`, files: "binding.gyp", want: "| install:node-gyp rebuild postinstall:a"},
		"prepare of a repository":      {text: `{"scripts": {"prepare": "a", "postinstall": "b"}}`, git: true, files: "index.js", want: "prepare:a | postinstall:b"},
		"all of a repository":          {text: `{"scripts": {"prepack": "c", "prepare": "b", "prepublish": "a"}}`, git: true, want: "prepublish:a prepare:b prepack:c |"},
		"prepack with main":            {text: `{"main": "./lib/a.js", "scripts": {"prepack": "c"}}`, git: true, files: "lib/a.js"},
		"prepack without main":         {text: `{"main": "./lib/a.js", "scripts": {"prepack": "c"}}`, git: true, files: "index.js", want: "prepack:c |"},
		"prepack without index.js":     {text: `{"scripts": {"prepack": "c"}}`, git: true, want: "prepack:c |"},
		"prepublishOnly":               {text: `{"scripts": {"prepublishOnly": "c"}}`, git: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := scriptsIn([]byte(test.text), test.git, func(file string) bool { return slices.Contains(strings.Fields(test.files), file) })
			words := func(list []Script) (out []string) {
				for _, s := range list {
					out = append(out, s.Event+":"+s.Text)
				}
				return out
			}
			got := strings.TrimSpace(strings.Join(words(s.prepare), " ") + " | " + strings.Join(words(s.install), " "))
			if got == "|" {
				got = ""
			}
			if got != test.want || s.none() != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDeclaredMissing(t *testing.T) {
	tests := map[string]struct{ text, files, want string }{
		"nothing declared":  {`{}`, "", ""},
		"main":              {`{"main": "./lib/index.js"}`, "", "lib/index.js"},
		"main there":        {`{"main": "./lib/index.js"}`, "lib/index.js", ""},
		"main without end":  {`{"main": "lib/index"}`, "lib/index.js", ""},
		"main is a folder":  {`{"main": "lib/"}`, "lib/index.js", ""},
		"exports":           {`{"exports": {".": {"types": "./t.d.ts", "import": "./a.mjs", "default": ["./b.cjs", null]}, "./x/*": "./x/*.js"}}`, "b.cjs", "a.mjs x"},
		"exports, a text":   {`{"exports": "./a.js"}`, "", "a.js"},
		"a pattern":         {`{"exports": {"./x/*": "./x/*.js"}}`, "x x/y.js", ""},
		"everything":        {`{"exports": {"./*": "./*"}}`, "", ""},
		"programs":          {`{"bin": {"a": "bin/a.js", "b": "./bin/b.js"}}`, "bin/b.js", "bin/a.js"},
		"a layer":           {`{"dsh": {"bundle": {"patch": ["./cordis.patch.yml", "b.yml"]}}}`, "b.yml", "cordis.patch.yml"},
		"files":             {`{"files": ["lib/**/*.js", "dist", "!dist/x", "*.md", "/out/a"]}`, "dist", "lib out"},
		"each once":         {`{"main": "lib/a.js", "exports": "./lib/a.js"}`, "", "lib/a.js"},
		"outside":           {`{"main": "../a.js"}`, "", ""},
		"of another type":   {`{"main": 1, "bin": 2, "exports": 3, "files": "lib"}`, "", ""},
		"no package at all": {`null`, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(declaredMissing([]byte(test.text), func(file string) bool { return slices.Contains(strings.Fields(test.files), file) }), " ")
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzScriptsOfAPackage(f *testing.F) {
	f.Add(`{"main": "a", "exports": {"x": ["*"]}, "files": ["!a", "/"], "scripts": {"prepare": "x"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		has := func(string) bool { return false }
		for _, s := range scriptsIn([]byte(text), true, has).all() {
			if strings.TrimSpace(s.Text) == "" {
				t.Errorf("an empty %s", s.Event)
			}
		}
		missing := declaredMissing([]byte(text), has)
		if !slices.IsSorted(missing) || slices.Contains(missing, "") {
			t.Errorf("missing: %q", missing)
		}
	})
}

func FuzzBuilt(f *testing.F) {
	f.Add(builtHeader + buildID("a").String() + " node_modules/a\n")
	f.Add(builtHeader)
	f.Fuzz(func(t *testing.T, text string) {
		built := parseBuilt([]byte(text))
		if len(built) == 0 {
			return
		}
		if diff := cmp.Diff(fmt.Sprint(built), fmt.Sprint(parseBuilt(formatBuilt(built)))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestParseBuilt(t *testing.T) {
	id := buildID("a")
	built := map[string]store.Integrity{"node_modules/a": id, "node_modules/@x/b c": buildID("b")}
	text := string(formatBuilt(built))
	if diff := cmp.Diff(fmt.Sprint(built), fmt.Sprint(parseBuilt([]byte(text)))); diff != "" {
		t.Error(diff)
	}
	for _, broken := range []string{"", text[:len(text)-1], text[1:], text + "x\n", text + "sha512-x y\n"} {
		if got := parseBuilt([]byte(broken)); len(got) > 0 {
			t.Errorf("%q: %v", broken, got)
		}
	}
	if formatBuilt(nil) != nil {
		t.Error("nothing built has no file")
	}
}
