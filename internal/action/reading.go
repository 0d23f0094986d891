package action

import (
	"context"
	"path/filepath"

	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// reading runs read over a profile as one change left it. What a dead process
// left of a change is finished first, and read runs again when the profile was
// changed meanwhile. Where nothing can be finished, because the home cannot be
// written, read is told where the committed files are.
func reading[T any](ctx context.Context, env Env, name profile.Name, read func(staging.View) (T, error)) (value T, warnings []string, err error) {
	warnings, err = staging.Read(ctx, env.Home.Place(name), func(v staging.View) (err error) {
		value, err = read(v)
		return err
	})
	return value, warnings, err
}

// opened is a profile as it is before a command changes it. What a dead process
// left of a change is finished first: until then the profile may seem to be gone.
func (env Env) opened(ctx context.Context, name profile.Name) (*profile.Profile, error) {
	p, _, err := reading(ctx, env, name, func(v staging.View) (*profile.Profile, error) {
		return profile.ReadFrom(v.Path, env.Home, name)
	})
	return p, err
}

// movedPackages finds the packages of a profile of which some are not at their
// places yet.
func movedPackages(p *profile.Profile) findPackage {
	return func(name string) (installation.Package, bool, error) {
		place := filepath.Join(p.Dir, "node_modules", filepath.FromSlash(name))
		at := p.Where(place)
		if at == place {
			return installation.Find(p.Dir, name)
		}
		pkg, err := installation.OpenPackage(at)
		if err != nil {
			return installation.Find(filepath.Dir(p.Dir), name)
		}
		pkg.Dir = place
		return pkg, true, nil
	}
}
