package npmrange

import (
	"cmp"
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
	text    string // as it was written, trimmed
	numbers core
	pre     string // prerelease without its hyphen
}

// ParseVersion reads a version as node-semver does in strict mode: white space
// around it and one leading "v" are dropped, anything else must be SemVer.
func ParseVersion(s string) (Version, error) {
	if v, ok := plainVersion(s); ok {
		return v, nil
	}
	text := trimSpace(s)
	if len(s) > maxLength {
		return Version{}, &versionError{s, "longer than 256 characters"}
	}
	v, err := strictVersion(strings.TrimPrefix(text, "v"))
	if err != nil {
		return Version{}, &versionError{s, err.Error()}
	}
	return v, nil
}

// ParseVersionLoose reads a version as npm reads those of registries and
// package specs (node-semver's loose mode): any run of "v", "=" and space may
// lead, numbers may have leading zeros, and the hyphen before a prerelease may
// be missing.
func ParseVersionLoose(s string) (Version, error) {
	if v, ok := plainVersion(s); ok {
		return v, nil
	}
	if len(s) > maxLength {
		return Version{}, &versionError{s, "longer than 256 characters"}
	}
	text := strings.TrimLeftFunc(trimSpace(s), func(r rune) bool { return r == 'v' || r == '=' || isSpace(r) })
	if text == "" || !isDigit(text[0]) {
		return Version{}, &versionError{s, semver.ErrInvalidSemVer.Error()}
	}
	if v, err := strictVersion(text); err == nil {
		return v, nil
	}
	numbers, build, hasBuild := strings.Cut(text, "+")
	p, ok := scanPartial(numbers, true)
	if !ok || p.wild() {
		return Version{}, &versionError{s, semver.ErrInvalidSemVer.Error()}
	}
	text = p.canonical()
	if hasBuild {
		text += "+" + build
	}
	v, err := strictVersion(text)
	if err != nil {
		return Version{}, &versionError{s, err.Error()}
	}
	return v, nil
}

// plainVersion reads what nearly every version looks like: three numbers, and
// perhaps a prerelease. A registry's document can hold thousands of them.
func plainVersion(s string) (v Version, ok bool) {
	if len(s) > maxLength {
		return Version{}, false
	}
	i := 0
	for n, to := range [...]*uint64{&v.numbers.major, &v.numbers.minor, &v.numbers.patch} {
		if n > 0 {
			if i == len(s) || s[i] != '.' {
				return Version{}, false
			}
			i++
		}
		start, number := i, uint64(0)
		for i < len(s) && isDigit(s[i]) {
			number = number*10 + uint64(s[i]-'0')
			i++
		}
		// Fifteen digits are below the largest number that counts.
		if digits := i - start; digits == 0 || digits > 15 || digits > 1 && s[start] == '0' {
			return Version{}, false
		}
		*to = number
	}
	v.text = s
	if i == len(s) {
		return v, true
	}
	v.pre = s[i+1:]
	return v, s[i] == '-' && prereleaseOK(v.pre, false)
}

func strictVersion(text string) (Version, error) {
	sv, err := semver.StrictNewVersion(text)
	if err != nil {
		return Version{}, err
	}
	numbers := core{sv.Major(), sv.Minor(), sv.Patch()}
	if max(numbers.major, numbers.minor, numbers.patch) > maxNumber {
		return Version{}, errNumber
	}
	return Version{text, numbers, sv.Prerelease()}, nil
}

// versionError makes its text only where somebody reads it: what is no version
// is often a range.
type versionError struct{ text, cause string }

func (e *versionError) Error() string {
	return fmt.Sprintf("%q is not a version: %s", clip(e.text), e.cause)
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
	if v.text == "" {
		return "0.0.0"
	}
	text, _, _ := strings.Cut(v.text, "+")
	return text
}

// Compare is -1, 0 or +1 by SemVer's precedence; build metadata does not count.
func (v Version) Compare(w Version) int {
	if d := v.numbers.compare(w.numbers); d != 0 {
		return d
	}
	return comparePrereleases(v.pre, w.pre)
}

// Less reports whether v precedes w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// Prerelease reports whether v is a prerelease, such as 1.0.0-rc.1.
func (v Version) Prerelease() bool { return v.pre != "" }

// Major is the first number.
func (v Version) Major() uint64 { return v.numbers.major }

// Numbers are the three numbers.
func (v Version) Numbers() (major, minor, patch uint64) {
	return v.numbers.major, v.numbers.minor, v.numbers.patch
}

// Text is the text with its build metadata.
func (v Version) Text() string { return v.text }

// Release is a version of three numbers that are known already, and no
// prerelease, whose text is at hand.
func Release(text string, major, minor, patch uint64) Version {
	return Version{text: text, numbers: core{major, minor, patch}}
}

// comparePrereleases is the order of two versions that differ in nothing else;
// "" is none, which comes after all.
func comparePrereleases(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return +1
	case b == "":
		return -1
	}
	for {
		var x, y string
		var moreA, moreB bool
		x, a, moreA = strings.Cut(a, ".")
		y, b, moreB = strings.Cut(b, ".")
		if d := compareIdentifiers(x, y); d != 0 {
			return d
		}
		switch {
		case !moreA && !moreB:
			return 0
		case !moreA:
			return -1
		case !moreB:
			return +1
		}
	}
}

// compareIdentifiers puts numbers before words. Numbers have no leading zeros,
// so that the longer one is the larger.
func compareIdentifiers(a, b string) int {
	numberA, numberB := allDigits(a), allDigits(b)
	switch {
	case numberA && !numberB:
		return -1
	case !numberA && numberB:
		return +1
	case numberA && len(a) != len(b):
		return cmp.Compare(len(a), len(b))
	}
	return strings.Compare(a, b)
}
