package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// Contents is a number of packages in the store.
type Contents struct {
	Packages int   `json:"packages"`
	Bytes    int64 `json:"bytes"` // of their files
}

func (c *Contents) add(s store.Stored) {
	c.Packages++
	c.Bytes += s.Bytes
}

// StoreStatus says what the store holds.
type StoreStatus struct {
	Path string `json:"path"`
	Contents
	// Unneeded is what no profile and no generation needs; nil where that cannot
	// be told.
	Unneeded *Contents `json:"unneeded"`
	Warnings []string  `json:"-"`
}

// Store looks at the store.
func Store(env Env) (*StoreStatus, error) {
	packages := store.Open(env.Home.StoreDir())
	list, err := packages.Entries()
	if err = errors.Join(err, packages.Close()); err != nil {
		return nil, err
	}
	status := &StoreStatus{Path: packages.Dir()}
	needed, err := env.needed(nil)
	if err != nil {
		status.Warnings = append(status.Warnings, err.Error())
	} else {
		status.Unneeded = &Contents{}
	}
	for _, s := range list {
		status.add(s)
		if needed != nil && !needed.contents[s.Integrity] {
			status.Unneeded.add(s)
		}
	}
	return status, nil
}

// PruneOptions are the choices of `dsh store prune`.
type PruneOptions struct {
	DryRun bool
	// Forget are removed profiles of which all is given up that is kept of them:
	// generations that are not pinned, and directories. One that is back stays.
	Forget []string
	Now    time.Time
}

// Pruned says what pruning took out of the store, or would.
type Pruned struct {
	Path      string        `json:"path"`
	DryRun    bool          `json:"dryRun"`
	Removed   []PrunedEntry `json:"removed"`
	Bytes     int64         `json:"bytes"` // of all files in them
	Left      Contents      `json:"left"`
	Young     int           `json:"young"`     // packages that nobody needs and that are too new to go
	Forgotten []string      `json:"forgotten"` // removed profiles of which nothing is kept any more
	// Metadata is how many documents of registries have gone, which nobody asked
	// for in a long time.
	Metadata int      `json:"metadata"`
	Warnings []string `json:"-"`
}

// PrunedEntry is one package.
type PrunedEntry struct {
	Integrity string `json:"integrity"`
	Name      string `json:"name"` // name@version as its package.json has it, "" without one
	Bytes     int64  `json:"bytes"`
}

// youngest is how long a package stays that nobody needs: what another command
// has just brought in may be needed in a moment.
const youngest = time.Hour

// PruneStore takes packages out of the store that neither a profile nor a
// generation needs. All profiles are locked while it looks and removes. The
// report may come beside an error: then it says what was given up before.
func PruneStore(ctx context.Context, env Env, opts PruneOptions) (pruned *Pruned, err error) {
	pruned = &Pruned{Path: env.Home.StoreDir(), DryRun: opts.DryRun, Removed: []PrunedEntry{}, Forgotten: []string{}}
	unlock, err := env.lockAll(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	documents, err := store.PruneMetadata(env.metadataDir(), opts.Now.Add(-store.MetadataAge), opts.DryRun)
	if err != nil {
		return nil, err
	}
	pruned.Metadata = documents.Files
	packages := store.Open(env.Home.StoreDir())
	choose := func(list []store.Stored) ([]store.Stored, error) {
		needed, err := env.needed(opts.Forget)
		if err != nil {
			return nil, err
		}
		if err := env.forget(pruned, opts.Forget); err != nil {
			return nil, err
		}
		chosen := pruned.choose(list, needed, opts.Now)
		if opts.DryRun {
			return nil, nil
		}
		return chosen, nil
	}
	if opts.DryRun {
		// It looks at a store that others may use.
		list, err := packages.Entries()
		if err == nil {
			_, err = choose(list)
		}
		return pruned, errors.Join(err, packages.Close())
	}
	options := env.options()
	ctx, cancel := env.waiting(ctx)
	defer cancel()
	return pruned, packages.Prune(ctx, options.Command, options.Waiting, choose)
}

// choose takes out of a list what nobody needs and is old enough.
func (p *Pruned) choose(list []store.Stored, needed *needs, now time.Time) []store.Stored {
	var chosen []store.Stored
	for _, s := range list {
		switch {
		case needed.contents[s.Integrity]:
			p.Left.add(s)
		case now.Sub(s.Added) < youngest:
			p.Left.add(s)
			p.Young++
		default:
			chosen = append(chosen, s)
			p.Bytes += s.Bytes
			p.Removed = append(p.Removed, PrunedEntry{s.Integrity.String(), contentName(s.Dir()), s.Bytes})
		}
	}
	slices.SortFunc(p.Removed, func(a, b PrunedEntry) int {
		return strings.Compare(a.Name+"\n"+a.Integrity, b.Name+"\n"+b.Integrity)
	})
	return chosen
}

// contentName is name@version of the package in a directory.
func contentName(dir string) string {
	var m struct{ Name, Version string }
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil || json.Unmarshal(text, &m) != nil || m.Name == "" {
		return ""
	}
	return m.Name + "@" + m.Version
}

// lockAll finishes what dead processes left and locks all profiles that dsh
// knows, so that none changes what it needs.
func (env Env) lockAll(ctx context.Context) (unlock func() error, err error) {
	var locks []*staging.Lock
	unlock = func() error {
		var errs []error
		for _, lock := range locks {
			errs = append(errs, lock.Release())
		}
		return errors.Join(errs...)
	}
	fail := func(err error) (func() error, error) { return nil, errors.Join(err, unlock()) }
	names, err := env.Home.States()
	if err != nil {
		return fail(err)
	}
	locked := map[string]bool{} // a link to another profile has the lock of that one
	for _, name := range names {
		place := env.Home.Place(name)
		if locked[place.State] {
			continue
		}
		locked[place.State] = true
		if _, err := os.Lstat(place.Dir); err == nil {
			if err := staging.Recover(ctx, place); err != nil {
				return fail(fmt.Errorf("finishing an earlier change of profile %s: %w", name, err))
			}
		}
		lock, err := env.acquire(ctx, filepath.Join(place.State, "lock"))
		if err != nil {
			return fail(err)
		}
		locks = append(locks, lock)
		if _, err := os.Lstat(filepath.Join(place.State, "journal")); err == nil {
			return fail(fault.WithHint(fault.Errorf(fault.Environment, "a change of profile %s has just been left unfinished", name), "run the command again: it finishes that"))
		}
	}
	return unlock, nil
}

// Forgettable are the removed profiles of which something is kept that pruning
// can give up, sorted.
func Forgettable(env Env) ([]string, error) {
	states, err := env.states()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range states {
		if given, err := s.givenUp(); err != nil {
			return nil, err
		} else if len(given) > 0 {
			names = append(names, s.name)
		}
	}
	return names, nil
}

// forget gives up what is kept of some of the removed profiles, whose locks are
// held.
func (env Env) forget(pruned *Pruned, names []string) error {
	states, err := env.states()
	if err != nil {
		return err
	}
	for _, s := range states {
		if !slices.Contains(names, s.name) {
			continue
		}
		given, err := s.givenUp()
		if err != nil {
			return err
		}
		if len(given) == 0 {
			continue
		}
		pruned.Forgotten = append(pruned.Forgotten, s.name)
		for _, path := range given {
			if pruned.DryRun {
				continue
			}
			if err := staging.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// givenUp is what is kept of a removed profile and is not pinned; nothing where
// the profile is there.
func (s remembered) givenUp() ([]string, error) {
	if _, err := profile.ParseName(s.name); err != nil || !s.removed {
		return nil, nil
	}
	given := keptDirs(s.dir)
	history := filepath.Join(s.dir, "generations")
	entries, err := os.ReadDir(history)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".tar.gz")
		if !ok {
			continue
		}
		if _, err := os.Lstat(filepath.Join(history, id+".pin")); errors.Is(err, fs.ErrNotExist) {
			given = append(given, filepath.Join(history, e.Name()))
		}
	}
	return given, nil
}
