package action

import (
	"context"
	"errors"
	"slices"

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

// Whole reports whether nothing damaged is left in the store.
func (v *Verified) Whole() bool {
	return !slices.ContainsFunc(v.Damaged, func(d DamagedEntry) bool { return !d.Removed })
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
		if problem == nil {
			return
		}
		entry := DamagedEntry{Integrity: s.Integrity.String(), Name: contentName(s.Dir()), Problem: problem.Error()}
		if opts.Fix {
			dropped := packages.Drop(s.Integrity)
			entry.Removed = dropped == nil
			failed = errors.Join(failed, dropped)
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
	documents, err := store.MetadataIn(env.metadataDir())
	size.Metadata = documents.Bytes
	return size, err
}
