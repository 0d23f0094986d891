// Package patchedit is the editor of patch files: it sets, deletes and appends
// values in the text of a layer so that only the bytes concerned change, and
// comments, order, blank lines, formatting and line endings stay.
//
// It is not the judge of what patches mean: places are paths in the document,
// and callers say what to write there.
package patchedit
