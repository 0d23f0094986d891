package install

import (
	"context"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/store"
)

// contents brings the contents of packages into the store, each once. What is
// asked for starts at once, beside whatever goes on: the resolver asks as it
// places packages, so that archives come in while it waits for more answers.
type contents struct {
	find *sources
	ctx  context.Context // of the job: what is under way ends with it
	work sync.WaitGroup
	look chan struct{} // bounds how many entries are looked up at once

	mu   sync.Mutex
	all  map[store.Integrity]*arrival
	lost int // contents that had to be fetched
	come int // of these, how many have come or failed
}

// arrival is one content on its way. The fields are set when done is closed.
type arrival struct {
	done  chan struct{}
	entry store.Entry
	sure  bool // it was fetched just now, or is vouched for, so that it is whole
	err   error
}

func newContents(ctx context.Context, find *sources) *contents {
	return &contents{find: find, ctx: ctx, all: map[store.Integrity]*arrival{}, look: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
}

// end waits for what is under way.
func (c *contents) end() { c.work.Wait() }

// want is the content of a package, which is fetched unless the store has it.
func (c *contents) want(pkg *Package) *arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := pkg.Integrity
	if found := c.all[id]; found != nil {
		return found
	}
	p := &arrival{done: make(chan struct{})}
	c.all[id] = p
	if entry, ok := c.find.job.closure.known()[id]; ok {
		p.entry, p.sure = entry, c.find.job.closure.vouched
		close(p.done)
		return p
	}
	c.work.Go(func() {
		defer close(p.done)
		c.look <- struct{}{}
		entry, ok := c.find.job.Store.Get(id)
		<-c.look
		if p.entry = entry; !ok {
			c.fetch(p, pkg)
		}
	})
	return p
}

// again fetches what the store has and is not whole.
func (c *contents) again(pkg *Package) *arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &arrival{done: make(chan struct{})}
	c.all[pkg.Integrity] = p
	c.work.Go(func() {
		defer close(p.done)
		c.fetch(p, pkg)
	})
	return p
}

func (c *contents) fetch(p *arrival, pkg *Package) {
	c.progress(1, 0)
	p.sure = true
	p.entry, p.err = c.find.archive(c.ctx, pkg)
	c.progress(0, 1)
}

func (c *contents) progress(lost, come int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += lost
	c.come += come
	if events := c.find.job.Events; events.Fetching != nil {
		events.Fetching(c.come, c.lost)
	}
}

// wait ends when the content is there or has failed, or with ctx.
func (p *arrival) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *arrival) isThere() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// piece is one content that a tree is laid out from.
type piece struct {
	places  []string // where it stands, in order
	located Located  // at the first of them
	content *arrival
}

// pieces is the contents as they were published of the places of a tree for which
// wanted is true, each once, by the first of them. What was built is no piece.
func (t *tree) pieces(wanted func(at string) bool) []*piece {
	var pieces []*piece
	byID := make(map[store.Integrity]*piece, len(t.lock.Nodes))
	for _, at := range sortedKeys(t.lock.Nodes) {
		n := t.lock.Nodes[at]
		if n.linked() || t.isSkipped(at) || t.isBuilt(at) || !wanted(at) {
			continue
		}
		if known := byID[n.Integrity]; known != nil {
			known.places = append(known.places, at)
			known.located.Optional = known.located.Optional && n.Optional
			continue
		}
		byID[n.Integrity] = &piece{places: []string{at}, located: n}
		pieces = append(pieces, byID[n.Integrity])
	}
	return pieces
}

// gather brings contents that t is laid out from into the store, and notes them
// in t.entries. As soon as one is there lay is called for it, from several
// goroutines at once. An optional package that cannot be had is added to
// t.skipped.
//
// A damaged entry stays until there is another in its place, so that it is found
// again where none is to be had.
func (j *Job) gather(ctx context.Context, c *contents, t *tree, pieces []*piece, lay func(*piece, store.Entry) error) error {
	if err := j.lacks(pieces); err != nil {
		return err
	}
	var ready, coming []*piece
	for _, n := range pieces {
		if n.content = c.want(n.located.Package); n.content.isThere() {
			ready = append(ready, n)
		} else {
			coming = append(coming, n)
		}
	}
	// The largest first, so that no core is left alone with it at the end.
	slices.SortStableFunc(ready, func(a, b *piece) int { return b.content.entry.Len() - a.content.entry.Len() })

	cores := runtime.GOMAXPROCS(0)
	slots := make(chan struct{}, cores)
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	take := func(n *piece) error {
		entry, err := j.whole(ctx, c, n)
		if err == nil {
			err = j.holdNames(t.lock, n, entry)
		}
		mu.Lock()
		switch {
		case err == nil:
			t.entries[n.located.Integrity] = entry
		case n.located.Optional && isMissing(err):
			for _, at := range n.places {
				t.skipped[at] = true
			}
		}
		mu.Unlock()
		switch {
		case err == nil && lay != nil:
			return lay(n, entry)
		case err == nil || n.located.Optional && isMissing(err):
			return nil
		}
		return j.gone(n.places[0], n.located, j.failed(t.lock, n, err))
	}
	var next atomic.Int64
	for range cores {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(ready)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := take(ready[i]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	for _, n := range coming {
		group.Go(func() error {
			if err := n.content.wait(ctx); err != nil {
				return err
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			return take(n)
		})
	}
	return group.Wait()
}

// failed says of which package the error of its content speaks. What the
// registry said of one whose archive is another or not there is asked anew the
// next time.
func (j *Job) failed(lock *Lock, n *piece, err error) error {
	host := ""
	if n.located.Origin.Kind == Registry {
		if u, err := url.Parse(registryDist(j.Registry, n.located.Package).Tarball); err == nil {
			host = u.Host
		}
		if fault.ClassOf(err) == fault.Package {
			j.Registry.Forget(n.located.Name, n.located.Version)
		}
	}
	if source, err := n.located.Origin.source(); err == nil {
		host = source.hostOf()
	}
	return wrapFetch(lock, n.places[0], err, host)
}

// whole is the content of n, fetched again where what the store has of it is not
// good enough for what the job does with it.
func (j *Job) whole(ctx context.Context, c *contents, n *piece) (store.Entry, error) {
	p := n.content
	err := p.wait(ctx)
	if err == nil && p.err == nil && !j.usable(p, n) {
		p = c.again(n.located.Package)
		err = p.wait(ctx)
	}
	if err != nil {
		return store.Entry{}, err
	}
	return p.entry, p.err
}

// stored is the content that the store has, as it is remembered or found.
func (j *Job) stored(id store.Integrity) (*arrival, bool) {
	if entry, ok := j.closure.known()[id]; ok {
		return &arrival{entry: entry, sure: j.closure.vouched}, true
	}
	entry, ok := j.Store.Get(id)
	return &arrival{entry: entry}, ok
}

// lacks is an error that names all packages that would have to be fetched when
// nothing may be.
func (j *Job) lacks(pieces []*piece) error {
	if !j.Offline {
		return nil
	}
	var names []string
	for _, n := range pieces {
		if kind := n.located.Origin.Kind; kind != Registry && kind != URL && kind != Git {
			continue
		}
		if p, ok := j.stored(n.located.Integrity); !ok || !j.usable(p, n) {
			names = append(names, n.located.describe())
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return nil
	case 1:
		return fault.Errorf(fault.Network, "%s: it is not in the store, and --offline fetches nothing", names[0])
	}
	return fault.Errorf(fault.Network, "%s: they are not in the store, and --offline fetches nothing", strings.Join(names, ", "))
}
