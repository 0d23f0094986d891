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
	err = staging.MoveDir(ctx, env.Home.Place(from), env.Home.Place(to), env.options())
	if errors.Is(err, fs.ErrExist) {
		return nil, existing(&profile.TakenError{Name: to, By: to})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmp.Or(env.there(from), err)
	}
	if err != nil {
		return nil, env.unwritable(err)
	}
	done := &Renamed{From: from.String(), Profile: to.String(), Dir: env.Home.ProfileDir(to), Notes: []string{}, Warnings: warnings}
	// The profile has its name now; what follows is not worth taking it back.
	if err := env.settle(ctx, opts, from, done); err != nil {
		done.warn("the profile has its new name, and what is in it could not be adapted to that: %v", err)
	}
	if err := env.follow(from, to, done); err != nil {
		done.warn("the choice of a default profile could not follow: %v", err)
	}
	names, err := env.Home.Profiles()
	if err != nil {
		return nil, err
	}
	done.References = references(env.Home, from, names, true)
	return done, nil
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
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		err := fault.Errorf(fault.Other, "profile %q does not exist", name)
		word := fault.ShellWord(name.String())
		if env.Home.Kept(name) {
			return fault.WithHint(err, "dsh profile undelete %s brings it back", word)
		}
		if _, shipped := profile.LookupTemplate(name.String()); shipped == nil {
			return fault.WithHint(err, "dsh profile create %s makes it", word)
		}
		return fault.WithHint(err, "dsh profile list shows those that do")
	} else if err != nil {
		return fmt.Errorf("looking for profile %s: %w", name, err)
	}
	return nil
}

// settle brings the manifest, the lockfile and the links of a profile that was
// called from in step with its new directory.
func (env Env) settle(ctx context.Context, opts PluginOptions, from profile.Name, done *Renamed) (err error) {
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
			return err
		}
	}
	changed, lockChanged := relocate(manifest, lock, site{from, env.Home.ProfileDir(from)}, site{opts.Name, p.Dir})
	if changed {
		err = errors.Join(tx.Expect("package.json", text), tx.WriteFile("package.json", manifest.Bytes(), 0o644))
	}
	if lockChanged {
		err = errors.Join(err, tx.Expect(install.LockName, lockText), tx.WriteFile(install.LockName, lock.Bytes(), 0o644))
	}
	if err != nil {
		return err
	}
	switch maker := install.Maker(p.Dir); {
	case maker == "dsh" && linksInside(lock):
		err = env.withJob(opts, tx, p, func(j *install.Job) error {
			result, err := j.Restore(ctx, manifest, lock)
			if err == nil {
				done.Warnings = append(done.Warnings, result.Warnings...)
			}
			return err
		})
	case maker != "" && maker != "dsh":
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

// follow makes the user's choice of from one of to.
func (env Env) follow(from, to profile.Name, done *Renamed) error {
	chosen, ok, err := profile.Chosen(env.Home)
	if err != nil || !ok || chosen != from {
		return err
	}
	done.Chosen = true
	return profile.Choose(env.Home, to)
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
	gone := &RemovedProfile{Profile: name.String(), Dir: env.Home.ProfileDir(name), References: []Reference{}}
	done, err := staging.RemoveDir(ctx, env.Home.Place(name), env.options())
	if errors.Is(err, fs.ErrNotExist) {
		return gone, nil
	}
	if err != nil {
		return nil, env.unwritable(err)
	}
	gone.Removed, gone.Kept, gone.Warnings = true, done.Kept, done.Warnings
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
		return nil, err
	}
	gone.References = references(env.Home, name, names, true)
	return gone, nil
}
