// Package stack reads the layers of one profile from disk, in order: the
// bundles that its manifest lists, the profile's own patch, the home's, and
// the patch files of one run.
//
// It does not decide what layers mean (compose does) and writes nothing.
package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

// Options says what to read.
type Options struct {
	Home         profile.Home
	Profile      *profile.Profile
	Installation installation.Installation
	// Patches are the files of --patch, absolute, lowest first.
	Patches []string
	// BundlesOnly leaves out every layer of the user, so that a broken one
	// does not matter.
	BundlesOnly bool
}

// Stack is the layers of a profile, lowest first.
type Stack struct {
	Layers  []compose.Layer
	Bundles []Bundle
	Skipped []SkippedBundle
}

// Bundle is a bundle whose layer is in the stack.
type Bundle struct {
	Name    string // as the profile lists it
	Package installation.Package
	InBox   bool // it came from the installation
}

// SkippedBundle is a listed bundle without a layer, and why. The rest of the
// stack composes without it, as in the reference launcher since 0.1.7.
type SkippedBundle struct {
	Name   string
	Reason error
}

// String is the line that tells of it.
func (s SkippedBundle) String() string {
	return fmt.Sprintf("skipping profile bundle %q: %v", s.Name, s.Reason)
}

// Open reads the layers. A broken bundle is skipped, a broken layer of the
// user is an error.
func Open(opts Options) (*Stack, error) {
	s := &Stack{}
	rules, err := newCompatibility(opts.Installation, opts.Profile.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range opts.Profile.Manifest.Bundles() {
		bundle, layer, err := openBundle(opts, rules, name)
		if err != nil {
			s.Skipped = append(s.Skipped, SkippedBundle{name, err})
			continue
		}
		s.Bundles = append(s.Bundles, bundle)
		s.Layers = append(s.Layers, layer)
	}
	if opts.BundlesOnly {
		return s, nil
	}
	for _, file := range []string{opts.Profile.PatchPath(), opts.Home.PatchPath()} {
		layer, err := readLayer(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Layers = append(s.Layers, layer)
	}
	for _, file := range opts.Patches {
		layer, err := readLayer(file)
		if err != nil {
			return nil, err
		}
		s.Layers = append(s.Layers, layer)
	}
	return s, nil
}

// readLayer reads a patch file of the user.
func readLayer(file string) (compose.Layer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return compose.Layer{}, fault.WithClass(fault.Composition, fmt.Errorf("failed to read overlay %s: %w", file, cause(err)))
	}
	patches, err := compose.ParsePatches(compose.Source{File: file, Dir: filepath.Dir(file), Kind: compose.PatchLayer}, text)
	return compose.Layer{Label: file, Patches: patches}, err
}

// cause is err without the operation and the path, which the message around
// it already has.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func openBundle(opts Options, rules compatibility, name string) (Bundle, compose.Layer, error) {
	bundle, err := findBundle(opts, name)
	if err != nil {
		return Bundle{}, compose.Layer{}, err
	}
	layer, err := readBundle(name, bundle.Package, bundle.Package.Dir, rules)
	return bundle, layer, err
}

// readBundle reads the layer that a package declares; messages show its files
// under the path shown.
func readBundle(name string, pkg installation.Package, shown string, rules compatibility) (compose.Layer, error) {
	layer := compose.Layer{Label: name}
	manifest, err := readBundleManifest(pkg.Manifest)
	if err != nil {
		return layer, err
	}
	if len(manifest.Patches) == 0 {
		return layer, fmt.Errorf("profile bundle %q declares no dsh.bundle in its package.json", name)
	}
	if err := rules.check(manifest); err != nil {
		return layer, err
	}
	for _, patch := range manifest.Patches {
		file := filepath.Join(shown, filepath.FromSlash(patch))
		text, err := pkg.ReadFile(patch)
		if err != nil {
			if _, escapes := errors.AsType[*installation.EscapeError](err); escapes {
				return layer, fmt.Errorf("failed to read patches: %w", err)
			}
			return layer, fmt.Errorf("failed to read patches %s: %w", file, errors.Unwrap(err))
		}
		patches, err := compose.ParsePatches(compose.Source{File: file, Dir: filepath.Dir(filepath.Join(pkg.Dir, filepath.FromSlash(patch))), Kind: compose.BundleLayer}, text)
		if err != nil {
			return layer, err
		}
		layer.Patches = append(layer.Patches, patches...)
	}
	return layer, nil
}

// CheckBundle says why the package in dir cannot be the layer called name of
// a profile, nil when it can.
func CheckBundle(name, dir string) error {
	pkg, err := installation.OpenPackage(dir)
	if err == nil {
		_, err = readBundle(name, pkg, pkg.Name+"@"+pkg.Version, compatibility{})
	}
	return fault.WithClass(fault.Composition, err)
}

// findBundle looks a bundle up: in the installation, then along the
// node_modules folders that Node.js would search from the profile.
func findBundle(opts Options, name string) (Bundle, error) {
	pkg, ok, err := opts.Installation.Bundle(name)
	if err != nil {
		return Bundle{}, err
	}
	if ok {
		return Bundle{name, pkg, true}, nil
	}
	if pkg, ok, err = installation.Find(opts.Profile.Dir, name); err != nil || ok {
		return Bundle{name, pkg, false}, err
	}
	link := filepath.Join(opts.Profile.Dir, "node_modules", filepath.FromSlash(name))
	if target, err := os.Readlink(link); err == nil {
		return Bundle{}, fmt.Errorf("%s links to %s, and there is no such folder", link, target)
	}
	return Bundle{}, fmt.Errorf("cannot resolve profile bundle %q from the dsh installation or %s; run 'dsh plugin --profile %s install' if its dependency is not installed",
		name, opts.Profile.Dir, fault.ShellWord(opts.Profile.Name.String()))
}
