package install

import (
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/npmrange"
)

// LockName is the lockfile's name in a profile.
const LockName = "dsh-lock.yaml"

const lockVersion = "1"

// Origin is where the content of a package came from, as the lockfile keeps
// it: no path of one machine, nothing that differs between two runs.
type Origin struct {
	Kind  Kind
	Place string // URL: the address; Archive, Folder, Link: slash-separated path relative to the profile; Git: "git+https://host/repository.git#<commit>&path:/folder"; Registry: the archive's address where it is not the customary one
}

// Package is one resolved package: what it is, where its content comes from
// and what it needs. It holds what the lockfile says of it and, but for Node,
// nothing else, so that a package from the lockfile and one from a registry are
// the same.
type Package struct {
	Name      string // its own name, also where it is installed under an alias
	Version   string
	Origin    Origin
	Integrity store.Integrity // zero for links

	Dependencies  map[string]string
	Optional      map[string]string // optionalDependencies
	Peers         map[string]string
	OptionalPeers []string          // sorted
	Bundled       []string          // sorted names that its archive brings along
	OS, CPU, Libc []string          // platforms; empty means any
	Bin           map[string]string // program name -> file

	// AgentPlugin says that the content is an Agent Plugin, of which a wrapper is
	// made that is a bundle: see [AgentPluginsDir]. node_modules links to that.
	AgentPlugin bool

	// Node is the releases of Node.js that it is for, "" for any. The lockfile
	// does not hold it: whoever is in there was found to be right.
	Node string
}

// Lock is the content of a lockfile.
type Lock struct {
	Wanted map[string]string  // the profile's dependencies as its manifest writes them
	Nodes  map[string]Located // by path below the profile, "node_modules/a/node_modules/b"

	// What it was made under.
	Overrides map[string]string // by selector, see [Overrides]
	AutoPeers bool              // peers that nobody provides are among the packages
	Omitted   []string          // sorted names that are left to the installation

	// Sources is what archives of [KeptDir] were made of, and what Agent Plugins
	// were asked for as, by the name of the dependency.
	Sources map[string]Written
}

// Located is a package at its place in the tree.
type Located struct {
	*Package
	Optional bool // nothing fails when it cannot be installed on this platform
}

// MadeFor says why the lockfile is not one for a profile of such settings, whose
// installation provides what provides says; nil is not known. The error is of
// class Package.
func (l *Lock) MadeFor(s Settings, provides func(name string) (version string, ok bool)) error {
	changed := sortedKeys(s.Overrides.differFrom(l))
	switch {
	case len(changed) > 0:
		return fault.Errorf(fault.Package, "the overrides of %s are not those that %s was made under", strings.Join(changed, ", "), LockName)
	case s.AutoPeers != l.AutoPeers:
		return fault.Errorf(fault.Package, "%s says autoInstallPeers: %t, and %s was made for %t", WorkspaceName, s.AutoPeers, LockName, l.AutoPeers)
	}
	for _, name := range l.Omitted {
		if !provider(provides).omits(s.Hosts, name) {
			return fault.Errorf(fault.Package, "%s leaves %s to the installation, which it is not left to any more", LockName, name)
		}
	}
	if s.Hosts != OmitHosts {
		return nil
	}
	for _, at := range sortedKeys(l.Nodes) {
		n := l.Nodes[at]
		for _, wanted := range []map[string]string{n.Dependencies, n.Package.Optional} {
			for name := range wanted {
				if provider(provides).omits(s.Hosts, name) && !slices.Contains(l.Omitted, name) {
					return fault.Errorf(fault.Package, "%s does not leave %s, which %s needs, to the installation", LockName, name, n.describe())
				}
			}
		}
	}
	return nil
}

// lockSpot is a place in the tree of a lockfile.
type lockSpot struct {
	Located // without a package where only something below stands in the lockfile
	at      string
	up      *lockSpot // nil for the profile itself
	below   map[string]*lockSpot
	lock    *Lock
	linked  *lockSpot // where the package really stands that this is a link to; nil for none
}

// spotsOf is the tree of a lockfile, whose top is the profile; nil of nil.
func spotsOf(l *Lock) *lockSpot {
	if l == nil {
		return nil
	}
	top := &lockSpot{lock: l}
	spots := make(map[string]*lockSpot, len(l.Nodes)+1)
	spots[""] = top
	var spotAt func(at string) *lockSpot
	spotAt = func(at string) *lockSpot {
		s := spots[at]
		if s != nil {
			return s
		}
		up := spotAt(parentPlace(at))
		s = &lockSpot{Located: l.Nodes[at], at: at, up: up, lock: l}
		if up.below == nil {
			up.below = map[string]*lockSpot{}
		}
		up.below[nameAt(at)] = s
		spots[at] = s
		return s
	}
	for at := range l.Nodes {
		spotAt(at)
	}
	for at, n := range l.Nodes {
		if n.Origin.Kind == Link {
			spots[at].linked = spots[n.Origin.Place]
		}
	}
	return top
}

// lookUp finds a name as [Lock.lookUp] does, and what a link to a package above
// leads to. It is nil where nothing is found, and without a package where
// somebody brings the name along.
func (s *lockSpot) lookUp(name string) *lockSpot {
	for at := s; at != nil; at = at.up {
		if found := at.below[name]; found != nil && found.Package != nil {
			if found.linked != nil {
				return found.linked
			}
			return found
		}
		if at.Package != nil && slices.Contains(at.Bundled, name) {
			return &lockSpot{lock: s.lock}
		}
	}
	return nil
}

// at is the package at a path. A nil lock has none.
func (l *Lock) at(path string) (Located, bool) {
	if l == nil {
		return Located{}, false
	}
	n, ok := l.Nodes[path]
	return n, ok
}

// newest is the newest locked version of a registry package that a spec
// allows, nil where there is none. A nil lock has none.
func (l *Lock) newest(spec Spec) *Package {
	if l == nil {
		return nil
	}
	var best *Package
	var bestVersion npmrange.Version
	for _, n := range l.Nodes {
		if n.Origin.Kind != Registry || n.Name != spec.Target || (spec.Wanted != "" && !(isRange(spec.Wanted) && satisfies(n.Version, spec.Wanted))) {
			continue
		}
		if v, err := npmrange.ParseVersionLoose(n.Version); err == nil && (best == nil || bestVersion.Less(v)) {
			best, bestVersion = n.Package, v
		}
	}
	return best
}

// version is the package's, "" where there is none.
func (l Located) version() string {
	if l.Package == nil {
		return ""
	}
	return l.Package.Version
}

// sortedKeys is the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
