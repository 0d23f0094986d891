// Package profiles is the shipped profile templates: one folder each, with the
// bundle list and the patch-reload policy that a new profile starts from.
//
// It is not where profiles live: those are under the dsh home and belong to
// the user.
package profiles

import "embed"

// FS holds <template>/package.json for every template.
//
//go:embed */package.json
var FS embed.FS
