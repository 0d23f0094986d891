package registry

import (
	"strings"
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
}

// Choice is a version that was picked.
type Choice struct {
	*Manifest
	// Skipped is the version that would have been taken but for Before, and
	// SkippedAt when it was published; "" where that is the same.
	Skipped   string
	SkippedAt time.Time
}

// pick is Pick, and what it passed over.
func (p *Packument) pick(spec string, opts PickOptions) (Choice, error) {
	m, err := Pick(p, spec, opts)
	if err != nil || opts.Before.IsZero() {
		return Choice{Manifest: m}, err
	}
	choice := Choice{Manifest: m}
	free := opts
	free.Before = time.Time{}
	if other, err := Pick(p, spec, free); err == nil && other.Version != m.Version {
		choice.Skipped, choice.SkippedAt = other.Version, p.Published(other.Version)
	}
	return choice, nil
}

// Pick chooses the version that npm takes for a spec (npm-pick-manifest): an
// exact version, a range, a tag, or "" for any. A range takes what the tag
// latest names where that fits, else the highest that is not deprecated and
// whose engines fit, and one that is or do not only for want of better. The
// error is a *NoMatchError where no version is it.
func Pick(p *Packument, spec string, opts PickOptions) (*Manifest, error) {
	k := picker{p: p, wanted: spec, opts: opts}
	if !opts.Before.IsZero() {
		k.times = p.times()
	}
	text := strings.TrimSpace(spec)
	if spec == "" {
		return k.byRange(npmrange.Range{}, true)
	}
	if v, err := npmrange.ParseVersionLoose(text); err == nil {
		if !k.allowed(v.String()) {
			return nil, k.none()
		}
		return k.take(v.String())
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
	times  map[string]time.Time
}

func (k *picker) none() error { return k.p.noMatch("ETARGET", k.wanted, k.opts.Before) }

// allowed reports whether a version is old enough, as far as is known.
func (k *picker) allowed(version string) bool {
	at, known := k.times[version]
	return !known || !at.After(k.opts.Before)
}

func (k *picker) take(version string) (*Manifest, error) {
	m, err := k.p.Manifest(version)
	if err == nil && m == nil {
		err = k.none()
	}
	return m, err
}

// byTag takes what the tag names, or what is below it where that is too new.
func (k *picker) byTag(tag string) (*Manifest, error) {
	version, ok := k.p.Tags[tag]
	if !ok {
		return nil, k.none()
	}
	if k.allowed(version) {
		return k.take(version)
	}
	r, err := npmrange.ParseRangeLoose("<=" + version)
	if err != nil {
		return nil, k.none()
	}
	return k.byRange(r, false)
}

// byRange takes the best version in r, or of all where any is set. With it,
// latest is taken even if it is a prerelease.
func (k *picker) byRange(r npmrange.Range, any bool) (*Manifest, error) {
	if latest, ok := k.p.Tags["latest"]; ok && k.allowed(latest) {
		v, err := npmrange.ParseVersionLoose(latest)
		if any || err == nil && r.Satisfies(v) {
			m, err := k.p.Manifest(latest)
			if err != nil {
				return nil, err
			}
			if m != nil && m.Deprecated == "" && k.enginesFit(m) {
				return m, nil
			}
		}
	}
	if any {
		var err error
		if r, err = npmrange.ParseRange("*"); err != nil {
			return nil, err
		}
	}
	return k.best(r)
}

func (k *picker) best(r npmrange.Range) (*Manifest, error) {
	var best *Manifest
	bestGrade, seen := -1, false
	for _, c := range k.p.ordered() {
		if !k.allowed(c.key) {
			continue
		}
		seen = true
		if !r.Satisfies(c.version) {
			continue
		}
		m, err := k.p.Manifest(c.key)
		if err != nil {
			return nil, err
		}
		if grade := k.grade(m); grade > bestGrade {
			best, bestGrade = m, grade
			if grade == faultless {
				break
			}
		}
	}
	switch {
	case !seen:
		return nil, k.p.noMatch("ENOVERSIONS", k.wanted, k.opts.Before)
	case best == nil:
		return nil, k.none()
	}
	return best, nil
}

const faultless = 3

// grade is how willingly npm takes a version.
func (k *picker) grade(m *Manifest) int {
	switch fits, kept := k.enginesFit(m), m.Deprecated == ""; {
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
func (k *picker) enginesFit(m *Manifest) bool {
	wanted := m.Engines["node"]
	if wanted == "" || k.opts.NodeVersion == (npmrange.Version{}) {
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
