package action

import (
	"bytes"
	"errors"
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
	text, err := readOr(filepath.Join(tx.Dir(), install.WorkspaceName))
	if err != nil {
		return false, err
	}
	edited, err := withoutLinks(text)
	if err != nil || bytes.Equal(edited, text) {
		return false, err
	}
	return true, tx.WriteFile(install.WorkspaceName, edited, 0o644)
}

// readOr is the text of a file, nothing where there is none.
func readOr(file string) ([]byte, error) {
	text, err := profile.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// withoutLinks is the text of a pnpm-workspace.yaml with links turned off.
func withoutLinks(text []byte) ([]byte, error) {
	edited, err := install.WithoutLinks(text)
	if err != nil {
		err = fault.Errorf(fault.Package, "turn links off in %s: %w", install.WorkspaceName, err)
	}
	return edited, err
}
