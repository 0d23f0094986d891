package patchedit

import (
	"errors"
	"fmt"
	"strings"

	"dsh/internal/compose"
)

// UneditableError is an edit that would not leave the rest of the file as it
// is, or whose place aliases name too. Nothing is changed.
type UneditableError struct {
	File   string
	Line   int // of the place, counted from 1; 0 where that is not known
	Path   Path
	Reason string
	YAML   string // what to write at the place, in block style; "" to delete it
	Shared bool   // aliases name the place: they must be written out first
}

// uneditable is why the place at a path in text cannot be edited.
func uneditable(src compose.Source, text []byte, at Path, reason error, yaml string) *UneditableError {
	line, _, _ := compose.Position(text, at...)
	_, shared := errors.AsType[*sharedError](reason)
	return &UneditableError{src.File, line, at, reason.Error(), yaml, shared}
}

// sharedError is a place whose value stands elsewhere too.
type sharedError struct{ how string }

func (e *sharedError) Error() string {
	return e.how + ", so the edit would change other places too"
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
	first := ""
	if e.Shared {
		first = "write the value out in the place of its aliases, then "
	}
	if e.YAML == "" {
		return fmt.Sprintf("%sdelete %s by hand", first, e.Path)
	}
	return fmt.Sprintf("%smake %s by hand:\n    %s", first, e.Path, strings.ReplaceAll(e.YAML, "\n", "\n    "))
}
