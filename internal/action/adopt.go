package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/trust"
)

// AdoptOptions say how a profile of another package manager is taken over.
type AdoptOptions struct {
	PluginOptions
	DryRun bool
}

// Adopted says what taking a profile over did, or would do.
type Adopted struct {
	Profile  string `json:"profile"`
	Dir      string `json:"dir"`
	Lockfile string `json:"lockfile"` // whose versions were taken; it stays as it is
	Manager  string `json:"manager"`  // pnpm or npm; dsh where that has it already, "" where there are no packages
	Format   string `json:"format"`   // the version of the lockfile's format
	Changed  bool   `json:"changed"`  // false: dsh has it already, or this is a dry run
	DryRun   bool   `json:"dryRun"`
	// Dependencies are the profile's own, in the order of their names.
	Dependencies []AdoptedPackage `json:"dependencies"`
	Packages     int              `json:"packages"` // all of node_modules
	// Different are packages, as name@version, that the lockfile does not have in
	// that version, because it does not fit package.json.
	Different []string `json:"different"`
	// Scripts are the packages whose scripts nobody allowed, so that they did not
	// run: "name@version: script, script". Of a dry run it is all that have some.
	Scripts []string `json:"scripts"`
	// Built are those whose scripts somebody did allow.
	Built     []install.Built `json:"built"`
	Approvals []Approval      `json:"approvals"` // of pnpm-workspace.yaml, which stay
	Replaced  string          `json:"replaced"`  // who had made node_modules, "" if nobody
	Saved     int             `json:"saved"`     // the generation that it made, 0 if none
	Warnings  []string        `json:"-"`
}

// AdoptedPackage is a dependency of the profile.
type AdoptedPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Approval is whether a package may run scripts.
type Approval struct {
	Package string `json:"package"`
	Allowed bool   `json:"allowed"`
	// Undecided is the text that stands in the place of a decision.
	Undecided string `json:"undecided,omitempty"`
}

// Adopt takes a profile over that the reference launcher and pnpm, or npm, made:
// node_modules and dsh's lockfile become what their lockfile says, with the same
// contents. Manifest, patch and settings stay, and so does their lockfile, so
// that they can go on in the profile. What dsh could not do as they did is an
// error, and nothing is changed.
func Adopt(ctx context.Context, env Env, opts AdoptOptions) (done *Adopted, err error) {
	if _, err := profile.Read(env.Home, opts.Name); err != nil {
		return nil, env.mendable(opts.Name, err)
	}
	tx, p, err := env.begin(ctx, opts.Name, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	done = &Adopted{
		Profile: opts.Name.String(), Dir: p.Dir, DryRun: opts.DryRun,
		Dependencies: []AdoptedPackage{}, Different: []string{}, Scripts: []string{}, Built: []install.Built{}, Approvals: []Approval{},
	}
	maker := install.Maker(p.Dir)
	if _, err := os.Lstat(filepath.Join(p.Dir, install.LockName)); maker == "dsh" && err == nil {
		done.Manager = maker
		return done, nil
	}
	foreign, err := install.ReadForeign(p.Dir, p.Manifest)
	if errors.Is(err, fs.ErrNotExist) && !install.IsManager(maker) && len(install.List(p.Dir, p.Manifest)) == 0 {
		return done, nil // there is nothing to take over
	}
	if err != nil {
		return nil, fault.WithHint(err, "%s resolves the dependencies anew", fault.ShellWords("dsh", "plugin", "--profile", opts.Name.String(), "install"))
	}
	done.Lockfile, done.Manager, done.Format, done.Replaced = foreign.File, foreign.Manager, foreign.Format, maker
	var result *install.Result
	err = env.withJob(opts.PluginOptions, tx, p, func(j *install.Job) (err error) {
		if opts.DryRun {
			j.Approved = nil
		}
		result, err = j.Adopt(ctx, p.Manifest, foreign)
		if err == nil {
			done.tell(foreign, result)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if done.Approvals, err = approvals(p.Dir); err != nil {
		return nil, err
	}
	problems, err := verify(env, p, p, nil, stagedPackages(p.Dir, result), opts.Force)
	if err != nil {
		return nil, err
	}
	done.Warnings = slices.Concat(p.Warnings, result.Warnings, problems)
	if err := ctx.Err(); err != nil || opts.DryRun {
		return done, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	done.Changed, done.Saved = true, tx.Saved()
	done.Warnings = append(done.Warnings, tx.Warnings()...)
	return done, nil
}

// tell notes what a job took over.
func (a *Adopted) tell(foreign *install.Foreign, result *install.Result) {
	lock := result.Lock()
	for _, name := range namesOf(lock.Wanted, nil) {
		if n, ok := lock.Nodes["node_modules/"+name]; ok {
			a.Dependencies = append(a.Dependencies, AdoptedPackage{name, n.Version})
		}
	}
	a.Packages = len(lock.Nodes)
	a.Different = append(a.Different, foreign.Differences(result)...)
	a.Scripts = append(a.Scripts, result.WithScripts()...)
	a.Built = append(a.Built, result.Built...)
}

// approvals are what the profile in dir says of scripts.
func approvals(dir string) ([]Approval, error) {
	list := []Approval{}
	text, err := os.ReadFile(filepath.Join(dir, install.WorkspaceName))
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	// One that cannot be read approves nothing; profile repair tells of it.
	found, _ := trust.PnpmApprovals(text, nil)
	for _, a := range found {
		list = append(list, Approval{a.Package, a.Allowed, a.Placeholder})
	}
	return list, nil
}

// mendable gives an error about a file of a profile the command that mends it,
// unless it has a hint or there is no profile.
func (env Env) mendable(name profile.Name, err error) error {
	if _, missing := errors.AsType[*profile.MissingError](err); missing || err == nil || fault.Hint(err) != "" {
		return err
	}
	return fault.WithHint(err, "%s mends it", fault.ShellWords("dsh", "profile", "repair", name.String()))
}
