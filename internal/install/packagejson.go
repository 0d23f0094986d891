package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
)

// readPackageJSON reads the package.json in a folder that a message calls
// where. A folder without one is an fs.ErrNotExist; what is wrong with one that
// is there is of class Package.
func readPackageJSON(where, dir string) (*manifest.Manifest, error) {
	text, err := readPackageText(where, filepath.Join(dir, "package.json"))
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(text)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return nil, fault.Errorf(fault.Package, "%s/package.json:%d: %w", where, line, err)
	}
	if err != nil {
		return nil, fault.Errorf(fault.Package, "%s/package.json must hold a JSON object", where)
	}
	return m, nil
}

func readPackageText(where, file string) ([]byte, error) {
	info, err := os.Stat(file) // opening what is no file may wait for ever
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", where, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.Errorf(fault.Package, "%s/package.json is no file", where)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", where, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, manifest.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", where, err)
	}
	if len(text) > manifest.MaxSize {
		return nil, fault.Errorf(fault.Package, "%s/package.json is larger than %d bytes", where, manifest.MaxSize)
	}
	return text, nil
}

// noVersion stands for the version of a package that names none.
const noVersion = "0.0.0"

// versionOf is the version that a package.json names.
func versionOf(m *manifest.Manifest) string {
	if m.Version == "" {
		return noVersion
	}
	return m.Version
}

// packageOf is the package that a manifest describes, without origin and
// integrity. What it says of names that may not be installed is left out.
func packageOf(m *manifest.Manifest) *Package {
	return &Package{
		Name:          m.Name,
		Version:       versionOf(m),
		Dependencies:  wantedMap(m.Dependencies),
		Optional:      wantedMap(m.OptionalDependencies),
		Peers:         wantedMap(m.PeerDependencies),
		OptionalPeers: validNames(m.OptionalPeers),
		Bundled:       validNames(m.BundleDependencies),
		OS:            m.OS,
		CPU:           m.CPU,
		Libc:          m.Libc,
		Bin:           m.Bin,
		Node:          m.Engines["node"],
	}
}

// wantedMap is the entries of a dependency map whose names may be installed,
// with the empty range written out.
func wantedMap(m map[string]string) map[string]string {
	var out map[string]string
	for name, wanted := range m {
		if !ValidName(name) {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(m))
		}
		out[name] = anyVersion(wanted)
	}
	return out
}

// validNames is the names that may be installed, nil when there are none.
func validNames(names []string) []string { return only(names, ValidName) }

// only is the names for which keep holds, nil when there are none.
func only(names []string, keep func(string) bool) []string {
	var out []string
	for _, name := range names {
		if keep(name) {
			out = append(out, name)
		}
	}
	return out
}

// describe names a package in messages.
func (p *Package) describe() string { return fmt.Sprintf("%s@%s", p.Name, p.Version) }
