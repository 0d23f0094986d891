package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// someEntries are entries of a store.
func someEntries(t testing.TB, s *Store) []Entry {
	t.Helper()
	var entries []Entry
	for _, body := range []string{"a", "bb", "ccc"} {
		e, err := add(t, s, tgz(t, entry{name: "package/" + body, body: body}, entry{name: "package/bin/run", body: "#!", mode: 0o755}), Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func TestClosure(t *testing.T) {
	s := inBoot(Open(filepath.Join(t.TempDir(), "store")), "first")
	defer s.Close()
	entries := someEntries(t, s)
	data := FormatClosure(entries)
	slices.Reverse(entries)
	if !bytes.Equal(data, FormatClosure(entries)) {
		t.Error("the order of the entries matters")
	}
	found, err := s.ParseClosure(data)
	if err != nil || len(found) != len(entries) {
		t.Fatalf("%d entries, %v", len(found), err)
	}
	for _, want := range entries {
		e := found[want.Integrity]
		files := want.Files()
		for i := range files {
			files[i].Hash = Hash{}
		}
		if diff := cmp.Diff(files, e.Files()); diff != "" {
			t.Error(diff)
		}
		if !e.Sound() || e.Check() != nil || !e.Has("bin/run") || e.Has("bin") || e.Dir() != want.Dir() {
			t.Errorf("%s is not the entry that it was", e.Integrity)
		}
		dst := filepath.Join(t.TempDir(), "x")
		if err := e.Link(dst, Auto, nil); err != nil {
			t.Fatal(err)
		}
		if stands, err := e.Stands(dst, false); err != nil || !stands {
			t.Errorf("stands: %t, %v", stands, err)
		}
	}
	if none, err := s.ParseClosure(FormatClosure(nil)); err != nil || len(none) != 0 {
		t.Errorf("a closure of nothing: %v, %v", none, err)
	}
	for i := range data {
		if _, err := s.ParseClosure(data[:i]); err == nil {
			t.Errorf("the first %d bytes of %d are a closure", i, len(data))
		}
		other := bytes.Clone(data)
		other[i] ^= 0x40
		if _, err := s.ParseClosure(other); err == nil {
			t.Errorf("byte %d may be another one", i)
		}
	}
}

// A closure vouches for its entries while the machine runs. Later they are
// looked at.
func TestClosureAfterAStart(t *testing.T) {
	s := inBoot(Open(filepath.Join(t.TempDir(), "store")), "first")
	defer s.Close()
	entries := someEntries(t, s)
	data := FormatClosure(entries)
	overwrite(t, entries[0].path("a"), "longer")
	for boot, sound := range map[string]bool{"first": true, "second": false} {
		found, err := inBoot(s, boot).ParseClosure(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := found[entries[0].Integrity].Sound(); got != sound {
			t.Errorf("a damaged entry in the %s boot: %t", boot, got)
		}
		again, err := inBoot(s, boot).ParseClosure(FormatClosure(slices.Collect(maps.Values(found))))
		if _, listed := again[entries[0].Integrity]; err != nil || listed != sound || len(again) < 2 {
			t.Errorf("a damaged entry is listed again in the %s boot: %t, %v", boot, listed, err)
		}
		if !found[entries[1].Integrity].Sound() {
			t.Errorf("a whole entry in the %s boot is not sound", boot)
		}
	}
	// One that was made anew meanwhile is as good as it was.
	if err := os.RemoveAll(entries[0].dir); err != nil {
		t.Fatal(err)
	}
	found, err := inBoot(s, "second").ParseClosure(data)
	if err != nil {
		t.Fatal(err)
	}
	if e := found[entries[0].Integrity]; e.Sound() || e.Check() == nil {
		t.Error("an entry that is gone is sound")
	}
	if _, err := add(t, inBoot(s, "second"), tgz(t, entry{name: "package/a", body: "a"}, entry{name: "package/bin/run", body: "#!", mode: 0o755}), entries[0].Integrity); err != nil {
		t.Fatal(err)
	}
	if e := found[entries[0].Integrity]; !e.Sound() || e.Check() != nil {
		t.Error("an entry that was mended is not sound")
	}
}

// An entry that a closure knows and the store has lost is found when it is laid
// out.
func TestClosureOfLostEntries(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	entries := someEntries(t, s)
	data := FormatClosure(entries)
	for i, damage := range []func(e Entry) error{
		func(e Entry) error { return os.RemoveAll(e.dir) },
		func(e Entry) error { return os.Remove(e.path("bin/run")) },
		func(e Entry) error { return os.RemoveAll(e.path("bin")) },
	} {
		if err := damage(entries[i]); err != nil {
			t.Fatal(err)
		}
		found, err := s.ParseClosure(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []Mode{Auto, Copy} {
			err = found[entries[i].Integrity].Link(filepath.Join(t.TempDir(), "x"), mode, nil)
			if damaged, ok := errors.AsType[*DamagedError](err); !ok || damaged.Integrity != entries[i].Integrity {
				t.Errorf("damage %d, mode %d: %v", i, mode, err)
			}
		}
	}
}

// A store over another one finds what the other has, and leaves it as it is.
func TestOpenOver(t *testing.T) {
	below := inBoot(Open(filepath.Join(t.TempDir(), "store")), "first")
	entries := someEntries(t, below)
	data := FormatClosure(entries)
	if err := below.Close(); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, below.dir)
	s := OpenOver(filepath.Join(t.TempDir(), "over"), below.dir)
	s.boot, s.below.boot = "second", "second"
	found, err := s.ParseClosure(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range entries {
		e, ok := s.Get(want.Integrity)
		if !ok || !e.Sound() || e.Dir() != want.Dir() || !found[want.Integrity].Sound() {
			t.Errorf("%s is not there", want.Integrity)
		}
	}
	other, err := s.AddTarball(context.Background(), bytes.NewReader(someArchive(t)), Integrity{})
	if err != nil || !strings.HasPrefix(other.Dir(), s.dir) {
		t.Errorf("added to %s: %v", other.Dir(), err)
	}
	if _, ok := s.Get(other.Integrity); !ok {
		t.Error("what was added is not there")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, treeOf(t, below.dir)); diff != "" {
		t.Errorf("the store below changed:\n%s", diff)
	}
}

// treeOf is every path below a directory and when it was changed.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			found[path] = info.ModTime().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Whatever is behind a right checksum, nothing panics and no file is outside.
func FuzzParseClosure(f *testing.F) {
	s := Open(filepath.Join(f.TempDir(), "store"))
	defer s.Close()
	data := FormatClosure(someEntries(f, s))
	f.Add(data[:len(data)-crc32.Size])
	f.Add([]byte(closureHeader + "-\n\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		data := binary.BigEndian.AppendUint32(body[:len(body):len(body)], crc32.Checksum(body, castagnoli))
		entries, err := s.ParseClosure(data)
		if err != nil {
			return
		}
		for id, e := range entries {
			if e.Integrity != id {
				t.Error("an entry has another's place")
			}
			for _, f := range e.Files() {
				if !filepath.IsLocal(filepath.FromSlash(f.Path)) || f.Size < 0 || !e.Has(f.Path) {
					t.Errorf("a file %q of %d bytes", f.Path, f.Size)
				}
			}
			_ = e.list.eachDir(func(dir string) error {
				if !filepath.IsLocal(filepath.FromSlash(dir)) {
					t.Errorf("a directory %q", dir)
				}
				return nil
			})
		}
	})
}
