package npmrange

import (
	"errors"
	"strings"
	"unicode/utf8"
)

var errNumber = errors.New("a number is larger than 9007199254740991")

// partial is a version in which trailing numbers may be missing or "x", as
// comparators hold them. Numbers stay text until they are needed: node-semver
// tells "0" from "00" in places.
type partial struct {
	prefix string    // the run of "v", "=" and spaces before the numbers
	number [3]string // "" where it is missing or a wildcard
	given  int       // how many of the three were written, wildcards included
	pre    string    // prerelease without its hyphen
}

// wild reports whether a number is missing or a wildcard.
func (p *partial) wild() bool {
	return p.number[0] == "" || p.number[1] == "" || p.number[2] == ""
}

// disordered reports a number after a wildcard, as in 1.x.3.
func (p *partial) disordered() bool {
	return p.number[0] == "" && p.number[1] != "" || p.number[1] == "" && p.number[2] != ""
}

// canonical is the strict text of a partial that is not wild.
func (p *partial) canonical() string {
	var b strings.Builder
	for i, n := range p.number {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(trimZeros(n))
	}
	separator := byte('-')
	for id := range strings.SplitSeq(p.pre, ".") {
		if id == "" {
			break
		}
		b.WriteByte(separator)
		separator = '.'
		if allDigits(id) {
			id = trimZeros(id)
		}
		b.WriteString(id)
	}
	return b.String()
}

// scanPartial reads all of s, which must be without build metadata.
func scanPartial(s string, loose bool) (p partial, ok bool) {
	p.prefix = loosePrefix(s)
	rest := s[len(p.prefix):]
	for {
		n := identifierLen(rest)
		if n == 0 {
			return p, false
		}
		id := rest[:n]
		if !isWildcard(id[0]) {
			if !loose && n > 1 && id[0] == '0' {
				return p, false
			}
			p.number[p.given] = id
		}
		p.given++
		rest = rest[n:]
		if rest == "" {
			return p, true
		}
		if p.given == 3 {
			break
		}
		if rest[0] != '.' {
			return p, false
		}
		rest = rest[1:]
	}
	if !loose {
		p.pre = rest[1:]
		return p, rest[0] == '-' && prereleaseOK(p.pre, false)
	}
	return p, p.loosePrerelease(rest)
}

// loosePrerelease takes what follows the third number in loose mode, where the
// hyphen is optional: 1.2.3beta, and even 1.2.34.5, which is 1.2.3-4.5.
func (p *partial) loosePrerelease(rest string) bool {
	switch patch := p.number[2]; {
	case rest[0] == '-' && prereleaseOK(rest[1:], true):
		p.pre = rest[1:]
	case prereleaseOK(rest, true):
		p.pre = rest
	case rest[0] == '.' && len(patch) > 1 && prereleaseOK(rest[1:], true):
		p.number[2] = patch[:len(patch)-1]
		p.pre = patch[len(patch)-1:] + rest
	default:
		return false
	}
	return true
}

// prereleaseOK reports whether s is identifiers joined by dots.
func prereleaseOK(s string, loose bool) bool {
	for {
		id, rest, more := strings.Cut(s, ".")
		if id == "" {
			return false
		}
		digits := true
		for i := range len(id) {
			if !isIdentifier(id[i]) {
				return false
			}
			digits = digits && isDigit(id[i])
		}
		if digits && !loose && len(id) > 1 && id[0] == '0' {
			return false
		}
		if !more {
			return true
		}
		s = rest
	}
}

// identifierLen is the length of the number or wildcard that s begins with.
func identifierLen(s string) int {
	if s != "" && isWildcard(s[0]) {
		return 1
	}
	return digitsLen(s)
}

func digitsLen(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func loosePrefix(s string) string {
	n := 0
	for n < len(s) && (s[n] == 'v' || s[n] == '=' || s[n] == ' ') {
		n++
	}
	return s[:n]
}

// number is the value of digits, or errNumber.
func number(digits string) (uint64, error) {
	var n uint64
	for i := range len(digits) {
		n = n*10 + uint64(digits[i]-'0')
		if n > maxNumber {
			return 0, errNumber
		}
	}
	return n, nil
}

func trimZeros(digits string) string {
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits
}

func allDigits(s string) bool { return digitsLen(s) == len(s) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentifier(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-'
}

func isWildcard(c byte) bool { return c == 'x' || c == 'X' || c == '*' }

// isSpace is JavaScript's idea of white space, which \s and trim share.
func isSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\v', '\f', '\r', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return 0x2000 <= r && r <= 0x200a
}

func trimSpace(s string) string { return strings.TrimFunc(s, isSpace) }

// collapseSpace trims s and makes every run of white space one space.
func collapseSpace(s string) string {
	space := true // so that leading space counts as a run too long
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || c < ' ' || c == ' ' && space {
			return strings.Join(strings.FieldsFunc(s, isSpace), " ")
		}
		space = c == ' '
	}
	if s != "" && space {
		return s[:len(s)-1]
	}
	return s
}

// stripBuild removes build metadata ("+20130313.a") wherever it stands.
func stripBuild(s string) string {
	if strings.IndexByte(s, '+') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := buildLen(s[i:])
		if n == 0 {
			b.WriteByte(s[i])
			n = 1
		}
		i += n
	}
	return b.String()
}

func buildLen(s string) int {
	if s[0] != '+' {
		return 0
	}
	end := 0
	for i := 1; ; i++ {
		start := i
		for i < len(s) && isIdentifier(s[i]) {
			i++
		}
		if i == start {
			return end
		}
		end = i
		if i == len(s) || s[i] != '.' {
			return end
		}
	}
}

// joinOperators removes the spaces between an operator and what it modifies,
// so that an alternative can be split at its spaces. s has single spaces.
func joinOperators(s string) string {
	if strings.IndexByte(s, ' ') < 0 {
		return s
	}
	return joinAfter(joinAfter(joinComparisons(s), '~'), '^')
}

// joinComparisons does it for <, <=, =, >=, > before a version. In "v= 1" and
// "> = 1" the equals sign belongs to the version, and its space stays.
func joinComparisons(s string) string {
	var b strings.Builder
	done := 0 // s[:done] is in b
	for i := 0; i < len(s); {
		at := i
		if s[at] == ' ' {
			at++
		}
		op := operatorLen(s[at:])
		version := at + op
		spaced := op > 0 && version < len(s) && s[version] == ' '
		start := version + len(loosePrefix(s[version:]))
		if identifierLen(s[start:]) == 0 {
			i = max(start, i+1)
			continue
		}
		if spaced {
			b.WriteString(s[done:version])
			done = version + 1
		}
		i = start + plainLen(s[start:])
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// operatorLen is the length of the <, <=, =, >= or > that s begins with.
func operatorLen(s string) int {
	n := 0
	if n < len(s) && (s[n] == '<' || s[n] == '>') {
		n++
	}
	if n < len(s) && s[n] == '=' {
		n++
	}
	return n
}

// plainLen is how much of s is the version at its beginning.
func plainLen(s string) int {
	n := identifierLen(s)
	for range 2 {
		if n == len(s) || s[n] != '.' || identifierLen(s[n+1:]) == 0 {
			return n
		}
		n += 1 + identifierLen(s[n+1:])
	}
	for n < len(s) && (isIdentifier(s[n]) || s[n] == '.') {
		n++
	}
	return n
}

// joinAfter removes a space after each mark, and the > of "~> ".
func joinAfter(s string, mark byte) string {
	if strings.IndexByte(s, mark) < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		out = append(out, s[i])
		if s[i] != mark {
			continue
		}
		rest := s[i+1:]
		if mark == '~' {
			rest = strings.TrimPrefix(rest, ">")
		}
		if strings.HasPrefix(rest, " ") {
			i = len(s) - len(rest)
		}
	}
	return string(out)
}
