package action

import (
	"path/filepath"
	"strings"

	"dsh/internal/install"
	"dsh/internal/profile"
)

// relocate makes a manifest and its lockfile, which were written for a profile
// in the directory from, right for one in the directory to that has the same
// files. The name of the package follows, and so do
// dependencies on folders and archives in the profile itself. Other relative
// paths lead where they led. It reports what changed; lock may be nil.
func relocate(m *profile.Manifest, lock *install.Lock, from, to site) (changed, lockChanged bool) {
	changed = from.name != to.name && m.Rename(from.name, to.name)
	for _, kind := range []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies} {
		for _, d := range m.Dependencies(kind) {
			spec, ok := relocated(d, from, to.dir)
			if !ok {
				continue
			}
			m.SetDependency(kind, d.Name, spec)
			changed = true
			if lock != nil && lock.Wanted[d.Name] == d.Spec {
				lock.Wanted[d.Name] = spec
				lockChanged = true
			}
		}
	}
	return changed, relocatePlaces(lock, from, to.dir) || lockChanged
}

// relocatePlaces makes the places of a lockfile that name what is in the
// directory from relative to the profile, and those that are relative and lead
// out of it right for the directory to. It reports whether there are any.
func relocatePlaces(lock *install.Lock, from site, to string) (changed bool) {
	if lock == nil {
		return false
	}
	for _, n := range lock.Nodes {
		if !local(n.Origin.Kind) {
			continue
		}
		native := filepath.FromSlash(n.Origin.Place)
		relative := !filepath.IsAbs(native)
		if relative {
			native = filepath.Join(from.dir, native)
		}
		if place := filepath.ToSlash(placeFor(native, relative, from, to)); place != n.Origin.Place {
			n.Package.Origin.Place = place
			changed = true
		}
	}
	return changed
}

// placeFor is how the profile in the directory to names the place that the one in
// from names, absolutely or relative to itself. What is in from is in to as well.
func placeFor(place string, relative bool, from site, to string) string {
	for _, dir := range []string{from.dir, from.link} {
		if inside, err := filepath.Rel(dir, place); err == nil && dir != "" && filepath.IsLocal(inside) {
			return inside
		}
	}
	if outside, err := filepath.Rel(to, place); err == nil && relative {
		return outside
	}
	return place // or they are on two volumes
}

// site is a profile and its directory.
type site struct {
	name profile.Name
	dir  string // where links lead, which is where relative paths in it start
	link string // what leads there, if anything
}

// siteOf is a profile that is there, or will be.
func (env Env) siteOf(name profile.Name) (site, error) {
	link := env.Home.ProfileDir(name)
	dir, err := realDir(link)
	return site{name, dir, link}, err
}

// relocated is the spec of a dependency of the profile in the directory from, as
// it has to be in the directory to; ok is false where it stays as it is.
func relocated(d profile.Dependency, from site, to string) (spec string, ok bool) {
	was, err := install.ParseDependency(d.Name, d.Spec, from.dir)
	if err != nil || !local(was.Kind) {
		return "", false
	}
	place := placeFor(was.Place, was.Relative, from, to)
	want := place
	if !filepath.IsAbs(place) {
		want = filepath.Join(to, place)
	}
	if now, err := install.ParseDependency(d.Name, d.Spec, to); err == nil && now.Place == want {
		return "", false
	}
	scheme := "file:"
	if was.Kind == install.Link {
		scheme = "link:"
	}
	if filepath.IsLocal(place) {
		return scheme + "./" + filepath.ToSlash(place), true
	}
	return scheme + filepath.ToSlash(place), true
}

func local(kind install.Kind) bool {
	return kind == install.Archive || kind == install.Folder || kind == install.Link
}

// linksInside says whether a lockfile links to folders in the profile itself, or has
// Agent Plugins. Links and wrappers name the profile's directory.
func linksInside(lock *install.Lock) bool {
	if lock == nil {
		return false
	}
	for _, n := range lock.Nodes {
		if n.AgentPlugin || n.Origin.Kind == install.Link && n.Origin.Place != ".." && !strings.HasPrefix(n.Origin.Place, "../") && !filepath.IsAbs(n.Origin.Place) {
			return true
		}
	}
	return false
}
