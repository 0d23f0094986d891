package trust

import (
	"os"
	"path/filepath"
	"testing"
)

// world makes a tree in a fresh directory and returns its real path. A path that
// ends in a slash is a directory, a text that starts with "-> " a link, and any
// other text a file.
func world(t *testing.T, entries ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(entries); i += 2 {
		put(t, root, entries[i], entries[i+1])
	}
	return root
}

func put(t *testing.T, root, path, text string) {
	t.Helper()
	at := filepath.Join(root, filepath.FromSlash(path))
	parent := filepath.Dir(at)
	if path[len(path)-1] == '/' {
		parent = at
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	switch {
	case parent == at:
	case len(text) > 3 && text[:3] == "-> ":
		err = os.Symlink(filepath.FromSlash(text[3:]), at)
	default:
		err = os.WriteFile(at, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// chmod changes permissions until the test ends.
func chmod(t *testing.T, path string, perm os.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(path, info.Mode().Perm()); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	})
}
