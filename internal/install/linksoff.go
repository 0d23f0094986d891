package install

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// importMethod is pnpm's setting of how files come out of the store.
const importMethod = "packageImportMethod"

// WithoutLinks is the text of a pnpm-workspace.yaml which says that files are
// copied out of the store and never linked, and otherwise byte for byte as it
// was. One that says so already is returned as it is. It is an error where it
// cannot be said safely.
func WithoutLinks(text []byte) ([]byte, error) {
	root, err := workspaceRoot(text)
	if err != nil {
		return nil, err
	}
	edited := bytes.Clone(text)
	switch value := valueOf(root, importMethod); {
	case value == nil:
		edited = appendSetting(edited, importMethod+": copy")
	case value.Value == "copy" || value.Value == "clone-or-copy":
		return text, nil
	default:
		edited = replaceScalar(edited, value, "copy")
	}
	if !saysInstead(text, edited, importMethod, "copy") {
		return nil, errors.New("it is not written so that one line could be changed; write there: " + importMethod + ": copy")
	}
	return edited, nil
}

// appendSetting puts a line at the end of a text, with the line ends that it has.
func appendSetting(text []byte, line string) []byte {
	end := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		end = "\r\n"
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, end...)
	}
	return append(text, line+end...)
}

// replaceScalar writes a word in the place of a value that stands on one line.
func replaceScalar(text []byte, value *yaml.Node, word string) []byte {
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

// saysInstead reports whether after says the same as before but for one key,
// which has that text.
func saysInstead(before, after []byte, key, value string) bool {
	var was, is map[string]any
	if yaml.Unmarshal(before, &was) != nil || yaml.Unmarshal(after, &is) != nil {
		return false
	}
	if is[key] != value {
		return false
	}
	delete(was, key)
	delete(is, key)
	return len(was) == 0 && len(is) == 0 || reflect.DeepEqual(was, is)
}
