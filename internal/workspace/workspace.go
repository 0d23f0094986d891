package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Name is the file of a profile that holds pnpm's settings.
const Name = "pnpm-workspace.yaml"

// Root is the mapping of settings in a text, an empty one where the text says
// nothing. An error names the line.
func Root(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		return root, nil
	}
	return nil, fmt.Errorf("line %d: it must hold a mapping", document.Content[0].Line)
}

// Value is the value of a key, nil where there is none.
func Value(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// Append puts a line at the end of a text, with the line ends that it has.
func Append(text []byte, line string) []byte {
	end := LineEnd(text)
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, end...)
	}
	return append(text, line+end...)
}

// LineEnd is how the lines of a text end.
func LineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// ReplaceScalar writes a word in the place of a value that stands on one line.
// Where it does not, the text is returned as it is.
func ReplaceScalar(text []byte, value *yaml.Node, word string) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if value.Line < 1 || value.Line > len(lines) {
		return text
	}
	line := string(lines[value.Line-1])
	// Columns count characters.
	at, column := 0, 1
	for i := range line {
		at = i
		if column == value.Column {
			break
		}
		column++
	}
	rest := line[at:]
	for _, written := range []string{value.Value, `"` + value.Value + `"`, "'" + value.Value + "'"} {
		if after, ok := strings.CutPrefix(rest, written); ok && value.Value != "" {
			lines[value.Line-1] = []byte(line[:at] + word + after)
			return bytes.Join(lines, nil)
		}
	}
	return text
}

// SaysInstead reports whether after says the same as before but for one key,
// which has that value.
func SaysInstead(before, after []byte, key string, value any) bool {
	var was, is map[string]any
	if yaml.Unmarshal(before, &was) != nil || yaml.Unmarshal(after, &is) != nil {
		return false
	}
	if !reflect.DeepEqual(is[key], value) {
		return false
	}
	delete(was, key)
	delete(is, key)
	return len(was) == 0 && len(is) == 0 || reflect.DeepEqual(was, is)
}
