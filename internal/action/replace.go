package action

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"dsh/internal/profile"
	"dsh/internal/staging"
)

// ReplaceOptions say how a profile is made anew.
type ReplaceOptions struct {
	Name     profile.Name
	Template string
	// Implied says that the command line did not name the profile. One that
	// is in use is then not replaced.
	Implied bool
}

// Replace makes a profile a fresh copy of a shipped template: everything is
// checked first, then staged beside the profile and renamed into place, and
// the previous directory is restored if that fails.
func Replace(ctx context.Context, env Env, opts ReplaceOptions) (Replaced, error) {
	tmpl, err := profile.LookupTemplate(opts.Template)
	if err != nil {
		return Replaced{}, err
	}
	if err := profile.CheckTarget(opts.Name); err != nil {
		return Replaced{}, err
	}
	if err := env.Home.CheckLink(opts.Name); err != nil {
		return Replaced{}, err
	}
	place := env.Home.Place(opts.Name)
	if opts.Implied && inUse(place.Dir) {
		return Replaced{}, &inUseError{opts.Name.String(), opts.Template}
	}
	if _, err := os.Lstat(place.Dir); errors.Is(err, fs.ErrNotExist) {
		if _, err := env.newName(opts.Name.String()); err != nil {
			return Replaced{}, err
		}
	}
	if err := staging.MkdirAll(env.Home.ProfilesDir()); err != nil {
		return Replaced{}, env.unwritable(err)
	}
	options := env.options()
	options.Decide = func() (bool, error) {
		if opts.Implied && inUse(place.Dir) { // since we looked
			return false, &inUseError{opts.Name.String(), opts.Template}
		}
		// A fresh copy that is replaced by a fresh copy would only push out
		// what somebody may want back.
		return profile.IsFresh(place.Dir, opts.Name), nil
	}
	done, err := staging.ReplaceDir(ctx, place, func(stage string) error {
		return profile.Write(stage, opts.Name, tmpl)
	}, options)
	if err != nil {
		return Replaced{}, diskFull(env.unwritable(err))
	}
	return Replaced{Kept: done.Kept, Warnings: done.Warnings}, nil
}
