package npmrange

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Range is a set of versions, such as "^1.2.3 || 2.x". It is immutable. The
// zero Range admits nothing.
type Range struct {
	comparators []comparator // alternatives one after the other
	any         bool         // an alternative is a bare *, which swallows the others
}

type core struct{ major, minor, patch uint64 }

func (c core) compare(d core) int {
	switch {
	case c.major != d.major:
		return cmp.Compare(c.major, d.major)
	case c.minor != d.minor:
		return cmp.Compare(c.minor, d.minor)
	}
	return cmp.Compare(c.patch, d.patch)
}

type operator uint8

const (
	opEqual operator = iota
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
)

// numbersOnly says when a comparator looks only at the three numbers of a
// version, which is what a bound at "-0", the lowest prerelease, comes to.
type numbersOnly uint8

const (
	never           numbersOnly = iota
	withPrereleases             // where prereleases are included, whose bounds node-semver lowers
	withAndWithout              // always
)

type comparator struct {
	op      operator
	numbers numbersOnly
	any     bool // dropped by node-semver, as it admits everything; only without prereleases
	last    bool // ends an alternative
	core    core
	version *Version // set if a prerelease was written
}

var anything = comparator{op: opGreaterEqual, numbers: withPrereleases, any: true}

// ParseRange reads a range as node-semver does in strict mode.
func ParseRange(s string) (Range, error) { return parseRange(s, false) }

// ParseRangeLoose reads a range as npm reads those of package specs
// (node-semver's loose mode): versions may be loose, and what is no comparator
// is left out as long as something remains.
func ParseRangeLoose(s string) (Range, error) { return parseRange(s, true) }

// Satisfies reports whether r admits v. A prerelease is admitted only where a
// comparator of the same alternative names a prerelease of the same three
// numbers.
func (r Range) Satisfies(v Version) bool {
	prerelease := v.Prerelease()
	if r.any {
		return !prerelease
	}
	c := v.numbers
	ok, named := true, false
	for i := range r.comparators {
		m := &r.comparators[i]
		ok = ok && (m.any || m.admits(&v, c, withAndWithout))
		named = named || m.version != nil && m.core == c
		if m.last {
			if ok && (named || !prerelease) {
				return true
			}
			ok, named = true, false
		}
	}
	return false
}

// NamesPrerelease reports whether Satisfies may admit a prerelease.
func (r Range) NamesPrerelease() bool {
	for i := range r.comparators {
		if r.comparators[i].version != nil {
			return !r.any
		}
	}
	return false
}

// Limit is three numbers above which Satisfies admits nothing, and whether there
// is such a limit: ^1.2.3 has 2.0.0.
func (r Range) Limit() (major, minor, patch uint64, ok bool) {
	if r.any {
		return 0, 0, 0, false
	}
	var limit, lowest core
	bounded := false
	for i := range r.comparators {
		m := &r.comparators[i]
		if upper := m.op == opEqual || m.op == opLess || m.op == opLessEqual; upper && !m.any && (!bounded || m.core.compare(lowest) < 0) {
			lowest, bounded = m.core, true
		}
		if !m.last {
			continue
		}
		if !bounded {
			return 0, 0, 0, false
		}
		if limit.compare(lowest) < 0 {
			limit = lowest
		}
		bounded = false
	}
	return limit.major, limit.minor, limit.patch, true
}

// SatisfiesPrerelease reports whether r admits v where prereleases count as
// any other version: npm's includePrerelease, which also lowers the bounds that
// were not written in full, so that 2.x admits 2.0.0-beta.
func (r Range) SatisfiesPrerelease(v Version) bool {
	c := v.numbers
	ok := true
	for i := range r.comparators {
		m := &r.comparators[i]
		ok = ok && m.admits(&v, c, withPrereleases)
		if m.last {
			if ok {
				return true
			}
			ok = true
		}
	}
	return false
}

// Max is the highest of vs that r admits, the first of equals.
func (r Range) Max(vs []Version) (Version, bool) {
	var best Version
	found := false
	for _, v := range vs {
		if (!found || best.Less(v)) && r.Satisfies(v) {
			best, found = v, true
		}
	}
	return best, found
}

// admits compares v, whose numbers are c; numbers from lowered on make the
// prerelease of v count for nothing.
func (m *comparator) admits(v *Version, c core, lowered numbersOnly) bool {
	d := c.compare(m.core)
	if d == 0 && m.numbers < lowered {
		d = m.comparePrerelease(v)
	}
	switch m.op {
	case opLess:
		return d < 0
	case opLessEqual:
		return d <= 0
	case opGreater:
		return d > 0
	case opGreaterEqual:
		return d >= 0
	default:
		return d == 0
	}
}

func (m *comparator) comparePrerelease(v *Version) int {
	switch {
	case m.version != nil && v.Prerelease():
		return comparePrereleases(v.pre, m.version.pre)
	case m.version != nil:
		return +1
	case v.Prerelease():
		return -1
	}
	return 0
}

var errGrammar = errors.New("no comparator of npm's grammar")

func parseRange(s string, loose bool) (Range, error) {
	rest, more := collapseSpace(s), true
	p := rangeParser{loose: loose, out: make([]comparator, 0, 2+2*strings.Count(rest, "||"))}
	for more {
		var alternative string
		alternative, rest, more = strings.Cut(rest, "||")
		if err := p.alternative(strings.Trim(alternative, " ")); err != nil {
			return Range{}, fmt.Errorf("%q is not a version range: %w", clip(s), err)
		}
	}
	if len(p.out) == 0 {
		return Range{}, fmt.Errorf("%q is not a version range", clip(s))
	}
	return Range{p.out, p.any}, nil
}
