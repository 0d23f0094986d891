package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"dsh/internal/advisory"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// AuditOptions are the choices of `dsh plugin audit`.
type AuditOptions struct {
	PluginOptions
	Level advisory.Severity // what counts, from there on
	DB    string            // a copy of OSV's data to ask in place of servers; "" asks those
	Save  bool              // what is learned is kept in the home, where installs look
}

// AuditReport is what is known against the packages of a profile.
type AuditReport struct {
	Profile string            `json:"profile"`
	Dir     string            `json:"dir"`
	Level   advisory.Severity `json:"level"`
	// Versions are looked up; Elsewhere is how many packages come from no
	// registry, of which nobody knows anything.
	Versions  int            `json:"versions"`
	Elsewhere int            `json:"elsewhere"`
	Sources   []AuditSource  `json:"sources"`
	Findings  []AuditFinding `json:"findings"`
	Kept      string         `json:"kept,omitempty"` // the file in which it is kept now
	Warnings  []string       `json:"-"`
	// Unasked is why a source said nothing, the first of the reasons.
	Unasked error `json:"-"`
}

// AuditSource is who was asked.
type AuditSource struct {
	Name       string     `json:"name"`           // registry, osv, copy or kept
	Address    string     `json:"address"`        // or file
	Versions   int        `json:"versions"`       // that it was asked about
	Advisories int        `json:"advisories"`     // that it had against them
	Made       *time.Time `json:"made,omitempty"` // of what is kept
	Error      string     `json:"error,omitempty"`
}

// AuditFinding is one advisory that one version of the profile's packages is
// affected by.
type AuditFinding struct {
	Package   string            `json:"package"`
	Version   string            `json:"version"`
	ID        string            `json:"id"`
	Aliases   []string          `json:"aliases"`
	Severity  advisory.Severity `json:"severity"`
	Malicious bool              `json:"malicious"`
	Counts    bool              `json:"counts"` // its severity is at the level or above
	Summary   string            `json:"summary"`
	Address   string            `json:"address"`
	Sources   []string          `json:"sources"`
	Places    []string          `json:"places"`
	Chain     []install.Need    `json:"chain"` // the shortest that leads to it
	More      bool              `json:"more"`  // there are others
	Fixed     string            `json:"fixed"` // the lowest version that is mended, "" where none is known
	// Remedy is a command that gets rid of it, or what to write where, "" where
	// nothing is known that does.
	Remedy  string `json:"remedy"`
	Command bool   `json:"command"` // the remedy is a command
}

// Malicious reports whether a package of the profile is one made to do harm.
func (r *AuditReport) Malicious() bool {
	return slices.ContainsFunc(r.Findings, func(f AuditFinding) bool { return f.Malicious })
}

// Counting is how many findings are at the level or above.
func (r *AuditReport) Counting() int {
	n := 0
	for _, f := range r.Findings {
		if f.Counts {
			n++
		}
	}
	return n
}

// advisoriesPath is where advisories are kept.
func (e Env) advisoriesPath() string { return e.Home.Path("advisories", "npm") }

// Audit asks what is known against the packages of a profile. It changes nothing,
// but keeps what it learns where that is asked for.
func Audit(ctx context.Context, env Env, opts AuditOptions) (*AuditReport, error) {
	type locked struct {
		*profile.Profile
		lock *install.Lock
	}
	now, warnings, err := reading(ctx, env, opts.Name, func(v staging.View) (locked, error) {
		p, lock, err := env.lockedProfile(v, opts.Name)
		return locked{p, lock}, err
	})
	if err != nil {
		return nil, err
	}
	report := &AuditReport{
		Profile: opts.Name.String(), Dir: now.Dir, Level: opts.Level, Sources: []AuditSource{}, Findings: []AuditFinding{}, Warnings: warnings,
	}
	if now.lock == nil {
		if len(install.List(now.Dir, now.Manifest)) > 0 {
			return nil, fault.WithHint(fault.Errorf(fault.Package, "profile %s has no %s, so nothing is known of its packages", opts.Name, install.LockName),
				"dsh plugin --profile %s install", fault.ShellWord(opts.Name.String()))
		}
		now.lock = &install.Lock{}
	}
	client, err := env.client(opts.PluginOptions, now.Dir)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	a := audit{env: env, opts: opts, client: client, report: report}
	a.versions = versionsOf(now.lock, report)
	if err := a.ask(ctx); err != nil {
		return nil, err
	}
	merged := advisory.Merge(a.found)
	a.findings(now.lock, now.Manifest, merged)
	if opts.Save {
		if err := a.keep(); err != nil {
			return nil, err
		}
	}
	if len(report.Findings) > 0 {
		a.remedies(ctx, now.Manifest, merged)
	}
	return report, nil
}

// audit is one question about a profile.
type audit struct {
	env      Env
	opts     AuditOptions
	client   *registry.Client
	report   *AuditReport
	versions []advisory.Version
	found    []advisory.Advisory
	asked    []string            // names that all sources there are answered for
	whole    []advisory.Advisory // of a copy that is to be kept
	isWhole  bool
}

// versionsOf are the versions of a lockfile that come from registries, each once,
// in order.
func versionsOf(lock *install.Lock, report *AuditReport) []advisory.Version {
	known := map[advisory.Version]bool{}
	for _, n := range lock.Nodes {
		switch {
		case n.Origin.Kind == install.Registry:
			known[advisory.Version{Name: n.Name, Version: n.Version}] = true
		case n.Origin.Kind == install.Link && lock.Nodes[n.Origin.Place].Package != nil: // to another package of the tree
		default:
			report.Elsewhere++
		}
	}
	report.Versions = len(known)
	versions := make([]advisory.Version, 0, len(known))
	for v := range known {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, func(a, b advisory.Version) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return versions
}

func packagesOf(versions []advisory.Version) []string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v.Name
	}
	return slices.Compact(names)
}

// publicRegistry is npm's own.
const publicRegistry = "registry.npmjs.org"

// isKnown reports whether the world may know a package: it is of the public
// registry, or of the one that is configured in its place. The names of others are
// nobody's business.
func isKnown(client *registry.Client, name string) bool {
	address := client.RegistryFor(name)
	u, err := url.Parse(address)
	return address == client.RegistryFor("x") || err == nil && u.Hostname() == publicRegistry
}

// known are the versions that the world may know.
func (a *audit) known() []advisory.Version {
	return slices.DeleteFunc(slices.Clone(a.versions), func(v advisory.Version) bool { return !isKnown(a.client, v.Name) })
}

func (a *audit) ask(ctx context.Context) error {
	switch {
	case a.opts.DB != "":
		return a.askCopy()
	case a.opts.Offline:
		return a.askKept()
	case len(a.versions) == 0:
		return nil
	}
	return a.askServers(ctx)
}

// askCopy looks in a copy of OSV's data.
func (a *audit) askCopy() error {
	known := map[string][]string{}
	for _, v := range a.known() {
		known[v.Name] = append(known[v.Name], v.Version)
	}
	list, unreadable, why, err := advisory.ReadCopy(a.opts.DB, func(name string) bool { return a.opts.Save || known[name] != nil })
	if err != nil {
		return err
	}
	if unreadable > 0 {
		a.report.Warnings = append(a.report.Warnings, fmt.Sprintf("%d advisories of %s could not be read, of which one is %v", unreadable, a.opts.DB, why))
	}
	a.whole, a.isWhole = list, true
	a.source(AuditSource{Name: "copy", Address: a.opts.DB, Versions: len(a.known())}, slices.DeleteFunc(slices.Clone(list), func(one advisory.Advisory) bool {
		return !slices.ContainsFunc(known[one.Package], one.Affects)
	}), nil)
	return nil
}

// askKept looks in what is kept.
func (a *audit) askKept() (err error) {
	path := a.env.advisoriesPath()
	kept, err := advisory.OpenKept(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.WithHint(fault.Errorf(fault.Network, "no advisories are kept, and --offline asks nobody"),
			"run it once with --save and without --offline, or with a copy of OSV's data: dsh plugin audit --db all.zip --save")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	source := AuditSource{Name: "kept", Address: path, Versions: len(a.known())}
	var found []advisory.Advisory
	for _, v := range a.known() {
		list, err := kept.Find(v.Name)
		if err != nil {
			return err
		}
		found = append(found, slices.DeleteFunc(list, func(one advisory.Advisory) bool { return !one.Affects(v.Version) })...)
	}
	made := kept.Whole
	if made.IsZero() {
		made = kept.Asked
		a.report.Warnings = append(a.report.Warnings, "what is kept is about the packages that were asked about, and knows nothing of others")
	}
	source.Made = &made
	a.source(source, found, nil)
	return nil
}

// askServers asks the registries that packages come from, each about its own, and
// OSV about those that the world knows. One that does not answer is told of; the
// others' answers count.
func (a *audit) askServers(ctx context.Context) error {
	byRegistry := map[string][]advisory.Version{}
	var order []string
	for _, v := range a.versions {
		address := a.client.RegistryFor(v.Name)
		if byRegistry[address] == nil {
			order = append(order, address)
		}
		byRegistry[address] = append(byRegistry[address], v)
	}
	type answer struct {
		source AuditSource
		list   []advisory.Advisory
		err    error
	}
	answers := make([]answer, len(order), len(order)+1)
	group, within := errgroup.WithContext(ctx)
	for i, address := range order {
		group.Go(func() error {
			ours := byRegistry[address]
			list, err := advisory.FromRegistry(within, a.client, address, "registry", ours)
			answers[i] = answer{AuditSource{Name: "registry", Address: registry.ShownAddress(address), Versions: len(ours)}, list, err}
			return nil
		})
	}
	base, public := cmp.Or(a.env.Getenv("DSH_OSV_URL"), advisory.PublicOSV), a.known()
	var osv answer
	asksOSV := base != "off" && len(public) > 0
	if asksOSV {
		if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fault.Errorf(fault.Other, "$DSH_OSV_URL is %q, which is neither an address nor off", registry.ShownAddress(base))
		}
		group.Go(func() error {
			list, err := advisory.FromOSV(within, a.client, base, "osv", public)
			osv = answer{AuditSource{Name: "osv", Address: registry.ShownAddress(base), Versions: len(public)}, list, err}
			return nil
		})
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return err
	}
	if asksOSV {
		answers = append(answers, osv)
	}
	answered := false
	for _, one := range answers {
		if _, none := errors.AsType[*registry.NotOfferedError](one.err); none && one.source.Name == "registry" {
			// Many mirrors have no advisories; that says nothing of the packages.
			one.source.Error = "it offers no advisories"
			a.report.Sources = append(a.report.Sources, one.source)
			a.report.Warnings = append(a.report.Warnings, fmt.Sprintf("the registry %s offers no advisories", one.source.Address))
			continue
		}
		a.source(one.source, one.list, one.err)
		answered = answered || one.err == nil
	}
	if !answered {
		return a.unanswered()
	}
	if a.report.Unasked == nil {
		a.asked = packagesOf(public)
	}
	return nil
}

// unanswered is the failure of an audit that nobody knew anything for, with what each
// of those who were asked said.
func (a *audit) unanswered() error {
	class := fault.Network
	if a.report.Unasked != nil {
		class = fault.ClassOf(a.report.Unasked)
	}
	var said []string
	for _, s := range a.report.Sources {
		said = append(said, fmt.Sprintf("%s %s: %s", s.Name, s.Address, s.Error))
	}
	command := fault.ShellWords("dsh", "plugin", "--profile", a.opts.Name.String(), "audit")
	hint := command + " --db all.zip looks in a copy of OSV's data"
	if kept, err := advisory.OpenKept(a.env.advisoriesPath()); err == nil {
		_ = kept.Close() // it was only read
		hint += ", and --offline in what is kept"
	}
	if slices.ContainsFunc(a.report.Sources, func(s AuditSource) bool { return s.Name == "osv" }) {
		hint += "; DSH_OSV_URL names a mirror of OSV"
	}
	if own := fault.Hint(a.report.Unasked); own != "" {
		hint = own // as where a token is missing
	}
	return fault.WithHint(fault.Errorf(class, "nobody who was asked has advisories\n\t%s", strings.Join(said, "\n\t")), "%s", hint)
}

// source notes what one source said.
func (a *audit) source(s AuditSource, list []advisory.Advisory, err error) {
	if err != nil {
		s.Error = firstLine(err)
		if a.report.Unasked == nil {
			a.report.Unasked = err
		}
	}
	s.Advisories = len(list)
	a.report.Sources = append(a.report.Sources, s)
	a.found = append(a.found, list...)
}

// keep keeps what was learned.
func (a *audit) keep() error {
	if a.opts.Offline || a.opts.DB == "" && len(a.asked) == 0 {
		a.report.Warnings = append(a.report.Warnings, "nothing is kept, because not everybody was asked and answered")
		return nil
	}
	path, now := a.env.advisoriesPath(), time.Now()
	if err := staging.MkdirAll(a.env.Home.Path("advisories")); err != nil {
		return fault.WithClass(fault.Environment, err)
	}
	save := func() error { return advisory.SaveAsked(path, a.asked, advisory.Merge(a.found), now) }
	if a.isWhole {
		save = func() error { return advisory.SaveWhole(path, a.whole, now) }
	}
	if err := save(); err != nil {
		return err
	}
	a.report.Kept = path
	return nil
}

// findings holds the versions against the advisories: the worst first.
func (a *audit) findings(lock *install.Lock, m *profile.Manifest, merged []advisory.Advisory) {
	copies := map[string][]install.Copy{}
	for _, v := range a.versions {
		for i := range merged {
			one := &merged[i]
			if one.Package != v.Name || !one.Affects(v.Version) {
				continue
			}
			if copies[v.Name] == nil {
				copies[v.Name] = lock.Why(m, v.Name, "")
			}
			f := AuditFinding{
				Package: v.Name, Version: v.Version, ID: one.ID, Aliases: append([]string{}, one.Aliases...), Severity: one.Severity,
				Malicious: one.Malicious(), Summary: one.Summary, Address: one.Address, Sources: one.Sources, Places: []string{}, Chain: []install.Need{},
				Fixed: one.Fixed(v.Version),
			}
			f.Counts = f.Malicious || f.Severity.Reaches(a.opts.Level)
			for _, c := range copies[v.Name] {
				if c.Name != v.Name || c.Version != v.Version {
					continue
				}
				f.Places = append(f.Places, c.Place)
				f.More = f.More || c.More || len(c.Chains) > 1 || len(f.Places) > 1
				if len(c.Chains) > 0 && (len(f.Chain) == 0 || len(c.Chains[0]) < len(f.Chain)) {
					f.Chain = c.Chains[0]
				}
			}
			a.report.Findings = append(a.report.Findings, f)
		}
	}
	badness := func(f AuditFinding) int {
		if f.Malicious {
			return int(advisory.Critical) + 1
		}
		return int(f.Severity)
	}
	slices.SortStableFunc(a.report.Findings, func(x, y AuditFinding) int { return cmp.Compare(badness(y), badness(x)) })
}

// remedies finds out what helps: it resolves the packages anew in a dry run, and
// sees which findings are gone then.
func (a *audit) remedies(ctx context.Context, m *profile.Manifest, merged []advisory.Advisory) {
	command := func(words ...string) string {
		return fault.ShellWords(append([]string{"dsh", "plugin", "--profile", a.opts.Name.String()}, words...)...)
	}
	var after *install.Lock
	if !a.opts.Offline {
		opts := a.opts.PluginOptions
		opts.DryRun = true
		_, err := a.env.plan(ctx, opts, false, func(j *install.Job) (*install.Result, error) {
			result, err := j.Update(ctx, nil, false)
			if err == nil {
				after = result.Lock()
			}
			return result, err
		})
		if err != nil && ctx.Err() == nil {
			a.report.Warnings = append(a.report.Warnings, "what an update would change is not known: "+firstLine(err))
		}
	}
	for i := range a.report.Findings {
		f := &a.report.Findings[i]
		at := slices.IndexFunc(merged, func(one advisory.Advisory) bool { return one.Package == f.Package && one.ID == f.ID })
		if at < 0 {
			continue
		}
		direct := len(f.Chain) == 1
		switch {
		case after != nil && !stillAffected(after, &merged[at]):
			f.Command, f.Remedy = true, command("update")
			if direct && !f.More {
				f.Remedy = command("update", f.Chain[0].Name)
			}
		case f.Malicious && len(f.Chain) > 0:
			f.Command, f.Remedy = true, command("remove", f.Chain[0].Name)
		case f.Fixed == "" || len(f.Chain) == 0:
		case direct && !f.More && f.Chain[0].Name == f.Package:
			f.Command, f.Remedy = true, command("add", f.Package+"@"+f.Fixed)
		default:
			last := f.Chain[len(f.Chain)-1]
			f.Remedy = fmt.Sprintf(`write "pnpm": {"overrides": {"%s@%s": "%s"}} into %s and run: %s`, f.Package, last.Wanted, f.Fixed, m.Path(), command("install"))
		}
	}
}

// stillAffected reports whether a lockfile has a version that an advisory is about.
func stillAffected(lock *install.Lock, one *advisory.Advisory) bool {
	for _, n := range lock.Nodes {
		if n.Origin.Kind == install.Registry && n.Name == one.Package && one.Affects(n.Version) {
			return true
		}
	}
	return false
}
