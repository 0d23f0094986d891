package install

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// demand is what the spec of one dependency asks for.
type demand struct {
	text     string // as it is written
	spec     Spec
	err      error // the spec does not read
	origin   Origin
	versions versions

	once     sync.Once
	pkg      *Package // what is found for it
	foundErr error

	// kept is the package of the lockfile that a git repository's name stays at.
	kept atomic.Pointer[Package]

	// The package that the resolver held against it last, for one is asked about
	// often.
	last     *Package
	lastFits bool
}

// demand is the only one for a name and a spec.
func (r *resolver) demand(name, wanted string) *demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{name, wanted}
	d := r.demands[key]
	if d != nil {
		return d
	}
	d = &demand{text: wanted}
	d.spec, d.err = ParseDependency(name, wanted, r.dir)
	if d.spec.Kind == Registry {
		d.versions = parseVersions(d.spec.Wanted)
	} else {
		d.origin = Origin{d.spec.Kind, originPlace(d.spec, r.dir)}
	}
	if r.demands == nil {
		r.demands = map[[2]string]*demand{}
	}
	r.demands[key] = d
	return d
}

// found is what find has for d. It is asked once, and everybody waits for that
// answer.
func (d *demand) found(ctx context.Context, find finder) (*Package, error) {
	d.once.Do(func() { d.pkg, d.foundErr = find.find(ctx, d.spec) })
	return d.pkg, d.foundErr
}

// asked is a package as it is reached below an override.
type asked struct {
	pkg  *Package
	rule *override
}

// needs is what a package depends on, in order of name.
type needs struct {
	dependencies []need
	peers        []need // optional marks those that need not be there
}

// needs is what a package depends on below an override.
func (r *resolver) needs(pkg *Package, rule *override) *needs {
	r.mu.Lock()
	known := r.known[asked{pkg, rule}]
	r.mu.Unlock()
	if known != nil {
		return known
	}
	known = &needs{}
	add := func(list *[]need, name, wanted string, optional bool) {
		if n := r.need(rule, pkg, name, wanted, optional); n != nil {
			*list = append(*list, *n)
		}
	}
	if count := len(pkg.Dependencies) + len(pkg.Optional); count > 0 {
		known.dependencies = make([]need, 0, count)
	}
	for name, wanted := range pkg.Dependencies {
		// Optional wins where both kinds list a name, as in npm.
		if _, also := pkg.Optional[name]; !also && !slices.Contains(pkg.Bundled, name) && !r.provides.omits(r.settings.Hosts, name) {
			add(&known.dependencies, name, wanted, false)
		}
	}
	for name, wanted := range pkg.Optional {
		if !slices.Contains(pkg.Bundled, name) && !r.provides.omits(r.settings.Hosts, name) {
			add(&known.dependencies, name, wanted, true)
		}
	}
	for name, wanted := range pkg.Peers {
		if !r.provides.meets(r.settings, name) && pkg.Dependencies[name] == "" && pkg.Optional[name] == "" && !slices.Contains(pkg.Bundled, name) {
			add(&known.peers, name, wanted, slices.Contains(pkg.OptionalPeers, name))
		}
	}
	byName := func(a, b need) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(known.dependencies, byName)
	slices.SortFunc(known.peers, byName)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[asked]*needs{}
	}
	r.known[asked{pkg, rule}] = known
	return known
}

// need is one dependency of a package, nil for the profile, below an override.
// It is nil where an override takes it away.
func (r *resolver) need(rule *override, asker *Package, name, wanted string, optional bool) *need {
	instead, inside := r.settings.Overrides.apply(rule, asker, name, wanted)
	if instead == removed {
		return nil
	}
	return &need{name: name, wanted: wanted, optional: optional, overridden: instead != wanted, rule: inside, demand: r.demand(name, instead)}
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
	case d.spec.Kind == Git:
		_, sure := d.spec.Git.admits(pkg)
		kept := d.kept.Load()
		return sure || kept != nil && isSame(pkg, kept)
	case d.spec.Kind != Registry:
		return pkg.Origin == d.origin
	case pkg.Name != d.spec.Target:
		return false
	}
	v, err := npmrange.ParseVersionLoose(pkg.Version)
	return err == nil && d.versions.admit(v)
}

// remains reports whether a package of the lockfile can be what was found for d
// when its asker, who is as he was then, was asked for.
func (d *demand) remains(pkg *Package) bool {
	if d.err != nil || d.spec.Kind != Git {
		return false
	}
	can, _ := d.spec.Git.admits(pkg)
	return can
}

// keep notes that a name of a git repository stays at a locked commit, for all
// who ask for it in the same words. It is for the resolver alone, whose order does
// not depend on that of answers.
func (d *demand) keep(pkg *Package) {
	if d.spec.Kind == Git {
		d.kept.CompareAndSwap(nil, pkg)
		d.last = nil
	}
}

// same reports whether a package that stands in the tree is the one that is found
// for d, where only the repository can say that.
func (d *demand) same(ctx context.Context, find finder, pkg *Package) bool {
	if !d.remains(pkg) {
		return false
	}
	found, err := d.found(ctx, find)
	return err == nil && isSame(found, pkg)
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
	found := r.reusable(ctx, e)
	pkg := e.kept
	if r.dedupe {
		pkg = cmp.Or(e.shared(r.shared), pkg)
	}
	switch {
	case pkg != nil && pkg.Origin.Kind == Link:
		// Nothing pins a linked folder. One that is gone stays as it was.
		if now, err := r.pick(ctx, e); err == nil {
			pkg = now
		}
	case pkg != nil:
	case found != nil:
		pkg = found.pkg
	case e.leftOut:
		return nil
	default:
		var err error
		if pkg, err = r.pick(ctx, e); err != nil {
			return r.failed(ctx, e, err)
		}
		if e.optional && pkg.Node != "" && !fitsNode(pkg.Node) {
			return nil
		}
	}
	peers := r.needs(pkg, e.rule).peers
	if err := r.meetPeers(ctx, e.from, peers); err != nil {
		return err
	}
	if found != nil && !missesPeers(e.from, found, peers) {
		e.to = found
		markPasses(e.from, found.parent, e.name)
		return nil
	}
	if e.optional && r.banned[pkg.describe()] {
		return nil
	}
	e.to = &node{name: e.name, pkg: pkg, via: e, locked: e.kept != nil, was: e.was, rule: e.rule}
	return r.place(e.to)
}

// reusable is the node that Node.js would find for e, when it fits. Where the
// lockfile holds another package for e, that one does not give way to what
// merely fits, unless what is found is the successor of the locked one.
func (r *resolver) reusable(ctx context.Context, e *edge) *node {
	for at := e.from; at != nil; at = at.parent {
		found := at.children[e.name]
		if found == nil {
			continue
		}
		if found.bundled || !e.demand.fits(found.pkg) && !e.demand.same(ctx, r.find, found.pkg) || !r.isRightBelow(ctx, found, e.rule) ||
			(e.kept != nil && !r.dedupe && found.was != e.was && !isSame(found.pkg, e.kept)) {
			return nil
		}
		return found
	}
	return nil
}

// isRightBelow reports whether what a node brings is right also for who reaches
// it below another override.
func (r *resolver) isRightBelow(ctx context.Context, n *node, rule *override) bool {
	if n.rule == rule {
		return true
	}
	named := map[string]bool{}
	for _, at := range []*override{n.rule, rule} {
		for ; at != nil; at = at.up {
			for name := range at.below {
				named[name] = at.up != nil || named[name]
			}
		}
	}
	return !r.reaches(ctx, n.pkg, named, map[*Package]bool{})
}

// reaches reports whether a package needs one of the named, itself or over what
// it needs.
func (r *resolver) reaches(ctx context.Context, pkg *Package, named map[string]bool, seen map[*Package]bool) bool {
	if seen[pkg] {
		return false
	}
	seen[pkg] = true
	for _, n := range r.needs(pkg, nil).dependencies {
		if named[n.name] {
			return true
		}
		for _, next := range r.mayBe(ctx, &n) {
			if r.reaches(ctx, next, named, seen) {
				return true
			}
		}
	}
	return false
}

// mayBe is the packages that a dependency may be met by: those of the lockfile
// that fit, else what is found for it.
func (r *resolver) mayBe(ctx context.Context, n *need) []*Package {
	var fit []*Package
	for _, pkg := range r.atHand()[n.name] {
		if n.demand.check(pkg) {
			fit = append(fit, pkg)
		}
	}
	if len(fit) == 0 && n.demand.err == nil && n.demand.spec.Kind == Registry {
		if pkg, err := n.demand.found(ctx, r.find); err == nil {
			fit = append(fit, pkg)
		}
	}
	return fit
}

// meetPeers meets those dependencies of from that are peers of what is placed
// beside them.
func (r *resolver) meetPeers(ctx context.Context, from *node, peers []need) error {
	for i := range peers {
		if at, ok := slices.BinarySearchFunc(from.edges, peers[i].name, func(e edge, name string) int { return strings.Compare(e.name, name) }); ok {
			if err := r.meet(ctx, &from.edges[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsPeer reports whether one of some peers stands in the node_modules of at.
func holdsPeer(at *node, peers []need) bool {
	for i := range peers {
		if child := at.children[peers[i].name]; child != nil && (child.bundled || peers[i].demand.fits(child.pkg)) {
			return true
		}
	}
	return false
}

// missesPeers reports whether found stands too high in the tree to find the
// peers that from finds.
func missesPeers(from, found *node, peers []need) bool {
	if len(peers) == 0 {
		return false
	}
	for at := from; at != found.parent; at = at.parent {
		if holdsPeer(at, peers) {
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
func (r *resolver) place(n *node) error {
	from, peers := n.via.from, r.needs(n.pkg, n.rule).peers
	level := from
	for at := from; at != nil && at.children[n.name] == nil; at = at.parent {
		if !at.passes[n.name] {
			level = at
		}
		if holdsPeer(at, peers) {
			break
		}
	}
	markPasses(from, level, n.name)
	return r.placeIn(level, n)
}

// placeIn puts n into the node_modules of level.
func (r *resolver) placeIn(level, n *node) error {
	n.parent, n.children = level, map[string]*node{}
	level.children[n.name] = n
	r.queue = append(r.queue, n)
	if r.nodes++; r.nodes > maxNodes {
		return &ConflictError{Chain: chain(n), Err: fault.Errorf(fault.Package, "the dependencies need more than %d packages, copies included", maxNodes)}
	}
	for up := level; up.parent != nil && n.same == nil; up = up.parent {
		if up.name == n.name && up.rule == n.rule && isSame(up.pkg, n.pkg) {
			n.same = up
		}
	}
	if n.same != nil {
		return nil
	}
	if r.placed != nil {
		r.placed(n.path(), n.pkg)
	}
	if n.pkg.Origin.Kind == Link {
		return nil // what a link leads to has its own node_modules
	}
	for _, name := range n.pkg.Bundled {
		n.children[name] = &node{name: name, pkg: &Package{Name: name}, parent: n, bundled: true}
	}
	needs := r.needs(n.pkg, n.rule)
	for i := range needs.peers {
		passPeer(n, &needs.peers[i])
	}
	n.edges = make([]edge, len(needs.dependencies))
	for i := range needs.dependencies {
		n.edges[i] = edge{from: n, need: &needs.dependencies[i]}
	}
	return nil
}

// passPeer sees to it that nothing comes between n and a peer that it finds.
func passPeer(n *node, peer *need) {
	for at := n.parent; at != nil; at = at.parent {
		if child := at.children[peer.name]; child != nil {
			if peer.demand.fits(child.pkg) {
				markPasses(n, at, peer.name)
			}
			return
		}
	}
}
