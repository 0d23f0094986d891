package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Manifest is the package.json of a profile: the text as the user wrote it and
// what dsh reads from it. Edits change only the bytes they must, so formatting,
// key order, unknown fields and the spelling of numbers stay.
type Manifest struct {
	path    string
	text    []byte // the file without its byte-order mark; hujson's values alias it
	root    hujson.Value
	bundles []string
	off     []disabled
	reload  PatchReload
	deps    map[DependencyKind][]Dependency
}

// Dependency is one entry of a dependency section.
type Dependency struct {
	Name string // the key: the folder in node_modules
	Spec string // the value as written
}

// DependencyKind is the name of a dependency section of package.json.
type DependencyKind string

// The sections that an installer reads. A package is in one of them at a time.
const (
	Dependencies         DependencyKind = "dependencies"
	DevDependencies      DependencyKind = "devDependencies"
	OptionalDependencies DependencyKind = "optionalDependencies"
)

var dependencyKinds = []DependencyKind{Dependencies, DevDependencies, OptionalDependencies}

// PatchReload says whether a running profile follows changes of its patch
// files.
type PatchReload uint8

// The policies of dsh.profile.patchReload.
const (
	ReloadUnset   PatchReload = iota // not written down: the hmr row decides
	ReloadLive                       // "live"
	ReloadStartup                    // "startup": patches are read once
)

// String is the policy as package.json spells it; "" when it is unset.
func (p PatchReload) String() string {
	switch p {
	case ReloadLive:
		return "live"
	case ReloadStartup:
		return "startup"
	default:
		return ""
	}
}

// ManifestError is a profile manifest that cannot be used as it is written.
type ManifestError struct {
	Path         string
	Line, Column int // 1-based, in characters
	Problem      string
}

func (e *ManifestError) Error() string {
	return fmt.Sprintf("profile manifest %s:%d:%d: %s", e.Path, e.Line, e.Column, e.Problem)
}

// ParseManifest reads the text of a package.json; path is for messages. A
// byte-order mark is dropped. Comments and trailing commas are refused, as npm
// and pnpm refuse them. Sections that are missing or null count as empty.
func ParseManifest(path string, text []byte) (*Manifest, error) {
	text = bytes.TrimPrefix(bytes.Clone(text), []byte("\ufeff"))
	m := &Manifest{path: path, text: text, deps: map[DependencyKind][]Dependency{}}

	// encoding/json knows the strict grammar and limits the depth; what it
	// accepts hujson reads as standard JSON, with the place of every value.
	var ignored json.RawMessage
	if err := json.Unmarshal(text, &ignored); err != nil {
		return nil, m.syntaxError(err)
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, m.errorAt(len(text), err.Error())
	}
	if root.Value.Kind() != '{' {
		return nil, fmt.Errorf("profile manifest %s must hold a JSON object", path)
	}
	m.root = root
	if err := m.read(); err != nil {
		return nil, err
	}
	return m, nil
}

// Path is the file that the manifest was read from.
func (m *Manifest) Path() string { return m.path }

// Bytes is the text of the manifest with all edits; without edits it is the
// text that was parsed, less its byte-order mark.
func (m *Manifest) Bytes() []byte { return bytes.Clone(m.text) }

// Bundles is dsh.profile.bundles in order, duplicates included.
func (m *Manifest) Bundles() []string { return append([]string(nil), m.bundles...) }

// PatchReload is dsh.profile.patchReload.
func (m *Manifest) PatchReload() PatchReload { return m.reload }

// Dependencies is one dependency section in the order of the file.
func (m *Manifest) Dependencies(kind DependencyKind) []Dependency {
	return append([]Dependency(nil), m.deps[kind]...)
}

// Dependency finds the spec of name in any section, in the order dependencies,
// devDependencies, optionalDependencies.
func (m *Manifest) Dependency(name string) (spec string, kind DependencyKind, ok bool) {
	for _, kind := range dependencyKinds {
		for _, d := range m.deps[kind] {
			if d.Name == name {
				return d.Spec, kind, true
			}
		}
	}
	return "", "", false
}

// read takes the fields that dsh knows out of the tree.
func (m *Manifest) read() error {
	for _, kind := range dependencyKinds {
		section, err := m.object(m.root, "", string(kind))
		if err != nil {
			return err
		}
		for _, member := range members(section) {
			name, spec := literal(member.Name), literal(member.Value)
			if member.Value.Value.Kind() != '"' {
				return m.errorAt(member.Value.StartOffset, fmt.Sprintf("the spec of %s in %s must be a string", quote(name), kind))
			}
			m.deps[kind] = setDependency(m.deps[kind], Dependency{name, spec})
		}
	}
	dsh, err := m.object(m.root, "", "dsh")
	if err != nil {
		return err
	}
	profile, err := m.object(dsh, "dsh.", "profile")
	if err != nil {
		return err
	}
	if value, ok := find(profile, "bundles"); ok {
		list, isArray := value.Value.(*hujson.Array)
		if !isArray {
			return m.errorAt(value.StartOffset, "dsh.profile.bundles must be a list of package names")
		}
		for _, element := range list.Elements {
			if element.Value.Kind() != '"' {
				return m.errorAt(element.StartOffset, "dsh.profile.bundles must be a list of package names")
			}
			m.bundles = append(m.bundles, literal(element))
		}
	}
	if err := m.readDisabled(profile); err != nil {
		return err
	}
	if value, ok := find(profile, "patchReload"); ok {
		switch literal(value) {
		case "live":
			m.reload = ReloadLive
		case "startup":
			m.reload = ReloadStartup
		default:
			return m.errorAt(value.StartOffset, `dsh.profile.patchReload must be "live" or "startup"`)
		}
	}
	return nil
}

// setDependency keeps one entry a name: a repeated key of a JSON object keeps
// its first place and takes its last value.
func setDependency(list []Dependency, d Dependency) []Dependency {
	for i := range list {
		if list[i].Name == d.Name {
			list[i].Spec = d.Spec
			return list
		}
	}
	return append(list, d)
}

// object is the value of key in parent as an object. Missing and null are the
// zero Value, which has no members.
func (m *Manifest) object(parent hujson.Value, prefix, key string) (hujson.Value, error) {
	value, ok := find(parent, key)
	if !ok {
		return hujson.Value{}, nil
	}
	if _, isObject := value.Value.(*hujson.Object); !isObject {
		return hujson.Value{}, m.errorAt(value.StartOffset, prefix+key+" must be an object")
	}
	return value, nil
}

// members is the members of an object; none of anything else.
func members(v hujson.Value) []hujson.ObjectMember {
	if object, ok := v.Value.(*hujson.Object); ok {
		return object.Members
	}
	return nil
}

// find is the value of key in object. The last of equal keys counts, as in
// JSON.parse, and null counts as missing.
func find(object hujson.Value, key string) (hujson.Value, bool) {
	i := indexOf(members(object), key)
	if i < 0 {
		return hujson.Value{}, false
	}
	value := members(object)[i].Value
	return value, value.Value.Kind() != 'n'
}

func indexOf(list []hujson.ObjectMember, key string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if literal(list[i].Name) == key {
			return i
		}
	}
	return -1
}

func count(list []hujson.ObjectMember, key string) int {
	n := 0
	for _, member := range list {
		if literal(member.Name) == key {
			n++
		}
	}
	return n
}

// literal is the text of a string, or the spelling of another scalar.
func literal(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok {
		return l.String()
	}
	return ""
}

func (m *Manifest) errorAt(offset int, problem string) *ManifestError {
	before := m.text[:min(offset, len(m.text))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return &ManifestError{
		Path:    m.path,
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  utf8.RuneCount(before[lineStart:]) + 1,
		Problem: problem,
	}
}

// expectations turns what encoding/json was looking for into what a person
// should write there.
var expectations = []struct{ context, expected string }{
	{"looking for beginning of object key string", "a key in double quotes"},
	{"looking for beginning of value", "a value"},
	{"after object key:value pair", `"," or "}"`},
	{"after object key", `":"`},
	{"after array element", `"," or "]"`},
	{"after top-level value", "the end of the file"},
}

func (m *Manifest) syntaxError(err error) error {
	syntax, ok := err.(*json.SyntaxError)
	if !ok {
		return fmt.Errorf("failed to read profile manifest %s: %w", m.path, err)
	}
	if len(bytes.TrimSpace(m.text)) == 0 {
		return m.errorAt(0, "the file is empty, expected a JSON object")
	}
	if strings.Contains(syntax.Error(), "unexpected end") || int(syntax.Offset) > len(m.text) {
		return m.errorAt(len(m.text), "the file ends too early, a bracket or quote is not closed")
	}
	offset := max(int(syntax.Offset)-1, 0) // the offset counts the offending byte
	found, _ := utf8.DecodeRune(m.text[offset:])
	before := bytes.TrimRight(m.text[:offset], " \t\r\n")
	switch {
	case found == '/':
		return m.errorAt(offset, "comments are not allowed here")
	case (found == '}' || found == ']') && bytes.HasSuffix(before, []byte(",")):
		return m.errorAt(len(before)-1, fmt.Sprintf(`a comma is not allowed before "%c"`, found))
	}
	if strings.Contains(syntax.Error(), "max depth") {
		return m.errorAt(offset, "brackets are nested too deep")
	}
	for _, e := range expectations {
		if strings.Contains(syntax.Error(), e.context) {
			return m.errorAt(offset, fmt.Sprintf("expected %s, found %q", e.expected, found))
		}
	}
	return m.errorAt(offset, syntax.Error())
}
