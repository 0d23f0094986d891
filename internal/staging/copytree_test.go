package staging

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	must(t, os.Chmod(from, 0o750), os.Chmod(filepath.Join(from, "empty"), 0o500))
	socket, err := net.Listen("unix", filepath.Join(from, "a", "socket"))
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = socket.Close() }()
	skipped, err := CopyTree(from, to, "node_modules")
	if diff := cmp.Diff([]string{"a/socket"}, skipped); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	for dir, want := range map[string]fs.FileMode{"": 0o750, "a": 0o755, "empty": 0o500} {
		info, err := os.Stat(filepath.Join(to, dir))
		if must(t, err); info.Mode().Perm() != want {
			t.Errorf("%q has %v", dir, info.Mode())
		}
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
	_, err = CopyTree(from, to, "node_modules", "link", "empty")
	if err == nil || !strings.Contains(err.Error(), from) {
		t.Errorf("over what is there: %v", err)
	}
}
