package action

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"dsh/internal/compose"
	"dsh/internal/staging"
)

// Whoever changes something that another process has locked gives up when the
// user's time has passed.
func TestNobodyWaitsForALockForEver(t *testing.T) {
	profileLock := func(env Env, opts EditOptions) string {
		return filepath.Join(env.Home.StateDir(opts.Name), "lock")
	}
	homeLock := func(env Env, _ EditOptions) string { return env.Home.Path("state", editLock) }
	for what, command := range map[string]struct {
		lock func(Env, EditOptions) string
		run  func(context.Context, Env, EditOptions) error
	}{
		"an edit of a profile": {profileLock, func(ctx context.Context, env Env, opts EditOptions) error {
			_, err := Switch(ctx, env, SwitchOptions{EditOptions: opts, On: true}, "hmr")
			return err
		}},
		"an edit of the home": {homeLock, func(ctx context.Context, env Env, opts EditOptions) error {
			opts.Layer = compose.HomeLayer
			_, err := Switch(ctx, env, SwitchOptions{EditOptions: opts, On: true}, "hmr")
			return err
		}},
		"a rollback of the home": {homeLock, func(ctx context.Context, env Env, _ EditOptions) error {
			_, err := RollbackHome(ctx, env, RollbackOptions{Back: 1})
			return err
		}},
		"pruning beside a change": {profileLock, func(ctx context.Context, env Env, _ EditOptions) error {
			_, err := PruneStore(ctx, env, PruneOptions{})
			return err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			env, opts, _ := editWorld(t, patch)
			put(t, env.Home.PatchPath(), patch)
			for range 2 { // so that the home has a state to go back to
				if _, err := Switch(t.Context(), env, SwitchOptions{EditOptions: EditOptions{Name: opts.Name, Layer: compose.HomeLayer}, On: true}, "hmr"); err != nil {
					t.Fatal(err)
				}
			}
			lock, err := staging.TryAcquire(command.lock(env, opts), "")
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Release()
			env.Wait = 20 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err = command.run(ctx, env, opts)
			if _, held := errors.AsType[*staging.HeldError](err); !held || ctx.Err() != nil {
				t.Errorf("%v", err)
			}
		})
	}
}
