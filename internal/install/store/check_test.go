package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// overwrite gives a file another content, as root can.
func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// inBoot is the store as a process has it after another start of the machine.
func inBoot(s *Store, boot string) *Store {
	other := Open(s.dir)
	other.boot = boot
	return other
}

// sound is whether the store has an entry that may be used.
func (s *Store) sound(id Integrity) bool {
	e, ok := s.Get(id)
	return ok && e.Sound()
}

func TestContentIsChecked(t *testing.T) {
	s := inBoot(Open(filepath.Join(t.TempDir(), "store")), "first")
	defer s.Close()
	archive := someArchive(t)
	e, err := add(t, s, archive, Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(); err != nil {
		t.Errorf("a new entry: %v", err)
	}
	overwrite(t, e.path("lib/f1"), "y")
	damaged, ok := errors.AsType[*DamagedError](e.Check())
	if !ok || damaged.File != "lib/f1" || damaged.Integrity != e.Integrity {
		t.Errorf("a changed file: %v", e.Check())
	}
	if !e.Sound() {
		t.Error("sizes alone count in the boot that the entry was made in")
	}
	if err := s.Drop(e.Integrity); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Get(e.Integrity); ok {
		t.Error("a damaged entry is not dropped")
	}

	// Adding what is there, and is damaged, mends it.
	e, err = add(t, s, archive, Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, e.path("lib/f1"), "y")
	if e, err = add(t, s, archive, Integrity{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Check(); err != nil {
		t.Errorf("after adding it again: %v", err)
	}
}

// Contents are read once after the next start of the machine, and then not
// again; where boots cannot be told apart they are read every time.
func TestSoundAfterAStart(t *testing.T) {
	for name, c := range map[string]struct {
		made, now string
		damaged   bool // before it is used
		want      bool
		later     bool // when it is damaged after it was used
	}{
		"the same boot":          {"first", "first", true, true, true},
		"another boot":           {"first", "second", false, true, true},
		"another boot, damaged":  {"first", "second", true, false, false},
		"no boots":               {"", "", false, true, false},
		"no boots, damaged":      {"", "", true, false, false},
		"made where none is":     {"", "second", false, true, true},
		"made where none is and": {"", "second", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := inBoot(Open(filepath.Join(t.TempDir(), "store")), c.made)
			defer s.Close()
			e, err := add(t, s, someArchive(t), Integrity{})
			if err != nil {
				t.Fatal(err)
			}
			if c.damaged {
				overwrite(t, e.path("a"), "b")
			}
			later := inBoot(s, c.now)
			e, ok := later.Get(e.Integrity)
			if !ok || e.Sound() != c.want {
				t.Errorf("sound: %t, want %t", e.Sound(), c.want)
			}
			overwrite(t, e.path("a"), "b")
			if e.Sound() != c.later {
				t.Errorf("sound when it was changed later: %t, want %t", e.Sound(), c.later)
			}
		})
	}
}

func TestStands(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	e, err := add(t, s, someArchive(t), Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(dir string) error
		want   bool
	}{
		"as it was":      {func(string) error { return nil }, true},
		"with more":      {func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o644) }, true},
		"a copy":         {func(dir string) error { return replace(dir, "a", "a") }, true},
		"other content":  {func(dir string) error { return replace(dir, "a", "b") }, false},
		"another size":   {func(dir string) error { return replace(dir, "lib/f7", "longer") }, false},
		"a file gone":    {func(dir string) error { return os.Remove(filepath.Join(dir, "a")) }, false},
		"a folder gone":  {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "lib")) }, false},
		"all gone":       {os.RemoveAll, false},
		"a file instead": {func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) }, false},
		"a link for a": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a")), os.Symlink("lib/f1", filepath.Join(dir, "a")))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			if err := errors.Join(e.Link(dir, Auto, nil), c.change(dir)); err != nil {
				t.Fatal(err)
			}
			for _, checked := range []bool{false, true} {
				got, err := e.Stands(dir, checked)
				if err != nil || got != c.want {
					t.Errorf("stands, checked %t: %t, %v", checked, got, err)
				}
			}
		})
	}
	// What was not checked is read, though it is the same file.
	dir := filepath.Join(t.TempDir(), "x")
	if err := e.Link(dir, Auto, nil); err != nil {
		t.Fatal(err)
	}
	overwrite(t, filepath.Join(dir, "a"), "b")
	if got, err := e.Stands(dir, false); got || err != nil {
		t.Errorf("damaged together with its entry: %t, %v", got, err)
	}
	if got, err := (Entry{}).Stands(dir, true); got || err == nil {
		t.Errorf("an entry of nothing stands: %t, %v", got, err)
	}
	if (Entry{}).Check() == nil || (Entry{}).Sound() {
		t.Error("an entry of nothing is whole")
	}
}

// replace puts a new file in the place of a linked one.
func replace(dir, name, content string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	return errors.Join(os.Remove(path), os.WriteFile(path, []byte(content), 0o644))
}

// Only text that was written after the entry was made is somebody's work.
func TestEdited(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	e, err := add(t, s, someArchive(t), Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.Stat(filepath.Join(e.dir, indexName))
	if err != nil {
		t.Fatal(err)
	}
	earlier, later := index.ModTime().Add(-time.Minute), index.ModTime().Add(time.Minute)
	write := func(name, content string, when time.Time) func(string) error {
		return func(dir string) error {
			return errors.Join(replace(dir, name, content), os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), when, when))
		}
	}
	for name, c := range map[string]struct {
		changes []func(dir string) error
		want    bool
	}{
		"as it was":                {nil, false},
		"an edit":                  {[]func(string) error{write("a", "b", later)}, true},
		"a longer edit":            {[]func(string) error{write("lib/f1", "much longer", later)}, true},
		"an older file":            {[]func(string) error{write("a", "b", earlier)}, false},
		"an empty file":            {[]func(string) error{write("a", "", later)}, false},
		"zeros":                    {[]func(string) error{write("a", "\x00", later)}, false},
		"a file gone":              {[]func(string) error{func(dir string) error { return os.Remove(filepath.Join(dir, "a")) }}, false},
		"all gone":                 {[]func(string) error{os.RemoveAll}, false},
		"an edit and an old file":  {[]func(string) error{write("a", "b", later), write("lib/f1", "y", earlier)}, false},
		"an edit and what is more": {[]func(string) error{write("a", "b", later), write("lib/f1", "y", later)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			if err := e.Link(dir, Auto, nil); err != nil {
				t.Fatal(err)
			}
			for _, change := range c.changes {
				if err := change(dir); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := e.Edited(dir); got != c.want || err != nil {
				t.Errorf("edited: %t, %v", got, err)
			}
		})
	}
	if got, err := (Entry{}).Edited(t.TempDir()); got || err != nil {
		t.Errorf("edited from nothing: %t, %v", got, err)
	}
}
