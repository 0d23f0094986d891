package action

import (
	"context"
	"errors"
	"fmt"

	"dsh/internal/staging"
)

// RollbackHome makes the home's own layer, its patch and its .env, what they
// were before the last changes or in a generation. Profiles are not touched.
func RollbackHome(ctx context.Context, env Env, opts RollbackOptions) (done *RolledBack, err error) {
	s := homeSubject(env)
	p, err := s.look()
	if err != nil {
		return nil, err
	}
	target, err := p.choose(opts)
	if err != nil {
		return nil, err
	}
	if opts.DryRun {
		done := p.report(target)
		done.DryRun = true
		return done, nil
	}
	options := env.options()
	lock, err := staging.Acquire(ctx, env.Home.Path("state", editLock), options.Command, options.Waiting)
	if err != nil {
		return nil, env.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if p, err = s.look(); err != nil { // as it is with the lock held
		return nil, err
	}
	if target, err = p.choose(opts); err != nil {
		return nil, err
	}
	done = p.report(target)
	if done.Changes.Empty() {
		return done, nil
	}
	err = env.inHomeHistory(opts.Now, func() error { return env.writeHome(done.Changes, target) })
	if err != nil {
		return nil, env.unwritable(err)
	}
	done.Changed = true
	if p, err = s.look(); err != nil {
		return nil, err
	}
	done.Saved = p.generations[0].ID
	done.Warnings = append(done.Warnings, s.proof(target)...)
	return done, nil
}

// writeHome puts the changed files of the home's layer in place, each of them
// whole or not at all.
func (env Env) writeHome(change *StateChange, target *staging.Generation) error {
	for _, f := range target.Files {
		if err := staging.WriteFile(env.Home.Path(f.Path), f.Data, f.Mode.Perm()); err != nil {
			return fmt.Errorf("restoring the home layer: %w", err)
		}
	}
	for _, f := range change.Files {
		if f.Change != FileRemoved {
			continue
		}
		if err := staging.RemoveAll(env.Home.Path(f.Path)); err != nil {
			return fmt.Errorf("restoring the home layer: %w", err)
		}
	}
	return nil
}
