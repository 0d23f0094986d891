package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install"
)

// shown is an index in lines.
func shown(index *Index) string {
	var b strings.Builder
	for i := range index.Entries {
		e := &index.Entries[i]
		fmt.Fprintf(&b, "%s", e.Name)
		if e.ID != "" {
			fmt.Fprintf(&b, " [%s]", e.ID)
		}
		if e.Version != "" {
			fmt.Fprintf(&b, " %s", e.Version)
		}
		if e.Deprecated {
			fmt.Fprintf(&b, " (deprecated, %s)", e.Replacement)
		}
		if e.Description() != "" {
			fmt.Fprintf(&b, ": %s", strings.Join(e.Descriptions, " / "))
		}
		b.WriteString("\n")
		if len(e.Keywords) > 0 {
			fmt.Fprintf(&b, "\tkeywords %s\n", strings.Join(e.Keywords, ", "))
		}
		if !e.Repository.IsZero() {
			fmt.Fprintf(&b, "\trepository %s %s\n", e.Repository, e.Repository.Directory)
		}
		if e.Package != "" {
			fmt.Fprintf(&b, "\tpackage %s\n", e.Package)
		}
		if e.Spec.Text != "" {
			fmt.Fprintf(&b, "\tspec %s\n", e.Spec.Shown())
		} else {
			fmt.Fprintf(&b, "\trefused (%s) %s\n", e.Class, e.Refused)
		}
		if len(e.Ignored) > 0 {
			fmt.Fprintf(&b, "\tignored %s\n", strings.Join(e.Ignored, ", "))
		}
		for _, note := range e.Notes {
			fmt.Fprintf(&b, "\tnote %s\n", note)
		}
	}
	for _, s := range index.Skipped {
		fmt.Fprintf(&b, "skipped %d %s: %s\n", s.At, s.Name, s.Why)
	}
	for _, note := range index.Notes {
		fmt.Fprintf(&b, "note %s\n", note)
	}
	if index.Updated != "" {
		fmt.Fprintf(&b, "updated %s\n", index.Updated)
	}
	return b.String()
}

// TestShapes reads catalogues in the shapes that communities publish.
func TestShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/shapes/*.*")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			index, err := Parse(text, Origin{})
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(file + ".want")
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(string(want), shown(index)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string, from Origin) *Index {
	t.Helper()
	index, err := Parse([]byte(text), from)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestBroken(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "it is empty",
		" \n":                             "it is empty",
		"<!DOCTYPE html><html>":           "a page for browsers",
		`{"plugins": [{"name": "x"`:       "cannot be read as JSON",
		`{"plugins": []} trailing`:        "cannot be read as JSON",
		`{"message": "Not Found"}`:        "no list of plugins",
		`{"plugins": "none"}`:             "no list of plugins",
		"just words":                      "no list of plugins",
		"a: [":                            "cannot be read as YAML",
		"\tx":                             "cannot be read as YAML",
		"a: &a [*a]":                      "cannot be read as YAML",
		strings.Repeat("[", 100000) + "]": "cannot be read as JSON",
		"name: x\nurl: https://github.com/a/b\n---\nwords": "no list of plugins",
	} {
		if _, err := Parse([]byte(text), Origin{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"[]", "\ufeff[]", `{"plugins": []}`, "plugins: []"} {
		if index := parse(t, text, Origin{}); len(index.Entries)+len(index.Skipped) != 0 {
			t.Errorf("%q: %+v", text, index)
		}
	}
}

// TestInvalidText leaves out the entry that is not valid UTF-8, and no other.
func TestInvalidText(t *testing.T) {
	for _, text := range []string{
		"[{\"name\": \"one\", \"npm\": \"one\"}, {\"name\": \"two\", \"npm\": \"two\", \"description\": \"\xff\xfe\"}, {\"name\": \"three\", \"npm\": \"three\"}]",
		"plugins:\n- {name: one, npm: one}\n- {name: two, npm: two, description: \"\xc3\x28\"}\n- {name: three, npm: three}\n",
	} {
		index := parse(t, text, Origin{})
		if len(index.Entries) != 2 || len(index.Skipped) != 1 || index.Skipped[0] != (Skipped{2, "two", "it is not valid UTF-8"}) {
			t.Errorf("%s", shown(index))
		}
	}
}

func TestLimits(t *testing.T) {
	text := "[" + strings.TrimSuffix(strings.Repeat(`{"name":"x","npm":"x"},`, maxEntries+5), ",") + "]"
	index := parse(t, text, Origin{})
	if len(index.Entries) != maxEntries || len(index.Notes) != 1 {
		t.Errorf("%d entries, %q", len(index.Entries), index.Notes)
	}
	long := strings.Repeat("ä", 5000)
	e := parse(t, fmt.Sprintf(`[{"name":%q,"npm":"x","description":%q,"install":{"spec":%q}}]`, long, long, long), Origin{}).Entries[0]
	if n := len([]rune(e.Name)); n != maxName+1 {
		t.Errorf("a name of %d characters", n)
	}
	if n := len([]rune(e.Description())); n != maxText+1 {
		t.Errorf("a description of %d characters", n)
	}
	if e.Spec.Text != "" || !strings.Contains(e.Refused, "longer than") || len(e.Refused) > 1000 {
		t.Errorf("%.80q", e.Refused)
	}
	if _, err := Parse(make([]byte, MaxBytes+1), Origin{}); err == nil {
		t.Error("too long a text was read")
	}
}

// TestOrigins: what a catalogue may name depends on where it comes from.
func TestOrigins(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		spec string
		from Origin
		want string // the spec, or a part of why not
	}{
		{"./plugin", Origin{Dir: dir}, "link:" + filepath.Join(dir, "plugin")},
		{"file:plugin", Origin{Dir: dir}, "file:" + filepath.Join(dir, "plugin")},
		{"x.tgz", Origin{Dir: dir}, filepath.Join(dir, "x.tgz")},
		{"./plugin", Origin{}, "a place of this machine"},
		{"git+file:///srv/x.git", Origin{Dir: dir}, "git+file:///srv/x.git"},
		{"git+file:///srv/x.git", Origin{}, "a place of this machine"},
		{"http://127.0.0.1:1/x.tgz", Origin{Loopback: true}, "http://127.0.0.1:1/x.tgz"},
		{"https://127.0.0.1:1/x.tgz", Origin{}, "a server of this machine"},
		{"https://[::1]/x.tgz", Origin{}, "a server of this machine"},
		{"https://0.0.0.0/x.tgz", Origin{}, "a server of this machine"},
		{"https://a.localhost/x.tgz", Origin{}, "a server of this machine"},
		{"git@github.com:o/r.git", Origin{SSH: true}, "git@github.com:o/r.git"},
		{"git+ssh://git@host.example/o/r.git", Origin{SSH: true}, "git+ssh://git@host.example/o/r.git"},
		{"git+ssh://git:word@host.example/o/r.git", Origin{SSH: true}, "a user in its address"},
		{"git+ssh://git@host.example/o/r.git", Origin{Dir: dir}, "fetched by ssh"},
		{"http://host.example/x.tgz", Origin{Dir: dir}, "without encryption"},
	} {
		spec, err := tt.from.admitted(choice{tt.spec, "its spec"})
		got := spec.Text
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s from %+v: %s, want %s", tt.spec, tt.from, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	index := parse(t, `[
		{"id": "one", "name": "Name", "npm": "pkg-a", "repository": "acme/a"},
		{"id": "two", "name": "Name", "npm": "pkg-b", "repository": "acme/b"},
		{"id": "Name2", "name": "one", "npm": "pkg-c"},
		{"id": "four", "npm": "same", "repository": "acme/same"},
		{"id": "five", "npm": "same", "repository": "mallory/same"},
		{"id": "six", "npm": "twice", "repository": "acme/twice"},
		{"id": "seven", "npm": "twice", "repository": "acme/twice"}]`, Origin{})
	for name, want := range map[string]string{
		"one": "pkg-a", "ONE": "pkg-a", "name2": "pkg-c", "pkg-b": "pkg-b", "acme/b": "pkg-b", "twice": "twice",
		"name":  `catalogue c has 2 entries that "name" can mean: one (pkg-a), two (pkg-b)`,
		"same":  `catalogue c has 2 entries that "same" can mean: four (same), five (same)`,
		"other": `catalogue c has no entry "other"`, "": `catalogue c has no entry ""`,
	} {
		got := ""
		if e, err := index.Find("c", name); err != nil {
			got = err.Error()
		} else {
			got = e.Package
		}
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestExpected(t *testing.T) {
	for spec, want := range map[string]bool{
		"https://github.com/acme/x/releases/download/v1/x.tgz":          false,
		"https://github.com/Acme/X/archive/refs/tags/v1.tar.gz":         false,
		"https://github.com/acme/x/releases/download/../../../m/x.tgz":  true,
		"https://github.com/acme/xy/releases/download/v1/x.tgz":         true,
		"https://other.example/acme/x/releases/download/v1/x.tgz":       true,
		"https://github.com/mallory/x/releases/download/acme/x/x-1.tgz": true,
		"x": true,
	} {
		e := parse(t, fmt.Sprintf(`[{"name":"x","repository":"acme/x","install":{"spec":%q}}]`, spec), Origin{}).Entries[0]
		if e.Spec.Text == "" {
			if strings.Contains(spec, "..") {
				continue
			}
			t.Fatal(e.Refused)
		}
		if got := !e.Expected().IsZero(); got != want {
			t.Errorf("%s: %t", spec, got)
		}
	}
}

func TestCommands(t *testing.T) {
	for line, want := range map[string]string{
		"dsh plugin add x":                                 "x",
		"dsh plugin --profile web add x --flag":            "x",
		"dsh --profile web plugin add x":                   "x",
		"dsh plugin add x --profile=web -E":                "x",
		"dsh plugin add -- x":                              "x",
		"  dsh   plugin\tinstall 'x@^1 || 2' ":             "x@^1 || 2",
		`dsh plugin add "x@>=1 <2"`:                        "x@>=1 <2",
		`dsh plugin add x\ y`:                              "x y",
		"dsh plugin add x#y":                               "x#y",
		"npx -y @deepseek-ai/dsh@latest plugin add x":      "x",
		"pnpm dsh plugin add x":                            "x",
		"pnpm exec dsh plugin add x":                       "x",
		"pnpm dlx @deepseek-ai/dsh plugin add x":           "x",
		"bunx dsh plugin i x":                              "x",
		"dsh plugin add x && dsh plugin add y":             "! more than one command",
		"dsh plugin add x; rm -rf ~":                       "! more than one command",
		"dsh plugin add x\nrm y":                           "! more than one command",
		"dsh plugin add x | sh":                            "! more than one command",
		"dsh plugin add x > /etc/passwd":                   "! more than one command",
		"dsh plugin add `id`":                              "! a shell would put",
		`dsh plugin add "$HOME"`:                           "! a shell would put",
		"dsh plugin add x # and more":                      "! a comment",
		"dsh plugin add 'x":                                "! has no end",
		`dsh plugin add x\`:                                "! has no end",
		"dsh plugin add":                                   "! adds nothing",
		"dsh plugin add x y":                               "! adds 2 packages",
		"dsh plugin remove x":                              "! not dsh plugin add",
		"dsh web":                                          "! not dsh plugin add",
		"npm install x":                                    "! no command of dsh",
		"npx x-installer":                                  "! no command of dsh",
		"npx @deepseek-ai/dshx plugin add x":               "! no command of dsh",
		"sudo dsh plugin add x":                            "! no command of dsh",
		"DSH_HOME=/x dsh plugin add x":                     "! no command of dsh",
		"":                                                 "! no command of dsh",
		"dsh plugin add x --registry=https://a.example":    "! it says --registry",
		"dsh --home /tmp plugin add x":                     "! it says --home",
		"dsh plugin add x --unknown value":                 "! adds 2 packages",
		"dsh plugin add 'a'\"b\"c":                         "abc",
		`dsh plugin add "a\"b\c"`:                          `a"b\c`,
		"dsh plugin add x --min-release-age 0 --profile w": "x",
	} {
		got, _, err := addedBy(line)
		if err != nil {
			got = "! " + err.Error()
		}
		if got != want && !(strings.HasPrefix(want, "! ") && err != nil && strings.Contains(got, want[2:])) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestRank(t *testing.T) {
	type plugin struct{ name, keyword, description string }
	order := []plugin{ // for "file sync", the best first
		{"file-sync", "", ""},
		{"filesync", "", ""},
		{"file-x", "sync", ""},
		{"file-y", "", "can sync"},
		{"x", "file sync", ""},
		{"y", "file", "can sync"},
		{"z", "", "can sync a file"},
	}
	var before Score
	for i, p := range order {
		score, ok := Rank([]string{"File", "SYNC"}, []string{p.name}, []string{p.keyword}, []string{p.description})
		if !ok || i > 0 && before.Compare(score) >= 0 {
			t.Errorf("%+v is not behind the one before: %+v after %+v", p, score, before)
		}
		before = score
	}
	if _, ok := Rank([]string{"file", "sync"}, []string{"file"}, nil, []string{"a file"}); ok {
		t.Error("a word is nowhere, and it fits")
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/shapes/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		index, err := Parse(text, Origin{})
		if err != nil {
			return
		}
		for i := range index.Entries {
			e := &index.Entries[i]
			if (e.Spec.Text == "") == (e.Refused == "") {
				t.Fatalf("a spec %q and a refusal %q", e.Spec.Text, e.Refused)
			}
			if k := e.Spec.Kind; e.Spec.Text != "" && (k == install.Link || k == install.Folder || k == install.Archive) {
				t.Fatalf("a place of this machine: %q", e.Spec.Text)
			}
			for _, text := range append(append([]string{e.ID, e.Name, e.Version, e.Replacement, e.Refused}, e.Descriptions...), append(append(e.Notes, e.Ignored...), e.Keywords...)...) {
				if Line(text, 1<<20) != text {
					t.Fatalf("%q would do something to a terminal", text)
				}
			}
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, line := range []string{"dsh plugin add x", `dsh plugin --profile "a b" add 'x'\''y'`, "npx -y dsh plugin add x && y"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if spec, _, err := addedBy(line); err == nil && spec == "" && !strings.ContainsAny(line, `'"`) {
			t.Fatalf("nothing of %q", line)
		}
	})
}
