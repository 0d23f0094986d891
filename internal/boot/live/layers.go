// Package live keeps a running profile at what its files say: it sees when
// files change, composes the profile anew and has the difference applied.
//
// It is not the composer and not the host, which it is given as a function, and
// it does not decide whether a profile is followed: the row hmr does.
package live

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"dsh/internal/boot/slot"
	"dsh/internal/compose"
)

// Composer composes the profile as its files are now, with all that a start
// checks.
type Composer func(ctx context.Context) (Composition, error)

// Composition is the profile as its files were at one time.
type Composition struct {
	Tree *compose.Tree
	// Use makes it the one that runs, or leaves all as it was and returns why.
	// Where the rows are those that run already, changed is false.
	Use func(ctx context.Context, changed bool) error
}

// Layers is the layers of a running profile, which [slot.LiveLayers] describes.
type Layers struct {
	compose Composer
	wake    chan struct{} // holds one when there is something to do
	told    slot.Listeners[slot.Reload]

	mu      sync.Mutex
	tree    *compose.Tree // that runs
	last    slot.Reload
	waiting []chan error // of Reload
	ended   error        // why no reload comes any more
}

// New is the layers of a profile of which tree runs.
func New(tree *compose.Tree, composer Composer) *Layers {
	return &Layers{compose: composer, wake: make(chan struct{}, 1), tree: tree}
}

// Run does the reloads that are asked for, until ctx ends. They are done here
// and not where they are asked for, because a reload may stop the row that
// asks.
func (l *Layers) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			l.mu.Lock()
			l.ended = fmt.Errorf("reload the layers: %w", context.Cause(ctx))
			waiting := l.waiting
			l.waiting = nil
			l.mu.Unlock()
			for _, w := range waiting {
				w <- l.ended
			}
			return
		case <-l.wake:
		}
		l.mu.Lock()
		waiting := l.waiting
		l.waiting = nil
		l.mu.Unlock()
		err := l.reload(ctx)
		for _, w := range waiting {
			w <- err
		}
	}
}

// Changed asks for a reload and does not wait for it.
func (l *Layers) Changed() {
	select {
	case l.wake <- struct{}{}:
	default: // one that has not begun is asked for already
	}
}

// Reload composes the profile anew and applies what is different. The error
// says why the tree stayed as it was.
func (l *Layers) Reload(ctx context.Context) error {
	done := make(chan error, 1)
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return l.ended
	}
	l.waiting = append(l.waiting, done)
	l.mu.Unlock()
	l.Changed()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Last is how the newest reload ended.
func (l *Layers) Last() slot.Reload {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Tree is the tree that runs.
func (l *Layers) Tree() *compose.Tree {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tree
}

// Subscribe calls f after every reload that changed something, failed, or ended
// a time of failing, until cancel is called.
func (l *Layers) Subscribe(f func(slot.Reload)) (cancel func()) {
	return l.told.Add(f)
}

func (l *Layers) reload(ctx context.Context) error {
	before := l.Tree()
	c, err := l.compose(ctx)
	var changed []string
	if err == nil {
		changed = Differences(before, c.Tree)
		err = c.Use(ctx, len(changed) > 0)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the profile ends; that is no mistake in its files
	}
	l.mu.Lock()
	last := l.last
	if err == nil {
		l.tree = c.Tree // the origins of rows may be others though all rows are the same
	}
	if err == nil && len(changed) == 0 && last.Err == nil {
		l.mu.Unlock()
		return nil
	}
	l.last = slot.Reload{Count: last.Count + 1, Err: err}
	if err == nil {
		l.last.Changed = changed
	}
	reload := l.last
	l.mu.Unlock()
	l.told.Tell(reload)
	return err
}

// Differences are the rows at the top of two trees that are not the same, by
// their ids or else their plugins: first those of the new tree in its order,
// then those that are gone.
func Differences(before, after *compose.Tree) []string {
	var names []string
	for _, row := range after.Rows {
		if old, ok := sameRow(before.Rows, row); !ok || !compose.Equal(old.Entry, row.Entry) {
			names = append(names, rowName(row))
		}
	}
	for _, row := range before.Rows {
		if _, ok := sameRow(after.Rows, row); !ok {
			names = append(names, rowName(row))
		}
	}
	return names
}

// sameRow finds a row by its id, and one without an id by what it is.
func sameRow(rows []compose.Row, row compose.Row) (compose.Row, bool) {
	i := slices.IndexFunc(rows, func(r compose.Row) bool {
		if !compose.Truthy(row.ID()) {
			return compose.Equal(r.Entry, row.Entry)
		}
		return r.ID() == row.ID()
	})
	if i < 0 {
		return compose.Row{}, false
	}
	return rows[i], true
}

func rowName(row compose.Row) string {
	if id := row.ID(); compose.Truthy(id) {
		return compose.IDText(id)
	}
	return row.Name()
}
