package compose

import (
	"bytes"
	"strconv"
	"unicode/utf16"
)

// The line separators of YAML 1.1 that are ordinary characters in 1.2, and
// the noncharacters that stand in for them while yaml.v3 reads the text.
var separators = [...]struct{ char, standIn string }{
	{"\u0085", "\U0001FFFE"},
	{"\u2028", "\U0001FFFF"},
	{"\u2029", "\U0002FFFE"},
}

// prepare makes a text readable for yaml.v3 where js-yaml takes more than it:
// a byte-order mark, a missing final newline, a %YAML directive, the spellings
// of respell, line separators of YAML 1.1. Lines stay lines. It also says
// whether separators have stand-ins now.
func prepare(text []byte) (prepared []byte, separated bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	out := make([]byte, 0, len(text)+1)
	out = append(out, text...)
	if len(out) > 0 && out[len(out)-1] != '\n' && out[len(out)-1] != '\r' {
		out = append(out, '\n')
	}
	blankDirective(out)
	if needsLexer(out) {
		out = respell(out)
	}
	for _, s := range separators {
		if bytes.Contains(out, []byte(s.standIn)) {
			return out, false
		}
	}
	for _, s := range separators {
		if bytes.Contains(out, []byte(s.char)) {
			out = bytes.ReplaceAll(out, []byte(s.char), []byte(s.standIn))
			separated = true
		}
	}
	return out, separated
}

// blankDirective turns a `%YAML 1.x` line at the start of the text, with
// nothing but comments and other directives between it and a `---`, into a
// comment: yaml.v3 knows no version but 1.1.
func blankDirective(text []byte) {
	version := -1
	for start := 0; start < len(text); {
		end := start + bytes.IndexByte(text[start:], '\n') + 1
		if end == start {
			end = len(text)
		}
		switch line := bytes.TrimRight(text[start:end], " \t\r\n"); {
		case bytes.HasPrefix(line, []byte("%YAML 1.")) && version < 0:
			version = start
		case len(line) == 0 || line[0] == '#' || line[0] == '%':
		case bytes.HasPrefix(line, []byte("---")) && version >= 0:
			text[version] = '#'
			return
		default:
			return
		}
		start = end
	}
}

// needsLexer says whether respell may have something to do.
func needsLexer(text []byte) bool {
	for _, sign := range [...]string{`\ud`, `\uD`, ":,", ":[", ":]", ":{", ":}", "\t\n", "\t\r"} {
		if bytes.Contains(text, []byte(sign)) {
			return true
		}
	}
	return false
}

// respell writes in another way what only js-yaml understands: a `\ud83d\ude00`
// in double quotes as the character it is, a space behind the colon of
// `{a:[1]}`, spaces for the tabs on a line that is otherwise empty.
func respell(text []byte) []byte {
	l := lex(text)
	for _, blank := range l.tabbed {
		for i := blank[0]; i < blank[1]; i++ {
			text[i] = ' '
		}
	}
	out := make([]byte, 0, len(text)+16)
	done := 0
	for _, t := range l.tokens {
		switch {
		case t.kind == tokColon && t.end < len(text) && isFlow(text[t.end]):
			out = append(append(out, text[done:t.end]...), ' ')
			done = t.end
		case t.kind == tokDouble:
			for i := t.start; i < t.end; i++ {
				if text[i] != '\\' {
					continue
				}
				high, low := hexEscape(text[:t.end], i), hexEscape(text[:t.end], i+6)
				if r := utf16.DecodeRune(high, low); r != '\uFFFD' {
					out = append(append(out, text[done:i]...), string(r)...)
					done = i + 12
					i = done - 1
				} else {
					i++
				}
			}
		}
	}
	return append(out, text[done:]...)
}

// hexEscape is the code unit of the `\uXXXX` at i, or -1.
func hexEscape(text []byte, i int) rune {
	if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
