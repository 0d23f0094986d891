// Package program reads what program a package declares to be run as a row.
package program

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/pkgpath"
)

// Program is what a package declares to be run.
type Program struct {
	Package string // its name
	Root    string // its real directory
	Path    string // of the file, absolute
}

// Of is the program that dsh.plugin.exec of a package names; ok is false when
// it names none. The error is a declaration that cannot be followed: a path that
// is not inside the package, or no program there.
func Of(pkg installation.Package) (p Program, ok bool, err error) {
	var manifest struct {
		Dsh struct {
			Plugin struct {
				Exec json.RawMessage `json:"exec"`
			} `json:"plugin"`
		} `json:"dsh"`
	}
	// A manifest of another shape declares nothing; what is wrong with it is
	// told where bundles are read.
	if json.Unmarshal(pkg.Manifest, &manifest) != nil || manifest.Dsh.Plugin.Exec == nil {
		return Program{}, false, nil
	}
	p = Program{Package: pkg.Name, Root: pkg.Dir}
	var text string
	if err := json.Unmarshal(manifest.Dsh.Plugin.Exec, &text); err != nil {
		return p, true, fault.Errorf(fault.Package, "dsh.plugin.exec of %s must be a path such as \"./bin/run\"", pkg.Name)
	}
	written, err := pkgpath.Parse(text)
	if err != nil {
		return p, true, fault.Errorf(fault.Policy, "dsh.plugin.exec of %s: %w", pkg.Name, err)
	}
	native, err := written.Native()
	if err != nil {
		return p, true, fault.Errorf(fault.Policy, "dsh.plugin.exec of %s: %w", pkg.Name, err)
	}
	p.Path = filepath.Join(pkg.Dir, native)
	return p, true, p.check(text)
}

// check looks whether the file is one that can be run, and in the package also
// when all links are followed.
func (p Program) check(written string) error {
	real, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return fault.Errorf(fault.Package, "dsh.plugin.exec of %s names %s, which is not in the package: %w", p.Package, written, err)
	}
	if inside, err := filepath.Rel(p.Root, real); err != nil || !filepath.IsLocal(inside) {
		return fault.Errorf(fault.Policy, "dsh.plugin.exec of %s names %s, which leads out of the package", p.Package, written)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return fmt.Errorf("look at the program of %s: %w", p.Package, err)
	case !info.Mode().IsRegular():
		return fault.Errorf(fault.Package, "dsh.plugin.exec of %s names %s, which is no file", p.Package, written)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return fault.WithHint(fault.Errorf(fault.Package, "dsh.plugin.exec of %s names %s, which is not executable", p.Package, written),
			"the package has to be published with that permission: chmod +x %s before it is packed", strings.TrimPrefix(written, "./"))
	}
	return nil
}
