package patchedit

import (
	"bytes"
	"strings"
)

// delete takes an entry out, with the comments that are about it.
func (e *editor) delete(at Path) error {
	s, err := e.find(at)
	if err != nil {
		return err
	}
	n := s.holder()
	switch {
	case s.isNew():
		return nil
	case n.flow && n.pair:
		e.apply(splice{n.start, n.end, "{}"})
	case n.flow:
		e.deleteInBrackets(n, s.index)
	case len(n.entries) == 1:
		e.deleteOnly(s)
	default:
		e.deleteLines(n, s.index)
	}
	return nil
}

// deleteLines takes one of several entries of a block out.
func (e *editor) deleteLines(n *node, i int) {
	en := n.entries[i]
	if isBlank(e.text[lineStart(e.text, en.start):en.start]) {
		gone := e.lines(e.above(en.start, i == 0 && n == e.doc.root), en.end)
		if n == e.doc.root && !e.careful && e.blankLine(gone.end) {
			// Of the blank lines around a patch one goes with it.
			before := bytes.TrimSuffix(bytes.TrimSuffix(e.text[:gone.start], []byte("\n")), []byte("\r"))
			if above := lineStart(e.text, len(before)); above >= e.doc.start && isBlank(e.text[above:gone.start]) {
				gone.start = above
			}
		}
		e.apply(gone)
		return
	}
	// It stands behind the dash of an item, and the next one must follow that.
	next := n.entries[i+1].start
	end := lineEnd(e.text, en.end)
	if len(e.commentsIn(end, next)) == 0 {
		e.apply(splice{en.start, next, ""})
		return
	}
	e.apply(splice{len(bytes.TrimRight(e.text[:en.start], " \t")), end, ""})
}

// blankLine says whether a blank line, or nothing, begins at a place.
func (e *editor) blankLine(at int) bool {
	return at >= len(e.text) || isBlank(e.text[at:lineEnd(e.text, at)])
}

// drop takes one of several entries out, and leaves all comments.
func (e *editor) drop(at Path) error {
	s, err := e.find(at)
	if err != nil {
		return err
	}
	n, en := s.holder(), s.entry()
	end := lineEnd(e.text, en.end)
	comments := e.commentsIn(en.start, end)
	switch {
	case n.flow:
		e.deleteInBrackets(n, s.index) // merge found no comments
	case isBlank(e.text[lineStart(e.text, en.start):en.start]):
		start := lineStart(e.text, en.start)
		gone := e.lines(start, en.end)
		for _, c := range comments {
			line := spaces(n.column) + e.comment(c)
			if gone.start == start {
				gone.text += line + e.eol
			} else {
				gone.text += e.eol + line
			}
		}
		e.apply(gone)
	case len(comments) > 0: // behind the dash of an item
		var kept []string
		for _, c := range comments {
			kept = append(kept, e.comment(c))
		}
		e.apply(splice{en.start, end, strings.Join(kept, e.eol+spaces(n.column))})
	default:
		e.deleteLines(n, s.index)
	}
	return nil
}

// lines is the deletion of whole lines: those from a line start to the one that
// holds end. At the end of a text without a final line break, those before go
// instead.
func (e *editor) lines(start, end int) splice {
	if next := nextLine(e.text, end); next > lineEnd(e.text, end) {
		for e.careful && next < len(e.text) && isBlank(e.text[next:lineEnd(e.text, next)]) {
			next = nextLine(e.text, next)
		}
		return splice{start, next, ""}
	}
	if start > e.doc.start {
		start = max(e.doc.start, len(bytes.TrimRight(e.text[:start], "\r\n")))
	}
	return splice{start, len(e.text), ""}
}

// above is the start of the lines that go with the entry at a place: its own,
// and the comments directly above that are indented like it. Comments of dsh,
// and the one that the file begins with, are not about the entry.
func (e *editor) above(at int, firstPatch bool) int {
	start := lineStart(e.text, at)
	column := at - start
	top := start
	for i := len(e.doc.comments) - 1; i >= 0; i-- {
		c := e.doc.comments[i]
		if c.start > at {
			continue
		}
		line := lineStart(e.text, c.start)
		if nextLine(e.text, c.start) != top || c.start-line != column || !isBlank(e.text[line:c.start]) ||
			isNote(e.comment(c)) || isModeline(e.comment(c)) {
			break
		}
		top = line
	}
	if firstPatch && e.isHead(top) {
		return start
	}
	return top
}

// isHead says whether a comment is the first one of the file, modelines left
// out.
func (e *editor) isHead(at int) bool {
	for _, c := range e.doc.comments {
		if c.start < at && !isModeline(e.comment(c)) {
			return false
		}
	}
	return true
}

// deleteOnly takes the only entry of a block out.
func (e *editor) deleteOnly(s spot) {
	n := s.holder()
	en := n.entries[0]
	empty := "{}"
	if n.kind == sequenceNode {
		empty = "[]"
	}
	if len(s.holders) == 1 { // the whole file
		start := e.above(en.start, true)
		e.apply(splice{start, lineEnd(e.text, en.end), spaces(n.column) + empty})
		return
	}
	if !isBlank(e.text[lineStart(e.text, en.start):en.start]) { // behind the dash of an item
		e.apply(splice{en.start, lineEnd(e.text, en.end), empty})
		return
	}
	behind := e.opening(s.holders)
	changes := splices{e.lines(e.above(en.start, false), en.end)}
	if note := e.noteOf(s.holders); note != nil && note.start < changes[0].start {
		if line := lineStart(e.text, note.start); line > behind {
			changes = append(changes, e.lines(line, note.end))
		} else {
			changes = append(changes, splice{e.trimmed(note.start), note.end, ""})
		}
	}
	changes = append(changes, splice{behind, behind, " " + empty})
	e.apply(changes...)
}

// opening is where the line or lines end that say that a block follows: behind
// the mark of the entry that holds it, and its properties. 0 for the root.
func (e *editor) opening(holders []*node) int {
	n := holders[len(holders)-1]
	if n.props > n.start {
		return n.props
	}
	if len(holders) == 1 {
		return e.doc.start
	}
	for _, en := range holders[len(holders)-2].entries {
		if en.value == n {
			return en.mark + 1
		}
	}
	return n.start
}

// deleteInBrackets takes an entry of a collection in brackets out, with one of
// the commas beside it.
func (e *editor) deleteInBrackets(n *node, i int) {
	en := n.entries[i]
	last := en.end
	var changes splices
	switch {
	case en.comma >= 0:
		last = en.comma + 1
	case i > 0:
		before := n.entries[i-1].comma
		changes = append(changes, splice{before, before + 1, ""})
	}
	if len(n.entries) == 1 && len(e.commentsIn(n.body, n.end)) == 0 {
		e.apply(splice{n.body + 1, n.end - 1, ""})
		return
	}
	inside := e.commentsIn(en.end, last) // between it and its comma
	start, end := lineStart(e.text, en.start), lineEnd(e.text, last)
	alone := isBlank(e.text[start:en.start]) && start > n.body
	switch trailing := e.commentOnLine(last); {
	case len(inside) > 0:
		changes = append(changes, splice{en.start, en.end, ""}, splice{last - 1, last, ""})
	case alone && (trailing != nil || isBlank(e.text[last:end])):
		changes = append(changes, e.lines(e.above(en.start, false), last))
	case en.comma >= 0 && end > last && !isBlank(e.text[last:end]) && trailing == nil:
		blank := len(e.text[last:end]) - len(bytes.TrimLeft(e.text[last:end], " \t"))
		if e.text[last+blank] == ']' || e.text[last+blank] == '}' {
			changes = append(changes, splice{e.trimmed(en.start), last, ""})
		} else {
			changes = append(changes, splice{en.start, last + blank, ""})
		}
	default:
		changes = append(changes, splice{e.trimmed(en.start), last, ""})
	}
	e.apply(changes...)
}

// trimmed is a place without the spaces before it.
func (e *editor) trimmed(at int) int { return len(bytes.TrimRight(e.text[:at], " \t")) }

func isModeline(comment string) bool { return strings.HasPrefix(comment, modelinePrefix) }
