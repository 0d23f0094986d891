package store

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"dsh/internal/staging"
)

// Stored is what stands at the place of an entry.
type Stored struct {
	Integrity Integrity
	Bytes     int64     // of its files, as they were unpacked
	Added     time.Time // when it was published
	Listed    bool      // it has an index that reads; without, it is of no use
	dir       string
}

// Dir is the directory that holds the entry's files.
func (s Stored) Dir() string { return filepath.Join(s.dir, filesDir) }

// Entries lists what the store holds, sorted by hash. What is none of the
// store's own is not listed. A store that is not there holds nothing.
func (s *Store) Entries() ([]Stored, error) {
	s.use.look(s.dir)
	return s.entries()
}

func (s *Store) entries() ([]Stored, error) {
	firsts, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the package store: %w", err)
	}
	var list []Stored
	for _, dir := range firsts {
		first := dir.Name()
		if len(first) != 2 || !dir.IsDir() {
			continue
		}
		rests, err := os.ReadDir(filepath.Join(s.dir, first))
		if err != nil {
			return nil, fmt.Errorf("list the package store: %w", err)
		}
		for _, rest := range rests {
			sum, err := hex.DecodeString(first + rest.Name())
			if err != nil || len(sum) != sha512.Size {
				continue
			}
			stored, err := s.stored(Integrity{[sha512.Size]byte(sum)})
			if errors.Is(err, fs.ErrNotExist) {
				continue // it has just been dropped
			}
			if err != nil {
				return nil, fmt.Errorf("list the package store: %w", err)
			}
			list = append(list, stored)
		}
	}
	return list, nil
}

func (s *Store) stored(id Integrity) (Stored, error) {
	entry, ok := s.read(id)
	stored := Stored{Integrity: id, Listed: ok, dir: s.entryDir(id)}
	stored.Bytes = entry.list.size()
	// The index is written once, with the entry.
	info, err := os.Lstat(filepath.Join(stored.dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Lstat(stored.dir)
	}
	if err != nil {
		return stored, err
	}
	stored.Added = info.ModTime()
	return stored, nil
}

// Prune takes entries out of the store: those that choose names of the ones that
// are there. It runs with nobody else having the store open, and waits for that
// until ctx ends; command and waiting are as in [staging.Acquire]. An error of
// choose ends it, and nothing is taken out.
//
// The entries disappear with one rename each. Where a process dies, the next one
// that prunes, or adds something, removes what is left of them.
func (s *Store) Prune(ctx context.Context, command string, waiting func(staging.Holder), choose func([]Stored) ([]Stored, error)) (err error) {
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		_, err := choose(nil)
		return err
	}
	if err := s.Close(); err != nil { // our own share
		return err
	}
	lock, err := staging.Acquire(ctx, filepath.Join(s.dir, useName), command, waiting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	list, err := s.entries()
	if err != nil {
		return err
	}
	chosen, err := choose(list)
	if err != nil {
		return err
	}
	// Nobody else has the store open: what is temporary is of the dead.
	if err := staging.SweepTemp(s.dir); err != nil {
		return fmt.Errorf("prune the package store: %w", err)
	}
	if len(chosen) == 0 {
		return nil
	}
	aside, remove, err := staging.TempDir(s.dir)
	if err != nil {
		return fmt.Errorf("prune the package store: %w", err)
	}
	for i, c := range chosen {
		if err = ctx.Err(); err != nil {
			break
		}
		if err = staging.SetAside(c.dir, filepath.Join(aside, strconv.Itoa(i)), indexName); err != nil {
			err = fmt.Errorf("prune the package store: %w", err)
			break
		}
		_ = staging.OS.Remove(filepath.Dir(c.dir)) // when it is empty now
	}
	// Others may go on while the files are removed.
	return errors.Join(err, lock.Release(), remove())
}
