package install

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/install/registry"
	"dsh/internal/profile"
)

// Listed is one dependency of a profile as it is.
type Listed struct {
	Name    string `json:"name"`
	Spec    string `json:"spec"`              // as package.json holds it, without secrets
	Written string `json:"written,omitempty"` // what the archive that spec names was made of
	Kind    string `json:"kind"`              // the section it stands in
	Version string `json:"version"`           // as installed; "" when it is not
	Layer   int    `json:"layer"`             // its place in the bundle list from 1; 0 when it is no layer
	// By the lockfile, "" where that does not have it: where it comes from, without
	// secrets, and the hash of its content.
	From      string `json:"from,omitempty"`
	Integrity string `json:"integrity,omitempty"`
	// Of what comes from a git repository: the branch, tag or range that is asked
	// for, "" for the repository's HEAD, and the commit that is installed.
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
	// AgentPlugin says that it is one, of which dsh made a bundle.
	AgentPlugin bool `json:"agentPlugin,omitempty"`
}

// Trace notes of each in a list of dependencies what the lockfile has of where
// it comes from. A nil lock has nothing.
func (l *Lock) Trace(list []Listed, m *profile.Manifest, dir string) {
	for i := range list {
		d := &list[i]
		written, _ := l.source(d.Name)
		d.Written = written.From
		n, ok := l.at("node_modules/" + d.Name)
		if !ok {
			continue
		}
		if n.AgentPlugin {
			d.AgentPlugin, d.Written = true, ShownSpec(written.From)
		}
		if d.Integrity = n.Integrity.String(); n.Origin.Kind != Registry || n.Origin.Place != "" {
			d.From = ShownSpec(n.Origin.Place)
		}
		d.Commit = n.Origin.Commit()
		wanted, _, _ := m.Dependency(d.Name)
		if spec, err := ParseDependency(d.Name, wanted, dir); err == nil && spec.Kind == Git {
			d.Ref = cmp.Or(spec.Git.Ref, spec.Git.Range)
		}
	}
}

// TraceRegistries notes of which registry those packages are whose archive stands
// where it does by custom, which the lockfile leaves out.
func (l *Lock) TraceRegistries(list []Listed, registryFor func(name string) string) {
	for i := range list {
		if n, ok := l.at("node_modules/" + list[i].Name); ok && n.Origin.Kind == Registry && n.Origin.Place == "" {
			list[i].From = registry.ShownAddress(registryFor(n.Name))
		}
	}
}

// List reads the dependencies of a profile and what is installed of them, in
// the order of the manifest's sections.
func List(dir string, m *profile.Manifest) []Listed {
	list := []Listed{}
	bundles := m.Bundles()
	for _, kind := range dependencyKinds {
		for _, d := range m.Dependencies(kind) {
			list = append(list, Listed{
				Name: d.Name, Spec: ShownSpec(d.Spec), Kind: string(kind),
				Version: onDisk(dir, d.Name).version,
				Layer:   slices.Index(bundles, d.Name) + 1,
			})
		}
	}
	return list
}

// BranchState is what is odd about a package of a tree.
type BranchState string

// The states of a branch.
const (
	Sound     BranchState = ""         // it stands where the lockfile says
	Missing   BranchState = "missing"  // it does not
	Other     BranchState = "other"    // something else stands there
	NotLocked BranchState = "unlocked" // the lockfile has nothing for it
	NotHere   BranchState = "left out" // it is optional, and not for this machine or not to be had
	Provided  BranchState = "provided" // the installation provides it
	Bundled   BranchState = "bundled"  // the archive of another package brings it along
)

// Branch is one dependency in a tree.
type Branch struct {
	Name    string      `json:"name"`    // under which it is asked for
	Version string      `json:"version"` // by the lockfile
	Wanted  string      `json:"wanted"`
	Kind    string      `json:"kind"`  // the section of the package.json that asks
	Place   string      `json:"place"` // in the profile, "" where it has none
	State   BranchState `json:"state"`
	Layer   int         `json:"layer,omitempty"` // its place in the bundle list from 1
	// Repeated says that the dependencies stand below the same package elsewhere
	// in the tree, nearer to the profile.
	Repeated     bool      `json:"repeated"`
	Dependencies []*Branch `json:"dependencies"`
}

// Tree is what a profile depends on, with all that these packages depend on,
// by its lockfile and held against node_modules. Each package has its
// dependencies below it once. Depth bounds the levels below the profile's own
// dependencies; negative is all of them. Extraneous is what stands in
// node_modules and not in the lockfile.
func Tree(dir string, m *profile.Manifest, lock *Lock, depth int) (branches []*Branch, extraneous []string) {
	if lock == nil {
		lock = &Lock{}
	}
	w := treeWalk{dir: dir, lock: lock, skipped: platformSkips(lock), seen: map[string]bool{}, states: map[string]BranchState{}}
	bundles := m.Bundles()
	branches = []*Branch{}
	for _, kind := range dependencyKinds {
		for _, d := range m.Dependencies(kind) {
			b := w.branch("", call{name: d.Name, wanted: anyVersion(d.Spec), kind: string(kind)})
			b.Layer = slices.Index(bundles, d.Name) + 1
			branches = append(branches, b)
		}
	}
	level := branches
	for ; len(level) > 0 && depth != 0; depth-- {
		var next []*Branch
		for _, b := range level {
			next = append(next, w.grow(b)...)
		}
		level = next
	}
	return branches, strays(dir, lock)
}

type treeWalk struct {
	dir     string
	lock    *Lock
	skipped map[string]bool
	seen    map[string]bool // places whose dependencies are in the tree
	states  map[string]BranchState
}

// grow puts below a branch what its package asks for. A peer is somebody
// else's affair, and is in the tree where it is not there, or where the profile
// installs peers that nobody else brings.
func (w *treeWalk) grow(b *Branch) []*Branch {
	n, ok := w.lock.at(b.Place)
	if !ok || b.State == NotHere {
		return nil
	}
	if b.Repeated = w.seen[b.Place]; b.Repeated {
		b.Repeated = slices.ContainsFunc(dependenciesAt(n.Package), func(c call) bool { return w.shows(b.Place, n, c) })
		return nil
	}
	w.seen[b.Place] = true
	for _, c := range dependenciesAt(n.Package) {
		if w.shows(b.Place, n, c) {
			b.Dependencies = append(b.Dependencies, w.branch(b.Place, c))
		}
	}
	return b.Dependencies
}

// shows reports whether what the package at a place asks for is in the tree.
func (w *treeWalk) shows(at string, n Located, c call) bool {
	if c.kind != peerKind {
		return true
	}
	if _, _, found := w.lock.lookUp(at, c.name); found {
		return w.lock.AutoPeers
	}
	return !IsHost(c.name) && !slices.Contains(n.OptionalPeers, c.name)
}

// branch is the package that is found for a name from a place.
func (w *treeWalk) branch(from string, c call) *Branch {
	b := &Branch{Name: c.name, Wanted: ShownSpec(c.wanted), Kind: c.kind, Dependencies: []*Branch{}}
	at, n, ok := w.lock.lookUp(from, c.name)
	switch optional := c.kind == string(profile.OptionalDependencies); {
	case ok && n.Package == nil:
		b.State = Bundled
	case ok:
		b.Place, b.Version = w.lock.real(at), n.Version
		if b.State = w.state(at, n); b.State == Missing && (n.Optional || w.skipped[at]) {
			b.State = NotHere
		}
	case IsHost(c.name) && from != "":
		b.State = Provided
	case optional:
		b.State = NotHere
	case c.kind == peerKind || from != "":
		b.State = Missing
	default:
		b.State = NotLocked
	}
	return b
}

// state holds a package of the lockfile against what stands at its place.
func (w *treeWalk) state(at string, n Located) BranchState {
	if s, known := w.states[at]; known {
		return s
	}
	s := Sound
	file := filepath.Join(w.dir, filepath.FromSlash(at))
	if info, err := os.Stat(file); err != nil || !info.IsDir() {
		s = Missing
	} else if m, err := readPackageJSON(n.describe(), file); err != nil || versionOf(m) != n.Version && n.Origin.Kind != Link {
		s = Other
	}
	w.states[at] = s
	return s
}

// strays is what stands at the top of node_modules and not in the lockfile.
func strays(dir string, lock *Lock) []string {
	found := []string{}
	look := func(prefix string) []os.DirEntry {
		entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(prefix)))
		if err != nil {
			return nil // nothing is there
		}
		return entries
	}
	for _, e := range look("node_modules") {
		name := e.Name()
		at := "node_modules/" + name
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasPrefix(name, "@"):
			for _, scoped := range look(at) {
				if _, ok := lock.at(at + "/" + scoped.Name()); !ok {
					found = append(found, at+"/"+scoped.Name())
				}
			}
		default:
			if _, ok := lock.at(at); !ok {
				found = append(found, at)
			}
		}
	}
	return found
}
