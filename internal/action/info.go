package action

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/inspect"
	"dsh/internal/install"
	"dsh/internal/install/manifest"
	"dsh/internal/installation"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// Info is what a package is, and what it would do to a profile.
type Info struct {
	Profile     string         `json:"profile"`
	Spec        string         `json:"spec"`
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	Installed   string         `json:"installed"` // the version that the profile has, "" for none
	Description string         `json:"description"`
	Licence     string         `json:"licence"`
	Published   *time.Time     `json:"published"`
	Deprecated  string         `json:"deprecated"`
	Source      InfoSource     `json:"source"`
	Repository  InfoRepository `json:"repository"`
	Files       int            `json:"files"`
	Bytes       int64          `json:"bytes"` // unpacked

	Layer     bool           `json:"layer"` // it declares one
	Rows      []InfoRow      `json:"rows"`
	Overrides []InfoOverride `json:"overrides"`
	// Problems are what would be wrong with the profile that is not now.
	Problems []check.Finding `json:"problems"`
	// Refused is why it cannot be added, "" where it can.
	Refused string `json:"refused"`

	Peers        []InfoPeer       `json:"peers"` // on the harness
	Dependencies InfoDependencies `json:"dependencies"`
	Scripts      []install.Script `json:"scripts"`
	Native       InfoNative       `json:"native"`
	Missing      []inspect.Lack   `json:"missing"` // files that it declares
	Below        []string         `json:"below"`   // folders in it that are bundles
	Warnings     []string         `json:"-"`
}

// InfoSource is where a package comes from.
type InfoSource struct {
	Kind      string `json:"kind"` // registry, url, archive, folder, link or git
	Address   string `json:"address"`
	Commit    string `json:"commit"`    // of git, else ""
	Integrity string `json:"integrity"` // "" of a link
	// Signature is what the registry's signature is worth, in a word or two, "" where
	// it is from none; SignatureNote says more.
	Signature     string `json:"signature"`
	SignatureNote string `json:"signatureNote"`
}

// InfoRepository is the repository of a package.
type InfoRepository struct {
	Name      string `json:"name"`      // owner/repo, or host/owner/repo; "" for none
	Directory string `json:"directory"` // in it
	// Proven says that the package comes from there; else it only claims that.
	Proven   bool   `json:"proven"`
	Claims   string `json:"claims"`   // by its package.json
	Expected string `json:"expected"` // "" where nobody said
	AsWanted bool   `json:"asWanted"` // it is the expected one
}

// InfoRow is a row that the package's layer inserts.
type InfoRow struct {
	ID     string   `json:"id"`
	Plugin string   `json:"plugin"`
	State  string   `json:"state"`
	Config []string `json:"config"` // the keys
}

// InfoOverride is a row of somebody else that the layer changes.
type InfoOverride struct {
	ID    string   `json:"id"`
	Keys  []string `json:"keys"`
	Layer string   `json:"layer"` // that inserted it
}

// InfoPeer is a package of the harness that has to be beside it.
type InfoPeer struct {
	Name     string `json:"name"`
	Wanted   string `json:"wanted"`
	Optional bool   `json:"optional"`
	Have     string `json:"have"` // in the installation, "" where that is not known
	Fits     bool   `json:"fits"` // or it is not known
}

// InfoDependencies is what the package brings along.
type InfoDependencies struct {
	Direct   int                `json:"direct"`
	Packages int                `json:"packages"` // that would be added besides it
	Bytes    int64              `json:"bytes"`    // of these, unpacked
	Unknown  int                `json:"unknown"`  // of which nobody says the size
	Largest  []InfoPackage      `json:"largest"`
	Scripts  []InfoScripted     `json:"scripts"` // which of them have scripts
	Hosts    []install.HostCopy `json:"hosts"`   // of the harness, a second time
}

// InfoPackage is one of them.
type InfoPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"`
}

// InfoScripted is one with scripts.
type InfoScripted struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Scripts []string `json:"scripts"`
}

// InfoNative is what ties a package to a machine.
type InfoNative struct {
	Builds bool     `json:"builds"` // its binding.gyp is for who installs it
	Files  []string `json:"files"`  // compiled for Node.js
	OS     []string `json:"os"`
	CPU    []string `json:"cpu"`
	Runs   bool     `json:"runs"` // on this machine
}

// kindWords are the kinds of source as --json has them.
var kindWords = map[install.Kind]string{
	install.Registry: "registry", install.URL: "url", install.Archive: "archive", install.Folder: "folder", install.Link: "link", install.Git: "git",
}

// largestShown is how many of the largest packages are named.
const largestShown = 5

// LookAt says what a package is and what adding it to a profile would do. Nothing is
// changed, neither in the profile nor in the store.
func LookAt(ctx context.Context, env Env, opts PluginOptions, spec install.Spec) (info *Info, err error) {
	opts.DryRun = true
	err = env.try(ctx, opts, true, false, func(t *trial) error {
		looked, err := t.job().Describe(ctx, spec)
		if err != nil {
			return err
		}
		info, err = env.describe(t.Profile, spec, looked, opts.Expect)
		if err != nil {
			return err
		}
		result, err := t.job().Add(ctx, []install.Spec{exactly(spec, looked)}, install.AddOptions{})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			info.Refused = err.Error()
			return nil
		}
		info.Warnings = append(info.Warnings, result.Warnings...)
		info.brings(result)
		return env.composed(t.Profile, result, info)
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// exactly is the spec of what was looked at, so that what is said of it is said of
// the same.
func exactly(spec install.Spec, looked *install.Looked) install.Spec {
	if spec.Kind == install.Registry {
		spec.Wanted = looked.Version
	}
	return spec
}

// describe says what there is to know of a package by itself.
func (env Env) describe(p *profile.Profile, spec install.Spec, looked *install.Looked, expect Expect) (*Info, error) {
	m, err := manifest.Parse(looked.Text)
	if err != nil {
		return nil, err
	}
	info := &Info{
		Profile: p.Name.String(), Spec: spec.Shown(), Name: looked.Name, Version: looked.Version, Deprecated: looked.Deprecated,
		Source: InfoSource{Kind: kindWords[looked.Origin.Kind], Address: looked.From, Commit: looked.Origin.Commit()},
		Files:  len(looked.Files), Layer: m.Layer || looked.AgentPlugin, Rows: []InfoRow{}, Overrides: []InfoOverride{}, Problems: []check.Finding{}, Peers: []InfoPeer{},
		Dependencies: InfoDependencies{Direct: len(m.Dependencies) + len(m.OptionalDependencies), Largest: []InfoPackage{}, Scripts: []InfoScripted{}, Hosts: []install.HostCopy{}},
		Scripts:      append([]install.Script{}, looked.Scripts...),
		Native:       InfoNative{Files: []string{}, OS: append([]string{}, m.OS...), CPU: append([]string{}, m.CPU...), Runs: looked.Runs},
		Missing:      []inspect.Lack{}, Below: append([]string{}, inspect.BundlesBelow(looked.Dir, pathsOf(looked.Files))...),
	}
	if pkg, ok, err := installation.Find(p.Dir, looked.Name); err == nil && ok {
		if _, _, depends := p.Manifest.Dependency(looked.Name); depends {
			info.Installed = pkg.Version
		}
	}
	info.Description, info.Licence = ownWords(looked.Text)
	if !looked.Published.IsZero() {
		at := looked.Published.UTC()
		info.Published = &at
	}
	if !looked.Integrity.IsZero() {
		info.Source.Integrity = looked.Integrity.String()
	}
	if v := looked.Signature; v != nil {
		info.Source.Signature, info.Source.SignatureNote = string(v.State), v.Why
	}
	if looked.Younger != "" {
		info.Warnings = append(info.Warnings, looked.Name+"@"+looked.Version+" is taken and not "+looked.Younger+": that is too new")
	}
	for _, f := range looked.Files {
		info.Bytes += f.Size
		switch {
		case f.Path == "binding.gyp" && install.BuildsNative(looked.Text):
			info.Native.Builds = true
		case strings.HasSuffix(f.Path, ".node"):
			info.Native.Files = append(info.Native.Files, f.Path)
		}
	}
	claims := install.RepositoryIn(looked.Text)
	have, proven := repositoryOf(looked.Origin, looked.Text)
	info.Repository = InfoRepository{Name: have.String(), Directory: have.Directory, Proven: proven, Claims: claims.String(), Expected: expect.Repository.String()}
	info.Repository.AsWanted = expect.Repository.IsZero() || expect.Repository.Same(have)
	if pkg, err := installation.OpenPackage(looked.Dir); err == nil {
		info.Missing = append(info.Missing, inspect.Lacking(pkg)...)
	}
	for peer, wanted := range m.PeerDependencies {
		if !install.IsHost(peer) {
			continue
		}
		one := InfoPeer{Name: peer, Wanted: wanted, Optional: slices.Contains(m.OptionalPeers, peer), Fits: true}
		if have, known := env.hostVersion(peer); known {
			one.Have, one.Fits = have.String(), stack.SatisfiesPeer(wanted, have)
		}
		info.Peers = append(info.Peers, one)
	}
	slices.SortFunc(info.Peers, func(a, b InfoPeer) int { return strings.Compare(a.Name, b.Name) })
	return info, nil
}

// hostVersion is the version of a package of the harness that plugins find: its
// own, or that of the harness where the installation has no such bundle.
func (env Env) hostVersion(name string) (npmrange.Version, bool) {
	if v, ok := env.provides(name); ok {
		return v, true
	}
	return env.Installation.Version()
}

// ownWords is what a package.json says of itself in words, each on one line.
func ownWords(text []byte) (description, licence string) {
	var m struct {
		Description json.RawMessage
		License     json.RawMessage
		Licenses    []json.RawMessage
	}
	_ = json.Unmarshal(text, &m) // odd values say nothing
	line := func(raw json.RawMessage) string {
		var word string
		var object struct{ Type string }
		if json.Unmarshal(raw, &word) != nil && json.Unmarshal(raw, &object) == nil {
			word = object.Type
		}
		return strings.Join(strings.Fields(word), " ")
	}
	licence = line(m.License)
	if licence == "" {
		var all []string
		for _, raw := range m.Licenses {
			all = append(all, line(raw))
		}
		licence = strings.Join(all, " OR ")
	}
	return line(m.Description), licence
}

// brings says what an addition would bring besides the package.
func (info *Info) brings(result *install.Result) {
	d := &info.Dependencies
	d.Hosts = append(d.Hosts, slices.DeleteFunc(slices.Clone(result.Hosts), func(c install.HostCopy) bool {
		return len(c.Chain) == 0 || c.Chain[0] != info.Name+"@"+info.Version
	})...)
	for _, planned := range result.Plan.Packages {
		if planned.Action == install.Removed || planned.Name == info.Name && planned.Version == info.Version {
			continue
		}
		d.Packages++
		d.Bytes += planned.Bytes
		if planned.Bytes == 0 {
			d.Unknown++
		}
		d.Largest = append(d.Largest, InfoPackage{planned.Name, planned.Version, planned.Bytes})
		if len(planned.Scripts) > 0 {
			d.Scripts = append(d.Scripts, InfoScripted{planned.Name, planned.Version, planned.Scripts})
		}
	}
	slices.SortFunc(d.Largest, func(a, b InfoPackage) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	d.Largest = d.Largest[:min(len(d.Largest), largestShown)]
}

// composed says what the package's layer would do to the profile.
func (env Env) composed(p *profile.Profile, result *install.Result, info *Info) error {
	after := *p
	after.Manifest = result.Manifest
	was, err := withoutProject(env, p, nil)
	if err != nil {
		return err
	}
	will, err := withoutProject(env, &after, stagedPackages(p.Dir, result))
	if err != nil {
		return err
	}
	blocking, other := addedProblems(Findings(env, was), Findings(env, will))
	info.Problems = append(info.Problems, append(blocking, other...)...)
	if !slices.ContainsFunc(result.Changes, func(c install.Change) bool { return c.Layer == install.LayerAdded || c.Layer == install.LayerKept }) {
		return nil
	}
	label := result.Changes[0].Name
	h := newHistory(will.Tree)
	for row := range will.Tree.All() {
		if row.Origin != label || row.Entry == nil {
			continue
		}
		one := InfoRow{ID: rowName(row.Entry), Plugin: pluginIn(result, label, row.Name()), State: h.state(row), Config: []string{}}
		if config, ok := row.Config().(*compose.Map); ok {
			for key := range config.All() {
				one.Config = append(one.Config, key)
			}
		}
		info.Rows = append(info.Rows, one)
	}
	for _, step := range will.Tree.Steps {
		if will.Tree.Layers[step.Layer].Label != label || step.Outcome != compose.Overrode || h.bornIn(step.Target) == step.Layer {
			continue
		}
		one := InfoOverride{ID: rowName(step.Target), Keys: []string{}}
		if born := h.bornIn(step.Target); born >= 0 {
			one.Layer = will.Tree.Layers[born].Label
		}
		for _, c := range step.Changes {
			one.Keys = append(one.Keys, c.Key)
		}
		info.Overrides = append(info.Overrides, one)
	}
	return nil
}

// pluginIn is the name of a plugin, where that is a file of a package as the package
// has it: the place where it would stand is nobody's concern.
func pluginIn(result *install.Result, pkg, plugin string) string {
	file, ok := compose.FilePath(plugin)
	s, staged := result.Staged(pkg)
	if !ok || !staged {
		return plugin
	}
	for _, dir := range []string{s.Dir, s.Files} {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return "./" + filepath.ToSlash(rel)
		}
	}
	return plugin
}

// Unexpected is the refusal of a package that is of another repository than was
// expected, nil for one that is right.
func (info *Info) Unexpected(expect Expect) error {
	if info.Repository.AsWanted {
		return nil
	}
	have, err := install.ParseRepository(info.Repository.Name)
	if err != nil {
		have = install.Repository{}
	}
	return fault.WithClass(fault.Policy, &UnexpectedRepositoryError{Package: info.Name + "@" + info.Version, Want: expect.Repository, Have: have, Git: info.Repository.Proven})
}
