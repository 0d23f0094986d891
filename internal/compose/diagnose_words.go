package compose

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// word looks at a token by itself, and at the one before.
func (s *scanner) word(t token) *problem {
	text := string(s.text[t.start:t.end])
	sameLine := s.i > 0 && !bytes.ContainsAny(s.text[s.last.end:t.start], "\n\r")
	if p := s.besides(t, sameLine); p != nil {
		return p
	}
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

// besides looks for what cannot stand behind the token before.
func (s *scanner) besides(t token, sameLine bool) *problem {
	switch t.kind {
	case tokAnchor:
		if sameLine && s.last.kind == tokAnchor {
			return s.at(t.start, "delete one of them", "a value has two anchors")
		}
	case tokAlias:
		if sameLine && (s.last.kind == tokAnchor || s.last.kind == tokTag) {
			return s.at(t.start, "delete what stands before it", "an alias has an anchor or tag")
		}
	}
	if len(s.open) == 0 {
		return nil
	}
	switch t.kind {
	case tokComma:
		if s.last.kind == tokComma || s.last.kind == tokOpen {
			return s.at(t.start, "delete it", "a comma stands behind no value")
		}
	case tokColon:
		if s.last.kind == tokColon {
			return s.at(t.start, "delete it, or quote the value it belongs to", "a second colon stands behind a key")
		}
	case tokPlain:
		if text := s.text[t.start:t.end]; (text[0] == '-' || text[0] == '?') && (len(text) == 1 || isBlank(text[1])) &&
			(t.end == len(s.text) || s.text[t.end] != ':') {
			return s.at(t.start, "delete it, or quote the value: "+quoted(string(text)),
				"no value in brackets begins with a %c by itself", text[0])
		}
		fallthrough
	case tokOpen, tokDouble, tokSingle, tokAlias, tokTag, tokAnchor:
		switch s.last.kind {
		case tokClose, tokAlias:
			return s.at(t.start, "write a comma before it", "no comma stands between two values")
		case tokDouble, tokSingle:
			if !sameLine {
				return s.at(t.start, "write a comma before it", "no comma stands between two values")
			}
		case tokPlain, tokContinuation:
			return s.at(t.start, "write a comma before it, or quote the whole value", "no comma stands between two values")
		}
	}
	return nil
}

// lostDirective is the problem of a directive that nothing follows which it
// could be for.
func (s *scanner) lostDirective() *problem {
	return s.at(s.directive.start, "delete the line", "a line that begins with %% is a directive, but no --- follows")
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
