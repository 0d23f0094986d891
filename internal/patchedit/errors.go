package patchedit

import (
	"fmt"
	"strings"
)

// UneditableError is an edit that would not leave the rest of the file as it
// is, or whose place aliases name too. Nothing is changed.
type UneditableError struct {
	File   string
	Line   int // of the place, counted from 1; 0 where that is not known
	Path   Path
	Reason string
	YAML   string // what to write at the place, in block style; "" to delete it
}

func (e *UneditableError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("editing %s: %s", at, e.Reason)
}

// Hint says what to do by hand.
func (e *UneditableError) Hint() string {
	if e.YAML == "" {
		return fmt.Sprintf("delete %s by hand", e.Path)
	}
	return fmt.Sprintf("make %s by hand:\n    %s", e.Path, strings.ReplaceAll(e.YAML, "\n", "\n    "))
}
