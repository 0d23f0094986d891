package compose

import (
	"fmt"

	"dsh/internal/fault"
)

// Kind is what a layer's text is called in messages.
type Kind uint8

// The kinds, with the words of the reference launcher.
const (
	Patches Kind = iota // the layer of a bundle, a profile or a home
	Overlay             // a file given for one start
)

func (k Kind) String() string {
	if k == Overlay {
		return "overlay"
	}
	return "patches"
}

// Source is where the text of a layer comes from.
type Source struct {
	File string // shown in messages
	Dir  string // absolute directory that paths in rows are relative to
	Kind Kind
}

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
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	if e.Column > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Column)
	}
	return fmt.Sprintf("failed to parse %s %s: %s", e.Kind, at, e.Problem)
}

// Hint is the remedy.
func (e *SyntaxError) Hint() string { return e.Remedy }

// Class is fault.Composition.
func (e *SyntaxError) Class() fault.Class { return fault.Composition }

// ShapeError is a document that is not a list of patches.
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
	switch e.Fault {
	case NotAMapping:
		return fmt.Sprintf("%s entry %d in %s must be a mapping (a loader patch entry)", e.Kind, e.Entry, e.File)
	case InsertNotRows:
		return fmt.Sprintf("%s entry %d in %s:%d:%d must insert a list of rows", e.Kind, e.Entry, e.File, e.Line, e.Column)
	default:
		return fmt.Sprintf("%s %s must be a top-level YAML array of loader patch entries", e.Kind, e.File)
	}
}

// Hint is the remedy.
func (e *ShapeError) Hint() string { return e.Remedy }

// Class is fault.Composition.
func (e *ShapeError) Class() fault.Class { return fault.Composition }
