package action

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"dsh/internal/catalog"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
)

// SearchOptions are the choices of `dsh plugin search`.
type SearchOptions struct {
	PluginOptions
	Words []string
	Limit int  // results that are shown; 0 is all
	All   bool // also packages of the registry that bring no layer
}

// SearchReport is what a search found.
type SearchReport struct {
	Profile string         `json:"profile"`
	Words   []string       `json:"words"`
	Results []Found        `json:"results"`
	More    int            `json:"more"`     // results that are not shown
	Unknown int            `json:"unlooked"` // packages of the registry that fit and into which nobody looked
	Sources []SearchSource `json:"sources"`
	// Warnings are about sources that did not answer, while others did.
	Warnings []string `json:"-"`
}

// SearchSource is who was asked.
type SearchSource struct {
	Kind    string     `json:"kind"` // registry or catalog
	Name    string     `json:"name"`
	Address string     `json:"address"`
	Results int        `json:"results"` // before those that are the same were joined
	Updated string     `json:"updated"` // when its author made the index, in the author's words
	Checked *time.Time `json:"checked"` // when the index was known to be the newest
	Error   string     `json:"error,omitempty"`
	err     error
}

// Found is one plugin that a search found.
type Found struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"` // of a catalogue: as it says
	Description string   `json:"description"`
	Source      string   `json:"source"` // the name of the catalogue, or "registry"
	Spec        string   `json:"spec"`   // "" where nothing can be installed
	Repository  string   `json:"repository"`
	Layer       bool     `json:"layer"` // the registry's package brings one; of a catalogue nobody has looked
	Deprecated  bool     `json:"deprecated"`
	Replacement string   `json:"replacement"`
	Refused     string   `json:"refused"` // why nothing can be installed
	Notes       []string `json:"notes"`
	Also        []string `json:"also"`     // other sources that have it
	Profiles    []string `json:"profiles"` // that have it installed
	Add         string   `json:"add"`      // the command that installs it, "" where none does

	score      catalog.Score
	key        string
	repository install.Repository
	registry   bool
}

const (
	registrySource = "registry"
	hitsAsked      = 100 // packages in one answer of a registry's search
	lookedInto     = 60  // packages that are looked into
	looksAtOnce    = 16
)

// Search looks for plugins in the registry and in the catalogues that the user
// added. Every word has to be in the name, the keywords or the description.
func Search(ctx context.Context, env Env, opts SearchOptions) (*SearchReport, error) {
	report := &SearchReport{Profile: opts.Name.String(), Words: opts.Words, Results: []Found{}, Sources: []SearchSource{}}
	list, err := catalog.ReadList(env.catalogsFile())
	if err != nil {
		return nil, err
	}
	client, err := env.client(opts.PluginOptions, env.Home.ProfileDir(opts.Name))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var found []Found
	var of SearchSource
	var opened []*openedCatalog
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error {
		of = SearchSource{Kind: registrySource, Name: registrySource, Address: registry.ShownAddress(client.Registry())}
		var err error
		found, report.Unknown, err = searchRegistry(within, client, opts)
		if within.Err() != nil {
			return within.Err()
		}
		of.Results = len(found)
		of.failed(err)
		return nil
	})
	group.Go(func() (err error) {
		opened, err = env.openCatalogs(within, list, opts.Mode, true)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.Sources = append(report.Sources, of)
	for _, o := range opened {
		of, entries := searchCatalog(o, opts.Words)
		report.Sources = append(report.Sources, of)
		found = append(found, entries...)
	}
	if err := report.answered(); err != nil {
		return nil, err
	}
	found = joined(found)
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(a.score.Compare(b.score), compareBool(a.Deprecated, b.Deprecated), compareBool(a.Spec == "", b.Spec == ""),
			strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Source, b.Source))
	})
	if opts.Limit > 0 && len(found) > opts.Limit {
		report.More = len(found) - opts.Limit
		found = found[:opts.Limit]
	}
	has := env.whoHas()
	for i := range found {
		f := &found[i]
		f.Profiles = append([]string{}, has[f.key]...)
		if f.Spec != "" {
			f.Add = strings.ReplaceAll(f.Add, "PROFILE", fault.ShellWord(opts.Name.String()))
		}
	}
	report.Results = append(report.Results, found...)
	return report, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (s *SearchSource) failed(err error) {
	if err != nil {
		s.Error, s.err = err.Error(), err
	}
}

// answered is why nobody answered; where somebody did, the others are warnings.
func (r *SearchReport) answered() error {
	var first error
	silent := 0
	for _, s := range r.Sources {
		if s.err == nil {
			continue
		}
		if first == nil {
			first = s.err
		}
		r.Warnings = append(r.Warnings, s.Error)
		if s.Checked == nil && s.Results == 0 {
			silent++
		}
	}
	if silent < len(r.Sources) {
		return nil
	}
	if len(r.Sources) == 1 {
		return fault.WithHint(first, "catalogues are searched as well, and dsh catalog add ADDRESS OR FILE adds one")
	}
	return first
}

// searchRegistry finds packages that bring a layer. Nothing in a search tells
// that for sure, so each package that fits is looked into, those first whose name
// or keywords speak of dsh; unlooked is how many are left when that is enough.
func searchRegistry(ctx context.Context, client *registry.Client, opts SearchOptions) (found []Found, unlooked int, err error) {
	if opts.Mode == Offline {
		return nil, 0, fault.Errorf(fault.Network, "the registry is not searched: --offline asks nobody")
	}
	text := strings.Join(opts.Words, " ")
	// The first answer of a large registry may have no plugin in it.
	queries := []string{text, text + " dsh"}
	answers := make([][]registry.Hit, len(queries))
	group, within := errgroup.WithContext(ctx)
	for i, query := range queries {
		group.Go(func() (err error) {
			answers[i], err = client.Search(within, query, hitsAsked)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	var candidates []candidate
	for _, hit := range slices.Concat(answers...) {
		score, fits := catalog.Rank(opts.Words, []string{hit.Name}, hit.Keywords, []string{hit.Description})
		if !fits || seen[hit.Name] || !install.ValidName(hit.Name) {
			continue
		}
		seen[hit.Name] = true
		about := slices.ContainsFunc(append([]string{hit.Name}, hit.Keywords...), func(s string) bool { return strings.Contains(strings.ToLower(s), "dsh") })
		candidates = append(candidates, candidate{hit, score, about})
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(compareBool(b.about, a.about), a.score.Compare(b.score))
	})
	if len(candidates) > lookedInto {
		unlooked = len(candidates) - lookedInto
		candidates = candidates[:lookedInto]
	}
	looked := make([]*Found, len(candidates))
	var looks errgroup.Group // what one cannot be asked about says nothing of the others
	looks.SetLimit(looksAtOnce)
	for i, c := range candidates {
		looks.Go(func() (err error) {
			looked[i], err = c.look(ctx, client, opts.All)
			return err
		})
	}
	err = looks.Wait()
	for _, f := range looked {
		if f != nil {
			found = append(found, *f)
		}
	}
	return found, unlooked, err
}

type candidate struct {
	registry.Hit
	score catalog.Score
	about bool // its name or a keyword speaks of dsh
}

// look says what the package is, nil where it is no bundle and only those are
// wanted. The registry may have more in its search than it gives out.
func (c candidate) look(ctx context.Context, client *registry.Client, all bool) (*Found, error) {
	version, err := c.Version, error(nil)
	if _, odd := npmrange.ParseVersion(version); odd != nil {
		var choice registry.Choice
		if choice, err = client.Find(ctx, c.Name, "latest", registry.PickOptions{}); err == nil {
			version = choice.Version
		}
	}
	var m *registry.Manifest
	if err == nil {
		m, err = client.Described(ctx, c.Name, version)
	}
	if err != nil && fault.ClassOf(err) == fault.Package {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !m.Layer && !all {
		return nil, nil
	}
	repository, err := install.ParseRepository(c.Repository)
	if err != nil {
		repository = install.Repository{}
	}
	return &Found{
		Name: c.Name, Version: catalog.Line(m.Version, 60), Description: catalog.Line(c.Description, 1000), Source: registrySource, Spec: c.Name,
		Repository: repository.String(), Layer: m.Layer, Deprecated: c.Deprecated || m.Deprecated != "", Notes: []string{}, Also: []string{},
		Add: "dsh plugin --profile PROFILE add " + fault.ShellWord(c.Name), score: c.score, key: packageKey(c.Name), repository: repository, registry: true,
	}, nil
}

// searchCatalog finds entries of a catalogue.
func searchCatalog(o *openedCatalog, words []string) (SearchSource, []Found) {
	state := o.state()
	of := SearchSource{Kind: "catalog", Name: o.Name, Address: state.From, Updated: state.Updated, Checked: state.Checked}
	of.failed(o.err)
	if o.index == nil {
		return of, nil
	}
	var found []Found
	for i := range o.index.Entries {
		e := &o.index.Entries[i]
		score, fits := catalog.Rank(words, []string{e.Name, e.ID, e.Package, e.Repository.String()}, e.Keywords, e.Descriptions)
		if !fits {
			continue
		}
		f := Found{
			Name: e.Name, Version: e.Version, Description: e.Description(), Source: o.Name, Spec: e.Spec.Shown(), Repository: e.Repository.String(),
			Deprecated: e.Deprecated, Replacement: e.Replacement, Refused: e.Refused, Notes: append([]string{}, e.Notes...), Also: []string{},
			score: score, repository: e.Repository,
		}
		if e.Spec.Text != "" {
			f.key = specKey(e.Spec)
			f.Add = "dsh plugin --profile PROFILE add " + fault.ShellWord(e.Key()) + " --catalog " + o.Name
		}
		found = append(found, f)
	}
	of.Results = len(found)
	return of, found
}

func packageKey(name string) string { return "npm:" + name }

// specKey is equal for specs of one package.
func specKey(spec install.Spec) string {
	switch spec.Kind {
	case install.Registry:
		return packageKey(spec.Target)
	case install.Git:
		r, err := install.ParseRepository(spec.Git.Remote)
		if err != nil {
			return "git:" + spec.Git.Remote + "//" + spec.Git.Path
		}
		return "git:" + r.Host + "/" + strings.ToLower(r.Path) + "//" + spec.Git.Path
	default:
		return install.ShownSpec(spec.Place) + "//" + spec.Inside
	}
}

// joined is the results with one for each plugin. What is of one package and of
// another repository is another plugin, perhaps of somebody who took the name: it
// stays, and both say so. An entry that names no repository means what the registry
// has. Of several that are one, the one shown is an entry that says of which
// repository the package has to be, for then that is looked at.
func joined(found []Found) []Found {
	claimed := map[string]install.Repository{}
	for _, f := range found {
		if f.registry {
			claimed[f.key] = f.repository
		}
	}
	rank := func(f Found) int {
		switch {
		case f.registry:
			return 1
		case f.repository.IsZero():
			return 2
		}
		return 0
	}
	slices.SortStableFunc(found, func(a, b Found) int { return cmp.Compare(rank(a), rank(b)) })
	var list []*Found
	byKey := map[string][]*Found{}
	byIdentity := map[string]*Found{}
	for i := range found {
		f := &found[i]
		if f.key == "" {
			list = append(list, f)
			continue
		}
		of := f.repository
		if of.IsZero() {
			of = claimed[f.key]
		}
		identity := f.key + " " + strings.ToLower(of.String())
		other, there := byIdentity[identity]
		if !there {
			byIdentity[identity] = f
			byKey[f.key] = append(byKey[f.key], f)
			list = append(list, f)
			continue
		}
		if other.score.Compare(f.score) > 0 {
			other.score = f.score
		}
		if f.registry { // it knows what is there
			other.Layer, other.Version = f.Layer, f.Version
		}
		if f.Source != other.Source && !slices.Contains(other.Also, f.Source) {
			other.Also = append(other.Also, f.Source)
		}
		other.Deprecated = other.Deprecated || f.Deprecated
		other.Replacement = cmp.Or(other.Replacement, f.Replacement)
	}
	for _, same := range byKey {
		for _, f := range same {
			for _, other := range same {
				if f != other {
					f.Notes = append(f.Notes, sameText(other))
				}
			}
		}
	}
	out := make([]Found, len(list))
	for i, f := range list {
		out[i] = *f
	}
	return out
}

// sameText is a note about a result that has the same package.
func sameText(other *Found) string {
	switch {
	case other.Repository != "" && other.registry:
		return "the package that the registry has says that it is of " + other.Repository
	case other.Repository != "":
		return fmt.Sprintf("%s says that this package is of %s", other.Source, other.Repository)
	case other.registry:
		return "the package that the registry has does not say of which repository it is"
	}
	return other.Source + " does not say of which repository this package is"
}

// whoHas is which profiles depend on what, by specKey. A profile that cannot be
// read has nothing.
func (env Env) whoHas() map[string][]string {
	has := map[string][]string{}
	names, err := env.Home.Profiles()
	if err != nil {
		return has
	}
	for _, name := range names {
		p, err := profile.Read(env.Home, name)
		if err != nil {
			continue
		}
		for _, d := range install.List(p.Dir, p.Manifest) {
			spec, err := install.ParseDependency(d.Name, cmp.Or(d.Written, d.Spec), p.Dir)
			if err != nil {
				continue
			}
			if key := specKey(spec); !slices.Contains(has[key], name.String()) {
				has[key] = append(has[key], name.String())
			}
		}
	}
	return has
}
