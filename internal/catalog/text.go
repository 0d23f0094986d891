package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a catalogue. What is longer is cut or left out, and said.
const (
	MaxBytes   = 64 << 20 // of a catalogue
	maxEntries = 50_000
	maxName    = 200  // characters
	maxText    = 1000 // characters of a description
	maxSpec    = 2000 // bytes
	maxList    = 50   // words that an entry is found by
)

// lost stands for bytes that are no text. No text has it, for it is no character.
const lost = "\ufdd0"

// Line is a text of a stranger on one line: without what a terminal acts on,
// without what turns the order of characters round or has no picture, and cut
// where it is longer than limit characters.
func Line(text string, limit int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case r == utf8.RuneError || !unicode.IsPrint(r):
			continue // nothing takes its place
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		if n >= limit {
			return strings.TrimRight(b.String(), " ") + "…"
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// broken reports whether a value holds bytes that were no text.
func broken(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, lost)
	case []any:
		for _, element := range v {
			if broken(element) {
				return true
			}
		}
	case map[string]any:
		for key, element := range v {
			if strings.Contains(key, lost) || broken(element) {
				return true
			}
		}
	}
	return false
}
