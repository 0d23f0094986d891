package patchedit

import (
	"bytes"
	"errors"
	"strings"

	"dsh/internal/compose"
)

// notePrefix begins the comment that names copied keys.
const notePrefix = "# copied from the layers below: "

func isNote(comment string) bool { return strings.HasPrefix(comment, notePrefix) }

// CopiedKeys reads the note at the top of the mapping at a path that says which
// keys were copied from the layers below:
//
//	# copied from the layers below: host, "a.b".c
//
// The keys are paths relative to that mapping; nil when there is no note, or
// when somebody has written something else into it.
func CopiedKeys(text []byte, at Path) [][]string { return ReadNotes(text).CopiedKeys(at) }

// Notes is a text that was read once, to be asked for many of its notes.
type Notes struct{ e *editor } // nil where there are none

// ReadNotes reads a text. One that cannot be read has no notes.
func ReadNotes(text []byte) Notes {
	e := &editor{text: text}
	if !bytes.Contains(text, []byte(strings.TrimSpace(notePrefix))) || e.read() != nil {
		return Notes{}
	}
	return Notes{e}
}

// CopiedKeys is what the function of this name is for the text.
func (n Notes) CopiedKeys(at Path) [][]string {
	e := n.e
	if e == nil {
		return nil
	}
	s, err := e.spotAt(at)
	if err != nil {
		return nil
	}
	holders, err := mappingAt(s, at)
	if err != nil {
		return nil
	}
	note := e.noteOf(holders)
	if note == nil {
		return nil
	}
	keys, _ := parseKeys(strings.TrimRight(strings.TrimPrefix(e.comment(*note), notePrefix), " \t"))
	return keys
}

// SetCopiedKeys adds the note that CopiedKeys reads, replaces it, or, without
// keys, removes it. The errors are those of Set.
func SetCopiedKeys(src compose.Source, text []byte, at Path, keys [][]string) ([]byte, error) {
	old, err := parse(src, text)
	if err != nil {
		return nil, err
	}
	e := &editor{src: src, text: text, eol: lineBreak(text)}
	note := notePrefix + formatKeys(keys)
	holders, err := e.holders(at)
	switch {
	case err != nil && len(keys) == 0:
		return text, nil
	case err != nil:
		return nil, uneditable(src, text, at, err, note)
	}
	e.setNote(holders, keys, note)
	if got, err := compose.ParseValue(src, e.text); err != nil || !compose.Equal(got, old) {
		return nil, uneditable(src, text, at, errors.New("a comment there would change something else"), note)
	}
	return e.text, nil
}

// holders is the nodes from the root to the mapping at a path.
func (e *editor) holders(at Path) ([]*node, error) {
	s, err := e.find(at)
	if err != nil {
		return nil, err
	}
	return mappingAt(s, at)
}

func mappingAt(s spot, at Path) ([]*node, error) {
	if len(at) > 0 && !s.isNew() {
		if value := s.entry().value; value != nil && value.kind == mappingNode && !value.pair {
			return append(s.holders, value), nil
		}
	}
	return nil, errors.New(at.words() + " is no mapping")
}

// top is where the note of a mapping may stand: between its opening and its
// first entry.
func (e *editor) top(holders []*node) (start, end int) {
	n := holders[len(holders)-1]
	start, end = e.opening(holders), n.end
	if n.flow {
		start = n.body + 1
	}
	if len(n.entries) > 0 {
		end = n.entries[0].start
	}
	return start, end
}

// noteOf is the note of a mapping, nil if there is none.
func (e *editor) noteOf(holders []*node) *span {
	for _, c := range e.commentsIn(e.top(holders)) {
		if isNote(e.comment(c)) {
			return &c
		}
	}
	return nil
}

func (e *editor) setNote(holders []*node, keys [][]string, note string) {
	n := holders[len(holders)-1]
	start, end := e.top(holders)
	there := e.noteOf(holders)
	sameLine := lineStart(e.text, start) == lineStart(e.text, end)
	switch {
	case there != nil && len(keys) > 0:
		e.apply(splice{there.start, there.end, note})
	case there != nil:
		e.removeNote(n, *there, start, end)
	case len(keys) == 0:
	case n.flow && sameLine:
		gap := len(e.text[start:end]) - len(bytes.TrimLeft(e.text[start:end], " \t"))
		e.apply(splice{start, start + gap, " " + note + e.eol + e.indentation(n.body) + "  "})
	case n.flow:
		at := lineEnd(e.text, start)
		e.apply(splice{at, at, e.eol + e.indentation(n.body) + "  " + note})
	case sameLine: // behind the dash of an item
		e.apply(splice{start, end, " " + note + e.eol + spaces(n.column)})
	default:
		at := lineEnd(e.text, start)
		e.apply(splice{at, at, e.eol + spaces(n.column) + note})
	}
}

// removeNote takes the note of n away, which stands between start and end.
func (e *editor) removeNote(n *node, note span, start, end int) {
	line := lineStart(e.text, note.start)
	switch {
	case line > start:
		e.apply(e.lines(line, note.end))
	case len(e.commentsIn(start, end)) > 1:
		e.apply(splice{e.trimmed(note.start), note.end, ""})
	case n.flow:
		e.apply(splice{start, end, ""})
	default:
		gap := n.column - (start - line)
		e.apply(splice{start, end, spaces(max(1, gap))})
	}
}
