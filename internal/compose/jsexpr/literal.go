package jsexpr

import (
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

// literal is the value of an expression that is a text by itself.
func literal(e js.INode) (string, bool) {
	switch e := e.(type) {
	case *js.LiteralExpr:
		return literal(*e)
	case js.LiteralExpr:
		if e.TokenType == js.StringToken {
			return unescape(inner(e.Data), false)
		}
	case *js.TemplateExpr:
		if e.Tag == nil && len(e.List) == 0 {
			return unescape(inner(e.Tail), true)
		}
	case *js.GroupExpr:
		return literal(e.X)
	}
	return "", false
}

// propertyName is the name that a property of an object is written with.
func propertyName(n *js.PropertyName) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.Computed != nil:
		return literal(n.Computed)
	case n.Literal.TokenType == js.StringToken:
		return literal(n.Literal)
	default:
		return identifier(n.Literal.Data), true
	}
}

// identifier is a name as written, which may hold escapes.
func identifier(data []byte) string {
	if name, ok := unescape(data, true); ok {
		return name
	}
	return string(data)
}

// inner is a text without its quotes, or a part of a template without what
// stands around it.
func inner(data []byte) []byte {
	if len(data) > 2 && strings.HasSuffix(string(data), "${") {
		return data[1 : len(data)-2]
	}
	return data[1 : len(data)-1]
}

// unescape is the value of a text between quotes. It is false for an escape
// that JavaScript refuses; templates know no octal ones.
func unescape(data []byte, template bool) (string, bool) {
	s := string(data)
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		if rest == "" {
			return "", false
		}
		value, size, ok := escape(rest, template)
		if !ok {
			return "", false
		}
		b.WriteString(value)
		s = rest[size:]
	}
}

// escape reads what stands behind a backslash.
func escape(s string, template bool) (value string, size int, ok bool) {
	hex := func(from, to int) (string, int, bool) {
		if to > len(s) || strings.ContainsAny(s[from:to], "+-_") {
			return "", 0, false
		}
		n, err := strconv.ParseUint(s[from:to], 16, 32)
		return string(rune(n)), to, err == nil && n <= 0x10FFFF
	}
	switch c := s[0]; {
	case c == 'x':
		return hex(1, 3)
	case c == 'u' && strings.HasPrefix(s, "u{"):
		end := strings.IndexByte(s, '}')
		value, _, ok := hex(2, max(end, 2))
		return value, end + 1, ok
	case c == 'u':
		return hex(1, 5)
	case c >= '0' && c <= '9':
		if c == '0' && (len(s) == 1 || s[1] < '0' || s[1] > '9') {
			return "\x00", 1, true
		}
		return octal(s, template)
	case strings.HasPrefix(s, "\r\n"):
		return "", 2, true
	case strings.HasPrefix(s, "\u2028"), strings.HasPrefix(s, "\u2029"):
		return "", 3, true
	}
	switch s[0] {
	case '\n', '\r':
		return "", 1, true
	case 'n':
		return "\n", 1, true
	case 't':
		return "\t", 1, true
	case 'r':
		return "\r", 1, true
	case 'b':
		return "\b", 1, true
	case 'f':
		return "\f", 1, true
	case 'v':
		return "\v", 1, true
	}
	return s[:1], 1, true
}

func octal(s string, template bool) (value string, size int, ok bool) {
	if template {
		return "", 0, false
	}
	n := rune(0)
	for size < len(s) && size < 3 && s[size] >= '0' && s[size] <= '7' && n*8+rune(s[size]-'0') <= 0o377 {
		n = n*8 + rune(s[size]-'0')
		size++
	}
	if size == 0 { // 8 and 9 stand for themselves
		return s[:1], 1, true
	}
	return string(n), size, true
}
