package patchedit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// bom is the byte-order mark that a text may begin with.
var bom = []byte("\ufeff")

// splice puts text in the place of the bytes from start to end.
type splice struct {
	start, end int
	text       string
}

// splices are changes of one text that do not overlap.
type splices []splice

// apply is text with all changes made.
func (s splices) apply(text []byte) []byte {
	sorted := slices.Clone(s)
	slices.SortStableFunc(sorted, func(a, b splice) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	var out []byte
	done := 0
	for _, change := range sorted {
		out = append(append(out, text[done:change.start]...), change.text...)
		done = change.end
	}
	return append(out, text[done:]...)
}

// lineBreak is how lines of text end: as its first one.
func lineBreak(text []byte) string {
	end := lineEnd(text, 0)
	if end == len(text) {
		return "\n"
	}
	return string(text[end:nextLine(text, end)])
}

// lineEnd is the end of the line that holds at, before its line break.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexAny(text[at:], "\r\n"); i >= 0 {
		return at + i
	}
	return len(text)
}

// nextLine is the start of the line behind the one that holds at.
func nextLine(text []byte, at int) int {
	end := lineEnd(text, at)
	switch {
	case bytes.HasPrefix(text[end:], []byte("\r\n")):
		return end + 2
	case end < len(text):
		return end + 1
	default:
		return end
	}
}

// lineStart is the start of the line that holds at.
func lineStart(text []byte, at int) int {
	start := bytes.LastIndexAny(text[:at], "\r\n") + 1
	if start == 0 && bytes.HasPrefix(text, bom) {
		return min(at, len(bom))
	}
	return start
}

// isBlank says whether text is white space alone.
func isBlank(text []byte) bool { return len(bytes.TrimLeft(text, " \t\r\n")) == 0 }

// spaces is n spaces.
func spaces(n int) string { return strings.Repeat(" ", n) }
