package staging

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// undo takes back what has been done, in the opposite order. At each point
// between, forward still works too.
func (c *change) undo() error {
	for _, o := range c.Ops { // while as much as can be is as it was edited
		if err := c.saveEdit(o); err != nil {
			return err
		}
	}
	if err := c.unpublish(); err != nil {
		return err
	}
	for i := len(c.Ops) - 1; i >= 0; i-- {
		if err := c.undoOp(c.Ops[i]); err != nil {
			return err
		}
	}
	for i := len(c.Made) - 1; i >= 0; i-- {
		dir := filepath.Join(c.dir, c.Made[i])
		if err := c.removeIfEmpty(dir); err != nil {
			c.warnings = append(c.warnings, fmt.Sprintf("an empty directory stays: %v", err))
		}
	}
	return c.syncTargets()
}

func (c *change) undoOp(o op) error {
	if filled, err := c.undoAside(o); err != nil || filled {
		return err
	}
	if o.New != "" {
		return c.undoDir(o)
	}
	there, err := c.exists(c.path(o))
	if err != nil {
		return err
	}
	if o.Staged != "" && there {
		waiting, err := c.exists(c.staged(o))
		if err != nil {
			return err
		}
		if !waiting { // what is there is ours
			if err := c.saveEdit(o); err != nil {
				return err
			}
			if err := c.Rename(c.path(o), c.staged(o)); err != nil {
				return err
			}
			there = false
		}
	}
	if there {
		return nil
	}
	return c.putBack(o)
}

// putBack renames the backup of o, if there is one, to the path, where nothing
// is.
func (c *change) putBack(o op) error {
	if o.Backup == "" {
		return nil
	}
	if kept, err := c.exists(c.backup(o)); err != nil || !kept {
		return err
	}
	// The directories that held nothing else may have gone with it.
	if err := c.mkdirAll(filepath.Dir(c.path(o))); err != nil {
		return err
	}
	if err := c.claimBack(o, c.backup(o)); err != nil {
		return err
	}
	return c.RenameNew(c.backup(o), c.path(o))
}

// undoDir is undoOp of a directory that was exchanged, or renamed into place.
func (c *change) undoDir(o op) error {
	is, err := c.identityOf(c.path(o))
	if err != nil {
		return err
	}
	there, err := c.isNew(o, is)
	if err != nil {
		return err
	}
	if there {
		if err := c.saveEdit(o); err != nil {
			return err
		}
		back, err := c.exchangeBack(o)
		if err != nil || back {
			return err
		}
		if err := c.Rename(c.path(o), c.staged(o)); err != nil {
			return err
		}
		is = ""
	}
	if is != "" {
		return nil
	}
	return c.putBack(o)
}

// exchangeBack puts the old directory back in one step, and says whether it did:
// there has to be one, and a filesystem that can.
func (c *change) exchangeBack(o op) (bool, error) {
	left, err := c.exists(c.staged(o))
	if err != nil {
		return false, err
	}
	if !left {
		if o.Backup == "" {
			return false, nil
		}
		if kept, err := c.exists(c.backup(o)); err != nil || !kept {
			return false, err
		}
		if err := c.Rename(c.backup(o), c.staged(o)); err != nil {
			return false, err
		}
	}
	if err := c.claimBack(o, c.staged(o)); err != nil {
		return false, err
	}
	err = c.Exchange(c.staged(o), c.path(o))
	if errors.Is(err, errors.ErrUnsupported) {
		return false, c.Rename(c.staged(o), c.backup(o))
	}
	return err == nil, err
}

// saveEdit saves the profile as it stands, if somebody has edited what the change
// has put at the path of o: that goes when it is taken back.
func (c *change) saveEdit(o op) error {
	if o.Is == "" {
		return nil
	}
	done, err := c.done(o)
	if err != nil || !done {
		return err
	}
	is, err := c.mark(c.path(o), false)
	if err != nil || is == o.Is || is == markNone || is == c.edits[o.Path] {
		return err
	}
	if err := c.saveEdited(c.path(o)); err != nil {
		return err
	}
	if c.edits == nil {
		c.edits = map[string]string{}
	}
	c.edits[o.Path] = is
	return nil
}

// saveEdited adds a generation of the profile as it stands, because of a file.
func (c *change) saveEdited(path string) error {
	fail := func(err error) error {
		return fmt.Errorf("saving %s, which was edited at the same time: %w", path, err)
	}
	g, err := c.snapshot(c.dir, c.derived)
	if err != nil {
		return fail(err)
	}
	history := historyOf(c.disk, c.state)
	ids, err := history.ids()
	if err != nil {
		return fail(err)
	}
	if last, err := history.newest(ids); err == nil && last != nil && Same(last, g) {
		return nil // by a process that died
	}
	g.ID, g.Saved = 1, time.Now()
	if len(ids) > 0 {
		g.ID = ids[len(ids)-1] + 1
	}
	for _, s := range c.Saves {
		g.ID = max(g.ID, s.ID+1)
	}
	data, err := encodeGeneration(g)
	if err != nil {
		return fail(err)
	}
	if err := c.mkdirAll(history.dir); err != nil {
		return fail(err)
	}
	temp, err := c.writeTemp(c.state, data, 0o600, false)
	if err == nil {
		err = c.Rename(temp, history.path(g.ID))
	}
	if err == nil {
		err = c.SyncDir(history.dir)
	}
	if err != nil {
		return fail(err)
	}
	c.warnings = append(c.warnings, fmt.Sprintf("%s was edited while it was changed; the edit is in generation %d", path, g.ID))
	return nil
}
