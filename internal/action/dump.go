package action

import (
	"context"

	"dsh/internal/compose"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// ComposeOptions say which layers of a profile to compose.
type ComposeOptions struct {
	Name        profile.Name
	Patches     []string // absolute paths of --patch files
	BundlesOnly bool
	Create      bool // make the profile with the base bundle when it is missing
}

// Composed is a profile's tree and what there is to say about it.
type Composed struct {
	Profile *profile.Profile
	Stack   *stack.Stack
	Tree    *compose.Tree
	// Notices are lines in the reference launcher's words: skipped bundles
	// and skipped patches. Warnings are our own.
	Notices, Warnings []string
}

// Compose reads the layers of a profile and composes them. The profile is
// initialised as a boot would; a home that cannot be written is read.
func Compose(ctx context.Context, env Env, opts ComposeOptions) (*Composed, error) {
	warnings := recovered(ctx, env, opts.Name)
	open := profile.OpenForReading
	if opts.Create {
		open = profile.OpenOrCreateForReading
	}
	p, err := open(env.Home, opts.Name)
	if err != nil {
		return nil, err
	}
	c := &Composed{Profile: p, Warnings: append(warnings, p.Warnings...)}
	if err := p.WriteRoot(); err != nil && len(p.Warnings) == 0 { // one cause, one warning
		c.Warnings = append(c.Warnings, err.Error())
	}
	c.Stack, err = stack.Open(stack.Options{
		Home: env.Home, Profile: p, Installation: env.Installation,
		Patches: opts.Patches, BundlesOnly: opts.BundlesOnly,
	})
	if err != nil {
		return nil, err
	}
	for _, skipped := range c.Stack.Skipped {
		c.Notices = append(c.Notices, skipped.String())
	}
	c.Tree = compose.Apply(c.Stack.Layers, nil)
	for _, w := range c.Tree.Warnings {
		c.Notices = append(c.Notices, w.String())
	}
	return c, nil
}
