package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// CopyPluginsOptions say which packages are copied from another profile.
type CopyPluginsOptions struct {
	PluginOptions
	From   profile.Name
	Names  []string // dependencies of From; none are all
	Update bool     // what the profile has already takes the version of From
	DryRun bool
}

// CopiedPlugins says what copying packages did, or would do.
type CopiedPlugins struct {
	Report
	From    string          `json:"from"`
	Copied  []CopiedPlugin  `json:"copied"`
	Skipped []SkippedPlugin `json:"skipped"`
	// Settings are rows of the copied packages that From configures in its own
	// layer, which is not copied.
	Settings []CopiedSetting `json:"settings"`
}

// CopiedPlugin is a package that is copied.
type CopiedPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Spec    string `json:"spec"` // as package.json gets it, without secrets
}

// SkippedPlugin is a package that is not copied.
type SkippedPlugin struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// CopiedSetting is a row that a profile's layer configures.
type CopiedSetting struct {
	Row  string `json:"row"`
	File string `json:"file"`
	Line int    `json:"line"`
}

// CopyPlugins adds dependencies of one profile to another, in the versions that
// the first one has and in the order of its bundles, all of them or none.
func CopyPlugins(ctx context.Context, env Env, opts CopyPluginsOptions) (*CopiedPlugins, error) {
	if opts.From == opts.Name {
		return nil, fault.Errorf(fault.Other, "--from and --profile both name %s", opts.Name)
	}
	from, warnings, err := reading(ctx, env, opts.From, func(v staging.View) (*giver, error) { return readGiver(env, v, opts.From) })
	if err != nil {
		return nil, err
	}
	done := &CopiedPlugins{From: opts.From.String(), Copied: []CopiedPlugin{}, Skipped: []SkippedPlugin{}, Settings: []CopiedSetting{}}
	if err := from.choose(env, opts, done); err != nil {
		return nil, err
	}
	taken, files, err := from.take(env, opts, done)
	if err != nil {
		return nil, err
	}
	for _, t := range taken {
		done.Copied = append(done.Copied, CopiedPlugin{t.Name, from.version(t.Name), install.ShownSpec(t.Spec)})
	}
	done.Settings = from.settings(env, taken)
	if len(taken) == 0 || opts.DryRun {
		done.Report = Report{Profile: opts.Name.String(), Dir: env.Home.ProfileDir(opts.Name), Changes: []install.Change{}, Warnings: warnings}
		return done, nil
	}
	report, err := change(ctx, env, opts.PluginOptions, true, func(j *install.Job) (*install.Result, error) {
		for at, data := range files {
			if err := j.Tx.WriteFile(at, data, 0o644); err != nil {
				return nil, err
			}
			if _, err := j.Store.AddTarball(ctx, bytes.NewReader(data), from.lock.Nodes["node_modules/"+sourceOf(taken, at)].Integrity); err != nil {
				return nil, err
			}
		}
		return j.Take(ctx, taken, from.lock)
	})
	if err != nil {
		return nil, err
	}
	done.Report = *report
	done.Warnings = slices.Concat(warnings, done.Warnings)
	return done, nil
}

// giver is the profile that packages are copied from.
type giver struct {
	*profile.Profile
	lock   *install.Lock
	chosen []profile.Dependency
}

func readGiver(env Env, view staging.View, name profile.Name) (*giver, error) {
	p, err := profile.ReadFrom(view.Path, env.Home, name)
	if err != nil {
		return nil, err
	}
	g := &giver{Profile: p}
	file := filepath.Join(p.Dir, install.LockName)
	text, err := os.ReadFile(view.Path(file))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		g.lock, err = install.ParseLock(file, text)
	}
	return g, err
}

// version is that of a dependency in the lockfile, "" when it is not there.
func (g *giver) version(name string) string {
	if n, ok := g.lock.Nodes["node_modules/"+name]; ok {
		return n.Version
	}
	return ""
}

// choose finds the dependencies that are to be copied: bundles in the order of
// the list, then what else there is.
func (g *giver) choose(env Env, opts CopyPluginsOptions, done *CopiedPlugins) error {
	all := dependenciesOf(g.Manifest)
	bundles := g.Manifest.Bundles()
	for _, name := range opts.Names {
		switch {
		case slices.ContainsFunc(all, func(d profile.Dependency) bool { return d.Name == name }):
		case slices.Contains(bundles, name):
			done.Skipped = append(done.Skipped, SkippedPlugin{name, "it comes with the installation"})
		default:
			return fault.WithHint(fault.Errorf(fault.Package, "profile %s does not depend on %s", g.Name, name),
				"dsh plugin --profile %s list shows what it depends on", fault.ShellWord(g.Name.String()))
		}
	}
	for _, d := range inLayerOrder(g.Manifest) {
		if len(opts.Names) > 0 && !slices.Contains(opts.Names, d.Name) {
			continue
		}
		_, inBox, err := env.Installation.Bundle(d.Name)
		switch {
		case install.IsHost(d.Name):
			done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, "it belongs to the harness"})
		case inBox && err == nil:
			done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, "it comes with the installation"})
		default:
			g.chosen = append(g.chosen, d)
		}
	}
	return nil
}

// inLayerOrder is the dependencies of a manifest: bundles in the order of the
// list, then what else there is.
func inLayerOrder(m *profile.Manifest) []profile.Dependency {
	all, bundles := dependenciesOf(m), m.Bundles()
	place := func(d profile.Dependency) int {
		if i := slices.Index(bundles, d.Name); i >= 0 {
			return i
		}
		return len(bundles)
	}
	slices.SortStableFunc(all, func(a, b profile.Dependency) int { return place(a) - place(b) })
	return all
}

// take is the chosen dependencies as the other profile gets them, less what that
// has already, and the files that it gets with them.
func (g *giver) take(env Env, opts CopyPluginsOptions, done *CopiedPlugins) (taken []install.Taken, files map[string][]byte, err error) {
	files = map[string][]byte{}
	to, err := profile.Read(env.Home, opts.Name)
	if _, missing := errors.AsType[*profile.MissingError](err); err != nil && !missing {
		return nil, nil, err
	}
	dir, err := realDir(env.Home.ProfileDir(opts.Name))
	if err != nil {
		return nil, nil, err
	}
	for _, d := range g.chosen {
		if to != nil {
			if spec, _, has := to.Manifest.Dependency(d.Name); has && !opts.Update {
				done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, fmt.Sprintf("profile %s has it already, as %s; --update takes the version of %s", opts.Name, install.ShownSpec(spec), g.Name)})
				continue
			}
		}
		_, kind, _ := g.Manifest.Dependency(d.Name)
		if g.lock == nil || g.version(d.Name) == "" {
			if kind == profile.OptionalDependencies && g.lock != nil {
				done.Skipped = append(done.Skipped, SkippedPlugin{d.Name, fmt.Sprintf("it is optional, and not installed in profile %s", g.Name)})
				continue
			}
			return nil, nil, fault.WithHint(fault.Errorf(fault.Package, "%s of profile %s has no %s, so there is no version to copy", install.LockName, g.Name, d.Name),
				"dsh plugin --profile %s install", fault.ShellWord(g.Name.String()))
		}
		spec, err := g.respelled(d, dir, files)
		if err != nil {
			return nil, nil, err
		}
		t := install.Taken{Name: d.Name, Spec: spec, Kind: kind}
		if written, ok := g.lock.Sources[d.Name]; ok && strings.HasPrefix(spec, "file:"+install.KeptDir+"/") {
			t.Written = &written
			t.Archive = filepath.Join(g.Dir, filepath.FromSlash(strings.TrimPrefix(spec, "file:")))
		}
		taken = append(taken, t)
	}
	return taken, files, nil
}

// realDir is a profile's directory without links, also when it is not made yet.
func realDir(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
		return filepath.Join(parent, filepath.Base(dir)), err
	}
	return real, err
}

// respelled is the spec of a dependency as it must be in the directory to. An
// archive in the giver's own directory goes along as one of files, so that the
// giver may be removed.
func (g *giver) respelled(d profile.Dependency, to string, files map[string][]byte) (string, error) {
	from, err := realDir(g.Dir)
	if err != nil {
		return "", err
	}
	if pkg, _, ok := g.lock.AgentPlugin(d.Name); ok {
		// The wrapper is made anew; what matters is what it is made of.
		if !local(pkg.Origin.Kind) {
			return d.Spec, nil
		}
		if d.Spec = "file:" + pkg.Origin.Place; !path.IsAbs(pkg.Origin.Place) && !filepath.IsAbs(pkg.Origin.Place) {
			d.Spec = "file:./" + pkg.Origin.Place
		}
	}
	spec, err := install.ParseDependency(d.Name, d.Spec, from)
	if err != nil || !local(spec.Kind) {
		return d.Spec, err
	}
	inside, err := filepath.Rel(from, spec.Place)
	if spec.Kind == install.Archive && err == nil && filepath.IsLocal(inside) {
		if _, kept := g.lock.Sources[d.Name]; kept && path.Dir(filepath.ToSlash(inside)) == install.KeptDir {
			return "file:" + filepath.ToSlash(inside), nil // the job puts it there
		}
		if install.CheckArchive(spec.Place, g.lock.Nodes["node_modules/"+d.Name].Integrity) == nil {
			data, err := os.ReadFile(spec.Place)
			at := freeSource(to, filepath.Base(spec.Place), data, files)
			files[at] = data
			return "file:./" + at, err
		}
	}
	if !spec.Relative {
		return d.Spec, nil
	}
	place, err := filepath.Rel(to, spec.Place)
	if err != nil {
		place = spec.Place // on another volume
	}
	scheme := "file:"
	if spec.Kind == install.Link {
		scheme = "link:"
	}
	return scheme + filepath.ToSlash(place), nil
}

// freeSource is a path in the sources folder of the profile in dir where no other
// content stands.
func freeSource(dir, name string, data []byte, files map[string][]byte) string {
	ext := path.Ext(name)
	for n := 1; ; n++ {
		at := path.Join(sourcesDir, name)
		if n > 1 {
			at = path.Join(sourcesDir, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext))
		}
		there, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(at)))
		other, planned := files[at]
		if (err != nil || bytes.Equal(there, data)) && (!planned || bytes.Equal(other, data)) {
			return at
		}
	}
}

// sourceOf is the dependency that is installed from the file at a path.
func sourceOf(taken []install.Taken, at string) string {
	for _, t := range taken {
		if t.Spec == "file:./"+at {
			return t.Name
		}
	}
	return ""
}

// settings is the rows of packages that the giver's own layer configures or
// inserts. A layer that cannot be composed has none that could be told.
func (g *giver) settings(env Env, taken []install.Taken) []CopiedSetting {
	found := []CopiedSetting{}
	c, err := withoutProject(env, g.Profile, nil)
	if err != nil {
		return found
	}
	isTaken := func(name string) bool {
		return slices.ContainsFunc(taken, func(t install.Taken) bool { return t.Name == name })
	}
	rows := map[*compose.Map]bool{} // of the copied bundles
	var remember func(v compose.Value)
	remember = func(v compose.Value) {
		entry, ok := v.(*compose.Map)
		if !ok || rows[entry] {
			return
		}
		rows[entry] = true
		if list, ok := (compose.Row{Entry: entry}).Config().(*compose.List); ok {
			for _, item := range list.Items {
				remember(item)
			}
		}
	}
	own := map[int]bool{}
	bundle := map[int]bool{}
	for _, e := range c.Stack.Entries {
		own[e.Layer] = own[e.Layer] || e.Kind == compose.ProfileLayer
		bundle[e.Layer] = bundle[e.Layer] || e.Kind == compose.BundleLayer && isTaken(e.Label)
	}
	add := func(row compose.Row, patch *compose.Patch, line int) {
		id := ""
		if v := row.ID(); v != nil {
			id = compose.IDText(v)
		}
		found = append(found, CopiedSetting{id, patch.Source.File, line})
	}
	for _, step := range c.Tree.Steps {
		switch {
		case step.Skipped != "":
		case bundle[step.Layer]:
			for _, v := range step.Rows {
				remember(v)
			}
		case !own[step.Layer]:
		case step.Target != nil && rows[step.Target]:
			add(compose.Row{Entry: step.Target}, step.Patch, step.Patch.Line)
		default:
			for _, v := range step.Rows {
				entry, ok := v.(*compose.Map)
				row := compose.Row{Entry: entry}
				if ok && isTaken(packageName(row.Name())) {
					line, _ := entry.Position()
					add(row, step.Patch, line)
				}
			}
		}
	}
	return found
}

// packageName is the package that a row's plugin is in.
func packageName(plugin string) string {
	parts := strings.SplitN(plugin, "/", 3)
	if strings.HasPrefix(plugin, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
