package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"dsh/internal/fault"
)

// packageJSON is the package.json inside a package, by key in its exact
// spelling. Fields whose type publishers get wrong are read leniently: a
// package installs when npm would install it.
type packageJSON map[string]json.RawMessage

func parsePackageJSON(where string, text []byte) (packageJSON, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var p packageJSON
	err := json.Unmarshal(text, &p)
	if err == nil {
		return p, nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return nil, fault.Errorf(fault.Package, "%s/package.json:%d: %w", where, line, err)
	}
	return nil, fault.Errorf(fault.Package, "%s/package.json must hold a JSON object", where)
}

// noVersion stands for the version of a package that names none.
const noVersion = "0.0.0"

// text is a field that is a string, "" when it is none.
func (p packageJSON) text(key string) string {
	var s string
	_ = json.Unmarshal(p[key], &s)
	return s
}

// resolved is the package that a package.json describes.
func (p packageJSON) resolved(where string) (*Package, error) {
	name := p.text("name")
	if !validName(name) {
		return nil, fault.Errorf(fault.Package, "%s: %q in its package.json is no package name", where, name)
	}
	pkg := &Package{
		Name:         name,
		Version:      p.text("version"),
		Dependencies: stringMap(p["dependencies"]),
		Optional:     stringMap(p["optionalDependencies"]),
		Peers:        stringMap(p["peerDependencies"]),
		OS:           stringList(p["os"]),
		CPU:          stringList(p["cpu"]),
		Libc:         stringList(p["libc"]),
		Bin:          programs(name, p["bin"]),
	}
	if pkg.Version == "" {
		pkg.Version = noVersion
	}
	var meta map[string]struct{ Optional bool }
	if json.Unmarshal(p["peerDependenciesMeta"], &meta) == nil {
		for name, m := range meta {
			if m.Optional {
				pkg.OptionalPeers = append(pkg.OptionalPeers, name)
			}
		}
		slices.Sort(pkg.OptionalPeers)
	}
	for _, key := range []string{"bundleDependencies", "bundledDependencies"} {
		var all bool
		if json.Unmarshal(p[key], &all) == nil && all {
			pkg.Bundled = slices.Sorted(maps.Keys(pkg.Dependencies))
		} else if names := stringList(p[key]); len(names) > 0 {
			pkg.Bundled = slices.Sorted(slices.Values(names))
		}
	}
	return pkg, nil
}

// isBundle reports whether a package declares a layer, well or badly: a bad
// declaration counts as well, so that adding it can say what is wrong.
func (p packageJSON) isBundle() bool {
	var dsh map[string]json.RawMessage
	_ = json.Unmarshal(p["dsh"], &dsh)
	return dsh["bundle"] != nil
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
