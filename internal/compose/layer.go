package compose

import (
	"slices"
	"strconv"
)

// Kind is where in the stack a layer stands, lowest first.
type Kind uint8

// The kinds of layer.
const (
	BundleLayer  Kind = iota // of a bundle that the profile lists
	ProfileLayer             // the profile's own patch
	HomeLayer                // the patch of the home, for every profile
	ProjectLayer             // the patch of the project that dsh is started in
	PatchLayer               // a file given for one run, or standard input
	SetLayer                 // values given on the command line
)

// String is the kind in one word.
func (k Kind) String() string {
	return [...]string{"bundle", "profile", "home", "project", "patch", "set"}[k]
}

// User says whether the layer is the user's own, so that a mistake in it is
// theirs to mend.
func (k Kind) User() bool { return k != BundleLayer }

// noun is what the reference launcher calls the text of the layer in messages.
func (k Kind) noun() string {
	if k == BundleLayer {
		return "patches"
	}
	return "overlay"
}

// takesPaths says whether `!path` may stand in the layer. It may not where the
// reference launcher has to read the file.
func (k Kind) takesPaths() bool { return k >= ProjectLayer }

// Source is where the text of a layer, or of a part of it, comes from.
type Source struct {
	File string // shown in messages
	Dir  string // absolute directory that paths in the text are relative to
	Kind Kind
	// Root is the directory that no relative path in the text may leave: the
	// package's, for a bundle; "" is no limit.
	Root string
	// UserHome is the directory that ~ stands for.
	UserHome string
	Text     []byte // filled in by ParsePatches
}

// Layer is a list of patches with the label that provenance and warnings
// show: the name of a bundle, or the path of a file.
type Layer struct {
	Label   string
	Kind    Kind
	Patches []Patch
}

// Patch is one entry of a layer. With an `insert` key it adds rows, else it
// overrides keys of the row whose id it names. Nothing else about it is
// checked: what matches no row is skipped when it is applied.
type Patch struct {
	Map          *Map
	Source       *Source // nil for a patch that no text holds
	Entry        int     // its place in the text, from 0
	Line, Column int     // of the entry in its text, from 1; 0 for a patch that no text holds
}

// Step is what applying one patch did.
type Step struct {
	Layer   int // index of its layer
	Patch   *Patch
	Outcome Outcome
	// Target is the row of the tree that was overridden, or the group that
	// rows were inserted into; nil where rows were inserted at the top.
	Target *Map
	// Rows is what an insert added, as it is in the tree. Rows inside groups
	// are in their config.
	Rows []Value
	// Changes is what an override wrote, in its order.
	Changes []Change
	// Skipped is the text of the warning about a skipped patch.
	Skipped string
}

// Change is one key of a row that an override wrote.
type Change struct {
	Key      string
	Old, New Value // New with its paths absolute
	Had      bool  // the row had the key
}

// Outcome says what became of a patch.
type Outcome uint8

// The outcomes.
const (
	Inserted     Outcome = iota
	Overrode             // also when all values were the same as before
	NoID                 // skipped: neither insert nor id
	NotFound             // skipped: no row has the id
	NotAGroup            // skipped: rows for a row that is no group
	NameMismatch         // skipped: the row is of another plugin
	PathEscapes          // skipped: a path in it leaves the bundle's package
)

// Applied says whether the patch was not skipped.
func (o Outcome) Applied() bool { return o <= Overrode }

// Find is the row that patches with the id find, nil if there is none.
func (t *Tree) Find(id Value) *Map {
	if _, ok := id.(Expr); ok {
		return nil
	}
	return t.index[id]
}

// IDs is the ids that patches can name, as texts, sorted and each once.
func (t *Tree) IDs() []string {
	ids := make([]string, 0, len(t.index))
	for id := range t.index {
		ids = append(ids, IDText(id))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// FindText is the row whose id reads as text: the text itself, else a number
// that is written so, or true.
func (t *Tree) FindText(text string) *Map {
	if row, ok := t.index[text]; ok {
		return row
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil && IDText(number) == text {
		return t.index[number]
	}
	if text == "true" {
		return t.index[true]
	}
	return nil
}

// IDText is an id as people write it: a text as it is, anything else as JSON.
func IDText(id Value) string {
	if text, ok := id.(string); ok {
		return text
	}
	return Show(id)
}
