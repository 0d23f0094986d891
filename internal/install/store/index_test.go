package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var someIndex = index{boot: "a boot", files: []File{file("a", "a", false), file("bin/x y.js", "#!", true), file("leer", "", false)}}

func TestIndexRoundTrip(t *testing.T) {
	for boot, want := range map[string]string{"": "", "6d1f": "6d1f", "two words": "", "two\nlines": ""} {
		for _, files := range [][]File{{}, someIndex.files} {
			got, err := parseIndex(string(index{boot, files}.format()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(index{want, files}, got, cmp.AllowUnexported(index{})); diff != "" {
				t.Errorf("boot %q (-want +got):\n%s", boot, diff)
			}
		}
	}
}

// Whatever part of an index a power loss leaves, it is not taken for a shorter one.
func TestCutIndex(t *testing.T) {
	text := string(someIndex.format())
	for i := range len(text) {
		if _, err := parseIndex(text[:i]); err == nil {
			t.Errorf("the first %d bytes of %d are an index", i, len(text))
		}
		if _, err := parseIndex(text[:i] + "\x00" + text[i+1:]); err == nil {
			t.Errorf("byte %d may be lost", i)
		}
	}
}

func TestOldIndex(t *testing.T) {
	got, err := parseIndex("dsh-index 1\n- 1 a b\nx 12 bin/x.js\n")
	if err != nil {
		t.Fatal(err)
	}
	want := index{files: []File{{Path: "a b", Size: 1}, {Path: "bin/x.js", Size: 12, Executable: true}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(index{})); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{
		"", "dsh-index 1", "dsh-index 3\n", "dsh-index 1\n- 1 a", "dsh-index 1\n- -1 a\n", "dsh-index 1\n- 1 ../a\n",
		"dsh-index 1\n- 1 .\n", "dsh-index 1\nr 1 a\n", "dsh-index 1\n-\n", "dsh-index 1\n- 1\n", "dsh-index 1\n- x a\n",
	} {
		if _, err := parseIndex(text); err == nil {
			t.Errorf("%q is an index", text)
		}
	}
}

// An entry that an earlier version made counts, by its sizes.
func TestOldEntry(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	e, err := add(t, s, someArchive(t), Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	old := "dsh-index 1\n"
	for _, f := range e.Files() {
		old += fmt.Sprintf("- %d %s\n", f.Size, f.Path)
	}
	if err := os.Remove(filepath.Join(e.dir, indexName)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.dir, indexName), []byte(old), 0o444); err != nil {
		t.Fatal(err)
	}
	overwrite(t, e.path("a"), "b")
	got, ok := s.Get(e.Integrity)
	if !ok || got.Check() != nil || !got.Sound() {
		t.Errorf("an old entry does not count: %t, %v", ok, got.Check())
	}
	overwrite(t, e.path("a"), "longer")
	if got.Check() == nil || got.Sound() {
		t.Error("a wrong size was not noticed")
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add(string(someIndex.format()))
	f.Add("dsh-index 1\n- 1 a b\nx 12 bin/x.js\n")
	f.Add("dsh-index 2 -\nend " + strings.Repeat("0", 64) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := parseIndex(text)
		if err != nil {
			return
		}
		again, err := parseIndex(string(x.format()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x.files, again.files); diff != "" {
			t.Error(diff)
		}
	})
}
