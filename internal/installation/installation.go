package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dsh/bundles"
	"dsh/internal/fault"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
)

// Installation is what provides the in-box bundles. They are looked for here
// before they are looked for in a profile.
type Installation interface {
	// Bundle finds the installation's own package of a name; ok is false when
	// it has none. The error is a package that is there and cannot be read.
	Bundle(name string) (pkg Package, ok bool, err error)
	// Version is the version of the harness, against which the host peers of
	// bundles are checked. The embedded installation has none: host peers count
	// as met.
	Version() (version npmrange.Version, ok bool)
	// Describe says in a few words where the installation is.
	Describe() string
}

// Embedded is the installation inside this program.
func Embedded() Installation { return embedded{} }

type embedded struct{}

func (embedded) Bundle(name string) (Package, bool, error) {
	files, folder, ok := bundles.Open(name)
	if !ok {
		return Package{}, false, nil
	}
	pkg, err := newPackage("<embedded>/"+folder, files)
	return pkg, err == nil, err
}

func (embedded) Version() (npmrange.Version, bool) { return npmrange.Version{}, false }
func (embedded) Describe() string                  { return "embedded" }

// launcher is the package of the reference launcher, the anchor from which its
// bundles are found.
const launcher = "@deepseek-ai/dsh"

// OpenDir is the installation in a directory that holds an npm install of the
// reference launcher: dir/node_modules/@deepseek-ai/dsh, or dir itself when it
// is that package. Bundles are found along the node_modules chain of the
// launcher's real directory, as Node.js would from there.
func OpenDir(dir string) (Installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening installation %s: %w", dir, err)
	}
	candidates := []string{filepath.Join(dir, "node_modules", filepath.FromSlash(launcher)), dir}
	for _, candidate := range candidates {
		app, err := OpenPackage(candidate)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("opening installation %s: %w", dir, err)
		case app.Name != launcher:
			continue
		}
		version, err := npmrange.ParseVersion(app.Version)
		if err != nil {
			return nil, fault.Errorf(fault.Package, "opening installation %s: version of %s: %w", dir, launcher, err)
		}
		return directory{app: app, version: version}, nil
	}
	return nil, notFound(dir, candidates[0])
}

// Launcher is the package of the harness of an installation that is a directory;
// ok is false for the embedded one.
func Launcher(inst Installation) (app Package, ok bool) {
	d, ok := inst.(directory)
	return d.app, ok
}

// knownLauncher is a release whose dependencies the public registry can
// resolve.
const knownLauncher = launcher + "@0.1.0-rc.8"

func notFound(dir, looked string) error {
	return fault.WithHint(
		fault.Errorf(fault.Environment, "%s holds no installation: there is no package %s in %s, and %s is not that package itself", dir, launcher, looked, dir),
		"dsh installation add %s", knownLauncher)
}

type directory struct {
	app     Package
	version npmrange.Version
}

func (d directory) Bundle(name string) (Package, bool, error) { return Find(d.app.Dir, name) }
func (d directory) Version() (npmrange.Version, bool)         { return d.version, true }
func (d directory) Describe() string {
	return fmt.Sprintf("%s %s in %s", d.app.Name, d.version, d.app.Dir)
}

// Find is the package that Node.js finds for name from the directory anchor:
// the first <ancestor>/node_modules/<name> with a package.json, links followed
// and "exports" ignored. A name that is no relative path, so that it would be
// found elsewhere, is found nowhere.
func Find(anchor, name string) (pkg Package, ok bool, err error) {
	if !fs.ValidPath(name) || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
		return Package{}, false, nil
	}
	for _, modules := range profile.Ancestors(anchor) {
		dir := filepath.Join(modules, filepath.FromSlash(name))
		if info, err := os.Stat(filepath.Join(dir, manifestFile)); err != nil || info.IsDir() {
			continue
		}
		pkg, err := OpenPackage(dir)
		return pkg, err == nil, err
	}
	return Package{}, false, nil
}
