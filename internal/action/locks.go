package action

import (
	"context"

	"dsh/internal/staging"
)

// acquire takes the lock in a file of the home, and waits for it as long as a
// transaction waits for that of its profile.
func (env Env) acquire(ctx context.Context, file string) (*staging.Lock, error) {
	ctx, cancel := env.waiting(ctx)
	defer cancel()
	options := env.options()
	return staging.Acquire(ctx, file, options.Command, options.Waiting)
}

// waiting is ctx for as long as a command waits for a lock.
func (env Env) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if env.Wait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, env.Wait)
}
