package action

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/installation"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// launcher is the package of the harness, whose dependencies are the in-box
// bundles.
const launcher = HarnessPackage

// keptBundles is the installation of a version as far as bundles go: the
// launcher and the bundles of it that profiles asked for, in a directory of
// their own in the home. It is derived: what is not there is fetched again.
func (e Env) keptBundles(ctx context.Context, p *profile.Profile, version npmrange.Version, opts CompatOptions) (inst installation.Installation, err error) {
	dir := e.Home.Path("installations", "bundles-"+version.String())
	if !keeps(dir, p) {
		if !opts.Fetch {
			return nil, fault.WithHint(
				fault.Errorf(fault.Package, "the bundles of %s %s are not here yet", launcher, version),
				"dsh config compat --profile %s %s --fetch", fault.ShellWord(p.Name.String()), version)
		}
		if err := e.fetchBundles(ctx, p, version, dir, opts); err != nil {
			return nil, err
		}
	}
	return installation.OpenDir(dir)
}

// keeps says whether dir has the launcher and all of its bundles that a profile
// lists.
func keeps(dir string, p *profile.Profile) bool {
	for _, name := range append(listedOf(dir, p), launcher) {
		if _, err := os.Stat(modulePath(dir, name, "package.json")); err != nil {
			return false
		}
	}
	return true
}

// listedOf are the bundles of a profile that the launcher in dir depends on.
func listedOf(dir string, p *profile.Profile) []string {
	pkg, err := installation.OpenPackage(modulePath(dir, launcher))
	if err != nil {
		return nil
	}
	var m struct{ Dependencies map[string]string }
	if json.Unmarshal(pkg.Manifest, &m) != nil {
		return nil
	}
	return slices.DeleteFunc(p.Manifest.Bundles(), func(name string) bool { return m.Dependencies[name] == "" })
}

func modulePath(dir, name string, below ...string) string {
	return filepath.Join(append([]string{dir, "node_modules", filepath.FromSlash(name)}, below...)...)
}

// fetchBundles makes dir anew, with what was in it and what the profile needs
// beside it.
func (e Env) fetchBundles(ctx context.Context, p *profile.Profile, version npmrange.Version, dir string, opts CompatOptions) (err error) {
	config, err := registryConfig(e, PluginOptions{Registry: opts.Registry}, p.Dir)
	if err != nil {
		return err
	}
	client, err := registry.New(config, registry.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	policy, err := e.policy()
	if err != nil {
		return err
	}
	packages := store.Open(e.Home.StoreDir())
	defer func() { err = limited(policy, errors.Join(err, packages.Close())) }()
	limit(packages, policy)
	fetched, err := install.Fetch(ctx, client, packages, policy, []install.Spec{
		{Kind: install.Registry, Name: launcher, Target: launcher, Wanted: version.String()},
	}, opts.Events)
	if err != nil {
		return err
	}
	wanted := fetched[0].Dependencies
	var specs []install.Spec
	for _, name := range bundlesToKeep(dir, p, wanted) {
		spec, err := install.ParseDependency(name, wanted[name], dir)
		if err != nil {
			return fault.Errorf(fault.Package, "%s@%s depends on %s: %w", launcher, version, name, err)
		}
		specs = append(specs, spec)
	}
	bundles, err := install.Fetch(ctx, client, packages, policy, specs, opts.Events)
	if err != nil {
		return err
	}
	return layOut(dir, append(fetched, bundles...), append([]string{launcher}, names(specs)...))
}

// bundlesToKeep are the dependencies of a launcher that the profile lists or
// dir has already, sorted.
func bundlesToKeep(dir string, p *profile.Profile, dependencies map[string]string) []string {
	var keep []string
	for name := range dependencies {
		_, err := os.Stat(modulePath(dir, name, "package.json"))
		if err == nil || slices.Contains(p.Manifest.Bundles(), name) {
			keep = append(keep, name)
		}
	}
	slices.Sort(keep)
	return keep
}

func names(specs []install.Spec) []string {
	var list []string
	for _, spec := range specs {
		list = append(list, spec.Name)
	}
	return list
}

// layOut makes dir a directory with packages under their names. Readers see the
// old directory, the new one or, for a moment, none.
func layOut(dir string, packages []install.Fetched, names []string) (err error) {
	temp, remove, err := staging.TempDir(filepath.Dir(dir))
	if err != nil {
		return fault.WithClass(fault.Environment, err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	made := filepath.Join(temp, "new")
	for i, pkg := range packages {
		place := modulePath(made, names[i])
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return err
		}
		if err := pkg.Entry.Link(place, store.Auto, nil); err != nil {
			return err
		}
	}
	if err := staging.SetAside(dir, filepath.Join(temp, "old"), ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = staging.OS.RenameNew(made, dir)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	return err
}
