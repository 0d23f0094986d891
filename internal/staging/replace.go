package staging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"dsh/internal/fault"
)

// Replacement is how [ReplaceDir] went.
type Replacement struct {
	// Kept is where the previous directory is now, without its node_modules;
	// "" if there was none. That of a profile that is a link is where it was.
	Kept     string
	Warnings []string // what the user should know though nothing failed
}

// LostRace is somebody else having made, replaced or removed the profile at the
// same time. What they made is in place and untouched.
type LostRace struct {
	Dir string
}

func (e *LostRace) Error() string {
	return fmt.Sprintf("replacing profile directory %s: another process replaced it at the same time", e.Dir)
}

// ReplaceDir puts a directory that build fills in the place of a profile, or
// makes the profile. build is given an empty directory; it runs with the profile
// locked. When anything fails, or the process dies, the previous directory is
// back; only when another process got in first, that one's stays and the error
// is a [*LostRace]. The states before and after are saved as generations.
//
// The previous directory becomes <state>/replaced-<n>, of which the last three
// are kept, unless opts.Decide says that it is not worth it. If the state is on
// another filesystem it is copied there, and if it cannot be moved it stays
// beside the profile, with a warning, until the next change of the profile
// tries again.
func ReplaceDir(ctx context.Context, place Place, build func(stage string) error, opts Options) (Replacement, error) {
	return opts.disk().replaceWhole(ctx, place, opts, "replacing", func(d disk, place Place) (Replacement, error) {
		return d.replaceDir(ctx, place, build, opts)
	})
}

// RemoveDir removes a profile as [ReplaceDir] replaces it: its state is saved as a
// generation, and its directory is kept in the state. Of a profile that is a link
// only the link goes, and the directory stays where it is. Nothing being there is
// fs.ErrNotExist.
func RemoveDir(ctx context.Context, place Place, opts Options) (Replacement, error) {
	given := place.Dir
	return opts.disk().replaceWhole(ctx, place, opts, "removing", func(d disk, place Place) (Replacement, error) {
		info, err := d.Lstat(given)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Replacement{}, fmt.Errorf("removing profile directory %s: %w", given, err)
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return d.removeLink(given, place)
		}
		return d.replaceDir(ctx, place, nil, opts)
	})
}

// replaceWhole does work with the profile locked, if it still is the one that was
// there before the wait: that is the one that the caller decided about.
func (d disk) replaceWhole(ctx context.Context, place Place, opts Options, doing string, work func(disk, Place) (Replacement, error)) (Replacement, error) {
	place, err := place.resolved(d)
	if err != nil {
		return Replacement{}, err
	}
	fail := func(err error) error { return fmt.Errorf("%s profile directory %s: %w", doing, place.Dir, err) }
	seen, err := d.ownIfAny(place.Dir)
	if err != nil {
		return Replacement{}, fail(err)
	}
	lock, err := d.lockPlace(ctx, place, opts)
	if err != nil {
		return Replacement{}, err
	}
	is, err := d.identityOf(place.Dir)
	var r Replacement
	switch {
	case err != nil:
		err = fail(err)
	case is == "" && seen != "" && doing == "removing":
		err = fail(fs.ErrNotExist)
	case is != seen:
		err = &LostRace{place.Dir}
	default:
		r, err = work(d, place)
	}
	if rerr := lock.Release(); rerr != nil {
		r.Warnings = append(r.Warnings, rerr.Error())
	}
	return r, err
}

// removeLink removes a profile that is a link to the directory of place.
func (d disk) removeLink(link string, place Place) (r Replacement, err error) {
	fail := func(err error) (Replacement, error) {
		return r, fmt.Errorf("removing the link %s: %w", link, err)
	}
	if is, err := d.identityOf(place.Dir); err != nil || is == "" {
		return fail(cmp.Or(err, fs.ErrNotExist))
	}
	if r.Warnings, err = d.recover(place); err != nil {
		return r, err
	}
	found, err := d.snapshot(place.Dir, place.Derived)
	if err != nil {
		return fail(err)
	}
	c := newChange(d, place)
	if c.Link, err = filepath.Abs(link); err != nil {
		return fail(err)
	}
	if _, err := c.stageSaves(found, nil, "", time.Now()); err != nil {
		return fail(errors.Join(err, c.dropSaves()))
	}
	err = c.write(true)
	if err == nil {
		err = d.Remove(link)
	}
	if err != nil {
		return fail(c.abandon(err))
	}
	// It is gone, and what fails now is for the next command.
	if err := c.resumeLink(); err != nil {
		c.warnings = append(c.warnings, fmt.Sprintf("cleaning up after the change: %v", err))
	}
	r.Kept, r.Warnings = place.Dir, append(r.Warnings, c.warnings...)
	return r, nil
}

// resumeLink finishes the removal of a link, or forgets it where the link is
// there.
func (c *change) resumeLink() error {
	there, err := c.exists(c.Link)
	if err != nil {
		return err
	}
	if !there {
		c.began = true
		if err := c.syncAll(map[string]bool{filepath.Dir(c.Link): true}); err != nil {
			return err
		}
		if err := c.publish(); err != nil {
			return err
		}
	}
	return c.finish()
}

// replaceDir replaces the profile by what build makes, or removes it where build
// is nil.
func (d disk) replaceDir(ctx context.Context, place Place, build func(stage string) error, opts Options) (r Replacement, err error) {
	doing := "replacing"
	if build == nil {
		doing = "removing"
	}
	fail := func(err error) (Replacement, error) {
		return Replacement{}, fmt.Errorf("%s profile directory %s: %w", doing, place.Dir, err)
	}
	if r.Warnings, err = d.recover(place); err != nil {
		return Replacement{}, err
	}
	old, err := d.ownIfAny(place.Dir)
	if err != nil {
		return fail(err)
	}
	if old == "" && build == nil {
		return fail(fs.ErrNotExist)
	}
	if err := d.movable(place.Dir); err != nil {
		return fail(err)
	}
	drop := false
	if opts.Decide != nil {
		if drop, err = opts.Decide(); err != nil {
			return Replacement{}, err
		}
	}
	if err := errors.Join(d.mkdirAll(filepath.Dir(place.Dir)), d.claim(place)); err != nil {
		return fail(err)
	}
	root, release, err := d.newStage(place.Dir)
	if err != nil {
		return fail(err)
	}
	c := newChange(d, place)
	c.Stage, c.Removes = c.stageName(root), build == nil
	c.Ops = []op{wholeOp(place, build == nil, old != "", drop)}
	if build != nil {
		err = c.build(build, old != "")
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		_, err = c.replace(old, opts.Command, doing)
	}
	r.Kept = c.tidyWhole(place, release)
	r.Warnings = append(r.Warnings, c.warnings...)
	return r, err
}

// wholeOp is the op of a profile that is replaced or removed. What is to be
// dropped goes with the staging directory.
func wholeOp(place Place, removes, there, drop bool) op {
	o := op{Path: "."}
	if !removes {
		o.Staged = "new"
	}
	switch {
	case !there:
	case drop:
		o.Backup = filepath.Join("old", "0")
	default:
		o.Backup = filepath.Join("..", beside(place.Dir, backupMark))
	}
	return o
}

// build fills the staged directory, and gives it the permissions of the one that is
// there.
func (c *change) build(fill func(stage string) error, there bool) error {
	staged := c.staged(c.Ops[0])
	if err := fill(staged); err != nil || !there {
		return err
	}
	return c.likeMode(c.dir, staged)
}

// tidyWhole removes what is left of a change that was made or given up, and says
// where the previous directory is kept.
func (c *change) tidyWhole(place Place, release func() error) (kept string) {
	err := release()
	if open, lerr := c.exists(c.journalPath()); lerr != nil || open {
		err = errors.Join(err, lerr)
	} else {
		err = errors.Join(err, c.removeStage(c.stage()))
		if o := c.Ops[0]; filepath.Dir(o.Backup) == ".." {
			var more []string
			kept, more = c.keepIfThere(place, c.backup(o))
			c.warnings = append(c.warnings, more...)
		}
	}
	if err != nil {
		c.warnings = append(c.warnings, fmt.Sprintf("tidying up: %v", err))
	}
	return kept
}

// replace commits a change whose one op is the profile itself. Old is the
// identity of the profile that is to go. After an error the profile is as it
// was, or somebody else's. Saved is the generation of the new state, or 0.
func (c *change) replace(old, command, doing string) (saved int, err error) {
	fail := func(err error) (int, error) {
		return 0, errors.Join(fmt.Errorf("%s profile directory %s: %w", doing, c.dir, err), c.dropSaves())
	}
	if saved, err = c.prepareWhole(old, command); err != nil {
		return fail(err)
	}
	if err := c.write(true); err != nil {
		return 0, c.abandon(fmt.Errorf("%s profile directory %s: %w", doing, c.dir, err))
	}
	c.began = true
	err = c.swap(old)
	if err == nil {
		err = c.checkBackups()
	}
	if err == nil {
		err = c.publish()
	}
	if err != nil {
		if _, lost := errors.AsType[*LostRace](err); lost {
			return 0, c.abandon(errors.Join(err, c.unpublish()))
		}
		if uerr := c.restore(old); uerr != nil {
			if _, lost := errors.AsType[*LostRace](uerr); lost {
				return 0, c.abandon(uerr)
			}
			return 0, fault.Errorf(fault.Environment,
				"%s profile directory %s: %w; putting the previous one back failed too: %w; it is in %s, and the next command on this profile goes on from there",
				doing, c.dir, err, uerr, c.oldPlace(c.Ops[0]))
		}
		return 0, c.abandon(fmt.Errorf("%s profile directory %s: %w", doing, c.dir, err))
	}
	if err := c.claim(Place{Dir: c.dir, State: c.state}); err != nil {
		c.warnings = append(c.warnings, err.Error())
	}
	c.conclude()
	return saved, nil
}

// prepareWhole puts on the disk what the renames need, and fills in the journal.
func (c *change) prepareWhole(old, command string) (saved int, err error) {
	o := &c.Ops[0]
	sync := map[string]bool{c.stage(): true, filepath.Dir(c.dir): true}
	var found, next *Generation
	if o.Staged != "" {
		if c.Next, err = c.Identity(c.staged(*o)); err != nil {
			return 0, err
		}
		o.New = c.Next
		if err := c.syncSmall(c.staged(*o), c.derived); err != nil {
			return 0, err
		}
		if o.Is, err = c.mark(c.staged(*o), false); err != nil {
			return 0, err
		}
		if next, err = c.snapshotFor(c.dir, c.staged(*o), c.derived); err != nil {
			return 0, err
		}
	}
	if err := c.syncAll(sync); err != nil {
		return 0, err
	}
	if old != "" {
		// What nobody keeps must not change any more once it is saved.
		if filepath.Dir(o.Backup) == "old" {
			if o.Was, err = c.mark(c.dir, false); err != nil {
				return 0, err
			}
		}
		if found, err = c.snapshot(c.dir, c.derived); err != nil {
			return 0, err
		}
	}
	return c.stageSaves(found, next, command, time.Now())
}

// swap puts the staged directory in the place of the profile whose identity is
// old. Whether somebody else was quicker is told by what stands there, for the
// errors of a lost race differ from system to system.
func (c *change) swap(old string) error {
	o := c.Ops[0]
	if old != "" {
		exchanged, err := c.swapAtOnce(old)
		if err == nil && !exchanged {
			err = c.swapAside(old)
		}
		if err != nil || exchanged {
			return err
		}
	}
	if o.Staged == "" {
		return c.syncTargets()
	}
	if err := c.RenameNew(c.staged(o), c.dir); err != nil {
		is, lerr := c.identityOf(c.dir)
		switch {
		case lerr != nil:
			return errors.Join(err, lerr)
		case is == "":
			return err
		case is != c.Next:
			return &LostRace{c.dir}
		}
		// It did happen, as a network filesystem may say of a call sent twice.
	}
	return c.syncTargets()
}

// swapAtOnce exchanges the two directories, so that at no moment there is none,
// and moves the old one on. It says whether it did: some filesystems cannot.
func (c *change) swapAtOnce(old string) (bool, error) {
	o := c.Ops[0]
	if o.Staged == "" {
		return false, nil
	}
	err := c.Exchange(c.staged(o), c.dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		is, lerr := c.identityOf(c.dir)
		switch {
		case lerr != nil:
			return false, errors.Join(err, lerr)
		case is == "": // removed meanwhile, which is as good
			return false, nil
		case is == old:
			return false, err
		case is != c.Next:
			return false, &LostRace{c.dir}
		}
	}
	moved, err := c.Identity(c.staged(o))
	if err != nil {
		return false, err
	}
	if moved != old {
		if err := c.Exchange(c.staged(o), c.dir); err != nil {
			return false, fmt.Errorf("putting back what another process made: %w", err)
		}
		return false, &LostRace{c.dir}
	}
	if err := c.settle(o); err != nil {
		return false, err
	}
	return true, c.syncTargets()
}

// swapAside moves the old directory away.
func (c *change) swapAside(old string) error {
	o := c.Ops[0]
	if err := c.Rename(c.dir, c.backup(o)); err != nil {
		is, lerr := c.identityOf(c.dir)
		switch {
		case lerr == nil && is == old && otherFilesystem(err):
			return c.copyAside(o)
		case lerr != nil:
			return errors.Join(err, lerr)
		case is == "": // removed meanwhile, which is as good
			return nil
		case is != old:
			return &LostRace{c.dir}
		default:
			return err
		}
	}
	moved, err := c.Identity(c.backup(o))
	if err != nil {
		return err
	}
	if moved != old {
		if err := c.RenameNew(c.backup(o), c.dir); err != nil {
			return fmt.Errorf("putting back what another process made: %w", err)
		}
		return &LostRace{c.dir}
	}
	return nil
}

// restore brings back the previous directory after a failed swap.
func (c *change) restore(old string) error {
	err := c.unpublish()
	if err == nil {
		err = c.undoOp(c.Ops[0])
	}
	if is, lerr := c.identityOf(c.dir); lerr == nil && is != "" && is != old && is != c.Next {
		// What was moved aside by a copy is put back as that.
		if claimed, cerr := c.claimed(); cerr != nil || is != claimed {
			return &LostRace{c.dir}
		}
	}
	if err != nil {
		return err
	}
	return c.syncTargets()
}

// oldPlace is where the previous directory is after an exchange that was not
// settled, or after it was moved aside.
func (c *change) oldPlace(o op) string {
	if is, err := c.identityOf(c.staged(o)); o.Staged != "" && err == nil && is != "" && is != c.Next {
		return c.staged(o)
	}
	return c.backup(o)
}

func (d disk) keepIfThere(place Place, backup string) (string, []string) {
	there, err := d.exists(backup)
	if err != nil {
		return "", []string{fmt.Sprintf("looking for the previous profile: %v", err)}
	}
	if !there {
		return "", nil
	}
	return d.keep(place, backup)
}

// keep moves a replaced profile to the state directory and says where it is.
func (d disk) keep(place Place, backup string) (kept string, warnings []string) {
	kept, err := d.moveToState(place, backup)
	if err != nil {
		warnings = append(warnings, fmt.Sprintf("the previous profile stays in %s: %v", kept, err))
	}
	// By its new name it is not copied again, however much of it cannot be removed.
	copied := copiedFrom(place, backup)
	if there, err := d.exists(copied); err != nil || there {
		if err = errors.Join(err, d.RemoveAll(copied)); err != nil {
			warnings = append(warnings, fmt.Sprintf("removing the previous profile, which is now in %s: %v", kept, err))
		}
	}
	return kept, append(warnings, d.prune(place.State, replacedMark)...)
}

// moveToState moves a replaced profile to its place in the state directory and
// says where it is, also when there is an error. If that is on another
// filesystem it makes a copy, under a name that tells whose it is, so that
// whoever goes on after a death neither copies again nor uses half a copy.
func (d disk) moveToState(place Place, backup string) (kept string, err error) {
	whole := filepath.Join(place.State, copyMark+randomOf(backup))
	n, err := d.lastNumber(place.State, replacedMark)
	if err != nil {
		return backup, err
	}
	to := filepath.Join(place.State, replacedMark+strconv.Itoa(n+1))
	done, err := d.exists(whole)
	if err != nil {
		return backup, err
	}
	if !done {
		// The packages can be made again, and are most of the bytes.
		if err := d.RemoveAll(filepath.Join(backup, "node_modules")); err != nil {
			return backup, err
		}
		err := d.Rename(backup, to)
		if err == nil {
			return to, nil
		}
		if !otherFilesystem(err) {
			return backup, err
		}
		temp := filepath.Join(place.State, tempMark+random())
		err = d.copyTree(backup, temp, true, nil)
		if err == nil {
			err = d.Rename(temp, whole)
		}
		if err != nil {
			return backup, errors.Join(err, d.RemoveAll(temp))
		}
		if err := d.SyncDir(place.State); err != nil {
			return whole, err
		}
	}
	err = d.Rename(backup, copiedFrom(place, backup))
	if otherFilesystem(err) {
		err = d.RemoveAll(backup) // of an image; the copy has its name until this is done
	}
	if err == nil {
		err = d.SyncDir(filepath.Dir(backup))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return whole, err
	}
	if err := d.Rename(whole, to); err != nil {
		return whole, err
	}
	return to, d.SyncDir(place.State)
}

// copiedFrom is the name of a backup of which the state has a copy.
func copiedFrom(place Place, backup string) string {
	return filepath.Join(filepath.Dir(backup), besideWith(place.Dir, copiedMark, randomOf(backup)))
}
