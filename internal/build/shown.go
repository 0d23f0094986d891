package build

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown is the text of a script as a person should see it before they say that it
// may run: exactly as it is where every character has a picture, else as a quoted
// string with escapes, so that nothing in it moves the cursor, ends the line,
// turns the direction of writing or cannot be seen.
func Shown(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return strconv.Quote(text)
	}
	return text
}
