package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/trust"
)

// trial is a profile that jobs are run over without changing it.
type trial struct {
	*profile.Profile
	files    string // where its files are: in its directory, or in a temporary one where it would be made
	policy   *trust.Policy
	env      Env
	opts     PluginOptions
	settings install.Settings
	packages *store.Store
	client   *registry.Client
}

// try calls work with a trial of a profile. What is fetched for it stays in the home's
// store where it is kept, else it lies among the system's temporary files meanwhile.
// makes says that a profile which is missing is taken as it would be made.
func (env Env) try(ctx context.Context, opts PluginOptions, makes, kept bool, work func(*trial) error) (err error) {
	parent := os.TempDir()
	if kept {
		parent = env.Home.StoreDir()
	}
	temp, err := scratchIn(parent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.close()) }()
	p, files, err := env.planned(ctx, opts.Name, makes, temp)
	if err != nil {
		return err
	}
	settings, err := settingsFor(opts, files, p.Manifest)
	if err != nil {
		return err
	}
	client, err := env.client(opts, files)
	if err != nil {
		return err
	}
	defer client.Close()
	policy, err := env.policy()
	if err != nil {
		return err
	}
	var packages *store.Store
	if kept {
		packages = store.Open(env.Home.StoreDir())
	} else {
		packages = store.OpenOver(filepath.Join(temp.dir, "over"), env.Home.StoreDir())
	}
	defer func() { err = errors.Join(err, packages.Close()) }()
	limit(packages, policy)
	return limited(policy, work(&trial{p, files, policy, env, opts, settings, packages, client}))
}

// makes reports whether the profile is not there, and would be made.
func (t *trial) makes() bool { return t.files != t.Dir }

// job is a job of the trial.
func (t *trial) job() *install.Job {
	j := t.env.job(t.opts, t.Profile)
	j.DryRun, j.Policy = true, t.policy
	j.Settings, j.Store, j.Registry = &t.settings, t.packages, t.client
	if t.makes() {
		j.Dir, j.Files = t.files, t.files // what it is to be below need not be there
	}
	check := j.CheckLayer
	j.CheckLayer = func(name, dir string) error {
		if dir == "" {
			return nil // its files are not here
		}
		return check(name, dir)
	}
	return j
}

// plan runs one job over a profile without changing anything: neither the
// profile nor the store, nor what is remembered of registries.
func (env Env) plan(ctx context.Context, opts PluginOptions, makes bool, work func(*install.Job) (*install.Result, error)) (report *Report, err error) {
	err = env.try(ctx, opts, makes, false, func(t *trial) error {
		result, err := work(t.job())
		if err == nil {
			err = opts.Expect.check(result)
		}
		if err != nil {
			return err
		}
		report, err = t.report(result)
		return err
	})
	return report, err
}

// report is what a job that was tried would do.
func (t *trial) report(result *install.Result) (*Report, error) {
	plan := result.Plan
	plan.Creates = t.makes()
	if t.opts.Copy {
		text, err := readOr(filepath.Join(t.files, install.WorkspaceName))
		if err != nil {
			return nil, err
		}
		edited, err := withoutLinks(text)
		if err != nil {
			return nil, err
		}
		if string(edited) != string(text) {
			plan.Files = append(plan.Files, install.WorkspaceName)
		}
	}
	return &Report{
		Profile: t.Name.String(), Dir: t.Dir, Changes: result.Changes, Tree: result.Tree, Plan: plan,
		Warnings: slices.Concat(t.Warnings, result.Warnings),
	}, nil
}

// planned is a profile and where its files are: in its directory, or in a
// temporary one where it would be made.
func (env Env) planned(ctx context.Context, name profile.Name, makes bool, temp scratch) (*profile.Profile, string, error) {
	p, err := env.opened(ctx, name)
	missing, ok := errors.AsType[*profile.MissingError](err)
	if err == nil || !ok || !makes || missing.Lost {
		if err != nil {
			return nil, "", err
		}
		return p, p.Dir, nil
	}
	if !missing.Left {
		if _, err := env.newName(name.String()); err != nil {
			return nil, "", err
		}
	}
	files := filepath.Join(temp.dir, "profile")
	if err := profile.Write(files, name, profile.ForName(name)); err != nil {
		return nil, "", err
	}
	dir := env.Home.ProfileDir(name)
	p, err = profile.ReadFrom(func(path string) string {
		if below, ok := strings.CutPrefix(path, dir); ok {
			return files + below
		}
		return path
	}, env.Home, name)
	return p, files, err
}
