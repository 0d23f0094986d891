package staging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// FS is every call that this package makes on a filesystem. Tests wrap [OS] to
// make a single call fail, or the process die there.
//
// Paths are absolute or relative to the working directory, as in package os,
// and errors are those of package os.
type FS interface {
	Lstat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Readlink(path string) (string, error)
	// RealPath is path without links, as filepath.EvalSymlinks.
	RealPath(path string) (string, error)
	Open(path string) (File, error)

	// Create makes a new file for writing; an existing one is fs.ErrExist.
	Create(path string, perm fs.FileMode) (File, error)
	Mkdir(path string, perm fs.FileMode) error
	Symlink(target, path string) error
	Link(oldpath, newpath string) error
	Chmod(path string, perm fs.FileMode) error

	Rename(oldpath, newpath string) error
	// RenameNew is Rename that never replaces: fs.ErrExist if newpath is there.
	RenameNew(oldpath, newpath string) error
	// Exchange makes each of two paths the other in one step, or is
	// errors.ErrUnsupported where kernel or filesystem cannot.
	Exchange(a, b string) error
	Remove(path string) error
	// RemoveAll removes a tree, read-only directories included.
	RemoveAll(path string) error
	// SyncDir makes the names in a directory survive a power loss.
	SyncDir(path string) error

	// TryLock takes the lock file at path, making it when needed, and writes
	// record into it. It does not wait: [ErrHeld] when anybody has the lock,
	// this process included.
	TryLock(path string, record []byte) (unlock func() error, err error)
	// TryRLock is TryLock of a lock that any number may have at once, as long as
	// nobody has it by TryLock.
	TryRLock(path string, record []byte) (unlock func() error, err error)
	// Identity names the directory at path itself, not its path: a directory
	// keeps it when renamed, and one made anew has another.
	Identity(path string) (string, error)
	// IsMount says whether another filesystem begins at the directory at path, or
	// another view of the same one: nothing can be renamed into it or out of it,
	// nor it itself.
	IsMount(path string) (bool, error)
	// BootID names the time since the machine was started last; "" where the
	// system cannot tell.
	BootID() string
}

// File is an open file of an [FS].
type File interface {
	io.ReadWriteCloser
	io.ReaderAt
	Sync() error
}

// ErrHeld is what TryLock of an [FS] answers when the lock is taken.
var ErrHeld = errors.New("the lock is held")

// OS is the real filesystem. Its renames and removals try again, for at most two
// seconds, when something holds the file that may let go of it: on Windows a
// virus scanner or an indexer, elsewhere whatever makes it busy.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Lstat(path string) (fs.FileInfo, error)     { return os.Lstat(path) }
func (osFS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (osFS) Readlink(path string) (string, error)       { return os.Readlink(path) }
func (osFS) RealPath(path string) (string, error)       { return filepath.EvalSymlinks(path) }
func (osFS) Mkdir(path string, perm fs.FileMode) error  { return os.Mkdir(path, perm) }
func (osFS) Symlink(target, path string) error          { return os.Symlink(target, path) }
func (osFS) Link(oldpath, newpath string) error         { return os.Link(oldpath, newpath) }
func (osFS) Chmod(path string, perm fs.FileMode) error  { return os.Chmod(path, perm) }
func (osFS) Identity(path string) (string, error)       { return identity(path) }
func (osFS) SyncDir(path string) error                  { return syncDir(path) }
func (osFS) IsMount(path string) (bool, error)          { return isMount(path) }
func (osFS) BootID() string                             { return bootID() }

func (osFS) Exchange(a, b string) error {
	return retry(ephemeral, time.Sleep, func() error { return exchange(a, b) })
}

func (osFS) Open(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // a nil *os.File must not become a non-nil File
	}
	return f, nil
}

func (osFS) Create(path string, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) Rename(oldpath, newpath string) error {
	return retry(ephemeral, time.Sleep, func() error { return os.Rename(oldpath, newpath) })
}

func (o osFS) RenameNew(oldpath, newpath string) error {
	err := renameNoReplace(oldpath, newpath)
	if errors.Is(err, errors.ErrUnsupported) {
		err = renameToFree(o, oldpath, newpath)
	}
	return err
}

// renameToFree is RenameNew where the system has no such call.
func renameToFree(fsys FS, oldpath, newpath string) error {
	info, err := fsys.Lstat(oldpath)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		// A hard link is refused where something stands, by every system.
		err := fsys.Link(oldpath, newpath)
		if err == nil {
			return fsys.Remove(oldpath)
		}
		if !cannotLink(err) {
			return err
		}
	}
	// What remains is a window between look and rename, on filesystems that
	// offer nothing better. A directory with content is refused even then.
	if _, err := fsys.Lstat(newpath); err == nil {
		return &os.LinkError{Op: "rename", Old: oldpath, New: newpath, Err: fs.ErrExist}
	}
	return fsys.Rename(oldpath, newpath)
}

func (osFS) Remove(path string) error {
	return retry(ephemeral, time.Sleep, func() error { return os.Remove(path) })
}

func (osFS) RemoveAll(path string) error {
	return retry(ephemeral, time.Sleep, func() error {
		err := os.RemoveAll(path)
		if !errors.Is(err, fs.ErrPermission) {
			return err
		}
		makeWritable(path)
		return os.RemoveAll(path)
	})
}

// makeWritable gives the owner every right on the directories of a tree, as
// far as it can: the removal that follows reports what is still refused.
func makeWritable(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o700 != 0o700 {
			// WalkDir reads the directory after this call, so it gets in.
			_ = os.Chmod(path, info.Mode().Perm()|0o700)
		}
		return nil
	})
}

// retry calls f again, for at most two seconds, while its error is one that
// passes by itself.
func retry(passes func(error) bool, sleep func(time.Duration), f func() error) error {
	const longest = 2 * time.Second
	wait, waited := 5*time.Millisecond, time.Duration(0)
	for {
		err := f()
		if err == nil || !passes(err) || waited+wait > longest {
			return err
		}
		sleep(wait)
		waited += wait
		wait = min(2*wait, 200*time.Millisecond)
	}
}

// held is the lock files that this process has. The kernel's lock alone does
// not do: where it is emulated, as on NFS, it belongs to the whole process. It
// also keeps the open files from the garbage collector, which closes them.
var held = struct {
	sync.Mutex
	paths map[string]*holding
}{paths: map[string]*holding{}}

// holding is one lock that this process has, for one exclusively or for as many
// as share it.
type holding struct {
	lock   *flock.Flock
	shared int // 0 is exclusively
}

func (osFS) TryLock(path string, record []byte) (func() error, error) {
	return tryLock(path, record, false)
}

func (osFS) TryRLock(path string, record []byte) (func() error, error) {
	return tryLock(path, record, true)
}

func tryLock(path string, record []byte, shared bool) (func() error, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	held.Lock()
	defer held.Unlock()
	h := held.paths[path]
	switch {
	case h == nil:
		if h, err = takeLock(path, shared); err != nil {
			return nil, err
		}
		held.paths[path] = h
	case !shared || h.shared == 0:
		return nil, ErrHeld
	}
	if shared {
		h.shared++
	}
	if len(record) > 0 {
		// The record only serves a message: a full disk must not keep a user
		// from the command that frees it.
		_ = writeRecord(path, record)
	}
	return func() error { return giveBack(path, h) }, nil
}

func takeLock(path string, shared bool) (*holding, error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	try := lock.TryLock
	if shared {
		try = lock.TryRLock
	}
	ok, err := try()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrHeld
	}
	return &holding{lock: lock}, nil
}

func giveBack(path string, h *holding) error {
	held.Lock()
	defer held.Unlock()
	if h.shared > 1 {
		h.shared--
		return nil
	}
	delete(held.paths, path)
	if err := h.lock.Unlock(); err != nil {
		return fmt.Errorf("releasing %s: %w", path, err)
	}
	return nil
}

// The record of a lock file starts after its first byte, which Windows lets
// nobody read while it is locked, and has a fixed size so that the file never
// has to be cut.
const (
	recordOffset = 1
	recordSize   = 1023
)

func writeRecord(path string, record []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	padded := make([]byte, recordSize)
	for i := range padded {
		padded[i] = ' '
	}
	copy(padded, record)
	padded[recordSize-1] = '\n'
	_, err = f.WriteAt(padded, recordOffset)
	return errors.Join(err, f.Close())
}
