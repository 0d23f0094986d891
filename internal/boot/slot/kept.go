package slot

import (
	"sync"

	"dsh/internal/boot/host"
)

// Kept is what rows of one run leave for their next start.
type Kept struct {
	mu sync.Mutex
	of map[keptKey]any
}

// keptKey is a row by its path, and what it calls the thing.
type keptKey struct{ row, name string }

// NewKept has nothing yet.
func NewKept() *Kept { return &Kept{of: map[keptKey]any{}} }

// Keep is the value that the row of this path had under the name when it ran
// before in this run of dsh, or else what create makes of it now. Where nothing
// is kept, each start makes its own. The row's plugin injects [Keeping], as an
// optional one.
func Keep[T any](r *host.Row, name string, create func() T) T {
	kept, ok := host.Service[*Kept](r, Keeping)
	if !ok || kept == nil {
		return create()
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	key := keptKey{r.Path(), name}
	if value, ok := kept.of[key].(T); ok {
		return value
	}
	value := create()
	kept.of[key] = value
	return value
}
