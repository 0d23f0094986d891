package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"dsh/internal/fault"
)

// packageJSON is what the installer reads of the package.json inside a
// package. Fields whose type publishers get wrong are read leniently: a
// package installs when npm would install it.
type packageJSON struct {
	Name                 string          `json:"name"`
	Version              string          `json:"version"`
	Dependencies         json.RawMessage `json:"dependencies"`
	OptionalDependencies json.RawMessage `json:"optionalDependencies"`
	PeerDependencies     json.RawMessage `json:"peerDependencies"`
	PeerDependenciesMeta json.RawMessage `json:"peerDependenciesMeta"`
	BundleDependencies   json.RawMessage `json:"bundleDependencies"`
	BundledDependencies  json.RawMessage `json:"bundledDependencies"`
	OS                   json.RawMessage `json:"os"`
	CPU                  json.RawMessage `json:"cpu"`
	Libc                 json.RawMessage `json:"libc"`
	Bin                  json.RawMessage `json:"bin"`
	Dsh                  json.RawMessage `json:"dsh"`
}

func parsePackageJSON(where string, text []byte) (*packageJSON, error) {
	var p packageJSON
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &p); err != nil {
		return nil, fault.Errorf(fault.Package, "%s: its package.json cannot be read: %w", where, err)
	}
	return &p, nil
}

// resolved is the package that a package.json describes.
func (p *packageJSON) resolved(where string) (*Package, error) {
	if !validName(p.Name) {
		return nil, fault.Errorf(fault.Package, "%s: %q in its package.json is no package name", where, p.Name)
	}
	pkg := &Package{
		Name:         p.Name,
		Version:      p.Version,
		Dependencies: stringMap(p.Dependencies),
		Optional:     stringMap(p.OptionalDependencies),
		Peers:        stringMap(p.PeerDependencies),
		OS:           stringList(p.OS),
		CPU:          stringList(p.CPU),
		Libc:         stringList(p.Libc),
		Bin:          programs(p.Name, p.Bin),
	}
	if pkg.Version == "" {
		pkg.Version = "0.0.0"
	}
	var meta map[string]struct{ Optional bool }
	if json.Unmarshal(p.PeerDependenciesMeta, &meta) == nil {
		for name, m := range meta {
			if m.Optional {
				pkg.OptionalPeers = append(pkg.OptionalPeers, name)
			}
		}
		slices.Sort(pkg.OptionalPeers)
	}
	for _, raw := range []json.RawMessage{p.BundleDependencies, p.BundledDependencies} {
		var all bool
		if json.Unmarshal(raw, &all) == nil && all {
			pkg.Bundled = slices.Sorted(maps.Keys(pkg.Dependencies))
		} else if names := stringList(raw); len(names) > 0 {
			pkg.Bundled = slices.Sorted(slices.Values(names))
		}
	}
	return pkg, nil
}

// isBundle reports whether a package declares a layer, well or badly: a bad
// declaration is listed as well, so that composing can say what is wrong.
func (p *packageJSON) isBundle() bool {
	var dsh struct {
		Bundle *struct{ Patch json.RawMessage }
	}
	return json.Unmarshal(p.Dsh, &dsh) == nil && dsh.Bundle != nil && dsh.Bundle.Patch != nil
}

// stringMap reads the string members of an object.
func stringMap(raw json.RawMessage) map[string]string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	values := make(map[string]string, len(members))
	for name, member := range members {
		var s string
		if json.Unmarshal(member, &s) == nil && validName(name) {
			values[name] = anyVersion(s)
		}
	}
	return values
}

// stringList reads a list of strings, or one string as a list of one.
func stringList(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil
	}
	return list
}

// programs reads the bin field: a map, or one file under the package's name.
func programs(name string, raw json.RawMessage) map[string]string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return map[string]string{path.Base(name): one}
	}
	many := map[string]string{}
	if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	for program, target := range many {
		if program == "" || target == "" {
			delete(many, program)
		}
	}
	return many
}

// describe names a package in messages.
func (p *Package) describe() string { return fmt.Sprintf("%s@%s", p.Name, p.Version) }
