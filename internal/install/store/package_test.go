package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What package it is is known of what this version and earlier ones stored.
func TestPackage(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"name": "@s/n", "version": "1.0.0"}`:                               {"@s/n", "1.0.0"},
		`{"name": "n", "version": "1.0.0", "scripts": {"postinstall": "x"}}`: {"n", "1.0.0"},
		`{"name": "n"}`: {"n", ""},
		`{}`:            {"", ""},
		`{"name"`:       {"", ""},
	} {
		s := Open(filepath.Join(t.TempDir(), "store"))
		e, err := add(t, s, tgz(t, entry{name: "package/package.json", body: text}), Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		again, _ := s.Get(e.Integrity)
		closed, err := s.ParseClosure(FormatClosure([]Entry{e}))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(e.dir, indexName)
		if err := errors.Join(os.Remove(file), os.WriteFile(file, thirdIndex("-", e.Files()), 0o444)); err != nil {
			t.Fatal(err)
		}
		earlier, _ := s.Get(e.Integrity)
		for i, e := range []Entry{e, again, closed[e.Integrity], earlier} {
			name, version := e.Package()
			if got := [2]string{name, version}; got != want {
				t.Errorf("%s, %d: %q", text, i, got)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
