package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"dsh/internal/fault"
)

// Replacement is how [ReplaceDir] went.
type Replacement struct {
	// Kept is where the previous directory is now, without its node_modules;
	// "" if there was none.
	Kept     string
	Warnings []string // what the user should know though nothing failed
}

// LostRace is somebody else having replaced the profile at the same time. Their
// profile is in place and untouched.
type LostRace struct {
	Dir string
}

func (e *LostRace) Error() string {
	return fmt.Sprintf("replacing profile directory %s: another process replaced it at the same time", e.Dir)
}

// ReplaceDir puts a directory that build fills in the place of a profile, or
// makes the profile. build is given an empty directory, and writes into it with
// [WriteFile] what has to survive a power loss; it runs with the profile
// locked. When anything fails, or the process dies, the previous directory is
// back; only when another process got in first, that one's stays and the error
// is a [*LostRace].
//
// The previous directory becomes <state>/replaced-<n>, of which the last three
// are kept, unless opts.Decide says that it is not worth it. If the state is on
// another filesystem it is copied there, and if it cannot be moved it stays
// beside the profile, with a warning, until the next change of the profile
// tries again.
func ReplaceDir(ctx context.Context, place Place, build func(stage string) error, opts Options) (Replacement, error) {
	d := opts.disk()
	place, err := place.resolved(d)
	if err != nil {
		return Replacement{}, err
	}
	fail := func(err error) (Replacement, error) {
		return Replacement{}, fmt.Errorf("replacing profile directory %s: %w", place.Dir, err)
	}
	// What the caller decided to replace is what is there now.
	seen, err := d.identityOf(place.Dir)
	if err != nil {
		return fail(err)
	}
	lock, err := d.acquire(ctx, filepath.Join(place.State, "lock"), opts.Command, opts.Waiting)
	if err != nil {
		return Replacement{}, err
	}
	is, err := d.identityOf(place.Dir)
	var r Replacement
	switch {
	case err != nil:
		_, err = fail(err)
	case is != seen:
		err = &LostRace{place.Dir}
	default:
		r, err = d.replaceDir(ctx, place, build, opts.Decide)
	}
	if rerr := lock.Release(); rerr != nil {
		r.Warnings = append(r.Warnings, rerr.Error())
	}
	return r, err
}

func (d disk) replaceDir(ctx context.Context, place Place, build func(stage string) error, decide func() (bool, error)) (r Replacement, err error) {
	fail := func(err error) (Replacement, error) {
		return Replacement{}, fmt.Errorf("replacing profile directory %s: %w", place.Dir, err)
	}
	if r.Warnings, err = d.recover(place); err != nil {
		return Replacement{}, err
	}
	old, err := d.identityOf(place.Dir)
	if err != nil {
		return fail(err)
	}
	drop := false
	if decide != nil {
		if drop, err = decide(); err != nil {
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
	backup := filepath.Join("..", beside(place.Dir, backupMark))
	if drop {
		backup = filepath.Join("old", "0") // goes with the staging directory
	}
	c := &change{disk: d, dir: place.Dir, state: place.State, journal: journal{
		Stage: filepath.Base(root),
		Ops:   []op{{Path: ".", Staged: "new", Backup: backup}},
	}}
	err = build(c.staged(c.Ops[0]))
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.exchange(old)
	}
	// What follows is clean-up, of a change made or given up.
	tidy := release()
	if open, lerr := d.exists(c.journalPath()); lerr != nil || open {
		tidy = errors.Join(tidy, lerr)
	} else {
		tidy = errors.Join(tidy, d.removeStage(root))
		if !drop {
			var more []string
			r.Kept, more = d.keepIfThere(place, c.backup(c.Ops[0]))
			c.warnings = append(c.warnings, more...)
		}
	}
	if tidy != nil {
		c.warnings = append(c.warnings, fmt.Sprintf("tidying up: %v", tidy))
	}
	r.Warnings = append(r.Warnings, c.warnings...)
	return r, err
}

// exchange moves the profile, whose identity is old, aside and the staged
// directory in. After an error it is as it was, or somebody else's.
func (c *change) exchange(old string) error {
	o := c.Ops[0]
	fail := func(err error) error {
		return fmt.Errorf("replacing profile directory %s: %w", c.dir, err)
	}
	var err error
	if c.Next, err = c.Identity(c.staged(o)); err != nil {
		return fail(err)
	}
	sync := map[string]bool{c.staged(o): true, c.stage(): true, filepath.Dir(c.dir): true}
	if err := c.syncAll(sync); err != nil {
		return fail(err)
	}
	if err := c.write(true); err != nil {
		return c.abandon(fail(err))
	}
	if err := c.swap(old); err != nil {
		if _, lost := errors.AsType[*LostRace](err); lost {
			return c.abandon(err)
		}
		if uerr := c.restore(); uerr != nil {
			if _, lost := errors.AsType[*LostRace](uerr); lost {
				return c.abandon(uerr)
			}
			return fault.Errorf(fault.Environment,
				"replacing profile directory %s: %w; putting the previous one back failed too: %w; it is in %s, and the next command on this profile goes on from there",
				c.dir, err, uerr, c.backup(o))
		}
		return c.abandon(fail(err))
	}
	if err := c.claim(Place{Dir: c.dir, State: c.state}); err != nil {
		c.warnings = append(c.warnings, err.Error())
	}
	if err := c.finish(); err != nil {
		c.warnings = append(c.warnings, err.Error())
	}
	return nil
}

// swap does the two renames. Whether somebody else was quicker is told by what
// stands there, for the errors of a lost race differ from system to system.
func (c *change) swap(old string) error {
	o := c.Ops[0]
	if old != "" {
		err := c.Rename(c.dir, c.backup(o))
		if err != nil {
			is, lerr := c.identityOf(c.dir)
			switch {
			case lerr != nil:
				return errors.Join(err, lerr)
			case is == "": // removed meanwhile, which is as good
			case is != old:
				return &LostRace{c.dir}
			default:
				return err
			}
		} else if moved, err := c.Identity(c.backup(o)); err != nil {
			return err
		} else if moved != old {
			if err := c.RenameNew(c.backup(o), c.dir); err != nil {
				return fmt.Errorf("putting back what another process made: %w", err)
			}
			return &LostRace{c.dir}
		}
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

// restore brings back the previous directory after a failed swap.
func (c *change) restore() error {
	o := c.Ops[0]
	is, err := c.identityOf(c.dir)
	if err != nil {
		return err
	}
	if is == c.Next {
		if err := c.Rename(c.dir, c.staged(o)); err != nil {
			return err
		}
	}
	if kept, err := c.exists(c.backup(o)); err != nil || !kept {
		return err
	}
	if err := c.RenameNew(c.backup(o), c.dir); err != nil {
		if there, lerr := c.exists(c.dir); lerr == nil && there {
			return &LostRace{c.dir}
		}
		return err
	}
	return c.syncTargets()
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
		err = d.copyTree(backup, temp)
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

// copyTree copies directories, files and links, synced; anything else is an
// error, since a copy of a socket is not one.
func (d disk) copyTree(from, to string) error {
	info, err := d.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		return d.copyFile(from, to, true)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := d.Readlink(from)
		if err != nil {
			return err
		}
		return d.Symlink(target, to)
	case !info.IsDir():
		return fmt.Errorf("%s is neither file, directory nor link", from)
	}
	if err := d.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := d.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := d.copyTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return errors.Join(d.Chmod(to, info.Mode().Perm()), d.SyncDir(to))
}
