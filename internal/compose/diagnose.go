package compose

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unreadable finds what no YAML text may contain.
func unreadable(text []byte) *problem {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return &problem{1, 1, "the file is UTF-16", "save the file as UTF-8"}
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			line, column := position(text, i)
			return &problem{line, column, fmt.Sprintf("the byte 0x%02x is not UTF-8", c), "save the file as UTF-8"}
		case r < 0xA0 && r != 0x85 || r == 0xFFFE || r == 0xFFFF:
			line, column := position(text, i)
			escape := string(appendDoubleQuoted(nil, string(r)))
			return &problem{line, column, fmt.Sprintf("the character %U cannot stand in YAML", r),
				"delete it, or write it as an escape: " + escape}
		}
		i += size
	}
	return nil
}

// position is the line and column of a byte of text, counted from 1.
func position(text []byte, offset int) (line, column int) {
	line = 1
	start := 0
	for i := 0; i < offset; i++ {
		if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			line++
			start = i + 1
		}
	}
	return line, utf8.RuneCount(text[start:offset]) + 1
}

// diagnose finds out why yaml.v3 refuses text with err. Its own errors have no
// column, and often the line of a later place.
func diagnose(text []byte, err error) *problem {
	s := scanner{text: text, tokens: lex(text).tokens, anchors: make(map[string]bool)}
	for s.i = range s.tokens {
		if p := s.token(s.tokens[s.i]); p != nil {
			return p
		}
	}
	if n := len(s.open); n > 0 {
		t := s.open[n-1]
		return s.at(t.start, "close it with "+closing(text[t.start]), "%c is never closed", text[t.start])
	}
	p := &problem{text: strings.TrimPrefix(err.Error(), "yaml: ")}
	if rest, ok := strings.CutPrefix(p.text, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				p.line, p.text = line, message
			}
		}
	}
	return p
}

// scanner looks through the tokens of a text for the first one that cannot
// stand where it does.
type scanner struct {
	text    []byte
	tokens  []token
	i       int
	open    []token // brackets
	blocks  []block // lists and mappings in block style, from the outside in
	last    token   // before the current one, comments left out
	content bool    // something other than comments and directives was there
	over    string  // how the document ended, or ""
	overAt  token
	anchors map[string]bool
}

// block is a list or mapping in block style.
type block struct {
	column int
	list   bool
	line   int // of its first entry
}

func (s *scanner) at(offset int, remedy, format string, args ...any) *problem {
	line, column := position(s.text, offset)
	return &problem{line, column, fmt.Sprintf(format, args...), remedy}
}

func (s *scanner) token(t token) *problem {
	if t.kind == tokComment || t.kind == tokDirective {
		return nil
	}
	if t.kind == tokTab {
		if s.i+1 < len(s.tokens) && s.tokens[s.i+1].kind == tokContinuation {
			return nil
		}
		return s.at(t.start, "indent with spaces", "a tab indents the line")
	}
	p := s.document(t)
	if p == nil && len(s.open) == 0 && t.first {
		p = s.line(t)
	}
	if p == nil {
		p = s.word(t)
	}
	s.last = t
	s.content = s.content || t.kind != tokDocument
	return p
}

// document looks for content where the document is over.
func (s *scanner) document(t token) *problem {
	switch {
	case t.kind == tokDocument && s.content:
		return s.at(t.start, "delete the --- line: all patches are one list", "a second document begins")
	case t.kind == tokDocumentEnd:
		s.over, s.overAt = "the end of the document", t
	case s.over == "[]":
		return s.at(s.overAt.start, "delete the []: it is the whole list",
			"the list ends with this [], but line %d goes on", t.line+1)
	case s.over != "":
		return s.at(t.start, "put everything in one list", "this stands behind %s in line %d", s.over, s.overAt.line+1)
	case t.kind == tokOpen && t.first && t.indent == 0 && len(s.open) == 0 && len(s.blocks) > 0 && s.blocks[0].list:
		return s.at(t.start, "delete it: the list has entries already", "%s", "a list in brackets follows the entries of a list")
	}
	return nil
}

// line looks at how the line that begins with t is indented.
func (s *scanner) line(t token) *problem {
	switch t.kind {
	case tokContinuation, tokDocument, tokDocumentEnd:
		return nil
	}
	var left *block // the last block that this line is too shallow for
	for n := len(s.blocks); n > 0 && s.blocks[n-1].column > t.indent; n-- {
		left = &block{}
		*left = s.blocks[n-1]
		s.blocks = s.blocks[:n-1]
	}
	key := s.key()
	if len(s.blocks) == 0 {
		s.push(t, key)
		return nil
	}
	top := s.blocks[len(s.blocks)-1]
	switch {
	case t.indent > top.column:
		if left != nil {
			fit := top
			if left.list == (t.kind == tokDash) {
				fit = *left
			}
			return s.at(t.start, fmt.Sprintf("indent it by %d spaces, as line %d", fit.column, fit.line+1),
				"the indentation fits no line above")
		}
		if !s.awaited() && (key >= 0 || t.kind == tokDash) {
			return s.tooDeep(t)
		}
	case top.list && t.kind != tokDash:
		if bytes.HasPrefix(s.text[t.start:t.end], []byte("-")) && t.kind == tokPlain {
			return s.at(t.start, "write a space behind the dash", "the dash of an entry stands before a space")
		}
		return s.at(t.start, "begin it with `- `, or indent it deeper than the dash in line "+strconv.Itoa(top.line+1),
			"the line is no entry of the list that line %d began", top.line+1)
	case !top.list && t.kind == tokDash && !s.awaited():
		return s.at(t.start, "indent it less, as the list it belongs to", "an entry of a list stands among keys")
	case !top.list && t.kind != tokDash && key < 0 && t.kind != tokQuestion && t.kind != tokColon && t.kind != tokAlias:
		if p := s.tightColon(t); p != nil {
			return p
		}
		return s.at(t.start, "write `: ` and a value behind the key", "a key without `: `")
	}
	s.push(t, key)
	return nil
}

// tightColon is the problem of a key that is written name:value.
func (s *scanner) tightColon(t token) *problem {
	name, value, ok := strings.Cut(string(s.text[t.start:t.end]), ":")
	if !ok || t.kind != tokPlain || value == "" || strings.HasPrefix(value, "//") {
		return nil
	}
	return s.at(t.start, fmt.Sprintf("write a space behind the colon: %s: %s", name, value), "a key without `: `")
}

// tooDeep is the problem of a line that begins with t.
func (s *scanner) tooDeep(t token) *problem {
	top := s.blocks[len(s.blocks)-1]
	return s.at(t.start, fmt.Sprintf("indent it by %d spaces, as line %d", top.column, top.line+1),
		"the line is indented deeper than the one above, which has its value already")
}

// awaited says whether the text before leaves a value open.
func (s *scanner) awaited() bool {
	switch s.last.kind {
	case tokColon, tokDash, tokQuestion, tokTag, tokAnchor, tokDocument:
		return true
	}
	return false
}

// key is the place among the tokens of the colon behind a key of the current
// line, or -1.
func (s *scanner) key() int {
	depth := 0
	for i := s.i; i < len(s.tokens) && s.tokens[i].line == s.tokens[s.i].line; i++ {
		switch s.tokens[i].kind {
		case tokOpen:
			depth++
		case tokClose:
			depth--
		case tokColon:
			if depth == 0 {
				return i
			}
		case tokBlock:
			return -1
		}
	}
	return -1
}

// push opens the lists and mappings that begin in the line of t.
func (s *scanner) push(t token, key int) {
	i := s.i
	for ; i < len(s.tokens) && s.tokens[i].kind == tokDash && s.tokens[i].line == t.line; i++ {
		s.pushBlock(block{s.tokens[i].indent, true, t.line})
	}
	if key >= 0 && i < key {
		s.pushBlock(block{s.tokens[i].indent, false, t.line})
	}
}

func (s *scanner) pushBlock(b block) {
	for n := len(s.blocks); n > 0 && s.blocks[n-1].column >= b.column; n-- {
		if top := s.blocks[n-1]; top.column == b.column && (top.list == b.list || b.list) {
			// A list may stand as deep as the key that holds it.
			if top.list == b.list {
				return
			}
			break
		}
		s.blocks = s.blocks[:n-1]
	}
	s.blocks = append(s.blocks, b)
}

// word looks at a token by itself, and at the one before.
func (s *scanner) word(t token) *problem {
	text := string(s.text[t.start:t.end])
	sameLine := s.i > 0 && !bytes.ContainsAny(s.text[s.last.end:t.start], "\n\r")
	switch t.kind {
	case tokReserved:
		return s.at(t.start, "quote it: "+quoted(text), "nothing may begin with %c without quotes", text[0])
	case tokOpen:
		s.open = append(s.open, t)
	case tokClose:
		return s.close(t, text)
	case tokAnchor, tokAlias:
		return s.reference(t, text)
	case tokBlock:
		header, _, _ := strings.Cut(text, "\n")
		if rest := strings.TrimLeft(strings.TrimRight(header[1:], "\r"), "+-123456789"); strings.Trim(rest, " \t") != "" && !strings.HasPrefix(strings.TrimLeft(rest, " \t"), "#") {
			return s.at(t.start, "quote it: "+quoted(strings.TrimRight(header, " \t\r")),
				"a value that begins with %c without quotes is the head of a block of text", text[0])
		}
	case tokDouble, tokSingle:
		if p := s.quotes(t, text); p != nil {
			return p
		}
	case tokColon:
		return s.colon(t)
	case tokPlain:
		if strings.ContainsAny(text[:1], "%,") {
			return s.at(t.start, "quote it: "+quoted(text), "nothing may begin with %c without quotes", text[0])
		}
	}
	if sameLine && (s.last.kind == tokDouble || s.last.kind == tokSingle) {
		switch t.kind {
		case tokPlain, tokDouble, tokSingle, tokOpen, tokAlias, tokTag, tokAnchor, tokBlock, tokReserved:
			return s.behindQuote(s.last, t)
		}
	}
	return nil
}

func (s *scanner) close(t token, text string) *problem {
	n := len(s.open)
	if n == 0 {
		return s.at(t.start, "delete it, or quote the value it belongs to", "%s closes nothing", text)
	}
	open := s.open[n-1]
	if want := closing(s.text[open.start]); want != text {
		line, column := position(s.text, open.start)
		return s.at(t.start, fmt.Sprintf("write %s before it", want),
			"%s closes nothing while the %c in line %d, column %d is open", text, s.text[open.start], line, column)
	}
	s.open = s.open[:n-1]
	if n == 1 && open.first && open.indent == 0 && s.i+1 < len(s.tokens) && s.tokens[s.i+1].kind != tokColon {
		s.overAt = open
		if s.over = "the list that begins"; len(bytes.TrimSpace(s.text[open.end:t.start])) == 0 && text == "]" {
			s.over = "[]"
		}
	}
	return nil
}

func closing(bracket byte) string {
	if bracket == '[' {
		return "]"
	}
	return "}"
}

// reference looks at an anchor or alias.
func (s *scanner) reference(t token, text string) *problem {
	name := strings.TrimRight(text[1:], ",")
	valid := name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
	value := string(bytes.TrimRight(s.text[t.start:s.lineEnd(t.start)], " \t"))
	switch {
	case t.kind == tokAnchor && valid:
		s.anchors[name] = true
	case t.kind == tokAnchor:
		return s.at(t.start, "quote it if the & belongs to the value: "+quoted(value),
			"an anchor is named with letters, digits, - and _")
	case !s.anchors[name]:
		return s.at(t.start, "quote it if the * belongs to the value: "+quoted(value), "alias %s names no anchor above", text)
	}
	return nil
}

func (s *scanner) lineEnd(offset int) int {
	for offset < len(s.text) && s.text[offset] != '\n' && s.text[offset] != '\r' {
		offset++
	}
	return offset
}

// colon looks for a second key in the value of a key.
func (s *scanner) colon(t token) *problem {
	// Back to the start of the value that this colon makes a key of.
	i := s.i - 1
	if i >= 0 && s.tokens[i].kind == tokContinuation && s.tokens[i].first && s.tokens[i].line == t.line &&
		len(s.blocks) > 0 && len(s.open) == 0 {
		deep := s.tokens[i]
		for i > 0 && s.tokens[i].kind == tokContinuation {
			i--
		}
		if s.blocks[len(s.blocks)-1].list {
			if p := s.tightColon(s.tokens[i]); p != nil {
				return p
			}
		}
		return s.tooDeep(deep)
	}
	for i >= 0 && s.tokens[i].line == t.line && isKeyPart(s.tokens[i].kind) {
		if s.isExpression(i) {
			return s.at(s.tokens[i].start, "quote the expression: !!js "+quoted(s.rest(i+1)),
				"`: ` in an expression that is not quoted makes it a key")
		}
		i--
	}
	if i < 0 || i+1 == s.i || s.tokens[i].line != t.line || s.tokens[i].kind != tokColon {
		return nil
	}
	return s.at(s.tokens[i+1].start, "quote it: "+quoted(s.rest(i+1)),
		"`: ` in a value that is not quoted makes it a key")
}

func (s *scanner) isExpression(i int) bool {
	t := s.tokens[i]
	return t.kind == tokTag && string(s.text[t.start:t.end]) == "!!js"
}

// rest is the value that token i begins, in its line: up to a comment, or in
// brackets to their next part.
func (s *scanner) rest(i int) string {
	end := i
	for end+1 < len(s.tokens) && s.tokens[end+1].line == s.tokens[i].line && s.tokens[end+1].kind != tokComment {
		if kind := s.tokens[end+1].kind; len(s.open) > 0 && (kind == tokComma || kind == tokClose) {
			break
		}
		end++
	}
	return string(s.text[s.tokens[i].start:s.tokens[end].end])
}

func isKeyPart(kind tokenKind) bool {
	switch kind {
	case tokPlain, tokContinuation, tokDouble, tokSingle, tokTag, tokAnchor, tokAlias:
		return true
	}
	return false
}

// quotes looks into a quoted text.
func (s *scanner) quotes(t token, text string) *problem {
	if !t.closed {
		return s.at(t.start, fmt.Sprintf("close it with %c", text[0]), "the quote is never closed")
	}
	if t.kind == tokSingle {
		return nil
	}
	for i := 1; i < len(text)-1; i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		switch c := text[i]; {
		case strings.IndexByte("0abt\tnvfre \"/\\N_LP\n\r", c) >= 0:
		case c == 'x' && isHex(text[i+1:], 2), c == 'U' && isHex(text[i+1:], 8):
		case c == 'u' && isHex(text[i+1:], 4):
			if c := text[i+1] | 0x20; c == 'd' && text[i+2] >= '8' {
				return s.at(t.start+i-1, "write the character itself", "\\%s is half of a character", text[i:i+5])
			}
		default:
			r, _ := utf8.DecodeRuneInString(text[i:])
			return s.at(t.start+i-1, `write \\ for a backslash, or put the text in single quotes`, "\\%c is no escape", r)
		}
	}
	return nil
}

func isHex(s string, n int) bool {
	return len(s) >= n && strings.Trim(s[:n], "0123456789abcdefABCDEF") == ""
}

// behindQuote is the problem of text that follows a quoted one.
func (s *scanner) behindQuote(quote, t token) *problem {
	mark := s.text[quote.start]
	if end, _ := position(s.text, quote.end); end != quote.line+1 {
		return s.at(quote.start, fmt.Sprintf("close it with %c in its line", mark), "the quote is not closed where it should be")
	}
	remedy := "quote the whole value; a quote inside is written ''"
	if mark == '"' {
		remedy = `quote the whole value; a quote inside is written \"`
	}
	return s.at(t.start, remedy, "text follows the closing quote")
}

// quoted is text in single quotes, as YAML writes them.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// quoteForMessage is text in double quotes, cut where it is long.
func quoteForMessage(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return string(appendJSONString(nil, text))
}

// expressionRemedy is how to write the `!!js` at line and column, outside of
// brackets.
func expressionRemedy(text []byte, line, column int) string {
	s := scanner{text: text, tokens: lex(text).tokens}
	for i, t := range s.tokens {
		if t.line == line-1 && t.indent >= column-1 && s.isExpression(i) && i+1 < len(s.tokens) {
			return "quote the expression: !!js " + quoted(s.rest(i+1))
		}
	}
	return "quote the expression: !!js '…'"
}
