// Package stack reads the layers of one profile from disk, in order: the
// bundles that its manifest lists, the profile's own patch, the home's, that of
// a project which the user trusts, and the patches of one run.
//
// It does not decide what layers mean (compose does) and writes nothing.
package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/trust"
)

// Options says what to read.
type Options struct {
	Home         profile.Home
	Profile      *profile.Profile
	Installation installation.Installation
	// Overlays are the patches of --patch, lowest first.
	Overlays []Overlay
	// BundlesOnly leaves out every layer of the user, so that a broken one
	// does not matter.
	BundlesOnly bool
	// Without are bundles that are left out as if they were switched off.
	Without []string
	// Project is where a project's layer is looked for; nil is nowhere.
	Project *Project
	// UserHome is what ~ stands for in paths of layers.
	UserHome string
	// Find is where packages of the profile are; nil is its node_modules.
	Find func(name string) (pkg installation.Package, ok bool, err error)
	// ReadFile reads a file of the profile itself by its path, as for a profile
	// of the past; nil is where [profile.Profile.Where] says it is on the disk.
	ReadFile func(path string) ([]byte, error)
	// Lenient keeps a broken layer of the user as an entry of the stack. Else
	// it is an error.
	Lenient bool
}

// readFile reads a file of the profile.
func (o Options) readFile(path string) ([]byte, error) {
	if o.ReadFile != nil {
		return o.ReadFile(path)
	}
	return profile.ReadFile(o.Profile.Where(path))
}

// bundlePlaces is the profile's bundles in their places.
func (o Options) bundlePlaces() []profile.BundlePlace {
	places := o.Profile.Manifest.BundlePlaces()
	for i := range places {
		places[i].Disabled = places[i].Disabled || slices.Contains(o.Without, places[i].Name)
	}
	return places
}

// Overlay is the patches of one --patch.
type Overlay struct {
	Label string // the absolute path, or what standard input is called
	Dir   string // that relative paths start at
	Text  []byte // of standard input; nil: it is the file Label
}

// Project says how the layer of a project is found.
type Project struct {
	Dir   string // the working directory
	Trust *trust.Store
}

// Stack is the layers of a profile, lowest first.
type Stack struct {
	Layers []compose.Layer
	// Entries are all that the stack is made from, in order: the layers, and
	// what is missing from them.
	Entries []Entry
}

// Entry is a bundle or file that is, or would be, a layer.
type Entry struct {
	Kind   compose.Kind
	Label  string   // the bundle's name as the profile lists it, or the file's absolute path
	Files  []string // the patch files, as far as they are known
	State  State
	Layer  int                   // index in Layers, -1 unless State is Applied
	Err    error                 // why it is broken or untrusted, or why a disabled bundle is not to be found
	Bundle *installation.Package // of a bundle that was found
	InBox  bool                  // it came from the installation
	Place  int                   // of a bundle in the profile's list, from 1
}

// State is whether an entry is a layer.
type State uint8

// The states.
const (
	Applied   State = iota
	Broken          // it cannot be read
	Untrusted       // a project's, which the user has not trusted
	Disabled        // a bundle that is switched off
)

// String is the state in one word.
func (s State) String() string {
	return [...]string{"applied", "broken", "untrusted", "disabled"}[s]
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

// Skipped is the listed bundles without a layer.
func (s *Stack) Skipped() []SkippedBundle {
	var skipped []SkippedBundle
	for _, e := range s.Entries {
		if e.Kind == compose.BundleLayer && e.State == Broken {
			skipped = append(skipped, SkippedBundle{e.Label, e.Err})
		}
	}
	return skipped
}

// UntrustedError is the layer of a project that was left out. It is a warning:
// the rest of the stack composes.
type UntrustedError struct {
	Project trust.Project
	Changed bool // it was trusted, and is not what it was
}

func (e *UntrustedError) Error() string {
	why := "is not trusted"
	if e.Changed {
		why = "has changed since it was trusted"
	}
	return fmt.Sprintf("the project layer %s %s and was left out", e.Project.Patch, why)
}

// Hint is the command that trusts it.
func (e *UntrustedError) Hint() string {
	return fmt.Sprintf("look at it, then: dsh trust %s", fault.ShellWord(e.Project.Dir))
}

// Class is Policy.
func (e *UntrustedError) Class() fault.Class { return fault.Policy }

// Open reads the layers. A broken bundle is left out, and so is the layer of a
// project that is not trusted; another broken layer of the user is an error
// unless opts.Lenient.
func Open(opts Options) (*Stack, error) {
	s := &Stack{}
	rules, err := newCompatibility(opts)
	if err != nil {
		return nil, err
	}
	s.bundles(opts, rules)
	if opts.BundlesOnly {
		return s, nil
	}
	sources := []source{
		{kind: compose.ProfileLayer, label: opts.Profile.PatchPath(), dir: opts.Profile.Dir, optional: true},
		{kind: compose.HomeLayer, label: opts.Home.PatchPath(), dir: opts.Home.Dir(), optional: true},
	}
	project, found, err := findProject(opts)
	if err != nil {
		return nil, err
	}
	if found {
		sources = append(sources, project)
	}
	for _, o := range opts.Overlays {
		sources = append(sources, source{kind: compose.PatchLayer, label: o.Label, dir: o.Dir, text: o.Text})
	}
	for _, src := range sources {
		if err := s.file(opts, src); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// bundles reads the bundles of the profile's list, and notes those that are
// switched off in their places.
func (s *Stack) bundles(opts Options, rules compatibility) {
	place := 0
	for _, listed := range opts.bundlePlaces() {
		e := Entry{Kind: compose.BundleLayer, Label: listed.Name, State: Disabled, Layer: -1}
		if listed.Disabled {
			pkg, inBox, err := findBundle(opts, listed.Name)
			if e.Err = err; err == nil {
				e.Bundle, e.InBox = &pkg, inBox
			}
			s.Entries = append(s.Entries, e)
			continue
		}
		place++
		e.Place = place
		pkg, inBox, err := findBundle(opts, listed.Name)
		if err == nil {
			e.Bundle, e.InBox = &pkg, inBox
			var layer compose.Layer
			layer, e.Files, err = readBundle(listed.Name, pkg, pkg.Dir, opts.UserHome, rules)
			if err == nil {
				s.add(&e, layer)
			}
		}
		if err != nil {
			e.State, e.Err = Broken, err
		}
		s.Entries = append(s.Entries, e)
	}
}

// ReadDisabled reads the layers of the bundles that are switched off, as they would
// be. What cannot be read is left out.
func ReadDisabled(opts Options) []compose.Layer {
	var layers []compose.Layer
	for _, listed := range opts.bundlePlaces() {
		if !listed.Disabled {
			continue
		}
		pkg, _, err := findBundle(opts, listed.Name)
		if err != nil {
			continue
		}
		if layer, _, err := readBundle(listed.Name, pkg, pkg.Dir, opts.UserHome, compatibility{}); err == nil {
			layers = append(layers, layer)
		}
	}
	return layers
}

// add makes an entry a layer.
func (s *Stack) add(e *Entry, layer compose.Layer) {
	e.State, e.Layer = Applied, len(s.Layers)
	s.Layers = append(s.Layers, layer)
}

// source is a layer of the user, to be read.
type source struct {
	kind     compose.Kind
	label    string
	dir      string
	text     []byte         // nil: it is in the file called label
	optional bool           // the file may be missing
	project  *trust.Project // whose trust is asked for
}

// file reads a layer of the user.
func (s *Stack) file(opts Options, src source) error {
	text, err := src.text, error(nil)
	switch {
	case src.project != nil:
		return s.project(opts, src)
	case text == nil && src.kind == compose.ProfileLayer:
		text, err = opts.readFile(src.label)
	case text == nil && src.kind == compose.HomeLayer:
		text, err = profile.ReadFile(src.label)
	case text == nil:
		text, err = os.ReadFile(src.label) // it may be a pipe, which the user named
	}
	if src.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.broken(opts, src.entry(), fault.WithClass(fault.Composition, fmt.Errorf("failed to read overlay %s: %w", src.label, cause(err))))
	}
	patches, err := src.parse(opts, text)
	if err != nil {
		return s.broken(opts, src.entry(), err)
	}
	s.applied(src, patches)
	return nil
}

// project reads the layer of a project, if the user trusts it. Of a project that
// was never trusted nothing is read at all.
func (s *Stack) project(opts Options, src source) error {
	e := src.entry()
	e.State = Untrusted
	if _, known, err := opts.Project.Trust.Recorded(*src.project); err != nil {
		return err
	} else if !known {
		e.Err = &UntrustedError{Project: *src.project}
		s.Entries = append(s.Entries, e)
		return nil
	}
	var patches []compose.Patch
	text, readErr := readProjectPatch(*src.project)
	if readErr == nil {
		patches, readErr = src.parse(opts, text)
	}
	state, _, err := TrustOf(opts.Project.Trust, *src.project, text, patches)
	switch {
	case err != nil:
		return err
	case state != trust.Trusted:
		e.Err = &UntrustedError{Project: *src.project, Changed: true}
		s.Entries = append(s.Entries, e)
		return nil
	case readErr != nil:
		return s.broken(opts, e, readErr)
	}
	s.applied(src, patches)
	return nil
}

// entry is the source as an entry that is no layer yet.
func (src source) entry() Entry {
	return Entry{Kind: src.kind, Label: src.label, Files: []string{src.label}, Layer: -1}
}

func (src source) parse(opts Options, text []byte) ([]compose.Patch, error) {
	return compose.ParsePatches(compose.Source{File: src.label, Dir: src.dir, Kind: src.kind, UserHome: opts.UserHome}, text)
}

// applied makes a source a layer.
func (s *Stack) applied(src source, patches []compose.Patch) {
	e := src.entry()
	s.add(&e, compose.Layer{Label: src.label, Kind: src.kind, Patches: patches})
	s.Entries = append(s.Entries, e)
}

// broken keeps a layer of the user that cannot be read as an entry, or ends with
// its error.
func (s *Stack) broken(opts Options, e Entry, err error) error {
	if !opts.Lenient {
		return err
	}
	e.State, e.Err = Broken, err
	s.Entries = append(s.Entries, e)
	return nil
}

// cause is err without the operation and the path, which the message around
// it already has.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// readBundle reads the layer that a package declares; messages show its files
// under the path shown.
func readBundle(name string, pkg installation.Package, shown, userHome string, rules compatibility) (layer compose.Layer, files []string, err error) {
	layer = compose.Layer{Label: name, Kind: compose.BundleLayer}
	manifest, err := readBundleManifest(pkg.Manifest)
	if err != nil {
		return layer, nil, err
	}
	if len(manifest.Patches) == 0 {
		return layer, nil, &NoLayerError{name}
	}
	for _, patch := range manifest.Patches {
		files = append(files, filepath.Join(shown, filepath.FromSlash(patch)))
	}
	if err := rules.check(manifest); err != nil {
		return layer, files, err
	}
	for i, patch := range manifest.Patches {
		text, err := pkg.ReadFile(patch)
		if err != nil {
			if _, escapes := errors.AsType[*installation.EscapeError](err); escapes {
				return layer, files, fmt.Errorf("failed to read patches: %w", err)
			}
			return layer, files, fmt.Errorf("failed to read patches %s: %w", files[i], errors.Unwrap(err))
		}
		patches, err := compose.ParsePatches(compose.Source{
			File: files[i], Dir: filepath.Dir(filepath.Join(pkg.Dir, filepath.FromSlash(patch))),
			Kind: compose.BundleLayer, Root: pkg.Dir, UserHome: userHome,
		}, text)
		if err != nil {
			return layer, files, err
		}
		layer.Patches = append(layer.Patches, patches...)
	}
	return layer, files, nil
}

// NoLayerError is a listed package that declares no layer.
type NoLayerError struct{ Bundle string }

func (e *NoLayerError) Error() string {
	return fmt.Sprintf("profile bundle %q declares no dsh.bundle in its package.json", e.Bundle)
}

// MissingError is a listed bundle whose package is not to be found.
type MissingError struct {
	Bundle  string
	Profile profile.Name
	Dir     string // of the profile
	Link    string // a link that leads nowhere, "" if there is none
	Target  string // of the link
}

func (e *MissingError) Error() string {
	if e.Link != "" {
		return fmt.Sprintf("%s links to %s, and there is no such folder", e.Link, e.Target)
	}
	return fmt.Sprintf("cannot resolve profile bundle %q from the dsh installation or %s; run 'dsh plugin --profile %s install' if its dependency is not installed",
		e.Bundle, e.Dir, fault.ShellWord(e.Profile.String()))
}

// CheckBundle says why the package in dir cannot be the layer called name of
// a profile, nil when it can.
func CheckBundle(name, dir string) error {
	pkg, err := installation.OpenPackage(dir)
	if err == nil {
		_, _, err = readBundle(name, pkg, pkg.Name+"@"+pkg.Version, "", compatibility{})
	}
	if _, escapes := errors.AsType[*compose.EscapeError](err); escapes {
		return err // it knows its class
	}
	return fault.WithClass(fault.Composition, err)
}

// findBundle looks a bundle up: in the installation, then along the
// node_modules folders that Node.js would search from the profile.
func findBundle(opts Options, name string) (pkg installation.Package, inBox bool, err error) {
	if pkg, inBox, err = opts.Installation.Bundle(name); err != nil || inBox {
		return pkg, inBox, err
	}
	find := opts.Find
	if find == nil {
		find = func(name string) (installation.Package, bool, error) {
			return installation.Find(opts.Profile.Dir, name)
		}
	}
	pkg, ok, err := find(name)
	if err != nil || ok {
		return pkg, false, err
	}
	missing := &MissingError{Bundle: name, Profile: opts.Profile.Name, Dir: opts.Profile.Dir}
	link := filepath.Join(opts.Profile.Dir, "node_modules", filepath.FromSlash(name))
	if target, err := os.Readlink(link); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		missing.Link, missing.Target = link, target
	}
	return pkg, false, missing
}
