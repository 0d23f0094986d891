package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// DamageCode says what kind of damage is meant. The codes are promised to
// scripts.
type DamageCode string

// The codes.
const (
	ManifestMissing DamageCode = "manifest-missing"         // there is no package.json
	ManifestBroken  DamageCode = "manifest-broken"          // one that cannot be read
	ByteOrderMark   DamageCode = "byte-order-mark"          // one that begins with a mark that Node.js refuses
	DependencyTwice DamageCode = "dependency-twice"         // in several sections, or twice in one
	NotInstalled    DamageCode = "dependency-not-installed" // without a folder in node_modules
	LinkLost        DamageCode = "link-lost"                // a link to a folder that is not there
	PackageDamaged  DamageCode = "package-damaged"          // not as it was installed
	StrayPackage    DamageCode = "stray-package"            // a leftover in node_modules, or a note of what tools keep there
	HostPackage     DamageCode = "host-package"             // a second copy of a package of the harness
	ModulesForeign  DamageCode = "modules-foreign"          // node_modules is another package manager's
	ModulesUnusable DamageCode = "modules-unusable"         // node_modules is nobody's, or another machine's
	BundleTwice     DamageCode = "bundle-twice"             // listed twice
	BundleUnknown   DamageCode = "bundle-unknown"           // listed, and neither in the box nor a dependency
	BundleNoLayer   DamageCode = "bundle-no-layer"          // listed, and declares no layer
	BundleBroken    DamageCode = "bundle-broken"            // listed, and cannot be read
	LockBroken      DamageCode = "lock-broken"              // dsh-lock.yaml cannot be read
	LockMissing     DamageCode = "lock-missing"             // there is none though node_modules is dsh's
	LockNewer       DamageCode = "lock-newer"               // it is of a format that this dsh does not know
	LockOutdated    DamageCode = "lock-outdated"            // it does not know the dependencies of package.json
	PatchMissing    DamageCode = "patch-missing"            // there is no patch file
	PatchEmpty      DamageCode = "patch-empty"              // one that holds no list
	PatchBroken     DamageCode = "patch-broken"             // one that cannot be read
	HomePatch       DamageCode = "home-patch-broken"        // the same of the home
	SettingsMissing DamageCode = "workspace-missing"        // there is no pnpm-workspace.yaml
	SettingsBroken  DamageCode = "workspace-broken"         // one that cannot be read
	Undecided       DamageCode = "approval-undecided"       // a text where a decision about scripts belongs
	RowUnresolved   DamageCode = "row-unresolved"           // a row of the user names a package that is not there
	Leftover        DamageCode = "leftover"                 // of a change that did not end
	StateSetAside   DamageCode = "state-set-aside"          // of an earlier directory of this name
)

// Damage is one thing that is wrong with a profile.
type Damage struct {
	Code    DamageCode `json:"code"`
	File    string     `json:"file"`    // the file or folder that it is about
	Problem string     `json:"problem"` // what is wrong
	Mend    string     `json:"mend"`    // what repair does about it, "" where it can do nothing
	ByHand  string     `json:"byHand"`  // what a person can do, "" where repair does it all
	Note    bool       `json:"note"`    // nothing is wrong by itself
	Mended  bool       `json:"mended"`

	packages bool // mending it takes packages, which may have to be fetched
}

// RepairOptions say how a profile is mended.
type RepairOptions struct {
	PluginOptions
	Rows bool // rows whose packages have gone are switched off
}

// Repair is what is wrong with a profile and what became of it.
type Repair struct {
	Profile string   `json:"profile"`
	Dir     string   `json:"dir"`
	DryRun  bool     `json:"dryRun"`
	Changed bool     `json:"changed"`
	Damages []Damage `json:"damages"`
	Left    int      `json:"left"`  // damages that are not mended, notes left out
	Saved   int      `json:"saved"` // the generation that mending made, 0 if none
	// HomeChanged says that rows of the home's patch were switched off.
	HomeChanged bool `json:"homeChanged"`
	Builds
	// Kept are the copies of files that could not be read.
	Kept     []string `json:"kept"`
	Warnings []string `json:"-"`
}

// Mendable says whether there is something that [Mend] does.
func (r *Repair) Mendable() bool {
	return slices.ContainsFunc(r.Damages, func(d Damage) bool { return d.Mend != "" && !d.Mended })
}

func (r *Repair) count() {
	r.Left = 0
	for _, d := range r.Damages {
		if !d.Mended && !d.Note {
			r.Left++
		}
	}
}

// repair is a profile that is looked through, and what would mend it.
type repair struct {
	env  Env
	opts RepairOptions
	dir  string
	own  string // a place in the staging directory of our own transaction, "" without one

	generations []staging.Generation // newest first
	damages     []Damage
	kept        []string
	warnings    []string
	builds      Builds

	manifest *profile.Manifest      // as it will be
	lock     *install.Lock          // as it is; nil where it cannot be read or is not there
	from     *install.Lock          // whose versions count, where packages are laid out anew; nil is lock
	other    *install.Foreign       // see foreign
	looked   bool                   // for other
	read     map[string][]byte      // small files as they were read; nil is one that is not there
	write    map[string][]byte      // small files as they will be
	modes    map[string]fs.FileMode // permissions of those that are not 0644 where they are new
	fresh    []string               // small files that will be what a fresh profile has
	remove   []string               // what goes: leftovers in node_modules, and a lockfile that nobody needs
	newer    bool                   // the lockfile is not ours to judge, and packages are left alone
	layOut   bool                   // node_modules is laid out anew where it is damaged
	homeRows []string               // rows of the home's patch to switch off
}

// Diagnose looks for everything that is wrong with a profile, and says what
// [Mend] would do. It changes nothing.
func Diagnose(ctx context.Context, env Env, opts RepairOptions) (*Repair, error) {
	r, err := diagnose(ctx, env, opts, "")
	if err != nil {
		return nil, err
	}
	report := r.report()
	report.DryRun = true
	return report, nil
}

func (r *repair) report() *Repair {
	report := &Repair{
		Profile: r.opts.Name.String(), Dir: r.dir, Damages: append([]Damage{}, r.damages...),
		Builds: r.builds, Kept: append([]string{}, r.kept...), Warnings: r.warnings,
	}
	report.count()
	return report
}

func diagnose(ctx context.Context, env Env, opts RepairOptions, own string) (r *repair, err error) {
	r = &repair{env: env, opts: opts, dir: env.Home.ProfileDir(opts.Name), own: own, read: map[string][]byte{}, write: map[string][]byte{}, modes: map[string]fs.FileMode{}}
	s := profileSubject(env, opts.Name)
	now, err := s.now()
	if err != nil {
		return nil, err
	}
	var damaged error
	if r.generations, damaged = s.history().List(); damaged != nil {
		// A history that is of no use is no reason to leave the profile broken.
		r.warnings = append(r.warnings, leftOutOfHistory(damaged))
	}
	switch {
	case now != nil:
	case len(r.generations) == 0 && damaged == nil:
		return nil, &UnknownError{opts.Name}
	default:
		return nil, fault.WithHint(&profile.MissingError{Name: opts.Name, Dir: r.dir}, "%s brings it back", fault.ShellWords("dsh", "profile", "undelete", opts.Name.String()))
	}
	packages := store.Open(env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	for _, look := range []func() error{
		r.lookAtLeftovers, r.lookAtManifest, r.lookAtLock,
		func() error { return r.lookAtModules(packages) },
		r.lookAtBundles, r.lookAtPatch, r.lookAtHomePatch, r.lookAtSettings,
		func() error { return r.lookAtRows(ctx) },
	} {
		if err := look(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *repair) add(d Damage) {
	if d.Mend == "" && d.ByHand == "" && !d.Note {
		panic("action: a damage without a way out: " + string(d.Code))
	}
	r.damages = append(r.damages, d)
}

// path is a place in the profile.
func (r *repair) path(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// command is a dsh command about the profile, to be pasted.
func (r *repair) command(family, verb string, words ...string) string {
	if family == "profile" {
		return fault.ShellWords(append([]string{"dsh", family, verb, r.opts.Name.String()}, words...)...)
	}
	return fault.ShellWords(append([]string{"dsh", family, "--profile", r.opts.Name.String(), verb}, words...)...)
}

// Mend does what a report of [Diagnose] said, in one change of the profile. A
// profile that is not what was reported on is left alone, and the error says so.
// What then is wrong with it is in the report that comes back.
func Mend(ctx context.Context, env Env, opts RepairOptions, shown *Repair) (*Repair, error) {
	r, saved, err := mend(ctx, env, opts, shown, true)
	if class := fault.ClassOf(err); err != nil && ctx.Err() == nil && (class == fault.Network || class == fault.Package) && shown.mendsFiles() {
		// What needs no packages need not wait for them.
		why := err
		if r, saved, err = mend(ctx, env, opts, shown, false); err == nil {
			r.warnings = append(r.warnings, fmt.Sprintf("packages were not installed: %v", why))
		}
	}
	if err != nil {
		return nil, err
	}
	homeChanged := r.switchOffHomeRows(ctx)
	after, err := diagnose(ctx, env, opts, "")
	if err != nil {
		return nil, fmt.Errorf("profile %s was changed, and looking at it again failed: %w", opts.Name, err)
	}
	report := r.report()
	report.Changed, report.Saved, report.HomeChanged = true, saved, homeChanged
	report.Warnings = append(report.Warnings, after.warnings...)
	report.settle(after.damages)
	return report, nil
}

// switchOffHomeRows switches rows of the home's patch off, and says whether that
// changed it. The profile is changed by then, so what fails is a warning, and the
// row is found again.
func (r *repair) switchOffHomeRows(ctx context.Context) (changed bool) {
	for _, row := range r.homeRows {
		edit, err := Switch(ctx, r.env, SwitchOptions{EditOptions: EditOptions{Name: r.opts.Name, Layer: compose.HomeLayer}}, row)
		if err != nil {
			r.warnings = append(r.warnings, fmt.Sprintf("row %s of the home's patch was not switched off: %v", row, err))
			continue
		}
		changed = changed || edit.Changed
		r.warnings = append(r.warnings, edit.Warnings...)
	}
	return changed
}

// mendsFiles says whether there is something to mend that takes no packages.
func (r *Repair) mendsFiles() bool {
	return slices.ContainsFunc(r.Damages, func(d Damage) bool { return d.Mend != "" && !d.packages })
}

// settle marks what is no longer found as mended, and adds what was not found
// before.
func (r *Repair) settle(left []Damage) {
	same := func(a, b Damage) bool { return a.Code == b.Code && a.File == b.File && a.Problem == b.Problem }
	for i := range r.Damages {
		d := &r.Damages[i]
		d.Mended = d.Mended || !slices.ContainsFunc(left, func(other Damage) bool { return same(*d, other) })
	}
	for _, d := range left {
		if !slices.ContainsFunc(r.Damages, func(known Damage) bool { return same(known, d) }) {
			r.Damages = append(r.Damages, d)
		}
	}
	r.count()
}

// mend makes the change. Without packages node_modules is left alone.
func mend(ctx context.Context, env Env, opts RepairOptions, shown *Repair, withPackages bool) (r *repair, saved int, err error) {
	tx, err := staging.Begin(ctx, env.Home.Place(opts.Name), env.options())
	if err != nil {
		return nil, 0, env.unwritable(err)
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if r, err = diagnose(ctx, env, opts, filepath.Join(tx.Stage(), "new")); err != nil {
		return nil, 0, err
	}
	for _, d := range r.damages {
		known := slices.ContainsFunc(shown.Damages, func(s Damage) bool { return s.Code == d.Code && s.File == d.File && s.Mend == d.Mend })
		if !known && d.Code != Leftover {
			return nil, 0, fault.WithHint(fault.Errorf(fault.Environment, "profile %s was changed while its damages were shown; nothing was changed", opts.Name), "run the command again")
		}
	}
	// What beginning the transaction has finished or taken away already.
	for _, d := range shown.Damages {
		if d.Code == Leftover && !slices.Contains(r.damages, d) {
			d.Mended = true
			r.damages = append([]Damage{d}, r.damages...)
		}
	}
	if err := r.writeFiles(tx); err != nil {
		return nil, 0, err
	}
	for _, rel := range r.remove {
		if err := tx.Remove(rel); err != nil {
			return nil, 0, err
		}
	}
	if withPackages && r.layOut {
		if err := r.layOutModules(ctx, tx); err != nil {
			return nil, 0, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := tx.Commit(); err != nil {
		return nil, 0, err
	}
	r.warnings = append(r.warnings, tx.Warnings()...)
	return r, tx.Saved(), nil
}

// layOutModules puts into tx what makes node_modules whole.
func (r *repair) layOutModules(ctx context.Context, tx *staging.Tx) error {
	p := &profile.Profile{Name: r.opts.Name, Dir: r.dir, Manifest: r.manifest}
	return r.env.withJob(r.opts.PluginOptions, tx, p, func(j *install.Job) (err error) {
		var result *install.Result
		j.Check = true
		from := r.lock
		if r.from != nil {
			from = r.from
		}
		if foreign := r.foreign(); foreign != nil && from == nil {
			result, err = j.Adopt(ctx, r.manifest, foreign)
		} else {
			result, err = j.Mend(ctx, r.manifest, from)
		}
		if err == nil {
			r.builds = buildsOf(result)
			r.warnings = append(r.warnings, result.Warnings...)
		}
		return err
	})
}

// broken is the name of a free place beside a file for what it held.
func (r *repair) broken(file string) string {
	for n := 1; ; n++ {
		if name := file + ".broken-" + strconv.Itoa(n); !r.exists(name) {
			return name
		}
	}
}
