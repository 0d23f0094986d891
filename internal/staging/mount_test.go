package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dsh/internal/fault"
)

// mounted is an FS on which the profile is a mount point.
type mounted struct {
	FS
	dir string
}

func (m mounted) IsMount(path string) (bool, error) { return path == m.dir, nil }

func (m mounted) crosses(op, oldpath, newpath string) error {
	inside := func(path string) bool { return strings.HasPrefix(path, m.dir+string(filepath.Separator)) }
	switch {
	case oldpath == m.dir || newpath == m.dir:
		return &os.LinkError{Op: op, Old: oldpath, New: newpath, Err: syscall.EBUSY}
	case inside(oldpath) != inside(newpath):
		return &os.LinkError{Op: op, Old: oldpath, New: newpath, Err: syscall.EXDEV}
	}
	return nil
}

func (m mounted) Rename(oldpath, newpath string) error {
	if err := m.crosses("rename", oldpath, newpath); err != nil {
		return err
	}
	return m.FS.Rename(oldpath, newpath)
}

func (m mounted) RenameNew(oldpath, newpath string) error {
	if err := m.crosses("rename", oldpath, newpath); err != nil {
		return err
	}
	return m.FS.RenameNew(oldpath, newpath)
}

func (m mounted) Exchange(a, b string) error {
	if err := m.crosses("exchange", a, b); err != nil {
		return errors.ErrUnsupported
	}
	return m.FS.Exchange(a, b)
}

func (m mounted) Link(oldpath, newpath string) error {
	if err := m.crosses("link", oldpath, newpath); err != nil {
		return err
	}
	return m.FS.Link(oldpath, newpath)
}

// A profile that is a mount point, as a volume of a container is, can be changed in
// all ways but as a whole.
func TestProfileThatIsMounted(t *testing.T) {
	whole := []string{}
	for _, sc := range scenariosNamed(t, "mixed", "restore a generation", "replace all packages", "mixed, without exchange and links",
		"replace the profile", "remove the profile", "move the profile") {
		run := sc.run
		sc.run = func(t testing.TB, fsys FS, home string) ([]string, error) {
			return run(t, mounted{fsys, placeIn(home).Dir}, home)
		}
		if strings.HasSuffix(sc.name, "the profile") {
			whole = append(whole, sc.name)
			home := sc.fresh(t)
			before := content(t, home)
			_, err, _ := (&strike{after: 1 << 30}).try(t, sc, home)
			if fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), "mount point") || fault.Hint(err) == "" {
				t.Errorf("%s: %v", sc.name, err)
			}
			oldOrNew(t, sc.name, before, before, content(t, home))
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.dieAtEveryCall(t)
		})
	}
	if len(whole) != 3 {
		t.Errorf("changes of a whole profile: %q", whole)
	}
}

func TestIsMount(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "", 0o600)
	for _, path := range []string{dir, filepath.Join(dir, "file")} {
		if mount, err := OS.IsMount(path); mount || err != nil {
			t.Errorf("%s: %v, %v", path, mount, err)
		}
	}
	if _, err := OS.IsMount(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if mount, err := OS.IsMount("/proc"); err == nil && !mount {
		t.Error("/proc is no mount point")
	}
}
