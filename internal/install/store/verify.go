package store

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/staging"
)

// Verify reads all that the store holds, and takes away what dead processes left.
// report is called for every entry, one at a time, with what is wrong with it:
// nil, a [*DamagedError], or another error where it cannot be read or has no
// index. It may drop the entry.
func (s *Store) Verify(ctx context.Context, report func(Stored, error)) error {
	list, err := s.Entries()
	if err != nil {
		return err
	}
	if err := staging.SweepTemp(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var one sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, stored := range list {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var wrong error
			if entry, ok := s.read(stored.Integrity); !ok {
				wrong = errNoIndex
			} else {
				wrong = entry.Check()
			}
			one.Lock()
			defer one.Unlock()
			report(stored, wrong)
			return nil
		})
	}
	return group.Wait()
}
