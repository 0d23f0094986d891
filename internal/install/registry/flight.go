package registry

import (
	"context"
	"sync"
)

// flight answers each key once: who asks while the answer is being fetched
// waits for it, and who asks later gets the same. Failures are forgotten, but
// for those that keep says are an answer. The zero flight is ready.
type flight[K comparable, T any] struct {
	keep  func(error) bool
	mu    sync.Mutex
	calls map[K]*call[T]
}

type call[T any] struct {
	done      chan struct{}
	value     T
	err       error
	abandoned bool // whoever fetched was called off; that is no answer
}

func (f *flight[K, T]) do(ctx context.Context, key K, fetch func() (T, error)) (T, error) {
	for {
		f.mu.Lock()
		c, found := f.calls[key]
		if !found {
			c = &call[T]{done: make(chan struct{})}
			if f.calls == nil {
				f.calls = map[K]*call[T]{}
			}
			f.calls[key] = c
		}
		f.mu.Unlock()

		if !found {
			c.value, c.err = fetch()
			if c.err != nil && (f.keep == nil || !f.keep(c.err)) {
				c.abandoned = ctx.Err() != nil
				f.mu.Lock()
				delete(f.calls, key)
				f.mu.Unlock()
			}
			close(c.done)
			return c.value, c.err
		}
		select {
		case <-c.done:
			if !c.abandoned {
				return c.value, c.err
			}
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// peek is the answer of a key, where there is one.
func (f *flight[K, T]) peek(key K) (value T, ok bool) {
	f.mu.Lock()
	c := f.calls[key]
	f.mu.Unlock()
	if c == nil {
		return value, false
	}
	select {
	case <-c.done:
		return c.value, c.err == nil
	default:
		return value, false
	}
}

// has reports whether a key was asked for.
func (f *flight[K, T]) has(key K) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[key] != nil
}
