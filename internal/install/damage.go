package install

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/install/store"
)

// Damaged is what stands in the node_modules of the profile directory dir and
// is not as the lockfile lock says that it was laid out, as sorted
// slash-separated paths below dir: packages with a file that is gone or
// different, links, and folders of programs. It is "node_modules" where nothing
// tells what is there.
//
// Contents are held against the store's hashes. A package that the store does
// not know any more has to be the locked one by its package.json. What another
// package manager laid out is not looked at. pluginData is [Job.PluginData].
func Damaged(dir, pluginData string, lock *Lock, packages *store.Store) ([]string, error) {
	return damaged(dir, pluginData, lock, packages, false)
}

// Lost is [Damaged] without packages that somebody edited, see
// [store.Entry.Edited]: what a power loss may have taken.
func Lost(dir, pluginData string, lock *Lock, packages *store.Store) ([]string, error) {
	return damaged(dir, pluginData, lock, packages, true)
}

func damaged(dir, pluginData string, lock *Lock, packages *store.Store, keepEdits bool) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	now, err := readPresent(dir, nil, nil)
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir, files: dir, lock: lock, entries: map[store.Integrity]store.Entry{}, skipped: platformSkips(lock), built: now.built, pluginData: pluginData}
	switch {
	case now.manager:
		return nil, nil
	case (now.absent || now.foreign != "") && len(lock.Nodes) > 0:
		return []string{"node_modules"}, nil
	}
	for at := range lock.Nodes {
		id := t.contentAt(at)
		if entry, ok := packages.Get(id); ok {
			t.entries[id] = entry
		}
	}
	found, err := t.findDamage(context.Background(), false, keepEdits)
	return sortedKeys(found), err
}

// findDamage is the places of a tree where what stands is not as it was laid
// out. checked says that the store's entries have just been checked, keepEdits
// that what somebody edited is good.
func (t *tree) findDamage(ctx context.Context, checked, keepEdits bool) (map[string]bool, error) {
	items := t.items()
	damaged := map[string]bool{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for at, item := range items {
		group.Go(func() error {
			whole, err := t.isWhole(at, item, checked)
			if err == nil && !whole && keepEdits {
				whole, err = t.isEdited(at)
			}
			if err = errors.Join(err, ctx.Err()); err == nil && !whole {
				mu.Lock()
				defer mu.Unlock()
				damaged[at] = true
			}
			return err
		})
	}
	return damaged, group.Wait()
}

func (t *tree) isWhole(at string, i item, checked bool) (bool, error) {
	if !i.stands(t.files, at) {
		return false, nil
	}
	n, isPackage := t.lock.Nodes[at]
	if isPackage && n.AgentPlugin {
		return t.wrapperStands(at, checked)
	}
	if !isPackage || n.Origin.Kind == Link {
		return true, nil
	}
	dir := filepath.Join(t.files, filepath.FromSlash(at))
	if entry, ok := t.entries[t.contentAt(at)]; ok {
		return entry.Stands(dir, checked)
	}
	m, err := readPackageJSON(at, dir)
	return err == nil && m.Name == n.Name && versionOf(m) == n.Version, nil
}

func (t *tree) isEdited(at string) (bool, error) {
	n, isPackage := t.lock.Nodes[at]
	if !isPackage || n.linked() {
		return false, nil
	}
	return t.entries[t.contentAt(at)].Edited(filepath.Join(t.files, filepath.FromSlash(at)))
}
