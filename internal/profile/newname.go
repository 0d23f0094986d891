package profile

import (
	"fmt"
	"regexp"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/portable"
)

// longestNewName is in bytes. Every filesystem takes names of 255 bytes or of
// 255 characters, and what stands beside a profile has a longer name than it.
const longestNewName = 200

// ParseNewName is [ParseName] for a profile that is to be made. It refuses as
// well what another system could not hold, what would be taken for an option,
// for a file of dsh's own or for the desktop application's profile, and what
// some filesystem takes for the same name as one of existing or as a shipped
// one. The exact name of a shipped profile is accepted; see [CheckShipped].
// An existing profile is a [*TakenError].
func ParseNewName(s string, existing []Name) (Name, error) {
	name, err := ParseName(s)
	if err != nil {
		return Name{}, err
	}
	if reason := unfit(s); reason != "" {
		return Name{}, fault.Errorf(fault.Other, "a new profile cannot be called %s: %s", quote(s), reason)
	}
	for _, other := range existing {
		if sameName(s, other.text) {
			return Name{}, &TakenError{Name: name, By: other}
		}
	}
	if variant, ok := ShippedVariant(name); ok && variant != s {
		return Name{}, fault.Errorf(fault.Other, "a new profile cannot be called %s: some systems take that for the shipped profile %s", quote(s), quote(variant))
	}
	return name, nil
}

// TakenError is a name that a new profile cannot have because By is there.
type TakenError struct{ Name, By Name }

func (e *TakenError) Error() string {
	if e.Name == e.By {
		return fmt.Sprintf("profile %s exists already", quote(e.Name.text))
	}
	return fmt.Sprintf("a new profile cannot be called %s: some systems take that for the existing profile %s", quote(e.Name.text), quote(e.By.text))
}

// Class is Other.
func (e *TakenError) Class() fault.Class { return fault.Other }

// CheckShipped refuses the exact name of a shipped profile for a profile that
// does not start from that one's bundles: a start of the name promises them.
func CheckShipped(name Name, bundles []string) error {
	tmpl, err := LookupTemplate(name.text)
	if err != nil {
		return nil
	}
	rest := bundles
	for _, want := range tmpl.bundles {
		for len(rest) > 0 && rest[0] != want {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return fault.Errorf(fault.Other, "profile %s is shipped with the bundle %s, which this one does not have; choose another name", quote(name.text), want)
		}
		rest = rest[1:]
	}
	return nil
}

// sameName says whether some filesystem takes two names for one.
func sameName(a, b string) bool {
	return a == b || strings.TrimRight(fold(a), ". ") == strings.TrimRight(fold(b), ". ")
}

// savedState is a profile and a generation of it, NAME@ID.
var savedState = regexp.MustCompile(`.@[0-9]+$`)

// unfit says why a name that [ParseName] accepts is not fit for a new profile;
// "" if it is.
func unfit(s string) string {
	switch {
	case len(s) > longestNewName:
		return fmt.Sprintf("it has %d bytes, and more than %d do not fit everywhere", len(s), longestNewName)
	case s[0] == '-':
		return "it would be read as an option"
	case strings.HasPrefix(s, ".dsh-tmp-") || s == ".patches.lock":
		return "dsh has files of that name"
	case savedState.MatchString(s):
		return "that is how a saved state of a profile is called"
	}
	if reason := portable.Unfit(s); reason != "" {
		return reason
	}
	switch folded := fold(s); {
	case folded == "node_modules" || folded == "." || folded == "..":
		return "some systems take it for " + folded
	case folded == desktop:
		return "that profile is managed exclusively by the Electron application"
	}
	return ""
}
