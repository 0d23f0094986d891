package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stageSaves prepares the generations of a change: of the state that was found,
// unless it is saved already, and of the state that will be, which has the id
// that it returns, or 0 if it is saved as it is. found is nil where there was
// no profile, next where there will be none.
func (c *change) stageSaves(found, next *Generation, command string, now time.Time) (saved int, err error) {
	if found != nil && next != nil && Same(found, next) {
		return 0, nil
	}
	history := historyOf(c.disk, c.state)
	ids, err := history.ids()
	if err != nil {
		return 0, err
	}
	last, err := history.newest(ids)
	if err != nil {
		// A damaged generation is no reason to change nothing any more.
		c.warnings = append(c.warnings, err.Error())
	}
	id := 0
	if len(ids) > 0 {
		id = ids[len(ids)-1]
	}
	add := func(g *Generation, command string) error {
		if g == nil || last != nil && Same(last, g) {
			return nil
		}
		if last == nil && len(g.Files) == 0 {
			return nil // an empty directory is nothing to go back to
		}
		id++
		g.ID, g.Command, g.Saved = id, command, now
		data, err := encodeGeneration(g)
		if err != nil {
			return err
		}
		pending, err := c.writeTemp(c.state, data, 0o600, false)
		if err != nil {
			return err
		}
		c.Saves = append(c.Saves, save{ID: id, Pending: filepath.Base(pending)})
		last = g
		return nil
	}
	if err := add(found, ""); err != nil {
		return 0, fmt.Errorf("saving the state before the change: %w", err)
	}
	before := id
	if err := add(next, command); err != nil {
		return 0, fmt.Errorf("saving the state after the change: %w", err)
	}
	if id > before {
		saved = id
	}
	if len(c.Saves) > 0 {
		err = c.SyncDir(c.state)
	}
	return saved, err
}

func (c *change) pending(s save) string { return filepath.Join(c.state, s.Pending) }

// publish gives the generations of the change their names.
func (c *change) publish() error {
	if len(c.Saves) == 0 {
		return nil
	}
	history := historyOf(c.disk, c.state)
	if err := c.mkdirAll(history.dir); err != nil {
		return err
	}
	for _, s := range c.Saves {
		if waiting, err := c.exists(c.pending(s)); err != nil {
			return err
		} else if !waiting {
			continue
		}
		if s.Pinned {
			pin, err := c.writeTemp(c.state, nil, 0o600, false)
			if err == nil {
				err = c.Rename(pin, history.pin(s.ID))
			}
			if err != nil {
				return err
			}
		}
		// The id was free, and only who has the lock gives ids out.
		if err := c.Rename(c.pending(s), history.path(s.ID)); err != nil {
			return fmt.Errorf("saving generation %d: %w", s.ID, err)
		}
	}
	return c.SyncDir(history.dir)
}

// unpublish takes publish back.
func (c *change) unpublish() error {
	history := historyOf(c.disk, c.state)
	for _, s := range slices.Backward(c.Saves) {
		if waiting, err := c.exists(c.pending(s)); err != nil {
			return err
		} else if waiting {
			continue
		}
		if err := c.Rename(history.path(s.ID), c.pending(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("taking back generation %d: %w", s.ID, err)
		}
	}
	if len(c.Saves) > 0 {
		return c.removeIfEmpty(history.dir)
	}
	return nil
}

// dropSaves removes the generations of a change that is given up. What stays is
// found by the next sweep.
func (c *change) dropSaves() error {
	var errs []error
	for _, s := range c.Saves {
		if err := c.Remove(c.pending(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// after is the small files of the profile as the prepared ops leave them, by the
// same rules as those that were found.
func (c *change) after(found *Generation) (*Generation, error) {
	next := &listing{disk: c.disk, dir: c.dir, derived: c.derived, entries: found.listing.entries, refused: found.listing.refused, dirs: maps.Clone(found.listing.dirs)}
	for _, o := range c.Ops {
		if !c.small(o.rel) {
			continue
		}
		rel, inside, err := next.placeOf(c.path(o))
		if err == nil && !inside {
			err = next.writeOutside(c.path(o), c.staged(o))
		} else if err == nil {
			next.drop(rel)
			err = next.add(rel, c, o)
		}
		if err != nil {
			return nil, fmt.Errorf("reading what is staged for %s: %w", o.rel, err)
		}
	}
	return next.generation()
}

// placeOf is what a path is called in the profile, if it is inside.
func (l *listing) placeOf(path string) (rel string, inside bool, err error) {
	if rel, inside := l.inside(path); inside {
		return rel, true, nil
	}
	end, err := l.realEnd(path)
	rel, inside = l.inside(end)
	return rel, inside, err
}

// add is what is staged for a path.
func (l *listing) add(rel string, c *change, o op) error {
	if o.Staged == "" {
		return nil
	}
	info, err := l.Lstat(c.staged(o))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return l.list(rel, c.staged(o))
	}
	l.entries = append(slices.Clip(l.entries), &entry{path: rel, at: c.staged(o)})
	return nil
}

// writeOutside gives a file outside the content of the staged one, for all links
// that lead to it.
func (l *listing) writeOutside(path, staged string) error {
	end, err := l.realEnd(path)
	if err != nil {
		return err
	}
	info, err := l.Lstat(staged)
	if err != nil {
		return err
	}
	data, why, err := l.content(staged)
	if err != nil {
		return err
	}
	l.entries = slices.Clone(l.entries)
	for i, e := range l.entries {
		if e.end == "" || e.end != end {
			continue
		}
		changed := *e
		changed.outside = nil
		if why == "" {
			changed.outside = &SavedFile{e.path, info.Mode().Perm(), data}
		}
		l.entries[i] = &changed
	}
	return nil
}

// syncSmall makes a directory that is staged survive a power loss, but for what
// can be made again.
func (d disk) syncSmall(dir string, derived []string) error {
	entries, err := d.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case !isSmall(e.Name(), derived):
		case e.IsDir():
			err = d.syncSmall(path, derived)
		case e.Type().IsRegular():
			err = d.syncFile(path)
		}
		if err != nil {
			return err
		}
	}
	return d.SyncDir(dir)
}

func (d disk) syncFile(path string) error {
	f, err := d.Open(path)
	if refused(err) {
		return nil // whoever wrote it did so with rights that we have not
	}
	if err != nil {
		return err
	}
	err = f.Sync()
	if refused(err) {
		err = nil // Windows syncs only what is open for writing
	}
	return errors.Join(err, f.Close())
}

// commits is the file in the state that counts the changes of a profile, for
// readers, and says in which time between two starts of the machine the last one
// was made. "checked" says of which time the packages have been looked at since.
type commits struct {
	count int
	boot  string
}

func (d disk) readCommits(state string) (commits, error) {
	data, err := d.readFile(filepath.Join(state, "commits"))
	if errors.Is(err, fs.ErrNotExist) {
		return commits{}, nil
	}
	if err != nil {
		return commits{}, fmt.Errorf("reading the count of changes: %w", err)
	}
	count, boot, _ := strings.Cut(string(data), "\n")
	var c commits
	c.count, _ = strconv.Atoi(count) // a damaged count is as good as another
	c.boot = strings.TrimSpace(boot)
	return c, nil
}

// count tells readers, before the journal goes, that the profile has changed.
func (c *change) count() error {
	was, err := c.readCommits(c.state)
	if err != nil {
		return err
	}
	boot := c.BootID()
	switch unclean, err := c.unclean(was); {
	case err != nil:
		return err
	case c.Boot != "" && c.Boot != boot:
		// The power may have gone while the packages were on their way.
		boot = c.Boot
		if err := c.Remove(filepath.Join(c.state, "checked")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case unclean:
		boot = was.boot
	}
	return c.writeFile(filepath.Join(c.state, "commits"), fmt.Appendf(nil, "%d\n%s\n", was.count+1, boot), 0o600)
}

// unclean says whether the machine has been started since the last change.
func (c *change) unclean(last commits) (bool, error) {
	return c.disk.unclean(c.state, last)
}

func (d disk) unclean(state string, last commits) (bool, error) {
	boot := d.BootID()
	if last.boot == "" || boot == "" || last.boot == boot {
		return false, nil
	}
	checked, err := d.readFile(filepath.Join(state, "checked"))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return strings.TrimSpace(string(checked)) != last.boot, err
}

// BootID names the time since the machine was started last, or is "" where the
// system cannot tell.
func BootID() string { return OS.BootID() }

// Unclean says that the last change of the profile was made before the machine
// was started last, and that nobody has marked it clean since. Its small files
// are then as they were committed, but its packages need not be: a power loss may
// have taken what had not reached the disk.
func Unclean(place Place) bool { return disk{OS}.isUnclean(place) }

func (d disk) isUnclean(place Place) bool {
	last, err := d.readCommits(place.State)
	if err != nil {
		return false
	}
	unclean, err := d.unclean(place.State, last)
	return unclean && err == nil
}

// MarkClean notes that the packages of the profile are as they were installed.
func MarkClean(place Place) error { return disk{OS}.markClean(place) }

func (d disk) markClean(place Place) error {
	if !d.isUnclean(place) {
		return nil
	}
	last, err := d.readCommits(place.State)
	if err == nil {
		_, err = d.writeFileIfChanged(filepath.Join(place.State, "checked"), []byte(last.boot+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("marking the packages of %s as checked: %w", place.Dir, err)
	}
	return nil
}
