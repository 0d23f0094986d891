package npmrange

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

const (
	maxLength = 256       // characters in a version, as node-semver limits them
	maxNumber = 1<<53 - 1 // the largest integer that JavaScript holds exactly
)

// Version is one version, "1.2.3-beta.1+build". It is immutable, and two
// Versions are == exactly when their texts are the same after npm's trimming.
// The zero Version is 0.0.0.
type Version struct {
	sv semver.Version
}

// ParseVersion reads a version as node-semver does in strict mode: white space
// around it and one leading "v" are dropped, anything else must be SemVer.
func ParseVersion(s string) (Version, error) {
	text := trimSpace(s)
	if len(s) > maxLength {
		return Version{}, versionError(s, "longer than 256 characters")
	}
	v, err := strictVersion(strings.TrimPrefix(text, "v"))
	if err != nil {
		return Version{}, versionError(s, err.Error())
	}
	return v, nil
}

// ParseVersionLoose reads a version as npm reads those of registries and
// package specs (node-semver's loose mode): any run of "v", "=" and space may
// lead, numbers may have leading zeros, and the hyphen before a prerelease may
// be missing.
func ParseVersionLoose(s string) (Version, error) {
	if len(s) > maxLength {
		return Version{}, versionError(s, "longer than 256 characters")
	}
	text := strings.TrimLeftFunc(trimSpace(s), func(r rune) bool { return r == 'v' || r == '=' || isSpace(r) })
	if v, err := strictVersion(text); err == nil {
		return v, nil
	}
	numbers, build, hasBuild := strings.Cut(text, "+")
	p, ok := scanPartial(numbers, true)
	if !ok || p.wild() {
		return Version{}, versionError(s, semver.ErrInvalidSemVer.Error())
	}
	text = p.canonical()
	if hasBuild {
		text += "+" + build
	}
	v, err := strictVersion(text)
	if err != nil {
		return Version{}, versionError(s, err.Error())
	}
	return v, nil
}

func strictVersion(text string) (Version, error) {
	sv, err := semver.StrictNewVersion(text)
	if err != nil {
		return Version{}, err
	}
	if max(sv.Major(), sv.Minor(), sv.Patch()) > maxNumber {
		return Version{}, errNumber
	}
	return Version{*sv}, nil
}

func versionError(s, cause string) error {
	return fmt.Errorf("%q is not a version: %s", clip(s), cause)
}

// clip keeps an absurdly long input out of messages.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// String is the canonical text without build metadata, as npm writes versions.
func (v Version) String() string {
	text := v.sv.Original()
	if text == "" {
		return "0.0.0"
	}
	if i := strings.IndexByte(text, '+'); i >= 0 {
		text = text[:i]
	}
	return text
}

// Compare is -1, 0 or +1 by SemVer's precedence; build metadata does not count.
func (v Version) Compare(w Version) int { return v.sv.Compare(&w.sv) }

// Less reports whether v precedes w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// Prerelease reports whether v is a prerelease, such as 1.0.0-rc.1.
func (v Version) Prerelease() bool { return v.sv.Prerelease() != "" }

// Major is the first number.
func (v Version) Major() uint64 { return v.sv.Major() }

func (v *Version) core() core {
	return core{v.sv.Major(), v.sv.Minor(), v.sv.Patch()}
}
