package install

import (
	"cmp"
	"context"
	"fmt"

	"dsh/internal/fault"
	"dsh/internal/install/store"
)

// resolution is the answer to what a manifest asks for.
type resolution struct {
	root *node // the tree; nil where the present lockfile is the answer
	lock *Lock
}

// checkPlatform finds a required package that does not run on this machine.
func (r *resolution) checkPlatform() error {
	if r.root == nil {
		return r.lock.checkPlatform(ThisPlatform())
	}
	return checkPlatform(r.root, ThisPlatform())
}

// resolve builds the tree that the wishes ask for. Archives are fetched while it
// is at it.
func (j *Job) resolve(ctx context.Context, find *sources, wishes []Wish, c change) (*resolution, error) {
	var anew []Spec
	for _, w := range wishes {
		if !ValidName(w.Name) {
			return nil, fault.Errorf(fault.Package, "%s: %q in its dependencies is no package name", j.manifest.Path(), w.Name)
		}
		spec, err := ParseDependency(w.Name, w.Wanted, j.Dir)
		if err == nil && (j.locked == nil || j.locked.Wanted[w.Name] != anyVersion(w.Wanted) || c.fresh != nil && c.fresh(w.Name)) {
			anew = append(anew, spec)
		}
		if err != nil && j.author == nil { // the resolver refuses what is not the user's by its author's name
			return nil, fault.WithHint(fmt.Errorf("%s: dependency %s: %w", j.manifest.Path(), w.Name, err), "%s takes it out", j.command("remove", w.Name))
		}
	}
	if err := find.admits(anew); err != nil {
		return nil, err
	}
	r := &resolver{
		find: find, dir: j.Dir, locked: cmp.Or(j.locked, c.foreign), pinned: j.pinned, taken: c.taken, settings: j.settings, author: j.author, provides: j.Provides, dedupe: c.dedupe,
		fresh:  func(name string) bool { return c.fresh != nil && c.fresh(name) },
		placed: find.placed,
	}
	root, err := r.resolve(ctx, wishes)
	if err != nil {
		return nil, err
	}
	lock := lockOf(root, wishes)
	lock.Sources = j.writtenFor(lock)
	return &resolution{root: root, lock: lock}, nil
}

// resolution resolves what the edited manifest asks for, or is the present
// lockfile, without a look at anything, where the same was asked before and that
// was the answer.
func (j *Job) resolution(ctx context.Context, find *sources, wishes []Wish, c change) (*resolution, error) {
	if c.asks() || !j.closure.answers(j, wishes) {
		return j.resolve(ctx, find, wishes, c)
	}
	return &resolution{lock: j.locked}, nil
}

// layOut brings what a lock, whose text is given, asks for into the store, and
// puts into the transaction what makes node_modules of it.
func (j *Job) layOut(ctx context.Context, find *sources, lock *Lock, text []byte) (*Result, error) {
	t := &tree{dir: j.Dir, files: j.Files, lock: lock, text: text, entries: map[store.Integrity]store.Entry{}, skipped: platformSkips(lock), copied: j.settings.Copy, pluginData: j.PluginData}
	t.foreign = len(t.skipped)
	result := &Result{Manifest: j.manifest, tree: t, before: j.present, locked: j.locked}
	if j.Events.Linking != nil {
		j.Events.Linking(len(lock.Nodes))
	}
	err := j.holdSources(ctx, find, lock)
	if err != nil {
		return nil, err
	}
	if result.Tree, err = j.stage(ctx, find.contents, t); err != nil {
		return nil, err
	}
	wrappers, err := j.stageWrappers(ctx, find.contents, t)
	if err != nil && !j.distrust && ctx.Err() == nil {
		j.distrust = true // the store may have lost what it is said to have
		wrappers, err = j.stageWrappers(ctx, find.contents, t)
	}
	if err != nil {
		return nil, err
	}
	result.Tree.Changed += wrappers
	if err := j.holdContents(t); err != nil {
		return nil, err
	}
	if result.Pending, err = j.pending(t); err == nil {
		err = j.needPrepare(result.Pending)
	}
	result.Built, result.Warnings = j.built, j.leftOut
	return result, err
}
