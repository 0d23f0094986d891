package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	someFiles = []File{file("a", "a", false), file("bin/x y.js", "#!", true), file("leer", "", false)}
	someIndex = index{boot: "aboot", files: newListing(someFiles, facts{})}
	inside    = cmp.AllowUnexported(index{}, listing{})
)

// oldIndex is an index as the version before wrote it.
func oldIndex(boot string, files []File) string {
	text := "dsh-index 2 " + boot + "\n"
	for _, f := range files {
		kind := "-"
		if f.Executable {
			kind = "x"
		}
		text += fmt.Sprintf("%s %d %x %s\n", kind, f.Size, f.Hash, f.Path)
	}
	return text + fmt.Sprintf("end %x\n", sha256.Sum256([]byte(text)))
}

// thirdIndex is an index as the version before wrote it, without links and traits.
func thirdIndex(boot string, files []File) []byte {
	l := newListing(files, facts{})
	out := []byte("dsh-index 3 " + boot + "\n")
	out = binary.AppendUvarint(out, uint64(l.count))
	for _, part := range []string{l.dirs, l.names, l.meta} {
		out = binary.AppendUvarint(out, uint64(len(part)))
	}
	out = append(out, l.dirs+l.names+l.meta+l.hashes...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// What an earlier version does not tell of an entry is read from its files.
func TestThirdIndex(t *testing.T) {
	got, err := parseIndex(thirdIndex("aboot", someFiles))
	if diff := cmp.Diff(someIndex, got, inside); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for text, want := range map[string][2]bool{
		`{"scripts":{"postinstall":"x"}}`:              {true, false},
		`{"scripts":{"prepare":"x"}}`:                  {false, true},
		`{"scripts":{"p\u0072epare":"x"}}`:             {false, true},
		`{"scripts":{"prepack":"x"}}`:                  {false, true},
		`{"scripts":{"preinstall":"x","prepare":"y"}}`: {true, true},
		`{"scripts":{"install":""}}`:                   {},
		`{"scripts":{"test":"npm install"}}`:           {},
		`{"description":"postinstall"}`:                {},
		`{"scripts":`:                                  {},
		`{}`:                                           {},
	} {
		s := Open(filepath.Join(t.TempDir(), "store"))
		e, err := add(t, s, tgz(t, entry{name: "package/package.json", body: text}), Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{e.HasScripts(), e.HasPrepare()}; got != want {
			t.Errorf("%s: %v", text, got)
		}
		if err := errors.Join(os.Remove(filepath.Join(e.dir, indexName)), os.WriteFile(filepath.Join(e.dir, indexName), thirdIndex("-", e.Files()), 0o444)); err != nil {
			t.Fatal(err)
		}
		again, ok := s.Get(e.Integrity)
		if !ok || again.Check() != nil {
			t.Fatal("the earlier index does not read")
		}
		if got := [2]bool{again.HasScripts(), again.HasPrepare()}; got != want {
			t.Errorf("%s, listed by an earlier version: %v", text, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := Open(filepath.Join(t.TempDir(), "store"))
	native, err := add(t, s, tgz(t, entry{name: "package/package.json", body: "{}"}, entry{name: "package/binding.gyp", body: "{}"}), Integrity{})
	if err != nil || !native.HasScripts() {
		t.Errorf("a binding.gyp does not count: %v", err)
	}
}

func TestIndexRoundTrip(t *testing.T) {
	for boot, want := range map[string]string{"": "", "6d1f": "6d1f", "two words": "", "two\nlines": ""} {
		linked := append(slices.Clone(someFiles), File{Path: "zz/l", Link: "../package.json"})
		for _, files := range [][]File{{}, someFiles, linked} {
			got, err := parseIndex(index{boot, newListing(files, facts{})}.format())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(index{want, newListing(files, facts{})}, got, inside); diff != "" {
				t.Errorf("boot %q (-want +got):\n%s", boot, diff)
			}
			listed, err := got.files.files()
			if diff := cmp.Diff(files, listed); diff != "" || err != nil {
				t.Errorf("boot %q (-want +got), %v:\n%s", boot, err, diff)
			}
		}
	}
}

// Whatever part of an index a power loss leaves, it is not taken for a shorter one.
func TestCutIndex(t *testing.T) {
	for _, text := range []string{string(someIndex.format()), oldIndex("aboot", someFiles)} {
		if _, err := parseIndex([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for i := range len(text) {
			if _, err := parseIndex([]byte(text[:i])); err == nil {
				t.Errorf("the first %d bytes of %d are an index", i, len(text))
			}
			if _, err := parseIndex([]byte(text[:i] + string(text[i]^1) + text[i+1:])); err == nil {
				t.Errorf("byte %d may be lost", i)
			}
		}
	}
}

func TestOldIndex(t *testing.T) {
	for text, want := range map[string]index{
		"dsh-index 1\n- 1 a b\nx 12 bin/x.js\n": {files: newListing([]File{{Path: "a b", Size: 1}, {Path: "bin/x.js", Size: 12, Executable: true}}, facts{})},
		oldIndex("-", someFiles):                {files: newListing(someFiles, facts{})},
		oldIndex("some", nil):                   {boot: "some", files: newListing(nil, facts{})},
	} {
		got, err := parseIndex([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, inside); diff != "" {
			t.Error(diff)
		}
	}
	for _, text := range []string{
		"", "dsh-index 1", "dsh-index 3\n", "dsh-index 4 -\n", "dsh-index 5 -\n", "dsh-index 6 -\n", "dsh-index 1\n- 1 a\x00b\n", "dsh-index 1\n- 9223372036854775807 a\n", "dsh-index 1\n- 1 a", "dsh-index 1\n- -1 a\n", "dsh-index 1\n- 1 ../a\n",
		"dsh-index 1\n- 1 .\n", "dsh-index 1\nr 1 a\n", "dsh-index 1\n-\n", "dsh-index 1\n- 1\n", "dsh-index 1\n- x a\n",
	} {
		if _, err := parseIndex([]byte(text)); err == nil {
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
	if got.Check() == nil || inBoot(s, "another").sound(e.Integrity) {
		t.Error("a wrong size was not noticed")
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add(someIndex.format())
	f.Add(index{"", newListing([]File{{Path: "a", Size: 1}, {Path: "d/l", Link: "../a"}}, facts{traitsKnown | hasScripts, "n@1"})}.format())
	f.Add(thirdIndex("-", someFiles))
	f.Add([]byte("dsh-index 1\n- 1 a b\nx 12 bin/x.js\n"))
	f.Add([]byte(oldIndex("-", someFiles)))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := parseIndex(data)
		if err != nil {
			return
		}
		again, err := parseIndex(x.format())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x.files, again.files, inside); diff != "" {
			t.Error(diff)
		}
	})
}
