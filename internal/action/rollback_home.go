package action

import (
	"context"
	"errors"
	"fmt"
	"os"

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
	lock, err := env.acquire(ctx, env.Home.Path("state", editLock))
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
	err = env.inHomeHistory(ctx, func() error { return env.writeHome(done.Changes, p.now, target) })
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

// writeHome makes the home's files that differ what they are in a state, unless
// somebody edited them since they were as in now. The patch, which may use what
// .env says, comes last.
func (env Env) writeHome(change *StateChange, now, target *staging.Generation) error {
	files, err := homeFiles(env.Home)
	if err != nil {
		return err
	}
	for _, f := range compareStates(now, &staging.Generation{Files: files}).Files {
		return &staging.ChangedError{Path: env.Home.Path(f.Path)}
	}
	wanted := filesOf(target)
	for _, f := range change.Files {
		if f.Change == FileRemoved {
			err = staging.RemoveAll(env.Home.Path(f.Path))
		} else {
			err = writeExactly(env.Home.Path(f.Path), wanted[f.Path].SavedFile)
		}
		if err != nil {
			return fmt.Errorf("restoring the home layer: %w", err)
		}
	}
	return nil
}

// writeExactly gives a file content and permissions. At no moment somebody can
// read it who may not read both what it held and what it will hold.
func writeExactly(path string, f staging.SavedFile) error {
	mode := f.Mode.Perm()
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&^mode != 0 {
		if err := staging.OS.Chmod(path, info.Mode().Perm()&mode); err != nil {
			return err
		}
	}
	if _, err := staging.WriteFileIfChanged(path, f.Data, mode); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm() != mode {
		err = staging.OS.Chmod(path, mode)
	}
	return err
}
