package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// composeSafely composes what can be composed of a profile that may be broken,
// and writes nothing. A manifest that cannot be read is what [Env.lastManifest]
// makes of it, and a broken layer of the user is left out.
func composeSafely(ctx context.Context, env Env, layers Layers) (*Composed, error) {
	c, warnings, err := reading(ctx, env, layers.Name, func(v staging.View) (*Composed, error) {
		p, told, err := safeProfile(env, layers.Name, v)
		if err != nil {
			return nil, err
		}
		if err := checkSetAside(p, layers.Without); err != nil {
			return nil, err
		}
		c, err := composeProfile(env, p, layers, true)
		if err != nil {
			return nil, err
		}
		c.Warnings = slices.Concat(told, c.Warnings, c.leftOut())
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	c.Warnings = append(warnings, c.Warnings...)
	return c, nil
}

// safeProfile reads a profile, and tells what is taken where its manifest should
// be.
func safeProfile(env Env, name profile.Name, v staging.View) (*profile.Profile, []string, error) {
	p, err := profile.ReadFrom(v.Path, env.Home, name)
	missing, isMissing := errors.AsType[*profile.MissingError](err)
	switch {
	case err == nil:
		return p, nil, nil
	case isMissing && !missing.Left:
		p, err = readOrTemplate(v, env.Home, name)
		return p, nil, err
	}
	last, lastErr := env.lastManifest(name)
	if lastErr != nil {
		return nil, nil, errors.Join(err, lastErr)
	}
	told := []string{fmt.Sprintf("%v; for this once it is taken from %s", err, last.from)}
	if last.damaged != nil {
		told = append(told, leftOutOfHistory(last.damaged))
	}
	return &profile.Profile{Name: name, Dir: env.Home.ProfileDir(name), Manifest: last.manifest}, told, nil
}

// checkSetAside finds a bundle to set aside that the profile does not have.
func checkSetAside(p *profile.Profile, names []string) error {
	bundles := p.Manifest.Bundles()
	for _, name := range names {
		if !slices.Contains(bundles, name) {
			return fault.Errorf(fault.Other, "profile %s has no bundle %q to set aside; it lists %s", p.Name, name, strings.Join(bundles, ", "))
		}
	}
	return nil
}
