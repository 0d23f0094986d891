package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dsh/internal/fault"
)

// Recover puts right what a process left that died while it changed the
// profile: a change that was about to happen is finished, or taken back where
// that is impossible or the user has edited a file since, and what lies about
// is removed. [Begin] and [ReplaceDir] do so by themselves.
//
// It waits for the lock only when there is a change to finish. Left-overs that
// cannot be removed are no error, for they do no harm.
func Recover(ctx context.Context, place Place) error {
	return disk{OS}.recoverPlace(ctx, place)
}

func (d disk) recoverPlace(ctx context.Context, place Place) error {
	place, err := place.resolved(d)
	if err != nil {
		return err
	}
	if _, err = d.finishFor(ctx, place); err != nil {
		return err
	}
	if litter, err := d.hasLitter(place); err != nil || !litter {
		return nil // nothing that does harm
	}
	// Whoever has the lock may be the one whose things lie there.
	lock, err := d.tryAcquire(filepath.Join(place.State, "lock"), "tidying up after an earlier change")
	if err != nil {
		return nil
	}
	_, err = d.recover(place)
	return errors.Join(err, lock.Release())
}

// finishFor finishes a change of a place without links, or takes it back, and
// leaves what lies about to the next change: there may be much of that. The warnings
// tell what was taken back.
func (d disk) finishFor(ctx context.Context, place Place) (warnings []string, err error) {
	journaled, err := d.exists(filepath.Join(place.State, "journal"))
	if err != nil {
		return nil, fmt.Errorf("looking for an unfinished change: %w", err)
	}
	if !journaled {
		return nil, nil
	}
	lock, err := d.acquire(ctx, filepath.Join(place.State, "lock"), "finishing an earlier change", nil)
	if err != nil {
		return nil, err
	}
	warnings, err = d.finishHeld(place)
	return warnings, errors.Join(err, lock.Release())
}

// recover is Recover for whoever has the lock. The warnings tell what was taken
// back and what could not be removed.
func (d disk) recover(place Place) (warnings []string, err error) {
	if warnings, err = d.finishHeld(place); err != nil {
		return nil, err
	}
	return append(warnings, d.sweep(place)...), nil
}

// finishHeld is finishFor for whoever has the lock.
func (d disk) finishHeld(place Place) (warnings []string, err error) {
	j, err := d.readJournal(place.State)
	if err != nil || j == nil {
		return nil, err
	}
	c := &change{disk: d, dir: place.Dir, state: place.State, derived: place.Derived, journal: *j, copies: true}
	if err := c.resume(); err != nil {
		return nil, err
	}
	return c.warnings, nil
}

// resume finishes the change of a journal found on the disk, or takes it back.
func (c *change) resume() error {
	if c.Move != nil {
		if err := c.resumeMove(); err != nil {
			return fmt.Errorf("finishing the move of %s: %w", c.dir, err)
		}
		return nil
	}
	if c.Link != "" {
		if err := c.resumeLink(); err != nil {
			return fmt.Errorf("finishing the removal of the link %s: %w", c.Link, err)
		}
		return nil
	}
	ours, err := c.applies()
	if err != nil {
		return fmt.Errorf("finishing an earlier change of %s: %w", c.dir, err)
	}
	c.began = c.Complete // by the process that died
	if !ours {
		return c.setAside()
	}
	if c.Complete {
		path, err := c.touched()
		if err == nil && path != "" {
			// The edit is newer than either state, and stays.
			err = fmt.Errorf("%s was edited since", path)
		}
		if err == nil {
			err = c.forward()
		}
		if changed, ok := errors.AsType[*ChangedError](err); ok {
			err = fmt.Errorf("%s was edited since", changed.Path)
		}
		if err != nil {
			if uerr := c.undo(); uerr != nil {
				return c.unfinished(err, uerr)
			}
			c.warnings = append(c.warnings, fmt.Sprintf("an earlier change of %s was interrupted and is taken back: %v", c.dir, err))
		} else if c.Next != "" {
			if err := c.claim(Place{Dir: c.dir, State: c.state}); err != nil {
				return err
			}
		}
	}
	if err := c.finish(); err != nil {
		return fmt.Errorf("finishing an earlier change of %s: %w", c.dir, err)
	}
	return nil
}

// applies says whether the journal is about this directory and can be used. A
// profile that was deleted by hand and made anew is another directory. So is one
// whose home was copied, or is on a filesystem that makes its inodes up: then it
// is told by what is in it.
func (c *change) applies() (bool, error) {
	if staged, err := c.exists(c.stage()); err != nil || !staged {
		return false, err
	}
	is, err := c.identityOf(c.dir)
	if err != nil {
		return false, err
	}
	if is == "" && (c.Next != "" || c.Removes) || c.Next != "" && is == c.Next {
		return true, nil
	}
	claimed, err := c.claimed()
	if err != nil || is == "" || is == claimed {
		return is != "" && is == claimed, err
	}
	if c.foreign, err = c.isHalfDone(); err != nil {
		return false, err
	}
	if c.foreign {
		c.Boot = elsewhere
	}
	return c.foreign, nil
}

// elsewhere is no time between two starts of this machine: the packages that a
// change of then brought are looked at.
const elsewhere = "elsewhere"

// isHalfDone says whether the profile is what a process leaves that dies during
// the change: a new thing is in place, or all is as it was.
func (c *change) isHalfDone() (bool, error) {
	if !c.Complete {
		return false, nil
	}
	unchanged := false
	for _, o := range c.Ops {
		if o.Is == "" && o.Was == "" || filepath.IsAbs(o.Path) {
			continue // packages, and what others may have changed
		}
		is, err := c.mark(c.path(o), false)
		if err != nil {
			return false, err
		}
		if is == o.Is {
			return true, nil
		}
		if o.Path == "." && o.Staged != "" {
			staged, err := c.mark(c.staged(o), false)
			return staged == o.Is, err
		}
		same := is == o.Was || o.Was == "" && is == markNone
		if !same {
			if same, err = c.isTakenAway(o, is); err != nil {
				return false, err
			}
		}
		if !same {
			return false, nil
		}
		unchanged = true
	}
	return unchanged, nil
}

// claimed is the directory that the state belongs to, or "".
func (c *change) claimed() (string, error) {
	data, err := c.readFile(filepath.Join(c.state, "identity"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// setAside keeps a journal that nobody can use, for whoever wants to know.
func (c *change) setAside() error {
	n, err := c.lastNumber(c.state, staleMark)
	if err != nil {
		return err
	}
	if c.began {
		c.Boot = elsewhere
		if err := c.count(); err != nil {
			return err
		}
	}
	stale := filepath.Join(c.state, staleMark+strconv.Itoa(n+1))
	if err := c.Rename(c.journalPath(), stale); err != nil {
		return fmt.Errorf("setting aside the journal of another directory: %w", err)
	}
	if c.Complete {
		c.warnings = append(c.warnings, fmt.Sprintf(
			"an earlier change of %s was interrupted, and cannot be finished, for the directory is another one now; to see whether anything is damaged: dsh profile repair %s",
			c.dir, fault.ShellWord(filepath.Base(c.state))))
	}
	c.warnings = append(c.warnings, c.prune(c.state, staleMark)...)
	return c.SyncDir(c.state)
}

// The names in the state of what is kept for the user, less their numbers.
const (
	staleMark    = "journal.stale-"
	replacedMark = "replaced-"
)

// keepNewest is how many of each stay in the state directory.
const keepNewest = 3

// prune removes the oldest of the names <mark><n> in dir, and says what it
// could not remove.
func (d disk) prune(dir, mark string) (warnings []string) {
	numbers, err := d.numbers(dir, mark)
	if err != nil {
		return []string{fmt.Sprintf("looking for older ones of %s<n>: %v", filepath.Join(dir, mark), err)}
	}
	slices.Sort(numbers)
	for _, n := range numbers[:max(0, len(numbers)-keepNewest)] {
		if err := d.RemoveAll(filepath.Join(dir, mark+strconv.Itoa(n))); err != nil {
			warnings = append(warnings, fmt.Sprintf("removing what was kept earlier: %v", err))
		}
	}
	return warnings
}

// lastNumber is the highest n of the names <mark><n> in dir, or 0.
func (d disk) lastNumber(dir, mark string) (int, error) {
	numbers, err := d.numbers(dir, mark)
	if err != nil {
		return 0, err
	}
	last := 0
	for _, n := range numbers {
		last = max(last, n)
	}
	return last, nil
}

func (d disk) numbers(dir, mark string) ([]int, error) {
	entries, err := d.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), mark); ok {
			if n, err := strconv.Atoi(rest); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers, nil
}

// claim notes in the state which directory it belongs to.
func (d disk) claim(place Place) error {
	is, err := d.ownIfAny(place.Dir)
	if err != nil || is == "" {
		return err
	}
	return newChange(d, place).claimAs(is)
}

func (c *change) claimAs(identity string) error {
	_, err := c.writeFileIfChanged(filepath.Join(c.state, "identity"), []byte(identity+"\n"), 0o644)
	return err
}

// ownIfAny is own, or "" where nothing is.
func (d disk) ownIfAny(dir string) (string, error) {
	id, err := d.own(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return id, err
}

// identityOf is "" where nothing is.
func (d disk) identityOf(dir string) (string, error) {
	id, err := d.Identity(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return id, err
}

// staleTemp is how old a temporary file in the profile has to be before it is
// taken for a dead process's. Writing a small file takes no such time.
const staleTemp = time.Hour

// litter is what earlier processes may have left of one profile.
type litter struct {
	stages  []string // staging directories, perhaps in use
	backups []string // whole profiles that were replaced, or copied but not yet numbered
	copied  []string // such profiles of which the state has a copy
	temps   []string // of single files, and unfinished copies
}

func (d disk) findLitter(place Place) (litter, error) {
	var l litter
	parent := filepath.Dir(place.Dir)
	entries, err := d.readDirIfAny(parent)
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		switch {
		case isBeside(e.Name(), place.Dir, stagingMark):
			l.stages = append(l.stages, path)
		case isBeside(e.Name(), place.Dir, backupMark):
			l.backups = append(l.backups, path)
		case isBeside(e.Name(), place.Dir, copiedMark):
			l.copied = append(l.copied, path)
		}
	}
	if entries, err = d.readDirIfAny(place.State); err != nil {
		return l, err
	}
	for _, e := range entries {
		// Only the holder of the lock writes here.
		if isTemp(e.Name()) {
			l.temps = append(l.temps, filepath.Join(place.State, e.Name()))
		}
		if rest, ok := strings.CutPrefix(e.Name(), copyMark); ok && isRandom(rest) {
			backup := filepath.Join(parent, besideWith(place.Dir, backupMark, rest))
			if !slices.Contains(l.backups, backup) {
				l.backups = append(l.backups, backup)
			}
		}
	}
	if entries, err = d.readDirIfAny(place.Dir); err != nil {
		return l, err
	}
	for _, e := range entries {
		// The user's own things are here. Of ours are files, and the staging
		// directories of a profile that is a mount point.
		if isTemp(e.Name()) && e.IsDir() {
			l.stages = append(l.stages, filepath.Join(place.Dir, e.Name()))
		}
		if !isTemp(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > staleTemp {
			l.temps = append(l.temps, filepath.Join(place.Dir, e.Name()))
		}
	}
	return l, nil
}

func (d disk) readDirIfAny(dir string) ([]fs.DirEntry, error) {
	entries, err := d.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

func (d disk) hasLitter(place Place) (bool, error) {
	l, err := d.findLitter(place)
	return len(l.stages)+len(l.backups)+len(l.copied)+len(l.temps) > 0, err
}

// sweep removes what dead processes left, and says what it could not remove.
func (d disk) sweep(place Place) (warnings []string) {
	warn := func(err error) {
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("tidying up after an earlier change: %v", err))
		}
	}
	l, err := d.findLitter(place)
	warn(err)
	for _, path := range l.stages {
		warn(d.sweepStage(path))
	}
	for _, path := range slices.Concat(l.temps, l.copied) {
		warn(d.RemoveAll(path))
	}
	for _, path := range l.backups {
		_, more := d.keep(place, path)
		warnings = append(warnings, more...)
	}
	return warnings
}
