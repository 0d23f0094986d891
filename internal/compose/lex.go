package compose

import (
	"bytes"
	"slices"
)

// A token is a piece of YAML text as far as one can tell without parsing: the
// lexer never fails, so it can also look at texts that the parser refuses.
type token struct {
	kind       tokenKind
	start, end int  // bytes of the text
	line       int  // counted from 0
	indent     int  // column of its first byte, counted from 0 in bytes
	first      bool // nothing but white space before it on its line
	flow       bool // inside of brackets
	closed     bool // of quoted: the closing quote is there
}

type tokenKind uint8

const (
	tokPlain        tokenKind = iota
	tokContinuation           // a further line of a plain scalar
	tokDouble
	tokSingle
	tokBlock // the header of a block scalar and all of its lines
	tokComment
	tokDash     // - before an entry
	tokColon    // : behind a key
	tokQuestion // ? before a key
	tokOpen     // [ or {
	tokClose    // ] or }
	tokComma
	tokAnchor
	tokAlias
	tokTag
	tokDirective
	tokDocument    // ---
	tokDocumentEnd // ...
	tokReserved    // @ or ` where a value begins
	tokTab         // a tab in the indentation of a line, or behind a dash
)

type lexer struct {
	text      []byte
	pos       int
	line      int
	lineStart int
	flow      int // open brackets
	parent    int // column of the latest entry or key, which holds what follows
	tokens    []token
	tabbed    [][2]int // white space with tabs on lines that have nothing else
}

// lex splits text into tokens.
func lex(text []byte) *lexer {
	l := &lexer{text: text, parent: -1}
	first := true
	for {
		c, ok := l.peek(0)
		switch {
		case !ok:
			return l
		case c == '\n' || c == '\r':
			l.newline()
			first = true
			continue
		case c == ' ' || c == '\t':
			l.blank(first)
			continue
		}
		l.next(c, first)
		first = false
	}
}

func (l *lexer) peek(ahead int) (byte, bool) {
	if l.pos+ahead < len(l.text) {
		return l.text[l.pos+ahead], true
	}
	return 0, false
}

func (l *lexer) newline() {
	if l.text[l.pos] == '\r' && l.pos+1 < len(l.text) && l.text[l.pos+1] == '\n' {
		l.pos++
	}
	l.pos++
	l.line++
	l.lineStart = l.pos
}

// blank skips spaces and tabs, and records a tab that indents something.
func (l *lexer) blank(first bool) {
	start := l.pos
	for l.pos < len(l.text) && (l.text[l.pos] == ' ' || l.text[l.pos] == '\t') {
		l.pos++
	}
	tab := bytes.IndexByte(l.text[start:l.pos], '\t')
	if !first && len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].kind != tokDash || tab < 0 {
		return
	}
	c, ok := l.peek(0)
	switch {
	case !ok || c == '\n' || c == '\r':
		if first {
			l.tabbed = append(l.tabbed, [2]int{start, l.pos})
		}
	case c != '#' && l.flow == 0:
		l.add(token{kind: tokTab, start: start + tab, end: l.pos, first: first})
	}
}

func (l *lexer) add(t token) {
	t.line = l.line
	t.indent = t.start - l.lineStart
	t.flow = l.flow > 0
	l.tokens = append(l.tokens, t)
}

// take adds a token of n bytes.
func (l *lexer) take(kind tokenKind, n int, first bool) {
	l.add(token{kind: kind, start: l.pos, end: l.pos + n, first: first})
	l.pos += n
}

func (l *lexer) next(c byte, first bool) {
	column := l.pos - l.lineStart
	if column == 0 && l.marker(first) {
		return
	}
	if c == '#' && (first || isBlank(l.text[l.pos-1])) {
		l.take(tokComment, l.lineEnd()-l.pos, first)
		return
	}
	if first && l.continues(column) {
		l.plain(tokContinuation, first)
		return
	}
	switch c {
	case '-', '?':
		switch {
		case !l.separated(1):
		case l.flow == 0:
			l.parent = column
			kind := tokDash
			if c == '?' {
				kind = tokQuestion
			}
			l.take(kind, 1, first)
			return
		case c == '?' && l.after(tokOpen, tokComma):
			l.take(tokQuestion, 1, first)
			return
		}
	case ':':
		if l.endsKey() || l.flow > 0 && !l.after(tokOpen, tokComma, tokColon, tokQuestion, tokTag, tokAnchor) {
			l.key()
			l.take(tokColon, 1, first)
			return
		}
	case '[', '{':
		l.flow++
		l.take(tokOpen, 1, first)
		return
	case ']', '}':
		l.flow = max(0, l.flow-1)
		l.take(tokClose, 1, first)
		return
	case ',':
		if l.flow > 0 {
			l.take(tokComma, 1, first)
			return
		}
	case '&':
		l.take(tokAnchor, l.wordLen(), first)
		return
	case '*':
		l.take(tokAlias, l.wordLen(), first)
		return
	case '!':
		l.take(tokTag, l.wordLen(), first)
		return
	case '|', '>':
		if l.flow == 0 {
			l.block(first)
			return
		}
	case '"', '\'':
		l.quoted(c, first)
		return
	case '@', '`':
		l.reserved(first)
		return
	}
	l.plain(tokPlain, first)
}

// marker reads what counts only at the start of a line.
func (l *lexer) marker(first bool) bool {
	rest := l.text[l.pos:]
	switch {
	case rest[0] == '%' && (len(l.tokens) == 0 || l.onlyBeforeDocument()):
		l.take(tokDirective, l.lineEnd()-l.pos, first)
	case bytes.HasPrefix(rest, []byte("---")) && l.separated(3):
		l.parent, l.flow = -1, 0
		l.take(tokDocument, 3, first)
	case bytes.HasPrefix(rest, []byte("...")) && l.separated(3):
		l.parent, l.flow = -1, 0
		l.take(tokDocumentEnd, 3, first)
	default:
		return false
	}
	return true
}

func (l *lexer) onlyBeforeDocument() bool {
	for _, t := range l.tokens {
		if t.kind != tokComment && t.kind != tokDirective {
			return false
		}
	}
	return true
}

// continues says whether a line that begins in column goes on with the plain
// scalar of the line before.
func (l *lexer) continues(column int) bool {
	if len(l.tokens) == 0 || l.flow == 0 && column <= l.parent {
		return false
	}
	last := l.tokens[len(l.tokens)-1]
	if last.kind != tokPlain && last.kind != tokContinuation {
		return false
	}
	// A key on a line of its own is not continued text, unless what came
	// before is a value already.
	c := l.text[l.pos]
	return l.flow == 0 || c != ',' && c != ']' && c != '}' && (c != ':' || !l.endsKey())
}

// after says whether the last token is of one of some kinds.
func (l *lexer) after(kinds ...tokenKind) bool {
	return len(l.tokens) > 0 && slices.Contains(kinds, l.tokens[len(l.tokens)-1].kind)
}

// endsKey says whether the colon here is one wherever it stands, and no
// character of a plain scalar.
func (l *lexer) endsKey() bool {
	return l.separated(1) || l.flow > 0 && isFlow(l.text[l.pos+1])
}

// key notes that the token before a colon is a key, which holds what follows.
func (l *lexer) key() {
	if l.flow > 0 {
		return
	}
	column := -1
	for i := len(l.tokens) - 1; i >= 0 && l.tokens[i].line == l.line; i-- {
		switch t := l.tokens[i]; t.kind {
		case tokPlain, tokDouble, tokSingle, tokAnchor, tokTag, tokAlias, tokClose:
			column = t.indent
			continue
		}
		break
	}
	if column >= 0 {
		l.parent = column
	}
}

// separated says whether the byte n ahead ends a word.
func (l *lexer) separated(n int) bool {
	c, ok := l.peek(n)
	return !ok || isWhite(c)
}

// isWhite says whether c is a space, a tab or of a line break.
func isWhite(c byte) bool { return isBlank(c) || c == '\n' || c == '\r' }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isFlow(c byte) bool {
	return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'
}

func (l *lexer) lineEnd() int {
	for i := l.pos; i < len(l.text); i++ {
		if l.text[i] == '\n' || l.text[i] == '\r' {
			return i
		}
	}
	return len(l.text)
}

// wordLen is the length of an anchor, alias or tag.
func (l *lexer) wordLen() int {
	n := 1
	for !l.separated(n) && (l.flow == 0 || !isFlow(l.text[l.pos+n])) {
		n++
	}
	return n
}

// plain reads an unquoted scalar up to the end of its line.
func (l *lexer) plain(kind tokenKind, first bool) {
	n := 0
	for {
		c, ok := l.peek(n)
		if !ok || c == '\n' || c == '\r' ||
			c == ':' && n > 0 && (l.separated(n+1) || l.flow > 0 && isFlow(l.text[l.pos+n+1])) ||
			c == '#' && n > 0 && isBlank(l.text[l.pos+n-1]) ||
			l.flow > 0 && n > 0 && isFlow(c) {
			break
		}
		n++
	}
	for n > 1 && isBlank(l.text[l.pos+n-1]) {
		n--
	}
	l.take(kind, n, first)
}

// reserved reads a word that begins with a character no value begins with.
func (l *lexer) reserved(first bool) {
	l.plain(tokReserved, first)
}

func (l *lexer) quoted(quote byte, first bool) {
	t := token{kind: tokDouble, start: l.pos, first: first}
	if quote == '\'' {
		t.kind = tokSingle
	}
	l.add(t)
	at := &l.tokens[len(l.tokens)-1]
	l.pos++
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == '\n' || c == '\r':
			l.newline()
			continue
		case c == '\\' && quote == '"' && l.pos+1 < len(l.text) && l.text[l.pos+1] != '\n' && l.text[l.pos+1] != '\r':
			l.pos++
		case c == quote && quote == '\'' && l.pos+1 < len(l.text) && l.text[l.pos+1] == quote:
			l.pos++
		case c == quote:
			l.pos++
			at.end, at.closed = l.pos, true
			return
		}
		l.pos++
	}
	at.end = l.pos
}

// block reads a block scalar: all lines that are indented deeper than what
// holds it.
func (l *lexer) block(first bool) {
	l.take(tokBlock, l.lineEnd()-l.pos, first)
	at := &l.tokens[len(l.tokens)-1]
	for l.pos < len(l.text) {
		line := l.pos
		l.newline()
		indent := 0
		for l.pos+indent < len(l.text) && l.text[l.pos+indent] == ' ' {
			indent++
		}
		c, ok := l.peek(indent)
		if ok && c != '\n' && c != '\r' && indent <= l.parent {
			// Leave the line break to the caller, which starts the next line.
			l.pos, l.line = line, l.line-1
			return
		}
		l.pos = l.lineEnd()
		at.end = l.pos
	}
}
