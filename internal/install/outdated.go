package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
)

// Dated is one dependency of a profile, held against what its registry has.
type Dated struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`     // the section of package.json
	Spec     string `json:"spec"`     // as package.json holds it, without secrets
	Source   string `json:"source"`   // registry, url, archive, folder, link, git or unknown
	Current  string `json:"current"`  // by the lockfile, else as it is installed; "" for neither. Of a git repository this and the next two are commits, shortened
	Wanted   string `json:"wanted"`   // what an update takes; "" where no registry is asked
	Latest   string `json:"latest"`   // by the tag latest
	Outdated bool   `json:"outdated"` // current is not the latest
	// Of what comes from a git repository, the commit that is locked and the one
	// that an update takes.
	Commit       string `json:"commit,omitempty"`
	CommitWanted string `json:"commitWanted,omitempty"`
	// Notes say why wanted or latest is not taken, and what stands in the way.
	Notes []Note `json:"notes"`

	spec string // with secrets
	err  error  // why its registry said nothing
}

// Note is one remark on a version.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// The codes of notes.
const (
	NoteLocked     = "locked"      // the lockfile has an older one, and update moves it
	NoteRange      = "range"       // latest is outside of the saved range
	NoteZero       = "zero"        // and will be, for ^0.1.0 means 0.1 alone
	NoteExact      = "exact"       // an exact version is saved
	NoteTag        = "tag"         // the spec is another tag
	NotePreferred  = "preferred"   // a higher one is in the range, and latest is preferred
	NotePrerelease = "prerelease"  // latest is a prerelease, which the range does not ask for
	NoteDeprecated = "deprecated"  // one is passed over, or the current one is, because of its publisher
	NoteEngines    = "engines"     // one is passed over for the Node.js that it wants
	NoteAge        = "age"         // one is passed over because it is too new
	NoteHost       = "host"        // latest is for another version of the harness
	NoteNotFound   = "not-found"   // the registry does not have the package, or no version that fits
	NoteNotAsked   = "not-asked"   // the registry does not answer, or refuses
	NoteElsewhere  = "no-registry" // it is from no registry, so that there is nothing to compare
)

// OutdatedOptions are what the versions are held against.
type OutdatedOptions struct {
	// Provides is the version of a host package in the installation; false where
	// the installation does not say it.
	Provides func(name string) (npmrange.Version, bool)
}

// Outdated holds the dependencies of a profile, the named ones or all, against
// their registries. Nothing is changed. Where some registries did not answer,
// the others' answers come with the first error.
func (j *Job) Outdated(ctx context.Context, m *profile.Manifest, lock *Lock, names []string, opts OutdatedOptions) ([]Dated, error) {
	if j.Settings != nil {
		j.settings = *j.Settings
	}
	var list []Dated
	for _, kind := range dependencyKinds {
		for _, d := range m.Dependencies(kind) {
			list = append(list, Dated{Name: d.Name, Kind: string(kind), Spec: ShownSpec(d.Spec), Notes: []Note{}, spec: d.Spec})
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(d Dated) bool { return d.Name == name }) {
			return nil, fault.WithHint(fault.Errorf(fault.Package, "the profile does not depend on %s", name), "%s shows what it depends on", j.command("list"))
		}
	}
	if len(names) > 0 {
		list = slices.DeleteFunc(list, func(d Dated) bool { return !slices.Contains(names, d.Name) })
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	asked := 0
	for i := range list {
		d := &list[i]
		if n, ok := lock.at("node_modules/" + d.Name); ok {
			d.Current = n.Version
		} else {
			d.Current = onDisk(j.Dir, d.Name).version
		}
		spec, err := ParseDependency(d.Name, d.spec, j.Dir)
		if w, ok := lock.source(d.Name); ok && keptAt(d.spec, j.Dir) != "" {
			spec, err = ParseSpec(w.From, j.Dir)
		} else if n, has := lock.at("node_modules/" + d.Name); ok && has && n.AgentPlugin {
			spec, err = ParseDependency(d.Name, w.From, j.Dir)
			d.Spec, d.spec = ShownSpec(w.From), w.From
		}
		if err == nil && spec.Kind == Git && !j.Offline {
			asked++
			locked, _ := lock.at("node_modules/" + d.Name)
			group.Go(func() error { return j.dateCommit(ctx, find, d, spec, locked) })
			continue
		}
		if err != nil || spec.Kind != Registry {
			d.elsewhere(spec, err)
			continue
		}
		d.Source = "registry"
		asked++
		group.Go(func() error { return j.date(ctx, find, d, spec, opts) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var failed error
	for _, d := range slices.Backward(list) {
		if d.err != nil {
			asked--
			failed = d.err
		}
	}
	if failed != nil && asked == 0 {
		return nil, failed
	}
	return append([]Dated{}, list...), failed
}

// unasked notes that a registry said nothing of a dependency, which is no
// reason to say nothing of the others.
func (d *Dated) unasked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	d.err = err
	d.note(NoteNotAsked, "%s", firstLine(err))
	return nil
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// oneLine is a text of somebody else on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (d *Dated) note(code, format string, args ...any) {
	d.Notes = append(d.Notes, Note{code, fmt.Sprintf(format, args...)})
}

// elsewhere describes a dependency that comes from no registry.
func (d *Dated) elsewhere(spec Spec, err error) {
	if odd, ok := errors.AsType[*SpecError](err); ok {
		d.Source = "unknown"
		if strings.Contains(odd.Reason, "git repository") {
			d.Source = "git"
		}
		d.note(NoteElsewhere, "%s %s", quote(d.Spec), odd.Reason)
		return
	}
	place := shownPlace(spec)
	switch spec.Kind {
	case Git:
		d.Source = "git"
		d.note(NoteElsewhere, "a git repository: update asks %s again", ShownSpec(spec.Git.Remote))
	case URL:
		d.Source = "url"
		if strings.Contains(spec.Place, secretMark) {
			d.note(NoteElsewhere, "an archive at an address that is not kept whole, for it may hold secrets: update cannot ask %s again", place)
			return
		}
		d.note(NoteElsewhere, "an archive at an address: update asks %s again", place)
	case Archive:
		d.Source = "archive"
		if isGone(spec.Place) {
			d.note(NoteElsewhere, "an archive on this machine that is not there any more: %s", place)
			return
		}
		d.note(NoteElsewhere, "an archive on this machine: update reads %s again", place)
	case Folder:
		d.Source = "folder"
		d.note(NoteElsewhere, "a copy of a folder: update copies %s again", place)
	default:
		d.Source = "link"
		d.note(NoteElsewhere, "a link to a folder, which is always as it is now: %s", place)
	}
}

// date finds what a registry has of one dependency.
func (j *Job) date(ctx context.Context, find *sources, d *Dated, spec Spec, opts OutdatedOptions) error {
	if j.Events.Resolving != nil {
		j.Events.Resolving(spec.Target)
	}
	p, err := j.Registry.Packument(ctx, spec.Target)
	if _, missing := errors.AsType[*registry.NotFoundError](err); missing {
		d.note(NoteNotFound, "%s", firstLine(err))
		return nil
	}
	if err != nil {
		return d.unasked(ctx, err)
	}
	d.Latest = p.Tags["latest"]
	c := comparison{d: d, p: p, spec: spec, how: find.age(spec.Target)}
	choice, err := c.pick(ctx, j.Registry)
	if none, ok := errors.AsType[*registry.NoMatchError](err); ok {
		d.note(NoteNotFound, "%s", firstLine(none))
	} else if err != nil {
		return d.unasked(ctx, err)
	} else {
		d.Wanted = choice.Version
	}
	d.Outdated = d.Current != "" && (older(d.Current, d.Latest) || older(d.Current, d.Wanted))
	if d.Current != "" && older(d.Current, d.Wanted) {
		d.note(NoteLocked, "%s has %s, and %s moves it to %s", LockName, d.Current, j.command("update", d.Name), d.Wanted)
	}
	if err := c.passedOver(); err != nil {
		return err
	}
	c.beyond(j)
	if err := c.hosts(opts); err != nil {
		return err
	}
	if now, err := p.Manifest(d.Current); err == nil && now != nil && now.Deprecated != "" {
		d.note(NoteDeprecated, "%s is deprecated: %s", d.Current, oneLine(now.Deprecated))
	}
	return nil
}

// older reports whether a is before b; what is no version is before nothing.
func older(a, b string) bool {
	va, errA := npmrange.ParseVersionLoose(a)
	vb, errB := npmrange.ParseVersionLoose(b)
	return errA == nil && errB == nil && va.Less(vb)
}

// comparison is one dependency beside the versions that there are.
type comparison struct {
	d    *Dated
	p    *registry.Packument
	spec Spec
	how  registry.PickOptions

	skipped   string // what would be wanted if it were not too new
	skippedAt time.Time
}

// pick is the wanted version. The document at hand has no times of publication
// where a registry abbreviates it, so the client is asked where these count.
func (c *comparison) pick(ctx context.Context, client *registry.Client) (*registry.Manifest, error) {
	if c.how.Before.IsZero() {
		return registry.Pick(c.p, c.spec.Wanted, c.how)
	}
	choice, err := client.Find(ctx, c.spec.Target, c.spec.Wanted, c.how)
	c.skipped, c.skippedAt = choice.Skipped, choice.SkippedAt
	return choice.Manifest, err
}

// passedOver notes why a version that the spec allows is not the wanted one.
func (c *comparison) passedOver() error {
	if c.skipped != "" {
		c.d.note(NoteAge, "%s was published %s, after %s", c.skipped, moment(c.skippedAt), moment(c.how.Before))
		return nil
	}
	if c.d.Wanted == "" || !isRange(c.spec.Wanted) || isExact(c.spec.Wanted) {
		return nil
	}
	for _, version := range c.p.Versions() {
		if !older(c.d.Wanted, version) {
			return nil
		}
		if !satisfies(version, c.spec.Wanted) {
			continue
		}
		m, err := c.p.Manifest(version)
		if err != nil {
			return err
		}
		switch {
		case m == nil:
		case m.Deprecated != "":
			c.d.note(NoteDeprecated, "%s is deprecated: %s", version, oneLine(m.Deprecated))
			return nil
		case m.Engines["node"] != "" && !fitsNode(m.Engines["node"]):
			c.d.note(NoteEngines, "%s wants Node.js %s", version, m.Engines["node"])
			return nil
		default:
			c.d.note(NotePreferred, "%s is in the range, and the tag latest, which is preferred, names %s", version, c.d.Latest)
			return nil
		}
	}
	return nil
}

func fitsNode(wanted string) bool {
	r, err := npmrange.ParseRange(wanted)
	return err == nil && r.SatisfiesPrerelease(assumedNode())
}

// beyond notes why latest is outside of what the spec allows.
func (c *comparison) beyond(j *Job) {
	d, wanted := c.d, c.spec.Wanted
	if !older(d.Wanted, d.Latest) || wanted == "" || satisfies(d.Latest, wanted) && isRange(wanted) {
		return
	}
	add := j.command("add", d.Name+"@latest")
	if d.Name != c.spec.Target {
		add = j.command("add", d.Name+"@npm:"+c.spec.Target+"@latest")
	}
	latest, err := npmrange.ParseVersionLoose(d.Latest)
	switch {
	case isExact(wanted):
		d.note(NoteExact, "package.json asks for exactly %s; %s takes %s", wanted, add, d.Latest)
	case !isRange(wanted):
		d.note(NoteTag, "package.json asks for the tag %s; %s takes %s", wanted, add, d.Latest)
	case err == nil && latest.Prerelease():
		d.note(NotePrerelease, "%s is a prerelease, and %s asks for none; %s takes it", d.Latest, wanted, add)
	default:
		if strings.HasPrefix(wanted, "^0.") {
			d.note(NoteZero, "%s never leaves %s, for before 1.0.0 each minor version may break; %s takes %s", wanted, minorOf(wanted[1:]), add, d.Latest)
			return
		}
		d.note(NoteRange, "%s is outside of %s; %s takes it", d.Latest, wanted, add)
	}
}

// minorOf is 0.1 of 0.1.3, and 0.0.3 of itself: what ^ lets a version before
// 1.0.0 move in.
func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 || parts[1] == "0" {
		return version
	}
	return parts[0] + "." + parts[1]
}

// hosts notes packages of the harness that latest wants in another version than
// the installation has.
func (c *comparison) hosts(opts OutdatedOptions) error {
	if c.d.Latest == "" || c.d.Latest == c.d.Current {
		return nil
	}
	m, err := c.p.Manifest(c.d.Latest)
	if err != nil || m == nil {
		return err
	}
	for _, peer := range sortedKeys(m.PeerDependencies) {
		if !IsHost(peer) {
			continue
		}
		have, known := opts.Provides(peer)
		r, err := npmrange.ParseRangeLoose(m.PeerDependencies[peer])
		if known && err == nil && !r.SatisfiesPrerelease(have) {
			c.d.note(NoteHost, "%s is for %s %s, and the installation has %s", c.d.Latest, peer, m.PeerDependencies[peer], have)
		}
	}
	return nil
}

// moment is a time as people write it, in the time zone of the world.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
