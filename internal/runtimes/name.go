package runtimes

import (
	"regexp"
	"strings"

	"dsh/internal/fault"
)

// Name is what an installation in the home is called: one path element.
// The zero Name is none.
type Name struct{ text string }

// Embedded is the word for the bundles and plugins inside dsh, which is no
// installation's name.
const Embedded = "embedded"

// bundlesPrefix begins the names of directories that hold bundles alone.
const bundlesPrefix = "bundles-"

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// ParseName accepts letters, digits, ".", "_", "+" and "-", the first a letter
// or digit.
func ParseName(text string) (Name, error) {
	switch {
	case !namePattern.MatchString(text) || len(text) > 100:
		return Name{}, fault.Errorf(fault.Other, "an installation cannot be called %q: letters, digits and . _ + - make its name", text)
	case strings.EqualFold(text, Embedded) || strings.HasPrefix(text, bundlesPrefix):
		return Name{}, fault.Errorf(fault.Other, "an installation cannot be called %q: the name has a meaning of its own", text)
	}
	return Name{text}, nil
}

// String is the name as it was given.
func (n Name) String() string { return n.text }
