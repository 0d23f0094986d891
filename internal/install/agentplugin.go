package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/agentplugin"
	"dsh/internal/fault"
	"dsh/internal/install/manifest"
	"dsh/internal/npmrange"
)

// PluginMode says whether what a spec asks for may be an Agent Plugin. Packages
// that others depend on never are. The zero value is that it may not.
type PluginMode uint8

const (
	NoPlugin     PluginMode = iota // it is a package, or a folder with a layer
	MayBePlugin                    // it is one unless it declares a layer of its own
	MustBePlugin                   // the user says so, whatever layer it declares
)

// pluginFile is the manifest of an Agent Plugin, at the top of its folder.
const pluginFile = "plugin.json"

// linked reports whether what stands in node_modules is a link and no content.
func (p *Package) linked() bool { return p.Origin.Kind == Link || p.AgentPlugin }

// isPlugin reports whether a folder is to be taken for an Agent Plugin: nothing
// else, or a package without a layer whose plugin.json is of that format, for
// other programs have files of that name too. both says that it is one and has a
// layer of its own, which counts.
func isPlugin(ctx context.Context, folder folderOfPackages, mode PluginMode) (is, both bool, err error) {
	if mode == NoPlugin || !folder.Has(pluginFile) {
		return false, false, nil
	}
	if mode == MustBePlugin || !folder.Has("package.json") {
		return true, false, nil
	}
	texts, err := folder.ReadFiles(ctx, []string{"package.json", pluginFile})
	if err != nil {
		return false, false, err
	}
	if !namesSchema(texts[1]) {
		return false, false, nil
	}
	m, err := manifest.Parse(texts[0])
	if err == nil && m.Layer {
		return false, true, nil
	}
	return true, false, nil
}

// namesSchema reports whether a plugin.json says that it is of a version of the
// Agent Plugins format, be it one that is known or not.
func namesSchema(text []byte) bool {
	var said struct {
		Schema string `json:"$schema"`
	}
	_ = json.Unmarshal(text, &said) // what does not read names none
	known := agentplugin.V1_0_0.PluginSchema()
	host := known[:strings.LastIndex(known, "/schemas/")+1]
	return strings.HasPrefix(said.Schema, host)
}

// folderAt is a folder of this machine as isPlugin looks at it.
type folderAt string

// Folders implements folderOfPackages: nothing below it is looked for.
func (f folderAt) Folders(string) []string { return nil }

// Has implements folderOfPackages.
func (f folderAt) Has(file string) bool {
	_, err := os.Lstat(filepath.Join(string(f), file))
	return err == nil
}

// ReadFiles implements folderOfPackages.
func (f folderAt) ReadFiles(_ context.Context, names []string) ([][]byte, error) {
	var texts [][]byte
	for _, name := range names {
		text, err := readPackageText(name, filepath.Join(string(f), name))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// loadPlugin reads the Agent Plugin in a directory, which may be a link.
func loadPlugin(dir string) (*agentplugin.Plugin, []agentplugin.Diagnostic, error) {
	source, err := agentplugin.OpenDirectory(dir)
	if err != nil {
		return nil, nil, err
	}
	defer source.Close()
	return agentplugin.Load(source, agentplugin.Options{})
}

// plugin is the package that an Agent Plugin is, whose files are in dir. One that
// is rejected is an error with all that is wrong with it; what of it is skipped is
// told once it is installed.
func (s *sources) plugin(what, dir string) (*Package, error) {
	p, found, err := loadPlugin(dir)
	if err != nil {
		return nil, within(what, err)
	}
	pkg := &Package{Name: p.Manifest.Name.String(), Version: pluginVersion(p.Manifest.Version), AgentPlugin: true}
	var lines []string
	for _, d := range found {
		if d.Effect == agentplugin.Skipped {
			lines = append(lines, d.String())
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "package.json")); err == nil {
		if m, err := manifest.Parse(text); err == nil && len(m.Dependencies)+len(m.OptionalDependencies) > 0 {
			lines = append(lines, "its package.json has dependencies, which are not installed: an Agent Plugin brings all that it needs")
		}
	}
	if len(lines) > 0 {
		s.notes.Store(pkg.describe(), strings.Join(lines, "\n\t"))
	}
	return pkg, nil
}

// pluginVersion is the version as package.json may have it. Authors may write
// there what they like.
func pluginVersion(written string) string {
	if _, err := npmrange.ParseVersion(written); err != nil || written == "" || strings.TrimSpace(written) != written {
		return noVersion
	}
	return written
}

// offered says what a package with a layer of its own is besides, and how to have
// that too.
func (s *sources) offered(spec Spec, dir string) string {
	p, _, err := loadPlugin(dir)
	if err != nil || len(p.Skills)+len(p.Servers) == 0 {
		return ""
	}
	var parts []string
	for _, of := range []struct {
		number int
		one    string
	}{{len(p.Skills), "skill"}, {len(p.Servers), "MCP server"}} {
		switch of.number {
		case 0:
		case 1:
			parts = append(parts, "one "+of.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", of.number, of.one))
		}
	}
	as := p.Manifest.Name.String() + "-agent"
	if _, err := agentplugin.ParseName(as); err != nil || len(as) > 64 {
		as = "NAME"
	}
	return fmt.Sprintf("it is an Agent Plugin too, with %s, which its own layer may not mount; to add those: %s",
		strings.Join(parts, " and "), s.job.command("add", spec.Shown(), "--agent-plugin", "--as", as))
}

// asPlugin looks whether a content that was asked for is an Agent Plugin: then it
// returns the package, else nil.
func (s *sources) asPlugin(ctx context.Context, spec Spec, folder folderOfPackages, dir string) (*Package, error) {
	is, both, err := isPlugin(ctx, folder, spec.Plugin)
	switch {
	case err != nil:
		return nil, err
	case is:
		pkg, err := s.plugin(shownPlace(spec), dir)
		if _, rejected := errors.AsType[*agentplugin.RejectedError](err); rejected {
			err = fault.WithHint(err, "dsh agent-plugin check %s", fault.ShellWord(spec.Shown()))
		}
		return pkg, err
	case spec.Plugin == MustBePlugin:
		return nil, fault.Errorf(fault.Package, "%s is no Agent Plugin: it has no %s", shownPlace(spec), pluginFile)
	case both:
		if note := s.offered(spec, dir); note != "" {
			if m, err := readPackageJSON(shownPlace(spec), dir); err == nil {
				s.notes.Store((&Package{Name: m.Name, Version: versionOf(m)}).describe(), note)
			}
		}
	}
	return nil, nil
}

// registryPlugin is a package of a registry as the Agent Plugin that it is, or as
// it is. What it is only its content says.
func (s *sources) registryPlugin(ctx context.Context, spec Spec, pkg *Package) (found *Package, name string, err error) {
	if s.job.DryRun || !s.mayFetch(pkg) || !ThisPlatform().runs(pkg) {
		if entry, ok := s.job.Store.Get(pkg.Integrity); ok {
			return s.registryContent(ctx, spec, pkg, entry.Dir(), entryFolder{entry})
		}
		return pkg, "", nil
	}
	arrival := s.contents.want(pkg)
	if err := arrival.wait(ctx); err != nil {
		return nil, "", err
	}
	if arrival.err != nil {
		return pkg, "", nil // whoever lays it out says why
	}
	return s.registryContent(ctx, spec, pkg, arrival.entry.Dir(), entryFolder{arrival.entry})
}

func (s *sources) registryContent(ctx context.Context, spec Spec, pkg *Package, dir string, folder folderOfPackages) (found *Package, name string, err error) {
	plugin, err := s.asPlugin(ctx, spec, folder, dir)
	if plugin == nil || err != nil {
		return pkg, "", within(pkg.describe(), err)
	}
	if note, ok := s.notes.Load(plugin.describe()); ok {
		s.notes.Store(pkg.describe(), note)
	}
	// The registry knows it by its own name.
	return &Package{
		Name: pkg.Name, Version: pkg.Version, Origin: pkg.Origin, Integrity: pkg.Integrity,
		OS: pkg.OS, CPU: pkg.CPU, Libc: pkg.Libc, AgentPlugin: true,
	}, plugin.Name, nil
}

// findPlugin is find for what may be an Agent Plugin. A folder that is one is
// copied and not linked, so that the profile has what was checked: used is the
// spec of that. name is the one in the manifest of an Agent Plugin, "" of what is
// none.
func (s *sources) findPlugin(ctx context.Context, spec Spec) (pkg *Package, used Spec, name string, err error) {
	if spec.Kind == Link {
		is, both, err := isPlugin(ctx, folderAt(spec.Place), spec.Plugin)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, spec, "", within(shownPlace(spec), err)
		case is:
			spec.Kind = Folder
		case both:
			if note := s.offered(spec, spec.Place); note != "" {
				s.job.notes = append(s.job.notes, shownPlace(spec)+": "+note)
			}
		case spec.Plugin == MustBePlugin:
			return nil, spec, "", fault.Errorf(fault.Package, "%s is no Agent Plugin: it has no %s", shownPlace(spec), pluginFile)
		}
	}
	pkg, err = s.find(ctx, spec)
	switch {
	case err != nil:
		return nil, spec, "", err
	case spec.Kind == Registry:
		pkg, name, err = s.registryPlugin(ctx, spec, pkg)
	case pkg.AgentPlugin:
		name = pkg.Name
	}
	return pkg, spec, name, err
}

// wrapperSpec is how package.json depends on the wrapper of an Agent Plugin, in a
// form that every package manager understands.
func wrapperSpec(name string) string { return "link:./" + wrapperPlace(name) }

// isWrapped reports whether a package is the Agent Plugin that a dependency on its
// wrapper stands for.
func isWrapped(pkg *Package, name, wanted string) bool {
	return pkg != nil && pkg.AgentPlugin && wanted == wrapperSpec(name)
}

// addPlugin makes an Agent Plugin a dependency, under its own name or the one in
// the spec. own is the former.
func (j *Job) addPlugin(find *sources, spec Spec, pkg *Package, own string, opts AddOptions) (name string, err error) {
	name = cmp.Or(opts.As, own)
	if opts.As == "" && spec.Name != "" && spec.Name != spec.Target {
		name = spec.Name // alias@…
	}
	if spec.Kind == Folder {
		if inside, err := filepath.Rel(filepath.Join(j.Dir, AgentPluginsDir), spec.Place); err == nil && filepath.IsLocal(inside) {
			return "", fault.Errorf(fault.Other, "%s is in a folder of the profile that is dsh's own", spec.Place)
		}
	}
	if err := profileName(name, opts.As != ""); err != nil {
		return "", fault.WithHint(err, "choose another: %s", j.command("add", spec.Shown(), "--as", "NAME"))
	}
	spec.Name = name
	source, kept := spec, pkg
	if source.Kind == Registry {
		source.Name = source.Target
	}
	from := saved(source, pkg, j.Dir, "", opts.Exact)
	if source.Kind == Registry {
		from = "npm:" + source.Target + "@" + from
	}
	written := Written{From: from, Integrity: pkg.Integrity}
	if m := find.made(spec); m != nil {
		kept, _ = j.keepAs(name, pkg, m)
		written = m.written
	}
	if err := j.freeFor(name, spec, pkg, written.From); err != nil {
		return "", err
	}
	_, kind, had := j.manifest.Dependency(name)
	if opts.Kind != "" || !had {
		kind = cmp.Or(opts.Kind, dependencyKinds[0])
	}
	j.written[name], j.pinned[name] = written, kept
	j.manifest.SetDependency(kind, name, wrapperSpec(name))
	return name, nil
}

// profileName refuses what can be no name of an Agent Plugin in a profile. Whether
// the user chose it decides who is to do something about it.
func profileName(name string, chosen bool) error {
	class := fault.Package
	if chosen {
		class = fault.Other
	}
	if _, err := agentplugin.ParseName(name); err != nil {
		return fault.WithClass(class, fmt.Errorf("%q can be no name of an Agent Plugin in a profile: %w", name, err))
	}
	if !ValidName(name) {
		return fault.Errorf(class, "%q can be no name of an Agent Plugin in a profile, because no package can have it", name)
	}
	return nil
}

// freeFor refuses a name that the profile has for something else.
func (j *Job) freeFor(name string, spec Spec, pkg *Package, from string) error {
	holder := ""
	locked, has := j.locked.at("node_modules/" + name)
	was, _ := j.locked.source(name)
	_, _, depends := j.before.Dependency(name)
	switch {
	case j.InBox != nil && j.InBox(name):
		holder = "a bundle of the installation"
	case has && locked.AgentPlugin && locked.Name == pkg.Name && samePlace(name, was.From, from, j.Dir):
		// the same plugin, as it is now
	case has:
		holder = locked.describe() + ", from " + j.from(locked.Package)
		if locked.AgentPlugin {
			holder = "the Agent Plugin " + locked.describe() + " from " + ShownSpec(was.From)
		}
	case depends:
		holder = "a dependency of that name"
	case slices.Contains(j.before.Bundles(), name):
		holder = "a layer of that name"
	}
	if holder == "" {
		return nil
	}
	return fault.WithHint(fault.Errorf(fault.Package, "the profile has %s, and it cannot have the Agent Plugin %s under that name, too", holder, pkg.describe()),
		"give it another name: %s", j.command("add", spec.Shown(), "--as", "NAME"))
}

// samePlace reports whether two sources are the same package of a registry, the
// same repository, or the same place, in whatever version.
func samePlace(name, a, b, dir string) bool {
	x, errX := ParseDependency(name, a, dir)
	y, errY := ParseDependency(name, b, dir)
	if errX != nil || errY != nil || x.Kind != y.Kind {
		return false
	}
	if x.Kind == Git {
		return withoutUser(x.Git.Remote) == withoutUser(y.Git.Remote) && x.Git.Path == y.Git.Path
	}
	return x.Target == y.Target && x.Place == y.Place && x.Inside == y.Inside
}

// raisePlugin asks the source of an Agent Plugin for what it is now.
func (j *Job) raisePlugin(ctx context.Context, find *sources, name string, locked Located, latest, named bool) error {
	was, ok := j.locked.source(name)
	if !ok {
		return fault.Errorf(fault.Package, "%s: the sources of %s do not say where %s is from", LockName, LockName, name)
	}
	if strings.Contains(was.From, secretMark) {
		err := fault.Errorf(fault.Other, "%s was added with an address of which user, password and query are not kept, for they may be secret: %s", name, was.From)
		if named {
			return fault.WithHint(err, "remove it, and add it again with the whole address: %s", j.command("remove", name))
		}
		j.notes = append(j.notes, err.Error())
		return nil
	}
	spec, err := ParseDependency(name, was.From, j.Dir)
	if err != nil {
		return fmt.Errorf("%s, a source of %s: %w", LockName, name, err)
	}
	if (spec.Kind == Archive || spec.Kind == Folder) && isGone(spec.Place) {
		j.notes = append(j.notes, fmt.Sprintf("%s: %s is not there any more; what was installed from it stays", name, spec.Place))
		return nil
	}
	if spec.Kind == Registry && latest {
		spec.Wanted = ""
	}
	spec.Plugin = MustBePlugin
	if err := find.admits([]Spec{spec}); err != nil {
		return err
	}
	pkg, spec, _, err := find.findPlugin(ctx, spec)
	if err != nil {
		return err
	}
	if !pkg.AgentPlugin {
		// A dry run did not look into it.
		pkg = &Package{Name: locked.Name, Version: pkg.Version, Origin: pkg.Origin, Integrity: pkg.Integrity, AgentPlugin: true}
	}
	if pkg.Name != locked.Name {
		return fault.WithHint(fault.Errorf(fault.Package, "%s holds the Agent Plugin %s now, and held %s", ShownSpec(was.From), pkg.describe(), locked.Name),
			"to take that in its place: %s, then %s", j.command("remove", name), j.command("add", ShownSpec(was.From)))
	}
	written := Written{From: was.From, Integrity: pkg.Integrity}
	if spec.Kind == Registry {
		style := operator(spec.Wanted)
		if latest || style != "" {
			source := spec
			source.Name = source.Target
			written.From = "npm:" + spec.Target + "@" + cmp.Or(style, "^") + pkg.Version
		}
	}
	if m := find.made(spec); m != nil {
		if m.written.Integrity == was.Integrity {
			return nil
		}
		pkg, _ = j.keepAs(name, pkg, m)
		written = m.written
	}
	j.written[name], j.pinned[name] = written, pkg
	return nil
}

// takePlugin makes the Agent Plugin of another profile a dependency. Its content is
// where the spec says, if that is a place on this machine, else where the other
// profile's lockfile says.
func (j *Job) takePlugin(d Taken, from *Lock, n Located) {
	pkg := *n.Package
	written, _ := from.source(d.Name)
	if spec, err := ParseDependency(d.Name, d.Spec, j.Dir); err == nil && isPath(spec.Kind) && spec.Kind != Link {
		pkg.Origin = Origin{spec.Kind, originPlace(spec, j.Dir)}
		if spec.Relative {
			written = Written{From: d.Spec, Integrity: pkg.Integrity}
		}
	}
	j.pinned[d.Name], j.written[d.Name] = &pkg, written
	j.manifest.SetDependency(d.Kind, d.Name, wrapperSpec(d.Name))
}

// isPluginFolder reports whether a spec names a folder that is an Agent Plugin.
func (s Spec) isPluginFolder(ctx context.Context) bool {
	is, _, err := isPlugin(ctx, folderAt(s.Place), s.Plugin)
	return is && err == nil
}

// pluginText is what the package.json of an Agent Plugin would say of it.
func pluginText(pkg *Package, dir string) ([]byte, error) {
	p, _, err := loadPlugin(dir)
	if err != nil {
		return nil, within(pkg.describe(), err)
	}
	m := p.Manifest
	return json.Marshal(map[string]any{
		"name": pkg.Name, "version": pkg.Version, "description": m.Description, "license": m.License, "homepage": m.Homepage, "repository": m.Repository,
	})
}
