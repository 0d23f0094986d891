package compose

import (
	"regexp"
	"strings"
)

// keyOfLine is a key on a line that may be no YAML.
var keyOfLine = regexp.MustCompile(`["']?([A-Za-z_][\w.-]*)["']?\s*:`)

// withoutSecrets is a message about a line of a layer without the words of that
// line that stand behind a key which is named like a secret: a password that is
// pasted without quotes is what many messages are about.
func withoutSecrets(message, line string) string {
	for _, at := range keyOfLine.FindAllStringSubmatchIndex(line, -1) {
		if !IsSecretKey(line[at[2]:at[3]]) {
			continue
		}
		for _, word := range strings.FieldsFunc(line[at[1]:], endsWord) {
			message = strings.ReplaceAll(message, word, mask)
		}
	}
	return message
}

// endsWord says whether c is no part of what may be a secret: white space, and
// signs that YAML knows.
func endsWord(c rune) bool { return strings.ContainsRune(" \t\r,:[]{}#&*!|>'\"%@`?", c) }
