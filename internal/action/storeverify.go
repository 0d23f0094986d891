package action

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"dsh/internal/install/store"
)

// VerifyOptions are the choices of `dsh store verify`.
type VerifyOptions struct {
	Fix      bool            // take out what is damaged
	Progress func(names int) // so many packages have been read; may be nil
}

// Verified says what reading all that the store holds has found.
type Verified struct {
	Path string `json:"path"`
	Contents
	Damaged []DamagedEntry `json:"damaged"`
}

// DamagedEntry is a package of the store that is not whole.
type DamagedEntry struct {
	Integrity string `json:"integrity"`
	Name      string `json:"name"` // name@version as its package.json has it, "" without one
	Problem   string `json:"problem"`
	Removed   bool   `json:"removed"`
}

// VerifyStore holds every file in the store against its hash. What is taken out
// is fetched again when it is needed next.
func VerifyStore(ctx context.Context, env Env, opts VerifyOptions) (verified *Verified, err error) {
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	verified = &Verified{Path: packages.Dir(), Damaged: []DamagedEntry{}}
	var failed error
	err = packages.Verify(ctx, func(s store.Stored, problem error) {
		verified.add(s)
		if opts.Progress != nil {
			opts.Progress(verified.Packages)
		}
		if problem == nil || failed != nil {
			return
		}
		entry := DamagedEntry{Integrity: s.Integrity.String(), Name: contentName(s.Dir()), Problem: problem.Error()}
		if opts.Fix {
			failed = packages.Drop(s.Integrity)
			entry.Removed = failed == nil
		}
		verified.Damaged = append(verified.Damaged, entry)
	})
	return verified, errors.Join(err, failed)
}

// StoreSize is how much the store holds.
type StoreSize struct {
	Path string `json:"path"`
	Contents
	Files    int   `json:"files"`
	Metadata int64 `json:"metadata"` // bytes of what is remembered of registries
}

// MeasureStore adds up what the store holds.
func MeasureStore(env Env) (size *StoreSize, err error) {
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	list, err := packages.Entries()
	if err != nil {
		return nil, err
	}
	size = &StoreSize{Path: packages.Dir()}
	for _, s := range list {
		size.add(s)
		if entry, ok := packages.Get(s.Integrity); ok {
			size.Files += len(entry.Files())
		}
	}
	size.Metadata, err = bytesBelow(env.metadataDir())
	return size, err
}

// bytesBelow is the size of all files below a directory, 0 where there is none.
func bytesBelow(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just gone, or was never there
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
