package registry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/internal/npmrange"
)

// Packument is a registry's document about one package. The manifests in it
// stay text until they are looked at. It is safe for use by several goroutines.
type Packument struct {
	Name     string
	Registry string
	Tags     map[string]string // versions by dist-tag; not to be changed

	versions  []entry
	published string // JSON of the member "time"

	times     func() map[string]time.Time // of publication, by version
	ordered   func() []candidate          // versions that npm can read, the highest first
	mu        sync.Mutex
	manifests map[string]*Manifest // those that were looked at
}

// entry is one member of "versions".
type entry struct{ version, manifest string }

type candidate struct {
	version npmrange.Version
	key     string // as the registry spells it
}

// ParsePackument reads a registry's document about the package of that name.
// What does not matter here may be malformed.
func ParsePackument(name, registry, text string) (*Packument, error) {
	p := &Packument{Name: name, Registry: registry, Tags: map[string]string{}, manifests: map[string]*Manifest{}}
	c := &scanner{s: strings.TrimPrefix(text, "\ufeff")}
	if c.peek() != '{' {
		return nil, errors.New("it is no JSON object")
	}
	c.members(func(key string) {
		switch key {
		case "dist-tags":
			clear(p.Tags)
			c.members(func(tag string) {
				if version := c.text(); version != "" {
					p.Tags[tag] = version
				}
			})
		case "versions":
			p.versions = p.versions[:0]
			c.members(func(version string) { p.versions = append(p.versions, entry{version, c.raw()}) })
		case "time":
			p.published = c.raw()
		}
	})
	if err := c.end(); err != nil {
		return nil, err
	}
	p.ordered = sync.OnceValue(p.order)
	p.times = sync.OnceValue(p.publishedTimes)
	return p, nil
}

// order parses the versions. Equal ones stay in the registry's order.
func (p *Packument) order() []candidate {
	type numbered struct {
		candidate
		at int
	}
	all := make([]numbered, 0, len(p.versions))
	for i, e := range p.versions {
		if v, err := npmrange.ParseVersionLoose(e.version); err == nil {
			all = append(all, numbered{candidate{v, e.version}, i})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int {
		return cmp.Or(b.version.Compare(a.version), cmp.Compare(a.at, b.at))
	})
	out := make([]candidate, len(all))
	for i, n := range all {
		out[i] = n.candidate
	}
	return out
}

// Versions are the versions there are, the highest first. Strings that are no
// version are left out.
func (p *Packument) Versions() []string {
	out := make([]string, 0, len(p.versions))
	for _, c := range p.ordered() {
		out = append(out, c.key)
	}
	return out
}

// Manifest is the manifest of a version, spelt as the registry spells it. It
// is nil where there is none. It is shared, and not to be changed.
func (p *Packument) Manifest(version string) (*Manifest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.manifests[version]; ok {
		return m, nil
	}
	// From the end: of two members with one name the last counts.
	for i := len(p.versions) - 1; i >= 0; i-- {
		if e := p.versions[i]; e.version == version {
			m, err := parseManifest(p.Name, version, p.Registry, e.manifest)
			if err != nil {
				return nil, &NetworkError{
					Doing: "get the versions of " + p.Name, Host: ShownAddress(p.Registry),
					Cause: fmt.Sprintf("the manifest of %s cannot be read: %v", version, err), Err: err,
				}
			}
			m.Published = p.Published(version)
			p.manifests[version] = m
			return m, nil
		}
	}
	return nil, nil
}

// exact is the manifest of a version that was asked for by its number.
func (p *Packument) exact(version string) (*Manifest, error) {
	m, err := p.Manifest(version)
	if err == nil && m == nil {
		err = p.noMatch("ETARGET", version, time.Time{})
	}
	return m, err
}

// Published is when a version was published; zero where that is not known.
func (p *Packument) Published(version string) time.Time { return p.times()[version] }

// publishedTimes are the times of publication by version, as far as the
// registry says them.
func (p *Packument) publishedTimes() map[string]time.Time {
	times := map[string]time.Time{}
	c := &scanner{s: p.published}
	if c.peek() != '{' {
		return nil
	}
	c.members(func(version string) {
		if at, err := time.Parse(time.RFC3339, c.text()); err == nil {
			times[version] = at
		}
	})
	return times
}

// newest is how many versions a NoMatchError names.
const newest = 5

func (p *Packument) noMatch(code, wanted string, before time.Time) error {
	versions := p.Versions()
	return &NoMatchError{
		Code: code, Name: p.Name, Registry: p.Registry, Wanted: wanted, Before: before,
		Newest: versions[:min(newest, len(versions))], Tags: p.Tags,
	}
}

// tagList writes tags with latest first.
func tagList(tags map[string]string) string {
	names := slices.SortedFunc(maps.Keys(tags), func(a, b string) int {
		if first := cmp.Compare(rank(a), rank(b)); first != 0 {
			return first
		}
		return strings.Compare(a, b)
	})
	var list []string
	for _, name := range names[:min(newest, len(names))] {
		list = append(list, name+" "+tags[name])
	}
	if len(names) > newest {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}

func rank(tag string) int {
	if tag == "latest" {
		return 0
	}
	return 1
}
