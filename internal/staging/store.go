package staging

import (
	"fmt"
	"path/filepath"
)

// TempDir makes an empty directory in parent, which is made too, for content
// that [Publish] then moves to its name. Plain calls of package os may write
// into it; the caller removes it when something fails.
func TempDir(parent string) (string, error) {
	return disk{OS}.tempDir(parent)
}

func (d disk) tempDir(parent string) (string, error) {
	if err := d.mkdirAll(parent); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, tempMark+random())
	if err := d.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a temporary directory: %w", err)
	}
	return dir, nil
}

// Publish renames tmp, a file or directory, to final. If something is there
// already then somebody else was quicker, which is a success: theirs stays and
// tmp is removed. So final has to name its content. After an error tmp is still
// there. Nothing is synced.
func Publish(tmp, final string) error {
	return disk{OS}.publish(tmp, final)
}

func (d disk) publish(tmp, final string) error {
	if err := d.mkdirAll(filepath.Dir(final)); err != nil {
		return err
	}
	err := d.RenameNew(tmp, final)
	if err == nil {
		return nil
	}
	if there, lerr := d.exists(final); lerr != nil || !there {
		return fmt.Errorf("publishing %s: %w", final, err)
	}
	if err := d.RemoveAll(tmp); err != nil {
		return fmt.Errorf("removing %s, which is in %s already: %w", tmp, final, err)
	}
	return nil
}

// Link gives the file src a second name dst, which must be free, or copies it
// where there are no hard links: to another filesystem, on one without them, or
// when src has as many as it can. A copy keeps the permissions. Nothing is
// synced.
func Link(src, dst string) error {
	return disk{OS}.linkUnsynced(src, dst)
}

func (d disk) linkUnsynced(src, dst string) error {
	err := d.Link(src, dst)
	if err != nil && cannotLink(err) {
		err = d.copyFile(src, dst, false)
	}
	if err != nil {
		return fmt.Errorf("linking %s: %w", dst, err)
	}
	return nil
}

// RemoveAll removes a tree, also where directories in it are read-only. That
// nothing is there is no error.
func RemoveAll(path string) error {
	if err := OS.RemoveAll(path); err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}
