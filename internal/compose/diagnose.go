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
	if s.directive != nil && !s.content {
		return s.lostDirective()
	}
	return asReported(err)
}

// asReported is what yaml.v3 says. It leaves out the line where that is the
// first, and counts lines from 0 in what its parser finds, from 1 in what its
// scanner does.
func asReported(err error) *problem {
	message, ok := strings.CutPrefix(err.Error(), "yaml: ")
	p := &problem{text: message}
	if !ok || strings.HasPrefix(message, "unknown anchor") {
		return p
	}
	p.line = 1
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				p.line, p.text = line, message
				if isOfParser(message) {
					p.line++
				}
			}
		}
	}
	return p
}

// isOfParser says whether a message of yaml.v3 is one of its parser.
func isOfParser(message string) bool {
	for _, start := range [...]string{
		"did not find expected <", "did not find expected node content", "did not find expected key",
		"did not find expected '-' indicator", "did not find expected ',' or",
		"found undefined tag handle", "found duplicate %", "found incompatible YAML",
	} {
		if strings.HasPrefix(message, start) {
			return true
		}
	}
	return false
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

	directive *token // the first line that begins with %
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
	switch t.kind {
	case tokDirective:
		if s.directive == nil {
			s.directive = &t
		}
		return nil
	case tokComment:
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
	case s.directive != nil && !s.content && t.kind != tokDocument && s.last.kind != tokDocument:
		return s.lostDirective()
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
