package slot

import (
	"slices"
	"sync"
)

// Listeners are functions that are told of something. The zero value has none.
type Listeners[T any] struct {
	mu   sync.Mutex
	list []*func(T)
}

// Add adds a function, until cancel is called. One that is being told then may
// still run.
func (l *Listeners[T]) Add(f func(T)) (cancel func()) {
	at := &f
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, at)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(slices.Clone(l.list), func(g *func(T)) bool { return g == at })
	}
}

// Tell calls all of them, in the order in which they were added. Whether calls
// may overlap is the business of who tells.
func (l *Listeners[T]) Tell(v T) {
	l.mu.Lock()
	list := slices.Clip(l.list)
	l.mu.Unlock()
	for _, f := range list {
		(*f)(v)
	}
}
