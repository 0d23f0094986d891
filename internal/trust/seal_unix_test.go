//go:build unix

package trust

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe has nothing to read until somebody writes, which must not be waited for.
func TestSealPipe(t *testing.T) {
	root := world(t, "d/a", "")
	missing, with := seal(t, root, "", "p"), seal(t, root, "", "d")
	for _, name := range []string{"p", "d/p"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if seal(t, root, "", "p") == missing {
		t.Error("a named pipe does not count")
	}
	if seal(t, root, "", "d") == with {
		t.Error("a pipe in a directory does not count")
	}
}
