package patchedit

import "bytes"

func (r *reader) quoted(n *node) bool {
	quote := r.peek(0)
	if quote != '"' && quote != '\'' {
		return false
	}
	for r.pos++; !r.atEnd(); {
		switch c := r.peek(0); {
		case c == quote && quote == '\'' && r.peek(1) == quote:
			r.pos += 2
		case c == quote:
			r.pos++
			n.kind, n.end = scalarNode, r.pos
			return true
		case c == '\\' && quote == '"' && !isBreak(r.peek(1)):
			r.pos += 2
		case isBreak(c):
			r.skip(false)
		default:
			r.pos++
		}
	}
	r.lost()
	return false
}

func (r *reader) plain(n *node, indent int, flow bool) bool {
	c := r.peek(0)
	if isWhite(c) || isFlowSign(c) || bytes.IndexByte([]byte("#&*!|>'\"%@`"), c) >= 0 {
		return false
	}
	if (c == '?' || c == '-') && (isWhite(r.peek(1)) || flow && isFlowSign(r.peek(1))) {
		return false
	}
	end := r.pos
scan:
	for !r.atEnd() {
		c := r.peek(0)
		switch {
		case c == ':' && (isWhite(r.peek(1)) || flow && isFlowSign(r.peek(1))),
			c == '#' && isWhite(r.peek(-1)),
			r.atMarker('-'), r.atMarker('.'),
			flow && isFlowSign(c):
			break scan
		case isBreak(c):
			here := r.place
			r.skip(false)
			if r.indent < indent || r.atEnd() {
				r.place = here
				r.pos = end
				break scan
			}
			continue
		}
		r.pos++
		if !isBlankByte(c) {
			end = r.pos
		}
	}
	if end == n.body {
		return false
	}
	n.kind, n.end = scalarNode, end
	return true
}

func (r *reader) blockScalar(n *node, indent int) bool {
	if c := r.peek(0); c != '|' && c != '>' {
		return false
	}
	keep := false
	content := indent // the indentation of its lines
	detected := false
	for r.pos++; ; r.pos++ {
		c := r.peek(0)
		if '1' <= c && c <= '9' {
			content, detected = indent+int(c-'0')-1, true
		} else if c == '+' || c == '-' {
			keep = c == '+'
		} else {
			break
		}
	}
	n.kind, n.end = scalarNode, r.pos
	for isBlankByte(r.peek(0)) {
		r.pos++
	}
	if r.peek(0) == '#' {
		end := lineEnd(r.text, r.pos)
		r.comments = append(r.comments, span{r.pos, end})
		r.pos = end
	}
	for !r.atEnd() {
		if !isBreak(r.peek(0)) {
			r.lost()
		}
		before := r.pos
		r.newline()
		for (!detected || r.indent < content) && r.peek(0) == ' ' {
			r.pos++
			r.indent++
		}
		if !detected {
			content = max(content, r.indent)
		}
		if isBreak(r.peek(0)) {
			continue
		}
		if r.indent < content || r.atEnd() {
			if keep {
				n.end = max(n.end, before)
			}
			return true
		}
		detected = true
		r.pos = lineEnd(r.text, r.pos)
		n.end = r.pos
	}
	return true
}
