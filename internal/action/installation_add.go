package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/installation"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// AddInstallationOptions say what to install.
type AddInstallationOptions struct {
	Source   string // @deepseek-ai/dsh@VERSION, or a directory with an npm install of it
	Name     string // "" is the version
	Node     string // a version or range of Node.js, or a program; "" finds one
	Registry string // as in [PluginOptions]
	Offline  bool
	Force    bool // one of that name is replaced
	Events   install.Events
}

// InstallationInfo is an installation of the home.
type InstallationInfo struct {
	Name     string        `json:"name"`
	Version  string        `json:"version"` // of the launcher
	Dir      string        `json:"dir"`     // where the launcher's node_modules is
	Tested   bool          `json:"tested"`
	Node     runtimes.Node `json:"node"`     // its program is absolute
	Default  bool          `json:"default"`  // the home chose it
	Profiles []string      `json:"profiles"` // that chose it
}

// AddedInstallation says what [AddInstallation] did.
type AddedInstallation struct {
	InstallationInfo
	Packages int      `json:"packages"` // that were laid out
	Replaced bool     `json:"replaced"` // another of the name
	Warnings []string `json:"-"`
}

// AddInstallation puts the Node.js harness, and Node.js where the machine has
// none that fits, into the home. No script of a package runs. After an error
// nothing is there that was not there before.
func AddInstallation(ctx context.Context, env Env, opts AddInstallationOptions) (done *AddedInstallation, err error) {
	spec, dir, err := installationSource(env, opts.Source)
	if err != nil {
		return nil, err
	}
	if opts.Name != "" {
		if _, err := runtimes.ParseName(opts.Name); err != nil {
			return nil, err
		}
	}
	a := &installationAdder{env: env, opts: opts, done: &AddedInstallation{}}
	if err := a.open(); err != nil {
		return nil, err
	}
	defer a.close(&err)
	if dir != "" {
		return a.done, a.register(ctx, dir)
	}
	return a.done, a.install(ctx, spec)
}

// installationSource reads what is to be installed: a spec of the launcher, or
// a directory.
func installationSource(env Env, text string) (spec install.Spec, dir string, err error) {
	if rest, ok := strings.CutPrefix(text, runtimes.Launcher); ok && (rest == "" || rest[0] == '@') {
		return install.Spec{Kind: install.Registry, Name: runtimes.Launcher, Target: runtimes.Launcher, Wanted: strings.TrimPrefix(rest, "@")}, "", nil
	}
	if _, err := parseExact(text); err == nil {
		return install.Spec{Kind: install.Registry, Name: runtimes.Launcher, Target: runtimes.Launcher, Wanted: text}, "", nil
	}
	dir = text
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(env.Dir, dir)
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return spec, dir, nil
	}
	return spec, "", fault.WithHint(
		fault.Errorf(fault.Other, "%q is neither a release of %s nor a directory that holds one", text, runtimes.Launcher), "%s", addCommand(runtimes.Known))
}

// parseExact reads an exact version as npm writes it.
func parseExact(text string) (npmrange.Version, error) {
	version, err := npmrange.ParseVersion(text)
	if err == nil && version.String() != text {
		err = fmt.Errorf("%q is not how %s is written", text, version)
	}
	return version, err
}

// installationAdder is one [AddInstallation] under way.
type installationAdder struct {
	env    Env
	opts   AddInstallationOptions
	client *registry.Client
	policy *trust.Policy
	store  *store.Store
	done   *AddedInstallation
}

func (a *installationAdder) open() (err error) {
	plugins := PluginOptions{Registry: a.opts.Registry, Offline: a.opts.Offline}
	if a.client, err = a.env.client(plugins, a.env.Home.Dir()); err != nil {
		return err
	}
	if a.policy, err = a.env.policy(); err != nil {
		a.client.Close()
		return err
	}
	a.store = store.Open(a.env.Home.StoreDir())
	limit(a.store, a.policy)
	return nil
}

func (a *installationAdder) close(err *error) {
	*err = limited(a.policy, errors.Join(*err, a.store.Close()))
	a.client.Close()
}

// install installs a release.
func (a *installationAdder) install(ctx context.Context, spec install.Spec) (err error) {
	if _, err := parseExact(spec.Wanted); err != nil {
		picked, err := a.fetch(ctx, spec)
		if err != nil {
			return err
		}
		spec.Wanted = picked.Version
	}
	name, err := a.free(cmp.Or(a.opts.Name, spec.Wanted))
	if err != nil {
		return err
	}
	release, err := runtimes.FindRelease(spec.Wanted)
	if err != nil {
		return err
	}
	temp, remove, err := staging.TempDir(runtimes.Dir(a.env.Home))
	if err != nil {
		return a.env.unwritable(fault.WithClass(fault.Environment, err))
	}
	defer func() { err = errors.Join(err, remove()) }()
	made := filepath.Join(temp, "made")
	if err := a.layOut(ctx, name, release, temp, made); err != nil {
		if !release.Tested() && fault.ClassOf(err) == fault.Package { // what helps a profile does not help here
			err = fault.WithHint(err, "what is known to work is installed by %s", addCommand(runtimes.Known))
		}
		return fmt.Errorf("installing %s@%s: %w", runtimes.Launcher, spec.Wanted, err)
	}
	inst, err := installation.OpenDir(made)
	if err != nil {
		return err
	}
	app, _ := installation.Launcher(inst)
	if _, err := launcherScript(app); err != nil {
		return err
	}
	if release.Node == "" {
		if release.Node, err = runtimes.NodeRange(app.Manifest); err != nil {
			return fault.WithClass(fault.Package, err)
		}
	}
	node, err := a.node(ctx, release.Node, made)
	if err != nil {
		return err
	}
	if !release.Tested() {
		a.done.Warnings = append(a.done.Warnings, fmt.Sprintf("%s@%s was resolved with the newest packages that fit, and nobody tested these together; dsh ships what is known to work for %s",
			runtimes.Launcher, spec.Wanted, strings.Join(runtimes.KnownReleases(), ", ")))
	}
	return a.publish(name, runtimes.Record{Launcher: app.Version, Tested: release.Tested(), Node: node}, temp, made)
}

// fetch brings one package into the store.
func (a *installationAdder) fetch(ctx context.Context, spec install.Spec) (install.Fetched, error) {
	fetched, err := install.Fetch(ctx, a.client, a.store, a.policy, []install.Spec{spec}, a.opts.Events)
	if err != nil {
		return install.Fetched{}, err
	}
	return fetched[0], nil
}

// free is the name, if no installation has it or it is to be replaced.
func (a *installationAdder) free(text string) (runtimes.Name, error) {
	name, err := runtimes.ParseName(text)
	if err != nil {
		return name, err
	}
	_, err = os.Lstat(runtimes.DirOf(a.env.Home, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, nil
	case err != nil:
		return name, fmt.Errorf("looking for the installation %s: %w", name, err)
	case !a.opts.Force:
		return name, a.taken(name)
	}
	return name, nil
}

func (a *installationAdder) taken(name runtimes.Name) error {
	return fault.WithHint(fault.Errorf(fault.Other, "there is an installation %s already", name),
		"%s makes it anew, --name gives this one another name", fault.ShellWords("dsh", "installation", "add", a.opts.Source, "--force"))
}

// layOut makes the directory of an installation with all packages, but for
// Node.js. The transaction is over a directory that nobody sees yet.
func (a *installationAdder) layOut(ctx context.Context, name runtimes.Name, release runtimes.Release, temp, made string) (err error) {
	place := staging.Place{Dir: made, State: filepath.Join(temp, "state"), Derived: []string{"node_modules"}}
	tx, err := staging.Begin(ctx, place, staging.Options{Init: func(dir string) error {
		files := map[string][]byte{
			mainFile:              release.Manifest,
			install.WorkspaceName: []byte("packages:\n  - .\n\nnodeLinker: hoisted\nautoInstallPeers: true\n"),
		}
		if release.Tested() {
			files[install.LockName] = release.Lock
		}
		for name, text := range files {
			if err := staging.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	manifest, err := profile.ParseManifest(filepath.Join(made, mainFile), release.Manifest)
	if err != nil {
		return err
	}
	settings, err := install.ReadSettings(tx.Dir(), manifest)
	if err != nil {
		return err
	}
	settings.Hosts = install.AllowHosts // this is the host
	job := &install.Job{
		Profile: name.String(), Dir: made, Files: tx.Dir(), Tx: tx, Settings: &settings, Offline: a.opts.Offline,
		Store: a.store, Registry: a.client, Policy: a.policy, Events: a.opts.Events,
		InBox:      func(string) bool { return false },
		CheckLayer: func(string, string) error { return nil },
	}
	job.Admit = func(list []install.Newcomer) ([]string, error) { return a.env.admit(job, list) }
	result, err := job.Install(ctx, install.InstallOptions{Frozen: release.Tested()})
	if err != nil {
		return err
	}
	a.done.Packages = result.Tree.Added
	return tx.Commit()
}

// node finds the Node.js for an installation, and puts it into made where it is
// the registry's.
func (a *installationAdder) node(ctx context.Context, wanted, made string) (runtimes.Node, error) {
	if a.opts.Node == "" {
		if program := runtimes.NodeOnPath(a.env.Getenv("PATH")); program != "" {
			version, err := runtimes.NodeVersion(ctx, program, a.env.Getenv)
			if err == nil {
				fits, err := runtimes.FitsNode(wanted, version)
				if err != nil {
					return runtimes.Node{}, fault.WithClass(fault.Package, err)
				}
				if fits {
					return runtimes.Node{Program: program, Version: version.String()}, nil
				}
			}
		}
		return a.fetchNode(ctx, preferredNode(wanted), wanted, made)
	}
	if _, err := npmrange.ParseRange(a.opts.Node); err == nil && !strings.ContainsAny(a.opts.Node, `/\`) {
		return a.fetchNode(ctx, []string{a.opts.Node}, wanted, made)
	}
	program := a.opts.Node
	if !filepath.IsAbs(program) {
		program = filepath.Join(a.env.Dir, program)
	}
	version, err := runtimes.NodeVersion(ctx, program, a.env.Getenv)
	if err != nil {
		return runtimes.Node{}, err
	}
	return runtimes.Node{Program: program, Version: version.String()}, a.fitting(wanted, program, version)
}

// preferredNode is the ranges that are tried for a range, in order: the oldest
// major release that fits, which is what a launcher was made with, and all.
func preferredNode(wanted string) []string {
	if from, ok := strings.CutPrefix(wanted, ">="); ok {
		major, _, _ := strings.Cut(strings.TrimSpace(from), ".")
		if _, err := npmrange.ParseRange("^" + strings.TrimSpace(from)); err == nil && major != "" {
			return []string{"^" + strings.TrimSpace(from), wanted}
		}
	}
	return []string{wanted}
}

// fitting refuses a Node.js that is not for the launcher.
func (a *installationAdder) fitting(wanted, what string, version npmrange.Version) error {
	fits, err := runtimes.FitsNode(wanted, version)
	if err != nil {
		return fault.WithClass(fault.Package, err)
	}
	if !fits {
		return fault.WithHint(fault.Errorf(fault.MissingProgram, "the launcher needs Node.js %s, and %s is %s", wanted, what, version),
			"without --node dsh looks for one that fits")
	}
	return nil
}

// fetchNode brings Node.js from the registry; of the ranges the first that it
// has a release of counts.
func (a *installationAdder) fetchNode(ctx context.Context, ranges []string, wanted, made string) (node runtimes.Node, err error) {
	platform := install.ThisPlatform()
	pkg, ok := runtimes.NodeFor(platform.OS, platform.CPU, platform.Libc)
	none := func(why string) error {
		return fault.WithHint(fault.Errorf(fault.MissingProgram, "the launcher needs Node.js %s, which is not on PATH, and %s", wanted, why), "%s", runtimes.InstallNode(platform.Libc))
	}
	if !ok {
		return node, none(fmt.Sprintf("the registry has none for %s", platform))
	}
	var fetched install.Fetched
	for _, r := range ranges {
		fetched, err = a.fetch(ctx, install.Spec{Kind: install.Registry, Name: pkg.Name, Target: pkg.Name, Wanted: r})
		if fault.ClassOf(err) != fault.Package {
			break
		}
	}
	if fault.ClassOf(err) == fault.Package && err != nil {
		return node, none(err.Error())
	}
	if err != nil {
		return node, fmt.Errorf("fetching Node.js: %w", err)
	}
	folder := filepath.Join(made, "node")
	if err := fetched.Entry.Link(folder, store.Auto, nil); err != nil {
		return node, err
	}
	// Nothing that was downloaded is run while it is installed: the packages have
	// the versions of what is in them.
	version, err := npmrange.ParseVersion(fetched.Version)
	if err != nil {
		return node, fault.WithClass(fault.Package, err)
	}
	node = runtimes.Node{Program: "node/" + pkg.Program, Version: version.String(), Package: fetched.Name + "@" + fetched.Version, Integrity: fetched.Integrity.String()}
	return node, a.fitting(wanted, node.Package, version)
}

// register makes an installation of a directory that another tool installed.
func (a *installationAdder) register(ctx context.Context, dir string) (err error) {
	inst, err := installation.OpenDir(dir)
	if err != nil {
		return err
	}
	app, _ := installation.Launcher(inst)
	if _, err := launcherScript(app); err != nil {
		return err
	}
	name, err := a.free(cmp.Or(a.opts.Name, app.Version))
	if err != nil {
		return err
	}
	wanted, err := runtimes.NodeRange(app.Manifest)
	if err != nil {
		return fault.WithClass(fault.Package, err)
	}
	temp, remove, err := staging.TempDir(runtimes.Dir(a.env.Home))
	if err != nil {
		return a.env.unwritable(fault.WithClass(fault.Environment, err))
	}
	defer func() { err = errors.Join(err, remove()) }()
	made := filepath.Join(temp, "made")
	if err := os.MkdirAll(made, 0o755); err != nil {
		return err
	}
	node, err := a.node(ctx, wanted, made)
	if err != nil {
		return err
	}
	return a.publish(name, runtimes.Record{Launcher: app.Version, Directory: dir, Node: node}, temp, made)
}

// publish gives a whole installation its name.
func (a *installationAdder) publish(name runtimes.Name, record runtimes.Record, temp, made string) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := staging.WriteFile(filepath.Join(made, runtimes.RecordName), append(text, '\n'), 0o644); err != nil {
		return err
	}
	dir, old := runtimes.DirOf(a.env.Home, name), filepath.Join(temp, "old")
	if a.opts.Force {
		err := staging.SetAside(dir, old, runtimes.RecordName)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return a.env.unwritable(err)
		}
		a.done.Replaced = err == nil
	}
	err = staging.OS.RenameNew(made, dir)
	if err != nil && a.done.Replaced {
		_ = staging.OS.RenameNew(old, dir) // unless another process was faster
	}
	if errors.Is(err, fs.ErrExist) {
		return a.taken(name) // another process was faster
	}
	if err != nil {
		return a.env.unwritable(err)
	}
	installed, err := runtimes.Read(a.env.Home, name)
	if err != nil {
		return err
	}
	uses, err := a.env.installationUses()
	a.done.InstallationInfo = uses.info(installed)
	return err
}
