package install

import (
	"context"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// demand is what the spec of one dependency asks for.
type demand struct {
	spec     Spec
	err      error // the spec does not read
	origin   Origin
	versions versions

	// The package that was held against it last, for one is asked about often.
	last     *Package
	lastFits bool
}

func (r *resolver) demand(name, wanted string) *demand {
	d := r.demands[[2]string{name, wanted}]
	if d == nil {
		d = &demand{}
		d.spec, d.err = ParseDependency(name, wanted, r.dir)
		if d.spec.Kind == Registry {
			d.versions = parseVersions(d.spec.Wanted)
		} else {
			d.origin = Origin{d.spec.Kind, originPlace(d.spec, r.dir)}
		}
		r.demands[[2]string{name, wanted}] = d
	}
	return d
}

// isTag reports whether only a registry can say what is asked for.
func (d *demand) isTag() bool { return d.spec.Kind == Registry && !isRange(d.spec.Wanted) }

// fits reports whether a package that stands in the tree meets d. As in npm,
// a version range accepts a package of any origin by its version.
func (d *demand) fits(pkg *Package) bool {
	if d.last != pkg {
		d.last, d.lastFits = pkg, d.check(pkg)
	}
	return d.lastFits
}

func (d *demand) check(pkg *Package) bool {
	switch {
	case d.err != nil:
		return false
	case d.spec.Kind != Registry:
		return pkg.Origin == d.origin
	case pkg.Name != d.spec.Target:
		return false
	}
	v, err := npmrange.ParseVersionLoose(pkg.Version)
	return err == nil && d.versions.admit(v)
}

// versions is which versions may stay where they stand.
type versions struct {
	any bool
	in  npmrange.Range
}

// parseVersions reads what stands behind "name@". A range that means any
// version admits prereleases too, as npm's dep-valid reads "*": the registry's
// latest may be one. A tag keeps what is there as well: the registry's answer
// of today decides only where nothing is.
func parseVersions(wanted string) versions {
	if wanted = strings.TrimSpace(wanted); wanted == "" || isAny(wanted) {
		return versions{any: true}
	}
	in, err := npmrange.ParseRangeLoose(wanted)
	return versions{any: err != nil, in: in}
}

func (vs versions) admit(v npmrange.Version) bool { return vs.any || vs.in.Satisfies(v) }

// accepts reports whether a version that stands in a tree or lockfile meets
// what is wanted: a range or a tag.
func accepts(wanted string, v npmrange.Version) bool { return parseVersions(wanted).admit(v) }

// isSame reports whether two packages are one: the same content that came from
// the same place.
func isSame(a, b *Package) bool {
	return a == b || a.Name == b.Name && a.Version == b.Version && a.Origin == b.Origin && a.Integrity == b.Integrity
}

// meet gives e a node: the one that Node.js would find, or a new one. An
// optional dependency that cannot be had gets none.
func (r *resolver) meet(ctx context.Context, e *edge) error {
	if e.met {
		return nil
	}
	e.met = true
	found := reusable(e)
	chosen := &node{name: e.name, pkg: e.kept, via: e, locked: e.kept != nil, lock: e.lock, lockedAt: e.lockedAt}
	switch {
	case e.kept != nil:
	case found != nil:
		chosen.pkg = found.pkg
	case e.leftOut:
		return nil
	default:
		var err error
		if chosen.pkg, err = r.pick(ctx, e); err != nil {
			return r.failed(ctx, e, err)
		}
	}
	if err := r.meetPeers(ctx, e.from, chosen.pkg); err != nil {
		return err
	}
	if found != nil && !r.missesPeers(e.from, found) {
		e.to = found
		markPasses(e.from, found.parent, e.name)
		return nil
	}
	if e.optional && r.banned[chosen.pkg.describe()] {
		return nil
	}
	e.to = chosen
	return r.place(ctx, chosen)
}

// reusable is the node that Node.js would find for e, when it fits. Where the
// lockfile holds another package for e, that one does not give way to what
// merely fits, unless what is found is the successor of the locked one.
func reusable(e *edge) *node {
	for at := e.from; at != nil; at = at.parent {
		found := at.children[e.name]
		if found == nil {
			continue
		}
		if found.bundled || !e.demand.fits(found.pkg) ||
			(e.kept != nil && (found.lockedAt != e.lockedAt || found.lock != e.lock) && !isSame(found.pkg, e.kept)) {
			return nil
		}
		return found
	}
	return nil
}

// peers is the names that pkg expects to find around it, in order.
func peers(pkg *Package) []string {
	if len(pkg.Peers) == 0 {
		return nil
	}
	return slices.DeleteFunc(sortedKeys(pkg.Peers), func(name string) bool {
		return IsHost(name) || pkg.Dependencies[name] != "" || pkg.Optional[name] != "" || slices.Contains(pkg.Bundled, name)
	})
}

// meetPeers meets those dependencies of from that are peers of pkg, so that
// pkg can be placed beside them.
func (r *resolver) meetPeers(ctx context.Context, from *node, pkg *Package) error {
	for _, name := range peers(pkg) {
		if i, ok := slices.BinarySearchFunc(from.edges, name, func(e edge, name string) int { return strings.Compare(e.name, name) }); ok {
			if err := r.meet(ctx, &from.edges[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsPeer reports whether a peer of pkg stands in the node_modules of at.
func (r *resolver) holdsPeer(at *node, pkg *Package) bool {
	return slices.ContainsFunc(peers(pkg), func(name string) bool {
		child := at.children[name]
		return child != nil && (child.bundled || r.demand(name, pkg.Peers[name]).fits(child.pkg))
	})
}

// missesPeers reports whether found stands too high in the tree to find the
// peers that from finds.
func (r *resolver) missesPeers(from, found *node) bool {
	for at := from; at != found.parent; at = at.parent {
		if r.holdsPeer(at, found.pkg) {
			return true
		}
	}
	return false
}

// markPasses notes on the way from a node up to the level where a name stands
// that it was found there.
func markPasses(from, level *node, name string) {
	for at := from; at != level; at = at.parent {
		if at.passes == nil {
			at.passes = map[string]bool{}
		}
		at.passes[name] = true
	}
}

// place puts n as high in the tree as it may stand: below the first other
// package of its name, beside the nearest of its peers, and nowhere in the way
// of somebody who found the name further up.
func (r *resolver) place(ctx context.Context, n *node) error {
	from := n.via.from
	level := from
	for at := from; at != nil && at.children[n.name] == nil; at = at.parent {
		if !at.passes[n.name] {
			level = at
		}
		if r.holdsPeer(at, n.pkg) {
			break
		}
	}
	n.parent, n.children = level, map[string]*node{}
	level.children[n.name] = n
	markPasses(from, level, n.name)
	r.queue = append(r.queue, n)
	if r.nodes++; r.nodes > maxNodes {
		return &ConflictError{Chain: chain(n), Err: fault.Errorf(fault.Package, "the dependencies need more than %d packages, copies included", maxNodes)}
	}
	for up := level; up.parent != nil && n.same == nil; up = up.parent {
		if up.name == n.name && isSame(up.pkg, n.pkg) {
			n.same = up
		}
	}
	if r.placed != nil && n.same == nil {
		r.placed(n.path(), n.pkg)
	}
	if n.same != nil || n.pkg.Origin.Kind == Link {
		return nil // what a link leads to has its own node_modules
	}
	for _, name := range n.pkg.Bundled {
		n.children[name] = &node{name: name, pkg: &Package{Name: name}, parent: n, bundled: true}
	}
	for _, name := range peers(n.pkg) {
		r.passPeer(n, name)
	}
	r.addEdges(ctx, n)
	return nil
}

// passPeer sees to it that nothing comes between n and a peer that it finds.
func (r *resolver) passPeer(n *node, name string) {
	for at := n.parent; at != nil; at = at.parent {
		if child := at.children[name]; child != nil {
			if r.demand(name, n.pkg.Peers[name]).fits(child.pkg) {
				markPasses(n, at, name)
			}
			return
		}
	}
}

// addEdges gives n its dependencies in order of name. Optional wins where both
// kinds list a name, as in npm.
func (r *resolver) addEdges(ctx context.Context, n *node) {
	pkg := n.pkg
	n.edges = make([]edge, 0, len(pkg.Dependencies)+len(pkg.Optional))
	for name, wanted := range pkg.Dependencies {
		if _, also := pkg.Optional[name]; !also && !slices.Contains(pkg.Bundled, name) {
			n.edges = append(n.edges, r.edge(ctx, n, name, wanted, false))
		}
	}
	for name, wanted := range pkg.Optional {
		if !slices.Contains(pkg.Bundled, name) {
			n.edges = append(n.edges, r.edge(ctx, n, name, wanted, true))
		}
	}
	slices.SortFunc(n.edges, func(a, b edge) int { return strings.Compare(a.name, b.name) })
}
