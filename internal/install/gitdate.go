package install

import (
	"context"

	"dsh/internal/install/git"
)

// dateCommit finds the commit that a dependency on a git repository means now,
// and holds the locked one against it.
func (j *Job) dateCommit(ctx context.Context, find *sources, d *Dated, spec Spec, locked Located) error {
	d.Source = "git"
	if j.Events.Resolving != nil {
		j.Events.Resolving(spec.Shown())
	}
	if locked.Package != nil && locked.Origin.Kind == Git {
		d.Commit = locked.Origin.Commit()
		d.Current = git.Short(d.Commit)
	}
	source, commit, err := find.reading(ctx, *spec.Git)
	if err != nil {
		return d.unasked(ctx, err)
	}
	d.CommitWanted = commit.ID
	d.Wanted, d.Latest = git.Short(commit.ID), git.Short(commit.ID)
	d.Outdated = d.Commit != "" && d.Commit != commit.ID
	switch {
	case d.Outdated:
		d.note(NoteLocked, "%s has commit %s, and %s moves it to %s", LockName, d.Current, j.command("update", d.Name), d.Wanted)
	case git.IsCommit(source.Ref):
		d.note(NoteExact, "package.json asks for exactly commit %s", d.Wanted)
	}
	return nil
}
