package install

import (
	"bytes"
	"errors"

	"dsh/internal/workspace"
)

// importMethod is pnpm's setting of how files come out of the store.
const importMethod = "packageImportMethod"

// WithoutLinks is the text of a pnpm-workspace.yaml which says that files are
// copied out of the store and never linked, and otherwise byte for byte as it
// was. One that says so already is returned as it is. It is an error where it
// cannot be said safely.
func WithoutLinks(text []byte) ([]byte, error) {
	root, err := workspace.Root(text)
	if err != nil {
		return nil, err
	}
	edited := bytes.Clone(text)
	switch value := workspace.Value(root, importMethod); {
	case value == nil:
		edited = workspace.Append(edited, importMethod+": copy")
	case value.Value == "copy" || value.Value == "clone-or-copy":
		return text, nil
	default:
		edited = workspace.ReplaceScalar(edited, value, "copy")
	}
	if !workspace.SaysInstead(text, edited, importMethod, "copy") {
		return nil, errors.New("it is not written so that one line could be changed; write there: " + importMethod + ": copy")
	}
	return edited, nil
}
