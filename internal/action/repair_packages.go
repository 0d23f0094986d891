package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/inspect"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/installation"
	"dsh/internal/patchedit"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// dependencies are those of the manifest as it will be, as a lockfile has them.
func (r *repair) dependencies() map[string]string {
	wanted := map[string]string{}
	for _, kind := range []profile.DependencyKind{profile.OptionalDependencies, profile.DevDependencies, profile.Dependencies} {
		for _, d := range r.manifest.Dependencies(kind) {
			wanted[d.Name] = d.Spec
			if d.Spec == "" {
				wanted[d.Name] = "*"
			}
		}
	}
	return wanted
}

// lookAtLock reads dsh-lock.yaml.
func (r *repair) lookAtLock() error {
	text, err := r.text(install.LockName)
	if err != nil {
		r.newer = true // or somebody's; nothing is laid out beside it
		return r.unreadable(LockBroken, install.LockName, err)
	}
	file := r.path(install.LockName)
	if install.IsManager(install.Maker(r.dir)) {
		// It says nothing of what is there; pnpm's or npm's own does.
		if _, err := install.ParseLock(file, text); err != nil && text != nil {
			r.remove = append(r.remove, install.LockName)
			r.add(Damage{
				Code: LockBroken, File: file, Problem: err.Error(), Mend: "it goes, for node_modules is not dsh's, and is kept as " + r.keep(install.LockName),
			})
		}
		return nil
	}
	wanted := r.dependencies()
	laidOut := install.LaidOut(r.dir)
	switch {
	case text == nil && laidOut != nil && len(wanted) > 0:
		r.layOut = true
		r.add(Damage{
			Code: LockMissing, File: file, Problem: "there is no lockfile, and node_modules is dsh's", packages: true,
			Mend: "it is made from " + r.chooseLock(laidOut),
		})
	case text == nil:
	default:
		r.lock, err = install.ParseLock(file, text)
		if _, newer := errors.AsType[*install.LockFormatError](err); newer {
			r.newer = true
			r.add(Damage{
				Code: LockNewer, File: file, Problem: err.Error(), ByHand: "use the dsh that wrote it, or take the file away and run this again",
			})
		} else if err != nil {
			r.layOut = true
			r.add(Damage{
				Code: LockBroken, File: file, Problem: err.Error(), packages: true,
				Mend: "it is made from " + r.chooseLock(laidOut) + ", and the broken one is kept as " + r.keep(install.LockName),
			})
		} else if !maps.Equal(r.lock.Wanted, wanted) {
			r.layOut = true
			r.add(Damage{
				Code: LockOutdated, File: file, Problem: "it does not have the dependencies of package.json", packages: true,
				Mend: "what differs is resolved anew, and installed",
			})
		}
	}
	return nil
}

// chooseLock chooses the lock whose versions count where the lockfile is lost,
// and says in words which: one that has the dependencies of the manifest.
func (r *repair) chooseLock(laidOut *install.Lock) string {
	wanted := r.dependencies()
	if laidOut != nil && maps.Equal(laidOut.Wanted, wanted) {
		r.from = laidOut
		return "what node_modules says it holds"
	}
	_, from := r.generationWith(install.LockName, func(text []byte) bool {
		lock, err := install.ParseLock(install.LockName, text)
		if err == nil && maps.Equal(lock.Wanted, wanted) {
			r.from = lock
		}
		return r.from != nil
	})
	switch {
	case r.from != nil:
		return from
	case laidOut != nil:
		r.from = laidOut
		return "what node_modules says it holds, and what is missing there is resolved anew"
	}
	return "package.json: all dependencies are resolved anew"
}

// lookAtModules looks at node_modules.
func (r *repair) lookAtModules(packages *store.Store) error {
	dir := r.path("node_modules")
	switch maker := install.Maker(r.dir); {
	case r.newer:
	case maker == "":
		return r.lookAtDependencies(packages)
	case maker == "dsh":
		if err := r.lookAtDependencies(packages); err != nil {
			return err
		}
		return r.lookAtStrays()
	case install.IsManager(maker):
		return r.lookAtForeign(maker)
	default:
		r.layOut = true
		r.add(Damage{
			Code: ModulesUnusable, File: dir, Problem: "it was made by " + strings.TrimRight(maker, ",") + ", and nothing says what it holds", packages: true,
			Mend: "it is laid out anew from " + r.lockWords(),
		})
	}
	return nil
}

// lockWords says from what packages are laid out.
func (r *repair) lockWords() string {
	switch f := r.foreign(); {
	case r.lock != nil:
		return install.LockName
	case r.from != nil:
		return "what was installed"
	case f != nil:
		return filepath.Base(f.File)
	}
	return "package.json"
}

// foreign is another package manager's lockfile that can be taken over; nil
// where there is none, or where dsh has one of its own.
func (r *repair) foreign() *install.Foreign {
	if r.lock != nil || r.from != nil {
		return nil
	}
	if !r.looked {
		r.looked = true
		if f, err := install.ReadForeign(r.dir, r.manifest); err == nil && len(f.Refused) == 0 {
			r.other = f
		}
	}
	return r.other
}

// lookAtForeign looks at a node_modules of pnpm or npm, which is as good as any
// where nothing is missing.
func (r *repair) lookAtForeign(maker string) error {
	dir := r.path("node_modules")
	missing, err := r.missingDependencies()
	if err != nil {
		return err
	}
	for _, name := range missing {
		r.layOut = true
		r.add(Damage{
			Code: NotInstalled, File: filepath.Join(dir, filepath.FromSlash(name)), Problem: fmt.Sprintf("%s, a dependency, is not whole there", name), packages: true,
			Mend: "node_modules is laid out anew from " + r.lockWords(),
		})
	}
	hosts := r.hostPackages()
	if len(missing) == 0 && len(hosts) > 0 && maker == "npm" {
		// npm puts peers there, whatever pnpm's settings say.
		r.layOut = true
		r.add(Damage{
			Code: ModulesForeign, File: dir, packages: true,
			Problem: "npm laid it out, and put packages of the harness into it: " + strings.Join(hosts, ", "),
			Mend:    "it is laid out anew from " + r.lockWords(),
		})
		return nil
	}
	if len(missing) == 0 {
		d := Damage{Code: ModulesForeign, File: dir, Note: true, Problem: maker + " laid it out"}
		if r.foreign() != nil {
			d.ByHand = r.command("profile", "adopt") + " takes it over, in the same versions"
		}
		r.add(d)
	}
	return nil
}

// hostPackages are the packages of the harness at the top of node_modules that
// the profile does not depend on, sorted.
func (r *repair) hostPackages() []string {
	wanted := r.dependencies()
	return slices.DeleteFunc(r.topPackages(), func(name string) bool {
		_, direct := wanted[name]
		return direct || !inspect.IsHost(name) || slices.Contains(r.manifest.Bundles(), name)
	})
}

// topPackages are the folders at the top of node_modules, scopes and links left
// out, sorted.
func (r *repair) topPackages() []string {
	var names []string
	list := func(scope string) {
		entries, err := os.ReadDir(r.path("node_modules", scope))
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.IsDir() && !(scope == "" && strings.HasPrefix(e.Name(), "@")) {
				names = append(names, strings.TrimPrefix(scope+"/"+e.Name(), "/"))
			}
		}
	}
	list("")
	entries, err := os.ReadDir(r.path("node_modules"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "@") {
			list(e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// missingDependencies are the dependencies without a package in node_modules,
// those left out that may be.
func (r *repair) missingDependencies() ([]string, error) {
	var missing []string
	for name := range r.dependencies() {
		if _, kind, _ := r.manifest.Dependency(name); kind == profile.OptionalDependencies || !install.ValidName(name) {
			continue
		}
		if lost, err := r.linkLost(name); err != nil || lost {
			if err != nil {
				return nil, err
			}
			continue
		}
		if _, err := installation.OpenPackage(r.path("node_modules", filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// linkLost tells of a dependency that is a link to a folder that is not there.
func (r *repair) linkLost(name string) (bool, error) {
	wanted, _, ok := r.manifest.Dependency(name)
	dir, err := realDir(r.dir) // whence links in node_modules lead
	if err != nil {
		return false, err
	}
	spec, err := install.ParseDependency(name, wanted, dir)
	if _, _, isPlugin := r.lock.AgentPlugin(name); !ok || err != nil || spec.Kind != install.Link || isPlugin {
		return false, nil
	}
	_, err = os.Stat(spec.Place)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	d := Damage{
		Code: LinkLost, File: r.path("node_modules", filepath.FromSlash(name)), Problem: fmt.Sprintf("%s is a link to %s, and there is no such folder", name, spec.Place),
		ByHand: fmt.Sprintf("put the folder there, or %s, or add it from where it is now", r.command("plugin", "remove", name)),
	}
	if !slices.ContainsFunc(r.damages, func(known Damage) bool { return known.Code == d.Code && known.File == d.File }) {
		r.add(d)
	}
	return true, nil
}

// lookAtDependencies looks whether node_modules holds what the lockfile says.
func (r *repair) lookAtDependencies(packages *store.Store) error {
	missing, err := r.missingDependencies()
	if err != nil {
		return err
	}
	for _, name := range missing {
		d := Damage{Code: NotInstalled, File: r.path("node_modules", filepath.FromSlash(name)), Problem: name + ", a dependency, is not installed", packages: true}
		if _, err := os.Lstat(d.File); err == nil {
			d.Code, d.Problem = PackageDamaged, "the folder of "+name+" has no package.json"
		}
		d.Mend = "it is installed as " + r.lockWords() + " says"
		r.layOut = true
		r.add(d)
	}
	if r.lock == nil {
		return nil
	}
	damaged, err := install.Damaged(r.dir, r.env.Home.PluginDataDir(r.opts.Name), r.lock, packages)
	if err != nil {
		return err
	}
	for _, rel := range damaged {
		file := r.path(filepath.FromSlash(rel))
		if slices.ContainsFunc(r.damages, func(d Damage) bool { return d.File == file && d.packages }) {
			continue
		}
		if rel == "node_modules" && len(missing) > 0 {
			continue // said for each
		}
		r.layOut = true
		r.add(Damage{
			Code: PackageDamaged, File: file, Problem: rel + " is not as it was installed", packages: true,
			Mend: "it is laid out anew, from the store or fetched again",
		})
	}
	for _, at := range install.DamagedArchives(r.dir, r.lock) {
		r.layOut = true
		r.add(Damage{
			Code: PackageDamaged, File: r.path(filepath.FromSlash(at)), Problem: at + ", an archive that the profile keeps, is lost or damaged", packages: true,
			Mend: "it is made anew from the store",
		})
	}
	return nil
}

// lookAtStrays finds what stands in node_modules and nobody asked for: host
// packages, links to nowhere, and folders that a package manager's broken
// command left. Other packages belong to whoever put them there, and so do other
// hidden folders: tools keep caches and generated code there, which is in no
// generation.
func (r *repair) lookAtStrays() error {
	laidOut := install.LaidOut(r.dir)
	known := func(name string) bool {
		_, ok := laidOut.Nodes["node_modules/"+name]
		return ok
	}
	stray := func(code DamageCode, name, problem string) {
		rel := "node_modules/" + name
		r.remove = append(r.remove, rel)
		r.add(Damage{Code: code, File: r.path(filepath.FromSlash(rel)), Problem: problem, Mend: "it is removed", packages: true})
	}
	for _, scope := range append([]string{""}, r.scopes()...) {
		entries, err := os.ReadDir(r.path("node_modules", scope))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := strings.TrimPrefix(scope+"/"+e.Name(), "/")
			switch {
			case name == ".bin" || name == ".dsh-tree" || name == ".dsh-builds" || known(name) || scope == "" && strings.HasPrefix(name, "@"):
			case e.Type()&fs.ModeSymlink != 0:
				if _, err := os.Stat(r.path("node_modules", filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
					stray(StrayPackage, name, "it is a link to nowhere, and nobody depends on it")
				}
			case e.IsDir() && strings.HasPrefix(e.Name(), ".") && r.isLeftover(scope, e.Name(), known):
				stray(StrayPackage, name, "it is left of a package manager's change")
			case e.IsDir() && strings.HasPrefix(e.Name(), "."):
				r.add(Damage{
					Code: StrayPackage, File: r.path("node_modules", filepath.FromSlash(name)), Note: true,
					Problem: "it is no package, and stays: a tool may keep there what it needs",
				})
			case e.IsDir() && inspect.IsHost(name) && !slices.Contains(r.manifest.Bundles(), name):
				stray(HostPackage, name, "it is a second copy of a package of the harness, and nobody depends on it")
			}
		}
	}
	return nil
}

// setAside is the name that npm gives to the folder of a package while it puts
// another in its place: retire-path.js of @npmcli/arborist.
var setAside = regexp.MustCompile(`^\.(.+)-[0-9A-Za-z]{8}$`)

// isLeftover recognises a hidden folder in node_modules, or in one of its scopes,
// that a package manager's broken command left: a package of npm that is set
// aside, and the packages of pnpm where nothing leads to them.
func (r *repair) isLeftover(scope, name string, known func(string) bool) bool {
	if scope == "" && name == ".pnpm" {
		return !r.leadsInto(r.path("node_modules", name))
	}
	of := setAside.FindStringSubmatch(name)
	if of == nil {
		return false
	}
	_, err := os.Stat(r.path("node_modules", scope, of[1], mainFile))
	return err == nil || known(strings.TrimPrefix(scope+"/"+of[1], "/"))
}

// leadsInto says whether a link at the top of node_modules leads into a folder.
func (r *repair) leadsInto(folder string) bool {
	for _, scope := range append([]string{""}, r.scopes()...) {
		dir := r.path("node_modules", scope)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return true // who knows
		}
		for _, e := range entries {
			target, err := os.Readlink(filepath.Join(dir, e.Name()))
			if err == nil && !filepath.IsAbs(target) {
				target = filepath.Join(dir, target)
			}
			if err == nil && strings.HasPrefix(target, folder+string(filepath.Separator)) {
				return true
			}
		}
	}
	return false
}

// scopes are the folders of scopes in node_modules.
func (r *repair) scopes() []string {
	var scopes []string
	entries, err := os.ReadDir(r.path("node_modules"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "@") {
			scopes = append(scopes, e.Name())
		}
	}
	return scopes
}

// lookAtBundles goes through the list of bundles.
func (r *repair) lookAtBundles() error {
	file := r.path(mainFile)
	bundles := r.manifest.Bundles()
	var stay []string
	for _, name := range bundles {
		d := Damage{File: file}
		switch inBox, err := r.inBox(name); {
		case err != nil:
			return err
		case slices.Contains(stay, name):
			d.Code, d.Problem, d.Mend = BundleTwice, fmt.Sprintf("bundle %s is listed twice", name), "it stays in its first place"
		case inBox:
			stay = append(stay, name)
			continue
		default:
			if d = r.lookAtBundle(name); d.Mend == "" || d.packages {
				stay = append(stay, name)
			}
			if d.Code == "" {
				continue
			}
		}
		r.add(d)
	}
	if !slices.Equal(stay, bundles) {
		r.manifest.SetBundles(stay)
		r.write[mainFile] = r.manifest.Bytes()
	}
	return nil
}

func (r *repair) inBox(name string) (bool, error) {
	_, ok, err := r.env.Installation.Bundle(name)
	return ok, err
}

// lookAtBundle looks at a bundle that is not in the box. The damage has no code
// where nothing is wrong, or where it was told of as a dependency.
func (r *repair) lookAtBundle(name string) Damage {
	d := Damage{File: r.path(mainFile)}
	_, _, depends := r.manifest.Dependency(name)
	pkg, found, err := installation.Find(r.dir, name)
	if err != nil || !found {
		switch {
		case depends:
			return Damage{} // it is a dependency that is not installed
		case err != nil:
			d.Code, d.Problem = BundleBroken, fmt.Sprintf("bundle %s cannot be read: %v", name, err)
			d.ByHand = "set it aside: " + fault.ShellWords("dsh", "config", "disable", "--profile", r.opts.Name.String(), "--bundle", name)
			return d
		}
		d.Code, d.Problem = BundleUnknown, fmt.Sprintf("bundle %s is listed, and is neither installed, nor a dependency, nor in the box", name)
		d.Mend = "it is taken off the list"
		return d
	}
	files, err := stack.PatchFiles(pkg.Manifest)
	switch {
	case err != nil:
		d.Code, d.Problem = BundleBroken, fmt.Sprintf("the declaration of bundle %s cannot be used: %v", name, err)
		d.ByHand = "ask its author, or set it aside: " + fault.ShellWords("dsh", "config", "disable", "--profile", r.opts.Name.String(), "--bundle", name)
	case len(files) == 0:
		d.Code, d.Problem = BundleNoLayer, fmt.Sprintf("bundle %s is listed, and its package declares no layer (dsh.bundle.patch in its package.json)", name)
		d.Mend = "it is taken off the list; its package stays"
	default:
		return Damage{}
	}
	return d
}

// lookAtRows finds rows of the user whose packages have gone, and host packages
// that others brought. Both need a profile that composes.
func (r *repair) lookAtRows(ctx context.Context) error {
	if slices.ContainsFunc(r.damages, func(d Damage) bool { return d.Code == ManifestBroken || d.Code == ManifestMissing }) {
		return nil // what is installed is not known before that is mended
	}
	p := &profile.Profile{Name: r.opts.Name, Dir: r.dir, Manifest: r.manifest}
	c, err := withoutProject(r.env, p, nil)
	if err != nil {
		return nil // the check tells why
	}
	for _, f := range inspected(ctx, r.env, c, false) {
		switch {
		case f.Code == inspect.HostCopy && !slices.Contains(r.remove, "node_modules/"+filepath.ToSlash(strings.TrimPrefix(f.File, r.path("node_modules")+string(filepath.Separator)))) &&
			!slices.ContainsFunc(r.damages, func(d Damage) bool { return d.Code == ModulesForeign && !d.Note }):
			r.add(Damage{Code: HostPackage, File: f.File, Note: true, Problem: f.Message, ByHand: f.Remedy})
		case f.Code == inspect.RowUnresolved && f.Severity == check.Error && (f.File == p.PatchPath() || f.File == r.env.Home.PatchPath()):
			r.unresolvedRow(f.File, f.Row, f.Message)
		}
	}
	return nil
}

// unresolvedRow tells of a row of the user, and switches it off if that is
// wanted.
func (r *repair) unresolvedRow(file, row, problem string) {
	d := Damage{Code: RowUnresolved, File: file, Problem: problem, ByHand: "take the row out, or " + r.command("profile", "repair", "--rows") + " to switch it off"}
	if r.opts.Rows && row != "" {
		if file == r.env.Home.PatchPath() {
			r.homeRows = append(r.homeRows, row)
			d.Mend, d.ByHand = "row "+row+" is switched off, for all profiles", ""
		} else if r.switchOff(row) {
			d.Mend, d.ByHand = "row "+row+" is switched off", ""
		}
	}
	r.add(d)
}

// switchOff switches a row off that the profile's patch inserts.
func (r *repair) switchOff(row string) bool {
	text := r.write[patchName]
	if text == nil {
		text = r.read[patchName]
	}
	src := r.source(r.path(patchName), compose.ProfileLayer)
	patches, err := compose.ParsePatches(src, text)
	if err != nil {
		return false
	}
	for _, patch := range patches {
		insert, _ := patch.Map.Get("insert")
		at := insertedRow(insert, row, patchedit.Path{strconv.Itoa(patch.Entry), "insert"})
		if at == nil {
			continue
		}
		edited, err := patchedit.Set(src, text, append(at, "disabled"), true)
		if err != nil {
			return false
		}
		r.write[patchName] = edited
		return true
	}
	return false
}

// insertedRow is the place of a row with an id in a list at a place, or in the
// groups in it; nil where there is none.
func insertedRow(list compose.Value, id string, at patchedit.Path) patchedit.Path {
	rows, ok := list.(*compose.List)
	if !ok || len(at) > 64 { // a list that holds itself by its alias
		return nil
	}
	for i, item := range rows.Items {
		row, _ := item.(*compose.Map)
		place := append(slices.Clip(at), strconv.Itoa(i))
		if v, _ := row.Get("id"); compose.Truthy(v) && compose.IDText(v) == id {
			return place
		}
		config, _ := row.Get("config")
		if found := insertedRow(config, id, append(slices.Clip(place), "config")); found != nil {
			return found
		}
	}
	return nil
}
