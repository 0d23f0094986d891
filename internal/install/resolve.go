package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
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
	required bool   // reached over dependencies that are not optional
	locked   bool   // the lockfile's package, or the profile itself
	lock     *Lock  // the lockfile that it is looked up in what its dependencies were; nil holds none
	lockedAt string // where in that one's tree
	bundled  bool   // holds the place of a package that the parent's archive brings along, in a version that nobody knows
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
	demand   *demand
	kept     *Package // what the lockfile holds for it; nil where that is not kept
	lock     *Lock    // the lockfile in whose tree the name is looked up
	lockedAt string   // where in that tree it is found
	leftOut  bool     // it could not be had when the lockfile was made
	met      bool     // to is decided
	to       *node
}

// path is the node's place below the profile.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	return placeBelow(n.parent.path(), n.name)
}

// placeBelow is the place of a package in the node_modules of the one at at.
func placeBelow(at, name string) string {
	if at == "" {
		return "node_modules/" + name
	}
	return at + "/node_modules/" + name
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

// maxNodes bounds a tree. Large applications have a few thousand packages; a
// few packages whose exact versions need each other ask for millions of copies.
const maxNodes = 50_000

// resolver builds the tree of one profile. The same wishes, lockfile and
// answers give the same tree, in whatever order answers arrive: nodes are
// handled one after another, breadth first, dependencies in order of name,
// except that what is a peer of another dependency comes before it.
type resolver struct {
	find    finder
	dir     string                 // the profile's directory
	locked  *Lock                  // what to keep; nil keeps nothing
	taken   *taken                 // what to keep for dependencies from another profile
	fresh   func(name string) bool // names whose locked version is not kept
	pinned  map[string]*Package    // picked already for the profile's own dependencies
	banned  map[string]bool        // "name@version" that no optional dependency may pick
	demands map[[2]string]*demand  // by name and spec
	// settings are the profile's, as far as they say what is chosen.
	settings Settings
	// provides is the version of a package that the installation provides; nil
	// where that is not known.
	provides func(name string) (version string, ok bool)
	// placed hears of each package as soon as it has a place; nil hears nothing.
	// A package may be placed again, elsewhere, when resolving starts anew.
	placed func(at string, pkg *Package)
	dedupe bool    // versions at hand are shared where they fit, the locked one or not
	queue  []*node // placed, and their dependencies not yet met
	nodes  int     // placed so far
}

// droppedError carries the package whose optional dependency failed below it,
// so that resolving starts again without it.
type droppedError struct{ key string }

func (e *droppedError) Error() string { return "optional package " + e.key + " cannot be installed" }

// resolve builds the tree for the wishes, which are sorted by name.
func (r *resolver) resolve(ctx context.Context, wishes []Wish) (*node, error) {
	r.banned = map[string]bool{}
	r.demands = map[[2]string]*demand{}
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
	root := &node{children: map[string]*node{}, locked: true, lock: r.locked}
	for _, w := range wishes {
		root.edges = append(root.edges, r.edge(ctx, root, w.Name, w.Wanted, w.Optional))
	}
	r.queue, r.nodes = []*node{root}, 0
	for len(r.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := r.queue[0]
		r.queue = r.queue[1:]
		for i := range n.edges {
			if err := r.meet(ctx, &n.edges[i]); err != nil {
				return nil, err
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

// failed decides what a dependency that cannot be had means: nothing for an
// optional one, the end of the nearest optional package above it, or of all.
func (r *resolver) failed(ctx context.Context, e *edge, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Who is not let in must hear of it: the package may well be there.
	_, refused := errors.AsType[*registry.AuthError](err)
	switch class := fault.ClassOf(err); {
	case !refused && (class == fault.Package || class == fault.Other): // not there, no version, odd spec: final
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
	if e.demand.err != nil {
		return nil, e.demand.err
	}
	spec := e.demand.spec
	if e.from.parent != nil && (spec.Kind == Archive || spec.Kind == Folder || spec.Kind == Link) {
		return nil, fault.Errorf(fault.Package, "%s depends on %s as %q, a path on its author's machine", e.from.pkg.describe(), e.name, e.wanted)
	}
	return r.find.find(ctx, spec)
}

// edge is a new dependency of from, with what the lockfile holds for it. What
// is not kept will be asked for, and is announced.
func (r *resolver) edge(ctx context.Context, from *node, name, wanted string, optional bool) edge {
	e := edge{from: from, name: name, wanted: wanted, optional: optional, demand: r.demand(name, wanted)}
	r.recall(&e)
	if e.kept == nil && !e.leftOut && e.demand.err == nil {
		r.find.prefetch(ctx, e.demand.spec)
	}
	return e
}

// recall finds what the lockfile holds for e, as Node.js would find it from
// where the asking package stood then, which need not be where it stands now.
func (r *resolver) recall(e *edge) {
	e.lock, e.lockedAt = e.from.lock, e.from.lockedAt
	ownEdge := e.from.parent == nil
	if ownEdge && r.taken.has(e.name) {
		e.lock = r.taken.lock
	}
	if e.lock == nil || (ownEdge && r.pinned[e.name] != nil) {
		return
	}
	// An optional dependency for which the lockfile has nothing could not be
	// had, and is not asked for again until an update.
	asked := ownEdge && e.lock.Wanted[e.name] == anyVersion(e.wanted)
	isOut := e.optional && e.from.locked && !r.fresh(e.name) && (asked || !ownEdge)
	at, located, ok := e.lock.lookUp(e.from.lockedAt, e.name)
	if !ok || located.Package == nil {
		e.leftOut = isOut
		return
	}
	if first, ok := e.lock.Nodes[located.Origin.Place]; ok && located.Origin.Kind == Link {
		at, located = located.Origin.Place, first // a link to the same package above
	}
	e.lockedAt = at
	switch {
	case r.fresh(e.name) || e.demand.err != nil:
	case ownEdge && !asked && e.demand.isTag():
		// What the tag means today is what the manifest's author wants.
	case !asked && !e.demand.fits(located.Package):
		e.leftOut = isOut
	case e.demand.spec.Kind == located.Origin.Kind:
		e.kept = located.Package
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
	var walk func(n *node, at string)
	walk = func(n *node, at string) {
		for name, child := range n.children {
			if child.bundled {
				continue // its parent's archive holds it
			}
			pkg := child.pkg
			if child.same != nil {
				pkg = &Package{Name: pkg.Name, Version: pkg.Version, Origin: Origin{Link, child.same.path()}}
			}
			below := placeBelow(at, name)
			lock.Nodes[below] = Located{Package: pkg, Optional: !child.required}
			walk(child, below)
		}
	}
	walk(root, "")
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
