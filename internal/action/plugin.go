package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// PluginOptions are what all package commands have in common.
type PluginOptions struct {
	Name     profile.Name
	Offline  bool
	Registry string // the registry for packages without a scope of their own; "" as .npmrc says
	// Force goes on though the profile would not start afterwards.
	Force  bool
	Events install.Events
}

// Report says what a package command did.
type Report struct {
	Profile  string             `json:"profile"`
	Dir      string             `json:"dir"`
	Created  bool               `json:"created"` // the profile was made by this command
	Changes  []install.Change   `json:"changes"`
	Tree     install.TreeChange `json:"packages"`
	Warnings []string           `json:"-"`
}

// Add installs packages into a profile, which is made when it is missing.
func Add(ctx context.Context, env Env, opts PluginOptions, specs []install.Spec, add install.AddOptions) (*Report, error) {
	report, err := change(ctx, env, opts, true, func(j *install.Job) (*install.Result, error) { return j.Add(ctx, specs, add) })
	if unknown, ok := errors.AsType[*registry.NotFoundError](err); ok {
		for _, spec := range specs {
			if spec.Target != unknown.Name {
				continue
			}
			if _, statErr := os.Stat(filepath.Join(env.Dir, filepath.FromSlash(spec.Text))); statErr == nil {
				err = fault.WithHint(err, "the file or folder that is here is added with: dsh plugin --profile %s add %s",
					fault.ShellWord(opts.Name.String()), fault.ShellWord("./"+spec.Text))
			}
		}
	}
	return report, err
}

// Remove takes packages out of a profile.
func Remove(ctx context.Context, env Env, opts PluginOptions, names []string) (*Report, error) {
	return change(ctx, env, opts, false, func(j *install.Job) (*install.Result, error) { return j.Remove(ctx, names) })
}

// Install makes a profile's node_modules what its manifest and lockfile say.
func Install(ctx context.Context, env Env, opts PluginOptions, how install.InstallOptions) (*Report, error) {
	return change(ctx, env, opts, true, func(j *install.Job) (*install.Result, error) { return j.Install(ctx, how) })
}

// Update resolves packages of a profile anew: the named ones, or all.
func Update(ctx context.Context, env Env, opts PluginOptions, names []string, latest bool) (*Report, error) {
	return change(ctx, env, opts, false, func(j *install.Job) (*install.Result, error) { return j.Update(ctx, names, latest) })
}

// change runs one job in a transaction over the profile. When it fails, the
// profile is as it was before, also when it was not there at all. makes says
// that the profile is made when it is missing.
func change(ctx context.Context, env Env, opts PluginOptions, makes bool, work func(*install.Job) (*install.Result, error)) (report *Report, err error) {
	// What is wrong with the profile is said before anything is touched.
	if _, err := profile.Read(env.Home, opts.Name); err != nil {
		if _, missing := errors.AsType[*profile.MissingError](err); !missing || !makes {
			return nil, err
		}
	}
	var p *profile.Profile
	options := env.options()
	options.Make = func() (err error) {
		p, err = profile.OpenOrCreate(env.Home, opts.Name)
		return err
	}
	options.Unmake = func() error {
		if p == nil {
			return nil
		}
		return profile.Discard(p)
	}
	if err := staging.MkdirAll(env.Home.ProfilesDir()); err != nil {
		return nil, fault.WithClass(fault.Environment, err)
	}
	tx, err := staging.Begin(ctx, env.place(opts.Name), options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	config, err := registryConfig(env, opts, p.Dir)
	if err != nil {
		return nil, err
	}
	client, err := registry.New(config, registry.Options{})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	job := &install.Job{
		Profile:  opts.Name.String(),
		Dir:      p.Dir,
		Tx:       tx,
		Store:    packages,
		Registry: client,
		Offline:  opts.Offline,
		InBox:    func(name string) bool { _, ok, err := env.Installation.Bundle(name); return ok && err == nil },
		CheckLayer: func(name, dir string) error {
			err := stack.CheckBundle(name, dir)
			if err == nil || opts.Force && fault.ClassOf(err) == fault.Composition {
				return nil
			}
			return fmt.Errorf("the layer of %s cannot be used: %w", name, err)
		},
		Events: opts.Events,
	}
	result, err := work(job)
	if err != nil {
		return nil, err
	}
	after := *p
	after.Manifest = result.Manifest
	problems, err := verify(env, p, &after, lockedPackages(p.Dir, result), stagedPackages(p.Dir, result), opts.Force)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		refused.named(result)
	}
	if err != nil {
		return nil, err
	}
	before := onDisk(ctx, env, p)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	problems = append(problems, addedOnDisk(before, onDisk(ctx, env, &after))...)
	return &Report{
		Profile:  opts.Name.String(),
		Dir:      p.Dir,
		Created:  p.Created,
		Changes:  result.Changes,
		Tree:     result.Tree,
		Warnings: slices.Concat(p.Warnings, result.Warnings, problems, tx.Warnings()),
	}, nil
}

func registryConfig(env Env, opts PluginOptions, dir string) (registry.Config, error) {
	user := cmp.Or(env.Getenv("npm_config_userconfig"), env.Getenv("NPM_CONFIG_USERCONFIG"))
	if home, err := os.UserHomeDir(); user == "" && err == nil {
		user = filepath.Join(home, ".npmrc")
	}
	config, err := registry.LoadConfig(env.Getenv, filepath.Join(dir, ".npmrc"), user)
	if err == nil && opts.Registry != "" {
		err = config.SetRegistry(opts.Registry)
	}
	return config, err
}

// Listing is the dependencies of a profile as they are.
type Listing struct {
	Profile      string           `json:"profile"`
	Dir          string           `json:"dir"`
	Dependencies []install.Listed `json:"dependencies"`
	Bundles      []string         `json:"bundles"`
	Warnings     []string         `json:"-"`
}

// List reads what a profile depends on. It changes nothing, and does not make
// a profile that is missing.
func List(ctx context.Context, env Env, name profile.Name) (*Listing, error) {
	warnings := recovered(ctx, env, name)
	p, err := profile.Read(env.Home, name)
	if err != nil {
		return nil, err
	}
	return &Listing{
		Profile: name.String(), Dir: p.Dir,
		Dependencies: install.List(p.Dir, p.Manifest), Bundles: append([]string{}, p.Manifest.Bundles()...), Warnings: warnings,
	}, nil
}
