package patchedit

import (
	"errors"
	"fmt"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
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

// Class is Composition: the file is not written so that dsh could edit it.
func (e *UneditableError) Class() fault.Class { return fault.Composition }

// Hint says what to do by hand. Without aliases the edit can be made.
func (e *UneditableError) Hint() string {
	switch {
	case e.Shared:
		return "write the value out in the place of its aliases, then run the command again"
	case e.YAML == "":
		return fmt.Sprintf("delete %s by hand", e.Path.words())
	default:
		return fmt.Sprintf("write %s by hand:\n    %s", e.Path.words(), strings.ReplaceAll(e.YAML, "\n", "\n    "))
	}
}
