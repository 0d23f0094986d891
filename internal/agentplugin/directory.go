package agentplugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/pkgpath"
)

// Directory is a package on disk. Everything is opened relative to the open
// directory, in one step with following the links on the way, so that exchanging
// a part of the path for a link to outside gains nothing, whenever it is done. A link with an
// absolute target, or over the root's own parent, is followed where it ends inside.
type Directory struct {
	root *os.Root
	path string
}

// OpenDirectory opens a package. The directory may be a link itself.
func OpenDirectory(dir string) (*Directory, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the package %s: %w", dir, err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("opening the package %s: %w", dir, withoutPath(err))
	}
	root, err := os.OpenRoot(resolved)
	if err != nil {
		return nil, fmt.Errorf("opening the package %s: %w", dir, withoutPath(err))
	}
	return &Directory{root, resolved}, nil
}

// Path is the absolute directory, free of links: PLUGIN_ROOT of section 9.1.
func (d *Directory) Path() string { return d.path }

// Close gives the open directory back.
func (d *Directory) Close() error { return d.root.Close() }

// Kind answers as [Source] says.
func (d *Directory) Kind(p pkgpath.Path) (Kind, error) {
	var info fs.FileInfo
	err := d.reach(p, func(name string) (err error) {
		info, err = d.root.Stat(name)
		return err
	})
	if err != nil {
		return 0, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return File, nil
	case mode.IsDir():
		return Dir, nil
	}
	return Other, nil
}

// Read answers as [Source] says.
func (d *Directory) Read(p pkgpath.PackagePath, limit int64) (text []byte, err error) {
	// Opening a pipe would wait for somebody to write.
	if kind, err := d.Kind(p); err != nil {
		return nil, err
	} else if kind != File {
		return nil, errNotAFile
	}
	err = d.open(p, func(f *os.File, info fs.FileInfo) error {
		if !info.Mode().IsRegular() {
			return errNotAFile
		}
		text, err = io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(text)) > limit {
			err = errTooLarge
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return text, nil
}

// List answers as [Source] says.
func (d *Directory) List(p pkgpath.PackagePath) (names []string, err error) {
	err = d.open(p, func(f *os.File, _ fs.FileInfo) error {
		names, err = f.Readdirnames(-1)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (d *Directory) open(p pkgpath.PackagePath, use func(*os.File, fs.FileInfo) error) (err error) {
	var f *os.File
	err = d.reach(p, func(name string) (err error) {
		f, err = d.root.Open(name)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return withoutPath(err)
	}
	return withoutPath(use(f, info))
}

// reach calls f with the name of a path. os.Root refuses every link that leaves
// on its way, also one that comes back; where such a link ends inside, f is called
// with the name of that end, still beneath the root.
func (d *Directory) reach(p pkgpath.Path, f func(name string) error) error {
	name, err := p.Native()
	if err != nil {
		return err
	}
	err = f(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return withoutPath(err)
	}
	// Not filepath.Join, which would take .. for the parent of a link.
	end, endErr := filepath.EvalSymlinks(d.path + string(filepath.Separator) + name)
	if endErr != nil {
		if errors.Is(endErr, fs.ErrNotExist) {
			return &EscapeError{p.String()} // to somewhere where nothing is
		}
		return withoutPath(err)
	}
	inside, err := filepath.Rel(d.path, end)
	if err != nil || !filepath.IsLocal(inside) {
		return &EscapeError{p.String()}
	}
	return withoutPath(f(inside))
}

// withoutPath is err without the path, which the message around it has.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
