package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestVerify(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	if err := s.Verify(t.Context(), func(Stored, error) { t.Error("there is something in no store") }); err != nil {
		t.Fatal(err)
	}
	entries := someEntries(t, s)
	overwrite(t, entries[0].path("a"), "b") // of the same size
	if err := os.Remove(filepath.Join(entries[1].dir, indexName)); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(s.dir, ".dsh-tmp-aaaaaaaaaaaa") // by a dead process
	if err := errors.Join(os.MkdirAll(filepath.Join(left, "new", "1"), 0o755), os.WriteFile(filepath.Join(left, "lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	verify := func() map[Integrity]string {
		found := map[Integrity]string{}
		err := s.Verify(t.Context(), func(stored Stored, err error) {
			found[stored.Integrity] = "whole"
			if err != nil {
				found[stored.Integrity] = err.Error()
				err = s.Drop(stored.Integrity)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := map[Integrity]string{
		entries[0].Integrity: (&DamagedError{entries[0].Integrity, "a"}).Error(),
		entries[1].Integrity: errNoIndex.Error(),
		entries[2].Integrity: "whole",
	}
	if diff := cmp.Diff(want, verify(), cmp.AllowUnexported(Integrity{})); diff != "" {
		t.Error(diff)
	}
	want = map[Integrity]string{entries[2].Integrity: "whole"}
	if diff := cmp.Diff(want, verify(), cmp.AllowUnexported(Integrity{})); diff != "" {
		t.Errorf("after what is damaged was dropped: %s", diff)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("what a dead process left is still there")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Verify(ctx, func(Stored, error) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMetadata(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metadata")
	now := time.Now()
	if got, err := PruneMetadata(dir, now, false); err != nil || got != (Metadata{}) {
		t.Errorf("of no directory: %v, %v", got, err)
	}
	old := now.Add(-time.Hour)
	for name, when := range map[string]time.Time{"one/a": old, "one/@s+b": now, "two/c": old, "one/.dsh-tmp-aaaaaaaaaaaa/new/1": now, "one/.dsh-tmp-aaaaaaaaaaaa/lock": now} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("12345"), 0o600), os.Chtimes(path, when, when))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dryRun := range []bool{true, false} {
		if got, err := PruneMetadata(dir, now.Add(-time.Minute), dryRun); err != nil || got != (Metadata{2, 10}) {
			t.Errorf("dry run %t: %v, %v", dryRun, got, err)
		}
	}
	if got, err := MetadataIn(dir); err != nil || got != (Metadata{1, 5}) {
		t.Errorf("what is left: %v, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "one", "@s+b")); err != nil {
		t.Error(err)
	}
}
