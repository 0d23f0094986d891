package compose

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Characters that yaml.v3 takes for more than they are, and the noncharacters
// that stand in for them while it reads the text.
var standIns = [...]struct{ char, standIn string }{
	// Line separators of YAML 1.1 are ordinary characters in 1.2.
	{"\u0085", "\U0001FFFE"},
	{"\u2028", "\U0001FFFF"},
	{"\u2029", "\U0002FFFE"},
	// In brackets a question mark ends a plain scalar of yaml.v3, and none
	// begins with a colon.
	{"?", plainQuestion},
	{":", plainColon},
}

const (
	separators    = 3 // how many of standIns, at the front, stand for line separators
	plainQuestion = "\U0002FFFF"
	plainColon    = "\U0003FFFE"
)

// prepare makes a text readable for yaml.v3 where js-yaml takes more than it:
// a byte-order mark, a missing final newline, a %YAML directive, the spellings
// of respell, line separators of YAML 1.1. Lines stay lines. It also says
// whether there may be stand-ins now. refused says that yaml.v3 takes the text
// for none without the spellings of respell.
func prepare(text []byte, refused bool) (prepared []byte, replaced bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	out := make([]byte, 0, len(text)+1)
	out = append(out, text...)
	if len(out) > 0 && out[len(out)-1] != '\n' && out[len(out)-1] != '\r' {
		out = append(out, '\n')
	}
	blankDirective(out)
	for _, s := range standIns {
		if bytes.Contains(out, []byte(s.standIn)) {
			return out, false
		}
	}
	if refused || needsRespelling(out) {
		out = respell(out)
		replaced = true
	}
	for _, s := range standIns[:separators] {
		if bytes.Contains(out, []byte(s.char)) {
			out = bytes.ReplaceAll(out, []byte(s.char), []byte(s.standIn))
			replaced = true
		}
	}
	return out, replaced
}

// restore puts back what has stand-ins in text.
func restore(text string) string {
	for _, s := range standIns {
		text = strings.ReplaceAll(text, s.standIn, s.char)
	}
	return text
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

// needsRespelling says whether yaml.v3 may read text, but in another way than
// js-yaml reads it.
func needsRespelling(text []byte) bool {
	for _, sign := range [...]string{":,", ":[", ":]", ":{", ":}", "\t\n", "\t\r"} {
		if bytes.Contains(text, []byte(sign)) {
			return true
		}
	}
	return bytes.ContainsAny(text, "[{") && hasLeadingSign(text)
}

// hasLeadingSign says whether a plain scalar in brackets may begin with a
// colon or question mark.
func hasLeadingSign(text []byte) bool {
	for i := 1; i+1 < len(text); i++ {
		if c := text[i]; c != ':' && c != '?' || isWhite(text[i+1]) ||
			!isWhite(text[i-1]) && bytes.IndexByte([]byte("[{,"), text[i-1]) < 0 {
			continue
		}
		if text[i] == ':' {
			return true
		}
		// yaml.v3 refuses a question mark that goes on with something.
		before := bytes.TrimRight(text[:i], " \t\r\n")
		if len(before) > 0 && bytes.IndexByte([]byte("[{,?"), before[len(before)-1]) >= 0 {
			return true
		}
		// What comes before may be a comment.
		if bytes.ContainsAny(text[len(before):i], "\r\n") &&
			bytes.IndexByte(before[bytes.LastIndexAny(before, "\r\n")+1:], '#') >= 0 {
			return true
		}
	}
	return false
}

// maxSimpleKey is how many characters yaml.v3 goes back from a colon to its
// key.
const maxSimpleKey = 1024

// respell writes in another way what only js-yaml understands: a `\ud83d\ude00`
// in double quotes as one escape, and `\/` as the slash it is; a space behind
// the colon of `{a:[1]}`; a question mark before a long key in brackets;
// stand-ins in plain scalars there; spaces for the tabs on a line that is
// otherwise empty.
func respell(text []byte) []byte {
	l := lex(text)
	for _, blank := range l.tabbed {
		for i := blank[0]; i < blank[1]; i++ {
			text[i] = ' '
		}
	}
	r := respelling{text: text, out: make([]byte, 0, len(text)+16)}
	for i, t := range l.tokens {
		if l.isLongKey(i) {
			r.replace(t.start, t.start, "? ")
		}
		switch {
		case t.kind == tokColon && t.end < len(text) && isFlow(text[t.end]):
			r.replace(t.end, t.end, " ")
		case t.kind == tokDouble:
			r.escapes(t)
		case t.flow && (t.kind == tokPlain || t.kind == tokContinuation):
			r.plain(t)
		}
	}
	return append(r.out, text[r.done:]...)
}

// respelling is a text that is written anew.
type respelling struct {
	text, out []byte
	done      int // bytes of text that are in out
}

// replace writes the text up to start, and s for what is between start and end.
func (r *respelling) replace(start, end int, s string) {
	r.out = append(append(r.out, r.text[r.done:start]...), s...)
	r.done = end
}

func (r *respelling) escapes(t token) {
	for i := t.start; i+1 < t.end; i++ {
		if r.text[i] != '\\' {
			continue
		}
		if r.text[i+1] == '/' {
			r.replace(i, i+1, "")
		}
		high, low := hexEscape(r.text[:t.end], i), hexEscape(r.text[:t.end], i+6)
		if c := utf16.DecodeRune(high, low); c != '\uFFFD' {
			r.replace(i, i+12, fmt.Sprintf(`\U%08X`, c))
			i += 10
		}
		i++
	}
}

func (r *respelling) plain(t token) {
	if r.text[t.start] == ':' && t.kind == tokPlain {
		r.replace(t.start, t.start+1, plainColon)
	}
	for i := t.start; i < t.end; i++ {
		if r.text[i] == '?' {
			r.replace(i, i+1, plainQuestion)
		}
	}
}

// isLongKey says whether token i begins a key in brackets that is too long for
// yaml.v3.
func (l *lexer) isLongKey(i int) bool {
	first := l.tokens[i]
	if !first.flow || i == 0 || l.tokens[i-1].kind != tokOpen && l.tokens[i-1].kind != tokComma {
		return false
	}
	for i < len(l.tokens) && isKeyPart(l.tokens[i].kind) {
		i++
	}
	return i < len(l.tokens) && l.tokens[i].kind == tokColon && l.tokens[i].line == first.line &&
		l.tokens[i].start-first.start > maxSimpleKey
}

// hexEscape is the code unit of the `\u` escape at i, or -1.
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
