package install

import (
	"cmp"
	"context"
	"slices"
)

// Dedupe makes node_modules hold as few copies as the versions allow that it
// holds now. Nothing newer is asked for, and the profile's own dependencies stay
// as they are.
func (j *Job) Dedupe(ctx context.Context) (*Result, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	return j.settle(ctx, find, change{dedupe: true})
}

// deduped is the tree with versions shared, or, where that does not make it
// smaller, as it is.
func (r *resolver) deduped(ctx context.Context, wishes []Wish) (*node, error) {
	r.dedupe = false
	as, err := r.resolved(ctx, wishes)
	if err != nil || r.was == nil {
		return as, err
	}
	count := r.nodes
	r.dedupe = true
	r.share(as)
	shared, err := r.resolved(ctx, wishes)
	if err != nil || r.nodes < count {
		return shared, err
	}
	r.dedupe = false
	return r.resolved(ctx, wishes)
}

// shared is the first of the packages to choose from that fits, nil for none.
func (e *edge) shared(from map[string][]*Package) *Package {
	for _, pkg := range from[e.name] {
		if e.demand.check(pkg) {
			return pkg
		}
	}
	return nil
}

// share chooses, for each name of which a tree has several packages, in which
// order they are taken: what the profile itself depends on, then what is right
// for most.
func (r *resolver) share(root *node) {
	copies := map[string][]*Package{} // by the name that they are installed under
	asked := map[string][]*demand{}
	queue := []*node{root}
	seen := map[*node]bool{}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for i := range n.edges {
			e := &n.edges[i]
			if e.to == nil {
				continue
			}
			asked[e.name] = append(asked[e.name], e.demand)
			if !slices.ContainsFunc(copies[e.name], func(pkg *Package) bool { return isSame(pkg, e.to.pkg) }) {
				copies[e.name] = append(copies[e.name], e.to.pkg)
			}
			if !seen[e.to] {
				seen[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
	r.shared = map[string][]*Package{}
	for name, all := range copies {
		if len(all) < 2 {
			continue
		}
		slices.SortFunc(all, func(a, b *Package) int {
			if isNewer(a, b) {
				return -1
			}
			if isNewer(b, a) {
				return 1
			}
			return cmp.Compare(a.describe(), b.describe())
		})
		open := asked[name]
		take := func(i int) {
			pkg := all[i]
			all = slices.Delete(all, i, i+1)
			r.shared[name] = append(r.shared[name], pkg)
			open = slices.DeleteFunc(open, func(d *demand) bool { return d.check(pkg) })
		}
		if own := root.children[name]; own != nil {
			if i := slices.IndexFunc(all, func(pkg *Package) bool { return isSame(pkg, own.pkg) }); i >= 0 && slices.ContainsFunc(root.edges, func(e edge) bool { return e.name == name }) {
				take(i)
			}
		}
		for len(all) > 0 {
			best, most := 0, -1
			for i, pkg := range all {
				count := 0
				for _, d := range open {
					if d.check(pkg) {
						count++
					}
				}
				if count > most {
					best, most = i, count
				}
			}
			take(best)
		}
	}
}

// atHand is the packages of the lockfile by the names that they are installed
// under, in order of place.
func (r *resolver) atHand() map[string][]*Package {
	if r.hand == nil {
		r.hand = map[string][]*Package{}
		if r.locked != nil {
			for _, at := range sortedKeys(r.locked.Nodes) {
				r.hand[nameAt(at)] = append(r.hand[nameAt(at)], r.locked.Nodes[at].Package)
			}
		}
	}
	return r.hand
}
