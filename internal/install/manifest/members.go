package manifest

import (
	"maps"
	"path"
	"slices"

	"dsh/internal/install/manifest/jsonscan"
)

// Member is a member of a package.json that is read here.
type Member uint8

// The members, but for a package's name.
const (
	Version Member = iota
	Dependencies
	OptionalDependencies
	PeerDependencies
	PeerDependenciesMeta
	BundleDependencies
	BundledDependencies
	Engines
	OS
	CPU
	Libc
	Bin
	Layer
	Scripts
	MemberCount int = iota
)

// MemberOf is the member of a key.
func MemberOf(key string) (Member, bool) {
	switch key {
	case "version":
		return Version, true
	case "dependencies":
		return Dependencies, true
	case "optionalDependencies":
		return OptionalDependencies, true
	case "peerDependencies":
		return PeerDependencies, true
	case "peerDependenciesMeta":
		return PeerDependenciesMeta, true
	case "bundleDependencies":
		return BundleDependencies, true
	case "bundledDependencies":
		return BundledDependencies, true
	case "engines":
		return Engines, true
	case "os":
		return OS, true
	case "cpu":
		return CPU, true
	case "libc":
		return Libc, true
	case "bin":
		return Bin, true
	case "dsh":
		return Layer, true
	case "scripts":
		return Scripts, true
	}
	return 0, false
}

// Members are the members of a document, each as JSON text; "" is none. What
// they are read into shares their memory.
type Members [MemberCount]string

// Manifest reads the members of the document of a named package. The error says
// that one of them is no JSON.
func (m *Members) Manifest(name string) (*Manifest, error) {
	r := reader{}
	out := &Manifest{
		Name:                 name,
		Version:              r.text(m[Version]),
		Dependencies:         r.texts(m[Dependencies]),
		OptionalDependencies: r.texts(m[OptionalDependencies]),
		PeerDependencies:     r.texts(m[PeerDependencies]),
		OptionalPeers:        r.optionalPeers(m[PeerDependenciesMeta]),
		Engines:              r.texts(m[Engines]),
		OS:                   r.list(m[OS]),
		CPU:                  r.list(m[CPU]),
		Libc:                 r.list(m[Libc]),
		Bin:                  r.programs(name, m[Bin]),
		Layer:                r.member(m[Layer], "bundle") != "",
		Scripts:              r.scripts(m[Scripts]),
	}
	bundled := m[BundleDependencies]
	if bundled == "" {
		bundled = m[BundledDependencies]
	}
	out.BundleDependencies = r.bundledNames(bundled, out.Dependencies)
	return out, r.err
}

// reader reads values. Its first failure sticks.
type reader struct{ err error }

// members calls f for each member of an object; what is none has none.
func (r *reader) members(raw string, f func(c *jsonscan.Scanner, key string)) {
	if raw == "" {
		return
	}
	c := jsonscan.New(raw)
	c.Members(func(key string) { f(&c, key) })
	if err := c.End(); err != nil && r.err == nil {
		r.err = err
	}
}

// text is a string; "" for a value of another type.
func (r *reader) text(raw string) string {
	if raw == "" {
		return ""
	}
	c := jsonscan.New(raw)
	text := c.Text()
	if err := c.End(); err != nil && r.err == nil {
		r.err = err
	}
	return text
}

// member is one member of an object, "" for none.
func (r *reader) member(raw, name string) (value string) {
	r.members(raw, func(c *jsonscan.Scanner, key string) {
		if key == name {
			value = c.Raw()
		}
	})
	return value
}

// texts is the members of an object that are strings.
func (r *reader) texts(raw string) map[string]string {
	var out map[string]string
	r.members(raw, func(c *jsonscan.Scanner, key string) {
		if c.Peek() != '"' {
			delete(out, key) // of two members with one name the last counts
			return
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = c.Text()
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// list is the strings of an array; one string is a list of one.
func (r *reader) list(raw string) []string {
	if raw == "" {
		return nil
	}
	var out []string
	c := jsonscan.New(raw)
	add := func() {
		if c.Peek() != '"' {
			return
		}
		if s := c.Text(); s != "" {
			out = append(out, s)
		}
	}
	if c.Peek() == '"' {
		add()
	} else {
		c.Elements(add)
	}
	if err := c.End(); err != nil && r.err == nil {
		r.err = err
	}
	return out
}

func (r *reader) optionalPeers(raw string) []string {
	optional := map[string]bool{}
	r.members(raw, func(c *jsonscan.Scanner, peer string) {
		optional[peer] = peer != "" && jsonscan.Truthy(r.member(c.Raw(), "optional"))
	})
	var out []string
	for peer, is := range optional {
		if is {
			out = append(out, peer)
		}
	}
	slices.Sort(out)
	return out
}

// bundledNames reads bundleDependencies: a list, an object's keys, or true for
// all dependencies.
func (r *reader) bundledNames(raw string, dependencies map[string]string) []string {
	var names []string
	switch {
	case raw == "":
		return nil
	case raw == "true":
		names = slices.Collect(maps.Keys(dependencies))
	case raw[0] == '{':
		r.members(raw, func(_ *jsonscan.Scanner, key string) { names = append(names, key) })
	default:
		names = r.list(raw)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return nil
	}
	return names
}

// InstallScripts are the scripts that an installation may run, in their order.
var InstallScripts = [...]string{"preinstall", "install", "postinstall", "prepare"}

// scripts are those of the scripts that an installation may run.
func (r *reader) scripts(raw string) []string {
	all := r.texts(raw)
	var out []string
	for _, name := range InstallScripts {
		if all[name] != "" {
			out = append(out, name)
		}
	}
	return out
}

// programs reads a bin member: a map, one file under the package's own name,
// or a list of files under theirs. Of entries that clean to one name the first
// in the order of the names as they are written counts.
func (r *reader) programs(name, bin string) map[string]string {
	var written map[string]string
	switch {
	case bin == "":
		return nil
	case bin[0] == '"':
		written = map[string]string{name: r.text(bin)}
	case bin[0] == '[':
		written = map[string]string{}
		for _, file := range r.list(bin) {
			written[path.Base(file)] = file
		}
	default:
		written = r.texts(bin)
	}
	var out map[string]string
	for _, key := range slices.Sorted(maps.Keys(written)) {
		program, file, ok := Program(key, written[key])
		if _, taken := out[program]; taken || !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[program] = file
	}
	return out
}
