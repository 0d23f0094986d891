package action

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// PluginOptions are what all package commands have in common.
type PluginOptions struct {
	Name     profile.Name
	Offline  bool
	Registry string // the registry for packages without a scope of their own; "" as .npmrc says
	// Mode says when registries are asked for what is known of a package already.
	Mode registry.CacheMode
	// Before leaves out versions that were published later; the zero time none.
	Before time.Time
	// MinAge is how old a version has to be, in place of what the profile's
	// pnpm-workspace.yaml says; nil leaves it to that.
	MinAge *time.Duration
	// Hosts is what becomes of host packages that a plugin depends on, in place
	// of what the profile's package.json says; "" leaves it to that.
	Hosts install.HostPolicy
	// Copy makes node_modules hold copies and no links to the store, now and
	// from then on.
	Copy bool
	// IgnoreScripts runs no scripts, not even approved ones.
	IgnoreScripts bool
	// mustBuild is the packages whose scripts have to run; nil is none.
	mustBuild func(install.Scripted) bool
	// DryRun makes a plan, and changes nothing at all.
	DryRun bool
	// Expect is what the packages of [Add] have to be.
	Expect Expect
	// Purge makes [Remove] delete the data of Agent Plugins, too.
	Purge bool
	// Force goes on though the profile would not start afterwards.
	Force  bool
	Events install.Events
	// readFile reads .npmrc files; nil is from the disk.
	readFile func(path string) ([]byte, error)
}

// Report says what a package command did.
type Report struct {
	Profile string             `json:"profile"`
	Dir     string             `json:"dir"`
	Created bool               `json:"created"` // the profile was made by this command
	Changes []install.Change   `json:"changes"`
	Tree    install.TreeChange `json:"packages"`
	// Absent are packages that were to be removed and that the profile does not
	// depend on.
	Absent []string `json:"absent,omitempty"`
	// There are packages that were to be added by their name alone and that the
	// profile has, held against what their registry has.
	There []install.Dated `json:"there,omitempty"`
	// Data is what Agent Plugins that were removed left.
	Data []PluginData `json:"data,omitempty"`
	// Moved is what an update or dedupe did to each package.
	Moved []install.Move `json:"moved,omitempty"`
	Builds
	// Plan is what would be done, of a dry run; all else is then what would be.
	Plan     *install.Plan `json:"plan,omitempty"`
	Warnings []string      `json:"-"`
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

// Install makes a profile's node_modules what its manifest and lockfile say.
func Install(ctx context.Context, env Env, opts PluginOptions, how install.InstallOptions) (*Report, error) {
	return change(ctx, env, opts, true, func(j *install.Job) (*install.Result, error) { return j.Install(ctx, how) })
}

// Update resolves packages of a profile anew: the named ones, or all.
func Update(ctx context.Context, env Env, opts PluginOptions, names []string, latest bool) (*Report, error) {
	return moving(ctx, env, opts, func(j *install.Job) (*install.Result, error) { return j.Update(ctx, names, latest) })
}

// moving is a change that is about packages of packages, too.
func moving(ctx context.Context, env Env, opts PluginOptions, work func(*install.Job) (*install.Result, error)) (*Report, error) {
	var moved []install.Move
	report, err := change(ctx, env, opts, false, func(j *install.Job) (*install.Result, error) {
		result, err := work(j)
		if err == nil && result.Plan == nil {
			moved = result.Moves()
		}
		return result, err
	})
	if err == nil {
		report.Moved = moved
	}
	return report, err
}

// change runs one job in a transaction over the profile. When it fails, the
// profile is as it was before, also when it was not there at all. makes says
// that the profile is made when it is missing.
func change(ctx context.Context, env Env, opts PluginOptions, makes bool, work func(*install.Job) (*install.Result, error)) (report *Report, err error) {
	if opts.DryRun {
		return env.plan(ctx, opts, makes, work)
	}
	// What is wrong with the profile is said before anything is touched.
	if _, err := env.opened(ctx, opts.Name); err != nil {
		if missing, ok := errors.AsType[*profile.MissingError](err); !ok || !makes || missing.Lost {
			return nil, err
		}
	}
	mended := rebuilt(ctx, env, opts.Name)
	var fill func(dir string) error
	if makes {
		fill = fresh(opts.Name)
	}
	tx, p, err := env.begin(ctx, opts.Name, fill)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	err = env.withJob(opts, tx, p, func(j *install.Job) error {
		result, err := work(j)
		if err == nil {
			err = opts.Expect.check(result)
		}
		if err != nil {
			return err
		}
		report, err = env.commit(ctx, tx, p, result, opts.Force)
		return err
	})
	if err != nil {
		return nil, diskFull(err)
	}
	report.Warnings = slices.Concat(mended, p.Warnings, report.Warnings)
	return report, nil
}

// commit checks what a job staged, and puts it in place.
func (env Env) commit(ctx context.Context, tx *staging.Tx, p *profile.Profile, result *install.Result, force bool) (*Report, error) {
	if result.Unchanged && !p.Created {
		return env.unchanged(ctx, tx, p, result)
	}
	after := *p
	after.Manifest = result.Manifest
	problems, err := verify(env, p, &after, lockedPackages(p.Dir, result), stagedPackages(p.Dir, result), force)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		refused.named(result)
	}
	if err != nil {
		return nil, err
	}
	lacks, covered := lacking(result, func(words ...string) string {
		return fault.ShellWords(append([]string{"dsh", "plugin", "--profile", p.Name.String()}, words...)...)
	})
	problems = slices.Concat(lacks, inert(result), problems)
	before := onDisk(ctx, env, p, true)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	result.Remember()
	problems = append(problems, addedOnDisk(before, slices.DeleteFunc(onDisk(ctx, env, &after, true), covered))...)
	return &Report{
		Profile:  p.Name.String(),
		Dir:      p.Dir,
		Created:  p.Created,
		Changes:  result.Changes,
		Tree:     result.Tree,
		Builds:   buildsOf(result),
		Warnings: slices.Concat(result.Warnings, problems, env.approver(func() string { return p.Dir }, result.Manifest).placeholders(p.Name), tx.Warnings()),
	}, nil
}

// unchanged ends a change that leaves everything as it was, so that there is
// nothing to check.
func (env Env) unchanged(ctx context.Context, tx *staging.Tx, p *profile.Profile, result *install.Result) (*Report, error) {
	if err := errors.Join(ctx.Err(), tx.Commit()); err != nil {
		return nil, err
	}
	result.Remember()
	return &Report{
		Profile: p.Name.String(), Dir: p.Dir, Changes: result.Changes, Tree: result.Tree, Builds: Builds{Built: result.Built},
		Warnings: slices.Concat(result.Warnings, tx.Warnings()),
	}, nil
}

// diskFull tells whose disk is full that the profile is as it was.
func diskFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fault.WithHint(err, "nothing was changed; make room on the disk and run the command again")
	}
	return err
}

func registryConfig(env Env, opts PluginOptions, dir string) (registry.Config, error) {
	user := cmp.Or(env.Getenv("npm_config_userconfig"), env.Getenv("NPM_CONFIG_USERCONFIG"))
	if home, err := os.UserHomeDir(); user == "" && err == nil {
		user = filepath.Join(home, ".npmrc")
	}
	read := opts.readFile
	if read == nil {
		read = os.ReadFile
	}
	config, err := registry.LoadConfig(read, env.Getenv, filepath.Join(dir, ".npmrc"), user)
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

// readableLock is the lockfile of a profile, nil where there is none that can be
// read.
func readableLock(file string) *install.Lock {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	lock, err := install.ParseLock(file, text)
	if err != nil {
		return nil
	}
	return lock
}

// List reads what a profile depends on. It changes nothing, and does not make
// a profile that is missing.
func List(ctx context.Context, env Env, name profile.Name) (*Listing, error) {
	listing, warnings, err := reading(ctx, env, name, func(v staging.View) (*Listing, error) {
		p, err := profile.ReadFrom(v.Path, env.Home, name)
		if err != nil {
			return nil, err
		}
		list := install.List(p.Dir, p.Manifest)
		lock := readableLock(v.Path(filepath.Join(p.Dir, install.LockName)))
		lock.Trace(list, p.Manifest, p.Dir)
		if config, err := registryConfig(env, PluginOptions{}, p.Dir); err == nil { // whose .npmrc does not read asks nobody anyway
			lock.TraceRegistries(list, config.RegistryFor)
		}
		return &Listing{
			Profile: name.String(), Dir: p.Dir,
			Dependencies: list, Bundles: append([]string{}, p.Manifest.Bundles()...),
		}, nil
	})
	if err != nil {
		return nil, err
	}
	listing.Warnings = warnings
	return listing, nil
}
