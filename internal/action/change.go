package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// begin starts a transaction over a profile and opens it as it is then. A
// profile that is missing is made by the transaction if fill is given, which
// writes its files; Profile.Created says so. After an error there is nothing to
// end.
func (env Env) begin(ctx context.Context, name profile.Name, fill func(dir string) error) (*staging.Tx, *profile.Profile, error) {
	options := env.options()
	if fill != nil {
		options.Init = func(dir string) error {
			if _, err := env.newName(name.String()); err != nil {
				return err
			}
			return fill(dir)
		}
	}
	if err := staging.MkdirAll(env.Home.ProfilesDir()); err != nil {
		return nil, nil, fault.WithClass(fault.Environment, env.unwritable(err))
	}
	tx, err := staging.Begin(ctx, env.Home.Place(name), options)
	if errors.Is(err, fs.ErrNotExist) && fill == nil {
		if _, missing := profile.Read(env.Home, name); missing != nil {
			return nil, nil, missing // it went since the caller looked
		}
	}
	if err != nil {
		return nil, nil, env.unwritable(err)
	}
	p, err := env.openIn(tx, name)
	completed := false
	if missing, ok := errors.AsType[*profile.MissingError](err); ok && missing.Left && !missing.Lost && fill != nil {
		p, err = env.complete(tx, name)
		completed = true
	}
	if err != nil {
		return nil, nil, errors.Join(err, tx.Rollback())
	}
	p.Created = tx.Creating() || completed
	return tx, p, nil
}

// openIn opens the profile of a transaction.
func (env Env) openIn(tx *staging.Tx, name profile.Name) (*profile.Profile, error) {
	dir := env.Home.ProfileDir(name)
	if !tx.Creating() {
		return profile.Read(env.Home, name)
	}
	return profile.ReadFrom(func(path string) string {
		if below, ok := strings.CutPrefix(path, dir+string(filepath.Separator)); ok {
			return filepath.Join(tx.Dir(), below)
		}
		return path
	}, env.Home, name)
}

// complete makes a profile of a directory that never was one, as far as anybody
// can tell: what it lacks of a fresh profile comes with the transaction.
func (env Env) complete(tx *staging.Tx, name profile.Name) (*profile.Profile, error) {
	p := &profile.Profile{Name: name, Dir: env.Home.ProfileDir(name)}
	for _, file := range profile.ForName(name).Files(name) {
		path := filepath.Join(tx.Dir(), file.Name)
		if file.Name == mainFile {
			var err error
			if p.Manifest, err = profile.ParseManifest(packageFile(p.Dir), file.Data); err != nil {
				return nil, err
			}
		} else if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := tx.WriteFile(file.Name, file.Data, 0o644); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// fresh fills the directory of a profile that is made because it is missing.
func fresh(name profile.Name) func(dir string) error {
	return func(dir string) error { return profile.Write(dir, name, profile.ForName(name)) }
}

// withJob runs work with all that installing into the profile of a transaction
// needs.
func (env Env) withJob(opts PluginOptions, tx *staging.Tx, p *profile.Profile, work func(*install.Job) error) (err error) {
	if opts.Copy {
		if _, err := linksOff(tx); err != nil {
			return err
		}
	}
	settings, err := settingsFor(opts, tx.Dir(), p.Manifest)
	if err != nil {
		return err
	}
	client, err := env.client(opts, tx.Dir())
	if err != nil {
		return err
	}
	defer client.Close()
	policy, err := env.policy()
	if err != nil {
		return err
	}
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	limit(packages, policy)
	j := env.job(opts, p)
	j.Policy = policy
	j.Files, j.Tx, j.Settings, j.Store, j.Registry = tx.Dir(), tx, &settings, packages, client
	j.Closure = filepath.Join(env.Home.Place(p.Name).State, closureName)
	j.Approved, j.Logs, j.IgnoreScripts = env.approver(tx.Dir, p.Manifest).asked, env.buildLogs(p.Name), opts.IgnoreScripts
	j.MustBuild = opts.mustBuild
	return limited(policy, work(j))
}

// closureName is the file in a profile's state in which jobs remember what its
// tree is made of.
const closureName = "closure"

// job is a job on a profile, but for where it works and what with.
func (env Env) job(opts PluginOptions, p *profile.Profile) *install.Job {
	job := &install.Job{
		Profile:  p.Name.String(),
		Dir:      p.Dir,
		Manifest: p.Manifest,
		Offline:  opts.Offline,
		Before:   opts.Before,
		InBox:    func(name string) bool { _, ok, err := env.Installation.Bundle(name); return ok && err == nil },
		CheckLayer: func(name, dir string) error {
			err := stack.CheckBundle(name, dir)
			if err == nil || opts.Force && fault.ClassOf(err) == fault.Composition {
				return nil
			}
			unusable := fmt.Errorf("the layer of %s cannot be used: %w", name, err)
			if fault.Hint(err) == "" {
				return fault.WithHint(unusable, "whoever wrote %s has to mend that; until then another version may do: %s@VERSION", name,
					fault.ShellWords("dsh", "plugin", "--profile", p.Name.String(), "add", name))
			}
			return unusable
		},
		Events:      opts.Events,
		PluginData:  env.Home.PluginDataDir(p.Name),
		ServerNames: func() map[string]bool { return env.serverNames(p) },
	}
	job.Admit = func(list []install.Newcomer) ([]string, error) { return env.admit(job, list) }
	// The embedded installation does not know what the harness has that will run.
	if _, known := env.Installation.Version(); known {
		job.Provides = func(name string) (string, bool) {
			version, ok := env.provides(name)
			return version.String(), ok
		}
	}
	return job
}

// settingsFor is the settings of the profile whose files are in dir, with what
// the options say instead.
func settingsFor(opts PluginOptions, dir string, m *profile.Manifest) (install.Settings, error) {
	settings, err := install.ReadSettings(dir, m)
	if opts.MinAge != nil {
		settings.MinAge = *opts.MinAge
	}
	if opts.Hosts != "" {
		settings.Hosts = opts.Hosts
	}
	settings.Copy = settings.Copy || opts.Copy
	return settings, err
}
