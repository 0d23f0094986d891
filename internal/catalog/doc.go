// Package catalog is the catalogues of plugins that people publish: their texts in
// all shapes become entries, each with the spec that would install it.
//
// It installs nothing and asks no server. A catalogue is data from a stranger: a
// command in it is read as words and never run, and what it may not name, it does
// not name.
package catalog
