package compose

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// emitter writes values as js-yaml 4.3 does with its defaults: two spaces a
// level, lines of scalars folded at 80 columns, quotes only where needed,
// shared values written out at every place.
type emitter struct {
	out     []byte
	scratch []byte
}

// node writes v, whose entries stand on level. compact says that the first
// entry of a list or mapping goes on the current line.
func (e *emitter) node(v Value, level int, compact bool) {
	switch v := v.(type) {
	case *List:
		if len(v.Items) == 0 {
			e.out = append(e.out, "[]"...)
			return
		}
		for i, item := range v.Items {
			if i > 0 || !compact {
				e.newline(level)
			}
			e.out = append(e.out, "- "...)
			e.node(item, level+1, true)
		}
	case *Map:
		if v.Len() == 0 {
			e.out = append(e.out, "{}"...)
			return
		}
		for i, p := range v.pairs {
			if i > 0 || !compact {
				e.newline(level)
			}
			e.entry(p, level)
		}
	case string:
		e.text(v, level, false)
	case Expr:
		e.out = append(e.out, "!!js "...)
		e.text(v.Text, level, false)
	case float64:
		e.out = appendYAMLNumber(e.out, v)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	default:
		e.out = append(e.out, "null"...)
	}
}

// maxImplicitKey is how long a key may be written, in UTF-16 code units, to
// stand without a question mark.
const maxImplicitKey = 1024

func (e *emitter) entry(p pair, level int) {
	start := len(e.out)
	e.text(p.key, level+1, true)
	if len(e.out)-start > maxImplicitKey && utf16Len(e.out[start:]) > maxImplicitKey {
		key := append([]byte("? "), e.out[start:]...)
		e.out = append(e.out[:start], key...)
		e.newline(level)
		e.out = append(e.out, ": "...)
		e.node(p.value, level+1, true)
		return
	}
	e.out = append(e.out, ':')
	if !isFilled(p.value) {
		e.out = append(e.out, ' ')
	}
	e.node(p.value, level+1, false)
}

// isFilled says whether v takes lines of its own.
func isFilled(v Value) bool {
	switch v := v.(type) {
	case *List:
		return len(v.Items) > 0
	case *Map:
		return v.Len() > 0
	default:
		return false
	}
}

func (e *emitter) newline(level int) {
	e.out = append(e.out, '\n')
	e.indent(level)
}

func (e *emitter) indent(level int) {
	for range level {
		e.out = append(e.out, ' ', ' ')
	}
}

func appendYAMLNumber(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, ".nan"...)
	case math.IsInf(f, 1):
		return append(dst, ".inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-.inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0.0"...)
	}
	start := len(dst)
	dst = appendNumber(dst, f)
	// A fraction as short as 1e-7 gets a point, so that YAML 1.1 reads a float.
	if f != math.Trunc(f) {
		if i := strings.IndexByte(string(dst[start:]), 'e'); i >= 0 && !strings.Contains(string(dst[start:start+i]), ".") {
			exponent := string(dst[start+i:])
			dst = append(append(dst[:start+i], '.'), exponent...)
		}
	}
	return dst
}

type scalarStyle uint8

const (
	plainStyle scalarStyle = iota
	singleStyle
	doubleStyle
	literalStyle
	foldedStyle
)

// text writes a string scalar.
func (e *emitter) text(s string, level int, isKey bool) {
	level = max(1, level)
	width := max(40, 80-2*level)
	switch chooseStyle(s, width, isKey) {
	case plainStyle:
		e.out = append(e.out, s...)
	case singleStyle:
		e.out = append(e.out, '\'')
		e.out = append(e.out, strings.ReplaceAll(s, "'", "''")...)
		e.out = append(e.out, '\'')
	case doubleStyle:
		e.out = appendDoubleQuoted(e.out, s)
	case literalStyle:
		e.out = append(e.out, '|')
		e.block(s, s, level)
	case foldedStyle:
		e.scratch = appendFolded(e.scratch[:0], s, width)
		e.out = append(e.out, '>')
		e.block(s, string(e.scratch), level)
	}
}

// block writes what follows the | or > of a block scalar that holds s: the
// header and the given lines.
func (e *emitter) block(s, lines string, level int) {
	if strings.HasPrefix(strings.TrimLeft(s, "\n"), " ") {
		e.out = append(e.out, '2')
	}
	switch {
	case !strings.HasSuffix(s, "\n"):
		e.out = append(e.out, '-')
	case s == "\n" || strings.HasSuffix(s, "\n\n"):
		e.out = append(e.out, '+')
	}
	// The last line break is left to whatever is written next.
	lines = strings.TrimSuffix(lines, "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		e.out = append(e.out, '\n')
		if line != "" {
			e.indent(level)
			e.out = append(e.out, line...)
		}
	}
}

// chooseStyle picks the style for s when lines may be width columns wide.
// Keys are never block scalars.
func chooseStyle(s string, width int, isKey bool) scalarStyle {
	if s == "" || readsDifferently(s) {
		return singleStyle
	}
	var (
		plain     = startsPlain(s) && s[len(s)-1] != ' ' && s[len(s)-1] != ':'
		multiline = false
		foldable  = false
		unit      = 0 // place in UTF-16 code units, which is how the reference counts
		lineStart = 0
		spaced    = false // the line starts with a space, so it cannot be folded
		previous  = rune(-1)
	)
	spaced = s[0] == ' '
	for i, c := range s {
		switch {
		case c == '\n' && !isKey:
			foldable = foldable || unit-lineStart > width && !spaced
			multiline = true
			lineStart = unit + 1
			spaced = i+1 < len(s) && s[i+1] == ' '
		case !isPrintable(c) || c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			return doubleStyle
		case c == '#' && (previous < 0 || previous == ' ' || previous == '\n'),
			c == ' ' && previous == ':':
			plain = false
		}
		previous = c
		if c > 0xFFFF {
			unit++
		}
		unit++
	}
	foldable = !isKey && (foldable || unit-lineStart > width && !spaced)
	switch {
	case foldable:
		return foldedStyle
	case multiline:
		return literalStyle
	case plain:
		if _, typed := resolveTyped(s); !typed {
			return plainStyle
		}
	}
	return singleStyle
}

// startsPlain says whether an unquoted scalar may begin as s does.
func startsPlain(s string) bool {
	return !strings.ContainsRune(" -?:,[]{}#&*!|=>'\"%@`", rune(s[0]))
}

// isPrintable says whether c needs no escape.
func isPrintable(c rune) bool {
	switch {
	case c < 0x7F:
		return c >= ' '
	case c <= 0xA0:
		return false
	default:
		return c != 0x2028 && c != 0x2029 && c != 0xFEFF && c != 0xFFFE && c != 0xFFFF
	}
}

// readsDifferently says whether a YAML 1.1 reader would take s for a boolean
// or for a number in base 60.
func readsDifferently(s string) bool {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON",
		"n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return true
	}
	return isBase60(s)
}

// isBase60 matches [-+]?[0-9_]+(:[0-9_]+)+(.[0-9_]*)?
func isBase60(s string) bool {
	if !strings.Contains(s, ":") {
		return false
	}
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	if i := strings.IndexByte(s, '.'); i >= 0 {
		if strings.Trim(s[i+1:], "0123456789_") != "" {
			return false
		}
		s = s[:i]
	}
	parts := strings.Split(s, ":")
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789_") != "" {
			return false
		}
	}
	return len(parts) > 1
}

func appendDoubleQuoted(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for i, c := range s {
		if c == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			// A byte that is not UTF-8 becomes what JavaScript would have read.
			dst = append(dst, string(utf8.RuneError)...)
			continue
		}
		if short := shortEscape(c); short != 0 {
			dst = append(dst, '\\', short)
			continue
		}
		switch {
		case isPrintable(c):
			dst = utf8.AppendRune(dst, c)
		case c <= 0xFF:
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		}
	}
	return append(dst, '"')
}

// shortEscape is the letter of the escape for c, or 0.
func shortEscape(c rune) byte {
	switch c {
	case 0x00:
		return '0'
	case 0x07:
		return 'a'
	case 0x08:
		return 'b'
	case 0x09:
		return 't'
	case 0x0A:
		return 'n'
	case 0x0B:
		return 'v'
	case 0x0C:
		return 'f'
	case 0x0D:
		return 'r'
	case 0x1B:
		return 'e'
	case '"', '\\':
		return byte(c)
	case 0x85:
		return 'N'
	case 0xA0:
		return '_'
	case 0x2028:
		return 'L'
	case 0x2029:
		return 'P'
	default:
		return 0
	}
}

// appendFolded breaks the lines of s at width. Between lines that are not
// indented a line break is doubled, since a reader folds single ones away.
func appendFolded(dst []byte, s string, width int) []byte {
	indented := s[0] == '\n' || s[0] == ' '
	end := strings.IndexByte(s, '\n')
	if end < 0 {
		end = len(s)
	}
	dst = appendFoldedLine(dst, s[:end], width)
	for s = s[end:]; s != ""; {
		rest := strings.TrimLeft(s, "\n")
		dst = append(dst, s[:len(s)-len(rest)]...)
		line, _, _ := strings.Cut(rest, "\n")
		wasIndented := indented
		indented = strings.HasPrefix(line, " ")
		if !wasIndented && !indented && line != "" {
			dst = append(dst, '\n')
		}
		dst = appendFoldedLine(dst, line, width)
		s = rest[len(line):]
	}
	return dst
}

// appendFoldedLine breaks line at the last space within width, or at the
// first one behind it. Where several spaces follow each other only the last
// can be a break, and indented lines have none.
func appendFoldedLine(dst []byte, line string, width int) []byte {
	if strings.HasPrefix(line, " ") {
		return append(dst, line...)
	}
	start, startUnit := 0, 0 // of the part not written yet
	brk, brkUnit := 0, 0     // latest break that fits
	unit := 0
	for i, c := range line {
		if c == ' ' && i+1 < len(line) && line[i+1] != ' ' {
			if unit-startUnit > width {
				if brk <= start {
					brk, brkUnit = i, unit
				}
				dst = append(append(dst, line[start:brk]...), '\n')
				start, startUnit = brk+1, brkUnit+1
			}
			brk, brkUnit = i, unit
		}
		if c > 0xFFFF {
			unit++
		}
		unit++
	}
	if unit-startUnit > width && brk > start {
		dst = append(append(dst, line[start:brk]...), '\n')
		start = brk + 1
	}
	return append(dst, line[start:]...)
}

// utf16Len is the length of b in UTF-16 code units.
func utf16Len(b []byte) int {
	n := 0
	for _, c := range string(b) {
		if c > 0xFFFF {
			n++
		}
		n++
	}
	return n
}

// AppendYAML writes v as it would stand in a block of YAML, its lines indented
// by level times two spaces; the first one is not. What needs quotes gets them,
// and js-yaml reads it as v again.
func AppendYAML(dst []byte, v Value, level int) []byte {
	e := emitter{out: dst}
	e.node(v, level, true)
	return e.out
}

// AppendFlow writes v in one line, as it would stand in brackets.
func AppendFlow(dst []byte, v Value) []byte {
	switch v := v.(type) {
	case Expr:
		return appendDoubleQuoted(append(dst, "!!js "...), v.Text)
	case *List:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = AppendFlow(dst, item)
		}
		return append(dst, ']')
	case *Map:
		dst = append(dst, '{')
		for i, p := range v.pairs {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = AppendFlow(dst, p.key)
			dst = append(dst, ": "...)
			dst = AppendFlow(dst, p.value)
		}
		return append(dst, '}')
	case string:
		if plainInFlow(v) {
			return append(dst, v...)
		}
		return appendDoubleQuoted(dst, v)
	case float64:
		return appendYAMLNumber(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	default:
		return append(dst, "null"...)
	}
}

// plainInFlow says whether a text needs no quotes in brackets: words of
// letters, digits and signs that mean nothing there, which are not read as
// another type.
func plainInFlow(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '/'
		if !letter && (i == 0 || strings.IndexByte("-.", c) < 0) {
			return false
		}
	}
	_, isText := resolvePlain(s).(string)
	return s != "" && isText
}
