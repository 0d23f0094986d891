package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"dsh/internal/staging"
)

// useName is the file whose lock all open stores share, and pruning has alone.
const useName = ".use"

// useWait is how long opening a store waits for somebody who prunes it, which
// takes a look at all profiles and some renames.
const useWait = time.Minute

// use is what an open store holds of that lock.
type use struct {
	mu     sync.Mutex
	lock   *staging.Lock
	failed bool
}

// begin takes part in the lock, until end.
func (u *use) begin(dir string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lock != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), useWait)
	defer cancel()
	lock, err := staging.AcquireShared(ctx, filepath.Join(dir, useName), "dsh", nil)
	if err != nil {
		u.failed = true
		return fmt.Errorf("open the package store: %w", err)
	}
	u.lock = lock
	return nil
}

// look is begin for who reads. A store that is not there, or cannot be
// written, is not pruned either.
func (u *use) look(dir string) {
	u.mu.Lock()
	begun := u.lock != nil || u.failed
	u.mu.Unlock()
	if begun {
		return
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		_ = u.begin(dir)
	}
}

func (u *use) end() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	lock := u.lock
	u.lock = nil
	if lock == nil {
		return nil
	}
	return lock.Release()
}
