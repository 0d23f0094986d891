package patchedit

import (
	"dsh/internal/compose"
)

// CopiedKeys reads the note at the top of the mapping at a path that says which
// keys were copied from the layers below:
//
//	# copied from the layers below: host, "a.b".c
//
// The keys are paths relative to that mapping; nil when there is no note.
func CopiedKeys(text []byte, at Path) [][]string { return nil }

// SetCopiedKeys adds the note that CopiedKeys reads, replaces it, or, without
// keys, removes it. The errors are those of Set.
func SetCopiedKeys(src compose.Source, text []byte, at Path, keys [][]string) ([]byte, error) {
	return text, nil
}
