package staging

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"dsh/internal/fault"
)

// Place is where a profile is and where dsh keeps what belongs to it.
type Place struct {
	Dir   string // <home>/profiles/<name>; may be a link to the real directory
	State string // <home>/state/<name>; may be on another filesystem
	// Derived are the names in Dir, at any depth, of what can be made again, so
	// that no generation keeps it.
	Derived []string
}

// resolved is the place with Dir absolute and free of links, for what stands beside a
// directory has to be on its filesystem. A link to nothing is an error.
func (p Place) resolved(d disk) (Place, error) {
	fail := func(err error) (Place, error) {
		return p, fmt.Errorf("opening profile directory %s: %w", p.Dir, err)
	}
	abs, err := filepath.Abs(p.Dir)
	if err != nil {
		return fail(err)
	}
	end, info, err := d.resolve(abs)
	if err != nil {
		return fail(err)
	}
	if info != nil && !info.IsDir() {
		return fail(errors.New("it is not a directory"))
	}
	parent, err := d.RealPath(filepath.Dir(end))
	if errors.Is(err, fs.ErrNotExist) {
		parent, err = filepath.Dir(end), nil
	}
	if err != nil {
		return fail(err)
	}
	p.Dir = filepath.Join(parent, filepath.Base(end))
	return p, nil
}

// A staging directory <profiles>/.<name>.staging-<random> holds
//
//	lock    held while its process lives
//	new/      what callers build
//	files/    small files to be, numbered
//	old/      what was replaced, numbered
//	profile/  a profile that a transaction makes
//	part, copy-<n>, copy-of-<n>  copies of what cannot be renamed, see aside.go
//
// and .<name>.backup-<random> is a whole profile that was replaced, on its way
// to the state directory. Where that is on another filesystem, the finished
// copy in the state is copied-<random> until the profile itself is
// .<name>.backup-copied-<random>, which is only to be removed.
const (
	stagingMark = ".staging-"
	backupMark  = ".backup-"
	copiedMark  = ".backup-copied-"
	copyMark    = "copied-"
)

// beside is a fresh name in the directory of the profile.
func beside(dir, mark string) string { return besideWith(dir, mark, random()) }

func besideWith(dir, mark, random string) string { return "." + stem(dir) + mark + random }

// isBeside says whether a name was made by beside for this profile. The whole
// rest has to be right: a profile x.staging-y has names of its own.
func isBeside(name, dir, mark string) bool {
	rest, ok := strings.CutPrefix(name, "."+stem(dir)+mark)
	return ok && isRandom(rest)
}

// randomOf is the random part of a name that beside made.
func randomOf(path string) string { return path[strings.LastIndexByte(path, '-')+1:] }

// stem is the profile's name, shortened where a longer one would make names
// that no filesystem takes.
func stem(dir string) string {
	const longest = 200 // bytes; with marks and dots under the usual 255
	name := filepath.Base(dir)
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	cut := longest - 20
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "-" + hex.EncodeToString(sum[:6])
}

// newStage makes a staging directory beside dir and locks it; in dir, by a
// temporary name, where dir is a mount point, for what is beside it is on another
// filesystem. The release does not remove it.
func (d disk) newStage(dir string) (root string, release func() error, err error) {
	mount, err := d.isMount(dir)
	if err == nil {
		root, release, err = d.newLocked(func() string {
			if mount {
				return filepath.Join(dir, tempMark+random())
			}
			return filepath.Join(filepath.Dir(dir), beside(dir, stagingMark))
		}, 0o700, "new", "files", "old")
	}
	if err != nil {
		return "", nil, fmt.Errorf("making a staging directory: %w", err)
	}
	return root, release, nil
}

// isMount is false where nothing is.
func (d disk) isMount(dir string) (bool, error) {
	mount, err := d.IsMount(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return mount, err
}

// movable is an error if the directory of a profile is a mount point.
func (d disk) movable(dir string) error {
	mount, err := d.isMount(dir)
	if err != nil || !mount {
		return err
	}
	return fault.WithHint(fault.Errorf(fault.Environment, "it is a mount point, which nobody can replace, rename or remove"),
		"unmount it, then try again; single files and packages can be changed as it is")
}

// newLocked makes a directory with a lock in it, which it holds, and the named
// directories. Until the lock is held a sweep may take the directory away; then
// another name is tried.
func (d disk) newLocked(name func() string, perm fs.FileMode, subs ...string) (root string, release func() error, err error) {
	for range 10 {
		root = name()
		release, err = d.makeLocked(root, perm, subs)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrHeld) {
			break
		}
	}
	return root, release, err
}

func (d disk) makeLocked(root string, perm fs.FileMode, subs []string) (release func() error, err error) {
	if err := d.Mkdir(root, perm); err != nil {
		return nil, err
	}
	release, err = d.TryLock(filepath.Join(root, "lock"), nil)
	if err != nil {
		return nil, errors.Join(err, d.removeStage(root))
	}
	for _, sub := range subs {
		if err := d.Mkdir(filepath.Join(root, sub), 0o755); err != nil {
			return nil, errors.Join(err, release(), d.removeStage(root))
		}
	}
	return release, nil
}

// removeStage removes a staging directory of this process, or one that is
// nobody's. The lock goes last, for without it a directory is not known to be
// ours.
func (d disk) removeStage(root string) error {
	if err := d.emptyStage(root); err != nil {
		return err
	}
	return d.dropStage(root)
}

// emptyStage removes everything but the lock.
func (d disk) emptyStage(root string) error {
	entries, err := d.readDirIfAny(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := d.RemoveAll(filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// dropStage removes an empty staging directory and its lock.
func (d disk) dropStage(root string) error {
	if err := d.Remove(filepath.Join(root, "lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.removeIfEmpty(root)
}

// sweepStage removes a staging directory if its process is dead.
func (d disk) sweepStage(root string) error {
	lock := filepath.Join(root, "lock")
	ours, err := d.exists(lock)
	if err != nil {
		return err
	}
	if !ours {
		return d.removeIfEmpty(root) // its process died before it made the lock
	}
	release, err := d.TryLock(lock, nil)
	if errors.Is(err, ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	// Emptied only while the lock is held: after the release it may be taken by
	// the process that was just making the directory, and what is in it is live.
	if err := errors.Join(d.emptyStage(root), release()); err != nil {
		return err
	}
	return d.dropStage(root)
}
