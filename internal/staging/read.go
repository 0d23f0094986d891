package staging

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// View is how the files of a profile are found while it is read.
type View struct {
	given  string  // the profile as the caller names it
	change *change // one that nobody could finish; nil: the files are in place
}

// Path is where the content is that belongs at a path of the profile. It is the
// path itself, but for a change that was committed and cannot be finished here:
// then it is what is staged for the path, or nothing at all for one that goes.
func (v View) Path(path string) string {
	c := v.change
	if c == nil {
		return path
	}
	rel, ok := v.inside(path)
	if !ok {
		return path
	}
	for _, o := range c.Ops {
		rest, hit := c.hits(o, rel)
		if !hit {
			continue
		}
		if done, err := c.done(o); err != nil || done {
			return path
		}
		if o.Staged == "" {
			return filepath.Join(c.stage(), "removed", rel)
		}
		return filepath.Join(c.staged(o), rest)
	}
	return path
}

// inside is a path relative to the profile, if it is in there.
func (v View) inside(path string) (string, bool) {
	for _, dir := range []string{v.given, v.change.dir} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// hits says whether o is about rel, or a directory above it, and what of rel is
// below that.
func (c *change) hits(o op, rel string) (rest string, hit bool) {
	if filepath.IsAbs(o.Path) {
		end, _, err := c.resolve(filepath.Join(c.dir, rel))
		return "", err == nil && end == o.Path
	}
	rest, err := filepath.Rel(o.Path, rel)
	return rest, err == nil && (rest == "." || filepath.IsLocal(rest))
}

// readerWait is how long a reader waits for others: a change takes some renames.
const readerWait = 2 * time.Second

// Read runs read while the profile is in one state: changes of dead processes are
// finished before, and when somebody commits a change meanwhile read is run
// again, so it must do nothing but read, and begin no transaction. Where an
// earlier change cannot be finished, as in a home that cannot be written, the
// [View] leads to the new state. The warnings say when none of this was possible.
func Read(ctx context.Context, place Place, read func(View) error) (warnings []string, err error) {
	return disk{OS}.read(ctx, place, read)
}

func (d disk) read(ctx context.Context, given Place, read func(View) error) ([]string, error) {
	place, err := given.resolved(d)
	if err != nil {
		return nil, read(View{}) // which says it better
	}
	wait, cancel := context.WithTimeout(ctx, readerWait)
	defer cancel()
	var warnings []string
	for range 3 {
		view, stuck, more := d.settled(wait, place)
		view.given = given.Dir
		warnings = append(warnings, more...)
		if err := ctx.Err(); err != nil {
			return warnings, fmt.Errorf("reading the profile %s: %w", place.Dir, err)
		}
		before, cerr := d.readCommits(place.State)
		err = read(view)
		if cerr != nil || stuck {
			return warnings, err
		}
		if same, serr := d.sameSince(place, before); serr != nil || same {
			return warnings, err
		}
		if wait.Err() != nil {
			break
		}
	}
	// There is always somebody who changes it. Now they wait for us.
	lock, lerr := d.acquire(wait, filepath.Join(place.State, "lock"), "reading", nil)
	if lerr != nil {
		return append(warnings, fmt.Sprintf("the profile %s was being changed while it was read: %v", place.Dir, lerr)), err
	}
	more, rerr := d.finishHeld(place)
	if rerr == nil {
		err = read(View{given: given.Dir})
	}
	return append(warnings, more...), errors.Join(err, rerr, lock.Release())
}

// sameSince says whether nobody has changed the profile since the count was
// read. The journal is asked first: it goes after the count has changed.
func (d disk) sameSince(place Place, before commits) (bool, error) {
	open, err := d.exists(filepath.Join(place.State, "journal"))
	if err != nil || open {
		return false, err
	}
	now, err := d.readCommits(place.State)
	return now.count == before.count, err
}

// settled finishes what an earlier process left. It is stuck where that is not
// possible, and nobody will do it while we read.
func (d disk) settled(ctx context.Context, place Place) (view View, stuck bool, warnings []string) {
	warnings, err := d.finishFor(ctx, place)
	if err == nil {
		return View{}, false, warnings
	}
	if _, held := errors.AsType[*HeldError](err); held || ctx.Err() != nil {
		return View{}, false, warnings // who has it is about to finish
	}
	unfinished := fmt.Sprintf("an earlier change of the profile %s is unfinished: %v", place.Dir, err)
	j, jerr := d.readJournal(place.State)
	if jerr != nil || j == nil {
		return View{}, true, append(warnings, unfinished)
	}
	if !j.Complete {
		return View{}, true, warnings // the profile is whole, only not tidy
	}
	c := newChange(d, place)
	c.journal = *j
	if ours, err := c.applies(); err != nil || !ours {
		return View{}, true, append(warnings, unfinished)
	}
	return View{change: c}, true, append(warnings, unfinished+"; it is read as the change leaves it")
}

// Redirects says whether some path leads elsewhere than to itself.
func (v View) Redirects() bool { return v.change != nil }

// Unfinished says that a change of the profile was committed and has not ended:
// its process has died, or is at it right now.
func Unfinished(place Place) (bool, error) {
	open, err := disk{OS}.exists(filepath.Join(place.State, "journal"))
	if err != nil {
		return false, fmt.Errorf("looking for an unfinished change: %w", err)
	}
	return open, nil
}

// Leftovers are the paths of what changes have put beside the profile's directory, or into
// it, that have not ended or whose process has died.
func Leftovers(place Place) ([]string, error) {
	d := disk{OS}
	place, err := place.resolved(d)
	if err != nil {
		return nil, err
	}
	l, err := d.findLitter(place)
	if err != nil {
		return nil, fmt.Errorf("looking for what is left of changes: %w", err)
	}
	var paths []string
	for _, path := range slices.Concat(l.stages, l.backups, l.copied, l.temps) {
		// A backup may be gone already while its copy is on its way in the state.
		if there, err := d.exists(path); err != nil {
			return nil, fmt.Errorf("looking for what is left of changes: %w", err)
		} else if there && filepath.Dir(path) != place.State {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}
