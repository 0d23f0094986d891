// Package compose is the composition of layers into one tree of rows: the
// YAML dialect that layers are written in, the patch language, the origin of
// every row, and the dump of the result.
//
// It is not a reader of files: it takes texts and values and returns values,
// and touches neither the file system, the network nor the clock.
package compose
