package install

import (
	"gopkg.in/yaml.v3"

	"dsh/internal/profile"
)

// Overrides are rules of a profile for what packages get in place of what they
// ask for.
type Overrides struct {
	rules []override
}

// override is one rule.
type override struct {
	selector string // as the lockfile writes it
	value    string // the spec that is meant, with references resolved
}

func readOverrides(*profile.Manifest, *yaml.Node) (Overrides, error) { return Overrides{}, nil }
