package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// laid is every file below a directory with its permissions.
func laid(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("permissions are others there")
		return
	}
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	e, err := add(t, s, tgz(t,
		entry{name: "package/package.json", body: "{}"},
		entry{name: "package/bin/run", body: "#!", mode: 0o755},
		entry{name: "package/node_modules/a/index.js", body: "a"},
		entry{name: "package/node_modules/a/node_modules/deep/index.js", body: "deep"},
		entry{name: "package/node_modules/ab/index.js", body: "ab"},
		entry{name: "package/node_modules/a-b/index.js", body: "a-b"}, // its directory comes between those of a
		entry{name: "package/node_modules/@s/b/index.js", body: "b"},
		entry{name: "package/node_modules/.bin/a", body: "a", mode: 0o755},
	), Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"package.json": "-r--r--r--", "bin/run": "-r-xr-xr-x", "node_modules/a/index.js": "-r--r--r--",
		"node_modules/a-b/index.js": "-r--r--r--", "node_modules/a/node_modules/deep/index.js": "-r--r--r--", "node_modules/ab/index.js": "-r--r--r--",
		"node_modules/@s/b/index.js": "-r--r--r--", "node_modules/.bin/a": "-r-xr-xr-x",
	}
	less := map[string]string{
		"package.json": "-r--r--r--", "bin/run": "-r-xr-xr-x", "node_modules/ab/index.js": "-r--r--r--",
	}
	own := map[string]string{
		"package.json": "-rw-r--r--", "bin/run": "-rwxr-xr-x", "node_modules/ab/index.js": "-rw-r--r--",
	}
	skip := func(dir string) bool {
		return dir == "node_modules/a" || dir == "node_modules/a-b" || dir == "node_modules/@s/b" || dir == "node_modules/.bin"
	}
	for name, c := range map[string]struct {
		mode Mode
		skip func(string) bool
		want map[string]string
	}{
		"all": {Auto, nil, all}, "without some": {Auto, skip, less}, "copies": {Copy, skip, own},
	} {
		t.Run(name, func(t *testing.T) {
			dst := filepath.Join(t.TempDir(), "x")
			if err := e.Link(dst, c.mode, c.skip); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, laid(t, dst)); diff != "" {
				t.Error(diff)
			}
			for _, dir := range []string{"node_modules/a", "node_modules/a-b", "node_modules/.bin"} {
				if _, err := os.Lstat(filepath.Join(dst, filepath.FromSlash(dir))); (err == nil) != (c.skip == nil) {
					t.Errorf("%s: %v", dir, err)
				}
			}
			if err := e.Link(dst, c.mode, c.skip); !errors.Is(err, fs.ErrExist) {
				t.Errorf("over what is there: %v", err)
			}
		})
	}
	// Another package may stand in it already.
	dst := filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.MkdirAll(filepath.Join(dst, "node_modules", "a"), 0o755), os.WriteFile(filepath.Join(dst, "node_modules", "a", "index.js"), []byte("other"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := e.Link(dst, Auto, skip); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dst, "node_modules", "a", "index.js"))
	if err != nil || string(text) != "other" {
		t.Errorf("%q, %v", text, err)
	}
	if err := e.Link(filepath.Join(t.TempDir(), "none", "x"), Auto, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where nothing is: %v", err)
	}
}
