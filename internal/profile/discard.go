package profile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"dsh/internal/staging"
)

// Discard takes away a profile that opening it made, for a command that then
// failed: the directory goes when it holds nothing but what a fresh profile
// has. Anything else in it belongs to somebody, and everything stays.
func Discard(p *Profile) error {
	if !p.Created {
		return nil
	}
	tmpl, _ := templateFor(p.Name, true)
	fresh := map[string][]byte{
		patchFile: []byte(emptyPatch), workspaceFile: []byte(workspace), manifestFile: tmpl.manifest(p.Name), rootFile: []byte(emptyRoot),
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return fmt.Errorf("removing the profile that was just made: %w", err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(p.Dir, entry.Name()))
		if want, ok := fresh[entry.Name()]; err != nil || !ok || !bytes.Equal(text, want) {
			return nil
		}
	}
	return staging.RemoveAll(p.Dir)
}
