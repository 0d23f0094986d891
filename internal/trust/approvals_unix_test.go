//go:build !windows

package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApprovalsAreOnesOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	file := filepath.Join(dir, "approvals.json")
	a := OpenApprovals(file)
	if got := a.Exposed(); got != "" {
		t.Error(got)
	}
	approve(t, a, "a", "1.0.0", "c")
	mode := func(path string, perm os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, perm); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || a.Exposed() != "" {
		t.Error(info.Mode(), err, a.Exposed())
	}
	for _, c := range []struct {
		path string
		perm os.FileMode
		want string
	}{
		{file, 0o644, ""}, {file, 0o620, file + " can be written by its group"}, {file, 0o602, file + " can be written by everybody"},
		{dir, 0o775, ""}, {dir, 0o777, dir + " can be written by everybody"}, {dir, 0o777 | os.ModeSticky, ""},
	} {
		mode(c.path, c.perm)
		if got, _, _ := strings.Cut(a.Exposed(), ","); got != c.want {
			t.Errorf("%s %o: %q, not %q", c.path, c.perm, got, c.want)
		}
		mode(file, 0o600)
		mode(dir, 0o700)
	}
	mode(file, 0o666)
	approve(t, a, "b", "1.0.0", "c")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}
