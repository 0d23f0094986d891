package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// MaxSize is how many bytes of a package.json are read; no real one comes near.
const MaxSize = 16 << 20

// Manifest is what a package.json says. Keys count in their exact spelling. No
// list holds an empty string, and what is empty is nil.
type Manifest struct {
	Name    string
	Version string

	Dependencies         map[string]string
	OptionalDependencies map[string]string
	PeerDependencies     map[string]string
	OptionalPeers        []string // peers that peerDependenciesMeta calls optional, sorted
	BundleDependencies   []string // dependencies that the archive brings along, sorted

	Engines map[string]string
	OS      []string // as in npm: "linux", "!win32"
	CPU     []string
	Libc    []string

	Bin map[string]string // files by program name, each as [Program] cleans them

	// Layer reports that it declares a layer, well or badly: a bad declaration
	// counts as well, so that adding the package can say what is wrong.
	Layer bool

	// Scripts are those of its scripts that an installation may run, in the
	// order in which they run: preinstall, install, postinstall, prepare.
	Scripts []string
}

// ErrNoObject says that a document is JSON, and no object.
var ErrNoObject = errors.New("it must hold a JSON object")

// Parse reads a package.json, with or without a byte order mark. The error is
// a *json.SyntaxError, whose offset counts from behind the mark, or ErrNoObject.
func Parse(text []byte) (*Manifest, error) { return ParseNamed("", text) }

// ParseNamed is Parse for the package of a name that is known, which counts
// instead of the document's own; "" takes that one.
func ParseNamed(name string, text []byte) (*Manifest, error) {
	var doc object
	err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &doc)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, err
	}
	if err != nil || doc == nil {
		return nil, ErrNoObject
	}
	if name == "" {
		name = stringOf(doc["name"])
	}
	m := &Manifest{
		Name:                 name,
		Version:              stringOf(doc["version"]),
		Dependencies:         texts(doc["dependencies"]),
		OptionalDependencies: texts(doc["optionalDependencies"]),
		PeerDependencies:     texts(doc["peerDependencies"]),
		OptionalPeers:        optionalPeers(doc["peerDependenciesMeta"]),
		Engines:              texts(doc["engines"]),
		OS:                   list(doc["os"]),
		CPU:                  list(doc["cpu"]),
		Libc:                 list(doc["libc"]),
		Bin:                  programs(name, doc["bin"]),
		Layer:                members(doc["dsh"])["bundle"] != nil,
	}
	bundled, ok := doc["bundleDependencies"]
	if !ok {
		bundled = doc["bundledDependencies"]
	}
	m.BundleDependencies = bundledNames(bundled, m.Dependencies)
	m.Scripts = scripts(members(doc["scripts"]))
	return m, nil
}

var installScripts = []string{"preinstall", "install", "postinstall", "prepare"}

// scripts are those of the scripts that an installation may run.
func scripts(all object) []string {
	var out []string
	for _, name := range installScripts {
		if stringOf(all[name]) != "" {
			out = append(out, name)
		}
	}
	return out
}

// object is a JSON object's members, each still text.
type object map[string]json.RawMessage

// members is the members of an object; what is none has none.
func members(raw json.RawMessage) object {
	var o object
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// stringOf is a string; "" for a value of another type.
func stringOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// texts is the members of an object that are strings.
func texts(raw json.RawMessage) map[string]string {
	var out map[string]string
	for key, member := range members(raw) {
		if member[0] != '"' {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = stringOf(member)
	}
	return out
}

// list is the strings of an array; one string is a list of one.
func list(raw json.RawMessage) []string {
	var elements []json.RawMessage
	if len(raw) > 0 && raw[0] == '"' {
		elements = []json.RawMessage{raw}
	} else if len(raw) == 0 || json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	var out []string
	for _, element := range elements {
		if s := stringOf(element); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func optionalPeers(raw json.RawMessage) []string {
	var out []string
	for peer, meta := range members(raw) {
		if peer != "" && truthy(members(meta)["optional"]) {
			out = append(out, peer)
		}
	}
	slices.Sort(out)
	return out
}

// bundledNames reads bundleDependencies: a list, an object's keys, or true for
// all dependencies.
func bundledNames(raw json.RawMessage, dependencies map[string]string) []string {
	var names []string
	switch {
	case string(raw) == "true":
		names = slices.Collect(maps.Keys(dependencies))
	case len(raw) > 0 && raw[0] == '{':
		names = slices.Collect(maps.Keys(members(raw)))
	default:
		names = list(raw)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return nil
	}
	return names
}

// truthy reads a value as JavaScript's if does.
func truthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "false", "null", `""`, "0", "-0":
		return false
	}
	return true
}
