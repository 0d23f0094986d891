package install

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// inModules is a path in the node_modules of profile x.
func (w *workshop) inModules(at string) string {
	return filepath.Join(w.ground("x").place.Dir, "node_modules", filepath.FromSlash(at))
}

// rewrite gives a file other content in its place, as root can, so that the
// store's file, which is the same one, has it too.
func rewrite(path, content string) error {
	return errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, []byte(content), 0o644))
}

// sameSize is the file's content with its first byte lost.
func sameSize(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text[0] = 0
	return rewrite(path, string(text))
}

var treeDamages = map[string]struct {
	damage func(w *workshop) error
	want   []string
}{
	"none": {func(*workshop) error { return nil }, []string{}},
	"a byte": {
		func(w *workshop) error { return sameSize(w.inModules("is-number/index.js")) }, []string{"node_modules/is-number"},
	},
	"a byte of a copy": {func(w *workshop) error {
		file := w.inModules("left/index.js")
		text, err := os.ReadFile(file)
		return errors.Join(err, os.Remove(file), os.WriteFile(file, text, 0o644), sameSize(file))
	}, []string{"node_modules/left"}},
	"a cut file": {
		func(w *workshop) error { return rewrite(w.inModules("is-odd/package.json"), "") }, []string{"node_modules/is-odd"},
	},
	"a file gone":    {func(w *workshop) error { return os.Remove(w.inModules("copied/cli.js")) }, []string{"node_modules/copied"}},
	"a package gone": {func(w *workshop) error { return os.RemoveAll(w.inModules("is-number")) }, []string{"node_modules/is-number"}},
	"a link gone":    {func(w *workshop) error { return os.Remove(w.inModules("linked")) }, []string{"node_modules/linked"}},
	"a link for a package": {func(w *workshop) error {
		return errors.Join(os.RemoveAll(w.inModules("left")), os.Symlink("is-odd", w.inModules("left")))
	}, []string{"node_modules/left"}},
	"programs gone": {func(w *workshop) error { return os.RemoveAll(w.inModules(".bin")) }, []string{"node_modules/.bin"}},
	"several": {func(w *workshop) error {
		return errors.Join(sameSize(w.inModules("packed/package.json")), os.RemoveAll(w.inModules("is-odd")))
	}, []string{"node_modules/is-odd", "node_modules/packed"}},
	"the marker":      {func(w *workshop) error { return rewrite(w.inModules(treeMarker), "\x00\x00") }, []string{"node_modules"}},
	"the marker gone": {func(w *workshop) error { return os.Remove(w.inModules(treeMarker)) }, []string{"node_modules"}},
	"everything":      {func(w *workshop) error { return os.RemoveAll(w.inModules("")) }, []string{"node_modules"}},
	"the store":       {func(w *workshop) error { return os.RemoveAll(filepath.Join(w.home, "store")) }, []string{}},
	"store and a file": {func(w *workshop) error {
		return errors.Join(os.RemoveAll(filepath.Join(w.home, "store")), rewrite(w.inModules("is-number/package.json"), ""))
	}, []string{"node_modules/is-number"}},
}

func TestDamaged(t *testing.T) {
	for name, c := range treeDamages {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && name == "a link for a package" {
				t.Skip("links need rights there")
			}
			t.Parallel()
			w := newWorkshop(t)
			w.everything("x")
			whole := w.ground("x").listing(t)
			w.must(c.damage(w))
			damaged := func() []string {
				t.Helper()
				packages := w.openStore()
				defer packages.Close()
				list, err := Damaged(w.ground("x").place.Dir, "", w.lock("x"), packages)
				w.must(err)
				return list
			}
			if diff := cmp.Diff(c.want, damaged()); diff != "" {
				t.Errorf("damaged (-want +got):\n%s", diff)
			}
			// A job that checks mends it, in the store as well.
			w.run("x", func(j *Job) (*Result, error) {
				j.Check = true
				return j.Restore(t.Context(), w.manifest("x"), w.lock("x"))
			})
			if diff := cmp.Diff(whole, w.ground("x").listing(t)); diff != "" {
				t.Errorf("after mending:\n%s", diff)
			}
			if diff := cmp.Diff([]string{}, damaged()); diff != "" {
				t.Errorf("still damaged:\n%s", diff)
			}
			packages := w.openStore()
			defer packages.Close()
			for at, n := range w.lock("x").Nodes {
				if entry, ok := packages.Get(n.Integrity); n.Origin.Kind != Link && (!ok || entry.Check() != nil) {
					t.Errorf("%s is not whole in the store: %t", at, ok)
				}
			}
		})
	}
}

// Whatever stands where another package manager laid packages out is its own.
func TestDamagedIsNotWhatOthersLaidOut(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	w.remove("profiles/x/node_modules/left")
	w.write("profiles/x/node_modules/.modules.yaml", "")
	packages := w.openStore()
	defer packages.Close()
	got, err := Damaged(w.ground("x").place.Dir, "", w.lock("x"), packages)
	if err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// A job that does not check leaves what looks right, however it came to be.
func TestOnlyCheckingReadsContents(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	w.must(sameSize(w.inModules("left/index.js")))
	before := w.identities("x")
	w.run("x", restore(t, w.manifest("x"), w.lock("x")))
	if diff := cmp.Diff(before, w.identities("x")); diff != "" {
		t.Error(diff)
	}
	// --force checks.
	w.run("x", func(j *Job) (*Result, error) { return j.Install(t.Context(), InstallOptions{Force: true}) })
	text, err := os.ReadFile(w.inModules("left/index.js"))
	if err != nil || text[0] == 0 {
		t.Errorf("laid out anew: %q, %v", text, err)
	}
}

// What a power loss may have taken is laid out anew, and what somebody edited
// stays.
func TestLost(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	edited := w.inModules("is-odd/index.js")
	w.must(errors.Join(os.Remove(edited), os.WriteFile(edited, []byte("// edited\n"), 0o644)))
	later := time.Now().Add(time.Minute)
	w.must(os.Chtimes(edited, later, later))
	want := w.ground("x").listing(t)
	w.must(sameSize(w.inModules("is-number/index.js")))
	w.must(os.Remove(w.inModules("@acme/bins/package.json")))

	packages := w.openStore()
	lost, err := Lost(w.ground("x").place.Dir, "", w.lock("x"), packages)
	w.must(errors.Join(err, packages.Close()))
	if diff := cmp.Diff([]string{"node_modules/@acme/bins", "node_modules/is-number"}, lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	result := w.run("x", func(j *Job) (*Result, error) {
		j.Anew = lost
		return j.Restore(t.Context(), w.manifest("x"), w.lock("x"))
	})
	if diff := cmp.Diff(want, w.ground("x").listing(t)); diff != "" {
		t.Errorf("after mending:\n%s", diff)
	}
	if diff := cmp.Diff(TreeChange{Changed: 2}, result.Tree); diff != "" {
		t.Error(diff)
	}
}
