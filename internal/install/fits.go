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
	overrides, err := newOverrides(l.Overrides)
	if err != nil {
		return err
	}
	r := &resolver{dir: dir, settings: Settings{Overrides: overrides}}
	gone := map[string]bool{} // what need not be there though packages ask for it
	for _, name := range l.Omitted {
		gone[name] = true
	}
	for text, value := range l.Overrides {
		if value == removed {
			gone[overridden(text)] = true
		}
	}
	wishes := (&Job{manifest: m}).wishes()
	depends := map[string]bool{}
	for _, w := range wishes {
		depends[w.Name] = true
		if err := l.fits(w, r); err != nil {
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
			if _, _, found := l.lookUp(at, name); !found && !optional && !gone[name] {
				return fault.Errorf(fault.Package, "%s has %s, which needs %s, and not that", LockName, n.describe(), name)
			}
		}
	}
	return nil
}

// fits is Fits for one dependency of the profile.
func (l *Lock) fits(w Wish, r *resolver) error {
	wanted, known := l.Wanted[w.Name]
	if !known {
		return fault.Errorf(fault.Package, "package.json depends on %s, and %s does not know it", w.Name, LockName)
	}
	if wanted != anyVersion(w.Wanted) {
		return fault.Errorf(fault.Package, "package.json asks for %s %s, and %s was made for %s", w.Name, anyVersion(w.Wanted), LockName, wanted)
	}
	need := r.need(nil, nil, w.Name, w.Wanted, w.Optional)
	if need == nil {
		return nil // an override takes it away
	}
	n, ok := l.Nodes["node_modules/"+w.Name]
	if ok && isWrapped(n.Package, w.Name, w.Wanted) {
		return nil
	}
	if !ok && w.Optional {
		return nil // it could not be had
	}
	if !ok {
		return fault.Errorf(fault.Package, "package.json depends on %s, and %s does not hold it", w.Name, LockName)
	}
	d := need.demand
	if d.err != nil {
		return d.err
	}
	if n.Origin.Kind != d.spec.Kind || !d.fits(n.Package) && !d.remains(n.Package) {
		return fault.Errorf(fault.Package, "package.json asks for %s %s, and %s holds %s for it", w.Name, anyVersion(w.Wanted), LockName, n.describe())
	}
	return nil
}

// notFrozen says why the lockfile would have to change.
func (j *Job) notFrozen() error {
	var err error
	if j.locked == nil {
		err = fault.Errorf(fault.Package, "there is no %s, and none may be made", LockName)
		if name := foreignLockfile(j.Files); name != "" {
			return fault.WithHint(err, "%s takes the versions of %s over", fault.ShellWords("dsh", "profile", "adopt", j.Profile), name)
		}
		return fault.WithHint(err, "%s makes one", j.command("install"))
	}
	why := j.locked.MadeFor(j.settings, j.Provides)
	if why == nil {
		why = j.locked.Fits(j.manifest, j.Dir)
	}
	err = fault.Errorf(fault.Package, "%s does not fit package.json, and it must not change", LockName)
	if why != nil {
		err = fault.Errorf(fault.Package, "%w: %w", err, why)
	}
	return fault.WithHint(err, "%s brings it up to date", j.command("install"))
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
