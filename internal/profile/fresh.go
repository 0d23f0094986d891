package profile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// IsFresh reports whether a profile's directory holds nothing but what dsh
// makes by itself: nobody would miss it. A directory that is not there is
// fresh, one that cannot be read is not.
func IsFresh(dir string, name Name) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	manifests := [][]byte{BaseTemplate().manifest(name)}
	for _, t := range Templates() {
		tmpl, err := LookupTemplate(t)
		if err != nil {
			return false
		}
		manifests = append(manifests, tmpl.manifest(name))
	}
	fresh := map[string][][]byte{
		manifestFile: manifests, patchFile: {[]byte(emptyPatch)}, workspaceFile: {[]byte(workspace)}, rootFile: {[]byte(emptyRoot)},
	}
	for _, entry := range entries {
		texts, ours := fresh[entry.Name()]
		if !ours || !entry.Type().IsRegular() {
			return false
		}
		text, err := ReadFile(filepath.Join(dir, entry.Name()))
		same := func(want []byte) bool { return bytes.Equal(text, want) }
		if err != nil || !slices.ContainsFunc(texts, same) {
			return false
		}
	}
	return true
}
