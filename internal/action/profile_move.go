package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
	"dsh/internal/staging"
)

// Renamed says what renaming a profile did.
type Renamed struct {
	From    string `json:"from"`
	Profile string `json:"profile"`
	Dir     string `json:"dir"`
	// Chosen says that the profile was the user's default, and still is.
	Chosen bool `json:"chosen"`
	// References are lines that still name the directory which is gone.
	References []Reference `json:"references"`
	Notes      []string    `json:"notes"`
	Warnings   []string    `json:"-"`
}

// RenameProfile gives a profile another name, with its history and all that was
// kept of it. Dependencies on what lies in it follow.
func RenameProfile(ctx context.Context, env Env, opts PluginOptions, from profile.Name) (*Renamed, error) {
	if err := env.there(from); err != nil {
		return nil, err
	}
	if err := env.ownName(from); err != nil {
		return nil, err
	}
	to, err := env.newName(opts.Name.String(), from)
	if err != nil {
		// Who lost a race has no profile of the old name any more.
		return nil, cmp.Or(env.there(from), err)
	}
	if to == from {
		return nil, fault.Errorf(fault.Other, "profile %s has that name already", from)
	}
	opts.Name = to
	warnings, err := env.mayHave(ctx, from, to)
	if err != nil {
		return nil, err
	}
	was, is, err := env.renamedSites(from, to)
	if err != nil {
		return nil, err
	}
	done := &Renamed{From: from.String(), Profile: to.String(), Dir: env.Home.ProfileDir(to), Notes: []string{}, References: []Reference{}, Warnings: warnings}
	// All that counts is made right for both names first, so that the move alone
	// decides.
	opts.Name = from
	missing, left := (*profile.MissingError)(nil), false
	if err := env.settle(ctx, opts, was, site{from, is.dir, is.link}, done); errors.As(err, &missing) {
		if left = missing.Left && !missing.Lost; !left { // else there is nothing in it that counts
			return nil, cmp.Or(env.there(from), err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("profile %s was not renamed: %w", from, err)
	}
	if err := env.moveChosen(ctx, from, to, done); err != nil {
		return nil, err
	}
	for _, warning := range env.movePluginData(from, to) {
		done.warn("%s", warning)
	}
	opts.Name = to
	if err := env.settle(ctx, opts, was, is, done); err != nil && !left {
		done.warn("the profile has its new name, and its package.json may still name the old one: %v", err)
	}
	names, err := env.Home.Profiles()
	if err != nil {
		done.warn("the profiles were not searched for the old name: %v", err)
		return done, nil
	}
	done.References = references(env.Home, from, names, true)
	return done, nil
}

// renamedSites are the directories of a profile before and after it is renamed. A
// profile that is a link leads to the same one then.
func (env Env) renamedSites(from, to profile.Name) (was, is site, err error) {
	if was, err = env.siteOf(from); err != nil {
		return was, is, fmt.Errorf("looking for profile %s: %w", from, err)
	}
	is = site{to, was.dir, env.Home.ProfileDir(to)}
	if info, err := os.Lstat(env.Home.ProfileDir(from)); err == nil && info.IsDir() {
		is.dir = filepath.Join(filepath.Dir(was.dir), to.String())
	}
	return was, is, nil
}

// moveChosen gives a profile its new name, and the user's choice with it where it
// was the one.
func (env Env) moveChosen(ctx context.Context, from, to profile.Name, done *Renamed) (err error) {
	chosen := func() bool {
		name, ok, err := profile.Chosen(env.Home)
		if err != nil {
			done.warn("the choice of a default profile: %v", err)
		}
		return ok && name == from
	}
	if !chosen() {
		return env.move(ctx, from, to)
	}
	lock, err := env.acquire(ctx, env.Home.Path("state", editLock))
	if err != nil {
		return env.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if !chosen() { // any more
		return env.move(ctx, from, to)
	}
	if err := profile.ChooseMoving(env.Home, from, to); err != nil {
		return env.unwritable(err)
	}
	if err := env.move(ctx, from, to); err != nil {
		return errors.Join(err, profile.Choose(env.Home, from))
	}
	done.Chosen = true
	if err := profile.Choose(env.Home, to); err != nil {
		done.warn("%s still holds the old name beside the new one: %v", env.Home.ChosenPath(), err)
	}
	return nil
}

func (env Env) move(ctx context.Context, from, to profile.Name) error {
	was := runtimes.ChoicePath(env.Home, &from)
	err := staging.MoveDir(ctx, env.Home.Place(from), env.Home.Place(to), env.options())
	switch {
	case err == nil:
		return env.unwritable(runtimes.MoveChoice(was, runtimes.ChoicePath(env.Home, &to)))
	case errors.Is(err, fs.ErrExist):
		return existing(&profile.TakenError{Name: to, By: to})
	case errors.Is(err, fs.ErrNotExist):
		return cmp.Or(env.there(from), err)
	}
	return env.unwritable(err)
}

// mayHave says why a profile cannot be given a name.
func (env Env) mayHave(ctx context.Context, from, to profile.Name) (warnings []string, err error) {
	if _, err := profile.LookupTemplate(to.String()); err != nil {
		return nil, nil // whatever is in it
	}
	p, warnings, err := reading(ctx, env, from, func(v staging.View) (*profile.Profile, error) { return profile.ReadFrom(v.Path, env.Home, from) })
	if err != nil {
		return nil, err
	}
	return warnings, profile.CheckShipped(to, p.Manifest.Bundles())
}

func (r *Renamed) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// there refuses a profile that does not exist.
func (env Env) there(name profile.Name) error {
	dir := env.Home.ProfileDir(name)
	_, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// It may only seem so, until a change that did not end is finished.
		recovered(context.Background(), env, name)
		_, err = os.Lstat(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err := fault.Errorf(fault.Other, "profile %q does not exist", name)
		word := fault.ShellWord(name.String())
		if env.Home.Kept(name) {
			return fault.WithHint(err, "dsh profile undelete %s brings it back", word)
		}
		if _, shipped := profile.LookupTemplate(name.String()); shipped == nil {
			return fault.WithHint(err, "dsh profile create %s makes it", word)
		}
		return fault.WithHint(err, "dsh profile list shows those that do")
	}
	if err != nil {
		return fmt.Errorf("looking for profile %s: %w", name, err)
	}
	return nil
}

// settle makes the manifest, the lockfile and the links of a profile, which were
// written for was, right for is. Where nothing is wrong, nothing is changed.
func (env Env) settle(ctx context.Context, opts PluginOptions, was, is site, done *Renamed) (err error) {
	tx, p, err := env.begin(ctx, opts.Name, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	// As it stands on the disk, and not renewed.
	text, err := os.ReadFile(packageFile(p.Dir))
	if err != nil {
		return err
	}
	manifest, err := profile.ParseManifest(packageFile(p.Dir), text)
	if err != nil {
		return err
	}
	lockFile := filepath.Join(p.Dir, install.LockName)
	lockText, err := readFile(lockFile)
	if err != nil {
		return err
	}
	var lock *install.Lock
	if lockText != nil {
		if lock, err = install.ParseLock(lockFile, lockText); err != nil {
			return fault.WithHint(err, "dsh profile repair %s", fault.ShellWord(opts.Name.String()))
		}
	}
	changed, lockChanged := relocate(manifest, lock, was, is)
	if changed {
		err = errors.Join(tx.Expect("package.json", text), tx.WriteFile("package.json", manifest.Bytes(), 0o644))
	}
	if lockChanged {
		err = errors.Join(err, tx.Expect(install.LockName, lockText), tx.WriteFile(install.LockName, lock.Bytes(), 0o644))
	}
	if err != nil {
		return err
	}
	before := opts.Name == was.name
	switch maker := install.Maker(p.Dir); {
	case maker == "dsh" && linksInside(lock) && (changed || lockChanged || !before):
		err = env.withJob(opts, tx, p, func(j *install.Job) error {
			result, err := j.Restore(ctx, manifest, lock)
			if err == nil {
				done.Warnings = append(done.Warnings, result.Warnings...)
			}
			return err
		})
	case maker != "" && maker != "dsh" && !before:
		done.Notes = append(done.Notes, fmt.Sprintf("node_modules was laid out by %s and may name the old directory; %s install in %s lays it out again", maker, maker, p.Dir))
	}
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	done.Warnings = append(done.Warnings, tx.Warnings()...)
	return nil
}

// RemovedProfile says what became of a profile.
type RemovedProfile struct {
	Profile string `json:"profile"`
	Dir     string `json:"dir"`
	Removed bool   `json:"removed"` // false: it was not there
	// Kept is where its directory is now, without node_modules; "" if there was
	// nothing to keep.
	Kept string `json:"kept"`
	// Chosen says that it was the user's default profile. It is not any more.
	Chosen bool `json:"chosen"`
	// References are lines of others that name its directory.
	References []Reference `json:"references"`
	Warnings   []string    `json:"-"`
}

// ownName refuses a name that is only a link to another profile of the home: with
// it nothing but the link could be meant, and the history is that of the other.
func (env Env) ownName(name profile.Name) error {
	real := env.Home.Real(name)
	if real == name {
		return nil
	}
	dir := env.Home.ProfileDir(name)
	return fault.WithHint(fault.Errorf(fault.Other, "%s is a link to profile %s, and no profile of its own", dir, real),
		"move or remove the link itself, or use the name %s", fault.ShellWord(real.String()))
}

// CheckRemovable says whether profiles can be removed: all that are not there
// are named, and with lenient are no error.
func CheckRemovable(env Env, names []profile.Name, lenient bool) (there []profile.Name, err error) {
	for _, name := range names {
		if missing := env.there(name); missing == nil {
			if !slices.Contains(there, name) {
				there = append(there, name)
			}
		} else if !lenient || errors.Is(missing, fs.ErrPermission) {
			return nil, missing
		}
	}
	return there, nil
}

// RemoveProfile takes a profile away. What it was is kept, so that it can be
// brought back: its files as a generation, and its directory without
// node_modules.
func RemoveProfile(ctx context.Context, env Env, name profile.Name) (*RemovedProfile, error) {
	if err := env.ownName(name); err != nil {
		return nil, err
	}
	gone := &RemovedProfile{Profile: name.String(), Dir: env.Home.ProfileDir(name), References: []Reference{}}
	done, err := staging.RemoveDir(ctx, env.Home.Place(name), env.options())
	_, lost := errors.AsType[*staging.LostRace](err)
	if errors.Is(err, fs.ErrNotExist) || lost && env.there(name) != nil { // somebody else removed it
		return gone, nil
	}
	if err != nil {
		return nil, env.unwritable(err)
	}
	gone.Removed, gone.Kept, gone.Warnings = true, done.Kept, done.Warnings
	if err := runtimes.SetChoiceAside(env.Home, name); err != nil {
		gone.Warnings = append(gone.Warnings, fmt.Sprintf("the installation that was chosen for the profile: %v", err))
	}
	chosen, ok, err := profile.Chosen(env.Home)
	if err == nil && ok && chosen == name {
		gone.Chosen = true
		_, err = profile.Unchoose(env.Home)
	}
	if err != nil {
		gone.Warnings = append(gone.Warnings, fmt.Sprintf("the choice of a default profile: %v", err))
	}
	names, err := env.Home.Profiles()
	if err != nil {
		gone.Warnings = append(gone.Warnings, fmt.Sprintf("the profiles were not searched for its name: %v", err))
		return gone, nil
	}
	gone.References = references(env.Home, name, names, true)
	return gone, nil
}
