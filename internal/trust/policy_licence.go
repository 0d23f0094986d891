package trust

import (
	"encoding/json"
	"errors"
	"strings"
)

// DeclaredLicence is the licence that a package.json declares, "" for none: the
// text of its member license, or of what packages had before there were SPDX
// expressions, an object or a list of them. Several are a choice, as npm's
// documentation of package.json says.
func DeclaredLicence(packageJSON []byte) string {
	var m struct {
		License  json.RawMessage `json:"license"`
		Licence  json.RawMessage `json:"licence"`
		Licenses json.RawMessage `json:"licenses"`
	}
	if json.Unmarshal(packageJSON, &m) != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{m.License, m.Licenses, m.Licence} {
		if text := licenceText(raw); text != "" {
			return text
		}
	}
	return ""
}

func licenceText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text)
	}
	var object struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &object) == nil {
		if object.Type == "" {
			object.Type = object.Name
		}
		return strings.TrimSpace(object.Type)
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil {
		return ""
	}
	var texts []string
	for _, one := range many {
		if one[0] == '[' {
			continue // no list of lists
		}
		if text := licenceText(one); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return "(" + strings.Join(texts, " OR ") + ")"
}

// Licence is an SPDX licence expression, as annex D of the SPDX 2.3
// specification has it.
type Licence struct {
	op          licenceOp
	left, right *Licence // of and, or
	id          string   // of a leaf
	later       bool     // the identifier has a + behind it
	exception   string   // behind WITH, "" for none
}

type licenceOp uint8

const (
	leaf licenceOp = iota
	and
	or
)

const (
	maxLicence = 4096 // bytes of an expression
	maxDepth   = 100  // of its parentheses
)

var errLicence = errors.New("it is no SPDX licence expression")

// ParseLicence reads an SPDX licence expression. Which identifiers there are is
// not looked at.
func ParseLicence(text string) (*Licence, error) {
	if len(text) > maxLicence {
		return nil, errLicence
	}
	p := licenceParser{rest: text}
	p.next()
	l := p.either(0)
	if p.failed || p.token != "" {
		return nil, errLicence
	}
	return l, nil
}

// metBy reports whether a licence of the expression can be chosen so that all of
// it is allowed. Who may use a licence may use it with an exception, which only
// ever allows more, and under "or any later version".
func (l *Licence) metBy(allowed func(id string) bool) bool {
	switch l.op {
	case and:
		return l.left.metBy(allowed) && l.right.metBy(allowed)
	case or:
		return l.left.metBy(allowed) || l.right.metBy(allowed)
	}
	ids := []string{l.id}
	if l.later {
		ids = append(ids, l.id+"+")
	}
	for _, id := range ids {
		for _, other := range sameLicence(id, l.later) {
			if allowed(other) || l.exception != "" && allowed(other+" WITH "+l.exception) {
				return true
			}
		}
	}
	return false
}

// sameLicence is the names of a licence: those of the GNU licences had no -only
// and -or-later before SPDX 3.0 of the list.
func sameLicence(id string, later bool) []string {
	names := []string{id}
	upper := strings.ToUpper(id)
	if !strings.HasPrefix(upper, "GPL-") && !strings.HasPrefix(upper, "LGPL-") && !strings.HasPrefix(upper, "AGPL-") && !strings.HasPrefix(upper, "GFDL-") {
		return names
	}
	switch bare := strings.TrimSuffix(id, "+"); {
	case strings.HasSuffix(upper, "-ONLY"):
		names = append(names, id[:len(id)-len("-only")])
	case strings.HasSuffix(upper, "-OR-LATER"):
		bare = id[:len(id)-len("-or-later")]
		names = append(names, bare, bare+"+", bare+"-only")
	case later || bare != id:
		names = append(names, bare+"-only", bare+"-or-later")
	default:
		names = append(names, id+"-only")
	}
	return names
}

type licenceParser struct {
	rest, token string // token is "" at the end
	failed      bool
}

func (p *licenceParser) fail() *Licence {
	p.failed, p.token, p.rest = true, "", ""
	return &Licence{}
}

// next goes on to the next token: a parenthesis or a word.
func (p *licenceParser) next() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	n := 0
	for n < len(p.rest) && licenceByte(p.rest[n]) {
		n++
	}
	if n == 0 && p.rest != "" {
		if p.rest[0] != '(' && p.rest[0] != ')' {
			p.fail()
			return
		}
		n = 1
	}
	p.token, p.rest = p.rest[:n], p.rest[n:]
}

func licenceByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '+' || c == ':'
}

// is reports whether the token is an operator, in the one or the other case.
func (p *licenceParser) is(operator string) bool {
	return p.token == operator || p.token == strings.ToLower(operator)
}

func (p *licenceParser) either(depth int) *Licence {
	l := p.both(depth)
	for !p.failed && p.is("OR") {
		p.next()
		l = &Licence{op: or, left: l, right: p.both(depth)}
	}
	return l
}

func (p *licenceParser) both(depth int) *Licence {
	l := p.one(depth)
	for !p.failed && p.is("AND") {
		p.next()
		l = &Licence{op: and, left: l, right: p.one(depth)}
	}
	return l
}

func (p *licenceParser) one(depth int) *Licence {
	if p.token == "(" {
		if depth == maxDepth {
			return p.fail()
		}
		p.next()
		l := p.either(depth + 1)
		if p.token != ")" {
			return p.fail()
		}
		p.next()
		return l
	}
	l := &Licence{}
	l.id, l.later = strings.CutSuffix(p.token, "+")
	if !p.isID(l.id, true) {
		return p.fail()
	}
	p.next()
	if p.is("WITH") {
		p.next()
		if l.exception = p.token; !p.isID(l.exception, false) {
			return p.fail()
		}
		p.next()
	}
	return l
}

// isID reports whether the token is an identifier; only a reference to a text
// beside the list may have a colon, behind the document that it is in.
func (p *licenceParser) isID(id string, reference bool) bool {
	if id == "" || p.is("OR") || p.is("AND") || p.is("WITH") || strings.Contains(id, "+") {
		return false
	}
	document, text, ok := strings.Cut(id, ":")
	return !ok || reference && strings.HasPrefix(document, "DocumentRef-") && strings.HasPrefix(text, "LicenseRef-") && !strings.Contains(text, ":")
}
