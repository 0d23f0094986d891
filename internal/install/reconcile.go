package install

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"dsh/internal/profile"
)

// installed is what stands in node_modules under one name.
type installed struct {
	version string
	bundle  bool
	there   bool
	dir     string // where its files are now
}

// onDisk reads what is installed for a dependency of the profile right now.
func onDisk(dir, name string) installed {
	at := filepath.Join(dir, "node_modules", filepath.FromSlash(name))
	m, err := readPackageJSON(name, at)
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return installed{}
	}
	if err != nil {
		return installed{there: true, dir: at}
	}
	return installed{version: versionOf(m), bundle: m.Layer, there: true, dir: at}
}

// staged reads what will be installed for a dependency of the profile.
func (t *tree) staged(name string) (installed, error) {
	if now, ok := t.told[name]; ok {
		return now, nil
	}
	at := "node_modules/" + name
	n, ok := t.lock.Nodes[at]
	if !ok || t.skipped[at] {
		return installed{}, nil // an optional one that is left out
	}
	dir := t.filesAt(at)
	m, err := readPackageJSON(n.describe(), dir)
	if err != nil {
		return installed{}, err
	}
	return installed{version: n.Version, bundle: m.Layer, there: true, dir: dir}, nil
}

// reconcile brings the bundle list in step with the dependencies that the
// command added, updated or removed, and with no others: what a person
// switched off by hand stays off. A dependency becomes a layer when it is
// added, or when an update gains the declaration; it stops being one when it
// is removed or loses the declaration, unless the installation has a bundle of
// that name. Only packages under "dependencies" are layers.
func (j *Job) reconcile(t *tree, c change) ([]Change, error) {
	bundles := j.manifest.Bundles()
	names, activate := c.touched, func(string) bool { return c.activate }
	if names == nil {
		newcomers := j.newcomers()
		names, activate = j.everyName(), func(name string) bool { return slices.Contains(newcomers, name) }
	}
	changes := []Change{}
	for _, name := range names {
		before := onDisk(j.Files, name)
		// What a link leads to is the new version already.
		if locked, ok := j.locked.at("node_modules/" + name); ok && (!before.there || locked.Origin.Kind == Link) {
			before.version = locked.Version
		}
		now, err := t.staged(name)
		if err != nil {
			return nil, err
		}
		ch := j.describe(t, name, before, now)
		if c.touched == nil && ch.Action == Kept {
			continue // an install is about what it changes
		}
		listed := slices.Contains(bundles, name)
		layer := now.bundle && j.inDependencies(name)
		switch {
		case layer && listed:
			ch.Layer = LayerKept
		case layer && (activate(name) || before.there && !before.bundle):
			ch.Layer = LayerAdded
			bundles = append(bundles, name)
		case layer:
			ch.Layer = LayerOff
		case listed && j.InBox(name):
			ch.Layer = LayerInBox
		case listed && j.depended(name):
			ch.Layer = LayerRemoved
			bundles = slices.DeleteFunc(bundles, func(b string) bool { return b == name })
		}
		if ch.Shadowed = layer && j.InBox(name); ch.Layer == LayerAdded || (ch.Layer == LayerKept && ch.Action != Kept) {
			if err := j.CheckLayer(name, now.dir); err != nil {
				return nil, err
			}
		}
		changes = append(changes, ch)
	}
	if !slices.Equal(bundles, j.manifest.Bundles()) {
		j.manifest.SetBundles(bundles)
	}
	return changes, nil
}

// describe says what happens to one dependency, layers aside.
func (j *Job) describe(t *tree, name string, before, now installed) Change {
	spec, kind, depends := j.manifest.Dependency(name)
	ch := Change{Name: name, Before: before.version, Version: now.version, Spec: ShownSpec(spec), Action: Kept}
	n, ok := t.lock.at("node_modules/" + name)
	if ok {
		ch.From = j.from(n.Package)
		ch.Commit = n.Origin.Commit()
	}
	if old, had := j.locked.at("node_modules/" + name); had {
		ch.CommitBefore = old.Origin.Commit()
	}
	if w, ok := t.lock.source(name); ok {
		ch.From = w.From
		if n.Package != nil && n.AgentPlugin {
			ch.From, ch.AgentPlugin = ShownSpec(w.From), true
		}
	}
	switch {
	case !depends:
		ch.Action = Removed
	case !now.there:
		ch.Action = LeftOut
		ch.Version, ch.Reason = n.version(), "it is not to be had"
		if ok && !ThisPlatform().runs(n.Package) {
			ch.Reason = "it does not run on this machine"
		}
	case !j.depended(name) || before.version == "":
		ch.Action = Added
	case before.version != now.version || j.moved(t, name):
		ch.Action = Updated
	}
	if _, was, had := j.before.Dependency(name); had && depends && was != kind {
		ch.Section = string(kind)
	}
	return ch
}

func (j *Job) inDependencies(name string) bool {
	_, kind, ok := j.manifest.Dependency(name)
	return ok && kind == profile.Dependencies
}

// everyName is every dependency of the profile, now or by its lockfile.
func (j *Job) everyName() []string {
	names := j.dependencyNames()
	if j.locked != nil {
		names = append(names, sortedKeys(j.locked.Wanted)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// newcomers is the dependencies that an install brings in for the first time,
// because somebody put them into the manifest by hand: the lockfile does not
// know them. Without a lockfile nothing tells them from those whose layers
// were switched off.
func (j *Job) newcomers() []string {
	if j.locked == nil {
		return nil
	}
	var names []string
	for _, name := range j.dependencyNames() {
		if _, known := j.locked.Wanted[name]; !known {
			names = append(names, name)
		}
	}
	return names
}

// depended reports whether the profile depended on name before the command.
func (j *Job) depended(name string) bool {
	if j.locked != nil {
		if _, ok := j.locked.Wanted[name]; ok {
			return true
		}
	}
	_, _, ok := j.before.Dependency(name)
	return ok
}

// moved reports whether the content of a dependency changes though its
// version does not.
func (j *Job) moved(t *tree, name string) bool {
	if j.locked == nil {
		return false
	}
	at := "node_modules/" + name
	old, had := j.locked.Nodes[at]
	now, has := t.lock.Nodes[at]
	return had && has && (old.Integrity != now.Integrity || old.Origin != now.Origin)
}
