package fault

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain are the characters that no shell gives a meaning to.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_"

// ShellWord writes a word as it must stand in a command line that can be
// pasted into a POSIX shell. Hints use it for every word that a person chose.
// What a terminal would act on, and not show, is spelled out as POSIX.1-2024 has
// it, byte for byte.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	if strings.ContainsFunc(s, unseen) {
		return dollarQuoted(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ShellWords writes a whole command line.
func ShellWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = ShellWord(w)
	}
	return strings.Join(quoted, " ")
}

// unseen says of a character, or a byte that is none, that it has no picture.
func unseen(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

func dollarQuoted(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		char := s[:size]
		s = s[size:]
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + char)
		case unseen(r):
			for _, c := range []byte(char) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(char)
		}
	}
	b.WriteString("'")
	return b.String()
}
