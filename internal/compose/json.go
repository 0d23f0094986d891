package compose

import (
	"errors"
	"math"
	"strconv"
)

// appendNumber writes f as JavaScript's Number.prototype.toString does.
func appendNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case f == 0:
		return append(dst, '0')
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads the exponent to two digits, JavaScript does not.
	if n := len(dst); n-start > 3 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// maxShown is about how many bytes of a value a message shows.
const maxShown = 64 << 10

// Show is v as JSON in one line, as warnings show it: what follows about the
// first 64 KiB is left out, an expression is the object {"__jsExpr": text}.
func Show(v Value) string { return string(appendJSON(nil, v, maxShown)) }

// appendJSON writes v as JSON.stringify does, an expression as the object
// {"__jsExpr": text} that the reference loader holds. budget is how many
// bytes to write before the rest is left out.
func appendJSON(dst []byte, v Value, budget int) []byte {
	if len(dst) > budget {
		return dst
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(dst, "null"...)
		}
		return appendNumber(dst, v)
	case string:
		return appendJSONString(dst, v)
	case Expr:
		dst = append(dst, `{"`+exprKey+`":`...)
		return append(appendJSONString(dst, v.Text), '}')
	case *List:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item, budget)
			if len(dst) > budget {
				return dst
			}
		}
		return append(dst, ']')
	case *Map:
		dst = append(dst, '{')
		for i, p := range v.pairs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, p.key), ':')
			dst = appendJSON(dst, p.value, budget)
			if len(dst) > budget {
				return dst
			}
		}
		return append(dst, '}')
	default:
		return dst
	}
}

func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"')
}

// MarshalJSON is the mapping as JSON.stringify gives it. What is [Endless] is
// an error.
func (m *Map) MarshalJSON() ([]byte, error) { return marshal(m) }

// MarshalJSON is the list as JSON.stringify gives it. What is [Endless] is an
// error.
func (l *List) MarshalJSON() ([]byte, error) { return marshal(l) }

func marshal(v Value) ([]byte, error) {
	if Endless(v) {
		return nil, errors.New("the value is too large to be written out")
	}
	return appendJSON(nil, v, math.MaxInt), nil
}

// MarshalJSON is the object {"__jsExpr": text} that the reference loader holds.
func (e Expr) MarshalJSON() ([]byte, error) { return appendJSON(nil, e, math.MaxInt), nil }
