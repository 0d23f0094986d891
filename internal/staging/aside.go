package staging

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// On overlayfs, which containers have, a directory that comes from the image
// cannot be renamed: EXDEV, though all is on one filesystem. It is moved aside
// by a copy instead, in these steps:
//
//	part         the copy is made in the staging directory
//	copy-of-<n>  names the original, so that nothing else is removed
//	copy-<n>     the copy when it is whole: what is at the path is only a rest
//	             and is removed
//	the backup   when nothing is at the path any more
//
// <n> is the last part of the backup's name. So a backup still means that the
// old thing is out of the way, and until the copy is whole nothing has happened.

func (c *change) partCopy() string      { return filepath.Join(c.stage(), "part") }
func (c *change) sourceOf(o op) string  { return c.besideCopy("copy-of-", o) }
func (c *change) wholeCopy(o op) string { return c.besideCopy("copy-", o) }
func (c *change) besideCopy(mark string, o op) string {
	return filepath.Join(c.stage(), mark+filepath.Base(o.Backup))
}

// renameAside moves what is at the path of o to its backup.
func (c *change) renameAside(o op, backup string) error {
	err := c.Rename(c.path(o), backup)
	if !otherFilesystem(err) {
		return err
	}
	if info, lerr := c.Lstat(c.path(o)); lerr != nil || !info.IsDir() {
		return errors.Join(err, lerr)
	}
	return c.copyAside(o)
}

// copyAside is the way around a rename that is refused.
func (c *change) copyAside(o op) error {
	c.copies = true
	path, part := c.path(o), c.partCopy()
	source, err := c.own(path)
	if err != nil {
		return err
	}
	synced := c.small(o.Path) // as far as the rest of a change is
	if err := c.RemoveAll(part); err != nil {
		return err
	}
	was, err := c.mark(path, false)
	if err != nil {
		return err
	}
	if err := c.copyTree(path, part, synced, c.derived); err != nil {
		return err
	}
	if err := c.writeFile(c.sourceOf(o), []byte(source+"\n"), 0o600); err != nil {
		return err
	}
	// Copying takes its time, and what is written to the original now is lost.
	if is, err := c.mark(path, false); err != nil {
		return err
	} else if is != was {
		return &ChangedError{path}
	}
	if err := c.Rename(part, c.wholeCopy(o)); err != nil {
		return err
	}
	if synced {
		if err := c.SyncDir(c.stage()); err != nil {
			return err
		}
	}
	if err := c.finishAside(o); err != nil {
		return err
	}
	// The same goes for the files that are still to be replaced.
	edited, err := c.touched()
	if err == nil && edited != "" {
		err = &ChangedError{edited}
	}
	return err
}

// finishAside goes on from where the copy is whole.
func (c *change) finishAside(o op) error {
	if whole, err := c.hasCopy(o); err != nil || !whole {
		return err
	}
	rest, err := c.isRest(o)
	if err == nil && rest {
		err = c.RemoveAll(c.path(o))
	}
	if err == nil && c.small(o.Path) {
		err = c.SyncDir(filepath.Dir(c.path(o))) // or it may come back beside the backup
	}
	if err != nil {
		return err
	}
	backup, _, err := c.freeBackup(o)
	if err != nil {
		return err
	}
	return c.Rename(c.wholeCopy(o), backup)
}

// undoAside takes a move aside back whose removal is not over, and says whether
// that is all that there is to be taken back.
func (c *change) undoAside(o op) (bool, error) {
	if whole, err := c.hasCopy(o); err != nil || !whole {
		return false, err
	}
	rest, err := c.isRest(o)
	if err != nil || !rest {
		return false, errors.Join(err, c.finishAside(o))
	}
	return true, c.fill(c.wholeCopy(o), c.path(o), c.small(o.Path))
}

// claimBack notes that what is at old becomes the profile again. A copy is
// another directory than the one of which it is one.
func (c *change) claimBack(o op, old string) error {
	if o.Path != "." {
		return nil
	}
	is, err := c.Identity(old)
	if err != nil {
		return err
	}
	return c.claimAs(is)
}

// hasCopy says whether there is a copy that is not the backup yet.
func (c *change) hasCopy(o op) (bool, error) {
	if !c.copies || o.Backup == "" {
		return false, nil
	}
	return c.exists(c.wholeCopy(o))
}

// isAside says whether what was at the path of o is out of the way.
func (c *change) isAside(o op) (bool, error) {
	if kept, err := c.exists(c.backup(o)); err != nil || kept {
		return kept, err
	}
	return c.hasCopy(o)
}

// isRest says whether what is at the path of o is what the copy was made of, or
// what is left of it.
func (c *change) isRest(o op) (bool, error) {
	is, err := c.identityOf(c.path(o))
	if err != nil || is == "" {
		return false, err
	}
	source, err := c.readFile(c.sourceOf(o))
	return err == nil && strings.TrimSpace(string(source)) == is, err
}

// fill gives a directory, from which not all was removed, back what it lost. The
// copy stays whole, for all of this may happen again.
func (c *change) fill(from, to string, synced bool) error {
	entries, err := c.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		synced := synced && !slices.Contains(c.derived, e.Name())
		there, err := c.exists(dst)
		switch {
		case err != nil:
		case !there:
			err = c.copyWhole(src, dst, synced)
		case e.IsDir():
			err = c.fill(src, dst, synced)
		}
		if err != nil {
			return err
		}
	}
	if err := c.likeMode(from, to); err != nil || !synced {
		return err
	}
	return c.SyncDir(to)
}

// copyWhole is a copy that is there whole or not at all.
func (c *change) copyWhole(from, to string, synced bool) error {
	part := c.partCopy()
	if err := c.RemoveAll(part); err != nil {
		return err
	}
	if err := c.copyTree(from, part, synced, c.derived); err != nil {
		return err
	}
	return c.Rename(part, to)
}

// likeMode gives a directory the permissions of another: removing what is in a
// directory may need more of them.
func (d disk) likeMode(from, to string) error {
	want, err := d.Lstat(from)
	if err != nil {
		return err
	}
	is, err := d.Lstat(to)
	if err != nil || is.Mode() == want.Mode() {
		return err
	}
	return d.Chmod(to, permissions(want))
}

// own says which directory is at path, once that can be relied on: on overlayfs
// a directory of the image becomes another one when it is changed first.
func (d disk) own(path string) (string, error) {
	info, err := d.Lstat(path)
	if err != nil {
		return "", err
	}
	// Whose directory somebody else's is, does not hang on this.
	if err := d.Chmod(path, permissions(info)); err != nil && !refused(err) {
		return "", err
	}
	return d.Identity(path)
}

func permissions(info fs.FileInfo) fs.FileMode {
	return info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}
