package pkgpath

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Path is either of the two kinds.
type Path interface {
	// String is the path with slashes, for people and messages.
	String() string
	// Native is the path in this system's spelling, relative to the root of the
	// package, made component by component: nothing is cleaned, so that .. behind
	// a link means what it means to the file system. A component that this system
	// takes for more than one name is a [*NotPortableError].
	Native() (string, error)
	components() []string
}

// PackagePath is where a file or directory lives inside of a package. The zero
// value is the root.
type PackagePath struct {
	names string // joined by slashes; "" is the root
}

// Root is the package itself.
func Root() PackagePath { return PackagePath{} }

// Manifest is where the manifest of an agent plugin lives.
func Manifest() PackagePath { return PackagePath{"plugin.json"} }

// Skills is the directory of an agent plugin's skills.
func Skills() PackagePath { return PackagePath{"skills"} }

// MCP is where the configuration of MCP servers lives.
func MCP() PackagePath { return PackagePath{"mcp.json"} }

// Child is the place of an entry of the directory p, by the name that a listing
// has. What is no name of an entry is a [*NotEntryError].
func (p PackagePath) Child(entry string) (PackagePath, error) {
	if entry == "" || entry == "." || entry == ".." || strings.ContainsAny(entry, "/\x00") {
		return PackagePath{}, &NotEntryError{entry}
	}
	if p.names == "" {
		return PackagePath{entry}, nil
	}
	return PackagePath{p.names + "/" + entry}, nil
}

// Base is the last component, "." of the root.
func (p PackagePath) Base() string {
	if p.names == "" {
		return "."
	}
	return path.Base(p.names)
}

// String is the path with slashes, "." for the root.
func (p PackagePath) String() string {
	if p.names == "" {
		return "."
	}
	return p.names
}

// Native is the path in this system's spelling, see [Path].
func (p PackagePath) Native() (string, error) { return native(p) }

func (p PackagePath) components() []string {
	if p.names == "" {
		return nil
	}
	return strings.Split(p.names, "/")
}

// RelativePath is a path that an author wrote. The zero value is the root.
type RelativePath struct {
	text string // as written, "" for ./
}

// Parse reads a path. It has to begin with ./ ([*MissingDotError]), to stay inside
// when .. and . are resolved from left to right ([*EscapesError]), and to mean the
// same on every system ([*NotPortableError]). Slashes may repeat; ./ alone is the
// root.
func Parse(text string) (RelativePath, error) {
	if !strings.HasPrefix(text, "./") {
		return RelativePath{}, &MissingDotError{text}
	}
	depth := 0
	for component := range strings.SplitSeq(text, "/") {
		if why := notPortable(component); why != "" {
			return RelativePath{}, &NotPortableError{text, why}
		}
		switch component {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return RelativePath{}, &EscapesError{text}
		}
	}
	return RelativePath{text}, nil
}

// notPortable says why a component is one on some systems only, "" if it is
// everywhere.
func notPortable(component string) string {
	switch {
	case strings.Contains(component, `\`):
		return `a \ separates directories on Windows; write /`
	case strings.Contains(component, "\x00"):
		return "no system takes a NUL in a path"
	case len(component) >= 2 && component[1] == ':' && isLetter(component[0]):
		return "it names a drive on Windows"
	}
	return ""
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// String is the path exactly as it was written.
func (p RelativePath) String() string {
	if p.text == "" {
		return "./"
	}
	return p.text
}

// Resolve is the path with slashes and without . and .., "." for the root. Where a
// component before .. is a link, the file system says something else.
func (p RelativePath) Resolve() string { return path.Clean(p.String()) }

// Native is the path in this system's spelling, see [Path].
func (p RelativePath) Native() (string, error) { return native(p) }

func (p RelativePath) components() []string {
	return slices.DeleteFunc(strings.Split(p.text, "/"), func(c string) bool { return c == "" || c == "." })
}

// native joins components, each of which this system must take for one name.
func native(p Path) (string, error) {
	list := slices.Clone(p.components())
	for i, component := range list {
		if component == ".." {
			continue
		}
		local, err := filepath.Localize(component)
		if err != nil {
			return "", &NotPortableError{p.String(), fmt.Sprintf("this system takes %q for no name of a file", component)}
		}
		list[i] = local
	}
	if len(list) == 0 {
		return ".", nil
	}
	return strings.Join(list, string(filepath.Separator)), nil
}

// MissingDotError says that a path does not begin with ./ .
type MissingDotError struct{ Path string }

func (e *MissingDotError) Error() string {
	return fmt.Sprintf("path %q does not begin with ./", e.Path)
}

// EscapesError says that a path leads above the root by its text.
type EscapesError struct{ Path string }

func (e *EscapesError) Error() string {
	return fmt.Sprintf("path %q leads out of the package", e.Path)
}

// NotPortableError says that a path means something else on some system.
type NotPortableError struct{ Path, Why string }

func (e *NotPortableError) Error() string {
	return fmt.Sprintf("path %q is not portable: %s", e.Path, e.Why)
}

// NotEntryError says that no directory has an entry of this name.
type NotEntryError struct{ Name string }

func (e *NotEntryError) Error() string {
	return fmt.Sprintf("%q is no name of a directory's entry", e.Name)
}
