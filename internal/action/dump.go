package action

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"dsh/internal/compose"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// Layers say which layers of a profile to compose.
type Layers struct {
	Name        profile.Name
	Patches     []stack.Overlay // of --patch, lowest first
	Sets        []string        // of --set: ROW.KEY=VALUE
	BundlesOnly bool
	Without     []string // bundles that are set aside this once
	// Safe composes what can be composed of a broken profile, and writes
	// nothing.
	Safe bool
}

// ComposeOptions say what to compose, for a dump or a start.
type ComposeOptions struct {
	Layers
	Create bool // make the profile with the base bundle when it is missing
}

// Composed is a profile's tree and what there is to say about it.
type Composed struct {
	Profile *profile.Profile
	Stack   *stack.Stack
	Tree    *compose.Tree
	// Rules is where paths stand in the configs of the tree.
	Rules compose.PathRules
	// disabled reads the layers of the bundles that are switched off.
	disabled func() []compose.Layer
	// Notes are what a person may want to know though nothing is wrong.
	Notes []string
	// Notices are lines in the reference launcher's words: skipped bundles
	// and skipped patches. Warnings are our own.
	Notices, Warnings []string
}

// Compose reads the layers of a profile and composes them. The profile is
// initialised as a boot would; one that runs, and a home that cannot be written,
// is read.
func Compose(ctx context.Context, env Env, opts ComposeOptions) (*Composed, error) {
	if opts.Safe {
		return composeSafely(ctx, env, opts.Layers)
	}
	mended := rebuilt(ctx, env, opts.Name)
	c, warnings, err := reading(ctx, env, opts.Name, func(v staging.View) (*Composed, error) {
		p, err := openToStart(v, env, opts)
		if err != nil {
			return nil, err
		}
		warnings := p.Warnings
		if !env.Running {
			if err := p.WriteRoot(); err != nil && len(p.Warnings) == 0 { // one cause, one warning
				warnings = append(warnings, err.Error())
			}
		}
		c, err := composeProfile(env, p, opts.Layers, false)
		if err == nil {
			c.Warnings = append(warnings, c.Warnings...)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	c.Warnings = slices.Concat(mended, warnings, c.Warnings)
	return c, nil
}

// Ready makes a profile ready to be started by another program: what a dead
// process left is finished, packages that a power loss took are laid out again,
// and a shipped profile that is missing is made.
func Ready(ctx context.Context, env Env, name profile.Name) (warnings []string, err error) {
	mended := rebuilt(ctx, env, name)
	p, warnings, err := reading(ctx, env, name, func(v staging.View) (*profile.Profile, error) {
		return openToStart(v, env, ComposeOptions{Layers: Layers{Name: name}})
	})
	if err != nil {
		return nil, err
	}
	return slices.Concat(mended, warnings, p.Warnings), nil
}

// HasProject says whether there is a project's layer for the working directory,
// trusted or not.
func HasProject(env Env) (bool, error) {
	_, found, err := trust.FindProject(env.Dir, env.userHome(), env.Home.Dir())
	return found, err
}

// openToStart opens a profile and makes what a start makes.
func openToStart(v staging.View, env Env, opts ComposeOptions) (*profile.Profile, error) {
	switch {
	case v.Redirects(), env.Running: // the first is a home that cannot be written
		return profile.ReadFrom(v.Path, env.Home, opts.Name)
	case opts.Create:
		return profile.OpenOrCreateForReading(env.Home, opts.Name)
	default:
		return profile.OpenForReading(env.Home, opts.Name)
	}
}

// composeProfile composes an opened profile. lenient keeps broken layers of
// the user as entries of the stack.
func composeProfile(env Env, p *profile.Profile, layers Layers, lenient bool) (*Composed, error) {
	return composeWith(env, p, layers, lenient, nil)
}

// composeWith is composeProfile with files of the profile as readFile has them;
// nil is as they are.
func composeWith(env Env, p *profile.Profile, layers Layers, lenient bool, readFile func(path string) ([]byte, error)) (*Composed, error) {
	c := &Composed{Profile: p, Rules: pathRules(env.Installation)}
	userHome, err := profile.UserHome(env.Getenv)
	if err != nil {
		userHome = "" // then ~ is an ordinary name
	}
	err = c.open(stack.Options{
		Home: env.Home, Profile: p, Installation: env.Installation,
		Overlays: layers.Patches, BundlesOnly: layers.BundlesOnly, Without: layers.Without, Lenient: lenient,
		Find: movedPackages(p), ReadFile: readFile,
		Project: &stack.Project{Dir: env.Dir, Trust: trust.Open(env.trustFile())}, UserHome: userHome,
	})
	if err != nil {
		return nil, err
	}
	for _, skipped := range c.Stack.Skipped() {
		c.Notices = append(c.Notices, skipped.String())
	}
	for _, e := range c.Stack.Entries {
		if untrusted, ok := e.Err.(*stack.UntrustedError); ok {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%v; %s", untrusted, untrusted.Hint()))
		}
	}
	if err := c.set(env, layers.Sets, userHome); err != nil {
		return nil, err
	}
	for _, w := range c.Tree.Warnings {
		c.Notices = append(c.Notices, w.String())
	}
	return c, nil
}

// open reads the stack and composes it.
func (c *Composed) open(opts stack.Options) (err error) {
	if c.Stack, err = stack.Open(opts); err != nil {
		return err
	}
	c.Tree = compose.Apply(c.Stack.Layers, c.Rules)
	c.disabled = sync.OnceValue(func() []compose.Layer { return stack.ReadDisabled(opts) })
	return nil
}

// disabledBundle is the bundle of a row that is not there because the bundle is
// switched off, "" if there is none.
func (c *Composed) disabledBundle(id string) string {
	for _, layer := range c.disabled() {
		for _, patch := range layer.Patches {
			insert, _ := patch.Map.Get("insert")
			if rows, ok := insert.(*compose.List); ok && hasRow(rows, id, map[*compose.List]bool{}) {
				return layer.Label
			}
		}
	}
	return ""
}

// hasRow says whether rows, or the rows in them, have the id.
func hasRow(rows *compose.List, id string, seen map[*compose.List]bool) bool {
	if seen[rows] {
		return false
	}
	seen[rows] = true
	for _, item := range rows.Items {
		row, _ := item.(*compose.Map)
		if v, _ := row.Get("id"); compose.Truthy(v) && compose.IDText(v) == id {
			return true
		}
		config, _ := row.Get("config")
		if below, ok := config.(*compose.List); ok && hasRow(below, id, seen) {
			return true
		}
	}
	return false
}

// trustFile is where trusted directories are recorded.
func (e Env) trustFile() string { return e.Home.Path("trust.json") }
