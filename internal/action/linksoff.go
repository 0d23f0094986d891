package action

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// linksOff makes the profile of a transaction say that its files are copied out
// of the store. changed is false where it says so already.
func linksOff(tx *staging.Tx) (changed bool, err error) {
	text, err := profile.ReadFile(filepath.Join(tx.Dir(), install.WorkspaceName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("turn links off: %w", err)
	}
	edited, err := install.WithoutLinks(text)
	if err != nil {
		return false, fault.Errorf(fault.Package, "turn links off in %s: %w", install.WorkspaceName, err)
	}
	if bytes.Equal(edited, text) {
		return false, nil
	}
	return true, tx.WriteFile(install.WorkspaceName, edited, 0o644)
}
