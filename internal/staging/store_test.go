package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTempDir(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "store", "v1")
	dir, remove, err := TempDir(parent)
	must(t, err)
	put(t, dir+"/half/f", "x", 0o644)
	put(t, parent+"/entry/f", "x", 0o644)
	put(t, parent+"/.dsh-tmp-aaaaaaaaaaaa/lock", "", 0o644) // a dead process's
	put(t, parent+"/.dsh-tmp-aaaaaaaaaaaa/new/f", "", 0o644)
	put(t, parent+"/.dsh-tmp-not-ours/f", "", 0o644)

	_, removeOther, err := TempDir(parent)
	must(t, err)
	if got := tree(t, dir)["half/f"]; got == "" {
		t.Error("a directory in use was swept")
	}
	must(t, OS.RenameNew(dir, parent+"/published"), remove(), removeOther())
	want := map[string]string{"entry/": "", "entry/f": "-rw-r--r-- x", "published/": "", "published/half/": "", "published/half/f": "-rw-r--r-- x",
		".dsh-tmp-not-ours/": "", ".dsh-tmp-not-ours/f": "-rw-r--r-- "}
	if diff := cmp.Diff(want, tree(t, parent)); diff != "" {
		t.Error(diff)
	}
}

func TestSweepTemp(t *testing.T) {
	parent := t.TempDir()
	dir, remove, err := TempDir(parent)
	must(t, err)
	put(t, dir+"/half", "x", 0o644)
	put(t, parent+"/file", "x", 0o644)
	put(t, parent+"/.dsh-tmp-aaaaaaaaaaaa/lock", "", 0o644) // a dead process's
	put(t, parent+"/.dsh-tmp-aaaaaaaaaaaa/new/f", "", 0o644)
	must(t, SweepTemp(parent))
	if got := tree(t, dir)["half"]; got == "" {
		t.Error("a directory in use was swept")
	}
	must(t, remove())
	if diff := cmp.Diff(map[string]string{"file": "-rw-r--r-- x"}, tree(t, parent)); diff != "" {
		t.Error(diff)
	}
	if err := SweepTemp(parent + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}

// A sweep comes while the directory is there and its lock is not held yet: the
// directory is taken away, and another is made.
func TestTempDirSweptWhileMade(t *testing.T) {
	parent := t.TempDir()
	swept := 0
	d := disk{hooked{OS, func(op, path string) error {
		if op == "TryLock" && swept < 3 {
			swept++
			must(t, disk{OS}.sweepStage(filepath.Dir(path)))
		}
		return nil
	}}}
	dir, remove, err := d.tempDir(parent)
	must(t, err)
	put(t, dir+"/f", "x", 0o644)
	must(t, remove())
	if diff := cmp.Diff(map[string]string{}, tree(t, parent)); diff != "" || swept != 3 {
		t.Errorf("swept %d times: %s", swept, diff)
	}
}

// The maker gets the lock right after a sweep has given it back: what it then
// writes is not swept.
func TestSweepLeavesWhatCameLater(t *testing.T) {
	root := filepath.Join(t.TempDir(), "stage")
	put(t, root+"/lock", "", 0o644)
	put(t, root+"/new/dead", "", 0o644)
	d := disk{hooked{OS, func(op, path string) error {
		if op == "Remove" && filepath.Base(path) == "lock" { // the first call after the release
			put(t, root+"/new/live", "", 0o644)
		}
		return nil
	}}}
	must(t, d.sweepStage(root))
	if diff := cmp.Diff(map[string]string{"new/": "", "new/live": "-rw-r--r-- "}, tree(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestTempDirsAtOnce(t *testing.T) {
	parent := t.TempDir()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				dir, remove, err := TempDir(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(dir+"/f", nil, 0o644); err != nil {
					t.Error(err)
				}
				if err := remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]string{}, tree(t, parent)); diff != "" {
		t.Error(diff)
	}
}

func TestRenameNewRefuses(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/f", "f", 0o644)
	mkdir(t, dir+"/d")
	mkdir(t, dir+"/empty")
	link(t, "nothing", dir+"/l")
	before := tree(t, dir)
	for _, from := range []string{"f", "d"} {
		for _, to := range []string{"f", "d", "empty", "l"} {
			if from == to {
				continue
			}
			if err := OS.RenameNew(filepath.Join(dir, from), filepath.Join(dir, to)); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestSetAside(t *testing.T) {
	for name, refused := range map[string]bool{"renamed": false, "of an image": true} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir, to := filepath.Join(home, "entry"), filepath.Join(home, "aside")
			put(t, filepath.Join(dir, "files", "a"), "a", 0o444)
			put(t, filepath.Join(dir, "index"), "a", 0o444)
			var calls []string
			d := disk{hooked{OS, func(op, path string) error {
				calls = append(calls, op+" "+filepath.Base(path))
				if op == "Rename" && refused {
					return syscall.EXDEV
				}
				return nil
			}}}
			want := []string{"Rename aside"}
			if refused {
				want = []string{"Rename aside", "Remove index", "RemoveAll entry"}
			}
			must(t, d.setAside(dir, to, "index"))
			if diff := cmp.Diff(want, calls); diff != "" {
				t.Error(diff)
			}
			if there, err := d.exists(dir); there || err != nil {
				t.Errorf("it is there: %v, %v", there, err)
			}
			if there, err := d.exists(to); there == refused || err != nil {
				t.Errorf("it is aside: %v, %v", there, err)
			}
			if err := SetAside(dir, to+"2", "index"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("of nothing: %v", err)
			}
		})
	}
}
