package action

import (
	"context"

	"dsh/internal/install"
)

// Dedupe makes a profile have as few versions of its packages as their ranges
// allow, of those that it has.
func Dedupe(ctx context.Context, env Env, opts PluginOptions) (*Report, error) {
	return moving(ctx, env, opts, func(j *install.Job) (*install.Result, error) { return j.Dedupe(ctx) })
}
