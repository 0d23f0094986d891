package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/trust"
)

// tellPnpm writes into a profile's settings for pnpm that it may build a package
// of a repository too, for it refuses to install the profile otherwise. What
// cannot be written is told.
func (env Env) tellPnpm(ctx context.Context, name profile.Name, packages []PackageScripts) (warnings []string, err error) {
	return env.editPnpm(ctx, name, func(text []byte) ([]byte, error) {
		for _, p := range packages {
			if !strings.HasPrefix(p.Spec, "git+") {
				continue
			}
			if text, err = trust.AllowBuilds(text, p.Name+"@"+p.Spec); err != nil {
				return nil, err
			}
		}
		return text, nil
	})
}

// untellPnpm takes that back.
func (env Env) untellPnpm(ctx context.Context, name profile.Name, pkg string) (warnings []string, err error) {
	return env.editPnpm(ctx, name, func(text []byte) ([]byte, error) { return trust.DenyBuilds(text, pkg+"@git+") })
}

// editPnpm edits a profile's settings for pnpm, where there is the profile.
func (env Env) editPnpm(ctx context.Context, name profile.Name, edit func(text []byte) ([]byte, error)) (warnings []string, err error) {
	text, err := readOr(filepath.Join(env.Home.ProfileDir(name), install.WorkspaceName))
	if err != nil || text == nil {
		return nil, err
	}
	edited, err := edit(text)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", install.WorkspaceName, err)}, nil
	}
	if bytes.Equal(edited, text) {
		return nil, nil
	}
	tx, _, err := env.begin(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if err := tx.Expect(install.WorkspaceName, text); err != nil {
		return nil, err
	}
	if err := tx.WriteFile(install.WorkspaceName, edited, 0o644); err != nil {
		return nil, err
	}
	return nil, tx.Commit()
}
