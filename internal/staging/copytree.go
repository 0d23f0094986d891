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
// their permissions, synced. What is there already under such a name, and
// anything else than these, is an error.
func CopyTree(from, to string, except ...string) error {
	if err := (disk{OS}).copyInto(from, to, except); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

func (d disk) copyInto(from, to string, except []string) error {
	entries, err := d.ReadDir(from)
	if err != nil {
		return err
	}
	if err := d.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, e := range entries {
		if slices.Contains(except, e.Name()) {
			continue
		}
		if err := d.copyTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), true, nil); err != nil {
			return err
		}
	}
	return d.SyncDir(to)
}
