package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// CopyTree fills the directory to, which is made if it is missing, with copies of
// all that is in from but the named entries: files, directories and links, with
// their permissions and those of from, synced. What is none of them, as a socket,
// is left out, and its slash-separated path below from is given back. What is
// there already under such a name is an error.
func CopyTree(from, to string, except ...string) (skipped []string, err error) {
	c := treeCopy{disk: disk{OS}}
	if err := c.fill(from, to, except); err != nil {
		return nil, fmt.Errorf("copying %s: %w", from, err)
	}
	slices.Sort(c.skipped)
	return c.skipped, nil
}

// copyTree copies a file, link or directory, synced on request but for what has
// one of the unsynced names. What cannot be copied, as a socket, is left out.
func (d disk) copyTree(from, to string, synced bool, unsynced []string) error {
	c := treeCopy{disk: d, unsynced: unsynced}
	return c.copy(from, to, "", synced)
}

// treeCopy is a copy that is being made.
type treeCopy struct {
	disk
	unsynced []string
	skipped  []string // slash-separated
}

func (c *treeCopy) fill(from, to string, except []string) error {
	info, err := c.Lstat(from)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		_, info, err = c.resolve(from)
	}
	if err != nil {
		return err
	}
	if err := c.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return c.entries(from, to, "", true, info, except)
}

func (c *treeCopy) copy(from, to, rel string, synced bool) error {
	info, err := c.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		return c.copyFile(from, to, synced)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := c.Readlink(from)
		if err != nil {
			return err
		}
		return c.Symlink(target, to)
	case !info.IsDir():
		c.skipped = append(c.skipped, rel)
		return nil
	}
	if err := c.Mkdir(to, 0o700); err != nil {
		return err
	}
	return c.entries(from, to, rel, synced, info, nil)
}

// entries copies what is in a directory, and then its permissions, which may
// forbid just that.
func (c *treeCopy) entries(from, to, rel string, synced bool, info fs.FileInfo, except []string) error {
	entries, err := c.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(except, name) {
			continue
		}
		below := name
		if rel != "" {
			below = rel + "/" + name
		}
		synced := synced && !slices.Contains(c.unsynced, name)
		if err := c.copy(filepath.Join(from, name), filepath.Join(to, name), below, synced); err != nil {
			return err
		}
	}
	if err := c.Chmod(to, permissions(info)); err != nil || !synced {
		return err
	}
	return c.SyncDir(to)
}
