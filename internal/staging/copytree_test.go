package staging

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCopyTree(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	for _, dir := range []string{"a/b", "empty", "node_modules/p"} {
		if err := os.MkdirAll(filepath.Join(from, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, perm := range map[string]fs.FileMode{"a/b/run": 0o755, "a/secret": 0o600, "node_modules/p/x": 0o644} {
		if err := os.WriteFile(filepath.Join(from, file), []byte(file), perm); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/secret", filepath.Join(from, "link")); err != nil {
		t.Skip(err)
	}
	if err := CopyTree(from, to, "node_modules"); err != nil {
		t.Fatal(err)
	}
	for file, perm := range map[string]fs.FileMode{"a/b/run": 0o755, "a/secret": 0o600} {
		data, err := os.ReadFile(filepath.Join(to, file))
		if err != nil || string(data) != file {
			t.Errorf("%s: %q, %v", file, data, err)
		}
		if info, err := os.Stat(filepath.Join(to, file)); err == nil && runtime.GOOS != "windows" && info.Mode().Perm() != perm {
			t.Errorf("%s has %v", file, info.Mode())
		}
	}
	if target, err := os.Readlink(filepath.Join(to, "link")); err != nil || target != "a/secret" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(to, "empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(to, "node_modules")); err == nil {
		t.Error("what was to be left out is there")
	}
	// What is there already is never written over.
	err := CopyTree(from, to, "node_modules", "link", "empty")
	if err == nil || !strings.Contains(err.Error(), from) {
		t.Errorf("over what is there: %v", err)
	}
}
