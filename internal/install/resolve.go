package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
)

// finder answers what a spec means right now. The resolver is given one, so
// that its rules stand apart from registries and disks.
type finder interface {
	// find is the package that spec picks. It is called by several goroutines at
	// once, and once only for each spec.
	find(ctx context.Context, spec Spec) (*Package, error)
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
	required bool      // reached over dependencies that are not optional
	locked   bool      // the lockfile's package, or the profile itself
	was      *lockSpot // where in a lockfile's tree it is looked up what its dependencies were; nil for nowhere
	rule     *override // the override that it is reached below; nil for none
	bundled  bool      // holds the place of a package that the parent's archive brings along, in a version that nobody knows
	// same is the node above this one that is the same package. Packages whose
	// versions need each other in a circle would nest for ever; Node.js follows
	// a link to the first one instead.
	same *node
	// met is the peers that were installed for this node by themselves.
	met []*edge
	// made is, in the node of the profile itself, the resolver that made the tree.
	made *resolver
}

// edge is one dependency of a node.
type edge struct {
	from *node
	*need
	recalled
	met bool // to is decided
	to  *node
}

// need is what a package says of one dependency.
type need struct {
	name       string
	wanted     string // as the package writes it
	optional   bool
	overridden bool      // the profile wants something else for it
	rule       *override // the override that is reached through it
	demand     *demand
}

// recalled is what a lockfile holds for an edge.
type recalled struct {
	kept    *Package  // nil where it is not kept
	was     *lockSpot // where in the lockfile's tree the name is found
	leftOut bool      // it could not be had when the lockfile was made
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
	return fmt.Sprintf("%v\n\tasked for by: %s", e.Err, fromProfile(e.Chain...))
}

// fromProfile is a chain of packages as messages write it.
func fromProfile(chain ...string) string {
	return "the profile → " + strings.Join(chain, " → ")
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
	find     finder
	dir      string                 // the profile's directory
	locked   *Lock                  // what to keep; nil keeps nothing
	taken    *taken                 // what to keep for dependencies from another profile
	fresh    func(name string) bool // names whose locked version is not kept
	pinned   map[string]*Package    // picked already for the profile's own dependencies
	settings Settings               // the profile's, as far as they say what is chosen
	author   *Package               // a package whose own manifest and settings are resolved, to build it; nil for those of a profile
	// provides is the version of a package that the installation provides; nil
	// where that is not known.
	provides provider
	// placed hears of each package as soon as it has a place; nil hears nothing.
	// A package may be placed again, elsewhere, when resolving starts anew.
	placed func(at string, pkg *Package)
	dedupe bool // versions at hand are shared where they fit, be they the locked ones or not

	mu      sync.Mutex
	demands map[[2]string]*demand // by name and spec
	known   map[asked]*needs      // what packages need

	was, takenWas *lockSpot             // the trees of the lockfiles
	changed       map[string]bool       // names that the overrides of the lockfile say something else of
	banned        map[string]bool       // "name@version" that no optional dependency may pick
	shared        map[string][]*Package // by name, what dedupe chooses from, the first that fits
	root          *node
	queue         []*node               // placed, and their dependencies not yet met
	hand          map[string][]*Package // see atHand
	nodes         int                   // placed so far
	unmet         map[string]bool       // peers for which there is no one version
	first         map[string]*node      // peers that stand beside the profile's own dependencies before anything else does
}

// droppedError carries the package whose optional dependency failed below it,
// so that resolving starts again without it.
type droppedError struct{ key string }

func (e *droppedError) Error() string { return "optional package " + e.key + " cannot be installed" }

// errPeersFirst says that peers have to be placed before what took their places,
// so that resolving starts again with them.
var errPeersFirst = errors.New("peers come first")

// resolve builds the tree for the wishes, which are sorted by name. What it
// will ask for is asked for ahead at the same time.
func (r *resolver) resolve(ctx context.Context, wishes []Wish) (*node, error) {
	r.was = spotsOf(r.locked)
	if r.taken != nil {
		r.takenWas = spotsOf(r.taken.lock)
	}
	r.changed = r.settings.Overrides.differFrom(r.locked)
	if r.locked != nil {
		for _, name := range r.locked.Omitted {
			r.changed[name] = true // it may well be there
		}
	}
	ahead, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.crawl(ahead, wishes)
	}()
	defer func() {
		cancel()
		<-done
	}()
	if !r.dedupe {
		return r.resolved(ctx, wishes)
	}
	return r.deduped(ctx, wishes)
}

func (r *resolver) resolved(ctx context.Context, wishes []Wish) (*node, error) {
	r.banned, r.first = map[string]bool{}, map[string]*node{}
	for {
		root, err := r.build(ctx, wishes)
		if errors.Is(err, errPeersFirst) {
			continue
		}
		if dropped, ok := errors.AsType[*droppedError](err); ok {
			r.banned[dropped.key] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		r.meetFirst(root)
		markRequired(root)
		return root, nil
	}
}

func (r *resolver) build(ctx context.Context, wishes []Wish) (*node, error) {
	root := &node{children: map[string]*node{}, locked: true, was: r.was, made: r}
	root.edges = make([]edge, 0, len(wishes))
	for _, w := range wishes {
		root.edges = append(root.edges, edge{from: root, need: r.need(nil, nil, w.Name, w.Wanted, w.Optional)})
	}
	root.edges = slices.DeleteFunc(root.edges, func(e edge) bool { return e.need == nil })
	r.root, r.queue, r.nodes, r.unmet = root, append(r.queue[:0], root), 0, map[string]bool{}
	for _, name := range sortedKeys(r.first) {
		peer := *r.first[name]
		if err := r.placeIn(root, &peer); err != nil {
			return nil, err
		}
	}
	for {
		for i := 0; i < len(r.queue); i++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := r.meetAll(ctx, r.queue[i]); err != nil {
				return nil, err
			}
		}
		r.queue = r.queue[:0]
		if !r.settings.AutoPeers {
			return root, nil
		}
		if err := r.addPeers(ctx, root); err != nil {
			return nil, err
		}
		if len(r.queue) == 0 {
			return root, nil
		}
	}
}

// meetAll gives all dependencies of a node theirs.
func (r *resolver) meetAll(ctx context.Context, n *node) error {
	for i := range n.edges {
		e := &n.edges[i]
		e.recalled = r.recall(e.need, n.pkg, n.was, n.locked)
		if e.kept != nil {
			e.demand.keep(e.kept)
		}
	}
	for i := range n.edges {
		if err := r.meet(ctx, &n.edges[i]); err != nil {
			return err
		}
	}
	return nil
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
	return &ConflictError{Chain: append(chain(e.from), e.asks()), Err: r.hinted(e, err)}
}

// asks is what an edge asks for, as messages write it.
func (n *need) asks() string {
	text := n.name + wantedSuffix(n.wanted)
	if n.overridden {
		text += fmt.Sprintf(" (which overrides make %s)", n.demand.text)
	}
	return text
}

// hinted adds the way out where a package of the harness cannot be had, which
// nobody should have to ask a registry for.
func (r *resolver) hinted(e *edge, err error) error {
	_, refused := errors.AsType[*registry.AuthError](err)
	if refused || fault.ClassOf(err) != fault.Package || !r.provides.isHost(e.name) || isShared(e.name) {
		return err
	}
	if e.from.parent == nil {
		return fault.WithHint(err, "%s belongs to the installation, and plugins find it there; it need not be in package.json", e.name)
	}
	return fault.WithHint(err, `%s belongs to the installation; "hostPackages": "%s" below dsh.profile in package.json leaves such dependencies out`, e.name, OmitHosts)
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
	if e.from.parent == nil && !e.overridden && r.pinned[e.name] != nil {
		return r.pinned[e.name], nil
	}
	if err := r.checkForeignSpec(e.from.pkg, e.need); err != nil {
		return nil, err
	}
	if e.demand.err != nil {
		return nil, e.demand.err
	}
	return e.demand.found(ctx, r.find)
}

// isPath reports whether packages of a kind stand on this machine.
func isPath(k Kind) bool { return k == Archive || k == Folder || k == Link }

// recall finds what a lockfile holds for what asker, nil for the profile, needs:
// as Node.js would find it from where the asker stood then, which need not be
// where it stands now. isLocked says that the asker is the locked one.
func (r *resolver) recall(n *need, asker *Package, from *lockSpot, isLocked bool) recalled {
	own := asker == nil
	if own && r.taken.has(n.name) {
		from = r.takenWas
	}
	got := recalled{was: from}
	if from == nil || own && !n.overridden && r.pinned[n.name] != nil {
		return got
	}
	isFresh := r.fresh(n.name) || r.changed[n.name]
	// An optional dependency for which the lockfile has nothing could not be
	// had, and is not asked for again until an update.
	asked := own && from.lock.Wanted[n.name] == anyVersion(n.wanted)
	isOut := n.optional && isLocked && !isFresh && (asked || !own)
	spot := from.lookUp(n.name)
	if spot == nil || spot.Package == nil {
		got.leftOut = isOut
		return got
	}
	got.was = spot
	switch {
	case isFresh || n.demand.err != nil:
	case own && !asked && n.demand.isTag():
		// What the tag means today is what the manifest's author wants.
	case !asked && !(isLocked && !own && n.demand.remains(spot.Package)) && !n.demand.check(spot.Package):
		got.leftOut = isOut
	case n.demand.spec.Kind == spot.Origin.Kind, own && isWrapped(spot.Package, n.name, n.wanted):
		got.kept = spot.Package
	}
	return got
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
		for _, e := range n.met {
			if !e.to.required {
				e.to.required = true
				queue = append(queue, e.to)
			}
		}
	}
}

// lockOf is the lockfile for a tree.
func lockOf(root *node, wishes []Wish) *Lock {
	lock := &Lock{Wanted: make(map[string]string, len(wishes)), Nodes: make(map[string]Located, root.made.nodes)}
	root.made.record(lock, root)
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

// record puts into the lockfile of a tree what it was made under.
func (r *resolver) record(lock *Lock, root *node) {
	lock.Overrides, lock.AutoPeers = r.settings.Overrides.values, r.settings.AutoPeers
	if r.settings.Hosts != OmitHosts {
		return
	}
	omitted := map[string]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		for _, child := range n.children {
			if child.bundled || child.same != nil {
				continue
			}
			for _, wanted := range []map[string]string{child.pkg.Dependencies, child.pkg.Optional} {
				for name := range wanted {
					if r.provides.omits(r.settings.Hosts, name) {
						omitted[name] = true
					}
				}
			}
			walk(child)
		}
	}
	walk(root)
	lock.Omitted = sortedKeys(omitted)
}

// anyVersion writes the empty range, which npm reads as any version, in the
// way that can be seen.
func anyVersion(wanted string) string {
	if wanted == "" {
		return "*"
	}
	return wanted
}
