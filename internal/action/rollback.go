package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/check"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// RollbackOptions say what to go back to.
type RollbackOptions struct {
	PluginOptions
	// Back is how many changes, at least one; To is the id of a generation, and
	// 0 where Back counts.
	Back, To int
	DryRun   bool
}

// RolledBack says what going back to a generation did, or would do.
type RolledBack struct {
	Profile string `json:"profile"` // "" for the home
	Dir     string `json:"dir"`
	// From is the generation that was there, 0 where the profile was edited by
	// hand since the newest one, or was not there.
	From int `json:"from"`
	// To is the generation that is there now.
	To GenerationInfo `json:"to"`
	// Removed says that the profile was not there, and Kept is the directory
	// that was kept of it and from which it was made, "" if none.
	Removed bool         `json:"removed"`
	Kept    string       `json:"kept"`
	Changed bool         `json:"changed"` // false: it was there already, or this is a dry run
	DryRun  bool         `json:"dryRun"`
	Changes *StateChange `json:"changes"`
	// Missing are packages, as name@version, that the store does not have and
	// that are fetched.
	Missing []string `json:"missing"`
	// Packages is what changed in node_modules, and Replaced who had made it
	// where that was not dsh, so that it was made anew.
	Packages PackageCounts `json:"packages"`
	Replaced string        `json:"replaced"`
	Builds
	// Saved is the generation that the change made, 0 if none.
	Saved    int      `json:"saved"`
	remade   []string // archives that no generation holds, made anew
	Warnings []string `json:"-"`
}

// Rollback makes a profile what it was before the last changes, or in a
// generation: its files byte for byte, and its packages as the lockfile of then
// says. What is there now is a generation afterwards, so that a rollback can be
// rolled back. A profile that was removed is made again.
func Rollback(ctx context.Context, env Env, opts RollbackOptions) (*RolledBack, error) {
	s := profileSubject(env, opts.Name)
	p, err := s.settled(ctx)
	if err != nil {
		return nil, err
	}
	target, err := p.choose(opts)
	if err != nil {
		return nil, err
	}
	if opts.DryRun {
		target, left, err := p.restored(target)
		if err != nil {
			return nil, err
		}
		done := p.report(target)
		done.DryRun, done.Warnings = true, append(done.Warnings, left...)
		return done, env.foresee(opts, done, target)
	}
	return s.restore(ctx, opts.PluginOptions, func(p *past) (*staging.Generation, error) { return p.choose(opts) })
}

// choose is the generation that opts ask for.
func (p *past) choose(opts RollbackOptions) (*staging.Generation, error) {
	if opts.To != 0 {
		return p.byID(opts.To)
	}
	return p.back(opts.Back)
}

// restored is a generation as it is when it is restored: links of it lead to what
// is outside the profile now, and that is left alone. What differs there is told.
func (p *past) restored(g *staging.Generation) (after *staging.Generation, left []string, err error) {
	after, leads, err := p.env.Home.Place(p.name).Restored(g)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range leads {
		left = append(left, fmt.Sprintf("%s leads to %s, which is left alone: it is not as it was in generation %d, which holds it as outside/%s (%s)",
			l.Path, l.To, g.ID, l.Path, p.history().File(g.ID)))
	}
	return after, left, nil
}

// report is what going back to a generation changes.
func (p *past) report(target *staging.Generation) *RolledBack {
	done := &RolledBack{
		Profile: p.profile(), Dir: p.dir(), To: infoOf(target), Removed: p.now == nil, Changes: compareStates(p.now, target),
		Missing: []string{}, Warnings: p.warnings,
	}
	if p.now != nil && !p.edited() {
		done.From = p.generations[0].ID
	}
	return done
}

// foresee adds to a report what can be said of a rollback without doing it.
func (env Env) foresee(opts RollbackOptions, done *RolledBack, g *staging.Generation) (err error) {
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	was := contentOf(g)
	if lock := was.lock; lock != nil && (done.Changes.packagesDiffer() || done.Removed) {
		done.Missing = append(done.Missing, missingPackages(lock, packages)...)
	}
	if len(done.Missing) > 0 && opts.Offline {
		done.Warnings = append(done.Warnings, "with --offline this fails: the store does not have all packages")
	}
	if done.Changes.Empty() || len(done.Missing) > 0 || !was.locked() { // what is missing could not be composed
		return nil
	}
	done.Warnings = append(done.Warnings, env.doubts(opts.Name, g, nil)...)
	return nil
}

// packagesDiffer says that node_modules of the two states is not the same.
func (c *StateChange) packagesDiffer() bool {
	if len(c.Dependencies) > 0 {
		return true
	}
	for _, f := range c.Files {
		if f.Path == install.LockName {
			return true
		}
	}
	return false
}

// missingPackages are the packages of a lockfile, as name@version and sorted by
// their place, that the store does not have and this platform needs.
func missingPackages(lock *install.Lock, packages *store.Store) []string {
	var missing []string
	for _, at := range namesOf(lock.Nodes, nil) {
		n := lock.Nodes[at]
		if n.Origin.Kind == install.Link || n.Optional {
			continue
		}
		if _, ok := packages.Get(n.Integrity); !ok {
			missing = append(missing, n.Name+"@"+n.Version)
		}
	}
	return missing
}

// restore makes a profile what a generation says, which choose picks when the
// profile is locked. One that is not there begins with what was kept of it.
func (s subject) restore(ctx context.Context, opts PluginOptions, choose func(*past) (*staging.Generation, error)) (done *RolledBack, err error) {
	env, kept := s.env, ""
	var lost []string // of what was kept
	options := env.options()
	options.Init = func(dir string) error {
		p, err := s.look()
		if err != nil {
			return err
		}
		if kept = s.kept(p); kept == "" {
			return nil
		}
		lost, err = copyKept(kept, dir, "node_modules")
		return err
	}
	if err := staging.MkdirAll(env.Home.ProfilesDir()); err != nil {
		return nil, fault.WithClass(fault.Environment, env.unwritable(err))
	}
	tx, err := staging.Begin(ctx, env.Home.Place(s.name), options)
	if err != nil {
		return nil, env.unwritable(err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	p, err := s.look() // as it is with the lock held
	if err != nil {
		return nil, err
	}
	target, err := choose(p)
	if err != nil {
		return nil, err
	}
	target, left, err := p.restored(target)
	if err != nil {
		return nil, err
	}
	done = p.report(target)
	done.Warnings = append(done.Warnings, left...)
	if done.Changes.Empty() && !done.Removed {
		return done, nil
	}
	if err := tx.Restore(target); err != nil {
		return nil, err
	}
	find, err := s.restorePackages(ctx, opts, tx, target, done)
	if err != nil {
		return nil, err
	}
	doubts := env.doubts(s.name, target, find)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	done.Changed, done.Kept, done.Saved = true, kept, tx.Saved()
	if done.Removed && !s.home {
		if err := runtimes.BringChoiceBack(env.Home, s.name); err != nil {
			done.Warnings = append(done.Warnings, fmt.Sprintf("the installation that was chosen for the profile: %v", err))
		}
	}
	for _, path := range lost {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%s does not come back: it is neither file, directory nor link", path))
	}
	done.Warnings = append(done.Warnings, doubts...)
	for _, w := range tx.Warnings() {
		// A generation that cannot be read is told of by both.
		if !slices.ContainsFunc(done.Warnings, func(told string) bool { return strings.Contains(told, w) }) {
			done.Warnings = append(done.Warnings, w)
		}
	}
	done.Warnings = append(done.Warnings, s.tooLarge(target, done.remade)...)
	done.Warnings = append(done.Warnings, s.proof(target)...)
	return done, nil
}

// tooLarge tells of the files that a generation names and does not hold, but for
// those that were made anew, and
// where a kept directory has one of that name.
func (s subject) tooLarge(g *staging.Generation, remade []string) (warnings []string) {
	kept := keptDirs(s.env.Home.Place(s.name).State)
	for _, skipped := range g.TooLarge {
		if slices.Contains(remade, skipped.Path) {
			continue
		}
		path := filepath.FromSlash(skipped.Path)
		has := func(dir string) bool {
			_, err := os.Lstat(filepath.Join(dir, path))
			return err == nil
		}
		why := fmt.Sprintf("generation %d does not hold it, because %s", g.ID, skipped.Why)
		if has(s.dir()) {
			warnings = append(warnings, fmt.Sprintf("%s was left alone: %s", skipped.Path, why))
			continue
		}
		if at := slices.IndexFunc(kept, has); at >= 0 {
			why += fmt.Sprintf("; one of an earlier time is %s", filepath.Join(kept[at], path))
		}
		warnings = append(warnings, fmt.Sprintf("%s does not come back: %s", skipped.Path, why))
	}
	return warnings
}

// restorePackages puts into tx what node_modules of a generation was. Where the
// packages of both states are the same, node_modules is left alone, whoever made
// it. find is where packages are then, nil where they stay.
func (s subject) restorePackages(ctx context.Context, opts PluginOptions, tx *staging.Tx, target *staging.Generation, done *RolledBack) (find findPackage, err error) {
	if !done.Changes.packagesDiffer() && !tx.Creating() {
		return nil, nil
	}
	manifest, lock, err := s.wanted(target)
	if err != nil {
		done.Warnings = append(done.Warnings, fmt.Sprintf("node_modules was left as it is: %v", err))
		return nil, nil
	}
	if lock == nil && tx.Creating() && len(contentOf(target).dependencies()) > 0 {
		done.Warnings = append(done.Warnings, fmt.Sprintf("generation %d has no lockfile of dsh, so its packages are not laid out; this resolves them anew: dsh plugin --profile %s install",
			target.ID, fault.ShellWord(s.name.String())))
		return nil, nil
	}
	p := &profile.Profile{Name: s.name, Dir: s.dir(), Manifest: manifest}
	opts = s.withSettings(opts, tx.Dir(), target, done)
	err = s.env.withJob(opts, tx, p, func(j *install.Job) error {
		if lock != nil {
			storeArchives(ctx, j.Store, lock, target)
			done.Missing = append(done.Missing, missingPackages(lock, j.Store)...)
		}
		result, err := j.Restore(ctx, manifest, lock)
		if err != nil {
			return fmt.Errorf("restoring the packages of generation %d, nothing was changed: %w", target.ID, err)
		}
		done.Packages = PackageCounts{result.Tree.Added, result.Tree.Removed, result.Tree.Changed}
		done.Replaced, done.Builds = result.Tree.Replaced, buildsOf(result)
		done.Warnings = append(done.Warnings, result.Warnings...)
		done.remade = result.Archives
		find = stagedPackages(s.dir(), result)
		return nil
	})
	return find, err
}

// storeArchives brings the archives that a generation holds into the store, where
// that has lost what was in them. What is none is told of when it is needed.
func storeArchives(ctx context.Context, packages *store.Store, lock *install.Lock, g *staging.Generation) {
	for _, n := range lock.Nodes {
		if n.Origin.Kind != install.Archive {
			continue
		}
		if _, stored := packages.Get(n.Integrity); stored {
			continue
		}
		if data, ok := g.File(n.Origin.Place); ok {
			_, _ = packages.AddTarball(ctx, bytes.NewReader(data), n.Integrity)
		}
	}
}

// withSettings makes opts read the .npmrc of a generation and not the one that is
// there. One that cannot be used is left out.
func (s subject) withSettings(opts PluginOptions, dir string, g *staging.Generation, done *RolledBack) PluginOptions {
	own := filepath.Join(dir, ".npmrc")
	text, ok := g.File(".npmrc")
	opts.readFile = func(path string) ([]byte, error) {
		switch {
		case path != own:
			return os.ReadFile(path)
		case !ok:
			return nil, fs.ErrNotExist
		default:
			return text, nil
		}
	}
	if _, err := registryConfig(s.env, opts, dir); err != nil && ok {
		done.Warnings = append(done.Warnings, fmt.Sprintf(".npmrc of generation %d was not used for its packages: %v", g.ID, err))
		ok = false
	}
	return opts
}

// wanted is the manifest and the lockfile of a generation; the lockfile is nil
// where there is none. It may hold what nobody can read.
func (s subject) wanted(g *staging.Generation) (*profile.Manifest, *install.Lock, error) {
	file := filepath.Join(s.dir(), "package.json")
	text, ok := g.File("package.json")
	if !ok {
		return nil, nil, fmt.Errorf("generation %d has no package.json", g.ID)
	}
	manifest, err := profile.ParseManifest(file, text)
	if err != nil {
		return nil, nil, fmt.Errorf("in generation %d: %w", g.ID, err)
	}
	text, ok = g.File(install.LockName)
	if !ok {
		return manifest, nil, nil
	}
	lock, err := install.ParseLock(filepath.Join(s.dir(), install.LockName), text)
	if err != nil {
		return nil, nil, fmt.Errorf("in generation %d: %w", g.ID, err)
	}
	return manifest, lock, nil
}

// proof compares what is there after a rollback with the generation, and names
// what is not as it should be.
func (s subject) proof(target *staging.Generation) []string {
	now, err := s.now()
	if err != nil {
		return []string{fmt.Sprintf("looking at what was restored: %v", err)}
	}
	var wrong []string
	for _, f := range compareStates(target, now).Files {
		if f.Change != Unkept {
			wrong = append(wrong, f.Path)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("not as generation %d has it, because it was edited meanwhile or could not be written so: %s", target.ID, strings.Join(wrong, ", "))}
}

// doubts is what is wrong with the layers of a generation whose packages find
// finds, see composeState. It stops nothing: the state was there once.
func (env Env) doubts(name profile.Name, g *staging.Generation, find findPackage) []string {
	c, err := composeState(env, name, g, find)
	if err != nil {
		return []string{fmt.Sprintf("generation %d does not compose: %v", g.ID, err)}
	}
	var warnings []string
	for _, f := range Findings(env, c) {
		if f.Severity > check.Info && f.Blocks {
			warnings = append(warnings, warningOf(f))
		}
	}
	return warnings
}

// composeGeneration composes a generation of a profile without writing anything.
// Packages are found in the store by the lockfile of then, and where there was none
// in node_modules as it is; the home's layer is the one that is there now, and a
// project's is left out.
func composeGeneration(env Env, name profile.Name, g *staging.Generation) (*Composed, error) {
	return composeState(env, name, g, nil)
}

// composeState is composeGeneration with packages that find finds; nil is as
// there.
func composeState(env Env, name profile.Name, g *staging.Generation, find findPackage) (_ *Composed, err error) {
	dir := env.Home.ProfileDir(name)
	text, ok := g.File("package.json")
	if !ok {
		return nil, fault.Errorf(fault.Composition, "generation %d of profile %s has no package.json", g.ID, name)
	}
	m, err := profile.ParseManifest(filepath.Join(dir, "package.json"), text)
	if err != nil {
		return nil, err
	}
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	if lock := contentOf(g).lock; find == nil && lock != nil {
		find = storedPackages(dir, lock, packages)
	}
	c := &Composed{Profile: &profile.Profile{Name: name, Dir: dir, Manifest: m}, Rules: pathRules(env.Installation)}
	err = c.open(stack.Options{
		Home: env.Home, Profile: c.Profile, Installation: env.Installation, UserHome: env.userHome(), Lenient: true,
		Find: find,
		ReadFile: func(path string) ([]byte, error) {
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return nil, err
			}
			text, ok := g.File(filepath.ToSlash(rel))
			if !ok {
				return nil, fs.ErrNotExist
			}
			return text, nil
		},
	})
	if err != nil {
		return nil, err
	}
	c.Warnings = c.leftOut()
	for _, skipped := range c.Stack.Skipped() {
		c.Notices = append(c.Notices, skipped.String())
	}
	for _, w := range c.Tree.Warnings {
		c.Notices = append(c.Notices, w.String())
	}
	return c, nil
}

// storedPackages finds the packages that a lockfile names: in the store, or
// where a link leads. What is said of a package names the place where it stands
// when the profile is laid out.
func storedPackages(dir string, lock *install.Lock, packages *store.Store) findPackage {
	return func(name string) (installation.Package, bool, error) {
		n := lock.Nodes["node_modules/"+name]
		if n.Package == nil {
			return installation.Find(filepath.Dir(dir), name)
		}
		files := filepath.FromSlash(n.Origin.Place)
		if n.Origin.Kind != install.Link {
			entry, ok := packages.Get(n.Integrity)
			if !ok {
				return installation.Package{}, false, nil
			}
			files = entry.Dir()
		} else if !filepath.IsAbs(files) {
			files = filepath.Join(dir, files)
		}
		pkg, err := installation.OpenPackage(files)
		if errors.Is(err, fs.ErrNotExist) {
			return installation.Package{}, false, nil
		}
		if err == nil && n.Origin.Kind != install.Link {
			pkg.Dir = filepath.Join(dir, "node_modules", filepath.FromSlash(name))
		}
		return pkg, err == nil, err
	}
}
