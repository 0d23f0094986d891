package action

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// CacheMode says when registries are asked for what is known of a package
// already; the zero value is for what is older than some minutes.
type CacheMode = registry.CacheMode

// The other modes.
const (
	Fresh         = registry.Fresh         // for everything
	PreferOffline = registry.PreferOffline // for what is not known at all
	Offline       = registry.Offline       // for nothing
)

// TreeListing is the dependencies of a profile with all that they depend on.
type TreeListing struct {
	Profile      string            `json:"profile"`
	Dir          string            `json:"dir"`
	Dependencies []*install.Branch `json:"dependencies"`
	Extraneous   []string          `json:"extraneous"` // in node_modules, and not in the lockfile
	Bundles      []string          `json:"bundles"`
	Warnings     []string          `json:"-"`
}

// ListTree reads what a profile depends on down to a depth below its own
// dependencies; a negative one has no end. It changes nothing.
func ListTree(ctx context.Context, env Env, name profile.Name, depth int) (*TreeListing, error) {
	listing, warnings, err := reading(ctx, env, name, func(v staging.View) (*TreeListing, error) {
		p, lock, err := env.lockedProfile(v, name)
		if err != nil {
			return nil, err
		}
		l := &TreeListing{Profile: name.String(), Dir: p.Dir, Bundles: append([]string{}, p.Manifest.Bundles()...)}
		l.Dependencies, l.Extraneous = install.Tree(p.Dir, p.Manifest, lock, depth)
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	listing.Warnings = warnings
	return listing, nil
}

// lockedProfile is a profile and its lockfile, or what node_modules holds where
// there is none; nil where dsh has laid nothing out.
func (env Env) lockedProfile(v staging.View, name profile.Name) (*profile.Profile, *install.Lock, error) {
	p, err := profile.ReadFrom(v.Path, env.Home, name)
	if err != nil {
		return nil, nil, err
	}
	lock, err := lockIn(filepath.Dir(v.Path(filepath.Join(p.Dir, install.LockName))))
	if lock == nil && err == nil {
		lock, err = install.InModules(p.Dir)
	}
	return p, lock, err
}

// Reasons says why a package is in a profile.
type Reasons struct {
	Profile  string         `json:"profile"`
	Dir      string         `json:"dir"`
	Package  string         `json:"package"`
	Wanted   string         `json:"wanted"` // the versions that were asked for, "" is any
	Copies   []install.Copy `json:"copies"`
	Warnings []string       `json:"-"`
}

// Why finds out who asks for a package, in the versions of a range, "" for any.
// It is an error of class Package where it is not in the profile.
func Why(ctx context.Context, env Env, name profile.Name, pkg, wanted string) (*Reasons, error) {
	reasons, warnings, err := reading(ctx, env, name, func(v staging.View) (*Reasons, error) {
		p, lock, err := env.lockedProfile(v, name)
		if err != nil {
			return nil, err
		}
		if lock == nil {
			return nil, fault.WithHint(fault.Errorf(fault.Package, "profile %s has no %s, so nothing is known of its packages", name, install.LockName),
				"dsh plugin --profile %s install", fault.ShellWord(name.String()))
		}
		return &Reasons{Profile: name.String(), Dir: p.Dir, Package: pkg, Wanted: wanted, Copies: lock.Why(p.Manifest, pkg, wanted)}, nil
	})
	if err != nil {
		return nil, err
	}
	if len(reasons.Copies) == 0 {
		if wanted != "" {
			pkg += "@" + wanted
		}
		return nil, fault.WithHint(fault.Errorf(fault.Package, "profile %s has no %s, and nothing in it asks for one", name, pkg),
			"dsh plugin --profile %s list --tree shows what it has", fault.ShellWord(name.String()))
	}
	reasons.Warnings = warnings
	return reasons, nil
}

// OutdatedReport is the dependencies of a profile, held against what their
// registries have.
type OutdatedReport struct {
	Profile      string          `json:"profile"`
	Dir          string          `json:"dir"`
	Dependencies []install.Dated `json:"dependencies"`
	Warnings     []string        `json:"-"`
	// Unasked is why registries said nothing of some dependencies, the first of
	// the reasons.
	Unasked error `json:"-"`
}

// Outdated looks for newer versions of the dependencies of a profile, the named
// ones or all. It changes nothing but what is remembered of registries.
func Outdated(ctx context.Context, env Env, opts PluginOptions, names []string) (*OutdatedReport, error) {
	type locked struct {
		*profile.Profile
		lock *install.Lock
	}
	now, warnings, err := reading(ctx, env, opts.Name, func(v staging.View) (locked, error) {
		p, lock, err := env.lockedProfile(v, opts.Name)
		return locked{p, lock}, err
	})
	if err != nil {
		return nil, err
	}
	client, err := env.client(opts, now.Dir)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	settings, err := settingsFor(opts, now.Dir, now.Manifest)
	if err != nil {
		return nil, err
	}
	job := env.job(opts, now.Profile)
	if job.Policy, err = env.policy(); err != nil {
		return nil, err
	}
	job.Settings, job.Registry = &settings, client
	report := &OutdatedReport{Profile: opts.Name.String(), Dir: now.Dir, Warnings: warnings}
	report.Dependencies, err = job.Outdated(ctx, now.Manifest, now.lock, names, install.OutdatedOptions{
		Provides: env.provides,
	})
	if report.Dependencies == nil {
		return nil, err
	}
	report.Unasked = err
	return report, nil
}

// newerWait is how long an answer may take about versions that nobody asked for.
const newerWait = 3 * time.Second

// Newer holds what was to be added by its name alone, and is as it was, against
// what its registry has. What cannot be found out soon is left out.
func Newer(ctx context.Context, env Env, opts PluginOptions, report *Report, specs []install.Spec) []install.Dated {
	var names []string
	for _, c := range report.Changes {
		if c.Action == install.Kept && slices.ContainsFunc(specs, func(s install.Spec) bool { return s.Kind == install.Registry && s.Wanted == "" && s.Name == c.Name }) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 || opts.Offline {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, newerWait)
	defer cancel()
	found, err := Outdated(ctx, env, opts, names)
	if err != nil && ctx.Err() == nil {
		report.Warnings = append(report.Warnings, fmt.Sprintf("newer versions of %s could not be looked up: %s", strings.Join(names, ", "), firstLine(err)))
	}
	if err != nil {
		return nil
	}
	return found.Dependencies
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// provides is the version of a host package in the installation. The embedded
// one does not say it.
func (env Env) provides(name string) (npmrange.Version, bool) {
	harness, ok := env.Installation.Version()
	if !ok {
		return harness, false
	}
	pkg, found, err := env.Installation.Bundle(name)
	if err != nil || !found {
		return harness, false
	}
	v, err := npmrange.ParseVersionLoose(pkg.Version)
	return v, err == nil
}

// client asks registries as the profile in a directory and a command's options
// say.
func (env Env) client(opts PluginOptions, dir string) (*registry.Client, error) {
	config, err := registryConfig(env, opts, dir)
	if err != nil {
		return nil, err
	}
	mode := opts.Mode
	if opts.Offline {
		mode = Offline
	}
	return registry.New(config, registry.Options{
		CacheDir: env.metadataDir(), Mode: mode, ReadOnly: opts.DryRun,
	})
}

// metadataDir is where what registries said of packages is remembered.
func (env Env) metadataDir() string { return env.Home.Path("store", "metadata") }
