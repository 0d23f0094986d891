package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
)

// Without ssh it is ssh that is missing, not the repository.
func TestNoSSH(t *testing.T) {
	w := newWorld(t)
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "git")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	w.env["PATH"] = dir
	_, err = w.client.Refs(t.Context(), "ssh://git@127.0.0.1:1/o/r.git")
	if fault.ClassOf(err) != fault.MissingProgram || fault.Hint(err) == "" || !strings.Contains(err.Error(), "ssh is not installed") {
		t.Errorf("got %v", err)
	}
}
