package inspect

import (
	"io/fs"
	"os"
	"path"
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
// files are the package's, slash-separated; where they are nil, the folders are read.
func BundlesBelow(dir string, files []string) []string {
	if files == nil {
		files = manifestsBelow(dir)
	}
	var found []string
	for _, file := range files {
		folder, ok := strings.CutSuffix(file, "/package.json")
		if !ok || !mayBeMember(folder) {
			continue
		}
		text, err := profile.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			continue // what cannot be read is no bundle
		}
		if m, err := manifest.Parse(text); err == nil && m.Layer {
			if found = append(found, folder); len(found) == belowMost {
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// mayBeMember reports whether a folder is one of those in which bundles are looked
// for.
func mayBeMember(folder string) bool {
	parts := strings.Split(folder, "/")
	return len(parts) <= belowDepth && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "node_modules" || strings.HasPrefix(part, ".")
	})
}

// manifestsBelow are the files package.json in folders of a directory.
func manifestsBelow(dir string) []string {
	var found []string
	folders := 0
	_ = fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir // what cannot be read is no bundle
		case err != nil || file == ".":
		case d.IsDir():
			if folders++; folders > belowFolder {
				return fs.SkipAll
			}
			if !mayBeMember(file) {
				return fs.SkipDir
			}
		case path.Base(file) == "package.json" && d.Type().IsRegular():
			found = append(found, file)
		}
		return nil
	})
	return found
}
