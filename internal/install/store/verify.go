package store

import (
	"context"
)

// Verify reads all that the store holds. report is called for every entry, one
// at a time, with what is wrong with it: nil, a [*DamagedError], or another
// error where it has no index that reads. It may drop the entry.
func (s *Store) Verify(ctx context.Context, report func(Stored, error)) error {
	list, err := s.Entries()
	if err != nil {
		return err
	}
	for _, stored := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		entry, ok := s.read(stored.Integrity)
		if !ok {
			report(stored, errNoIndex)
			continue
		}
		report(stored, entry.Check())
	}
	return nil
}
