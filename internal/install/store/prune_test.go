package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/staging"
)

// pruneAll takes out what choose accepts.
func pruneAll(s *Store, choose func(Stored) bool) error {
	return s.Prune(context.Background(), "test", nil, func(list []Stored) ([]Stored, error) {
		return slices.DeleteFunc(list, func(x Stored) bool { return !choose(x) }), nil
	})
}

func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := Open(dir)
	if list, err := s.Entries(); err != nil || len(list) > 0 {
		t.Errorf("no store holds %v, %v", list, err)
	}
	if err := pruneAll(s, func(Stored) bool { return true }); err != nil {
		t.Errorf("pruning no store: %v", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("pruning made a store")
	}

	var kept, gone Entry
	for i, body := range []string{"kept", "gone", "no index"} {
		e, err := add(t, s, tgz(t, entry{name: "package/a", body: body}, entry{name: "package/b", body: "b"}), Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			kept = e
		case 1:
			gone = e
		case 2:
			if err := os.Remove(filepath.Join(e.dir, indexName)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"xx", "aa/short", "README"} { // nobody's of ours
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int64]bool{}
	for _, x := range list {
		sizes[x.Bytes] = x.Listed
		if _, err := os.Lstat(x.Dir()); err != nil || x.Added.IsZero() {
			t.Errorf("%s: %v, added %v", x.Integrity, err, x.Added)
		}
	}
	if diff := cmp.Diff(map[int64]bool{5: true, 0: false}, sizes); diff != "" || len(list) != 3 {
		t.Errorf("%d entries, sizes: %s", len(list), diff)
	}

	no := errors.New("no")
	if err := s.Prune(t.Context(), "test", nil, func([]Stored) ([]Stored, error) { return list, no }); !errors.Is(err, no) {
		t.Errorf("an error of the choice: %v", err)
	}
	if again, err := s.Entries(); err != nil || len(again) != 3 {
		t.Errorf("after an error: %d entries, %v", len(again), err)
	}

	if err := pruneAll(s, func(x Stored) bool { return x.Integrity != kept.Integrity }); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Get(gone.Integrity); ok {
		t.Error("the entry is still there")
	}
	if e, ok := s.Get(kept.Integrity); !ok || e.Check() != nil {
		t.Error("the other entry is not whole")
	}
	if list, err := s.Entries(); err != nil || len(list) != 1 {
		t.Errorf("in the end: %v, %v", list, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{useName, "README", "aa", "xx", kept.Integrity.hex()[:2]}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), slices.DeleteFunc(names, func(n string) bool { return n == lockName })); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// Nothing is taken out of a store that somebody has open.
func TestPruneWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	user := Open(dir)
	if _, err := user.AddTarball(t.Context(), bytes.NewReader(someArchive(t)), Integrity{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := Open(dir)
	err := s.Prune(ctx, "test", func(staging.Holder) { cancel() }, func([]Stored) ([]Stored, error) {
		t.Error("pruned a store in use")
		return nil, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a store in use: %v", err)
	}
	// The one who waited waits again, and is let in when the other closes.
	if err := s.Prune(t.Context(), "test", func(staging.Holder) {
		if err := user.Close(); err != nil {
			t.Error(err)
		}
	}, func(list []Stored) ([]Stored, error) { return list, nil }); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Entries(); err != nil || len(list) > 0 {
		t.Errorf("in the end: %v, %v", list, err)
	}
}
