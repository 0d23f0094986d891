package action

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/archive"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// sourcesDir is the folder of a profile with what came along from its sender's
// disk.
const sourcesDir = "sources"

// sourceKinds is what a local source is called.
var sourceKinds = map[install.Kind]string{install.Archive: "archive", install.Folder: "folder", install.Link: "link"}

// addSources makes manifest and lockfile speak of nothing outside the profile.
// Folders and archives that are elsewhere travel as archives in the folder
// sources: an archive is the same on every system, executable bits included.
func (x *exporter) addSources(ctx context.Context) error {
	linked := false
	for _, kind := range dependencyKinds {
		for _, d := range x.manifest.Dependencies(kind) {
			spec, err := install.ParseDependency(d.Name, d.Spec, x.dir)
			if err != nil {
				return err
			}
			if _, _, ok := x.lock.AgentPlugin(d.Name); ok {
				if err := x.addPlugin(ctx, d.Name); err != nil {
					return fmt.Errorf("%s: %w", d.Name, err)
				}
				continue
			}
			if !local(spec.Kind) {
				continue
			}
			if stays, err := x.staysInside(ctx, spec); err != nil {
				return err
			} else if stays {
				continue
			}
			if err := x.addSource(ctx, kind, spec); err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
			linked = linked || spec.Kind == install.Link
		}
	}
	x.forgetPlaces()
	if !linked {
		return nil
	}
	// What a linked folder needs was its own affair, and is the profile's now.
	return x.resolve(ctx)
}

// forgetPlaces leaves out of the lockfile what archives were made of on this
// machine, for nobody can ask for that elsewhere, and what archives were made of
// that do not travel.
func (x *exporter) forgetPlaces() {
	if x.lock == nil {
		return
	}
	maps.DeleteFunc(x.lock.Sources, func(name string, w install.Written) bool {
		node, _ := x.node(name)
		if node.Package != nil && node.AgentPlugin {
			return strings.HasPrefix(w.From, "file:") && !strings.HasPrefix(w.From, "file:./")
		}
		return strings.HasPrefix(w.From, "file:") || node.Package == nil || path.Dir(node.Origin.Place) != install.KeptDir
	})
}

// staysInside says whether a source is in the profile and travels with its
// files, just as it is installed. Then the spec need only be relative.
func (x *exporter) staysInside(ctx context.Context, spec install.Spec) (bool, error) {
	rel, err := filepath.Rel(x.dir, spec.Place)
	if err != nil || !filepath.IsLocal(rel) || x.opts.set && spec.Kind != install.Archive {
		return false, nil // a set has archives only
	}
	at := filepath.ToSlash(rel)
	node, locked := x.node(spec.Name)
	switch {
	case !locked:
		return false, nil
	case spec.Kind == install.Archive:
		if install.CheckArchive(spec.Place, node.Integrity) != nil || archive.CheckFile(at) != nil {
			return false, nil
		}
		if _, travels := x.files[at]; !travels { // for its size
			x.done.LeftOut = slices.DeleteFunc(x.done.LeftOut, func(l archive.LeftOut) bool { return l.Path == at })
			if err := x.putLarge(at); err != nil {
				return false, err
			}
		}
	case spec.Kind == install.Link:
		if !x.holds(at) {
			return false, nil // it is itself a link to elsewhere
		}
		if _, err := os.Stat(filepath.Join(spec.Place, "node_modules")); err == nil {
			x.warn("%s links to the folder %s of the profile, whose own node_modules do not travel", spec.Name, at)
		}
	default:
		entry, err := x.copied(ctx, spec.Place)
		if err != nil || entry.Integrity != node.Integrity {
			return false, nil
		}
		for _, f := range entry.Files() {
			// Windows knows no executable files, and would see other content.
			if _, travels := x.files[path.Join(at, f.Path)]; !travels || f.Executable {
				return false, nil
			}
		}
	}
	prefix := "file:./"
	if spec.Kind == install.Link {
		prefix = "link:./"
	}
	x.respell(spec.Name, prefix+at, install.Origin{Kind: spec.Kind, Place: at}, node.Integrity)
	return true, nil
}

// holds says whether files below a path of the profile travel.
func (x *exporter) holds(at string) bool {
	for name := range x.files {
		if at == "." || strings.HasPrefix(name, at+"/") {
			return true
		}
	}
	return false
}

func (x *exporter) node(name string) (install.Located, bool) {
	if x.lock == nil {
		return install.Located{}, false
	}
	n, ok := x.lock.Nodes["node_modules/"+name]
	return n, ok
}

// respell writes the spec of a dependency anew in manifest and lockfile.
func (x *exporter) respell(name, text string, origin install.Origin, id store.Integrity) {
	_, kind, _ := x.manifest.Dependency(name)
	x.manifest.SetDependency(kind, name, text)
	node, ok := x.node(name)
	if !ok {
		return
	}
	x.lock.Wanted[name] = text
	pkg := *node.Package
	pkg.Origin, pkg.Integrity = origin, id
	x.lock.Nodes["node_modules/"+name] = install.Located{Package: &pkg, Optional: node.Optional}
}

// addSource puts the content of one source into the archive.
func (x *exporter) addSource(ctx context.Context, kind profile.DependencyKind, spec install.Spec) error {
	node, locked := x.node(spec.Name)
	if !locked {
		if kind != profile.OptionalDependencies {
			return fault.Errorf(fault.Package, "it is not in %s", install.LockName)
		}
		return fault.Errorf(fault.Package, "it is not installed, so that nothing of it can travel; take it out of %s first", manifestName)
	}
	data, err := x.packed(ctx, spec, node)
	if err != nil {
		return err
	}
	id, err := install.ArchiveIntegrity(bytes.NewReader(data))
	if err != nil {
		return err
	}
	at := x.freeName(flatName(spec.Name) + "-" + node.Version)
	x.put(at, data, 0o644)
	if spec.Kind == install.Link {
		delete(x.lock.Nodes, "node_modules/"+spec.Name)
		delete(x.lock.Wanted, spec.Name)
	}
	x.respell(spec.Name, "file:./"+at, install.Origin{Kind: install.Archive, Place: at}, id)
	x.done.Sources = append(x.done.Sources, archive.Source{Package: spec.Name, Path: at, Was: sourceKinds[spec.Kind]})
	return nil
}

// addPlugin makes what an Agent Plugin is made of travel, where that is on this
// machine alone. Its wrapper is derived where it arrives.
func (x *exporter) addPlugin(ctx context.Context, name string) error {
	node, _ := x.node(name)
	if !local(node.Origin.Kind) {
		return nil
	}
	spec := install.Spec{Name: name, Kind: node.Origin.Kind, Place: filepath.FromSlash(node.Origin.Place)}
	if !filepath.IsAbs(spec.Place) {
		spec.Place = filepath.Join(x.dir, spec.Place)
	}
	data, err := x.packed(ctx, spec, node)
	if err != nil {
		return err
	}
	id, err := install.ArchiveIntegrity(bytes.NewReader(data))
	if err != nil {
		return err
	}
	at := x.freeName(flatName(name) + "-" + node.Version)
	x.put(at, data, 0o644)
	pkg := *node.Package
	pkg.Origin, pkg.Integrity = install.Origin{Kind: install.Archive, Place: at}, id
	x.lock.Nodes["node_modules/"+name] = install.Located{Package: &pkg, Optional: node.Optional}
	if x.lock.Sources == nil {
		x.lock.Sources = map[string]install.Written{}
	}
	x.lock.Sources[name] = install.Written{From: "file:./" + at, Integrity: id}
	x.done.Sources = append(x.done.Sources, archive.Source{Package: name, Path: at, Was: sourceKinds[spec.Kind]})
	return nil
}

// freeName is a path in the sources folder that no file has.
func (x *exporter) freeName(stem string) string {
	at := path.Join(sourcesDir, stem+".tgz")
	for n := 2; x.files[at].Open != nil; n++ {
		at = path.Join(sourcesDir, fmt.Sprintf("%s-%d.tgz", stem, n))
	}
	return at
}

// packed is the archive of a source: as it is installed, and for a linked folder
// as it is now.
func (x *exporter) packed(ctx context.Context, spec install.Spec, node install.Located) ([]byte, error) {
	if spec.Kind == install.Archive && install.CheckArchive(spec.Place, node.Integrity) == nil {
		return os.ReadFile(spec.Place)
	}
	entry, stored := x.store.Get(node.Integrity)
	if !stored || !entry.Intact() {
		if spec.Kind == install.Archive {
			return nil, fault.WithHint(fault.Errorf(fault.Package, "%s is not what was installed from it, and the store does not have that any more", spec.Place),
				"dsh plugin --profile %s update %s", fault.ShellWord(x.opts.Name.String()), fault.ShellWord(spec.Name))
		}
		var err error
		if entry, err = x.copied(ctx, spec.Place); err != nil {
			return nil, err
		}
	}
	if spec.Kind == install.Folder && entry.Integrity != node.Integrity {
		return nil, fault.WithHint(fault.Errorf(fault.Package, "%s is not what was installed from it, and the store does not have that any more", spec.Place),
			"dsh plugin --profile %s update %s", fault.ShellWord(x.opts.Name.String()), fault.ShellWord(spec.Name))
	}
	return x.pack(ctx, spec.Name, entry)
}

// copied is the content of a folder as it is now.
func (x *exporter) copied(ctx context.Context, dir string) (store.Entry, error) {
	s, err := x.scratch()
	if err != nil {
		return store.Entry{}, err
	}
	return s.packages.AddFolder(ctx, dir)
}

// pack makes the archive of a package's content, the same for the same content and
// for ever, without files that may hold secrets.
func (x *exporter) pack(ctx context.Context, name string, entry store.Entry) ([]byte, error) {
	var b bytes.Buffer
	err := unpack.WriteTarball(ctx, &b, func(add func(unpack.Member, io.Reader) error) error {
		return entry.EachFile(ctx, func(m unpack.Member, content io.Reader) error {
			secret := isSecretFile(path.Base(m.Name))
			if shown := name + "/" + m.Name; x.included(shown) {
				x.inSource[shown] = true
				x.private = x.private || secret
			} else if secret {
				x.leaveOut(shown, mayHoldSecrets)
				return nil
			}
			return add(m, content)
		})
	})
	return b.Bytes(), err
}

// resolve makes the lockfile of the archive complete: what linked folders need
// is picked now.
func (x *exporter) resolve(ctx context.Context) error {
	client, err := x.client()
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := x.scratch()
	if err != nil {
		return err
	}
	files := filepath.Join(s.dir, "profile")
	for _, source := range x.done.Sources {
		data, err := inMemory(x.files[source.Path])
		if err != nil {
			return err
		}
		if err := writeSaved(files, []staging.SavedFile{{Path: source.Path, Mode: 0o644, Data: data}}); err != nil {
			return err
		}
	}
	policy, err := x.env.policy()
	if err != nil {
		return err
	}
	job := &install.Job{
		Policy: policy, Profile: x.opts.Name.String(), Dir: x.dir, Files: files, Store: s.packages, Registry: client, Events: x.opts.Events,
	}
	lock, err := job.Resolve(ctx, x.manifest, x.lock)
	if err != nil {
		return fmt.Errorf("find out what the linked folders need: %w", err)
	}
	x.lock = lock
	return nil
}

func inMemory(c archive.Content) ([]byte, error) {
	r, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// isInside says whether a path of a lockfile or spec is one in the profile.
func isInside(place string) bool {
	return !strings.Contains(place, `\`) && !path.IsAbs(place) && filepath.IsLocal(filepath.FromSlash(place))
}
