package patchedit

import (
	"bytes"
	"fmt"

	"dsh/internal/compose"
)

// add puts an entry behind the last one of the last of holders.
func (e *editor) add(holders []*node, key string, v compose.Value) error {
	if len(holders) == 0 {
		if err := e.read(); err != nil {
			return err
		}
		e.addFirstPatch(v)
		return nil
	}
	n := holders[len(holders)-1]
	switch {
	case n.pair:
		return fmt.Errorf("a pair in a list has no room for another key")
	case len(n.entries) == 0:
		e.fill(holders, key, v)
	case n.flow:
		e.addInBrackets(n, key, v)
	default:
		e.addLines(holders, key, v)
	}
	return nil
}

// addFirstPatch makes a list of a text that holds nothing.
func (e *editor) addFirstPatch(v compose.Value) {
	at := e.doc.start
	for _, c := range e.doc.comments {
		if c.end <= e.doc.end {
			at = max(at, c.end)
		}
	}
	patch := e.style(nil).item(v, 0)
	switch {
	case at != lineStart(e.text, at):
		patch = e.eol + patch
	case isBlank(e.text[at:]) && len(e.text) == at:
		patch += e.eol
	case e.doc.end < len(e.text): // a `...` follows
		patch += e.eol
	}
	e.apply(splice{at, at, patch})
}

// addLines adds an entry to a block collection.
func (e *editor) addLines(holders []*node, key string, v compose.Value) {
	n := holders[len(holders)-1]
	at := lineEnd(e.text, n.end)
	if len(holders) == 1 {
		// A patch goes behind what the file ends with, but in the document.
		for _, c := range e.doc.comments {
			if c.end <= e.doc.end {
				at = max(at, c.end)
			}
		}
	}
	gap := e.eol
	if len(holders) == 1 && e.isSpaced(n) && !e.careful {
		gap += e.eol
	}
	e.apply(splice{at, at, gap + spaces(n.column) + e.style(holders).entry(n, key, v)})
}

// isSpaced says whether blank lines are between the last entries of n.
func (e *editor) isSpaced(n *node) bool {
	last := len(n.entries) - 1
	if last < 1 {
		return false
	}
	for at := nextLine(e.text, n.entries[last-1].end); at < n.entries[last].start; at = nextLine(e.text, at) {
		if isBlank(e.text[at:lineEnd(e.text, at)]) {
			return true
		}
	}
	return false
}

// addInBrackets adds an entry to a collection in brackets that has some: on a
// line of its own if the last one has.
func (e *editor) addInBrackets(n *node, key string, v compose.Value) {
	last := &n.entries[len(n.entries)-1]
	text := flowEntry(n, key, v)
	if before := lineStart(e.text, last.start); !isBlank(e.text[before:last.start]) {
		if last.comma >= 0 {
			e.apply(splice{last.comma + 1, last.comma + 1, " " + text})
		} else {
			e.apply(splice{last.end, last.end, ", " + text})
		}
		return
	}
	indent := string(e.text[lineStart(e.text, last.start):last.start])
	at := last.end
	if last.comma >= 0 {
		at = last.comma + 1
	}
	// The closing bracket stays behind what is added.
	end := at
	if trailing := e.commentOnLine(at); trailing != nil {
		end = trailing.end
	}
	line := e.eol + indent + text
	if last.comma >= 0 {
		e.apply(splice{end, end, line})
		return
	}
	e.apply(splice{last.end, last.end, ","}, splice{end, end, line})
}

// fill gives an empty collection its first entry. It becomes a block, unless
// it is in brackets.
func (e *editor) fill(holders []*node, key string, v compose.Value) {
	n := holders[len(holders)-1]
	var filled compose.Value
	if n.kind == sequenceNode {
		filled = &compose.List{Items: []compose.Value{v}}
	} else {
		m := &compose.Map{}
		m.Set(key, v)
		filled = m
	}
	switch parents := holders[:len(holders)-1]; {
	case len(parents) == 0:
		e.fillRoot(n, v)
	case parents[len(parents)-1].flow:
		e.apply(splice{n.body + 1, n.body + 1, flowEntry(n, key, v)})
	default:
		parent := parents[len(parents)-1]
		for i := range parent.entries {
			if parent.entries[i].value == n {
				e.replaceLines(parents, &parent.entries[i], filled)
			}
		}
	}
}

// fillRoot writes the first patch in the place of the `[]` that the file has.
func (e *editor) fillRoot(n *node, v compose.Value) {
	start, out := n.start, ""
	column := start - lineStart(e.text, start)
	if !isBlank(e.text[start-column : start]) { // it stands behind a `---`
		start = len(bytes.TrimRight(e.text[:start], " \t"))
		column, out = 0, e.eol
	}
	end := lineEnd(e.text, n.end)
	for _, c := range e.commentsIn(n.start, end) {
		out += e.comment(c) + e.eol + spaces(column)
	}
	out += e.style(nil).item(v, column)
	e.apply(splice{start, end, out})
}
