package patchedit

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// formatKeys writes key paths in one line: a.b, "c.d".e
func formatKeys(paths [][]string) string {
	var b strings.Builder
	for i, path := range paths {
		if i > 0 {
			b.WriteString(", ")
		}
		for j, key := range path {
			if j > 0 {
				b.WriteByte('.')
			}
			b.WriteString(formatKey(key))
		}
	}
	return b.String()
}

// formatKey is key as it is, or as a JSON text where it would read otherwise.
func formatKey(key string) string {
	if key != "" && strings.IndexFunc(key, func(c rune) bool { return !isBareKey(c) }) < 0 {
		return key
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range key {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+(c-0x10000)>>10, 0xDC00+(c-0x10000)&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// isBareKey says whether c needs no quotes in a key path.
func isBareKey(c rune) bool {
	return c == '_' || c == '-' || c == '$' || c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c))
}

// parseKeys reads what formatKeys writes; false where that is something else.
func parseKeys(text string) ([][]string, bool) {
	var paths [][]string
	for path := []string{}; ; {
		key, rest, ok := cutKey(text)
		if !ok {
			return nil, false
		}
		path = append(path, key)
		switch {
		case rest == "":
			return append(paths, path), true
		case rest[0] == '.':
			text = rest[1:]
		case rest[0] == ',':
			paths, path = append(paths, path), nil
			text = strings.TrimLeft(rest[1:], " ")
		default:
			return nil, false
		}
	}
}

// cutKey takes the first key off text.
func cutKey(text string) (key, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexFunc(text, func(c rune) bool { return !isBareKey(c) })
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], end > 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			err := json.Unmarshal([]byte(text[:i+1]), &key)
			return key, text[i+1:], err == nil
		}
	}
	return "", "", false
}
