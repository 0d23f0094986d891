package inspect

import (
	"path/filepath"
	"slices"

	"dsh/internal/check"
	"dsh/internal/install/manifest"
	"dsh/internal/installation"
)

// Lack is a file that a package.json declares and that is not in the package.
type Lack struct {
	Field string `json:"field"` // main, exports, bin or dsh.bundle.patch
	File  string `json:"file"`  // slash-separated, relative to the package
}

// Covers reports whether a finding about a row says nothing but that this file is
// missing from the package.
func (l Lack) Covers(f check.Finding, pkg string) bool {
	return f.Code == RowNoEntry && f.Subject == noEntry(pkg, noFile(l.File))
}

// Lacking are the files that a package declares to be there for those who use it
// and that are not: what "main", "exports" and "bin" lead to, and the patch files of
// a bundle. Of an export for which conditions choose between files, one is enough.
func Lacking(pkg installation.Package) []Lack {
	has := func(name string) bool { return !absent(filepath.Join(pkg.Dir, filepath.FromSlash(name))) }
	var list []Lack
	for _, d := range manifest.Declares(pkg.Manifest) {
		if d.Field != "files" && !slices.ContainsFunc(d.Files, func(file string) bool { return d.There(file, has) }) {
			list = append(list, Lack{d.Field, d.Files[0]})
		}
	}
	return list
}
