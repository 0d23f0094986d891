package registry

import (
	"errors"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// PickOptions narrow what Pick takes.
type PickOptions struct {
	// NodeVersion is what engines.node is measured against; the zero Version
	// leaves it out.
	NodeVersion npmrange.Version
	// Before leaves out what was published later; the zero time nothing.
	Before time.Time
	// Age is how long ago Before is by the user's wish, for messages; 0 where it
	// is a date.
	Age time.Duration
	// Exempt reports versions, published at a time, for which Before does not
	// count; nil: none.
	Exempt func(version string, published time.Time) bool
}

// Choice is a version that was picked.
type Choice struct {
	*Manifest
	// Skipped is the version that would have been taken but for Before, and
	// SkippedAt when it was published; "" where that is the same.
	Skipped   string
	SkippedAt time.Time
	// Known is a time at which it was published already: that, or the last
	// change of the document; zero where neither is said.
	Known time.Time
}

// pick is Pick, and what it passed over.
func (p *Packument) pick(spec string, opts PickOptions) (Choice, error) {
	m, err := Pick(p, spec, opts)
	if err != nil {
		return Choice{}, p.explained(err, spec, opts)
	}
	choice := Choice{Manifest: m, Known: p.known(m.Published)}
	if opts.Before.IsZero() {
		return choice, nil
	}
	opts.Before = time.Time{}
	if other, err := Pick(p, spec, opts); err == nil && other.Version != m.Version {
		choice.Skipped, choice.SkippedAt = other.Version, other.Published
	}
	return choice, nil
}

// known is a time at which a version was published already that is said to have
// been at another, which may be zero.
func (p *Packument) known(published time.Time) time.Time {
	if published.IsZero() && p.changed != 0 {
		return time.UnixMilli(p.changed).UTC()
	}
	return published
}

// explained adds to an error which version is only too new.
func (p *Packument) explained(err error, spec string, opts PickOptions) error {
	none, ok := errors.AsType[*NoMatchError](err)
	if !ok || opts.Before.IsZero() {
		return err
	}
	opts.Before = time.Time{}
	if young, err := Pick(p, spec, opts); err == nil {
		none.Young, none.YoungAt, none.Age = young.Version, young.Published, opts.Age
	}
	return none
}

// Pick chooses the version that npm takes for a spec (npm-pick-manifest): an
// exact version, a range, a tag, or "" for any. A range takes what the tag
// latest names where that fits, else the highest that is not deprecated and
// whose engines fit, and one that is or do not only for want of better. The
// error is a *NoMatchError where no version is it.
func Pick(p *Packument, spec string, opts PickOptions) (*Manifest, error) {
	k := picker{p: p, wanted: spec, opts: opts}
	text := strings.TrimSpace(spec)
	if spec == "" {
		return k.byRange(npmrange.Range{}, true)
	}
	if v, err := npmrange.ParseVersionLoose(text); err == nil {
		return k.exact(v.String())
	}
	if r, err := npmrange.ParseRangeLoose(text); err == nil {
		return k.byRange(r, text == "*")
	}
	if !isTag(text) {
		return nil, fault.Errorf(fault.Package, "%q of package %s is no version, range or tag", spec, p.Name)
	}
	return k.byTag(text)
}

type picker struct {
	p      *Packument
	wanted string
	opts   PickOptions
}

func (k *picker) none() error { return k.p.noMatch("ETARGET", k.wanted, k.opts.Before) }

// allowed reports whether a version is old enough, as far as is known.
func (k *picker) allowed(r *record) bool {
	return k.opts.Before.IsZero() || r.published == 0 || !r.time().After(k.opts.Before) ||
		k.opts.Exempt != nil && k.opts.Exempt(k.p.text(r.text), r.time())
}

func (k *picker) exact(version string) (*Manifest, error) {
	i := k.p.find(version)
	if i < 0 {
		return nil, k.none()
	}
	if r := k.p.record(i); !k.allowed(&r) {
		return nil, k.none()
	}
	return k.p.manifest(i)
}

// byTag takes what the tag names, or what is below it where that is too new.
func (k *picker) byTag(tag string) (*Manifest, error) {
	version, ok := k.p.Tags[tag]
	if !ok {
		return nil, k.none()
	}
	i := k.p.find(version)
	if i < 0 {
		return nil, k.none()
	}
	if r := k.p.record(i); k.allowed(&r) {
		return k.p.manifest(i)
	}
	r, err := npmrange.ParseRangeLoose("<=" + version)
	if err != nil {
		return nil, k.none()
	}
	return k.byRange(r, false)
}

var everything = sync.OnceValue(func() npmrange.Range {
	r, _ := npmrange.ParseRange("*")
	return r
})

// byRange takes the best version in r, or of all where any is set. With it,
// latest is taken even if it is a prerelease.
func (k *picker) byRange(r npmrange.Range, any bool) (*Manifest, error) {
	if latest := k.p.latest; latest >= 0 {
		c := k.p.record(latest)
		fits := any || latest < k.p.count-k.p.odd && r.Satisfies(k.p.version(&c))
		if fits && k.allowed(&c) && k.grade(&c) == faultless {
			return k.p.manifest(latest)
		}
	}
	if any {
		r = everything()
	}
	return k.best(r)
}

func (k *picker) best(r npmrange.Range) (*Manifest, error) {
	best, bestGrade := -1, -1
	prereleases := r.NamesPrerelease()
	for i := k.p.from(r); i < k.p.count-k.p.odd; i++ {
		c := k.p.record(i)
		if !k.allowed(&c) {
			continue
		}
		if c.flags&flagPrerelease != 0 && !prereleases || !r.Satisfies(k.p.version(&c)) {
			continue
		}
		if grade := k.grade(&c); grade > bestGrade {
			best, bestGrade = i, grade
			if grade == faultless {
				break
			}
		}
	}
	if best >= 0 {
		return k.p.manifest(best)
	}
	for i := range k.p.count - k.p.odd {
		if c := k.p.record(i); k.allowed(&c) {
			return nil, k.none()
		}
	}
	return nil, k.p.noMatch("ENOVERSIONS", k.wanted, k.opts.Before)
}

// from is the first record that is not above all that a range admits.
func (p *Packument) from(r npmrange.Range) int {
	major, minor, patch, ok := r.Limit()
	limit := capped(major, minor, patch)
	if !ok || slices.Contains(limit[:], math.MaxUint32) {
		return 0
	}
	return sort.Search(p.count-p.odd, func(i int) bool {
		c := p.record(i)
		return slices.Compare(c.numbers[:], limit[:]) <= 0
	})
}

const faultless = 3

// grade is how willingly npm takes a version.
func (k *picker) grade(r *record) int {
	switch fits, kept := k.enginesFit(r), r.flags&flagDeprecated == 0; {
	case fits && kept:
		return faultless
	case fits:
		return 2
	case kept:
		return 1
	default:
		return 0
	}
}

// enginesFit measures engines.node as npm-install-checks does: strictly, and
// with prereleases of Node.js counting.
func (k *picker) enginesFit(c *record) bool {
	if c.flags&flagEngines == 0 || k.opts.NodeVersion == (npmrange.Version{}) {
		return true
	}
	wanted := k.p.node(c)
	if wanted == "" {
		return true
	}
	r, err := npmrange.ParseRange(wanted)
	return err == nil && r.SatisfiesPrerelease(k.opts.NodeVersion)
}

// isTag reports whether encodeURIComponent would leave s as it is.
func isTag(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.!~*'()", c) >= 0) {
			return false
		}
	}
	return s != ""
}
