package advisory

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// Severity is how bad an advisory is.
type Severity uint8

// The severities, in npm's words.
const (
	Unrated Severity = iota // nobody says it, or in a way that is not understood
	Low
	Moderate
	High
	Critical
)

var severities = []string{Unrated: "unrated", Low: "low", Moderate: "moderate", High: "high", Critical: "critical"}

// String is the severity in one word.
func (s Severity) String() string { return severities[s] }

// MarshalText writes the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads one of the words; what is none of them is Unrated.
func (s *Severity) UnmarshalText(text []byte) error {
	*s = severityOf(string(text))
	return nil
}

// severityOf reads the words of registries and of OSV's sources.
func severityOf(word string) Severity {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "info", "low":
		return Low
	case "moderate", "medium":
		return Moderate
	case "high", "important":
		return High
	case "critical":
		return Critical
	}
	return Unrated
}

// ParseLevel reads the severity from which on findings count: low, moderate, high
// or critical.
func ParseLevel(word string) (Severity, error) {
	for s := Low; s <= Critical; s++ {
		if s.String() == word {
			return s, nil
		}
	}
	return Unrated, fault.Errorf(fault.Other, "%q is no severity; there are low, moderate, high and critical", word)
}

// Reaches reports whether a finding of this severity counts at a level. One that
// nobody rated does at each: it is not known to be less.
func (s Severity) Reaches(level Severity) bool { return s == Unrated || s >= level }

// Version is one version of a package of an npm registry.
type Version struct{ Name, Version string }

// Advisory is what is known against some versions of one package.
type Advisory struct {
	ID       string   // the best known of its ids
	Aliases  []string // its other ids, sorted
	Package  string
	Summary  string // one line
	Severity Severity
	Address  string   // where to read on; ""
	Sources  []string // who tells of it
	affected []affected
}

// affected is one source's list of versions.
type affected struct {
	Ranges   []events `json:"ranges,omitempty"`
	Versions []string `json:"versions,omitempty"`
	Npm      string   `json:"npm,omitempty"` // a range as npm reads them
}

// Malicious reports whether the package is one made to do harm.
func (a *Advisory) Malicious() bool {
	return strings.HasPrefix(a.ID, "MAL-") || slices.ContainsFunc(a.Aliases, func(id string) bool { return strings.HasPrefix(id, "MAL-") })
}

// Affects reports whether a version is one of those.
func (a *Advisory) Affects(version string) bool {
	v, err := npmrange.ParseVersionLoose(version)
	for _, part := range a.affected {
		if slices.Contains(part.Versions, version) || err == nil && part.holds(v) {
			return true
		}
	}
	return false
}

func (p *affected) holds(v npmrange.Version) bool {
	if slices.ContainsFunc(p.Ranges, func(e events) bool { return e.hold(v) }) {
		return true
	}
	if p.Npm == "" {
		return false
	}
	r, err := npmrange.ParseRangeLoose(p.Npm)
	return err == nil && r.SatisfiesPrerelease(v)
}

// upperBound finds what a range of npm's excludes: "<1.2.3", not "<=1.2.3".
var upperBound = regexp.MustCompile(`<\s*v?([0-9][0-9A-Za-z.+-]*)`)

// Fixed is the lowest version above another that is named as one in which this is
// mended, "" where none is.
func (a *Advisory) Fixed(version string) string {
	v, err := npmrange.ParseVersionLoose(version)
	if err != nil {
		return ""
	}
	var best npmrange.Version
	found := false
	for _, text := range a.bounds() {
		fixed, err := parseVersion(text)
		if err == nil && v.Less(fixed) && !a.Affects(fixed.String()) && (!found || fixed.Less(best)) {
			best, found = fixed, true
		}
	}
	if !found {
		return ""
	}
	return best.String()
}

// bounds are the versions that sources name as mended.
func (a *Advisory) bounds() []string {
	var bounds []string
	for _, part := range a.affected {
		for _, range_ := range part.Ranges {
			for _, e := range range_ {
				if e.Fixed != "" {
					bounds = append(bounds, e.Fixed)
				}
			}
		}
		for _, m := range upperBound.FindAllStringSubmatch(part.Npm, -1) {
			bounds = append(bounds, m[1])
		}
	}
	return bounds
}

// ids are all of an advisory's.
func (a *Advisory) ids() []string { return append([]string{a.ID}, a.Aliases...) }

// idRank puts the ids that people look up first.
func idRank(id string) int {
	for i, prefix := range []string{"MAL-", "GHSA-", "CVE-"} {
		if strings.HasPrefix(id, prefix) {
			return i
		}
	}
	return 3
}

// setIDs makes the best id the advisory's, and the others its aliases.
func (a *Advisory) setIDs(ids []string) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(cmp.Compare(idRank(x), idRank(y)), strings.Compare(x, y)) })
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return
	}
	a.ID = ids[0]
	a.Aliases = slices.Sorted(slices.Values(ids[1:]))
}

// Merge makes one advisory of those that speak of the same thing: of one package,
// with an id in common, directly or by way of others. They come back by package and
// id. Versions that any source lists count, and the worst severity.
func Merge(all []Advisory) []Advisory {
	type key struct{ pkg, id string }
	group := make([]int, len(all)) // the first advisory of the same thing
	var first func(i int) int
	first = func(i int) int {
		if group[i] != i {
			group[i] = first(group[i])
		}
		return group[i]
	}
	known := map[key]int{}
	for i := range all {
		group[i] = i
		for _, id := range all[i].ids() {
			k := key{all[i].Package, id}
			if j, ok := known[k]; ok {
				a, b := first(i), first(j)
				group[max(a, b)] = min(a, b)
			} else {
				known[k] = i
			}
		}
	}
	merged := map[int]*Advisory{}
	var order []int
	for i := range all {
		at := first(i)
		if merged[at] == nil {
			one := all[i]
			one.Aliases, one.Sources, one.affected = slices.Clone(one.Aliases), slices.Clone(one.Sources), slices.Clone(one.affected)
			merged[at] = &one
			order = append(order, at)
			continue
		}
		merged[at].add(&all[i])
	}
	list := make([]Advisory, 0, len(order))
	for _, at := range order {
		list = append(list, *merged[at])
	}
	slices.SortFunc(list, func(a, b Advisory) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.ID, b.ID))
	})
	return list
}

func (a *Advisory) add(other *Advisory) {
	better := idRank(other.ID) < idRank(a.ID)
	if better && other.Summary != "" || a.Summary == "" {
		a.Summary = other.Summary
	}
	if better && other.Address != "" || a.Address == "" {
		a.Address = other.Address
	}
	a.Severity = max(a.Severity, other.Severity)
	a.setIDs(append(a.ids(), other.ids()...))
	for _, s := range other.Sources {
		if !slices.Contains(a.Sources, s) {
			a.Sources = append(a.Sources, s)
		}
	}
	a.affected = append(a.affected, other.affected...)
}
