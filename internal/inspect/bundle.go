package inspect

import (
	"fmt"
	"path/filepath"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/install/manifest"
	"dsh/internal/installation"
)

// Bundle finds what a bundle lacks by itself, whatever profile it comes into:
// rows whose plugins are neither in the package nor among what it depends on,
// and packages of the harness that it would bring along. file is what findings
// call its package.json.
func Bundle(pkg installation.Package, file string, patches []compose.Patch) []check.Finding {
	m, err := manifest.Parse(pkg.Manifest)
	if err != nil {
		return nil // a finding of its own
	}
	b := bundleInspection{pkg: pkg, manifest: m, seen: map[*compose.Map]bool{}}
	for _, name := range dependencies(pkg.Dir, false) {
		if IsHost(name) {
			b.findings = append(b.findings, check.Finding{
				Code: HostDependency, Severity: check.Warning, File: file,
				Message: fmt.Sprintf("the package depends on %s, so that profiles get a second copy of a package of the harness", name),
				Remedy:  "move it to peerDependencies",
			})
		}
	}
	for _, patch := range patches {
		insert, _ := patch.Map.Get("insert")
		if list, ok := insert.(*compose.List); ok {
			for _, item := range list.Items {
				if row, ok := item.(*compose.Map); ok {
					b.row(patch, compose.Row{Entry: row})
				}
			}
		}
	}
	return b.findings
}

// bundleInspection is one look at a bundle.
type bundleInspection struct {
	pkg      installation.Package
	manifest *manifest.Manifest
	seen     map[*compose.Map]bool // aliases repeat rows, and rows may hold themselves
	findings []check.Finding
}

func (b *bundleInspection) row(patch compose.Patch, row compose.Row) {
	if row.Entry == nil || b.seen[row.Entry] {
		return
	}
	b.seen[row.Entry] = true
	if problem, remedy := b.missing(row.Name()); problem != "" {
		f := check.Finding{
			Code: RowUnresolved, Severity: check.Warning, File: patch.Source.File, Row: rowID(row),
			Message: fmt.Sprintf("%s has the plugin %s", describe(row), problem), Remedy: remedy,
		}
		f.Line, f.Column = row.Entry.Position()
		b.findings = append(b.findings, f)
	}
	for _, child := range row.Mounted() {
		b.row(patch, child)
	}
}

// missing says what is missing for a plugin, "" for nothing.
func (b *bundleInspection) missing(plugin string) (problem, remedy string) {
	if file, ok := compose.FilePath(plugin); ok {
		if !absent(file) {
			return "", ""
		}
		if shown, err := filepath.Rel(b.pkg.Dir, file); err == nil {
			file = "./" + filepath.ToSlash(shown)
		}
		return file + ", and the package has no such file", "put the file there, or write where it is"
	}
	name, _ := splitName(plugin)
	if plugin == "" || strings.Contains(plugin, ":") || IsHost(name) || name == b.pkg.Name {
		return "", ""
	}
	for _, section := range []map[string]string{b.manifest.Dependencies, b.manifest.OptionalDependencies, b.manifest.PeerDependencies} {
		if _, ok := section[name]; ok {
			return "", ""
		}
	}
	return plugin + ", and the package does not depend on it", fmt.Sprintf("add %q to dependencies", name)
}
