package profile

import (
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"dsh/internal/fault"
	"dsh/internal/portable"
)

// Name is the name of a profile: one path element that is safe to join to the
// profiles directory. The zero Name is not a name.
type Name struct{ text string }

// Default is the profile that commands act on where none is named.
var Default = Name{"default"}

// desktop is the one name that belongs to another program.
const desktop = "desktop"

// ParseName accepts what the reference launcher accepts: everything but the
// empty string, ".", "..", "node_modules" and whatever holds a slash or a
// backslash. A NUL byte, which no system takes, and the names of dsh's own
// staging and backup directories are refused as well.
func ParseName(s string) (Name, error) {
	switch {
	case s == "", s == ".", s == "..", s == "node_modules", strings.ContainsAny(s, "/\\\x00"), isOwnDirectory(s):
		return Name{}, fault.Errorf(fault.Other, "invalid profile name %s", quote(s))
	}
	return Name{s}, nil
}

// String is the name as it was given.
func (n Name) String() string { return n.text }

// isOwnDirectory recognises .<name>.staging-* and .<name>.backup-*, the
// siblings that a replacement makes.
func isOwnDirectory(s string) bool {
	return strings.HasPrefix(s, ".") && (strings.Contains(s, ".staging-") || strings.Contains(s, ".backup-"))
}

// ShippedVariant reports which shipped name a file system could take name for:
// the one that is equal to it under some Unicode case folding, simple, full or
// Turkic, also after compatibility normalisation. A shipped name is a variant
// of itself.
func ShippedVariant(name Name) (shippedName string, ok bool) {
	folded := fold(name.text)
	for _, candidate := range Templates() {
		if folded == candidate {
			return candidate, true
		}
	}
	return "", false
}

// IsDesktop reports whether name is "desktop" under any case folding: that
// profile is managed by the Electron application alone.
func IsDesktop(name Name) bool { return fold(name.text) == desktop }

// CheckTarget says why name cannot be the profile that a template is copied
// to: it is shipped, a case variant of a shipped name, or the desktop
// application's.
func CheckTarget(name Name) error {
	if IsDesktop(name) {
		return fault.Errorf(fault.Other, "profile %s is managed exclusively by the Electron application", quote(name.text))
	}
	variant, ok := ShippedVariant(name)
	switch {
	case !ok:
		return nil
	case variant == name.text:
		return fault.Errorf(fault.Other, "profile %s is shipped and cannot be a custom profile target; omit --from-default-profile to use it", quote(name.text))
	default:
		return fault.Errorf(fault.Other, "profile %s differs only in case from the shipped profile %s and cannot be a custom profile target", quote(name.text), quote(variant))
	}
}

// fold is [portable.Fold], with which names are one, too, whose letters are only
// compatible, and on Windows those that it takes for one.
func fold(s string) string {
	s = norm.NFKC.String(portable.Fold(norm.NFKC.String(s)))
	if runtime.GOOS == "windows" {
		s = strings.TrimRight(s, ". ") // Windows drops them from a name
	}
	return s
}

// quote puts name in double quotes as it is, the way the reference's messages
// do; one with characters that a terminal acts on, or without meaning, is escaped.
func quote(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return `"` + name + `"`
}
