package install

import (
	"context"
	"slices"
	"sync"
)

// maxAhead bounds how many packages are asked for ahead at once. How many
// requests are under way is for the finder to bound; many of these wait for the
// same answer.
const maxAhead = 256

// crawl finds, ahead of the resolver, the packages that it will ask for, and
// returns when all are found or the context ends. On each answer it goes on to
// what that package needs, so that the whole takes as long as the longest chain
// of answers. What cannot be had is met by the resolver again, in its own order.
func (r *resolver) crawl(ctx context.Context, wishes []Wish) {
	c := &crawler{resolver: r, ctx: ctx, seen: map[asking]bool{}, spots: map[*lockSpot]bool{}, picked: map[string][]*Package{}, peers: map[string]*need{}}
	c.mu.Lock()
	for _, w := range wishes {
		if n := r.need(nil, nil, w.Name, w.Wanted, w.Optional); n != nil {
			c.reach(n, nil, r.was, true)
		}
	}
	c.mu.Unlock()
	c.working.Wait()
	for r.settings.AutoPeers && ctx.Err() == nil && c.lackPeers() {
		c.working.Wait()
	}
}

// crawler is one run of crawl.
type crawler struct {
	*resolver
	ctx     context.Context
	working sync.WaitGroup

	mu     sync.Mutex
	seen   map[asking]bool
	spots  map[*lockSpot]bool    // of the lockfiles, gone through
	picked map[string][]*Package // answers by the name that they are for
	peers  map[string]*need      // not optional, by name
	queue  []errand
	count  int // of those who work
}

// asking is a question: whether two are one.
type asking struct {
	demand *demand
	rule   *override
}

// errand is one question, with where in the lockfile its asker stood.
type errand struct {
	*need
	was *lockSpot
}

// reach goes on to what asker, nil for the profile, needs. It is called with mu
// locked.
func (c *crawler) reach(n *need, asker *Package, from *lockSpot, isLocked bool) {
	got := c.recall(n, asker, from, isLocked)
	switch {
	case got.kept != nil:
		if !c.spots[got.was] {
			c.spots[got.was] = true
			c.picked[n.name] = append(c.picked[n.name], got.kept)
			c.enter(got.kept, n.rule, got.was, true)
		}
	case got.leftOut, n.demand.err != nil:
	case asker == nil && c.pinned[n.name] != nil && !n.overridden:
		c.enter(c.pinned[n.name], n.rule, got.was, false)
	case c.checkForeignSpec(asker, n) != nil: // refused
	case !c.seen[asking{n.demand, n.rule}]:
		c.seen[asking{n.demand, n.rule}] = true
		c.queue = append(c.queue, errand{n, got.was})
		if c.count < maxAhead {
			c.count++
			c.working.Add(1)
			go c.work()
		}
	}
}

// enter goes on to what a package needs.
func (c *crawler) enter(pkg *Package, rule *override, was *lockSpot, isLocked bool) {
	if pkg.Origin.Kind == Link {
		return
	}
	needs := c.needs(pkg, rule)
	for i := range needs.dependencies {
		c.reach(&needs.dependencies[i], pkg, was, isLocked)
	}
	for i := range needs.peers {
		if p := &needs.peers[i]; !p.optional {
			c.peers[p.name] = p
		}
	}
}

// work answers questions until none is left.
func (c *crawler) work() {
	defer c.working.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.count-- }()
	for len(c.queue) > 0 && c.ctx.Err() == nil {
		next := c.queue[0]
		c.queue = c.queue[1:]
		// What was picked for another range is what the resolver will share.
		if slices.ContainsFunc(c.picked[next.name], next.demand.check) {
			continue
		}
		c.mu.Unlock()
		pkg, err := next.demand.found(c.ctx, c.find)
		if err == nil {
			c.needs(pkg, next.rule) // read where nobody waits
		}
		c.mu.Lock()
		if err == nil {
			c.picked[next.name] = append(c.picked[next.name], pkg)
			c.enter(pkg, next.rule, next.was, false)
		}
	}
}

// lackPeers asks for the peers that nobody depends on, and reports whether there
// are any.
func (c *crawler) lackPeers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	lacks := false
	for _, name := range sortedKeys(c.peers) {
		n := c.peers[name]
		delete(c.peers, name)
		if len(c.picked[name]) == 0 && !c.seen[asking{n.demand, n.rule}] {
			lacks = true
			c.reach(n, &Package{}, nil, false)
		}
	}
	return lacks
}
