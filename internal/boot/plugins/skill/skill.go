// Package skill is the catalogue of skills, and the provider that finds them in
// folders and follows those.
//
// It does not read files itself: which are skills is for package skills.
package skill

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
	"dsh/internal/skills"
)

// Service is the name under which the *Catalogue is provided.
const Service = "skill"

// Name is that of the catalogue's plugin.
const Name = "@deepseek-ai/dsh-skill"

// Config is the configuration of the catalogue's row. It is for agents.
type Config struct {
	CollectCacheMaxEntries *float64 `json:"collectCacheMaxEntries"`
}

// Plugin provides the catalogue.
var Plugin = host.Plugin{Provides: []string{Service}, Start: func(_ context.Context, r *host.Row) error {
	var config Config
	if err := r.Decode(&config); err != nil {
		return err
	}
	r.Provide(Service, New())
	return nil
}}

// Entry is a skill and who provides it.
type Entry struct {
	skills.Skill
	Provider string `json:"provider"`
}

// Catalogue is the skills of all providers. It may be used by several goroutines.
type Catalogue struct {
	mu        sync.Mutex
	providers []provider
	hear      slot.Listeners[struct{}]
}

type provider struct {
	name, row string
	found     skills.Found
}

// New is an empty catalogue.
func New() *Catalogue { return &Catalogue{} }

// Add adds a provider, whose name is unique, and that finds nothing yet. set says
// what it finds now; remove takes it away.
func (c *Catalogue) Add(name, row string) (set func(skills.Found), remove func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at(name); at >= 0 {
		return nil, nil, &tools.TakenError{Kind: "provider", Name: name, Owner: "row " + c.providers[at].row}
	}
	c.providers = append(c.providers, provider{name: name, row: row})
	// Rows start in any order; what counts does not depend on it.
	slices.SortFunc(c.providers, func(a, b provider) int { return strings.Compare(a.name, b.name) })
	set = func(found skills.Found) {
		c.mu.Lock()
		if at := c.at(name); at >= 0 {
			c.providers[at].found = found
		}
		c.mu.Unlock()
		c.changed()
	}
	remove = func() {
		c.mu.Lock()
		c.providers = slices.DeleteFunc(c.providers, func(p provider) bool { return p.name == name })
		c.mu.Unlock()
		c.changed()
	}
	return set, remove, nil
}

// at is the place of a provider, -1 where there is none. mu is held.
func (c *Catalogue) at(name string) int {
	return slices.IndexFunc(c.providers, func(p provider) bool { return p.name == name })
}

// List is the skills by name. Of two with one name the one in the folder of the
// lower rank counts, then the one of the provider whose name comes first.
func (c *Catalogue) List() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []Entry{}
	for _, p := range c.providers {
		for _, s := range p.found.Skills {
			all = append(all, Entry{s, p.name})
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Root.Rank, b.Root.Rank))
	})
	return slices.CompactFunc(all, func(a, b Entry) bool { return a.Name == b.Name })
}

// Skipped is the files that are no skills for what is wrong with them.
func (c *Catalogue) Skipped() []skills.Skipped {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []skills.Skipped{}
	for _, p := range c.providers {
		all = append(all, p.found.Skipped...)
	}
	return all
}

// Load is a skill with its instructions, which are read now.
func (c *Catalogue) Load(name string) (Entry, string, error) {
	list := c.List()
	at := slices.IndexFunc(list, func(e Entry) bool { return e.Name == name })
	if at < 0 {
		return Entry{}, "", fault.Errorf(fault.Other, "there is no skill %q", name)
	}
	body, err := list[at].Body()
	return list[at], body, err
}

// Subscribe calls f after every change, until cancel is called. f does not wait.
func (c *Catalogue) Subscribe(f func()) (cancel func()) {
	return c.hear.Add(func(struct{}) { f() })
}

func (c *Catalogue) changed() { c.hear.Tell(struct{}{}) }
