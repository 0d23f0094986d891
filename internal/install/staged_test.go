package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install/store"
)

func TestStagedPackages(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	packages := store.Open(filepath.Join(dir, "store"))
	defer packages.Close()
	if err := os.WriteFile(filepath.Join(dir, "folder", "package.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	entry, err := packages.AddFolder(t.Context(), filepath.Join(dir, "folder"))
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string, origin Origin) Located {
		return Located{Package: &Package{Name: name, Version: "1.0.0", Origin: origin, Integrity: entry.Integrity}}
	}
	nodes := map[string]Located{
		"node_modules/stored":  node("stored", Origin{}),
		"node_modules/skipped": node("skipped", Origin{}),
		"node_modules/linked":  node("linked", Origin{Link, "../linked"}),
	}
	before := &Lock{Nodes: map[string]Located{
		"node_modules/gone": node("gone", Origin{}), "node_modules/stored": node("stored", Origin{}),
		"node_modules/linked": node("linked", Origin{Link, "../elsewhere"}),
	}}
	r := &Result{
		tree: &tree{
			dir: dir, files: dir, lock: &Lock{Nodes: nodes}, entries: map[store.Integrity]store.Entry{entry.Integrity: entry},
			skipped: map[string]bool{"node_modules/skipped": true}, laid: everywhere,
		},
		before: present{lock: before}, locked: before,
	}
	at := func(name string) string { return filepath.Join(dir, "node_modules", name) }
	for name, want := range map[string]Staged{
		"stored": {at("stored"), entry.Dir()}, "linked": {filepath.Join(filepath.Dir(dir), "linked"), filepath.Join(filepath.Dir(dir), "linked")},
		"by-hand": {at("by-hand"), at("by-hand")}, "gone": {}, "skipped": {}, "../x": {}, "": {},
	} {
		got, ok := r.Staged(name)
		if !ok {
			got = Staged{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", name, diff)
		}
	}
	for name, want := range map[string]bool{"stored": true, "linked": false, "gone": false, "skipped": false, "by-hand": false} {
		if got := r.Kept(name); got != want {
			t.Errorf("%s is kept: %v", name, got)
		}
	}
	r.before = present{foreign: "npm"}
	if _, ok := r.Staged("by-hand"); ok {
		t.Error("what another program put there is kept")
	}
}
