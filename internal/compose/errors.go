package compose

import (
	"fmt"

	"dsh/internal/fault"
)

// SyntaxError is a text that is not one document of the YAML dialect. Line
// and Column count from 1; Column is 0 where only the line is known.
type SyntaxError struct {
	File         string
	Kind         Kind
	Line, Column int
	Problem      string
	Remedy       string // what to write instead, or ""
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("failed to parse %s %s: %s", e.Kind.noun(), place(e.File, e.Line, e.Column), e.Problem)
}

// place is file:line:column, without what is 0.
func place(file string, line, column int) string {
	switch {
	case line == 0:
		return file
	case column == 0:
		return fmt.Sprintf("%s:%d", file, line)
	default:
		return fmt.Sprintf("%s:%d:%d", file, line, column)
	}
}

// Hint is the remedy.
func (e *SyntaxError) Hint() string { return e.Remedy }

// Class is fault.Composition.
func (e *SyntaxError) Class() fault.Class { return fault.Composition }

// ShapeError is a document that is not a list of patches. Line and Column are
// 0 for a file that holds nothing.
type ShapeError struct {
	File         string
	Kind         Kind
	Fault        ShapeFault
	Entry        int // which entry of the list, counted from 1; 0 for the whole file
	Line, Column int
	Remedy       string
}

// ShapeFault is what is wrong with the shape of a layer.
type ShapeFault uint8

// The faults of shape.
const (
	NotAList      ShapeFault = iota // the document is no sequence
	NotAMapping                     // an entry is no mapping
	InsertNotRows                   // what an entry inserts is no list of rows
)

func (e *ShapeError) Error() string {
	at := place(e.File, e.Line, e.Column)
	switch e.Fault {
	case NotAMapping:
		return fmt.Sprintf("%s entry %d in %s must be a mapping (a loader patch entry)", e.Kind.noun(), e.Entry, at)
	case InsertNotRows:
		return fmt.Sprintf("%s entry %d in %s must insert a list of rows", e.Kind.noun(), e.Entry, at)
	default:
		return fmt.Sprintf("%s %s must be a top-level YAML array of loader patch entries", e.Kind.noun(), at)
	}
}

// Hint is the remedy.
func (e *ShapeError) Hint() string { return e.Remedy }

// Class is fault.Composition.
func (e *ShapeError) Class() fault.Class { return fault.Composition }
