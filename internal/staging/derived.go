package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// WriteDerived replaces the file at path, or makes it, for what can be made
// anew: readers see the old bytes or the new, but nothing is synced, and after a
// power loss the file may be cut or gone. Its content has to tell that by
// itself.
func WriteDerived(path string, data []byte, perm fs.FileMode) error {
	return disk{OS}.writeDerived(path, data, perm)
}

func (d disk) writeDerived(path string, data []byte, perm fs.FileMode) error {
	temp := filepath.Join(filepath.Dir(path), tempMark+random())
	err := d.writeUnsynced(temp, data, perm)
	if err == nil {
		err = d.Rename(temp, path)
	}
	if err != nil {
		if rerr := d.Remove(temp); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func (d disk) writeUnsynced(path string, data []byte, perm fs.FileMode) error {
	f, err := d.Create(path, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
