package install

import (
	"context"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// Fits says why the lockfile is not one for a manifest in dir: it was made for
// other dependencies, holds something else for one, or lacks a package that
// another one needs. The error is of class Package.
func (l *Lock) Fits(m *profile.Manifest, dir string) error {
	wishes := (&Job{manifest: m}).wishes()
	depends := map[string]bool{}
	for _, w := range wishes {
		depends[w.Name] = true
		if err := l.fits(w, dir); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(l.Wanted) {
		if !depends[name] {
			return fault.Errorf(fault.Package, "%s was made for a profile that depends on %s, and package.json does not", LockName, name)
		}
	}
	for _, at := range sortedKeys(l.Nodes) {
		n := l.Nodes[at]
		if up := parentPlace(at); up != "" && l.Nodes[up].Package == nil {
			return fault.Errorf(fault.Package, "%s has %s, and not %s", LockName, at, up)
		}
		for _, name := range sortedKeys(n.Dependencies) {
			_, optional := n.Package.Optional[name]
			if _, _, found := l.lookUp(at, name); !found && !optional {
				return fault.Errorf(fault.Package, "%s has %s, which needs %s, and not that", LockName, n.describe(), name)
			}
		}
	}
	return nil
}

// fits is Fits for one dependency of the profile.
func (l *Lock) fits(w Wish, dir string) error {
	wanted, known := l.Wanted[w.Name]
	if !known {
		return fault.Errorf(fault.Package, "package.json depends on %s, and %s does not know it", w.Name, LockName)
	}
	if wanted != anyVersion(w.Wanted) {
		return fault.Errorf(fault.Package, "package.json asks for %s %s, and %s was made for %s", w.Name, anyVersion(w.Wanted), LockName, wanted)
	}
	n, ok := l.Nodes["node_modules/"+w.Name]
	if !ok && w.Optional {
		return nil // it could not be had
	}
	if !ok {
		return fault.Errorf(fault.Package, "package.json depends on %s, and %s does not hold it", w.Name, LockName)
	}
	d := (&resolver{dir: dir, demands: map[[2]string]*demand{}}).demand(w.Name, w.Wanted)
	if d.err != nil {
		return d.err
	}
	if n.Origin.Kind != d.spec.Kind || !d.fits(n.Package) {
		return fault.Errorf(fault.Package, "package.json asks for %s %s, and %s holds %s for it", w.Name, anyVersion(w.Wanted), LockName, n.describe())
	}
	return nil
}

// Resolve is the lockfile of a manifest, in the versions of lock where those
// fit. Nothing is laid out, and the profile need not be there: local archives are
// read below Files.
func (j *Job) Resolve(ctx context.Context, manifest *profile.Manifest, lock *Lock) (*Lock, error) {
	if err := j.locate(); err != nil {
		return nil, err
	}
	j.manifest, j.locked = manifest, lock
	if err := j.configure(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	wishes := j.wishes()
	res, err := j.resolve(ctx, find, wishes, change{})
	if err != nil {
		return nil, err
	}
	return res.lock, nil
}
