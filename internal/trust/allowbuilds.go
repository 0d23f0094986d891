package trust

import (
	"bytes"
	"errors"
	"maps"
	"regexp"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"dsh/internal/workspace"
)

// AllowBuilds is the text of a pnpm-workspace.yaml which lets pnpm run the scripts
// of one more package, named by a key of allowBuilds, and otherwise byte for byte
// as it was. One that says so already is returned as it is. It is an error where
// it cannot be said safely.
func AllowBuilds(text []byte, key string) ([]byte, error) {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return nil, errors.New("the key is no text that could be written there")
	}
	root, err := workspace.Root(text)
	if err != nil {
		return nil, err
	}
	line := yamlKey(key) + ": true"
	byHand := errors.New(allowBuilds + " is not written so that one line could be changed; write there: " + line)
	builds := workspace.Value(root, allowBuilds)
	want := map[string]any{key: true}
	var edits [][]byte
	switch {
	case builds == nil:
		edited := workspace.Append(bytes.Clone(text), allowBuilds+":")
		edits = append(edits, workspace.Append(edited, "  "+line))
	case builds.Tag == "!!null":
		edits = append(edits, insertLine(text, builds.Line, "  "+line))
	case builds.Kind != yaml.MappingNode:
		return nil, byHand
	default:
		said := map[string]any{}
		if builds.Decode(&said) != nil {
			return nil, byHand
		}
		if said[key] == true {
			return text, nil
		}
		if len(builds.Content) == 0 {
			return nil, byHand
		}
		maps.Copy(said, want)
		want = said
		first, last := builds.Content[0], builds.Content[len(builds.Content)-1]
		if value := workspace.Value(builds, key); value != nil {
			edits = append(edits, workspace.ReplaceScalar(text, value, "true"))
			break
		}
		line = strings.Repeat(" ", first.Column-1) + line
		// Behind the last one, unless that goes on over several lines.
		edits = append(edits, insertLine(text, last.Line, line), insertLine(text, first.Line-1, line))
	}
	for _, edited := range edits {
		if workspace.SaysInstead(text, edited, allowBuilds, want) {
			return edited, nil
		}
	}
	return nil, byHand
}

// insertLine puts a line behind the one of that number, which counts from 1.
func insertLine(text []byte, after int, line string) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	after = max(0, min(after, len(lines)))
	before := bytes.Join(lines[:after], nil)
	return append(workspace.Append(bytes.Clone(before), line), bytes.Join(lines[after:], nil)...)
}

// safeKey is what means the same in YAML without quotes.
var safeKey = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9._/+@&#:-]*[A-Za-z0-9_/-])?$`)

// yamlKey is a text as a key of a mapping.
func yamlKey(text string) string {
	var value any
	if safeKey.MatchString(text) && yaml.Unmarshal([]byte(text), &value) == nil && value == text {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
