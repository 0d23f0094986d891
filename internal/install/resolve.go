package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// finder answers what a spec means right now. The resolver is given one, so
// that its rules stand apart from registries and disks.
type finder interface {
	// find is the package that spec picks.
	find(ctx context.Context, spec Spec) (*Package, error)
	// prefetch says that find will soon be called for spec.
	prefetch(ctx context.Context, spec Spec)
}

// node is one package at its place in the tree being built.
type node struct {
	name     string // under which it is installed
	pkg      *Package
	parent   *node // in whose node_modules it stands; nil for the profile itself
	children map[string]*node
	edges    []edge
	via      *edge // the first dependency that brought it in
	// passes holds the names that this node, or one below it, found further
	// up the tree. Placing such a name here would change what they find.
	passes   map[string]bool
	required bool // reached over dependencies that are not optional
	locked   bool // the lockfile's package, or the profile itself
	// same is the node above this one that is the same package. Packages whose
	// versions need each other in a circle would nest for ever; Node.js follows
	// a link to the first one instead.
	same *node
}

// edge is one dependency of a node.
type edge struct {
	from     *node
	name     string
	wanted   string
	optional bool
	to       *node
}

// path is the node's place below the profile.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	at := "node_modules/" + n.name
	if up := n.parent.path(); up != "" {
		return up + "/" + at
	}
	return at
}

// Wish is one dependency of the profile itself.
type Wish struct {
	Name, Wanted string
	Optional     bool
}

// ConflictError says that a dependency cannot be met, with the chain of
// packages that ask for it.
type ConflictError struct {
	Chain []string // from the profile's dependency down to the one that failed
	Err   error
}

func (e *ConflictError) Error() string {
	if len(e.Chain) < 2 {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v\n\tasked for by: %s", e.Err, strings.Join(e.Chain, " → "))
}

func (e *ConflictError) Unwrap() error { return e.Err }

// resolver builds the tree of one profile. The same wishes, lockfile and
// answers give the same tree, in whatever order answers arrive: nodes are
// handled one after another, breadth first, dependencies in order of name.
type resolver struct {
	find   finder
	dir    string                 // the profile's directory
	locked *Lock                  // what to keep; nil keeps nothing
	fresh  func(name string) bool // names whose locked version is not kept
	pinned map[string]*Package    // picked already for the profile's own dependencies
	banned map[string]bool        // "name@version" that no optional dependency may pick
	ranges map[string]npmrange.Range
}

// droppedError carries the package whose optional dependency failed below it,
// so that resolving starts again without it.
type droppedError struct{ key string }

func (e *droppedError) Error() string { return "optional package " + e.key + " cannot be installed" }

// resolve builds the tree for the wishes, which are sorted by name.
func (r *resolver) resolve(ctx context.Context, wishes []Wish) (*node, error) {
	r.banned = map[string]bool{}
	r.ranges = map[string]npmrange.Range{}
	for {
		root, err := r.build(ctx, wishes)
		if dropped, ok := errors.AsType[*droppedError](err); ok {
			r.banned[dropped.key] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		markRequired(root)
		return root, nil
	}
}

func (r *resolver) build(ctx context.Context, wishes []Wish) (*node, error) {
	root := &node{children: map[string]*node{}, locked: true}
	for _, w := range wishes {
		root.edges = append(root.edges, edge{from: root, name: w.Name, wanted: w.Wanted, optional: w.Optional})
		r.prefetch(ctx, root, w.Name, w.Wanted, w.Optional)
	}
	queue := []*node{root}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for i := range n.edges {
			e := &n.edges[i]
			if e.to = r.reuse(e); e.to != nil {
				continue
			}
			placed, err := r.place(ctx, e)
			if err != nil {
				return nil, err
			}
			if placed != nil {
				queue = append(queue, placed)
			}
		}
	}
	return root, nil
}

// checkPlatform finds a required package that does not run on a machine.
func checkPlatform(n *node, here Platform) error {
	for _, name := range sortedKeys(n.children) {
		child := n.children[name]
		if child.required && child.same == nil && !here.runs(child.pkg) {
			return &ConflictError{Chain: chain(child), Err: fault.Errorf(fault.Package, "%s does not run on this machine (%s): it is for %s",
				child.pkg.describe(), here, strings.Join(slices.Concat(child.pkg.OS, child.pkg.CPU, child.pkg.Libc), ", "))}
		}
		if err := checkPlatform(child, here); err != nil {
			return err
		}
	}
	return nil
}

// reuse is the node that Node.js would find for e, when it fits.
func (r *resolver) reuse(e *edge) *node {
	for at := e.from; at != nil; at = at.parent {
		found := at.children[e.name]
		if found == nil {
			continue
		}
		if !r.fits(found.pkg, e) {
			return nil
		}
		markPasses(e, at)
		return found
	}
	return nil
}

// markPasses notes on the way from e up to the level where its target stands
// that the name was found there.
func markPasses(e *edge, level *node) {
	for at := e.from; at != level; at = at.parent {
		if at.passes == nil {
			at.passes = map[string]bool{}
		}
		at.passes[e.name] = true
	}
}

// place picks a package for e and puts it as high in the tree as it may
// stand: below the first other package of that name, and nowhere in the way
// of somebody who found the name further up. It returns nil where an optional
// dependency cannot be had.
func (r *resolver) place(ctx context.Context, e *edge) (*node, error) {
	pkg := r.lockedFor(e)
	locked := pkg != nil
	if !locked && r.leftOut(e) {
		return nil, nil
	}
	if !locked {
		var err error
		if pkg, err = r.pick(ctx, e); err != nil {
			return nil, r.failed(ctx, e, err)
		}
	}
	if e.optional && r.banned[pkg.describe()] {
		return nil, nil
	}
	level := e.from
	for at := e.from; at != nil && at.children[e.name] == nil; at = at.parent {
		if !at.passes[e.name] {
			level = at
		}
	}
	n := &node{name: e.name, pkg: pkg, parent: level, children: map[string]*node{}, via: e, locked: locked}
	level.children[e.name] = n
	e.to = n
	markPasses(e, level)
	for up := level; up.parent != nil && n.same == nil; up = up.parent {
		if up.name == n.name && up.pkg.Name == pkg.Name && up.pkg.Version == pkg.Version {
			n.same = up
		}
	}
	if n.same != nil || pkg.Origin.Kind == Link {
		return n, nil // what a link leads to has its own node_modules
	}
	bundled := func(name string) bool { return slices.Contains(pkg.Bundled, name) }
	for _, deps := range []struct {
		of       map[string]string
		optional bool
	}{{pkg.Dependencies, false}, {pkg.Optional, true}} {
		for name, wanted := range deps.of {
			if _, also := pkg.Optional[name]; (also && !deps.optional) || bundled(name) {
				continue // optional wins where both list a name, as in npm
			}
			n.edges = append(n.edges, edge{from: n, name: name, wanted: wanted, optional: deps.optional})
			r.prefetch(ctx, n, name, wanted, deps.optional)
		}
	}
	slices.SortFunc(n.edges, func(a, b edge) int { return strings.Compare(a.name, b.name) })
	return n, nil
}

// failed decides what a dependency that cannot be had means: nothing for an
// optional one, the end of the nearest optional package above it, or of all.
func (r *resolver) failed(ctx context.Context, e *edge, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch fault.ClassOf(err) {
	case fault.Package, fault.Other: // not there, no version, odd spec: final
		if e.optional {
			return nil
		}
		for n := e.from; n.parent != nil; n = n.via.from {
			if n.via.optional {
				return &droppedError{n.pkg.describe()}
			}
		}
	}
	return &ConflictError{Chain: append(chain(e.from), e.name+wantedSuffix(e.wanted)), Err: err}
}

// chain is the packages from the profile's dependency down to n.
func chain(n *node) []string {
	var names []string
	for ; n.parent != nil; n = n.via.from {
		names = append(names, n.pkg.describe())
	}
	slices.Reverse(names)
	return names
}

func wantedSuffix(wanted string) string {
	if wanted == "" {
		return ""
	}
	return "@" + wanted
}

// pick asks for the package that e wants now.
func (r *resolver) pick(ctx context.Context, e *edge) (*Package, error) {
	if e.from.parent == nil && r.pinned[e.name] != nil {
		return r.pinned[e.name], nil
	}
	spec, err := ParseDependency(e.name, e.wanted, r.dir)
	if err != nil {
		return nil, err
	}
	if e.from.parent != nil && (spec.Kind == Archive || spec.Kind == Folder || spec.Kind == Link) {
		return nil, fault.Errorf(fault.Package, "%s depends on %s as %q, a path on its author's machine", e.from.pkg.describe(), e.name, e.wanted)
	}
	return r.find.find(ctx, spec)
}

// leftOut reports whether e is an optional dependency that the lockfile knows
// of and holds nothing for: it could not be had then, and is not asked for
// again until an update.
func (r *resolver) leftOut(e *edge) bool {
	if !e.optional || r.locked == nil || !e.from.locked || r.fresh(e.name) {
		return false
	}
	if e.from.parent == nil && r.locked.Wanted[e.name] != anyVersion(e.wanted) {
		return false
	}
	_, there := r.locked.lookUp(e.from.path(), e.name)
	return !there
}

// lockedFor is the package that the lockfile holds for e, found as Node.js
// would find it in the locked tree, when it still fits.
func (r *resolver) lockedFor(e *edge) *Package {
	if r.locked == nil || (e.from.parent == nil && r.pinned[e.name] != nil) {
		return nil
	}
	located, ok := r.locked.lookUp(e.from.path(), e.name)
	if !ok {
		return nil
	}
	if first, ok := r.locked.Nodes[located.Origin.Place]; ok && located.Origin.Kind == Link {
		located = first // a link to the same package above
	}
	spec, err := ParseDependency(e.name, e.wanted, r.dir)
	if err != nil || spec.Kind != located.Origin.Kind || r.fresh(e.name) {
		return nil
	}
	if asked := e.from.parent == nil && r.locked.Wanted[e.name] == anyVersion(e.wanted); asked || r.fits(located.Package, e) {
		return located.Package
	}
	return nil
}

// fits reports whether a package that stands in the tree meets e. As in npm,
// a version range accepts a package of any origin by its version.
func (r *resolver) fits(pkg *Package, e *edge) bool {
	spec, err := ParseDependency(e.name, e.wanted, r.dir)
	if err != nil {
		return false
	}
	if spec.Kind != Registry {
		return pkg.Origin.Kind == spec.Kind && pkg.Origin.Place == originPlace(spec, r.dir)
	}
	if pkg.Name != spec.Target {
		return false
	}
	version, err := npmrange.ParseVersionLoose(pkg.Version)
	if err != nil {
		return false
	}
	wanted, ok := r.ranges[spec.Wanted]
	if !ok {
		if wanted, err = npmrange.ParseRangeLoose(spec.Wanted); err != nil {
			// A tag inside the tree keeps what is there; the registry's answer
			// of today decides only where nothing is.
			return true
		}
		r.ranges[spec.Wanted] = wanted
	}
	return wanted.Satisfies(version)
}

func (r *resolver) prefetch(ctx context.Context, from *node, name, wanted string, optional bool) {
	if e := (&edge{from: from, name: name, wanted: wanted, optional: optional}); r.lockedFor(e) != nil || r.leftOut(e) {
		return
	}
	if spec, err := ParseDependency(name, wanted, r.dir); err == nil {
		r.find.prefetch(ctx, spec)
	}
}

// markRequired sets required on every node that the profile reaches without
// an optional dependency on the way.
func markRequired(root *node) {
	queue := []*node{root}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, e := range n.edges {
			if e.to != nil && !e.optional && !e.to.required {
				e.to.required = true
				queue = append(queue, e.to)
			}
		}
	}
}

// lockOf is the lockfile for a tree.
func lockOf(root *node, wishes []Wish) *Lock {
	lock := &Lock{Wanted: map[string]string{}, Nodes: map[string]Located{}}
	for _, w := range wishes {
		lock.Wanted[w.Name] = anyVersion(w.Wanted)
	}
	var walk func(n *node)
	walk = func(n *node) {
		for child := range maps.Values(n.children) {
			pkg := child.pkg
			if child.same != nil {
				pkg = &Package{Name: pkg.Name, Version: pkg.Version, Origin: Origin{Link, child.same.path()}}
			}
			lock.Nodes[child.path()] = Located{Package: pkg, Optional: !child.required}
			walk(child)
		}
	}
	walk(root)
	return lock
}

// anyVersion writes the empty range, which npm reads as any version, in the
// way that can be seen.
func anyVersion(wanted string) string {
	if wanted == "" {
		return "*"
	}
	return wanted
}
