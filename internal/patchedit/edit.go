package patchedit

import (
	"dsh/internal/compose"
)

// Path leads to a value: the place of a patch in the file, then keys and
// indices (decimal texts), as {"0", "config", "port"}.
type Path []string

// String is the path as people write it: keys joined by dots.
func (p Path) String() string { return formatKeys([][]string{p}) }

// Set gives the value at a path, whose parent must exist, a value: it replaces
// what is there, adds a key at the end of the mapping, or, with an index one
// past the end, an item at the end of the list. Comments survive. A value that
// equals v is left as it is written. The error is an *UneditableError, what
// compose says about a text that is no layer (before or after the edit), or
// that there is no such parent.
func Set(src compose.Source, text []byte, at Path, v compose.Value) ([]byte, error) {
	return nil, &UneditableError{File: src.File, Path: at, Reason: "not supported"}
}

// Delete takes the key or item at a path out, with the comment lines directly
// above it that are indented like it. Where nothing is there the text stays as
// it is. Where the parent becomes empty it is written {} or [], also the file
// as a whole. The errors are those of Set.
func Delete(src compose.Source, text []byte, at Path) ([]byte, error) {
	return nil, &UneditableError{File: src.File, Path: at, Reason: "not supported"}
}

// Append adds a patch at the end of the file. A file that is empty, or holds
// comments only, or an empty list, becomes a block list, and keeps its
// comments. The errors are those of Set.
func Append(src compose.Source, text []byte, patch compose.Value) ([]byte, error) {
	return nil, &UneditableError{File: src.File, Reason: "not supported"}
}
