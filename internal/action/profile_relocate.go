package action

import (
	"path/filepath"
	"strings"

	"dsh/internal/install"
	"dsh/internal/profile"
)

// relocate makes a manifest and its lockfile, which were written for a profile
// in the directory from, right for one in the directory to that has the same
// files. The name of the package follows, and so do dependencies on folders and
// archives in the profile itself. Other relative paths stay right, because both
// directories have one parent. It reports what changed; lock may be nil.
func relocate(m *profile.Manifest, lock *install.Lock, from, to site) (changed, lockChanged bool) {
	changed = m.Rename(from.name, to.name)
	for _, kind := range []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies} {
		for _, d := range m.Dependencies(kind) {
			spec, ok := relocated(d, from.dir, to.dir)
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
	return changed, relocatePlaces(lock, from.dir) || lockChanged
}

// relocatePlaces makes the places of a lockfile that name what is in the
// directory from relative to the profile, and reports whether there are any.
func relocatePlaces(lock *install.Lock, from string) (changed bool) {
	if lock == nil {
		return false
	}
	for _, n := range lock.Nodes {
		native := filepath.FromSlash(n.Origin.Place)
		if !local(n.Origin.Kind) || !filepath.IsAbs(native) {
			continue
		}
		if inside, err := filepath.Rel(from, native); err == nil && filepath.IsLocal(inside) {
			n.Package.Origin.Place = filepath.ToSlash(inside)
			changed = true
		}
	}
	return changed
}

// site is a profile and its directory.
type site struct {
	name profile.Name
	dir  string
}

// relocated is the spec of a dependency on something in the directory from, as
// it has to be in the directory to; ok is false where it stays as it is.
func relocated(d profile.Dependency, from, to string) (spec string, ok bool) {
	was, err := install.ParseDependency(d.Name, d.Spec, from)
	if err != nil || !local(was.Kind) {
		return "", false
	}
	inside, err := filepath.Rel(from, was.Place)
	if err != nil || !filepath.IsLocal(inside) {
		return "", false
	}
	if now, err := install.ParseDependency(d.Name, d.Spec, to); err == nil && now.Place == filepath.Join(to, inside) {
		return "", false
	}
	scheme := "file:"
	if was.Kind == install.Link {
		scheme = "link:"
	}
	return scheme + "./" + strings.TrimPrefix(filepath.ToSlash(inside), "./"), true
}

func local(kind install.Kind) bool {
	return kind == install.Archive || kind == install.Folder || kind == install.Link
}

// linksInside says whether a lockfile links to folders in the profile itself.
// Such links name the profile's directory.
func linksInside(lock *install.Lock) bool {
	if lock == nil {
		return false
	}
	for _, n := range lock.Nodes {
		if n.Origin.Kind == install.Link && n.Origin.Place != ".." && !strings.HasPrefix(n.Origin.Place, "../") && !filepath.IsAbs(n.Origin.Place) {
			return true
		}
	}
	return false
}
