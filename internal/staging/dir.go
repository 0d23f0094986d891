package staging

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Dir is a directory held open, for making many files below it quickly: in
// place of a stage or of what [TempDir] made, where nobody else writes. Names
// are slash-separated paths below it. They are taken as they are, links in them
// are followed, and nothing is synced: callers check names, and make all that is
// below. On Unix the calls are relative to the open directory, so that the
// system does not walk the path of the directory for every file.
//
// A Dir is for several goroutines, but for Close.
type Dir struct {
	path   string
	handle dirHandle
	last   atomic.Pointer[pair] // in which files were linked from here
}

// OpenDir opens the directory at path.
func OpenDir(path string) (*Dir, error) {
	h, err := openHandle(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{path: path, handle: h}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.handle.close() }

// Mkdir makes a directory; one that is there is fine.
func (d *Dir) Mkdir(rel string) error {
	if err := d.mkdir(rel); err != nil && !errors.Is(err, fs.ErrExist) {
		return d.fail("mkdir", rel, err)
	}
	return nil
}

// Create makes a new file for writing; an existing one is fs.ErrExist.
func (d *Dir) Create(rel string, perm fs.FileMode) (io.WriteCloser, error) {
	f, err := d.create(rel, perm)
	if err != nil {
		return nil, d.fail("create", rel, err)
	}
	return f, nil
}

// Open opens a file for reading.
func (d *Dir) Open(rel string) (io.ReadCloser, error) {
	f, err := d.open(rel)
	if err != nil {
		return nil, d.fail("open", rel, err)
	}
	return f, nil
}

// WriteFile makes a new file with a content; an existing one is fs.ErrExist.
func (d *Dir) WriteFile(rel string, data []byte, perm fs.FileMode) error {
	if err := d.write(rel, data, perm); err != nil {
		return d.fail("write", rel, err)
	}
	return nil
}

// Chmod sets the permissions of a file.
func (d *Dir) Chmod(rel string, perm fs.FileMode) error {
	return os.Chmod(d.below(rel), perm)
}

// Symlink makes a symbolic link with a slash-separated target, which is not looked
// at. It is errors.ErrUnsupported where the system does not let this user make
// one.
func (d *Dir) Symlink(target, rel string) error {
	if err := d.symlink(target, rel); err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: d.below(rel), Err: err}
	}
	return nil
}

// CopyTo makes a copy of a file in another directory. perm, before the umask,
// is for the copy.
func (d *Dir) CopyTo(rel string, dst *Dir, dstRel string, perm fs.FileMode) error {
	in, err := d.open(rel)
	if err != nil {
		return d.fail("open", rel, err)
	}
	defer in.Close() // it was only read
	out, err := dst.create(dstRel, perm)
	if err != nil {
		return dst.fail("create", dstRel, err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// LinkTo gives another directory the file rel under the name dstRel, in the
// cheapest way that the filesystems offer: a copy that shares its blocks with
// the original, a hard link, a copy. perm, before the umask, is for what is no
// hard link: that has the permissions of the original, for it is the original.
//
// What cannot be between two filesystems is tried once.
func (d *Dir) LinkTo(rel string, dst *Dir, dstRel string, perm fs.FileMode) error {
	able := between(d, dst)
	if !able.noClone.Load() {
		err := d.clone(rel, dst, dstRel, perm)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		able.noClone.Store(true)
	}
	if !able.noLink.Load() {
		err := d.link(rel, dst, dstRel)
		if err == nil {
			return nil
		}
		if !cannotLink(err) {
			return &os.LinkError{Op: "link", Old: d.below(rel), New: dst.below(dstRel), Err: err}
		}
		able.noLink.Store(neverLinks(err))
	}
	return d.CopyTo(rel, dst, dstRel, perm)
}

// pair is what was learned of two filesystems, of which the second is dst.
type pair struct {
	dst             filesystem
	noClone, noLink atomic.Bool
}

var learned sync.Map // by the filesystems -> *pair

func between(src, dst *Dir) *pair {
	if p := src.last.Load(); p != nil && p.dst == dst.handle.filesystem {
		return p
	}
	key := [2]filesystem{src.handle.filesystem, dst.handle.filesystem}
	known, ok := learned.Load(key)
	if !ok {
		known, _ = learned.LoadOrStore(key, &pair{dst: key[1]})
	}
	p := known.(*pair)
	src.last.Store(p)
	return p
}

// clone is errors.ErrUnsupported where the filesystem does not know the call,
// and then leaves nothing.
func (d *Dir) clone(rel string, dst *Dir, dstRel string, perm fs.FileMode) error {
	in, err := d.open(rel)
	if err != nil {
		return d.fail("open", rel, err)
	}
	defer in.Close() // it was only read
	out, err := dst.create(dstRel, perm)
	if err != nil {
		return dst.fail("create", dstRel, err)
	}
	err = shareBlocks(out, in)
	if err = errors.Join(err, out.Close()); err == nil {
		return nil
	}
	if cannotShare(err) {
		if err := os.Remove(dst.below(dstRel)); err != nil {
			return err
		}
		return errors.ErrUnsupported
	}
	return dst.fail("clone", dstRel, err)
}

func (d *Dir) below(rel string) string { return filepath.Join(d.path, filepath.FromSlash(rel)) }

func (d *Dir) fail(op, rel string, err error) error {
	return &fs.PathError{Op: op, Path: d.below(rel), Err: err}
}
