package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install/store"
	"dsh/internal/staging"
)

// stock is a shelf whose packages have content in a store.
type stock struct {
	shelf
	t       *testing.T
	store   *store.Store
	edition int // sets the content of one stock's packages apart from another's
}

func (s stock) find(ctx context.Context, spec Spec) (*Package, error) {
	pkg, err := s.shelf.find(ctx, spec)
	if err != nil {
		return nil, err
	}
	if pkg.Origin.Kind == Link {
		pkg.Bin = map[string]string{"linked": "cli.js"}
		return pkg, nil
	}
	// What is in the archive hangs on nothing but what the package is.
	var key uint64
	for _, c := range pkg.describe() {
		key = key*31 + uint64(c)
	}
	rnd := rand.New(rand.NewPCG(key, uint64(s.edition)))
	files := map[string]string{
		"package.json": fmt.Sprintf(`{"name": %q, "version": %q}`, pkg.Name, pkg.Version),
		"index.js":     fmt.Sprintf("// %s, edition %d", pkg.describe(), s.edition),
	}
	if rnd.IntN(3) == 0 {
		pkg.Bin = map[string]string{"tool": "cli.js", pkg.Name: "cli.js"}
		if rnd.IntN(4) > 0 {
			files["cli.js"] = "#!/usr/bin/env node"
		}
	}
	for _, name := range pkg.Bundled {
		files["node_modules/"+name+"/index.js"] = "// brought along by " + pkg.Name
	}
	if rnd.IntN(3) == 0 {
		files[fmt.Sprintf("node_modules/p%d/stray.js", rnd.IntN(8))] = "// nobody said that it is here"
	}
	if rnd.IntN(6) == 0 {
		files["node_modules/.bin/stray"] = "#!/bin/sh"
	}
	entry, err := s.store.AddTarball(ctx, bytes.NewReader(tarball(s.t, files)), store.Integrity{})
	if err != nil {
		return nil, err
	}
	pkg.Integrity = entry.Integrity
	return pkg, nil
}

// tarball is that of a package.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	tarred := tar.NewWriter(zipped)
	for _, name := range sortedKeys(files) {
		header := &tar.Header{Name: "package/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}
		if err := tarred.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := tarred.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tarred.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// ground is a profile directory whose node_modules is laid out in tests.
type ground struct {
	place staging.Place
	store *store.Store
}

func newGround(t *testing.T, s *store.Store) ground {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := ground{staging.Place{Dir: filepath.Join(home, "profiles", "x"), State: filepath.Join(home, "state", "x")}, s}
	if err := os.MkdirAll(g.place.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return g
}

// layOut makes node_modules what the lock says, the skipped packages left out.
func (g ground) layOut(t *testing.T, lock *Lock, skipped map[string]bool) TreeChange {
	t.Helper()
	now, err := readPresent(g.place.Dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := staging.Begin(t.Context(), g.place, staging.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{Dir: g.place.Dir, Files: g.place.Dir, Tx: tx, Store: g.store, present: now}
	find, ctx, done := j.sources(t.Context())
	defer done()
	change, err := j.stage(ctx, find.contents, &tree{
		dir: g.place.Dir, files: g.place.Dir, lock: lock, text: lock.Bytes(), entries: map[store.Integrity]store.Entry{}, skipped: maps.Clone(skipped),
	})
	if err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// entries is the content of every package of a lock.
func (g ground) entries(lock *Lock) map[store.Integrity]store.Entry {
	entries := map[store.Integrity]store.Entry{}
	for _, n := range lock.Nodes {
		if entry, ok := g.store.Get(n.Integrity); ok {
			entries[n.Integrity] = entry
		}
	}
	return entries
}

// listing is what stands in node_modules: contents, targets of links, folders.
func (g ground) listing(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(g.place.Dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := filepath.Rel(g.place.Dir, file)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			list[filepath.ToSlash(at)] = "folder"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			list[filepath.ToSlash(at)] = "link to " + strings.ReplaceAll(target, g.place.Dir, "PROFILE")
		default:
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			list[filepath.ToSlash(at)] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// lockFor resolves wishes against a stock.
func lockFor(t *testing.T, s stock, locked *Lock, wishes []Wish) *Lock {
	t.Helper()
	root, err := resolveShelf(t, s, locked, wishes)
	if err != nil {
		t.Fatal(err)
	}
	return lockOf(root, wishes)
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s := store.Open(t.TempDir())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// checkChange lays out the locks one after the other, and compares what
// stands there in the end with the last of them laid out afresh.
func checkChange(t *testing.T, s *store.Store, locks ...*Lock) {
	t.Helper()
	changed, fresh := newGround(t, s), newGround(t, s)
	for _, lock := range locks {
		changed.layOut(t, lock, nil)
	}
	fresh.layOut(t, locks[len(locks)-1], nil)
	if diff := cmp.Diff(fresh.listing(t), changed.listing(t)); diff != "" {
		t.Error(diff)
	}
}

func TestChangeOfNestedPackages(t *testing.T) {
	for name, c := range map[string]struct {
		shelf         shelf
		before, after []Wish
	}{
		"a package goes below one that stays in one that is replaced": {
			shelf{
				"g@1.0.0": {"p@^1", "q@^3"}, "g@2.0.0": {"p@^1"}, "p@1.0.0": {"q@^1"}, "p@2.0.0": nil,
				"q@1.0.0": nil, "q@2.0.0": nil, "q@3.0.0": nil,
			},
			wish("g@^1", "p@^2", "q@^2"), wish("g@^2", "p@^2", "q@^2"),
		},
		"a package goes with what stands below it": {
			shelf{"g@1.0.0": {"p@^1"}, "p@1.0.0": {"q@^1"}, "p@2.0.0": nil, "q@1.0.0": nil, "q@2.0.0": nil},
			wish("g@^1", "p@^2", "q@^2"), wish("p@^2", "q@^2"),
		},
		"the last package below another goes": {
			shelf{"g@1.0.0": {"@s/p@^1"}, "@s/p@1.0.0": nil, "@s/p@2.0.0": nil},
			wish("@s/p@^2", "g@^1"), wish("@s/p@^1", "g@^1"),
		},
		"a package comes into the place of what an archive brings along": {
			shelf{"g@1.0.0": {"p@^1", "bundles q"}, "p@1.0.0": {"q@^1"}, "p@2.0.0": nil, "q@1.0.0": nil},
			wish("g@^1"), wish("g@^1", "p@^2"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stock{c.shelf, t, openStore(t), 0}
			before := lockFor(t, s, nil, c.before)
			checkChange(t, s.store, before, lockFor(t, s, before, c.after))
		})
	}
}

// TestArchiveWithNodeModules nests a package where the archive of its parent
// has files though it does not say so, and takes it away again.
func TestArchiveWithNodeModules(t *testing.T) {
	s := openStore(t)
	content := func(name, version string, files map[string]string) Located {
		entry, err := s.AddTarball(t.Context(), bytes.NewReader(tarball(t, files)), store.Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		return Located{Package: &Package{Name: name, Version: version, Integrity: entry.Integrity}}
	}
	outer := content("outer", "1.0.0", map[string]string{"package.json": `{"name": "outer", "version": "1.0.0"}`, "node_modules/@s/inner/old.js": "old", "node_modules/.bin/old": "old"})
	inner := content("@s/inner", "2.0.0", map[string]string{"package.json": `{"name": "@s/inner", "version": "2.0.0"}`, "new.js": "new"})
	inner.Bin = map[string]string{"inner": "new.js"}
	wanted := map[string]string{"outer": "*"}
	without := &Lock{Wanted: wanted, Nodes: map[string]Located{"node_modules/outer": outer}}
	with := &Lock{Wanted: wanted, Nodes: map[string]Located{"node_modules/outer": outer, "node_modules/outer/node_modules/@s/inner": inner}}
	g := newGround(t, s)
	g.layOut(t, with, nil)
	list := g.listing(t)
	const at = "node_modules/outer/node_modules/@s/inner/"
	if list[at+"new.js"] != "new" || list[at+"old.js"] != "" {
		t.Errorf("got %q", list)
	}
	checkChange(t, s, with, without)
	checkChange(t, s, without, with)
	checkChange(t, s, with, without, with)
}

func TestProgramsFollowTheContent(t *testing.T) {
	s := openStore(t)
	lock := func(files map[string]string) *Lock {
		entry, err := s.AddTarball(t.Context(), bytes.NewReader(tarball(t, files)), store.Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		return &Lock{Wanted: map[string]string{"a": "*"}, Nodes: map[string]Located{"node_modules/a": {Package: &Package{
			Name: "a", Version: "1.0.0", Integrity: entry.Integrity, Bin: map[string]string{"a": "cli.js"},
		}}}}
	}
	with := lock(map[string]string{"package.json": `{"name": "a", "version": "1.0.0"}`, "cli.js": ""})
	without := lock(map[string]string{"package.json": `{"name": "a", "version": "1.0.0"}`})
	checkChange(t, s, with, without)
	checkChange(t, s, without, with)
}

// TestChangesEqualFreshTrees takes random profiles from one random tree to the
// next, with packages left out and packages that somebody deleted, and expects
// what a fresh profile holds.
func TestChangesEqualFreshTrees(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "cli.js"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	nested, links := 0, 0
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		content := openStore(t)
		var stocks []stock
		var wishes [][]Wish
		for edition := range 3 {
			s, w := randomShelf(rnd)
			s["base@1.0.0"] = nil // without any package the folder stays where it was, and is not made anew
			stocks = append(stocks, stock{s, t, content, edition})
			wishes = append(wishes, w)
		}
		changed := newGround(t, content)
		var lock *Lock
		for step := range 5 {
			w := append(wish("base@*"), wishes[rnd.IntN(len(wishes))]...)
			if rnd.IntN(2) == 0 {
				w = slices.Insert(w, 1, Wish{Name: "linked", Wanted: "link:" + filepath.ToSlash(folder)})
			}
			locked := lock
			if rnd.IntN(3) == 0 {
				locked = nil
			}
			lock = lockFor(t, stocks[rnd.IntN(len(stocks))], locked, w)
			skipped := map[string]bool{}
			ours := &tree{lock: lock, entries: changed.entries(lock)}
			for _, at := range sortedKeys(lock.Nodes) {
				// Where an archive has files at the place of what is left out,
				// nothing tells whose files stand there, and they are laid out again.
				if up := parentPlace(at); lock.Nodes[at].Optional && rnd.IntN(4) == 0 && (up == "" || !bringsAlong(ours.entries[lock.Nodes[up].Integrity], strings.TrimPrefix(at, up+"/"))) {
					skipped[at] = true
				}
				if strings.Count(at, "node_modules/") > 1 {
					nested++
				}
				if lock.Nodes[at].Origin.Kind == Link {
					links++
				}
			}
			changed.layOut(t, lock, skipped)
			fresh := newGround(t, content)
			fresh.layOut(t, lock, skipped)
			if diff := cmp.Diff(fresh.listing(t), changed.listing(t)); diff != "" {
				t.Fatalf("seed %d, step %d:\n%s", seed, step, diff)
			}
			if again := changed.layOut(t, lock, skipped); again != (TreeChange{}) {
				t.Errorf("seed %d, step %d: with nothing to do %+v is done", seed, step, again)
			}
			if places := sortedKeys(lock.Nodes); len(places) > 0 && rnd.IntN(3) == 0 {
				if err := os.RemoveAll(filepath.Join(changed.place.Dir, filepath.FromSlash(places[rnd.IntN(len(places))]))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if nested < 50 || links < 10 {
		t.Errorf("only %d nested packages and %d links: the trees are too simple", nested, links)
	}
}
