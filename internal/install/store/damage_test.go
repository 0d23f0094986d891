package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"dsh/internal/fault"
)

// damages are the ways in which an entry may be found.
var damages = map[string]func(e Entry) error{
	"whole":         func(e Entry) error { return nil },
	"gone":          func(e Entry) error { return os.RemoveAll(e.dir) },
	"no index":      func(e Entry) error { return os.Remove(filepath.Join(e.dir, indexName)) },
	"a file gone":   func(e Entry) error { return os.Remove(e.path("lib/f1")) },
	"a folder gone": func(e Entry) error { return os.RemoveAll(e.path("lib")) },
	"a file for a folder": func(e Entry) error {
		return errors.Join(os.RemoveAll(e.path("lib")), os.WriteFile(e.path("lib"), nil, 0o644))
	},
	"a folder for a file": func(e Entry) error { return errors.Join(os.Remove(e.path("a")), os.Mkdir(e.path("a"), 0o755)) },
	"cut":                 func(e Entry) error { return errors.Join(os.Chmod(e.path("a"), 0o644), os.Truncate(e.path("a"), 0)) },
	"a file in the place": func(e Entry) error { return errors.Join(os.RemoveAll(e.dir), os.WriteFile(e.dir, nil, 0o644)) },
	"an empty folder":     func(e Entry) error { return errors.Join(os.RemoveAll(e.dir), os.Mkdir(e.dir, 0o755)) },
}

func someArchive(t *testing.T) []byte {
	entries := []entry{{name: "package/a", body: "a"}}
	for i := range 40 {
		entries = append(entries, entry{name: fmt.Sprintf("package/lib/f%d", i), body: "x"})
	}
	return tgz(t, entries...)
}

// However an entry is found, adding its content makes it whole, for several
// processes at once, and none of them loses what it was given.
func TestAddingMends(t *testing.T) {
	archive := someArchive(t)
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				root := t.TempDir()
				dir := filepath.Join(root, "store")
				first := Open(dir)
				e, err := add(t, first, archive, Integrity{})
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(damage(e), first.Close()); err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				for i := range 6 {
					group.Go(func() {
						s := Open(dir) // as another process has it
						defer s.Close()
						e, err := s.AddTarball(context.Background(), bytes.NewReader(archive), sumOf(archive))
						if err == nil {
							err = e.Link(filepath.Join(root, fmt.Sprint("laid out ", i)), Auto, nil)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				if e, ok := Open(dir).Get(sumOf(archive)); !ok || !e.Intact() {
					t.Error("the entry is not whole")
				}
				if left, err := filepath.Glob(filepath.Join(dir, "*tmp*")); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			}
		})
	}
}

func TestDamagedEntry(t *testing.T) {
	archive := someArchive(t)
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			s := Open(filepath.Join(t.TempDir(), "store"))
			e, err := add(t, s, archive, Integrity{})
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(e); err != nil {
				t.Fatal(err)
			}
			whole := name == "whole" || name == "no index" // its files are
			if e.Intact() != whole {
				t.Errorf("intact: %t", e.Intact())
			}
			whole = whole || name == "cut" // sizes are for Intact and Check
			err = e.Link(filepath.Join(t.TempDir(), "x"), Auto, nil)
			damaged, ok := errors.AsType[*DamagedError](err)
			switch {
			case whole && err != nil:
				t.Error(err)
			case !whole && (!ok || damaged.Integrity != e.Integrity || !e.Has(damaged.File) || fault.ClassOf(err) != fault.Environment):
				t.Errorf("laid out: %v", err)
			}
			if err := s.Drop(e.Integrity); err != nil {
				t.Fatal(err)
			}
			_, kept := s.Get(e.Integrity)
			if _, err := os.Lstat(e.dir); kept != (name == "whole") || (err == nil) != kept {
				t.Errorf("kept after the drop: %t, %v", kept, err)
			}
		})
	}
}

func TestNoEntryIsNotLinked(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "x")
	if err := (Entry{}).Link(dst, Auto, nil); err == nil {
		t.Error("nothing was laid out")
	}
	if _, err := os.Lstat(dst); err == nil || (Entry{}).Intact() {
		t.Error("there is something of nothing")
	}
}

// What was not there a moment ago was taken away, whoever has put it back since.
func TestAnEntryThatCameBackWasLost(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	t.Cleanup(func() { _ = s.Close() })
	e, err := add(t, s, someArchive(t), Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	for file, err := range map[string]error{"": fs.ErrNotExist, "lib/f1": &fs.PathError{Op: "linkat", Path: "lib/f1", Err: fs.ErrNotExist}} {
		if _, ok := errors.AsType[*DamagedError](e.lost(err, file)); !ok {
			t.Errorf("%q: %v does not count as damage", file, err)
		}
	}
	if err := e.lost(fs.ErrPermission, "a"); err != fs.ErrPermission {
		t.Errorf("a file that may not be read: %v", err)
	}
}
