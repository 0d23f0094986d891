package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// Restore makes node_modules exactly what lock says, with contents from the
// store, and what is missing there from where the lock says that it came from.
// A nil lock stands for what the manifest asks for, in the versions of the
// profile's present lockfile where those fit.
//
// Manifest, lockfile and bundle list are not written: what is restored is the
// caller's to say. Nothing that the profile has now needs to be readable. A
// linked folder that is gone is a warning, and its link is restored.
func (j *Job) Restore(ctx context.Context, manifest *profile.Manifest, lock *Lock) (*Result, error) {
	if err := j.locate(); err != nil {
		return nil, err
	}
	if err := j.readWhatReads(); err != nil {
		return nil, err
	}
	j.manifest = manifest
	if err := j.configure(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	var warnings []string
	if lock == nil {
		wishes := j.wishes()
		res, err := j.resolve(ctx, find, wishes, change{})
		if err != nil {
			return nil, err
		}
		lock = res.lock
		warnings = find.deprecations(lock)
	}
	warned, err := j.admit(lock)
	if err := errors.Join(lock.checkPlatform(ThisPlatform()), err); err != nil {
		return nil, err
	}
	warnings = append(warnings, warned...)
	result, err := j.layOut(ctx, find, lock, lock.Bytes())
	if err != nil {
		return nil, err
	}
	if result.Archives, _, err = j.stageArchives(ctx, lock); err != nil {
		return nil, err
	}
	result.Warnings = slices.Concat(result.Warnings, warnings, j.notes, result.tree.lostLinks())
	result.Changes = j.compare(result.tree)
	return result, nil
}

// readWhatReads reads the present manifest and lockfile for comparison; one
// that cannot be read counts as empty.
func (j *Job) readWhatReads() error {
	if text, err := profile.ReadFile(filepath.Join(j.Files, LockName)); err == nil {
		j.locked, _ = ParseLock(LockName, text)
	}
	var err error
	if _, err = j.readManifest(); err != nil {
		j.before, err = profile.ParseManifest(filepath.Join(j.Dir, "package.json"), []byte("{}"))
	}
	return err
}

// checkPlatform finds a package that is needed and does not run on a machine.
func (l *Lock) checkPlatform(here Platform) error {
	for _, at := range sortedKeys(l.Nodes) {
		if n := l.Nodes[at]; !n.Optional && !here.runs(n.Package) {
			return fault.Errorf(fault.Package, "%s does not run on this machine (%s): it is for %s",
				n.describe(), here, strings.Join(slices.Concat(n.OS, n.CPU, n.Libc), ", "))
		}
	}
	return nil
}

// lostLinks is a warning for every link to a folder that is not there.
func (t *tree) lostLinks() []string {
	var warnings []string
	for _, at := range sortedKeys(t.lock.Nodes) {
		n := t.lock.Nodes[at]
		if _, inside := t.lock.Nodes[n.Origin.Place]; n.Origin.Kind != Link || inside || t.isSkipped(at) {
			continue
		}
		target := nativePlace(t.dir, n.Origin.Place)
		if _, err := os.Stat(seenAt(t.dir, t.files, n.Origin.Place)); errors.Is(err, fs.ErrNotExist) {
			warnings = append(warnings, fmt.Sprintf("%s links to %s, and there is no such folder", nameAt(at), target))
		} else if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s is a link: %v", nameAt(at), err))
		}
	}
	return warnings
}

// compare says what becomes of every dependency that the manifest has or had,
// and of its place in the bundle list.
func (j *Job) compare(t *tree) []Change {
	names := j.dependencyNames()
	for _, kind := range dependencyKinds {
		for _, d := range j.before.Dependencies(kind) {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	bundles, had := j.manifest.Bundles(), j.before.Bundles()
	changes := []Change{}
	for _, name := range slices.Compact(names) {
		before := onDisk(j.Files, name)
		if locked, ok := j.locked.at("node_modules/" + name); ok && !before.there {
			before.version = locked.Version
		}
		now, err := t.staged(name)
		if n, ok := t.lock.at("node_modules/" + name); err != nil && ok {
			now = installed{version: n.Version, there: true} // a link to nothing, or to what is no package
		}
		ch := j.describe(t, name, before, now)
		switch was, is := slices.Contains(had, name), slices.Contains(bundles, name); {
		case was && is:
			ch.Layer = LayerKept
		case is:
			ch.Layer = LayerAdded
		case was:
			ch.Layer = LayerRemoved
		case now.bundle && j.inDependencies(name):
			ch.Layer = LayerOff
		}
		if ch.Action != Kept || ch.Layer == LayerAdded || ch.Layer == LayerRemoved || ch.Section != "" {
			changes = append(changes, ch)
		}
	}
	return changes
}
