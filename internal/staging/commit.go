package staging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"dsh/internal/fault"
)

// prepare makes everything that the renames need, without touching a path of
// the profile: copies beside files that are elsewhere, links to the files that
// will be replaced, and all small files on the disk.
func (c *change) prepare() error {
	inside := map[int]string{} // where outside files are staged so far
	for i := range c.Ops {
		if o := &c.Ops[i]; filepath.IsAbs(o.Path) {
			inside[i] = c.staged(*o)
			temp := filepath.Join(filepath.Dir(o.Path), tempMark+random())
			o.Staged = temp + "-new"
			if o.Was != "" {
				o.Backup = temp + "-old"
			}
		}
	}
	root := c.stage()
	// The journal is of no use without the staging directory.
	if err := c.syncAll(map[string]bool{root: true, filepath.Dir(root): true}); err != nil {
		return err
	}
	if len(inside) > 0 {
		// Nobody would find these after a crash: the journal has to name them.
		if err := c.write(false); err != nil {
			return err
		}
	}
	sync := map[string]bool{}
	for i, o := range c.Ops {
		if o.Staged == "" {
			continue
		}
		if from, ok := inside[i]; ok {
			if err := c.copyFile(from, o.Staged, true); err != nil {
				return err
			}
		}
		if o.File && o.Backup != "" {
			if err := c.linkOrCopy(c.path(o), c.backup(o)); err != nil {
				return err
			}
			sync[filepath.Dir(c.backup(o))] = true
		}
		if !c.small(o.rel) {
			continue // packages can be made again and are not worth the wait
		}
		if err := c.syncStaged(o); err != nil {
			return err
		}
		for dir := filepath.Dir(c.staged(o)); ; dir = filepath.Dir(dir) {
			sync[dir] = true
			if dir == root || filepath.IsAbs(o.Staged) {
				break
			}
		}
	}
	return c.syncAll(sync)
}

// syncStaged makes what callers staged survive a power loss. Small files that
// this package wrote do so already.
func (c *change) syncStaged(o op) error {
	written := filepath.IsAbs(o.Staged) || filepath.Dir(o.Staged) == "files"
	info, err := c.Lstat(c.staged(o))
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return c.syncSmall(c.staged(o), c.derived)
	case info.Mode().IsRegular() && !written:
		return c.syncFile(c.staged(o))
	}
	return nil
}

// run commits a change that is prepared: the journal, the renames, and the
// journal's end. A failure takes everything back.
func (c *change) run() error {
	if err := c.write(true); err != nil {
		return c.abandon(fmt.Errorf("changing %s: writing the journal: %w", c.dir, err))
	}
	path, err := c.touched()
	if err != nil {
		return c.abandon(fmt.Errorf("changing %s: %w", c.dir, err))
	}
	if path != "" {
		return c.abandon(&ChangedError{path})
	}
	if err := c.forward(); err != nil {
		if uerr := c.undo(); uerr != nil {
			return c.unfinished(err, uerr)
		}
		if changed, ok := errors.AsType[*ChangedError](err); ok {
			return c.abandon(changed)
		}
		err := fault.Errorf(fault.Environment, "changing %s: %w; everything was put back", c.dir, err)
		if otherFilesystem(err) {
			err = fault.WithHint(err, "something in the profile is a mount point of its own; mount the profile or the home instead")
		}
		return c.abandon(err)
	}
	c.conclude()
	return nil
}

// conclude ends a change that was made. What fails now is put right by the next
// command.
func (c *change) conclude() {
	if err := c.finish(); err != nil {
		c.warnings = append(c.warnings, fmt.Sprintf("cleaning up after the change: %v", err))
		return
	}
	c.warnings = append(c.warnings, historyOf(c.disk, c.state).retire(time.Now())...)
}

// unfinished is the error of a change that could neither go on nor back.
func (c *change) unfinished(err, undo error) error {
	return fault.Errorf(fault.Environment,
		"changing %s: %w; putting things back failed too: %w; the next command on this profile finishes it, and until then the old files are in %s",
		c.dir, err, undo, filepath.Join(c.stage(), "old"))
}

// abandon cleans up after a change of which nothing is left in the profile,
// and returns why it was given up.
func (c *change) abandon(why error) error {
	err := c.finish()
	if err != nil && c.Complete {
		// First of all nobody must do it after all.
		again := c.erase()
		if again == nil {
			again = c.removeOutside()
		}
		err = errors.Join(err, again)
	}
	return errors.Join(why, err, c.dropSaves())
}

// finish removes the journal, and before it what only the journal tells of.
// Readers are told first, for whoever finds a journal that is not complete takes
// it that nothing has happened, or that all is over.
func (c *change) finish() error {
	if c.began {
		if err := c.count(); err != nil {
			return err
		}
	}
	if c.hasOutside() {
		if c.Complete {
			if err := c.write(false); err != nil {
				return err
			}
		}
		if err := c.removeOutside(); err != nil {
			return err
		}
	}
	return c.erase()
}

func (c *change) hasOutside() bool {
	return slices.ContainsFunc(c.Ops, func(o op) bool { return filepath.IsAbs(o.Staged) })
}

// removeOutside removes what was put beside files that are not in the profile.
func (c *change) removeOutside() error {
	dirs := map[string]bool{}
	for _, o := range c.Ops {
		for _, path := range []string{o.Staged, o.Backup} {
			if !filepath.IsAbs(path) {
				continue
			}
			if err := c.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			dirs[filepath.Dir(path)] = true
		}
	}
	// Without the journal nobody knows of them, should they come back.
	return c.syncAll(dirs)
}

// linkOrCopy gives a file a second name, by a copy where there are no links.
func (d disk) linkOrCopy(src, dst string) error {
	err := d.Link(src, dst)
	if err == nil || !cannotLink(err) {
		return err
	}
	return d.copyFile(src, dst, true)
}

// copyFile makes dst with the content and permissions of src.
func (d disk) copyFile(src, dst string, sync bool) error {
	info, err := d.Lstat(src)
	if err != nil {
		return err
	}
	in, err := d.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := d.Create(dst, info.Mode().Perm())
	if err != nil {
		return err
	}
	err = d.Chmod(dst, info.Mode().Perm()) // before the sync, which is of permissions too
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil && sync {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, d.Remove(dst))
	}
	return nil
}
