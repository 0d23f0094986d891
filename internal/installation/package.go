package installation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
)

const manifestFile = "package.json"

// Package is one package, opened for reading.
type Package struct {
	Name     string // as its manifest says; "" when it does not
	Version  string // likewise
	Manifest []byte // package.json without a byte-order mark
	FS       fs.FS  // the files; nothing outside the package's real root can be reached
	Dir      string // the real root, absolute, or "<embedded>/<folder>"
}

// OpenPackage opens the package in dir. Links on the way to it are followed;
// from then on nothing outside its real root can be read, neither with ".." nor
// through a link. The error is [fs.ErrNotExist] when there is no package.json.
func OpenPackage(dir string) (Package, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return Package{}, fmt.Errorf("opening package %s: %w", dir, err)
	}
	return newPackage(root, confined(root))
}

func newPackage(dir string, files fs.FS) (Package, error) {
	pkg := Package{FS: files, Dir: dir}
	text, err := pkg.ReadFile(manifestFile)
	if err != nil {
		return Package{}, err
	}
	pkg.Manifest = bytes.TrimPrefix(text, []byte("\ufeff"))
	var manifest map[string]json.RawMessage
	if err := json.Unmarshal(pkg.Manifest, &manifest); err != nil {
		return Package{}, manifestError(filepath.Join(dir, manifestFile), pkg.Manifest, err)
	}
	// Other types than strings are for npm to complain about.
	_ = json.Unmarshal(manifest["name"], &pkg.Name)
	_ = json.Unmarshal(manifest["version"], &pkg.Version)
	return pkg, nil
}

// manifestError words what encoding/json says about a package.json.
func manifestError(file string, text []byte, err error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return fault.Errorf(fault.Package, "%s must hold a JSON object", file)
	}
	before := text[:min(max(int(syntax.Offset)-1, 0), len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fault.Errorf(fault.Package, "%s:%d:%d: %w", file, line, column, err)
}

// EscapeError is a file that a package names outside its own root.
type EscapeError struct {
	Package, File string
}

func (e *EscapeError) Error() string {
	return fmt.Sprintf("%s in package %s leads outside the package", e.File, e.Package)
}

// Class is Policy: the file is refused, whether it exists or not.
func (e *EscapeError) Class() fault.Class { return fault.Policy }

// ReadFile reads a file of the package. The name is relative to its root, with
// or without "./"; one that leads outside the root, by itself or through a
// link, is an [EscapeError].
func (p Package) ReadFile(name string) ([]byte, error) {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || filepath.IsAbs(name) {
		return nil, &EscapeError{Package: p.label(), File: name}
	}
	data, err := fs.ReadFile(p.FS, clean)
	if escapes(err) {
		return nil, &EscapeError{Package: p.label(), File: name}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of package %s: %w", clean, p.label(), reason(err))
	}
	return data, nil
}

// escapes recognises what os.Root says about a path or link that leads out of
// it; the error has no name of its own.
func escapes(err error) bool {
	pathError, ok := errors.AsType[*fs.PathError](err)
	return ok && pathError.Err.Error() == "path escapes from parent"
}

func (p Package) label() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Dir
}

// reason is err without the path, where the message around it names it.
func reason(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}

// confined is the files below a directory. It opens the root for each file
// anew: an open handle of a package directory would keep Windows from swapping
// it while dsh runs.
type confined string

// Open opens a file inside the root; links may not lead out of it.
func (c confined) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(c))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(filepath.FromSlash(name))
}
