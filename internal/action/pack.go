package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"dsh/internal/archive"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/trust"
)

// SetSuffix ends the names of files that hold a set of packages.
const SetSuffix = ".dsh-set.tgz"

// PackOptions say which packages become a set, and where that goes.
type PackOptions struct {
	Name    profile.Name
	File    string    // where the set goes, relative to the working directory
	Out     io.Writer // where it goes instead, if not nil
	Force   bool      // an existing file is overwritten
	Version string    // of this program
	Events  install.Events
}

// Packed says what is in a set.
type Packed struct {
	Profile      string            `json:"profile"`
	File         string            `json:"file"` // "" for a stream
	Dependencies []CopiedPlugin    `json:"dependencies"`
	Packages     int               `json:"packages"` // archives in it, those for other platforms too
	Sources      []archive.Source  `json:"sources"`  // which of the dependencies stand in no registry
	LeftOut      []archive.LeftOut `json:"leftOut"`
	Warnings     []string          `json:"-"`
}

// Pack writes all that a profile's packages need into one file: the archive of a
// profile that has its dependencies, their lockfile, each archive that this names,
// and nothing else. [AddSet] puts it into another profile, and [Import] makes a
// profile of it.
func Pack(ctx context.Context, env Env, opts PackOptions) (*Packed, error) {
	done, err := Export(ctx, env, ExportOptions{
		Name: opts.Name, File: opts.File, Out: opts.Out, Force: opts.Force, Packages: true, Version: opts.Version, Events: opts.Events, set: true,
	})
	if err != nil {
		return nil, err
	}
	return &Packed{
		Profile: done.Profile, File: done.File, Dependencies: done.dependencies,
		Packages: done.Packages + done.Files - 2, // besides manifest and lockfile its files are archives
		Sources:  done.Sources, LeftOut: done.LeftOut, Warnings: done.Warnings,
	}, nil
}

// reduceToSet leaves of the manifest what says which packages there are and in
// which order they are layers.
func (x *exporter) reduceToSet() error {
	all := dependenciesOf(x.manifest)
	if len(all) == 0 {
		return fault.WithHint(fault.Errorf(fault.Package, "profile %s depends on nothing, so there is nothing to pack", x.opts.Name),
			"dsh plugin --profile %s add PACKAGE", fault.ShellWord(x.opts.Name.String()))
	}
	head := map[string]any{"name": x.manifest.PackageName(), "private": true}
	if len(x.lock.Overrides) > 0 {
		head["pnpm"] = map[string]any{"overrides": x.lock.Overrides}
	}
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	reduced, err := profile.ParseManifest(x.manifest.Path(), append(text, '\n'))
	if err != nil {
		return err
	}
	for _, d := range all {
		_, kind, _ := x.manifest.Dependency(d.Name)
		reduced.SetDependency(kind, d.Name, d.Spec)
	}
	reduced.SetBundles(x.manifest.Bundles())
	x.manifest = reduced
	return nil
}

// mayBeSecret says whether an address has what is not shown of one.
func mayBeSecret(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.User != nil || u.RawQuery != "")
}

// takeAddress has what a dependency's address leads to travel as an archive of its
// own.
func (x *exporter) takeAddress(ctx context.Context, name string, node install.Located) error {
	client, err := x.client()
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := x.scratch()
	if err != nil {
		return err
	}
	file, err := install.Original(ctx, client, s.packages, node.Package)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	at := x.freeName(flatName(name) + "-" + node.Version)
	x.put(at, data, 0o644)
	x.respell(name, "file:./"+at, install.Origin{Kind: install.Archive, Place: at}, node.Integrity)
	x.done.Sources = append(x.done.Sources, archive.Source{Package: name, Path: at, Was: "address"})
	return nil
}

// finishSet takes out of the set addresses that may hold a secret: what a
// dependency's leads to travels as an archive, like what is on this machine only.
// Then it notes what the set has.
func (x *exporter) finishSet(ctx context.Context) error {
	all := dependenciesOf(x.manifest)
	for _, d := range all {
		node, ok := x.node(d.Name)
		switch {
		case !ok || !mayBeSecret(d.Spec):
		case node.Origin.Kind == install.URL:
			if err := x.takeAddress(ctx, d.Name, node); err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
		case node.Origin.Kind == install.Git: // whose lockfile entry has no user
			x.respell(d.Name, install.ShownSpec(d.Spec), node.Origin, node.Integrity)
		}
	}
	for at, n := range x.lock.Nodes {
		if (n.Origin.Kind == install.URL || n.Origin.Kind == install.Registry) && mayBeSecret(n.Origin.Place) {
			pkg := *n.Package
			pkg.Origin.Place = registry.ShownAddress(n.Origin.Place)
			x.lock.Nodes[at] = install.Located{Package: &pkg, Optional: n.Optional}
		}
	}
	x.done.dependencies = []CopiedPlugin{}
	for _, d := range dependenciesOf(x.manifest) {
		if n, ok := x.node(d.Name); ok {
			x.done.dependencies = append(x.done.dependencies, CopiedPlugin{d.Name, n.Version, d.Spec})
		}
	}
	x.private = false // there is nothing of the profile's own in it
	return nil
}

// AddedSet says what adding a set did.
type AddedSet struct {
	Report
	Set     string          `json:"set"` // its file, or its address without what may be secret
	Skipped []SkippedPlugin `json:"skipped"`
}

// IsSet says whether a file is an archive of a profile, as far as its beginning
// tells. A file that cannot be read is none.
func IsSet(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return archive.Is(f)
}

// SetAddress says whether an address is that of a set, by the name of its file.
func SetAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.HasSuffix(u.Path, SetSuffix)
}

// AddSet adds the dependencies of a set, which is a file or at an address, to a
// profile, in exactly the versions and in the order of layers that it has. What is
// in it is held against its lockfile, and nobody is asked for it. Of a profile's
// whole archive it takes the packages alone.
func AddSet(ctx context.Context, env Env, opts PluginOptions, source string) (done *AddedSet, err error) {
	file := source
	if SetAddress(source) {
		file = install.ShownSpec(source)
		policy, err := env.policy()
		if err != nil {
			return nil, err
		}
		err = trust.Refusal(policy.Check(trust.Subject{Name: file, Source: trust.FromURL, Address: source, Shown: registry.ShownAddress}))
		if err != nil {
			return nil, err
		}
	}
	a, err := OpenArchive(ctx, env, source, ImportOptions{Offline: opts.Offline, Events: opts.Events})
	if errors.Is(err, archive.ErrOther) {
		err = fault.WithHint(err, "dsh plugin pack writes a set, on the machine that has the packages")
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if a.lock == nil {
		return nil, fault.Errorf(fault.Package, "%s: there are no packages in it", file)
	}
	done = &AddedSet{Set: file, Skipped: []SkippedPlugin{}}
	for at, n := range a.lock.Nodes {
		if _, first := a.lock.Nodes[n.Origin.Place]; n.Origin.Kind == install.Folder || n.Origin.Kind == install.Link && !first {
			return nil, fault.WithHint(fault.Errorf(fault.Package, "%s: it has %s as a folder of its profile, and not as an archive", file, at),
				"dsh profile import makes that profile here; dsh plugin pack makes a set of its packages there")
		}
	}
	taken, files := a.take(env, done)
	if len(taken) == 0 {
		return nil, fault.Errorf(fault.Package, "%s: the installation has all of its packages, so there is nothing to add", file)
	}
	report, err := change(ctx, env, opts, true, func(j *install.Job) (*install.Result, error) {
		if err := a.fill(ctx, j, j.Dir); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		j.Given = map[store.Integrity]bool{}
		for _, n := range a.lock.Nodes {
			j.Given[n.Integrity] = a.carries(n.Package)
		}
		for _, at := range slices.Sorted(maps.Keys(files)) {
			if j.DryRun {
				break
			}
			if err := j.Tx.WriteFile(at, files[at], 0o644); err != nil {
				return nil, err
			}
		}
		result, err := j.Take(ctx, taken, a.lock)
		if err == nil && result.Plan != nil {
			result.Plan.Files = slices.Compact(slices.Sorted(slices.Values(slices.Concat(result.Plan.Files, slices.Collect(maps.Keys(files))))))
		}
		return result, err
	})
	if err != nil {
		return nil, err
	}
	done.Report = *report
	if len(a.lock.Overrides) > 0 {
		done.Warnings = append(done.Warnings, fmt.Sprintf("the set was made under overrides, which are not taken over: %s", strings.Join(slices.Sorted(maps.Keys(a.lock.Overrides)), ", ")))
	}
	return done, nil
}

// take is the dependencies of the set as a profile gets them, in the order of
// their layers, and the archives that it keeps of those that stand in no registry.
func (a *Archive) take(env Env, done *AddedSet) (taken []install.Taken, files map[string][]byte) {
	files = map[string][]byte{}
	for _, d := range inLayerOrder(a.manifest) {
		node, there := a.lock.Nodes["node_modules/"+d.Name]
		_, inBox, err := env.Installation.Bundle(d.Name)
		switch {
		case install.IsHost(d.Name):
			done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, "it belongs to the harness"})
			continue
		case inBox && err == nil:
			done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, "it comes with the installation"})
			continue
		case !there:
			done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, "it is optional, and the set does not have it"})
			continue
		}
		_, kind, _ := a.manifest.Dependency(d.Name)
		t := install.Taken{Name: d.Name, Spec: d.Spec, Kind: kind}
		if node.Origin.Kind == install.Archive {
			data, _ := a.text(path.Clean(node.Origin.Place)) // it was looked for when the set was read
			at := install.KeptPlace(node.Name, node.Version, node.Integrity)
			files[at] = data
			t.Spec = "file:" + at
			if written, ok := a.lock.Sources[d.Name]; ok && !node.AgentPlugin { // that one is made of the archive itself
				t.Written = &written
			}
		}
		taken = append(taken, t)
	}
	return taken, files
}
