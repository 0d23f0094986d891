package inspect

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/install/manifest"
	"dsh/internal/profile"
)

// The folders of a package in which bundles are looked for, and how many are told
// of.
const (
	belowDepth  = 4
	belowFolder = 2000
	belowMost   = 50
)

// BundlesBelow are the folders of a package, slash-separated and sorted, that are
// bundles by themselves: the members of a repository that was added as a whole.
func BundlesBelow(dir string) []string {
	var found []string
	folders := 0
	_ = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil // what cannot be read is no bundle
		}
		rel, _ := filepath.Rel(dir, file)
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && rel == ".":
		case d.IsDir():
			if folders++; folders > belowFolder {
				return fs.SkipAll
			}
			if d.Name() == "node_modules" || d.Name()[0] == '.' || strings.Count(rel, "/") >= belowDepth {
				return fs.SkipDir
			}
		case d.Name() == "package.json" && rel != "package.json" && d.Type().IsRegular():
			text, err := profile.ReadFile(file)
			if err != nil {
				return nil
			}
			if m, err := manifest.Parse(text); err == nil && m.Layer {
				if found = append(found, strings.TrimSuffix(rel, "/package.json")); len(found) == belowMost {
					return fs.SkipAll
				}
			}
		}
		return nil
	})
	slices.Sort(found)
	return found
}
