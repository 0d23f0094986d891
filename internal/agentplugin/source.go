package agentplugin

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/pkgpath"
)

// Kind is what is at a place, links followed.
type Kind uint8

const (
	File Kind = iota + 1 // a regular file
	Dir
	Other // a device, a pipe, a socket
)

// Source is what holds a package. Every question is about the place that a path
// leads to, links followed; one that leads out of the package is an [*EscapeError],
// and nothing being there is fs.ErrNotExist. That answers of two questions belong
// together is not promised: the package may change between them.
type Source interface {
	Kind(p pkgpath.Path) (Kind, error)
	// Read is the content of a regular file of at most limit bytes.
	Read(p pkgpath.PackagePath, limit int64) ([]byte, error)
	// List is the names in a directory, exactly as they are and sorted.
	List(p pkgpath.PackagePath) ([]string, error)
}

// EscapeError says that a path leads out of the package over a link. Its text is
// without the path, which the message around it has.
type EscapeError struct{ Path string }

func (e *EscapeError) Error() string {
	return "it leads out of the package over a link"
}

// Class is that of what is refused for safety.
func (e *EscapeError) Class() fault.Class { return fault.Policy }

// errTooLarge is what Read says of a file above its limit.
var errTooLarge = errors.New("it is too large")

// errNotAFile is what Read says of what is no regular file.
var errNotAFile = errors.New("it is no regular file")

// memory is files by path. It knows no links.
type memory struct {
	files map[string][]byte
	dirs  map[string][]string // names in a directory; "." is the root
}

// Memory is a package in memory, from its files by path, with slashes. A path that
// ends with a slash is a directory. What is no clean relative path, and what is
// both file and directory, is an error.
func Memory(files map[string][]byte) (Source, error) {
	m := &memory{map[string][]byte{}, map[string][]string{".": nil}}
	seen := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at, isDir := strings.CutSuffix(name, "/")
		if !fs.ValidPath(at) || at == "." || strings.Contains(at, "\x00") {
			return nil, fault.Errorf(fault.Package, "%q is no path in a package", name)
		}
		if isDir {
			if _, known := m.dirs[at]; !known {
				m.dirs[at] = nil
			}
		} else {
			m.files[at] = files[name]
		}
		for ; !seen[at]; at = path.Dir(at) {
			seen[at] = true
			dir := path.Dir(at)
			m.dirs[dir] = append(m.dirs[dir], path.Base(at))
		}
	}
	for dir, names := range m.dirs {
		if _, both := m.files[dir]; both {
			return nil, fault.Errorf(fault.Package, "%q is a file and a directory", dir)
		}
		slices.Sort(names)
	}
	return m, nil
}

// at is the place that a path leads to. As on disk every .. needs a directory.
func (m *memory) at(p pkgpath.Path) (string, error) {
	at := "."
	for component := range strings.SplitSeq(p.String(), "/") {
		if _, isDir := m.dirs[at]; !isDir {
			return "", fs.ErrNotExist
		}
		at = path.Join(at, component)
	}
	return at, nil
}

func (m *memory) Kind(p pkgpath.Path) (Kind, error) {
	at, err := m.at(p)
	if err != nil {
		return 0, err
	}
	if _, ok := m.files[at]; ok {
		return File, nil
	}
	if _, ok := m.dirs[at]; ok {
		return Dir, nil
	}
	return 0, fs.ErrNotExist
}

func (m *memory) Read(p pkgpath.PackagePath, limit int64) ([]byte, error) {
	kind, err := m.Kind(p)
	switch {
	case err != nil:
		return nil, err
	case kind != File:
		return nil, errNotAFile
	case int64(len(m.files[p.String()])) > limit:
		return nil, errTooLarge
	}
	return slices.Clone(m.files[p.String()]), nil
}

func (m *memory) List(p pkgpath.PackagePath) ([]string, error) {
	names, ok := m.dirs[p.String()]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(names), nil
}
