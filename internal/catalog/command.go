package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	errSeveralCommands = errors.New("it is more than one command")
	errExpansion       = errors.New("a shell would put something else in place of a part of it")
	errOpenQuote       = errors.New("a quote in it has no end")
)

// words splits a command line as a POSIX shell would, where that needs nothing but
// the text itself. A line that does more than start one program with plain words is
// an error.
func words(line string) ([]string, error) {
	var list []string
	var word strings.Builder
	inWord := false
	quote := rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("\\\"$`", r) {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '$' || r == '`':
			return nil, errExpansion
		case quote == '"':
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '\n' || strings.ContainsRune(";&|<>()", r):
			return nil, errSeveralCommands
		case r == ' ' || r == '\t':
			if inWord {
				list = append(list, word.String())
				word.Reset()
				inWord = false
			}
		case r == '#' && !inWord:
			return nil, errors.New("a part of it is a comment")
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errOpenQuote
	}
	if inWord {
		list = append(list, word.String())
	}
	return list, nil
}

// runners start a program of a package.
var runners = map[string][]string{
	"npx": nil, "bunx": nil, "pnpx": nil,
	"pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx", "run"}, "bun": {"x", "run"}, "npm": {"exec"},
}

// valued are flags of `dsh plugin add` that have a value.
var valued = []string{"--profile", "--before", "--min-release-age", "--host-packages", "--reporter", "--expect-repo"}

// elsewhere are flags that make another package of a spec.
var elsewhere = []string{"--registry", "--home", "--installation", "--catalog", "--dir", "-C"}

// addedBy reads a command of an entry: the one spec that it adds, and what of it
// does not count.
func addedBy(line string) (spec string, notes []string, err error) {
	list, err := words(strings.TrimSpace(line))
	if err != nil {
		return "", nil, err
	}
	list = withoutRunner(list)
	if len(list) == 0 || !isDsh(list[0]) {
		return "", nil, errors.New("it is no command of dsh")
	}
	var plain []string
	list = list[1:]
	for i := 0; i < len(list); i++ {
		word := list[i]
		name, value, joined := strings.Cut(word, "=")
		switch {
		case word == "--":
			plain = append(plain, list[i+1:]...)
			i = len(list)
		case !strings.HasPrefix(word, "-") || word == "-":
			plain = append(plain, word)
		case slices.Contains(elsewhere, name):
			return "", nil, fmt.Errorf("it says %s", name)
		default:
			if slices.Contains(valued, name) && !joined && i+1 < len(list) {
				i++
				value = list[i]
			}
			notes = append(notes, ignored(name, value))
		}
	}
	switch {
	case len(plain) < 2 || plain[0] != "plugin" || !slices.Contains([]string{"add", "install", "i"}, plain[1]):
		return "", nil, errors.New("it is not dsh plugin add")
	case len(plain) == 2 || len(plain) == 3 && plain[2] == "":
		return "", nil, errors.New("it adds nothing")
	case len(plain) > 3:
		return "", nil, fmt.Errorf("it adds %d packages", len(plain)-2)
	}
	return plain[2], notes, nil
}

// ignored is a flag with its value, as it may be shown.
func ignored(flag, value string) string {
	text := flag
	if value != "" {
		text += " " + value
	}
	return Line(text, maxName)
}

// withoutRunner leaves the command that npx and its like run.
func withoutRunner(list []string) []string {
	if len(list) == 0 {
		return list
	}
	verbs, ok := runners[list[0]]
	if !ok {
		return list
	}
	list = list[1:]
	if len(list) > 0 && slices.Contains(verbs, list[0]) {
		list = list[1:]
	}
	for len(list) > 0 && slices.Contains([]string{"-y", "--yes", "--"}, list[0]) {
		list = list[1:]
	}
	return list
}

// isDsh reports whether a word starts dsh: its program, or the package that has it.
func isDsh(word string) bool {
	rest, ok := strings.CutPrefix(word, "@deepseek-ai/dsh")
	return word == "dsh" || ok && (rest == "" || rest[0] == '@')
}
