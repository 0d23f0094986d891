package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
)

// plan runs one job over a profile without changing anything: neither the
// profile nor the store, nor what is remembered of registries. What has to be
// unpacked to know it lies among the system's temporary files meanwhile. makes
// says that a profile which is missing is planned as it would be made.
func (env Env) plan(ctx context.Context, opts PluginOptions, makes bool, work func(*install.Job) (*install.Result, error)) (report *Report, err error) {
	temp, err := scratchIn(os.TempDir())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.close()) }()
	p, files, err := env.planned(ctx, opts.Name, makes, temp)
	if err != nil {
		return nil, err
	}
	settings, err := settingsFor(opts, files, p.Manifest)
	if err != nil {
		return nil, err
	}
	client, err := env.client(opts, files)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	policy, err := env.policy()
	if err != nil {
		return nil, err
	}
	packages := store.OpenOver(filepath.Join(temp.dir, "over"), env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	limit(packages, policy)
	j := env.job(opts, p)
	j.Policy = policy
	j.DryRun, j.Settings, j.Store, j.Registry = true, &settings, packages, client
	created := files != p.Dir
	if created {
		j.Dir, j.Files = files, files // what it is to be below need not be there
	}
	check := j.CheckLayer
	j.CheckLayer = func(name, dir string) error {
		if dir == "" {
			return nil // its files are not here
		}
		return check(name, dir)
	}
	result, err := work(j)
	if err == nil {
		err = opts.Expect.check(result)
	}
	if err != nil {
		return nil, limited(policy, err)
	}
	plan := result.Plan
	plan.Creates = created
	if opts.Copy {
		text, err := readOr(filepath.Join(files, install.WorkspaceName))
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
		Profile: p.Name.String(), Dir: p.Dir, Changes: result.Changes, Tree: result.Tree, Plan: plan,
		Warnings: slices.Concat(p.Warnings, result.Warnings),
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
