package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// Where no links can be made there are copies.
func TestCopiesForLinks(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "lib", "deep"), 0o755), os.WriteFile(filepath.Join(dir, "lib", "a"), []byte("a"), 0o644),
		os.WriteFile(filepath.Join(dir, "lib", "deep", "b"), []byte("b"), 0o644), os.WriteFile(filepath.Join(dir, "lib-c"), []byte("c"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	files := []File{
		file("lib-c", "c", false), file("lib/a", "a", false), file("lib/deep/b", "b", true), {Path: "lib/l", Link: "a"},
		{Path: "x/all", Link: "../lib"}, {Path: "x/lost", Link: "../nowhere"}, {Path: "x/one", Link: "../lib/a"},
	}
	from, err := staging.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	target := t.TempDir()
	to, err := staging.OpenDir(target)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	copies := copier{files: files}
	for _, f := range files {
		if f.Link == "" {
			continue
		}
		if err := copies.lay(f, from, to); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	for name := range laid(t, target) {
		got[name] = true
	}
	if diff := cmp.Diff(map[string]bool{"lib/l": true, "x/all/a": true, "x/all/deep/b": true, "x/one": true}, got); diff != "" {
		t.Error(diff)
	}
}

// A few links that each lead to much are not copied without end.
func TestTooManyCopies(t *testing.T) {
	defer func(was unpack.Limits) { maxCopies = was }(maxCopies)
	files := []File{{Path: "a", Link: "lib"}, {Path: "b", Link: "lib"}, {Path: "lib/x", Size: 3}, {Path: "lib/y", Size: 4}}
	for limits, fits := range map[unpack.Limits]bool{{Unpacked: 14, Entries: 4}: true, {Unpacked: 13, Entries: 4}: false, {Unpacked: 14, Entries: 3}: false} {
		maxCopies = limits
		if _, err := withCopies(files); (err == nil) != fits || err != nil && fault.ClassOf(err) != fault.Policy {
			t.Errorf("%v: %v", limits, err)
		}
	}
}
