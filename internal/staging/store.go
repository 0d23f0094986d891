package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// TempDir makes an empty directory below parent, which is made too, for content
// that the caller then renames to its name with RenameNew of [OS]. Plain calls
// of package os may write into it. It is locked until remove takes it away with
// all that is left in it; what a dead process left in parent is taken away
// first.
func TempDir(parent string) (dir string, remove func() error, err error) {
	return disk{OS}.tempDir(parent)
}

func (d disk) tempDir(parent string) (dir string, remove func() error, err error) {
	fail := func(err error) (string, func() error, error) {
		return "", nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	if err := d.mkdirAll(parent); err != nil {
		return "", nil, err
	}
	if err := d.sweepTemp(parent); err != nil {
		return fail(err)
	}
	root, release, err := d.newLocked(func() string { return filepath.Join(parent, tempMark+random()) }, 0o755, "new")
	if err != nil {
		return fail(err)
	}
	remove = func() error { return errors.Join(release(), d.removeStage(root)) }
	return filepath.Join(root, "new"), remove, nil
}

// SweepTemp takes away what dead processes left of [TempDir] in parent. What a
// living one has stays.
func SweepTemp(parent string) error {
	return disk{OS}.sweepTemp(parent)
}

func (d disk) sweepTemp(parent string) error {
	entries, err := d.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isTemp(e.Name()) && e.IsDir() {
			// One that cannot be removed does no harm.
			_ = d.sweepStage(filepath.Join(parent, e.Name()))
		}
	}
	return nil
}

// SetAside renames a directory that is to be removed, so that nobody finds half of
// it. One that comes from the image of a container cannot be renamed, and is
// removed where it is; first goes the file called first, without which nobody
// uses the rest. Nothing being there is fs.ErrNotExist.
func SetAside(dir, to, first string) error {
	return disk{OS}.setAside(dir, to, first)
}

func (d disk) setAside(dir, to, first string) error {
	err := d.Rename(dir, to)
	if !otherFilesystem(err) {
		return err
	}
	if first != "" {
		if err := d.Remove(filepath.Join(dir, first)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return d.RemoveAll(dir)
}

// RemoveAll removes a tree, also where directories in it are read-only. That
// nothing is there is no error.
func RemoveAll(path string) error {
	if err := OS.RemoveAll(path); err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}
