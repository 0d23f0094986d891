package staging

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hooked is an FS whose every call first asks a hook, which may fail it, block
// it, change the disk beneath it or panic. The path is the one that the call
// changes, or looks at.
type hooked struct {
	FS
	before func(op, path string) error
}

func (h hooked) Lstat(path string) (fs.FileInfo, error) {
	if err := h.before("Lstat", path); err != nil {
		return nil, err
	}
	return h.FS.Lstat(path)
}

func (h hooked) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := h.before("ReadDir", path); err != nil {
		return nil, err
	}
	return h.FS.ReadDir(path)
}

func (h hooked) Readlink(path string) (string, error) {
	if err := h.before("Readlink", path); err != nil {
		return "", err
	}
	return h.FS.Readlink(path)
}

func (h hooked) RealPath(path string) (string, error) {
	if err := h.before("RealPath", path); err != nil {
		return "", err
	}
	return h.FS.RealPath(path)
}

func (h hooked) Open(path string) (File, error) {
	if err := h.before("Open", path); err != nil {
		return nil, err
	}
	f, err := h.FS.Open(path)
	if err != nil {
		return nil, err
	}
	return hookedFile{f, path, h}, nil
}

func (h hooked) Create(path string, perm fs.FileMode) (File, error) {
	if err := h.before("Create", path); err != nil {
		return nil, err
	}
	f, err := h.FS.Create(path, perm)
	if err != nil {
		return nil, err
	}
	return hookedFile{f, path, h}, nil
}

func (h hooked) Mkdir(path string, perm fs.FileMode) error {
	if err := h.before("Mkdir", path); err != nil {
		return err
	}
	return h.FS.Mkdir(path, perm)
}

func (h hooked) Symlink(target, path string) error {
	if err := h.before("Symlink", path); err != nil {
		return err
	}
	return h.FS.Symlink(target, path)
}

func (h hooked) Link(oldpath, newpath string) error {
	if err := h.before("Link", newpath); err != nil {
		return err
	}
	return h.FS.Link(oldpath, newpath)
}

func (h hooked) Chmod(path string, perm fs.FileMode) error {
	if err := h.before("Chmod", path); err != nil {
		return err
	}
	return h.FS.Chmod(path, perm)
}

func (h hooked) Rename(oldpath, newpath string) error {
	if err := h.before("Rename", newpath); err != nil {
		return err
	}
	return h.FS.Rename(oldpath, newpath)
}

func (h hooked) RenameNew(oldpath, newpath string) error {
	if err := h.before("RenameNew", newpath); err != nil {
		return err
	}
	return h.FS.RenameNew(oldpath, newpath)
}

func (h hooked) Exchange(a, b string) error {
	if err := h.before("Exchange", b); err != nil {
		return err
	}
	return h.FS.Exchange(a, b)
}

func (h hooked) Remove(path string) error {
	if err := h.before("Remove", path); err != nil {
		return err
	}
	return h.FS.Remove(path)
}

func (h hooked) RemoveAll(path string) error {
	if err := h.before("RemoveAll", path); err != nil {
		return err
	}
	return h.FS.RemoveAll(path)
}

func (h hooked) SyncDir(path string) error {
	if err := h.before("SyncDir", path); err != nil {
		return err
	}
	return h.FS.SyncDir(path)
}

func (h hooked) TryLock(path string, record []byte) (func() error, error) {
	if err := h.before("TryLock", path); err != nil {
		return nil, err
	}
	return h.FS.TryLock(path, record)
}

func (h hooked) TryRLock(path string, record []byte) (func() error, error) {
	if err := h.before("TryRLock", path); err != nil {
		return nil, err
	}
	return h.FS.TryRLock(path, record)
}

func (h hooked) Identity(path string) (string, error) {
	if err := h.before("Identity", path); err != nil {
		return "", err
	}
	return h.FS.Identity(path)
}

func (h hooked) IsMount(path string) (bool, error) {
	if err := h.before("IsMount", path); err != nil {
		return false, err
	}
	return h.FS.IsMount(path)
}

// noExchange is an FS that cannot exchange two paths.
type noExchange struct{ FS }

func (noExchange) Exchange(a, b string) error { return errors.ErrUnsupported }

// poor is an FS that cannot do what only some filesystems can: exchange two
// paths, rename without replacing, and link.
type poor struct{ FS }

func (poor) Exchange(a, b string) error { return errors.ErrUnsupported }

func (p poor) RenameNew(oldpath, newpath string) error { return renameToFree(p, oldpath, newpath) }

func (poor) Link(oldpath, newpath string) error {
	return &os.LinkError{Op: "link", Old: oldpath, New: newpath, Err: syscall.EPERM}
}

type hookedFile struct {
	File
	path string
	h    hooked
}

func (f hookedFile) Write(p []byte) (int, error) {
	if err := f.h.before("Write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f hookedFile) Sync() error {
	if err := f.h.before("Sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f hookedFile) Close() error {
	// The file is closed in any case: a failing close(2) closes too.
	hook := f.h.before("Close", f.path)
	if err := f.File.Close(); err != nil {
		return err
	}
	return hook
}
