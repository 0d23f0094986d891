package install

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// Events tells a caller how an install proceeds. Any field may be nil;
// functions may be called from several goroutines at once.
type Events struct {
	Resolving func(name string)     // the registry is asked for a package
	Fetching  func(done, total int) // so many of the missing archives are there; more may turn out to be missing
	Received  func(bytes int64)     // more bytes came in
	Linking   func(packages int)    // what is missing is known, and node_modules is being laid out
	Building  func(pkg string)      // the scripts of a package, as name@version, run
	Waiting   func(holder string)   // another process has the profile locked
}

// Job is one change to the packages of one profile. Everything it does goes
// into the transaction; nothing is changed before the caller commits.
type Job struct {
	Profile string // its name, for hints
	Dir     string // where it stands, or will
	// Files is where its files are read, which is elsewhere while a transaction
	// makes the profile; "" is Dir.
	Files string
	// Manifest is what the job changes a copy of, brought up to date where it is
	// not what the file in Files says; nil is that file.
	Manifest *profile.Manifest
	Tx       *staging.Tx
	Store    *store.Store
	Registry *registry.Client
	Offline  bool // nothing but the store, the lockfile and the registries' kept answers is used
	// DryRun ends the job with [Result.Plan]: nothing is fetched, laid out or
	// written, and there need be no Tx.
	DryRun bool
	// Given are contents in the store that the command brought there itself, so
	// that a plan does not say they would be fetched.
	Given map[store.Integrity]bool
	// Settings are the profile's; nil are those that its files have.
	Settings *Settings
	// Before passes over versions that were published later; zero none. It comes
	// on top of the settings' MinAge.
	Before time.Time
	// Policy is what packages that come into the profile are held against; nil is
	// that there is none.
	Policy *trust.Policy
	// Provides is the version of a package that the installation provides; nil
	// where that is not known.
	Provides func(name string) (version string, ok bool)
	// Closure is a file in which the job remembers which contents in the store
	// the tree is made of, so that the next one need not look at each; "" is none.
	Closure string
	// InBox reports whether the installation has a bundle of that name, which
	// then stays a layer when the profile's own copy goes.
	InBox func(name string) bool
	// CheckLayer says what is wrong with the layer that the package in dir
	// declares, before it becomes a layer of the profile.
	CheckLayer func(name, dir string) error
	// Admit refuses packages of registries that are new to node_modules, before any
	// of them is laid out, or says what there is to say of them; nil admits all.
	Admit func([]Newcomer) (warnings []string, err error)
	// Check holds all content against its hashes, in node_modules and in the
	// store, and makes anew what is damaged.
	Check bool
	// Anew is the places, as [Damaged] names them, that are laid out anew from
	// contents that are held against their hashes.
	Anew   []string
	Events Events
	// Approved says by whose word the scripts of a package may run, "" for nobody's.
	// A nil function approves nothing, and no script runs.
	Approved func(Scripted) (by string, err error)
	// IgnoreScripts runs none of those either. What the store has of them is laid out.
	IgnoreScripts bool
	// MustBuild says of a package whose scripts fail that the change is refused,
	// also where it stands without what they make; nil says so of none.
	MustBuild func(Scripted) bool
	// PluginData is the directory in which each Agent Plugin of the profile has one
	// for its data.
	PluginData string
	// ServerNames is the names of MCP servers that rows of the profile have which are
	// of no Agent Plugin; nil is that there are none.
	ServerNames func() map[string]bool
	// Logs is the directory for what scripts print; "" keeps nothing.
	Logs string

	manifest *profile.Manifest // as the job edits it
	before   *profile.Manifest // as it was
	author   *Package          // of a job that installs what this package is built with; nil for a profile's
	settings Settings
	closure  closure
	distrust bool  // the store was found damaged
	locked   *Lock // nil without a lockfile
	lockText []byte
	present  present
	pinned   map[string]*Package // what this command picked for the profile's own dependencies
	built    []Built
	leftOut  []string // what is to be said of builds
	// unconfirmed are contents whose scripts did not run though settings let them.
	unconfirmed map[store.Integrity]bool
	written     map[string]Written // what archives that this command keeps were made of, by dependency
	archives    map[string]string  // files with such archives, by place in the profile
	notes       []string           // to be said where all goes well
	entire      bool               // what is there already is held against the policy, too
}

// Result says what a job did.
type Result struct {
	Changes  []Change
	Tree     TreeChange
	Warnings []string
	Manifest *profile.Manifest // the profile's, as the job leaves it
	Hosts    []HostCopy        // host packages that plugins bring along, where the lockfile is new
	Plan     *Plan             // of a dry run
	Pending  []Pending         // packages that were laid out and whose scripts nobody approved
	Built    []Built           // packages whose scripts somebody did, by name
	// Archives are those of [KeptDir] that were written.
	Archives []string
	// Unchanged says that packages, lockfile and manifest are as they were.
	Unchanged bool

	remember func()
	tree     *tree
	before   present
	locked   *Lock // before
}

// Remember notes in [Job.Closure] what the tree is made of, once the transaction
// is committed and before the store is closed. The next job is faster for it.
func (r *Result) Remember() {
	if r.remember != nil {
		r.remember()
	}
}

// Action is what happened to one dependency of the profile.
type Action string

// The actions.
const (
	Added   Action = "added"
	Removed Action = "removed"
	Updated Action = "updated"
	Kept    Action = "kept"     // it was named, and is as it was
	LeftOut Action = "left out" // it is optional, and not installed
)

// LayerChange is what happened to a dependency's place in the bundle list.
type LayerChange string

// The layer changes.
const (
	NoLayer      LayerChange = ""        // it declares no layer
	LayerAdded   LayerChange = "added"   // it is a layer from now on
	LayerKept    LayerChange = "kept"    // it was a layer and stays one
	LayerRemoved LayerChange = "removed" // it was a layer
	LayerOff     LayerChange = "off"     // it declares one, and the profile does not list it
	LayerInBox   LayerChange = "in-box"  // it is none, and the installation's bundle of its name stays one
)

// Change is what a job did to one dependency of the profile.
type Change struct {
	Name    string `json:"name"`
	Action  Action `json:"action"`
	Reason  string `json:"reason,omitempty"`  // why it was left out
	Before  string `json:"before,omitempty"`  // version
	Version string `json:"version,omitempty"` // version now
	Spec    string `json:"spec,omitempty"`    // as package.json holds it
	Section string `json:"section,omitempty"` // of package.json, when it moved there
	From    string `json:"from,omitempty"`    // registry, address or path
	// Of what comes from a git repository, the commits.
	CommitBefore string      `json:"commitBefore,omitempty"`
	Commit       string      `json:"commit,omitempty"`
	Layer        LayerChange `json:"layer"`
	// AgentPlugin says that it is one, of which dsh makes a bundle.
	AgentPlugin bool `json:"agentPlugin,omitempty"`
	// Shadowed says that the installation has a bundle of this name, whose
	// layer is the one that counts.
	Shadowed bool `json:"shadowed,omitempty"`
}

// AddOptions are the choices of `dsh plugin add`.
type AddOptions struct {
	Kind  profile.DependencyKind // "" keeps where it stands, else dependencies
	Exact bool                   // save exact versions
	// AgentPlugin takes what is asked for for an Agent Plugin, also where it has a
	// layer of its own.
	AgentPlugin bool
	As          string // the name to install an Agent Plugin under; "" is its own
}

// Add installs the packages that specs name and makes the bundles among them
// layers.
func (j *Job) Add(ctx context.Context, specs []Spec, opts AddOptions) (*Result, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	if opts.As != "" && len(specs) != 1 {
		return nil, fault.Errorf(fault.Other, "one package can be given a name, and %d are to be added", len(specs))
	}
	if err := find.admits(specs); err != nil {
		return nil, err
	}
	specs = slices.Clone(specs)
	picked := make([]*Package, len(specs))
	pluginNames := make([]string, len(specs)) // of those that are Agent Plugins
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i, spec := range specs {
		if _, stays := j.stays(spec, opts); stays {
			continue
		}
		group.Go(func() (err error) {
			spec.Plugin = MayBePlugin
			if opts.AgentPlugin {
				spec.Plugin = MustBePlugin
			}
			picked[i], specs[i], pluginNames[i], err = find.findPlugin(groupCtx, spec)
			if err == nil && spec.Kind == Git && spec.Git.Browsed {
				// What the address means is known now, and stays.
				source, _, err := find.reading(groupCtx, *spec.Git)
				if err != nil {
					return err
				}
				specs[i].Git = &source
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var names []string
	for i, spec := range specs {
		if pluginNames[i] != "" {
			name, err := j.addPlugin(find, spec, picked[i], pluginNames[i], opts)
			if err != nil {
				return nil, err
			}
			if slices.Contains(names, name) {
				return nil, fault.Errorf(fault.Other, "%s is named twice", name)
			}
			names = append(names, name)
			continue
		}
		if opts.As != "" {
			return nil, fault.Errorf(fault.Other, "%s is no Agent Plugin, and only those are installed under another name by --as", spec.Shown())
		}
		if spec.Name == "" {
			spec.Name = picked[i].Name
		}
		if slices.Contains(names, spec.Name) {
			return nil, fault.Errorf(fault.Other, "%s is named twice", spec.Name)
		}
		names = append(names, spec.Name)
		old, kind, had := j.manifest.Dependency(spec.Name)
		if opts.Kind != "" || !had {
			kind = opts.Kind
		}
		if kind == "" {
			kind = profile.Dependencies
		}
		wanted, stays := j.stays(spec, opts)
		if !stays {
			wanted = saved(spec, picked[i], j.Dir, old, opts.Exact)
			if m := find.made(spec); m != nil {
				picked[i], wanted = j.keepAs(spec.Name, picked[i], m)
			}
			j.pinned[spec.Name] = picked[i]
		}
		j.manifest.SetDependency(kind, spec.Name, wanted)
	}
	return j.settle(ctx, find, change{touched: names, fresh: func(name string) bool { return j.pinned[name] != nil }, activate: true})
}

// stays is the saved range of a package that is asked for by its name alone
// though the profile depends on it already: that range and the version stand,
// as in pnpm. Moving on is what update is for.
func (j *Job) stays(spec Spec, opts AddOptions) (wanted string, ok bool) {
	if spec.Kind != Registry || spec.Wanted != "" || opts.Exact {
		return "", false
	}
	wanted, _, had := j.before.Dependency(spec.Name)
	old, err := ParseDependency(spec.Name, wanted, j.Dir)
	return wanted, had && err == nil && old.Kind == Registry && old.Target == spec.Target
}

// Remove takes dependencies, and their layers, out of the profile.
func (j *Job) Remove(ctx context.Context, names []string) (*Result, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	all := j.dependencyNames()
	var absent []string
	for _, name := range names {
		if !j.manifest.RemoveDependency(name) {
			absent = append(absent, name)
		}
	}
	if len(absent) > 0 {
		have := "it has no dependencies"
		if len(all) > 0 {
			have = "it depends on " + strings.Join(all, ", ")
		}
		return nil, fault.Errorf(fault.Package, "the profile does not depend on %s; %s", strings.Join(absent, ", "), have)
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	return j.settle(ctx, find, change{touched: names})
}

// InstallOptions are the choices of `dsh plugin install`.
type InstallOptions struct {
	Frozen bool // refuse to change the lockfile
	Force  bool // lay everything out anew, from packages that are checked
}

// Install makes node_modules what manifest and lockfile say.
func (j *Job) Install(ctx context.Context, opts InstallOptions) (*Result, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	if opts.Force && !j.present.absent {
		j.present = present{foreign: "an earlier install"}
	}
	j.Check = j.Check || opts.Force
	j.entire = true
	find, ctx, done := j.sources(ctx)
	defer done()
	if err := j.linksLead(j.dependencyNames()); err != nil {
		return nil, err
	}
	return j.settle(ctx, find, change{frozen: opts.Frozen})
}

// linksLead finds a dependency that is a link to a folder that is not there any
// more.
func (j *Job) linksLead(names []string) error {
	for _, name := range names {
		wanted, _, _ := j.manifest.Dependency(name)
		spec, err := ParseDependency(name, wanted, j.Dir)
		if n, _ := j.locked.at("node_modules/" + name); isWrapped(n.Package, name, wanted) || isWrapped(j.pinned[name], name, wanted) {
			continue // its wrapper is made anew
		}
		if err != nil || spec.Kind != Link {
			continue
		}
		if _, err := os.Stat(seenAt(j.Dir, j.Files, spec.Place)); errors.Is(err, fs.ErrNotExist) {
			err := fault.Errorf(fault.Package, "%s links to %s, and there is no such folder", name, spec.Place)
			if j.depended(name) {
				err = fault.WithHint(err, "%s takes it out; adding the folder where it is now links it again", j.command("remove", name))
			}
			return err
		}
	}
	return nil
}

// Update resolves the named dependencies, or all of them, anew within what
// the manifest allows; latest takes the newest release instead and changes
// the manifest.
func (j *Job) Update(ctx context.Context, names []string, latest bool) (*Result, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	if j.Offline {
		return nil, fault.Errorf(fault.Network, "update asks registries for newer versions, which --offline forbids")
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	all := j.dependencyNames()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fault.Errorf(fault.Package, "the profile does not depend on %s", name)
		}
	}
	fresh := func(name string) bool { return slices.Contains(names, name) }
	anew := len(names) == 0
	if anew {
		names = all
		fresh = func(string) bool { return true }
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	for _, name := range names {
		wanted, _, _ := j.manifest.Dependency(name)
		if spec, err := ParseDependency(name, wanted, j.Dir); err == nil {
			find.prefetch(ctx, spec)
		}
	}
	for _, name := range names {
		if err := j.raise(ctx, find, name, latest, !anew); err != nil {
			return nil, err
		}
	}
	return j.settle(ctx, find, change{touched: names, fresh: fresh, anew: anew})
}

// raise moves the saved range of one dependency up to what it picks now, as
// pnpm update does. Tags and what is no registry package stay as they are
// written; exact versions and ranges that people write by hand do unless the
// newest release is asked for. named says that the dependency was asked for by
// its name.
func (j *Job) raise(ctx context.Context, find *sources, name string, latest, named bool) error {
	old, kind, _ := j.manifest.Dependency(name)
	if n, ok := j.locked.at("node_modules/" + name); ok && isWrapped(n.Package, name, old) {
		return j.raisePlugin(ctx, find, name, n, latest, named)
	}
	if w, ok := j.locked.source(name); ok && keptAt(old, j.Dir) != "" {
		return j.fetchAgain(ctx, find, name, w, named)
	}
	spec, err := ParseDependency(name, old, j.Dir)
	if err == nil && spec.Kind == Archive && spec.Inside == "" && isGone(seenAt(j.Dir, j.Files, originPlace(spec, j.Dir))) {
		j.notes = append(j.notes, fmt.Sprintf("%s: %s is not there any more; what was installed from it stays", name, shownPlace(spec)))
	}
	if err != nil || spec.Kind != Registry {
		return nil // settle says what is wrong with a spec
	}
	style := operator(spec.Wanted)
	if latest {
		if !isRange(spec.Wanted) {
			return nil // a tag
		}
		if style == "" && !isExact(spec.Wanted) {
			style = "^"
		}
		spec.Wanted = ""
	} else if style == "" {
		return nil
	}
	pkg, err := find.find(ctx, spec)
	if err != nil {
		return err
	}
	j.pinned[name] = pkg
	j.manifest.SetDependency(kind, name, withAlias(spec, style+pkg.Version))
	return nil
}

// begin reads what the profile has now.
func (j *Job) begin() error {
	if err := j.locate(); err != nil {
		return err
	}
	j.closure = readClosure(j.Closure, j.Store)
	var aside sync.WaitGroup
	defer aside.Wait()
	if !exists(j.Files, "node_modules/"+treeMarker) {
		remembered := j.closure                 // the job gets another one where nothing was
		aside.Go(func() { remembered.known() }) // all is laid out: it reads beside the lockfile
	}
	text, err := profile.ReadFile(filepath.Join(j.Files, LockName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read lockfile: %w", err)
	default:
		file := filepath.Join(j.Dir, LockName)
		j.locked, err = ParseLock(file, text)
		if _, newer := errors.AsType[*LockFormatError](err); newer {
			return err
		}
		if err != nil {
			return fault.WithHint(err, "%s && %s resolves the dependencies anew", fault.ShellWords("rm", file), j.command("install"))
		}
		j.lockText = text
	}
	onDisk, err := j.readManifest()
	if errors.Is(err, fs.ErrNotExist) && j.Manifest != nil {
		j.before, err = j.Manifest, nil // it comes with the transaction
	}
	if err != nil {
		return err
	}
	start := cmp.Or(j.Manifest, j.before)
	if j.manifest, err = profile.ParseManifest(j.before.Path(), start.Bytes()); err != nil {
		return err
	}
	if err := j.configure(); err != nil {
		return err
	}
	if j.DryRun || j.Tx.Creating() {
		return nil // nobody else can write there, or nothing is
	}
	return errors.Join(j.Tx.Expect(LockName, j.lockText), j.Tx.Expect("package.json", onDisk))
}

// locate finds the real directories.
func (j *Job) locate() error {
	if j.Files == "" {
		j.Files = j.Dir
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(j.Dir))
	if err != nil {
		return err
	}
	files, err := filepath.EvalSymlinks(j.Files)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(j.Dir)
	if errors.Is(err, fs.ErrNotExist) && j.Files != j.Dir {
		real, err = filepath.Join(parent, filepath.Base(j.Dir)), nil
	}
	if err != nil {
		return err
	}
	j.Dir, j.Files, j.pinned = real, files, map[string]*Package{}
	j.written, j.archives = map[string]Written{}, map[string]string{}
	return nil
}

// configure reads the settings that go with the manifest, what stands in
// node_modules, and what the last job remembered.
func (j *Job) configure() (err error) {
	if j.Settings != nil {
		j.settings = *j.Settings
	} else if j.settings, err = ReadSettings(j.Files, j.manifest); err != nil {
		return err
	}
	if j.present, err = readPresent(j.Files, j.lockText, j.locked); err != nil {
		return err
	}
	if slices.Contains(j.Anew, "node_modules") && !j.present.absent {
		j.present = present{foreign: "an earlier install"}
	}
	if j.closure.entries == nil {
		j.closure = readClosure(j.Closure, j.Store)
	}
	return nil
}

// command is a command on the profile that can be pasted.
func (j *Job) command(words ...string) string {
	return fault.ShellWords(append([]string{"dsh", "plugin", "--profile", j.Profile}, words...)...)
}

// readManifest reads the manifest that the profile has now, and returns its
// bytes too.
func (j *Job) readManifest() (text []byte, err error) {
	text, err = profile.ReadFile(filepath.Join(j.Files, "package.json"))
	if err != nil {
		return nil, fmt.Errorf("failed to read profile manifest: %w", err)
	}
	j.before, err = profile.ParseManifest(filepath.Join(j.Dir, "package.json"), text)
	return text, err
}

var dependencyKinds = []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies}

func (j *Job) dependencyNames() []string {
	var names []string
	for _, kind := range dependencyKinds {
		for _, d := range j.manifest.Dependencies(kind) {
			names = append(names, d.Name)
		}
	}
	sort.Strings(names)
	return slices.Compact(names)
}

func (j *Job) wishes() []Wish {
	var wishes []Wish
	for _, name := range j.dependencyNames() {
		wanted, kind, _ := j.manifest.Dependency(name)
		wishes = append(wishes, Wish{Name: name, Wanted: wanted, Optional: kind == profile.OptionalDependencies})
	}
	return wishes
}

// change is what settle must know of the verb.
type change struct {
	touched  []string               // the dependencies that the command is about
	fresh    func(name string) bool // whose locked version is not kept; nil keeps all
	activate bool                   // make touched bundles layers even where they were switched off
	frozen   bool
	dedupe   bool
	taken    *taken // dependencies that come from another profile
	foreign  *Lock  // what another package manager chose, where there is no lockfile of ours
	anew     bool   // nothing that is locked is kept
}

// asks reports whether something is to be asked for anew, so that the present
// lockfile cannot be the answer.
func (c *change) asks() bool { return c.fresh != nil || c.dedupe || c.taken != nil }

// settle resolves, fetches and lays out what the edited manifest asks for,
// reconciles the bundle list, and puts it all into the transaction.
func (j *Job) settle(ctx context.Context, find *sources, c change) (*Result, error) {
	wishes := j.wishes()
	if c.frozen && j.locked == nil && len(wishes) > 0 {
		return nil, j.notFrozen() // nobody need be asked for that
	}
	told, err := j.keptForeign(ctx, find, &c)
	if err != nil {
		return nil, err
	}
	res, err := j.resolution(ctx, find, wishes, c)
	if err != nil {
		return nil, err
	}
	lock := res.lock
	lockText := j.lockText // the same content, in whatever line ends
	if lock != j.locked && (j.locked != nil || len(wishes) > 0) {
		if text := lock.Bytes(); j.locked == nil || !bytes.Equal(text, j.locked.Bytes()) {
			lockText = text
		}
	}
	if c.frozen && !bytes.Equal(lockText, j.lockText) {
		return nil, j.notFrozen()
	}
	warned, err := j.admit(lock)
	if err := errors.Join(res.checkPlatform(), err); err != nil {
		return nil, err
	}
	told = append(told, warned...)
	if j.DryRun {
		result, err := j.plan(ctx, find, lock, c)
		if err == nil {
			result.Warnings = slices.Concat(told, result.Warnings)
		}
		return result, err
	}
	text := lockText
	if len(text) == 0 {
		text = lock.Bytes() // of a profile without packages, which needs no file
	}
	result, err := j.layOut(ctx, find, lock, text)
	if err != nil {
		return nil, err
	}
	archives, changed, err := j.stageArchives(ctx, lock)
	if err != nil {
		return nil, err
	}
	result.Archives = archives
	result.remember = func() { j.closure.save(j, lockText, wishes, result.tree) }
	if res.root == nil && !changed && result.Tree == (TreeChange{}) && bytes.Equal(j.manifest.Bytes(), j.before.Bytes()) {
		result.Unchanged, result.Changes, result.Warnings = true, []Change{}, append(result.Warnings, j.notes...)
		return result, nil
	}
	if result.Changes, err = j.reconcile(result.tree, c); err != nil {
		return nil, err
	}
	result.Warnings = slices.Concat(result.Warnings, told, j.notes, find.deprecations(lock), find.tooNew(lock), find.notesOf(lock), find.unverified())
	if lock != j.locked {
		var hosts []string
		result.Hosts, hosts = hostReport(j.locked, lock, j.manifest, j.settings.Hosts, j.Provides, j.command)
		result.Warnings = slices.Concat(result.Warnings, newPeerProblems(j.locked, lock), foreignPeers(j.locked, lock, j.Dir), hosts)
	}
	for _, file := range []struct {
		name string
		now  []byte
		was  []byte
	}{
		{LockName, lockText, j.lockText},
		{"package.json", j.manifest.Bytes(), j.before.Bytes()},
	} {
		if !bytes.Equal(file.now, file.was) {
			if err := j.Tx.WriteFile(file.name, file.now, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}
