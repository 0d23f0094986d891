package install

import "context"

// crawl finds, ahead of the resolver, the packages that it will ask for, and
// returns when all are found or the context ends. It only warms the memory of
// find: what cannot be had is met by the resolver again, in its own order.
func (r *resolver) crawl(ctx context.Context, wishes []Wish) {
	for _, w := range wishes {
		if d := r.demand(w.Name, w.Wanted); d.err == nil {
			r.find.prefetch(ctx, d.spec)
		}
	}
}
