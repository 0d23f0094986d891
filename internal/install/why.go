package install

import (
	"container/heap"
	"slices"
	"strings"

	"dsh/internal/profile"
)

// Need is one step of a chain: who asks for what, and what that is.
type Need struct {
	Name    string `json:"name"`    // under which it is asked for
	Version string `json:"version"` // "" where it is not in the profile
	Wanted  string `json:"wanted"`
	Kind    string `json:"kind"` // the section of the package.json that asks
}

// Copy is a package at one place, and why it is there.
type Copy struct {
	Name    string `json:"name"`             // its own, also where it is installed under an alias
	Version string `json:"version"`          // "" where it is not in the profile
	Place   string `json:"place"`            // in the profile, "" where it is not in there
	Commit  string `json:"commit,omitempty"` // of what comes from a git repository
	// Chains lead from the profile to the package, the shortest first.
	Chains [][]Need `json:"chains"`
	More   bool     `json:"more"` // there are chains that are not listed
}

// maxChains bounds the chains of one copy, and maxSteps the search for them:
// there can be more than anybody could print.
const (
	maxChains = 20
	maxSteps  = 50_000
)

// peerKind is the section of dependencies that somebody else brings.
const peerKind = "peerDependencies"

// call is one edge of a lockfile's graph, seen from what is asked for.
type call struct {
	from               string // the place of who asks, "" is the profile
	name, wanted, kind string
}

// calls is who asks for the package at each place. A peer that nobody has in
// the profile stands at absentPlace.
func (l *Lock) calls(m *profile.Manifest) map[string][]call {
	calls := map[string][]call{}
	add := func(c call) {
		to, n, ok := l.lookUp(c.from, c.name)
		switch {
		case !ok && c.kind == peerKind:
			to = absentPlace(c.name)
		case !ok || n.Package == nil:
			return // left out, or brought along in an archive
		default:
			to = l.real(to)
		}
		if to != c.from && !slices.ContainsFunc(calls[to], func(o call) bool { return o.from == c.from && o.name == c.name }) {
			calls[to] = append(calls[to], c)
		}
	}
	for _, name := range sortedKeys(l.Wanted) {
		_, kind, ok := m.Dependency(name)
		if !ok {
			kind = profile.Dependencies
		}
		add(call{"", name, l.Wanted[name], string(kind)})
	}
	for _, at := range sortedKeys(l.Nodes) {
		for _, d := range dependenciesAt(l.Nodes[at].Package) {
			add(call{at, d.name, d.wanted, d.kind})
		}
	}
	return calls
}

// dependenciesAt is what a package asks for, in the order of names.
func dependenciesAt(pkg *Package) []call {
	var list []call
	for _, section := range []struct {
		kind   string
		wanted map[string]string
	}{
		{string(profile.OptionalDependencies), pkg.Optional},
		{string(profile.Dependencies), pkg.Dependencies},
		{peerKind, pkg.Peers},
	} {
		for _, name := range sortedKeys(section.wanted) {
			if !slices.ContainsFunc(list, func(c call) bool { return c.name == name }) {
				list = append(list, call{name: name, wanted: section.wanted[name], kind: section.kind})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b call) int { return strings.Compare(a.name, b.name) })
	return list
}

// absentPlace stands for a peer that is not in the profile.
func absentPlace(name string) string { return "peer:" + name }

// real is the place of the package to which the one at a place leads: packages
// that need each other in a circle are links to the first of them.
func (l *Lock) real(at string) string {
	if n := l.Nodes[at]; n.Origin.Kind == Link {
		if _, inside := l.Nodes[n.Origin.Place]; inside {
			return n.Origin.Place
		}
	}
	return at
}

// Why finds the packages of a name, its own or an alias, in the versions that
// wanted allows ("" is any), and who asks for them. A peer that is not in the
// profile is one without a place.
func (l *Lock) Why(m *profile.Manifest, name, wanted string) []Copy {
	calls := l.calls(m)
	distance := l.distances(calls)
	copies := []Copy{}
	for _, at := range sortedKeys(l.Nodes) {
		n := l.Nodes[at]
		if l.real(at) != at || n.Name != name && nameAt(at) != name || wanted != "" && !satisfies(n.Version, wanted) {
			continue
		}
		c := Copy{Name: n.Name, Version: n.Version, Place: at, Commit: n.Origin.Commit()}
		c.Chains, c.More = l.chains(at, n.Version, calls, distance)
		copies = append(copies, c)
	}
	if at := absentPlace(name); wanted == "" && len(calls[at]) > 0 {
		c := Copy{Name: name}
		c.Chains, c.More = l.chains(at, "", calls, distance)
		copies = append(copies, c)
	}
	return copies
}

// distances is how many steps each place is from the profile at least.
func (l *Lock) distances(calls map[string][]call) map[string]int {
	below := map[string][]string{}
	for _, to := range sortedKeys(calls) {
		for _, c := range calls[to] {
			below[c.from] = append(below[c.from], to)
		}
	}
	distance := map[string]int{"": 0}
	queue := []string{""}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range below[at] {
			if _, known := distance[to]; !known {
				distance[to] = distance[at] + 1
				queue = append(queue, to)
			}
		}
	}
	return distance
}

// trail is the end of a chain: what a place is asked for by, and what that
// leads to.
type trail struct {
	at     string
	need   Need
	rest   *trail
	steps  int
	length int // of the shortest chain that ends so
	number int // in which order it was found
}

// leadsTo reports whether a place is on the trail already.
func (t *trail) leadsTo(at string) bool {
	for ; t != nil; t = t.rest {
		if t.at == at {
			return true
		}
	}
	return false
}

type trails []*trail

func (t trails) Len() int { return len(t) }
func (t trails) Less(i, j int) bool {
	if t[i].length != t[j].length {
		return t[i].length < t[j].length
	}
	if t[i].steps != t[j].steps {
		return t[i].steps > t[j].steps // what is nearly done first, so that chains come before the bound
	}
	return t[i].number < t[j].number
}
func (t trails) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *trails) Push(x any)   { *t = append(*t, x.(*trail)) }
func (t *trails) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// chains finds the chains to a place, the shortest first. It goes up from the
// place, where it is nearest to the profile first.
func (l *Lock) chains(to, version string, calls map[string][]call, distance map[string]int) (chains [][]Need, more bool) {
	chains = [][]Need{}
	open := &trails{{at: to}}
	number := 0
	for steps := 0; open.Len() > 0; steps++ {
		t := heap.Pop(open).(*trail)
		if t.at == "" {
			if len(chains) == maxChains {
				return chains, true
			}
			chain := []Need{}
			for ; t.rest != nil; t = t.rest {
				chain = append(chain, t.need)
			}
			chains = append(chains, chain)
			continue
		}
		if steps > maxSteps {
			return chains, true
		}
		for _, c := range calls[t.at] {
			up, reached := distance[c.from]
			if !reached || t.leadsTo(c.from) {
				continue
			}
			number++
			need := Need{Name: c.name, Version: version, Wanted: ShownSpec(c.wanted), Kind: c.kind}
			if t.rest != nil {
				need.Version = l.Nodes[t.at].Version
			}
			heap.Push(open, &trail{at: c.from, need: need, rest: t, steps: t.steps + 1, length: t.steps + 1 + up, number: number})
		}
	}
	return chains, false
}
