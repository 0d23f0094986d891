package action

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/archive"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// ImportOptions say how an archive becomes a profile.
type ImportOptions struct {
	Name    string   // of the profile; "" is the archive's
	Offline bool     // nothing but the archive and the store is used
	Include []string // files that are taken as they are, see [OpenArchive]
	Events  install.Events
}

// Plan says what importing an archive would do.
type Plan struct {
	From     string        `json:"from"`    // the profile's name where it was exported
	Version  string        `json:"version"` // of the dsh that wrote the archive
	Bundles  []string      `json:"bundles"` // whose layers it has, in order
	Packages []PlanPackage `json:"packages"`
	// Rows are the rows that the profile's own layer inserts, and Expressions
	// its values that run when it starts.
	Rows        []ProjectRow      `json:"rows"`
	Expressions []string          `json:"expressions"`
	Settings    []PlanSetting     `json:"settings"`
	Sources     []archive.Source  `json:"sources"`
	LeftOut     []archive.LeftOut `json:"leftOut"` // by the sender
	Files       int               `json:"files"`
	Warnings    []string          `json:"-"`
}

// PlanPackage is one package that comes with an archive.
type PlanPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	From    string `json:"from"`    // registry, archive, or the host of an address
	Carried bool   `json:"carried"` // its content is in the archive
	Direct  bool   `json:"direct"`  // the profile itself depends on it
}

// Archive is a profile's archive that has been read and found sound.
type Archive struct {
	Plan Plan

	file     string // on this machine
	source   string // as it was named
	shown    string // the same without what may be secret
	header   *archive.Header
	files    []staging.SavedFile
	manifest *profile.Manifest
	lock     *install.Lock              // nil without packages
	carried  map[string]store.Integrity // by the member's path
	close    func() error
}

// Close takes away what was downloaded.
func (a *Archive) Close() error { return a.close() }

// OpenArchive reads the archive in a file, or at an http(s) address, and checks
// all of it: nothing in it is trusted. Lines of its .npmrc that do more than name
// registries are left out unless opts includes the file.
func OpenArchive(ctx context.Context, env Env, source string, opts ImportOptions) (a *Archive, err error) {
	a = &Archive{source: source, shown: source, carried: map[string]store.Integrity{}, close: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
			a = nil
		}
	}()
	if err := a.fetch(ctx, env, source, opts); err != nil {
		return a, err
	}
	f, err := os.Open(a.file)
	if err != nil {
		return a, fmt.Errorf("open the archive: %w", err)
	}
	defer f.Close()
	a.header, err = archive.Read(f, func(h *archive.Header, m archive.Member, r io.Reader) error { return a.member(ctx, m, r) })
	if err == nil {
		err = a.check(opts)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", a.shown, err)
		if errors.Is(err, archive.ErrOther) {
			err = fault.WithHint(err, "dsh profile export NAME writes one, on the machine that has the profile")
		}
		return a, err
	}
	return a, a.plan()
}

// fetch finds the file of the archive, which it downloads from an address.
func (a *Archive) fetch(ctx context.Context, env Env, source string, opts ImportOptions) error {
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		a.file = env.inDir(source)
		info, err := os.Stat(a.file)
		if err == nil && !info.Mode().IsRegular() {
			return fault.Errorf(fault.Other, "%s is no file; dsh profile import takes what dsh profile export wrote", a.file)
		}
		if err != nil {
			return fmt.Errorf("open the archive: %w", err)
		}
		return nil
	}
	a.shown = registry.ShownAddress(source)
	if opts.Offline {
		return fault.Errorf(fault.Network, "--offline forbids fetching %s", a.shown)
	}
	config, err := registryConfig(env, PluginOptions{}, env.Home.Dir())
	if err != nil {
		return err
	}
	client, err := registry.New(config, registry.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := scratchIn(env.Home.StoreDir())
	if err != nil {
		return err
	}
	a.close = s.close
	a.file, err = install.Download(ctx, client, s.packages, source, opts.Events.Received)
	return err
}

// member takes one member of the archive.
func (a *Archive) member(ctx context.Context, m archive.Member, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if rel, ok := m.File(); ok {
		data, err := io.ReadAll(r)
		mode := os.FileMode(0o644)
		if m.Executable {
			mode = 0o755
		}
		if m.Private || isSecretFile(path.Base(rel)) || registryLogin.Match(data) {
			mode &^= 0o077
		}
		a.files = append(a.files, staging.SavedFile{Path: rel, Mode: mode, Data: data})
		return err
	}
	want, err := store.ParseIntegrity(m.Integrity)
	if err != nil {
		return fault.WithClass(fault.Package, err)
	}
	hash := sha512.New()
	if _, err := io.Copy(hash, r); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != want.String() {
		return fault.Errorf(fault.Package, "it is not the package of its integrity\n\twanted: %s\n\tgot:    %s", want, got)
	}
	a.carried[m.Path] = want
	return nil
}

func (a *Archive) text(rel string) ([]byte, bool) {
	for _, f := range a.files {
		if f.Path == rel {
			return f.Data, true
		}
	}
	return nil, false
}

// check looks at what the archive says: manifest and lockfile have to fit each
// other, and may name nothing on the disk outside the profile.
func (a *Archive) check(opts ImportOptions) (err error) {
	for _, f := range a.files {
		if name := takenFor(f.Path); name != "" {
			return fault.Errorf(fault.Policy, "it has %q, which some systems take for %s", f.Path, name)
		}
	}
	text, ok := a.text(manifestName)
	if !ok {
		return fault.Errorf(fault.Package, "it holds no %s, so it is no profile", manifestName)
	}
	if a.manifest, err = profile.ParseManifest(manifestName, text); err != nil {
		return fault.WithClass(fault.Package, err)
	}
	text, ok = a.text(install.LockName)
	if !ok && len(dependenciesOf(a.manifest)) > 0 {
		return fault.Errorf(fault.Package, "it holds no %s, so nothing says which versions belong to it", install.LockName)
	}
	for _, d := range dependenciesOf(a.manifest) {
		if err := checkSpec(d); err != nil {
			return err
		}
	}
	if ok {
		if a.lock, err = install.ParseLock(install.LockName, text); err != nil {
			return err
		}
		if err := a.lock.Fits(a.manifest, anyDir); err != nil {
			return err
		}
	}
	if err := a.checkOrigins(); err != nil {
		return err
	}
	for _, name := range opts.Include {
		if _, there := a.text(name); !there || path.Base(name) != npmrcName {
			return fault.Errorf(fault.Other, "--include %s: it holds no %s of that name, and takes all other files as they are", name, npmrcName)
		}
	}
	a.cleanNpmrc(opts)
	return a.cleanApprovals()
}

// anyDir stands for the profile's directory where only what is in it counts.
var anyDir = string(filepath.Separator) + "profile"

// checkSpec refuses a dependency on something on the disk outside the profile.
// The text is looked at, because what ".." means depends on the directory.
func checkSpec(d profile.Dependency) error {
	spec, err := install.ParseDependency(d.Name, d.Spec, anyDir)
	if err != nil {
		return fault.WithClass(fault.Package, fmt.Errorf("dependency %s: %w", d.Name, err))
	}
	place := d.Spec
	for _, scheme := range []string{"file:", "link:"} {
		if rest, ok := strings.CutPrefix(place, scheme); ok {
			place = strings.TrimPrefix(rest, "//")
		}
	}
	if local(spec.Kind) && (!spec.Relative || !isInside(place)) {
		return fault.Errorf(fault.Policy, "it depends on %s as %q, a path on its sender's machine", d.Name, d.Spec)
	}
	return nil
}

// checkOrigins refuses packages from outside the profile.
func (a *Archive) checkOrigins() error {
	if a.lock == nil {
		return nil
	}
	for at, n := range a.lock.Nodes {
		if !local(n.Origin.Kind) {
			continue
		}
		if _, first := a.lock.Nodes[n.Origin.Place]; first && n.Origin.Kind == install.Link {
			continue // a link to the same package above
		}
		if !isInside(n.Origin.Place) {
			return fault.Errorf(fault.Policy, "%s in its %s comes from %q, which is not inside the profile", at, install.LockName, n.Origin.Place)
		}
		if !a.holds(n.Origin.Place) {
			return fault.Errorf(fault.Package, "%s in its %s comes from %s, which the archive does not hold", at, install.LockName, n.Origin.Place)
		}
	}
	return nil
}

// holds says whether the archive has a file at a path, or files below it.
func (a *Archive) holds(place string) bool {
	place = path.Clean(place)
	return slices.ContainsFunc(a.files, func(f staging.SavedFile) bool {
		return f.Path == place || strings.HasPrefix(f.Path, place+"/")
	})
}

// cleanNpmrc leaves of an .npmrc what only says where packages are. Its other
// lines could send variables of this machine, and with them tokens, to a server
// that the archive chose.
// Nor may anybody on the way to a registry answer for it.
func (a *Archive) cleanNpmrc(opts ImportOptions) {
	for i, f := range a.files {
		if path.Base(f.Path) != npmrcName || slices.Contains(opts.Include, f.Path) {
			continue
		}
		kept, left := registriesOnly(f.Data, refusedOfOthers)
		if len(left) > 0 {
			a.Plan.Warnings = append(a.Plan.Warnings, fmt.Sprintf("left out of %s: %s; --include %s takes the file as it is", f.Path, strings.Join(left, ", "), f.Path))
			a.files[i].Data = kept
		}
	}
}

// cleanApprovals takes out of the settings for pnpm what its sender said of
// scripts: that they may run here is for somebody here to say.
func (a *Archive) cleanApprovals() error {
	settings, _ := a.text(install.WorkspaceName)
	rules, err := trust.PnpmApprovals(settings, a.manifest.Bytes())
	if err != nil {
		return nil // who reads it for more says it, and nothing runs by it
	}
	var allowed []string
	for _, r := range rules {
		if r.Allowed {
			allowed = append(allowed, r.Package)
		}
	}
	if a.manifest.RemoveFromPnpm(trust.PnpmSettings()...) {
		a.replace(manifestName, a.manifest.Bytes())
	}
	if len(settings) > 0 {
		kept, err := trust.WithoutRules(settings)
		if err != nil {
			return fault.Errorf(fault.Policy, "its %s lets scripts run: %w, so that it cannot be taken out", install.WorkspaceName, err)
		}
		a.replace(install.WorkspaceName, kept)
	}
	settings, _ = a.text(install.WorkspaceName)
	if left, err := trust.PnpmApprovals(settings, a.manifest.Bytes()); err != nil || len(left) > 0 {
		return fault.Errorf(fault.Policy, "its %s says twice which scripts may run, so that it cannot be taken out", manifestName)
	}
	if len(allowed) > 0 {
		a.Plan.Warnings = append(a.Plan.Warnings, fmt.Sprintf("left out: that scripts of %s may run, as its sender said; dsh plugin approve says it here", strings.Join(allowed, ", ")))
	}
	return nil
}

// refusedOfOthers says why a line of somebody else's .npmrc is not taken, "" if it
// is.
func refusedOfOthers(line string) string {
	_, address, _ := strings.Cut(line, "=")
	switch {
	case !isRegistryLine(line):
		return "does more than name a registry"
	case !strings.HasPrefix(strings.ToLower(strings.TrimSpace(address)), "https:"):
		return "names a registry without https"
	}
	return ""
}

// plan says what is in the archive.
func (a *Archive) plan() error {
	p := &a.Plan
	p.From, p.Version, p.Files = a.header.Profile, a.header.Version, len(a.files)
	p.Bundles = append([]string{}, a.manifest.Bundles()...)
	p.Packages, p.Rows, p.Expressions = []PlanPackage{}, []ProjectRow{}, []string{}
	p.Settings = settingsIn(a.files)
	p.Sources = append([]archive.Source{}, a.header.Sources...)
	p.LeftOut = append([]archive.LeftOut{}, a.header.LeftOut...)
	if a.lock != nil {
		for at, n := range a.lock.Nodes {
			if _, first := a.lock.Nodes[n.Origin.Place]; first {
				continue
			}
			name := strings.TrimPrefix(at[strings.LastIndex(at, "node_modules/"):], "node_modules/")
			_, _, depends := a.manifest.Dependency(name)
			p.Packages = append(p.Packages, PlanPackage{
				Name: name, Version: n.Version, From: fromWhere(n.Origin), Carried: local(n.Origin.Kind) || a.carries(n.Package),
				Direct: depends && at == "node_modules/"+name,
			})
		}
		slices.SortFunc(p.Packages, func(a, b PlanPackage) int {
			return strings.Compare(a.Name+"\x00"+a.Version, b.Name+"\x00"+b.Version)
		})
		p.Packages = slices.Compact(p.Packages)
	}
	text, ok := a.text(patchFile)
	if !ok {
		return nil
	}
	patches, err := compose.ParsePatches(compose.Source{File: patchFile, Dir: anyDir}, text)
	if err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("the profile's own layer cannot be used: %v", err))
		return nil
	}
	report := &TrustReport{}
	walk := projectWalk{report, map[*compose.List]bool{}, map[compose.Value]bool{}}
	for _, patch := range patches {
		walk.patch(patch)
		walk.expressions(patch.Map)
	}
	for _, row := range report.Inserts {
		if file, ok := compose.FilePath(row.Plugin); ok {
			if rel, err := filepath.Rel(anyDir, file); err == nil && filepath.IsLocal(rel) {
				row.Plugin = "./" + filepath.ToSlash(rel)
			}
		}
		p.Rows = append(p.Rows, row)
	}
	p.Expressions = append(p.Expressions, report.Expressions...)
	return nil
}

func (a *Archive) carries(pkg *install.Package) bool {
	if pkg.Origin.Kind == install.Git { // the hash of its archive is not its own
		_, ok := a.carried[archivePath(pkg)]
		return ok
	}
	for _, carried := range a.carried {
		if carried == pkg.Integrity {
			return true
		}
	}
	return false
}

// fromWhere is where a package comes from, in one word.
func fromWhere(o install.Origin) string {
	switch {
	case local(o.Kind):
		return o.Place
	case o.Place == "":
		return "registry"
	default:
		return registry.ShownAddress(o.Place)
	}
}

// Imported says which profile an archive became.
type Imported struct {
	Profile string             `json:"profile"`
	Dir     string             `json:"dir"`
	Plan    Plan               `json:"archive"`
	Tree    install.TreeChange `json:"packages"`
	Builds
	// Warnings are about the profile as it is here; the plan has its own.
	Warnings []string `json:"-"`
}

// CheckName says which name the imported profile gets, or why it cannot be.
func (a *Archive) CheckName(env Env, opts ImportOptions) (profile.Name, error) {
	text := opts.Name
	if text == "" {
		text = a.header.Profile
	}
	name, err := env.newName(text)
	if err == nil {
		err = profile.CheckShipped(name, a.manifest.Bundles())
	}
	if err != nil && a.shown != a.source {
		return name, fault.WithHint(err, "the same command with --name NAME") // the address may hold a secret
	}
	return name, fault.WithHint(err, "dsh profile import --name NAME %s", fault.ShellWord(a.shown))
}

// Import makes a profile of an archive, with exactly the packages of its
// lockfile or not at all. Nothing of it runs.
func Import(ctx context.Context, env Env, a *Archive, opts ImportOptions) (done *Imported, err error) {
	name, err := a.CheckName(env, opts)
	if err != nil {
		return nil, err
	}
	if from, err := profile.ParseName(a.header.Profile); err == nil && a.manifest.Rename(from, name) {
		a.replace(manifestName, a.manifest.Bytes())
	}
	tx, p, err := env.begin(ctx, name, func(dir string) error { return writeSaved(dir, a.files) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if !p.Created {
		return nil, existing(&profile.TakenError{Name: name, By: name}) // somebody was faster
	}
	done = &Imported{Profile: name.String(), Dir: p.Dir, Plan: a.Plan}
	find := findPackage(nil)
	if a.lock != nil {
		err := env.withJob(PluginOptions{Name: name, Offline: opts.Offline, Events: opts.Events}, tx, p, func(j *install.Job) error {
			if err := a.fill(ctx, j, tx.Dir()); err != nil {
				return fmt.Errorf("%s: %w", a.shown, err)
			}
			result, err := j.Restore(ctx, p.Manifest, a.lock)
			if err != nil {
				return err
			}
			done.Tree, done.Warnings, done.Builds = result.Tree, result.Warnings, buildsOf(result)
			find = stagedPackages(p.Dir, result)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	wrong, err := problems(env, p, find)
	if err != nil {
		return nil, err
	}
	for _, f := range wrong {
		done.Warnings = append(done.Warnings, warningOf(f))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	done.Warnings = append(done.Warnings, tx.Warnings()...)
	if p, err := profile.Read(env.Home, name); err == nil {
		done.Warnings = append(done.Warnings, addedOnDisk(nil, onDisk(ctx, env, p, false))...)
	}
	return done, nil
}

func (a *Archive) replace(rel string, data []byte) {
	for i := range a.files {
		if a.files[i].Path == rel {
			a.files[i].Data = data
		}
	}
}

// fill brings into the store what the archive holds of the lockfile's packages.
// The store takes content only under the hash that it has.
func (a *Archive) fill(ctx context.Context, j *install.Job, dir string) error {
	needed := map[store.Integrity]bool{}
	trees := map[string]store.Integrity{} // of git repositories, by the member's path
	for at, n := range a.lock.Nodes {
		needed[n.Integrity] = true
		var err error
		switch n.Origin.Kind {
		case install.Git:
			trees[archivePath(n.Package)] = n.Integrity
		case install.Archive:
			data, _ := a.text(path.Clean(n.Origin.Place))
			_, err = j.Store.AddTarball(ctx, bytes.NewReader(data), n.Integrity)
		case install.Folder:
			var entry store.Entry
			entry, err = j.Store.AddFolder(ctx, filepath.Join(dir, filepath.FromSlash(n.Origin.Place)))
			if err == nil && entry.Integrity != n.Integrity {
				err = &store.MismatchError{Want: n.Integrity, Got: entry.Integrity}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	f, err := os.Open(a.file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = archive.Read(f, func(_ *archive.Header, m archive.Member, r io.Reader) error {
		id, ok := a.carried[m.Path]
		tree, isTree := trees[m.Path]
		if isTree {
			id = tree
		}
		if !ok || !needed[id] {
			return ctx.Err()
		}
		if entry, ok := j.Store.Get(id); ok && entry.Intact() {
			return ctx.Err()
		}
		if isTree {
			return install.AddPackedTree(ctx, j.Store, r, id)
		}
		_, err := j.Store.AddTarball(ctx, r, id)
		return err
	})
	return err
}
